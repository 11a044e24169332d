// A new release used to mean a restart: sessions were lost, calls in flight ended with an error, and
// clients that connected meanwhile were refused. With `rialto upgrade` another program takes over
// (docs/decisions/023-upgrade.md): users of the daemon notice nothing, and a program that cannot take
// over leaves the old one serving.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import {
  bothTypes, descendants, exchange, fake, HttpClient, isAlive, rialto, rialtoBin, serve, sleep, start, StdioClient, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { agent, greet, page, serveBrowser, Socket, text } from './browser_lib.mjs';
import { counting, home } from './daemon_lib.mjs';
import { fixtureEntry, fixtureOverHttp, ModernClient } from './peers.mjs';
import { Authority } from './tls_lib.mjs';

const upgrade = (server, ...args) => rialto(['upgrade', '-c', server.config, ...args],
  { env: { XDG_RUNTIME_DIR: server.dir }, timeout: 90_000 });

async function upgraded(server, ...args) {
  const { code, stderr } = await upgrade(server, ...args);
  assert.equal(code, 0, `${stderr}\n${server.stderr()}`);
}

/** The old process has ended when the daemon has no child that is a Rialto. */
const oldIsGone = (server, ms = 31_000) => until('the end of the old process', () => descendants(server.pid)
  .every((p) => { try { return !fs.readFileSync(`/proc/${p.pid}/cmdline`, 'utf8').includes('\0serve\0'); } catch { return true; } }), ms);

/**
 * A server of the stateless era or of none: `answers` has JavaScript for each method, with the message `m`, `ok(result)`
 * and `send(message)`; `before` runs first.
 */
function scripted(answers, before = '') {
  const script = path.join(tempDir(), 'scripted.cjs');
  fs.writeFileSync(script, `
    const fs = require('fs');
    const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    ${before}
    const answers = {${Object.entries(answers).map(([method, code]) => `
      '${method}': (m, ok) => { ${code} }`)}
    };
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const m = JSON.parse(line);
      answers[m.method]?.(m, (result) => send({ id: m.id, result }));
    }).on('close', () => process.exit());`);
  return { command: process.execPath, args: [script] };
}

const stateless = (capabilities) => `ok({ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: ${JSON.stringify(capabilities)}, serverInfo: { name: 'x', version: '1' } })`;
const listing = (kind, items) => `ok({ resultType: 'complete', ${kind}: ${JSON.stringify(items)}, ttlMs: 0, cacheScope: 'private' })`;
const saying = (text) => `ok({ resultType: 'complete', content: [{ type: 'text', text: ${text} }] })`;
const aTool = (name) => listing('tools', [{ name, inputSchema: { type: 'object' } }]);

/** A client that keeps its connection open. */
class KeptClient extends HttpClient {
  agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

  post(message, headers = {}) {
    return new Promise((resolve, reject) => {
      const request = http.request(this.url, { method: 'POST', agent: this.agent, headers: { ...this.headers, ...headers } }, (response) => {
        let text = '';
        response.on('data', (d) => { text += d; }).on('error', reject)
          .on('end', () => { this.port = request.socket?.localPort ?? this.port; resolve({ status: response.statusCode, headers: response.headers, text }); });
      });
      request.on('socket', (socket) => { this.port = socket.localPort; }).on('error', reject);
      request.end(typeof message === 'string' ? message : JSON.stringify(message));
    });
  }
}

