// The sources on other systems: packed the same each time, and built by plain `meson setup` on other releases, by
// GCC and by Clang.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { commandsOf } from '../e2e/shown.mjs';
import { dist, inRoot, releaseRoot, run, version } from './lib.mjs';

const archive = dist(`rialto-${version}.tar.xz`);

test('make dist: two runs make the same bytes, with everything git knows and nothing else', () => {
  run('packaging/source/build', []);
  const before = fs.readFileSync(archive);
  run('packaging/source/build', [], { env: { ...process.env, TZ: 'Asia/Tokyo', LC_ALL: 'C.UTF-8' } });
  assert.ok(before.equals(fs.readFileSync(archive)));
  const packed = run('tar', ['-tf', archive]).trim().split('\n').map((f) => f.slice(`rialto-${version}/`.length));
  const known = run('git', ['ls-files', '--cached', '--others', '--exclude-standard']).trim().split('\n');
  assert.deepEqual(packed.toSorted(), known.toSorted());
});

const tools = ['gcc', 'clang', 'libc6-dev', 'libcurl4-openssl-dev', 'libssl-dev', 'libuv1-dev', 'libyaml-dev', 'meson', 'ninja-build', 'pkg-config', 'python3', 'xz-utils'];
const releases = [
  ['Debian 12', 'debian', 'bookworm', [...tools, 'node-llhttp']],
  ['Debian 13', 'debian', 'trixie', [...tools, 'libllhttp-dev']],
  ['Ubuntu 24.04', 'ubuntu', 'noble', [...tools, 'libllhttp-dev']],
];

for (const [name, system, suite, packages] of releases) {
  test(`${name}: meson setup, ninja, meson install; a call`, (t) => {
    if (system === 'ubuntu' && !process.env.UBUNTU_MIRROR) {
      t.skip('no archive of Ubuntu is known: UBUNTU_MIRROR names one');
      return;
    }
    const folder = releaseRoot(t, system, suite, packages);
    run('packaging/source/build', []);
    run('tar', ['-C', path.join(folder, 'tmp'), '-xf', archive]);
    const there = (...words) => run(...inRoot(folder, 'env', '-C', `/tmp/rialto-${version}`, 'PATH=/usr/bin:/bin', 'HOME=/root', 'LC_ALL=C.UTF-8', ...words));
    const [setup, build, install] = commandsOf('the sources');
    const used = (compiler, program) => {
      const said = there(program, 'version');
      assert.match(said, new RegExp(`^rialto ${version}\ncompiled with ${compiler}`));
      assert.doesNotMatch(said, /missing/);
      assert.match(there(program, 'call', 'demo', 'hash', 'text=rialto'), /[0-9a-f]{64}/);
    };
    there('CC=clang', 'meson', 'setup', 'build-clang');
    there('nice', 'ninja', '-j2', '-C', 'build-clang');
    used('clang', './build-clang/src/rialto');
    for (const line of [setup, build, install]) there('nice', 'sh', '-c', line);
    used('gcc', '/usr/local/bin/rialto');

    // Without a library the features that need it are off, and the program names the library.
    spawnSync(...inRoot(folder, 'sh', '-c', 'rm -f /usr/lib/*/libcurl.so.4* /usr/lib/*/libyaml-0.so.2*'));
    const less = there('/usr/local/bin/rialto', 'version');
    assert.match(less, /missing: HTTP to servers needs libcurl\.so\.4: install the package libcurl4/);
    assert.match(less, /missing: YAML needs libyaml-0\.so\.2/);
    assert.match(less, /^TLS: libssl\.so\.3$/m);
  });
}
