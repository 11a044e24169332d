// The RabbitMQ engine on a real broker, with amqplib as the other side: what is on the wire is what
// RockBot reads and writes, and nothing stops for good.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import net from 'node:net';
import { after, test } from 'node:test';
import { makeCertificate, startRabbit } from './brokers.mjs';
import { Probe, startProbe } from './bus_probe.mjs';
import { tempDir, until } from './lib.mjs';

const secret = makeCertificate(tempDir());
const [rabbit, safeRabbit] = await Promise.all([
  startRabbit({ after }),
  startRabbit({ after }, { tls: secret, settings: ['max_message_size = 1000000'] })]);

const hex32 = () => crypto.randomBytes(16).toString('hex');
const text = (value) => String(value);

/** An agent's side: a channel of amqplib, with RockBot's exchanges declared. */
async function agent(t, vhost = '/') {
  const connection = await rabbit.connect(t, vhost);
  const channel = await connection.createChannel();
  channel.on('error', () => {});
  await channel.assertExchange('rockbot', 'topic', { durable: true });
  await channel.assertExchange('rockbot.dlx', 'topic', { durable: true });
  return { connection, channel };
}

/** A queue of the agent's own on a topic; resolves to the list of messages that arrive. */
async function listenOn(channel, topic) {
  const got = [];
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, 'rockbot', topic);
  await channel.consume(queue, (m) => got.push(m), { noAck: true });
  return got;
}

/** Publishes as RockBot publishes a request. */
function publish(channel, topic, body, { headers = {}, ...more } = {}) {
  channel.publish('rockbot', topic, Buffer.from(body), {
    contentType: 'application/json', deliveryMode: 2, timestamp: 1771400000, messageId: hex32(),
    type: 'RockBot.Tools.ToolInvokeRequest', correlationId: '', replyTo: '',
    headers: { 'rb-source': 'RockBot', ...headers }, ...more,
  });
}

/** Name → {arguments, messages, consumers, durable} of all queues of a virtual host. */
async function queues(vhost) {
  const rows = JSON.parse(await rabbit.ctl('list_queues', '-p', vhost, 'name', 'arguments', 'messages',
    'consumers', 'durable', '--formatter', 'json'));
  return Object.fromEntries(rows.map((r) => [r.name, {
    ...r, arguments: Object.fromEntries(r.arguments.map(([key, , value]) => [key, value])),
  }]));
}

const deadArguments = {
  'x-message-ttl': 259200000, 'x-max-length': 10000, 'x-max-length-bytes': 268435456,
  'x-overflow': 'drop-head',
};
const mainArguments = (topic) => ({
  'x-dead-letter-exchange': 'rockbot.dlx', 'x-dead-letter-routing-key': topic,
});

