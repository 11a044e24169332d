// What may never happen, however daemon and shims end: a process that is left behind, a call without an
// answer, a call that ran twice.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { descendants, fake, isAlive, rialtoBin, runCommand, sleep, tempDir, until, within } from './lib.mjs';
import { counting, home } from './daemon_lib.mjs';

const greeting = `${JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
})}\n`;
const openFiles = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;

test('a thousand hosts come and go', async (t) => {
  const h = home(t, { servers: { one: fake('--name', 'one') } });
  const keeper = await h.host().connect();
  await keeper.waitFor('one__echo');
  const [{ pid }] = await h.daemons();
  const files = openFiles(pid);
  let left = 1000;
  const visit = async () => {
    while (left-- > 0) {
      const { code, stdout, stderr } = await runCommand(rialtoBin, ['stdio', '-c', h.file], { env: h.env, input: greeting });
      assert.equal(code, 0, stderr);
      assert.equal(JSON.parse(stdout).id, 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, visit));
  const [daemon] = await until('all gone', async () => {
    const all = await h.daemons();
    return all[0].shims === 1 && all;
  });
  assert.equal(daemon.pid, pid, 'the same daemon');
  assert.equal(descendants(pid).length, 1);
  await until('no descriptor is left', () => openFiles(pid) <= files + 1);
});

test('kill -9 of the daemon at any point: every call has one answer, and none runs twice', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const h = home(t, { servers: { n: counting(log) } });
  const c = await h.host().connect();
  await c.waitFor('n__count');
  let n = 0;
  for (let round = 0; round < 12; round++) {
    const ids = [];
    const call = () => {
      n += 1;
      ids.push(n);
      c.send({ jsonrpc: '2.0', id: n, method: 'tools/call', params: { name: 'n__count', arguments: { n, ms: n % 3 ? 0 : 40 } } });
    };
    const [{ pid }] = await until('a daemon', async () => { const all = await h.daemons(); return all.length && all; });
    const family = descendants(pid);
    for (let i = 0; i < 5; i++) call();
    await sleep(round * 7); // over the rounds: from before the calls arrive to after they are answered
    process.kill(pid, 'SIGKILL');
    for (let i = 0; i < 5; i++) call();
    await until('all answers', () => ids.every((id) => c.messages().some((m) => m.id === id)), 20_000);
    await until('its servers end with it', () => !family.some(isAlive));
  }
  for (let id = 1; id <= n; id++) {
    const answers = c.messages().filter((m) => m.id === id);
    assert.equal(answers.length, 1, JSON.stringify(answers));
    assert.ok(answers[0].result || answers[0].error.data.reason, JSON.stringify(answers));
  }
  const ran = fs.readFileSync(log, 'utf8').trim().split('\n').map((l) => JSON.parse(l).n);
  assert.equal(new Set(ran).size, ran.length, 'each ran once at most');
  assert.ok(c.messages().some((m) => m.result && m.id > 1));
});

// A batch was passed on as one line that nobody looked into: when the daemon was killed, its calls never got an answer.
test('kill -9 of the daemon: the calls of a batch have an answer, too', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const h = home(t, { servers: { n: counting(log) } });
  const c = h.host();
  const call = (id, args) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'n__count', arguments: args } });
  const answers = () => c.messages().flat();
  c.send(greeting.replace('2025-11-25', '2025-03-26').trim());
  c.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await until('the server', async () => {
    c.send({ jsonrpc: '2.0', id: 'list', method: 'tools/list' });
    await sleep(50);
    return answers().some((m) => m.result?.tools?.length);
  });
  c.send([call(2, { n: 2 }), call(3, { n: 3 })]);
  await until('its answers', () => [2, 3].every((id) => answers().some((m) => m.id === id && m.result)));
  c.send(Array.from({ length: 101 }, (_, i) => call(`many ${i}`, { n: 0 }))); // refused as a whole: more than limits.batch
  await until('its refusal', () => answers().some((m) => m.error && (m.id ?? null) === null));
  c.send([call(4, { n: 4, ms: 60_000 }), { jsonrpc: '2.0', method: 'notifications/nothing' }, call('five', { n: 5, ms: 60_000 })]);
  await until('both calls', () => fs.readFileSync(log, 'utf8').trim().split('\n').length === 4);
  const [{ pid }] = await h.daemons();
  process.kill(pid, 'SIGKILL');
  await until('their answers', () => [4, 'five'].every((id) => answers().some((m) => m.id === id)));
  for (const id of [4, 'five']) assert.equal(answers().find((m) => m.id === id).error.data.reason, 'crashed');
  assert.ok(!answers().some((m) => String(m.id).startsWith('many')), 'nor what was refused');
  for (const id of [2, 3]) assert.equal(answers().filter((m) => m.id === id).length, 1, 'what was answered is not answered again');
});

test('kill -9 of shims at any point leaves nothing in the daemon', async (t) => {
  const log = path.join(tempDir(), 'calls');
  const h = home(t, { servers: { n: counting(log) } });
  const keeper = await h.host().connect();
  await keeper.waitFor('n__count');
  for (let round = 0; round < 12; round++) {
    const c = h.host();
    c.stopping = c.ended; // it is killed: no clean end is expected
    c.send(greeting.trim());
    c.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    c.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'n__count', arguments: { n: round, ms: 60_000 } } });
    await sleep(round * 10);
    c.child.kill('SIGKILL');
    await within(5000, 'its end', c.ended);
  }
  await until('no trace of them', async () => {
    const [d] = await h.daemons();
    return d.shims === 1 && d.in_flight === 0 && d.queued === 0;
  });
  assert.ok((await keeper.request('tools/call', { name: 'n__count', arguments: {} })).result);
});
