// The story of a call: every message between the agent, Rialto and the server, as the API and `rialto calls ID` show
// it. A person who asks why a call took so long, or who allowed it, finds the answer there, and no secret.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, fake, HttpClient, rialto, root, serve, serveAndConnect, tempDir, until } from './lib.mjs';
import { fixtureEntry, fixtureOverHttp, ModernClient, node22 } from './peers.mjs';
import { events, get, post, tokenEntry } from './admin_lib.mjs';
import { agent as pageAgent, greet, page, serveBrowser, text } from './browser_lib.mjs';

const api = async (server, where, options = { method: 'GET' }) => {
  const answer = await exchange(`${server.origin}/api${where}`, options);
  return { status: answer.status, ...JSON.parse(answer.text), raw: answer.text };
};
const newest = async (server, name) => {
  const { text: list } = await exchange(`${server.origin}/api/calls`, { method: 'GET' });
  return JSON.parse(list).find((c) => c.name === name);
};
const story = async (server, name) => api(server, `/calls/${(await newest(server, name)).id}`);
const legs = (call) => call.story.map((l) => [l.from, l.to, l.kind, l.what]);
const kinds = (call) => call.story.map((l) => `${l.from}>${l.to} ${l.kind}`);
const command = (server, args) => rialto(args, { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });
const ordered = (call) => assert.deepEqual(call.story.map((l) => l.ms), call.story.map((l) => l.ms).toSorted((a, b) => a - b));
const fragile = (marker) => ({ command: node22, args: [path.join(root, 'tests/fixture/fragile_server.mjs'), marker] });

test('a plain call: who asked whom for what, and what came back', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } }, ['alpha__echo', 'beta__echo']);
  await client.call('alpha__echo', { message: 'hi' });
  const call = await story(server, 'echo');
  assert.deepEqual(call.parties, [{ id: 'agent', label: 'raw 1' }, { id: 'rialto', label: 'Rialto' }, { id: 'server', label: 'alpha' }]);
  assert.deepEqual(legs(call), [
    ['agent', 'rialto', 'request', 'tools/call alpha__echo'], ['rialto', 'server', 'request', 'tools/call echo'],
    ['server', 'rialto', 'result', 'result'], ['rialto', 'agent', 'result', 'result'],
  ]);
  assert.deepEqual(call.story[1].body, { name: 'echo', arguments: { message: 'hi' } });
  assert.deepEqual(call.story[2].body.structuredContent, { message: 'hi' });
  assert.ok(call.story.every((l) => l.cut === false));
  assert.match(call.session, /^[0-9a-f]{8}$/);
  assert.deepEqual([call.live, call.retried, call.replayable], [false, 0, true]);
  await client.call('alpha__error');
  assert.deepEqual(kinds(await story(server, 'error')).slice(2), ['server>rialto error', 'rialto>agent error']);
  await client.call('beta__nothing');
  assert.deepEqual(legs(await story(server, 'beta__nothing')).map((l) => l[2]), ['request', 'error']);

  await t.test('the same in the terminal, in 80 columns', async () => {
    const { id } = await newest(server, 'echo');
    for (const words of [['calls', id], ['trace', id]]) {
      const { stdout, code } = await command(server, words);
      assert.equal(code, 0);
      assert.match(stdout, /^ +\d+ ms {2}raw 1 -> Rialto: tools\/call alpha__echo\n {12}\{"name":"alpha__echo"/m);
      assert.match(stdout, /^ +\d+ ms {2}Rialto -> alpha: tools\/call echo$/m);
      assert.match(stdout, /^ +\d+ ms {2}Rialto -> raw 1: result$/m);
      const told = stdout.slice(stdout.indexOf('story:'), stdout.indexOf('\narguments:'));
      assert.ok(told.split('\n').every((line) => line.length <= 80), told);
    }
    assert.equal(JSON.parse((await command(server, ['trace', id, '--json'])).stdout).story.length, 4);
    assert.equal((await command(server, ['trace'])).code, 2);
  });
});

