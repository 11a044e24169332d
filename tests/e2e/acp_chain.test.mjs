// The relay chain: initialisation of every dialect, passing by name, nesting, cancelling, versions.
// Test titles are the names of the acceptance table (docs/conductor.md, "Tests by name").
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { agent, Conductor, inner, open, proxy, rejects } from './acp_lib.mjs';
import {
  descendants, rialto, rialtoBin, tempDir, until,
} from './lib.mjs';

const seen = (c) => c.request('_test/seen', {});

test('test_single_component_gets_initialize_request, test_single_component_no_proxy_offer', async (t) => {
  const c = await open(t, ['agent', agent()]);
  const { methods, raw } = await seen(c);
  assert.equal(methods[0], 'initialize');
  assert.ok(!raw.some((line) => line.includes('"proxy"')), 'no proxy offer');
  assert.equal(await c.stop(0), 0);
});

for (const dialect of ['P0', 'P0n', 'P1', 'P2', 'P3']) {
  test(`test_two_components, test_two_components_proxy_gets_initialize_proxy (${dialect}, detected)`, async (t) => {
    const c = await open(t, ['agent', proxy(dialect, '--arrow'), agent()]);
    const { methods, raw } = await seen(c);
    assert.equal(methods[0], 'initialize');
    assert.ok(!raw.some((line) => line.includes('"proxy"')), 'no proxy offer to the agent');
    assert.deepEqual(await c.prompt(c.session, 'Hello'), ['>Hello']);
    assert.ok(!JSON.stringify(c.initialized).includes('"proxy"'), 'the echo is stripped');
  });

  test(`a proxy whose dialect is given is not probed (${dialect})`, async (t) => {
    const p = dialect === 'P0n' ? 'P0' : dialect;
    const c = await open(t, ['-v', 'agent', `${p.toLowerCase()}:${proxy(dialect, '--arrow', '--exit-on-unknown')}`, agent()]);
    assert.deepEqual(await c.prompt(c.session, 'Hello'), ['>Hello']);
    assert.doesNotMatch(c.stderr, /starting it again/);
  });
}

