// What is made from the command table besides the help: the manual and the completions of three shells.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, fakeBin, rialtoBin, runCommand, serve, tempDir, until, writeConfig } from './lib.mjs';

/** Runs a program to its end and returns what it prints. */
const run = (command, args, env = {}) => execFileSync(command, args, {
  encoding: 'utf8', timeout: 30_000, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env },
});
const said = new Map();
const say = (...args) => {
  if (!said.has(args.join())) said.set(args.join(), run(rialtoBin, args));
  return said.get(args.join());
};
const commands = [...say('help').matchAll(/^ {2}(\S+) {2,}/gm)].map((m) => m[1]);
const listed = (command) => [...say('help', command).split('\nOptions:\n')[1].matchAll(/^ {2}(?:-\w, | {4})--([a-z-]+)/gm)].map((m) => m[1]);

function scriptOf(shell) {
  const file = path.join(tempDir(), `rialto.${shell}`);
  fs.writeFileSync(file, say('completion', shell));
  return file;
}

test('bash completes commands, options, their arguments and the words of a command', () => {
  const file = scriptOf('bash');
  const ask = (...lines) => {
    const script = `source '${file}'; compopt() { echo nothing; }; ${lines.map((words) => `COMP_WORDS=(${words.map((w) => `'${w}'`).join(' ')}) COMP_CWORD=${words.length - 1}; _rialto; echo "\${COMPREPLY[*]}"`).join('; ')}`;
    return run('bash', ['--norc', '-euc', script]).split('\n').slice(0, -1).map((l) => l.split(' ').filter(Boolean));
  };
  assert.ok(commands.length > 10);
  assert.deepEqual(ask(['rialto', ''])[0], commands);
  assert.deepEqual(ask(['rialto', 'cond'])[0], ['conductor']);
  assert.deepEqual(ask(...commands.map((c) => ['rialto', c, '--'])), commands.map((c) => listed(c).map((o) => `--${o}`)));
  assert.deepEqual(ask(
    ['rialto', 'conductor', '--mcp-bridge', ''], ['rialto', 'conductor', '--mcp-bridge', 'h'],
    ['rialto', 'conductor', '-n', ''], ['rialto', 'conductor', '-q', ''], ['rialto', 'conductor', 'agent', ''],
    ['/usr/bin/conductor', ''], ['conductor', '--proxy-dialect', 'P'],
    ['rialto', 'help', 'ver'], ['rialto', 'completion', ''], ['rialto', 'approvals', ''], ['rialto', 'serve', '--config', ''],
  ), [
    ['stdio', 'http', 'auto'], ['http'],
    ['nothing'], [], ['agent', 'proxy', 'mcp'], [],
    ['agent', 'proxy', 'mcp'], ['P0', 'P1', 'P2', 'P3'],
    ['version'], ['bash', 'zsh', 'fish'], ['approve', 'reject'], [],
  ]);
  const folder = tempDir();
  fs.mkdirSync(path.join(folder, 'logs'));
  fs.writeFileSync(path.join(folder, 'lonely'), '');
  assert.deepEqual(ask(['rialto', 'conductor', '--debug-dir', `${folder}/l`])[0], [`${folder}/logs`]);
});

test('fish completes the same', () => {
  const file = scriptOf('fish');
  const ask = (line) => run('fish', ['--no-config', '-c', `source '${file}'; complete -C '${line}'`], { HOME: tempDir() })
    .split('\n').map((l) => l.split('\t')[0]).filter(Boolean);
  assert.deepEqual(ask('rialto ').toSorted(), commands.toSorted());
  for (const c of ['conductor', 'serve']) {
    const given = ask(`rialto ${c} --`).map((o) => o.replace(/^--/, ''));
    assert.deepEqual(given.toSorted(), listed(c).filter((o) => o !== 'help').toSorted());
  }
  assert.deepEqual(ask('rialto conductor --mcp-bridge ').toSorted(), ['auto', 'http', 'stdio']);
  assert.deepEqual(ask('rialto conductor ').toSorted(), ['agent', 'mcp', 'proxy']);
  assert.deepEqual(ask('conductor ').toSorted(), ['agent', 'mcp', 'proxy']);
});

