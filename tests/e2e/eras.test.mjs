// The two eras of MCP in all four pairs: agents of either era (official clients, and raw ones where
// an official client hides what matters) with a server of either era behind rialto.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient, rialtoBin, serve, sleep, tempDir, until, writeConfig } from './lib.mjs';
import { allCapabilities, fixtureEntry, fixtureOverHttp, MODERN, ModernClient, v1, v2 } from './peers.mjs';

const eras = ['legacy', 'modern'];
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

const kinds = {
  'SDK v1': { era: 'legacy', sdk: v1, options: {} },
  'SDK v2, legacy': { era: 'legacy', sdk: v2, options: { versionNegotiation: { mode: 'legacy' } } },
  'SDK v2, modern': { era: 'modern', sdk: v2, options: { versionNegotiation: { mode: { pin: MODERN } } } },
};

/** An official client: what it was asked and told is in `asked` and `told`. */
async function connect(t, kind, transport, { answers = {}, capabilities = allCapabilities } = {}) {
  const { era, sdk, options } = kinds[kind];
  const client = new sdk.Client({ name: 'agent', version: '1' }, { capabilities, ...options });
  const agent = { client, era, asked: [], told: [] };
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
  await client.connect(transport(sdk));
  t.after(() => client.close());
  await until('the fixture', async () => (await client.listTools()).tools.some((x) => x.name === 'echo'));
  return agent;
}

/** Serves the fixture, ready: what an agent is told at its first word is complete then. */
async function serveFixture(t, entry, more = {}) {
  const server = await serve(t, { servers: { fixture: entry }, ...more });
  await new ModernClient(`${server.url}/fixture`).waitFor('echo');
  return Object.assign(server, { fixture: `${server.url}/fixture` });
}

const overHttp = (url, headers = {}) => (sdk) => new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const overStdio = (file) => (sdk) => new sdk.StdioClientTransport({
  command: rialtoBin, args: ['stdio', '-c', file], env: process.env, stderr: 'ignore',
});

// --- what must work in every pair ---

const checks = {
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
    assert.equal(client.getServerVersion().name, 'rialto');
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
    assert.deepEqual(Object.keys(seen.capabilities).filter((k) => k !== 'roots').sort(), ['elicitation', 'sampling']);
  },

  async 'progress'(agent) {
    const seen = [];
    await agent.call('test_tool_with_progress', {}, { onprogress: (p) => seen.push([p.progress, p.total, p.message]) });
    assert.deepEqual(seen, [[0, 100, '0 of 100'], [50, 100, '50 of 100'], [100, 100, '100 of 100']]);
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

  async 'resource updates'(agent) {
    const { client, era } = agent;
    const uri = 'test://watched-resource';
    const subscription = era === 'modern' ? await client.listen({ resourceSubscriptions: [uri] }) : null;
    if (!subscription) await client.subscribeResource({ uri });
    const updated = 'notifications/resources/updated';
    // The listen of the stateless era at the server is opened in the background.
    await until('the first update', async () => {
      await agent.call('touch', { uri });
      await sleep(100);
      return agent.count(updated) > 0;
    });
    assert.equal(agent.told.find((n) => n.method === updated).params.uri, uri);
    if (subscription) await subscription.close();
    else await client.unsubscribeResource({ uri });
    await sleep(100);
    const heard = agent.count(updated);
    await agent.call('touch', { uri });
    await agent.call('touch', { uri: 'test://static-text' });
    await sleep(150);
    assert.equal(agent.count(updated), heard);
  },
};

for (const era of eras) {
  test(`a ${era} server`, async (t) => {
    const server = await serveFixture(t, fixtureEntry(era));
    for (const kind of Object.keys(kinds)) {
      await t.test(`and ${kind} over HTTP`, async (tt) => {
        const agent = await connect(tt, kind, overHttp(server.fixture));
        agent.name = kind;
        for (const [name, check] of Object.entries(checks)) {
          await tt.test(name, { timeout: 30_000 }, () => check(agent, { era, known: true }));
        }
      });
    }
  });

  test(`a ${era} server and agents over stdio`, async (t) => {
    const file = writeConfig(tempDir(), { names: 'bare', servers: { fixture: fixtureEntry(era) } });
    for (const kind of Object.keys(kinds)) {
      await t.test(kind, async (tt) => {
        const agent = await connect(tt, kind, overStdio(file));
        agent.name = kind;
        for (const name of ['lists, calls, reads, prompts and completions', 'progress',
          'a form and a page', 'sampling', 'two questions, one after the other', 'cancel',
          'list changes', 'resource updates']) {
          await tt.test(name, { timeout: 30_000 }, () => checks[name](agent, { era }));
        }
      });
    }
  });

  test(`a ${era} server behind HTTP`, async (t) => {
    const server = await serveFixture(t, await fixtureOverHttp(t, era));
    for (const kind of ['SDK v1', 'SDK v2, modern']) {
      await t.test(`and ${kind}`, async (tt) => {
        const agent = await connect(tt, kind, overHttp(server.fixture));
        agent.name = kind;
        for (const [name, check] of Object.entries(checks)) {
          await tt.test(name, { timeout: 30_000 }, () => check(agent, { era, known: true }));
        }
      });
    }
  });
}
