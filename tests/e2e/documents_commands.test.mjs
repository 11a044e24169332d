// Every command of Rialto that README and docs show is run as written (shown.mjs has the list): npm servers are those
// installed in this tree, addresses are those of a local daemon, and the home has the configuration files of hosts.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { freePort } from './brokers.mjs';
import { page as openPage, serveBrowser } from './browser_lib.mjs';
import { samples } from './hosts_samples.mjs';
import { expectClean, fake, fakeBin, npmFolder, rialto, rialtoBin, root, runCommand, sanitizerEnv, serve, start, tempDir, until, within } from './lib.mjs';
import { Person, startIssuer, startProtected } from './oidc_lib.mjs';
import { commandsOf, listed } from './shown.mjs';

const greeting = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n';
const greetingOfEditors = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n';
const programOf = (...words) => `#!/bin/sh\nexec ${words.map((w) => `'${w}'`).join(' ')} "$@"\n`;

/** A home with the hosts' files, `rialto` and the programs that the pages name; `npx` starts what is installed here. */
function home() {
  const dir = fs.realpathSync(tempDir());
  for (const { file, text } of Object.values(samples)) {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), text);
  }
  const bin = path.join(dir, 'bin');
  fs.mkdirSync(bin);
  fs.symlinkSync(rialtoBin, path.join(bin, 'rialto'));
  fs.symlinkSync(process.execPath, path.join(bin, 'node'));
  const write = (name, text) => fs.writeFileSync(path.join(bin, name), text, { mode: 0o755 });
  const acp = (...words) => programOf(process.execPath, path.join(root, 'tests/fixture/acp', words[0]), ...words.slice(1));
  write('npx', `#!/bin/sh\nshift; name=$1; shift\nexec node ${npmFolder}/node_modules/$name/dist/index.js "$@"\n`);
  write('my-proxy', acp('proxy.mjs', '--dialect', 'P3').replace(' "$@"', ''));
  write('my-agent', acp('agent.mjs').replace(' "$@"', ''));
  write('claude-agent-acp', programOf(process.execPath, path.join(root, 'build/npm-agents/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js')));
  return {
    dir,
    env: {
      ...sanitizerEnv, HOME: dir, PATH: `${bin}:/usr/bin:/bin`, XDG_CONFIG_HOME: path.join(dir, '.config'), XDG_STATE_HOME: path.join(dir, 'state'),
      XDG_RUNTIME_DIR: dir, RIALTO_LISTEN: '127.0.0.1:0', CODEX_HOME: '', CLAUDE_CONFIG_DIR: '',
    },
  };
}

/** Runs a line to its end, which must succeed. */
async function runLine(line, { dir, env }, input = '') {
  const { code, stdout, stderr } = await runCommand('/bin/sh', ['-c', line], { cwd: dir, env, input });
  expectClean(stderr);
  assert.equal(code, 0, `${line}\n${stdout}${stderr}`);
  return stdout;
}

