// The page clients in Firefox. No driver is needed: the tools tell the page what to do, and it leaves
// and comes back by itself.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test from 'node:test';
import { tempDir, until } from './lib.mjs';
import { agent, serveBrowser } from './browser_lib.mjs';

const firefox = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((p) => fs.existsSync(p));

/** Starts a browser with a profile of its own at this address; it ends with the test. */
function launch(t, url) {
  assert.ok(firefox, 'firefox is not installed: tools/setup test');
  const profile = tempDir();
  fs.writeFileSync(path.join(profile, 'user.js'), [
    ['browser.shell.checkDefaultBrowser', false], ['browser.startup.homepage_override.mstone', '"ignore"'],
    ['datareporting.policy.dataSubmissionEnabled', false], ['toolkit.telemetry.enabled', false], ['app.update.enabled', false],
    ['network.captive-portal-service.enabled', false], ['network.connectivity-service.enabled', false],
    ['browser.safebrowsing.malware.enabled', false], ['browser.safebrowsing.phishing.enabled', false],
  ].map(([name, value]) => `user_pref("${name}", ${value});`).join('\n'));
  const child = spawn(firefox, ['--headless', '--no-remote', '--profile', profile, url],
    { stdio: 'ignore', env: { ...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' }, detached: true });
  t.after(() => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* already gone */ } });
}

/** Serves the page, and a page /away that goes back when `release` is called. */
async function site(t, html) {
  let waiting;
  const server = http.createServer((request, response) => {
    if (request.url === '/wait') { waiting = response; return; }
    const body = request.url === '/away' ? `<script>fetch('/wait').then(() => history.back());</script>` : html;
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(body);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { url: `http://localhost:${server.address().port}/`, release: async () => (await until('the other page', () => waiting)).end() };
}

const uses = {
  'rialto.js': `const offer = (name, fn) => rialto.registerTool({ name, description: name, handler: fn });`,
  'webmcp.js': `const offer = (name, fn) => document.modelContext.registerTool({ name, description: name, execute: async (input) => fn(input) });`,
};

for (const [script, use] of Object.entries(uses)) {
  test(`Firefox: a page with ${script}: its tools, results and failures; left, and back`, async (t) => {
    const server = await serveBrowser(t);
    const there = await site(t, `<title>In Firefox</title><script src="${server.origin}/${script}" data-session="S"></script><script>
      ${use}
      offer('greet', ({ who }) => 'Hi ' + who);
      offer('sum', ({ a, b }) => ({ sum: a + b }));
      offer('fail', () => { throw new Error('broken'); });
      offer('leave', () => { setTimeout(() => { location.href = '/away'; }); return 'left'; });
    </script>`);
    launch(t, there.url);
    const client = await agent(server, 'S', { wait: true });
    await until('the tools', async () => (await client.toolNames()).length === 4, 60_000);
    assert.equal(await client.text('greet', { who: 'Ann' }), 'Hi Ann');
    assert.deepEqual(JSON.parse(await client.text('sum', { a: 2, b: 3 })), { sum: 5 });
    const failed = (await client.call('fail', {})).result;
    assert.deepEqual([failed.isError, failed.content[0].text], [true, 'broken']);
    const { tools } = (await client.request('tools/list', {})).result;
    assert.equal(tools[0].description, `[In Firefox, ${there.url}] greet`);
    await client.call('leave', {});
    await until('the tools to go', async () => (await client.toolNames()).length === 0, 30_000);
    await there.release();
    await until('the tools again', async () => (await client.toolNames()).length === 4, 30_000);
    assert.equal(await client.text('greet', { who: 'Bob' }), 'Hi Bob');
  });
}
