// Calls that a person must allow first: asked at the client, at the operator, or refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  atTerminal, exchange, fake, HttpClient, rialto, serve, serveAndConnect, sleep, stdio, until, within, writeConfig, tempDir,
} from './lib.mjs';
import { fixtureEntry, META, ModernClient, MODERN, v1, v2 } from './peers.mjs';
import { listen, RawServer } from './upstream_lib.mjs';

const guarded = (more = {}) => ({
  servers: { files: { ...fake('--name', 'files'), approve: ['ech*'], ...more } },
});
const up = ['files__echo'];

const held = async (server) => JSON.parse((await exchange(`${server.origin}/api/approvals`, { method: 'GET' })).text);
const decide = (server, id, body) => exchange(`${server.origin}/api/approvals/${id}`, { body });
const oneHeld = (server) => until('a call that waits', async () => {
  const list = await held(server);
  return list.length === 1 && list[0];
});
const calls = async (server) => JSON.parse((await exchange(`${server.origin}/api/servers/files`, { method: 'GET' })).text).calls;
const refusal = ({ result, error }, pattern) => {
  assert.ok(result, JSON.stringify(error));
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, pattern);
};

// --- the client asks its user ---

const agents = {
  'SDK v1': { sdk: v1, schema: v1.ElicitRequestSchema, options: {} },
  'SDK v2, modern': { sdk: v2, schema: 'elicitation/create', options: { versionNegotiation: { mode: { pin: MODERN } } } },
};

for (const [kind, { sdk, schema, options }] of Object.entries(agents)) {
  test(`§11.2 item 12: ${kind} asks its user by elicitation`, async (t) => {
    const server = await serve(t, guarded());
    const client = new sdk.Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { form: {} } }, ...options });
    const asked = [];
    let action = 'accept';
    client.setRequestHandler(schema, async (request) => {
      asked.push(request.params);
      return { action, ...(action === 'accept' && { content: {} }) };
    });
    await client.connect(new sdk.StreamableHTTPClientTransport(new URL(server.url)));
    t.after(() => client.close());
    await until('the tools', async () => (await client.listTools()).tools.some((x) => x.name === up[0]));

    const call = (name, args) => client.callTool({ name, arguments: args });
    assert.equal((await call('files__add', { a: 1, b: 2 })).content[0].text, '3');
    assert.equal(asked.length, 0, 'only the named tools need a word');

    const fine = await call('files__echo', { message: 'hello' });
    assert.deepEqual(fine.structuredContent, { message: 'hello' });
    assert.equal(asked.length, 1);
    assert.match(asked[0].message, /'echo' on server 'files'/);
    assert.match(asked[0].message, /"message":"hello"/);

    for (action of ['decline', 'cancel']) {
      refusal({ result: await call('files__echo', { message: 'no' }) }, /'echo'.*'files'.*refused by the person at the client/);
    }
    assert.equal(asked.length, 3);
    assert.deepEqual(await held(server), []);
  });
}

test('a modern agent that hides nothing: input_required, then the word', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded({ approve_by: 'client' }), up);
  const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
  const params = { name: 'files__echo', arguments: { message: 'x' } };
  const first = (await agent.request('tools/call', params)).result;
  assert.equal(first.resultType, 'input_required');
  const [key] = Object.keys(first.inputRequests);
  assert.equal(first.inputRequests[key].method, 'elicitation/create');
  const waiting = await oneHeld(server);
  assert.equal(waiting.asked, 'client');
  // The person at the client was asked, so nobody else may decide.
  assert.equal((await decide(server, waiting.id, '{"approved":true}')).status, 409);

  const retry = (response) => agent.request('tools/call', { ...params, requestState: first.requestState, inputResponses: { [key]: response } });
  const forged = await agent.request('tools/call', { ...params, arguments: { message: 'other' }, requestState: first.requestState, inputResponses: { [key]: { action: 'accept' } } });
  assert.equal(forged.error.code, -32602, 'what was allowed is this call, not another');
  const done = (await retry({ action: 'accept', content: {} })).result;
  assert.equal(done.resultType, 'complete');
  assert.deepEqual(done.structuredContent, { message: 'x' });
  await client.close();
});

