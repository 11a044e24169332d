// The page in a real browser, with what it had from the beginning: servers, calls, the log, approvals and tokens; that
// nothing which servers and agents send becomes part of the page, and that it comes back when the daemon does. What is
// newer is in page_*.test.mjs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exchange, fake, HttpClient, rialto, serve, serveAndConnect, sleep, tempDir, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { LONG, open as openPage, shoot, shows, text, visit } from './page_lib.mjs';

let browser, close; // one for all tests, with a tab for each
before(async () => { browser = await launch({ after: (end) => { close = end; } }); });
after(() => close?.());

const open = (t, origin, options) => openPage(t, browser, origin, { view: 'servers', ...options });
const stateOf = async (server, name) => JSON.parse((await exchange(`${server.origin}/api/servers/${name}`, { method: 'GET' })).text).state;
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
  await visit(page, 'Calls');
  await shows(page, '#calls-none', /^No calls yet\.$/);
  const choices = (label) => page.getByLabel(label, { exact: true }).locator('option').allInnerTexts();
  await until('the servers', async () => (await choices('Server')).join() === 'all,alpha,beta', LONG);

  // What JSON.parse would change is shown as it was sent.
  await client.rawRequest('"a"', 'tools/call', '{"name":"alpha__echo","arguments":{"z":12345678901234567890,"9":1.50,"1":"<i>"}}');
  await client.call('beta__fail');
  await client.call('beta__error');
  await until('the calls', async () => await count(page) === 3, LONG);
  const rows = page.locator('#calls-list tr.call');
  assert.match(await rows.nth(2).innerText(), /\d:\d\d:\d\d[^]*alpha\s+.*echo[^]*ok\s+\d+ ms/);
  assert.match(await rows.nth(1).innerText(), /beta\s+.*fail[^]*error/);

  // With the keyboard alone.
  const link = page.locator('#calls-list').getByRole('link', { name: 'echo' });
  await link.focus();
  await page.keyboard.press('Enter');
  await shows(page, '[data-pane=Arguments] pre', /./);
  assert.equal(await text(page, '[data-pane=Arguments] pre'), '{\n  "z": 12345678901234567890,\n  "9": 1.50,\n  "1": "<i>"\n}');
  assert.match(await text(page, '[data-pane=Text] pre'), /"z":12345678901234567890/);
  await page.getByText('The whole result').click();
  await shows(page, '[data-pane=Result] pre', /"lexeme": 1\.50e\+2/);
  await page.goBack();

  await page.getByLabel('failed only').check();
  await until('the failed ones', async () => await count(page) === 2, LONG);
  await page.getByLabel('Server', { exact: true }).selectOption('alpha');
  await shows(page, '#calls-none', /^No such calls\.$/);
  await page.getByLabel('failed only').uncheck();
  await until('those of alpha', async () => await count(page) === 1, LONG);
  assert.deepEqual(await choices('Server'), ['all', 'alpha', 'beta'], 'no choice is there twice');
  await shoot(page, 'calls');

  await visit(page, 'Servers');
  await shows(page, 'tr[data-server=beta]', /16\s+2\s+2\b/); // tools, calls, and both calls failed

  await visit(page, 'Log');
  await shows(page, '#log', /info\s+beta\s+[^]*call \d+ of error failed/);
  await page.selectOption('#log-level', 'error');
  await shows(page, '#log-none', /^Nothing of this level\.$/);
  await page.selectOption('#log-level', 'info');
  await shows(page, '#log', /fake server alpha is up/);
  assert.equal(new Set(await choices('Server')).size, (await choices('Server')).length, 'no choice is there twice');
  await page.getByLabel('Search').fill('of error failed');
  await until('the one line', async () => await page.locator('#log li').count() === 1, LONG);

  await visit(page, 'Start');
  assert.match(await text(page, '#addresses'), new RegExp(`${server.url}\n[^]*${server.url}/sse\n`));
  await page.getByLabel('Server', { exact: true }).selectOption('beta');
  await shows(page, '#addresses', /\/mcp\/beta\n/);
  assert.deepEqual(await choices('Server'), ['all', 'alpha', 'beta']);
  await browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.origin });
  await page.getByRole('button', { name: 'Copy Streamable HTTP' }).click();
  await until('the copy', async () => await page.evaluate(() => navigator.clipboard.readText()) === `${server.url}/beta`);
});

