// Authorization servers and protected servers that send anything but what they should: every answer
// wrong, missing, huge, slow, cut, or leading elsewhere. Each is a clear error that names the server;
// nothing hangs, nothing is kept, and no other host is asked.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { describe, test } from 'node:test';
import { HttpClient, serve, tempDir, until, writeConfig } from './lib.mjs';
import { Login, untilState } from './signin_lib.mjs';

const json = (value) => ({ status: 200, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) });

/** A server that is its own authorization server; `change` replaces answers by path. */
async function startBoth(t, change = {}) {
  const seen = [];
  const server = http.createServer((req, res) => {
    const origin = `http://127.0.0.1:${server.address().port}`;
    const url = new URL(req.url, origin);
    let body = '';
    req.on('data', (d) => { body += d; });
    req.on('end', () => {
      seen.push({ method: req.method, path: url.pathname, headers: req.headers, body });
      const state = { origin, url, form: new URLSearchParams(body), method: req.method, headers: req.headers, body };
      const usual = {
        '/mcp': () => ({ status: 401, headers: { 'WWW-Authenticate': `Bearer resource_metadata="${origin}/prm"` } }),
        '/prm': () => json({ resource: `${origin}/mcp`, authorization_servers: [origin] }),
        '/.well-known/oauth-authorization-server': () => json({
          issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`, response_types_supported: ['code'], code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
        }),
        '/register': () => ({ ...json({ client_id: 'us' }), status: 201 }),
        '/token': () => json({ access_token: 'a-token-of-theirs', token_type: 'Bearer', expires_in: 60 }),
      }[url.pathname];
      const answer = (change[url.pathname] ?? usual)?.(state, usual?.(state)) ?? { status: 404 };
      if (answer.hang) return;
      if (answer.drop) {
        res.destroy();
        return;
      }
      if (answer.cut) {
        res.writeHead(200, { 'Content-Length': 1000 });
        res.write('{"a":');
        setTimeout(() => res.destroy(), 20);
        return;
      }
      setTimeout(() => {
        res.writeHead(answer.status ?? 200, answer.headers ?? {});
        res.end(answer.body ?? '');
      }, answer.after ?? 0);
    });
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { origin, url: `${origin}/mcp`, seen, asked: (p) => seen.filter((s) => s.path === p).length };
}

/** `rialto login` without a daemon; if it prints an address, the person returns with a code. */
async function tryLogin(t, change, { auth, back = (a) => `code=c&state=${a.get('state')}` } = {}) {
  const both = await startBoth(t, change);
  const dir = tempDir();
  const config = writeConfig(dir, { listen: '127.0.0.1:0', servers: { odd: { url: both.url, ...(auth && { auth }) } } });
  const login = new Login({ config, dir }, 'odd', { XDG_STATE_HOME: dir }, ['--no-browser', '--timeout', '40s']);
  const address = await login.address().catch(() => null);
  if (address) {
    const query = new URL(address).searchParams;
    await fetch(`${query.get('redirect_uri')}?${back(query)}`).catch(() => null);
  }
  const ended = await login.ended;
  const file = path.join(dir, 'rialto/signin.json');
  return { ...ended, both, address, kept: fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '' };
}

const big = 'x'.repeat(300 * 1024);
const prm = (more) => ({ '/prm': (s, u) => json({ ...JSON.parse(u.body), ...more(s) }) });
const as = (more) => ({ '/.well-known/oauth-authorization-server': (s, u) => json({ ...JSON.parse(u.body), ...more(s) }) });
const token = (value) => ({ '/token': () => json(value) });

const rows = [
  // the challenge and the metadata of the resource
  ['metadata at a file', { '/mcp': () => ({ status: 401, headers: { 'WWW-Authenticate': 'Bearer resource_metadata="file:///etc/passwd"' } }) }, /cannot be used/],
  ['metadata on another host by http', { '/mcp': () => ({ status: 401, headers: { 'WWW-Authenticate': 'Bearer resource_metadata="http://metadata.example/"' } }) }, /cannot be used/],
  ['metadata that is not there', { '/prm': () => ({ status: 404 }) }, /names metadata that cannot be read: HTTP 404/],
  ['metadata that redirects', { '/prm': () => ({ status: 302, headers: { Location: '/elsewhere' } }) }, /HTTP 302/],
  ['metadata that is a page', { '/prm': () => ({ body: '<html>' }) }, /not a JSON object/],
  ['metadata that is huge', { '/prm': () => ({ body: big }) }, /too large/],
  ['metadata that is cut', { '/prm': () => ({ cut: true }) }, /within the answer|cannot be read/],
  ['metadata with HTTP 503', { '/prm': () => ({ status: 503 }) }, /HTTP 503/],
  ['another resource', prm(() => ({ resource: 'https://other.example/mcp' })), /for another resource, 'https:\/\/other\.example\/mcp'/],
  ['no authorization server', prm(() => ({ authorization_servers: [] })), /names no authorization server/],
  ['an authorization server by http elsewhere', prm(() => ({ authorization_servers: ['http://192.0.2.1'] })), /names no authorization server/],
  ['a member twice', { '/prm': (s, u) => ({ body: u.body.replace('{', '{"resource":"x",') }) }, /a member twice/],
  // the metadata of the authorization server
  ['another issuer', as(() => ({ issuer: 'https://evil.example' })), /calls itself 'https:\/\/evil\.example'/],
  ['no token endpoint', as(() => ({ token_endpoint: undefined })), /no 'token_endpoint'/],
  ['a token endpoint that is no text', as(() => ({ token_endpoint: ['x'] })), /'token_endpoint' that cannot be used/],
  ['an address with shell characters', as(() => ({ authorization_endpoint: 'http://127.0.0.1/$(id)`id`' })), /'authorization_endpoint' that cannot be used/],
  ['an address of a program', as(() => ({ authorization_endpoint: 'file:///usr/bin/id' })), /'authorization_endpoint' that cannot be used/],
  ['no PKCE', as(() => ({ code_challenge_methods_supported: undefined })), /PKCE with S256/],
  ['only plain PKCE', as(() => ({ code_challenge_methods_supported: ['plain'] })), /PKCE with S256/],
  ['no codes', as(() => ({ response_types_supported: ['token'] })), /no authorization codes/],
  ['no registration', as(() => ({ registration_endpoint: undefined })), /registers nobody by itself/],
  ['registration is closed', { '/register': () => ({ ...json({ error: 'access_denied' }), status: 403 }) }, /does not register us \(HTTP 403, access_denied\)/],
  ['registration without an id', { '/register': () => json({}) }, /no 'client_id'/],
  ['registration redirects', { '/register': () => ({ status: 307, headers: { Location: '/elsewhere' } }) }, /HTTP 307/],
  // tokens
  ['a token with a line end', token({ access_token: 'a\r\nX: y', token_type: 'Bearer' }), /'access_token' that cannot be used/],
  ['a token of another type', token({ access_token: 'a', token_type: 'mac' }), /not Bearer/],
  ['no token', token({ token_type: 'Bearer' }), /no 'access_token'/],
  ['a token that has ended before', token({ access_token: 'a', token_type: 'Bearer', expires_in: -5 }), /'expires_in'/],
  ['an error with status 200', token({ error: 'invalid_grant', error_description: 'No.\u001b[31m' }), /invalid_grant.*No\.\?\[31m/],
  ['a huge token answer', { '/token': () => ({ body: big }) }, /too large/],
  ['a token answer that is cut', { '/token': () => ({ cut: true }) }, /did not answer/],
  ['a token request that is redirected', { '/token': () => ({ status: 307, headers: { Location: 'http://127.0.0.1:1/steal' } }) }, /HTTP 307/],
];

describe('what servers send', { concurrency: 2 }, () => {
  for (const [what, change, words] of rows) {
    test(what, async (t) => {
      const { code, stderr, stdout, both, kept } = await tryLogin(t, change);
      assert.equal(code, 1, stderr);
      assert.match(stderr, words);
      assert.match(stderr, /'odd'/);
      assert.doesNotMatch(kept, /access_token/);
      assert.doesNotMatch(stdout + stderr, /[\u001b]/);
      assert.equal(both.asked('/elsewhere'), 0);
    });
  }
});

test('an answer that does not come ends the sign-in in time', { timeout: 60_000 }, async (t) => {
  for (const change of [{ '/prm': () => ({ hang: true }) }, { '/token': () => ({ hang: true }) }]) {
    const { code, stderr } = await tryLogin(t, change);
    assert.equal(code, 1);
    assert.match(stderr, /did not come in time/);
  }
});

test('secrets go where they belong', async (t) => {
  const { code, stderr, both, address } = await tryLogin(t, {});
  assert.equal(code, 0, stderr);
  const query = new URL(address).searchParams;
  assert.equal(query.get('code_challenge_method'), 'S256');
  assert.equal(query.get('resource'), both.url);
  const form = new URLSearchParams(both.seen.find((s) => s.path === '/token').body);
  assert.equal(form.get('resource'), both.url);
  assert.ok(form.get('code_verifier').length >= 43);
  for (const s of both.seen.filter((one) => one.path !== '/token')) {
    assert.equal(s.headers.authorization, undefined, s.path);
    assert.equal(s.headers.cookie, undefined, s.path);
  }
});

test('a token is not taken along by a redirect of the server', async (t) => {
  const stolen = [];
  const thief = http.createServer((req, res) => { stolen.push(req.headers); res.writeHead(200).end('{}'); });
  await new Promise((resolve) => { thief.listen(0, '127.0.0.1', resolve); });
  t.after(() => { thief.closeAllConnections(); thief.close(); });
  let away = false;
  const both = await startBoth(t, {
    '/mcp': (s, usual) => (away ? { status: 307, headers: { Location: `http://127.0.0.1:${thief.address().port}/mcp` } } : usual),
  });
  const state = tempDir();
  const server = await serve(t, { servers: { odd: { url: both.url } } }, { env: { XDG_STATE_HOME: state } });
  await untilState(server, 'odd', 'needs_sign_in');
  away = true;
  const login = new Login(server, 'odd', { XDG_STATE_HOME: state });
  away = false;
  const query = new URL(await login.address()).searchParams;
  away = true;
  await fetch(`${query.get('redirect_uri')}?code=c&state=${query.get('state')}`);
  assert.equal((await login.ended).code, 0);
  await until('the redirect', () => /redirects to another host/.test(server.stderr()));
  assert.deepEqual(stolen, []);
});

// The stream of a tool call may end before the answer, and we ask for the rest. That request did not ask whether its token
// is still valid, so it met a 401 when a long call outlived its token. The 401 was taken for one of the call itself, which
// was then sent once more: what it did, such as a payment, was done twice.
describe('the token ends while a tool runs, whose stream is to be taken up again', { concurrency: 3 }, () => {
  const cases = [
    ['it is known to have ended: renewed before', { expires_in: 4, refresh_token: 'r' }, 4500, ['t2'], /paid once/],
    ['it has ended only by the server\'s clock: renewed, and asked once more', { expires_in: 8, refresh_token: 'r' }, 4500, ['t1', 't2'], /paid once/],
    ['it cannot be renewed: the call has failed', { expires_in: 3600 }, 100, ['t1'], /sign-in/],
  ];
  for (const [what, given, retry, expected, words] of cases) {
    test(what, async (t) => {
      let issued = 0;
      let paying = 0;
      let id;
      const seen = [];
      const sse = (text) => ({ headers: { 'Content-Type': 'text/event-stream' }, body: `${text}\n\n` });
      const both = await startBoth(t, {
        '/token': () => json({ access_token: `t${++issued}`, token_type: 'Bearer', ...given }),
        '/mcp': ({ method, headers, body }, refusal) => {
          const token = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
          if (method === 'GET' && headers['last-event-id']) {
            seen.push(token);
            return token === 't1' ? refusal : sse(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'paid once' }] } })}`);
          }
          if (!token) return refusal;
          const message = method === 'POST' && JSON.parse(body);
          const results = {
            initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } },
            'tools/list': { tools: [{ name: 'pay', inputSchema: { type: 'object' } }] },
          };
          if (message.method === 'tools/call') {
            paying += 1;
            id = message.id;
            return sse(`id: e1\nretry: ${retry}\ndata: `);
          }
          return results[message.method] ? json({ jsonrpc: '2.0', id: message.id, result: results[message.method] }) : { status: message ? 202 : 405 };
        },
      });
      const state = tempDir();
      const server = await serve(t, { servers: { odd: { url: both.url, era: 'legacy' } } }, { env: { XDG_STATE_HOME: state } });
      await untilState(server, 'odd', 'needs_sign_in');
      const login = new Login(server, 'odd', { XDG_STATE_HOME: state });
      const query = new URL(await login.address()).searchParams;
      await fetch(`${query.get('redirect_uri')}?code=c&state=${query.get('state')}`);
      const agent = await new HttpClient(server.url).connect();
      await agent.waitFor('odd__pay');
      const { result, error } = await agent.call('odd__pay');
      assert.match(result?.content[0].text ?? error.message, words);
      assert.equal(paying, 1, 'times that the tool ran');
      assert.deepEqual(seen, expected);
    });
  }
});

// With the older transport, the 401 of the old token was still taken for the answer when the request with the new token met
// a network failure: the server was not tried again before a person had signed in.
test('the older transport: a connection that breaks after a token was renewed wants no sign-in', async (t) => {
  let issued = 0;
  const seen = [];
  const both = await startBoth(t, {
    '/token': () => json({ access_token: `t${++issued}`, token_type: 'Bearer', expires_in: 8, refresh_token: 'r' }),
    '/mcp': ({ headers }, refusal) => {
      const token = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
      seen.push(token);
      return token === 't2' ? { drop: true } : { ...refusal, after: token ? 4500 : 0 }; // so old that it can have ended
    },
  });
  const state = tempDir();
  const server = await serve(t, { servers: { odd: { url: both.url, transport: 'sse' } } }, { env: { XDG_STATE_HOME: state } });
  await untilState(server, 'odd', 'needs_sign_in');
  const login = new Login(server, 'odd', { XDG_STATE_HOME: state });
  const query = new URL(await login.address()).searchParams;
  await fetch(`${query.get('redirect_uri')}?code=c&state=${query.get('state')}`);
  // libcurl makes up to two requests of the first try.
  await until('another try with the new token', () => seen.filter((token) => token === 't2').length > 2, 15_000);
});
