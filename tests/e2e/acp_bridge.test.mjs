// How an agent gets the MCP servers of components: where their entries are placed, their names and
// addresses, who may connect to a port, and which client a server without connections means.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { McpClient } from '../fixture/acp/mcp_client.mjs';
import { agent, Conductor, dial, eventLog, open, proxy, rejects, secretOf } from './acp_lib.mjs';
import { fake, tempDir, until, within, writeConfig } from './lib.mjs';

const textOf = (answer) => answer.result.content[0].text;
const seenSetup = async (c) => (await c.request('_test/seen', {})).setups.at(-1).params;
const url = (n) => ({ type: 'http', url: `acp:${n}`, headers: [] });

// --- where entries stand ---

// Servers declared in the containers of the old documents (docs/seeds.md) were rewritten only there. Today's
// agents read `mcpServers` alone, so they never saw those servers.
test('a server declared in a container of the documents stands in mcpServers as well', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  await c.initialize();
  const containers = [
    ['mcp_servers', [{ name: 'a', url: 'acp:1', _meta: { kept: 1 } }]],
    ['mcp_servers', { a: { url: 'acp:1', _meta: { kept: 1 } } }],
    ['tools', { mcpServers: { a: { transport: 'http', url: 'acp:1', headers: {}, _meta: { kept: 1 } } } }],
  ];
  const given = [[undefined, 0], [[], 0], [[{ name: 'o', command: '/bin/true', args: [], env: [] }], 1], [{ o: { command: '/bin/true' } }, 1], [null, 0]];
  for (const [name, value] of containers) {
    for (const [mcpServers, others] of given) {
      await c.request('session/new', { cwd: '/', ...(mcpServers === undefined ? {} : { mcpServers }), [name]: value });
      const got = await seenSetup(c);
      const what = JSON.stringify(got);
      const list = Array.isArray(got.mcpServers) ? got.mcpServers : Object.entries(got.mcpServers).map(([n, e]) => ({ name: n, ...e }));
      assert.deepEqual(list.map((e) => e.name), others ? ['o', 'a'] : ['a'], what);
      const holder = got.tools?.mcpServers ?? got.mcp_servers;
      const there = Array.isArray(holder) ? holder[0] : holder.a;
      assert.deepEqual(list.at(-1).args, there.args, `one address: ${what}`);
      assert.deepEqual(list.at(-1)._meta, { kept: 1 }, what);
      assert.equal(Array.isArray(got.mcpServers), Array.isArray(mcpServers ?? []), what);
    }
  }
});

test('a server declared in both containers has one address and one entry in each', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  await c.initialize();
  await c.request('session/new', { cwd: '/', mcpServers: [{ name: 'a', ...url(1) }], tools: { mcpServers: { a: { transport: 'http', url: 'acp:1', headers: {} } } } });
  const got = await seenSetup(c);
  assert.deepEqual(got.mcpServers.map((e) => [e.name, e.args]), [['a', got.tools.mcpServers.a.args]]);
});

test('--with: the hub stands in mcpServers, whatever else the request has', async (t) => {
  const config = writeConfig(tempDir(), { servers: { alpha: fake('--name', 'alpha') } });
  const c = new Conductor(t, ['--with', config, 'agent', agent('--no-connect', 'yes')]);
  await c.initialize();
  await c.request('session/new', { cwd: '/', tools: { mcpServers: {} } });
  assert.deepEqual((await seenSetup(c)).mcpServers.map((e) => e.name), ['rialto']);
});

// --- names ---

// Two proxies that each call their server `tools` gave the agent two servers of one name: agents keep the
// last, or mix up whose tool is whose.
test('names that collide along a chain are told apart, the editor\'s own stay as they are', async (t) => {
  const config = writeConfig(tempDir(), { servers: { alpha: fake('--name', 'alpha') } });
  const c = new Conductor(t, ['--with', config, 'agent', proxy('P3', '--mcp', 'M3c'), proxy('P2', '--mcp', 'M3c'), agent()]);
  await c.initialize();
  const own = { name: 'M3c-2', command: '/bin/cat', args: [], env: [] };
  const session = await c.newSession({ mcpServers: [own, { name: 'rialto', command: '/bin/cat', args: [], env: [] }] });
  const got = (await seenSetup(c)).mcpServers;
  assert.deepEqual(got.map((e) => e.name), ['M3c-2', 'rialto', 'M3c', 'M3c-3', 'rialto-2']);
  assert.deepEqual(got[0], own);
  assert.notDeepEqual(got[2].args, got[3].args);
  const [first, second] = [await c.callTool(session, 'M3c', 'ids'), await c.callTool(session, 'M3c-3', 'ids')].map(textOf);
  assert.notEqual(first.split(' ')[0], second.split(' ')[0]);
  assert.match(c.stderr, /'M3c' .*'M3c-3'/);
});

