// The matrix of `make test-peers`: the same steps by every client on every server, directly and through
// Rialto, and where the two differ; the official suite over every server, direct beside through.
//   matrix.mjs [--client A,B] [--server A,B] [--no-suite]    (a part of it; only a whole run writes docs/conformance.md)
//
// A client is a program that is given one JSON: {way, url | command, steps}; it connects, does the steps in
// order and prints a line for each, {step, got} or {step, error}. What it prints is compared with itself only.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { HttpClient, npmFolder, rialtoBin, root, runCommand, serve, start, tempDir, until, writeConfig } from '../e2e/lib.mjs';
import { node22 } from '../e2e/peers.mjs';
import { clients, installs, reasons, references, servers, steps } from './table.mjs';

const { values: options } = parseArgs({ options: {
  client: { type: 'string' }, server: { type: 'string' }, suite: { type: 'boolean', default: true }, jobs: { type: 'string', default: '2' },
}, allowNegative: true });
const whole = !options.client && !options.server && options.suite;
const chosen = (rows, names) => Object.keys(rows).filter((name) => !names || names.split(',').includes(name));
const total = { same: 0, different: 0, reasoned: 0, broken: 0, missing: 0, suite: 0 };
const report = (line) => { console.log(line); };

// --- had or missing ---

const missing = new Map();
function install(needs) {
  if (!needs || missing.has(needs)) return missing.get(needs);
  const [command, args] = installs[needs];
  let why = null;
  try {
    execFileSync(command, args, { cwd: root, encoding: 'utf8', timeout: 15 * 60_000, stdio: 'pipe' });
  } catch (e) {
    why = `${e.stderr || e.message}`.trim().split('\n').at(-1);
    report(`missing: ${needs}: ${why}`);
    total.missing++;
  }
  missing.set(needs, why);
  return why;
}

// --- one run of one client ---

/** What a client said: {step: text of its outcome}. */
async function drive(client, job) {
  const [command, ...args] = client.run;
  const child = spawn(command, [...args, JSON.stringify(job)], {
    detached: true, stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, XDG_CACHE_HOME: tempDir(), HOME: tempDir(), PYTHONWARNINGS: 'ignore', ...client.env },
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (d) => { out += d; });
  child.stderr.on('data', (d) => { err = (err + d).slice(-2000); });
  const kill = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* all of it has ended */ } };
  const timer = setTimeout(kill, 150_000);
  process.on('exit', kill);
  await new Promise((resolve) => { child.on('close', resolve); child.on('error', (e) => { err += e.message; resolve(); }); });
  clearTimeout(timer);
  kill(); // what it started, and did not end
  process.off('exit', kill);
  const said = new Map();
  for (const line of out.split('\n')) {
    let one;
    try { one = JSON.parse(line); } catch { continue; }
    if (one?.step) said.set(one.step, canonical('error' in one ? { error: one.error } : one.got));
  }
  const none = said.get('connect') ?? `nothing: ${err.trim().split('\n').at(-1)}`;
  return new Map(job.steps.map(({ step }) => [step, said.get(step) ?? none]));
}

// Members in one order, so that texts can be compared.
function canonical(value) {
  return JSON.stringify(value, (key, v) => (v && typeof v === 'object' && !Array.isArray(v)
    ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, v[k]])) : v)) ?? 'undefined';
}

// --- servers ---

/** A scope whose endings run in reverse, as a test's would. */
async function scoped(use) {
  const endings = [];
  try {
    return await use({ after: (f) => endings.push(f) });
  } finally {
    for (const end of endings.reverse()) await end();
  }
}

/** Starts a server that listens; gives its address. */
async function listening(t, command) {
  const child = start(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (d) => { text += d; });
  child.stderr.on('data', (d) => { text += d; });
  t.after(() => child.kill('SIGKILL'));
  const found = await until(`${command.join(' ')} to listen`, () => {
    if (child.exitCode !== null) throw new Error(`it ended: ${text.slice(-500)}`);
    return text.match(/listening on (http:\S+)/);
  }, 60_000);
  return found[1];
}

/** The server behind one way: an entry for Rialto, and what a client needs to reach it directly. */
async function behind(t, server, way) {
  const command = server.run(way);
  if (way === 'stdio') return { entry: { command: command[0], args: command.slice(1) }, job: { way, command } };
  const url = await listening(t, command);
  return { entry: { url }, job: { way, url } };
}

// --- a client and a server ---

