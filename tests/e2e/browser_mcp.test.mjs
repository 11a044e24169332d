// Tools of web pages as MCP agents see them: the examples of the BTCP bridge document value for
// value, what happens when pages come and go, capabilities, and who is let in.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import {
  StdioClient, exchange, fake, load, rialto, rialtoBin, sanitizerEnv, sleep, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { ModernClient } from './peers.mjs';
import { Socket, agent, atOnce, greet, page, post, serveBrowser, stream, text } from './browser_lib.mjs';

// --- the document's own examples ---

const getPageContent = {
  name: 'getPageContent',
  description: 'Extracts the main content from the current page',
  inputSchema: { type: 'object', properties: { selector: { type: 'string', description: 'CSS selector for content area' } } },
};
const clickElement = {
  name: 'clickElement',
  description: 'Clicks an element on the page',
  inputSchema: { type: 'object', properties: { selector: { type: 'string', description: 'CSS selector for element to click' } }, required: ['selector'] },
};

test('the examples of the document, over WebSocket', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'abc-123', [getPageContent, clickElement]);
  const client = new Socket(t, server, '/mcp?session=abc-123');
  await client.opened;
  client.send({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, clientInfo: { name: 'my-agent', version: '1.0.0' } } });
  assert.deepEqual(await client.find('initialize', (m) => m.id === 1), {
    jsonrpc: '2.0', id: 1,
    result: { protocolVersion: '2024-11-05', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'btcp-server', version: '1.0.0' } },
  });
  client.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  client.send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
  assert.deepEqual(await client.find('tools/list', (m) => m.id === 2),
    { jsonrpc: '2.0', id: 2, result: { tools: [getPageContent, clickElement] } });

  browser.answer((name) => (name === 'getPageContent'
    ? { result: { content: 'Article text here...', wordCount: 523 } }
    : { error: { code: 'CAPABILITY_DENIED', message: 'Capability not granted: dom:write' } }));
  client.send({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'getPageContent', arguments: { selector: 'article' } } });
  assert.deepEqual(await client.find('tools/call', (m) => m.id === 3), {
    jsonrpc: '2.0', id: 3,
    result: { content: [{ type: 'text', text: '{"content":"Article text here...","wordCount":523}' }] },
  });
  assert.deepEqual(browser.messages().find((m) => m.method === 'tools/call').params,
    { name: 'getPageContent', arguments: { selector: 'article' } });
  client.send({ jsonrpc: '2.0', id: 4, method: 'tools/call', params: { name: 'clickElement', arguments: { selector: 'a' } } });
  assert.deepEqual(await client.find('error', (m) => m.id === 4), {
    jsonrpc: '2.0', id: 4,
    error: { code: -32603, message: 'Capability not granted: dom:write', data: { btcpCode: 'CAPABILITY_DENIED' } },
  });
  await browser.request('tools/register', { tools: [clickElement] });
  assert.deepEqual(await client.find('list_changed', (m) => m.method),
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  client.send({ jsonrpc: '2.0', id: 5, method: 'ping' });
  assert.deepEqual(await client.find('ping', (m) => m.id === 5), { jsonrpc: '2.0', id: 5, result: {} });
});

test('the error table', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  for (const [code, mapped] of [['TOOL_NOT_FOUND', -32601], ['INVALID_PARAMS', -32602], ['CAPABILITY_DENIED', -32603],
    ['EXECUTION_ERROR', -32603], ['TIMEOUT', -32603], ['MY_OWN', -32603], [-32602, -32602], [-32001, -32603]]) {
    browser.answer(() => ({ error: { code, message: `why ${code}` } }));
    assert.deepEqual((await client.call('greet')).error, { code: mapped, message: `why ${code}`, data: { btcpCode: code } });
  }
  assert.deepEqual((await client.call('nope')).error,
    { code: -32601, message: 'Tool not found: nope', data: { btcpCode: 'TOOL_NOT_FOUND' } });
});

