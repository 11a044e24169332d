// The daemon with `listen: {address, tls}`: everything on the one port, used by real clients that
// check its certificate, and by clients that do something wrong.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import {
  exchange, fake, HttpClient, load, logged, npmFolder, rialto, runCommand, serve, tempDir, until,
  within, writeConfig,
} from './lib.mjs';
import { Authority } from './tls_lib.mjs';

const { WebSocket } = load('ws');
const endings = [];
let authority;
let files;
let server;
let ca;

const listenOn = (pair) => ({ address: '127.0.0.1:0', tls: pair });

before(async () => {
  authority = new Authority();
  ca = authority.text;
  files = authority.sign('server');
  server = await serve({ after: (f) => endings.push(f) }, {
    listen: listenOn(files), servers: { files: fake() },
  });
  await (await new HttpClient(server.url, { ca }).connect()).waitFor('files__echo');
});
after(async () => {
  for (const end of endings) await end();
});

const get = (where, options = {}) => exchange(server.origin + where, { method: 'GET', ca, ...options });

/** What Node's TLS client sees: the certificate, the version, the protocol. */
function handshake(origin, options = {}) {
  const { port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = tls.connect({ host: '127.0.0.1', port, servername: 'localhost', ca, ...options }, () => {
      const seen = {
        name: socket.getPeerCertificate().subject.CN, version: socket.getProtocol(),
        alpn: socket.alpnProtocol, authorized: socket.authorized,
      };
      socket.end();
      resolve(seen);
    });
    socket.on('error', reject);
  });
}

test('HTTPS: sessions, calls, large messages both ways', async () => {
  assert.match(server.origin, /^https:/);
  const client = await new HttpClient(server.url, { ca }).connect();
  assert.equal(await client.text('files__echo', { message: 'hi' }), '{"message":"hi"}');
  const large = 'x'.repeat(3_000_000);
  const back = await client.text('files__echo', { message: large });
  assert.ok(back === JSON.stringify({ message: large }), `${back.length} bytes came back`);
  const stream = await client.listen();
  assert.equal(stream.status, 200);
  stream.close();
  assert.equal((await client.close()).status, 200);
});

test('the other doors of the port: health, status, metrics, the page for people', async () => {
  for (const where of ['/healthz', '/readyz', '/status', '/metrics', '/', '/rialto.js'])
    assert.equal((await get(where)).status, 200, where);
});

test('the official SDK, which checks the certificate, by Streamable HTTP and by the old SSE', async () => {
  const script = `
    import { Client } from '@modelcontextprotocol/sdk/client/index.js';
    import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
    import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
    for (const transport of [new StreamableHTTPClientTransport(new URL('${server.url}')),
                             new SSEClientTransport(new URL('${server.origin}/sse'))]) {
      const client = new Client({ name: 'sdk', version: '1' });
      await client.connect(transport);
      const { content } = await client.callTool({ name: 'files__echo', arguments: { message: 'over TLS' } });
      console.log(content[0].text);
      await client.close();
    }`;
  const run = (env) => runCommand(process.execPath, ['--input-type=module', '-e', script], { cwd: npmFolder, env });
  const trusting = await run({ NODE_EXTRA_CA_CERTS: authority.file });
  assert.equal(trusting.stdout, '{"message":"over TLS"}\n'.repeat(2), trusting.stderr);
  const wary = await run({});
  assert.notEqual(wary.code, 0);
  assert.match(wary.stderr, /certificate|fetch failed/i);
});

test('WSS: MCP, and a page of BTCP', async () => {
  const at = server.origin.replace('https', 'wss');
  const ws = new WebSocket(`${at}/mcp`, ['mcp'], { ca });
  const messages = [];
  ws.on('message', (data) => messages.push(JSON.parse(data)));
  await within(10_000, 'the socket', new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); }));
  ws.send(JSON.stringify({
    jsonrpc: '2.0', id: 1, method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'ws', version: '1' } },
  }));
  await until('initialize', () => messages.find((m) => m.id === 1));
  ws.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const text = 'y'.repeat(500_000);
  ws.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'files__echo', arguments: { message: text } } }));
  const { result } = await until('the call', () => messages.find((m) => m.id === 2));
  assert.ok(result.content[0].text === JSON.stringify({ message: text }));
  const closed = new Promise((resolve) => { ws.on('close', resolve); });
  ws.close(1000);
  assert.equal(await within(10_000, 'the close', closed), 1000);

  const page = new WebSocket(`${at}/`, { ca });
  await within(10_000, 'the page', new Promise((resolve, reject) => { page.on('open', resolve); page.on('error', reject); }));
  page.close();
});

test('TLS 1.2 and 1.3 with http/1.1; nothing older, no other protocol', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const seen = await handshake(server.origin, { minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] });
    assert.deepEqual(seen, { name: 'server', version, alpn: 'http/1.1', authorized: true });
  }
  await assert.rejects(handshake(server.origin, { ALPNProtocols: ['h2'] }), /alert|protocol/i);
  await assert.rejects(handshake(server.origin, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }));
});

test('HTTP in the clear gets an answer in the clear that says what is wrong', async () => {
  const plain = server.origin.replace('https', 'http');
  for (const method of ['GET', 'POST']) {
    const answer = await exchange(`${plain}/mcp`, { method, headers: { 'Content-Type': 'application/json' }, body: method === 'POST' ? 'x'.repeat(200_000) : undefined });
    assert.equal(answer.status, 400);
    assert.match(JSON.parse(answer.text).error, /TLS/);
    assert.match(JSON.parse(answer.text).hint, /https:/);
  }
});

const portOf = () => Number(new URL(server.origin).port);