const stepsOf = (...peers) => steps.filter((s) => !peers.some((p) => p.lacks.includes(s.step)));
const directly = (list) => list.filter((s) => !s.through);

async function throughRialto(t, entry) {
  const config = { servers: { peer: { timeout: '60s', ...entry } } };
  const hub = await serve(t, config, { slack: 10 });
  const probe = await new HttpClient(`${hub.origin}/mcp/peer`).connect();
  await until('the tools of the server', async () => (await probe.toolNames()).includes('echo'), 90_000);
  await probe.close();
  const file = writeConfig(tempDir(), config);
  return (way) => ({
    stdio: { way, command: [rialtoBin, 'stdio', '-q', '-c', file, '-s', 'peer', '-w', '30s'] },
    http: { way, url: `${hub.origin}/mcp/peer` }, sse: { way, url: `${hub.origin}/mcp/peer/sse` },
    ws: { way, url: `${hub.origin.replace('http', 'ws')}/mcp/peer` },
  })[way];
}

const scores = { servers: {}, clients: {} };
function score(side, name, same) {
  scores[side][name] ??= { same: 0, of: 0 };
  scores[side][name].of++;
  scores[side][name].same += same ? 1 : 0;
}

function judge(where, step, direct, through) {
  let verdict = direct === through ? 'same' : 'different';
  if (step.through) verdict = step.wants.test(through) ? 'same' : 'different';
  if (verdict === 'different') {
    const facts = { ...where, step: step.step, direct, through };
    const row = reasons.find((r) => Object.entries(r).every(([key, want]) => key === 'why' || key === 'used' || want === 'any'
      || (key === 'alike' ? want(direct) === want(through) : want instanceof RegExp ? want.test(facts[key]) : [].concat(want).includes(facts[key]))));
    if (row) {
      row.used = true;
      verdict = 'reasoned';
    }
  }
  total[verdict]++;
  score('servers', where.server, verdict !== 'different');
  score('clients', where.client, verdict !== 'different');
  if (verdict !== 'different') return;
  const key = canonical([where.client, where.server, step.step, step.through ? '' : direct, through]);
  if (!differences.has(key)) differences.set(key, { ...where, step, direct, through, ways: [] });
  differences.get(key).ways.push(`${where.way} to ${where.behind}`);
}

const differences = new Map();
function tellDifferences(client, server) {
  for (const [key, d] of differences) {
    if (d.client !== client || d.server !== server) continue;
    differences.delete(key);
    let from = 0; // where they begin to differ, with a little before it
    while (!d.step.through && from < d.direct.length && d.direct[from] === d.through[from]) from++;
    from = Math.max(0, from - 60);
    report(`${client} -> ${server}: ${d.step.step} (${d.ways.join(', ')})`);
    if (!d.step.through) report(`    direct:  ${d.direct.slice(from, from + 300)}`);
    report(`    through: ${d.through.slice(from, from + 300)}`);
  }
}

async function pair(clientName, serverName) {
  const client = clients[clientName];
  const server = servers[serverName];
  const list = stepsOf(client, server);
  const direct = {};
  for (const back of server.ways) {
    if (!client.ways.includes(back)) continue;
    direct[back] = await scoped(async (t) => drive(client, { ...(await behind(t, server, back)).job, steps: directly(list) }));
    const broken = directly(list).filter((step) => !step.wants.test(direct[back].get(step.step)));
    total.broken += broken.length;
    for (const got of new Set(broken.map((step) => direct[back].get(step.step)))) {
      const which = broken.filter((step) => direct[back].get(step.step) === got).map((step) => step.step);
      report(`${clientName} -> ${serverName} directly by ${back}: ${which.join(' ')} does not work: ${got.slice(0, 300)}`);
    }
  }
  for (const back of server.ways) {
    const measure = direct[back] ?? Object.values(direct)[0];
    await scoped(async (t) => {
      const { entry } = await behind(t, server, back);
      const reach = await throughRialto(t, entry);
      // Behind HTTP one way in will do: what differs by the way in differs behind stdio too.
      for (const way of back === 'stdio' ? client.ways : [client.ways.includes('http') ? 'http' : client.ways[0]]) {
        const mine = list.filter((s) => !s.through || back === 'stdio');
        const got = await drive(client, { ...reach(way), steps: mine });
        const where = { client: clientName, server: serverName, behind: back, way, dual: Boolean(client.dual) };
        for (const step of mine) {
          judge(where, step, measure?.get(step.step) ?? '', got.get(step.step));
        }
      }
    });
  }
  tellDifferences(clientName, serverName);
}

