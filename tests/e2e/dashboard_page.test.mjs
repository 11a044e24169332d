// The dashboard in a real browser: what it shows, what its buttons do, that nothing which servers
// and agents say becomes part of the page, and that it comes back when the daemon does.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exchange, fake, HttpClient, root, serve, serveAndConnect, sleep, tempDir, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';

const shots = path.join(root, 'build/test-logs');
const LONG = 20_000;

let browser, close; // one for all tests, with a tab for each
before(async () => { browser = await launch({ after: (end) => { close = end; } }); });
after(() => close?.());

/** The dashboard of a daemon; whatever goes wrong in the page fails the test at its end. */
async function open(t, origin, { prepare } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(LONG);
  page.wrong = [];
  page.on('pageerror', (e) => page.wrong.push(e.message));
  page.on('console', (m) => { if (/Content Security Policy|TrustedHTML/i.test(m.text())) page.wrong.push(m.text()); });
  page.on('dialog', (d) => { page.wrong.push(`dialog ${d.message()}`); d.dismiss(); });
  t.after(async () => {
    await page.close();
    assert.deepEqual(page.wrong, []);
  });
  await prepare?.(page);
  await page.goto(`${origin}/`);
  return page;
}

const text = (page, selector) => page.locator(selector).innerText();
const shows = (page, selector, pattern) => until(`${pattern} in ${selector}`, async () => {
  const found = page.locator(selector);
  return await found.count() === 1 && pattern.test(await found.innerText());
}, LONG);
const stateOf = async (server, name) => JSON.parse((await exchange(`${server.origin}/api/servers/${name}`, { method: 'GET' })).text).state;
const shoot = async (page, name) => {
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `dashboard-${name}.png`), fullPage: true });
};
const count = (page) => page.locator('#calls-list tr.call').count();

const two = (more = {}) => ({
  control: 'off', servers: { alpha: { ...fake('--name', 'alpha'), ...more }, beta: fake('--name', 'beta') },
});
const up = ['alpha__echo', 'beta__echo'];

test('servers, calls with what they carried, the log, and addresses for agents', async (t) => {
  const { server, client } = await serveAndConnect(t, two(), up);
  const page = await open(t, server.origin);
  await shows(page, '#health', /^All is well$/);
  await shows(page, 'tr[data-server=alpha]', /^alpha\b[^]*stdio · 2025-11-25[^]*up\b/);
  assert.equal(await page.locator('#servers-list tr').count(), 2);
  await shows(page, '#calls-none', /^No calls yet\.$/);

  // What JSON.parse would change is shown as it was sent.
  await client.rawRequest('"a"', 'tools/call', '{"name":"alpha__echo","arguments":{"z":12345678901234567890,"9":1.50,"1":"<i>"}}');
  await client.call('beta__fail');
  await client.call('beta__error');
  await until('the calls', async () => await count(page) === 3, LONG);
  const rows = page.locator('#calls-list tr.call');
  assert.match(await rows.nth(2).innerText(), /^\d\d:\d\d:\d\d\s+alpha\s+.*echo\s+ok\s+\d+ ms/);
  assert.match(await rows.nth(1).innerText(), /beta\s+.*fail\s+error/);

  await shows(page, 'tr[data-server=beta]', /16\s+2\s+2\b/); // tools, calls, and both of these went wrong

  // By the keyboard alone.
  const button = page.locator('#calls-list').getByRole('button', { name: 'echo' });
  await button.focus();
  await page.keyboard.press('Enter');
  await shows(page, '[data-pane=Arguments] pre', /./);
  assert.equal(await text(page, '[data-pane=Arguments] pre'), '{\n  "z": 12345678901234567890,\n  "9": 1.50,\n  "1": "<i>"\n}');
  assert.match(await text(page, '[data-pane=Text] pre'), /"z":12345678901234567890/);
  await page.locator('summary').click();
  assert.match(await text(page, '[data-pane=Result] pre'), /"lexeme": 1\.50e\+2/);
  assert.equal(await button.getAttribute('aria-expanded'), 'true');

  // It stays as it is while others come, and is closed again.
  await button.focus();
  await client.call('alpha__add', { a: 1, b: 2 });
  await until('one more', async () => await count(page) === 4, LONG);
  assert.ok(await page.isVisible('[data-pane=Result] pre'));
  assert.ok(await button.evaluate((b) => b === document.activeElement), 'the focus has not moved');
  await page.keyboard.press('Enter');
  assert.ok(!await page.isVisible('[data-pane=Arguments] pre'));

  await shows(page, '#log', /info\s+beta\s+[^]*call \d+ of error failed/);
  await page.selectOption('#log-level', 'error');
  await shows(page, '#log-none', /^Nothing of this level\.$/);
  await page.selectOption('#log-level', 'info');
  await shows(page, '#log', /fake server alpha is up/);

  await page.check('#calls-failed');
  await until('the failed ones', async () => await count(page) === 2, LONG);
  await page.selectOption('#calls-server', 'alpha');
  await shows(page, '#calls-none', /^No such calls\.$/);
  await page.uncheck('#calls-failed');
  await until('those of alpha', async () => await count(page) === 2, LONG);

  assert.match(await text(page, '#addresses'), new RegExp(`${server.url}\n[^]*${server.url}/sse\n`));
  await page.selectOption('#addresses-server', 'beta');
  await shows(page, '#addresses', /\/mcp\/beta\n/);
  const config = JSON.parse(await page.locator('#addresses code').last().innerText());
  assert.deepEqual(config, { mcpServers: { beta: { type: 'http', url: `${server.url}/beta` } } });
  await browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.origin });
  await page.getByRole('button', { name: 'Copy Streamable HTTP' }).click();
  await until('the copy', async () => await page.evaluate(() => navigator.clipboard.readText()) === `${server.url}/beta`);
  await shoot(page, 'calls');
});

