// Ten editors used to start ten sets of servers: every `rialto stdio` was a bridge of its own. Now each is
// a shim to the one daemon of its configuration file, which the first of them starts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import {
  descendants, expectClean, fake, isAlive, load, rialto, rialtoBin, runCommand, serve, sleep, StdioClient, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { counting, home } from './daemon_lib.mjs';

const pid = async (c, tool = 'one__whoami') => (await c.request('tools/call', { name: tool, arguments: {} })).result.structuredContent.pid;
const one = { servers: { one: fake('--name', 'one') } };

test('hosts share one daemon and one set of servers, and leave nothing behind', async (t) => {
  const h = home(t, one);
  const first = await h.host().connect();
  assert.match(first.stderr, /starting one; log: \S+\/control-[0-9a-f]{16}\.sock\.log/);
  const hosts = [first, await h.host().connect(), await h.host().connect()];
  const pids = new Set(await Promise.all(hosts.map((c) => pid(c))));
  assert.equal(pids.size, 1, 'the same server serves all');
  const [daemon] = await h.daemons();
  assert.equal(daemon.shims, 3);
  assert.equal(daemon.config, fs.realpathSync(h.file));
  assert.match(daemon.log, /\.sock\.log$/);
  assert.deepEqual(descendants(hosts[1].child.pid), [], 'a shim starts nothing that is its child');
  assert.equal(fs.statSync(daemon.log).mode & 0o777, 0o600);
  await Promise.all(hosts.map((c) => c.stop()));
  await until('no shim', async () => (await h.daemons())[0].shims === 0);
});

// The daemon outlives the host. What the host had open by accident (a socket, a file of its own) stayed open with it:
// a port that was still taken, or a disk that could not be unmounted.
test('the daemon keeps nothing open that the host had', async (t) => {
  const h = home(t, one);
  const held = path.join(h.dir, 'held');
  const fd = fs.openSync(held, 'w');
  const c = await h.host([], { stdio: ['pipe', 'pipe', 'pipe', fd] }).connect();
  fs.closeSync(fd);
  const [daemon] = await h.daemons();
  const open = (pid) => fs.readdirSync(`/proc/${pid}/fd`).map((n) => { try { return fs.readlinkSync(`/proc/${pid}/fd/${n}`); } catch { return ''; } });
  assert.ok(open(c.child.pid).includes(held), 'the shim has it from the host');
  assert.ok(!open(daemon.pid).includes(held), 'and the daemon does not');
});

test('twenty shims at the same instant start one daemon', async (t) => {
  const h = home(t, one);
  fs.mkdirSync(path.join(h.runtime, 'rialto'), { recursive: true, mode: 0o700 });
  // A socket file that an earlier daemon has left behind must not disturb.
  const [, socket] = (await h.host(['--wait', '0']).connect().then(() => h.daemons()))[0].log.match(/([^/]+)\.log$/);
  await h.kill('SIGKILL');
  assert.ok(fs.existsSync(path.join(h.runtime, 'rialto', socket)), 'a stale socket');
  const hosts = await Promise.all(Array.from({ length: 20 }, () => h.host().connect()));
  assert.equal(new Set(await Promise.all(hosts.map((c) => pid(c)))).size, 1);
  assert.equal((await h.daemons()).length, 1);
  assert.equal(hosts.filter((c) => /starting one/.test(c.stderr)).length <= 1, true);
});

test('each configuration file has a daemon of its own; status shows them all, -c one', async (t) => {
  const h = home(t, one);
  const other = writeConfig(tempDir(), { listen: '127.0.0.1:0', servers: { two: fake('--name', 'two') } });
  const link = path.join(h.dir, 'link.json');
  fs.symlinkSync(other, link);
  const a = await h.host().connect();
  const b = await h.host(['-c', other]).connect();
  const c = await h.host(['-c', link]).connect();
  assert.deepEqual((await a.waitFor('one__whoami')).filter((n) => /two/.test(n)), []);
  assert.equal(await pid(b, 'two__whoami'), await pid(c, 'two__whoami'), 'the real path counts');
  const files = (await h.daemons()).map((d) => d.config).sort();
  assert.deepEqual(files, [fs.realpathSync(h.file), fs.realpathSync(other)].sort());
  const text = (await rialto(['status'], { env: h.env, cwd: h.dir })).stdout;
  for (const file of files) assert.ok(text.includes(file), text);
  const single = await rialto(['status', '-c', other, '--json'], { env: h.env });
  assert.equal(JSON.parse(single.stdout).config, fs.realpathSync(other));
});

