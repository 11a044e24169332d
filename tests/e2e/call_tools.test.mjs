// `rialto call` and `rialto tools` as a person uses them: by the printed name, on a terminal, beside a
// daemon; and what tools cost.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  atTerminal, fake, fakeBin, HttpClient, rialto, rialtoBin, serve, start, tempDir, until, writeConfig,
} from './lib.mjs';

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

// A server with what the fake one lacks: pictures, required arguments, a form. It writes a file when it
// is started.
const script = `
import fs from 'node:fs';
import readline from 'node:readline';
fs.writeFileSync(process.argv[2], String(process.pid));
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const image = ${JSON.stringify(png.toString('base64'))};
const tools = [
  { name: 'picture', description: 'Gives a picture.', inputSchema: { type: 'object' } },
  { name: 'needy', description: 'Needs things.', inputSchema: { type: 'object', required: ['path', 'mode'],
    properties: { path: { type: 'string', description: 'where' }, mode: { type: 'integer' }, deep: { type: 'boolean' } } } },
  { name: 'texts', description: 'Takes texts.', inputSchema: { type: 'object', properties: {
    either: { anyOf: [{ type: 'string' }, { type: 'null' }] }, both: { type: ['string', 'null'] }, one: { enum: ['1', '2'] }, mixed: { type: ['string', 'integer'] } } } },
  { name: 'form', description: 'Asks.', inputSchema: { type: 'object' } },
  { name: 'slow', description: 'Takes its time.', inputSchema: { type: 'object' } },
];
const waiting = new Map();
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const m = JSON.parse(line);
  const answer = (result) => send({ id: m.id, result });
  if (m.method === 'initialize') return answer({ protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } });
  if (m.method === 'tools/list') return answer({ tools });
  if (!m.method && waiting.has(m.id)) return waiting.get(m.id)(m.result ?? m.error);
  if (m.method !== 'tools/call') return m.id !== undefined && send({ id: m.id, error: { code: -32601, message: 'no' } });
  if (m.params.name === 'picture') return answer({ content: [{ type: 'text', text: 'here' }, { type: 'image', mimeType: 'image/png', data: image },
    { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }, { type: 'resource', resource: { uri: 'x:/y', mimeType: 'application/pdf', blob: 'JVBERg==' } }] });
  if (m.params.name === 'slow') return setTimeout(() => answer({ content: [{ type: 'text', text: 'at last' }] }), 2500);
  if (m.params.name === 'form') {
    waiting.set('q', (r) => answer({ content: [{ type: 'text', text: JSON.stringify(r) }] }));
    return send({ id: 'q', method: 'elicitation/create', params: { message: 'What do you want?', requestedSchema: { type: 'object', required: ['size', 'city'],
      properties: { city: { type: 'string', title: 'Town' }, size: { type: 'integer', minimum: 1, maximum: 5 }, colour: { type: 'string', enum: ['red', 'green'] }, gift: { type: 'boolean', default: true } } } } });
  }
  return answer({ content: [{ type: 'text', text: JSON.stringify(m.params.arguments) }] });
});
`;

function odd(dir) {
  const file = path.join(dir, 'odd.mjs');
  fs.writeFileSync(file, script);
  return { command: process.execPath, args: [file, path.join(dir, 'odd.started')], era: 'legacy' };
}

const both = (dir) => writeConfig(dir, {
  servers: { odd: odd(dir), alpha: { command: '/bin/sh', args: ['-c', `echo x > ${dir}/alpha.started; exec ${fakeBin} --name alpha`] } },
});
const wasStarted = (dir, name) => fs.existsSync(path.join(dir, `${name}.started`));

test('call takes the printed name and starts only that server', async () => {
  for (const args of [['odd__needy', 'path=/x', 'mode=3'], ['odd', 'needy', 'path=/x', 'mode=3'], ['odd__needy', '{"path":"/x","mode":3}']]) {
    const dir = tempDir();
    const run = await rialto(['call', '-c', both(dir), ...args], { env: { XDG_CACHE_HOME: dir } });
    assert.equal(run.stdout, '{"path":"/x","mode":3}\n', run.stderr);
    assert.ok(wasStarted(dir, 'odd'));
    assert.ok(!wasStarted(dir, 'alpha'), 'the other server was started, too');
  }
});

