// What the end-to-end tests share: start the real binary with a temporary configuration, talk to it
// byte by byte, and check that no process is left when it ends.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const rialtoBin = path.resolve(root, process.env.RIALTO_BIN ?? 'build/asan/src/rialto');
export const releaseBin = path.join(root, 'build/rialto');
export const fakeBin = path.resolve(root, process.env.RIALTO_FAKE_BIN ?? 'build/asan/tests/fake/fake_server');
export const npmFolder = path.join(root, 'build/npm');

// Packages are installed under build/npm, outside of the folders of the tests.
export const load = createRequire(path.join(npmFolder, 'package.json'));

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Polls until `check` returns something truthy, and returns that. */
export async function until(what, check, ms = 10_000) {
  const end = Date.now() + ms;
  let last;
  while (Date.now() < end) {
    last = await check();
    if (last) return last;
    await sleep(25);
  }
  throw new Error(`${what}: not within ${ms} ms`);
}

// --- processes ---

// A process by pid and start time, so that a reused pid is not taken for the old process.
function processTable() {
  const table = new Map();
  for (const entry of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = fs.readFileSync(`/proc/${entry}/stat`, 'utf8');
      const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      table.set(Number(entry), { state, parent: Number(parent), started: rest[17], name });
    } catch { /* the process has just ended */ }
  }
  return table;
}

/** All descendants of a process, except the guard of a conductor, which is part of the program. */
export function descendants(pid) {
  const table = processTable();
  const found = [];
  const visit = (parent) => {
    for (const [child, p] of table) {
      if (p.parent === parent && p.name !== 'rialto-guard') {
        found.push({ pid: child, started: p.started });
        visit(child);
      }
    }
  };
  visit(pid);
  return found;
}

export function isAlive(process_) {
  const now = processTable().get(process_.pid);
  return Boolean(now && now.state !== 'Z' && (!process_.started || now.started === process_.started));
}

/** The words of a process's command line; none when it has ended. */
export function commandOf({ pid }) {
  try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'); } catch { return []; }
}

export async function expectGone(processes, ms = 1000) {
  await until('processes left behind', () => !processes.some(isAlive), ms)
    .catch(() => assert.fail(`left behind: ${processes.filter(isAlive).map((p) => p.pid)}`));
}

// What must not outlive this test file, even if the test runner ends it after a timeout.
const started = new Set();
const tempDirs = [];
process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL');
  for (const dir of tempDirs) fs.rmSync(dir, { recursive: true, force: true });
});
process.on('SIGTERM', () => process.exit(1));

/** spawn, but the program ends with this test file at the latest. */
export function start(command, args, options) {
  const child = spawn(command, args, options);
  started.add(child);
  child.on('close', () => started.delete(child));
  return child;
}

// --- files ---


/** A temporary folder; it is removed when the test file ends. */
export function tempDir() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'rialto-test-'));
  tempDirs.push(dir);
  return dir;
}

// Control sockets and state files of daemons that a test starts are put into folders of the test file.
process.env.XDG_RUNTIME_DIR = tempDir();
process.env.XDG_STATE_HOME = tempDir();

export function writeConfig(dir, config, name = 'rialto.json') {
  const file = path.join(dir, name);
  fs.writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config, null, 2));
  return file;
}

// Reported here at once, instead of by every test after a long wait.
for (const needed of [rialtoBin, fakeBin]) {
  if (!fs.existsSync(needed)) throw new Error(`${needed} is not built: make asan`);
}

/** The configuration entry of a fake server. */
export function fake(...args) {
  return { command: fakeBin, args: args.map(String) };
}

/** The configuration entry of an npm server, run by the same Node as the tests. */
export function npmServer(name, args = [], more = {}) {
  const script = path.join(npmFolder, `node_modules/@modelcontextprotocol/${name}/dist/index.js`);
  return { command: process.execPath, args: [script, ...args], ...more };
}

// --- the program ---

export const sanitizerEnv = {
  ASAN_OPTIONS: 'detect_leaks=1:abort_on_error=0:quarantine_size_mb=8',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};

export function expectClean(stderr) {
  assert.doesNotMatch(stderr, /AddressSanitizer|LeakSanitizer|runtime error:/, stderr);
}

