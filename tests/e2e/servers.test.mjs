// Servers from the command line: add, add-json, remove, rename, enable and disable edit the configuration file
// and nothing else in it; start, stop and restart tell the running daemon.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, exchange, fake, fakeBin, logged, rialto, serve, tempDir, until } from './lib.mjs';

/** A home folder for the test: {run, file, text()}. */
function home() {
  const dir = tempDir();
  const file = path.join(dir, 'config/rialto/rialto.yaml');
  const env = { HOME: dir, XDG_CONFIG_HOME: path.join(dir, 'config'), XDG_RUNTIME_DIR: dir, XDG_STATE_HOME: path.join(dir, 'state') };
  return {
    dir, file, env,
    run: (...args) => rialto(args, { env, cwd: dir }),
    text: () => fs.readFileSync(file, 'utf8'),
  };
}

test('the first server makes the file of its user, for nobody else, and says so', async () => {
  const h = home();
  const added = await h.run('add', 'files', '-e', 'A=1', '--env', 'B=x y', '--', 'npx', '-y', 'some-server', '--flag');
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /^made .*rialto\.yaml, readable for you alone\nadded 'files' in .*rialto\.yaml\n$/);
  assert.equal(fs.statSync(h.file).mode & 0o777, 0o600);
  assert.deepEqual(JSON.parse((await h.run('config', '--json')).stdout).servers.files.args, ['-y', 'some-server', '--flag']);
  assert.match(h.text(), /B: "x y"/);
  assert.equal((await h.run('remove', 'files')).code, 0);
  assert.equal(h.text(), 'servers: {}\n', 'no servers: a daemon takes an empty file for one that is just being written');
});

test('the syntax of claude mcp add', async () => {
  const h = home();
  for (const args of [
    ['add', '--transport', 'http', 'notion', 'https://mcp.example.com/mcp'],
    ['add', '-s', 'user', '-t', 'sse', 'asana', 'https://mcp.example.com/sse', '--header', 'X-Key: abc def', '-H', 'Y:z'],
    ['add', '--scope', 'local', 'airtable', '--env', 'AIRTABLE_API_KEY=k', '--', 'npx', '-y', 'airtable-mcp-server'],
    ['add', 'plain', 'https://mcp.example.com/'],
    ['add-json', 'weather', '{"type":"stdio","command":"/path/to/cli","args":["--api-key","abc123"],"env":{"CACHE_DIR":"/tmp"}}'],
    ['add-json', '-s', 'user', 'remote', '{"type":"http","url":"https://api.example.com/mcp","headers":{"Authorization":"Bearer t"}}'],
  ]) {
    const { code, stderr } = await h.run(...args);
    assert.equal(code, 0, `${args}: ${stderr}`);
  }
  const { servers } = JSON.parse((await h.run('config', '--json')).stdout);
  assert.deepEqual(Object.keys(servers), ['notion', 'asana', 'airtable', 'plain', 'weather', 'remote']);
  assert.equal(servers.notion.transport, 'streamable-http');
  assert.equal(servers.asana.transport, 'sse');
  assert.match(h.text(), /headers:\n {6}X-Key: "abc def"\n {6}"?Y"?: z\n/);
  assert.match(h.text(), /weather:\n {4}command: \/path\/to\/cli\n {4}args:\n {6}- "--api-key"\n {6}- abc123\n {4}env:\n {6}CACHE_DIR: \/tmp\n/);
  assert.equal((await h.run('add', '-s', 'project', 'here', '--', 'x')).code, 0);
  assert.equal(fs.readFileSync(path.join(h.dir, 'rialto.yaml'), 'utf8'), 'servers:\n  here:\n    command: x\n');
  for (const [wrong, why] of [
    [['add'], /which server/], [['add', 'x'], /which server\? Give its address/], [['add', 'a b', '--', 'x'], /cannot be a name/],
    [['add', 'x', '-e', 'novalue', '--', 'y'], /should be NAME=VALUE/], [['add', '-t', 'pigeon', 'x', 'y'], /no transport 'pigeon'/],
    [['add', '-s', 'planet', 'x', 'y'], /no scope 'planet'/], [['add', 'x', 'https://h/', 'more'], /unexpected argument 'more'/],
    [['add-json', 'x', '[1]'], /not a JSON object/], [['add-json', 'x', '{"type":"stdio"}'], /neither 'command' nor 'url'/],
  ]) {
    const { code, stderr } = await h.run(...wrong);
    assert.equal(code, 2, `${wrong}`);
    assert.match(stderr, why);
  }
});

