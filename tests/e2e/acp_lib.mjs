// What the conductor's tests share: a client that keeps everything it hears, and command lines for
// the fixture components.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Peer, RpcError } from '../fixture/acp/peer.mjs';
import {
  descendants, expectClean, expectGone, rialtoBin, root, sanitizerEnv, tempDir, within,
} from './lib.mjs';

const fixture = (name) => path.join(root, 'tests/fixture/acp', name);
const quote = (words) => words.map((w) => `'${w}'`).join(' ');
const component = (script, args) => quote([process.execPath, fixture(script), ...args.map(String)]);

/** Command lines of the fixture agent and of a fixture proxy. */
export const agent = (...args) => component('agent.mjs', args);
export const proxy = (dialect, ...args) => component('proxy.mjs', ['--dialect', dialect, ...args]);
/** A conductor as a component. */
export const inner = (...args) => quote([rialtoBin, 'conductor', ...args]);

/** A file that a fixture writes its events to. */
export function eventLog() {
  const file = path.join(tempDir(), 'events');
  const read = () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l)) : []);
  return { file, read, of: (event) => read().filter((e) => e.event === event) };
}

/** The rialto-guard process of this conductor (there is one as soon as it has a component). */
export const guardsOf = ({ pid }) => fs.readdirSync('/proc').filter((p) => {
  try { return fs.readFileSync(`/proc/${p}/stat`, 'utf8').includes(`(rialto-guard) S ${pid} `); } catch { return false; }
}).map((p) => ({ pid: Number(p) }));

/** A client of a conductor, started with these arguments. */
export class Conductor extends Peer {
  heard = [];

  lines = [];

  stderr = '';

  constructor(t, args, { env = {}, command = [rialtoBin, 'conductor'] } = {}) {
    const child = spawn(command[0], [...command.slice(1), ...args], {
      cwd: tempDir(), env: { ...process.env, ...sanitizerEnv, ...env },
    });
    super(child.stdout, child.stdin, (...a) => this.take(...a));
    this.child = child;
    this.onLine = (line) => this.lines.push(line);
    child.stderr.on('data', (d) => { this.stderr += d; });
    this.exit = new Promise((resolve) => { child.on('close', (code, signal) => resolve(signal ?? code)); });
    t.after(() => this.stop());
  }

  /** Overridden by tests that answer something. */
  answer = (method) => { throw new RpcError(-32601, `Method not found: ${method}`); };

  take(method, params, id) {
    this.heard.push({ method, params, id });
    return id === undefined ? undefined : this.answer(method, params, id);
  }

  count(method) {
    return this.heard.filter((m) => m.method === method).length;
  }

  /** Closes the conductor's input and checks that it ends with this status and leaves no process behind. */
  stop(status) {
    this.stopping ??= (async () => {
      const family = descendants(this.child.pid);
      this.child.stdin.end();
      const code = await within(10_000, 'the end of the conductor', this.exit).catch((e) => {
        this.child.kill('SIGKILL');
        throw new Error(`${e.message}\n${this.stderr}`);
      });
      expectClean(this.stderr);
      if (status !== undefined) assert.equal(code, status, this.stderr);
      else assert.ok(code === 0 || code === 1, `${code}\n${this.stderr}`);
      await expectGone(family);
      return code;
    })();
    return this.stopping;
  }

  initialize(version = 1, more = {}) {
    const params = version >= 2
      ? { protocolVersion: version, info: { name: 'test', version: '1' }, ...more }
      : { protocolVersion: version, clientCapabilities: {}, ...more };
    return within(20_000, 'initialize', this.request('initialize', params));
  }

  async newSession(more = {}) {
    const { sessionId } = await within(20_000, 'session/new', this.request('session/new', { cwd: '/', mcpServers: [], ...more }));
    return sessionId;
  }

  /** Sends a prompt; resolves to the texts that came before its answer. */
  async prompt(sessionId, command) {
    const from = this.heard.length;
    const text = typeof command === 'string' ? command : JSON.stringify(command);
    const result = await within(20_000, 'the prompt', this.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }));
    assert.ok(result.stopReason);
    return this.heard.slice(from).filter((m) => m.method === 'session/update')
      .map((m) => m.params.update.content.text);
  }

  /** Sends a prompt that is answered with one JSON text and parses it; arrows of proxies are removed. */
  async ask(sessionId, command) {
    const [text] = await this.prompt(sessionId, command);
    return JSON.parse(text.replace(/^>*/, ''));
  }

  callTool(sessionId, server, tool = 'echo', params = { message: 'hi' }, meta = undefined) {
    return this.ask(sessionId, { command: 'call_tool', server, tool, params, meta });
  }
}

/** The first line that the port of a declared server expects. */
export const secretOf = ({ env }) => `${env[0].value}\n`;

/** A socket to the port of a declared server; the secret is already sent. */
export function dial({ args, env }, options = {}) {
  const socket = net.connect({ port: Number(args.at(-1)), host: '127.0.0.1', ...options });
  socket.write(secretOf({ env }));
  return socket;
}

/** A conductor with a session. */
export async function open(t, args, options) {
  const c = new Conductor(t, args, options);
  c.initialized = await c.initialize();
  c.session = await c.newSession();
  return c;
}

export const rejects = (promise, code, pattern) => assert.rejects(within(20_000, 'an error', promise), (e) => {
  assert.equal(e.code, code, `${e.message} ${JSON.stringify(e.data)}`);
  if (pattern) assert.match(`${e.message} ${JSON.stringify(e.data)}`, pattern);
  return true;
});
