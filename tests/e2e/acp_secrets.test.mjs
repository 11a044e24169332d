// Traces showed secrets. What a client or a proxy told an agent about MCP servers in session/new and its
// like (variables, headers, arguments, addresses) was written into --trace and --debug files and shown by
// the live viewer as it came. Here a secret is planted in every such place, in every container and through
// envelopes and batches, comes back in updates and on stderr, and is looked for in all that a person can
// see. The agent itself gets everything as it was sent.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { agent, Conductor, proxy } from './acp_lib.mjs';
import { tempDir, until, within } from './lib.mjs';

let last = 0;
const planted = [];
const named = []; // secrets recognised by their name or place: hidden everywhere
/** A new secret. */
function plant() {
  planted.push(`planted-${1000 + ++last}-secret`);
  named.push(planted.at(-1));
  return planted.at(-1);
}
/** A secret that only its place in env or headers marks as one: it is hidden there. */
function plantQuietly() {
  planted.push(`odd-${1000 + ++last}-"value"\\`);
  return planted.at(-1);
}

const list = () => [
  { name: 'a', command: '/bin/a', args: ['--token=' + plant(), '--api-key', plant(), 'X-Key: ' + plant()], env: [{ name: 'DB_PASSWORD', value: plant() }, { name: 'ODD', value: plantQuietly() }] },
  { type: 'http', name: 'h', url: `https://me:${plant()}@example.com/mcp?api_key=${plant()}`, headers: [{ name: 'X-Api-Key', value: plant() }, { name: 'Authorization', value: `Bearer ${plant()}` }] },
];
const map = () => ({
  m: { command: '/bin/m', args: [], env: { GITHUB_TOKEN: plant(), NOTHING: plantQuietly() } },
  n: { url: 'https://example.com', headers: { 'X-Api-Key': plant(), Cookie: `a=${plant()}` } },
  o: { command: '/bin/o', env: [`O_SECRET=${plant()}`] },
});
const setups = () => [
  ['session/new', { cwd: '/', mcpServers: list() }],
  ['session/new', { cwd: '/', mcp_servers: list() }],
  ['session/new', { cwd: '/', mcpServers: map(), tools: { mcpServers: map() } }],
  ['session/load', { cwd: '/', sessionId: 'x', mcpServers: list() }],
  ['session/resume', { cwd: '/', sessionId: 'x', mcpServers: map() }],
  ['session/fork', { cwd: '/', sessionId: 'x', mcpServers: list() }],
];

function expectNone(where, text) {
  assert.ok(text.length > 0, `${where} is empty`);
  for (const secret of planted) {
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), Buffer.from(secret).toString('base64').slice(0, -4)]) {
      const at = text.indexOf(form);
      assert.ok(at < 0, `${where} shows ${form}: ${text.slice(Math.max(0, at - 200), at + 80)}`);
    }
  }
}

const readAll = (dir) => fs.readdirSync(dir).map((f) => fs.readFileSync(`${dir}/${f}`, 'utf8')).join('');
async function viewer(c) {
  const [, address] = await until('the viewer', () => /watch at (http:\S+)/.exec(c.stderr));
  let text = '';
  for (let from = 0; ;) {
    const { events, next } = await (await fetch(`${address}events?from=${from}`)).json();
    text += events.map((e) => JSON.stringify(e)).join('\n');
    if (!events.length) return text;
    from = next;
  }
}

for (const chain of [[], ['P2'], ['P0', 'P3']]) {
  test(`no trace of a chain shows what is secret in its messages (${chain.length} proxies)`, { timeout: 60_000 }, async (t) => {
    planted.length = 0;
    named.length = 0;
    const dir = tempDir();
    const command = JSON.stringify({ command: '/bin/sh', args: ['-c', `exec ${agent('--no-connect', 'yes').replaceAll("'", '"')}`], env: { SOME_VARIABLE: plantQuietly() } });
    const c = new Conductor(t, ['-v', '--serve', '--trace', `${dir}/trace`, '--debug', '--debug-dir', `${dir}/logs`, 'agent', ...chain.map((d) => `${d}:${proxy(d)}`), command]);
    await c.initialize();
    let session;
    for (const [method, params] of setups()) {
      const { sessionId } = await within(20_000, method, c.request(method, params));
      session ??= sessionId;
    }
    await c.prompt(session, { command: 'echo', text: named.join(' ') });
    c.send(`[${JSON.stringify({ jsonrpc: '2.0', id: 'b', method: 'session/new', params: { cwd: '/', mcpServers: list() } })}]`);
    // An unreadable message: its secret cannot be learnt, and must not show either.
    c.child.stdin.write(Buffer.from(`{"jsonrpc":"2.0","method":"session/new","params":{"env":{"TOKEN":"${plant()}"},"x":"\xff"}}\n`, 'latin1'));
    expectNone('the viewer', await viewer(c));
    await c.stop(0);
    expectNone('--trace', fs.readFileSync(`${dir}/trace`, 'utf8'));
    expectNone('--debug', readAll(`${dir}/logs`));
    expectNone('stderr', c.stderr);
    const events = fs.readFileSync(`${dir}/trace`, 'utf8').trim().split('\n').map((l) => JSON.parse(l));
    const [asked] = events.filter((e) => e.method === 'session/new');
    assert.deepEqual(asked.params.mcpServers[0].env, [{ name: 'DB_PASSWORD', value: '***' }, { name: 'ODD', value: '***' }], 'names show');
  });
}

test('the agent gets all of it as it was sent', async (t) => {
  const c = new Conductor(t, ['-q', '--trace', `${tempDir()}/trace`, 'agent', proxy('P2'), agent('--no-connect', 'yes')]);
  await c.initialize();
  for (const servers of [list(), map()]) {
    const sessionId = await c.newSession({ mcpServers: servers });
    const got = await c.ask(sessionId, { command: 'declared' });
    assert.deepEqual(got, Array.isArray(servers) ? servers : Object.entries(servers).map(([name, v]) => ({ name, ...v })));
  }
  await c.stop(0);
});

test('--debug=metadata writes no content at all', async (t) => {
  const dir = `${tempDir()}/not/yet/there`;
  const words = 'tell nobody of the zebra';
  const c = new Conductor(t, ['--debug=metadata', '--debug-dir', dir, 'agent', proxy('P2'), agent('--note', 'zebra')]);
  await c.initialize();
  const session = await c.newSession({ mcpServers: [{ name: 'zebra', command: '/bin/true', args: [], env: [] }] });
  await c.prompt(session, words);
  await assert.rejects(c.request('_test/unknown', { words }));
  c.send(`not a message, but a ${words}`);
  await until('its log line', () => /not a message/.test(c.stderr));
  await c.stop(0);
  const text = readAll(dir);
  assert.doesNotMatch(text, /zebra|tell nobody|stopReason|cwd/);
  assert.match(text, /^C ← \+\d+ms request session\/prompt, \d+ bytes$/m);
  assert.match(text, /^1 ← \+\d+ms notification session\/update, \d+ bytes$/m);
  assert.match(text, /^1 ← \+\d+ms error, \d+ bytes$/m);
});

test('--debug takes no other word', async (t) => {
  const c = new Conductor(t, ['--debug=everything', 'agent', agent()]);
  assert.equal(await within(10_000, 'the end', c.exit), 2);
  assert.match(c.stderr, /--debug takes =metadata or nothing/);
  c.stopping = Promise.resolve();
});
