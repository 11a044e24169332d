// A call made in the page, from beginning to end: progress, Cancel, the server's questions as dialogs, resources and prompts,
// tasks; its story among the calls, live, replayed and edited; all of it by the keyboard alone.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exchange, fake, root, serve, serveAndConnect, sleep, until } from './lib.mjs';
import { launch } from './browser_chromium_lib.mjs';
import { accessible, LONG, open as openPage, shoot, shows } from './page_lib.mjs';
import { fixtureEntry, ModernClient, node22 } from './peers.mjs';

let browser, close;
before(async () => { browser = await launch({ after: (end) => { close = end; } }); });
after(() => close?.());

const forms = () => ({ command: process.execPath, args: [path.join(root, 'tests/fixture/forms_server.mjs')] });
const open = (t, origin, view) => openPage(t, browser, origin, { view });
const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
const get = async (server, at) => JSON.parse((await exchange(server.origin + at, { method: 'GET' })).text);
async function fixture(t) {
  const server = await serve(t, { control: 'off', servers: { fx: fixtureEntry('legacy'), now: fixtureEntry('modern') } });
  await new ModernClient(server.url).waitFor('fx__echo', 'now__echo');
  return server;
}

test('progress as it comes, and Cancel', async (t) => {
  const server = await fixture(t);
  const page = await open(t, server.origin, 'tools/fx__test_tool_with_progress');
  await press(page, 'Call');
  await until('progress', async () => await page.locator('progress').isVisible() || /Done/.test(await page.locator('.progress').innerText()), LONG);
  await shows(page, '.progress', /^Done after/);
  await page.goto(`${server.origin}/#/tools/fx__slow`);
  await page.getByLabel('Arguments as JSON').fill('{"ms":600000,"tag":"p"}');
  await press(page, 'Call');
  await shows(page, '.progress', /Running/);
  const state = async () => (await new ModernClient(server.url).call('fx__slow_state', { tag: 'p' })).result.content[0].text;
  await until('it to run', async () => await state() === 'running', LONG);
  await press(page, 'Cancel');
  await shows(page, '.progress', /^Cancelled after/);
  await until('the server to know', async () => await state() === 'cancelled', LONG);
});

test('questions: a form, a choice to decline, an answer for a model, folders, an address', async (t) => {
  const server = await fixture(t);
  const page = await open(t, server.origin, 'tools/fx__test_elicitation');
  const dialog = page.getByRole('dialog');
  await page.getByLabel('message', { exact: true }).fill('Who are you?');
  await press(page, 'Call');
  await dialog.waitFor();
  assert.match(await dialog.innerText(), /Who are you\?/);
  await accessible(page, 'a question');
  await dialog.getByRole('button', { name: 'Accept' }).click();
  assert.equal(await dialog.getByLabel('username').getAttribute('aria-invalid'), 'true', 'what is missing is marked, and the dialog stays');
  await dialog.getByLabel('username').fill('ann');
  await dialog.getByLabel('email').fill('a@example.com');
  await dialog.getByRole('button', { name: 'Accept' }).click();
  await shows(page, '.result', /"action":"accept"[^]*"ann"/);
  await press(page, 'Call');
  await dialog.getByRole('button', { name: 'Decline' }).click();
  await shows(page, '.result', /"action":"decline"/);

  await page.goto(`${server.origin}/#/tools/fx__test_sampling`);
  await page.getByLabel('prompt', { exact: true }).fill('Say hello');
  await press(page, 'Call');
  assert.match(await dialog.innerText(), /Say hello/);
  await dialog.getByLabel('Answer', { exact: true }).fill('Hello from a person');
  await dialog.getByRole('button', { name: 'Accept' }).click();
  await shows(page, '.result', /LLM response: Hello from a person/);

  await page.goto(`${server.origin}/#/tools/now__test_input_required_result_list_roots`);
  await press(page, 'Call');
  await dialog.getByLabel(/^Roots/).fill('file:///tmp/here');
  await dialog.getByRole('button', { name: 'Accept' }).click();
  await shows(page, '.result', /Roots: file:\/\/\/tmp\/here/);

  await page.goto(`${server.origin}/#/tools/fx__ask_url`);
  await press(page, 'Call');
  assert.match(await dialog.innerText(), /https:\/\/example\.com\/login/);
  await dialog.getByRole('button', { name: 'Decline' }).click();
  await shows(page, '.result', /decline/);
});

