// Signing in to a real authorization server for a real MCP server: by `rialto login` with the daemon
// and without, by the API, by agents of both eras, by a device code, as a service; renewing; logging
// out; and everything that can go wrong.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, expectClean, HttpClient, rialto, rialtoBin, runCommand, sanitizerEnv, serve, sleep, tempDir, until, within, writeConfig } from './lib.mjs';
import { allCapabilities, ModernClient, v1 } from './peers.mjs';
import { home } from './daemon_lib.mjs';
import { Person, startIssuer, startProtected } from './oidc_lib.mjs';
import { Login, stateOf, untilState } from './signin_lib.mjs';

const post = (url, body = '{}') => exchange(url, { headers: { 'Content-Type': 'application/json' }, body });

/** An authorization server, a protected server, and a daemon between it and agents, not signed in yet. */
async function setting(t, { issuer = {}, auth, more = {}, config = {}, env = {} } = {}) {
  const as = await startIssuer(t, issuer);
  const notes = await startProtected(t, as, more);
  const state = tempDir();
  const server = await serve(t, { servers: { notes: { url: notes.url, ...(auth && { auth }) } }, ...config },
    { env: { XDG_STATE_HOME: state, ...env } });
  return { as, notes, server, state, file: path.join(state, 'rialto/signin.json') };
}

async function signIn({ server, state }, name = 'alice') {
  const login = new Login(server, 'notes', { XDG_STATE_HOME: state });
  const back = await new Person(name).signIn(await login.address());
  const page = await fetch(back);
  assert.equal(page.status, 200);
  assert.match(await page.text(), /Signed in/);
  const { code, stderr } = await login.ended;
  assert.equal(code, 0, stderr);
  await untilState(server, 'notes', 'up');
}

test('a server that wants a sign-in says so, and works after rialto login', async (t) => {
  const s = await setting(t);
  const waiting = await untilState(s.server, 'notes', 'needs_sign_in');
  assert.equal(waiting.hint, 'rialto login notes');
  assert.match(waiting.last_error, /needs a sign-in: rialto login notes/);
  assert.equal((await exchange(`${s.server.origin}/readyz`, { method: 'GET' })).status, 503);

  const agent = await new HttpClient(s.server.url).connect();
  await agent.waitFor('notes__sign_in');
  assert.deepEqual((await agent.request('tools/list')).result.tools.map((tool) => tool.name), ['notes__sign_in']);
  await signIn(s);
  await agent.waitFor('notes__whoami');
  const { result } = await agent.request('tools/call', { name: 'notes__whoami', arguments: {} });
  assert.equal(result.content[0].text, 'alice');
  assert.equal(fs.statSync(s.file).mode & 0o777, 0o600);
  assert.equal((await exchange(`${s.server.origin}/readyz`, { method: 'GET' })).status, 200);
  await agent.close();
});

test('rialto login without a daemon keeps the token for the next daemon', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const dir = tempDir();
  const config = writeConfig(dir, { listen: '127.0.0.1:0', servers: { notes: { url: notes.url } } });
  const login = new Login({ config, dir }, 'notes', { XDG_STATE_HOME: dir });
  const back = await new Person().signIn(await login.address());
  assert.match(back, /^http:\/\/127\.0\.0\.1:\d+\/oauth\/callback\?/);
  assert.match(await (await fetch(back)).text(), /Signed in/);
  const ended = await login.ended;
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /Signed in to 'notes'/);

  const called = await rialto(['call', 'notes', 'whoami', '-c', config], { env: { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir } });
  assert.equal(called.stdout, 'alice\n', called.stderr);
  const server = await serve(t, { servers: { notes: { url: notes.url } } }, { env: { XDG_STATE_HOME: dir } });
  await untilState(server, 'notes', 'up');
});

test('a pasted address does it as well, with the daemon and without', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const dir = tempDir();
  const config = writeConfig(dir, { listen: '127.0.0.1:0', servers: { notes: { url: s.notes.url } } });
  for (const [where, state] of [[s.server, s.state], [{ config, dir }, dir]]) {
    const login = new Login(where, 'notes', { XDG_STATE_HOME: state });
    const back = await new Person().signIn(await login.address());
    login.paste(back);
    const ended = await login.ended;
    assert.equal(ended.code, 0, ended.stderr);
  }
});

// Without a daemon the command watches its input for a pasted address. A file or /dev/null, which cron and service
// managers give, cannot be watched: the program aborted.
test('rialto login without a daemon, and with nothing to read', async (t) => {
  const notes = await startProtected(t, await startIssuer(t));
  const dir = tempDir();
  const config = writeConfig(dir, { servers: { notes: { url: notes.url } } });
  const command = `'${rialtoBin}' login notes -c '${config}' --no-browser --timeout 1s`;
  for (const input of ['/dev/null', config]) {
    const { status, signal, stderr } = await new Promise((resolve) => {
      execFile('sh', ['-c', `exec ${command} < '${input}'`], { env: { ...process.env, ...sanitizerEnv, XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir } },
        (error, stdout, text) => resolve({ status: error?.code, signal: error?.signal, stderr: text }));
    });
    assert.deepEqual([status, signal], [1, null], stderr);
    assert.match(stderr, /nobody signed in in time/);
  }
});

test('$BROWSER is started with the address as its one argument', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const dir = tempDir();
  const config = writeConfig(dir, { servers: { notes: { url: notes.url } } });
  const told = path.join(dir, 'told');
  const browser = path.join(dir, 'browser');
  fs.writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$#" "$1" > ${told}.new && mv ${told}.new ${told}\n`, { mode: 0o755 });
  const login = new Login({ config, dir }, 'notes', { XDG_STATE_HOME: dir, BROWSER: browser }, []);
  const address = await login.address();
  await until('the browser', () => fs.existsSync(told));
  assert.deepEqual(fs.readFileSync(told, 'utf8').split('\n'), ['1', address, '']);
  login.child.kill('SIGINT');
  assert.equal((await login.ended).code, 1);
});

