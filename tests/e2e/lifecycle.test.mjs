// Servers that die and come back, and a program that ends cleanly however it is stopped.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import {
  descendants, exchange, expectGone, fake, HttpClient, isAlive, logged, rialto, rialtoBin, sanitizerEnv, serve,
  serveAndConnect, sleep, start, stdio, tempDir, until, within, writeConfig,
} from './lib.mjs';

const twoServers = {
  servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') },
};
const bothUp = ['alpha__echo', 'beta__echo'];
const whoami = async (client, name) => (await client.call(`${name}__whoami`)).result.structuredContent;

test('kill -9 a server: its tools go, its calls end, and it comes back', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const changed = 'notifications/tools/list_changed';
  const stream = await client.listen();
  await stream.settle();
  const before = stream.count(changed);
  const { pid } = await whoami(client, 'alpha');
  const inFlight = [1, 2, 3].map(() => client.call('alpha__sleep', { ms: 60_000 }));
  const onOther = client.call('beta__sleep', { ms: 500 });
  await until('the calls to arrive', async () => (await whoami(client, 'alpha')).calls >= 5);

  const killed = Date.now();
  process.kill(pid, 'SIGKILL');
  for (const { error, result } of await within(1000, 'calls in flight', Promise.all(inFlight))) {
    assert.ok(error, JSON.stringify(result));
    assert.match(error.message, /alpha/);
  }
  assert.ok(Date.now() - killed < 1000);
  await stream.waitFor(changed, before + 1);
  assert.ok((await onOther).result, 'the other server\'s call is untouched');

  await stream.waitFor(changed, before + 2); // once for the crash, once for the new start
  await client.waitFor(...bothUp);
  assert.notEqual((await whoami(client, 'alpha')).pid, pid);
  stream.close();
});

test('a dead server is not listed while it is dead', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  // Crashing again and again makes the pause before the next start long enough to be seen.
  const gone = await until('a list without alpha', async () => {
    const names = await client.toolNames();
    if (!names.includes('alpha__echo')) return names;
    await client.call('alpha__crash');
    return null;
  });
  assert.ok(gone.includes('beta__echo') && !gone.some((n) => n.startsWith('alpha__')));
  const refused = await within(3000, 'a call to the dead', client.call('alpha__echo'));
  assert.ok(refused.error || refused.result, 'an error, or an answer if it came back just then');
  await client.waitFor('alpha__echo');
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`${signal} ends it in under a second when no call is open`, async (t) => {
    const { client, server } = await serveAndConnect(t, twoServers, bothUp);
    const stream = await client.listen();
    const family = descendants(server.pid);
    assert.ok(family.length >= 2);
    await server.stop(signal, 1000);
    await expectGone(family, 50);
    await until('the stream to end', () => stream.ended);
  });
}

test('SIGINT before the servers are up', async (t) => {
  const server = await serve(t, {
    servers: { slow: fake('--init-delay', 5000), never: fake('--silent') },
  });
  await server.stop('SIGINT', 1000);
});

test('its children die with it even when it is killed', async (t) => {
  const file = writeConfig(tempDir(), { listen: '127.0.0.1:0', ...twoServers });
  const child = start(rialtoBin, ['serve', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...sanitizerEnv },
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stderr.on('data', (d) => { text += d; });
  const [, origin] = await until('the listening line', () => text.match(/listening on (http:\S+?)\/?\s/));
  const client = await new HttpClient(`${origin}/mcp`).connect();
  await client.waitFor(...bothUp);
  const family = descendants(child.pid);
  assert.ok(family.length >= 2 && family.every(isAlive));
  child.kill('SIGKILL');
  await expectGone(family, 2000);
});

test('stdio: EOF ends it with its servers', async (t) => {
  const client = await stdio(t, twoServers, bothUp);
  const family = descendants(client.child.pid);
  assert.ok(family.length >= 2);
  await client.stop(1000);
});

test('stdio: a call in flight at EOF is still answered', async (t) => {
  const client = await stdio(t, twoServers, bothUp);
  client.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'alpha__sleep', arguments: { ms: 300 } } });
  await client.stop();
  assert.equal(client.messages().find((m) => m.id === 9).result.content[0].text, 'slept');
});

