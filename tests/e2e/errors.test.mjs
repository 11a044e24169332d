// How agents are told that a call failed here (`errors`). Today's OpenAI Agents SDK gives its model one
// fixed sentence for every JSON-RPC error: a model that is to act on "the server timed out" must read it
// as the result of the tool. Seed 003 wants it so as well.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fake, HttpClient, serve, serveAndConnect } from './lib.mjs';
import { META, ModernClient } from './peers.mjs';

const slow = { ...fake(), timeout: '300ms' };

/** The text of a failure that came as a result. */
function told({ result, error }, reason) {
  assert.equal(error, undefined, JSON.stringify(error));
  assert.equal(result.isError, true);
  assert.equal(result._meta['rialto/reason'], reason);
  return result.content[0].text;
}

test('errors: results: failures of ours are results of the tool, in both eras', async (t) => {
  const { client, server } = await serveAndConnect(t, { errors: 'results', servers: { s: slow } }, ['s__sleep']);
  for (const agent of [client, new ModernClient(server.url)]) {
    assert.match(told(await agent.call('s__sleep', { ms: 60000 }), 'timeout'), /server 's' timed out/);
    assert.match(told(await agent.call('s__die'), 'crashed'), /server 's' ended while the call was open/);
    // Mistakes of the agent and errors of the server itself are not converted.
    assert.equal((await agent.call('s__nothing')).error.code, -32602);
    assert.ok((await agent.call('s__error')).error, "the server's own error");
    assert.equal((await agent.request('resources/read', { uri: 'x://y' })).result, undefined);
  }
});

test('errors: protocol is the default, and a view can differ', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    servers: { s: slow }, views: { models: { errors: 'results' }, plain: { errors: 'protocol' } },
  }, ['s__sleep']);
  assert.equal((await client.call('s__sleep', { ms: 60000 })).error.data.reason, 'timeout');
  const models = await new HttpClient(`${server.url}?view=models`).connect();
  told(await models.call('s__sleep', { ms: 60000 }), 'timeout');
  const plain = await new HttpClient(`${server.url}?view=plain`).connect({ name: 'sse: http://x/' });
  assert.equal((await plain.call('s__sleep', { ms: 60000 })).error.data.reason, 'timeout');
});

test('clients known to hide errors get results', async (t) => {
  const server = await serve(t, { servers: { s: slow } });
  // As the OpenAI Agents SDK for JavaScript names itself, and the one for Python.
  for (const [name, hides] of [[`streamable-http: ${server.url}`, true], ['sse: http://x/sse', true], ['stdio: rialto', true], ['mcp', true], ['mcp-remote', false], ['streamable-http', false]]) {
    const client = await new HttpClient(server.url).connect({ name });
    await client.waitFor('s__sleep');
    const modern = new ModernClient(server.url);
    const info = { [`${META}clientInfo`]: { name, version: '1.0.0' } };
    for (const answer of [await client.call('s__sleep', { ms: 60000 }),
      await modern.request('tools/call', { name: 's__sleep', arguments: { ms: 60000 } }, info)]) {
      if (hides) told(answer, 'timeout');
      else assert.equal(answer.error?.data.reason, 'timeout', name);
    }
  }
});
