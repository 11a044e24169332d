// What MCP-B's relay does for agents, done by us: other relays that find the port taken work through us
// (they were refused), and the tools webmcp_* let an agent use pages whose tools it has not listed.
// browser_relay.test.mjs has MCP-B's pages.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { HttpClient, StdioClient, exchange, npmFolder, tempDir, until, within } from './lib.mjs';
import { Socket, agent, greet, page, serveBrowser, text } from './browser_lib.mjs';

const result = (value) => ({ content: [{ type: 'text', text: value }], isError: false });

/** A tab of MCP-B that answers every call, and its socket. */
async function tab(t, server, tabId, tools, { title = 'Shop', more = {} } = {}) {
  const socket = new Socket(t, server, '/', {}, ['webmcp.v1']);
  socket.onFrame = (m) => {
    if (m.type === 'ping') socket.send({ type: 'pong' });
    if (m.type === 'invoke') socket.send({ type: 'result', callId: m.callId, result: result(`${tabId} ${m.args.who ?? ''}`), ...more });
  };
  await socket.opened;
  socket.send({ type: 'hello', tabId, url: 'https://shop.example/basket', title });
  socket.send({ type: 'tools/list', tools });
  await socket.find('accepted', (m) => m.type === 'hello/accepted');
  return socket;
}

// --- other relays ---

/** MCP-B's own relay, started on our port; it waits 750 ms for the listener, so it may need another try. */
async function realRelay(t, port) {
  const cli = path.join(npmFolder, 'node_modules/@mcp-b/webmcp-local-relay/dist/cli.js');
  for (let i = 0; i < 10; i++) {
    const relay = new StdioClient({ after() {} }, process.execPath, [cli, '--port', port], { env: { HOME: tempDir() } });
    const mode = await Promise.race([
      until('a mode', () => relay.stderr.match(/(client|server) mode: /)?.[1], 20_000), relay.ended.then(() => null)]);
    if (mode) {
      t.after(() => relay.child.kill('SIGKILL'));
      assert.equal(mode, 'client', relay.stderr);
      return relay.connect();
    }
  }
  return assert.fail('the relay does not take us for one');
}

test('MCP-B\'s own relay works through us: its agent lists and calls the tools of our pages', async (t) => {
  const server = await serveBrowser(t);
  await tab(t, server, 'tab-1', [greet]);
  const relay = await realRelay(t, new URL(server.origin).port);
  await relay.waitFor('greet', 'webmcp_list_tools');
  const call = async (name, args) => (await relay.request('tools/call', { name, arguments: args })).result;
  assert.equal((await call('greet', { who: 'Ada' })).content[0].text, 'tab-1 Ada');
  const { sources } = (await call('webmcp_list_sources', {})).structuredContent;
  assert.deepEqual(sources.map((s) => [s.tabId, s.title, s.toolCount]), [['tab-1', 'Shop', 1]]);
  assert.ok(Math.abs(Date.now() - sources[0].connectedAt) < 60_000 && sources[0].lastSeenAt >= sources[0].connectedAt, JSON.stringify(sources));
  // Pages of every dialect are listed, and come and go.
  const other = (await page(t, server, 'S', [{ ...greet, name: 'other' }])).answer(() => text('D3'));
  await relay.waitFor('greet', 'other');
  const { tools } = (await call('webmcp_list_tools', {})).structuredContent;
  assert.deepEqual(tools.map((x) => [x.name, x.sources.map((s) => s.tabId)]), [['greet', ['tab-1']], ['other', ['S']]]);
  assert.equal((await call('webmcp_call_tool', { name: 'other', arguments: {} })).content[0].text, 'D3');
  other.answer(() => ({ error: { code: -32000, message: 'broken' } }));
  const failed = await call('other', {});
  assert.deepEqual([failed.isError, failed.content[0].text], [true, 'broken']);
  other.ws.terminate();
  await until('the tool to go', async () => !(await relay.request('tools/list')).result.tools.some((x) => x.name === 'other'));
  assert.doesNotMatch(relay.stderr, /invalid|unknown/);
});

