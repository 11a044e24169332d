// A caller that asks for a sign-in can send its address to somebody else, and would get that person's token. So with
// public_url, where any browser can come back, a sign-in begins at a page of ours that says whose it is, and it ends in the
// browser in which it began, or not at all. With a real authorization server, a token for each caller and one for all.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, serve, tempDir, until } from './lib.mjs';
import { ModernClient } from './peers.mjs';
import { freePort } from './oauth_lib.mjs';
import { Person, startIssuer, startProtected } from './oidc_lib.mjs';
import { Login, untilState } from './signin_lib.mjs';

const bearer = (name) => ({ Authorization: `Bearer token-of-${name}` });
const tokens = ['anna', '<b>bert'].map((name) => ({ name, hash: `sha256:${createHash('sha256').update(`token-of-${name}`).digest('hex')}` }));

async function setting(t, { perUser = false, publicUrl } = {}) {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const port = await freePort();
  const url = publicUrl ?? `http://localhost:${port}`;
  const server = await serve(t, {
    listen: `127.0.0.1:${port}`, public_url: url, servers: { notes: { url: notes.url, auth: { per_user: perUser } } },
    ...(perUser && { auth: { tokens } }),
  }, { env: { XDG_STATE_HOME: state } });
  if (!perUser) await untilState(server, 'notes', 'needs_sign_in');
  const file = path.join(state, 'rialto/signin.json');
  const users = () => (fs.existsSync(file) ? JSON.parse(fs.readFileSync(file)).records : []).filter((r) => r.access_token).map((r) => r.user);
  return { as, notes, server, state, url, users, api: `${server.origin}/api/servers/notes/login` };
}

/** The address that a caller's agent gets, and how to resume its call when the person is back. */
async function ask(s, name) {
  const agent = new ModernClient(s.server.url, { headers: name ? bearer(name) : {}, capabilities: { elicitation: { url: {} } } });
  await until('the tool', async () => JSON.stringify(await agent.request('tools/list')).includes('notes__sign_in'));
  const call = { name: 'notes__sign_in', arguments: {} };
  const { result: { inputRequests, requestState } } = await agent.request('tools/call', call);
  const [[key, { params }]] = Object.entries(inputRequests);
  const answer = (action) => agent.request('tools/call', { ...call, requestState, inputResponses: { [key]: { action } } });
  return { agent, url: params.url, answer };
}

async function whoami({ agent, answer }) {
  assert.match((await answer('accept')).result.content[0].text, /Signed in to 'notes'/);
  await until('the tools', async () => JSON.stringify(await agent.request('tools/list')).includes('notes__whoami'));
  return (await agent.request('tools/call', { name: 'notes__whoami', arguments: {} })).result.content[0].text;
}

const post = (url, body = '{}') => exchange(url, { headers: { 'Content-Type': 'application/json' }, body });
const textOf = async (answer) => (await answer).text();

for (const perUser of [true, false]) {
  const who = perUser ? 'with per_user' : 'with one token for all';

  test(`${who}: another person who is sent the authorization server's address signs in for nobody`, async (t) => {
    const s = await setting(t, { perUser });
    const asked = await ask(s, perUser && 'anna');
    const { url } = asked;
    const anna = new Person('anna-at-home');
    const raw = await anna.setOut(url);
    const victim = new Person('victim');
    const back = await victim.signIn(raw);
    const answer = await victim.go(back);
    const page = await answer.text();
    assert.match(page, /This browser did not begin the sign-in/);
    assert.equal(answer.status, 403);
    assert.deepEqual(s.as.asked, {}, 'the code is not redeemed');
    assert.deepEqual(s.users(), []);

    // The caller's own browser is not affected.
    assert.match(await textOf(anna.go(await anna.signIn(url))), /Signed in/);
    assert.equal(await whoami(asked), 'anna-at-home');
    assert.deepEqual(s.users(), [perUser ? 'anna' : undefined]);
  });

  test(`${who}: a callback address that is passed on alone is worth nothing`, async (t) => {
    const s = await setting(t, { perUser });
    const asked = await ask(s, perUser && 'anna');
    const { url } = asked;
    const anna = new Person('anna-at-home');
    const back = await anna.signIn(url);
    const [, name, value] = /(rialto-login-\w+)=(\w+)/.exec(anna.cookies);
    for (const cookie of ['', name, `${name}=`, `${name}=${'0'.repeat(32)}`, `${name}=${value}0`, `rialto-login=${value}`, `${name} =${value}`]) {
      const answer = await exchange(back, { method: 'GET', headers: { Cookie: cookie } });
      assert.equal(answer.status, 403, cookie);
      assert.match(answer.text, /did not begin the sign-in/);
      assert.equal(answer.headers['cache-control'], 'no-store');
    }
    if (perUser) { // nor may an operator paste it for the caller
      const pasted = await exchange(s.api, { headers: { 'Content-Type': 'application/json', ...bearer('<b>bert') }, body: JSON.stringify({ callback: back }) });
      assert.equal(pasted.status, 409, pasted.text);
    }
    assert.deepEqual(s.as.asked, {});
    assert.match(await textOf(anna.go(back)), /Signed in/);
    assert.equal(await whoami(asked), 'anna-at-home');
    assert.match(await textOf(anna.go(back)), /Nothing waits for this/);
    assert.match(await textOf(anna.go(url)), /Nothing waits for this/);
  });
}

