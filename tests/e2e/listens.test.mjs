// When subscriptions change, the new subscriptions/listen must be acknowledged before the old one ends: at
// a round trip of 50 ms, 26 of 150 updates were lost in between. And on stdio, a call that an agent sent
// right after its listen reached the server before it, and nobody got the update that the call caused.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, serve, sleep, StdioClient, rialtoBin, tempDir, until, writeConfig } from './lib.mjs';
import { META, MODERN, ModernClient, node22 } from './peers.mjs';
import { listen, readBody } from './upstream_lib.mjs';

const complete = (more) => ({ resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...more });
const uris = ['x://a', 'x://b', 'x://c'];
const results = {
  'server/discover': complete({ supportedVersions: [MODERN], capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } } }),
  'tools/list': complete({ tools: [{ name: 'touch', inputSchema: { type: 'object' } }] }),
  'tools/call': complete({ content: [{ type: 'text', text: 'touched' }] }),
  'resources/list': complete({ resources: uris.map((uri) => ({ uri, name: uri })) }),
  'resources/templates/list': complete({ resourceTemplates: [] }),
};
const note = (id, method, params) => ({ jsonrpc: '2.0', method, params: { ...params, _meta: { [`${META}subscriptionId`]: id } } });

test('no update is lost while subscriptions change', async (t) => {
  const open = new Map(); // id of a listen -> {wanted, response}
  const ended = [];
  const { url } = await listen(t, async (request, response) => {
    const message = JSON.parse(await readBody(request));
    if (message.method !== 'subscriptions/listen') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: results[message.method] }));
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    await sleep(200); // a long round trip
    if (response.destroyed) return; // replaced before it was acknowledged
    const wanted = message.params.notifications.resourceSubscriptions ?? [];
    response.on('close', () => { open.delete(message.id); ended.push({ id: message.id, others: open.size }); });
    open.set(message.id, { wanted, response });
    response.write(`data: ${JSON.stringify(note(message.id, 'notifications/subscriptions/acknowledged', { notifications: message.params.notifications }))}\n\n`);
  });
  const server = await serve(t, { servers: { s: { url, era: 'modern' } } });
  const client = new ModernClient(server.url);
  await until('the server', async () => (await client.request('resources/list')).result.resources.length === 3);
  const first = await client.listen({ resourceSubscriptions: ['x://a'] });
  await until('the first subscription', () => [...open.values()].some((l) => l.wanted.includes('x://a')));
  // An agent of the initialize era gets neither the id of our subscription nor an empty _meta.
  const old = await new HttpClient(server.url).connect();
  const heard = await old.listen();
  await old.request('resources/subscribe', { uri: 'x://a' });
  // Every 10 ms the resource changes once; the update is sent to those who are subscribed at that moment.
  let sent = 0;
  let missed = 0;
  const ticker = setInterval(() => {
    const those = [...open].filter(([, l]) => l.wanted.includes('x://a'));
    sent += 1;
    if (!those.length) missed += 1;
    for (const [id, l] of those) l.response.write(`data: ${JSON.stringify(note(id, 'notifications/resources/updated', { uri: 'x://a', n: sent }))}\n\n`);
  }, 10);
  const others = [];
  for (const uri of ['x://b', 'x://c']) {
    others.push(await client.listen({ resourceSubscriptions: [uri] }));
    await until(`a subscription with ${uri}`, () => [...open.values()].some((l) => l.wanted.includes(uri)));
    await sleep(300);
  }
  for (const stream of others) { stream.close(); await sleep(300); }
  clearInterval(ticker);
  assert.equal(missed, 0, `${missed} of ${sent} updates met no subscription`);
  await until('all updates', () => first.of('notifications/resources/updated').length >= sent);
  await until('one subscription in the end', () => open.size === 1);
  assert.ok(ended.length >= 3 && ended.every((e) => e.others > 0), JSON.stringify(ended));
  first.close();
  const [{ params }] = heard.messages().filter((m) => m.method === 'notifications/resources/updated');
  assert.deepEqual(Object.keys(params).sort(), ['n', 'uri']);
  heard.close();
});

test('on a pipe, a call right behind a listen does not overtake it', async (t) => {
  const dir = tempDir();
  const log = path.join(dir, 'log');
  fs.writeFileSync(path.join(dir, 'server.mjs'), `
import fs from 'node:fs';
import readline from 'node:readline';
const results = ${JSON.stringify(results)};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  fs.appendFileSync(${JSON.stringify(log)}, method + ' ' + (params?.notifications?.resourceSubscriptions ?? '') + '\\n');
  const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
  const _meta = { '${META}subscriptionId': id };
  if (method === 'subscriptions/listen') say({ method: 'notifications/subscriptions/acknowledged', params: { notifications: params.notifications, _meta } });
  else if (results[method]) say({ id, result: results[method] });
});
`);
  const config = writeConfig(dir, { listen: '127.0.0.1:0', control: 'off', servers: { s: { command: node22, args: [path.join(dir, 'server.mjs')], era: 'modern' } } });
  const agent = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', config]);
  const meta = { [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: {} };
  const message = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } });
  for (let id = 1; !agent.messages().some((m) => m.result?.resources?.length); id++) {
    agent.send(message(`l${id}`, 'resources/list', {}));
    await sleep(100);
    assert.ok(id < 200, agent.stderr);
  }
  agent.send(`${message(1, 'subscriptions/listen', { notifications: { resourceSubscriptions: ['x://a'] } })}\n${message(2, 'tools/call', { name: 's__touch', arguments: {} })}`);
  await until('the answer', () => agent.messages().some((m) => m.id === 2));
  const seen = fs.readFileSync(log, 'utf8').split('\n');
  agent.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  assert.ok(seen.indexOf('subscriptions/listen x://a') >= 0 && seen.indexOf('subscriptions/listen x://a') < seen.indexOf('tools/call '), seen.join());
});