// --- the official suite ---

const suite = path.join(npmFolder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const revisions = ['2025-11-25', '2026-07-28'];

async function passed(url, revision) {
  const { stdout } = await runCommand(node22, [suite, 'server', '--url', url.replace('127.0.0.1', 'localhost'), '--requirements', revision], { timeout: 240_000 });
  return new Set([...stdout.matchAll(/^✓ ([\w/-]+): \d+ passed, 0 failed/gm)].map((m) => m[1]));
}

const suites = {};
async function officialSuite(name) {
  const server = servers[name];
  suites[name] = {};
  if (!server.ways.includes('http')) return;
  for (const revision of revisions) {
    const of = await scoped(async (t) => passed((await behind(t, server, 'http')).job.url, revision));
    const row = { direct: of.size };
    for (const back of server.ways) {
      await scoped(async (t) => {
        const reach = await throughRialto(t, (await behind(t, server, back)).entry);
        const got = await passed(reach('http').url, revision);
        row[back] = got.size;
        const lost = [...of].filter((s) => !got.has(s));
        total.suite += lost.length;
        if (lost.length) report(`suite ${revision}, ${name} (${back}): passed directly, not through: ${lost.join(' ')}`);
      });
    }
    suites[name][revision] = row;
    report(`suite ${revision}, ${name}: direct ${row.direct}, through ${server.ways.map((b) => `${row[b]} (${b})`).join(', ')}`);
  }
}

// --- the page ---

function page() {
  const share = (s) => (s ? `${s.same}/${s.of}` : 'missing');
  const numbers = (name, revision) => {
    const row = suites[name]?.[revision];
    return row ? `${row.direct} → ${Object.keys(row).filter((k) => k !== 'direct').map((k) => `${row[k]} (${k})`).join(', ')}` : '–';
  };
  const lines = ['| server | steps alike | suite 2025-11-25: direct → through | suite 2026-07-28 |', '|---|---|---|---|',
    ...Object.entries(servers).map(([name, s]) => `| ${s.what} | ${share(scores.servers[name])} | ${numbers(name, revisions[0])} | ${numbers(name, revisions[1])} |`),
    '', '| client | ways in | steps alike |', '|---|---|---|',
    ...Object.entries(clients).map(([name, c]) => `| ${c.what} | ${c.ways.join(', ')} | ${share(scores.clients[name])} |`),
    '', 'Differences that have a reason:', '', '| step | why |', '|---|---|', ...reasons.map((r) => `| ${[].concat(r.step).join(', ')} | ${r.why} |`)];
  const where = path.join(root, 'docs/conformance.md');
  const text = fs.readFileSync(where, 'utf8');
  fs.writeFileSync(where, text.replace(/(<!-- peers: .*? -->\n)[^]*?(<!-- peers end -->)/, (all, a, b) => `${a}${lines.join('\n')}\n${b}`));
}

// --- all of it ---

const pairs = [];
for (const c of chosen(clients, options.client)) {
  for (const s of chosen(servers, options.server)) {
    if (options.client && options.server || references.clients.includes(c) || references.servers.includes(s)) pairs.push([c, s]);
  }
}
const had = (row) => install(row.needs) == null;
const work = pairs.filter(([c, s]) => had(clients[c]) && had(servers[s]))
  .map(([c, s]) => [`${c} -> ${s}`, () => pair(c, s)]);
if (options.suite) for (const s of chosen(servers, options.server)) if (had(servers[s])) work.push([`suite over ${s}`, () => officialSuite(s)]);
await Promise.all(Array.from({ length: Number(options.jobs) }, async () => {
  for (let next = work.shift(); next; next = work.shift()) {
    await next[1]().catch((e) => {
      total.broken++;
      report(`${next[0]}: ${e.stack.slice(0, 1500)}`);
    });
  }
}));
const stale = whole ? reasons.filter((r) => !r.used) : [];
for (const r of stale) report(`a reason that holds for nothing any more: ${r.step}: ${r.why}`);
if (whole) page();
const failed = total.different + total.broken + total.suite + stale.length;
report(`${total.same} steps alike, ${total.reasoned} with a reason, ${total.different} different, ${total.broken} broken without us, ${total.suite} scenarios lost, ${total.missing} peers missing`);
report(`${total.same + total.reasoned} passed, ${failed} failed`);
process.exit(failed || !total.same ? 1 : 0);
