// Messages themselves, by the commands of the program and by the test's own connection: what is
// published by one is what the other reads.
import assert from 'node:assert/strict';
import { hexId } from './bus_agent.mjs';
import { rialto, rialtoBin, sanitizerEnv, sleep, start, until, within } from './lib.mjs';

/** `rialto bus tail` that has begun to print: {lines(), ended}. */
async function tail(t, place, engine, pattern, probe) {
  const child = start(rialtoBin, ['bus', 'tail', pattern, '--url', place.bus.url, '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...sanitizerEnv },
  });
  let text = '';
  let trouble = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { trouble += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  t.after(async () => { child.kill('SIGTERM'); await within(10_000, 'the end of tail', ended); });
  const lines = () => text.split('\n').filter(Boolean).map((l) => JSON.parse(l));
  // Probes are sent until it prints one: before its subscription is made it gets nothing.
  await until(`tail listens\n${trouble}`, async () => {
    await engine.publish(probe, message('Test.Probe', {}));
    await sleep(50);
    return lines().length > 0;
  }, 20_000);
  return { lines: () => lines().filter((l) => l.env.messageType !== 'Test.Probe') };
}

const message = (messageType, body, more = {}) => ({
  messageId: hexId(), messageType, source: 'Tester', timestamp: Date.now(), headers: {}, text: JSON.stringify(body), ...more,
});

export const messageScenarios = {
  'RabbitMqIntegration: a message makes the round with correlation and source': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    const engine = await place.engine(t);
    const topic = `round.${place.agent}`;
    const { lines } = await tail(t, place, engine, topic, topic);
    const sent = message('My.Full.Type', { text: 'é "x"', n: 1.5 }, {
      correlationId: hexId(), replyTo: 'back.here', headers: { 'rb-content-trust': 'system', other: 'y=z' },
    });
    await engine.publish(topic, sent);
    await until('it came', () => lines().length === 1);
    const [{ env, topic: where }] = lines();
    assert.equal(where, topic);
    assert.deepEqual([env.messageId, env.messageType, env.correlationId, env.replyTo, env.source],
      [sent.messageId, 'My.Full.Type', sent.correlationId, 'back.here', 'Tester']);
    assert.deepEqual(env.headers, sent.headers);
    assert.deepEqual(env.body, JSON.parse(sent.text));
    assert.ok(Math.abs(Date.parse(env.timestamp) - sent.timestamp) <= 1000, env.timestamp);
  },

  'RabbitMqIntegration: a wildcard gets both topics; * is one segment only': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    const engine = await place.engine(t);
    const under = (rest) => `wild.${place.agent}.${rest}`;
    const star = await tail(t, place, engine, under('*'), under('probe'));
    const hash = await tail(t, place, engine, under('#'), under('probe'));
    for (const rest of ['one', 'two', 'one.two']) await engine.publish(under(rest), message('T', { rest }));
    await until('all came', () => hash.lines().length === 3 && star.lines().length === 2);
    assert.deepEqual(star.lines().map((l) => l.topic).sort(), [under('one'), under('two')]);
    assert.deepEqual(hash.lines().map((l) => l.topic).sort(), [under('one'), under('one.two'), under('two')].sort());
  },

  'InProcessMessaging: each group gets a copy, its members share, and who has left gets nothing': async (t, rig) => {
    const place = await rig.place(t);
    await place.host?.(t);
    const engine = await place.engine(t);
    const topic = `share.${place.agent}`;
    const got = { a1: [], a2: [], b: [] };
    const groupA = `a.${place.agent}`;
    await engine.subscribe(topic, groupA, (env) => { got.a1.push(env.messageId); });
    const second = await engine.subscribe(topic, groupA, (env) => { got.a2.push(env.messageId); });
    await engine.subscribe(topic, `b.${place.agent}`, (env) => { got.b.push(env.messageId); });
    for (let i = 0; i < 40; i++) {
      const { code, stderr } = i % 20 ? { code: 0 } : await rialto(['bus', 'pub', topic, '{}', '--url', place.bus.url]);
      assert.equal(code, 0, stderr);
      if (i % 20) await engine.publish(topic, message('T', { i }));
    }
    await until('all came', () => got.b.length === 40 && got.a1.length + got.a2.length === 40, 20_000);
    assert.equal(new Set([...got.a1, ...got.a2]).size, 40, 'each to one of them');
    await second.stop();
    const before = got.a2.length;
    await sleep(200);
    for (let i = 0; i < 10; i++) await engine.publish(topic, message('T', { i }));
    await until('the rest came', () => got.b.length === 50 && got.a1.length + got.a2.length === 50, 20_000);
    assert.equal(got.a2.length, before);
  },

  'McpToolProxy: rialto bus pub asks a bridge and prints its answer': async (t, rig) => {
    const { place } = rig.shared;
    const { code, stdout, stderr } = await rialto(['bus', 'pub', 'tool.invoke.mcp',
      '{"toolCallId":"c1","toolName":"echo","arguments":"{\\"x\\":1}"}', '--url', place.bus.url,
      '-t', 'RockBot.Tools.ToolInvokeRequest', '--source', place.agent, '-H', 'rb-mcp-server=main', '--wait', '20s', '--json']);
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).env.body.content, '{"x":1}');
  },
};
