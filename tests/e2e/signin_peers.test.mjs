// Agents that sign in to us, with peers that other people wrote: oidc-provider as the identity provider, the
// official clients of both lines, the conformance suite's test of authorization servers, and a browser.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import { bothTypes, exchange, fake, HttpClient, logged, npmFolder, rialto, root, runCommand, sanitizerEnv, serve, start, tempDir, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { freePort, oidcProvider, Person, pkce, readPage } from './oauth_lib.mjs';
import { node22, v1, v2 } from './peers.mjs';
import { Authority } from './tls_lib.mjs';

const PASSWORD = 'open sesame 123';
const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});
const servers = { f: fake('--name', 'f') };
let hashed;
const passwordHash = () => (hashed ??= rialto(['pair', '--password'], { input: `${PASSWORD}\n` }).then((r) => r.stdout.slice(10).trim()));

/** Rialto as its own issuer; public_url is the address on which it listens. */
async function issuerHere(t, more = {}, options = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { auth, ...rest } = more;
  const server = await serve(t, { listen: `127.0.0.1:${port}`, public_url: url, servers, auth: { issuer: 'built-in', password: await passwordHash(), ...auth }, ...rest },
    { ...options, env: { XDG_STATE_HOME: tempDir(), ...options.env } });
  return server;
}

/** The OAuth provider that the official clients require. */
function provider(redirect) {
  const kept = {};
  return {
    kept, redirectUrl: redirect,
    clientMetadata: { client_name: 'Official client', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' },
    clientInformation: () => kept.client, saveClientInformation: (c) => { kept.client = c; },
    tokens: () => kept.tokens, saveTokens: (x) => { kept.tokens = x; },
    redirectToAuthorization: (url) => { kept.url = url; },
    saveCodeVerifier: (v) => { kept.verifier = v; }, codeVerifier: () => kept.verifier,
    state: () => 'a state',
  };
}

for (const [line, sdk] of Object.entries({ v1, v2 })) {
  const signIn = async (server, walk) => {
    const auth = provider('http://localhost:7777/callback');
    const transport = () => new sdk.StreamableHTTPClientTransport(new URL(server.url), { authProvider: auth });
    const first = transport();
    await assert.rejects(new sdk.Client({ name: 'a', version: '1' }).connect(first), /Unauthorized/);
    const back = new URL(await walk(`${auth.kept.url}`));
    assert.equal(back.origin + back.pathname, 'http://localhost:7777/callback');
    assert.equal(back.searchParams.get('state'), 'a state');
    await (line === 'v2' ? first.finishAuth(back.searchParams) : first.finishAuth(back.searchParams.get('code')));
    const client = new sdk.Client({ name: 'a', version: '1' });
    await client.connect(transport());
    await until('the tool', async () => (await client.listTools()).tools.some((x) => x.name === 'f__echo'));
    const { content } = await client.callTool({ name: 'f__echo', arguments: { a: 1 } });
    assert.equal(content[0].text, '{"a":1}');
    return { auth, client, transport };
  };

  test(`the official client (${line}) registers, signs in at Rialto, calls, and refreshes`, async (t) => {
    const server = await issuerHere(t);
    const { auth, client, transport } = await signIn(server, (url) => new Person().atRialto(url, PASSWORD));
    assert.equal(auth.kept.tokens.scope, 'mcp');
    await client.close();
    const before = auth.kept.tokens;
    auth.kept.tokens = { ...before, access_token: 'worn-out' };
    const again = new sdk.Client({ name: 'a', version: '1' });
    await again.connect(transport());
    assert.ok((await again.listTools()).tools.length);
    assert.notEqual(auth.kept.tokens.refresh_token, before.refresh_token);
    await again.close();
  });

  test(`the official client (${line}) signs in at oidc-provider, and Rialto takes its JWT`, async (t) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const idp = await oidcProvider(t, `${url}/mcp`, 'jwt');
    const server = await serve(t, { listen: `127.0.0.1:${port}`, public_url: url, servers, auth: { jwt: { issuer: idp.issuer, jwks: `${idp.issuer}/jwks` } } });
    const { client } = await signIn(server, (where) => new Person().atProvider(where));
    await client.close();
    const { stdout } = await rialto(['calls', '--json'], { env: { XDG_RUNTIME_DIR: server.dir } });
    assert.match(stdout, /alice \(http:\/\/127\.0\.0\.1:\d+\)/);
  });
}

