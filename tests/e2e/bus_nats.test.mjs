// The NATS engine on a real nats-server, with the npm client as the other side.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, describe, test } from 'node:test';
import { makeCertificate, startNats } from './brokers.mjs';
import { Probe, startProbe } from './bus_probe.mjs';
import { load, sleep, tempDir, until } from './lib.mjs';

const { headers: makeHeaders } = load('nats');
const [plain, jet] = await Promise.all([startNats({ after }), startNats({ after }, { jetstream: true })]);

const bodies = (messages) => messages.map((m) => m.env.body);
const numbers = (messages) => bodies(messages).map((b) => b.n).sort((a, b) => a - b);
const upTo = (n) => Array.from({ length: n }, (_, i) => i + 1);

/** Everything the npm client hears on a subject: [{subject, headers, text}]. */
async function listenOn(nc, subject) {
  const got = [];
  const sub = nc.subscribe(subject);
  (async () => {
    for await (const m of sub) {
      const headers = {};
      for (const key of m.headers?.keys() ?? []) headers[key] = m.headers.get(key);
      got.push({ subject: m.subject, headers, text: Buffer.from(m.data).toString() });
    }
  })();
  await nc.flush();
  return got;
}

// --- what is on the wire ---

test('the envelope is single rb- headers, the body stands as it is', async (t) => {
  const nc = await plain.connect(t);
  const got = await listenOn(nc, 'wire.>');
  const probe = await startProbe(t, plain.url, ['--name', 'Ada']);
  probe.pub('wire.one', {
    messageId: '0123456789abcdef0123456789abcdef', messageType: 'RockBot.Tools.ToolInvokeRequest',
    correlationId: 'c1', replyTo: 'tool.result.Ada', timestamp: '2026-02-18T06:30:24.123Z',
    headers: { 'rb-content-trust': 'tool-request', 'rb-timeout-ms': '60000', traceparent: '00-ab-cd-01',
      'rb-odd': 'zwei\r\nrb-source: forged' },
    body: { text: 'Grüße 🌉' },
  });
  assert.equal((await probe.wait('sent')).how, 'sent');
  await until('the message', () => got.length);
  assert.deepEqual(got[0], {
    subject: 'wire.one', text: '{"text":"Grüße 🌉"}',
    headers: {
      'rb-message-id': '0123456789abcdef0123456789abcdef', 'rb-message-type': 'RockBot.Tools.ToolInvokeRequest',
      'rb-correlation-id': 'c1', 'rb-reply-to': 'tool.result.Ada', 'rb-source': 'Ada',
      'rb-timestamp': String(Date.parse('2026-02-18T06:30:24.123Z')),
      'rb-content-trust': 'tool-request', 'rb-timeout-ms': '60000', traceparent: '00-ab-cd-01',
      'rb-odd': 'zwei  rb-source: forged',
    },
  });
});

test('what others publish is read the same way; what they leave out is filled in', async (t) => {
  const nc = await plain.connect(t);
  const probe = await startProbe(t, plain.url);
  await probe.sub('s', 'in.*', 'in-group');
  const h = makeHeaders();
  for (const [key, value] of Object.entries({
    'rb-message-id': 'ffff', 'rb-message-type': 'T', 'rb-correlation-id': 'c2', 'rb-reply-to': 'back.here',
    'rb-source': 'Bob', 'rb-timestamp': '1771396224123', 'rb-content-trust': 'system', tracestate: 'x=y',
  })) h.set(key, value);
  nc.publish('in.full', Buffer.from('{"a":1}'), { headers: h });
  nc.publish('in.bare', Buffer.from('not json'));
  const [full, bare] = [await probe.wait('message', 1), await probe.wait('message', 2)];
  assert.equal(full.topic, 'in.full');
  assert.equal(full.redelivered, false);
  assert.deepEqual(full.env, {
    messageId: 'ffff', messageType: 'T', correlationId: 'c2', replyTo: 'back.here', source: 'Bob', destination: null,
    timestamp: '2026-02-18T06:30:24.123Z', headers: { 'rb-content-trust': 'system', tracestate: 'x=y' }, body: { a: 1 },
  });
  assert.match(bare.env.messageId, /^[0-9a-f]{32}$/);
  assert.deepEqual([bare.env.messageType, bare.env.source], ['unknown', 'unknown']);
  assert.equal(Buffer.from(bare.env.bodyBase64, 'base64').toString(), 'not json');
});

