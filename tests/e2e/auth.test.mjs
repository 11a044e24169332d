// Bearer tokens and views: who is let in, what each caller sees, and that nobody reaches what is another's.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { test } from 'node:test';
import {
  bothTypes, descendants, exchange, fake, HttpClient, load, rialto, rialtoBin, serve, StdioClient, tempDir,
  until, within, writeConfig,
} from './lib.mjs';
import { page, Socket } from './browser_lib.mjs';
import { fixtureEntry, ModernClient, v1 } from './peers.mjs';

const { WebSocket } = load('ws');
const { SSEClientTransport } = load('@modelcontextprotocol/sdk/client/sse.js');

const hash = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const ADMIN = 'token-of-the-administrator';
const LAPTOP = 'token-of-the-laptop';
const PHONE = 'token-of-the-phone';
const entry = (name, token, view) => ({ name, hash: hash(token), ...(view && { view }) });
const auth = { tokens: [entry('admin', ADMIN), entry('laptop', LAPTOP, 'laptop'), entry('phone', PHONE, 'phone')] };
const views = { laptop: { servers: ['files'], deny: ['*echo*'] }, phone: { allow: ['echo'] } };
const servers = { files: fake('--name', 'files'), other: fake('--name', 'other') };
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});

async function start(t, more = {}, options = {}) {
  const server = await serve(t, { servers, views, auth, ...more },
    { ...options, env: { XDG_STATE_HOME: tempDir(), ...options.env } });
  const admin = await new HttpClient(server.url, { token: ADMIN }).connect();
  if (!more.servers && !more.expose) await admin.waitFor('files__echo', 'other__echo');
  return { server, admin };
}

test('without a token, or with a wrong one, nothing but health is to be had', async (t) => {
  const { server } = await start(t);
  const paths = ['/mcp', '/mcp/files', '/mcp/nobody', '/sse', '/mcp/sse', '/status', '/metrics', '/api/servers', '/', '/nothing', '/mcp?token=' + ADMIN];
  for (const where of paths)
    for (const headers of [{}, bearer('nonsense-4711'), bearer(''), bearer(hash(ADMIN)), { Authorization: `Basic ${ADMIN}` }, { Authorization: ADMIN }])
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await exchange(server.origin + where, { method, headers: { ...json, ...headers }, body: method === 'POST' ? initialize : undefined });
        assert.equal(answer.status, 401, `${method} ${where} ${JSON.stringify(headers)}`);
        assert.match(answer.headers['www-authenticate'], /^Bearer resource_metadata="http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource\/(mcp|sse)[^"]*"/);
        assert.match(answer.text, /Unauthorized.*Bearer/);
      }
  const wrong = await exchange(server.url, { headers: { ...json, ...bearer('nonsense-4711') }, body: initialize });
  assert.match(wrong.headers['www-authenticate'], /error="invalid_token"/);
  assert.equal(JSON.parse(wrong.text).error.code, -32000);
  for (const where of ['/healthz', '/readyz'])
    assert.equal((await exchange(server.origin + where, { method: 'GET' })).status, 200, where);
  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp']);
  const status = await within(10_000, 'the refusal', new Promise((resolve) => {
    ws.on('unexpected-response', (_, response) => resolve(response.statusCode));
    ws.on('open', () => resolve('open'));
  }));
  assert.equal(status, 401);
  ws.on('error', () => {});
  ws.terminate();
  // Whole values: a port such as 47112 in a line of the log is no token.
  assert.doesNotMatch(server.stderr(), new RegExp(`${ADMIN}|${LAPTOP}|nonsense`));
});

test('what is to be known before one has a token (RFC 9728)', async (t) => {
  const { server } = await start(t);
  const about = (rest) => exchange(`${server.origin}/.well-known/oauth-protected-resource${rest}`, { method: 'GET' });
  for (const [rest, resource] of [['', '/mcp'], ['/mcp', '/mcp'], ['/mcp/files', '/mcp/files'], ['/sse', '/sse']]) {
    const answer = await about(rest);
    assert.equal(answer.status, 200);
    const body = JSON.parse(answer.text);
    assert.equal(body.resource, server.origin + resource);
    assert.deepEqual(body.bearer_methods_supported, ['header']);
  }
  const plain = await serve(t, { servers: {} });
  assert.equal((await exchange(`${plain.origin}/.well-known/oauth-protected-resource`, { method: 'GET' })).status, 404);
});

