// A daemon that nobody uses sleeps. About ten places used to look every few milliseconds whether a
// server had changed, the worker of a bus for ever, and every entrance swept its sessions all 15
// seconds, though there were none: a laptop pays for that, and so does whoever searches a trace for
// the one call that matters. What may wake it is the look at its configuration file every 5 s.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { exchange, fake, serve, sleep, start, tempDir, until } from './lib.mjs';

const servers = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`s${i}`, fake()]));
// What is done once after a start is over by then; and what is done every 15 s comes into the trace.
const settled = 12_000, watched = 20_000;

/** The system calls of a process during `ms`. */
async function trace(pid, ms) {
  const file = path.join(tempDir(), 'trace');
  const strace = start('strace', ['-f', '-p', pid, '-o', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  strace.stderr.on('data', (d) => { said += d; });
  const ended = new Promise((resolve) => { strace.on('close', resolve); });
  await until('strace', () => /attached/.test(said) || strace.exitCode !== null);
  assert.equal(strace.exitCode, null, `strace cannot attach, which it may as root: ${said}`);
  await sleep(ms);
  strace.kill('SIGINT');
  await ended;
  return fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => line.replace(/^\d+ +/, ''));
}

async function expectSleep(daemon) {
  await until('all servers up', async () =>
    (await exchange(`${daemon.origin}/readyz?strict`, { method: 'GET' })).status === 200, 30_000);
  await sleep(settled);
  const calls = await trace(daemon.pid, watched);
  const looks = calls.filter((call) => call.includes(daemon.config));
  const sleeps = calls.filter((call) => /^epoll_p?wait\(/.test(call));
  const others = calls.filter((call) => !looks.includes(call) && !sleeps.includes(call));
  assert.deepEqual(others, [], calls.join('\n'));
  assert.ok(looks.length > 1 && looks.length <= watched / 5000 + 1, calls.join('\n'));
  // One sleep before each look and one after the last. One may end a moment before its time; then
  // there is another of a few milliseconds.
  const whole = sleeps.filter((call) => !/, \d\) += 0$/.test(call));
  assert.ok(whole.length <= looks.length + 1 && sleeps.length <= 2 * looks.length + 2, calls.join('\n'));
}

describe('nobody calls', { concurrency: true }, () => {
  test('20 servers', async (t) => {
    await expectSleep(await serve(t, { servers }));
  });

  test('20 servers, and sessions of browsers that would be short', async (t) => {
    await expectSleep(await serve(t, { servers, browser: { session_ttl: '1s' } }));
  });

  test('a worker on a bus', async (t) => {
    await expectSleep(await serve(t, { servers, bus: { url: 'embedded:' } }));
  });

  test('a worker and a proxy on a bus', async (t) => {
    await expectSleep(await serve(t, { servers, bus: { url: 'embedded:', role: 'both', agents: ['a'] } }));
  });
});
