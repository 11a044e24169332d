// The configuration changes while the daemon runs: only what differs is touched.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { counting } from './daemon_lib.mjs';
import {
  commandOf, descendants, exchange, expectGone, fake, HttpClient, logged, rialto, serve, tempDir, until, writeConfig,
} from './lib.mjs';
import { tokenEntry } from './admin_lib.mjs';

const rewrite = (server, config) =>
  writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', ...config });

async function reload(server) {
  const answer = await exchange(`${server.origin}/api/reload`, { body: '{}' });
  return { status: answer.status, ...JSON.parse(answer.text) };
}

const pids = async (server) => Object.fromEntries(
  JSON.parse((await exchange(`${server.origin}/api/servers`, { method: 'GET' })).text)
    .map((s) => [s.name, s.pid]));

test('a reload adds, removes, replaces and adjusts servers, and leaves the others alone', async (t) => {
  const server = await serve(t, {
    servers: {
      same: fake('--name', 'same'), gone: fake('--name', 'gone'), other: fake('--name', 'other'),
      less: fake('--name', 'less'),
    },
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('same__echo', 'gone__echo', 'other__echo', 'less__echo');
  const stream = await client.listen();
  const before = await pids(server);

  rewrite(server, {
    names: '{server}_{tool}',
    servers: {
      fresh: fake('--name', 'fresh'), less: { ...fake('--name', 'less'), deny: ['add'] },
      other: fake('--name', 'another'), same: fake('--name', 'same'),
    },
  });
  const report = await reload(server);
  assert.deepEqual(report, {
    status: 200, kept: ['same'], adjusted: ['less'], replaced: ['other'], added: ['fresh'], removed: ['gone'],
    at_next_start: 'names',
  });
  await until('the new set of tools', async () => {
    const names = await client.toolNames();
    return names.includes('fresh__echo') && !names.includes('gone__echo') && !names.includes('less__add');
  });
  await stream.waitFor('notifications/tools/list_changed');
  await until('the replaced server', async () => (await pids(server)).other !== before.other);
  const after = await pids(server);
  assert.equal(after.same, before.same, 'an unchanged server is not restarted');
  assert.equal(after.less, before.less, 'nor is one with another filter');
  assert.deepEqual(Object.keys(after), ['fresh', 'less', 'other', 'same'], 'the order is the file\'s');
  assert.match((await client.call('less__add', { a: 1, b: 2 })).error.message, /unknown tool/);
  assert.equal((await exchange(`${server.url}/gone`, { method: 'GET' })).status, 404);
  assert.ok((await (await new HttpClient(`${server.url}/fresh`).connect()).toolNames()).includes('echo'));
  await expectGone([{ pid: before.gone }, { pid: before.other }], 10_000);
  stream.close();
});

test('a file that is replaced by renaming is read by itself; a broken one changes nothing', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const put = (text) => {
    fs.writeFileSync(`${server.config}.new`, text);
    fs.renameSync(`${server.config}.new`, server.config);
  };
  put('{"servers": {"a": ');
  await logged(server, /the changed configuration is not taken, all goes on as it was/);
  assert.match((await reload(server)).error, /rialto\.json/);
  assert.equal(await client.text('a__echo', { n: 1 }), '{"n":1}');
  put(JSON.stringify({ listen: '127.0.0.1:0', servers: { a: fake('--name', 'a'), b: fake('--name', 'b') } }));
  await client.waitFor('b__echo');
});

test('SIGHUP and `rialto reload` read the file too', async (t) => {
  const server = await serve(t, { servers: {} });
  const client = await new HttpClient(server.url).connect();
  rewrite(server, { servers: { a: fake('--name', 'a') } });
  process.kill(server.pid, 'SIGHUP');
  await client.waitFor('a__echo');
  rewrite(server, { servers: { a: fake('--name', 'a'), b: fake('--name', 'b') } });
  const said = await rialto(['reload', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } });
  assert.equal(said.stderr, '');
  assert.match(said.stdout, /^(added b|no server changed)\n$/, 'the watch may have been quicker');
  await client.waitFor('b__echo');
});

test('calls under way when their server is replaced come to their ends, and run once', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'one') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const before = await pids(server);
  const slow = Array.from({ length: 8 }, () => client.call('a__slow', { ms: 1500 }));
  await until('the calls to be under way', async () =>
    JSON.parse((await exchange(`${server.origin}/api/servers/a`, { method: 'GET' })).text).in_flight === 8);
  rewrite(server, { servers: { a: fake('--name', 'two') } });
  assert.deepEqual((await reload(server)).replaced, ['a']);
  await until('the new one in place', async () => (await pids(server)).a !== before.a);
  for (const { result } of await Promise.all(slow)) assert.ok(result && !result.isError);
  await expectGone([{ pid: before.a }], 10_000);
});