test('call: the nearest name, of servers and of tools', async () => {
  const dir = tempDir();
  const file = both(dir);
  const cases = [[['odd__neddy', 'path=/x'], 1, /odd__needy/], [['odd', 'neddy'], 1, /needy/], [['ood', 'needy'], 2, /odd/],
    [['odd_needy'], 1, /odd__needy/], [['odd'], 2, /which tool of 'odd'/]];
  for (const [args, code, said] of cases) {
    const run = await rialto(['call', '-c', file, ...args], { env: { XDG_CACHE_HOME: dir } });
    assert.equal(run.code, code, `${args}: ${run.stderr}`);
    assert.match(run.stderr, said, args.join(' '));
  }
});

test('call says which argument is missing, before it calls', async () => {
  const file = both(tempDir());
  const run = await rialto(['call', '-c', file, 'odd__needy', 'deep=true']);
  assert.equal(run.code, 2);
  assert.match(run.stderr, /the arguments 'path', 'mode' are missing/);
  assert.match(run.stderr, /rialto call odd needy path=STRING mode=INTEGER \[deep=BOOLEAN\]/);
  assert.equal(run.stdout, '');
  const one = await rialto(['call', '-c', file, 'odd__needy', 'path=x']);
  assert.match(one.stderr, /the argument 'mode' is missing/);
});

// FastMCP writes Optional[str] as anyOf. A number was sent for it, and strict servers refuse that.
test('call sends a text where the schema takes texts alone', async () => {
  const { code, stdout, stderr } = await rialto(['call', '-c', both(tempDir()), 'odd', 'texts', 'either=123', 'both=4', 'one=1', 'mixed=5', 'unknown=6']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { either: '123', both: '4', one: '1', mixed: 5, unknown: 6 });
});

test('call describes pictures and other files, or saves them', async () => {
  const dir = tempDir();
  const file = both(dir);
  const told = await rialto(['call', '-c', file, 'odd__picture']);
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stdout, new RegExp(`^here\n\\[image: image/png, ${png.length} bytes; --save DIR keeps it\\]\n\\[audio: audio/wav, 3 bytes`));
  assert.match(told.stdout, /\[file: application\/pdf, 4 bytes/);
  assert.doesNotMatch(told.stdout, /iVBOR/);
  const saved = path.join(dir, 'saved');
  for (const n of [1, 2]) {
    const run = await rialto(['call', '-c', file, '--save', saved, 'odd__picture']);
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stdout, new RegExp(`saved as ${saved}/image-${n}\\.png\\]`), 'nothing is overwritten');
    assert.deepEqual(fs.readFileSync(path.join(saved, `image-${n}.png`)), png);
    assert.equal(fs.readFileSync(path.join(saved, `file-${n}.pdf`), 'latin1'), '%PDF');
  }
  const refused = await rialto(['call', '-c', file, '--save', '/proc/no/such', 'odd__picture']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot save a file in \/proc\/no\/such/);
  assert.match((await rialto(['call', '-c', file, '--json', 'odd__picture'])).stdout, /iVBOR/, 'JSON is the result itself');
});

test('call asks on a terminal what the server asks: accept, decline, cancel', async (t) => {
  const file = both(tempDir());
  const call = ['call', '-c', file, 'odd__form'];
  const filled = await atTerminal(t, call, [[/What do you want\?[^]*y, n, or c/, 'y\n'], [/Town \(text\): /, 'Rome\n'],
    [/size \(a whole number\): /, '9\n'], [/does not fit[^]*size \(a whole number\): /, '\n'], [/is needed[^]*size/, '3\n'],
    [/1 {2}red[^]*2 {2}green[^]*colour \(one of these, may be left empty\): /, '2\n'], [/gift \(y or n, may be left empty\) \[true\]: /, '\n'],
    [/"action"/]]);
  assert.match(filled.text, /\{"action":"accept","content":\{"city":"Rome","size":3,"colour":"green","gift":true\}\}/);
  assert.equal(filled.code, 0);
  for (const [typed, action] of [['n\n', 'decline'], ['c\n', 'cancel'], ['\x04', 'cancel']]) {
    const run = await atTerminal(t, call, [[/y, n, or c/, typed], [/"action"/]]);
    assert.match(run.text, new RegExp(`\\{"action":"${action}"\\}`));
  }
  const off = await rialto(call);
  assert.equal(off.stdout, '{"action":"decline"}\n', 'without a terminal it is declined');
});

