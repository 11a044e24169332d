// What a call to a tool in a page costs: an agent on one WebSocket calls a page on another, through the
// bridge. The floor is a WebSocket that echoes the same bytes in another process: with one call in
// flight nearly all of the time is spent waking up the other process, so the echo inside this process,
// which is shown too, is no fair comparison. A call needs two such round trips, the floor one: a bridge
// that costs nothing would reach half of the floor.
// Then the same with two thousand pages of twenty tools each, one of which does not read. A page is sent a ping when it
// has registered; one that is called within a second, as here, not again (docs/decisions/024-signs-of-life.md).
//   bench/browser.mjs [PROGRAM]
import { fork, spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const WebSocket = createRequire(path.join(root, 'build/npm/package.json'))('ws');
const program = process.argv[2] ?? path.join(root, 'build/rialto');
const seconds = Number(process.env.RIALTO_BENCH_SECONDS ?? 1);
const ROUNDS = 3; // of each measurement, in turn: other load can only make one slower

const opened = (ws) => new Promise((resolve, reject) => { ws.on('open', resolve); ws.on('error', reject); });

/** Keeps `depth` requests under way; gives calls per second and the median of their times. */
async function measure(ws, request, depth) {
  const began = performance.now();
  const times = [];
  const started = new Map();
  let next = 1000;
  await new Promise((resolve) => {
    const send = () => { started.set(++next, performance.now()); ws.send(request(next)); };
    const onMessage = (data) => {
      const { id, error } = JSON.parse(data);
      if (error) throw new Error(`a call failed: ${data}`); // an error comes back faster than a result
      if (!started.has(id)) return;
      times.push(performance.now() - started.get(id));
      started.delete(id);
      if (performance.now() - began < seconds * 1000) send();
      else if (started.size === 0) { ws.off('message', onMessage); resolve(); }
    };
    ws.on('message', onMessage);
    for (let i = 0; i < depth; i++) send();
  });
  times.sort((a, b) => a - b);
  return { rate: times.length / (performance.now() - began) * 1000, p50: times[times.length >> 1] };
}

/** The best of several rounds for each of these WebSockets. */
async function best(sockets, depth) {
  const found = sockets.map(() => ({ rate: 0, p50: Infinity }));
  for (let i = 0; i < ROUNDS; i++) {
    for (const [n, ws] of sockets.entries()) {
      const { rate, p50 } = await measure(ws, call, depth);
      found[n] = { rate: Math.max(rate, found[n].rate), p50: Math.min(p50, found[n].p50) };
    }
  }
  return found;
}

const call = (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"${'x'.repeat(64)}"}}}`;
const row = (what, depth, { rate, p50 }) => console.log(
  `${what.padEnd(28)} ${String(depth).padStart(3)} at once  ${Math.round(rate).toString().padStart(7)} calls/s  median ${p50.toFixed(3)} ms`);

const PAGES = 2000;
const TOOLS = 20;

/** A page with these tools, which answers with its arguments' text. */
async function openPage(host, session, tools) {
  const ws = new WebSocket(`ws://${host}/ws?sessionId=${session}&clientType=browser`);
  await opened(ws);
  await new Promise((resolve) => {
    ws.on('message', (data) => {
      const m = JSON.parse(data);
      if (m.id === 'register') resolve();
      if (m.method === 'ping') ws.send(JSON.stringify({ jsonrpc: '2.0', id: m.id, result: { pong: true } }));
      if (m.method === 'tools/call') ws.send(JSON.stringify({ jsonrpc: '2.0', id: m.id, result: { content: [{ type: 'text', text: m.params.arguments.text ?? '' }] } }));
    });
    ws.send(JSON.stringify({ jsonrpc: '2.0', id: 'register', method: 'tools/register', params: { tools } }));
  });
  return ws;
}

/** An MCP agent on a WebSocket: `request` gives the whole answer. */
async function openAgent(host, query) {
  const ws = new WebSocket(`ws://${host}/mcp${query}`, { maxPayload: 1 << 30 });
  await opened(ws);
  const waiting = new Map();
  let next = 1;
  ws.on('message', (data) => { const m = JSON.parse(data); waiting.get(m.id)?.(m); waiting.delete(m.id); });
  const request = (method, params) => new Promise((resolve) => {
    waiting.set(next, resolve);
    ws.send(JSON.stringify({ jsonrpc: '2.0', id: next++, method, params }));
  });
  await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } });
  ws.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  return { ws, request };
}

const timed = async (fn) => { const began = performance.now(); const value = await fn(); return [value, performance.now() - began]; };
const resident = (pid) => Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024;

async function inBatches(n, size, fn) {
  for (let i = 0; i < n; i += size) await Promise.all(Array.from({ length: Math.min(size, n - i) }, (_, k) => fn(i + k)));
}

const toolsOf = (n) => Array.from({ length: TOOLS }, (_, k) => ({
  name: `t${n}_${k}`, description: 'Does a thing in the page', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }));

