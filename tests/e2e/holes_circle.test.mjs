// A bridge among whose servers is the bridge itself, directly or behind other bridges, offered its own
// tools again and again: each list made the next one longer (self__echo, self__self__echo, ...), 4,000
// tools after 17 seconds, and it never ended. Now the circle is found by the marks that bridges tell each
// other with their lists (docs/decisions/010-circles.md), and one of its servers goes down with the reason.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  descendants, exchange, fake, HttpClient, logged, rialtoBin, serve, sleep, tempDir, until, writeConfig,
} from './lib.mjs';
import { freePort } from './brokers.mjs';
import { listen } from './upstream_lib.mjs';

const status = async (server) => JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);
const serverNamed = async (server, name) => (await status(server)).servers.find((s) => s.name === name);

// A free port for each bridge, known before the bridge is started.
const ports = (n) => Promise.all(Array.from({ length: n }, freePort));
const urlOf = (port, rest = '') => `http://127.0.0.1:${port}/mcp${rest}`;
const bridge = (t, port, servers, more = {}) => serve(t, { listen: `127.0.0.1:${port}`, servers, ...more });

const reason = /leads back to this bridge.*remove/;

/** The servers of these bridges that are down because they lead back, as "bridge/server". */
async function brokenUp(bridges) {
  const found = [];
  for (const [at, b] of bridges.entries()) {
    for (const s of (await status(b)).servers) {
      if (s.state !== 'up' && reason.test(s.last_error ?? '')) found.push(`${at}/${s.name}`);
    }
  }
  return found;
}

/** The circle is broken up, no list grows any more, and servers outside of it work. */
async function expectNoCircle(bridges, honest, ms = 15_000) {
  await until('a server that is down because it leads back', async () => (await brokenUp(bridges)).length, ms);
  const clients = [];
  for (const b of bridges) clients.push(await new HttpClient(b.url).connect());
  const counts = async () => Promise.all(clients.map(async (c) => (await c.toolNames()).length));
  await sleep(1000);
  const before = await counts();
  await sleep(2000);
  assert.deepEqual(await counts(), before, 'the lists do not change any more');
  const own = (await clients[0].toolNames()).filter((n) => n.startsWith(`${honest}__`)).length;
  for (const n of before) assert.ok(n <= 3 * own, `${before} tools, of which the server itself has ${own}`);
  assert.match(await clients[0].text(`${honest}__echo`, { text: 'still here' }), /still here/);
  const broken = await brokenUp(bridges);
  assert.ok(broken.length >= 1);
  for (const at of new Set(broken.map((b) => Number(b.split('/')[0])))) {
    assert.match(bridges[at].stderr(), reason, 'and the log says so');
  }
}

for (const era of ['auto', 'legacy', 'modern']) {
  test(`a bridge that is its own server (${era})`, async (t) => {
    const [port] = await ports(1);
    const a = await bridge(t, port, { s: fake('--name', 's'), self: { url: urlOf(port), era } });
    await expectNoCircle([a], 's', 5000);
    assert.deepEqual((await new HttpClient(a.url).connect().then((c) => c.toolNames()))
      .filter((n) => n.startsWith('self__')), []);
    assert.equal((await serverNamed(a, 's')).state, 'up');
    const starts = () => a.stderr().match(/leads back/g).length;
    const before = starts();
    await sleep(3000);
    assert.equal(starts(), before, 'it is not tried again soon');
  });

  test(`two bridges that are each other's servers (${era})`, async (t) => {
    const [one, two] = await ports(2);
    const a = await bridge(t, one, { s: fake('--name', 's'), b: { url: urlOf(two), era } });
    const b = await bridge(t, two, { a: { url: urlOf(one), era } });
    await expectNoCircle([a, b], 's');
  });
}

test('a bridge that is its own server by WebSocket', async (t) => {
  const [port] = await ports(1);
  const url = urlOf(port).replace('http', 'ws');
  const a = await bridge(t, port, { s: fake('--name', 's'), self: { url } });
  await expectNoCircle([a], 's', 5000);
});

test('a bridge whose tools are found by search, and that is its own server', async (t) => {
  const [port] = await ports(1);
  const a = await bridge(t, port, { s: fake('--name', 's'), self: { url: urlOf(port) } }, { expose: 'search' });
  await until('the reason', async () => (await brokenUp([a])).length);
});

test('three bridges in a circle, the one with a server of its own started first', async (t) => {
  const [one, two, three] = await ports(3);
  const a = await bridge(t, one, { s: fake('--name', 's'), b: { url: urlOf(two) } });
  const b = await bridge(t, two, { c: { url: urlOf(three) } });
  const c = await bridge(t, three, { a: { url: urlOf(one) } });
  await expectNoCircle([a, b, c], 's');
});

test('three bridges in a circle, the one with a server of its own started last', async (t) => {
  const [one, two, three] = await ports(3);
  const c = await bridge(t, three, { a: { url: urlOf(one), era: 'legacy' } });
  const b = await bridge(t, two, { c: { url: urlOf(three), era: 'modern' } });
  const a = await bridge(t, one, { s: fake('--name', 's'), b: { url: urlOf(two) } });
  await expectNoCircle([a, b, c], 's');
});

