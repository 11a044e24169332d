// Rules on arguments (`rules`): which calls are allowed, which are refused and which wait for a person,
// by what the server would be sent. Arguments could not be checked before: a tool could be hidden, or
// need approval for every call, and a server that may read /data could be told to read /etc.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { page, serveBrowser } from './browser_lib.mjs';
import { embeddedRig } from './bus_rig.mjs';
import {
  exchange, fake, HttpClient, load, logged, rialto, serve, serveAndConnect, stdio, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { ModernClient } from './peers.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { WebSocketClientTransport } = load('@modelcontextprotocol/sdk/client/websocket.js');

const servers = { files: fake('--name', 'files') };
const denyEtc = { server: 'FILES', tool: 'ech*', argument: '/path', matches: '/etc/*', then: 'deny' };
const get = async (server, where) => JSON.parse((await exchange(server.origin + where, { method: 'GET' })).text);
const refused = ({ result, error }, pattern) => {
  assert.ok(result, JSON.stringify(error));
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.match(result.content[0].text, pattern);
};
const denied = /the call of 'echo' on server 'files' is denied by rule 1 \(\/path matches \/etc\/\*\)/;
const raw = (client, args, name = 'files__echo') => client.rawRequest(7, 'tools/call', `{"name":"${name}","arguments":${args}}`);

test('the first rule that matches decides; log and recorder name it', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    log: { level: 'debug' },
    servers: { files: { ...servers.files, approve: ['add'] }, other: fake('--name', 'other') },
    rules: [
      denyEtc,
      { server: 'files', tool: 'add', argument: '/a', range: [0, 9007199254740992], then: 'allow' },
      { server: 'files', argument: '/mode', in: ['w', 1000], then: 'deny' },
      { tool: 'whoami', then: 'deny' },
    ],
  }, ['files__echo', 'other__echo']);
  refused(await client.call('files__echo', { path: '/etc/a/b' }), denied);
  assert.equal(await client.text('files__echo', { path: '/home' }), '{"path":"/home"}');
  assert.equal(await client.text('other__echo', { path: '/etc/a' }), '{"path":"/etc/a"}', 'another server');
  refused((await raw(client, '{"mode":1e3}')).message, /denied by rule 3 \(\/mode is one of w, 1000\)/);
  refused(await client.call('other__whoami'), /denied by rule 4$/);
  assert.equal(await client.text('files__add', { a: 1, b: 2 }), '3', 'an allowed call needs no approval');
  await logged(server, /the call of 'echo' on server 'files' was denied by rule 1 /);
  await logged(server, /the call of 'add' on server 'files' was allowed by rule 2 /);
  const calls = await get(server, '/api/calls');
  const by = (tool, key) => calls.filter((c) => c.tool === tool && c[key]).map((c) => c[key]);
  const records = await Promise.all(calls.map((c) => get(server, `/api/calls/${c.id}`)));
  assert.ok(records.some((r) => /^rule 1 /.test(r.refused_by)), JSON.stringify(by('echo', 'refused_by')));
  assert.ok(records.some((r) => /^rule 2 /.test(r.approved_by)), JSON.stringify(by('add', 'approved_by')));
});

test('what other readers would read otherwise is refused with -32602', async (t) => {
  const { client } = await serveAndConnect(t, { servers, rules: [denyEtc] }, ['files__echo']);
  for (const args of ['{"Path":"/etc/x"}', '{"path":"/home","path":"/etc/x"}', '{"path\\u0000":"/etc/x"}',
    '{"path":"/home","PATH":"/etc/x"}', '{"path":"/etc/x\\u0000"}', '"{}"']) {
    const { message } = await raw(client, args);
    assert.equal(message.error?.code, -32602, `${args}: ${JSON.stringify(message)}`);
  }
  refused((await raw(client, '{"p\\u0061th":"\\/etc\\/x"}')).message, denied);
  assert.equal((await raw(client, '{"Paths":"/etc/x"}')).message.result.isError, undefined);
  assert.equal((await raw(client, '{"Path":"/etc/x"}', 'files__whoami')).message.error, undefined, 'no rule is about this tool');
});

test('pinned arguments are judged as the server gets them', async (t) => {
  const pin = (value) => ({ files: { ...servers.files, tools: { echo: { arguments: { path: value } } } } });
  const bad = await serveAndConnect(t, { servers: pin('/etc/x'), rules: [denyEtc] }, ['files__echo']);
  refused(await bad.client.call('files__echo', { path: '/home' }), denied);
  const good = await serveAndConnect(t, { servers: pin('/home'), rules: [denyEtc] }, ['files__echo']);
  assert.equal(await good.client.text('files__echo', { path: '/etc/x' }), '{"path":"/home"}');
});

test('ask holds the call for the operator, who is named with the rule', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers, rules: [{ ...denyEtc, then: 'ask' }] }, ['files__echo']);
  assert.equal(await client.text('files__echo', { path: '/home' }), '{"path":"/home"}');
  for (const approved of [true, false]) {
    const call = client.call('files__echo', { path: '/etc/x' });
    const waiting = await until('a held call', async () => (await get(server, '/api/approvals'))[0]);
    await logged(server, /the call of 'echo' on server 'files' was held by rule 1 /);
    await exchange(`${server.origin}/api/approvals/${waiting.id}`, { body: JSON.stringify({ approved }) });
    const answer = await call;
    if (approved) assert.equal(answer.result.content[0].text, '{"path":"/etc/x"}');
    else refused(answer, /refused by the operator/);
    const record = await get(server, `/api/calls/${waiting.id}`);
    assert.match(record[approved ? 'approved_by' : 'refused_by'], /, asked because of rule 1$/);
  }
});

