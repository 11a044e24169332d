// Pages that misbehave: each is told why, and no other page or agent is affected.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { exchange, load, sleep, tempDir, until, within } from './lib.mjs';
import { Socket, agent, greet, page, post, serveBrowser, stream, text } from './browser_lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

/** Opens a page that works; resolves to a function that checks that it still does. */
async function witness(t, server) {
  const socket = await page(t, server, 'good', [greet]);
  socket.answer((name, args) => text(`hi ${args.who}`));
  const client = await agent(server, 'good');
  let n = 0;
  return async () => assert.equal(await within(30_000, 'the witness', client.text('greet', { who: `${++n}` })), `hi ${n}`);
}

/** A WebSocket handshake by hand; resolves to the socket after the 101. */
async function handshake(t, server, path = '/ws?sessionId=bad&clientType=browser') {
  const { hostname, port, host } = new URL(server.origin);
  const socket = net.connect(Number(port), hostname);
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`
    + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n');
  socket.chunks = [];
  socket.on('data', (d) => socket.chunks.push(d));
  await until('101', () => Buffer.concat(socket.chunks).includes('\r\n\r\n'));
  return socket;
}

test('malformed frames end their connection with the code for it', async (t) => {
  const server = await serveBrowser(t);
  const check = await witness(t, server);
  const cases = [
    [Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002], // not masked
    [Buffer.from([0xf1, 0x80, 0, 0, 0, 0]), 1002], // reserved bits
    [Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002], // unknown opcode
    [Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff]), 1007], // not UTF-8
    [Buffer.from([0x82, 0x81, 0, 0, 0, 0, 0x00]), 1003], // binary
    [Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), 1009], // four gigabytes
  ];
  for (const [frame, code] of cases) {
    const socket = await handshake(t, server);
    const before = Buffer.concat(socket.chunks).length;
    socket.write(frame);
    const closing = Buffer.concat([Buffer.from([0x88]), Buffer.alloc(0)]);
    await until(`close ${code}`, () => {
      const said = Buffer.concat(socket.chunks);
      const at = said.lastIndexOf(closing);
      return at >= 0 && at + 4 <= said.length && said.readUInt16BE(at + 2) === code && before >= 0;
    });
    await check();
  }
});

test('half-open connections and unfinished requests hold up nobody', async (t) => {
  const server = await serveBrowser(t);
  const check = await witness(t, server);
  const { hostname, port } = new URL(server.origin);
  for (let i = 0; i < 20; i++) {
    const socket = net.connect(Number(port), hostname);
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    if (i % 2) socket.write('POST /message?sessionId=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"json');
  }
  for (let i = 0; i < 20; i++) await handshake(t, server, `/ws?sessionId=half${i}&clientType=browser`);
  await check();
});

test('flow 12: a page that does not read is cut; one that does not answer delays nobody', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '1MiB' } });
  const check = await witness(t, server);
  const deaf = await handshake(t, server, '/ws?sessionId=deaf&clientType=browser');
  const mask = Buffer.alloc(4);
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [{ ...greet, timeout: 300000 }] } }));
  deaf.write(Buffer.concat([Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 255]), mask, body]));
  const client = await agent(server, 'deaf');
  await client.waitFor('greet');
  deaf.pause();
  const big = 'x'.repeat(512 << 10);
  const calls = Array.from({ length: 40 }, () => client.call('greet', { who: big }));
  for (let i = 0; i < 20; i++) await check();
  const [{ error }] = await within(60_000, 'the cut', Promise.all(calls));
  assert.deepEqual(error.data, { btcpCode: 'CONNECTION_ERROR' });
  await check();
});

test('answers nobody asked for, ids of others, ids of any type', async (t) => {
  const server = await serveBrowser(t);
  const check = await witness(t, server);
  const socket = await page(t, server, 'bad', [greet]);
  for (const id of ['btcp-1', 'btcp-2', 'btcp-3', 'btcp-0', 'btcp--1', 'btcp-1e3', 'btcp-99999999999999999999', 'x', 1, 2, 1.5, null, true, {}, []]) {
    socket.send({ jsonrpc: '2.0', id, ...text('forged') });
  }
  assert.deepEqual((await socket.request('ping')).result, { pong: true });
  await check();
});

test('results that are no results', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  const wanted = [
    [{ result: null }, (m) => m.result.content[0].text === 'null'],
    [{ result: { content: [] } }, (m) => m.result.content.length === 0],
    [{ error: {} }, (m) => m.error.code === -32603],
    [{ error: { code: {}, message: 7 } }, (m) => m.error.code === -32603],
    [{ result: { content: [{ type: 'image' }] } }, (m) => m.result.content.length === 1],
    [{ result: { content: [{ type: 'resource' }] } }, (m) => m.result.content.length === 1],
  ];
  for (const [members, check] of wanted) {
    socket.answer(() => members);
    const message = await client.call('greet');
    assert.ok(check(message), JSON.stringify([members, message]));
  }
});

// Such answers were reported to the page as invalid requests, and the caller waited for the timeout.
test('answers with neither result nor error end their call at once', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [{ ...greet, timeout: 300_000 }]);
  const client = await agent(server, 'S');
  for (const members of [{}, { error: 'broken' }, { error: null }]) {
    socket.answer(() => members);
    const { error } = await within(20_000, 'the end of the call', client.call('greet'));
    assert.deepEqual([error.code, error.data], [-32603, { btcpCode: 'EXECUTION_ERROR' }]);
    assert.match(error.message, /neither a result nor an error object/);
  }
  const stray = await socket.request(undefined, undefined, 'nobody-asked');
  assert.deepEqual(stray.error, { code: -32600, message: 'Invalid request: neither method nor result' });
});

// The official client refuses a whole list if one entry violates the schema of MCP: a single page hid the
// tools of all servers from it.
test('a tool that is described wrongly does not spoil the list', async (t) => {
  const server = await serveBrowser(t);
  await page(t, server, 'S', [greet, { name: 'schema', inputSchema: { type: 'string' } }, { name: 'listed', inputSchema: [] },
    { name: 'properties', inputSchema: { type: 'object', properties: { a: true }, required: 'a' } },
    { name: 'untyped', inputSchema: { properties: { a: { type: 'string' } } } },
    { name: 'hints', description: 7, title: [], annotations: { readOnlyHint: 'yes', destructiveHint: 1, title: {}, other: 2 } }]);
  const client = new Client({ name: 'checks', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['list_pages', 'greet', 'schema', 'listed', 'properties', 'untyped', 'hints']);
  assert.deepEqual(tools[5].inputSchema, { type: 'object', properties: { a: { type: 'string' } } });
  await client.close();
});

// Each tool tried all numbers from 2 on: a thousand tools of one name took half a million lookups.
test('many tools of one name: each gets its own, none too long', async (t) => {
  const server = await serveBrowser(t);
  const long = 'x'.repeat(100);
  await page(t, server, 'S', Array.from({ length: 1000 }, (_, i) => ({ name: i % 2 ? 'same' : long })));
  const names = await (await agent(server, 'S')).toolNames();
  assert.equal(new Set(names).size, 1000);
  assert.deepEqual(names.filter((n) => n.length > 64), []);
  assert.deepEqual(names.filter((n) => /^same(_s(_\d+)?)?$/.test(n)).length, 500);
});

test('names of sessions, and too many pages in one', async (t) => {
  const server = await serveBrowser(t);
  for (const name of ['a b', 'a/b', 'ä', 'x'.repeat(129), '%00']) {
    const query = `sessionId=${encodeURIComponent(name)}`;
    assert.equal((await stream(t, server, `/events?${query}&clientType=browser`)).status, 400, name);
    await assert.rejects(new Socket(t, server, `/ws?${query}&clientType=browser`).opened, /400/);
  }
  await Promise.all(Array.from({ length: 64 }, () => page(t, server, 'full', [])));
  await assert.rejects(new Socket(t, server, '/ws?sessionId=full&clientType=browser').opened, /400/);
  const { sessions } = JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text);
  assert.deepEqual(sessions.map((s) => s.id), ['full'], 'what was refused left nothing behind');
});

test('too many tools in one session: the page that comes with them is refused, the others stay', async (t) => {
  const server = await serveBrowser(t);
  const check = await witness(t, server);
  const tools = (n) => Array.from({ length: 1000 }, (_, i) => ({ name: `p${n}_${i}` }));
  for (let n = 0; n < 8; n++) await page(t, server, 'full', tools(n));
  const last = await page(t, server, 'full', [greet]);
  assert.match((await last.request('tools/register', { tools: tools(8) })).error.message, /more than 8192 tools in this session/);
  const names = await (await agent(server, 'full')).toolNames();
  assert.equal(names.length, 8001);
  assert.equal(names.at(-1), 'greet');
  await check();
});

// A POST that registered tools for a session made a page that no connection could ever have, and that was freed with its
// session alone: a site that may only offer tools could fill the room of all others.
test('tools that come without a page are not kept, and those of a page that is not there make room', async (t) => {
  const server = await serveBrowser(t, { limits: { catalog: '64KiB' }, browser: { origins: ['https://other.example'] } });
  const check = await witness(t, server);
  const tools = (n) => [{ ...greet, name: `other${n}`, description: 'x'.repeat(60_000) }];
  const register = (where, n, headers) => post(server, where, { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: tools(n) } }, headers);
  const site = { Origin: 'https://other.example' };
  for (const [where, headers] of [['/response?sessionId=good', site], ['/tools/response?sessionId=good', site], ['/rpc?sessionId=good', {}]]) {
    assert.match((await register(where, 1, headers)).text, /Not in a session/, where);
  }
  for (const n of [1, 2]) assert.match((await register(`/message?sessionId=good&clientId=tab${n}`, n, site)).text, /"registered":1/);
  await page(t, server, 'good', [{ ...greet, name: 'mine', description: 'y'.repeat(6000) }]);
  const names = await (await agent(server, 'good')).toolNames();
  assert.deepEqual(names, ['greet', 'mine']);
  await check();
});

test('a Unix socket: a line too long and a flood end the connection, nobody else notices', async (t) => {
  const file = path.join(tempDir(), 'btcp.sock');
  const server = await serveBrowser(t, { browser: { socket: `unix:${file}` }, limits: { message: '64KiB' } });
  const check = await witness(t, server);
  for (const sent of [`{"x":"${'y'.repeat(70_000)}"}\n`, '{"method":"ping"}\n'.repeat(6000), '\n\n{nonsense\n\xff\n'.repeat(10)]) {
    const socket = net.connect(file);
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    let said = '';
    socket.on('data', (d) => { said += d; });
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.end(sent, 'latin1');
    await within(20_000, 'the end', closed);
    if (sent.includes('nonsense')) assert.match(said, /"code":-32700/);
    await check();
  }
});

test('many calls at once, in any order', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  socket.answer(async (name, args) => { await sleep(Math.random() * 50); return text(args.who); });
  const clients = await Promise.all([agent(server, 'S'), agent(server, 'S'), agent(server)]);
  await Promise.all(Array.from({ length: 300 }, async (_, i) => {
    assert.equal(await clients[i % 3].text('greet', { who: `${i}` }), `${i}`);
  }));
});

test('wrong methods and paths', async (t) => {
  const server = await serveBrowser(t);
  assert.equal((await exchange(`${server.origin}/message`, { method: 'GET' })).status, 405);
  assert.equal((await exchange(`${server.origin}//events`, { method: 'POST' })).status, 405);
  assert.equal((await exchange(`${server.origin}/nothing`, { method: 'GET' })).status, 404);
  assert.equal((await exchange(`${server.origin}/health`, { method: 'OPTIONS' })).status, 204);
  assert.equal((await post(server, '/register', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: {} })).status, 400);
  assert.equal((await post(server, '/register', '[')).status, 400);
  assert.equal((await post(server, '/tools/register', {})).status, 400);
  assert.equal((await post(server, '/rpc', '{"method":"tools/list","id":1}')).text,
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Not in a session"}}');
});
