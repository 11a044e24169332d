// One server without a file: `rialto serve -- COMMAND`, `serve --from URL`, `stdio URL`, `inspect`: the tasks
// of small bridges, with servers from npm.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import {
  HttpClient, fakeBin, load, logged, npmServer, rialto, rialtoBin, runCommand, sanitizerEnv, serve, start, tempDir, until,
} from './lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');

const everything = npmServer('server-everything', ['stdio']);
const words = [everything.command, ...everything.args];

/** A folder with configurations that must not be read. */
function trap() {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'config/rialto'), { recursive: true });
  for (const f of ['rialto.yaml', 'config/rialto/rialto.yaml']) fs.writeFileSync(path.join(dir, f), 'this: is not read\n');
  fs.mkdirSync(path.join(dir, 'state/rialto'), { recursive: true });
  fs.writeFileSync(path.join(dir, 'state/rialto/tokens.yaml'), 'auth: {tokens: []}\n');
  return { cwd: dir, env: { HOME: dir, XDG_CONFIG_HOME: path.join(dir, 'config'), XDG_STATE_HOME: path.join(dir, 'state') } };
}

/** `rialto serve ARGS`, stopped at the end of the test: {url, stderr(), child}. */
async function serveOne(t, args, { cwd, env } = trap()) {
  const child = start(rialtoBin, ['serve', '-l', '127.0.0.1:0', ...args], {
    cwd, env: { ...process.env, ...sanitizerEnv, ...env }, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const s of [child.stdout, child.stderr]) s.on('data', (d) => { text += d; });
  t.after(() => child.kill());
  const [, origin] = await until('the address', () => text.match(/listening on (http:\S+)/));
  return { url: `${origin}/mcp`, stderr: () => text, child };
}

const toolsOf = async (url) => (await (await new HttpClient(url).connect()).request('tools/list')).result.tools;

test('serve -- COMMAND: a server of npm over HTTP, its names untouched, no file read', async (t) => {
  const one = await serveOne(t, ['-e', 'GREETING=hello ${HOME}', '--', ...words]);
  const client = await new HttpClient(one.url).connect();
  const names = await until('its tools', async () => {
    const { tools } = (await client.request('tools/list')).result;
    return tools.length && tools.map((x) => x.name);
  });
  assert.ok(names.includes('echo'), `${names}`);
  assert.match(await client.text('echo', { message: 'by one line' }), /by one line/);
  const env = await client.text(names.find((n) => /env/i.test(n)));
  assert.match(env, /"GREETING": "hello \$\{HOME\}"/, 'taken as it is');
  assert.ok((await client.request('resources/list')).result.resources.length > 0);
  // A reload finds no file to read, and the server stays.
  one.child.kill('SIGHUP');
  await logged(one, /no configuration file to read/);
  assert.match(await client.text('echo', { message: 'still there' }), /still there/);
});

test('--allow and --deny, and a port alone', async (t) => {
  const free = await new Promise((resolve) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => resolve(port)); });
  });
  const one = await serveOne(t, ['-l', `${free}`, '--allow', 'ec*', '--allow', 'none', '--', fakeBin]);
  assert.match(one.url, new RegExp(`^http://127\\.0\\.0\\.1:${free}/mcp$`));
  await until('only this one', async () => (await toolsOf(one.url)).map((x) => x.name).join() === 'echo');
});

test('serve --from and stdio URL: a server elsewhere, with headers', async (t) => {
  const far = await serve(t, {
    servers: { all: everything }, names: 'bare',
    auth: { tokens: [{ name: 'me', hash: 'sha256:0b14d501a594442a01c6859541bcb3e8164d183d32937b851835442f69d5c94e' }] }, // the hash of password1
  });
  const header = ['-H', 'Authorization: Bearer password1'];
  const near = await serveOne(t, ['--from', far.url, ...header]);
  const client = await new HttpClient(near.url).connect();
  await until('its tools', async () => (await client.request('tools/list')).result.tools.some((x) => x.name === 'echo'));
  assert.match(await client.text('echo', { message: 'from afar' }), /from afar/);

  const { cwd, env } = trap();
  const host = new Client({ name: 'host', version: '1' });
  await host.connect(new StdioClientTransport({
    command: rialtoBin, args: ['stdio', far.url, ...header, '--deny', 'get-*'], cwd, env: { ...process.env, ...sanitizerEnv, ...env }, stderr: 'pipe',
  }));
  t.after(() => host.close());
  const { tools } = await host.listTools();
  assert.ok(tools.some((x) => x.name === 'echo'));
  assert.ok(!tools.some((x) => x.name.startsWith('get-')), 'denied');
  assert.match((await host.callTool({ name: 'echo', arguments: { message: 'as a program' } })).content[0].text, /as a program/);
});