test('flow 10, capabilities: hidden, requested, granted and denied, as in the document', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const browser = new Socket(t, server, '/ws?sessionId=S&clientType=browser&client=rialto.js');
  await browser.opened;
  await browser.request('tools/register', { tools: [
    greet, { ...greet, name: 'writeToStorage', capabilities: ['storage:local:write'] },
    { ...greet, name: 'readStorage', capabilities: ['storage:local:read'] }] });
  const client = await agent(server, 'S');
  const standing = await client.listen();
  assert.deepEqual(await client.toolNames(), ['greet', '__btcp_request_capabilities']);
  assert.deepEqual((await client.call('readStorage')).error,
    { code: -32603, message: 'Capability not granted: storage:local:read', data: { btcpCode: 'CAPABILITY_DENIED' } });
  browser.onFrame = (m) => {
    if (m.method === 'capabilities/request') browser.send({ jsonrpc: '2.0', id: m.id, result: { granted: ['storage:local:read'], denied: ['dom:write'] } });
    if (m.method === 'tools/call') browser.send({ jsonrpc: '2.0', id: m.id, ...text('done') });
  };
  const answer = await client.call('__btcp_request_capabilities', { capabilities: ['dom:write', 'storage:local:read'] });
  assert.deepEqual(answer.result, { content: [{ type: 'text',
    text: '{"granted":["storage:local:read"],"denied":["dom:write"],"pending":[]}' }] });
  await standing.waitFor('notifications/tools/list_changed');
  await client.waitFor('readStorage');
  assert.ok(!(await client.toolNames()).includes('writeToStorage'));
  assert.equal(await client.text('readStorage'), 'done');
  for (const wrong of [{}, { capabilities: [] }, { capabilities: 'dom:read' }, { capabilities: [1] }]) {
    assert.equal((await client.call('__btcp_request_capabilities', wrong)).error.code, -32602);
  }
  // Writing implies reading; after they are revoked both tools are hidden again.
  await browser.request('capabilities/grant', { capabilities: ['storage:local:write'] });
  await client.waitFor('writeToStorage', 'readStorage');
  await browser.request('capabilities/revoke', { capabilities: ['storage:local:write', 'storage:local:read'] });
  await until('hidden', async () => (await client.toolNames()).length === 2);
  // Granted for one call.
  await browser.request('capabilities/grant', { capabilities: ['storage:*'], type: 'once' });
  await client.waitFor('writeToStorage');
  await client.text('writeToStorage');
  await until('used up', async () => (await client.toolNames()).length === 2);
});

test('capabilities: pages that never speak of them are not asked, unless the policy is strict', async (t) => {
  const tools = [{ ...greet, capabilities: ['dom:read'] }];
  const easy = await serveBrowser(t);
  await page(t, easy, 'S', tools);
  assert.deepEqual(await (await agent(easy, 'S')).toolNames(), ['greet']);
  const strict = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const unable = await page(t, strict, 'S', tools);
  unable.onFrame = (m) => {
    if (m.method === 'capabilities/request') unable.send({ jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'Method not found' } });
  };
  const client = await agent(strict, 'S');
  assert.deepEqual(await client.toolNames(), ['__btcp_request_capabilities']);
  assert.equal((await client.call('__btcp_request_capabilities', { capabilities: ['dom:read'] })).result.content[0].text,
    '{"granted":[],"denied":["dom:read"],"pending":[]}');
  const listed = await serveBrowser(t, { browser: { capabilities: 'strict', granted: ['dom:*'] } });
  await page(t, listed, 'S', tools);
  assert.deepEqual(await (await agent(listed, 'S')).toolNames(), ['greet']);
});

test('capabilities: nobody decided, because the page left', async (t) => {
  const server = await serveBrowser(t, { browser: { granted: ['dom:read'] } });
  const browser = await page(t, server, 'S', [{ ...greet, capabilities: ['dom:write'] }], '&client=rialto.js');
  const client = await agent(server, 'S');
  const answer = client.call('__btcp_request_capabilities', { capabilities: ['dom:read', 'dom:write'] });
  const asked = await browser.find('the question', (m) => m.method === 'capabilities/request');
  assert.deepEqual(asked.params, { capabilities: ['dom:write'] }, 'only what is not there yet');
  browser.ws.terminate();
  assert.equal((await answer).result.content[0].text, '{"granted":["dom:read"],"denied":[],"pending":["dom:write"]}');
});

test('a cancelled call: our own client hears of it, others are not bothered', async (t) => {
  const server = await serveBrowser(t);
  for (const [query, heard] of [['&client=rialto.js', 1], ['', 0]]) {
    const browser = await page(t, server, `S${heard}`, [greet], query);
    const client = await agent(server, `S${heard}`);
    client.post('{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"greet"}}').catch(() => {});
    const { id } = await browser.find('the call', (m) => m.method === 'tools/call');
    await client.notify('notifications/cancelled', { requestId: 77 });
    await browser.request('ping');
    const told = browser.messages().filter((m) => m.method === 'notifications/cancelled');
    assert.deepEqual(told.map((m) => m.params), heard ? [{ requestId: id }] : []);
    browser.send({ jsonrpc: '2.0', id, ...text('too late') });
    assert.deepEqual((await browser.request('ping')).result, { pong: true });
  }
});

