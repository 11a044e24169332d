// Every dialect of BTCP, with fakes that send what the real clients send and check each byte that
// comes back.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { exchange, sleep, tempDir, until } from './lib.mjs';
import { Socket, agent, greet, page, post, serveBrowser, stream, text } from './browser_lib.mjs';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('flow 7, D1: session/create, tools/register, session/join, tools/list, tools/call', async (t) => {
  const server = await serveBrowser(t);
  const browser = new Socket(t, server, '/');
  await browser.opened;
  const created = await browser.request('session/create', {});
  const session = created.result.sessionId;
  assert.match(session, uuid);
  assert.ok(created.result.expiresAt > Date.now() + 3_500_000);
  browser.send(`{"jsonrpc":"2.0","id":7,"method":"tools/register","params":{"tools":[${JSON.stringify(greet)}]}}`);
  await until('reply', () => browser.frames.includes('{"jsonrpc":"2.0","id":7,"result":{"registered":1}}'));

  const client = new Socket(t, server, '/btcp');
  await client.opened;
  assert.deepEqual((await client.request('session/join', { sessionId: 'nowhere' })).error,
    { code: -32602, message: 'Session not found: nowhere' });
  assert.deepEqual((await client.request('session/join', { sessionId: session })).result,
    { sessionId: session, tools: [greet] });
  // In the form that the document's own bridge reads: a bare array, and what the tool returned.
  assert.deepEqual((await client.request('tools/list', {})).result, [greet]);
  browser.answer((name, args) => text(`${name} ${args.who}`));
  client.send('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"who":"Ann"}}}');
  await until('result', () => client.frames.includes(
    '{"jsonrpc":"2.0","id":1,"result":"greet Ann"}'));
  const asked = browser.messages().find((m) => m.method === 'tools/call');
  assert.equal(JSON.stringify(asked),
    `{"jsonrpc":"2.0","id":"${asked.id}","method":"tools/call","params":{"name":"greet","arguments":{"who":"Ann"}}}`);

  await browser.request('tools/register', { tools: [greet, { ...greet, name: 'wave' }] });
  await client.find('tools/updated', (m) => m.method === 'tools/updated' && m.params.tools.length === 2);
  browser.ws.terminate();
  await client.find('browser/disconnected', (m) => m.method === 'browser/disconnected'
    && m.params.sessionId === session);
  assert.equal((await client.request('tools/call', { name: 'greet' })).error.message,
    'No browser client connected to this session');
});

test('flow 7, D1: tools before a session, unknown methods, bad JSON', async (t) => {
  const server = await serveBrowser(t);
  const socket = new Socket(t, server, '/');
  await socket.opened;
  assert.deepEqual((await socket.request('tools/register', { tools: [] })).error,
    { code: -32600, message: 'Not in a session' });
  assert.deepEqual((await socket.request('tools/fly', {})).error,
    { code: -32601, message: 'Method not found: tools/fly' });
  socket.send('{"jsonrpc":');
  await socket.find('parse error', (m) => m.error?.code === -32700 && m.id === null);
  socket.send('[]');
  await socket.find('invalid', (m) => m.error?.code === -32600 && m.id === null);
  await socket.request('session/create', {});
  assert.equal((await socket.request('tools/register', { tools: [{ description: 'nameless' }] })).error.code, -32602);
  assert.equal((await socket.request('tools/register', { tools: {} })).error.code, -32602);
});

test('flow 8, D2: hello of a browser and of an agent', async (t) => {
  const server = await serveBrowser(t);
  const browser = new Socket(t, server, '/');
  await browser.opened;
  browser.send('{"jsonrpc":"2.0","id":"btcp-1-1","method":"hello","params":{"clientType":"browser","version":"1.0.0","sessionId":"S","capabilities":["tools/execute","browser/automation"]}}');
  await until('welcome', () => browser.frames[0]
    === '{"jsonrpc":"2.0","id":"btcp-1-1","result":{"sessionId":"S","message":"Welcome to BTCP server"}}');
  assert.deepEqual((await browser.request('tools/register', { tools: [greet] })).result, { registered: 1 });
  assert.deepEqual((await browser.request('ping')).result, { pong: true });
  const client = new Socket(t, server, '/');
  await client.opened;
  const welcome = await client.request('hello', { clientType: 'agent', version: '1.0.0' });
  assert.deepEqual(welcome.result, { message: 'Welcome to BTCP server', availableSessions: ['S'] });
  assert.deepEqual((await client.request('session/join', { sessionId: 'S' })).result.tools, [greet]);
  const nameless = new Socket(t, server, '/');
  await nameless.opened;
  assert.match((await nameless.request('hello', { clientType: 'browser' })).result.sessionId, /^session-\d+$/);
});

