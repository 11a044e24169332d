// The real ACP SDK at both ends of a conductor: 2.4.0 as client, as provider of MCP servers (M4) and
// as caller of them, the example agent of 1.9.0, and the M3 types of 1.5.1 and 1.0.0.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { agent, proxy } from './acp_lib.mjs';
import {
  commandOf, descendants, expectClean, expectGone, npmFolder, rialtoBin, root, runCommand, sanitizerEnv,
  tempDir, until, within,
} from './lib.mjs';

const folderOf = (name) => path.join(npmFolder, 'node_modules', name);

// Resolves a package as an import statement beside node_modules would: the SDK must get the same modules.
async function sdk(name) {
  const folder = name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/');
  const { exports: map } = JSON.parse(fs.readFileSync(path.join(folderOf(folder), 'package.json'), 'utf8'));
  let target = map[name === folder ? '.' : `.${name.slice(folder.length)}`];
  while (typeof target === 'object') target = target.import ?? target.default;
  return import(pathToFileURL(path.join(folderOf(folder), target)));
}

/** A conductor as the stream an SDK connects to. */
function conductor(t, acp, args, env = process.env) {
  const child = spawn(rialtoBin, ['conductor', ...args], { cwd: tempDir(), env: { ...env, ...sanitizerEnv } });
  let stderr = '';
  child.stderr.on('data', (d) => { stderr += d; });
  const exit = new Promise((resolve) => { child.on('close', resolve); });
  t.after(async () => {
    const family = descendants(child.pid);
    child.stdin.end();
    assert.equal(await within(10_000, 'the end', exit), 0, stderr);
    expectClean(stderr);
    await expectGone(family);
  });
  return Object.assign(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), { pid: child.pid });
}

const arrows = (n) => Array.from({ length: n }, (_, i) => proxy(['P2', 'P3', 'P1', 'P0', 'P2'][i], '--arrow'));

for (const n of [0, 1, 2, 5]) {
  test(`SDK 2.4.0 client, example agent of 1.9.0, ${n} proxies`, { timeout: 60_000 }, async (t) => {
    const acp = await sdk('acp-sdk-2.4.0');
    const example = path.join(folderOf('acp-sdk-1.9.0'), 'dist/examples/agent.js');
    const updates = [];
    let asked = 0;
    const app = acp.client()
      .onNotification('session/update', ({ params }) => { updates.push(params.update); })
      .onRequest('session/request_permission', ({ params }) => {
        asked++;
        return { outcome: { outcome: 'selected', optionId: params.options[0].optionId } };
      });
    const { agent: peer } = app.connect(conductor(t, acp, ['agent', ...arrows(n), `'${process.execPath}' '${example}'`]));
    const hello = await peer.request('initialize', { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    assert.equal(hello.protocolVersion, 1);
    const { sessionId } = await peer.request('session/new', { cwd: '/', mcpServers: [] });
    const { stopReason } = await peer.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] });
    assert.equal(stopReason, 'end_turn');
    assert.equal(asked, 1);
    const texts = updates.filter((u) => u.sessionUpdate === 'agent_message_chunk').map((u) => u.content.text);
    assert.ok(texts.length >= 2);
    assert.ok(texts.every((text) => text.startsWith('>'.repeat(n)) && !text.startsWith('>'.repeat(n + 1))), texts[0]);
  });
}

const dualVersion = () => `'${process.execPath}' '${path.join(folderOf('acp-sdk-1.9.0'), 'dist/examples/dual-version-agent.js')}'`;

test('SDK 1.9.0 dual-version agent by a v1 client of 2.4.0: the version is routed', async (t) => {
  const acp = await sdk('acp-sdk-2.4.0');
  const texts = [];
  const app = acp.client().onNotification('session/update', ({ params }) => { texts.push(params.update.content.text); });
  const { agent: peer } = app.connect(conductor(t, acp, ['agent', ...arrows(1), dualVersion()]));
  const hello = await peer.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  assert.equal(hello.protocolVersion, 1);
  const { sessionId } = await peer.request('session/new', { cwd: '/', mcpServers: [] });
  await peer.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] });
  assert.deepEqual(texts, ['>Hello from the v1 implementation.']);
});

