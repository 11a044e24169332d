// Pages written for WebMCP, in a real browser: with its current API, with older ones, and with none;
// and pages that have MCP-B's script instead of ours.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { npmFolder, until, within } from './lib.mjs';
import { agent, serveBrowser } from './browser_lib.mjs';
import { launch, site } from './browser_chromium_lib.mjs';

// A shop, as its author would write it for WebMCP: nothing in it is specific to Rialto.
const shop = `<p id="basket">empty</p><script>
  const stop = new AbortController();
  const context = document.modelContext ?? navigator.modelContext;
  context.registerTool({
    name: 'basket.add', title: 'Add', description: 'Puts a thing into the basket',
    inputSchema: { type: 'object', properties: { thing: { type: 'string' } } },
    annotations: { consequentialHint: true },
    execute: async ({ thing }) => { document.getElementById('basket').textContent = thing; return { basket: [thing] }; },
  }, { signal: stop.signal });
  context.registerTool({ name: 'say', description: 'Says it', annotations: { readOnlyHint: true }, execute: async () => 'plain words' });
  context.registerTool({ name: 'mcp', description: 'Answers as MCP does', execute: async () => ({ content: [{ type: 'text', text: 'shaped' }] }) });
  context.registerTool({ name: 'fail', description: 'Fails', execute: async () => { throw new Error('out of stock'); } });
</script>`;
const script = (server, session) => `<title>shop</title><script src="${server.origin}/webmcp.js" data-session="${session}"></script>`;
const text = (value) => ({ content: [{ type: 'text', text: value }], isError: false });

/** What every kind of page must do. `hints`: the annotations that the API itself passes on. */
async function shopping(page, client, hints = ['consequentialHint']) {
  await client.waitFor('basket_add', 'say', 'mcp', 'fail');
  const { tools } = (await client.request('tools/list')).result;
  const add = tools.find((tool) => tool.name === 'basket_add');
  assert.equal(add.title, 'Add');
  assert.equal(add.annotations.destructiveHint, hints.includes('consequentialHint') ? true : undefined,
    'what is consequential here is destructive to MCP');
  assert.deepEqual(add.inputSchema.properties, { thing: { type: 'string' } });
  assert.equal(tools.find((tool) => tool.name === 'say').annotations.readOnlyHint, true);
  assert.equal(tools.find((tool) => tool.name === 'say').inputSchema.type, 'object');
  assert.deepEqual((await client.call('basket_add', { thing: 'tea' })).result,
    { ...text('{"basket":["tea"]}'), structuredContent: { basket: ['tea'] } });
  assert.equal(await page.textContent('#basket'), 'tea');
  assert.deepEqual((await client.call('say')).result, text('plain words'));
  assert.deepEqual((await client.call('mcp')).result.content, [{ type: 'text', text: 'shaped' }]);
  const failed = (await client.call('fail')).result;
  assert.equal(failed.isError, true);
  await page.evaluate(() => stop.abort());
  await until('taken back', async () => !(await client.toolNames()).includes('basket_add'));
}