// Browsers that connected within the same millisecond were put into one session.
test('flow 8, D2: every browser that names no session gets its own', async (t) => {
  const server = await serveBrowser(t);
  const sockets = Array.from({ length: 20 }, () => new Socket(t, server, '/'));
  await Promise.all(sockets.map((s) => s.opened));
  const replies = await Promise.all(sockets.map((s) => s.request('hello', { clientType: 'browser', version: '1.0.0' })));
  assert.equal(new Set(replies.map((r) => r.result.sessionId)).size, 20);
  for (const { result } of replies) assert.match(result.sessionId, /^session-\d{13}$/);
});

test('flow 1, D3: the URL is the handshake, repeated slashes and all', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  const first = socket.messages()[0];
  assert.equal(socket.frames[0],
    `{"jsonrpc":"2.0","method":"connected","params":{"clientId":"${first.params.clientId}","sessionId":"S","clientType":"browser"}}`);
  assert.deepEqual((await socket.request('ping', undefined, 'ping-1')).result, { pong: true });
  const client = await agent(server, 'S');
  assert.deepEqual((await client.request('tools/list')).result.tools, [greet]);
  // If the URL names no session, the server makes one up.
  const other = new Socket(t, server, '/btcp/ws?clientType=browser&version=1.0.0');
  await other.opened;
  assert.match((await other.find('connected', (m) => m.method === 'connected')).params.sessionId, uuid);
});

test('flow 2, D3: results as they come, and two agents with the same id', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet, { ...greet, name: 'slow' }]);
  socket.answer(async (name, args) => {
    await sleep(name === 'slow' ? 100 : 0);
    return text(`${name} ${args.who}`);
  });
  const [a, b] = await Promise.all([agent(server, 'S'), agent(server, 'S')]);
  const call = (client, id, name, who) => client.rawRequest(id, 'tools/call',
    JSON.stringify({ name, arguments: { who } }));
  const [one, two, three] = await Promise.all([
    call(a, '5', 'slow', 'a'), call(b, '5', 'greet', 'b'), call(b, '"5"', 'greet', 'c')]);
  assert.equal(one.raw, '{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"slow a"}],"isError":false}}');
  assert.equal(two.message.result.content[0].text, 'greet b');
  assert.equal(two.message.id, 5);
  assert.equal(three.message.id, '5');
});

test('flow 3, D4a: events and messages by query', async (t) => {
  const server = await serveBrowser(t);
  assert.equal((await exchange(`${server.origin}/events?clientType=browser`, { method: 'GET' })).text,
    '{"error":"sessionId is required"}');
  assert.equal((await exchange(`${server.origin}/message`, { body: '{}' })).status, 400);
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser&version=1.0');
  assert.equal(events.headers['content-type'], 'text/event-stream');
  await until('connected', () => /^data: \{"jsonrpc":"2\.0","method":"connected","params":\{"clientId":"[^"]+","sessionId":"S","clientType":"browser"\}\}\n\n$/.test(events.text));
  assert.equal((await post(server, '/message?sessionId=S', '{nonsense')).status, 400);
  const registered = await post(server, '/message?sessionId=S',
    { jsonrpc: '2.0', id: 'r', method: 'tools/register', params: { tools: [greet] } });
  assert.equal(registered.status, 200);
  assert.equal(registered.text, '{"jsonrpc":"2.0","id":"r","result":{"success":true,"registered":1}}');
  await events.find('the same on the stream', (e) => e.data.id === 'r' && e.data.result.registered === 1);
  const pong = await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: 'p', method: 'ping' });
  assert.ok(Math.abs(JSON.parse(pong.text).result.timestamp - Date.now()) < 5000);

  const client = await agent(server, 'S');
  const answer = client.call('greet', { who: 'Zoë 🎉' });
  const { event, data } = await events.find('the call', (e) => e.data.method === 'tools/call');
  assert.equal(event, undefined);
  assert.match(events.text, /"who":"Zo\\u00eb \\ud83c\\udf89"/, 'ASCII on the stream');
  assert.equal(data.params.arguments.who, 'Zoë 🎉');
  // Failures of this client have both members: the result counts.
  const reply = await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id,
    result: { content: [{ type: 'text', text: 'Tool not found: nope' }], isError: true },
    error: { code: -32603, message: 'Tool not found: nope' } });
  assert.deepEqual([reply.status, reply.text], [200, '']);
  assert.deepEqual((await answer).result, { content: [{ type: 'text', text: 'Tool not found: nope' }], isError: true });
});

