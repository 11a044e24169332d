// Who may approve a call: not the agent's own program, where somebody else has to be asked. What a
// person is shown is what will be done, and who decided can be looked up afterwards.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { exchange, fake, rialto, serve, serveAndConnect, until } from './lib.mjs';
import { ModernClient, v1 } from './peers.mjs';

const hash = (token) => `sha256:${createHash('sha256').update(token).digest('hex')}`;
const entry = (name, token, more = {}) => ({ name, hash: hash(token), ...more });
const BOSS = 'token-of-the-boss';
const BOT = 'token-of-the-bot';
const bearer = (token) => (token ? { Authorization: `Bearer ${token}` } : {});
const files = (more = {}) => ({ files: { ...fake('--name', 'files'), approve: ['echo'], ...more } });
const tokens = (more = {}) => ({ tokens: [entry('boss', BOSS), entry('bot', BOT, more)] });

const get = async (server, where, token) =>
  JSON.parse((await exchange(server.origin + where, { method: 'GET', headers: bearer(token) })).text);
const decide = (server, id, approved, token) =>
  exchange(`${server.origin}/api/approvals/${id}`, { body: JSON.stringify({ approved }), headers: bearer(token) });
const oneHeld = (server, token) => until('a call that waits', async () => {
  const list = await get(server, '/api/approvals', token);
  return list.length === 1 && list[0];
});
const run = (server, ...args) => rialto(args, { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });

/** A real client that declares elicitation and accepts everything, without a person. */
async function eager(t, server, { token, action = 'accept', slow = false } = {}) {
  const client = new v1.Client({ name: 'eager', version: '1' }, { capabilities: { elicitation: {} } });
  const asked = [];
  client.setRequestHandler(v1.ElicitRequestSchema, async (request, { signal }) => {
    asked.push({ ...request.params, signal });
    if (slow) await new Promise(() => {});
    return { action, ...(action === 'accept' && { content: {} }) };
  });
  await client.connect(new v1.StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: bearer(token) } }));
  t.after(() => client.close());
  await until('the tools', async () => (await client.listTools()).tools.some((x) => x.name === 'files__echo'));
  return { client, asked, echo: (message) => client.callTool({ name: 'files__echo', arguments: { message } }) };
}

// A client that declares elicitation was asked whether its own agent may make the call, and its program
// answered yes by itself: what the operator had reserved for a person ran, and no log line said so.
test('where there are tokens, an agent that says yes to everything cannot approve its own call', async (t) => {
  const server = await serve(t, { servers: files(), views: { all: {} }, auth: tokens({ view: 'all' }) });
  const { asked, echo } = await eager(t, server, { token: BOT });
  let over = false;
  const call = echo('mine').finally(() => { over = true; });
  const waiting = await oneHeld(server, BOSS);
  assert.equal(waiting.asked, 'operator');
  assert.equal(waiting.approve_by, 'operator');
  assert.equal(over, false);
  assert.deepEqual(asked, [], 'its program is not even asked');

  assert.equal((await decide(server, waiting.id, true, BOT)).status, 403, 'nor may it use the API');
  assert.equal(over, false);
  assert.equal((await decide(server, waiting.id, true, BOSS)).status, 200);
  assert.equal((await call).structuredContent.message, 'mine');
  await until('who it was, in the log', () => server.stderr().includes("the call of 'echo' on server 'files' was approved by the operator (token boss)"));
  const record = await get(server, `/api/calls/${waiting.id}`, BOSS);
  assert.equal(record.approved_by, 'the operator (token boss)');
  assert.match((await run(server, 'calls', waiting.id)).stdout, /^approved +the operator \(token boss\)$/m);
});

test('the same where there are views; and it can be allowed again', async (t) => {
  const views = { some: {} };
  const closed = await serve(t, { servers: files(), views });
  const first = await eager(t, closed);
  const call = first.echo('x');
  const { id } = await oneHeld(closed);
  await run(closed, 'approvals', 'reject', id);
  const refused = await call;
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /refused by the operator$/);
  assert.equal((await get(closed, `/api/calls/${id}`)).refused_by, 'the operator (control socket)');

  const open = await serve(t, { servers: files({ approve_by: 'client' }), views });
  const second = await eager(t, open);
  assert.equal((await second.echo('y')).structuredContent.message, 'y');
  assert.equal(second.asked.length, 1);
  await until('who it was, in the log', () => open.stderr().includes("was approved by the client"));
  assert.equal((await get(open, '/api/calls'))[0].approved_by, 'the client');
});

test('approve_by: client asks nobody else', async (t) => {
  const { client } = await serveAndConnect(t, { servers: files({ approve_by: 'client' }) }, ['files__echo']);
  const { result } = await client.call('files__echo', {});
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /needs the approval of the person at the client \(approve_by\), and this client cannot/);
});

