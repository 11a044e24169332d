// Small problems that real servers revealed, one in each test.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  fake, fakeBin, HttpClient, logged, serve, serveAndConnect, sleep, tempDir, until, within,
} from './lib.mjs';
import { ModernClient } from './peers.mjs';
import { listen, readBody } from './upstream_lib.mjs';

// A server may change what its tools do without changing its list, or change a tool that the
// configuration hides: the notification was not passed on, and agents could not know.
test('list_changed passes, even when nothing that we list has changed', async (t) => {
  const { client, server } = await serveAndConnect(t, { servers: { s: { ...fake(), deny: ['extra'] }, other: fake() } }, ['s__echo', 'other__echo']);
  const before = await client.toolNames();
  const stream = await client.listen();
  await stream.settle();
  const told = stream.count('notifications/tools/list_changed');
  const modern = new ModernClient(server.url);
  const listening = await modern.listen({ toolsListChanged: true });
  await listening.waitFor('notifications/subscriptions/acknowledged');
  await client.call('s__notify-list-changed');
  await stream.waitFor('notifications/tools/list_changed', told + 1);
  await listening.waitFor('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), before);
  // Agents that do not see the server get no notification.
  const alone = await new HttpClient(`${server.url}/other`).connect();
  const its = await alone.listen();
  await its.settle();
  await client.call('s__notify-list-changed');
  await stream.waitFor('notifications/tools/list_changed', told + 2);
  await its.settle();
  assert.equal(its.count('notifications/tools/list_changed'), 0);
  listening.close();
  stream.close();
  its.close();
});

// A tool that reports progress for minutes was cut after one; one that only ever reports must end, too.
test('progress extends a call by default, up to timeout_max', async (t) => {
  const { client } = await serveAndConnect(t, {
    servers: {
      s: { ...fake(), timeout: '2s' }, short: { ...fake(), timeout: '2s', timeout_max: '3s' },
      strict: { ...fake(), timeout: '2s', timeout_on_progress: 'ignore' },
    },
  }, ['s__slow', 'short__slow', 'strict__slow']);
  const slow = (server) => client.request('tools/call', { name: `${server}__slow`, arguments: { steps: 8, ms: 500 }, _meta: { progressToken: 1 } });
  const [long, short, strict] = await Promise.all([slow('s'), slow('short'), slow('strict')]);
  assert.equal(long.result?.content[0].text, 'done slowly', JSON.stringify(long.error));
  assert.equal(short.error?.data.reason, 'timeout');
  assert.equal(strict.error?.data.reason, 'timeout');
  const after = (answer) => Number(answer.error.message.match(/within (\d+) ms/)[1]);
  assert.ok(after(short) >= 2900, short.error.message);
  assert.ok(after(strict) < after(short), strict.error.message);
});

// "ended: exited with 0; its last words: Server running on stdio": an old greeting is not the reason.
test('the end of stderr is quoted when it belongs to the end, without the blanks around it', async (t) => {
  const dir = tempDir();
  const script = (name, text) => {
    const file = path.join(dir, name);
    fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return { command: file, restarts: 1 };
  };
  const { client, server } = await serveAndConnect(t, {
    servers: {
      greeter: script('greeter', `echo "Server running on stdio" >&2; exec ${fakeBin}`),
      broken: script('broken', 'printf "   boom: no config   \\n\\n  \\n" >&2; exit 3'),
    },
  }, ['greeter__echo']);
  await logged(server, /broken.*exited with (status )?3; its last words: boom: no config\n/);
  await sleep(1500); // the greeting is old by now
  const { error } = await client.call('greeter__die');
  assert.equal(error.data.reason, 'crashed');
  assert.doesNotMatch(error.message, /last words/);
});

/** A server of the older HTTP+SSE transport; `answer(message)` returns the result or a raw text. */
async function oldServer(t, answer) {
  let stream;
  const opened = { n: 0 };
  const { url } = await listen(t, async (request, response) => {
    if (request.method === 'GET') {
      opened.n += 1;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      stream = response;
      response.write('event: endpoint\ndata: /messages\n\n');
      return;
    }
    const message = JSON.parse(await readBody(request));
    response.writeHead(202).end();
    if (message.id === undefined) return;
    const result = await answer(message);
    if (result) stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`);
  });
  return { url: url.replace('/mcp', '/sse'), opened };
}

test('an over-long message of an SSE server ends its own call only', async (t) => {
  const tool = (name) => ({ name, inputSchema: { type: 'object' } });
  let finish;
  const waiting = new Promise((resolve) => { finish = resolve; });
  const old = await oldServer(t, async ({ method, params }) => {
    if (method === 'initialize') return { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } };
    if (method === 'tools/list') return { tools: [tool('big'), tool('small'), tool('late')] };
    if (params?.name === 'late') await waiting;
    return { content: [{ type: 'text', text: params?.name === 'big' ? 'x'.repeat(3 << 20) : 'fine' }] };
  });
  const { client } = await serveAndConnect(t, { limits: { message: '1MiB' }, servers: { s: { url: old.url, transport: 'sse', era: 'legacy' } } }, ['s__big']);
  const late = client.call('s__late');
  const big = await within(10_000, 'the call that was answered with too much', client.call('s__big'));
  assert.match(big.error.message, /more than 1048576 bytes/);
  finish();
  assert.equal((await late).result?.content[0].text, 'fine', 'the other call goes on');
  assert.equal(await client.text('s__small'), 'fine');
  assert.equal(old.opened.n, 1, 'on the same stream');
});