test('the user\'s own file has control.sock; the working folder is never looked into', async (t) => {
  const h = home(t, one);
  const config = path.join(h.dir, 'config/rialto');
  fs.mkdirSync(config, { recursive: true });
  fs.copyFileSync(h.file, path.join(config, 'rialto.json'));
  fs.writeFileSync(path.join(config, 'rialto.yaml'), fs.readFileSync(h.file));
  const cloned = tempDir();
  writeConfig(cloned, { servers: { evil: fake('--name', 'evil') } });
  const c = await h.host([], { cwd: cloned, config: false, env: { XDG_CONFIG_HOME: path.join(h.dir, 'config') } }).connect();
  assert.deepEqual((await c.waitFor('one__whoami')).filter((n) => /evil/.test(n)), []);
  assert.ok(fs.existsSync(path.join(h.runtime, 'rialto/control.sock')));
});

test('autostart: false starts none; --alone needs none; a broken file is told with its errors', async (t) => {
  const h = home(t, { ...one, autostart: false });
  const refused = await rialto(['stdio', '-c', h.file], { env: h.env });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /no daemon runs .*autostart: false/);
  const alone = await new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', h.file], { env: h.env }).connect();
  assert.ok(isAlive({ pid: await pid(alone) }));
  assert.deepEqual(descendants(alone.child.pid).length, 1);
  const server = await h.serve();
  const joined = await h.host().connect();
  assert.equal(await pid(joined), (await h.daemons())[0].servers[0].pid);
  await joined.stop();
  await server.stop();
  fs.writeFileSync(h.file, '{"servers": {"one": {"comand": "x"}}}');
  const broken = await rialto(['stdio', '-c', h.file], { env: h.env });
  assert.equal(broken.code, 2);
  assert.match(broken.stderr, /command/);
});

test('a daemon that a shim started ends when nobody uses it; an attached shim is use', async (t) => {
  const h = home(t, { ...one, autostart: { idle: '1s' } });
  const c = await h.host().connect();
  const { pid: daemon } = (await h.daemons())[0];
  const family = [{ pid: daemon }, ...descendants(daemon)];
  await sleep(2500);
  assert.equal((await h.daemons())[0].pid, daemon, 'a shim is attached');
  await c.stop();
  await until('its end', () => !family.some(isAlive), 10_000);
  assert.match(h.log(), /nobody has used this daemon/);
  expectClean(h.log());
});

test('an address that is taken is left alone, and log and status say so', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await new Promise((resolve) => taken.on('listening', resolve));
  const address = `127.0.0.1:${taken.address().port}`;
  const h = home(t, { ...one, listen: address });
  const c = await h.host().connect();
  assert.equal(typeof await pid(c), 'number');
  assert.deepEqual((await h.daemons())[0].taken, [address]);
  assert.match(h.log(), new RegExp(`${address} is taken`));
  assert.match((await rialto(['status', '-c', h.file], { env: h.env })).stdout, new RegExp(`Not served: ${address}`));
});

test('a read-only home and a missing runtime folder stop nobody', async (t) => {
  const h = home(t, one);
  const nowhere = path.join(h.dir, 'nowhere');
  const env = { ...h.env, XDG_RUNTIME_DIR: nowhere, XDG_STATE_HOME: '/proc/none', HOME: '/proc/none', TMPDIR: h.dir };
  const c = await new StdioClient(t, rialtoBin, ['stdio', '-c', h.file], { env }).connect();
  assert.match(c.stderr, /without a log/);
  assert.equal(typeof await pid(c), 'number');
  await c.stop(20_000); // otherwise it would start another daemon
  await h.kill('SIGTERM', env, 15_000);
});