test('wrong uses of login and logout', async (t) => {
  const dir = tempDir();
  const config = writeConfig(dir, {
    servers: { program: { command: 'true' }, open: { url: 'http://192.0.2.1/mcp' }, keyed: { url: 'https://a.example/mcp', headers: { Authorization: 'Bearer x' } } },
  });
  const env = { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir };
  for (const command of ['login', 'logout']) {
    for (const [name, words] of [['nobody', /there is no server 'nobody'/], ['program', /has no 'url'/],
      ['open', /nobody signs in to server 'open'/], ['keyed', /nobody signs in to server 'keyed'/]]) {
      const { code, stderr } = await rialto([command, name, '-c', config], { env });
      assert.equal(code, 2, `${command} ${name}: ${stderr}`);
      assert.match(stderr, words);
    }
  }
  assert.match((await rialto(['login', 'progam', '-c', config], { env })).stderr, /did you mean 'program'/);
});

test('the API gives the address, and the page it leads back to says how it went', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const api = `${s.server.origin}/api/servers/notes/login`;
  const { url } = JSON.parse((await post(api)).text);
  assert.equal(JSON.parse((await post(api)).text).url, url, 'one login at a time');
  assert.equal(JSON.parse((await exchange(api, { method: 'GET' })).text).state, 'waiting');
  const back = await new Person().signIn(url, { abort: true });
  const page = await exchange(back, { method: 'GET' });
  assert.equal(page.status, 400);
  assert.match(page.text, /did not work/);
  for (const [name, value] of [['cache-control', 'no-store'], ['referrer-policy', 'no-referrer'], ['x-frame-options', 'DENY']]) {
    assert.equal(page.headers[name], value);
  }
  assert.match(page.headers['content-security-policy'], /default-src 'none'/);
  const state = JSON.parse((await exchange(api, { method: 'GET' })).text);
  assert.equal(state.state, 'failed');
  assert.match(state.error, /refused: by you, or by the provider/);
  await signIn(s);
});

test('a state that is forged, replayed or missing changes nothing', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const { url } = JSON.parse((await post(`${s.server.origin}/api/servers/notes/login`)).text);
  const callback = `${s.server.origin}/oauth/callback`;
  const state = new URL(url).searchParams.get('state');
  for (const query of ['', '?code=x', '?code=x&state=', '?code=x&state=forged', `?code=x&state=${state}x`,
    `?code=x&state=${state}&state=${state}`, `?error=access_denied&state=forged`]) {
    const { status, text } = await exchange(`${callback}${query}`, { method: 'GET' });
    assert.equal(status, 400, query);
    assert.match(text, /Nothing waits for this/);
  }
  const back = await new Person().signIn(url);
  assert.match((await exchange(back, { method: 'GET' })).text, /Signed in/);
  assert.match((await exchange(back, { method: 'GET' })).text, /Nothing waits for this/, 'used twice');
  await untilState(s.server, 'notes', 'up');
  assert.equal((await exchange(callback)).status, 405);
});

test('an answer of another authorization server ends the sign-in before a token is asked for', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const api = `${s.server.origin}/api/servers/notes/login`;
  for (const change of [(u) => u.set('iss', 'https://evil.example'), (u) => u.delete('iss'), (u) => u.append('iss', s.as.issuer),
    (u) => { u.delete('code'); u.set('error', 'server_error'); u.set('error_description', 'Evil words'); u.set('iss', 'https://evil.example'); }]) {
    const { url } = JSON.parse((await post(api)).text);
    const back = new URL(await new Person().signIn(url));
    change(back.searchParams);
    assert.equal((await exchange(back.href, { method: 'GET' })).status, 400);
    const state = await until('the end', async () => {
      const now = JSON.parse((await exchange(api, { method: 'GET' })).text);
      return now.state === 'failed' && now;
    });
    assert.match(state.error, /not used|malformed/);
    assert.doesNotMatch(state.error, /Evil words/);
  }
  assert.deepEqual(s.as.asked, {});
  assert.doesNotMatch(s.server.stderr(), /Evil words/);
});

test('a code that is not ours is refused by PKCE, and nothing is kept', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const api = `${s.server.origin}/api/servers/notes/login`;
  const first = JSON.parse((await post(api)).text);
  const foreign = new URL(await new Person('mallory').signIn(first.url)).searchParams.get('code');
  await exchange(`${s.server.origin}/oauth/callback?error=access_denied&iss=${s.as.issuer}&state=${new URL(first.url).searchParams.get('state')}`, { method: 'GET' });
  const second = new URL(JSON.parse((await post(api)).text).url);
  await exchange(`${s.server.origin}/oauth/callback?code=${foreign}&iss=${s.as.issuer}&state=${second.searchParams.get('state')}`, { method: 'GET' });
  await until('the refusal', async () => JSON.parse((await exchange(api, { method: 'GET' })).text).state === 'failed');
  assert.equal((await stateOf(s.server, 'notes')).state, 'needs_sign_in');
  assert.doesNotMatch(fs.readFileSync(s.file, 'utf8'), /access_token/);
});

// --- agents ---

