// Chromium, headless, and small sites of other origins for it to visit.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { load, tempDir } from './lib.mjs';

const { chromium } = load('playwright-core');
const executable = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => fs.existsSync(p));

/** A browser with a profile of its own, which ends with the test. */
export async function launch(t, ...args) {
  assert.ok(executable, 'chromium is not installed: tools/setup test');
  const context = await chromium.launchPersistentContext(tempDir(), {
    executablePath: executable, headless: true, viewport: { width: 1100, height: 640 },
    ignoreDefaultArgs: ['--disable-back-forward-cache'], // users have this cache
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', ...args],
  });
  t.after(() => context.close());
  return context;
}

/** A site that is not ours: serves `pages` (or one page for every path) on a port of its own. */
export async function site(t, pages) {
  const server = http.createServer((request, response) => {
    const at = new URL(request.url, 'http://x').pathname;
    const body = typeof pages === 'string' ? pages : pages[at];
    response.writeHead(body === undefined ? 404 : 200,
      { 'Content-Type': at.endsWith('.js') ? 'text/javascript' : 'text/html' }).end(body ?? '');
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return server.address().port;
}
