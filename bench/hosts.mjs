// What a host that runs `rialto stdio` costs: memory of the shim after its first call, time from its start to
// the answer to initialize next to `cat` echoing a line, and the memory of ten hosts with twenty servers,
// each with servers of its own (--alone) and with one daemon for all.
//   node bench/hosts.mjs [RIALTO]
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const rialto = path.resolve(process.argv[2] ?? path.join(root, 'build/rialto'));
const server = path.join(root, 'build/release/bench/bench_echo_server');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'rialto-bench-'));
const env = { ...process.env, XDG_RUNTIME_DIR: work, XDG_STATE_HOME: `${work}/state`, XDG_CACHE_HOME: `${work}/cache`, HOME: work };
const file = path.join(work, 'config/rialto.json');
fs.mkdirSync(path.dirname(file));
fs.writeFileSync(file, JSON.stringify({
  listen: '127.0.0.1:0', autostart: { idle: '2s' },
  servers: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`s${i}`, { command: server }])),
}));

const message = (id, method, params) => `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const greeting = message(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } });

/** Starts a program; `ask` writes a line to it and waits for the next line of its output. */
function run(command, args) {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
  let text = '';
  let waiting = () => {};
  child.stdout.on('data', (d) => { text += d; waiting(); });
  const ask = async (line) => {
    text = '';
    child.stdin.write(line);
    while (!text.includes('\n')) await new Promise((resolve) => { waiting = resolve; });
    return JSON.parse(text.split('\n')[0]);
  };
  const end = () => new Promise((resolve) => { child.on('exit', resolve); child.stdin.end(); });
  return { pid: child.pid, ask, end };
}

const field = (pid, name) => Number(fs.readFileSync(`/proc/${pid}/${name === 'Pss' ? 'smaps_rollup' : 'status'}`, 'utf8').match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'))[1]);
const ours = () => fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)).filter((pid) => {
  try { return fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(work); } catch { return false; }
});

async function best(command, args) {
  let least = Infinity;
  for (let i = 0; i < 15; i++) {
    const from = process.hrtime.bigint();
    const p = run(command, args);
    await p.ask(greeting);
    least = Math.min(least, Number(process.hrtime.bigint() - from) / 1e6);
    await p.end();
  }
  return least;
}

async function tenHosts(...args) {
  const hosts = Array.from({ length: 10 }, () => run(rialto, ['stdio', '-c', file, ...args]));
  await Promise.all(hosts.map((h) => h.ask(greeting)));
  const all = ours();
  const sum = all.reduce((kb, pid) => { try { return kb + field(pid, 'Pss'); } catch { return kb; } }, 0);
  await Promise.all(hosts.map((h) => h.end()));
  return `${(sum / 1024).toFixed(1)} MB in ${all.length} processes`;
}

const first = run(rialto, ['stdio', '-c', file]);
await first.ask(greeting);
await first.ask(message(2, 'tools/call', { name: 's0__echo', arguments: {} }));
console.log(`shim after its first call:      ${(field(first.pid, 'VmRSS') / 1024).toFixed(2)} MB  (at most 2)`);
const [cat, shim] = [await best('cat', []), await best(rialto, ['stdio', '-c', file])];
console.log(`first answer:                   ${shim.toFixed(1)} ms, cat ${cat.toFixed(1)} ms  (at most 5 more)`);
console.log(`ten hosts, twenty servers:      ${await tenHosts()}`);
await first.end();
while (ours().length) await new Promise((resolve) => { setTimeout(resolve, 200); });
console.log(`each with servers of its own:   ${await tenHosts('--alone')}`);
fs.rmSync(work, { recursive: true, force: true });
