// A server is a program of the user's and may open the user's sockets: one that knew the path of the
// control socket could stop other servers, approve its own calls and read everybody's; on the
// embedded bus it could speak as an agent. Both refuse every process that the daemon started,
// directly or not: the server, its child, a daemonised process without a parent.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import {
  exchange, fake, HttpClient, logged, rialto, rialtoBin, root, sanitizerEnv, serve, serveAndConnect, start, tempDir, until,
} from './lib.mjs';

const intruder = { command: process.execPath, args: [path.join(root, 'tests/fixture/intruder.mjs')] };
const ways = ['itself', 'child', 'orphan'];

const post = (what) => `POST ${what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`
  + 'Content-Length: 2\r\nConnection: close\r\n\r\n{}';

const states = async (server) => Object.fromEntries(
  JSON.parse((await exchange(`${server.origin}/api/servers`, { method: 'GET' })).text)
    .map((s) => [s.name, s.state]));

/** The control socket is named after the configuration file. */
function controlSocket(server) {
  const folder = path.join(server.dir, 'rialto');
  return path.join(folder, fs.readdirSync(folder).find((name) => /^control.*\.sock$/.test(name)));
}

// The control socket, and the loopback address, which has the same paths.
const doors = {
  'the control socket': controlSocket,
  'the loopback address': (server) => Number(new URL(server.origin).port),
};

for (const by of ways) {
  for (const [name, doorOf] of Object.entries(doors)) {
    test(`${name} refuses a server (${by})`, async (t) => {
      const { server, client } = await serveAndConnect(t, {
        servers: { victim: fake('--name', 'victim'), intruder },
      }, ['victim__echo', 'intruder__try']);
      const socket = doorOf(server);
      for (const what of ['/api/servers/victim/stop', '/api/approvals/1', '/api/reload']) {
        const heard = await client.text('intruder__try', { by, socket, text: post(what) });
        // The parent of an orphan is the daemon (a subreaper), not process 1.
        if (by === 'orphan') assert.match(heard, new RegExp(`^${server.pid}\n`));
        assert.match(heard, /HTTP\/1.1 403 /, heard);
        assert.match(heard, /"error":"not for the servers that this Rialto runs","hint":/);
      }
      await logged(server, /refused a request from \S+: it is of one of the servers that run here/);
      assert.equal((await states(server)).victim, 'up');

      // Meanwhile the operator gets through, and so do MCP requests, whoever sends them.
      const env = { XDG_RUNTIME_DIR: server.dir };
      for (const command of ['status', 'reload']) {
        const done = await rialto([command, '-c', server.config], { env });
        assert.equal(done.code, 0, done.stderr);
      }
      const reload = await exchange(`${server.origin}/api/reload`, { body: '{}' });
      assert.equal(reload.status, 200, reload.text);
      const mcp = await client.text('intruder__try', { by, socket, text: post('/mcp') });
      assert.doesNotMatch(mcp, /403/);
    });
  }

  test(`the embedded bus refuses a server (${by})`, async (t) => {
    const { server, client } = await serveAndConnect(t, {
      servers: { intruder }, bus: { url: 'embedded:' },
    }, ['intruder__try']);
    const socket = path.join(server.dir, 'rialto/bus.sock');
    const text = '{"op":"sub","sid":1,"topic":"#"}\n{"op":"ping"}\n';
    const heard = await client.text('intruder__try', { by, socket, text });
    assert.match(heard, /\{"op":"bye","reason":"not for the servers that its host runs"\}/, heard);
    assert.doesNotMatch(heard, /pong|"ok"/);
    await logged(server, /one of the servers that run here wanted to join: refused/);
    const env = { XDG_RUNTIME_DIR: server.dir };
    const sent = await rialto(['bus', 'pub', 't', '{}', '-c', server.config], { env });
    assert.equal(sent.code, 0, sent.stderr);
  });
}