test('flow 3, D4a: an agent by events and messages', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  browser.answer((name, args) => text(`hi ${args.who}`));
  const events = await stream(t, server, '/events?sessionId=agent-1&clientType=agent&version=1.0');
  await events.find('sessions', (e) => e.data.id === 'sessions' && e.data.result.sessions[0].id === 'S'
    && e.data.result.sessions[0].toolCount === 1);
  const { data } = await events.find('connected', (e) => e.data.method === 'connected');
  const own = `/message?sessionId=agent-1&clientId=${data.params.clientId}`;
  const joined = await post(server, own, { jsonrpc: '2.0', id: 1, method: 'session/join', params: { sessionId: 'S' } });
  assert.deepEqual(JSON.parse(joined.text).result, { success: true, sessionId: 'S', tools: [greet] });
  await events.find('joined', (e) => e.data.id === 1 && e.data.result.success);
  const missing = await post(server, own, { jsonrpc: '2.0', id: 2, method: 'session/join', params: { sessionId: 'X' } });
  assert.deepEqual(JSON.parse(missing.text).error, { code: -32002, message: 'Session not found: X' });
  const target = `/message?sessionId=S&clientId=${data.params.clientId}`;
  const called = await post(server, target, { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'greet', arguments: { who: 'Bo' } } });
  assert.deepEqual([called.status, called.text], [200, '']);
  await events.find('result', (e) => e.data.id === 3 && e.data.result.content[0].text === 'hi Bo');
});

