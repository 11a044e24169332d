// Every decision about a call (allow, deny, hide, approve, pinned arguments, views) was made on
// members that we match exactly, while unknown members beside them were passed on. A server whose
// JSON reader ignores case (Go's, C#'s) read {"name":"echo","Name":"danger"} as a call of danger,
// so every one of those decisions could be walked around, and a person approved one thing while
// another ran. Members that a lenient reader takes for one that we decide by are refused.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { bothTypes, exchange, HttpClient, rawMessages, root, serve, StdioClient, rialtoBin, until, writeConfig, tempDir } from './lib.mjs';

const lenient = (more = {}, ...args) => ({
  command: process.execPath, args: [path.join(root, 'tests/fixture/lenient_server.mjs'), ...args], ...more,
});

// A server for each kind of decision; what was decided against must never run.
const servers = {
  allowed: lenient({ allow: ['echo', 'ran'] }),
  denied: lenient({ deny: ['danger'] }),
  hidden: lenient({ tools: { danger: { hide: true } } }),
  approved: lenient({ approve: ['danger'] }),
  pinned: lenient({ tools: { echo: { arguments: { path: '/safe' } } } }),
  viewed: lenient(),
};
const views = { some: { servers: ['viewed'], deny: ['danger'] } };

// Members that some reader takes for "name", "arguments" or "_meta"; none is exactly that.
const names = ['Name', 'NAME', 'nAme', 'na\\u004de', 'name\\u0000', 'name\\u0000\\u0000', 'name\\u0000x', 'N\\u0061me'];
const argumentsNames = ['Arguments', 'argument\u017f', 'argument\\u017f', 'ARGUMENTS', 'arguments\\u0000', 'argument\\u017F'];
const metas = ['_Meta', '_META', '_meta\\u0000'];

async function ready(t) {
  const server = await serve(t, { servers, views });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor(...Object.keys(servers).map((s) => `${s}__echo`));
  return { server, client };
}

function expectRefused({ message }, what) {
  assert.equal(message.error?.code, -32602, `${what}: ${JSON.stringify(message)}`);
  assert.match(message.error.message, /a lenient reader takes it for one/, what);
}

const ran = async (client, name) => JSON.parse(await client.text(name));

for (const [server, prefix] of [['allowed', 'allowed__'], ['denied', 'denied__'], ['hidden', 'hidden__'], ['approved', 'approved__']]) {
  test(`a second name beside the one that is decided on: ${server}`, async (t) => {
    const { server: { url }, client } = await ready(t);
    const own = await new HttpClient(`${url}/${server}`).connect();
    for (const [at, before] of [[client, prefix], [own, '']]) {
      for (const key of names) {
        for (const order of [`"name":"${before}echo","${key}":"danger"`, `"${key}":"danger","name":"${before}echo"`]) {
          expectRefused(await at.rawRequest(7, 'tools/call', `{${order},"arguments":{}}`), order);
        }
      }
      expectRefused(await at.rawRequest(8, 'tools/call', '{"Name":"danger","arguments":{}}'), 'no exact name at all');
    }
    assert.deepEqual(await ran(client, `${prefix}ran`), [], 'nothing reached the server');
  });
}

test('arguments, _meta and ref have lookalikes, too', async (t) => {
  const { client } = await ready(t);
  for (const key of argumentsNames) {
    expectRefused(await client.rawRequest(1, 'tools/call', `{"name":"pinned__echo","arguments":{},"${key}":{"path":"/evil"}}`), key);
  }
  for (const key of metas) {
    expectRefused(await client.rawRequest(1, 'tools/call', `{"name":"pinned__echo","arguments":{},"${key}":{"progressToken":1}}`), key);
  }
  for (const key of ['ProgressToken', 'progressTo\u212aen', 'progre\u00dfToken', 'progresstoken', 'io.modelcontextprotocol/ClientCapabilities']) {
    expectRefused(await client.rawRequest(1, 'tools/call', `{"name":"pinned__echo","_meta":{"${key}":1}}`), key);
  }
  for (const ref of ['"name":"pinned__ask","Name":"hidden"', '"URI":"file:///closed","name":"pinned__ask"', '"name":"pinned__ask","ur\u0131":"file:///closed"']) {
    expectRefused(await client.rawRequest(1, 'completion/complete',
      `{"ref":{"type":"ref/prompt",${ref}},"argument":{"name":"a","value":""}}`), ref);
  }
  for (const key of ['Uri', 'URI', 'uri\\u0000', 'ur\\u0131', 'UR\\u0130']) {
    expectRefused(await client.rawRequest(1, 'resources/read', `{"uri":"file:///open","${key}":"file:///closed"}`), key);
  }
  for (const key of ['Name', 'NAME']) {
    expectRefused(await client.rawRequest(1, 'prompts/get', `{"name":"pinned__ask","${key}":"hidden"}`), key);
  }
  assert.deepEqual(await ran(client, 'pinned__ran'), []);
});

