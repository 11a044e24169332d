// Rialto as the bridge before a BTCP server that runs elsewhere (`btcpServerUrl` of the document): the
// server's sessions and tools are offered, also after an outage of the server. This was not possible.
// The server here is another Rialto, which speaks to agents like btcp-server and like the document.
import assert from 'node:assert/strict';
import test from 'node:test';
import { StdioClient, load, rialtoBin, sanitizerEnv, tempDir, until, within, writeConfig } from './lib.mjs';
import { agent, greet, page, serveBrowser, text } from './browser_lib.mjs';

const named = (name) => ({ ...greet, name });

test('all sessions of a server by http://, also those that come later; calls, failures, the end of a page', async (t) => {
  const there = await serveBrowser(t);
  const one = (await page(t, there, 'one', [named('first')])).answer((name, { who }) => text(`${name} ${who}`));
  const here = await serveBrowser(t, { browser: { join: [{ url: there.origin }] } });
  const client = await agent(here);
  await client.waitFor('first');
  assert.equal(await client.text('first', { who: 'Ann' }), 'first Ann');
  one.answer(() => ({ error: { code: 'INVALID_PARAMS', message: 'who?' } }));
  assert.match((await client.call('first', {})).error.message, /who\?/);
  const two = (await page(t, there, 'two', [named('second')])).answer(() => text('2'));
  await until('the second session', async () => (await client.toolNames()).includes('second'), 20_000);
  assert.equal(await client.text('second'), '2');
  assert.equal(await (await agent(here, 'two')).text('second'), '2', 'by its own name');
  await two.request('tools/register', { tools: [named('changed')] });
  await until('the change', async () => (await client.toolNames()).includes('changed'));
  two.ws.terminate();
  await until('the end of the page', async () => !(await client.toolNames()).includes('changed'));
});

test('one session by ws://, as the document has it', async (t) => {
  const there = await serveBrowser(t);
  (await page(t, there, 'one', [named('first')])).answer(() => ({ result: { content: 'Article', wordCount: 523 } }));
  await page(t, there, 'two', [named('second')]);
  const here = await serveBrowser(t, { browser: { join: [{ url: there.origin.replace('http', 'ws'), session: 'one' }] } });
  const client = await agent(here);
  await client.waitFor('first');
  assert.ok(!(await client.toolNames()).includes('second'));
  assert.equal(await client.text('first'), '{"content":"Article","wordCount":523}');
});

for (const scheme of ['http', 'ws']) {
  test(`a server by ${scheme}:// that is restarted: its tools are gone and come back, a call does not hang`, async (t) => {
    const first = await serveBrowser(t);
    const listen = new URL(first.origin).host;
    const socket = await page(t, first, 'one', [named('first')]);
    const here = await serveBrowser(t, { browser: { join: [{ url: first.origin.replace('http', scheme), session: 'one' }] } });
    const client = await agent(here);
    await client.waitFor('first');
    const hanging = client.call('first', {});
    await socket.find('the call', (m) => m.method === 'tools/call');
    await first.stop();
    assert.ok((await within(20_000, 'the end of the call', hanging)).error); // from the server, or from us
    await until('gone', async () => !(await client.toolNames()).includes('first'));
    const again = await serveBrowser(t, { listen });
    (await page(t, again, 'one', [named('first')])).answer(() => text('again'));
    await until('back', async () => (await client.toolNames()).includes('first'), 30_000);
    assert.match(await client.text('first'), /again/);
  });
}

// Every connection counted as a success, so a server that had not this session was tried again every half second, for
// ever, with two lines in the log each time, one of which said that the server was not there.
test('a server by ws:// that does not have the session is tried less and less often, and the log says why', async (t) => {
  const WebSocket = load('ws');
  const there = new WebSocket.Server({ host: '127.0.0.1', port: 0 });
  await new Promise((resolve) => { there.on('listening', resolve); });
  t.after(() => there.close());
  let tries = 0;
  there.on('connection', (ws) => {
    tries++;
    ws.on('message', (data) => {
      const { id } = JSON.parse(data);
      if (id !== undefined) ws.send(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Session not found' } }));
    });
  });
  const here = await serveBrowser(t, { browser: { join: [{ url: `ws://127.0.0.1:${there.address().port}`, session: 'one' }] } });
  await until('the fourth try', () => tries === 4, 20_000);
  const began = Date.now();
  await until('the fifth try', () => tries === 5, 20_000);
  assert.ok(Date.now() - began > 1500, `after ${Date.now() - began} ms`); // half of the fourth pause, which is 4 s
  assert.equal(here.stderr().match(/does not have this session/g)?.length, 1, here.stderr());
  assert.doesNotMatch(here.stderr(), /joined the BTCP server|is not there/);
});

test('rialto browser --join: one server on stdin and stdout', async (t) => {
  const there = await serveBrowser(t);
  (await page(t, there, 'one', [named('first')])).answer(() => text('joined'));
  const env = { ...process.env, ...sanitizerEnv, XDG_STATE_HOME: tempDir(), BTCP_SESSION_ID: '' };
  const client = new StdioClient(t, rialtoBin, ['browser', '--join', there.origin, '-c', writeConfig(tempDir(), { control: 'off' })], { env });
  await client.connect();
  await until('the tool', async () => (await client.request('tools/list')).result.tools.some((x) => x.name === 'first'));
  assert.equal((await client.request('tools/call', { name: 'first', arguments: {} })).result.content[0].text, 'joined');
  await client.stop();
});
