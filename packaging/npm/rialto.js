#!/usr/bin/env node
// Runs the program of this machine's package with the same arguments, input, output and exit status.
'use strict';
const { spawn } = require('node:child_process');
const os = require('node:os');

function find() {
  const name = `rialto-bridge-${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/rialto`);
  } catch {
    const known = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
    console.error(known
      ? `rialto: the package ${name} is missing.\nhint: it is an optional dependency; install without --omit=optional`
      : `rialto: there is no program for ${process.platform} on ${process.arch}, only for Linux on x64 and arm64.\nhint: on Windows it runs in WSL; elsewhere in a container`);
    process.exit(1);
  }
}

const program = find();
const args = process.argv.slice(2);
// Newer versions of Node can replace themselves with the program. Older ones wait for it and pass signals on.
if (process.execve) {
  try { process.execve(program, [program, ...args], process.env); } catch { /* run it as a child */ }
}
const child = spawn(program, args, { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (e) => {
  console.error(`rialto: cannot start ${program}: ${e.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
