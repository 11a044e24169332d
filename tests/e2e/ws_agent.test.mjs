// MCP over WebSocket: the SDK's transport (on Node's own WebSocket), and npm's `ws` message by
// message, close code by close code.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { exchange, fake, HttpClient, load, serve, sleep, until, within } from './lib.mjs';

const { WebSocket } = load('ws');
const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { WebSocketClientTransport } = load('@modelcontextprotocol/sdk/client/websocket.js');
const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');

const limit = 256 * 1024;
const endings = [];
let server;
let address;

before(async () => {
  server = await serve({ after: (f) => endings.push(f) }, {
    servers: { a: fake('--name', 'a'), b: fake('--name', 'b') }, limits: { message: `${limit / 1024}KiB` },
  });
  address = server.url.replace('http', 'ws');
  await (await new HttpClient(server.url).connect()).waitFor('a__echo', 'b__echo');
});
after(async () => {
  for (const end of endings) await end();
});

/** A raw client: the messages that came, and how the connection ended. */
class Raw {
  constructor(url = address, protocols = ['mcp'], options = {}) {
    this.messages = [];
    this.texts = [];
    this.ws = new WebSocket(url, protocols, { perMessageDeflate: false, ...options });
    this.ws.on('message', (data, binary) => {
      assert.equal(binary, false, 'MCP messages are text frames');
      this.texts.push(data.toString());
      this.messages.push(JSON.parse(data));
    });
    this.opened = new Promise((resolve, reject) => {
      this.ws.on('open', resolve);
      this.ws.on('error', reject);
      this.ws.on('unexpected-response', (_, response) => {
        let body = '';
        response.on('data', (d) => { body += d; });
        response.on('end', () => reject(Object.assign(new Error(body), { status: response.statusCode })));
      });
    });
    this.closed = new Promise((resolve) => {
      this.ws.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  send(message) {
    this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  answer(id, ms) {
    return until(`answer to ${id}`, () => this.messages.find((m) => m.id === id && !m.method), ms);
  }

  async request(id, method, params = {}) {
    this.send({ jsonrpc: '2.0', id, method, params });
    return this.answer(id);
  }

  async connect(capabilities = {}) {
    await within(5000, 'open', this.opened);
    const hello = await this.request('init', 'initialize', {
      protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'raw', version: '1' },
    });
    assert.equal(hello.result.serverInfo.name, 'rialto');
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this;
  }

  async close() {
    this.ws.close();
    return within(5000, 'close', this.closed);
  }
}

for (const [path, tool] of [['', 'a__'], ['/a', '']]) {
  test(`the TypeScript SDK v1 at /mcp${path}`, async () => {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
    const asked = [];
    client.setRequestHandler(ElicitRequestSchema, (request) => {
      asked.push(request.params.message);
      return { action: 'accept', content: { ok: true } };
    });
    await client.connect(new WebSocketClientTransport(new URL(address + path)));
    const names = (await client.listTools()).tools.map((t) => t.name);
    assert.ok(names.includes(`${tool}echo`), names.join());
    const echoed = await client.callTool({ name: `${tool}echo`, arguments: { message: 'hi' } });
    assert.deepEqual(echoed.structuredContent, { message: 'hi' });
    const seen = [];
    await client.callTool({ name: `${tool}slow`, arguments: { steps: 3, ms: 50 } }, undefined,
      { onprogress: (p) => seen.push(p.progress) });
    assert.equal(seen[0], 1); // the SDK misses progress that arrives together with the result
    const answer = await client.callTool({
      name: `${tool}ask`,
      arguments: {
        method: 'elicitation/create',
        params: { mode: 'form', message: 'sure?', requestedSchema: { type: 'object', properties: {} } },
      },
    });
    assert.match(JSON.stringify(answer), /accept/);
    assert.deepEqual(asked, ['sure?']);
    await client.close();
  });
}

test('the subprotocol is echoed if offered, absent if not, and must be ours', async () => {
  for (const [offer, chosen] of [[['mcp'], 'mcp'], [[], ''], [['x', 'mcp'], 'mcp']]) {
    const c = new Raw(address, offer);
    await within(5000, 'open', c.opened);
    assert.equal(c.ws.protocol, chosen);
    await c.close();
  }
  const refused = await new Raw(address, ['chat']).opened.catch((e) => e);
  assert.equal(refused.status, 400);
  assert.match(refused.message, /subprotocol.*mcp/s);
});

test('who may not come in is told why', async () => {
  const evil = await new Raw(address, ['mcp'], { origin: 'https://evil.example.com' }).opened.catch((e) => e);
  assert.equal(evil.status, 403);
  const nobody = await new Raw(`${address}/nobody`).opened.catch((e) => e);
  assert.equal(nobody.status, 404);
  const old = await new Raw(address, ['mcp'], { protocolVersion: 8 }).opened.catch((e) => e);
  assert.equal(old.status, 426);
  const local = new Raw(address, ['mcp'], { origin: 'http://localhost:3000' });
  await local.opened;
  await local.close();
});

test('ids come back as they were, several at once, errors for what is no message', async () => {
  const c = await new Raw().connect();
  c.send('{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"a__sleep","arguments":{"ms":100}}}');
  c.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b__add","arguments":{"a":1,"b":2}}}');
  c.send('{"jsonrpc":"2.0","id":-7.50e1,"method":"ping"}');
  await c.answer('1');
  assert.ok(c.texts.some((t) => /"id":"1"[,}]/.test(t)));
  assert.ok(c.texts.some((t) => /"id":1[,}]/.test(t)));
  assert.ok(c.texts.some((t) => /"id":-7\.50e1[,}]/.test(t)));
  const codes = async (text) => {
    const before_ = c.messages.length;
    c.send(text);
    return (await until('an error', () => c.messages[before_])).error.code;
  };
  assert.equal(await codes('{"jsonrpc":'), -32700);
  assert.equal(await codes('{"hello":1}'), -32600);
  assert.equal(await codes('{"jsonrpc":"2.0","id":9,"method":"no/such"}'), -32601);
  c.send('[{"jsonrpc":"2.0","id":"p1","method":"ping"},{"jsonrpc":"2.0","id":"p2","method":"ping"}]');
  assert.deepEqual((await c.answer('p1')).result, {});
  assert.deepEqual((await c.answer('p2')).result, {});
  assert.equal((await c.close()).code, 1005);
});