test('a call’s story, with the server’s question in it; replay and edit', async (t) => {
  const { server, client } = await serveAndConnect(t, { control: 'off', servers: { f: forms(), g: forms() } }, ['f__count', 'g__count']);
  await client.rawRequest('"o"', 'tools/call', '{"name":"f__order","arguments":{"name":"Ann","count":2,"price":1.50}}');
  await client.call('f__count');
  const calls = await get(server, '/api/calls');
  const of = (name) => calls.find((c) => c.name === name).id;

  const page = await open(t, server.origin, `calls/${of('order')}`);
  const story = page.getByRole('figure', { name: 'Story' });
  await until('the story', async () => (await story.innerText().catch(() => '')).split('tools/call').length > 2, LONG);
  const said = await story.innerText();
  for (const part of ['Rialto', 'f', 'tools/call', 'ms']) assert.ok(said.includes(part), part);
  assert.match(said, /→ Rialto[^]*Rialto → f[^]*f → Rialto[^]*Rialto →/);
  await story.locator('summary').first().click();
  await until('the message', async () => /"price": 1\.50/.test(await story.innerText()), LONG);
  await accessible(page, 'a call');
  await shoot(page, 'story');

  // This tool only reads: it is run at once, and the answer is the same.
  await press(page, 'Replay');
  await until('the outcome', async () => /The answer (is the same|differs)/.test(await page.locator('.replayed').innerText()), LONG);
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByRole('heading', { name: /^Tools: f__order/ }).waitFor();
  assert.match(await page.getByLabel('Arguments as JSON').inputValue(), /"price": 1\.50/);
  assert.equal(await page.getByLabel('Customer', { exact: true }).inputValue(), 'Ann');

  // This tool does not say that it only reads: the page asks first, and the answer differs.
  await page.goto(`${server.origin}/#/calls/${of('count')}`);
  await press(page, 'Replay');
  await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
  await until('the difference', async () => /The answer differs[^]*-[^]*count 1[^]*\+[^]*count 2/.test(await page.locator('.replayed').innerText()), LONG);
});

test('a call that runs grows in its story', async (t) => {
  const { server, client } = await serveAndConnect(t, { control: 'off', servers: { alpha: fake('--name', 'alpha') } }, ['alpha__sleep']);
  const ended = client.call('alpha__sleep', { ms: 4000 });
  const call = await until('the call', async () => (await get(server, '/api/calls')).find((c) => c.name === 'sleep'), LONG);
  const page = await open(t, server.origin, `calls/${call.id}`);
  const legs = page.locator('.legs li');
  await until('what was sent', async () => await legs.count() >= 2, LONG);
  await shows(page, '.call-head', /running/);
  await ended;
  await until('the answer', async () => await legs.count() >= 4 && /ok/.test(await page.locator('.call-head').innerText()), LONG);
});

test('resources are read and subscribed to, templates completed, prompts got', async (t) => {
  const server = await fixture(t);
  const page = await open(t, server.origin, 'tools?kind=resource');
  await page.locator('.offer a').first().click();
  await press(page, 'Read');
  await page.locator('.result').waitFor();
  const uri = (await page.locator('code.padded').innerText());
  await press(page, 'Subscribe');
  await page.getByText('Waiting for changes').waitFor();
  await until('a change', async () => {
    await new ModernClient(server.url).call('fx__touch', { uri });
    return /Changed/.test(await page.locator('#view').innerText());
  }, LONG);
  await press(page, 'Unsubscribe');
  await page.goto(`${server.origin}/#/tools?kind=template`);
  await page.locator('.offer a').first().click();
  const input = page.locator('.fields input').first();
  await input.fill('pa');
  await until('offers', async () => await page.locator('datalist option').count() > 0, LONG);
  await press(page, 'Read');
  await until('an end', async () => /Done|Failed/.test(await page.locator('.progress').innerText()), LONG);
  await page.goto(`${server.origin}/#/tools?kind=prompt`);
  await page.locator('.offer a').first().click();
  for (const box of await page.locator('.fields input').all()) await box.fill('x');
  await press(page, 'Get');
  await shows(page, '.progress', /^Done after/);
});

