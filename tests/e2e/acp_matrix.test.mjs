// Every part of a chain, at every step, with everything that can go wrong with it: a cell for each, with
// the answer that the client has to get. No cell is allowed to hang.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  agent, Conductor, eventLog, guardsOf, inner, proxy, rejects,
} from './acp_lib.mjs';
import { commandOf, descendants, expectGone, until, within } from './lib.mjs';

const parts = ['the first proxy', 'the second proxy', 'the agent'];
const steps = ['initialize', 'session/new', 'session/prompt'];
const wait = (promise) => within(30_000, 'an answer', promise);

/** The method of a step, as this part of the chain receives it. */
const methodOf = (part, step) => (step === 'initialize' ? ['proxy/initialize', '_proxy/initialize', 'initialize'][part] : step);
const paramsOf = {
  initialize: { protocolVersion: 1, clientCapabilities: {} },
  'session/new': { cwd: '/', mcpServers: [] },
  'session/prompt': { sessionId: 'session-1', prompt: [{ type: 'text', text: 'hello' }] },
};

// The error of the request during which the fault happens, and the exit status of the conductor.
const dead = (how) => () => ({ error: how, status: 1 });
const fine = () => ({ status: 0 });
const faults = {
  kill: dead(/component N .* killed by SIGKILL/),
  exit: dead(/component N .* exited with 6 .*told to end/),
  closed: dead(/component N .* exited with 0/), // the conductor then closes its input, and it exits
  // How long a session or a prompt may take is up to the client, which can always end it.
  silent: (step) => (step === 'initialize' ? { error: /component N .* did not answer initialize within 3 s/, status: 1 } : { open: true, status: 0 }),
  slow: fine,
  garbage: fine,
  huge: fine,
  deep: fine,
};

function chainWith(part, options) {
  const own = (i) => (i === part ? options : []);
  return ['-q', '--start-timeout', '3s', 'agent', proxy('P3', ...own(0)), proxy('P2', ...own(1)), agent(...own(2))];
}

/** Takes a chain to this step; resolves to the request of the step, which is not answered yet. */
async function reach(c, step) {
  for (const s of steps) {
    const request = c.request(s, paramsOf[s]);
    if (s === step) return { request };
    await wait(request);
  }
  return undefined;
}

async function check(t, part, step, fault) {
  const c = new Conductor(t, chainWith(part, ['--fault', fault, '--at', methodOf(part, step)]));
  const stray = [];
  c.onStray = (m) => stray.push(m);
  const expected = faults[fault](step);
  const { request } = await reach(c, step);
  if (expected.error) {
    await rejects(wait(request), -32603, new RegExp(expected.error.source.replace('N', part)));
    // A chain that failed to start stays, to answer with the reason.
    if (step === 'initialize') await rejects(wait(c.request('session/list', {})), -32603, new RegExp(`component ${part} `));
  } else if (expected.open) {
    assert.deepEqual(await wait(c.request('_test/echo', { other: true })), { other: true }, 'others are not held up');
    c.child.kill('SIGTERM');
    await rejects(wait(request), -32603, /is ending/);
  } else {
    await wait(request);
    for (const s of steps.slice(steps.indexOf(step) + 1)) await wait(c.request(s, paramsOf[s]));
  }
  await c.stop(expected.status);
  assert.deepEqual(stray, []);
}

for (const fault of Object.keys(faults)) {
  test(`${fault}: every part, at every step`, { concurrency: 3, timeout: 240_000 }, async (t) => {
    await Promise.all(parts.flatMap((name, part) => steps.map((step) => t.test(`${name}, in ${step}`, (tt) => check(tt, part, step, fault)))));
  });
}

// --- what is not a component ---

const seenAt = (events) => until('the message', () => events.of('seen').length);

test('kill -9 of the conductor, at every step: nothing is left', { concurrency: 3, timeout: 120_000 }, async (t) => {
  await Promise.all(steps.map((step) => t.test(step, async (tt) => {
    const c = new Conductor(tt, chainWith(2, ['--fault', 'silent', '--at', methodOf(2, step)]));
    await reach(c, step);
    const family = await until('all of them', () => { const f = descendants(c.child.pid); return f.length === 3 && f; });
    c.child.kill('SIGKILL');
    c.stopping = c.exit;
    assert.equal(await wait(c.exit), 'SIGKILL');
    await expectGone(family, 10_000);
  })));
});

const killed = (c, test_) => until('the process', () => {
  const found = descendants(c.child.pid).find((p) => test_(commandOf(p)));
  if (found) process.kill(found.pid, 'SIGKILL');
  return found;
});

test('kill -9 of a conductor inside this one, at every step: it is told like any component', { concurrency: 3, timeout: 120_000 }, async (t) => {
  await Promise.all(steps.map((step) => t.test(step, async (tt) => {
    const events = eventLog();
    const c = new Conductor(tt, ['-q', 'agent', proxy('P2'), inner('-q', 'proxy', proxy('P3')), agent('--fault', 'silent', '--at', step, '--log', events.file)]);
    const { request } = await reach(c, step);
    await seenAt(events);
    const family = descendants(c.child.pid);
    await killed(c, (command) => command.includes('conductor') && command.includes('proxy'));
    await rejects(wait(request), -32603, /component 1 .* killed by SIGKILL/);
    await c.stop(1);
    await expectGone(family, 10_000);
  })));
});

test('kill -9 of the guard of the conductor, at every step: the chain goes on', { concurrency: 3, timeout: 120_000 }, async (t) => {
  await Promise.all(steps.map((step) => t.test(step, async (tt) => {
    const c = new Conductor(tt, chainWith(2, ['--fault', 'slow', '--at', methodOf(2, step)]));
    const { request } = await reach(c, step);
    const [guard] = await until('the guard', () => { const found = guardsOf(c.child); return found.length && found; });
    process.kill(guard.pid, 'SIGKILL');
    await wait(request);
    for (const s of steps.slice(steps.indexOf(step) + 1)) await wait(c.request(s, paramsOf[s]));
    await c.stop(0);
  })));
});

test('kill -9 of the bridge of an MCP server, at every step: the agent is told, and the chain goes on', { concurrency: 3, timeout: 120_000 }, async (t) => {
  const isBridge = (command) => command.includes('mcp') && /conductor$|rialto/.test(command[0]);
  const chain = (...options) => ['-q', 'agent', proxy('P2', '--mcp', 'M2a', ...options), agent('--eager')];
  await Promise.all([
    t.test('session/new', async (tt) => {
      const c = new Conductor(tt, chain('--silent-connect'));
      const { request } = await reach(c, 'session/new');
      await killed(c, isBridge);
      await rejects(wait(request), -32603);
      await c.stop(0);
    }),
    t.test('session/prompt', async (tt) => {
      const c = new Conductor(tt, chain());
      await reach(c, 'session/prompt').then(({ request }) => wait(request));
      const call = c.request('session/prompt', { sessionId: 'session-1', prompt: [{ type: 'text', text: '{"command":"call_tool","server":"M2a","tool":"hang"}' }] });
      await killed(c, isBridge);
      await rejects(wait(call), -32603);
      assert.deepEqual(await c.prompt('session-1', 'still here'), ['still here']);
      await c.stop(0);
    }),
  ]);
});
