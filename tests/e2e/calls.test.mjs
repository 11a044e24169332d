// The flight recorder: the last calls of the daemon, as its API and `rialto calls` show them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  exchange, fake, HttpClient, rialto, rialtoBin, serve, serveAndConnect, start, until, within,
} from './lib.mjs';
import { home } from './daemon_lib.mjs';

const get = async (server, where, headers = {}) => {
  const answer = await exchange(`${server.origin}${where}`, { method: 'GET', headers });
  return { ...answer, json: JSON.parse(answer.text) };
};
const list = async (server, query = '') => (await get(server, `/api/calls${query}`)).json;
const calls = (server, args = []) => rialto(['calls', ...args], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
const two = { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta', '--tools', '1') } };
const up = ['alpha__echo', 'beta__echo'];

test('every call is there with what it was given and how it ended, newest first', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { ...two.servers, gate: { ...fake('--name', 'gate'), approve: ['echo'] } },
  }, [...up, 'gate__echo']);
  await client.call('alpha__echo', { message: 'hi' });
  await client.call('alpha__fail');
  await client.call('beta__error');
  await client.call('beta__nothing', { a: 1 });
  await client.call('beta__crash');
  const open = [client.call('alpha__sleep', { ms: 60_000 }), client.call('gate__echo')];
  for (const c of open) c.catch(() => {});
  const all = await until('all calls', async () => {
    const now = await list(server);
    return now.length === 7 && now.some((c) => c.state === 'running') && now;
  });
  assert.deepEqual(all.map((c) => [c.server, c.name, c.state]).toReversed(), [
    ['alpha', 'echo', 'ok'], ['alpha', 'fail', 'error'], ['beta', 'error', 'error'], [null, 'beta__nothing', 'failed'],
    ['beta', 'crash', 'failed'], ['alpha', 'sleep', 'running'], ['gate', 'echo', 'waiting'],
  ]);
  assert.ok(all.every((c) => c.operation === 'tools/call' && Math.abs(Date.parse(c.at) - Date.now()) < 60_000));
  const ids = all.map((c) => Number(c.id));
  assert.deepEqual(ids, ids.toSorted((a, b) => b - a));
  const [unknown, crashed] = ['beta__nothing', 'crash'].map((name) => all.find((c) => c.name === name));
  assert.match(unknown.error, /unknown tool: beta__nothing/);
  assert.match(crashed.error, /'beta' ended while the call was open/);
  const { json } = await get(server, `/api/calls/${all.at(-1).id}`);
  assert.deepEqual([json.arguments, json.result.structuredContent, json.cut], [{ message: 'hi' }, { message: 'hi' }, { arguments: false, result: false }]);
  assert.equal(json.arguments_bytes, '{"message":"hi"}'.length);
  // The list can be filtered.
  assert.deepEqual((await list(server, '?server=beta')).map((c) => c.name), ['crash', 'error']);
  assert.deepEqual((await list(server, '?failed=1&limit=2')).map((c) => c.name), ['crash', 'beta__nothing']);
  assert.deepEqual((await list(server, `?after=${crashed.id}`)).map((c) => c.name), ['echo', 'sleep']);
  assert.equal((await get(server, '/api/calls?limit=many')).status, 400);
  assert.equal((await get(server, '/api/calls?limit=1001')).status, 400);
  for (const where of ['/api/calls/999999', '/api/calls/x', '/api/calls/1/2']) assert.equal((await get(server, where)).status, 404);
  assert.equal((await exchange(`${server.origin}/api/calls`, { body: '{}' })).status, 405);
  assert.equal((await get(server, '/api/calls', { Origin: 'http://localhost:1' })).status, 403);
});

test('reads, prompts and completions are calls as well, and methods of a server\'s own', async (t) => {
  const { server, client } = await serveAndConnect(t, two, up);
  await client.request('resources/read', { uri: 'x://y' });
  await client.request('prompts/get', { name: 'p' });
  const alone = await new HttpClient(`${server.url}/alpha`).connect();
  await alone.request('own/method', { a: 1 });
  const [own, prompt, read] = await list(server);
  assert.deepEqual([own.operation, own.server, own.state], ['own/method', 'alpha', 'error']);
  assert.deepEqual((await get(server, `/api/calls/${own.id}`)).json.arguments, { a: 1 });
  assert.deepEqual([prompt.operation, prompt.name, read.operation, read.name], ['prompts/get', 'p', 'resources/read', 'x://y']);
});

test('long bodies are cut, and secrets do not show, on the edge neither', async (t) => {
  const secret = 'hunter2hunter2';
  const { server, client } = await serveAndConnect(t, {
    servers: { a: { ...fake('--name', 'a'), env: { KEY: '${RIALTO_TEST_KEY}' } } },
  }, ['a__echo'], { env: { RIALTO_TEST_KEY: secret } });
  await client.call('a__echo', { message: `the key is ${secret}`, header: 'Bearer abcdefghijklmnop' });
  const shown = async () => (await get(server, `/api/calls/${(await list(server))[0].id}`)).json;
  const short = await shown();
  assert.equal(short.arguments.message, 'the key is ***');
  assert.doesNotMatch(JSON.stringify(short), /hunter2|abcdefghijklmnop/);
  // Wherever the text is cut, no part of the secret is left.
  for (let at = 16 * 1024 - 60; at < 16 * 1024; at += 7) {
    await client.call('a__echo', { message: `${'x'.repeat(at)}${secret}${'y'.repeat(9000)}` });
    const long = await shown();
    assert.deepEqual(long.cut, { arguments: true, result: true });
    assert.equal(typeof long.arguments, 'string');
    assert.ok(long.arguments.length <= 16 * 1024 && long.arguments.length > 16 * 1024 - 100);
    assert.doesNotMatch(JSON.stringify(long), /hunter/);
  }
});

