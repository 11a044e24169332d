// `bus.gateway`: the tools that RockBot's skills know from its gateway. Agents
// whose skills name list_services, get_service_details and invoke_tool found none of them here.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { exchange, fake, HttpClient, serve, serveAndConnect, until } from './lib.mjs';

const three = ['list_services', 'get_service_details', 'invoke_tool'];
const servers = {
  files: { ...fake('--name', 'files'), deny: ['whoami'] },
  other: { ...fake('--name', 'other'), approve: ['add'], tools: { echo: { name: 'say' } } },
};
const config = { servers, bus: { gateway: true }, rules: [{ tool: 'echo', argument: '/path', matches: '/etc/*', then: 'deny' }] };
const invoke = (client, serverName, toolName, args) => client.call('invoke_tool', { serverName, toolName, ...(args !== undefined && { arguments: args }) });
const failed = ({ result, error }, pattern) => {
  assert.equal(result?.isError, true, JSON.stringify(result ?? error));
  assert.match(result.content[0].text, pattern);
};

test('three tools stand beside those of the servers, and not without the key', async (t) => {
  const { server, client } = await serveAndConnect(t, config, ['files__echo', 'other__say', ...three]);
  const names = await client.toolNames();
  assert.ok(!(await (await new HttpClient(`${server.url}/files`).connect()).toolNames()).includes('invoke_tool'), 'a server alone is itself');
  const services = JSON.parse(await client.text('list_services'));
  assert.deepEqual(services.map((s) => [s.name, s.enabled, s.available]), [['files', true, true], ['other', true, true]]);
  const files = services[0].tools;
  assert.deepEqual(files.find((x) => x.name === 'echo')?.wrapperName, 'files__echo');
  assert.ok(!files.some((x) => x.name === 'whoami'), 'what is denied is not shown');
  assert.ok(files.every((x) => names.includes(x.wrapperName)));
  const details = JSON.parse(await client.text('get_service_details', { serverName: 'OTHER' }));
  assert.equal(details.name, 'other');
  assert.equal(details.tools.find((x) => x.name === 'say').inputSchema.type, 'object');
  assert.ok(Array.isArray(details.prompts));
  failed(await client.call('get_service_details', { serverName: 'nobody' }), /no server 'nobody'.*\[files, other\]/);

  const plain = await serveAndConnect(t, { servers }, ['files__echo']);
  assert.ok(!(await plain.client.toolNames()).some((x) => three.includes(x)));
});

test('invoke_tool reaches what the view shows, under every rule that holds there', async (t) => {
  const { server, client } = await serveAndConnect(t, config, ['files__echo', 'other__say', 'invoke_tool']);
  const echo = async (args) => (await invoke(client, 'Files', 'echo', args)).result.content[0].text;
  assert.equal(await echo('{"n":12345678901234567890}'), '{"n":12345678901234567890}');
  assert.equal(await echo({ a: 1 }), '{"a":1}');
  assert.equal(await echo(), '{}');
  assert.equal((await invoke(client, 'other', 'say', '{"a":1}')).result.content[0].text, '{"a":1}');
  failed(await invoke(client, 'files', 'echo', '[1]'), /'arguments' must be/);
  failed(await invoke(client, 'files', 'echo', '{'), /'arguments' must be/);
  failed(await invoke(client, 'files', 'whoami', '{}'), /has no tool 'whoami'.*echo/);
  failed(await invoke(client, 'files', 'files__echo', '{}'), /has no tool/);
  failed(await invoke(client, 'search', 'invoke_tool', '{}'), /no server 'search'/);
  failed(await invoke(client, 'files', 'echo', '{"path":"/etc/x"}'), /denied by rule 1 /);

  const held = invoke(client, 'other', 'add', '{"a":1,"b":2}');
  const waiting = await until('a held call', async () =>
    JSON.parse((await exchange(`${server.origin}/api/approvals`, { method: 'GET' })).text)[0]);
  assert.deepEqual([waiting.server, waiting.tool], ['other', 'add']);
  await exchange(`${server.origin}/api/approvals/${waiting.id}`, { body: '{"approved":true}' });
  assert.equal((await held).result.content[0].text, '3');
});

test('with expose: search both sets of tools are there, and a narrowed view narrows them', async (t) => {
  const token = (name, more = {}) => ({ name, hash: `sha256:${createHash('sha256').update(name).digest('hex')}`, ...more });
  const server = await serve(t, {
    ...config, expose: 'search', views: { one: { servers: ['files'], allow: ['ech*'] } },
    auth: { tokens: [token('boss'), token('bot', { view: 'one' })] },
  });
  const services = async (client) => JSON.parse(await client.text('list_services'));
  const boss = await new HttpClient(server.url, { token: 'boss' }).connect();
  await boss.waitFor('find_tools', 'call_tool', ...three);
  assert.equal((await boss.toolNames()).length, 5);
  await until('both servers', async () => (await services(boss)).filter((s) => s.tools.length).length === 2);
  const bot = await new HttpClient(server.url, { token: 'bot' }).connect();
  await bot.waitFor(...three);
  assert.deepEqual((await services(bot)).map((s) => [s.name, s.tools.map((x) => x.name)]), [['files', ['echo']]]);
  failed(await invoke(bot, 'other', 'say', '{}'), /no server 'other'/);
  failed(await invoke(bot, 'files', 'add', '{}'), /has no tool 'add'/);
  assert.equal((await invoke(bot, 'files', 'echo', '{}')).result.content[0].text, '{}');
});
