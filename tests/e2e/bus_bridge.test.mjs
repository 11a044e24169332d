// What a bridge does on its bus besides what RockBot's does: approvals, events, large results in a folder.
// And the example. On the embedded bus: nothing of this depends on the engine.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { embeddedRig } from './bus_rig.mjs';
import { busServer } from './bus_worker_scenarios.mjs';
import {
  exchange, expectClean, logged, rialtoBin, root, sanitizerEnv, serve, start, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { listen, RawServer } from './upstream_lib.mjs';

/** A worker on a bus of its own, and its agent, which has the announcements of its servers. */
async function work(t, servers, { bus = {}, config = {} } = {}) {
  const place = embeddedRig(t).place();
  const worker = await serve(t, {
    servers, bus: { ...place.bus, role: 'worker', agents: [place.agent], register_hosts: ['127.0.0.1'], ...bus }, ...config,
  });
  const agent = await place.join(t, place.agent);
  await agent.hears(...Object.keys(servers));
  return { place, worker, agent };
}

/** The same with `rialto bus worker`, which has no port and no operator. */
async function workAlone(t, servers, bus) {
  const place = embeddedRig(t).place();
  const dir = tempDir();
  const file = writeConfig(dir, {
    servers, bus: { ...place.bus, agents: [place.agent], register_hosts: ['127.0.0.1'], ...bus },
  });
  const child = start(rialtoBin, ['bus', 'worker', '-c', file], {
    cwd: dir, stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...sanitizerEnv, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: dir },
  });
  let text = '';
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', (code) => resolve(code)); });
  let stopping;
  const stop = () => {
    stopping ??= (async () => {
      child.kill('SIGTERM');
      assert.equal(await within(20_000, 'the end of the worker', ended), 0, text);
      expectClean(text);
    })();
    return stopping;
  };
  t.after(stop);
  const agent = await place.join(t, place.agent);
  await agent.hears(...Object.keys(servers));
  return { place, agent, worker: { config: file, stderr: () => text, stop } };
}

// --- approvals and news ---

test('a call that must be approved is asked for on the bus, and the answer there counts', async (t) => {
  const file = path.join(tempDir(), 'done');
  const { place, agent } = await workAlone(t, { main: { ...busServer(file), approve: ['count'], tools: { count: { arguments: { by: 'us' } } } } },
    { approvals: true });
  const engine = await place.engine(t);
  const asked = [];
  await engine.subscribe('system.mcp.tool_approval_request', 'desk', (env) => { asked.push(JSON.parse(env.text)); });
  const answer = (request, approved, reason) => engine.publish('system.mcp.tool_approval_response', {
    ...agent.envelope('x', { request_id: request.request_id, approved, reason }), source: 'desk',
  });

  const allowed = agent.text('main', 'count', { id: 'one' });
  const first = await until('the first question', () => asked[0], 20_000);
  assert.deepEqual({ ...first, request_id: null },
    { request_id: null, tool_name: 'count', arguments: { id: 'one', by: 'us' }, server_alias: 'main', channel_id: null });
  assert.ok(!fs.existsSync(file), 'nothing was done yet');
  await answer(first, true, null);
  assert.match(await allowed, /^one /);

  const refused = agent.error('main', 'count', { id: 'two' });
  const second = await until('the second question', () => asked[1], 20_000);
  assert.notEqual(second.request_id, first.request_id);
  await answer(first, true, null); // answers the question before: decides nothing
  await answer(second, false, 'not on a Sunday');
  const error = await refused;
  assert.equal(error.code, 'execution_failed');
  assert.match(error.message, /refused by 'desk' on the bus: not on a Sunday/);
  assert.equal(fs.readFileSync(file, 'utf8').trim().split('\n').length, 1);
});

