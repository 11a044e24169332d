// A server of the matrix on the official SDK 1, any release of it.
//   server.mjs SDK-FOLDER stdio|sse|http
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [folder, way] = process.argv.slice(2);
const dist = fs.existsSync(`${folder}/dist/esm`) ? `${folder}/dist/esm` : `${folder}/dist`;
const sdk = (file) => import(`${dist}/${file}.js`);
const types = await sdk('types');
const { Server } = await sdk('server/index');
const offer = JSON.parse(fs.readFileSync(new URL('../offer.json', import.meta.url)));
const text = (s) => ({ content: [{ type: 'text', text: s }] });
const fill = (value, args) => JSON.parse(JSON.stringify(value)
  .replace(/\{(\w+)\}/g, (all, key) => (key in args ? JSON.stringify(args[key]).slice(1, -1) : all)));
const results = {
  'elicitation/create': types.ElicitResultSchema, 'sampling/createMessage': types.CreateMessageResultSchema,
  'roots/list': types.ListRootsResultSchema,
};
const slow = {};

// Tasks came with release 1.24.
const stores = fs.existsSync(`${dist}/experimental/tasks`) && await sdk('experimental/tasks/stores/in-memory');
const taskStore = stores ? new stores.InMemoryTaskStore() : undefined;
const tools = offer.tools.map((t) => t.tool);
if (taskStore) tools.push({ name: 'task_echo', description: 'Says it later', inputSchema: { type: 'object', properties: { text: { type: 'string' } } }, execution: { taskSupport: 'required' } });

async function later({ text: what }, { taskStore: mine }) {
  const task = await mine.createTask({ ttl: 60_000, pollInterval: 100 });
  setTimeout(() => mine.storeTaskResult(task.taskId, 'completed', text(what)), 400);
  return { task };
}

const run = {
  echo: (args) => text(JSON.stringify(args)),
  slow_state: ({ tag }) => text(slow[tag] ?? 'unknown'),
  die: () => process.exit(1),
  async slow({ tag }, { signal }) {
    slow[tag] = 'running';
    await sleep(10_000, undefined, { signal }).catch(() => {});
    slow[tag] = signal.aborted ? 'cancelled' : 'finished';
    return text(slow[tag]);
  },
  async test_tool_with_logging(args, { notify }) {
    for (const what of ['started', 'processing', 'completed']) {
      await notify('notifications/message', { level: 'info', logger: 'peer', data: `Tool execution ${what}` });
      await sleep(50);
    }
    return text('logged three times');
  },
  async test_tool_with_progress(args, { notify, token }) {
    for (const progress of [0, 50, 100]) {
      if (token !== undefined) await notify('notifications/progress', { progressToken: token, progress, total: 100 });
      await sleep(50);
    }
    return text('all done');
  },
  async touch({ uri }, { server }) {
    await server.notification({ method: 'notifications/resources/updated', params: { uri } });
    return text(`${uri} updated`);
  },
};

function makeServer() {
  const server = new Server({ name: 'peer', version: '1.0.0' }, {
    instructions: 'A server of the matrix.',
    capabilities: {
      tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, ...(types.CompleteRequestSchema && { completions: {} }),
      ...(taskStore && { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }),
    },
    taskStore,
  });
  const on = (name, handler) => types[`${name}RequestSchema`]
    && server.setRequestHandler(types[`${name}RequestSchema`], ({ params }, extra) => handler(params ?? {}, extra));
  const unknown = (what) => Object.assign(new types.McpError(-32602, `Unknown ${what}`));
  on('ListTools', () => ({ tools }));
  on('CallTool', async ({ name, arguments: args = {}, _meta }, extra) => {
    if (name === 'task_echo' && taskStore) return later(args, extra);
    const row = offer.tools.find((t) => t.tool.name === name);
    if (!row) throw unknown(`tool: ${name}`);
    if (row.result) return row.result;
    const notify = (method, params) => (extra.sendNotification ?? server.notification.bind(server))({ method, params });
    if (!row.asks) return run[name](args, { server, notify, signal: extra.signal, token: _meta?.progressToken });
    const answers = {};
    for (const [key, request] of Object.entries(row.asks)) {
      answers[key] = await (extra.sendRequest ?? server.request.bind(server))(request, results[request.method]);
    }
    return text(JSON.stringify(answers));
  });
  on('ListResources', () => ({ resources: offer.resources.map((r) => r.resource) }));
  on('ListResourceTemplates', () => ({ resourceTemplates: [offer.template] }));
  on('ReadResource', ({ uri }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    const found = id ? fill(offer.templateContents, { id }) : offer.resources.find((r) => r.resource.uri === uri)?.contents;
    if (!found) throw new types.McpError(-32002, `Unknown resource: ${uri}`);
    return { contents: [found] };
  });
  on('Subscribe', () => ({}));
  on('Unsubscribe', () => ({}));
  on('SetLevel', () => ({}));
  on('ListPrompts', () => ({ prompts: offer.prompts.map((p) => p.prompt) }));
  on('GetPrompt', ({ name, arguments: args = {} }) => {
    const row = offer.prompts.find((p) => p.prompt.name === name);
    if (!row) throw unknown(`prompt: ${name}`);
    return { messages: fill(row.messages, args) };
  });
  on('Complete', ({ argument }) => {
    const values = ['paris', 'park', 'party'].filter((w) => w.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}

const sessions = new Map();

async function onHttp(req, res) {
  const id = req.headers['mcp-session-id'];
  if (id && !sessions.has(id)) {
    res.writeHead(404).end();
    return;
  }
  let transport = sessions.get(id);
  if (!transport) {
    const { StreamableHTTPServerTransport } = await sdk('server/streamableHttp');
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(), onsessioninitialized: (s) => { sessions.set(s, transport); },
    });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(req, res);
}

async function onSse(req, res) {
  const { SSEServerTransport } = await sdk('server/sse');
  if (req.method === 'POST') {
    const session = new URL(req.url, 'http://x').searchParams.get('sessionId');
    if (sessions.has(session)) await sessions.get(session).handlePostMessage(req, res);
    else res.writeHead(404).end();
    return;
  }
  if (req.url !== '/sse') {
    res.writeHead(404).end();
    return;
  }
  const transport = new SSEServerTransport('/message', res);
  sessions.set(transport.sessionId, transport);
  await makeServer().connect(transport);
}

if (way === 'stdio') {
  const { StdioServerTransport } = await sdk('server/stdio');
  await makeServer().connect(new StdioServerTransport());
} else {
  const listener = http.createServer((req, res) => (way === 'sse' ? onSse : onHttp)(req, res).catch((e) => {
    console.error(e);
    if (!res.headersSent) res.writeHead(500);
    res.end();
  }));
  listener.listen(0, '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${listener.address().port}/${way === 'sse' ? 'sse' : 'mcp'}`);
  });
}