test('test_three_components_all_proxies_get_initialize_proxy', async (t) => {
  const c = await open(t, ['agent', proxy('P3', '--arrow'), proxy('P3', '--arrow'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>>x']);
});

test('a proxy that ends at a wrong first message is started again with the next dialect', async (t) => {
  const c = await open(t, ['agent', proxy('P1', '--arrow', '--exit-on-unknown'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
  assert.match(c.stderr, /starting it again/);
});

test('a proxy that says nothing to a question it does not know is asked in the next dialect as well', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--arrow', '--ignore-unknown'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
  assert.match(c.stderr, /no answer to initialize yet: trying P2 as well/);
});

// A proxy that answers the first dialect's initialize only after others were tried is initialised once. A
// proxy that forwards even a plain initialize sent our own back to us, and we refused it as its mistake.
test('a proxy that is slow to answer is initialised once', async (t) => {
  await Promise.all([[], ['--forward-plain']].map(async (more) => {
    const c = await open(t, ['agent', proxy('P3', '--arrow', '--slow-init', 6000, ...more), agent()]);
    assert.match(c.stderr, /trying P2 as well/);
    assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
    assert.deepEqual((await seen(c)).methods.filter((m) => m === 'initialize').length, 1);
  }));
});

test('test_proxy_component_must_respond_with_proxy', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P1', '--no-echo'), agent()]);
  await rejects(c.initialize(), -32603, /component 0 is not a proxy/);
  await rejects(c.request('session/new', {}), -32603, /component 0 is not a proxy/);
  await c.stop(1);
});

test('test_proxy_component_must_strip_proxy_when_forwarding', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P1', '--no-strip'), agent()]);
  await rejects(c.initialize(), -32603, /unexpected initialization request with proxy capability/);
});

test('test_conductor_rejects_initialize_proxy_forwarded_to_agent', async (t) => {
  const c = new Conductor(t, ['agent', `p3:${proxy('P3', '--forward-init')}`, agent()]);
  await rejects(c.initialize(), -32600, /only sent by the conductor/);
});

test('test_conductor_rejects_initialize_proxy_forwarded_to_proxy', async (t) => {
  const c = new Conductor(t, ['agent', `p2:${proxy('P2', '--forward-init')}`, proxy('P2'), agent()]);
  await rejects(c.initialize(), -32600, /only sent by the conductor/);
});

test('test_conductor_with_arrow_proxy_and_test_agent', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--arrow'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'Hello, world!'), ['>Hello, world!']);
});

test('test_conductor_with_two_external_arrow_proxies', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--arrow'), proxy('P2', '--arrow'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'Hello, world!'), ['>>Hello, world!']);
});

for (const parent of ['P1', 'P2', 'P3']) {
  test(`test_nested_conductor_with_arrow_proxies, test_nested_conductor_with_external_arrow_proxies (${parent})`, async (t) => {
    const nested = inner('proxy', proxy('P2', '--arrow'), proxy('P1', '--arrow'));
    const c = await open(t, ['agent', `${parent}:${nested}`, agent()]);
    assert.deepEqual(await c.prompt(c.session, 'Hello, world!'), ['>>Hello, world!']);
    const permission = new Promise((resolve) => { c.answer = (m, p) => { resolve(p); return { outcome: { outcome: 'selected', optionId: 'yes' } }; }; });
    assert.match((await c.prompt(c.session, { command: 'permission' }))[0], /selected/);
    assert.equal((await permission).sessionId, c.session);
  });

  test(`test_conductor_with_empty_conductor_and_test_agent (${parent})`, async (t) => {
    const c = await open(t, ['agent', `${parent}:${inner('proxy')}`, proxy('P3', '--arrow'), agent()]);
    assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
  });
}

// P0 greets like P1, so it has to be selected with an option; its envelopes have different names in each
// direction.
test('a conductor of the oldest dialect around this one', async (t) => {
  const c = new Conductor(t, ['--proxy-dialect', 'P0', 'proxy']);
  c.answer = (method, params) => {
    assert.equal(method, '_proxy/successor/send/request');
    return params.method === 'initialize' ? { protocolVersion: 1, agentCapabilities: {} } : { told: params };
  };
  const hello = await c.initialize(1, { clientCapabilities: { _meta: { symposium: { version: '1.0', proxy: true } } } });
  assert.equal(hello.agentCapabilities._meta.symposium.proxy, true);
  assert.deepEqual(c.heard[0].params.params.clientCapabilities, { _meta: { symposium: { version: '1.0' } } }, 'without the offer');
  assert.deepEqual(await c.request('_test/x', { n: 1 }), { told: { method: '_test/x', params: { n: 1 } } });
  c.notify('_test/y', { n: 2 });
  await until('the notification', () => c.heard.some((m) => m.method === '_proxy/successor/send/notification' && m.params.method === '_test/y'));
  c.answer = (method, params) => ({ plain: method, params });
  assert.deepEqual(await c.request('_proxy/successor/receive/request', { method: '_test/z', params: { n: 3 } }), { plain: '_test/z', params: { n: 3 } });
});

test('a conductor inside a conductor inside a conductor', async (t) => {
  const deep = inner('proxy', proxy('P3', '--arrow'));
  const quoted = JSON.stringify({ command: process.env.RIALTO_TEST_SHELL ?? '/bin/sh', args: ['-c', `exec ${deep.replaceAll("'", '"')}`] });
  const middle = JSON.stringify({ command: '/bin/sh', args: ['-c', 'exec "$0" conductor proxy "$1"', inner().split("'")[1], quoted] });
  const c = await open(t, ['agent', middle, proxy('P2', '--arrow'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>>x']);
});

test('an agent conductor that is made a proxy becomes one, unless it is strict', async (t) => {
  const c = await open(t, ['agent', inner('agent', proxy('P2', '--arrow')), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
  const strict = new Conductor(t, ['agent', `p3:${inner('--strict', 'agent', proxy('P2'))}`, agent()]);
  await rejects(strict.initialize(), -32603, /component 0 is not a proxy/);
});

test('the program is a conductor by its name, too', async (t) => {
  const link = `${tempDir()}/conductor`;
  fs.symlinkSync(rialtoBin, link);
  const c = new Conductor(t, ['agent', agent()], { command: [link] });
  assert.equal((await c.initialize()).protocolVersion, 1);
});

test('command lines: words, quotes, environment and JSON, as the process gets them', async (t) => {
  const show = `${tempDir()}/show.mjs`;
  fs.writeFileSync(show, 'console.error(JSON.stringify([process.argv.slice(2), process.env.FOO ?? null])); process.exitCode = 1;');
  for (const [line, got] of [
    [`${process.execPath} ${show}`, [[], null]],
    [`  '${process.execPath}' "${show}" one 'two three' "fo\\"ur" fi\\ ve ''  `, [['one', 'two three', 'fo"ur', 'fi ve', ''], null]],
    [`FOO='a b' BAR= ${process.execPath} ${show} $HOME FOO=c`, [['$HOME', 'FOO=c'], 'a b']],
    [JSON.stringify({ command: process.execPath, args: [show, 'a "b"', '$HOME'], env: { FOO: 'é' } }), [['a "b"', '$HOME'], 'é']],
  ]) {
    const c = new Conductor(t, ['agent', line]);
    await assert.rejects(c.initialize(), (e) => {
      assert.deepEqual(JSON.parse(e.data.stderr[0]), got);
      return true;
    });
    await c.stop(1);
  }
  for (const [line, why] of [
    ['', /is empty/], ['K=V', /names no program/], ["'open", /quote is not closed/], ['{"command":"x","args":1}', /"args" is not an array/],
    ['{"mcpServers":{"x":{"command":"y"}}}', /"mcpServers"/], ['{"name":"x","command":"y","args":[],"env":[]}', /"name"/],
  ]) {
    const { code, stderr } = await rialto(['conductor', 'agent', line]);
    assert.equal(code, 2, line);
    assert.match(stderr, why);
  }
});

test('zero components: an agent conductor has nobody to ask', async (t) => {
  const c = new Conductor(t, ['agent']);
  await rejects(c.initialize(), -32603, /no agent component in list/);
});

test('a first message other than initialize is refused, and initialize still works', async (t) => {
  const c = new Conductor(t, ['agent', agent()]);
  await rejects(c.request('session/new', {}), -32600, /expected `initialize` request/);
  assert.deepEqual(descendants(c.child.pid), [], 'components are started by initialize');
  assert.equal((await c.initialize()).protocolVersion, 1);
  assert.equal(descendants(c.child.pid).length, 1);
});

test('mixed chain: P1, P2, P3 and P0 proxies before one agent, unknown methods untouched', async (t) => {
  const c = await open(t, ['agent', ...['P1', 'P2', 'P3', 'P0'].map((d) => proxy(d, '--arrow')), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>>>>x']);
  const params = { z: 1, a: [1.0, 2e3], deep: { _meta: { traceparent: '00-1' } } };
  assert.deepEqual((await c.request('_test/raw', params)).params, params);
});

test('raw fidelity: every byte but the id passes through a chain without proxies, both ways', async (t) => {
  // The agent answers with the line that it got, formatted as no library would write it.
  const script = `
    require('readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      const result = method === 'initialize' ? '{"protocolVersion":1}' : JSON.stringify(line);
      process.stdout.write('{"odd" : [1.50,"\\\\u00e9"], "result":' + result + ', "id":' + id + ' ,"jsonrpc":"2.0"}\\n');
    })`;
  const c = new Conductor(t, ['agent', JSON.stringify({ command: process.execPath, args: ['-e', script] })]);
  await c.initialize();
  const asked = (id) => `{"odd":{"a" : 1.0}, "method":"_test/x","params":{"z":1.50e+2,"a":"\\u00e9\\/", "big":12345678901234567890}, "id" : ${id},"jsonrpc":"2.0"}`;
  c.send(asked('"x-1"'));
  const line = await until('the answer', () => c.lines.find((l) => l.includes('x-1')));
  const [, id] = /\\"id\\" : (\d+)/.exec(line);
  assert.equal(line, `{"odd" : [1.50,"\\u00e9"], "result":${JSON.stringify(asked(id))}, "id":"x-1" ,"jsonrpc":"2.0"}`);
});

test('conductor_proxy_chain_preserves_prompt_meta', async (t) => {
  const c = await open(t, ['agent', proxy('P2'), proxy('P1'), agent()]);
  const _meta = { traceparent: '00-abc-def-01', tracestate: 'k=v', baggage: 'a=b' };
  await c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: 'x', _meta }], _meta });
  const arrived = (await seen(c)).raw.map((l) => JSON.parse(l)).find((m) => m.method === 'session/prompt').params;
  assert.deepEqual([arrived._meta, arrived.prompt[0]._meta], [_meta, _meta]);
});

// Old proxies fail on an envelope without params: null is sent instead.
test('a message without params passes proxies of every generation', async (t) => {
  const c = await open(t, ['agent', ...['P1', 'P2', 'P3', 'P0', 'P0n'].map((d) => proxy(d)), agent()]);
  await c.prompt(c.session, { command: 'bare' });
  assert.deepEqual(c.heard.filter((m) => m.method === '_test/bare').length, 1);
});

test('unparsable lines and wrong shapes are answered, answers never are', async (t) => {
  const c = await open(t, ['agent', agent()]);
  const stray = [];
  c.onStray = (m) => stray.push(m);
  c.send('{"jsonrpc": nonsense');
  c.send('{"jsonrpc":"2.0","id":7}');
  c.send('{"jsonrpc":"2.0","id":99,"result":{}}');
  c.send('{"jsonrpc":"2.0","result":1,"error":2}');
  c.send('');
  assert.deepEqual(await c.prompt(c.session, 'still here'), ['still here']);
  assert.deepEqual(stray.map((m) => [m.id, m.error.code]), [[null, -32700], [null, -32600]]);
});

// --- batches ---

/** Collects messages that answer no request of this client: here, arrays. */
function strays(c) {
  const found = [];
  c.onStray = (m) => found.push(m);
  return found;
}

const asked = (id, method, params) => ({ jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, ...(params && { params }) });

for (const chain of [[], ['P2', 'P0n']]) {
  test(`a batch is answered by one array, whatever is in it (${chain.length} proxies)`, async (t) => {
    const c = await open(t, ['agent', ...chain.map((d) => proxy(d)), agent()]);
    const got = strays(c);
    c.send([
      asked('b1', '_test/echo', { n: 1 }), asked(undefined, '_test/nothing'), asked('b2', '_test/unknown'),
      asked('b3', 'session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"wait"}' }] }),
      17, [asked('deep', '_test/echo', {})], { jsonrpc: '2.0', id: 'stray', result: {} }, asked('b4', 'proxy/initialize', {}),
      asked(undefined, '$/cancel_request', { requestId: 'b3' }),
    ]);
    // The batch does not hold up other requests: the agent gets its messages one by one.
    assert.deepEqual(await c.request('_test/echo', { alone: true }), { alone: true });
    await until('the array', () => got.length);
    const answers = got[0].map((m) => [m.id, m.error?.code ?? m.result]);
    const byId = (a, b) => String(a).localeCompare(String(b));
    assert.deepEqual(answers.toSorted(byId), [
      ['b1', { n: 1 }], ['b2', -32601], ['b3', -32800], ['b4', -32600], [null, -32600], [null, -32600],
    ].toSorted(byId));
    c.send('[]');
    c.send([asked(undefined, '_test/nothing')]);
    await until('the refusal', () => got.length === 2);
    assert.equal(got[1].error.code, -32600);
    assert.deepEqual(await c.prompt(c.session, 'still here'), ['still here']);
    assert.equal(got.length, 2, 'nothing is said to notifications');
  });
}

test('a batch that begins with initialize, and one that a component does not live to answer', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P1'), agent()]);
  const got = strays(c);
  const setup = { cwd: '/', mcpServers: [] };
  c.send([asked('hello', 'initialize', { protocolVersion: 1, clientCapabilities: {} }), asked('new', 'session/new', setup)]);
  await until('the array', () => got.length);
  assert.deepEqual(got[0].map((m) => m.id), ['hello', 'new']);
  assert.equal(got[0][1].result.sessionId, 'session-1');
  const prompt = (id, command) => asked(id, 'session/prompt', { sessionId: 'session-1', prompt: [{ type: 'text', text: JSON.stringify({ command }) }] });
  c.send([prompt('wait', 'wait'), asked('fine', '_test/echo', {})]);
  await c.request('_test/echo', {});
  c.send(prompt('die', 'die'));
  await until('the array', () => got.length === 3);
  assert.deepEqual(got.find((m) => m.id).error.code, -32603);
  assert.deepEqual(got.find((m) => m[0]?.id === 'fine').map((m) => [m.id, m.error?.code]), [['fine', undefined], ['wait', -32603]]);
  await c.stop(1);
});

