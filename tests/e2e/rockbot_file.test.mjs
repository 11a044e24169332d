// RockBot's own mcp.json, taken as it is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange, fake, HttpClient, logged, rialto, serve, tempDir, until, writeConfig } from './lib.mjs';
import { freePort, everything, listen, SdkServer } from './upstream_lib.mjs';

const status = async (server) => JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);

// RockBot's file bounds a server by argGuards, auth, elicitation and attachments. Those keys were "unknown,
// ignored", and the server ran without its bounds. Such a server is left out now, and the others run.
test('a server with a bound that is not understood is left out, and the others run', async (t) => {
  const main = fake('--name', 'main');
  const guards = {
    argGuards: [{ handler: 'something-new', tools: ['read'], options: {} }],
    auth: { profile: 'work' },
    ELICITATION: { mode: 'handback' },
    attachments: { thresholdBytes: 10 },
  };
  const guarded = Object.fromEntries(Object.entries(guards).map(([key, value]) => [`with-${key}`, { ...main, [key]: value }]));
  const mcpServers = { main, ...guarded, empty: { ...main, argGuards: [], auth: null } };
  const server = await serve(t, { mcpServers });
  await until('the others are up', async () => (await status(server)).servers.every((s) => s.state === 'up'));
  assert.deepEqual((await status(server)).servers.map((s) => s.name), ['main', 'empty']);
  for (const key of Object.keys(guards)) await logged(server, new RegExp(`mcpServers\\.with-${key}\\.${key}: server left out: '${key}'`));
  const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers }, 'mcp.json')]);
  assert.equal(stdout.match(/server left out/g).length, 4);
});

// The file that RockBot ships with names its servers by host alone ("https://aggregator.example/"). The one
// address was asked, answered 405, and the server was down. What servers call their place is tried now.
test('a server whose url has no path is found at /mcp or /sse, and its place is remembered', async (t) => {
  const [sse, both] = await Promise.all([freePort(t), freePort(t)]);
  await everything(t, 'sse', sse);
  const sdk = new SdkServer();
  const seen = [];
  const handler = (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === '/mcp') sdk.handler(request, response);
    else response.writeHead(request.method === 'GET' ? 200 : 405, { 'Content-Type': 'text/html' }).end('<p>hello');
  };
  const first = await listen(t, handler, { port: both });
  const server = await serve(t, {
    mcpServers: { old: { type: 'sse', url: `http://127.0.0.1:${sse}` }, now: { type: 'sse', url: `http://127.0.0.1:${both}/` } },
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('old__echo', 'now__echo');
  assert.match(await client.text('old__echo', { message: 'there' }), /there/);
  assert.match(await client.text('now__echo', { text: 'there' }), /there/);
  assert.ok(seen.includes('POST /') && seen.includes('GET /'), seen.join());

  seen.length = 0;
  await first.close();
  sdk.forgetSessions();
  await assert.rejects(client.text('now__echo', { text: 'nobody' }));
  await listen(t, handler, { port: both });
  await until('it is back', async () => (await status(server)).servers.every((s) => s.state === 'up'), 20_000);
  assert.match(await client.text('now__echo', { text: 'again' }), /again/);
  assert.deepEqual(seen.filter((line) => !line.endsWith(' /mcp')), []);
});

test('a server that is nowhere: the log says what to do', async (t) => {
  const seen = [];
  const { url } = await listen(t, (request, response) => { seen.push(request.url); response.writeHead(404).end(); });
  const server = await serve(t, { mcpServers: { gone: { url }, bare: { url: new URL('/', url).href } } });
  await logged(server, /gone: .*HTTP 404/);
  await logged(server, /bare: .*HTTP 404.*give the whole one/);
  assert.deepEqual([...new Set(seen)].sort(), ['/', '/mcp', '/sse']);
});
