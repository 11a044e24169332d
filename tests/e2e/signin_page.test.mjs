// Signing in with a real browser at a real authorization server: from the daemon's page, and from the
// terminal. Screenshots in both themes are in build/test-logs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root, serve, tempDir, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { freePort } from './oauth_lib.mjs';
import { startIssuer, startProtected } from './oidc_lib.mjs';
import { Login, untilState } from './signin_lib.mjs';

const LONG = 20_000;
const shots = path.join(root, 'build/test-logs');

async function shoot(page, name) {
  fs.mkdirSync(shots, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: path.join(shots, `signin-${name}-${colorScheme}.png`) });
  }
}

async function setting(t, config = {}) {
  const as = await startIssuer(t);
  const notes = await startProtected(t, as);
  const state = tempDir();
  const server = await serve(t, { servers: { notes: { url: notes.url } }, ...config }, { env: { XDG_STATE_HOME: state } });
  await untilState(server, 'notes', 'needs_sign_in');
  return { server, state, browser: await launch(t) };
}

/** What a person does on the pages of the authorization server. */
async function signIn(page, end = /^Signed in/) {
  page.setDefaultTimeout(LONG);
  await page.fill('input[name=login]', 'alice');
  await page.fill('input[name=password]', 'x');
  await page.click('button[type=submit]');
  await page.waitForSelector('input[name=prompt][value=consent]', { state: 'attached' });
  await page.click('button[type=submit]');
  await page.waitForURL(/\/oauth\/callback/);
  await until('the page', async () => end.test(await page.innerText('main')), LONG);
}

test('by the button on the page', async (t) => {
  const { server, browser } = await setting(t);
  const page = await browser.newPage();
  page.setDefaultTimeout(LONG);
  await page.goto(`${server.origin}/#/servers`);
  const row = page.locator('tr[data-server=notes]');
  await until('the state', async () => /needs sign-in/.test(await row.innerText()), LONG);
  await shoot(page, 'dashboard');
  const [tab] = await Promise.all([page.context().waitForEvent('page'), row.getByRole('button', { name: 'Sign in notes' }).click()]);
  await tab.waitForURL(/\/interaction\//);
  await signIn(tab);
  assert.equal(await tab.evaluate(() => window.opener), null);
  await shoot(tab, 'callback');
  await untilState(server, 'notes', 'up');
  await until('the page to notice', async () => /\bup\b/.test(await row.innerText()), LONG);
  await tab.reload().catch(() => null);
  assert.match(await tab.innerText('main'), /Nothing waits for this/);
  await shoot(tab, 'unknown');
});

test('from the terminal', async (t) => {
  const { server, state, browser } = await setting(t);
  const login = new Login(server, 'notes', { XDG_STATE_HOME: state });
  const page = await browser.newPage();
  await page.goto(await login.address());
  await signIn(page);
  assert.equal((await login.ended).code, 0);
  await untilState(server, 'notes', 'up');
});

// Another browser that opens the same addresses is refused; its pages are checked as well.
test('with public_url, by our own page, in the browser that begins', async (t) => {
  const port = await freePort();
  const { server, browser: mine } = await setting(t, { listen: `127.0.0.1:${port}`, public_url: `http://localhost:${port}` });
  const page = await mine.newPage();
  const other = await (await launch(t)).newPage();
  page.setDefaultTimeout(LONG);
  await page.goto(`${server.origin}/#/servers`);
  const button = page.locator('tr[data-server=notes]').getByRole('button', { name: 'Sign in notes' });
  const [tab] = await Promise.all([mine.waitForEvent('page'), button.click()]);
  await tab.waitForURL(/\/oauth\/begin\?login=/);
  assert.match(await tab.innerText('main'), /Go on only if you asked for this yourself/);
  await shoot(tab, 'begin');
  const address = tab.url();
  const [raw] = await Promise.all([tab.waitForRequest(/\/auth\?/), tab.click('button')]);
  await tab.waitForURL(/\/interaction\//);

  await other.goto(address);
  assert.match(await other.innerText('main'), /begun in another browser/);
  await shoot(other, 'begun');
  await other.goto(raw.url());
  await signIn(other, /^This browser did not begin the sign-in/);
  await shoot(other, 'stranger');
  await signIn(tab);
  await untilState(server, 'notes', 'up');
});
