// Is the page still there? Chromium keeps a page that the user has left, with its WebSocket, in the
// back/forward cache for minutes, and answers WebSocket pings for it. The tools of such a page stayed
// listed for 100 s and more, and a call to one hung until its timeout of 60 s.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { rialtoBin, tempDir, until, within } from './lib.mjs';
import { agent, atOnce, everyDialect, greet, page, post, serveBrowser, Socket, stream, text } from './browser_lib.mjs';
import { launch, site } from './browser_chromium_lib.mjs';

/** The message of a failed call, which must come long before the call's timeout of 60 s. */
async function failure(client, name = 'greet') {
  const { error } = await within(20_000, 'the end of the call', client.call(name, {}));
  assert.equal(error?.data?.btcpCode, 'CONNECTION_ERROR', JSON.stringify(error));
  return error.message;
}

const silent = /^The page does not answer/;

// --- pages of every dialect ---

const isPing = (m) => m.method === 'ping' || m.type === 'ping';
const isCall = (m) => m.method === 'tools/call' || m.type === 'invoke';
const pong = (m) => (m.type ? { type: 'pong' } : { jsonrpc: '2.0', id: m.id, result: { pong: true } });
const answer = (m) => (m.type ? { type: 'result', callId: m.callId, ...text('Hi') } : { jsonrpc: '2.0', id: m.id, ...text('Hi') });

for (const [name, open] of Object.entries(everyDialect)) {
  test(`a page that does not answer any more: ${name}`, async (t) => {
    const socketPath = `${tempDir()}/btcp.sock`;
    const server = await serveBrowser(t, { browser: { socket: `unix:${socketPath}` } });
    const peer = await open(t, server, [greet], socketPath);
    const client = await agent(server, '*');
    await client.waitFor('greet');
    const calls = [];
    let owed;
    peer.heard = (m) => {
      if (isPing(m)) peer.say(pong(m));
      if (isCall(m)) { calls.push(m); peer.say(answer(m)); }
    };
    assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
    // The page answers nothing now. A call, which it would carry out when it wakes up, is not even sent.
    await new Promise((resolve) => { setTimeout(resolve, 200); });
    peer.heard = (m) => { if (isPing(m)) owed = m; if (isCall(m)) calls.push(m); };
    assert.match(await failure(client), silent);
    assert.equal(calls.length, 1);
    await until('the tool to go', async () => (await client.toolNames()).length === 0);
    // The page answers again.
    peer.heard = (m) => { if (isPing(m)) peer.say(pong(m)); if (isCall(m)) peer.say(answer(m)); };
    peer.say(pong(owed));
    await client.waitFor('greet');
    assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
  });
}

// The ping that the page had not answered ended with its last connection. The next connection of that page freed it
// once more, and the daemon crashed.
test('a page that did not answer, lost its connection and comes back', async (t) => {
  const server = await serveBrowser(t);
  const first = (await page(t, server, 'S', [greet], '&clientId=tab')).answer(() => text('Hi'));
  const client = await agent(server, 'S');
  assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  first.pongs = false;
  first.answer(() => new Promise(() => {}));
  assert.match(await failure(client), silent);
  first.ws.terminate();
  await first.closed;
  (await page(t, server, 'S', [greet], '&clientId=tab')).answer(() => text('Hi again'));
  await client.waitFor('greet');
  assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi again');
});