test('a task: its state and its result', async (t) => {
  const script = path.join(root, 'tests/fixture/task_server.mjs');
  const server = await serve(t, { control: 'off', servers: { up: { command: node22, args: [script, 'modern'] } } });
  const agent = new ModernClient(server.url);
  await agent.waitFor('up__plain');
  const page = await open(t, server.origin, 'tools/up__slow');
  await press(page, 'Call');
  await shows(page, '.progress', /Task working/);
  await agent.call('up__go');
  await shows(page, '.result', /slow/);
});

// Cancel only stopped the page's questions: the task went on, and the page said that it was cancelled.
test('Cancel ends a task; leaving the view does not', async (t) => {
  const script = path.join(root, 'tests/fixture/task_server.mjs');
  const server = await serve(t, { control: 'off', servers: { up: { command: node22, args: [script, 'modern'] } } });
  await new ModernClient(server.url).waitFor('up__plain');
  const page = await open(t, server.origin, 'tools/up__slow');
  const rows = page.getByRole('region', { name: 'Tasks' }).locator('tbody tr');
  const begin = async () => {
    await press(page, 'Call');
    await shows(page, '.progress', /Task working/);
  };
  const states = async () => (await rows.allInnerTexts()).map((row) => /cancelled|working/.exec(row)?.[0]).sort().join();
  await begin();
  await press(page, 'Cancel');
  await shows(page, '.progress', /^Cancelled after/);
  await begin();
  await page.goto(`${server.origin}/#/calls`);
  await until('a task of each state', async () => await states() === 'cancelled,working', LONG);
  await sleep(700); // longer than the page waits before it asks again
  assert.equal(await states(), 'cancelled,working');
});

// An invalid time in a task of one server left the list of all tasks empty.
test('tasks among the calls, also one whose server gives no time, and Cancel', async (t) => {
  const script = path.join(root, 'tests/fixture/task_server.mjs');
  const server = await serve(t, { control: 'off', servers: { up: { command: node22, args: [script, 'modern'] }, odd: { command: node22, args: [script, 'modern', '--odd-times'] } } });
  await new ModernClient(server.url).waitFor('up__plain', 'odd__plain');
  for (const name of ['up', 'odd']) {
    const page = await open(t, server.origin, `tools/${name}__slow`);
    await press(page, 'Call');
    await shows(page, '.progress', /Task working/);
  }
  const page = await open(t, server.origin, 'calls');
  const rows = page.getByRole('region', { name: 'Tasks' }).locator('tbody tr');
  await until('both', async () => await rows.count() === 2, LONG);
  await rows.filter({ hasText: 'odd' }).getByRole('button', { name: 'Cancel' }).click();
  await until('its end', async () => /cancelled/.test(await rows.filter({ hasText: 'odd' }).innerText()), LONG);
  assert.match(await rows.filter({ hasText: 'up' }).innerText(), /working/);
});

test('by the keyboard alone: from the first Tab to a result', async (t) => {
  const { server } = await serveAndConnect(t, { control: 'off', servers: { f: forms() } }, ['f__any']);
  const page = await open(t, server.origin, 'start');
  await page.getByRole('heading', { name: 'Start' }).waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id || '');
  const tabTo = async (what, most = 60) => {
    for (let i = 0; i < most; i++) {
      await page.keyboard.press('Tab');
      if (what(await focused())) return;
    }
    assert.fail('not reached by Tab');
  };
  await tabTo((text) => text === 'Tools');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor();
  await page.locator('.offer a').first().waitFor();
  await tabTo((text) => text === 'f__any', 120);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
  await tabTo((text) => text === 'Call');
  await page.keyboard.press('Enter');
  await page.locator('.result [data-pane=Text]').waitFor();
  assert.ok(await page.locator('.result').evaluate((e) => e.contains(document.activeElement)));
});