test('an agent of the initialize era is shown the address, and its call goes on', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const agent = new v1.Client({ name: 'agent', version: '1' }, { capabilities: allCapabilities });
  let asked;
  agent.setRequestHandler(v1.ElicitRequestSchema, async ({ params }) => {
    asked = params;
    s.notes.refuse = false;
    await fetch(await new Person('bob').signIn(params.url));
    return { action: 'accept' };
  });
  await agent.connect(new v1.StreamableHTTPClientTransport(new URL(s.server.url)));
  const result = await agent.callTool({ name: 'notes__sign_in', arguments: {} });
  assert.match(result.content[0].text, /Signed in to 'notes'/);
  assert.equal(asked.mode, 'url');
  assert.ok(asked.elicitationId);
  assert.match(asked.message, /Server 'notes' needs you to sign in/);
  await until('the tools', async () => (await agent.listTools()).tools.some((tool) => tool.name === 'notes__whoami'));
  assert.equal((await agent.callTool({ name: 'notes__whoami', arguments: {} })).content[0].text, 'bob');

  // The sign-in becomes invalid while the server is up: the next call asks again, and is made after that.
  s.notes.refuse = true;
  assert.equal((await agent.callTool({ name: 'notes__whoami', arguments: {} })).content[0].text, 'bob');
  assert.equal(s.as.asked.authorization_code, 2);
  await agent.close();
});

test('an agent of the stateless era gets input_required, and its call goes on', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const agent = new ModernClient(s.server.url, { capabilities: { elicitation: { url: {} } } });
  const first = await agent.request('tools/call', { name: 'notes__sign_in', arguments: {} });
  assert.equal(first.result?.resultType, 'input_required', JSON.stringify(first));
  const [[key, { method, params }]] = Object.entries(first.result.inputRequests);
  assert.equal(method, 'elicitation/create');
  assert.equal(params.mode, 'url');
  await fetch(await new Person('carol').signIn(params.url));
  const second = await agent.request('tools/call', {
    name: 'notes__sign_in', arguments: {}, requestState: first.result.requestState, inputResponses: { [key]: { action: 'accept' } },
  });
  assert.match(second.result.content[0].text, /Signed in to 'notes'/);
  await untilState(s.server, 'notes', 'up');
});

test('an agent that cannot show an address gets it in an error; declining ends the call', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const plain = await new HttpClient(s.server.url).connect();
  const refused = await plain.request('tools/call', { name: 'notes__sign_in', arguments: {} });
  // The tools are not known yet: any tool name of that server leads to the sign-in.
  const unknown = await plain.request('tools/call', { name: 'notes__whoami', arguments: {} });
  assert.match(JSON.stringify(unknown), /rialto login notes/);
  assert.match(JSON.stringify(await plain.request('tools/call', { name: 'other__whoami', arguments: {} })), /unknown tool/);
  const words = JSON.stringify(refused);
  assert.match(words, /rialto login notes/);
  assert.match(words, new RegExp(s.as.issuer.replaceAll('.', '\\.')));
  await plain.close();

  const agent = new v1.Client({ name: 'agent', version: '1' }, { capabilities: allCapabilities });
  agent.setRequestHandler(v1.ElicitRequestSchema, () => ({ action: 'decline' }));
  await agent.connect(new v1.StreamableHTTPClientTransport(new URL(s.server.url)));
  const declined = await agent.callTool({ name: 'notes__sign_in', arguments: {} }).catch((e) => e);
  assert.match(JSON.stringify(declined) + declined.message, /declined/);
  await agent.close();
});

// --- renewing ---

test('fifty calls at the end of a token renew it once, and nothing of tokens is logged', async (t) => {
  const s = await setting(t, { config: { log: { level: 'debug' } } });
  await untilState(s.server, 'notes', 'needs_sign_in');
  s.as.ttl = 4;
  await signIn(s);
  const agent = await new HttpClient(s.server.url).connect();
  await agent.waitFor('notes__whoami');
  const before = s.as.asked.refresh_token ?? 0;
  await until('the end of the token', () => {
    const { records } = JSON.parse(fs.readFileSync(s.file));
    return Date.now() / 1000 > records.find((r) => r.access_token).expires;
  });
  s.as.ttl = 3600;
  const answers = await Promise.all(Array.from({ length: 50 }, () => agent.request('tools/call', { name: 'notes__whoami', arguments: {} })));
  for (const { result } of answers) assert.equal(result.content[0].text, 'alice');
  assert.equal(s.as.asked.refresh_token - before, 1);
  assert.deepEqual(s.as.failed, {});
  await agent.close();
  for (const token of new Set(s.notes.tokens)) assert.ok(!s.server.stderr().includes(token));
  for (const r of JSON.parse(fs.readFileSync(s.file)).records) {
    for (const name of ['access_token', 'refresh_token']) assert.ok(!r[name] || !s.server.stderr().includes(r[name]), name);
  }
});

// A token that ended some seconds earlier by the server's clock than by ours was taken for a new token that the server
// refuses, and a person had to sign in.
test('a token that has ended only by the clock of its server is renewed', async (t) => {
  const s = await setting(t, { more: { ahead: 5000 } });
  await untilState(s.server, 'notes', 'needs_sign_in');
  s.as.ttl = 10;
  await signIn(s);
  const agent = await new HttpClient(s.server.url).connect();
  await agent.waitFor('notes__whoami');
  assert.equal(await agent.text('notes__whoami'), 'alice');
  await sleep(6000);
  assert.equal(await agent.text('notes__whoami'), 'alice');
  assert.equal(s.as.asked.refresh_token, 1);
  await agent.close();
});