test('a field that is too long sends the message to the dead letters', async (t) => {
  const nc = await plain.connect(t);
  const dead = await listenOn(nc, 'dlq.long.>');
  const probe = await startProbe(t, plain.url);
  await probe.sub('s', 'long.*', 'long-group');
  const h = makeHeaders();
  h.set('rb-reply-to', 'r'.repeat(256));
  nc.publish('long.one', Buffer.from('{"n":1}'), { headers: h });
  nc.publish('long.two', Buffer.from('{"n":2}'));
  await until('the dead letter', () => dead.length);
  assert.equal(dead[0].subject, 'dlq.long.one');
  await probe.wait('message');
  assert.deepEqual(numbers(probe.messages()), [2]);
  await probe.logged(/dead letters: rb-reply-to is longer than 255 bytes/);
});

// Each message was a line in the log.
test('poison comes in floods, and the log tells of it once a second', async (t) => {
  const probe = await startProbe(t, plain.url);
  await probe.sub('s', 'poison.x', 'g', { verdict: 'dead' });
  const nc = await plain.connect(t);
  const letters = await listenOn(nc, 'dlq.poison.x');
  for (let n = 0; n < 2000; n++) nc.publish('poison.x', '1');
  await until('all', () => letters.length === 2000, 60_000);
  const lines = (level) => probe.stderr.split('\n').filter((l) => l.includes(` ${level} nats: poison.x: a message goes`));
  await until('their lines', () => lines('warn ').length + lines('debug').length === 2000);
  assert.ok(lines('warn ').length < 1000);
});

test('members of a group share, groups get a copy each', async (t) => {
  const [a, b, c] = await Promise.all([1, 2, 3].map(() => startProbe(t, plain.url)));
  await a.sub('s', 'share.x', 'g1');
  await b.sub('s', 'share.x', 'g1');
  await c.sub('s', 'share.x', 'g2');
  const sender = await startProbe(t, plain.url);
  for (const n of upTo(200)) sender.pub('share.x', { body: { n } });
  await sender.wait('sent', 200);
  await until('all messages', () => a.messages().length + b.messages().length >= 200 && c.messages().length >= 200);
  assert.deepEqual(numbers([...a.messages(), ...b.messages()]), upTo(200));
  assert.deepEqual(numbers(c.messages()), upTo(200));
  assert.ok(a.messages().length > 0 && b.messages().length > 0, 'both got some');
});

test('patterns: one segment, any number of them, in the middle, and everything', async (t) => {
  const probe = await startProbe(t, plain.url);
  const want = {
    one: ['pat.*', ['pat.a', 'pat.b']], many: ['pat.#', ['pat', 'pat.a', 'pat.b', 'pat.a.b', 'pat.a.x.b']],
    middle: ['pat.#.b', ['pat.b', 'pat.a.b', 'pat.a.x.b']], mixed: ['*.a.#', ['pat.a', 'pat.a.b', 'pat.a.x.b']],
  };
  for (const [name, [pattern]] of Object.entries(want)) await probe.sub(name, pattern, `pat-${name}`);
  await probe.sub('all', '#', 'pat-all');
  const sender = await startProbe(t, plain.url);
  const topics = ['pat', 'pat.a', 'pat.b', 'pat.a.b', 'pat.a.x.b', 'pattern', 'other.pat.a'];
  topics.forEach((topic) => sender.pub(topic, { body: {} }));
  await sender.wait('sent', topics.length);
  const own = (name) => probe.messages(name).map((m) => m.topic).filter((topic) => /pat/.test(topic)).sort();
  await until('everything', () => own('all').length >= topics.length);
  for (const [name, [, expected]] of Object.entries(want)) {
    await until(`${name}: ${expected}`, () => own(name).length >= expected.length);
    assert.deepEqual(own(name), [...expected].sort(), name);
  }
  assert.deepEqual(own('all'), [...topics].sort());
  // Subjects that NATS clients use internally are not topics.
  assert.deepEqual(probe.messages('all').filter((m) => /^(_INBOX|\$)/.test(m.topic)), []);
});

