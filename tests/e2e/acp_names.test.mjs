// The list of tests in docs/conductor.md: every name is the title of a test in the file that the list
// gives for it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root } from './lib.mjs';

const page = fs.readFileSync(path.join(root, 'docs/conductor.md'), 'utf8').split('## Tests by name')[1].split('\n## ')[0];
const rows = [...page.matchAll(/^\| (.*) \| `(\S+)` \|$/gm)].map(([, names, file]) => [file, [...names.matchAll(/`([^`]+)`/g)].map((m) => m[1])]);

/** The quoted texts of a test file, in the places where titles are. */
function titles(file) {
  const text = fs.readFileSync(path.join(root, 'tests/e2e', `${file}.test.mjs`), 'utf8');
  const said = [...text.matchAll(/(?:\btest\(|^ {2}\[|, \[)(['`])((?:\\.|(?!\1).)+)\1/gm)].map((m) => m[2].replaceAll("\\'", "'"));
  return said.flatMap((s) => [s, ...s.split(/, |: | \(/)]);
}

test('the tests of docs/conductor.md are there, under their names', () => {
  const wanted = rows.filter(([file]) => !file.startsWith('unit/'));
  assert.ok(wanted.flatMap(([, names]) => names).length > 70);
  const known = new Map();
  for (const [file, names] of wanted) {
    if (!known.has(file)) known.set(file, titles(file));
    for (const name of names) assert.ok(known.get(file).some((s) => s === name || s.startsWith(`${name} `) || s.startsWith(`${name},`) || s.startsWith(`${name}:`)), `${file}: ${name}`);
  }
  for (const [file] of rows.filter(([f]) => f.startsWith('unit/'))) assert.ok(fs.existsSync(path.join(root, 'tests', `${file}.c`)), file);
});
