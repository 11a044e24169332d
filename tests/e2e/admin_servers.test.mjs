// Servers added, changed, enabled, disabled and removed through the page: the file keeps every other byte, the
// daemon follows at once, and a server's state says what is wrong and what would help.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ask, events, get, post, tokenEntry } from './admin_lib.mjs';
import { fake, HttpClient, logged, rialto, serve, tempDir, until } from './lib.mjs';

const stateOf = async (server, name) => (await get(server, `/api/servers/${name}`)).json;
const isUp = (server, name) => until(`${name} is up`, async () => (await stateOf(server, name)).state === 'up');
const entry = (...args) => { const { command, args: rest } = fake(...args); return { command, args: rest }; };

test('without a configuration: the user\'s file is made, private, and followed', async (t) => {
  const server = await serve(t, null);
  assert.deepEqual((await get(server, '/api/config')).json.file, null);
  assert.equal((await get(server, '/api/config')).json.writable, true);
  const added = await post(server, '/api/servers', { name: 'mine', entry: entry('--name', 'mine') });
  assert.equal(added.status, 201, added.text);
  assert.equal(added.json.name, 'mine');
  const file = path.join(server.dir, 'rialto/rialto.yaml');
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  await isUp(server, 'mine');
  assert.deepEqual((await get(server, '/api/servers')).json.map((s) => s.name), ['mine'], 'the demo has gone');
  const config = (await get(server, '/api/config')).json;
  assert.deepEqual([config.file, config.state, config.errors, config.tokens], [file, 'ok', [], false]);
  assert.ok(path.isAbsolute(config.program));
  await logged(server, /mine: added to the configuration, by 127\.0\.0\.1/);
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('mine:', 'other:'));
  await isUp(server, 'other');
});

test('changed, switched and removed; everything else stays as it is written', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const before = fs.readFileSync(server.config, 'utf8');
  await isUp(server, 'a');
  assert.equal((await post(server, '/api/servers', { name: 'b', entry: { ...entry('--name', 'b'), env: { X_TOKEN: 'hidden-value-0123456789', Y: '1' } } })).status, 201);
  await isUp(server, 'b');
  const shown = await stateOf(server, 'b');
  assert.equal(shown.entry.env.X_TOKEN, '***');
  assert.equal(shown.entry_file, server.config);
  // The hidden value is sent back as it was shown and is kept; the other one changes.
  const changed = await ask(server, 'PUT', '/api/servers/b', { body: { entry: { ...shown.entry, env: { X_TOKEN: '***', Y: '2' } } } });
  assert.equal(changed.status, 200, changed.text);
  const written = JSON.parse(fs.readFileSync(server.config, 'utf8')).servers.b;
  assert.deepEqual(written.env, { X_TOKEN: 'hidden-value-0123456789', Y: '2' });
  const half = await ask(server, 'PUT', '/api/servers/b', { body: { entry: { ...shown.entry, env: { X_TOKEN: 'x***', Y: '2' } } } });
  assert.equal(half.status, 400);
  assert.match(half.json.error, /shown as \*\*\*/);

  assert.equal((await post(server, '/api/servers/b/disable')).status, 200);
  const off = (await get(server, '/api/servers')).json.find((s) => s.name === 'b');
  assert.deepEqual([off.state, off.enabled], ['disabled', false]);
  assert.equal((await post(server, '/api/servers/b/start')).status, 409);
  assert.equal((await post(server, '/api/servers/b/enable')).status, 200);
  await isUp(server, 'b');
  assert.equal((await ask(server, 'DELETE', '/api/servers/b')).status, 200);
  assert.equal((await get(server, '/api/servers/b')).status, 404);
  assert.equal(fs.readFileSync(server.config, 'utf8'), before);
});

// The page said that the server was enabled, and the file, written by Cline, still had "disabled": true.
test('a server that another program disabled is enabled in its own words', async (t) => {
  const server = await serve(t, { mcpServers: { a: { ...entry('--name', 'a'), disabled: true } } });
  assert.equal((await stateOf(server, 'a')).state, 'disabled');
  assert.equal((await post(server, '/api/servers/a/enable')).status, 200);
  await isUp(server, 'a');
  assert.equal(JSON.parse(fs.readFileSync(server.config, 'utf8')).mcpServers.a.disabled, false);
});

