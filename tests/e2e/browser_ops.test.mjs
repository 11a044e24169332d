// Tools of web pages among everything else: in the numbers and events of the daemon, beside the
// servers of sessions that have their own instances, under every policy, and within limits.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, fake, logged, rialto, tempDir, until, within } from './lib.mjs';
import { Socket, agent, greet, page, post, serveBrowser, stream, text } from './browser_lib.mjs';
import { ModernClient } from './peers.mjs';

const get = async (server, where) => (await exchange(server.origin + where, { method: 'GET' })).text;

// --- status, numbers and events ---

// Calls of pages' tools were counted nowhere: a session is not a server, and was left out of the events too.
test('calls of pages\' tools are in the status, the numbers and the events', async (t) => {
  const server = await serveBrowser(t, { control: 'auto', browser: { session_ttl: '1s' } });
  const socket = await page(t, server, 'S', [greet, { ...greet, name: 'bad' }]);
  socket.answer((name) => (name === 'greet' ? text('hi') : { error: { code: 'EXECUTION_ERROR', message: 'broken' } }));
  const client = await agent(server, 'S');
  await client.text('greet');
  await client.text('greet');
  await client.call('bad');
  const wanted = { sessions: 1, pages: 1, agents: 0, tools: 2, calls: 3, errors: 1, failed: 0, in_flight: 0, tabs: [{ name: 's', session: 'S' }] };
  assert.deepEqual(JSON.parse(await get(server, '/status')).browser, wanted);
  const [{ dialect, ...tab }] = JSON.parse(await get(server, '/api/pages'));
  assert.deepEqual(tab, { name: 's', session: 'S', tools: ['greet', 'bad'] });
  assert.ok(dialect);
  await logged(server, /@browser\/S: call \d+ of bad failed after \d+ ms: broken/);
  const metrics = await get(server, '/metrics');
  for (const line of ['rialto_calls_total{server="@browser"} 3', 'rialto_call_errors_total{server="@browser"} 1',
    'rialto_happenings_total{server="@browser",event="mcp.tool_called"} 2',
    'rialto_happenings_total{server="@browser",event="mcp.tool_failed"} 1',
    'rialto_call_duration_seconds_count{server="@browser"} 3',
    'rialto_browser_sessions 1', 'rialto_browser_pages 1', 'rialto_browser_tools 2']) {
    assert.ok(metrics.includes(`${line}\n`), `${line}\n${metrics}`);
  }
  const shown = await rialto(['status'], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
  assert.match(shown.stdout, /^Web pages: 1 in 1 sessions, 2 tools, 3 calls$/m);
  // The counters outlive the session.
  await client.close();
  socket.ws.terminate();
  await until('its end', async () => JSON.parse(await get(server, '/status')).browser.sessions === 0);
  assert.deepEqual(JSON.parse(await get(server, '/status')).browser, { ...wanted, sessions: 0, pages: 0, tools: 0, tabs: [] });
});

// A session with its own server instances has its own view, which did not include pages.
test('pages stand beside the servers also for those who have instances of their own', async (t) => {
  const server = await serveBrowser(t, {
    servers: { own: { ...fake('--name', 'own'), instances: 'per-session' }, all: fake('--name', 'all') } });
  const before = await page(t, server, 'before', [greet]);
  before.answer(() => text('before'));
  const client = await agent(server);
  const standing = await client.listen();
  await client.waitFor('own__echo', 'all__echo', 'greet');
  assert.equal(await client.text('greet'), 'before');
  const told = standing.count('notifications/tools/list_changed');
  const later = await page(t, server, 'later', [{ ...greet, name: 'wave' }]);
  later.answer(() => text('later'));
  await client.waitFor('own__echo', 'greet', 'wave');
  assert.equal(await client.text('wave'), 'later');
  await until('list_changed', () => standing.count('notifications/tools/list_changed') > told);
  later.ws.terminate();
  await until('gone', async () => !(await client.toolNames()).includes('wave'));
  const searching = await serveBrowser(t, { expose: 'search',
    servers: { own: { ...fake('--name', 'own'), instances: 'per-session' } } });
  const socket = await page(t, searching, 'S', [greet]);
  socket.answer((_, args) => text(`hi ${args.who}`));
  const finder = await agent(searching);
  await until('found', async () => (await finder.call('find_tools', { query: 'greet' })).result.content[0].text.includes('greet'));
  assert.equal(await finder.text('call_tool', { name: 'greet', arguments: { who: 'Ann' } }), 'hi Ann');
});

test('structured results: for those whose version knows them, the text for all', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [greet]);
  socket.answer(() => ({ result: { words: 523 } }));
  const content = [{ type: 'text', text: '{"words":523}' }];
  for (const [version, wanted] of [['2024-11-05', { content }], ['2025-03-26', { content }],
    ['2025-06-18', { content, structuredContent: { words: 523 } }], ['2025-11-25', { content, structuredContent: { words: 523 } }]]) {
    const client = await agent(server, 'S', { version });
    assert.deepEqual((await client.call('greet')).result, wanted, version);
  }
});