test('a long result is cut, and says so; a call under way shows its result when it ends; stopping asks first', async (t) => {
  const { server, client } = await serveAndConnect(t, two(), up);
  await client.call('alpha__big', { bytes: 100_000 });
  const page = await open(t, server.origin, { view: 'calls' });
  await page.locator('#calls-list').getByRole('link', { name: 'big' }).click();
  await shows(page, '[data-pane=Result]', /^Result\s+97\.\d KiB\s+cut: only its beginning was kept/);
  assert.ok((await text(page, '[data-pane=Result] pre')).length < 50_000);

  // A call that does not end by itself: its server is stopped once the page shows it.
  const ended = client.call('alpha__sleep', { ms: 600_000 });
  await visit(page, 'Calls');
  const row = 'tr.call:has(a:text-is("sleep"))';
  await shows(page, row, /running/);
  await page.locator(row).getByRole('link').click();
  await shows(page, '[data-pane=Arguments] pre', /"ms": 600000/);
  await shows(page, '.call-head', /running/);
  const other = await open(t, server.origin);
  await shows(other, 'tr[data-server=alpha]', /1 now/);
  await other.getByRole('button', { name: 'Stop alpha' }).click();
  const dialog = other.getByRole('dialog');
  assert.match(await dialog.innerText(), /Stop alpha\?[^]*1 call under way/);
  assert.equal(await stateOf(server, 'alpha'), 'up', 'not before it was asked twice');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await stateOf(server, 'alpha'), 'up');
  await other.getByRole('button', { name: 'Stop alpha' }).click();
  await dialog.getByRole('button', { name: 'Stop' }).click();
  await shows(page, '.call-head', /failed[^]*alpha/);
  await ended;
});

test('servers are stopped, started and restarted', async (t) => {
  const { server } = await serveAndConnect(t, two(), up);
  const page = await open(t, server.origin);
  const order = async (verb) => page.getByRole('button', { name: `${verb} alpha` }).click();
  await order('Stop');
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
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
  await shows(page, 'tr[data-server=bad]', /failing\s+for \d+ \w+[^]*exited with 3[^]*no key in the drawer/);
  await shows(page, 'tr[data-server=bad]', /next try in \d+ \w+|trying now/);
  await shows(page, 'tr[data-server=poor]', /left out[^]*needs RIALTO_TEST_NO_SUCH_KEY/);
  assert.doesNotMatch(await text(page, 'tr[data-server=poor]'), /the log says/);
  await page.getByRole('button', { name: 'Edit poor' }).waitFor();
});

// Of more than a hundred calls that change at once the oldest are left out of the message, and that they are was not
// looked at: a row said "running" for as long as the page was open.
test('a call that ends in the middle of a burst does not stay running', async (t) => {
  const { server, client } = await serveAndConnect(t, { ...two(), limits: { batch: 200 } }, up);
  const page = await open(t, server.origin, { view: 'calls' });
  client.rawRequest('"slow"', 'tools/call', '{"name":"alpha__sleep","arguments":{"ms":60000}}').catch(() => {});
  await shows(page, '#calls-list tr.call .state', /^running$/);
  await page.getByLabel('Server', { exact: true }).selectOption('alpha');
  const { id } = JSON.parse((await exchange(`${server.origin}/api/calls`, { method: 'GET' })).text)[0];
  const ended = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'slow' } };
  const burst = Array.from({ length: 150 }, (_, i) => ({ jsonrpc: '2.0', id: `b${i}`, method: 'tools/call', params: { name: 'beta__echo', arguments: {} } }));
  await client.post([ended, ...burst]);
  await until('the end', async () => JSON.parse((await exchange(`${server.origin}/api/calls/${id}`, { method: 'GET' })).text).state !== 'running');
  await shows(page, '#calls-list tr.call .state', /^(?!running)/);
});

