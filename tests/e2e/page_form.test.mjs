// The form of a tool in the page: what it sends and what it does not, JSON that is sent as typed, results shown by their
// type, and lines for the shell that work.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exchange, HttpClient, rialtoBin, root, runCommand, serve, serveAndConnect, tempDir, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { accessible, LONG, open as openPage, shoot } from './page_lib.mjs';

const script = path.join(root, 'tests/fixture/forms_server.mjs');
const forms = (...args) => ({ command: process.execPath, args: [script, ...args] });

let browser, close;
before(async () => { browser = await launch({ after: (end) => { close = end; } }); });
after(() => close?.());

async function openTool(t, origin, name, options) {
  const page = await openPage(t, browser, origin, { view: `tools/${encodeURIComponent(name)}`, ...options });
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  return page;
}
const call = (page) => page.getByRole('button', { name: 'Call', exact: true }).click();
const json = (page) => page.getByLabel('Arguments as JSON');
const field = (page, name) => page.getByLabel(name, { exact: true });
/** The arguments as the server got them, as text. */
async function sent(page) {
  const box = page.locator('.result [data-pane=Text] pre');
  const line = await until('the result', async () => await box.count() === 1 && (await box.innerText()).match(/"arguments":([^]*?)(?:,"_meta"|\}\}?$)/)?.[1], LONG);
  return line;
}

test('a form from a schema: titles, groups, lists, choices, defaults; each follows the other', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__order']);
  const asked = [];
  const page = await openTool(t, server.origin, 'f__order', { prepare: (p) => p.on('request', (r) => { if (r.url().includes('/api/mcp')) asked.push(r); }) });
  assert.deepEqual(JSON.parse(await json(page).inputValue()), { price: 1.5, note: 'none' }, 'defaults stand in their fields');
  assert.equal(await field(page, 'price').inputValue(), '1.5');

  // What is missing or invalid is marked, and nothing is sent.
  await field(page, 'count').fill('12');
  await field(page, 'Customer').fill('x');
  await call(page);
  for (const name of ['Customer', 'count']) assert.equal(await field(page, name).getAttribute('aria-invalid'), 'true', name);
  assert.ok(await field(page, 'Customer').evaluate((e) => e === document.activeElement), 'the first of them has the focus');
  await accessible(page, 'a form with errors');
  await field(page, 'count').fill('abc');
  await call(page);
  assert.equal(await field(page, 'count').inputValue(), 'abc', 'what was typed stays');
  assert.equal(await field(page, 'count').getAttribute('aria-invalid'), 'true');
  assert.deepEqual(asked, []);

  await field(page, 'Customer').fill('Ann');
  await field(page, 'count').fill('3');
  await field(page, 'colour').selectOption({ label: 'Green' });
  await field(page, 'price').fill('');
  await field(page, 'urgent').check();
  const address = page.getByRole('group', { name: 'Address' });
  await address.getByLabel('zip', { exact: true }).fill('12');
  const tags = page.getByRole('group', { name: 'Tags' });
  await tags.getByRole('button', { name: 'Add' }).click();
  await page.keyboard.type('one');
  await tags.getByRole('button', { name: 'Add' }).click();
  await page.keyboard.type('two');
  await call(page);
  assert.equal(await address.getByLabel('city', { exact: true }).getAttribute('aria-invalid'), 'true', 'required once its group is used');
  await address.getByLabel('city', { exact: true }).fill('Rome');
  await shoot(page, 'form');
  await call(page);
  assert.deepEqual(JSON.parse(await sent(page)), { name: 'Ann', count: 3, colour: 'g', urgent: true, note: 'none', address: { city: 'Rome', zip: '12' }, tags: ['one', 'two'] });
  assert.ok(await page.locator('.result').evaluate((e) => e === document.activeElement), 'the result has the focus');

  // JSON fills in the form; members that the form does not have are kept.
  await json(page).fill('{"name":"Bob","count":2,"more":{"x":1.50},"tags":["t"]}');
  assert.equal(await field(page, 'Customer').inputValue(), 'Bob');
  assert.equal(await field(page, 'Tags 1').inputValue(), 't');
  await field(page, 'Customer').fill('Bo');
  assert.match(await json(page).inputValue(), /"name": "Bo"[^]*"x": 1\.50/);
  await json(page).fill('{"name":');
  assert.equal(await json(page).getAttribute('aria-invalid'), 'true');
  const before_ = asked.length;
  await call(page);
  assert.equal(asked.length, before_, 'what is no JSON is not sent');
});

