// The peers of the matrix, a row each: how it is installed, how it runs as a server and as a client, and which
// steps it cannot do. Also the steps, and the reasons why a step may have another result through Rialto.
import path from 'node:path';
import { npmFolder, root } from '../e2e/lib.mjs';
import { fixtureScript, node22 } from '../e2e/peers.mjs';

const here = path.join(root, 'tests/peers');
const built = path.join(root, 'build/peers');
const file = (name) => path.join(here, name);

// --- how peers are installed: [command, arguments] that fill build/peers ---

const venv = (name) => [file('python/install'), [name]];
const goPackage = (name) => ['go', ['-C', file('go'), 'build', '-o', path.join(built, `${name}_peer`), `./${name}`]];
const program = (name) => path.join(built, `${name}_peer`);
export const installs = {
  npm_old: [path.join(root, 'tools/npm'), [file('package.json'), path.join(built, 'npm')]],
  ...Object.fromEntries(['mcp_1_0', 'mcp_1_9', 'mcp_1', 'mcp_2', 'fastmcp_2', 'fastmcp_3', 'fastmcp_4',
    'langchain', 'pydantic_ai', 'openai_agents', 'google_adk', 'mcp_use'].map((name) => [name, venv(name)])),
  go_sdk: goPackage('go_sdk'),
  mcp_go: goPackage('mcp_go'),
  rmcp: ['cargo', ['install', '--quiet', '--locked', '--debug', '--force', '--path', file('rmcp'), '--root', path.join(built, 'cargo'), '--target-dir', path.join(built, 'cargo/target')]],
};

// --- peers ---

const python = (name, script) => [path.join(built, 'py', name, 'bin/python'), file(`python/${script}.py`)];
const sdk1 = path.join(npmFolder, 'node_modules/@modelcontextprotocol/sdk');
const old = (version) => path.join(built, `npm/node_modules/sdk-${version}`);
const node = (script, folder) => [node22, file(`node/${script}.mjs`), folder];
const all = ['stdio', 'http', 'sse', 'ws'];

// Steps for features that came after a release, or that its authors never built.
const before2025 = ['audio', 'structured', 'elicit', 'plain', 'complete'];
const notInFastMcp = ['complete', 'subscribe', 'prompt_image'];
const before0618 = ['structured', 'elicit', 'plain'];
// Tasks, which most releases do not have. Go SDK, Python SDK 2 and TypeScript SDK 2 have hooks for
// extensions, and no tasks. FastMCP 2 answers in a form of its own, which the official clients do not read;
// FastMCP 3 and 4 need another package for tasks. The client of mcp-go cannot read the answer to a call that
// became a task. rmcp has the tasks of the stateless era, which none of these clients has.
const withTasks = { servers: ['ts_1', 'mcp_1', 'mcp_go'], clients: ['ts_1', 'mcp_1'] };

const framework = (name) => [...python(name, 'frameworks'), name];
const rust = path.join(built, 'cargo/bin/rmcp_peer');
const asks = ['elicit', 'sample', 'roots', 'plain'];
const notForAgents = ['version', 'capabilities', 'server', 'complete', 'log', 'progress', 'cancel', 'subscribe'];
const notInInspector = [...notForAgents, ...asks, 'kill'];

