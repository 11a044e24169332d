// Compiler options against memory errors that got past everything else. Half of them were in the
// Makefile alone, so a build by meson without make had none of them; the other half was missing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { releaseBin, root } from './lib.mjs';

const readelf = (...args) => execFileSync('readelf', ['-W', ...args, releaseBin]).toString();

test('every file of the program is compiled with what the machine offers', () => {
  const all = JSON.parse(fs.readFileSync(path.join(root, 'build/release/compile_commands.json'), 'utf8'));
  const ours = all.filter(({ output }) => /^src\//.test(output));
  const flags = ['-fstack-protector-strong', '-fstack-clash-protection', '-D_FORTIFY_SOURCE=3', '-fPIE|-fPIC',
    { x64: '-fcf-protection', arm64: '-mbranch-protection=standard' }[process.arch] ?? '-O'];
  assert.ok(ours.length > 100, `${ours.length} files`);
  for (const { command, file } of ours)
    for (const flag of flags) assert.match(command, new RegExp(` (${flag})( |$)`), file);
});

test('the release is position-independent, and its tables are read-only once it runs', () => {
  assert.match(readelf('-h'), /Type:\s+DYN/);
  assert.match(readelf('-d'), /BIND_NOW/);
  assert.match(readelf('-l'), /GNU_RELRO/);
  assert.doesNotMatch(readelf('-l'), /GNU_STACK.*RWE/);
  const symbols = readelf('--dyn-syms');
  assert.match(symbols, /__stack_chk_fail/);
  assert.match(symbols, /__\w+_chk@/);
});