// The request to the server was told without the pinned arguments (tools.*.arguments), and with the agent's value for
// one: nobody could see there why a server did what it did. It is told as it was sent, also when the pins change.
test('a call with pinned arguments: what the agent said, and what the server got', async (t) => {
  const config = (tools) => ({ servers: { alpha: { ...fake('--name', 'alpha'), tools } } });
  const { server, client } = await serveAndConnect(t, config({ echo: { arguments: { who: 'us', mine: 2 } } }), ['alpha__echo']);
  await client.call('alpha__echo', { other: 1, mine: 7 });
  const { id } = await newest(server, 'echo');
  const look = async () => {
    const call = await api(server, `/calls/${id}`);
    assert.deepEqual(call.story[0].body.arguments, { other: 1, mine: 7 });
    assert.deepEqual(call.story[1].body, { name: 'echo', arguments: { other: 1, who: 'us', mine: 2 } });
    assert.deepEqual(call.story[2].body.structuredContent, call.story[1].body.arguments);
  };
  await look();
  fs.writeFileSync(server.config, JSON.stringify(config({})));
  assert.equal((await exchange(`${server.origin}/api/reload`, { body: '' })).status, 200);
  await until('a call without pins', async () => {
    const { result } = await client.call('alpha__echo', {});
    return result && !('who' in result.structuredContent);
  });
  await look();
});

test('questions, answers and approvals are legs, and a call that runs tells what happened so far', async (t) => {
  const server = await serve(t, { servers: { files: fixtureEntry('legacy', { approve: ['test_elicitation'] }) } });
  const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
  await agent.waitFor('files__test_elicitation');
  let params = { name: 'files__test_elicitation', arguments: { message: 'Who?' } };
  const answer = async (content) => {
    const { result } = await agent.request('tools/call', params);
    assert.equal(result.resultType, 'input_required', JSON.stringify(result));
    const inputResponses = { [Object.keys(result.inputRequests)[0]]: { action: 'accept', content } };
    params = { ...params, requestState: result.requestState, inputResponses };
  };
  await answer({});
  const held = await story(server, 'test_elicitation');
  assert.deepEqual([held.live, held.state], [true, 'waiting']);
  assert.deepEqual(kinds(held), ['agent>rialto request', 'rialto>rialto notice', 'rialto>agent question']);
  await answer({ username: 'ann', email: 'ann@example.com' });
  const live = await story(server, 'test_elicitation');
  assert.deepEqual([live.live, live.state], [true, 'running']);
  assert.match(live.replayable, /not ended/);
  assert.deepEqual(kinds(live).slice(3), ['agent>rialto answer', 'rialto>rialto decision', 'rialto>server request', 'server>rialto question', 'rialto>agent question']);
  const { result } = await agent.request('tools/call', params);
  assert.match(result.content[0].text, /"ann"/);
  const done = await story(server, 'test_elicitation');
  assert.deepEqual(kinds(done).slice(8), ['agent>rialto answer', 'rialto>server answer', 'server>rialto result', 'rialto>agent result']);
  assert.match(done.story[4].what, /^approved by the client/);
  assert.equal(done.story[6].what, 'elicitation/create');
  assert.equal(done.story[6].body.message, 'Who?');
  assert.equal(done.story[8].body.content.username, 'ann');
  ordered(done);
});

test('an operator who decides is named, and a client that cannot be asked is told so', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { gate: { ...fake('--name', 'gate'), approve: ['echo'] } } }, ['gate__echo']);
  const open = client.call('gate__echo', { message: 'please' });
  const id = await until('the held call', async () => (await newest(server, 'echo'))?.id);
  const decided = await exchange(`${server.origin}/api/approvals/${id}`, { headers: { 'Content-Type': 'application/json' }, body: '{"approved":true}' });
  assert.equal(decided.status, 200, decided.text);
  await open;
  const call = await story(server, 'echo');
  assert.deepEqual(kinds(call).slice(0, 4), ['agent>rialto request', 'rialto>rialto notice', 'rialto>rialto decision', 'rialto>server request']);
  assert.match(call.story[2].what, /^approved by .+/);
  await client.call('gate__ask', { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } } });
  const asked = await story(server, 'ask');
  assert.deepEqual(legs(asked).find((l) => l[2] === 'answer'), ['rialto', 'server', 'answer', 'no answer: the client cannot answer this']);
});

