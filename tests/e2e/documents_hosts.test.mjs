// Every command that docs/hosts.md, the guide's part on servers, the README and docs/operation.md show is run, as it stands there: the servers of
// npm are those of this folder, the addresses a daemon here, the home one with the files of hosts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { samples } from './hosts_samples.mjs';
import { expectClean, fake, npmFolder, rialtoBin, root, runCommand, sanitizerEnv, serve, start, tempDir, until } from './lib.mjs';

/** The lines of the shell in these parts of a page. */
function shown(page, from = '', to = '\0') {
  const text = fs.readFileSync(path.join(root, page), 'utf8');
  const part = from ? text.slice(text.indexOf(from)).split(to)[0] : text;
  assert.ok(part.length > 100, `${page}: ${from}`);
  return [...part.matchAll(/```sh\n([^]*?)```/g)].flatMap((m) => m[1].split('\n').map((l) => l.replace(/\s+# .*$/, '')).filter(Boolean));
}

/** A home with the hosts' files, `rialto` and an `npx` that starts what is installed here. */
function home() {
  const dir = fs.realpathSync(tempDir());
  for (const { file, text } of Object.values(samples)) {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), text);
  }
  const bin = path.join(dir, 'bin');
  fs.mkdirSync(bin);
  fs.symlinkSync(rialtoBin, path.join(bin, 'rialto'));
  fs.symlinkSync(process.execPath, path.join(bin, 'node'));
  fs.writeFileSync(path.join(bin, 'npx'), `#!/bin/sh\nshift; name=$1; shift\nexec node ${npmFolder}/node_modules/$name/dist/index.js "$@"\n`, { mode: 0o755 });
  return {
    dir,
    env: {
      ...sanitizerEnv, HOME: dir, PATH: `${bin}:/usr/bin:/bin`, XDG_CONFIG_HOME: path.join(dir, '.config'), XDG_STATE_HOME: path.join(dir, 'state'),
      XDG_RUNTIME_DIR: dir, RIALTO_LISTEN: '127.0.0.1:0', CODEX_HOME: '', CLAUDE_CONFIG_DIR: '',
    },
  };
}

/** Runs a line that does not end by itself until it listens, or its input ends. */
async function runLong(t, line, { dir, env }) {
  const child = start('/bin/sh', ['-c', `exec ${line}`], { cwd: dir, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', (code) => resolve(code)); });
  if (line.startsWith('rialto serve')) {
    await until(line, () => /listening on/.test(text));
    child.kill('SIGTERM');
  } else {
    child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n');
  }
  assert.equal(await ended, 0, `${line}\n${text}`);
  expectClean(text);
}

for (const [title, lines] of [
  ['docs/hosts.md', shown('docs/hosts.md')],
  ['docs/guide.md, servers', shown('docs/guide.md', '## Servers from the command line', '\n## ')],
]) {
  test(`the commands of ${title}`, async (t) => {
    assert.ok(lines.length >= 5, lines.join('\n'));
    const h = home();
    const far = await serve(t, { servers: { all: fake() }, names: 'bare' });
    for (const shownLine of lines) {
      const line = shownLine.replace(/https:\/\/tools\.example\.com\/(\w+)/, (_, p) => (p === 'mcp' ? far.url : `${far.origin}/${p}`)).replace('-l 8080', '-l 127.0.0.1:0');
      if (/^rialto (serve|stdio)/.test(line)) {
        await runLong(t, line, h);
        continue;
      }
      let daemon;
      if (line.startsWith('rialto restart')) {
        daemon = start(rialtoBin, ['serve'], { cwd: h.dir, env: { ...process.env, ...h.env }, stdio: ['ignore', 'ignore', 'pipe'] });
        let log = '';
        daemon.stderr.on('data', (d) => { log += d; });
        await until('the daemon', () => /listening on/.test(log));
      }
      const { code, stdout, stderr } = await runCommand('/bin/sh', ['-c', line], { cwd: h.dir, env: h.env });
      expectClean(stderr);
      assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
      if (daemon) {
        const ended = new Promise((resolve) => { daemon.on('close', resolve); });
        daemon.kill('SIGTERM');
        await ended;
      }
    }
  });
}

// The README's list of commands was read by people alone: one of them that had changed its ways would have stayed there.
test('the commands of the README and of docs/operation.md', async (t) => {
  const h = home();
  const data = path.join(h.dir, 'data');
  fs.mkdirSync(data);
  fs.writeFileSync(path.join(data, 'notes.txt'), 'noted\n');
  const env = { ...h.env, RIALTO_CONFIG: path.join(h.dir, 'rialto.yaml') };
  fs.writeFileSync(env.RIALTO_CONFIG, `listen: 127.0.0.1:0\naudit: {}\nbus: {url: "embedded:"}\nservers:\n  files:\n    command: npx\n    args: [-y, "@modelcontextprotocol/server-filesystem", ${data}]\n`);
  const block = shown('README.md').filter((l) => l.startsWith('rialto ')).map((l) => l.replaceAll('/data', data));
  const lines = block.slice(block.lastIndexOf('rialto check'));
  lines.splice(lines.indexOf('rialto lock') + 1, 0, ...shown('docs/operation.md'));
  assert.ok(lines.length >= 18, lines.join('\n'));
  const begin = (line, stdio = 'ignore') => {
    const child = start('/bin/sh', ['-c', `exec ${line}`], { cwd: h.dir, env: { ...process.env, ...env }, stdio: [stdio, 'pipe', 'pipe'] });
    const said = { text: '' };
    for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { said.text += d; });
    const ended = new Promise((resolve) => { child.on('close', resolve); });
    t.after(() => child.kill('SIGTERM'));
    return { said, end: async (signal = 'SIGTERM') => { child.kill(signal); assert.equal(await ended, 0, `${line}\n${said.text}`); expectClean(said.text); } };
  };
  // Those that go on until they are ended, and what they say before.
  const long = { 'rialto serve': /listening on/, 'rialto top': /files/, 'rialto logs -f': /listening on/, 'rialto calls -f': /read_file/, 'rialto bus worker': /joined/ };
  let daemon;
  for (const line of lines) {
    if (line === 'rialto stdio') continue; // the shim's own tests; here it would start another daemon
    if (line === 'rialto bus worker') { await daemon.end(); daemon = null; }
    if (long[line]) {
      const one = begin(line);
      await until(line, async () => {
        if (line === 'rialto calls -f') await runCommand('/bin/sh', ['-c', lines.find((l) => l.startsWith('rialto call files'))], { cwd: h.dir, env });
        return long[line].test(one.said.text);
      }, 20_000);
      if (line === 'rialto serve') daemon = one;
      else await one.end('SIGINT');
      if (line === 'rialto serve') await until('its server', async () => (await runCommand('rialto', ['status'], { cwd: h.dir, env: { ...process.env, ...env } })).code === 0, 20_000);
      continue;
    }
    const first = line.startsWith('rialto add files') ? 'rialto remove files && ' : ''; // it is there already
    const { code, stdout, stderr } = await runCommand('/bin/sh', ['-c', first + line], { cwd: h.dir, env });
    expectClean(stderr);
    assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
  }
  if (daemon) await daemon.end();
});
