// MCP over ACP: servers of every generation, declared in every way, bridged by stdio and HTTP.
// Names are those of the acceptance table where it has one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { agent, Conductor, dial, eventLog, inner, open, proxy, rejects } from './acp_lib.mjs';
import { exchange, fake, sleep, tempDir, until, within, writeConfig } from './lib.mjs';

const dialects = ['M0', 'M0b', 'M1', 'M1s', 'M2a', 'M2b', 'M3a', 'M3b', 'M3c', 'M4'];
const connected = dialects.filter((m) => !['M0', 'M0b', 'M4'].includes(m));
const textOf = (answer) => answer.result.content[0].text;

for (const m of dialects) {
  test(`test_proxy_provides_mcp_tools_stdio (${m})`, async (t) => {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P2', '--mcp', m, '--log', log.file), agent()]);
    const answer = await c.callTool(c.session, m, 'echo', { message: 'hi' }, { progressToken: 'tok' });
    assert.equal(textOf(answer), `${m}: hi`);
    assert.deepEqual(answer.notifications, [{ method: 'notifications/progress', params: { progressToken: 'tok', progress: 50, total: 100 } }]);
    const [declared] = await c.ask(c.session, { command: 'declared' });
    assert.ok(declared.command.startsWith('/'), 'an absolute path');
    assert.equal(declared.args[0], 'mcp');
    assert.deepEqual(declared.env.map((e) => Object.keys(e)), [['name', 'value']], 'the secret of the port, and nothing else');
    assert.deepEqual(declared._meta, { kept: 1 });
    assert.equal(declared.url, undefined);
  });
}

test('test_proxy_provides_mcp_tools_http', async (t) => {
  const c = await open(t, ['agent', '--mcp-bridge', 'http', proxy('P2', '--mcp', dialects.join()), agent('--http')]);
  const declared = await c.ask(c.session, { command: 'declared' });
  assert.deepEqual(declared.map((d) => d.name), dialects);
  for (const d of declared) {
    assert.equal(textOf(await c.callTool(c.session, d.name)), `${d.name}: hi`);
    assert.equal(d.type, 'http');
    assert.match(d.url, /^http:\/\/127\.0\.0\.1:\d+\//);
    assert.equal(d.serverId, undefined);
  }
});

test('a method that nobody knows passes between client and server of the same era', async (t) => {
  for (const [era, servers] of [['legacy', dialects.filter((m) => m !== 'M4')], ['modern', ['M4']]]) {
    const c = await open(t, ['agent', proxy('P2', '--mcp', servers.join()), agent('--era', era)]);
    for (const server of servers) {
      const { given } = await c.ask(c.session, { command: 'raw_mcp', server, method: 'fixture/raw', params: { a: [1, null], b: { c: 'ü' } } });
      assert.deepEqual([given.a, given.b], [[1, null], { c: 'ü' }], server);
    }
  }
});

test('server-to-client sampling request and roots through the stdio bridge', async (t) => {
  const servers = dialects.filter((d) => d !== 'M4');
  const c = await open(t, ['agent', proxy('P3', '--mcp', servers.join()), proxy('P1'), agent()]);
  for (const m of servers) {
    const answer = await c.callTool(c.session, m, 'ask');
    assert.equal(textOf(answer), 'sampled fixture', m);
    assert.deepEqual(answer.asked, ['sampling/createMessage', 'roots/list'], m);
  }
});

test('an M4 server that needs input asks a client of the initialize era', async (t) => {
  const c = await open(t, ['agent', proxy('P3', '--mcp', 'M4'), agent()]);
  const answer = await c.callTool(c.session, 'M4', 'ask');
  assert.equal(textOf(answer), 'sampled state-1');
  assert.deepEqual(answer.asked, ['sampling/createMessage']);
});

// An M4 server was taken for one of the other era when it took more than three seconds to answer its first request.
test('an M4 server may take its time to start', async (t) => {
  const c = await open(t, ['agent', proxy('P3', '--mcp', 'M4', '--slow-discover', 3500), agent()]);
  assert.equal(textOf(await c.callTool(c.session, 'M4')), 'M4: hi');
});

test('test_agent_handles_prompt: one update with the tool\'s result, then the answer', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent()]);
  const texts = await c.prompt(c.session, { command: 'call_tool', server: 'M2a', tool: 'echo', params: { message: 'hi' } });
  assert.equal(texts.length, 1);
  assert.match(texts[0], /M2a: hi/);
});

