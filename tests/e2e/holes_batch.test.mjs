// A batch multiplies: 60,000 times `tools/list` in one POST of 2.8 MB made the bridge collect 3.4 GB
// of answers. Now a batch has at most `limits.batch` messages, on every way in, and what its answers
// may weigh is bounded as well; each of its requests still gets exactly one answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, Conductor } from './acp_lib.mjs';
import { exchange, fake, HttpClient, load, serve, serveAndConnect, sseData, stdio, until } from './lib.mjs';

const { WebSocket } = load('ws');

const asked = (id, method, params) => ({ jsonrpc: '2.0', id, method, ...(params && { params }) });
const call = (id, name, args = {}) => asked(id, 'tools/call', { name, arguments: args });
const many = (n, make) => Array.from({ length: n }, (_, i) => make(i));

/** One error for the whole batch, which names the limit and both numbers. */
function expectRefusal(message, n, limit) {
  assert.equal(message.error?.code, -32600, JSON.stringify(message));
  assert.match(message.error.message, /limits\.batch/);
  assert.match(message.error.message, new RegExp(`\\b${n}\\b.*\\b${limit}\\b`));
}

const callsOf = async (client) => (await client.call('a__whoami')).result.structuredContent.calls;

test('HTTP: of a batch that is too long nothing is run', async (t) => {
  const { client } = await serveAndConnect(t, { servers: { a: fake('--name', 'a') } }, ['a__echo']);
  const before = await callsOf(client);
  const answer = await client.post(many(101, (i) => call(i, 'a__echo')));
  assert.equal(answer.status, 400, answer.text.slice(0, 200));
  expectRefusal(JSON.parse(answer.text), 101, 100);
  assert.equal(await callsOf(client), before + 1, 'only our own question was run');

  const fits = JSON.parse((await client.post(many(100, (i) => call(i, 'a__echo')))).text);
  assert.deepEqual(fits.map((m) => m.id).toSorted((a, b) => a - b), many(100, (i) => i));
  assert.ok(fits.every((m) => m.result));
});

test('limits.batch sets how long it may be', async (t) => {
  const { client } = await serveAndConnect(t, { servers: { a: fake() }, limits: { batch: 3 } });
  expectRefusal(JSON.parse((await client.post(many(4, (i) => asked(i, 'ping')))).text), 4, 3);
  assert.equal(JSON.parse((await client.post(many(3, (i) => asked(i, 'ping')))).text).length, 3);
});

test('WebSocket, old SSE and stdio: the same', async (t) => {
  const config = { servers: { a: fake('--name', 'a') } };
  const server = await serve(t, config);
  const messages = [];
  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp']);
  ws.on('message', (data) => messages.push(JSON.parse(data)));
  await new Promise((resolve) => { ws.on('open', resolve); });
  ws.send(JSON.stringify(many(101, (i) => asked(i, 'ping'))));
  ws.send(JSON.stringify(asked('after', 'ping')));
  await until('the ping behind it', () => messages.find((m) => m.id === 'after'));
  assert.equal(messages.length, 2);
  expectRefusal(messages[0], 101, 100);
  ws.close();

  const sse = await new HttpClient(`${server.origin}/sse`).listen();
  const place = await until('the address', () => sse.text().match(/data: (\S+)/)?.[1]);
  const posted = await exchange(`${server.origin}${place}`, {
    headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(many(101, (i) => asked(i, 'ping'))),
  });
  assert.equal(posted.status, 202);
  const [refused] = await until('the refusal', () => {
    const found = sseData(sse.text()).slice(1).map((m) => JSON.parse(m));
    return found.length && found;
  });
  expectRefusal(refused, 101, 100);
  sse.close();

  const line = await stdio(t, config, ['a__echo']);
  line.send(many(101, (i) => asked(i, 'ping')));
  await line.request('ping');
  assert.equal(line.messages().filter((m) => m.id === undefined && m.error).length, 1);
  expectRefusal(line.messages().find((m) => m.id === undefined && m.error), 101, 100);
});

test('the conductor: the same', async (t) => {
  const c = new Conductor(t, ['agent', agent()]);
  const got = [];
  c.onStray = (m) => got.push(m);
  await c.initialize();
  c.send(many(101, (i) => asked(`b${i}`, '_test/echo', {})));
  assert.deepEqual(await c.request('_test/echo', { alone: true }), { alone: true });
  assert.equal(got.length, 1);
  expectRefusal(got[0], 101, 100);
  await c.stop();
});

test('the answers to a batch are bounded in bytes, and each request has exactly one', async (t) => {
  const limit = 64 * 1024;
  const { client } = await serveAndConnect(t, {
    servers: { a: fake('--name', 'a', '--tools', 40) }, limits: { message: '64KiB' },
  }, ['a__big']);
  const listed = (await client.post(asked('l', 'tools/list'))).text.length;
  assert.ok(listed > 10_000 && listed < limit);

  // Calls in flight: answers beyond the limit become errors.
  const called = await client.post(many(50, (i) => call(i, 'a__big', { bytes: 20_000 })));
  const answers = JSON.parse(called.text);
  assert.deepEqual(answers.map((m) => m.id).toSorted((a, b) => a - b), many(50, (i) => i));
  const refused = answers.filter((m) => m.error);
  assert.ok(refused.length >= 45, `${refused.length} were refused`);
  for (const m of refused) assert.match(m.error.message, /65536 bytes \(limits\.message\).*alone/);
  assert.ok(called.text.length < limit + 20_000 + 50 * 300, `${called.text.length} bytes`);

  // Requests that had not been started when the limit was reached are not run at all.
  const before = await callsOf(client);
  const mixed = JSON.parse((await client.post([
    ...many(30, (i) => asked(i, 'tools/list')), ...many(30, (i) => call(i + 30, 'a__echo')),
  ])).text);
  assert.deepEqual(mixed.map((m) => m.id).toSorted((a, b) => a - b), many(60, (i) => i));
  assert.ok(mixed.filter((m) => m.result).length <= limit / listed + 2);
  assert.equal(await callsOf(client), before + 1, 'only our own question was run');
});
