// Servers in a sandbox: a server of ours tries to break out in every way we know, and the outcome
// must be what the table below says for the level and for what this kernel supports. The servers of
// other people must work in it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import {
  HttpClient, exchange, fakeBin, logged, npmFolder, npmServer, rialto, rialtoBin, runCommand, serve, tempDir, until,
  writeConfig,
} from './lib.mjs';

const escapeBin = path.join(path.dirname(fakeBin), 'escape');

// --- what this kernel offers, as `rialto sandbox` reports it ---

const kernel = await (async () => {
  const config = writeConfig(tempDir(), { servers: { a: { command: '/bin/true', sandbox: 'light' } } });
  const { stdout, code } = await rialto(['sandbox', 'a', '-c', config, '--json']);
  assert.equal(code, 0, stdout);
  return JSON.parse(stdout).kernel;
})();
const abi = kernel.landlock;
const from = (needed, refused) => (abi >= needed ? refused : 'open');

// Sandboxes are for ordinary users; where the tests run as root, both kinds are tried.
const nobody = 65534;
const users = process.getuid() === 0 ? [0, nobody] : [process.getuid()];

// --- the table: the outcome of each attempt at each level. Level "ports" is {network: [LISTED]},
// "all" is {network: all}. `open` where the level promises nothing.

