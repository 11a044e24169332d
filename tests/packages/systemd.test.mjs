// The Debian package in a system that systemd runs, in a container with its own network: what docs/install.md
// says works as written, for the system and for a user.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { commandsOf } from '../e2e/shown.mjs';
import { deb, inRoot, releaseRoot, run, suite } from './lib.mjs';

const needs = ['ca-certificates', 'dbus-user-session', 'libcurl4', 'libpam-systemd', 'libssl3', 'libuv1', 'libyaml-0-2', 'systemd-sysv'];

// Each command, followed by checks; the first failure ends the script. /result gets the lines that were run.
const script = (system, socket, user) => `#!/bin/sh
exec > /result 2>&1
set -ex
trap 'echo "ended with $?"; journalctl --no-pager -u rialto -n 30; systemctl poweroff' EXIT
uses() { rialto inspect http://127.0.0.1:8765/mcp | grep -q hash; }
${system}
rialto status --alive
uses
test "$(systemctl show -P User rialto.service)" != root
systemctl disable --now rialto.service
${socket}
test "$(systemctl is-active rialto.service)" = inactive
uses
test "$(systemctl is-active rialto.service)" = active
systemctl disable --now rialto.socket rialto.service
loginctl enable-linger ann
for i in 1 2 3 4 5 6 7 8 9 10; do test -S /run/user/1000/systemd/private && break; sleep 1; done
as_ann() { runuser -u ann -- env XDG_RUNTIME_DIR=/run/user/1000 HOME=/home/ann "$@"; }
as_ann ${user}
uses
test "$(as_ann systemctl --user is-active rialto.service)" = active
echo "all is fine"
`;

test('systemctl enable --now: the service, its socket, and the socket of a user', (t) => {
  const folder = releaseRoot(t, 'debian', suite, needs);
  fs.copyFileSync(deb(), path.join(folder, 'tmp/rialto.deb'));
  const there = (...words) => run(...inRoot(folder, ...words), { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' } });
  there('dpkg', '--install', '/tmp/rialto.deb');
  there('useradd', '--create-home', '--uid', '1000', 'ann');
  const lines = commandsOf('units of systemd');
  assert.equal(lines.length, 3);
  fs.writeFileSync(path.join(folder, 'try'), script(...lines), { mode: 0o755 });
  fs.writeFileSync(path.join(folder, 'etc/systemd/system/try.service'),
    '[Unit]\nAfter=multi-user.target dbus.service\n[Service]\nType=idle\nExecStart=/try\n[Install]\nWantedBy=multi-user.target\n');
  there('systemctl', 'enable', 'try.service');
  run('umount', ['-l', path.join(folder, 'proc')]);
  run('systemd-nspawn', ['--quiet', '--register=no', '--keep-unit', '--private-network', '--machine=rialto-test', `--directory=${folder}`, '--boot'],
    { timeout: 180_000, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = fs.readFileSync(path.join(folder, 'result'), 'utf8');
  assert.match(said, /^all is fine$/m, said);
});