test('a request that is repeated after a crash, and a call that is cancelled', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { weak: fragile(path.join(tempDir(), 'marker')), a: fake('--name', 'a') } }, ['weak__peek', 'a__sleep']);
  assert.match(await client.text('weak__peek'), /in life 2/);
  const call = await story(server, 'peek');
  assert.equal(call.retried, 1);
  assert.deepEqual(kinds(call), ['agent>rialto request', 'rialto>server request', 'rialto>rialto retry', 'rialto>server request', 'server>rialto result', 'rialto>agent result']);
  assert.match(call.story[2].what, /repeated: .*killed|repeated: .*signal/i);
  ordered(call);
  const open = client.rawRequest(77, 'tools/call', '{"name":"a__sleep","arguments":{"ms":60000}}');
  open.catch(() => {});
  await until('the call', async () => (await newest(server, 'sleep'))?.state === 'running');
  await client.notify('notifications/cancelled', { requestId: 77, reason: 'had enough' });
  const gone = await until('its end', async () => {
    const now = await story(server, 'sleep');
    return !now.live && now;
  });
  assert.deepEqual(kinds(gone), ['agent>rialto request', 'rialto>server request', 'agent>rialto cancel', 'rialto>server cancel']);
});

test('10,000 progress events leave a short story that says so, and room for other calls', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { a: fake('--name', 'a') } }, ['a__slow']);
  await client.call('a__echo', { message: 'before' });
  await client.request('tools/call', { name: 'a__slow', arguments: { steps: 10_000, ms: 0 }, _meta: { progressToken: 'p' } });
  const call = await story(server, 'slow');
  const notices = call.story.filter((l) => l.kind === 'notice');
  assert.ok(notices.length > 20 && notices.length < 200, `${notices.length}`);
  const more = notices.filter((l) => /^and \d+ more$/.test(l.what));
  assert.equal(more.length, 1);
  assert.equal((notices.length - 1) / 2 + Number(more[0].what.split(' ')[1]), 10_000);
  assert.equal(call.story.at(-1).kind, 'result');
  assert.ok(call.raw.length < 100_000);
  assert.ok(await newest(server, 'echo'), 'the call before is still there');
  ordered(call);
});

test('secrets show in no leg, and record.body cuts every body', async (t) => {
  const secret = 'hunter2hunter2';
  const { server, client } = await serveAndConnect(t, {
    record: { size: '1MiB', body: '1KiB' }, rules: [{ tool: 'ask', then: 'allow' }],
    servers: { a: { ...fake('--name', 'a'), env: { KEY: '${RIALTO_TEST_KEY}' } } },
  }, ['a__ask'], { env: { RIALTO_TEST_KEY: secret } });
  const able = await new HttpClient(server.url).connect({ capabilities: { sampling: {}, elicitation: { form: {} } }, name: `client-${secret}` });
  const params = (size) => ({ method: 'elicitation/create', params: { message: `${secret} ${'x'.repeat(size)}`, requestedSchema: { type: 'object', properties: {} } } });
  await client.call('a__ask', params(10));
  const short = await story(server, 'ask');
  assert.match(short.raw, /\*\*\*/);
  assert.doesNotMatch(short.raw, /hunter2/);
  assert.ok(short.story.every((l) => !l.cut));
  // On a stream, so that the question arrives; the reason of the cancellation has a secret in it.
  const asking = able.post({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'a__ask', arguments: params(5000) } });
  const question = await until('the question', async () => (await story(server, 'ask')).story.find((l) => l.kind === 'question'));
  assert.equal(question.cut, true);
  assert.ok(question.body.length <= 1024);
  await able.notify('notifications/cancelled', { requestId: 5, reason: `because of ${secret}` });
  await asking;
  const cancelled = await until('its end', async () => {
    const now = await story(server, 'ask');
    return !now.live && now;
  });
  assert.doesNotMatch(cancelled.raw, /hunter/);
  assert.match(cancelled.parties[0].label, /client-\*\*\*/);
  assert.match(cancelled.replayable, /cut/);
  assert.doesNotMatch((await command(server, ['calls', cancelled.id])).stdout, /hunter/);
});