test('the zsh script is one, and names every command and option', async () => {
  const file = scriptOf('zsh');
  run('zsh', ['-f', '-n', file]);
  const text = fs.readFileSync(file, 'utf8');
  assert.match(text, /^#compdef rialto conductor$/m);
  for (const c of commands) {
    const [, body] = text.match(new RegExp(`^_rialto_${c}\\(\\) \\{$([^]*?)^\\}$`, 'm'));
    for (const o of listed(c)) assert.ok(body.includes(`--${o}`), `${c} --${o}`);
  }
});

// Names of servers and tools had to be typed in full. They are completed from what is known: pressing Tab starts nothing.
test('names of servers and tools are completed in three shells, and no server is started for it', async (t) => {
  const dir = tempDir();
  const started = path.join(dir, 'started');
  const servers = { files: { command: '/bin/sh', args: ['-c', `echo >> '${started}'; exec '${fakeBin}' --name files`] }, other: fake('--name', 'other') };
  const config = writeConfig(dir, { servers, secrets: { command: ['/bin/sh', '-c', `echo >> '${started}'`] } });
  const bin = path.join(dir, 'bin');
  fs.mkdirSync(bin);
  fs.symlinkSync(path.resolve(rialtoBin), path.join(bin, 'rialto'));
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: dir, XDG_CACHE_HOME: path.join(dir, 'cache'), XDG_RUNTIME_DIR: dir, RIALTO_CONFIG: config };
  const names = (...words) => run(rialtoBin, ['completion', 'names', '--', ...words], env).split('\n').filter(Boolean);
  assert.deepEqual(names('call'), ['files', 'other'], 'tools are not known yet');
  assert.ok(!fs.existsSync(started));
  run(rialtoBin, ['tools', '-q'], env);
  fs.rmSync(started);
  const tools = names('tools');
  assert.ok(['files', 'other', 'files__echo', 'other__add'].every((n) => tools.includes(n)), tools.join());
  assert.ok(names('call', '--json', 'files').includes('echo'));
  assert.deepEqual(names('restart', '-c', config), ['files', 'other']);
  for (const words of [['call', '-c'], ['restart', 'files'], ['call', 'files', 'echo'], ['add'], ['serve', '--'], ['nonsense'], []]) assert.deepEqual(names(...words), [], words.join(' '));

  const bash = `source '${scriptOf('bash')}'; COMP_WORDS=(rialto call files__ec) COMP_CWORD=2; _rialto; echo "\${COMPREPLY[*]}"; COMP_WORDS=(rialto stop '') COMP_CWORD=2; _rialto; echo "\${COMPREPLY[*]}"`;
  assert.equal(run('bash', ['--norc', '-euc', bash], env), 'files__echo\nfiles other\n');
  const fish = (line) => run('fish', ['--no-config', '-c', `source '${scriptOf('fish')}'; complete -C '${line}'`], env).split('\n').filter(Boolean);
  assert.deepEqual(fish('rialto call files__ec'), ['files__echo']);
  assert.deepEqual(fish('rialto call -c x.yaml files ec'), ['echo'].slice(0, 0), 'x.yaml is not there');
  assert.ok(fish('rialto call files ec').includes('echo'));
  const zsh = `autoload -U compinit; compinit -D; words=(call files__ec) CURRENT=2; compadd() { print -l "\${names[@]}"; }; compdef() {}; _arguments() {}; source '${scriptOf('zsh')}' > /dev/null; _rialto_names`;
  assert.ok(run('zsh', ['-f', '-c', zsh], env).split('\n').includes('files__echo'));
  assert.ok(!fs.existsSync(started), 'nothing was started');

  // A name that a shell would expand is left out; the daemon is asked if one is running.
  const odd = await serve(t, { names: 'bare', servers: { odd: { ...fake('--name', 'odd'), tools: { echo: { name: '$(touch x)' } } } } });
  const there = () => run(rialtoBin, ['completion', 'names', '--', 'tools', '-c', odd.config], { XDG_RUNTIME_DIR: odd.dir, XDG_CACHE_HOME: tempDir() }).split('\n');
  await until('the tools', () => there().includes('add'));
  assert.ok(!there().some((n) => n.includes('$')));
});

test('completion without a shell, or for another', async () => {
  for (const args of [[], ['tcsh'], ['bash', 'zsh']]) {
    const { code, stderr } = await runCommand(rialtoBin, ['completion', ...args]);
    assert.equal(code, 2);
    assert.match(stderr, /bash/);
  }
});

test('the manual has every command, option and key, and is without errors', () => {
  const file = path.join(tempDir(), 'rialto.1');
  fs.writeFileSync(file, say('help', '--man'));
  run('mandoc', ['-T', 'lint', '-W', 'error', file]);
  const text = run('mandoc', ['-T', 'utf8', '-O', 'width=200', file]).replace(/.\x08/g, '');
  for (const c of commands) {
    const at = text.indexOf(`\n   ${c}\n`);
    assert.ok(at > 0, c);
    const part = text.slice(at + 1).split(/\n {3}\S/)[0];
    for (const o of listed(c).filter((x) => x !== 'help')) assert.ok(part.includes(`--${o}`), `${c} --${o}`);
  }
  for (const [, key] of say('config', '--explain').matchAll(/^([a-z_]+(?:\.[a-z_*]+)*)\b.*$/gm)) assert.ok(text.includes(key), key);
  assert.match(text, /EXIT STATUS/);
  fs.writeFileSync(file, say('help', '--man', 'conductor'));
  run('mandoc', ['-T', 'lint', '-W', 'error', file]);
  assert.match(fs.readFileSync(file, 'utf8'), /mcp PORT/);
});

test('make install puts them where they are looked for', () => {
  const folder = tempDir();
  const build = path.resolve(path.dirname(rialtoBin), '..');
  run('meson', ['install', '-C', build, '--no-rebuild', '--quiet'], { DESTDIR: folder });
  const found = fs.readdirSync(folder, { recursive: true });
  const place = (file) => {
    const all = found.filter((f) => f.endsWith(file));
    assert.equal(all.length, 1, file);
    return path.join(folder, all[0]);
  };
  for (const file of ['bin/rialto', 'bin/conductor', 'man/man1/conductor.1', 'bash-completion/completions/rialto.bash',
    'bash-completion/completions/conductor.bash', 'zsh/site-functions/_rialto', 'fish/vendor_completions.d/rialto.fish',
    'fish/vendor_completions.d/conductor.fish']) assert.ok(fs.statSync(place(file)).size > 0, file);
  const page = fs.readFileSync(place('man/man1/rialto.1'), 'utf8');
  assert.match(page, /~\/\.config\/rialto\/rialto\.yaml/, 'nothing of who built it');
});