test('flow 4, D4b: the session is in a header, the reply in the body', async (t) => {
  const server = await serveBrowser(t);
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
  const header = { 'X-Session-ID': 'S' };
  const registered = await post(server, '/message',
    { jsonrpc: '2.0', id: 'btcp-1-2', method: 'tools/register', params: { tools: [greet] } }, header);
  assert.equal(registered.text, '{"jsonrpc":"2.0","id":"btcp-1-2","result":{"registered":1}}');
  const client = await agent(server, 'S');
  const answer = client.call('greet', {});
  const { data } = await events.find('the call', (e) => e.data.method === 'tools/call');
  await post(server, '/message', { jsonrpc: '2.0', id: data.id, error: { code: -32601, message: 'Tool not found: nope' } }, header);
  assert.deepEqual((await answer).error, { code: -32601, message: 'Tool not found: nope', data: { btcpCode: -32601 } });
  // An agent that never joins and has no stream: the reply is in the body.
  const listed = await post(server, '/message', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, header);
  assert.deepEqual(JSON.parse(listed.text).result, { tools: [greet] });
  const preflight = await exchange(`${server.origin}/message`, { method: 'OPTIONS', headers: {
    Origin: 'http://localhost:5173', 'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'content-type,x-session-id' } });
  assert.equal(preflight.status, 204);
  assert.match(preflight.headers['access-control-allow-headers'], /x-session-id/i);
});

test('flow 5, D5: the extension is given its session, and named events', async (t) => {
  const server = await serveBrowser(t);
  const events = await stream(t, server, '/events?clientId=C1');
  const { data } = await events.find('session', (e) => e.event === 'session');
  assert.equal(events.text, `event: session\ndata: {"sessionId":"${data.sessionId}"}\n\n`);
  const registered = await post(server, '/tools/register',
    { jsonrpc: '2.0', id: 'register-1', method: 'tools/register', params: { tools: [greet] } }, { 'X-Client-ID': 'C1' });
  assert.equal(registered.status, 200);
  assert.deepEqual(JSON.parse(registered.text).result, { registered: 1 });
  const client = await agent(server, data.sessionId);
  const answer = client.call('greet', { who: 'x' });
  const call = await events.find('tool_call', (e) => e.event === 'tool_call');
  assert.equal(call.data.method, 'tools/call');
  // Another client cannot answer the call.
  await post(server, '/tools/response', { jsonrpc: '2.0', id: call.data.id, ...text('forged') }, { 'X-Client-ID': 'C2' });
  await post(server, '/tools/response', { jsonrpc: '2.0', id: call.data.id, ...text('right') }, { 'X-Client-ID': 'C1', 'X-Session-ID': data.sessionId });
  assert.equal((await answer).result.content[0].text, 'right');
  events.close();
  await until('tools gone', async () => (await client.toolNames()).length === 0);
  // The extension reconnects with a new client id and the session it was given.
  const again = await stream(t, server, `/events?clientId=C9&sessionId=${data.sessionId}`);
  await again.find('the same session', (e) => e.data.sessionId === data.sessionId);
  await post(server, '/tools/register', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } }, { 'X-Client-ID': 'C9' });
  await client.waitFor('greet');
  assert.doesNotMatch(again.text, /tools\/list/);
});

test('flow 6, D6: register first, stream later, answers that carry only an id', async (t) => {
  const server = await serveBrowser(t);
  const registered = await post(server, '/register', { jsonrpc: '2.0', id: 'reg', method: 'tools/register', params: { sessionId: 'B1', tools: [greet] } });
  assert.equal(registered.text, '{"jsonrpc":"2.0","id":"reg","result":{"success":true}}');
  const client = await agent(server, 'B1');
  assert.deepEqual(await client.toolNames(), [], 'nobody to call yet');
  const events = await stream(t, server, '/events?sessionId=B1');
  await until('connected', () => events.text === 'event: connected\ndata: {"sessionId":"B1"}\n\n');
  await client.waitFor('greet');
  const answer = client.call('greet', { who: 'x' });
  const { data } = await events.find('request', (e) => e.event === 'request');
  // A response identifies itself by this id alone, so nobody must be able to guess it.
  assert.match(data.id, /^btcp-\d+-[0-9a-f]{16}$/);
  const count = data.id.split('-')[1];
  for (const id of [`btcp-${count}`, `btcp-${count}-`, `btcp-${count}-0000000000000000`]) {
    await post(server, '/response', { jsonrpc: '2.0', id, ...text('forged') });
  }
  await post(server, '/response', { jsonrpc: '2.0', id: data.id, error: { code: -32000, message: 'Error: Unknown tool: nope' } });
  assert.deepEqual((await answer).error, { code: -32603, message: 'Error: Unknown tool: nope', data: { btcpCode: -32000 } });
  // Only the stream is opened again: the tools are still known.
  events.close();
  await until('tools gone', async () => (await client.toolNames()).length === 0);
  await stream(t, server, '/events?sessionId=B1');
  await client.waitFor('greet');
});

test('flow 13: a WebSocket page\'s call cannot be answered without its socket', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  const other = await page(t, server, 'T', [greet]);
  const client = await agent(server, 'S');
  const answer = client.call('greet', {});
  const { id } = await socket.find('the call', (m) => m.method === 'tools/call');
  await post(server, '/response', { jsonrpc: '2.0', id, ...text('forged by POST') });
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id, ...text('forged by session') });
  other.send({ jsonrpc: '2.0', id, ...text('forged by another page') });
  await other.request('ping');
  socket.send({ jsonrpc: '2.0', id, ...text('right') });
  assert.equal((await answer).result.content[0].text, 'right');
});