/** ways: its transports, the first two are tried; lacks: steps that it does not support. */
export const servers = {
  ts_2: { what: 'TypeScript SDK 2.4.0', run: (way) => [node22, fixtureScript, '--era', 'dual', '--transport', way], ways: ['stdio', 'http'], lacks: [] },
  ts_1: { what: 'TypeScript SDK 1.32.2', run: (way) => [...node('server', sdk1), way], ways: ['stdio', 'http'], lacks: [] },
  ts_1_12: { what: 'TypeScript SDK 1.12.3', needs: 'npm_old', run: (way) => [...node('server', old('1.12')), way], ways: ['stdio', 'http'], lacks: before0618 },
  ts_1_0: { what: 'TypeScript SDK 1.0.4', needs: 'npm_old', run: (way) => [...node('server', old('1.0')), way], ways: ['stdio', 'sse'], lacks: before2025 },
  mcp_1: { what: 'Python SDK 1.30.0', needs: 'mcp_1', run: (way) => [...python('mcp_1', 'mcp1_server'), way], ways: ['stdio', 'http'], lacks: [] },
  mcp_1_9: { what: 'Python SDK 1.9.4', needs: 'mcp_1_9', run: (way) => [...python('mcp_1_9', 'mcp1_server'), way], ways: ['stdio', 'http'], lacks: [...before0618, 'cancel'] },
  mcp_1_0: { what: 'Python SDK 1.0.0', needs: 'mcp_1_0', run: (way) => [...python('mcp_1_0', 'mcp1_server'), way], ways: ['stdio', 'sse'], lacks: [...before2025, 'unknown_tool', 'unknown_uri', 'progress', 'cancel'] }, // cancelling ends the server
  mcp_2: { what: 'Python SDK 2.3.0', needs: 'mcp_2', run: (way) => [...python('mcp_2', 'mcp2_server'), way], ways: ['stdio', 'http'], lacks: [] },
  fastmcp_4: { what: 'FastMCP 4.1.2', needs: 'fastmcp_4', run: (way) => [...python('fastmcp_4', 'fastmcp_server'), way], ways: ['stdio', 'http'], lacks: notInFastMcp },
  fastmcp_3: { what: 'FastMCP 3.4.10', needs: 'fastmcp_3', run: (way) => [...python('fastmcp_3', 'fastmcp_server'), way], ways: ['stdio', 'http'], lacks: notInFastMcp },
  fastmcp_2: { what: 'FastMCP 2.14.7', needs: 'fastmcp_2', run: (way) => [...python('fastmcp_2', 'fastmcp_server'), way], ways: ['stdio', 'http'], lacks: [...notInFastMcp, 'log'] },
  go_sdk: { what: 'Go SDK 1.8.0', needs: 'go_sdk', run: (way) => [program('go_sdk'), way], ways: ['stdio', 'http'], lacks: [] },
  mcp_go: { what: 'mcp-go 1.2.1', needs: 'mcp_go', run: (way) => [program('mcp_go'), way], ways: ['stdio', 'http'], lacks: ['complete', 'subscribe'] },
  rmcp: { what: 'rmcp 3.8.0', needs: 'rmcp', run: (way) => [rust, way], ways: ['stdio', 'http'], lacks: [] },
};

