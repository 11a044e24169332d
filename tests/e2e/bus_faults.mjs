// What is promised when things break: a broker killed and started again, a worker killed, a network
// cut for ten seconds, each in the middle of 1,000 calls that must not be repeated. Every call ends
// in exactly one reply or one clear error, and runs at most once; twice only if the broker delivered it
// again after a crash. Several engines are tried at the same time, because most of it is waiting.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { describe, test } from 'node:test';
import { LineEngine, NatsEngine, RabbitEngine, hexId } from './bus_agent.mjs';
import { freePort, startNats, startRabbit } from './brokers.mjs';
import { startProxy, startWorker } from './bus_fleet_scenarios.mjs';
import { busServer, done } from './bus_worker_scenarios.mjs';
import { launch } from './bus_rig.mjs';
import { descendants, logged, sleep, tempDir, until, within } from './lib.mjs';

const CALLS = 1000;
const AT_ONCE = 40;

/** A connection between a program and its broker that can be cut: what is sent during the cut is lost. */
class Wire {
  #pairs = new Set();
  #cut = false;

  static async to(port) {
    const wire = new Wire();
    wire.server = net.createServer((near) => wire.#join(near, port));
    await new Promise((resolve) => { wire.server.listen(0, '127.0.0.1', resolve); });
    wire.port = wire.server.address().port;
    return wire;
  }

  close() {
    this.#drop();
    this.server.close();
  }

  #join(near, port) {
    near.on('error', () => {});
    if (this.#cut) {
      near.destroy();
      return;
    }
    const far = net.connect(port, '127.0.0.1');
    const pair = [near, far];
    far.on('error', () => {});
    this.#pairs.add(pair);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.on('data', (d) => { if (!this.#cut) to.write(d); });
      from.on('close', () => { if (!this.#cut) { to.destroy(); this.#pairs.delete(pair); } });
    }
  }

  #drop() {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#pairs.clear();
  }

  /** For `ms` nothing gets through and no connection is closed; then all connections are dropped. */
  async cut(ms) {
    this.#cut = true;
    await sleep(ms);
    this.#drop();
    this.#cut = false;
  }
}

/**
 * Makes CALLS calls of `count`, AT_ONCE at a time; `fault` runs once a third of them has ended. Resolves
 * to the ends by id: 'done' or the error's text.
 */
async function callMany(client, name, fault) {
  const ends = new Map();
  let next = 0;
  let broken;
  const one = async () => {
    while (next < CALLS) {
      const id = `n${next++}`;
      const { result, error } = await client.call(name, { id });
      assert.ok(!ends.has(id), `${id} ended twice`);
      ends.set(id, result && !result.isError ? 'done' : error?.message ?? result.content[0].text);
      if (result && !result.isError) assert.equal(result.content[0].text.split(' ')[0], id, 'the answer of another call');
      if (ends.size === Math.floor(CALLS / 3)) broken = fault();
    }
  };
  await within(150_000, 'all calls end', Promise.all([...Array(AT_ONCE)].map(one)));
  await broken;
  assert.equal(ends.size, CALLS);
  return ends;
}

/** Compares the answers with the runs of the tool, and prints the counts. */
function judge(t, what, ends, file, { twiceBy = [] } = {}) {
  const runs = new Map();
  for (const [id, pid] of done(file)) runs.set(id, [...(runs.get(id) ?? []), Number(pid)]);
  const errors = [...ends.values()].filter((e) => e !== 'done');
  const twice = [...runs].filter(([, pids]) => pids.length > 1);
  const silent = [...ends].filter(([id, e]) => e === 'done' && !runs.has(id));
  t.diagnostic(`${what}: ${CALLS} calls, ${CALLS - errors.length} replies, ${errors.length} errors, `
    + `${twice.length} ran twice; errors: ${[...new Set(errors)].join(' | ').slice(0, 400)}`);
  assert.deepEqual(silent, [], 'a reply for what was never done');
  for (const error of errors) assert.match(error, /timed out|is not available|bus|shut|stopp|ended|fail|crash/i, 'a clear error');
  for (const [id, pids] of twice) {
    assert.equal(pids.length, 2, `${id} ran ${pids.length} times`);
    assert.ok(pids.some((pid) => twiceBy.includes(pid)), `${id} ran twice, though nobody was killed`);
  }
  assert.ok(errors.length < CALLS / 2, 'most calls come through');
}

// --- the engines ---

async function natsFor(t, jetstream) {
  const nats = await startNats(t, { jetstream });
  return () => ({
    bus: { url: nats.url, jetstream }, limit: { timeout: jetstream ? '20s' : '6s' }, broker: nats, port: nats.port, flood: jetstream ? 1000 : 4000,
    through: (wire) => ({ url: `nats://127.0.0.1:${wire.port}` }),
    engine: (t_) => NatsEngine.connect(t_, nats),
  });
}

// Each makes a rig for one fault: {bus, limit: how long calls may take, broker, port, through(wire): the
// bus reached through a wire, engine(t), flood: bytes of each of the 100,000 messages}.
export const engines = {
  async RabbitMQ(t) {
    const rabbit = await startRabbit(t);
    return () => ({
      bus: { url: rabbit.url() }, limit: { timeout: '20s' }, broker: rabbit, port: rabbit.port, flood: 1000,
      through: (wire) => ({ url: rabbit.url().replace(`:${rabbit.port}/`, `:${wire.port}/`) }),
      engine: (t_) => RabbitEngine.connect(t_, rabbit),
    });
  },
  NATS: (t) => natsFor(t, false),
  'NATS with JetStream': (t) => natsFor(t, true),
  // The broker is a Rialto that does nothing else; when it dies, one of the others hosts the bus.
  async embedded() {
    return async () => {
      const socket = path.join(tempDir(), 'bus.sock');
      const port = await freePort();
      const token = hexId();
      const config = { bus: { url: `unix:${socket}`, role: 'proxy', agents: ['Host'], listen: `127.0.0.1:${port}`, token } };
      const broker = {
        async start() { this.server = await launch({ after() {} }, config); await logged(this.server, /joined /); },
        async kill() { process.kill(this.server.pid, 'SIGKILL'); await this.server.ended; },
      };
      await broker.start();
      return {
        bus: { url: `unix:${socket}` }, limit: { timeout: '6s' }, broker, port, flood: 1000, end: () => broker.kill(),
        through: (wire) => ({ url: `tcp://127.0.0.1:${wire.port}`, token }),
        engine: (t_) => LineEngine.connect(t_, socket),
      };
    };
  },
};

const faults = {
  async 'the broker is killed and started again'(t, rig) {
    const place = { bus: rig.bus, agent: 'Broken' };
    const file = path.join(tempDir(), 'done');
    await startWorker(t, place, { far: busServer(file) });
    const { client } = await startProxy(t, place, { bus: rig.limit, wanted: ['far__count'] });
    const ends = await callMany(client, 'far__count', async () => {
      await rig.broker.kill();
      await sleep(500);
      await rig.broker.start();
    });
    judge(t, 'broker killed', ends, file);
    assert.match(await client.text('far__echo', { after: 1 }), /after/, 'and it works on');
  },

  async 'one of two workers is killed with SIGKILL'(t, rig) {
    const place = { bus: rig.bus, agent: 'Killed' };
    const file = path.join(tempDir(), 'done');
    const doomed = await launch({ after() {} }, { servers: { far: busServer(file) }, bus: { ...rig.bus, role: 'worker', agents: [place.agent] } });
    t.after(() => { try { process.kill(doomed.pid, 'SIGKILL'); } catch { /* already killed */ } });
    await startWorker(t, place, { far: busServer(file) });
    const { client } = await startProxy(t, place, { bus: rig.limit, wanted: ['far__count'] });
    const pids = new Set();
    await until('both work', async () => pids.add(await client.text('far__pid')).size === 2, 20_000);
    const children = descendants(doomed.pid).map((p) => p.pid);
    const ends = await callMany(client, 'far__count', () => { process.kill(doomed.pid, 'SIGKILL'); });
    judge(t, 'worker killed', ends, file, { twiceBy: children });
    assert.match(await client.text('far__echo', { after: 1 }), /after/);
  },

  async 'the network is cut for ten seconds'(t, rig) {
    const wire = await Wire.to(rig.port);
    const place = { bus: rig.bus, agent: 'Cut' };
    const file = path.join(tempDir(), 'done');
    await startWorker(t, place, { far: busServer(file) }, rig.through(wire));
    const { client } = await startProxy(t, place, { bus: rig.limit, wanted: ['far__count'] });
    t.after(() => wire.close()); // after the programs that use it have ended
    const ends = await callMany(client, 'far__count', () => wire.cut(10_000));
    judge(t, 'network cut', ends, file);
    assert.match(await client.text('far__echo', { after: 1 }), /after/);
  },
};

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** `n` invokes at once for a worker whose server is slow; resolves to how many the bus took. */
async function flood(engine, agent, n, bytes) {
  const text = JSON.stringify({ toolCallId: 'c', toolName: 'wait', arguments: JSON.stringify({ id: 'p'.repeat(bytes), ms: 2000 }), sessionId: null });
  let taken = 0;
  for (let i = 0; i < n; i += 500) {
    const batch = [...Array(500)].map(() => engine.publish('tool.invoke.mcp', {
      messageId: hexId(), messageType: 'RockBot.Tools.ToolInvokeRequest', correlationId: hexId(), replyTo: `tool.result.${agent}`,
      source: agent, timestamp: Date.now(), headers: { 'rb-mcp-server': 'far', 'rb-timeout-ms': '5000' }, text, passing: true,
    }).then(() => { taken++; }, () => {}));
    await Promise.all(batch);
    await engine.nc?.flush();
    await new Promise((resolve) => { setImmediate(resolve); }); // lets Node write what is queued
  }
  return taken;
}

async function backpressure(t, rig) {
  const place = { bus: rig.bus, agent: 'Flooded' };
  const worker = await startWorker(t, place, { far: busServer() });
  await logged(worker, /joined /);
  const before = rss(worker.pid);
  const watched = [worker.pid, ...(rig.broker.server ? [rig.broker.server.pid] : [])];
  const taken = await flood(await rig.engine(t), place.agent, 100_000, rig.flood);
  let most = 0;
  for (let i = 0; i < 10; i++) {
    most = Math.max(most, ...watched.map(rss));
    await sleep(200);
  }
  t.diagnostic(`100,000 invokes of ${rig.flood} bytes: the bus took ${taken}; the worker had ${before.toFixed(0)} MiB before, at most ${most.toFixed(0)} MiB`);
  assert.ok(most - before < 160, `it grew by ${(most - before).toFixed(0)} MiB`);
  await worker.stop('SIGTERM', 20_000);
}

faults['100,000 queued invokes do not fill the memory'] = backpressure;

/** Makes the tests of these engines. */
export function runFaults(...names) {
  describe('faults of the bus', { concurrency: names.length }, () => {
    for (const name of names) {
      test(name, { timeout: 170_000 }, async (t) => {
        const rigFor = await engines[name](t);
        for (const [what, run] of Object.entries(faults)) {
          await t.test(`${name}: ${what}`, async (sub) => {
            const rig = await rigFor(sub);
            try {
              await run(sub, rig);
            } finally {
              sub.after(() => rig.end?.()); // the last hook: the programs that use it have ended then
            }
          });
        }
      });
    }
  });
}
