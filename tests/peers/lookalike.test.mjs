// tests/e2e/holes_lookalike.test.mjs tells the story; here the lenient reader is a real one, Go's
// encoding/json in a server made with mcp-go.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { serveAndConnect, StdioClient } from '../e2e/lib.mjs';

const command = path.join(process.env.RIALTO_PEERS, 'mcp_go');
const attacks = [
  (name) => `{"name":"${name}","Name":"danger","arguments":{}}`,
  (name) => `{"Name":"danger","name":"${name}","NAME":"danger","arguments":{}}`,
  (name) => `{"name":"${name}","arguments":{},"Arguments":{"path":"/evil"}}`,
  (name) => `{"name":"${name}","arguments":{},"argument\u017f":{"path":"/evil"}}`,
  (name) => `{"name":"${name}","arguments":{},"argument\\u017f":{"path":"/evil"}}`,
];

// Without this the test below would also pass with a server that is not lenient at all.
test('this server does read a member that differs in case', async (t) => {
  const direct = new StdioClient(t, command, []);
  await direct.rawRequest(1, 'initialize', '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}');
  direct.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const answer = await direct.rawRequest(2, 'tools/call', attacks[0]('echo'));
  assert.match(answer, /danger/);
});

for (const [how, entry] of Object.entries({
  allow: { allow: ['echo', 'ran'] }, deny: { deny: ['danger'] }, hide: { tools: { danger: { hide: true } } },
  approve: { approve: ['danger'] }, pinned: { tools: { echo: { arguments: { path: '/safe' } } } },
})) {
  test(`${how} holds before a server whose JSON reader ignores case`, async (t) => {
    const { client } = await serveAndConnect(t, { servers: { g: { command, ...entry } } }, ['g__echo', 'g__ran']);
    for (const attack of attacks) {
      const { message } = await client.rawRequest(1, 'tools/call', attack('g__echo'));
      assert.equal(message.error?.code, -32602, `${attack('g__echo')}: ${JSON.stringify(message)}`);
    }
    assert.deepEqual(JSON.parse(await client.text('g__ran')), [], 'nothing has run');
    assert.match(await client.text('g__echo', { path: '/mine' }), how === 'pinned' ? /safe/ : /mine/);
  });
}
