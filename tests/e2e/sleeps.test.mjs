// An unused daemon sleeps. About ten places used to check every few milliseconds whether a server
// had changed, the worker of a bus for ever, and every endpoint swept its sessions every 15 seconds,
// even without any: that costs a laptop's battery, and fills traces in which people look for one
// call. Only the check of its configuration file every 5 s may wake it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { events } from './admin_lib.mjs';
import { exchange, fake, rialtoBin, serve, sleep, tempDir, until } from './lib.mjs';

const servers = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`s${i}`, fake()]));
// One-time work after a start is over by `settled`; work every 15 s falls into `watched`.
const settled = 12_000, watched = 20_000;

// The daemon runs under strace from the start: only root could attach later. The leak checker is a
// tracer itself, and there can be only one.
async function trace(t, config) {
  const file = path.join(tempDir(), 'trace');
  const daemon = await serve(t, config, {
    bin: ['strace', '-D', '-ttt', '-o', file, rialtoBin],
    env: { ASAN_OPTIONS: 'detect_leaks=0' },
  });
  /** The daemon's system calls since that time. */
  daemon.callsSince = (ms) => fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
    .map((line) => line.match(/^(\d+\.\d+) (.*)$/)).filter((m) => m && m[1] * 1000 >= ms).map((m) => m[2]);
  return daemon;
}

async function expectSleep(t, config, { page = false } = {}) {
  const daemon = await trace(t, config);
  if (page) await events(t, daemon);
  await until('all servers up', async () =>
    (await exchange(`${daemon.origin}/readyz?strict`, { method: 'GET' })).status === 200, 30_000);
  await sleep(settled);
  const from = Date.now();
  await sleep(watched);
  const calls = daemon.callsSince(from);
  const looks = calls.filter((call) => call.includes(daemon.config));
  const beats = calls.filter((call) => page && /still here/.test(call));
  const sleeps = calls.filter((call) => /^epoll_p?wait\(/.test(call));
  const others = calls.filter((call) => ![looks, beats, sleeps].some((some) => some.includes(call)));
  assert.ok(beats.length <= 1, calls.join('\n'));
  assert.deepEqual(others, [], calls.join('\n'));
  assert.ok(looks.length > 1 && looks.length <= watched / 5000 + 1, calls.join('\n'));
  // One sleep before each check and one after the last. A sleep may end a moment too early; then
  // another one of a few milliseconds follows.
  const whole = sleeps.filter((call) => !/, \d\) += 0$/.test(call));
  const wakes = looks.length + beats.length;
  assert.ok(whole.length <= wakes + 1 && sleeps.length <= 2 * wakes + 2, calls.join('\n'));
}

describe('nobody calls', { concurrency: true }, () => {
  test('20 servers', async (t) => {
    await expectSleep(t, { servers });
  });

  test('20 servers, and a page that is open', async (t) => {
    await expectSleep(t, { servers }, { page: true });
  });

  test('20 servers, and sessions of browsers that would be short', async (t) => {
    await expectSleep(t, { servers, browser: { session_ttl: '1s' } });
  });

  test('a worker on a bus', async (t) => {
    await expectSleep(t, { servers, bus: { url: 'embedded:' } });
  });

  test('a worker and a proxy on a bus', async (t) => {
    await expectSleep(t, { servers, bus: { url: 'embedded:', role: 'both', agents: ['a'] } });
  });
});
