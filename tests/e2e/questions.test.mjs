// Questions of a server on stdio that several agents share. It does not say for which call it asks: with
// two agents calling at once, it got the error that nobody can be asked (decision 012).
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import { connect } from './era_checks.mjs';
import { descendants, HttpClient, rialtoBin, serve, sleep, tempDir, until, writeConfig } from './lib.mjs';
import { fixtureEntry, ModernClient } from './peers.mjs';
import { data, listen, RawServer } from './upstream_lib.mjs';

const children = (server) => descendants(server.pid).length;
const overHttp = (url) => (sdk) => new sdk.StreamableHTTPClientTransport(new URL(url));

/** An official client whose user gives this name; `asked` has the questions. */
const person = (t, url, name, wait = async () => {}) => connect(t, 'SDK v1', overHttp(url), {
  answers: {
    'elicitation/create': async () => {
      await wait();
      return { action: 'accept', content: { username: name, email: `${name}@example.com` } };
    },
  },
});
const ask = (agent, name) => agent.call('test_elicitation', { message: `Are you ${name}?` });
const messages = (agent) => agent.asked.map((a) => a.params.message);

async function start(t, entry = fixtureEntry('legacy'), options = {}) {
  const server = await serve(t, { servers: { fixture: entry } }, options);
  server.fixture = `${server.url}/fixture`;
  await new ModernClient(server.fixture).waitFor('echo');
  return server;
}

test('a question waits until it is known whom it is for', async (t) => {
  const server = await start(t);
  const ann = await person(t, server.fixture, 'ann');
  const bob = await person(t, server.fixture, 'bob');
  const slow = bob.call('slow', { tag: 'x', ms: 1500 });
  await until('the slow call', async () => await bob.text('slow_state', { tag: 'x' }) === 'running');
  assert.match((await ask(ann, 'ann')).content[0].text, /"ann"/);
  await slow;
  assert.deepEqual([messages(ann), messages(bob)], [['Are you ann?'], []]);

  await t.test('from then on calls take turns', async () => {
    const all = await Promise.all([...Array(6)].map((_, i) => (i % 2 ? ask(ann, 'ann') : ask(bob, 'bob'))));
    assert.deepEqual(all.map((r, i) => r.content[0].text.includes(i % 2 ? '"ann"' : '"bob"')), Array(6).fill(true));
    assert.deepEqual([new Set(messages(ann)), new Set(messages(bob))], [new Set(['Are you ann?']), new Set(['Are you bob?'])]);
  });

  await t.test('a session that comes later has an instance of its own, started by its first call', async () => {
    const before = children(server);
    const eve = await person(t, server.fixture, 'eve', () => sleep(300));
    assert.equal(children(server), before);
    const both = await Promise.all([ask(eve, 'eve'), ask(ann, 'ann')]);
    assert.deepEqual(both.map((r) => /"(\w+)"/.exec(r.content[0].text.slice(r.content[0].text.indexOf('username') + 10))?.[1]), ['eve', 'ann']);
    assert.equal(children(server), before + 1);
  });
});

test('that a server asks is known at the next start', async (t) => {
  const env = { XDG_CACHE_HOME: tempDir() };
  const file = { listen: '127.0.0.1:0', servers: { fixture: fixtureEntry('legacy') } };
  const config = writeConfig(tempDir(), file);
  for (const sessions of [0, 2]) {
    const server = await serve(t, null, { env, args: ['-c', config] });
    server.fixture = `${server.url}/fixture`;
    await new ModernClient(server.fixture).waitFor('echo');
    const ann = await person(t, server.fixture, 'ann');
    const bob = await person(t, server.fixture, 'bob');
    if (!sessions) await ask(ann, 'ann');
    const both = await Promise.all([ask(ann, 'ann'), ask(bob, 'bob')]);
    both.forEach((r, i) => assert.match(r.content[0].text, i ? /"bob"/ : /"ann"/));
    assert.equal(children(server), 1 + sessions);
    await Promise.all([ann, bob].map((p) => p.client.close()));
    await server.stop();
  }
});