// Agents keep their sessions, but what they had subscribed to at the old server, and the log level that they had set, was
// silently forgotten; later on still where each session had an instance of its own, then where that is what changed.
for (const [from, to] of [['shared', 'shared'], ['per-session', 'per-session'], ['shared', 'per-session'], ['per-session', 'shared']]) {
  test(`a server that replaces another one knows of subscriptions and of the log level: ${from}, then ${to}`, async (t) => {
    const n = (word, instances) => ({ n: { ...counting(path.join(tempDir(), 'calls')), env: { WORD: word }, instances } });
    const own = { own: { ...fake('--name', 'own'), instances: 'per-session' } }; // for a session with a view of its own
    const server = await serve(t, { servers: { ...n('one', from), ...own } });
    const client = await new HttpClient(server.url).connect();
    await client.waitFor('n__count');
    const { error } = await client.request('resources/subscribe', { uri: 'count://all' });
    assert.equal(error, undefined);
    await client.request('logging/setLevel', { level: 'debug' });
    const stream = await client.listen();
    const counters = () => descendants(server.pid).filter((p) => commandOf(p).some((word) => word.endsWith('counting.cjs')));
    const before = counters();
    rewrite(server, { servers: { ...n('two', to), ...own } });
    assert.deepEqual((await reload(server)).replaced, ['n']);
    await expectGone(before, 10_000);
    await until('the new one in place', () => counters().length > 0);
    const { text } = await client.post({ jsonrpc: '2.0', id: 'call', method: 'tools/call', params: { name: 'n__count', arguments: {} } });
    assert.match(text, /notifications\/message.*counts/, text);
    await stream.waitFor('notifications/resources/updated');
    stream.close();
  });
}

test('a changed entry that does not come up leaves the old server in place', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  rewrite(server, { servers: { a: { command: 'no-such-program-anywhere' } } });
  assert.deepEqual((await reload(server)).replaced, ['a']);
  await logged(server, /the new entry does not come up, so the old one goes on: .*no-such-program/);
  assert.equal(await client.text('a__echo', { n: 1 }), '{"n":1}');
  rewrite(server, { servers: { a: fake('--name', 'a2') } });
  await reload(server);
  await until('one server only', () => descendants(server.pid).length === 1);
  assert.equal(await client.text('a__echo', { n: 2 }), '{"n":2}');
});