test('an upgrade keeps sessions, connections, servers and calls in flight', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } });
  const client = await new KeptClient(server.url).connect();
  t.after(() => client.agent.destroy());
  await client.waitFor('n__count');
  const [program] = descendants(server.pid);
  const slow = new HttpClient(server.url);
  slow.headers = client.headers;
  const late = slow.call('n__count', { ms: 3000, who: 'late' });
  await until('the slow call', () => fs.existsSync(log));
  const { port } = client;
  await upgraded(server);
  // The same session on the same connection, while the old call goes on.
  assert.deepEqual(await client.toolNames(), ['n__count']);
  assert.equal(client.port, port);
  const soon = client.text('n__count', { who: 'soon' });
  assert.equal((await late).result.content[0].text, 'counted');
  assert.equal(await soon, 'counted');
  assert.ok(isAlive(program), 'the server goes on');
  await oldIsGone(server);
  assert.equal(await client.text('n__count', { who: 'last' }), 'counted');
  assert.deepEqual(fs.readFileSync(log, 'utf8').trim().split('\n').map((l) => JSON.parse(l).who), ['late', 'soon', 'last']);
  await until('nothing but the server is left', () => descendants(server.pid).map((p) => p.pid).join() === `${program.pid}`);
});

// Editors, and `rialto add`, replace the configuration by another file. Servers were identified by that file's inode,
// among other things: all of them were restarted by the next upgrade.
test('servers go on over an upgrade although the file was written anew since they were started', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const [program] = descendants(server.pid);
  fs.copyFileSync(server.config, `${server.config}.new`);
  fs.renameSync(`${server.config}.new`, server.config);
  await upgraded(server);
  await oldIsGone(server);
  assert.ok(isAlive(program), server.stderr());
  assert.match(await client.text('a__echo', { text: 'hi' }), /hi/);
});

// The new daemon ends the servers that nobody wants any more. It killed the group that they were started with, and
// waited for them: for a server that had moved to another group it waited for ever, and served nobody.
test('a server that has left its group and that the new daemon does not have is ended', async (t) => {
  const script = "import os, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.setpgid(0, os.getpgid(os.getppid()))\nos.execv(sys.argv[1], sys.argv[1:])";
  const { command, args } = fake('--name', 'w');
  const servers = { a: fake('--name', 'a') };
  const server = await serve(t, { servers: { ...servers, w: { command: 'python3', args: ['-c', script, command, ...args] } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('w__echo');
  await client.waitFor('a__echo');
  const moved = { pid: (await client.call('w__whoami')).result.structuredContent.pid };
  writeConfig(server.dir, { listen: '127.0.0.1:0', servers });
  await upgraded(server);
  await until('its end', () => !fs.existsSync(`/proc/${moved.pid}`), 5000);
  assert.match(await within(5000, 'an answer', client.text('a__echo', { text: 'hi' })), /hi/);
});

// A server that starts anew in the new daemon still has the calls of the old one. Such servers are children of the new
// daemon, which did not know them: at the end of any other of its children it killed them as orphans, and their calls.
test('a call at a server of one session ends where it began, whatever else ends meanwhile', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { own: { ...counting(log), instances: 'per-session', concurrency: 0 }, b: fake('--name', 'b') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('own__count');
  await client.waitFor('b__echo');
  const late = client.call('own__count', { ms: 3000, who: 'late' });
  await until('the slow call', () => fs.existsSync(log));
  await upgraded(server);
  const family = descendants(server.pid);
  assert.equal((await exchange(`${server.origin}/api/servers/b/restart`, { body: '{}' })).status, 202);
  assert.equal((await late).result?.content[0].text, 'counted', server.stderr());
  await oldIsGone(server);
  await until('the end of all but the process that the lists come from', () => family.filter(isAlive).length === 1);
});

// libcurl's sockets went to the new program, which knew nothing of them: their number grew with each upgrade, and for
// the servers the connections of the old one never ended.
test('connections to HTTP servers end with the daemon that made them', async (t) => {
  const open = new Set();
  const upstream = http.createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    let text = '';
    request.on('data', (d) => { text += d; }).on('end', () => {
      const { id, method } = text ? JSON.parse(text) : {};
      if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end();
      const result = method === 'initialize' ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'u', version: '1' } }
        : method === 'tools/list' ? { tools: [{ name: 't', inputSchema: { type: 'object' } }] } : { content: [{ type: 'text', text: 'done' }] };
      return response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  }).on('connection', (socket) => { open.add(socket); socket.on('close', () => open.delete(socket)).on('error', () => {}); });
  await new Promise((resolve) => { upstream.listen(0, '127.0.0.1', resolve); });
  t.after(() => { upstream.close(); upstream.closeAllConnections(); });
  const server = await serve(t, { servers: { s: { url: `http://127.0.0.1:${upstream.address().port}/mcp` } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('s__t');
  const before = [...open];
  assert.ok(before.length > 0);
  await upgraded(server);
  await oldIsGone(server);
  await until('the end of the old connections', () => !before.some((socket) => open.has(socket)), 5000);
  assert.equal(await client.text('s__t'), 'done');
});

// The next request was there already when the answer was ready: the connection went to the new daemon with the request
// before the answer was written, and the answer was lost.
test('an answer is not lost when the next request waits behind it', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('n__count');
  const { host, port } = new URL(server.url);
  const socket = net.connect(Number(port), '127.0.0.1');
  t.after(() => socket.destroy());
  let text = '';
  socket.on('data', (d) => { text += d; });
  const request = (id, ms) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'n__count', arguments: { ms, who: id } } });
    const headers = { Host: host, ...client.headers, Accept: bothTypes, 'Content-Length': body.length };
    return `POST /mcp HTTP/1.1\r\n${Object.entries(headers).map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n${body}`;
  };
  // The head of the third request is in the old daemon's parser when its body comes.
  const third = request('third', 5);
  socket.write(request('first', 2000) + request('second', 5) + third.slice(0, -10));
  await until('the slow call', () => fs.existsSync(log));
  await upgraded(server);
  await until('the first answers', () => /"id":"second"/.test(text));
  socket.write(third.slice(-10));
  await until('the third answer', () => /"id":"third"/.test(text));
  assert.deepEqual(text.match(/"id":"\w+"/g), ['"id":"first"', '"id":"second"', '"id":"third"']);
  await oldIsGone(server);
});

