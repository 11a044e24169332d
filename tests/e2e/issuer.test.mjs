// Our own authorization server (auth.issuer: built-in): an agent registers, a person approves it on a page, and
// it gets tokens; and every way to get in without that person.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { bothTypes, exchange, fake, HttpClient, load, logged, rialto, serve, sleep, tempDir, until } from './lib.mjs';
import { pkce, readPage } from './oauth_lib.mjs';

const { refreshAuthorization } = load('@modelcontextprotocol/sdk/client/auth.js');

const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const PUBLIC = 'https://rialto.example.test';
const BACK = 'https://agent.example.test/callback';
const PASSWORD = 'open sesame 123';
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});

let hashed;
async function passwordHash() {
  hashed ??= rialto(['pair', '--password'], { input: `${PASSWORD}\n` }).then(({ code, stdout, stderr }) => {
    assert.equal(code, 0, stderr);
    return stdout.match(/^password: (scrypt:\S+)\n$/)[1];
  });
  return hashed;
}

/** A daemon with the issuer enabled, and what an agent and a browser do with it. */
export async function start(t, more = {}, options = {}) {
  const state = options.state ?? tempDir();
  const { auth, ...rest } = more;
  const server = await serve(t, {
    public_url: PUBLIC, servers: { f: fake('--name', 'f') },
    auth: { issuer: 'built-in', password: await passwordHash(), ...auth }, ...rest,
  }, { env: { XDG_STATE_HOME: state, ...options.env } });
  const run = {
    server, state,
    get: (where, headers = {}) => exchange(server.origin + where, { method: 'GET', headers }),
    post: (where, body, headers = {}) => exchange(server.origin + where, {
      headers: { ...(typeof body === 'string' ? json : form), ...headers }, body: typeof body === 'string' ? body : `${new URLSearchParams(body)}` }),
    register: async (fields = {}, headers = {}) => {
      const answer = await run.post('/oauth/register', JSON.stringify({ client_name: 'Agent', redirect_uris: [BACK], token_endpoint_auth_method: 'none', ...fields }), headers);
      return { answer, ...(answer.status === 201 && JSON.parse(answer.text)) };
    },
    query: (client, fields = {}) => new URLSearchParams(Object.entries({
      response_type: 'code', client_id: client, redirect_uri: BACK, code_challenge: pkce().challenge,
      code_challenge_method: 'S256', state: 'the state', resource: `${PUBLIC}/mcp`, ...fields }).filter(([, v]) => v !== undefined)),
    page: (client, fields, headers) => run.get(`/oauth/authorize?${run.query(client, fields)}`, headers),
    answer: (page, fields = {}, headers = {}) => {
      const { request, csrf, scope, cookie } = readPage(page);
      const body = Object.fromEntries(Object.entries({ request, csrf, scope, word: PASSWORD, answer: 'allow', ...fields }).filter(([, v]) => v !== undefined));
      return run.post('/oauth/authorize', body, { Origin: PUBLIC, Cookie: cookie, ...headers });
    },
    /** The parameters with which the person's browser is redirected back, the code among them. */
    code: async (client, fields) => {
      const page = await run.page(client, fields);
      assert.equal(page.status, 200, page.text);
      const back = await run.answer(page);
      assert.equal(back.status, 303, back.text);
      return Object.fromEntries(new URL(back.headers.location).searchParams);
    },
    token: (fields, headers) => run.post('/oauth/token', fields, headers),
    redeem: async (client, code, verifier, more_ = {}) => run.token({ grant_type: 'authorization_code', client_id: client, code, code_verifier: verifier, redirect_uri: BACK, ...more_ }),
    /** The whole sign-in: {client, access_token, refresh_token, ...}. */
    signIn: async (fields = {}, registered) => {
      const { client_id: client } = registered ?? await run.register();
      const { verifier, challenge } = pkce();
      const { code } = await run.code(client, { code_challenge: challenge, ...fields });
      const answer = await run.redeem(client, code, verifier);
      assert.equal(answer.status, 200, answer.text);
      return { client, code, verifier, ...JSON.parse(answer.text) };
    },
    enter: (token, where = '/mcp') => exchange(server.origin + where, { headers: { ...json, ...bearer(token) }, body: initialize }),
    refresh: (signed, token = signed.refresh_token, fields = {}) => run.token({ grant_type: 'refresh_token', client_id: signed.client, refresh_token: token, ...fields }),
    command: (...args) => rialto(args, { env: { XDG_RUNTIME_DIR: server.dir, XDG_STATE_HOME: state } }),
  };
  return run;
}

