// Messages of a server that name no call reach no caller whom they do not concern.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { fake, HttpClient, rialto, serve, sleep, until } from './lib.mjs';

const entry = (name, token, view) => ({ name, hash: `sha256:${createHash('sha256').update(token).digest('hex')}`, view });

// What a server logged while calls of two callers were open went to both: a caller whose view does not
// even have that tool read what the other one was doing.
test('a log line of one caller does not reach the other', async (t) => {
  const server = await serve(t, {
    servers: { s: fake('--name', 's') },
    views: { ann: { allow: ['log', 'sleep'] }, bob: { allow: ['sleep', 'echo'] } },
    auth: { tokens: [entry('ann', 'token-of-ann', 'ann'), entry('bob', 'token-of-bob', 'bob')] },
  });
  const connect = async (token) => {
    const client = await new HttpClient(server.url, { token }).connect();
    await client.waitFor('s__sleep');
    await client.request('logging/setLevel', { level: 'debug' });
    return { client, stream: await client.listen() };
  };
  const [ann, bob] = [await connect('token-of-ann'), await connect('token-of-bob')];
  const lines = (events) => events.filter((m) => m.method === 'notifications/message').length;

  const alone = await ann.client.rawRequest(1, 'tools/call', '{"name":"s__log","arguments":{"level":"error"}}');
  assert.equal(lines(alone.events), 1, 'the only one at work hears it');

  const busy = bob.client.rawRequest(1, 'tools/call', '{"name":"s__sleep","arguments":{"ms":2500}}');
  const status = async () => JSON.parse((await rialto(['status', '-c', server.config, '--json'], { env: { XDG_RUNTIME_DIR: server.dir } })).stdout);
  await until('the other is at work', async () => (await status()).servers[0].in_flight === 1);
  const both = await ann.client.rawRequest(2, 'tools/call', '{"name":"s__log","arguments":{"level":"error"}}');
  assert.equal(lines(both.events), 0);
  assert.equal(lines((await busy).events), 0, 'on the call of the other');
  await sleep(200);
  assert.equal(bob.stream.count('notifications/message'), 0, 'on the stream of the other');
  assert.equal(ann.stream.count('notifications/message'), 0);
  await until('the operator can read it', () => /told to nobody.*"logger":"fake"/.test(server.stderr()));
});