test('a long result is cut, and says so; a call under way shows its result when it ends', async (t) => {
  const { server, client } = await serveAndConnect(t, two(), up);
  await client.call('alpha__big', { bytes: 100_000 });
  const page = await open(t, server.origin);
  await page.locator('#calls-list').getByRole('button', { name: 'big' }).click();
  await shows(page, '[data-pane=Result]', /^Result\s+97\.\d KiB\s+cut: only its beginning was kept/);
  assert.ok((await text(page, '[data-pane=Result] pre')).length < 50_000);

  // Nothing ends it before it was seen: its server is stopped then.
  const ended = client.call('alpha__sleep', { ms: 600_000 });
  await page.locator('#calls-list').getByRole('button', { name: 'sleep' }).click();
  const row = 'tr.call:has(button:text-is("sleep"))';
  await shows(page, row, /running/);
  await shows(page, 'tr.more:not([hidden]) >> nth=0', /"ms": 600000/);
  await shows(page, 'tr[data-server=alpha]', /1 now/);
  const stop = page.getByRole('button', { name: 'Stop alpha' });
  assert.equal(await stop.evaluate((b) => { b.click(); return b.innerText; }), 'End 1 call?');
  assert.equal(await stateOf(server, 'alpha'), 'up', 'not before it was asked twice');
  await stop.evaluate((b) => { b.click(); b.click(); }); // it may have forgotten the first by now
  await shows(page, row, /failed/);
  await shows(page, 'tr.more:not([hidden]) >> nth=0', /alpha/);
  await ended;
});

test('servers are stopped, started and restarted', async (t) => {
  const { server } = await serveAndConnect(t, two(), up);
  const page = await open(t, server.origin);
  const order = async (verb) => page.getByRole('button', { name: `${verb} alpha` }).click();
  await order('Stop');
  await shows(page, 'tr[data-server=alpha]', /stopped/);
  await until('it to stop', async () => await stateOf(server, 'alpha') === 'stopped');
  assert.equal(await page.locator('tr[data-server=alpha] button').count(), 1, 'what is stopped can only be started');
  await order('Start');
  await until('it to start', async () => await stateOf(server, 'alpha') === 'up');
  await shows(page, 'tr[data-server=alpha] .state', /^up$/);
  const pid = () => exchange(`${server.origin}/api/servers/alpha`, { method: 'GET' }).then((a) => JSON.parse(a.text).pid);
  const before_ = await pid();
  await order('Restart');
  await until('another process', async () => ![before_, null].includes(await pid()), LONG);
  assert.equal(await stateOf(server, 'beta'), 'up');
});