// The caller got a timeout error, but the page went on working on the call.
test('a call that takes too long: our own client hears that it is over', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [{ ...greet, timeout: 1000 }], '&client=rialto.js');
  const client = await agent(server, 'S');
  assert.deepEqual((await client.call('greet')).error.data, { btcpCode: 'TIMEOUT' });
  const { id } = await browser.find('the call', (m) => m.method === 'tools/call');
  const told = await browser.find('its end', (m) => m.method === 'notifications/cancelled');
  assert.deepEqual(told.params, { requestId: id });
});

test('capabilities: granted for good, they are there after a restart, for that origin only', async (t) => {
  const state = tempDir();
  const config = { browser: { capabilities: 'strict' } };
  const tools = [{ ...greet, capabilities: ['dom:write'] }];
  const open = async (server, origin) => {
    const browser = new Socket(t, server, '/ws?sessionId=S&clientType=browser', { Origin: origin });
    await browser.opened;
    await browser.request('tools/register', { tools });
    return browser;
  };
  const first = await serveBrowser(t, config, { state });
  const browser = await open(first, 'http://localhost:3000');
  await browser.request('capabilities/grant', { capabilities: ['dom:write'], type: 'persistent' });
  await (await agent(first, 'S')).waitFor('greet');
  await first.stop();
  const file = path.join(state, 'rialto/browser-grants.json');
  assert.deepEqual(JSON.parse(fs.readFileSync(file)), { 'http://localhost:3000': ['dom:write'] });
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const second = await serveBrowser(t, config, { state });
  await open(second, 'http://localhost:4000');
  const client = await agent(second, 'S');
  assert.deepEqual(await client.toolNames(), ['__btcp_request_capabilities']);
  const third = await serveBrowser(t, config, { state });
  await open(third, 'http://localhost:3000');
  await (await agent(third, 'S')).waitFor('greet');
});

// --- results ---

test('flow 12, results: they pass through, their oddities mended', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  const png = 'iVBORw0KGgoAAAANSUhEUg==';
  const cases = [
    [{ content: [{ type: 'text', text: 'x' }], extra: 1 }, { content: [{ type: 'text', text: 'x' }], extra: 1 }],
    ['plain', { content: [{ type: 'text', text: '"plain"' }] }],
    [[1, 2], { content: [{ type: 'text', text: '[1,2]' }] }],
    [{ content: [{ type: 'json', data: { a: 1 } }] }, { content: [{ type: 'text', text: '{"a":1}' }] }],
    [{ content: [{ type: 'image', data: `data:image/png;base64,${png}`, mimeType: 'image/png' }] },
      { content: [{ type: 'image', data: png, mimeType: 'image/png' }] }],
    [{ content: [{ type: 'image', data: png, mimeType: 'image/png' }] }, { content: [{ type: 'image', data: png, mimeType: 'image/png' }] }],
    [{ content: [{ type: 'image', data: 'hello', mimeType: 'image/png' }] }, { content: [{ type: 'text', text: 'hello' }] }],
    [{ content: [{ type: 'resource', uri: 'a:b', text: 'T', mimeType: 'text/plain' }] },
      { content: [{ type: 'resource', resource: { uri: 'a:b', mimeType: 'text/plain', text: 'T' } }] }],
    [{ content: [{ type: 'resource', uri: 'a:b' }] }, { content: [{ type: 'resource_link', uri: 'a:b', name: 'a:b' }] }],
  ];
  for (const [given, wanted] of cases) {
    browser.answer(() => ({ result: given }));
    assert.deepEqual((await client.call('greet')).result, wanted);
  }
  browser.answer(() => ({ result: { content: [{ type: 'text', text: 'x'.repeat(10 << 20) }] } }));
  assert.equal((await client.text('greet')).length, 10 << 20, 'ten megabytes');
});

// --- pages come and go ---