test('test_list_tools_from_mcp_server', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2b'), agent()]);
  assert.deepEqual(await c.ask(c.session, { command: 'list_tools', server: 'M2b' }), ['echo', 'ask', 'hang', 'ids']);
});

test('unknown tool: the error is relayed', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2b'), agent()]);
  const call = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"call_tool","server":"M2b","tool":"nope"}' }] });
  await rejects(call, -32602, /Unknown tool: nope/);
});

test('test_acp_identifiers_are_delivered_to_mcp_tools', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a,M3c'), agent()]);
  assert.match(textOf(await c.callTool(c.session, 'M2a', 'ids')), /^acp:\d+-M2a connection-/);
  assert.match(textOf(await c.callTool(c.session, 'M3c', 'ids')), /^server-\d+-M3c connection-/);
});

test('test_session_id_delivered_to_mcp_tools', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P1', '--mcp', 'M1s', '--log', log.file), agent()]);
  await c.callTool(c.session, 'M1s');
  assert.deepEqual(log.of('connect').map((e) => e.session), [c.session]);
});

test('first bytes before the session id: no deadlock when the agent connects first', async (t) => {
  for (const m of ['M1', 'M1s', 'M2a', 'M3c', 'M4']) {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P1', '--mcp', m, '--log', log.file), agent('--eager')]);
    assert.equal(textOf(await c.callTool(c.session, m)), `${m}: hi`);
    if (m === 'M1s') assert.deepEqual(log.of('connect').at(-1).session, '', 'the empty id that this generation insists on');
    await c.stop(0);
  }
});

test('bind before session/new: the port accepts connections before the agent sees the request', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--hang-new')]);
  await c.initialize();
  const setup = c.request('session/new', { cwd: '/', mcpServers: [] });
  const seen = await until('session/new at the agent', async () => (await c.request('_test/seen', {})).setups[0]);
  const port = Number(seen.params.mcpServers[0].args[1]);
  await new Promise((resolve, reject) => { net.connect(port, '127.0.0.1', resolve).on('error', reject).unref(); });
  c.notify('$/cancel_request', { requestId: setup.id });
  await rejects(setup, -32800);
});

for (const container of ['array', 'snake', 'map']) {
  test(`declarations in the ${container} container`, async (t) => {
    const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--container', container), agent()]);
    assert.equal(textOf(await c.callTool(c.session, 'M2a')), 'M2a: hi');
    const setup = (await c.request('_test/seen', {})).setups.at(-1).params;
    if (container === 'map') {
      assert.equal(setup.tools.mcpServers.M2a.transport, 'stdio');
      assert.equal(setup.tools.mcpServers.M2a.headers, undefined);
    } else {
      assert.equal((setup.mcp_servers ?? setup.mcpServers)[0].name, 'M2a');
    }
  });
}

test('every form of declaration in every container, what stands beside it untouched', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  await c.initialize();
  const forms = [
    { type: 'http', url: 'acp:1', headers: [] }, { transport: 'http', url: 'acp:2', headers: {} }, { url: 'acp:3' },
    { type: 'acp', serverId: '4' }, { transport: 'acp', serverId: '5' }, { type: 'acp', id: '6' },
  ];
  const other = { type: 'http', url: 'http://127.0.0.1:1/acp:x', headers: [] };
  const list = (form) => [{ name: 'o', ...other }, { name: 'm', ...form, _meta: { kept: 1 } }];
  const map = (form) => ({ o: other, m: { ...form, _meta: { kept: 1 } } });
  const containers = [
    (f) => ({ mcpServers: list(f) }), (f) => ({ mcpServers: map(f) }), (f) => ({ mcp_servers: list(f) }), (f) => ({ mcp_servers: map(f) }),
    (f) => ({ tools: { mcpServers: map(f), more: 1 } }), (f) => ({ tools: { mcpServers: list(f) } }),
  ];
  for (const form of forms) {
    for (const put of containers) {
      const params = { cwd: '/', ...put(form) };
      await c.request('session/new', params);
      const got = (await c.request('_test/seen', {})).setups.at(-1).params;
      const what = JSON.stringify([params, got]);
      const holder = got.tools?.mcpServers ?? got.mcp_servers ?? got.mcpServers;
      const [kept, bridged] = Array.isArray(holder) ? holder : [holder.o, holder.m];
      assert.deepEqual(kept, Array.isArray(holder) ? { name: 'o', ...other } : other, what);
      const { command, args, _meta, env, ...rest } = bridged;
      assert.match(`${command} ${args.join(' ')}`, /^\/.* mcp \d+$/, what);
      assert.deepEqual(_meta, { kept: 1 }, what);
      assert.deepEqual(rest, Array.isArray(holder) ? { name: 'm' } : { transport: 'stdio' }, what);
      assert.match(Array.isArray(holder) ? env[0].value : env.RIALTO_BRIDGE_AUTH, /^Bearer [0-9a-f]{32}$/, what);
      // Agents look in `mcpServers` only, not where the documents list servers: it has the bridged entry, too.
      assert.deepEqual(new Set(Object.keys(got)), new Set([...Object.keys(params), 'mcpServers']), what);
      if (got.tools) assert.deepEqual(Object.keys(got.tools), Object.keys(params.tools), what);
    }
  }
});

