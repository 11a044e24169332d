// Sessions of all transports, what they do and what it costs, numbers of the last hour, and what each
// role may request.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { ask, events, get, post, tokenEntry } from './admin_lib.mjs';
import { greet, page, serveBrowser, Socket, text } from './browser_lib.mjs';
import { home } from './daemon_lib.mjs';
import { exchange, fake, HttpClient, serve, serveAndConnect, until } from './lib.mjs';
import { META, MODERN, ModernClient } from './peers.mjs';

const one = { servers: { alpha: fake('--name', 'alpha') } };
const sessions = async (server, options) => (await get(server, '/api/sessions', options)).json;

test('sessions by HTTP: who, how many calls, and ended by the operator', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo']);
  const stream = await events(t, server);
  const came = stream.next('sessions');
  const other = await new HttpClient(server.url).connect({ name: 'other', version: '2025-06-18' });
  await came;
  await other.call('alpha__echo', { message: 'x' });
  const rows = await sessions(server);
  assert.equal(rows.length, 2);
  const row = rows.find((r) => r.client.name === 'other');
  assert.deepEqual([row.client.version, row.era, row.protocol, row.way, row.token, row.view, row.endpoint, row.calls, row.open],
    ['1', 'initialize', '2025-06-18', 'http', null, null, '/mcp', 1, 0]);
  assert.ok(!JSON.stringify(rows).includes(other.headers['Mcp-Session-Id']), 'the wire\'s id is a secret');
  const left = stream.next('sessions');
  assert.equal((await post(server, `/api/sessions/${row.id}/end`)).status, 200);
  await left;
  await until('it is gone', async () => (await sessions(server)).length === 1);
  assert.deepEqual((await sessions(server)).map((r) => r.client.name), ['raw']);
  assert.equal((await other.post({ jsonrpc: '2.0', id: 9, method: 'tools/list' })).status, 404);
  assert.equal((await client.call('alpha__echo', { message: 'x' })).result.structuredContent.message, 'x');
  assert.equal((await post(server, `/api/sessions/${row.id}/end`)).status, 404);
  assert.equal((await get(server, `/api/sessions/${row.id}/end`)).status, 405);
});

// The page was told of agents that came and went, not of what they did: "Calls" stood still and "Last seen" grew while
// an agent was calling. It is told now, but not of each call.
test('who reads the events hears that a session calls, every two seconds at most', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo']);
  const modern = new ModernClient(server.url);
  for (const agent of [client, modern]) {
    await agent.call('alpha__echo', {});
    const [before] = (await sessions(server)).filter((r) => (r.era === 'stateless') === (agent === modern));
    const stream = await events(t, server);
    const calls = async () => (await sessions(server)).find((r) => r.id === before.id).calls;
    const began = Date.now();
    const first = stream.next('sessions');
    await agent.call('alpha__echo', {});
    await first;
    assert.equal(await calls(), before.calls + 1);
    const last = stream.next('sessions');
    for (let i = 0; i < 10; i++) await agent.call('alpha__echo', {});
    await last;
    assert.equal(await calls(), before.calls + 11);
    assert.ok(stream.of('sessions').length <= 1 + (Date.now() - began) / 1900, `${stream.of('sessions').length}`);
    stream.close();
  }
});

test('sessions by WebSocket and by HTTP+SSE', async (t) => {
  const { server } = await serveAndConnect(t, one, ['alpha__echo']);
  const hello = (name) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '2' } } });
  const ws = new WebSocket(server.url.replace('http', 'ws'), 'mcp');
  const closed = new Promise((resolve) => { ws.onclose = resolve; });
  await new Promise((resolve, reject) => { ws.onopen = resolve; ws.onerror = reject; });
  ws.send(hello('by-ws'));
  const sse = await fetch(`${server.origin}/sse`, { headers: { Accept: 'text/event-stream' } });
  const reader = sse.body.getReader();
  let text = '';
  while (!/data: (\S+)/.test(text)) text += new TextDecoder().decode((await reader.read()).value);
  await exchange(new URL(text.match(/data: (\S+)/)[1], server.origin), { headers: { 'Content-Type': 'application/json' }, body: hello('by-sse') });
  const rows = await until('both are here', async () => {
    const all = await sessions(server);
    return all.length === 3 && all;
  });
  assert.deepEqual(rows.map((r) => [r.client.name, r.way]).sort(), [['by-sse', 'sse'], ['by-ws', 'ws'], ['raw', 'http']]);
  for (const row of rows.filter((r) => r.way !== 'http'))
    assert.equal((await post(server, `/api/sessions/${row.id}/end`)).status, 200, row.way);
  await closed;
  await until('the stream ends', async () => (await reader.read()).done);
  await until('both are gone', async () => (await sessions(server)).length === 1);
});

