// Measures gateways of other people beside Rialto, in one run: the same load on the same stdio server, through each of
// them. They are installed from npm and PyPI below build/; a line is printed for one that cannot be installed.
//   node bench/peers.mjs [--write]     --write also puts the table into README.md and docs/compared.md
// A rate is the best of three measurements of one second, the start the best of five: other load can only make them
// slower. Memory and processor time are those of all processes except the server's.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const bin = path.join(root, 'build/release/bench');
const server = path.join(bin, 'bench_echo_server');
const modules = path.join(root, 'build/npm-bench/node_modules');
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'rialto-bench-'));
process.on('exit', () => fs.rmSync(work, { recursive: true, force: true }));

function need(command, args) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (done.status !== 0) throw new Error(done.error?.message ?? done.stderr.trim().split('\n').at(-1));
}

function write(name, content) {
  const file = path.join(work, name);
  fs.writeFileSync(file, JSON.stringify(content));
  return file;
}

/** Installs a package of PyPI in its own virtual environment; gives the folder of its programs. */
function python(wanted) {
  const venv = path.join(root, 'build/pip-bench', wanted);
  if (!fs.existsSync(path.join(venv, 'done'))) {
    need('/usr/bin/python3', ['-m', 'venv', venv]);
    need(path.join(venv, 'bin/pip'), ['install', '-q', wanted]);
    fs.writeFileSync(path.join(venv, 'done'), '');
  }
  return path.join(venv, 'bin');
}

const node = (script, ...args) => [process.execPath, path.join(modules, script), ...args];

// Each gives the command that serves `server` at http://127.0.0.1:PORT/mcp.
const peers = {
  Rialto: (port) => [path.join(root, 'build/rialto'), 'serve', '-q', '-c',
    write('rialto.json', { listen: `127.0.0.1:${port}`, control: 'off', names: 'bare', servers: { one: { command: server, concurrency: 64 } } })],
  'mcp-proxy 6.7.19 (npm)': (port) => node('mcp-proxy/dist/bin/mcp-proxy.mjs', '--host', '127.0.0.1', '--port', port, '--', server),
  'supergateway 4.0.0 (npm)': (port) => node('supergateway/dist/index.js', '--stateful', '--outputTransport', 'streamableHttp', '--port', port, '--stdio', server),
  'mcp-proxy 0.13.0 (PyPI)': (port) => [path.join(python('mcp-proxy==0.13.0'), 'mcp-proxy'), '--host', '127.0.0.1', '--port', port, '--', server],
  'FastMCP 3.4.10 (PyPI), its proxy': (port) => [path.join(python('fastmcp==3.4.10'), 'fastmcp'), 'run', '--no-banner', '--transport', 'http', '--host', '127.0.0.1', '--port', port,
    write('fastmcp.json', { mcpServers: { one: { command: server, args: [] } } })],
};

function freePort() {
  return new Promise((resolve) => {
    const s = net.createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => resolve(String(port))); });
  });
}

const greeting = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } } });

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** The load generator checks only the status of answers: this checks the content of one. */
async function prove(url) {
  const post = (body, more) => fetch(url, { method: 'POST', headers: { ...headers, ...more }, body });
  const first = await post(greeting);
  await first.text();
  const session = { 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await (await post('{"jsonrpc":"2.0","method":"notifications/initialized"}', session)).text();
  const answer = await (await post('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"proof"}}}', session)).text();
  if (!/"text": ?"proof"/.test(answer)) throw new Error(`a call does not work: ${answer.slice(0, 200)}`);
}

/** Starts a peer and waits until it answers: {url, pid, ms, stop}. */
async function begin(command) {
  const port = await freePort();
  const [program, ...args] = command(port);
  const log = fs.openSync(path.join(work, 'log'), 'w');
  const from = process.hrtime.bigint();
  const child = spawn(program, args, { cwd: work, stdio: ['ignore', log, log], detached: true, env: { ...process.env, HOME: work } });
  const ended = new Promise((resolve) => { child.on('close', resolve); child.on('error', resolve); });
  const stop = async () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* it has ended */ } await ended; fs.closeSync(log); };
  const url = `http://127.0.0.1:${port}/mcp`;
  for (const end = Date.now() + 30_000; Date.now() < end && child.exitCode === null;) {
    const answer = await fetch(url, { method: 'POST', headers, body: greeting }).then((r) => r.ok && r.text(), () => null);
    if (answer) return { url, pid: child.pid, ms: Number(process.hrtime.bigint() - from) / 1e6, stop };
    await new Promise((resolve) => { setTimeout(resolve, 1); });
  }
  await stop();
  throw new Error(`does not answer: ${fs.readFileSync(path.join(work, 'log'), 'utf8').trim().split('\n').at(-1)}`);
}