test('test_mcp_server_injected_into_all_session_setup_requests', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a,M3c'), agent()]);
  const ids = async (session) => {
    const found = [];
    for (const m of ['M2a', 'M3c']) found.push(textOf(await c.callTool(session, m, 'ids')).split(' ')[0]);
    return found;
  };
  const first = await ids(c.session);
  for (const method of ['session/load', 'session/resume', 'session/fork']) {
    const sessionId = method === 'session/fork' ? c.session : `other-${method}`;
    const answer = await c.request(method, { sessionId, cwd: '/', mcpServers: [] });
    assert.deepEqual(await ids(answer.sessionId), first, `${method}: the same server`);
  }
});

test('test_new_session_handler_invoked_with_mcp_server', async (t) => {
  const c = await open(t, ['agent', proxy('P1', '--mcp', 'M1'), agent()]);
  assert.equal(c.session, 'session-1');
  assert.equal((await c.request('_test/seen', {})).setups.length, 1);
});

test('http_downstream_receives_stable_transformed_declarations_for_all_setup_methods', async (t) => {
  const log = eventLog();
  const c = new Conductor(t, ['agent', '--mcp-bridge', 'http', proxy('P3', '--mcp', 'M3c', '--log', log.file), agent('--http')]);
  const { agentCapabilities, _meta } = await c.initialize();
  assert.equal(agentCapabilities.mcpCapabilities.acp, true);
  assert.equal(agentCapabilities._meta.symposium.mcp_acp_transport, true);
  assert.equal(_meta.mcp_acp_transport, true);
  await c.newSession();
  for (const method of ['session/load', 'session/resume']) await c.request(method, { sessionId: 'session-1', cwd: '/', mcpServers: [] });
  const entries = (await c.request('_test/seen', {})).setups.map((s) => s.params.mcpServers[0]);
  assert.equal(entries.length, 3);
  for (const e of entries) {
    assert.deepEqual(e, entries[0], 'one session, one address');
    assert.equal(e.name, 'M3c');
    assert.deepEqual(e._meta, { kept: 1 });
  }
  await c.callTool('session-1', 'M3c');
  assert.equal(log.of('connect').length, 1, 'one connection');
});

test('downstream_mode_prefers_native_then_http_adaptation', async (t) => {
  const rows = [
    [['--native', 'type', '--http'], 'http', (e) => e.type === 'acp' && e.serverId],
    [['--http'], 'http', (e) => e.type === 'http' && e.url.startsWith('http://127.0.0.1:')],
    [['--http'], 'auto', (e) => e.command],
    [['--native', 'type'], 'auto', (e) => e.type === 'acp' && e.serverId],
  ];
  for (const [args, bridge, right] of rows) {
    const c = await open(t, ['agent', '--mcp-bridge', bridge, proxy('P3', '--mcp', 'M3c'), agent(...args, '--no-connect', 'yes')]);
    const [entry] = (await c.request('_test/seen', {})).setups[0].params.mcpServers;
    assert.ok(right(entry), `${args} ${bridge}: ${JSON.stringify(entry)}`);
  }
});