test('a prefix keeps two buses on one server apart', async (t) => {
  const nc = await plain.connect(t);
  const got = await listenOn(nc, '>');
  const [a, b] = await Promise.all(['acme.dev', 'acme.live'].map((p) => startProbe(t, plain.url, ['--prefix', p])));
  await a.sub('s', '#', 'g');
  await b.sub('s', '#', 'g');
  a.pub('hello.world', { body: { n: 1 } });
  b.pub('hello.world', { body: { n: 2 } });
  await a.wait('message');
  await b.wait('message');
  assert.deepEqual(a.messages().map((m) => [m.topic, m.env.body.n]), [['hello.world', 1]]);
  assert.deepEqual(b.messages().map((m) => [m.topic, m.env.body.n]), [['hello.world', 2]]);
  await until('both on the wire', () => got.filter((m) => /hello/.test(m.subject)).length === 2);
  assert.deepEqual(got.map((m) => m.subject).filter((s) => /hello/.test(s)).sort(),
    ['acme.dev.hello.world', 'acme.live.hello.world']);
});

test('no more than prefetch messages are out at a time', async (t) => {
  const probe = await startProbe(t, plain.url);
  await probe.sub('s', 'few.x', 'few', { prefetch: 3, verdict: 'hold' });
  for (const n of upTo(10)) probe.pub('few.x', { body: { n } });
  await probe.wait('sent', 10);
  await probe.wait('message', 3);
  for (let n = 3; n < 10; n++) {
    assert.equal(probe.messages().length, n);
    probe.do({ op: 'settle', name: 's', tag: probe.messages()[n - 3].tag, verdict: 'ack' });
    await probe.wait('message', n + 1);
  }
  assert.deepEqual(numbers(probe.messages()), upTo(10));
});

// Subscriptions were served in the order they were made, each time from the first: a flood into the
// first left nothing for the others until it was over.
test('a flood into one subscription leaves the others their turn', async (t) => {
  const probe = await startProbe(t, plain.url);
  await probe.sub('first', 'flood.a', 'g');
  await probe.sub('second', 'flood.b', 'g');
  const nc = await plain.connect(t);
  for (let n = 0; n < 30_000; n++) nc.publish(n === 500 ? 'flood.b' : 'flood.a', '1');
  await until('all', () => probe.of('message').length === 30_000, 60_000);
  assert.ok(probe.of('message').findIndex((m) => m.name === 'second') < 15_000);
});

test('what is too large for the server is refused, what just fits is not', async (t) => {
  const server = await startNats(t, { settings: ['max_payload: 65536'] });
  const probe = await startProbe(t, server.url);
  await probe.sub('s', 'big.x', 'big');
  probe.pub('big.x', { body: 'x'.repeat(70_000) });
  assert.equal((await probe.wait('sent', 1)).how, 'too large');
  // Headers count too: a body that would fit alone, and does not with these.
  probe.pub('big.x', { headers: { 'rb-a': 'h'.repeat(15_000) }, body: 'x'.repeat(56_000) });
  assert.equal((await probe.wait('sent', 2)).how, 'too large');
  probe.pub('big.x', { body: 'x'.repeat(57_000) });
  assert.equal((await probe.wait('sent', 3)).how, 'sent');
  assert.equal((await probe.wait('message')).env.body.length, 57_000);
  assert.equal(probe.messages().length, 1);
});

// --- trouble ---

