// The npm package of web/: it packs, it can be imported, and rialto.js works in Node, which has
// WebSockets of its own: the tests of the page client that need no browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { root, runCommand, tempDir, until, within } from './lib.mjs';
import { agent, serveBrowser } from './browser_lib.mjs';

const web = path.join(root, 'web');

/** What `npm install` would unpack. */
async function unpack() {
  const dir = tempDir();
  const packed = await runCommand('npm', ['pack', web, '--pack-destination', dir, '--json', '--offline'],
    { env: { npm_config_cache: tempDir(), npm_config_update_notifier: 'false' } });
  assert.equal(packed.code, 0, packed.stderr);
  const [{ filename, files }] = JSON.parse(packed.stdout);
  const folder = path.join(dir, 'node_modules/rialto-page');
  fs.mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-xzf', path.join(dir, filename), '-C', folder, '--strip-components=1']);
  return { dir, folder, files: files.map((f) => f.path).sort() };
}

const { dir, folder, files } = await unpack();
fs.writeFileSync(path.join(dir, 'use.mjs'), "export { default, rialto, Rialto } from 'rialto-page';\n");
const { default: rialto, Rialto, rialto: named } = await import(pathToFileURL(path.join(dir, 'use.mjs')));

test('the npm package has the files that its package.json speaks of, and no dependency', () => {
  const meta = JSON.parse(fs.readFileSync(path.join(folder, 'package.json')));
  assert.deepEqual(files, ['README.md', 'package.json', 'rialto.d.ts', 'rialto.js', 'rialto.mjs', 'webmcp.d.ts', 'webmcp.js']);
  const named_ = [meta.main, meta.module, meta.types, ...Object.values(meta.exports).flatMap((e) => (typeof e === 'string' ? e : Object.values(e)))];
  for (const file of named_) assert.ok(fs.existsSync(path.join(folder, file)), file);
  assert.equal(meta.dependencies, undefined);
  assert.equal(meta.version, fs.readFileSync(path.join(root, 'meson.build'), 'utf8').match(/version: '([^']+)'/)[1]);
  assert.equal(meta.license, 'Apache-2.0');
  const types = fs.readFileSync(path.join(folder, 'rialto.d.ts'), 'utf8');
  const api = Object.getOwnPropertyNames(Rialto.prototype).filter((n) => n !== 'constructor');
  for (const name of api) assert.match(types, new RegExp(`\\b${name}\\b`), `${name} has a type`);
});

test('importing gives the one that a script tag leaves in window.rialto', () => {
  assert.equal(rialto, globalThis.rialto);
  assert.equal(named, rialto);
  assert.ok(rialto instanceof Rialto);
  assert.ok(rialto instanceof EventTarget);
});

/** A new client, disconnected at the end of the test. */
function client(t, server, session, options = {}) {
  const page = new Rialto();
  t.after(() => page.disconnect());
  return page.connect({ url: server.origin, session, page: `page-${session}`, ...options });
}

test('rialto.js: what handlers give and throw becomes a result', async (t) => {
  const server = await serveBrowser(t);
  const page = client(t, server, 'S');
  const content = [{ type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }, { type: 'text', text: 'x' }];
  const cases = {
    text: ['plain', { content: [{ type: 'text', text: 'plain' }], isError: false }],
    object: [{ a: 1 }, { content: [{ type: 'text', text: '{"a":1}' }], isError: false, structuredContent: { a: 1 } }],
    array: [[1, 2], { content: [{ type: 'text', text: '[1,2]' }], isError: false }],
    number: [7, { content: [{ type: 'text', text: '7' }], isError: false }],
    null: [null, { content: [{ type: 'text', text: 'null' }], isError: false }],
    nothing: [undefined, { content: [], isError: false }],
    shaped: [{ content, isError: false }, { content, isError: false }],
    failed: [{ content: [{ type: 'text', text: 'no' }], isError: true }, { content: [{ type: 'text', text: 'no' }], isError: true }],
  };
  for (const [name, [value]] of Object.entries(cases)) page.registerTool({ name, description: name, handler: async () => value });
  page.registerTool({ name: 'throws', description: 'x', handler: () => { throw new Error('broken'); } });
  page.registerTool({ name: 'rejects', description: 'x', handler: () => Promise.reject('words') });
  page.registerTool({ name: 'echo', description: 'x', handler: (args) => args });
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor('echo');
  for (const [name, [, wanted]] of Object.entries(cases)) assert.deepEqual((await mcp.call(name)).result, wanted, name);
  for (const [name, said] of [['throws', 'broken'], ['rejects', 'words']]) {
    assert.deepEqual((await mcp.call(name)).result, { content: [{ type: 'text', text: said }], isError: true });
  }
  for (let i = 0; i < 50; i++) assert.deepEqual((await mcp.call('echo', { i })).result.structuredContent, { i }, 'one after the other');
});

