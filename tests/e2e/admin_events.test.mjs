// The page used to poll three lists a second, for ever. Now it reads one stream: changes are sent
// within a moment, and nothing is sent while nothing changes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { events, get, post, tokenEntry } from './admin_lib.mjs';
import { exchange, fake, rialto, serve, serveAndConnect, sleep, until, writeConfig } from './lib.mjs';

const two = { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } };

test('hello first, then what changes, and nothing at rest', async (t) => {
  const { server, client } = await serveAndConnect(t, two, ['alpha__echo', 'beta__echo']);
  const stream = await events(t, server);
  assert.match(stream.response.headers['content-type'], /^text\/event-stream/);
  assert.equal(stream.response.headers['cache-control'], 'no-store');
  await until('hello', () => stream.all.length);
  assert.equal(stream.all[0][0], 'hello');
  const { pid, role, name, anonymous, view } = stream.all[0][1];
  assert.deepEqual({ pid, role, name, anonymous, view },
    { pid: server.pid, role: 'operator', name: null, anonymous: true, view: null });
  await sleep(600);
  const rest = stream.all.length;
  await sleep(1500);
  assert.equal(stream.all.length, rest, JSON.stringify(stream.all));

  const told = stream.next('calls', (d) => d.rows.some((r) => r.name === 'echo' && r.state === 'ok'));
  const counted = stream.next('servers', (rows) => rows.some((r) => r.name === 'alpha' && r.calls === 1));
  await client.text('alpha__echo', { message: 'hi' });
  const { rows } = await told;
  assert.deepEqual(rows, (await get(server, '/api/calls')).json.filter((r) => rows.some((x) => x.id === r.id)));
  assert.deepEqual((await counted).map((r) => r.name), ['alpha'], 'only rows that differ');
});

test('a server that stops, a line of the log, a held call, a new server, one that goes', async (t) => {
  const { server, client } = await serveAndConnect(t,
    { servers: { ...two.servers, beta: { ...fake('--name', 'beta'), approve: ['echo'] } } }, ['alpha__echo', 'beta__echo']);
  const stream = await events(t, server);
  const waits = [
    stream.next('servers', (rows) => rows.some((r) => r.name === 'alpha' && r.state === 'stopped')),
    stream.next('log', (d) => d.lines.some((l) => l.who === 'alpha' && /stop, by/.test(l.text))),
    stream.next('tools'),
  ];
  await post(server, '/api/servers/alpha/stop');
  await Promise.all(waits);

  const held = stream.next('approvals');
  const answer = client.call('beta__echo', { message: 'x' });
  await held;
  const [{ id }] = (await get(server, '/api/approvals')).json;
  const over = stream.next('approvals');
  await post(server, `/api/approvals/${id}`, { approved: true });
  await over;
  await answer;

  const changed = stream.next('servers', (rows) => rows.some((r) => r.name === 'alpha' && r.gone) ||
    rows.some((r) => r.name === 'gamma'));
  writeConfig(server.dir, { listen: '127.0.0.1:0', servers: { beta: two.servers.beta, gamma: fake() } });
  await changed;
  await until('both are told', () => {
    const rows = stream.of('servers').flat();
    return rows.some((r) => r.name === 'alpha' && r.gone) && rows.some((r) => r.name === 'gamma' && r.state === 'up');
  });
});

// Invariant 5, and a bound for the page: even at a thousand calls a second it gets four messages a second.
test('a burst of calls is told in few messages, with what was skipped', async (t) => {
  const { server, client } = await serveAndConnect(t, two, ['alpha__echo', 'beta__echo']);
  const stream = await events(t, server);
  const begun = Date.now();
  for (let i = 0; i < 20; i++)
    await Promise.all(Array.from({ length: 50 }, () => client.call('alpha__echo', { message: 'x' })));
  await until('all are told', () => stream.of('servers').flat().some((r) => r.calls === 1000));
  await sleep(300);
  const seconds = (Date.now() - begun) / 1000;
  for (const name of ['calls', 'servers'])
    assert.ok(stream.of(name).length <= 4 * seconds + 2, `${stream.of(name).length} ${name} in ${seconds} s`);
  assert.ok(stream.of('calls').every((d) => d.rows.length <= 100));
  const ids = new Set(stream.of('calls').flatMap((d) => d.rows.map((r) => r.id)));
  const skipped = stream.of('calls').reduce((n, d) => n + d.skipped, 0);
  assert.ok(ids.size + skipped >= 1000, `${ids.size} told, ${skipped} skipped`);
});

test('a reader that does not read is cut, and others are told all the same', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    ...two, log: { level: 'debug' } }, ['alpha__echo', 'beta__echo']);
  const slow = await events(t, server);
  slow.response.pause();
  const other = await events(t, server);
  await until('it is cut', async () => {
    await Promise.all(Array.from({ length: 100 }, () => client.call('alpha__echo', { message: 'x'.repeat(2000) })));
    return /a page reads what is new too slowly/.test(server.stderr());
  }, 60_000);
  const told = other.next('calls');
  await client.call('alpha__echo', { message: 'x' });
  await told;
});

test('the stream of a token ends with the token; secrets are not in it', async (t) => {
  const secret = 'planted-secret-0123456789';
  const auth = { tokens: [tokenEntry('op', 'op-token-0123456789'), tokenEntry('eve', 'eve-token-0123456789', { role: 'viewer' })] };
  const config = { listen: '127.0.0.1:0', servers: { alpha: { ...fake('--name', 'alpha'), env: { KEY: '${PLANTED}' } } }, auth };
  const server = await serve(t, config, { env: { PLANTED: secret } });
  const stream = await events(t, server, { token: 'eve-token-0123456789' });
  await until('hello', () => stream.of('hello').length);
  assert.equal(stream.of('hello')[0].role, 'viewer');
  assert.equal(stream.of('hello')[0].name, 'eve');
  assert.equal(stream.of('hello')[0].anonymous, false);
  const op = { token: 'op-token-0123456789' };
  await until('alpha is up', async () => (await get(server, '/api/servers/alpha', op)).json.state === 'up');
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'alpha__echo', arguments: { message: secret } } };
  await post(server, '/mcp', call, { ...op, headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28' } });
  await post(server, '/api/servers/alpha/restart', undefined, op);
  await stream.next('log');
  assert.ok(!stream.raw().includes(secret));
  fs.writeFileSync(server.config, JSON.stringify({ ...config, auth: { tokens: auth.tokens.slice(0, 1) } }));
  await until('its end', async () => {
    await post(server, '/api/servers/alpha/restart', undefined, op);
    return stream.ended();
  });
});

test('nothing is asked for by other methods, and HEAD is answered', async (t) => {
  const server = await serve(t, two);
  assert.equal((await post(server, '/api/events')).status, 405);
  assert.equal((await exchange(`${server.origin}/api/events`, { method: 'HEAD' })).status, 200);
  assert.equal((await get(server, '/api/events/x')).status, 404);
});

// The old process counted the pages for who watched, after it had let them go: it crashed, and lost its calls.
test('an upgrade while somebody watches loses no call', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { a: { ...fake(), concurrency: 0 } } }, ['a__sleep']);
  const stream = await events(t, server);
  await until('hello', () => stream.all.length);
  const calls = [1000, 2500].map((ms) => client.text('a__sleep', { ms }));
  await sleep(300);
  const { code, stderr } = await rialto(['upgrade', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir }, timeout: 30_000 });
  assert.equal(code, 0, stderr);
  for (const text of await Promise.all(calls)) assert.match(text, /slept/);
});