test('record takes a size or a map, and says what does not fit', async () => {
  const check = (record) => rialto(['check', '-c', '-'], { input: JSON.stringify({ servers: {}, record }) });
  for (const fine of [0, '1MiB', { size: '2MiB' }, { body: '4KiB' }, {}]) assert.equal((await check(fine)).code, 0, JSON.stringify(fine));
  for (const bad of ['x', { size: '256KiB', body: '64KiB' }, { lines: 3 }, ['1MiB']]) assert.notEqual((await check(bad)).code, 0, JSON.stringify(bad));
});

test('a web page is a party', async (t) => {
  const server = await serveBrowser(t);
  const socket = await page(t, server, 'tab', [greet]);
  socket.answer(() => text('hello'));
  const agent = await pageAgent(server, 'tab');
  const name = await until('the tool', async () => (await agent.toolNames()).find((n) => n.endsWith('greet')));
  await agent.call(name, { who: 'you' });
  const call = await story(server, 'greet');
  assert.deepEqual(call.parties.map((p) => p.id), ['agent', 'rialto', 'page']);
  assert.deepEqual(kinds(call), ['agent>rialto request', 'rialto>page request', 'page>rialto result', 'rialto>agent result']);
  assert.match(call.replayable, /page/);
});

// --- the same call again ---

const replay = (server, id, body = {}) => api(server, `/calls/${id}/replay`, { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

test('a call is made again and the answers are compared: 0 the same, 1 a difference, 2 not made', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    audit: { file: path.join(tempDir(), 'audit.jsonl') },
    servers: { one: fake('--name', 'one'), two: fake('--name', 'two'), weak: fragile(path.join(tempDir(), 'marker')) },
  }, ['one__echo', 'two__echo', 'weak__peek']);
  await client.call('one__echo', { b: 1.50, a: 'hi' });
  const { id } = await newest(server, 'echo');
  const unsure = await replay(server, id);
  assert.deepEqual([unsure.status, unsure.reason], [409, 'confirm']);
  const same = await replay(server, id, { confirm: true });
  assert.deepEqual([same.status, same.same, same.diff], [200, true, []], same.raw);
  assert.deepEqual(same.before, same.after);
  const again = await newest(server, 'echo');
  assert.deepEqual([again.id, again.token, again.client.name, again.state], [same.id, 'operator', 'operator', 'ok']);
  const other = await replay(server, id, { confirm: true, server: 'two' });
  assert.deepEqual([other.same, (await newest(server, 'echo')).server], [true, 'two']);
  // A tool that says that it only reads needs no confirmation; `peek` answers the same until its server restarts.
  await client.text('weak__peek');
  const peek = (await newest(server, 'peek')).id;
  assert.equal((await replay(server, peek)).same, true);
  assert.equal((await command(server, ['replay', peek])).code, 0);
  await client.call('one__whoami');
  const who = (await newest(server, 'whoami')).id;
  const differs = await command(server, ['replay', who, '--yes']);
  assert.equal(differs.code, 1);
  assert.match(differs.stdout, /^-.*"calls": \d+,?$/m);
  assert.match(differs.stdout, /^\+.*"calls": \d+,?$/m);
  assert.match(differs.stdout, /^ .*"cwd"/m);
  assert.equal(JSON.parse((await command(server, ['replay', who, '--yes', '--json'])).stdout).same, false);
  // Replays that are not possible.
  for (const [args, words] of [
    [[id], /may do something again/], [[id, '--yes', '--server', 'none'], /no server 'none'/],
    [[id, '--yes', '--server', 'weak'], /does not offer 'echo'/], [['999999'], /no such call/], [['x'], /its number/], [[], /its number/],
  ]) {
    const { code, stderr } = await command(server, ['replay', ...args]);
    assert.equal(code, 2, `${args}: ${stderr}`);
    assert.match(stderr, words);
  }
  await client.call('one__big', { bytes: 40_000 });
  const cut = await replay(server, (await newest(server, 'big')).id, { confirm: true });
  assert.deepEqual([cut.status, cut.reason], [409, 'cut']);
  assert.match(cut.error, /result was cut/);
  assert.equal((await replay(server, id, [])).status, 400);
  assert.equal((await api(server, `/calls/${id}/replay`)).status, 405);
  await exchange(`${server.origin}/api/servers/one/stop`, { body: '' });
  await until('the stop', async () => JSON.parse((await exchange(`${server.origin}/api/servers/one`, { method: 'GET' })).text).state === 'stopped');
  const stopped = await replay(server, id, { confirm: true });
  assert.deepEqual([stopped.status, stopped.reason], [409, 'failed'], stopped.raw);
  assert.equal((await command(server, ['replay', id, '--yes'])).code, 2);
});

