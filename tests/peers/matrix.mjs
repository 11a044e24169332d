// The matrix of `make test-peers`: the same steps by every client on every server, directly and through
// Rialto, and where the two differ; the official suite on every server, directly and through Rialto.
//   matrix.mjs [--client A,B] [--server A,B] [--no-suite]    a part of it; only a whole run writes docs/conformance.md
//   matrix.mjs --resume    a whole run without what was done already with the same build of Rialto
//
// A client is a program that is given one JSON: {way, url | command, steps}; it connects, does the steps in
// order and prints a line for each, {step, got} or {step, error}. Its direct output is compared with its own output
// through Rialto.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { HttpClient, npmFolder, rialtoBin, root, runCommand, serve, start, tempDir, until, writeConfig } from '../e2e/lib.mjs';
import { node22 } from '../e2e/peers.mjs';
import { clients, installs, reasons, references, servers, steps } from './table.mjs';

const { values: options } = parseArgs({ options: {
  client: { type: 'string' }, server: { type: 'string' }, suite: { type: 'boolean', default: true }, jobs: { type: 'string', default: '2' }, resume: { type: 'boolean' },
}, allowNegative: true });
const whole = !options.client && !options.server && options.suite;
const chosen = (rows, names) => Object.keys(rows).filter((name) => !names || names.split(',').includes(name));

/** The outcome of a pair or a suite; outcomes are added up, and kept so that a run can be resumed. */
const outcome = () => ({ lines: [], same: 0, different: 0, reasoned: 0, broken: 0, lost: 0, reasons: [], scores: [], suites: {} });
let gone = 0; // peers that could not be installed

// --- installed or missing ---

const missing = new Map();
function install(needs) {
  if (!needs || missing.has(needs)) return missing.get(needs);
  const [command, args] = installs[needs];
  let why = null;
  try {
    execFileSync(command, args, { cwd: root, encoding: 'utf8', timeout: 15 * 60_000, stdio: 'pipe' });
  } catch (e) {
    why = `${e.stderr || e.message}`.trim().split('\n').at(-1);
    console.log(`missing: ${needs}: ${why}`);
    gone++;
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
  const kill = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* all its processes have ended */ } };
  const timer = setTimeout(kill, 150_000);
  process.on('exit', kill);
  await new Promise((resolve) => { child.on('close', resolve); child.on('error', (e) => { err += e.message; resolve(); }); });
  clearTimeout(timer);
  kill(); // processes that it started and did not end
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

/** Plays the context of a test: `after` functions run at the end, in reverse order. */
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

/** Starts a server on one transport: an entry for Rialto, and what a client needs to reach it directly. */
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
    stdio: { way, command: [rialtoBin, 'stdio', '--alone', '-q', '-c', file, '-s', 'peer', '-w', '30s'] },
    http: { way, url: `${hub.origin}/mcp/peer` }, sse: { way, url: `${hub.origin}/mcp/peer/sse` },
    ws: { way, url: `${hub.origin.replace('http', 'ws')}/mcp/peer` },
  })[way];
}

/** The index of the row that says why these may differ, -1 when there is none. */
const reasonFor = (facts) => reasons.findIndex((row) => Object.entries(row).every(([key, want]) => {
  if (key === 'why' || want === 'any') return true;
  if (key === 'alike') return want(facts.direct) === want(facts.through);
  return want instanceof RegExp ? want.test(facts[key]) : [].concat(want).includes(facts[key]);
}));

function judge(out, differences, where, step, direct, through) {
  const same = step.through ? step.wants.test(through) : direct === through;
  const reason = same ? -1 : reasonFor({ ...where, step: step.step, direct, through });
  const verdict = same ? 'same' : reason >= 0 ? 'reasoned' : 'different';
  out[verdict]++;
  if (reason >= 0) out.reasons.push(reason);
  out.scores.push([where.client, where.server, verdict !== 'different']);
  if (verdict !== 'different') return;
  const key = canonical([step.step, step.through ? '' : direct, through]);
  if (!differences.has(key)) differences.set(key, { step, direct, through, ways: [] });
  differences.get(key).ways.push(`${where.way} to ${where.behind}`);
}