test('http_declarations_reuse_endpoint_but_preserve_name_and_meta', async (t) => {
  const c = new Conductor(t, ['agent', '--mcp-bridge', 'http', agent('--http', '--no-connect', 'yes')]);
  await c.initialize();
  const declare = (name, n) => [{ type: 'acp', name, serverId: 'client-1', _meta: { n } }];
  const sessionId = await c.newSession({ mcpServers: declare('first', 1) });
  await c.request('session/resume', { sessionId, cwd: '/', mcpServers: declare('second', 2) });
  const [a, b] = (await c.request('_test/seen', {})).setups.map((s) => s.params.mcpServers[0]);
  assert.equal(a.url, b.url);
  assert.deepEqual([a.name, a._meta, b.name, b._meta], ['first', { n: 1 }, 'second', { n: 2 }]);
});

test('native_downstream_keeps_capability_and_declaration_unchanged', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P3', '--mcp', 'M3c,M4', '--log', log.file), agent('--native', 'type')]);
  assert.deepEqual(c.initialized.agentCapabilities, { loadSession: true, mcpCapabilities: { http: false, sse: false, acp: true } });
  const entries = await c.ask(c.session, { command: 'declared' });
  assert.match(entries[0].serverId, /^server-\d+-M3c$/);
  assert.deepEqual(entries, ['M3c', 'M4'].map((name) => ({ type: 'acp', name, serverId: entries[0].serverId.replace('M3c', name), _meta: { kept: 1 } })));
  assert.equal(log.of('connect').length, 0);
});

test('every place where agents ever said mcp_acp_transport counts', async (t) => {
  for (const place of ['result', 'result.symposium', 'capabilities', 'capabilities.symposium']) {
    const c = await open(t, ['agent', proxy('P1', '--mcp', 'M1'), agent('--native', 'url', '--native-place', place)]);
    const [entry] = (await c.request('_test/seen', {})).setups[0].params.mcpServers;
    assert.match(entry.url, /^acp:/, place);
  }
});

test('agent with mcp_acp_transport passes through, and mcp messages with it', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P1', '--mcp', 'M2a,M3c', '--log', log.file), proxy('P3'), agent('--native', 'url')]);
  const [url, bridged] = await c.ask(c.session, { command: 'declared' });
  assert.match(url.url, /^acp:/);
  assert.ok(bridged.command, 'a form it does not know is bridged all the same');
  // The agent carries MCP over ACP by itself, in both directions.
  const acp = (method, params) => c.ask(c.session, { command: 'acp', method, params });
  const { connection_id: connectionId } = await acp('_mcp/connect', { acp_url: url.url });
  const message = (method, params) => acp('_mcp/message', { connectionId, method, params });
  assert.equal((await message('tools/call', { name: 'echo', arguments: { message: 'hi' } })).content[0].text, 'M2a: hi');
  assert.equal((await message('tools/call', { name: 'ask' })).content[0].text, 'sampled natively native');
  const { mcp } = await c.request('_test/seen', {});
  assert.deepEqual(mcp.map((p) => [p.connectionId, p.method]), [[connectionId, 'sampling/createMessage'], [connectionId, 'roots/list']]);
  assert.deepEqual(log.of('connect').filter((e) => e.dialect === 'M2a').length, 1, 'by the agent alone');
});

// Version 2 only: agents of version 1 always take stdio servers, so every server can be bridged to them.
test('unsupported_downstream_does_not_gain_native_capability', async (t) => {
  const c = new Conductor(t, ['agent', '--mcp-bridge', 'stdio', proxy('P3', '--mcp', 'M3c'), agent('--v2-mcp', 'http')]);
  assert.deepEqual((await c.initialize(2)).capabilities, { session: { prompt: {}, mcp: { http: {} } } });
  await rejects(c.request('session/new', { cwd: '/', mcpServers: [] }), -32602, /takes no MCP server/);
  assert.deepEqual((await c.request('_test/seen', {})).setups, [], 'the agent has not seen it');
});