test('flow 9: a page leaves in the middle of a call: an error at once, no tools, one change', async (t) => {
  const server = await serveBrowser(t);
  const lost = async (session) => {
    const browser = await page(t, server, session, [greet]);
    const client = await agent(server, session);
    const standing = await client.listen();
    const answer = client.call('greet');
    await browser.find('the call', (m) => m.method === 'tools/call');
    const began = Date.now();
    browser.ws.terminate();
    const { error } = await answer;
    const took = Date.now() - began;
    assert.equal(error.code, -32603);
    assert.deepEqual(error.data, { btcpCode: 'CONNECTION_ERROR' });
    return { took, client, standing };
  };
  await atOnce('the error', 100, async (n) => (await lost(`T${n}`)).took);
  const { client, standing } = await lost('S');
  await standing.waitFor('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), []);
  assert.deepEqual((await client.call('greet')).error.data, { btcpCode: 'CONNECTION_ERROR' });
  // The page is loaded again: the same session, the same tools.
  await page(t, server, 'S', [greet]);
  await client.waitFor('greet');
  await sleep(150);
  assert.equal(standing.count('notifications/tools/list_changed'), 2);
});

test('flow 9: a reload that is quick changes nothing for agents; many registrations are one change', async (t) => {
  const server = await serveBrowser(t);
  const first = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  const standing = await client.listen();
  const second = new Socket(t, server, '/ws?sessionId=S&clientType=browser');
  await second.opened;
  first.ws.terminate();
  await second.request('tools/register', { tools: [greet] });
  await sleep(200);
  assert.equal(standing.count('notifications/tools/list_changed'), 0);
  for (let i = 1; i <= 20; i++) {
    second.send({ jsonrpc: '2.0', id: i, method: 'tools/register', params: { tools: Array.from({ length: i }, (_, n) => ({ ...greet, name: `t${n}` })) } });
  }
  await client.waitFor('t19');
  await sleep(100);
  assert.ok(standing.count('notifications/tools/list_changed') <= 5, `${standing.count('notifications/tools/list_changed')} changes`);
});

test('several pages in one session, and several sessions in one view', async (t) => {
  const server = await serveBrowser(t, { servers: { fake: fake() } });
  const one = await page(t, server, 'S', [greet, { ...greet, name: 'web.mcp' }]);
  const two = await page(t, server, 'S', [greet, { ...greet, name: 'second' }]);
  const three = await page(t, server, 'T', [{ ...greet, name: 'third' }, greet]);
  one.answer(() => text('one'));
  two.answer(() => text('two'));
  three.answer(() => text('three'));
  const client = await agent(server, 'S');
  const names = await client.toolNames();
  assert.deepEqual(names.filter((n) => !n.startsWith('greet_')), ['greet', 'web_mcp', 'second']);
  assert.equal(names.length, 4);
  assert.equal(await client.text('greet'), 'one');
  assert.equal(await client.text('web_mcp'), 'one');
  assert.equal(one.messages().at(-1).params.name, 'web.mcp');
  assert.equal(await client.text(names.find((n) => n.startsWith('greet_'))), 'two');
  const all = await agent(server);
  const listed = await all.waitFor('greet', 'second', 'third');
  assert.ok(listed.some((n) => n.startsWith('fake__')), 'the servers stand beside them');
  assert.equal(listed.filter((n) => /^greet[-_]/.test(n)).length, 2);
  assert.equal(await all.text('third'), 'three');
  // Both pages have a tool of the same name; the suffix goes when one of them leaves.
  one.ws.terminate();
  await until('bare again', async () => (await client.toolNames()).join() === 'greet,second');
  assert.equal(await client.text('greet'), 'two');
});

test('a session ends when nobody has used it for its time', async (t) => {
  const server = await serveBrowser(t, { browser: { session_ttl: '1s' } });
  const browser = await page(t, server, 'S', [greet]);
  const sessions = async () => JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text).sessions.length;
  await sleep(1500);
  assert.equal(await sessions(), 1, 'a page that is there keeps it');
  browser.ws.terminate();
  await until('its end', async () => await sessions() === 0, 20_000);
  assert.equal((await exchange(`${server.url}?session=S`, { body: '{}' })).status, 404);
});

test('flow 11: a tool has the time it says, and a late answer goes nowhere', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [{ ...greet, timeout: 1000 }]);
  const client = await agent(server, 'S');
  const { error } = await within(20_000, 'the timeout', client.call('greet'));
  assert.deepEqual(error, { code: -32603, message: 'Tool execution timeout', data: { btcpCode: 'TIMEOUT' } });
  const { id } = browser.messages().find((m) => m.method === 'tools/call');
  browser.send({ jsonrpc: '2.0', id, ...text('late') });
  assert.deepEqual((await browser.request('ping')).result, { pong: true });
});

test('a thousand reconnects leave nothing behind', async (t) => {
  const server = await serveBrowser(t);
  for (let round = 0; round < 50; round++) {
    await Promise.all(Array.from({ length: 20 }, async () => {
      const socket = new Socket(t, server, '/ws?sessionId=S&clientType=browser');
      await socket.opened;
      socket.send({ jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } });
      socket.ws.close();
      await socket.closed;
    }));
  }
  const health = () => exchange(`${server.origin}/health`, { method: 'GET' }).then((a) => JSON.parse(a.text));
  await until('all gone', async () => (await health()).clients === 0);
  await page(t, server, 'S', [greet]);
  assert.deepEqual(await (await agent(server, 'S')).toolNames(), ['greet']);
});