test('a rule holds on every way in', async (t) => {
  const place = embeddedRig(t).place();
  const config = { servers, rules: [denyEtc], bus: { ...place.bus, agents: [place.agent] } };
  const bad = { path: '/etc/x' };
  const { server } = await serveAndConnect(t, config, ['files__echo']);
  refused(await (await new HttpClient(`${server.url}/files`).connect()).call('echo', bad), denied);
  refused(await new ModernClient(server.url).request('tools/call', { name: 'files__echo', arguments: bad }), denied);
  const ws = new Client({ name: 'ws', version: '1' });
  await ws.connect(new WebSocketClientTransport(new URL(server.url.replace('http', 'ws'))));
  refused({ result: await ws.callTool({ name: 'files__echo', arguments: bad }) }, denied);
  await ws.close();

  const agent = await place.join(t, place.agent);
  await agent.hears('files');
  const { code, isRetryable, message } = await agent.error('files', 'echo', bad);
  assert.deepEqual([code, isRetryable], ['invalid_arguments', false]);
  assert.match(message, denied);

  const pipe = await stdio(t, { servers, rules: [denyEtc] }, ['files__echo']);
  refused(await pipe.request('tools/call', { name: 'files__echo', arguments: bad }), denied);
  const search = await serve(t, { expose: 'search', servers, rules: [denyEtc, { tool: 'find_tools', then: 'deny' }] });
  const finder = await new HttpClient(search.url).connect();
  await until('find_tools', async () => (await finder.call('find_tools', { query: 'echo' })).result.structuredContent.tools.length);
  refused(await finder.call('call_tool', { name: 'files__echo', arguments: bad }), denied);
  refused(await finder.call('call_tool', { name: 'files__echo', arguments: JSON.stringify(bad) }), denied);
});

test('tools of web pages are judged as those of the server "@browser"', async (t) => {
  const rule = { server: '@browser', tool: 'open', argument: '/url', outside: ['/safe'], then: 'deny' };
  const server = await serveBrowser(t, { rules: [rule] });
  const browser = await page(t, server, 'abc', [{ name: 'open', description: 'Opens', inputSchema: { type: 'object' } }]);
  browser.answer(() => ({ result: 'opened' }));
  const client = await new HttpClient(`${server.origin}/mcp?session=abc`).connect();
  await client.waitFor('open');
  refused(await client.call('open', { url: '/etc' }), /denied by rule 1 \(\/url must be the absolute path of something in \/safe\)/);
  assert.match(await client.text('open', { url: '/safe/x' }), /opened/);
});

test('a reload changes rules and restarts nothing', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers }, ['files__echo']);
  const pid = async () => (await get(server, '/api/servers'))[0].pid;
  const before = await pid();
  const reload = async (rules) => {
    writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', servers, rules });
    return JSON.parse((await exchange(`${server.origin}/api/reload`, { body: '{}' })).text);
  };
  assert.equal(await client.text('files__echo', { path: '/etc/x' }), '{"path":"/etc/x"}');
  const report = await reload([denyEtc]);
  assert.equal(report.at_next_start, '');
  refused(await client.call('files__echo', { path: '/etc/x' }), denied);
  assert.match((await reload([{ ...denyEtc, then: 'perhaps' }])).error, /rules\[0\]\.then/);
  refused(await client.call('files__echo', { path: '/etc/x' }), denied);
  await reload([]);
  assert.equal(await client.text('files__echo', { path: '/etc/x' }), '{"path":"/etc/x"}');
  assert.equal(await pid(), before);
});

// A rule that is understood differently than it was meant lets calls through: every doubt is an error.
test('a rule that cannot be meant is an error that says why', async () => {
  const wrong = [
    [{ matches: 'x', then: 'deny' }, /expected the key 'argument'/],
    [{ argument: '/a' }, /expected the key 'then'/],
    [{ argument: 'a', then: 'deny' }, /begins with '\/'/],
    [{ argument: '/a~2', then: 'deny' }, /'~' is written ~0/],
    [{ argument: '/a', matches: 'x', in: ['y'], then: 'deny' }, /exclude each other/],
    [{ argument: '/a', range: [2, 1], then: 'deny' }, /larger than the second/],
    [{ argument: '/a', range: ['1', 2], then: 'deny' }, /two numbers/],
    [{ argument: '/a', range: [1, 2, 3], then: 'deny' }, /two numbers/],
    [{ argument: '/a', in: [], then: 'deny' }, /a list of texts and numbers/],
    [{ argument: '/a', in: [{}], then: 'deny' }, /a list of texts and numbers/],
    [{ argument: '/a', match: 'x', then: 'allow' }, /unknown key/],
    [{ argument: '/a', outside: ['shared'], then: 'deny' }, /absolute path/],
    [{ then: 'maybe' }, /allow, deny or ask/],
  ];
  for (const [rule, pattern] of wrong) {
    for (const key of ['servers', 'mcpServers']) {
      const file = writeConfig(tempDir(), { [key]: servers, rules: [rule] });
      const { code, stdout, stderr } = await within(20_000, 'check', rialto(['check', file]));
      assert.notEqual(code, 0, JSON.stringify(rule));
      if (key === 'servers') assert.match(stdout + stderr, pattern, JSON.stringify(rule));
    }
  }
});
