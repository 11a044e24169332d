// Between an MCP client and a server of the same era we add no messages of our own: the server is a
// provider on the core, and every message passes as it is (decision 009). The test plays both ends:
// the ACP client, which hosts the server, and the MCP client of the agent, on its socket.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcError } from '../fixture/acp/peer.mjs';
import { agent, Conductor, dial } from './acp_lib.mjs';
import { until, within } from './lib.mjs';

/** An MCP client on the port of a declared server; every line that it receives is in `lines`. */
function join(t, entry) {
  const socket = dial(entry, { allowHalfOpen: true });
  const client = {
    socket, lines: [], closed: new Promise((resolve) => { socket.on('end', resolve); }),
    write: (text) => socket.write(`${text}\n`),
    send: (message) => socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    messages: () => client.lines.map((l) => JSON.parse(l)),
    hear: (what, pick) => until(what, () => client.messages().find(pick)),
  };
  let text = '';
  socket.setEncoding('utf8').on('error', () => {}).on('data', (d) => {
    const parts = (text + d).split('\n');
    text = parts.pop();
    client.lines.push(...parts);
  });
  t.after(() => socket.destroy());
  return client;
}

/** A session with a server that the test hosts; `serve(params, id)` answers its MCP messages. */
async function host(t, { stateless = false } = {}) {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  const server = { c, messages: [], serve: () => ({}) };
  c.answer = (method, params, id) => {
    if (method === 'mcp/connect' && !stateless) return { connectionId: 'c1' };
    if (method === 'mcp/disconnect') return {};
    if (method !== 'mcp/message') throw new RpcError(-32601, `Method not found: ${method}`);
    return server.serve(params, id);
  };
  await c.initialize();
  server.session = await c.newSession({ mcpServers: [{ type: 'acp', name: 'mine', serverId: 'mine-1' }] });
  [server.entry] = await c.ask(server.session, { command: 'declared' });
  /** Messages from the server to its client. */
  server.request = (method, params) => c.request('mcp/message', { connectionId: 'c1', method, params });
  server.notify = (method, params) => c.notify('mcp/message', { connectionId: 'c1', method, params });
  server.heard = (method) => until(method, () => c.heard.find((m) => m.method === 'mcp/message' && m.params.method === method));
  return server;
}

const never = () => new Promise(() => {});

test('requests and answers keep every byte of what they carry', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  const params = '{"z":1.50,"a":[1e3,null],"_meta":{"progressToken":7,"own":{"é":"\\u00e9"}},"z2":12345678901234567890}';
  const result = '{"n":1.0,"m":{"b":2,"a":1},"_meta":{"x":[0.10]},"resultType":"anything"}';
  server.serve = never;
  client.write(`{"id":"x\\u002fy","method":"in\\/vented","params":${params},"jsonrpc":"2.0"}`);
  const { id } = await server.heard('in/vented');
  assert.ok(server.c.lines.some((l) => l.includes(`"params":${params}`)), server.c.lines.at(-1));
  server.c.child.stdin.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
  await until('the answer', () => client.lines.length);
  assert.equal(client.lines[0], `{"jsonrpc":"2.0","id":"x\\u002fy","result":${result}}`);
});

test('an error keeps its code, message and data', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  server.serve = () => { throw new RpcError(-31999, 'no', { why: ['x', 1] }); };
  client.send({ id: 1, method: 'tools/call', params: { name: 'unheard-of' } });
  assert.deepEqual((await client.hear('the error', (m) => m.id === 1)).error, { code: -31999, message: 'no', data: { why: ['x', 1] } });
});

test('the greeting is for the two of them alone', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  const hello = { protocolVersion: '1999-12-31', capabilities: { roots: {}, experimental: { 'x/y': { z: 1 } }, tasks: { list: {} } }, clientInfo: { name: 'me', version: '7', icons: [] }, unknown: [1] };
  const welcome = { protocolVersion: '2001-01-01', capabilities: { tasks: {}, experimental: {} }, serverInfo: { name: 'I', version: '0' }, instructions: 'be kind', more: true };
  server.serve = ({ method, params }) => {
    if (method === 'initialize') assert.deepEqual(params, hello);
    return method === 'initialize' ? welcome : {};
  };
  client.send({ id: 0, method: 'initialize', params: hello });
  assert.deepEqual((await client.hear('the welcome', (m) => m.id === 0)).result, welcome);
  client.send({ method: 'notifications/initialized' });
  await server.heard('notifications/initialized');
  const methods = server.c.heard.filter((m) => m.method === 'mcp/message').map((m) => m.params.method);
  assert.deepEqual(methods, ['initialize', 'notifications/initialized'], 'nobody else asked for anything');
});

