// Two thousand pages with twenty tools each on one bridge: all are listed and called, an idle page is
// cheap, and many changes at once are reported together. On the release build, because memory is measured.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { releaseBin, sleep, until } from './lib.mjs';
import { Socket, agent, serveBrowser, text } from './browser_lib.mjs';

const PAGES = 2000;
const TOOLS = 20;

const toolsOf = (n) => Array.from({ length: TOOLS }, (_, k) => ({
  name: `tool${n}_${k}`, description: 'Does a thing in the page',
  inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
}));

async function inBatches(n, fn) {
  for (let i = 0; i < n; i += 50) {
    await Promise.all(Array.from({ length: Math.min(50, n - i) }, (_, k) => fn(i + k)));
  }
}

test('2,000 pages with 20 tools each', async (t) => {
  const bin = fs.existsSync(process.env.RIALTO_RELEASE ?? releaseBin) ? process.env.RIALTO_RELEASE ?? releaseBin : null;
  assert.ok(bin, 'the release build is missing: make build');
  const server = await serveBrowser(t, { log: { level: 'warn' } }, { bin: [bin], args: ['-v'], slack: 3 });
  const memory = () => Number(fs.readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]);
  const before = memory();
  const sockets = [];
  await inBatches(PAGES, async (i) => {
    const socket = new Socket(t, server, `/ws?sessionId=s${i}&clientType=browser`);
    await socket.opened;
    sockets[i] = socket.answer((name) => text(name));
    socket.send({ jsonrpc: '2.0', id: 1, method: 'tools/register', params: { tools: toolsOf(i) } });
    await socket.find('registered', (m) => m.result?.registered === TOOLS);
  });
  const bytes = JSON.stringify(toolsOf(1000)).length;
  const each = (memory() - before) * 1024 / PAGES - bytes;
  t.diagnostic(`an idle page takes ${Math.round(each)} bytes besides the ${bytes} of its tools`);
  assert.ok(each <= 16 * 1024, `${each} bytes a page`);

  const client = await agent(server);
  const standing = await client.listen();
  assert.equal((await client.toolNames()).length, PAGES * TOOLS + 1); // and list_pages
  await inBatches(PAGES, async (i) => assert.equal(await client.text(`tool${i}_${i % TOOLS}`), `tool${i}_${i % TOOLS}`));

  const told = standing.count('notifications/tools/list_changed');
  for (const socket of sockets.slice(0, 500)) socket.ws.terminate();
  await until('500 gone', async () => (await client.toolNames()).length === (PAGES - 500) * TOOLS + 1);
  await sleep(100);
  assert.ok(standing.count('notifications/tools/list_changed') - told <= 20, 'told together');
});
