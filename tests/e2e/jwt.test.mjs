// Access tokens of an identity provider (auth.jwt): which are valid, what they open, and every way to forge one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { bothTypes, exchange, fake, HttpClient, load, logged, serve, tempDir, until, within } from './lib.mjs';
import { newKey, seconds, sign, site } from './oauth_lib.mjs';
import { ModernClient } from './peers.mjs';

const { WebSocket } = load('ws');

const PUBLIC = 'https://rialto.example.test';
const ISSUER = 'https://idp.example.test/realms/one';
const AUDIENCE = `${PUBLIC}/mcp`;
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});
const claims = (more = {}) => ({ iss: ISSUER, aud: AUDIENCE, sub: 'alice', exp: seconds() + 300, iat: seconds(), ...more });
const rsa = newKey('RS256');

const fileOf = (...keys) => {
  const file = path.join(tempDir(), 'keys.json');
  fs.writeFileSync(file, JSON.stringify({ keys: keys.map((k) => k.jwk ?? k) }));
  return file;
};
const enter = (server, token, { where = '/mcp', method = 'POST', headers = {} } = {}) => exchange(server.origin + where,
  { method, headers: { ...json, ...(token === null ? {} : bearer(token)), ...headers }, body: method === 'POST' ? initialize : undefined });

async function start(t, jwt = {}, more = {}) {
  const entry = Array.isArray(jwt) ? jwt : { issuer: ISSUER, jwks: fileOf(rsa), ...jwt };
  const { auth, ...rest } = more;
  return serve(t, { public_url: PUBLIC, servers: { f: fake('--name', 'f') }, auth: { jwt: entry, ...auth }, ...rest });
}

test('every algorithm, one key each, from a file; the caller is issuer and subject', async (t) => {
  const keys = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'].map((alg) => newKey(alg));
  const server = await start(t, { jwks: fileOf(...keys) });
  for (const key of keys) assert.equal((await enter(server, sign(key, claims()))).status, 200, key.alg);
  const client = await new HttpClient(server.url, { token: sign(keys[6], claims()) }).connect();
  await client.waitFor('f__echo');
  assert.equal(await client.text('f__echo', { a: 1 }), '{"a":1}');
  assert.match((await exchange(`${server.origin}/api/calls`, { method: 'GET', headers: bearer(sign(rsa, claims())) })).text, /not valid/);
  const modern = new ModernClient(server.url, { headers: bearer(sign(keys[0], claims({ aud: ['other', AUDIENCE] }))) });
  assert.ok((await modern.toolNames()).includes('f__echo'));
  // A session goes on with the next token of the same person, and is not found with anybody else's.
  const next = { ...client.headers, ...bearer(sign(keys[3], claims({ jti: 'next' }))) };
  assert.equal((await exchange(server.url, { headers: next, body: '{"jsonrpc":"2.0","id":5,"method":"ping"}' })).status, 200);
  const stranger = { ...client.headers, ...bearer(sign(keys[3], claims({ sub: 'mallory' }))) };
  assert.equal((await exchange(server.url, { headers: stranger, body: '{"jsonrpc":"2.0","id":5,"method":"ping"}' })).status, 404);
});

