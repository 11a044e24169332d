// What belongs to one hop stays there, whatever the eras of the two sides (tests/fixture/eras_server.mjs).
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, logged, rawMessages, root, serve, until } from './lib.mjs';
import { allCapabilities, META, ModernClient, node22, v1 } from './peers.mjs';

const entry = (era) => ({ command: node22, args: [path.join(root, 'tests/fixture/eras_server.mjs'), era] });

async function start(t, era) {
  const server = await serve(t, { servers: { up: entry(era) } });
  const url = `${server.url}/up`;
  await new ModernClient(url).waitFor('plain');
  return url;
}

const kept = { 'example.com/kept': [1, { a: null }] };
const calls = [
  ['tools/call', { name: 'plain', arguments: {} }],
  ['tools/call', { name: 'progress', arguments: {}, _meta: { progressToken: 'down-token' } }],
  ['tools/call', { name: 'touch', arguments: {} }],
  ['resources/read', { uri: 'test://a' }],
  ['prompts/get', { name: 'p' }],
];
const lists = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];

// Every notification and member that only one era has, or that names something of one hop.
const ofTheServer = ['era-server', 'up-token', 'up-state', 'base64'];
const ofModern = [META, 'resultType', 'ttlMs', 'cacheScope', 'inputRequests', 'requestState', 'inputResponses',
  'notifications/subscriptions/acknowledged', 'subscriptions/listen', 'server/discover'];
const ofLegacy = ['elicitationId', 'notifications/elicitation/complete', '-32042', '-32002', 'notifications/initialized',
  'resources/subscribe', 'logging/setLevel'];
const free = (raw, words) => {
  for (const word of words) assert.ok(!raw.includes(word), `${word} in ${raw.slice(0, 2000)}`);
};

/** All messages that an agent of the initialize era gets, raw, and the results of its calls. */
async function legacyAgent(t, url) {
  const agent = await new HttpClient(url).connect({ capabilities: allCapabilities });
  const stream = await agent.listen();
  t.after(() => stream.close());
  assert.ok((await agent.request('resources/subscribe', { uri: 'test://a' })).result);
  const raw = [];
  const results = [];
  for (const method of lists) raw.push((await agent.rawRequest('"down-id"', method, '{}')).raw);
  await until('the update', async () => {
    await agent.call('touch');
    return stream.count('notifications/resources/updated') > 0;
  });
  for (const [method, params] of calls) {
    const answer = await agent.post({ jsonrpc: '2.0', id: 'down-id', method, params });
    raw.push(...rawMessages(answer));
    results.push(JSON.parse(raw.at(-1)).result);
  }
  const told = (method) => [...raw.map((m) => JSON.parse(m)), ...stream.messages()].find((m) => m.method === method);
  return { agent, told, results, raw: [...raw, stream.text()].join('\n') };
}

/** The same for an agent of the stateless era. */
async function modernAgent(t, url) {
  const agent = new ModernClient(url, { logLevel: 'debug' });
  const stream = await agent.listen({ toolsListChanged: true, resourceSubscriptions: ['test://a'] });
  t.after(() => stream.close());
  const messages = [];
  for (const method of lists) messages.push(await agent.request(method));
  await until('the update', async () => {
    await agent.call('touch');
    return stream.of('notifications/resources/updated').length > 0;
  });
  const results = [];
  for (const [method, params] of calls) {
    const { message, events } = await agent.send(method, params);
    messages.push(...events, message);
    results.push(message.result);
  }
  return { agent, stream, results, messages, raw: [...messages.map((m) => JSON.stringify(m)), stream.text()].join('\n') };
}

/** The messages that the server got contain nothing of the agent's hop. */
async function serverHeard(agent, words) {
  const lines = JSON.parse(await agent.text('heard')).filter((l) => !l.includes('server/discover')); // our probe
  // The extension for MCP Apps has this prefix in both eras.
  free(lines.join('\n').replaceAll('io.modelcontextprotocol/ui', 'ui'), ['down-id', 'down-token', '"raw"', ...words]);
}

// A model read 3,732 bytes for a text of 43: the result of a server of the stateless era had its type,
// how long it may be kept and the server's identity with icons, and all of it went to agents of the
// initialize era, which know none of that. So did the id of our subscription, on every update.
test('an agent of the initialize era is told nothing of the stateless era', async (t) => {
  const url = await start(t, 'modern');
  const { agent, told, results, raw } = await legacyAgent(t, url);
  free(raw, [...ofModern, ...ofTheServer]);
  for (const result of results) {
    assert.deepEqual(result._meta, kept, JSON.stringify(result));
    assert.deepEqual(result.more, [1, 'x']);
  }
  for (const method of ['notifications/resources/updated', 'notifications/example/other']) {
    assert.deepEqual(told(method)?.params._meta, kept, JSON.stringify(told(method)));
  }
  await serverHeard(agent, ofLegacy);
});