test('approve_by: either: the first word counts, and the other question is taken back', async (t) => {
  const server = await serve(t, { servers: files() });
  const { asked, echo } = await eager(t, server, { slow: true });
  const call = echo('first');
  const waiting = await oneHeld(server);
  assert.equal(waiting.asked, 'client');
  assert.equal(waiting.approve_by, 'either');
  assert.equal((await decide(server, waiting.id, true)).status, 200);
  assert.equal((await call).structuredContent.message, 'first');
  await until('the question is taken back', () => asked[0].signal.aborted);
  assert.match((await get(server, `/api/calls/${waiting.id}`)).approved_by, /^the operator \(127\.0\.0\.1:\d+\)$/);

  // In the stateless era the question cannot be withdrawn: the result waits until the agent comes back.
  const modern = new ModernClient(server.url, { capabilities: { elicitation: { form: {} } } });
  for (const [approved, action, fine] of [[true, 'accept', true], [false, 'accept', false], [true, 'decline', false]]) {
    const params = { name: 'files__echo', arguments: { message: 'again' } };
    const { result } = await modern.request('tools/call', params);
    assert.equal(result.resultType, 'input_required');
    const { id } = await oneHeld(server);
    assert.equal((await decide(server, id, approved)).status, 200);
    assert.deepEqual(await get(server, '/api/approvals'), []);
    const inputResponses = { [Object.keys(result.inputRequests)[0]]: { action, content: {} } };
    const done = (await modern.request('tools/call', { ...params, requestState: result.requestState, inputResponses })).result;
    assert.equal(done.resultType, 'complete');
    assert.equal(done.structuredContent?.message, fine ? 'again' : undefined);
  }
});

// What a token may do followed from its view alone; it could not be configured.
test('role: a token without a view can be an agent, one with a view an operator', async (t) => {
  const views = { some: { allow: ['echo'] } };
  const auth = { tokens: [entry('boss', BOSS, { view: 'some', role: 'operator' }), entry('bot', BOT, { role: 'agent' })] };
  const server = await serve(t, { servers: files(), views, auth });
  const status = (token) => exchange(`${server.origin}/status`, { method: 'GET', headers: bearer(token) });
  assert.equal((await status(BOSS)).status, 200);
  const refused = await status(BOT);
  assert.equal(refused.status, 403);
  assert.match(refused.text, /role/);
  const { client } = await eager(t, server, { token: BOT });
  assert.ok((await client.listTools()).tools.length > 1, 'it sees everything');
});

// What mattered could be after a thousand bytes of harmless text, or after a character that reverses
// the line: the person who was asked read something else.
test('what is to be approved is shown as it is', async (t) => {
  const server = await serve(t, { servers: files() });
  const { asked, echo } = await eager(t, server);
  const tricky = 'a\u202etxt.exe\u200b\u009b\u{e0041}';
  const shown = '"a\\u202etxt.exe\\u200b\\u009b\\udb40\\udc41"';
  await echo(tricky);
  assert.ok(asked[0].message.includes(shown), asked[0].message);
  const long = `${'x'.repeat(3000)}END`;
  await echo(long);
  const size = JSON.stringify({ message: long }).length;
  assert.match(asked[1].message, new RegExp(`only the first 1000 of ${size} bytes are shown here; 'rialto approvals --json' and /api/approvals show all of call \\d+`));
  assert.ok(!asked[1].message.includes('END'));

  const { client } = await serveAndConnect(t, { servers: files() }, ['files__echo']);
  const other = new URL(client.url);
  const at = { origin: other.origin };
  const held = async (message) => {
    client.call('files__echo', { message }).catch(() => {});
    const { id } = await oneHeld(at);
    const { text } = await exchange(`${at.origin}/api/approvals`, { method: 'GET' });
    return { id, text };
  };
  const first = await held(tricky);
  assert.ok(first.text.includes(shown), first.text);
  await decide(at, first.id, false);
  const second = await held(long);
  assert.ok(second.text.includes('END'), 'all of it');
  await decide(at, second.id, false);
});

test('rialto approvals says what it leaves out', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: files() }, ['files__echo']);
  const long = `\u202e${'x'.repeat(300)}END`;
  client.call('files__echo', { message: long }).catch(() => {});
  await oneHeld(server);
  const { stdout } = await run(server, 'approvals');
  assert.match(stdout, /\(\d+ of \d+ bytes; --json shows all\) \{"message":"\\u202exxx/);
  assert.doesNotMatch(stdout, /\u202e/);
  assert.match((await run(server, 'approvals', '--json')).stdout, /\\u202exxx.*END/);
});