for (const signal of ['SIGKILL', 'SIGTERM']) {
  test(`after ${signal} of the daemon the host notices nothing but list_changed; a call ends, once`, async (t) => {
    const log = path.join(tempDir(), 'calls');
    const h = home(t, { servers: { n: counting(log) } });
    const c = await h.host().connect();
    await c.waitFor('n__count');
    await c.request('logging/setLevel', { level: 'warning' });
    const lost = c.request('tools/call', { name: 'n__count', arguments: { ms: 60_000 } });
    await until('the call', () => fs.existsSync(log));
    await h.kill(signal, undefined, signal === 'SIGKILL' ? 5000 : 15_000);
    const { error } = await within(5000, 'its end', lost);
    assert.match(error.message, /daemon|Rialto/);
    assert.equal(error.data.reason, signal === 'SIGKILL' ? 'crashed' : 'shutdown');
    const second = await c.request('tools/call', { name: 'n__count', arguments: { ms: 0 } });
    assert.ok(second.result, JSON.stringify(second));
    await until('list_changed', () => c.messages().some((m) => m.method === 'notifications/tools/list_changed'));
    assert.equal(fs.readFileSync(log, 'utf8').trim().split('\n').length, 2, 'each call ran once');
    assert.deepEqual(c.messages().filter((m) => typeof m.id === 'string' && /rialto-shim/.test(m.id)), []);
    assert.ok((await c.waitFor('n__count')).length);
  });
}

test('subscriptions live on in the next daemon', async (t) => {
  const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
  const { ResourceUpdatedNotificationSchema } = load('@modelcontextprotocol/sdk/types.js');
  const log = path.join(tempDir(), 'calls');
  const h = home(t, { servers: { n: counting(log) } });
  const client = new Client({ name: 'host', version: '1' });
  const updates = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => updates.push(n.params.uri));
  await client.connect(new StdioClientTransport({ command: rialtoBin, args: ['stdio', '-c', h.file], env: { ...process.env, ...h.env }, stderr: 'ignore' }));
  t.after(() => client.close());
  await until('the server', async () => (await client.listTools()).tools.length);
  const { resources } = await client.listResources();
  await client.subscribeResource({ uri: resources[0].uri });
  await client.callTool({ name: 'n__count', arguments: { ms: 0 } });
  await until('an update', () => updates.length === 1);
  await h.kill('SIGKILL');
  await client.callTool({ name: 'n__count', arguments: { ms: 0 } });
  await until('another', () => updates.length >= 2);
  assert.equal(updates[1], resources[0].uri);
  await client.close(); // before the daemon ends, or its shim would start another
});

// `rialto stdio < file | ...`: what the pipe did not take at once was lost in the middle of a message, and a call of more
// than 1.5 s was ended, with the words that the daemon had.
test('when the input has ended, the answers still come, to a slow reader, too', async (t) => {
  const h = home(t, { servers: { f: fake() } });
  await (await h.host().connect()).waitFor('f__big');
  const input = [
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'pipe', version: '1' } } },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'f__big', arguments: { bytes: 400_000 } } },
    { id: 3, method: 'tools/call', params: { name: 'f__sleep', arguments: { ms: 2500 } } },
  ].map((m) => `${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`);
  const pipe = async (lines) => {
    const { stdout } = await runCommand('sh', ['-c', `'${rialtoBin}' stdio -c '${h.file}' | { sleep 1; cat; }`], { env: h.env, cwd: h.dir, input: lines.join('') });
    const answers = stdout.trim().split('\n').map((line) => JSON.parse(line)).filter((m) => m.id);
    return Object.fromEntries(answers.map((m) => [m.id, m.result?.content?.[0].text ?? m.error]));
  };
  assert.equal((await pipe(input.slice(0, 3)))[2].length, 400_000);
  assert.match((await pipe(input))[3], /slept/);
});

test('a view and a single server, by the shim', async (t) => {
  const h = home(t, { servers: { one: fake('--name', 'one'), two: fake('--name', 'two') }, views: { few: { servers: ['two'], deny: ['sleep'] } } });
  const few = await h.host(['--view', 'few']).connect();
  const names = await few.waitFor('two__echo');
  assert.ok(!names.some((n) => /^one__|sleep/.test(n)), `${names}`);
  const bare = await h.host(['--server', 'one']).connect();
  assert.ok((await bare.waitFor('echo')).includes('sleep'));
  for (const [args, why] of [[['--view', 'none'], /no such view/], [['--server', 'none'], /no such server/]]) {
    const { code, stderr } = await rialto(['stdio', '-c', h.file, ...args], { env: h.env });
    assert.equal(code, 1);
    assert.match(stderr, why);
  }
});

test('only the control socket attaches, and not the servers that run here', async (t) => {
  const server = await serve(t, one);
  const answer = await fetch(`${server.origin}/attach`);
  assert.equal(answer.status, 403);
});
