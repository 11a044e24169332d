// The code of the document "MCP Bridge" runs unchanged: its bridge class joins a session over BTCP, and
// its stdio server offers that session to MCP hosts. Both expect tools/list to give a bare array and put
// the result of tools/call into a text; we sent an object, and results that were already in MCP's form.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { load, root, tempDir } from './lib.mjs';
import { page, serveBrowser, text } from './browser_lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');

const article = { content: 'Article text here...', wordCount: 523 };
const tools = [
  { name: 'getPageContent', description: 'Extracts the main content from the current page',
    inputSchema: { type: 'object', properties: { selector: { type: 'string', description: 'CSS selector for content area' } } } },
  { name: 'clickElement', description: 'Clicks an element on the page',
    inputSchema: { type: 'object', properties: { selector: { type: 'string', description: 'CSS selector for element to click' } }, required: ['selector'] } },
];

/**
 * A folder in which the document's imports resolve: those of the SDK to today's SDK, where handlers are
 * set by method, and @btcp/server, which was never published, to the document's own class.
 */
function documentFolder() {
  const dir = tempDir();
  const put = (file, code) => {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), code);
  };
  const npm = path.join(root, 'build/npm/node_modules');
  for (const name of ['btcp_mcp_bridge.mjs', 'btcp_mcp_server.mjs']) put(name, fs.readFileSync(path.join(root, 'tests/fixture', name)));
  const server = fs.realpathSync(path.join(npm, '@modelcontextprotocol/server'));
  put('node_modules/@modelcontextprotocol/sdk/package.json', JSON.stringify({ name: '@modelcontextprotocol/sdk', type: 'module',
    exports: { './server': './server.js', './server/stdio': './stdio.js' } }));
  fs.symlinkSync(server, path.join(dir, 'node_modules/@modelcontextprotocol/server'));
  put('node_modules/@modelcontextprotocol/sdk/server.js', `export { Server } from '@modelcontextprotocol/server';`);
  put('node_modules/@modelcontextprotocol/sdk/stdio.js', `export { StdioServerTransport } from '@modelcontextprotocol/server/stdio';`);
  fs.symlinkSync(fs.realpathSync(path.join(npm, 'ws')), path.join(dir, 'node_modules/ws'));
  put('node_modules/@btcp/server/package.json', JSON.stringify({ name: '@btcp/server', type: 'module', exports: './index.js' }));
  put('node_modules/@btcp/server/index.js', `import { BTCPMCPBridge } from '../../../btcp_mcp_bridge.mjs';
    export class BTCPBridge extends BTCPMCPBridge {
      constructor(options) { super(options); this.ready = this.connect(); }
      async listTools() { await this.ready; return super.listTools(); }
      async callTool(...args) { await this.ready; return super.callTool(...args); }
    }`);
  return dir;
}

async function open(t) {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'your-session-id', tools);
  return { server, socket, url: server.origin.replace('http', 'ws') };
}

test('the bridge class of the document', async (t) => {
  const { socket, url } = await open(t);
  const { BTCPMCPBridge } = await import(path.join(documentFolder(), 'btcp_mcp_bridge.mjs'));
  const bridge = new BTCPMCPBridge({ btcpServerUrl: url, sessionId: 'your-session-id' });
  await bridge.connect();
  t.after(() => bridge.btcpSocket.close());
  assert.deepEqual(await bridge.listTools(), { tools });
  for (const given of [{ result: article }, { result: { content: [{ type: 'text', text: JSON.stringify(article) }], structuredContent: article } }]) {
    socket.answer(() => given);
    assert.deepEqual(await bridge.callTool('getPageContent', { selector: 'article' }),
      { content: [{ type: 'text', text: '{"content":"Article text here...","wordCount":523}' }] });
  }
  socket.answer(() => text('plain'));
  assert.deepEqual(await bridge.callTool('getPageContent', {}), { content: [{ type: 'text', text: '"plain"' }] });
  socket.answer(() => ({ error: { code: 'CAPABILITY_DENIED', message: 'Capability not granted: dom:write' } }));
  await assert.rejects(bridge.callTool('clickElement', {}), { code: 'CAPABILITY_DENIED', message: 'Capability not granted: dom:write' });
  socket.answer(() => ({ result: { content: [{ type: 'text', text: 'no such element' }], isError: true } }));
  await assert.rejects(bridge.callTool('clickElement', {}), { code: 'EXECUTION_ERROR', message: 'no such element' });
});

test('the stdio server of the document, started by an MCP host', async (t) => {
  const { server, socket } = await open(t);
  const dir = documentFolder();
  const file = path.join(dir, 'btcp_mcp_server.mjs');
  // The document's address is replaced by the one of this test.
  fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace('ws://localhost:8765', server.origin.replace('http', 'ws')));
  const client = new Client({ name: 'host', version: '1' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [file], env: { ...process.env, BTCP_SESSION_ID: 'your-session-id' } }));
  t.after(() => client.close());
  assert.deepEqual((await client.listTools()).tools.map((x) => x.name), ['getPageContent', 'clickElement']);
  socket.answer(() => ({ result: article }));
  assert.equal((await client.callTool({ name: 'getPageContent', arguments: { selector: 'article' } })).content[0].text,
    '{"content":"Article text here...","wordCount":523}');
});
