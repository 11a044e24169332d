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