test('tokens of oidc-provider: JWTs by their keys, opaque ones by introspection, others not', async (t) => {
  const resource = 'https://rialto.example.test/mcp';
  const jwt = await oidcProvider(t, resource, 'jwt'), opaque = await oidcProvider(t, resource, 'opaque');
  const server = await serve(t, { public_url: 'https://rialto.example.test', servers, views: { small: { allow: ['echo'] } }, auth: {
    jwt: { issuer: jwt.issuer, jwks: `${jwt.issuer}/jwks`, views: { 'tools:echo': 'small' } },
    introspection: { url: `${opaque.issuer}/token/introspection`, issuer: opaque.issuer, client_id: 'rialto', client_secret: 'rialto-secret' } } });
  const enter = async (token) => (await exchange(server.url, { headers: { ...json, ...bearer(token) }, body: initialize })).status;
  const token = await jwt.token();
  assert.equal(token.split('.').length, 3);
  assert.equal(await enter(token), 200);
  const small = await new HttpClient(server.url, { token: await jwt.token({ scope: 'tools:echo' }) }).connect();
  await small.waitFor('f__echo');
  assert.deepEqual(await small.toolNames(), ['f__echo']);
  assert.equal(await enter(await jwt.token({ scope: undefined })), 403);
  const other = await opaque.token();
  assert.equal(other.split('.').length, 1);
  assert.equal(await enter(other), 200);
  assert.equal(await enter('nonsense'), 401);
  // A token not meant for us: without a resource, oidc-provider gives an opaque token without an audience.
  const unbound = await (await fetch(`${opaque.issuer}/token`, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Authorization: `Basic ${Buffer.from('service:service-secret').toString('base64')}` }, body: 'grant_type=client_credentials' })).json();
  assert.equal(await enter(unbound.access_token), 401);
  const about = JSON.parse((await exchange(`${server.origin}/.well-known/oauth-protected-resource/mcp`, { method: 'GET' })).text);
  assert.deepEqual(about.authorization_servers, [jwt.issuer, opaque.issuer]);
});

test("the conformance suite's test of authorization servers", async (t) => {
  const server = await issuerHere(t);
  const suite = path.join(npmFolder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const port = await freePort();
  const registered = JSON.parse((await exchange(`${server.origin}/oauth/register`, { headers: json,
    body: JSON.stringify({ client_name: 'suite', redirect_uris: [`http://127.0.0.1:${port}/callback`], token_endpoint_auth_method: 'none' }) })).text);
  const dir = tempDir();
  const child = start(node22, [suite, 'authorization', '--url', server.origin, '--client-id', registered.client_id, '--resource', server.url, '--port', `${port}`, '-o', dir],
    { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], env: process.env });
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const address = await until('the address', () => text.match(/(http:\/\/127\.0\.0\.1:\d+\/oauth\/authorize\?\S+)/)?.[1], 30_000).catch((e) => { throw new Error(`${e.message}\n${text}`); });
  const back = await new Person().atRialto(address, PASSWORD);
  await fetch(back);
  assert.equal(await ended, 0, text);
  const checks = fs.readdirSync(dir, { recursive: true }).filter((f) => `${f}`.endsWith('checks.json'))
    .flatMap((f) => JSON.parse(fs.readFileSync(path.join(dir, `${f}`), 'utf8')));
  assert.ok(checks.length >= 2, text);
  assert.deepEqual(checks.filter((c) => c.status !== 'SUCCESS' && c.status !== 'INFO').map((c) => `${c.id}: ${c.status} ${c.errorMessage ?? ''}`), [], text);
});