test('what was typed as JSON is sent as typed', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__any']);
  const page = await openTool(t, server.origin, 'f__any');
  await json(page).fill('{"z":12345678901234567890,"b":1.50,"a":[1e3,-0.0]}');
  await call(page);
  assert.equal(await sent(page), '{"z":12345678901234567890,"b":1.50,"a":[1e3,-0.0]}');
  await page.goto(`${server.origin}/#/tools/f__order`);
  await field(page, 'Customer').fill('Ann');
  await field(page, 'count').fill('2');
  await json(page).fill('{"name":"Ann","count":2,"price":1.50,"note":"x"}');
  await field(page, 'note').fill('y');
  await call(page);
  assert.match(await sent(page), /"price":\s*1\.50/, 'also when another field was changed after it');
});

test('references: followed inside the document, JSON where they come round again or point elsewhere; nothing is fetched', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__tree']);
  const asked = [];
  const page = await openTool(t, server.origin, 'f__tree', { prepare: (p) => p.on('request', (r) => asked.push(r.url())) });
  const node = page.getByRole('group', { name: 'root' });
  assert.equal(await node.getByLabel('value', { exact: true }).evaluate((e) => e.tagName), 'INPUT');
  for (const name of ['next', 'far', 'self']) assert.equal(await field(page, name).evaluate((e) => `${e.tagName} ${e.placeholder}`), 'TEXTAREA JSON', name);
  await node.getByLabel('value', { exact: true }).fill('v');
  await field(page, 'next').fill('{"value":"w"');
  await call(page);
  assert.equal(await field(page, 'next').getAttribute('aria-invalid'), 'true');
  await field(page, 'next').fill('{"value":"w"}');
  await call(page);
  assert.deepEqual(JSON.parse(await sent(page)), { root: { value: 'v', next: { value: 'w' } } });
  assert.deepEqual(asked.filter((u) => !u.startsWith(server.origin)), []);
  for (const name of ['f__laughs', 'f__wide']) {
    await page.goto(`${server.origin}/#/tools/${name}`);
    await page.getByRole('heading', { name: `Tools: ${name}` }).waitFor();
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
    const elements = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(elements < 5000, `${name}: ${elements} elements`);
  }
});

// 'required' that is no list, and a format with the name of a member that each object has, ended the page's script.
test('a schema with strange values has a form', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__strange']);
  const page = await openTool(t, server.origin, 'f__strange');
  assert.equal(await field(page, 'text').getAttribute('aria-required'), 'true');
  await field(page, 'text').fill('x');
  await field(page, 'either').fill('y');
  await call(page);
  assert.deepEqual(JSON.parse(await sent(page)), { text: 'x', either: 'y' });
});

// A pattern can take practically for ever to match: the page hung while it was tried.
test('a pattern that would never end is the server\'s to try', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__endless']);
  const page = await openTool(t, server.origin, 'f__endless');
  await field(page, 'text').fill(`${'a'.repeat(60)}!`);
  await call(page);
  assert.deepEqual(JSON.parse(await sent(page)), { text: `${'a'.repeat(60)}!` });
});

test('results as what they are: pictures and sounds from memory, drawings and unknown types not drawn', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__kinds']);
  const asked = [];
  const page = await openTool(t, server.origin, 'f__kinds', { prepare: (p) => p.on('request', (r) => asked.push(r.url())) });
  await call(page);
  await page.locator('.result img').waitFor();
  assert.match(await page.locator('.result img').getAttribute('src'), /^blob:/);
  await until('the picture', () => page.locator('.result img').evaluate((i) => i.naturalWidth === 1));
  assert.equal(await page.locator('.result img').count(), 1, 'SVG is not drawn');
  assert.equal(await page.locator('.result audio').count(), 1);
  assert.match(await page.locator('.result').innerText(), /image\/svg\+xml[^]*not drawn[^]*resource link[^]*example\.invalid[^]*of tomorrow/);
  assert.equal(await page.locator('.result table tr').count(), 3, 'a list of objects is a table');
  await accessible(page, 'a result');
  assert.deepEqual(asked.filter((u) => !u.startsWith(server.origin) && !u.startsWith('blob:')), []);
});

