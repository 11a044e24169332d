// The embedded bus as other programs see it: one JSON object a line on a socket, written here by hand;
// who hosts it and who takes over; and `rialto bus tail` and `pub`.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { events, post } from './admin_lib.mjs';
import { Agent, LineEngine } from './bus_agent.mjs';
import { busServer } from './bus_worker_scenarios.mjs';
import {
  exchange, expectClean, fake, HttpClient, rialto, rialtoBin, sanitizerEnv, serve, sleep, start, StdioClient, tempDir,
  until, within, writeConfig,
} from './lib.mjs';

/** Starts `rialto bus worker` on this bus: {pid, text(), stop(signal)}; waits until it has joined. */
async function worker(t, url, { bus = {}, env = {}, servers = {} } = {}) {
  const dir = tempDir();
  const file = writeConfig(dir, { servers, bus: { url, events: false, ...bus } });
  const child = start(rialtoBin, ['bus', 'worker', '-c', file], {
    cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...sanitizerEnv, ...env },
  });
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  let stopping;
  const stop = (signal = 'SIGTERM') => {
    stopping ??= (async () => {
      child.kill(signal);
      const end = await within(20_000, `end after ${signal}`, ended);
      expectClean(text);
      if (signal === 'SIGTERM') assert.deepEqual(end, { code: 0, signal: null }, text);
    })();
    return stopping;
  };
  t.after(() => stop());
  await until('joined', () => /joined embedded bus/.test(text) || child.exitCode !== null, 20_000);
  assert.equal(child.exitCode, null, text);
  return { pid: child.pid, text: () => text, stop, hosts: () => /hosted here/.test(text) };
}

/** A connection to the embedded bus, line by line. */
class Line {
  #got = [];
  #next = 1;

  static async connect(t, where) {
    const line = new Line();
    line.socket = net.connect(where);
    line.ended = new Promise((resolve) => { line.socket.on('close', () => { line.closed = true; resolve(); }); });
    line.socket.on('error', () => {});
    await within(10_000, 'connecting', new Promise((resolve, reject) => {
      line.socket.once('connect', resolve);
      line.socket.once('close', () => reject(new Error('closed')));
    }));
    let rest = '';
    line.socket.setEncoding('utf8');
    line.socket.on('data', (d) => {
      const lines = (rest + d).split('\n');
      rest = lines.pop();
      line.#got.push(...lines.map((l) => JSON.parse(l)));
    });
    t.after(() => line.socket.destroy());
    return line;
  }

  raw(text) { this.socket.write(text); }

  say(message) { this.raw(`${JSON.stringify(message)}\n`); }

  /** Waits for a message for which `check` holds, and removes it. */
  async hear(what, check) {
    return until(what, () => {
      const at = this.#got.findIndex(check);
      return at >= 0 && this.#got.splice(at, 1)[0];
    }, 60_000);
  }

  /** Sends a message with a new id; resolves to its answer. */
  async ask(message) {
    const id = this.#next++;
    this.say({ ...message, id });
    return this.hear(`answer to ${message.op}`, (m) => m.id === id);
  }

  async ok(message) {
    const answer = await this.ask(message);
    assert.equal(answer.op, 'ok', JSON.stringify(answer));
  }

  msg(sid = undefined) { return this.hear('a message', (m) => m.op === 'msg' && (sid === undefined || m.sid === sid)); }

  has(check) { return this.#got.some(check); }
}

function place() {
  const socket = path.join(tempDir(), 'bus', 'bus.sock');
  return { socket, url: `unix:${socket}` };
}

const pub = (topic, body, more = {}) => ({ op: 'pub', topic, env: { messageType: 'test', body, ...more } });

test('two programs talk: publish, deliver, acknowledge, and the envelope is filled in', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  assert.equal(fs.statSync(socket).mode & 0o777, 0o600);
  assert.equal(fs.statSync(path.dirname(socket)).mode & 0o777, 0o700);
  const [a, b] = [await Line.connect(t, socket), await Line.connect(t, socket)];
  await a.ok({ op: 'hello', v: 1, name: 'alice', token: null });
  await b.ok({ op: 'sub', sid: 7, topic: 'chat.*', group: 'bob' });
  await a.ok(pub('chat.room', { hi: 1 }, { headers: { 'rb-content-trust': 'user-input' } }));
  const m = await b.msg();
  assert.equal(m.sid, 7);
  assert.equal(m.topic, 'chat.room');
  assert.equal(m.redelivered, false);
  assert.equal(m.env.source, 'alice');
  assert.match(m.env.messageId, /^[0-9a-f]{32}$/);
  assert.match(m.env.timestamp, /^20\d\d-.*Z$/);
  assert.deepEqual(m.env.body, { hi: 1 });
  assert.deepEqual(m.env.headers, { 'rb-content-trust': 'user-input' });
  b.say({ op: 'ack', tag: m.tag });
  assert.equal((await b.ask({ op: 'ping' })).op, 'pong');
  await b.ok({ op: 'unsub', sid: 7 });
});

