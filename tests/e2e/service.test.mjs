// The daemon under a service manager, as systemd runs it: sockets that are passed to it, the messages READY
// and STOPPING, the watchdog; and `rialto status --alive`, which health checks use.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from './brokers.mjs';
import {
  descendants, expectClean, expectGone, fake, rialto, rialtoBin, root, sanitizerEnv, serve, start, tempDir,
  until, within, writeConfig,
} from './lib.mjs';

/** `rialto serve` under the fixture's service manager: {events, told(), stderr(), stop()}. */
function manage(t, config, sockets, { watchdog = '0', env = {} } = {}) {
  const dir = tempDir();
  const file = writeConfig(dir, config);
  const child = start('python3', [path.join(root, 'tests/fixture/service_manager.py'), watchdog, ...sockets.map(String), '--',
    rialtoBin, 'serve', '-c', file], {
    cwd: dir, stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...sanitizerEnv, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: dir, ...env },
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (d) => { out += d; });
  child.stderr.on('data', (d) => { err += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const events = () => out.split('\n').filter((l) => l.startsWith('{')).flatMap((l) => {
    try { return [JSON.parse(l)]; } catch { return []; }
  });
  let stopping;
  const stop = () => {
    stopping ??= (async () => {
      const family = descendants(child.pid);
      child.kill('SIGTERM');
      await within(15_000, 'the end', ended);
      expectClean(err);
      await expectGone(family);
    })();
    return stopping;
  };
  t.after(stop);
  return { dir, events, told: () => events().flatMap((e) => e.told ?? []), stderr: () => err, ended, stop };
}

const ask = (options) => new Promise((resolve, reject) => {
  http.get({ path: '/healthz', ...options }, (answer) => {
    let text = '';
    answer.on('data', (d) => { text += d; });
    answer.on('end', () => resolve(text));
  }).on('error', reject);
});

test('sockets that were handed over are used: TCP, Unix, and the control socket', async (t) => {
  const port = await freePort();
  const dir = tempDir();
  const one = path.join(dir, 'one.sock');
  const control = path.join(dir, 'control.sock');
  const manager = manage(t, {
    listen: [`127.0.0.1:${port}`, `unix:${one}`], control: `unix:${control}`, servers: { one: fake() },
  }, [port, one, control]);
  await until('READY', () => manager.told().includes('READY=1'));
  // The addresses are in use by the manager: opening them again would have failed.
  assert.match(await ask({ host: '127.0.0.1', port }), /ok/);
  assert.match(await ask({ socketPath: one }), /ok/);
  const { code, stdout } = await rialto(['status', '--alive'], { env: { RIALTO_CONTROL: `unix:${control}` }, cwd: dir });
  assert.equal(`${code} ${stdout}`, '0 alive\n');
  await manager.stop();
  assert.deepEqual(manager.told(), ['READY=1', 'STOPPING=1']);
  assert.equal(manager.events().at(-1).ended, 0);
  assert.doesNotMatch(manager.stderr(), /no control socket|cannot/);
  assert.ok(fs.existsSync(one), 'the file belongs to the manager');
});

test('a socket that no address of the configuration names is an error that says so', async (t) => {
  const [port, other] = [await freePort(), await freePort()];
  const manager = manage(t, { listen: `127.0.0.1:${port}`, servers: {} }, [port, other]);
  await within(20_000, 'the end', manager.ended);
  assert.equal(manager.events().at(-1).ended, 1);
  assert.match(manager.stderr(), new RegExp(`handed over a socket on 127\\.0\\.0\\.1:${other}`));
  assert.match(manager.stderr(), /`listen`/);
  assert.ok(!manager.told().includes('READY=1'));
});

test('signs of life come at twice the pace that is asked for', async (t) => {
  const manager = manage(t, {
    listen: '127.0.0.1:0', servers: { one: fake() },
  }, [], { watchdog: '200000' });
  await until('signs of life', () => manager.told().filter((w) => w === 'WATCHDOG=1').length >= 5);
  assert.equal(manager.told()[0], 'READY=1');
  await manager.stop();
});

test('status --alive: 0 while the daemon answers, whatever its servers do; 1 without one', async (t) => {
  const server = await serve(t, { servers: { broken: { command: '/does/not/exist' } } });
  const env = { XDG_RUNTIME_DIR: server.dir };
  const asked = (...args) => rialto(['status', ...args], { env, cwd: server.dir });
  await until('a server that is down', async () => (await asked()).code === 1);
  assert.deepEqual(await asked('--alive'), { code: 0, stdout: 'alive\n', stderr: '' });
  assert.deepEqual(JSON.parse((await asked('--alive', '--json')).stdout), { alive: true });
  await server.stop();
  const gone = await asked('--alive');
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /no daemon is running/);
});

test('status --alive gives up on a daemon that does not answer', async (t) => {
  const dir = tempDir();
  const socket = path.join(dir, 'stuck.sock');
  const stuck = net.createServer(() => {}).listen(socket);
  t.after(() => stuck.close());
  await new Promise((resolve) => { stuck.on('listening', resolve); });
  const { code, stderr } = await rialto(['status', '--alive'], { env: { RIALTO_CONTROL: `unix:${socket}` }, cwd: dir });
  assert.equal(code, 1);
  assert.match(stderr, /no answer within 5 s/);
});
