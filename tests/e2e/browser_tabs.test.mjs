// Tabs can be told apart. A page was only a hash in the names of its tools and a uuid in lists: with two
// tabs of one shop nobody could say which basket was meant. Also, the meta-tool was listed once for every
// session that hid a tool.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, until } from './lib.mjs';
import { Socket, agent, greet, page, serveBrowser, text } from './browser_lib.mjs';

/** A page that sends its title and address; `key`: its client id. */
async function tab(t, server, session, { origin, key, ...about }, tools = [greet]) {
  const socket = new Socket(t, server, `/ws?sessionId=${session}&clientType=browser${key ? `&clientId=${key}` : ''}`, origin ? { Origin: origin } : {});
  await socket.opened;
  socket.pongs = true;
  await socket.request('tools/register', { tools, page: about });
  return socket;
}

const shop = { origin: 'http://localhost:3000', title: 'My Shop: Basket', url: 'http://localhost:3000/basket?id=7' };

test('title, address and origin: in lists, descriptions, /sessions, /status and list_pages', async (t) => {
  const server = await serveBrowser(t);
  const first = (await tab(t, server, 'one', shop)).answer(() => text('one'));
  const second = (await tab(t, server, 'two', { ...shop, title: 'My Shop: Basket' })).answer(() => text('two'));
  await tab(t, server, 'three', { title: 'elsewhere', url: 'http://evil.example/', origin: 'http://localhost:4000' }, [{ ...greet, name: 'other' }]);
  const client = await agent(server);
  await client.waitFor('greet', 'other', 'list_pages');
  const { tools } = (await client.request('tools/list', {})).result;
  const greets = tools.filter((x) => x.name.startsWith('greet'));
  assert.deepEqual(greets.map((x) => x.name), ['greet', 'greet-localhost-my-shop-basket-2']);
  assert.equal(greets[0].description, '[My Shop: Basket, http://localhost:3000/basket] Greets');
  assert.equal(await client.text('greet'), 'one');
  assert.equal(await client.text('greet-localhost-my-shop-basket-2'), 'two');
  const pages = [
    { name: 'localhost-my-shop-basket', title: shop.title, url: shop.url, origin: shop.origin, session: 'one' },
    { name: 'localhost-my-shop-basket-2', title: shop.title, url: shop.url, origin: shop.origin, session: 'two' },
    { name: 'localhost-elsewhere', title: 'elsewhere', origin: 'http://localhost:4000', session: 'three' }, // the URL of another site is left out
  ];
  const byName = (a, b) => (a.name < b.name ? -1 : 1);
  const same = (given) => assert.deepEqual([...given].sort(byName), [...pages].sort(byName));
  same(JSON.parse((await client.text('list_pages'))).pages);
  const { sessions } = JSON.parse((await exchange(`${server.origin}/sessions`, { method: 'GET' })).text);
  same(sessions.flatMap((s) => s.pages));
  same(JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text).browser.tabs);
  // A page whose title and URL change keeps its name.
  await second.request('tools/register', { tools: [greet], page: { title: 'Orders', url: 'http://localhost:3000/orders' } });
  pages[1] = { ...pages[1], title: 'Orders', url: 'http://localhost:3000/orders' };
  same(JSON.parse((await client.text('list_pages'))).pages);
  for (const socket of [first, second]) socket.ws.terminate();
  await until('gone', async () => JSON.parse(await client.text('list_pages')).pages.length === 1);
});

// An address only had to begin with the site's origin: a page of bank.co passed for one of bank.com.
test('the address of a page is one of its own site', async (t) => {
  const origin = 'https://bank.co';
  const server = await serveBrowser(t, { browser: { origins: [origin] } });
  const client = await agent(server);
  const address = async (session, url) => {
    const socket = await tab(t, server, session, { origin, title: 'Bank', url });
    const pages = JSON.parse(await client.text('list_pages')).pages;
    socket.ws.terminate();
    return pages.find((p) => p.session === session).url;
  };
  await tab(t, server, 'S', shop);
  await client.waitFor('list_pages');
  for (const [n, rest] of ['m/login', 'm', '.evil.example/', ':8443/', '@evil.example/', '\\.evil.example/'].entries()) {
    assert.equal(await address(`wrong-${n}`, origin + rest), undefined, rest);
  }
  for (const [n, rest] of ['', '/', '/login', '?a=1', '#top'].entries()) {
    assert.equal(await address(`right-${n}`, origin + rest), origin + rest);
  }
});

