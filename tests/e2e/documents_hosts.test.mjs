// Every command that docs/hosts.md and the guide's part on servers show is run, as it stands there: the servers of
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