test('an unknown session: 404, or 4001 on a WebSocket', async (t) => {
  const server = await serveBrowser(t);
  for (const protocols of [[], ['mcp']]) {
    const socket = new Socket(t, server, '/mcp?session=X', {}, protocols);
    await socket.opened;
    assert.equal(await within(10_000, 'the close', socket.closed), 4001);
  }
  assert.equal((await stream(t, server, '/mcp/sse?session=X')).status, 404);
  assert.equal((await exchange(`${server.url}?session=X`, { body: '{}' })).status, 404);
  // A connection that is being refused does not hold up the end of the bridge.
  new Socket(t, server, '/mcp?session=X');
  await server.stop();
});

test('without a session: every page there is, also when it is only one', async (t) => {
  const server = await serveBrowser(t);
  await page(t, server, 'empty', []);
  const one = await page(t, server, 'S', [greet]);
  one.answer(() => text('one'));
  const client = await agent(server);
  assert.deepEqual(await client.toolNames(), ['list_pages', 'greet'], 'a page without tools shows nothing');
  assert.equal(await client.text('greet'), 'one');
  const two = await page(t, server, 'T', [greet]);
  two.answer(() => text('two'));
  const names = await until('both', async () => { const n = (await client.toolNames()).filter((x) => x !== 'list_pages'); return n.length === 2 && n; });
  assert.equal(names[0], 'greet', 'the first keeps the name');
  assert.equal(await client.text(names[1]), 'two');
  assert.equal(names[1], 'greet-t');
});

// --- consent ---

test('capabilities: nobody decided in time, and the late word counts', async (t) => {
  const server = await serveBrowser(t, { browser: { consent_timeout: '1s' } });
  const socket = await page(t, server, 'S', [{ ...greet, capabilities: ['dom:write'] }], '&client=rialto.js');
  const client = await agent(server, 'S');
  const standing = await client.listen();
  const answer = await client.call('__btcp_request_capabilities', { capabilities: ['dom:write'] });
  assert.equal(answer.result.content[0].text, '{"granted":[],"denied":[],"pending":["dom:write"]}');
  const asked = await socket.find('the question', (m) => m.method === 'capabilities/request');
  socket.send({ jsonrpc: '2.0', id: asked.id, result: { granted: true, approved: ['dom:write'] } });
  await standing.waitFor('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), ['greet']);
});

// Each repetition opened one more dialog in the page, without a limit.
test('capabilities: whoever asks again waits for the question that is there, and there are not many', async (t) => {
  const server = await serveBrowser(t, { browser: { consent_timeout: '1s' } });
  const socket = await page(t, server, 'S', [{ ...greet, capabilities: ['dom:write'] }], '&client=rialto.js');
  const client = await agent(server, 'S');
  const ask = async (...capabilities) => (await client.call('__btcp_request_capabilities', { capabilities })).result?.content[0].text;
  const asked = async () => {
    await socket.request('ping'); // what was sent before has arrived now
    return socket.messages().filter((m) => m.method === 'capabilities/request');
  };
  for (let i = 0; i < 2; i++) assert.equal(await ask('dom:write'), '{"granted":[],"denied":[],"pending":["dom:write"]}');
  assert.equal((await asked()).length, 1);
  const names = Array.from({ length: 20 }, (_, i) => `some:thing${i}`);
  for (const text of await Promise.all(names.map((n) => ask(n)))) assert.match(text, /"pending":\["some:thing/);
  const questions = await asked();
  assert.equal(questions.length, 8);
  assert.equal(await ask(...Array.from({ length: 65 }, (_, i) => `n${i}`)), undefined, 'too many at once');
  // The first question can still be answered, whether or not a caller still waits for it.
  const again = ask('dom:write');
  socket.send({ jsonrpc: '2.0', id: questions[0].id, result: { granted: ['dom:write'] } });
  assert.match(await again, /"(granted|pending)":\["dom:write"\]/);
  await client.waitFor('greet');
});

test('capabilities: the policy list asks nobody, and pages cannot grant', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'list', granted: ['storage:*', 'dom:write'] } });
  const socket = await page(t, server, 'S', [
    { ...greet, name: 'reads', capabilities: ['dom:read', 'storage:local:read'] },
    { ...greet, name: 'tracks', capabilities: ['geolocation'] }], '&client=rialto.js');
  const client = await agent(server, 'S');
  assert.deepEqual(await client.toolNames(), ['reads', '__btcp_request_capabilities']);
  const answer = await client.call('__btcp_request_capabilities', { capabilities: ['dom:read', 'geolocation'] });
  assert.equal(answer.result.content[0].text, '{"granted":["dom:read"],"denied":["geolocation"],"pending":[]}');
  assert.equal((await socket.request('capabilities/grant', { capabilities: ['geolocation'] })).error.code, -32600);
  assert.deepEqual(await client.toolNames(), ['reads', '__btcp_request_capabilities']);
  assert.equal(socket.messages().filter((m) => m.method === 'capabilities/request').length, 0);
});

