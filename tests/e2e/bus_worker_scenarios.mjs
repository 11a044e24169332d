// Rialto as the bridge of an agent (role worker) against a strict agent of ours, for any engine. The
// names begin with the group of RockBot's tests that they stand for, or say what those lack.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { dotnetJson, hexId } from './bus_agent.mjs';
import { launch } from './bus_rig.mjs';
import { fake, logged, root, sleep, tempDir, until } from './lib.mjs';

/** The configuration entry of the fixture server, which logs what it does to `file`. */
export function busServer(file = path.join(tempDir(), 'done'), ...settings) {
  return { command: process.execPath, args: [path.join(root, 'tests/fixture/bus_server.mjs'), file, ...settings] };
}

/** Who did what: the lines of a fixture server's file, as [id, pid]. */
export function done(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n').map((l) => l.split(' ')) : [];
}

/** A worker with these servers on a bus of its own, and its agent, which has their announcements. */
async function work(t, rig, servers, { bus = {}, config = {}, hears = Object.keys(servers) } = {}) {
  const place = await rig.place(t);
  // If there is a broker already, the agent joins first and need not ask for a refresh: the answer would
  // repeat, a second later, an announcement among those that a test looks at.
  const early = place.host ? null : await place.join(t, place.agent, { refresh: false });
  const worker = await launch(t, { servers, bus: { ...place.bus, role: 'worker', agents: [place.agent], ...bus }, ...config });
  const agent = early ?? await place.join(t, place.agent);
  await agent.hears(...hears);
  return { place, worker, agent };
}

/**
 * Most tests need nothing of their own: one worker and its agent serve them all. Must be called before
 * the first test begins, because what is started inside a test ends with it.
 */
export async function startShared(rig) {
  const file = path.join(tempDir(), 'done');
  const servers = {
    Main: busServer(file),
    other: fake('--name', 'other'),
    allowed: { ...busServer(file, 'tools-only'), allow: ['ECHO', 'Count'] },
    denied: { ...busServer(file, 'tools-only'), deny: ['crash', 'pid'] },
    bare: busServer(file, 'no-tools', 'tools-only'),
  };
  rig.shared = { file, ...await work(rig.t, rig, servers) };
}

const hex = (n) => new RegExp(`^[0-9a-f]{${n}}$`);

