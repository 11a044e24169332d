// Resources and prompts for clients that have tools only, prompts as context, and tools whose
// descriptions name their server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fake, HttpClient, rialto, serve, serveAndConnect, tempDir, until, writeConfig } from './lib.mjs';
import { fixtureEntry, MODERN, ModernClient, v1, v2 } from './peers.mjs';

const both = { resources_as_tools: true, prompts_as_tools: true };
const text = ({ result, error }) => {
  assert.ok(result && !result.isError, JSON.stringify(error ?? result));
  return result.content[0].text;
};
const complaint = ({ result }) => {
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.content[0].text;
};

for (const era of ['legacy', 'modern']) {
  test(`a ${era} server's resources and prompts as tools`, async (t) => {
    const { client, server } = await serveAndConnect(t, {
      names: 'mcp_{server}_{tool}', servers: { fixture: fixtureEntry(era, both) },
    }, ['mcp_fixture_read_resource', 'mcp_fixture_get_prompt_test_simple_prompt']);
    const { tools } = (await client.request('tools/list')).result;
    const reader = tools.find((x) => x.name === 'mcp_fixture_read_resource');
    assert.deepEqual(reader.inputSchema.required, ['uri']);
    assert.match(reader.description, /test:\/\/static-text \(Static text\).*test:\/\/template\/\{id\}\/data/);
    const getter = tools.find((x) => x.name === 'mcp_fixture_get_prompt_test_prompt_with_arguments');
    assert.deepEqual(getter.inputSchema, {
      type: 'object',
      properties: { arg1: { type: 'string', description: 'First' }, arg2: { type: 'string', description: 'Second' } },
      required: ['arg1', 'arg2'],
    });

    const read = (uri) => client.call('mcp_fixture_read_resource', { uri });
    assert.match(text(await read('test://static-text')), /static text resource/);
    assert.match(text(await read('test://template/42/data')), /"42"/);
    const [picture] = (await read('test://static-binary')).result.content;
    assert.equal(picture.type, 'image');
    assert.equal(picture.mimeType, 'image/png');
    assert.ok(picture.data.length > 20);
    complaint(await read('test://nothing-here'));
    assert.match(complaint(await client.call('mcp_fixture_read_resource', {})), /'uri'/);

    const prompt = (name, args) => client.call(`mcp_fixture_get_prompt_${name}`, args);
    assert.equal(text(await prompt('test_simple_prompt', {})), 'This is a simple prompt for testing.');
    assert.equal(text(await prompt('test_prompt_with_arguments', { arg1: 'x', arg2: 7 })),
      "Prompt with arguments: arg1='x', arg2='7'");
    const embedded = await prompt('test_prompt_with_embedded_resource', { resourceUri: 'test://example-resource' });
    assert.ok(embedded.result.content.some((c) => c.type === 'resource'), JSON.stringify(embedded));

    // At the endpoint of one server names have no prefix; here with an agent of the other era.
    const alone = new ModernClient(`${server.url}/fixture`);
    assert.match(await alone.text('read_resource', { uri: 'test://static-text' }), /static text/);
    assert.equal(await alone.text('get_prompt_test_simple_prompt'), 'This is a simple prompt for testing.');
  });

  test(`a ${era} server's prompt that asks, called as a tool`, async (t) => {
    const server = await serve(t, { servers: { fixture: fixtureEntry(era, both) } });
    await new ModernClient(server.url).waitFor('fixture__get_prompt_test_input_required_result_prompt');
    for (const sdk of [v1, v2]) {
      const client = new sdk.Client({ name: 'agent', version: '1' }, {
        capabilities: { elicitation: {} },
        ...(sdk === v2 && { versionNegotiation: { mode: { pin: MODERN } } }),
      });
      client.setRequestHandler(sdk === v1 ? v1.ElicitRequestSchema : 'elicitation/create',
        () => ({ action: 'accept', content: { context: 'my context' } }));
      await client.connect(new sdk.StreamableHTTPClientTransport(new URL(server.url)));
      t.after(() => client.close());
      const { content } = await client.callTool({ name: 'fixture__get_prompt_test_input_required_result_prompt', arguments: {} });
      assert.equal(content[0].text, 'About my context');
    }
  });

  test(`a ${era} server's prompts as context`, async (t) => {
    const server = await serve(t, {
      servers: {
        fixture: fixtureEntry(era, {
          prompts_as_context: ['test_simple_*', { name: 'test_prompt_with_arguments', arguments: { arg1: 'x', arg2: 'y' } }],
        }),
        other: fixtureEntry(era, { prompts_as_context: ['test_prompt_with_arguments', 'no_such'] }),
      },
    });
    const instructions = await until('the context', async () => {
      const { initialized } = await new HttpClient(`${server.url}`).connect();
      return initialized.instructions?.includes("arg1='x'") && initialized.instructions.includes('[other]') && initialized.instructions;
    });
    assert.match(instructions, /\[fixture\]\nThe fixture server[^]*\n\n\[prompt test_simple_prompt\]\nThis is a simple prompt for testing\.\n\n\[prompt test_prompt_with_arguments\]\nPrompt with arguments: arg1='x', arg2='y'/);
    assert.doesNotMatch(instructions.split('[other]')[1], /\[prompt/, 'without its arguments it is left out');
    const discovered = (await new ModernClient(server.url).request('server/discover')).result.instructions;
    assert.equal(discovered, instructions);
  });
}

test('tools made of prompts come and go with them; the top-level keys are for all servers', async (t) => {
  const { client } = await serveAndConnect(t, {
    ...both, servers: { a: fixtureEntry('legacy'), b: fake(), c: fixtureEntry('legacy', { allow: ['echo', 'test_trigger_*'] }) },
  }, ['a__read_resource', 'b__echo', 'c__echo']);
  const before = await client.toolNames();
  assert.ok(!before.includes('b__read_resource'), 'b has no resources');
  assert.ok(!before.includes('c__read_resource'), 'a filter holds for these tools as well');
  assert.ok(!before.includes('a__get_prompt_extra_prompt'));
  await client.call('a__test_trigger_prompt_change');
  await client.waitFor('a__get_prompt_extra_prompt', 'a__read_resource');
  const after = await client.toolNames();
  assert.equal(after.length, before.length + 1, 'nothing stands there twice');
  await client.call('a__test_trigger_prompt_change');
  await until('the tool to go', async () => (await client.toolNames()).length === before.length);
});

test('overrides hold for them: another name, pinned arguments, hidden', async (t) => {
  const { client } = await serveAndConnect(t, {
    servers: {
      a: fixtureEntry('legacy', {
        ...both,
        tools: {
          read_resource: { name: 'look', arguments: { uri: 'test://static-text' } },
          get_prompt_test_simple_prompt: { hide: true },
        },
      }),
    },
  }, ['a__look']);
  assert.match(text(await client.call('a__look', { uri: 'test://static-binary' })), /static text/);
  assert.ok(!(await client.toolNames()).includes('a__get_prompt_test_simple_prompt'));
  assert.ok((await client.call('a__get_prompt_test_simple_prompt')).error);
});

test('describe_server puts the alias before every description', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    describe_server: true, servers: { one: fake('--name', 'x'), two: fixtureEntry('modern') },
  }, ['one__echo', 'two__echo']);
  const { tools } = (await client.request('tools/list')).result;
  for (const tool of tools) {
    const [alias] = tool.name.split('__');
    assert.ok(tool.description.startsWith(`[${alias}] `), `${tool.name}: ${tool.description}`);
  }
  assert.equal(tools.find((x) => x.name === 'one__echo').description, '[one] echo of x');
  const alone = await new HttpClient(`${server.url}/one`).connect();
  assert.equal((await alone.request('tools/list')).result.tools[0].description, 'echo of x');
});

test('resources and prompts lists them', async () => {
  const file = writeConfig(tempDir(), { servers: { fixture: fixtureEntry('legacy') } });
  const resources = await rialto(['resources', '-c', file]);
  assert.equal(resources.code, 0, resources.stderr);
  assert.match(resources.stdout, /^test:\/\/static-text +A text$/m);
  assert.match(resources.stdout, /^test:\/\/template\/\{id\}\/data +Data by id$/m);
  const list = JSON.parse((await rialto(['resources', '--json', '-c', file])).stdout);
  assert.ok(list.some((r) => r.uri === 'test://static-binary') && list.some((r) => r.uriTemplate));
  const prompts = await rialto(['prompts', '-c', file]);
  assert.match(prompts.stdout, /^fixture__test_simple_prompt +No arguments$/m);
  assert.ok(JSON.parse((await rialto(['prompts', '--json', '-c', file])).stdout).length >= 3);
});
