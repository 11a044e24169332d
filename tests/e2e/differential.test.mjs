// The same few hundred requests, once to server-everything itself and once through rialto, on every
// pair of transports and eras. The answers must be the same: byte for byte in the initialize era,
// and in the stateless era except for the members that it adds. Where they differ on purpose,
// the difference has a name here, and a name that no request needs any more fails the test.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import {
  exchange, HttpClient, load, npmFolder, npmServer, rialtoBin, serve, StdioClient, tempDir, until, writeConfig,
} from './lib.mjs';
import { META, MODERN, ModernClient, startHttp } from './peers.mjs';
import { freePort } from './upstream_lib.mjs';

const everything = path.join(npmFolder, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
// What rialto declares to a server that several agents share.
const declared = { elicitation: { form: {}, url: {} }, sampling: {} };

// --- the requests ---

const call = (name, args) => ['tools/call', `{"name":${JSON.stringify(name)},"arguments":${typeof args === 'string' ? args : JSON.stringify(args)}}`];
const with_ = (method, params) => [method, JSON.stringify(params)];

function* echoes() {
  const texts = ['', ' ', 'plain', 'ümläut ß', '日本語', '😀🏳️‍🌈', '\u0000\u0001\u001f', '\u007f\u0080\ufffe', '\ud83d\ude00',
    'line\nbreak\r\ttab', '"quoted" \\back/slash', '</script>', '\u2028\u2029', 'a'.repeat(10_000), '{"json":true}', 'rialto1.abc'];
  for (const message of texts) yield call('echo', { message });
  // The same in unusual notations.
  yield call('echo', '{"message":"\\u0041\\u00e9\\ud83d\\ude00\\/"}');
  yield call('echo', '{ "message" : "blanks" ,\t"more":[ 1 , 2 ] }');
  yield ['tools/call', '{"arguments":{"message":"arguments first"},"name":"echo"}'];
  yield ['tools/call', '{"name":"\\u0065cho","arguments":{"message":"escaped name"}}'];
  yield ['tools/call', '{"name":"echo","arguments":{"message":"with meta"},"_meta":{"example.com/a":1,"traceparent":"00-1-2-01"}}'];
  yield ['tools/call', '{"_meta":{},"name":"echo","arguments":{"message":"meta first"},"unknown":{"x":[null]}}'];
  yield ['tools/call', '{"name":"echo","arguments":{"message":"duplicate","message":"second"}}'];
  for (const wrong of ['{}', '{"message":1}', '{"message":null}', '{"message":["a"]}', '{"massage":"x"}', 'null', '[]', '"text"']) {
    yield call('echo', wrong);
  }
  yield ['tools/call', '{"name":"echo"}'];
}

// Strings of all kinds of characters, written in all kinds of ways; the same ones every time.
function* randomEchoes() {
  let seed = 20260728;
  const next = (n) => { // a linear congruence is random enough for this
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(seed / 65536) % n;
  };
  const ranges = [[0x20, 0x7e], [0, 0x1f], [0xa0, 0x24f], [0x4e00, 0x4eff], [0x1f300, 0x1f5ff], [0x22, 0x22], [0x5c, 0x5c]];
  for (let i = 0; i < 60; i++) {
    let raw = '"';
    for (let n = next(40); n > 0; n--) {
      const [low, high] = ranges[next(ranges.length)];
      const c = String.fromCodePoint(low + next(high - low + 1));
      const escaped = [...c].map((u) => u.split('').map((v) => `\\u${v.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')).join('');
      raw += next(3) === 0 ? escaped : JSON.stringify(c).slice(1, -1);
    }
    yield call('echo', `{"message":${raw}"}`);
  }
}

function* sums() {
  const numbers = ['0', '-0', '1', '1.0', '1e3', '1E-7', '-17.25', '0.1', '9007199254740991', '9007199254740993', '1e308', '123456789012345678901234567890'];
  for (const a of numbers) for (const b of ['0', '0.2', '1e21']) yield call('get-sum', `{"a":${a},"b":${b}}`);
  yield call('get-sum', '{"a":"1","b":2}');
  yield call('get-sum', '{"a":1}');
}

function* otherTools() {
  yield call('get-tiny-image', {});
  yield call('get-env', {});
  for (const messageType of ['error', 'success', 'debug', 'other']) {
    for (const includeImage of [true, false, 'yes']) yield call('get-annotated-message', { messageType, includeImage });
  }
  for (const location of ['New York', 'Chicago', 'Los Angeles', 'Atlantis']) yield call('get-structured-content', { location });
  for (let count = 0; count <= 11; count++) yield call('get-resource-links', { count });
  for (const resourceType of ['Text', 'Blob', 'None']) {
    for (const resourceId of [1, 2, 99, -1, 1.5, 'x']) yield call('get-resource-reference', { resourceType, resourceId });
  }
  for (const outputType of ['resource', 'bad']) {
    yield call('gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,hello', outputType });
  }
  yield call('trigger-long-running-operation', { duration: 0.05, steps: 2 });
  for (const name of ['no-such-tool', '', 'Echo', 'fixture__echo']) yield call(name, {});
  yield ['tools/call', '{"arguments":{}}'];
  yield ['tools/call', '{"name":17}'];
}

const documents = ['architecture', 'extension', 'features', 'how-it-works', 'instructions', 'startup', 'structure'];

function* reads() {
  for (const name of documents) yield with_('resources/read', { uri: `demo://resource/static/document/${name}.md` });
  for (const kind of ['text', 'blob']) {
    for (const id of [1, 2, 7, 42, 100, 0, -1, '1.5', 'abc', '%20', '1/2', '']) {
      yield with_('resources/read', { uri: `demo://resource/dynamic/${kind}/${id}` });
    }
  }
  for (const uri of ['demo://nothing', 'file:///etc/passwd', 'not a uri', '', 'DEMO://resource/dynamic/text/1']) {
    yield with_('resources/read', { uri });
  }
  yield ['resources/read', '{}'];
}

function* prompting() {
  yield with_('prompts/get', { name: 'simple-prompt' });
  yield with_('prompts/get', { name: 'simple-prompt', arguments: {} });
  yield with_('prompts/get', { name: 'simple-prompt', arguments: { extra: 'x' } });
  for (const args of [{ city: 'Paris' }, { city: 'Paris', state: 'Texas' }, { state: 'Texas' }, {}, { city: 7 }]) {
    yield with_('prompts/get', { name: 'args-prompt', arguments: args });
  }
  for (const department of ['Engineering', 'Sales', 'Nowhere']) {
    yield with_('prompts/get', { name: 'completable-prompt', arguments: { department, name: 'Alice' } });
  }
  for (const resourceType of ['Text', 'Blob', 'Other']) {
    for (const resourceId of ['1', '5', 'x']) {
      yield with_('prompts/get', { name: 'resource-prompt', arguments: { resourceType, resourceId } });
    }
  }
  yield with_('prompts/get', { name: 'no-such-prompt' });
  yield ['prompts/get', '{}'];
}

function* completing() {
  const complete = (ref, name, value, context) => with_('completion/complete', { ref, argument: { name, value }, ...(context && { context }) });
  const prompt = { type: 'ref/prompt', name: 'completable-prompt' };
  for (const value of ['', 'E', 'Eng', 'S', 'zzz', 'é']) {
    yield complete(prompt, 'department', value);
    yield complete(prompt, 'name', value, { arguments: { department: 'Engineering' } });
    yield complete(prompt, 'name', value);
  }
  for (const value of ['', '1', '12', 'x']) {
    yield complete({ type: 'ref/prompt', name: 'resource-prompt' }, 'resourceId', value);
    for (const kind of ['text', 'blob']) {
      yield complete({ type: 'ref/resource', uri: `demo://resource/dynamic/${kind}/{resourceId}` }, 'resourceId', value);
    }
  }
  yield complete(prompt, 'no-such-argument', 'x');
  yield complete({ type: 'ref/prompt', name: 'no-such-prompt' }, 'x', 'y');
  yield complete({ type: 'ref/resource', uri: 'demo://nothing/{x}' }, 'x', 'y');
  yield ['completion/complete', '{}'];
}

function* lists() {
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']) {
    yield [method, '{}'];
    yield [method, '{"_meta":{"example.com/a":1}}'];
    yield [method, '{"cursor":"nonsense"}'];
  }
}

function* legacyOnly() {
  yield ['ping', '{}'];
  for (const level of ['debug', 'error', 'emergency']) yield with_('logging/setLevel', { level });
  yield with_('logging/setLevel', { level: 'loud' });
  yield ['logging/setLevel', '{}'];
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
    yield with_(method, { uri: 'demo://resource/dynamic/text/1' });
    yield with_(method, { uri: 'demo://resource/static/document/startup.md' });
    yield [method, '{}'];
  }
  yield ['no/such/method', '{}'];
}

const common = [...lists(), ...echoes(), ...randomEchoes(), ...sums(), ...otherTools(), ...reads(), ...prompting(), ...completing()];
const legacyRequests = [...common, ...legacyOnly()];

// --- the differences ---

const parsed = (raw) => JSON.parse(raw);
const isError = (m) => m.error !== undefined;
const errorOf = (m) => m.error?.code;

// Each returns whether it applies, and checks the rest of the answer.
const differences = {
  'lists come in one page, so there is no cursor to give': (method, params, direct, bridged) => {
    if (!/\/list$/.test(method) || !('cursor' in params)) return false;
    assert.equal(errorOf(bridged), -32602);
    return true;
  },
  'an unknown tool is an error of the protocol, not a result of the tool': (method, params, direct, bridged) => {
    if (method !== 'tools/call' || !/not found|disabled/.test(direct.result?.content?.[0]?.text ?? '')) return false;
    assert.equal(errorOf(bridged), -32602);
    return true;
  },
  'what names nothing that is offered is refused in our own words': (method, params, direct, bridged) => {
    const unknown = ['tools/call', 'resources/read', 'prompts/get', 'completion/complete', 'resources/subscribe',
      'resources/unsubscribe', 'logging/setLevel', 'no/such/method'];
    if (!unknown.includes(method) || !isError(direct) || !isError(bridged)) return false;
    assert.ok([errorOf(direct), -32602, -32002].includes(errorOf(bridged)), `${errorOf(direct)} became ${errorOf(bridged)}`);
    return true;
  },
  'the environment is that of another process': (method, params) => method === 'tools/call' && params.name === 'get-env',
};

// Times of day in dynamic resources, also in encoded ones.
const time = /\d{1,2}:\d{2}:\d{2}\s?[AP]M/g;
const still = (raw) => raw.replace(time, 'TIME').replace(/"blob":"([^"]+)"/g, (whole, base64) => {
  const text = Buffer.from(base64, 'base64').toString();
  return time.test(text) ? `"blob of":${JSON.stringify(text.replace(time, 'TIME'))}` : whole;
});
const body = (raw) => {
  const m = parsed(raw);
  return m.error !== undefined ? { error: m.error } : { result: m.result };
};
// The raw text of the result or the error, wherever it is in the message.
function rawBody(raw) {
  const at = raw.search(/"(result|error)":/);
  const from = raw.slice(at);
  return from.replace(/,"jsonrpc":"2\.0","id":[^,{}]+\}$/, '}');
}