test('groups: one of a group gets it, each group a copy; what was not acknowledged goes to the next', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const [a, b, c] = [await Line.connect(t, socket), await Line.connect(t, socket), await Line.connect(t, socket)];
  await a.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await b.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await c.ok({ op: 'sub', sid: 1, topic: '#', group: 'other' });
  for (let n = 0; n < 4; n++) await c.ok(pub('t', n));
  for (let n = 0; n < 4; n++) assert.equal((await c.msg()).env.body, n);
  const mine = [await a.msg(), await a.msg()];
  assert.ok(await b.msg() && await b.msg());
  // a disconnects without a word: both of its messages go to b.
  a.socket.destroy();
  const again = [await b.msg(), await b.msg()];
  assert.deepEqual(again.map((m) => m.env.body), mine.map((m) => m.env.body));
  assert.ok(again.every((m) => m.redelivered));
});

test('retry and dead letters', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await a.ok(pub('t', 'again'));
  const times = [];
  for (let n = 0; n < 4; n++) {
    const m = await a.msg();
    times.push(Date.now());
    assert.equal(m.redelivered, n > 0);
    a.say({ op: 'nack', tag: m.tag, requeue: true });
  }
  // Never too early; how late depends on the machine.
  for (const [i, ms] of [1000, 2000, 4000].entries()) assert.ok(times[i + 1] - times[i] > ms * 0.9, `${times}`);
  await a.ok(pub('t', 'never'));
  a.say({ op: 'nack', tag: (await a.msg()).tag, requeue: false });
  const first = await a.ask({ op: 'dead' });
  assert.equal(first.op, 'dead');
  assert.deepEqual([first.number, first.topic, first.group, first.env.body], [1, 't', 'g', 'again']);
  const second = await a.ask({ op: 'dead', after: first.number });
  assert.equal(second.env.body, 'never');
  assert.equal((await a.ask({ op: 'dead', after: second.number })).op, 'ok');
  // The same as `rialto bus tail --dead` prints it.
  const shown = await rialto(['bus', 'tail', '--dead', '--url', url]);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /#1 .* for group g was tried four times\n.*\n {4}"again"\n#2 .* was refused\n.*\n {4}"never"\n/);
});

// Dead letters could only be looked at.
test('a daemon that hosts the bus shows its queues and dead letters, and sends one again', async (t) => {
  const { socket, url } = place();
  const server = await serve(t, { servers: {}, bus: { url, events: false } });
  const get = async (where) => exchange(`${server.origin}${where}`, { method: 'GET' });
  const bus = async () => JSON.parse((await get('/api/bus')).text);
  await until('the bus is up', async () => (await bus()).state === 'up' && fs.existsSync(socket));
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await a.ok(pub('t', 'never'));
  a.say({ op: 'nack', tag: (await a.msg()).tag, requeue: false });
  const { dead_letters: [letter], queues, hosted, role } = await until('the dead letter', async () => {
    const now = await bus();
    return now.dead_letters.length && now;
  });
  assert.deepEqual([letter.id, letter.topic, letter.queue, letter.reason, letter.bytes > 0], ['1', 't', 'g', 'was refused', true]);
  assert.ok(hosted && role);
  assert.deepEqual(queues.find((q) => q.name === 'g t'), { name: 'g t', waiting: 0, bytes: 0, subscribers: 1 });
  const resend = (id) => exchange(`${server.origin}/api/bus/dead-letters/${id}/resend`);
  assert.equal((await resend('1')).status, 200);
  const again = await a.msg();
  assert.equal(again.env.body, 'never');
  a.say({ op: 'ack', tag: again.tag });
  assert.deepEqual((await bus()).dead_letters, []);
  assert.equal((await resend('1')).status, 404);
  assert.equal((await get('/api/bus/dead-letters/1/resend')).status, 405);
  assert.equal((await get('/api/bus/queues')).status, 404);
  await a.say({ op: 'bye' });
});

