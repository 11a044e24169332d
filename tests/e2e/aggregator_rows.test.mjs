// What the aggregator of assistant4's design must do, row by row (seed 003 in docs/seeds.md). Each
// test here is the proof of one row with the real program; more detailed tests are in other files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  descendants, fake, fakeBin, HttpClient, isAlive, logged, rialto, root, serve, serveAndConnect,
  sleep, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { fixtureEntry } from './peers.mjs';
import { listen, readBody } from './upstream_lib.mjs';

/** `rialto serve` with a file of any dialect, and a client. */
async function serveFile(t, name, content, wanted, env = {}) {
  const file = writeConfig(tempDir(), content, name);
  const server = await serve(t, null, { args: ['-c', file], env });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor(...wanted);
  return { server, client, file };
}

const manifest = (entries, more = '') => `id: mcp\nconfig:\n  servers:\n${entries.map((e) => `    - ${e}\n`).join('')}${more}`;

test('§11.2 row 1: one config, N servers; what is wrong with it is an error with its line', async () => {
  const file = writeConfig(tempDir(), manifest([
    '{alias: good, transport: stdio, command: x, args: [y]}',
    '{transport: stdio, command: x}',
    '{alias: good, transport: sse, url: "http://127.0.0.1:9/sse"}',
    '{alias: pigeon, transport: pigeon, command: x}',
    '{alias: empty, transport: stdio}',
    '{alias: nowhere, transport: streamable-http}',
  ]), 'manifest.yaml');
  const { code, stdout } = await rialto(['check', file]);
  assert.equal(code, 2);
  for (const expected of [/:5:\d+: config\.servers\[1\]: .*'alias'/, /:6:\d+: config\.servers\[2\]: the alias 'good' is used twice, first on line 4/,
    /:7:\d+: config\.servers\.pigeon\.transport: unknown transport 'pigeon'; expected stdio, sse or streamable-http/,
    /:8:\d+: config\.servers\.empty: expected the key 'command'/, /:9:\d+: config\.servers\.nowhere: .*'url'/, /5 errors/]) {
    assert.match(stdout, expected);
  }
  // The lenient dialect leaves the entry out and goes on.
  const lenient = writeConfig(tempDir(), { mcpServers: { empty: { type: 'stdio' }, good: { command: 'x' } } }, 'mcp.json');
  const checked = await rialto(['check', lenient]);
  assert.equal(checked.code, 0);
  assert.match(checked.stdout, /warning: mcpServers\.empty: server left out/);
});

test('§11.2 row 2: every dialect is taken as it is, and turned into ours by import', async (t) => {
  const dialects = {
    'mcp.json': { mcpServers: { a: { command: fakeBin, args: ['--name', 'a'], allowedTools: ['echo', 'whoami'] }, b: { command: fakeBin, disabled: true } } },
    'manifest.yaml': `${manifest([`{alias: a, transport: stdio, command: ${fakeBin}, args: [--name, a], tool_filter: [echo, whoami], cache_tools: true}`,
      `{alias: b, transport: stdio, command: ${fakeBin}, args: [--name, b], require_approval: {always: [echo]}}`])}`
      + '  enabled_servers: [a]\nsetup_instructions: |\n  Nothing to do.\nenabled: true\n',
    'vscode/mcp.json': `{ // written by the editor\n "servers": {"a": {"type": "stdio", "command": "${fakeBin}", "args": ["--name", "a",], "allow": ["echo", "whoami"]},}, "inputs": [] }`,
    'rialto.yaml': `servers: {a: {command: ${fakeBin}, args: [--name, a], allow: [echo, whoami]}}\n`,
  };
  for (const [name, content] of Object.entries(dialects)) {
    const names = name === 'manifest.yaml' ? ['mcp_a_echo', 'mcp_a_whoami'] : ['a__echo', 'a__whoami'];
    const { client, file } = await serveFile(t, path.basename(name), content, names);
    assert.deepEqual(await client.toolNames(), names, name);

    const out = path.join(tempDir(), 'rialto.yaml');
    const imported = await rialto(['import', file, '-o', out]);
    assert.equal(imported.code, 0, imported.stderr);
    assert.equal(fs.statSync(out).mode & 0o777, 0o600, 'it may hold secrets');
    const checked = await rialto(['check', out]);
    assert.equal(checked.code, 0, checked.stdout);
    assert.doesNotMatch(checked.stdout, /warning/);
    if (name === 'manifest.yaml') assert.match(checked.stdout, /setup:\n {2}Nothing to do\./);
    const listed = await rialto(['tools', '--json', '-c', out]);
    assert.deepEqual(JSON.parse(listed.stdout).map((tool) => tool.name), names, name);
  }
  const { code, stdout } = await rialto(['import', '-'], { input: JSON.stringify(dialects['mcp.json']) });
  assert.equal(code, 0);
  assert.match(stdout, /^servers:\n {2}a:\n/m);
});