// The server elicits input itself: one approval covers the whole call, not each of its rounds.
for (const era of ['legacy', 'modern']) {
  test(`an approved call may still be asked things by its ${era} server`, async (t) => {
    const server = await serve(t, { servers: { files: fixtureEntry(era, { approve: ['test_elicitation'] }) } });
    const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
    await agent.waitFor('files__test_elicitation');
    let params = { name: 'files__test_elicitation', arguments: { message: 'Who?' } };
    const messages = [];
    let result;
    for (let round = 0; round < 5; round++) {
      ({ result } = await agent.request('tools/call', params));
      if (result.resultType !== 'input_required') break;
      const [[key, request]] = Object.entries(result.inputRequests);
      messages.push(request.params.message);
      const content = { username: 'ann', email: 'a@example.com' };
      params = { ...params, requestState: result.requestState, inputResponses: { [key]: { action: 'accept', content } } };
    }
    assert.equal(messages.length, 2, messages.join(' | '));
    assert.match(messages[0], /^Allow the call of 'test_elicitation'/);
    assert.equal(messages[1], 'Who?');
    assert.match(result.content[0].text, /"ann"/);
  });
}

// An approved call of an agent of the stateless era was answered as if the agent were of the initialize era:
// structuredContent was wrapped, an error with pages to visit came as it is, and a task was waited for.
test('an approved call is answered like one that needs no approval', async (t) => {
  const listed = { list: { outputSchema: { type: 'array', items: { type: 'integer' } } }, visit: {}, task: { execution: { taskSupport: 'required' } } };
  const results = {
    list: { result: { resultType: 'complete', content: [], structuredContent: [1, 2] } },
    visit: { error: { code: -32042, message: 'visit', data: { elicitations: [{ mode: 'url', elicitationId: 'e', url: 'https://x.example/', message: 'go' }] } } },
    task: { result: { task: { taskId: 't1', status: 'working', createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60_000 } } },
  };
  const far = async (name, own) => (await listen(t, new RawServer({
    ...own,
    'tools/list': ({ reply }) => reply({ resultType: 'complete', tools: [{ name, inputSchema: { type: 'object' }, ...listed[name] }] }),
    'tools/call': ({ message, response }) => response.writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...results[name] })),
  }).handler)).url;
  const modern = { 'server/discover': ({ reply }) => reply({ resultType: 'complete', supportedVersions: [MODERN], capabilities: { tools: {} } }) };
  const legacy = {
    initialize: ({ reply }) => reply({
      protocolVersion: '2025-11-25', capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } }, serverInfo: { name: 'raw', version: '1' },
    }),
  };
  const servers = {};
  for (const [name, era] of [['list', 'modern'], ['visit', 'legacy'], ['task', 'legacy']]) {
    const entry = { url: await far(name, era === 'modern' ? modern : legacy), era };
    servers[`${name}_free`] = entry;
    servers[`${name}_held`] = { ...entry, approve: [name], approve_by: 'client' };
  }
  const server = await serve(t, { servers });
  const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {}, url: {} }, extensions: { [`${META}tasks`]: {} } } });
  await agent.waitFor(...Object.keys(servers).map((name) => `${name}__${name.split('_')[0]}`));
  const reply = (name, { requestState, inputRequests }, response) => agent.call(name, {},
    { requestState, inputResponses: { [Object.keys(inputRequests)[0]]: response } });
  const read = ({ result, error }) => error ?? result.structuredContent ?? (result.inputRequests ? Object.values(result.inputRequests) : result.resultType);
  for (const name of Object.keys(listed)) {
    const [free, asked] = [`${name}_free__${name}`, `${name}_held__${name}`];
    const direct = await agent.call(free);
    const approved = await reply(asked, (await agent.call(asked)).result, { action: 'accept', content: {} });
    assert.deepEqual(read(approved), read(direct), name);
    if (name !== 'visit') continue;
    await reply(free, direct.result, { action: 'decline' });
    await reply(asked, approved.result, { action: 'decline' });
  }
});

// --- the operator decides ---

