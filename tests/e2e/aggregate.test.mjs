// Several servers behind one endpoint: what is listed, where calls go, and that nothing a peer wrote
// is changed on the way.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fake, HttpClient, serve, serveAndConnect, sleep, stdio, until } from './lib.mjs';

const twoServers = {
  servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') },
};
const bothUp = ['alpha__echo', 'beta__echo'];

test('tools are listed in config order, whichever server is up first', async (t) => {
  const { client } = await serveAndConnect(t, {
    servers: {
      zulu: fake('--name', 'zulu', '--init-delay', 400),
      alpha: fake('--name', 'alpha'),
    },
  }, ['zulu__echo', 'alpha__echo']);
  const names = await client.toolNames();
  const servers = names.map((n) => n.split('__')[0]);
  assert.deepEqual(servers, [...servers].sort().reverse(), 'all of zulu before all of alpha');
  const own = (server) => names.filter((n) => n.startsWith(server)).map((n) => n.split('__')[1]);
  assert.deepEqual(own('zulu').slice(0, 3), ['echo', 'params', 'add'], 'the server\'s own order');
  assert.deepEqual(own('alpha'), own('zulu'));
});

test('a call reaches the server its name says', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  for (const name of ['alpha', 'beta']) {
    const { result } = await client.call(`${name}__whoami`);
    assert.equal(result.structuredContent.name, name);
  }
});

test('calls run concurrently on one server and on two', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const began = Date.now();
  const texts = await Promise.all(Array.from({ length: 20 },
    (_, i) => client.text(`${i % 2 ? 'alpha' : 'beta'}__sleep`, { ms: 300 })));
  assert.ok(texts.every((x) => x === 'slept'));
  assert.ok(Date.now() - began < 2000, `20 sleeps of 300 ms took ${Date.now() - began} ms`);
});

test('answers out of order find their calls, over HTTP and over stdio', async (t) => {
  const config = { servers: { odd: fake('--reverse') } };
  const ids = Array.from({ length: 12 }, (_, i) => i);
  const echoed = (raw) => JSON.parse(raw).result.structuredContent.n;

  const { client } = await serveAndConnect(t, config, ['odd__echo']);
  const answers = await Promise.all(ids.map((n) => client.rawRequest(n, 'tools/call',
    `{"name":"odd__echo","arguments":{"n":${n}}}`)));
  assert.deepEqual(answers.map((a) => echoed(a.raw)), ids);

  const line = await stdio(t, config, ['odd__echo']);
  const lines = await Promise.all(ids.map((n) => line.rawRequest(String(n), 'tools/call',
    `{"name":"odd__echo","arguments":{"n":${n}}}`)));
  assert.deepEqual(lines.map(echoed), ids);
});

const rawIds = ['1', '"1"', '0', '""', '-7', '12345678901234567890', '1.0', '1e2', '"\\u0041é\\/"',
  '"a \\"quoted\\" id"'];

test('ids come back byte for byte, whatever their type', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  for (const id of rawIds) {
    for (const [method, params] of [['ping', '{}'], ['tools/list', '{}'],
      ['tools/call', '{"name":"beta__echo","arguments":{}}'],
      ['tools/call', '{"name":"no_such_tool","arguments":{}}'], ['no/such/method', '{}']]) {
      const { raw } = await client.rawRequest(id, method, params);
      assert.ok(raw.includes(`"id":${id}`), `${method}: ${id} in ${raw.slice(0, 200)}`);
    }
  }
});

const lexemes = '{"n":1.50,"e":1E+2,"neg":-0.0,"big":123456789012345678901234567890,'
  + '"text":"\\u00e9\\/é","z":1,"a":{"deep":[ 1 , 2.0 ]},"a b":null}';

test('arguments arrive and come back byte for byte', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const { raw } = await client.rawRequest('1', 'tools/call',
    `{"name":"alpha__echo","arguments":${lexemes}}`);
  assert.ok(raw.includes(`"structuredContent":${lexemes}`), raw);
  assert.ok(raw.includes('"x-unknown":{"lexeme":1.50e+2}'), 'an unknown member of the result');

  const line = await stdio(t, twoServers, bothUp);
  const answer = await line.rawRequest('1', 'tools/call',
    `{"name":"alpha__echo","arguments":${lexemes}}`);
  assert.ok(answer.includes(`"structuredContent":${lexemes}`), answer);
});