test('a relay peer, message by message; what it may not do', async (t) => {
  const server = await serveBrowser(t);
  const peer = new Socket(t, server, '/', {}, ['webmcp-relay.v1', 'webmcp.v1']);
  await peer.opened;
  assert.equal(peer.ws.protocol, 'webmcp-relay.v1');
  const call = async (toolName, more = {}) => {
    const callId = `c${Math.random()}`;
    peer.send({ type: 'relay/invoke', callId, toolName, args: {}, ...more });
    return (await peer.find(`the result of ${toolName}`, (m) => m.type === 'relay/result' && m.callId === callId)).result;
  };
  peer.send({ type: 'relay/invoke', callId: 'early', toolName: 'greet', args: {} }); // before its hello: ignored
  peer.send({ type: 'hello', tabId: 'not-a-page' });
  peer.send({ type: 'relay/hello' });
  peer.send({ type: 'relay/list-tools' });
  const none = await peer.find('the tools', (m) => m.type === 'relay/tools');
  assert.deepEqual(none, { type: 'relay/tools', tools: [], sources: [], toolSourceMap: {} });
  assert.deepEqual(peer.messages().map((m) => m.type), ['server-hello', 'relay/tools']);
  await tab(t, server, 'tab-1', [greet]);
  const told = await peer.find('the change', (m) => m.type === 'relay/tools-changed' && m.tools.length === 1);
  assert.equal(told.tools[0].name, 'greet');
  assert.deepEqual(told.toolSourceMap, { greet: [told.sources[0].sourceId] });
  assert.equal((await call('greet', { args: { who: 'Ada' } })).content[0].text, 'tab-1 Ada');
  assert.match((await call('no such tool')).content[0].text, /no such tool/);
  // A peer that disconnects during a call: the call ends, and others are still served.
  const slow = await tab(t, server, 'tab-2', [{ ...greet, name: 'slow' }]);
  slow.onFrame = (m) => { if (m.type === 'ping') slow.send({ type: 'pong' }); };
  await peer.find('the other tool', (m) => m.type === 'relay/tools-changed' && m.tools.length === 2);
  peer.send({ type: 'relay/invoke', callId: 'left', toolName: 'slow', args: {} });
  await slow.find('the call', (m) => m.type === 'invoke');
  peer.ws.terminate();
  await until('the end of the call', async () => {
    const calls = JSON.parse((await exchange(`${server.origin}/api/calls`, { method: 'GET' })).text);
    return !['running', 'waiting'].includes(calls.find((c) => c.name === 'slow').state);
  });
  assert.ok((await (await agent(server)).call('greet', {})).result);
  // A web page cannot be a relay, whatever subprotocol it asks for.
  const web = { Origin: server.origin };
  await assert.rejects(new Socket(t, server, '/', web, ['webmcp-relay.v1']).opened, /HTTP 4\d\d/);
  const disguised = new Socket(t, server, '/', web, ['webmcp-relay.v1', 'webmcp.v1']);
  await disguised.opened;
  assert.equal(disguised.ws.protocol, 'webmcp.v1');
  disguised.send({ type: 'relay/hello' });
  disguised.send({ type: 'relay/list-tools' });
  disguised.send({ type: 'hello', tabId: 'disguised' });
  await disguised.find('accepted', (m) => m.type === 'hello/accepted');
  assert.deepEqual(disguised.messages().map((m) => m.type), ['server-hello', 'hello/accepted']);
});

test('with pairing a relay peer stays out like every agent without the token', async (t) => {
  const server = await serveBrowser(t, { browser: { pairing: true } });
  await assert.rejects(new Socket(t, server, '/', {}, ['webmcp-relay.v1']).opened, /HTTP 401/);
});

// --- the tools of MCP-B's relay ---

const names = ['webmcp_call_tool', 'webmcp_list_sources', 'webmcp_list_tools', 'webmcp_open_page'];
const own = async (client) => (await client.toolNames()).filter((n) => n.startsWith('webmcp_')).sort();

