// `rialto doctor`: for each kind of problem it says what is wrong and what to do about it, it says what is
// fine, and it changes nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { before, test } from 'node:test';
import {
  fake, fakeBin, HttpClient, rialto, root, serve, start, tempDir, until, within, writeConfig,
} from './lib.mjs';
import { Authority } from './tls_lib.mjs';

const node = process.execPath;
const fixture = (name) => path.join(root, 'tests/fixture', name);

// The environment of the tests must not matter.
const noProxy = Object.fromEntries(['http_proxy', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY', 'no_proxy', 'NO_PROXY']
  .map((name) => [name, '']));
const modest = { listen: '127.0.0.1:0', limits: { connections: 100 } };

/** Runs the doctor on a configuration in a new folder: {code, checks, text, find(pattern, server)}. */
async function doctor(config, { args = [], env = {}, dir = tempDir(), timeout = 60_000 } = {}) {
  const file = config && writeConfig(dir, { ...modest, ...config });
  const where = {
    HOME: dir, XDG_CONFIG_HOME: dir, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: path.join(dir, 'cache'), ...noProxy, ...env,
  };
  const { code, stdout, stderr } = await rialto(['doctor', '--json', ...(file ? ['-c', file] : []), ...args],
    { env: where, cwd: dir, timeout });
  assert.ok(stdout, stderr);
  const found = JSON.parse(stdout);
  assert.equal(code, found.failed ? 1 : 0);
  assert.equal(found.ok, found.failed === 0);
  assert.equal(found.checks.length, found.passed + found.warnings + found.failed);
  return {
    ...found, code, dir, all: stdout + stderr,
    find: (pattern, server) => {
      const hits = found.checks.filter((c) => pattern.test(c.text) && (!server || c.server === server));
      assert.ok(hits.length, `${pattern} (${server}) in\n${JSON.stringify(found.checks, null, 1)}`);
      return hits[0];
    },
  };
}

/** The check must be there with this level, and its hint must match. */
function expectCheck(result, level, text, hint, server) {
  const check = result.find(text, server);
  assert.equal(check.level, level, JSON.stringify(check));
  if (hint) assert.match(check.hint ?? '', hint);
  return check;
}

function executable(file, text, mode = 0o755) {
  fs.writeFileSync(file, text);
  fs.chmodSync(file, mode);
  return file;
}

// A server of the initialize era with the tools that its argument lists.
const tiny = `
const tools = JSON.parse(process.argv[2]);
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tiny', version: '1' } }),
  'tools/list': () => ({ tools: tools.map((t) => ({ inputSchema: { type: 'object' }, ...t })) }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const body = answers[method] ? { result: answers[method](params) } : { error: { code: -32601, message: 'no' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...body }) + '\\n');
});`;

// --- nothing is wrong ---

test('all is fine: how long each phase took, and nothing is changed', async () => {
  const r = await doctor({ servers: { files: fake() } });
  assert.equal(r.code, 0);
  assert.equal(r.warnings, 0, r.all);
  const up = expectCheck(r, 'ok', /^up after .*program .*greeting .*lists .*speaks 2025-11-25, \d+ tools/, null, 'files');
  assert.equal(up.protocol, '2025-11-25');
  assert.equal(up.transport, 'stdio');
  assert.ok(up.tools > 5 && up.spawn_us > 0 && up.greeting_us > 0 && up.lists_us > 0, JSON.stringify(up));
  expectCheck(r, 'ok', /rialto\.json \(given with -c\)/);
  expectCheck(r, 'ok', /^command: \/.*fake_server$/, null, 'files');
  expectCheck(r, 'ok', /listen: 127\.0\.0\.1:0 is free/);
  expectCheck(r, 'ok', /none is running/);
  assert.deepEqual(fs.readdirSync(r.dir), ['rialto.json']);
});

test('as text: groups, levels, hints, a summary; -q leaves out what is fine', async () => {
  const dir = tempDir();
  const file = writeConfig(dir, { ...modest, servers: { good: fake(), bad: { command: 'no-such-program' } } });
  const env = { ...noProxy, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: dir };
  const { code, stdout, stderr } = await rialto(['doctor', '-c', file], { env });
  assert.equal(code, 1);
  assert.match(stdout, /^configuration\n {2}ok {4}\/.*\n/);
  assert.match(stdout, /\n\nserver good\n {2}ok {4}command: .*\n {2}ok {4}up after .*\n\n/);
  assert.match(stdout, /\nserver bad\n {2}FAIL {2}command: no-such-program is in none .*\n {8}hint: install it/);
  assert.match(stdout, /\n\n\d+ checks: 1 failed, 0 warnings\n$/);
  assert.equal(stderr, '');
  const quiet = await rialto(['doctor', '-q', '-c', file], { env });
  assert.match(quiet.stdout, /^server bad\n {2}FAIL .*\n {8}hint: .*\n\n\d+ checks: 1 failed/);
});

test('a name limits it to one server; --no-start starts none', async () => {
  const dir = tempDir();
  const mark = (name) => ({ command: '/bin/sh', args: ['-c', `touch ${dir}/${name}; exit 1`], era: 'legacy' });
  const config = { servers: { one: mark('one'), two: mark('two') } };
  const looked = await doctor(config, { args: ['--no-start'] });
  assert.equal(looked.code, 0);
  assert.deepEqual(fs.readdirSync(dir), []);
  const r = await doctor(config, { args: ['one'] });
  assert.equal(r.code, 1);
  assert.deepEqual(fs.readdirSync(dir), ['one']);
  assert.ok(r.checks.every((c) => c.server !== 'two'));
  const wrong = await rialto(['doctor', '-c', writeConfig(dir, config), 'onw']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /there is no server 'onw'\nhint: did you mean 'one'\?/);
});

// --- the configuration ---

test('which file is read, and which are not', async () => {
  const dir = tempDir();
  fs.writeFileSync(path.join(dir, 'rialto.yaml'), 'listen: 127.0.0.1:0\nservers: {}\n');
  fs.writeFileSync(path.join(dir, 'mcp.json'), '{"mcpServers":{}}');
  const r = await doctor(null, { dir, args: ['--no-start'], env: { RIALTO_LOG_LEVEL: 'info' } });
  expectCheck(r, 'ok', /^\.\/rialto\.yaml \(the first that was found\)/);
  expectCheck(r, 'warn', /\.\/mcp\.json is there as well, but not read/, /\.\/rialto\.yaml comes before it/);
  expectCheck(r, 'ok', /RIALTO_LOG_LEVEL is set, and wins over `log\.level`/);
  expectCheck(r, 'warn', /it has no servers/, /--explain servers/);
  const named = await doctor(null, { dir, args: ['--no-start'], env: { RIALTO_CONFIG: path.join(dir, 'mcp.json') } });
  expectCheck(named, 'ok', /mcp\.json \(named by RIALTO_CONFIG\)/);
  const none = await doctor(null, { env: { RIALTO_LISTEN: '127.0.0.1:0' } });
  assert.equal(none.code, 0);
  expectCheck(none, 'warn', /there is no file/, /looked for .*\.\/rialto\.yaml/);
  expectCheck(none, 'ok', /^up after/, null, 'demo');
});

test('errors and warnings of the configuration', async () => {
  const r = await doctor({ servers: { x: { comand: 'y' } }, listen: '127.0.0.1:0' });
  assert.equal(r.code, 1);
  expectCheck(r, 'fail', /comand.*command/, /config --explain/);
  const tls = await doctor({ listen: { address: '127.0.0.1:0', tls: { cert: '/no/cert', key: '/no/key' } } });
  expectCheck(tls, 'fail', /listen\[0\]\.tls.*\/no\/cert/);
});

test('secrets: which are missing, and none is ever shown', async () => {
  const dir = tempDir();
  const leak = 'echo "token is $MY_TOKEN and $OTHER" >&2; exit 1';
  const r = await doctor({
    secrets: { directory: `${dir}/none`, command: ['no-such-keeper'] },
    servers: {
      lacks: { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: 'Bearer ${NOT_SET_ANYWHERE}' } },
      leaks: { command: '/bin/sh', args: ['-c', leak], env: { MY_TOKEN: 'plain-sight-77', OTHER: '${FROM_ENV}' } },
      inside: { url: 'http://user:pass-word-5@127.0.0.1:9/key-in-the-path' },
    },
  }, { env: { FROM_ENV: 'quite-secret-42' } });
  expectCheck(r, 'fail', /no value for NOT_SET_ANYWHERE/, /environment/, 'lacks');
  assert.deepEqual(r.find(/exited with 1/, 'leaks').lines, ['token is *** and ***']);
  assert.doesNotMatch(r.all, /plain-sight-77|quite-secret-42|pass-word-5|key-in-the-path/);
  expectCheck(r, 'warn', /secrets\.directory: .*none is not to be read/);
  expectCheck(r, 'warn', /secrets\.command: no-such-keeper is not to be found/);
});

