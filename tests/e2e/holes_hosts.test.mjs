// DNS rebinding: evil.example makes its name resolve to 127.0.0.1, so that for the browser its page
// has the same origin as the bridge: only the Host header differs. As soon as one address was not a
// loopback address, no address checked Host any more, not even the loopback address beside it; and an
// open address without tokens let in everybody who could reach it, with nothing but a line in the log.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { test } from 'node:test';
import { bothTypes, exchange, fake, logged, rialto, serve, tempDir, writeConfig } from './lib.mjs';

const TOKEN = 'token-of-the-owner';
const auth = { tokens: [{ name: 'owner', hash: `sha256:${createHash('sha256').update(TOKEN).digest('hex')}` }] };
const servers = { a: fake('--name', 'a') };
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});

/** The ports of all addresses, in the order of the configuration. */
async function startWith(t, config) {
  const server = await serve(t, { servers, auth, ...config }, { env: { XDG_STATE_HOME: tempDir() } });
  const n = [config.listen].flat().length;
  await logged(server, new RegExp(`(?:listening on [^]*){${n}}`));
  const ports = [...server.stderr().matchAll(/listening on https?:\/\/\S+:(\d+)$/gm)].map((m) => m[1]);
  return { server, origins: ports.map((port) => `http://127.0.0.1:${port}`), ports };
}

/** The status of a request; streams are closed after their head. */
function status(origin, [method, where, more = {}], headers) {
  return new Promise((resolve, reject) => {
    const request = http.request(origin + where, {
      method, agent: false, headers: { Authorization: `Bearer ${TOKEN}`, ...more, ...headers },
    });
    const end = (response) => {
      resolve(response.statusCode);
      request.destroy();
    };
    request.on('response', end);
    request.on('upgrade', end);
    request.on('error', reject);
    request.end(method === 'POST' ? initialize : undefined);
  });
}