test('policy, rules and approvals hold for a replay, and a client that leaves cancels it', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    rules: [{ tool: 'add', argument: '/a', in: [13], then: 'ask' }], servers: { one: fake('--name', 'one'), two: { ...fake('--name', 'two'), deny: ['sleep'] } },
  }, ['one__echo', 'two__echo']);
  await client.call('one__sleep', { ms: 1 });
  const short = (await newest(server, 'sleep')).id;
  assert.equal((await replay(server, short, { confirm: true, server: 'two' })).reason, 'gone');
  const open = client.call('one__add', { a: 13, b: 1 });
  const held = await until('the held call', async () => (await newest(server, 'add'))?.id);
  const decide = (id, approved) => exchange(`${server.origin}/api/approvals/${id}`, { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ approved }) });
  await decide(held, true);
  await open;
  const again = replay(server, held, { confirm: true });
  const second = await until('the replay, held', async () => {
    const now = await newest(server, 'add');
    return now.id !== held && now.state === 'waiting' && now.id;
  });
  await decide(second, false);
  const refused = await again;
  assert.deepEqual([refused.status, refused.reason, refused.id], [409, 'failed', second], refused.raw);
  assert.equal((await api(server, `/calls/${second}`)).story.find((l) => l.kind === 'decision').what.startsWith('refused by'), true);
  // The client of a replay disconnects: the call is cancelled.
  const third = new AbortController();
  const left = fetch(`${server.origin}/api/calls/${held}/replay`, { method: 'POST', body: '{"confirm":true}', headers: { 'Content-Type': 'application/json' }, signal: third.signal }).catch(() => 'left');
  const last = await until('the third', async () => {
    const now = await newest(server, 'add');
    return now.id !== second && now.state === 'waiting' && now.id;
  });
  third.abort();
  assert.equal(await left, 'left');
  await until('its end', async () => (await newest(server, 'add')).state === 'failed');
  assert.match((await api(server, `/calls/${last}`)).story.at(-1).what, /cancelled/);
});

test('a replay is the call of the token that asks for it, and viewers make none', async (t) => {
  const tokens = { ann: 'ann-token-0123456789', eve: 'eve-token-0123456789' };
  const auth = { tokens: [tokenEntry('ann', tokens.ann, { role: 'operator' }), tokenEntry('eve', tokens.eve, { role: 'viewer' })] };
  const server = await serve(t, { auth, servers: { a: fake('--name', 'a') } });
  const client = await new HttpClient(server.url, { token: tokens.ann }).connect();
  await client.waitFor('a__echo');
  await client.call('a__echo', { message: 'hi' });
  const as = (name) => ({ token: tokens[name] });
  const [{ id }] = (await get(server, '/api/calls', as('ann'))).json;
  assert.equal((await get(server, `/api/calls/${id}`, as('eve'))).json.story.length, 4);
  assert.equal((await post(server, `/api/calls/${id}/replay`, { confirm: true }, as('eve'))).status, 403);
  assert.equal((await post(server, `/api/calls/${id}/replay`, { confirm: true }, as('ann'))).json.same, true);
  assert.deepEqual((await get(server, '/api/calls', as('ann'))).json.map((c) => c.token), ['ann', 'ann']);
});