test('notifications pass both ways, unknown ones too, and in order', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  server.serve = ({ method }) => {
    for (let i = 0; i < 50 && method === 'start'; i++) server.notify('notifications/odd', { i });
    return { done: method };
  };
  client.send({ method: 'notifications/strange', params: { a: 1 } });
  client.send({ method: 'notifications/progress', params: { progressToken: 'the server\'s', progress: 1 } });
  client.send({ id: 5, method: 'start' });
  await client.hear('the answer', (m) => m.id === 5);
  const heard = client.messages();
  assert.deepEqual(heard.slice(0, 50).map((m) => [m.method, m.params.i]), Array.from({ length: 50 }, (_, i) => ['notifications/odd', i]));
  assert.deepEqual(heard.at(-1).result, { done: 'start' });
  assert.deepEqual(server.c.heard.filter((m) => m.method === 'mcp/message').map((m) => [m.params.method, m.params.params ?? null]), [
    ['notifications/strange', { a: 1 }],
    ['notifications/progress', { progressToken: 'the server\'s', progress: 1 }],
    ['start', null],
  ]);
});

test('what the server asks reaches its client, whatever it is, and the answer goes back', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  client.send({ id: 1, method: 'hello' });
  await client.hear('the connection', (m) => m.id === 1);
  const answers = ['ping', 'roots/list', 'sampling/createMessage', 'odd/question'].map((method) => server.request(method, { _meta: { progressToken: 3 }, of: method }));
  await until('the questions', () => client.messages().filter((m) => m.id && m.method).length === 4);
  const asked = client.messages().filter((m) => m.method);
  assert.deepEqual(asked.map((m) => m.params), asked.map((m) => ({ _meta: { progressToken: 3 }, of: m.method })));
  // Answered in another order than asked.
  for (const m of asked.toReversed()) {
    if (m.method === 'odd/question') client.send({ id: m.id, error: { code: 7, message: 'cannot', data: [m.method] } });
    else client.send({ id: m.id, result: { to: m.method } });
  }
  const given = await within(20_000, 'the answers', Promise.allSettled(answers));
  assert.deepEqual(given.slice(0, 3).map((g) => g.value), ['ping', 'roots/list', 'sampling/createMessage'].map((to) => ({ to })));
  assert.deepEqual([given[3].reason.code, given[3].reason.message, given[3].reason.data], [7, 'cannot', ['odd/question']]);
});

test('what the server takes back need not be answered', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  client.send({ id: 1, method: 'hello' });
  await client.hear('the connection', (m) => m.id === 1);
  const asked = server.request('sampling/createMessage', {});
  const question = await client.hear('the question', (m) => m.method === 'sampling/createMessage');
  server.c.notify('$/cancel_request', { requestId: asked.id, reason: 'no more need' });
  await assert.rejects(within(20_000, 'the end of it', asked), { code: -32800 });
  const cancelled = await client.hear('the cancellation', (m) => m.method === 'notifications/cancelled');
  assert.deepEqual(cancelled.params, { requestId: question.id, reason: 'no more need' });
  client.send({ id: question.id, result: {} }); // too late: ignored
  client.send({ id: 2, method: 'hello' });
  await client.hear('the next answer', (m) => m.id === 2);
});

// The server was told to stop, but not why: `reason` and all other members were dropped.
test('a call that its client cancels ends at the server, which hears why, and is not answered', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  server.serve = ({ method }) => (method === 'wait' ? never() : {});
  client.send({ id: 'w', method: 'wait' });
  const { id } = await server.heard('wait');
  client.send({ method: 'notifications/cancelled', params: { reason: 'too slow', requestId: 'w', _meta: { x: [1] } } });
  const { params } = await until('the cancel', () => server.c.heard.find((m) => m.method === '$/cancel_request'));
  assert.deepEqual(params, { reason: 'too slow', requestId: id, _meta: { x: [1] } });
  client.send({ id: 2, method: 'hello' });
  await client.hear('the next answer', (m) => m.id === 2);
  assert.deepEqual(client.messages().map((m) => m.id), [2]);
});

// The socket was closed without an answer to the client's requests.
test('calls in flight are told when the server leaves', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  server.serve = never;
  client.send({ id: 1, method: 'tools/call', params: {} });
  client.send({ id: 2, method: 'tools/call', params: {} });
  await until('both calls', () => server.c.count('mcp/message') === 2);
  await server.c.request('mcp/disconnect', { connectionId: 'c1' });
  await within(10_000, 'the end of the connection', client.closed);
  const errors = client.messages();
  assert.deepEqual(errors.map((m) => m.id), [1, 2]);
  for (const { error } of errors) assert.match(error.message, /'mine' ended while the call was open: the server's component closed the connection/);
});

