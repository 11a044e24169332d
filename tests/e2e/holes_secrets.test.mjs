// Secrets showed. The redactor compared bytes, so a secret with a quote or a line end in it showed in
// JSON, URLs, headers and shell words; the end of a server's stderr was passed to callers unredacted; an
// invalid URL was quoted with its token; and values in arguments, or in env under a name like PGPASS or
// MAIN_DSN, were not treated as secrets. Here every secret is planted in every place a configuration has
// for it, comes back from servers in every form, and is looked for in everything that is written or
// answered except the tools' own results.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { before, test } from 'node:test';
import { Conductor } from './acp_lib.mjs';
import { embeddedRig } from './bus_rig.mjs';
import {
  exchange, HttpClient, logged, rialto, root, serve, tempDir, until, writeConfig,
} from './lib.mjs';

// --- secrets, and the forms in which they may show ---

// Each has its own shape, and none contains another.
const secrets = {
  plain: 'plain-Tok3n-0815',
  quotes: 'qu"ote\\back/slash-77',
  accents: 'pass\u00e9-\u{1f511}-wort',
  blanks: 'fifty % of <a&b> + it\'s',
  key: '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\nggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyji\n-----END PRIVATE KEY-----',
  argument: 'arg-Value-4711',
  option: 'opt-Value-4712',
  letter: 'let-Value-4713',
  inUrl: 'url@Pass-4714',
  pgpass: 'pg-Pass-4715',
  dsn: 'dsn-Pass-4716',
  bearer: 'bearer-Tok-4717',
  basic: 'basic-Pass-4718',
  query: 'query-Tok-4719',
  badUrl: 'bad-url-Tok-4720',
  cookie: 'cookie-Val-4721',
  bus: 'bus-Tok-4722',
};

const upper = (s) => s.replace(/%[0-9a-f]{2}|\\u[0-9a-f]{4}/gi, (m) => m.slice(0, 2) + m.slice(2).toUpperCase());
const escapeAll = (s) => [...Array(s.length).keys()].map((i) => `\\u${s.charCodeAt(i).toString(16).padStart(4, '0')}`).join('');
const base64 = (s) => Buffer.from(s).toString('base64');
const forms = {
  raw: (s) => s,
  json: (s) => JSON.stringify(s).slice(1, -1),
  'json in json': (s) => JSON.stringify(JSON.stringify(s)).slice(3, -3),
  'json, slashes escaped': (s) => JSON.stringify(s).slice(1, -1).replaceAll('/', '\\/'),
  'json, ASCII': (s) => JSON.stringify(s).slice(1, -1).replace(/[^ -~]/g, escapeAll),
  'json, nothing but escapes': (s) => upper(escapeAll(s)),
  percent: (s) => encodeURIComponent(s),
  'percent, lower case': (s) => encodeURIComponent(s).replace(/%../g, (m) => m.toLowerCase()),
  form: (s) => new URLSearchParams({ s }).toString().slice(2),
  shell: (s) => s.replaceAll("'", "'\\''"),
  html: (s) => s.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]),
  base64: (s) => base64(s),
  'base64, for URLs': (s) => Buffer.from(s).toString('base64url'),
  'basic, three ways': (s) => ['u', 'us', 'use'].map((user) => base64(`${user}:${s}`)).join(' '),
};

/** Everything that must not be found: [what it is, text]. */
const needles = Object.entries(secrets).flatMap(([name, secret]) => [
  ...Object.entries(forms).map(([form, make]) => [`${name} (${form})`, make(secret)]),
  // The part of its base64 form that is the same whatever text is around it, and each line of a key.
  ...['', 'u', 'us'].map((front) => [`${name} (inside base64)`, base64(`${front}${secret}`).slice(4, -4)]),
  ...secret.split('\n').filter((l) => !l.startsWith('--')).map((line) => [`${name} (a line)`, line]),
]);

function expectNone(where, text) {
  assert.ok(text.length > 0, `${where} is empty`);
  for (const [what, needle] of needles) {
    const at = text.indexOf(needle);
    assert.ok(at < 0, `${where} shows ${what}: ${text.slice(Math.max(0, at - 150), at + needle.length + 50)}`);
  }
}

// --- the places where they are planted ---

const leaky = path.join(root, 'tests/fixture/leaky.mjs');
let dir, plant, remote, config;