test('forged, foreign and broken tokens: 401 invalid_token, each time, and nothing of them in the log', async (t) => {
  const other = newKey('RS256'), ps = newKey('PS256', 'ps'), es = newKey('ES256', 'es');
  const server = await start(t, { jwks: fileOf(rsa, ps, es, { kty: 'oct', k: 'AAAA', kid: 'oct', alg: 'HS256' }) });
  const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
  const hs = (secret, kid) => sign({ ...rsa, secret }, claims(), { alg: 'HS256', kid });
  const good = sign(rsa, claims());
  const [head, body, tail] = good.split('.');
  const cases = {
    'none': sign(rsa, claims(), { alg: 'none' }),
    'None': sign(rsa, claims(), { alg: 'none' }).replace(head, head),
    'HS256 with the public key': hs(pem, rsa.kid),
    'HS256 with the JWK': hs(JSON.stringify(rsa.jwk), rsa.kid),
    'HS256 with an oct key of the set': hs(Buffer.from([0, 0, 0]), 'oct'),
    'RS256 with a key for PS256': sign({ ...ps, alg: 'RS256' }, claims()),
    'PS256 with a key for RS256': sign({ ...rsa, alg: 'PS256' }, claims()),
    'ES256 with an RSA key': sign({ ...es, kid: rsa.kid }, claims()),
    'another key of the same id': sign({ ...other, kid: rsa.kid }, claims()),
    'an unknown id': sign({ ...other, kid: 'elsewhere' }, claims()),
    'no id, and the key is not the only one': sign(other, claims(), { kid: undefined }),
    'a path as id': sign(other, claims(), { kid: '../../../../dev/null' }),
    'SQL as id': sign(other, claims(), { kid: "x' UNION SELECT 'secret" }),
    'an id of 6 KB': sign(rsa, claims(), { kid: 'k'.repeat(6000) }),
    'a key in the header': sign(other, claims(), { jwk: other.jwk, kid: undefined }),
    'an address of keys in the header': sign(other, claims(), { jku: 'http://127.0.0.1:1/keys', kid: 'jku' }),
    'critical extensions': sign(rsa, claims(), { crit: ['b64'], b64: false }),
    'type JWT': sign(rsa, claims(), { typ: 'JWT' }),
    'no type': sign(rsa, claims(), { typ: undefined }),
    'an ID-JAG': sign(rsa, claims(), { typ: 'oauth-id-jag+jwt' }),
    'a DPoP proof': sign(rsa, claims(), { typ: 'dpop+jwt' }),
    'another issuer': sign(rsa, claims({ iss: 'https://evil.example.test' })),
    'an issuer with a slash more': sign(rsa, claims({ iss: `${ISSUER}/` })),
    'no issuer': sign(rsa, claims({ iss: undefined })),
    'another audience': sign(rsa, claims({ aud: 'https://other.example.test/mcp' })),
    'no audience': sign(rsa, claims({ aud: undefined })),
    'our own name as audience': sign(rsa, claims({ aud: PUBLIC })),
    'a longer audience': sign(rsa, claims({ aud: `${AUDIENCE}x` })),
    'expired': sign(rsa, claims({ exp: seconds() - 61 })),
    'never expires': sign(rsa, claims({ exp: undefined })),
    'expiry as text': sign(rsa, claims({ exp: '9999999999' })),
    'expiry beyond all time': sign(rsa, claims({ exp: 1e300 })),
    'not yet': sign(rsa, claims({ nbf: seconds() + 120 })),
    'from the future': sign(rsa, claims({ iat: seconds() + 120 })),
    'an ID token': sign(rsa, claims({ at_hash: 'x' })),
    'an ID token of Keycloak': sign(rsa, claims({ typ: 'ID' })),
    'nobody': sign(rsa, claims({ sub: undefined })),
    // Callers are told apart by the visible form of the subject: one with invisible characters is refused.
    'somebody who looks like another': sign(rsa, claims({ sub: 'alice\u200b' })),
    'an empty subject': sign(rsa, claims({ sub: '', client_id: undefined })),
    'a subject of 300 bytes': sign(rsa, claims({ sub: 'a'.repeat(300) })),
    'a time that is no number': sign(rsa, claims({ exp: `${seconds() + 300}` })),
    'a time beyond all calendars': sign(rsa, `{"iss":"${ISSUER}","aud":"${AUDIENCE}","sub":"alice","exp":1e300}`),
    'a time that overflows when it is counted in ms': sign(rsa, `{"iss":"${ISSUER}","aud":"${AUDIENCE}","sub":"alice","exp":-9223372036854775807}`),
    'bound to a key': sign(rsa, claims({ cnf: { jkt: 'x' } })),
    'exp twice': sign(rsa, `{"iss":"${ISSUER}","aud":"${AUDIENCE}","sub":"a","exp":1,"exp":${seconds() + 300}}`),
    'aud twice': sign(rsa, `{"iss":"${ISSUER}","aud":"x","aud":"${AUDIENCE}","sub":"a","exp":${seconds() + 300}}`),
    'alg twice': sign(rsa, claims(), `{"alg":"none","alg":"RS256","kid":"${rsa.kid}","typ":"at+jwt"}`),
    'claims that are no object': sign(rsa, '[1]'),
    'claims that are no JSON': sign(rsa, '{'),
    'claims that are deep': sign(rsa, `{"a":${'['.repeat(20)}${']'.repeat(20)},"iss":"${ISSUER}"}`),
    'huge': sign(rsa, claims({ pad: 'x'.repeat(9000) })),
    'signature cut': `${head}.${body}.${tail.slice(0, -4)}`,
    'no signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'four parts': `${good}.${tail}`,
    'padding': `${head}=.${body}.${tail}`,
    'claims of another': `${head}.${Buffer.from(JSON.stringify(claims({ sub: 'root' }))).toString('base64url')}.${tail}`,
    'not a token': 'hello',
  };
  for (const [what, token] of Object.entries(cases)) {
    const answer = await enter(server, token);
    assert.equal(answer.status, 401, `${what}: ${answer.text}`);
    assert.match(answer.headers['www-authenticate'], /error="invalid_token", error_description="[^"]+"$/, what);
    assert.match(answer.headers['www-authenticate'], /^Bearer resource_metadata="https:\/\/rialto\.example\.test\/\.well-known\/oauth-protected-resource\/mcp"/, what);
    assert.match(answer.headers['content-type'], /^application\/json/);
    JSON.parse(answer.text);
  }
  assert.equal((await enter(server, good)).status, 200);
  for (const method of ['GET', 'DELETE', 'POST']) assert.equal((await enter(server, cases.expired, { method })).status, 401, method);
  // The same in the stateless era, for lists and for calls.
  for (const method of ['server/discover', 'tools/list', 'tools/call']) {
    const modern = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(method === 'tools/call' && { 'Mcp-Name': 'f__echo' }) };
    for (const token of [null, cases.expired, cases.none]) {
      const answer = await exchange(server.url, { headers: { ...json, ...modern, ...(token && bearer(token)) },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { name: 'f__echo', arguments: {} } }) });
      assert.equal(answer.status, 401, method);
      assert.match(answer.headers['www-authenticate'], token ? /error="invalid_token"/ : /resource_metadata="[^"]+"$/);
    }
  }
  // Only one token, and only in the header.
  assert.equal((await enter(server, good, { where: `/mcp?access_token=${good}` })).status, 400);
  assert.equal((await exchange(server.url, { headers: { ...json, Authorization: [`Bearer ${good}`, `Bearer ${good}`] }, body: initialize })).status, 400);
  const none = await enter(server, null);
  assert.equal(none.status, 401);
  assert.doesNotMatch(none.headers['www-authenticate'], /error=/);
  assert.ok(!server.stderr().includes(tail) && !server.stderr().includes(body));
});

