// Two or more Rialtos and a bus: tools on machine B, called by an MCP client of machine A.
import assert from 'node:assert/strict';
import path from 'node:path';
import { busServer, done } from './bus_worker_scenarios.mjs';
import { launch } from './bus_rig.mjs';
import { fake, HttpClient, tempDir, until } from './lib.mjs';

/** Starts a worker with these servers on the place's bus. */
export function startWorker(t, place, servers, bus = {}, options = {}) {
  return launch(t, { servers, bus: { ...place.bus, role: 'worker', agents: [place.agent], ...bus } }, options);
}

/** Starts a proxy on the place's bus and connects an MCP client to it: {server, client}. */
export async function startProxy(t, place, { agent = place.agent, bus = {}, config = {}, wanted = [] } = {}) {
  const server = await launch(t, { bus: { ...place.bus, role: 'proxy', agents: [agent], ...bus }, ...config });
  const client = await new HttpClient(server.url).connect();
  if (wanted.length) await client.waitFor(...wanted);
  return { server, client };
}

export const fleetScenarios = {
  'fleet: a client of machine A calls a stdio server of machine B': async (t, rig) => {
    const place = await rig.place(t);
    const file = path.join(tempDir(), 'done');
    await startWorker(t, place, { far: busServer(file) });
    const { client } = await startProxy(t, place, { config: { servers: { near: fake() } }, wanted: ['far__echo', 'near__add'] });
    assert.equal(await client.text('far__echo', { a: [1, { b: 'é' }] }), '{"a":[1,{"b":"é"}]}');
    assert.equal(await client.text('near__add', { a: 1, b: 2 }), '3');
    const { result } = await client.request('tools/list');
    assert.deepEqual(result.tools.find((x) => x.name === 'far__count').inputSchema.required, ['id']);
    const failed = await client.call('far__runtime', { path: '/x' });
    assert.deepEqual([failed.result.isError, failed.result.content[0].text], [true, 'disk is full']);
    const { content } = (await client.call('far__blocks')).result;
    assert.deepEqual(content.find((b) => b.type === 'image'), { type: 'image', data: 'aGk=', mimeType: 'image/png' });
    assert.equal(content[0].text.startsWith('first'), true);
  },

  'fleet: prompts and resources of machine B': async (t, rig) => {
    const place = await rig.place(t);
    await startWorker(t, place, { far: busServer() });
    const { client } = await startProxy(t, place, { wanted: ['far__echo'] });
    const { prompts } = (await client.request('prompts/list')).result;
    const { result } = await client.request('prompts/get', { name: prompts[0].name, arguments: { who: 'Ada' } });
    assert.equal(result.messages[0].content.text, 'Hello Ada');
    assert.equal(result.messages[1].content.data, 'aGk=');
    const { resources } = (await client.request('resources/list')).result;
    assert.deepEqual(resources.map((r) => r.uri).sort(), ['res://blob', 'res://large', 'res://text']);
    assert.equal((await client.request('resources/read', { uri: 'res://text' })).result.contents[0].text, 'some text');
    assert.equal((await client.request('resources/read', { uri: 'res://item/9' })).result.contents[0].text, 'item 9');
  },

  'fleet: a tool that comes and goes on machine B comes and goes on machine A': async (t, rig) => {
    const place = await rig.place(t);
    await startWorker(t, place, { far: busServer() });
    const { client } = await startProxy(t, place, { wanted: ['far__grow'] });
    const stream = await client.listen();
    t.after(() => stream.close());
    await client.text('far__grow');
    await client.waitFor('far__grown');
    await stream.waitFor('notifications/tools/list_changed');
    assert.equal(await client.text('far__grown'), 'here I am');
    await client.text('far__grow');
    await until('it is gone', async () => !(await client.toolNames()).includes('far__grown'), 20_000);
  },

  'fleet: two workers share the calls of one proxy, and each runs once': async (t, rig) => {
    const place = await rig.place(t);
    const file = path.join(tempDir(), 'done');
    await place.host?.(t);
    for (let i = 0; i < 2; i++) await startWorker(t, place, { far: busServer(file) });
    const { client } = await startProxy(t, place, { wanted: ['far__wait'] });
    const ids = [...Array(100).keys()].map((i) => `f${i}`);
    const texts = await Promise.all(ids.map((id) => client.text('far__wait', { id, ms: 30 })));
    assert.deepEqual(texts.map((x) => x.split(' ')[0]), ids);
    assert.equal(new Set(texts.map((x) => x.split(' ')[1])).size, 2, 'both worked');
    assert.deepEqual(done(file).map(([id]) => id).sort(), [...ids].sort());
  },

  'fleet: two proxies and two agents on one bus, and nobody gets another\'s reply': async (t, rig) => {
    const place = await rig.place(t);
    const agents = [place.agent, `${place.agent}b`];
    await place.host?.(t);
    for (const agent of agents) await startWorker(t, place, { far: busServer() }, { agents: [agent] });
    const clients = [];
    for (const agent of [...agents, agents[0]]) clients.push((await startProxy(t, place, { agent, wanted: ['far__echo'] })).client);
    const pids = [];
    for (const client of clients) pids.push(await client.text('far__pid'));
    assert.equal(pids[0], pids[2]);
    assert.notEqual(pids[0], pids[1]);
    const texts = await Promise.all([...Array(150).keys()].map((i) => clients[i % 3].text('far__echo', { i })));
    assert.deepEqual(texts, [...Array(150).keys()].map((i) => `{"i":${i}}`));
  },

  'fleet: workers of one agent with different servers, each under a name of its own': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    await startWorker(t, place, { left: busServer() }, { name: 'one' });
    await startWorker(t, place, { right: busServer() }, { name: 'two' });
    const { client } = await startProxy(t, place, { wanted: ['left__echo', 'right__echo'] });
    const texts = await Promise.all([...Array(40).keys()].map((i) => client.text(`${i % 2 ? 'left' : 'right'}__echo`, { i })));
    assert.deepEqual(texts, [...Array(40).keys()].map((i) => `{"i":${i}}`));
  },

  'fleet: a bridge that takes too long is heard before we give up': async (t, rig) => {
    const place = await rig.place(t);
    await startWorker(t, place, { far: busServer() });
    const { client } = await startProxy(t, place, { bus: { timeout: '3s' }, wanted: ['far__wait'] });
    const { error } = await client.call('far__wait', { id: 'x', ms: 30_000 });
    assert.match(error.message, /timed out/i);
    assert.equal(error.data.retryable, false, 'the tool may have done its work');
    await until('the server was told', async () => Number(await client.text('far__cancelled')) > 0);
  },

  'fleet: a machine that is both, worker and proxy, does not meet itself': async (t, rig) => {
    const place = await rig.place(t);
    const server = await launch(t, { servers: { mine: busServer() }, bus: { ...place.bus, role: 'both', agents: [place.agent] } });
    const client = await new HttpClient(server.url).connect();
    await client.waitFor('mine__echo');
    const agent = await place.join(t, place.agent);
    await agent.hears('mine');
    assert.equal(await agent.text('mine', 'echo'), '{}');
    assert.ok((await client.toolNames()).every((n) => n.startsWith('mine__')), 'no second copy of it');
  },
};
