// Servers reached by HTTP, byte by byte: what we send them, streams that break and are resumed, and
// servers that do not keep to the rules.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient, rialtoBin, serve, serveAndConnect, sleep, StdioClient, tempDir, until, within, writeConfig } from './lib.mjs';
import { MODERN } from './peers.mjs';
import { data, freePort, listen, RawServer, textResult } from './upstream_lib.mjs';

const settled = ['far__echo'];

async function connect(t, raw, more = {}, wanted = settled) {
  const { url } = await listen(t, raw.handler);
  return serveAndConnect(t, { limits: more.limits, servers: { far: { url, era: 'legacy', ...more.server } } }, wanted);
}

test('headers, order and answers of the initialize era', async (t) => {
  const raw = new RawServer({}, { session: 'the-session' });
  const { client, server } = await connect(t, raw, {
    server: { headers: { 'X-Mine': 'a b', 'X-Empty': '', accept: 'text/html', 'Content-Type': 'text/plain' } },
  });
  assert.equal(await client.text('far__echo'), 'fine');
  await server.stop();

  const posts = raw.seen.filter((s) => s.method === 'POST');
  assert.deepEqual(posts.map((s) => s.rpc),
    ['initialize', 'notifications/initialized', 'tools/list', 'tools/call']);
  for (const { headers, rpc } of posts) {
    assert.equal(headers.accept, 'application/json, text/event-stream');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['x-mine'], 'a b');
    assert.equal(headers['x-empty'], '');
    assert.match(headers['user-agent'], /^rialto\//);
    const first = rpc === 'initialize';
    assert.equal(headers['mcp-session-id'], first ? undefined : 'the-session');
    assert.equal(headers['mcp-protocol-version'], first ? undefined : '2025-11-25');
    assert.equal(headers['mcp-method'], undefined);
  }
  // The standing stream is requested once, after `initialized`, and not again after the refusal.
  const gets = raw.seen.filter((s) => s.method === 'GET');
  assert.equal(gets.length, 1);
  assert.equal(gets[0].headers.accept, 'text/event-stream');
  assert.equal(gets[0].headers['mcp-session-id'], 'the-session');
  const last = raw.seen.at(-1);
  assert.equal(last.method, 'DELETE');
  assert.equal(last.headers['mcp-session-id'], 'the-session');
});

test('nothing overtakes notifications/initialized', async (t) => {
  let taken = 0;
  const raw = new RawServer({
    'notifications/initialized': ({ response }) => setTimeout(() => {
      taken = Date.now();
      response.writeHead(202).end();
    }, 300),
  });
  await connect(t, raw);
  assert.ok(raw.seen.find((s) => s.rpc === 'tools/list').at >= taken);
});

test('a stream that ends on purpose is taken up again after exactly `retry`', async (t) => {
  let closed, id;
  const raw = new RawServer({
    'tools/call': ({ message, sse, response }) => {
      id = message.id;
      sse('id: e1\nretry: 500\ndata: ', `id: e2\n${data({ method: 'notifications/message', params: { level: 'info', data: 'x' } })}`);
      response.end(() => { closed = Date.now(); });
    },
    GET: ({ request, response, sse }) => {
      if (!request.headers['last-event-id']) return response.writeHead(405).end();
      if (request.headers['last-event-id'] === 'e2') { // resumed once more, one event further
        sse('id: e3\nretry: 20\ndata: ');
        return response.end();
      }
      return response.end(sse(`id: e4\n${data({ id, result: textResult('at last') })}`));
    },
  }, { session: 's' });
  const { client } = await connect(t, raw);
  assert.equal(await within(5000, 'the call', client.text('far__echo')), 'at last');
  const resumed = raw.seen.filter((s) => s.headers['last-event-id']);
  assert.deepEqual(resumed.map((s) => s.headers['last-event-id']), ['e2', 'e3']);
  const waited = resumed[0].at - closed;
  assert.ok(waited >= 450 && waited <= 700, `GET after ${waited} ms`);
  assert.equal(resumed[0].headers['mcp-session-id'], 's');
  assert.equal(raw.count('tools/call'), 1);
});

test('a stream that breaks without event ids, or cannot be taken up, ends the call', async (t) => {
  let how = 'plain';
  const raw = new RawServer({
    'tools/call': ({ sse, response, request }) => {
      if (how === 'ids') sse('id: e1\nretry: 10\ndata: ');
      else sse(': a comment');
      if (how === 'cut') setTimeout(() => request.socket.destroy(), 20);
      else response.end();
    },
  });
  const { client } = await connect(t, raw);
  for (how of ['plain', 'cut', 'ids']) {
    const { error } = await within(3000, how, client.call('far__echo'));
    assert.match(error.message, /far/, how);
  }
  assert.equal(raw.count('tools/call'), 3, 'none was sent twice');
  assert.ok((await client.toolNames()).includes('far__echo'));
});

