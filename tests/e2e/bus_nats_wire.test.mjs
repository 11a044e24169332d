// How the NATS engine connects to a server: keys and credentials, TLS first, servers of a cluster that it
// learns of, servers that shut down, and servers that do not speak NATS.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { freePort, makeCertificate, startNats } from './brokers.mjs';
import { Probe, startProbe } from './bus_probe.mjs';
import { load, tempDir, until } from './lib.mjs';

const { createAccount, createOperator, createUser } = load('nkeys.js');

const seedOf = (key) => Buffer.from(key.getSeed()).toString();

function file(text) {
  const name = path.join(tempDir(), 'user.creds');
  fs.writeFileSync(name, text, { mode: 0o600 });
  return name;
}

/** Sends one message to ourselves: everything works. */
async function works(probe, topic) {
  await probe.sub(topic, topic, 'g');
  probe.pub(topic, { body: { n: 1 } });
  await until('the message', () => probe.messages(topic).length);
}

// --- credentials ---

test('an NKEY signs us in, another one is refused, and no seed is ever shown', async (t) => {
  const [user, stranger] = [createUser(), createUser()];
  const server = await startNats(t, { settings: [`authorization { users: [ { nkey: "${user.getPublicKey()}" } ] }`] });
  const right = await startProbe(t, server.url, ['--credentials', file(`${seedOf(user)}\n`)]);
  await works(right, 'nkey.x');
  const name = file(seedOf(stranger));
  const wrong = new Probe(t, server.url, ['--credentials', name]);
  assert.equal((await wrong.wait('down')).why, `the server refuses the credentials in ${name}`);
  const none = new Probe(t, server.url);
  assert.match((await none.wait('down')).why, /refuses the user name, password or token/);
  for (const probe of [right, wrong]) assert.doesNotMatch(probe.stderr + JSON.stringify(probe.events), /SU[A-Z2-7]{20}/);
});

test('a credentials file of an operator signs us in, also the one that was put in its place', async (t) => {
  const [operator, account, user, expired] = [createOperator(), createAccount(), createUser(), createUser()];
  const sign = (by, claims) => {
    const part = (o) => Buffer.from(JSON.stringify(o)).toString('base64url');
    const text = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part({
      jti: 'x', iat: 1771396224, iss: by.getPublicKey(), ...claims,
    })}`;
    return `${text}.${Buffer.from(by.sign(Buffer.from(text))).toString('base64url')}`;
  };
  const limits = { subs: -1, data: -1, payload: -1 };
  const credentials = (key, more) => `-----BEGIN NATS USER JWT-----
${sign(account, { name: 'u', sub: key.getPublicKey(), ...more, nats: { pub: {}, sub: {}, ...limits, type: 'user', version: 2 } })}
------END NATS USER JWT------

************************* IMPORTANT *************************
-----BEGIN USER NKEY SEED-----
${seedOf(key)}
------END USER NKEY SEED------
`;
  const server = await startNats(t, {
    settings: [
      `operator: "${sign(operator, { name: 'o', sub: operator.getPublicKey(), nats: { type: 'operator', version: 2 } })}"`,
      'resolver: MEMORY',
      `resolver_preload: { ${account.getPublicKey()}: "${sign(operator, {
        name: 'a', sub: account.getPublicKey(), nats: {
          limits: { ...limits, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }, type: 'account', version: 2,
        },
      })}" }`,
    ],
  });
  await works(await startProbe(t, server.url, ['--credentials', file(credentials(user))]), 'jwt.x');
  const name = file(credentials(expired, { exp: 1771396225 }));
  const late = new Probe(t, server.url, ['--credentials', name]);
  assert.match((await late.wait('down')).why, /refuses the credentials in/);
  fs.writeFileSync(name, credentials(user));
  await late.wait('up');
  assert.doesNotMatch(late.stderr, /eyJ|SU[A-Z2-7]{20}/);
});

