// All hosts share one daemon, so ${TOKEN} was that of the host that had started it, and all projects of an editor
// shared one server that ran in the user's home. Now each shim brings its own values, and servers for which
// they differ get an instance of their own (docs/decisions/022-callers-variables.md).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, HttpClient, isAlive, rialto, tempDir, until } from './lib.mjs';
import { home } from './daemon_lib.mjs';

/** A server whose tool `tell` says what it was started with. */
function teller() {
  const script = path.join(tempDir(), 'teller.cjs');
  fs.writeFileSync(script, `
    const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    const tell = () => ({ pid: process.pid, cwd: process.cwd(), env: process.env, args: process.argv.slice(2) });
    const answers = {
      initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }),
      'tools/list': () => ({ tools: [{ name: 'tell', inputSchema: { type: 'object' } }] }),
      'tools/call': () => ({ content: [{ type: 'text', text: JSON.stringify(tell()) }] }),
    };
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id !== undefined) send({ id, result: answers[method] ? answers[method](params) : {} });
    }).on('close', () => process.exit());
  `);
  return { command: process.execPath, args: [script] };
}

const call = (c, tool = 'one__tell') => c.request('tools/call', { name: tool, arguments: {} });
async function told(c, tool) {
  const { result, error } = await call(c, tool);
  assert.ok(result && !result.isError, JSON.stringify(error ?? result));
  return JSON.parse(result.content[0].text);
}
const failure = async (c, tool) => {
  const { result, error } = await call(c, tool);
  return error?.message ?? result.content[0].text;
};
const withToken = (more = {}) => ({ ...teller(), env: { SEEN: '${TOKEN_OF_TEST}' }, ...more });

test('each host has its own values; those with the same share a process', async (t) => {
  const h = home(t, { servers: { one: withToken(), all: fake('--name', 'all') } });
  const token = (name) => ({ env: { TOKEN_OF_TEST: `${name}-secret-value` } });
  const [a1, a2, b1, b2] = [await h.host([], token('alpha')).connect(), await h.host([], token('alpha')).connect(),
    await h.host([], token('bravo')).connect(), await h.host([], token('bravo')).connect()];
  const none = await h.host().connect();
  const [tA1, tA2, tB1, tB2] = await Promise.all([a1, a2, b1, b2].map((c) => told(c)));
  assert.deepEqual([tA1, tA2, tB1, tB2].map((x) => x.env.SEEN), ['alpha', 'alpha', 'bravo', 'bravo'].map((n) => `${n}-secret-value`));
  assert.equal(tA1.pid, tA2.pid, 'the same values, the same process');
  assert.equal(tB1.pid, tB2.pid);
  assert.notEqual(tA1.pid, tB1.pid);
  assert.equal(tB1.env.TOKEN_OF_TEST, undefined, 'a server gets what its entry says');
  // The daemon was started by the first host and has its token, which hosts without one must not get.
  assert.match(await failure(none), /'one' is not available: no value for TOKEN_OF_TEST .*rialto stdio/);
  assert.ok((await call(none, 'all__whoami')).result, 'the other servers work');
  const shared = await Promise.all([a1, b1, none].map(async (c) => (await call(c, 'all__whoami')).result.structuredContent.pid));
  assert.equal(new Set(shared).size, 1, 'what is the same for all is shared');
  // No value shows in the status, the log or any file.
  const shown = [h.log(), (await rialto(['status', '--json', '-c', h.file], { env: h.env })).stdout, (await rialto(['calls', '-c', h.file], { env: h.env })).stdout,
    (await rialto(['logs', '-c', h.file], { env: h.env })).stdout];
  for (const dir of ['state', 'cache']) {
    for (const name of fs.readdirSync(path.join(h.dir, dir), { recursive: true })) {
      const file = path.join(h.dir, dir, name);
      if (fs.statSync(file).isFile()) shown.push(fs.readFileSync(file, 'utf8'));
    }
  }
  assert.ok(shown.length > 4);
  for (const text of shown) assert.doesNotMatch(text, /secret-value/);
  // The process ends with the last host that uses it.
  await b1.stop();
  assert.equal((await told(b2)).pid, tB1.pid);
  await b2.stop();
  await until('its end', () => !isAlive({ pid: tB1.pid }));
});