test('Ctrl-C ends a question', async (t) => {
  const run = await atTerminal(t, ['call', '-c', both(tempDir()), 'odd__form'], [[/y, n, or c/, '\x03']]);
  assert.equal(run.code, 1);
});

// The terminal was read for as long as a call took: the first key stopped a call in the background, and what was typed
// for the shell was lost.
test('a call without a question leaves the keys to the shell', async (t) => {
  const call = `'${rialtoBin}' call -c '${both(tempDir())}' odd__slow`;
  for (const script of [`set -m; ${call} & wait; read line; echo "the shell got $line"`, `${call}; read line; echo "the shell got $line"`]) {
    const { text } = await atTerminal(t, ['-c', script], [[/waiting for slow/, 'ahead\n'], [/at last/], [/the shell got ahead/]], { program: '/bin/bash' });
    assert.match(text, /at last[^]*the shell got ahead/);
  }
});

// A name that no server can have ended the program with a signal.
test('call by a daemon without a configuration: names that no server can have', async (t) => {
  const { dir } = await serve(t, null);
  const env = { XDG_RUNTIME_DIR: dir, HOME: dir, XDG_CONFIG_HOME: dir };
  for (const name of ['a b', '']) {
    const { code, stderr } = await rialto(['call', name, 'x'], { env, cwd: dir });
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(`there is no server '${name}'`));
  }
});

