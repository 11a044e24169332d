// The start of a chain: components that are slow to start, that do not know the dialect they are
// greeted in, that end before they are greeted, or that never answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, Conductor, inner, open, proxy, rejects } from './acp_lib.mjs';
import {
  descendants, rialto, rialtoBin, until, within,
} from './lib.mjs';

/** The same component, started by a shell that does other things first, as npx and uvx do. */
const behind = (before, line) => JSON.stringify({ command: '/bin/sh', args: ['-c', `${before}; exec ${line.replaceAll("'", '"')}`] });
const late = (seconds, line) => behind(`sleep ${seconds}`, line);
const silent = (script = '') => JSON.stringify({ command: '/bin/sh', args: ['-c', `${script} cat > /dev/null`] });
const seen = (c) => c.request('_test/seen', {});

// After five seconds a second initialize, of another dialect, was sent after the first. The proxy accepted
// the first and passed the second on as a method that it did not know; our own "Method not found" then came
// back as the answer to initialize.
test('a proxy that takes long to start is asked once, and only one is started', { timeout: 60_000 }, async (t) => {
  await Promise.all([
    ...['P0', 'P1', 'P2', 'P3'].map((d) => late(6, proxy(d, '--arrow'))),
    late(12, proxy('P1', '--arrow')), late(6, inner('proxy', proxy('P2', '--arrow'))),
  ].map(async (line) => {
    const c = await open(t, ['agent', line, agent()]);
    assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
    assert.equal((await seen(c)).methods.filter((m) => m === 'initialize').length, 1);
    assert.doesNotMatch(c.stderr, /no answer to initialize yet/, 'it has not even read the first question');
  }));
});

// A proxy that reads at once and answers late cannot be told from one that does not know the dialect.
test('a proxy that reads its input at once and answers late: whatever else is started goes again', { timeout: 60_000 }, async (t) => {
  await Promise.all(['P1', 'P2', 'P3'].map(async (d) => {
    const c = await open(t, ['agent', proxy(d, '--arrow', '--slow-init', 6000), agent()]);
    assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
    assert.equal((await seen(c)).methods.filter((m) => m === 'initialize').length, 1);
    await until('only the proxy and the agent', () => descendants(c.child.pid).length === 2);
  }));
});

// The conductor of another program answers neither a dialect that it does not know nor anything after it:
// the next attempt, sent to the same process, was lost.
for (const d of ['P1', 'P2']) {
  test(`a proxy that a wrong question makes deaf is asked in a process of its own (${d})`, { timeout: 60_000 }, async (t) => {
    const c = await open(t, ['agent', proxy(d, '--arrow', '--deaf-after-unknown'), agent()]);
    assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
    await until('the end of the deaf ones', () => descendants(c.child.pid).length === 2);
    await c.stop(0);
  });
}