test('a page is told when queues and dead letters change', async (t) => {
  const { socket, url } = place();
  const server = await serve(t, { servers: {}, bus: { url, events: false } });
  await until('the bus is up', () => fs.existsSync(socket));
  const stream = await events(t, server);
  const a = await Line.connect(t, socket);
  const subscribed = stream.next('bus');
  await a.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await subscribed;
  await a.ok(pub('t', 'never'));
  const { tag } = await a.msg();
  const refused = stream.next('bus');
  a.say({ op: 'nack', tag, requeue: false });
  await refused;
  const sent = stream.next('bus');
  assert.equal((await exchange(`${server.origin}/api/bus/dead-letters/1/resend`)).status, 200);
  await sent;
  const left = stream.next('bus');
  await a.say({ op: 'bye' });
  await left;
});

test('a proxy shows the workers that it hears: by name, with their servers', async (t) => {
  const { socket, url } = place();
  const far = await serve(t, { servers: { far: fake('--name', 'far') }, bus: { url, role: 'worker', agents: ['rita'], events: false } });
  await until('the bus is up', () => fs.existsSync(socket));
  const proxy = await serve(t, { servers: {}, bus: { url, role: 'proxy', agents: ['rita'], events: false } });
  const workers = async () => JSON.parse((await exchange(`${proxy.origin}/api/bus`, { method: 'GET' })).text).workers;
  const [worker, ...others] = await until('a worker with tools', async () => {
    const now = await workers();
    return now[0]?.tools && now;
  });
  assert.deepEqual([others, worker.servers], [[], ['far']]);
  assert.match(worker.name, /rita/);
  assert.ok(Math.abs(Date.parse(worker.last_seen) - Date.now()) < 60_000);
  const stream = await events(t, proxy);
  const told = stream.next('bus');
  const { command, args } = fake('--name', 'further');
  assert.equal((await post(far, '/api/servers', { name: 'further', entry: { command, args } })).status, 201);
  await told;
  await until('both servers', async () => (await workers())[0].servers.sort().join() === 'far,further');
});

test('what others wrote is shown as text, whatever a terminal would make of it', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 't', group: 'g\x1b[2J' });
  await a.ok(pub('t', '\x9b31m \u202e', { source: 'me\n#7 a letter that is none', messageType: 'T\x1b]0;x\x07' }));
  a.say({ op: 'nack', tag: (await a.msg()).tag, requeue: false });
  const { stdout } = await until('the dead letter', async () => {
    const shown = await rialto(['bus', 'tail', '--dead', '--url', url]);
    return shown.stdout && shown;
  });
  assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  assert.equal(stdout.trim().split('\n').length, 3, stdout);
});

test('a durable queue waits for its subscriber; a plain one does not', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const [a, b] = [await Line.connect(t, socket), await Line.connect(t, socket)];
  await a.ok({ op: 'sub', sid: 1, topic: 'kept', group: 'k', durable: true });
  await a.ok({ op: 'sub', sid: 2, topic: 'lost', group: 'l' });
  a.say({ op: 'bye' });
  await within(10_000, 'the end', a.ended);
  await b.ok(pub('kept', 1));
  await b.ok(pub('lost', 1));
  const again = await Line.connect(t, socket);
  await again.ok({ op: 'sub', sid: 1, topic: 'kept', group: 'k', durable: true });
  await again.ok({ op: 'sub', sid: 2, topic: 'lost', group: 'l' });
  await b.ok(pub('lost', 2));
  assert.equal((await again.msg(1)).env.body, 1);
  assert.equal((await again.msg(2)).env.body, 2);
});

test('how long a durable queue is kept is configured', async (t) => {
  const { socket, url } = place();
  await worker(t, url, { bus: { keep: '100ms' } });
  const [a, b] = [await Line.connect(t, socket), await Line.connect(t, socket)];
  const sub = { op: 'sub', sid: 1, topic: 't', group: 'g', durable: true };
  await a.ok(sub);
  a.say({ op: 'bye' });
  await within(10_000, 'the end', a.ended);
  await b.ok(pub('t', 'too late'));
  await sleep(1000); // ten times as long as `keep`
  await b.ok(sub);
  await b.ok(pub('t', 'in time'));
  assert.equal((await b.msg()).env.body, 'in time');
});