// The new daemon began with server/discover, also at a program that ends when it gets that, or says nothing and refuses
// to be greeted twice: both lost what they had in memory.
test('a program that does not know server/discover is not sent it by the new daemon', async (t) => {
  const old = (discover) => scripted({
    'server/discover': discover,
    initialize: `if (greeted++) send({ id: m.id, error: { code: -32600, message: 'already initialized' } });
      else ok({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } });`,
    'tools/list': aTool('count'),
    'tools/call': saying('`${++n}`'),
  }, 'let greeted = 0, n = 0;');
  const server = await serve(t, { servers: { ends: old('process.exit(3)'), silent: old('') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('ends__count', 'silent__count');
  for (const n of ['1', '2', '3']) {
    if (n !== '1') {
      await upgraded(server);
      await oldIsGone(server);
    }
    assert.equal(await client.text('ends__count'), n, server.stderr());
    assert.equal(await client.text('silent__count'), n, server.stderr());
  }
  assert.equal(server.stderr().split('does not answer server/discover').length, 2, 'only at the first start');
});

// The stream of the old daemon stayed open at a server of the stateless era: after each upgrade, agents got one update more
// for the same change.
test('after an upgrade an update comes once', async (t) => {
  const server = await serve(t, {
    servers: {
      m: scripted({
        'server/discover': stateless({ tools: {}, resources: { subscribe: true } }),
        'tools/list': aTool('touch'),
        'resources/list': listing('resources', [{ uri: 'x://a', name: 'a' }]),
        'resources/templates/list': listing('resourceTemplates', []),
        'subscriptions/listen': `open.set(m.id, m.params.notifications);
          send({ method: 'notifications/subscriptions/acknowledged', params: { notifications: m.params.notifications, _meta: { [key]: m.id } } });`,
        'notifications/cancelled': 'open.delete(m.params.requestId);',
        'tools/call': `for (const [id, n] of open) if (n.resourceSubscriptions?.includes('x://a'))
            send({ method: 'notifications/resources/updated', params: { uri: 'x://a', _meta: { [key]: id } } });
          ${saying('`${open.size}`')};`,
        initialize: "send({ id: m.id, error: { code: -32601, message: 'Method not found' } });",
      }, "const open = new Map(), key = 'io.modelcontextprotocol/subscriptionId';"),
    },
  });
  const url = `${server.url}/m`;
  const client = await new HttpClient(url).connect();
  await client.waitFor('touch');
  assert.equal((await client.request('resources/subscribe', { uri: 'x://a' })).error, undefined);
  for (let i = 0; i < 2; i++) {
    await upgraded(server);
    await oldIsGone(server);
    const stream = await client.listen();
    await until('one stream', async () => await client.text('touch') === '1');
    const before = stream.count('notifications/resources/updated');
    await client.text('touch');
    await stream.waitFor('notifications/resources/updated', before + 1);
    await client.text('touch');
    await stream.waitFor('notifications/resources/updated', before + 2);
    assert.equal(stream.count('notifications/resources/updated'), before + 2);
    stream.close();
  }
});

// libcurl looks names up in a thread, which a fork does not copy: a call whose server's name was being looked up
// waited for it in vain, and failed 25 s later.
test('an upgrade waits for the lookup of a server\'s name', async (t) => {
  const dir = tempDir(), library = path.join(dir, 'slow.so');
  fs.writeFileSync(path.join(dir, 'slow.c'), `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (host && strcmp(host, "slow.test") == 0) { sleep(2); host = "127.0.0.1"; }
    return real(host, port, hints, found);
}`);
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, path.join(dir, 'slow.c')]);
  const upstream = await fixtureOverHttp(t, 'legacy');
  const server = await serve(t, { servers: { s: { idle_stop: '1s', url: upstream.url.replace('127.0.0.1', 'slow.test') } } },
    { env: { LD_PRELOAD: library, ASAN_OPTIONS: 'detect_leaks=0:verify_asan_link_order=0' } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('s__echo');
  await sleep(3500); // the server rests, and libcurl has forgotten the address
  const call = client.call('s__echo', { message: 'here' });
  await sleep(300);
  await upgraded(server);
  const { result, error } = await within(10_000, 'the answer', call);
  assert.match(JSON.stringify(result ?? error), /here/);
});

// The new daemon forgot the servers that the old one still had: their memory leaked, which only a sanitizer sees.
test('a daemon that is stopped while the one before it still works ends all of it', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('n__count');
  const [program] = descendants(server.pid);
  client.call('n__count', { ms: 20_000, who: 'late' }).catch(() => {}); // ends with the daemon
  await until('the slow call', () => fs.existsSync(log));
  await upgraded(server);
  await server.stop();
  assert.ok(!isAlive(program));
});

// The second instance of a server that turns out to have one era is given up and freed, also in the old process, which
// still looked whether it could hand that instance over: it crashed, and the calls of other servers were lost.
test('an instance that the old process gives up takes no call with it', async (t) => {
  const log = path.join(tempDir(), 'calls'), end = path.join(tempDir(), 'end');
  const server = await serve(t, {
    servers: {
      n: { ...counting(log), concurrency: 0 },
      m: scripted({
        'server/discover': stateless({ tools: {} }), 'tools/list': aTool('say'), 'tools/call': saying("'said'"),
        initialize: `fs.writeFileSync(${JSON.stringify(`${end}.soon`)}, ''); setInterval(() => { if (fs.existsSync(${JSON.stringify(end)})) process.exit(3); }, 20);`,
      }),
    },
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('n__count', 'm__say');
  const late = client.call('n__count', { ms: 3000, who: 'late' });
  const said = client.call('m__say'); // for an agent of the initialize era, the second instance is started
  await until('both calls', () => fs.existsSync(log) && fs.existsSync(`${end}.soon`));
  await upgraded(server);
  fs.writeFileSync(end, '');
  assert.equal((await said).result?.content[0].text, 'said');
  assert.equal((await late).result?.content[0].text, 'counted', server.stderr());
  await oldIsGone(server);
});

// Web pages leave the old process at once. It freed what agents of one session of pages saw, while those agents were
// still there: it crashed, and the calls of all servers were lost.
test('agents of a session of web pages are let go in order, and no other call is lost', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serveBrowser(t, { control: undefined, servers: { n: { ...counting(log), concurrency: 0 } } });
  const tab = await page(t, server, 'S', [greet]);
  const other = await page(t, server, 'T', [greet]);
  let asked = 0;
  for (const p of [tab, other]) p.onFrame = (m) => { asked += m.method === 'tools/call'; };
  const all = await new HttpClient(server.url).connect();
  await all.waitFor('n__count', 'greet');
  const one = await agent(server, 'S');
  await (await agent(server, '*')).waitFor('greet');
  const ws = new Socket(t, server, '/mcp?session=T', {}, ['mcp']);
  await ws.opened;
  await ws.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  ws.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const late = all.call('n__count', { ms: 3000, who: 'late' });
  const calls = [all.call('greet'), one.call('greet')];
  ws.send({ jsonrpc: '2.0', id: 'greet', method: 'tools/call', params: { name: 'greet' } });
  await until('all calls', () => fs.existsSync(log) && asked === 3);
  await upgraded(server);
  for (const call of calls) assert.match(JSON.stringify(await call), /The page left before it answered/);
  assert.match(JSON.stringify(await ws.find('the answer', (m) => m.id === 'greet')), /The page left before it answered/);
  assert.equal(await ws.closed, 1001);
  assert.equal((await late).result?.content[0].text, 'counted', server.stderr());
  await oldIsGone(server);
  (await page(t, server, 'S', [greet])).answer(() => text('Hi'));
  assert.equal((await one.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status, 404);
  assert.equal(await (await agent(server, 'S')).text('greet'), 'Hi');
});

// It has no configuration to read any more: SIGHUP made it crash, and its calls were lost.
test('the old process ignores a signal to reload', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('n__count');
  const late = client.call('n__count', { ms: 3000, who: 'late' });
  await until('the slow call', () => fs.existsSync(log));
  await upgraded(server);
  const old = descendants(server.pid).find(({ pid }) => fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0serve\0'));
  process.kill(old.pid, 'SIGHUP');
  assert.equal((await late).result?.content[0].text, 'counted');
  await oldIsGone(server);
});

test('a program that cannot take over leaves the old daemon serving', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const script = (text) => {
    const file = path.join(tempDir(), 'program');
    fs.writeFileSync(file, text, { mode: 0o755 });
    return file;
  };
  const cases = [
    ['/nowhere/rialto', /cannot start \/nowhere\/rialto/],
    [script('#!/bin/sh\nexit 0\n'), /not a Rialto that can take over/],
    [script('#!/bin/sh\necho wrong >&2; exit 3\n'), /exited with 3: wrong/],
    [script('#!/bin/sh\nexec sleep 60\n'), /not ready within 15 s/],
  ];
  const family = descendants(server.pid);
  for (const [program, reason] of cases) {
    const { code, stderr } = await upgrade(server, program);
    assert.equal(code, 1, program);
    assert.match(stderr, reason);
    assert.equal(await client.text('a__echo', { message: 'here' }), '{"message":"here"}');
  }
  const before = fs.readFileSync(server.config);
  fs.writeFileSync(server.config, '{"servers": {"a": {"commande": "x"}}}');
  const { code, stderr } = await upgrade(server);
  assert.equal(code, 1);
  assert.match(stderr, /commande/);
  fs.writeFileSync(server.config, before);
  assert.equal(await client.text('a__echo', { message: 'still' }), '{"message":"still"}');
  assert.deepEqual(descendants(server.pid), family);
});

test('a shim with a call in flight notices nothing', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } });
  const host = await new StdioClient(t, rialtoBin, ['stdio', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } }).connect();
  await host.waitFor('n__count');
  const late = host.request('tools/call', { name: 'n__count', arguments: { ms: 2000, who: 'late' } });
  await until('the slow call', () => fs.existsSync(log));
  await upgraded(server);
  const soon = host.request('tools/call', { name: 'n__count', arguments: { who: 'soon' } });
  assert.equal((await late).result?.content[0].text, 'counted');
  assert.equal((await soon).result?.content[0].text, 'counted');
  await oldIsGone(server);
  assert.equal(fs.readFileSync(log, 'utf8').trim().split('\n').length, 2);
  assert.equal(host.messages().filter((m) => m.error).length, 0);
  await host.stop(20_000); // before the daemon stops: the host would start another one
});