// Such a result was never sent: the agent waited until the call timed out.
test('rialto.js: a result that JSON cannot say is a failed one', async (t) => {
  const server = await serveBrowser(t);
  const page = client(t, server, 'S');
  const ring = { content: [] };
  ring.content.push(ring);
  const handlers = { big: () => ({ content: [{ type: 'text', text: 1n }] }), round: () => ring, inside: () => ({ a: 1n }), code: () => () => 1 };
  for (const [name, handler] of Object.entries(handlers)) page.registerTool({ name, description: name, timeout: 300_000, handler });
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor(...Object.keys(handlers));
  for (const name of ['big', 'round', 'inside']) {
    const { result } = await within(20_000, name, mcp.call(name));
    assert.deepEqual([result.isError, result.content[0].type, typeof result.content[0].text], [true, 'text', 'string'], name);
  }
  assert.match(await mcp.text('code'), /1/);
});

test('rialto.js: tools come and go, wrong ones are refused at once', async (t) => {
  const server = await serveBrowser(t);
  const page = client(t, server, 'S');
  const handler = () => 'x';
  const takeBack = page.registerTool({ name: 'one', description: 'x', handler });
  page.registerTool({ name: 'two', description: 'x', handler });
  assert.throws(() => page.registerTool({ name: 'one', description: 'x', handler }), /already/);
  for (const wrong of [undefined, {}, { name: 'x' }, { handler }, { name: 1, handler }]) assert.throws(() => page.registerTool(wrong), TypeError);
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor('one', 'two');
  takeBack();
  await until('taken back', async () => (await mcp.toolNames()).join() === 'two');
  page.unregisterTool('two');
  page.unregisterTool('two');
  await until('none', async () => (await mcp.toolNames()).length === 0);
  assert.deepEqual(page.tools(), []);
});

// The client retried for ever, and nothing said why.
test('rialto.js: a session that the bridge would not have is refused at once', (t) => {
  const page = new Rialto();
  t.after(() => page.disconnect());
  for (const session of ['my shop', '', 'ä', 'x'.repeat(129), 'a\n']) {
    assert.throws(() => page.connect({ url: 'http://127.0.0.1:1', session }), /1 to 128 of letters/, session);
  }
});

// The tools were missing, and nothing said why.
test('rialto.js: a refused registration is in the console', async (t) => {
  const server = await serveBrowser(t);
  const said = [];
  const before = console.error;
  console.error = (...words) => said.push(words.join(' '));
  t.after(() => { console.error = before; });
  client(t, server, 'S').registerTool({ name: 'x'.repeat(129), description: 'x', handler: () => 'x' });
  await until('the reason', () => said.length);
  assert.match(said[0], /^rialto: the bridge refused: the name of a tool is longer than 128 bytes$/);
});

