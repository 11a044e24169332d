// What a tool call over a message bus costs, compared with a bare ping-pong through
// the same broker, in one run: calls per second, median and p99 with 1, 16 and 64 calls under way.
//   raw        librabbitmq, or a blocking socket to NATS, and nothing else: publish, consume, acknowledge
//   unconfirmed  the same without publisher confirms: faster, but lost messages are not noticed
//   engine     our bus.h on both sides, with publisher confirms and acknowledgement after them
//   worker     `rialto bus worker` with an MCP server: a whole tool call
// Then one, two and three workers of one agent whose tool takes 10 ms. Each figure is the best of
// three, taken in turns.
//   bench/bus.mjs [FOLDER_OF_PROGRAMS [RIALTO]]
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const bin = path.resolve(process.argv[2] ?? path.join(root, 'build/release/bench'));
const rialto = path.resolve(process.argv[3] ?? path.join(root, 'build/rialto'));
const seconds = String(Number(process.env.RIALTO_BENCH_SECONDS ?? 1) / 2);
process.env.RIALTO_BIN = rialto; // read by tests/e2e/lib.mjs
process.env.RIALTO_FAKE_BIN = rialto;
const { startNats, startRabbit } = await import('../tests/e2e/brokers.mjs');
const { runCommand, start, tempDir, until, writeConfig } = await import('../tests/e2e/lib.mjs');

const tool = (name) => path.join(bin, `bench_${name}`);
const finally_ = [];
const cleanUp = { after: (fn) => finally_.push(fn) };
const BYTES = 64;

/** Starts a program, which is killed with the others at the end; waits until its output matches `ready`. */
async function run(command, args, ready, env = {}) {
  const child = start(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (d) => { text += d; });
  if (ready) await until(`${ready} of ${command}\n${text}`, () => ready.test(text), 20_000);
  return child;
}

function end(child) {
  return new Promise((resolve) => { child.on('close', resolve); child.kill('SIGTERM'); });
}

/** One measurement: {rate, p50, p99}. */
async function once(command, args) {
  const { code, stdout, stderr } = await runCommand(command, args, { timeout: 60_000 });
  const found = stdout.match(/rate=(\d+) p50=(\d+) p99=(\d+)/);
  if (code !== 0 || !found) throw new Error(`${command} ${args.join(' ')}: ${code}\n${stdout}${stderr}`);
  return { rate: Number(found[1]), p50: Number(found[2]), p99: Number(found[3]) };
}

/** The best of three of each, in turns. */
async function best(measurements) {
  const runs = measurements.map(() => []);
  for (let i = 0; i < 3; i++) {
    for (const [n, m] of measurements.entries()) runs[n].push(await once(...m));
  }
  return runs.map((r) => r.sort((a, b) => b.rate - a.rate)[0]);
}

const cell = (value, width) => String(value).padStart(width);
const row = (what, depth, { rate, p50, p99 }, raw) => console.log(`${what.padEnd(22)} ${cell(depth, 5)} ${
  cell(rate, 9)} ${cell(p50, 9)} ${cell(p99, 9)} ${cell(raw ? (rate / raw.rate).toFixed(2) : '', 9)}`);

/** Starts a worker for RockBot. The measuring client repeats its first request until the worker answers. */
function startWorker(url, prefetch, ...serverArgs) {
  const file = writeConfig(tempDir(), {
    servers: { echo: { command: tool('echo_server'), args: serverArgs, concurrency: 64 } },
    bus: { url, agents: ['RockBot'], prefetch, events: false },
  });
  return run(rialto, ['bus', 'worker', '-c', file], /joined/, { XDG_RUNTIME_DIR: path.dirname(file) });
}

const engineCall = (url, topic, depth) => [tool('bus'), ['--name', 'RockBot', url, 'bench', topic, seconds, depth, BYTES].map(String)];

/** `raws`: name of a row → its command by depth; the first is what the others are compared with. */
async function measureEngine(name, url, raws) {
  const echo = await run(tool('bus'), [url, 'echo', 'bench.echo', 'bench-echo', '64'], /up/);
  const worker = await startWorker(url, 64);
  for (const depth of [1, 16, 64]) {
    const commands = {
      ...Object.fromEntries(Object.entries(raws).map(([what, command]) => [what, command(depth)])),
      engine: engineCall(url, 'bench.echo', depth), worker: engineCall(url, 'tool.invoke.mcp', depth),
    };
    const figures = await best(Object.values(commands));
    const floor = commands.raw && figures[0];
    for (const [n, what] of Object.keys(commands).entries()) {
      row(`${name} ${what}`, depth, figures[n], what === 'raw' ? null : floor);
    }
  }
  await Promise.all([end(echo), end(worker)]);
}

/** Calls per second of one, two and three workers of one agent that share a queue. */
async function measureWorkers(name, url) {
  const workers = [];
  const rates = [];
  for (let n = 1; n <= 3; n++) {
    workers.push(await startWorker(url, 10, '10'));
    rates.push((await best([engineCall(url, 'tool.invoke.mcp', 64)]))[0].rate);
  }
  await Promise.all(workers.map(end));
  console.log(`${name}, 1, 2 and 3 workers, a tool of 10 ms, 10 at a time each: ${rates.join(', ')} calls/s`);
}

async function main() {
  console.log(`${'over the bus'.padEnd(22)} ${cell('calls', 5)} ${cell('calls/s', 9)} ${cell('p50 us', 9)} ${
    cell('p99 us', 9)} ${cell('of raw', 9)}`);
  const socket = `unix:${path.join(tempDir(), 'bus.sock')}`;
  const rabbit = await startRabbit(cleanUp);
  const nats = await startNats(cleanUp);

  const echoes = [];
  for (const way of ['plain', 'confirm']) {
    echoes.push(await run(tool('raw_amqp'), [String(rabbit.port), way, 'echo', `raw.${way}`, `raw-${way}`, '64']));
  }
  echoes.push(await run(tool('raw_nats'), [nats.url, 'echo', 'raw.echo', 'raw-echo']));
  const rawRabbit = (way) => (depth) => [tool('raw_amqp'),
    [rabbit.port, way, 'bench', `raw.${way}`, seconds, depth, BYTES].map(String)];
  const rawNats = (depth) => [tool('raw_nats'),
    [nats.url, 'bench', 'raw.echo', seconds, depth, BYTES].map(String)];

  await measureEngine('RabbitMQ', rabbit.url(), { raw: rawRabbit('confirm'), unconfirmed: rawRabbit('plain') });
  await measureEngine('NATS', nats.url, { raw: rawNats });
  await measureEngine('embedded', socket, {});
  await Promise.all(echoes.map(end));
  await measureWorkers('RabbitMQ', rabbit.url());
  await measureWorkers('NATS', nats.url);
}

try {
  await main();
} finally {
  for (const fn of finally_) await fn();
}
