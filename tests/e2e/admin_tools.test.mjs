// All that servers offer, as operators see it: found by words, with its cost, and with the rule that
// hides it where it is hidden.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { get, tokenEntry } from './admin_lib.mjs';
import { fake, serve, serveAndConnect, until } from './lib.mjs';
import { fixtureEntry } from './peers.mjs';

const secret = 'planted-secret-0123456789';

test('brief, by words, by kind, in parts, and one whole', async (t) => {
  const { server } = await serveAndConnect(t, { servers: { a: fake('--name', 'a'), f: fixtureEntry('legacy') } }, ['a__echo', 'f__echo']);
  const all = (await get(server, '/api/tools?brief=1')).json;
  assert.equal(all.total, all.items.length);
  const whole = (await get(server, '/api/tools')).json;
  assert.deepEqual(all.items.filter((i) => i.kind === 'tool').map((i) => [i.name, i.tokens]), whole.tools.map((i) => [i.name, i.tokens]));
  assert.equal(all.tokens, whole.tokens);
  assert.deepEqual([...new Set(all.items.map((i) => i.kind))].sort(), ['prompt', 'resource', 'template', 'tool']);
  const echo = all.items.find((i) => i.name === 'a__echo');
  assert.deepEqual([echo.server, echo.own_name, echo.hidden], ['a', 'echo', null]);

  const found = (await get(server, '/api/tools?brief=1&q=echo')).json;
  assert.match(found.items[0].name, /echo/);
  assert.ok(found.total < all.total);
  assert.equal((await get(server, '/api/tools?brief=1&kind=prompt')).json.items.every((i) => i.kind === 'prompt'), true);
  const part = (await get(server, '/api/tools?brief=1&limit=2&offset=1')).json;
  assert.deepEqual(part.items, all.items.slice(1, 3));
  assert.equal(part.total, all.total);

  const one = (await get(server, '/api/tools/a__echo')).json;
  assert.equal(one.name, 'a__echo');
  assert.equal(one.inputSchema.type, 'object');
  assert.deepEqual([one.server, one.own_name, one.tokens], ['a', 'echo', echo.tokens]);
  const uri = all.items.find((i) => i.kind === 'resource').name;
  assert.equal((await get(server, `/api/tools/${encodeURIComponent(uri)}?kind=resource`)).json.uri, uri);
  assert.equal((await get(server, '/api/tools/echo?server=a')).json.name, 'a__echo');
  for (const [where, status] of [['/api/tools/nothing', 404], ['/api/tools?brief=1&kind=x', 400], ['/api/tools?brief=1&limit=x', 400], ['/api/tools/a/b', 404]])
    assert.equal((await get(server, where)).status, status, where);
});

test('hidden ones, with the rule', async (t) => {
  const { server } = await serveAndConnect(t, {
    servers: { a: { ...fake('--name', 'a'), deny: ['ec*'] }, b: { ...fake('--name', 'b'), allow: ['whoami', 'nothing*'] } },
    views: { v: { servers: ['b'] }, w: { servers: ['a', 'b'], deny: ['whoami'] } },
  }, ['b__whoami']);
  await until('a is up', async () => (await get(server, '/api/servers/a')).json.state === 'up');
  assert.ok((await get(server, '/api/tools?brief=1')).json.items.every((i) => !i.hidden));
  const { items } = (await get(server, '/api/tools?brief=1&hidden=1')).json;
  const why = (own, of) => items.find((i) => i.own_name === own && i.server === of)?.hidden;
  assert.deepEqual(why('echo', 'a'), { by: 'deny', rule: 'ec*', where: 'server a' });
  assert.deepEqual(why('echo', 'b'), { by: 'allow', rule: 'whoami, nothing*', where: 'server b' });
  assert.equal(why('whoami', 'b'), null);
  // What a view hides, when that view is asked for.
  const of = async (view) => (await get(server, `/api/tools?brief=1&hidden=1&view=${view}`)).json.items.filter((i) => i.own_name === 'whoami').map((i) => [i.server, i.hidden]);
  assert.deepEqual(await of('v'), [['a', { by: 'view', rule: null, where: 'view v' }], ['b', null]]);
  assert.deepEqual(await of('w'), [['a', { by: 'view', rule: null, where: 'view w' }], ['b', { by: 'view', rule: null, where: 'view w' }]]);
  assert.ok((await get(server, '/api/tools?brief=1&view=v')).json.items.every((i) => i.server === 'b'));
  assert.equal((await get(server, '/api/tools?brief=1&view=none')).status, 404);
  const one = (await get(server, '/api/tools/echo?server=a')).json;
  assert.equal(one.hidden.by, 'deny');
  assert.ok(one.inputSchema);
});

test('a secret in a description is not shown; a viewer of a view sees that view', async (t) => {
  const auth = { tokens: [tokenEntry('op', 'op-token-0123456789'), tokenEntry('eve', 'eve-token-0123456789', { role: 'viewer', view: 'v' })] };
  const server = await serve(t, {
    servers: { a: { ...fake('--name', 'a'), env: { KEY: secret }, tools: { echo: { description: `has ${secret}` } } }, b: fake('--name', 'b') },
    views: { v: { servers: ['a'], deny: ['whoami'] } }, auth,
  });
  const op = { token: 'op-token-0123456789' }, eve = { token: 'eve-token-0123456789' };
  await until('both are up', async () => (await get(server, '/api/servers', op)).json.every((s) => s.state === 'up'));
  const mine = (await get(server, '/api/tools?brief=1&hidden=1', op)).text;
  assert.ok(mine.includes('has ***') && !mine.includes(secret), mine.slice(0, 300));
  assert.ok(!(await get(server, '/api/tools/a__echo', op)).text.includes(secret));
  const { items } = (await get(server, '/api/tools?brief=1&hidden=1', eve)).json;
  assert.ok(items.length && items.every((i) => i.server === 'a' && i.own_name !== 'whoami'));
  assert.equal((await get(server, '/api/tools/b__echo', eve)).status, 404);
  assert.equal((await get(server, '/api/tools', eve)).status, 403);
  assert.equal((await get(server, '/api/logs', eve)).status, 403);
  assert.deepEqual((await get(server, '/api/servers', eve)).json.map((s) => s.name), ['a']);
  assert.equal((await get(server, '/api/servers/b', eve)).status, 404);
  assert.deepEqual((await get(server, '/status', eve)).json.servers.map((s) => s.name), ['a']);
  assert.equal((await get(server, '/metrics', eve)).status, 403);
});
