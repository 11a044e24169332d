// `expose: search`: agents see two tools instead of many, find the others by what they do, and calls made
// that way lose nothing, in either era.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, fake, HttpClient, rialto, serve, stdio, tempDir, until, writeConfig } from './lib.mjs';
import { allCapabilities, fixtureEntry, MODERN, ModernClient, v1, v2 } from './peers.mjs';

const twoTools = ['find_tools', 'call_tool'];
const many = { expose: 'search', servers: { big: fake('--name', 'big', '--tools', 500), small: fake('--name', 'small') } };

/** What `rialto tools` shows. */
const costsOf = async (server) => JSON.parse((await exchange(`${server.origin}/api/tools`, { method: 'GET' })).text);
const rewrite = (server, config) => writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', ...config });

/** Waits until the tool is found. If it is the last server's, all servers are up. */
async function found(client, query, name) {
  return until(`find_tools '${query}' to give ${name}`, async () => {
    const { result } = await client.call('find_tools', { query });
    return result.structuredContent.tools.find((x) => x.name === name);
  });
}

async function serveMany(t) {
  const server = await serve(t, many);
  const client = await new HttpClient(server.url).connect();
  await found(client, 'whoami of small', 'small__whoami');
  await found(client, 'tool_499', 'big__tool_499');
  return { server, client };
}

const through = (client, name, args) => client.call('call_tool', { name, arguments: args });

test('agents see two tools, and all of them at /mcp/<server>', async (t) => {
  const { server, client } = await serveMany(t);
  const { result } = await client.request('tools/list');
  assert.deepEqual(result.tools.map((x) => x.name), twoTools);
  assert.match(result.tools[0].description, /Servers: big, small\./);
  for (const tool of result.tools) assert.equal(tool.inputSchema.type, 'object');
  assert.deepEqual(await new ModernClient(server.url).toolNames(), twoTools);
  const alone = await new HttpClient(`${server.url}/big`).connect();
  assert.ok((await alone.toolNames()).length > 500);
  assert.equal(await alone.text('echo', { a: 1 }), '{"a":1}');
  assert.ok((await client.call('big__echo')).error, 'a hidden tool cannot be called past call_tool');
});

test('516 tools are found by name, description and arguments', async (t) => {
  const { client } = await serveMany(t);
  const find = async (args) => (await client.call('find_tools', args)).result;
  const tool = await found(client, 'tool number 77', 'big__tool_77');
  assert.equal(tool.inputSchema.properties.path.description, 'Where to look');
  assert.match(tool.description, /generated tools/);
  assert.ok(tool.score > 0);
  const sums = await find({ query: 'add', limit: 2 });
  assert.deepEqual(sums.structuredContent.tools.map((x) => x.name).sort(), ['big__add', 'small__add']);
  assert.deepEqual(JSON.parse(sums.content[0].text), sums.structuredContent);
  assert.equal((await find({ query: 'where to look' })).structuredContent.tools.length, 10);
  assert.equal((await find({ query: 'where to look', limit: 99 })).structuredContent.tools.length, 50);
  assert.deepEqual((await find({ query: 'zebra' })).structuredContent.tools, []);
  const scores = sums.structuredContent.tools.map((x) => x.score);
  assert.ok(scores[0] >= scores[1]);
  for (const wrong of [{}, { query: 5 }, { query: 'x', limit: 0 }, { query: 'x', limit: 'many' }]) {
    const result = await find(wrong);
    assert.equal(result.isError, true, JSON.stringify(wrong));
  }
});

test('a call arrives as if it had been direct', async (t) => {
  const { client } = await serveMany(t);
  const lexemes = '{"n":1.50,"big":123456789012345678901234567890,"text":"\\u00e9"}';
  const { raw } = await client.rawRequest('1', 'tools/call',
    `{"name":"call_tool","arguments":{"name":"big__echo","arguments":${lexemes}}}`);
  assert.ok(raw.includes(`"structuredContent":${lexemes}`), raw);
  const seen = await client.rawRequest('2', 'tools/call',
    '{"name":"call_tool","x-extra":1.0,"_meta":{"progressToken":"tok","example.org/k":2.50},'
    + '"arguments":{"name":"small__params","arguments":{"a":1}}}');
  const { params } = seen.message.result.structuredContent;
  assert.equal(params.name, 'params');
  assert.deepEqual(params.arguments, { a: 1 });
  assert.ok(seen.raw.includes('"x-extra":1.0') && seen.raw.includes('"example.org/k":2.50'), seen.raw);
  assert.notEqual(params._meta.progressToken, 'tok', 'progress tokens never cross a hop');
  assert.deepEqual((await through(client, 'small__params')).result.structuredContent.params.arguments, {});
  const wrapped = await through(client, 'small__echo', '{"in": "a string"}');
  assert.deepEqual(wrapped.result.structuredContent, { in: 'a string' });
});