test('what is missing is named, and why', async (t) => {
  const { server } = await serveAndConnect(t, {
    control: 'off', servers: {
      good: fake('--name', 'good'),
      bad: { command: '/bin/sh', args: ['-c', 'echo "no key in the drawer" >&2; exit 3'] },
      poor: { ...fake(), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } },
    },
  }, ['good__echo']);
  const page = await open(t, server.origin);
  await shows(page, '#health', /^Degraded: bad failing, poor left out$/);
  await shows(page, 'tr[data-server=bad]', /failing[^]*exited with 3[^]*no key in the drawer/);
  await shows(page, 'tr[data-server=poor]', /left out[^]*no value for/);
  assert.equal(await page.locator('tr[data-server=poor] button').count(), 0);
  assert.match(await page.title(), /degraded/);
});

test('calls that wait are approved and refused, with their arguments in sight', async (t) => {
  const { server, client } = await serveAndConnect(t, two({ approve: ['echo'] }), up);
  const page = await open(t, server.origin);
  await shows(page, 'tr[data-server=alpha]', /up/);
  assert.ok(!await page.isVisible('#approvals'));

  const first = client.call('alpha__echo', { message: 'one', big: 1 });
  await shows(page, '[data-approval]', /echo on alpha[^]*refused in \d+ \w+/);
  assert.equal(await text(page, '[data-approval] pre'), '{\n  "message": "one",\n  "big": 1\n}');
  assert.match(await page.title(), /^\(1\) Rialto/);
  // What could not be said is not shown as said.
  await page.route('**/api/approvals/*', (route) => route.abort());
  await page.getByRole('button', { name: 'Approve echo on alpha' }).click();
  await shows(page, '#notice', /That did not work/);
  await shows(page, '[data-approval]', /refused in \d+ \w+/);
  await page.unroute('**/api/approvals/*');
  await page.getByRole('button', { name: 'Approve echo on alpha' }).click();
  assert.deepEqual((await first).result.structuredContent, { message: 'one', big: 1 });
  await until('an empty list', () => page.isHidden('#approvals'), LONG);

  const second = client.call('alpha__echo', { message: 'two' });
  await shows(page, '[data-approval]', /refused in/);
  await shoot(page, 'approval');
  // It stays for a moment, without buttons: watched from within the page, so that it is not missed.
  const seen = page.waitForFunction(() => {
    const item = document.querySelector('[data-approval]');
    return item?.querySelector('.soft').innerText === 'refused' && !item.querySelector('.bar button:not([hidden])');
  });
  await page.getByRole('button', { name: 'Refuse echo on alpha' }).click();
  await seen;
  const { result } = await second;
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /refused by the operator/);
});

// Names, arguments, results, last words and log lines, each with HTML that would tell of itself.
test('nothing that servers and agents say becomes part of the page', async (t) => {
  const evil = (where) => `<img src=/pwned-${where} onerror="window.pwned='${where}'"><script>window.pwned='${where}'</script><b>${where}</b>`;
  const file = path.join(tempDir(), 'result');
  fs.writeFileSync(file, JSON.stringify({ content: [{ type: 'text', text: evil('result') }], structuredContent: { [evil('key')]: evil('value') } }));
  const { server, client } = await serveAndConnect(t, {
    control: 'off', servers: {
      alpha: { ...fake('--name', 'alpha', '--raw-result', file), approve: ['add'] },
      bad: { command: '/bin/sh', args: ['-c', `echo '${evil('words').replaceAll("'", '"')}' >&2; exit 3`] },
    },
  }, ['alpha__echo']);
  const page = await open(t, server.origin, { prepare: (p) => {
    p.asked = [];
    p.on('request', (r) => p.asked.push(new URL(r.url()).pathname));
  } });
  await client.call('alpha__echo', { [evil('name')]: evil('argument'), turned: 'a\u202eb\u{e0041}c' });
  await client.call(`alpha__${evil('tool')}`, {});
  client.call('alpha__add', { a: evil('held') }).catch(() => {});
  await shows(page, '[data-approval] pre', /<b>held<\/b>/);
  await shows(page, 'tr[data-server=bad] .why', /<b>words<\/b>/);
  await shows(page, '#log', /<b>words<\/b>/);
  await until('the calls', async () => await count(page) === 3, LONG);
  for (const name of ['echo', 'tool']) await page.locator('#calls-list button.open').filter({ hasText: name }).click();
  await shows(page, '[data-pane=Text] pre', /<b>result<\/b>/);
  await page.locator('summary').click();
  const said = await text(page, '#calls-list');
  for (const where of ['name', 'argument', 'result', 'key', 'value', 'tool']) assert.ok(said.includes(`<b>${where}</b>`), where);
  assert.ok(said.includes('a\\u{202e}b\\u{e0041}c'), 'what turns text around is shown by its number');

  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('main :is(img, script, b:not(#addresses b))').count(), 0);
  assert.deepEqual(page.asked.filter((p) => p.includes('pwned')), []);
  // The page could not do it even if it tried.
  const tried = await page.evaluate(() => { try { document.body.innerHTML = '<p>'; return 'done'; } catch (e) { return e.name; } });
  assert.equal(tried, 'TypeError');
  page.wrong = page.wrong.filter((w) => !/TrustedHTML/.test(w));
});

