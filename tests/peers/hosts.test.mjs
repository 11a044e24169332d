// The hosts' own commands, which README and docs/recipes.md show for pasting: run by the hosts themselves, each in its own
// home. `rialto setup` must recognise what they wrote as Rialto.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { rialto, root, runCommand, tempDir } from '../e2e/lib.mjs';
import { commandsOf } from '../e2e/shown.mjs';

const built = path.join(process.env.RIALTO_PEERS, 'hosts/node_modules');
const machine = `linux-${process.arch}`;
const node22 = path.join(root, `build/npm/node_modules/node-${machine}/bin/node`);
const native = { x64: 'x86_64-unknown-linux-musl', arm64: 'aarch64-unknown-linux-musl' }[process.arch];
const hosts = {
  claude: { words: [path.join(root, `build/npm-agents/node_modules/@anthropic-ai/claude-agent-sdk-${machine}/claude`)], file: '.claude.json', setup: 'claude-code' },
  codex: { words: [path.join(built, `codex-${machine}/vendor/${native}/bin/codex`)], file: '.codex/config.toml', setup: 'codex' },
  gemini: { words: [node22, path.join(built, '@google/gemini-cli/bundle/gemini.js')], file: '.gemini/settings.json', setup: 'gemini' },
};

/** A home with the hosts' programs in its PATH. */
function home() {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'bin'));
  for (const [name, { words }] of Object.entries(hosts)) {
    fs.writeFileSync(path.join(dir, 'bin', name), `#!/bin/sh\nexec ${words.map((w) => `'${w}'`).join(' ')} "$@"\n`, { mode: 0o755 });
  }
  const env = { HOME: dir, XDG_CONFIG_HOME: path.join(dir, '.config'), XDG_STATE_HOME: path.join(dir, 'state'), CODEX_HOME: '', CLAUDE_CONFIG_DIR: '' };
  return { dir, env: { ...env, PATH: `${dir}/bin:/usr/bin:/bin` } };
}

for (const line of commandsOf('commands of hosts').filter((l) => l.split(' ').length > 3)) {
  const { file, setup } = hosts[line.split(' ')[0]];
  test(line, { timeout: 120_000 }, async () => {
    const h = home();
    const { code, stdout, stderr } = await runCommand('/bin/sh', ['-c', line], { cwd: h.dir, env: h.env, timeout: 60_000 });
    assert.equal(code, 0, stdout + stderr);
    const written = fs.readFileSync(path.join(h.dir, file), 'utf8');
    const address = 'http://127.0.0.1:8765/mcp';
    assert.ok(line.includes(address) ? written.includes(address) : /rialto"?,?\s[^]*stdio/.test(written), written);
    const said = await rialto(['setup', '--dry-run', setup], { cwd: h.dir, env: h.env });
    assert.equal(said.code, 0, said.stderr);
    assert.match(said.stdout, /nothing to do/);
  });
}