test('a batch before an initialize that fails', async (t) => {
  const c = new Conductor(t, ['agent', agent('--die-in-initialize')]);
  const got = strays(c);
  const hello = c.initialize();
  c.send([asked('a', 'session/new', {}), asked('b', 'session/new', {})]);
  await rejects(hello, -32603, /exited with 3/);
  await until('the array', () => got.length);
  assert.deepEqual(got[0].map((m) => [m.id, m.error.code]), [['a', -32603], ['b', -32603]]);
  await c.stop(1);
});

test('what is sent before initialize is answered waits for it', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P1'), agent()]);
  const hello = c.initialize();
  const session = c.newSession();
  assert.equal((await hello).protocolVersion, 1);
  assert.match(await session, /session-1/);
});

// --- cancelling ---

for (const chain of [[], ['P2'], ['P3', 'P1', 'P2']]) {
  test(`client_cancellation_propagates_hop_by_hop_to_agent (${chain.join(' ') || 'no proxy'})`, async (t) => {
    const c = await open(t, ['agent', ...chain.map((d) => proxy(d)), agent()]);
    const waiting = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"wait"}' }] }, 'my-id');
    for (let i = 0; i < 2; i++) c.notify('$/cancel_request', { requestId: 'my-id' });
    c.notify('$/cancel_request', { requestId: 'unknown' });
    c.notify('$/cancel_request', {});
    await rejects(waiting, -32800);
    const { cancels } = await seen(c);
    assert.equal(cancels.length, 1, 'exactly one cancel at the far end');
    assert.notEqual(cancels[0], 'my-id', 'with the far connection\'s id');
  });
}

