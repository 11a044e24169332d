// Tokens that come and go while the daemon runs, what each role may do, and the limits of each token.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  bothTypes, exchange, fake, HttpClient, load, logged, rialto, serve, tempDir, until, within,
} from './lib.mjs';
import { ModernClient } from './peers.mjs';

const { WebSocket } = load('ws');
const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});

// A daemon whose configuration is YAML with comments, and 'rialto token' for the same file.
async function start(t, yaml = '', more = {}) {
  const dir = tempDir();
  const file = path.join(dir, 'rialto.yaml');
  const command = JSON.stringify(fake().command);
  fs.writeFileSync(file, `# the servers\nservers:\n  f: {command: ${command}, args: ${JSON.stringify(fake().args ?? [])}} # one\n${yaml}`);
  const env = { XDG_STATE_HOME: path.join(dir, 'state'), XDG_RUNTIME_DIR: dir, ...more.env };
  const server = await serve(t, null, { args: ['-c', file], env });
  const token = async (...args) => {
    const done = await rialto(['token', ...args, '-c', file, '--json'], { env });
    return { ...done, ...(done.code === 0 && args[0] === 'add' ? { token: JSON.parse(done.stdout).token } : {}) };
  };
  const status = async (value) => (await exchange(server.url, { headers: { ...json, ...(value && bearer(value)) }, body: initialize })).status;
  return { server, file, env, dir, token, status };
}

const comes = (run, value, wanted) => until(`a ${wanted}`, async () => (await run.status(value)) === wanted);