test('the page says whose sign-in it is; looking at it uses nothing up', async (t) => {
  const s = await setting(t, { perUser: true });
  const { url, answer } = await ask(s, '<b>bert');
  assert.match(url, new RegExp(`^${s.url}/oauth/begin\\?login=[0-9a-f]{32}$`));
  for (let i = 0; i < 2; i++) {
    const page = await exchange(url, { method: 'GET' });
    assert.equal(page.status, 200);
    assert.match(page.text, /Go on only if you asked for this yourself/);
    assert.match(page.text, /&lt;b&gt;bert/);
    assert.doesNotMatch(page.text, /<b>bert/);
    assert.match(page.text, /notes/);
    assert.ok(page.text.includes(s.as.issuer), 'where it leads');
    for (const [name, value] of [['cache-control', 'no-store'], ['x-frame-options', 'DENY'], ['x-content-type-options', 'nosniff']]) assert.equal(page.headers[name], value);
    assert.match(page.headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(page.headers['set-cookie'], undefined);
  }
  await answer('decline');
  const shared = await setting(t);
  const page = await exchange(JSON.parse((await post(shared.api)).text).url, { method: 'GET' });
  assert.match(page.text, /everybody who uses this Rialto/);
});

test('an address is for one browser; asked again, there is another', async (t) => {
  const s = await setting(t);
  const { url } = JSON.parse((await post(s.api)).text);
  assert.equal(JSON.parse((await post(s.api)).text).url, url, 'nobody has used it');
  const [one, two] = [new Person('one'), new Person('two')];
  const raw = await one.setOut(url);
  assert.equal(await one.setOut(url), raw, 'the same browser may begin again');
  const refused = await two.go(url);
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /begun in another browser/);
  assert.equal((await two.go(url.split('?')[0], { login: new URL(url).searchParams.get('login') })).status, 403);

  const other = JSON.parse((await post(s.api)).text).url;
  assert.notEqual(other, url);
  const first = await one.signIn(raw);
  const back = await two.signIn(other);
  assert.match(await textOf(one.go(first)), /did not begin/, 'the last one that began counts');
  assert.match(await textOf(two.go(back)), /Signed in/);
  await untilState(s.server, 'notes', 'up');
});