test('a question that the old daemon asked is answered through the new one', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url).connect({ capabilities: { elicitation: {} } });
  await client.waitFor('a__ask');
  let text = '';
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'a__ask', arguments: { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } } } } });
  const answered = new Promise((resolve, reject) => {
    const request = http.request(client.url, { method: 'POST', agent: false, headers: client.headers }, (response) => {
      response.on('data', (d) => { text += d; }).on('end', () => resolve(text)).on('error', reject);
    });
    request.on('error', reject).end(body);
  });
  const asked = await until('the question', () => text.split('\n').filter((l) => l.startsWith('data: {'))
    .map((l) => JSON.parse(l.slice(6))).find((m) => m.method === 'elicitation/create'));
  await upgraded(server);
  const answer = await client.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { name: 'Ada', color: 'red' } } });
  assert.equal(answer.status, 202);
  assert.match(await within(10_000, 'the answer', answered), /"id":7,"result"/);
  await oldIsGone(server, 5000);
});

// A parked call is still open at its server, which waits for the answer to its question: the call moves with
// the server, here in two upgrades, before its agent comes back.
test('a parked call goes on in the new daemon', async (t) => {
  const server = await serve(t, { servers: { fixture: fixtureEntry('legacy') } });
  const url = `${server.url}/fixture`;
  const agent = new ModernClient(url);
  await agent.waitFor('echo');
  const [program] = descendants(server.pid);
  const question = { name: 'test_elicitation', arguments: { message: 'Who?' } };
  const { result } = await agent.request('tools/call', question);
  assert.equal(result?.resultType, 'input_required');
  const [key] = Object.keys(result.inputRequests);
  for (let i = 0; i < 2; i++) {
    await upgraded(server);
    await oldIsGone(server, 5000); // the old process does not wait for the agent
    assert.equal((await agent.request('tools/call', { name: 'echo', arguments: { message: 'x' } })).error, undefined);
  }
  const accept = { action: 'accept', content: { username: 'ann', email: 'a@example.com' } };
  const retry = { ...question, requestState: result.requestState, inputResponses: { [key]: accept } };
  const stranger = await new ModernClient(url).request('tools/call', { ...retry, arguments: { message: 'Other' } });
  assert.equal(stranger.error?.code, -32602, JSON.stringify(stranger));
  const end = await agent.request('tools/call', retry);
  assert.match(JSON.stringify(end.result), /ann/, JSON.stringify(end));
  assert.equal((await agent.request('tools/call', retry)).error?.code, -32602, 'once');
  assert.ok(isAlive(program));
});

