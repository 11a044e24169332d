// Wrong input that no other test file covers: each gets its status and code, and neither the connection
// nor other clients are harmed. (Statuses of Streamable HTTP: http_rules; forged requestState: parked;
// broken servers: badservers.)
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { fake, serveAndConnect, stdio, within } from './lib.mjs';
import { ModernClient } from './peers.mjs';

const one = { servers: { s: fake('--name', 's') } };

test('a body that does not come is given up with 408, and others are served meanwhile', async (t) => {
  const { server, client } = await serveAndConnect(t, { ...one, limits: { body_timeout: '1s' } }, ['s__echo']);
  const { hostname, port } = new URL(server.url);
  const socket = net.connect(Number(port), hostname);
  let text = '';
  socket.on('data', (d) => { text += d; });
  const closed = new Promise((resolve) => { socket.on('close', resolve); });
  socket.write(`POST /mcp HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"json`);
  assert.ok((await client.call('s__echo', { a: 1 })).result);
  await within(10_000, 'the end of the slow one', closed);
  assert.match(text, /^HTTP\/1\.1 408 /);
  assert.ok((await client.call('s__echo', { a: 2 })).result);
});

test('two requests with one id at the same time: over HTTP each POST gets its own answer', async (t) => {
  const { client } = await serveAndConnect(t, one, ['s__echo']);
  const ask = (n) => client.rawRequest('7', 'tools/call', `{"name":"s__echo","arguments":{"n":${n}}}`);
  const answers = await Promise.all([1, 2, 3].map(ask));
  assert.deepEqual(answers.map((a) => a.message.result.structuredContent.n), [1, 2, 3]);
  assert.ok(answers.every((a) => a.message.id === 7));
});

test('two requests with one id at the same time: on a pipe both are answered', async (t) => {
  const agent = await stdio(t, one, ['s__echo']);
  const before = agent.lines.length;
  for (const n of [1, 2]) {
    agent.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s__echo","arguments":{"n":${n}}}}`);
  }
  await agent.rawRequest('"after"', 'ping');
  const answered = await within(5000, 'both', (async () => {
    for (;;) {
      const found = agent.lines.slice(before).map((l) => JSON.parse(l)).filter((m) => m.id === 7);
      if (found.length === 2) return found;
      await new Promise((r) => { setTimeout(r, 10); });
    }
  })());
  assert.deepEqual(answered.map((m) => m.result.structuredContent.n).sort(), [1, 2]);
});

test('bad cursors, in both eras', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['s__echo']);
  const modern = new ModernClient(server.url);
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']) {
    for (const cursor of ['nonsense', '', 7, null]) {
      assert.equal((await client.request(method, { cursor })).error?.code, -32602, `${method} ${cursor}`);
      assert.equal((await modern.request(method, { cursor })).error?.code, -32602, `modern ${method} ${cursor}`);
    }
  }
  assert.ok((await client.call('s__echo')).result);
});

test('envelopes with a member twice, or written to be read twice, are refused whole', async (t) => {
  const { client } = await serveAndConnect(t, one, ['s__echo']);
  for (const text of [
    '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"tools/list"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo","n\\u0061me":"s__fail"}}',
  ]) {
    const answer = await client.post(text);
    assert.equal(answer.status, 400, text);
    assert.equal(JSON.parse(answer.text).error.code, -32700, text);
  }
  assert.ok((await client.call('s__echo')).result);
});