test('capabilities: a page that answers "no such method" has nobody to ask', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [{ ...greet, capabilities: ['dom:write'] }], '&client=rialto.js');
  const client = await agent(server, 'S');
  const ask = () => client.call('__btcp_request_capabilities', { capabilities: ['dom:write'] });
  socket.onFrame = (m) => {
    if (m.method === 'capabilities/request') socket.send({ jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'Method not found' } });
  };
  for (let i = 0; i < 2; i++) {
    assert.equal((await ask()).result.content[0].text, '{"granted":[],"denied":["dom:write"],"pending":[]}');
  }
  assert.equal(socket.messages().filter((m) => m.method === 'capabilities/request').length, 1, 'asked once');
});

// The list of tools is rebuilt a moment later: until then a second call still found the tool.
test('capabilities: once is once, also for two calls in a row', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const socket = await page(t, server, 'S', [{ ...greet, capabilities: ['dom:write'] }]);
  socket.answer(() => text('done'));
  await socket.request('capabilities/grant', { capabilities: ['dom:write'], type: 'once' });
  const client = new Socket(t, server, '/mcp?session=S');
  await client.opened;
  await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  client.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const call = (id) => client.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'greet' } });
  call(1);
  call(2);
  assert.ok((await client.find('the first', (m) => m.id === 1)).result);
  assert.deepEqual((await client.find('the second', (m) => m.id === 2)).error.data, { btcpCode: 'CAPABILITY_DENIED' });
});

// Any page may join a session by its name. A page of another site could grant capabilities to the others there.
test('capabilities: what one site grants holds for its own pages', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const open = async (origin, name, session = 'S') => {
    const socket = new Socket(t, server, `/ws?sessionId=${session}&clientType=browser`, { Origin: origin });
    await socket.opened;
    await socket.request('tools/register', { tools: [{ ...greet, name, capabilities: ['dom:write'] }] });
    return socket;
  };
  const one = await open('http://localhost:3000', 'one');
  const two = await open('http://localhost:4000', 'two');
  const client = await agent(server, 'S');
  assert.deepEqual((await two.request('capabilities/grant', { capabilities: ['dom:write'] })).result, { granted: ['dom:write'] });
  await client.waitFor('two');
  assert.ok(!(await client.toolNames()).includes('one'));
  assert.deepEqual((await one.request('capabilities/revoke', { capabilities: ['dom:write'] })).result, { granted: [] });
  assert.ok((await client.toolNames()).includes('two'), 'nor can it take back what is not its own');
  // A persistent grant holds in every session of that site, and so does its revocation.
  await one.request('capabilities/grant', { capabilities: ['dom:write'], type: 'persistent' });
  await open('http://localhost:3000', 'one', 'T');
  const other = await agent(server, 'T');
  await other.waitFor('one');
  await one.request('capabilities/revoke', { capabilities: ['dom:write'] });
  await until('taken back', async () => !(await other.toolNames()).includes('one'));
});

test('capabilities: the name of our own tool is taken', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S', [{ ...greet, name: '__btcp_request_capabilities' }]);
  socket.answer(() => text('the page\'s'));
  const client = await agent(server, 'S');
  const [name] = await client.toolNames();
  assert.match(name, /^__btcp_request_capabilities_s$/);
  assert.equal(await client.text(name), 'the page\'s');
  assert.equal((await client.call('__btcp_request_capabilities', { capabilities: ['dom:read'] })).result.content[0].text,
    '{"granted":["dom:read"],"denied":[],"pending":[]}');
});

// --- time and limits ---