test('agent_cancellation_propagates_hop_by_hop_to_client', async (t) => {
  const c = await open(t, ['agent', proxy('P2'), proxy('P3'), agent()]);
  let ask;
  c.answer = (method, params, id) => new Promise((_, reject) => { ask = { id, reject }; });
  const running = c.prompt(c.session, { command: 'cancel_permission' });
  await until('the cancel', () => c.count('$/cancel_request') > 0);
  assert.equal(c.heard.find((m) => m.method === '$/cancel_request').params.requestId, ask.id);
  ask.reject(Object.assign(new Error('cancelled'), { code: -32800 }));
  assert.deepEqual(await running, ['error -32800']);
  assert.equal(c.count('$/cancel_request'), 1);
});

test('prompt_cancellation_cascades_through_real_proxy_chain', async (t) => {
  const c = await open(t, ['agent', inner('proxy', proxy('P2'), proxy('P3')), agent()]);
  const wait = () => c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"wait"}' }] });
  const first = wait();
  c.notify('session/cancel', { sessionId: c.session }); // ACP's own way
  assert.equal((await first).stopReason, 'cancelled');
  const second = wait();
  c.notify('$/cancel_request', { requestId: second.id });
  await rejects(second, -32800);
  assert.equal((await seen(c)).cancels.length, 1);
});

