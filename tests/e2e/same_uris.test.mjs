// Two servers with the same resource URI: only the first was listed, and the other's could not be read,
// subscribed to or completed. Now the URI of the server that is later in the configuration is shown as
// rialto://SERVER/URI (docs/decisions/013-same-uris.md).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, serve, tempDir, until } from './lib.mjs';
import { ModernClient, node22 } from './peers.mjs';

// A server of the initialize era with a resource and a template; `touch` sends an update of the resource.
const script = `
import readline from 'node:readline';
const name = process.argv[2];
const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const results = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {}, completions: {}, resources: { subscribe: true } }, serverInfo: { name, version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'touch', inputSchema: { type: 'object' } }] }),
  'resources/list': () => ({ resources: [{ name: 'q', uri: 'x://a"ü' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ name: 't', uriTemplate: 'x://item/{id}' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: name + ' ' + uri }] }),
  'resources/subscribe': ({ uri }) => { console.error('subscribed', uri); return {}; },
  'resources/unsubscribe': () => ({}),
  'completion/complete': ({ ref }) => ({ completion: { values: [name, ref.uri] } }),
  'tools/call': () => { say({ method: 'notifications/resources/updated', params: { more: 1, uri: 'x://a"ü', title: name } }); return { content: [] }; },
};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  say(results[method] ? { id, result: results[method](params) } : { id, error: { code: -32601, message: 'no' } });
});
`;
const uri = 'x://a"ü';
const led = `rialto://two/${uri}`;

async function twoServers(t) {
  const file = path.join(tempDir(), 'server.mjs');
  fs.writeFileSync(file, script);
  const entry = (name) => ({ command: node22, args: [file, name], era: 'legacy' });
  const server = await serve(t, { servers: { one: entry('one'), two: entry('two') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('one__touch', 'two__touch');
  return { server, client };
}

test('both are listed, read and completed, as resources and as templates, in both eras', async (t) => {
  const { server, client } = await twoServers(t);
  for (const agent of [client, new ModernClient(server.url)]) {
    assert.deepEqual((await agent.request('resources/list')).result.resources.map((r) => r.uri), [uri, led]);
    assert.deepEqual((await agent.request('resources/templates/list')).result.resourceTemplates.map((r) => r.uriTemplate), ['x://item/{id}', 'rialto://two/x://item/{id}']);
    const read = async (wanted) => (await agent.request('resources/read', { uri: wanted })).result?.contents[0].text;
    assert.equal(await read(uri), `one ${uri}`);
    assert.equal(await read(led), `two ${uri}`);
    assert.equal(await read('x://item/7'), 'one x://item/7');
    assert.equal(await read('rialto://two/x://item/7'), 'two x://item/7');
    assert.equal(await read('rialto://one/x://item/7'), undefined, 'no other form is made up');
    const complete = async (template) => (await agent.request('completion/complete', { ref: { type: 'ref/resource', uri: template }, argument: { name: 'id', value: '' } })).result.completion.values;
    assert.deepEqual(await complete('x://item/{id}'), ['one', 'x://item/{id}']);
    assert.deepEqual(await complete('rialto://two/x://item/{id}'), ['two', 'x://item/{id}']);
  }
  const alone = await new HttpClient(`${server.url}/two`).connect();
  assert.deepEqual((await alone.request('resources/list')).result.resources.map((r) => r.uri), [uri], 'untouched at /mcp/two');
  assert.equal((await alone.request('resources/read', { uri })).result.contents[0].text, `two ${uri}`);
});

test('updates come from the server that was subscribed to, by the name it was subscribed by', async (t) => {
  const { server, client } = await twoServers(t);
  const stream = await client.listen();
  assert.ok((await client.request('resources/subscribe', { uri: led })).result);
  const modern = new ModernClient(server.url);
  const listening = await modern.listen({ resourceSubscriptions: [led] });
  await listening.waitFor('notifications/subscriptions/acknowledged');
  const alone = await new HttpClient(`${server.url}/two`).connect();
  const its = await alone.listen();
  assert.ok((await alone.request('resources/subscribe', { uri })).result);
  await client.call('one__touch'); // nobody has subscribed to the resource of this server
  await client.call('two__touch');
  const updated = 'notifications/resources/updated';
  await Promise.all([stream.waitFor(updated), listening.waitFor(updated), its.waitFor(updated)]);
  const told = (s) => s.messages().filter((m) => m.method === updated).map(({ params: { _meta, ...rest } }) => rest);
  assert.deepEqual(told(stream), [{ more: 1, uri: led, title: 'two' }]);
  assert.deepEqual(told(listening), [{ uri: led }]);
  assert.deepEqual(told(its), [{ more: 1, uri, title: 'two' }]);
  assert.ok((await client.request('resources/unsubscribe', { uri: led })).result);
  for (const s of [stream, listening, its]) s.close();
});

test('who has the plain URI does not depend on who comes first', async (t) => {
  const { server, client } = await twoServers(t);
  const pid = async () => (await until('one is up', async () => {
    const answer = await fetch(`${server.origin}/status`);
    return (await answer.json()).servers.find((s) => s.name === 'one' && s.pid);
  })).pid;
  process.kill(await pid(), 'SIGKILL');
  for (let i = 0; i < 5; i++) {
    const uris = (await client.request('resources/list')).result.resources.map((r) => r.uri);
    assert.ok(uris.includes(led) && uris.length <= 2, uris.join());
  }
  await client.waitFor('one__touch');
  assert.deepEqual((await client.request('resources/list')).result.resources.map((r) => r.uri), [uri, led]);
});