test('a session in which nothing happens ends, pages or not, and its grants with it', async (t) => {
  const server = await serveBrowser(t, { browser: { session_idle: '3s', capabilities: 'strict' } });
  const tools = [{ ...greet, capabilities: ['dom:write'] }];
  const busy = await page(t, server, 'T', tools);
  const talking = setInterval(() => busy.send({ jsonrpc: '2.0', id: 'p', method: 'ping' }), 100);
  t.after(() => clearInterval(talking));
  const idle = await page(t, server, 'S', tools);
  await idle.request('capabilities/grant', { capabilities: ['dom:write'] });
  const events = await stream(t, server, '/events?sessionId=S&clientType=agent');
  assert.equal(await within(20_000, 'the close', idle.closed), 4002);
  await until('the agent\'s end', () => events.ended);
  const { sessions } = JSON.parse(await get(server, '/sessions'));
  assert.ok(!sessions.some((s) => s.id === 'S'));
  const client = await agent(server, 'S', { wait: true });
  await page(t, server, 'S', tools);
  await client.waitFor('__btcp_request_capabilities');
  assert.ok(!(await client.toolNames()).includes('greet'));
});

// A running call was not counted as activity: its session was taken for idle and ended.
test('a session in which a call is under way is not idle', async (t) => {
  const server = await serveBrowser(t, { browser: { session_idle: '3s' } });
  const working = await page(t, server, 'S', [greet]);
  const talking = setInterval(() => working.send({ jsonrpc: '2.0', id: 'p', method: 'ping' }), 100);
  t.after(() => clearInterval(talking));
  const answer = post(server, '/rpc?sessionId=S', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'greet', arguments: {} } });
  const { id } = await working.find('the call', (m) => m.method === 'tools/call');
  clearInterval(talking);
  const idle = await page(t, server, 'T', [greet]);
  assert.equal(await within(20_000, 'the end of one that came after it', idle.closed), 4002);
  working.send({ jsonrpc: '2.0', id, ...text('done') });
  assert.equal(JSON.parse((await answer).text).result?.content[0].text, 'done');
});

test('flow 11: a call has the time that it, or else its tool, says', async (t) => {
  const server = await serveBrowser(t);
  await page(t, server, 'S', [{ ...greet, timeout: 300_000 }]);
  const client = await agent(server, 'S');
  const answer = await within(20_000, 'the timeout', client.request('tools/call', { name: 'greet', timeout: 1000 }));
  assert.deepEqual(answer.error, { code: -32603, message: 'Tool execution timeout', data: { btcpCode: 'TIMEOUT' } });
});

test('flow 11: BTCP agents hear of a timeout and of a lost page in their own codes', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [{ ...greet, timeout: 1000 }, { ...greet, name: 'hang' }]);
  const events = await stream(t, server, '/events?sessionId=S&clientType=agent&clientId=A');
  const words = new Socket(t, server, '/');
  await words.opened;
  await words.request('session/join', { sessionId: 'S' });
  const call = (id, name = 'greet') => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  await post(server, '/message?sessionId=S&clientId=A', call(1));
  words.send(call(1));
  await events.find('the timeout', (e) => e.data.id === 1 && e.data.error?.code === -32001 && e.data.error.message === 'Tool execution timeout');
  await words.find('the timeout', (m) => m.id === 1 && m.error?.code === 'TIMEOUT');
  await post(server, '/message?sessionId=S&clientId=A', call(2, 'hang'));
  words.send(call(2, 'hang'));
  await until('the calls', () => browser.messages().filter((m) => m.method === 'tools/call').length === 4);
  browser.ws.terminate();
  await events.find('the loss', (e) => e.data.id === 2 && e.data.error?.code === -32002);
  await words.find('the loss', (m) => m.id === 2 && m.error?.code === 'CONNECTION_ERROR');
  await post(server, '/message?sessionId=S&clientId=A', call(3));
  await events.find('nobody there', (e) => e.data.id === 3 && e.data.error?.code === -32002
    && e.data.error.message === 'No browser client connected to this session');
});

test('flow 12: a page that does not read its event stream is cut, and nobody else waits', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '1MiB' } });
  const good = await page(t, server, 'good', [greet]);
  good.answer((_, args) => text(args.who));
  const witness = await agent(server, 'good');
  const events = await stream(t, server, '/events?sessionId=deaf&clientType=browser');
  await post(server, '/message?sessionId=deaf', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [{ ...greet, timeout: 300_000 }] } });
  const client = await agent(server, 'deaf');
  await client.waitFor('greet');
  events.pause();
  const calls = Array.from({ length: 40 }, () => client.call('greet', { who: 'x'.repeat(512 << 10) }));
  for (let i = 0; i < 10; i++) assert.equal(await within(30_000, 'the witness', witness.text('greet', { who: `${i}` })), `${i}`);
  const answers = await within(60_000, 'the cut', Promise.all(calls));
  for (const { error } of answers) assert.deepEqual(error.data, { btcpCode: 'CONNECTION_ERROR' });
  await until('no tools', async () => (await client.toolNames()).length === 0);
});

