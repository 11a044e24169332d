// The message examples of the two documents that the MCP bridge began with (docs/seeds.md), replayed
// literally. Where a document writes [...] or {...}, a value is filled in here; ids differ on each hop.
// The test plays the component that has the server, and the agent's MCP client.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { Peer, RpcError } from '../fixture/acp/peer.mjs';
import { agent, Conductor, eventLog, proxy, rejects } from './acp_lib.mjs';
import { until, within } from './lib.mjs';

const uuid = 'acp:550e8400-e29b-41d4-a716-446655440000';
const sparkle = { transport: 'http', url: uuid, headers: {} };

/** A conductor with these arguments; `component` answers the requests that come from the agent's side. */
async function conduct(t, args, component = () => { throw new RpcError(-32601, 'Method not found'); }) {
  const c = new Conductor(t, ['agent', ...args]);
  c.answer = component;
  c.initialized = await c.initialize();
  return c;
}

const setups = async (c) => (await c.request('_test/seen', {})).setups.map((s) => s.params);

/** The agent's MCP client: it starts the command of its entry, and `said` handles the messages it gets. */
function client(t, { command, args, env }, said = () => ({})) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...Object.fromEntries(env.map((e) => [e.name, e.value])) } });
  t.after(() => child.kill('SIGKILL'));
  return new Peer(child.stdout, child.stdin, said);
}

const heard = (c, method) => until(method, () => c.heard.find((m) => m.method === method));

// --- seed 000 ---

test('000: a declaration in tools.mcpServers becomes conductor mcp PORT in the same place', async (t) => {
  const c = await conduct(t, ['--open-port', agent('--no-connect', 'yes')]);
  await c.request('session/new', { cwd: '/', tools: { mcpServers: { sparkle } } });
  const [{ tools, mcpServers }] = await setups(c);
  const [, port] = tools.mcpServers.sparkle.args;
  assert.match(port, /^\d+$/);
  const { command, ...rest } = tools.mcpServers.sparkle;
  assert.deepEqual({ command: path.basename(command), ...rest }, { command: 'conductor', args: ['mcp', port], transport: 'stdio' });
  assert.deepEqual(mcpServers, [{ name: 'sparkle', command, args: ['mcp', port], env: [] }], 'where agents of today look');
});

test('000: an agent with _meta.mcp_acp_transport gets the declaration unchanged, every other component is told so', async (t) => {
  const native = await conduct(t, [agent('--native', 'url', '--native-place', 'result')]);
  assert.deepEqual(native.initialized._meta, { mcp_acp_transport: true });
  await native.request('session/new', { cwd: '/', tools: { mcpServers: { sparkle } } });
  assert.deepEqual(await setups(native), [{ cwd: '/', tools: { mcpServers: { sparkle } } }]);
  const other = await conduct(t, [agent()]);
  assert.deepEqual(other.initialized._meta, { mcp_acp_transport: true }, 'to those before the agent');
});

test('000: requests and notifications in both directions', async (t) => {
  const answers = [];
  const c = await conduct(t, [agent('--no-connect', 'yes')], (method) => {
    if (method !== '_mcp/client_to_server/request') throw new RpcError(-32601, 'Method not found');
    return new Promise((resolve) => { answers.push(resolve); });
  });
  await c.request('session/new', { cwd: '/', tools: { mcpServers: { sparkle } } });
  const [{ mcpServers: [entry] }] = await setups(c);
  const asked = [];
  const mcp = client(t, entry, (method, params) => { asked.push({ method, params }); return { role: 'assistant', content: { type: 'text', text: 'yes' } }; });

  const call = mcp.request('tools/call', { name: 'embody_sparkle', arguments: {} }, 'mcp-123');
  const request = await heard(c, '_mcp/client_to_server/request');
  assert.deepEqual(request.params, {
    url: uuid, message: { jsonrpc: '2.0', id: 'mcp-123', method: 'tools/call', params: { name: 'embody_sparkle', arguments: {} } },
  });

  c.notify('_mcp/server_to_client/notification', {
    url: uuid, message: { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'token-1', progress: 50, total: 100 } },
  });
  const sampling = { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }], modelPreferences: { hints: [] } };
  const answer = await within(10_000, 'the answer', c.request('_mcp/server_to_client/request', {
    url: uuid, message: { jsonrpc: '2.0', id: 'mcp-456', method: 'sampling/createMessage', params: sampling },
  }, 'S1'));
  assert.deepEqual(answer, { message: { jsonrpc: '2.0', id: 'mcp-456', result: { role: 'assistant', content: { type: 'text', text: 'yes' } } } });
  assert.deepEqual(asked, [
    { method: 'notifications/progress', params: { progressToken: 'token-1', progress: 50, total: 100 } },
    { method: 'sampling/createMessage', params: sampling },
  ]);

  answers[0]({ message: { jsonrpc: '2.0', id: 'mcp-123', result: { content: [{ type: 'text', text: 'done' }] } } });
  assert.deepEqual(await within(10_000, 'the result', call), { content: [{ type: 'text', text: 'done' }] });

  mcp.notify('notifications/cancelled', {});
  const notification = await heard(c, '_mcp/client_to_server/notification');
  assert.deepEqual(notification.params, { url: uuid, message: { jsonrpc: '2.0', method: 'notifications/cancelled', params: {} } });
});