test('what only hosts have: a daemon without it serves those who bring it, and after its end as well', async (t) => {
  const h = home(t, { servers: { one: withToken(), all: fake('--name', 'all') } });
  const server = await h.serve();
  const mine = await h.host([], { env: { TOKEN_OF_TEST: 'mine-secret-value' } }).connect();
  await mine.waitFor('one__tell');
  assert.equal((await told(mine)).env.SEEN, 'mine-secret-value');
  const [status] = await h.daemons();
  assert.equal(status.servers.find((s) => s.name === 'one').instances >= 1, true, JSON.stringify(status.servers));
  await server.stop();
  const again = await told(mine);
  assert.equal(again.env.SEEN, 'mine-secret-value', 'the next daemon is told again');
  await h.kill('SIGKILL');
  assert.equal((await told(mine)).env.SEEN, 'mine-secret-value');
});

test('values with line ends, and too long ones, are not passed on; secrets of files are for all', async (t) => {
  const dir = tempDir();
  fs.writeFileSync(path.join(dir, 'KEPT_OF_TEST'), 'kept-secret-value\n');
  const h = home(t, {
    secrets: { directory: dir },
    servers: { one: withToken(), kept: { ...teller(), env: { SEEN: '${KEPT_OF_TEST}', OTHER: '${NOT_OF_TEST:-preset}' } } },
  });
  const c = await h.host([], { env: { TOKEN_OF_TEST: 'a\nX-Evil: 1', KEPT_OF_TEST: 'mine' } }).connect();
  assert.match(await failure(c), /no value for TOKEN_OF_TEST/);
  assert.match(c.stderr, /TOKEN_OF_TEST is not passed on/);
  await c.waitFor('kept__tell');
  const { env } = await told(c, 'kept__tell');
  assert.deepEqual([env.SEEN, env.OTHER], ['kept-secret-value', 'preset']);
});

test('a reload that names a variable: hosts that are here bring it', async (t) => {
  const h = home(t, { servers: { all: fake('--name', 'all') } });
  const c = await h.host([], { env: { TOKEN_OF_TEST: 'later-secret-value' } }).connect();
  await c.waitFor('all__whoami');
  const before = (await call(c, 'all__whoami')).result.structuredContent.pid;
  fs.writeFileSync(h.file, JSON.stringify({ listen: '127.0.0.1:0', servers: { all: fake('--name', 'all'), one: withToken() } }));
  await c.waitFor('one__tell');
  await until('its value', async () => (await call(c)).result && (await told(c)).env.SEEN === 'later-secret-value');
  assert.equal((await call(c, 'all__whoami')).result.structuredContent.pid, before, 'the others run on');
  // The entry changes: the caller gets a new instance.
  fs.writeFileSync(h.file, JSON.stringify({ listen: '127.0.0.1:0', servers: { all: fake('--name', 'all'), one: withToken({ env: { SEEN: '${TOKEN_OF_TEST}', MORE: '1' } }) } }));
  await until('the new entry', async () => (await call(c)).result && (await told(c)).env.MORE === '1');
  assert.equal((await told(c)).env.SEEN, 'later-secret-value');
});

// A host lost a long call to a reload that had nothing to do with it.
test('a reload does not end the calls of hosts that have to be asked again', async (t) => {
  const h = home(t, { servers: { all: fake('--name', 'all') } });
  const c = await h.host([], { env: { TOKEN_OF_TEST: 'later-secret-value' } }).connect();
  await c.waitFor('all__sleep');
  const long = c.request('tools/call', { name: 'all__sleep', arguments: { ms: 1500 } });
  fs.writeFileSync(h.file, JSON.stringify({ listen: '127.0.0.1:0', servers: { all: fake('--name', 'all'), one: withToken() } }));
  await until('the reload', async () => (await h.daemons())[0].servers.length === 2);
  assert.ok((await long).result, 'the call ends as it should');
  await until('its value', async () => { const { result } = await call(c); return result && !result.isError; });
  assert.equal((await told(c)).env.SEEN, 'later-secret-value');
});

test('an agent of the stateless era, a view and a single server have them as well', async (t) => {
  const h = home(t, { servers: { one: withToken(), all: fake() }, views: { few: { servers: ['one'] } } });
  const server = await h.serve();
  const env = { TOKEN_OF_TEST: 'modern-secret-value' };
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'm', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} };
  const modern = h.host([], { env });
  await until('its tools', async () => (await modern.request('tools/list', { _meta })).result.tools.some((x) => x.name === 'one__tell'));
  const { result } = await modern.request('tools/call', { name: 'one__tell', arguments: {}, _meta });
  const first = JSON.parse(result.content[0].text);
  assert.equal(first.env.SEEN, env.TOKEN_OF_TEST);
  const few = await h.host(['--view', 'few'], { env }).connect();
  const bare = await h.host(['--server', 'one'], { env }).connect();
  assert.deepEqual(await few.waitFor('one__tell'), ['one__tell']);
  assert.equal((await told(few)).pid, first.pid);
  assert.equal((await told(bare, 'tell')).pid, first.pid);
  await Promise.all([modern, few, bare].map((c) => c.stop()));
  await server.stop();
});