test('two pages of one session with the same tool, and a page that says nothing of itself', async (t) => {
  const server = await serveBrowser(t);
  await tab(t, server, 'S', shop);
  await tab(t, server, 'S', { ...shop, title: 'Orders' });
  await page(t, server, 'quiet', [{ ...greet, name: 'quiet' }]);
  const client = await agent(server, 'S');
  assert.deepEqual(await client.toolNames(), ['greet', 'greet_localhost-orders']);
  const all = await agent(server);
  const quiet = (await all.request('tools/list', {})).result.tools.find((x) => x.name === 'quiet');
  assert.equal(quiet.description, 'Greets');
  assert.ok(JSON.parse(await all.text('list_pages')).pages.some((p) => p.name === 'quiet' && p.session === 'quiet'));
});

// With rialto.js every document of a tab is a page of its own. Those that the user had left kept their names, so that the
// tab's name counted up with every link, and their tools filled limits.catalog until no page could offer anything.
test('pages that were left take no names and no room from those that are there', async (t) => {
  const server = await serveBrowser(t, { limits: { catalog: '64KiB' } });
  const tools = [{ ...greet, description: 'x'.repeat(14_000) }];
  const client = await agent(server);
  const pages = async () => JSON.parse(await client.text('list_pages')).pages;
  await tab(t, server, 'other', { title: 'Other' }, [{ ...greet, name: 'other' }]);
  await client.waitFor('list_pages');
  for (let i = 0; i < 8; i++) {
    const socket = await tab(t, server, 'S', { ...shop, key: `document-${i}` }, tools);
    assert.deepEqual(socket.messages().at(-1).result, { registered: 1 }, `document ${i}`);
    assert.deepEqual((await pages()).map((p) => p.name).sort(), ['localhost-my-shop-basket', 'other']);
    socket.ws.close(1000);
    await socket.closed;
    await until('its end', async () => (await pages()).length === 1);
  }
});

test('a page that comes back has its name, or another one if that was taken meanwhile', async (t) => {
  const server = await serveBrowser(t);
  const client = await agent(server);
  await tab(t, server, 'other', { title: 'Other' }, [{ ...greet, name: 'other' }]);
  await client.waitFor('list_pages');
  const names = async () => JSON.parse(await client.text('list_pages')).pages.map((p) => p.name).filter((n) => n !== 'other').sort();
  const first = await tab(t, server, 'S', { ...shop, key: 'first' });
  const second = await tab(t, server, 'T', { ...shop, key: 'second' });
  second.answer(() => text('second'));
  assert.deepEqual(await names(), ['localhost-my-shop-basket', 'localhost-my-shop-basket-2']);
  first.ws.close(1000);
  await first.closed;
  await until('its end', async () => (await names()).join() === 'localhost-my-shop-basket-2');
  const back = new Socket(t, server, '/ws?sessionId=S&clientType=browser&clientId=first', { Origin: shop.origin });
  await back.opened;
  await until('both', async () => (await names()).join() === 'localhost-my-shop-basket,localhost-my-shop-basket-2');
  back.ws.close(1000);
  await back.closed;
  await until('its end', async () => (await names()).length === 1);
  const third = await tab(t, server, 'U', shop);
  third.answer(() => text('third'));
  assert.deepEqual(await names(), ['localhost-my-shop-basket', 'localhost-my-shop-basket-2']);
  (await tab(t, server, 'S', { ...shop, key: 'first' })).answer(() => text('first'));
  assert.deepEqual(await names(), ['localhost-my-shop-basket', 'localhost-my-shop-basket-2', 'localhost-my-shop-basket-3']);
  const greets = (await client.toolNames()).filter((n) => n.startsWith('greet'));
  assert.equal(greets.length, 3);
  assert.deepEqual((await Promise.all(greets.map((n) => client.text(n)))).sort(), ['first', 'second', 'third']);
});

test('the meta-tool is one tool whatever the number of sessions, and can be called while it is listed', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const meta = '__btcp_request_capabilities';
  const client = await agent(server);
  const sockets = {};
  for (const [session, capability] of [['a', 'dom:write'], ['b', 'clipboard:read'], ['c', 'dom:write']]) {
    const socket = await tab(t, server, session, {}, [{ ...greet, name: `tool_${session}`, capabilities: [capability] }]);
    socket.onFrame = (m) => { if (m.method === 'capabilities/request') socket.send({ jsonrpc: '2.0', id: m.id, result: { granted: m.params.capabilities } }); };
    sockets[session] = socket;
  }
  await client.waitFor(meta);
  assert.deepEqual((await client.toolNames()).filter((n) => n.startsWith('__')), [meta]);
  const ask = async (capability) => (await client.call(meta, { capabilities: [capability] })).result.content[0].text;
  assert.equal(await ask('clipboard:read'), '{"granted":["clipboard:read"],"denied":[],"pending":[]}');
  await client.waitFor('tool_b');
  for (let i = 0; i < 2; i++) await ask('dom:write');
  await client.waitFor('tool_a', 'tool_c');
  await until('nothing is hidden', async () => !(await client.toolNames()).includes(meta));
});