test('flow 12, limits: a POST too large, too many sessions', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '64KiB', sessions: 3 } });
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
  assert.equal((await post(server, '/message?sessionId=S', { jsonrpc: '2.0', id: 1, result: 'x'.repeat(70_000) })).status, 413);
  await page(t, server, 'T', [greet]);
  await page(t, server, 'U', [greet]);
  await assert.rejects(new Socket(t, server, '/ws?sessionId=V&clientType=browser').opened, /400/);
  const socket = new Socket(t, server, '/');
  await socket.opened;
  assert.match((await socket.request('session/create', {})).error.message, /^No session/);
  assert.match((await socket.request('hello', { clientType: 'browser', sessionId: 'W' })).error.message, /^No session/);
  assert.match((await post(server, '/register', { id: 1, method: 'tools/register', params: { sessionId: 'X', tools: [] } })).text, /Not in a session/);
  assert.ok(events.text.length > 0);
});

// Looking for the session that makes room closed the endpoints of every session that was considered, so agents of
// sessions that stayed lost their streams.
test('a session that makes room for another ends alone: agents of the others keep their streams', async (t) => {
  const names = ['A', 'B', 'C', 'D', 'E', 'F'];
  const server = await serveBrowser(t, { limits: { sessions: names.length } });
  const listens = [];
  t.after(() => listens.forEach((l) => l.close()));
  for (const name of names) {
    const gone = await page(t, server, name, [greet]);
    const client = new ModernClient(`${server.url}?session=${name}`);
    await client.waitFor('greet');
    if (name !== 'A') listens.push(await client.listen({ toolsListChanged: true }));
    gone.ws.close();
    await gone.closed;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  await page(t, server, 'new', [greet]);
  await until('the end of the one that nobody uses', () => /session A is over/.test(server.stderr()));
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  assert.deepEqual(listens.filter((l) => l.ended), []);
  assert.equal(server.stderr().match(/session . is over/g).length, 1);
});

test('the end of the bridge: pages are told, their calls end', async (t) => {
  const state = tempDir();
  const server = await serveBrowser(t, {}, { state });
  const socket = await page(t, server, 'S', [greet]);
  const events = await stream(t, server, '/events?sessionId=T&clientType=browser');
  const relay = new Socket(t, server, '/', {}, ['webmcp.v1']);
  await relay.opened;
  const client = await agent(server, 'S');
  const answer = client.call('greet').then((m) => m.error?.message, (e) => e.message);
  await socket.find('the call', (m) => m.method === 'tools/call');
  await server.stop();
  assert.equal(await within(10_000, 'the close', socket.closed), 1001);
  assert.equal(await within(10_000, 'the close', relay.closed), 1001);
  await until('the end of the stream', () => events.ended);
  assert.ok(await within(10_000, 'the answer', answer));
  // The next bridge on the same state works at once.
  const again = await serveBrowser(t, {}, { state });
  await page(t, again, 'S', [greet]);
  assert.deepEqual(await (await agent(again, 'S')).toolNames(), ['greet']);
});

test('flow 13, pairing: agents and every POST need the token as well', async (t) => {
  const state = tempDir();
  const server = await serveBrowser(t, { browser: { pairing: true } }, { state });
  const token = (await rialto(['browser', 'pair'], { env: { XDG_STATE_HOME: state }, cwd: tempDir() })).stdout.trim();
  const bearer = { Authorization: `Bearer ${token}` };
  for (const where of ['/message?sessionId=S', '/tools/register', '/tools/response', '/register', '/response', '/rpc']) {
    assert.equal((await post(server, where, '{}')).status, 401, where);
    assert.notEqual((await post(server, where, '{}', bearer)).status, 401, where);
  }
  assert.equal((await stream(t, server, '/events?sessionId=S&clientType=agent')).status, 401);
  await assert.rejects(new Socket(t, server, '/').opened, /401/);
  await assert.rejects(new Socket(t, server, '/', {}, ['webmcp.v1']).opened, /401/);
  assert.ok(!server.stderr().includes(token), 'it is never logged');
  // Scripts and the demo are no secret.
  assert.equal((await exchange(`${server.origin}/rialto.js`, { method: 'GET' })).status, 200);
});