test('calls that wait are approved and refused in every view, with their arguments in sight', async (t) => {
  const { server, client } = await serveAndConnect(t, two({ approve: ['echo'] }), up);
  const page = await open(t, server.origin);
  await shows(page, 'tr[data-server=alpha]', /up/);
  assert.ok(!await page.isVisible('#approvals'));

  const first = client.call('alpha__echo', { message: 'one', big: 1 });
  await shows(page, '[data-approval]', /echo on alpha[^]*refused in \d+ \w+/);
  assert.equal(await text(page, '[data-approval] pre'), '{\n  "message": "one",\n  "big": 1\n}');
  assert.match(await page.title(), /^\(1\) .*Rialto/);
  for (const name of ['Log', 'Numbers', 'Tools']) {
    await visit(page, name);
    assert.ok(await page.getByRole('button', { name: 'Approve echo on alpha' }).isVisible(), name);
  }
  // A decision that could not be sent is not shown as made.
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
  // The item stays for a moment, without buttons: watched from within the page, so that it is not missed.
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

// The numbers of held tools (t1, t2) were not sorted: a decided one went to the top, and who clicked twice at the same
// place decided about another tool as well. Calls that come meanwhile stand below.
test('what waits keeps its place when something else is decided', async (t) => {
  const alpha = { ...fake('--name', 'alpha'), approve: ['echo'] };
  const { server, client } = await serveAndConnect(t, { servers: { alpha }, lock: { on_change: 'ask' } }, ['alpha__echo']);
  assert.equal((await rialto(['lock', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } })).code, 0);
  const lock = path.join(server.dir, 'mcp.lock');
  const kept = fs.readFileSync(lock, 'utf8').split('\n').filter((line) => !/"(add|ask|error)"/.test(line));
  fs.writeFileSync(lock, kept.join('\n'));
  assert.equal((await exchange(`${server.origin}/api/reload`, { body: '' })).status, 200);
  const page = await open(t, server.origin);
  const rows = page.locator('#approvals-list li');
  await rows.nth(2).waitFor();
  client.call('alpha__echo', {}).catch(() => {});
  await rows.nth(3).waitFor();
  // Watched from within the page: what is decided stays for a few seconds only.
  await page.evaluate(() => {
    globalThis.orders = [];
    setInterval(() => {
      const order = [...document.querySelectorAll('#approvals-list li')].map((li) => li.dataset.approval).join(' ');
      if (globalThis.orders.at(-1) !== order) globalThis.orders.push(order);
    }, 20);
  });
  const orders = () => page.evaluate(() => globalThis.orders);
  await rows.nth(2).getByRole('button', { name: /^Refuse/ }).click();
  await until('the decided one is gone', async () => (await orders()).at(-1).split(' ').length === 3, LONG);
  const [before, ...more] = await orders();
  assert.match(before, /^t\d+ t\d+ t\d+ \d+$/);
  assert.deepEqual(more, [before.split(' ').toSpliced(2, 1).join(' ')]);
});

// Names, arguments, results, stderr and log lines, each with HTML that would show if it were interpreted.
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
  await visit(page, 'Log');
  await shows(page, '#log', /<b>words<\/b>/);
  let said = '';
  for (const name of ['echo', 'tool']) {
    await visit(page, 'Calls');
    await until('the calls', async () => await count(page) === 3, LONG);
    await page.locator('#calls-list a').filter({ hasText: name }).click();
    await page.locator('#view [data-pane=Arguments]').waitFor();
    for (const more of await page.locator('#view details').all()) await more.locator('summary').click();
    said += await text(page, '#view');
  }
  for (const where of ['name', 'argument', 'result', 'key', 'value', 'tool']) assert.ok(said.includes(`<b>${where}</b>`), where);
  assert.ok(said.includes('a\\u{202e}b\\u{e0041}c'), 'what turns text around is shown by its number');

  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('main :is(img, script, b)').count(), 0);
  assert.deepEqual(page.asked.filter((p) => p.includes('pwned')), []);
  // The page could not insert HTML even if it tried (Trusted Types).
  const tried = await page.evaluate(() => { try { document.body.innerHTML = '<p>'; return 'done'; } catch (e) { return e.name; } });
  assert.equal(tried, 'TypeError');
  page.wrong = page.wrong.filter((w) => !/TrustedHTML/.test(w));
});

/** An address that stays the same while daemons are stopped and started there. */
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