for (const way of ['stop', 'kill']) {
  test(`after ${way} and start of the server everything is as before`, async (t) => {
    const server = await startNats(t);
    const [a, b] = [await startProbe(t, server.url), await startProbe(t, server.url)];
    await b.sub('s', 'again.#', 'g');
    a.pub('again.x', { body: { n: 1 } });
    await b.wait('message', 1);
    await server[way]();
    await a.wait('down');
    await b.wait('down');
    a.pub('again.x', { body: { n: 2 } }); // while the server is down
    await server.start();
    await a.wait('up', 2);
    await b.wait('up', 2);
    // Plain NATS drops messages without a subscriber. Ours are sent again until the subscriber is back as well.
    assert.equal((await a.wait('sent', 2)).how, 'sent');
    a.pub('again.x', { body: { n: 3 } });
    await until('both messages', () => [2, 3].every((n) => numbers(b.messages()).includes(n)));
    assert.deepEqual([...new Set(numbers(b.messages()))], [1, 2, 3]);
  });
}

test('a server that comes later is found', async (t) => {
  const server = await startNats(t);
  await server.stop();
  const probe = new Probe(t, server.url);
  assert.match((await probe.wait('down')).why, /no NATS server answers there/);
  await server.start();
  await probe.wait('up', 1, 60_000);
  await probe.sub('s', 'late.x', 'g');
  probe.pub('late.x', { body: { n: 1 } });
  await probe.wait('message');
});

test('a server that stands still blocks nobody: the outbox keeps, the end is in time', async (t) => {
  const server = await startNats(t);
  const probe = await startProbe(t, server.url);
  await probe.sub('s', 'still.x', 'g');
  server.pause();
  for (let i = 0; i < 64; i++) probe.pub('still.x', { body: 'x'.repeat(500_000) }, { wait: 2000 });
  // 32 MB are more than any socket takes. Timers must still fire.
  assert.equal((await probe.wait('sent', 64)).how, 'expired');
  await probe.leave();
  server.resume();
});

test('a server that goes on gets the whole backlog, in order', async (t) => {
  const server = await startNats(t);
  const [sender, reader] = [await startProbe(t, server.url), await startProbe(t, server.url)];
  await reader.sub('s', 'backlog.x', 'g');
  server.pause();
  for (const n of upTo(60)) sender.pub('backlog.x', { body: { n, text: 'x'.repeat(500_000) } });
  await sleep(500); // some of it is in the socket, the rest is not
  assert.equal(sender.of('sent').length, 0);
  server.resume();
  await sender.wait('sent', 60, 60_000);
  await reader.wait('message', 60, 60_000);
  assert.deepEqual(bodies(reader.messages()).map((b) => b.n), upTo(60));
});

test('a second server of the list is used when the first is gone', async (t) => {
  const [first, second] = [await startNats(t), await startNats(t)];
  await first.stop();
  const probe = await startProbe(t, `${first.url},127.0.0.1:${second.port}`);
  await probe.sub('s', 'two.x', 'g');
  probe.pub('two.x', { body: { n: 1 } });
  await probe.wait('message');
});

test('a wrong password is told without the password', async (t) => {
  const server = await startNats(t, { user: 'rialto', password: 'right horse' });
  const wrong = new Probe(t, server.urlAs('rialto', 'wr0ng:h@rse%'));
  const { why } = await wrong.wait('down');
  assert.match(why, /the server refuses the user name, password or token/);
  assert.doesNotMatch(wrong.stderr, /wr0ng|h@rse/);
  const right = await startProbe(t, server.url);
  await right.sub('s', 'pw.x', 'g');
  right.pub('pw.x', { body: { n: 1 } });
  await right.wait('message');
  assert.doesNotMatch(right.stderr, /right|horse/);
});

test('a user without a password is a token', async (t) => {
  const server = await startNats(t, { settings: ['authorization { token: "t0ken-of-ours" }'] });
  const wrong = new Probe(t, server.url.replace('//', '//t0ken-of-others@'));
  await wrong.wait('down');
  const right = await startProbe(t, server.url.replace('//', '//t0ken-of-ours@'));
  right.pub('token.x', { body: {} });
  assert.equal((await right.wait('sent')).how, 'sent');
  assert.doesNotMatch(right.stderr + wrong.stderr, /t0ken/);
});

