// One secret, planted wherever a server, a caller or the configuration can put a text, and looked for in
// everything that the API shows.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { events, get, post } from './admin_lib.mjs';
import { HttpClient, serve, tempDir, until } from './lib.mjs';
import { META, ModernClient } from './peers.mjs';

const secret = 'planted-secret-0123456789';

/** A server that puts its secret into every place that MCP has for a text. */
const gossip = `
  const secret = process.env.KEY;
  const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
  const tool = (name) => ({ name, title: 'title ' + secret, description: 'says ' + secret, annotations: { title: secret },
    inputSchema: { type: 'object', properties: { [secret]: { type: 'string', title: secret, default: secret } } }, _meta: { [secret]: secret } });
  const answers = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, instructions: 'use ' + secret, serverInfo: { name: secret, version: secret },
      capabilities: { tools: { listChanged: true }, resources: {}, prompts: {}, logging: {}, experimental: { [secret]: { is: secret } } } }),
    'tools/list': () => ({ tools: ['say', 'fail', 'break', 'tell', secret].map(tool) }),
    'resources/list': () => ({ resources: [{ uri: 'x://' + secret, name: secret, description: secret }] }),
    'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'y://' + secret + '/{a}', name: secret }] }),
    'prompts/list': () => ({ prompts: [{ name: 'p' + secret, description: secret }] }),
    'resources/read': ({ uri }) => ({ contents: [{ uri, text: secret }] }),
    'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: secret } }] }),
  };
  console.error('on standard error: ' + secret);
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const text = [{ type: 'text', text: secret }];
    if (method !== 'tools/call') return send(answers[method] ? { id, result: answers[method](params) } : { id, error: { code: -32601, message: secret } });
    if (params.name === 'break') return send({ id, error: { code: -32000, message: 'error ' + secret, data: secret } });
    if (params.name === 'tell') {
      send({ method: 'notifications/message', params: { level: 'error', logger: secret, data: secret } });
      send({ method: 'notifications/' + secret, params: { secret } });
      if (params._meta?.progressToken !== undefined) send({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1, message: secret } });
    }
    send({ id, result: { content: text, structuredContent: { [secret]: secret }, isError: params.name === 'fail' } });
  }).on('close', () => process.exit());
`;

test('a secret that is planted everywhere shows nowhere', async (t) => {
  const script = path.join(tempDir(), 'gossip.cjs');
  fs.writeFileSync(script, gossip);
  const server = await serve(t, { servers: {
    a: { command: process.execPath, args: [script], env: { KEY: secret } },
    b: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: `Bearer ${secret}`, 'X-Key': secret } },
    c: { command: process.execPath, args: [script], env: { KEY: secret }, deny: ['say'] },
    d: { command: process.execPath, args: [script, secret], env: { KEY: secret }, enabled: false },
  } });
  await until('a and c are up', async () => (await get(server, '/api/servers')).json.filter((s) => s.state === 'up').length === 2);
  const stream = await events(t, server);
  const client = await new HttpClient(server.url).connect({ name: secret });
  const modern = new ModernClient(server.url);
  for (const name of ['a__say', 'a__fail', 'a__break', 'a__tell', `a__${secret}`, `no_such_${secret}`]) {
    await client.post({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, arguments: { [secret]: secret }, _meta: { progressToken: secret } } });
    await modern.send('tools/call', { name, arguments: { [secret]: secret } }, { [`${META}clientInfo`]: { name: secret, version: secret } });
  }
  const said = JSON.stringify((await client.request('resources/read', { uri: `x://${secret}` })));
  assert.ok(said.includes(secret), 'agents get bytes as they are');
  await client.request('prompts/get', { name: `a__p${secret}` });
  await post(server, '/api/servers', { name: 'e', entry: { command: secret, wrong: secret } });
  await post(server, '/api/servers/c/restart');
  await stream.next('servers', (rows) => rows.some((r) => r.name === 'c' && r.state === 'up'));
  const { json: calls } = await get(server, '/api/calls');
  assert.ok(calls.length > 10);
  const items = (await get(server, '/api/tools?brief=1&hidden=1')).json.items;
  assert.ok(items.length > 10);
  const where = ['/status', '/metrics', '/healthz', '/api/servers', '/api/config', '/api/tools', '/api/tools?brief=1', '/api/tools?brief=1&hidden=1', '/api/tools?brief=1&q=say',
    '/api/approvals', '/api/calls', '/api/logs', '/api/grants', '/api/sessions', '/api/pages', '/api/tasks', '/api/numbers', '/api/bus',
    '/api/servers/none', `/api/tools/${secret}`, '/api/nothing',
    ...['a', 'b', 'c', 'd'].flatMap((s) => [`/api/servers/${s}`, `/api/servers/${s}/messages`]),
    ...['say', 'fail'].flatMap((n) => [`/api/tools/a__${n}`, `/api/tools/${n}?server=c`]),
    `/api/tools/${encodeURIComponent(`a__${secret}`)}`, `/api/tools/${encodeURIComponent(`x://${secret}`)}?kind=resource`,
    ...calls.map((c) => `/api/calls/${c.id}`)];
  const shown = [];
  for (const path of where) if ((await get(server, path)).text.includes(secret)) shown.push(path);
  const text = stream.raw();
  if (text.includes(secret)) shown.push(`/api/events: ${text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 50)}`);
  assert.deepEqual(shown, []);
  const a = (await get(server, '/api/servers/a')).json;
  assert.deepEqual([a.capabilities.tools, a.capabilities.logging], [{ listChanged: true }, {}], 'as the server sent them');
  assert.ok(a.capabilities.experimental['***']);
});
