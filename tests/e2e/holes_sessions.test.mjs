// Sessions of clients that had left without ending them kept all places (limits.sessions) until
// limits.session_ttl had passed, and everybody else got a 503: anybody could keep the others out.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { exchange, fake, HttpClient, serve, tempDir, until } from './lib.mjs';
import { agent, greet, page, serveBrowser, Socket } from './browser_lib.mjs';
import { ModernClient } from './peers.mjs';
import { listen, RawServer } from './upstream_lib.mjs';

const ping = (client) => client.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
const hello = {
  jsonrpc: '2.0', id: 'init', method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

async function expectReuse(t, server, token) {
  const connect = () => new HttpClient(server.url, { token }).connect();
  const listening = await connect();
  const stream = await listening.listen();
  const calling = await connect();
  await calling.waitFor('a__sleep');
  const older = await connect();

  // The session that was idle for longest is dropped; those with a call or a stream open stay.
  const call = calling.call('a__sleep', { ms: 3000 });
  await until('the call', async () => {
    const { text } = await exchange(`${server.origin}/status`, { method: 'GET', headers: listening.headers });
    return JSON.parse(text).servers[0].in_flight === 1;
  });
  const newer = await connect();
  assert.equal((await ping(older)).status, 404);
  assert.equal((await ping(newer)).status, 200);
  const newest = await connect();
  assert.equal((await ping(newer)).status, 404);
  assert.equal((await ping(newest)).status, 200);
  assert.ok((await call).result, 'the call in flight');
  assert.equal((await ping(listening)).status, 200);
  assert.equal(stream.ended, false);

  // All sessions are in use: a new one is refused.
  const more = await Promise.all([calling, newest].map((client) => client.listen()));
  const refused = await new HttpClient(server.url, { token }).post(hello);
  assert.equal(refused.status, 503);
  assert.match(refused.text, /limits\.sessions/);
  // Without its stream, `calling` is idle and is dropped for the next session.
  more[0].close();
  const last = await until('a place', async () => {
    const answer = await new HttpClient(server.url, { token }).post(hello);
    return answer.status === 200 && answer;
  });
  assert.ok(last.headers['mcp-session-id']);
  assert.equal((await ping(calling)).status, 404);
  assert.equal((await ping(newest)).status, 200);
}

test('an idle session makes room for a new one, one in use does not', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') }, limits: { sessions: 3 } });
  await expectReuse(t, server);
});

test('so it is behind the door of each owner, and owners do not touch each other', async (t) => {
  const tokens = ['one', 'two'].map((name) => ({ name, hash: `sha256:${createHash('sha256').update(`token-${name}`).digest('hex')}` }));
  const server = await serve(t, { servers: { a: fake('--name', 'a') }, limits: { sessions: 3 }, auth: { tokens } }, { env: { XDG_STATE_HOME: tempDir() } });
  const others = [];
  for (let i = 0; i < 3; i++) others.push(await new HttpClient(server.url, { token: 'token-two' }).connect());
  await expectReuse(t, server, 'token-one');
  for (const other of others) assert.equal((await ping(other)).status, 200);
});

test('a session of pages that nobody is connected to makes room, too', async (t) => {
  const server = await serveBrowser(t, { limits: { sessions: 3 } });
  const session = (name) => new Socket(t, server, `/ws?sessionId=${name}&clientType=browser`).opened;
  const names = async () => JSON.parse((await (await fetch(`${server.origin}/sessions`)).text())).sessions.map((s) => s.id).sort();
  const left = await page(t, server, 'left', [greet]);
  await page(t, server, 'stays', [greet]);
  const watched = await page(t, server, 'watched', [greet]);
  await agent(server, 'watched');
  await assert.rejects(session('fourth'), /400/);
  for (const socket of [watched, left]) {
    socket.ws.close();
    await socket.closed;
  }
  await until('the fourth', () => session('fourth').then(() => true, () => false));
  assert.deepEqual(await names(), ['fourth', 'stays', 'watched'], 'an agent waits for the page of one');
  await assert.rejects(session('fifth'), /400/);
});

// Any session could end another one's subscription: what it had not subscribed to itself went to the server
// that they share, and the other's updates stopped without a word.
test('a session that has not subscribed ends nobody else\'s subscription', async (t) => {
  const raw = new RawServer({
    initialize: ({ reply }) => reply({
      protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: { subscribe: true } }, serverInfo: { name: 'raw', version: '1' },
    }),
    'resources/list': ({ reply }) => reply({ resources: [{ uri: 'x://1', name: 'one' }] }),
    'resources/subscribe': ({ reply }) => reply({}),
    'resources/unsubscribe': ({ reply }) => reply({}),
  });
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, era: 'legacy' } } });
  const [ann, bob] = [await new HttpClient(server.url).connect(), await new HttpClient(server.url).connect()];
  await ann.waitFor('far__echo');
  assert.ok((await ann.request('resources/subscribe', { uri: 'x://1' })).result);
  assert.deepEqual((await bob.request('resources/unsubscribe', { uri: 'x://1' })).result, {});
  assert.equal(raw.count('resources/unsubscribe'), 0);
  assert.deepEqual((await ann.request('resources/unsubscribe', { uri: 'x://1' })).result, {});
  assert.equal(raw.count('resources/unsubscribe'), 1, 'the last one');
});

// An agent that did not wait for the answer to its subscription before it ended it left the bridge with a
// subscription that the server did not have: nobody else's reached the server any more.
test('a subscription that ends before it is confirmed mutes nobody', async (t) => {
  let confirm;
  const raw = new RawServer({
    initialize: ({ reply }) => reply({
      protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: { subscribe: true } }, serverInfo: { name: 'raw', version: '1' },
    }),
    'resources/list': ({ reply }) => reply({ resources: [{ uri: 'x://1', name: 'one' }] }),
    'resources/subscribe': ({ reply }) => { confirm = () => reply({}); },
    'resources/unsubscribe': ({ reply }) => reply({}),
  });
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, era: 'legacy' } } });
  const ann = await new HttpClient(server.url).connect();
  await ann.waitFor('far__echo');
  const subscribed = ann.request('resources/subscribe', { uri: 'x://1' });
  await until('the subscription', () => confirm);
  assert.deepEqual((await ann.request('resources/unsubscribe', { uri: 'x://1' })).result, {});
  assert.equal(raw.count('resources/unsubscribe'), 1);
  confirm();
  assert.deepEqual((await subscribed).result, {});

  const listening = new ModernClient(server.url).listen({ resourceSubscriptions: ['x://1'] });
  await until('a subscription of somebody else', () => raw.count('resources/subscribe') === 2);
  confirm();
  const stream = await listening;
  const [{ params }] = await stream.waitFor('notifications/subscriptions/acknowledged');
  assert.deepEqual(params.notifications.resourceSubscriptions, ['x://1']);
  stream.close();
});