test('unavailable_mode_rejects_only_native_declarations', async (t) => {
  const c = new Conductor(t, ['agent', agent('--v2-mcp', '')]);
  await c.initialize(2);
  const entry = { name: 'n', command: '/bin/true', args: [], env: [] };
  await rejects(c.newSession({ mcpServers: [entry, { type: 'acp', name: 'mine', serverId: 's' }] }), -32602, /takes no MCP server/);
  assert.ok(await c.newSession({ mcpServers: [entry] }));
  assert.deepEqual((await c.request('_test/seen', {})).setups[0].params.mcpServers, [entry]);
});

test('http_downstream_adapts_v2_capabilities_and_only_transforms_native_servers', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3', '--mcp', 'M3c'), agent('--v2-mcp', 'http')]);
  assert.deepEqual((await c.initialize(2)).capabilities.session.mcp, { acp: {}, http: {} });
  const odd = { type: 'carrier-pigeon', name: 'odd', coop: 7 };
  await c.newSession({ mcpServers: [odd] });
  const [first, second] = (await c.request('_test/seen', {})).setups[0].params.mcpServers;
  assert.deepEqual(first, odd);
  assert.equal(second.type, 'http');
});

test('native_v2_downstream_keeps_capability_and_declarations_unchanged', async (t) => {
  const log = eventLog();
  const c = new Conductor(t, ['agent', proxy('P3', '--mcp', 'M3c', '--log', log.file), agent('--v2-mcp', 'acp')]);
  assert.deepEqual((await c.initialize(2)).capabilities.session.mcp, { acp: {} });
  const odd = { type: 'carrier-pigeon', name: 'odd', coop: 7 };
  await c.newSession({ mcpServers: [odd] });
  const [first, second] = (await c.request('_test/seen', {})).setups[0].params.mcpServers;
  assert.deepEqual(first, odd);
  assert.equal(second.type, 'acp');
  assert.equal(log.of('connect').length, 0);
});

test('unavailable_v2_downstream_rejects_native_declarations', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3', '--mcp', 'M3c'), agent('--v2-mcp', '')]);
  assert.deepEqual((await c.initialize(2)).capabilities.session.mcp, {});
  await rejects(c.request('session/new', { cwd: '/', mcpServers: [] }), -32602, /takes no MCP server/);
  assert.deepEqual((await c.request('_test/seen', {})).setups, [], 'the agent has not seen it');
});

test('v2: a bridged stdio server says its type', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3', '--mcp', 'M3c'), agent()]);
  await c.initialize(2);
  await c.newSession();
  assert.equal((await c.request('_test/seen', {})).setups[0].params.mcpServers[0].type, 'stdio');
});

test('mixed: M1, M2, M3 and M4 servers of P1, P2 and P3 proxies in one session, all callable', async (t) => {
  const c = await open(t, ['agent', proxy('P1', '--mcp', 'M0,M0b,M1,M1s'), proxy('P2', '--mcp', 'M2a,M2b'), proxy('P3', '--mcp', 'M3a,M3b,M3c,M4'), agent()]);
  for (const m of dialects) assert.equal(textOf(await c.callTool(c.session, m)), `${m}: hi`);
});

test('a client-hosted server: the conductor asks the client itself', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2'), agent()]);
  const asked = [];
  c.answer = (method, params) => {
    asked.push(method);
    if (method === 'mcp/connect') return { connectionId: 'c1' };
    if (method === 'mcp/disconnect') return {};
    if (params.method === 'initialize') return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } };
    if (params.method === 'tools/call') return { content: [{ type: 'text', text: 'from the client' }] };
    throw Object.assign(new Error('no'), { code: -32601 });
  };
  await c.initialize();
  const session = await c.newSession({ mcpServers: [{ type: 'acp', name: 'mine', serverId: 'client-1' }] });
  assert.equal(textOf(await c.callTool(session, 'mine')), 'from the client');
  await c.prompt(session, { command: 'close_mcp', server: 'mine' });
  await until('the disconnect', () => asked.includes('mcp/disconnect'));
});

// --- life of connections ---

test('bridge process killed -> disconnect sent', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P2', '--mcp', connected.join(), '--log', log.file), agent()]);
  for (const m of connected) {
    await c.callTool(c.session, m);
    await c.prompt(c.session, { command: 'kill_bridge', server: m });
    const gone = await until('the disconnect', () => log.of('disconnect').find((e) => e.dialect === m));
    assert.equal(gone.request, m.startsWith('M3'), 'a request in M3, a notification before');
  }
});

