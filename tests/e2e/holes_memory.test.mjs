// Each connection is bounded, but 40 clients that did not read their answers made the bridge hold
// 600 MB: `limits.memory` bounds what is held for all peers together. Clients that do not read are
// cut, the one that reads gets all its answers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { fake, HttpClient, load, logged, rawMessages, serve, serveAndConnect, sleep, tempDir, until } from './lib.mjs';
import { ModernClient } from './peers.mjs';
import { listen, RawServer } from './upstream_lib.mjs';

const { WebSocket } = load('ws');
const MiB = 1024 * 1024;
const peak = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1]) * 1024;

const ask = (id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'much__echo' } });
const hello = JSON.stringify({
  jsonrpc: '2.0', id: 'i', method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'slow', version: '1' } },
});

/** Pipelined POSTs by a client that reads nothing; returns a function that ends it. */
async function slowPosts(server, calls) {
  const session = await new HttpClient(server.url).connect();
  const { hostname, port, pathname } = new URL(server.url);
  const socket = net.connect({ host: hostname, port }).on('error', () => {});
  socket.pause();
  for (let i = 0; i < calls; i++) {
    const body = ask(i);
    const lines = Object.entries({ Host: `${hostname}:${port}`, ...session.headers, 'Content-Length': body.length });
    socket.write(`POST ${pathname} HTTP/1.1\r\n${lines.map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n${body}`);
  }
  return () => socket.destroy();
}

async function slowWebSocket(server, calls) {
  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp']);
  ws.on('error', () => {});
  await new Promise((resolve) => { ws.on('open', resolve); });
  ws.pause();
  ws.send(hello);
  for (let i = 0; i < calls; i++) ws.send(ask(i));
  return () => ws.terminate();
}

async function slowOldSse(server, calls) {
  const response = await new Promise((resolve) => {
    http.get(`${server.origin}/sse`, { agent: false }, resolve);
  });
  response.on('error', () => {});
  const place = await new Promise((resolve) => {
    response.once('data', (d) => resolve(d.toString().match(/data: (\S+)/)[1]));
  });
  response.pause();
  const client = new HttpClient(`${server.origin}${place}`);
  await client.post(hello);
  for (let i = 0; i < calls; i++) await client.post(ask(i)).catch(() => {});
  return () => response.destroy();
}

test('40 clients that do not read', async (t) => {
  const limit = 64 * MiB;
  const file = path.join(tempDir(), 'result.json');
  fs.writeFileSync(file, JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(4 * MiB) }] }));
  const { server, client } = await serveAndConnect(t, {
    servers: { a: fake('--name', 'a'), much: fake('--raw-result', file) }, limits: { memory: '64MiB' },
  }, ['a__big', 'much__echo']);
  await client.text('much__echo');
  const before = peak(server.pid);

  const ends = [];
  let done = false;
  const slow = (async () => {
    for (let i = 0; i < 40; i++)
      ends.push(await [slowPosts, slowWebSocket, slowOldSse][i % 3](server, 3));
    await new HttpClient(server.url).connect().then((last) => last.text('much__echo')); // the last to be answered
    done = true;
  })();
  let answers = 0;
  while (!done) {
    assert.equal((await client.text('a__big', { bytes: 100_000 })).length, 100_000);
    assert.equal(await client.text('a__add', { a: 1, b: 2 }), '3');
    answers++;
  }
  await slow;
  assert.ok(answers > 10, `${answers} answers`);
  const grown = peak(server.pid) - before;
  assert.ok(grown < limit + 64 * MiB, `${Math.round(grown / MiB)} MiB more than before`);
  await logged(server, /memory: \S+ was cut: the bridge held \d+ MiB .*limits\.memory/);
  for (const end of ends) end();
});

// Bodies that are begun and never finished: 12 of 15 MiB each would be 180 MiB.
test('clients that do not finish what they send', async (t) => {
  const server = await serve(t, { servers: {}, limits: { memory: '64MiB' } });
  const { hostname, port, pathname } = new URL(server.url);
  const before = peak(server.pid);
  const part = Buffer.alloc(15 * MiB, ' ');
  const clients = [];
  for (let i = 0; i < 12; i++) {
    const socket = net.connect({ host: hostname, port }).on('error', () => {});
    const c = { socket, text: '' };
    socket.on('data', (d) => { c.text += d; });
    socket.write(`POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\n`
      + `Content-Length: ${part.length + 2}\r\n\r\n`);
    await new Promise((resolve) => { socket.write(part, resolve); });
    clients.push(c);
    await sleep(50);
  }
  const refused = await until('refusals', () => {
    const some = clients.filter((c) => /^HTTP\/1\.1 503/.test(c.text));
    return some.length >= 8 && some;
  });
  for (const c of refused) assert.match(c.text, /limits\.memory/);
  assert.ok(peak(server.pid) - before < 128 * MiB, `${Math.round((peak(server.pid) - before) / MiB)} MiB more`);
  assert.equal((await new HttpClient(server.url).connect()).initialized.serverInfo.name, 'rialto');
  for (const c of clients) c.socket.destroy();
});