test('the first token ends anonymous access, and says so; revoking it lets nobody in', async (t) => {
  const run = await start(t);
  const guest = await new HttpClient(run.server.url).connect();
  await guest.waitFor('f__echo');
  const stream = exchange(run.server.url, { method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': guest.headers['Mcp-Session-Id'] } });
  const ann = await run.token('add', 'ann');
  assert.equal(ann.code, 0, ann.stderr);
  assert.match(ann.stderr, /first token/);
  assert.match(ann.token, /^rialto_/);
  await comes(run, null, 401);
  await within(10_000, 'the end of the stream', stream);
  const text = fs.readFileSync(run.file, 'utf8');
  assert.ok(text.startsWith('# the servers\nservers:\n') && text.includes('# one'), text);
  assert.ok(!text.includes(ann.token) && text.includes('sha256:'), text);
  await comes(run, ann.token, 200);
  const ben = await run.token('add', 'ben');
  assert.doesNotMatch(ben.stderr, /first token/);
  await comes(run, ben.token, 200);
  assert.equal((await run.token('add', 'ben')).code, 2);
  const listed = JSON.parse((await run.token('list')).stdout);
  assert.deepEqual(listed.map((x) => [x.name, x.role, x.view]), [['ann', 'operator', null], ['ben', 'operator', null]]);
  assert.ok(!JSON.stringify(listed).includes('sha256'));
  assert.equal((await run.token('revoke', 'nobody')).code, 1);
  assert.equal((await run.token('revoke', 'ann')).code, 0);
  await comes(run, ann.token, 401);
  assert.equal(await run.status(ben.token), 200);
  const last = await run.token('revoke', 'ben');
  assert.match(last.stderr, /nobody is let in/);
  await comes(run, ben.token, 401);
  assert.equal(await run.status(null), 401);
});

// What a stolen token has open must end: waiting calls, streams and WebSockets.
test('revoking ends streams, WebSockets and open calls at once, and delivers nothing more', async (t) => {
  const run = await start(t);
  const thief = await run.token('add', 'thief'), other = await run.token('add', 'other');
  await comes(run, thief.token, 200);
  await comes(run, other.token, 200);
  const bad = await new HttpClient(run.server.url, { token: thief.token }).connect();
  const good = await new HttpClient(run.server.url, { token: other.token }).connect();
  await bad.waitFor('f__echo');
  await good.waitFor('f__echo');
  const modern = new ModernClient(run.server.url, { headers: bearer(thief.token) });
  const slow = { name: 'f__sleep', arguments: { ms: 8000 } };
  const calls = [bad.request('tools/call', slow), modern.send('tools/call', slow)];
  const kept = good.request('tools/call', slow);
  const ws = new WebSocket(run.server.url.replace('http', 'ws'), ['mcp'], { headers: bearer(thief.token) });
  await new Promise((resolve) => ws.on('open', resolve));
  const closed = new Promise((resolve) => ws.on('close', (code, why) => resolve(`${code} ${why}`)));
  const heard = [];
  ws.on('message', (m) => heard.push(JSON.parse(String(m))));
  ws.send(initialize);
  await until('the greeting', () => heard.length === 1);
  ws.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: slow }));
  const stream = exchange(run.server.url, { method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': bad.headers['Mcp-Session-Id'], ...bearer(thief.token) } });
  await until('four calls in flight', async () => {
    const answer = await exchange(`${run.server.origin}/api/calls`, { method: 'GET', headers: bearer(other.token) });
    return JSON.parse(answer.text).filter((c) => c.state === 'running').length === 4;
  });
  assert.equal((await run.token('revoke', 'thief')).code, 0);
  for (const answer of await within(6000, 'the ends of its calls', Promise.all(calls)))
    assert.match(JSON.stringify(answer), /token 'thief' is not valid any more/);
  assert.match(await within(6000, 'the end of the WebSocket', closed), /^1001 the token/);
  assert.ok(heard.slice(1).every((m) => /not valid any more/.test(JSON.stringify(m))), JSON.stringify(heard));
  await within(6000, 'the end of its stream', stream);
  assert.equal(await run.status(thief.token), 401);
  const answer = await within(20_000, "the other's answer", kept);
  assert.ok(answer.result && !answer.result.isError, JSON.stringify(answer));
});

test('a token expires by itself, and is said to have expired', async (t) => {
  const run = await start(t);
  await run.token('add', 'keeper');
  const brief = await run.token('add', 'brief', '--expires', '6s');
  assert.equal(brief.code, 0, brief.stderr);
  await comes(run, brief.token, 200);
  const client = await new HttpClient(run.server.url, { token: brief.token }).connect();
  await client.waitFor('f__echo');
  const answer = await within(20_000, 'the end of its call', client.request('tools/call', { name: 'f__sleep', arguments: { ms: 30_000 } }));
  assert.match(JSON.stringify(answer), /token 'brief' is not valid any more/);
  const refused = await exchange(run.server.url, { headers: { ...json, ...bearer(brief.token) }, body: initialize });
  assert.equal(refused.status, 401);
  assert.match(refused.text, /has expired/);
  assert.equal((await run.token('add', 'x', '--expires', 'soon')).code, 2);
});

test('a viewer looks at everything, and calls and changes nothing', async (t) => {
  const run = await start(t, 'views:\n  v: {servers: [f]}\n');
  const viewer = await run.token('add', 'eve', '--role', 'viewer');
  const agent = await run.token('add', 'ida', '--view', 'v');
  await comes(run, agent.token, 200);
  const ask = (method, where, token, body) => exchange(run.server.origin + where, { method, headers: { ...json, ...bearer(token) }, body });
  for (const where of ['/status', '/api/servers', '/api/calls', '/metrics', '/'])
    assert.equal((await ask('GET', where, viewer.token)).status, 200, where);
  for (const [method, where, body] of [['POST', '/mcp', initialize], ['GET', '/mcp'], ['POST', '/mcp/f', initialize], ['GET', '/sse'],
    ['POST', '/api/servers/f/stop', '{}'], ['POST', '/api/reload', '{}'], ['DELETE', '/mcp']]) {
    const answer = await ask(method, where, viewer.token, body);
    assert.equal(answer.status, 403, `${method} ${where}`);
    assert.match(answer.text, /read-only/);
  }
  assert.equal((await ask('GET', '/status', agent.token)).status, 403);
  assert.equal((await run.token('add', 'z', '--view', 'none')).code, 2);
  assert.equal((await run.token('add', 'z', '--role', 'king')).code, 2);
});

test('a view that is added with its token is there at once, and a changed one ends its sessions', async (t) => {
  const run = await start(t);
  const keeper = await run.token('add', 'keeper');
  await comes(run, keeper.token, 200);
  const before = fs.readFileSync(run.file, 'utf8');
  fs.writeFileSync(run.file, `${before}views:\n  v: {allow: [echo]}\n`);
  await until('the view', async () => (await exchange(`${run.server.url}?view=v`, { headers: { ...json, ...bearer(keeper.token) }, body: initialize })).status === 200);
  const ida = await run.token('add', 'ida', '--view', 'v');
  await comes(run, ida.token, 200);
  const client = await new HttpClient(run.server.url, { token: ida.token }).connect();
  await until('its tools', async () => (await client.toolNames()).join() === 'f__echo');
  fs.writeFileSync(run.file, fs.readFileSync(run.file, 'utf8').replace('allow: [echo]', 'allow: [add]'));
  await until('the end of its session', async () => (await client.request('tools/list').catch(() => null))?.result === undefined);
  const again = await new HttpClient(run.server.url, { token: ida.token }).connect();
  await until('the other tools', async () => (await again.toolNames()).join() === 'f__add');
  assert.doesNotMatch(run.server.stderr(), /take effect at the next start/);
});

test('where the configuration cannot be written, the state folder has the tokens', async (t) => {
  const run = await start(t, 'auth: {anonymous: false, tokens: []}\n'); // in a form that cannot be edited
  const ann = await run.token('add', 'ann', '--limit', 'in_flight=3');
  assert.equal(ann.code, 0, ann.stderr);
  const file = path.join(run.env.XDG_STATE_HOME, 'rialto/tokens.yaml');
  assert.equal(JSON.parse(ann.stdout).file, file);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  await comes(run, ann.token, 200);
  assert.deepEqual(JSON.parse((await run.token('list')).stdout)[0].limits, { in_flight: 3 });
  assert.equal((await run.token('revoke', 'ann')).code, 0);
  await comes(run, ann.token, 401);
  // With the last token revoked, a request without one is still refused.
  assert.equal(await run.status(null), 401);
});

// The configuration was tried first, and only "not there" led on to the list: with a file in TOML, which is not edited,
// a token that `add` had put into the list could not be revoked, and the hint sent people to a file without it.
test('a token of the list in the state folder is revoked whatever form the configuration has', async () => {
  const dir = tempDir(), file = path.join(dir, 'config.toml');
  fs.writeFileSync(file, `[servers.a]\ncommand = "x"\n[[auth.tokens]]\nname = "old"\nhash = "sha256:${'0'.repeat(64)}"\n`);
  const run = (...args) => rialto(['token', ...args, '-c', file], { env: { XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir } });
  const made = await run('add', 'me', '--json');
  assert.equal(made.code, 0, made.stderr);
  assert.equal(JSON.parse(made.stdout).file, path.join(dir, 'rialto/tokens.yaml'));
  const revoked = await run('revoke', 'me');
  assert.equal(revoked.code, 0, revoked.stderr);
  const old = await run('revoke', 'old');
  assert.equal(old.code, 1);
  assert.ok(old.stderr.includes(`hint: take the token out of ${file} by hand`), old.stderr);
  assert.deepEqual(JSON.parse((await run('list', '--json')).stdout).map((token) => token.name), ['old']);
});

// What the configuration refused went into the state folder's list, which nobody checked: after one wrong option, no
// command could use the configuration any more.
test('a token with a wrong option is not made', async (t) => {
  const run = await start(t);
  const before = fs.readFileSync(run.file, 'utf8');
  for (const limit of ['bytes=10MB', 'in_flight=many', 'calls_per_minute=-1']) {
    const made = await run.token('add', 'ann', '--limit', limit);
    assert.equal(made.code, 2, `${limit} ${made.stderr}`);
    assert.ok(made.stderr.includes(limit.split('=')[0]), made.stderr);
  }
  assert.ok(!fs.existsSync(path.join(run.env.XDG_STATE_HOME, 'rialto/tokens.yaml')));
  assert.equal(fs.readFileSync(run.file, 'utf8'), before);
  const twice = await run.token('add', 'ann', '--expires', '1h', '--expires', '9d'); // the last one counts
  assert.equal(twice.code, 0, twice.stderr);
  const [{ expires }] = JSON.parse((await run.token('list')).stdout);
  assert.ok(Date.parse(expires) > Date.now() + 8 * 24 * 3600_000, expires);
});

// Its problems were reported under the name of the configuration; and a list that was empty or not there was taken for
// no list, so nobody was asked for a token.
test('problems of the list in the state folder have its name', async () => {
  const dir = tempDir();
  const file = path.join(dir, 'rialto.yaml'), list = path.join(dir, 'rialto/tokens.yaml');
  fs.writeFileSync(file, 'servers: {}\n');
  fs.mkdirSync(path.dirname(list));
  const hash = `sha256:${'0'.repeat(64)}`;
  for (const [text, wanted] of [
    ['auth:\n  tokens:\n\t- {}\n', /^tokens\.yaml:3:\d+: not valid YAML/],
    [`auth:\n  tokens:\n    - {name: a, hash: '${hash}', limits: {bytes: many}}\n`, /^tokens\.yaml:3:\d+: auth\.tokens.*bytes/],
    ['', /^tokens\.yaml: auth\.tokens: the file has no such list/],
    ['tokens: []\n', /^tokens\.yaml: auth\.tokens: the file has no such list/],
    [`auth:\n  tokens:\n    - {name: a, hash: '${hash}'}\n`, null],
    ['auth: {tokens: []}\n', null],
  ]) {
    fs.writeFileSync(list, text);
    const { code, stdout } = await rialto(['check', file], { env: { XDG_STATE_HOME: dir } });
    assert.equal(code, wanted ? 2 : 0, `${text}${stdout}`);
    if (wanted) assert.match(stdout, wanted);
    else assert.doesNotMatch(stdout, /tokens\.yaml/);
  }
});

test('limits hold over all ways in, are refused at once with the time to come again, and touch nobody else', async (t) => {
  const run = await start(t);
  const ann = await run.token('add', 'ann', '--limit', 'in_flight=2', '--limit', 'calls_per_minute=5', '--limit', 'bytes=4KiB');
  assert.equal(ann.code, 0, ann.stderr);
  const ben = await run.token('add', 'ben');
  await comes(run, ben.token, 200);
  const http = await new HttpClient(run.server.url, { token: ann.token }).connect();
  const one = await new HttpClient(`${run.server.url}/f`, { token: ann.token }).connect();
  const free = await new HttpClient(run.server.url, { token: ben.token }).connect();
  await http.waitFor('f__echo');
  const modern = new ModernClient(run.server.url, { headers: bearer(ann.token) });
  const slow = [http.request('tools/call', { name: 'f__sleep', arguments: { ms: 3000 } }),
    one.request('tools/call', { name: 'sleep', arguments: { ms: 3000 } })];
  await until('two calls in flight', async () => {
    const answer = await exchange(`${run.server.origin}/api/calls`, { method: 'GET', headers: bearer(ben.token) });
    return JSON.parse(answer.text).filter((c) => c.state === 'running').length === 2;
  });
  const over = await http.request('tools/call', { name: 'f__echo', arguments: { message: 'x' } });
  assert.match(over.error.message, /2 calls in flight.*try again in 1 s/);
  assert.deepEqual(over.error.data, { reason: 'limited', retryable: true, retryAfterMs: 1000 });
  const modernOver = await modern.send('tools/call', { name: 'f__echo', arguments: { message: 'x' } });
  assert.equal(modernOver.status, 429);
  assert.match(JSON.stringify(modernOver), /calls in flight/);
  assert.ok((await free.request('tools/call', { name: 'f__echo', arguments: { message: 'x' } })).result);
  for (const answer of await Promise.all(slow)) assert.ok(answer.result, JSON.stringify(answer));
  const large = await one.request('tools/call', { name: 'echo', arguments: { message: 'x'.repeat(5000) } });
  assert.match(large.error.message, /4096 bytes/);
  assert.equal(large.error.data.retryable, false);
  for (let i = 0; i < 3; i++)
    assert.ok((await one.request('tools/call', { name: 'echo', arguments: { message: 'x' } })).result);
  const late = await http.request('tools/call', { name: 'f__echo', arguments: { message: 'x' } });
  assert.match(late.error.message, /5 calls per minute: try again in \d+ s/);
  assert.ok(late.error.data.retryAfterMs > 0 && late.error.data.retryAfterMs <= 60_000);
  assert.ok((await free.request('tools/call', { name: 'f__echo', arguments: { message: 'x' } })).result);
});

// A session of one owner must not cost another owner its processes: they are counted for each token.
test('processes are limited for each token, counted over its sessions', async (t) => {
  const run = await start(t);
  fs.writeFileSync(run.file, fs.readFileSync(run.file, 'utf8').replace('}} # one', '}, instances: per-session} # one').replace(/\]\} # one/, '], instances: per-session} # one'));
  const ann = await run.token('add', 'ann', '--limit', 'processes=1');
  const ben = await run.token('add', 'ben');
  await comes(run, ben.token, 200);
  const clients = [];
  for (const token of [ann.token, ann.token, ben.token]) {
    const client = await new HttpClient(run.server.url, { token }).connect();
    await client.waitFor('f__echo');
    clients.push(client);
  }
  const call = (client, ms) => client.request('tools/call', { name: 'f__sleep', arguments: { ms } });
  const first = call(clients[0], 4000);
  await until('its process at work', async () => {
    const answer = await exchange(`${run.server.origin}/api/calls`, { method: 'GET', headers: bearer(ben.token) });
    return JSON.parse(answer.text).some((c) => c.state === 'running');
  });
  const second = await call(clients[1], 1);
  assert.match(JSON.stringify(second), /1 processes that the token 'ann' may have/);
  assert.ok((await call(clients[2], 1)).result);
  assert.ok((await first).result);
});