test('a line of curl and one of rialto, run in sh, give the same; with tokens the line names a variable', async (t) => {
  const sha = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
  const server = await serve(t, { servers: { f: forms() }, auth: { tokens: [{ name: 'me', hash: sha('token-of-mine'), role: 'operator' }] } });
  await (await new HttpClient(server.url, { token: 'token-of-mine' }).connect()).waitFor('f__order');
  await browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.origin });
  const page = await openTool(t, server.origin, 'f__order', { prepare: (p) => p.addInitScript(() => sessionStorage.setItem('token', 'token-of-mine')) });
  await json(page).fill('{"name":"O\'Neil $HOME `id` \\"q\\"","count":2,"price":1.50}');
  const line = async (name) => {
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await page.getByRole('button', { name }).click();
    return until('the line', () => page.evaluate(() => navigator.clipboard.readText()), LONG);
  };
  const curl = await line('Copy as curl');
  assert.ok(!curl.includes('\n') && !curl.includes('token-of-mine') && curl.includes('$RIALTO_TOKEN'), curl);
  const ran = await runCommand('/bin/sh', ['-c', curl], { env: { RIALTO_TOKEN: 'token-of-mine' } });
  assert.equal(ran.code, 0, ran.stderr);
  const answer = JSON.parse(ran.stdout.replace(/^data: /m, '').trim());
  const got = JSON.parse(answer.result.content[0].text).params.arguments;
  assert.deepEqual(got, { name: 'O\'Neil $HOME `id` "q"', count: 2, price: 1.5 });
  assert.match(answer.result.content[0].text, /"price":1\.50/);

  const rialtoLine = await line('Copy as rialto call');
  assert.match(rialtoLine, /^rialto call f__order '/);
  const folder = tempDir();
  fs.symlinkSync(rialtoBin, path.join(folder, 'rialto'));
  const said = await runCommand('/bin/sh', ['-c', `${rialtoLine}`], { cwd: server.dir, env: { PATH: `${folder}:${process.env.PATH}`, RIALTO_CONFIG: server.config, XDG_RUNTIME_DIR: server.dir } });
  assert.equal(said.code, 0, said.stderr);
  assert.match(said.stdout, /O'Neil \$HOME/);
});

test('a secret in a result is hidden in the page, and agents get it as it is', async (t) => {
  const { server, client } = await serveAndConnect(t, { control: 'off', servers: { f: { ...forms(), env: { KEY: '${RIALTO_TEST_KEY}' } } } }, ['f__secret'], { env: { RIALTO_TEST_KEY: 'sk-test-0123456789abcdef0123456789' } });
  assert.match((await client.call('f__secret')).result.content[0].text, /sk-test-0123456789/);
  const page = await openTool(t, server.origin, 'f__secret');
  await call(page);
  await page.locator('.result [data-pane=Text]').waitFor();
  assert.match(await page.locator('.result').innerText(), /the key is/);
  assert.doesNotMatch(await page.content(), /sk-test-0123456789/);
});

test('calls of the page are among the calls, with who made them; a viewer has no buttons that do anything', async (t) => {
  const sha = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
  const server = await serve(t, { control: 'off', servers: { f: forms() }, auth: { tokens: [{ name: 'boss', hash: sha('token-of-boss'), role: 'operator' }, { name: 'eye', hash: sha('token-of-eye'), role: 'viewer' }] } });
  await (await new HttpClient(server.url, { token: 'token-of-boss' }).connect()).waitFor('f__any');
  const as = (token) => ({ prepare: (p) => p.addInitScript((text) => sessionStorage.setItem('token', text), token) });
  const page = await openTool(t, server.origin, 'f__any', as('token-of-boss'));
  await call(page);
  await sent(page);
  const calls = JSON.parse((await exchange(`${server.origin}/api/calls`, { method: 'GET', headers: { Authorization: 'Bearer token-of-boss' } })).text);
  assert.ok(calls.some((c) => c.name === 'any' && c.token === 'boss'), JSON.stringify(calls));

  const other = await openTool(t, server.origin, 'f__any', as('token-of-eye'));
  assert.ok(await other.getByRole('button', { name: 'Call', exact: true }).isDisabled());
  await other.goto(`${server.origin}/#/servers`);
  await other.locator('tr[data-server=f]').waitFor();
  for (const button of await other.locator('#view button').all()) assert.ok(await button.isDisabled(), await button.innerText());
});