// An answer that has become large is compared in bounded time, and a server with an instance per session can replay.
test('a replay whose answer is large now, and one at a server that is not shared', async (t) => {
  const size = path.join(tempDir(), 'size');
  fs.writeFileSync(size, '10');
  const script = `const lines = require('readline').createInterface({ input: process.stdin }); const fs = require('fs');
    lines.on('line', (line) => { const { id, method, params } = JSON.parse(line); if (id === undefined) return;
      const result = method === 'initialize' ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
        : method === 'tools/list' ? { tools: [{ name: 'get', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] }
        : { content: [{ type: 'text', text: 'x'.repeat(Number(fs.readFileSync(process.argv[1], 'utf8'))) }] };
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n'); });`;
  const { server, client } = await serveAndConnect(t, {
    servers: { grows: { command: node22, args: ['-e', script, size] }, own: { ...fake('--name', 'own'), instances: 'per-session' } },
  }, ['grows__get', 'own__echo']);
  await client.call('grows__get');
  const { id } = await newest(server, 'get');
  assert.equal((await replay(server, id)).same, true);
  fs.writeFileSync(size, `${8 << 20}`);
  const grown = await replay(server, id);
  assert.deepEqual([grown.status, grown.same], [200, false]);
  assert.ok(grown.raw.length < 200_000);
  await client.call('own__echo', { a: 1 });
  const own = await replay(server, (await newest(server, 'echo')).id, { confirm: true });
  assert.deepEqual([own.status, own.same], [200, true], own.raw);
});

test('a replay shows no secret', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { a: { ...fake('--name', 'a'), env: { KEY: '${RIALTO_TEST_KEY}' } } } }, ['a__env'], { env: { RIALTO_TEST_KEY: 'hunter2hunter2' } });
  await client.call('a__env', { name: 'KEY' });
  const told = await replay(server, (await newest(server, 'env')).id, { confirm: true });
  assert.equal(told.same, true);
  assert.match(told.raw, /\*\*\*/);
  assert.doesNotMatch(told.raw, /hunter/);
});

// --- kept beyond a restart ---

