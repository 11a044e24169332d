// The RabbitMQ engine against a broker of our own making, for what a real one does not do on demand:
// blocking, refusing, small frames, and breaking its protocol.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { Probe, startProbe } from './bus_probe.mjs';
import { until } from './lib.mjs';

const METHOD = 1;
const HEADER = 2;
const BODY = 3;
const BEAT = 8;
const u16 = (n) => [n >> 8, n & 255];
const u32 = (n) => [...u16(n >>> 16), ...u16(n & 65535)];
const u64 = (n) => [...u32(0), ...u32(n)];
const short = (text) => [text.length, ...Buffer.from(text)];
const long = (text) => [...u32(text.length), ...Buffer.from(text)];
const frame = (kind, channel, payload) => Buffer.from([kind, ...u16(channel), ...u32(payload.length), ...payload, 0xce]);
const method = (channel, class_, id, ...args) => frame(METHOD, channel, [...u16(class_), ...u16(id), ...args.flat()]);

// What a broker answers, by "class.method": the answer's method and arguments.
const answers = {
  '10.31': null, '10.40': [10, 41, 0], '10.50': [10, 51], '20.10': [20, 11, ...u32(0)], '20.40': [20, 41],
  '40.10': [40, 11], '50.10': [50, 11, 0, ...u32(0), ...u32(0)], '50.20': [50, 21], '50.40': [50, 41, ...u32(0)],
  '60.10': [60, 11], '60.20': [60, 21, 0], '60.30': [60, 31, 0], '85.10': [85, 11],
};

/** {url, said: [{kind, channel, name, payload}], send(bytes)}: has no queues, only answers as a broker does. */
async function fakeBroker(t, { frameMax = 131072, heartbeat = 0, mute = [], hearing } = {}) {
  const broker = { said: [], connections: 0 };
  const server = net.createServer((socket) => {
    let input = Buffer.alloc(0);
    broker.socket = socket;
    broker.connections++;
    socket.on('error', () => {});
    socket.on('data', (d) => {
      input = Buffer.concat([input, d]);
      if (input.subarray(0, 4).toString() === 'AMQP') {
        input = input.subarray(8);
        socket.write(method(0, 10, 10, 0, 9, u32(0), long('PLAIN'), long('en_US')));
      }
      while (input.length >= 8 && input.length >= 8 + input.readUInt32BE(3)) {
        const size = input.readUInt32BE(3);
        hear(input[0], input.readUInt16BE(1), input.subarray(7, 7 + size), size + 8);
        input = input.subarray(8 + size);
      }
    });
  });
  function hear(kind, channel, payload, size) {
    const name = kind === METHOD ? `${payload.readUInt16BE(0)}.${payload.readUInt16BE(2)}` : '';
    broker.said.push({ kind, channel, name, payload, size });
    if (name === '10.11') broker.send(method(0, 10, 30, u16(100), u32(frameMax), u16(heartbeat)));
    else if (kind === BEAT) broker.send(frame(BEAT, 0, []));
    else if (answers[name] && !mute.includes(name)) broker.send(method(channel, ...answers[name]));
    hearing?.(broker, broker.said.at(-1));
  }
  broker.send = (...bytes) => broker.socket.write(Buffer.concat(bytes));
  broker.count = (name) => broker.said.filter((f) => f.name === name).length;
  broker.heard = (name, n = 1) => until(`${n} × ${name}`, () => broker.count(name) >= n);
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { broker.socket?.destroy(); server.close(); });
  broker.url = `amqp://127.0.0.1:${server.address().port}`;
  return broker;
}

const PUBLISH = '60.40';
const ack = (tag, multiple) => method(1, 60, 80, u64(tag), multiple ? 1 : 0);
const nack = (tag, multiple) => method(1, 60, 120, u64(tag), multiple ? 1 : 0);

test('confirms: one, many at once, out of turn, refused', async (t) => {
  const broker = await fakeBroker(t);
  const probe = await startProbe(t, broker.url);
  for (let i = 0; i < 10; i++) probe.pub('a.b', { body: {} });
  await broker.heard(PUBLISH, 10);
  assert.equal(probe.of('sent').length, 0, 'nothing is sent before the broker says so');
  broker.send(ack(3), ack(5, true), ack(5), ack(4, true), nack(6), ack(99), ack(0), nack(9, true), ack(10, true));
  await probe.wait('sent', 10);
  assert.deepEqual(probe.of('sent').map(({ n, how }) => [n, how]), [
    [3, 'sent'], [1, 'sent'], [2, 'sent'], [4, 'sent'], [5, 'sent'], [6, 'the bus is full'],
    [7, 'the bus is full'], [8, 'the bus is full'], [9, 'the bus is full'], [10, 'sent']]);
});

