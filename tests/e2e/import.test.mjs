// `rialto import`, and `rialto check` on files of other programs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { samples } from './hosts_samples.mjs';
import { load, rialto, rialtoBin, root, runCommand, tempDir, writeConfig } from './lib.mjs';

const example = (name) => path.join(root, 'examples', name);

test('every example of another program becomes a file that check finds fine', async () => {
  for (const name of ['claude-desktop.json', 'vscode-mcp.json', 'manifest.yaml', 'aggregator.yaml', 'rockbot.json']) {
    const out = path.join(tempDir(), 'rialto.yaml');
    const imported = await rialto(['import', example(name), '-o', out]);
    assert.equal(imported.code, 0, imported.stderr);
    assert.equal(imported.stdout, '');
    const text = fs.readFileSync(out, 'utf8');
    assert.ok(text.startsWith(`# Made from ${example(name)}.`), text);
    const checked = await rialto(['check', '--json', out]);
    const verdict = JSON.parse(checked.stdout);
    // Variables and programs that this machine lacks are not the file's fault.
    const wrong = verdict.problems.filter((p) => !/^no value for|^there is no program/.test(p.message));
    assert.deepEqual([checked.code, verdict.errors, wrong], [0, 0, []], checked.stdout);
    // The imported file and the original mean the same.
    const effective = async (file) => {
      const { names, servers } = JSON.parse((await rialto(['config', '--json', '-c', file])).stdout);
      return { names, servers };
    };
    assert.deepEqual(await effective(out), await effective(example(name)), name);
  }
});