test('§11.2 item 12: a client that cannot ask waits for the operator', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded(), up);
  const call = client.call('files__echo', { message: 'hello' });
  const waiting = await oneHeld(server);
  assert.equal(waiting.server, 'files');
  assert.equal(waiting.tool, 'echo');
  assert.deepEqual(waiting.arguments, { message: 'hello' });
  assert.equal(waiting.asked, 'operator');
  assert.ok(waiting.refused_in_ms > 50_000 && waiting.refused_in_ms <= 60_000);
  await until('a line in the log', () => server.stderr().includes(`rialto approvals approve ${waiting.id}`));
  assert.doesNotMatch(server.stderr(), /hello/, 'the log has no arguments');

  assert.equal((await decide(server, waiting.id, '{"approved":"yes"}')).status, 400);
  assert.equal((await decide(server, waiting.id, 'approved')).status, 400);
  assert.equal((await decide(server, '999', '{"approved":true}')).status, 404);
  assert.equal((await decide(server, '-1', '{"approved":true}')).status, 404);
  assert.equal((await decide(server, waiting.id, '{"approved":true}')).status, 200);
  assert.deepEqual((await call).result.structuredContent, { message: 'hello' });
  assert.equal((await decide(server, waiting.id, '{"approved":true}')).status, 404, 'only once');

  const refused = client.call('files__echo', {});
  await decide(server, (await oneHeld(server)).id, '{"approved":false}');
  refusal(await refused, /refused by the operator/);

  const modern = new ModernClient(server.url, { capabilities: {} });
  const other = modern.call('files__echo', {});
  await decide(server, (await oneHeld(server)).id, '{"approved":false}');
  const told = await other;
  refusal(told, /refused by the operator/);
  assert.equal(told.result.resultType, 'complete');
});

// Pinned arguments (tools.*.arguments) did not show, and the agent's value for one did, although it never reaches the
// server: a person approved another call than the one that ran.
test('what a person approves is what runs: with the pinned arguments, without what they replace', async (t) => {
  const tools = { echo: { arguments: { pinned: 'by us', mine: 2 } } };
  const { server, client } = await serveAndConnect(t, guarded({ tools, approve: ['echo', 'text'] }), up);
  const call = client.call('files__echo', { other: 1, mine: 7 });
  const { id, arguments: shown } = await oneHeld(server);
  assert.deepEqual(shown, { other: 1, pinned: 'by us', mine: 2 });
  const list = await rialto(['approvals'], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
  assert.match(list.stdout, /\{"other":1,"pinned":"by us","mine":2\}/);
  await decide(server, id, '{"approved":true}');
  assert.deepEqual((await call).result.structuredContent, shown);

  const modern = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
  const { result } = await modern.call('files__echo', { mine: 7 });
  const [{ params: { message } }] = Object.values(result.inputRequests);
  assert.match(message, /Its arguments: \{"pinned":"by us","mine":2\}/);
  await decide(server, (await oneHeld(server)).id, '{"approved":false}');
});

// Arguments that are no object are passed on as they are, and were shown as {}.
test('arguments that are no object are shown to the person as well', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded(), up);
  for (const given of [['rm', '-r'], 'rm -r', null]) {
    const call = client.request('tools/call', { name: 'files__echo', arguments: given });
    const { id, arguments: shown } = await oneHeld(server);
    assert.deepEqual(shown, given);
    const list = await rialto(['approvals'], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
    assert.ok(list.stdout.includes(JSON.stringify(given)), list.stdout);
    await decide(server, id, '{"approved":true}');
    assert.deepEqual((await call).result.structuredContent, given);
  }
});

test('rialto approvals', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded(), up);
  const run = (...args) => rialto(['approvals', ...args], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
  assert.match((await run()).stdout, /Nothing waits/);
  const call = client.call('files__echo', { message: 'hello' });
  const { id } = await oneHeld(server);
  const list = await run();
  assert.equal(list.code, 0);
  assert.match(list.stdout, new RegExp(`^${id} +files +echo +operator +\\d+s +\\{"message":"hello"\\}$`, 'm'));
  assert.equal(JSON.parse((await run('--json')).stdout)[0].id, id);
  const status = await rialto(['status'], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
  assert.match(status.stdout, /Waiting for approval: 1/);

  const approved = await run('approve', id);
  assert.equal(approved.code, 0, approved.stderr);
  assert.match(approved.stdout, /approved/);
  assert.ok((await call).result.structuredContent);
  const again = await run('approve', id);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /nothing of this id waits/);

  const second = client.call('files__echo', {});
  await run('reject', (await oneHeld(server)).id);
  refusal(await second, /refused by the operator/);
  for (const args of [['approve'], ['approve', 'x'], ['perhaps', '1']]) assert.equal((await run(...args)).code, 2);
});

test('§11.2 item 12: silence is a no', async (t) => {
  const { client } = await serveAndConnect(t, guarded({ approve_timeout: '300ms' }), up);
  const began = Date.now();
  refusal(await client.call('files__echo', {}), /nobody approved/);
  assert.ok(Date.now() - began < 5000);
  // A person at the client who does not answer in time has not approved either.
  const modern = new ModernClient(client.url, { capabilities: { elicitation: { form: {} } } });
  const { result } = await modern.call('files__echo', {});
  assert.equal(result.resultType, 'input_required');
  await sleep(500);
  const [key] = Object.keys(result.inputRequests);
  const late = await modern.call('files__echo', {}, { requestState: result.requestState, inputResponses: { [key]: { action: 'accept', content: {} } } });
  assert.equal(late.error.code, -32602);
});