// The component's late answer to connect was dropped: its connection stayed open for ever, unused.
for (const m of ['M1', 'M2a', 'M3c']) {
  test(`a session that ends while its server is connecting leaves no connection behind (${m})`, async (t) => {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P2', '--mcp', m, '--slow-connect', 2000, '--log', log.file), agent('--no-connect', 'yes')]);
    const [entry] = await c.ask(c.session, { command: 'declared' });
    const socket = dial(entry);
    t.after(() => socket.destroy());
    socket.on('error', () => {}).write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n');
    await sleep(1000); // the component has the connect and answers it late
    await c.request('session/close', { sessionId: c.session });
    await until('the connection', () => log.of('connect').length === 1);
    await until('the disconnect', () => log.of('disconnect').length === 1);
  });
}

test('two servers in one session, two connections on one listener', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a,M3c', '--log', log.file), agent()]);
  for (const m of ['M2a', 'M3c']) await c.callTool(c.session, m);
  await c.prompt(c.session, { command: 'second', server: 'M2a' });
  const [first, second] = [textOf(await c.callTool(c.session, 'M2a', 'ids')), textOf(await c.callTool(c.session, 'M2a#2', 'ids'))];
  assert.notEqual(first, second);
  const sessions = log.of('connect').filter((e) => e.dialect === 'M2a').map((e) => e.session);
  assert.deepEqual(sessions, [c.session, c.session]);
  // What the server asks goes to the connection whose call it is about.
  for (const m of ['M2a', 'M2a#2']) assert.deepEqual((await c.callTool(c.session, m, 'ask')).asked, ['sampling/createMessage', 'roots/list']);
});

// An M0 server knows its clients by their URL only. When the client that had connected last closed its
// connection, the server's questions were lost, although the first client was still connected.
test('a server without connections asks the client that is left', async (t) => {
  for (const m of ['M0', 'M0b']) {
    const c = await open(t, ['agent', proxy('P2', '--mcp', m), agent()]);
    await c.callTool(c.session, m);
    await c.prompt(c.session, { command: 'second', server: m });
    assert.deepEqual((await c.callTool(c.session, `${m}#2`, 'ask')).asked, ['sampling/createMessage', 'roots/list']);
    await c.prompt(c.session, { command: 'close_mcp', server: `${m}#2` });
    assert.equal(textOf(await c.callTool(c.session, m, 'ask')), 'sampled fixture');
  }
});

// A connection whose client had closed its end before the server was found to be of the other era stayed open.
test('a client that writes everything at once and closes its end is answered, then closed', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a,M4', '--slow-connect', 200), agent('--no-connect', 'yes')]);
  for (const entry of await c.ask(c.session, { command: 'declared' })) {
    const { name } = entry;
    const socket = dial(entry, { allowHalfOpen: true });
    let text = '';
    socket.on('data', (d) => { text += d; });
    socket.end(`${[
      { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'n', version: '1' } } },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/list' },
    ].map((m) => JSON.stringify({ jsonrpc: '2.0', ...m })).join('\n')}\n`);
    await within(10_000, `the end of ${name}`, once(socket, 'close'));
    const answers = text.split('\n').filter(Boolean).map((l) => JSON.parse(l)).filter((m) => m.id);
    assert.deepEqual(answers.map((m) => [m.id, Boolean(m.result)]), [[1, true], [2, true]], `${name}: ${text}`);
  }
});

// The first answer shows which of two method names a server uses for messages. Another request that was
// sent by then under the wrong name failed.
test('two clients that start at once while the dialect of their server is not known', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M1'), agent('--no-connect', 'yes')]);
  const [entry] = await c.ask(c.session, { command: 'declared' });
  const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}\n';
  const answers = await Promise.all([1, 2, 3].map(() => new Promise((resolve, reject) => {
    const socket = dial(entry);
    socket.write(hello);
    socket.on('error', reject).once('data', (d) => { resolve(JSON.parse(d)); socket.end(); });
  })));
  for (const { result, error } of answers) assert.equal(result?.serverInfo.name, 'M1', JSON.stringify(error));
});

