// A conductor when things go wrong: components that end, never answer or flood, and what is left
// behind after a thousand sessions.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { agent, Conductor, eventLog, inner, open, proxy, rejects } from './acp_lib.mjs';
import { descendants, expectGone, sleep, until, within } from './lib.mjs';

const promptOf = (c, command) => c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: JSON.stringify(command) }] });

test('agent dies during session/new: the request is answered, its last words told, nothing is left', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--die-in-new')]);
  await c.initialize();
  const family = descendants(c.child.pid);
  assert.equal(family.length, 2);
  await rejects(c.request('session/new', { cwd: '/', mcpServers: [] }), -32603, /component 1 .* exited with 7/);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
  await expectGone(family);
  assert.match(c.stderr, /dying in session\/new/);
});

test('the error of a dead component names it and carries its last lines of stderr', async (t) => {
  const c = await open(t, ['agent', agent()]);
  await assert.rejects(promptOf(c, { command: 'die' }), (e) => {
    assert.equal(e.code, -32603);
    assert.match(e.message, /component 0 \(.*agent\.mjs\) exited with 9/);
    assert.equal(e.data.component, 0);
    assert.equal(e.data.label, 'Agent');
    assert.ok(e.data.stderr.includes('agent: told to die'));
    return true;
  });
  assert.equal(await within(15_000, 'the end', c.exit), 1);
});

test('stderr truncation: a component that floods it is told of by its last lines only', async (t) => {
  const loud = JSON.stringify({ command: '/bin/sh', args: ['-c', 'yes noise | head -c 3000000 >&2; echo the last words >&2; exit 4'] });
  const c = new Conductor(t, ['agent', loud]);
  await assert.rejects(within(20_000, 'initialize', c.initialize()), (e) => {
    assert.match(e.message, /exited with 4/);
    const text = JSON.stringify(e.data.stderr);
    assert.match(text, /the last words/);
    assert.ok(text.length <= 65_536, `${text.length} bytes`);
    return true;
  });
  await c.stop(1);
});

// It reads nothing, so what waits for it never leaves: its end must not wait for that.
test('blocked stdin after stdout EOF is bounded', { timeout: 30_000 }, async (t) => {
  const deaf = JSON.stringify({ command: '/bin/sh', args: ['-c', 'exec >&-; exec sleep 1000'] });
  const c = new Conductor(t, ['agent', deaf]);
  await rejects(c.initialize(1, { filler: 'x'.repeat(1_000_000) }), -32603, /component 0/);
  await c.stop(1);
});

test('proxy dies mid-prompt: the prompt is answered and all ends', async (t) => {
  const c = await open(t, ['agent', proxy('P3'), proxy('P2', '--die-on', 'session/update'), agent()]);
  const family = descendants(c.child.pid);
  const first = promptOf(c, { command: 'wait' });
  const second = promptOf(c, { command: 'echo', text: 'x' });
  await rejects(first, -32603, /component 1 .* exited with 5/);
  await rejects(second, -32603, /component 1 .* exited with 5/);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
  await expectGone(family);
});

test('provider crash: the agent\'s tool call ends and the prompt with it', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--die-on', '_mcp/message'), agent()]);
  await rejects(promptOf(c, { command: 'call_tool', server: 'M2a', tool: 'echo' }), -32603, /component 0/);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
});

test('a component that cannot be started, or ends in initialize: every request is answered with that', async (t) => {
  const c = new Conductor(t, ['agent', '/no/such/program']);
  await rejects(c.initialize(), -32603, /component 0 \(\/no\/such\/program\)/);
  await rejects(c.request('session/new', {}), -32603, /component 0/);
  await c.stop(1);
  const d = new Conductor(t, ['agent', proxy('P3'), agent('--die-in-initialize')]);
  await rejects(d.initialize(), -32603, /component 1 .* exited with 3/);
  await rejects(d.request('session/new', {}), -32603, /component 1/);
  await d.stop(1);
});

test('provider never answers connect: the bridge process ends, the session goes on', { timeout: 60_000 }, async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a', '--silent-connect'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'fine'), ['fine']);
  const waiting = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"bridge_exit","server":"M2a"}' }] });
  await within(30_000, 'the end of the bridge process', waiting);
  assert.equal(c.heard.at(-1).params.update.content.text, '0');
});