test('D7: one synchronous POST', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  socket.answer((name, args) => text(`hello ${args.who}`));
  const listed = await post(server, '/rpc', { jsonrpc: '2.0', id: 1, method: 'tools/list' });
  assert.deepEqual(JSON.parse(listed.text), { jsonrpc: '2.0', id: 1, result: [greet] });
  const called = await post(server, '/rpc', { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'greet', arguments: { who: 'you' } } });
  assert.equal(called.text, '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello you"}],"isError":false}}');
});

test('two streams of one page: the newest is spoken to, none is closed', async (t) => {
  const server = await serveBrowser(t);
  const first = await stream(t, server, '/events?sessionId=S&clientType=browser');
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } });
  const second = await stream(t, server, '/events?sessionId=S&clientType=browser');
  await second.find('connected', (e) => e.data.method === 'connected');
  const client = await agent(server, 'S');
  const answer = client.call('greet', {});
  const { data } = await second.find('the call', (e) => e.data.method === 'tools/call');
  assert.equal(first.events().filter((e) => e.data.method === 'tools/call').length, 0);
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, ...text('once') });
  assert.equal((await answer).result.content[0].text, 'once');
  second.close();
  await sleep(100);
  assert.deepEqual(await client.toolNames(), ['greet'], 'the first stream still stands');
});

test('the stream that brought a call is lost, another one stands: the answer still counts', async (t) => {
  const server = await serveBrowser(t);
  await stream(t, server, '/events?sessionId=S&clientType=browser');
  const newest = await stream(t, server, '/events?sessionId=S&clientType=browser');
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } });
  const answer = (await agent(server, 'S')).call('greet', {});
  const { data } = await newest.find('the call', (e) => e.data.method === 'tools/call');
  newest.close();
  await sleep(50);
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, ...text('still') });
  assert.equal((await answer).result.content[0].text, 'still');
});

test('D8: a Unix socket, one message a line', async (t) => {
  const file = path.join(tempDir(), 'btcp.sock');
  const server = await serveBrowser(t, { browser: { socket: `unix:${file}` } });
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const open = async () => {
    const socket = net.connect(file);
    t.after(() => socket.destroy());
    const peer = { socket, text: '', lines: () => peer.text.split('\n').slice(0, -1) };
    socket.on('data', (d) => { peer.text += d; });
    await once(socket, 'connect');
    return peer;
  };
  const browser = await open();
  browser.socket.write('{"jsonrpc":"2.0","id":1,"method":"session/create","params":{}}\n');
  const session = JSON.parse((await until('created', () => browser.lines()[0]))).result.sessionId;
  browser.socket.write(`{"jsonrpc":"2.0","id":2,"method":"tools/register","params":{"tools":[${JSON.stringify(greet)}]}}\n`);
  await until('registered', () => browser.lines()[1] === '{"jsonrpc":"2.0","id":2,"result":{"registered":1}}');
  const client = await open();
  client.socket.write(`{"jsonrpc":"2.0","id":1,"method":"session/join","params":{"sessionId":"${session}"}}\n`);
  await until('joined', () => client.lines().length === 1);
  client.socket.write('{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"greet","arguments":{}}}\n');
  const { id } = JSON.parse(await until('the call', () => browser.lines().find((l) => l.includes('tools/call'))));
  browser.socket.write(`{"jsonrpc":"2.0","id":"${id}","result":{"content":[]}}\n`);
  await until('the result', () => client.lines().includes('{"jsonrpc":"2.0","id":"c","result":{"content":[]}}'));
  await (await agent(server, session)).waitFor('greet');
});

test('a page that comes back and says nothing is asked for its tools', async (t) => {
  const server = await serveBrowser(t);
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
  const { data } = await events.find('tools/list', (e) => e.data.method === 'tools/list');
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, result: { tools: [greet] } });
  await (await agent(server, 'S')).waitFor('greet');
});