function compare(t, used, direct, bridged, { exact }) {
  assert.equal(direct.length, bridged.length);
  let same = 0;
  const nameless = [];
  direct.forEach(({ method, params, raw }, i) => {
    const other = bridged[i].raw;
    const where = `${method} ${params}\n  direct:  ${raw.slice(0, 300)}\n  bridged: ${other.slice(0, 300)}`;
    const a = still(raw);
    const b = still(other);
    if (exact ? rawBody(a) === rawBody(b) : isEqual(body(a), strip(body(b)))) {
      same++;
      return;
    }
    const name = Object.keys(differences).find((n) => {
      try {
        return differences[n](method, parsed(params), body(a), exact ? body(b) : strip(body(b)));
      } catch (e) {
        e.message = `${n}: ${e.message}\n  ${where}`;
        throw e;
      }
    });
    if (name) used.add(name);
    else nameless.push(where);
  });
  assert.equal(nameless.length, 0, `${nameless.length} differences without a name:\n${nameless.slice(0, 20).join('\n')}`);
  t.diagnostic(`${same} of ${direct.length} the same`);
  assert.ok(same > direct.length * 0.8, `only ${same} of ${direct.length} are the same`);
}

// What every result of the stateless era has, and the initialize era does not.
function strip({ result, error }) {
  if (error) return { error };
  const { resultType, ttlMs, cacheScope, _meta, ...rest } = result;
  assert.equal(resultType, 'complete');
  const { [`${META}serverInfo`]: info, ...meta } = _meta ?? {};
  assert.ok(info === undefined || info.name === 'rialto');
  return { result: { ...rest, ...(Object.keys(meta).length && { _meta: meta }) } };
}