test('types, times within a minute, and audiences of single servers', async (t) => {
  const server = await start(t, { types: ['at+jwt', 'JWT'], audience: 'rialto' });
  assert.equal((await enter(server, sign(rsa, claims({ aud: 'rialto' }), { typ: 'JWT' }))).status, 200);
  assert.equal((await enter(server, sign(rsa, claims({ aud: 'rialto' }), { typ: undefined }))).status, 200);
  assert.equal((await enter(server, sign(rsa, claims({ aud: 'rialto' }), { typ: 'application/AT+JWT' }))).status, 200);
  assert.equal((await enter(server, sign(rsa, claims({ aud: 'rialto', exp: seconds() - 20, nbf: seconds() + 40, iat: seconds() + 40 })))).status, 200);
  const one = sign(rsa, claims({ aud: `${PUBLIC}/mcp/f` }));
  assert.equal((await enter(server, one, { where: '/mcp/f' })).status, 200);
  for (const where of ['/mcp', '/mcp/ff', '/sse']) {
    const answer = await enter(server, one, { where });
    assert.equal(answer.status, 401, where);
    assert.match(answer.headers['www-authenticate'], /another address of this Rialto/);
  }
});

test('scopes choose the view; without one that fits: 403 with all that would do', async (t) => {
  const views = { small: { servers: ['f'], allow: ['echo'] }, other: { servers: ['g'] } };
  const server = await start(t, { views: { 'tools:echo': 'small', 'tools:g': 'other' } },
    { views, servers: { f: fake('--name', 'f'), g: fake('--name', 'g') } });
  const all = await new HttpClient(server.url, { token: sign(rsa, claims({ scope: 'openid mcp' })) }).connect();
  await all.waitFor('f__echo', 'g__echo', 'f__add');
  const names = async (more) => (await new HttpClient(server.url, { token: sign(rsa, claims(more)) }).connect()).toolNames();
  assert.deepEqual(await names({ scope: 'openid tools:echo' }), ['f__echo']);
  assert.deepEqual(await names({ scp: ['tools:echo', 'tools:g'] }), ['f__echo']);
  assert.ok((await names({ scope: 'tools:g' })).every((n) => n.startsWith('g__')));
  for (const more of [{}, { scope: '' }, { scope: 'openid tools' }, { scp: 'x' }]) {
    const answer = await enter(server, sign(rsa, claims(more)));
    assert.equal(answer.status, 403, JSON.stringify(more));
    assert.match(answer.headers['www-authenticate'], /scope="tools:echo tools:g", error="insufficient_scope"/);
  }
  const about = JSON.parse((await exchange(`${server.origin}/.well-known/oauth-protected-resource/mcp/f`, { method: 'GET', headers: { Origin: 'https://anywhere.example' } })).text);
  assert.deepEqual(about, {
    resource: `${PUBLIC}/mcp/f`, authorization_servers: [ISSUER], scopes_supported: ['tools:echo', 'tools:g'],
    bearer_methods_supported: ['header'], resource_name: 'Rialto',
  });
});