// The page took up to ten seconds to notice that the daemon was back.
test('it says so when the daemon is gone, and comes back with the next one, soon', async (t) => {
  const door = await address(t);
  const first = await serveAndConnect(t, two(), up);
  door.lead(first.server);
  await first.client.call('alpha__echo', { message: 'of the first' });
  const page = await open(t, door.origin, { view: 'calls' });
  await until('the call', async () => await count(page) === 1, LONG);
  door.lead(null);
  await first.server.stop();
  await shows(page, '#lost', /does not answer[^]*Next try in \d+ s\./);
  await shows(page, '#health', /^No answer$/);
  assert.equal(await count(page), 1, 'what was known stays in sight');
  await sleep(6000); // long enough for growing pauses to have grown

  const second = await serveAndConnect(t, { control: 'off', servers: { gamma: fake('--name', 'gamma') } }, ['gamma__echo']);
  await second.client.call('gamma__fail');
  const then = Date.now();
  door.lead(second.server);
  await shows(page, '#health', /^All is well$/);
  assert.ok(Date.now() - then < 5000, 'it waits no longer than a second for the next try');
  await until('no banner', () => page.isHidden('#lost'), LONG);
  await until('its calls', async () => await count(page) === 1 && /gamma/.test(await text(page, '#calls-list')), LONG);
  await visit(page, 'Servers');
  await until('its servers', async () => await page.locator('tr[data-server=gamma]').count() === 1 && await page.locator('#servers-list tr').count() === 1, LONG);
  await visit(page, 'Log');
  await until('its log', async () => {
    const log = await text(page, '#log');
    return log.includes(second.server.origin) && !log.includes(first.server.origin);
  }, LONG);
});

test('who may not look is told why', async (t) => {
  const { server } = await serveAndConnect(t, two(), up);
  const refusal = { error: 'only for this machine', hint: 'ask from the machine itself' };
  const page = await open(t, server.origin, { prepare: (p) => p.route('**/api/events', (route) => route.fulfill({ status: 403, json: refusal })) });
  await shows(page, '#lost', /only for this machine\nask from the machine itself/);
  assert.ok(!await page.isVisible('#token') && !await page.isVisible('#main'));
  await page.unroute('**/api/events');
  await page.getByRole('button', { name: 'Try now' }).click();
  await shows(page, 'tr[data-server=alpha]', /up/);
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
  const page = await open(t, server.origin, { prepare: (p) => p.on('request', (r) => { if (r.url().includes('/api/')) asked++; }) });
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
  assert.deepEqual(await page.evaluate(() => [Object.values(sessionStorage), Object.values(localStorage), document.cookie]), [['token-of-mine'], [], '']);
  assert.doesNotMatch(await page.content(), /token-of-mine/);
  await page.getByRole('button', { name: 'Stop alpha' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
  await shows(page, 'tr[data-server=alpha]', /stopped/);
  await page.reload();
  await shows(page, 'tr[data-server=beta]', /up/);
  await visit(page, 'Start');
  assert.match(await text(page, '[data-host=Cursor] pre'), /"Authorization": "Bearer \$\{env:RIALTO_TOKEN\}"/);
  await page.getByRole('button', { name: 'Forget token' }).click();
  await shows(page, '#token-why', /^This Rialto asks for a token\.$/);
  assert.deepEqual(await page.evaluate(() => Object.values(sessionStorage)), []);
});

test('what is not recorded is said to be so', async (t) => {
  const { server, client } = await serveAndConnect(t, { ...two(), record: 0, log: { keep: 0 } }, up);
  await client.call('alpha__echo');
  const page = await open(t, server.origin, { view: 'calls' });
  await shows(page, '#calls-none', /^Not recorded: .*'record'/);
  await visit(page, 'Log');
  await shows(page, '#log-none', /^Not recorded: .*'log\.keep'/);
});

for (const width of [360, 1000, 2560]) {
  test(`nothing is wider than a window of ${width}`, async (t) => {
    const { server, client } = await serveAndConnect(t, two({ approve: ['add'] }), up);
    await client.call('alpha__echo', { long: 'x'.repeat(300) });
    await client.call(`alpha__${'y'.repeat(200)}`);
    client.call('alpha__add', { long: 'z'.repeat(300) }).catch(() => {});
    const page = await open(t, server.origin, { view: 'calls' });
    await page.setViewportSize({ width, height: 800 });
    await shows(page, '[data-approval]', /zzz/);
    await page.locator('#calls-list').getByRole('link', { name: 'echo' }).click();
    await shows(page, '[data-pane=Text]', /xxx/);
    const fits = async (what) => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, what);
    await fits('a call');
    for (const name of ['Start', 'Tools', 'Calls', 'Sessions', 'Web pages', 'Numbers', 'Servers', 'Log']) {
      await visit(page, name);
      await sleep(200);
      await fits(name);
    }
    await page.goto(`${server.origin}/#/tools/alpha__add`);
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await fits('a tool');
      await shoot(page, `${width}-${colorScheme}`);
    }
  });
}
