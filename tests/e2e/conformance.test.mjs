// The official conformance suite through rialto, with our fixture server as its upstream: each era of the
// fixture, on each transport, against both revisions; and rialto's own client against the suite's
// servers. What does not pass is named here with its reason, and in docs/conformance.md for people;
// a scenario that fails without being named, or passes although it is named, fails the test.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { HttpClient, npmFolder, root, runCommand, serve, tempDir } from './lib.mjs';
import { fixtureEntry, fixtureOverHttp, node22 } from './peers.mjs';

const suite = path.join(npmFolder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const requirements = { '2025-11-25': 30, '2026-07-28': 37 };
const table = [];

after(() => {
  console.log('fixture behind       suite run     required');
  for (const row of table) console.log(`${row[0].padEnd(20)} ${row[1].padEnd(13)} ${row[2]}`);
});

// The lists of the suite itself, so that a newer suite cannot shrink what we claim.
function required(revision, side) {
  const text = fs.readFileSync(path.join(path.dirname(suite), `../requirements/${revision}.yaml`), 'utf8');
  const section = text.split(new RegExp(`^${side}:$`, 'm'))[1].split(/^\w/m)[0];
  return [...section.matchAll(/^ {2}- (\S+)$/gm)].map((m) => m[1]);
}

// "✓ name: 2 passed, 0 failed" for each scenario.
function verdicts(text) {
  return new Map([...text.matchAll(/^([✓✗]) ([\w/-]+): \d+ passed, \d+ failed/gm)].map((m) => [m[2], m[1] === '✓']));
}

// --- rialto as a server ---

const legacyAsks = {
  'input-required-result-basic-elicitation':
    'wants the key "user_name", but a server of the initialize era asks with a request id and no key',
  'input-required-result-basic-list-roots':
    'a shared server of the initialize era is not told that there are roots: it would ask at once, and nobody in particular',
  'input-required-result-multiple-input-requests':
    'one of its three questions is for the roots',
};

const pairs = [
  { era: 'legacy', revision: '2025-11-25' },
  { era: 'modern', revision: '2026-07-28' },
  { era: 'modern', revision: '2025-11-25' },
  { era: 'legacy', revision: '2026-07-28', missing: legacyAsks },
];

for (const over of ['stdio', 'http']) {
  for (const { era, revision, missing = {} } of pairs) {
    test(`${revision} with a ${era} fixture behind ${over}`, async (t) => {
      const fixture = over === 'stdio' ? fixtureEntry(era) : await fixtureOverHttp(t, era);
      const server = await serve(t, { servers: { fixture } });
      const url = `${server.origin.replace('127.0.0.1', 'localhost')}/mcp/fixture`;
      const client = await new HttpClient(url).connect();
      await client.waitFor('echo');
      await client.close();

      const { code, stdout, stderr } = await runCommand(node22,
        [suite, 'server', '--url', url, '--requirements', revision], { timeout: 120_000 });
      const found = verdicts(stdout);
      const wanted = required(revision, 'server');
      assert.equal(wanted.length, requirements[revision]);
      const failed = wanted.filter((name) => !found.get(name));
      table.push([`${era}, ${over}`, revision, `${wanted.length - failed.length}/${wanted.length}`]);
      assert.deepEqual(failed.sort(), Object.keys(missing).sort(), `${stdout}\n${stderr}`);
      assert.equal(code, failed.length ? 1 : 0, stderr);
    });
  }
}

// --- rialto as a client ---

// Scenarios about OAuth: the driver also plays the person who signs in, and rialto keeps its tokens in
// a temporary folder. The suite runs extensions and old revisions only when forced to.
const old = ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback'];
const extensions = ['auth/client-credentials-jwt', 'auth/client-credentials-basic',
  'auth/enterprise-managed-authorization', 'auth/wif-jwt-bearer'];
const signIns = [
  ...Object.keys(requirements).flatMap((revision) => required(revision, 'client')
    .filter((name) => name.startsWith('auth/')).map((name) => [revision, name])),
  ...old.map((name) => ['2025-03-26', name]),
  ...extensions.flatMap((name) => Object.keys(requirements).map((revision) => [revision, name, '--force'])),
];

test('all scenarios about signing in are tried', () => {
  assert.equal(signIns.filter(([revision]) => revision === '2025-11-25').length, 14 + extensions.length);
  assert.equal(signIns.filter(([revision]) => revision === '2026-07-28').length, 25 + extensions.length);
});

describe('rialto signs in', { concurrency: 2 }, () => {
  for (const [revision, name, ...more] of signIns) {
    test(`${revision} ${name}`, async () => {
      const driver = `${node22} ${path.join(root, 'tests/fixture/driver.mjs')}`;
      const { code, stdout, stderr } = await runCommand(node22,
        [suite, 'client', '--command', driver, '--scenario', name, '--spec-version', revision, '--timeout', '90000', ...more],
        { timeout: 120_000, env: { XDG_STATE_HOME: tempDir() } });
      assert.equal(code, 0, `${stdout}\n${stderr}`);
      assert.match(stdout + stderr, /OVERALL: PASSED/);
    });
  }
});

const unscored = { '2026-07-28': ['json-schema-2020-12-preservation'] };

describe('rialto as a client', { concurrency: 2 }, () => {
  for (const revision of Object.keys(requirements)) {
    const names = required(revision, 'client').filter((name) => !name.startsWith('auth/'));
    for (const name of [...names, ...unscored[revision] ?? []]) {
      for (const agent of ['legacy', 'modern']) {
        test(`${revision} ${name}, ${agent} agent`, async () => {
          const driver = `${node22} ${path.join(root, 'tests/fixture/driver.mjs')} --agent ${agent}`;
          const { code, stdout, stderr } = await runCommand(node22,
            [suite, 'client', '--command', driver, '--scenario', name, '--spec-version', revision],
            { timeout: 60_000 });
          assert.equal(code, 0, `${stdout}\n${stderr}`);
          assert.match(stdout + stderr, /OVERALL: PASSED/);
        });
      }
    }
  }
});

test('docs/conformance.md gives a reason for every missing point', () => {
  const page = fs.readFileSync(path.join(root, 'docs/conformance.md'), 'utf8');
  for (const name of Object.keys(legacyAsks)) assert.match(page, new RegExp(`\`${name}\``), name);
});