/** An address that stays the same while daemons behind it come and go. */
async function address(t) {
  const open_ = new Set();
  const door = net.createServer((socket) => {
    const target = door.target && net.connect(door.target, '127.0.0.1');
    for (const s of [socket, target].filter(Boolean)) {
      open_.add(s);
      s.on('error', () => {});
      s.on('close', () => { open_.delete(s); socket.destroy(); target?.destroy(); });
    }
    if (target) socket.pipe(target).pipe(socket);
    else socket.destroy();
  });
  await new Promise((resolve) => { door.listen(0, '127.0.0.1', resolve); });
  t.after(() => { door.close(); open_.forEach((s) => s.destroy()); });
  return { origin: `http://127.0.0.1:${door.address().port}`, lead(server) { door.target = server && Number(new URL(server.origin).port); } };
}

test('it says so when the daemon is gone, and comes back with the next one', async (t) => {
  const door = await address(t);
  const first = await serveAndConnect(t, two(), up);
  door.lead(first.server);
  await first.client.call('alpha__echo', { message: 'of the first' });
  const page = await open(t, door.origin);
  await until('the call', async () => await count(page) === 1, LONG);
  await shows(page, '#log', new RegExp(`listening on ${first.server.origin}\n`));
  door.lead(null);
  await first.server.stop();
  await shows(page, '#lost', /does not answer[^]*Next try in \d+ s\./);
  await shows(page, '#health', /^No answer$/);
  assert.ok(await page.isVisible('tr[data-server=alpha]'), 'what was known stays in sight');

  const second = await serveAndConnect(t, { control: 'off', servers: { gamma: fake('--name', 'gamma') } }, ['gamma__echo']);
  await second.client.call('gamma__fail');
  door.lead(second.server);
  await shows(page, '#health', /^All is well$/);
  await until('no banner', () => page.isHidden('#lost'), LONG);
  await until('its servers', async () => await page.locator('tr[data-server=gamma]').count() === 1 && await page.locator('#servers-list tr').count() === 1, LONG);
  await until('its calls', async () => await count(page) === 1 && /gamma/.test(await text(page, '#calls-list')), LONG);
  await until('its log', async () => {
    const log = await text(page, '#log');
    return log.includes(second.server.origin) && !log.includes(first.server.origin);
  }, LONG);
});

test('who may not look is told why', async (t) => {
  const { server } = await serveAndConnect(t, two(), up);
  const refusal = { error: 'only for this machine', hint: 'ask from the machine itself' };
  const page = await open(t, server.origin, { prepare: (p) => p.route('**/status', (route) => route.fulfill({ status: 403, json: refusal })) });
  await shows(page, '#lost', /only for this machine\nask from the machine itself\. Next try in/);
  assert.ok(!await page.isVisible('#token') && !await page.isVisible('#main'));
  await page.unroute('**/status');
  await page.getByRole('button', { name: 'Try now' }).click();
  await shows(page, 'tr[data-server=alpha]', /up/);
});

test('a page that nobody sees asks nothing', async (t) => {
  const server = await serve(t, two());
  let asked = 0;
  const page = await open(t, server.origin, { prepare: async (p) => {
    p.on('request', (r) => { if (r.url().endsWith('/status')) asked++; });
    await p.addInitScript(() => Object.defineProperty(document, 'hidden', { get: () => Boolean(window.covered) }));
  } });
  await page.evaluate(() => {
    window.cover = (covered) => { window.covered = covered; document.dispatchEvent(new Event('visibilitychange')); };
  });
  const covers = {
    'between two rounds': () => window.cover(true),
    'in the middle of a round': () => new Promise((resolve) => {
      const { fetch } = window;
      window.fetch = (...args) => { window.fetch = fetch; window.cover(true); resolve(); return fetch(...args); };
    }),
  };
  for (const [when, cover] of Object.entries(covers)) {
    const before_ = asked;
    await until('some rounds', () => asked > before_ + 1, LONG);
    await page.evaluate(cover);
    await sleep(2000); // what was under way ends
    const then = asked;
    await sleep(2500);
    assert.equal(asked, then, when);
    await page.evaluate(() => window.cover(false));
  }
});