test('a refresh that is refused asks for a sign-in; one that fails for the moment does not', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  s.as.ttl = 10; // long enough to be renewed before it expires, despite whole seconds
  await signIn(s);
  const agent = await new HttpClient(s.server.url).connect();
  await agent.waitFor('notes__whoami');
  s.as.down = true;
  const failed = await until('the end of the token', async () => {
    const { result, error } = await agent.request('tools/call', { name: 'notes__whoami', arguments: {} });
    return (error || result.isError) && JSON.stringify(error ?? result);
  }, 20_000);
  assert.match(failed, /no token for it/);
  assert.notEqual((await stateOf(s.server, 'notes')).state, 'needs_sign_in');
  s.as.down = false;
  await until('the server is back', async () => {
    const { result } = await agent.request('tools/call', { name: 'notes__whoami', arguments: {} });
    return result && !result.isError;
  }, 30_000);

  // The same refresh token is used twice: the authorization server ends the sign-in.
  const { records } = JSON.parse(fs.readFileSync(s.file));
  const record = records.find((r) => r.refresh_token);
  const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: record.refresh_token, client_id: record.client_id, resource: record.resource });
  for (let i = 0; i < 2; i++) await fetch(`${s.as.issuer}/token`, { method: 'POST', body: form });
  await until('needs a sign-in', async () => {
    await agent.request('tools/call', { name: 'notes__whoami', arguments: {} });
    return (await stateOf(s.server, 'notes')).state === 'needs_sign_in';
  }, 20_000);
  assert.doesNotMatch(fs.readFileSync(s.file, 'utf8'), /refresh_token/);
  await signIn(s);
  await agent.close();
});

test('a daemon that is killed around a renewal costs at most one sign-in', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const dir = tempDir();
  const config = writeConfig(dir, { servers: { notes: { url: notes.url } } });
  const env = { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir };
  as.ttl = 2;
  const login = new Login({ config, dir }, 'notes', env);
  await fetch(await new Person().signIn(await login.address()));
  assert.equal((await login.ended).code, 0);
  for (let ms = 0; ms < 400; ms += 25) {
    const child = spawn(rialtoBin, ['call', 'notes', 'whoami', '-c', config], { stdio: 'ignore', env: { ...process.env, ...sanitizerEnv, ...env } });
    setTimeout(() => child.kill('SIGKILL'), ms);
    await new Promise((resolve) => { child.on('close', resolve); });
    JSON.parse(fs.readFileSync(path.join(dir, 'rialto/signin.json'))); // never a partial file
  }
  as.ttl = 3600;
  const { stdout, stderr } = await rialto(['call', 'notes', 'whoami', '-c', config], { env });
  assert.ok(stdout === 'alice\n' || /needs a sign-in/.test(stderr), stderr);
});

test('two programs share one refresh token', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  s.as.ttl = 3;
  await signIn(s);
  await sleep(3500); // longer than the token is valid
  s.as.ttl = 3600;
  const before = s.as.asked.refresh_token ?? 0;
  const agent = await new HttpClient(s.server.url).connect();
  const alone = { env: { XDG_STATE_HOME: s.state, XDG_RUNTIME_DIR: tempDir() } };
  const [mine, ...theirs] = await Promise.all([
    agent.request('tools/call', { name: 'notes__whoami', arguments: {} }),
    ...Array.from({ length: 3 }, () => rialto(['call', 'notes', 'whoami', '-c', s.server.config], alone)),
  ]);
  assert.equal(mine.result.content[0].text, 'alice');
  for (const { stdout, stderr } of theirs) assert.equal(stdout, 'alice\n', stderr);
  assert.equal(s.as.asked.refresh_token - before, 1);
  assert.deepEqual(s.as.failed, {});
  await agent.close();
});

// --- scopes ---

test('a call that needs another scope fails with the command, and login asks for both', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  await signIn(s);
  const agent = await new HttpClient(s.server.url).connect();
  await agent.waitFor('notes__write_note');
  const refused = JSON.stringify(await agent.request('tools/call', { name: 'notes__write_note', arguments: {} }));
  assert.match(refused, /the scope 'mcp:write' that we do not have: sign in again with rialto login notes/);
  assert.equal((await agent.request('tools/call', { name: 'notes__whoami', arguments: {} })).result.content[0].text, 'alice');
  const login = new Login(s.server, 'notes', { XDG_STATE_HOME: s.state });
  const address = await login.address();
  assert.deepEqual(new URL(address).searchParams.get('scope').split(' ').filter((w) => w.startsWith('mcp:')).sort(), ['mcp:read', 'mcp:write']);
  await fetch(await new Person().signIn(address));
  assert.equal((await login.ended).code, 0);
  await until('the wider token', async () => {
    const { result } = await agent.request('tools/call', { name: 'notes__write_note', arguments: {} });
    return result?.content?.[0].text === 'written';
  });
  await agent.close();
});

// --- other ways ---

