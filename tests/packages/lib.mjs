// What the tests of the packages share: building one, running a program in another root, roots of other
// releases, and a name server for the tests.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import path from 'node:path';
import { expectGone, root, StdioClient, tempDir } from '../e2e/lib.mjs';

export const version = execFileSync(path.join(root, 'tools/version'), { encoding: 'utf8' }).trim();
export const dist = (name) => path.join(root, 'dist', name);

/** Runs a program to its end and gives its output; the error of one that fails has the output, too. */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 256 << 20, timeout: 1_700_000, ...options });
  if (done.error?.code === 'ENOENT') throw new Error(`missing: ${command} (tools/setup packages installs it)`);
  assert.equal(done.status, 0, `${command} ${args.join(' ')}: ${done.status ?? done.signal}\n${done.stdout}\n${done.stderr}`);
  return done.stdout;
}

/** Like `run`, but without blocking this process, which may be the program's peer. */
export function runBeside(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    execFile(command, args, { cwd: root, timeout: 120_000, maxBuffer: 64 << 20, ...options }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command} ${args.join(' ')}: ${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

export const make = (...targets) => run('make', ['-s', ...targets]);

const made = new Map();
/** The portable program, brought up to date once in each test file. */
export function portable(arch) {
  if (!made.has(arch)) made.set(arch, run('nice', ['packaging/portable/build', arch]));
  return dist(`rialto-linux-${arch}`);
}

export const suite = fs.readFileSync('/etc/os-release', 'utf8').match(/^VERSION_CODENAME=(\w+)/m)?.[1];

/** The Debian package of this machine, built once in each test file. */
export function deb() {
  if (!made.has('deb')) made.set('deb', make('deb'));
  return dist(`rialto_${version}-1_${run('dpkg', ['--print-architecture']).trim()}.deb`);
}

/** Ends the daemon that a host has started for a configuration file, if there is one. */
async function endDaemon(rialto, file) {
  const { daemons } = JSON.parse(await runBeside(...rialto('status', '--json')).catch(() => '{"daemons": []}'));
  for (const { pid } of daemons.filter((d) => d.config === file)) {
    process.kill(pid, 'SIGTERM');
    await expectGone([{ pid }], 15_000);
  }
}

/**
 * A host that runs `rialto stdio` with a daemon, where rialto(...words) gives [command, args, options]: the tools are
 * there, and the host's process has become the program `shim`, which is small.
 */
export async function useAsHost(t, rialto, file, tools, shim) {
  const agent = new StdioClient(t, ...rialto('stdio', '-c', file));
  try {
    await agent.connect();
    await agent.waitFor(...tools);
    assert.equal(fs.readlinkSync(`/proc/${agent.child.pid}/exe`), fs.realpathSync(shim));
    const memory = Number(fs.readFileSync(`/proc/${agent.child.pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+)/m)[1]);
    assert.ok(memory < (shim.endsWith('rialto-shim') ? 1024 : 7 * 1024), `${shim}: ${memory} kB`);
  } finally {
    await agent.stop(10_000);
    await endDaemon(rialto, file);
  }
}

/** Fails without the rights of root, which entering another root needs. */
export function needRoot() {
  assert.equal(process.getuid(), 0, 'missing: the rights of root, which entering another root needs');
}

export const inRoot = (folder, ...words) => ['/usr/sbin/chroot', [folder, ...words]];

// --- roots of other releases ---

/** Ubuntu's keys, taken from a package of Debian 13. */
const ubuntuKeys = path.join(root, 'build/roots/ubuntu-archive-keyring.gpg');

function findUbuntuKeys(t) {
  if (fs.existsSync(ubuntuKeys)) return;
  const folder = releaseRoot(t, 'debian', 'trixie', ['ubuntu-archive-keyring']);
  fs.copyFileSync(path.join(folder, 'usr/share/keyrings/ubuntu-archive-keyring.gpg'), ubuntuKeys);
}

/** Where a system's archive is: DEBIAN_MIRROR or UBUNTU_MIRROR, or, for Debian, what this machine's apt has. */
function mirror(system) {
  const known = execFileSync('apt-get', ['indextargets', '--format', '$(SITE) $(ORIGIN)'], { encoding: 'utf8' })
    .match(/^(\S+\/debian)\/? Debian$/m)?.[1];
  const named = process.env[`${system.toUpperCase()}_MIRROR`] ?? (system === 'debian' ? known : undefined);
  assert.ok(named, `missing: an archive of ${system}; name one in ${system.toUpperCase()}_MIRROR`);
  return named;
}

/** A fresh root of a release: a folder, removed after the test. Kept packed in build/roots, for the next time. */
export function releaseRoot(t, system, suite, packages = []) {
  needRoot();
  const kept = path.join(root, 'build/roots', `${[suite, ...packages].join('_').slice(0, 100)}.tar`);
  if (!fs.existsSync(kept)) {
    fs.mkdirSync(path.dirname(kept), { recursive: true });
    if (system === 'ubuntu') findUbuntuKeys(t);
    const keyring = system === 'ubuntu' ? [`--keyring=${ubuntuKeys}`] : [];
    const components = system === 'ubuntu' ? 'main,universe' : 'main';
    run('nice', ['mmdebstrap', '--quiet', '--variant=minbase', `--components=${components}`, ...keyring,
      ...(packages.length ? [`--include=${packages.join(',')}`] : []), suite, `${kept}.new.tar`, mirror(system)]);
    fs.renameSync(`${kept}.new.tar`, kept);
  }
  const folder = path.join(tempDir(), suite);
  fs.mkdirSync(folder);
  run('tar', ['-C', folder, '-xf', kept]);
  run('mount', ['-t', 'proc', 'proc', path.join(folder, 'proc')]);
  t.after(() => spawnSync('umount', ['-l', path.join(folder, 'proc')]));
  return folder;
}

/** A name server on a loopback address of its own that knows one name. */
export async function nameServer(t, name, address) {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (question, from) => {
    let at = 12;
    const labels = [];
    for (; question[at]; at += question[at] + 1) labels.push(question.subarray(at + 1, at + 1 + question[at]).toString());
    const known = labels.join('.').toLowerCase() === name; // for other types of records the answer is empty
    const wanted = known && question.readUInt16BE(at + 1) === 1;
    const asked = question.subarray(12, at + 5);
    const head = Buffer.from(question.subarray(0, 12));
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(wanted ? 1 : 0, 6);
    head.writeUInt32BE(0, 8);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)]);
    socket.send(Buffer.concat([head, asked, ...(wanted ? [record] : [])]), from.port, from.address);
  });
  await new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.bind(53, '127.7.6.5', resolve);
  });
  t.after(() => socket.close());
  return '127.7.6.5';
}
