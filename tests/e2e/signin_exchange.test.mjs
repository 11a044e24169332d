// The caller's identity is passed on to a server: the caller's own token is exchanged at the identity provider that
// issued it (RFC 8693), for a token of the server or for an assertion that the server's own authorization server
// accepts (ID-JAG). Both are oidc-provider, a real one, to which only these two grants are added.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, fake, HttpClient, load, rialto, serve, sleep, tempDir, until, writeConfig } from './lib.mjs';
import { freePort, newKey, seconds, sign } from './oauth_lib.mjs';
import { scopes, startIssuer, startProtected } from './oidc_lib.mjs';

const jose = await import(load.resolve('jose'));

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const type = (name) => `urn:ietf:params:oauth:token-type:${name}`;
const client = (client_id, grant, more = {}) => ({ client_id, grant_types: [grant], response_types: [], redirect_uris: [], ...more });
const jag = newKey('ES256', 'jag');

/** An access token of `as` for somebody, as a sign-in would have given it. */
async function tokenOf(as, sub, resource, ttl = 3600) {
  const { AccessToken, ResourceServer, Client } = as.provider;
  const token = new AccessToken({ accountId: sub, client: await Client.find('rialto'), scope: scopes.join(' '), gty: 'token_exchange' });
  token.resourceServer = new ResourceServer(resource, { scope: scopes.join(' '), audience: resource, accessTokenTTL: ttl, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } });
  return token.save();
}