for (const [name, version, method] of [
  ['session_new_cancellation_propagates_through_proxy', 1, 'session/new'],
  ['proxy_session_helper_cancellation', 1, 'session/load'],
  ['v2_proxy_session_helper_cancellation', 2, 'session/new'],
  ['v2_proxy_resume_helper_cancellation', 2, 'session/resume'],
]) {
  test(name, async (t) => {
    const c = new Conductor(t, ['agent', proxy('P2', '--mcp', 'M2a'), proxy('P3'), agent('--hang-new', '--v2-mcp', 'stdio')]);
    await c.initialize(version);
    const waiting = c.request(method, { sessionId: 'old', cwd: '/', mcpServers: [] });
    await until('the request at the agent', async () => (await seen(c)).setups.length === 1);
    for (let i = 0; i < 2; i++) c.notify('$/cancel_request', { requestId: waiting.id });
    await rejects(waiting, -32800);
    assert.equal((await seen(c)).cancels.length, 1);
  });
}

// The cancel found nothing in flight, and the request that it named was passed on later.
test('a request that waits for initialize to be answered can be cancelled', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P1'), agent()]);
  const hello = c.initialize();
  const [setup, other] = [c.request('session/new', { cwd: '/', mcpServers: [] }, 'mine'), c.request('_test/echo', { n: 1 }, 7)];
  c.notify('$/cancel_request', { requestId: 'mine' });
  await rejects(setup, -32800);
  assert.equal((await hello).protocolVersion, 1);
  assert.deepEqual(await other, { n: 1 });
  assert.deepEqual((await seen(c)).setups, [], 'the agent has not seen it');
});