test('000: a message that is no JSON is passed over, the next one is answered', async (t) => {
  const c = await conduct(t, [agent('--no-connect', 'yes')], (method, { message } = {}) => {
    if (method !== '_mcp/client_to_server/request') throw new RpcError(-32601, 'Method not found');
    return { message: { jsonrpc: '2.0', id: message.id, result: {} } };
  });
  await c.request('session/new', { cwd: '/', tools: { mcpServers: { sparkle } } });
  const [{ mcpServers: [entry] }] = await setups(c);
  const mcp = client(t, entry);
  assert.deepEqual(await within(10_000, 'the first', mcp.request('ping')), {});
  mcp.output.write('this is no JSON\n');
  assert.deepEqual(await within(10_000, 'the next', mcp.request('ping')), {});
});

// --- seed 001 ---

/** The component of the document: gives a new id to each connect and records its params in `connections`. */
function research(connections) {
  return (method, params) => {
    if (method === '_mcp/connect') {
      connections.push(params);
      return { connection_id: connections.length === 1 ? 'conn-xyz' : `conn-${connections.length}` };
    }
    if (method === '_mcp/request' && params.method === 'tools/list') return { tools: [{ name: 'research' }] };
    throw new RpcError(-32601, 'Method not found');
  };
}

// The document spells some members of ACP differently from ACP itself (mcp_servers, session_id).
test('001: from the declaration to the disconnect', async (t) => {
  const connections = [];
  const c = await conduct(t, [agent('--no-connect', 'yes')], research(connections));
  await c.request('session/new', { cwd: '/', mcp_servers: [{ name: 'research-tools', url: 'acp:uuid-123' }], answerWith: { sessionId: null, session_id: 'sess-abc' } });
  const [{ mcp_servers: [entry] }] = await setups(c);
  assert.deepEqual([entry.name, path.basename(entry.command), entry.args[0]], ['research-tools', 'conductor', 'mcp']);
  const mcp = client(t, entry);
  assert.deepEqual(await within(10_000, 'tools/list', mcp.request('tools/list', {})), { tools: [{ name: 'research' }] });
  assert.deepEqual([connections[0].acp_url, connections[0].session_id], ['acp:uuid-123', 'sess-abc']);
  const { params } = await heard(c, '_mcp/request');
  assert.deepEqual([params.connection_id, params.method, params.params], ['conn-xyz', 'tools/list', {}]);
  mcp.output.end(); // the agent closes its end
  const gone = await heard(c, '_mcp/disconnect');
  assert.equal(gone.params.connection_id, 'conn-xyz');
  assert.equal(gone.id, undefined, 'a notification');
});

test('001: two servers have two ports, all connections know the session, each has an id of its own', async (t) => {
  const connections = [];
  const c = await conduct(t, [agent('--no-connect', 'yes')], research(connections));
  const session = await c.newSession({ mcpServers: [1, 2].map((n) => ({ type: 'http', name: `s${n}`, url: `acp:uuid-${n}`, headers: [] })) });
  const [{ mcpServers: [first, second] }] = await setups(c);
  assert.notEqual(first.args[1], second.args[1]);
  const clients = [];
  for (const entry of [first, second, first]) {
    const mcp = client(t, entry);
    await within(10_000, 'tools/list', mcp.request('tools/list', {}));
    clients.push(mcp);
  }
  assert.deepEqual(connections.map((p) => [p.acp_url, p.session_id]), [['acp:uuid-1', session], ['acp:uuid-2', session], ['acp:uuid-1', session]]);
  const used = c.heard.filter((m) => m.method === '_mcp/request').map((m) => m.params.connection_id);
  assert.equal(new Set(used).size, 3, used.join());
});

test('001: a connection that comes before the session id waits for it', async (t) => {
  const log = eventLog();
  const c = new Conductor(t, ['agent', proxy('P1', '--mcp', 'M1s', '--log', log.file), agent('--no-connect', 'yes', '--hang-new')]);
  await c.initialize();
  const setup = c.request('session/new', { cwd: '/', mcpServers: [] });
  const entry = await until('session/new at the agent', async () => (await setups(c))[0]?.mcpServers[0]);
  const mcp = client(t, entry); // the port is open before the session exists
  const list = mcp.request('tools/list', {});
  await c.request('_test/seen', {});
  assert.deepEqual(log.of('connect'), []);
  // The client cancels session/new: the port closes, and with it the connections that wait there.
  c.notify('$/cancel_request', { requestId: setup.id });
  await rejects(setup, -32800);
  const end = await within(20_000, 'the end', Promise.race([list.then(() => 'answered', (e) => e.message), mcp.ended.then(() => 'closed')]));
  assert.notEqual(end, 'answered');
  await assert.rejects(once(net.connect(Number(entry.args[1]), '127.0.0.1'), 'connect'), /ECONNREFUSED/);
  assert.deepEqual(log.of('connect'), []);
});
