// An agent like RockBot's, on any of the three engines, and stricter: what a RockBot agent would
// silently drop or fail on is an error here. Everything it sends has RockBot's form: escaped JSON, null
// members, empty properties, doubled header prefixes, server names in lower case.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import net from 'node:net';
import { load, until, within } from './lib.mjs';

export const hexId = () => crypto.randomBytes(16).toString('hex');

// --- the records: required members marked with !, the type after the colon ---

const records = {
  'RockBot.Tools.ToolInvokeRequest': '!toolCallId:s !toolName:s arguments:s? sessionId:s?',
  'RockBot.Tools.ToolInvokeResponse': '!toolCallId:s !toolName:s content:s? contentBlocks:a? isError:b',
  'RockBot.Tools.ToolError': '!toolCallId:s !toolName:s !code:s !message:s isRetryable:b',
  'RockBot.Tools.Mcp.McpToolsAvailable': '!serverName:s !tools:a !removedTools:a',
  'RockBot.Tools.Mcp.McpServersIndexed': '!servers:a !removedServers:a',
  'RockBot.Tools.Mcp.McpMetadataRefreshRequest': 'serverName:s?',
  'RockBot.Tools.Mcp.McpGetServiceDetailsRequest': '!serverName:s',
  'RockBot.Tools.Mcp.McpGetServiceDetailsResponse': '!serverName:s !tools:a error:s? serverId:s? fingerprint:s? '
    + 'implementationName:s? title:s? version:s? description:s? instructions:s? prompts:a resourceCount:n',
  'RockBot.Tools.Mcp.McpRegisterServerRequest': '!serverName:s type:s? url:s? command:s? args:a env:o',
  'RockBot.Tools.Mcp.McpRegisterServerResponse': '!serverName:s success:b summary:s? error:s?',
  'RockBot.Tools.Mcp.McpUnregisterServerRequest': '!serverName:s',
  'RockBot.Tools.Mcp.McpUnregisterServerResponse': '!serverName:s success:b error:s?',
  'RockBot.Tools.Mcp.McpGetPromptRequest': '!serverName:s !promptName:s arguments:o?',
  'RockBot.Tools.Mcp.McpGetPromptResponse': '!serverName:s !promptName:s description:s? messages:a error:s?',
  'RockBot.Tools.Mcp.McpListResourcesRequest': '!serverName:s',
  'RockBot.Tools.Mcp.McpListResourcesResponse': '!serverName:s resources:a templates:a error:s?',
  'RockBot.Tools.Mcp.McpReadResourceRequest': '!serverName:s !uri:s',
  'RockBot.Tools.Mcp.McpReadResourceResponse': '!serverName:s !uri:s contents:a error:s?',
  'RockBot.Tools.Mcp.McpAnswerQuestionRequest': '!questionId:s sessionId:s? toolCallId:s? answers:s? decline:b',
  'RockBot.Tools.Mcp.McpAnswerQuestionResponse': '!questionId:s serverName:s? toolName:s? result:o? error:s?',
};
const parts = {
  block: '!type:s text:s? data:s? mimeType:s? uri:s?',
  tool: '!name:s !description:s parametersSchema:s?',
  server: '!serverName:s displayName:s? summary:s? toolCount:n toolNames:a promptCount:n promptNames:a '
    + 'resourceCount:n resourceNames:a serverId:s? fingerprint:s? toolFingerprints:o? version:s? identityHash:s? handback:b',
  prompt: '!name:s description:s? arguments:a',
  argument: '!name:s description:s? required:b',
  message: '!role:s !content:s contentType:s?',
  resource: '!uri:s name:s? title:s? description:s? mimeType:s? size:n? isTemplate:b',
  content: '!uri:s mimeType:s? text:s? path:s? name:s? size:n? note:s?',
};
// The kind of the elements of each list in a record.
const lists = {
  contentBlocks: 'block', tools: 'tool', servers: 'server', prompts: 'prompt', messages: 'message',
  resources: 'resource', templates: 'resource', contents: 'content',
};

const kinds = {
  s: (v) => typeof v === 'string', b: (v) => typeof v === 'boolean', n: (v) => Number.isInteger(v),
  a: Array.isArray, o: (v) => v !== null && typeof v === 'object' && !Array.isArray(v),
};

