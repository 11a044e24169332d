// A bridge whose servers change while it runs: by the configuration file, and by agents that register
// and unregister them over the bus.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { busServer, done } from './bus_worker_scenarios.mjs';
import { launch } from './bus_rig.mjs';
import { fake, serveAndConnect, sleep, tempDir, until } from './lib.mjs';

/** A worker on a bus of its own, with its agent; `edit` changes its configuration file. */
async function start(t, rig, servers) {
  const place = await rig.place(t);
  await place.host?.(t);
  const config = { servers, bus: { ...place.bus, role: 'worker', agents: [place.agent], register_hosts: ['127.0.0.1'] } };
  // The agent joins first and need not ask for a refresh: the answer may come a second later than the
  // announcement that it repeats, and tests that count announcements counted it as well.
  const agent = await place.join(t, place.agent, { refresh: false });
  const worker = await launch(t, config);
  await agent.hears(...Object.keys(servers));
  const read = () => JSON.parse(fs.readFileSync(worker.config, 'utf8'));
  const edit = (change, rename = false) => {
    const now = read();
    change(now.servers);
    const to = rename ? `${worker.config}.new` : worker.config;
    fs.writeFileSync(to, JSON.stringify(now, null, 2));
    if (rename) fs.renameSync(to, worker.config);
  };
  return { place, config, worker, agent, read, edit };
}

const announcedSince = (agent, from) => agent.announcements.slice(from).filter((a) => a.type === 'McpServersIndexed')
  .flatMap((a) => [...a.body.servers.map((s) => s.serverName), ...a.body.removedServers]);

/** An MCP server to be reached by a URL. */
async function upstream(t) {
  // Wait until its list is complete: a later change would be announced as one.
  const { server } = await serveAndConnect(t, { servers: { far: fake('--name', 'far') }, names: 'bare' }, ['add']);
  return server.url;
}

const register = (agent, serverName, url, more = {}) => agent.manage('RegisterServer',
  { serverName, type: 'http', url, command: null, args: [], env: {}, ...more });

