// An unused daemon sleeps. About ten places used to check every few milliseconds whether a server
// had changed, the worker of a bus for ever, and every endpoint swept its sessions every 15 seconds,
// even without any: that costs a laptop's battery, and fills traces in which people look for one
// call. Only the check of its configuration file every 5 s may wake it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { events } from './admin_lib.mjs';
import { startNats, startRabbit } from './brokers.mjs';
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

async function expectSleep(t, config, { page = false, heartbeat = null, meanwhile = null } = {}) {
  const daemon = await trace(t, config);
  if (page) await events(t, daemon);
  await until('all servers up', async () =>
    (await exchange(`${daemon.origin}/readyz?strict`, { method: 'GET' })).status === 200, 30_000);
  await meanwhile?.();
  await sleep(settled);
  const from = Date.now();
  await sleep(watched);
  const calls = daemon.callsSince(from);
  const looks = calls.filter((call) => call.includes(daemon.config));
  const beats = calls.filter((call) => page && /still here/.test(call));
  const ofBus = calls.filter((call) => heartbeat?.test(call));
  const sleeps = calls.filter((call) => /^epoll_p?wait\(/.test(call));
  const others = calls.filter((call) => ![looks, beats, ofBus, sleeps].some((some) => some.includes(call)));
  assert.ok(beats.length <= 1 && ofBus.length <= 2 * watched / 5000, calls.join('\n'));
  assert.deepEqual(others, [], calls.join('\n'));
  assert.ok(looks.length > 1 && looks.length <= watched / 5000 + 1, calls.join('\n'));
  // A sleep may end a moment too early; then another one of a few milliseconds follows. Every other sleep that ends by
  // itself is followed by what it was for.
  const isSleep = (call) => /^epoll_p?wait\(/.test(call) && !/, \d\) += 0$/.test(call);
  const whole = calls.filter((call) => isSleep(call) || !sleeps.includes(call));
  const idle = whole.filter((call, i) => isSleep(call) && / = 0$/.test(call) && whole[i + 1] && isSleep(whole[i + 1]));
  assert.deepEqual(idle, [], calls.join('\n'));
  assert.ok(sleeps.length <= 2 * (looks.length + beats.length + ofBus.length) + 2, calls.join('\n'));
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

  // A broker's heartbeats: RabbitMQ's frame every 15 s, both ways; NATS's PING every 12.5 s, and for JetStream a request for
  // messages that expires after 30 s and is made again. A timer of the NATS engine also fired every 5 s, for nothing; here the
  // connection is a later one, so that this does not fall together with the check of the file.
  for (const [name, startBroker, options, heartbeat] of [
    ['RabbitMQ', startRabbit, {}, /"\\10\\0\\0\\0\\0\\0\\0\\316"/],
    ['NATS', startNats, {}, /"P[IO]NG\\r\\n"/],
    ['NATS with JetStream', startNats, { jetstream: true }, /"P[IO]NG\\r\\n"|"PUB \$JS\.API\.CONSUMER\.MSG\.NEXT|"HMSG /],
  ]) {
    test(`a worker and a proxy on ${name}`, async (t) => {
      const broker = await startBroker(t, options);
      const reconnect = async () => { await broker.stop(); await sleep(2000); await broker.start(); };
      const url = typeof broker.url === 'function' ? broker.url() : broker.url;
      await expectSleep(t, { servers: { s0: fake(), s1: fake() }, bus: { url, role: 'both', agents: ['a'] } }, { heartbeat, meanwhile: name === 'RabbitMQ' ? null : reconnect });
    });
  }

  test('a worker and a proxy on a bus', async (t) => {
    await expectSleep(t, { servers, bus: { url: 'embedded:', role: 'both', agents: ['a'] } });
  });
});