test('a daemon that a host has started is upgraded, and keeps its log, socket and process', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const user = home(t, { servers: { n: counting(log) } });
  const host = await user.host().connect();
  await host.waitFor('n__count');
  const [before] = await user.daemons();
  const { code, stderr } = await rialto(['upgrade', '-c', user.file], { env: user.env, timeout: 90_000 });
  assert.equal(code, 0, stderr);
  assert.equal((await host.request('tools/call', { name: 'n__count', arguments: {} })).result?.content[0].text, 'counted');
  const [after] = await user.daemons();
  assert.deepEqual([after.pid, after.log], [before.pid, before.log]);
  assert.match(user.log(), /the old process ends/);
});

// systemd identifies the daemon by its process, and gets its messages at NOTIFY_SOCKET.
test('a service manager keeps its main process, and is told by the new program that it is ready', async (t) => {
  const told = path.join(tempDir(), 'notify');
  const manager = start('python3', ['-c', `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1])
while True: print(s.recv(100).decode(), flush=True)`, told], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => manager.kill());
  let words = '';
  manager.stdout.on('data', (d) => { words += d; });
  await until('the socket', () => fs.existsSync(told));
  const server = await serve(t, { servers: { a: fake('--name', 'a') } }, { env: { NOTIFY_SOCKET: told, WATCHDOG_USEC: '400000' } });
  await until('READY', () => words.includes('READY=1'));
  words = '';
  await upgraded(server);
  await until('READY of the new program', () => words.includes('READY=1'));
  await oldIsGone(server);
  words = '';
  await until('signs of life', () => words.includes('WATCHDOG=1'));
  assert.ok(!words.includes('STOPPING'));
});

