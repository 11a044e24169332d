// What the program weighs: the libraries in its memory, and its error when one that it needs is not
// there. It was linked with every library that anybody could need, 38 of them (libcurl alone brings
// LDAP, Kerberos and RTMP), and each start paid for them: 6 ms and 11 MB.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { agent, open, proxy } from './acp_lib.mjs';
import {
  exchange, fake, HttpClient, rialto, rialtoBin, runCommand, serve, serveAndConnect, tempDir, until,
  writeConfig,
} from './lib.mjs';
import { Authority } from './tls_lib.mjs';

// The program's own libraries, and those that come with sanitizers.
const own = ['ld-linux', 'libc', 'libuv', 'libllhttp'];
const sanitizers = ['libasan', 'libubsan', 'libstdc++', 'libgcc_s', 'libm'];

/** Names of the libraries that are mapped into a process, without versions. */
function libraries(pid) {
  const files = fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')
    .map((line) => path.basename(line.split(/\s+/)[5] ?? '')).filter((name) => /\.so(\.|$)/.test(name));
  return [...new Set(files.map((name) => name.replace(/^(ld-linux|[^.]*?)(-[0-9a-z].*)?\.so.*/, '$1')))];
}

const more = (pid) => {
  const found = libraries(pid);
  assert.ok(found.includes('libuv'), `libraries are found at all: ${found}`);
  const known = found.includes('libasan') ? [...own, ...sanitizers] : own;
  return found.filter((name) => !known.includes(name));
};

// Makes a library impossible to load, as if it were not installed.
function without(file) {
  const dir = tempDir();
  fs.writeFileSync(path.join(dir, file), '');
  return { LD_LIBRARY_PATH: dir };
}

test('a daemon with two stdio servers has nothing but libc and libuv in memory', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { a: fake('--name', 'a'), b: fake('--name', 'b') },
  }, ['a__echo', 'b__echo']);
  assert.equal((await client.call('a__echo', { message: 'x' })).result.structuredContent.message, 'x');
  assert.deepEqual(more(server.pid), []);
});

test('so has a conductor', async (t) => {
  const c = await open(t, ['agent', proxy('P3'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['x']);
  assert.deepEqual(more(c.child.pid), []);
});

test('a server that is reached by HTTP brings libcurl, and the daemon works with it', async (t) => {
  const there = await serve(t, { servers: { a: fake('--name', 'a') } });
  const { server, client } = await serveAndConnect(t, { servers: { far: { url: there.url } } }, ['far__a__echo']);
  assert.equal((await client.call('far__a__echo', { message: 'x' })).result.structuredContent.message, 'x');
  assert.ok(more(server.pid).includes('libcurl'));
});

test('version says what can be used', async () => {
  const { libraries: all } = JSON.parse((await rialto(['version', '--json'])).stdout);
  assert.deepEqual(all.map((l) => l.for), ['HTTP to servers', 'TLS', 'YAML']);
  assert.deepEqual(all.map((l) => l.missing), [null, null, null]);
  assert.match((await rialto(['version'])).stdout, /^HTTP to servers: libcurl\.so\.4$/m);

  const lacking = await rialto(['version'], { env: without('libcurl.so.4') });
  assert.equal(lacking.code, 0);
  assert.match(lacking.stdout, /^missing: HTTP to servers needs libcurl\.so\.4: install the package libcurl4 /m);
  assert.match(lacking.stdout, /^YAML: libyaml-0\.so\.2$/m);
});

test('without libcurl, servers that are reached by HTTP say what to install and the others work', async (t) => {
  const there = await serve(t, { servers: { a: fake('--name', 'a') } });
  const { server, client } = await serveAndConnect(t, {
    servers: { far: { url: there.url }, near: fake('--name', 'near') },
  }, ['near__echo'], { env: without('libcurl.so.4') });
  const far = await until('the reason', async () => {
    const answer = await exchange(`${server.origin}/api/servers/far`, { method: 'GET' });
    const state = JSON.parse(answer.text);
    return state.last_error && state;
  });
  assert.match(far.last_error, /HTTP to servers needs libcurl\.so\.4: install the package libcurl4/);
  assert.equal((await client.call('near__echo', { message: 'x' })).result.structuredContent.message, 'x');

  const status = await rialto(['status'], { env: { XDG_RUNTIME_DIR: server.dir, ...without('libcurl.so.4') } });
  assert.equal(status.code, 1);
  assert.match(status.stderr, /needs libcurl\.so\.4: install the package libcurl4/);
});

test('without libyaml, a configuration in YAML says what to install', async () => {
  const dir = tempDir();
  const file = writeConfig(dir, 'servers: {}\n', 'rialto.yaml');
  const checked = await rialto(['check', '-c', file], { env: without('libyaml-0.so.2') });
  assert.equal(checked.code, 2);
  assert.match(checked.stdout + checked.stderr, /YAML needs libyaml-0\.so\.2: install the package libyaml-0-2/);
});

test('without OpenSSL, TLS says what to install', async () => {
  const { cert, key } = new Authority().sign('here');
  const file = writeConfig(tempDir(), { listen: [{ address: '127.0.0.1:0', tls: { cert, key } }], servers: {} });
  const served = await rialto(['serve', '-c', file], { env: without('libssl.so.3') });
  assert.equal(served.code, 2);
  assert.match(served.stderr, /TLS needs libssl\.so\.3: install the package libssl3/);
});

// Packaging tools read this note, because nothing in the program's header names these libraries.
test('the program carries the note that names what it loads', async () => {
  const { stdout } = await runCommand('readelf', ['-p', '.note.dlopen', rialtoBin]);
  for (const file of ['libcurl.so.4', 'libssl.so.3', 'libyaml-0.so.2'])
    assert.ok(stdout.includes(`"soname":["${file}"]`), `${file}: ${stdout}`);
});
