// Servers that are reached by HTTP or WebSocket, with real servers at the other end.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import {
  descendants, expectGone, fakeBin, HttpClient, load, logged, npmFolder, rialto, serve,
  serveAndConnect, sleep, tempDir, until, within,
} from './lib.mjs';
import { everything, freePort, listen, RawServer, SdkServer } from './upstream_lib.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js');
const { McpServer, createMcpHandler } = load('@modelcontextprotocol/server');
const { z } = load('zod');

// --- server-everything, both transports ---

for (const [mode, path_, transports] of [
  ['streamableHttp', '/mcp', ['auto', 'streamable-http']], ['sse', '/sse', ['auto', 'sse']],
]) {
  test(`server-everything over ${mode}`, async (t) => {
    const port = await freePort(t);
    await everything(t, mode, port);
    const url = `http://127.0.0.1:${port}${path_}`;
    const { server, client } = await serveAndConnect(t, {
      servers: { a: { url, transport: transports[0] }, b: { url, transport: transports[1] } },
    }, ['a__echo', 'b__echo', 'a__trigger-elicitation-request']);

    assert.match(await client.text('a__echo', { message: 'hi a' }), /hi a/);
    assert.match(await client.text('b__echo', { message: 'hi b' }), /hi b/);
    const sums = await Promise.all([...Array(20).keys()].map(
      (i) => client.text(i % 2 ? 'a__get-sum' : 'b__get-sum', { a: i, b: 1000 })));
    sums.forEach((text, i) => assert.match(text, new RegExp(`\\b${1000 + i}\\b`)));

    // Progress arrives while the call runs, with its token.
    const { message, events } = await client.rawRequest('7', 'tools/call', JSON.stringify({
      name: 'a__trigger-long-running-operation', arguments: { duration: 0.5, steps: 3 },
      _meta: { progressToken: 'mine' },
    }));
    assert.match(message.result.content[0].text, /completed/);
    assert.equal(events.filter((e) => e.params.progressToken === 'mine').length, 3);

    const { result } = await client.request('resources/list');
    assert.ok(result.resources.length >= 7);

    // The server's question reaches the agent that made the call.
    const agent = new Client({ name: 'agent', version: '1' }, { capabilities: { elicitation: { form: {} } } });
    agent.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'decline' }));
    await agent.connect(new StreamableHTTPClientTransport(new URL(server.url)));
    const asked = await agent.callTool({ name: 'a__trigger-elicitation-request', arguments: {} });
    assert.match(JSON.stringify(asked.content), /declined/i);
    await agent.close();
  });
}

// --- the official SDK in this process ---

test('a list that changes at the far end changes here', async (t) => {
  const sdk = new SdkServer();
  const { url } = await listen(t, sdk.handler);
  const { client } = await serveAndConnect(t, { servers: { far: { url } } }, ['far__echo']);
  const stream = await client.listen();
  await until('the standing stream at the far end', () => sdk.headers.some((h) => h.accept === 'text/event-stream'));
  const [{ server }] = sdk.sessions.values();
  server.registerTool('late', { inputSchema: {} }, async () => ({ content: [] }));
  await stream.waitFor('notifications/tools/list_changed');
  await client.waitFor('far__late');
  stream.close();
});

test('a server that has forgotten our session: the call goes on, once', async (t) => {
  const sdk = new SdkServer();
  const first = await listen(t, sdk.handler);
  const { client, server } = await serveAndConnect(t, { servers: { far: { url: first.url } } }, ['far__echo']);
  assert.equal(await client.text('far__echo', { text: 'one' }), 'one');

  // Several calls at once find that the session is gone; none is lost and none runs twice.
  sdk.forgetSessions();
  const texts = ['a', 'b', 'c', 'd', 'e'];
  assert.deepEqual(await Promise.all(texts.map((text) => client.text('far__echo', { text }))), texts);
  assert.equal(sdk.calls, 6);
  assert.equal(sdk.sessions.size, 1);
  await logged(server, /far.*forgot our session/);

  // A restart on the same port is the same with a pause.
  await first.close();
  const again = new SdkServer();
  await listen(t, again.handler, { port: first.port });
  await until('the server to be back', async () => (await client.toolNames()).includes('far__echo'));
  assert.equal(await client.text('far__echo', { text: 'two' }), 'two');
  assert.equal(again.calls, 1);
});