function isEqual(a, b) {
  try {
    assert.deepStrictEqual(a, b);
    return true;
  } catch {
    return false;
  }
}

// --- sending requests ---

/** Sends the requests one after the other. */
const oneByOne = (ask) => async (requests) => {
  const answers = [];
  for (const [i, [method, params]] of requests.entries()) {
    answers.push({ method, params, raw: await ask(i + 100, method, params) });
  }
  return answers;
};

/** Sends all requests at once; the answers may come in any order. */
const allAtOnce = (agent, rewrite = (params) => params) => async (requests) => {
  const before = agent.lines.length;
  requests.forEach(([method, params], i) => {
    agent.send(`{"jsonrpc":"2.0","id":${i + 100},"method":${JSON.stringify(method)},"params":${rewrite(params)}}`);
  });
  const found = new Map();
  let read = before;
  await until('all answers', () => {
    for (; read < agent.lines.length; read++) {
      const { id, method } = JSON.parse(agent.lines[read]);
      if (!method) found.set(id, agent.lines[read]);
    }
    return found.size === requests.length;
  }, 60_000);
  return requests.map(([method, params], i) => ({ method, params, raw: found.get(i + 100) }));
};

const toModern = (params) => {
  const own = `"${META}protocolVersion":"${MODERN}","${META}clientCapabilities":${JSON.stringify(declared)}`;
  if (/"_meta":\{\}/.test(params)) return params.replace('"_meta":{', `"_meta":{${own}`);
  if (/"_meta":\{/.test(params)) return params.replace('"_meta":{', `"_meta":{${own},`);
  return params === '{}' ? `{"_meta":{${own}}}` : `{"_meta":{${own}},${params.trim().slice(1)}`;
};

async function modernOverHttp(url) {
  const agent = new ModernClient(url, { capabilities: declared });
  await agent.waitFor('echo', 'get-sum');
  return oneByOne(async (id, method, params) => {
    const { name, uri } = parsed(params);
    const named = ['tools/call', 'prompts/get'].includes(method) ? name : method === 'resources/read' ? uri : undefined;
    const plain = typeof named === 'string' && /^[!-~]([ -~]*[!-~])?$/.test(named);
    const answer = await exchange(url, {
      headers: {
        'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': MODERN, 'Mcp-Method': method,
        ...(typeof named === 'string' && { 'Mcp-Name': plain ? named : `=?base64?${Buffer.from(named).toString('base64')}?=` }),
      },
      body: `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${toModern(params)}}`,
    });
    return answer.text.startsWith('event:') ? answer.text.split('data: ').at(-1).trim() : answer.text;
  });
}

async function modernOverStdio(t, file) {
  const agent = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
  const ask = (id, method, params) => agent.rawRequest(String(id), method, toModern(params));
  let n = 100_000;
  await until('server-everything', async () => /"get-sum"/.test(await ask(n++, 'tools/list', '{}')));
  return allAtOnce(agent, toModern);
}

async function legacyOverHttp(url) {
  const agent = await new HttpClient(url).connect();
  await agent.waitFor('echo', 'get-sum');
  return oneByOne(async (id, method, params) => (await agent.rawRequest(String(id), method, params)).raw);
}

async function legacyOverStdio(t, file) {
  const agent = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
  await agent.connect();
  await agent.waitFor('echo', 'get-sum');
  return allAtOnce(agent);
}

/** A duplex pipe that is not a child process, with what allAtOnce needs: send and lines. */
async function pipeTo(t, url, open) {
  const agent = { lines: [] };
  agent.send = await open(t, url, (text) => agent.lines.push(text));
  const ask = async (id, method, params) => {
    agent.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    const line = await until(`answer to ${method}`, () => agent.lines.find((l) => JSON.parse(l).id === id));
    return JSON.parse(line).result;
  };
  await ask('hello', 'initialize', {
    protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'pipe', version: '1' },
  });
  agent.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  let n = 0;
  await until('server-everything', async () =>
    (await ask(`list${n++}`, 'tools/list', {})).tools.some((x) => x.name === 'get-sum'), 20_000);
  return allAtOnce(agent);
}

