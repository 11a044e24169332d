// `rialto call` printed the text of a tool as it was, and a terminal obeys what it is sent: it was
// cleared, its title changed, or text on it was overwritten. Other commands let characters through
// that reverse the text or are invisible. Here a server has them in everything it says, and every
// command is run on a terminal.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import {
  exchange, fakeBin, HttpClient, logged, rialto, rialtoBin, root, runCommand, serve, tempDir, until, writeConfig,
} from './lib.mjs';

const terminal = path.join(path.dirname(fakeBin), 'terminal');
// A title, another colour (in both spellings), reversed text, overwritten text, a bell.
const evil = 'x\x1b]0;pwned\x07\x1b[31;5mred\u009b32m\u202eexe.gnp\u2066\u200b\u00ad\u{e0041}\rover\x08\x7f\x9d';
const bad = /\x1b\]0;|\x1b\[31;5m|[\x80-\x9f\u00ad\u200b\u202a-\u202e\u2066-\u2069]|\u{e0041}|\rover|[\x00-\x06\x08\x7f]/u;

let dir, server, file, hostile;

before(async () => {
  dir = tempDir();
  fs.writeFileSync(path.join(dir, 'text.json'), JSON.stringify(evil));
  const script = [path.join(root, 'tests/fixture/hostile.mjs'), path.join(dir, 'text.json')];
  hostile = {
    evil: { command: process.execPath, args: script, approve: ['held'] },
    dying: { command: process.execPath, args: [...script, '--dies'] },
  };
  server = await serve({ after: () => {} }, { servers: hostile, log: { level: 'debug' } });
  file = writeConfig(dir, { servers: hostile });
  const client = await new HttpClient(`${server.url}/evil`).connect();
  await client.waitFor('say');
  await client.call('wrong');
  await client.call('fail');
  client.call('held').catch(() => {});
  await logged(server, /held waits for approval/);
  await logged(server, /dying[^\n]*last words/);
});

after(() => server?.stop());

const envOf = () => ({ XDG_RUNTIME_DIR: server.dir, HOME: dir, XDG_CONFIG_HOME: dir, NO_COLOR: '1', TERM: 'xterm' });
const onTerminal = (...args) => runCommand(terminal, ['300', '60', rialtoBin, ...args], { env: envOf(), cwd: server.dir, timeout: 60_000 });

// Text of the server or the file that each command must show: no test passes on empty output.
const commands = {
  tools: [['tools', '-c', 'FILE'], /pwned/],
  'tools --json': [['tools', '--json', '-c', 'FILE'], /pwned/],
  resources: [['resources', '-c', 'FILE'], /pwned/],
  'resources --json': [['resources', '--json', '-c', 'FILE'], /pwned/],
  prompts: [['prompts', '-c', 'FILE'], /pwned/],
  'prompts --json': [['prompts', '--json', '-c', 'FILE'], /pwned/],
  call: [['call', '-c', 'FILE', 'evil', 'say'], /pwned[^]*second\tline/],
  'call --json': [['call', '--json', '-c', 'FILE', 'evil', 'say'], /pwned/],
  'call -v': [['call', '-v', '-c', 'FILE', 'evil', 'say'], /pwned/],
  'call, an error result': [['call', '-c', 'FILE', 'evil', 'wrong'], /pwned/],
  'call, an error': [['call', '-c', 'FILE', 'evil', 'fail'], /pwned/],
  'call, no such tool': [['call', '-c', 'FILE', 'evil', evil], /pwned/],
  'call, a dead server': [['call', '-c', 'FILE', 'dying', 'x'], /pwned/],
  'call --daemon': [['call', '--daemon', '-c', 'SERVED', 'evil', 'say'], /pwned/],
  status: [['status', '-c', 'SERVED'], /dying/],
  'status --json': [['status', '--json', '-c', 'SERVED'], /pwned/],
  logs: [['logs', '-n', '500', '-c', 'SERVED'], /pwned/],
  'logs --json': [['logs', '-n', '500', '--json', '-c', 'SERVED'], /pwned/],
  calls: [['calls', '-c', 'SERVED'], /wrong/],
  'calls --json': [['calls', '--json', '-c', 'SERVED'], /wrong/],
  approvals: [['approvals', '-c', 'SERVED'], /held/],
  'approvals --json': [['approvals', '--json', '-c', 'SERVED'], /held/],
  doctor: [['doctor', '-c', 'FILE'], /pwned/],
  'doctor --json': [['doctor', '--json', '-c', 'FILE'], /pwned/],
  check: [['check', '-c', 'WRONG'], /pwned/],
  'check --json': [['check', '--json', '-c', 'WRONG'], /pwned/],
  config: [['config', '-c', 'ODD'], /pwned/],
  'config --json': [['config', '--json', '-c', 'ODD'], /pwned/],
  import: [['import', 'OTHER'], /pwned/],
  'an unknown command': [[evil], /pwned/],
  'an unknown option': [['tools', `--${evil}`], /pwned/],
};

test('nothing but text reaches a terminal, from any command', async (t) => {
  const files = {
    FILE: file, SERVED: server.config,
    WRONG: writeConfig(dir, { servers: { a: { command: 'x', [evil]: 1 } } }, 'wrong.json'),
    ODD: writeConfig(dir, { servers: { a: { command: `x${evil}` } } }, 'odd.json'),
    OTHER: writeConfig(dir, { mcpServers: { a: { command: 'x', args: [evil], [evil]: 1 } } }, 'other.json'),
  };
  for (const [name, [args, shown]] of Object.entries(commands)) {
    await t.test(name, async () => {
      const { stdout } = await onTerminal(...args.map((a) => files[a] ?? a));
      assert.match(stdout, shown);
      // Line ends are for the terminal, and so is the sequence that erases a line of progress.
      const text = stdout.replaceAll('\r\n', '\n').replaceAll('\r\x1b[K', '');
      const hit = text.match(bad);
      assert.ok(!hit, `${name}: ${JSON.stringify(hit && text.slice(Math.max(0, hit.index - 100), hit.index + 50))}`);
      assert.ok(!text.includes('\x1b'), `${name}: ${JSON.stringify(text)}`);
    });
  }
});

test('nor from top, which draws', async () => {
  const { stdout } = await onTerminal('top', '-n', '1', '-c', server.config);
  assert.match(stdout, /evil/);
  assert.doesNotMatch(stdout, bad);
});

test('nor from the log of the daemon and its first page', async () => {
  const page = await exchange(`${server.origin}/`, { method: 'GET' });
  assert.match(page.text, /pwned/);
  assert.doesNotMatch(page.text, bad);
  await until('a line of the server', () => /pwned/.test(server.stderr()));
  assert.doesNotMatch(server.stderr(), bad);
});

// People redirect results into files; and JSON with escapes means the same.
test('a pipe gets the text of a tool byte for byte, and JSON that is the same', async () => {
  const run = (...args) => rialto(['call', '-c', file, ...args], { env: envOf() });
  const { stdout } = await run('evil', 'say');
  assert.ok(stdout.startsWith(`${evil}\nsecond\tline\n`), JSON.stringify(stdout));
  const json = (await run('--json', 'evil', 'say')).stdout;
  assert.doesNotMatch(json, bad);
  assert.equal(JSON.parse(json).content[0].text, `${evil}\nsecond\tline`);
});
