// What the conductor writes down of a chain: the trace file, event by event. Names are those of the
// acceptance table.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { agent, Conductor, open, proxy } from './acp_lib.mjs';
import { exchange, sleep, tempDir, until } from './lib.mjs';

function traceFile() {
  const file = `${tempDir()}/trace.jsons`;
  const read = () => fs.readFileSync(file, 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  return { file, read };
}

/** Each event as one line of text; a response is shown with the method of its request. */
function story(events) {
  const methods = new Map(events.filter((e) => e.type === 'request').map((e) => [e.id, e.method]));
  return events.map((e) => {
    const what = e.type === 'response' ? `${methods.get(e.id)} ${e.is_error ? 'failed' : 'answered'}` : e.method;
    return `${e.from} > ${e.to}: ${what}`;
  });
}

const there = (method, ...ends) => ends.slice(1).map((to, i) => `${ends[i]} > ${to}: ${method}`);
const back = (method, ...ends) => there(`${method} answered`, ...ends.toReversed());

// The initialize of a proxy is traced with the method name of its generation.
const inits = { P1: 'initialize', P2: '_proxy/initialize', P3: 'proxy/initialize' };

for (const dialects of [['P2'], ['P3', 'P1'], []]) {
  test(`test_trace_snapshot, test_trace_generation (${dialects.join(' ') || 'no proxy'})`, async (t) => {
    const trace = traceFile();
    const c = await open(t, ['--trace', trace.file, 'agent', ...dialects.map((d) => `${d}:${proxy(d)}`), agent()]);
    await c.prompt(c.session, 'Hello');
    await assert.rejects(c.request('_test/unknown', { a: 1 }));
    await c.stop(0);
    const ends = ['Client', ...dialects.map((_, i) => `Proxy(${i})`), 'Agent'];
    const hello = [...dialects.map((d) => inits[d]), 'initialize'].map((m, i) => there(m, ends[i], ends[i + 1])[0]);
    const events = trace.read();
    assert.deepEqual(story(events), [
      ...hello, ...hello.map((l) => `${l.replace(/(.*) > (.*):/, '$2 > $1:')} answered`).reverse(),
      ...there('session/new', ...ends), ...back('session/new', ...ends),
      ...there('session/prompt', ...ends),
      // The order of the update and the answer across hops is not fixed: each is checked by itself below.
      ...story(events).filter((l) => / > .*: session\/(update|prompt answered)$/.test(l)),
      ...there('_test/unknown', ...ends), ...there('_test/unknown failed', ...ends.toReversed()),
    ]);
    for (const what of ['session/update', 'session/prompt answered']) {
      assert.deepEqual(story(events).filter((l) => l.endsWith(`: ${what}`)), there(what, ...ends.toReversed()));
    }
    assert.ok(events.every((e, i) => i === 0 || e.ts >= events[i - 1].ts), 'in the order of time');
    assert.ok(events.every((e) => e.type === 'response' || e.protocol === 'acp'));
    assert.deepEqual(events.find((e) => e.method === '_test/unknown').params, { a: 1 });
    assert.equal(events.findLast((e) => e.is_error).payload.code, -32601);
  });
}

test('v2_tracing_without_user_proxies_uses_version_neutral_bridge', async (t) => {
  const trace = traceFile();
  const c = new Conductor(t, ['--trace', trace.file, 'agent', agent()]);
  assert.deepEqual((await c.initialize(2, { strange: 1 })).unknownField, [1, 2.5, { a: null }]);
  await c.stop(0);
  const [asked, answered, ...rest] = trace.read();
  assert.deepEqual(rest, []);
  assert.deepEqual([asked.from, asked.to, asked.params.protocolVersion, asked.params.strange], ['Client', 'Agent', 2, 1]);
  assert.deepEqual([answered.from, answered.to, answered.payload.protocolVersion], ['Agent', 'Client', 2]);
});

test('test_trace_client_mcp_server: a call that travels back to the client', async (t) => {
  const trace = traceFile();
  const c = new Conductor(t, ['--trace', trace.file, 'agent', proxy('P2'), agent()]);
  c.answer = (method, params) => {
    if (method === 'mcp/connect') return { connectionId: 'c1' };
    if (method === 'mcp/disconnect') return {};
    if (params.method === 'initialize') return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } };
    return { content: [{ type: 'text', text: 'from the client' }] };
  };
  await c.initialize();
  const session = await c.newSession({ mcpServers: [{ type: 'acp', name: 'mine', serverId: 'client-1' }] });
  await c.callTool(session, 'mine', 'echo', { message: 'there' });
  await c.stop(0);
  const calls = trace.read().filter((e) => e.method === 'tools/call');
  assert.deepEqual(calls.map((e) => `${e.type} ${e.protocol} ${e.from} ${e.to}`), ['request mcp Agent Proxy(0)', 'request mcp Proxy(0) Client']);
  for (const { id, params } of calls) {
    assert.equal(params.arguments.message, 'there');
    assert.equal(trace.read().find((e) => e.type === 'response' && e.id === id).payload.content[0].text, 'from the client');
  }
});

// A notification of MCP may have no params at all.
test('tolerant_mcp_notification_params_are_traced_as_mcp', async (t) => {
  const trace = traceFile();
  const c = await open(t, ['--trace', trace.file, 'agent', proxy('P2', '--mcp', 'M1,M2a,M3c'), agent()]);
  for (const m of ['M1', 'M2a', 'M3c']) await c.callTool(c.session, m);
  await c.stop(0);
  const told = trace.read().filter((e) => e.method === 'notifications/initialized');
  assert.equal(told.length, 3);
  for (const e of told) assert.deepEqual([e.type, e.protocol, e.from, e.to], ['notification', 'mcp', 'Agent', 'Proxy(0)']);
});