// Agents of the stateless era have no session, but operators want to see them as well.
test('callers without a session: the stateless era, by client, token and endpoint', async (t) => {
  const server = await serve(t, { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } });
  await until('all are up', async () => (await get(server, '/api/servers')).json.every((s) => s.state === 'up'));
  const stream = await events(t, server);
  const came = stream.next('sessions');
  const info = (name) => ({ [`${META}clientInfo`]: { name, version: '3' } });
  const modern = new ModernClient(server.url);
  for (let i = 0; i < 3; i++) await modern.send('tools/call', { name: 'alpha__echo', arguments: { message: 'x' } }, info('one'));
  await came;
  await new ModernClient(`${server.url}/beta`).send('tools/call', { name: 'echo', arguments: { message: 'x' } }, info('one'));
  await modern.send('tools/call', { name: 'alpha__echo', arguments: { message: 'x' } }, info('two'));
  const rows = await sessions(server);
  assert.deepEqual(rows.map((r) => [r.client.name, r.client.version, r.era, r.protocol, r.way, r.token, r.endpoint, r.calls, r.open]), [
    ['two', '3', 'stateless', MODERN, 'http', null, '/mcp', 1, 0],
    ['one', '3', 'stateless', MODERN, 'http', null, '/mcp/beta', 1, 0],
    ['one', '3', 'stateless', MODERN, 'http', null, '/mcp', 3, 0],
  ]);
  assert.equal(new Set(rows.map((r) => r.id)).size, 3);
  assert.ok(rows.every((r) => Math.abs(Date.parse(r.last) - Date.now()) < 60_000 && Date.parse(r.since) <= Date.parse(r.last)));
  const ended = await post(server, `/api/sessions/${rows[0].id}/end`);
  assert.equal(ended.status, 409);
  assert.match(ended.json.error, /no session/);
  // The list stays bounded, however many client names there are.
  for (let i = 0; i < 150; i++) await modern.send('tools/call', { name: 'alpha__echo', arguments: { message: 'x' } }, info(`n${i}`));
  assert.equal((await sessions(server)).length, 100);
});

test('a host by its shim', async (t) => {
  const h = home(t, one);
  const host = await h.host().connect();
  await host.waitFor('alpha__echo');
  const server = { origin: `http://${(await h.daemons())[0].listen[0]}` };
  assert.deepEqual((await sessions(server)).map((r) => [r.client?.name, r.way, r.era]), [['raw', 'stdio', 'initialize']]);
});

test('an agent of BTCP', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  const client = new Socket(t, server, '/');
  await client.opened;
  await client.request('hello', { clientType: 'agent', version: '1.0.0' });
  await client.request('session/join', { sessionId: 'S' });
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'greet', arguments: {} } }));
  const { id } = await browser.find('the call', (m) => m.method === 'tools/call');
  const [row] = await sessions(server);
  browser.send(JSON.stringify({ jsonrpc: '2.0', id, result: text('hi') }));
  await client.find('the answer', (m) => m.id === 'c');
  assert.deepEqual([row.way, row.era, row.endpoint, row.protocol, row.calls, row.open], ['btcp', 'stateless', null, null, 1, 1]);
});

