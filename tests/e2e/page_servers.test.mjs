// The views for operators: servers added, changed, switched and removed, a rejected configuration, a server's own page,
// sessions, web pages, numbers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exchange, fake, fakeBin, HttpClient, load, serve, serveAndConnect, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { accessible, LONG, open as openPage, shoot, shows, visit } from './page_lib.mjs';

const YAML = load('yaml');
let browser, close;
before(async () => { browser = await launch({ after: (end) => { close = end; } }); });
after(() => close?.());

const open = (t, origin, view) => openPage(t, browser, origin, { view });
const stateOf = async (server, name) => JSON.parse((await exchange(`${server.origin}/api/servers/${name}`, { method: 'GET' })).text).state;

test('without a configuration a server is added, and the file is made and followed', async (t) => {
  const server = await serve(t, null);
  const page = await open(t, server.origin, 'servers');
  await page.getByRole('button', { name: 'Add server' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Add' }).click();
  assert.equal(await dialog.getByLabel('Name', { exact: true }).getAttribute('aria-invalid'), 'true');
  await accessible(page, 'the dialog');
  await shoot(page, 'add');
  await dialog.getByLabel('Name', { exact: true }).fill('mine');
  await dialog.getByLabel('Command', { exact: true }).fill(fakeBin);
  await dialog.getByLabel('Arguments', { exact: true }).fill('--name "mine own"');
  await dialog.getByRole('button', { name: 'Add' }).click();
  await shows(page, 'tr[data-server=mine]', /up/);
  const file = path.join(server.dir, 'rialto/rialto.yaml');
  await until('the file', () => fs.existsSync(file));
  assert.match(fs.readFileSync(file, 'utf8'), /mine own/);

  await exchange(`${server.origin}/api/servers`, { body: JSON.stringify({ name: 'stays', entry: { command: fakeBin } }) });

  // The server is edited, disabled and enabled, removed.
  await page.getByRole('link', { name: 'mine', exact: true }).click();
  await page.getByRole('button', { name: 'Edit mine' }).click();
  // Quotes inside a word split it: --x="a b" became two arguments.
  await dialog.getByLabel('Arguments', { exact: true }).fill(`--name x="a b"c --name 'o t' --name other`);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await until('the file', () => /other/.test(fs.readFileSync(file, 'utf8')));
  assert.deepEqual(YAML.parse(fs.readFileSync(file, 'utf8')).servers.mine.args, ['--name', 'x=a bc', '--name', 'o t', '--name', 'other']);
  await page.getByRole('button', { name: 'Disable mine' }).click();
  await page.getByRole('button', { name: 'Enable mine' }).waitFor();
  // A page that is opened later lists the disabled server, too: it was listed only in pages that had seen it disabled.
  const later = await open(t, server.origin, 'servers');
  await shows(later, 'tr[data-server=mine]', /disabled/);
  await later.getByRole('button', { name: 'Enable mine' }).click();
  await until('it to be up', async () => await stateOf(server, 'mine') === 'up', LONG);
  await later.close();
  await page.getByRole('button', { name: 'Remove mine' }).click();
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { level: 1, name: 'Servers', exact: true }).waitFor();
  await until('it to be gone', async () => await page.locator('tr[data-server=mine]').count() === 0, LONG);
  await until('the file without it', () => !/mine/.test(fs.readFileSync(file, 'utf8')), LONG);
});

// The fields rewrote the entry as soon as they were shown: a value of two lines became two, and blanks at its ends were lost.
test('editing a server leaves values alone that the fields cannot show', async (t) => {
  const env = { PROMPT: 'first line\nsecond=line ', PAD: '  two blanks', PLAIN: 'x' };
  const server = await serve(t, { servers: { mine: { ...fake(), args: ['--name', 'a b'], env } } });
  const page = await open(t, server.origin, 'servers/mine');
  const dialog = page.getByRole('dialog');
  const edit = async (label, value) => {
    await page.getByRole('button', { name: 'Edit mine' }).click();
    await dialog.getByLabel(label, { exact: true }).fill(value);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const written = () => JSON.parse(fs.readFileSync(server.config, 'utf8')).servers.mine;
  await edit('Arguments', '--name other');
  await until('the file', () => written().args[1] === 'other');
  assert.deepEqual(written().env, env);
  await edit('Environment', 'PLAIN=y');
  await until('the file', () => written().env.PLAIN === 'y');
  assert.deepEqual(written().env, { ...env, PLAIN: 'y' });
});

test('a rejected configuration is an alert with file, line and reason, in every view, until it is mended', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake() } }, ['alpha__echo']);
  const page = await open(t, server.origin, 'log');
  await page.getByRole('heading', { level: 1, name: 'Log' }).waitFor();
  const good = fs.readFileSync(server.config, 'utf8');
  fs.writeFileSync(server.config, good.replace('"servers"', '"listen": 7, "servers"'));
  const alert = page.locator('#rejected');
  await until('the alert', async () => await alert.isVisible() && /rejected[^]*\.json:\d+[^]*expected an address/.test(await alert.innerText()), LONG);
  assert.equal(await alert.getAttribute('role'), 'alert');
  await visit(page, 'Servers');
  assert.ok(await alert.isVisible());
  fs.writeFileSync(server.config, good);
  await until('no alert', () => alert.isHidden(), LONG);
});

