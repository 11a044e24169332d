// Chains with the ACP programs that others published for Rust: their conductor around ours and in ours,
// an agent and a proxy. A test's name begins with the program it needs; `run` chooses by that.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { agent, Conductor, inner, open, proxy } from '../e2e/acp_lib.mjs';
import { rialtoBin, root, within } from '../e2e/lib.mjs';

const rust = (name) => path.join(root, 'build/cargo/bin', name);
const conductor = rust('agent-client-protocol-conductor');
const theirs = `'${conductor}' proxy`;
const earlier = `'${rust('sacp-conductor')}' proxy`;

const chains = {
  'theirs as a proxy of ours': [[rialtoBin, 'conductor', '-q'], [theirs]],
  'three of theirs in ours, with ours between them': [[rialtoBin, 'conductor', '-q'], [theirs, proxy('P3'), theirs, inner('-q', 'proxy'), theirs]],
  'ours as a proxy of theirs': [[conductor], [inner('-q', 'proxy')]],
  'ours in theirs, with its own proxies': [[conductor], [theirs, inner('-q', 'proxy', proxy('P2'), proxy('P3')), theirs]],
};
for (const [what, [command, proxies]] of Object.entries(chains)) {
  test(`agent-client-protocol-conductor: ${what}`, { timeout: 60_000 }, async (t) => {
    const c = await open(t, ['agent', ...proxies, agent()], { command });
    assert.deepEqual(await c.prompt(c.session, 'Hello'), ['Hello']);
    // A request of the agent, an error, something large, much at once, and a cancelled request.
    c.answer = () => ({ outcome: { outcome: 'selected', optionId: 'yes' } });
    assert.deepEqual(await c.ask(c.session, { command: 'permission' }), { outcome: { outcome: 'selected', optionId: 'yes' } });
    await assert.rejects(within(20_000, 'an error', c.request('_test/unknown', {})), (e) => e.code === -32601);
    const filler = 'x'.repeat(1 << 20);
    assert.equal((await within(20_000, 'the answer', c.request('_test/echo', { filler }))).filler, filler);
    const texts = await c.prompt(c.session, { command: 'updates', count: 500 });
    assert.deepEqual(texts, Array.from({ length: 500 }, (_, i) => String(i)));
    const waiting = c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: '{"command":"wait"}' }] });
    c.notify('$/cancel_request', { requestId: waiting.id });
    await assert.rejects(within(20_000, 'the end of it', waiting), (e) => e.code === -32800);
    await c.stop();
  });
}

for (const dialect of [[], ['P2'], ['P3', 'P1']]) {
  test(`elizacp: behind ${dialect.length} proxies`, { timeout: 60_000 }, async (t) => {
    const c = new Conductor(t, ['-q', 'agent', ...dialect.map((d) => proxy(d)), `'${rust('elizacp')}' acp`]);
    await c.initialize();
    const [text] = await c.prompt(await c.newSession(), 'Hello, I am sad');
    assert.match(text, /\w+/);
    await c.stop();
  });
}

// An earlier Rust conductor: as a proxy it never answers a request of a newer dialect than its own. Our
// conductor, which is not told the dialect here, must not wait for that answer for ever.
for (const [what, proxies] of Object.entries({
  'as a proxy of ours': [earlier],
  'twice in ours, with ours between them': [earlier, inner('-q', 'proxy'), earlier],
})) {
  test(`sacp-conductor: ${what}`, { timeout: 60_000 }, async (t) => {
    const c = await open(t, ['-q', 'agent', ...proxies, agent()]);
    assert.deepEqual(await c.prompt(c.session, 'Hello'), ['Hello']);
    const texts = await c.prompt(c.session, { command: 'updates', count: 500 });
    assert.equal(texts.length, 500);
    await c.stop();
  });
}

test('sacp-tee: as a proxy of ours', { timeout: 60_000 }, async (t) => {
  const c = await open(t, ['-q', 'agent', `'${rust('sacp-tee')}' --json --log-file /dev/null`, proxy('P3'), agent()]);
  assert.deepEqual(await c.prompt(c.session, 'Hello'), ['Hello']);
  const texts = await c.prompt(c.session, { command: 'updates', count: 500 });
  assert.equal(texts.length, 500);
  await c.stop();
});