test('what takes more than a second shows that it goes on, on a terminal only', async (t) => {
  const dir = tempDir();
  const file = writeConfig(dir, { servers: { odd: odd(dir), late: { command: '/bin/sh', args: ['-c', `sleep 2; exec ${fakeBin} --name late`] } } });
  const call = await atTerminal(t, ['call', '-c', file, 'odd__slow'], []);
  assert.match(call.text, /waiting for slow of odd \(\d s\)[^]*\r\x1b\[K[^]*at last/);
  const list = await atTerminal(t, ['tools', '-c', file], []);
  assert.match(list.text, /starting late \(\d s\)/);
  assert.doesNotMatch((await rialto(['tools', '-c', file])).stderr, /starting/);
  assert.doesNotMatch((await atTerminal(t, ['tools', '-q', '-c', file], [])).text, /starting/);
});

test('call uses the daemon that runs with the same file, questions and progress included', async (t) => {
  const dir = tempDir();
  const server = await serve(t, { servers: { odd: odd(dir), alpha: fake('--name', 'alpha') } });
  const env = { XDG_RUNTIME_DIR: server.dir };
  await until('the tools', async () => (await rialto(['tools', '-c', server.config, '--daemon'], { env })).stdout.includes('odd__needy'));
  const pid = () => fs.readFileSync(path.join(dir, 'odd.started'), 'utf8');
  const before = pid();
  const run = (...args) => rialto(['call', '-c', server.config, ...args], { env });
  assert.equal((await run('odd__needy', 'path=a', 'mode=1')).stdout, '{"path":"a","mode":1}\n');
  assert.match((await run('odd__neddy')).stderr, /did you mean 'odd__needy'/);
  assert.match((await run('odd', 'neddy')).stderr, /did you mean 'needy'/);
  assert.match((await run('odd', 'needy')).stderr, /'path', 'mode' are missing/);
  assert.equal((await run('odd__form')).stdout, '{"action":"decline"}\n');
  const asked = await atTerminal(t, ['call', '-c', server.config, 'odd__form'],
    [[/y, n, or c/, 'y\n'], [/Town/, 'Rome\n'], [/size/, '2\n'], [/colour/, '\n'], [/gift/, 'n\n'], [/"action"/]], { env });
  assert.match(asked.text, /"content":\{"city":"Rome","size":2,"gift":false\}/);
  const slow = await atTerminal(t, ['call', '-c', server.config, 'alpha__slow', 'steps=3', 'ms=100'], [], { env });
  assert.match(slow.text, /3 of 3|2 of 3/);
  assert.equal(pid(), before, 'no server was started for it');
  assert.equal((await run('--alone', 'odd__needy', 'path=a', 'mode=1')).code, 0);
  assert.notEqual(pid(), before, '--alone starts one');
});

test('call by the daemon with a name that is not shown: expose: search', async (t) => {
  const server = await serve(t, { expose: 'search', servers: { alpha: fake('--name', 'alpha') } });
  const env = { XDG_RUNTIME_DIR: server.dir };
  await until('it is up', async () => (await rialto(['status', '-c', server.config], { env })).code === 0);
  const run = await rialto(['call', '-c', server.config, 'alpha__add', 'a=2', 'b=3'], { env });
  assert.equal(run.stdout, '5\n', run.stderr);
});

test('tools: grouped by server, with arguments and costs, cropped on a terminal', async (t) => {
  const dir = tempDir();
  const file = writeConfig(dir, {
    servers: { odd: odd(dir), alpha: fake('--name', 'alpha') },
    views: { small: { servers: ['odd'], deny: ['slow'] } },
  });
  const { stdout, code } = await rialto(['tools', '-c', file]);
  assert.equal(code, 0);
  assert.match(stdout, /^odd: 5 tools, \d+ tokens\n {2}odd__picture +\d+ {2}Gives a picture\.\n/);
  assert.match(stdout, /\n {2}odd__needy +\d+ {2}Needs things\.\n +path=STRING mode=INTEGER \[deep=BOOLEAN\]\n/);
  assert.match(stdout, /\nalpha: \d+ tools, \d+ tokens\n/);
  assert.match(stdout, /\nall: \d+ tools, [\d,]+ tokens\nview small: 4 tools, \d+ tokens\n$/);
  const list = JSON.parse((await rialto(['tools', '-c', file, '--json'])).stdout);
  const sum = (of) => of.reduce((n, x) => n + x.tokens, 0);
  const ours = list.filter((x) => x.server === 'odd');
  assert.ok(stdout.includes(`odd: 5 tools, ${sum(ours)} tokens`));
  assert.ok(stdout.includes(`view small: 4 tools, ${sum(ours.filter((x) => x.own_name !== 'slow'))} tokens`));
  const narrow = await atTerminal(t, ['tools', '-c', file], [], { columns: 60 });
  for (const line of narrow.text.replaceAll(/\x1b\[[\d;]*m/g, '').split(/\r*\n/)) assert.ok(line.length <= 60, line);
  assert.match(narrow.text, /path=STRING mode=IN.*\.\.\./);
});

test('tools SERVER and tools TOOL start and show only that', async () => {
  const dir = tempDir();
  const file = both(dir);
  const env = { XDG_CACHE_HOME: dir };
  const server = await rialto(['tools', '-c', file, 'odd'], { env });
  assert.match(server.stdout, /^odd: 5 tools/);
  assert.doesNotMatch(server.stdout, /alpha/);
  const tool = await rialto(['tools', '-c', file, 'odd__needy'], { env });
  assert.match(tool.stdout, /^odd__needy: \d+ tokens, 'needy' of server 'odd'\n\n {2}Needs things\.\n\nrialto call odd__needy path=STRING mode=INTEGER \[deep=BOOLEAN\]\n {2}path {2}where\n/);
  assert.ok(!wasStarted(dir, 'alpha'));
  assert.equal(JSON.parse((await rialto(['tools', '--json', '-c', file, 'odd__needy'], { env })).stdout)[0].name, 'odd__needy');
  const wrong = await rialto(['tools', '-c', file, 'odd__nedy'], { env });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /did you mean 'odd__needy'/);
});

test('/api/tools lists what `rialto tools` does', async (t) => {
  const server = await serve(t, { servers: { alpha: fake('--name', 'alpha') } });
  const client = await new HttpClient(server.url).connect();
  await until('the tools', async () => (await client.toolNames()).length > 5);
  const answer = await (await fetch(new URL('/api/tools', server.url))).json();
  const own = JSON.parse((await rialto(['tools', '-c', server.config, '--json'])).stdout);
  assert.deepEqual(answer.tools, own);
  assert.equal(answer.tokens, own.reduce((n, x) => n + x.tokens, 0));
});

test('check warns of programs that are not there and of values that nobody has', async () => {
  const file = writeConfig(tempDir(), {
    servers: {
      gone: { command: 'no-such-program-anywhere' },
      path: { command: '/no/such/program' },
      poor: { ...fake('--name', 'poor'), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } },
      far: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: 'Bearer ${RIALTO_TEST_NO_TOKEN}' } },
      off: { command: 'also-not-there', enabled: false },
    },
  });
  const { code, stdout } = await rialto(['check', '-c', file]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /servers\.gone[^\n]*no program 'no-such-program-anywhere'/);
  assert.match(stdout, /servers\.path[^\n]*no program '\/no\/such\/program'/);
  assert.match(stdout, /servers\.poor[^\n]*no value for RIALTO_TEST_NO_SUCH_KEY/);
  assert.match(stdout, /servers\.far[^\n]*no value for RIALTO_TEST_NO_TOKEN/);
  assert.doesNotMatch(stdout, /also-not-there/);
  const rich = await rialto(['check', '-c', file], { env: { RIALTO_TEST_NO_SUCH_KEY: 'x', RIALTO_TEST_NO_TOKEN: 'y' } });
  assert.doesNotMatch(rich.stdout, /no value/);
});