function checkMembers(what, spec, value) {
  assert.ok(kinds.o(value), `${what} is no object`);
  for (const word of spec.split(/\s+/)) {
    const [, key, kind, optional] = /^!?(\w+):(\w)(\??)$/.exec(word);
    assert.ok(Object.hasOwn(value, key), `${what}: ${key} is missing in ${JSON.stringify(value)}`);
    const fine = kinds[kind](value[key]) || (optional && value[key] === null);
    assert.ok(fine, `${what}: ${key} is ${JSON.stringify(value[key])}`);
    const inside = lists[key];
    if (inside && Array.isArray(value[key])) {
      value[key].forEach((v) => checkMembers(`${what}.${key}`, parts[inside], v));
    }
    if (key === 'arguments' && Array.isArray(value[key])) {
      value[key].forEach((v) => checkMembers(`${what}.${key}`, parts.argument, v));
    }
  }
}

/** Checks a record by RockBot's rules: every member is present and of its type. */
export function checkRecord(type, body) {
  assert.ok(records[type], `no such record: ${type}`);
  checkMembers(type, records[type], body);
}

/** JSON as System.Text.Json writes it: everything unusual escaped. */
export function dotnetJson(value) {
  return JSON.stringify(value)
    .replace(/\\"/g, '\\u0022')
    .replace(/['<>&+`\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
}

// --- envelopes: {messageId, messageType, correlationId, replyTo, source, timestamp (ms), headers, text} ---

function checkEnvelope(env) {
  assert.match(env.messageId, /^[0-9a-f]{32}$/, 'messageId');
  assert.ok(env.source && env.source !== 'unknown', 'source');
  assert.ok(Math.abs(Date.now() - env.timestamp) < 10 * 60_000, `timestamp ${env.timestamp}`);
  for (const [key, value] of Object.entries(env.headers)) {
    assert.equal(typeof value, 'string', `header ${key}`);
    assert.doesNotMatch(key, /^rb-rb-/, `header ${key} has its prefix twice in the envelope`);
  }
  return env;
}

// --- engines: publish(topic, env), subscribe(topic, group, deliver), close() ---
// An envelope that is `passing` need not be stored durably, so many of them can be sent quickly.
// `deliver` gets the envelope; it returns nothing to acknowledge the message, or 'retry' or 'dead'.

/** RabbitMQ by amqplib, with the topology and properties of RockBot. */
export class RabbitEngine {
  static async connect(t, rabbit, vhost = '/') {
    const engine = new RabbitEngine();
    engine.connection = await rabbit.connect(t, vhost);
    engine.out = await engine.#channel();
    return engine;
  }

  async #channel() {
    const channel = await this.connection.createChannel();
    channel.on('error', () => {});
    await channel.assertExchange('rockbot', 'topic', { durable: true });
    await channel.assertExchange('rockbot.dlx', 'topic', { durable: true });
    return channel;
  }

  async publish(topic, env) {
    const headers = { 'rb-source': env.source };
    for (const [key, value] of Object.entries(env.headers ?? {})) headers[`rb-${key}`] = value;
    this.out.publish('rockbot', topic, Buffer.from(env.text), {
      contentType: 'application/json', deliveryMode: env.passing ? 1 : 2, messageId: env.messageId, type: env.messageType,
      correlationId: env.correlationId ?? '', replyTo: env.replyTo ?? '',
      timestamp: Math.floor(env.timestamp / 1000), headers,
    });
  }

  async subscribe(topic, group, deliver) {
    const channel = await this.#channel();
    const queue = `rockbot.${group}`;
    await channel.prefetch(10);
    await channel.assertQueue(queue, {
      durable: true,
      arguments: { 'x-dead-letter-exchange': 'rockbot.dlx', 'x-dead-letter-routing-key': topic },
    });
    await channel.bindQueue(queue, 'rockbot', topic);
    await channel.assertQueue(`${queue}.dlq`, { durable: true });
    await channel.bindQueue(`${queue}.dlq`, 'rockbot.dlx', topic);
    await channel.consume(queue, async (m) => {
      if (!m) return;
      const verdict = await deliver(RabbitEngine.#read(m));
      if (verdict) channel.nack(m, false, verdict === 'retry');
      else channel.ack(m);
    });
    return { stop: () => channel.close() };
  }

  // What RockBot's reader keeps of a message; everything must be where that reader looks for it.
  static #read({ properties: p, fields, content }) {
    assert.equal(p.contentType, 'application/json');
    assert.equal(p.deliveryMode, 2);
    assert.equal(typeof p.correlationId, 'string', 'correlation-id must be there, empty or not');
    assert.equal(typeof p.replyTo, 'string', 'reply-to must be there, empty or not');
    assert.ok(Number.isInteger(p.timestamp) && p.timestamp < 1e11, `timestamp in seconds: ${p.timestamp}`);
    assert.equal(fields.exchange, 'rockbot');
    const headers = {};
    for (const [key, value] of Object.entries(p.headers)) {
      if (!key.startsWith('rb-') || key === 'rb-source' || key === 'rb-destination') continue;
      headers[key.slice(3)] = value;
    }
    return checkEnvelope({
      messageId: p.messageId, messageType: p.type, correlationId: p.correlationId, replyTo: p.replyTo,
      source: p.headers['rb-source'], timestamp: p.timestamp * 1000, headers,
      text: content.toString(), topic: fields.routingKey, redelivered: fields.redelivered,
    });
  }

  async close() { await this.connection.close().catch(() => {}); }
}

/** NATS: the envelope in headers, the body as it is. */
export class NatsEngine {
  static async connect(t, nats) {
    const engine = new NatsEngine();
    engine.lib = load('nats');
    engine.nc = await nats.connect(t);
    return engine;
  }

  async publish(topic, env) {
    const headers = this.lib.headers();
    const put = (key, value) => value && headers.set(key, value);
    put('rb-message-id', env.messageId);
    put('rb-message-type', env.messageType);
    put('rb-correlation-id', env.correlationId);
    put('rb-reply-to', env.replyTo);
    put('rb-source', env.source);
    put('rb-timestamp', String(env.timestamp));
    for (const [key, value] of Object.entries(env.headers ?? {})) put(key, value);
    this.nc.publish(topic, Buffer.from(env.text), { headers });
    if (!env.passing) await this.nc.flush();
  }

  async subscribe(topic, group, deliver) {
    const sub = this.nc.subscribe(topic.replace(/#$/, '>'), { queue: group });
    (async () => {
      for await (const m of sub) await deliver(NatsEngine.#read(m));
    })();
    await this.nc.flush();
    return { stop: () => sub.unsubscribe() };
  }

  static #read(m) {
    const envelope = new Set(['rb-message-id', 'rb-message-type', 'rb-correlation-id', 'rb-reply-to', 'rb-source',
      'rb-timestamp', 'rb-destination']);
    const headers = {};
    for (const key of m.headers.keys()) if (!envelope.has(key)) headers[key] = m.headers.get(key);
    return checkEnvelope({
      messageId: m.headers.get('rb-message-id'), messageType: m.headers.get('rb-message-type'),
      correlationId: m.headers.get('rb-correlation-id'), replyTo: m.headers.get('rb-reply-to'),
      source: m.headers.get('rb-source'), timestamp: Number(m.headers.get('rb-timestamp')),
      headers, text: Buffer.from(m.data).toString(), topic: m.subject, redelivered: false,
    });
  }

  async close() { await this.nc.close(); }
}

/** The embedded bus by its socket: one JSON object a line. */
export class LineEngine {
  #sids = 0;
  #ids = 0;
  #subs = new Map();
  #waiting = new Map();

  /** `where`: a path, or {port} with a token. */
  static async connect(t, where, { name = 'RockBot', token = null } = {}) {
    const engine = new LineEngine();
    engine.socket = net.connect(where);
    engine.closed = new Promise((resolve) => { engine.socket.on('close', resolve); });
    await within(10_000, 'the bus socket', new Promise((resolve, reject) => {
      engine.socket.once('connect', resolve);
      engine.socket.once('error', reject);
    }));
    engine.socket.on('error', () => {});
    engine.#read();
    engine.send({ op: 'hello', v: 1, name, token });
    t.after(() => engine.close());
    return engine;
  }

  send(message) { this.socket.write(`${JSON.stringify(message)}\n`); }

  #read() {
    let rest = '';
    this.socket.setEncoding('utf8');
    this.socket.on('data', (d) => {
      const lines = (rest + d).split('\n');
      rest = lines.pop();
      for (const line of lines) if (line) this.#take(JSON.parse(line));
    });
  }

  async #take(message) {
    const { op, id, sid, tag, env } = message;
    if (op === 'ok' || op === 'pong' || op === 'err') {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (op !== 'err') waiting?.resolve();
      else if (waiting) waiting.reject(new Error(`${message.code}: ${message.message}`));
    } else if (op === 'msg') {
      const verdict = await this.#subs.get(sid)?.(LineEngine.#envelope(message, env));
      this.send(verdict ? { op: 'nack', tag, requeue: verdict === 'retry' } : { op: 'ack', tag });
    }
  }

  static #envelope(message, env) {
    for (const key of ['messageId', 'messageType', 'source', 'timestamp', 'headers']) {
      assert.ok(Object.hasOwn(env, key), `envelope without ${key}`);
    }
    assert.match(env.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    return checkEnvelope({
      ...env, timestamp: Date.parse(env.timestamp), topic: message.topic, redelivered: message.redelivered,
      text: env.bodyBase64 ? Buffer.from(env.bodyBase64, 'base64').toString() : JSON.stringify(env.body),
    });
  }

  async publish(topic, { text, timestamp, passing, ...env }) {
    const id = ++this.#ids;
    let body;
    try { body = { body: JSON.parse(text) }; } catch { body = { bodyBase64: Buffer.from(text).toString('base64') }; }
    const done = new Promise((resolve, reject) => { this.#waiting.set(id, { resolve, reject }); });
    this.send({ op: 'pub', id, topic, env: { ...env, timestamp: new Date(timestamp).toISOString(), ...body } });
    await within(10_000, `publishing to ${topic}`, done);
  }

  async subscribe(topic, group, deliver) {
    const sid = ++this.#sids;
    const id = ++this.#ids;
    this.#subs.set(sid, deliver);
    this.send({ op: 'sub', sid, topic, group, prefetch: 10 });
    // This `sub` gets no answer, but the pong comes after it was handled: from now on no message is missed.
    const done = new Promise((resolve, reject) => { this.#waiting.set(id, { resolve, reject }); });
    this.send({ op: 'ping', id });
    await within(10_000, `subscribing to ${topic}`, done);
    return { stop: () => { this.#subs.delete(sid); this.send({ op: 'unsub', sid }); } };
  }

  async close() {
    this.socket.destroy();
    await this.closed;
  }
}

// --- the agent ---

/**
 * Joins as an agent: listens for announcements, sends one refresh request, and sends the requests of
 * the test. `index` has the servers of McpServersIndexed (by lower-case name), `tools` those of
 * McpToolsAvailable.
 */
export class Agent {
  #pending = new Map();
  #results;
  #managed;

  constructor(engine, name = 'RockBot') {
    this.engine = engine;
    this.name = name;
    this.index = new Map();
    this.tools = new Map();
    this.announcements = [];
    this.unexpected = []; // replies nobody waits for
    this.broken = []; // what a RockBot agent could not read
  }

  static async join(engine, name, { refresh = true } = {}) {
    const agent = new Agent(engine, name);
    const topic = `tool.meta.mcp.${agent.name}`;
    await engine.subscribe(topic, `${agent.name}.${topic.replaceAll('.', '-')}`, (env) => agent.#announced(env));
    if (refresh) await agent.refresh();
    return agent;
  }

  // --- sending ---

  envelope(messageType, body, more = {}) {
    return {
      messageId: hexId(), messageType, source: this.name, timestamp: Date.now(), headers: {},
      text: typeof body === 'string' ? body : dotnetJson(body), ...more,
    };
  }

  publish(topic, messageType, body, more) {
    return this.engine.publish(topic, this.envelope(messageType, body, more));
  }

  refresh(serverName = null) {
    return this.publish('tool.meta.mcp.refresh', 'RockBot.Tools.Mcp.McpMetadataRefreshRequest', { serverName });
  }

  // --- receiving ---

  #guard(env, read) {
    try {
      return read();
    } catch (e) {
      this.broken.push(`${env.messageType}: ${e.message}`);
      return undefined;
    }
  }

  #announced(env) {
    this.#guard(env, () => {
      const body = JSON.parse(env.text);
      checkRecord(env.messageType, body);
      assert.equal(env.source, `mcp-bridge.${this.name}`);
      assert.equal(env.headers['rb-content-trust'], 'system');
      this.announcements.push({ type: env.messageType.split('.').at(-1), body, env });
      if (env.messageType.endsWith('McpServersIndexed')) {
        for (const name of body.removedServers) this.index.delete(name.toLowerCase());
        for (const server of body.servers) this.index.set(server.serverName.toLowerCase(), server);
      } else {
        for (const name of body.removedTools) this.tools.delete(name);
        for (const tool of body.tools) this.tools.set(tool.name, { ...tool, server: body.serverName });
      }
    });
  }

  #replied(env, expected) {
    const waiting = this.#pending.get(env.correlationId);
    if (!waiting) {
      this.unexpected.push(env);
      return;
    }
    this.#pending.delete(env.correlationId);
    this.#guard(env, () => {
      const body = JSON.parse(env.text);
      checkRecord(env.messageType, body);
      assert.equal(env.headers['rb-content-trust'], 'tool-output');
      assert.equal(env.headers['rb-tool-provider'], 'mcp');
      assert.equal(env.source, `mcp-bridge.${this.name}`);
      assert.equal(env.replyTo || null, null, 'a reply wants no reply');
      assert.match(env.messageType, expected);
      waiting.resolve({ type: env.messageType.split('.').at(-1), body, env });
    });
    if (this.broken.length) waiting.reject(new Error(this.broken.at(-1)));
  }

  // Subscribed with the first call, as RockBot's proxy does.
  async listen() {
    this.#results ??= this.engine.subscribe(`tool.result.${this.name}`, `mcp-proxy.${this.name}`,
      (env) => this.#replied(env, /\.(ToolInvokeResponse|ToolError)$/));
    await this.#results;
  }

  async #listenManaged() {
    this.#managed ??= this.engine.subscribe(`mcp.manage.response.${this.name}`, `mcp-management.${this.name}`,
      (env) => this.#replied(env, /\.Mcp\w+Response$/));
    await this.#managed;
  }

  #wait(correlationId, what, ms) {
    return within(ms, what, new Promise((resolve, reject) => {
      this.#pending.set(correlationId, { resolve, reject });
    })).catch((e) => {
      this.#pending.delete(correlationId);
      throw e;
    });
  }

  /**
   * Calls a tool; `args` is an object, or a text that is sent as it is. Resolves to {type, body, env}: a
   * ToolInvokeResponse or a ToolError.
   */
  async invoke(server, toolName, args = {}, {
    timeout = 60_000, wait = 30_000, headers = {}, more = {}, replyTo = `tool.result.${this.name}`,
    callId = `call-${hexId().slice(0, 8)}`, session = null,
  } = {}) {
    await this.listen();
    const correlationId = hexId();
    const body = {
      toolCallId: callId, toolName,
      arguments: args === null || typeof args === 'string' ? args : JSON.stringify(args), sessionId: session,
    };
    const answer = this.#wait(correlationId, `the answer of ${toolName}`, wait);
    answer.catch(() => {}); // it may fail while the request is still being sent
    await this.publish('tool.invoke.mcp', 'RockBot.Tools.ToolInvokeRequest', body, {
      correlationId, replyTo,
      headers: {
        'rb-content-trust': 'tool-request', 'rb-tool-provider': 'mcp',
        ...(timeout !== null && { 'rb-timeout-ms': String(timeout) }),
        ...(server && { 'rb-mcp-server': server.toLowerCase() }), ...headers,
      },
      ...more,
    });
    const reply = await answer;
    assert.equal(reply.body.toolCallId, body.toolCallId, 'toolCallId is echoed');
    assert.equal(reply.body.toolName, toolName, 'toolName is echoed');
    return reply;
  }

  /** The content of a call that must succeed. */
  async text(server, tool, args, options) {
    const reply = await this.invoke(server, tool, args, options);
    assert.equal(reply.type, 'ToolInvokeResponse', JSON.stringify(reply.body));
    assert.equal(reply.body.isError, false, JSON.stringify(reply.body));
    return reply.body.content;
  }

  /** The ToolError of a call that must fail. */
  async error(server, tool, args, options) {
    const reply = await this.invoke(server, tool, args, options);
    assert.equal(reply.type, 'ToolError', JSON.stringify(reply.body));
    return reply.body;
  }

  /** Sends a request on mcp.manage: `what` is GetServiceDetails, RegisterServer and so on. Resolves to the answer. */
  async manage(what, body, { wait = 30_000 } = {}) {
    await this.#listenManaged();
    const correlationId = hexId();
    const request = { ...body, ...(body.serverName && { serverName: body.serverName.toLowerCase() }) };
    checkRecord(`RockBot.Tools.Mcp.Mcp${what}Request`, request);
    const answer = this.#wait(correlationId, `the answer to ${what}`, wait);
    answer.catch(() => {});
    await this.publish('mcp.manage', `RockBot.Tools.Mcp.Mcp${what}Request`, request,
      { correlationId, replyTo: `mcp.manage.response.${this.name}` });
    const reply = await answer;
    assert.equal(reply.type, `Mcp${what}Response`);
    return reply.body;
  }

  /** Waits until the index has these servers. */
  hears(...names) {
    return until(`the index has ${names}`, () => {
      assert.deepEqual(this.broken, []);
      return names.every((n) => this.index.has(n.toLowerCase()));
    }, 20_000);
  }
}

