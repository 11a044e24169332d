// Official clients of both eras of MCP behind one interface, and the checks that must pass between each
// of them and our fixture server, whatever connects the two.
import assert from 'node:assert/strict';
import { sleep, until } from './lib.mjs';
import { allCapabilities, MODERN, v1, v2 } from './peers.mjs';

const content = (result) => result.content[0].text;

// --- one way to speak to all official clients ---

const asks = ['elicitation/create', 'sampling/createMessage', 'roots/list'];
const schemaOf = {
  'elicitation/create': v1.ElicitRequestSchema,
  'sampling/createMessage': v1.CreateMessageRequestSchema,
  'roots/list': v1.ListRootsRequestSchema,
  'notifications/message': v1.LoggingMessageNotificationSchema,
  'notifications/tools/list_changed': v1.ToolListChangedNotificationSchema,
  'notifications/prompts/list_changed': v1.PromptListChangedNotificationSchema,
  'notifications/resources/updated': v1.ResourceUpdatedNotificationSchema,
};
const notifications = Object.keys(schemaOf).filter((m) => m.startsWith('notifications/'));

const usualAnswers = {
  'elicitation/create': ({ params }) => ({
    action: 'accept',
    ...(params.mode !== 'url' && {
      content: Object.fromEntries(Object.keys(params.requestedSchema.properties).map((k) => [k, `my ${k}`])),
    }),
  }),
  'sampling/createMessage': ({ params }) => ({
    role: 'assistant', model: 'm', content: { type: 'text', text: `heard: ${params.messages[0].content.text}` },
  }),
  'roots/list': () => ({ roots: [{ uri: 'file:///home/me', name: 'me' }] }),
};

export const kinds = {
  'SDK v1': { era: 'legacy', sdk: v1, options: {} },
  'SDK v2, legacy': { era: 'legacy', sdk: v2, options: { versionNegotiation: { mode: 'legacy' } } },
  'SDK v2, modern': { era: 'modern', sdk: v2, options: { versionNegotiation: { mode: { pin: MODERN } } } },
};

/** An official client; `asked` has the requests that it got, `told` the notifications. */
export async function connect(t, kind, transport, { answers = {}, capabilities = allCapabilities } = {}) {
  const { era, sdk, options } = kinds[kind];
  const client = new sdk.Client({ name: 'agent', version: '1' }, { capabilities, ...options });
  const agent = { client, era, asked: [], told: [], progress: [] };
  const keyOf = (method) => (sdk === v1 ? schemaOf[method] : method);
  for (const method of asks) {
    const able = { 'elicitation/create': 'elicitation', 'sampling/createMessage': 'sampling', 'roots/list': 'roots' };
    if (!capabilities[able[method]]) continue;
    client.setRequestHandler(keyOf(method), (request) => {
      agent.asked.push({ method, params: request.params });
      return (answers[method] ?? usualAnswers[method])(request);
    });
  }
  for (const method of notifications) {
    client.setNotificationHandler(keyOf(method), (n) => { agent.told.push({ method, params: n.params }); });
  }
  agent.count = (method) => agent.told.filter((n) => n.method === method).length;
  agent.hear = (method, n = 1) => until(`${n} × ${method}`, () => agent.count(method) >= n);
  agent.call = (name, args = {}, more) => client.callTool({ name, arguments: args },
    ...(sdk === v1 ? [undefined, more] : [more]));
  agent.text = async (name, args, more) => content(await agent.call(name, args, more));
  const pipe = transport(sdk);
  await client.connect(pipe);
  // Clients drop progress that arrives in one piece with the response, which depends on timing: it is
  // recorded in the transport instead, before the client handles it.
  const { onmessage, send } = pipe;
  pipe.send = (message, ...more) => {
    agent.token = message.params?._meta?.progressToken ?? agent.token;
    return send.call(pipe, message, ...more);
  };
  pipe.onmessage = (message, ...more) => {
    if (message.method === 'notifications/progress') agent.progress.push(message.params);
    onmessage.call(pipe, message, ...more);
  };
  t.after(() => client.close());
  await until('the fixture', async () => (await client.listTools()).tools.some((x) => x.name === 'echo'));
  return agent;
}

// --- what must work ---

// `server`: its `name` as the client sees it and its `era`; `known` if it was up before the client
// connected, `plain` if messages pass unchanged.