test('a set-up request that comes again gets the same names', async (t) => {
  const c = await open(t, ['agent', proxy('P3', '--mcp', 'M3c'), proxy('P2', '--mcp', 'M3c'), agent('--no-connect', 'yes')]);
  const first = (await seenSetup(c)).mcpServers.map((e) => [e.name, e.args]);
  await c.request('session/load', { sessionId: c.session, cwd: '/', mcpServers: [] });
  assert.deepEqual((await seenSetup(c)).mcpServers.map((e) => [e.name, e.args]), first);
});

// --- addresses ---

// The session was refused. Every agent of ACP version 1 takes stdio servers, so there was no reason to.
test('--mcp-bridge http: an agent that does not advertise http is given stdio servers', async (t) => {
  const c = await open(t, ['agent', '--mcp-bridge', 'http', proxy('P3', '--mcp', 'M3c'), agent()]);
  assert.equal(c.initialized.agentCapabilities.mcpCapabilities.acp, true);
  assert.equal(textOf(await c.callTool(c.session, 'M3c')), 'M3c: hi');
  assert.ok((await seenSetup(c)).mcpServers[0].command);
  assert.match(c.stderr, /takes no MCP servers over HTTP/);
});

// The second load was given the port of the first, which closed when the first load was refused.
test('overlapping session/load of one session: the end of one does not close the other\'s port', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--fail-first-load')]);
  await c.initialize();
  const load = () => c.request('session/load', { sessionId: 's', cwd: '/', mcpServers: [] });
  const [first, second] = [load(), load()];
  await rejects(first, -32603);
  await within(10_000, 'the second load', second);
  assert.equal(textOf(await c.callTool('s', 'M2a')), 'M2a: hi');
  // Once a session is set up, the addresses of its servers stay the same.
  const { mcpServers: [before] } = await seenSetup(c);
  await load();
  assert.deepEqual((await seenSetup(c)).mcpServers[0].args, before.args);
});

// --- finding out what a server speaks ---

// Proxies pass on what they do not know, so probes for a server's dialect reached the editor: it was asked
// for connections to servers that were not its own.
for (const m of ['M0', 'M0b', 'M1', 'M2a', 'M3a', 'M3c', 'M4']) {
  test(`finding out that a server speaks ${m} does not bother the editor`, async (t) => {
    const c = await open(t, ['agent', proxy('P2'), proxy('P2', '--mcp', m), proxy('P3'), agent()]);
    assert.equal(textOf(await c.callTool(c.session, m)), `${m}: hi`);
    assert.deepEqual(c.heard.map((h) => h.method).filter((h) => h.includes('mcp/')), []);
  });
}

test('two sessions at once with a server of the editor: both reach the editor', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2'), agent()]);
  let connections = 0;
  c.answer = (method, params) => {
    if (method === '_mcp/connect') return { connection_id: `c${++connections}` };
    if (params.method === 'initialize') return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } };
    return { content: [{ type: 'text', text: 'from the editor' }] };
  };
  await c.initialize();
  const sessions = await Promise.all([1, 2, 3].map(() => c.newSession({ mcpServers: [{ name: 'mine', ...url('editor') }] })));
  for (const s of sessions) assert.equal(textOf(await c.callTool(s, 'mine')), 'from the editor');
  assert.equal(connections, 3);
});

// --- the session's id ---

// A session id that came later than 150 ms was not waited for: the connection kept an empty one for good.
for (const [p, m] of [['P1', 'M1s'], ['P2', 'M1s'], ['P1', 'M1']]) {
  test(`a slow session/new: the connect of ${m} behind ${p} waits for the session's id`, async (t) => {
    const log = eventLog();
    const c = await open(t, ['agent', proxy(p, '--mcp', m, '--log', log.file), agent('--slow-answer', 1200)]);
    assert.equal(textOf(await c.callTool(c.session, m)), `${m}: hi`);
    assert.deepEqual(log.of('connect').map((e) => e.session), [c.session]);
  });
}

// --- who may come to a port ---

const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}\n';

/** Writes to a port; resolves to all that comes back until the connection is closed, or until `enough` of it. */
function say(t, port, text, enough = () => false) {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = net.connect({ port, host: '127.0.0.1' }, () => socket.write(text));
    t.after(() => socket.destroy());
    const done = () => { resolve(heard); socket.destroy(); };
    socket.on('error', reject).on('close', done).on('data', (d) => { heard += d; if (enough(heard)) done(); });
  });
}