test('the index of servers is told to those who come later', async (t) => {
  const { socket, url } = place();
  const { text } = await worker(t, url, { servers: { files: fake() }, bus: { agents: ['Late'] } });
  const index = async (line, sid) => {
    await line.ok({ op: 'sub', sid, topic: 'tool.meta.mcp.Late', group: `late${sid}` });
    return line.hear('the index', (m) => m.op === 'msg' && m.sid === sid && m.env.body.servers?.[0]?.serverName === 'files');
  };
  await index(await Line.connect(t, socket), 1);
  await index(await Line.connect(t, socket), 2);
  assert.doesNotMatch(text(), /error/);
});

test('nonsense: unknown ops and bad requests are answered, the third unreadable line ends it', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  for (let n = 0; n < 5; n++) assert.equal((await a.ask({ op: 'dance' })).code, 'unknown_op');
  assert.equal((await a.ask({ op: 'pub', topic: 'a.*', env: {} })).code, 'bad_request');
  assert.equal((await a.ask({ op: 'sub', sid: 0, topic: 'a' })).code, 'bad_request');
  a.raw('\n\r\n\n'); // blank lines are nothing
  a.raw('nonsense\n{"op":1}\n');
  await a.hear('the first', (m) => m.code === 'parse');
  await a.hear('the second', (m) => m.code === 'parse');
  assert.equal((await a.ask({ op: 'ping' })).op, 'pong');
  a.raw('[]\n');
  await a.hear('bye', (m) => m.op === 'bye');
  await within(10_000, 'the end', a.ended);
});

test('a line of more than 16 MiB is refused, one of almost that much is not', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 'big', group: 'g' });
  const body = 'x'.repeat(15 << 20);
  await a.ok(pub('big', body));
  assert.equal((await a.msg()).env.body.length, body.length);
  a.say(pub('big', 'x'.repeat(17 << 20)));
  await a.hear('refusal', (m) => m.op === 'err' && m.code === 'too_large');
  assert.equal((await a.ask({ op: 'ping' })).op, 'pong');
});

test('a flood into a queue that nobody empties: bounded memory, and a clear refusal', async (t) => {
  const { socket, url } = place();
  const { pid } = await worker(t, url);
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  const [slow, quick] = [await Line.connect(t, socket), await Line.connect(t, socket)];
  await slow.ok({ op: 'sub', sid: 1, topic: 't', group: 'g', prefetch: 1 });
  const before = rss();
  const line = `${JSON.stringify(pub('t', 'x'.repeat(500)))}\n`;
  for (let n = 0; n < 100; n++) {
    const full = !quick.socket.write(line.repeat(1000));
    if (full) await new Promise((resolve) => { quick.socket.once('drain', resolve); });
  }
  const answer = await quick.ask(pub('t', 'one more'));
  assert.equal(answer.op, 'err');
  assert.equal(answer.code, 'full');
  assert.ok(rss() - before < 200_000, `${rss() - before} KiB more after 100,000 messages`);
  // The bus still works: once a message is acknowledged, there is room again.
  slow.say({ op: 'ack', tag: (await slow.msg()).tag });
  await until('room', async () => (await quick.ask(pub('t', 'fits'))).op === 'ok');
});

test('a subscriber that does not read holds up nobody and does not grow', async (t) => {
  const { socket, url } = place();
  const { pid } = await worker(t, url);
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  const [deaf, b] = [await Line.connect(t, socket), await Line.connect(t, socket)];
  await deaf.ok({ op: 'sub', sid: 1, topic: 't', group: 'deaf', prefetch: 1000, lossy: true });
  await b.ok({ op: 'sub', sid: 1, topic: 't', group: 'b', prefetch: 1000 });
  deaf.socket.pause();
  const line = `${JSON.stringify(pub('t', 'x'.repeat(500)))}\n`;
  const before = rss();
  for (let wave = 0; wave < 40; wave++) {
    b.raw(line.repeat(1000));
    let acks = '';
    for (let n = 0; n < 1000; n++) acks += `${JSON.stringify({ op: 'ack', tag: (await b.msg()).tag })}\n`;
    b.raw(acks);
    assert.equal((await b.ask({ op: 'ping' })).op, 'pong');
  }
  assert.ok(rss() - before < 45_000, `${rss() - before} KiB more after 40,000 messages`);
});