export const checks = {
  async 'lists, calls, reads, prompts and completions'(agent, server) {
    const { client } = agent;
    assert.equal(await agent.text('echo', { a: [1, 'zwei', null] }), '{"a":[1,"zwei",null]}');
    const { tools } = await client.listTools();
    assert.equal(new Set(tools.map((x) => x.name)).size, tools.length);
    const schema = tools.find((x) => x.name === 'json_schema_2020_12_tool').inputSchema;
    assert.equal(schema.$defs.address.$anchor, 'addressDef');
    assert.equal((await client.readResource({ uri: 'test://static-text' })).contents[0].mimeType, 'text/plain');
    assert.match((await client.readResource({ uri: 'test://template/42/data' })).contents[0].text, /"42"/);
    const prompt = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'x', arg2: 'y' } });
    assert.match(prompt.messages[0].content.text, /arg1='x', arg2='y'/);
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    assert.deepEqual((await client.complete({ ref, argument: { name: 'arg1', value: 'pa' } })).completion.values, ['paris', 'park', 'party']);
    assert.equal(client.getServerVersion().name, server.name ?? 'rialto');
    if (server.known) assert.match(client.getInstructions(), /The fixture server/);
    assert.equal((await agent.call('test_error_handling')).isError, true);
    await assert.rejects(agent.call('no_such_tool').then((r) => assert.ok(!r.isError)), /no_such_tool|unknown/i);
    await assert.rejects(client.readResource({ uri: 'test://nothing-here' }), (e) => {
      assert.ok([-32602, -32002].includes(e.code), `${e.code}`);
      return true;
    });
  },

  async 'knows nothing of the agent but what it needs'(agent, server) {
    const seen = JSON.parse(content(await agent.client.callTool({
      name: 'client', arguments: {}, _meta: { traceparent: '00-aa-bb-01', 'example.com/x': { y: 1 } },
    })));
    assert.equal(seen.era, server.era);
    assert.equal(seen.meta.traceparent, '00-aa-bb-01');
    assert.deepEqual(seen.meta['example.com/x'], { y: 1 });
    // Roots belong to one agent; shared servers only get extensions that need no work by the bridge.
    const { roots, extensions, ...asked } = seen.capabilities;
    assert.deepEqual(Object.keys(asked).sort(), ['elicitation', 'sampling']);
    assert.deepEqual(Object.keys(extensions ?? {}).filter((k) => k !== 'io.modelcontextprotocol/ui'), []);
  },

  async 'progress'(agent) {
    const from = agent.progress.length;
    await agent.call('test_tool_with_progress', {}, { onprogress() {} });
    const came = agent.progress.slice(from).map((p) => [p.progress, p.total, p.message, p.progressToken]);
    assert.notEqual(agent.token, undefined);
    assert.deepEqual(came, [0, 50, 100].map((done) => [done, 100, `${done} of 100`, agent.token]));
  },

  async 'a form and a page'(agent) {
    assert.match(await agent.text('test_elicitation', { message: 'Who are you?' }), /"my username"/);
    assert.equal(agent.asked.at(-1).params.message, 'Who are you?');
    assert.match(await agent.text('ask_url'), /"action":"accept"/);
    assert.equal(agent.asked.at(-1).params.url, 'https://example.com/login');
  },

  async 'sampling'(agent) {
    assert.equal(await agent.text('test_sampling', { prompt: 'say hi' }), 'LLM response: heard: say hi');
  },

  async 'two questions, one after the other'(agent) {
    assert.equal(await agent.text('test_input_required_result_multi_round'), 'my name likes my color');
  },

  async 'a prompt that asks'(agent) {
    const { messages } = await agent.client.getPrompt({ name: 'test_input_required_result_prompt' });
    assert.equal(messages[0].content.text, 'About my context');
  },

  async 'cancel'(agent) {
    const tag = `cancel ${agent.name}`;
    const stop = new AbortController();
    const running = agent.call('slow', { tag, ms: 20_000 }, { signal: stop.signal, onprogress() {} });
    running.catch(() => {});
    await until('the call at the server', async () => await agent.text('slow_state', { tag }) === 'running');
    stop.abort('not needed');
    await assert.rejects(running);
    await until('the cancel at the server', async () => await agent.text('slow_state', { tag }) === 'cancelled');
  },

  async 'list changes'(agent) {
    const { client } = agent;
    const subscription = agent.era === 'modern'
      ? await client.listen({ toolsListChanged: true, promptsListChanged: true }) : null;
    if (subscription) assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, promptsListChanged: true });
    const count = (what) => agent.count(`notifications/${what}/list_changed`);
    const before = { tools: count('tools'), prompts: count('prompts') };
    const names = async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map((x) => x.name);
    const had = (await names()).includes('extra_tool');
    await agent.call('test_trigger_tool_change');
    await agent.hear('notifications/tools/list_changed', before.tools + 1);
    assert.equal((await names()).includes('extra_tool'), !had);
    assert.equal(count('prompts'), before.prompts);
    for (const n of [1, 2]) {
      await agent.call('test_trigger_prompt_change');
      await agent.hear('notifications/prompts/list_changed', before.prompts + n);
    }
    assert.equal(count('tools'), before.tools + 1);
    await subscription?.close();
  },

  async 'resource updates'(agent, server) {
    const { client, era } = agent;
    const uri = 'test://watched-resource';
    const subscription = era === 'modern' ? await client.listen({ resourceSubscriptions: [uri] }) : null;
    if (!subscription) await client.subscribeResource({ uri });
    const updated = 'notifications/resources/updated';
    // The subscriptions/listen at a server of the stateless era is opened in the background.
    await until('the first update', async () => {
      await agent.call('touch', { uri });
      await sleep(100);
      return agent.count(updated) > 0;
    });
    assert.equal(agent.told.find((n) => n.method === updated).params.uri, uri);
    if (subscription) await subscription.close();
    else await client.unsubscribeResource({ uri });
    if (server.plain) return; // messages pass unchanged, and the fixture sends every update to everybody
    await sleep(100);
    const heard = agent.count(updated);
    await agent.call('touch', { uri });
    await agent.call('touch', { uri: 'test://static-text' });
    await sleep(150);
    assert.equal(agent.count(updated), heard);
  },
};
