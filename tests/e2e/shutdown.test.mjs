// SIGTERM ended an open call over Streamable HTTP with an empty event stream, and calls on other
// transports without an answer: their clients waited for their timeouts. Now open calls have ten
// seconds to end; those that have not are answered with an error whose reason is `shutdown`, and
// only then are connections closed.
import assert from 'node:assert/strict';
import http from 'node:http';
import { test } from 'node:test';
import {
  exchange, fake, HttpClient, load, rialtoBin, serve, sseData, StdioClient, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { META, MODERN, ModernClient } from './peers.mjs';

const { WebSocket } = load('ws');
const servers = { a: { ...fake('--name', 'a'), concurrency: 0 } };
const hello = {
  protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' },
};
const modern = {
  [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'raw', version: '1' },
};

/** Requests on a pipe, responses found by id. */
function pipe(send, messages, _meta) {
  let next = 100;
  const request = (method, params) => {
    const id = next++;
    send({ jsonrpc: '2.0', id, method, params: { ...params, ...(_meta && { _meta }) } });
    return until(`the answer to ${method}`, () => messages().find((m) => m.id === id && !m.method), 20_000);
  };
  return { request, call: (name, args) => request('tools/call', { name, arguments: args }) };
}

async function legacyPipe(send, messages) {
  const agent = pipe(send, messages);
  await agent.request('initialize', hello);
  send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return agent;
}

async function overWebSocket(url, _meta) {
  const messages = [];
  const ws = new WebSocket(url.replace('http', 'ws'), ['mcp']);
  ws.on('message', (data) => messages.push(JSON.parse(data)));
  await new Promise((resolve, reject) => ws.on('open', resolve).on('error', reject));
  const send = (m) => ws.send(JSON.stringify(m));
  return _meta ? pipe(send, () => messages, _meta) : legacyPipe(send, () => messages);
}

async function overSse(origin, _meta) {
  let text = '';
  const request = http.request(`${origin}/sse`, { agent: false, headers: { Accept: 'text/event-stream' } });
  request.on('response', (response) => response.on('data', (d) => { text += d; }).on('error', () => {}));
  request.on('error', () => {});
  request.end();
  const [address] = await until('the endpoint', () => text.includes('\n\n') && sseData(text));
  const send = (m) => exchange(origin + address, {
    headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(m),
  }).catch(() => {});
  const messages = () => sseData(text).slice(1).map((m) => JSON.parse(m));
  return _meta ? pipe(send, messages, _meta) : legacyPipe(send, messages);
}

const inFlight = async (server, n) => until(`${n} open calls`, async () => {
  const { text } = await exchange(`${server.origin}/metrics`, { method: 'GET' });
  return text.split('\n').some((l) => l === `rialto_calls_in_flight{server="a"} ${n}`);
});

const told = (message, name) => {
  assert.equal(message.error?.data?.reason, 'shutdown', `${name}: ${JSON.stringify(message)}`);
};

test('every agent is told of the end of its calls before its connection closes', async (t) => {
  const server = await serve(t, { servers });
  await (await new HttpClient(server.url).connect()).waitFor('a__sleep');
  const agents = {
    'Streamable HTTP': await new HttpClient(server.url).connect(),
    'Streamable HTTP, stateless': new ModernClient(server.url),
    SSE: await overSse(server.origin),
    'SSE, stateless': await overSse(server.origin, modern),
    WebSocket: await overWebSocket(server.url),
    'WebSocket, stateless': await overWebSocket(server.url, modern),
  };
  const names = Object.keys(agents);
  const short = names.map((n) => agents[n].call('a__sleep', { ms: 4000 }));
  const long = names.map((n) => agents[n].call('a__sleep', { ms: 60_000 }));
  const open = Promise.allSettled([...short, ...long]);
  await inFlight(server, 2 * names.length);

  const ending = server.stop('SIGTERM', 15_000);
  await until('the signal to be heard', () => /stopping/.test(server.stderr()));
  for (const n of names)
    told(await within(3000, `refusal by ${n}`, agents[n].call('a__echo', { message: 'late' })), n);
  const stranger = await new HttpClient(server.url).post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: hello });
  assert.equal(stranger.status, 503, 'a new agent is not let in');

  const ends = await within(20_000, 'all ends', open);
  names.forEach((n, i) => {
    assert.equal(ends[i].value?.result?.content[0].text, 'slept', `${n}: ${JSON.stringify(ends[i])}`);
    told(ends[names.length + i].value ?? {}, n);
  });
  await ending;
});

for (const _meta of [undefined, modern]) {
  test(`on stdio, ${_meta ? 'stateless' : 'initialize'} era`, async (t) => {
    const file = writeConfig(tempDir(), { servers });
    const client = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
    const send = (m) => client.send(m);
    const agent = _meta ? pipe(send, () => client.messages(), _meta) : await legacyPipe(send, () => client.messages());
    await until('the tool', async () => (await agent.request('tools/list')).result.tools.some((x) => x.name === 'a__sleep'));
    const short = agent.call('a__sleep', { ms: 3000 });
    const long = agent.call('a__sleep', { ms: 60_000 });
    await agent.call('a__echo', { message: 'both calls have gone before this one' });
    client.child.kill('SIGTERM');
    await until('the signal to be heard', () => /have 10 s to end/.test(client.stderr));
    told(await agent.call('a__echo', { message: 'late' }), 'a late call');
    assert.equal((await short).result.content[0].text, 'slept');
    told(await long, 'the long call');
    assert.deepEqual(await within(3000, 'the end', client.ended), { code: 0, signal: null });
  });
}

test('when the last call has ended nothing more is waited for', async (t) => {
  const server = await serve(t, { servers });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__sleep');
  const last = client.call('a__sleep', { ms: 1500 });
  await inFlight(server, 1);
  const ending = server.stop('SIGTERM', 9000); // less than the ten seconds that open calls have
  assert.equal((await last).result.content[0].text, 'slept');
  await ending;
});

test('a second signal does not wait', async (t) => {
  const server = await serve({ after: () => {} }, { servers });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__sleep');
  client.call('a__sleep', { ms: 60_000 }).catch(() => {});
  await inFlight(server, 1);
  process.kill(server.pid, 'SIGTERM');
  await until('the signal to be heard', () => /have 10 s to end/.test(server.stderr()));
  process.kill(server.pid, 'SIGTERM');
  assert.deepEqual(await within(5000, 'the end', server.ended), { code: 1, signal: null });
});
