// Servers that Rialto reaches with TLS, https and wss: written in Node, with certificates that are
// valid, and with every kind that is not.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { before, test } from 'node:test';
import { HttpClient, load, logged, rialto, serve, tempDir, writeConfig } from './lib.mjs';
import { Authority } from './tls_lib.mjs';
import { listen, RawServer, SdkServer } from './upstream_lib.mjs';

const { WebSocketServer } = load('ws');
let authority;
let good;

before(() => {
  authority = new Authority();
  good = authority.sign('good');
});

const read = ({ cert, key }) => ({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) });

/** An MCP server on https and wss, with this certificate and key. */
async function secure(t, pair = good, handler = new SdkServer().handler) {
  const server = https.createServer(read(pair), handler);
  server.on('tlsClientError', () => {});
  const wss = new WebSocketServer({ server, path: '/ws', handleProtocols: () => 'mcp' });
  // Upgraded sockets are not among the server's connections, and one may come while it closes.
  let closing = false;
  t.after(() => {
    closing = true;
    for (const ws of wss.clients) ws.terminate();
  });
  const { port } = await listen(t, handler, { create: () => server });
  const seen = { alpn: [], headers: [] };
  server.on('secureConnection', (socket) => seen.alpn.push(socket.alpnProtocol));
  wss.on('connection', (ws, request) => {
    if (closing) ws.terminate();
    seen.headers.push(request.headers);
    ws.on('message', (data) => {
      const { id, method, params } = JSON.parse(data);
      const answers = {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'wss', version: '1' } },
        'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: params?.arguments?.text ?? '' }] },
        ping: {},
      };
      if (id === undefined) return;
      ws.send(JSON.stringify(answers[method] ? { jsonrpc: '2.0', id, result: answers[method] }
        : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
    });
  });
  return { port, seen, https: `https://localhost:${port}/mcp`, wss: `wss://localhost:${port}/ws` };
}

test('https and wss with a private authority: calls, large ones too', async (t) => {
  const far = await secure(t);
  const server = await serve(t, {
    servers: {
      http: { url: far.https, ca: authority.file },
      ws: { url: far.wss, ca: authority.file, headers: { Authorization: 'Bearer secret-of-the-test' } },
      number: { url: far.wss.replace('localhost', '127.0.0.1'), ca: authority.file },
    },
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('http__echo', 'ws__echo', 'number__echo');
  const large = 'z'.repeat(2_000_000);
  for (const name of ['http', 'ws', 'number'])
    for (const text of ['hi', large]) {
      const back = await client.text(`${name}__echo`, { text });
      assert.ok(back === text, `${name}: ${back.length} bytes`);
    }
  assert.ok(far.seen.headers.some((h) => h.authorization === 'Bearer secret-of-the-test'));
  assert.ok(far.seen.alpn.includes('http/1.1'), `${far.seen.alpn}`);
});

test('the list of authorities that the environment names', async (t) => {
  const far = await secure(t);
  const server = await serve(t, { servers: { http: { url: far.https }, ws: { url: far.wss } } },
    { env: { SSL_CERT_FILE: authority.file } });
  await (await new HttpClient(server.url).connect()).waitFor('http__echo', 'ws__echo');
});

const elsewhere = 'DNS:elsewhere.example';
const bad = {
  'an unknown authority': [() => good, false, /unknown authority.*'ca'|unable to get local issuer|self.signed/i],
  'an expired certificate': [() => authority.sign('expired', { days: -1 }), true, /certificate has expired/],
  'a certificate for another name': [() => authority.sign('other', { names: elsewhere }), true, /hostname does not match|no alternative certificate subject name|does not match/],
  'another authority than the one named': [() => new Authority('stranger').sign('foreign'), true, /unknown authority|unable to get local issuer|self.signed/i],
};

for (const [what, [pair, trusts, why]] of Object.entries(bad)) {
  test(`${what} is refused, with the reason, before a byte is said`, async (t) => {
    const raw = new RawServer();
    const far = await secure(t, pair(), raw.handler);
    const ca = trusts ? { ca: authority.file } : {};
    const secret = { headers: { Authorization: 'Bearer secret-of-the-test' } };
    const server = await serve(t, {
      servers: { http: { url: far.https, ...ca, ...secret }, ws: { url: far.wss, ...ca, ...secret } },
    });
    for (const name of ['http', 'ws'])
      await logged(server, new RegExp(`${name}: .*(${why.source})`, 'i'));
    assert.equal(raw.seen.length, 0);
    assert.equal(far.seen.headers.length, 0);
  });
}

test('wss to a server that speaks no TLS, and to nobody', async (t) => {
  const { port } = await listen(t, new RawServer().handler);
  const server = await serve(t, {
    servers: { plain: { url: `wss://localhost:${port}/`, ca: authority.file }, nobody: { url: 'wss://127.0.0.1:1/' } },
  });
  await logged(server, /plain: .*does not speak TLS/);
  await logged(server, /nobody: .*cannot connect/);
});

test('a file of authorities that is not there concerns its own server alone', async (t) => {
  const far = await secure(t);
  const missing = path.join(tempDir(), 'missing.pem');
  const servers = {
    good: { url: far.wss, ca: authority.file }, http: { url: far.https, ca: missing }, ws: { url: far.wss, ca: missing },
  };
  const checked = await rialto(['check', writeConfig(tempDir(), { servers })]);
  assert.equal(checked.code, 0, checked.stdout);
  assert.match(checked.stdout, /servers\.http\.ca: cannot use the certificates in .*missing\.pem: No such file/);
  const server = await serve(t, { servers });
  await (await new HttpClient(server.url).connect()).waitFor('good__echo');
  await logged(server, /ws: .*missing\.pem/);
  await logged(server, /http: .*missing\.pem/);
});
