// A daemonised helper of a server (its own session, no parent, none of our descriptors) outlived the
// server, and the daemon. It has to end with its server; the helper of another server stays.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {
  exchange, expectGone, fake, fakeBin, HttpClient, isAlive, rialtoBin, root, runCommand, sanitizerEnv, serve,
  serveAndConnect, start, stdio, tempDir, until, writeConfig,
} from './lib.mjs';

// A server with a daemonised helper; the helper's pid is in the file.
function daemonising(name) {
  const file = path.join(tempDir(), 'pid');
  const helper = `setsid sh -c 'sleep 1000 <&- >&- 2>&- & echo $! >${file}'`;
  return {
    entry: { command: 'sh', args: ['-c', `(env -i PATH="$PATH" ${helper}); exec ${fakeBin} --name ${name}`] },
    helper: () => ({ pid: Number(fs.readFileSync(file, 'utf8')) }),
  };
}

async function two(t) {
  const [first, second] = [daemonising('first'), daemonising('second')];
  const config = { servers: { first: first.entry, second: second.entry } };
  const up = ['first__echo', 'second__echo'];
  const { server } = await serveAndConnect(t, config, up);
  const helpers = { first: first.helper(), second: second.helper() };
  t.after(() => Object.values(helpers).filter(isAlive).forEach(({ pid }) => process.kill(pid, 'SIGKILL')));
  assert.ok(isAlive(helpers.first) && isAlive(helpers.second));
  return { server, config, helpers };
}

const pidOf = async (server, name) =>
  JSON.parse((await exchange(`${server.origin}/api/servers`, { method: 'GET' })).text)
    .find((s) => s.name === name).pid;

test('a helper goes when its server is removed; a neighbour\'s stays', async (t) => {
  const { server, config, helpers } = await two(t);
  writeConfig(server.dir, { listen: '127.0.0.1:0', servers: { second: config.servers.second } });
  const answer = await exchange(`${server.origin}/api/reload`, { body: '{}' });
  assert.equal(answer.status, 200, answer.text);
  await expectGone([helpers.first], 2000);
  assert.ok(isAlive(helpers.second));
});

test('a helper goes when its server is killed; a neighbour\'s stays', async (t) => {
  const { server, helpers } = await two(t);
  process.kill(await pidOf(server, 'first'), 'SIGKILL');
  await expectGone([helpers.first], 2000);
  assert.ok(isAlive(helpers.second));
});

test('no helper outlives the daemon', async (t) => {
  const { server, helpers } = await two(t);
  await server.stop('SIGTERM');
  await expectGone(Object.values(helpers), 50);
});

test('no helper outlives rialto stdio', async (t) => {
  const server = daemonising('first');
  const client = await stdio(t, { servers: { first: server.entry } }, ['first__echo']);
  const helper = server.helper();
  assert.ok(isAlive(helper));
  await client.stop();
  await expectGone([helper], 50);
});

// --- the same with control groups, where there are some ---

// A delegated group, as systemd makes one with Delegate=yes. Making it takes root and a cgroup2 file
// system; elsewhere (null) the daemon has no groups either, and the tests must pass without.
function delegatedGroup(t) {
  const mount = /^(?:\S+ ){4}(\S+) .* - cgroup2 /m.exec(fs.readFileSync('/proc/self/mountinfo', 'utf8'))?.[1];
  try {
    const folder = fs.mkdtempSync(path.join(mount, 'test-rialto-'));
    t.after(() => [...groupsBelow(folder).map((name) => path.join(folder, name)), folder].forEach((f) => fs.rmdirSync(f)));
    execFileSync('python3', ['-c', 'import os, sys; os.setxattr(sys.argv[1], "trusted.delegate", b"1")', folder]);
    return folder;
  } catch {
    return null;
  }
}

const inGroup = (folder) => ['sh', '-c', `echo $$ >${folder}/cgroup.procs && exec "$0" "$@"`, rialtoBin];
const groupsBelow = (folder) => fs.readdirSync(folder).filter((name) => name.startsWith('rialto-'));

// A server's processes have a mark (a resource limit). A helper that copied another server's mark
// stayed until that server ended. It cannot leave the control group of its own server.
test('a helper that bears a neighbour\'s mark goes with its own server', async (t) => {
  const folder = delegatedGroup(t);
  const disguise = 'while ! locks=$(awk "/^Max file locks/ {print \\$5}" /proc/$(cat "$1")/limits); do sleep 0.01; done; '
    + 'ulimit -x $locks; exec sleep 1000 <&- >&- 2>&-';
  const [neighbour, pid] = [path.join(tempDir(), 'neighbour'), path.join(tempDir(), 'pid')];
  const servers = {
    second: { command: 'sh', args: ['-c', `echo $$ >${neighbour}; exec ${fakeBin} --name second`] },
    first: { command: 'sh', args: ['-c', `while ! [ -s ${neighbour} ]; do sleep 0.01; done; `
      + `(setsid bash -c '${disguise}' disguise ${neighbour} & echo $! >${pid}); exec ${fakeBin} --name first`] },
  };
  const { server } = await serveAndConnect(t, { servers }, ['first__echo', 'second__echo'],
    folder ? { bin: inGroup(folder) } : {});
  const helper = { pid: Number(fs.readFileSync(pid, 'utf8')) };
  t.after(() => isAlive(helper) && process.kill(helper.pid, 'SIGKILL'));
  assert.ok(isAlive(helper));
  assert.equal(groupsBelow(folder ?? '/proc').length, folder ? 2 : 0);
  process.kill(await pidOf(server, 'first'), 'SIGKILL');
  if (folder)
    await expectGone([helper], 2000);
  await server.stop();
  await expectGone([helper], 50);
  assert.deepEqual(groupsBelow(folder ?? '/proc'), []);
});