// Pages of btcp-client send no client id, and were never asked for their tools: a page that answers
// tools/list but does not register had no tools, also after it reconnected.
test('a D3 page that answers tools/list and never registers is asked, again after it came back', async (t) => {
  const server = await serveBrowser(t);
  const client = await agent(server, 'S', { wait: true });
  for (let i = 0; i < 2; i++) {
    const socket = new Socket(t, server, '/ws?sessionId=S&clientType=browser&version=1.0.0');
    socket.onFrame = (m) => { if (m.method === 'tools/list') socket.send({ jsonrpc: '2.0', id: m.id, result: { tools: [greet] } }); };
    await socket.opened;
    await client.waitFor('greet');
    socket.ws.terminate();
    await until('gone', async () => (await client.toolNames()).length === 0);
  }
});

test('the list of such a page may be the bare array', async (t) => {
  const server = await serveBrowser(t);
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
  const { data } = await events.find('tools/list', (e) => e.data.method === 'tools/list');
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, result: [greet] });
  await (await agent(server, 'S')).waitFor('greet');
});

test('two BTCP agents in one session: each gets its own answers, both hear of changes', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  browser.answer((_, args) => text(args.who));
  const agents = await Promise.all(['A', 'B'].map((id) => stream(t, server, `/events?sessionId=own-${id}&clientType=agent&clientId=${id}`)));
  for (const id of ['A', 'B']) {
    await post(server, `/message?sessionId=own-${id}&clientId=${id}`, { jsonrpc: '2.0', id: 1, method: 'session/join', params: { sessionId: 'S' } });
  }
  for (const id of ['A', 'B']) {
    await post(server, `/message?sessionId=S&clientId=${id}`, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'greet', arguments: { who: id } } });
  }
  await agents[0].find('its answer', (e) => e.data.id === 2 && e.data.result.content[0].text === 'A');
  await agents[1].find('its answer', (e) => e.data.id === 2 && e.data.result.content[0].text === 'B');
  await browser.request('tools/register', { tools: [] });
  for (const events of agents) await events.find('tools/updated', (e) => e.data.method === 'tools/updated' && e.data.params.tools.length === 0);
  const { sessions } = JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text);
  assert.equal(sessions[0].agentCount, 2);
});

// An EventSource reconnects to its first address, which names no session.
test('flow 5, D5: a stream that comes back by its client id alone finds its session and its tools', async (t) => {
  const server = await serveBrowser(t);
  const first = await stream(t, server, '/events?clientId=C1');
  const { data } = await first.find('session', (e) => e.event === 'session');
  await post(server, '/tools/register', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } }, { 'X-Client-ID': 'C1' });
  const client = await agent(server, data.sessionId);
  await client.waitFor('greet');
  first.close();
  await until('gone', async () => (await client.toolNames()).length === 0);
  const second = await stream(t, server, '/events?clientId=C1');
  assert.equal((await second.find('session', (e) => e.event === 'session')).data.sessionId, data.sessionId);
  await client.waitFor('greet');
});

// Agents that never join open their stream under the page's own session. What the page posted after
// that was taken for messages of the agent, and the page's answers were lost.
test('an agent under the page\'s session is not taken for the page, nor the page for it', async (t) => {
  const server = await serveBrowser(t);
  const browser = await stream(t, server, '/events?sessionId=S&clientType=browser');
  const other = await stream(t, server, '/events?sessionId=S&clientType=agent');
  const registered = await post(server, '/message', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } }, { 'X-Session-ID': 'S' });
  assert.deepEqual(JSON.parse(registered.text).result, { registered: 1 });
  const client = await agent(server, 'S');
  const answer = client.call('greet');
  const { data } = await browser.find('the call', (e) => e.data.method === 'tools/call');
  await post(server, '/message', { jsonrpc: '2.0', id: data.id, ...text('right') }, { 'X-Session-ID': 'S' });
  assert.equal((await answer).result.content[0].text, 'right');
  await browser.find('the reply', (e) => e.data.id === 1);
  assert.equal(other.events().filter((e) => e.data.id === 1).length, 0);
  // Only agents send tools/call, so this is the agent's, and the agent gets the answer.
  const calling = post(server, '/message', { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'greet' } }, { 'X-Session-ID': 'S' });
  const second = await browser.find('the second call', (e) => e.data.method === 'tools/call' && e.data.id !== data.id);
  await post(server, '/message', { jsonrpc: '2.0', id: second.data.id, ...text('theirs') }, { 'X-Session-ID': 'S' });
  assert.equal((await calling).text, '');
  await other.find('their answer', (e) => e.data.id === 9 && e.data.result.content[0].text === 'theirs');
});