test('stdio: a call that takes too long does not keep it alive', async (t) => {
  const client = await stdio(t, twoServers, bothUp);
  client.send({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'alpha__sleep', arguments: { ms: 60_000 } } });
  await client.stop(8000);
});

test('an address in use: status 1, and the address in the message', async () => {
  const taken = net.createServer();
  await new Promise((resolve) => { taken.listen(0, '127.0.0.1', resolve); });
  const { port } = taken.address();
  const file = writeConfig(tempDir(), { listen: `127.0.0.1:${port}`, ...twoServers });
  const { code, stderr } = await rialto(['serve', '-c', file]);
  taken.close();
  assert.equal(code, 1, stderr);
  assert.ok(stderr.includes(`127.0.0.1:${port}`), stderr);
  assert.doesNotMatch(stderr, /Terminated/); // it said that a signal had ended it
});

test('a fresh session lists tools at once, from what is known', async (t) => {
  const { server } = await serveAndConnect(t, {
    servers: { quick: fake('--name', 'quick'), never: fake('--silent') },
  }, ['quick__echo']);
  const began = Date.now();
  const other = await new HttpClient(server.url).connect();
  assert.ok((await other.toolNames()).includes('quick__echo'));
  assert.ok(Date.now() - began < 1000);
});

test('the standard error of a server is in the log under its name', async (t) => {
  const { server } = await serveAndConnect(t, twoServers, bothUp);
  await until('its line', () => /alpha.*fake server alpha is up/.test(server.stderr()));
});

test('env, args and cwd reach the server; the rest of our environment does not', async (t) => {
  const cwd = tempDir();
  const { client } = await serveAndConnect(t, {
    servers: { alpha: { ...fake('--name', 'alpha'), env: { MY_SETTING: 'on = "yes"' }, cwd } },
  }, ['alpha__env'], { env: { SECRET_OF_THE_PARENT: 'x' } });
  assert.equal(await client.text('alpha__env', { name: 'MY_SETTING' }), 'on = "yes"');
  assert.equal(await client.text('alpha__env', { name: 'SECRET_OF_THE_PARENT' }), '(unset)');
  assert.equal(await client.text('alpha__env', { name: 'PATH' }), process.env.PATH);
  assert.equal((await whoami(client, 'alpha')).cwd, cwd);
});

// A process without free descriptors cannot accept connections. Clients disconnected without a word in the
// log, and a server that ended meanwhile could not be started again.
test('out of file descriptors: the log says so, servers are still started, and it passes', async (t) => {
  const server = await serve(t, { servers: { alpha: fake('--name', 'alpha') } }, {
    bin: ['/bin/sh', '-c', 'ulimit -n 96; exec "$0" "$@"', rialtoBin],
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('alpha__echo');
  const sockets = [];
  t.after(() => sockets.forEach((s) => s.destroy()));
  for (let i = 0; i < 128; i++) {
    const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
  }
  await logged(server, /cannot accept: .*open files.*ulimit -n/);

  // By the control socket, for which some descriptors are reserved as well.
  const status = async () => {
    const run = await rialto(['status', '-c', server.config, '--json'], {
      env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir,
    });
    return JSON.parse(run.stdout).servers[0];
  };
  const { pid } = await status();
  process.kill(pid, 'SIGKILL');
  await until('another process', async () => {
    const now = await status();
    return now.state === 'up' && now.pid !== pid;
  });
  sockets.forEach((s) => s.destroy());
  await until('new clients', async () => {
    try {
      return (await exchange(`${server.origin}/healthz`, { method: 'GET' })).status === 200;
    } catch {
      return false;
    }
  });
});

// Shells set 1024 open files as the soft limit: a daemon for ten thousand connections has to raise it.
test('the daemon takes as many open files as it may have', async (t) => {
  const server = await serve(t, { servers: {} }, {
    bin: ['/bin/sh', '-c', 'ulimit -S -n 256; exec "$0" "$@"', rialtoBin],
  });
  const [, soft, hard] = /^Max open files +(\d+) +(\d+)/m.exec(fs.readFileSync(`/proc/${server.pid}/limits`, 'utf8'));
  assert.equal(Number(soft), Math.min(Number(hard), 65536));
});