test('a message in fragments, with pings between them', async () => {
  const c = await new Raw().connect();
  let pongs = 0;
  c.ws.on('pong', () => { pongs++; });
  const text = '{"jsonrpc":"2.0","id":"frag","method":"tools/call","params":{"name":"a__echo","arguments":{"message":"ä€🙂"}}}';
  const bytes = Buffer.from(text);
  for (let i = 0; i < bytes.length; i += 7) { // also in the middle of characters
    c.ws.send(bytes.subarray(i, i + 7), { fin: i + 7 >= bytes.length, binary: false });
    c.ws.ping('x');
  }
  assert.deepEqual((await c.answer('frag')).result.structuredContent, { message: 'ä€🙂' });
  await until('pongs', () => pongs === Math.ceil(bytes.length / 7));
  await c.close();
});

test('a large answer, and many answers at once', async () => {
  const c = await new Raw().connect();
  const big = await c.request('big', 'tools/call', { name: 'a__big', arguments: { bytes: 200_000 } });
  assert.ok(JSON.stringify(big).length > 200_000);
  for (let i = 1; i <= 300; i++) {
    c.send({ jsonrpc: '2.0', id: i, method: 'tools/call', params: { name: 'b__echo', arguments: { i } } });
  }
  await until('300 answers', () => c.messages.filter((m) => typeof m.id === 'number').length === 300);
  for (const m of c.messages) if (typeof m.id === 'number') assert.equal(m.result.structuredContent.i, m.id);
  await c.close();
});

test('close codes: 1003 for binary, 1007 for bad UTF-8, 1009 for too much, 1002 for broken frames', async () => {
  let c = await new Raw().connect();
  c.ws.send(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}'), { binary: true });
  assert.equal((await within(5000, 'close', c.closed)).code, 1003);
  assert.ok(!c.messages.some((m) => m.id === 1));

  c = await new Raw().connect();
  c.ws.send(Buffer.from([0x22, 0xff, 0x22]), { binary: false });
  assert.equal((await within(5000, 'close', c.closed)).code, 1007);

  c = await new Raw().connect();
  c.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(8 * limit) } }));
  assert.deepEqual(await within(5000, 'close', c.closed), { code: 1009, reason: 'message too large' });

  c = await new Raw().connect();
  c.ws._socket.write(Buffer.from([0xff, 0x80, 1, 2, 3, 4]));
  assert.equal((await within(5000, 'close', c.closed)).code, 1002);

  c = await new Raw().connect();
  c.ws.close(4321, 'my own reasons');
  assert.equal((await within(5000, 'close', c.closed)).code, 4321);
});

