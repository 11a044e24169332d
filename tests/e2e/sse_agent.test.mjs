// MCP over HTTP+SSE, the transport of 2024-11-05: the SDK's client, the Inspector, and by hand.
import assert from 'node:assert/strict';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import {
  exchange, fake, HttpClient, load, npmFolder, runCommand, serve, tempDir, until, within,
} from './lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = load('@modelcontextprotocol/sdk/client/sse.js');
const inspector = path.join(npmFolder,
  'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

const endings = [];
let server;

before(async () => {
  server = await serve({ after: (f) => endings.push(f) }, {
    servers: { a: fake('--name', 'a'), b: fake('--name', 'b') }, limits: { message: '256KiB' },
  });
  await (await new HttpClient(server.url).connect()).waitFor('a__echo', 'b__echo');
});
after(async () => {
  for (const end of endings) await end();
});

/** A raw client: the stream's events as {event, data}, and POSTs to the address that it named. */
class Raw {
  static open(where = '/sse', origin = server.origin) {
    return new Promise((resolve, reject) => {
      const c = new Raw();
      c.text = '';
      c.ended = false;
      c.request_ = http.request(origin + where, { agent: false, headers: { Accept: 'text/event-stream' } }, (response) => {
        c.status = response.statusCode;
        c.headers = response.headers;
        response.on('data', (d) => { c.text += d; });
        response.on('error', () => {});
        response.on('close', () => { c.ended = true; });
        resolve(c);
      });
      c.request_.on('error', (e) => (c.status ? undefined : reject(e)));
      c.request_.end();
    });
  }

  events() {
    return this.text.split('\n\n').slice(0, -1).map((block) => Object.fromEntries(
      block.split('\n').filter((l) => !l.startsWith(':')).map((l) => l.split(/: (.*)/s))));
  }

  messages() {
    return this.events().filter((e) => e.event === 'message').map((e) => JSON.parse(e.data));
  }

  async endpoint() {
    const first = await until('the endpoint', () => this.events()[0]);
    assert.equal(first.event, 'endpoint');
    return first.data;
  }

  async post(message, headers = {}) {
    const body = typeof message === 'string' ? message : JSON.stringify(message);
    return exchange(new URL(await this.endpoint(), server.origin), {
      headers: { 'Content-Type': 'application/json', ...headers }, body,
    });
  }

  async request(id, method, params = {}) {
    const posted = await this.post({ jsonrpc: '2.0', id, method, params });
    assert.equal(posted.status, 202, posted.text);
    return until(`answer to ${id}`, () => this.messages().find((m) => m.id === id && !m.method));
  }

  async connect() {
    const hello = await this.request('init', 'initialize', {
      protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'raw', version: '1' },
    });
    assert.equal(hello.result.protocolVersion, '2024-11-05');
    assert.equal((await this.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
    return this;
  }

  close() {
    this.request_.destroy();
  }
}

for (const [where, prefix] of [['/sse', 'a__'], ['/mcp/sse', 'a__'], ['/mcp/a/sse', '']]) {
  test(`the TypeScript SDK v1 at ${where}`, async () => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new SSEClientTransport(new URL(server.origin + where)));
    const names = (await client.listTools()).tools.map((t) => t.name);
    assert.ok(names.includes(`${prefix}echo`), names.join());
    const echoed = await client.callTool({ name: `${prefix}echo`, arguments: { message: 'hi' } });
    assert.deepEqual(echoed.structuredContent, { message: 'hi' });
    const seen = [];
    await client.callTool({ name: `${prefix}slow`, arguments: { steps: 3, ms: 50 } }, undefined,
      { onprogress: (p) => seen.push(p.progress) });
    assert.equal(seen[0], 1); // the SDK misses progress that arrives together with the result
    await client.close();
  });
}

test('the Inspector', async () => {
  const run = await runCommand(process.execPath, [inspector, '--cli', '--transport', 'sse',
    '--server-url', `${server.origin}/sse`, '--format', 'json', '--method', 'tools/call',
    '--tool-name', 'b__add', '--tool-args-json', '{"a":20,"b":22}'],
  { env: { HOME: tempDir() }, timeout: 60_000 });
  assert.equal(run.code, 0, run.stderr + run.stdout);
  assert.match(run.stdout, /42/);
});

test('the stream names a relative address that nobody can guess', async () => {
  const one = await Raw.open();
  const two = await Raw.open('/mcp/b/sse');
  assert.equal(one.status, 200);
  assert.match(one.headers['content-type'], /^text\/event-stream/);
  assert.match(await one.endpoint(), /^\/sse\?sessionId=[0-9a-f]{32}$/);
  assert.match(await two.endpoint(), /^\/mcp\/b\/sse\?sessionId=[0-9a-f]{32}$/);
  assert.notEqual((await one.endpoint()).slice(-32), (await two.endpoint()).slice(-32));
  one.close();
  two.close();
});