test('the standing stream is taken up again where it broke', async (t) => {
  let streams = 0;
  const raw = new RawServer({
    GET: ({ sse, response }) => {
      streams += 1;
      if (streams === 1) {
        sse('id: g1\nretry: 50\ndata: ');
        setTimeout(() => response.end(), 50);
      } else {
        sse(`id: g${streams}\n${data({ method: 'notifications/tools/list_changed' })}`);
      }
    },
  });
  await connect(t, raw);
  await until('the second stream', () => streams === 2);
  assert.equal(raw.seen.filter((s) => s.method === 'GET')[1].headers['last-event-id'], 'g1');
  await until('the list to be fetched again', () => raw.count('tools/list') === 2);
});

test('refusals: what the server says reaches the caller', async (t) => {
  let answer;
  const raw = new RawServer({ 'tools/call': ({ response, message }) => answer(response, message) });
  const { client } = await connect(t, raw);
  const cases = [
    [(r, m) => r.writeHead(400, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: m.id, error: { code: -32020, message: 'header', data: { x: 1 } } })),
    (error) => assert.deepEqual(error, { code: -32020, message: 'header', data: { x: 1 } })],
    [(r) => r.writeHead(400).end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad luck"}}'),
      (error) => assert.match(error.message, /far.*HTTP 400.*Bad luck/)],
    // Error texts that are plain text, or JSON of another form, were not passed on.
    [(r) => r.writeHead(400, { 'Content-Type': 'text/plain' }).end('No such \u001b[1mtenant\r\n\tat x\n'),
      (error) => assert.match(error.message, /far.*HTTP 400.*: No such \\u001b\[1mtenant$/)],
    [(r) => r.writeHead(400, { 'Content-Type': 'application/json' }).end('{"errors":["no tenant"]}'),
      (error) => assert.match(error.message, /far.*HTTP 400.*: \{"errors":\["no tenant"\]\}$/)],
    [(r) => r.writeHead(503, { 'Content-Type': 'text/html' }).end('<html>down</html>'),
      (error) => assert.match(error.message, /far.*HTTP 503[^<]*$/)],
    [(r) => r.writeHead(401).end(), (error) => assert.match(error.message, /far.*needs a sign-in: rialto login far/)],
    [(r) => r.writeHead(403).end(), (error) => assert.match(error.message, /far.*refuses.*403/)],
    [(r) => r.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>login</html>'),
      (error) => assert.match(error.message, /far.*not JSON/)],
    [(r) => r.writeHead(202).end(), (error) => assert.match(error.message, /far.*HTTP 202.*without an answer/)],
    [(r) => r.writeHead(200, { 'Content-Type': 'application/json' }).end('{"jsonrpc":"2.0","id":"another","result":{}}'),
      (error) => assert.match(error.message, /far.*another answer/)],
    [(r) => r.writeHead(200, { 'Content-Type': 'application/json' }).end('{"jsonrpc": broken'),
      (error) => assert.match(error.message, /far/)],
    [(r) => r.writeHead(307, { Location: `http://localhost:1/mcp` }).end(),
      (error) => assert.match(error.message, /far.*another host/)],
    [(r) => r.socket.destroy(), (error) => assert.match(error.message, /far.*connection/)],
  ];
  for (const [give, expect] of cases) {
    answer = give;
    const { error, result } = await within(3000, String(give), client.call('far__echo'));
    assert.ok(error, `${give} ${JSON.stringify(result)}`);
    expect(error);
  }
  assert.equal(raw.count('tools/call'), cases.length, 'none was sent twice');
  answer = (r, m) => r.writeHead(200, { 'Content-Type': 'Application/JSON; charset=utf-8' })
    .end(JSON.stringify([{ jsonrpc: '2.0', id: m.id, result: textResult('in a batch') }]));
  assert.equal(await client.text('far__echo'), 'in a batch');
});

// A list that was lost with its connection left a server without tools until its next restart. A method that only the
// server knows, such as one that charges an account, was sent again like a list, and did its work twice.
test('a connection that breaks under a list: it is asked for again, a call or an unknown method is not', async (t) => {
  let cut = 1;
  const done = [];
  const breaks = ({ request, message }) => { done.push(message.method); request.socket.destroy(); };
  const raw = new RawServer({
    'tools/list': ({ request, reply }) => {
      if (cut-- > 0) request.socket.destroy();
      else reply({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] });
    },
    'tools/call': breaks, 'acme/charge': breaks, 'notifications/acme/charge': breaks,
  });
  const { client, server } = await connect(t, raw);
  assert.equal(raw.count('tools/list'), 2);
  assert.match((await client.call('far__echo')).error.message, /far/);
  const alone = await new HttpClient(`${server.url}/far`).connect();
  assert.match((await alone.request('acme/charge', { amount: 5 })).error.message, /far/);
  await alone.post({ jsonrpc: '2.0', method: 'notifications/acme/charge' });
  await until('the notification', () => done.length >= 3);
  await sleep(300);
  assert.deepEqual(done, ['tools/call', 'acme/charge', 'notifications/acme/charge']);
});