test('off unless asked for: nothing of it is there', async (t) => {
  const server = await serve(t, { public_url: PUBLIC, servers: {}, auth: { tokens: [] } });
  for (const [method, where] of [['GET', '/.well-known/oauth-authorization-server'], ['GET', '/.well-known/openid-configuration/mcp'], ['GET', '/.well-known/other'],
    ['POST', '/oauth/register'], ['GET', '/oauth/authorize?client_id=x'], ['POST', '/oauth/token'], ['POST', '/oauth/revoke']]) {
    const answer = await exchange(server.origin + where, { method });
    assert.equal(answer.status, 404, where);
    assert.ok(JSON.parse(answer.text).error);
  }
  assert.match((await rialto(['pair'], { env: { XDG_RUNTIME_DIR: server.dir } })).stderr, /auth\.issuer: built-in/);
  const bad = await rialto(['check', '-c', (() => { const f = path.join(tempDir(), 'r.yaml'); fs.writeFileSync(f, 'auth: {issuer: built-in}\n'); return f; })()]);
  assert.equal(bad.code, 2);
  assert.match(bad.stderr + bad.stdout, /public_url/);
});

test('metadata, on every path that clients try, for pages of every site', async (t) => {
  const run = await start(t, { views: { small: { allow: ['echo'] } } });
  for (const where of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-authorization-server/mcp', '/.well-known/openid-configuration',
    '/.well-known/openid-configuration/mcp', '/mcp/.well-known/openid-configuration']) {
    const answer = await run.get(where, { Origin: 'https://inspector.example' });
    assert.equal(answer.status, 200, where);
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    assert.deepEqual(JSON.parse(answer.text), {
      issuer: PUBLIC, authorization_endpoint: `${PUBLIC}/oauth/authorize`, token_endpoint: `${PUBLIC}/oauth/token`,
      registration_endpoint: `${PUBLIC}/oauth/register`, revocation_endpoint: `${PUBLIC}/oauth/revoke`,
      response_types_supported: ['code'], response_modes_supported: ['query'], grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      revocation_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
      scopes_supported: ['mcp', 'mcp:small'], authorization_response_iss_parameter_supported: true, client_id_metadata_document_supported: true,
    });
  }
  // Every address that begins with these words had the document.
  for (const where of ['/.well-known/oauth-authorization-serverXYZ', '/.well-known/openid-configuration-other'])
    assert.equal((await run.get(where)).status, 404, where);
  const challenge = await run.enter('nonsense');
  assert.equal(challenge.headers['www-authenticate'], `Bearer resource_metadata="${PUBLIC}/.well-known/oauth-protected-resource/mcp", scope="mcp", error="invalid_token", error_description="it is not known here"`);
  const about = JSON.parse((await run.get('/.well-known/oauth-protected-resource/mcp/f')).text);
  assert.deepEqual([about.resource, about.authorization_servers, about.scopes_supported], [`${PUBLIC}/mcp/f`, [PUBLIC], ['mcp']]);
  for (const where of ['/oauth/token', '/oauth/register', '/oauth/revoke']) {
    const preflight = await exchange(run.server.origin + where, { method: 'OPTIONS', headers: { Origin: 'https://inspector.example',
      'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization, content-type, mcp-protocol-version' } });
    assert.equal(preflight.headers['access-control-allow-origin'], '*', where);
    assert.match(preflight.headers['access-control-allow-headers'], /authorization, content-type, mcp-protocol-version/);
    assert.equal((await run.get(where)).status, 405);
  }
  assert.equal((await run.get('/oauth/authorize?client_id=x', { Origin: 'https://inspector.example' })).status, 403);
});

