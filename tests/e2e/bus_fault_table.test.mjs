// Every bus and every fault: what becomes of one call, and that things go on afterwards. Each cell has
// its expected outcome, none is "hangs". What was wrong: callers of RabbitMQ with a full disk were told
// of a timeout and not of the disk. How many of 1,000 calls survive the first two faults is counted by
// bus_faults.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';
import { startNats } from './brokers.mjs';
import { engines } from './bus_faults.mjs';
import { startProxy, startWorker } from './bus_fleet_scenarios.mjs';
import { busServer, done } from './bus_worker_scenarios.mjs';
import { descendants, logged, tempDir, until, within } from './lib.mjs';

// The outcomes of a cell. `says`: the error (none: a result). `runs`: how often the tool ran.
// `at_once`: long before the call's timeout; other errors have a short timeout and come with it.
const outcomes = {
  'done': { runs: 1 },
  'done by another worker': { runs: 2 },
  'timed out, not done later': { says: /timed out/, runs: 0 },
  'timed out, may be done': { says: /timed out/, runs: 1 },
  'timed out for the full disk, not done later': { says: /timed out.*RabbitMQ accepts no messages.*disk/, runs: 0 },
  'refused at once for the full disk': { says: /the bus takes no more messages/, at_once: true, runs: 0 },
  'failed at once, may be done': { says: /host of the bus ended/, at_once: true, runs: 1 },
  'done for nobody': { nobody: true, runs: 1 },
};

const table = {
  'worker killed': {
    'RabbitMQ': 'done by another worker', 'NATS': 'timed out, may be done', // NATS keeps no messages
    'NATS with JetStream': 'done by another worker', 'embedded': 'done by another worker',
  },
  'worker frozen': {
    'RabbitMQ': 'timed out, not done later', 'NATS': 'timed out, not done later',
    'NATS with JetStream': 'timed out, not done later', 'embedded': 'timed out, not done later',
  },
  'broker restarted': {
    'RabbitMQ': 'done', 'NATS': 'done',
    'NATS with JetStream': 'done', 'embedded': 'failed at once, may be done', // the host's memory was the bus
  },
  'disk full': {
    'RabbitMQ': 'timed out for the full disk, not done later', 'NATS': 'done', // writes no files
    'NATS with JetStream': 'refused at once for the full disk', 'embedded': 'done', // writes no files
  },
  'caller gone': {
    'RabbitMQ': 'done for nobody', 'NATS': 'done for nobody',
    'NATS with JetStream': 'done for nobody', 'embedded': 'done for nobody',
  },
};

const SHORT = 4_000;
const LONG = 60_000; // the proxy waits 5 s more for the worker's answer
const unwatched = { after() {} }; // for processes that a test kills itself

/** The one call of a cell: {text, error, ms}; if the connection ends, the error begins with "gone". */
async function callOnce(client, ms) {
  const began = Date.now();
  const { result, error } = await client.call('far__wait', { id: 'it', ms })
    .catch((e) => ({ error: { message: `gone: ${e.message}` } }));
  return { text: result?.content[0].text, error: error?.message, ms: Date.now() - began };
}

const runs = (file) => done(file).filter(([id]) => id === 'it');
const running = (file) => until('the call runs', () => runs(file).length > 0, 30_000);

// --- disks ---

// From now on no file can grow; a process that tries is killed, or gets an error.
const limitFiles = (pid, size) => execFileSync('prlimit', ['--pid', String(pid), `--fsize=${size}:unlimited`]);
const noFiles = (pid) => ({ fill: () => limitFiles(pid, 0), free: () => limitFiles(pid, 'unlimited') });

const disks = {
  'RabbitMQ': (rig) => ({
    fill: () => rig.broker.ctl('set_disk_free_limit', '1000000GB'),
    // RabbitMQ blocks a publisher when it publishes: this call makes it do so.
    async shown(w) {
      await w.call(1);
      await logged(w.proxy, /RabbitMQ accepts no messages/);
    },
    free: () => rig.broker.ctl('set_disk_free_limit', '1MB'),
  }),
  'NATS': (rig) => noFiles(rig.broker.pid),
  'NATS with JetStream': (rig, t) => {
    let jsm;
    return {
      async fill() {
        const nc = await rig.broker.connect(t);
        jsm = await nc.jetstreamManager();
        await jsm.streams.add({ name: 'filler', subjects: ['filler'], storage: 'file' });
        const piece = new Uint8Array(900_000);
        await assert.rejects(async () => { for (;;) await nc.jetstream().publish('filler', piece); }, /503/);
      },
      free: () => jsm.streams.delete('filler'),
    };
  },
  'embedded': (rig) => noFiles(rig.broker.server.pid),
};

// A broker with little room. The bus's own streams would reserve more, so smaller ones are made here.
async function tightJetStream(t) {
  const nats = await startNats(t, { jetstream: true, store: '32MB' });
  const jsm = await (await nats.connect(t)).jetstreamManager();
  for (const root of ['tool', 'mcp']) await jsm.streams.add({ name: root, subjects: [`${root}.>`], storage: 'file' });
  return { bus: { url: nats.url, jetstream: true }, broker: nats };
}

