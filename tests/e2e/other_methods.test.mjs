// A server may have methods that MCP does not have: at /mcp/<server>, which leads to one server
// only, such requests and notifications pass, whatever the eras of both sides. At /mcp nobody could
// say which server they are for.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, root, serve, until } from './lib.mjs';
import { ModernClient } from './peers.mjs';

const odd = (mode, more = {}) => ({
  command: process.execPath, args: [path.join(root, 'tests/fixture/odd.mjs'), mode], ...more,
});
const servers = { old: odd('exits'), fresh: odd('modern'), shy: odd('exits', { deny: ['nothing'] }) };

async function start(t) {
  const { url } = await serve(t, { servers });
  const all = await new HttpClient(url).connect();
  await all.waitFor('old__hello', 'fresh__hello', 'shy__hello');
  return { url, all };
}

const clients = {
  legacy: (url) => new HttpClient(url).connect(),
  modern: async (url) => new ModernClient(url),
};

for (const [era, connect] of Object.entries(clients)) {
  for (const name of ['old', 'fresh']) {
    test(`a method that nobody knows: ${era} agent, server '${name}'`, async (t) => {
      const { url } = await start(t);
      const client = await connect(`${url}/${name}`);
      const params = { a: [1, null, 'ü'], name: 'no tool', _meta: { 'example.com/x': 1 } };
      const { result, error } = await client.request('odd/echo', params);
      assert.ok(result, JSON.stringify(error));
      const { _meta: meta, ...given } = result.given;
      assert.deepEqual(given, { a: [1, null, 'ü'], name: 'no tool' });
      assert.equal(meta['example.com/x'], 1);
      // The identity in _meta belongs to the hop: a server of the stateless era gets ours.
      assert.equal(meta['io.modelcontextprotocol/clientInfo']?.name, name === 'fresh' ? 'rialto' : undefined);
      assert.equal(result.resultType, era === 'modern' ? 'complete' : undefined);
      if (era === 'modern') assert.equal((await client.send('odd/nothing')).status, name === 'old' ? 404 : 200);
      const refused = await client.request('odd/nothing');
      assert.deepEqual([refused.error.code, refused.error.message], [name === 'old' ? -32601 : -32022, 'no'], 'the server\'s own words');
    });
  }
}

test('a notification that nobody knows reaches the server, too', async (t) => {
  const { url } = await start(t);
  const client = await new HttpClient(`${url}/old`).connect();
  assert.equal((await client.post('{"jsonrpc":"2.0",\n "method":"odd\\/news",\n "params":{"n":\n1}}')).status, 202);
  const { result } = await until('the news', async () => {
    const answer = await client.request('odd/echo');
    return answer.result.told.length && answer;
  });
  assert.deepEqual(result.told, [{ method: 'odd/news', params: { n: 1 } }]);
});

test('where there are several servers, or some tools are hidden, it is an unknown method', async (t) => {
  const { url, all } = await start(t);
  for (const client of [all, await new HttpClient(`${url}/shy`).connect(), new ModernClient(url), new ModernClient(`${url}/shy`)]) {
    const { error } = await client.request('odd/echo');
    assert.equal(error.code, -32601);
    assert.match(error.message, /Method not found/);
  }
});

test('methods of MCP that the agent\'s era does not have are not passed on', async (t) => {
  const { url } = await start(t);
  const rows = [[await new HttpClient(`${url}/old`).connect(), ['server/discover', 'subscriptions/listen']],
    [new ModernClient(`${url}/old`), ['ping', 'logging/setLevel', 'resources/subscribe']]];
  for (const [client, methods] of rows) {
    for (const method of methods) {
      const { error } = await client.request(method, { level: 'info', uri: 'x://y', notifications: {} });
      assert.match(error.message, /Method not found/, method);
    }
  }
});