test('what we publish is what RockBot reads', async (t) => {
  const { channel } = await agent(t);
  const got = await listenOn(channel, 'tool.result.RockBot');
  const probe = await startProbe(t, rabbit.url(), ['--name', 'mcp-bridge.RockBot']);
  const correlation = hex32();
  const began = Math.floor(Date.now() / 1000);
  probe.pub('tool.result.RockBot', {
    messageType: 'RockBot.Tools.ToolInvokeResponse', correlationId: correlation,
    headers: {
      'rb-content-trust': 'tool-output', 'rb-tool-provider': 'mcp',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    },
    body: { toolCallId: '3d', toolName: 'read_file', content: 'hello', contentBlocks: null, isError: false },
  });
  await until('the message', () => got.length === 1);
  const { properties, content, fields } = got[0];
  assert.equal(fields.exchange, 'rockbot');
  assert.equal(fields.routingKey, 'tool.result.RockBot');
  assert.match(properties.messageId, /^[0-9a-f]{32}$/);
  assert.ok(properties.timestamp >= began && properties.timestamp <= Date.now() / 1000 + 1,
    'whole seconds of now');
  delete properties.messageId;
  delete properties.timestamp;
  assert.deepEqual({ ...properties, headers: { ...properties.headers } }, {
    contentType: 'application/json', deliveryMode: 2, correlationId: correlation,
    replyTo: '', // present, and empty
    type: 'RockBot.Tools.ToolInvokeResponse',
    headers: {
      'rb-source': 'mcp-bridge.RockBot', 'rb-rb-content-trust': 'tool-output',
      'rb-rb-tool-provider': 'mcp',
      'rb-traceparent': '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    },
    contentEncoding: undefined, priority: undefined, expiration: undefined, userId: undefined,
    appId: undefined, clusterId: undefined,
  });
  assert.equal(content.toString(),
    '{"toolCallId":"3d","toolName":"read_file","content":"hello","contentBlocks":null,"isError":false}');
  assert.equal((await probe.wait('sent')).how, 'sent');
});

test('what RockBot publishes is what we read', async (t) => {
  const { channel } = await agent(t);
  const probe = await startProbe(t, rabbit.url());
  await probe.sub('s', 'tool.invoke.mcp', 'mcp-bridge.reads');
  const correlation = hex32();
  publish(channel, 'tool.invoke.mcp', '{"toolCallId":"3d","arguments":"{\\u0022path\\u0022:1}"}', {
    correlationId: correlation, replyTo: 'tool.result.RockBot', messageId: 'a'.repeat(32),
    headers: {
      'rb-rb-content-trust': 'tool-request', 'rb-rb-tool-provider': 'mcp', 'rb-rb-timeout-ms': '60000',
      'rb-rb-mcp-server': 'filesystem', 'rb-traceparent': 'tp', 'x-other': 'no', 'rb-number': 5,
      'rb-destination': 'somebody',
    },
  });
  const { env, topic, redelivered } = await probe.wait('message');
  assert.equal(topic, 'tool.invoke.mcp');
  assert.equal(redelivered, false);
  assert.deepEqual(env, {
    messageId: 'a'.repeat(32), messageType: 'RockBot.Tools.ToolInvokeRequest', correlationId: correlation,
    replyTo: 'tool.result.RockBot', source: 'RockBot', destination: 'somebody',
    timestamp: '2026-02-18T07:33:20.000Z',
    headers: {
      'rb-content-trust': 'tool-request', 'rb-tool-provider': 'mcp', 'rb-timeout-ms': '60000',
      'rb-mcp-server': 'filesystem', traceparent: 'tp',
    },
    body: { toolCallId: '3d', arguments: '{"path":1}' },
  });
});

test('foreign publishers: single prefixes, and next to nothing', async (t) => {
  const { channel } = await agent(t);
  const probe = await startProbe(t, rabbit.url());
  await probe.sub('s', 'foreign.topic', 'foreign');
  channel.publish('rockbot', 'foreign.topic', Buffer.from('{}'), {
    headers: { 'rb-content-trust': 'tool-request', 'rb-timeout-ms': '1', 'rb-rb-timeout-ms': '2' },
  });
  channel.publish('rockbot', 'foreign.topic', Buffer.from(''), {});
  await probe.wait('message', 2);
  const [first, second] = probe.messages().map((m) => m.env);
  assert.equal(first.headers['rb-content-trust'], 'tool-request');
  assert.equal(first.headers['rb-timeout-ms'], '2', 'the doubled one counts');
  assert.equal(second.messageType, 'unknown');
  assert.equal(second.source, 'unknown');
  assert.match(second.messageId, /^[0-9a-f]{32}$/);
  assert.ok(Math.abs(Date.parse(second.timestamp) - Date.now()) < 60_000, second.timestamp);
});

test('a wildcard gets both topics; * is one segment, # any number', async (t) => {
  const probe = await startProbe(t, rabbit.url('a'));
  await probe.sub('star', 'wild.*', 'wild-star');
  await probe.sub('hash', 'wild.#', 'wild-hash');
  for (const topic of ['wild', 'wild.one', 'wild.two', 'wild.one.two']) probe.pub(topic, { body: {} });
  await until('all', () => probe.messages().length === 6, 30_000);
  assert.deepEqual(probe.messages('star').map((m) => m.topic), ['wild.one', 'wild.two']);
  assert.deepEqual(probe.messages('hash').map((m) => m.topic), ['wild', 'wild.one', 'wild.two', 'wild.one.two']);
});

// A subscription takes several round trips on a channel of its own, a publish none: a proxy that
// subscribed to its reply topic and sent a request at once was answered before its queue existed, and
// waited for ever.
test('what is published after a subscription was asked for finds it', async (t) => {
  const probe = await startProbe(t, rabbit.url('g'));
  for (let i = 0; i < 5; i++) {
    probe.do({ op: 'sub', name: `s${i}`, topic: `order.${i}`, group: `order-${i}`, verdict: 'ack', ephemeral: true });
    probe.pub(`order.${i}`, { body: { i } });
  }
  await until('all five', () => probe.messages().length === 5);
  assert.deepEqual(probe.messages().map((m) => [m.name, m.env.body.i]).sort(), [0, 1, 2, 3, 4].map((i) => [`s${i}`, i]));
});

test('one group shares, another gets its own copy', async (t) => {
  const one = await startProbe(t, rabbit.url('a'));
  const two = await startProbe(t, rabbit.url('a'));
  await one.sub('s', 'share.x', 'shared', { prefetch: 1 });
  await two.sub('s', 'share.x', 'shared', { prefetch: 1 });
  await two.sub('copy', 'share.x', 'copied');
  for (let i = 0; i < 40; i++) one.pub('share.x', { body: { i } });
  await until('all', () => one.messages('s').length + two.messages('s').length === 40
    && two.messages('copy').length === 40, 30_000);
  assert.ok(one.messages('s').length > 0 && two.messages('s').length > 0);
  assert.deepEqual(two.messages('copy').map((m) => m.env.body.i), [...Array(40).keys()], 'in order');
});

// A client that subscribes for the answers and publishes at once must not overtake its own queue.
test('a message right behind a subscription finds it', async (t) => {
  const probe = await startProbe(t, rabbit.url('a'));
  for (let i = 0; i < 5; i++) {
    probe.do({ op: 'sub', name: `s${i}`, topic: `quick.${i}`, group: `quick-${i}`, verdict: 'ack' });
    probe.pub(`quick.${i}`, { body: { i } });
  }
  await until('all', () => probe.messages().length === 5 && probe.of('sent').length === 5, 30_000)
    .catch((e) => assert.fail(`${e.message}: ${JSON.stringify(probe.events)}`));
});

test('every publish is confirmed once, and many at a time', async (t) => {
  const probe = await startProbe(t, rabbit.url('a'));
  await probe.sub('s', 'many.x', 'many', { prefetch: 100 });
  for (let i = 0; i < 2000; i++) probe.pub('many.x', { body: { i } });
  await until('all', () => probe.of('sent').length === 2000 && probe.messages().length === 2000, 60_000);
  assert.deepEqual(probe.of('sent').map((e) => e.n).sort((a, b) => a - b),
    [...Array(2000).keys()].map((i) => i + 1));
  assert.ok(probe.of('sent').every((e) => e.how === 'sent'));
});

test('bodies of many frames, both ways', async (t) => {
  const { channel } = await agent(t, 'a');
  const got = await listenOn(channel, 'large.back');
  const probe = await startProbe(t, rabbit.url('a'));
  await probe.sub('s', 'large.there', 'large');
  for (const size of [131064, 131065, 1 << 20, 10 << 20]) {
    const body = JSON.stringify({ text: crypto.randomBytes(size / 2).toString('hex').slice(0, size - 11) });
    publish(channel, 'large.there', body);
    const n = got.length + 1;
    const { env } = await probe.wait('message', n, 60_000);
    assert.equal(JSON.stringify(env.body), body, `${size} there`);
    probe.pub('large.back', { body: JSON.parse(body) });
    await until(`${size} back`, () => got.length === n, 60_000);
    assert.equal(text(got.at(-1).content), body, `${size} back`);
  }
  assert.ok((await probe.wait('sent', 4)).how === 'sent');
});

test('too large to publish is refused; too large to take is a dead letter', async (t) => {
  const { channel } = await agent(t, 'a');
  const probe = await startProbe(t, rabbit.url('a'), ['--max-message', '100000']);
  await probe.sub('s', 'limit.x', 'limit');
  probe.pub('limit.x', { body: { text: 'x'.repeat(100000) } });
  assert.equal((await probe.wait('sent')).how, 'too large');
  // These headers do not fit into a frame of 128 KiB.
  probe.pub('limit.x', { headers: { tracestate: 'x'.repeat(140000) }, body: {} });
  assert.equal((await probe.wait('sent', 2)).how, 'too large');

  publish(channel, 'limit.x', `{"text":"${'y'.repeat(300000)}"}`);
  publish(channel, 'limit.x', '{"next":1}');
  assert.deepEqual((await probe.wait('message')).env.body, { next: 1 });
  const dead = await until('the dead letter', () => channel.get('rockbot.limit.dlq', { noAck: true }));
  assert.equal(dead.content.length, 300011);
});

test('verdicts: retry comes again, dead goes to the dead letters', async (t) => {
  const { channel } = await agent(t, 'b');
  const probe = await startProbe(t, rabbit.url('b'));
  await probe.sub('s', 'verdict.x', 'verdict', { verdict: 'hold' });
  publish(channel, 'verdict.x', '{"n":1}');
  let m = await probe.wait('message');
  assert.equal(m.redelivered, false);
  probe.do({ op: 'settle', name: 's', tag: m.tag, verdict: 'retry' });
  m = await probe.wait('message', 2);
  assert.equal(m.redelivered, true);
  probe.do({ op: 'settle', name: 's', tag: m.tag, verdict: 'dead' });
  const dead = await until('the dead letter', () => channel.get('rockbot.verdict.dlq', { noAck: true }));
  assert.equal(text(dead.content), '{"n":1}');
  assert.equal(dead.properties.headers['x-death'][0].reason, 'rejected');
  assert.equal(dead.properties.headers['x-death'][0].queue, 'rockbot.verdict');
  assert.equal(dead.fields.routingKey, 'verdict.x');

  // Settling a message twice, or one that never existed, does no harm.
  probe.do({ op: 'settle', name: 's', tag: m.tag, verdict: 'ack' });
  probe.do({ op: 'settle', name: 's', tag: '123456', verdict: 'ack' });
  publish(channel, 'verdict.x', '{"n":2}');
  m = await probe.wait('message', 3);
  probe.do({ op: 'settle', name: 's', tag: m.tag, verdict: 'ack' });
  await probe.leave();
  assert.doesNotMatch(probe.stderr, /ended the channel/);
  assert.equal((await channel.checkQueue('rockbot.verdict')).messageCount, 0);
  assert.equal(await channel.get('rockbot.verdict.dlq'), false);
});

// Tables nested in tables in the headers would have made us recurse once for each.
test('a message with headers that cannot be read is a dead letter', async (t) => {
  const { channel } = await agent(t, 'b');
  const probe = await startProbe(t, rabbit.url('b'));
  await probe.sub('s', 'poison.x', 'poison');
  let deep = {};
  for (let i = 0; i < 500; i++) deep = { k: deep };
  publish(channel, 'poison.x', '{"n":1}', { headers: { deep } });
  publish(channel, 'poison.x', '{"n":2}');
  assert.deepEqual((await probe.wait('message')).env.body, { n: 2 });
  await until('the dead letter', async () => (await channel.checkQueue('rockbot.poison.dlq')).messageCount === 1);
  assert.equal(probe.of('down').length, 0);
});

test('prefetch bounds what is unsettled', async (t) => {
  const { channel } = await agent(t, 'b');
  const probe = await startProbe(t, rabbit.url('b'));
  await probe.sub('s', 'prefetch.x', 'prefetch', { prefetch: 3, verdict: 'hold' });
  for (let i = 0; i < 10; i++) publish(channel, 'prefetch.x', `{"n":${i}}`);
  await probe.wait('message', 3);
  await until('seven wait', async () => (await channel.checkQueue('rockbot.prefetch')).messageCount === 7);
  assert.equal(probe.messages().length, 3);
  probe.do({ op: 'settle', name: 's', tag: probe.messages()[1].tag, verdict: 'ack' });
  assert.deepEqual((await probe.wait('message', 4)).env.body, { n: 3 });
  // Unsettled messages go back to the queue when their subscriber leaves.
  await probe.leave();
  await until('nine are back', async () => (await channel.checkQueue('rockbot.prefetch')).messageCount === 9);
});

test('queues as RockBot declares them', async (t) => {
  const { channel } = await agent(t, 'c');
  const probe = await startProbe(t, rabbit.url('c'));
  await probe.sub('s', 'tool.invoke.mcp', 'mcp-bridge.A');
  await probe.sub('e', 'tool.short.*', 'short', { ephemeral: true });
  const found = await queues('c');
  assert.deepEqual(Object.keys(found).sort(), ['rockbot.mcp-bridge.A', 'rockbot.mcp-bridge.A.dlq',
    'rockbot.short', 'rockbot.short.dlq']);
  assert.ok(Object.values(found).every((q) => q.durable));
  assert.deepEqual(found['rockbot.mcp-bridge.A'].arguments, mainArguments('tool.invoke.mcp'));
  assert.deepEqual(found['rockbot.mcp-bridge.A.dlq'].arguments, deadArguments);
  assert.deepEqual(found['rockbot.short'].arguments,
    { ...mainArguments('tool.short.*'), 'x-expires': 86400000, 'x-message-ttl': 3600000 });
  assert.deepEqual(found['rockbot.short.dlq'].arguments, { ...deadArguments, 'x-expires': 86400000 });
  // Declaring the same queues with the integer widths that RockBot uses must not be refused.
  await channel.assertQueue('rockbot.mcp-bridge.A', { durable: true, arguments: mainArguments('tool.invoke.mcp') });
  await channel.assertQueue('rockbot.mcp-bridge.A.dlq', { durable: true, arguments: deadArguments });

  // The ephemeral queues go with their subscriber; the others wait for the next one.
  probe.do({ op: 'unsub', name: 'e' });
  await until('the ephemeral queues are gone', async () => Object.keys(await queues('c')).length === 2, 30_000);
  await probe.leave();
  assert.deepEqual(Object.keys(await queues('c')).sort(), ['rockbot.mcp-bridge.A', 'rockbot.mcp-bridge.A.dlq']);
});

// What an onlooker was too slow for went to the dead letters of those who had handled it; and two deployments with
// exchanges of their own shared the names of queues, and deleted each other's for ever.
test('an onlooker makes no dead letters, and queues have the name of their exchange', async (t) => {
  const probe = await startProbe(t, rabbit.url('c'));
  await probe.sub('look', 'tool.#', 'look', { ephemeral: true, lossy: true });
  const found = await queues('c');
  assert.ok(!found['rockbot.look.dlq']);
  assert.deepEqual(found['rockbot.look'].arguments,
    { 'x-expires': 86400000, 'x-message-ttl': 3600000, 'x-max-length': 10000, 'x-overflow': 'drop-head' });
  const other = await startProbe(t, rabbit.url('c'), ['--exchange', 'second']);
  await other.sub('s', 'tool.other', 'look');
  assert.equal((await queues('c'))['second.look'].arguments['x-dead-letter-exchange'], 'second.dlx');
  await probe.leave();
  await other.leave();
});

test('ephemeral queues go with the bus, but not while another subscriber has them', async (t) => {
  const one = await startProbe(t, rabbit.url('d'));
  const two = await startProbe(t, rabbit.url('d'));
  await one.sub('e', 'eph.x', 'eph', { ephemeral: true });
  await two.sub('e', 'eph.x', 'eph', { ephemeral: true });
  await one.leave();
  const found = await queues('d');
  assert.equal(found['rockbot.eph'].consumers, 1);
  assert.ok(found['rockbot.eph.dlq']);
  two.pub('eph.x', { body: {} });
  await two.wait('message');
  await two.leave();
  assert.deepEqual(await queues('d'), {});
});

test('an empty dead-letter queue of an older deployment is made anew', async (t) => {
  const { channel } = await agent(t, 'e');
  await channel.assertQueue('rockbot.old.dlq', { durable: true });
  const probe = await startProbe(t, rabbit.url('e'));
  await probe.sub('s', 'old.x', 'old');
  assert.deepEqual((await queues('e'))['rockbot.old.dlq'].arguments, deadArguments);
  probe.pub('old.x', { body: { n: 1 } });
  await probe.wait('message');
});

test('a dead-letter queue with letters in it is kept, and the subscription works', async (t) => {
  const { channel } = await agent(t, 'e');
  await channel.assertQueue('rockbot.full.dlq', { durable: true });
  channel.sendToQueue('rockbot.full.dlq', Buffer.from('letter'), { persistent: true });
  await until('it is there', async () => (await channel.checkQueue('rockbot.full.dlq')).messageCount === 1);
  const probe = await startProbe(t, rabbit.url('e'));
  await probe.sub('s', 'full.x', 'full', { verdict: 'dead' });
  await probe.logged(/holds dead letters/);
  probe.pub('full.x', { body: { n: 1 } });
  await probe.wait('message');
  await until('both letters', async () => (await channel.checkQueue('rockbot.full.dlq')).messageCount === 2);
  assert.deepEqual((await queues('e'))['rockbot.full.dlq'].arguments, {});
});

test('a main queue with other arguments is made anew', async (t) => {
  const { channel } = await agent(t, 'e');
  await channel.assertQueue('rockbot.strange', { durable: true, arguments: { 'x-max-length': 5 } });
  const probe = await startProbe(t, rabbit.url('e'));
  await probe.sub('s', 'strange.x', 'strange');
  assert.deepEqual((await queues('e'))['rockbot.strange'].arguments, mainArguments('strange.x'));
});

test('a queue that is deleted under us comes back', async (t) => {
  const { channel } = await agent(t, 'f');
  const probe = await startProbe(t, rabbit.url('f'));
  await probe.sub('s', 'cancel.x', 'cancel');
  await channel.deleteQueue('rockbot.cancel');
  await probe.logged(/ended our consumer/);
  await until('subscribed again', () => probe.subscribed('cancel') >= 2, 30_000);
  probe.pub('cancel.x', { body: { n: 1 } });
  await probe.wait('message');
  assert.equal(probe.of('down').length, 0, 'the connection stays');
});

// RockBot PR 109: a channel closed by the broker left a queue without consumer for good.
test('a channel that the broker closes comes back, its messages with it', async (t) => {
  const patience = (ms, tick) => rabbit.ctl('eval', `application:set_env(rabbit, consumer_timeout, ${ms}), `
    + `application:set_env(rabbit, channel_tick_interval, ${tick}).`);
  await patience(3000, 500);
  t.after(() => patience(1_800_000, 60_000));
  const { channel } = await agent(t, 'f');
  const probe = await startProbe(t, rabbit.url('f'));
  await probe.sub('s', 'slow.x', 'slow', { verdict: 'hold' });
  publish(channel, 'slow.x', '{"n":1}');
  const first = await probe.wait('message');
  await probe.logged(/ended the channel while consuming: 406/);
  await patience(1_800_000, 60_000); // takes effect for a later channel: this command may be slow
  const closed = () => probe.stderr.match(/ended the channel while consuming: 406/g).length;
  await until('the message once more than it was taken back', () => probe.of('message').length === closed() + 1, 60_000);
  const second = probe.of('message').at(-1);
  assert.equal(second.redelivered, true);
  assert.notEqual(second.tag, first.tag);
  // The old tag settles nothing, the new one does.
  probe.do({ op: 'settle', name: 's', tag: first.tag, verdict: 'ack' });
  probe.do({ op: 'settle', name: 's', tag: second.tag, verdict: 'ack' });
  await probe.leave();
  assert.equal((await channel.checkQueue('rockbot.slow')).messageCount, 0);
  assert.equal(probe.of('down').length, 0);
});

test('a broker that blocks publishers is waited for', async (t) => {
  const probe = await startProbe(t, rabbit.url('f'));
  await probe.sub('s', 'blocked.x', 'blocked');
  await rabbit.ctl('set_vm_memory_high_watermark', '0.000001');
  try {
    probe.pub('blocked.x', { body: { n: 0 } }); // RabbitMQ tells a publisher only when it publishes
    await probe.logged(/accepts no messages/);
    for (let n = 1; n < 50; n++) probe.pub('blocked.x', { body: { n } });
  } finally {
    await rabbit.ctl('set_vm_memory_high_watermark', 'absolute', '2GB');
  }
  await probe.logged(/accepts messages again/);
  await until('all', () => probe.messages().length === 50 && probe.of('sent').length === 50, 30_000);
  assert.deepEqual(probe.messages().map((m) => m.env.body.n), [...Array(50).keys()]);
});

test('a broker that stands still is noticed by its silence', async (t) => {
  const probe = await startProbe(t, `${rabbit.url('g')}?heartbeat=2`);
  await probe.sub('s', 'beat.x', 'beat');
  rabbit.pause();
  try {
    assert.match((await probe.wait('down')).why, /nothing was heard for 4 s/);
  } finally {
    rabbit.resume();
  }
  await probe.wait('up', 2, 60_000);
  await until('subscribed again', () => probe.subscribed('beat') >= 2, 30_000);
  probe.pub('beat.x', { body: {} });
  await probe.wait('message');
});

// What was queued for a broker that reads nothing kept the socket open for a second more, and the
// program, which had left the bus by then, was aborted.
test('a broker that stands still keeps nobody from leaving', async (t) => {
  const probe = await startProbe(t, rabbit.url('g'));
  rabbit.pause();
  try {
    for (let i = 0; i < 64; i++) probe.pub('still.x', { body: 'x'.repeat(500_000) }, { wait: 1000 });
    assert.equal((await probe.wait('sent', 64)).how, 'expired');
    await probe.leave();
  } finally {
    rabbit.resume();
  }
});

test('a user needs the rights that docs/bus.md names, and no more', async (t) => {
  const probe = await startProbe(t, rabbit.url('b', 'tools'));
  await probe.sub('s', 'rights.x', 'rights', { verdict: 'dead' });
  probe.pub('rights.x', { body: { n: 1 } });
  await probe.wait('message');
  const { channel } = await agent(t, 'b');
  await until('the dead letter', async () => (await channel.checkQueue('rockbot.rights.dlq')).messageCount === 1);

  // The user has no rights on an exchange of another name.
  const other = new Probe(t, rabbit.url('b', 'tools'), ['--exchange', 'other']);
  assert.match((await other.wait('down')).why, /publishing to 'other': 403 ACCESS_REFUSED/);
  await other.leave();
});

test('what is refused says why, and never with a password', async (t) => {
  const cases = [
    [rabbit.url('/', 'guest', 'wrong-password'), /user 'guest': 403 ACCESS_REFUSED.*check the user and the password/],
    [rabbit.url('no-such-host'), /530 NOT_ALLOWED - vhost no-such-host not found; check the virtual host/],
    [rabbit.url('/', 'nobody'), /530 NOT_ALLOWED - .*vhost.*refused for user 'nobody'; check the virtual host/],
    ['amqp://guest:some-secret@127.0.0.1:1/', /cannot connect: .*refused/],
  ];
  await Promise.all(cases.map(async ([url, pattern]) => {
    const probe = new Probe(t, url);
    assert.match((await probe.wait('down')).why, pattern);
    await probe.leave();
    for (const word of ['wrong-password', 'no-rights-here', 'some-secret']) {
      assert.ok(!probe.stderr.includes(word) && !JSON.stringify(probe.events).includes(word), probe.stderr);
    }
  }));
});

test('a server of another kind is recognised', async (t) => {
  for (const [greeting, scheme, pattern] of [
    ['HTTP/1.1 400 Bad Request\r\n\r\n', 'amqp', /does not speak AMQP 0-9-1/],
    ['AMQP\x00\x01\x00\x00', 'amqp', /does not speak AMQP 0-9-1/],
    ['\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x1e\xce', 'amqp', /broke the protocol/],
    ['\x01\x00\x00\xff\xff\xff\xff', 'amqp', /does not speak AMQP/],
    ['', 'amqp', /./],
  ]) {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
      socket.end(Buffer.from(greeting, 'latin1'));
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    const probe = new Probe(t, `${scheme}://127.0.0.1:${server.address().port}`);
    assert.match((await probe.wait('down')).why, pattern);
    await probe.leave();
    await new Promise((resolve) => { server.close(resolve); });
  }
});

test('TLS: the certificate and its name are checked', async (t) => {
  const probe = await startProbe(t, safeRabbit.url(), ['--ca', secret.ca]);
  await probe.sub('s', 'tls.x', 'tls');
  probe.pub('tls.x', { body: { text: 'z'.repeat(400000) } });
  assert.equal((await probe.wait('message')).env.body.text.length, 400000);

  const stranger = new Probe(t, safeRabbit.url());
  assert.match((await stranger.wait('down')).why, /certificate/i);
  // The same broker under an address that its certificate does not name.
  const relay = net.createServer((socket) => {
    const broker = net.connect(safeRabbit.port, '127.0.0.1');
    for (const end of [socket, broker]) end.on('error', () => {});
    socket.pipe(broker).pipe(socket);
  });
  await new Promise((resolve) => { relay.listen(0, '127.0.0.2', resolve); });
  t.after(() => relay.close());
  const misnamed = new Probe(t, `amqps://guest:guest@127.0.0.2:${relay.address().port}/`, ['--ca', secret.ca]);
  assert.match((await misnamed.wait('down')).why, /certificate/i);
  const plain = new Probe(t, safeRabbit.url().replace('amqps:', 'amqp:'));
  assert.match((await plain.wait('down')).why, /amqps:/);
  await Promise.all([stranger.leave(), misnamed.leave(), plain.leave()]);
});

// The same as in bus_rabbit_wire.test.mjs, with the messages of a real RabbitMQ.
test('a message larger than max_message_size is refused, the others arrive', async (t) => {
  const probe = await startProbe(t, safeRabbit.url('a'), ['--ca', secret.ca]);
  await probe.sub('s', 'large.x', 'large');
  probe.pub('large.x', { body: { text: 'x'.repeat(1_000_000) } });
  probe.pub('large.x', { body: { n: 2 } });
  assert.match((await probe.wait('down')).why, /message size 1000011 is larger than/);
  await probe.wait('sent', 2, 60_000);
  assert.deepEqual(probe.of('sent').map((e) => [e.n, e.how]).sort(), [[1, 'too large'], [2, 'sent']]);
  await until('the other one', () => probe.messages().some((m) => m.env.body.n === 2));
});

test('a broker that is killed and comes back finds everybody again', async (t) => {
  const probe = await startProbe(t, rabbit.url('h'));
  await probe.sub('s', 'again.x', 'again');
  probe.pub('again.x', { body: { n: 1 } });
  await probe.wait('message');
  await rabbit.kill();
  await probe.wait('down');
  probe.pub('again.x', { messageId: 'b'.repeat(32), body: { n: 2 } }); // waits in the outbox
  await rabbit.start();
  await probe.wait('up', 2, 60_000);
  await until('the message', () => probe.messages().some((m) => m.env.body.n === 2), 30_000);
  assert.equal(probe.messages().find((m) => m.env.body.n === 2).env.messageId, 'b'.repeat(32));
  await until('both sent', () => probe.of('sent').length === 2);

  // An orderly shutdown this time: the broker closes the connection with a reason.
  await rabbit.stop();
  assert.match((await probe.wait('down', 2)).why, /320 CONNECTION_FORCED/);
});