test('by a device code', async (t) => {
  const s = await setting(t, { issuer: { clients: [{ client_id: 'box', token_endpoint_auth_method: 'none', grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'], response_types: [], redirect_uris: [] }] }, auth: { client_id: 'box' } });
  await untilState(s.server, 'notes', 'needs_sign_in');
  const login = new Login(s.server, 'notes', { XDG_STATE_HOME: s.state }, ['--device']);
  const address = await login.address();
  await until('the code', () => /enter the code: \S+/.test(login.stderr));
  await new Person('dora').enter(address);
  const ended = await login.ended;
  assert.equal(ended.code, 0, ended.stderr);
  await untilState(s.server, 'notes', 'up');
});

test('as a service, with a secret and with a key', async (t) => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const file = path.join(tempDir(), 'key.pem');
  fs.writeFileSync(file, key.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const client = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [], scope: 'mcp:read mcp:write' };
  const issuer = { clients: [
    { ...client, client_id: 'secret', client_secret: 's3cret:with/odd chars', token_endpoint_auth_method: 'client_secret_basic' },
    { ...client, client_id: 'keyed', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.publicKey.export({ format: 'jwk' })] } },
  ] };
  for (const auth of [{ client_id: 'secret', client_secret: 's3cret:with/odd chars' }, { client_id: 'keyed', private_key: file }]) {
    const s = await setting(t, { issuer, auth: { grant: 'client_credentials', ...auth } });
    await untilState(s.server, 'notes', 'up');
    const agent = await new HttpClient(s.server.url).connect();
    const { result } = await agent.request('tools/call', { name: 'notes__whoami', arguments: {} });
    assert.equal(result.content[0].text, auth.client_id);
    await agent.close();
    assert.ok(!fs.existsSync(s.file) || !/access_token/.test(fs.readFileSync(s.file, 'utf8')));
    assert.match((await post(`${s.server.origin}/api/servers/notes/login`)).text, /nobody signs in/);
  }
  const wrong = await setting(t, { issuer, auth: { grant: 'client_credentials', client_id: 'secret', client_secret: 'wrong' } });
  const failing = await untilState(wrong.server, 'notes', 'failing');
  assert.match(failing.last_error, /invalid_client/);
});

test('logout forgets and revokes; another program notices', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  await signIn(s);
  const { code, stderr } = await rialto(['logout', 'notes', '-c', s.server.config], { env: { XDG_STATE_HOME: s.state, XDG_RUNTIME_DIR: s.server.dir } });
  assert.equal(code, 0, stderr);
  await untilState(s.server, 'notes', 'needs_sign_in');
  assert.ok(s.as.revoked > 0);
  assert.doesNotMatch(fs.readFileSync(s.file, 'utf8'), /access_token/);

  // Somebody signs in with a program that does not reach the daemon: the daemon sees it in the file.
  const login = new Login({ ...s.server, dir: tempDir() }, 'notes', { XDG_STATE_HOME: s.state });
  await fetch(await new Person().signIn(await login.address()));
  assert.equal((await login.ended).code, 0);
  await untilState(s.server, 'notes', 'up');
});

// The end of a revocation was written to a request whose client had left, which is freed memory. Of two logouts at
// once, the first was never answered, and the second twice.
test('a logout whose client leaves before the revocation is over, and two logouts at once', async (t) => {
  const s = await setting(t);
  const address = `${s.server.origin}/api/servers/notes/logout`;
  for (const leaves of [true, false]) {
    await untilState(s.server, 'notes', 'needs_sign_in');
    await signIn(s);
    let go;
    const before = s.as.revoking, hangUp = new AbortController();
    s.as.stalled = new Promise((resolve) => { go = resolve; });
    const first = fetch(address, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}', signal: hangUp.signal });
    first.catch(() => {});
    await until('the revocation', () => s.as.revoking > before);
    if (leaves) {
      hangUp.abort();
      await sleep(200);
    } else {
      assert.match((await post(address)).text, /signed_out/);
    }
    const { revoked } = s.as;
    go();
    await until('its end', () => s.as.revoked > revoked);
    if (!leaves) assert.match(await (await within(10_000, 'the first answer', first)).text(), /signed_out/);
  }
});

/** Waits until the token in the file has expired. */
const untilExpired = (file) => until('the end of the token', () => Date.now() / 1000 >
  JSON.parse(fs.readFileSync(file)).records.find((r) => r.access_token).expires);

// The answer to a renewal under way brought a fresh token after the logout: "Signed out", nothing was revoked, and
// the next call was fine. A logout by another program was undone: the answer was written into the file.
test('logout while the token is being renewed, here and by another program', async (t) => {
  const s = await setting(t);
  await untilState(s.server, 'notes', 'needs_sign_in');
  const agent = await new HttpClient(s.server.url).connect();
  const ask = async () => JSON.stringify(await agent.request('tools/call', { name: 'notes__whoami', arguments: {} }));
  for (const where of [s.server.dir, tempDir()]) {
    s.as.ttl = 3;
    await signIn(s);
    await agent.waitFor('notes__whoami');
    await untilExpired(s.file);
    const [held, before] = [s.as.held = [], s.as.revoked];
    const call = ask();
    await until('the renewal', () => held.length);
    const { code, stderr } = await rialto(['logout', 'notes', '-c', s.server.config], { env: { XDG_STATE_HOME: s.state, XDG_RUNTIME_DIR: where } });
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /not revoked/);
    assert.ok(s.as.revoked > before);
    s.as.held = null;
    for (const send of held) send();
    assert.ok(JSON.parse(await call).error, await call);
    assert.match(await ask(), /rialto login notes/);
    assert.doesNotMatch(fs.readFileSync(s.file, 'utf8'), /access_token/);
  }
  await agent.close();
});

/** Two hosts in folders of their own: the header makes the server another one for each. */
async function twoHosts(t, ttl) {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const h = home(t, { servers: { notes: { url: notes.url, headers: { 'X-Project': '${PROJECT}' } } } });
  as.ttl = ttl;
  const login = new Login({ config: h.file, dir: h.dir }, 'notes', h.env);
  await fetch(await new Person().signIn(await login.address()));
  assert.equal((await login.ended).code, 0);
  const hosts = [h.host([], { cwd: tempDir() }), h.host([], { cwd: tempDir() })];
  for (const host of hosts) {
    await host.connect();
    await host.waitFor('notes__whoami');
  }
  const ask = () => Promise.all(hosts.map(async (host) => JSON.stringify(await host.request('tools/call', { name: 'notes__whoami', arguments: {} }))));
  return { as, h, ask, file: path.join(h.dir, 'state/rialto/signin.json') };
}

// A lock kept only other programs from renewing the token at the same time: both spent the same refresh token, and who
// came second took the tokens of the first for ended, and erased them.
test('servers of hosts with values of their own renew a token once, and all of them use it', async (t) => {
  const { as, ask, file } = await twoHosts(t, 4);
  for (const answer of await ask()) assert.match(answer, /alice/);
  await untilExpired(file);
  as.ttl = 3600;
  as.held = [];
  const before = as.asked.refresh_token ?? 0;
  const both = ask();
  await until('the renewal', () => as.held.length);
  await sleep(300);
  const { held } = as;
  as.held = null;
  for (const send of held) send();
  for (const answer of await both) assert.match(answer, /alice/);
  assert.equal(as.asked.refresh_token - before, 1);
  assert.deepEqual(as.failed, {});
  assert.match(fs.readFileSync(file, 'utf8'), /refresh_token/);
});