// One agent subscribed to 80 URIs of 10 MB each, and the bridge held 1.5 GiB with a limit of 512 MiB.
test('subscriptions to very long URIs', async (t) => {
  const raw = new RawServer({
    'resources/list': ({ reply }) => reply({ resources: [{ uri: 'x://1', name: 'one' }] }),
    'resources/subscribe': ({ reply }) => reply({}),
    initialize: ({ reply }) => reply({
      protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: { subscribe: true } }, serverInfo: { name: 'raw', version: '1' },
    }),
  });
  const { url } = await listen(t, raw.handler);
  const { server, client } = await serveAndConnect(t, { servers: { far: { url, era: 'legacy' } } }, ['far__echo']);
  const uri = `x://${'u'.repeat(MiB)}`;
  const { error } = await client.request('resources/subscribe', { uri });
  assert.match(error.message, /too long/);
  assert.ok((await client.request('resources/subscribe', { uri: 'x://1' })).result);
  assert.equal(raw.count('resources/subscribe'), 1);
  const modern = new ModernClient(server.url);
  const stream = await modern.listen({ resourceSubscriptions: [uri] });
  assert.match((await until('the refusal', () => stream.messages()[0]?.error)).message, /too long/);
  const other = await modern.listen({ resourceSubscriptions: [uri.slice(0, 9000), 'x://1'] });
  const [{ params }] = await other.waitFor('notifications/subscriptions/acknowledged');
  assert.deepEqual(params.notifications.resourceSubscriptions, ['x://1']);
  other.close();
});

// One agent could end the whole bridge: a batch with one large answer ready became a stream while the bridge
// held much, the answer counted twice, as kept for the batch and as output, and its client was cut in the
// middle of being written to.
for (const last of ['is sent as a stream', 'is sent whole']) {
  test(`a batch with one large answer, which ${last}`, async (t) => {
    const { server, client } = await serveAndConnect(t, {
      servers: { a: fake('--name', 'a'), b: fake('--name', 'b') }, limits: { memory: '96MiB', message: '48MiB' },
    }, ['a__big', 'b__slow']);
    const old = await new HttpClient(server.url).connect({ version: '2025-03-26' });
    const call = (id, name, args, _meta) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, _meta } });
    const answer = await old.post([
      call(1, 'a__big', { bytes: 40 * MiB }),
      call(2, 'b__slow', { steps: 1, ms: 3000 }, last === 'is sent whole' ? undefined : { progressToken: 'p' }),
    ]);
    const raw = rawMessages(answer).flatMap((text) => JSON.parse(text)).filter((m) => m.id);
    assert.deepEqual(raw.map((m) => m.id), [1, 2]);
    assert.ok(raw.every((m) => m.result));
    assert.ok(await client.text('a__echo', { message: 'still here' }));
    assert.equal(server.stderr().match(/was cut/), null);
  });
}

// What one agent made us keep for its open requests was not bounded and did not count: ids and progress tokens
// as long as a message may be, and on a pipe any number of subscriptions/listen of 256 KiB each.
test('requests that stay open: long ids, long progress tokens, many subscriptions', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') }, limits: { memory: '64MiB' } });
  const modern = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp']);
  const got = [];
  ws.on('message', (d) => got.push(JSON.parse(d)));
  await new Promise((resolve) => { ws.on('open', resolve); });
  const send = (id, method, params) => ws.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  const answer = (id) => until(`the answer to ${`${id}`.slice(0, 20)}`, () => got.find((m) => m.id === id));

  const long = 'y'.repeat(1100);
  for (const _meta of [{}, modern]) {
    got.length = 0;
    send(long, 'tools/list', { _meta });
    const { error } = await answer(long);
    assert.equal(error.code, -32600);
    assert.match(error.message, /"id" is longer than 1 KiB/);
    send(1, 'tools/call', { name: 'a__sleep', arguments: {}, _meta: { ..._meta, progressToken: long } });
    const refused = (await answer(1)).error;
    assert.equal(refused.code, -32600);
    assert.match(refused.message, /progressToken is longer than 1 KiB/);
  }
  const http = await new HttpClient(server.url).connect();
  const late = await http.post({ jsonrpc: '2.0', id: long, method: 'tools/list' });
  assert.equal(late.status, 400);
  assert.equal(JSON.parse(late.text).error.code, -32600);

  const listen = (id, n) => send(id, 'subscriptions/listen', { notifications: { toolsListChanged: true }, x: 'y'.repeat(n), _meta: modern });
  const acknowledged = () => got.filter((m) => m.method === 'notifications/subscriptions/acknowledged').length;
  const end = (requestId) => ws.send(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }));
  const refused = async (id) => {
    const { error } = await answer(id);
    assert.equal(error.code, -32602);
    assert.match(error.message, /100 are the limit, and 1 MiB/);
  };
  for (let i = 0; i < 6; i++) listen(`long ${i}`, 200 * 1024);
  await refused('long 5');
  assert.equal(acknowledged(), 5);
  for (let i = 0; i < 5; i++) end(`long ${i}`);
  for (let i = 0; i < 101; i++) listen(`one of many ${i}`, 1);
  await refused('one of many 100');
  assert.equal(acknowledged(), 105);
  end('one of many 7'); // one that has ended makes room for another one
  listen('the last', 1);
  await until('the last', () => acknowledged() === 106);
  ws.terminate();
});