test('errors of the server and of the model are told apart', async (t) => {
  const { client } = await serveMany(t);
  assert.equal((await through(client, 'small__fail')).result.isError, true);
  assert.equal((await through(client, 'small__error')).error.code, -32050);
  const crashed = await through(client, 'small__crash');
  assert.match(crashed.error.message, /'small' ended while the call was open/);
  const unknown = (await through(client, 'big_whoami')).result;
  assert.equal(unknown.isError, true);
  assert.match(unknown.content[0].text, /unknown tool: big_whoami.*did you mean .*big__whoami/);
  for (const wrong of [{}, { name: 7 }, { name: 'big__echo', arguments: 'no JSON' }, { name: 'big__echo', arguments: [1] }]) {
    assert.equal((await client.call('call_tool', wrong)).result.isError, true, JSON.stringify(wrong));
  }
  assert.equal((await through(client, 'call_tool', { name: 'big__echo' })).result.isError, true, 'no loops');
});

test('the index follows the lists', async (t) => {
  const { client } = await serveMany(t);
  const stream = await client.listen();
  await stream.settle();
  const extra = async () => (await client.call('find_tools', { query: 'extra' })).result.structuredContent.tools.length;
  assert.equal(await extra(), 0);
  assert.equal((await through(client, 'small__notify-list-changed')).result.content[0].text, 'shown');
  await until('the extra tool', async () => await extra() === 1);
  await through(client, 'small__die');
  await until('no tool of a server that is gone', async () => await extra() === 0 || await extra() === 0);
  assert.equal(stream.count('notifications/tools/list_changed'), 0, 'the two tools have not changed');
  stream.close();
});

test('allow, deny and overrides hold behind call_tool', async (t) => {
  const server = await serve(t, {
    expose: 'search',
    servers: {
      some: { ...fake('--name', 'some'), allow: ['echo', 'add'], tools: { add: { name: 'plus', description: 'Sums up' } } },
    },
  });
  const client = await new HttpClient(server.url).connect();
  await found(client, 'sums up', 'some__plus');
  assert.equal((await through(client, 'some__plus', { a: 1, b: 2 })).result.content[0].text, '3');
  assert.equal((await through(client, 'some__whoami')).result.isError, true);
  assert.equal((await client.call('find_tools', { query: 'whoami' })).result.structuredContent.tools.length, 0);
});

test('two agents: each is asked about its own call only', async (t) => {
  const server = await serve(t, { expose: 'search', servers: { s: fake() } });
  const ask = { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } } };
  const agents = [];
  for (const name of ['one', 'two']) {
    const client = new v1.Client({ name, version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(v1.ElicitRequestSchema, () => ({ action: 'accept', content: { name } }));
    await client.connect(new v1.StreamableHTTPClientTransport(new URL(server.url)));
    t.after(() => client.close());
    agents.push(client);
  }
  await found(await new HttpClient(server.url).connect(), 'ask', 's__ask');
  const call = (client, name, args) => client.callTool({ name: 'call_tool', arguments: { name, arguments: args } });
  for (const [i, name] of ['one', 'two'].entries()) {
    const { structuredContent } = await call(agents[i], 's__ask', ask);
    assert.deepEqual(structuredContent.result.content, { name });
  }
  // A server that asks is used by one agent at a time, so that no question is misdirected.
  const busy = call(agents[0], 's__sleep', { ms: 1500 });
  const { structuredContent } = await call(agents[1], 's__ask', ask);
  assert.deepEqual(structuredContent.result.content, { name: 'two' });
  await busy;
});

test('servers with an instance per session stay so', async (t) => {
  const server = await serve(t, { expose: 'search', servers: { own: { ...fake(), instances: 'per-session' }, all: fake() } });
  const clients = await Promise.all([1, 2].map(() => new HttpClient(server.url).connect()));
  const pids = { own__whoami: new Set(), all__whoami: new Set() };
  for (const client of clients) {
    assert.deepEqual(await client.toolNames(), twoTools);
    for (const name of Object.keys(pids)) {
      await found(client, name, name);
      pids[name].add((await through(client, name)).result.structuredContent.pid);
    }
  }
  assert.equal(pids.own__whoami.size, 2);
  assert.equal(pids.all__whoami.size, 1);
  await clients[0].close();
  assert.ok((await through(clients[1], 'own__whoami')).result);
});