test('the tools webmcp_* are there with a page of MCP-B, or when the configuration says so', async (t) => {
  const server = await serveBrowser(t);
  const client = await agent(server);
  await page(t, server, 'S', [{ ...greet, name: 'other' }]);
  await client.waitFor('other', 'list_pages');
  assert.deepEqual(await own(client), []);
  const shop = await tab(t, server, 'tab-1', [greet]);
  await client.waitFor('greet');
  assert.deepEqual(await own(client), names);
  // A page cannot take the names of these tools.
  shop.send({ type: 'tools/changed', tools: [{ ...greet, name: 'webmcp_open_page' }] });
  const renamed = await until('the page’s own', async () => (await own(client)).find((n) => !names.includes(n)));
  assert.match(renamed, /^webmcp_open_page_shop/);
  shop.ws.terminate();
  await until('them to go', async () => (await own(client)).length === 0);
  const always = await serveBrowser(t, { browser: { webmcp: true } });
  assert.deepEqual(await own(await agent(always)), names);
});

test('webmcp_list_sources, _list_tools and _call_tool: pages of every dialect, by the names that agents have', async (t) => {
  const server = await serveBrowser(t);
  await tab(t, server, 'tab-1', [greet, { ...greet, name: 'slow', timeout: 1000 }]);
  (await page(t, server, 'S', [greet])).answer((_, { who }) => text(`S ${who}`));
  const client = await agent(server);
  await client.waitFor('slow');
  const call = (name, args = {}) => within(20_000, name, client.call(name, args));
  const { result: { structuredContent: told, content } } = await call('webmcp_list_sources');
  assert.deepEqual(JSON.parse(content[0].text), told);
  assert.equal(told.count, 2);
  assert.deepEqual(told.sources.map((s) => s.tabId).sort(), ['S', 'tab-1']);
  const listed = await until('both', async () => {
    const { tools } = (await call('webmcp_list_tools')).result.structuredContent;
    return tools.length === 3 && tools;
  });
  const second = listed.find((x) => x.name !== 'greet' && x.originalName === 'greet');
  assert.deepEqual(second.inputSchema, greet.inputSchema);
  for (const { name, sources: [{ tabId }] } of listed.filter((x) => x.originalName === 'greet'))
    assert.equal((await call('webmcp_call_tool', { name, arguments: { who: 'Ada' } })).result.content[0].text, `${tabId} Ada`);
  for (const [args, why] of [[{ name: 'nope' }, /nope/], [{ name: 'list_pages' }, /list_pages/], [{}, /webmcp_list_tools/], [{ name: 'greet', arguments: [1] }, /must be an object/]]) {
    const { result: wrong } = await call('webmcp_call_tool', args);
    assert.equal(wrong.isError, true);
    assert.match(wrong.content[0].text, why);
  }
});

test('webmcp_call_tool obeys what holds for the tool: deadline, cancelling, filters, and the recorder sees the call', async (t) => {
  const server = await serveBrowser(t, { views: { narrow: { deny: ['secret*'] } } });
  const socket = await tab(t, server, 'tab-1', [greet, { ...greet, name: 'slow', timeout: 1000 }, { ...greet, name: 'secret' }]);
  const answers = socket.onFrame;
  const calls = [];
  socket.onFrame = (m) => { if (m.type === 'invoke') calls.push(m.toolName); if (m.toolName !== 'slow') answers(m); };
  const client = await agent(server);
  await client.waitFor('slow');
  const { error } = await within(20_000, 'the deadline', client.call('webmcp_call_tool', { name: 'slow' }));
  assert.equal(error.data.btcpCode, 'TIMEOUT');
  const told = JSON.parse((await exchange(`${server.origin}/api/calls`, { method: 'GET' })).text);
  assert.deepEqual(told.filter((c) => c.server === '@browser').map((c) => c.name).sort(), ['slow', 'webmcp_call_tool']);
  // A call that its agent cancels is cancelled in the page.
  const ours = await page(t, server, 'S', [{ ...greet, name: 'endless' }], '&client=rialto.js');
  await client.waitFor('endless');
  client.post({ jsonrpc: '2.0', id: 'gone', method: 'tools/call', params: { name: 'webmcp_call_tool', arguments: { name: 'endless' } } }).catch(() => {});
  const { id } = await ours.find('the call', (m) => m.method === 'tools/call');
  await client.notify('notifications/cancelled', { requestId: 'gone' });
  await ours.find('its end', (m) => m.method === 'notifications/cancelled' && m.params.requestId === id);
  const narrow = await new HttpClient(`${server.url}?view=narrow`).connect();
  await narrow.waitFor('greet');
  assert.ok(!(await narrow.toolNames()).includes('secret'));
  const { tools } = (await narrow.call('webmcp_list_tools', {})).result.structuredContent;
  assert.deepEqual(tools.map((x) => x.name).sort(), ['endless', 'greet', 'slow']);
  assert.equal((await narrow.call('webmcp_call_tool', { name: 'secret' })).result.isError, true);
  assert.ok(!calls.includes('secret'));
  assert.equal((await client.call('webmcp_call_tool', { name: 'secret' })).result.content[0].text, 'tab-1 ');
});

