// tests/fake/bus_probe as an object: a party on any bus, driven line by line.
import assert from 'node:assert/strict';
import path from 'node:path';
import { expectClean, root, sanitizerEnv, start, until, within } from './lib.mjs';

export const probeBin = path.resolve(root,
  process.env.RIALTO_PROBE_BIN ?? 'build/asan/tests/fake/bus_probe');

export class Probe {
  events = [];
  stderr = '';

  constructor(t, url, args = []) {
    this.child = start(probeBin, [...args, url, 'drive'], {
      stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...sanitizerEnv },
    });
    let rest = '';
    this.child.stdout.on('data', (d) => {
      const lines = (rest + d).split('\n');
      rest = lines.pop();
      this.events.push(...lines.map((l) => JSON.parse(l)));
    });
    this.child.stderr.on('data', (d) => { this.stderr += d; });
    this.child.stdin.on('error', () => {});
    this.ended = new Promise((resolve) => { this.child.on('close', (code) => resolve(code)); });
    t.after(() => this.leave());
  }

  do(command) {
    this.child.stdin.write(`${JSON.stringify(command)}\n`);
  }

  of(event) {
    return this.events.filter((e) => e.event === event);
  }

  /** Waits for the n-th event of a kind and resolves to it. */
  async wait(event, n = 1, ms = 30_000) {
    return until(`${n} × ${event}`, () => this.of(event)[n - 1], ms)
      .catch((e) => { throw new Error(`${e.message}\n${JSON.stringify(this.events).slice(0, 2000)}\n${this.stderr}`); });
  }

  /** Waits for a line of its log. */
  async logged(pattern, ms = 30_000) {
    return until(`${pattern} in the log`, () => this.stderr.match(pattern), ms)
      .catch((e) => { throw new Error(`${e.message}\n${this.stderr}`); });
  }

  messages(name) {
    return this.of('message').filter((e) => !name || e.name === name);
  }

  /** Subscribes and waits until the engine says so. */
  async sub(name, topic, group, more = {}) {
    const before = this.subscribed(group);
    this.do({ op: 'sub', name, topic, group, verdict: 'ack', ...more });
    await until(`subscribed to ${topic} as ${group}`, () => this.subscribed(group) > before, 30_000)
      .catch((e) => { throw new Error(`${e.message}\n${this.stderr}`); });
  }

  /** How often the log says that this group was subscribed, in RabbitMQ by the name of its queue. */
  subscribed(group) {
    return this.stderr.split('\n')
      .filter((l) => l.includes('subscribed to ')
        && [`as ${group}`, `.${group}`].some((end) => l.trimEnd().endsWith(end))).length;
  }

  pub(topic, env, more = {}) {
    this.do({ op: 'pub', topic, env, ...more });
  }

  leave() {
    this.leaving ??= (async () => {
      this.child.stdin.end();
      const code = await within(20_000, 'the probe leaves', this.ended).catch((e) => {
        this.child.kill('SIGKILL');
        throw new Error(`${e.message}\n${this.stderr}`);
      });
      expectClean(this.stderr);
      assert.equal(code, 0, this.stderr);
    })();
    return this.leaving;
  }
}

/** A probe that has joined the bus. */
export async function startProbe(t, url, args = []) {
  const probe = new Probe(t, url, args);
  await probe.wait('up');
  return probe;
}