const project = (name) => {
  const dir = path.join(fs.realpathSync(tempDir()), name);
  fs.mkdirSync(path.join(dir, '.git'), { recursive: true });
  fs.mkdirSync(path.join(dir, 'deep/er'), { recursive: true });
  return dir;
};

test('scope: project: an instance for each folder, found by .git, started in it', async (t) => {
  const [one, two] = [project('one'), project('two')];
  const h = home(t, { servers: { one: { ...teller(), args: [...teller().args, '--root', '${PROJECT}'], scope: 'project' }, all: fake() } });
  const hosts = [await h.host([], { cwd: one }).connect(), await h.host([], { cwd: path.join(one, 'deep/er') }).connect(), await h.host([], { cwd: two }).connect()];
  await hosts[0].waitFor('one__tell');
  const [a, deep, b] = await Promise.all(hosts.map((c) => told(c)));
  assert.deepEqual([a.cwd, deep.cwd, b.cwd], [one, one, two]);
  assert.deepEqual(b.args, ['--root', two]);
  assert.equal(a.pid, deep.pid);
  assert.notEqual(a.pid, b.pid);
  // A client that connects by HTTP has no folder, and is told so; the daemon's health is not affected.
  const [daemon] = await h.daemons();
  const http = await new HttpClient(`http://${daemon.listen[0]}/mcp`).connect();
  assert.match(await failure(http), /runs in the folder of a project/);
  assert.deepEqual(daemon.reasons, []);
});

test('the host\'s first file:// root is the project, also when it changes', async (t) => {
  const [one, two] = [project('one'), project('t w o')];
  const h = home(t, { servers: { one: { ...teller(), scope: 'project' } } });
  const c = h.host([], { cwd: one });
  let roots = [{ uri: 'https://example.com/' }, { uri: new URL(`file://${two}/deep`).href }];
  let answered = 0;
  c.child.stdout.on('data', () => {
    const asked = c.messages().filter((m) => m.method === 'roots/list');
    while (answered < asked.length) c.send({ jsonrpc: '2.0', id: asked[answered++].id, result: { roots } });
  });
  await c.connect({ capabilities: { roots: { listChanged: true } } });
  await c.waitFor('one__tell');
  const first = await told(c);
  assert.equal(first.cwd, two);
  roots = [{ uri: `file://${one}` }];
  c.send({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
  const second = await told(c);
  assert.equal(second.cwd, one, 'the next call goes there');
  await until('the old one has ended', () => !isAlive({ pid: first.pid }));
  await h.kill('SIGKILL');
  assert.equal((await told(c)).cwd, one, 'the next daemon is told');
});

test('a project of Claude Code, imported, runs in its folder; also without a daemon', async (t) => {
  const one = project('shop');
  const dir = tempDir();
  const file = path.join(dir, '.claude.json');
  fs.writeFileSync(file, JSON.stringify({ mcpServers: {}, projects: { [one]: { mcpServers: { one: { type: 'stdio', ...teller(), env: { SEEN: '${TOKEN_OF_TEST:-none}' } } } } } }));
  const h = home(t, {});
  const config = path.join(h.dir, 'rialto.yaml');
  const imported = await rialto(['import', '--host', 'claude-code', file, '-o', config]);
  assert.equal(imported.code, 0, imported.stderr);
  fs.appendFileSync(config, '\nlisten: 127.0.0.1:0\n');
  assert.equal(JSON.parse((await rialto(['config', '--json', '-c', config])).stdout).servers.one.scope, 'project');
  const c = await h.host(['-c', config], { cwd: path.join(one, 'deep'), env: { TOKEN_OF_TEST: 'x-secret-value' } }).connect();
  await c.waitFor('one__tell');
  assert.deepEqual([(await told(c)).cwd, (await told(c)).env.SEEN], [one, 'x-secret-value']);
  const alone = await h.host(['--alone', '-c', config], { cwd: path.join(one, 'deep') }).connect();
  await alone.waitFor('one__tell');
  assert.equal((await told(alone)).cwd, one);
  const listed = await rialto(['check', config], { env: h.env });
  assert.doesNotMatch(listed.stdout, /PROJECT/);
});