test('inspect shows everything with schemas', async (t) => {
  const at = trap();
  const shown = await rialto(['inspect', '--', ...words], at);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /^\S*everything\S* \S+ \(MCP 20/);
  assert.match(shown.stdout, /^Tools \(\d+\)\n\n {2}echo\n[^]*?"message": \{/m);
  for (const part of ['Resources', 'Resource templates', 'Prompts']) assert.match(shown.stdout, new RegExp(`^${part} \\(\\d+\\)$`, 'm'));
  const json = JSON.parse((await rialto(['inspect', '--json', '--deny', 'echo', '--', ...words], at)).stdout);
  assert.match(json.server.name, /everything/);
  assert.ok(json.tools.length && json.tools.every((x) => x.inputSchema && x.name !== 'echo'));
  assert.ok(json.resources.length && json.resourceTemplates.length && json.prompts.length);
  const far = await serve(t, { servers: { all: { command: fakeBin } }, names: 'bare' });
  assert.ok(JSON.parse((await rialto(['inspect', far.url, '--json'], at)).stdout).tools.some((x) => x.name === 'echo'));
});

test('a command that is not there: status 1, with its name', async () => {
  const at = trap();
  for (const args of [['serve', '--'], ['inspect', '--'], ['stdio', '--']]) {
    for (const name of ['no-such-program', '/no/such/program']) {
      const { code, stderr } = await runCommand(rialtoBin, [...args, name, '-y'], at);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`there is no program '${name}'`));
    }
  }
  const gone = await rialto(['inspect', 'http://127.0.0.1:9/mcp'], at);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /is not available/);
  for (const args of [['serve', '--'], ['inspect'], ['serve', '-c', 'x', '--', 'true'], ['serve', '--from', 'http://x/', '--', 'true'],
    ['serve', '-l', '99999', '--', 'true'], ['serve', '-H', 'nonsense', '--', 'true'], ['serve', 'npx']]) {
    assert.equal((await rialto(args, at)).code, 2, `${args}`);
  }
});

// "another program has it" was also said of our own daemon, and people looked for a program that was not there.
test('an address that another Rialto has: it says which', async (t) => {
  const server = await serve(t, { servers: {} });
  const port = new URL(server.origin).port;
  const again = (env) => rialto(['serve', '-l', port, '--', fakeBin], { cwd: tempDir(), env });
  const { code, stderr } = await again({ XDG_RUNTIME_DIR: server.dir });
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}[^]*hint: a Rialto of yours has it already: pid \\d+, ${fs.realpathSync(server.config)};`));
  assert.doesNotMatch(stderr, /another program/);
  const stranger = net.createServer().listen(0, '127.0.0.1');
  await until('it listens', () => stranger.listening);
  t.after(() => stranger.close());
  const other = await rialto(['serve', '-l', String(stranger.address().port), '--', fakeBin], { cwd: tempDir(), env: { XDG_RUNTIME_DIR: server.dir } });
  assert.match(other.stderr, /hint: another program has it/);
});

// 0.0.0.0 is not an address that a client can connect to, and without a port it was refused.
test('an address for all: what is printed can be reached, and a host alone has the usual port', async (t) => {
  const dir = tempDir();
  const refused = await rialto(['serve', '-l', '0.0.0.0', '--', fakeBin], { cwd: dir, env: { HOME: dir, XDG_CONFIG_HOME: dir, XDG_RUNTIME_DIR: dir } });
  assert.match(refused.stderr, /other machines reach 0\.0\.0\.0:8765, and there are no tokens/);
  const server = await serve(t, { servers: {}, auth: { anonymous: true } }, { args: ['-l', '0.0.0.0:0'] });
  const urls = await until('the welcome', () => /Ctrl-C/.test(server.stderr()) && [...server.stderr().matchAll(/ (http:\/\/\S+)\/mcp /g)].map((m) => m[1]));
  assert.ok(urls.some((u) => u.startsWith('http://127.0.0.1:')), server.stderr());
  const elsewhere = Object.values(os.networkInterfaces()).flat().filter((i) => i.family === 'IPv4' && !i.internal);
  assert.equal(urls.length, 1 + elsewhere.length, server.stderr());
  for (const { address } of elsewhere) assert.ok(urls.some((u) => new URL(u).hostname === address), address);
  assert.equal((await fetch(`${urls.find((u) => u.includes('127.0.0.1'))}/healthz`)).status, 200);
});