test('the host ends: one of those who had joined hosts, the others join it, nobody hangs', async (t) => {
  for (const signal of ['SIGTERM', 'SIGKILL']) {
    const { socket, url } = place();
    const first = await worker(t, url);
    assert.ok(first.hosts());
    const rest = [await worker(t, url), await worker(t, url)];
    assert.ok(rest.every((w) => !w.hosts()));
    const guest = await Line.connect(t, socket);
    assert.equal((await guest.ask({ op: 'ping' })).op, 'pong');
    await first.stop(signal);
    await within(10_000, 'the connection ends', guest.ended);
    await until('a new host', () => rest.some((w) => w.hosts()), 20_000);
    await until('all are back', () => rest.every((w) => w.text().match(/joined embedded bus/g).length === 2), 20_000);
    assert.equal(rest.filter((w) => w.hosts()).length, 1);
    // The bus works: this connection is served by the new host, and gets its own message.
    const again = await until('the socket', () => Line.connect(t, socket).catch(() => null));
    await again.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
    await again.ok(pub('t', 'alive'));
    assert.equal((await again.msg()).env.body, 'alive');
    await rest.find((w) => w.hosts()).stop();
    const last = rest.find((w) => !w.text().includes('stopping'));
    await until('the last one hosts', () => last.hosts(), 20_000);
    await last.stop();
    assert.ok(!fs.existsSync(socket), 'the socket is left behind');
  }
});

test('TCP: on the loopback, with the token only', async (t) => {
  const { url } = place();
  const w = await worker(t, url, { bus: { listen: '127.0.0.1:0', token: '${BUS_TOKEN}' }, env: { BUS_TOKEN: 'open-sesame' } });
  const [, port] = /the embedded bus listens on 127\.0\.0\.1:(\d+)/.exec(w.text());
  const where = { host: '127.0.0.1', port: Number(port) };
  for (const hello of [{ op: 'ping' }, { op: 'hello' }, { op: 'hello', token: 'open' }]) {
    const wrong = await Line.connect(t, where);
    assert.equal((await wrong.ask(hello)).code, 'unauthorized');
    await within(10_000, 'the end', wrong.ended);
  }
  const right = await Line.connect(t, where);
  await right.ok({ op: 'hello', token: 'open-sesame', name: 'me' });
  await right.ok({ op: 'sub', sid: 1, topic: 't', group: 'g' });
  await right.ok(pub('t', 1));
  assert.equal((await right.msg()).env.source, 'me');
  assert.doesNotMatch(w.text(), /open-sesame/);
  // Our own commands join over TCP, too.
  const env = { BUS_TOKEN: 'open-sesame' };
  const file = writeConfig(tempDir(), { bus: { url: `tcp://127.0.0.1:${port}`, token: '${BUS_TOKEN}' } });
  const sent = await rialto(['bus', 'pub', 't', '{"via":"tcp"}', '-c', file], { env });
  assert.equal(sent.code, 0, sent.stderr);
  assert.deepEqual((await right.hear('via tcp', (m) => m.env?.body?.via)).env.body, { via: 'tcp' });
});

test('embedded: is one bus for all programs of a user, in the runtime folder', async (t) => {
  const runtime = tempDir();
  const env = { XDG_RUNTIME_DIR: runtime };
  const a = await worker(t, 'embedded:', { env });
  const b = await worker(t, 'embedded:', { env });
  assert.ok(a.hosts() && !b.hosts());
  const line = await Line.connect(t, path.join(runtime, 'rialto', 'bus.sock'));
  assert.equal((await line.ask({ op: 'ping' })).op, 'pong');
});

test('rialto bus tail prints what passes and steals nothing', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 'work.*', group: 'g' });
  const tails = [['--json'], []].map((more) => {
    const child = start(rialtoBin, ['bus', 'tail', 'work.#', '--url', url, '-n', '2', ...more], {
      stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...sanitizerEnv },
    });
    let text = '', trouble = '';
    child.stdout.on('data', (d) => { text += d; });
    child.stderr.on('data', (d) => { trouble += d; });
    return { text: () => text, trouble: () => trouble, ended: new Promise((resolve) => { child.on('close', resolve); }) };
  });
  await until('the tails have joined', () => tails.every((c) => /joined/.test(c.trouble())));
  // Each tail subscribes right after its hello; messages are sent until both have printed one.
  let sent = 0;
  while (!tails.every((c) => c.text())) {
    await a.ok(pub('work.now', { n: ++sent }, { correlationId: 'c1', messageType: 'A.B.Thing' }));
    await sleep(50);
    assert.ok(sent < 200, 'the tails print nothing');
  }
  await a.ok(pub('work.now', { n: ++sent }, { messageType: 'A.B.Thing' }));
  for (const c of tails) {
    assert.equal(await within(10_000, 'the end of tail', c.ended), 0, c.trouble());
    expectClean(c.trouble());
  }
  const lines = tails[0].text().trim().split('\n').map((l) => JSON.parse(l));
  assert.equal(lines.length, 2);
  assert.equal(lines[0].topic, 'work.now');
  assert.equal(lines[0].env.messageType, 'A.B.Thing');
  assert.match(tails[1].text(), /^20\S+Z {2}work\.now {2}Thing {2}from unknown {2}for c1\n {4}\{"n":\d+\}\n/);
  for (let n = 1; n <= sent; n++) assert.equal((await a.msg()).env.body.n, n);
});