test('a token is asked for, kept for this tab alone, and forgotten', async (t) => {
  const hash = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
  const server = await serve(t, {
    ...two(), views: { small: { servers: ['alpha'] } },
    auth: { tokens: [{ name: 'me', hash: hash('token-of-mine') }, { name: 'small', hash: hash('token-of-small'), view: 'small' }] },
  });
  const agent = await new HttpClient(server.url, { token: 'token-of-mine' }).connect();
  await agent.waitFor(...up);
  let asked = 0;
  const page = await open(t, server.origin, { prepare: (p) => p.on('request', (r) => { if (r.url().endsWith('/status')) asked++; }) });
  const show = async (token) => {
    await page.fill('#token-text', token);
    await page.keyboard.press('Enter');
  };
  await shows(page, '#token-why', /^This Rialto asks for a token\.$/);
  assert.ok(!await page.isVisible('#main'));
  const then = asked;
  await sleep(2500);
  assert.equal(asked, then, 'it does not knock again and again');
  await show('wrong');
  await shows(page, '#token-why', /not known here/);
  await show('token-of-small');
  await shows(page, '#token-why', /for MCP alone/);
  await show(' token-of-mine ');
  await shows(page, 'tr[data-server=beta]', /up/);
  assert.ok(!await page.isVisible('#token'));
  assert.match(await page.locator('#addresses code').last().innerText(), /"Authorization": "Bearer TOKEN"/);
  assert.deepEqual(await page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage), document.cookie]), [['token-of-mine'], [], '']);
  assert.doesNotMatch(await page.content(), /token-of-mine/);
  await page.getByRole('button', { name: 'Stop alpha' }).click();
  await shows(page, 'tr[data-server=alpha]', /stopped/);
  await page.reload();
  await shows(page, 'tr[data-server=beta]', /up/);
  await page.getByRole('button', { name: 'Forget token' }).click();
  await shows(page, '#token-why', /^This Rialto asks for a token\.$/);
  assert.deepEqual(await page.evaluate(() => Object.values(sessionStorage)), []);
});

test('what is not recorded is said to be so', async (t) => {
  const { server, client } = await serveAndConnect(t, { ...two(), record: 0, log: { keep: 0 } }, up);
  await client.call('alpha__echo');
  const page = await open(t, server.origin);
  await shows(page, '#calls-none', /^Not recorded: .*'record'/);
  await shows(page, '#log-none', /^Not recorded: .*'log\.keep'/);
  await shows(page, 'tr[data-server=alpha]', /up/);
});

test('web pages and the bus are shown where there are some', async (t) => {
  const server = await serve(t, { ...two(), bus: { url: `unix:${tempDir()}/bus.sock`, role: 'worker', agents: ['RockBot'] } });
  const page = await open(t, server.origin);
  await shows(page, '#bus', /connected/);
  await shows(page, '#pages-none', /None is connected/);
  const demo = await browser.newPage();
  t.after(() => demo.close());
  await demo.goto(`${server.origin}/demo`);
  await shows(page, '#pages', /pages\s+1[^]*tools\s+\d/);
});

for (const width of [360, 1000, 1600]) {
  test(`nothing is wider than a window of ${width}`, async (t) => {
    const { server, client } = await serveAndConnect(t, two({ approve: ['add'] }), up);
    await client.call('alpha__echo', { long: 'x'.repeat(300) });
    await client.call(`alpha__${'y'.repeat(200)}`);
    client.call('alpha__add', { long: 'z'.repeat(300) }).catch(() => {});
    const page = await open(t, server.origin);
    await page.setViewportSize({ width, height: 800 });
    await shows(page, '[data-approval]', /zzz/);
    await page.locator('#calls-list').getByRole('button', { name: 'echo' }).click();
    await shows(page, '[data-pane=Text]', /xxx/);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      await shoot(page, `${width}-${colorScheme}`);
    }
  });
}