const files = from(1, 'EACCES');
const table = {
  'read-secret': files, 'read-by-link': files, 'rename-outside': files, 'create-outside': files,
  'list-home': files, 'write-system': files,
  'write-program': ['EACCES', 'ETXTBSY'], // ETXTBSY for the owner of the program, which is running
  'hard-link': from(1, 'EXDEV'),
  'truncate-secret': from(3, 'EACCES'),
  'stat-secret': 'open', 'chmod-secret': 'open', 'read-system': 'open',
  'write-own': 'open', 'write-tmpdir': 'open', 'run-system': 'open', setsid: 'open', pair: 'open',
  environ: files, mem: files,
  kill: from(6, 'EPERM'),
  ptrace: 'EPERM', pidfd_getfd: 'EPERM', 'lower-limit': 'EPERM', 'own-limits': 'open',
  'socket-file': { light: from(9, 'EACCES'), else: 'EACCES' },
  'pair-to-file': { light: from(9, 'EACCES'), else: 'EACCES' },
  'raw-pair-to-file': { light: from(9, 'EACCES'), else: 'EACCES' },
  'abstract-socket': { light: from(6, 'EPERM'), else: 'EACCES' },
  'connect-listed': { strict: 'EACCES', else: 'open' },
  'connect-unlisted': { ports: from(4, 'EACCES'), strict: 'EACCES', else: 'open' },
  'fast-open': { ports: 'EPERM', strict: 'EACCES', else: 'open' },
  mptcp: { ports: 'EPROTONOSUPPORT', strict: 'EACCES', else: ['open', 'EPROTONOSUPPORT', 'ENOPROTOOPT'] },
  sctp: { ports: 'EPROTONOSUPPORT', strict: 'EACCES', else: ['EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'ECONNREFUSED'] },
  udp: { ports: 'EACCES', strict: 'EACCES', else: 'open' },
  bind: { ports: from(4, 'EACCES'), strict: 'EACCES', else: 'open' },
  'listen-unbound': { ports: 'EACCES', strict: 'EACCES', else: 'open' },
  unshare: 'EPERM', 'clone-namespace': 'EPERM', clone3: 'ENOSYS',
  'run-own': { light: 'open', else: files }, 'run-tmp': { light: 'open', else: files },
  'run-memory': 'open',
  io_uring: 'EPERM', keyctl: 'EPERM', userfaultfd: 'EPERM',
  netlink: { ports: 'EAFNOSUPPORT', strict: 'EAFNOSUPPORT', else: 'open' },
  vsock: { ports: 'EAFNOSUPPORT', strict: 'EAFNOSUPPORT', else: ['open', 'EAFNOSUPPORT'] },
  'type-into-terminal': 'EPERM',
  'make-device': ['EACCES', 'EPERM'],
  descriptors: '0',
};
// Without a sandbox these attempts must succeed: otherwise the table would prove nothing.
const openWithout = ['read-secret', 'read-by-link', 'rename-outside', 'truncate-secret', 'create-outside',
  'list-home', 'environ', 'kill', 'lower-limit', 'socket-file', 'pair-to-file', 'raw-pair-to-file', 'abstract-socket', 'connect-unlisted',
  'fast-open', 'udp', 'bind', 'listen-unbound', 'clone3', 'run-own', 'run-tmp', 'netlink'];

/** A home folder of the user, with a secret in it, and a process and sockets to attack. */
async function scene(t, uid) {
  const dir = tempDir();
  const home = path.join(dir, 'home');
  const outside = path.join(home, 'documents');
  const secret = path.join(outside, 'secret');
  fs.mkdirSync(outside, { recursive: true });
  fs.writeFileSync(secret, 'hunter');
  execFileSync('chown', ['-R', `${uid}`, dir]);
  const asUser = { uid, gid: uid };
  const victim = spawn('sleep', ['600'], { ...asUser, stdio: 'ignore', env: { SECRET: 'x' } });
  const abstract = `rialto-escape-${process.pid}-${uid}`;
  const listen = (where) => new Promise((resolve) => {
    const server = net.createServer((s) => s.on('error', () => {})).listen(where, () => resolve(server));
    server.unref();
    t.after(() => server.close());
  });
  const socket = path.join(dir, 'socket');
  await listen(socket);
  fs.chmodSync(socket, 0o777);
  await listen(`\0${abstract}`);
  const ports = [(await listen({ port: 0, host: '127.0.0.1' })).address().port,
    (await listen({ port: 0, host: '127.0.0.1' })).address().port];
  t.after(() => victim.kill('SIGKILL'));
  const env = { HOME: home, XDG_STATE_HOME: path.join(dir, 'state'), XDG_CONFIG_HOME: dir, XDG_RUNTIME_DIR: dir };
  fs.mkdirSync(env.XDG_STATE_HOME);
  fs.chownSync(env.XDG_STATE_HOME, uid, uid);
  const args = [secret, outside, victim.pid, socket, abstract, ...ports].map(String);
  return { dir, home, env, args, ports, asUser, uid };
}

/** Runs the escape server at a level; gives {attempt: outcome}. */
async function tryAll({ dir, env, args, uid, home }, sandbox, more = {}) {
  const config = writeConfig(dir, {
    ...(kernel.lacks && { sandbox: { missing: 'warn' } }),
    servers: { escape: { command: escapeBin, args, sandbox, ...more } },
  }, `${uid}.json`);
  fs.chmodSync(config, 0o644);
  const drop = uid === process.getuid() ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  const [command, ...rest] = [...drop, rialtoBin, 'call', '-c', config, 'escape', 'try'];
  const { code, stdout, stderr } = await runCommand(command, rest, { env, cwd: home, timeout: 60_000 });
  assert.equal(code, 0, stdout + stderr);
  return Object.fromEntries(stdout.trim().split('\n').map((line) => line.split(' ')));
}

for (const uid of users) {
  const who = uid === 0 ? 'root' : 'an ordinary user';

  test(`without a sandbox ${who}'s server gets at everything: the table is no accident`, async (t) => {
    const got = await tryAll(await scene(t, uid), 'off', { env: { TMPDIR: tempOwned(uid) }, cwd: tempOwned(uid) });
    for (const name of openWithout) assert.equal(got[name], 'open', `${name}: ${JSON.stringify(got)}`);
  });

  for (const level of ['light', 'strict', 'ports', 'all']) {
    test(`${who}: every way out at ${level}, Landlock ABI ${abi}`, async (t) => {
      const s = await scene(t, uid);
      const sandbox = { ports: { network: [s.ports[0]] }, all: { network: 'all' } }[level] ?? level;
      const got = await tryAll(s, sandbox);
      const wrong = [];
      for (const [name, row] of Object.entries(table)) {
        const want = [typeof row === 'string' || Array.isArray(row) ? row : row[level] ?? row.else].flat();
        if (!want.includes(got[name])) wrong.push(`${name}: ${got[name]}, not ${want}`);
      }
      assert.deepEqual(wrong, []);
      assert.ok(Number(got.files) > 1000 && Number(got.files) < 4096, `files: ${got.files}`);
    });
  }

  test(`limits of a map for ${who}: memory, open files, processes of this server alone`, async (t) => {
    const counts = kernel.control_group_pids || uid !== 0;
    const got = await tryAll(await scene(t, uid), {
      memory: '256MiB', files: 64, network: 'all', ...(counts && { processes: 12 }),
    });
    assert.ok(Number(got['memory-mib']) < 256, `memory: ${got['memory-mib']}`);
    assert.ok(Number(got.files) < 64, `files: ${got.files}`);
    // The limit counts the server itself, too.
    assert.equal(got.forks, counts ? '11' : '64');
  });
}

function tempOwned(uid) {
  const dir = tempDir();
  fs.chownSync(dir, uid, uid);
  return dir;
}

test('what this kernel lacks is named, and refuses the server unless the configuration says warn', async (t) => {
  // Processes of root cannot be counted without a control group, so root lacks something here; the
  // server of an ordinary user with the same entry starts where user namespaces are allowed.
  const s = await scene(t, users.at(-1));
  const entry = { command: fakeBin, args: [], sandbox: { processes: 64, network: 'all', read: [path.dirname(fakeBin)] } };
  const config = writeConfig(s.dir, { servers: { a: entry } });
  const shown = JSON.parse((await rialto(['sandbox', 'a', '-c', config, '--json'], { env: s.env })).stdout);
  const { code, stderr } = await rialto(['tools', '-c', config], { env: s.env });
  assert.equal(code, shown.kernel.lacks ? 1 : 0, stderr);
  if (!shown.kernel.lacks) return;
  assert.match(stderr, /its sandbox \(map\) needs what this kernel lacks: .*processes.*missing: warn/);
  const lenient = writeConfig(s.dir, { sandbox: { missing: 'warn' }, servers: { a: entry } });
  assert.equal((await rialto(['tools', '-c', lenient], { env: s.env })).code, 0);
});

test('a working folder that is /, the home folder or above it is refused', async (t) => {
  const s = await scene(t, process.getuid());
  for (const cwd of ['/', s.home, s.dir]) {
    for (const sandbox of ['light', 'strict', { network: 'all' }]) {
      const config = writeConfig(s.dir, { servers: { a: { command: fakeBin, cwd, sandbox } } });
      const { code, stderr } = await rialto(['tools', '-c', config], { env: s.env });
      assert.equal(code, 1);
      assert.match(stderr, /its sandbox \((light|strict|map)\) does not take the folder .* as `cwd`/);
    }
    const free = writeConfig(s.dir, { servers: { a: { command: fakeBin, cwd, sandbox: 'off' } } });
    assert.equal((await rialto(['tools', '-c', free], { env: s.env })).code, 0);
  }
});

test('a program in the folder that it may write is refused', async (t) => {
  const s = await scene(t, process.getuid());
  const cwd = path.join(s.home, 'project');
  fs.mkdirSync(cwd);
  fs.copyFileSync(fakeBin, path.join(cwd, 'server'));
  const config = writeConfig(s.dir, { servers: { a: { command: path.join(cwd, 'server'), cwd, sandbox: 'light' } } });
  const { code, stderr } = await rialto(['tools', '-c', config], { env: s.env });
  assert.equal(code, 1);
  assert.match(stderr, /refuses to run .*\/server: it lies in .*project, where the server may write/);
});

// --- reporting what was refused ---

/** A server that reads a file before it is ready, and ends with node's error when it cannot. */
function reader(dir, file, sandbox) {
  const script = path.join(dir, 'reader.mjs');
  fs.writeFileSync(script, `import fs from 'node:fs'; fs.readFileSync(${JSON.stringify(file)}); process.exit(3);`);
  return { command: process.execPath, args: [script], sandbox };
}

test('what the sandbox refused is named with the line that opens it: status, log, doctor', async (t) => {
  const s = await scene(t, process.getuid());
  const lib = path.join(s.dir, 'lib');
  fs.mkdirSync(lib);
  const secret = s.args[0];
  const entry = reader(lib, secret, { read: [lib] });
  const server = await serve(t, { servers: { a: entry } }, { env: s.env });
  const said = /its sandbox \(map\) refuses .*secret, which `read: \[.*secret\]` would open/;
  await logged(server, said);
  const status = await until('the refusal in the status', async () => {
    const { text } = await exchange(`${server.origin}/status`, { method: 'GET' });
    const [a] = JSON.parse(text).servers;
    return a.sandbox?.refused && a;
  });
  assert.deepEqual(status.sandbox, { level: 'map', refused: secret, remedy: `read: [${secret}]` });
  assert.match(status.last_error, said);
  await server.stop();
  const doctor = await rialto(['doctor', 'a', '-c', server.config], { env: s.env });
  assert.match(doctor.stdout, said);
  assert.match(doctor.stdout, /rialto sandbox/);

  // With that line the file can be read: the server gets as far as its own exit.
  const opened = writeConfig(s.dir, { servers: { a: reader(lib, secret, { read: [lib, secret] }) } });
  const { stderr } = await rialto(['tools', '-c', opened], { env: s.env });
  assert.match(stderr, /exited with 3/);
  assert.doesNotMatch(stderr, /sandbox/);
});

test('a program that the kernel does not let start is named with the line that opens it', async (t) => {
  const s = await scene(t, process.getuid());
  const script = path.join(s.dir, 'run');
  fs.writeFileSync(script, '#!/bin/sh\n', { mode: 0o600 });
  const config = writeConfig(s.dir, { servers: { a: { command: script, sandbox: 'light' } } });
  const { stderr } = await rialto(['tools', '-c', config], { env: s.env });
  assert.match(stderr, /cannot start .*run in its sandbox \(light\): .*which `sandbox: \{network: all, read: \[.*run\]\}` would open/);
});

// --- reload, defaults ---

test('a reload that changes the cage restarts the server in the new one', async (t) => {
  const s = await scene(t, process.getuid());
  const entry = (sandbox) => ({ escape: { command: escapeBin, args: s.args, sandbox } });
  const server = await serve(t, { servers: entry('off') }, { env: s.env });
  const outcome = async (name) => {
    const client = await new HttpClient(server.url).connect();
    const text = await client.text('escape__try');
    return text.match(new RegExp(`^${name} (\\S+)`, 'm'))[1];
  };
  assert.equal(await outcome('read-secret'), 'open');
  writeConfig(server.dir, { listen: '127.0.0.1:0', servers: entry('light') });
  await until('the new cage', async () => (await outcome('read-secret').catch(() => 'open')) === files, 20_000);
  assert.equal(await outcome('udp'), 'open');
  writeConfig(server.dir, { listen: '127.0.0.1:0', servers: entry('strict') });
  await until('the stricter cage', async () => (await outcome('udp').catch(() => 'open')) === 'EACCES', 20_000);
});

test('a server that an agent added is light unless its entry says otherwise', async (t) => {
  const s = await scene(t, process.getuid());
  const level = async (entry) => {
    const config = writeConfig(s.dir, { servers: { a: { command: fakeBin, ...entry } } });
    return JSON.parse((await rialto(['sandbox', 'a', '-c', config, '--json'], { env: s.env })).stdout).level;
  };
  assert.equal(await level({}), 'off');
  assert.equal(await level({ origin: 'agent' }), 'light');
  assert.equal(await level({ origin: 'agent', sandbox: 'off' }), 'off');
});

test('a server without a cwd starts in a folder of its own, with a TMPDIR in it', async (t) => {
  const s = await scene(t, process.getuid());
  const script = '#!/bin/sh\npwd >&2; echo "$TMPDIR" >&2; echo changed >> "$0"; exit 1\n';
  const file = path.join(s.dir, 'where');
  fs.writeFileSync(file, script, { mode: 0o755 });
  const config = writeConfig(s.dir, { servers: { here: { command: file, sandbox: 'light' } } });
  const { stderr } = await rialto(['tools', '-v', '-c', config], { env: s.env });
  const own = path.join(s.env.XDG_STATE_HOME, 'rialto/servers/here');
  assert.ok(stderr.includes(`${own}\n`), stderr);
  assert.ok(stderr.includes(`${own}/tmp\n`), stderr);
  assert.equal(fs.statSync(own).mode & 0o777, 0o700);
  assert.equal(fs.readFileSync(file, 'utf8'), script, 'a program may not be written by itself');
});

// --- servers that npx fetches ---

/** An npm registry with one package: an MCP server whose tool reports what it may do there. */
async function registry(t) {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'package'));
  const manifest = { name: '@test/caged', version: '1.0.0', bin: { caged: 'run.js' } };
  fs.writeFileSync(path.join(dir, 'package/package.json'), JSON.stringify(manifest));
  fs.writeFileSync(path.join(dir, 'package/run.js'), `#!/usr/bin/env node
const fs = require('node:fs'), net = require('node:net');
const attempt = (f) => { try { f(); return 'open'; } catch (e) { return e.code; } };
require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method } = JSON.parse(line);
  const answer = (result) => id !== undefined && console.log(JSON.stringify({ jsonrpc: '2.0', id, ...result }));
  if (method === 'initialize') answer({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'caged', version: '1' } } });
  else if (method === 'tools/list') answer({ result: { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] } });
  else if (method === 'tools/call') {
    const network = await new Promise((resolve) => net.connect(Number(process.argv[2]), '127.0.0.1')
      .on('connect', () => resolve('open')).on('error', (e) => resolve(e.code)));
    const write = attempt(() => fs.writeFileSync(__dirname + '/run.js', ''));
    answer({ result: { content: [{ type: 'text', text: \`network \${network} write \${write} own \${attempt(() => fs.writeFileSync('x', ''))}\` }] } });
  } else answer({ error: { code: -32601, message: 'no' } });
});
`, { mode: 0o755 });
  execFileSync('tar', ['czf', 'caged.tgz', 'package'], { cwd: dir });
  let asked = 0;
  const server = http.createServer((request, response) => {
    asked++;
    const { port } = server.address();
    if (request.url.endsWith('.tgz')) response.end(fs.readFileSync(path.join(dir, 'caged.tgz')));
    else response.end(JSON.stringify({
      name: manifest.name, 'dist-tags': { latest: '1.0.0' },
      versions: { '1.0.0': { ...manifest, dist: { tarball: `http://127.0.0.1:${port}/caged.tgz` } } },
    }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { port: server.address().port, asked: () => asked };
}

test('an npx server is installed once with the network, then runs offline and cannot change itself', async (t) => {
  const s = await scene(t, process.getuid());
  const npm = await registry(t);
  fs.writeFileSync(path.join(s.home, '.npmrc'), `registry=http://127.0.0.1:${npm.port}/\n`);
  const entry = (sandbox) => ({
    servers: { caged: { command: 'npx', args: ['-y', '@test/caged', `${npm.port}`], sandbox, start_timeout: '2m', era: 'legacy' } },
  });
  const tell = async (sandbox) => {
    const { code, stdout, stderr } = await rialto(['call', '-v', '-c', writeConfig(s.dir, entry(sandbox)), 'caged', 'tell'],
      { env: { ...s.env, PATH: '/usr/local/bin:/usr/bin:/bin' }, timeout: 120_000 });
    assert.equal(code, 0, stdout + stderr);
    return { text: stdout.trim(), stderr };
  };
  const first = await tell('strict');
  assert.equal(first.text, `network EACCES write ${files} own open`);
  assert.match(first.stderr, /is being installed/);
  const asked = npm.asked();
  assert.ok(asked > 0);
  const second = await tell('strict');
  assert.equal(second.text, first.text);
  assert.doesNotMatch(second.stderr, /is being installed/);
  assert.equal((await tell('light')).text, `network open write ${files} own open`);
  assert.equal(npm.asked(), asked, 'a server that is installed asks the registry no more');
});

// --- finding out what a server needs ---

test('--learn watches a server without a sandbox, and what it proposes lets the server work', async (t) => {
  const s = await scene(t, process.getuid());
  const lib = path.join(s.home, 'lib');
  const notes = path.join(s.home, 'notes');
  for (const dir of [lib, notes]) fs.mkdirSync(dir);
  const script = path.join(lib, 'server.mjs');
  // Reads its own file and the secret, writes its notes, and connects to a port.
  fs.writeFileSync(script, `import fs from 'node:fs'; import net from 'node:net'; import readline from 'node:readline';
fs.readFileSync(${JSON.stringify(s.args[0])});
fs.writeFileSync(${JSON.stringify(path.join(notes, 'log'))}, 'x');
net.connect(${s.ports[0]}, '127.0.0.1').on('error', (e) => { console.error(e.message); process.exit(4); }).on('connect', function () {
  this.destroy();
  readline.createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    const answer = (more) => id !== undefined && console.log(JSON.stringify({ jsonrpc: '2.0', id, ...more }));
    if (method === 'initialize') answer({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } } });
    else if (method === 'tools/list') answer({ result: { tools: [{ name: 'fine', inputSchema: { type: 'object' } }] } });
    else answer({ error: { code: -32601, message: 'no' } });
  });
});
`);
  const entry = { command: 'node', args: [script], era: 'legacy' };
  const env = { ...s.env, PATH: '/usr/local/bin:/usr/bin:/bin' };
  const strict = await rialto(['tools', '-c', writeConfig(s.dir, { servers: { a: { ...entry, sandbox: 'strict' } } })], { env });
  assert.equal(strict.code, 1, 'strict must be too little, else nothing is learned');
  const learned = await rialto(['sandbox', 'a', '--learn', '-c', writeConfig(s.dir, { servers: { a: entry } })], { env, timeout: 60_000 });
  assert.equal(learned.code, 0, learned.stderr);
  const sandbox = {
    read: [...learned.stdout.matchAll(/^ {8}- (".*")$/gm)].map((m) => JSON.parse(m[1])).filter((p) => p !== notes),
    write: [notes], network: [s.ports[0]],
  };
  assert.deepEqual(sandbox.read.sort(), [lib, path.dirname(s.args[0])].sort(), learned.stdout);
  assert.equal(learned.stdout.replaceAll(/ {8}- .*\n/g, ''),
    `servers:\n  a:\n    sandbox:\n      read:\n      write:\n      network: [${s.ports[0]}]\n`);
  const caged = await rialto(['tools', '-c', writeConfig(s.dir, { servers: { a: { ...entry, sandbox } } })], { env });
  assert.equal(caged.code, 0, caged.stderr);
  assert.match(caged.stdout, /fine/);
});

// --- other people's servers ---

const nodeModules = path.join(npmFolder, 'node_modules');

for (const [level, sandbox] of Object.entries({
  'a map for node_modules': { read: [nodeModules] },
  'a map with limits': { read: [nodeModules], memory: '2GiB', files: 256, cpu: '1h', network: 'none' },
})) {
  test(`server-everything and server-filesystem work in ${level}`, async (t) => {
    const s = await scene(t, process.getuid());
    const data = path.join(s.home, 'data');
    fs.mkdirSync(data);
    fs.writeFileSync(path.join(data, 'note'), 'here');
    await works(s, {
      everything: npmServer('server-everything', [], { sandbox }),
      files: npmServer('server-filesystem', [data], { sandbox: { ...sandbox, write: [data] } }),
    }, data);
  });
}

async function works(s, servers, data) {
  const config = writeConfig(s.dir, { servers });
  const call = async (...args) => {
    const { code, stdout, stderr } = await rialto(['call', '-c', config, ...args], { env: s.env, timeout: 60_000 });
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  };
  assert.match(await call('everything', 'echo', 'message=hello'), /hello/);
  assert.match(await call('files', 'read_text_file', `path=${data}/note`), /here/);
  await call('files', 'write_file', `path=${data}/new`, 'content=written');
  assert.equal(fs.readFileSync(path.join(data, 'new'), 'utf8'), 'written');
}

test('server-everything and server-filesystem work at light', async (t) => {
  // At light only the system's folders and its own, here that of the packages, can be read.
  const s = await scene(t, process.getuid());
  const data = fs.mkdtempSync(path.join(npmFolder, 'sandbox-'));
  t.after(() => fs.rmSync(data, { recursive: true }));
  fs.writeFileSync(path.join(data, 'note'), 'here');
  const more = { command: 'node', env: { PATH: '/usr/local/bin:/usr/bin:/bin' }, cwd: npmFolder, sandbox: 'light' };
  await works(s, {
    everything: { ...npmServer('server-everything'), ...more },
    files: { ...npmServer('server-filesystem', [data]), ...more },
  }, data);
});