test('sessions with instances of their own get the new set as well', async (t) => {
  const own = { ...fake('--name', 'own'), instances: 'per-session' };
  const server = await serve(t, { servers: { own, shared: fake('--name', 'shared') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('own__echo', 'shared__echo');
  rewrite(server, { servers: { own, more: fake('--name', 'more') } });
  await reload(server);
  await client.waitFor('more__echo');
  await until('the dropped server to go', async () => !(await client.toolNames()).includes('shared__echo'));
  assert.equal(await client.text('own__echo', { n: 3 }), '{"n":3}');
});

// A reload of something else, while an operator had stopped the server, took away the instances that
// sessions had of their own, and starting the server did not give them back: all shared one from then on.
test('sessions keep instances of their own when the server is stopped, something is reloaded, and it is started', async (t) => {
  const script = "require('readline').createInterface({ input: process.stdin }).on('line', (line) => {"
    + " const { id, method, params } = JSON.parse(line); if (id === undefined) return;"
    + " const result = { initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },"
    + " 'tools/list': { tools: [{ name: 'pid', inputSchema: { type: 'object' } }] },"
    + " 'tools/call': { content: [{ type: 'text', text: String(process.pid) }] } }[method];"
    + " console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) })); });";
  const own = { command: process.execPath, args: ['-e', script], instances: 'per-session' };
  const server = await serve(t, { servers: { own } });
  const order = (verb) => exchange(`${server.origin}/api/servers/own/${verb}`, { body: '{}' });
  const before = await new HttpClient(server.url).connect();
  await before.waitFor('own__pid');
  const pid = await before.text('own__pid');
  assert.equal((await order('stop')).status, 202);
  const while1 = await new HttpClient(server.url).connect();
  const while2 = await new HttpClient(server.url).connect();
  rewrite(server, { servers: { own, more: fake('--name', 'more') } });
  await reload(server);
  assert.match(JSON.stringify(await while1.call('own__pid')), /stopped by its operator/);
  assert.equal((await order('start')).status, 202);
  assert.equal(await before.text('own__pid'), pid);
  const [one, two] = [await while1.text('own__pid'), await while2.text('own__pid')];
  assert.equal(new Set([pid, one, two, `${(await pids(server)).own}`]).size, 4);
});

test('a secret with another value replaces its server', async (t) => {
  const secrets = fs.mkdtempSync(path.join(process.env.XDG_RUNTIME_DIR, 'secrets-'));
  fs.writeFileSync(path.join(secrets, 'WORD'), 'first');
  const config = { secrets: { directory: secrets }, servers: { a: fake('--name', '${WORD}'), b: fake('--name', 'b') } };
  const server = await serve(t, config);
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo', 'b__echo');
  assert.deepEqual((await reload(server)).kept, ['a', 'b']);
  fs.writeFileSync(path.join(secrets, 'WORD'), 'second');
  const report = await reload(server);
  assert.deepEqual([report.kept, report.replaced], [['b'], ['a']]);
});

// Health was computed from the file as it was at the start: a server that a reload had removed was "left out, a secret
// is missing" for ever after, and one that a reload had added without its secret was not reported.
test('what is missing is reckoned from the file that holds now', async (t) => {
  const lacking = { ...fake('--name', 'b'), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } };
  const server = await serve(t, { servers: { a: fake('--name', 'a'), gone: fake('--name', 'gone') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo', 'gone__echo');
  const ready = async () => {
    const { status, reasons } = JSON.parse((await exchange(`${server.origin}/readyz`, { method: 'GET' })).text);
    return [status, ...reasons.map((r) => `${r.server} ${r.state}`)];
  };
  rewrite(server, { servers: { a: fake('--name', 'a') } });
  assert.equal((await reload(server)).status, 200);
  assert.deepEqual(await ready(), ['ok']);
  rewrite(server, { servers: { a: fake('--name', 'a'), b: lacking } });
  assert.equal((await reload(server)).status, 200);
  assert.deepEqual(await ready(), ['degraded', 'b left out']);
});

// A file with errors changed nothing, and only the log said so: `status` reported that all was well.
test('a configuration that is not taken is told by status with all its errors, until one is', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const look = async () => JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text).config_errors;
  assert.deepEqual(await look(), []);
  fs.writeFileSync(server.config, '{"listen": "127.0.0.1:0",\n "servers": {\n "a": {"comand": "x"},\n "b": {"command": 3, "timeout": "soon"}}}\n');
  const errors = await until('it is read', async () => { const now = await look(); return now.length && now; });
  assert.deepEqual(errors.map((e) => [e.level, e.line, e.key]), [
    ['error', 3, 'servers.a'], ['error', 3, 'servers.a.comand'], ['error', 4, 'servers.b.command'], ['error', 4, 'servers.b.timeout'],
  ]);
  const { code, stdout } = await rialto(['status', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
  assert.equal(code, 0, 'all goes on as it was');
  assert.match(stdout, /not taken; all goes on as it was:\n( +\S+:[34]:\d+: servers\.\S+: .+\n){4}/);
  rewrite(server, { servers: { a: fake('--name', 'a') } });
  await until('it is taken', async () => (await look()).length === 0);
});

test('without a file there is nothing to read anew, and the answer says what to do', async (t) => {
  const server = await serve(t, null);
  const { status, error, hint } = await reload(server);
  assert.equal(status, 409);
  assert.match(error, /no configuration file/);
  assert.match(hint, /-c FILE/);
});

// Editors and scripts that truncate the file before they write it again removed all servers for a moment: an empty
// file is valid YAML, a configuration without servers.
test('a file that is empty for a moment changes nothing', async (t) => {
  const file = path.join(tempDir(), 'rialto.yaml');
  const write = (...names) => fs.writeFileSync(file, JSON.stringify({
    listen: '127.0.0.1:0', servers: Object.fromEntries(names.map((n) => [n, fake('--name', n)])),
  }));
  write('a');
  const server = await serve(t, {}, { args: ['-c', file] });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const before = await pids(server);
  fs.writeFileSync(file, '\n');
  await logged(server, /rialto\.yaml is empty/);
  const { status, error, hint } = await reload(server);
  assert.equal(status, 409);
  assert.match(`${error} ${hint}`, /is empty.*servers: \{\}/);
  assert.deepEqual(await pids(server), before);
  write('a', 'b');
  await client.waitFor('a__echo', 'b__echo');
  assert.equal((await pids(server)).a, before.a);
});

// Each event in the folder delayed the reading by another half second: beside a program that writes there
// all the time, a change of the file was never noticed.
test('a file that changes in a folder where others write all the time', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const busy = setInterval(() => fs.writeFileSync(path.join(path.dirname(server.config), 'busy'), String(Math.random())), 50);
  t.after(() => clearInterval(busy));
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  rewrite(server, { servers: { a: fake('--name', 'a'), b: fake('--name', 'b') } });
  await client.waitFor('b__echo');
});

// The last token was commented out, and `tokens:` without a value counted as not given: from the reload on,
// everybody on the machine was let in, while the file looked as if nobody was.
test('the last token taken out of the list lets nobody in', async (t) => {
  const server = await serve(t, { servers: {}, auth: { tokens: [tokenEntry('me', 'a-token-of-mine')] } });
  const status = async (token) => (await exchange(`${server.origin}/status`, { method: 'GET', headers: token ? { Authorization: `Bearer ${token}` } : {} })).status;
  assert.deepEqual([await status(), await status('a-token-of-mine')], [401, 200]);
  rewrite(server, { servers: {}, auth: { tokens: null } });
  await until('the token is refused', async () => await status('a-token-of-mine') === 401);
  assert.equal(await status(), 401);
  rewrite(server, { servers: {} });
  await until('nobody is asked', async () => await status() === 200);
});