// The user followed a link while a call waited for the sign of life of the page before: the next document of the site
// opened its stream, but was never asked. The page was taken for silent, and its tools were gone, for good.
test('a page by events whose stream replaces one that owes an answer to a ping', async (t) => {
  const server = await serveBrowser(t);
  const where = '/message?sessionId=S';
  /** A document that opens the stream of the session's page, and answers while `live`. */
  const open = async (said) => {
    const events = await stream(t, server, '/events?sessionId=S&clientType=browser');
    const document = { live: true, events };
    let seen = 0;
    const look = setInterval(() => {
      for (const { data } of events.events().slice(seen)) {
        seen++;
        if (document.live && isPing(data)) post(server, where, pong(data));
        if (document.live && isCall(data)) post(server, where, { jsonrpc: '2.0', id: data.id, ...text(said) });
      }
    }, 5);
    t.after(() => clearInterval(look));
    await post(server, where, { jsonrpc: '2.0', id: 'r', method: 'tools/register', params: { tools: [greet] } });
    return document;
  };
  const first = await open('Hi');
  const client = await agent(server, 'S');
  assert.equal(await client.text('greet'), 'Hi');
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  first.live = false; // frozen, with its stream still open
  const waiting = client.text('greet');
  await until('the ping', () => isPing(first.events.events().at(-1).data));
  await open('Hi again');
  assert.equal(await within(20_000, 'the call', waiting), 'Hi again');
  first.events.close();
  await new Promise((resolve) => { setTimeout(resolve, 2000); });
  assert.deepEqual(await client.toolNames(), ['greet']);
  assert.equal(await client.text('greet'), 'Hi again');
  // The newest connection is lost while it owes an answer: the one before it is the page's again.
  const third = await open('Hi at last');
  assert.equal(await client.text('greet'), 'Hi at last');
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  third.live = false;
  const last = client.text('greet');
  await until('the ping', () => isPing(third.events.events().at(-1).data));
  third.events.close();
  assert.equal(await within(20_000, 'the last call', last), 'Hi again');
});

// All documents that come by events without a client id are one page. One that knew no ping was held to what the one before
// it had answered: its calls failed, and its tools were gone. One that could ask its user was not asked.
test('a document is not judged by what the one before it could answer', async (t) => {
  const server = await serveBrowser(t, { browser: { capabilities: 'strict' } });
  const tools = [greet, { ...greet, name: 'draw', capabilities: ['dom:write'] }];
  const meta = '__btcp_request_capabilities';
  const first = await everyDialect.D4a(t, server, tools);
  first.heard = (m) => {
    if (isPing(m)) first.say(pong(m));
    if (isCall(m)) first.say(answer(m));
    if (m.method === 'capabilities/request') first.say({ jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'Method not found' } });
  };
  const client = await agent(server, 'S');
  await client.waitFor('greet', meta);
  assert.equal(await client.text('greet'), 'Hi');
  assert.match(await client.text(meta, { capabilities: ['dom:write'] }), /"denied":\["dom:write"\]/);
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  first.heard = undefined; // it is frozen, and a call waits for its sign of life
  const waiting = client.text('greet');
  await new Promise((resolve) => { setTimeout(resolve, 100); });
  const second = await everyDialect.D4a(t, server, tools);
  second.heard = (m) => {
    if (isCall(m)) setTimeout(() => second.say({ jsonrpc: '2.0', id: m.id, ...text('Hi again') }), 2000);
    if (m.method === 'capabilities/request') second.say({ jsonrpc: '2.0', id: m.id, result: { granted: m.params.capabilities } });
  };
  assert.equal(await within(20_000, 'the call that waited', waiting), 'Hi again');
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  assert.equal(await client.text('greet'), 'Hi again');
  assert.match(await client.text(meta, { capabilities: ['dom:write'] }), /"granted":\["dom:write"\]/);
  assert.equal(await client.text('draw'), 'Hi again');
});

test('a page that has taken a call has the time of the call, and those that come meanwhile wait for it', async (t) => {
  const server = await serveBrowser(t);
  const busy = await page(t, server, 'S', [{ ...greet, name: 'slow' }, greet]);
  const client = await agent(server, 'S');
  const late = [];
  busy.pongs = false;
  busy.onFrame = (m) => { if (isPing(m)) busy.send(pong(m)); if (isCall(m)) late.push(m); };
  const slow = client.call('slow', {});
  await until('the call', () => late.length === 1);
  busy.onFrame = (m) => { late.push(m); }; // busy: it answers no ping in time
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  const second = client.call('greet', {});
  await new Promise((resolve) => { setTimeout(resolve, 2500); });
  busy.onFrame = (m) => { if (isCall(m)) busy.send(answer(m)); };
  for (const m of late) busy.send(isPing(m) ? pong(m) : answer(m));
  assert.equal((await within(20_000, 'the slow call', slow)).result.content[0].text, 'Hi');
  assert.equal((await within(20_000, 'the other', second)).result.content[0].text, 'Hi');
});

