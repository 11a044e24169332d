// The documents are true: pages made of tables are up to date, links lead somewhere, samples of configurations are
// accepted, commands and their options exist, and the first ten minutes work as written.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from './brokers.mjs';
import { rialto, rialtoBin, root, runCommand, sanitizerEnv, start, tempDir, until, within } from './lib.mjs';
import { blocks, commandsOf, files, listed, read, rows } from './shown.mjs';

test('the references of keys and errors are as tools/reference writes them', async () => {
  const { code, stderr } = await runCommand('python3', [path.join(root, 'tools/reference'), '--check', rialtoBin], { cwd: root });
  assert.equal(code, 0, stderr);
});

// What servers.*.auth.grant takes needs a second line: that went into the text, and its choices with it.
test('all of what a key takes is in its heading, and its choices are a list', () => {
  const text = read('docs/configuration.md');
  for (const [, key, kind] of text.matchAll(/^\*\*`(.+)`\*\*: (.*)$/gm)) assert.doesNotMatch(kind, /,\s*$/, key);
  assert.match(text, /auth\.grant`\*\*: authorization_code, .* or token-exchange {2}\nWho signs in\.\n- `authorization_code`: /);
});

test('tools/reference finds a message that has no place, and a reason that is not explained', async () => {
  const dir = tempDir();
  for (const name of ['src', 'tools', 'docs']) fs.cpSync(path.join(root, name), path.join(dir, name), { recursive: true });
  const check = () => runCommand('python3', ['tools/reference', '--check', rialtoBin], { cwd: dir });
  assert.equal((await check()).code, 0);
  fs.appendFileSync(path.join(dir, 'src/io/listen.c'), '\nvoid f(struct err *e) { err_set(e, 1, "nobody wrote this down"); }\n');
  assert.match((await check()).stderr, /not up to date: docs\/errors\.md/);
  fs.mkdirSync(path.join(dir, 'src/newcomer'));
  fs.writeFileSync(path.join(dir, 'src/newcomer/a.c'), 'err_set(e, 1, "from a new folder");');
  assert.match((await check()).stderr, /newcomer\/a\.c has messages/);
  fs.rmSync(path.join(dir, 'src/newcomer'), { recursive: true });
  const outcome = path.join(dir, 'src/mcp/outcome.c');
  fs.writeFileSync(outcome, fs.readFileSync(outcome, 'utf8').replace('"crashed"', '"vanished"'));
  assert.match((await check()).stderr, /vanished/);
});

test('the version is the same everywhere, and the changelog is in order', async () => {
  const { code, stderr } = await runCommand(path.join(root, 'tools/release'), ['--check'], { cwd: root });
  assert.equal(code, 0, stderr);
  const dir = tempDir();
  fs.cpSync(root, dir, { recursive: true, filter: (f) => !/\/(build|dist|\.git|node_modules)$/.test(f) });
  const check = () => runCommand(path.join(dir, 'tools/release'), ['--check'], { cwd: dir });
  const change = (file, from, to) => fs.writeFileSync(path.join(dir, file), read(file).replace(from, to));
  change('meson.build', /version: '[^']*'/, "version: '9.9.9'");
  assert.match((await check()).stderr, /web\/package\.json has/);
  change('meson.build', '', '');
  change('CHANGELOG.md', '## [Unreleased]', '## [Unreleased]\n\n## [9.0.0]');
  assert.match((await check()).stderr, /has no date/);
});

/** The anchors of a page, as GitHub makes them. */
const anchors = (file) => [...read(file).matchAll(/^#+ (.*)$/gm)].map((m) => m[1].toLowerCase()
  .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[^\w\- ]/g, '').replaceAll(' ', '-'));

test('every link inside the tree leads to a file and to a heading that are there', () => {
  const broken = [];
  let seen = 0;
  for (const file of files) {
    const text = read(file).replace(/^```[^]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      seen++;
      const [name, anchor] = target.split('#');
      const to = name ? path.join(path.dirname(file), name) : file;
      if (!fs.existsSync(path.join(root, to))) broken.push(`${file}: ${target}`);
      else if (anchor && to.endsWith('.md') && !anchors(to).includes(anchor)) broken.push(`${file}: ${target} (no such heading)`);
    }
  }
  assert.ok(seen > 100);
  assert.deepEqual(broken, []);
});

