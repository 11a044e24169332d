// Servers that are stopped while nobody needs them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  descendants, exchange, expectGone, fake, HttpClient, rialto, serve, serveAndConnect, sleep, until,
} from './lib.mjs';
import { fixtureEntry } from './peers.mjs';

const state = async (server, name) => JSON.parse((await exchange(`${server.origin}/api/servers/${name}`, { method: 'GET' })).text);
const rests = (server, name) => until(`${name} rests`, async () => (await state(server, name)).phase === 'down');

for (const start of ['eager', 'lazy']) {
  test(`${start}: stopped when idle, listed all the same, woken by a call`, async (t) => {
    const { server, client } = await serveAndConnect(t, {
      servers: { a: { ...fake('--name', 'a'), start, idle_stop: '1s' }, b: fake('--name', 'b') },
    }, ['a__echo', 'b__echo']);
    const stream = await client.listen();
    const listed = await client.toolNames();
    await sleep(200); // what was queued for the stream has arrived by then
    const told = stream.messages().length;
    const family = descendants(server.pid).filter((p) => p.pid !== undefined);
    const { pid } = await state(server, 'a');
    assert.ok(family.some((p) => p.pid === pid));

    await rests(server, 'a');
    await expectGone(family.filter((p) => p.pid === pid));
    assert.equal((await state(server, 'a')).state, 'idle');
    assert.equal((await state(server, 'b')).state, 'up');
    assert.deepEqual(await client.toolNames(), listed);
    assert.equal(stream.messages().length, told, 'nothing has changed for agents');
    const ready = await exchange(`${server.origin}/readyz?strict=1`, { method: 'GET' });
    assert.equal(ready.status, 200, 'idle is healthy');
    assert.equal((await rialto(['status'], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir })).code, 0);

    const answers = await Promise.all([1, 2, 3].map((i) => client.call('a__echo', { message: `${i}` })));
    assert.deepEqual(answers.map((x) => x.result.structuredContent.message), ['1', '2', '3']);
    const woken = await state(server, 'a');
    assert.notEqual(woken.pid, pid);
    assert.equal(woken.starts, 2);
    assert.equal(woken.crashes, 0);
    assert.equal(woken.last_error, null);
    await rests(server, 'a');
    await until('a line in the log', () => /a: nobody called it for \d+ s: stopped until somebody does/.test(server.stderr()));
    stream.close();
  });
}

test('a call keeps it running', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { a: { ...fake('--name', 'a'), idle_stop: '1s' } },
  }, ['a__echo']);
  assert.equal(await client.text('a__sleep', { ms: 2500 }), 'slept');
  assert.equal((await state(server, 'a')).starts, 1);
});

test('a subscription keeps it running', async (t) => {
  const server = await serve(t, { servers: { f: fixtureEntry('legacy', { idle_stop: '1s' }) } });
  const client = await new HttpClient(server.url).connect();
  const resources = await until('resources', async () => {
    const { result } = await client.request('resources/list');
    return result.resources.length && result.resources;
  });
  const { uri } = resources[0];
  assert.ok((await client.request('resources/subscribe', { uri })).result);
  await sleep(2500);
  assert.equal((await state(server, 'f')).starts, 1);
  assert.equal((await state(server, 'f')).state, 'up');
  assert.ok((await client.request('resources/unsubscribe', { uri })).result);
  await rests(server, 'f');
});

test('sessions\' own instances rest, too', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { a: { ...fake('--name', 'a'), instances: 'per-session', idle_stop: '1s' } },
  }, ['a__echo']);
  const { pid } = (await client.call('a__whoami')).result.structuredContent;
  const mine = descendants(server.pid).filter((p) => p.pid === pid);
  assert.equal(mine.length, 1);
  await expectGone(mine, 5000);
  const again = (await client.call('a__whoami')).result.structuredContent;
  assert.notEqual(again.pid, pid);
  await server.stop();
});

test('the end comes while it rests, and while it goes to rest', async (t) => {
  const config = { servers: { a: { ...fake('--name', 'a', '--ignore-eof'), idle_stop: '1s' } } };
  const resting = await serve(t, { servers: { a: { ...fake('--name', 'a'), idle_stop: '1s' } } });
  await rests(resting, 'a');
  await resting.stop('SIGTERM', 1000);
  const going = await serve(t, config);
  await until('it is being stopped', async () => (await state(going, 'a')).phase === 'stopping');
  await going.stop('SIGTERM', 2000);
});