test('a session by hand: answers and notifications on the stream, 202 for every post', async () => {
  const c = await (await Raw.open()).connect();
  const sum = await c.request(1, 'tools/call', { name: 'a__add', arguments: { a: 1, b: 2 } });
  assert.equal(sum.result.content[0].text, '3');
  await c.request('log', 'logging/setLevel', { level: 'debug' });
  await c.request(2, 'tools/call', { name: 'a__log', arguments: { level: 'warning' } });
  assert.ok(c.messages().some((m) => m.method === 'notifications/message'));
  assert.equal((await c.post('[{"jsonrpc":"2.0","id":"b1","method":"ping"}]')).status, 202);
  await until('the answer of a batch', () => c.messages().find((m) => m.id === 'b1'));
  const big = await c.request(3, 'tools/call', { name: 'a__big', arguments: { bytes: 200_000 } });
  assert.ok(JSON.stringify(big).length > 200_000);
  c.close();
});

test('what cannot be a message is refused at once', async () => {
  const c = await (await Raw.open()).connect();
  const here = server.origin + await c.endpoint();
  const json = { 'Content-Type': 'application/json' };
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const rows = [
    [400, await c.post('{"jsonrpc":')],
    [400, await c.post('{"hello":1}')],
    [413, await c.post(`"${'x'.repeat(300 * 1024)}"`)],
    [415, await c.post(ping, { 'Content-Type': 'text/plain' })],
    [404, await exchange(here.replace(/.{4}$/, '0000'), { headers: json, body: ping })],
    [404, await exchange(`${server.origin}/mcp/a/sse?sessionId=${here.slice(-32)}`, { headers: json, body: ping })],
    [405, await exchange(`${server.origin}/sse`, { headers: json, body: ping })],
    [405, await exchange(`${server.origin}/sse`, { method: 'DELETE' })],
    [404, await exchange(`${server.origin}/mcp/nobody/sse`, { method: 'GET' })],
    [403, await exchange(here, { headers: { ...json, Origin: 'https://evil.example.com' }, body: ping })],
  ];
  for (const [status, answer] of rows) {
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, /error/);
  }
  assert.deepEqual((await c.request('still', 'ping')).result, {});
  c.close();
});

test('closing the stream ends the session and its calls', async () => {
  const watcher = await new HttpClient(server.url).connect();
  const whoami = async () => (await watcher.call('a__whoami')).result.structuredContent;
  const before_ = await whoami();
  const c = await (await Raw.open()).connect();
  const posted = await c.post({
    jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__sleep', arguments: { ms: 60_000 } },
  });
  assert.equal(posted.status, 202);
  c.close();
  await until('the cancellation', async () => (await whoami()).cancelled > before_.cancelled);
  assert.equal((await c.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status, 404);
  await watcher.close();
});

test('two sessions do not see each other', async () => {
  const one = await (await Raw.open()).connect();
  const two = await (await Raw.open()).connect();
  await Promise.all([one.request('same', 'tools/call', { name: 'a__echo', arguments: { who: 1 } }),
    two.request('same', 'tools/call', { name: 'a__echo', arguments: { who: 2 } })]);
  const who = (c) => c.messages().filter((m) => m.id === 'same').map((m) => m.result.structuredContent.who);
  assert.deepEqual([who(one), who(two)], [[1], [2]]);
  one.close();
  two.close();
});

test('a reader that reads nothing is cut and holds up nobody', async () => {
  const slow = await (await Raw.open()).connect();
  slow.request_.socket.pause();
  for (let i = 0; i < 200; i++) {
    const posted = await slow.post({
      jsonrpc: '2.0', id: i, method: 'tools/call', params: { name: 'a__big', arguments: { bytes: 200_000 } },
    });
    if (posted.status === 404) break;
    assert.equal(posted.status, 202);
  }
  await until('the session to be ended', async () => (await slow.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status === 404);
  const c = await (await Raw.open()).connect();
  c.close();
  slow.close();
});

test('a daemon that stops ends the streams', async (t) => {
  const other = await serve(t, { servers: { a: fake() }, limits: { sessions: 1 } });
  const c = await Raw.open('/sse', other.origin);
  await c.endpoint();
  assert.equal((await Raw.open('/sse', other.origin)).status, 503);
  await other.stop();
  await within(2000, 'the end of the stream', until('end', () => c.ended));
});