// RockBot's argGuards become rules, which stand beside the servers of a file and not in an entry. add-json took
// the entry alone, without a word, and whoever had bounded a server to /data got one that may write anywhere.
test('add-json refuses an entry whose bounds it cannot write', async () => {
  const h = home();
  const guard = { handler: 'path-prefix', tools: ['write'], options: { args: ['path'], allowedPrefixes: ['/data'], requireArgs: true } };
  const entry = { command: 'mcp-files', argGuards: [guard] };
  const { code, stderr } = await h.run('add-json', 'files', JSON.stringify(entry));
  assert.equal(code, 2);
  assert.match(stderr, /'files' has bounds that become 'rules'[^]*hint: .*rialto import/);
  assert.equal(fs.existsSync(h.file), false, 'nothing is written');
  assert.equal((await h.run('add-json', 'files', JSON.stringify({ ...entry, argGuards: [] }))).code, 0, 'no bounds at all');
});

// "-" is the standard input for commands that read; 'add' made a file of that name. And of -s and -c the second was
// ignored without a word, so that the server was in another file than the one that was named.
test('which file is edited is said once, and is a file', async () => {
  const h = home();
  for (const [args, why] of [
    [['add', 'x', '-c', '-', '--', 'y'], /the standard input cannot be edited/],
    [['remove', 'x', '-c', '-'], /the standard input cannot be edited/],
    [['add', 'x', '-s', 'user', '-c', 'F', '--', 'y'], /--scope and --config both name a file/],
    [['add-json', 'x', '-c', 'F', '-s', 'project', '{"command":"y"}'], /--scope and --config both name a file/],
  ]) {
    const { code, stderr } = await h.run(...args);
    assert.equal(code, 2, `${args}`);
    assert.match(stderr, why);
  }
  assert.deepEqual(fs.readdirSync(h.dir).filter((f) => f === '-' || f === 'F'), []);
});

const samples = {
  'rialto.yaml': '# mine\nlisten: 127.0.0.1:0   # a free one\n\nservers:\n  # the first\n  a:\n    command: x  # why\n\n  b: {command: y}\n\n# the end\nnames: bare\n',
  'rialto.json': '{\n  // mine\n  "listen": "127.0.0.1:0", /* a free one */\n  "servers": {\n    "a": {"command": "x"}, // why\n    "b": {"command": "y"},\n  },\n}\n',
  'mcp.json': '{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}',
};

for (const [name, before] of Object.entries(samples)) {
  test(`every other byte of ${name} stays, and what is undone leaves the same bytes`, async () => {
    const h = home();
    const file = path.join(h.dir, name);
    fs.writeFileSync(file, before, { mode: 0o640 });
    const step = async (...args) => {
      const { code, stderr } = await h.run(...args);
      assert.equal(code, 0, stderr);
      return fs.readFileSync(file, 'utf8');
    };
    const added = await step('add', 'new', '--', 'prog', 'arg');
    for (const line of before.split('\n').filter((l) => l.includes('//') || l.includes('#'))) assert.ok(added.includes(line), line);
    assert.deepEqual(Object.keys(JSON.parse((await h.run('config', '--json')).stdout).servers), ['a', 'b', 'new']);
    const renamed = await step('rename', 'new', 'newer');
    assert.equal(renamed, added.replace('new', 'newer'));
    assert.equal(await step('rename', 'newer', 'new'), added);
    assert.equal(await step('remove', 'new'), before);
    const off = await step('disable', 'a');
    assert.equal(JSON.parse((await h.run('config', '--json')).stdout).servers.a.enabled, false);
    assert.equal(await step('disable', 'a'), off, 'twice is once');
    assert.equal(await step('enable', 'a'), before);
    assert.equal(await step('enable', 'a'), before);
    assert.equal(fs.statSync(file).mode & 0o777, 0o640);
  });
}