test('two sessions with the same server: each connection knows its own session', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P1', '--mcp', 'M1s', '--log', log.file), agent()]);
  await c.callTool(c.session, 'M1s');
  const other = await c.newSession();
  await c.callTool(other, 'M1s');
  assert.deepEqual(log.of('connect').map((e) => e.session), [c.session, other]);
});

for (const method of ['session/close', 'session/delete']) {
  test(`${method} closes the session's listeners`, async (t) => {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--log', log.file), agent()]);
    await c.callTool(c.session, 'M2a');
    const [{ args }] = await c.ask(c.session, { command: 'declared' });
    await c.request(method, { sessionId: c.session });
    await until('the disconnect', () => log.of('disconnect').length === 1);
    await assert.rejects(new Promise((resolve, reject) => { net.connect(Number(args[1]), '127.0.0.1', resolve).on('error', reject); }));
  });
}

// The session went on when the agent refused to close it, but its servers were gone.
test('a session that the agent does not close keeps its servers, one that it does not know loses them', async (t) => {
  for (const [code, kept] of [[-32601, true], [-32603, true], [-32002, false]]) {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--log', log.file), agent('--no-close', code)]);
    await c.callTool(c.session, 'M2a');
    await rejects(c.request('session/close', { sessionId: c.session }), code);
    if (kept) assert.equal(textOf(await c.callTool(c.session, 'M2a')), 'M2a: hi');
    else await until('the disconnect', () => log.of('disconnect').length === 1);
  }
});

test('local_cancellation_is_not_tunneled_as_an_mcp_message', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--log', log.file), agent()]);
  await c.callTool(c.session, 'M2a');
  // MCP wants no answer to a request that was cancelled.
  assert.equal(await c.ask(c.session, { command: 'cancel_tool', server: 'M2a', tool: 'hang' }), 'M2a: next');
  assert.deepEqual(log.of('notification').map((e) => e.method), ['notifications/initialized']);
  assert.equal(log.of('cancel').length, 1);
});

test('reverse_messages_route_without_stopping_on_unknown_connections', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent()]);
  await rejects(c.request('_mcp/message', { connectionId: 'nobody', method: 'ping', params: null }), -32601);
  c.notify('_mcp/message', { connectionId: 'nobody', method: 'x', params: null });
  assert.equal(textOf(await c.callTool(c.session, 'M2a')), 'M2a: hi');
});

// --- access to the HTTP bridge ---

test('HTTP bridge: bearer, Origin and Host are checked', async (t) => {
  const c = await open(t, ['agent', '--mcp-bridge', 'http', proxy('P3', '--mcp', 'M3c'), agent('--http')]);
  await c.callTool(c.session, 'M3c');
  const [{ url, headers }] = await c.ask(c.session, { command: 'declared' });
  const bearer = headers[0].value;
  const post = (more) => exchange(url, { headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more }, body: '{"jsonrpc":"2.0","id":null,"method":' });
  assert.equal((await post({})).status, 401);
  assert.equal((await post({ Authorization: `${bearer}x` })).status, 401);
  assert.equal((await post({ Authorization: bearer, Origin: 'http://evil.example' })).status, 403);
  assert.equal((await post({ Authorization: bearer, Host: 'evil.example' })).status, 403);
  assert.equal((await exchange(`${url}x`, { headers: { Authorization: bearer } })).status, 404);
  assert.equal((await post({ Authorization: bearer })).status, 400);
});

test('malformed_post_cannot_steal_a_valid_null_id_response', async (t) => {
  const c = await open(t, ['agent', '--mcp-bridge', 'http', proxy('P3', '--mcp', 'M3c'), agent('--http')]);
  await c.callTool(c.session, 'M3c');
  const [{ url, headers }] = await c.ask(c.session, { command: 'declared' });
  const malformed = () => exchange(url, {
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: headers[0].value },
    body: '{"jsonrpc":"2.0","id":null,"method":',
  });
  const call = c.callTool(c.session, 'M3c');
  for (const { status, text } of await Promise.all(Array.from({ length: 8 }, malformed))) {
    assert.equal(status, 400);
    assert.doesNotMatch(text, /M3c: hi/);
  }
  assert.equal(textOf(await call), 'M3c: hi');
});

// --- the hub in every session ---