function tell(out, what, { step, direct, through, ways }) {
  let from = 0; // where they begin to differ, with a little before it
  while (!step.through && from < direct.length && direct[from] === through[from]) from++;
  from = Math.max(0, from - 60);
  out.lines.push(`${what}: ${step.step} (${ways.join(', ')})`);
  if (!step.through) out.lines.push(`    direct:  ${direct.slice(from, from + 300)}`);
  out.lines.push(`    through: ${through.slice(from, from + 300)}`);
}

async function pair(out, clientName, serverName) {
  const client = clients[clientName];
  const server = servers[serverName];
  const list = stepsOf(client, server);
  const direct = {};
  const differences = new Map();
  for (const back of server.ways) {
    if (!client.ways.includes(back)) continue;
    direct[back] = await scoped(async (t) => drive(client, { ...(await behind(t, server, back)).job, steps: directly(list) }));
    const broken = directly(list).filter((step) => !step.wants.test(direct[back].get(step.step)));
    out.broken += broken.length;
    for (const got of new Set(broken.map((step) => direct[back].get(step.step)))) {
      const which = broken.filter((step) => direct[back].get(step.step) === got).map((step) => step.step);
      out.lines.push(`${clientName} -> ${serverName} directly by ${back}: ${which.join(' ')} does not work: ${got.slice(0, 300)}`);
    }
  }
  for (const back of server.ways) {
    const measure = direct[back] ?? Object.values(direct)[0];
    await scoped(async (t) => {
      const { entry } = await behind(t, server, back);
      const reach = await throughRialto(t, entry);
      // Reference servers on stdio are reached by every way in, the others by one.
      const every = back === 'stdio' && references.servers.includes(serverName);
      for (const way of every ? client.ways : [client.ways.includes('http') ? 'http' : client.ways[0]]) {
        const mine = list.filter((s) => !s.through || back === 'stdio');
        const got = await drive(client, { ...reach(way), steps: mine });
        const where = { client: clientName, server: serverName, behind: back, way, dual: Boolean(client.dual) };
        for (const step of mine) {
          judge(out, differences, where, step, measure?.get(step.step) ?? '', got.get(step.step));
        }
      }
    });
  }
  for (const d of differences.values()) tell(out, `${clientName} -> ${serverName}`, d);
}

// --- the official suite ---

const suite = path.join(npmFolder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const revisions = ['2025-11-25', '2026-07-28'];

/** The scenarios that count, from the suite's own list. */
function required(revision) {
  const text = fs.readFileSync(path.join(path.dirname(suite), `../requirements/${revision}.yaml`), 'utf8');
  return text.split(/^server:$/m)[1].split(/^\w/m)[0].match(/(?<=^ {2}- )\S+$/gm);
}

async function passed(url, revision) {
  const { stdout } = await runCommand(node22, [suite, 'server', '--url', url.replace('127.0.0.1', 'localhost'), '--requirements', revision], { timeout: 240_000 });
  const good = new Set([...stdout.matchAll(/^✓ ([\w/-]+): \d+ passed, 0 failed/gm)].map((m) => m[1]));
  return new Set(required(revision).filter((name) => good.has(name)));
}

async function officialSuite(out, name) {
  const server = servers[name];
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
        out.lost += lost.length;
        if (lost.length) out.lines.push(`suite ${revision}, ${name} (${back}): passed directly, not through: ${lost.join(' ')}`);
      });
    }
    out.suites[`${name} ${revision}`] = row;
    out.lines.push(`suite ${revision}, ${name}: direct ${row.direct}, through ${server.ways.map((b) => `${row[b]} (${b})`).join(', ')}`);
  }
}

// --- the page ---