test('nothing is published while the broker blocks us', async (t) => {
  const broker = await fakeBroker(t);
  const probe = await startProbe(t, broker.url);
  broker.send(method(0, 10, 60, short('low on memory')));
  await probe.logged(/accepts no messages: low on memory/);
  probe.pub('a.b', { body: { n: 1 } });
  probe.pub('a.b', { body: { n: 2 } });
  probe.do({ op: 'sub', name: 's', topic: 'x', group: 'g', verdict: 'ack' });
  await broker.heard('60.20'); // the rest goes on: a later subscription is made
  assert.equal(broker.count(PUBLISH), 0);
  broker.send(method(0, 10, 61));
  await broker.heard(PUBLISH, 2);
  broker.send(ack(2, true));
  await probe.wait('sent', 2);
});

// A broker may be out of memory for hours while publishers go on: each message has its deadline, but was
// kept to be sent long after that, in memory without a limit.
test('what waits for a broker that blocks us has an end', async (t) => {
  const broker = await fakeBroker(t);
  const probe = await startProbe(t, broker.url, ['--max-outbox', '100000']);
  broker.send(method(0, 10, 60, short('low on memory')));
  await probe.logged(/accepts no messages/);
  const text = 'x'.repeat(10_000);
  const how = () => probe.of('sent').map((e) => e.how);
  for (let n = 1; n <= 60; n++) {
    probe.pub('a.b', { body: { text } }, { wait: 1 });
    await probe.wait('sent', n);
  }
  assert.deepEqual([...new Set(how())], ['expired'], 'what has ended takes no room');
  broker.send(method(0, 10, 61));
  await probe.logged(/accepts messages again/);
  probe.pub('a.b', { body: { n: 'last' } });
  await broker.heard(PUBLISH);
  assert.equal(broker.count(PUBLISH), 1, 'and is not sent');
  assert.equal(probe.of('down').length, 0);
});

// One answer larger than the broker's max_message_size ended the connection, and did so again each
// time it was sent after a reconnect, which disturbed all others until its deadline.
test('a message larger than the broker takes is refused, and is no trouble to the others', async (t) => {
  const most = 5000;
  let n = 0; // number of publishes on this connection
  const broker = await fakeBroker(t, {
    hearing(self, { kind, name, payload }) {
      if (name === '10.40') n = 0;
      if (kind !== HEADER) return;
      const size = Number(payload.readBigUInt64BE(4));
      const text = `PRECONDITION_FAILED - message size ${size} is larger than configured max size ${most}`;
      self.send(size > most ? method(1, 20, 40, u16(406), short(text), u16(60), u16(40)) : ack(++n));
    },
  });
  const probe = await startProbe(t, broker.url);
  await probe.sub('s', 'a.b', 'g');
  probe.pub('a.b', { body: { n: 1 } });
  probe.pub('a.b', { body: { text: 'x'.repeat(most) } });
  probe.pub('a.b', { body: { n: 3 } });
  assert.match((await probe.wait('down')).why, /max size 5000/);
  await probe.wait('sent', 3);
  assert.deepEqual(probe.of('sent').map((e) => [e.n, e.how]).sort(), [[1, 'sent'], [2, 'too large'], [3, 'sent']]);
  probe.pub('a.b', { body: { text: 'x'.repeat(most) } }); // the limit is known now
  assert.equal((await probe.wait('sent', 4)).how, 'too large');
  assert.equal(broker.connections, 2);
});

// A user without the right to publish: each message ended the connection, and we reconnected within 2 s
// every time, for ever, because each connection began well.
test('a broker that lets us in and then ends the connection is not tried again ever as fast', async (t) => {
  const broker = await fakeBroker(t, {
    hearing(self, { name }) {
      if (name === PUBLISH) self.send(method(1, 20, 40, u16(403), short('ACCESS_REFUSED'), u16(60), u16(40)));
    },
  });
  const probe = await startProbe(t, broker.url);
  probe.pub('a.b', { body: {} });
  const waits = () => [...probe.stderr.matchAll(/trying again in (\d+) ms/g)].map((m) => Number(m[1]));
  await until('the third failure', () => waits().length >= 3, 30_000);
  assert.ok(waits()[0] <= 2000, `${waits()}`);
  assert.ok(waits()[2] > 2000, `${waits()}`);
});

test('frames are as small as the broker wants them', async (t) => {
  const broker = await fakeBroker(t, { frameMax: 4096 });
  const probe = await startProbe(t, broker.url);
  const text = 'x'.repeat(10_000);
  probe.pub('a.b', { body: { text } });
  const bodies = () => broker.said.filter((f) => f.kind === BODY);
  await until('the whole body', () => Buffer.concat(bodies().map((f) => f.payload)).toString() === JSON.stringify({ text }));
  assert.equal(bodies().length, 3);
  assert.ok(broker.said.every((f) => f.size <= 4096));

  const tiny = await fakeBroker(t, { frameMax: 100 });
  assert.match((await new Probe(t, tiny.url).wait('down')).why, /frames of 100 bytes/);
});