test('ten thousand tools are searched and turned over by pages', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', limits: { }, servers: { f: forms('--many', '10000') } }, []);
  const page = await openPage(t, browser, server.origin, { view: 'tools' });
  await until('all of them', async () => /10,0\d\d items/.test(await page.locator('#view').innerText()), 60_000);
  const size = () => page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(await size() < 5000, `${await size()} elements`);
  await page.getByRole('button', { name: 'Later' }).click();
  await until('the next page', async () => /101–200 of/.test(await page.locator('.pager').innerText()), LONG);
  await page.getByLabel('Search', { exact: true }).fill('tool_7777');
  await until('the one', async () => /tool_7777/.test(await page.locator('.offer').first().innerText()), LONG);
  assert.ok(await size() < 5000);
  assert.match(page.url(), /q=tool_7777/);
});

test('hidden tools are shown on request, with what hides them: a list of their server, a view', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', views: { calm: { deny: ['ord*'] } }, servers: { f: { ...forms(), deny: ['lau*'] } } }, ['f__order']);
  const page = await openPage(t, browser, server.origin, { view: 'tools' });
  const item = (name) => page.locator(`.offer[data-item="${name}"]`);
  await item('f__order').waitFor();
  assert.equal(await item('laughs').count(), 0);
  await page.getByLabel('Show hidden').check();
  await item('laughs').waitFor();
  assert.match(await item('laughs').innerText(), /hidden by deny: lau\* of server f/);
  assert.doesNotMatch(await item('f__order').innerText(), /hidden/);
  await page.getByLabel('View', { exact: true }).selectOption('calm');
  await until('what the view hides', async () => /hidden by view calm/.test(await item('f__order').innerText()), LONG);
  await page.getByLabel('Show hidden').uncheck();
  await until('the rest', async () => await item('f__order').count() === 0 && await item('f__any').count() === 1, LONG);
  await page.reload();
  await item('f__any').waitFor();
  assert.equal(await page.getByLabel('View', { exact: true }).inputValue(), 'calm');
  assert.equal(await item('f__order').count(), 0);
});

test('a server that is hostile in every string neither breaks the page nor runs anything', async (t) => {
  const evil = '"><img src=/pwned onerror="window.pwned=1"><script>window.pwned=2</script>{{7*7}}${x}\u202e\u0000\x1b[31m\ud83d\ude00';
  const file = path.join(tempDir(), 'evil');
  fs.writeFileSync(file, JSON.stringify(evil));
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms(file) } }, ['f__kinds']);
  const asked = [];
  const page = await openTool(t, server.origin, 'f__kinds', { prepare: (p) => p.on('request', (r) => asked.push(r.url())) });
  await call(page);
  await page.locator('.result').getByText('of tomorrow').first().waitFor();
  await page.goto(`${server.origin}/#/tools`);
  const odd = page.locator('.offer a').filter({ hasText: 'odd' }).first();
  await odd.click();
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  await call(page);
  await page.locator('.result').waitFor();
  for (const view of ['servers/f', 'log', 'calls', 'start', 'numbers', 'sessions']) {
    await page.goto(`${server.origin}/#/${view}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }
  // A result of five million characters.
  await page.goto(`${server.origin}/#/tools/f__big`);
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  await call(page);
  await until('the end', async () => /very long|could not|Failed/.test(await page.locator('.stage').innerText()), 60_000);
  assert.ok((await page.locator('.stage').innerText()).length < 500_000);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.evaluate(() => document.querySelectorAll('#view script, #view img:not([src^="blob:"]), #view iframe').length), 0);
  assert.deepEqual(asked.filter((u) => new URL(u).pathname.startsWith('/pwned') || (!u.startsWith(server.origin) && !u.startsWith('blob:'))), []);
});