// --- ways in ---

test('MCP by SSE selects a session', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  await page(t, server, 'T', [{ ...greet, name: 'other' }]);
  browser.answer(() => text('hi'));
  const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
  const { SSEClientTransport } = load('@modelcontextprotocol/sdk/client/sse.js');
  for (const query of ['session=S', 'sessionId=S']) {
    const client = new Client({ name: 'serverless-agent', version: '1.0.0' });
    await client.connect(new SSEClientTransport(new URL(`${server.origin}/mcp/sse?${query}`)));
    assert.deepEqual((await client.listTools()).tools.map((x) => x.name), ['greet']);
    assert.equal((await client.callTool({ name: 'greet' })).content[0].text, 'hi');
    await client.close();
  }
});

test('MCP on a WebSocket is known by its subprotocol where no path is given', async (t) => {
  const server = await serveBrowser(t);
  (await page(t, server, 'S', [greet])).answer(() => text('hi'));
  const own = new StdioClient(t, rialtoBin, ['browser', '-c', writeConfig(tempDir(), { listen: '127.0.0.1:0' })],
    { env: { ...process.env, ...sanitizerEnv, XDG_STATE_HOME: tempDir() } });
  const origin = (await until('its address', () => own.stderr.match(/listening on (http:\S+)/)))[1];
  (await page(t, { origin }, 'S', [greet])).answer(() => text('hi'));
  for (const where of [server, { origin }]) {
    const client = new Socket(t, where, '/?session=S', {}, ['mcp']);
    await client.opened;
    assert.equal(client.ws.protocol, 'mcp');
    await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
    assert.deepEqual((await client.request('tools/list')).result.tools, [greet]);
    client.ws.close();
    assert.equal((await exchange(`${where.origin}/`, { method: 'GET' })).status, where === server ? 200 : 404);
  }
  // A site that may only offer tools may not connect this way either.
  await assert.rejects(new Socket(t, server, '/', { Origin: 'chrome-extension://abcdefghijklmnopabcdefghijklmnop' }, ['mcp']).opened, /403/);
  await own.stop();
});

test('flow 14, rialto browser: attaches to the bridge that runs, else listens itself', async (t) => {
  const server = await serveBrowser(t, { servers: { fake: fake() } });
  const browser = await page(t, server, 'S', [greet]);
  browser.answer(() => text('attached'));
  const env = { ...process.env, ...sanitizerEnv, XDG_STATE_HOME: tempDir(), BTCP_SESSION_ID: 'S' };
  const attached = new StdioClient(t, rialtoBin, ['browser', '-c', writeConfig(tempDir(), { listen: new URL(server.origin).host })], { env });
  await attached.connect({ version: '2024-11-05' });
  assert.deepEqual(attached.initialized.serverInfo, { name: 'btcp-server', version: '1.0.0' });
  assert.deepEqual((await attached.request('tools/list')).result.tools, [greet]);
  assert.equal((await attached.request('tools/call', { name: 'greet', arguments: {} })).result.content[0].text, 'attached');
  await browser.request('tools/register', { tools: [] });
  await until('list_changed', () => attached.messages().some((m) => m.method === 'notifications/tools/list_changed'));

  await attached.stop(); // before the bridge it is attached to
  await browser.request('tools/register', { tools: [greet] });
  const all = new StdioClient(t, rialtoBin, ['browser', '-c', writeConfig(tempDir(), { listen: new URL(server.origin).host })],
    { env: { ...env, BTCP_SESSION_ID: '' } });
  await all.connect();
  assert.deepEqual((await all.request('tools/list')).result.tools.map((x) => x.name), ['list_pages', 'greet'], 'all pages and no server');
  await all.stop();

  // The page usually comes later than the agent.
  const own = new StdioClient(t, rialtoBin, ['browser', '--session', 'later', '-c', writeConfig(tempDir(), { listen: '127.0.0.1:0' })], { env });
  await own.connect();
  assert.deepEqual((await own.request('tools/list')).result.tools, []);
  const origin = (await until('its address', () => own.stderr.match(/listening on (http:\S+)/)))[1];
  const late = await page(t, { origin }, 'later', [greet]);
  late.answer(() => text('hosted'));
  await until('list_changed', () => own.messages().some((m) => m.method === 'notifications/tools/list_changed'));
  assert.equal((await own.request('tools/call', { name: 'greet', arguments: {} })).result.content[0].text, 'hosted');
  // Another host program starts a second one, which finds the address taken, and attaches to the first.
  const second = new StdioClient(t, rialtoBin, ['browser', '--session', 'later', '-c', writeConfig(tempDir(), { listen: new URL(origin).host })], { env });
  await second.connect();
  assert.equal((await second.request('tools/call', { name: 'greet', arguments: {} })).result.content[0].text, 'hosted');
  await second.stop();
  await own.stop();
});

