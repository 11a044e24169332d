// Streamable HTTP: streams of the initialize era that are cut and resumed, calls that take long, and unused
// sessions.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { exchange, fake, HttpClient, load, serve, sleep, until, within } from './lib.mjs';
import { META, MODERN, ModernClient } from './peers.mjs';
import { data, listen, RawServer } from './upstream_lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const endings = [];
let server;

before(async () => {
  server = await serve({ after: (f) => endings.push(f) },
    { servers: { a: fake('--name', 'a'), b: fake('--name', 'b') } });
  await (await new HttpClient(server.url).connect()).waitFor('a__echo', 'b__echo');
});
after(async () => {
  for (const end of endings) await end();
});

/** An open response: {status, headers, events(), ended, cut()}. */
function openStream(client, { method = 'POST', headers = {}, message } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(client.url, {
      method, agent: false,
      headers: { ...client.headers, ...(method === 'GET' ? { Accept: 'text/event-stream' } : {}), ...headers },
    }, (response) => {
      const s = { status: response.statusCode, headers: response.headers, ended: false, text: '' };
      response.on('data', (d) => { s.text += d; });
      response.on('error', () => {});
      response.on('end', () => { s.ended = true; });
      s.events = () => s.text.split('\n\n').slice(0, -1).filter((b) => !b.startsWith(':'))
        .map((block) => Object.fromEntries(block.split('\n').map((l) => l.split(/: ?(.*)/s))));
      s.messages = () => s.events().filter((e) => e.data).map((e) => JSON.parse(e.data));
      s.ids = () => s.events().map((e) => e.id);
      s.cut = () => request.destroy();
      resolve(s);
    });
    request.on('error', (e) => reject(e));
    request.end(message && JSON.stringify(message));
  });
}

const slowCall = (id, steps, ms, tool = 'a__slow') => ({
  jsonrpc: '2.0', id, method: 'tools/call',
  params: { name: tool, arguments: { steps, ms }, _meta: { progressToken: `t${id}` } },
});
const resume = (client, id) => openStream(client, { method: 'GET', headers: { 'Last-Event-ID': id } });
const progressOf = (messages) => messages.filter((m) => m.method).map((m) => m.params.progress);

test('a call whose client was cut is resumed where it was cut', async () => {
  const client = await new HttpClient(server.url).connect();
  const post = await openStream(client, { message: slowCall(1, 6, 100) });
  await until('two events', () => post.messages().length === 2);
  post.cut();
  const seen = post.messages().length;
  const rest = await resume(client, post.ids().at(-1));
  assert.equal(rest.status, 200);
  assert.match(rest.headers['content-type'], /^text\/event-stream/);
  await until('the end of the stream', () => rest.ended);
  const all = [...post.messages().slice(0, seen), ...rest.messages()];
  assert.deepEqual(progressOf(all), [1, 2, 3, 4, 5, 6]);
  assert.equal(all.at(-1).id, 1);
  assert.ok(all.at(-1).result);
  const ids = [...post.ids(), ...rest.ids()];
  assert.equal(new Set(ids).size, ids.length, `ids are unique: ${ids}`);
  await client.close();
});

test('the answer waits for a client that comes late, and may be had again', async () => {
  const client = await new HttpClient(server.url).connect();
  const post = await openStream(client, { message: slowCall('late', 4, 50) });
  await until('an event', () => post.messages().length >= 1);
  post.cut();
  await sleep(500);
  for (let i = 0; i < 2; i++) {
    const rest = await resume(client, post.ids()[0]);
    await until('the end of the stream', () => rest.ended);
    assert.deepEqual(progressOf(rest.messages()), [1, 2, 3, 4]);
    assert.equal(rest.messages().at(-1).id, 'late');
    const nothing = await resume(client, rest.ids().at(-1));
    assert.equal(nothing.status, 204, 'nothing is left behind the answer');
  }
  await client.close();
});