// Hidden values were put back by their place in a list: without the first pair, the second secret became the first.
test('in a list that became longer or shorter, no hidden value is put in the place of another', async (t) => {
  const args = [...fake().args, '--first-token', 'AAAA-first-secret', '--second-token', 'BBBB-second-secret'];
  const server = await serve(t, { servers: { a: { ...fake(), args } } });
  const { entry: shown } = await stateOf(server, 'a');
  assert.equal(JSON.stringify(shown).match(/\*\*\*/g).length, 2);
  const put = (changed) => ask(server, 'PUT', '/api/servers/a', { body: { entry: { ...shown, args: changed } } });
  const written = () => JSON.parse(fs.readFileSync(server.config, 'utf8')).servers.a.args;
  const at = shown.args.indexOf('--first-token');
  const shorter = await put(shown.args.toSpliced(at, 2));
  assert.equal(shorter.status, 400, shorter.text);
  assert.match(shorter.json.error, /shown as \*\*\*/);
  assert.equal((await put([...shown.args.slice(0, at), ...shown.args.slice(at + 2), ...shown.args.slice(at, at + 2)])).status, 400, 'the pairs swapped');
  assert.deepEqual(written(), args);
  assert.equal((await put(['--name', 'b', ...shown.args])).status, 400, 'not clear with two of them');
  const kept = await put(shown.args.with(at + 3, 'CCCC-third-secret'));
  assert.equal(kept.status, 200, kept.text);
  assert.deepEqual(written(), args.with(at + 3, 'CCCC-third-secret'));
  // Written in full, the list may have any length; what alone is hidden may be anywhere.
  assert.equal((await put([...args.slice(0, at), ...args.slice(at + 2)])).status, 200);
  assert.deepEqual(written(), [...args.slice(0, at), ...args.slice(at + 2)]);
  const { entry: second } = await stateOf(server, 'a');
  assert.equal((await put(['--name', 'b', ...second.args])).status, 200);
  assert.deepEqual(written(), ['--name', 'b', ...args.slice(0, at), ...args.slice(at + 2)]);
});

// The entries of a file with comments could not be read: null was shown, and no change found its server.
test('in a file with comments, servers are shown and changed like in any other', async (t) => {
  const server = await serve(t, { servers: {} });
  const file = (name) => `\ufeff{ // mine\n  "listen": "127.0.0.1:0",\n  "servers": {\n    "a": ${JSON.stringify(entry('--name', name))}, // the one\n  },\n}\n`;
  fs.writeFileSync(server.config, file('one'));
  await until('the server', async () => (await stateOf(server, 'a')).state === 'up');
  assert.deepEqual((await stateOf(server, 'a')).entry, entry('--name', 'one'));
  const changed = await ask(server, 'PUT', '/api/servers/a', { body: { entry: entry('--name', 'two') } });
  assert.equal(changed.status, 200, changed.text);
  const text = fs.readFileSync(server.config, 'utf8');
  assert.deepEqual((await stateOf(server, 'a')).entry, entry('--name', 'two'));
  assert.match(text, /^\ufeff\{ \/\/ mine\n[^]*\/\/ the one\n/);
});

test('refused with the words of the checker, and nothing is written', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const before = fs.readFileSync(server.config, 'utf8');
  for (const [status, pattern, body] of [
    [409, /already/, { name: 'a', entry: entry() }],
    [400, /would not be valid/, { name: 'b', entry: { comand: 'x' } }],
    [400, /name/, { name: 'no name!', entry: entry() }],
    [400, /no entry/, { name: 'b' }],
    [400, /no entry/, 'not JSON'],
  ]) {
    const answer = await post(server, '/api/servers', body);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, pattern);
  }
  assert.equal((await ask(server, 'PUT', '/api/servers/none', { body: { entry: {} } })).status, 404);
  assert.equal((await ask(server, 'DELETE', '/api/servers/none')).status, 404);
  assert.equal((await ask(server, 'PATCH', '/api/servers/a')).status, 405);
  assert.equal((await post(server, '/api/servers', { name: 'b', entry: entry() }, { headers: { Origin: 'http://evil.example' } })).status, 403);
  assert.equal(fs.readFileSync(server.config, 'utf8'), before);
});

// The page used to say only "the log says which".
test('a server that lacks a secret says which, and a rejected file says where', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a'), b: { ...fake('--name', 'b'), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } } } });
  await isUp(server, 'a');
  const row = (await get(server, '/api/servers')).json.find((s) => s.name === 'b');
  assert.deepEqual([row.state, row.enabled, row.missing, row.last_error], ['left out', true, ['RIALTO_TEST_NO_SUCH_KEY'], 'no value for RIALTO_TEST_NO_SUCH_KEY']);
  assert.equal((await stateOf(server, 'b')).entry.env.KEY, '${RIALTO_TEST_NO_SUCH_KEY}');
  const stream = await events(t, server);
  const told = stream.next('config');
  const good = fs.readFileSync(server.config, 'utf8');
  fs.writeFileSync(server.config, '{"servers": {"a": {"comand": "x"}, "b": {"url": 7}}}');
  await told;
  const { state, errors } = (await get(server, '/api/config')).json;
  assert.equal(state, 'rejected');
  assert.ok(errors.length >= 2, JSON.stringify(errors));
  assert.ok(errors.every((e) => e.file === server.config && e.line === 1 && e.reason));
  const mended = stream.next('config');
  fs.writeFileSync(server.config, good);
  await mended;
  assert.equal((await get(server, '/api/config')).json.state, 'ok');
});