test('a view limits lists and calls, in both eras, on every transport and at /mcp/<server>', async (t) => {
  const { server, admin } = await start(t);
  assert.equal(await admin.text('other__echo', { a: 1 }), '{"a":1}');

  const laptop = await new HttpClient(server.url, { token: LAPTOP }).connect();
  const names = await laptop.toolNames();
  assert.ok(names.includes('files__add') && names.every((n) => n.startsWith('files__') && !n.includes('echo')), `${names}`);
  for (const name of ['files__echo', 'other__echo', 'other__add']) {
    const { error } = await laptop.call(name);
    assert.match(error.message, /unknown tool/i, name);
  }
  const modern = new ModernClient(server.url, { headers: bearer(LAPTOP) });
  assert.deepEqual(await modern.toolNames(), names);
  assert.ok((await modern.call('files__echo')).error);
  assert.ok((await modern.call('files__add', { a: 1, b: 2 })).result);

  const own = await new HttpClient(`${server.url}/files`, { token: LAPTOP }).connect();
  assert.ok((await own.toolNames()).includes('add') && !(await own.toolNames()).includes('echo'));
  assert.ok((await own.call('echo')).error);
  assert.ok((await new ModernClient(`${server.url}/files`, { headers: bearer(LAPTOP) }).call('echo')).error);
  assert.equal((await exchange(`${server.url}/other`, { headers: { ...json, ...bearer(LAPTOP) }, body: initialize })).status, 404);

  const phone = await new HttpClient(server.url, { token: PHONE }).connect();
  assert.deepEqual((await phone.toolNames()).sort(), ['files__echo', 'other__echo']);

  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp'], { headers: bearer(LAPTOP) });
  const messages = [];
  ws.on('message', (data) => messages.push(JSON.parse(data)));
  await within(10_000, 'the socket', new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); }));
  ws.send(initialize);
  ws.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  ws.send('{"jsonrpc":"2.0","id":2,"method":"tools/list"}');
  ws.send('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files__echo"}}');
  const answer = (id) => until(`answer ${id}`, () => messages.find((m) => m.id === id));
  assert.deepEqual((await answer(2)).result.tools.map((x) => x.name), names);
  assert.ok((await answer(3)).error);
  ws.close();

  const sdk = new v1.Client({ name: 'sse', version: '1' });
  await sdk.connect(new SSEClientTransport(new URL(`${server.origin}/sse`), {
    requestInit: { headers: bearer(LAPTOP) },
    eventSourceInit: { fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, Accept: 'text/event-stream', ...bearer(LAPTOP) } }) },
  }));
  assert.deepEqual((await sdk.listTools()).tools.map((x) => x.name), names);
  await assert.rejects(sdk.callTool({ name: 'files__echo', arguments: {} }), /unknown tool/i);
  await sdk.close();
});

test('?view= gives a view to those who may see all, and nothing to others', async (t) => {
  const open = await serve(t, { servers, views });
  await (await new HttpClient(open.url).connect()).waitFor('files__echo', 'other__echo');
  const url = `${open.url}?view=laptop`;
  const client = await new HttpClient(url).connect();
  const names = await client.toolNames();
  assert.ok(names.includes('files__add') && names.every((n) => n.startsWith('files__') && !n.includes('echo')), `${names}`);
  assert.ok((await client.call('other__add')).error);
  assert.deepEqual(await new ModernClient(url).toolNames(), names);
  const own = await new HttpClient(`${open.url}/files?view=laptop`).connect();
  assert.ok(!(await own.toolNames()).includes('echo'));
  const sdk = new v1.Client({ name: 'sse', version: '1' });
  await sdk.connect(new SSEClientTransport(new URL(`${open.origin}/sse?view=laptop`)));
  assert.deepEqual((await sdk.listTools()).tools.map((x) => x.name), names);
  await sdk.close();
  const status = async (where, headers = {}) => (await exchange(where, { headers: { ...json, ...headers }, body: initialize })).status;
  assert.equal(await status(`${open.url}?view=nobody`), 404);
  assert.equal(await status(`${open.url}?view=`), 404);
  assert.equal(await status(`${open.url}/other?view=laptop`), 404);
  // A session of one view is not found in another.
  assert.equal(await status(open.url, { 'Mcp-Session-Id': client.headers['Mcp-Session-Id'] }), 404);

  const { server } = await start(t);
  assert.equal(await status(`${server.url}?view=phone`, bearer(LAPTOP)), 403);
  assert.equal(await status(`${server.url}?view=laptop`, bearer(LAPTOP)), 200);
  assert.equal(await status(`${server.url}?view=phone`, bearer(ADMIN)), 200);
  assert.equal(await status(`${server.url}?view=phone`), 401);
});

