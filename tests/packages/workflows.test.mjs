// The workflows for GitHub, checked by actionlint. tests/e2e/docs.test.mjs checks that their targets exist.
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { run } from './lib.mjs';

test('actionlint finds no fault in the workflows', (t) => {
  if (spawnSync('actionlint', ['-version']).status !== 0) {
    t.skip('actionlint is not installed, and Debian has no package of it');
    return;
  }
  run('actionlint', ['-no-color']);
});
