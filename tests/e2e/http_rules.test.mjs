// Streamable HTTP, legacy form: which request gets which status, sessions, and who may connect.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { bothTypes, exchange, fake, HttpClient, rawMessages, serve, sleep, until } from './lib.mjs';
import { META, MODERN } from './peers.mjs';

const limit = 256 * 1024;
const endings = [];
let server;
let client;

before(async () => {
  server = await serve({ after: (f) => endings.push(f) }, {
    servers: { a: fake('--name', 'a') }, limits: { message: `${limit / 1024}KiB` },
  });
  client = await new HttpClient(server.url).connect();
  await client.waitFor('a__echo');
});
after(async () => {
  for (const end of endings) await end();
});

const json = { 'Content-Type': 'application/json', Accept: bothTypes };
const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
});
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

const code = (answer) => {
  assert.match(answer.headers['content-type'], /^application\/json/, answer.text);
  const { error, jsonrpc } = JSON.parse(answer.text);
  assert.equal(jsonrpc, '2.0');
  assert.ok(error.message.length > 10, 'it says why');
  return error.code;
};

// Inside a session unless a row removes the header. `code`: the JSON-RPC error code, if checked.
const rows = [
  { what: 'a request', body: ping, status: 200 },
  { what: 'a notification', body: '{"jsonrpc":"2.0","method":"notifications/initialized"}', status: 202 },
  { what: 'an unknown notification', body: '{"jsonrpc":"2.0","method":"notifications/x"}', status: 202 },
  { what: 'a response', body: '{"jsonrpc":"2.0","id":"nobody","result":{}}', status: 202 },
  { what: 'an error response', body: '{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"x"}}', status: 202 },
  { what: 'no session', headers: { 'Mcp-Session-Id': undefined }, body: ping, status: 400, code: -32000 },
  { what: 'an unknown session', headers: { 'Mcp-Session-Id': 'nope' }, body: ping, status: 404, code: -32001 },
  { what: 'an unknown version', headers: { 'MCP-Protocol-Version': '1999-01-01' }, body: ping, status: 400, code: -32000 },
  { what: 'no version', headers: { 'MCP-Protocol-Version': undefined }, body: ping, status: 200 },
  { what: 'Accept without SSE', headers: { Accept: 'application/json' }, body: ping, status: 406, code: -32000 },
  { what: 'Accept without JSON', headers: { Accept: 'text/event-stream' }, body: ping, status: 406, code: -32000 },
  { what: 'no Accept', headers: { Accept: undefined }, body: ping, status: 406, code: -32000 },
  { what: 'Accept with a wildcard', headers: { Accept: '*/*' }, body: ping, status: 406, code: -32000 },
  { what: 'Accept with a wildcard beside one type', headers: { Accept: 'application/json, */*;q=0.1' }, body: ping, status: 406, code: -32000 },
  { what: 'Accept with ranges', headers: { Accept: 'application/*, text/*' }, body: ping, status: 406, code: -32000 },
  { what: 'Accept in two lines', headers: { Accept: ['application/json', 'text/event-stream'] }, body: ping, status: 200 },
  { what: 'Accept in capitals', headers: { Accept: 'Application/JSON, Text/Event-Stream' }, body: ping, status: 200 },
  { what: 'Accept with both and more', headers: { Accept: 'text/html, application/json, text/event-stream, */*' }, body: ping, status: 200 },
  { what: 'Accept with parameters', headers: { Accept: 'text/event-stream;q=0.9, application/json;q=1' }, body: ping, status: 200 },
  { what: 'another content type', headers: { 'Content-Type': 'text/plain' }, body: ping, status: 415, code: -32000 },
  { what: 'no content type', headers: { 'Content-Type': undefined }, body: ping, status: 415 },
  { what: 'a content type with charset', headers: { 'Content-Type': 'application/json; charset=utf-8' }, body: ping, status: 200 },
  { what: 'no JSON', body: '{"jsonrpc":', status: 400, code: -32700 },
  { what: 'an empty body', body: '', status: 400, code: -32700 },
  { what: 'bad UTF-8', body: Buffer.from('{"jsonrpc":"2.0","id":"\xff","method":"ping"}', 'latin1'), status: 400, code: -32700 },
  { what: 'no JSON-RPC', body: '{"hello":"world"}', status: 400, code: -32600 },
  { what: 'a number', body: '42', status: 400, code: -32600 },
  { what: 'a null id', body: '{"jsonrpc":"2.0","id":null,"method":"ping"}', status: 400, code: -32600 },
  { what: 'two ids', body: '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', status: 400 },
  { what: 'two methods, one escaped', body: '{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"x"}', status: 400 },
  { what: 'nesting without end', body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${'['.repeat(500)}${']'.repeat(500)}}}`, status: 400 },
  { what: 'a body over the limit', body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'x'.repeat(limit)}"}}`, status: 413 },
  { what: 'PUT', method: 'PUT', body: ping, status: 405, allow: true },
  { what: 'PATCH', method: 'PATCH', body: ping, status: 405, allow: true },
  { what: 'GET without SSE', method: 'GET', headers: { Accept: 'application/json' }, status: 406 },
  { what: 'GET without Accept', method: 'GET', headers: { Accept: undefined }, status: 406 },
  { what: 'GET with a wildcard', method: 'GET', headers: { Accept: '*/*' }, status: 406 },
  { what: 'GET without session', method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': undefined }, status: 400 },
  { what: 'GET with an unknown session', method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': 'x' }, status: 404 },
  { what: 'DELETE without session', method: 'DELETE', headers: { 'Mcp-Session-Id': undefined }, status: 400 },
  { what: 'DELETE of an unknown session', method: 'DELETE', headers: { 'Mcp-Session-Id': 'x' }, status: 404 },
  { what: 'a strange Host', headers: { Host: 'evil.example.com' }, body: ping, status: 403 },
  { what: 'a strange Host with our port', headers: { Host: 'evil.example.com:8765' }, body: ping, status: 403 },
  { what: 'localhost as Host', headers: { Host: 'localhost' }, body: ping, status: 200 },
  { what: '[::1] as Host', headers: { Host: '[::1]:8765' }, body: ping, status: 200 },
  { what: 'a strange Origin', headers: { Origin: 'https://evil.example.com' }, body: ping, status: 403 },
  { what: 'a null Origin', headers: { Origin: 'null' }, body: ping, status: 403 },
  { what: 'a look-alike Origin', headers: { Origin: 'http://localhost.evil.example.com' }, body: ping, status: 403 },
  { what: 'a local Origin', headers: { Origin: 'http://localhost:3000' }, body: ping, status: 200 },
  { what: 'an unknown path', path: '/nothing', body: ping, status: 404 },
  { what: 'an unknown server', path: '/mcp/nobody', body: ping, status: 404 },
];

for (const row of rows) {
  test(`${row.what}: ${row.status}`, async () => {
    const headers = { ...client.headers, ...row.headers };
    for (const name of Object.keys(headers)) if (headers[name] === undefined) delete headers[name];
    if (row.method && !row.body) delete headers['Content-Type'];
    const url = row.path ? server.origin + row.path : server.url;
    const answer = await exchange(url, { method: row.method ?? 'POST', headers, body: row.body });
    assert.equal(answer.status, row.status, answer.text);
    if (row.code) assert.equal(code(answer), row.code);
    if (row.status === 202) assert.equal(answer.text, '');
    if (row.status >= 400) assert.ok(answer.text.length > 10, 'a refusal says why');
    if (row.allow) assert.match(answer.headers.allow, /GET.*POST|POST.*GET/);
  });
}

test('the session goes on after all those refusals', async () => {
  assert.deepEqual((await client.request('ping')).result, {});
});

test('sessions: unguessable, independent, ended by DELETE', async () => {
  const one = await new HttpClient(server.url).connect();
  const two = await new HttpClient(server.url).connect();
  const id = one.headers['Mcp-Session-Id'];
  assert.match(id, /^[\x21-\x7e]{20,}$/);
  assert.notEqual(id, two.headers['Mcp-Session-Id']);
  const stream = await one.listen();
  assert.equal(stream.status, 200);
  const deleted = await one.close();
  assert.ok([200, 202, 204].includes(deleted.status), String(deleted.status));
  await until('the stream of the ended session to end', () => stream.ended);
  assert.equal((await one.post(ping)).status, 404);
  assert.equal((await one.close()).status, 404);
  assert.deepEqual((await two.request('ping')).result, {});
  await two.close();
});

for (const [asked, answered] of [['2025-11-25', '2025-11-25'], ['2025-06-18', '2025-06-18'],
  ['2025-03-26', '2025-03-26'], ['2024-11-05', '2024-11-05'], ['1999-01-01', '2025-11-25']]) {
  test(`version ${asked} is answered with ${answered}`, async () => {
    const c = await new HttpClient(server.url).connect({ version: asked });
    assert.equal(c.initialized.protocolVersion, answered);
    assert.equal(c.initialized.serverInfo.name, 'rialto');
    assert.equal(c.initialized.capabilities.tools.listChanged, true);
    await c.close();
  });
}

test('a plain result comes as JSON, one with progress as an event stream', async () => {
  const plain = await client.post({
    jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__add', arguments: { a: 1, b: 2 } },
  });
  assert.match(plain.headers['content-type'], /^application\/json/);
  const slow = await client.post({
    jsonrpc: '2.0', id: 1, method: 'tools/call',
    params: { name: 'a__slow', arguments: { steps: 2, ms: 10 }, _meta: { progressToken: 1 } },
  });
  assert.match(slow.headers['content-type'], /^text\/event-stream/);
  assert.match(slow.headers['cache-control'], /no-cache/);
  assert.equal(slow.headers['x-accel-buffering'], 'no');
  assert.equal(rawMessages(slow).length, 3);
});

test('the head of the standing stream comes at once', async () => {
  const c = await new HttpClient(server.url).connect();
  const began = Date.now();
  const stream = await c.listen();
  assert.ok(Date.now() - began < 1000);
  assert.match(stream.headers['content-type'], /^text\/event-stream/);
  stream.close();
  await c.close();
});

test('a client that hangs up does not cancel its call', async () => {
  const before_ = (await client.call('a__whoami')).result.structuredContent;
  const socket = net.connect(new URL(server.url).port, '127.0.0.1');
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__sleep","arguments":{"ms":300}}}';
  const head = Object.entries({ ...client.headers, Host: 'localhost', 'Content-Length': body.length })
    .map(([k, v]) => `${k}: ${v}\r\n`).join('');
  socket.write(`POST /mcp HTTP/1.1\r\n${head}\r\n${body}`);
  await until('the call to arrive', async () =>
    (await client.call('a__whoami')).result.structuredContent.calls > before_.calls + 1);
  socket.destroy();
  await sleep(500);
  const after_ = (await client.call('a__whoami')).result.structuredContent;
  assert.equal(after_.cancelled, before_.cancelled);
});

// Writes the chunks to a socket; resolves with all that came back once there are `count` responses.
function onOneSocket(chunks, count) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(new URL(server.url).port, '127.0.0.1');
    let text = '';
    const timer = setTimeout(() => { socket.destroy(); reject(new Error(`only: ${text}`)); }, 10_000);
    socket.on('data', (d) => {
      text += d;
      if (text.split('HTTP/1.1 ').length - 1 >= count && /\}$/.test(text)) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => { clearTimeout(timer); resolve(text); });
    (async () => {
      for (const chunk of chunks) {
        socket.write(chunk);
        if (chunks.length > 1) await sleep(1);
      }
    })();
  });
}