test('views hold when tools are searched for, and for instances of one session', async (t) => {
  const searching = (await start(t, { expose: 'search' })).server;
  const laptop = await new HttpClient(searching.url, { token: LAPTOP }).connect();
  assert.deepEqual(await laptop.toolNames(), ['find_tools', 'call_tool']);
  const find = async (query) => (await laptop.call('find_tools', { query, limit: 50 })).result.structuredContent.tools.map((x) => x.name);
  await until('files to be found', async () => (await find('add')).includes('files__add'));
  assert.deepEqual((await find('echo add whoami other files')).filter((n) => /other|echo/.test(n)), []);
  for (const name of ['files__echo', 'other__add']) {
    const { result, error } = await laptop.call('call_tool', { name, arguments: {} });
    assert.ok(error || result.isError, name);
  }
  assert.ok(!(await laptop.call('call_tool', { name: 'files__add', arguments: { a: 1, b: 2 } })).result.isError);

  const own = { files: { ...servers.files, instances: 'per-session' }, other: { ...servers.other, instances: 'per-session' } };
  const { server, admin } = await start(t, { servers: own });
  await admin.waitFor('files__echo', 'other__echo');
  const client = await new HttpClient(server.url, { token: LAPTOP }).connect();
  const names = await client.waitFor('files__add');
  assert.ok(names.every((n) => n.startsWith('files__') && !n.includes('echo')), `${names}`);
  assert.ok((await client.call('files__echo')).error);
  assert.ok(!(await client.call('files__add', { a: 1, b: 2 })).error);
  // Two shared instances and one of the laptop's session; none of the administrator, who has called nothing.
  await until('the instances', () => descendants(server.pid).length === 3);
});

test('a session is its owner\'s alone', async (t) => {
  const { server, admin } = await start(t);
  const foreign = { ...admin.headers, ...bearer(LAPTOP) };
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  assert.equal((await exchange(server.url, { headers: foreign, body: ping })).status, 404);
  assert.equal((await exchange(server.url, { method: 'GET', headers: { ...foreign, Accept: 'text/event-stream' } })).status, 404);
  assert.equal((await exchange(server.url, { method: 'DELETE', headers: foreign })).status, 404);
  assert.equal((await admin.post(ping)).status, 200);
  // The old SSE names its sessions in the address.
  const stop = new AbortController();
  const response = await fetch(`${server.origin}/sse`, { headers: bearer(ADMIN), signal: stop.signal });
  const chunk = new TextDecoder().decode((await response.body.getReader().read()).value);
  const post = chunk.match(/data: (\S+)/)[1];
  const send = (token) => exchange(server.origin + post, { headers: { ...json, ...bearer(token) }, body: ping });
  assert.equal((await send(LAPTOP)).status, 404);
  assert.equal((await send(ADMIN)).status, 202);
  stop.abort();
});

test('a call that waits for an answer is its owner\'s alone', async (t) => {
  const two = { tokens: [entry('ann', ADMIN), entry('bob', LAPTOP)] };
  const server = await serve(t, { servers: { fixture: fixtureEntry('legacy') }, auth: two });
  const agent = (token) => new ModernClient(`${server.url}/fixture`, { headers: bearer(token) });
  const [ann, bob] = [agent(ADMIN), agent(LAPTOP)];
  await ann.waitFor('test_elicitation');
  const params = { name: 'test_elicitation', arguments: { message: 'Who?' } };
  const { result } = await ann.request('tools/call', params);
  assert.equal(result.resultType, 'input_required');
  const [key] = Object.keys(result.inputRequests);
  const retry = { ...params, requestState: result.requestState, inputResponses: { [key]: { action: 'accept', content: { username: 'ann', email: 'a@example.com' } } } };
  assert.match((await bob.request('tools/call', retry)).error.message, /requestState/);
  assert.equal((await ann.request('tools/call', retry)).result.resultType, 'complete');
});

test('looking after the daemon takes a token of an operator; Unix sockets take none', async (t) => {
  const dir = tempDir();
  const socket = `${dir}/rialto.sock`;
  const { server } = await start(t, { listen: ['127.0.0.1:0', `unix:${socket}`] });
  const get = (where, token) => exchange(server.origin + where, { method: 'GET', headers: bearer(token) });
  for (const where of ['/status', '/metrics', '/api/servers', '/']) {
    const refused = await get(where, LAPTOP);
    assert.equal(refused.status, 403, where);
    assert.match(refused.text, /role/);
    assert.notEqual((await get(where, ADMIN)).status, 403, where);
    assert.notEqual((await get(where, ADMIN)).status, 401, where);
  }
  const status = await rialto(['status', '-c', server.config, '--json'], { env: { XDG_RUNTIME_DIR: server.dir } });
  assert.equal(status.code, 0, status.stderr);
  const answer = await new Promise((resolve, reject) => {
    const http = process.getBuiltinModule('node:http');
    const request = http.request({ socketPath: socket, path: '/mcp', method: 'POST', headers: { ...json, Host: 'localhost' } }, (r) => { r.resume(); resolve(r.statusCode); });
    request.on('error', reject);
    request.end(initialize);
  });
  assert.equal(answer, 200);
});

