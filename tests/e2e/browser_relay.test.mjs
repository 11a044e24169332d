// MCP-B's relay protocol, on a WebSocket that asks for webmcp.v1: what MCP-B's own suite tests, with a
// fake of its widget. browser_webmcp.test.mjs has the real widget.
import assert from 'node:assert/strict';
import test from 'node:test';
import { logged, until, within } from './lib.mjs';
import { Socket, agent, greet, serveBrowser } from './browser_lib.mjs';

const both = ['webmcp-discovery.v1', 'webmcp.v1'];
const result = (value) => ({ content: [{ type: 'text', text: value }], isError: false });

async function tab(t, server, tabId, tools, { headers = {}, protocols = both } = {}) {
  const socket = new Socket(t, server, '/', headers, protocols);
  await socket.opened;
  await socket.find('server-hello', (m) => m.type === 'server-hello');
  if (!tabId) return socket;
  socket.send({ type: 'hello', tabId, origin: 'https://claimed.example', url: 'https://claimed.example/', title: 'T' });
  await socket.find('accepted', (m) => m.type === 'hello/accepted');
  socket.send({ type: 'tools/list', tools });
  return socket;
}

/** Answers every invoke. */
function answering(socket, fn) {
  socket.onFrame = (m) => { if (m.type === 'invoke') socket.send({ type: 'result', callId: m.callId, result: fn(m) }); };
  return socket;
}

test('MCP-B: the subprotocol that was offered first is chosen', async (t) => {
  const server = await serveBrowser(t);
  const chosen = async (protocols) => (await tab(t, server, null, [], { protocols })).ws.protocol;
  assert.equal(await chosen(both), 'webmcp-discovery.v1');
  assert.equal(await chosen(['webmcp.v1']), 'webmcp.v1');
  await assert.rejects(new Socket(t, server, '/', {}, ['webmcp.v2']).opened, /HTTP 4\d\d/);
});

test('MCP-B: Origin is what the browser says, not what the page claims', async (t) => {
  const server = await serveBrowser(t, { browser: { origins: ['https://app.example.com'] } });
  await assert.rejects(new Socket(t, server, '/', { Origin: 'https://evil.example' }, both).opened, /403/);
  await tab(t, server, 'tab-1', [greet], { headers: { Origin: 'https://app.example.com' } });
  const client = await agent(server, 'tab-1');
  await client.waitFor('greet');
});

test('MCP-B: tools before the hello, unknown types, wrong JSON and unknown calls are ignored', async (t) => {
  const server = await serveBrowser(t);
  const socket = await tab(t, server, null);
  socket.send({ type: 'tools/list', tools: [greet] });
  socket.send('{"type":');
  socket.send('[1]');
  socket.send({ type: 'no such thing' });
  socket.send({ type: 'result', callId: 'btcp-1', result: result('forged') });
  socket.send({ type: 'pong' });
  socket.send({ type: 'hello', tabId: 'S', origin: '', url: '', title: '' });
  await socket.find('accepted', (m) => m.type === 'hello/accepted');
  const client = await agent(server, 'S');
  assert.deepEqual(await client.toolNames(), []);
  socket.send({ type: 'tools/list', tools: [greet, { ...greet, name: 'task', execution: { taskSupport: 'required' } }] });
  await client.waitFor('greet');
  assert.deepEqual(await client.toolNames(), ['greet'], 'one that only runs as a task cannot be called');
  assert.equal(socket.ws.readyState, 1);
});

test('MCP-B: a tab that cannot be a session is told so', async (t) => {
  const server = await serveBrowser(t, { limits: { sessions: 1 } });
  await tab(t, server, 'one', [greet]);
  for (const tabId of ['two', 'not a name']) {
    const socket = await tab(t, server, null);
    socket.send({ type: 'hello', tabId, origin: '', url: '', title: '' });
    const said = await socket.find('rejected', (m) => m.type === 'hello/rejected');
    assert.equal(said.reason, 'no-session');
    assert.equal(await within(10_000, 'the close', socket.closed), 1008);
  }
});

test('MCP-B: only the tab that was asked can answer', async (t) => {
  const server = await serveBrowser(t);
  const one = await tab(t, server, 'one', [greet]);
  const two = await tab(t, server, 'two', [{ ...greet, name: 'other' }]);
  const client = await agent(server, 'one');
  await client.waitFor('greet');
  const answer = client.call('greet', { who: 'x' });
  const { callId } = await one.find('invoke', (m) => m.type === 'invoke');
  two.send({ type: 'result', callId, result: result('forged') });
  two.send({ type: 'hello', tabId: 'two' });
  await until('handled', () => two.messages().filter((m) => m.type === 'hello/accepted').length === 2);
  one.send({ type: 'result', callId, result: result('right') });
  assert.equal((await answer).result.content[0].text, 'right');
});