function requestText(body) {
  const headers = { ...client.headers, Host: 'localhost', 'Content-Length': Buffer.byteLength(body) };
  return `POST /mcp HTTP/1.1\r\n${Object.entries(headers).map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n${body}`;
}

test('pipelined requests are answered in order', async () => {
  const call = (id, ms) => requestText(
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"a__sleep","arguments":{"ms":${ms}}}}`);
  const text = await onOneSocket([call(1, 200) + call(2, 1) + call(3, 50)], 3);
  const ids = [...text.matchAll(/"id":(\d)/g)].map((m) => m[1]);
  assert.deepEqual(ids, ['1', '2', '3'], text);
});

test('a request may come in single bytes', async () => {
  const text = await onOneSocket([...requestText(ping)], 1);
  assert.match(text, /^HTTP\/1\.1 200 /);
});

const smuggling = {
  'both lengths': 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'two different lengths': 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef',
  'no Host': 'GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n',
  'a head without end': `GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(70_000)}`,
  nonsense: 'hello\r\n\r\n',
};
for (const [what, bytes] of Object.entries(smuggling)) {
  test(`refused and closed: ${what}`, async () => {
    const text = await new Promise((resolve, reject) => {
      const socket = net.connect(new URL(server.url).port, '127.0.0.1', () => socket.write(bytes));
      let got = '';
      socket.on('data', (d) => { got += d; });
      socket.on('error', () => resolve(got)); // a reset after the answer is a close, too
      socket.on('close', () => resolve(got));
      setTimeout(() => { socket.destroy(); reject(new Error(`still open: ${got}`)); }, 5000).unref();
    });
    assert.match(text, /^HTTP\/1\.1 4\d\d /);
  });
}

test('initialize again opens another session', async () => {
  const answer = await exchange(server.url, { headers: json, body: initialize });
  assert.equal(answer.status, 200);
  assert.notEqual(answer.headers['mcp-session-id'], client.headers['Mcp-Session-Id']);
});

// PHP writes "tools\/call". The header was compared with that text, so every request was refused.
test('the headers of the stateless era are compared with what the body says, not with how it is written', async () => {
  const meta = { [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: {} };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a__echo', arguments: { text: 'x' }, _meta: meta } });
  const headers = { ...json, 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'a__echo' };
  const answer = await exchange(server.url, { headers, body: body.replaceAll('/', '\\/') });
  assert.equal(answer.status, 200, answer.text);
});