test('sign in, use, refresh, revoke', async (t) => {
  const run = await start(t);
  const { verifier, challenge } = pkce();
  const { answer, client_id: client } = await run.register();
  assert.equal(answer.headers['cache-control'], 'no-store');
  const back = await run.code(client, { code_challenge: challenge });
  assert.equal(back.state, 'the state');
  assert.equal(back.iss, PUBLIC);
  const redeemed = await run.redeem(client, back.code, verifier, { resource: `${PUBLIC}/mcp` });
  assert.equal(redeemed.headers['cache-control'], 'no-store');
  const signed = { client, ...JSON.parse(redeemed.text) };
  assert.deepEqual({ ...signed, client: 0, access_token: 0, refresh_token: 0 }, { client: 0, access_token: 0, token_type: 'Bearer', expires_in: 3600, refresh_token: 0, scope: 'mcp' });

  const agent = await new HttpClient(run.server.url, { token: signed.access_token }).connect();
  await agent.waitFor('f__echo');
  assert.equal(await agent.text('f__echo', { a: 1 }), '{"a":1}');
  assert.match((await run.command('calls', '--json')).stdout, /Agent \[rialto-\w+\] \(https:\/\/rialto\.example\.test\)/);

  const next = JSON.parse((await run.refresh(signed)).text);
  assert.notEqual(next.refresh_token, signed.refresh_token);
  assert.equal((await run.enter(next.access_token)).status, 200);
  assert.equal((await run.enter(signed.access_token)).status, 200); // until it expires
  // Two processes of one agent race: both have the same refresh token then.
  const raced = JSON.parse((await run.refresh(signed)).text);
  assert.notEqual(raced.access_token, next.access_token);
  assert.equal(raced.refresh_token, next.refresh_token);
  agent.headers.Authorization = `Bearer ${next.access_token}`;
  assert.equal(await agent.text('f__echo', { a: 2 }), '{"a":2}');

  const stream = await agent.listen();
  assert.equal((await run.post('/oauth/revoke', { client_id: client, token: 'unknown' })).status, 200);
  assert.equal((await run.post('/oauth/revoke', { client_id: client, token: next.refresh_token })).status, 200);
  await until('the end of the stream', () => stream.ended);
  assert.equal((await run.enter(next.access_token)).status, 401);
  assert.equal(JSON.parse((await run.refresh(next, next.refresh_token, { client_id: client })).text).error, 'invalid_grant');
  for (const secret of [signed.access_token, signed.refresh_token, next.access_token, back.code, verifier, PASSWORD])
    assert.ok(!run.server.stderr().includes(secret));
});

// The second of two processes of an agent got no refresh token, which clients take for "keep yours" (RFC 6749 section
// 6): they kept the spent one, and when they used it an hour later the whole grant ended as if it had been stolen.
test('two processes of an agent that renew at the same time stay signed in', async (t) => {
  const run = await start(t);
  const signed = await run.signIn();
  const metadata = JSON.parse((await run.get('/.well-known/oauth-authorization-server')).text);
  const refresh = (refreshToken) => refreshAuthorization(PUBLIC, {
    metadata, clientInformation: { client_id: signed.client }, refreshToken, resource: new URL(`${PUBLIC}/mcp`),
    fetchFn: (url, options) => fetch(String(url).replace(PUBLIC, run.server.origin), options),
  });
  const [first, second] = await Promise.all([refresh(signed.refresh_token), refresh(signed.refresh_token)]);
  assert.notEqual(first.refresh_token, signed.refresh_token);
  assert.equal(second.refresh_token, first.refresh_token);
  assert.ok(!fs.readFileSync(path.join(run.state, 'rialto/grants.json'), 'utf8').includes(first.refresh_token));
  const later = await refresh(second.refresh_token);
  assert.notEqual(later.refresh_token, second.refresh_token);
  assert.equal((await run.enter(first.access_token)).status, 200);
  // An older one is a stolen one, and ends the grant.
  await assert.rejects(refresh(signed.refresh_token), /sign in again/);
  assert.equal((await run.enter(later.access_token)).status, 401);
});

test('what was granted survives a restart, in a file of hashes; an operator sees and revokes it', async (t) => {
  const run = await start(t);
  const signed = await run.signIn();
  const file = path.join(run.state, 'rialto/grants.json');
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const text = fs.readFileSync(file, 'utf8');
  for (const secret of [signed.access_token, signed.refresh_token, signed.code]) assert.ok(!text.includes(secret));
  await run.server.stop();
  const again = await start(t, {}, { state: run.state });
  assert.equal((await again.enter(signed.access_token)).status, 200);
  const next = JSON.parse((await again.refresh(signed)).text);
  assert.equal((await again.enter(next.access_token)).status, 200);
  const { stdout } = await again.command('pair', '--list');
  const [, id] = stdout.match(/^(\w{16}) +Agent +mcp +rialto-/m);
  const agent = await new HttpClient(again.server.url, { token: next.access_token }).connect();
  const stream = await agent.listen();
  assert.equal((await again.command('pair', '--revoke', id)).code, 0);
  await until('the end of the stream', () => stream.ended);
  assert.equal((await again.enter(next.access_token)).status, 401);
  assert.equal((await again.command('pair', '--revoke', id)).code, 1);
  assert.deepEqual(JSON.parse((await again.command('pair', '--list', '--json')).stdout), []);
});