export const changeScenarios = {
  'ConfigReload: servers are added and removed, and the others are left alone': async (t, rig) => {
    const { agent, edit } = await start(t, rig, { keep: busServer(), leave: fake() });
    const pid = await agent.text('keep', 'pid');
    edit((s) => { delete s.leave; s.come = fake('--name', 'come'); });
    await until('the new one is announced', () => agent.index.has('come'), 20_000);
    await until('the old one is gone', () => !agent.index.has('leave'), 20_000);
    assert.equal(await agent.text('come', 'add', { a: 2, b: 2 }), '4');
    assert.equal((await agent.error('leave', 'add')).code, 'tool_not_found');
    assert.equal(await agent.text('keep', 'pid'), pid, 'it was not started anew');
  },

  'ConfigReload: a file that is renamed into place counts like one that is written': async (t, rig) => {
    const { agent, edit } = await start(t, rig, { one: fake() });
    edit((s) => { s.two = fake('--name', 'two'); }, true);
    await agent.hears('one', 'two');
    edit((s) => { delete s.two; }, true);
    await until('and again', () => !agent.index.has('two'), 20_000);
  },

  'ConfigReload: a file that is broken, empty or gone changes nothing': async (t, rig) => {
    const { agent, worker, read } = await start(t, rig, { main: busServer() });
    const pid = await agent.text('main', 'pid');
    const good = read();
    for (const text of ['{"servers":', '', '{"servers": {"main": {"comand": "x"}}}']) {
      fs.writeFileSync(worker.config, text);
      await sleep(900);
      assert.equal(await agent.text('main', 'pid'), pid, JSON.stringify(text));
    }
    fs.unlinkSync(worker.config);
    await sleep(900);
    assert.equal(await agent.text('main', 'pid'), pid, 'gone');
    good.servers.more = fake('--name', 'more');
    fs.writeFileSync(worker.config, JSON.stringify(good));
    await agent.hears('main', 'more');
  },

  'ConfigReload: only the filter changed: the same process, another list': async (t, rig) => {
    const { agent, edit } = await start(t, rig, { main: busServer() });
    const pid = await agent.text('main', 'pid');
    const print = agent.index.get('main').fingerprint;
    edit((s) => { s.main.deny = ['echo', 'Cra*']; });
    await until('the new list', () => !agent.index.get('main').toolNames.includes('echo'), 20_000);
    assert.notEqual(agent.index.get('main').fingerprint, print);
    assert.equal((await agent.error('main', 'echo')).code, 'tool_not_found');
    assert.equal(await agent.text('main', 'pid'), pid);
    edit((s) => { delete s.main.deny; });
    await until('the old list', () => agent.index.get('main').toolNames.includes('echo'), 20_000);
    assert.equal(agent.index.get('main').fingerprint, print);
  },

  'ConfigReload: an entry that changed is a server started anew, and calls in flight end once': async (t, rig) => {
    const file = path.join(tempDir(), 'done');
    const { agent, edit } = await start(t, rig, { main: busServer(file) });
    const pid = await agent.text('main', 'pid');
    const open = agent.invoke('main', 'wait', { id: 'open', ms: 1500 });
    await until('it runs', () => done(file).length === 1);
    edit((s) => { s.main.env = { CHANGED: '1' }; });
    await until('another process', async () => (await agent.text('main', 'pid')) !== pid, 20_000);
    const reply = await open;
    assert.ok(reply.type === 'ToolError' || reply.body.content.startsWith('open'), JSON.stringify(reply.body));
    assert.equal(done(file).length, 1);
  },

  'McpBridgeOwnership: an agent registers a server, uses it and takes it away, twice': async (t, rig) => {
    const { agent, read } = await start(t, rig, { main: fake() });
    const url = await upstream(t);
    for (let i = 0; i < 2; i++) {
      const answer = await register(agent, 'Added', url);
      assert.deepEqual([answer.success, answer.error], [true, null], JSON.stringify(answer));
      assert.match(answer.summary, /tool/);
      await agent.hears('added');
      assert.equal(await agent.text('added', 'add', { a: 1, b: 2 }), '3');
      const entry = Object.entries(read().servers).find(([name]) => name.toLowerCase() === 'added')[1];
      assert.deepEqual(Object.keys(entry).sort(), ['origin', 'url'], 'nothing of the operator\'s is in it');
      const gone = await agent.manage('UnregisterServer', { serverName: 'ADDED' });
      assert.deepEqual([gone.success, gone.error], [true, null]);
      await until('it is gone', () => !agent.index.has('added'), 20_000);
      assert.ok(!JSON.stringify(read().servers).toLowerCase().includes('added'));
    }
  },

  'McpBridgeOwnership: what the operator wrote is neither replaced nor removed': async (t, rig) => {
    const { agent, read } = await start(t, rig, { main: fake() });
    const url = await upstream(t);
    const before = JSON.stringify(read());
    for (const name of ['main', 'MAIN']) {
      const again = await register(agent, name, url);
      assert.equal(again.success, false);
      assert.match(again.error, /main/i);
    }
    const gone = await agent.manage('UnregisterServer', { serverName: 'main' });
    assert.equal(gone.success, false);
    assert.match(gone.error, /operator/);
    assert.equal((await agent.manage('UnregisterServer', { serverName: 'nobody' })).success, false);
    assert.equal(JSON.stringify(read()), before);
    assert.equal(await agent.text('main', 'add', { a: 1, b: 1 }), '2');
  },

  'McpBridgeOwnership: an entry that the operator took in hand is the operator\'s': async (t, rig) => {
    const { agent, edit } = await start(t, rig, { main: fake() });
    assert.equal((await register(agent, 'added', await upstream(t))).success, true);
    await agent.hears('added');
    edit((s) => { s.added.deny = ['crash']; });
    await until('the filter counts', () => !agent.index.get('added').toolNames.includes('crash'), 20_000);
    const refused = async (what) => {
      const gone = await agent.manage('UnregisterServer', { serverName: 'added' });
      assert.equal(gone.success, false, what);
      assert.match(gone.error, /operator/, what);
    };
    await refused('with a filter');
    // A server that is switched off must not come back by being unregistered and registered again.
    edit((s) => { delete s.added.deny; s.added.enabled = false; });
    await until('it is off', () => !agent.index.has('added'), 20_000);
    await refused('switched off');
  },

  'McpBridgeOwnership: the same server under two names is refused': async (t, rig) => {
    const { agent } = await start(t, rig, { main: fake() });
    const url = await upstream(t);
    assert.equal((await register(agent, 'one', url)).success, true);
    const twin = await register(agent, 'two', `${url}/`);
    assert.equal(twin.success, false);
    assert.match(twin.error, /one/);
  },

  'McpBridgeServerConfig: what makes two entries one server, and what does not': async (t, rig) => {
    const url = await upstream(t);
    const { agent } = await start(t, rig, {
      plain: { url }, slash: { url: `${url}/` }, slow: { url, timeout: '5m' }, lazy: { url, start: 'eager', concurrency: 3 },
      header: { url, headers: { 'X-Key': 'k' } }, filtered: { url, deny: ['crash'] }, allowed: { url, allow: ['add'] },
    });
    const identity = (name) => agent.index.get(name).identityHash;
    for (const same of ['slash', 'slow', 'lazy']) assert.equal(identity(same), identity('plain'), same);
    const others = ['plain', 'header', 'filtered', 'allowed'].map(identity);
    assert.equal(new Set(others).size, others.length);
    assert.equal(new Set([...agent.index.values()].map((s) => s.serverId)).size, agent.index.size, 'ids are their own');
  },

  // The index kept the old entry, also after a refresh: an agent did not learn that it is asked the server's questions.
  'ConfigReload: what an entry says of a server is announced again when it changes': async (t, rig) => {
    const { agent, edit } = await start(t, rig, { main: fake() });
    const before = agent.index.get('main');
    assert.ok(!before.handback);
    edit((s) => { s.main.elicitation = { mode: 'handback' }; s.main.env = { X: '1' }; });
    await until('the new entry', () => agent.index.get('main').handback, 20_000);
    assert.notEqual(agent.index.get('main').identityHash, before.identityHash);
  },

  // The entry was written, and the agent was told that the server was removed while it started.
  'McpBridgeOwnership: where the operator has named the servers that run, none is registered': async (t, rig) => {
    const { agent, worker, read } = await start(t, rig, { main: fake() });
    const url = await upstream(t);
    fs.writeFileSync(worker.config, JSON.stringify({ ...read(), enabled_servers: ['main'] }));
    await until('the reload', () => /configuration read again/.test(worker.stderr()), 20_000);
    const before = JSON.stringify(read());
    const { success, error } = await register(agent, 'far', url);
    assert.equal(success, false);
    assert.match(error, /enabled_servers/);
    assert.equal(JSON.stringify(read()), before, 'nothing was written');
  },

  'McpBridgeSurface: names that are no names, programs, and no URL are refused': async (t, rig) => {
    const { agent, read } = await start(t, rig, { main: fake() });
    const before = JSON.stringify(read());
    const cases = [['a__b', 'http://127.0.0.1:1/'], ['-x', 'http://127.0.0.1:1/'], ['a b', 'http://127.0.0.1:1/'],
      ['x'.repeat(65), 'http://127.0.0.1:1/'], ['', 'http://127.0.0.1:1/'], ['nourl', null], ['bad', 'gopher://x/']];
    for (const [name, url] of cases) {
      const answer = await register(agent, name, url);
      assert.equal(answer.success, false, name);
      assert.ok(answer.error, name);
    }
    const program = await register(agent, 'prog', null, { type: 'stdio', command: '/bin/true' });
    assert.equal(program.success, false);
    assert.match(program.error, /url/);
    assert.equal(JSON.stringify(read()), before, 'nothing was written');
  },

  'McpManagementExecutor: a server that cannot be reached is told, and not kept': async (t, rig) => {
    const { agent, read } = await start(t, rig, { main: fake() });
    const answer = await register(agent, 'away', 'http://127.0.0.1:1/mcp');
    assert.equal(answer.success, false);
    assert.ok(answer.error);
    await until('it is not in the file', () => !read().servers.away);
    assert.equal(await agent.text('main', 'add', { a: 1, b: 1 }), '2');
  },

  'ConfigReload: an agent\'s own registration is not taken for an edit of the file': async (t, rig) => {
    const { agent } = await start(t, rig, { main: busServer() });
    const pid = await agent.text('main', 'pid');
    const url = await upstream(t);
    const from = agent.announcements.length;
    assert.equal((await register(agent, 'added', url)).success, true);
    await agent.hears('added');
    await sleep(1500); // longer than the pause before a changed file is read
    assert.deepEqual(announcedSince(agent, from).filter((n) => n === 'main'), []);
    assert.equal(announcedSince(agent, from).filter((n) => n === 'added').length, 1);
    assert.equal(await agent.text('main', 'pid'), pid);
  },
};