/** The identity provider: exchanges its own tokens. `shown` has the requests that it got. */
async function startIdp(t, resource) {
  const as = await startIssuer(t, { clients: [client('rialto', EXCHANGE, { client_secret: 'the-secret-of-rialto-there' })] });
  const shown = [];
  const keys = jose.createRemoteJWKSet(new URL(`${as.issuer}/jwks`));
  as.provider.registerGrantType(EXCHANGE, async (ctx) => {
    const { subject_token: token, ...params } = ctx.oidc.params;
    shown.push({ token, ...params });
    const who = await jose.jwtVerify(token, keys, { issuer: as.issuer, audience: resource }).catch(() => null);
    if (!who || as.refuses) {
      ctx.status = 400;
      ctx.body = { error: 'invalid_request', error_description: `what is ${token}?` };
      return;
    }
    const { sub } = who.payload;
    const value = params.requested_token_type === type('id-jag')
      ? sign(jag, { iss: as.issuer, sub, aud: params.audience, resource: params.resource, client_id: 'rialto', exp: seconds() + 60, iat: seconds() }, { typ: 'oauth-id-jag+jwt' })
      : await tokenOf(as, sub, params.resource, as.ttl);
    ctx.body = { access_token: value, issued_token_type: params.requested_token_type, token_type: params.requested_token_type === type('id-jag') ? 'N_A' : 'Bearer', expires_in: as.ttl };
  }, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope']);
  return Object.assign(as, { shown });
}

/** An authorization server that accepts the assertions of `idp`. */
async function startCompany(t, idp) {
  const as = await startIssuer(t, { clients: [client('rialto', BEARER, { client_secret: 'the-secret-of-rialto' })] });
  as.provider.registerGrantType(BEARER, async (ctx) => {
    const { payload } = await jose.jwtVerify(ctx.oidc.params.assertion, jag.publicKey, { issuer: idp.issuer, audience: as.issuer, typ: 'oauth-id-jag+jwt' });
    ctx.body = { access_token: await tokenOf(as, payload.sub, payload.resource, as.ttl), token_type: 'Bearer', expires_in: as.ttl };
  }, ['assertion', 'resource', 'scope']);
  return as;
}

const hash = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const idpOf = (idp) => ({ token_endpoint: `${idp.issuer}/token`, client_id: 'rialto', client_secret: 'the-secret-of-rialto-there', issuer: idp.issuer });

/** Rialto between callers of `idp` and a server whose tokens Rialto gets by `auth`. */
async function setting(t, make, more = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const idp = await startIdp(t, `${url}/mcp`);
  const { as, auth } = await make(t, idp);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const server = await serve(t, { listen: `127.0.0.1:${port}`, public_url: url, servers: { notes: { url: notes.url, auth: { per_user: true, idp: idpOf(idp), ...auth } }, f: fake('--name', 'f') },
    auth: { jwt: { issuer: idp.issuer, jwks: `${idp.issuer}/jwks` }, tokens: [{ name: 'local', hash: hash('the-token-of-local') }] }, ...more }, { env: { XDG_STATE_HOME: state } });
  const caller = async (token) => new HttpClient(server.url, { token }).connect();
  return { idp, as, notes, server, state, caller, own: (sub, ttl) => tokenOf(idp, sub, `${url}/mcp`, ttl) };
}

const ways = {
  'token-exchange': async (t, idp) => ({ as: idp, auth: { grant: 'token-exchange' } }),
  'id-jag': async (t, idp) => ({ as: await startCompany(t, idp), auth: { grant: 'id-jag', client_id: 'rialto', client_secret: 'the-secret-of-rialto' } }),
};

for (const [grant, make] of Object.entries(ways)) {
  test(`${grant}: each caller's own token is exchanged at its issuer, and goes nowhere else`, async (t) => {
    const s = await setting(t, make);
    const tokens = {};
    for (const name of ['anna', 'bert']) {
      tokens[name] = await s.own(name);
      const agent = await s.caller(tokens[name]);
      await agent.waitFor('notes__whoami');
      assert.equal(await agent.text('notes__whoami', {}), name);
      await agent.close();
    }
    assert.deepEqual(s.idp.shown.map((x) => x.token), [tokens.anna, tokens.bert]);
    const { subject_token_type, requested_token_type, resource, audience } = s.idp.shown[0];
    assert.deepEqual({ subject_token_type, requested_token_type, resource },
      { subject_token_type: type('access_token'), requested_token_type: type(grant === 'id-jag' ? 'id-jag' : 'access_token'), resource: s.notes.url });
    assert.equal(audience, grant === 'id-jag' ? s.as.issuer : undefined);
    for (const token of Object.values(tokens)) {
      assert.ok(!s.notes.tokens.includes(token), 'no token is passed through');
      assert.ok(!s.server.stderr().includes(token.slice(-40)));
    }
    const kept = path.join(s.state, 'rialto/signin.json');
    assert.ok(!fs.existsSync(kept) || !fs.readFileSync(kept, 'utf8').includes('access_token'), 'nothing of it is on the disk');
  });
}

test('the exchanged token is renewed with the newest token that the caller has shown', async (t) => {
  const s = await setting(t, ways['token-exchange']);
  s.idp.ttl = 5; // renewed one second before it expires
  const first = await s.own('anna');
  const agent = await s.caller(first);
  await agent.waitFor('notes__whoami');
  assert.equal(await agent.text('notes__whoami', {}), 'anna');
  const second = await s.own('anna');
  assert.notEqual(second, first);
  agent.headers.Authorization = `Bearer ${second}`;
  await agent.request('ping');
  const n = s.idp.shown.length;
  await sleep(4500);
  assert.equal(await agent.text('notes__whoami', {}), 'anna');
  assert.ok(s.idp.shown.length > n);
  assert.equal(s.idp.shown.at(-1).token, second);
  await agent.close();
});

// The provider's error may repeat the token that it was sent: the agent and the log get it without the token.
test('a provider that refuses is quoted without the token; a newer token is tried at once', async (t) => {
  const s = await setting(t, ways['token-exchange']);
  s.idp.refuses = true;
  const first = await s.own('anna');
  const agent = await s.caller(first);
  await agent.waitFor('f__echo');
  const told = async () => JSON.stringify(await agent.request('tools/call', { name: 'notes__whoami', arguments: {} }));
  const words = await until('the reason', async () => { const all = await told(); return /invalid_request/.test(all) && all; });
  assert.ok(!words.includes(first.slice(0, 60)) && !words.includes(first.slice(-40)), words);
  await until('the line', () => /no new token/.test(s.server.stderr()));
  assert.ok(!s.server.stderr().includes(first.slice(-40)));
  for (let i = 0; i < 6; i++) await told(); // the pause between two tries grows
  s.idp.refuses = false;
  agent.headers.Authorization = `Bearer ${await s.own('anna')}`;
  await agent.request('ping');
  await until('the server', async () => !/isError|"error"/.test(await told()));
  await agent.close();
});

test('a caller without such a token is told what to do, and nothing is sent anywhere', async (t) => {
  const s = await setting(t, ways['token-exchange']);
  const agent = await s.caller('the-token-of-local');
  await agent.waitFor('f__echo');
  const told = async () => JSON.stringify(await agent.request('tools/call', { name: 'notes__whoami', arguments: {} }));
  const words = await until('the reason', async () => { const all = await told(); return /access token/.test(all) && all; });
  assert.match(words, /must be an access token of 'http:\/\/127\.0\.0\.1:\d+': connect with one/);
  assert.deepEqual(s.idp.shown, []);
  await agent.close();
});

test('tokens of another trusted issuer are not exchanged there', async (t) => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const idp = await startIdp(t, `${url}/mcp`);
  const notes = await startProtected(t, idp);
  const key = newKey('ES256', 'other');
  const file = path.join(tempDir(), 'keys.json');
  fs.writeFileSync(file, JSON.stringify({ keys: [key.jwk] }));
  const server = await serve(t, { listen: `127.0.0.1:${port}`, public_url: url, servers: { notes: { url: notes.url, auth: { grant: 'token-exchange', per_user: true, idp: idpOf(idp) } }, f: fake('--name', 'f') },
    auth: { jwt: [{ issuer: idp.issuer, jwks: `${idp.issuer}/jwks` }, { issuer: 'https://other.example.test', jwks: file }] } });
  const agent = await new HttpClient(server.url, { token: sign(key, { iss: 'https://other.example.test', aud: `${url}/mcp`, sub: 'anna', exp: seconds() + 300, iat: seconds() }) }).connect();
  await agent.waitFor('f__echo');
  await until('the reason', async () => /must be an access token of/.test(JSON.stringify(await agent.request('tools/call', { name: 'notes__whoami', arguments: {} }))));
  assert.deepEqual(idp.shown, []);
  await agent.close();
});

