// Consent by pages of any client, as in the document: a page that knows capabilities/request is asked,
// whatever script it runs. Only pages with rialto.js used to be asked; for others the answer was "denied".
import assert from 'node:assert/strict';
import test from 'node:test';
import { tempDir, until, within } from './lib.mjs';
import { agent, everyDialect, greet, page as openPage, serveBrowser } from './browser_lib.mjs';

const tools = [greet, { ...greet, name: 'writeToStorage', capabilities: ['storage:local:write'] }];
const meta = '__btcp_request_capabilities';
const wanted = { capabilities: ['storage:local:write'] };

const page = (t, server, session) => openPage(t, server, session, tools);

for (const [name, open] of Object.entries(everyDialect)) {
  if (name === 'MCP-B') continue; // MCP-B has no such message
  test(`${name}: a page that can ask its user is asked`, async (t) => {
    const socketPath = `${tempDir()}/btcp.sock`;
    const server = await serveBrowser(t, { browser: { capabilities: 'strict', socket: `unix:${socketPath}` } });
    const peer = await open(t, server, tools, socketPath);
    peer.heard = (m) => {
      if (m.method === 'capabilities/request') peer.say({ jsonrpc: '2.0', id: m.id, result: { granted: m.params.capabilities } });
    };
    const client = await agent(server, '*');
    await client.waitFor('greet', meta);
    assert.ok(!(await client.toolNames()).includes('writeToStorage'));
    assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
    await client.waitFor('writeToStorage');
  });
}

test('a grant that comes by itself answers the question that is open', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const socket = await page(t, server, 'S');
  const client = await agent(server, 'S');
  const asked = client.call(meta, wanted);
  await socket.find('the question', (m) => m.method === 'capabilities/request');
  await socket.request('capabilities/grant', wanted);
  assert.equal((await within(15_000, 'the answer', asked)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
  await client.waitFor('writeToStorage');
});

// The page was not told that its question was settled: the dialog stayed open, and what the user clicked in it was dropped.
test('a page with rialto.js is told when a question is settled, and its late "no" takes nothing back', async (t) => {
  const server = await serveBrowser(t);
  const socket = await openPage(t, server, 'S', tools, '&client=rialto.js');
  const client = await agent(server, 'S');
  const asked = client.call(meta, wanted);
  const { id } = await socket.find('the question', (m) => m.method === 'capabilities/request');
  await socket.request('capabilities/grant', wanted);
  await socket.find('the end of the question', (m) => m.method === 'notifications/cancelled' && m.params.requestId === id);
  socket.send({ jsonrpc: '2.0', id, result: { granted: [], denied: wanted.capabilities, type: 'session' } });
  assert.equal((await within(15_000, 'the answer', asked)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
  assert.deepEqual((await socket.request('ping')).result, { pong: true });
  assert.ok((await client.waitFor('writeToStorage')).includes('greet'));
});

test('a grant that comes after "pending" counts', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict', consent_timeout: '1s' } });
  const socket = await page(t, server, 'S');
  const client = await agent(server, '*');
  assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":[],"denied":[],"pending":["storage:local:write"]}');
  await socket.request('capabilities/grant', wanted);
  await client.waitFor('writeToStorage');
});

test('auto: a page that answers the question is asked from then on, one that cannot keeps its tools', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'S');
  const client = await agent(server, 'S');
  assert.ok((await client.toolNames()).includes('writeToStorage'));
  let reply = { error: { code: -32601, message: 'Method not found' } };
  socket.onFrame = (m) => { if (m.method === 'capabilities/request') socket.send({ jsonrpc: '2.0', id: m.id, ...reply }); };
  assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
  assert.ok((await client.toolNames()).includes('writeToStorage'));
  const other = await page(t, server, 'T');
  reply = { result: { granted: [] } };
  other.onFrame = (m) => { if (m.method === 'capabilities/request') other.send({ jsonrpc: '2.0', id: m.id, ...reply }); };
  const second = await agent(server, 'T');
  assert.equal((await second.call(meta, wanted)).result.content[0].text, '{"granted":[],"denied":["storage:local:write"],"pending":[]}');
  await until('hidden', async () => !(await second.toolNames()).includes('writeToStorage'));
});