// The session that `rialto browser` hosts ended like any other when no page had come in time, and the
// program with it: the next request of its host program used freed memory.
test('flow 14: the session of a host program waits for its page as long as the program runs', async (t) => {
  const config = writeConfig(tempDir(), { listen: '127.0.0.1:0', browser: { session_ttl: '1s' } });
  const env = { ...process.env, ...sanitizerEnv, XDG_STATE_HOME: tempDir() };
  const own = new StdioClient(t, rialtoBin, ['browser', '--session', 'later', '-c', config], { env });
  await own.connect();
  const origin = (await until('its address', () => own.stderr.match(/listening on (http:\S+)/)))[1];
  (await page(t, { origin }, 'other', [])).ws.terminate();
  await until('the end of one that came after it', () => /session other is over/.test(own.stderr));
  assert.deepEqual((await own.request('tools/list')).result.tools, []);
  const late = await page(t, { origin }, 'later', [greet]);
  late.answer(() => text('waited for'));
  await until('list_changed', () => own.messages().some((m) => m.method === 'notifications/tools/list_changed'));
  assert.equal((await own.request('tools/call', { name: 'greet', arguments: {} })).result.content[0].text, 'waited for');
  await own.stop();
});

// A page's session ended while an agent of the stateless era listened at it: that agent had no session, and was not counted.
test('a session of pages does not end while an agent of the stateless era listens at it', async (t) => {
  const server = await serveBrowser(t, { browser: { session_ttl: '1s' } });
  const first = await page(t, server, 'S', [greet]);
  const client = new ModernClient(`${server.url}?session=S`);
  const heard = await client.listen({ toolsListChanged: true });
  t.after(() => heard.close());
  first.ws.close(1000);
  (await page(t, server, 'other', [])).ws.terminate();
  await until('the end of another session', () => /session other is over/.test(server.stderr()), 20_000);
  await sleep(1000);
  const second = (await page(t, server, 'S', [{ ...greet, name: 'again' }])).answer(() => text('the same session'));
  await client.waitFor('again');
  assert.equal(await client.text('again'), 'the same session');
  assert.ok(!/session S is over/.test(server.stderr()));
  heard.close();
  second.ws.close(1000);
  await until('the end of the session', () => /session S is over/.test(server.stderr()), 30_000);
});

// The end of the input closed the connection, and every answer that was still to come was lost.
test('flow 14: what was asked before the end of the input is answered, attached or not', async (t) => {
  const server = await serveBrowser(t);
  await page(t, server, 'S', [greet]);
  const input = [
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } },
    { method: 'notifications/initialized' }, { id: 2, method: 'tools/list' }, { id: 3, method: 'ping' },
  ].map((m) => `${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`).join('');
  for (const listen of [new URL(server.origin).host, '127.0.0.1:0']) {
    const { code, stdout } = await rialto(['browser', '--session', 'S', '-c', writeConfig(tempDir(), { listen })],
      { input, env: { XDG_STATE_HOME: tempDir() }, cwd: tempDir() });
    assert.equal(code, 0);
    assert.deepEqual(stdout.trim().split('\n').map((l) => JSON.parse(l).id).filter(Boolean), [1, 2, 3]);
  }
});

// A line that was too long was dropped between the host program and the bridge, and never answered.
test('flow 14: a line too long is told to the host program, and the next one is served', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '64KiB' } });
  const config = writeConfig(tempDir(), { listen: new URL(server.origin).host, limits: { message: '64KiB' } });
  const attached = new StdioClient(t, rialtoBin, ['browser', '-c', config], { env: { ...process.env, ...sanitizerEnv } });
  await attached.connect();
  attached.send(`{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"${'y'.repeat(70_000)}"}}`);
  const told = await until('the complaint', () => attached.messages().find((m) => m.error));
  assert.match(told.error.message, /more than 65536 bytes/);
  assert.deepEqual((await attached.request('ping')).result, {});
  await attached.stop();
});

