// Real programs from npm around rialto: servers of many makers, clients of both SDK lines and the
// Inspector, and other bridges on either side.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  HttpClient, logged, npmFolder, rialtoBin, runCommand, serve, StdioClient, tempDir, until,
  writeConfig,
} from './lib.mjs';
import { MODERN, ModernClient, node22, startHttp, v1, v2 } from './peers.mjs';
import { freePort } from './upstream_lib.mjs';

const bin = (name) => path.join(npmFolder, 'node_modules/.bin', name);
const program = (name, args = [], env = {}) => ({ command: node22, args: [bin(name), ...args], env });

// --- servers ---

// How many tools each has at least, and a call that changes nothing outside the temporary folder.
function servers(dir) {
  const HOME = dir;
  fs.writeFileSync(path.join(dir, 'hello.txt'), 'hello from a file\n');
  execFileSync('git', ['init', '-q', dir]);
  return {
    everything: { entry: program('mcp-server-everything', ['stdio']), tools: 11, call: ['echo', { message: 'hi' }, /Echo: hi/] },
    files: {
      entry: program('mcp-server-filesystem', [dir]), tools: 13,
      call: ['read_text_file', { path: path.join(dir, 'hello.txt') }, /hello from a file/],
    },
    memory: {
      entry: program('mcp-server-memory', [], { MEMORY_FILE_PATH: path.join(dir, 'memory.json') }), tools: 9,
      call: ['read_graph', {}, /entities/],
    },
    thinking: {
      entry: program('mcp-server-sequential-thinking', [], { DISABLE_THOUGHT_LOGGING: 'true' }), tools: 1,
      call: ['sequentialthinking', { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }, /thoughtHistoryLength/],
    },
    tasks: { entry: program('mcp-taskmanager', [], { HOME, TASK_MANAGER_FILE_PATH: path.join(dir, 'tasks.json') }), tools: 10, call: ['list_requests', {}, /requests|Requests/] },
    // Prints a greeting on stdout, where only messages belong.
    runner: {
      entry: program('mcp-server-code-runner'), tools: 1,
      call: ['run-code', { languageId: 'javascript', code: 'console.log(6 * 7)' }, /42/],
    },
    git: {
      entry: program('git-mcp-server', [], { HOME, MCP_TRANSPORT_TYPE: 'stdio', GIT_BASE_DIR: dir, MCP_LOG_LEVEL: 'error', LOGS_DIR: path.join(dir, 'logs') }),
      tools: 20, call: ['git_status', { path: dir }, /branch/i],
    },
    // Speaks 2024-11-05.
    commands: { entry: program('mcp-server-commands'), tools: 1, call: ['run_command', { command: 'echo from a shell' }, /from a shell/] },
    pdf: { entry: program('mcp-pdf-server', ['--stdio']), tools: 3, call: ['list_pdfs', {}, /pdf/i] },
    budget: { entry: program('mcp-budget-allocator-server', ['--stdio']), tools: 1, call: ['get-budget-data', {}, /./], ui: true },
    clock: { entry: program('mcp-server-basic-vanillajs', ['--stdio']), tools: 1, call: ['get-time', {}, /\d{4}-\d\d-\d\dT/], ui: true },
    // Of both eras. Its tools call a service on the Internet: listed, not called.
    context7: { entry: program('context7-mcp', [], { OTEL_SDK_DISABLED: 'true' }), tools: 2 },
  };
}

const textOf = (result) => JSON.stringify(result.content) + JSON.stringify(result.structuredContent ?? '');

const clients = {
  'SDK v1': [v1, {}],
  'SDK v2, legacy': [v2, { versionNegotiation: { mode: 'legacy' } }],
  'SDK v2, modern': [v2, { versionNegotiation: { mode: { pin: MODERN } } }],
  'SDK v2, finding out': [v2, { versionNegotiation: { mode: 'auto' } }],
};

async function connect(t, url, [sdk, options]) {
  const client = new sdk.Client({ name: 'interop', version: '1' }, { capabilities: {}, ...options });
  t.after(() => client.close());
  await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url)));
  return client;
}