// What one run remembers of its servers must not affect the next test.
const noMemory = '/dev/null/none';

/** Runs a command to its end: {code, stdout, stderr}. */
export function runCommand(command, args, { env = {}, cwd, input = '', timeout = 30_000 } = {}) {
  return new Promise((resolve) => {
    const child = execFile(command, args, {
      cwd, timeout, killSignal: 'SIGKILL', maxBuffer: 64 << 20,
      env: { ...process.env, ...sanitizerEnv, XDG_CACHE_HOME: noMemory, ...env },
    }, (error, stdout, stderr) => {
      const code = error ? error.code ?? `killed by ${error.signal}` : 0;
      resolve({ code, stdout, stderr });
    });
    child.stdin.on('error', () => {}); // the program may end without reading
    child.stdin.end(input);
  });
}

export async function rialto(args, options) {
  const result = await runCommand(rialtoBin, args, options);
  expectClean(result.stderr);
  return result;
}

/** Runs a command on a terminal; `dialogue` is a list of [pattern to wait for, what to type]. */
export async function atTerminal(t, args, dialogue, { env = {}, columns = 100, program = rialtoBin } = {}) {
  const child = start(path.join(path.dirname(fakeBin), 'terminal'), [String(columns), '40', program, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, TERM: 'xterm', ...env },
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', (code) => resolve(code)); });
  let from = 0;
  for (const [pattern, typed] of dialogue) {
    const found = await until(`${pattern} in ${JSON.stringify(text)}`, () => pattern.exec(text.slice(from)), 20_000);
    from += found.index + found[0].length; // the next words may have come with these
    if (typed !== undefined) child.stdin.write(typed);
  }
  return { code: await ended, text };
}

/**
 * Starts `rialto serve` on a free port, with no configuration at all when `config` is null. Returns
 * {url, origin, pid, stderr(), stop()}; the end of the test stops it, too, and checks a clean end:
 * status 0, in time (ten seconds more if calls are open), no process left.
 */
export async function serve(t, config, { args = [], env = {}, bin = [rialtoBin], slack = 1 } = {}) {
  const dir = tempDir();
  const file = config && writeConfig(dir, { listen: '127.0.0.1:0', ...config });
  const where = {
    XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: path.join(dir, 'cache'),
    ...(!file && { RIALTO_LISTEN: '127.0.0.1:0', HOME: dir, XDG_CONFIG_HOME: dir }),
  };
  const child = start(bin[0], [...bin.slice(1), 'serve', ...(file ? ['-c', file] : []), ...args], {
    cwd: dir, stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...sanitizerEnv, ...where, ...env },
  });
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  let stopping;
  const stop = (signal = 'SIGTERM', ms = 2000) => {
    stopping ??= (async () => {
      const family = descendants(child.pid);
      child.kill(signal);
      const end = await within(ms * slack, `end after ${signal}`, ended).catch((e) => {
        if (!/have 10 s to end/.test(text)) throw e;
        return within(10_000 + ms * slack, `end after ${signal}, calls open`, ended);
      }).catch((e) => {
        child.kill('SIGKILL');
        throw new Error(`${e.message}\n${text}`);
      });
      expectClean(text);
      assert.deepEqual(end, { code: 0, signal: null }, text);
      await expectGone(family);
    })();
    return stopping;
  };
  t.after(() => stop());
  const listening = until('the listening line', () => text.match(/listening on (https?:\/\/[^\s/"]+)/),
    10_000 * slack);
  const match = await Promise.race([listening, ended.then((end) => {
    throw new Error(`rialto serve ended: ${JSON.stringify(end)}\n${text}`);
  })]);
  return {
    origin: match[1], url: `${match[1]}/mcp`, pid: child.pid, config: file, dir, ended, stop,
    stderr: () => text,
  };
}

/** Waits for a line in the log of a daemon of serve(): it arrives a moment after it is written. */
export function logged(server, pattern) {
  return until(`${pattern} in the log`, () => pattern.test(server.stderr()));
}

// --- MCP over HTTP, by hand ---

export const bothTypes = 'application/json, text/event-stream';

const requestOf = (url) => (`${url}`.startsWith('https:') ? https : http).request;

/**
 * One HTTP exchange: {status, headers, text}. No header is added except Host and the length. `ca` is
 * the authority to trust with https.
 */
export function exchange(url, { method = 'POST', headers = {}, body, ca } = {}) {
  return new Promise((resolve, reject) => {
    const request = requestOf(url)(url, { method, headers, agent: false, ca }, (response) => {
      const chunks = [];
      response.on('data', (d) => chunks.push(d));
      response.on('error', reject);
      response.on('end', () => resolve({
        status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString(),
      }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** The data of each event of an SSE text. */
export function sseData(text) {
  return text.split(/\r?\n\r?\n/)
    .map((event) => event.split(/\r?\n/).filter((l) => l.startsWith('data:'))
      .map((l) => l.slice(5).replace(/^ /, '')).join('\n'))
    .filter((data) => data !== '');
}

/** The messages of an answer, JSON or SSE, as raw texts in order. */
export function rawMessages(answer) {
  if (answer.text === '') return [];
  const type = answer.headers['content-type'] ?? '';
  return type.startsWith('text/event-stream') ? sseData(answer.text) : [answer.text];
}

/** A raw Streamable HTTP client of the initialize era. */
export class HttpClient {
  #next = 1;

  constructor(url, { ca, token } = {}) {
    this.url = url;
    this.ca = ca;
    this.headers = { 'Content-Type': 'application/json', Accept: bothTypes };
    if (token) this.headers.Authorization = `Bearer ${token}`;
  }

  async connect({ version = '2025-11-25', capabilities = {}, name = 'raw' } = {}) {
    const answer = await this.post({
      jsonrpc: '2.0', id: 'init', method: 'initialize',
      params: { protocolVersion: version, capabilities, clientInfo: { name, version: '1' } },
    });
    assert.equal(answer.status, 200, answer.text);
    this.initialized = JSON.parse(rawMessages(answer).at(-1)).result;
    this.headers['Mcp-Session-Id'] = answer.headers['mcp-session-id'];
    this.headers['MCP-Protocol-Version'] = this.initialized.protocolVersion;
    assert.equal((await this.notify('notifications/initialized')).status, 202);
    return this;
  }

  /** Posts a message (text, or an object to be written as JSON). */
  post(message, headers = {}) {
    const body = typeof message === 'string' ? message : JSON.stringify(message);
    return exchange(this.url, { headers: { ...this.headers, ...headers }, body, ca: this.ca });
  }

  notify(method, params) {
    return this.post({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request with a raw id and raw params; returns {raw, message, events}. */
  async rawRequest(id, method, params) {
    const answer = await this.post(
      `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`);
    assert.equal(answer.status, 200, answer.text);
    const raw = rawMessages(answer);
    return { raw: raw.at(-1), message: JSON.parse(raw.at(-1)), events: raw.slice(0, -1).map((m) => JSON.parse(m)) };
  }

  /** The whole response message of a request. */
  async request(method, params = {}) {
    return (await this.rawRequest(this.#next++, method, JSON.stringify(params))).message;
  }

  async call(name, args = {}) {
    return this.request('tools/call', { name, arguments: args });
  }

  /** The text of a call that must succeed. */
  async text(name, args = {}) {
    const { result, error } = await this.call(name, args);
    assert.ok(result && !result.isError, JSON.stringify(error ?? result));
    return result.content[0].text;
  }

  async toolNames() {
    return (await this.request('tools/list')).result.tools.map((t) => t.name);
  }

  /** Waits until the named tools are all listed. */
  async waitFor(...names) {
    return until(`tools ${names}`, async () => {
      const listed = await this.toolNames();
      return names.every((n) => listed.includes(n)) && listed;
    }, 20_000);
  }

  close() {
    return exchange(this.url, { method: 'DELETE', headers: this.headers, ca: this.ca });
  }

  /** The standing stream (GET): {status, headers, messages, waitFor(method), close()}. */
  listen(extra = {}) {
    return new Promise((resolve, reject) => {
      const headers = { ...this.headers, Accept: 'text/event-stream', ...extra };
      const options = { method: 'GET', headers, agent: false, ca: this.ca };
      const request = requestOf(this.url)(this.url, options, (response) => {
        let text = '';
        const stream = { status: response.statusCode, headers: response.headers, ended: false };
        response.on('data', (d) => { text += d; });
        response.on('error', () => {});
        response.on('close', () => { stream.ended = true; });
        stream.text = () => text;
        stream.messages = () => sseData(text).map((m) => JSON.parse(m));
        stream.count = (method) => stream.messages().filter((m) => m.method === method).length;
        stream.waitFor = (method, n = 1) => until(`${n} × ${method} on the stream`,
          () => stream.count(method) >= n);
        /** Messages queued for this session come first; resolves when no more of them come. */
        stream.settle = async () => {
          for (let before = -1; before !== text.length; await sleep(150)) before = text.length;
        };
        stream.close = () => request.destroy();
        resolve(stream);
      });
      request.on('error', reject);
      request.end();
    });
  }
}

/** Starts serve and connects a raw client; waits until all wanted tools are listed. */
export async function serveAndConnect(t, config, wanted = [], options = {}) {
  const server = await serve(t, config, options);
  const client = await new HttpClient(server.url).connect();
  if (wanted.length) await client.waitFor(...wanted);
  return { server, client };
}

// --- MCP over stdio, by hand ---

/** `rialto stdio` (or any stdio MCP program) as a raw line client. */
export class StdioClient {
  #next = 1;

  constructor(t, command, args, options = {}) {
    this.child = start(command, args, {
      stdio: ['pipe', 'pipe', 'pipe'], ...options,
      env: { ...process.env, ...sanitizerEnv, XDG_CACHE_HOME: tempDir(), ...options.env },
    });
    this.lines = [];
    this.stderr = '';
    let rest = '';
    this.child.stdout.on('data', (d) => {
      const parts = (rest + d).split('\n');
      rest = parts.pop();
      this.lines.push(...parts);
    });
    this.child.stderr.on('data', (d) => { this.stderr += d; });
    this.child.stdin.on('error', () => {});
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code, signal) => resolve({ code, signal }));
    });
    t.after(() => this.stop());
  }

  send(message) {
    this.child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
  }

  messages() {
    return this.lines.map((l) => JSON.parse(l));
  }

  /** Sends a request with a raw id; returns the raw response line. */
  async rawRequest(id, method, params = '{}', ms = 20_000) {
    this.send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`);
    const own = JSON.stringify(JSON.parse(id));
    return until(`answer to ${id} ${method}\n${this.stderr}`, () => this.lines.find((l) => {
      const m = JSON.parse(l);
      return !m.method && JSON.stringify(m.id) === own;
    }), ms);
  }

  async request(method, params = {}) {
    return JSON.parse(await this.rawRequest(`"s${this.#next++}"`, method, JSON.stringify(params)));
  }

  async connect({ version = '2025-11-25', capabilities = {} } = {}) {
    const answer = await this.request('initialize', {
      protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1' },
    });
    this.initialized = answer.result;
    this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this;
  }

  async waitFor(...names) {
    return until(`tools ${names}`, async () => {
      const listed = (await this.request('tools/list')).result.tools.map((t) => t.name);
      return names.every((n) => listed.includes(n)) && listed;
    }, 20_000);
  }

  /** EOF on stdin must end the program: status 0, in time, no process left. */
  stop(ms = 2000) {
    this.stopping ??= (async () => {
      const family = descendants(this.child.pid);
      this.child.stdin.end();
      const end = await within(ms, 'end after EOF', this.ended).catch((e) => {
        this.child.kill('SIGKILL');
        throw new Error(`${e.message}\n${this.stderr}`);
      });
      expectClean(this.stderr);
      assert.deepEqual(end, { code: 0, signal: null }, this.stderr);
      await expectGone(family);
    })();
    return this.stopping;
  }
}

/** `rialto stdio` with a temporary configuration, connected. */
export async function stdio(t, config, wanted = []) {
  const file = writeConfig(tempDir(), config);
  const client = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
  await client.connect();
  if (wanted.length) await client.waitFor(...wanted);
  return client;
}