before(async () => {
  dir = tempDir();
  plant = path.join(dir, 'shown.json');
  // The end of stderr is cut to 150 bytes: the cut must not leave half of a secret.
  const lastWords = `${'x'.repeat(130)} ${forms.json(secrets.quotes)} ${secrets.plain}`;
  fs.writeFileSync(plant, JSON.stringify([lastWords, ...Object.values(secrets).flatMap((s) => Object.values(forms).map((f) => f(s)))]));
  // A remote server that answers 500 and quotes the request.
  remote = http.createServer((req, res) => {
    res.writeHead(500, { 'Content-Type': 'text/plain' });
    res.end(`bad request ${req.url} ${JSON.stringify(req.headers)}`);
  });
  await new Promise((resolve) => { remote.listen(0, '127.0.0.1', resolve); });
  remote.unref();
  const at = `127.0.0.1:${remote.address().port}`;
  const env = {
    A: '${PLAIN}', B: '${QUOTES}', C: '${ACCENTS}', D: '${BLANKS}', E: '${KEY}',
    PGPASS: secrets.pgpass, MAIN_DSN: `bob:${secrets.dsn}@tcp(db:3306)/main`,
    DATABASE_URL: `postgres://bob:${encodeURIComponent(secrets.inUrl)}@db/main`,
  };
  const args = [`--token=${secrets.argument}`, '--api-key', secrets.option, '-p', secrets.letter];
  config = {
    servers: {
      leaky: { command: process.execPath, args: [leaky, plant, 'stays', ...args], env, approve: ['held'] },
      dying: { command: process.execPath, args: [leaky, plant, '--dies', ...args], env },
      remote: {
        url: `http://${at}/mcp?x=1&api_key=${secrets.query}`, transport: 'streamable-http',
        headers: { Authorization: `Bearer ${secrets.bearer}`, Cookie: `a=1; b=${secrets.cookie}` },
      },
      basic: { url: `http://${at}/mcp`, headers: { 'Proxy-Authorization': `Basic ${base64(`bob:${secrets.basic}`)}` } },
      // Invalid: the URL of a WebSocket may not have a user.
      socket: { url: `ws://bob@${at}/mcp?token=${secrets.badUrl}` },
    },
    bus: { url: 'off', token: secrets.bus },
  };
});

const environment = () => Object.fromEntries(['plain', 'quotes', 'accents', 'blanks', 'key']
  .map((name) => [name.toUpperCase(), secrets[name]]));

const get = async (server, where) => (await exchange(`${server.origin}${where}`, { method: 'GET' })).text;

for (const format of ['text', 'json']) {
  test(`nothing that a daemon writes or answers shows a secret, log as ${format}`, async (t) => {
    const server = await serve(t, { ...config, log: { format, level: 'debug' } }, { env: environment() });
    const client = await new HttpClient(`${server.url}/leaky`).connect();
    await client.waitFor('say', 'fail', 'die');
    await logged(server, /dying[^\n]*last words/);

    // Secrets in the arguments and results of tools pass unchanged: they are between agent and server.
    for (const make of Object.values(forms)) {
      const text = Object.values(secrets).map(make).join(' | ');
      assert.equal((await client.call('say', { text })).result.content[0].text, text);
      assert.equal((await client.call('fail', { text })).error.message, text);
    }
    // What we say ourselves when a server ends must not show them.
    const said = [];
    for (const text of [forms.json(secrets.quotes), base64(`bob:${secrets.plain}`), forms.percent(secrets.blanks), secrets.key]) {
      await client.waitFor('die');
      said.push(JSON.stringify(await client.call('die', { text })));
    }
    assert.match(said.join(), /its last words/);
    expectNone('the error of a call', said.join('\n'));
    const other = await exchange(`${server.url}/dying`, {
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } }),
    });
    expectNone('the answer to initialize', other.text);

    const waiting = client.call('held', { text: Object.values(secrets).join() }).catch(() => {});
    await until('a call that waits', async () => /"held"/.test(await get(server, '/api/approvals')));
    const pages = ['/', '/status', '/readyz', '/readyz?strict=1', '/healthz', '/metrics', '/api/servers', '/api/servers/leaky',
      '/api/servers/dying', '/api/approvals', '/api/calls?limit=1000', '/api/logs?limit=1000&level=debug'];
    const calls = JSON.parse(await get(server, '/api/calls?limit=1000'));
    for (const page of [...pages, ...calls.map((c) => `/api/calls/${c.id}`)]) expectNone(page, await get(server, page));
    assert.match(await get(server, '/status'), /not the URL of a WebSocket/);
    const cache = path.join(server.dir, 'cache/rialto/catalogs');
    for (const file of fs.readdirSync(cache)) expectNone(`cache: ${file}`, `.${fs.readFileSync(path.join(cache, file), 'utf8')}`);
    await server.stop();
    await waiting;
    assert.match(server.stderr(), /starting with/);
    expectNone('the log', server.stderr());
  });
}

test('no command shows a secret', async () => {
  const file = writeConfig(dir, { ...config, listen: '127.0.0.1:0' });
  const commands = [['check', '-c', file], ['config', '-c', file], ['config', '--json', '-c', file],
    ['doctor', '-c', file], ['doctor', '--json', '-c', file], ['call', '-v', '-c', file, 'dying', 'x'],
    ['call', '-v', '-c', file, 'leaky', 'die', `text=${secrets.plain}`]];
  const run = await Promise.all(commands.map((c) => rialto(c, {
    env: { ...environment(), HOME: dir, XDG_CONFIG_HOME: dir, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: path.join(dir, 'cache') }, timeout: 60_000,
  })));
  run.forEach(({ stdout, stderr }, i) => expectNone(commands[i].join(' '), `${stdout}${stderr}.`));
});