// Any process on this machine that found the port became an MCP client of the component.
test('a port wants the secret of its entry, from every connection, and of no other port', async (t) => {
  const log = eventLog();
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a,M3c', '--log', log.file), agent('--no-connect', 'yes')]);
  const [first, second] = await c.ask(c.session, { command: 'declared' });
  const port = Number(first.args[1]);
  assert.deepEqual(first.args, ['mcp', String(port)], 'the command line is that of the documents');
  assert.equal(first.env[0].name, 'RIALTO_BRIDGE_AUTH');
  assert.notEqual(secretOf(first), secretOf(second));
  const refused = JSON.parse(await within(10_000, 'the refusal', say(t, port, hello)));
  assert.equal(refused.id, 1);
  assert.match(refused.error.message, /RIALTO_BRIDGE_AUTH.*--open-port/);
  for (const wrong of [secretOf(second), `${secretOf(first).slice(0, -2)}\n`, 'Bearer \n', '\n', 'GET / HTTP/1.1\r\n\r\n', `x${secretOf(first)}`]) {
    assert.equal(await within(10_000, 'the end', say(t, port, wrong + hello)), '', wrong);
  }
  await within(10_000, 'the end', say(t, port, 'x'.repeat(1 << 20)).catch(() => {}));
  assert.equal(log.of('connect').length, 0, 'no component has heard of them');
  for (let i = 0; i < 3; i++) {
    const answer = JSON.parse(await within(10_000, 'the answer', say(t, port, secretOf(first) + hello, (h) => h.includes('\n'))));
    assert.equal(answer.result.serverInfo.name, 'M2a');
  }
});

test('clients that show nothing do not keep out those that have the secret', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--no-connect', 'yes')]);
  const [entry] = await c.ask(c.session, { command: 'declared' });
  const port = Number(entry.args[1]);
  const idle = await Promise.all(Array.from({ length: 300 }, () => new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(socket)).on('error', reject);
    t.after(() => socket.destroy());
  })));
  let closed = 0;
  for (const s of idle) s.on('close', () => { closed++; }).resume();
  await until('the oldest to be closed', () => closed >= 300 - 256);
  const answer = JSON.parse(await within(10_000, 'the answer', say(t, port, secretOf(entry) + hello, (h) => h.includes('\n'))));
  assert.equal(answer.result.serverInfo.name, 'M2a');
});

test('the secret stands in no trace, and in no log', async (t) => {
  const [file, dir] = [`${tempDir()}/trace`, `${tempDir()}/logs`];
  const config = writeConfig(tempDir(), { servers: { alpha: fake('--name', 'alpha') } });
  const c = await open(t, ['-v', '--trace', file, '--debug', '--debug-dir', dir, '--with', config, 'agent', proxy('P2', '--mcp', 'M2a', '--container', 'map'), agent()]);
  await c.callTool(c.session, 'M2a');
  const { mcpServers, tools } = await seenSetup(c);
  const secrets = [...mcpServers.map((e) => e.env[0].value), tools.mcpServers.M2a.env.RIALTO_BRIDGE_AUTH];
  assert.equal(new Set(secrets).size, 2, 'of the component\'s server and of the hub');
  await c.stop(0);
  const texts = [fs.readFileSync(file, 'utf8'), fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8'), c.stderr];
  for (const s of secrets) for (const text of texts) assert.ok(!text.includes(s.slice(-16)), text.slice(Math.max(0, text.indexOf(s.slice(-16)) - 200)).slice(0, 300));
  assert.match(texts[0], /RIALTO_BRIDGE_AUTH/);
});

test('--open-port: no secret, and whoever comes is let in', async (t) => {
  const c = await open(t, ['agent', '--open-port', proxy('P2', '--mcp', 'M2a'), agent()]);
  const [entry] = await c.ask(c.session, { command: 'declared' });
  assert.deepEqual(entry.env, []);
  assert.equal(textOf(await c.callTool(c.session, 'M2a')), 'M2a: hi');
  assert.match(await within(10_000, 'the answer', say(t, Number(entry.args[1]), hello, (h) => h.includes('\n'))), /"M2a"/);
});

// --- servers that know no connections ---

// Messages of M0 and M0b name the server, but no client: with one URL in two sessions, what the server
// asked or reported about a call of the first session went to the second, which had connected last.
for (const m of ['M0', 'M0b']) {
  test(`${m} with one URL in two sessions: questions and progress go to the session they are about`, async (t) => {
    const log = eventLog();
    const calls = () => log.of('request').filter((e) => e.method === 'tools/call').length;
    const c = await open(t, ['agent', proxy('P2', '--mcp', m, '--log', log.file), agent()]);
    const other = await c.newSession();
    await c.callTool(c.session, m);
    await c.callTool(other, m); // the last to connect
    const echo = (session) => c.callTool(session, m, 'echo', { message: 'hi' }, { progressToken: 'tok' });
    const asked = ['sampling/createMessage', 'roots/list'];
    assert.deepEqual((await c.callTool(c.session, m, 'ask')).asked, asked);
    assert.deepEqual((await echo(c.session)).notifications.length, 1);
    // Clients choose their own progress tokens, and all start with the same one.
    const before = calls();
    const prompt = c.request('session/prompt', { sessionId: other, prompt: [{ type: 'text', text: JSON.stringify({ command: 'call_tool', server: m, tool: 'hang', meta: { progressToken: 'tok' } }) }] });
    await until('the call that hangs', () => calls() > before);
    const { notifications } = await echo(c.session);
    assert.deepEqual(notifications.map((n) => n.params), [1, 2].map(() => ({ progressToken: 'tok', progress: 50, total: 100 })));
    // Both sessions have a call in flight now: a question could be meant for either, so neither is asked.
    const ask = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: JSON.stringify({ command: 'call_tool', server: m, tool: 'ask' }) }] });
    await rejects(ask, -32603, /several sessions/);
    await c.request('session/close', { sessionId: other });
    await prompt.catch(() => {});
    const last = await c.callTool(c.session, m, 'ask');
    assert.deepEqual(last.asked, [...asked, ...asked]);
    await c.stop(0);
  });
}