/** Starts a line that does not end by itself: {said(), say(text), end(signal)}. */
function begin(t, line, { dir, env }) {
  const child = start('/bin/sh', ['-c', `exec ${line}`], { cwd: dir, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { text += d; });
  child.stdin.on('error', () => {});
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  t.after(() => child.kill('SIGKILL'));
  const end = async (signal) => {
    if (signal) child.kill(signal);
    else child.stdin.end();
    assert.equal(await within(20_000, `the end of ${line}`, ended), 0, `${line}\n${text}`);
    expectClean(text);
  };
  return { said: () => text, say: (words) => child.stdin.write(words), end, child };
}

/** Starts such a line, waits for the output that shows that it works, then ends it. */
async function runUntil(t, line, h, { says, hears = '', signal = 'SIGTERM', meanwhile = () => {} }) {
  const one = begin(t, line, h);
  if (hears) one.say(hears);
  await until(`${says} of ${line}`, async () => { await meanwhile(); return says.test(one.said()); }, 20_000)
    .catch((e) => { throw new Error(`${e.message}\n${one.said()}`); });
  await one.end(signal);
}

/** Lines that do not end by themselves: what they print, what input they get first, and the signal that ends them. */
const long = [
  [/^rialto serve/, { says: /listening on/ }],
  [/^rialto stdio/, { says: /"serverInfo"/, hears: greeting, signal: null }],
  [/^rialto browser(?! pair)/, { says: /"serverInfo"/, hears: greeting, signal: null }],
  [/^rialto conductor proxy/, { says: /_proxy\/successor/, hears: greetingOfEditors.replace('initialize', '_proxy/initialize'), signal: null }],
  [/^rialto conductor/, { says: /"agentCapabilities"/, hears: greetingOfEditors, signal: null }],
  [/^rialto top$/, { says: /files/, signal: 'SIGINT' }],
  [/^rialto logs -f/, { says: /listening on/, signal: 'SIGINT' }],
  [/^rialto calls -f/, { says: /read_file/, signal: 'SIGINT' }],
  [/^rialto bus (worker|proxy)/, { says: /joined/, signal: 'SIGINT' }],
];
const longOf = (line) => long.find(([pattern]) => pattern.test(line))?.[1];

for (const [page, lines] of [['docs/hosts.md', commandsOf('hosts')], ['docs/guide.md', commandsOf('servers')]]) {
  test(`the commands of ${page}`, async (t) => {
    const h = home();
    const far = await serve(t, { servers: { all: fake() }, names: 'bare' });
    for (const shownLine of lines) {
      const line = shownLine.replace(/https:\/\/tools\.example\.com\/(\w+)/, (_, p) => (p === 'mcp' ? far.url : `${far.origin}/${p}`)).replace('-l 8080', '-l 127.0.0.1:0');
      if (longOf(line)) {
        await runUntil(t, line, h, longOf(line));
        continue;
      }
      const daemon = line.startsWith('rialto restart') && begin(t, 'rialto serve', h);
      if (daemon) await until('the daemon', () => /listening on/.test(daemon.said()));
      await runLine(line, h);
      if (daemon) await daemon.end('SIGTERM');
    }
  });
}

/** A home with a configuration that has something of everything. */
async function livedIn(t) {
  const h = home();
  const data = path.join(h.dir, 'data');
  fs.mkdirSync(data);
  fs.writeFileSync(path.join(data, 'notes.txt'), 'noted\n');
  h.data = data;
  h.config = path.join(h.dir, '.config/rialto/rialto.yaml');
  fs.mkdirSync(path.dirname(h.config));
  fs.writeFileSync(h.config, `listen: 127.0.0.1:0
audit: {}
bus: {url: "embedded:"}
views: {laptop: {deny: ["*delete*"]}}
servers:
  files:
    command: npx
    args: [-y, "@modelcontextprotocol/server-filesystem", ${data}]
`);
  return h;
}

async function daemonOf(t, h) {
  const daemon = begin(t, 'rialto serve', h);
  await until('the daemon', () => /listening on/.test(daemon.said()));
  await until('its server', async () => (await runCommand('rialto', ['status'], { cwd: h.dir, env: { ...process.env, ...h.env } })).code === 0, 20_000);
  return daemon;
}

// Nothing checked the README's list of commands: a command that had changed would have stayed there.
test('the commands of the README and of docs/operation.md', async (t) => {
  const h = await livedIn(t);
  const block = commandsOf('the daemon', 'README.md').map((l) => l.replaceAll('/data', h.data));
  const lines = block.filter((l) => l !== 'rialto serve' && !l.startsWith('rialto call demo')); // docs.test.mjs runs `call demo` with its sample
  lines.splice(lines.indexOf('rialto lock') + 1, 0, ...commandsOf('the daemon', 'docs/operation.md'));
  lines.splice(lines.indexOf('rialto stdio'), 0, 'rialto serve');
  let daemon;
  for (const line of lines) {
    if (line === 'rialto serve') { daemon = await daemonOf(t, h); continue; }
    if (line === 'rialto bus worker') { await daemon.end('SIGTERM'); daemon = null; }
    const read = lines.find((l) => l.startsWith('rialto call files'));
    const meanwhile = () => (line === 'rialto calls -f' ? runLine(read, h) : null);
    if (longOf(line)) await runUntil(t, line, h, { ...longOf(line), meanwhile });
    else await runLine((line.startsWith('rialto add files') ? 'rialto remove files && ' : '') + line, h); // `files` exists already
  }
});

// No test had run the commands of the pages about the bus, the conductor and signing in, nor those in the middle of a
// sentence.
test('a look at the bus by hand, as docs/bus.md has it', async (t) => {
  const h = home();
  h.env.RIALTO_CONFIG = path.join(h.dir, 'rialto.yaml');
  fs.writeFileSync(h.env.RIALTO_CONFIG, 'listen: 127.0.0.1:0\nbus: {url: "embedded:"}\n');
  const [serves, looks, ...none] = commandsOf('a bus by hand');
  assert.deepEqual([serves, none], ['rialto serve &', []]);
  const daemon = begin(t, serves.slice(0, -2), h);
  await until('the bus', () => fs.existsSync(path.join(h.dir, 'rialto/bus.sock')));
  const said = (await runLine(looks, h)).trim().split('\n').map((l) => JSON.parse(l));
  assert.ok(said.some((m) => m.op === 'msg' && m.topic === 'hello.world' && m.env.body === 'hi'), JSON.stringify(said));
  await daemon.end('SIGTERM');
});

test('the command lines of docs/conductor.md and of the example', async (t) => {
  for (const line of commandsOf('conductor')) {
    const h = home();
    fs.mkdirSync(path.join(h.dir, '.config/rialto'));
    fs.writeFileSync(path.join(h.dir, '.config/rialto/rialto.yaml'), `servers: {all: {command: ${fakeBin}}}\n`);
    fs.copyFileSync(path.join(root, 'examples/conductor/greeter.mjs'), path.join(h.dir, 'greeter.mjs'));
    await runUntil(t, line, h, longOf(line));
  }
});

// A user who had signed in with a browser could not sign in with a device code afterwards: the registration for browsers
// was used, and the error ended in an empty hint.
test('the commands of docs/signin.md', async (t) => {
  const as = await startIssuer(t);
  const far = await startProtected(t, as);
  const h = home();
  h.env.RIALTO_CONFIG = path.join(h.dir, 'rialto.yaml');
  h.env.BROWSER = 'true';
  fs.writeFileSync(h.env.RIALTO_CONFIG, `listen: 127.0.0.1:0\nservers: {issues: {url: "${far.url}"}}\n`);
  const daemon = begin(t, 'rialto serve', h);
  await until('the daemon', () => /listening on/.test(daemon.said()));
  const [shows] = commandsOf('signing in, the page');
  const state = async () => (await runCommand('/bin/sh', ['-c', shows], { cwd: h.dir, env: h.env })).stdout;
  await until('that a sign-in is needed', async () => /needs a sign-in: rialto login issues/.test(await state()));

  const signIn = async (line) => {
    const login = begin(t, line, h);
    const address = await until('the address', () => login.said().match(/^https?:\/\/\S+/m)?.[0], 10_000)
      .catch((e) => { throw new Error(`${e.message}\n${login.said()}`); });
    const device = line.includes('--device');
    if (device) await new Person().enter(address);
    else assert.equal((await fetch(await new Person().signIn(address))).status, 200);
    await within(30_000, `the end of ${line}`, new Promise((resolve) => { login.child.on('close', resolve); }));
    assert.match(login.said(), /Signed in to 'issues'/);
    await until('the server', async () => /\bup\b/.test(await state()));
  };
  const lines = commandsOf('signing in').filter((l) => !/pair/.test(l));
  assert.ok(lines.length >= 5, lines.join('\n'));
  for (const line of lines.map((l) => l.replace('NAME', 'issues').replace('https://tools.example.com/mcp', far.url))) {
    if (/^rialto login issues/.test(line)) await signIn(line);
    else if (line === 'rialto login') assert.equal((await rialto(['login'])).code, 2); // names no server
    else if (line.startsWith('curl')) assert.match(await runLine(line, h), /^HTTP\/1\.1 401[^]*www-authenticate: Bearer/i);
    else await runLine(line, h);
  }
  await daemon.end('SIGTERM');
});

test('the commands about tokens that we issue ourselves', async (t) => {
  const h = home();
  h.env.RIALTO_CONFIG = path.join(h.dir, 'rialto.yaml');
  fs.writeFileSync(h.env.RIALTO_CONFIG, 'listen: 127.0.0.1:0\npublic_url: https://rialto.example.test\nauth: {issuer: built-in}\n');
  const daemon = begin(t, 'rialto serve', h);
  await until('the daemon', () => /listening on/.test(daemon.said()));
  for (const line of commandsOf('signing in').filter((l) => /pair/.test(l))) {
    if (line.includes('ID')) { // nobody has signed in: the command must say that there is no such sign-in
      const { code, stderr } = await runCommand('/bin/sh', ['-c', line.replace('ID', '1')], { cwd: h.dir, env: h.env });
      assert.equal(code, 1, stderr);
      assert.match(stderr, /rialto pair --list/);
    } else {
      await runLine(line, h, 'open sesame 123\n');
    }
  }
  await daemon.end('SIGTERM');
});

/** `a [B|C] d` stands for `a d`, `a B d` and `a C d`. */
function variants(line) {
  const [, before, inside, after] = line.match(/^([^[]*?) ?\[([^\]]+)\](.*)$/) ?? [];
  return before === undefined ? [line] : ['', ...inside.split('|')].flatMap((choice) => variants(`${before}${choice && ` ${choice}`}${after}`));
}

test('commands in the middle of a sentence', async (t) => {
  const h = await livedIn(t);
  fs.appendFileSync(h.config, `  notes: {command: ${fakeBin}, args: [--name, notes], approve: [add]}\n`);
  fs.writeFileSync(path.join(h.dir, 'rockbot.json'), JSON.stringify({ mcpServers: { notes: fake('--name', 'notes') } }));
  const far = await serveBrowser(t);
  await openPage(t, far, 'S', []);
  const daemon = await daemonOf(t, h);
  await runLine(`rialto call files read_file path=${path.join(h.data, 'notes.txt')}`, h);
  const ids = async (command) => JSON.parse(await runLine(`${command} --json`, h)).map((c) => c.id);
  const [done] = await ids('rialto calls');
  const held = begin(t, 'rialto call notes add a=1 b=2', h);
  const [waits] = await until('the held call', async () => { const w = await ids('rialto approvals'); return w.length && w; });

  const stands = {
    'KEY=VALUE...': `path=${path.join(h.data, 'notes.txt')}`, 'rialto.yaml': 'imported.yaml', 'call NAME': 'call files__list_allowed_directories', 'token add NAME': 'token add desk',
    'approve ID': `approve ${waits}`, '--session ID': '--session S', 41: done, ID: done, KEY: 'listen', COMMAND: 'serve', FILE: '.cursor/mcp.json', URL: far.origin,
    TOPIC: 'hello.world', BODY: 'hi', PATTERN: "'#'", PROGRAM: rialtoBin, SERVER: 'files', NAME: 'files', TOOL: 'files__read_file', 'proxy CMD...': 'proxy my-proxy', 'CMD...': 'my-agent', '…': 'files',
  };
  const filled = (line) => Object.entries(stands).reduce((text, [what, by]) => text.replace(what, by), line);
  const asBlock = new Set(listed.filter(([, c]) => !c.inline).map(([, c]) => c.text));
  const lines = commandsOf('in sentences').flatMap(variants).map(filled).filter((l) => !asBlock.has(l));
  // These only name a command, which needs more arguments: its help is run instead.
  const names = ['rialto add', 'rialto bus', 'rialto call', 'rialto conductor', 'rialto import', 'rialto rename', 'rialto replay'];
  const elsewhere = /^rialto (serve|stdio --alone|browser(?! pair)|conductor|bus (worker|proxy))/; // run in an environment of their own, not beside the daemon
  // These come last, in this order: `token` needs a token that was added, and `upgrade` replaces the daemon.
  const turn = (line) => ['token add', 'token', 'audit', 'upgrade'].findIndex((w) => line.startsWith(`rialto ${w}`));
  let ran = 0;
  for (const line of [...new Set(lines)].toSorted((a, b) => turn(a) - turn(b))) {
    ran++;
    if (names.includes(line)) {
      await runLine(line.replace('rialto', 'rialto help'), h);
    } else if (line.startsWith('rialto bus tail') && !line.includes('--dead')) {
      await runUntil(t, line, h, { says: /hello\.world|mcp\.event\.x/, signal: 'SIGINT', meanwhile: () => runLine(`rialto bus pub ${line.includes('mcp.event') ? 'mcp.event.x' : 'hello.world'} hi`, h) });
    } else if (elsewhere.test(line)) {
      const other = { dir: h.dir, env: { ...h.env, XDG_RUNTIME_DIR: tempDir(), XDG_STATE_HOME: tempDir() } };
      const config = path.join(other.env.XDG_RUNTIME_DIR, 'rialto.yaml');
      fs.writeFileSync(config, `listen: 127.0.0.1:${await freePort()}\nbus: {url: "embedded:"}\nservers: {notes: {command: ${fakeBin}}}\n`);
      other.env.RIALTO_CONFIG = config;
      await runUntil(t, line.replace('-c .cursor/mcp.json', `-c ${config}`).replace('--debug', '--debug agent my-agent'), other, longOf(line));
    } else {
      await runLine(line, h);
    }
  }
  assert.ok(ran > 60, `${ran}`);
  await held.end(); // one of the commands has approved it
  await daemon.end('SIGTERM');
});

test('make run builds, serves and says where to look', async (t) => {
  const h = home();
  const [line] = commandsOf('make run');
  const child = start('/bin/sh', ['-c', line], { cwd: root, detached: true, env: { ...process.env, ...h.env, PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { said += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const end = () => { process.kill(-child.pid, 'SIGINT'); return within(20_000, 'its end', ended); }; // as Ctrl-C does
  t.after(end);
  await until('the daemon', () => /listening on http:\/\/127\.0\.0\.1:\d+/.test(said), 100_000);
  const [, origin] = said.match(/(http:\/\/127\.0\.0\.1:\d+)/);
  assert.equal((await fetch(`${origin}/healthz`)).status, 200);
});
