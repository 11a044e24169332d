// Real peers for the end-to-end tests: our fixture server (tests/fixture) on either transport, the
// official clients, and a raw client of the stateless era.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import path from 'node:path';
import {
  bothTypes, exchange, load, npmFolder, rawMessages, root, serve, sseData, until,
} from './lib.mjs';

export const node22 = path.join(npmFolder, `node_modules/node-linux-${process.arch}/bin/node`);
export const fixtureScript = path.join(root, 'tests/fixture/server.mjs');
export const MODERN = '2026-07-28';
export const META = 'io.modelcontextprotocol/';

/** Declares everything that a client can be asked for. */
export const allCapabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

// --- the fixture ---

/** The configuration entry of the fixture as a child process. */
export const fixtureEntry = (era, more = {}) => ({
  command: node22, args: [fixtureScript, '--era', era], ...more,
});

/**
 * Serves a server of both eras, once both were found. On a busy machine the server may start so slowly
 * that it seems not to know server/discover: then it is tried again.
 */
export async function serveDual(t, config, options) {
  for (let tries = 3; ; tries--) {
    const server = await serve(t, config, options);
    await new ModernClient(`${server.url}/fixture`).waitFor('echo');
    if (!tries || !/does not answer server\/discover/.test(server.stderr())) return server;
    await server.stop();
  }
}

/** A program that prints its address; returns {url, stop()}, and is killed at the end of the test. */
export async function startHttp(t, command, args, { env = {}, pattern = /(http:\/\/\S+)/ } = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  t.after(stop);
  let gone = false;
  ended.then(() => { gone = true; });
  const match = await until(`${path.basename(args[0] ?? command)} to listen`, () => {
    if (gone) throw new Error(`it ended\n${text}`);
    return text.match(pattern);
  }, 20_000);
  return { url: match[1].replace('localhost', '127.0.0.1'), stop, text: () => text, pid: child.pid };
}

/** The configuration entry of the fixture over HTTP, started for this test. */
export async function fixtureOverHttp(t, era, more = {}) {
  const { url } = await startHttp(t, node22, [fixtureScript, '--era', era, '--transport', 'http']);
  return { url, ...more };
}

// --- official clients ---

export const v1 = {
  ...load('@modelcontextprotocol/sdk/client/index.js'),
  ...load('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ...load('@modelcontextprotocol/sdk/client/sse.js'),
  ...load('@modelcontextprotocol/sdk/client/stdio.js'),
  ...load('@modelcontextprotocol/sdk/client/websocket.js'),
  ...load('@modelcontextprotocol/sdk/types.js'),
};
export const v2 = {
  ...load('@modelcontextprotocol/client'),
  ...load('@modelcontextprotocol/client/stdio'),
};

// --- the stateless era by hand ---

/** A stream that stays open: {status, messages(), waitFor(), close()}. */
function openStream(url, headers, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', headers, agent: false }, (response) => {
      let text = '';
      const stream = { status: response.statusCode, headers: response.headers, ended: false };
      response.on('data', (d) => { text += d; });
      response.on('error', () => {});
      response.on('close', () => { stream.ended = true; });
      stream.text = () => text;
      stream.messages = () => (response.headers['content-type'] === 'text/event-stream'
        ? sseData(text) : text ? [text] : []).map((m) => JSON.parse(m));
      stream.of = (method) => stream.messages().filter((m) => m.method === method);
      stream.waitFor = (method, n = 1, ms = 10_000) => until(`${n} × ${method} on the stream`,
        () => stream.of(method).length >= n && stream.of(method), ms);
      stream.close = () => request.destroy();
      resolve(stream);
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** A raw agent of the stateless era over HTTP. */
export class ModernClient {
  #next = 1;

  constructor(url, { capabilities = allCapabilities, headers = {}, logLevel } = {}) {
    this.url = url;
    this.capabilities = capabilities;
    this.extra = headers;
    this.logLevel = logLevel;
  }

  #message(method, params = {}, meta = {}) {
    const { _meta = {}, ...rest } = params;
    return {
      jsonrpc: '2.0', id: this.#next++, method,
      params: {
        ...rest,
        _meta: {
          [`${META}protocolVersion`]: MODERN,
          [`${META}clientCapabilities`]: this.capabilities,
          [`${META}clientInfo`]: { name: 'raw', version: '1' },
          ...(this.logLevel && { [`${META}logLevel`]: this.logLevel }),
          ..._meta, ...meta,
        },
      },
    };
  }

  #headers(message) {
    const { method, params } = message;
    const name = ['tools/call', 'prompts/get'].includes(method) ? params.name
      : method === 'resources/read' ? params.uri
        : method.startsWith('tasks/') ? params.taskId : undefined;
    return {
      'Content-Type': 'application/json', Accept: bothTypes, 'MCP-Protocol-Version': MODERN,
      'Mcp-Method': method, ...(name !== undefined && { 'Mcp-Name': name }), ...this.extra,
    };
  }

  /** Sends a request; returns {status, message, events} with the events before the response. */
  async send(method, params, meta) {
    const message = this.#message(method, params, meta);
    const answer = await exchange(this.url, { headers: this.#headers(message), body: JSON.stringify(message) });
    const all = rawMessages(answer).map((m) => JSON.parse(m));
    assert.equal(all.at(-1)?.id, message.id, `the answer to ${method}: ${answer.status} ${answer.text}`);
    return { status: answer.status, message: all.at(-1), events: all.slice(0, -1) };
  }

  async request(method, params, meta) {
    return (await this.send(method, params, meta)).message;
  }

  call(name, args = {}, more = {}) {
    return this.request('tools/call', { name, arguments: args, ...more });
  }

  async text(name, args = {}, more = {}) {
    const { result, error } = await this.call(name, args, more);
    assert.ok(result && !result.isError && result.resultType === 'complete', JSON.stringify(error ?? result));
    return result.content[0].text;
  }

  async toolNames() {
    return (await this.request('tools/list')).result.tools.map((t) => t.name);
  }

  async waitFor(...names) {
    return until(`tools ${names}`, async () => {
      const listed = await this.toolNames();
      return names.every((n) => listed.includes(n)) && listed;
    }, 20_000);
  }

  /** The open stream of a request. */
  async stream(method, params, meta) {
    const message = this.#message(method, params, meta);
    const stream = await openStream(this.url, this.#headers(message), JSON.stringify(message));
    return Object.assign(stream, { id: message.id });
  }

  listen(notifications) {
    return this.stream('subscriptions/listen', { notifications });
  }
}
