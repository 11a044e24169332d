// What client and server negotiate beside MCP itself (extensions such as MCP Apps, experimental, sampling.context)
// was cut at the bridge, so that neither ever learned that the other knows it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient, serve, until } from './lib.mjs';
import { META, MODERN, ModernClient } from './peers.mjs';
import { listen, readBody } from './upstream_lib.mjs';

const ui = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };
const tasks = { 'io.modelcontextprotocol/tasks': {} };

/** A server of either era that keeps the client's capabilities of each request. */
async function declaring(t, era, capabilities) {
  const seen = {};
  const results = {
    'server/discover': era === 'modern' && { supportedVersions: [MODERN], capabilities: { tools: {}, ...capabilities } },
    initialize: era === 'legacy' && { protocolVersion: '2025-11-25', capabilities: { tools: {}, ...capabilities }, serverInfo: { name: 's', version: '1' } },
    'tools/list': { tools: [{ name: 'touch', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [] },
  };
  const { url } = await listen(t, async (request, response) => {
    if (request.method !== 'POST') { response.writeHead(405).end(); return; }
    const { id, method, params } = JSON.parse(await readBody(request));
    seen[method] = params?._meta?.[`${META}clientCapabilities`] ?? params?.capabilities;
    if (id === undefined) { response.writeHead(202).end(); return; }
    const more = era === 'modern' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(results[method] ? { result: { ...results[method], ...more } } : { error: { code: -32601, message: 'no' } }) }));
  });
  return { seen, entry: { url, era } };
}

test('extensions and experimental of servers reach agents, merged at /mcp', async (t) => {
  const one = await declaring(t, 'modern', { extensions: { ...ui, ...tasks, 'com.example/x': { v: 1.50 } }, experimental: { odd: {} } });
  const two = await declaring(t, 'legacy', { extensions: { 'com.example/x': { v: 2 }, 'com.example/y': {} } });
  const server = await serve(t, { servers: { one: one.entry, two: two.entry } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('one__touch', 'two__touch');
  const declared = async (url) => {
    const { capabilities } = (await new HttpClient(url).connect()).initialized;
    const modern = (await new ModernClient(url).request('server/discover')).result.capabilities;
    // Tasks are an extension in the stateless era and a capability in the other; declared if any server has them.
    const { 'io.modelcontextprotocol/tasks': some, ...extensions } = modern.extensions;
    assert.equal(some !== undefined, capabilities.tasks !== undefined);
    assert.equal(some !== undefined, !url.endsWith('/two'));
    assert.deepEqual(extensions, capabilities.extensions);
    assert.deepEqual(modern.experimental, capabilities.experimental);
    return { extensions: capabilities.extensions, experimental: capabilities.experimental };
  };
  assert.deepEqual(await declared(server.url), { extensions: { ...ui, 'com.example/x': { v: 1.5 }, 'com.example/y': {} }, experimental: { odd: {} } });
  assert.deepEqual(await declared(`${server.url}/one`), { extensions: { ...ui, 'com.example/x': { v: 1.5 } }, experimental: { odd: {} } });
  assert.deepEqual(await declared(`${server.url}/two`), { extensions: { 'com.example/x': { v: 2 }, 'com.example/y': {} }, experimental: undefined });
});

test('what an agent declares reaches a server of the stateless era with its call; MCP Apps are declared to all', async (t) => {
  const one = await declaring(t, 'modern', {});
  const two = await declaring(t, 'legacy', {});
  const server = await serve(t, { servers: { one: one.entry, two: two.entry } });
  const own = { extensions: { 'com.example/z': { a: [1] } }, experimental: { mine: {} }, sampling: { context: {} } };
  own.extensions = { ...own.extensions, ...tasks };
  const agent = new ModernClient(server.url, { capabilities: own });
  await until('the servers', async () => (await agent.request('tools/list')).result.tools.length === 2);
  assert.ok((await agent.call('one__touch')).result);
  assert.deepEqual(one.seen['tools/call'], own);
  assert.deepEqual(one.seen['tools/list'].extensions, ui);
  assert.deepEqual(two.seen.initialize.extensions, ui);
});
