// Each dialect's exchange, byte by byte: what its clients send and what they must get, as dialogues.
//   A ws /path, A sse /path, A unix    opens a connection called A
//   A > text                           A sends it
//   A < text                           the next thing A gets, whole
//   post /path {headers} text          and "= 200 text", what the POST is answered
//   mcp NAME ARGS, mcp < text          an MCP agent's tools/call with id 1, and its answer
// «name» stands for bytes that are not known beforehand: the first time they must match the pattern of
// that name in `looks`, later they must be the same.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { exchange, tempDir, until } from './lib.mjs';
import { Socket, agent, post, serveBrowser, stream } from './browser_lib.mjs';

const looks = {
  uuid: '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}',
  client: '[0-9a-f]{32}',
  call: 'btcp-\\d+(?:-[0-9a-f]{16})?',
  ms: '\\d{13}',
  time: '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z',
  port: '\\d+',
};
// Pings are skipped: a page that has sent nothing for a while gets one (browser_life.test.mjs).
const isPing = (text) => /^(data: )?\{"jsonrpc":"2\.0","id":"btcp-\d+","method":"ping","params":\{\}\}$|^\{"type":"ping"\}$/.test(text);
const quote = (s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

class Dialogue {
  #known = new Map();
  #peers = new Map();

  constructor(t, server, socket) {
    Object.assign(this, { t, server, socket });
  }

  /** The text with all «names» that are known by now filled in. */
  fill(text) {
    return text.replace(/«(\w+)»/g, (all, name) => this.#known.get(name) ?? all);
  }

  expect(got, wanted, where) {
    const names = [];
    const pattern = this.fill(wanted).split(/«(\w+)»/).map((part, i) => {
      if (i % 2 === 0) return quote(part);
      names.push(part);
      return `(${looks[part.replace(/\d+$/, '')]})`;
    }).join('');
    const match = got.match(new RegExp(`^${pattern}$`, 's'));
    if (!match) assert.equal(got, this.fill(wanted), where);
    names.forEach((name, i) => this.#known.set(name, match[i + 1]));
  }

  async open(name, kind, where) {
    const peer = { seen: 0 };
    if (kind === 'ws') {
      const [url, protocols] = where.split(' ');
      const socket = new Socket(this.t, this.server, url, {}, protocols?.split(','));
      await socket.opened;
      Object.assign(peer, { send: (m) => socket.send(m), got: () => socket.frames, end: () => socket.ws.terminate() });
    } else if (kind === 'sse') {
      const events = await stream(this.t, this.server, where);
      assert.equal(events.headers['content-type'], 'text/event-stream');
      Object.assign(peer, { got: () => events.text.split('\n\n').slice(0, -1), end: () => events.close() });
    } else {
      const socket = net.connect(this.socket);
      this.t.after(() => socket.destroy());
      let text = '';
      socket.on('data', (d) => { text += d; });
      Object.assign(peer, { send: (m) => socket.write(`${m}\n`), got: () => text.split('\n').slice(0, -1) });
    }
    this.#peers.set(name, peer);
  }

  async step(line) {
    const [, who, verb, rest] = line.match(/^(\S+) (\S+) ?(.*)$/s);
    if (who === 'post') {
      const [, headers, text] = rest.match(/^(\{.*?\} )?(.*)$/s);
      this.answer = await post(this.server, this.fill(verb), this.fill(text), headers ? JSON.parse(this.fill(headers)) : {});
    } else if (who === '=') {
      assert.equal(this.answer.status, Number(verb), line);
      this.expect(this.answer.text, rest, line);
    } else if (who === 'mcp' && verb === '<') {
      this.expect((await this.pending).raw, rest, line);
    } else if (who === 'mcp') {
      this.client ??= await agent(this.server, this.fill('«session»').replace('«session»', 'S'), { wait: true });
      await this.client.waitFor(verb);
      this.pending = this.client.rawRequest(1, 'tools/call', JSON.stringify({ name: verb, arguments: JSON.parse(rest || '{}') }));
    } else if (verb === '>') {
      this.#peers.get(who).send(this.fill(rest));
    } else if (verb === '<') {
      const peer = this.#peers.get(who);
      const got = await until(`${line}`, () => peer.got().filter((m) => !m.startsWith(':') && !isPing(m))[peer.seen]);
      peer.seen++;
      this.expect(got, rest.replace('\\n', '\n'), line);
    } else if (verb === 'ends') {
      this.#peers.get(who).end();
    } else {
      await this.open(who, verb, this.fill(rest));
    }
  }

  async play(text) {
    for (const line of text.trim().split('\n').map((l) => l.trim())) await this.step(line);
  }
}

const greet = '{"name":"greet","description":"Greets","inputSchema":{"type":"object"}}';
const register = (id) => `{"jsonrpc":"2.0","id":"${id}","method":"tools/register","params":{"tools":[${greet}]}}`;
const call = (id = '«call»') => `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"greet","arguments":{"who":"Ann"}}}`;
const hi = '"result":{"content":[{"type":"text","text":"Hi"}],"isError":false}';
const connected = (client, session, type) => `{"jsonrpc":"2.0","method":"connected","params":{"clientId":"${client}","sessionId":"${session}","clientType":"${type}"}}`;

const traces = {
  'D1: a browser and an agent on WebSockets': `
    B ws /
    B > {"jsonrpc":"2.0","id":1,"method":"session/create","params":{}}
    B < {"jsonrpc":"2.0","id":1,"result":{"sessionId":"«uuid»","expiresAt":«ms»}}
    B > ${register('x')}
    B < {"jsonrpc":"2.0","id":"x","result":{"registered":1}}
    A ws /btcp
    A > {"jsonrpc":"2.0","id":"j","method":"session/join","params":{"sessionId":"«uuid»"}}
    A < {"jsonrpc":"2.0","id":"j","result":{"sessionId":"«uuid»","tools":[${greet}]}}
    A > {"jsonrpc":"2.0","id":"l","method":"tools/list","params":{}}
    A < {"jsonrpc":"2.0","id":"l","result":[${greet}]}
    A > ${call('3c59dc04-8e88')}
    B < ${call()}
    B > {"jsonrpc":"2.0","id":"«call»","result":{"content":"Article…","wordCount":523}}
    A < {"jsonrpc":"2.0","id":"3c59dc04-8e88","result":{"content":"Article…","wordCount":523}}
    A > ${call('2')}
    B < ${call('«call2»')}
    B > {"jsonrpc":"2.0","id":"«call2»","error":{"code":"CAPABILITY_DENIED","message":"Capability not granted: dom:write"}}
    A < {"jsonrpc":"2.0","id":"2","error":{"code":"CAPABILITY_DENIED","message":"Capability not granted: dom:write"}}
    B ends now
    A < {"jsonrpc":"2.0","method":"browser/disconnected","params":{"sessionId":"«uuid»"}}
    A > ${call('4')}
    A < {"jsonrpc":"2.0","id":"4","error":{"code":-32600,"message":"No browser client connected to this session"}}`,

  'D2: hello first': `
    B ws /
    B > {"jsonrpc":"2.0","id":"btcp-1-1","method":"hello","params":{"clientType":"browser","version":"1.0.0","sessionId":"S","capabilities":["tools/execute","browser/automation"]}}
    B < {"jsonrpc":"2.0","id":"btcp-1-1","result":{"sessionId":"S","message":"Welcome to BTCP server"}}
    B > ${register('btcp-1-2')}
    B < {"jsonrpc":"2.0","id":"btcp-1-2","result":{"registered":1}}
    A ws /
    A > {"jsonrpc":"2.0","id":"btcp-2-1","method":"hello","params":{"clientType":"agent","version":"1.0.0"}}
    A < {"jsonrpc":"2.0","id":"btcp-2-1","result":{"message":"Welcome to BTCP server","availableSessions":["S"]}}
    A > {"jsonrpc":"2.0","id":"btcp-2-2","method":"tools/list"}
    A < {"jsonrpc":"2.0","id":"btcp-2-2","error":{"code":-32600,"message":"Not in a session"}}
    A > {"jsonrpc":"2.0","id":"btcp-2-3","method":"session/join","params":{"sessionId":"none"}}
    A < {"jsonrpc":"2.0","id":"btcp-2-3","error":{"code":-32602,"message":"Session not found: none"}}
    A > {"jsonrpc":"2.0","id":"btcp-2-4","method":"session/join","params":{"sessionId":"S"}}
    A < {"jsonrpc":"2.0","id":"btcp-2-4","result":{"sessionId":"S","tools":[${greet}]}}
    A > ${call('btcp-2-5')}
    B < ${call()}
    B > {"jsonrpc":"2.0","id":"«call»","error":{"code":-32601,"message":"Tool not found: nope"}}
    A < {"jsonrpc":"2.0","id":"btcp-2-5","error":{"code":-32601,"message":"Tool not found: nope"}}
    B > {"jsonrpc":"2.0","id":"btcp-1-3","method":"ping"}
    B < {"jsonrpc":"2.0","id":"btcp-1-3","result":{"pong":true}}
    B > {"jsonrpc":"2.0","id":"btcp-1-4","method":"tools/register","params":{"tools":[${greet},{"name":"wave"}]}}
    B < {"jsonrpc":"2.0","id":"btcp-1-4","result":{"registered":2}}
    A < {"jsonrpc":"2.0","id":1,"method":"tools/updated","params":{"tools":[${greet},{"name":"wave","inputSchema":{"type":"object","properties":{}}}]}}
    B ends now
    A < {"jsonrpc":"2.0","id":2,"method":"session/browserDisconnected","params":{}}`,

  'D3: the URL is the handshake': `
    B ws //ws?sessionId=S&clientType=browser&version=1.0.0
    B < ${connected('«client»', 'S', 'browser')}
    B > ${register('btcp-1700000000000-1')}
    B < {"jsonrpc":"2.0","id":"btcp-1700000000000-1","result":{"registered":1}}
    B > {"jsonrpc":"2.0","method":"ping","id":"ping-1700000000000"}
    B < {"jsonrpc":"2.0","id":"ping-1700000000000","result":{"pong":true}}
    mcp greet {"who":"Ann"}
    B < ${call()}
    B > {"jsonrpc":"2.0","id":"«call»",${hi}}
    mcp < {"jsonrpc":"2.0","id":1,${hi}}
    mcp greet {"who":"Ann"}
    B < ${call('«call2»')}
    B > {"jsonrpc":"2.0","id":"«call2»","error":{"code":-32601,"message":"Tool not found: nope"}}
    mcp < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Tool not found: nope","data":{"btcpCode":-32601}}}
    A ws /ws?sessionId=agent-1&clientType=agent&version=1.0.0
    A < {"jsonrpc":"2.0","id":"sessions","result":{"sessions":[{"id":"S","hasBrowser":true,"agentCount":0,"toolCount":1,"createdAt":"«time»"}]}}
    A < ${connected('«client2»', 'agent-1', 'agent')}`,

  'D4a: events, and messages by query': `
    B sse /events?sessionId=S&clientType=browser&version=1.0
    B < data: ${connected('«client»', 'S', 'browser')}
    post /message?sessionId=S ${register('btcp-1-1')}
    = 200 {"jsonrpc":"2.0","id":"btcp-1-1","result":{"success":true,"registered":1}}
    B < data: {"jsonrpc":"2.0","id":"btcp-1-1","result":{"success":true,"registered":1}}
    post /message?sessionId=S {"jsonrpc":"2.0","id":"p","method":"ping"}
    = 200 {"jsonrpc":"2.0","id":"p","result":{"pong":true,"timestamp":«ms»}}
    B < data: {"jsonrpc":"2.0","id":"p","result":{"pong":true,"timestamp":«ms»}}
    A sse /events?sessionId=agent-1&clientType=agent&version=1.0
    A < data: {"jsonrpc":"2.0","id":"sessions","result":{"sessions":[{"id":"S","hasBrowser":true,"agentCount":0,"toolCount":1,"createdAt":"«time»"}]}}
    A < data: ${connected('«client2»', 'agent-1', 'agent')}
    post /message?sessionId=agent-1&clientId=«client2» {"jsonrpc":"2.0","id":7,"method":"session/join","params":{"sessionId":"S"}}
    = 200 {"jsonrpc":"2.0","id":7,"result":{"success":true,"sessionId":"S","tools":[${greet}]}}
    A < data: {"jsonrpc":"2.0","id":7,"result":{"success":true,"sessionId":"S","tools":[${greet}]}}
    post /message?sessionId=agent-1&clientId=«client2» {"jsonrpc":"2.0","id":8,"method":"session/join","params":{"sessionId":"X"}}
    = 200 {"jsonrpc":"2.0","id":8,"error":{"code":-32002,"message":"Session not found: X"}}
    A < data: {"jsonrpc":"2.0","id":8,"error":{"code":-32002,"message":"Session not found: X"}}
    post /message?sessionId=S&clientId=«client2» ${call('c')}
    = 200 
    B < data: ${call()}
    post /message?sessionId=S {"jsonrpc":"2.0","id":"«call»","result":{"content":[{"type":"text","text":"Tool not found: nope"}],"isError":true},"error":{"code":-32603,"message":"Tool not found: nope"}}
    = 200 
    A < data: {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"Tool not found: nope"}],"isError":true}}
    post /message?sessionId=S {"jsonrpc":"2.0","id":"again","method":"tools/register","params":{"tools":[]}}
    = 200 {"jsonrpc":"2.0","id":"again","result":{"success":true,"registered":0}}
    A < data: {"jsonrpc":"2.0","method":"tools/updated","params":{"tools":[]}}
    B ends now
    post /message?sessionId=nowhere&clientId=«client2» {"jsonrpc":"2.0","id":9,"method":"tools/list"}
    = 200 {"jsonrpc":"2.0","id":9,"result":{"tools":[]}}`,

  'D4b: events, and messages by header': `
    B sse /events?sessionId=S&clientType=browser&version=1.0.0
    B < data: ${connected('«client»', 'S', 'browser')}
    post /message {"X-Session-ID":"S"} ${register('btcp-1-1')}
    = 200 {"jsonrpc":"2.0","id":"btcp-1-1","result":{"registered":1}}
    B < data: {"jsonrpc":"2.0","id":"btcp-1-1","result":{"registered":1}}
    post /message {"X-Session-Id":"S","X-Client-Type":"agent"} {"jsonrpc":"2.0","id":"1","method":"tools/list"}
    = 200 {"jsonrpc":"2.0","id":"1","result":{"tools":[${greet}]}}
    A sse /events?sessionId=S&clientType=agent
    A < data: {"jsonrpc":"2.0","id":"sessions","result":{"sessions":[{"id":"S","hasBrowser":true,"agentCount":0,"toolCount":1,"createdAt":"«time»"}]}}
    A < data: ${connected('«client2»', 'S', 'agent')}
    post /message {"X-Session-ID":"S","X-Client-ID":"«client2»"} ${call('2')}
    = 200 
    B < data: ${call()}
    post /message {"X-Session-ID":"S"} {"jsonrpc":"2.0","id":"«call»",${hi}}
    = 200 
    A < data: {"jsonrpc":"2.0","id":"2",${hi}}`,

  'D5: the extension': `
    B sse /events?clientId=C1
    B < event: session\\ndata: {"sessionId":"«uuid»"}
    post /tools/register {"X-Client-ID":"C1"} ${register('register-1700000000000')}
    = 200 {"jsonrpc":"2.0","id":"register-1700000000000","result":{"registered":1}}
    A ws /
    A > {"jsonrpc":"2.0","id":1,"method":"session/join","params":{"sessionId":"«uuid»"}}
    A < {"jsonrpc":"2.0","id":1,"result":{"sessionId":"«uuid»","tools":[${greet}]}}
    A > ${call('2')}
    B < event: tool_call\\ndata: ${call()}
    post /tools/response {"X-Client-ID":"C1","X-Session-ID":"«uuid»"} {"jsonrpc":"2.0","id":"«call»","result":{"content":[{"type":"text","text":"no"}],"isError":true}}
    = 200 
    A < {"jsonrpc":"2.0","id":"2","error":{"code":"EXECUTION_ERROR","message":"no"}}
    C sse /events?clientId=C2&sessionId=«uuid»
    C < event: session\\ndata: {"sessionId":"«uuid»"}`,

  'D6: the remote agent': `
    post /register {"jsonrpc":"2.0","id":"reg","method":"tools/register","params":{"sessionId":"S","tools":[${greet}]}}
    = 200 {"jsonrpc":"2.0","id":"reg","result":{"success":true}}
    B sse /events?sessionId=S
    B < event: connected\\ndata: {"sessionId":"S"}
    mcp greet {"who":"Ann"}
    B < event: request\\ndata: ${call()}
    post /response {"jsonrpc":"2.0","id":"«call»","error":{"code":-32000,"message":"Error: Unknown tool: nope"}}
    = 200 
    mcp < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Error: Unknown tool: nope","data":{"btcpCode":-32000}}}
    mcp greet {"who":"Ann"}
    B < event: request\\ndata: ${call('«call2»')}
    post /response {"id":"«call2»",${hi}}
    = 200 
    mcp < {"jsonrpc":"2.0","id":1,${hi}}`,

  'D7: one POST each': `
    B ws /ws?sessionId=S&clientType=browser
    B < ${connected('«client»', 'S', 'browser')}
    post /rpc {"jsonrpc":"2.0","id":"btcp-1-1","method":"tools/list"}
    = 200 {"jsonrpc":"2.0","id":"btcp-1-1","result":[]}
    post /rpc {"jsonrpc":"2.0","id":"btcp-1-2","method":"tools/call","params":{"name":"nope","arguments":{}}}
    = 200 {"jsonrpc":"2.0","id":"btcp-1-2","error":{"code":-32601,"message":"Tool not found: nope"}}`,

  'D8: a Unix socket': `
    B unix -
    B > {"jsonrpc":"2.0","id":1,"method":"session/create","params":{}}
    B < {"jsonrpc":"2.0","id":1,"result":{"sessionId":"«uuid»","expiresAt":«ms»}}
    B > ${register('2')}
    B < {"jsonrpc":"2.0","id":"2","result":{"registered":1}}
    A unix -
    A > {"jsonrpc":"2.0","id":3,"method":"session/join","params":{"sessionId":"«uuid»"}}
    A < {"jsonrpc":"2.0","id":3,"result":{"sessionId":"«uuid»","tools":[${greet}]}}
    A > ${call('4')}
    B < ${call()}
    B > {"jsonrpc":"2.0","id":"«call»",${hi}}
    A < {"jsonrpc":"2.0","id":"4","result":"Hi"}`,

  'MCP-B: the relay\'s protocol': `
    B ws / webmcp-discovery.v1,webmcp.v1
    B < {"type":"server-hello","service":"webmcp-local-relay","version":1,"host":"127.0.0.1","instanceId":"«uuid»","port":«port»,"label":"Rialto"}
    B > {"type":"hello","tabId":"S","origin":"https://a.example","url":"https://a.example/","title":"A","iconUrl":""}
    B < {"type":"hello/accepted"}
    B > {"type":"tools/list","tools":[${greet}]}
    mcp greet {"who":"Ann"}
    B < {"type":"invoke","callId":"«call»","toolName":"greet","args":{"who":"Ann"}}
    B > {"type":"result","callId":"«call»",${hi}}
    mcp < {"jsonrpc":"2.0","id":1,${hi}}`,
};

for (const [name, text] of Object.entries(traces)) {
  test(`byte by byte, ${name}`, async (t) => {
    const socket = path.join(tempDir(), 'btcp.sock');
    const server = await serveBrowser(t, { browser: { socket: `unix:${socket}` } });
    await new Dialogue(t, server, socket).play(text);
  });
}

test('missing sessions: what D4 and the endpoints answer, byte by byte', async (t) => {
  const server = await serveBrowser(t);
  const got = async (where, options) => { const a = await exchange(server.origin + where, options); return `${a.status} ${a.text}`; };
  assert.equal(await got('/events?clientType=browser', { method: 'GET' }), '400 {"error":"sessionId is required"}');
  assert.match(await got('/message', { body: '{}' }), /^400 \{"error":"sessionId is required","hint":/);
  assert.equal(await got('/sessions', { method: 'GET' }), '200 {"sessions":[]}');
  assert.match(await got('/health', { method: 'GET' }), /^200 \{"status":"ok","service":"rialto","sessions":0,"clients":0,"uptime":\d+\}$/);
});

test('every test that BROWSER.md names is there', () => {
  const folder = path.dirname(fileURLToPath(import.meta.url));
  const table = fs.readFileSync(path.join(folder, 'BROWSER.md'), 'utf8');
  const files = fs.readdirSync(folder).map((f) => f.match(/^browser_(.*)\.test\.mjs$/)?.[1]).filter(Boolean);
  const plain = (s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  // A title in backquotes has parts that a table of the test fills in.
  const names = (file) => {
    const source = fs.readFileSync(path.join(folder, `browser_${file}.test.mjs`), 'utf8');
    return [...source.matchAll(/\btest\('((?:[^'\\]|\\.)*)'/g)].map((m) => plain(m[1].replace(/\\'/g, "'")))
      .concat([...source.matchAll(/\btest\(`([^`]*)`/g)].map((m) => m[1].split(/\$\{[^}]*\}/).map(plain).join('.+')))
      .map((pattern) => new RegExp(`^${pattern}$`));
  };
  // "file: test; file: test", where a test's name may have a semicolon in it as well.
  const start = `(${files.join('|')}): `;
  const cited = table.split('\n').filter((l) => l.startsWith('| ')).flatMap((l) => l.split(' | ').at(-1).replace(/ \|$/, '')
    .split(new RegExp(`; (?=${start.replace('(', '(?:')})`)))
    .map((c) => c.match(new RegExp(`^${start}(.*)$`))).filter(Boolean);
  assert.ok(cited.length > 60, `${cited.length} tests are named`);
  for (const [, file, name] of cited) assert.ok(names(file).some((n) => n.test(name)), `browser_${file}.test.mjs has no test '${name}'`);
  for (let n = 1; n <= 14; n++) assert.match(table, new RegExp(`^\\| ${n} \\|.*flow ${n}\\b`, 'm'));
});