/** What a process group uses without the measured server: resident memory (MB) and processor time so far (us). */
function usage(group) {
  const all = { memory: 0, cpu: 0 };
  for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
    try {
      const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(fields[2]) !== group || stat.includes('bench_echo')) continue;
      all.cpu += (Number(fields[11]) + Number(fields[12])) * 10_000; // ticks of the kernel's clock, 100 a second
      all.memory += Number(fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/^VmRSS:\s+(\d+)/m)?.[1] ?? 0) / 1024;
    } catch { /* it has just ended */ }
  }
  return all;
}

/** {best: calls per second, calls: all that were made}. */
function load(url, connections) {
  const runs = [1, 2, 3].map(() => spawnSync(path.join(bin, 'bench_load'), ['-s', '1', '-c', String(connections), url], { encoding: 'utf8' }).stdout);
  const failed = runs.reduce((n, r) => n + Number(r.match(/errors=(\d+)/)?.[1] ?? 1), 0);
  if (failed) throw new Error(`${failed} calls failed with ${connections} connections`);
  const numbers = (word) => runs.map((r) => Number(r.match(new RegExp(`${word}=(\\d+)`))[1]));
  return { best: Math.max(...numbers('rate')), calls: numbers('calls').reduce((a, b) => a + b) };
}

async function row(name, command) {
  const starts = [];
  for (let i = 0; i < 5; i++) {
    const p = await begin(command);
    starts.push(p.ms);
    await p.stop();
  }
  const p = await begin(command);
  try {
    await prove(p.url);
    const before = usage(p.pid);
    const runs = [1, 16].map((c) => load(p.url, c));
    const after = usage(p.pid);
    const each = (after.cpu - before.cpu) / (runs[0].calls + runs[1].calls);
    return `| ${name} | ${runs.map((r) => r.best.toLocaleString('en')).join(' | ')} | ${each.toFixed(0)} µs | ${Math.min(...starts).toFixed(0)} ms | ${after.memory.toFixed(1)} MB |`;
  } finally { await p.stop(); }
}

const lines = ['| one stdio server behind HTTP | calls/s, 1 connection | 16 connections | processor time of a call | start to the first answer | resident after the calls |', '|---|---:|---:|---:|---:|---:|'];
const missing = [];
try { need('tools/npm', ['bench/package.json', 'build/npm-bench']); } catch (e) { console.log(`npm: ${e.message}`); }
for (const [name, command] of Object.entries(peers)) {
  try { lines.push(await row(name, command)); } catch (e) { missing.push(`${name} could not be measured here: ${e.message}`); }
}
console.log([...lines, ...missing].join('\n'));
if (process.argv.includes('--write')) {
  const begins = '<!-- peers: bench/peers.mjs --write writes this -->\n';
  for (const page of ['README.md', 'docs/compared.md']) {
    const [before, rest] = fs.readFileSync(path.join(root, page), 'utf8').split(begins);
    fs.writeFileSync(path.join(root, page), `${before}${begins}${lines.join('\n')}\n${rest.slice(rest.indexOf('<!-- end of peers -->'))}`);
  }
}