// A ping before every call would double the time of the call. Any message of the page is a sign of life.
test('a page that was just heard of gets its call at once, and is not asked before', async (t) => {
  const server = await serveBrowser(t);
  const busy = await page(t, server, 'S', [greet]);
  const client = await agent(server, 'S');
  busy.pongs = false;
  busy.onFrame = (m) => { if (isPing(m)) busy.send(pong(m)); if (isCall(m)) busy.send(answer(m)); };
  await client.call('greet', {});
  const first = async () => {
    await new Promise((resolve) => { setTimeout(resolve, 200); });
    const seen = busy.frames.length;
    await busy.request('ping');
    await client.call('greet', {});
    return busy.messages().slice(seen).find((m) => isPing(m) || isCall(m));
  };
  const order = []; // on a busy machine the call may come too long after the page's message
  while (order.length < 20 && order.at(-1) !== 'tools/call') order.push((await first()).method);
  assert.equal(order.at(-1), 'tools/call', order.join());
});

// The first call brought a ping along, which a program that played 2,000 pages had to answer at its busiest. And a page
// that was left before its first call got that call with the ping, and carried it out whenever it woke up.
test('a page is asked when it has registered: a first call that comes soon is sent at once, a later one waits', async (t) => {
  const server = await serveBrowser(t);
  const hearing = async (session) => {
    const one = new Socket(t, server, `/ws?sessionId=${session}&clientType=browser&version=1.0.0`);
    await one.opened;
    one.onFrame = (m) => { if (isPing(m)) one.send(pong(m)); if (isCall(m)) one.send(answer(m)); };
    await one.request('tools/register', { tools: [greet] });
    await one.find('the ping', isPing);
    return one;
  };
  const methods = (one) => one.messages().filter((m) => isPing(m) || isCall(m)).map((m) => m.method).join();
  let soon;
  for (let n = 0; n < 20 && soon !== 'ping,tools/call'; n++) { // on a busy machine the call may come too late
    const one = await hearing(`soon-${n}`);
    await (await agent(server, `soon-${n}`)).call('greet', {});
    soon = methods(one);
  }
  assert.equal(soon, 'ping,tools/call');
  const left = await hearing('left');
  const client = await agent(server, 'left');
  left.onFrame = undefined;
  await new Promise((resolve) => { setTimeout(resolve, 1100); });
  assert.match(await failure(client), silent);
  assert.equal(methods(left), 'ping,ping');
});

test('a page that never answered: its first call fails soon, one that answers calls alone is served', async (t) => {
  const server = await serveBrowser(t);
  const mute = await page(t, server, 'mute', [greet], '', false);
  assert.match(await failure(await agent(server, 'mute')), silent);
  assert.ok(mute.messages().some(isPing));
  await atOnce('a call to a page that does not answer', 2000, async (n) => {
    await page(t, server, `mute-${n}`, [greet], '', false);
    const impatient = await agent(server, `mute-${n}`);
    const began = Date.now();
    await failure(impatient);
    return Date.now() - began;
  });
  // The next call must not hang either: the first ping was still open, and was not checked again.
  await new Promise((resolve) => { setTimeout(resolve, 2000); });
  const again = Date.now();
  await failure(await agent(server, 'mute'));
  assert.ok(Date.now() - again < 10_000);
  const plain = (await page(t, server, 'plain', [greet], '', false)).answer(() => text('Hi'));
  const client = await agent(server, 'plain');
  assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  plain.answer(() => new Promise((resolve) => { setTimeout(resolve, 2500, text('Late')); }));
  assert.equal((await client.call('greet', {})).result.content[0].text, 'Late');
});