// The server reads the member that fits `type`; we decide by the members that are there.
test('a reference to a prompt and to a resource at once is neither', async (t) => {
  const { client } = await ready(t);
  const both = '{"ref":{"type":"ref/resource","name":"pinned__ask","uri":"file:///closed"},"argument":{"name":"a","value":""}}';
  const { message } = await client.rawRequest(1, 'completion/complete', both);
  assert.equal(message.error?.code, -32602, JSON.stringify(message));
  assert.match(message.error.message, /either .*name.* or .*uri/);
});

test('an argument that is pinned cannot be set under a name that differs in case', async (t) => {
  const { client } = await ready(t);
  for (const key of ['Path', 'PATH', 'path\\u0000', 'p\\u0041th']) {
    const { message } = await client.rawRequest(1, 'tools/call', `{"name":"pinned__echo","arguments":{"${key}":"/evil"}}`);
    assert.equal(message.error?.code, -32602, `${key}: ${JSON.stringify(message)}`);
    assert.match(message.error.message, /this bridge sets itself/);
  }
  assert.equal(await client.text('pinned__echo', { path: '/evil', other: 1 }), 'echo {"other":1,"path":"/safe"}');
});

test('a view holds, in both eras and on stdio', async (t) => {
  const { server: { origin } } = await ready(t);
  const client = await new HttpClient(`${origin}/mcp?view=some`).connect();
  await client.waitFor('viewed__echo');
  expectRefused(await client.rawRequest(1, 'tools/call', '{"name":"viewed__echo","Name":"danger"}'), 'initialize era');
  const body = JSON.stringify({
    jsonrpc: '2.0', id: 2, method: 'tools/call',
    params: {
      name: 'viewed__echo', Name: 'danger', arguments: {},
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
    },
  });
  const answer = await exchange(`${origin}/mcp?view=some`, {
    body,
    headers: {
      'Content-Type': 'application/json', Accept: bothTypes, 'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call', 'Mcp-Name': 'viewed__echo',
    },
  });
  expectRefused({ message: JSON.parse(rawMessages(answer).at(-1)) }, 'stateless era');
  assert.deepEqual(await ran(client, 'viewed__ran'), []);

  const file = writeConfig(tempDir(), { servers: { denied: servers.denied } });
  const stdio = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
  await stdio.rawRequest(1, 'initialize', '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}');
  stdio.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await until('the tools', async () => (await stdio.rawRequest(2, 'tools/list')).includes('denied__echo'));
  expectRefused({ message: JSON.parse(await stdio.rawRequest(3, 'tools/call', '{"name":"denied__echo","Name":"danger"}')) }, 'stdio');
});

// At /mcp/<server>, methods that MCP does not know pass when the server is shown whole. A method
// that only looks like one of MCP's must not pass as an unknown one, and a server with tools that
// need approval, are hidden or have pinned arguments is not shown whole.
test('a method that looks like tools/call does not pass for an unknown one', async (t) => {
  const { server: { url } } = await ready(t);
  for (const name of ['approved', 'hidden', 'pinned', 'viewed']) {
    const own = await new HttpClient(`${url}/${name}`).connect();
    for (const method of ['Tools/Call', 'TOOLS/CALL', 'tools/call\0']) {
      const { message } = await own.rawRequest(1, method, '{"name":"danger","arguments":{}}');
      assert.equal(message.error?.code, -32601, `${name} ${method}: ${JSON.stringify(message)}`);
    }
    assert.deepEqual(JSON.parse(await own.text('ran')), []);
  }
});

test('members beside them that nobody could mistake still pass', async (t) => {
  const { client } = await ready(t);
  const params = '{"name":"viewed__echo","names":1,"Nam":2,"x-name":3,"arguments":{"Path":"a","path":"b"},"_meta":{"progress":1}}';
  const { message } = await client.rawRequest(1, 'tools/call', params);
  assert.equal(message.result?.content[0].text, 'echo {"path":"b"}', JSON.stringify(message));
});

// What a server lists is read by agents, some of them leniently: for these, a tool with a second
// name could pass as a tool of another server.
test('a listed item with a second name is not offered', async (t) => {
  const server = await serve(t, { servers: { spoof: lenient({}, 'spoof') } });
  const client = await new HttpClient(server.url).connect();
  const listed = await client.waitFor('spoof__plain');
  assert.ok(!listed.includes('spoof__harmless'));
  const { raw } = await client.rawRequest(1, 'tools/list', '{}');
  assert.doesNotMatch(raw, /bank__transfer/);
  assert.match(server.stderr(), /not offered, for "Name" is not a member/);
});