// A call into another session was taken for joining it, and ended the calls in flight in the first.
test('an agent may call into several sessions at a time', async (t) => {
  const server = await serveBrowser(t);
  const [one, two] = [await page(t, server, 'one', [greet]), await page(t, server, 'two', [greet])];
  const events = await stream(t, server, '/events?sessionId=mine&clientType=agent');
  const { data } = await events.find('connected', (e) => e.data.method === 'connected');
  for (const [id, session] of ['one', 'two'].entries()) {
    await post(server, `/message?sessionId=${session}&clientId=${data.params.clientId}`,
      { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'greet', arguments: {} } });
  }
  for (const [socket, said] of [[two, 'from two'], [one, 'from one']]) {
    const { id } = await socket.find('the call', (m) => m.method === 'tools/call');
    socket.send({ jsonrpc: '2.0', id, ...text(said) });
  }
  assert.equal((await events.find('the first answer', (e) => e.data.id === 0)).data.result?.content[0].text, 'from one');
  assert.equal((await events.find('the second', (e) => e.data.id === 1)).data.result.content[0].text, 'from two');
});

// Answers went to the oldest stream, which nobody reads any more after a lost connection.
test('an agent that comes back is answered on its new stream', async (t) => {
  const server = await serveBrowser(t);
  (await page(t, server, 'S', [greet])).answer(() => text('hi'));
  const lost = await stream(t, server, '/events?sessionId=mine&clientType=agent');
  const back = await stream(t, server, '/events?sessionId=mine&clientType=agent');
  const say = (message) => post(server, '/message', { jsonrpc: '2.0', ...message }, { 'X-Session-ID': 'mine' });
  await say({ id: 1, method: 'session/join', params: { sessionId: 'S' } });
  await say({ id: 2, method: 'tools/call', params: { name: 'greet', arguments: {} } });
  await back.find('the result', (e) => e.data.id === 2 && e.data.result.content[0].text === 'hi');
  assert.ok(!lost.events().some((e) => e.data.id === 2));
});

// Any site that knew the name of a session could answer for its page, or register tools for it.
test('a page that comes by events is not taken for one of another site', async (t) => {
  const server = await serveBrowser(t);
  const right = { Origin: 'http://localhost:3000' };
  const wrong = { Origin: 'http://localhost:4000' };
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser', right);
  const register = (tools, headers) => post(server, '/message?sessionId=S',
    { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools } }, headers);
  await register([greet], right);
  await register([{ ...greet, name: 'stolen' }], wrong);
  const client = await agent(server, 'S');
  assert.deepEqual(await client.toolNames(), ['greet']);
  const answer = client.call('greet', {});
  const { data } = await events.find('the call', (e) => e.data.method === 'tools/call');
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, ...text('forged') }, wrong);
  await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: data.id, ...text('right') }, right);
  assert.equal((await answer).result.content[0].text, 'right');
  // The other site can have its own page in the session, and programs send no Origin at all.
  const second = await stream(t, server, '/events?sessionId=S&clientType=browser', wrong);
  await client.waitFor('greet', 'stolen');
  second.close();
  await register([], {});
  await until('none', async () => (await client.toolNames()).length === 0);
});

// Such a page registers once: when the bridge was restarted it opened its stream again, was taken for
// an agent, and its tools were gone for good.
test('flow 6, D6: a page that only opens its stream again is back after a restart', async (t) => {
  const state = tempDir();
  const first = await serveBrowser(t, {}, { state });
  const listen = new URL(first.origin).host;
  await post(first, '/register', { jsonrpc: '2.0', id: 'reg', method: 'tools/register', params: { sessionId: 'B', tools: [greet] } });
  await stream(t, first, '/events?sessionId=B');
  await (await agent(first, 'B')).waitFor('greet');
  await first.stop();
  const again = await serveBrowser(t, { listen }, { state });
  const events = await stream(t, again, '/events?sessionId=B');
  await events.find('connected', (e) => e.event === 'connected');
  const client = await agent(again, 'B');
  await client.waitFor('greet');
  const called = client.call('greet', { who: 'Ann' });
  const { data } = await events.find('the call', (e) => e.event === 'request');
  await post(again, '/response', { jsonrpc: '2.0', id: data.id, result: { content: [{ type: 'text', text: 'Hi' }] } });
  assert.equal((await called).result.content[0].text, 'Hi');
});

