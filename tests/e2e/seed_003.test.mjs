// Seed 003 (assistant4's MCP extension): its own manifests, run unchanged, and what it says about them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  fake, fakeBin, HttpClient, logged, rialto, serve, serveAndConnect, tempDir, until, writeConfig,
} from './lib.mjs';
import { fixtureEntry } from './peers.mjs';

// The manifest of the seed's section 2, byte for byte.
const first = `# sandbox/extensions/mcp/manifest.yaml

id: mcp
name: MCP Bridge
version: "1.0.0"
description: >
  Connects to MCP servers and exposes their tools to the agent.
  Supports stdio, SSE, and Streamable HTTP transports.

entrypoint: main:McpBridgeExtension

depends_on: []

config:
  servers:
    - alias: web_search
      transport: streamable-http
      url: http://localhost:8000/mcp

    - alias: filesystem
      transport: stdio
      command: npx
      args: ["-y", "@modelcontextprotocol/server-filesystem", "/path/to/allowed/dir"]

    - alias: github
      transport: sse
      url: https://api.example.com/mcp
      headers:
        Authorization: "Bearer \${GITHUB_TOKEN}"  # resolved from secrets

enabled: true
`;
// The manifest of the seed's section 9.
const second = `id: mcp
name: MCP Bridge
version: "1.0.0"
description: >
  Connects to MCP servers and exposes their tools to the agent.
  Use when you need: web search, file access, GitHub, databases, etc.
  Configure servers in config.servers.

entrypoint: main:McpBridgeExtension

depends_on: []

config:
  servers: []

setup_instructions: |
  Add MCP servers to config.servers in manifest.yaml.
  Example (stdio): alias, transport: stdio, command, args.
  Example (HTTP): alias, transport: streamable-http, url.
  Use \${SECRET_NAME} in url/headers/env to inject secrets.

enabled: true
`;

async function serveManifest(t, content, env = {}) {
  const file = writeConfig(tempDir(), content, 'manifest.yaml');
  return { file, server: await serve(t, null, { args: ['-c', file], env }) };
}

test('the manifest of section 2 runs as it stands: a server that cannot be reached and one without its secret are left out', async (t) => {
  const bin = tempDir();
  fs.writeFileSync(path.join(bin, 'npx'), `#!/bin/sh\n[ "$1 $2" = "-y @modelcontextprotocol/server-filesystem" ] && exec ${fakeBin} --name "$3"\n`, { mode: 0o755 });
  // The host and port of the manifest may exist here: a proxy that refuses makes sure that they are not reached.
  const { server } = await serveManifest(t, first, { PATH: `${bin}:${process.env.PATH}`, http_proxy: 'http://127.0.0.1:9', no_proxy: '' });
  const client = await new HttpClient(server.url).connect();
  const names = await client.waitFor('mcp_filesystem_echo');
  assert.ok(names.every((n) => n.startsWith('mcp_filesystem_')), names.join());
  await logged(server, /github.*left out.*GITHUB_TOKEN/);
  await logged(server, /web_search.*could not be started/);
  assert.equal((await client.call('mcp_filesystem_whoami')).result.structuredContent.name, '/path/to/allowed/dir');
  const { tools } = (await client.request('tools/list')).result;
  assert.equal(tools.find((x) => x.name === 'mcp_filesystem_echo').description, '[MCP: filesystem] echo of /path/to/allowed/dir');
});

test('the manifest of section 9 runs as it stands: no servers, no tools, and its instructions are shown', async (t) => {
  const { server, file } = await serveManifest(t, second);
  const client = await new HttpClient(server.url).connect();
  assert.deepEqual(await client.toolNames(), []);
  const { code, stdout } = await rialto(['check', file]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /Add MCP servers to config\.servers/);
});

const manifest = (entry, more = '') => `config:\n  servers:\n    - ${entry}\n${more}`;

test('a failed call is a result of the tool, as the agent of a manifest wants it', async (t) => {
  const { server } = await serveManifest(t, manifest(`{alias: s, transport: stdio, command: ${fakeBin}, args: [--name, s], timeout: 300ms}`));
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('mcp_s_sleep');
  for (const [tool, args, text] of [['sleep', { ms: 60000 }, /timed out/], ['die', {}, /ended while the call was open/]]) {
    const { result, error } = await client.call(`mcp_s_${tool}`, args);
    assert.ok(result?.isError, JSON.stringify(error));
    assert.match(result.content[0].text, text);
  }
});

test('descriptions begin with [MCP: alias] in a manifest, unless describe_server says otherwise', async (t) => {
  for (const [more, expected] of [['', '[MCP: s] echo of x'], ['describe_server: true\n', '[s] echo of x'], ['describe_server: false\n', 'echo of x']]) {
    const { server } = await serveManifest(t, manifest(`{alias: s, transport: stdio, command: ${fakeBin}, args: [--name, x]}`, more));
    const client = await new HttpClient(server.url).connect();
    await client.waitFor('mcp_s_echo');
    assert.equal((await client.request('tools/list')).result.tools[0].description, expected);
    const alone = await new HttpClient(`${server.url}/s`).connect();
    assert.equal((await alone.request('tools/list')).result.tools[0].description, 'echo of x');
  }
  // In other configurations the same key does it.
  const { client } = await serveAndConnect(t, { describe_server: 'mcp', servers: { a: fake('--name', 'y') } }, ['a__echo']);
  assert.equal((await client.request('tools/list')).result.tools[0].description, '[MCP: a] echo of y');
});

test('a missing transport is an error, and an unknown value is named', async () => {
  const check = async (content, name) => (await rialto(['check', writeConfig(tempDir(), content, name)])).stdout;
  assert.match(await check(manifest('{alias: s, command: x}'), 'manifest.yaml'), /:3:\d+: config\.servers\.s: expected the key 'transport'/);
  assert.match(await check(manifest('{alias: s, transport: pigeon, command: x}'), 'manifest.yaml'), /unknown transport 'pigeon'/);
  assert.match(await check('servers: {s: {command: x, transport: pigeon}}\n', 'rialto.yaml'), /servers\.s\.transport: 'pigeon' is not known here; expected/);
});

test('resources_as_context: their text is a part of the instructions', async (t) => {
  for (const era of ['legacy', 'modern']) {
    const server = await serve(t, {
      servers: { fx: fixtureEntry(era, { resources_as_context: ['test://static-text', 'test://template/7/data', 'test://nothing'], prompts_as_context: ['test_simple_prompt'] }) },
    });
    const instructions = await until('the context', async () => {
      const { initialized } = await new HttpClient(server.url).connect();
      return initialized.instructions?.includes('[resource test://template/7/data]') && initialized.instructions;
    }, 30_000);
    assert.match(instructions, /\[prompt test_simple_prompt\]\nThis is[^]*\n\n\[resource test:\/\/static-text\]\n[^\n]*static text[^]*\n\n\[resource test:\/\/template\/7\/data\]\n[^]*7/);
    assert.doesNotMatch(instructions, /nothing/);
    await logged(server, /resource 'test:\/\/nothing' cannot be context/);
  }
});
