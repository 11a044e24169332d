// A server of both eras has an instance for each: when its processes start and end, what is listed
// meanwhile, and what becomes of servers that have one era only (decision 012).
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { descendants, HttpClient, logged, rialtoBin, StdioClient, tempDir, until, writeConfig } from './lib.mjs';
import { fixtureEntry, fixtureOverHttp, ModernClient, serveDual, v1 } from './peers.mjs';

const children = (server) => descendants(server.pid).length;
const eraOf = async (agent, name = 'client') => JSON.parse(await agent.text(name)).era;
const status = async (server) => (await (await fetch(`${server.origin}/status`)).json()).servers;

async function start(t, entry, more = {}, options = {}) {
  const server = await serveDual(t, { servers: { fixture: entry }, ...more }, options);
  const modern = new ModernClient(`${server.url}/fixture`);
  return { server, modern, legacy: () => new HttpClient(`${server.url}/fixture`).connect() };
}

test('the second process starts with the first call of an agent of its era', async (t) => {
  const { server, modern, legacy } = await start(t, fixtureEntry('dual'));
  const agent = await legacy();
  assert.deepEqual((await agent.request('tools/list')).result.tools.map((x) => x.name),
    (await modern.request('tools/list')).result.tools.map((x) => x.name));
  assert.equal(await eraOf(modern), 'modern');
  assert.equal(children(server), 1);
  assert.equal(await eraOf(agent), 'legacy');
  assert.equal(await eraOf(await legacy()), 'legacy');
  assert.equal(await eraOf(modern), 'modern');
  assert.equal(children(server), 2);
  const [only, ...others] = await status(server);
  assert.equal(others.length, 0);
  assert.deepEqual([only.name, only.state, only.instances, only.protocol], ['fixture', 'up', 2, '2026-07-28']);
});

test('it stops when nobody has called it for a while, and is listed as before', async (t) => {
  const { server, modern, legacy } = await start(t, fixtureEntry('dual', { idle_stop: '1s' }));
  const agent = await legacy();
  assert.equal(await eraOf(agent), 'legacy');
  await until('both to rest', () => children(server) === 0, 20_000);
  assert.ok((await agent.request('tools/list')).result.tools.some((x) => x.name === 'client'));
  assert.equal(await eraOf(agent), 'legacy');
  assert.equal(children(server), 1);
  assert.equal(await eraOf(modern), 'modern');
});

for (const transport of ['stdio', 'HTTP']) {
  test(`a server of the stateless era alone is translated for others, over ${transport}`, async (t) => {
    const entry = transport === 'stdio' ? fixtureEntry('modern') : await fixtureOverHttp(t, 'modern');
    const { server, modern, legacy } = await start(t, entry);
    const agents = [await legacy(), await legacy()];
    // Both calls wait for an instance of the initialize era, which this server cannot have, and must succeed.
    assert.deepEqual(await Promise.all(agents.map((a) => eraOf(a))), ['modern', 'modern']);
    await logged(server, /has one instance for agents of both eras/);
    assert.equal(await eraOf(modern), 'modern');
    await until('the one process', () => children(server) === (transport === 'stdio' ? 1 : 0));
    const [only] = await status(server);
    assert.deepEqual([only.state, only.instances, only.failed, only.last_error], ['up', 1, 0, null]);
    // The second instance is not tried again.
    const before = only.starts;
    assert.equal(await eraOf(await legacy()), 'modern');
    assert.equal((await status(server))[0].starts, before);
  });
}

test('`era` decides for all agents', async (t) => {
  for (const era of ['legacy', 'modern']) {
    const { server, modern, legacy } = await start(t, fixtureEntry('dual', { era }));
    assert.equal(await eraOf(modern), era);
    assert.equal(await eraOf(await legacy()), era);
    assert.equal(children(server), 1);
  }
});

// That a server has both eras was only learned once it was up: a call made earlier went to the wrong era.
test('that there are two is known at the next start', async (t) => {
  const dir = tempDir();
  const options = { env: { XDG_CACHE_HOME: dir } };
  const file = writeConfig(dir, { servers: { fixture: fixtureEntry('dual') } });
  for (let i = 0; i < 2; i++) {
    const agent = await new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file], options).connect();
    if (i === 0) await agent.waitFor('fixture__client');
    const { result } = await agent.request('tools/call', { name: 'fixture__client', arguments: {} });
    assert.equal(JSON.parse(result.content[0].text).era, 'legacy');
    await agent.stop();
  }
});

test('both follow a reload, and an operator who stops and starts the server', async (t) => {
  const { server, modern, legacy } = await start(t, fixtureEntry('dual'));
  const agent = await legacy();
  assert.equal(await eraOf(agent), 'legacy');
  const order = (verb) => fetch(`${server.origin}/api/servers/fixture/${verb}`, { method: 'POST' });
  assert.equal((await order('stop')).status, 202);
  await until('no process', () => children(server) === 0);
  assert.match(JSON.stringify(await agent.call('client')), /stopped by its operator/);
  assert.equal((await order('start')).status, 202);
  await modern.waitFor('client');
  await until('the list', async () => (await agent.request('tools/list')).result.tools.length > 0);
  assert.equal(await eraOf(agent), 'legacy');
  assert.equal(children(server), 2);
  // Another entry is another server: the instances of both eras are replaced.
  for (let n = 1, silent = 0; n <= 3 && (n === 1 || silent); n++) {
    const slow = () => server.stderr().split('does not answer server/discover').length - 1; // see serveDual
    const known = slow();
    writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', servers: { fixture: fixtureEntry('dual', { env: { NEW: `${n}` } }) } });
    const before = descendants(server.pid).map((p) => p.pid);
    process.kill(server.pid, 'SIGHUP');
    await until('another process', () => descendants(server.pid).some((p) => !before.includes(p.pid)), 20_000);
    await until('the old ones to go', () => !descendants(server.pid).some((p) => before.includes(p.pid)), 20_000);
    silent = slow() - known;
  }
  assert.equal(await eraOf(agent), 'legacy');
  assert.equal(await eraOf(modern), 'modern');
  assert.equal(children(server), 2);
});

// A shared server of the initialize era is not told of roots, since they belong to one agent. One of both
// eras got them by translation while it had one connection; with one for each era it refused to ask at all.
test('roots of an agent of the initialize era reach a server of both eras', async (t) => {
  const { server } = await start(t, fixtureEntry('dual'));
  const client = new v1.Client({ name: 'test', version: '1' }, { capabilities: { roots: {} } });
  client.setRequestHandler(v1.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///mine' }] }));
  await client.connect(new v1.StreamableHTTPClientTransport(new URL(`${server.url}/fixture`)));
  t.after(() => client.close());
  const { content: [{ text }] } = await client.callTool({ name: 'test_input_required_result_list_roots', arguments: {} });
  assert.match(text, /file:\/\/\/mine/);
});