// --- programs ---

test('programs that cannot be started, each for its own reason', async () => {
  const dir = tempDir();
  const at = (name) => path.join(dir, name);
  executable(at('locked'), '#!/bin/sh\n', 0o644);
  executable(at('orphan'), '#!/no/such/interpreter\n');
  executable(at('wants-uvx'), '#!/usr/bin/env uvx\n');
  executable(at('dos'), '#!/bin/sh\r\nexit 0\r\n');
  const PATH = `${dir}/bin:/usr/bin:/bin`;
  const empty = { PATH: `${dir}/nothing` };
  const r = await doctor({
    servers: {
      npx: { command: 'npx', args: ['-y', 'x'], env: empty },
      uvx: { command: 'uvx', env: empty },
      python: { command: 'python', env: empty },
      docker: { command: 'docker', env: empty },
      own: { command: 'my-own-server', env: { PATH } },
      file: { command: '/no/such/file' },
      blanks: { command: 'npx -y server', env: { PATH } },
      home: { command: '~/server' },
      relative: { command: './server', cwd: dir },
      locked: { command: at('locked') },
      orphan: { command: at('orphan') },
      wants: { command: at('wants-uvx'), env: { PATH: '/usr/bin:/bin' } },
      dos: { command: at('dos') },
      nowhere: { command: '/bin/sh', cwd: at('no-folder') },
      nofolder: { command: '/bin/sh', cwd: at('dos') },
      tilde: { command: '/bin/sh', cwd: '~/x' },
      off: { command: 'x', enabled: false },
    },
  });
  assert.equal(r.failed, 16, r.all);
  expectCheck(r, 'fail', /npx is in none of the folders of its PATH: .*nothing/, /^apt install npm$/, 'npx');
  expectCheck(r, 'fail', /uvx is in none/, /pipx install uv/, 'uvx');
  expectCheck(r, 'fail', /python is in none/, /python-is-python3/, 'python');
  expectCheck(r, 'fail', /docker is in none/, /docker\.io/, 'docker');
  expectCheck(r, 'fail', /my-own-server is in none .*\/usr\/bin/, /whole path/, 'own');
  expectCheck(r, 'fail', /there is no file \/no\/such\/file/, /correct the path/, 'file');
  expectCheck(r, 'fail', /npx -y server/, /`args`/, 'blanks');
  expectCheck(r, 'fail', /there is no file ~\/server/, /no shell/, 'home');
  expectCheck(r, 'fail', /there is no file \.\/server in \//, /whole path/, 'relative');
  expectCheck(r, 'fail', /locked may not be executed/, /chmod \+x/, 'locked');
  expectCheck(r, 'fail', /orphan is a script for \/no\/such\/interpreter/, /first line/, 'orphan');
  expectCheck(r, 'fail', /wants-uvx is a script for uvx/, /pipx install uv/, 'wants');
  expectCheck(r, 'fail', /dos is a script for \/bin\/sh/, /as on Windows.*sed/, 'dos');
  expectCheck(r, 'fail', /cwd: .*no-folder: No such file/, /make that folder/, 'nowhere');
  expectCheck(r, 'fail', /cwd: .*dos: Not a directory/, null, 'nofolder');
  expectCheck(r, 'fail', /cwd: ~\/x/, /~ is not replaced/, 'tilde');
  expectCheck(r, 'warn', /is switched off/, /enabled/, 'off');
});

test('paths that depend on where one stands, and files that are not there', async () => {
  const dir = tempDir();
  executable(path.join(dir, 'server.js'), tiny);
  executable(path.join(dir, 'run'), `#!/bin/sh\nexec ${node} server.js '[]'\n`);
  const r = await doctor({
    servers: {
      args: { command: node, args: ['server.js', '[]'] },
      command: { command: './run' },
      gone: { command: node, args: ['gone.js'], cwd: dir },
      home: { command: node, args: ['~/server.js'] },
    },
  }, { dir });
  expectCheck(r, 'warn', /server\.js depends on the folder/, /`cwd`/, 'args');
  expectCheck(r, 'warn', /command: \.\/run depends on the folder/, /whole path/, 'command');
  expectCheck(r, 'ok', /^up after/, null, 'command');
  expectCheck(r, 'warn', /it offers nothing/, /arguments or a token/, 'command');
  expectCheck(r, 'warn', /there is no file .*\/gone\.js/, /whole path/, 'gone');
  expectCheck(r, 'fail', /exited with 1/, /npm install/, 'gone');
  expectCheck(r, 'warn', /there is no file ~\/server\.js/, /no shell/, 'home');
});

// --- servers that start, or try to ---

test('servers that start badly or not at all, all at once and within the limit', async () => {
  const tools = (...list) => ({ command: node, args: ['-e', tiny, 'x', JSON.stringify(list)] });
  const began = Date.now();
  const r = await doctor({
    servers: {
      dies: { command: '/bin/sh', args: ['-c', 'echo one >&2; echo two: no luck >&2; exit 5'] },
      module: { command: node, args: ['-e', 'require("no-such-module")'] },
      ends: { command: '/bin/true' },
      crashes: { command: '/bin/sh', args: ['-c', 'kill -SEGV $$'] },
      junk: fake('--junk'),
      chatter: { command: '/bin/sh', args: ['-c', 'echo Welcome to my program; sleep 60'], start_timeout: '2s' },
      hangs: { ...fake('--silent'), start_timeout: '10m' },
      exits: { command: node, args: [fixture('odd.mjs'), 'exits'] },
      silent: { command: node, args: [fixture('odd.mjs'), 'silent'] },
      picky: {
        ...tools({ name: 'read' }, { name: 'write' }, { name: 'later', execution: { taskSupport: 'required' } }, { name: 'bare', inputSchema: null }),
        allow: ['read', 'bare', 'reed'], approve: ['wrote'], tools: { zzz: { name: 'y' } },
      },
    },
  }, { timeout: 120_000 });
  assert.ok(Date.now() - began < 60_000, `took ${Date.now() - began} ms`);

  const dies = expectCheck(r, 'fail', /exited with 5/, /by hand/, 'dies');
  assert.deepEqual(dies.lines, ['one', 'two: no luck']);
  expectCheck(r, 'fail', /exited with 1/, /npm install/, 'module');
  expectCheck(r, 'fail', /exited with 0/, /not be an MCP server/, 'ends');
  expectCheck(r, 'fail', /killed by SIGSEGV/, /crashed/, 'crashes');
  expectCheck(r, 'ok', /^up after/, null, 'junk');
  expectCheck(r, 'warn', /not JSON.*Server ready, enjoy!/, /must go to stderr/, 'junk');
  expectCheck(r, 'fail', /was not ready within 2000 ms/, /start_timeout/, 'chatter');
  expectCheck(r, 'warn', /not JSON.*Welcome to my program/, /stderr.*`command`/, 'chatter');
  expectCheck(r, 'fail', /was not ready within 15000 ms/, /`start_timeout`.* no longer than 15 s/, 'hangs');
  expectCheck(r, 'ok', /^up after/, null, 'exits');
  expectCheck(r, 'warn', /came up the second time/, /`era: legacy`/, 'exits');
  expectCheck(r, 'ok', /^up after/, null, 'silent');
  expectCheck(r, 'warn', /does not answer server\/discover.*`era: legacy`/, null, 'silent');
  expectCheck(r, 'ok', /3 tools$/, null, 'picky');
  expectCheck(r, 'ok', /1 tool is left out by `allow` or `deny`: write/, null, 'picky');
  expectCheck(r, 'warn', /tool 'bare' has no schema/, null, 'picky');
  expectCheck(r, 'warn', /allow: 'reed' is none of its tools/, /did you mean 'read'/, 'picky');
  expectCheck(r, 'warn', /approve: 'wrote' is none of its tools/, /did you mean 'write'/, 'picky');
  expectCheck(r, 'warn', /tools: 'zzz' is none of its tools/, /^it has read, write, bare$/, 'picky');
});

test('a server that ends at the first start is given a second one', async () => {
  const r = await doctor({ servers: { exits: { command: node, args: [fixture('odd.mjs'), 'exits'] } } });
  assert.equal(r.code, 0, r.all);
  expectCheck(r, 'warn', /came up the second time/, /`era: legacy`/, 'exits');
});

// --- addresses of others ---

let authority;
before(() => { authority = new Authority(); });

async function listen(t, server) {
  server.on('tlsClientError', () => {});
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections?.(); server.close(); });
  return server.address().port;
}