test('what cannot be edited safely is refused with the lines to paste; the file is untouched', async () => {
  for (const text of ['servers: {a: {command: x}}\n', 'x: &all\n  a: {command: x}\nservers: *all\n', 'listen: 127.0.0.1:0\n---\nservers: {}\n']) {
    const h = home();
    const file = path.join(h.dir, 'rialto.yaml');
    fs.writeFileSync(file, text);
    const { code, stdout, stderr } = await h.run('add', 'b', '--', 'y', '1');
    assert.equal(code, 1, text);
    assert.equal(stdout, 'servers:\n  b:\n    command: "y"\n    args:\n      - "1"\n');
    assert.match(stderr, /by hand/);
    assert.equal(fs.readFileSync(file, 'utf8'), text);
    assert.deepEqual(fs.readdirSync(h.dir).filter((f) => f.startsWith('rialto')), ['rialto.yaml']);
  }
  const h = home();
  fs.writeFileSync(path.join(h.dir, 'rialto.yaml'), 'servers:\n  abc: {command: x}\nviews: {v: {servers: [abc]}}\n');
  for (const [args, why] of [
    [['remove', 'abd'], /no 'abd'[^]*did you mean 'abc'/], [['add', 'abc', '--', 'y'], /'abc' already/],
    [['remove', 'abc'], /would not be valid: line 2, views\.v: there is no server 'abc'/], [['disable', 'none'], /no 'none'/],
    [['disable', 'abc'], /by hand/],
  ]) {
    const { code, stderr } = await h.run(...args);
    assert.equal(code, 1, `${args}`);
    assert.match(stderr, why);
  }
});

// Cline writes `disabled` into each entry. 'enable' took out `enabled`, which was not there, said "enabled" and left the
// file as it was; 'disable' put it beside `disabled: false`, and that was an error.
test('a server is switched by the key that its file has', async () => {
  const h = home();
  const file = path.join(h.dir, 'mcp.json');
  const before = '{"mcpServers": {"a": {"command": "x", "disabled": true}, "b": {"command": "x", "disabled": false}, "c": {"command": "x", "isActive": true}}}\n';
  fs.writeFileSync(file, before);
  const run = async (...args) => {
    const { code, stderr } = await h.run(...args);
    assert.equal(code, 0, `${args}: ${stderr}`);
    return JSON.parse((await h.run('config', '--json')).stdout).servers;
  };
  assert.equal((await run('enable', 'b')).b.enabled ?? true, true);
  assert.equal(fs.readFileSync(file, 'utf8'), before);
  assert.equal((await run('enable', 'a')).a.enabled ?? true, true);
  assert.equal((await run('disable', 'b')).b.enabled, false);
  assert.equal((await run('disable', 'c')).c.enabled, false);
  assert.equal(fs.readFileSync(file, 'utf8'), before.replace('true', '#').replace('false', 'true').replace('#', 'false').replace('"isActive": true', '"isActive": false'));
  await run('disable', 'a');
  await run('enable', 'b');
  await run('enable', 'c');
  assert.equal(fs.readFileSync(file, 'utf8'), before, 'and back');
  fs.rmSync(file);
  const mine = 'enabled_servers: [x]\nservers:\n  x:\n    command: x\n  y:\n    command: x\n';
  fs.writeFileSync(path.join(h.dir, 'rialto.yaml'), mine);
  const { code, stderr } = await h.run('enable', 'y');
  assert.equal(code, 1);
  assert.match(stderr, /'y' would still be disabled[^]*hint: .*enabled_servers/);
  assert.equal(fs.readFileSync(path.join(h.dir, 'rialto.yaml'), 'utf8'), mine);
});

