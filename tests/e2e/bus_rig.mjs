// Where the scenarios of the bus run: one rig for each engine, with one interface. `limit` is about
// the largest body that its bus takes. `place(t)` is a place on a bus for one test: {bus: the section of
// the configuration, agent: a unique name, engine(t): the test's own connection, join(t, name): an agent
// with its own connection, host(t): starts a Rialto that keeps an embedded bus alive}.
import path from 'node:path';
import { describe, test } from 'node:test';
import { Agent, LineEngine, NatsEngine, RabbitEngine } from './bus_agent.mjs';
import { serve, tempDir, until } from './lib.mjs';

/** serve() with longer limits: these tests run beside brokers and each other. */
export const launch = (t, config, options = {}) => serve(t, config, { slack: 5, ...options });

let agents = 0;

function makePlace(bus, engine, host) {
  return {
    bus, engine, host, agent: `Agent${++agents}`,
    join: async (t, name, options) => Agent.join(await engine(t), name, options),
  };
}

/** Every test has a bus of its own, hosted by the first Rialto that it starts. */
export function embeddedRig(t) {
  return {
    t, name: 'embedded', limit: 16 << 20,
    place() {
      const socket = path.join(tempDir(), 'bus.sock');
      const bus = { url: `unix:${socket}` };
      return makePlace(bus,
        (test_) => until('the bus socket', () => LineEngine.connect(test_, socket).catch(() => null)),
        (test_) => launch(test_, { bus: { ...bus, role: 'proxy', agents: ['Host'] } }));
    },
  };
}

export function rabbitRig(t, rabbit, vhost = '/') {
  return {
    t, name: 'RabbitMQ', limit: 16 << 20, rabbit,
    place: () => makePlace({ url: rabbit.url(vhost) }, (test_) => RabbitEngine.connect(test_, rabbit, vhost)),
  };
}

export function natsRig(t, nats) {
  const { jetstream = false } = nats.options;
  return {
    t, name: jetstream ? 'NATS with JetStream' : 'NATS', limit: 1 << 20, nats,
    place: () => makePlace({ url: nats.url, jetstream }, (test_) => NatsEngine.connect(test_, nats)),
  };
}

/** Makes a test of each scenario; four at a time, because most of them wait for something. */
export function runAll(rig, ...tables) {
  describe(`the bus on ${rig.name}`, { concurrency: 4 }, () => {
    for (const [name, run] of tables.flatMap(Object.entries)) test(`${rig.name}: ${name}`, (t) => run(t, rig));
  });
}