test('a file without a key is refused at once', async (t) => {
  const server = await startNats(t);
  for (const [name, reason] of [
    ['/nowhere/user.creds', /cannot read the NATS credentials in \/nowhere\/user.creds/],
    [file('SUPER secret\n'), /has no seed of a NATS user's key/],
  ]) {
    const probe = new Probe(t, server.url, ['--credentials', name]);
    probe.leaving = Promise.resolve();
    assert.notEqual(await probe.ended, 0);
    assert.match(probe.stderr, reason);
    assert.doesNotMatch(probe.stderr, /SUPER/);
  }
  // A server without key authentication asks for no signature: an error is better than being let in by chance.
  const probe = new Probe(t, server.url, ['--credentials', file(seedOf(createUser()))]);
  assert.match((await probe.wait('down')).why, /asks for no signature/);
});

test('what we may not do is logged, and the rest goes on', async (t) => {
  const server = await startNats(t, { settings: [`authorization { users: [ { user: u, password: p,
    permissions: { publish: "may.>", subscribe: ["may.>", "_INBOX.>"] } } ] }`] });
  const probe = await startProbe(t, server.urlAs('u', 'p'));
  probe.pub('other.x', { body: {} });
  await probe.logged(/warn  nats: Permissions Violation for Publish to "other.x"/);
  await works(probe, 'may.x');
  assert.equal(probe.of('down').length, 0);
});

// A worker answers its next call only when the last ones are known to have arrived, and asked about them once a millisecond:
// with ten calls at once, as by default, it did no more than 8,800 calls a second, idle most of the time.
test('what has arrived is asked about after a few messages, not only once a millisecond', async (t) => {
  const server = await startNats(t);
  let sent = '';
  const relay = net.createServer((socket) => {
    const onward = net.connect(server.port, '127.0.0.1');
    socket.on('data', (data) => { sent += data; });
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on('error', () => {}).on('close', () => { socket.destroy(); onward.destroy(); });
  });
  await new Promise((resolve) => { relay.listen(0, '127.0.0.1', resolve); });
  t.after(() => relay.close());
  const probe = await startProbe(t, `nats://127.0.0.1:${relay.address().port}`);
  await probe.sub('asks.x', 'asks.x', 'g');
  const all = Array.from({ length: 12 }, (_, n) => ({ op: 'pub', topic: 'asks.x', env: { body: { n } } }));
  probe.child.stdin.write(all.map((one) => `${JSON.stringify(one)}\n`).join(''));
  await until('the messages', () => probe.messages('asks.x').length === all.length);
  const words = sent.slice(sent.search(/H?PUB asks\.x/)).match(/^(PING|H?PUB asks\.x)/gm).map((word) => word.replace(/^H/, ''));
  assert.equal(words.indexOf('PING'), 4, words.join());
});

// --- clusters ---

async function startCluster(t, n) {
  const ports = await Promise.all(Array.from({ length: n }, freePort));
  const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join(', ');
  const servers = await Promise.all(ports.map((port, i) => startNats(t, { settings: [`server_name: s${i}`,
    `cluster { name: c, listen: "127.0.0.1:${port}", routes: [ ${routes} ] }`,
    'lame_duck_grace_period: "1s", lame_duck_duration: "30s"'] })));
  const [nc] = await Promise.all(servers.map((s) => s.connect(t)));
  await until('the cluster', () => nc.info?.connect_urls?.length === n);
  return servers;
}

test('a server that dies is replaced by one that it told us of', async (t) => {
  const [first, second] = await startCluster(t, 2);
  const [probe, other] = [await startProbe(t, first.url), await startProbe(t, second.url)];
  await other.sub('s', 'cluster.x', 'g');
  await first.kill();
  await probe.wait('up', 2);
  probe.pub('cluster.x', { body: { n: 1 } });
  await other.wait('message');
  await works(probe, 'cluster.y');
});

test('a server that shuts down is left before it cuts us, and what it has sent is not lost', async (t) => {
  const [first, second] = await startCluster(t, 2);
  const [probe, other] = [await startProbe(t, first.url), await startProbe(t, second.url)];
  await probe.sub('s', 'duck.x', 'g');
  first.retire();
  assert.match((await probe.wait('down')).why, /shuts down/);
  await probe.wait('up', 2);
  await until('subscribed again', () => probe.subscribed('g') === 2);
  other.pub('duck.x', { body: { n: 1 } });
  await probe.wait('message');
});

test('servers that a cluster tells by address are checked by the name we came with', async (t) => {
  const certificate = makeCertificate(tempDir(), 'DNS:localhost');
  const server = await startNats(t, { tls: certificate });
  // Another server tells the address of this one, which is not in the certificate.
  const greeter = await listen(t, (socket) => socket.end(`INFO ${JSON.stringify({
    max_payload: 1048576, headers: true, tls_required: true, connect_urls: [`127.0.0.1:${server.port}`] })}\r\n`));
  const probe = await startProbe(t, `tls://localhost:${greeter.port}`, ['--ca', certificate.ca]);
  await works(probe, 'told.x');
});

// --- TLS first ---

test('TLS comes first where the address says so', async (t) => {
  const certificate = makeCertificate(tempDir());
  const server = await startNats(t);
  const front = tls.createServer({ cert: fs.readFileSync(certificate.cert), key: fs.readFileSync(certificate.key) },
    (socket) => {
      const back = net.connect(server.port, '127.0.0.1');
      socket.on('error', () => {}).pipe(back).on('error', () => {}).pipe(socket);
    });
  front.on('tlsClientError', () => {});
  await new Promise((resolve) => { front.listen(0, '127.0.0.1', resolve); });
  t.after(() => front.close());
  const url = `tls://127.0.0.1:${front.address().port}`;
  await works(await startProbe(t, `${url}?tls_first`, ['--ca', certificate.ca]), 'first.x');
  const other = new Probe(t, `${url}?tls_first`); // with the system's authorities
  assert.match((await other.wait('down')).why, /certificate|TLS/);
});

// --- servers that do not speak NATS ---

/** A TCP server that calls `onSocket` for each connection, until the test ends: {port, count()}. */
async function listen(t, onSocket) {
  let count = 0;
  const open = new Set();
  const server = net.createServer((socket) => {
    count++;
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    onSocket(socket);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.close(); open.forEach((s) => s.destroy()); });
  return { port: server.address().port, count: () => count };
}

const info = (more) => `INFO ${JSON.stringify({ max_payload: 1048576, headers: true, ...more })}\r\n`;

for (const [what, said, reason] of [
  ['speaks HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', /does not speak NATS/],
  ['greets with a message', 'MSG a 1 0\r\n\r\n', /does not greet as NATS does/],
  ['sends an INFO without end', `INFO ${'x'.repeat(70_000)}`, /does not speak NATS/],
  ['sends an INFO that is no JSON', 'INFO hello\r\n', /an INFO that cannot be read/],
  ['knows no headers', info({ headers: false }), /knows no headers/],
  ['sends more than a message may have', `${info()}MSG a 1 99999999\r\n`, /broke the protocol: too large/],
  ['sends fewer bytes than it says', `${info()}MSG a 1 2\r\nabcd\r\n`, /broke the protocol/],
  ['sends garbage', `${info()}\0\xff\r\n`, /broke the protocol/],
  ['speaks before TLS', `${info({ tls_required: true })}PONG\r\n`, /more than its greeting before TLS/],
  ['hangs up', '', /the connection is lost/],
]) {
  test(`a server that ${what} is left with a reason, and tried again`, async (t) => {
    const server = await listen(t, (socket) => { socket.write(said || ' '); if (!said) socket.end(); });
    const probe = new Probe(t, `nats://user:pa55word@127.0.0.1:${server.port}`);
    assert.match((await probe.wait('down')).why, reason);
    await until('another attempt', () => server.count() > 1);
    assert.equal(probe.of('up').length, 0);
    assert.doesNotMatch(probe.stderr, /pa55word/);
  });
}

test('a server that is none does not keep us from one that is', async (t) => {
  const [liar, server] = [await listen(t, (socket) => socket.write('nonsense\r\n')), await startNats(t)];
  for (let i = 0; i < 4; i++) { // either may be tried first
    await works(await startProbe(t, `nats://127.0.0.1:${liar.port},127.0.0.1:${server.port}`), `liar.n${i}`);
  }
});