// A server that forgets its session forgets subscriptions and the log level with it: they were not set again.
test('a server that has forgotten our session gets subscriptions and log level again', async (t) => {
  const raw = new RawServer({
    initialize: ({ message, response }) => {
      current = `s${raw.count('initialize')}`;
      response.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': current });
      response.end(JSON.stringify({
        jsonrpc: '2.0', id: message.id, result: {
          protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {}, resources: { subscribe: true } }, serverInfo: { name: 'raw', version: '1' },
        },
      }));
    },
    'resources/list': ({ reply }) => reply({ resources: [{ uri: 'x://1', name: 'one' }] }),
    'resources/subscribe': ({ reply }) => reply({}),
    'logging/setLevel': ({ reply }) => reply({}),
  });
  let current;
  const { url } = await listen(t, (request, response) => {
    const lost = request.headers['mcp-session-id'] && request.headers['mcp-session-id'] !== current;
    if (lost) response.writeHead(404).end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}');
    else raw.handler(request, response);
  });
  const { client } = await serveAndConnect(t, { servers: { far: { url, era: 'legacy' } } }, ['far__echo']);
  assert.ok((await client.request('resources/subscribe', { uri: 'x://1' })).result);
  assert.ok((await client.request('logging/setLevel', { level: 'debug' })).result);
  await until('the level', () => raw.count('logging/setLevel') === 1);
  current = undefined;
  assert.equal(await client.text('far__echo'), 'fine');
  await until('both again', () => raw.count('resources/subscribe') === 2 && raw.count('logging/setLevel') === 2);
  assert.deepEqual(raw.seen.filter((s) => s.rpc === 'resources/subscribe').map((s) => [s.message.params.uri, s.headers['mcp-session-id']]),
    [['x://1', 's1'], ['x://1', 's2']]);
});

test('the session is ended when we leave', async (t) => {
  const sdk = new SdkServer();
  const { url } = await listen(t, sdk.handler);
  const { server } = await serveAndConnect(t, { servers: { far: { url } } }, ['far__echo']);
  const [id] = sdk.sessions.keys();
  await server.stop();
  assert.equal(sdk.deleted, id);
});

test('a server without sessions that answers with JSON', async (t) => {
  const sdk = new SdkServer({ stateless: true, transport: { enableJsonResponse: true } });
  const { url } = await listen(t, sdk.handler);
  const { client } = await serveAndConnect(t, { servers: { far: { url } } }, ['far__echo']);
  assert.equal(await client.text('far__echo', { text: 'two' }), 'two');
  assert.ok(sdk.headers.every((h) => !h['mcp-session-id']));
});

test('a call that is cancelled is cancelled at the far end', async (t) => {
  const sdk = new SdkServer();
  const { url } = await listen(t, sdk.handler);
  const { client } = await serveAndConnect(t, { servers: { far: { url, timeout: '700ms' } } }, ['far__wait']);
  const { error } = await within(3000, 'the deadline', client.call('far__wait', { ms: 60_000 }));
  assert.ok(error);
  await until('the cancellation', () => sdk.aborted);
  assert.equal(await client.text('far__echo', { text: 'still there' }), 'still there');
});

test('a bearer token: refused without, let in with it, and never shown', async (t) => {
  const secret = 'Zx81-very-secret-token';
  const sdk = new SdkServer();
  const { url } = await listen(t, (request, response) => {
    if (request.headers.authorization === `Bearer ${secret}`) return sdk.handler(request, response);
    return response.writeHead(401, { 'WWW-Authenticate': 'Bearer' })
      .end(JSON.stringify({ error: 'invalid_token', error_description: `Not this: ${request.headers.authorization}` }));
  });
  const { client, server } = await serveAndConnect(t, {
    log: { level: 'debug' },
    servers: {
      none: { url },
      wrong: { url, headers: { authorization: 'Bearer Wr0ng-secret-token' } },
      right: { url, headers: { Authorization: `Bearer ${secret}` } },
    },
  }, ['right__echo']);
  assert.equal(await client.text('right__echo', { text: 'in' }), 'in');
  await until('the reasons', () => /none.*needs a sign-in: rialto login none/.test(server.stderr())
    && /wrong.*authorization.*HTTP 401/.test(server.stderr()));
  assert.doesNotMatch(server.stderr(), /secret-token/);
  assert.deepEqual((await client.toolNames()).filter((n) => /^(none|wrong)__/.test(n)), ['none__sign_in']);
  const { stdout } = await rialto(['config', '-c', server.config]);
  assert.doesNotMatch(stdout, /secret-token/);
});

test('a server that is down at first comes when it is there', async (t) => {
  const port = await freePort(t);
  const server = await serve(t, { servers: { far: { url: `http://127.0.0.1:${port}/mcp` } } });
  const client = await new HttpClient(server.url).connect();
  await until('the reason', () => /far.*refused/.test(server.stderr()));
  assert.deepEqual(await client.toolNames(), []);
  await listen(t, new SdkServer().handler, { port });
  await client.waitFor('far__echo');
  assert.equal(await client.text('far__echo', { text: 'hello' }), 'hello');
});

for (const mode of ['streamableHttp', 'sse']) {
  test(`a server that is killed: calls end at once, its tools go and come back (${mode})`, async (t) => {
    const port = await freePort(t);
    const far = await everything(t, mode, port);
    const { client } = await serveAndConnect(t, {
      servers: { far: { url: `http://127.0.0.1:${port}/${mode === 'sse' ? 'sse' : 'mcp'}` } },
    }, ['far__echo']);
    const running = client.call('far__trigger-long-running-operation', { duration: 60, steps: 2 });
    await sleep(300);
    await far.kill();
    const { error } = await within(1000, 'the call', running);
    assert.match(error.message, /far/);
    await until('its tools to go', async () => (await client.toolNames()).length === 0, 5000);
    await everything(t, mode, port);
    await client.waitFor('far__echo');
    assert.match(await client.text('far__echo', { message: 'back' }), /back/);
  });
}