/** An https site that serves `documents`, with a certificate that Rialto is configured to trust. */
async function documentSite(t, documents) {
  const authority = new Authority();
  const { cert, key } = authority.sign('site');
  const asked = [];
  const server = https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, (request, response) => {
    asked.push(request.url);
    const { status = 200, headers = {}, body } = documents(request.url) ?? { status: 404 };
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { origin: `https://localhost:${server.address().port}`, asked, env: { SSL_CERT_FILE: authority.file } };
}

test('clients whose id is the address of a document: fetched once, read strictly', async (t) => {
  const back = 'https://agent.example.test/callback';
  let origin;
  const site = await documentSite(t, (url) => {
    const good = { client_id: origin + url, client_name: 'Document agent', redirect_uris: [back, 'http://localhost/callback'], token_endpoint_auth_method: 'none' };
    return {
      '/good.json': { body: good, headers: { 'Cache-Control': 'max-age=60' } }, '/other.json': { body: { ...good, client_id: `${origin}/good.json` } }, '/secret.json': { body: { ...good, token_endpoint_auth_method: 'client_secret_post' } },
      '/text.json': { body: good, headers: { 'Content-Type': 'text/plain' } }, '/huge.json': { body: { ...good, pad: 'x'.repeat(6000) } }, '/moved.json': { status: 302, headers: { Location: `${origin}/good.json` } },
      '/broken.json': { body: '{' }, '/none.json': { body: { ...good, redirect_uris: [] } },
    }[url];
  });
  origin = site.origin;
  const host = new URL(origin).host;
  const server = await issuerHere(t, { auth: { client_hosts: [host] } }, { env: site.env });
  const { verifier, challenge } = pkce();
  const page = (id, redirect = back) => exchange(`${server.origin}/oauth/authorize?${new URLSearchParams({ response_type: 'code', client_id: id, redirect_uri: redirect, code_challenge: challenge, code_challenge_method: 'S256', state: 's' })}`, { method: 'GET' });
  const shown = await page(`${origin}/good.json`);
  assert.equal(shown.status, 200, shown.text + server.stderr());
  assert.match(shown.text, /Document agent/);
  assert.doesNotMatch(shown.text, /Anybody can choose that name/);
  assert.equal((await page(`${origin}/good.json`, 'http://localhost:9999/callback')).status, 200);
  assert.equal((await page(`${origin}/good.json`, 'https://evil.example/callback')).status, 400);
  assert.equal(site.asked.length, 1);
  const { request, csrf, cookie } = readPage(shown);
  const answered = await exchange(`${server.origin}/oauth/authorize`, { headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: server.origin, Cookie: cookie },
    body: `${new URLSearchParams({ request, csrf, scope: 'mcp', word: PASSWORD, answer: 'allow' })}` });
  const code = new URL(answered.headers.location).searchParams.get('code');
  const token = (client_id) => exchange(`${server.origin}/oauth/token`, { headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: `${new URLSearchParams({ grant_type: 'authorization_code', client_id, code, code_verifier: verifier, redirect_uri: back })}` });
  assert.equal((await token(`${origin}/other.json`)).status, 400);
  const tokens = JSON.parse((await token(`${origin}/good.json`)).text);
  assert.equal((await exchange(server.url, { headers: { ...json, ...bearer(tokens.access_token) }, body: initialize })).status, 200);
  for (const bad of ['other', 'secret', 'text', 'huge', 'moved', 'broken', 'none', 'missing']) {
    const answer = await page(`${origin}/${bad}.json`);
    assert.equal(answer.status, 400, bad);
    assert.equal(answer.headers.location, undefined);
  }
  assert.ok(!site.asked.slice(1).includes('/good.json'), 'no redirect is followed');
});

test('documents are not fetched from this machine and its networks, however they are written', async (t) => {
  const site = await documentSite(t, () => ({ body: {} }));
  const server = await issuerHere(t, {}, { env: site.env });
  const { port } = new URL(site.origin);
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `[::ffff:127.0.0.1]:${port}`, `2130706433:${port}`, `0x7f.1:${port}`, `127.1:${port}`, '169.254.169.254', '10.0.0.1', '192.168.1.1', '[fe80::1]', '0.0.0.0', `rialto.example.test:${port}`]) {
    const id = `https://${host}/doc.json`;
    const answer = await exchange(`${server.origin}/oauth/authorize?${new URLSearchParams({ response_type: 'code', client_id: id, redirect_uri: 'https://a.example/cb', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256' })}`, { method: 'GET' });
    assert.equal(answer.status, 400, host);
  }
  assert.deepEqual(site.asked, []);
  for (const id of ['http://example.com/doc.json', 'https://example.com', 'https://example.com/', 'https://u:p@example.com/doc.json', 'https://example.com/doc.json#x', 'file:///etc/passwd'])
    assert.equal((await exchange(`${server.origin}/oauth/authorize?${new URLSearchParams({ client_id: id, redirect_uri: 'https://a.example/cb' })}`, { method: 'GET' })).status, 400, id);
});