// --- a bridge, for tests of the proxy ---

/**
 * A bridge for a proxy to talk to. `handlers.invoke` and `handlers.manage` get (body, env) and give
 * {type, body}, which is sent as RockBot's bridge sends it; nothing is sent for undefined. All requests
 * are in `asked`, checked as strictly as by RockBot.
 */
export class Bridge {
  constructor(engine, agent, handlers = {}) {
    Object.assign(this, { engine, agent, handlers, asked: [], refreshed: 0, broken: [] });
  }

  static async open(engine, agent, handlers) {
    const bridge = new Bridge(engine, agent, handlers);
    const group = `mcp-bridge.${agent}`;
    await engine.subscribe('tool.invoke.mcp', group, (env) => bridge.#asked(env, 'invoke'));
    await engine.subscribe('mcp.manage', `${group}.manage`, (env) => bridge.#asked(env, 'manage'));
    await engine.subscribe('tool.meta.mcp.refresh', `${group}.refresh`, (env) => bridge.#asked(env, 'refresh'));
    return bridge;
  }

  async #asked(env, how) {
    if (env.source !== this.agent) return;
    let body;
    try {
      body = JSON.parse(env.text);
      checkRecord(env.messageType, body);
      if (how !== 'refresh') {
        assert.match(env.correlationId, /^[0-9a-f]{32}$/);
        assert.ok(env.replyTo, 'reply-to');
      }
    } catch (e) {
      this.broken.push(`${env.messageType}: ${e.message}`);
      return;
    }
    if (how === 'refresh') {
      this.refreshed++;
      await this.handlers.refresh?.(body, env);
      return;
    }
    this.asked.push({ how, body, env });
    const answer = await this.handlers[how]?.(body, env);
    if (answer) await this.reply(env, answer);
  }

  reply(env, { type, body, headers = {}, ...more }) {
    return this.engine.publish(env.replyTo, {
      messageId: hexId(), messageType: type, correlationId: env.correlationId,
      source: `mcp-bridge.${this.agent}`, timestamp: Date.now(),
      headers: { 'rb-content-trust': 'tool-output', 'rb-tool-provider': 'mcp', ...headers },
      text: typeof body === 'string' ? body : dotnetJson(body), ...more,
    });
  }

  announce(type, body) {
    return this.engine.publish(`tool.meta.mcp.${this.agent}`, {
      messageId: hexId(), messageType: `RockBot.Tools.Mcp.${type}`, source: `mcp-bridge.${this.agent}`,
      timestamp: Date.now(), headers: { 'rb-content-trust': 'system' }, text: dotnetJson(body),
    });
  }

  /** Announces servers by name and tool names, with or without the members of the third generation. */
  index(servers, removedServers = []) {
    return this.announce('McpServersIndexed', {
      servers: Object.entries(servers).map(([serverName, { tools = [], ...more }]) => ({
        serverName, displayName: null, summary: `Provides ${tools.length} tool(s).`, toolCount: tools.length,
        toolNames: tools, ...more,
      })),
      removedServers,
    });
  }
}

export const invoked = (body, more = {}) => ({
  type: 'RockBot.Tools.ToolInvokeResponse',
  body: {
    toolCallId: body.toolCallId, toolName: body.toolName, content: null, contentBlocks: null, isError: false, ...more,
  },
});

export const toolError = (body, code, message, isRetryable) => ({
  type: 'RockBot.Tools.ToolError',
  body: { toolCallId: body.toolCallId, toolName: body.toolName, code, message, isRetryable },
});

export const details = (serverName, tools, more = {}) => ({
  type: 'RockBot.Tools.Mcp.McpGetServiceDetailsResponse',
  body: { serverName, tools, error: null, ...more },
});

export const toolOf = (name, description = '', parametersSchema = '{"type":"object"}') => ({
  name, description, parametersSchema,
});
