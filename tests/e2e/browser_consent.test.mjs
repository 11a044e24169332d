// Consent by pages of any client, as the document has it: a page that knows capabilities/request is
// asked, whatever script it runs. Only pages of rialto.js used to be: others were told "denied".
import assert from 'node:assert/strict';
import test from 'node:test';
import { until, within } from './lib.mjs';
import { Socket, agent, greet, serveBrowser } from './browser_lib.mjs';

const tools = [greet, { ...greet, name: 'writeToStorage', capabilities: ['storage:local:write'] }];
const meta = '__btcp_request_capabilities';
const wanted = { capabilities: ['storage:local:write'] };

const openings = {
  D1: ['/', (socket) => socket.request('session/create', {})],
  D2: ['/', (socket) => socket.request('hello', { clientType: 'browser', sessionId: 'S' })],
  D3: ['/ws?sessionId=S&clientType=browser', () => {}],
};

async function open(t, server, name) {
  const [path, first] = openings[name];
  const socket = new Socket(t, server, path);
  await socket.opened;
  await first(socket);
  await socket.request('tools/register', { tools });
  return socket;
}

for (const name of Object.keys(openings)) {
  test(`${name}: a page that can ask its user is asked`, async (t) => {
    const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
    const socket = await open(t, server, name);
    socket.onFrame = (m) => {
      if (m.method === 'capabilities/request') socket.send({ jsonrpc: '2.0', id: m.id, result: { granted: m.params.capabilities } });
    };
    const client = await agent(server, '*');
    assert.ok(!(await client.toolNames()).includes('writeToStorage'));
    assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
    await client.waitFor('writeToStorage');
  });
}

test('a grant that comes by itself answers the question that is open', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const socket = await open(t, server, 'D3');
  const client = await agent(server, 'S');
  const asked = client.call(meta, wanted);
  await socket.find('the question', (m) => m.method === 'capabilities/request');
  await socket.request('capabilities/grant', wanted);
  assert.equal((await within(15_000, 'the answer', asked)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
  await client.waitFor('writeToStorage');
});

test('a grant that comes after "pending" counts', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict', consent_timeout: '1s' } });
  const socket = await open(t, server, 'D1');
  const client = await agent(server, '*');
  assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":[],"denied":[],"pending":["storage:local:write"]}');
  await socket.request('capabilities/grant', wanted);
  await client.waitFor('writeToStorage');
});

test('auto: a page that answers the question is asked from then on, one that cannot keeps its tools', async (t) => {
  const server = await serveBrowser(t);
  const socket = await open(t, server, 'D3');
  const client = await agent(server, 'S');
  assert.ok((await client.toolNames()).includes('writeToStorage'));
  let reply = { error: { code: -32601, message: 'Method not found' } };
  socket.onFrame = (m) => { if (m.method === 'capabilities/request') socket.send({ jsonrpc: '2.0', id: m.id, ...reply }); };
  assert.equal((await client.call(meta, wanted)).result.content[0].text, '{"granted":["storage:local:write"],"denied":[],"pending":[]}');
  assert.ok((await client.toolNames()).includes('writeToStorage'));
  const other = new Socket(t, server, '/ws?sessionId=T&clientType=browser');
  await other.opened;
  await other.request('tools/register', { tools });
  reply = { result: { granted: [] } };
  other.onFrame = (m) => { if (m.method === 'capabilities/request') other.send({ jsonrpc: '2.0', id: m.id, ...reply }); };
  const second = await agent(server, 'T');
  assert.equal((await second.call(meta, wanted)).result.content[0].text, '{"granted":[],"denied":["storage:local:write"],"pending":[]}');
  await until('hidden', async () => !(await second.toolNames()).includes('writeToStorage'));
});