test('what of these settings does not go together', async () => {
  const idp = { token_endpoint: 'https://idp.example.test/token', client_id: 'rialto' };
  const issuer = 'https://idp.example.test';
  const jwt = { issuer, jwks: 'https://idp.example.test/jwks', audience: 'https://rialto.example.test/mcp' };
  const check = async (auth, top = { jwt }) => {
    const dir = tempDir();
    const { stderr, stdout } = await rialto(['check', writeConfig(dir, { servers: { notes: { url: 'https://notes.example.test/mcp', auth } }, auth: top })]).catch((e) => e);
    return stdout + stderr;
  };
  for (const [auth, words, top] of [
    [{ grant: 'token-exchange' }, /'idp' with 'token_endpoint' and 'client_id'/],
    [{ grant: 'token-exchange', idp }, /'idp.subject_token', or 'per_user' and 'idp.issuer'/],
    [{ grant: 'token-exchange', idp, per_user: true }, /'idp.issuer' beside 'per_user'/],
    [{ grant: 'token-exchange', per_user: true, idp: { ...idp, issuer, subject_token: 'x' } }, /no 'idp.subject_token'/],
    [{ grant: 'id-jag', per_user: true, idp: { ...idp, issuer } }, /needs 'client_id'/],
    [{ grant: 'client_credentials', client_id: 'a', client_secret: 'b', per_user: true }, /'per_user' is for grants/],
    [{ grant: 'token-exchange', per_user: true, idp: { ...idp, issuer: 'https://else.example.test' } }, /callers with such tokens are not let in/],
    [{ grant: 'token-exchange', per_user: true, idp: { ...idp, issuer } }, /callers with such tokens are not let in/, {}],
  ]) assert.match(await check(auth, top), words, JSON.stringify(auth));
  assert.doesNotMatch(await check({ grant: 'token-exchange', per_user: true, idp: { ...idp, issuer } }), /needs|not let in/);
});