// Their servers stand elsewhere: 'add' wrote a map `servers` that nobody reads, and said "added"; 'remove' said that
// there is no 'a', and asked whether 'a' was meant.
test('a file whose servers cannot be edited stays as it is, and the command says so', async () => {
  for (const [name, text] of [
    ['zed/settings.json', '{"theme":"x","context_servers":{"a":{"command":"x"}}}'],
    ['opencode/opencode.json', '{"mcp":{"a":{"type":"local","command":["x"]}}}'],
    ['goose/config.yaml', 'extensions:\n  a: {name: a, type: stdio, cmd: x, args: []}\n'],
  ]) {
    const h = home();
    const file = path.join(h.dir, 'config', name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
    for (const args of [['add', '-c', file, 'new', '--', 'cat'], ['add-json', '-c', file, 'new', '{"command":"cat"}'], ['remove', 'a', '-c', file], ['rename', 'a', 'b', '-c', file], ['disable', 'a', '-c', file]]) {
      const { code, stdout, stderr } = await h.run(...args);
      assert.equal(code, 1, `${name}: ${args}`);
      assert.match(stderr, /the servers of another program, which are not edited here[^]*hint: .*rialto import/, `${name}: ${args}`);
      assert.doesNotMatch(stdout + stderr, /did you mean|added/);
      assert.equal(fs.readFileSync(file, 'utf8'), text);
    }
  }
});

// Only the key was renamed: a rule that denied calls of 'bank' was about nobody then, and 'money' took them.
test('a server is not renamed away from its rules', async () => {
  const h = home();
  const file = path.join(h.dir, 'rialto.yaml');
  const text = (rules) => `servers:\n  bank: {command: x}\nrules:\n${rules}`;
  for (const server of ['bank', 'BANK', 'b?nk']) {
    const before = text(`  - {tool: look, then: allow}\n  - {server: "${server}", tool: send, then: deny}\n`);
    fs.writeFileSync(file, before);
    const { code, stderr } = await h.run('rename', 'bank', 'money');
    assert.equal(code, 1, server);
    assert.match(stderr, /rule 2 is about 'bank', and would not be about 'money'[^]*hint: .*change .*rule/);
    assert.equal(fs.readFileSync(file, 'utf8'), before);
  }
  fs.writeFileSync(file, text('  - {server: "*", tool: send, then: deny}\n  - {tool: look, then: deny}\n'));
  const { code, stderr } = await h.run('rename', 'bank', 'money');
  assert.equal(code, 0, stderr);
});

// Each command read the file, changed it and wrote it back: of several at once, the last one won.
test('ten at once lose nothing', async () => {
  const h = home();
  assert.equal((await h.run('add', 'first', '--', 'x')).code, 0);
  const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
  const codes = await Promise.all(names.map(async (name) => (await h.run('add', name, '--', 'x')).code));
  assert.deepEqual(codes, names.map(() => 0));
  const { servers } = JSON.parse((await h.run('config', '--json')).stdout);
  assert.deepEqual(Object.keys(servers).toSorted(), ['first', ...names].toSorted());
});

test('the running daemon follows at once, and starts, stops and restarts a server', async (t) => {
  const daemon = await serve(t, { servers: { one: fake() } });
  const env = { XDG_RUNTIME_DIR: daemon.dir };
  const run = (...args) => rialto([...args, '-c', daemon.config], { env });
  const client = await new HttpClient(daemon.url).connect();
  const names = async () => (await client.request('tools/list')).result.tools.map((x) => x.name.split('__')[0]);
  assert.equal((await rialto(['add', '-c', daemon.config, 'two', '--', fakeBin], { env })).code, 0);
  await until('tools of the new server', async () => (await names()).includes('two'));
  assert.equal((await run('remove', 'two')).code, 0);
  await until('no tools of it', async () => !(await names()).includes('two'));

  const state = async () => JSON.parse((await exchange(`${daemon.origin}/api/servers/one`, { method: 'GET' })).text).state;
  assert.match((await run('stop', 'one')).stdout, /^one: /);
  await until('stopped', async () => await state() === 'stopped');
  assert.equal((await run('start', 'one')).code, 0);
  await until('up', async () => await state() === 'up');
  assert.equal(JSON.parse((await run('restart', 'one', '--json')).stdout).name, 'one');
  await logged(daemon, /one.*restart/);
  const unknown = await run('stop', 'onne');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /onne|no such|server/);
  assert.equal((await run('start')).code, 2);
});