export const workerScenarios = {
  'MessageEnvelope: each reply has an id of its own, the full type name, source and correlation': async (t, rig) => {
    const { agent, place } = rig.shared;
    const replies = [await agent.invoke('Main', 'echo', { a: 1 }), await agent.invoke('Main', 'echo', { a: 2 })];
    assert.notEqual(replies[0].env.messageId, replies[1].env.messageId);
    for (const { env } of replies) {
      assert.equal(env.messageType, 'RockBot.Tools.ToolInvokeResponse');
      assert.equal(env.source, `mcp-bridge.${place.agent}`);
      assert.equal(env.topic, `tool.result.${place.agent}`);
    }
  },

  'WellKnownHeaders: trust and provider of replies and announcements': async (t, rig) => {
    const { agent } = rig.shared;
    const { env } = await agent.invoke('Main', 'echo');
    assert.equal(env.headers['rb-content-trust'], 'tool-output');
    assert.equal(env.headers['rb-tool-provider'], 'mcp');
    assert.equal(agent.announcements[0].env.headers['rb-content-trust'], 'system');
    const wrong = await agent.invoke('Main', 'nothing-like-it');
    assert.equal(wrong.env.headers['rb-content-trust'], 'tool-output', 'errors are output as well');
  },

  'TraceContextPropagator: a reply belongs to the trace of its request, in a span of its own': async (t, rig) => {
    const { agent } = rig.shared;
    const trace = hexId();
    const sent = `00-${trace}-b7ad6b7169203331-01`;
    const { env } = await agent.invoke('Main', 'echo', {}, { headers: { traceparent: sent, tracestate: 'a=1,b=2' } });
    assert.match(env.headers.traceparent, new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
    assert.notEqual(env.headers.traceparent, sent);
    assert.equal(env.headers.tracestate, 'a=1,b=2');
    const unrecorded = await agent.invoke('Main', 'echo', {}, { headers: { traceparent: `00-${trace}-b7ad6b7169203331-00` } });
    assert.match(unrecorded.env.headers.traceparent, /-00$/);
  },

  'TraceContextPropagator: what is no traceparent is none': async (t, rig) => {
    const { agent } = rig.shared;
    for (const traceparent of ['nonsense', `01-${hexId()}-b7ad6b7169203331-01`, '00-abc-b7ad6b7169203331-01',
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, undefined]) {
      const { env } = await agent.invoke('Main', 'echo', {}, { headers: traceparent ? { traceparent } : {} });
      const now = env.headers.traceparent;
      assert.ok(now === undefined || !traceparent || !now.includes(traceparent.split('-')[1]), `${traceparent} -> ${now}`);
    }
  },

  'McpServersIndexed: what an agent learns of each server': async (t, rig) => {
    const { agent } = rig.shared;
    const main = agent.index.get('main');
    assert.equal(main.serverName, 'Main');
    assert.equal(main.toolCount, main.toolNames.length);
    assert.ok(main.toolNames.includes('echo'));
    assert.deepEqual([main.promptCount, main.promptNames], [1, ['greet']]);
    assert.equal(main.resourceCount, 3);
    assert.match(main.fingerprint, hex(64));
    assert.match(main.serverId, hex(12));
    assert.match(main.identityHash, hex(16));
    assert.equal(main.version, '1.2.3');
    assert.deepEqual(Object.keys(main.toolFingerprints).sort(), [...main.toolNames].sort());
    assert.ok(main.summary.length > 0);
    assert.equal(new Set([...agent.index.values()].map((s) => s.serverId)).size, agent.index.size);
  },

  'McpServersIndexed: a server with zero tools is a server': async (t, rig) => {
    const { agent } = rig.shared;
    assert.equal(agent.index.get('bare').toolCount, 0);
    assert.deepEqual((await agent.manage('GetServiceDetails', { serverName: 'bare' })).tools, []);
  },

  'McpServersIndexed: an empty configuration is announced too': async (t, rig) => {
    const { agent } = await work(t, rig, {}, { hears: [] });
    const [{ type, body }] = await until('an announcement', () => agent.announcements.length && agent.announcements);
    assert.equal(type, 'McpServersIndexed');
    assert.deepEqual(body, { servers: [], removedServers: [] });
  },

  'McpServersIndexed: a server that comes up late is announced when it does, and each once': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    const agent = await place.join(t, place.agent, { refresh: false });
    const servers = { quick: fake(), late: fake('--init-delay', 1500) };
    await launch(t, { servers, bus: { ...place.bus, role: 'worker', agents: [place.agent] } });
    await agent.hears('quick', 'late');
    const names = agent.announcements.flatMap((a) => a.body.servers ?? []).map((s) => s.serverName);
    assert.deepEqual(names, ['quick', 'late']);
  },

  'McpMetadataRefresh: all servers, or one, are announced anew': async (t, rig) => {
    const { agent } = rig.shared;
    const named = (from) => agent.announcements.slice(from).flatMap((a) => (a.body.servers ?? []).map((s) => s.serverName));
    let from = agent.announcements.length;
    await agent.refresh('OTHER');
    await until('other is announced', () => named(from).includes('other'), 20_000);
    assert.ok(!named(from).includes('Main'));
    from = agent.announcements.length;
    await agent.refresh();
    await until('all are announced', () => ['Main', 'other', 'allowed', 'denied', 'bare'].every((n) => named(from).includes(n)), 20_000);
  },

  'McpToolsAvailable (G1): whole schemas, one message a server, and news of a change': async (t, rig) => {
    const { agent } = await work(t, rig, { main: busServer() }, { bus: { discovery: ['tools-available'] }, hears: [] });
    await until('its tools', () => agent.tools.has('echo'), 20_000);
    assert.deepEqual(agent.broken, []);
    assert.ok(agent.announcements.every((a) => a.type === 'McpToolsAvailable' && !a.env.correlationId));
    assert.deepEqual(JSON.parse(agent.tools.get('count').parametersSchema).required, ['id']);
    assert.equal(agent.tools.get('count').description, 'The tool count');
    assert.equal(await agent.text(null, 'echo', { x: 1 }), '{"x":1}', 'calls without a server are found by their tool');
    await agent.text(null, 'grow');
    await until('the new tool', () => agent.tools.has('grown'), 20_000);
    await agent.text(null, 'grow');
    await until('the removal', () => !agent.tools.has('grown'), 20_000);
  },

  // A bridge with a plain mcp.json announced itself only in messages that the first generation of agents does not know.
  'without a word about discovery every generation of agents hears what it knows': async (t, rig) => {
    const { agent } = await work(t, rig, { main: fake() });
    await until('its tools', () => agent.tools.has('add'), 20_000);
    assert.equal(await agent.text('main', 'add', { a: 2, b: 3 }), '5');
  },

  'McpManagementExecutor: details of a server, its name in any case': async (t, rig) => {
    const { agent } = rig.shared;
    const found = await agent.manage('GetServiceDetails', { serverName: 'MAIN' });
    assert.equal(found.error, null);
    assert.equal(found.serverName.toLowerCase(), 'main');
    const echo = found.tools.find((x) => x.name === 'count');
    assert.deepEqual(JSON.parse(echo.parametersSchema).required, ['id']);
    assert.equal(found.implementationName, 'bus-fixture');
    assert.equal(found.version, '1.2.3');
    assert.equal(found.instructions, 'Count what I do.');
    assert.equal(found.fingerprint, agent.index.get('main').fingerprint);
    assert.deepEqual(found.prompts.map((p) => [p.name, p.arguments.map((a) => [a.name, a.required])]), [['greet', [['who', true]]]]);
    assert.equal(found.resourceCount, 3);
  },

  'McpManagementExecutor: an unknown server is an error in the answer': async (t, rig) => {
    const { agent } = rig.shared;
    for (const [what, body] of [['GetServiceDetails', {}], ['GetPrompt', { promptName: 'x', arguments: {} }],
      ['ListResources', {}], ['ReadResource', { uri: 'x://y' }], ['UnregisterServer', {}]]) {
      const answer = await agent.manage(what, { serverName: 'nobody', ...body });
      assert.match(answer.error, /nobody/, what);
    }
  },

  'McpManagementExecutor: requests without a reply-to, of no known type or without sense do no harm': async (t, rig) => {
    const { agent } = rig.shared;
    const type = 'RockBot.Tools.Mcp.McpGetServiceDetailsRequest';
    await agent.publish('mcp.manage', type, { serverName: 'main' });
    await agent.publish('mcp.manage', 'RockBot.Tools.Mcp.McpFlyToTheMoonRequest', {}, { correlationId: hexId(), replyTo: 'mcp.manage.response.x' });
    await agent.publish('mcp.manage', type, '{"serverName":', { correlationId: hexId(), replyTo: `mcp.manage.response.${agent.name}` });
    await agent.publish('mcp.manage', type, '[]', { correlationId: hexId(), replyTo: `mcp.manage.response.${agent.name}` });
    assert.equal((await agent.manage('GetServiceDetails', { serverName: 'main' })).error, null);
  },

  'McpToolExecutor: arguments arrive as they were, whatever is in them': async (t, rig) => {
    const { agent } = rig.shared;
    const args = { list: [{ a: 1, b: [true, null] }, {}], deep: { er: { est: 'é "quoted" <&> \u{1F600}' } }, n: 1.5, big: 9007199254740991 };
    assert.deepEqual(JSON.parse(await agent.text('Main', 'echo', args)), args);
    assert.equal(await agent.text('other', 'echo', '{"x":  12345678901234567890, "y":1.50e+2}'), '{"x":  12345678901234567890, "y":1.50e+2}',
      'numbers that no double can hold stay what they are');
    for (const nothing of [null, '', '  ', '{}']) assert.equal(await agent.text('Main', 'echo', nothing), '{}');
  },

  'McpToolExecutor: texts are joined, empty ones skipped, nothing is null': async (t, rig) => {
    const { agent } = rig.shared;
    assert.equal(await agent.text('Main', 'lines'), 'one\ntwo');
    const { body } = await agent.invoke('Main', 'empty');
    assert.deepEqual([body.content, body.isError], [null, false]);
  },

  'McpToolExecutor: blocks that are no text are kept': async (t, rig) => {
    const { agent } = rig.shared;
    const { body } = await agent.invoke('Main', 'blocks');
    const of = (type) => body.contentBlocks.filter((b) => b.type === type);
    assert.match(body.content, /^first\nsecond/);
    assert.deepEqual(of('image').map((b) => [b.data, b.mimeType]), [['aGk=', 'image/png']]);
    assert.deepEqual(of('audio').map((b) => [b.data, b.mimeType]), [['aG8=', 'audio/wav']]);
    assert.ok(of('resource').some((b) => b.uri === 'res://text' && /inside/.test(b.text)));
    assert.ok(JSON.stringify(body.contentBlocks).includes('res://link'));
    assert.ok(JSON.stringify(body.contentBlocks).includes('hologram'));
  },

  'McpToolExecutor: a result that says it is an error is a response with isError': async (t, rig) => {
    const { agent } = rig.shared;
    const { type, body } = await agent.invoke('other', 'fail');
    assert.equal(type, 'ToolInvokeResponse');
    assert.equal(body.isError, true);
    assert.match(body.content, /failed on purpose/);
  },

  'ToolInvokeHandler: without a reply-to the answer goes to the agent\'s topic': async (t, rig) => {
    const { agent } = rig.shared;
    assert.equal(await agent.text('Main', 'echo', { x: 1 }, { replyTo: null }), '{"x":1}');
  },

  'ToolInvokeHandler: the reply-to is a topic of the agent\'s choice': async (t, rig) => {
    const { agent, place } = rig.shared;
    const topic = `tool.result.${place.agent}.here`;
    const heard = [];
    await agent.engine.subscribe(topic, `here.${hexId()}`, (env) => { heard.push(env); });
    const correlationId = hexId();
    await agent.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest',
      { toolCallId: 'c1', toolName: 'echo', arguments: null, sessionId: null },
      { correlationId, replyTo: topic, headers: { 'rb-mcp-server': 'main' } });
    await until('the answer', () => heard.length === 1);
    assert.equal(heard[0].correlationId, correlationId);
  },

  'ToolInvokeHandler: what is not there is told with what is': async (t, rig) => {
    const { agent } = rig.shared;
    const tool = await agent.error('Main', 'ech');
    assert.deepEqual([tool.code, tool.isRetryable], ['tool_not_found', false]);
    assert.match(tool.message, /echo/);
    const server = await agent.error('nowhere', 'echo');
    assert.deepEqual([server.code, server.isRetryable], ['tool_not_found', false]);
    assert.match(server.message, /Main/);
    const neither = await agent.error(null, 'no_such_tool_anywhere');
    assert.equal(neither.code, 'tool_not_found');
  },

  'McpBridgeInvokeEndToEnd: a tool\'s name in another case, or with its server in front': async (t, rig) => {
    const { agent } = rig.shared;
    assert.equal(await agent.text('Main', 'ECHO', { x: 1 }), '{"x":1}');
    const slip = await agent.error('Main', 'main__echo');
    assert.equal(slip.code, 'tool_not_found');
    assert.match(slip.message, /echo/);
  },

  'McpBridgeInvokeEndToEnd: a denied tool is neither offered nor called': async (t, rig) => {
    const { agent, file } = rig.shared;
    assert.ok(!agent.index.get('denied').toolNames.includes('crash'));
    for (const name of ['crash', 'CRASH', 'pid']) {
      assert.equal((await agent.error('denied', name, { id: 'denied!' })).code, 'tool_not_found');
    }
    assert.ok(!done(file).some(([id]) => id === 'denied!'));
    assert.equal(await agent.text('denied', 'echo'), '{}');
  },

  'McpBridgeInvokeEndToEnd: an allow list, written in another case, is the whole truth': async (t, rig) => {
    const { agent } = rig.shared;
    assert.deepEqual([...agent.index.get('allowed').toolNames].sort(), ['count', 'echo']);
    assert.equal(await agent.text('allowed', 'echo'), '{}');
    assert.equal((await agent.error('allowed', 'pid')).code, 'tool_not_found');
    const found = await agent.manage('GetServiceDetails', { serverName: 'allowed' });
    assert.deepEqual(found.tools.map((x) => x.name).sort(), ['count', 'echo']);
  },

  'McpBridgeInvokeEndToEnd: an error at run time passes as it is, without a hint': async (t, rig) => {
    const { agent } = rig.shared;
    const { body } = await agent.invoke('Main', 'runtime', { path: '/x' });
    assert.deepEqual([body.isError, body.content], [true, 'disk is full']);
  },

  'McpBridgeInvokeEndToEnd: an error that says nothing gets a careful hint': async (t, rig) => {
    const { agent } = rig.shared;
    const { body } = await agent.invoke('Main', 'silent', { path: '/x' });
    assert.equal(body.isError, true);
    assert.match(body.content, /An error occurred invoking/);
    assert.match(body.content, /path/);
  },

  'McpBridgeInvokeEndToEnd: wrong types, missing and unknown arguments are named': async (t, rig) => {
    const { agent } = rig.shared;
    assert.match((await agent.invoke('Main', 'silent', { path: 5 })).body.content, /path[^]*(string|number)/);
    const { body } = await agent.invoke('Main', 'silent', { pfad: '/x' });
    assert.match(body.content, /path/);
    assert.match(body.content, /pfad/);
  },

  'McpBridgeInvokeEndToEnd: -32602 and -32601 are answers of a living server': async (t, rig) => {
    const { agent } = rig.shared;
    const before = await agent.text('Main', 'pid');
    for (const tool of ['invalid', 'unknown_method']) {
      const { type, body } = await agent.invoke('Main', tool, { path: '/x' });
      assert.deepEqual([type, body.isError], ['ToolInvokeResponse', true], JSON.stringify(body));
    }
    assert.equal(await agent.text('Main', 'pid'), before, 'it was not started anew');
  },

  'McpBridgeInvokeEndToEnd: prompts: fine, an argument missing, unknown, and of no server': async (t, rig) => {
    const { agent } = rig.shared;
    const ask = (promptName, args, serverName = 'main') => agent.manage('GetPrompt', { serverName, promptName, arguments: args });
    const fine = await ask('greet', { who: 'Ada' });
    assert.equal(fine.error, null);
    assert.equal(fine.description, 'A greeting');
    assert.deepEqual(fine.messages[0], { role: 'user', content: 'Hello Ada', contentType: 'text' });
    assert.equal(fine.messages[1].contentType, 'image');
    assert.equal(JSON.parse(fine.messages[1].content).data, 'aGk=');
    assert.match((await ask('greet', {})).error, /who/);
    assert.match((await ask('nope', {})).error, /nope/);
    assert.match((await ask('greet', {}, 'nobody')).error, /nobody/);
  },

  'McpBridgeInvokeEndToEnd: arguments that are no object, and poison': async (t, rig) => {
    const { agent } = rig.shared;
    for (const args of ['[1]', '"x"', '7', '{"a":', 'null and void']) {
      const error = await agent.error('Main', 'echo', args);
      assert.deepEqual([error.code, error.isRetryable], ['invalid_arguments', false], args);
    }
    for (const text of ['', '{"toolCallId":', '[]', '{}', '{"toolCallId":"x"}', '\u0000']) {
      await agent.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest', text,
        { correlationId: hexId(), replyTo: `tool.result.${agent.name}` });
    }
    assert.equal(await agent.text('Main', 'echo'), '{}', 'the next call is served');
  },

  'McpBridgeInvokeEndToEnd: a timeout is told in time, and the server is told too': async (t, rig) => {
    const { agent } = rig.shared;
    const began = Date.now();
    const error = await agent.error('Main', 'wait', { id: `t${hexId()}`, ms: 20_000 }, { timeout: 3000 });
    const took = Date.now() - began;
    assert.deepEqual([error.code, error.isRetryable], ['timeout', true]);
    assert.match(error.message, /timed out/i);
    assert.ok(took < 15_000, `${took} ms`);
    await until('notifications/cancelled', async () => Number(await agent.text('Main', 'cancelled')) > 0);
  },

  'McpBridgeInvokeEndToEnd: a timeout header that makes no sense is none': async (t, rig) => {
    const { agent } = rig.shared;
    for (const timeout of ['0', '-5', 'soon', '', null]) {
      assert.equal(await agent.text('Main', 'echo', { x: 1 }, { timeout }), '{"x":1}', String(timeout));
    }
  },

  'McpBridgeInvokeEndToEnd: an error of the server that is no result': async (t, rig) => {
    const { agent } = rig.shared;
    const reply = await agent.invoke('Main', 'broken');
    assert.match(JSON.stringify(reply.body), /refused on purpose/);
    assert.ok(reply.type === 'ToolError' ? reply.body.code === 'execution_failed' : reply.body.isError);
  },

  'a message that came twice runs once': async (t, rig) => {
    const { agent, file } = rig.shared;
    await agent.listen();
    const id = `twice${hexId()}`;
    const env = agent.envelope('RockBot.Tools.ToolInvokeRequest',
      { toolCallId: 'c', toolName: 'count', arguments: JSON.stringify({ id }), sessionId: null },
      { correlationId: hexId(), replyTo: `tool.result.${agent.name}`, headers: { 'rb-mcp-server': 'main' } });
    await agent.engine.publish('tool.invoke.mcp', env);
    await until('it ran', () => done(file).some(([x]) => x === id));
    await agent.engine.publish('tool.invoke.mcp', env);
    await agent.text('Main', 'echo'); // once this is answered, the second one was read
    await sleep(200);
    assert.equal(done(file).filter(([x]) => x === id).length, 1);
  },

  'an invoke that nobody waits for any more does not run': async (t, rig) => {
    const { agent, file } = rig.shared;
    const id = `stale${hexId()}`;
    await agent.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest',
      { toolCallId: 'c', toolName: 'count', arguments: JSON.stringify({ id }), sessionId: null }, {
        correlationId: hexId(), replyTo: `tool.result.${agent.name}`, timestamp: Date.now() - 120_000,
        headers: { 'rb-mcp-server': 'main', 'rb-timeout-ms': '5000' },
      });
    await agent.text('Main', 'echo');
    await sleep(300);
    assert.ok(!done(file).some(([x]) => x === id));
  },

  // Such a call was carried out, because half a minute was allowed for clocks that differ.
  'a worker that stood still does not do what nobody waits for any more': async (t, rig) => {
    const file = path.join(tempDir(), 'done');
    const place = await rig.place(t);
    await place.host?.(t);
    const worker = await launch(t, { servers: { main: busServer(file) }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } });
    const agent = await place.join(t, place.agent);
    await agent.hears('main');
    await agent.text('main', 'echo');
    process.kill(worker.pid, 'SIGSTOP');
    try {
      await agent.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest',
        { toolCallId: 'c', toolName: 'count', arguments: JSON.stringify({ id: 'late' }), sessionId: null },
        { correlationId: hexId(), replyTo: `tool.result.${agent.name}`, headers: { 'rb-mcp-server': 'main', 'rb-timeout-ms': '2000' } });
      await sleep(6000); // longer than its caller waits, plus the second that timestamps may be off
    } finally {
      process.kill(worker.pid, 'SIGCONT');
    }
    await agent.text('main', 'count', { id: 'after' }); // once this is answered, the first one was read
    assert.deepEqual(done(file).map(([id]) => id), ['after']);
  },

  'a reply too large for the bus is an error that says so': async (t, rig) => {
    const { agent } = rig.shared;
    // Small enough to come from the server, but too large for the bus with the call's long id.
    const error = await agent.error('Main', 'big', { bytes: rig.limit - 1000 }, { callId: 'c'.repeat(2000) });
    assert.deepEqual([error.code, error.isRetryable], ['execution_failed', false]);
    assert.match(error.message, /large|bytes/i);
    assert.equal((await agent.text('Main', 'big', { bytes: rig.limit / 2 })).length, rig.limit / 2, 'half of it is fine');
  },

  'McpBridgeResource: lists, templates and counts': async (t, rig) => {
    const { agent } = rig.shared;
    const { resources, templates, error } = await agent.manage('ListResources', { serverName: 'main' });
    assert.equal(error, null);
    assert.deepEqual(resources.map((r) => [r.uri, r.name, r.mimeType, r.isTemplate]), [
      ['res://text', 'Text', 'text/plain', false], ['res://blob', 'Blob', 'application/octet-stream', false],
      ['res://large', 'Large', 'text/plain', false]]);
    assert.deepEqual(templates.map((r) => [r.uri, r.isTemplate]), [['res://item/{id}', true]]);
    const quiet = await agent.manage('ListResources', { serverName: 'denied' });
    assert.deepEqual([quiet.resources, quiet.templates], [[], []]);
  },

  'McpBridgeResource: read a text, a template, a blob, and one that is not there': async (t, rig) => {
    const { agent } = rig.shared;
    const read = (uri) => agent.manage('ReadResource', { serverName: 'main', uri });
    assert.equal((await read('res://text')).contents[0].text, 'some text');
    assert.equal((await read('res://item/7')).contents[0].text, 'item 7');
    const [blob] = (await read('res://blob')).contents;
    assert.ok(blob.path || blob.note, JSON.stringify(blob));
    const missing = await read('res://nope');
    assert.match(missing.error, /res:\/\/nope/);
    assert.deepEqual(missing.contents, []);
  },

  'McpBridgeConcurrency: calls of one agent run at the same time': async (t, rig) => {
    const { agent } = rig.shared;
    const began = Date.now();
    await Promise.all([...Array(8).keys()].map((i) => agent.text('other', 'sleep', { ms: 1500, i })));
    assert.ok(Date.now() - began < 8 * 1500 / 2, `${Date.now() - began} ms`);
  },

  'McpBridgeConcurrency: 8 calls in flight survive a refresh and run once': async (t, rig) => {
    const file = path.join(tempDir(), 'done');
    const { agent } = await work(t, rig, { main: busServer(file) });
    const ids = [...Array(8).keys()].map((i) => `r${i}`);
    const calls = ids.map((id) => agent.text('main', 'wait', { id, ms: 1000 }));
    await until('all run', () => done(file).length === 8);
    const from = agent.announcements.length;
    await Promise.all([1, 2, 3, 4, 5].map(() => agent.refresh()));
    const texts = await Promise.all(calls);
    assert.deepEqual(texts.map((x) => x.split(' ')[0]), ids);
    await until('the refresh is answered', () => agent.announcements.length > from, 20_000);
    assert.equal(await agent.text('main', 'echo'), '{}');
    assert.deepEqual(done(file).map(([id]) => id).sort(), ids);
  },

  'a stdio server that crashes is started again, and only its call fails': async (t, rig) => {
    const file = path.join(tempDir(), 'done');
    const { agent } = await work(t, rig, { main: busServer(file), other: fake() });
    const before = await agent.text('main', 'pid');
    const error = await agent.error('main', 'crash', { id: 'crashed' });
    assert.deepEqual([error.code, error.isRetryable], ['execution_failed', true]);
    assert.equal(done(file).length, 1, 'what may have been done is not repeated');
    assert.notEqual(await agent.text('main', 'pid'), before);
    assert.equal(await agent.text('other', 'add', { a: 1, b: 1 }), '2');
  },

  'McpBridgeSurface: a tool that is added is announced and can be called, then removed': async (t, rig) => {
    const { agent } = await work(t, rig, { main: busServer() });
    const print = agent.index.get('main').fingerprint;
    await agent.text('main', 'grow');
    await until('it is announced', () => agent.index.get('main').toolNames.includes('grown'), 20_000);
    assert.notEqual(agent.index.get('main').fingerprint, print);
    assert.equal(await agent.text('main', 'grown'), 'here I am');
    await agent.text('main', 'grow');
    await until('it is gone', () => !agent.index.get('main').toolNames.includes('grown'), 20_000);
    assert.equal(agent.index.get('main').fingerprint, print, 'the same again');
    assert.equal((await agent.error('main', 'grown')).code, 'tool_not_found');
  },

  'McpBridgeSurface: a server keeps its id over a restart of the bridge': async (t, rig) => {
    const place = await rig.place(t);
    const ids = [];
    const config = { servers: { main: fake() }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } };
    for (let i = 0; i < 2; i++) {
      const worker = await launch(t, config);
      const agent = await place.join(t, place.agent);
      await agent.hears('main');
      ids.push([agent.index.get('main').serverId, agent.index.get('main').fingerprint, agent.index.get('main').identityHash]);
      await agent.engine.close();
      await worker.stop();
    }
    assert.deepEqual(ids[0], ids[1]);
  },

  'MultiInstanceIsolation: a bridge serves its own agents and nobody else': async (t, rig) => {
    const place = await rig.place(t);
    const file = path.join(tempDir(), 'done');
    await launch(t, { servers: { main: busServer(file) }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } });
    const agent = await place.join(t, place.agent);
    const stranger = await place.join(t, `${place.agent}x`);
    await agent.hears('main');
    const asked = stranger.invoke('main', 'count', { id: 'stranger' }, { wait: 2500 });
    await assert.rejects(asked, /not within/);
    await assert.rejects(stranger.manage('GetServiceDetails', { serverName: 'main' }, { wait: 1500 }), /not within/);
    assert.equal(stranger.announcements.length, 0);
    assert.equal(await agent.text('main', 'echo'), '{}');
    assert.equal(done(file).length, 0);
  },

  'MultiInstanceIsolation: two agents with a bridge each never get each other\'s replies': async (t, rig) => {
    const place = await rig.place(t);
    const names = [place.agent, `${place.agent}b`];
    const agents = [];
    for (const name of names) {
      await launch(t, { servers: { main: busServer() }, bus: { ...place.bus, role: 'worker', agents: [name] } });
      agents.push(await place.join(t, name));
    }
    for (const agent of agents) await agent.hears('main');
    const pids = await Promise.all(agents.map((a) => a.text('main', 'pid')));
    assert.notEqual(pids[0], pids[1]);
    const texts = await Promise.all([...Array(100).keys()].map((i) => agents[i % 2].text('main', 'echo', { i })));
    assert.deepEqual(texts, [...Array(100).keys()].map((i) => `{"i":${i}}`));
    for (let i = 0; i < 40; i++) assert.equal(await agents[i % 2].text('main', 'pid'), pids[i % 2]);
    for (const agent of agents) assert.deepEqual(agent.unexpected, []);
  },

  'MultiInstanceIsolation: one bridge may serve a list of agents': async (t, rig) => {
    const place = await rig.place(t);
    const names = [place.agent, `${place.agent}b`];
    await launch(t, { servers: { main: busServer() }, bus: { ...place.bus, role: 'worker', agents: names } });
    for (const name of names) {
      const agent = await place.join(t, name);
      await agent.hears('main');
      assert.equal(await agent.text('main', 'echo', { name }), JSON.stringify({ name }));
    }
  },

  'two bridges of one agent share its calls, and cover for each other': async (t, rig) => {
    const place = await rig.place(t);
    const file = path.join(tempDir(), 'done');
    const config = { servers: { main: busServer(file) }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } };
    await place.host?.(t); // so that the bus does not end with the first worker
    const first = await launch(t, config);
    const second = await launch(t, config);
    await Promise.all([first, second].map((w) => logged(w, /joined /)));
    const agent = await place.join(t, place.agent);
    await agent.hears('main');
    await agent.text('main', 'pid');
    const ids = [...Array(60).keys()].map((i) => `c${i}`);
    const texts = await Promise.all(ids.map((id) => agent.text('main', 'wait', { id, ms: 50 })));
    const pids = new Set(texts.map((x) => x.split(' ')[1]));
    assert.equal(pids.size, 2, 'both worked');
    assert.deepEqual(done(file).map(([id]) => id).sort(), [...ids].sort(), 'each call ran once');
    await first.stop();
    assert.equal(await agent.text('main', 'echo', { alone: true }), '{"alone":true}');
  },

  'an agent that is away when its answer comes does not stop the others': async (t, rig) => {
    const place = await rig.place(t);
    await launch(t, { servers: { main: fake() }, bus: { ...place.bus, role: 'worker', agents: [place.agent, 'Other'] } });
    const leaving = await place.join(t, 'Other');
    await leaving.hears('main');
    leaving.invoke('main', 'sleep', { ms: 500 }, { wait: 1000 }).catch(() => {});
    await sleep(250);
    await leaving.engine.close();
    const agent = await place.join(t, place.agent);
    await agent.hears('main');
    assert.equal(await agent.text('main', 'sleep', { ms: 600 }), 'slept');
  },

  'ToolInvokeHandler: a bridge that is stopped answers what it has begun': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    const worker = await launch(t, { servers: { main: fake() }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } });
    const agent = await place.join(t, place.agent);
    await agent.hears('main');
    const open = agent.invoke('main', 'sleep', { ms: 700 });
    await sleep(300);
    const stopped = worker.stop('SIGTERM', 10_000);
    const reply = await open;
    await stopped;
    assert.ok(reply.type === 'ToolError' || reply.body.content === 'slept', JSON.stringify(reply.body));
  },

  'bodies as RockBot writes them: escapes, nulls, members nobody knows, names in any case': async (t, rig) => {
    const { agent } = rig.shared;
    await agent.listen();
    const text = dotnetJson({ TOOLCALLID: 'c<1>', ToolName: 'echo', Arguments: '{"x":"é\'"}', sessionId: null, batchId: 'b', future: { a: [1] } });
    assert.match(text, /\\u0022/);
    const heard = [];
    const topic = `tool.result.${agent.name}.odd`;
    await agent.engine.subscribe(topic, `odd.${hexId()}`, (env) => { heard.push(JSON.parse(env.text)); });
    await agent.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest', text,
      { correlationId: hexId(), replyTo: topic, headers: { 'rb-mcp-server': 'MAIN' } });
    await until('the answer', () => heard.length);
    assert.deepEqual([heard[0].toolCallId, heard[0].content], ['c<1>', '{"x":"é\'"}']);
  },
};
