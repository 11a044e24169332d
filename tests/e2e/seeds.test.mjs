// docs/seeds.md: the source files, the names in them and the tests that it refers to exist.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root } from './lib.mjs';

const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const page = read('docs/seeds.md');
const rows = [...page.matchAll(/^\| ([\d–, ]+) \|(.*)\|$/gm)].map(([, line, rest]) => [line, rest.split(' | ').map((c) => c.trim())]);

// The scenarios of the bus are tables of tests that run on every engine.
const titles = (file) => (file.endsWith('_scenarios')
  ? [...read(`tests/e2e/${file}.mjs`).matchAll(/^  (['`])((?:\\.|(?!\1).)+)\1: async/gm)]
  : [...read(`tests/e2e/${file}.test.mjs`).matchAll(/\btest\((['`])((?:\\.|(?!\1).)+)\1/g)])
  .map((m) => m[2].replaceAll("\\'", "'"));

test('every row of docs/seeds.md names code that is there and tests that are there', () => {
  assert.ok(rows.length > 30);
  for (const [line, [, where, tests]] of rows) {
    for (const [, file] of where.matchAll(/`([a-z]+\/[a-z_/]+\.[ch])`/g)) {
      assert.ok(fs.existsSync(path.join(root, 'src', file)), `${line}: ${file}`);
    }
    // `file` `name`, `name`: the names are in that file
    for (const [, file, names] of where.matchAll(/`([a-z]+\/[a-z_/]+\.c)` ((?:`\w+`(?:, )?)+)/g)) {
      const text = read(`src/${file}`);
      for (const [, name] of names.matchAll(/`(\w+)`/g)) assert.ok(new RegExp(`\\b${name}\\b`).test(text), `${line}: ${name} in ${file}`);
    }
    for (const [, file, names] of tests.matchAll(/`([a-z_]+)`: ((?:`[^`]+`(?:, )?)+)/g)) {
      const known = titles(file);
      for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
        assert.ok(known.some((t) => t.startsWith(name)), `${line}: ${file}: ${name}`);
      }
    }
    if (!/not built/.test(where)) assert.ok(tests, `${line}: no test`);
  }
});
