// A chain in which one peer reads more slowly than others write. Writers were not held back: up to 64 MiB
// were queued for a reader, which was then cut off, even a client that had never stopped reading. Now a
// peer that writes to a full pipe is not read until the pipe has room again, in that direction only, and
// only a peer that reads nothing at all for a time is cut off.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { agent, Conductor, eventLog, inner, open, proxy, rejects } from './acp_lib.mjs';
import { descendants, expectGone, releaseBin, sleep, until, within } from './lib.mjs';

const promptOf = (c, command) => c.request('session/prompt', { sessionId: c.session, prompt: [{ type: 'text', text: JSON.stringify(command) }] });
const texts = (c) => c.heard.filter((m) => m.method === 'session/update').map((m) => m.params.update.content.text);

for (const chain of [[], ['P2', 'P3']]) {
  test(`7,000 updates of 10 KB in one turn reach a client that keeps reading (${chain.length} proxies)`, { timeout: 120_000 }, async (t) => {
    const c = await open(t, ['-q', 'agent', ...chain.map((d) => proxy(d)), agent()]);
    // The client pauses after each chunk, so it is a little slower than the agent.
    c.child.stdout.on('data', () => {
      c.child.stdout.pause();
      setTimeout(() => c.child.stdout.resume(), 2);
    });
    await within(100_000, 'the prompt', promptOf(c, { command: 'updates', count: 7000, size: 10_240 }));
    const got = texts(c);
    assert.equal(got.length, 7000);
    assert.ok(got.every((text, i) => text.length === 10_240 && Number(text) === i));
    assert.deepEqual(await c.prompt(c.session, 'still here'), ['still here']);
    await c.stop(0);
  });
}

const peak = (pid) => Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

// The sanitizers keep what is freed for a while; the release build shows what is really held.
test('200 MB through three proxies to a slow reader arrive whole, in little memory', { timeout: 180_000 }, async (t) => {
  const passOn = `'${releaseBin}' conductor -q proxy`;
  const c = await open(t, ['-q', 'agent', passOn, passOn, passOn, agent()], { command: [releaseBin, 'conductor'] });
  let got = 0;
  let next = 0;
  c.onLine = () => {};
  c.take = (method, params) => {
    assert.equal(Number(params.update.content.text), next++);
    got += params.update.content.text.length;
  };
  // A megabyte, then a pause: about a quarter of the speed of the others.
  let since = 0;
  c.child.stdout.on('data', (chunk) => {
    since += chunk.length;
    if (since < 1 << 20) return;
    since = 0;
    c.child.stdout.pause();
    setTimeout(() => c.child.stdout.resume(), 20);
  });
  const family = [c.child.pid, ...descendants(c.child.pid).map((p) => p.pid)];
  await within(150_000, 'the prompt', promptOf(c, { command: 'updates', count: 2000, size: 100_000 }));
  assert.equal(got, 200_000_000);
  const programs = family.filter((pid) => /rialto/.test(fs.readFileSync(`/proc/${pid}/comm`, 'utf8')));
  assert.equal(programs.length, 4);
  for (const pid of programs) assert.ok(peak(pid) < 32, `process ${pid} of ${programs} has needed ${peak(pid)} MiB`);
  await c.stop(0);
});

/** An agent that writes 100 MB without waiting, and reads meanwhile; it logs what it reads to `file`. */
const flood = (file) => JSON.stringify({
  command: process.execPath,
  args: ['-e', `const fs = require('fs'), out = fs.createWriteStream(null, { fd: 1 });
    const send = (m) => out.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    require('readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method } = JSON.parse(line);
      if (method === 'initialize') send({ id, result: { protocolVersion: 1 } });
      else fs.appendFileSync('${file}', JSON.stringify({ event: 'heard', method }) + '\\n');
      if (method === '_test/flood') {
        for (let i = 0; i < 1000; i++) send({ method: '_test/part', params: { i, filler: 'x'.repeat(100000) } });
        send({ id, result: {} });
      }
    }).on('close', () => process.exit());`],
});

test('while a client reads nothing, what it writes is read', { timeout: 60_000 }, async (t) => {
  const log = eventLog();
  const c = new Conductor(t, ['-q', 'agent', flood(log.file)]);
  await c.initialize();
  c.child.stdout.pause();
  const flooded = c.request('_test/flood', {});
  await until('the flood', () => log.of('heard').length === 1);
  await sleep(500); // the pipes are full
  c.notify('_test/small', {});
  await until('the notification', () => log.of('heard').at(-1).method === '_test/small');
  // 50 MB in the other direction, which is not full.
  for (let i = 0; i < 50; i++) c.notify('_test/large', { filler: 'x'.repeat(1 << 20) });
  await until('all of them', () => log.of('heard').filter((e) => e.method === '_test/large').length === 50, 30_000);
  c.child.stdout.resume();
  await within(30_000, 'the answer', flooded);
  assert.deepEqual(c.heard.map((m) => m.params.i), [...Array(1000).keys()]);
  await c.stop(0);
});

test('a client that reads nothing for the stall timeout is given up with that reason', async (t) => {
  const c = new Conductor(t, ['-q', '--stall-timeout', '300ms', 'agent', inner('-q', 'proxy'), agent()]);
  await c.initialize();
  const family = descendants(c.child.pid);
  c.child.stdout.pause();
  for (let i = 0; i < 4; i++) c.request('_test/huge', { bytes: 20 << 20 });
  await expectGone(family, 20_000);
  c.child.stdout.resume();
  assert.equal(await within(15_000, 'the end', c.exit), 1);
  assert.match(c.stderr, /the client is given up: it has read nothing for 300ms/);
});

// The proxy next to a slow client is blocked by its own output and cannot read: it is not to blame.
test('who reads a little is not given up, nor who waits for that one', { timeout: 60_000 }, async (t) => {
  const c = await open(t, ['-q', '--stall-timeout', '800ms', 'agent', proxy('P2'), agent()]);
  let since = 0;
  const rest = (chunk) => {
    since += chunk.length;
    if (since < 200_000) return;
    since = 0;
    c.child.stdout.pause();
  };
  c.child.stdout.on('data', rest);
  const done = promptOf(c, { command: 'updates', count: 1000, size: 10_240 });
  for (let i = 0; i < 12; i++) {
    await sleep(250);
    c.child.stdout.resume();
  }
  assert.ok(texts(c).length < 800, 'most of it still waits');
  c.child.stdout.off('data', rest);
  c.child.stdout.resume();
  await within(20_000, 'the prompt', done);
  assert.equal(texts(c).length, 1000);
  await c.stop(0);
});

test('a component that reads nothing for the stall timeout is ended with that reason', async (t) => {
  const script = `process.stdin.once('data', (d) => {
    console.log(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(d).id, result: { protocolVersion: 1 } }));
    process.stdin.pause();
    setInterval(() => {}, 1000);
  })`;
  const c = new Conductor(t, ['-q', '--stall-timeout', '300ms', 'agent', JSON.stringify({ command: process.execPath, args: ['-e', script] })]);
  await c.initialize();
  const waiting = c.request('session/list', {});
  for (let i = 0; i < 70; i++) c.notify('_test/nothing', { filler: 'x'.repeat(1 << 20) });
  await rejects(waiting, -32603, /killed by SIGTERM; before that its pipe was closed: it has read nothing for 300ms/);
  assert.equal(await within(15_000, 'the end', c.exit), 1);
});