// The keys of a TLS connection are in the old process: it forwards the bytes of the next request, and the
// response says that the connection will be closed.
test('a connection with TLS is served by the new daemon', async (t) => {
  const authority = new Authority();
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, {
    listen: { address: '127.0.0.1:0', tls: authority.sign('server') }, servers: { n: { ...counting(log), concurrency: 0 } },
  });
  const client = await new HttpClient(server.url, { ca: authority.text }).connect();
  await client.waitFor('n__count');
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: authority.text });
  t.after(() => agent.destroy());
  const call = (who) => new Promise((resolve, reject) => {
    const request = https.request(server.url, { method: 'POST', agent, headers: client.headers }, (response) => {
      let text = '';
      response.on('data', (d) => { text += d; }).on('error', reject)
        .on('end', () => resolve({ text, reused: request.reusedSocket, connection: response.headers.connection }));
    });
    request.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', id: who, method: 'tools/call', params: { name: 'n__count', arguments: { who } } }));
  });
  assert.match((await call('first')).text, /counted/);
  await upgraded(server);
  const second = await call('second');
  assert.match(second.text, /counted/);
  assert.deepEqual([second.reused, second.connection], [true, 'close']);
  const third = await call('third');
  assert.match(third.text, /counted/);
  assert.equal(third.reused, false);
  await oldIsGone(server, 5000);
  assert.deepEqual(fs.readFileSync(log, 'utf8').trim().split('\n').length, 3);
});