test('schemas in the list keep their lexemes and unknown members', async (t) => {
  const { client } = await serveAndConnect(t, { servers: { alpha: fake('--tools', 3) } },
    ['alpha__tool_2']);
  const { raw } = await client.rawRequest('1', 'tools/list', '{}');
  assert.ok(raw.includes('{"type":"string","x-lexeme":1.50}'), raw.slice(0, 400));
  assert.ok(raw.includes('"minimum":1,"maximum":1e3'), raw.slice(-400));
});

test('an error of the server passes with its code, message and data', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const { raw } = await client.rawRequest('1', 'tools/call', '{"name":"beta__error"}');
  assert.match(raw, /"code":-32050/);
  assert.match(raw, /refused on purpose/);
  assert.ok(raw.includes('{"limit":1.0,"big":9007199254740993}'), raw);
  const { result } = await client.call('beta__fail');
  assert.equal(result.isError, true);
});

test('params pass, but what belongs to the hop stays on the hop', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const { raw, message } = await client.rawRequest('"mine"', 'tools/call',
    '{"name":"alpha__params","x-extra":1.0,"_meta":{"progressToken":"tok","example.org/k":2.50},'
    + '"arguments":{}}');
  const { id, params } = message.result.structuredContent;
  assert.notEqual(id, 'mine', 'ids never cross a hop');
  assert.equal(params.name, 'params');
  assert.notEqual(params._meta.progressToken, 'tok', 'progress tokens never cross a hop');
  assert.ok(raw.includes('"x-extra":1.0') && raw.includes('"example.org/k":2.50'), raw);
});

for (const token of ['"tok"', '7', '"7"', '0']) {
  test(`progress comes in order with token ${token}, before the answer`, async (t) => {
    const { client } = await serveAndConnect(t, twoServers, bothUp);
    const { events, message } = await client.rawRequest('1', 'tools/call',
      `{"name":"alpha__slow","arguments":{"steps":3,"ms":20},"_meta":{"progressToken":${token}}}`);
    assert.equal(message.result.content[0].text, 'done slowly');
    const progress = events.filter((e) => e.method === 'notifications/progress');
    assert.deepEqual(progress.map((e) => e.params.progress), [1, 2, 3]);
    assert.ok(progress.every((e) => e.params.progressToken === JSON.parse(token)));
  });
}

test('two callers with the same progress token get their own progress only', async (t) => {
  const { client, server } = await serveAndConnect(t, twoServers, bothUp);
  const other = await new HttpClient(server.url).connect();
  const slow = (c, steps) => c.rawRequest('1', 'tools/call',
    `{"name":"alpha__slow","arguments":{"steps":${steps},"ms":20},"_meta":{"progressToken":1}}`);
  const [a, b] = await Promise.all([slow(client, 2), slow(other, 5)]);
  assert.deepEqual(a.events.map((e) => e.params.total), [2, 2]);
  assert.deepEqual(b.events.map((e) => e.params.total), [5, 5, 5, 5, 5]);
});

test('a cancelled call is cancelled at its server, and nowhere else', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const sleeping = client.post({
    jsonrpc: '2.0', id: 'long', method: 'tools/call',
    params: { name: 'alpha__sleep', arguments: { ms: 60_000 } },
  });
  const alongside = client.text('alpha__sleep', { ms: 400 });
  const whoami = async () => (await client.call('alpha__whoami')).result.structuredContent;
  await until('the call to arrive', async () => (await whoami()).calls >= 3);
  const answer = await client.notify('notifications/cancelled', { requestId: 'long', reason: 'test' });
  assert.equal(answer.status, 202);
  await until('the cancel to arrive', async () => (await whoami()).cancelled === 1);
  assert.equal(await alongside, 'slept');
  const ended = await Promise.race([sleeping, sleep(2000)]);
  assert.ok(ended, 'the cancelled POST ends too');
});

