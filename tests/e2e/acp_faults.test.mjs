// A conductor when things go wrong: components that end, never answer or flood, and what is left
// behind after a thousand sessions.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  agent, Conductor, dial, eventLog, guardsOf, inner, open, proxy, rejects,
} from './acp_lib.mjs';
import {
  descendants, expectGone, isAlive, releaseBin, rialtoBin, sleep, tempDir, until, within,
} from './lib.mjs';

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

// --- what a component wrote to stderr last ---

const KIB = 1024;
const bytesOf = (lines) => Buffer.byteLength(`${lines.join('\n')}\n`);
/** A component that runs this JavaScript, which writes to stderr, and exits with 3. */
const loud = (script) => JSON.stringify({ command: process.execPath, args: ['-e', `${script}; process.exitCode = 3`] });
const lastWordsOf = (c) => within(20_000, 'initialize', c.initialize()).then(() => assert.fail('it ended'), (e) => {
  assert.match(e.message, /component 0 \(.* exited with 3/);
  return e.data.stderr;
});

// Only 4 KiB were kept, and of a line longer than 8 KiB only the beginning.
test('stderr truncation at 64 KiB: whole lines, the last ones, and a mark before them', async (t) => {
  const lines = Array.from({ length: 4096 }, (_, i) => `${String(i).padStart(5, '0')} ${'é€'.repeat(9)}`); // 52 bytes each
  const write = "for (let i = 0; i < 4096; i++) console.error(String(i).padStart(5, '0') + ' ' + 'é€'.repeat(9))";
  const c = new Conductor(t, ['agent', loud(write)]);
  const [mark, ...kept] = await lastWordsOf(c);
  assert.match(mark, /left out/);
  assert.deepEqual(kept, lines.slice(-kept.length));
  assert.ok(bytesOf(kept) <= 64 * KIB && bytesOf(kept) > 64 * KIB - 53, `${bytesOf(kept)} bytes`);
  // Every later request is told why, too.
  await assert.rejects(c.request('session/new', {}), (e) => /exited with 3/.test(e.message) && e.data.stderr.at(-1) === lines.at(-1));
  await c.stop(1);
  for (const line of [lines[0], lines.at(-1)]) assert.equal(c.stderr.split(line).length - 1, 1, 'our own stderr has all of it, once');
});

test('stderr truncation at 64 KiB: a line longer than that is cut between characters', async (t) => {
  const c = new Conductor(t, ['agent', loud("process.stderr.write('x' + '€'.repeat(70_000))")]);
  const [mark, line, ...rest] = await lastWordsOf(c);
  assert.match(mark, /left out/);
  assert.deepEqual(rest, []);
  assert.match(line, /^€+$/);
  assert.equal(Buffer.byteLength(line), 64 * KIB - (64 * KIB) % 3);
  await c.stop(1);
});

test('what fits is told as it is, without a mark', async (t) => {
  const c = new Conductor(t, ['agent', loud("process.stderr.write('one\\r\\n\\n\\x1b[31mtwo\\x1b[0m' + '\\n' + 'x'.repeat(60_000))")]);
  assert.deepEqual(await lastWordsOf(c), ['one', '\x1b[31mtwo\x1b[0m', 'x'.repeat(60_000)]);
  await c.stop(1);
});

test('-q: what it said last stands in our own stderr, because nothing has stood there before', async (t) => {
  const c = new Conductor(t, ['-q', 'agent', loud("console.error('noise\\n'.repeat(40_000) + 'the last words')")]);
  await lastWordsOf(c);
  await c.stop(1);
  const [first, mark, ...rest] = c.stderr.trim().split('\n');
  assert.match(first, /component 0 .* exited with 3/);
  assert.match(mark, /left out/);
  assert.match(rest.at(-1), /the last words$/);
  assert.ok(rest.length > 10_000 && rest.length <= 64 * KIB / 6, `${rest.length} lines`);
});

// 64 KiB of stderr for each of a thousand requests would be too much to send to a client at once.
test('a thousand requests in flight: the first of them get the whole of it, all others its end', async (t) => {
  const c = await open(t, ['-q', 'agent', agent()]);
  const waiting = Array.from({ length: 1000 }, () => promptOf(c, { command: 'wait' }).catch((e) => e));
  promptOf(c, { command: 'die', after: 100 * KIB });
  const told = (await within(20_000, 'the answers', Promise.all(waiting))).map((e) => {
    assert.match(e.message, /exited with 9/);
    assert.equal(e.data.stderr.at(-1), 'agent: told to die');
    return bytesOf(e.data.stderr);
  });
  assert.equal(told.length, 1000);
  assert.ok(told.slice(0, 16).every((n) => n > 63 * KIB), `${told.slice(0, 16)}`);
  assert.ok(told.slice(16).every((n) => n > 3 * KIB && n < 5 * KIB), `${told.slice(16, 20)}`);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
});

// The component reads nothing, so what is queued for it is never written: its end must not wait for that.
test('blocked stdin after stdout EOF is bounded', { timeout: 30_000 }, async (t) => {
  const deaf = JSON.stringify({ command: '/bin/sh', args: ['-c', 'exec >&-; exec sleep 1000'] });
  const c = new Conductor(t, ['agent', deaf]);
  await rejects(c.initialize(1, { filler: 'x'.repeat(1_000_000) }), -32603, /component 0 .* killed by SIGTERM; .* its pipe was closed: closed by the peer/);
  await c.stop(1);
});

// The sender of the request waited for ever, and the peer that had answered got an error for no request.
for (const chain of [[], ['P2']]) {
  test(`a message longer than 32 MiB ends the request it belongs to, and nothing else (${chain.length} proxies)`, async (t) => {
    const c = await open(t, ['-q', 'agent', ...chain.map((d) => proxy(d)), agent()]);
    const stray = [];
    c.onStray = (m) => stray.push(m);
    const bytes = 33 << 20;
    await rejects(c.request('_test/huge', { bytes }), -32603, /component \d \(.*\) answered with more than 33554432 bytes/);
    await rejects(c.request('_test/echo', { filler: 'x'.repeat(bytes) }, 'mine'), -32600, /too long/);
    c.notify('_test/nothing', { filler: 'x'.repeat(bytes) });
    c.send(`{"params":{"filler":"${'x'.repeat(bytes)}"},"method":"_test/nothing"}`);
    c.answer = () => ({ outcome: 'x'.repeat(bytes) });
    await rejects(promptOf(c, { command: 'permission' }), -32603, /the client answered with more than/);
    assert.deepEqual(await c.prompt(c.session, 'still here'), ['still here']);
    assert.deepEqual(stray.map((m) => [m.id, m.error.code]), [[null, -32600]], 'to what cannot be told apart from a request');
  });
}

// --- what cannot be read ---

/** An agent that answers `_test/bytes` with the bytes of `params.text`, in which ID becomes the request's id. */
const bytesAgent = JSON.stringify({
  command: process.execPath,
  args: ['-e', `let last;
    require('readline').createInterface(process.stdin).on('line', (line) => {
      const m = JSON.parse(line);
      const send = (x) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: m.id, ...x }) + '\\n');
      if (m.method === 'initialize') send({ result: { protocolVersion: 1 } });
      else if (m.method === '_test/bytes') process.stdout.write(Buffer.from(m.params.text.replace('ID', m.id) + '\\n', 'latin1'));
      else if (m.method === '_test/echo') send({ result: m.params });
      else if (m.method === '_test/ask') {
        last = m.id;
        let params = {};
        for (let i = 2; i < m.params.levels; i++) params = { a: params };
        process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: 'ask', method: '_test/deep', params }) + '\\n');
      } else if (!m.method) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: last, result: m.error ?? m.result }) + '\\n');
    })`],
});
const nested = (levels) => (levels > 1 ? { a: nested(levels - 1) } : {});
const deepText = '{"a":'.repeat(200) + '1' + '}'.repeat(200);

// The line was dropped, its sender got an error that belonged to no request, and the peer that had asked
// waited for ever.
for (const chain of [[], ['P2', 'P3']]) {
  test(`an answer that cannot be read is an error for who asked (${chain.length} proxies)`, async (t) => {
    const c = new Conductor(t, ['-q', 'agent', ...chain.map((d) => proxy(d)), bytesAgent]);
    await c.initialize();
    const answers = [
      [`{"jsonrpc":"2.0","id":ID,"result":${deepText}}`, /answered with what cannot be read: nested too deeply, 128 levels/],
      [`{"result":{"a":${deepText}},"jsonrpc":"2.0","id":ID}`, /nested too deeply/],
      ['{"jsonrpc":"2.0","id":ID,"result":{"text":"\xff\xfe"}}', /not valid UTF-8/],
      ['{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"\xe9t\xe9"}}', /not valid UTF-8/],
      ['{"jsonrpc":"2.0","id":ID,"result":1,"result":2}', /member occurs twice/],
      ['{"jsonrpc":"2.0","id":ID,"result":{"a":[1,2,', /syntax error/],
      ['[{"jsonrpc":"2.0","id":ID,"result":{"text":"\xff"}}]', /not valid UTF-8/],
    ];
    for (const [text, why] of answers) await rejects(c.request('_test/bytes', { text }), -32603, why);
    assert.deepEqual(await within(10_000, 'the answer', c.request('_test/echo', { n: 1 })), { n: 1 });
    await c.stop(0);
  });
}

test('a request that cannot be read, or not in an envelope, is answered by its own id', async (t) => {
  const c = new Conductor(t, ['-q', 'agent', proxy('P2'), bytesAgent]);
  const stray = [];
  c.onStray = (m) => stray.push([m.id, m.error.code]);
  await c.initialize();
  // 128 levels are read, but not when the proxy puts an envelope around them.
  await rejects(c.request('_test/echo', nested(127)), -32700, /nested too deeply/);
  await rejects(c.request('_test/echo', nested(128)), -32700, /nested too deeply/);
  assert.deepEqual(await within(10_000, 'the answer', c.request('_test/echo', nested(126))), nested(126));
  // The agent's own requests, which the conductor puts into an envelope for the proxy.
  c.answer = () => 'fine';
  assert.equal((await within(10_000, 'the answer', c.request('_test/ask', { levels: 128 }))).code, -32600);
  assert.equal(await within(10_000, 'the answer', c.request('_test/ask', { levels: 127 })), 'fine');
  c.child.stdin.write(Buffer.from('{"jsonrpc":"2.0","id":"mine","method":"_test/echo","params":{"a":"\xff"}}\n', 'latin1'));
  c.child.stdin.write('{"jsonrpc":"2.0","id":"last","method":"_test/echo","params":{},"id":"first"}\n');
  c.child.stdin.write('no message at all\n');
  await until('three errors', () => stray.length === 3);
  assert.deepEqual(stray, [['mine', -32700], ['last', -32700], [null, -32700]]);
  await c.stop(0);
});

test('128 levels pass through a chain without proxies, 129 do not', async (t) => {
  const c = new Conductor(t, ['-q', 'agent', bytesAgent]);
  await c.initialize();
  assert.deepEqual(await within(10_000, 'the answer', c.request('_test/echo', nested(127))), nested(127));
  await rejects(c.request('_test/echo', nested(128)), -32700, /nested too deeply, 128 levels/);
  await c.stop(0);
});

// The error for a component that is not a proxy named it with all of its arguments.
test('secrets in a command line do not show in errors', async (t) => {
  const secret = ['--note', 'https://me:hunter22@example.com'];
  for (const components of [[proxy('P1', '--no-echo', ...secret), agent()], [agent('--die-in-initialize', ...secret)], [`/no/such/program ${secret.join(' ')}`]]) {
    const c = new Conductor(t, ['agent', ...components]);
    await assert.rejects(c.initialize(), (e) => {
      assert.match(e.message, /component 0 .*https:\/\/me:\*\*\*@example\.com/);
      assert.doesNotMatch(JSON.stringify([e.message, e.data]), /hunter22/);
      return true;
    });
    await c.stop(1);
    assert.doesNotMatch(c.stderr, /hunter22/);
  }
});

test('a component that others kill: no word of a pipe', async (t) => {
  const c = await open(t, ['agent', agent()]);
  const waiting = promptOf(c, { command: 'wait' });
  for (const { pid } of descendants(c.child.pid)) process.kill(pid, 'SIGKILL');
  await rejects(waiting, -32603, /killed by SIGKILL \{/);
});

test('proxy dies mid-prompt: the prompt is answered, what it waited for is taken back, and all ends', async (t) => {
  const dir = `${tempDir()}/logs`;
  const c = await open(t, ['--debug', '--debug-dir', dir, 'agent', proxy('P3'), proxy('P2', '--die-on', 'session/update'), agent()]);
  const family = descendants(c.child.pid);
  const first = promptOf(c, { command: 'wait' });
  const second = promptOf(c, { command: 'echo', text: 'x' });
  await rejects(first, -32603, /component 1 .* exited with 5/);
  await rejects(second, -32603, /component 1 .* exited with 5/);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
  await expectGone(family);
  const written = fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8').split('\n').filter((l) => l.startsWith('2 → ')).map((l) => JSON.parse(l.slice(l.indexOf('{'))));
  const waiting = written.find((m) => m.method === 'session/prompt').id;
  assert.equal(written.filter((m) => m.method === '$/cancel_request' && m.params.requestId === waiting).length, 1);
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

// The pending initialize was dropped before it turned out that the program could not be started again.
test('a proxy that cannot be started again with the next dialect: initialize is answered', async (t) => {
  const script = path.join(tempDir(), 'once');
  fs.writeFileSync(script, '#!/bin/sh\nrm -- "$0"\necho gone for good >&2\nread line\n', { mode: 0o700 });
  const c = new Conductor(t, ['agent', script, agent()]);
  await assert.rejects(c.initialize(), (e) => e.code === -32603 && /component 0 .* exited with 0/.test(e.message) && e.data.stderr[0] === 'gone for good');
  await rejects(c.request('session/new', {}), -32603, /component 0/);
  await c.stop(1);
  assert.match(c.stderr, /cannot be started again: .*once/);
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

// The sanitizers keep what is freed for a while; the release build shows what really stays.
const builds = [['checked', rialtoBin, 24 * 1024], ['release', releaseBin, 256]];
for (const [mode, [build, program, limit]] of ['stdio', 'http'].flatMap((m) => builds.map((b) => [m, b]))) {
  test(`1,000 session/new in one process leave no listener, descriptor or memory behind (${mode}, ${build})`, { timeout: 120_000 }, async (t) => {
    const c = new Conductor(t, ['-q', 'agent', '--mcp-bridge', mode, proxy('P2', '--mcp', 'M2a,M3c'), agent('--http', '--no-connect', 'yes')], { command: [program, 'conductor'] });
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
    assert.ok(grown < limit, `grown by ${grown} KiB`);
    await c.stop(0);
  });
}

const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}\n';

/** An MCP client that sends initialize to a bridged server and disconnects. */
const visit = (entry) => new Promise((resolve, reject) => {
  const socket = dial(entry);
  socket.write(hello);
  let text = '';
  socket.on('error', reject).on('data', (d) => {
    text += d;
    if (text.includes('"serverInfo"')) socket.end();
  }).on('close', () => resolve(text));
});

for (const [build, program, limit] of builds) {
  test(`500 sessions whose servers are used leave nothing behind either (${build})`, { timeout: 120_000 }, async (t) => {
    const c = new Conductor(t, ['-q', 'agent', proxy('P2', '--mcp', 'M1,M3c,M4'), agent('--no-connect', 'yes')], { command: [program, 'conductor'] });
    await c.initialize();
    const round = async () => {
      const sessionId = await c.newSession();
      const declared = await c.ask(sessionId, { command: 'declared' });
      for (const text of await within(20_000, 'the answers', Promise.all(declared.map(visit)))) assert.match(text, /serverInfo/);
      await c.request('session/close', { sessionId });
    };
    for (let i = 0; i < 50; i++) await round();
    await sleep(300);
    const [before, memory] = [descriptors(c.child.pid), resident(c.child.pid)];
    for (let i = 0; i < 500; i++) await round();
    await until(`as few descriptors as before (${before})`, () => descriptors(c.child.pid) <= before);
    const grown = resident(c.child.pid) - memory;
    assert.ok(grown < limit, `grown by ${grown} KiB`);
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

// The agent answers session/new when its MCP servers are connected. The unanswered connect used up all the
// time that shutting down may take, and then we answered session/new, saying only that we were ending.
for (const when of ['before', 'after']) {
  test(`a component that does not answer connect does not hold up the end: the input closes ${when} that`, async (t) => {
    const events = eventLog();
    const c = new Conductor(t, ['agent', proxy('P2', '--mcp', 'M2a', '--silent-connect', '--log', events.file), agent('--eager')]);
    await c.initialize();
    const session = c.request('session/new', { cwd: '/', mcpServers: [] });
    if (when === 'after') await until('the connect', () => events.of('connect').length);
    c.child.stdin.end();
    await assert.rejects(within(20_000, 'session/new', session), (e) => {
      assert.match(e.message, /did not answer connect/);
      return true;
    });
    assert.equal(await within(15_000, 'the end', c.exit), 0);
  });
}

// Requests that had waited for initialize were passed on when it was answered, and then failed at once,
// because no request was counted as in flight.
test('closing the input before initialize is answered: what waits for that is answered as well', async (t) => {
  const c = new Conductor(t, ['agent', proxy('P2'), agent()]);
  const [hello, session, echo] = [c.initialize(), c.newSession(), c.request('_test/echo', { n: 1 })];
  c.child.stdin.end();
  assert.equal((await hello).protocolVersion, 1);
  assert.equal(await session, 'session-1');
  assert.deepEqual(await within(15_000, 'the answer', echo), { n: 1 });
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

// Requests that waited for the answer to initialize were forgotten.
test('SIGTERM before initialize is answered: whatever waits for it is answered as well', async (t) => {
  const c = new Conductor(t, ['agent', JSON.stringify({ command: '/bin/sh', args: ['-c', 'exec sleep 1000'] })]);
  const waiting = [c.initialize(), c.request('session/new', {}), c.request('session/list', {})];
  await until('the agent', () => descendants(c.child.pid).length === 1);
  c.child.kill('SIGTERM');
  for (const w of waiting) await rejects(w, -32603, /is ending/);
  await c.stop(0);
});

// A component that reads its input ends when that is closed; other children of a wrapper must be killed.
for (const [how, end] of [['by itself', (c) => promptOf(c, { command: 'die' })], ['with the conductor', () => {}]]) {
  test(`a wrapper's child does not outlive the conductor: the wrapper ends ${how}`, async (t) => {
    const stubborn = 'trap "" TERM HUP; while :; do sleep 1000; done';
    const wrapped = JSON.stringify({ command: '/bin/sh', args: ['-c', `sh -c '${stubborn}' & ${agent().replaceAll("'", '"')}; exit $?`] });
    const c = await open(t, ['agent', wrapped]);
    const family = await until('all of them', () => { const f = descendants(c.child.pid); return f.length >= 4 && f; });
    end(c);
    await c.stop();
    await expectGone(family);
  });
}

// The kernel killed the wrappers, but the processes that they had started lived on.
test('kill -9 of the conductor: nothing of what components have started outlives it, nor does its guard', async (t) => {
  const wrapped = (line) => JSON.stringify({ command: '/bin/sh', args: ['-c', `trap "" TERM HUP; sleep 1000 & setsid sleep 1000 & ${line.replaceAll("'", '"')}; exit $?`] });
  const nested = inner('proxy', wrapped(proxy('P2')));
  const c = new Conductor(t, ['agent', wrapped(proxy('P3')), nested, wrapped(agent())]);
  await c.initialize();
  const family = await until('all of them', () => { const f = descendants(c.child.pid); return f.length >= 13 && f; });
  const guards = guardsOf(c.child);
  c.child.kill('SIGKILL');
  c.stopping = c.exit; // no orderly stop() afterwards
  assert.equal(await c.exit, 'SIGKILL');
  t.after(() => { for (const { pid } of family) try { process.kill(pid, 'SIGKILL'); } catch { /* already gone, as it should be */ } });
  await expectGone([...family, ...guards], 10_000);
});

test('a conductor that has ended leaves no guard', async (t) => {
  const c = await open(t, ['agent', agent()]);
  const guards = guardsOf(c.child);
  assert.equal(guards.length, 1);
  await c.stop(0);
  assert.ok(!guards.some(isAlive));
});

// The servers of the session/load request were freed with the session, and its answer then read them.
test('a session closed while it is being loaded', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--slow-load', 300)]);
  const loading = c.request('session/load', { sessionId: 'old', cwd: '/', mcpServers: [] });
  await sleep(50);
  await c.request('session/close', { sessionId: 'old' });
  assert.equal((await within(15_000, 'the answer', loading)).sessionId, 'old');
  assert.deepEqual(await c.prompt(c.session, 'fine'), ['fine']);
});

// An answer that came from a component during shutdown used data that was already freed.
test('the input closes while a session is being set up', async (t) => {
  const c = await open(t, ['agent', proxy('P2', '--mcp', 'M2a'), agent('--slow-load', 5200)]);
  c.request('session/load', { sessionId: 'old', cwd: '/', mcpServers: [] });
  await sleep(50);
  await c.stop(0);
});

/** For each pipe in a debug log: a cancel is sent only for a request in flight there, and at most once. */
function expectCancelsInFlight(dir) {
  const open_ = new Map();
  let cancels = 0;
  for (const line of fs.readFileSync(`${dir}/${fs.readdirSync(dir)[0]}`, 'utf8').split('\n')) {
    const [, pipe, arrow, text] = /^(\S+) ([→←]) \S+ (\{.*)$/.exec(line) ?? [];
    if (!text) continue;
    const m = JSON.parse(text);
    if (!open_.has(pipe)) open_.set(pipe, new Set());
    if (arrow === '←' && !m.method) open_.get(pipe).delete(m.id);
    if (arrow === '→' && m.method && m.id !== undefined) open_.get(pipe).add(m.id);
    if (arrow !== '→' || m.method !== '$/cancel_request') continue;
    cancels++;
    assert.ok(open_.get(pipe).delete(m.params.requestId), `to ${pipe}: ${text}`);
  }
  return cancels;
}

test('$/cancel_request is sent only for what is in flight, and once, whoever takes it back', { timeout: 60_000 }, async (t) => {
  const dir = `${tempDir()}/logs`;
  const c = await open(t, ['-q', '--debug', '--debug-dir', dir, 'agent', inner('proxy', proxy('P1')), proxy('P2', '--mcp', 'M0,M1,M2a,M3c,M4'), proxy('P3'), agent()]);
  const running = promptOf(c, { command: 'wait' });
  for (const requestId of [running.id, running.id, 'unknown', -1, null, {}, c.request('_test/echo', {}).id]) c.notify('$/cancel_request', { requestId });
  for (const params of [undefined, {}, []]) c.notify('$/cancel_request', params);
  await rejects(running, -32800);
  c.notify('$/cancel_request', { requestId: running.id }); // already answered
  for (const server of ['M0', 'M1', 'M2a', 'M3c', 'M4']) assert.equal(await c.ask(c.session, { command: 'cancel_tool', server, tool: 'hang' }), `${server}: next`);
  c.answer = (method, params, id) => new Promise((_, reject) => { until('the cancel', () => c.heard.some((m) => m.params?.requestId === id)).then(() => reject(Object.assign(new Error('x'), { code: -32800 }))); });
  assert.deepEqual(await c.prompt(c.session, { command: 'cancel_permission' }), ['error -32800']);
  // Calls in flight on an MCP connection end with it.
  const call = promptOf(c, { command: 'call_tool', server: 'M2a', tool: 'hang' });
  await c.prompt(c.session, { command: 'close_mcp', server: 'M2a' });
  await rejects(call, -32603);
  await c.request('session/close', { sessionId: c.session });
  await c.stop(0);
  assert.ok(expectCancelsInFlight(dir) >= 12);
});