for (const mode of ['stdio', 'http']) {
  test(`--with: the hub's own servers in every session (${mode})`, async (t) => {
    const config = writeConfig(tempDir(), { servers: { alpha: fake('--name', 'alpha') } });
    const c = await open(t, ['--with', config, 'agent', '--mcp-bridge', mode, proxy('P2', '--mcp', 'M2a'), agent('--http')]);
    await until('the hub\'s tools', async () => (await c.ask(c.session, { command: 'list_tools', server: 'rialto' })).includes('alpha__echo'));
    assert.match(JSON.stringify(await c.callTool(c.session, 'rialto', 'alpha__echo', { message: 'hub' })), /hub/);
    assert.equal(textOf(await c.callTool(c.session, 'M2a')), 'M2a: hi');
  });
}

// --- tracing ---

test('test_trace_mcp_tool_call: every hop, the agent labelled Agent, secrets left out', async (t) => {
  const file = `${tempDir()}/trace.jsons`;
  const c = await open(t, ['--trace', file, 'agent', proxy('P2', '--mcp', 'M2a'), proxy('P1'), agent()]);
  await c.callTool(c.session, 'M2a', 'echo', { message: 'Bearer abcdefghijklmnop' });
  await c.stop(0);
  const events = fs.readFileSync(file, 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  const hops = (method) => events.filter((e) => e.method === method && e.type === 'request').map((e) => `${e.from} ${e.to}`);
  assert.deepEqual(hops('session/prompt'), ['Client Proxy(0)', 'Proxy(0) Proxy(1)', 'Proxy(1) Agent']);
  assert.ok(hops('tools/call').includes('Agent Proxy(1)'));
  assert.ok(events.some((e) => e.protocol === 'mcp' && e.method === 'tools/call'));
  for (const e of events.filter((x) => x.type === 'request')) {
    assert.ok(events.some((r) => r.type === 'response' && r.id === e.id && r.from === e.to), `${e.method} ${e.id}`);
  }
  assert.ok(!fs.readFileSync(file, 'utf8').includes('abcdefghijklmnop'));
});

test('--debug writes every line of every pipe', async (t) => {
  const dir = `${tempDir()}/logs`;
  const c = await open(t, ['--debug', '--debug-dir', dir, 'agent', proxy('P2'), agent()]);
  await c.stop(0);
  const text = fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8');
  for (const pattern of [/^component 1: /m, /^0 → \+\d+ms .*proxy\/initialize/m, /^1 ← \+\d+ms /m, /^C ← \+\d+ms .*session\/new/m]) assert.match(text, pattern);
});

test('--debug has what components print and what we say of them, each once', async (t) => {
  const dir = `${tempDir()}/logs`;
  const c = new Conductor(t, ['--debug', '--debug-dir', dir, 'agent', agent('--die-in-initialize')]);
  await rejects(c.initialize(), -32603, /exited with 3/);
  await c.stop(1);
  const lines = fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8').split('\n');
  assert.equal(lines.filter((l) => l.includes('agent: last words') && l.includes(' ! ')).length, 1, lines.join('\n'));
  assert.ok(lines.some((l) => /^0 ! \+\d+ms agent: last words$/.test(l)));
  assert.ok(lines.some((l) => /^C ! \+\d+ms error Agent: component 0 .* exited with 3$/.test(l)), lines.join('\n'));
});

test('--serve shows the events on a local page', async (t) => {
  const c = await open(t, ['--serve', 'agent', agent()]);
  const [, url] = await until('the address', () => c.stderr.match(/watch at (http:\/\/\S+)/));
  assert.match((await exchange(url, { method: 'GET' })).text, /<title>conductor/);
  const { events, next } = JSON.parse((await exchange(`${url}events?from=0`, { method: 'GET' })).text);
  assert.ok(events.some((e) => e.method === 'session/new' && e.to === 'Agent'));
  assert.equal(next, events.length);
  assert.equal((await exchange(`${url}events`, { method: 'GET', headers: { Host: 'evil.example' } })).status, 403);
});

test('nested: a proxy conductor relays mcp messages and bridges nothing itself', async (t) => {
  const c = await open(t, ['agent', inner('proxy', proxy('P2', '--mcp', 'M2a'), proxy('P1')), agent()]);
  const answer = await c.callTool(c.session, 'M2a', 'ask');
  assert.equal(textOf(answer), 'sampled fixture');
});