// --- webmcp_open_page ---

const oneHeld = (server) => until('a call that waits', async () => {
  const list = JSON.parse((await exchange(`${server.origin}/api/approvals`, { method: 'GET' })).text);
  return list.length === 1 && list[0];
});

/** Calls webmcp_open_page and lets the operator decide. */
async function openPage(server, client, args, approved = true) {
  const call = client.call('webmcp_open_page', args);
  const { id, asked } = await oneHeld(server);
  assert.equal(asked, 'operator');
  assert.equal((await exchange(`${server.origin}/api/approvals/${id}`, { body: JSON.stringify({ approved }) })).status, 200);
  return within(20_000, 'the end of the call', call);
}

test('webmcp_open_page: nothing is opened before an operator says yes, and then just that address', async (t) => {
  const dir = tempDir();
  const opened = () => (fs.existsSync(`${dir}/opened`) ? fs.readFileSync(`${dir}/opened`, 'utf8') : '');
  fs.writeFileSync(`${dir}/browser`, `#!/bin/sh\nprintf '%s\\n' "$#" "$@" >> ${dir}/opened.new\nmv ${dir}/opened.new ${dir}/opened\n[ "$1" != https://shop.example/bad ]\n`, { mode: 0o755 });
  const server = await serveBrowser(t, { browser: { webmcp: true } }, { env: { BROWSER: `${dir}/browser` } });
  // The agent says that it can ask its user, but is not asked: the operator decides.
  const client = await agent(server, null, { capabilities: { elicitation: {} } });
  const url = "https://shop.example/?q=1;touch%20x&b=$(id)";
  const refused = await openPage(server, client, { url }, false);
  assert.match(refused.error?.message ?? refused.result.content[0].text, /refused by the operator/);
  assert.equal(opened(), '');
  const { result: yes } = await openPage(server, client, { url });
  assert.ok(!yes.isError, JSON.stringify(yes));
  assert.equal(opened(), `1\n${url}\n`);
  const { result: bad } = await openPage(server, client, { url: 'https://shop.example/bad' });
  assert.equal(bad.isError, true);
  assert.match(bad.content[0].text, /could not be started/);
  const before = opened();
  for (const wrong of ['file:///etc/passwd', 'javascript:alert(1)', '--help', 'https://', 'https://a b', `https://a/${'x'.repeat(3000)}`, 'https://a/`id`', 7]) {
    const { result: no } = await openPage(server, client, { url: wrong });
    assert.equal(no.isError, true, String(wrong));
  }
  assert.equal(opened(), before);
});

test('webmcp_open_page: a browser that cannot be found; a page that is told to load itself anew', async (t) => {
  const server = await serveBrowser(t, {}, { env: { BROWSER: '/no/such/browser' } });
  const shop = await tab(t, server, 'tab-1', [greet]);
  const client = await agent(server);
  await client.waitFor('greet', 'webmcp_open_page');
  const { result: none } = await openPage(server, client, { url: 'https://shop.example/' });
  assert.match(none.content[0].text, /cannot start \/no\/such\/browser: No such file/);
  assert.equal(none.isError, true);
  const { result: told } = await openPage(server, client, { url: 'https://shop.example/elsewhere', refresh: true });
  assert.ok(!told.isError, JSON.stringify(told));
  await shop.find('the word to reload', (m) => m.type === 'reload');
  const { result: nobody } = await openPage(server, client, { url: 'https://shop.example.evil/', refresh: true });
  assert.equal(nobody.isError, true);
});