// Server a has asked questions by now, so new sessions get their own instance of it; b is shared.
test('the connection is the session: calls end with it, others are untouched', async () => {
  const watcher = await new Raw().connect();
  const whoami = async (id) => (await watcher.request(id, 'tools/call', { name: 'b__whoami' })).result.structuredContent;
  const before_ = await whoami('w1');
  const c = await new Raw().connect();
  c.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'b__sleep', arguments: { ms: 60_000 } } });
  await until('the call to arrive', async () => (await whoami(`w${Math.random()}`)).calls > before_.calls + 1);
  c.ws.terminate();
  await until('the cancellation', async () => (await whoami(`x${Math.random()}`)).cancelled > before_.cancelled);
  const cancelled = (await whoami('w3')).cancelled;

  const d = await new Raw().connect();
  d.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'b__sleep', arguments: { ms: 60_000 } } });
  await sleep(100);
  d.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  await until('the cancellation', async () => (await whoami(`y${Math.random()}`)).cancelled > cancelled);
  assert.ok(!d.messages.some((m) => m.id === 1), 'what was cancelled is not answered');
  await d.close();
  await watcher.close();
});

test('what belongs to no request comes too', async () => {
  const c = await new Raw().connect();
  await c.request('n1', 'tools/call', { name: 'a__notify-list-changed' });
  await until('list_changed', () => c.messages.some((m) => m.method === 'notifications/tools/list_changed'));
  await c.request('n2', 'tools/call', { name: 'a__notify-list-changed' });
  await c.close();
});

test('the stateless era on the same connection', async () => {
  const c = new Raw();
  await c.opened;
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const discovered = await c.request('d', 'server/discover', { _meta: meta });
  assert.ok(discovered.result.supportedVersions.includes('2026-07-28'));
  const called = await c.request('c', 'tools/call', { name: 'a__add', arguments: { a: 2, b: 3 }, _meta: meta });
  assert.equal(called.result.content[0].text, '5');
  assert.equal(called.result.resultType, 'complete');
  await c.close();
});

test('a reader that reads nothing does not hold up others', async () => {
  const slow = await new Raw().connect();
  slow.ws.pause();
  for (let i = 0; i < 200; i++) {
    slow.send({ jsonrpc: '2.0', id: i, method: 'tools/call', params: { name: 'b__big', arguments: { bytes: 200_000 } } });
  }
  const c = await new Raw().connect();
  for (let i = 0; i < 5; i++) {
    assert.ok((await c.request(`q${i}`, 'tools/call', { name: 'a__add', arguments: { a: 1, b: i } })).result);
  }
  const whoami = async () => (await c.request(`w${Math.random()}`, 'tools/call', { name: 'b__whoami' }))
    .result.structuredContent.calls;
  await until('all calls to have reached the server', async () => await whoami() > 200);
  await sleep(500);
  slow.ws.resume();
  const end = await within(10_000, 'the end', slow.closed);
  assert.equal(end.code, 1006);
  await c.close();
});

test('plain HTTP still works at the same path', async () => {
  const answer = await exchange(server.url, { method: 'GET', headers: { Accept: 'text/html' } });
  assert.equal(answer.status, 406);
});

test('a client that falls silent after the handshake is no trouble', async () => {
  const { port } = new URL(server.url);
  const sockets = [];
  for (let i = 0; i < 20; i++) {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
      + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81');
    sockets.push(socket);
  }
  await sleep(100);
  const c = await new Raw().connect();
  await c.close();
  for (const socket of sockets) socket.destroy();
});

test('too many sessions are turned away', async (t) => {
  const small = await serve(t, { servers: { a: fake() }, limits: { sessions: 2 } });
  const url = small.url.replace('http', 'ws');
  const one = await new Raw(url).connect();
  await new Raw(url).connect();
  assert.equal((await new Raw(url).opened.catch((e) => e)).status, 503);
  await one.close();
  await until('a free place', async () => {
    const again = new Raw(url);
    return again.opened.then(() => true, () => false);
  });
});

test('a daemon that stops says 1001, also to who does not answer', async (t) => {
  const other = await serve(t, { servers: { a: fake() } });
  const url = other.url.replace('http', 'ws');
  const c = await new Raw(url).connect();
  const stubborn = await new Raw(url).connect();
  stubborn.ws._receiver.removeAllListeners('conclude'); // this client will not answer the close frame
  c.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__sleep', arguments: { ms: 60_000 } } });
  await sleep(50);
  await other.stop();
  assert.deepEqual(await within(5000, 'close', c.closed), { code: 1001, reason: 'the bridge is shutting down' });
  await within(5000, 'the end', stubborn.closed);
});