// On a full disk the command said "no such grant", and again when there was room: the operator could not know that the
// grant had ended only until the next start. The agent's second try at /oauth/revoke was answered with 200 as well.
test('a grant whose end cannot be kept: that is said, and the next try keeps it', async (t) => {
  const run = await start(t);
  const signed = [await run.signIn(), await run.signIn()];
  const file = path.join(run.state, 'rialto/grants.json');
  const kept = fs.readFileSync(file);
  fs.rmSync(file);
  fs.mkdirSync(path.join(file, 'in the way'), { recursive: true });
  const [, id] = (await run.command('pair', '--list')).stdout.match(/^(\w{16}) /m);
  for (const _ of 'ab') {
    const { code, stderr } = await run.command('pair', '--revoke', id);
    assert.equal(code, 1);
    assert.match(stderr, /has ended, but its end cannot be kept/);
    const fields = { client_id: signed[1].client, token: signed[1].refresh_token };
    assert.equal((await run.post('/oauth/revoke', fields)).status, 503);
  }
  fs.rmSync(file, { recursive: true });
  fs.writeFileSync(file, kept, { mode: 0o600 });
  assert.equal((await run.command('pair', '--revoke', id)).code, 0);
  assert.match((await run.command('pair', '--revoke', id)).stderr, /no such grant/);
  await run.server.stop();
  const again = await start(t, {}, { state: run.state });
  for (const { access_token: token } of signed) assert.equal((await again.enter(token)).status, 401);
});

test('a file of grants that makes no sense is kept as it is, and nobody signs in', async (t) => {
  const state = tempDir();
  fs.mkdirSync(path.join(state, 'rialto'));
  fs.writeFileSync(path.join(state, 'rialto/grants.json'), '{"clients":[');
  const run = await start(t, {}, { state });
  await logged(run.server, /grants\.json cannot be read/);
  assert.equal((await run.register()).answer.status, 500);
  assert.equal(fs.readFileSync(path.join(state, 'rialto/grants.json'), 'utf8'), '{"clients":[');
});

test('the code of rialto pair is good once; the password as often as wanted; five wrong tries cost time', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register();
  const { stdout } = await run.command('pair');
  const [, code] = stdout.match(/^code: ([A-Z2-9]{4}-[A-Z2-9]{4})\n$/);
  const tryWord = async (word) => (await run.answer(await run.page(client), { word })).status;
  assert.equal(await tryWord(code.toLowerCase().replace('-', ' ')), 303);
  assert.equal(await tryWord(code), 403);
  assert.equal(await tryWord(PASSWORD), 303);
  assert.equal(await tryWord(PASSWORD), 303);
  for (let i = 0; i < 5; i++) assert.equal(await tryWord(i % 2 ? '' : `wrong ${i}`), 403);
  const late = await run.answer(await run.page(client));
  assert.equal(late.status, 429);
  assert.match(late.text, /Wait half a minute/);
  assert.equal(late.headers['retry-after'], '30');
  assert.ok(!late.headers.location);
  // The owner is not locked out: a new pairing code works at once.
  const { stdout: fresh } = await run.command('pair');
  assert.equal(await tryWord(fresh.slice(6).trim()), 303);
  // Without a password, only pairing codes work.
  const bare = await start(t, { auth: { password: undefined } });
  const { client_id: other } = await bare.register();
  assert.equal((await bare.answer(await bare.page(other), { word: '' })).status, 403);
  assert.equal((await bare.answer(await bare.page(other), { word: PASSWORD })).status, 403);
});

test('stopped while a password is being checked, it ends cleanly', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register();
  const page = await run.page(client);
  const answers = Promise.allSettled([run.answer(page), run.answer(await run.page(client))]);
  await run.server.stop();
  await answers;
});

test('a page that is open stays good when the configuration changes', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register();
  const page = await run.page(client);
  const config = JSON.parse(fs.readFileSync(run.server.config, 'utf8'));
  config.servers.g = fake('--name', 'g');
  fs.writeFileSync(run.server.config, JSON.stringify(config));
  await logged(run.server, /configuration read again/);
  assert.equal((await run.answer(page)).status, 303);
  delete config.auth.issuer;
  config.auth.tokens = [];
  fs.writeFileSync(run.server.config, JSON.stringify(config));
  await until('the issuer to be off', async () => (await run.get('/.well-known/oauth-authorization-server')).status === 404);
});

