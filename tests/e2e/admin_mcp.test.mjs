// Calls that a person makes in the page: like those of agents, but a person reads the results, so
// secrets are hidden in them; agents still get the bytes as they are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, get, post, tokenEntry } from './admin_lib.mjs';
import { fake, rawMessages, serve, until } from './lib.mjs';

const secret = 'planted-secret-0123456789';
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'page', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
};
const call = (server, where, name, args, { token, more = {}, version = '2026-07-28' } = {}) => ask(server, 'POST', where, {
  token,
  headers: {
    'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': version, 'Mcp-Method': 'tools/call', 'Mcp-Name': name,
  },
  body: { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args, _meta: { ...meta, ...more } } },
});
const last = (answer) => JSON.parse(rawMessages(answer).at(-1));
const up = (server, name, options) => until(`${name} is up`, async () =>
  (await get(server, `/api/servers/${name}`, options)).json.state === 'up');
const servers = { alpha: { ...fake('--name', 'alpha'), env: { KEY: '${PLANTED}' } } };

test('secrets are hidden in results and in progress; an agent gets the bytes', async (t) => {
  const server = await serve(t, { servers }, { env: { PLANTED: secret } });
  await up(server, 'alpha');
  for (const where of ['/api/mcp', '/api/mcp/alpha']) {
    const name = where === '/api/mcp' ? 'alpha__echo' : 'echo';
    const shown = await call(server, where, name, { message: `a ${secret} b` });
    assert.equal(shown.status, 200, shown.text);
    assert.equal(shown.headers['cache-control'].includes('no-store'), true);
    assert.ok(!shown.text.includes(secret));
    assert.equal(last(shown).id, 7);
    assert.equal(last(shown).result.structuredContent.message, 'a *** b');
  }
  const plain = await call(server, '/mcp', 'alpha__echo', { message: secret });
  assert.equal(last(plain).result.structuredContent.message, secret);
  const rows = (await get(server, '/api/calls')).json;
  assert.deepEqual(rows.map((r) => r.token), [null, 'operator', 'operator']);
});

test('other methods, the other era, unknown servers and other origins are refused', async (t) => {
  const server = await serve(t, { servers }, { env: { PLANTED: secret } });
  await up(server, 'alpha');
  assert.equal((await get(server, '/api/mcp')).status, 405);
  assert.equal((await ask(server, 'DELETE', '/api/mcp')).status, 405);
  assert.equal((await call(server, '/api/mcp/nobody', 'echo', {})).status, 404);
  assert.equal((await call(server, '/api/mcp/alpha/sse', 'echo', {})).status, 404);
  const old = await ask(server, 'POST', '/api/mcp', {
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } },
  });
  assert.equal(old.status, 400);
  assert.match(old.text, /stateless era/);
  const foreign = await ask(server, 'POST', '/api/mcp', { headers: { Origin: 'http://evil.example' }, body: {} });
  assert.equal(foreign.status, 403);
});

test('with tokens: the call is the token\'s, and a viewer makes none', async (t) => {
  const auth = { tokens: [tokenEntry('ann', 'ann-token-0123456789', { role: 'operator' }), tokenEntry('eve', 'eve-token-0123456789', { role: 'viewer' })] };
  const server = await serve(t, { servers, auth }, { env: { PLANTED: secret } });
  const ann = { token: 'ann-token-0123456789' }, eve = { token: 'eve-token-0123456789' };
  await up(server, 'alpha', ann);
  assert.equal((await call(server, '/api/mcp', 'alpha__echo', { message: 'x' }, eve)).status, 403);
  assert.equal((await get(server, '/api/mcp', eve)).status, 403);
  assert.equal((await call(server, '/api/mcp', 'alpha__echo', { message: 'x' })).status, 401);
  assert.equal((await call(server, '/api/mcp', 'alpha__echo', { message: 'x' }, ann)).status, 200);
  assert.deepEqual((await get(server, '/api/calls', ann)).json.map((r) => r.token), ['ann']);
});

// The operator's own calls need approval like all others.
test('policy holds: a tool that needs approval is held', async (t) => {
  const server = await serve(t, { servers: { alpha: { ...fake('--name', 'alpha'), approve: ['echo'], approve_by: 'operator' } } });
  await up(server, 'alpha');
  const answer = call(server, '/api/mcp', 'alpha__echo', { message: 'x' });
  const [{ id }] = await until('it is held', async () => {
    const { json } = await get(server, '/api/approvals');
    return json.length && json;
  });
  await post(server, `/api/approvals/${id}`, { approved: true });
  assert.equal(last(await answer).result.structuredContent.message, 'x');
});