test('what cannot be carried over is in the comments and on the standard error', async () => {
  const { code, stdout, stderr } = await rialto(['import', example('vscode-mcp.json')]);
  assert.equal(code, 0);
  assert.match(stdout, /^# - line 10, servers\.docs\.headers: '\$\{input:search-key\}' is not asked for here: set the secret or variable SEARCH_KEY$/m);
  assert.match(stdout, /^ {6}X-Key: "\$\{SEARCH_KEY\}"$/m);
  assert.match(stderr, /SEARCH_KEY/);
  assert.equal((await rialto(['import', '-q', example('vscode-mcp.json')])).stderr, '');
});

// These were silent: the text of opencode went to the server as it stands, in place of the token; a tool that Codex asked
// about ran without a question; and Cursor's variable was one without a value.
test('what a host fills in or asks for, and nobody does here, is told', async () => {
  for (const [host, name, text, told] of [
    ['opencode', 'opencode.json', '{"mcp":{"a":{"type":"remote","url":"https://h/mcp","headers":{"Authorization":"Bearer {file:~/.tok}"}}}}', /headers: \{file:PATH\} is not read here/],
    ['codex', 'cx.toml', '[mcp_servers.a]\ncommand = "true"\n[mcp_servers.a.tools.rm]\napproval_mode = "prompt"\n', /a\.tools: left out: approvals are not carried over/],
    ['cursor', 'cur.json', '{"mcpServers":{"a":{"command":"true","args":["${workspaceFolderBasename}"]}}}', /args: '\$\{workspaceFolderBasename\}' has no meaning here/],
  ]) {
    const file = writeConfig(tempDir(), text, name);
    const { code, stdout, stderr } = await rialto(['import', '--host', host, file]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, told);
    assert.match(stdout.split('\n').filter((line) => line.startsWith('#')).join(' '), told, 'in the comments, too');
  }
});

test('a file with errors is not imported: status 2, nothing written', async () => {
  const file = writeConfig(tempDir(), { mcpServers: { a: { command: 5 } } }, 'mcp.json');
  const out = path.join(tempDir(), 'rialto.yaml');
  const { code, stdout, stderr } = await rialto(['import', file, '-o', out]);
  assert.equal(code, 2);
  assert.equal(stdout, '');
  assert.match(stderr, /mcpServers\.a\.command: expected text/);
  assert.ok(!fs.existsSync(out));
  assert.equal((await rialto(['import', '/no/such/file'])).code, 2);
  assert.equal((await rialto(['import'])).code, 2);
  assert.equal((await rialto(['import', file, file])).code, 2);
});

test('a place that cannot be written: status 1', async () => {
  const { code, stderr } = await rialto(['import', example('manifest.yaml'), '-o', '/no/such/folder/x']);
  assert.equal(code, 1);
  assert.match(stderr, /cannot write \/no\/such\/folder\/x/);
});

// The existing file was truncated first: on a full disk it was lost, with nothing instead of it.
test('a file in its place is replaced whole and kept as OUT.bak, or left as it was', async () => {
  const out = writeConfig(tempDir(), 'servers: {}\n', 'rialto.yaml');
  // As on a full disk: no file may be larger than one block.
  const full = ['-c', 'trap "" XFSZ; ulimit -f 1; exec "$0" "$@"', rialtoBin];
  const failed = await runCommand('/bin/sh', [...full, 'import', example('vscode-mcp.json'), '-o', out]);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /cannot write .*rialto\.yaml/);
  assert.equal(fs.readFileSync(out, 'utf8'), 'servers: {}\n');
  const fresh = path.join(path.dirname(out), 'fresh.yaml');
  assert.equal((await runCommand('/bin/sh', [...full, 'import', example('vscode-mcp.json'), '-o', fresh])).code, 1);
  assert.deepEqual(fs.readdirSync(path.dirname(out)), ['rialto.yaml'], 'no half of a file stays');

  assert.equal((await rialto(['import', example('vscode-mcp.json'), '-o', out])).code, 0);
  assert.match(fs.readFileSync(out, 'utf8'), /^# Made from/);
  assert.equal(fs.readFileSync(`${out}.bak`, 'utf8'), 'servers: {}\n');
});

test('check shows the setup instructions of a manifest', async () => {
  const { code, stdout } = await rialto(['check', example('manifest.yaml')]);
  assert.equal(code, 0);
  assert.match(stdout, /fine: 3 servers(, \d+ warnings?)?\nsetup:\n {2}Put the token for api\.example\.com into the environment variable GITHUB_TOKEN\.\n$/);
  const json = JSON.parse((await rialto(['check', '--json', example('manifest.yaml')])).stdout);
  assert.match(json.setup_instructions, /GITHUB_TOKEN/);
});

test('JSON with comments and trailing commas is taken, of other programs and of ours', async () => {
  for (const [name, text] of [
    ['mcp.json', '{ // x\n "mcpServers": {"a": {"command": "true",},}, }'],
    ['rialto.json', '{ // x\n "servers": {"a": {"command": "true",},}, /* y */ "listen": ":0" }'],
  ]) {
    const checked = await rialto(['check', writeConfig(tempDir(), text, name)]);
    assert.equal(checked.code, 0, checked.stdout);
    assert.doesNotMatch(checked.stdout, /warning/);
  }
  const ours = writeConfig(tempDir(), '{ // x\n "listen": ":0" "names": "bare"}', 'rialto.json');
  const refused = await rialto(['check', ours]);
  assert.equal(refused.code, 2);
  assert.match(refused.stdout, /rialto\.json:2:17: not valid JSON: is a comma missing/);
});

// --- the files of the hosts that setup knows ---

for (const [host, sample] of Object.entries(samples)) {
  test(`the servers of ${host}, with variables and times`, async () => {
    const dir = tempDir();
    const file = path.join(dir, sample.file);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, sample.text);
    const out = path.join(dir, 'rialto.yaml');
    const { code, stderr } = await rialto(['import', file, '-o', out]);
    assert.equal(code, 0, stderr);
    const { servers } = load('yaml').parse(fs.readFileSync(out, 'utf8'));
    assert.deepEqual(Object.keys(servers), Object.keys(sample.servers), fs.readFileSync(out, 'utf8'));
    for (const [name, expected] of Object.entries(sample.servers)) {
      const got = Object.fromEntries(Object.keys(expected).map((k) => [k, servers[name][k]]));
      assert.deepEqual(got, expected, `${name}: ${JSON.stringify(servers[name])}`);
    }
    const checked = await rialto(['check', out]);
    assert.equal(checked.code, 0, checked.stdout);
    // Where the path does not tell the host, --host does.
    const named = await rialto(['import', '-q', '--host', host, '-'], { input: sample.text });
    assert.equal(named.stdout.replace(/^#.*\n/gm, ''), fs.readFileSync(out, 'utf8').replace(/^#.*\n/gm, ''));
  });
}

test('a host that is not known', async () => {
  const { code, stderr } = await rialto(['import', '--host', 'notepad', '-']);
  assert.equal(code, 2);
  assert.match(stderr, /there is no host 'notepad'/);
});