test('heartbeats go out twice as often as agreed, and keep the connection', async (t) => {
  const broker = await fakeBroker(t, { heartbeat: 2 });
  const probe = await startProbe(t, broker.url); // wants 30 s; the smaller value counts
  const beats = () => broker.said.filter((f) => f.kind === BEAT).length;
  assert.deepEqual([...broker.said.find((f) => f.name === '10.31').payload.subarray(-2)], [0, 2]);
  await until('six of them', () => beats() >= 6, 30_000); // 6 s: the probe gives up after 4 s of silence
  assert.equal(probe.of('down').length, 0, probe.stderr);
});

test('a channel that both sides close at once is closed', async (t) => {
  const broker = await fakeBroker(t, { mute: ['20.40'] });
  const probe = await startProbe(t, broker.url);
  await probe.sub('s', 'a.b', 'g');
  probe.do({ op: 'unsub', name: 's' });
  await broker.heard('20.40');
  broker.send(method(2, 20, 40, u16(406), short('PRECONDITION_FAILED'), u16(0), u16(0)));
  await broker.heard('20.41');
  broker.send(method(2, 20, 41));
  await probe.sub('again', 'a.b', 'g');
  assert.equal(broker.said.findLast((f) => f.name === '20.10').channel, 2, 'its number is free again');
});

test('a broker that does not say goodbye is left all the same', async (t) => {
  const broker = await fakeBroker(t, { mute: ['10.50', '20.40'] });
  const probe = await startProbe(t, broker.url);
  await probe.sub('s', 'a.b', 'g');
  await probe.leave();
});

// Each of these ends the connection with a reason, and the engine reconnects.
const header = (size) => frame(HEADER, 2, [...u16(60), ...u16(0), ...u64(size), ...u16(0)]);
const deliver = method(2, 60, 60, short('rialto'), u64(1), 0, short('rockbot'), short('a.b'));
const crimes = {
  'a body without a delivery': [frame(BODY, 2, [1, 2, 3])],
  'properties without a delivery': [header(1)],
  'a delivery inside a delivery': [deliver, deliver],
  'two heads': [deliver, header(5), header(5)],
  'more body than announced': [deliver, header(2), frame(BODY, 2, [1, 2, 3])],
  'properties of another class': [deliver, frame(HEADER, 2, [...u16(10), ...u16(0), ...u64(2), ...u16(0)])],
  'half a method': [frame(METHOD, 2, [0])],
  'half a delivery': [frame(METHOD, 2, [...u16(60), ...u16(60), 5])],
  'a body on the channel for publishing': [frame(BODY, 1, [1])],
  'the handshake once more': [method(0, 10, 30, u16(1), u32(4096), u16(0))],
  'an unknown kind of frame': [frame(7, 0, [])],
  'a frame without its end': [Buffer.from([3, 0, 2, 0, 0, 0, 1, 65, 66])],
  'a frame larger than agreed': [Buffer.from([3, 0, 2, ...u32(131072)])],
};
for (const [crime, bytes] of Object.entries(crimes)) {
  test(`a broker that breaks the protocol: ${crime}`, async (t) => {
    const broker = await fakeBroker(t);
    const probe = await startProbe(t, broker.url);
    await probe.sub('s', 'a.b', 'g');
    broker.send(...bytes);
    assert.match((await probe.wait('down')).why, /protocol|broken/);
    assert.equal(probe.messages().length, 0);
    if (crime === 'two heads') await until('the next connection', () => broker.connections === 2);
  });
}

test('what comes for a channel that is closed is passed over', async (t) => {
  const broker = await fakeBroker(t, { mute: ['20.40'] });
  const probe = await startProbe(t, broker.url);
  await probe.sub('s', 'a.b', 'g');
  probe.do({ op: 'unsub', name: 's' });
  await broker.heard('20.40');
  broker.send(deliver, header(2), frame(BODY, 2, [123, 125]), method(2, 20, 41), deliver, header(0),
    method(9, 60, 60, short('x'), u64(1), 0, short('x'), short('x')), frame(BEAT, 0, []));
  probe.pub('a.b', { body: {} });
  await broker.heard(PUBLISH);
  broker.send(ack(1)); // once this is read, all before it was read, too
  await probe.wait('sent');
  assert.equal(probe.messages().length, 0);
  assert.equal(probe.of('down').length, 0);
});