test('the button works on our page alone, and bad input is a plain page', async (t) => {
  const s = await setting(t);
  const { url } = JSON.parse((await post(s.api)).text);
  const login = new URL(url).searchParams.get('login');
  const begin = `${s.server.origin}/oauth/begin`;
  const press = (headers, body = `login=${login}`) => exchange(begin, { headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers }, body });
  for (const headers of [{}, { Origin: 'null' }, { Origin: 'https://evil.example' }, { Origin: s.server.origin }, { Origin: `${s.url}/` }, { Origin: s.url.replace('http:', 'https:') }]) {
    const answer = await press(headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.equal(answer.headers['set-cookie'], undefined);
    assert.equal(answer.headers.location, undefined);
  }
  for (const query of ['', 'login=', 'login=forged', `login=${login}x`, `login=${login}&login=${login}`, `login=%zz`, `login=${'a'.repeat(5000)}`]) {
    const looked = await exchange(`${begin}?${query}`, { method: 'GET' });
    const pressed = await press({ Origin: s.url }, query);
    for (const answer of [looked, pressed]) {
      assert.equal(answer.status, 400, query);
      assert.match(answer.text, /Nothing waits for this/);
      assert.equal(answer.headers['cache-control'], 'no-store');
    }
  }
  assert.equal((await exchange(begin, { method: 'DELETE' })).status, 405);
  const pressed = await press({ Origin: s.url });
  assert.equal(pressed.status, 303);
  assert.ok(pressed.headers.location.startsWith(`${s.as.issuer}/auth?`));
  assert.match(pressed.headers['set-cookie'][0], /^rialto-login-[0-9a-f]{8}=[0-9a-f]{32}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
  assert.equal(pressed.headers['cache-control'], 'no-store');
  assert.equal(pressed.headers['referrer-policy'], 'no-referrer');
  // A callback without the cookie of the browser that pressed the button is refused, also one with an error.
  const state = new URL(pressed.headers.location).searchParams.get('state');
  assert.equal((await exchange(`${s.server.origin}/oauth/callback?error=access_denied&state=${state}&iss=${s.as.issuer}`, { method: 'GET' })).status, 403);
  assert.equal(JSON.parse((await exchange(s.api, { method: 'GET' })).text).state, 'waiting');
});

test('by https the cookie is for this host alone', async (t) => {
  const s = await setting(t, { publicUrl: 'https://tools.example.test/rialto' });
  const { url } = JSON.parse((await post(s.api)).text);
  assert.match(url, /^https:\/\/tools\.example\.test\/rialto\/oauth\/begin\?login=/);
  const pressed = await exchange(`${s.server.origin}/oauth/begin`, {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: 'https://tools.example.test' }, body: new URL(url).search.slice(1) });
  assert.equal(pressed.status, 303, pressed.text);
  const [cookie] = pressed.headers['set-cookie'];
  assert.match(cookie, /^__Host-rialto-login-[0-9a-f]{8}=[0-9a-f]{32}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
  // A cookie without the prefix may have been set by a neighbouring host.
  const back = new URL(await new Person().signIn(pressed.headers.location));
  const ours = `${s.server.origin}/oauth/callback${back.search}`;
  const pair = cookie.split(';')[0];
  assert.equal((await exchange(ours, { method: 'GET', headers: { Cookie: pair.replace('__Host-', '') } })).status, 403);
  assert.match((await exchange(ours, { method: 'GET', headers: { Cookie: `a=b; ${pair}; c` } })).text, /Signed in/);
});

test('sign-ins that are under way at once are bounded', async (t) => {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const port = await freePort();
  const names = Array.from({ length: 257 }, (_, i) => `s${i}`);
  const server = await serve(t, { listen: `127.0.0.1:${port}`, public_url: `http://localhost:${port}`, servers: Object.fromEntries(names.map((name) => [name, { url: notes.url }])) },
    { env: { XDG_STATE_HOME: tempDir() } });
  const begin = (name) => post(`${server.origin}/api/servers/${name}/login`);
  for (const name of names.slice(0, -1)) assert.match((await begin(name)).text, /oauth\/begin/);
  const refused = await begin(names.at(-1));
  assert.equal(refused.status, 502);
  assert.match(refused.text, /256 sign-ins are under way/);
  const url = JSON.parse((await begin('s0')).text).url;
  const person = new Person();
  assert.match(await textOf(person.go(await person.signIn(url))), /Signed in/);
  assert.match((await begin(names.at(-1))).text, /oauth\/begin/, 'one is over: there is room');
});

test('rialto login shows our page, too, and takes a pasted address of any browser', async (t) => {
  const s = await setting(t);
  const login = new Login(s.server, 'notes', { XDG_STATE_HOME: s.state });
  const address = await login.address();
  assert.ok(address.startsWith(`${s.url}/oauth/begin?login=`), address);
  const raw = await new Person().setOut(address);
  const elsewhere = new Person('alice');
  const back = await elsewhere.signIn(raw);
  assert.match(await textOf(elsewhere.go(back)), /did not begin/);
  login.paste(back);
  const ended = await login.ended;
  assert.equal(ended.code, 0, ended.stderr);
  await untilState(s.server, 'notes', 'up');
});