/** ways: its transports; dual: uses the stateless era where the server has it, so always with Rialto; shuns: servers it cannot reach directly. */
export const clients = {
  ts_2: { dual: true, what: 'TypeScript SDK 2.4.0', run: node('client', '2'), ways: ['stdio', 'http'], lacks: ['plain'] },
  ts_1: { what: 'TypeScript SDK 1.32.2', run: node('client', sdk1), ways: all, lacks: [] },
  ts_1_12: { what: 'TypeScript SDK 1.12.3', needs: 'npm_old', run: node('client', old('1.12')), ways: all, lacks: [...before0618, 'version'] },
  ts_1_0: { what: 'TypeScript SDK 1.0.4', needs: 'npm_old', run: node('client', old('1.0')), ways: ['stdio', 'sse', 'ws'], lacks: [...before2025, 'version'] },
  mcp_1: { what: 'Python SDK 1.30.0', needs: 'mcp_1', run: python('mcp_1', 'mcp1_client'), ways: all, lacks: ['cancel'] },
  mcp_1_9: { what: 'Python SDK 1.9.4', needs: 'mcp_1_9', run: python('mcp_1_9', 'mcp1_client'), ways: all, lacks: [...before0618, 'cancel'] },
  mcp_1_0: { what: 'Python SDK 1.0.0', needs: 'mcp_1_0', run: python('mcp_1_0', 'mcp1_client'), ways: ['stdio', 'sse'], lacks: [...before2025, 'cancel', 'templates', 'sample', 'progress'] },
  mcp_2: { dual: true, what: 'Python SDK 2.3.0', needs: 'mcp_2', run: python('mcp_2', 'mcp2_client'), ways: ['stdio', 'http', 'sse'], lacks: ['plain'] },
  fastmcp_4: { dual: true, what: 'FastMCP 4.1.2', needs: 'fastmcp_4', run: python('fastmcp_4', 'fastmcp_client'), ways: ['stdio', 'http', 'sse'], lacks: ['plain', 'subscribe', 'version', 'capabilities', 'server'] },
  fastmcp_3: { what: 'FastMCP 3.4.10', needs: 'fastmcp_3', run: python('fastmcp_3', 'fastmcp_client'), ways: ['stdio', 'http', 'sse'], lacks: ['subscribe', 'cancel'] },
  fastmcp_2: { what: 'FastMCP 2.14.7', needs: 'fastmcp_2', run: python('fastmcp_2', 'fastmcp_client'), ways: ['stdio', 'http', 'sse'], lacks: ['subscribe', 'cancel'] },
  go_sdk: { dual: true, what: 'Go SDK 1.8.0', needs: 'go_sdk', run: [program('go_sdk')], ways: ['stdio', 'http', 'sse'], lacks: ['plain', 'roots'] },
  mcp_go: { dual: true, what: 'mcp-go 1.2.1', needs: 'mcp_go', run: [program('mcp_go')], ways: ['stdio', 'http', 'sse'], lacks: ['plain', 'cancel'] },
  rmcp: { what: 'rmcp 3.8.0', needs: 'rmcp', run: [rust], ways: ['stdio', 'http'], lacks: ['progress', 'cancel'] },
  inspector: { what: 'Inspector 2.12.0 (command line)', run: [node22, file('node/inspector.mjs'), 'legacy'], ways: ['stdio', 'http', 'sse'], lacks: notInInspector },
  inspector_modern: { dual: true, what: 'Inspector 2.12.0 (command line, stateless era)', run: [node22, file('node/inspector.mjs'), 'modern'], ways: ['stdio', 'http'], lacks: notInInspector, shuns: ['mcp_1'] }, // it speaks no other era
  langchain: { what: 'langchain-mcp-adapters 0.3.2', needs: 'langchain', run: framework('langchain'), ways: all, lacks: [...notForAgents, ...asks, 'resources', 'templates', 'prompts', 'audio', 'unknown_tool', 'prompt_image'] },
  pydantic_ai: { dual: true, what: 'pydantic-ai 2.66.0', needs: 'pydantic_ai', run: framework('pydantic_ai'), ways: ['stdio', 'http', 'sse'], lacks: [...notForAgents, 'plain'] },
  openai_agents: { dual: true, what: 'openai-agents 0.24.0', needs: 'openai_agents', run: framework('openai_agents'), ways: ['stdio', 'http', 'sse'], lacks: [...notForAgents, ...asks] },
  google_adk: { what: 'google-adk 2.13.0', needs: 'google_adk', run: framework('google_adk'), ways: ['stdio', 'http', 'sse'], lacks: [...notForAgents, 'roots', 'templates', 'prompts', 'unknown_tool', 'read', 'blob', 'template', 'unknown_uri', 'prompt', 'prompt_image'] },
  mcp_use: { what: 'mcp-use 1.7.1', needs: 'mcp_use', run: framework('mcp_use'), ways: ['stdio', 'http', 'sse'], lacks: [...notForAgents, 'templates'] },
};

for (const [side, rows] of Object.entries({ servers, clients })) {
  for (const [name, row] of Object.entries(rows)) if (!withTasks[side].includes(name)) row.lacks = [...row.lacks, 'task'];
}

/** Every server is tried with these clients, and every client with these servers: one of each era. */
export const references = { clients: ['ts_1', 'ts_2'], servers: ['ts_2', 'mcp_1'] };

// --- steps ---

const call = (step, name, wants, args) => ({ step, op: 'call', name, args, wants });
const echo = { name: 'echo', args: { text: 'zwölf 🙂', n: 12.5 } };