// The very first two questions of a server, at once: one of the two calls may have to be repeated.
test('two first questions at once reach nobody wrong, and nothing hangs', async (t) => {
  const server = await start(t);
  const people = await Promise.all(['ann', 'bob'].map((name) => person(t, server.fixture, name)));
  const results = await Promise.allSettled(people.map((p, i) => ask(p, ['ann', 'bob'][i])));
  const lost = results.filter((r) => r.status === 'rejected');
  assert.ok(lost.length <= 1, JSON.stringify(results));
  lost.forEach(({ reason }) => assert.deepEqual(reason.data, { reason: 'busy', retryable: true }));
  const again = await Promise.all(people.map((p, i) => ask(p, ['ann', 'bob'][i])));
  again.forEach((r, i) => assert.match(r.content[0].text, i ? /"bob"/ : /"ann"/));
  people.forEach((p, i) => assert.deepEqual(new Set(messages(p)), new Set([`Are you ${['ann', 'bob'][i]}?`])));
});

// A legacy agent with two calls could be asked; one of the stateless era could not.
test('a modern agent that is alone on its pipe is asked during several calls', async (t) => {
  const config = writeConfig(tempDir(), { names: 'bare', servers: { fixture: fixtureEntry('legacy') } });
  const agent = await connect(t, 'SDK v2, modern', (sdk) => new sdk.StdioClientTransport({
    command: rialtoBin, args: ['stdio', '--alone', '-c', config], env: { ...process.env, XDG_CACHE_HOME: tempDir() }, stderr: 'ignore',
  }));
  const slow = agent.call('slow', { tag: 'x', ms: 3000 });
  await until('the slow call', async () => await agent.text('slow_state', { tag: 'x' }) === 'running');
  const both = await Promise.all(['one', 'two'].map((message) => agent.call('test_elicitation', { message })));
  both.forEach((r) => assert.match(r.content[0].text, /"my username"/));
  assert.deepEqual(new Set(messages(agent)), new Set(['one', 'two'])); // a question may be asked on another call than its own
  assert.ok(await slow);
});

// Over HTTP, agents of the stateless era without a token cannot be told apart.
test('calls of modern agents that cannot be told apart do not mix their questions', async (t) => {
  const server = await start(t);
  const agents = [1, 2, 3].map(() => new ModernClient(server.fixture));
  const questions = await Promise.all(agents.map(async (agent, i) => {
    for (;;) { // the first questions may have to be repeated
      const { result, error } = await agent.call('test_elicitation', { message: `Are you ${i}?` });
      if (result) return Object.values(result.inputRequests)[0].params.message;
      assert.equal(error.data.retryable, true, JSON.stringify(error));
    }
  }));
  assert.deepEqual(questions, ['Are you 0?', 'Are you 1?', 'Are you 2?']);
});

// A POST that was cut before it became a stream carries nothing: a question on it reached nobody, and the call
// waited for the answer for ten minutes, before all others of its server.
test('a question of a call whose POST was cut comes on the standing stream, or is refused where there is none', async (t) => {
  let ask;
  const raw = new RawServer({
    'tools/call': ({ sse }) => {
      ask = () => sse(data({ id: 'q', method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } } }));
      sse(': here');
    },
  });
  const answers = () => raw.seen.filter((s) => s.rpc === 'response').map((s) => s.message);
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, era: 'legacy' } } });
  const client = await new HttpClient(server.url).connect({ capabilities: { elicitation: {} } });
  await client.waitFor('far__echo');
  const cutCall = async (id) => {
    ask = undefined;
    const request = http.request(client.url, { method: 'POST', headers: client.headers, agent: false });
    request.on('error', () => {});
    request.end(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'far__echo', arguments: {} } }));
    await until('the call', () => ask);
    request.destroy();
    await sleep(200);
    ask();
  };
  await cutCall(1);
  await until('the refusal', () => answers().length === 1);
  assert.ok(answers()[0].error, JSON.stringify(answers()[0]));

  const stream = await client.listen();
  await cutCall(2);
  await stream.waitFor('elicitation/create');
  const asked = stream.messages().find((m) => m.method === 'elicitation/create');
  await client.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: {} } });
  await until('the answer', () => answers().length === 2);
  assert.equal(answers()[1].result.action, 'accept');
  await client.notify('notifications/cancelled', { requestId: 1 });
  await client.notify('notifications/cancelled', { requestId: 2 });
  stream.close();
});