test('approve: always', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded({ approve: 'always' }), up);
  const call = client.call('files__add', { a: 1, b: 1 });
  await decide(server, (await oneHeld(server)).id, '{"approved":true}');
  assert.equal((await call).result.content[0].text, '2');
});

// --- ends ---

test('a client that goes away takes its call with it', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded(), up);
  client.call('files__echo', {}).catch(() => {});
  await oneHeld(server);
  await client.close();
  await until('nothing waits', async () => (await held(server)).length === 0);
});

test('stopping the daemon does not wait for a person', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded(), up);
  client.call('files__echo', {}).catch(() => {});
  await oneHeld(server);
  const began = Date.now();
  await server.stop('SIGTERM', 1000);
  assert.ok(Date.now() - began < 5000, 'not the time that open calls have');
});

test('a lazy server is not started for a call that is refused', async (t) => {
  const { server, client } = await serveAndConnect(t, guarded({ idle_stop: '1s' }), up);
  await until('it rests', async () => JSON.parse((await exchange(`${server.origin}/api/servers/files`, { method: 'GET' })).text).phase === 'down');
  const call = client.call('files__echo', {});
  const { id } = await oneHeld(server);
  await decide(server, id, '{"approved":false}');
  refusal(await call, /refused by the operator/);
  const now = JSON.parse((await exchange(`${server.origin}/api/servers/files`, { method: 'GET' })).text);
  assert.equal(now.starts, 1);
  assert.equal(await calls(server), 1);
});

// --- where there is no operator ---

test('stdio: nobody to ask is a no at once', async (t) => {
  const client = await stdio(t, guarded(), up);
  const answer = await within(2000, 'the refusal', client.request('tools/call', { name: 'files__echo', arguments: {} }));
  refusal(answer, /needs a person's approval, and there is nobody to ask/);
});

test('rialto call', async () => {
  const file = writeConfig(tempDir(), guarded());
  const plain = await rialto(['call', '-c', file, 'files', 'echo', 'message=hi']);
  assert.equal(plain.code, 1);
  assert.match(plain.stderr, /needs a person's approval/);
  assert.match(plain.stderr, /hint: --yes/);
  const yes = await rialto(['call', '-c', file, '--yes', 'files', 'echo', 'message=hi']);
  assert.equal(yes.code, 0, yes.stderr);
  assert.equal(yes.stdout, '{"message":"hi"}\n');
});

// call_tool of the tool search makes a second call, which needs the same approval.
test('a tool that is reached by the tool search needs the word as well', async (t) => {
  const { server, client } = await serveAndConnect(t, { ...guarded(), expose: 'search' }, ['call_tool']);
  const wanted = { name: 'files__echo', arguments: { message: 'found' } };
  await until('the tool', async () => JSON.stringify(await client.call('find_tools', { query: 'echo' })).includes('files__echo'));
  const call = client.call('call_tool', wanted);
  const waiting = await oneHeld(server);
  assert.equal(waiting.tool, 'echo');
  await decide(server, waiting.id, '{"approved":true}');
  assert.deepEqual((await call).result.structuredContent, { message: 'found' });

  const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
  const { result } = await agent.call('call_tool', wanted);
  assert.equal(result.resultType, 'input_required');
  const [[key, request]] = Object.entries(result.inputRequests);
  assert.match(request.params.message, /'echo' on server 'files'/);
  const done = await agent.call('call_tool', wanted, { requestState: result.requestState, inputResponses: { [key]: { action: 'decline' } } });
  refusal(done, /refused by the person at the client/);
});

// Any line that began with y was taken for a yes.
test('at a terminal only y and yes approve a call', async (t) => {
  const config = writeConfig(tempDir(), guarded());
  for (const [typed, approves] of [['y\n', true], [' YES \n', true], ['yikes\n', false], ['you\n', false], ['n\n', false], ['\n', false]]) {
    const { code, text } = await atTerminal(t, ['call', '-c', config, 'files', 'echo', 'message=done'], [[/\[y\/N\]/, typed]]);
    assert.equal(code === 0, approves, `${JSON.stringify(typed)}: ${text}`);
  }
});