/** wants: what a direct run must show, or else the peer's own script is broken. */
export const steps = [
  { step: 'version', op: 'version', wants: /^"20/ },
  { step: 'capabilities', op: 'capabilities', wants: /resources/ },
  { step: 'server', op: 'server', wants: /peer|fixture/ },
  ...['tools', 'resources', 'templates', 'prompts'].map((what) => ({
    step: what, op: 'list', what,
    wants: { tools: /"echo"/, resources: /static-binary|Static image/, templates: /\{id\}/, prompts: /test_simple_prompt/ }[what],
  })),
  call('text', 'test_simple_text', /simple text response/),
  call('image', 'test_image_content', /iVBOR|PNG/),
  call('audio', 'test_audio_content', /UklGR|WAVE/),
  call('embedded', 'test_embedded_resource', /Embedded resource content/),
  call('mixed', 'test_multiple_content_types', /Embedded resource content/),
  call('structured', 'structured', /n\\?": ?7/),
  call('tool_error', 'test_error_handling', /fails on purpose/),
  call('echo', echo.name, /zw.*12\.5|12\.5.*zw/, echo.args),
  call('unknown_tool', 'no_such_tool', /no_such_tool|nknown|not found/),
  { step: 'read', op: 'read', uri: 'test://static-text', wants: /content of the static text/ },
  { step: 'blob', op: 'read', uri: 'test://static-binary', wants: /iVBOR|PNG/ },
  { step: 'template', op: 'read', uri: 'test://template/42/data', wants: /ID: 42/ },
  { step: 'unknown_uri', op: 'read', uri: 'test://nowhere', wants: /error/ },
  { step: 'prompt', op: 'get', name: 'test_prompt_with_arguments', args: { arg1: 'x', arg2: 'y' }, wants: /arg1='x', arg2='y'/ },
  { step: 'prompt_image', op: 'get', name: 'test_prompt_with_image', args: {}, wants: /iVBOR|PNG/ },
  { step: 'complete', op: 'complete', params: { ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } }, wants: /paris/ },
  call('elicit', 'test_elicitation', /ada@example/, { message: 'Who are you?' }),
  call('sample', 'test_sampling', /sampled: /, { prompt: 'Say something' }),
  call('roots', 'test_input_required_result_list_roots', /file:\/\/\/peers/),
  call('plain', 'ask_plainly', /ada/),
  { step: 'log', op: 'log', name: 'test_tool_with_logging', wants: /started.*processing.*completed/ },
  { step: 'progress', op: 'progress', name: 'test_tool_with_progress', wants: /\[\[0,100\],\[50,100\],\[100,100\]\]/ },
  { step: 'cancel', op: 'cancel', name: 'slow', args: { tag: 'a' }, then: { name: 'slow_state', args: { tag: 'a' } }, wants: /"failed":true.*cancelled/ },
  { step: 'task', op: 'task', name: 'task_echo', args: { text: 'later' }, wants: /"listed":true.*"created","working","completed".*later/ },
  { step: 'subscribe', op: 'subscribe', uri: 'test://watched-resource', touch: { name: 'touch', args: { uri: 'test://watched-resource' } }, wants: /watched-resource/ },
  // Only Rialto restarts a server that died: this step has no direct counterpart.
  { step: 'kill', op: 'kill', die: { name: 'die' }, echo, wants: /zw.*"failed":true/, through: true },
];

// --- differences that have a reason ---

// What an answer carries for one hop only: who answered, and how long the answer may be kept.
function withoutHop(text) {
  const hop = new Set(['io.modelcontextprotocol/serverInfo', 'io.modelcontextprotocol/subscriptionId', 'cacheScope', 'ttlMs', 'resultType', 'nextCursor']);
  const clean = (v) => {
    if (!v || typeof v !== 'object') return v;
    if (Array.isArray(v)) return v.map(clean);
    const kept = Object.entries(v).filter(([k]) => !hop.has(k)).map(([k, x]) => [k, clean(x)]);
    return Object.fromEntries(kept.filter(([k, x]) => !['_meta', 'metadata'].includes(k) || Object.keys(x ?? {}).length));
  };
  try { return JSON.stringify(clean(JSON.parse(text))); } catch { return text; }
}

const unlessListed = (text) => text.replace(/"(listChanged":(true|false)|subscribe":false),?/g, '').replace(/,\}/g, '}');

// Tasks are a capability in the initialize era and an extension in the stateless one, where tools do not say how they are run.
function withoutTasks(text) {
  const clean = (v) => {
    if (!v || typeof v !== 'object') return v;
    if (Array.isArray(v)) return v.map(clean);
    const kept = Object.entries(v).filter(([k]) => !['tasks', 'io.modelcontextprotocol/tasks', 'execution'].includes(k)).map(([k, x]) => [k, clean(x)]);
    return Object.fromEntries(kept.filter(([k, x]) => k !== 'extensions' || Object.keys(x).length));
  };
  try { return JSON.stringify(clean(JSON.parse(text))); } catch { return text; }
}

const withoutTaskTool = (text) => text.replace(/\{[^{}]*(\{[^{}]*\}[^{}]*)?"description":"Says it later".*?"name":"task_echo"\},?/, '');

/** A row applies where all its members match. A row that matches nothing in a whole run is an error. */
export const reasons = [
  { step: 'server', through: /"rialto"/, why: 'Agents are told whom they talk to: Rialto.' },
  { step: 'capabilities', alike: unlessListed, why: 'Lists change when a server is restarted, so `listChanged` is always declared.' },
  { step: 'capabilities', dual: true, through: /\/tasks"/, alike: (text) => unlessListed(withoutTasks(text)), why: 'Tasks of a server of the initialize era are the extension of the stateless one for a client of that.' },
  { step: 'tools', dual: true, direct: /"execution"/, alike: (text) => withoutHop(withoutTasks(text)), why: 'Tools of the stateless era do not say whether they are run as tasks.' },
  { step: 'capabilities', dual: false, server: 'fastmcp_4', direct: /^(?!.*"extensions")/, through: /"extensions"/, why: 'What a server of both eras declares in the stateless one stands for both until its second instance runs.' },
  { step: ['capabilities', 'tools'], server: 'mcp_go', direct: /"tasks"|"task_echo"/, alike: (text) => withoutHop(unlessListed(withoutTasks(withoutTaskTool(text)))), why: 'mcp-go has tasks in the initialize era only, but shows them in both; what it can do in the stateless one stands for both until its second instance runs.' },
  { step: 'unknown_tool', direct: /no_such_tool/, through: /unknown tool: no_such_tool/, why: 'A tool that is not listed is refused before the server is asked, with the code of the protocol and words of our own.' },
  { step: 'version', dual: true, way: ['stdio', 'http'], through: '"2026-07-28"', why: 'A client of both eras speaks the stateless one with Rialto, whatever its server speaks.' },
  { step: 'version', dual: false, direct: /^"202[45]/, through: '"2025-11-25"', why: 'Rialto speaks the newest revision that its client knows, whatever its server speaks.' },
  { step: 'version', dual: true, way: 'sse', direct: '"2026-07-28"', why: 'HTTP with SSE is a transport of the initialize era.' },
  { step: 'unknown_uri', dual: true, direct: /-32002/, through: /-32602/, why: 'The stateless era has another code for a resource that is not there.' },
  { step: ['tools', 'resources', 'templates', 'prompts'], server: 'go_sdk', dual: false, alike: withoutHop, why: 'The Go SDK sends members of the stateless era to clients of the initialize era; Rialto takes them off.' },
  { step: 'any', dual: true, alike: withoutHop, why: 'The stateless era has members that belong to one hop: who answered, how long an answer may be kept.' },
  { step: 'capabilities', server: 'fastmcp_2', dual: false, direct: /"prompts":\{"get"/, through: /"tools":\{"call"/, why: 'Of what FastMCP 2 runs as tasks, calls of tools are what the protocol knows.' },
  { step: 'version', dual: true, client: ['go_sdk', 'mcp_go'], way: 'sse', through: '"2026-07-28"', why: 'The clients in Go ask for the stateless era by HTTP with SSE, too.' },
  { step: 'unknown_uri', client: 'mcp_go', direct: /resource not found/, through: /invalid params/, why: 'mcp-go shows words for a code: see above.' },
  { step: 'version', client: 'mcp_go', way: 'http', through: '"2025-11-25"', why: 'mcp-go speaks the stateless era by stdio, and the other by HTTP.' },
];