test('a server’s own page: what it said of itself, its standard error, and the messages of its connection', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } }, ['alpha__echo', 'beta__echo']);
  const page = await open(t, server.origin, 'servers/alpha');
  await until('all of it', async () => /Protocol\s+2025-11-25[^]*fake server alpha is up[^]*Instructions[^]*Capabilities/.test(await page.locator('#view').innerText()), LONG);
  const rows = page.locator('.messages li');
  await until('the messages', async () => /initialize/.test(await page.locator('.messages').innerText()), LONG);
  const all = await rows.count();
  await page.getByLabel('Filter', { exact: true }).fill('initialize');
  await until('fewer', async () => await rows.count() < all && await rows.count() > 0, LONG);
  await rows.last().locator('summary').click();
  await rows.last().getByText('protocolVersion').first().waitFor();
  await rows.last().getByRole('button', { name: /^Pin/ }).click();
  await page.getByLabel('Filter', { exact: true }).fill('no such text');
  await until('the pinned one alone', async () => await rows.count() === 1, LONG);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
  assert.equal(JSON.parse(fs.readFileSync(await download.path(), 'utf8')).length, 1);
  await accessible(page, 'a server');
  await shoot(page, 'server');
  await page.getByRole('link', { name: /^\d+ tools$/ }).click();
  await until('the tools of this server alone', async () => (await page.locator('.offer .name').allInnerTexts()).filter((n) => n.startsWith('alpha__')).length > 3, LONG);
  assert.deepEqual((await page.locator('.offer .name').allInnerTexts()).filter((n) => !n.startsWith('alpha__')), []);
});

test('sessions are listed and ended; numbers are drawn; a web page is shown with its tools', async (t) => {
  const { server, client } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake('--name', 'alpha') } }, ['alpha__echo']);
  for (let i = 0; i < 5; i++) await client.call('alpha__echo', { i });
  await client.call('alpha__fail');
  const page = await open(t, server.origin, 'sessions');
  const row = page.locator('tr[data-session]').first();
  await until('the session', async () => await page.locator('tr[data-session]').count() >= 1, LONG);
  assert.match(await row.innerText(), /2025-11-25[^]*initialize/);
  await accessible(page, 'sessions');
  await row.getByRole('button', { name: /^End/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End' }).click();
  await until('its end', async () => (await client.request('tools/list').then((a) => a.error, () => true)), LONG).catch(() => {});
  await until('nobody', async () => await page.locator('tr[data-session]').count() === 0, LONG);

  await visit(page, 'Numbers');
  await until('charts', async () => /6 in an hour/.test(await page.locator('#view').innerText()), LONG);
  assert.ok(await page.getByRole('img', { name: /^Calls: 6 in an hour/ }).count() >= 1);
  assert.match(await page.locator('#view').innerText(), /Processes[^]*alpha[^]*(MiB|KiB)/);
  await accessible(page, 'numbers');
  await shoot(page, 'numbers');

  await visit(page, 'Web pages');
  await page.getByText('None is connected.').waitFor();
  const demo = await browser.newPage();
  t.after(() => demo.close());
  await demo.goto(`${server.origin}/demo`);
  await until('the page', async () => await page.locator('#view tbody tr').count() === 1 && new RegExp(server.origin).test(await page.locator('#view').innerText()), LONG);
  await until('its tools', async () => await page.locator('.chips li').count() > 0, LONG);
  await accessible(page, 'web pages');
});

// Each button copies exactly what that host accepts: Claude Desktop starts programs, Codex reads TOML.
test('Start has what each host needs', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake() } }, ['alpha__echo']);
  await browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.origin });
  const page = await open(t, server.origin, 'start');
  const copied = async (host) => {
    await page.evaluate(() => navigator.clipboard.writeText(''));
    await page.getByRole('button', { name: `Copy for ${host}` }).click();
    return until('the text', () => page.evaluate(() => navigator.clipboard.readText()), LONG);
  };
  await until('the file', async () => (await page.locator('[data-host="Claude Desktop"]').innerText()).includes('rialto.json'), LONG);
  assert.match(await copied('Claude Code'), new RegExp(`^claude mcp add .*rialto ${server.url}$`));
  const desktop = JSON.parse(await copied('Claude Desktop')).mcpServers.rialto;
  assert.ok(path.isAbsolute(desktop.command) && desktop.url === undefined, JSON.stringify(desktop));
  assert.equal(desktop.args[0], 'stdio');
  assert.equal(JSON.parse(await copied('Cursor')).mcpServers.rialto.url, server.url);
  assert.deepEqual(JSON.parse(await copied('VS Code')).servers.rialto, { type: 'http', url: server.url });
  assert.match(await copied('Codex'), /^\[mcp_servers\.rialto\]\nurl = "http/);
  assert.equal(JSON.parse(await copied('Zed')).context_servers.rialto.url, server.url);
  assert.match(await copied('stdio'), /rialto stdio -c \//);
});