const overWebSocket = (t, url) => pipeTo(t, url, async (tt, at, take) => {
  const ws = new (load('ws'))(at.replace('http', 'ws'), 'mcp');
  tt.after(() => ws.terminate());
  ws.on('message', (data) => take(String(data)));
  await once(ws, 'open');
  return (text) => ws.send(text);
});

const overOldSse = (t, url) => pipeTo(t, url, async (tt, at, take) => {
  const stop = new AbortController();
  tt.after(() => stop.abort());
  const response = await fetch(`${at}/sse`, { headers: { Accept: 'text/event-stream' }, signal: stop.signal });
  let endpoint;
  (async () => {
    let rest = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + chunk).split('\n\n');
      rest = events.pop();
      for (const event of events) {
        const data = event.split('\n').find((l) => l.startsWith('data: '))?.slice(6);
        if (event.startsWith('event: endpoint')) endpoint = new URL(data, at);
        else if (data) take(data);
      }
    }
  })().catch(() => {}); // ended by the test
  await until('the endpoint', () => endpoint);
  // In order: each message is accepted before the next is sent.
  let last = Promise.resolve();
  return (text) => {
    last = last.then(() => exchange(endpoint, { headers: { 'Content-Type': 'application/json' }, body: text }));
  };
});

test('server-everything, directly and through rialto', async (t) => {
  const direct = new StdioClient(t, process.execPath, [everything, 'stdio']);
  await direct.connect({ capabilities: declared });
  await direct.waitFor('echo', 'get-sum');
  const straight = await allAtOnce(direct)(legacyRequests);
  direct.child.kill(); // it does not end by itself in time
  direct.stopping = Promise.resolve();
  t.diagnostic(`${straight.length} requests`);
  assert.ok(straight.length >= 250);

  const used = new Set();
  const entry = npmServer('server-everything', ['stdio']);
  const remote = async (mode, place) => {
    const port = await freePort(t);
    await startHttp(t, process.execPath, [everything, mode],
      { env: { PORT: String(port) }, pattern: /(running on port \d+|listening on port \d+)/i });
    return { url: `http://127.0.0.1:${port}/${place}`, ...(place === 'sse' && { transport: 'sse' }) };
  };
  const servers = { stdio: entry, HTTP: await remote('streamableHttp', 'mcp'), SSE: await remote('sse', 'sse') };
  // A new bridge each time: some tools leave state behind at the server.
  const through = async (tt, server) => `${(await serve(tt, { servers: { everything: server } })).url}/everything`;
  const fileFor = (server) => writeConfig(tempDir(), { names: 'bare', servers: { everything: server } });

  const agents = {
    'legacy agent on HTTP': [legacyRequests, async (tt, server) => legacyOverHttp(await through(tt, server)), true],
    'legacy agent on stdio': [legacyRequests, (tt, server) => legacyOverStdio(tt, fileFor(server)), true],
    'legacy agent on SSE': [legacyRequests, async (tt, server) => overOldSse(tt, await through(tt, server)), true],
    'legacy agent on WebSocket': [legacyRequests, async (tt, server) => overWebSocket(tt, await through(tt, server)), true],
    'modern agent on HTTP': [common, async (tt, server) => modernOverHttp(await through(tt, server)), false],
    'modern agent on stdio': [common, (tt, server) => modernOverStdio(tt, fileFor(server)), false],
  };
  const ways = {};
  for (const [agent, [requests, open, exact]] of Object.entries(agents)) {
    for (const [place, server] of Object.entries(servers)) {
      ways[`${agent}, server on ${place}`] = [requests, (tt) => open(tt, server), exact];
    }
  }
  for (const [name, [requests, open, exact]] of Object.entries(ways)) {
    await t.test(name, async (tt) => {
      const askAll = await open(tt);
      compare(tt, used, straight.slice(0, requests.length), await askAll(requests), { exact });
    });
  }
  assert.deepEqual(Object.keys(differences).filter((n) => !used.has(n)), [], 'differences that are none any more');
});