test('WebMCP: the browser\'s own, older ones, and none at all', async (t) => {
  const server = await serveBrowser(t);
  const context = await launch(t, '--enable-features=WebMCP');
  const visit = async (session, before, html = shop) => {
    const port = await site(t, script(server, session) + html);
    const page = await context.newPage();
    const errors = [];
    page.on('pageerror', (e) => errors.push(e.message));
    if (before) await page.addInitScript(before);
    await page.goto(`http://localhost:${port}/`);
    const client = await agent(server, session, { wait: true });
    return { page, client, errors };
  };
  const hide = () => {
    delete Document.prototype.modelContext;
    delete Navigator.prototype.modelContext;
  };

  await t.test('native: as the browser has it now, or the polyfill in one that has none', async (s) => {
    const { page, client, errors } = await visit('native');
    const native = await page.evaluate(() => /native code/.test(String(document.modelContext?.registerTool)));
    // The first browsers with WebMCP do not know all of today's hints.
    const hints = await page.evaluate(async () => Object.keys((({ ...all }) => all)((await document.modelContext.getTools())
      .find((tool) => tool.name === 'basket.add').annotations)));
    s.diagnostic(native ? `this browser has WebMCP with ${hints}` : 'this browser has no WebMCP');
    await shopping(page, client, hints);
    assert.match((await client.call('fail')).result.content[0].text, /out of stock|fail/i);
    // Some browsers report what a tool throws as an error of the page as well.
    assert.deepEqual(errors.filter((e) => e !== 'out of stock'), []);
  });

  await t.test('native, older: schemas and input are JSON texts', async () => {
    const { page, client } = await visit('texts', () => {
      const tools = new Map();
      const old = new EventTarget();
      old.registerTool = async (tool, { signal } = {}) => {
        tools.set(tool.name, tool);
        signal?.addEventListener('abort', () => tools.delete(tool.name)); // without an event: polling must find out
        old.dispatchEvent(new Event('toolchange'));
      };
      old.getTools = async () => [...tools.values()].map(({ execute, ...tool }) => ({ ...tool, inputSchema: tool.inputSchema ? JSON.stringify(tool.inputSchema) : '' }));
      old.executeTool = async ({ name }, input) => {
        if (typeof input !== 'string') throw new Error('Failed to parse input arguments');
        const value = await tools.get(name).execute(JSON.parse(input));
        return typeof value === 'string' ? value : JSON.stringify(value);
      };
      Object.defineProperty(Document.prototype, 'modelContext', { value: old, configurable: true });
    });
    await shopping(page, client);
  });

  await t.test('old: navigator.modelContext is heard, and still does its work', async () => {
    const { page, client } = await visit('old', () => {
      delete Document.prototype.modelContext;
      delete Navigator.prototype.modelContext;
      const registered = [];
      navigator.modelContext = {
        registered,
        registerTool(tool) { if (!tool.name) throw new TypeError('no name'); registered.push(tool.name); },
        unregisterTool(name) { registered.splice(registered.indexOf(name), 1); },
        provideContext() {},
        clearContext() {},
      };
    });
    await shopping(page, client);
    assert.deepEqual(await page.evaluate(() => navigator.modelContext.registered), ['basket.add', 'say', 'mcp', 'fail']);
    await page.evaluate(() => {
      try { navigator.modelContext.registerTool({ description: 'nameless' }); } catch { /* as it should be */ }
      navigator.modelContext.unregisterTool('fail');
    });
    await until('unregistered', async () => (await client.toolNames()).join() === 'say,mcp');
    await page.evaluate(() => navigator.modelContext.provideContext({ tools: [{
      name: 'ask', description: 'Asks', execute: async (input, host) => host.requestUserInteraction(async () => 'the user said so') }] }));
    await until('provided', async () => (await client.toolNames()).join() === 'ask');
    assert.equal(await client.text('ask'), 'the user said so');
    await page.evaluate(() => navigator.modelContext.clearContext());
    await until('cleared', async () => (await client.toolNames()).length === 0);
  });

  await t.test('none: the script is the API', async () => {
    const { page, client } = await visit('none', hide);
    await shopping(page, client);
    // A result that JSON cannot represent was never sent.
    await page.evaluate(() => document.modelContext.registerTool({ name: 'big', description: 'Too big for JSON',
      execute: async () => ({ content: [{ type: 'text', text: 1n }] }) }));
    await client.waitFor('big');
    assert.equal((await within(20_000, 'its end', client.call('big'))).result.isError, true);
    const seen = await page.evaluate(async () => {
      const { modelContext } = document;
      const outcome = (tool, options) => modelContext.registerTool(tool, options).then(() => 'fine', (e) => e.name);
      let changes = 0;
      modelContext.addEventListener('toolchange', () => { changes++; });
      const tool = { name: 'x', description: 'y', execute: async ({ a }) => a + 1 };
      const results = [modelContext === navigator.modelContext, await outcome(tool), await outcome(tool),
        await outcome({ ...tool, name: 'a b' }), await outcome({ ...tool, name: 'z', description: '' }),
        await outcome({ name: 'z', description: 'z' }), await outcome({ ...tool, name: 'z' }, { signal: AbortSignal.abort() })];
      const [found] = (await modelContext.getTools()).filter((x) => x.name === 'x');
      results.push(found.origin === location.origin, await modelContext.executeTool(found, { a: 1 }));
      await new Promise((resolve) => { setTimeout(resolve); });
      results.push(changes);
      modelContext.provideContext({ tools: [{ ...tool, name: 'only' }] });
      results.push((await modelContext.getTools()).map((x) => x.name).join());
      return results;
    });
    assert.deepEqual(seen, [true, 'fine', 'InvalidStateError', 'InvalidStateError', 'InvalidStateError', 'TypeError', 'AbortError', true, '2', 1, 'only']);
    await until('only', async () => (await client.toolNames()).join() === 'only');
    await page.evaluate(() => document.modelContext.clearContext());
    await until('cleared', async () => (await client.toolNames()).length === 0);
  });

  await t.test('a cancelled call aborts the tool\'s signal; a reload brings the tools back', async () => {
    const { page, client } = await visit('cancel', hide, `<script>
      document.modelContext.registerTool({ name: 'wait', description: 'Waits', execute: (_, { signal }) => new Promise((resolve, reject) => {
        document.title = 'waiting';
        signal.addEventListener('abort', () => { document.title = 'aborted'; reject(signal.reason); });
      }) });</script>`);
    await client.waitFor('wait');
    client.post('{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"wait"}}').catch(() => {});
    await page.waitForFunction(() => document.title === 'waiting');
    await client.notify('notifications/cancelled', { requestId: 77 });
    await page.waitForFunction(() => document.title === 'aborted');
    await page.reload();
    await client.waitFor('wait');
  });

  await t.test('MCP-B\'s embed.js finds us, and its page works unchanged', async () => {
    const folder = path.join(npmFolder, 'node_modules/@mcp-b/webmcp-local-relay/dist/browser');
    const own = fs.readFileSync(path.join(folder, 'embed.js'), 'utf8');
    const port = await site(t, {
      '/embed.js': own, '/widget.html': fs.readFileSync(path.join(folder, 'widget.html'), 'utf8'),
      '/': `<!doctype html><title>MCP-B shop</title><body><p id="basket">empty</p><script>
        const tools = new Map([['add', { name: 'add', description: 'Adds', inputSchema: { type: 'object', properties: { thing: { type: 'string' } } } }]]);
        const changed = new EventTarget();
        Object.defineProperty(navigator, 'modelContext', { value: Object.assign(changed, {
          listTools: () => [...tools.values()],
          callTool: async ({ name, arguments: { thing } }) => {
            document.getElementById('basket').textContent = thing;
            return { content: [{ type: 'text', text: name + ' ' + thing }] };
          } }) });
      </script><script src="/embed.js" data-relay-port="${new URL(server.origin).port}"></script>`,
    });
    const page = await context.newPage();
    await page.goto(`http://localhost:${port}/`);
    const tab = await until('its tab id', () => page.evaluate(() => sessionStorage.getItem('__webmcp_relay_tab_id')));
    const client = await agent(server, tab, { wait: true });
    await client.waitFor('add');
    assert.equal(await client.text('add', { thing: 'tea' }), 'add tea');
    assert.equal(await page.textContent('#basket'), 'tea');
    await page.evaluate(() => {
      tools.set('more', { name: 'more', description: 'More', inputSchema: { type: 'object' } });
      navigator.modelContext.dispatchEvent(new Event('toolschanged'));
    });
    await client.waitFor('more');
    await page.reload();
    await until('as it was', async () => (await client.toolNames()).join() === 'add', 20_000);
    await page.close();
    await until('gone', async () => (await client.toolNames()).length === 0);
  });
});