// When the daemon itself was killed, nothing ended the helpers of its servers: the next daemon does.
test('what a killed daemon left behind is ended by the next', async (t) => {
  const folder = delegatedGroup(t);
  const options = folder ? { bin: inGroup(folder) } : {};
  const { entry, helper } = daemonising('one');
  const [program, ...args] = options.bin ?? [rialtoBin];
  const killed = start(program, [...args, 'stdio', '--alone', '-c', writeConfig(tempDir(), { servers: { one: entry } })],
    { env: { ...process.env, ...sanitizerEnv } });
  const left = await until('the helper', () => { try { return helper().pid && helper(); } catch { return false; } });
  t.after(() => isAlive(left) && process.kill(left.pid, 'SIGKILL'));
  killed.kill('SIGKILL');
  await new Promise((resolve) => { killed.on('exit', resolve); });
  assert.ok(isAlive(left));
  const { server } = await serveAndConnect(t, { servers: { two: fake('--name', 'two') } }, ['two__echo'], options);
  if (folder)
    await expectGone([left], 2000);
  await server.stop();
  // The empty group of the killed daemon stays until another child is started.
  assert.ok(groupsBelow(folder ?? '/proc').every((name) => name.startsWith(`rialto-${killed.pid}-`)));
});

// --- what a server may become, and what it may see of us ---

const file = (pid, name) => fs.readFileSync(`/proc/${pid}/${name}`, 'utf8');
const coreOf = (pid) => /^Max core file size +(\S+) +(\S+)/m.exec(file(pid, 'limits')).slice(1);

// A set-user-id program that a server started gave it the rights of another user.
test('servers gain no rights by set-user-id programs', async (t) => {
  const { server } = await serveAndConnect(t, { servers: { one: fake('--name', 'one') } }, ['one__echo']);
  assert.match(file(await pidOf(server, 'one'), 'status'), /^NoNewPrivs:\t1$/m);
  assert.match(file(server.pid, 'status'), /^NoNewPrivs:\t0$/m);
});

// The secrets of every server are in the daemon's memory: a core dump wrote them to a file.
test('the daemon leaves no core dump; its servers may, as before', async (t) => {
  // Sanitizers set the core limit, too: switched off here, and the server is a program without them.
  const one = { command: process.execPath, args: [path.join(root, 'tests/fixture/intruder.mjs')] };
  const { server } = await serveAndConnect(t, { servers: { one } }, ['one__try'], {
    bin: ['sh', '-c', 'ulimit -c 4096; exec "$0" "$@"', rialtoBin],
    env: { ASAN_OPTIONS: `${sanitizerEnv.ASAN_OPTIONS}:disable_coredump=0` },
  });
  const [soft, hard] = coreOf(server.pid);
  assert.equal(soft, '0');
  assert.notEqual(hard, '0');
  assert.deepEqual(coreOf(await pidOf(server, 'one')), [hard, hard]);
});

// Any program of the same user, the servers too, could read the daemon's secrets from /proc.
test('other programs of the user cannot look into the daemon', async (t) => {
  const dir = tempDir();
  fs.chmodSync(dir, 0o777);
  const config = writeConfig(dir, { servers: { one: fake('--name', 'one') } });
  // Root may read everything: as root, the daemon is started as another user, and that user looks.
  const as = process.getuid() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : ['env'];
  const server = await serve(t, null,
    { bin: [...as, rialtoBin], args: ['-c', config], env: { XDG_RUNTIME_DIR: dir } });
  await (await new HttpClient(server.url).connect()).waitFor('one__echo');
  const look = (pid) => runCommand(as[0], [...as.slice(1), 'sh', '-c',
    `cat /proc/${pid}/environ >/dev/null && head -c 0 /proc/${pid}/mem`]);
  assert.equal((await look(await pidOf(server, 'one'))).code, 0); // or this tests nothing
  const { code, stderr } = await look(server.pid);
  assert.notEqual(code, 0);
  assert.match(stderr, /Permission denied/);
  // The daemon can still read its own entries in /proc.
  const metrics = (await exchange(`${server.origin}/metrics`, { method: 'GET' })).text;
  assert.ok(Number(/^process_open_fds (\d+)/m.exec(metrics)[1]) > 3, metrics);
});
