// Servers for Rialto to connect to, made inside the tests: one with the official SDK (v1), and one
// whose every byte the test sees and decides.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { load, npmServer, until, within } from './lib.mjs';

const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { z } = load('zod');

/** An HTTP server on this machine: {url, port, close()}. Closing it cuts its connections. */
export async function listen(t, handler, { port = 0, create = http.createServer } = {}) {
  const server = create(handler);
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  t.after(close);
  return { port: server.address().port, url: `http://127.0.0.1:${server.address().port}/mcp`, close };
}

export function readBody(request) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    request.on('data', (d) => chunks.push(d));
    request.on('end', () => resolve(Buffer.concat(chunks).toString()));
    request.on('error', reject);
  });
}

/** A server of the official SDK whose sessions can be dropped. */
export class SdkServer {
  sessions = new Map();
  calls = 0;
  headers = []; // of all requests

  constructor(options = {}) {
    this.options = options;
  }

  make() {
    const server = new McpServer({ name: 'sdk', version: '1' }, { capabilities: { logging: {} } });
    server.registerTool('echo', { inputSchema: { text: z.string() } }, async ({ text }) => {
      this.calls += 1;
      return { content: [{ type: 'text', text }] };
    });
    server.registerTool('wait', { inputSchema: { ms: z.number() } }, async ({ ms }, { signal }) => {
      this.calls += 1;
      this.waiting = true;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener('abort', () => { this.aborted = true; clearTimeout(timer); resolve(); });
      });
      return { content: [{ type: 'text', text: 'waited' }] };
    });
    return server;
  }

  forgetSessions() {
    this.sessions.clear();
  }

  async #open() {
    const server = this.make();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: this.options.stateless ? undefined : randomUUID,
      onsessioninitialized: (id) => this.sessions.set(id, { transport, server }),
      ...this.options.transport,
    });
    await server.connect(transport);
    return transport;
  }

  handler = async (request, response) => {
    this.headers.push(request.headers);
    const id = request.headers['mcp-session-id'];
    if (id) {
      const session = this.sessions.get(id);
      if (request.method === 'DELETE' && session) this.deleted = id;
      if (session) await session.transport.handleRequest(request, response);
      else response.writeHead(404).end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
    } else {
      await (await this.#open()).handleRequest(request, response);
    }
  };
}

/**
 * A server written by hand. `answers` maps methods of requests to functions ({message, request,
 * response, reply(result), sse(...events)}); the handshake and an `echo` tool have defaults.
 */
export class RawServer {
  seen = []; // {method (HTTP), rpc, headers, at}

  constructor(answers = {}, options = {}) {
    this.options = options;
    this.answers = {
      initialize: ({ reply }) => reply({
        protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' },
      }),
      'tools/list': ({ reply }) => reply({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
      'tools/call': ({ reply }) => reply({ content: [{ type: 'text', text: 'fine' }] }),
      ...answers,
    };
  }

  count(rpc) {
    return this.seen.filter((s) => s.rpc === rpc || s.method === rpc).length;
  }

  handler = async (request, response) => {
    const note = { method: request.method, url: request.url, headers: request.headers, at: Date.now() };
    if (request.method !== 'POST') {
      this.seen.push(note);
      const other = this.answers[request.method];
      if (other) other({ request, response, sse: (...events) => this.sse(response, events) });
      else response.writeHead(405).end();
      return;
    }
    const message = JSON.parse(await readBody(request));
    this.seen.push({ ...note, rpc: message.method ?? 'response', message });
    const headers = { 'Content-Type': 'application/json' };
    if (message.method === 'initialize' && this.options.session) headers['Mcp-Session-Id'] = this.options.session;
    const reply = (result) => response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
    const answer = this.answers[message.method];
    if (answer) answer({ message, request, response, reply, sse: (...events) => this.sse(response, events) });
    else if (message.id === undefined || !message.method) response.writeHead(202).end();
    else response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } }));
  };

  sse(response, events) {
    if (!response.headersSent) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
    }
    for (const event of events) response.write(`${event}\n\n`);
  }
}

export const data = (message) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}`;
export const textResult = (text) => ({ content: [{ type: 'text', text }] });

/** A free port, for a server that is to be started, stopped and started again. */
export async function freePort(t) {
  const server = await listen(t, () => {});
  await server.close();
  return server.port;
}

/** Starts server-everything on a port: {pid, kill()}. `mode` is streamableHttp or sse. */
export async function everything(t, mode, port) {
  const { command, args } = npmServer('server-everything', [mode]);
  const child = spawn(command, args, {
    env: { ...process.env, PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  const kill = async () => {
    child.kill('SIGKILL');
    await within(5000, 'end of server-everything', ended);
  };
  t.after(kill);
  await until(`server-everything ${mode}\n${text}`, () => /listening|running/i.test(text), 20_000);
  return { pid: child.pid, kill };
}