test('M0 with one URL in two sessions: ids are told apart, changes of lists are for everybody', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  const requests = [];
  c.answer = (method, { url: of, message } = {}) => {
    if (method !== '_mcp/client_to_server/request') throw Object.assign(new Error('no'), { code: -32601 });
    requests.push({ of, message });
    return message.method === 'hang' ? new Promise(() => {}) : { message: { jsonrpc: '2.0', id: message.id, result: {} } };
  };
  await c.initialize();
  const clients = [];
  for (let i = 0; i < 2; i++) {
    const session = await c.newSession({ mcpServers: [{ name: 'mine', ...url('shared') }] });
    const [entry] = await c.ask(session, { command: 'declared' });
    const client = { heard: '', socket: dial(entry) };
    client.socket.on('data', (d) => { client.heard += d; });
    t.after(() => client.socket.destroy());
    client.socket.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"hang"}\n');
    await until('the answer', () => client.heard.includes('"id":1,'));
    await until('the call', () => requests.length === 2 * (i + 1));
    clients.push(client);
  }
  // The server sees the clients' own ids, as in the document, but never the same id twice at a time.
  assert.deepEqual(requests.slice(0, 3).map((r) => r.message.id), [1, 2, 1]);
  assert.notEqual(requests[3].message.id, 2);
  clients[1].socket.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"enough","more":[1.50]}}\n');
  const { params: { message } } = await until('the cancelling', () => c.heard.find((h) => h.params?.message?.method === 'notifications/cancelled'));
  assert.deepEqual(message.params, { requestId: requests[3].message.id, reason: 'enough', more: [1.5] });
  c.notify('_mcp/server_to_client/notification', { url: 'acp:shared', message: { jsonrpc: '2.0', method: 'notifications/tools/list_changed' } });
  for (const client of clients) await until('the change', () => client.heard.includes('list_changed'));
});

// --- a client that comes back ---

/** An agent's MCP client whose connection to the conductor goes through a relay, which can reset it. */
async function relay(t, entry) {
  const sockets = [];
  const server = net.createServer((near) => {
    const far = net.connect(Number(entry.args[1]), '127.0.0.1');
    near.on('error', () => {}).pipe(far).on('error', () => {}).pipe(near);
    sockets.push(near);
    t.after(() => { near.destroy(); far.destroy(); });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.on('listening', resolve); });
  t.after(() => server.close());
  const client = new McpClient({ ...entry, args: ['mcp', String(server.address().port)] }, 'legacy');
  t.after(() => client.child.kill('SIGKILL'));
  return { client, breakIt: () => sockets.at(-1).resetAndDestroy(), broken: () => sockets.length };
}

// The server got a new connection without an initialize on it, and servers refuse to work then.
for (const m of ['M0', 'M1', 'M2a', 'M3c', 'M4']) {
  test(`a client whose connection broke goes on with its ${m} server`, async (t) => {
    const log = eventLog();
    const c = await open(t, ['agent', proxy('P2', '--mcp', m, '--strict-mcp', '--log', log.file), agent('--no-connect', 'yes')]);
    const [entry] = await c.ask(c.session, { command: 'declared' });
    const { client, breakIt, broken } = await relay(t, entry);
    await within(10_000, 'the greeting', client.connect());
    const echo = () => within(10_000, 'the call', client.request('tools/call', { name: 'echo', arguments: { message: 'hi' } }));
    assert.equal((await echo()).content[0].text, `${m}: hi`);
    breakIt();
    await until('another connection', () => broken() === 2);
    assert.equal((await echo()).content[0].text, `${m}: hi`);
    await client.close();
  });
}
