// What a call depends on is confirmed before the call is sent. On a busy machine the first log line of a tool
// was missing: over HTTP, logging/setLevel and the call after it are two requests that can overtake each other.
// Also, an agent's subscription was acknowledged before the server had it, so the agent's next call changed a
// resource that nobody was subscribed to yet. A server that never answers must not hold up anybody for long.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient, serve, sleep, until } from './lib.mjs';
import { META, MODERN, ModernClient } from './peers.mjs';
import { listen, RawServer, readBody } from './upstream_lib.mjs';

const LATE_MS = 700;
const lists = {
  'tools/list': { tools: [{ name: 'touch', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'touched' }] },
  'resources/list': { resources: [{ uri: 'x://a', name: 'a' }, { uri: 'x://b', name: 'b' }] },
  'resources/templates/list': { resourceTemplates: [] },
};
const capabilities = { tools: {}, logging: {}, resources: { subscribe: true } };

/** A server that answers method `slow` late, or never; `steps` has what it got and did, in order. */
async function slowServer(t, modern, slow, wait = () => sleep(LATE_MS)) {
  const steps = [];
  const results = modern
    ? Object.fromEntries(Object.entries({ ...lists, 'server/discover': { supportedVersions: [MODERN], capabilities } })
      .map(([method, result]) => [method, { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result }]))
    : { ...lists, 'logging/setLevel': {}, 'resources/subscribe': {}, 'resources/unsubscribe': {},
      initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'slow', version: '1' } } };
  const { url } = await listen(t, async (request, response) => {
    const { id, method, params } = JSON.parse(await readBody(request).then((text) => text || '{}'));
    const listens = modern && method === 'subscriptions/listen';
    const matters = method === slow && (!listens || params.notifications.resourceSubscriptions);
    if (request.method !== 'POST') response.writeHead(405).end();
    else if (id === undefined) response.writeHead(202).end();
    else if (!listens && !results[method]) {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
    } else {
      if (method === 'tools/call') steps.push('call');
      if (matters) steps.push('asked');
      if (listens) response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      if (matters) {
        await wait();
        steps.push('confirmed');
      }
      const acknowledged = { method: 'notifications/subscriptions/acknowledged', params: { notifications: params?.notifications, _meta: { [`${META}subscriptionId`]: id } } };
      if (listens) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...acknowledged })}\n\n`);
      else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
    }
  });
  const server = await serve(t, { servers: { s: { url, era: modern ? 'modern' : 'legacy' } } });
  await new ModernClient(server.url).waitFor('s__touch');
  return { steps, url: server.url };
}
const never = () => new Promise(() => {});

for (const [agent, connect] of [
  ['stateless', async (url) => new ModernClient(url, { logLevel: 'debug' })],
  ['initialize', async (url) => {
    const client = await new HttpClient(url).connect();
    assert.deepEqual((await client.request('logging/setLevel', { level: 'debug' })).result, {});
    return client;
  }],
]) {
  test(`a call of an agent of the ${agent} era waits until the server has its log level`, async (t) => {
    const { steps, url } = await slowServer(t, false, 'logging/setLevel');
    const client = await connect(url);
    assert.ok((await client.request('tools/call', { name: 's__touch', arguments: {} })).result);
    assert.deepEqual(steps, ['asked', 'confirmed', 'call']);
    assert.ok((await client.request('tools/call', { name: 's__touch', arguments: {} })).result);
    assert.deepEqual(steps, ['asked', 'confirmed', 'call', 'call']); // the level is confirmed by now
  });
}

test('a server that never answers logging/setLevel is called all the same', async (t) => {
  const { steps, url } = await slowServer(t, false, 'logging/setLevel', never);
  const client = new ModernClient(url, { logLevel: 'debug' });
  assert.ok((await client.request('tools/call', { name: 's__touch', arguments: {} })).result);
  assert.deepEqual(steps, ['asked', 'call']);
});

for (const [era, modern, method] of [['stateless', true, 'subscriptions/listen'], ['initialize', false, 'resources/subscribe']]) {
  test(`agents are told of a subscription when a server of the ${era} era has it`, async (t) => {
    const { steps, url } = await slowServer(t, modern, method);
    // Two agents that want the same subscription wait for the same confirmation.
    const streams = await Promise.all([1, 2].map(() => new ModernClient(url).listen({ resourceSubscriptions: ['x://a'] })));
    for (const stream of streams) {
      await stream.waitFor('notifications/subscriptions/acknowledged');
      assert.ok(steps.includes('confirmed'), steps.join());
      assert.equal(stream.messages()[0].method, 'notifications/subscriptions/acknowledged');
      assert.deepEqual(stream.messages()[0].params.notifications.resourceSubscriptions, ['x://a']);
    }
    steps.length = 0;
    const old = await new HttpClient(url).connect();
    assert.deepEqual((await old.request('resources/subscribe', { uri: 'x://b' })).result, {});
    assert.deepEqual(steps, ['asked', 'confirmed']);
    for (const stream of streams) stream.close();
  });

  test(`a server of the ${era} era that never confirms a subscription holds up nobody for long`, async (t) => {
    const { steps, url } = await slowServer(t, modern, method, never);
    let answered = false;
    const opening = new ModernClient(url).listen({ resourceSubscriptions: ['x://a'] });
    opening.then(() => { answered = true; });
    await until('the server', () => steps.length);
    assert.ok((await new ModernClient(url).request('tools/call', { name: 's__touch', arguments: {} })).result);
    assert.ok(!answered, 'the call of another agent waits for nothing');
    const stream = await opening;
    await stream.waitFor('notifications/subscriptions/acknowledged');
    if (modern) {
      const old = await new HttpClient(url).connect();
      assert.deepEqual((await old.request('resources/subscribe', { uri: 'x://b' })).result, {});
    }
    stream.close();
  });
}

// A server that refused a subscription was taken to have it: the agent got it acknowledged, and no later agent's
// subscription reached the server.
test('a subscription that the server refuses is not acknowledged', async (t) => {
  const raw = new RawServer({
    initialize: ({ reply }) => reply({ protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'raw', version: '1' } }),
    'resources/list': ({ reply }) => reply(lists['resources/list']),
    'resources/subscribe': ({ message, response, reply }) => (message.params.uri === 'x://b' ? reply({})
      : response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32603, message: 'not that one' } }))),
  });
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { s: { url, era: 'legacy' } } });
  await new ModernClient(server.url).waitFor('s__echo');
  for (let i = 1; i <= 2; i++) {
    const stream = await new ModernClient(server.url).listen({ resourceSubscriptions: ['x://a', 'x://b'] });
    const [{ params }] = await stream.waitFor('notifications/subscriptions/acknowledged');
    assert.deepEqual(params.notifications, { resourceSubscriptions: ['x://b'] });
    assert.equal(raw.seen.filter((s) => s.message?.params?.uri === 'x://a').length, i, 'the server is asked each time');
    stream.close();
  }
  const old = await new HttpClient(server.url).connect();
  assert.equal((await old.request('resources/subscribe', { uri: 'x://a' })).error.message, 'not that one');
});