test('servers elsewhere: refused, protected, at another path, no MCP at all', async (t) => {
  const says = (status, type, body) => listen(t, http.createServer((request, response) => {
    request.resume();
    response.writeHead(status, { 'Content-Type': type });
    response.end(body);
  }));
  const at = async (...answer) => ({ url: `http://127.0.0.1:${await says(...answer)}/x` });
  const open = [];
  t.after(() => open.forEach((s) => s.destroy()));
  const gone = net.createServer();
  const port = await listen(t, gone);
  gone.close();
  const r = await doctor({
    servers: {
      refused: { url: `http://127.0.0.1:${port}/mcp` },
      ws: { url: `ws://127.0.0.1:${port}/mcp` },
      token: await at(401, 'text/plain', 'no'),
      forbidden: await at(403, 'text/plain', 'no'),
      path: await at(404, 'text/html', 'nothing here'),
      page: await at(200, 'text/html', '<html>'),
      trouble: await at(500, 'text/plain', 'oops'),
      mute: { url: `http://127.0.0.1:${await listen(t, net.createServer((s) => { s.on('error', () => {}); open.push(s); }))}/x`, start_timeout: '1s' },
    },
  });
  assert.equal(r.failed, 8, r.all);
  expectCheck(r, 'fail', /Connection refused/i, /nothing listens there/, 'refused');
  expectCheck(r, 'fail', /connection refused/i, /nothing listens there/, 'ws');
  expectCheck(r, 'fail', /needs a sign-in/, /rialto login/, 'token');
  expectCheck(r, 'fail', /HTTP 403/, /token/, 'forbidden');
  expectCheck(r, 'fail', /HTTP 404/, /\/mcp.*\/sse; http:\/\/127\.0\.0\.1:\d+\/mcp may be it/, 'path');
  expectCheck(r, 'fail', /not JSON/, /web page/, 'page');
  expectCheck(r, 'fail', /HTTP 500/, /its own log/, 'trouble');
  expectCheck(r, 'fail', /was not ready within 1000 ms/, /does not answer/, 'mute');
});

