// RockBot's own mcp.json, taken as it is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange, fake, logged, rialto, serve, tempDir, until, writeConfig } from './lib.mjs';

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