// Only one of the servers forgot the token; the others went on with it.
test('logout holds for the servers of all hosts', async (t) => {
  const { as, h, ask, file } = await twoHosts(t, 3600);
  for (const answer of await ask()) assert.match(answer, /alice/);
  const { code, stderr } = await rialto(['logout', 'notes', '-c', h.file], { env: h.env });
  assert.equal(code, 0, stderr);
  for (const answer of await ask()) assert.match(answer, /rialto login notes/);
  assert.ok(as.revoked > 0);
  assert.doesNotMatch(fs.readFileSync(file, 'utf8'), /access_token/);
});

// --- the file ---

// The command said "the token was forgotten, but not revoked", or nothing at all, and ended with 0.
test('logout says so when it cannot forget the token', async (t) => {
  const dir = tempDir();
  const url = 'http://127.0.0.1:1/mcp';
  const config = writeConfig(dir, { servers: { notes: { url } } });
  const env = { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir };
  const logout = `exec '${rialtoBin}' logout notes -c '${config}'`;
  const file = path.join(dir, 'rialto/signin.json');
  fs.mkdirSync(path.dirname(file));
  for (const [text, words, before = ''] of [
    ['{"version":1,"rec', /signin\.json is damaged/],
    ['{"version":1,"sealed":"AAAA"}', /rialto-token-key is not there/],
    [JSON.stringify({ version: 1, records: [{ server: 'notes', url, access_token: 'a-token' }] }), /cannot write .*signin\.json/, 'trap "" XFSZ; ulimit -f 0; '],
  ]) {
    fs.writeFileSync(file, text);
    const { code, stderr } = await runCommand('sh', ['-c', before + logout], { env });
    expectClean(stderr);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /still signed in to 'notes': /);
    assert.match(stderr, words);
    assert.doesNotMatch(stderr, /Signed out|forgotten/);
    assert.equal(fs.readFileSync(file, 'utf8'), text);
  }
  fs.writeFileSync(file, '{"version":1,"rec');
  const server = await serve(t, { servers: { notes: { url } } }, { env: { XDG_STATE_HOME: dir } });
  const { code, stderr } = await rialto(['logout', 'notes', '-c', server.config], { env: { ...env, XDG_RUNTIME_DIR: server.dir } });
  assert.equal(code, 1, stderr);
  assert.match(stderr, /still signed in: .*signin\.json is damaged/);
});

test('with rialto-token-key the file is encrypted; without the key it is left alone', async (t) => {
  const secrets = tempDir();
  fs.writeFileSync(path.join(secrets, 'rialto-token-key'), 'correct horse battery staple\n');
  const s = await setting(t, { config: { secrets: { directory: secrets } } });
  await untilState(s.server, 'notes', 'needs_sign_in');
  await signIn(s);
  const text = fs.readFileSync(s.file, 'utf8');
  assert.deepEqual(Object.keys(JSON.parse(text)), ['version', 'sealed']);
  for (const token of s.notes.tokens) assert.ok(!text.includes(token));
  await s.server.stop();

  const again = await serve(t, { servers: { notes: { url: s.notes.url } }, secrets: { directory: secrets } }, { env: { XDG_STATE_HOME: s.state } });
  await untilState(again, 'notes', 'up');
  await again.stop();
  for (const key of [null, 'staple']) {
    const other = tempDir();
    if (key) fs.writeFileSync(path.join(other, 'rialto-token-key'), key);
    const locked = await serve(t, { servers: { notes: { url: s.notes.url } }, secrets: { directory: other } }, { env: { XDG_STATE_HOME: s.state } });
    await untilState(locked, 'notes', 'needs_sign_in');
    assert.match(locked.stderr(), key ? /encrypted with another key/ : /rialto-token-key is not there/);
    const { text: refused } = await post(`${locked.origin}/api/servers/notes/login`);
    assert.match(refused, /signin\.json/);
    assert.equal(fs.readFileSync(s.file, 'utf8'), text);
    await locked.stop();
  }
});

// The log told to run `rialto login` for the new address of a server. It signed in at the old address each time,
// which had a token, so the new entry never came up.
test('a server that is up and gets another url in a reload: login is for the new address', async (t) => {
  const s = await setting(t);
  await signIn(s, 'alice');
  const moved = await startProtected(t, s.as);
  writeConfig(path.dirname(s.server.config), { listen: '127.0.0.1:0', servers: { notes: { url: moved.url } } });
  await post(`${s.server.origin}/api/reload`);
  await until('the log', () => /the old one goes on: needs a sign-in: rialto login notes/.test(s.server.stderr()));
  const agent = await new HttpClient(s.server.url).connect();
  assert.equal(await agent.text('notes__whoami'), 'alice');
  await signIn(s, 'carol');
  await until('the new one in place', async () => await agent.text('notes__whoami').catch(() => '') === 'carol');
  assert.equal(moved.calls, 1);
  await agent.close();
});