// With tokens configured, the control socket needs none, except from a server of ours.
test('a server gets no further by the socket than by the network', async (t) => {
  const hash = crypto.createHash('sha256').update('test-token').digest('hex');
  const server = await serve(t, {
    servers: { intruder }, auth: { tokens: [{ name: 'agent', hash: `sha256:${hash}` }] },
  });
  const client = await new HttpClient(server.url, { token: 'test-token' }).connect();
  await client.waitFor('intruder__try');
  const socket = controlSocket(server);
  for (const by of ways) {
    const heard = await client.text('intruder__try', { by, socket, text: post('/mcp') });
    assert.match(heard, /HTTP\/1.1 401 /, heard);
  }
});

// A shim gives the daemon the host's values of the variables that the daemon asks for. Every user can make a folder in
// /tmp that has another user's name, and listen there.
const impostor = `
import os, socket, sys
folder, owner = sys.argv[1], int(sys.argv[2])
os.umask(0)
os.makedirs(folder, 0o755)
s = socket.socket(socket.AF_UNIX); s.bind(folder + '/control.sock')
if owner: os.chown(folder, owner, owner)
os.setuid(4343)
s.listen()
print('listens', flush=True)
while True:
    c, _ = s.accept()
    asked = c.recv(4096)
    if not asked: continue
    print('GOT', asked, flush=True)
    c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: rialto-shim\\r\\nRialto-Variables: KEY\\r\\n\\r\\n')
    print('GOT', c.recv(4096), flush=True)`;

const user = 54321; // has no folder in /tmp
for (const [where, owner] of [['a folder of another user', 0], ['the own folder', user]]) {
  test(`a shim does not attach to a daemon of another user in ${where}`, { skip: process.getuid() !== 0 && 'another user can be only as root' }, async (t) => {
    const home = tempDir();
    const runtime = path.join(home, 'run'), folder = owner ? path.join(runtime, 'rialto') : `/tmp/rialto-${user}`;
    fs.mkdirSync(path.join(home, '.config/rialto'), { recursive: true });
    fs.mkdirSync(runtime);
    fs.writeFileSync(path.join(home, '.config/rialto/rialto.yaml'), '{"autostart": false, "servers": {}}');
    for (const f of [home, ...fs.readdirSync(home, { recursive: true }).map((name) => path.join(home, name))]) fs.chownSync(f, user, user);
    t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
    const other = start('python3', ['-c', impostor, folder, `${owner}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => other.kill());
    let said = '';
    other.stdout.on('data', (d) => { said += d; });
    await until('the other daemon', () => said.includes('listens'));
    const { code, stderr } = await new Promise((resolve) => {
      const host = start(rialtoBin, ['stdio'], { uid: user, gid: user, cwd: home, stdio: ['pipe', 'ignore', 'pipe'],
        env: { ...sanitizerEnv, PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: runtime, KEY: 'planted-secret-0123456789' } });
      let text = '';
      host.stderr.on('data', (d) => { text += d; });
      host.on('close', (status) => resolve({ code: status, stderr: text }));
      host.stdin.on('error', () => {});
      host.stdin.end('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}\n');
    });
    assert.doesNotMatch(said, /GOT/, said);
    assert.equal(code, 1, stderr);
    assert.match(stderr, owner ? /is another user's/ : /no daemon runs/);
  });
}

// Any process may lower the limits of another one of its user, also the one by which the daemon
// knows who descends from its servers: an orphan was then taken for the operator. The program that
// an upgrade puts in the daemon's place must not read the lowered limit as its own, either.
test('a server that lowers the limits of the daemon is known, also after an upgrade', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { intruder } }, ['intruder__try']);
  const env = { XDG_RUNTIME_DIR: server.dir, XDG_STATE_HOME: path.join(server.dir, 'state') };
  const attempt = () => client.text('intruder__try', { by: 'disguised', socket: controlSocket(server), text: post('/api/reload') });
  const first = await attempt();
  assert.match(fs.readFileSync(`/proc/${server.pid}/limits`, 'utf8'), /^Max file locks +1 +1 /m);
  assert.match(first, /HTTP\/1.1 403 /, first);
  const { code, stderr } = await rialto(['upgrade', '-c', server.config], { env, timeout: 90_000 });
  assert.equal(code, 0, stderr);
  await client.waitFor('intruder__try');
  const second = await attempt();
  assert.match(second, /HTTP\/1.1 403 /, second);
});
