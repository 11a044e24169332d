// The workflows for GitHub: what actionlint says of them. That the targets they call exist is a test of the documents.
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
