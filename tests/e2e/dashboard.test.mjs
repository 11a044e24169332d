// What the daemon's address serves: a page for browsers, a few lines for all other clients, and with
// which headers. What the page does is tested in dashboard_page.test.mjs and page_*.test.mjs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, test } from 'node:test';
import { exchange, fake, load, logged, serve, within } from './lib.mjs';

const { WebSocket } = load('ws');

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const TOKEN = 'token-of-the-administrator';
const hash = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const scripts = ['/dashboard.js', '/dashboard_theme.js'];
const files = { '/': /^text\/html; charset=utf-8$/, '/dashboard.css': /^text\/css; charset=utf-8$/, '/dashboard.svg': /^image\/svg\+xml$/,
  ...Object.fromEntries(scripts.map((name) => [name, /^text\/javascript; charset=utf-8$/])) };

let plain, guarded; // two daemons, the second of which asks for tokens
const ask = (server, path, accept, { method = 'GET', headers = {} } = {}) => exchange(server.origin + path,
  { method, headers: { ...(accept !== undefined && { Accept: accept }), ...headers } });

before(async (t) => {
  const config = { control: 'off', servers: { files: fake('--name', 'files') } };
  plain = await serve(t, config);
  guarded = await serve(t, { ...config, auth: { tokens: [{ name: 'admin', hash: hash(TOKEN) }] } });
  await Promise.all([plain, guarded].map((s) => logged(s, /fake server files is up/)));
});

test('browsers get the page, others a few lines of text', async () => {
  for (const accept of [undefined, '*/*', 'text/plain', 'application/json', 'text/htm', 'x-text/html', 'text/*']) {
    const { status, headers, text } = await ask(plain, '/', accept);
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'text/plain; charset=utf-8', accept);
    assert.equal(headers.vary, 'Accept');
    assert.match(text, /^Rialto \d[^\n]*\n\n\/mcp  all servers\n[^]*\n\/mcp\/files  ready\n$/);
  }
  for (const accept of [BROWSER, 'text/html', 'TEXT/HTML;q=0.5', 'application/json , text/html']) {
    const { status, headers, text } = await ask(plain, '/', accept);
    assert.equal(status, 200);
    assert.match(headers['content-type'], files['/'], accept);
    assert.match(text, /^<!doctype html>[^]*<\/html>\n$/);
  }
});

test('the page runs nothing but its own script and loads nothing from elsewhere', async () => {
  for (const [path, type] of Object.entries(files)) {
    const { status, headers } = await ask(plain, path, BROWSER);
    assert.equal(status, 200, path);
    assert.match(headers['content-type'], type);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    assert.equal(headers.vary, 'Accept');
    const policy = new Map(headers['content-security-policy'].split('; ').map((d) => [d.split(' ')[0], d.split(' ').slice(1).join(' ')]));
    assert.equal(policy.get('default-src'), "'none'");
    for (const name of ['script-src', 'style-src', 'connect-src']) assert.equal(policy.get(name), "'self'", name);
    assert.equal(policy.get('img-src'), "'self' blob:", 'pictures of results are shown from memory');
    assert.equal(policy.get('media-src'), 'blob:');
    for (const name of ['base-uri', 'form-action', 'frame-ancestors']) assert.equal(policy.get(name), "'none'", name);
    assert.equal(policy.get('require-trusted-types-for'), "'script'");
    assert.doesNotMatch(headers['content-security-policy'], /unsafe|\*|http/);
  }
  const { text } = await ask(plain, '/', BROWSER);
  assert.doesNotMatch(text, /<style|\sstyle=|\son[a-z]+=|javascript:|https?:/i);
  for (const [, inside] of text.matchAll(/<script\b[^>]*>([^]*?)<\/script>/g)) assert.equal(inside, '');
  const named = [...text.matchAll(/\s(?:src|href)="([^"]*)"/g)].map((m) => m[1]);
  const own = named.filter((n) => !n.startsWith('#'));
  assert.deepEqual([...new Set(own)].sort(), ['/dashboard.css', '/dashboard.svg', ...scripts].sort());
});

test('all of it is light', async () => {
  let sum = 0;
  for (const path_ of Object.keys(files)) sum += Buffer.byteLength((await ask(plain, path_, BROWSER)).text);
  assert.ok(sum < 250 * 1024, `${sum} bytes`);
});

test('HEAD gives the same head, and other methods are refused', async () => {
  for (const [path, accept] of [...Object.keys(files).map((p) => [p, BROWSER]), ['/', '*/*']]) {
    const whole = await ask(plain, path, accept);
    const head = await ask(plain, path, accept, { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(head.text, '');
    assert.deepEqual({ ...head.headers, date: 0 }, { ...whole.headers, date: 0 }, path);
    assert.equal(Number(head.headers['content-length']), Buffer.byteLength(whole.text));
    for (const method of ['POST', 'PUT', 'DELETE'])
      assert.equal((await ask(plain, path, accept, { method })).status, 405, `${method} ${path}`);
  }
});

test('a name that was rebound to this machine gets no page, nor does the page of another site get an answer', async () => {
  for (const path of Object.keys(files))
    assert.equal((await ask(plain, path, BROWSER, { headers: { Host: 'evil.example' } })).status, 403, path);
  const api = `${plain.origin}/api/servers/files/stop`;
  for (const origin of ['https://evil.example', 'http://127.0.0.1:1', 'null'])
    assert.equal((await exchange(api, { headers: { Origin: origin }, body: '' })).status, 403, origin);
});

test('the page itself takes no token, everything it shows does', async () => {
  for (const path of Object.keys(files)) assert.equal((await ask(guarded, path, BROWSER)).status, 200, path);
  const page = await ask(guarded, '/', BROWSER);
  assert.equal(page.text, (await ask(plain, '/', BROWSER)).text, 'it is the same for everybody');
  for (const path of ['/', '/status', '/api/servers', '/api/approvals'])
    assert.equal((await ask(guarded, path, path === '/' ? '*/*' : BROWSER)).status, 401, path);
  const known = await ask(guarded, '/', '*/*', { headers: { Authorization: `Bearer ${TOKEN}` } });
  assert.match(known.text, /^Rialto /);
});

// Agents connect to "/" by WebSocket. The headers of a request for the page must not bypass the token check.
test('asking for HTML is no way around the token for what else stands at the address', async () => {
  for (const protocols of [['mcp'], []]) {
    const ws = new WebSocket(guarded.origin.replace('http', 'ws'), protocols, { headers: { Accept: BROWSER } });
    const status = await within(10_000, 'the refusal', new Promise((resolve) => {
      ws.on('unexpected-response', (_, response) => resolve(response.statusCode));
      ws.on('open', () => resolve('open'));
      ws.on('error', () => {});
    }));
    ws.terminate();
    assert.equal(status, 401);
  }
  for (const method of ['POST', 'DELETE', 'PUT'])
    assert.equal((await ask(guarded, '/', BROWSER, { method })).status, 401, method);
  for (const path of ['//', '/?x', '/dashboard.css/', '/dashboard.js/', '/page', '/page/main.js', '/dashboard', '/status', '/mcp'])
    assert.equal((await ask(guarded, path, BROWSER)).status, path === '/?x' ? 200 : 401, path);
});
