// The npm package and the Python wheel: built, installed from the local files, and used.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, start, StdioClient, tempDir, until, writeConfig } from '../e2e/lib.mjs';
import { commandsOf } from '../e2e/shown.mjs';
import { dist, portable, run, useAsHost, version } from './lib.mjs';

const cpu = process.arch;
const machine = cpu === 'arm64' ? 'aarch64' : 'x86_64';

/** `rialto`, installed, does what it does elsewhere: prints, passes input, output and status on, ends on a signal; for
 * a host with a daemon it becomes the small program `shim`. */
async function use(t, command, args, options, shim) {
  assert.match(run(command, [...args, 'version'], options), new RegExp(`^rialto ${version}\n`));
  assert.equal(spawnSync(command, [...args, 'no-such-command'], options).status, 2);
  const file = writeConfig(tempDir(), { servers: { one: fake() } });
  const agent = new StdioClient(t, command, [...args, 'stdio', '--alone', '-c', file], options);
  await agent.connect();
  await agent.waitFor('one__echo');
  await agent.stop(10_000);

  const dir = tempDir();
  const env = { ...process.env, ...options.env, XDG_RUNTIME_DIR: dir, XDG_STATE_HOME: dir, XDG_CACHE_HOME: dir, HOME: dir };
  await useAsHost(t, (...words) => [command, [...args, ...words], { ...options, env }], fs.realpathSync(file), ['one__echo'], shim);
}

/** Runs the commands of the documents that begin with `program`; `more` are options that make it use local packages. */
async function runShown(program, more, options) {
  const lines = commandsOf('packages for npm and Python').filter((l) => l.startsWith(`${program} `));
  assert.equal(lines.length, 2);
  for (const line of lines) {
    const [, ...words] = line.split(' ');
    if (words.at(-1) !== 'serve') { run(program, [...more, ...words], options); continue; }
    const dir = tempDir();
    const env = { ...process.env, ...options.env, HOME: dir, XDG_CONFIG_HOME: dir, XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir, RIALTO_LISTEN: '127.0.0.1:0' };
    const child = start(program, [...more, ...words], { ...options, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { said += d; });
    const ended = new Promise((resolve) => { child.on('close', resolve); });
    await until(`${line}: ${said}`, () => /listening on/.test(said), 30_000);
    process.kill(-child.pid, 'SIGINT'); // as Ctrl-C does
    await ended;
  }
}

test('npm: the packages install each other, and npx runs the program', async (t) => {
  portable('x86_64');
  portable('aarch64');
  run('packaging/npm/build', []);
  const dir = tempDir();
  const own = dist(`npm/rialto-bridge-linux-${cpu}-${version}.tgz`);
  fs.writeFileSync(path.join(dir, 'package.json'), JSON.stringify({
    name: 'someone', private: true, dependencies: { 'rialto-bridge': `file:${dist(`npm/rialto-bridge-${version}.tgz`)}` },
    // Not published yet: the optional packages come from files, too.
    overrides: Object.fromEntries(['x64', 'arm64'].map((c) => [`rialto-bridge-linux-${c}`, `file:${dist(`npm/rialto-bridge-linux-${c}-${version}.tgz`)}`])),
  }));
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], { cwd: dir });
  assert.deepEqual(fs.readdirSync(path.join(dir, 'node_modules')).filter((f) => f.startsWith('rialto')).toSorted(),
    ['rialto-bridge', `rialto-bridge-linux-${cpu}`], 'the program of this machine and no other');
  assert.deepEqual(fs.readFileSync(path.join(dir, `node_modules/rialto-bridge-linux-${cpu}/rialto`)), fs.readFileSync(portable(machine)));
  await runShown('npx', ['--offline'], { cwd: dir });
  // This Node can replace itself with the program; older ones stay as its parent.
  const env = { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` };
  await use(t, path.join(dir, 'node_modules/.bin/rialto'), [], { cwd: dir, env }, path.join(dir, `node_modules/rialto-bridge-linux-${cpu}/rialto-shim`));
  assert.ok(fs.statSync(own).size < 4_000_000);
});

test('npm: without the program of this machine it says what to do', () => {
  const script = path.join(tempDir(), 'rialto.js');
  fs.copyFileSync('packaging/npm/rialto.js', script);
  const said = spawnSync('node', [script, 'version'], { encoding: 'utf8' });
  assert.equal(said.status, 1);
  assert.match(said.stderr, /rialto-bridge-linux-\w+ is missing[^]*--omit=optional/);
});

test('wheel: pip installs it from the file', async (t) => {
  portable('x86_64');
  portable('aarch64');
  run('packaging/wheel/build', []);
  const dir = path.join(tempDir(), 'venv');
  const python = ['/usr/bin/python3', 'python3'].find((p) => spawnSync(p, ['-m', 'venv', '--help']).status === 0);
  assert.ok(python, 'missing: python3 with venv (Debian: python3-venv)');
  run(python, ['-m', 'venv', dir]);
  const [line] = commandsOf('packages for npm and Python').filter((l) => l.startsWith('pip '));
  run('sh', ['-c', `${dir}/bin/${line} --quiet --no-index --disable-pip-version-check --find-links '${dist('')}'`]);
  await use(t, path.join(dir, 'bin/rialto'), [], {}, path.join(dir, 'bin/rialto-shim'));
  assert.match(run(path.join(dir, 'bin/pip'), ['show', '--disable-pip-version-check', 'rialto-bridge']), new RegExp(`Version: ${version}`));
  run(path.join(dir, 'bin/pip'), ['uninstall', '--yes', '--quiet', 'rialto-bridge']);
  assert.deepEqual(fs.readdirSync(path.join(dir, 'bin')).filter((f) => f.startsWith('rialto')), []);
});

test('wheel: two builds are the same bytes', () => {
  const name = fs.readdirSync(dist('')).find((f) => f.endsWith(`${machine}.whl`));
  const before = fs.readFileSync(dist(name));
  run('packaging/wheel/build', [machine]);
  assert.deepEqual(fs.readFileSync(dist(name)), before);
});

test('wheel: uvx runs it', async (t) => {
  if (spawnSync('uvx', ['--version']).status !== 0) {
    t.skip('uv is not installed, and Debian has no package of it');
    return;
  }
  await runShown('uvx', ['--offline', '--no-index', '--find-links', dist('')], {});
});