const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const upgrade = {
  Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const ways = [
  ['POST', '/mcp', json], ['POST', '/mcp/a', json], ['GET', '/sse'], ['GET', '/mcp', { ...upgrade, 'Sec-WebSocket-Protocol': 'mcp' }],
  ['GET', '/api/servers'], ['GET', '/status'], ['GET', '/metrics'], ['GET', '/healthz'], ['GET', '/'],
  ['GET', '/', { Accept: 'text/html' }], ['GET', '/demo'], ['GET', '/rialto.js'], ['GET', '/sessions'], ['GET', '/health'],
  ['GET', '/events?sessionId=s&clientType=browser'], ['GET', '/ws?sessionId=s&clientType=browser', upgrade], ['GET', '/', upgrade],
];
const fine = (s) => s < 400;
const name = (way) => `${way[0]} ${way[1]} ${way[2]?.Upgrade ?? ''}`;

test('a rebound name is let in at no address, whichever others there are', async (t) => {
  const { origins, ports } = await startWith(t, { listen: ['0.0.0.0:0', '127.0.0.1:0'] });
  for (const [i, origin] of origins.entries()) {
    for (const way of ways) {
      for (const Host of [`127.0.0.1:${ports[i]}`, 'localhost', 'LOCALHOST:1', '[::1]:80'])
        assert.ok(fine(await status(origin, way, { Host })), `${name(way)} as ${Host}`);
      for (const Host of ['evil.example', `evil.example:${ports[i]}`, '127.0.0.1.evil.example', 'localhost.evil.example', '192.0.2.7', '0.0.0.0', '[::]'])
        assert.equal(await status(origin, way, { Host }), 403, `${name(way)} as ${Host} at ${origin}`);
      const own = { Host: `127.0.0.1:${ports[i]}` };
      assert.equal(await status(origin, way, { ...own, Origin: 'http://evil.example' }), 403, name(way));
      assert.equal(await status(origin, way, { Host: 'evil.example', Origin: 'http://evil.example' }), 403, name(way));
      assert.equal(await status(origin, way, { Host: 'evil.example', Origin: 'http://localhost' }), 403, name(way));
    }
  }
  // The open address also takes its own IP address as Host, the loopback address only loopback names.
  assert.equal(await status(origins[0], ways[0], { Host: '[::ffff:127.0.0.1]:1' }), 200);
  assert.equal(await status(origins[1], ways[0], { Host: '[::ffff:127.0.0.1]:1' }), 403);
  const told = async (origin) => (await exchange(`${origin}/healthz`, { method: 'GET', headers: { Host: 'evil.example' } })).text;
  assert.match(await told(origins[0]), /listen\[\]\.hosts/);
  assert.match(await told(origins[1]), /localhost or 127\.0\.0\.1/);
});

test('names are let in at the address that has them', async (t) => {
  const { origins } = await startWith(t, {
    listen: [
      { address: '0.0.0.0:0', hosts: ['Bridge.example', 'other.example:8443', 'usual.example:80'] },
      { address: '127.0.0.1:0', hosts: ['proxied.example'] },
      ':0',
    ],
  });
  const names = [
    ['bridge.EXAMPLE', 0], ['bridge.example:1', 0], ['other.example:8443', 0], ['usual.example', 0], ['usual.example:80', 0],
    ['proxied.example', 1], ['proxied.example:443', 1], ['other.example', -1], ['other.example:8444', -1], ['xbridge.example', -1],
    ['bridge.example.evil.example', -1], ['usual.example:443', -1],
  ];
  for (const way of [ways[0], ways[2], ways[3], ways[7], ways[10], ways[15]])
    for (const [Host, at] of names)
      for (const [i, origin] of origins.entries()) {
        const message = `${name(way)} as ${Host} at ${i}`;
        assert.equal(await status(origin, way, { Host }), i === at ? await status(origin, way, { Host: 'localhost' }) : 403, message);
        assert.equal(fine(await status(origin, way, { Host: 'localhost', Origin: `http://${Host}` })), i === at, message);
      }
  // Only this machine may control the bridge; by that name a proxy here may forward anybody.
  assert.equal(await status(origins[1], ['GET', '/status'], { Host: 'proxied.example' }), 403);
  assert.equal(await status(origins[1], ['POST', '/api/reload'], { Host: 'proxied.example' }), 403);
  assert.equal(await status(origins[0], ['POST', '/api/reload'], { Host: 'bridge.example' }), 403);
});

test('an open address wants tokens, or the word that everybody is let in', async (t) => {
  const refusal = /other machines reach 0\.0\.0\.0:0.*auth\.tokens.*auth: \{anonymous: true\}/;
  const file = writeConfig(tempDir(), { listen: ['127.0.0.1:0', '0.0.0.0:0'], servers });
  const started = await rialto(['serve', '-c', file], { timeout: 5000 });
  assert.equal(started.code, 2, started.stderr);
  assert.match(started.stderr, refusal);
  const checked = await rialto(['check', file]);
  assert.equal(checked.code, 2);
  assert.match(checked.stdout, refusal);
  const told = await rialto(['serve', '-c', writeConfig(tempDir(), { servers }), '--listen', '0.0.0.0:0'], { timeout: 5000 });
  assert.equal(told.code, 2, told.stderr);
  assert.equal((await rialto(['browser', '-c', file], { timeout: 5000, env: { XDG_RUNTIME_DIR: tempDir() } })).code, 2);
  for (const listen of ['[::]:0', 'somewhere.example:8765', '192.0.2.7:8765'])
    assert.equal((await rialto(['check', writeConfig(tempDir(), { listen, servers })])).code, 2, listen);
  for (const listen of [':0', 'localhost:0', '127.9.9.9:0', '[::1]:0', `unix:${tempDir()}/s`])
    assert.equal((await rialto(['check', writeConfig(tempDir(), { listen, servers })])).code, 0, listen);

  const { origins } = await startWith(t, { listen: '0.0.0.0:0', auth: { anonymous: true } });
  const open = (Host) => status(origins[0], ['POST', '/mcp', json], { Authorization: '', Host });
  assert.equal(await open('localhost'), 200);
  assert.equal(await open('evil.example'), 403);
});
