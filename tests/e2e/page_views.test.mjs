// Every view of the page in real Chromium and real Firefox: reached by its link, kept by Reload and Back, nothing that
// axe-core calls serious, in both themes; and no requests while nothing happens.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, fake, load, npmFolder, serveAndConnect, sleep, tempDir, until } from './lib.mjs';

const puppeteer = load('puppeteer-core');
const axe = fs.readFileSync(path.join(npmFolder, 'node_modules/axe-core/axe.min.js'), 'utf8');
const LONG = 20_000;
const there = (...paths) => paths.find((p) => fs.existsSync(p));
const browsers = {
  chrome: { executablePath: there('/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'), args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] },
  firefox: { executablePath: there('/usr/bin/firefox-esr', '/usr/bin/firefox'), extraPrefsFirefox: { 'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false, 'app.update.enabled': false } },
};
const views = { Start: 'start', Tools: 'tools', Calls: 'calls', Sessions: 'sessions', 'Web pages': 'pages', Numbers: 'numbers', Servers: 'servers', Log: 'log' };

async function launch(t, name) {
  assert.ok(browsers[name].executablePath, `${name} is not installed: tools/setup test`);
  const home = tempDir();
  const browser = await puppeteer.launch({ browser: name, headless: true, ...browsers[name], userDataDir: path.join(home, 'profile'), env: { ...process.env, HOME: home } });
  t.after(() => browser.close());
  return browser;
}

const heading = (page) => page.evaluate(() => document.querySelector('h1')?.textContent ?? '');
const at = (page, name) => until(`the view ${name}`, async () => (await heading(page)).startsWith(name), LONG);
const follow = (page, name) => page.evaluate((text) => { [...document.querySelectorAll('nav a')].find((a) => a.textContent === text).click(); }, name);

async function serious(page) {
  await page.evaluate(axe);
  return page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations
    .filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).slice(0, 4)}`));
}

/** The page, opened by puppeteer; errors in it fail the test. */
async function open(t, browser, url) {
  const page = await browser.newPage();
  const wrong = [];
  page.on('pageerror', (e) => wrong.push(e.message));
  t.after(() => assert.deepEqual(wrong, []));
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(url);
  return page;
}

for (const name of Object.keys(browsers)) {
  test(`${name}: every view by its link, with Back and Reload, and nothing serious for axe-core`, async (t) => {
    const { server, client } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake('--name', 'alpha'), bad: { command: '/bin/sh', args: ['-c', 'echo oh >&2; exit 3'] } } }, ['alpha__echo']);
    await client.call('alpha__echo', { message: 'hello' });
    await client.call('alpha__fail');
    const calls = JSON.parse((await exchange(`${server.origin}/api/calls`, { method: 'GET' })).text);
    const { id } = calls.find((c) => c.name === 'echo');
    const browser = await launch(t, name);
    const page = await open(t, browser, `${server.origin}/`);
    await at(page, 'Start');
    assert.equal(await page.evaluate(() => document.querySelectorAll('nav').length), 1, 'one navigation landmark');
    for (const [title, address] of Object.entries(views)) {
      await follow(page, title);
      await at(page, title);
      assert.equal(new URL(await page.evaluate(() => location.href)).hash, `#/${address}`);
      assert.equal(await page.evaluate(() => document.querySelectorAll('nav [aria-current=page]').length), 1);
      await sleep(400); // what the view requests has arrived
      for (const theme of ['light', 'dark']) {
        await page.evaluate((word) => { document.documentElement.dataset.theme = word; }, theme);
        assert.deepEqual(await serious(page), [], `${title}, ${theme}`);
      }
    }
    for (const [address, title] of [['tools/alpha__add', 'Tools: alpha__add'], [`calls/${id}`, 'Calls: echo'], ['servers/alpha', 'Servers: alpha'], ['servers/bad', 'Servers: bad']]) {
      await page.evaluate((hash) => { location.hash = hash; }, `#/${address}`);
      await at(page, title);
      await sleep(400);
      assert.deepEqual(await serious(page), [], title);
    }
    await page.goBack();
    await at(page, 'Servers: alpha');
    await page.reload();
    await at(page, 'Servers: alpha');
    await page.goBack();
    await at(page, 'Calls: echo');

    // A tool can be called in this browser, too.
    await page.evaluate(() => { location.hash = '#/tools/alpha__add'; });
    await at(page, 'Tools: alpha__add');
    const json = await until('the form', () => page.$('#arguments-json'), LONG);
    await page.evaluate(() => { const box = document.querySelector('#arguments-json'); box.value = '{"a":2,"b":3}'; box.dispatchEvent(new Event('input', { bubbles: true })); });
    assert.ok(json);
    await page.evaluate(() => { [...document.querySelectorAll('#view button')].find((b) => b.textContent === 'Call').click(); });
    await until('the result', () => page.evaluate(() => /\b5\b/.test(document.querySelector('.result pre')?.textContent ?? '')), LONG);
    assert.deepEqual(await serious(page), [], 'a result');
  });
}

test('nothing is asked in ten seconds of rest, and news are there at once', async (t) => {
  const { server, client } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake('--name', 'alpha') } }, ['alpha__echo']);
  const browser = await launch(t, 'chrome');
  const page = await open(t, browser, `${server.origin}/`);
  await at(page, 'Start');
  for (const title of ['Calls', 'Servers', 'Log']) {
    await follow(page, title);
    await at(page, title);
    await sleep(1500); // what the view requests has arrived
    const asked = [];
    const note = (request) => asked.push(request.url());
    page.on('request', note);
    await sleep(10_000);
    page.off('request', note);
    assert.deepEqual(asked, [], title);
  }
  await follow(page, 'Calls');
  await at(page, 'Calls');
  await sleep(1000);
  const then = Date.now();
  await client.call('alpha__echo', { message: 'news' });
  await until('the call', () => page.evaluate(() => document.querySelectorAll('#calls-list tr').length === 1), LONG);
  assert.ok(Date.now() - then < 5000, `${Date.now() - then} ms`); // 1.5 s on an idle machine
});

test('the button for the theme: as the system is, light, dark', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake() } }, ['alpha__echo']);
  const browser = await launch(t, 'chrome');
  const page = await open(t, browser, `${server.origin}/`);
  await at(page, 'Start');
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  const dark = await colour();
  await page.click('#theme');
  const light = await colour();
  assert.notEqual(light, dark);
  await page.reload();
  await at(page, 'Start');
  assert.equal(await colour(), light, 'it is remembered');
  await page.click('#theme');
  assert.equal(await colour(), dark);
  await page.click('#theme');
  assert.match(await page.$eval('#theme', (b) => b.textContent), /system/);
});