test('a server that cannot be connected to is an error for its client, with the reason', async (t) => {
  const server = await host(t);
  server.c.answer = () => { throw new RpcError(-32000, 'out of order'); };
  const client = join(t, server.entry);
  client.send({ id: 'first', method: 'initialize', params: {} });
  await within(10_000, 'the end of the connection', client.closed);
  const [{ id, error }] = client.messages();
  assert.equal(id, 'first');
  assert.match(error.message, /server 'mine' is not available: .*out of order/);
});

test('a last line without its end is a message', async (t) => {
  const server = await host(t);
  const client = join(t, server.entry);
  client.socket.end('{"jsonrpc":"2.0","id":9,"method":"hello"}');
  await within(10_000, 'the end of the connection', client.closed);
  assert.deepEqual(client.messages(), [{ jsonrpc: '2.0', id: 9, result: {} }]);
});

test('the stateless era passes as well, and a subscription keeps the name its client gave it', async (t) => {
  const server = await host(t, { stateless: true });
  const client = join(t, server.entry);
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { extensions: { 'a/b': {} } }, 'io.modelcontextprotocol/clientInfo': { name: 'me', version: '7' } };
  const waiting = [];
  server.serve = ({ method, params, requestId }, id) => {
    assert.deepEqual(params._meta, meta);
    if (method !== 'subscriptions/listen') return { result: { method, odd: 1.5 } };
    waiting.push({ requestId, id });
    return never();
  };
  client.send({ id: 'a', method: 'odd/method', params: { _meta: meta } });
  assert.deepEqual((await client.hear('the answer', (m) => m.id === 'a')).result, { method: 'odd/method', odd: 1.5 });
  client.send({ id: 'sub', method: 'subscriptions/listen', params: { _meta: meta, notifications: { anythingAtAll: true } } });
  await server.heard('subscriptions/listen');
  const [{ requestId, id }] = waiting;
  const tagged = { _meta: { 'io.modelcontextprotocol/subscriptionId': requestId } };
  server.c.notify('mcp/message', { serverId: 'mine-1', requestId, method: 'notifications/odd', params: { ...tagged, n: 1 } });
  const { params } = await client.hear('the event', (m) => m.method === 'notifications/odd');
  assert.deepEqual(params, { _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' }, n: 1 });
  server.c.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { result: { ...tagged, resultType: 'complete' } } })}\n`);
  const { result } = await client.hear('the end', (m) => m.id === 'sub');
  assert.equal(result._meta['io.modelcontextprotocol/subscriptionId'], 'sub');
});

// The reason was dropped on the way, and so was a cancel that names no request.
test('notifications/cancelled keeps its reason and every other member, both ways', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-connect', 'yes')]);
  let answers = 0;
  c.answer = (method, { message } = {}) => {
    if (method !== '_mcp/client_to_server/request') throw new RpcError(-32601, 'Method not found');
    return message.method === 'hang' ? never() : { message: { jsonrpc: '2.0', id: message.id, result: { n: ++answers } } };
  };
  await c.initialize();
  const session = await c.newSession({ mcpServers: [{ type: 'http', name: 'mine', url: 'acp:m0', headers: [] }] });
  const [entry] = await c.ask(session, { command: 'declared' });
  const client = join(t, entry);
  client.send({ id: 'a', method: 'hello' });
  await client.hear('the connection', (m) => m.id === 'a');
  client.send({ id: 'b', method: 'hang' });
  const { params: { message: hang } } = await until('the call', () => c.heard.find((h) => h.params?.message?.method === 'hang'));
  const cancelled = () => c.lines.filter((l) => l.includes('notifications/cancelled'));
  client.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"z":1.50,"reason":"too slow","requestId":"b","more":{"é":[]}}}');
  await until('the cancelling', () => cancelled().length === 1);
  assert.ok(cancelled()[0].includes(`"params":{"z":1.50,"reason":"too slow","requestId":${JSON.stringify(hang.id)},"more":{"é":[]}}`), cancelled()[0]);
  client.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}'); // as the document has it
  await until('the other', () => cancelled().length === 2);
  assert.ok(cancelled()[1].includes('"message":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}'), cancelled()[1]);
  // The server cancels its own request.
  c.request('_mcp/server_to_client/request', { url: 'acp:m0', message: { jsonrpc: '2.0', id: 'mcp-456', method: 'sampling/createMessage', params: {} } });
  const { id } = await client.hear('the question', (m) => m.method === 'sampling/createMessage');
  c.notify('_mcp/server_to_client/notification', { url: 'acp:m0', message: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'mcp-456', reason: 'no more need', x: 1 } } });
  const back = await client.hear('that it is taken back', (m) => m.method === 'notifications/cancelled');
  assert.deepEqual(back.params, { requestId: id, reason: 'no more need', x: 1 });
});