test('numbers: the last hour of servers and tools, restarts, and what processes use', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo']);
  for (let i = 0; i < 3; i++) await client.call('alpha__echo', { message: 'x' });
  await client.call('alpha__crash');
  await until('it is back', async () => (await get(server, '/api/numbers')).json.restarts.length);
  const { minutes, series, restarts, processes, until: end } = (await get(server, '/api/numbers')).json;
  assert.equal(minutes, 60);
  assert.ok(Math.abs(Date.parse(end) - Date.now()) < 60_000);
  const of = (tool) => series.find((s) => s.server === 'alpha' && s.tool === tool);
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  for (const s of series) for (const key of ['calls', 'errors', 'p50', 'p99']) assert.equal(s[key].length, 60);
  assert.equal(sum(of('echo').calls), 3);
  assert.equal(sum(of(null).calls), 4);
  assert.equal(sum(of('crash').errors), 1);
  assert.ok(of('echo').p50.some((p) => p >= 1));
  assert.equal(restarts[0].server, 'alpha');
  assert.ok(Math.abs(Date.parse(restarts[0].at) - Date.now()) < 60_000);
  assert.equal(processes[0].server, 'alpha');
  assert.ok(processes[0].memory > 100_000 && processes[0].cpu_ms >= 0 && processes[0].pid > 1);
});

test('names that callers make up do not grow the numbers', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo']);
  for (let i = 0; i < 300; i++) await client.call(`alpha__made_up_${i}`);
  assert.ok((await get(server, '/api/numbers')).json.series.length <= 202);
});

// The table of roles: every path and method of the API.
const paths = [
  ['GET', '/status'], ['GET', '/api/servers'], ['GET', '/api/servers/alpha'], ['GET', '/api/tools?brief=1'], ['GET', '/api/tools/alpha__echo'],
  ['GET', '/api/calls'], ['GET', '/api/calls/ID'], ['HEAD', '/api/calls'], ['HEAD', '/api/events'], ['GET', '/api/tools?brief=1&view=v&hidden=1'], ['GET', '/api/approvals'], ['GET', '/api/sessions'], ['GET', '/api/numbers'],
  ['GET', '/api/logs', 'whole'], ['GET', '/api/config', 'whole'], ['GET', '/api/pages', 'whole'], ['GET', '/api/tasks', 'whole'], ['GET', '/api/tools', 'whole'],
  ['GET', '/api/grants', 'whole'], ['GET', '/metrics', 'whole'], ['GET', '/api/servers/alpha/messages', 'whole'], ['GET', '/api/bus', 'whole', 404],
  ['POST', '/api/calls/ID/replay', 'change'], ['POST', '/api/tasks/1/cancel', 'change'], ['POST', '/api/bus/dead-letters/1/resend', 'change'],
  ['POST', '/api/mcp', 'change'], ['POST', '/api/mcp/alpha', 'change'], ['POST', '/api/servers', 'change'], ['PUT', '/api/servers/alpha', 'change'],
  ['DELETE', '/api/servers/alpha', 'change'], ['POST', '/api/servers/alpha/stop', 'change'], ['POST', '/api/servers/alpha/start', 'change'],
  ['POST', '/api/servers/alpha/restart', 'change'], ['POST', '/api/servers/alpha/enable', 'change'], ['POST', '/api/servers/alpha/disable', 'change'],
  ['POST', '/api/servers/alpha/login', 'change'], ['POST', '/api/servers/alpha/logout', 'change'], ['POST', '/api/approvals/1', 'change'],
  ['POST', '/api/sessions/1/end', 'change'], ['POST', '/api/reload', 'change'], ['POST', '/api/pair', 'change'], ['POST', '/api/grants/1/revoke', 'change'],
];