test('metadata is for pages of every site, and names public_url, not Host', async (t) => {
  const server = await start(t);
  for (const [rest, resource] of [['', '/mcp'], ['/mcp', '/mcp'], ['/mcp/f', '/mcp/f'], ['/sse', '/sse']]) {
    const answer = await exchange(`${server.origin}/.well-known/oauth-protected-resource${rest}`, {
      method: 'GET', headers: { Origin: 'https://inspector.example', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty', 'X-Forwarded-Host': 'evil.example' } });
    assert.equal(answer.status, 200, rest);
    assert.equal(answer.headers['access-control-allow-origin'], '*');
    assert.equal(answer.headers['access-control-allow-credentials'], undefined);
    assert.equal(JSON.parse(answer.text).resource, PUBLIC + resource);
  }
  const preflight = await exchange(`${server.origin}/.well-known/oauth-protected-resource`, { method: 'OPTIONS', headers: {
    Origin: 'https://inspector.example', 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization, mcp-protocol-version' } });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers['access-control-allow-origin'], '*');
  assert.match(preflight.headers['access-control-allow-headers'], /authorization, mcp-protocol-version/);
  // Host is checked here, too: a rebound name is refused, that of public_url is accepted, also as Origin.
  const named = (Host, Origin) => exchange(`${server.origin}/.well-known/oauth-protected-resource`, { method: 'GET', headers: { Host, ...(Origin && { Origin }) } });
  assert.equal((await named('evil.example')).status, 403);
  assert.equal((await named('rialto.example.test')).status, 200);
  assert.equal((await exchange(server.url, { headers: { ...json, Host: 'rialto.example.test', Origin: PUBLIC, ...bearer(sign(rsa, claims())) }, body: initialize })).status, 200);
  assert.equal((await exchange(server.url, { headers: { ...json, Origin: 'https://evil.example', ...bearer(sign(rsa, claims())) }, body: initialize })).status, 403);
});

test('keys from a URL: fetched once for all, again for a new key, and a removed key ends what it signed', async (t) => {
  const first = newKey('ES256', 'first'), second = newKey('ES256', 'second');
  let keys = [first];
  let gate = Promise.resolve();
  const idp = await site(t, async () => { await gate; return { body: { keys: keys.map((k) => k.jwk) } }; });
  const server = await start(t, { jwks: `${idp.origin}/keys` });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => enter(server, sign(first, claims({ jti: `${i}` })))));
  assert.deepEqual([...new Set(answers.map((a) => a.status))], [200]);
  assert.equal(idp.asked.length, 1);
  // A flood of tokens with unknown keys causes at most one more fetch, and all are refused.
  const flood = await Promise.all(Array.from({ length: 30 }, (_, i) => enter(server, sign({ ...second, kid: `x${i}` }, claims()))));
  assert.deepEqual([...new Set(flood.map((a) => a.status))], [401]);
  assert.ok(idp.asked.length <= 2, `${idp.asked.length}`);
});

test('a new key is found by one fetch; when the old one is gone, its stream ends', async (t) => {
  const file = fileOf(newKey('ES256', 'a'));
  const first = newKey('ES256', 'first'), second = newKey('ES256', 'second');
  const write = (...keys) => fs.writeFileSync(file, JSON.stringify({ keys: keys.map((k) => k.jwk) }));
  write(first);
  const server = await start(t, { jwks: file });
  const client = await new HttpClient(server.url, { token: sign(first, claims()) }).connect();
  const stream = await client.listen();
  assert.equal(stream.status, 200);
  assert.equal((await enter(server, sign(second, claims()))).status, 401);
  write(first, second);
  await until('the second key', async () => (await enter(server, sign(second, claims({ sub: 'bob' })))).status === 200);
  assert.equal(stream.ended, false);
  write(second);
  await until('the end of the stream', () => stream.ended);
  assert.equal((await enter(server, sign(first, claims()))).status, 401);
  assert.equal((await enter(server, sign(second, claims({ sub: 'bob' })))).status, 200);
});

test('no keys to be had: 503 with Retry-After, and not 401', async (t) => {
  let body = { keys: [] };
  const idp = await site(t, () => (body === null ? { status: 500 } : { body }));
  const refused = await start(t, { jwks: 'http://127.0.0.1:1/keys' });
  const answer = await enter(refused, sign(rsa, claims()));
  assert.equal(answer.status, 503);
  assert.equal(answer.headers['retry-after'], '5');
  assert.equal(answer.headers['www-authenticate'], undefined);
  JSON.parse(answer.text);
  for (const bad of [null, { keys: [] }, { keys: 'x' }, [], { keys: [{ kty: 'oct', k: 'AAAA' }] }, { keys: Array.from({ length: 101 }, () => rsa.jwk) },
    { keys: [{ ...rsa.jwk, use: 'enc' }] }, { keys: [{ ...rsa.jwk, key_ops: ['sign'] }] }, { keys: [{ ...rsa.jwk, n: rsa.jwk.n.repeat(32) }] },
    'x', `{"keys":[{"a":${'['.repeat(50)}${']'.repeat(50)}}]}`, JSON.stringify({ keys: [rsa.jwk], pad: 'x'.repeat(600_000) }), Buffer.alloc(50_000_000, 'x')]) {
    body = bad;
    const server = await start(t, { jwks: `${idp.origin}/keys` });
    assert.equal((await enter(server, sign(rsa, claims()))).status, 503, String(JSON.stringify(bad)).slice(0, 80));
    await logged(server, /the keys at http:\/\/127\.0\.0\.1:\d+\/keys/);
    await server.stop();
  }
  body = JSON.stringify({ keys: [rsa.jwk] });
  const moved = await site(t, () => ({ status: 302, headers: { Location: `${idp.origin}/keys` } }));
  assert.equal((await enter(await start(t, { jwks: `${moved.origin}/keys` }), sign(rsa, claims()))).status, 503);
});

test('keys that never come: the request waits, then 503; a client that leaves is forgotten', async (t) => {
  const idp = await site(t, () => ({ hold: true }));
  const server = await start(t, { jwks: `${idp.origin}/keys` });
  const gone = new AbortController();
  const left = fetch(server.url, { method: 'POST', headers: { ...json, ...bearer(sign(rsa, claims())) }, body: initialize, signal: gone.signal }).catch(() => 'left');
  const stays = enter(server, sign(rsa, claims()));
  setTimeout(() => gone.abort(), 300);
  assert.equal(await left, 'left');
  assert.equal((await within(30_000, 'the answer', stays)).status, 503);
  assert.equal((await exchange(`${server.origin}/healthz`, { method: 'GET' })).status, 200);
});

test('requests that wait for keys are answered in their order, each with its own body', async (t) => {
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  const idp = await site(t, async () => { await held; return { body: { keys: [rsa.jwk] } }; });
  const server = await start(t, { jwks: `${idp.origin}/keys` });
  const { hostname, port } = new URL(server.origin);
  const request = (id, token) => {
    const body = initialize.replace('"id":1', `"id":"${id}"`);
    return `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: ${bothTypes}\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const dies = net.connect(Number(port), hostname);
  dies.on('error', () => {});
  dies.write(request('dead', sign(rsa, claims())));
  const socket = net.connect(Number(port), hostname);
  let text = '';
  socket.on('data', (d) => { text += d; });
  // A second request while the first waits for the keys, a third with a bad token, and half of a fourth.
  socket.write(request('first', sign(rsa, claims())) + request('second', sign(rsa, claims({ sub: 'bob' }))));
  const last = request('fourth', sign(rsa, claims()));
  socket.write(request('third', sign(newKey('RS256'), claims())) + last.slice(0, 40));
  await until('the fetch of the keys', () => idp.asked.length === 1);
  dies.destroy();
  release();
  await until('three answers', () => (text.match(/HTTP\/1\.1 /g) ?? []).length === 3);
  socket.write(last.slice(40));
  await until('four answers', () => (text.match(/HTTP\/1\.1 /g) ?? []).length === 4);
  assert.deepEqual([...text.matchAll(/HTTP\/1\.1 (\d+)|"id":"(\w+)"/g)].map((m) => m[1] ?? m[2]), ['200', 'first', '200', 'second', '401', '200', 'fourth']);
  socket.destroy();
});

test('what a token has open ends when it expires: stream, WebSocket and calls', async (t) => {
  const server = await start(t);
  const token = sign(rsa, claims({ exp: seconds() - 50 })); // a minute of grace
  const client = await new HttpClient(server.url, { token }).connect();
  await client.waitFor('f__echo');
  const stays = await new HttpClient(server.url, { token: sign(rsa, claims({ sub: 'bob' })) }).connect();
  const kept = await stays.listen();
  const stream = await client.listen();
  const ws = new WebSocket(server.url.replace('http', 'ws'), ['mcp'], { headers: bearer(token) });
  await new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); });
  const closed = new Promise((resolve) => { ws.on('close', (code, why) => resolve(`${code} ${why}`)); });
  const answer = await within(30_000, 'the end of its call', client.request('tools/call', { name: 'f__sleep', arguments: { ms: 60_000 } }));
  assert.match(JSON.stringify(answer), /token 'alice \(https:\/\/idp\.example\.test\/realms\/one\)' is not valid any more/);
  assert.match(await within(6000, 'the end of the WebSocket', closed), /^1001 the token/);
  await until('the end of the stream', () => stream.ended);
  assert.equal((await enter(server, token)).status, 401);
  assert.equal(kept.ended, false);
  kept.close();
});

test('the same person with a fresh token keeps what is open', async (t) => {
  const server = await start(t);
  const client = await new HttpClient(server.url, { token: sign(rsa, claims({ exp: seconds() - 55 })) }).connect();
  const stream = await client.listen();
  client.headers.Authorization = `Bearer ${sign(rsa, claims())}`;
  assert.equal((await client.request('ping')).error, undefined);
  await until('the end of the first token', async () => (await enter(server, sign(rsa, claims({ exp: seconds() - 61 })))).status === 401);
  const end = Date.now() + 8000;
  await until('its time to be over', () => Date.now() > end, 12_000);
  assert.equal(stream.ended, false);
  stream.close();
});

test('a configuration that is read again: the same issuer goes on, one taken out is out at once', async (t) => {
  const server = await start(t, [{ issuer: ISSUER, jwks: fileOf(rsa) }], { auth: { tokens: [] } });
  const client = await new HttpClient(server.url, { token: sign(rsa, claims()) }).connect();
  const stream = await client.listen();
  const config = JSON.parse(fs.readFileSync(server.config, 'utf8'));
  config.servers.g = fake('--name', 'g');
  fs.writeFileSync(server.config, JSON.stringify(config));
  await client.waitFor('g__echo');
  assert.equal(stream.ended, false);
  delete config.auth.jwt;
  fs.writeFileSync(server.config, JSON.stringify(config));
  await until('the end of the stream', () => stream.ended);
  assert.equal((await enter(server, sign(rsa, claims()))).status, 401);
});

test('opaque tokens: their issuer is asked, once for many, and again after a while', async (t) => {
  const tokens = { good: { active: true, sub: 'alice', aud: AUDIENCE, scope: 'mcp', exp: seconds() + 3600 } };
  let down = false;
  const idp = await site(t, (request, body) => {
    if (down) return { status: 500 };
    return { body: tokens[new URLSearchParams(body).get('token')] ?? { active: false } };
  });
  const server = await serve(t, { public_url: PUBLIC, servers: { f: fake('--name', 'f') },
    auth: { introspection: { url: `${idp.origin}/ask`, client_id: 'rialto one', client_secret: '${ASK_SECRET}' } } }, { env: { ASK_SECRET: 's:cret%' } });
  const many = await Promise.all(Array.from({ length: 10 }, () => enter(server, 'good')));
  assert.deepEqual([...new Set(many.map((a) => a.status))], [200]);
  assert.equal(idp.asked.length, 1);
  const [first] = idp.asked;
  assert.equal(first.method, 'POST');
  assert.equal(first.body, 'token=good&token_type_hint=access_token');
  assert.equal(Buffer.from(first.headers.authorization.slice(6), 'base64').toString(), 'rialto+one:s%3Acret%25');
  Object.assign(tokens, {
    foreign: { ...tokens.good, aud: 'https://other.example/mcp' }, old: { ...tokens.good, exp: seconds() - 100 },
    nobody: { ...tokens.good, sub: undefined }, bound: { ...tokens.good, cnf: { jkt: 'x' } }, text: { ...tokens.good, active: 'true' },
  });
  for (const bad of ['foreign', 'old', 'nobody', 'bound', 'text', 'unknown', sign(rsa, claims())]) {
    const answer = await enter(server, bad);
    assert.equal(answer.status, 401, bad);
    assert.match(answer.headers['www-authenticate'], /invalid_token/);
  }
  const asked = idp.asked.length;
  assert.equal((await enter(server, 'unknown')).status, 401);
  assert.equal(idp.asked.length, asked, 'a refusal is remembered for a moment');
  down = true;
  assert.equal((await enter(server, 'new')).status, 503);
  assert.equal((await enter(server, 'good')).status, 200);
  assert.doesNotMatch(server.stderr(), /s:cret|s%3Acret/);
});

// Who asks the issuer was replaced, with its questions; the request that waited for the answer never ended.
test('a request that waits for an issuer is judged anew after a reload', async (t) => {
  let holds = true;
  const idp = await site(t, () => (holds ? { hold: true } : { body: { active: true, sub: 'alice', aud: AUDIENCE } }));
  const config = (id) => ({ public_url: PUBLIC, servers: {}, auth: { introspection: { url: `${idp.origin}/ask`, client_id: id } } });
  const server = await serve(t, config('one'));
  const waiting = enter(server, 'opaque');
  await until('the question', () => idp.asked.length);
  holds = false;
  fs.writeFileSync(server.config, JSON.stringify({ listen: '127.0.0.1:0', ...config('two') }));
  assert.equal((await within(15_000, 'the answer', waiting)).status, 200);
});

test('a revoked opaque token loses what it has open within a minute', async (t) => {
  let active = true;
  const idp = await site(t, () => ({ body: { active, sub: 'alice', aud: AUDIENCE } }));
  const server = await serve(t, { public_url: PUBLIC, servers: {}, auth: { introspection: { url: `${idp.origin}/ask` } } });
  const client = await new HttpClient(server.url, { token: 'opaque' }).connect();
  const stream = await client.listen();
  active = false;
  await until('the end of the stream', () => stream.ended, 70_000);
  assert.equal((await enter(server, 'opaque')).status, 401);
});