// A cancel that came while the proxy's dialect was still being probed was lost with the attempt of that time.
test('initialize_cancellation_propagates_through_proxy', async (t) => {
  // This agent answers only the cancel of its first request.
  const script = `
    let first;
    require('readline').createInterface(process.stdin).on('line', (l) => {
      const { id, method, params } = JSON.parse(l);
      first ??= id;
      if (method === '$/cancel_request' && params.requestId === first) console.log(JSON.stringify({ jsonrpc: '2.0', id: first, error: { code: -32800, message: 'cancelled' } }));
    })`;
  const slow = JSON.stringify({ command: process.execPath, args: ['-e', script] });
  for (const args of [['P1'], ['P2'], ['P3'], ['P1', '--exit-on-unknown']]) {
    const c = new Conductor(t, ['agent', proxy(...args), slow]);
    const waiting = c.request('initialize', { protocolVersion: 1, clientCapabilities: {} }, 'hello');
    c.notify('$/cancel_request', { requestId: 'hello' });
    await rejects(waiting, -32800);
    await c.stop(1);
  }
});

// --- versions ---

test('v2_initialize_preserves_request_and_response_through_conductor', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3'), agent()]);
  const result = await c.initialize(2, { strange: { deep: [1, 2] } });
  assert.deepEqual(result, {
    protocolVersion: 2, info: { name: 'fixture', version: '1' }, unknownField: [1, 2.5, { a: null }],
    capabilities: { session: { prompt: {}, mcp: { acp: {}, stdio: {} } } },
  });
  const asked = (await seen(c)).raw.map((l) => JSON.parse(l)).find((m) => m.method === 'initialize');
  assert.deepEqual(asked.params, { protocolVersion: 2, info: { name: 'test', version: '1' }, strange: { deep: [1, 2] } });
});