test('what is kept is bounded, and record: 0 keeps nothing', async (t) => {
  const small = await serveAndConnect(t, { ...two, record: '256KiB' }, up);
  for (let i = 0; i < 60; i++) await small.client.call('alpha__echo', { message: `${i} ${'x'.repeat(10_000)}` });
  const kept = await list(small.server, '?limit=1000');
  assert.ok(kept.length > 3 && kept.length < 13, `${kept.length}`); // each takes 20 KB and more
  assert.match((await get(small.server, `/api/calls/${kept[0].id}`)).json.arguments.message, /^59 /);
  const none = await serve(t, { ...two, record: 0 });
  const { status, json } = await get(none, '/api/calls');
  assert.equal(status, 404);
  assert.match(`${json.error} ${json.hint}`, /nothing is recorded.*'record'/);
  const { code, stderr } = await calls(none);
  assert.equal(code, 1);
  assert.match(stderr, /nothing is recorded/);
});

test('rialto calls: a table, one call, JSON, and mistakes', async (t) => {
  const { server, client } = await serveAndConnect(t, two, up);
  assert.match((await calls(server)).stdout, /No such call is recorded/);
  await client.call('alpha__echo', { message: 'hi\u001b[31m' });
  await client.call('beta__error');
  const { stdout, code } = await calls(server);
  assert.equal(code, 0);
  const [titles, first, second] = stdout.split('\n');
  assert.match(titles, /^ID +TIME +SERVER +NAME +STATE +TOOK +ERROR$/);
  assert.match(first, /^\d+ +\d\d:\d\d:\d\d +alpha +echo +ok +\d+ ms +-$/);
  assert.match(second, /^\d+ +\d\d:\d\d:\d\d +beta +error +error +\d+ ms +\S/);
  const id = first.split(' ')[0];
  const one = (await calls(server, [id])).stdout;
  assert.match(one, /^server +alpha$/m);
  assert.match(one, /^arguments:\n\{\n {2}"message": "hi\\u001b\[31m"\n\}$/m);
  assert.ok(!one.includes('\u001b'));
  assert.deepEqual(JSON.parse((await calls(server, ['--json', '--failed'])).stdout).map((c) => c.name), ['error']);
  assert.equal((await calls(server, ['--server', 'alpha', '-n', '5'])).stdout.trim().split('\n').length, 2);
  assert.match((await calls(server, ['999999'])).stderr, /no such call/);
  for (const args of [['alpha'], ['-n', 'x'], ['-n', '1001'], ['1', '2'], ['']]) assert.equal((await calls(server, args)).code, 2, args.join());
});

test('rialto calls -f shows each call when it has ended', async (t) => {
  const { server, client } = await serveAndConnect(t, two, up);
  await client.call('alpha__echo', { message: 'before' });
  const child = start(rialtoBin, ['calls', '-f', '-n', '1'], { env: { ...process.env, XDG_RUNTIME_DIR: server.dir }, cwd: server.dir, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', (code) => resolve(code)); });
  await until('the one before', () => /alpha +echo +ok/.test(text));
  const slow = client.call('beta__sleep', { ms: 900 });
  await client.call('alpha__fail');
  await until('the one that failed', () => /alpha +fail +error/.test(text));
  assert.doesNotMatch(text, /sleep/);
  await slow;
  await until('the slow one', () => /beta +sleep +ok +9\d\d ms|beta +sleep +ok +\d{4,} ms/.test(text));
  assert.equal(text.trim().split('\n').filter((line) => /^\S/.test(line)).length, 3, text);
  child.kill('SIGINT');
  assert.equal(await within(10_000, 'its end', ended), 0);
});

// The next daemon counts from 1 again. When it was there before `calls -f` looked, its calls had numbers that were known,
// and were not shown.
test('rialto calls -f notices a daemon that was started again at once', async (t) => {
  const h = home(t, { servers: { f: fake() } });
  const call = async () => {
    const { code, stderr } = await rialto(['call', '--daemon', '-c', h.file, 'f', 'echo', 'message=x'], { env: h.env, cwd: h.dir });
    assert.equal(code, 0, stderr);
  };
  const first = await h.serve();
  await call();
  const child = start(rialtoBin, ['calls', '-f', '-c', h.file], { env: { ...process.env, ...h.env }, cwd: h.dir, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  const rows = () => text.match(/echo +ok/g)?.length;
  await until('the first call', () => rows() === 1);
  child.kill('SIGSTOP');
  await first.stop();
  await h.serve();
  await call();
  child.kill('SIGCONT');
  await until('the second call', () => rows() === 2);
});

// `rialto calls -f | head -1` went on for ever, looking at a daemon for nobody.
test('rialto calls -f ends when nobody reads it any more', async (t) => {
  const { server, client } = await serveAndConnect(t, two, up);
  await client.call('alpha__echo', { message: 'before' });
  const child = start(rialtoBin, ['calls', '-f'], { env: { ...process.env, XDG_RUNTIME_DIR: server.dir }, cwd: server.dir, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  await new Promise((resolve) => { child.stdout.once('data', resolve); });
  child.stdout.destroy();
  await until('its end', async () => {
    await client.call('alpha__echo', { message: 'more' });
    return child.exitCode !== null || child.signalCode !== null;
  });
  await ended;
});
