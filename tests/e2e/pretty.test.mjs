// JSON may be written over several lines. On stdio and in event streams a message is one line, so
// what comes in with line breaks must be sent without them, both whole messages and parts of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exchange, HttpClient, rialtoBin, serve, StdioClient, tempDir, until, writeConfig } from './lib.mjs';
import { fixtureEntry, META, MODERN, ModernClient } from './peers.mjs';
import { listen, readBody } from './upstream_lib.mjs';

const pretty = (value) => JSON.stringify(value, null, 2).replace(/\n/g, '\r\n');

/** An agent that writes everything over several lines and answers every form. */
class PrettyAgent extends HttpClient {
  post(message, headers = {}) {
    const value = typeof message === 'string' ? JSON.parse(message) : message;
    return super.post(pretty(value), headers);
  }

  /** Calls a tool whose question comes on the call's own stream. */
  async callAndAnswer(name, args, answer) {
    const { default: http } = await import('node:http');
    const body = pretty({ jsonrpc: '2.0', id: 'call', method: 'tools/call', params: { name, arguments: args, _meta: { 'x.y/z': { a: [1, 2] } } } });
    return new Promise((resolve, reject) => {
      const request = http.request(this.url, { method: 'POST', headers: this.headers, agent: false }, (response) => {
        let rest = '';
        response.on('data', (d) => {
          const lines = (rest + d).split('\n');
          rest = lines.pop();
          for (const line of lines.filter((l) => l.startsWith('data: {'))) {
            const message = JSON.parse(line.slice(6));
            if (message.method) this.post({ jsonrpc: '2.0', id: message.id, ...answer });
            else resolve(message);
          }
        });
        response.on('end', () => { if (rest.startsWith('{')) resolve(JSON.parse(rest)); });
      });
      request.on('error', reject);
      request.end(body);
    });
  }
}

const accept = { action: 'accept', content: { username: 'ann', email: 'a\nb' } };

for (const era of ['legacy', 'modern']) {
  test(`an agent that writes over several lines, ${era} server on stdio`, { timeout: 30_000 }, async (t) => {
    const server = await serve(t, { servers: { fixture: fixtureEntry(era) } });
    const url = `${server.url}/fixture`;
    await new ModernClient(url).waitFor('echo');
    const agent = await new PrettyAgent(url).connect({ capabilities: { elicitation: {} } });
    assert.equal(await agent.text('echo', { a: { b: [1, 2] }, c: 'd\ne' }), '{"a":{"b":[1,2]},"c":"d\\ne"}');
    const { result } = await agent.callAndAnswer('test_elicitation', { message: 'Who?' }, { result: accept });
    assert.match(result.content[0].text, /"ann"/);
    const refused = await agent.callAndAnswer('test_elicitation', { message: 'Who?' },
      { error: { code: -32000, message: 'no', data: { why: { really: 'not' } } } });
    assert.match(JSON.stringify(refused), /no/);
    assert.equal(await agent.text('echo', { still: 'there' }), '{"still":"there"}');
  });

  test(`a modern agent that writes over several lines, ${era} server on stdio`, { timeout: 30_000 }, async (t) => {
    const server = await serve(t, { servers: { fixture: fixtureEntry(era) } });
    const url = `${server.url}/fixture`;
    await new ModernClient(url).waitFor('echo');
    const call = async (params) => {
      const answer = await exchange(url, {
        headers: {
          'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': params.name,
        },
        body: pretty({
          jsonrpc: '2.0', id: 1, method: 'tools/call',
          params: {
            ...params,
            _meta: {
              [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: { elicitation: { form: {} } },
              'x.y/z': { a: [1, 2] },
            },
          },
        }),
      });
      return JSON.parse(answer.text).result;
    };
    const question = { name: 'test_elicitation', arguments: { message: 'Who?' } };
    const { inputRequests, requestState } = await call(question);
    const done = await call({
      ...question, ...(requestState && { requestState }), inputResponses: { [Object.keys(inputRequests)[0]]: accept },
    });
    assert.match(done.content[0].text, /"ann"/);
  });
}

// A server over HTTP that writes everything over several lines, events of a stream included.
async function prettyServer(t) {
  const answers = {
    initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'p', version: '1' } },
    'tools/list': { tools: [{ name: 'talk', description: 'Talks', inputSchema: { type: 'object', properties: { a: { type: 'string' } } } }] },
    'logging/setLevel': {},
  };
  const waiting = new Map();
  const { url } = await listen(t, async (request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const { id, method, params, result } = JSON.parse(await readBody(request));
    if (!method) waiting.get(id)?.(result);
    if (id === undefined || !method) {
      response.writeHead(202).end();
    } else if (method === 'tools/call') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const tell = (m) => response.write(`event: message\n${pretty({ jsonrpc: '2.0', ...m }).split('\r\n').map((l) => `data: ${l}\n`).join('')}\n`);
      tell({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, message: 'half' } });
      tell({ method: 'notifications/message', params: { level: 'error', data: { a: [1, 2] } } });
      tell({ method: 'notifications/other', params: { x: { y: 1 } } });
      tell({ id: 5, method: 'elicitation/create', params: { message: 'Who?', requestedSchema: { type: 'object', properties: { username: { type: 'string' } } } } });
      const answer = await new Promise((resolve) => { waiting.set(5, resolve); });
      tell({ id, result: { content: [{ type: 'text', text: JSON.stringify(answer) }] } });
      response.end();
    } else {
      const body = answers[method] ? { result: answers[method] } : { error: { code: -32601, message: 'no', data: { a: 1 } } };
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(pretty({ jsonrpc: '2.0', id, ...body }));
    }
  });
  return url;
}

test('a server that writes over several lines', { timeout: 30_000 }, async (t) => {
  const entry = { url: await prettyServer(t) };
  const params = { name: 'talk', arguments: {}, _meta: { progressToken: 'tok' } };

  await t.test('agent on stdio', async (tt) => {
    const file = writeConfig(tempDir(), { names: 'bare', servers: { far: entry } });
    const agent = new StdioClient(tt, rialtoBin, ['stdio', '--alone', '-c', file]);
    await agent.connect({ capabilities: { elicitation: {} } });
    await agent.waitFor('talk');
    agent.send({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params });
    const ask = await until('the question', () => agent.messages().find((m) => m.method === 'elicitation/create'));
    agent.send({ jsonrpc: '2.0', id: ask.id, result: accept });
    await until('the answer', () => agent.messages().find((m) => m.id === 'c' && m.result));
    assert.deepEqual(agent.messages().filter((m) => m.method && !/list_changed/.test(m.method)).map((m) => m.method),
      ['notifications/progress', 'notifications/message', 'notifications/other', 'elicitation/create']);
  });

  await t.test('agent on HTTP', async (tt) => {
    const server = await serve(tt, { servers: { far: entry } });
    const agent = new ModernClient(`${server.url}/far`, { logLevel: 'debug' });
    await agent.waitFor('talk');
    const { message, events } = await agent.send('tools/call', params);
    assert.deepEqual(events.map((m) => m.method), ['notifications/progress', 'notifications/message']);
    const [key] = Object.keys(message.result.inputRequests);
    const done = await agent.request('tools/call', {
      ...params, requestState: message.result.requestState, inputResponses: { [key]: accept },
    });
    assert.match(done.result.content[0].text, /ann/);
  });
});