// Whoever asked to sign in while the server was taken out of the configuration never got an answer.
test('a sign-in whose server is taken out of the configuration or replaced is answered', async (t) => {
  const locked = http.createServer((req, res) => { if (!locked.silent) res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end(); });
  await new Promise((resolve) => { locked.listen(0, '127.0.0.1', resolve); });
  t.after(() => { locked.closeAllConnections(); locked.close(); });
  const url = `http://127.0.0.1:${locked.address().port}/mcp`;
  const server = await serve(t, { servers: { notes: { url }, more: { url } } });
  await untilState(server, 'notes', 'needs_sign_in');
  await untilState(server, 'more', 'needs_sign_in');
  locked.silent = true; // the discovery of the authorization server takes its time
  const logins = ['notes', 'more'].map((name) => within(5000, `an answer for ${name}`, post(`${server.origin}/api/servers/${name}/login`)));
  await sleep(300);
  writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', servers: { more: { url: `${url}/else` } } });
  await post(`${server.origin}/api/reload`);
  for (const { status, text } of await Promise.all(logins)) {
    assert.equal(status, 502);
    assert.match(text, /the server was taken out of the configuration or replaced/);
  }
  const last = post(`${server.origin}/api/servers/more/login`).catch(() => {});
  await sleep(300);
  await server.stop(); // nor does one keep the daemon from ending
  await last;
});

// --- each caller for itself ---

const tokensOf = (...names) => names.map((name) => (
  { name, hash: `sha256:${createHash('sha256').update(`token-of-${name}`).digest('hex')}`, ...(name === 'op' && { role: 'operator' }) }));
const bearer = (name) => ({ Authorization: `Bearer token-of-${name}` });

/** An agent of the initialize era with a token of its own, whose person signs in when asked. */
async function agentOf(t, server, name) {
  const agent = new v1.Client({ name: 'agent', version: '1' }, { capabilities: allCapabilities });
  agent.setRequestHandler(v1.ElicitRequestSchema, async ({ params }) => {
    await fetch(await new Person(`${name}-at-home`).signIn(params.url));
    return { action: 'accept' };
  });
  await agent.connect(new v1.StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: bearer(name) } }));
  t.after(() => agent.close());
  return agent;
}

const untilListed = (agent, name) => until(`the tool ${name}`,
  async () => (await agent.listTools()).tools.some((tool) => tool.name === name));

async function signInBy(agent) {
  await untilListed(agent, 'notes__sign_in');
  await agent.callTool({ name: 'notes__sign_in', arguments: {} });
  await untilListed(agent, 'notes__whoami');
}

const whoIs = async (agent) => (await agent.callTool({ name: 'notes__whoami', arguments: {} })).content[0].text;

test('per_user: each caller signs in for itself, in both eras', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const server = await serve(t, {
    servers: { notes: { url: notes.url, auth: { per_user: true } } }, auth: { tokens: tokensOf('anna', 'bert', 'cleo') },
  }, { env: { XDG_STATE_HOME: state } });

  for (const name of ['anna', 'bert']) {
    const agent = await agentOf(t, server, name);
    await signInBy(agent);
    assert.equal(await whoIs(agent), `${name}-at-home`);
    await agent.close();
  }
  // The same caller has its token in the other era, too, and another caller has none.
  const anna = new ModernClient(server.url, { headers: bearer('anna') });
  await until('the tools', async () => JSON.stringify(await anna.request('tools/list')).includes('notes__whoami'));
  assert.equal((await anna.request('tools/call', { name: 'notes__whoami', arguments: {} })).result.content[0].text, 'anna-at-home');
  const cleo = new ModernClient(server.url, { headers: bearer('cleo') });
  await until('the tool', async () => JSON.stringify(await cleo.request('tools/list')).includes('notes__sign_in'));
  assert.ok(!JSON.stringify(await cleo.request('tools/list')).includes('notes__whoami'));
  const { records } = JSON.parse(fs.readFileSync(path.join(state, 'rialto/signin.json')));
  assert.deepEqual(records.filter((r) => r.access_token).map((r) => r.user).sort(), ['anna', 'bert']);
});

// Callers that connected while an operator had stopped the server were left with the instance that everybody
// shares when it was started again: the first of them who signed in did so for all.
test('per_user: callers of a server that was stopped sign in for themselves when it is started', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const server = await serve(t, {
    servers: { notes: { url: notes.url, auth: { per_user: true } } }, auth: { tokens: tokensOf('anna', 'bert', 'op') },
  }, { env: { XDG_STATE_HOME: tempDir() } });
  const order = (verb) => exchange(`${server.origin}/api/servers/notes/${verb}`,
    { headers: { 'Content-Type': 'application/json', ...bearer('op') }, body: '{}' });
  assert.equal((await order('stop')).status, 202);
  const anna = await agentOf(t, server, 'anna');
  const bert = await agentOf(t, server, 'bert');
  const modern = new ModernClient(server.url, { headers: bearer('bert') });
  assert.deepEqual(await modern.toolNames(), []);
  assert.equal((await order('start')).status, 202);
  await signInBy(anna);
  assert.equal(await whoIs(anna), 'anna-at-home');
  await modern.waitFor('notes__sign_in');
  assert.ok(!(await modern.toolNames()).includes('notes__whoami'));
  await signInBy(bert);
  assert.equal(await whoIs(bert), 'bert-at-home');
  assert.equal(await modern.text('notes__whoami'), 'bert-at-home');
});

