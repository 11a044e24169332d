// What browsers are shown, and with which ciphers. The demo page, of the same origin as the daemon's
// own page, had no Content-Security-Policy; the conductor's page allowed inline scripts; and a TLS 1.2
// client could choose RSA key exchange: whoever gets the key later can decrypt recorded traffic.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { test } from 'node:test';
import { agent, open } from './acp_lib.mjs';
import { exchange, fake, serve, tempDir, until } from './lib.mjs';

const get = (url, headers) => exchange(url, { method: 'GET', headers });

function expectPage(answer) {
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^text\/html/);
  const policy = Object.fromEntries(answer.headers['content-security-policy'].split('; ').map((rule) => rule.split(/ (.*)/)));
  assert.equal(policy['default-src'], "'none'");
  assert.equal(policy['script-src'], "'self'");
  assert.equal(policy['style-src'], "'self'");
  assert.equal(policy['frame-ancestors'], "'none'");
  assert.equal(policy['require-trusted-types-for'], "'script'");
  assert.doesNotMatch(answer.headers['content-security-policy'], /unsafe/);
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.equal(answer.headers['x-frame-options'], 'DENY');
  assert.equal(answer.headers['referrer-policy'], 'no-referrer');
  assert.doesNotMatch(answer.text, /<style|<script>|\son\w+=/, 'nothing inline, which the policy would stop');
}

async function expectFiles(origin, html) {
  for (const [, file] of html.matchAll(/<(?:script|link)[^>]*(?:src|href)="?(\/[^">\s]+)/g)) {
    const answer = await get(origin + file);
    assert.equal(answer.status, 200, file);
    assert.match(answer.headers['content-type'], /javascript|css|svg/);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff', file);
  }
}

test('every page has a policy, and no script or style of its own inside', async (t) => {
  const server = await serve(t, { servers: { a: fake() } });
  for (const where of ['/', '/demo']) {
    const answer = await get(server.origin + where, { Accept: 'text/html' });
    expectPage(answer);
    await expectFiles(server.origin, answer.text);
  }
  for (const where of ['/rialto.js', '/webmcp.js', '/rialto.d.ts'])
    assert.equal((await get(server.origin + where)).headers['x-content-type-options'], 'nosniff', where);
});

test('so has the conductor\'s', async (t) => {
  const c = await open(t, ['--serve', 'agent', agent()]);
  const [, url] = await until('the address', () => c.stderr.match(/watch at (http:\/\/\S+)/));
  const answer = await get(url);
  expectPage(answer);
  await expectFiles(url.replace(/\/$/, ''), answer.text);
});

test('TLS 1.2 is spoken with forward secrecy only', async (t) => {
  const dir = tempDir();
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2',
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'], { cwd: dir, stdio: 'ignore' });
  const file = (name) => path.join(dir, name);
  fs.chmodSync(file('key.pem'), 0o600);
  const server = await serve(t, { listen: [{ address: '127.0.0.1:0', tls: { cert: file('cert.pem'), key: file('key.pem') } }], servers: { a: fake() } });
  const connect = (options) => new Promise((resolve) => {
    const socket = tls.connect({ host: '127.0.0.1', port: new URL(server.origin).port, ca: fs.readFileSync(file('cert.pem')), ...options }, () => {
      resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.on('error', (e) => resolve(e.code));
  });
  const old = { maxVersion: 'TLSv1.2' };
  for (const ciphers of ['AES128-GCM-SHA256', 'AES256-SHA256', 'AES128-SHA', 'kRSA', 'DHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA'])
    assert.match(await connect({ ...old, ciphers }), /^ERR_SSL|^ECONN/, ciphers);
  for (const ciphers of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])
    assert.equal(await connect({ ...old, ciphers }), `TLSv1.2 ${ciphers}`);
  assert.match(await connect({}), /^TLSv1\.3 TLS_/);
});