test('each stream has its own events', async () => {
  const client = await new HttpClient(server.url).connect();
  const standing = await openStream(client, { method: 'GET' });
  const one = await openStream(client, { message: slowCall(1, 5, 60) });
  const two = await openStream(client, { message: slowCall(2, 5, 60, 'b__slow') });
  await until('events', () => one.messages().length && two.messages().length);
  one.cut();
  two.cut();
  await client.call('a__notify-list-changed');
  await until('list_changed', () => standing.messages().some((m) => m.method?.endsWith('list_changed')));
  const rest = await resume(client, two.ids().at(-1));
  await until('the end', () => rest.ended);
  assert.equal(rest.messages().at(-1).id, 2);
  assert.ok(rest.messages().every((m) => m.id === 2 || m.params.progressToken === 't2'));
  assert.equal(standing.ended, false, 'resuming a call does not touch the standing stream');
  const other = await resume(client, one.ids().at(-1));
  await until('the end', () => other.ended);
  assert.equal(other.messages().at(-1).id, 1);
  await client.call('a__notify-list-changed');
  standing.cut();
  await client.close();
});

test('the standing stream is resumed without a gap and without repetition', async () => {
  const client = await new HttpClient(`${server.url}/b`).connect(); // list changes of other servers are not sent there
  const changes = (s) => s.messages().filter((m) => m.method === 'notifications/tools/list_changed').length;
  const toggle = () => client.call('notify-list-changed');
  const first = await openStream(client, { method: 'GET' });
  await toggle();
  await until('a change', () => changes(first) === 1);
  const early = first.ids()[0];
  const late = first.ids().at(-1);
  first.cut();
  await sleep(50);
  await toggle();
  await sleep(300);
  const second = await resume(client, late);
  await until('the missed change', () => changes(second) === 1);
  await toggle();
  await until('the next change', () => changes(second) === 2);
  const third = await resume(client, early);
  await until('all changes since', () => changes(third) === 3);
  await until('the older one to be ended', () => second.ended);
  // A new GET gets what was not delivered yet, and only that.
  third.cut();
  await sleep(50);
  await toggle();
  await sleep(300);
  const fresh = await openStream(client, { method: 'GET' });
  await until('the change nobody got', () => changes(fresh) === 1);
  await sleep(100);
  assert.equal(changes(fresh), 1);
  fresh.cut();
  await client.close();
});

test('a client that is faster than we are takes its stream over', async () => {
  const client = await new HttpClient(server.url).connect();
  const post = await openStream(client, { message: slowCall(1, 6, 80) });
  await until('an event', () => post.messages().length === 2);
  const rest = await resume(client, post.ids().at(-1));
  await until('the first connection to be ended', () => post.ended);
  await until('the end', () => rest.ended);
  assert.deepEqual(progressOf([...post.messages(), ...rest.messages()]), [1, 2, 3, 4, 5, 6]);
  assert.equal(rest.messages().at(-1).id, 1);
  await client.close();
});

test('what a server asks during a cut is asked when the client is back', async () => {
  const client = await new HttpClient(server.url).connect({ capabilities: { roots: {} } });
  const post = await openStream(client, {
    message: {
      jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__ask', arguments: {} },
    },
  });
  await until('the question', () => post.messages().length === 1);
  const asked = post.messages()[0];
  assert.equal(asked.method, 'roots/list');
  post.cut();
  const again = await resume(client, post.ids()[0]);
  await until('the question again', () => again.messages().length === 1);
  assert.deepEqual(again.messages()[0], asked);
  assert.equal((await client.post({ jsonrpc: '2.0', id: asked.id, result: { roots: [] } })).status, 202);
  await until('the end', () => again.ended);
  assert.equal(again.messages().at(-1).id, 1);
  await client.close();
});

test('ids that are none of this session are refused', async () => {
  const client = await new HttpClient(server.url).connect();
  const other = await new HttpClient(server.url).connect();
  const post = await openStream(other, { message: slowCall(1, 1, 1) });
  await until('the end', () => post.ended);
  const own = await openStream(client, { message: slowCall(1, 1, 1) });
  await until('the end', () => own.ended);
  const [tag, stream, number] = own.ids().at(-1).split('-');
  for (const id of [post.ids()[0], 'nonsense', '-', '0-0-0', `${tag}`, `${tag}-${stream}`, `${tag}-${stream}-`,
    `${tag}-99-1`, `${tag}-${stream}-99999`, `${tag}-${stream}-${'9'.repeat(40)}`, `${tag}-${stream}-${number}x`]) {
    const answer = await resume(client, id);
    assert.equal(answer.status, 400, id);
    await until('its reason', () => /Last-Event-ID/.test(answer.text));
  }
  await other.close();
  assert.equal((await resume(other, post.ids()[0])).status, 404);
  await client.close();
});