test('TLS: the certificate and the name in it are checked', async (t) => {
  const dir = tempDir();
  const certificate = makeCertificate(dir);
  const server = await startNats(t, { tls: certificate });
  for (const host of ['127.0.0.1', 'localhost']) {
    const probe = await startProbe(t, server.urlAs(null, null, host), ['--ca', certificate.ca]);
    await probe.sub('s', `tls.on-${host}`, 'g');
    probe.pub(`tls.on-${host}`, { body: { n: 1, text: 'x'.repeat(200_000) } });
    assert.equal((await probe.wait('message')).env.body.text.length, 200_000);
  }
  const stranger = new Probe(t, server.url); // with the system's authorities
  assert.match((await stranger.wait('down')).why, /certificate|TLS|SSL/i);
  // The same machine by an address that is not in the certificate.
  const other = new Probe(t, server.urlAs(null, null, '127.0.0.2'), ['--ca', certificate.ca]);
  await other.wait('down');
  assert.equal(other.of('up').length, 0);
  // A server that requires TLS gets it, with its certificate checked, even if the address does not ask for
  // TLS. If the address asks for TLS and the server has none, nothing is sent.
  const polite = await startProbe(t, server.url.replace('tls://', 'nats://'), ['--ca', certificate.ca]);
  polite.pub('tls.polite', { body: {} });
  assert.equal((await polite.wait('sent')).how, 'sent');
  const careful = new Probe(t, plain.url.replace('nats://', 'tls://'));
  assert.match((await careful.wait('down')).why, /does not speak TLS: use nats:\/\//);
});

test('options that make no sense are refused at once', async (t) => {
  for (const [url, args, reason] of [
    ['nats://', [], /not the host of a NATS server/],
    ['nats://user:s3cret@ho st', [], /not the host of a NATS server/],
    [plain.url, ['--prefix', 'a..b'], /cannot be the prefix of NATS subjects/],
    [plain.url, ['--ca', '/nowhere/ca.pem'], /cannot read the certificates/],
  ]) {
    const probe = new Probe(t, url, args);
    probe.leaving = Promise.resolve();
    assert.notEqual(await probe.ended, 0);
    assert.match(probe.stderr, reason);
    assert.doesNotMatch(probe.stderr, /s3cret/);
  }
});

// --- JetStream ---

const keeping = ['--jetstream'];

test('JetStream keeps what a group missed; others do not get it twice', async (t) => {
  const first = await startProbe(t, jet.url, keeping);
  await first.sub('s', 'keep.#', 'keepers');
  await first.leave();
  const sender = await startProbe(t, jet.url, keeping);
  for (const n of upTo(50)) sender.pub('keep.x', { body: { n } });
  await sender.wait('sent', 50);
  assert.deepEqual([...new Set(sender.of('sent').map((s) => s.how))], ['sent']);
  const [a, b] = await Promise.all([1, 2].map(() => startProbe(t, jet.url, keeping)));
  await Promise.all([a, b].map((p) => p.sub('s', 'keep.#', 'keepers')));
  await until('all of them', () => a.messages().length + b.messages().length >= 50);
  assert.deepEqual(numbers([...a.messages(), ...b.messages()]), upTo(50));
  assert.ok([...a.messages(), ...b.messages()].every((m) => m.redelivered === false));
});

test('JetStream: who leaves gives back at once what was not settled', async (t) => {
  const [a, b] = await Promise.all([1, 2].map(() => startProbe(t, jet.url, keeping)));
  await a.sub('s', 'back.x', 'crew', { verdict: 'hold' });
  a.pub('back.x', { body: { n: 1 } });
  await a.wait('message');
  await b.sub('s', 'back.x', 'crew');
  a.do({ op: 'unsub', name: 's' });
  const again = await b.wait('message', 1, 12_000); // well before the server would deliver it again by itself
  assert.equal(again.redelivered, true);
});

test('JetStream: no more than prefetch at a time, for each member by itself', async (t) => {
  const [a, b] = await Promise.all([1, 2].map(() => startProbe(t, jet.url, keeping)));
  await a.sub('s', 'credit.x', 'crew', { prefetch: 2, verdict: 'hold' });
  await b.sub('s', 'credit.x', 'crew', { prefetch: 3, verdict: 'hold' });
  for (const n of upTo(12)) a.pub('credit.x', { body: { n } });
  await a.wait('sent', 12);
  await a.wait('message', 2);
  await b.wait('message', 3);
  for (let left = 7; left > 0; left--) {
    const had = a.messages().length + b.messages().length;
    assert.equal(had, 12 - left);
    const who = left % 2 ? a : b;
    who.settled = (who.settled ?? 0) + 1;
    who.do({ op: 'settle', name: 's', tag: who.messages()[who.settled - 1].tag, verdict: 'ack' });
    await until('the next', () => a.messages().length + b.messages().length === had + 1);
  }
  assert.deepEqual(numbers([...a.messages(), ...b.messages()]), upTo(12));
});

test('JetStream: a stream that is there already is used as it is', async (t) => {
  const nc = await jet.connect(t);
  const { streams } = await nc.jetstreamManager();
  await streams.add({ name: 'MINE', subjects: ['mine.>'], max_msgs: 1000 });
  const probe = await startProbe(t, jet.url, keeping);
  await probe.sub('s', 'mine.x', 'g');
  probe.pub('mine.x', { body: { n: 1 } });
  assert.equal((await probe.wait('sent')).how, 'sent');
  await probe.wait('message');
  assert.equal((await streams.info('MINE')).state.messages, 1);
  await assert.rejects(streams.info('rialto_mine'), /not found/);
});

// What was published to a stream that had been deleted was stored nowhere, and nobody was told: this
// message and all that followed, until the next reconnect.
test('JetStream: a stream that is deleted under us comes back, and nothing is missing in it', async (t) => {
  const probe = await startProbe(t, jet.url, keeping);
  const { streams } = await (await jet.connect(t)).jetstreamManager();
  await probe.sub('s', 'heard.x', 'g');
  probe.pub('heard.x', { body: { n: 1 } });
  probe.pub('unheard.x', { body: { n: 2 } });
  await probe.wait('sent', 2);
  await Promise.all(['rialto_heard', 'rialto_unheard'].map((name) => streams.delete(name)));
  probe.pub('heard.x', { body: { n: 3 } });
  probe.pub('unheard.x', { body: { n: 4 } });
  await probe.wait('sent', 4);
  assert.ok(probe.of('sent').every((e) => e.how === 'sent'));
  await until('both messages', () => probe.messages().length >= 2);
  assert.deepEqual(numbers(probe.messages()), [1, 3]);
  assert.equal((await streams.info('rialto_unheard')).state.messages, 1);
  assert.match(probe.stderr, /a stream is gone/);
  assert.equal(probe.of('down').length, 0);
});

/** The address of a server behind which `cut(text)` says what of each chunk that clients send gets there. */
async function through(t, server, cut) {
  const proxy = net.createServer((client) => {
    const there = net.connect(server.port, '127.0.0.1');
    for (const end of [client, there]) end.on('error', () => {}).on('close', () => { client.destroy(); there.destroy(); });
    client.on('data', (d) => there.write(cut(d.toString('latin1')), 'latin1'));
    there.pipe(client);
  });
  await new Promise((resolve) => { proxy.listen(0, '127.0.0.1', resolve); });
  t.after(() => proxy.close());
  return `nats://127.0.0.1:${proxy.address().port}`;
}

// While a stream has no leader the server drops what is published to it, and says nothing. The message
// then waited for its end in the outbox; only a reconnect would have sent it again.
test('JetStream: what is not answered is published once more, and stored once', async (t) => {
  let left = 0;
  const drop = (text) => {
    for (let m; left > 0 && (m = text.match(/HPUB \S*unled\.x[^\r]* (\d+)\r\n/)); left--) {
      text = text.slice(0, m.index) + text.slice(m.index + m[0].length + Number(m[1]) + 2);
    }
    return text;
  };
  const probe = await startProbe(t, await through(t, jet, drop), keeping);
  await probe.sub('s', 'unled.x', 'g');
  probe.pub('unled.x', { body: { n: 1 } });
  await probe.wait('sent');
  left = 2;
  for (const n of [2, 3, 4]) probe.pub('unled.x', { body: { n } });
  await probe.wait('sent', 4);
  assert.ok(probe.of('sent').every((e) => e.how === 'sent'));
  await until('all of them', () => probe.messages().length >= 4);
  assert.deepEqual(numbers(probe.messages()), upTo(4));
  assert.match(probe.stderr, /no answer about 2 messages/);
  assert.equal(probe.of('down').length, 0);
});

// The delivery count is in the reply subject for the acknowledgement, if that is one of JetStream's. A
// message of anybody else in our inbox counted as delivered zero times, and the delay before the next
// attempt was computed from one less, which is undefined behaviour in C.
test('JetStream: a stranger in the inbox of a consumer is tried again like anybody', async (t) => {
  const nc = await jet.connect(t);
  const probe = await startProbe(t, jet.url, keeping);
  const inboxes = [];
  nc.subscribe('$JS.API.CONSUMER.MSG.NEXT.rialto_inbox.>', { callback: (err, m) => inboxes.push(m.reply) });
  const words = await listenOn(nc, 'stranger.ack');
  await probe.sub('s', 'inbox.x', 'g', { verdict: 'retry' });
  nc.publish(await until('a request', () => inboxes[0]), '{"n":1}', { reply: 'stranger.ack' });
  await probe.wait('message');
  await until('its answer', () => words[0]);
  assert.equal(words[0].text, '-NAK {"delay":1000000000}');
});

test('JetStream: onlookers see everything and keep nothing', async (t) => {
  const probe = await startProbe(t, jet.url, keeping);
  await probe.sub('all', '#', 'tail', { lossy: true, ephemeral: true });
  await probe.sub('s', 'look.x', 'g');
  probe.pub('look.x', { body: { n: 1 } });
  await until('both', () => probe.messages('s').length && probe.messages('all').some((m) => m.topic === 'look.x'));
});

test('JetStream on a server without it: a clear reason', async (t) => {
  const probe = new Probe(t, plain.url, keeping);
  assert.match((await probe.wait('down')).why, /no JetStream here .*-js/);
});

// --- slow tests, in parallel ---

describe('in time', { concurrency: true }, () => {
  test('a message is tried again three times, then it is a dead letter', async (t) => {
    const nc = await plain.connect(t);
    const dead = await listenOn(nc, 'dlq.>');
    const probe = await startProbe(t, plain.url);
    await probe.sub('again', 'retry.x', 'retry', { verdict: 'retry' });
    await probe.sub('never', 'dead.x', 'dead', { verdict: 'dead' });
    probe.pub('dead.x', { messageType: 'D', body: { n: 2 } });
    probe.pub('retry.x', { messageType: 'R', headers: { 'rb-content-trust': 'system' }, body: { n: 1 } });
    await until('both dead letters', () => dead.some((d) => d.subject === 'dlq.retry.x')
      && dead.some((d) => d.subject === 'dlq.dead.x'), 30_000);
    assert.deepEqual(probe.messages('again').map((m) => m.redelivered), [false, true, true, true]);
    assert.deepEqual(probe.messages('never').map((m) => m.redelivered), [false]);
    const retried = dead.find((d) => d.subject === 'dlq.retry.x');
    assert.equal(retried.text, '{"n":1}');
    assert.equal(retried.headers['rb-message-type'], 'R');
    assert.equal(retried.headers['rb-content-trust'], 'system');
  });

  test('JetStream: groups get a copy each, and everything survives a restart of the server', async (t) => {
    const server = await startNats(t, { jetstream: true });
    const [a, b] = await Promise.all([1, 2].map(() => startProbe(t, server.url, keeping)));
    await a.sub('s', 'copy.x', 'g1', { verdict: 'hold' });
    await b.sub('s', 'copy.x', 'g2');
    for (const n of upTo(5)) a.pub('copy.x', { body: { n } });
    await a.wait('sent', 5);
    await a.wait('message', 5);
    await b.wait('message', 5);
    await server.stop(); // not killed: it might lose acknowledgements that are not on disk yet
    await a.wait('down');
    a.pub('copy.x', { body: { n: 6 } });
    await server.start();
    // What g1 got and did not settle is delivered again, marked as such; g2 has acknowledged its copies.
    await until('the new one', () => numbers(b.messages()).includes(6), 60_000);
    await until('all of g1', () => a.messages().filter((m) => m.redelivered).length >= 5
      && numbers(a.messages()).includes(6), 60_000);
    assert.deepEqual(numbers(b.messages()), upTo(6));
  });

  test('JetStream: a worker killed in the middle is covered for', async (t) => {
    const [victim, other] = await Promise.all([1, 2].map(() => startProbe(t, jet.url, keeping)));
    await victim.sub('s', 'crash.x', 'crew', { verdict: 'hold' });
    const sender = await startProbe(t, jet.url, keeping);
    for (const n of upTo(3)) sender.pub('crash.x', { body: { n } });
    await victim.wait('message', 3);
    victim.leaving = Promise.resolve();
    victim.child.kill('SIGKILL');
    await other.sub('s', 'crash.x', 'crew');
    await other.wait('message', 3, 90_000);
    assert.deepEqual(numbers(other.messages()), upTo(3));
    assert.ok(other.messages().every((m) => m.redelivered));
  });

  test('JetStream: work that takes long is not given to others', async (t) => {
    const [slow, idle] = await Promise.all([1, 2].map(() => startProbe(t, jet.url, keeping)));
    await slow.sub('s', 'slow.x', 'team', { verdict: 'hold' });
    slow.pub('slow.x', { body: { n: 1 } });
    const { tag } = await slow.wait('message');
    await idle.sub('s', 'slow.x', 'team');
    await sleep(20_000); // longer than the 15 s without progress after which it would be
    assert.equal(slow.messages().length + idle.messages().length, 1);
    slow.do({ op: 'settle', name: 's', tag, verdict: 'ack' });
    slow.pub('slow.x', { body: { n: 2 } });
    await until('the next', () => slow.messages().length + idle.messages().length >= 2);
  });

  test('JetStream: tried three times more, then kept as a dead letter', async (t) => {
    const probe = await startProbe(t, jet.url, keeping);
    await probe.sub('again', 'jretry.x', 'retry', { verdict: 'retry' });
    await probe.sub('never', 'jdead.x', 'dead', { verdict: 'dead' });
    probe.pub('jretry.x', { messageType: 'R', body: { n: 1 } });
    probe.pub('jdead.x', { messageType: 'D', body: { n: 2 } });
    await until('four deliveries', () => probe.messages('again').length >= 4, 60_000);
    const nc = await jet.connect(t);
    const streams = (await nc.jetstreamManager());
    const dead = await until('both dead letters', async () => {
      const { state } = await streams.streams.info('rialto_dlq', { subjects_filter: '>' }).catch(() => ({ state: {} }));
      return state.subjects?.['dlq.jretry.x'] && state.subjects?.['dlq.jdead.x'] && state.subjects;
    }, 30_000);
    assert.equal(dead['dlq.jretry.x'], 1);
    assert.equal(dead['dlq.jdead.x'], 1);
    assert.deepEqual(probe.messages('again').map((m) => m.redelivered), [false, true, true, true]);
    assert.equal(probe.messages('never').length, 1);
    const kept = await streams.streams.getMessage('rialto_dlq', { last_by_subj: 'dlq.jretry.x' });
    assert.equal(Buffer.from(kept.data).toString(), '{"n":1}');
    assert.equal(kept.header.get('rb-message-type'), 'R');
  });

  test('a server that says nothing any more is given up, and found again', async (t) => {
    const server = await startNats(t);
    const probe = await startProbe(t, server.url);
    await probe.sub('s', 'mute.x', 'g');
    server.pause();
    await probe.wait('down', 1, 90_000);
    server.resume();
    await probe.wait('up', 2, 60_000);
    await until('subscribed again', () => probe.subscribed('g') === 2);
    probe.pub('mute.x', { body: { n: 1 } });
    await probe.wait('message');
  });
});