for (const n of [0, 2]) {
  test(`SDK 1.9.0 dual-version agent by a v2 client of 2.4.0, ${n} proxies: the version is routed`, async (t) => {
    const v2 = await sdk('acp-sdk-2.4.0/experimental/v2');
    const updates = [];
    const app = v2.client().onNotification('session/update', ({ params }) => { updates.push(params.update); });
    const { agent: peer } = app.connect(conductor(t, v2, ['agent', ...arrows(n), dualVersion()]));
    const hello = await peer.request('initialize', { protocolVersion: v2.PROTOCOL_VERSION, info: { name: 'test', version: '1' }, capabilities: {} });
    assert.equal(v2.PROTOCOL_VERSION, 2);
    assert.equal(hello.protocolVersion, 2);
    assert.equal(hello.info.name, 'dual-version-example');
    const { sessionId } = await peer.request('session/new', { cwd: '/', mcpServers: [] });
    await peer.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'go' }] });
    await until('its message', () => updates.some((u) => u.sessionUpdate === 'agent_message'));
    assert.deepEqual(updates.find((u) => u.sessionUpdate === 'agent_message').content, [{ type: 'text', text: 'Hello from the v2 implementation.' }]);
  });
}

async function provider(acp) {
  const { fromMcpServer } = await sdk('acp-sdk-2.4.0/experimental/mcp-server');
  const { McpServer } = await sdk('@modelcontextprotocol/server');
  const z = await sdk('zod');
  const mcp = new acp.McpOverAcpProvider();
  const tools = fromMcpServer(() => {
    const server = new McpServer({ name: 'project-tools', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, async ({ message }) => ({ content: [{ type: 'text', text: `sdk: ${message}` }] }));
    return server;
  });
  return { mcp, tools };
}

for (const era of ['legacy', 'modern']) {
  for (const n of [0, 2]) {
    test(`SDK 2.4.0 as M4 provider for an agent whose MCP client is ${era}, ${n} proxies`, async (t) => {
      const acp = await sdk('acp-sdk-2.4.0/unstable');
      const { mcp, tools } = await provider(acp);
      const texts = [];
      const app = acp.client()
        .onRequest(acp.methods.client.mcp.message, mcp.handleRequest)
        .onNotification('session/update', ({ params }) => { texts.push(params.update.content.text.replace(/^>*/, '')); });
      const connection = app.connect(conductor(t, acp, ['agent', ...arrows(n), agent('--era', era)]));
      const hello = await connection.agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
      assert.equal(hello.agentCapabilities.mcpCapabilities.acp, true);
      const registered = mcp.registerServer(connection.agent, { name: 'tools', handler: tools.handler });
      const { sessionId } = await connection.agent.request('session/new', { cwd: '/', mcpServers: [registered.declaration] });
      const prompt = (command) => connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: JSON.stringify(command) }] });
      await prompt({ command: 'list_tools', server: 'tools' });
      assert.deepEqual(JSON.parse(texts.at(-1)), ['echo']);
      await prompt({ command: 'call_tool', server: 'tools', tool: 'echo', params: { message: 'x' } });
      assert.equal(JSON.parse(texts.at(-1)).result.content[0].text, 'sdk: x');
      await tools.close();
    });
  }
}

test('SDK 2.4.0 at both ends, provider and caller: a native agent is left alone', async (t) => {
  const acp = await sdk('acp-sdk-2.4.0/unstable');
  const { mcp, tools } = await provider(acp);
  const texts = [];
  const app = acp.client()
    .onRequest(acp.methods.client.mcp.message, mcp.handleRequest)
    .onNotification('session/update', ({ params }) => { texts.push(params.update.content.text); });
  const script = path.join(root, 'tests/fixture/acp/sdk_agent.mjs');
  const connection = app.connect(conductor(t, acp, ['agent', ...arrows(1), `'${process.execPath}' '${script}' '${npmFolder}'`]));
  await connection.agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const registered = mcp.registerServer(connection.agent, { name: 'tools', handler: tools.handler });
  const { sessionId } = await connection.agent.request('session/new', { cwd: '/', mcpServers: [registered.declaration] });
  await connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'x' }] });
  assert.equal(JSON.parse(texts[0].slice(1)).result.content[0].text, 'sdk: native');
  await tools.close();
});