// The session of a page that had left was checked every 10 s until it ended, by default for an hour.
// Only the check of the configuration file every 5 s may wake an idle daemon.
test('a daemon whose pages have left sleeps', async (t) => {
  const file = `${tempDir()}/trace`;
  const server = await serveBrowser(t, {}, {
    bin: ['strace', '-D', '-ttt', '-o', file, rialtoBin], env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  const gone = await page(t, server, 'S', [greet]);
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  gone.ws.close();
  await gone.closed;
  await new Promise((resolve) => { setTimeout(resolve, 16_000); }); // lets the last keep-alive pass, too
  const from = Date.now();
  await new Promise((resolve) => { setTimeout(resolve, 21_000); });
  const calls = fs.readFileSync(file, 'utf8').split('\n').filter((line) => parseFloat(line) * 1000 >= from);
  const looks = calls.filter((line) => line.includes(server.config));
  const sleeps = calls.filter((line) => /epoll_p?wait\(/.test(line) && !/, \d\) += 0$/.test(line));
  assert.ok(looks.length > 1 && sleeps.length <= looks.length + 1, calls.join('\n'));
});

// --- Chromium, with its cache ---

// The tools say whether their page came from the cache.
const counted = `<script>addEventListener('pageshow', (e) => { window.cached = e.persisted; });</script>`;

for (const script of ['rialto.js', 'webmcp.js']) {
  test(`Chromium: a page with ${script} that was left goes at once, and is back with "back"`, async (t) => {
    const server = await serveBrowser(t);
    const use = script === 'rialto.js' ? `rialto.registerTool({ name: 'greet', description: 'Greets', handler: () => (window.cached ? 'Hi again' : 'Hi') });`
      : `document.modelContext.registerTool({ name: 'greet', description: 'Greets', execute: async () => (window.cached ? 'Hi again' : 'Hi') });`;
    const port = await site(t, { '/': `${counted}<script src="${server.origin}/${script}" data-session="S"></script><script>${use}</script>`, '/away': 'away' });
    const tab = await (await launch(t)).newPage();
    await tab.goto(`http://localhost:${port}/`);
    const client = await agent(server, 'S', { wait: true });
    await client.waitFor('greet');
    assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
    await tab.goto(`http://localhost:${port}/away`);
    await until('the tool to go', async () => (await client.toolNames()).length === 0);
    await failure(client);
    await tab.goBack({ waitUntil: 'commit' });
    await client.waitFor('greet');
    assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi again');
  });
}

test('Chromium: a page that keeps its socket while it is cached', async (t) => {
  const server = await serveBrowser(t);
  const port = await site(t, { '/': `${counted}<script>
      const ws = new WebSocket('${server.origin.replace('http', 'ws')}/ws?sessionId=S&clientType=browser');
      const say = (m) => ws.send(JSON.stringify({ jsonrpc: '2.0', ...m }));
      ws.onopen = () => say({ id: 'x', method: 'tools/register', params: { tools: [${JSON.stringify(greet)}] } });
      ws.onmessage = ({ data }) => {
        const m = JSON.parse(data);
        if (m.method === 'ping') say({ id: m.id, result: { pong: true } });
        if (m.method === 'tools/call') say({ id: m.id, result: { content: [{ type: 'text', text: window.cached ? 'Hi again' : 'Hi' }] } });
      };</script>`, '/away': 'away' });
  const tab = await (await launch(t)).newPage();
  await tab.goto(`http://localhost:${port}/`);
  const client = await agent(server, 'S', { wait: true });
  await client.waitFor('greet');
  assert.equal((await client.call('greet', {})).result.content[0].text, 'Hi');
  await tab.goto(`http://localhost:${port}/away`);
  // The page is frozen a moment after the user has left it. A page that takes a call in that moment has the
  // call's full time: it could still be working on it.
  await new Promise((resolve) => { setTimeout(resolve, 2000); });
  await failure(client);
  await until('the tool to go', async () => (await client.toolNames()).length === 0);
});