test('registration: what is taken and what is not', async (t) => {
  const run = await start(t);
  const uri = async (...redirect_uris) => (await run.register({ redirect_uris }, {})).answer;
  const good = [BACK, 'http://localhost:1234/cb', 'http://127.0.0.1/cb?x=1', 'http://[::1]:9/cb', 'cursor://anysphere.cursor-mcp/oauth/callback', 'com.example.app:/cb'];
  assert.equal((await uri(...good)).status, 201);
  const bad = ['http://example.com/cb', 'https://user@example.com/cb', 'https://example.com/cb#frag', 'https://*.example.com/cb', 'javascript:alert(1)', 'JavaScript:alert(1)',
    'data:text/html,x', 'file:///etc/passwd', 'blob:https://x/y', '', 'not a uri', '/cb', 'https:///cb', 'https://exa mple.com/', `https://example.com/${'x'.repeat(2000)}`, 'https://example.com\\@evil.example/'];
  for (const one of bad) {
    const run_ = await uri(one);
    if (run_.status === 429) break;
    assert.equal(run_.status, 400, one);
    assert.equal(JSON.parse(run_.text).error, 'invalid_redirect_uri', one);
  }
  const other = await start(t);
  for (const [body, error] of [['{', 'invalid_client_metadata'], ['[]', 'invalid_client_metadata'], ['{}', 'invalid_redirect_uri'],
    [JSON.stringify({ redirect_uris: Array(11).fill(BACK) }), 'invalid_redirect_uri'], [JSON.stringify({ redirect_uris: BACK }), 'invalid_redirect_uri'],
    [JSON.stringify({ redirect_uris: [BACK], token_endpoint_auth_method: 'private_key_jwt' }), 'invalid_client_metadata'],
    [JSON.stringify({ redirect_uris: [BACK], grant_types: ['client_credentials'] }), 'invalid_client_metadata'],
    [`{"redirect_uris":["${BACK}"],"redirect_uris":["https://evil.example"]}`, 'invalid_client_metadata'],
    [JSON.stringify({ redirect_uris: [BACK], pad: 'x'.repeat(20_000) }), 'invalid_client_metadata']]) {
    const answer = await other.post('/oauth/register', body);
    assert.equal(answer.status, 400, body.slice(0, 60));
    assert.equal(JSON.parse(answer.text).error, error, body.slice(0, 60));
  }
  assert.equal((await other.post('/oauth/register', { redirect_uris: BACK })).status, 415);
  const secret = await other.register({ token_endpoint_auth_method: undefined });
  assert.equal(secret.token_endpoint_auth_method, 'client_secret_basic');
  assert.equal(secret.client_secret.length, 43);
  assert.equal(secret.client_secret_expires_at, 0);
  assert.ok(!fs.readFileSync(path.join(other.state, 'rialto/grants.json'), 'utf8').includes(secret.client_secret));
  let last;
  for (let i = 0; i < 21; i++) last = (await other.register()).answer;
  assert.equal(last.status, 429);
  assert.equal(last.headers['retry-after'], '3600');
});

test('clients with a secret must show it, in the way they registered', async (t) => {
  const run = await start(t);
  const c = await run.register({ token_endpoint_auth_method: 'client_secret_post' });
  const { verifier, challenge } = pkce();
  const { code } = await run.code(c.client_id, { code_challenge: challenge });
  const fields = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: BACK };
  const basic = (id, secret) => ({ Authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}` });
  for (const [more, headers] of [[{ client_id: c.client_id }], [{ client_id: c.client_id, client_secret: 'wrong' }], [{}], [{}, basic(c.client_id, 'wrong')], [{}, { Authorization: 'Basic !' }],
    [{ client_id: 'other' }, basic(c.client_id, c.client_secret)], [{ client_secret: c.client_secret }, basic(c.client_id, c.client_secret)], [{ client_id: 'unknown' }]]) {
    const answer = await run.token({ ...fields, ...more }, headers);
    assert.equal(answer.status, 401, JSON.stringify([more, headers]));
    assert.equal(JSON.parse(answer.text).error, 'invalid_client');
    assert.equal(answer.headers['access-control-allow-origin'], '*');
  }
  assert.equal((await run.token(fields, basic(c.client_id, c.client_secret))).status, 200);
});

test('open redirects: an address that is not registered gets a page of ours, and no Location', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register({ redirect_uris: [BACK, 'http://127.0.0.1:4000/cb?a=1', 'http://localhost:4000/cb'] });
  for (const redirect_uri of [undefined, '', 'https://evil.example/callback', 'https://agent.example.test.evil.example/callback', 'https://agent.example.test@evil.example/callback',
    '//evil.example/callback', `${BACK}/..`, `${BACK}?next=1`, `${BACK}#x`, BACK.toUpperCase(), 'https://agent.example.test:8443/callback', 'http://agent.example.test/callback',
    'http://localhost:4000/cb?a=1', 'http://127.0.0.1:4000/cb', 'http://127.0.0.1:4000/cb?a=1&b=2', 'http://127.0.0.2:4000/cb?a=1', 'http://[::1]:4000/cb', 'http://127.0.0.1.evil.example:4000/cb?a=1', 'javascript:alert(1)']) {
    const answer = await run.page(client, { redirect_uri });
    assert.equal(answer.status, 400, redirect_uri);
    assert.equal(answer.headers.location, undefined, redirect_uri);
    assert.match(answer.headers['content-type'], /^text\/html/);
  }
  assert.equal((await run.page('rialto-unknown')).status, 400);
  assert.equal((await run.get(`/oauth/authorize?${run.query(client)}&client_id=${client}`)).status, 400);
  assert.equal((await run.get(`/oauth/authorize?${run.query(client)}&redirect_uri=${encodeURIComponent('https://evil.example')}`)).status, 400);
  // Programs on the person's machine may use any port.
  for (const redirect_uri of ['http://127.0.0.1:5555/cb?a=1', 'http://localhost/cb']) assert.equal((await run.page(client, { redirect_uri })).status, 200, redirect_uri);
});