test('a peer that does not complete the handshake is cut in time', async (t) => {
  const it = await serve(t, { listen: listenOn(files), servers: {}, limits: { head_timeout: '500ms' } });
  for (const bytes of ['', '\x16\x03\x01', '{"jsonrpc":"2.0"}\n']) {
    const socket = net.connect(Number(new URL(it.origin).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    const closed = new Promise((resolve) => { socket.on('close', resolve); });
    socket.write(bytes);
    await within(15_000, 'the end of a silent peer', closed);
  }
});

test('clients that do not trust us, or leave in the middle, hurt nobody', async () => {
  await assert.rejects(handshake(server.origin, { ca: [] }));
  await assert.rejects(handshake(server.origin, { servername: 'elsewhere.example' }), /does not match/);
  const socket = net.connect(portOf(), '127.0.0.1');
  socket.on('error', () => {});
  socket.write('\x16\x03\x01\x00\xff');
  socket.destroy();
  assert.equal((await get('/healthz')).status, 200);
});

test('a client that sends its request byte by byte', async () => {
  const socket = tls.connect({ host: '127.0.0.1', port: portOf(), servername: 'localhost', ca });
  let text = '';
  socket.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { socket.on('end', resolve); });
  await new Promise((resolve) => { socket.on('secureConnect', resolve); });
  for (const byte of 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n') socket.write(byte);
  await within(10_000, 'the goodbye', ended); // a proper close_notify: Node reports a cut connection differently
  assert.match(text, /^HTTP\/1\.1 200[^]*"ok"/);
  socket.destroy();
});

test('one connection too many is told so, with TLS', async (t) => {
  const it = await serve(t, { listen: listenOn(files), servers: {}, limits: { connections: 1 } });
  const { port } = new URL(it.origin);
  const first = tls.connect({ host: '127.0.0.1', port, servername: 'localhost', ca });
  first.on('error', () => {});
  await within(10_000, 'the first', new Promise((resolve) => { first.on('secureConnect', resolve); }));
  assert.equal((await exchange(`${it.origin}/healthz`, { method: 'GET', ca })).status, 503);
  first.destroy();
  await until('room again', async () => (await exchange(`${it.origin}/healthz`, { method: 'GET', ca })).status === 200);
});

test('other addresses beside it stay in the clear', async (t) => {
  const both = await serve(t, { listen: ['127.0.0.1:0', { address: ':0', tls: files }], servers: {} });
  const lines = await until('both lines', () => {
    const found = both.stderr().match(/listening on (\S+)/g);
    return found?.length === 2 && found;
  });
  assert.match(lines[0], /http:\/\//);
  assert.match(lines[1], /https:\/\//);
  assert.equal((await exchange(`${both.origin}/healthz`, { method: 'GET' })).status, 200);
  assert.equal((await exchange(`${lines[1].split(' ').at(-1)}/healthz`, { method: 'GET', ca })).status, 200);
});

test('a renewed certificate is taken by SIGHUP and by rialto reload; a broken one is not', async (t) => {
  const own = tempDir();
  const at = { cert: path.join(own, 'cert.pem'), key: path.join(own, 'key.pem') };
  const put = (pair) => { for (const part of ['cert', 'key']) fs.copyFileSync(pair[part], at[part]); };
  put(files);
  const it = await serve(t, { listen: listenOn(at), servers: { files: fake() } });
  const client = await new HttpClient(it.url, { ca }).connect();
  await client.waitFor('files__echo');
  assert.equal((await handshake(it.origin)).name, 'server');

  put(authority.sign('renewed'));
  process.kill(it.pid, 'SIGHUP');
  await until('the new certificate', async () => (await handshake(it.origin)).name === 'renewed');
  fs.writeFileSync(at.cert, 'nonsense');
  process.kill(it.pid, 'SIGHUP');
  await logged(it, /the certificate stays as it was: .*cert\.pem/);
  assert.equal((await handshake(it.origin)).name, 'renewed');
  put(authority.sign('third'));
  const reload = await rialto(['reload'], { env: { XDG_RUNTIME_DIR: it.dir } });
  assert.equal(reload.code, 0, reload.stderr);
  assert.equal((await handshake(it.origin)).name, 'third');
  assert.equal(await client.text('files__echo', { message: 'still here' }), '{"message":"still here"}');
});

test('files that cannot be used are configuration errors that name them', async () => {
  const dir = tempDir();
  const other = authority.sign('other');
  const missing = path.join(dir, 'missing.pem');
  const text = path.join(dir, 'text.pem');
  fs.writeFileSync(text, 'no certificate');
  const rows = [
    [{ cert: missing, key: files.key }, missing, /No such file/],
    [{ cert: files.cert, key: missing }, missing, /No such file/],
    [{ cert: text, key: files.key }, text, /PEM/],
    [{ cert: files.cert, key: other.key }, other.key, /does not belong/],
  ];
  for (const [pair, named, why] of rows) {
    const config = writeConfig(dir, { listen: listenOn(pair), servers: {} });
    const served = await rialto(['serve', '-c', config]);
    assert.equal(served.code, 2, served.stderr);
    assert.ok(served.stderr.includes(named), served.stderr);
    assert.match(served.stderr, why);
    const checked = await rialto(['check', config]);
    assert.equal(checked.code, 2);
    assert.match(checked.stdout, why);
  }
});

test('a private key that everybody can read is worth a warning', async () => {
  const dir = tempDir();
  const pair = authority.sign('exposed');
  fs.chmodSync(pair.key, 0o644);
  const checked = await rialto(['check', writeConfig(dir, { listen: listenOn(pair), servers: {} })]);
  assert.equal(checked.code, 0, checked.stdout);
  assert.match(checked.stdout, /everybody on this machine may read the private key in .*exposed\.key/);
});
