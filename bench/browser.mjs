// What a call to a tool in a page costs: an agent on a WebSocket calls a page on another, through the
// bridge. The floor is a WebSocket that echoes the same bytes in this very process; the page is in it
// as well, so that a call here has two WebSocket round trips and the floor one.
//   bench/browser.mjs [PROGRAM]
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const WebSocket = createRequire(path.join(root, 'build/npm/package.json'))('ws');
const program = process.argv[2] ?? path.join(root, 'build/rialto');
const seconds = Number(process.env.RIALTO_BENCH_SECONDS ?? 1);

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
      if (error) throw new Error(`a call failed: ${data}`); // an error is quick, and no call
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

const call = (id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"text":"${'x'.repeat(64)}"}}}`;
const row = (what, depth, { rate, p50 }) => console.log(
  `${what.padEnd(28)} ${String(depth).padStart(3)} at once  ${Math.round(rate).toString().padStart(7)} calls/s  median ${p50.toFixed(3)} ms`);

const floor = new WebSocket.Server({ host: '127.0.0.1', port: 0 });
floor.on('connection', (ws) => ws.on('message', (data) => ws.send(data.toString())));
await new Promise((resolve) => { floor.on('listening', resolve); });
const bare = new WebSocket(`ws://127.0.0.1:${floor.address().port}`);
await opened(bare);

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'rialto-bench-'));
fs.writeFileSync(path.join(dir, 'r.json'), '{"listen":"127.0.0.1:0","control":"off"}');
const child = spawn(program, ['serve', '-c', path.join(dir, 'r.json')], {
  stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, XDG_STATE_HOME: dir } });
process.on('exit', () => { child.kill('SIGKILL'); fs.rmSync(dir, { recursive: true, force: true }); });
const host = await new Promise((resolve, reject) => {
  let text = '';
  child.stderr.on('data', (d) => { text += d; const m = text.match(/listening on http:\/\/(\S+)/); if (m) resolve(m[1]); });
  child.on('exit', () => reject(new Error(text)));
});
const page = new WebSocket(`ws://${host}/ws?sessionId=bench&clientType=browser`);
await opened(page);
await new Promise((resolve) => {
  page.on('message', (data) => {
    const m = JSON.parse(data);
    if (m.id === 'register') resolve();
    if (m.method === 'tools/call') page.send(JSON.stringify({ jsonrpc: '2.0', id: m.id, result: { content: [{ type: 'text', text: m.params.arguments.text }] } }));
  });
  page.send('{"jsonrpc":"2.0","id":"register","method":"tools/register","params":{"tools":[{"name":"echo","timeout":5000}]}}');
});
const agent = new WebSocket(`ws://${host}/mcp?session=bench`);
await opened(agent);
agent.send('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}');
agent.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');

console.log('tools in web pages, by WebSocket:');
for (const depth of [1, 16, 64]) {
  row('bare WebSocket echo', depth, await measure(bare, call, depth));
  row('agent - rialto - page', depth, await measure(agent, call, depth));
}
process.exit(0);