// --- faults: each resolves to how the call ended, once the fault is over ---

const faults = {
  async 'worker killed'(t, w) {
    const open = w.call(5000);
    await running(w.file);
    const server = Number(runs(w.file)[0][1]);
    const doomed = w.workers.find((x) => descendants(x.pid).some((p) => p.pid === server));
    process.kill(doomed.pid, 'SIGKILL');
    return open;
  },

  async 'worker frozen'(t, w) {
    for (const worker of w.workers) process.kill(worker.pid, 'SIGSTOP');
    try {
      return await w.call(1);
    } finally {
      for (const worker of w.workers) process.kill(worker.pid, 'SIGCONT');
    }
  },

  async 'broker restarted'(t, w) {
    const open = w.call(3000);
    await running(w.file);
    const began = Date.now();
    await w.rig.broker.kill();
    await w.rig.broker.start();
    const slow = Date.now() - began > 10_000; // with the pause before the next attempt the bus may be away for 30 s
    const end = await open;
    // A bus that is away for 30 s is given up, as docs/bus.md says.
    return slow && /the bus is away/.test(end.error ?? '') ? { ...end, text: 'it was given up', error: undefined } : end;
  },

  async 'disk full'(t, w) {
    const disk = disks[w.name](w.rig, t);
    await disk.fill();
    try {
      await disk.shown?.(w);
      return await w.call(1);
    } finally {
      await disk.free();
    }
  },

  async 'caller gone'(t, w) {
    const open = w.call(2000);
    await running(w.file);
    process.kill(w.proxy.pid, 'SIGKILL');
    const end = await open;
    w.client = (await startProxy(t, w.place, { wanted: ['far__wait'] })).client;
    return end;
  },
};

/** One worker, or two with the same server if one is to be killed, and a proxy with its client. */
async function startWorld(t, name, rig, fault, timeout) {
  const place = { bus: rig.bus, agent: `Agent${fault.replace(' ', '')}` };
  const file = path.join(tempDir(), 'done');
  const workers = [];
  const add = async (who) => workers.push(await startWorker(who, place, { far: busServer(file) }));
  const endSelf = (server) => t.after(() => { try { process.kill(server.pid, 'SIGKILL'); } catch { /* already killed */ } });
  if (fault === 'worker killed') {
    for (let i = 0; i < 2; i++) await add(unwatched);
    workers.forEach(endSelf);
  } else {
    await add(t);
  }
  const mortal = fault === 'caller gone';
  const { server: proxy, client } = await startProxy(mortal ? unwatched : t, place,
    { bus: { timeout: `${timeout}ms` }, wanted: ['far__wait'] });
  if (mortal) endSelf(proxy);
  // Only the call itself has this limit: making the fault may take long, as rabbitmqctl does on a busy machine.
  const call = (ms) => within(timeout + 30_000, 'the call ends: it hangs', callOnce(client, ms));
  return { name, rig, place, file, workers, proxy, client, call };
}

function judge(end, outcome, timeout, ran) {
  const told = JSON.stringify({ ...end, ran });
  if (outcome.says) assert.match(end.error ?? '', outcome.says, told);
  else if (outcome.nobody) assert.match(end.error ?? '', /^gone/, told);
  else assert.match(end.text ?? '', /^it /, told);
  if (outcome.at_once) assert.ok(end.ms < timeout / 2, `at once: ${told}`);
  assert.equal(ran, outcome.runs, `how often it ran: ${told}`);
}

async function cell(t, name, rig, fault, outcome) {
  const timeout = outcome.says && !outcome.at_once ? SHORT : LONG;
  const w = await startWorld(t, name, rig, fault, timeout);
  const end = await faults[fault](t, w);
  // One try may be lost: a new host of the embedded bus keeps nothing for a worker that has not joined yet.
  await until('things go on', async () => {
    const { result } = await within(10_000, 'one try', w.client.call('far__echo', { after: 1 })).catch(() => ({}));
    return result && !result.isError;
  }, 60_000);
  judge(end, outcome, timeout, runs(w.file).length);
  t.diagnostic(`${name}, ${fault}: ${end.error ?? 'done'} after ${end.ms} ms`);
}

describe('bus and fault', { concurrency: 2 }, () => {
  for (const name of Object.keys(engines)) {
    test(name, { timeout: 280_000 }, async (t) => {
      const rigFor = await engines[name](t);
      for (const [fault, expected] of Object.entries(table)) {
        await t.test(`${name}, ${fault}: ${expected[name]}`, async (sub) => {
          const tight = fault === 'disk full' && name === 'NATS with JetStream';
          const rig = tight ? await tightJetStream(t) : await rigFor(sub);
          try {
            await cell(sub, name, rig, fault, outcomes[expected[name]]);
          } finally {
            sub.after(() => rig.end?.());
          }
        });
      }
    });
  }
});