test('a program that is a bridge back to the one that started it', async (t) => {
  const [port] = await ports(1);
  const inner = writeConfig(tempDir(), { servers: { back: { url: urlOf(port) } } });
  const a = await bridge(t, port, {
    s: fake('--name', 's'),
    child: { command: rialtoBin, args: ['stdio', '--alone', '-c', inner], env: { XDG_CACHE_HOME: tempDir() } },
  });
  const client = await new HttpClient(a.url).connect();
  await client.waitFor('s__echo');
  // Either bridge may find the circle; the reason of the inner one is in our log, as its stderr.
  await until('the reason in the log', () => reason.test(a.stderr()), 15_000);
  await sleep(1500);
  const before = (await client.toolNames()).length;
  await sleep(2000);
  assert.equal((await client.toolNames()).length, before);
  const own = (await client.toolNames()).filter((n) => n.startsWith('s__')).length;
  assert.ok(before <= 3 * own, `${before} tools`);
  assert.match(await client.text('s__echo', { text: 'still here' }), /still here/);
});

// A server whose program is this very bridge with this very file started itself, again and again. Marks
// cannot find that circle, because each process waits for the next one.
test('a configuration that starts itself', async (t) => {
  const dir = tempDir();
  const file = path.join(dir, 'rialto.json');
  fs.writeFileSync(file, JSON.stringify({
    listen: '127.0.0.1:0',
    servers: { me: { command: rialtoBin, args: ['stdio', '--alone', '--wait', '0', '-c', file] }, s: fake() },
  }));
  const server = await serve(t, null, { args: ['-c', file] });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('s__echo');
  await logged(server, /is left out: this Rialto was itself started by a server of .*would start itself without end/);
  await sleep(2000);
  assert.ok(descendants(server.pid).length <= 3, `${descendants(server.pid).length} processes`);
  assert.deepEqual((await client.toolNames()).filter((n) => /^me__/.test(n)), []);
  assert.match(await client.text('s__echo', { text: 'still here' }), /still here/);
});

/** The marks that the bridge at this URL sends to another bridge: its own and those of bridges behind it. */
async function marksOf(url) {
  const other = new HttpClient(url);
  const answer = await other.post({
    jsonrpc: '2.0', id: 1, method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'rialto', version: '1' } },
  });
  other.headers['Mcp-Session-Id'] = answer.headers['mcp-session-id'];
  return (await other.request('tools/list')).result._meta['io.rialto/bridges'];
}

// The stateless era has no session: marks that a bridge learned after its lists were read, and before the
// subscription to list changes was open, were never sent. So circles of three sometimes went unnoticed.
test('a bridge that learns that it leads back between its lists and the subscription to them', async (t) => {
  const [port] = await ports(1);
  let marks = [];
  const serverInfo = { name: 'rialto', version: '1' };
  const results = {
    'server/discover': () => ({ supportedVersions: ['2026-07-28'], capabilities: { tools: { listChanged: true } } }),
    'tools/list': () => ({ tools: [], ttlMs: 0, cacheScope: 'private' }),
  };
  const behind = await listen(t, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { id, method } = JSON.parse(body || '{}');
    if (method === 'subscriptions/listen') {
      marks = await marksOf(urlOf(port));
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify({
        jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged',
        params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, notifications: { toolsListChanged: true } },
      })}\n\n`);
      return;
    }
    const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo, 'io.rialto/bridges': marks };
    response.writeHead(results[method] ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method]?.(), _meta } }));
  });
  const a = await bridge(t, port, { s: fake('--name', 's'), b: { url: behind.url } });
  await until('the reason', async () => (await brokenUp([a])).length, 5000);
  assert.equal(marks.length, 2); // the marks of the process, and of its server b
});

test('two bridges that lend each other a server are no circle', async (t) => {
  const [one, two] = await ports(2);
  const a = await bridge(t, one, { s: fake('--name', 's'), b: { url: urlOf(two) } });
  const b = await bridge(t, two, { r: fake('--name', 'r'), a: { url: urlOf(one, '/s') } });
  const client = await new HttpClient(a.url).connect();
  await client.waitFor('s__echo', 'b__r__echo', 'b__a__echo');
  await sleep(1500);
  assert.deepEqual(await brokenUp([a, b]), []);
  assert.match(await client.text('b__a__echo', { text: 'round trip' }), /round trip/);
});

test('agents that are no bridges are told nothing of bridges', async (t) => {
  const [port] = await ports(1);
  const inner = await serve(t, { servers: { s: fake('--name', 's') } });
  const a = await bridge(t, port, { inner: { url: inner.url } });
  const client = await new HttpClient(a.url).connect();
  await client.waitFor('inner__s__echo');
  const { result } = await client.request('tools/list');
  assert.deepEqual(Object.keys(result), ['tools']);
  const told = await marksOf(a.url);
  assert.equal(told.length, 3); // the marks of the process, of inner, and of inner's process
  assert.ok(told.every((mark) => /^[0-9a-f]{16}$/.test(mark)), told);
});