test('v2_initialize_preserves_unknown_response_fields', async (t) => {
  const c = new Conductor(t, ['agent', inner('proxy'), agent()]);
  assert.deepEqual((await c.initialize(2)).unknownField, [1, 2.5, { a: null }]);
});

test('v2_session_new_preserves_request_and_response_through_proxy', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3'), agent()]);
  await c.initialize(2);
  const params = { cwd: '/', mcpServers: [], _meta: { traceparent: '00-1' }, unknown: [null, { z: 1, a: 'é' }], answerWith: { strange: { deep: [1, 2.5] }, _meta: { k: 'v' } } };
  const result = await c.request('session/new', params);
  assert.deepEqual(result, { sessionId: 'session-1', ...params.answerWith });
  assert.deepEqual((await seen(c)).setups, [{ method: 'session/new', params }]);
});

test('v2_nested_conductor_preserves_exact_version_unknown_fields', async (t) => {
  const c = new Conductor(t, ['agent', inner('proxy', inner('proxy')), agent()]);
  const hello = new Promise((resolve) => { c.onLine = (line) => { if (line.includes('unknownField')) resolve(line); }; });
  c.send('{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"strange":1.50e+2,"protocolVersion":2,"info":{"name":"t","version":"1"},"big":12345678901234567890}}');
  assert.match(await hello, /"protocolVersion":2.*"unknownField":\[1,2\.5,\{"a":null\}\]/);
  const { raw } = await seen(c);
  assert.ok(raw.some((l) => l.includes('"params":{"strange":1.50e+2,"protocolVersion":2,"info":{"name":"t","version":"1"},"big":12345678901234567890}')), raw[0]);
});

test('v2_nested_conductor_canonicalizes_future_version_fields', async (t) => {
  const c = new Conductor(t, ['agent', inner('proxy', proxy('P3')), agent()]);
  assert.equal((await c.initialize(9)).protocolVersion, 2);
  const { raw } = await seen(c);
  assert.ok(raw.some((l) => l.includes('"protocolVersion":2')) && !raw.some((l) => l.includes('"protocolVersion":9')));
});

test('v2_proxy_initialize_precedes_agent_initialize', async (t) => {
  const dir = `${tempDir()}/logs`;
  const c = new Conductor(t, ['--debug', '--debug-dir', dir, 'agent', proxy('P3'), proxy('P3'), agent()]);
  await c.initialize(2);
  await c.stop(0);
  const lines = fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8').split('\n');
  const first = (to) => lines.find((l) => l.startsWith(`${to} → `));
  assert.match(first(0), /"proxy\/initialize"/);
  assert.match(first(1), /"proxy\/initialize"/);
  assert.match(first(2), /"initialize"/);
  const order = [0, 1, 2].map((to) => lines.indexOf(first(to)));
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
});

for (const [name, version, mine, theirs] of [
  ['v1_conductor_routes_initialize_and_later_requests_to_v1', 1, 'clientCapabilities', 'agentCapabilities'],
  ['v2_conductor_routes_initialize_and_later_requests_to_v2', 2, 'info', 'capabilities'],
]) {
  test(name, async (t) => {
    const c = new Conductor(t, ['agent', proxy('P2'), proxy('P3'), agent()]);
    const result = await c.initialize(version);
    assert.equal(result.protocolVersion, version);
    assert.ok(theirs in result);
    const asked = JSON.parse((await seen(c)).raw.find((l) => l.includes('"initialize"')));
    assert.equal(asked.params.protocolVersion, version);
    assert.ok(mine in asked.params);
    const later = { cwd: '/', mcpServers: [], only: `v${version}` };
    assert.equal((await c.request('session/new', later)).sessionId, 'session-1');
    assert.deepEqual((await seen(c)).setups, [{ method: 'session/new', params: later }]);
  });
}