// Only args, url, env and headers were looked at: 'serve' left a server out for its folder, its env_file or the secret of
// its client, and 'check' had said that all was fine.
test('check warns of whatever serve would leave a server out for', async () => {
  const file = writeConfig(tempDir(), {
    servers: {
      folder: { ...fake(), cwd: '${RIALTO_TEST_NO_FOLDER}' }, words: { ...fake(), env_file: '/nowhere/.env' },
      client: { url: 'https://127.0.0.1:1/mcp', auth: { client_id: 'i', client_secret: '${RIALTO_TEST_NO_SECRET}' } },
      project: { ...fake(), scope: 'project', args: ['${PROJECT}'] },
    },
  });
  const { code, stdout, stderr } = await rialto(['check', '-c', file]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /servers\.folder[^\n]*no value for RIALTO_TEST_NO_FOLDER/);
  assert.match(stdout, /servers\.words[^\n]*is left out: [^\n]*\/nowhere\/\.env/);
  assert.match(stdout, /servers\.client[^\n]*no value for RIALTO_TEST_NO_SECRET/);
  assert.doesNotMatch(stdout, /servers\.project/);
  assert.equal(stderr, '');
});

test('status names the secret that is missing; calls -f shows arguments and results; the banner', async (t) => {
  const server = await serve(t, {
    servers: { alpha: fake('--name', 'alpha'), poor: { ...fake('--name', 'poor'), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } } },
  });
  const env = { XDG_RUNTIME_DIR: server.dir };
  await until('the banner', () => server.stderr().includes(`, ${server.config}: 1 server`));
  const client = await new HttpClient(server.url).connect();
  await until('the tools', async () => (await client.toolNames()).includes('alpha__add'));
  assert.match((await rialto(['status', '-c', server.config], { env })).stdout, /Left out: poor \(no value for RIALTO_TEST_NO_SUCH_KEY\)/);
  await client.call('alpha__add', { a: 19, b: 23 });
  const follow = start(rialtoBin, ['calls', '-f', '-c', server.config], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => follow.kill('SIGTERM'));
  let text = '';
  follow.stdout.on('data', (d) => { text += d; });
  await until('the call', () => /alpha +add [^\n]*\n +arguments \{"a":19,"b":23\}\n +result +\{[^\n]*42/.test(text)).catch((e) => { throw new Error(`${e.message}: ${text}`); });
});