for (const dialects of [[], ['P2', 'P3']]) {
  test(`tracing_preserves_json_rpc_batch_frames (${dialects.length} proxies)`, async (t) => {
    const trace = traceFile();
    const c = await open(t, ['--trace', trace.file, 'agent', ...dialects.map((d) => proxy(d)), agent()]);
    const got = [];
    c.onStray = (m) => got.push(m);
    c.send('[{"jsonrpc":"2.0","id":"b1","method":"_test/echo","params":{"n":1}},{"jsonrpc":"2.0","id":"b2","method":"_test/echo","params":{"n":2}}]');
    await until('the answer', () => got.length);
    assert.deepEqual(got, [[{ jsonrpc: '2.0', id: 'b1', result: { n: 1 } }, { jsonrpc: '2.0', id: 'b2', result: { n: 2 } }]]);
    await c.stop(0);
    const hops = dialects.length + 1;
    const events = trace.read();
    const asked = events.filter((e) => e.method === '_test/echo');
    assert.deepEqual(asked.map((e) => e.params.n).toSorted(), [...Array(hops).fill(1), ...Array(hops).fill(2)]);
    for (const e of asked) {
      const [answer] = events.filter((r) => r.type === 'response' && r.id === e.id);
      assert.deepEqual([answer.from, answer.to, answer.payload], [e.to, e.from, e.params]);
    }
  });
}

// Messages longer than 256 KiB, cancels and the conductor's own answers were not shown.
test('the live viewer shows every message', async (t) => {
  const c = await open(t, ['--serve', 'agent', proxy('P2'), agent()]);
  const [, address] = await until('the viewer', () => /watch at (http:\S+)/.exec(c.stderr));
  await c.request('_test/echo', { filler: 'x'.repeat(400_000) });
  const waiting = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"wait"}' }] });
  c.notify('$/cancel_request', { requestId: waiting.id });
  await assert.rejects(waiting);
  await assert.rejects(c.request('proxy/successor', { method: 'x' }));
  const { port } = new URL(address);
  for (const [headers, status] of [[{ Origin: 'http://evil.example' }, 403], [{ Host: `rebound.example:${port}` }, 403],
    [{ Host: `localhost:${port}`, Origin: `http://localhost:${port}` }, 200]]) {
    assert.equal((await exchange(`${address}events?from=0`, { method: 'GET', headers })).status, status, JSON.stringify(headers));
  }
  const { events } = await (await fetch(`${address}events?from=0`)).json();
  const seen = story(events).filter((l) => !/initialize|session\/new/.test(l));
  const ends = ['Client', 'Proxy(0)', 'Agent'];
  assert.deepEqual(seen, [
    ...there('_test/echo', ...ends), ...back('_test/echo', ...ends),
    ...seen.slice(4).filter((l) => /session\/prompt|cancel/.test(l)),
    ...there('proxy/successor', 'Client', 'Conductor'), ...there('proxy/successor failed', 'Conductor', 'Client'),
  ]);
  assert.deepEqual(seen.filter((l) => /cancel/.test(l)), there('$/cancel_request', ...ends));
  assert.match(events.find((e) => e.method === '_test/echo').params, /^\(4000\d\d bytes, too long to be shown\)$/);
  await c.stop(0);
});

// A proxy that is asked in the wrong dialect is started again and its first process dismissed. The answer to what that
// process had asked was traced with the name of freed memory.
test('a request of a process that was dismissed meanwhile is traced to its end', async (t) => {
  const folder = tempDir();
  fs.writeFileSync(`${folder}/proxy.mjs`, `import fs from 'node:fs';
    import readline from 'node:readline';
    const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    let init;
    readline.createInterface({ input: process.stdin }).on('line', (line) => {
      const m = JSON.parse(line);
      if (m.method === 'proxy/initialize') {
        fs.writeFileSync('${folder}/first', String(process.pid));
        say({ id: 77, method: '_vendor/hello', params: {} });
        setTimeout(() => say({ id: m.id, error: { code: -32601, message: 'Method not found' } }), 100);
      } else if (m.method === '_proxy/initialize') {
        init = m.id;
        say({ id: 1, method: '_proxy/successor', params: { method: 'initialize', params: m.params } });
      } else if (m.id === 1 && m.result) say({ id: init, result: m.result });
    });`);
  const trace = traceFile();
  const c = new Conductor(t, ['--trace', trace.file, 'agent', `'${process.execPath}' ${folder}/proxy.mjs`, agent()]);
  let answerHello;
  c.answer = () => new Promise((resolve) => { answerHello = resolve; });
  await c.initialize();
  const first = fs.readFileSync(`${folder}/first`, 'utf8');
  await until('the end of the first process', () => !fs.existsSync(`/proc/${first}`));
  await sleep(200);
  answerHello({});
  const hello = () => story(trace.read()).filter((l) => l.includes('_vendor/hello'));
  await until('the answer', () => hello().length > 1);
  assert.deepEqual(hello(), [...there('_vendor/hello', 'Proxy(0)', 'Client'), ...there('_vendor/hello answered', 'Client', 'Proxy(0)')]);
  await c.stop(0);
});
