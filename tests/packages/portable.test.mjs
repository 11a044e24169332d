// The portable program: static, small, and working in a root that has no other program, in the oldest Debian that
// the archive has, and on arm64.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, HttpClient, root, serve, tempDir } from '../e2e/lib.mjs';
import { Authority } from '../e2e/tls_lib.mjs';
import { inRoot, nameServer, needRoot, portable, releaseRoot, run, runBeside, useAsHost, version } from './lib.mjs';

const MiB = 1 << 20;

for (const arch of ['x86_64', 'aarch64']) {
  test(`${arch}: static, position-independent, stripped, under 5 MiB, its symbols apart`, () => {
    const program = portable(arch);
    assert.ok(fs.statSync(program).size < 5 * MiB, `${fs.statSync(program).size} bytes`);
    const headers = run('readelf', ['-hldW', program]);
    assert.match(headers, /DYN \(Position-Independent/);
    assert.doesNotMatch(headers, /INTERP|NEEDED|RPATH/);
    assert.match(headers, /GNU_STACK +\S+ \S+ \S+ \S+ \S+ RW /);
    assert.match(headers, /GNU_RELRO/);
    assert.doesNotMatch(run('readelf', ['-SW', program]), /\.symtab|\.debug_info/);
    assert.match(run('readelf', ['-SW', `${program}.debug`]), /\.debug_info/);
    assert.ok(!fs.readFileSync(program).includes(root), 'nothing of where it was built');
  });
}

/** A server with TLS whose name only our name server knows and whose authority only the new root trusts. */
async function remote(t) {
  const authority = new Authority();
  const { cert, key } = authority.sign('tools', { names: 'DNS:tools.test' });
  const address = await nameServer(t, 'tools.test', '127.0.0.1');
  const server = await serve(t, {
    listen: { address: '127.0.0.1:0', hosts: ['tools.test'], tls: { cert, key } },
    servers: { far: fake() }, names: 'bare',
  });
  return { authority, address, url: `https://tools.test:${new URL(server.origin).port}/mcp` };
}

/** Puts into a root what a machine would have: the address of a name server, authorities, a configuration. */
function furnish(folder, { authority, address, url }) {
  for (const name of ['etc/ssl/certs', 'tmp', 'root', 'run']) fs.mkdirSync(path.join(folder, name), { recursive: true });
  fs.writeFileSync(path.join(folder, 'etc/resolv.conf'), `nameserver ${address}\n`);
  fs.writeFileSync(path.join(folder, 'etc/ssl/certs/ca-certificates.crt'), authority.text);
  fs.writeFileSync(path.join(folder, 'rialto.yaml'), `servers:
  near: {command: /rialto, args: [demo-server]}
  far: {url: "${url}"}
listen: unix:/tmp/rialto.sock
control: unix:/tmp/control.sock
`);
}

async function useIn(t, folder) {
  const there = await remote(t);
  furnish(folder, there);
  const rialto = (...words) => runBeside(...inRoot(folder, '/rialto', ...words), { env: { HOME: '/root', PATH: '/' } });
  assert.match(await rialto('version'), new RegExp(`^rialto ${version}\n`));
  assert.doesNotMatch(await rialto('version'), /missing/);
  await rialto('check', '-c', '/rialto.yaml');
  assert.match(await rialto('call', '-c', '/rialto.yaml', 'near', 'hash', 'text=rialto'), /^[0-9a-f]{64}$/m);
  assert.match(await rialto('call', '-c', '/rialto.yaml', 'far', 'echo', 'text=over TLS'), /over TLS/);
  const host = (...words) => [...inRoot(folder, '/rialto', ...words), { env: { HOME: '/root', PATH: '/' } }];
  return (shim) => useAsHost(t, host, '/rialto.yaml', ['near__hash', 'far__echo'], path.join(folder, shim));
}

function give(folder, name) {
  fs.copyFileSync(path.join(path.dirname(portable('x86_64')), `${name}-linux-x86_64`), path.join(folder, name));
  fs.chmodSync(path.join(folder, name), 0o755);
}

test('in a root with nothing else: names, TLS, a server of its own, a call', async (t) => {
  needRoot();
  const folder = tempDir();
  give(folder, 'rialto');
  const asHost = await useIn(t, folder);
  await asHost('rialto'); // alone: a daemon cannot be shared without /proc
});

test('in the oldest Debian that the archive has', async (t) => {
  const folder = releaseRoot(t, 'debian', 'bullseye');
  give(folder, 'rialto');
  const asHost = await useIn(t, folder);
  await asHost('rialto');
  give(folder, 'rialto-shim');
  await asHost('rialto-shim');
});

test('a daemon of it serves agents over HTTP', async (t) => {
  const server = await serve(t, { servers: { one: fake() } }, { bin: [portable('x86_64')] });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('one__echo');
  assert.match(await client.text('one__echo', { text: 'hello' }), /hello/);
});

test('aarch64, emulated: version, check, a call to the demo server', () => {
  const program = portable('aarch64');
  const dir = tempDir();
  const file = path.join(dir, 'rialto.yaml');
  fs.writeFileSync(file, `servers: {demo: {command: qemu-aarch64-static, args: ["${program}", demo-server]}}\n`);
  const emulated = (...words) => execFileSync('qemu-aarch64-static', [program, ...words], { encoding: 'utf8', cwd: dir, timeout: 120_000 });
  assert.match(emulated('version'), new RegExp(`^rialto ${version}\n`));
  emulated('check', '-c', file);
  assert.match(emulated('call', '-c', file, 'demo', 'hash', 'text=rialto'), /^[0-9a-f]{64}$/m);
});
