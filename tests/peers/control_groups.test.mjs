// Limits by control groups (version 2) were never set, which nobody noticed: the machines at hand have the
// controllers in version 1. A group passes its controllers to its children only when it is told to
// (cgroup.subtree_control), and only while it has no processes itself. Here a virtual machine has version 2.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const vm = path.join(process.env.RIALTO_PEERS, 'vm');

// The daemon runs in the group 'unit', as systemd gives one to a service with Delegate=yes. The server fills
// memory, then starts as many processes as it can; it never serves.
const config = {
  sandbox: { missing: 'warn' }, // this kernel is too old for a part of the sandbox
  servers: {
    greedy: {
      command: '/bin/sh',
      args: ['-c', 'busybox sh -c "busybox head -c 300000000 /dev/zero | busybox tail -c 300000000" <&- >&- 2>&-; '
        + 'busybox sh -c "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1000 & done" <&- >&- 2>&-; '
        + 'exec sleep 1000'],
      cwd: '/tmp/own',
      sandbox: { read: ['/bin', '/dev'], memory: '64MiB', processes: 12 },
    },
  },
};
const init = `#!/bin/sh
export PATH=/bin
busybox mount -t proc proc /proc; busybox mount -t sysfs sys /sys; busybox mount -t devtmpfs dev /dev
busybox mount -t cgroup2 cgroup /sys/fs/cgroup
echo '+memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
busybox mkdir /sys/fs/cgroup/unit /tmp/own /tmp/run
busybox chown -R 1000:1000 /sys/fs/cgroup/unit /tmp
busybox sh -c 'echo $$ >/sys/fs/cgroup/unit/cgroup.procs
  export XDG_RUNTIME_DIR=/tmp/run HOME=/tmp XDG_STATE_HOME=/tmp
  exec /bin/setpriv --reuid 1000 --regid 1000 --clear-groups rialto serve -c /tmp/rialto.json' 2>/tmp/log &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  busybox grep -q 'max [1-9]' /sys/fs/cgroup/unit/rialto-*-*/pids.events 2>/dev/null && break; busybox sleep 1; done
echo BEGIN
cd /sys/fs/cgroup/unit
echo "moved: $(busybox cat rialto-main/cgroup.procs | busybox wc -l)"
echo "started: $(busybox pidof sleep | busybox wc -w)"
for f in rialto-*-*/memory.max rialto-*-*/pids.max rialto-*-*/memory.events rialto-*-*/pids.events; do echo "$f: $(busybox tr '\\n' ' ' <$f)"; done
busybox kill -TERM $(busybox pidof rialto | busybox tr ' ' '\\n' | busybox sort -n | busybox head -n 1)
for i in 1 2 3 4 5 6 7 8 9 10; do busybox pidof rialto >/dev/null || break; busybox sleep 1; done
echo "left: $(busybox ls -d rialto-*-* 2>/dev/null | busybox wc -l)"
echo "sleeping: $(busybox pidof sleep | busybox wc -w)"
busybox cat /tmp/log
echo END
busybox poweroff -f
`;

test('control groups: a server has the memory and the processes that it may have, and no more', { timeout: 300_000 }, () => {
  fs.writeFileSync(path.join(vm, 'root/init'), init, { mode: 0o755 });
  fs.writeFileSync(path.join(vm, 'root/tmp/rialto.json'), JSON.stringify({ listen: '127.0.0.1:0', ...config }));
  execFileSync('sh', ['-c', 'cd root && find . | cpio --quiet -o -H newc | gzip -1 >../initrd'], { cwd: vm });
  const { stdout } = spawnSync('qemu-system-x86_64', ['-m', '768', '-nographic', '-no-reboot', '-net', 'none', '-kernel', 'kernel', '-initrd', 'initrd',
    '-append', 'console=ttyS0 panic=-1 quiet'], { cwd: vm, encoding: 'utf8', timeout: 240_000 });
  const said = stdout.replaceAll('\r', '').match(/BEGIN\n([^]*)END/)?.[1];
  assert.ok(said, stdout);
  assert.match(said, /^moved: [12]$/m, said); // the daemon, and its guard
  assert.match(said, /memory\.max: 67108864 $/m, said);
  assert.match(said, /pids\.max: 12 $/m, said);
  assert.match(said, /oom_kill [1-9]/, said);
  assert.match(said, /pids\.events: max [1-9]/, said);
  assert.ok(Number(said.match(/^started: (\d+)$/m)[1]) < 12, said);
  assert.match(said, /^left: 0$/m, said);
  assert.match(said, /^sleeping: 0$/m, said);
});