// Another program has the address: the error says so, and nothing except a handshake is sent to it.
test('flow 14: an address that is no bridge\'s is not attached to', async (t) => {
  const other = net.createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'));
  await new Promise((resolve) => { other.listen(0, '127.0.0.1', resolve); });
  t.after(() => other.close());
  const result = await rialto(['browser', '-c', writeConfig(tempDir(), { listen: `127.0.0.1:${other.address().port}` })],
    { env: { XDG_STATE_HOME: tempDir() }, cwd: tempDir() });
  assert.equal(result.code, 1);
  assert.match(result.stderr, /a program that is not Rialto has this address/);
});

test('flow 13: foreign origins and hosts are refused, configured ones are not', async (t) => {
  const extension = 'chrome-extension://abcdefghijklmnopabcdefghijklmnop';
  const server = await serveBrowser(t, { browser: { origins: ['https://app.example.com', extension] } });
  const socket = (headers) => new Socket(t, server, '/ws?sessionId=S&clientType=browser', headers).opened;
  await assert.rejects(socket({ Origin: 'https://evil.example' }), /403/);
  await assert.rejects(socket({ Origin: 'null' }), /403/);
  await assert.rejects(socket({ Host: 'rebound.example' }), /403/);
  await socket({ Origin: 'https://app.example.com' });
  await socket({ Origin: 'http://localhost:5173' });
  await socket({ Origin: extension });
  const evil = { Origin: 'https://evil.example' };
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET', headers: evil })).status, 403);
  assert.equal((await post(server, '/message?sessionId=S', {}, evil)).status, 403);
  // A site that may offer tools may not call those of others.
  assert.equal((await exchange(server.url, { body: '{}', headers: { Origin: 'https://app.example.com' } })).status, 403);
});

// What a page embeds is fetched without an Origin, whatever site the page belongs to.
test('flow 13: what other sites embed opens nothing; our scripts are for everybody', async (t) => {
  const server = await serveBrowser(t);
  const status = async (where, site, dest) => (await within(20_000, where, new Promise((resolve, reject) => {
    const request = http.get(server.origin + where, { agent: false, headers: { 'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': dest } },
      (response) => { resolve(response.statusCode); response.destroy(); });
    request.on('error', reject);
  })));
  for (const where of ['/events?sessionId=E&clientType=browser', '/mcp/sse', '/sessions', '/health', '/']) {
    assert.equal(await status(where, 'cross-site', 'image'), 403, where);
    assert.equal(await status(where, 'cross-site', 'iframe'), 403, where);
    assert.equal(await status(where, 'none', 'document'), 200, where);
    assert.equal(await status(where, 'same-origin', 'empty'), 200, where);
  }
  assert.equal(await status('/', 'cross-site', 'document'), 200, 'a link');
  const form = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
  for (const where of ['/rpc', '/message?sessionId=E', '/mcp']) assert.equal((await post(server, where, '{}', form)).status, 403, where);
  for (const script of ['/rialto.js', '/webmcp.js']) assert.equal(await status(script, 'cross-site', 'script'), 200);
});

// The sites of browser.origins are let in to offer tools. As BTCP agents they could use all tools.
test('flow 13: a site that may offer tools cannot be an agent by any dialect', async (t) => {
  const server = await serveBrowser(t, { browser: { origins: ['https://app.example.com'] } });
  (await page(t, server, 'S', [greet])).answer(() => text('private'));
  const site = { Origin: 'https://app.example.com' };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'greet', arguments: {} } };
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET', headers: site })).status, 403);
  assert.equal((await post(server, '/rpc?sessionId=S', call, site)).status, 403);
  for (const query of ['sessionId=S', 'sessionId=S&clientType=agent', 'sessionId=new']) {
    assert.equal((await stream(t, server, `/events?${query}`, site)).status, 403, query);
  }
  await assert.rejects(new Socket(t, server, '/ws?sessionId=S&clientType=agent', site).opened, /403/);
  for (const where of ['/message?sessionId=S', '/response?sessionId=S', '/tools/response?sessionId=S']) {
    assert.match((await post(server, where, call, site)).text, /may offer tools, and use nobody's/, where);
  }
  for (const where of ['/', '/ws?sessionId=S&clientType=browser']) {
    const socket = new Socket(t, server, where, site);
    await socket.opened;
    for (const [method, params] of [['hello', { clientType: 'agent' }], ['session/join', { sessionId: 'S' }], ['tools/list'], ['tools/call', call.params]]) {
      assert.deepEqual((await socket.request(method, params)).error,
        { code: -32600, message: 'Pages of this site may offer tools, and use nobody\'s' }, `${where} ${method}`);
    }
  }
  // What this site is let in for, and what others may do.
  const own = new Socket(t, server, '/ws?sessionId=T&clientType=browser', site);
  await own.opened;
  own.answer(() => text('offered'));
  await own.request('tools/register', { tools: [greet] });
  const near = { Origin: 'http://localhost:5173' };
  assert.match((await post(server, '/rpc?sessionId=T', call, near)).text, /offered/);
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET', headers: near })).status, 200);
});