for (const [version, primed] of [['2025-11-25', true], ['2025-06-18', false], ['2025-03-26', false]]) {
  test(`streams of ${version} ${primed ? 'begin with an event without data' : 'have ids but no empty event'}`, async () => {
    const client = await new HttpClient(server.url).connect({ version });
    const post = await openStream(client, { message: slowCall(1, 2, 5) });
    const get = await openStream(client, { method: 'GET' });
    await until('the end', () => post.ended);
    assert.ok(post.ids().every((id) => /^[0-9a-f]{8}-\d+-\d+$/.test(id)), post.text);
    for (const s of [post, get]) {
      const empty = s.events().filter((e) => !e.data);
      assert.equal(empty.length, primed ? 1 : 0, s.text);
      if (primed) assert.deepEqual(s.events()[0], { id: s.ids()[0], retry: '1000', data: '' });
      else assert.ok(!/retry/.test(s.text));
    }
    get.cut();
    await client.close();
  });
}

test('the store is bounded: the oldest events go first, the answer stays', async () => {
  const client = await new HttpClient(server.url).connect();
  const post = await openStream(client, { message: slowCall(1, 1500, 0) });
  await until('the end', () => post.ended);
  assert.equal(post.messages().length, 1501);
  const rest = await resume(client, post.ids()[0]);
  await until('the end', () => rest.ended);
  assert.equal(rest.messages().length, 1000);
  assert.equal(rest.messages().at(-1).id, 1);
  await client.close();
});

test('a large answer that nobody received is kept although it alone is over the limit', async () => {
  const client = await new HttpClient(server.url).connect({ capabilities: { roots: {} } });
  const post = await openStream(client, {
    message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__ask', arguments: {} } },
  });
  await until('the question', () => post.messages().length === 1);
  post.cut();
  await sleep(50);
  const roots = [{ uri: `file:///${'x'.repeat(400_000)}` }]; // the tool returns this answer as its result
  await client.post({ jsonrpc: '2.0', id: post.messages()[0].id, result: { roots } });
  await sleep(200);
  const rest = await resume(client, post.ids().at(-1));
  await until('the end', () => rest.ended);
  assert.equal(rest.messages().at(-1).id, 1);
  assert.ok(rest.text.length > 400_000);
  await client.close();
});

