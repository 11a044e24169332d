// Every browser extension was let in, and could offer agents a tool under any name: even that of a
// configured server's tool, as long as that server had not listed its tools yet.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange, fake, HttpClient, logged, rialto, tempDir, until, writeConfig } from './lib.mjs';
import { greet, page, post, serveBrowser, Socket } from './browser_lib.mjs';

const known = 'chrome-extension://abcdefghijklmnopabcdefghijklmnop';
const strangers = ['chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba', 'moz-extension://4f0e4ee5-0d5b-4b0f-8f0c-0f5f8a5d9a11',
  'safari-web-extension://4F0E4EE5-0D5B-4B0F-8F0C-0F5F8A5D9A11'];

const pairingToken = async (state) => {
  const { stdout } = await rialto(['browser', 'pair', '-c', writeConfig(tempDir(), {})], { env: { XDG_STATE_HOME: state } });
  return stdout.trim();
};

test('an extension is let in by its id, or by the pairing token', async (t) => {
  const state = tempDir();
  const server = await serveBrowser(t, { browser: { origins: [known] } }, { state });
  const token = await pairingToken(state);
  const ways = ['/ws?sessionId=S&clientType=browser', '/', '/btcp'];
  const socket = (where, headers) => new Socket(t, server, where, headers).opened;
  for (const where of ways) {
    const glue = where.includes('?') ? '&' : '?';
    await socket(where, { Origin: known });
    for (const Origin of strangers) {
      await assert.rejects(socket(where, { Origin }), /403/, `${where} ${Origin}`);
      await assert.rejects(socket(`${where}${glue}token=${token.replace(/./g, 'x')}`, { Origin }), /403/);
      await socket(`${where}${glue}token=${token}`, { Origin });
      await socket(where, { Origin, Authorization: `Bearer ${token}` });
    }
  }
  const register = (headers) => post(server, '/tools/register', { jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: [greet] } },
    { 'X-Client-ID': 'c', 'X-Session-ID': 'E', ...headers });
  for (const Origin of strangers) {
    const refused = await register({ Origin });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /browser\.origins.*chrome-extension:\/\/ID.*rialto browser pair/);
    assert.equal((await exchange(`${server.origin}/events?sessionId=E&clientType=browser`, { method: 'GET', headers: { Origin } })).status, 403);
    await logged(server, new RegExp(`refused ${Origin}: it is not in browser.origins`));
    assert.equal((await exchange(`${server.origin}/rialto.js`, { method: 'GET', headers: { Origin } })).status, 200, 'scripts are for everybody');
    // Even a paired extension may only offer tools, not use those of others.
    for (const where of ['/mcp', '/sessions'])
      assert.equal((await exchange(server.origin + where, { method: 'GET', headers: { Origin, Authorization: `Bearer ${token}` } })).status, 403, where);
  }
  assert.equal((await register({ Origin: known })).status, 200);
  assert.equal((await register({ Origin: strangers[0], Authorization: `Bearer ${token}` })).status, 200);
});

test('the names of a server\'s tools are the server\'s, before it has told any', async (t) => {
  const server = await serveBrowser(t, { servers: { bank: fake('--name', 'bank', '--init-delay', 60_000) } });
  const tools = ['bank__echo', 'Bank__transfer', 'plain'].map((name) => ({ ...greet, name }));
  (await page(t, server, 'S', tools)).answer((name) => ({ result: { content: [{ type: 'text', text: name }] } }));
  const client = await new HttpClient(server.url).connect();
  const names = await until('the page\'s tools', async () => {
    const list = (await client.request('tools/list')).result.tools.map((tool) => tool.name);
    return list.includes('plain') && list;
  });
  assert.deepEqual(names.filter((n) => /^bank/i.test(n)), []);
  const [echo, transfer] = ['echo', 'transfer'].map((n) => names.find((name) => new RegExp(`^${n}-[0-9a-f]{8}$`).test(name)));
  assert.ok(echo && transfer, `${names}`);
  await logged(server, /'bank__echo' looks like a tool of a server/);
  const call = (name) => client.request('tools/call', { name, arguments: {} });
  assert.equal((await call(transfer)).result.content[0].text, 'Bank__transfer');
  assert.ok((await call('Bank__transfer')).error);
});