test('nothing that is told on the bus shows a secret', async (t) => {
  const place = embeddedRig(t).place();
  const { leaky: entry } = config.servers;
  await serve(t, { servers: { leaky: entry }, bus: { ...place.bus, role: 'worker', agents: [place.agent] } }, { env: environment() });
  const agent = await place.join(t, place.agent);
  await agent.hears('leaky');
  const engine = await place.engine(t);
  let news = '';
  await engine.subscribe('mcp.event.#', 'news', (env) => { news += `${env.text}\n`; });
  for (const make of Object.values(forms)) await agent.invoke('leaky', 'say', { text: make(secrets.quotes) });
  const error = await agent.error('leaky', 'die', { text: `${secrets.plain} ${forms.json(secrets.quotes)}` });
  assert.match(error.message, /last words/);
  expectNone('the error on the bus', JSON.stringify(error));
  await until('the news', () => /server_failed/.test(news));
  expectNone('the news', news);
});

// The files of the state folder: the audit trail with arguments, the tasks with their results, the texts
// of tools that were approved.
test('no file of the state folder shows a secret', async (t) => {
  const home = tempDir();
  const env = { ...environment(), XDG_STATE_HOME: home };
  const all = Object.values(forms).flatMap((make) => Object.values(secrets).map(make)).join(' | ');
  const tasks = { command: process.execPath, args: [path.join(root, 'tests/fixture/task_server.mjs'), 'legacy'] };
  const write = (servers) => writeConfig(home, {
    ...config, listen: '127.0.0.1:0', servers, audit: { arguments: 'redacted' }, lock: { on_change: 'ask' },
  });
  const others = Object.entries(config.servers).filter(([name]) => name !== 'leaky');
  const off = Object.fromEntries(others.map(([name, entry]) => [name, { ...entry, enabled: false }]));
  const locked = await rialto(['lock', '-c', write({ leaky: config.servers.leaky, tasks, ...off })], { env });
  assert.equal(locked.code, 0, locked.stderr);
  const file = write({ ...config.servers, tasks });
  const server = await serve(t, null, { args: ['-c', file], env });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('leaky__say', 'tasks__slow');
  await client.call('leaky__say', { text: all });
  await client.call('leaky__fail', { text: all });
  const task = await client.request('tools/call', { name: 'tasks__slow', arguments: { ms: 1, tag: all }, task: {} });
  const { taskId } = task.result.task;
  await until('the end of the task', async () => (await client.request('tasks/get', { taskId })).result.status === 'completed');
  assert.match(JSON.stringify(await client.request('tasks/result', { taskId })), /plain-Tok3n-0815/);
  await server.stop();
  const files = fs.readdirSync(path.join(home, 'rialto'), { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile()).map((e) => path.join(e.parentPath ?? e.path, e.name));
  for (const part of ['audit.jsonl', 'audit.head', 'tasks.json', 'approved/']) assert.ok(files.some((f) => f.includes(part)), `${part} is among ${files}`);
  assert.match(fs.readFileSync(files.find((f) => f.endsWith('audit.jsonl')), 'utf8'), /"tool":"say".*"arguments":"\{/);
  for (const name of [...files, path.join(home, 'mcp.lock')]) expectNone(name, `.${fs.readFileSync(name, 'utf8')}`);
});

// A component has its secrets on its command line, and prints them when it ends.
test('a conductor shows no secret of its components', async (t) => {
  const traces = tempDir();
  const script = 'console.error(process.env.MY_TOKEN); console.error(JSON.stringify(process.argv)); process.exitCode = 3';
  const c = new Conductor(t, ['--trace', `${traces}/trace`, '--debug', '--debug-dir', traces, 'agent', JSON.stringify({
    command: process.execPath, args: ['-e', script, 'x', `--password=${secrets.quotes}`, '--api-key', secrets.option],
    env: { MY_TOKEN: secrets.key },
  })]);
  const error = await c.initialize().then(() => assert.fail('it ended'), (e) => e);
  assert.match(JSON.stringify(error.data), /password/);
  await c.stop(1);
  expectNone('the error', JSON.stringify({ message: error.message, data: error.data }));
  expectNone('its stderr', c.stderr);
  for (const file of fs.readdirSync(traces)) expectNone(file, `.${fs.readFileSync(path.join(traces, file), 'utf8')}`);
});

// Errors of a configuration quote its file.
test('the errors of a configuration show no secret', async () => {
  const file = writeConfig(dir, {
    servers: {
      a: { command: 'x', args: [`--token=${secrets.argument}`], env: { [`PGPASS`]: secrets.pgpass }, start: secrets.argument },
      b: { command: 'x', [secrets.pgpass]: 1 },
    },
  }, 'wrong.json');
  for (const args of [['check', '-c', file], ['check', '--json', '-c', file], ['serve', '-c', file]]) {
    const { stdout, stderr, code } = await rialto(args);
    assert.equal(code, 2, stderr);
    expectNone(args.join(' '), stdout + stderr);
  }
});