for (const [version, key, connectKey] of [['1.5.1', 'serverId', 'serverId'], ['1.0.0', 'id', 'acpId']]) {
  test(`M3 by the types of SDK ${version}: connect, message and disconnect pass its own schema`, async (t) => {
    const acp = await sdk(`acp-sdk-${version}`);
    const zod = await import(pathToFileURL(path.join(folderOf(`acp-sdk-${version}`), 'dist/schema/zod.gen.js')));
    const seen = [];
    const answers = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } },
      'tools/call': { content: [{ type: 'text', text: `m3 ${version}` }] },
    };
    const texts = [];
    const app = acp.client()
      .onRequest('mcp/connect', zod.zConnectMcpRequest, ({ params }) => { seen.push(['connect', params[connectKey]]); return { connectionId: 'c1' }; })
      .onRequest('mcp/message', zod.zMessageMcpRequest, ({ params }) => answers[params.method])
      .onNotification('mcp/message', zod.zMessageMcpNotification, ({ params }) => { seen.push(['notification', params.method]); })
      .onRequest('mcp/disconnect', zod.zDisconnectMcpRequest, ({ params }) => { seen.push(['disconnect', params.connectionId]); return {}; })
      .onNotification('session/update', ({ params }) => { texts.push(params.update.content.text); });
    const { agent: peer } = app.connect(conductor(t, acp, ['agent', proxy('P3'), agent()]));
    await peer.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await peer.request('session/new', { cwd: '/', mcpServers: [{ type: 'acp', name: 'mine', [key]: 'one' }] });
    const prompt = (command) => peer.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: JSON.stringify(command) }] });
    await prompt({ command: 'call_tool', server: 'mine', tool: 'x' });
    await until('the update, which this SDK hands out in its own time', () => texts.length);
    assert.equal(JSON.parse(texts[0]).result.content[0].text, `m3 ${version}`);
    await prompt({ command: 'close_mcp', server: 'mine' });
    await until('the disconnect', () => seen.length === 3);
    assert.deepEqual(seen, [['connect', 'one'], ['notification', 'notifications/initialized'], ['disconnect', 'c1']]);
  });
}

// --- real agents, which need no account for session/new ---

const agents = {
  'claude-agent-acp': (dir) => `'${process.execPath}' '${dir}/@agentclientprotocol/claude-agent-acp/dist/index.js'`,
  opencode: (dir) => `'${dir}/opencode-linux-${process.arch}${process.arch === 'x64' ? '-baseline' : ''}/bin/opencode' acp`,
  kilo: (dir) => `'${dir}/@kilocode/cli-linux-${process.arch}${process.arch === 'x64' ? '-baseline' : ''}/bin/kilo' acp`,
};

const agentFolder = path.join(root, 'build/npm-agents/node_modules');
const isBridge = (command) => command[0].endsWith('/conductor') && command[1] === 'mcp';

for (const [name, commandLine] of Object.entries(agents)) {
  test(`${name}: takes a bridged server, connects to it and lists its tools`, { timeout: 300_000 }, async (t) => {
    // Does nothing if `make test` has installed the agents; they need no network from here on.
    const install = await runCommand(path.join(root, 'tools/npm'), ['tests/fixture/acp/agents/package.json', 'build/npm-agents'], { cwd: root, timeout: 280_000 });
    assert.equal(install.code, 0, install.stderr);
    const acp = await sdk('acp-sdk-2.4.0');
    const home = tempDir();
    const trace = path.join(tempDir(), 'trace');
    // No variables of the user who runs the tests: agents look at more of them than anybody can list.
    const env = { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home };
    const app = acp.client().onNotification('session/update', () => {});
    const chain = conductor(t, acp, ['-q', '--trace', trace, 'agent', proxy('P2', '--mcp', 'M2a'), commandLine(agentFolder)], env);
    const { agent: peer } = app.connect(chain);
    await peer.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    await peer.request('session/new', { cwd: home, mcpServers: [] });
    const tools = await until('the tools at the agent', () => {
      const events = fs.readFileSync(trace, 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l));
      const ids = events.filter((e) => e.method === 'tools/list' && e.from === 'Agent').map((e) => e.id);
      return events.find((e) => e.type === 'response' && ids.includes(e.id) && e.to === 'Agent')?.payload.tools;
    }, 60_000);
    assert.deepEqual(tools.map((x) => x.name), ['echo', 'ask', 'hang', 'ids']);
    assert.ok(descendants(chain.pid).map(commandOf).some(isBridge), 'by a bridge that it started');
  });
}
