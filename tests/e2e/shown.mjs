// The commands that README and docs show people, and which test runs each of them: `rows` is the list, and a command
// that is in no row fails docs.test.mjs. The tests take their lines from here, so they run what the page says today.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { root } from './lib.mjs';

export const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
  .trim().split('\n').filter((f) => fs.existsSync(path.join(root, f)));
export const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');

/** The fenced blocks of a page: [{kind, text, line}]. */
export function blocks(file) {
  const out = [];
  let open = null;
  read(file).split('\n').forEach((line, i) => {
    const fence = line.match(/^ *```(\w*)/);
    if (!fence) open?.lines.push(line);
    else if (open) { out.push({ kind: open.kind, text: `${open.lines.join('\n')}\n`, line: open.line }); open = null; }
    else open = { kind: fence[1], lines: [], line: i + 1 };
  });
  return out;
}

const programs = ['rialto', 'conductor', 'npx', 'uvx', 'pip', 'apt', 'docker', 'systemctl', 'claude', 'codex', 'gemini', 'code', 'curl',
  'make', 'meson', 'ninja', 'update-alternatives', 'tests/packages/run'];

/** The commands of a page: whole lines of its blocks, and those in its sentences, with what stands for something in capitals. */
export function shownOn(page) {
  const lines = [];
  for (const { kind, text } of blocks(page)) {
    // A line that ends in a pipe goes on in the next one.
    const whole = text.replace(/\|\n\s+/g, '| ').split('\n');
    if (kind === 'sh') lines.push(...whole.map((l) => l.replace(/\s+# .*$/, '').trim()).filter(Boolean));
    if (kind === '') lines.push(...whole.filter((l) => l.startsWith('$ ')).map((l) => l.slice(2)));
  }
  const prose = read(page).replace(/^ *```[^]*?^ *```/gm, '');
  const inline = [...prose.matchAll(/`([^`\n]+)`/g)].map((m) => m[1].replaceAll('\\|', '|')).filter((c) => programs.includes(c.split(' ')[0]) && c.includes(' '));
  return { lines, inline };
}

const pages = files.filter((f) => /^(README|docs\/[a-z]+|packaging\/.*|examples\/.*)\.md$/.test(f));
const all = pages.flatMap((page) => {
  const { lines, inline } = shownOn(page);
  return [...lines.map((text) => ({ page, text })), ...inline.map((text) => ({ page, text, inline: true }))];
});

/** Which test runs which commands, by `line` and `page`; with `in`, only those of blocks. The first row that fits counts. */
export const rows = {
  'packages for npm and Python': { test: 'packages/wrappers', line: /^(npx rialto-bridge|uvx rialto-bridge|pip install rialto-bridge)/ },
  'any package of npm or PyPI': { test: 'e2e/sandbox', line: /^(npx|uvx) PACKAGE$/, says: 'npx' },
  'make run': { test: 'e2e/documents_commands', line: /^make run$/ },
  'targets of make': { test: 'e2e/docs', line: /^make / },
  'the Debian package': { test: 'packages/deb', line: /^(apt install|update-alternatives) / },
  'units of systemd': { test: 'packages/systemd', line: /^systemctl / },
  'the image': { test: 'packages/image', line: /^docker / },
  'the sources': { test: 'packages/source', line: /^(meson|ninja|tests\/packages\/run source)/ },
  'commands of hosts': { test: 'peers/hosts', line: /^(claude|codex|gemini) / },
  start: { test: 'e2e/docs', page: /^docs\/start\.md$/, in: 'blocks' },
  hosts: { test: 'e2e/documents_commands', page: /^docs\/hosts\.md$/, in: 'blocks' },
  servers: { test: 'e2e/documents_commands', page: /^docs\/guide\.md$/, in: 'blocks' },
  'a bus by hand': { test: 'e2e/documents_commands', page: /^docs\/bus\.md$/, in: 'blocks' },
  conductor: { test: 'e2e/documents_commands', page: /^(docs\/conductor|examples\/conductor\/README)\.md$/, in: 'blocks' },
  'what conductors start': { test: 'e2e/acp_shim', line: /^(rialto )?conductor mcp/, says: "'mcp'" },
  'signing in': { test: 'e2e/documents_commands', line: /^(rialto (login|logout|pair)\b|curl -i https)/ },
  'signing in, the page': { test: 'e2e/documents_commands', page: /^docs\/signin\.md$/, in: 'blocks' },
  'the daemon': { test: 'e2e/documents_commands', page: /^(README|docs\/operation)\.md$/, in: 'blocks' },
  'in sentences': { test: 'e2e/documents_commands', line: /^(rialto|conductor|curl --unix-socket) / },
};

const fits = (row, c) => (!row.line || row.line.test(c.text)) && (!row.page || row.page.test(c.page)) && (!row.in || !c.inline);

/** [row, command] of everything that is shown; the row of a command that is in none is undefined. */
export const listed = all.map((c) => [Object.keys(rows).find((name) => fits(rows[name], c)), c]);

/** The commands of a row, each once; only those of `page` if it is given. */
export function commandsOf(name, page) {
  const found = [...new Set(listed.filter(([row, c]) => row === name && (!page || c.page === page)).map(([, c]) => c.text))];
  assert.ok(found.length, `nothing is shown for '${name}'`);
  return found;
}