test('an unknown tool, method and server are refused clearly', async (t) => {
  const { client, server } = await serveAndConnect(t, twoServers, bothUp);
  const tool = await client.call('alpha__nothing');
  assert.equal(tool.error.code, -32602);
  assert.match(tool.error.message, /alpha__nothing/);
  assert.equal((await client.request('no/such')).error.code, -32601);
  const elsewhere = new HttpClient(`${server.url}/gamma`);
  const answer = await elsewhere.post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} });
  assert.equal(answer.status, 404);
});

test('/mcp/<server> is that server alone, names untouched', async (t) => {
  const { server } = await serveAndConnect(t, twoServers, bothUp);
  const beta = await new HttpClient(`${server.url}/beta`).connect();
  const names = await beta.waitFor('echo');
  assert.ok(names.every((n) => !n.includes('__')), names.join());
  assert.equal((await beta.call('whoami')).result.structuredContent.name, 'beta');
  assert.equal((await beta.call('beta__whoami')).error.code, -32602);
});

test('the naming pattern, allow and deny hold for lists and for calls', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    names: 'mcp_{server}_{tool}',
    servers: {
      alpha: { ...fake('--name', 'alpha'), allow: ['echo', 'a*'] },
      beta: { ...fake('--name', 'beta'), deny: ['echo', 's*'] },
    },
  }, ['mcp_alpha_echo', 'mcp_beta_add']);
  const names = await client.toolNames();
  assert.deepEqual(names.filter((n) => n.startsWith('mcp_alpha_')),
    ['mcp_alpha_echo', 'mcp_alpha_add', 'mcp_alpha_ask']);
  assert.ok(!names.includes('mcp_beta_echo') && !names.includes('mcp_beta_sleep'));
  assert.ok((await client.call('mcp_alpha_env')).error);
  assert.ok((await client.call('mcp_beta_echo')).error);
  const alone = await new HttpClient(`${server.url}/beta`).connect();
  assert.ok((await alone.call('echo')).error, 'also at /mcp/<server>');
});

test('a server that changes its list is heard once, and the list is the new one', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const changed = 'notifications/tools/list_changed';
  const stream = await client.listen();
  await stream.settle();
  const before = stream.count(changed);
  assert.ok(!(await client.toolNames()).includes('beta__extra'));
  assert.equal(await client.text('beta__notify-list-changed'), 'shown');
  await stream.waitFor(changed, before + 1);
  assert.ok((await client.toolNames()).includes('beta__extra'));
  assert.equal(await client.text('beta__notify-list-changed'), 'hidden');
  await stream.waitFor(changed, before + 2);
  assert.ok(!(await client.toolNames()).includes('beta__extra'));
  await stream.settle();
  assert.equal(stream.count(changed), before + 2);
  stream.close();
});

test('a question nobody can answer gets an error, and the call ends', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const { result } = await client.call('alpha__ask', { method: 'sampling/createMessage' });
  assert.ok(result.structuredContent.error, JSON.stringify(result));
});

test('many sessions at once, each with its own ids', async (t) => {
  const server = await serve(t, twoServers);
  const clients = await Promise.all(Array.from({ length: 10 },
    () => new HttpClient(server.url).connect()));
  await clients[0].waitFor(...bothUp);
  const answers = await Promise.all(clients.flatMap((c, n) => Array.from({ length: 10 }, (_, i) =>
    c.rawRequest(String(i), 'tools/call', `{"name":"beta__echo","arguments":{"from":${n},"i":${i}}}`))));
  answers.forEach((a, k) => {
    assert.deepEqual(a.message.result.structuredContent, { from: Math.floor(k / 10), i: k % 10 });
    assert.equal(a.message.id, k % 10);
  });
});

test('a megabyte passes both ways', async (t) => {
  const { client } = await serveAndConnect(t, twoServers, bothUp);
  const message = 'm'.repeat(1 << 20);
  const { result } = await client.call('alpha__echo', { message });
  assert.equal(result.structuredContent.message, message);
  assert.equal((await client.text('beta__big', { bytes: 3 << 20 })).length, 3 << 20);
});