test('what is known of one server', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  await isUp(server, 'a');
  const a = await stateOf(server, 'a');
  assert.ok(a.protocol && a.server_info.name && a.capabilities.tools);
  assert.deepEqual(a.processes.map((p) => [p.pid, p.state, p.for]).slice(0, 1), [[a.pid, 'ready', 'all']]);
  assert.deepEqual(a.lock, { held: [] });
  assert.ok(Array.isArray(a.stderr));
});

test('a viewer changes nothing', async (t) => {
  const auth = { tokens: [tokenEntry('op', 'op-token-0123456789'), tokenEntry('eve', 'eve-token-0123456789', { role: 'viewer' })] };
  const server = await serve(t, { servers: { a: fake('--name', 'a') }, auth });
  const eve = { token: 'eve-token-0123456789' };
  for (const [method, where] of [['POST', '/api/servers'], ['PUT', '/api/servers/a'], ['DELETE', '/api/servers/a'], ['POST', '/api/servers/a/disable'], ['POST', '/api/servers/a/stop']])
    assert.equal((await ask(server, method, where, { ...eve, body: { name: 'b', entry: entry() } })).status, 403, `${method} ${where}`);
  for (const where of ['/api/servers', '/api/servers/a', '/api/config', '/api/tools?brief=1', '/api/logs', '/api/calls', '/api/approvals'])
    assert.equal((await get(server, where, eve)).status, 200, where);
});

test('the messages of a connection: handshake and lists, not the calls, secrets hidden, bounded', async (t) => {
  const secret = 'planted-secret-0123456789';
  const server = await serve(t, { servers: { a: { ...fake('--name', 'a'), env: { KEY: secret }, ping: '1s' } } });
  await isUp(server, 'a');
  const messages = async (query = '') => (await get(server, `/api/servers/a/messages${query}`)).json;
  const all = await messages();
  assert.ok(all.some((m) => m.way === 'out' && m.kind === 'request' && /^(initialize|server\/discover)$/.test(m.method)), JSON.stringify(all).slice(0, 500));
  assert.ok(all.some((m) => m.way === 'out' && m.method === 'tools/list'));
  const answer = all.find((m) => m.way === 'in' && m.kind === 'response' && (m.cut || m.body.result?.tools));
  assert.ok(answer && Date.parse(answer.at));
  assert.ok(all.every((m, i) => !i || m.n < all[i - 1].n), 'newest first');
  await post(server, '/api/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__echo', arguments: { message: secret }, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' } } } },
    { headers: { 'Content-Type': 'application/json', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'a__echo' } });
  await until('a ping', async () => (await messages()).some((m) => m.method === 'ping'), 15_000);
  const text = JSON.stringify(await messages());
  assert.ok(!text.includes('tools/call') && !text.includes(secret));
  assert.equal((await messages('?limit=2')).length, 2);
  assert.equal((await post(server, '/api/servers/a/messages')).status, 405);
  assert.equal((await get(server, '/api/servers/a/messages?limit=x')).status, 400);
});

// An entry names a program that the daemon starts, so adding one gives all the rights of the daemon's user. A loopback
// port is open to every user of the machine: without tokens only the daemon's own user may change the file there.
test('another user of this machine cannot add a server by the port', { skip: process.getuid() !== 0 && 'another user can be only as root' }, async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const before = fs.readFileSync(server.config, 'utf8');
  const script = `fetch(process.argv[1], { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'evil', entry: { command: 'touch', args: ['/tmp/x'] } }) }).then(async (r) => console.log(r.status, await r.text()))`;
  const as = (uid) => new Promise((resolve) => {
    const child = spawn('/usr/bin/env', ['node', '-e', script, `${server.origin}/api/servers`], { uid, cwd: '/', env: { PATH: process.env.PATH } });
    let said = '';
    child.stdout.on('data', (d) => { said += d; });
    child.stderr.on('data', (d) => { said += d; });
    child.on('close', () => resolve(said));
  });
  assert.match(await as(65534), /^403 .*only for the user that this Rialto runs as/);
  assert.equal(fs.readFileSync(server.config, 'utf8'), before);
  assert.match(await as(0), /^201 /);
});