test('what is wrong with a request of a known client goes back to it, with state and iss', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register();
  for (const [fields, error] of [[{ response_type: 'token' }, 'unsupported_response_type'], [{ response_type: undefined }, 'unsupported_response_type'],
    [{ code_challenge: undefined }, 'invalid_request'], [{ code_challenge: 'short' }, 'invalid_request'], [{ code_challenge_method: 'plain' }, 'invalid_request'], [{ code_challenge_method: undefined }, 'invalid_request'],
    [{ resource: 'https://other.example/mcp' }, 'invalid_target'], [{ resource: `${PUBLIC}/mcp/nobody` }, 'invalid_target'], [{ resource: PUBLIC }, 'invalid_target'],
    [{ scope: 'admin' }, 'invalid_scope'], [{ scope: 'mcp mcp:nobody' }, 'invalid_scope']]) {
    const answer = await run.page(client, fields);
    assert.equal(answer.status, 303, JSON.stringify(fields));
    const back = new URL(answer.headers.location);
    assert.equal(`${back.origin}${back.pathname}`, BACK);
    assert.deepEqual([back.searchParams.get('error'), back.searchParams.get('state'), back.searchParams.get('iss')], [error, 'the state', PUBLIC]);
  }
  const denied = await run.answer(await run.page(client), { answer: 'deny' });
  assert.equal(new URL(denied.headers.location).searchParams.get('error'), 'access_denied');
});

