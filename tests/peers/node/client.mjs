// A client of the matrix on the official SDK, 1 (any release) or 2: see ../matrix.mjs for its input and
// output.
//   client.mjs SDK-FOLDER|2 JSON
import fs from 'node:fs';
import { createRequire } from 'node:module';

const [folder, job] = process.argv.slice(2);
const { way, url, command, steps, era } = JSON.parse(job);
const two = folder === '2';
const load = createRequire(new URL('../../../build/npm/package.json', import.meta.url));
const dist = fs.existsSync(`${folder}/dist/esm`) ? `${folder}/dist/esm` : `${folder}/dist`;
const sdk = two ? { ...load('@modelcontextprotocol/client'), ...load('@modelcontextprotocol/client/stdio') } : {};
const take = async (file, name) => sdk[name] ?? (await import(`${dist}/client/${file}.js`))[name];
const types = two ? {} : await import(`${dist}/types.js`);
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function transport() {
  if (way === 'sse' && !two) { // the first releases expect their users to provide an EventSource
    const beside = createRequire(`${dist}/types.js`);
    globalThis.EventSource ??= beside('eventsource').EventSource ?? beside('eventsource');
  }
  if (way === 'stdio') {
    const T = await take('stdio', 'StdioClientTransport');
    return new T({ command: command[0], args: command.slice(1), env: { ...process.env }, stderr: 'ignore' });
  }
  const [file, name] = { http: ['streamableHttp', 'StreamableHTTPClientTransport'], sse: ['sse', 'SSEClientTransport'], ws: ['websocket', 'WebSocketClientTransport'] }[way];
  return new (await take(file, name))(new URL(url));
}

let version; // the negotiated one: SDK 1 tells only its transport, its first releases tell nothing
const logs = [];
const updates = [];
const client = new (await take('index', 'Client'))({ name: 'peer-client', version: '1' }, {
  capabilities: { elicitation: {}, sampling: {}, roots: {} },
  ...(two && { versionNegotiation: { mode: era ?? 'auto' } }),
});
const answer = (method, schema, handler) => (two || types[schema])
  && client.setRequestHandler(two ? method : types[schema], handler);
const hear = (method, schema, handler) => client.setNotificationHandler(two ? method : types[schema], handler);
answer('elicitation/create', 'ElicitRequestSchema', () => ({ action: 'accept', content: { username: 'ada', email: 'ada@example.com', name: 'ada' } }));
answer('sampling/createMessage', 'CreateMessageRequestSchema', ({ params }) => ({
  role: 'assistant', model: 'm', content: { type: 'text', text: `sampled: ${params.messages[0].content.text}` },
}));
answer('roots/list', 'ListRootsRequestSchema', () => ({ roots: [{ uri: 'file:///peers', name: 'peers' }] }));
hear('notifications/message', 'LoggingMessageNotificationSchema', ({ params }) => { logs.push([params.level, params.data]); });
hear('notifications/resources/updated', 'ResourceUpdatedNotificationSchema', ({ params }) => { updates.push(params); });

const call = ({ name, args = {}, _meta }, options) => {
  const params = { name, arguments: args, ...(_meta && { _meta }) };
  return two ? client.callTool(params, options) : client.callTool(params, undefined, options);
};
const lists = { tools: 'listTools', resources: 'listResources', templates: 'listResourceTemplates', prompts: 'listPrompts' };
const modern = () => client.getNegotiatedProtocolVersion?.() === '2026-07-28';

const ops = {
  version: () => version,
  capabilities: () => client.getServerCapabilities(),
  server: () => client.getServerVersion(),
  list: ({ what }) => client[lists[what]](),
  call: (step) => call(step),
  read: ({ uri }) => client.readResource({ uri }),
  get: ({ name, args }) => client.getPrompt({ name, arguments: args }),
  complete: ({ params }) => client.complete(params),
  async log(step) {
    if (!modern()) await client.setLoggingLevel('debug');
    logs.length = 0;
    await call({ ...step, _meta: modern() ? { 'io.modelcontextprotocol/logLevel': 'debug' } : undefined });
    await sleep(300);
    return logs;
  },
  async progress(step) {
    const seen = [];
    await call(step, { onprogress: (p) => seen.push([p.progress, p.total]) });
    await sleep(300);
    return seen;
  },
  async cancel(step) {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 1000);
    const failed = await call(step, { signal: stop.signal }).then(() => false, () => true);
    await sleep(500);
    return { failed, then: await call(step.then) };
  },
  async task({ name, args }) {
    const seen = [];
    const { tasks } = client.experimental;
    let id;
    for await (const m of tasks.callToolStream({ name, arguments: args }, types.CallToolResultSchema, { task: { ttl: 60_000 } })) {
      id ??= m.task?.taskId;
      const what = m.type === 'taskCreated' ? ['created', m.task.status] : m.type === 'taskStatus' ? [m.task.status] : [m.result?.content ?? m.error];
      if (JSON.stringify(what[0]) !== JSON.stringify(seen.at(-1))) seen.push(...what);
    }
    const again = await tasks.getTaskResult(id, types.CallToolResultSchema);
    return { seen, again: again.content, listed: (await tasks.listTasks()).tasks.some((t) => t.taskId === id) };
  },
  async subscribe({ uri, touch }) {
    const open = modern() ? await client.listen({ resourceSubscriptions: [uri] }) : await client.subscribeResource({ uri });
    await call(touch);
    for (let i = 0; i < 50 && updates.length === 0; i++) await sleep(100);
    await (modern() ? open.close() : client.unsubscribeResource({ uri }));
    return updates;
  },
  async kill({ die, echo }) {
    const failed = await call(die).then((r) => Boolean(r.isError), () => true);
    const end = Date.now() + 50_000;
    for (;;) {
      const back = await call(echo).catch((e) => e);
      if (!(back instanceof Error) && !back.isError) return { failed, back };
      if (Date.now() > end) throw back instanceof Error ? back : new Error(JSON.stringify(back));
      await sleep(300);
    }
  },
};

const say = (line) => fs.writeSync(1, `${JSON.stringify(line)}\n`);
try {
  const pipe = await transport();
  const own = pipe.setProtocolVersion?.bind(pipe);
  pipe.setProtocolVersion = (v) => {
    version = v;
    own?.(v);
  };
  await client.connect(pipe);
  version = client.getNegotiatedProtocolVersion?.() ?? version;
} catch (e) {
  say({ step: 'connect', error: { code: e.code, message: `${e.message}` } });
  process.exit(0);
}
for (const step of steps) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no answer in time')), step.op === 'kill' ? 60_000 : 30_000); });
  try {
    say({ step: step.step, got: await Promise.race([ops[step.op](step), late]) });
  } catch (e) {
    say({ step: step.step, error: { code: e.code, message: `${e.message}` } });
  }
  clearTimeout(timer);
}
await Promise.race([client.close(), sleep(2000)]);
process.exit(0);