// Pages that had not come back after a restart stayed in the file for good, and when a hundred had gathered no other page
// survived a restart.
test('flow 6, D6: pages that did not come back after a restart make room for others', async (t) => {
  const state = tempDir();
  const file = `${state}/rialto/browser-pages.json`;
  const kept = () => JSON.parse(fs.readFileSync(file, 'utf8'));
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`old-${i}`, { tools: [greet] }]))));
  const server = await serveBrowser(t, {}, { state });
  const back = await stream(t, server, '/events?sessionId=old-50');
  await back.find('connected', (e) => e.event === 'connected');
  const register = (sessionId) => post(server, '/register', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { sessionId, tools: [greet] } });
  for (let i = 0; i < 99; i++) await register(`new-${i}`);
  assert.deepEqual(Object.keys(kept()).sort(), ['old-50', ...Array.from({ length: 99 }, (_, i) => `new-${i}`)].sort());
  // All of these are there: there is no room for one more.
  assert.equal((await register('last')).status, 200);
  assert.ok(!('last' in kept()));
  await until('the warning', () => /the tools of session last will not outlive this program/.test(server.stderr()));
});

// A D6 page looks at the HTTP status alone: a refusal that came with 200 was taken for a registration.
test('flow 6, D6: a refused registration shows in the status', async (t) => {
  const server = await serveBrowser(t);
  const register = (sessionId, tools) => post(server, '/register',
    { jsonrpc: '2.0', id: 'register-1', method: 'tools/register', params: { sessionId, tools } });
  assert.equal((await register('B', [greet])).status, 200);
  const refused = await register('B', [{ name: 7 }]);
  assert.deepEqual([refused.status, JSON.parse(refused.text).error.message], [400, 'every tool needs a name, a text']);
  assert.equal((await register('not a name', [greet])).status, 400);
});

test('preflights allow every header that clients send', async (t) => {
  const server = await serveBrowser(t);
  const wanted = ['Content-Type', 'X-Session-ID', 'X-Client-ID', 'X-Client-Type', 'Authorization', 'Last-Event-ID', 'Mcp-Session-Id', 'Mcp-Protocol-Version'];
  for (const [where, method] of [['/message', 'POST'], ['/tools/register', 'POST'], ['/events', 'GET'], ['/rpc', 'POST']]) {
    const answer = await exchange(server.origin + where, { method: 'OPTIONS', headers: { Origin: 'http://localhost:5173',
      'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': wanted.join(',').toLowerCase() } });
    assert.equal(answer.status, 204, where);
    assert.equal(answer.headers['access-control-allow-origin'], 'http://localhost:5173');
    const allowed = answer.headers['access-control-allow-headers'].toLowerCase().split(/, */);
    for (const header of wanted) assert.ok(allowed.includes(header.toLowerCase()), `${header} at ${where}`);
  }
});

test('/health and /sessions', async (t) => {
  const server = await serveBrowser(t);
  await page(t, server, 'S', [greet]);
  const health = JSON.parse((await exchange(`${server.origin}/health`, { method: 'GET' })).text);
  assert.equal(health.status, 'ok');
  assert.equal(health.sessions, 1);
  assert.equal(health.clients, 1);
  const { sessions } = JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text);
  assert.equal(sessions.length, 1);
  assert.match(sessions[0].createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual({ ...sessions[0], createdAt: 0 }, { id: 'S', hasBrowser: true, agentCount: 0, toolCount: 1, createdAt: 0, pages: [{ name: 's', session: 'S' }] });
});
