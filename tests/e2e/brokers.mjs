// Real message brokers for the tests: private folders, private ports, ended by pid. Nothing of the
// host's own broker is read or touched.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { load, start, tempDir, until, within } from './lib.mjs';

// A free port below those that the kernel gives to others (port 0, outgoing connections), so that a
// broker that is started again finds its port still free.
export async function freePort() {
  for (;;) {
    const port = 20_000 + crypto.randomInt(12_000);
    const free = await new Promise((resolve) => {
      const probe = net.createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

// Finds an installed program; fails at once, saying what to install.
function program(package_, ...places) {
  for (const place of places) {
    if (path.isAbsolute(place)) {
      if (fs.existsSync(place)) return place;
      continue;
    }
    for (const dir of (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/sbin')) {
      if (fs.existsSync(path.join(dir, place))) return path.join(dir, place);
    }
  }
  throw new Error(`${places.at(-1)} is not installed: tools/setup test, or install ${package_}`);
}

/**
 * A certificate for 127.0.0.1 and localhost (or other `names`), issued by a new authority:
 * {ca, cert, key} as file names.
 */
export function makeCertificate(dir, names = 'DNS:localhost,IP:127.0.0.1') {
  const file = (name) => path.join(dir, name);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...fresh, '-days', '2', '-subj', '/CN=Rialto test authority',
    '-keyout', file('ca.key'), '-out', file('ca.pem'));
  openssl('req', ...fresh, '-subj', '/CN=localhost', '-keyout', file('key.pem'), '-out', file('csr.pem'));
  fs.writeFileSync(file('names'), `subjectAltName=${names}\n`);
  openssl('x509', '-req', '-in', file('csr.pem'), '-CA', file('ca.pem'), '-CAkey', file('ca.key'),
    '-CAcreateserial', '-days', '2', '-extfile', file('names'), '-out', file('cert.pem'));
  return { ca: file('ca.pem'), cert: file('cert.pem'), key: file('key.pem') };
}

// Ends a running program with this signal, and after `ms` with SIGKILL.
async function end(child, signal, ms) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  child.kill(signal);
  await within(ms, `${signal} of ${child.spawnfile}`, ended).catch(() => {
    child.kill('SIGKILL');
    return ended;
  });
}

// --- RabbitMQ ---

// Names of virtual hosts that exist from the start: a test file gives each of its tests its own.
const vhosts = ['/', ...'abcdefgh'];

// Rights: guest has all, "tools" those that docs/bus.md says a bridge needs, "nobody" none.
const users = { guest: 'guest', tools: 'some-rights', nobody: 'no-rights-here' };
const rights = { guest: '.*', tools: '^rockbot(\\..*)?$' };

function rabbitDefinitions() {
  const hash = (password) => {
    const salt = crypto.randomBytes(4);
    const digest = crypto.createHash('sha256').update(salt).update(password).digest();
    return Buffer.concat([salt, digest]).toString('base64');
  };
  return {
    vhosts: vhosts.map((name) => ({ name })),
    users: Object.entries(users).map(([name, password]) => ({
      name, password_hash: hash(password), hashing_algorithm: 'rabbit_password_hashing_sha256',
      tags: name === 'guest' ? 'administrator' : '',
    })),
    permissions: Object.entries(rights).flatMap(([user, names]) => vhosts.map((vhost) => ({
      user, vhost, configure: names, write: names, read: names,
    }))),
  };
}

function rabbitFiles(dir, port, tls, settings) {
  fs.writeFileSync(path.join(dir, 'definitions.json'), JSON.stringify(rabbitDefinitions()));
  fs.writeFileSync(path.join(dir, 'enabled_plugins'), '[].\n');
  fs.writeFileSync(path.join(dir, 'empty'), '');
  const lines = [
    tls ? 'listeners.tcp = none' : `listeners.tcp.1 = 127.0.0.1:${port}`,
    `load_definitions = ${path.join(dir, 'definitions.json')}`,
    'log.file = false', 'log.console = true', 'log.console.level = info',
    // Whether a test passes must not depend on the machine's disk and memory.
    'disk_free_limit.absolute = 1MB', 'vm_memory_high_watermark.absolute = 2GB',
    ...(tls ? [`listeners.ssl.1 = 127.0.0.1:${port}`, `ssl_options.cacertfile = ${tls.ca}`,
      `ssl_options.certfile = ${tls.cert}`, `ssl_options.keyfile = ${tls.key}`,
      'ssl_options.verify = verify_none'] : []),
    ...settings,
  ];
  fs.writeFileSync(path.join(dir, 'rabbitmq.conf'), `${lines.join('\n')}\n`);
}

class Rabbit {
  #epmd;
  #server;
  #log = '';

  static async create({ tls = null, settings = [] }) {
    const rabbit = new Rabbit();
    rabbit.dir = tempDir();
    rabbit.tls = tls;
    rabbit.port = await freePort();
    rabbit.epmdPort = await freePort();
    rabbit.distPort = await freePort();
    rabbitFiles(rabbit.dir, rabbit.port, tls, settings);
    return rabbit;
  }

  /** The address for bus.url, of a virtual host and as a user. */
  url(vhost = '/', user = 'guest', password = users[user]) {
    const scheme = this.tls ? 'amqps' : 'amqp';
    return `${scheme}://${user}:${password}@127.0.0.1:${this.port}/${encodeURIComponent(vhost)}`;
  }

  get env() {
    return {
      PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: this.dir,
      ERL_EPMD_PORT: String(this.epmdPort), ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_NODENAME: `rialto-${this.port}@localhost`, RABBITMQ_DIST_PORT: String(this.distPort),
      RABBITMQ_CONF_ENV_FILE: path.join(this.dir, 'empty'),
      RABBITMQ_CONFIG_FILE: path.join(this.dir, 'rabbitmq.conf'),
      RABBITMQ_ADVANCED_CONFIG_FILE: path.join(this.dir, 'no-advanced.config'),
      RABBITMQ_ENABLED_PLUGINS_FILE: path.join(this.dir, 'enabled_plugins'),
      RABBITMQ_MNESIA_BASE: path.join(this.dir, 'mnesia'),
      RABBITMQ_LOG_BASE: path.join(this.dir, 'log'),
      RABBITMQ_PID_FILE: path.join(this.dir, 'pid'),
      // The start script becomes the server instead of watching it: our child is the broker itself.
      RUNNING_UNDER_SYSTEMD: '1',
      // Few cores, and other tests want them: no spinning while idle.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none '
        + '-kernel inet_dist_use_interface {127,0,0,1}',
    };
  }

  async start() {
    const script = program('rabbitmq-server', '/usr/lib/rabbitmq/bin/rabbitmq-server', 'rabbitmq-server');
    if (!this.#epmd) {
      // Otherwise Erlang starts epmd as a daemon that nobody ends.
      this.#epmd = start(program('erlang-base', 'epmd'), ['-port', String(this.epmdPort),
        '-address', '127.0.0.1'], { stdio: 'ignore', env: this.env });
    }
    this.#log = '';
    this.#server = start(script, [], { cwd: this.dir, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    const server = this.#server;
    server.stdout.on('data', (d) => { this.#log += d; });
    server.stderr.on('data', (d) => { this.#log += d; });
    await until('RabbitMQ starts', () => {
      if (server.exitCode !== null) throw new Error(`RabbitMQ ended\n${this.#log}`);
      return /Server startup complete/.test(this.#log);
    }, 90_000).catch((e) => { throw new Error(`${e.message}\n${this.#log}`); });
    return this;
  }

  log() { return this.#log; }

  /** Shuts the broker down in order; what it keeps on disk stays. */
  stop() { return end(this.#server, 'SIGTERM', 30_000); }

  /** As if the power failed. */
  kill() { return end(this.#server, 'SIGKILL', 10_000); }

  /** Stops the broker's process until resume(); its connections stay open. */
  pause() { this.#server.kill('SIGSTOP'); }

  resume() { this.#server.kill('SIGCONT'); }

  async restart() {
    await this.stop();
    return this.start();
  }

  async finish() {
    await this.kill();
    await end(this.#epmd, 'SIGKILL', 10_000);
  }

  /** A connection of amqplib, closed when the test ends. */
  async connect(t, vhost = '/') {
    const options = this.tls ? { ca: [fs.readFileSync(this.tls.ca)] } : {};
    const connection = await load('amqplib').connect(this.url(vhost), options);
    connection.on('error', () => {}); // a restart of the broker cuts the connection
    t.after(() => connection.close().catch(() => {}));
    return connection;
  }

  /** rabbitmqctl: slow (seconds), for what no client can do. */
  ctl(...args) {
    const tool = program('rabbitmq-server', '/usr/lib/rabbitmq/bin/rabbitmqctl', 'rabbitmqctl');
    return new Promise((resolve, reject) => {
      const child = start(tool, ['-q', '--node', this.env.RABBITMQ_NODENAME, ...args],
        { env: { ...this.env, RUNNING_UNDER_SYSTEMD: '' }, stdio: ['ignore', 'pipe', 'pipe'] });
      let text = '';
      child.stdout.on('data', (d) => { text += d; });
      child.stderr.on('data', (d) => { text += d; });
      child.on('close', (code) => (code === 0 ? resolve(text)
        : reject(new Error(`rabbitmqctl ${args.join(' ')}: ${text}`))));
    });
  }
}

/**
 * A RabbitMQ of our own on a private port, running: {url(vhost), connect(t, vhost), stop(), kill(),
 * start(), restart(), ctl(...)}. Virtual hosts / and a to h exist. It takes 5 to 15 s, so one per
 * test file: `const rabbit = await startRabbit({ after })` at its top, with node:test's `after` (not
 * inside before(): an `after` called there runs as soon as before() has ended).
 * `tls`: files of makeCertificate, then the port speaks TLS only. `settings`: lines of rabbitmq.conf.
 */
export async function startRabbit(t, options = {}) {
  const rabbit = await Rabbit.create(options);
  t.after(() => rabbit.finish());
  return rabbit.start();
}

// --- NATS ---

function natsFiles(dir, port, { tls, user, password, jetstream, store = '4GB', settings = [] }) {
  const lines = [
    `listen: "127.0.0.1:${port}"`,
    ...(user ? [`authorization { user: "${user}", password: "${password}" }`] : []),
    ...(tls ? [`tls { cert_file: "${tls.cert}", key_file: "${tls.key}", timeout: 10 }`] : []),
    ...(jetstream ? [`jetstream { store_dir: "${path.join(dir, 'store')}", max_mem: 64MB, max_file: ${store} }`] : []),
    ...settings,
  ];
  fs.writeFileSync(path.join(dir, 'nats.conf'), `${lines.join('\n')}\n`);
}

class Nats {
  #server;
  #log = '';

  static async create(options) {
    const nats = new Nats();
    nats.dir = tempDir();
    nats.port = await freePort();
    nats.options = options;
    natsFiles(nats.dir, nats.port, options);
    return nats;
  }

  /** The address for bus.url. */
  get url() { return this.urlAs(this.options.user, this.options.password); }

  urlAs(user, password, host = '127.0.0.1') {
    const who = user ? `${encodeURIComponent(user)}:${encodeURIComponent(password)}@` : '';
    return `${this.options.tls ? 'tls' : 'nats'}://${who}${host}:${this.port}`;
  }

  async start() {
    this.#log = '';
    this.#server = start(program('nats-server', 'nats-server'), ['-c', path.join(this.dir, 'nats.conf')],
      { cwd: this.dir, stdio: ['ignore', 'pipe', 'pipe'] });
    const server = this.#server;
    server.stdout.on('data', (d) => { this.#log += d; });
    server.stderr.on('data', (d) => { this.#log += d; });
    await until('nats-server starts', () => {
      if (server.exitCode !== null) throw new Error(`nats-server ended\n${this.#log}`);
      return /Server is ready/.test(this.#log);
    }, 30_000).catch((e) => { throw new Error(`${e.message}\n${this.#log}`); });
    return this;
  }

  log() { return this.#log; }

  get pid() { return this.#server.pid; }

  stop() { return end(this.#server, 'SIGTERM', 30_000); }

  /** As if the power failed. */
  kill() { return end(this.#server, 'SIGKILL', 10_000); }

  async restart() {
    await this.stop();
    return this.start();
  }

  /** Stops the server's process until resume(); its connections stay open. */
  pause() { this.#server.kill('SIGSTOP'); }

  resume() { this.#server.kill('SIGCONT'); }

  /** The server tells its clients that it is about to shut down, and does so (lame duck mode). */
  retire() { this.#server.kill('SIGUSR2'); }

  /** A connection of the npm client, closed when the test ends. */
  async connect(t) {
    const { tls, user, password } = this.options;
    const nc = await load('nats').connect({
      servers: `127.0.0.1:${this.port}`, user, pass: password, maxReconnectAttempts: -1, reconnectTimeWait: 200,
      ...(tls && { tls: { ca: fs.readFileSync(tls.ca, 'utf8') } }),
    });
    t.after(() => nc.close().catch(() => {}));
    return nc;
  }
}

/**
 * A nats-server of our own on a private port, running: {url, connect(t), stop(), kill(), start(),
 * restart()}. Takes a moment, and may be one per test. Options: `tls`: files of makeCertificate;
 * `user`, `password`; `jetstream`: true, which keeps `store` ('4GB') at most; `settings`: lines of its
 * configuration.
 */
export async function startNats(t, options = {}) {
  const nats = await Nats.create(options);
  t.after(() => nats.kill());
  return nats.start();
}
