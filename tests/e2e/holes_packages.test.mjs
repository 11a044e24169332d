// The npm packages that the tests and the bench run were whatever the registry sent that day: only
// the direct ones had a version, and none a hash.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { npmFolder, root } from './lib.mjs';

// Hashes of these are not known: they are not on every registry, and are installed on arm64 alone.
const unknown = ['node_modules/@kilocode/cli-linux-arm64', 'node_modules/opencode-linux-arm64'];

for (const folder of ['tests', 'tests/fixture/acp/agents', 'bench'])
  test(`${folder}: every package has a version and a hash, and none an address`, () => {
    const read = (name) => JSON.parse(fs.readFileSync(path.join(root, folder, name), 'utf8'));
    const wanted = read('package.json');
    const { packages: { '': own, ...packages }, lockfileVersion } = read('package-lock.json');
    assert.equal(lockfileVersion, 3, 'what npm 7 and newer read');
    assert.deepEqual(own.dependencies, wanted.dependencies);
    assert.deepEqual(own.optionalDependencies, wanted.optionalDependencies);
    for (const [name, entry] of Object.entries(packages)) {
      assert.match(entry.version, /^\d+\.\d+\.\d+/, name);
      if (!unknown.includes(name)) assert.match(entry.integrity, /^sha512-/, name);
      assert.ok(!('resolved' in entry), `${name} names a registry`);
    }
  });

test('what the tests use was installed from the lock file', () => {
  const lock = fs.readFileSync(path.join(root, 'tests/package-lock.json'));
  assert.deepEqual(fs.readFileSync(path.join(npmFolder, 'installed.json')), lock);
});