test('an agent of the stateless era is told nothing of the initialize era', async (t) => {
  const url = await start(t, 'legacy');
  const { agent, results, raw } = await modernAgent(t, url);
  const { result } = await agent.call('ask');
  assert.equal(result.resultType, 'input_required');
  const [[key, asked]] = Object.entries(result.inputRequests);
  assert.deepEqual(asked.params, { mode: 'url', url: 'https://example.com/0', message: 'Page 0', _meta: kept });
  const done = await agent.call('ask', {}, { requestState: result.requestState, inputResponses: { [key]: { action: 'accept' } } });
  assert.equal(done.result?.content[0].text, '{"action":"accept"}', JSON.stringify(done));
  free(raw + JSON.stringify([result, done]), [...ofLegacy, ...ofTheServer]);
  for (const one of results) {
    assert.equal(one.resultType, 'complete');
    assert.deepEqual(one._meta['example.com/kept'], kept['example.com/kept']);
    assert.equal(one._meta[`${META}serverInfo`].name, 'rialto');
  }
  await serverHeard(agent, ofModern);
});

// What both sides know passes, except identities.
test('an agent of the stateless era has its own identities from a server of its era', async (t) => {
  const url = await start(t, 'modern');
  const { agent, stream, results, raw } = await modernAgent(t, url);
  free(raw, [...ofLegacy, ...ofTheServer]);
  for (const one of results) assert.equal(one._meta[`${META}serverInfo`].name, 'rialto');
  assert.equal(results[3].ttlMs, 5);
  for (const { params } of stream.messages()) assert.equal(params._meta[`${META}subscriptionId`], stream.id);
  await serverHeard(agent, ofLegacy);
});

test('an agent of the initialize era has its own ids from a server of its era', async (t) => {
  const url = await start(t, 'legacy');
  const { agent, told, results, raw } = await legacyAgent(t, url);
  free(raw, [...ofModern, ...ofTheServer]);
  for (const result of results) assert.deepEqual(result, { ...result, more: [1, 'x'], _meta: kept });
  assert.deepEqual(told('notifications/resources/updated').params, { uri: 'test://a', _meta: kept });
  await serverHeard(agent, ofModern);
});

// --- structured content ---

const wrapped = (schema) => ({ type: 'object', properties: { result: schema }, required: ['result'] });
const gives = { numbers: [1, 2], either: { a: 1 }, bare: 7 };

// In the stateless era a tool may announce and give any value. In the era before these are objects, and
// the official client refused the list of all servers for one tool that announced an array.
for (const era of ['modern', 'legacy']) {
  test(`an agent of the initialize era gets objects where a ${era} server gives anything`, async (t) => {
    const url = await start(t, era);
    const pipe = new v1.StreamableHTTPClientTransport(new URL(url));
    const client = new v1.Client({ name: 'agent', version: '1' });
    await client.connect(pipe);
    t.after(() => client.close());
    const { tools } = await client.listTools();
    const schemas = Object.fromEntries(tools.map((x) => [x.name, x.outputSchema]));
    const moved = { $defs: { n: { type: 'integer' } }, type: 'array', items: { $ref: '#/properties/result/$defs/n' } };
    assert.deepEqual(schemas.numbers, wrapped(moved));
    assert.deepEqual(schemas.either, wrapped({ anyOf: [{ type: 'object', properties: { a: { type: 'integer' } } }, { type: 'null' }] }));
    assert.deepEqual(schemas.record, { type: 'object', properties: { a: { type: 'integer' } } });
    assert.equal(schemas.plain, undefined);
    // The client checks results against the announced schemas.
    for (const name of era === 'modern' ? ['numbers', 'either', 'bare'] : ['numbers', 'either']) {
      assert.deepEqual((await client.callTool({ name })).structuredContent, { result: gives[name] }, name);
    }
    assert.deepEqual((await client.callTool({ name: 'record' })).structuredContent, { a: 1 });
  });

  test(`an agent of the stateless era gets what a ${era} server gives`, async (t) => {
    const agent = new ModernClient(await start(t, era));
    const { tools } = (await agent.request('tools/list')).result;
    assert.equal(tools.find((x) => x.name === 'numbers').outputSchema.type, 'array');
    for (const [name, value] of Object.entries(gives)) {
      assert.deepEqual((await agent.call(name)).result.structuredContent, value, name);
    }
  });
}

