// An ACP proxy (P3) with an MCP server (M3): everything is passed on, sessions get one server more.
import readline from 'node:readline';

const serverId = `greeter-${process.pid}`;
const waiting = new Map();
let next = 1;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

/** Pass a request on and give its answer back under the id it came with. */
function pass(id, method, params) {
  if (id === undefined) { send({ method, params }); return; }
  waiting.set(next, id);
  send({ id: next++, method, params });
}

const tools = [{
  name: 'greet',
  description: 'Say hello to somebody',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}];

function mcp({ method, params }) {
  switch (method) {
    case 'initialize':
      return { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'greeter', version: '1' } } };
    case 'tools/list': return { result: { tools } };
    case 'tools/call': return { result: { content: [{ type: 'text', text: `Hello, ${params.arguments.name}!` }] } };
    case 'ping': return { result: {} };
    default: return { error: { code: -32601, message: 'Method not found' } };
  }
}

/** Handles a message from the agent's side; true if it was for our MCP server. */
function isOurs(id, method, params) {
  if (method === 'mcp/connect' && params.serverId === serverId) send({ id, result: { connectionId: serverId } });
  else if (method === 'mcp/message' && params.connectionId === serverId) { if (id !== undefined) send({ id, ...mcp(params) }); }
  else if (method === 'mcp/disconnect' && params.connectionId === serverId) send({ id, result: {} });
  else return false;
  return true;
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) {
    const back = waiting.get(id);
    waiting.delete(id);
    if (back !== undefined) send(error ? { id: back, error } : { id: back, result });
  } else if (method === 'proxy/successor') {
    if (!isOurs(id, params.method, params.params)) pass(id, params.method, params.params);
  } else if (method === '$/cancel_request') {
    for (const [out, came] of waiting) if (came === params.requestId) send({ method, params: { requestId: out } });
  } else if (method === 'proxy/initialize') {
    pass(id, 'proxy/successor', { method: 'initialize', params });
  } else {
    const setup = /^session\/(new|load|resume|fork)$/.test(method);
    const servers = setup ? { mcpServers: [...(params.mcpServers ?? []), { type: 'acp', name: 'greeter', serverId }] } : {};
    pass(id, 'proxy/successor', { method, params: setup ? { ...params, ...servers } : params ?? null });
  }
});