test('answers larger than limits.message', async (t) => {
  let sseToo = false;
  const raw = new RawServer({
    'tools/call': ({ message, reply, sse, response }) => {
      const result = textResult('x'.repeat(3 << 20));
      if (!sseToo) return reply(result);
      return response.end(sse(data({ id: message.id, result })));
    },
  });
  const { client } = await connect(t, raw, { limits: { message: '1MiB' } });
  for (sseToo of [false, true]) {
    const { error } = await within(5000, 'the call', client.call('far__echo'));
    assert.match(error.message, /far.*limits\.message/);
  }
});

test('a redirect on the same host is followed with method and body', async (t) => {
  const raw = new RawServer();
  const { port } = await listen(t, (request, response) => {
    if (request.url === '/mcp') response.writeHead(308, { Location: '/mcp/' }).end();
    else raw.handler(request, response);
  });
  const { client } = await serveAndConnect(t, {
    servers: { far: { url: `http://127.0.0.1:${port}/mcp` } },
  }, settled);
  assert.equal(await client.text('far__echo'), 'fine');
});

test('a server that forgets each session at once is given up, not asked for ever', async (t) => {
  const raw = new RawServer({
    'tools/list': ({ response }) => response.writeHead(404).end(),
  }, { session: 's' });
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, era: 'legacy' } } });
  await until('the verdict', () => /far.*forgets our session/.test(server.stderr()));
  assert.ok(raw.count('initialize') <= 5, `${raw.count('initialize')} greetings`);
});

test('a session refused with 400, as many servers do it', async (t) => {
  let lost = false;
  const raw = new RawServer({
    initialize: ({ message, response }) => {
      lost = false;
      response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': `s${message.id}` })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } }));
    },
    'tools/call': ({ reply, response }) => {
      if (lost) response.writeHead(400).end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}');
      else reply(textResult('fine'));
    },
  });
  const { client } = await connect(t, raw);
  lost = true;
  assert.equal(await client.text('far__echo'), 'fine');
  assert.equal(raw.count('initialize'), 2);
  assert.equal(raw.seen.at(-1).headers['mcp-protocol-version'], '2025-06-18');
});

// --- the older transport ---

function oldServer(endpoint, more = {}) {
  const state = { posts: [] };
  state.handler = async (request, response) => {
    if (request.method === 'GET' && request.url === '/sse') {
      state.stream = response;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    if (request.url !== (more.path ?? '/message?sessionId=1')) {
      response.writeHead(404).end();
      return;
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const message = JSON.parse(Buffer.concat(chunks));
    state.posts.push(message.method);
    response.writeHead(202).end('Accepted');
    const results = {
      initialize: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': textResult('old but fine'),
    };
    const answer = results[message.method] ? { result: results[message.method] } : { error: { code: -32601, message: 'no' } };
    if (message.id !== undefined) state.stream.write(`event: message\r\n${data({ id: message.id, ...answer })}\r\n\r\n`);
  };
  return state;
}

for (const transport of ['auto', 'sse']) {
  test(`the older transport, found with transport ${transport}`, async (t) => {
    const old = oldServer('/message?sessionId=1');
    const { port } = await listen(t, old.handler);
    const { client } = await serveAndConnect(t, {
      servers: { far: { url: `http://127.0.0.1:${port}/sse`, transport } },
    }, settled);
    assert.equal(await client.text('far__echo'), 'old but fine');
    old.stream.end(); // the end of the stream is the end of the session: a new one is opened
    await until('a second session', () => old.posts.filter((m) => m === 'initialize').length === 2);
    await client.waitFor(...settled);
    assert.equal(await client.text('far__echo'), 'old but fine');
  });
}

test('the older transport: messages go to nobody but the server itself', async (t) => {
  const thief = [];
  const elsewhere = await listen(t, (request, response) => {
    thief.push(request.url);
    response.writeHead(202).end();
  });
  const old = oldServer(`http://127.0.0.1:${elsewhere.port}/message?sessionId=1`);
  const { port } = await listen(t, old.handler);
  const server = await serve(t, { servers: { far: { url: `http://127.0.0.1:${port}/sse`, transport: 'sse' } } });
  await until('the reason', () => /far.*elsewhere/.test(server.stderr()));
  assert.deepEqual(thief, []);
});

test('neither transport: both reasons are given', async (t) => {
  const { url } = await listen(t, (request, response) => {
    response.writeHead(request.method === 'GET' ? 410 : 404).end();
  });
  const server = await serve(t, { servers: { far: { url } } });
  await until('the reasons', () => /far.*HTTP 410.*Streamable HTTP: HTTP 404/.test(server.stderr()));
});

test('shutting down does not wait longer for a server that does not answer than open calls have', async (t) => {
  const raw = new RawServer({ DELETE: () => {}, 'tools/call': () => {} }, { session: 's' });
  const { client, server } = await connect(t, raw);
  client.call('far__echo').catch(() => {});
  await until('the call', () => raw.count('tools/call') === 1);
  const began = Date.now();
  await server.stop('SIGTERM', 1500);
  assert.ok(Date.now() - began < 13_000);
  assert.equal(raw.count('DELETE'), 1);
});

test('many calls at once, and a lazy server', async (t) => {
  const port = await freePort(t);
  const raw = new RawServer({
    'tools/call': async ({ message, reply }) => {
      await sleep(20);
      reply(textResult(message.params.arguments.text));
    },
  });
  await listen(t, raw.handler, { port });
  const server = await serve(t, { servers: { far: { url: `http://127.0.0.1:${port}/mcp`, start: 'lazy' } } });
  assert.equal(raw.seen.length, 0);
  const client = await new HttpClient(server.url).connect();
  await client.waitFor(...settled);
  const texts = [...Array(200).keys()].map(String);
  assert.deepEqual(await Promise.all(texts.map((text) => client.text('far__echo', { text }))), texts);
});

// --- servers of the stateless era ---

const unknown = ({ message, response }) => response.writeHead(404, { 'Content-Type': 'application/json' })
  .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } }));
