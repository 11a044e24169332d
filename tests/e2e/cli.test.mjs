// The command line: what is printed where, and with which status it ends.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  fake, HttpClient, rialto, rialtoBin, runCommand, sanitizerEnv, serve, start, StdioClient, tempDir, until,
  writeConfig,
} from './lib.mjs';

const commands = ['serve', 'stdio', 'check', 'config', 'tools', 'call', 'demo-server', 'version', 'help'];
const oneServer = { servers: { alpha: fake('--name', 'alpha') } };

async function ok(args, options) {
  const run = await rialto(args, options);
  assert.equal(run.code, 0, `${args.join(' ')}: ${run.stderr}`);
  return run.stdout;
}

async function refused(code, args, options) {
  const run = await rialto(args, options);
  assert.equal(run.code, code, `${args.join(' ')}: ${run.stdout}${run.stderr}`);
  assert.ok(run.stderr.length > 10, 'the reason is on stderr');
  assert.equal(run.stdout, '', 'stdout stays clean');
  return run.stderr;
}

// What `check` finds is its output and goes to stdout; only its own failures go to stderr.
async function found(args) {
  const run = await rialto(['check', ...args]);
  assert.equal(run.code, 2, run.stdout + run.stderr);
  return run.stdout + run.stderr;
}

test('version', async () => {
  for (const args of [['version'], ['--version']]) assert.match(await ok(args), /^rialto \d+\.\d+\.\d+/);
});

test('help lists every command, and help COMMAND each one', async () => {
  for (const args of [['help'], ['--help']]) {
    const text = await ok(args);
    for (const command of commands) assert.match(text, new RegExp(`^\\s+${command}\\b`, 'm'));
  }
  for (const command of commands) {
    assert.match(await ok(['help', command]), new RegExp(`rialto ${command}`));
    assert.match(await ok([command, '--help']), new RegExp(`rialto ${command}`));
  }
});

test('a wrong command or option: status 2 and the nearest match', async () => {
  assert.match(await refused(2, ['serv']), /serve/);
  assert.match(await refused(2, ['help', 'chek']), /check/);
  await refused(2, ['check', '--no-such-option']);
  // The option before was blamed: "cannot understand the option '--json'; did you mean '--json'?"
  assert.match(await refused(2, ['logs', '--json', '-xf']), /unknown option '-x'$/m);
  assert.match(await refused(2, ['logs', '--json=yes']), /no argument can follow this option: '--json=yes'$/m);
  await refused(2, ['call']);
  await refused(2, []);
});

test('check accepts a good file, our format and mcpServers, JSON and YAML', async () => {
  const dir = tempDir();
  await ok(['check', '-c', writeConfig(dir, oneServer)]);
  await ok(['check', '-c', writeConfig(dir, { mcpServers: oneServer.servers }, 'mcp.json')]);
  await ok(['check', '-c', writeConfig(dir,
    `listen: 127.0.0.1:0\nservers:\n  alpha: {command: ${rialtoBin}, args: [demo-server]}\n`, 'rialto.yaml')]);
});

test('check names file, line, column, key, what was expected and the nearest key, all at once', async () => {
  const file = writeConfig(tempDir(), 'listen: 127.0.0.1:0\nlimits: {message: many}\nservers:\n'
    + '  alpha:\n    comand: x\n    timeout: soon\n', 'rialto.yaml');
  const said = await found(['-c', file]);
  assert.ok(said.includes(path.basename(file)), said);
  assert.match(said, /:2:\d+/, 'line of limits.message');
  assert.match(said, /:5:\d+/, 'line of comand');
  assert.match(said, /:6:\d+/, 'line of timeout');
  assert.match(said, /comand[^]*command/, 'the nearest key');
  assert.match(said, /timeout/);
});

test('check on what is no file, no JSON, no YAML', async () => {
  const dir = tempDir();
  assert.match(await found(['-c', path.join(dir, 'absent.yaml')]), /absent\.yaml/);
  assert.match(await found(['-c', writeConfig(dir, '{"servers": {', 'broken.json')]), /broken\.json:1:\d+/);
  assert.match(await found(['-c', writeConfig(dir, 'a: [1\nb: 2', 'broken.yaml')]), /broken\.yaml:\d+:\d+/);
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x,x]'];
  for (const c of 'bcdefghi') {
    const before = String.fromCharCode(c.charCodeAt(0) - 1);
    bomb.push(`${c}: &${c} [${Array(10).fill(`*${before}`).join()}]`);
  }
  await found(['-c', writeConfig(dir, bomb.join('\n'), 'bomb.yaml')]);
});

test('a broken configuration ends every command with 2', async () => {
  const file = writeConfig(tempDir(), { servers: { a: { comand: 'x' } } });
  for (const command of ['serve', 'stdio', 'tools']) await refused(2, [command, '-c', file]);
  await refused(2, ['call', '-c', file, 'a', 'echo']);
});

test('config --explain knows every key', async () => {
  const all = await ok(['config', '--explain']);
  for (const key of ['listen', 'names', 'servers', 'limits', 'log']) assert.match(all, new RegExp(`\\b${key}\\b`));
  assert.match(await ok(['config', '--explain', 'limits.message']), /16 ?MiB/);
  assert.match(await refused(2, ['config', '--explain', 'lisen']), /listen/);
});

