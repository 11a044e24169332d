// A real browser: the demo page's tools are listed and called by the MCP SDK while Chromium shows
// what they do. Screenshots go to build/test-logs for people to look at.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { exchange, load, root, until, within } from './lib.mjs';
import { atOnce, serveBrowser } from './browser_lib.mjs';
import { launch, site } from './browser_chromium_lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ToolListChangedNotificationSchema } = load('@modelcontextprotocol/sdk/types.js');

const shots = path.join(root, 'build/test-logs');

async function connect(t, server, session) {
  const client = new Client({ name: 'sdk', version: '1' });
  let changes = 0;
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => { changes++; });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}?session=${session}`)));
  t.after(() => client.close());
  return { client, changes: () => changes, names: async () => (await client.listTools()).tools.map((x) => x.name) };
}

const connected = (page) => page.waitForSelector('#state.on');
const shoot = async (page, name) => {
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `browser-${name}.png`) });
};

test('the demo page, from the first connection to the closed tab', async (t) => {
  const server = await serveBrowser(t);
  const context = await launch(t);
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (e) => errors.push(e.message));
  await page.goto(`${server.origin}/demo`);
  await connected(page);
  const { client, changes, names } = await connect(t, server, 'demo');
  assert.deepEqual(await names(), ['list_cards', 'add_card', 'clear_done', '__btcp_request_capabilities']);

  // A call changes what the user sees.
  const added = await client.callTool({ name: 'add_card', arguments: { title: 'Written by an agent <b>', column: 'doing' } });
  const card = JSON.parse(added.content[0].text);
  assert.deepEqual(added.structuredContent, card);
  assert.equal(await page.textContent(`[data-column=doing] [data-card="${card.id}"] b`), 'Written by an agent <b>');
  await shoot(page, 'demo');

  // A tool that needs consent: the user is asked, and a script cannot answer for them.
  await assert.rejects(client.callTool({ name: 'move_card', arguments: { id: card.id, column: 'done' } }), /Capability not granted: dom:write/);
  const asked = client.callTool({ name: '__btcp_request_capabilities', arguments: { capabilities: ['dom:write', 'clipboard:read'] } });
  await page.waitForSelector('dialog[open]');
  await page.waitForTimeout(100);
  await shoot(page, 'consent');
  await page.evaluate(() => [...document.documentElement.children].find((e) => e.shadowRoot)
    .shadowRoot.querySelector('[data-answer=session]').click());
  assert.ok(await page.isVisible('dialog[open]'), 'a click by a script is nobody\'s consent');
  await page.click('text=Allow for now');
  assert.equal((await asked).content[0].text, '{"granted":["dom:write","clipboard:read"],"denied":[],"pending":[]}');
  await until('list_changed', () => changes() > 0);
  assert.ok((await names()).includes('move_card'));
  await client.callTool({ name: 'move_card', arguments: { id: card.id, column: 'done' } });
  assert.equal(await page.textContent(`[data-column=done] [data-card="${card.id}"] b`), 'Written by an agent <b>');
  const wrong = await client.callTool({ name: 'move_card', arguments: { id: 999, column: 'done' } });
  assert.deepEqual([wrong.isError, wrong.content[0].text], [true, 'there is no card #999']);

  // The page unregisters a tool.
  let before = changes();
  await page.uncheck('#clear');
  await until('list_changed', () => changes() > before);
  assert.ok(!(await names()).includes('clear_done'));

  // After a reload the page's tools are back, and what was granted for the session still holds.
  before = changes();
  await page.reload();
  await connected(page);
  await until('tools', async () => (await names()).includes('clear_done'));
  assert.ok((await names()).includes('move_card'));
  assert.deepEqual(errors, []);

  // The tab is closed in the middle of a call.
  let tab = page;
  await atOnce('the error', 100, async (n) => {
    if (n) {
      tab = await context.newPage();
      await tab.goto(`${server.origin}/demo`);
      await connected(tab);
    }
    await tab.evaluate(() => rialto.registerTool({ name: 'hang', description: 'Never ends', handler: () => new Promise(() => {}) }));
    await until('hang', async () => (await names()).includes('hang'));
    const hanging = client.callTool({ name: 'hang' }).then(() => assert.fail('it cannot end'), (error) => ({ error, at: Date.now() }));
    await tab.waitForFunction(() => document.getElementById('log').textContent.includes('hang'));
    const gone = until('the page to be gone', async () => {
      const { sessions } = await (await fetch(`${server.origin}/sessions`)).json();
      return !sessions[0].hasBrowser && Date.now();
    }, 20_000);
    await tab.close();
    const { error, at } = await within(20_000, 'the error', hanging);
    assert.match(error.message, /The page left before it answered/);
    return at - await gone;
  });
  await until('no tools', async () => (await names()).length === 0);
});

test('consent denied, and granted for good', async (t) => {
  const server = await serveBrowser(t);
  const context = await launch(t);
  const page = await context.newPage();
  await page.goto(`${server.origin}/demo?session=mine`);
  await connected(page);
  const { client, names } = await connect(t, server, 'mine');
  const ask = async (answer, capabilities = ['dom:write']) => {
    const asked = client.callTool({ name: '__btcp_request_capabilities', arguments: { capabilities } });
    await page.waitForSelector('dialog[open]');
    await answer();
    return (await asked).content[0].text;
  };
  assert.equal(await ask(() => page.keyboard.press('Escape')), '{"granted":[],"denied":["dom:write"],"pending":[]}');
  // A wildcard at the end of a longer name was not shown as risky: network:fetch:* means any site.
  await ask(async () => {
    assert.deepEqual(await page.locator('dialog li.risky code').allTextContents(), ['network:fetch:*', 'media:camera']);
    await page.keyboard.press('Escape');
  }, ['dom:read', 'network:fetch:*', 'network:fetch:same-origin', 'media:camera']);
  assert.ok(!(await names()).includes('move_card'));
  assert.equal(await ask(() => page.click('text=Always')), '{"granted":["dom:write"],"denied":[],"pending":[]}');
  await until('move_card', async () => (await names()).includes('move_card'));
  const other = await context.newPage();
  await other.goto(`${server.origin}/demo?session=another`);
  await connected(other);
  const second = await connect(t, server, 'another');
  assert.ok((await second.names()).includes('move_card'), 'the same origin in another session');
  await other.evaluate(() => rialto.revoke(['dom:write']));
  await until('hidden', async () => !(await second.names()).includes('move_card'));
});

test('a question that nobody waits for any more goes away', async (t) => {
  const server = await serveBrowser(t);
  const context = await launch(t);
  const page = await context.newPage();
  await page.goto(`${server.origin}/demo?session=asked`);
  await connected(page);
  const { client } = await connect(t, server, 'asked');
  client.callTool({ name: '__btcp_request_capabilities', arguments: { capabilities: ['dom:write'] } }).catch(() => {});
  await page.waitForSelector('dialog[open]');
  await page.evaluate(() => rialto.grant(['dom:write']));
  await page.waitForSelector('dialog', { state: 'detached' });
  client.callTool({ name: '__btcp_request_capabilities', arguments: { capabilities: ['geolocation'] } }).catch(() => {});
  await page.waitForSelector('dialog[open]');
  await server.stop();
  await page.waitForSelector('dialog', { state: 'detached' });
  await page.waitForSelector('#state:not(.on)');
});

test('a page of a foreign origin is refused', async (t) => {
  const server = await serveBrowser(t);
  const port = await site(t, '<title>evil</title>');
  const context = await launch(t);
  const page = await context.newPage();
  const outcome = async (origin) => {
    await page.goto(`${origin}:${port}/`);
    return page.evaluate((url) => new Promise((resolve) => {
      const socket = new WebSocket(`${url}/ws?sessionId=E&clientType=browser`);
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('refused');
    }), server.origin.replace('http', 'ws'));
  };
  // *.localhost is loopback to the browser and a foreign site to us.
  assert.equal(await outcome('http://evil.localhost'), 'refused');
  assert.equal(await outcome('http://localhost'), 'open');
  // Images and frames are fetched without an Origin: any site could open sessions, or put a stream of its
  // own before that of a page whose session it knows.
  await page.goto(`http://evil.localhost:${port}/`);
  await page.evaluate((url) => Promise.all(['img', 'iframe', 'script'].map((kind) => new Promise((resolve) => {
    const element = document.createElement(kind);
    element.onload = element.onerror = resolve;
    element.src = `${url}/events?sessionId=${kind}&clientType=browser`;
    document.body.append(element);
    setTimeout(resolve, 1000); // a stream that is let in never finishes loading
  }))), server.origin);
  const { sessions } = JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text);
  assert.deepEqual(sessions.map((s) => s.id).filter((id) => id !== 'E'), []);
  const read = await (async () => {
    await page.goto(`http://evil.localhost:${port}/`);
    return page.evaluate((url) => fetch(`${url}/sessions`).then((r) => r.status, () => 'refused'), server.origin);
  })();
  assert.equal(read, 'refused');
});