// --- the stateless era, with SDK v2 ---

test('a server of the stateless era', async (t) => {
  const seen = [];
  let open = 0;
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'v2', version: '1' });
    const text = (text_) => ({ content: [{ type: 'text', text: text_ }] });
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async (a) => text(a.text));
    server.registerTool('grüße', { inputSchema: z.object({}) }, async () => text('hallo'));
    server.registerTool('wait', { inputSchema: z.object({}) }, async () => {
      await sleep(60_000);
      return text('late');
    });
    return server;
  }, { legacy: 'reject' });
  const { url } = await listen(t, async (request, response) => {
    seen.push(request.headers);
    open += 1;
    response.on('close', () => { open -= 1; });
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const abort = new AbortController();
    response.on('close', () => abort.abort());
    const answer = await handler.fetch(new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method, headers: request.headers, signal: abort.signal,
      body: chunks.length ? Buffer.concat(chunks) : undefined,
    }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk);
    } catch { /* the client has left */ }
    response.end();
  });
  const { client } = await serveAndConnect(t, {
    names: 'bare', servers: { far: { url, timeout: '900ms' } },
  }, ['echo']);
  assert.equal(await client.text('echo', { text: 'hi' }), 'hi');
  assert.equal(await client.text('grüße'), 'hallo');
  const call = seen.findLast((h) => h['mcp-method'] === 'tools/call');
  assert.equal(call['mcp-protocol-version'], '2026-07-28');
  assert.equal(call['mcp-name'], `=?base64?${Buffer.from('grüße').toString('base64')}?=`);
  assert.ok(seen.every((h) => !h['mcp-session-id']));

  // When a call is given up, its stream is closed: that tells the server.
  await sleep(200);
  const before = open; // the stream of the subscription stays open
  const waiting = client.call('wait');
  await until('the call to arrive', () => open === before + 1);
  assert.ok((await within(3000, 'the deadline', waiting)).error);
  await until('the stream to be closed', () => open === before);
});

// --- TLS ---

test('https: a certificate that is not trusted is refused, one that is trusted is not', async (t) => {
  const dir = tempDir();
  const key = path.join(dir, 'key.pem');
  const cert = path.join(dir, 'cert.pem');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
    '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=rialto test',
    '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
  const sdk = new SdkServer();
  const { port } = await listen(t, sdk.handler, {
    create: (handler) => https.createServer({ key: fs.readFileSync(key), cert: fs.readFileSync(cert) }, handler),
  });
  const config = { servers: { far: { url: `https://127.0.0.1:${port}/mcp` } } };
  const doubting = await serve(t, config);
  await until('the reason', () => /far.*certificate/i.test(doubting.stderr()));
  assert.equal(sdk.headers.length, 0);

  const { client } = await serveAndConnect(t, config, ['far__echo'], { env: { SSL_CERT_FILE: cert } });
  assert.equal(await client.text('far__echo', { text: 'sealed' }), 'sealed');
});

// --- WebSocket ---

test('a server behind a WebSocket (supergateway)', async (t) => {
  const port = await freePort(t);
  const gateway = spawn(process.execPath, [path.join(npmFolder, 'node_modules/supergateway/dist/index.js'),
    '--stdio', `${fakeBin} --name behind`, '--outputTransport', 'ws', '--port', String(port),
    '--messagePath', '/ws'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  gateway.stdout.on('data', (d) => { text += d; });
  gateway.stderr.on('data', (d) => { text += d; });
  const ended = new Promise((resolve) => { gateway.on('exit', resolve); });
  const kill = async () => {
    const family = descendants(gateway.pid);
    gateway.kill('SIGTERM');
    await within(5000, 'end of supergateway', ended);
    await expectGone(family, 3000);
  };
  t.after(kill);
  await until('supergateway', () => /listening on port/i.test(text), 20_000);
  const { client } = await serveAndConnect(t, {
    servers: { far: { url: `ws://127.0.0.1:${port}/ws` } },
  }, ['far__echo']);
  const texts = await Promise.all([...Array(20).keys()].map(
    (i) => client.text('far__echo', { text: `message ${i}` })));
  texts.forEach((answer, i) => assert.match(answer, new RegExp(`message ${i}\\b`)));

  const running = client.call('far__sleep', { ms: 60_000 });
  await sleep(200);
  await kill();
  assert.match((await within(1000, 'the call', running)).error.message, /far/);
  await until('its tools to go', async () => (await client.toolNames()).length === 0);
});

test('a WebSocket server that is not there', async (t) => {
  const port = await freePort(t);
  const server = await serve(t, { servers: { far: { url: `ws://127.0.0.1:${port}/` } } });
  await until('the reason', () => /far.*refused/.test(server.stderr()));
});