test('who may ask for what, by role', async (t) => {
  const token = (name) => `${name}-token-0123456789`;
  const auth = { tokens: [
    tokenEntry('op', token('op')), tokenEntry('eve', token('eve'), { role: 'viewer' }),
    tokenEntry('narrow', token('narrow'), { role: 'viewer', view: 'v' }), tokenEntry('agent', token('agent'), { view: 'v' }),
  ] };
  const server = await serve(t, { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') }, views: { v: { servers: ['alpha'] } }, auth });
  const by = (name) => ({ token: token(name) });
  await until('all are up', async () => (await get(server, '/api/servers', by('op'))).json.every((s) => s.state === 'up'));
  const first = await new HttpClient(server.url, { token: token('agent') }).connect({ name: 'mine' });
  await first.call('alpha__echo', { message: 'x' });
  const [{ id }] = (await get(server, '/api/calls', by('op'))).json;
  for (const [method, path, kind, without = 200] of paths) {
    const where = path.replace('ID', id);
    const status = async (name) => (await ask(server, method, where, by(name))).status;
    const say = `${method} ${where}`;
    assert.equal(await status('agent'), 403, `an agent: ${say}`);
    assert.equal(await status('eve'), kind === 'change' ? 403 : without, `a viewer: ${say}`);
    assert.equal(await status('narrow'), kind ? 403 : 200, `a viewer of a view: ${say}`);
    assert.equal((await ask(server, method, where)).status, 401, `nobody: ${say}`);
    if (kind !== 'change') assert.equal(await status('op'), without, `an operator: ${say}`);
    if (kind === 'change') assert.ok(paths.some(([m, p]) => m === 'GET' && p === path) || [403, 404, 405, 409].includes((await get(server, where, by('eve'))).status), `no GET: ${say}`);
  }
  // No path that the API names is missing here.
  const { hint } = (await get(server, '/api/nothing', by('op'))).json;
  for (const [, list] of hint.matchAll(/(\/api\/[a-z]+)/g))
    assert.ok(list === '/api/events' || paths.some(([, p]) => p.startsWith(list)), list);
  for (const [name, status] of [['op', 200], ['eve', 200], ['narrow', 200], ['agent', 403]])
    assert.equal((await get(server, '/', by(name))).status, status, `the page: ${name}`);
  assert.equal((await get(server, '/api/servers', by('op'))).json.length, 2, 'nothing was changed');
  assert.ok((await get(server, '/api/servers', by('op'))).json.every((s) => s.state === 'up'));
  const others = await new HttpClient(server.url, { token: token('op') }).connect({ name: 'theirs' });
  await others.call('beta__echo', { message: 'x' });
  assert.deepEqual((await sessions(server, by('narrow'))).map((r) => [r.client.name, r.token, r.view]), [['mine', 'agent', 'v']]);
  assert.equal((await sessions(server, by('eve'))).length, 2);
  for (const where of ['/status', '/api/servers', '/api/tools?brief=1&hidden=1', '/api/calls', '/api/numbers', '/api/sessions'])
    assert.ok(!(await get(server, where, by('narrow'))).text.includes('beta'), where);
  assert.equal((await get(server, '/api/servers/beta', by('narrow'))).status, 404);
});

test('without tokens everybody on this machine is an operator', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo']);
  await client.call('alpha__echo', { message: 'x' });
  const [{ id }] = (await get(server, '/api/calls')).json;
  for (const [method, where, kind, without = 200] of paths.filter(([, p]) => !p.includes('view=')))
    if (kind !== 'change') assert.equal((await ask(server, method, where.replace('ID', id))).status, without, `${method} ${where}`);
  const again = await post(server, `/api/calls/${id}/replay`, { confirm: true });
  assert.equal(again.status, 200, again.text);
  assert.equal((await ask(server, 'DELETE', '/api/servers/alpha')).status, 200);
});

test('many calls with a page open do not grow the daemon', async (t) => {
  const { server, client } = await serveAndConnect(t, one, ['alpha__echo'], {});
  await events(t, server);
  const burst = async (n) => {
    for (let i = 0; i < n / 50; i++)
      await Promise.all(Array.from({ length: 50 }, () => client.call('alpha__echo', { message: 'x'.repeat(100) })));
  };
  const memory = () => Number(fs.readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]);
  await burst(3000); // the recorder is full and the allocator has grown
  const before = memory();
  await burst(3000);
  // The sanitizer keeps freed memory for a while, so this only finds growth without a limit.
  assert.ok(memory() - before < 64 * 1024, `${before} KiB, then ${memory()} KiB`);
});