test('rialto.js: consent by a function of the page, grants and revocation', async (t) => {
  const server = await serveBrowser(t);
  const asked = [];
  const page = client(t, server, 'S', { consent: async (list) => { asked.push(list); return asked.length === 1 ? 'deny' : 'once'; } });
  page.registerTool({ name: 'write', description: 'x', capabilities: ['dom:write'], handler: () => 'written' });
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor('__btcp_request_capabilities');
  const ask = async () => (await mcp.call('__btcp_request_capabilities', { capabilities: ['dom:write'] })).result.content[0].text;
  assert.equal(await ask(), '{"granted":[],"denied":["dom:write"],"pending":[]}');
  assert.equal(await ask(), '{"granted":["dom:write"],"denied":[],"pending":[]}');
  assert.deepEqual(asked, [['dom:write'], ['dom:write']]);
  assert.equal(await mcp.text('write'), 'written');
  await until('used up', async () => !(await mcp.toolNames()).includes('write'));
  assert.deepEqual(await page.grant(['dom:*']), { granted: ['dom:*'] });
  await mcp.waitFor('write');
  assert.deepEqual(await page.revoke(['dom:*']), { granted: [] });
  await until('revoked', async () => !(await mcp.toolNames()).includes('write'));
});

// Every answer except 'deny' was a yes, and a function that threw gave no answer at all.
test('rialto.js: what is no clear yes is a no', async (t) => {
  const server = await serveBrowser(t);
  const words = [false, undefined, true, 'yes', 'Deny', new Error('no way to ask')];
  const page = client(t, server, 'S', { consent: async () => {
    const word = words.shift();
    if (word instanceof Error) throw word;
    return word;
  } });
  page.registerTool({ name: 'write', description: 'x', capabilities: ['dom:write'], handler: () => 'written' });
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor('__btcp_request_capabilities');
  while (words.length) {
    const told = `after ${words[0]}`;
    const { result } = await mcp.call('__btcp_request_capabilities', { capabilities: ['dom:write'] });
    assert.equal(result.content[0].text, '{"granted":[],"denied":["dom:write"],"pending":[]}', told);
  }
  assert.ok(!(await mcp.toolNames()).includes('write'));
});

// In Node a WebSocket that never opened fires an error but no close: the client did not try again.
test('rialto.js: keeps trying when the bridge is not there yet', async (t) => {
  const place = net.createServer();
  await new Promise((resolve) => { place.listen(0, '127.0.0.1', resolve); });
  const host = `127.0.0.1:${place.address().port}`;
  await new Promise((resolve) => { place.close(resolve); });
  const page = new Rialto();
  t.after(() => page.disconnect());
  let failed = 0;
  page.addEventListener('disconnected', () => { failed++; });
  page.registerTool({ name: 'greet', description: 'x', handler: () => 'hi' });
  page.connect({ url: `http://${host}`, session: 'S', page: 'P' });
  await until('two attempts', () => failed >= 2);
  const server = await serveBrowser(t, { listen: host });
  const mcp = await agent(server, 'S', { wait: true });
  await mcp.waitFor('greet');
});

test('rialto.js: connects when the bridge comes, once, and again after it was away', async (t) => {
  const first = await serveBrowser(t);
  const events = [];
  const page = new Rialto();
  t.after(() => page.disconnect());
  for (const name of ['connected', 'disconnected', 'call']) page.addEventListener(name, (e) => events.push(e.detail?.name ?? name));
  page.registerTool({ name: 'greet', description: 'x', handler: () => 'hi' });
  await assert.rejects(page.grant(['dom:read']), /not connected/);
  page.connect({ url: first.origin, session: 'S', page: 'P' });
  page.connect({ url: first.origin });
  const mcp = await agent(first, 'S', { wait: true });
  await mcp.waitFor('greet');
  assert.equal(await mcp.text('greet'), 'hi');
  assert.deepEqual(events, ['connected', 'greet'], 'connecting twice is connecting once');
  assert.equal(page.connected, true);
  await first.stop();
  await until('lost', () => events.at(-1) === 'disconnected');
  assert.equal(page.connected, false);
  const second = await serveBrowser(t, { listen: new URL(first.origin).host });
  page.hurry();
  const again = await agent(second, 'S', { wait: true });
  await again.waitFor('greet');
  assert.equal(await again.text('greet'), 'hi');
  page.disconnect();
  await until('gone', async () => (await again.toolNames()).length === 0);
});