test('record.file has the calls that ended, redacted, for their owner only, and bounded', async (t) => {
  const file = path.join(tempDir(), 'deep', 'calls.jsonl');
  const { server, client } = await serveAndConnect(t, {
    record: { size: '256KiB', file }, servers: { a: { ...fake('--name', 'a'), env: { KEY: '${RIALTO_TEST_KEY}' } } },
  }, ['a__echo'], { env: { RIALTO_TEST_KEY: 'hunter2hunter2' } });
  await client.call('a__env', { name: 'KEY' });
  const lines = (name) => fs.readFileSync(name, 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  const [first] = lines(file);
  assert.deepEqual([first.name, first.state, first.story.length, first.live], ['env', 'ok', 4, false]);
  assert.doesNotMatch(JSON.stringify(first), /hunter/);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  for (let i = 0; i < 60; i++) await client.call('a__echo', { message: `${i} ${'x'.repeat(2000)}` });
  assert.ok(fs.statSync(file).size <= 256 * 1024 && fs.statSync(`${file}.1`).size <= 256 * 1024);
  assert.ok(!fs.existsSync(`${file}.2`));
  assert.match(lines(file).at(-1).arguments.message, /^59 /);
  await server.stop();
  assert.match(lines(file).at(-1).arguments.message, /^59 /);
});

test('a record.file that cannot be written is said once, and calls go on', async (t) => {
  const { server, client } = await serveAndConnect(t, { record: { file: '/dev/null/calls' }, servers: { a: fake('--name', 'a') } }, ['a__echo']);
  for (let i = 0; i < 3; i++) await client.text('a__echo', { message: 'x' });
  assert.equal(server.stderr().match(/record.*cannot be written/g).length, 1, server.stderr());
});

// --- other ways and eras ---

for (const era of ['legacy', 'modern']) {
  test(`over HTTP, a server of the ${era} era and an agent of the stateless one: the question is in the story`, async (t) => {
    const up = await fixtureOverHttp(t, era);
    const server = await serve(t, { servers: { far: { url: up.url } } });
    const agent = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
    await agent.waitFor('far__test_elicitation');
    const params = { name: 'far__test_elicitation', arguments: { message: 'Who?' } };
    const { result } = await agent.request('tools/call', params);
    assert.equal(result.resultType, 'input_required');
    const inputResponses = { [Object.keys(result.inputRequests)[0]]: { action: 'accept', content: { username: 'ann', email: 'a@b.example' } } };
    await agent.request('tools/call', { ...params, requestState: result.requestState, inputResponses });
    const { text: list } = await exchange(`${server.origin}/api/calls`, { method: 'GET' });
    const ids = JSON.parse(list).filter((c) => c.name === 'test_elicitation').map((c) => c.id).toReversed();
    const all = [];
    for (const id of ids) all.push(...(await api(server, `/calls/${id}`)).story);
    const question = all.find((l) => l.kind === 'question');
    assert.deepEqual([question.from, question.to], ['server', 'rialto']);
    assert.match(JSON.stringify(question.body), /Who\?/);
    assert.match(JSON.stringify(all), /"ann"/);
    // A server of the stateless era gets the answers in a second call, whose story says so.
    assert.equal(ids.length, era === 'modern' ? 2 : 1);
    if (era === 'modern') assert.ok(all.some((l) => l.kind === 'request' && /goes on, with answers/.test(l.what)));
    assert.equal(all.at(-1).kind, 'result');
  });
}

test('the message bus is a party, on the side of the caller and on that of the server', async (t) => {
  const bus = { url: `unix:${path.join(tempDir(), 'bus.sock')}`, agents: ['Desk'] };
  const worker = await serve(t, { bus: { ...bus, role: 'worker' }, servers: { far: fake('--name', 'far') } }, { slack: 5 });
  const proxy = await serve(t, { bus: { ...bus, role: 'proxy' } }, { slack: 5 });
  const client = await new HttpClient(proxy.url).connect();
  await client.waitFor('far__echo');
  await client.call('far__echo', { message: 'over the bus' });
  const near = await story(proxy, 'echo');
  assert.deepEqual(near.parties.map((p) => p.id), ['agent', 'rialto', 'bus', 'server']);
  assert.deepEqual(kinds(near), ['agent>rialto request', 'rialto>bus request', 'bus>server request', 'server>bus result', 'bus>rialto result', 'rialto>agent result']);
  const far = await story(worker, 'echo');
  assert.deepEqual(far.parties.map((p) => p.id), ['agent', 'bus', 'rialto', 'server']);
  assert.deepEqual(kinds(far).slice(0, 3), ['agent>bus request', 'bus>rialto request', 'rialto>server request']);
});

test('the page hears of a leg while the call runs', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { a: fake('--name', 'a') } }, ['a__slow']);
  const stream = await events(t, server);
  const open = client.request('tools/call', { name: 'a__slow', arguments: { steps: 3, ms: 700 }, _meta: { progressToken: 'p' } });
  const seen = () => stream.of('calls').flatMap((e) => e.rows).filter((c) => c.name === 'slow' && c.live);
  await until('the opening', () => seen().length > 0);
  await until('a leg', () => seen().length > 1);
  assert.ok((await story(server, 'slow')).story.some((l) => l.what === 'notifications/progress'));
  await open;
});