// The new daemon gets such a connection as one end of a pair of Unix sockets. It took whoever was behind it for the
// daemon's own user: another user of the machine could add a server, a program that runs as that user.
test('a connection with TLS is after an upgrade still of the user who made it', { skip: process.getuid() !== 0 && 'another user can be only as root' }, async (t) => {
  const server = await serve(t, { listen: { address: '127.0.0.1:0', tls: new Authority().sign('server') }, servers: {} });
  const program = `
import http.client, json, ssl, sys
c = http.client.HTTPSConnection('127.0.0.1', int(sys.argv[1]), context=ssl._create_unverified_context())
for name in sys.stdin:
    c.request('POST', '/api/servers', json.dumps({'name': name.strip(), 'entry': {'command': 'true', 'enabled': False}}), {'Content-Type': 'application/json'})
    answer = c.getresponse()
    print(answer.status, answer.read(), flush=True)`;
  const as = (uid) => {
    const child = start('/usr/bin/env', ['python3', '-c', program, new URL(server.origin).port], { uid, cwd: '/', env: { PATH: process.env.PATH }, stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => child.kill());
    let said = '';
    child.stdout.on('data', (d) => { said += d; });
    return async (name) => {
      said = '';
      child.stdin.write(`${name}\n`);
      await until('the answer', () => said.includes('\n'));
      return said;
    };
  };
  const nobody = as(65534), owner = as(0);
  assert.match(await nobody('a'), /^403 .*only for the user that this Rialto runs as/);
  assert.match(await owner('b'), /^201 /);
  await upgraded(server);
  assert.match(await nobody('c'), /^403 .*only for the user that this Rialto runs as/);
  assert.match(await owner('d'), /^201 /);
  assert.deepEqual(Object.keys(JSON.parse(fs.readFileSync(server.config, 'utf8')).servers), ['b', 'd']);
});

test('upgrades under load lose no call, refuse nobody and forget no session', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const server = await serve(t, { servers: { n: { ...counting(log), concurrency: 0 } } }, { slack: 3 });
  const clients = [];
  for (let i = 0; i < 4; i++) clients.push(await new KeptClient(server.url).connect());
  t.after(() => clients.forEach((c) => c.agent.destroy()));
  await clients[0].waitFor('n__count');
  const host = await new StdioClient(t, rialtoBin, ['stdio', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } }).connect();
  await host.waitFor('n__count');
  let over = false, calls = 0;
  const wrong = [];
  const work = async (call) => {
    for (let n = 0; !over; n++) {
      const id = `${calls++}`;
      try {
        const { result, error } = await call({ id, ms: n % 10 === 0 ? 300 : 5 });
        if (result?.content?.[0].text !== 'counted') wrong.push(JSON.stringify(error ?? result));
      } catch (e) { wrong.push(`${e.message}`); }
    }
  };
  const workers = [
    ...clients.map((c) => work((args) => c.call('n__count', args))),
    work(async (args) => new HttpClient(server.url).connect().then((c) => c.call('n__count', args))),
    work((args) => host.request('tools/call', { name: 'n__count', arguments: args })),
  ];
  const upgrades = Number(process.env.RIALTO_UPGRADES ?? 10);
  for (let i = 0; i < upgrades; i++) {
    await upgraded(server);
    await sleep(50);
  }
  over = true;
  await Promise.all(workers);
  assert.deepEqual(wrong, []);
  const ran = fs.readFileSync(log, 'utf8').trim().split('\n').map((l) => JSON.parse(l).id);
  assert.equal(new Set(ran).size, ran.length, 'no call ran twice');
  assert.equal(ran.length, calls, 'every call ran');
  await oldIsGone(server);
  t.diagnostic(`${calls} calls during ${upgrades} upgrades`);
  await host.stop(20_000); // before the daemon stops: the host would start another one
});