test('without bus.approvals a call that must be approved is refused at once: there is nobody to ask', async (t) => {
  const { agent } = await workAlone(t, { main: { ...busServer(), approve: ['count'] } });
  const error = await agent.error('main', 'count', { id: 'one' });
  assert.equal(error.code, 'execution_failed');
  assert.match(error.message, /needs a person's approval, and there is nobody to ask/);
});

test('what happens is told on the bus, without arguments', async (t) => {
  const { place, agent } = await work(t, { main: busServer() });
  const engine = await place.engine(t);
  const news = [];
  await engine.subscribe('mcp.event.#', 'news', (env) => { news.push([env.topic, JSON.parse(env.text)]); });
  const heard = (topic) => until(topic, () => news.find(([at]) => at === topic)?.[1], 20_000);
  await agent.text('main', 'echo', { secret: 'hush' });
  const called = await heard('mcp.event.tool_called.main');
  assert.deepEqual([called.event, called.server, called.tool, called.is_error, called.error],
    ['mcp.tool_called', 'main', 'echo', false, null]);
  assert.equal(typeof called.duration_ms, 'number');
  await agent.invoke('main', 'runtime', { path: '/a' });
  const failed = await heard('mcp.event.tool_failed.main');
  assert.deepEqual([failed.tool, failed.is_error], ['runtime', true]);
  await agent.error('main', 'crash', { id: '1' });
  assert.match((await heard('mcp.event.server_failed.main')).error, /3/);
  await agent.text('main', 'pid');
  await heard('mcp.event.servers_reconnected.main');
  assert.ok(!JSON.stringify(news).includes('hush'));
});

// --- credentials ---

test('a server that wants other credentials: auth_required, whether it comes up or not', async (t) => {
  const refuse = ({ response }) => response.writeHead(401).end();
  const later = await listen(t, new RawServer({ 'tools/call': refuse }).handler);
  const never = await listen(t, new RawServer({ initialize: refuse, 'server/discover': refuse }).handler);
  const place = embeddedRig(t).place();
  await serve(t, {
    servers: { later: { url: later.url }, never: { url: never.url } },
    bus: { ...place.bus, agents: [place.agent] },
  });
  const agent = await place.join(t, place.agent);
  await agent.hears('later');
  for (const name of ['later', 'never']) {
    const error = await agent.error(name, 'echo');
    assert.deepEqual([error.code, error.isRetryable], ['auth_required', false], JSON.stringify(error));
    assert.match(error.message, /needs a sign-in: rialto login .*credentials/);
  }
});

// Whether a server wants credentials was read from the error text, which quotes the server.
test('a server that speaks of HTTP 401 does not want credentials by that', async (t) => {
  const broken = ({ response }) => response.writeHead(500, { 'content-type': 'application/json' })
    .end('{"error":"the backend said HTTP 401"}');
  const server = await listen(t, new RawServer({ 'tools/call': broken }).handler);
  const place = embeddedRig(t).place();
  await serve(t, { servers: { server: { url: server.url } }, bus: { ...place.bus, agents: [place.agent] } });
  const agent = await place.join(t, place.agent);
  await agent.hears('server');
  const error = await agent.error('server', 'echo');
  assert.equal(error.code, 'execution_failed', JSON.stringify(error));
  assert.match(error.message, /HTTP 500.*said HTTP 401/);
});

// --- large results ---

test('McpBridgeResource: pictures and long texts go to the attachments folder', async (t) => {
  const attachments = tempDir();
  const { agent } = await work(t, { main: busServer() }, { bus: { attachments } });
  const reply = await agent.invoke('main', 'picture', { bytes: 100_000 });
  const [block] = reply.body.contentBlocks;
  assert.deepEqual([block.type, block.data, block.mimeType], ['image', null, 'image/png']);
  const { path: file, size, mime } = JSON.parse(reply.body.content);
  assert.deepEqual([path.dirname(file), size, mime], [attachments, 100_000, 'image/png']);
  assert.deepEqual(fs.readFileSync(file), Buffer.alloc(100_000, 7));
  const small = await agent.invoke('main', 'picture', { bytes: 10 });
  assert.equal(small.body.contentBlocks[0].data, Buffer.alloc(10, 7).toString('base64'));

  const large = await agent.manage('ReadResource', { serverName: 'main', uri: 'res://large' });
  assert.equal(large.contents[0].text, null);
  assert.equal(fs.readFileSync(large.contents[0].path, 'utf8'), 'l'.repeat(50_000));
  const blob = await agent.manage('ReadResource', { serverName: 'main', uri: 'res://blob' });
  assert.deepEqual(fs.readFileSync(blob.contents[0].path), Buffer.from([0, 1, 2, 3]));
  assert.equal(blob.contents[0].size, 4);
});

// --- RockBot's own file ---

test('a server that an agent registers is put into mcp.json and taken out again, every other byte kept', async (t) => {
  const elsewhere = await serve(t, { servers: { far: busServer(path.join(tempDir(), 'far')) } });
  const place = embeddedRig(t).place();
  const worker = await serve(t, {
    mcpServers: { main: busServer(path.join(tempDir(), 'main')) },
    bus: { ...place.bus, agents: [place.agent], register_hosts: ['127.0.0.1'] },
  });
  const agent = await place.join(t, place.agent);
  await agent.hears('main');
  const file = () => fs.readFileSync(worker.config, 'utf8');
  const before = file();
  const wish = { serverName: 'far', type: 'http', url: `${elsewhere.url}/far`, command: null, args: [], env: {} };
  const added = await agent.manage('RegisterServer', wish);
  assert.equal(added.error, null);
  assert.equal(added.success, true);
  assert.deepEqual(JSON.parse(file()).mcpServers.far, { type: 'http', url: wish.url, origin: 'agent' });
  assert.match(await agent.text('far', 'count', { id: 'one' }), /^one /);
  assert.match((await agent.manage('UnregisterServer', { serverName: 'main' })).error, /belongs to the operator/);
  assert.equal((await agent.manage('UnregisterServer', { serverName: 'far' })).error, null);
  assert.equal(file(), before);
});

test('a bridge whose file has no servers at all gets its first from an agent', async (t) => {
  const elsewhere = await serve(t, { servers: { far: busServer() } });
  // Until then its list is empty, and the agent would register an empty server.
  await until('its server is up', async () =>
    (await exchange(`${elsewhere.origin}/readyz?strict`, { method: 'GET' })).status === 200);
  const place = embeddedRig(t).place();
  const worker = await serve(t, { bus: { ...place.bus, agents: [place.agent], register_hosts: ['127.0.0.1'] } });
  const agent = await place.join(t, place.agent);
  const wish = { serverName: 'far', type: 'http', url: `${elsewhere.url}/far`, command: null, args: [], env: {} };
  const added = await agent.manage('RegisterServer', wish);
  assert.deepEqual([added.success, added.error], [true, null]);
  assert.deepEqual(JSON.parse(fs.readFileSync(worker.config, 'utf8')).servers, { far: { url: wish.url, origin: 'agent' } });
  await agent.text('far', 'pid');
});

test('a file that cannot be written: the agent is told so, and the operator where it is', async (t) => {
  const { agent, worker } = await work(t, { main: busServer() });
  const before = fs.readFileSync(worker.config, 'utf8');
  fs.mkdirSync(`${worker.config}.bak`); // blocks the backup file
  const wish = { serverName: 'far', type: 'http', url: 'http://127.0.0.1:1/', command: null, args: [], env: {} };
  const { success, error } = await agent.manage('RegisterServer', wish);
  assert.equal(success, false);
  assert.match(error, /configuration file cannot be written/);
  assert.ok(!error.includes(path.dirname(worker.config)), error);
  await logged(worker, /cannot write .*rialto.*: File exists/);
  assert.equal(fs.readFileSync(worker.config, 'utf8'), before);
});

// To take the server out of the file again the bridge read the file again, using what it had already freed.
for (const [name, launch] of [['serve', work], ['bus worker', workAlone]]) {
  test(`rialto ${name}: a server that fails while the bridge leaves is taken out of the file again`, async (t) => {
    const silent = await listen(t, () => {});
    const { agent, worker } = await launch(t, { main: busServer() });
    const before = fs.readFileSync(worker.config, 'utf8');
    const wish = { serverName: 'silent', type: 'http', url: silent.url, command: null, args: [], env: {} };
    const answer = agent.manage('RegisterServer', wish);
    await until('it is in the file', () => fs.readFileSync(worker.config, 'utf8').includes('silent'), 20_000);
    const stopped = worker.stop('SIGTERM', 20_000);
    await logged(worker, /Terminated: stopping/);
    await silent.close();
    assert.match((await answer).error, /was not kept: could not be reached/);
    assert.equal(fs.readFileSync(worker.config, 'utf8'), before);
    await stopped;
  });
}

// --- the example ---

test('examples/rockbot.json: a worker made of it serves its agent', async (t) => {
  const example = JSON.parse(fs.readFileSync(path.join(root, 'examples/rockbot.json'), 'utf8'));
  const place = embeddedRig(t).place();
  const { demo } = example.mcpServers; // the others need a network
  const dir = tempDir();
  fs.symlinkSync(rialtoBin, path.join(dir, 'rialto'));
  await serve(t, { mcpServers: { demo }, bus: { ...example.bus, ...place.bus } },
    { env: { PATH: `${dir}:${process.env.PATH}` } });
  const agent = await place.join(t, example.bus.agents[0]);
  await agent.hears('demo');
  assert.ok(!agent.index.get('demo').toolNames.includes('countdown'));
  assert.match(await agent.text('demo', 'hash', { text: 'abc' }), /ba7816bf/);
});