/** A TCP relay that can cut all its connections. */
async function relay(t, port) {
  const pairs = new Set();
  const listener = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1');
    const pair = [near, far];
    pairs.add(pair);
    for (const s of pair) s.on('error', () => {});
    near.on('close', () => { far.destroy(); pairs.delete(pair); });
    far.on('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise((resolve) => { listener.listen(0, '127.0.0.1', resolve); });
  t.after(() => { listener.close(); for (const [s] of pairs) s.destroy(); });
  return { port: listener.address().port, cut: () => { for (const [s] of pairs) s.destroy(); } };
}

test('the TypeScript SDK v1 comes through two cuts in one call', async (t) => {
  const between = await relay(t, new URL(server.url).port);
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${between.port}/mcp`), {
    reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 100, reconnectionDelayGrowFactor: 1, maxRetries: 5 },
  });
  client.onerror = () => {};
  await client.connect(transport);
  const seen = [];
  const result = client.callTool({ name: 'a__slow', arguments: { steps: 30, ms: 100 } }, undefined,
    { onprogress: (p) => seen.push(p.progress), timeout: 20_000 });
  await until('progress', () => seen.length >= 3);
  between.cut();
  await until('progress after a cut', () => seen.length >= 15);
  between.cut();
  const { content } = await within(20_000, 'the result', result);
  assert.ok(content[0].text);
  assert.deepEqual(seen, Array.from({ length: seen.length }, (_, i) => i + 1), 'no gap, no repetition');
  assert.ok(seen.length >= 29);
  await transport.terminateSession();
  await client.close();
});

describe('with time', { concurrency: true }, () => {
  test('a call that takes long becomes a stream, which can be resumed', async (t) => {
    const slow = await serve(t, { servers: { a: fake() } });
    const client = await new HttpClient(slow.url).connect();
    await client.waitFor('a__sleep');
    const post = await openStream(client, {
      message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__sleep', arguments: { ms: 18_000 } } },
    });
    assert.match(post.headers['content-type'], /^text\/event-stream/);
    await until('its id', () => post.ids().length === 1);
    post.cut();
    const rest = await resume(client, post.ids()[0]);
    await until('the answer', () => rest.ended, 20_000);
    assert.equal(rest.messages().at(-1).id, 1);
    await client.close();
  });

  // A call of the stateless era sent no byte before its answer: after the minutes that a proxy or fetch waits for
  // one, the connection was closed, which cancels the call.
  test('a call of the stateless era that takes long becomes a stream, if its client reads streams', async (t) => {
    const slow = await serve(t, { servers: { a: fake() } });
    const meta = { [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: {} };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__sleep', arguments: { ms: 16_500 }, _meta: meta } };
    const headers = { 'Content-Type': 'application/json', 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'a__sleep' };
    await new ModernClient(slow.url).waitFor('a__sleep');
    const client = (Accept) => ({ url: slow.url, headers: { ...headers, Accept } });
    const whole = openStream(client('application/json'), { message });
    const post = await openStream(client('application/json, text/event-stream'), { message });
    assert.match(post.headers['content-type'], /^text\/event-stream/);
    await until('a comment', () => post.text.startsWith(':'));
    assert.deepEqual(post.messages(), [], 'before the answer');
    await until('the answer', () => post.ended, 20_000);
    assert.equal(post.messages().at(-1).result.content[0].text, 'slept');
    assert.match((await whole).headers['content-type'], /^application\/json/);
  });

  // Revisions before 2025-11-25 get no id before the first message. A POST that had become a stream without one
  // cannot be resumed, but a question was put there: nobody saw it, and the call waited for ten minutes.
  test('a question of a call that was cut before it had an id comes on the standing stream', async (t) => {
    let ask;
    const raw = new RawServer({
      'tools/call': ({ sse }) => {
        ask = () => sse(data({ id: 'q', method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } } }));
        sse(': here');
      },
    });
    const { url } = await listen(t, raw.handler);
    const far = await serve(t, { servers: { far: { url, era: 'legacy' } } });
    const client = await new HttpClient(far.url).connect({ version: '2025-06-18', capabilities: { elicitation: {} } });
    await client.waitFor('far__echo');
    const standing = await client.listen();
    const post = await openStream(client, {
      message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'far__echo', arguments: {} } },
    });
    assert.match(post.headers['content-type'], /^text\/event-stream/);
    post.cut();
    await sleep(200);
    assert.deepEqual(post.events(), []);
    ask();
    await standing.waitFor('elicitation/create');
    await client.notify('notifications/cancelled', { requestId: 1 });
    standing.close();
  });

  test('a session without use ends, one with an open stream or call does not', async (t) => {
    const short = await serve(t, { servers: { a: fake() }, limits: { session_ttl: '2s' } });
    const unused = await new HttpClient(short.url).connect();
    await unused.waitFor('a__slow');
    const cut = await openStream(unused, { message: slowCall(1, 2, 10) });
    await until('the end', () => cut.ended);
    const listening = await new HttpClient(short.url).connect();
    const stream = await openStream(listening, { method: 'GET' });
    const calling = await new HttpClient(short.url).connect();
    const post = await openStream(calling, { message: slowCall(1, 200, 100) });
    await until('an event', () => post.messages().length > 0);
    const id = post.ids().at(-1);
    post.cut(); // the call goes on and keeps the session
    await sleep(17_000);
    assert.equal((await resume(unused, cut.ids()[0])).status, 404);
    assert.equal(stream.ended, false);
    const rest = await resume(calling, id);
    assert.equal(rest.status, 200);
    await until('the answer', () => rest.ended, 20_000);
    assert.equal(rest.messages().at(-1).id, 1);
    assert.equal((await exchange(short.url, { method: 'DELETE', headers: listening.headers })).status, 200);
    await until('its stream to end', () => stream.ended);
  });
});
