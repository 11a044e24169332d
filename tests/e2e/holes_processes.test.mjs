// With `instances: per-session` every initialize started a program, up to limits.sessions of them: 10,000
// processes for 10,000 small requests, none of which called anything. Now the first call of a session
// starts its program, and limits.processes bounds how many there are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { descendants, fake, HttpClient, serve, serveAndConnect, sleep, until, within } from './lib.mjs';

const own = (more = {}) => ({ own: { ...fake('--name', 'own'), instances: 'per-session', ...more } });
const pid = async (c) => (await c.call('own__whoami')).result.structuredContent.pid;
const connect = async (server, n) => {
  const clients = [];
  for (let i = 0; i < n; i++) clients.push(await new HttpClient(server.url).connect());
  return clients;
};

test('sessions that call nothing have no process, and see the tools all the same', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: own() }, ['own__whoami']);
  const clients = await connect(server, 50);
  assert.ok((await clients[49].toolNames()).includes('own__whoami'));
  await sleep(500);
  assert.ok(descendants(server.pid).length <= 1, 'one that knows what there is, for all');
  const [first, second] = [await pid(clients[7]), await pid(clients[8])];
  assert.notEqual(first, second);
  assert.equal(await pid(clients[7]), first);
  assert.equal(descendants(server.pid).length, 3);
  assert.ok((await client.toolNames()).includes('own__whoami'));
});

test('sessions that came before anything was known of the server hear of its tools', async (t) => {
  const server = await serve(t, { servers: own({ start: 'lazy' }) });
  const clients = await connect(server, 5);
  for (const c of clients) await c.waitFor('own__whoami');
  assert.equal(descendants(server.pid).length, 1);
});

test('limits.processes bounds what sessions have started; what works is left alone', async (t) => {
  const { server } = await serveAndConnect(t, { servers: own(), limits: { processes: 3 } }, ['own__whoami']);
  const clients = await connect(server, 5); // the shared instance is the first of the three
  const slow = clients.slice(0, 2).map((c) => c.text('own__sleep', { ms: 3000 }));
  await until('three processes', () => descendants(server.pid).length === 3);
  for (const c of clients.slice(2)) {
    const { error } = await within(2000, 'the refusal', c.call('own__whoami'));
    assert.match(error.message, /limits\.processes/);
    assert.deepEqual(error.data, { reason: 'busy', retryable: true });
    assert.ok((await c.toolNames()).includes('own__whoami'), 'and its tools stay listed');
  }
  assert.equal(descendants(server.pid).length, 3);
  await Promise.all(slow); // no instance was stopped during its call
  // An idle instance is stopped to make room for the next: the one that was idle for longest.
  assert.equal(typeof await pid(clients[4]), 'number');
  assert.ok(descendants(server.pid).length <= 3);
  await Promise.all(clients.map((c) => until('a turn for everybody', async () => (await c.call('own__whoami')).result)));
  assert.ok(descendants(server.pid).length <= 3);
});

test('the session whose program ended makes room for another', async (t) => {
  const { server } = await serveAndConnect(t, { servers: own(), limits: { processes: 2 } }, ['own__whoami']);
  const [one, two] = await connect(server, 2);
  const slow = one.call('own__sleep', { ms: 20_000 }).catch(() => {});
  await until('two processes', () => descendants(server.pid).length === 2);
  assert.match((await two.call('own__whoami')).error.message, /limits\.processes/);
  await one.close();
  await slow;
  await until('room', async () => (await two.call('own__whoami')).result, 5000);
});