/** Many pages, once: how long it takes to open them, list them and call each for the first time, and what an idle one costs. */
async function manyOnce(host, pid, round) {
  const before = resident(pid);
  const pages = [];
  const [, registering] = await timed(() => inBatches(PAGES, 50, async (i) => { pages[i] = await openPage(host, `r${round}s${i}`, toolsOf(i)); }));
  const each = (resident(pid) - before) / PAGES;
  const { ws, request } = await openAgent(host, '?session=*');
  const [listed, listing] = await timed(() => request('tools/list', {}));
  if (listed.result.tools.length < PAGES * TOOLS) throw new Error(`only ${listed.result.tools.length} tools are listed`);
  const [, calling] = await timed(() => inBatches(PAGES, 64, async (i) => {
    const { error } = await request('tools/call', { name: `t${i}_${i % TOOLS}`, arguments: { text: 'x' } });
    if (error) throw new Error(JSON.stringify(error));
  }));
  return { pages, ws, request, each, registering, listing, calling };
}

/** The best of several rounds, each with pages that are new to the bridge. */
async function manyPages(host, pid) {
  const best = { registering: Infinity, listing: Infinity, calling: Infinity };
  let one;
  for (let round = 0; round < ROUNDS; round++) {
    if (one) await Promise.all([one.ws, ...one.pages].map((ws) => new Promise((resolve) => { ws.on('close', resolve); ws.close(); })));
    one = await manyOnce(host, pid, round);
    best.each ??= one.each; // later rounds reuse memory that was freed
    for (const what of ['registering', 'listing', 'calling']) best[what] = Math.min(best[what], one[what]);
  }
  const bytes = JSON.stringify(toolsOf(1000)).length;
  console.log(`${PAGES} pages with ${TOOLS} tools each, best of ${ROUNDS}:`);
  console.log(`  register all ${Math.round(best.registering)} ms   list ${PAGES * TOOLS} tools ${Math.round(best.listing)} ms   call each page once, 64 at once ${Math.round(best.calling)} ms (${Math.round(PAGES / best.calling * 1000)} calls/s)`);
  console.log(`  an idle page takes ${((best.each - bytes) / 1024).toFixed(1)} KB besides the ${(bytes / 1024).toFixed(1)} KB of its tools`);
  return one;
}

/** One page does not read what it is sent: how long do calls of another page take meanwhile? */
async function slowPage({ pages, request }) {
  pages[0]._socket.pause();
  const text = 'x'.repeat(1 << 20);
  for (let i = 0; i < 8; i++) request('tools/call', { name: 't0_0', arguments: { text } });
  const times = [];
  for (let i = 0; i < 500; i++) times.push((await timed(() => request('tools/call', { name: 't1_0', arguments: { text: 'x' } })))[1]);
  times.sort((a, b) => a - b);
  console.log(`  beside a page that does not read: median ${times[250].toFixed(3)} ms, 99 % under ${times[495].toFixed(3)} ms`);
}

async function openEcho() {
  const echo = new WebSocket.Server({ host: '127.0.0.1', port: 0 });
  echo.on('connection', (ws) => ws.on('message', (data) => ws.send(data.toString())));
  await new Promise((resolve) => { echo.on('listening', resolve); });
  return echo.address().port;
}

async function connectTo(port) {
  const ws = new WebSocket(`ws://127.0.0.1:${port}`);
  await opened(ws);
  return ws;
}

if (process.argv[2] === '--echo') {
  process.send(await openEcho());
  await new Promise(() => {}); // until the other process ends
}
const here = await connectTo(await openEcho());
const other = fork(fileURLToPath(import.meta.url), ['--echo']);
const bare = await connectTo(await new Promise((resolve) => { other.once('message', resolve); }));

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'rialto-bench-'));
fs.writeFileSync(path.join(dir, 'r.json'), '{"listen":"127.0.0.1:0","control":"off"}');
const child = spawn(program, ['serve', '-c', path.join(dir, 'r.json')], {
  stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, XDG_STATE_HOME: dir } });
process.on('exit', () => { other.kill(); child.kill('SIGKILL'); fs.rmSync(dir, { recursive: true, force: true }); });
const host = await new Promise((resolve, reject) => {
  let text = '';
  child.stderr.on('data', (d) => { text += d; const m = text.match(/listening on http:\/\/(\S+)/); if (m) resolve(m[1]); });
  child.on('exit', () => reject(new Error(text)));
});
await openPage(host, 'bench', [{ name: 'echo', timeout: 5000 }]);
const { ws: agent } = await openAgent(host, '?session=bench');

console.log('tools in web pages, by WebSocket:');
for (const depth of [1, 16, 64]) {
  const [inside, floor, through] = await best([here, bare, agent], depth);
  row('echo in this process', depth, inside);
  row('bare WebSocket echo', depth, floor);
  row('agent - rialto - page', depth, through);
  console.log(`  ${(floor.p50 / through.p50).toFixed(2)} of the bare echo, by the medians; ${(through.rate / floor.rate).toFixed(2)} by the rates`);
}
await slowPage(await manyPages(host, child.pid));
process.exit(0);