test('the page: not in frames, not from elsewhere, not twice; and it shows what it is told, escaped', async (t) => {
  const run = await start(t);
  const { client_id: client } = await run.register({ client_name: '<script>alert(1)</script>\u202eevil & "co"' });
  const page = await run.page(client);
  assert.match(page.headers['content-security-policy'], /default-src 'none'; style-src 'nonce-\w+'; base-uri 'none'; frame-ancestors 'none'/);
  assert.doesNotMatch(page.headers['content-security-policy'], /form-action/);
  assert.equal(page.headers['x-frame-options'], 'DENY');
  assert.equal(page.headers['cache-control'], 'no-store');
  assert.equal(page.headers['access-control-allow-origin'], undefined);
  assert.match(page.headers['set-cookie'][0], /^__Host-rialto-sign-in=\w{32}; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
  assert.ok(!page.text.includes('<script') && page.text.includes('&lt;script&gt;') && page.text.includes('\\u202e'));
  assert.match(page.text, /agent\.example\.test/);
  const { csrf, cookie } = readPage(page);
  for (const [what, fields, headers] of [['no CSRF token', { csrf: undefined }], ['a wrong one', { csrf: 'x'.repeat(csrf.length) }], ['no cookie', {}, { Cookie: '' }],
    ['the cookie of another', {}, { Cookie: cookie.replace(/.$/, (c) => (c === '0' ? '1' : '0')) }], ['another request', { request: '0'.repeat(32) }], ['another Origin', {}, { Origin: 'https://rialto.example.test.evil.example' }],
    ['no Origin', {}, { Origin: '' }], ['Origin null', {}, { Origin: 'null' }], ['http', {}, { Origin: 'http://rialto.example.test' }]]) {
    const answer = await run.answer(page, fields, headers);
    assert.equal(answer.status, 403, what);
    assert.equal(answer.headers.location, undefined);
  }
  // A name that resolves to this address but is not ours (DNS rebinding).
  for (const Host of ['evil.example', 'rialto.example.test.evil.example', 'evil.example:443']) {
    assert.equal((await run.page(client, {}, { Host })).status, 403, Host);
    assert.equal((await run.answer(page, {}, { Host, Origin: `https://${Host}` })).status, 403, Host);
  }
  assert.equal((await run.answer(page, { scope: 'mcp:nobody' })).status, 400);
  assert.equal((await run.answer(page)).status, 303);
  assert.equal((await run.answer(page)).status, 403);
  const local = await run.register({ redirect_uris: ['http://localhost/cb'] });
  assert.match((await run.page(local.client_id, { redirect_uri: 'http://localhost:7/cb' })).text, /program on the computer/);
});

test('codes: one minute, one use, one client, one verifier, one address; a second use ends the grant', async (t) => {
  const run = await start(t);
  const registered = await run.register();
  const { client_id: client } = registered;
  const fresh = async () => { const p = pkce(); return { ...p, ...(await run.code(client, { code_challenge: p.challenge })) }; };
  const refused = async (answer, error = 'invalid_grant') => {
    assert.equal(answer.status, 400, answer.text);
    assert.equal(JSON.parse(answer.text).error, error);
  };
  const { client_id: thief } = await run.register();
  const a = await fresh();
  await refused(await run.redeem(thief, a.code, a.verifier));
  await refused(await run.redeem(client, a.code, pkce().verifier));
  await refused(await run.redeem(client, a.code, a.verifier)); // the code was spent by the try with the wrong verifier
  const b = await fresh();
  await refused(await run.redeem(client, b.code, b.verifier, { redirect_uri: `${BACK}x` }));
  const c = await fresh();
  await refused(await run.redeem(client, c.code, c.verifier, { resource: `${PUBLIC}/mcp/f` }), 'invalid_target');
  assert.equal((await run.redeem(client, c.code, c.verifier)).status, 200);
  await refused(await run.redeem(client, 'nonsense', c.verifier));
  await refused(await run.token({ grant_type: 'password', client_id: client, username: 'a', password: 'b' }), 'unsupported_grant_type');
  assert.equal((await run.post('/oauth/token', JSON.stringify({ grant_type: 'authorization_code' }))).status, 400);
  assert.equal((await exchange(`${run.server.origin}/oauth/token`, { headers: form, body: `grant_type=refresh_token&client_id=${client}&client_id=${thief}` })).status, 400);
  const signed = await run.signIn({}, registered);
  assert.equal((await run.enter(signed.access_token)).status, 200);
  await refused(await run.redeem(client, signed.code, signed.verifier));
  assert.equal((await run.enter(signed.access_token)).status, 401);
  await refused(await run.refresh(signed));
  await logged(run.server, /code was used twice/);
});

test('an old refresh token after its half minute is a stolen one: the family ends', async (t) => {
  const run = await start(t);
  const signed = await run.signIn();
  const other = await run.signIn();
  const next = JSON.parse((await run.refresh(signed)).text);
  assert.equal(JSON.parse((await run.refresh(other, signed.refresh_token)).text).error, 'invalid_grant'); // the refresh token of another client
  await sleep(31_000);
  assert.equal(JSON.parse((await run.refresh(signed)).text).error, 'invalid_grant');
  assert.equal((await run.enter(next.access_token)).status, 401);
  assert.equal(JSON.parse((await run.refresh({ client: signed.client }, next.refresh_token)).text).error, 'invalid_grant');
  assert.equal((await run.enter(other.access_token)).status, 200);
  await logged(run.server, /old refresh token was used again/);
});

// A thief who refreshed twice in quick succession was never detected: only the previous refresh token was
// remembered, so the owner's was simply unknown, and the thief's stayed valid.
test('every older refresh token of a family is a stolen one, not only the last', async (t) => {
  const run = await start(t);
  const signed = await run.signIn();
  let last = signed;
  for (let i = 0; i < 3; i++) last = { ...signed, ...JSON.parse((await run.refresh(last)).text) };
  assert.equal((await run.enter(last.access_token)).status, 200);
  const forged = signed.refresh_token.slice(0, 40) + 'A'.repeat(signed.refresh_token.length - 40);
  assert.equal(JSON.parse((await run.refresh({ client: (await run.register()).client_id }, forged)).text).error, 'invalid_grant'); // a token shown by another client ends nothing
  assert.equal((await run.enter(last.access_token)).status, 200);
  assert.equal(JSON.parse((await run.refresh(signed)).text).error, 'invalid_grant');
  assert.equal((await run.enter(last.access_token)).status, 401);
  assert.equal(JSON.parse((await run.refresh(last)).text).error, 'invalid_grant');
});

// On a full disk a refresh token was exchanged for one that no client had received, so the agent's next try logged it
// out; a code was spent for nothing; and what was revoked was valid again after the next start.
test('what cannot be kept is not given, and what was there before stays good', async (t) => {
  const run = await start(t);
  const file = path.join(run.state, 'rialto/grants.json');
  const full = async (work) => {
    const kept = fs.readFileSync(file);
    fs.rmSync(file);
    fs.mkdirSync(path.join(file, 'in the way'), { recursive: true });
    await work();
    fs.rmSync(file, { recursive: true });
    fs.writeFileSync(file, kept, { mode: 0o600 });
  };
  const { client_id: client } = await run.register();
  const { verifier, challenge } = pkce();
  const { code } = await run.code(client, { code_challenge: challenge });
  await full(async () => {
    const answer = await run.redeem(client, code, verifier);
    assert.deepEqual([answer.status, JSON.parse(answer.text).error], [500, 'server_error']);
    assert.doesNotMatch((await run.command('pair', '--list')).stdout, /Agent/);
  });
  const signed = { client, ...JSON.parse((await run.redeem(client, code, verifier)).text) };
  await full(async () => assert.equal((await run.refresh(signed)).status, 500));
  const next = JSON.parse((await run.refresh(signed)).text);
  assert.ok(next.refresh_token, 'the old one is still the newest');
  await full(async () => assert.equal((await run.post('/oauth/revoke', { client_id: client, token: next.refresh_token })).status, 503));
  assert.equal((await run.enter(next.access_token)).status, 401);
});

// 200 clients had been approved once, and nobody could register any more, although their grants had ended long ago.
test('clients whose grants have ended make room for others', async (t) => {
  const state = tempDir();
  fs.mkdirSync(path.join(state, 'rialto'));
  const client = (i) => ({ client_id: `rialto-${i}`, client_name: 'Old', redirect_uris: [BACK], token_endpoint_auth_method: 'none', created: 1_700_000_000_000 + i, granted: true });
  const grant = { id: 'abc', client: 'rialto-0', name: 'Old', scope: 'mcp', resource: '/mcp', created: 1, used: 1, expires: Date.now() + 1e9, refresh: '0'.repeat(64), access: [] };
  fs.writeFileSync(path.join(state, 'rialto/grants.json'), JSON.stringify({ clients: Array.from({ length: 200 }, (_, i) => client(i)), grants: [grant] }), { mode: 0o600 });
  const run = await start(t, {}, { state });
  assert.equal((await run.register()).answer.status, 201);
  const { clients } = JSON.parse(fs.readFileSync(path.join(state, 'rialto/grants.json'), 'utf8'));
  assert.deepEqual([clients.length, clients[0].client_id, clients[1].client_id], [200, 'rialto-0', 'rialto-2']);
});

test('the person chooses the view, and a grant for one server is for that alone', async (t) => {
  const run = await start(t, { views: { small: { servers: ['f'], allow: ['echo'] } }, servers: { f: fake('--name', 'f'), g: fake('--name', 'g') } });
  const { client_id: client } = await run.register();
  const { verifier, challenge } = pkce();
  const page = await run.page(client, { code_challenge: challenge, scope: undefined });
  assert.equal(readPage(page).scope, 'mcp');
  const back = await run.answer(page, { scope: 'mcp:small' });
  const answer = JSON.parse((await run.redeem(client, new URL(back.headers.location).searchParams.get('code'), verifier)).text);
  assert.equal(answer.scope, 'mcp:small');
  const agent = await new HttpClient(run.server.url, { token: answer.access_token }).connect();
  await agent.waitFor('f__echo');
  assert.deepEqual(await agent.toolNames(), ['f__echo']);
  assert.equal((await run.refresh({ client }, answer.refresh_token, { scope: 'mcp' })).status, 400); // a refresh does not widen
  assert.equal(readPage(await run.page(client, { scope: 'mcp:small offline_access' })).scope, 'mcp:small');
  const one = await run.signIn({ resource: `${PUBLIC}/mcp/f` });
  assert.equal((await run.enter(one.access_token, '/mcp/f')).status, 200);
  assert.equal((await run.enter(one.access_token, '/mcp/g')).status, 401);
  assert.equal((await run.enter(one.access_token)).status, 401);
});
