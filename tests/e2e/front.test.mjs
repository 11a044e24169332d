// The front door: pages of admitted origins (CORS), and Unix sockets.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { bothTypes, exchange, fake, HttpClient, runCommand, serve, tempDir, until } from './lib.mjs';

const endings = [];
const socket = path.join(tempDir(), 'rialto.sock');
let server;

before(async () => {
  server = await serve({ after: (f) => endings.push(f) },
    { listen: ['127.0.0.1:0', `unix:${socket}`], servers: { a: fake('--name', 'a') } });
  await (await new HttpClient(server.url).connect()).waitFor('a__echo');
});
after(async () => {
  for (const end of endings) await end();
});

const page = 'http://localhost:5173';
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } },
});
const words = (header) => (header ?? '').split(',').map((w) => w.trim().toLowerCase()).filter(Boolean);

test('a preflight is answered for every path', async () => {
  for (const where of ['/mcp', '/mcp/a', '/sse']) {
    const answer = await exchange(server.origin + where, {
      method: 'OPTIONS',
      headers: {
        Origin: page,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type,mcp-session-id,mcp-protocol-version,'
          + 'last-event-id,mcp-method,mcp-name,mcp-param-region,x-secret',
        'Access-Control-Request-Private-Network': 'true',
      },
    });
    assert.equal(answer.status, 204, answer.text);
    assert.equal(answer.text, '');
    assert.equal(answer.headers['access-control-allow-origin'], page);
    assert.match(answer.headers.vary, /Origin/);
    assert.deepEqual(words(answer.headers['access-control-allow-methods']), ['get', 'post', 'delete']);
    assert.deepEqual(words(answer.headers['access-control-allow-headers']), ['authorization', 'content-type',
      'mcp-session-id', 'mcp-protocol-version', 'last-event-id', 'mcp-method', 'mcp-name', 'mcp-param-region']);
    assert.equal(answer.headers['access-control-allow-private-network'], 'true');
  }
  const plain = await exchange(server.url, {
    method: 'OPTIONS', headers: { Origin: page, 'Access-Control-Request-Method': 'GET' },
  });
  assert.equal(plain.status, 204);
  assert.ok(words(plain.headers['access-control-allow-headers']).includes('mcp-session-id'));
  assert.equal(plain.headers['access-control-allow-private-network'], undefined);
});

test('answers, refusals and streams can be read by the page', async () => {
  const headers = { 'Content-Type': 'application/json', Accept: bothTypes, Origin: page };
  const hello = await exchange(server.url, { headers, body: initialize });
  assert.equal(hello.status, 200);
  assert.equal(hello.headers['access-control-allow-origin'], page);
  assert.deepEqual(words(hello.headers['access-control-expose-headers']), ['mcp-session-id', 'www-authenticate']);
  const refused = await exchange(server.url, { headers, body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
  assert.equal(refused.status, 400);
  assert.equal(refused.headers['access-control-allow-origin'], page);
  const client = new HttpClient(server.url);
  client.headers.Origin = page;
  await client.connect();
  const stream = await client.listen();
  assert.equal(stream.headers['access-control-allow-origin'], page);
  stream.close();
  await client.close();
  assert.equal((await exchange(`${server.origin}/nothing`, { method: 'GET', headers: { Origin: page } }))
    .headers['access-control-allow-origin'], page);
});

test('other origins get nothing, programs need nothing', async () => {
  for (const method of ['OPTIONS', 'POST', 'GET']) {
    const answer = await exchange(server.url, {
      method, headers: { Origin: 'https://evil.example.com', 'Access-Control-Request-Method': 'POST' },
    });
    assert.equal(answer.status, 403);
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
  }
  const program = await exchange(server.url, {
    headers: { 'Content-Type': 'application/json', Accept: bothTypes }, body: initialize,
  });
  assert.equal(program.headers['access-control-allow-origin'], undefined);
  assert.equal(program.headers.vary, undefined);
  assert.equal((await exchange(server.url, { method: 'OPTIONS' })).status, 405);
});

test('headers of one answer do not stay for the next on the connection', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const get = (headers) => new Promise((resolve, reject) => {
    http.get(server.origin, { agent, headers }, (response) => {
      const port = response.socket.localPort;
      response.resume();
      response.on('end', () => resolve([response.headers['access-control-allow-origin'], port]));
    }).on('error', reject);
  });
  const [first, port] = await get({ Origin: page });
  const [second, again] = await get({});
  assert.equal(port, again, 'the same connection');
  assert.deepEqual([first, second], [page, undefined]);
  agent.destroy();
});

test('a Unix socket serves the same, for its owner only', async () => {
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600);
  const curl = async (...args) => {
    const run = await runCommand('curl', ['-sS', '-i', '--max-time', '20', '--unix-socket', socket, ...args]);
    assert.equal(run.code, 0, run.stderr);
    return run.stdout;
  };
  const json = ['-H', 'Content-Type: application/json', '-H', `Accept: ${bothTypes}`];
  assert.match(await curl('http://localhost/'), /200 OK[^]*\/mcp\/a/);
  // No browser comes this way: the name in the URL does not matter.
  const hello = await curl('http://rialto/mcp', ...json, '-d', initialize);
  assert.match(hello, /^HTTP\/1.1 200 OK/);
  const session = hello.match(/mcp-session-id: (\S+)/i)[1];
  const call = await curl('http://rialto/mcp', ...json, '-H', `Mcp-Session-Id: ${session}`, '-d',
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__add","arguments":{"a":40,"b":2}}}');
  assert.match(call, /"text":"42"/);
  const sse = await runCommand('curl', ['-sS', '-N', '--max-time', '1', '--unix-socket', socket, 'http://x/sse']);
  assert.match(sse.stdout, /^event: endpoint\ndata: \/sse\?sessionId=/);
  assert.match(await curl('http://rialto/mcp', '-H', 'Origin: https://evil.example.com'), /^HTTP\/1.1 403/);
});

test('the socket goes with the daemon, and a dead one is replaced', async (t) => {
  const place = path.join(tempDir(), 's.sock');
  const config = { listen: ['127.0.0.1:0', `unix:${place}`], servers: { a: fake() } };
  const one = await serve(t, config);
  assert.ok(fs.existsSync(place));
  await one.stop();
  assert.ok(!fs.existsSync(place));
  const listener = http.createServer().listen(place);
  await until('a socket', () => fs.existsSync(place));
  fs.renameSync(place, `${place}.away`); // Node removes its own on close: this one stays, dead
  await new Promise((resolve) => { listener.close(resolve); });
  fs.renameSync(`${place}.away`, place);
  const two = await serve(t, config);
  const run = await runCommand('curl', ['-sS', '--unix-socket', place, 'http://localhost/']);
  assert.match(run.stdout, /Rialto/);
  await two.stop();
});