/** A POST that fails because another program is editing the file is sent again. */
async function postUntilHeard(server, name) {
  for (;;) {
    const answer = await post(server, '/api/servers', { name, entry: { command: 'true', enabled: false } });
    if (!/another program edits it/.test(answer.text)) return answer;
  }
}
const addedBy = (server, name) => rialto(['add', name, '-c', server.config, '--', 'true']);
const ten = (what) => Promise.all(Array.from({ length: 10 }, (_, i) => what(i)));

test('ten requests and ten commands at once: nothing is lost', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  const [answers, commands] = await Promise.all([
    ten((i) => postUntilHeard(server, `p${i}`)), ten((i) => addedBy(server, `c${i}`))]);
  assert.deepEqual(answers.map((r) => r.status), Array(10).fill(201), answers.map((r) => r.text).join());
  assert.deepEqual(commands.map((r) => r.code), Array(10).fill(0), commands.map((r) => r.stderr).join());
  assert.equal(Object.keys(JSON.parse(fs.readFileSync(server.config, 'utf8')).servers).length, 21);
});

// The old bytes were read before the file was locked, and written back after the lock was released: what
// another program had added in between was lost.
test('a change that is not taken is undone, and takes nothing of others with it', async (t) => {
  const state = tempDir();
  const server = await serve(t, { servers: { a: fake('--name', 'a') } }, { env: { XDG_STATE_HOME: state } });
  await isUp(server, 'a');
  fs.mkdirSync(path.join(state, 'rialto'), { recursive: true });
  fs.writeFileSync(path.join(state, 'rialto/tokens.yaml'), 'no: tokens: [');
  let over = false;
  const posts = (async () => {
    for (let i = 0; !over; i++) assert.equal((await postUntilHeard(server, `p${i}`)).status, 400);
  })();
  for (let i = 0; i < 3; i++) await ten((k) => addedBy(server, `c${i}${k}`));
  over = true;
  await posts;
  const names = Object.keys(JSON.parse(fs.readFileSync(server.config, 'utf8')).servers);
  assert.equal(names.length, 31, names.join());
  assert.ok(!names.some((n) => n.startsWith('p')));
});

test('a file that was made for a server and is not taken is removed again', async (t) => {
  const state = tempDir();
  const server = await serve(t, null, { env: { XDG_STATE_HOME: state } });
  fs.mkdirSync(path.join(state, 'rialto'), { recursive: true });
  fs.writeFileSync(path.join(state, 'rialto/tokens.yaml'), 'no: tokens: [');
  const file = path.join(server.dir, 'rialto/rialto.yaml');
  assert.equal((await postUntilHeard(server, 'p')).status, 400);
  assert.ok(!fs.existsSync(file));
  assert.equal((await get(server, '/api/config')).json.file, null);
  fs.rmSync(path.join(state, 'rialto/tokens.yaml'));
  assert.equal((await postUntilHeard(server, 'p')).status, 201);
  assert.ok(fs.existsSync(file));
  assert.deepEqual([(await get(server, '/api/config')).json.file, (await get(server, '/api/config')).json.state], [file, 'ok']);
});

// While the daemon stops, calls have ten seconds to end; the page may still be open, but the file is not followed.
test('a daemon that is being stopped still shows what it has, and changes nothing', async (t) => {
  const server = await serve(t, { servers: { a: fake('--name', 'a') } });
  await isUp(server, 'a');
  const client = await new HttpClient(server.url).connect();
  const open = client.call('a__sleep', { ms: 3000 }).catch(() => {});
  await until('the call', async () => (await stateOf(server, 'a')).in_flight === 1);
  const stopped = server.stop();
  await logged(server, /10 s to end/);
  for (const where of ['/api/config', '/api/servers/a', '/api/servers', '/status', '/api/bus'])
    assert.ok((await get(server, where)).status < 500, where);
  const added = await post(server, '/api/servers', { name: 'b', entry: entry() });
  assert.equal(added.status, 409, added.text);
  assert.match(added.json.error, /being stopped/);
  await open;
  await stopped;
});

// An empty file was left, which the daemon took for one that is just being written: the server went on running.
test('the only server of a file is removed, by the page and by the command', async (t) => {
  const server = await serve(t, null);
  const file = path.join(server.dir, 'rialto/rialto.yaml');
  const add = () => post(server, '/api/servers', { name: 'mine', entry: entry('--name', 'mine') });
  assert.equal((await add()).status, 201);
  assert.equal((await ask(server, 'DELETE', '/api/servers/mine')).status, 200);
  assert.equal((await add()).status, 201);
  await isUp(server, 'mine');
  const { code, stderr } = await rialto(['remove', 'mine', '-c', file]);
  assert.equal(code, 0, stderr);
  await until('the server is gone', async () => (await get(server, '/api/servers')).json.length === 0);
  assert.equal((await get(server, '/api/config')).json.state, 'ok');
});
