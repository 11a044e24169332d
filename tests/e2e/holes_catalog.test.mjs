// A server could list pages for ever, each with a description as large as a message may be, and the
// bridge kept them all. What one server lists is bounded by `limits.catalog`: the rest is left out,
// the log and the status say so, and the server stays up with what fits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, greet, page, serveBrowser } from './browser_lib.mjs';
import { exchange, fake, HttpClient, logged, rialto, serve } from './lib.mjs';

const statusOf = async (server) => JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);

async function endless(t, config, pageBytes) {
  const server = await serve(t, {
    servers: { long: fake('--endless-pages', pageBytes), b: fake('--name', 'b') }, ...config,
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('b__echo', 'long__echo');
  return { server, client };
}

test('lists without an end are cut, and what fits is offered', async (t) => {
  const { server, client } = await endless(t, {}, 1024 * 1024);
  const pages = (await client.toolNames()).filter((n) => n.startsWith('long__page_'));
  assert.ok(pages.length >= 10 && pages.length < 16, `${pages.length} pages of 1 MiB`);
  assert.equal(await client.text('long__echo', { message: 'up' }), '{"message":"up"}');
  await logged(server, /warn +long: lists more than is taken of one server \(16384 KiB, limits\.catalog\)/);
  const { servers } = await statusOf(server);
  assert.deepEqual(servers.map((s) => [s.name, s.state, s.lists_cut]), [['long', 'up', true], ['b', 'up', false]]);
  const shown = await rialto(['status', '-c', server.config], { env: { XDG_RUNTIME_DIR: server.dir } });
  assert.match(shown.stdout, /Lists cut: long lists more than limits\.catalog lets in/);
});

test('limits.catalog sets how much it is', async (t) => {
  const { client } = await endless(t, { limits: { catalog: '100KiB' } }, 10_000);
  const pages = (await client.toolNames()).filter((n) => n.startsWith('long__page_'));
  assert.ok(pages.length >= 4 && pages.length < 10, `${pages.length} pages of 10 kB`);
});

test('pages of a browser session: one that would bring too much is refused, the others stay', async (t) => {
  const server = await serveBrowser(t);
  const large = (name) => ({ name, description: 'd'.repeat(9 * 1024 * 1024) });
  await page(t, server, 'one', [large('first')]);
  const late = await page(t, server, 'one', [greet]);
  const refused = await late.request('tools/register', { tools: [large('second')] });
  assert.match(refused.error?.message ?? '', /larger than 16384 KiB together \(limits\.catalog\)/);
  assert.deepEqual(await (await agent(server, 'one')).toolNames(), ['first', 'greet']);
});
