// The page in real browsers: opened at a view, read, and checked by axe-core.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { load, npmFolder, root, until } from './lib.mjs';

export const LONG = 20_000;
const shots = path.join(root, 'build/test-logs');
const axeSource = fs.readFileSync(path.join(npmFolder, 'node_modules/axe-core/axe.min.js'), 'utf8');

/** The page of a daemon at a view; any error in the page fails the test at its end. */
export async function open(t, browser, origin, { view = '', prepare } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(LONG);
  page.wrong = [];
  page.on('pageerror', (e) => page.wrong.push(e.message));
  page.on('console', (m) => { if (/Content Security Policy|TrustedHTML|TypeError/i.test(m.text())) page.wrong.push(m.text()); });
  page.on('dialog', (d) => { page.wrong.push(`dialog ${d.message()}`); d.dismiss(); });
  t.after(async () => {
    await page.close();
    assert.deepEqual(page.wrong, []);
  });
  await prepare?.(page);
  await page.goto(`${origin}/${view && `#/${view}`}`);
  return page;
}

/** Opens another view of the same page by its link. */
export async function visit(page, name) {
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: new RegExp(`^${name}`) }).waitFor();
}

export const text = (page, selector) => page.locator(selector).innerText();
export const shows = (page, selector, pattern) => until(`${pattern} in ${selector}`, async () => {
  const found = page.locator(selector);
  return await found.count() === 1 && pattern.test(await found.innerText());
}, LONG);

export async function shoot(page, name) {
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `page-${name}.png`), fullPage: true });
}

/** axe-core finds nothing serious in the page as it is now. */
export async function accessible(page, what) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations
    .filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} (${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')})`).slice(0, 5)}`));
  assert.deepEqual(found, [], what);
}

export const puppeteer = () => load('puppeteer-core');