// After one 503 no subscriptions/listen was sent again, and list changes were lost until a restart. A server with
// one subscription for each client, which ends the old one itself, was sent ten new ones each second, for ever;
// and one that ends each at once, one each second.
test('a subscriptions/listen that fails or ends is sent again, later and later', async (t) => {
  const at = { busy: [], single: [], short: [] }; // when each listen came
  const far = async (name, respond) => (await listen(t, async (request, response) => {
    const message = JSON.parse(await readBody(request));
    const send = (m) => response.write(`data: ${JSON.stringify(m)}\n\n`);
    if (message.method !== 'subscriptions/listen') {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: results[message.method] }));
      return;
    }
    at[name].push(Date.now());
    if (name === 'busy' && at.busy.length < 3) {
      response.writeHead(503).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    send(note(message.id, 'notifications/subscriptions/acknowledged', { notifications: message.params.notifications }));
    respond(() => {
      send({ jsonrpc: '2.0', id: message.id, result: complete({ _meta: { [`${META}subscriptionId`]: message.id } }) });
      response.end();
    });
  })).url;
  let endOld = () => {};
  const urls = {
    busy: await far('busy', () => {}),
    single: await far('single', (end) => { endOld(); endOld = end; }),
    short: await far('short', (end) => end()),
  };
  const servers = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url, era: 'modern' }]));
  const server = await serve(t, { servers });
  const single = await new HttpClient(`${server.url}/single`).connect();
  await until('the server', async () => (await single.request('resources/list')).result.resources.length === 3);
  await until('the first listen', () => at.single.length === 1);
  assert.ok((await single.request('resources/subscribe', { uri: 'x://a' })).result);
  await until('the others', () => at.busy.length === 3 && at.short.length === 4, 20_000);
  assert.equal(at.single.length, 2, 'one for each change');
  assert.ok(at.short[3] - at.short[2] > 1800, `waits that grow: ${at.short.map((ms) => ms - at.short[0])}`);
});

// Each subscriptions/listen named every task whose end was never heard, also those of a process that had ended, and resources
// that were unsubscribed while the server was down. A server that refuses ids it does not know was then taken for one without
// subscriptions: changes of its lists were not heard until its next restart.
test('a subscriptions/listen names only tasks and resources that are left, and is sent again when the server refuses a task', async (t) => {
  const dir = tempDir();
  const log = path.join(dir, 'log');
  fs.writeFileSync(path.join(dir, 'server.mjs'), `
import fs from 'node:fs';
import readline from 'node:readline';
const results = ${JSON.stringify(results)};
results['server/discover'].capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, extensions: { '${META}tasks': {} } };
const known = new Set(), listens = new Set();
let tools = ['work', 'die', 'grow', 'forget'];
const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const about = (id, m) => say({ ...m, params: { ...m.params, _meta: { '${META}subscriptionId': id } } });
let n = 0;
const call = {
  die: () => process.exit(1),
  forget: () => known.clear(),
  grow: () => { tools.push('extra'); for (const id of listens) about(id, { method: 'notifications/tools/list_changed' }); },
};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const tool = params?.name;
  if (method === 'notifications/cancelled') listens.delete(params.requestId);
  else if (method === 'subscriptions/listen') {
    const { taskIds = [], resourceSubscriptions = [] } = params.notifications;
    const fine = taskIds.every((x) => known.has(x));
    fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify({ fine, names: [...taskIds.map((x) => x.slice(0, 2)), ...resourceSubscriptions] }) + '\\n');
    if (!fine) return say({ id, error: { code: -32602, message: 'unknown task' } });
    listens.add(id);
    about(id, { method: 'notifications/subscriptions/acknowledged', params: { notifications: params.notifications } });
  } else if (method === 'tools/list') say({ id, result: { ...results[method], tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  else if (tool === 'work') {
    const now = new Date().toISOString();
    const taskId = 't' + ++n + '-of-process-' + process.pid;
    known.add(taskId);
    say({ id, result: { resultType: 'task', taskId, status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: params.arguments.ttl, pollIntervalMs: 1000 } });
  } else { call[tool]?.(); say({ id, result: results[method] }); }
});
`);
  const server = await serve(t, { servers: { s: { command: node22, args: [path.join(dir, 'server.mjs')], era: 'modern' } } });
  const client = new ModernClient(server.url, { capabilities: { extensions: { [`${META}tasks`]: {} } } });
  const listened = () => fs.readFileSync(log, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  const untilListen = (...names) => until(`a listen with ${names}`, () => String(listened().at(-1).names) === String(names));
  const work = (ttl) => client.call('s__work', { ttl });
  await client.waitFor('s__work');
  const agent = await client.listen({ resourceSubscriptions: ['x://a'] });
  await untilListen('x://a');
  await work(600_000);
  await untilListen('t1', 'x://a');
  const before = listened().length;
  await client.call('s__die');
  agent.close();
  await until('the next process', () => listened().length > before, 20_000);
  assert.deepEqual(listened().slice(before), [{ fine: true, names: [] }]);

  await client.waitFor('s__work');
  await work(300);
  await untilListen('t1');
  await sleep(500);
  await work(600_000); // the first is forgotten by now
  await untilListen('t2');

  await client.call('s__forget');
  await work(600_000);
  await until('another listen after the refusal', () => listened().at(-2).fine === false && listened().at(-1).fine);
  await sleep(200);
  await client.call('s__grow');
  await client.waitFor('s__extra');
});
