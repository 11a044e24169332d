// The Debian package: built, looked at by lintian, installed in a fresh root, used, purged; its units verified, and
// run as systemd would.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from '../e2e/brokers.mjs';
import { root, start, tempDir, until } from '../e2e/lib.mjs';
import { commandsOf } from '../e2e/shown.mjs';
import { deb, inRoot, releaseRoot, run, suite, version } from './lib.mjs';

const arch = run('dpkg', ['--print-architecture']).trim();
const needs = ['ca-certificates', 'libcurl4', 'libssl3', 'libuv1', 'libyaml-0-2'];

test('make deb; lintian finds neither errors nor warnings', () => {
  deb();
  const changes = path.join(root, `build/deb/rialto_${version}-1_${arch}.changes`);
  const said = spawnSync('lintian', ['--allow-root', '--fail-on', 'error,warning', '--display-info', changes], { encoding: 'utf8' });
  assert.equal(said.error?.code, undefined, 'missing: lintian (tools/setup packages installs it)');
  assert.equal(said.status, 0, said.stdout + said.stderr);
  assert.doesNotMatch(said.stdout, /^[EW]:/m);
});

test('installed, used and purged in a fresh root', (t) => {
  const folder = releaseRoot(t, 'debian', suite, needs);
  fs.copyFileSync(deb(), path.join(folder, 'tmp', path.basename(deb())));
  const there = (...words) => run(...inRoot(folder, ...words), { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' } });
  const [install, choose] = commandsOf('the Debian package');
  there('sh', '-c', `cd /tmp && ${install}`);
  assert.match(there('rialto', 'version'), new RegExp(`^rialto ${version}\n`));
  assert.doesNotMatch(there('rialto', 'version'), /missing/);
  there('rialto', 'check', '-c', '/etc/rialto/rialto.yaml');
  assert.match(there('rialto', 'call', '-c', '/etc/rialto/rialto.yaml', 'demo', 'hash', 'text=rialto'), /[0-9a-f]{64}/);
  for (const file of ['usr/share/man/man1/rialto.1.gz', 'usr/share/bash-completion/completions/rialto.bash',
    'usr/share/zsh/vendor-completions/_rialto', 'usr/share/fish/vendor_completions.d/rialto.fish',
    'lib/systemd/system/rialto.service', 'lib/systemd/system/rialto.socket', 'usr/lib/systemd/user/rialto.socket',
  ]) assert.ok(fs.existsSync(path.join(folder, file)), file);

  // `conductor` is an alternative, and that of another package can be chosen instead.
  assert.match(there('conductor', '--help'), /conductor/);
  assert.equal(there('readlink', '/etc/alternatives/conductor').trim(), '/usr/bin/rialto-conductor');
  there('update-alternatives', '--install', '/usr/bin/conductor', 'conductor', '/bin/true', '99');
  there('sh', '-c', `${choose} < /dev/null`); // the choice stays as it is
  assert.equal(there('readlink', '/etc/alternatives/conductor').trim(), '/bin/true');
  assert.match(there('rialto', 'conductor', '--help'), /conductor/);

  there('mkdir', '-p', '/var/lib/private/rialto');
  there('dpkg', '--purge', 'rialto');
  const left = there('sh', '-c', 'find / -xdev -path /proc -prune -o -name "*rialto*" -print').split('\n')
    .filter((f) => f && !f.startsWith('/tmp/') && !f.startsWith('/root/.cache/'));
  assert.deepEqual(left, []);
  assert.equal(there('readlink', '/etc/alternatives/conductor').trim(), '/bin/true');
});

/** Unpacks the files of the package into a folder. */
function unpacked() {
  const folder = tempDir();
  run('dpkg-deb', ['-x', deb(), folder]);
  return folder;
}

test('units: systemd finds no mistake in them', () => {
  const folder = unpacked();
  for (const file of ['lib/systemd/system/rialto.service', 'lib/systemd/system/rialto.socket',
    'usr/lib/systemd/user/rialto.service', 'usr/lib/systemd/user/rialto.socket']) {
    const unit = path.join(folder, file);
    // The program is not installed here: the unit gets the path where the package was unpacked.
    fs.writeFileSync(unit, fs.readFileSync(unit, 'utf8').replace('/usr/bin/rialto', path.join(folder, 'usr/bin/rialto')));
    const said = spawnSync('systemd-analyze', ['verify', '--man=no', ...(file.includes('/user/') ? ['--user'] : []), unit], { encoding: 'utf8' });
    const ours = said.stderr.split('\n').filter((l) => l.includes('rialto'));
    assert.deepEqual(ours, [], file);
  }
});

test('units: the service of the system is hardened, by systemd\'s own measure', () => {
  const unit = path.join(unpacked(), 'lib/systemd/system/rialto.service');
  const said = run('systemd-analyze', ['security', '--offline=true', '--no-pager', unit]);
  const [, score, word] = said.match(/exposure level for rialto\.service: ([\d.]+) (\w+)/);
  assert.ok(Number(score) < 5, `${score} ${word}`);
  assert.match(word, /^(OK|SAFE|PERFECT)$/);
});

test('units: the first connection to the socket starts the daemon', async (t) => {
  const folder = unpacked();
  const dir = tempDir();
  const port = await freePort();
  const config = path.join(dir, 'rialto.yaml');
  fs.writeFileSync(config, `listen: 127.0.0.1:${port}\nservers: {}\n`);
  const manager = start('systemd-socket-activate', ['-l', `127.0.0.1:${port}`, '-E', `XDG_RUNTIME_DIR=${dir}`, '-E', `HOME=${dir}`,
    path.join(folder, 'usr/bin/rialto'), 'serve', '-q', '-c', config], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  manager.stderr.on('data', (d) => { said += d; });
  t.after(() => manager.kill('SIGTERM'));
  await until('systemd-socket-activate', () => /Listening on/.test(said));
  assert.doesNotMatch(said, /Execing/, 'nothing runs before somebody comes');
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
  assert.deepEqual(await answer.json(), { status: 'ok' });
  assert.match(said, /Execing|listening on/);
});