// What such a site posted with the name of an agent's session counted as the agent's: it could send an agent answers that
// nobody had given, with ids of its choice, and end the agent's stay in its session.
test('flow 13: a site that may offer tools cannot post as an agent that is there', async (t) => {
  const server = await serveBrowser(t, { browser: { origins: ['https://app.example.com'] } });
  await page(t, server, 'S', [greet]);
  const named = await stream(t, server, '/events?sessionId=S&clientType=agent&clientId=mine');
  const other = await stream(t, server, '/events?sessionId=S&clientType=agent');
  const agents = async () => JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text).sessions[0].agentCount;
  assert.equal(await agents(), 2);
  const site = { Origin: 'https://app.example.com' };
  for (const query of ['sessionId=S&clientId=mine', 'sessionId=S']) {
    for (const method of ['ping', 'session/leave']) {
      await post(server, `/message?${query}`, { jsonrpc: '2.0', id: `forged-${method}`, method }, site);
    }
    await post(server, '/message', { jsonrpc: '2.0', id: 'forged', method: 'ping' },
      { ...site, 'X-Session-ID': 'S', ...(query.includes('mine') ? { 'X-Client-ID': 'mine' } : {}) });
  }
  await page(t, server, 'S', [{ ...greet, name: 'another' }]);
  for (const heard of [named, other]) {
    await heard.find('the news', (e) => e.data.method === 'tools/updated' && e.data.params.tools.length === 2);
    assert.ok(!heard.text.includes('forged'), heard.text);
  }
  assert.equal(await agents(), 2);
});

test('flow 13, pairing: who has no token stays out', async (t) => {
  const state = tempDir();
  const server = await serveBrowser(t, { browser: { pairing: true } }, { state });
  const paired = await rialto(['browser', 'pair'], { env: { XDG_STATE_HOME: state }, cwd: tempDir() });
  const token = paired.stdout.trim();
  assert.match(token, /^[0-9a-f]{32}$/);
  await assert.rejects(new Socket(t, server, '/ws?sessionId=S&clientType=browser').opened, /401/);
  await assert.rejects(new Socket(t, server, `/ws?sessionId=S&clientType=browser&token=${token.replace(/.$/, 'x')}`).opened, /401/);
  await new Socket(t, server, `/ws?sessionId=S&clientType=browser&token=${token}`).opened;
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET' })).status, 401);
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET', headers: { Authorization: `Bearer ${token}` } })).status, 200);
  assert.equal((await exchange(`${server.origin}/health`, { method: 'GET' })).status, 200);
});

// The limit on messages counted the answers to our own calls as well: a page that was called often
// was disconnected, and a benchmark took the quick errors that followed for quick calls.
test('a page may answer as often as it is asked', async (t) => {
  const server = await serveBrowser(t);
  const browser = await page(t, server, 'S', [greet]);
  browser.answer(() => text('x'));
  const client = new Socket(t, server, '/mcp?session=S');
  await client.opened;
  await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  client.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const answers = [];
  client.ws.on('message', (data) => { const m = JSON.parse(data); if (m.id > 0) answers.push(m); });
  for (let i = 1; i <= 12_000; i++) client.send(`{"jsonrpc":"2.0","id":${i},"method":"tools/call","params":{"name":"greet"}}`);
  await until('all answers', () => answers.length === 12_000, 30_000);
  assert.equal(answers.filter((m) => m.result?.content[0].text !== 'x').length, 0);
});

test('flow 12, limits: too large, too many tools, too fast', async (t) => {
  const server = await serveBrowser(t, { limits: { message: '64KiB' } });
  const big = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  const answer = client.call('greet');
  const { id } = await big.find('the call', (m) => m.method === 'tools/call');
  big.send({ jsonrpc: '2.0', id, ...text('x'.repeat(70_000)) });
  assert.equal(await within(20_000, 'the close', big.closed), 1009);
  assert.deepEqual((await answer).error.data, { btcpCode: 'CONNECTION_ERROR' });
  const many = await page(t, server, 'T', []);
  const tools = Array.from({ length: 1001 }, (_, i) => ({ name: `t${i}` }));
  assert.match((await many.request('tools/register', { tools })).error.message, /more than 1000 tools/);
  for (let i = 0; i < 6000; i++) many.send('{"method":"ping"}');
  assert.equal(await within(20_000, 'the close', many.closed), 1008);
});
