// Finding out which era a server on stdio speaks, and servers of the stateless era that break the
// rules of MCP (tests/fixture/odd.mjs).
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, root, serve, sleep, until } from './lib.mjs';
import { fixtureEntry, ModernClient, node22 } from './peers.mjs';

const odd = (mode, more = {}) => ({ command: node22, args: [path.join(root, 'tests/fixture/odd.mjs'), mode], ...more });

test('the era of a server is found out', async (t) => {
  const server = await serve(t, {
    servers: {
      exits: odd('exits'), // as servers of the Rust SDK do
      silent: odd('silent'),
      // A modern server that was slow to start (npx fetches it first) was taken for a legacy one, refused
      // initialize, and was never probed again.
      slow: odd('slow'),
      modern: odd('modern'),
      dual: fixtureEntry('dual'),
      pinned: fixtureEntry('dual', { era: 'legacy' }),
    },
  });
  const agent = new ModernClient(server.url);
  await agent.waitFor('exits__hello', 'silent__hello', 'slow__hello', 'modern__hello', 'dual__client', 'pinned__client');
  for (const name of ['exits', 'silent', 'slow', 'modern']) assert.equal(await agent.text(`${name}__hello`), 'hello');
  assert.equal(JSON.parse(await agent.text('dual__client')).era, 'modern');
  assert.equal(JSON.parse(await agent.text('pinned__client')).era, 'legacy');
});

test('a server that is pinned to an era it does not speak', async (t) => {
  const server = await serve(t, {
    servers: { old: fixtureEntry('legacy', { era: 'modern' }), fresh: fixtureEntry('modern', { era: 'legacy' }) },
  });
  await until('both reasons', () => /old: .*does not speak 2026-07-28/.test(server.stderr())
    && /fresh: .*refused initialize/.test(server.stderr()));
});

test('a modern server that breaks the rules', async (t) => {
  const server = await serve(t, { servers: { odd: odd('modern') } });
  const url = `${server.url}/odd`;
  const modern = new ModernClient(url);
  await modern.waitFor('hello');
  const legacy = await new HttpClient(url).connect({ capabilities: { elicitation: {} } });

  await t.test('a result of a type nobody declared', async () => {
    for (const agent of [modern, legacy]) {
      const { error } = await agent.call('task');
      assert.match(error.message, /type of result/);
    }
  });

  await t.test('a result without a type is complete', async () => {
    assert.equal(await legacy.text('untyped'), 'no type');
    assert.equal(await modern.text('untyped'), 'no type');
  });

  await t.test('a question that does not exist', async () => {
    const { error, result } = await legacy.call('unknown_question');
    assert.match(JSON.stringify(error ?? result), /does not exist/);
  });

  // The server waited for ever, and so did the agent: the answer was sent as for input_required.
  await t.test('a question as a request, which this era does not have', async () => {
    for (const agent of [modern, legacy]) assert.match(await agent.text('asks'), /-32601/);
  });

  await t.test('a request for input that asks nothing', async () => {
    const { error } = await legacy.call('empty_handed');
    assert.match(error.message, /too many times/);
  });

  await t.test('a subscription that the server ends is opened again', async () => {
    const stream = await modern.listen({ toolsListChanged: true });
    t.after(() => stream.close());
    assert.equal(await modern.text('end_listen'), 'ended');
    assert.equal(await modern.text('change'), 'nobody listens');
    await until('a new subscription', async () => await modern.text('change') === 'told' || sleep(200));
    await stream.waitFor('notifications/tools/list_changed');
  });
});

// Servers of npx and uvx take longer to start than we wait for an answer to server/discover. Such a server
// of both eras was taken for one of the initialize era, and its modern agents were translated for a day.
test('a server that starts slowly is spoken to in the stateless era all the same', async (t) => {
  const { command, args } = fixtureEntry('dual');
  const slow = { command: 'sh', args: ['-c', `sleep 4; exec ${[command, ...args].map((x) => `'${x}'`).join(' ')}`] };
  const server = await serve(t, { servers: { s: slow } });
  const agent = new ModernClient(server.url);
  await until('the late answer', () => /answered server\/discover late/.test(server.stderr()), 60_000);
  await until('the tools', async () => (await agent.request('tools/list')).result?.tools.some((x) => x.name === 's__client'), 60_000);
  assert.equal(JSON.parse(await agent.text('s__client')).era, 'modern');
});