test('§11.2 row 3: secrets from folder, command and environment; a missing one skips its server', async (t) => {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'secrets'));
  fs.writeFileSync(path.join(dir, 'secrets/FROM_FILE'), 'file-value-1\n');
  fs.writeFileSync(path.join(dir, 'ask'), '#!/bin/sh\n[ "$1" = FROM_COMMAND ] && echo command-value-2\n', { mode: 0o755 });
  const env = (name) => ({ ...fake('--name', name), env: { A: '${FROM_FILE}', B: 'x${FROM_COMMAND}y', C: '${FROM_ENV}' } });
  const server = await serve(t, {
    secrets: { directory: path.join(dir, 'secrets'), command: [path.join(dir, 'ask')] },
    servers: { fine: env('fine'), poor: { ...fake(), args: ['--name', '${NO_SUCH_SECRET}'] } },
  }, { env: { FROM_ENV: 'env-value-3', FROM_FILE: 'not this one' } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('fine__env');
  for (const [name, value] of [['A', 'file-value-1'], ['B', 'xcommand-value-2y'], ['C', 'env-value-3']]) {
    assert.equal(await client.text('fine__env', { name }), value);
  }
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('poor__')));
  await logged(server, /poor.*NO_SUCH_SECRET/);
  assert.doesNotMatch(server.stderr(), /file-value-1|command-value-2|env-value-3/);
});

test('§11.2 row 4: names by pattern, its own default for the manifest, clashes renamed', async (t) => {
  const { client } = await serveFile(t, 'manifest.yaml', manifest([
    `{alias: a_b, transport: stdio, command: ${fakeBin}, args: [--tools, 1], tool_allowlist: [echo]}`,
    `{alias: a, transport: stdio, command: ${fakeBin}, args: [--tools, 1], tool_allowlist: [echo]}`,
  ]), ['mcp_a_b_echo', 'mcp_a_echo']);
  assert.deepEqual(await client.toolNames(), ['mcp_a_b_echo', 'mcp_a_echo']);
  const bare = await serveAndConnect(t, { names: 'bare', servers: { a: { ...fake('--name', 'a'), allow: ['whoami'] }, b: { ...fake('--name', 'b'), allow: ['whoami'] } } }, ['whoami']);
  const names = await until('both', async () => (await bare.client.toolNames()).length === 2 && bare.client.toolNames());
  assert.equal(names[0], 'whoami');
  assert.match(names[1], /^whoami-[0-9a-f]{8}$/);
  assert.equal((await bare.client.call(names[1])).result.structuredContent.name, 'b');
});

test('§11.2 row 5: descriptions name the server on demand; schemas pass untouched, missing ones are made', async (t) => {
  const { client } = await serveAndConnect(t, { describe_server: true, servers: { s: fake('--odd-schemas') } }, ['s__odd_untyped']);
  const { raw, message } = await client.rawRequest('1', 'tools/list', '{}');
  const tools = Object.fromEntries(message.result.tools.map((x) => [x.name.slice(3), x]));
  assert.equal(tools.echo.description, '[s] echo of fake');
  assert.equal(tools.odd_none.description, '[s]');
  assert.ok(raw.includes('"inputSchema":{"type":"object","properties":{"message":{"type":"string","x-lexeme":1.50}}}'));
  for (const name of ['odd_none', 'odd_null', 'odd_text']) assert.deepEqual(tools[name].inputSchema, { type: 'object', properties: {} }, name);
  assert.ok(raw.includes('{"type":"object","properties":{"a":{"x-lexeme":1.50}}}'), 'only the type was missing');
  assert.equal(await client.text('s__odd_none', { any: 1 }), '{"any":1}');
});

test('§11.2 row 6: one bad server never stops the rest, and the set is announced when it changes', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    servers: { broken: fake('--exit-at-once'), absent: { command: '/no/such/program' }, mute: { ...fake('--silent'), start_timeout: '500ms' }, good: fake('--name', 'good') },
  }, ['good__echo']);
  assert.ok((await client.toolNames()).every((n) => n.startsWith('good__')));
  const stream = await client.listen();
  await stream.settle();
  const changed = 'notifications/tools/list_changed';
  const before = stream.count(changed);
  process.kill((await client.call('good__whoami')).result.structuredContent.pid, 'SIGKILL');
  await stream.waitFor(changed, before + 2);
  await client.waitFor('good__echo');
  const states = await (await fetch(`${server.origin}/status`)).json();
  const state = (alias) => states.servers.find((s) => s.name === alias).state;
  assert.equal(state('good'), 'up');
  for (const alias of ['broken', 'absent', 'mute']) assert.notEqual(state(alias), 'up', alias);
  stream.close();
});