test('resources and prompts are still there', async (t) => {
  const server = await serve(t, { expose: 'search', servers: { fixture: fixtureEntry('legacy') } });
  const client = await new HttpClient(server.url).connect();
  await found(client, 'echo', 'fixture__echo');
  assert.ok((await client.request('resources/list')).result.resources.length >= 3);
  const prompts = (await client.request('prompts/list')).result.prompts.map((p) => p.name);
  assert.ok(prompts.includes('fixture__test_simple_prompt'), prompts.join());
  assert.ok((await client.request('prompts/get', { name: 'fixture__test_simple_prompt' })).result.messages);
  assert.ok((await client.request('resources/read', { uri: 'test://static-text' })).result.contents);
});

test('on stdio, and for the commands', async (t) => {
  const client = await stdio(t, many);
  assert.deepEqual((await client.request('tools/list')).result.tools.map((x) => x.name), twoTools);
  const file = writeConfig(tempDir(), many);
  const { code, stdout } = await rialto(['tools', '-c', file]);
  assert.equal(code, 0);
  assert.match(stdout, /^ {2}big__tool_499 /m, 'people see the whole catalog');
  const call = await rialto(['call', '-c', file, 'small', 'echo', 'message=hi']);
  assert.equal(call.stdout.trim(), '{"message":"hi"}');
});

// --- every pair of eras ---

const kinds = {
  'SDK v1': { sdk: v1, options: {} },
  'SDK v2, modern': { sdk: v2, options: { versionNegotiation: { mode: { pin: MODERN } } } },
};

const answers = {
  'elicitation/create': ({ params }) => ({
    action: 'accept',
    ...(params.mode !== 'url' && {
      content: Object.fromEntries(Object.keys(params.requestedSchema.properties).map((k) => [k, `my ${k}`])),
    }),
  }),
  'sampling/createMessage': ({ params }) => ({
    role: 'assistant', model: 'm', content: { type: 'text', text: `heard: ${params.messages[0].content.text}` },
  }),
};

async function connect(t, kind, url) {
  const { sdk, options } = kinds[kind];
  const { roots, ...capabilities } = allCapabilities;
  const client = new sdk.Client({ name: 'agent', version: '1' }, { capabilities, ...options });
  const schemas = { 'elicitation/create': v1.ElicitRequestSchema, 'sampling/createMessage': v1.CreateMessageRequestSchema };
  for (const method of Object.keys(answers)) {
    client.setRequestHandler(sdk === v1 ? schemas[method] : method, answers[method]);
  }
  await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url)));
  t.after(() => client.close());
  return (name, args = {}, more = undefined) => client.callTool(
    { name: 'call_tool', arguments: { name: `fixture__${name}`, arguments: args } }, ...(sdk === v1 ? [undefined, more] : [more]));
}

for (const era of ['legacy', 'modern']) {
  for (const kind of Object.keys(kinds)) {
    test(`a ${era} server and ${kind}: progress, questions and cancel pass`, async (t) => {
      const server = await serve(t, { expose: 'search', servers: { fixture: fixtureEntry(era) } });
      await found(await new HttpClient(server.url).connect(), 'echo', 'fixture__echo');
      const call = await connect(t, kind, server.url);
      const text = async (...args) => (await call(...args)).content[0].text;

      const seen = [];
      assert.equal(await text('test_tool_with_progress', {}, { onprogress: (p) => seen.push(p.progress) }), 'all done');
      assert.deepEqual(seen, [0, 50, 100]);
      assert.match(await text('test_elicitation', { message: 'Who are you?' }), /"my username"/);
      assert.equal(await text('test_sampling', { prompt: 'say hi' }), 'LLM response: heard: say hi');
      assert.equal(await text('test_input_required_result_multi_round'), 'my name likes my color');
      assert.equal(await text('test_input_required_result_request_state'), 'state-ok');

      const stop = new AbortController();
      const running = call('slow', { tag: 'x', ms: 20_000 }, { signal: stop.signal, onprogress() {} });
      running.catch(() => {});
      await until('the call at the server', async () => await text('slow_state', { tag: 'x' }) === 'running');
      stop.abort('not needed');
      await assert.rejects(running);
      await until('the cancel at the server', async () => await text('slow_state', { tag: 'x' }) === 'cancelled');
    });
  }
}

