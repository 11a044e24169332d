// Raw fakes of the pages and agents that speak BTCP's dialects, and what their tests share.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { HttpClient, exchange, load, serve, tempDir, until } from './lib.mjs';

const WebSocket = load('ws');

/** `serve` with a state folder of its own. */
export async function serveBrowser(t, config = {}, options = {}) {
  const state = options.state ?? tempDir();
  return serve(t, { control: 'off', ...config },
    { ...options, env: { XDG_STATE_HOME: state, ...options.env } });
}

/** A WebSocket that keeps every frame it receives. */
export class Socket {
  constructor(t, server, path, headers = {}, protocols = []) {
    this.frames = [];
    this.ws = new WebSocket(server.origin.replace('http', 'ws') + path, protocols, { headers });
    this.opened = new Promise((resolve, reject) => {
      this.ws.on('open', resolve);
      this.ws.on('error', reject);
      this.ws.on('unexpected-response', (_, response) => reject(new Error(`HTTP ${response.statusCode}`)));
    });
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => { this.ws.on('close', (code) => resolve(code)); });
    this.ws.on('message', (data) => {
      const m = JSON.parse(data.toString());
      if (m.method === 'ping' && this.pongs) { this.send({ jsonrpc: '2.0', id: m.id, result: { pong: true } }); return; }
      this.frames.push(data.toString());
      this.onFrame?.(m);
    });
    t.after(() => this.ws.terminate());
  }

  send(message) {
    this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  messages() { return this.frames.map((f) => JSON.parse(f)); }

  find(what, check) {
    return until(what, () => this.messages().find(check));
  }

  /** Sends a request; resolves to its answer. */
  async request(method, params, id = `r-${Math.random()}`) {
    this.send({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) });
    return this.find(`answer to ${method}`, (m) => !m.method && m.id === id);
  }

  /** Answers tools/call with the members of the response that `fn(name, arguments, id)` gives. */
  answer(fn) {
    this.onFrame = async (m) => {
      if (m.method !== 'tools/call') return;
      const members = await fn(m.params.name, m.params.arguments, m.id);
      if (members) this.send({ jsonrpc: '2.0', id: m.id, ...members });
    };
    return this;
  }
}

/** A D3 page of a session with these tools. It answers pings, as every client library does. */
export async function page(t, server, session, tools, more = '', pongs = true) {
  const socket = new Socket(t, server,
    `//ws?sessionId=${session}&clientType=browser&version=1.0.0${more}`);
  await socket.opened;
  socket.pongs = pongs;
  const reply = await socket.request('tools/register', { tools });
  assert.deepEqual(reply.result, { registered: tools.length });
  return socket;
}

/** An event stream that keeps its raw text. */
export function stream(t, server, path, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.get(server.origin + path, { headers, agent: false }, (response) => {
      const s = { status: response.statusCode, headers: response.headers, text: '' };
      response.setEncoding('utf8');
      response.on('data', (d) => { s.text += d; });
      response.on('error', () => {});
      response.on('close', () => { s.ended = true; });
      s.pause = () => response.pause();
      /** [{event, data}] so far. */
      s.events = () => s.text.split('\n\n').filter((e) => e && !e.startsWith(':')).map((e) => {
        const lines = e.split('\n');
        const field = (name) => lines.find((l) => l.startsWith(`${name}: `))?.slice(name.length + 2);
        return { event: field('event'), data: JSON.parse(field('data')) };
      });
      s.find = (what, check) => until(what, () => s.events().find(check));
      s.close = () => request.destroy();
      if (response.statusCode === 200) resolve(s);
      else response.on('end', () => resolve(s));
    });
    request.on('error', reject);
    t.after(() => request.destroy());
  });
}

export const post = (server, path, message, headers = {}) => exchange(server.origin + path, {
  body: typeof message === 'string' ? message : JSON.stringify(message),
  headers: { 'Content-Type': 'application/json', ...headers },
});

/** An MCP client of one session, or of everything. */
export function agent(server, session, options = {}) {
  const query = session ? `?session=${session}${options.wait ? '&wait=1' : ''}` : '';
  return new HttpClient(server.url + query).connect(options);
}

/** `attempt` gives the milliseconds it took; it is repeated because other load can only make it slower. */
export async function atOnce(what, limit, attempt) {
  const took = [];
  while (took.length < 5 && !(took.at(-1) < limit)) took.push(await attempt(took.length));
  assert.ok(took.at(-1) < limit, `${what}: ${took} ms`);
}

export const text = (value) => ({ result: { content: [{ type: 'text', text: value }], isError: false } });

export const greet = { name: 'greet', description: 'Greets', inputSchema: { type: 'object', properties: { who: { type: 'string' } } } };

// --- pages of the dialects that answer more than calls: `heard` gets each message, `say` sends one ---

const register = (tools) => ({ jsonrpc: '2.0', id: 'x', method: 'tools/register', params: { tools } });

function overSocket(t, server, path, first, protocols) {
  const socket = new Socket(t, server, path, {}, protocols);
  const peer = { say: (m) => socket.send(m) };
  socket.onFrame = (m) => peer.heard?.(m);
  return socket.opened.then(async () => {
    for (const m of first) socket.send(m);
    return peer;
  });
}

async function overStream(t, server, tools, headers) {
  const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
  const where = headers ? '/message' : '/message?sessionId=S';
  const peer = { say: (m) => post(server, where, m, headers) };
  let seen = 0;
  const look = setInterval(() => {
    const all = events.events();
    for (; seen < all.length; seen++) peer.heard?.(all[seen].data);
  }, 5);
  t.after(() => clearInterval(look));
  await peer.say(register(tools));
  return peer;
}

async function overUnix(t, tools, socketPath) {
  const socket = net.connect(socketPath);
  t.after(() => socket.destroy());
  const peer = { say: (m) => socket.write(`${JSON.stringify(m)}\n`) };
  let rest = '';
  socket.on('data', (d) => {
    const lines = (rest + d).split('\n');
    rest = lines.pop();
    for (const line of lines) peer.heard?.(JSON.parse(line));
  });
  peer.say({ jsonrpc: '2.0', id: 'h', method: 'hello', params: { clientType: 'browser', sessionId: 'S' } });
  peer.say(register(tools));
  return peer;
}

/** Each opens a page of session S (D1: of a new session) with these tools. */
export const everyDialect = {
  D1: (t, server, tools) => overSocket(t, server, '/', [{ jsonrpc: '2.0', id: 'c', method: 'session/create', params: {} }, register(tools)]),
  D2: (t, server, tools) => overSocket(t, server, '/', [{ jsonrpc: '2.0', id: 'h', method: 'hello', params: { clientType: 'browser', sessionId: 'S' } }, register(tools)]),
  D3: (t, server, tools) => overSocket(t, server, '/ws?sessionId=S&clientType=browser', [register(tools)]),
  D4a: (t, server, tools) => overStream(t, server, tools),
  D4b: (t, server, tools) => overStream(t, server, tools, { 'X-Session-ID': 'S' }),
  D8: (t, server, tools, socketPath) => overUnix(t, tools, socketPath),
  'MCP-B': (t, server, tools) => overSocket(t, server, '/', [{ type: 'hello', tabId: 'S', origin: '', url: '', title: '' }, { type: 'tools/list', tools }], ['webmcp.v1']),
};