// Another program refuses everything after a wrong first message.
test('a proxy that refuses all questions after a wrong one is asked in a process of its own', async (t) => {
  const c = await open(t, ['agent', proxy('P1', '--arrow', '--refuse-after-unknown'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>x']);
  await until('the end of those that were asked wrongly', () => descendants(c.child.pid).length === 2);
});

// The component's end was not reported, because no request waited for it: initialize was then sent to a
// process that was gone, and never answered.
test('a component that ends before it was greeted: initialize is answered at once, with its last words', async (t) => {
  const gone = "/bin/sh -c 'echo no licence >&2; exit 1'";
  for (const [chain, index] of [[[proxy('P3'), gone], 1], [[proxy('P1'), gone, agent()], 1], [[late(30, proxy('P3')), proxy('P3'), gone], 2],
    [[JSON.stringify({ command: rialtoBin, args: ['conductor', '-q', 'proxy', proxy('P3'), gone] }), agent()], 1]]) {
    const c = new Conductor(t, ['agent', ...chain]);
    await assert.rejects(c.initialize(), (e) => {
      assert.equal(e.code, -32603);
      assert.match(e.message, new RegExp(`component ${index} \\(/bin/sh .*exited with 1`));
      assert.deepEqual(e.data.stderr, ['no licence']);
      return true;
    });
    await rejects(c.request('session/new', {}), -32603, new RegExp(`component ${index}`));
    await c.stop(1);
  }
});

// A proxy that sent a request on to the ended component was left waiting: a failed chain stays to tell why.
test('what a proxy asks of a component that has ended is answered with how that one ended', async (t) => {
  const c = new Conductor(t, ['agent', late(1, proxy('P2')), "/bin/sh -c 'exit 4'"]);
  await rejects(c.initialize(), -32603, /component 1 .* exited with 4/);
  await c.stop(1);
});

// --- silence ---

for (const [who, chain, index] of [
  ['a proxy', [silent(), agent()], 0], ['the second proxy', [proxy('P2'), silent(), agent()], 1], ['the agent', [proxy('P1'), silent()], 1],
  ['a proxy that has passed it on', [proxy('P3', '--silent-init'), agent()], 0],
]) {
  test(`${who} never answers initialize: an error that names it, when its time is up`, { timeout: 60_000 }, async (t) => {
    const c = new Conductor(t, ['--start-timeout', '2s', 'agent', ...chain]);
    await rejects(c.initialize(), -32603, new RegExp(`component ${index} \\(.*\\) did not answer initialize within 2 s`));
    await rejects(c.request('session/new', {}), -32603, new RegExp(`component ${index}`));
    await c.stop(1);
  });
}

test('a proxy that is deaf to one question and fails at the next: what it said is the answer, not the silence', { timeout: 60_000 }, async (t) => {
  const c = new Conductor(t, ['--start-timeout', '7s', 'agent', proxy('P2', '--deaf-after-unknown', '--fail-init', 'no key is set'), agent()]);
  await rejects(c.initialize(), -32000, /no key is set/);
  await c.stop(1);
});

test('--start-timeout: each component has that time for itself; 0 is no limit; nonsense is refused', { timeout: 60_000 }, async (t) => {
  const slow = proxy('P3', '--slow-init', 1500);
  const c = await open(t, ['--start-timeout', '4s', 'agent', slow, slow, slow, agent()]);
  assert.ok(c.session);
  const d = await open(t, ['--start-timeout', '0', 'agent', proxy('P3'), agent()]);
  assert.ok(d.session);
  const { code, stderr } = await rialto(['conductor', '--start-timeout', 'soon', 'agent', 'x']);
  assert.equal(code, 2);
  assert.match(stderr, /--start-timeout.*soon/);
});

// --- versions ---

// The editor got an internal error from a chain that worked.
for (const chain of [[], ['P3'], ['P1', 'P2']]) {
  test(`a client of version 2 before an agent of version 1 is told that version (${chain.length} proxies)`, async (t) => {
    const c = new Conductor(t, ['agent', ...chain.map((d) => proxy(d, '--mcp', 'M3c')), agent('--version', 1)]);
    const hello = await c.initialize(2);
    assert.equal(hello.protocolVersion, 1);
    // From then on it is a chain of version 1: servers are declared in the form of version 1.
    assert.equal(hello.agentCapabilities.mcpCapabilities.acp, true);
    c.session = await c.newSession();
    const declared = await c.ask(c.session, { command: 'declared' });
    assert.equal(declared.length, chain.length);
    for (const d of declared) assert.equal(d.type, undefined, 'a stdio server of version 1 has no type');
    await c.stop(0);
  });
}

test('a proxy may lower the version for all behind it, and nobody may raise it', async (t) => {
  const versionsOf = async (c) => JSON.parse((await seen(c)).raw.find((l) => l.includes('"initialize"'))).params.protocolVersion;
  const lower = new Conductor(t, ['agent', proxy('P3'), proxy('P3', '--version', 1), agent()]);
  assert.equal((await lower.initialize(2)).protocolVersion, 1);
  assert.equal(await versionsOf(lower), 1);
  const raise = new Conductor(t, ['agent', proxy('P3', '--version', 1), proxy('P2', '--version', 2), agent()]);
  assert.equal((await raise.initialize(2)).protocolVersion, 1);
  assert.equal(await versionsOf(raise), 1);
});

test('initialize once more: it passes through the chain as it stands, and nothing is started again', async (t) => {
  const c = await open(t, ['--start-timeout', '2s', 'agent', ...['P1', 'P2', 'P3'].map((d) => proxy(d, '--arrow')), agent()]);
  const family = descendants(c.child.pid);
  assert.equal((await c.initialize(2)).protocolVersion, 2);
  assert.equal((await c.initialize(1)).protocolVersion, 1);
  assert.deepEqual(await c.prompt(c.session, 'x'), ['>>>x']);
  assert.deepEqual(descendants(c.child.pid), family);
});

test('version 0 is asked for as 1', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P3'), agent()]);
  assert.equal((await within(20_000, 'initialize', c.request('initialize', { protocolVersion: 0, clientCapabilities: {} }))).protocolVersion, 1);
});