test('certificates that are not fine, and which of them `ca` helps with', async (t) => {
  const secure = (pair) => listen(t, https.createServer({
    cert: fs.readFileSync(pair.cert), key: fs.readFileSync(pair.key),
  }, (request, response) => response.end()));
  const good = await secure(authority.sign('good'));
  const expired = await secure(authority.sign('expired', { days: -1 }));
  const other = await secure(authority.sign('other', { names: 'DNS:other.example.com' }));
  const plain = await listen(t, http.createServer((request, response) => response.end()));
  const at = (port, scheme = 'https') => `${scheme}://localhost:${port}/mcp`;
  const ca = authority.file;
  const r = await doctor({
    servers: {
      unknown: { url: at(good) },
      unknown_ws: { url: at(good, 'wss') },
      expired: { url: at(expired), ca },
      expired_ws: { url: at(expired, 'wss'), ca },
      other: { url: at(other), ca },
      other_ws: { url: at(other, 'wss'), ca },
      plain: { url: at(plain) },
    },
  });
  assert.equal(r.failed, 7, r.all);
  expectCheck(r, 'fail', /certificate/, /in this server's `ca`/, 'unknown');
  expectCheck(r, 'fail', /certificate/, /in this server's `ca`/, 'unknown_ws');
  expectCheck(r, 'fail', /expired/, /`ca` does not help/, 'expired');
  expectCheck(r, 'fail', /expired/, /`ca` does not help/, 'expired_ws');
  expectCheck(r, 'fail', /is not available/, /another host.*`ca` does not help/, 'other');
  expectCheck(r, 'fail', /is not available/, /another host.*`ca` does not help/, 'other_ws');
  expectCheck(r, 'fail', /is not available/, /http:\/\//, 'plain');
});

test('a proxy in the environment', async () => {
  const config = { servers: { far: { url: 'http://tools.example.com/mcp' }, near: { url: 'http://127.0.0.1:9/mcp' } } };
  const env = { http_proxy: 'http://127.0.0.1:9' };
  const r = await doctor(config, { env, args: ['--no-start'] });
  expectCheck(r, 'warn', /tools\.example\.com:80 is reached through the proxy in http_proxy/, /NO_PROXY/, 'far');
  assert.ok(r.checks.every((c) => c.server !== 'near' || c.level === 'ok'));
  expectCheck(r, 'warn', /http_proxy is set: agents/, /NO_PROXY=localhost,127\.0\.0\.1/);
  const excepted = await doctor(config, {
    env: { ...env, no_proxy: 'example.com,localhost,127.0.0.1' }, args: ['--no-start'],
  });
  assert.equal(excepted.warnings, 0, excepted.all);
});

// --- our own addresses ---

test('an address that another program has, by which; a socket left behind; no folder', async (t) => {
  const port = await listen(t, http.createServer());
  const taken = await doctor({ listen: `127.0.0.1:${port}` }, { args: ['--no-start'] });
  assert.equal(taken.code, 1);
  expectCheck(taken, 'fail', new RegExp(`127\\.0\\.0\\.1:${port} is taken by process ${process.pid} \\(`), /another address/);

  const dir = tempDir();
  const live = path.join(dir, 'live.sock');
  const stale = path.join(dir, 'stale.sock');
  await new Promise((resolve) => { const s = net.createServer().listen(live, resolve); t.after(() => s.close()); });
  const child = start(node, ['-e', `require('net').createServer().listen(${JSON.stringify(stale)})`]);
  await until('the socket', () => fs.existsSync(stale));
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  child.kill('SIGKILL');
  await within(10_000, 'its end', ended);
  const file = executable(path.join(dir, 'file'), '');
  const r = await doctor({
    listen: [`unix:${live}`, `unix:${stale}`, `unix:${file}`, 'unix:/proc/none/x.sock', `unix:${dir}/new.sock`],
    control: `unix:${stale}`,
  }, { args: ['--no-start'] });
  assert.equal(r.failed, 3, r.all);
  expectCheck(r, 'fail', new RegExp(`live\\.sock is taken by process ${process.pid}`));
  expectCheck(r, 'warn', /listen: an earlier daemon has left .*stale\.sock behind/, /replaces it/);
  expectCheck(r, 'warn', /^none is running, but an earlier one has left .*stale\.sock/, /replaces it/);
  expectCheck(r, 'fail', /file is there already, and no socket/);
  expectCheck(r, 'fail', /none\/x\.sock cannot be made/, /folder/);
  expectCheck(r, 'ok', /new\.sock is free/);
  assert.ok(fs.existsSync(stale), 'nothing is changed');
});

test('the daemon that runs: its address is ours, and what fails there is told', async (t) => {
  const lock = path.join(tempDir(), 'lock');
  const once = `mkdir ${lock} || exit 1; exec ${fakeBin}`;
  const server = await serve(t, {
    servers: { good: fake(), bad: { command: 'no-such-program' }, once: { command: '/bin/sh', args: ['-c', once], era: 'legacy' } },
  });
  await new HttpClient(server.url).connect().then((c) => c.waitFor('good__echo', 'once__echo'));
  const env = { XDG_RUNTIME_DIR: server.dir };
  await until('the failure', async () => (await fetch(`${server.origin}/status`).then((x) => x.json()))
    .servers.some((s) => s.state === 'failing'));
  const where = { env: { ...env, XDG_CACHE_HOME: tempDir(), RIALTO_LISTEN: server.origin.slice('http://'.length) } };
  const same = await rialto(['doctor', '--json', '--no-start', '-c', server.config], where);
  const { checks } = JSON.parse(same.stdout);
  const has = (pattern) => checks.find((c) => pattern.test(c.text)) ?? assert.fail(`${pattern}\n${same.stdout}`);
  has(new RegExp(`^runs as process ${server.pid} for \\d+ s now; it says: degraded`));
  assert.equal(has(/listen: the daemon has 127\.0\.0\.1:\d+/).level, 'ok');
  assert.equal(has(/its server 'bad' is failing: .*no-such-program/).level, 'warn');
  assert.ok(!checks.some((c) => /another configuration/.test(c.text)));
  assert.ok(!checks.some((c) => /another PATH/.test(c.text)));
  const twice = await rialto(['doctor', '-c', server.config], where);
  assert.match(twice.stdout, /server once\n(?:.*\n)+? {2}FAIL {2}is not available: exited with 1.*\n(?:.*\n)? {8}hint: .*some cannot run twice/);
  const folder = path.join(server.dir, 'rialto');
  const socket = path.join(folder, fs.readdirSync(folder).find((n) => n.endsWith('.sock')));
  const other = await doctor({ control: `unix:${socket}` }, { env: { ...env, PATH: '/usr/bin:/bin:/of/mine' }, args: ['--no-start'] });
  expectCheck(other, 'warn', /it has another PATH than you here: \//, /whole paths/);
  expectCheck(other, 'warn', /it runs with another configuration: \/.*rialto\.json/, /rialto doctor -c \//);
});

test('a daemon that does not answer, folders that cannot be used', async (t) => {
  const dir = tempDir();
  const socket = path.join(dir, 'mute.sock');
  const open = new Set();
  const mute = net.createServer((s) => { open.add(s); s.on('error', () => {}); });
  await new Promise((resolve) => { mute.listen(socket, resolve); });
  t.after(() => { for (const s of open) s.destroy(); mute.close(); });
  const folder = executable(path.join(dir, 'file'), '');
  const r = await doctor({ control: `unix:${socket}` }, {
    args: ['--no-start'], env: { XDG_CACHE_HOME: folder, XDG_RUNTIME_DIR: folder },
  });
  expectCheck(r, 'fail', /mute\.sock, but does not answer within 5 s/, /start it again/);
  expectCheck(r, 'warn', /cache: .* cannot be written to/, /XDG_CACHE_HOME/);
  expectCheck(r, 'warn', /sockets: .* cannot be used/, /XDG_RUNTIME_DIR/);
});