test('every target of make that a workflow or a page names is one', () => {
  const targets = new Set([...read('Makefile').matchAll(/^([a-z-]+):.*## /gm)].map((m) => m[1]));
  const flows = fs.readdirSync(path.join(root, '.github/workflows')).map((f) => `.github/workflows/${f}`);
  const named = [];
  for (const file of flows) {
    for (const [, words] of read(file).matchAll(/run: make ([a-z -]+)$/gm)) named.push(...words.trim().split(' ').map((w) => [file, w]));
    for (const [, list] of read(file).matchAll(/matrix: \{target: \[([^\]]+)\]/g)) named.push(...list.split(', ').map((w) => [file, w]));
  }
  assert.ok(named.length >= 6, `${named}`);
  for (const line of commandsOf('targets of make')) named.push(['a page', line.split(' ')[1]]);
  assert.deepEqual(named.filter(([, word]) => !targets.has(word)), []);
});

const help = new Map();
const helpOf = (...words) => {
  if (!help.has(words.join())) {
    help.set(words.join(), execFileSync(rialtoBin, ['help', ...words], { encoding: 'utf8', env: { ...process.env, ...sanitizerEnv } }));
  }
  return help.get(words.join());
};

test('every command in a page exists, and so do its options', () => {
  const commands = [...helpOf().matchAll(/^ {2}(\S+) {2,}/gm)].map((m) => m[1]);
  const wrong = [];
  let seen = 0;
  for (const file of files.filter((f) => /^(README|docs\/|packaging\/)/.test(f))) {
    const lines = blocks(file).filter((b) => b.kind === 'sh').flatMap((b) => b.text.split('\n'))
      .concat([...read(file).matchAll(/`(rialto [^`\n]+)`/g)].map((m) => m[1]));
    for (const line of lines) {
      const words = line.replace(/ #.*/, '').trim().match(/^(?:npx |uvx )?rialto (.*)$/)?.[1].split(/\s+/);
      if (!words || !/^[a-z]/.test(words[0])) continue;
      seen++;
      if (!commands.includes(words[0])) { wrong.push(`${file}: ${line}: no such command`); continue; }
      const options = words.slice(1, words.includes('--') ? words.indexOf('--') : undefined).filter((w) => /^--[a-z]/.test(w));
      for (const option of options.map((o) => o.replace(/[=[].*|[^a-z-].*$/, ''))) {
        if (!helpOf(words[0]).includes(option)) wrong.push(`${file}: ${line}: no ${option}`);
      }
    }
  }
  assert.ok(seen > 50, `${seen}`);
  assert.deepEqual(wrong, []);
});

// No test ran the commands of the pages about the bus, the conductor and signing in, nor those of other programs.
// Targets of make are only looked up (above): most of them take minutes, and are run elsewhere.
test('every command that a page shows is run by a test', () => {
  const without = listed.filter(([row]) => !row).map(([, c]) => `${c.page}: ${c.text}`);
  assert.deepEqual(without, [], 'shown, but in no row of shown.mjs');
  const folder = path.join(root, 'tests');
  for (const [name, { test: file, says }] of Object.entries(rows)) {
    assert.ok(listed.some(([row]) => row === name), `'${name}' of shown.mjs: no page shows such a command any more`);
    const text = fs.readFileSync(path.join(folder, `${file}.test.mjs`), 'utf8');
    assert.ok(text.includes(says ?? `commandsOf('${name}'`), `'${name}' of shown.mjs: tests/${file}.test.mjs does not run its commands`);
  }
});

test('every sample of a configuration is one', async () => {
  const keys = new Set([...execFileSync(rialtoBin, ['config', '--explain'], { encoding: 'utf8', env: { ...process.env, ...sanitizerEnv } })
    .matchAll(/^([a-z_]+)[.:]/gm)].map((m) => m[1]).concat('mcpServers'));
  const wrong = [];
  let seen = 0;
  for (const file of files.filter((f) => /^(README|docs\/[a-z]+\.md|packaging\/)/.test(f))) {
    for (const block of blocks(file).filter((b) => ['yaml', 'json'].includes(b.kind))) {
      const top = block.kind === 'yaml' ? [...block.text.matchAll(/^([\w-]+):/gm)].map((m) => m[1])
        : (() => { try { return Object.keys(JSON.parse(block.text)); } catch { return []; } })();
      if (!top.length || !top.every((k) => keys.has(k))) continue;
      seen++;
      const place = path.join(tempDir(), `rialto.${block.kind}`);
      fs.writeFileSync(place, block.text.replace(/sha256:(\.\.\.|…)/g, () => `sha256:${crypto.randomBytes(32).toString('hex')}`));
      const { stdout, stderr } = await rialto(['check', place], { cwd: path.dirname(place) });
      // Files that the sample names are not here; everything else must be right.
      const bad = (stdout + stderr).split('\n').filter((l) => /: (unknown key|expected|not valid)/.test(l));
      if (bad.length) wrong.push(`${file}:${block.line}: ${bad.join('; ')}`);
    }
  }
  assert.ok(seen > 8, `${seen}`);
  assert.deepEqual(wrong, []);
});

test('the ten minutes of docs/start.md work as they stand', async (t) => {
  const dir = tempDir();
  const bin = path.join(dir, 'bin');
  const port = await freePort();
  fs.mkdirSync(bin);
  fs.symlinkSync(rialtoBin, path.join(bin, 'rialto'));
  const env = {
    ...process.env, ...sanitizerEnv, PATH: `${bin}:${process.env.PATH}`, HOME: dir, XDG_CONFIG_HOME: dir, XDG_RUNTIME_DIR: dir,
    XDG_CACHE_HOME: dir, XDG_STATE_HOME: dir, RIALTO_LISTEN: `127.0.0.1:${port}`,
  };
  const work = path.join(dir, 'work');
  fs.mkdirSync(work);
  const done = [];
  for (const { kind, text } of blocks('docs/start.md')) {
    if (kind === 'yaml') { fs.writeFileSync(path.join(work, 'rialto.yaml'), text); continue; }
    for (const line of text.trim().split('\n')) {
      done.push(line);
      if (line !== 'rialto serve') {
        const { code, stdout, stderr } = await runCommand('sh', ['-c', line], { cwd: work, env });
        assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
        continue;
      }
      const daemon = start('rialto', ['serve'], { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'] });
      let said = '';
      daemon.stderr.on('data', (d) => { said += d; });
      const ended = new Promise((resolve) => { daemon.on('close', resolve); });
      t.after(() => { daemon.kill('SIGTERM'); return within(15_000, 'its end', ended); });
      await until('the daemon', () => /listening on/.test(said));
      await until('its server', async () => (await runCommand('rialto', ['status'], { cwd: work, env })).code === 0);
    }
  }
  assert.deepEqual(done, commandsOf('start'));
});

test('the sample of the README works as it stands', async () => {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'bin'));
  fs.symlinkSync(rialtoBin, path.join(dir, 'bin/rialto'));
  const env = { PATH: `${dir}/bin`, HOME: dir, XDG_CACHE_HOME: dir }; // without npx, which would use the network
  const sample = blocks('README.md').find((b) => b.kind === 'yaml').text;
  fs.writeFileSync(path.join(dir, 'rialto.yaml'), sample);
  for (const line of ['rialto check', 'rialto call demo hash text=hello']) {
    assert.ok(read('README.md').includes(line), line);
    const { code, stdout, stderr } = await runCommand('/bin/sh', ['-c', line], { cwd: dir, env });
    assert.equal(code, 0, stdout + stderr);
  }
});