// A program can pass the rehearsal and still fail. The old daemon then goes on as a copy, whose parent is the process
// that adopts orphans, a user's systemd for example: the copy killed that process.
const warden = `
import ctypes, os, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
def end(*_):
    for pid in open(f'/proc/self/task/{os.getpid()}/children').read().split(): os.kill(int(pid), signal.SIGTERM)
signal.signal(signal.SIGTERM, end)
subprocess.Popen(sys.argv[1:])
while True:
    try: os.wait()
    except ChildProcessError: sys.exit()`;

test('a program that ends after the rehearsal leaves the old daemon serving, and harms nobody else', async (t) => {
  const program = path.join(tempDir(), 'program');
  fs.writeFileSync(program, '#!/bin/sh\n[ "$RIALTO_UPGRADE" = rehearse ] && echo "rialto upgrade 1" && exit 0\nsleep 0.2\nexit 7\n', { mode: 0o755 });
  const server = await serve(t, { servers: { a: fake('--name', 'a') } }, { bin: ['python3', '-c', warden, rialtoBin], slack: 3 });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
  const { code, stderr } = await upgrade(server, program);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /did not serve in time, or ended/);
  await client.waitFor('a__echo');
  assert.equal(await client.text('a__echo', { message: 'still' }), '{"message":"still"}');
  assert.ok(fs.existsSync(`/proc/${server.pid}/exe`), 'whoever looks after the daemon lives');
});

// The request names a program that then gets everything the daemon has. The port is open to all users of a machine.
test('an upgrade is asked for by the control socket alone', async (t) => {
  const server = await serve(t, { servers: {} });
  const answer = await fetch(`${server.origin}/upgrade`, { method: 'POST', body: '{"program":"/bin/true"}' });
  assert.equal(answer.status, 403);
  assert.match(await answer.text(), /only by the control socket/);
});