test('§11.2 row 7: a failed tool is a result with isError; calls run in parallel and end with the program', async (t) => {
  const { client, server } = await serveAndConnect(t, { servers: { s: fake() } }, ['s__sleep']);
  const { result } = await client.call('s__fail');
  assert.equal(result.isError, true);
  assert.equal(result.content[0].text, 'failed on purpose');
  const began = Date.now();
  await Promise.all(Array.from({ length: 30 }, () => client.text('s__sleep', { ms: 300 })));
  assert.ok(Date.now() - began < 3000, 'thirty at once, not one after the other');
  const open = client.post({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 's__sleep', arguments: { ms: 60_000 } } }).catch(() => 'cut');
  await sleep(100);
  const children = descendants(server.pid);
  await server.stop();
  await within(2000, 'the open call to end', open);
  assert.ok(!children.some(isAlive));
});

for (const [row, file] of [[8, 'admin.test.mjs'], [11, 'admin.test.mjs'], [12, 'approvals.test.mjs']]) {
  test(`§11.2 row ${row}: its tests are in ${file}`, () => {
    const text = fs.readFileSync(path.join(root, 'tests/e2e', file), 'utf8');
    assert.match(text, new RegExp(`^ *test\\(['\`]§11\\.2 (item|row) ${row}:`, 'm'));
  });
}

test('§11.2 row 9: a crashed server comes back by itself and at the next call; restarts can be capped', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    servers: { s: fake(), doomed: { ...fake('--exit-at-once'), restarts: 1 } },
  }, ['s__whoami']);
  const pid = async () => (await client.call('s__whoami')).result?.structuredContent.pid;
  const first = await pid();
  process.kill(first, 'SIGKILL');
  await client.waitFor('s__whoami');
  const second = await until('a new process', pid);
  assert.notEqual(second, first);
  // A call restarts the server at once, without waiting for the end of the pause.
  assert.ok((await client.call('s__die')).error);
  assert.equal(await client.text('s__echo', { again: true }), '{"again":true}');
  await until('the cap', () => /doomed.*failed 2 times in a row.*staying down/.test(server.stderr()));
});

test('§11.2 row 10: resources and prompts are forwarded, and are tools on demand', async (t) => {
  const { client } = await serveFile(t, 'manifest.yaml', `resources_as_tools: true\nprompts_as_tools: true\n${manifest([
    `{alias: fx, transport: stdio, command: ${fixtureEntry('legacy').command}, args: ${JSON.stringify(fixtureEntry('legacy').args)}}`])}`,
  ['mcp_fx_read_resource', 'mcp_fx_get_prompt_test_simple_prompt']);
  assert.ok((await client.request('resources/read', { uri: 'test://static-text' })).result.contents[0].text);
  assert.ok((await client.request('prompts/get', { name: 'mcp_fx_test_simple_prompt' })).result.messages[0]);
  assert.match(await client.text('mcp_fx_read_resource', { uri: 'test://static-text' }), /static text/);
  assert.equal(await client.text('mcp_fx_get_prompt_test_simple_prompt'), 'This is a simple prompt for testing.');
});

test('§11.2 row 13: children get little of our environment; credentials go to no other host', async (t) => {
  const elsewhere = { requests: [] };
  const other = await listen(t, async (request, response) => {
    elsewhere.requests.push(request.headers);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
  const redirecting = await listen(t, async (request, response) => {
    await readBody(request);
    response.writeHead(307, { Location: other.url.replace('127.0.0.1', 'localhost') }).end();
  });
  const { client, server } = await serveAndConnect(t, {
    servers: {
      s: { ...fake(), env: { GIVEN: 'yes' } },
      away: { url: redirecting.url, headers: { Authorization: 'Bearer secret-token-13' } },
    },
  }, ['s__env'], { env: { RIALTO_TEST_SECRET: 'ours', HOME: '/home/somebody' } });
  const value = (name) => client.text('s__env', { name });
  assert.equal(await value('GIVEN'), 'yes');
  assert.equal(await value('HOME'), '/home/somebody');
  assert.equal(await value('RIALTO_TEST_SECRET'), '(unset)');
  await until('the redirect to be refused', () => /away: could not be started/.test(server.stderr()));
  assert.deepEqual(elsewhere.requests, [], 'the other host was not asked');
  assert.doesNotMatch(server.stderr(), /secret-token-13/);
});