test('rialto bus pub sends, and waits for the reply', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  await a.ok({ op: 'sub', sid: 1, topic: 'ask', group: 'g' });
  const plain = await rialto(['bus', 'pub', 'ask', '{"q":1}', '--url', url, '-t', 'My.Type', '-H', 'rb-x=y=z',
    '--reply-to', 'there', '--source', 'me']);
  assert.deepEqual([plain.code, plain.stdout], [0, ''], plain.stderr);
  const { env } = await a.msg();
  assert.deepEqual([env.messageType, env.replyTo, env.source, env.body], ['My.Type', 'there', 'me', { q: 1 }]);
  assert.deepEqual(env.headers, { 'rb-x': 'y=z' });

  const waiting = rialto(['bus', 'pub', 'ask', '-', '--url', url, '--wait', '20s', '--json'], { input: '{"q":2}' });
  const question = await a.msg();
  assert.deepEqual(question.env.body, { q: 2 });
  await a.ok(pub(question.env.replyTo, 'for somebody else', { correlationId: 'x' }));
  await a.ok(pub(question.env.replyTo, { a: 2 }, { correlationId: question.env.correlationId }));
  const answered = await waiting;
  assert.equal(answered.code, 0, answered.stderr);
  assert.deepEqual(JSON.parse(answered.stdout).env.body, { a: 2 });

  const late = await rialto(['bus', 'pub', 'ask', '1', '--url', url, '--wait', '200ms']);
  assert.equal(late.code, 1);
  assert.match(late.stderr, /no reply came in time/);
});

test('rialto bus pub: a long topic for the reply is taken as it is', async (t) => {
  const { socket, url } = place();
  await worker(t, url);
  const a = await Line.connect(t, socket);
  const topic = `replies.${'x'.repeat(200)}`;
  await a.ok({ op: 'sub', sid: 1, topic: 'ask', group: 'g' });
  const waiting = rialto(['bus', 'pub', 'ask', '1', '--url', url, '--wait', '20s', '--json', '--reply-to', topic]);
  const question = await a.msg();
  assert.equal(question.env.replyTo, topic);
  await a.ok(pub(topic, { a: 1 }, { correlationId: question.env.correlationId }));
  assert.equal((await waiting).code, 0);
});

// The command waited for ever: the time for the reply began when the message was sent, and it was never sent.
test('rialto bus pub: a bus that brings nothing to the reply topic is told of', async (t) => {
  const socket = path.join(tempDir(), 'deaf.sock');
  const deaf = net.createServer((c) => {
    c.on('error', () => {});
    c.setEncoding('utf8').on('data', (d) => {
      for (const line of d.split('\n').filter(Boolean)) c.write(`${JSON.stringify({ op: 'ok', id: JSON.parse(line).id })}\n`);
    });
  });
  await new Promise((resolve) => { deaf.listen(socket, resolve); });
  t.after(() => deaf.close());
  const sent = await rialto(['bus', 'pub', 'ask', '1', '--url', `unix:${socket}`, '--wait', '1s'], { timeout: 60_000 });
  assert.equal(sent.code, 1);
  assert.match(sent.stderr, /not sent: the bus does not let us listen for the reply/);
});

test('rialto bus proxy speaks MCP on its pipes and offers what the workers have', async (t) => {
  const { url } = place();
  await worker(t, url, { servers: { far: fake() }, bus: { agents: ['Desk'] } });
  const file = writeConfig(tempDir(), { bus: { url, agents: ['Desk'] } });
  const client = new StdioClient(t, rialtoBin, ['bus', 'proxy', '-c', file]);
  await client.connect();
  await client.waitFor('far__echo');
  const { result } = await client.request('tools/call', { name: 'far__echo', arguments: { text: 'over the bus' } });
  assert.match(JSON.stringify(result.content), /over the bus/);
});