test('the consent page in a real browser, in light and dark, by keyboard', async (t) => {
  const server = await issuerHere(t, { views: { small: { allow: ['echo'] }, 'read only': { allow: ['echo'] } } });
  const seen = [];
  const landing = await import('node:http').then(({ createServer }) => createServer((request, response) => { seen.push(request); response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>landed</title>'); }));
  await new Promise((resolve) => { landing.listen(0, '127.0.0.1', resolve); });
  t.after(() => { landing.closeAllConnections(); landing.close(); });
  const back = `http://127.0.0.1:${landing.address().port}/callback`;
  const registered = JSON.parse((await exchange(`${server.origin}/oauth/register`, { headers: json, body: JSON.stringify({ client_name: 'Claude <b>', redirect_uris: [back], token_endpoint_auth_method: 'none' }) })).text);
  const address = `${server.origin}/oauth/authorize?${new URLSearchParams({ response_type: 'code', client_id: registered.client_id, redirect_uri: back, code_challenge: pkce().challenge, code_challenge_method: 'S256', state: 's', scope: 'mcp' })}`;
  const context = await launch(t);
  const pictures = path.join(root, 'build/test-logs');
  fs.mkdirSync(pictures, { recursive: true });
  const errors = [];
  for (const colorScheme of ['light', 'dark']) {
    const page = await context.newPage();
    page.on('console', (m) => errors.push(m.text()));
    page.on('pageerror', (e) => errors.push(`${e}`));
    await page.emulateMedia({ colorScheme });
    await page.goto(address);
    assert.match(await page.title(), /Let an agent in/);
    await page.screenshot({ fullPage: true, path: path.join(pictures, `consent-${colorScheme}.png`) });
    const colors = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);
    assert.deepEqual(colors, colorScheme === 'light' ? ['rgb(245, 246, 248)', 'rgb(28, 35, 48)'] : ['rgb(18, 22, 29)', 'rgb(231, 235, 242)']);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'word');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await page.screenshot({ fullPage: true, path: path.join(pictures, `consent-${colorScheme}-wrong.png`) });
    await page.getByText('only the view small').click();
    await page.locator('#word').fill(PASSWORD);
    await page.getByRole('button', { name: 'Let it in' }).click();
    await page.waitForURL(`${back}?**`);
    const landed = new URL(page.url());
    assert.equal(landed.searchParams.get('iss'), server.origin);
    assert.equal(landed.searchParams.get('state'), 's');
    assert.ok(landed.searchParams.get('code'));
    await page.close();
  }
  const page = await context.newPage();
  await page.goto(address);
  await page.getByRole('button', { name: 'No' }).click();
  await page.waitForURL(`${back}?**`);
  assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied');
  // The agent gets no Referer with the page's address, and the page is not shown in a frame.
  assert.deepEqual(seen.filter((r) => r.url.startsWith('/callback')).map((r) => r.headers.referer).filter(Boolean), []);
  await page.goto(back);
  await page.setContent(`<iframe src="${address}"></iframe>`);
  await until('the frame to be refused', async () => (await Promise.all(page.frames().map((f) => f.content().catch(() => '')))).every((c) => !c.includes('Let <em>')));
  await page.goto(`${address.replace(/redirect_uri=[^&]*/, 'redirect_uri=https%3A%2F%2Fevil.example')}`);
  assert.match(await page.textContent('h1'), /not registered/);
  await page.screenshot({ fullPage: true, path: path.join(pictures, 'consent-refused.png') });
  assert.deepEqual(errors.filter((e) => !/^\[DOM\]|frame-ancestors|X-Frame-Options|Refused to display|favicon|status of 40/i.test(e)), []);
});