test('pages and BTCP agents show the pairing token, or one of a person who may do all', async (t) => {
  const state = tempDir();
  const server = await serve(t, { servers: {}, auth, views: { laptop: {}, phone: {} } }, { env: { XDG_STATE_HOME: state } });
  const { stdout } = await rialto(['browser', 'pair'], { env: { XDG_STATE_HOME: state } });
  const token = stdout.match(/[0-9a-f]{32}/)[0];
  const at = (more) => `//ws?sessionId=s1&clientType=browser&version=1.0.0${more}`;
  await assert.rejects(new Socket(t, server, at('')).opened, /401/);
  await assert.rejects(new Socket(t, server, at(''), bearer(LAPTOP)).opened, /401/);
  await page(t, server, 's1', [{ name: 'title', description: 'x', inputSchema: { type: 'object' } }], `&token=${token}`);
  await new Socket(t, server, at(''), bearer(ADMIN)).opened;
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET' })).status, 401);
  assert.equal((await exchange(`${server.origin}/sessions`, { method: 'GET', headers: bearer(ADMIN) })).status, 200);
  for (const where of ['/health', '/rialto.js', '/demo'])
    assert.equal((await exchange(server.origin + where, { method: 'GET' })).status, 200, where);

  // The page's tools are for agents that show a token; an agent with a view has them at /mcp, not at ?session=.
  const admin = await new HttpClient(`${server.url}?session=s1`, { token: ADMIN }).connect();
  await admin.waitFor('title');
  await (await new HttpClient(server.url, { token: LAPTOP }).connect()).waitFor('title');
  assert.equal((await exchange(`${server.url}?session=s1`, { headers: { ...json, ...bearer(LAPTOP) }, body: initialize })).status, 403);
  assert.equal((await exchange(`${server.url}?session=s1`, { headers: json, body: initialize })).status, 401);
});

test('rialto browser finds a bridge that asks for tokens', async (t) => {
  const state = tempDir();
  const server = await serve(t, { servers: {}, auth, views: { laptop: {}, phone: {} } }, { env: { XDG_STATE_HOME: state } });
  const client = new StdioClient(t, rialtoBin, ['browser', '-c', server.config],
    { env: { ...process.env, XDG_RUNTIME_DIR: server.dir, XDG_STATE_HOME: state } });
  await client.connect();
  await until('the word of it', () => /attached to the bridge that is running/.test(client.stderr));
  await client.stop();
});

test('rialto config --new-token is rialto token add', async (t) => {
  const dir = tempDir();
  const file = writeConfig(dir, { servers: { files: fake() } });
  const env = { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir };
  const make = (...args) => rialto(['config', '-c', file, '--new-token', ...args], { env });
  const { code, stdout } = await make('desk', '--json');
  assert.equal(code, 0);
  const made = JSON.parse(stdout);
  assert.equal(made.hash, hash(made.token));
  assert.equal(made.file, file);
  const server = await serve(t, JSON.parse(fs.readFileSync(file, 'utf8')));
  const client = await new HttpClient(server.url, { token: made.token }).connect();
  await client.waitFor('files__echo');
  const again = JSON.parse((await make('lamp', '--json')).stdout);
  assert.notEqual(again.token, made.token);
  assert.match((await make('chair')).stdout, /^ {2}rialto_\w+$/m);
  assert.equal((await rialto(['check', file], { env })).code, 0);
  assert.equal((await make('')).code, 2);
});

test('a view follows what a reload adds and takes away', async (t) => {
  const { server, admin } = await start(t);
  const phone = await new HttpClient(server.url, { token: PHONE }).connect();
  await phone.waitFor('files__echo', 'other__echo');
  const stream = await phone.listen();
  const other = await new HttpClient(`${server.url}/other`, { token: PHONE }).connect();
  assert.deepEqual(await other.toolNames(), ['echo']);
  writeConfig(server.dir, { listen: '127.0.0.1:0', views, auth, servers: { files: servers.files, third: fake('--name', 'third') } });
  process.kill(server.pid, 'SIGHUP');
  await admin.waitFor('third__echo');
  await until('the new list', async () => `${(await phone.toolNames()).sort()}` === 'files__echo,third__echo');
  await stream.waitFor('notifications/tools/list_changed');
  stream.close();
  await until('its door to close', async () => (await other.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status === 404);
  assert.deepEqual(await (await new HttpClient(`${server.url}/third`, { token: PHONE }).connect()).toolNames(), ['echo']);
});