test('a tool that gives anything may have another name', async (t) => {
  const server = await serve(t, { names: 'bare', servers: { up: { ...entry('modern'), tools: { numbers: { name: 'counted' } } } } });
  const agent = await new HttpClient(server.url).connect();
  await agent.waitFor('counted');
  assert.deepEqual((await agent.call('counted')).result.structuredContent, { result: [1, 2] });
});

// --- pages to be visited first ---

const visit = async (agent, args, action = 'accept') => {
  const first = (await agent.call('visit', args)).result;
  assert.equal(first?.resultType, 'input_required');
  assert.deepEqual(Object.values(first.inputRequests), [1, 2].map((n) => ({
    method: 'elicitation/create', params: { mode: 'url', url: `https://example.com/${n}`, message: `Page ${n}` },
  })));
  const inputResponses = Object.fromEntries(Object.keys(first.inputRequests).map((k) => [k, { action }]));
  return agent.call('visit', args, { requestState: first.requestState, inputResponses });
};

// A server of the initialize era that wants pages to be visited first says so by an error, -32042, which
// the stateless era does not have: its agents got an error that they do not know, and no page.
test('an agent of the stateless era is asked to visit pages, and the call is made again', async (t) => {
  const url = await start(t, 'legacy');
  const agent = new ModernClient(url);
  const done = await visit(agent, { tag: 'a' });
  assert.equal(done.result?.content[0].text, 'visited, call 2', JSON.stringify(done));

  const refused = await visit(agent, { tag: 'b' }, 'decline');
  assert.equal(refused.result?.isError, true, JSON.stringify(refused));
  assert.match(refused.result.content[0].text, /did not agree to visit the page that server 'up' asks for/);

  const again = await visit(agent, { tag: 'c', always: true });
  assert.equal(again.result?.resultType, 'input_required', 'the server may ask again');

  const { status, message } = await new ModernClient(url, { capabilities: {} }).send('tools/call', { name: 'visit', arguments: { tag: 'd' } });
  assert.equal(status, 400);
  assert.equal(message.error.code, -32021);
  assert.deepEqual(message.error.data.requiredCapabilities, { elicitation: { url: {} } });

  // Agents of the initialize era know that error.
  const legacy = await new HttpClient(url).connect({ capabilities: allCapabilities });
  const { error } = await legacy.call('visit', { tag: 'e' });
  assert.equal(error.code, -32042);
  assert.equal(error.data.elicitations[0].elicitationId, 'page-1');
});

// --- questions ---

// A call that waited for its agent's answer when the server ended was forgotten: the agent came back and
// was told that its requestState was wrong, which it was not.
test('an agent that comes back to a call whose server has ended is told so', async (t) => {
  const server = await serve(t, { servers: { up: entry('legacy') } });
  const agent = new ModernClient(`${server.url}/up`);
  await agent.waitFor('die');
  const { result } = await agent.call('die');
  assert.equal(result?.resultType, 'input_required');
  await logged(server, /up.*ended/);
  const answer = { requestState: result.requestState, inputResponses: { [Object.keys(result.inputRequests)[0]]: { action: 'decline' } } };
  const { error } = await agent.call('die', {}, answer);
  assert.equal(error.code, -32000, JSON.stringify(error));
  assert.equal(error.data.reason, 'crashed');
  assert.match(error.message, /'up'/);
  assert.equal((await agent.call('die', {}, answer)).error.code, -32602, 'that is told once');
  // A parked call that ended and whose agent does not come back must not delay our shutdown.
  assert.equal((await agent.call('die')).result?.resultType, 'input_required');
  await until('the second end', () => server.stderr().match(/up.*ended/g).length > 1);
});

// A server may leave out the params of roots/list. As input of the stateless era the question went on
// without, and agents that look into the params of every question found none.
test('a question for roots has params', async (t) => {
  const agent = new ModernClient(await start(t, 'legacy'));
  const { result } = await agent.call('roots');
  assert.deepEqual(Object.values(result.inputRequests), [{ method: 'roots/list', params: {} }]);
  const answer = { requestState: result.requestState, inputResponses: { [Object.keys(result.inputRequests)[0]]: { roots: [] } } };
  assert.equal((await agent.call('roots', {}, answer)).result.content[0].text, '{"roots":[]}');
});