test('the configuration is found by -c, RIALTO_CONFIG and in the folder', async () => {
  const dir = tempDir();
  const file = writeConfig(dir, oneServer);
  for (const [args, options] of [[['-c', file], {}], [['--config', file], {}],
    [[], { env: { RIALTO_CONFIG: file } }], [[], { cwd: dir }]]) {
    assert.match(await ok(['tools', ...args], options), /alpha__echo/);
  }
});

test('tools lists names and descriptions; --json gives the list itself', async () => {
  const file = writeConfig(tempDir(), {
    servers: { alpha: fake('--name', 'alpha'), gone: fake('--exit-at-once'), beta: fake('--name', 'beta') },
  });
  const run = await rialto(['tools', '-c', file]);
  assert.match(run.stdout, /alpha__echo\b.*echo of alpha/);
  assert.ok(run.stdout.indexOf('alpha__echo') < run.stdout.indexOf('beta__echo'));
  assert.match(run.stderr, /gone/, 'a server that is not there is told');
  const data = JSON.parse((await rialto(['tools', '-c', file, '--json'])).stdout);
  const list = Array.isArray(data) ? data : data.tools;
  assert.ok(list.find((tool) => tool.name === 'alpha__echo').inputSchema);
});

// Servers write descriptions and errors, and a terminal obeys control characters in what it prints.
test('control characters of servers do not reach the terminal', async () => {
  const file = writeConfig(tempDir(), {
    servers: { alpha: { ...fake('--name', 'alpha'), tools: { echo: { description: 'red \u001b[31m \u009b31m\u0007 end' } } } },
  });
  assert.match(await ok(['tools', '-c', file]), /^ {2}alpha__echo +\d+ {2}red \\u001b\[31m \\u009b31m\\u0007 end$/m);
  const wrong = await refused(1, ['call', '-c', file, 'alpha', 'ec\u001b[31mho']);
  assert.doesNotMatch(wrong, /\u001b/);
});

test('call prints the result; arguments as JSON or as key=value', async () => {
  const file = writeConfig(tempDir(), oneServer);
  const call = (...args) => ok(['call', '-c', file, 'alpha', ...args]);
  assert.match(await call('add', '{"a":1,"b":2}'), /^3$/m);
  assert.match(await call('add', 'a=40', 'b=2'), /^42$/m);
  assert.match(await call('echo', 'message=hello world', 'flag=true', 'n=1.50'), /hello world/);
  const raw = await ok(['call', '-c', file, '--json', 'alpha', 'echo', '{"n":1.50}']);
  assert.ok(raw.includes('"structuredContent":{"n":1.50}'), raw);
});

test('call that fails ends with 1 and says why', async () => {
  const file = writeConfig(tempDir(), oneServer);
  const call = async (...args) => {
    const run = await rialto(['call', '-c', file, ...args]);
    assert.equal(run.code, 1, `${args}: ${run.stdout}${run.stderr}`);
    return run.stdout + run.stderr;
  };
  assert.match(await call('alpha', 'fail'), /failed on purpose/);
  assert.match(await call('alpha', 'error'), /refused on purpose/);
  assert.match(await call('alpha', 'crash'), /alpha/);
  assert.match(await call('alpha', 'ehco'), /echo/);
  assert.match(await refused(2, ['call', '-c', file, 'alhpa', 'echo']), /alhpa/);
});

// The error was reported twice, the second time with an unrelated reason.
test('output that cannot be written: status 1, and the reason once', async () => {
  const file = writeConfig(tempDir(), oneServer);
  for (const args of [['tools', '-c', file], ['config', '--explain'], ['version']]) {
    const run = await runCommand('/bin/sh', ['-c', '"$0" "$@" > /dev/full', rialtoBin, ...args]);
    assert.equal(run.code, 1, args.join(' '));
    assert.equal(run.stderr, 'rialto: cannot write the output: No space left on device\n');
  }
});

test('no colours off a terminal, none with NO_COLOR', async () => {
  const file = writeConfig(tempDir(), oneServer);
  for (const args of [['help'], ['tools', '-c', file], ['config', '--explain']]) {
    const run = await rialto(args, { env: { NO_COLOR: '1' } });
    assert.doesNotMatch(run.stdout + run.stderr, /\x1b\[/);
  }
});

test('demo-server is a real MCP server', async (t) => {
  const client = await new StdioClient(t, rialtoBin, ['demo-server']).connect();
  const { tools } = (await client.request('tools/list')).result;
  assert.ok(tools.length >= 4);
  for (const tool of tools) {
    assert.ok(tool.description.length > 10, tool.name);
    assert.equal(tool.inputSchema.type, 'object', tool.name);
  }
});

test('the embedded default serves the demo tools', async (t) => {
  const server = await serve(t, null);
  const client = await new HttpClient(server.url).connect();
  const names = await until('demo tools', async () => {
    const listed = await client.toolNames();
    return listed.length > 0 && listed;
  });
  assert.ok(names.some((n) => /time/.test(n)), names.join());
});

test('RIALTO_LISTEN chooses the address', async (t) => {
  const dir = tempDir();
  const socket = path.join(dir, 'r.sock');
  const file = writeConfig(dir, oneServer);
  const child = start(rialtoBin, ['serve', '-c', file], {
    env: { ...process.env, ...sanitizerEnv, RIALTO_LISTEN: `unix:${socket}` }, stdio: 'ignore',
  });
  t.after(() => child.kill('SIGTERM'));
  await until('the socket', () => fs.existsSync(socket));
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600);
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(!fs.existsSync(socket), 'the socket is removed');
});