test('a dozen servers at once', { timeout: 120_000 }, async (t) => {
  const dir = tempDir();
  const all = servers(dir);
  const entries = Object.fromEntries(Object.entries(all).map(([name, s]) => [name, s.entry]));
  const server = await serve(t, { servers: entries });
  const raw = await new HttpClient(server.url).connect();
  await until('all servers', async () => {
    const names = await raw.toolNames();
    return Object.keys(all).every((alias) => names.some((n) => n.startsWith(`${alias}__`)));
  }, 60_000);
  await raw.close();
  await logged(server, /runner: .*not JSON.*Code Runner MCP Server/);

  for (const [who, kind] of Object.entries(clients)) {
    await t.test(who, async (tt) => {
      const client = await connect(tt, server.url, kind);
      const { tools } = await client.listTools();
      for (const [alias, { tools: least, call, ui }] of Object.entries(all)) {
        const own = tools.filter((x) => x.name.startsWith(`${alias}__`));
        assert.ok(own.length >= least, `${alias} offers ${own.length} tools`);
        assert.ok(own.every((x) => x.description && x.inputSchema.type === 'object'), alias);
        if (!call) continue;
        const [name, args, wanted] = call;
        const result = await client.callTool({ name: `${alias}__${name}`, arguments: args });
        assert.ok(!result.isError, `${alias}: ${textOf(result)}`);
        assert.match(textOf(result), wanted, alias);
        if (ui) assert.match(own[0]._meta.ui.resourceUri, /^ui:\/\//);
      }
      // A prompt and a tool with the same name in one server are two things.
      const { prompts } = await client.listPrompts();
      assert.ok(prompts.some((p) => p.name === 'commands__run_command'));
      const { resources } = await client.listResources();
      const page = resources.find((r) => r.uri.startsWith('ui://'));
      assert.match((await client.readResource({ uri: page.uri })).contents[0].text, /<html|<!doctype/i);
    });
  }
});

// --- the Inspector ---

test('the Inspector in three eras', async (t) => {
  const entry = program('mcp-server-everything', ['stdio']);
  const server = await serve(t, { names: 'bare', servers: { everything: entry } });
  await new ModernClient(server.url).waitFor('echo');
  const file = writeConfig(tempDir(), { names: 'bare', servers: { everything: entry } });
  const home = tempDir();
  const inspect = async (target, ...args) => {
    const { code, stdout, stderr } = await runCommand(node22,
      [bin('mcp-inspector'), '--cli', ...target, '--format', 'json', ...args], { env: { HOME: home }, timeout: 60_000 });
    assert.equal(code, 0, `${args}: ${stdout}${stderr}`);
    return JSON.parse(stdout);
  };
  const echo = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-args-json', '{"message":"hi"}'];
  for (const era of ['legacy', 'modern', 'auto']) {
    await t.test(`${era} over HTTP`, async () => {
      const target = [server.url];
      const list = await inspect(target, '--protocol-era', era, '--method', 'tools/list');
      assert.ok(JSON.stringify(list).includes('get-sum'));
      assert.match(JSON.stringify(await inspect(target, '--protocol-era', era, ...echo)), /Echo: hi/);
    });
  }
  await t.test('over stdio', async () => {
    assert.match(JSON.stringify(await inspect([rialtoBin, 'stdio', '--alone', '-c', file], ...echo)), /Echo: hi/);
  });
});

// --- other bridges ---

const everythingBehind = (t) => serve(t, { names: 'bare', servers: { everything: program('mcp-server-everything', ['stdio']) } });

/** A stdio program that is killed at the end, since it need not end cleanly. */
function stdioAgent(t, args, env = {}) {
  const agent = new StdioClient(t, node22, args, { env: { ...process.env, HOME: tempDir(), ...env } });
  agent.stop = async () => {
    agent.child.kill('SIGKILL');
    await agent.ended;
  };
  return agent;
}

async function echoes(agent) {
  await agent.connect();
  await agent.waitFor('echo');
  const { result } = await agent.request('tools/call', { name: 'echo', arguments: { message: 'through' } });
  assert.match(result.content[0].text, /Echo: through/);
}

test('mcp-remote before us', async (t) => {
  const server = await everythingBehind(t);
  await echoes(stdioAgent(t, [bin('mcp-remote'), server.url, '--allow-http']));
});

test('mcp-remote behind us', async (t) => {
  const far = await everythingBehind(t);
  const server = await serve(t, { names: 'bare', servers: { far: program('mcp-remote', [far.url, '--allow-http'], { HOME: tempDir() }) } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('echo');
  assert.match(await client.text('echo', { message: 'through' }), /Echo: through/);
  assert.match(await new ModernClient(server.url).text('echo', { message: 'through' }), /Echo: through/);
});

test('supergateway before us', async (t) => {
  const server = await everythingBehind(t);
  // supergateway makes all ids numbers, whatever the agent's were.
  const agent = stdioAgent(t, [bin('supergateway'), '--streamableHttp', server.url]);
  let n = 1;
  agent.request = async (method, params = {}) => JSON.parse(await agent.rawRequest(String(n++), method, JSON.stringify(params)));
  await echoes(agent);
});

for (const [kind, extra, where] of [
  ['streamableHttp', ['--stateful'], '/mcp'], ['streamableHttp', [], '/mcp'], ['sse', [], '/sse'],
]) {
  test(`supergateway behind us: ${kind} ${extra}`, async (t) => {
    const port = await freePort(t);
    const child = `${node22} ${bin('mcp-server-everything')} stdio`;
    await startHttp(t, node22, [bin('supergateway'), '--stdio', child, '--outputTransport', kind, '--port', String(port), ...extra],
      { pattern: /(listening on port \d+)/i });
    const server = await serve(t, { names: 'bare', servers: { far: { url: `http://127.0.0.1:${port}${where}` } } });
    const client = await new HttpClient(server.url).connect();
    await client.waitFor('echo');
    assert.match(await client.text('echo', { message: 'through' }), /Echo: through/);
    assert.match(await new ModernClient(server.url).text('echo', { message: 'through' }), /Echo: through/);
  });
}

test('rialto behind rialto behind rialto', async (t) => {
  const far = await everythingBehind(t);
  const file = writeConfig(tempDir(), { names: 'bare', servers: { far: { url: far.url } } });
  const server = await serve(t, { names: 'bare', servers: { middle: { command: rialtoBin, args: ['stdio', '--alone', '-c', file] } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('echo');
  assert.match(await client.text('echo', { message: 'through' }), /Echo: through/);
  assert.match(await new ModernClient(server.url).text('echo', { message: 'through' }), /Echo: through/);
});