// Callers from before a reload that turned on per_user were never asked for a sign-in of their own, and
// went on with the token that had been everybody's, for as long as the daemon ran.
test('per_user that is turned on by a reload holds for the callers of before', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const config = (auth) => ({
    servers: { notes: { url: notes.url, ...(auth && { auth }) } }, auth: { tokens: tokensOf('anna', 'bert', 'op') },
  });
  const server = await serve(t, config(), { env: { XDG_STATE_HOME: state } });
  const login = new Login(server, 'notes', { XDG_STATE_HOME: state });
  await fetch(await new Person('alice').signIn(await login.address()));
  assert.equal((await login.ended).code, 0);
  const anna = new ModernClient(server.url, { headers: bearer('anna') });
  await anna.waitFor('notes__whoami');
  assert.equal(await anna.text('notes__whoami'), 'alice');
  const session = await new HttpClient(server.url, { token: 'token-of-anna' }).connect();
  assert.equal(await session.text('notes__whoami'), 'alice');

  const used = notes.tokens.length;
  writeConfig(path.dirname(server.config), { listen: '127.0.0.1:0', ...config({ per_user: true }) });
  const answer = await exchange(`${server.origin}/api/reload`, { headers: bearer('op'), body: '{}' });
  assert.deepEqual(JSON.parse(answer.text).replaced, ['notes']);
  assert.ok(!(await anna.waitFor('notes__sign_in')).includes('notes__whoami'));
  // The session has ended: its agent connects again, and is asked to sign in.
  assert.equal((await session.post({ jsonrpc: '2.0', id: 9, method: 'tools/list' })).status, 404);
  await (await new HttpClient(server.url, { token: 'token-of-anna' }).connect()).waitFor('notes__sign_in');
  const bert = await agentOf(t, server, 'bert');
  await signInBy(bert);
  assert.equal(await whoIs(bert), 'bert-at-home');
  assert.ok(!notes.tokens.slice(used).includes(notes.tokens[0])); // that of before is not used any more
});

// What the server lists for one user was remembered for the next start of any, so other users were shown it, with
// the instructions, until they had lists of their own: for good, if they never signed in.
test('per_user: nobody is shown what the server lists for somebody else, not even after a restart', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as, { personal: true });
  const config = {
    servers: { notes: { url: notes.url, auth: { per_user: true } } }, auth: { tokens: tokensOf('anna', 'bert') },
  };
  const env = { XDG_STATE_HOME: tempDir(), XDG_CACHE_HOME: tempDir() };
  const first = await serve(t, config, { env });
  await signInBy(await agentOf(t, first, 'anna'));
  await sleep(1500); // lists are remembered a second after they have changed
  notes.stalled = new Promise((resolve) => { t.after(resolve); }); // bert's instance does not learn that it needs a sign-in
  const bertSees = async (server) => {
    const bert = await new HttpClient(server.url, { token: 'token-of-bert' }).connect();
    const modern = new ModernClient(server.url, { headers: bearer('bert') });
    const seen = [bert.initialized, await bert.request('resources/list'), await bert.request('tools/list'),
      await modern.request('resources/list'), await modern.request('tools/list')];
    assert.doesNotMatch(JSON.stringify(seen), /anna/);
    assert.doesNotMatch(JSON.stringify(seen), /whoami/);
  };
  await bertSees(first);
  await first.stop();
  await bertSees(await serve(t, config, { env }));
  assert.ok(!fs.existsSync(path.join(env.XDG_CACHE_HOME, 'rialto/catalogs')));
});

// --- where the browser comes back to ---

// A person who signs in from the page, or for an agent, may have a browser on another machine, where a
// loopback address does not reach us.
test('public_url is where browsers come back to; another address is another registration', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const registered = [];
  as.provider.on('registration_create.success', (ctx, client) => { registered.push(client.redirectUris); });
  const servers = { notes: { url: notes.url } };
  const first = await serve(t, { servers }, { env: { XDG_STATE_HOME: state } });
  await untilState(first, 'notes', 'needs_sign_in');
  const addressAt = async (server) => JSON.parse((await post(`${server.origin}/api/servers/notes/login`)).text).url;
  const redirectOf = async (server) => new URL(await addressAt(server)).searchParams.get('redirect_uri');
  assert.equal(await redirectOf(first), `${first.origin}/oauth/callback`);
  await first.stop();

  const { port } = new URL(first.origin);
  const config = { listen: `127.0.0.1:${port}`, public_url: `http://localhost:${port}`, servers };
  const server = await serve(t, config, { env: { XDG_STATE_HOME: state } });
  await untilState(server, 'notes', 'needs_sign_in');
  const agent = new v1.Client({ name: 'agent', version: '1' }, { capabilities: allCapabilities });
  let asked;
  agent.setRequestHandler(v1.ElicitRequestSchema, async ({ params }) => {
    asked = params.url;
    const person = new Person();
    const back = await person.signIn(params.url);
    assert.ok(back.startsWith(`http://localhost:${port}/oauth/callback?`), back);
    await person.go(back);
    return { action: 'accept' };
  });
  await agent.connect(new v1.StreamableHTTPClientTransport(new URL(server.url)));
  await until('the tool', async () => (await agent.listTools()).tools.some((tool) => tool.name === 'notes__sign_in'));
  await agent.callTool({ name: 'notes__sign_in', arguments: {} });
  await untilState(server, 'notes', 'up');
  assert.ok(asked);
  await agent.close();
  assert.deepEqual(registered, [[`${first.origin}/oauth/callback`], [`http://localhost:${port}/oauth/callback`]]);
  const about = JSON.parse((await exchange(`${server.origin}/oauth/client`, { method: 'GET' })).text);
  assert.deepEqual([about.client_id, about.redirect_uris, about.token_endpoint_auth_method],
    [`http://localhost:${port}/oauth/client`, [`http://localhost:${port}/oauth/callback`], 'none']);

  // A reload changes it; with an https address the client is a web client.
  fs.writeFileSync(server.config, JSON.stringify({ ...config, public_url: 'https://tools.example.test' }));
  await until('the new address', async () => JSON.parse((await exchange(`${server.origin}/oauth/client`, { method: 'GET' })).text).application_type === 'web');
  const { origin, pathname, search } = new URL(await addressAt(server));
  assert.equal(origin + pathname, 'https://tools.example.test/oauth/begin');
  const pressed = await exchange(`${server.origin}${pathname}`, { headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: origin }, body: search.slice(1) });
  assert.equal(new URL(pressed.headers.location).searchParams.get('redirect_uri'), 'https://tools.example.test/oauth/callback');
});