const modern = (answers, tools = [{ name: 'echo', inputSchema: { type: 'object' } }]) => new RawServer({
  initialize: unknown,
  'server/discover': ({ reply }) => reply({ resultType: 'complete', supportedVersions: [MODERN], capabilities: { tools: {} } }),
  'tools/list': ({ reply }) => reply({ resultType: 'complete', tools }),
  'tools/call': ({ reply }) => reply({ resultType: 'complete', ...textResult('fine') }),
  ...answers,
});

// Their headers repeat the method, and at /mcp/SERVER an agent may call anything a method: a line end in it began headers
// of the agent's own, beside those of the configuration.
test('a method with line ends adds no headers', async (t) => {
  const raw = modern();
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, headers: { 'X-User': 'operator' } } } });
  const client = await new HttpClient(`${server.origin}/mcp/far`).connect();
  await client.waitFor('echo');
  const method = 'x\r\nX-User: root\r\nCookie: admin=1';
  assert.equal((await client.request(method, {})).error.code, -32601);
  const { headers } = raw.seen.find((seen) => seen.rpc === method);
  assert.equal(headers['x-user'], 'operator');
  assert.equal(headers.cookie, undefined);
});

// PHP writes "elicitation\/create". Its question was looked for in front of the memory where the method had been unescaped,
// and refused as an unknown one.
test('a question whose method has an escaped slash', async (t) => {
  const question = { method: 'elicitation/create', params: { mode: 'form', message: 'who?', requestedSchema: { type: 'object', properties: {} } } };
  const raw = modern({
    'tools/call': ({ message, response, reply }) => {
      if (message.params.inputResponses) return reply({ resultType: 'complete', ...textResult(message.params.inputResponses.who.action) });
      const result = { resultType: 'input_required', inputRequests: { who: question } };
      return response.writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }).replaceAll('/', '\\/'));
    },
  });
  const { url } = await listen(t, raw.handler);
  const agent = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', writeConfig(tempDir(), { servers: { far: { url } } })]);
  await agent.connect({ capabilities: { elicitation: {} } });
  await agent.waitFor('far__echo');
  const answer = agent.request('tools/call', { name: 'far__echo', arguments: {} });
  const asked = await until('the question', () => agent.messages().find((m) => m.method === 'elicitation/create'));
  agent.send({ jsonrpc: '2.0', id: asked.id, result: { action: 'decline' } });
  assert.equal((await answer).result.content[0].text, 'decline');
});

// The headers were found by the name under which agents see the tool.
test('arguments that are repeated as headers, also of a tool that was renamed', async (t) => {
  const raw = modern({}, [{ name: 'query', inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } }]);
  const { url } = await listen(t, raw.handler);
  const server = await serve(t, { servers: { far: { url, tools: { query: { name: 'ask' } } } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('far__ask');
  await client.call('far__ask', { region: 'eu' });
  assert.equal(raw.seen.find((seen) => seen.rpc === 'tools/call').headers['mcp-param-region'], 'eu');
});
