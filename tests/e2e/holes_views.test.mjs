// A view leaves out resources and prompts as well, by whatever way one tries to get at them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { get, tokenEntry } from './admin_lib.mjs';
import { fake, HttpClient, serve, until } from './lib.mjs';
import { fixtureEntry } from './peers.mjs';

// A view chose among tools only: a caller with a view of one harmless tool could read every
// resource and prompt of its server.
test('views hide resources and prompts, and what is hidden cannot be had', async (t) => {
  const server = await serve(t, {
    servers: { f: fixtureEntry('legacy', { resources_as_tools: true, prompts_as_tools: true }) },
    views: { some: { resources: { deny: ['Static image', 'test://watched*', '*template*7*'] }, prompts: { allow: ['test_simple*'] } } },
  });
  const whole = await new HttpClient(server.url).connect();
  await whole.waitFor('f__read_resource');
  const client = await new HttpClient(`${server.url}?view=some`).connect();
  await client.waitFor('f__read_resource', 'f__get_prompt_test_simple_prompt');
  const { tools } = (await client.request('tools/list')).result;
  assert.ok(!tools.some((x) => x.name === 'f__get_prompt_test_prompt_with_arguments'));
  assert.equal(tools.find((x) => x.name === 'f__read_resource').description, 'Read a resource');
  assert.deepEqual((await client.request('resources/list')).result.resources.map((x) => x.uri), ['test://static-text']);
  assert.equal((await client.request('resources/templates/list')).result.resourceTemplates.length, 1);
  assert.deepEqual((await client.request('prompts/list')).result.prompts.map((x) => x.name), ['f__test_simple_prompt']);

  const read = (who, uri) => who.request('resources/read', { uri });
  const byTool = (who, uri) => who.call('f__read_resource', { uri });
  for (const uri of ['test://static-text', 'test://template/42/data']) {
    assert.ok((await read(client, uri)).result, uri);
    assert.ok(!(await byTool(client, uri)).result.isError, uri);
  }
  for (const uri of ['test://static-binary', 'test://watched-resource', 'test://template/7/data', 'test://template/%37/data']) {
    assert.ok((await read(client, uri)).error, uri);
    assert.equal((await byTool(client, uri)).result.isError, true, uri);
    assert.ok((await client.request('resources/subscribe', { uri })).error, uri);
  }
  for (const uri of ['test://static-binary', 'test://watched-resource', 'test://template/7/data']) {
    assert.ok((await read(whole, uri)).result, `${uri}, for those who may`);
    assert.ok(!(await byTool(whole, uri)).result.isError, uri);
  }
  const args = { arg1: 'a', arg2: 'b' };
  assert.ok((await client.request('prompts/get', { name: 'f__test_prompt_with_arguments', arguments: args })).error);
  assert.ok((await client.call('f__get_prompt_test_prompt_with_arguments', args)).error);
  assert.ok((await client.request('prompts/get', { name: 'f__test_simple_prompt' })).result);
  const complete = (name) => client.request('completion/complete', { ref: { type: 'ref/prompt', name }, argument: { name: 'arg1', value: 'p' } });
  assert.ok((await complete('test_prompt_with_arguments')).error);
});

// The list of addresses at / and the reasons in /status named every server, with its last words.
test('a viewer of a view is not told of servers outside of it', async (t) => {
  const server = await serve(t, {
    servers: {
      seen: fake(), 'hidden-failing': { command: process.execPath, args: ['-e', 'console.error("no payroll"); process.exit(3)'] },
      'hidden-left-out': { command: '${NOT_SET_IN_THIS_TEST}' },
    },
    views: { few: { servers: ['seen'] } },
    auth: { tokens: [tokenEntry('op', 'op-token-0123456789'), tokenEntry('eve', 'eve-token-0123456789', { role: 'viewer', view: 'few' })] },
  });
  const reasons = async (token) => (await get(server, '/status', { token })).json.reasons.map((r) => r.server);
  await until('both to be missing', async () => (await reasons('op-token-0123456789')).length === 2);
  assert.deepEqual(await reasons('eve-token-0123456789'), []);
  for (const where of ['/', '/status', '/readyz', '/api/servers']) {
    const { status, text } = await get(server, where, { token: 'eve-token-0123456789', headers: { Accept: '*/*' } });
    assert.ok(status === 200 || where === '/readyz', `${where}: ${status}`);
    assert.doesNotMatch(text, /hidden|payroll/, where);
  }
  const all = await get(server, '/', { token: 'op-token-0123456789', headers: { Accept: '*/*' } });
  assert.match(all.text, /\/mcp\/seen .*\n\/mcp\/hidden-failing /);
});