function page(all) {
  const share = (side, name) => {
    const mine = all.scores.filter((s) => s[side] === name);
    return mine.length ? `${mine.filter((s) => s[2]).length}/${mine.length}` : 'missing';
  };
  const numbers = (name, revision) => {
    const row = all.suites[`${name} ${revision}`];
    return row ? `${row.direct} → ${Object.keys(row).filter((k) => k !== 'direct').map((k) => `${row[k]} (${k})`).join(', ')}` : '–';
  };
  const lines = ['| server | steps alike | suite 2025-11-25: direct → through | suite 2026-07-28 |', '|---|---|---|---|',
    ...Object.entries(servers).map(([name, s]) => `| ${s.what} | ${share(1, name)} | ${numbers(name, revisions[0])} | ${numbers(name, revisions[1])} |`),
    '', '| client | ways in | steps alike |', '|---|---|---|',
    ...Object.entries(clients).map(([name, c]) => `| ${c.what} | ${c.ways.join(', ')} | ${share(0, name)} |`),
    '', 'Differences that have a reason:', '', '| step | why |', '|---|---|', ...reasons.map((r) => `| ${[].concat(r.step).join(', ')} | ${r.why} |`)];
  const where = path.join(root, 'docs/conformance.md');
  const text = fs.readFileSync(where, 'utf8');
  fs.writeFileSync(where, text.replace(/(<!-- peers: .*? -->\n)[^]*?(<!-- peers end -->)/, (all, a, b) => `${a}${lines.join('\n')}\n${b}`));
}

// --- all of it ---

const pairs = [];
for (const c of chosen(clients, options.client)) {
  for (const s of chosen(servers, options.server)) {
    if (clients[c].shuns?.includes(s)) continue;
    if (options.client && options.server || references.clients.includes(c) || references.servers.includes(s)) pairs.push([c, s]);
  }
}
const had = (row) => install(row.needs) == null;
const work = pairs.filter(([c, s]) => had(clients[c]) && had(servers[s]))
  .map(([c, s]) => [`${c} -> ${s}`, (out) => pair(out, c, s)]);
if (options.suite) for (const s of chosen(servers, options.server)) if (had(servers[s])) work.push([`suite over ${s}`, (out) => officialSuite(out, s)]);

const kept = path.join(root, 'build/peers/results.jsonl');
const { mtimeMs, size } = fs.statSync(rialtoBin);
const program = `${mtimeMs} ${size}`;
const done = new Map();
if (options.resume && fs.existsSync(kept)) {
  for (const line of fs.readFileSync(kept, 'utf8').split('\n').filter(Boolean)) {
    const one = JSON.parse(line);
    if (one.program === program && !one.out.broken) done.set(one.what, one.out);
  }
} else if (whole) fs.rmSync(kept, { force: true });

const queue = work.filter(([what]) => !done.has(what));
await Promise.all(Array.from({ length: Number(options.jobs) }, async () => {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const [what, run] = next;
    const out = outcome();
    await run(out).catch((e) => {
      out.broken++;
      out.lines.push(`${what}: ${e.stack.slice(0, 1500)}`);
    });
    for (const line of out.lines) console.log(line);
    done.set(what, out);
    fs.appendFileSync(kept, `${JSON.stringify({ program, what, out })}\n`);
  }
}));

const all = outcome();
for (const [what] of work) {
  const out = done.get(what);
  for (const key of ['same', 'different', 'reasoned', 'broken', 'lost']) all[key] += out[key];
  for (const key of ['reasons', 'scores']) all[key].push(...out[key]);
  Object.assign(all.suites, out.suites);
}
const stale = whole && !gone ? reasons.filter((_, i) => !all.reasons.includes(i)) : [];
for (const r of stale) console.log(`a reason that holds for nothing any more: ${r.step}: ${r.why}`);
if (whole) page(all);
const failed = all.different + all.broken + all.lost + stale.length;
console.log(`${all.same} steps alike, ${all.reasoned} with a reason, ${all.different} different, ${all.broken} broken without us, ${all.lost} scenarios lost, ${gone} peers missing`);
console.log(`${all.same + all.reasoned} passed, ${failed} failed`);
process.exit(failed || !all.same ? 1 : 0);