test('a connect that is refused closes the socket', async (t) => {
  const c = new Conductor(t, ['agent', agent()]);
  await c.initialize();
  c.session = await c.newSession({ mcpServers: [{ type: 'acp', name: 'nobody', id: 'x' }] });
  assert.deepEqual(await c.prompt(c.session, { command: 'bridge_exit', server: 'nobody' }), ['0']);
});

for (const chain of [[], ['P2'], ['P3', 'P1', 'P2']]) {
  test(`10,000 notifications before a response keep their order (${chain.length} proxies)`, { timeout: 60_000 }, async (t) => {
    const c = await open(t, ['agent', ...chain.map((d) => proxy(d)), agent()]);
    const from = c.heard.length;
    await within(40_000, 'the prompt', promptOf(c, { command: 'updates', count: 10_000 }));
    const texts = c.heard.slice(from).map((m) => m.params.update.content.text);
    assert.equal(texts.length, 10_000);
    assert.ok(texts.every((text, i) => text === String(i)));
  });
}

const resident = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
const descriptors = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;

for (const mode of ['stdio', 'http']) {
  test(`1,000 session/new in one process leave no listener, descriptor or memory behind (${mode})`, { timeout: 120_000 }, async (t) => {
    const log = eventLog();
    const c = new Conductor(t, ['-q', 'agent', '--mcp-bridge', mode, proxy('P2', '--mcp', 'M2a,M3c', '--log', log.file), agent('--http', '--no-connect', 'yes')]);
    await c.initialize();
    const round = async () => {
      const sessionId = await c.newSession();
      await c.request('session/close', { sessionId });
    };
    for (let i = 0; i < 50; i++) await round();
    await sleep(300);
    const [before, memory] = [descriptors(c.child.pid), resident(c.child.pid)];
    for (let i = 0; i < 1000; i++) await round();
    await until(`as few descriptors as before (${before})`, () => descriptors(c.child.pid) <= before);
    const grown = resident(c.child.pid) - memory;
    assert.ok(grown < 24 * 1024, `grown by ${grown} KiB`);
    await c.stop(0);
  });
}

test('closing the input answers what is in flight, then ends with status 0', async (t) => {
  const c = await open(t, ['agent', proxy('P2'), agent()]);
  const last = promptOf(c, { command: 'echo', text: 'last' });
  c.child.stdin.end();
  assert.equal((await within(15_000, 'the answer', last)).stopReason, 'end_turn');
  assert.equal(await within(15_000, 'the end', c.exit), 0);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`${signal} ends it and all its children at once`, async (t) => {
    const c = await open(t, ['agent', inner('proxy', proxy('P2', '--mcp', 'M2a')), agent()]);
    await c.callTool(c.session, 'M2a');
    const family = descendants(c.child.pid);
    c.child.kill(signal);
    assert.equal(await within(15_000, 'the end', c.exit), 0);
    await expectGone(family);
  });
}

// What waited for the answer to initialize was forgotten.
test('SIGTERM before initialize is answered: whatever waits for it is answered as well', async (t) => {
  const c = new Conductor(t, ['agent', JSON.stringify({ command: '/bin/sh', args: ['-c', 'exec sleep 1000'] })]);
  const waiting = [c.initialize(), c.request('session/new', {}), c.request('session/list', {})];
  await until('the agent', () => descendants(c.child.pid).length === 1);
  c.child.kill('SIGTERM');
  for (const w of waiting) await rejects(w, -32603, /is ending/);
  await c.stop(0);
});

test('a wrapper\'s child does not outlive the conductor', async (t) => {
  const wrapped = JSON.stringify({ command: '/bin/sh', args: ['-c', `${agent().replaceAll("'", '"')}; true`] });
  const c = await open(t, ['agent', wrapped]);
  const family = descendants(c.child.pid);
  assert.ok(family.length >= 2);
  await c.stop(0);
  await expectGone(family);
});

// The set-up request's servers were freed with the session, and its answer then looked at them.
test('a session closed while it is being loaded', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--slow-load', 300)]);
  const loading = c.request('session/load', { sessionId: 'old', cwd: '/', mcpServers: [] });
  await sleep(50);
  await c.request('session/close', { sessionId: 'old' });
  assert.equal((await within(15_000, 'the answer', loading)).sessionId, 'old');
  assert.deepEqual(await c.prompt(c.session, 'fine'), ['fine']);
});

// The answer of a component that comes while all is ending found what it belonged to freed.
test('the input closes while a session is being set up', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--slow-load', 5200)]);
  c.request('session/load', { sessionId: 'old', cwd: '/', mcpServers: [] });
  await sleep(50);
  await c.stop(0);
});