// The embedded bus lives in its host's memory. Requests in flight when the host died were never answered,
// and the caller was told only at its timeout, ten minutes later here.
test('the host dies: who waits for an answer is told at once', async (t) => {
  const { url } = place();
  const host = await worker(t, url);
  const done = path.join(tempDir(), 'done');
  const config = { url, agents: ['Desk'], timeout: '10m' };
  const far = await worker(t, url, { servers: { far: busServer(done) }, bus: config });
  const file = writeConfig(tempDir(), { bus: config });
  const client = new StdioClient(t, rialtoBin, ['bus', 'proxy', '-c', file]);
  await client.connect();
  await client.waitFor('far__wait');
  const answer = client.request('tools/call', { name: 'far__wait', arguments: { id: 'w', ms: 600_000 } });
  await until('it runs', () => fs.existsSync(done), 20_000);
  await host.stop('SIGKILL');
  const { error } = await within(60_000, 'the answer', answer);
  assert.match(error.message, /the host of the bus ended/);
  assert.equal(error.data.retryable, false);
  // The bus goes on with another host, once the worker has joined it.
  await until('the worker is back', () => far.text().match(/joined embedded bus/g).length === 2, 20_000);
  await client.waitFor('far__echo');
  const { result } = await client.request('tools/call', { name: 'far__echo', arguments: { x: 1 } });
  assert.match(JSON.stringify(result.content), /x/);
});

test('status and metrics tell of the bus', async (t) => {
  const { socket, url } = place();
  const server = await serve(t, { servers: { main: fake() }, bus: { url, agents: ['Watched'] } });
  const line = await until('the socket', () => Line.connect(t, socket).catch(() => null));
  await line.ok({ op: 'sub', sid: 1, topic: 'tool.result.Watched', group: 'w' });
  await line.ok({ op: 'pub', topic: 'tool.invoke.mcp', env: {
    messageType: 'RockBot.Tools.ToolInvokeRequest', source: 'Watched', correlationId: 'c',
    headers: { 'rb-timeout-ms': '20000', 'rb-mcp-server': 'main' },
    body: { toolCallId: 't', toolName: 'echo', arguments: '{"text":"hi"}' },
  } });
  await line.msg();
  const status = await until('the reply is counted', async () => {
    const { bus } = JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);
    return bus.worker.replies === 1 && bus;
  });
  assert.equal(status.up, true);
  assert.match(status.where, /^embedded bus at .*, hosted here$/);
  assert.deepEqual([status.worker.invokes, status.worker.errors, status.proxy], [1, 0, null]);
  const metrics = (await exchange(`${server.origin}/metrics`, { method: 'GET' })).text;
  assert.match(metrics, /^rialto_bus_up 1$/m);
  assert.match(metrics, /^# TYPE rialto_bus_replies_total counter\nrialto_bus_replies_total 1$/m);
  const shown = await rialto(['status', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } });
  assert.match(shown.stdout, /^Bus: embedded bus at .*, up; worker: 1 calls, 1 replies$/m);
});

test('commands that make no sense say what would', async (t) => {
  const { url } = place();
  const cases = [
    [['bus'], 2, /worker, proxy, tail or pub/],
    [['bus', 'dance'], 2, /there is no command 'bus dance'/],
    [['bus', 'tail', 'a..b'], 2, /not a pattern of topics/],
    [['bus', 'pub', 'a.*', '1'], 2, /without blanks or wildcards/],
    [['bus', 'pub', 'a'], 2, /a topic and a body/],
    [['bus', 'pub', 'a', '1', '-H', 'x'], 2, /NAME=VALUE/],
    [['bus', 'pub', 'a', '1', '--url', url], 1, /No such file|no such file/],
    [['bus', 'tail', '--url', url], 1, /cannot join embedded bus/],
    [['bus', 'tail', '--dead', '--url', 'nats://127.0.0.1:1'], 2, /only the embedded bus/],
    [['bus', 'worker', '--url', 'unix:/nonexistent/a/b'], 1, /cannot host the bus/],
    [['bus', 'tail', '--url', 'ampq://me:hunter2@x'], 1, /begins with 'ampq:'\nhint: embedded:/],
    [['bus', 'pub', 'a', '1', '--url', 'tcp://me:hunter2@x'], 1, /no password\nhint: bus\.token/],
  ];
  for (const [args, code, pattern] of cases) {
    const result = await rialto(args, { env: { HOME: tempDir() } });
    assert.equal(result.code, code, `${args}: ${result.stderr}`);
    assert.match(result.stderr, pattern);
    assert.doesNotMatch(result.stderr, /hunter2/);
  }
});