for (const [name, version, method] of [
  ['proxy_session_helper_load', 1, 'session/load'], ['proxy_session_helper_resume', 1, 'session/resume'],
  ['v2_proxy_session_helper_load', 2, 'session/load'], ['v2_proxy_resume_helper_resume', 2, 'session/resume'],
]) {
  test(`${name}: replayed updates come before the answer, later ones after`, async (t) => {
    const c = new Conductor(t, ['agent', proxy('P2'), proxy('P3'), agent('--replay', 50)]);
    await c.initialize(version);
    c.lines = [];
    await c.request(method, { sessionId: 'old', cwd: '/', mcpServers: [], answerWith: { end: true } });
    await until('the update after it', () => c.lines.length >= 52);
    const order = c.lines.map((l) => JSON.parse(l)).map((m) => (m.result ? 'answer' : m.params.update.content.text));
    assert.deepEqual(order, [...Array.from({ length: 50 }, (_, i) => String(i)), 'answer', 'after']);
  });
}

test('v2_conductor_rejects_invalid_protocol_versions_with_responses', async (t) => {
  const c = new Conductor(t, ['agent', agent()]);
  await rejects(c.request('initialize', {}), -32602);
  await rejects(c.request('initialize', { protocolVersion: '2' }), -32602);
  await rejects(c.request('initialize', { protocolVersion: 1.5 }), -32602);
  assert.equal((await c.initialize(2)).protocolVersion, 2);
});

test('conductor_canonicalizes_future_version_before_proxy_routing', async (t) => {
  const trace = `${tempDir()}/trace`;
  const c = new Conductor(t, ['--trace', trace, 'agent', proxy('P2'), agent()]);
  assert.equal((await c.initialize(7)).protocolVersion, 2);
  await c.stop(0);
  const asked = fs.readFileSync(trace, 'utf8').trim().split('\n').map((l) => JSON.parse(l)).filter((e) => e.type === 'request');
  assert.deepEqual(asked.at(-1).to, 'Agent');
  for (const e of asked) assert.equal(e.params.protocolVersion, 2, `${e.from} to ${e.to}`);
});

test('v2_final_agent_initialize_response_requires_protocol_version', async (t) => {
  const c = new Conductor(t, ['agent', agent('--no-version')]);
  await rejects(c.initialize(2), -32603, /without a protocol version/);
});

// Such an answer was refused by the conductor, which speaks both versions.
test('v2_final_agent_initialize_response_must_match_selected_version: the client is told, and decides', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3'), agent('--version', 1)]);
  assert.equal((await c.initialize(2)).protocolVersion, 1);
});

test('v1_only_instantiator_negotiates_a_v2_chain_down_to_v1', async (t) => {
  const c = new Conductor(t, ['agent', agent('--version', 1)]);
  assert.equal((await c.initialize(2)).protocolVersion, 1);
  assert.equal(await c.newSession(), 'session-1');
  await c.stop(0);
});

test('v1_only_proxy_negotiates_a_v2_chain_down_to_v1', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3', '--version', 1), agent()]);
  assert.equal((await c.initialize(2)).protocolVersion, 1);
});

test('v1_only_proxy_before_a_v2_only_agent_rejects_the_chain', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3', '--version', 1), agent('--only-version', 2)]);
  await rejects(c.initialize(2), -32022, /supported/);
});

test('v2_nested_proxy_rejection_is_flushed_and_remains_failed', async (t) => {
  const c = new Conductor(t, ['proxy', proxy('P2')]);
  await rejects(c.initialize(2), -32600, /expected `proxy\/initialize` request/);
  await rejects(c.request('session/new', {}), -32600, /expected `proxy\/initialize` request/);
  await rejects(c.initialize(2), -32600);
  await c.stop(1);
});