test('a view says for itself whether its tools are searched for', async (t) => {
  const views = { many: { expose: 'search' }, few: { expose: 'full', allow: ['echo'] }, same: {} };
  for (const expose of ['full', 'search']) {
    const server = await serve(t, { expose, servers: { small: fake('--name', 'small') }, views });
    const tools = async (view) => (await new HttpClient(`${server.url}?view=${view}`).connect()).toolNames();
    const searched = ['call_tool', 'find_tools'];
    await until('the tool', async () => (await tools('few')).includes('small__echo'));
    assert.deepEqual(await tools('few'), ['small__echo'], `${expose} at the top`);
    assert.deepEqual((await tools('many')).sort(), searched, `${expose} at the top`);
    const same = await tools('same');
    assert.equal(same.includes('small__add'), expose === 'full');
    assert.equal(same.includes('find_tools'), expose === 'search');
    const client = await new HttpClient(`${server.url}?view=many`).connect();
    const called = await client.call('call_tool', { name: 'small__add', arguments: { a: 1, b: 2 } });
    assert.equal(called.result.content[0].text, '3');
    assert.ok((await new HttpClient(`${server.url}/small?view=many`).connect().then((c) => c.toolNames())).includes('add'), '/mcp/NAME lists them');
    await server.stop();
  }
});

// `expose: auto`: tools are listed while that costs a model little, and searched for when it costs more. The cost is
// the sum that `rialto tools` prints.
test('auto: listed up to expose_above tokens, searched for above it', async (t) => {
  const servers = { big: fake('--name', 'big', '--tools', 20), small: fake('--name', 'small') };
  const probe = await serve(t, { servers });
  const costs = () => costsOf(probe);
  const all = await until('both', async () => { const now = await costs(); return now.tools.some((x) => x.name === 'small__echo') && now.tools.some((x) => x.name === 'big__tool_19') && now; });
  await probe.stop();
  const own = all.tools.filter((x) => x.server === 'small').reduce((sum, x) => sum + x.tokens, 0);
  const server = await serve(t, {
    expose: 'auto', expose_above: all.tokens - 1, servers,
    views: {
      room: { expose_above: all.tokens }, some: { servers: ['small'] }, less: { servers: ['small'], expose_above: own - 1 },
      never: { expose: 'full' }, always: { servers: ['small'], expose: 'search' },
    },
  });
  const open = (view) => new HttpClient(view ? `${server.url}?view=${view}` : server.url).connect();
  const client = await open();
  const searched = async (c) => (await c.toolNames()).sort().join() === 'call_tool,find_tools';
  await until('all tools to be searched for', () => searched(client));
  assert.equal((await through(client, 'small__add', { a: 1, b: 2 })).result.content[0].text, '3');
  assert.equal(await client.text('small__echo', { a: 1 }), '{"a":1}', 'a name that was listed before is called as before');
  assert.deepEqual(await new ModernClient(server.url).toolNames(), twoTools);
  for (const [view, is] of Object.entries({ room: false, some: false, less: true, never: false, always: true })) {
    const one = await open(view);
    assert.equal(await searched(one), is, view);
    if (!is) assert.ok(!(await one.toolNames()).includes('find_tools'), view);
  }
});

// The list of one server grows over the bound while agents are connected, and shrinks again. A list that shrinks by a
// little, or because its server has crashed, is no reason to switch back: agents would get two lists in turn all day.
test('auto: a list that grows over the bound is searched for, and only one well below it is listed again', async (t) => {
  const write = (n, more) => ({ expose: 'auto', expose_above: 3000, servers: { big: { ...fake('--name', 'big', '--tools', n), ...more } } });
  const server = await serve(t, write(5));
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('big__tool_4');
  const stream = await client.listen();
  await stream.settle();
  const cost = async () => (await costsOf(server)).tokens;
  const small = await cost();
  assert.ok(small < 2250, `${small} tokens: too many for this test`);
  const each = await (async () => { rewrite(server, write(6)); await client.waitFor('big__tool_5'); return await cost() - small; })();
  const fits = 5 + Math.floor((3000 - small) / each); // the most tools that are still listed
  const told = () => stream.count('notifications/tools/list_changed');
  const names = async () => (await client.toolNames()).sort().join();
  const searched = 'call_tool,find_tools';

  rewrite(server, write(fits - 2));
  await client.waitFor(`big__tool_${fits - 3}`);
  let before = told();
  rewrite(server, write(fits + 3));
  await until('the switch', async () => await names() === searched);
  await until('the news', () => told() > before);
  const found = async (query) => (await client.call('find_tools', { query })).result.structuredContent.tools.map((x) => x.name);

  // A little smaller, then a crash: nothing changes for agents.
  rewrite(server, write(fits - 2));
  await until('the smaller list', async () => !(await found(`tool number ${fits + 2}`)).includes(`big__tool_${fits + 2}`));
  before = told();
  await through(client, 'big__die');
  await until('it is back', async () => (await found('whoami')).includes('big__whoami'));
  assert.equal(await names(), searched);
  assert.equal(told(), before, 'no agent was told anything');

  rewrite(server, write(5));
  await client.waitFor('big__tool_4');
  assert.ok(!(await client.toolNames()).includes('find_tools'));
  await until('the news', () => told() > before);
  stream.close();
});