// Who listened at the place first, in a folder that is anybody's, was taken for the host: a worker did what another user
// asked for, and was sent the bus's token.
test('a bus that another user hosts is not joined', { skip: process.getuid() !== 0 && 'another user can be only as root' }, async (t) => {
  const dir = tempDir();
  fs.chmodSync(dir, 0o1777);
  fs.chmodSync(path.dirname(dir), 0o755);
  const socket = path.join(dir, 'bus.sock');
  const script = `import os, socket, sys
os.setgid(65534); os.setuid(65534); os.umask(0)
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
print('listens', flush=True)
while True: print('got', s.accept()[0].recv(1000), flush=True)`;
  const foreign = spawn('python3', ['-c', script, socket], { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => foreign.kill('SIGKILL'));
  let said = '';
  foreign.stdout.on('data', (d) => { said += d; });
  await until('it listens', () => /listens/.test(said));
  const server = await serve(t, { servers: { a: fake() }, bus: { url: `unix:${socket}`, role: 'worker', agents: ['Ag'] } });
  await until('the refusal', () => /a process of another user hosts the bus/.test(server.stderr()));
  await until('its connection', () => /got/.test(said));
  assert.match(said, /^listens\n(got b''\n)+$/);
});

// The new daemon had the socket and the old one the lock: for 10 s the new one waited for its own answer, and so did agents.
test('after an upgrade the bus is there again at once', async (t) => {
  const { socket, url } = place();
  const server = await serve(t, { servers: { a: fake() }, bus: { url, role: 'worker', agents: ['Ag'] } });
  const before = await until('the bus', () => Line.connect(t, socket).catch(() => null));
  const { code, stderr } = await rialto(['upgrade', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir }, timeout: 30_000 });
  assert.equal(code, 0, stderr);
  const began = Date.now();
  await before.ended;
  const line = await until('the bus', () => Line.connect(t, socket).catch(() => null));
  await line.ok({ op: 'hello', v: 1, name: 'ann', token: null });
  assert.ok(Date.now() - began < 8000, `${Date.now() - began} ms`);
});

// It ended at once with "is being stopped", while calls to other servers were waited for.
for (const how of ['a signal', 'an upgrade']) {
  test(`a call to a server on the bus has its time after ${how}`, async (t) => {
    const { url } = place();
    await serve(t, { servers: { w: fake() }, bus: { url, role: 'worker', agents: ['Desk'] } });
    const server = await serve(t, { servers: {}, bus: { url, role: 'proxy', agents: ['Desk'] } });
    const client = await new HttpClient(server.url).connect();
    await client.waitFor('w__sleep');
    const call = client.text('w__sleep', { ms: 2500 });
    await sleep(500);
    if (how === 'a signal') process.kill(server.pid, 'SIGTERM');
    else assert.equal((await rialto(['upgrade', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir }, timeout: 30_000 })).code, 0);
    assert.match(await call, /slept/);
  });
}

// The old process took the entry back when the time of the registration was over, by what follows the file, which it had freed.
test('an upgrade while an agent registers a server', async (t) => {
  const silent = net.createServer(() => {});
  await new Promise((resolve) => { silent.listen(0, '127.0.0.1', resolve); });
  t.after(() => silent.close());
  const { socket, url } = place();
  const server = await serve(t, { servers: { a: fake() }, bus: { url, role: 'worker', agents: ['Ag'], register_hosts: ['127.0.0.1'] } });
  const engine = await until('the bus', () => LineEngine.connect(t, socket).catch(() => null));
  const agent = await Agent.join(engine, 'Ag');
  await agent.hears('a');
  agent.manage('RegisterServer', { serverName: 'slow', type: 'http', url: `http://127.0.0.1:${silent.address().port}/mcp`, command: null, args: [], env: {} })
    .catch(() => {});
  const file = () => fs.readFileSync(server.config, 'utf8');
  await until('the entry', () => /slow/.test(file()));
  const { code, stderr } = await rialto(['upgrade', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir }, timeout: 30_000 });
  assert.equal(code, 0, stderr);
  await until('the entry is gone', () => !/slow/.test(file()), 20_000);
});