test('MCP-B: a result that is none, a result too large, and a tab that leaves are errors', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '64KiB' } });
  const call = async (client) => (await within(20_000, 'the answer', client.call('greet'))).error;
  for (const [session, send, code] of [
    ['none', (s, callId) => s.send({ type: 'result', callId, result: 7 }), 'EXECUTION_ERROR'],
    ['absent', (s, callId) => s.send({ type: 'result', callId }), 'EXECUTION_ERROR'],
    ['large', (s, callId) => s.send({ type: 'result', callId, result: result('x'.repeat(70_000)) }), 'CONNECTION_ERROR'],
    ['left', (s) => s.ws.terminate(), 'CONNECTION_ERROR'],
  ]) {
    const socket = await tab(t, server, session, [greet]);
    socket.onFrame = (m) => { if (m.type === 'invoke') send(socket, m.callId); };
    const client = await agent(server, session);
    await client.waitFor('greet');
    assert.deepEqual((await call(client)).data, { btcpCode: code }, session);
    if (session === 'large') assert.equal(await within(10_000, 'the close', socket.closed), 1009);
  }
});

test('MCP-B: names are made fit and unique, and revert when a clash ends', async (t) => {
  const server = await serveBrowser(t);
  const long = 'n'.repeat(128);
  const one = answering(await tab(t, server, 'one', [greet, { ...greet, name: 'a.b/c' }, { ...greet, name: long }, { ...greet, name: `${long}x` }]), () => result('one'));
  const client = await agent(server, 'one');
  await logged(server, /tools of a page in session one are not taken: the name of a tool is longer than 128 bytes/);
  one.send({ type: 'tools/changed', tools: [greet, { ...greet, name: 'a.b/c' }, { ...greet, name: 'a_b_c' }, { ...greet, name: long }] });
  const listed = await client.waitFor('greet', 'a_b_c', 'n'.repeat(64));
  assert.equal(listed.length, 4);
  assert.equal(new Set(listed).size, 4);
  assert.ok(listed.every((n) => /^[A-Za-z0-9_-]{1,64}$/.test(n)), listed.join());
  await client.text('a_b_c');
  assert.equal(one.messages().at(-1).toolName, 'a.b/c', 'by its own name');
  // Two tabs with the same tool, seen together.
  const all = await agent(server);
  const two = answering(await tab(t, server, 'two', [greet]), () => result('two'));
  await until('both', async () => (await all.toolNames()).filter((n) => n.startsWith('greet')).length === 2);
  assert.equal(await all.text('greet'), 'one');
  one.ws.terminate();
  await until('bare again', async () => (await all.toolNames()).filter((n) => !n.startsWith('webmcp_')).join() === 'list_pages,greet');
  assert.equal(await all.text('greet'), 'two');
  assert.equal(two.ws.readyState, 1);
});

test('MCP-B: schemas pass as they are, change and go; the same list again is no news', async (t) => {
  const server = await serveBrowser(t);
  const schema = { type: 'object', properties: { n: { type: 'number', minimum: 1.50 } }, required: ['n'], $defs: { x: {} } };
  const socket = await tab(t, server, 'S', [{ ...greet, inputSchema: schema }]);
  const client = await agent(server, 'S');
  await client.waitFor('greet');
  const standing = await client.listen();
  const shown = async () => (await client.request('tools/list')).result.tools[0].inputSchema;
  assert.deepEqual(await shown(), schema);
  const changes = () => standing.count('notifications/tools/list_changed');
  socket.ws.terminate();
  const again = await tab(t, server, 'S', [{ ...greet, inputSchema: schema }]);
  again.send({ type: 'tools/changed', tools: [{ ...greet, inputSchema: schema }] });
  again.send({ type: 'tools/changed', tools: [{ ...greet, inputSchema: { type: 'object', properties: {} } }] });
  await until('updated', async () => !(await shown())?.required);
  await standing.waitFor('notifications/tools/list_changed');
  assert.ok(changes() <= 3, `${changes()} changes`);
  again.send({ type: 'tools/changed', tools: [{ name: 'greet', description: 'Greets' }] });
  await until('removed', async () => JSON.stringify(await shown()) === '{"type":"object","properties":{}}');
  again.send({ type: 'tools/changed', tools: [] });
  await until('none left', async () => (await client.toolNames()).length === 0);
});
