// Instruction budgets, counted by callgrind: counts are repeatable, so a budget can be close to the measurement.
// budgets.json holds the budgets (the measured value plus a tenth, never above the ceiling). Each cost is the
// difference of two runs that differ only in the number of repetitions, so that start and end cancel out; only
// for the start itself the whole run is counted.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import {
  HttpClient, releaseBin, root, sleep, start, tempDir, until, within, writeConfig,
} from '../e2e/lib.mjs';
import { newKey, seconds, sign } from '../e2e/oauth_lib.mjs';
import { Socket, greet, page, text } from '../e2e/browser_lib.mjs';
import { Peer } from '../fixture/acp/peer.mjs';

const release = path.join(root, 'build/release');
const budgets = JSON.parse(fs.readFileSync(path.join(root, 'tests/budget/budgets.json'), 'utf8'));

function callgrind(out) {
  return ['--tool=callgrind', `--callgrind-out-file=${out}`, '--log-file=/dev/null'];
}

function instructions(out) {
  return Number(fs.readFileSync(out, 'utf8').match(/^(?:summary|totals): (\d+)/m)[1]);
}

// --- one routed call ---

// A tools/call whose whole body has 2,048 bytes.
function callBody(id) {
  const body = (text) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":`
    + `{"name":"echo__echo","arguments":{"message":"${text}"}}}`;
  return body('x'.repeat(2048 - body('').length));
}

function post(agent, client, body) {
  return new Promise((resolve, reject) => {
    const headers = { ...client.headers, 'Content-Length': body.length };
    const request = http.request(client.url, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.on('data', (d) => { text += d; });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Instructions of the daemon from start to end, while `use` makes requests. */
async function life({ locked, ...config }, use) {
  const dir = tempDir();
  const out = path.join(dir, 'callgrind.out');
  const file = writeConfig(dir, { listen: '127.0.0.1:0', ...config });
  const env = { ...process.env, XDG_STATE_HOME: dir };
  if (locked) execFileSync(releaseBin, ['lock', '-c', file], { cwd: dir, env, stdio: 'ignore' });
  const child = start('valgrind', [...callgrind(out), releaseBin, 'serve', '-c', file], {
    cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], env,
  });
  let said = '';
  child.stderr.on('data', (d) => { said += d; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  try {
    const [, origin] = await until('the listening line', () => said.match(/listening on (http:\/\/[^\s/]+)/), 30_000);
    await use(origin);
  } finally {
    child.kill('SIGTERM');
    await within(20_000, 'the end', ended);
  }
  return instructions(out);
}

const echo = { servers: { echo: { command: path.join(release, 'bench/bench_echo_server') } } };
const lifeWithCalls = (calls, more, token) => life({ ...echo, ...more }, async (origin) => {
  await sleep(1000); // polling for the tool would cost a varying number of instructions
  const client = await new HttpClient(`${origin}/mcp`, { token }).connect();
  await client.waitFor('echo__echo');
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < calls; i++) {
    const answer = await post(agent, client, callBody(1000 + i));
    if (answer.status !== 200 || answer.text.length < 2000) throw new Error(answer.text);
  }
  agent.destroy();
});

async function routedCall(more, token) {
  const few = await lifeWithCalls(100, more, token);
  const many = await lifeWithCalls(300, more, token);
  return (many - few) / 200;
}

// The tool is in mcp.lock, and one rule checks the call's only argument, the 2 KB text, and allows the call.
const trustedCall = async () => await routedCall({
  locked: true,
  rules: [{ server: 'echo', tool: 'echo', argument: '/message', matches: 'xx*', then: 'allow' }],
}) / await routedCall();

// The same call with a JWT of ordinary size, and with a token of the configuration.
async function jwtCall() {
  const key = newKey('RS256');
  const keys = path.join(tempDir(), 'keys.json');
  const issuer = 'https://idp.example.test/realms/main', audience = 'https://rialto.example.test/mcp';
  fs.writeFileSync(keys, JSON.stringify({ keys: [key.jwk] }));
  const jwt = sign(key, {
    iss: issuer, aud: audience, sub: '5f2c1c5e-6f0c-4a59-9f53-0f4ad9c1a001', exp: seconds() + 3600, iat: seconds(), jti: 'x'.repeat(36),
    scope: 'openid profile email mcp', client_id: 'agent', realm_access: { roles: ['offline_access', 'uma_authorization', 'default-roles-main'] },
    name: 'Alice Example', preferred_username: 'alice', email: 'alice@example.test',
  });
  const token = 'x'.repeat(64);
  const hash = `sha256:${createHash('sha256').update(token).digest('hex')}`;
  return await routedCall({ auth: { jwt: { issuer, audience, jwks: keys } } }, jwt)
    / await routedCall({ auth: { tokens: [{ name: 'agent', hash }] } }, token);
}

// --- one call to a page ---

const lifeWithPage = (calls) => life({}, async (origin) => {
  const t = { after: () => {} };
  const tab = (await page(t, { origin }, 'S', [greet])).answer((name, { text: given }) => text(given));
  const agent = new Socket(t, { origin }, '/mcp?session=S');
  await agent.opened;
  await agent.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } });
  agent.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  let answered;
  agent.onFrame = (m) => answered?.(m);
  for (let i = 0; i < calls; i++) {
    agent.send({ jsonrpc: '2.0', id: i, method: 'tools/call', params: { name: 'greet', arguments: { text: 'x'.repeat(64) } } });
    const { error } = await new Promise((resolve) => { answered = (m) => m.id === i && resolve(m); });
    if (error) throw new Error(JSON.stringify(error));
  }
  tab.ws.terminate();
  agent.ws.terminate();
});

async function pageCall() {
  const few = await lifeWithPage(100);
  const many = await lifeWithPage(500);
  return (many - few) / 400;
}

// --- one page among many ---

const lifeWithPages = (n) => life({}, async (origin) => {
  for (let i = 0; i < n; i += 50) {
    const names = Array.from({ length: 50 }, (_, k) => `S${i + k}`);
    const tabs = await Promise.all(names.map((name) => page({ after: () => {} }, { origin }, name, [greet])));
    for (const tab of tabs) tab.ws.terminate(); // their sessions stay
  }
});

// Each change of a session went through the views of all sessions: a page among 600 cost three times as much as one among 150.
async function manyPages() {
  const [few, more, half, many] = [await lifeWithPages(100), await lifeWithPages(200), await lifeWithPages(400), await lifeWithPages(800)];
  return ((many - half) / 400) / ((more - few) / 100);
}

// --- one relayed message ---

/** Instructions of a conductor from start to end, with that many requests through one proxy. */
async function lifeWithRelays(requests) {
  const dir = tempDir();
  const out = path.join(dir, 'callgrind.out');
  const component = (name) => `'${process.execPath}' '${path.join(root, 'tests/fixture/acp', name)}'`;
  const child = spawn('valgrind', [...callgrind(out), releaseBin, 'conductor', '-q', 'agent',
    `p3:${component('proxy.mjs')}`, component('agent.mjs')], { cwd: dir, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const peer = new Peer(child.stdout, child.stdin, () => {});
  await within(30_000, 'initialize', peer.request('initialize', { protocolVersion: 1, clientCapabilities: {} }));
  const params = { text: 'x'.repeat(2048) };
  for (let i = 0; i < requests; i++) await peer.request('_test/echo', params);
  child.stdin.end();
  await within(20_000, 'the end', ended);
  return instructions(out);
}

// A request and its answer are relayed twice each: client to proxy, proxy to agent, and back.
async function relayedHop() {
  const few = await lifeWithRelays(100);
  const many = await lifeWithRelays(500);
  return (many - few) / 400 / 4;
}

// --- one start ---

const conductorStart = () => lifeWithRelays(0);

// --- one skim ---

async function skimList() {
  const out = path.join(tempDir(), 'callgrind.out');
  const program = path.join(release, 'tests/budget/budget_skim');
  let length;
  const run = (times) => {
    length = Number(execFileSync('valgrind', [...callgrind(out), program, String(times)]));
    return instructions(out);
  };
  const once = run(1);
  return (run(11) - once) / 10 / length;
}

// --- one search ---

async function searchTools() {
  const out = path.join(tempDir(), 'callgrind.out');
  const program = path.join(release, 'tests/budget/budget_search');
  const run = (times) => {
    execFileSync('valgrind', [...callgrind(out), program, String(times)]);
    return instructions(out);
  };
  const once = run(1); // the hash order of words, and so the sorting, differs a little each time
  return (run(501) - once) / 500;
}

// --- one call over the bus ---

async function busInvoke() {
  const out = path.join(tempDir(), 'callgrind.out');
  const program = path.join(release, 'tests/budget/budget_invoke');
  const run = (times) => {
    execFileSync('valgrind', [...callgrind(out), program, String(times)], { stdio: 'ignore' });
    return instructions(out);
  };
  const few = run(100);
  return (run(600) - few) / 500;
}

// --- one line of the audit trail ---

async function auditLine() {
  const dir = tempDir();
  const out = path.join(dir, 'callgrind.out');
  const program = path.join(release, 'tests/budget/budget_audit');
  const run = (times) => {
    execFileSync('valgrind', [...callgrind(out), program, String(times), path.join(dir, `${times}.jsonl`)], { stdio: 'ignore' });
    return instructions(out);
  };
  const few = run(100);
  return (run(600) - few) / 500;
}

// --- the budgets ---

execFileSync('ninja', ['-C', release, 'bench/bench_echo_server', 'tests/budget/budget_skim',
  'tests/budget/budget_search', 'tests/budget/budget_invoke', 'tests/budget/budget_audit'],
  { stdio: ['ignore', 'ignore', 'inherit'] });
let passed = 0;
let failed = 0;
for (const [name, measure] of Object.entries({
  skim_list: skimList, search_tools: searchTools, relayed_hop: relayedHop, routed_call: () => routedCall(),
  trusted_call: trustedCall, jwt_call: jwtCall, page_call: pageCall, many_pages: manyPages, bus_invoke: busInvoke, conductor_start: conductorStart,
  audit_line: auditLine,
})) {
  const { what, budget, ceiling } = budgets[name];
  let line;
  try {
    const cost = await measure();
    const good = cost > 0 && cost <= budget && budget <= ceiling;
    line = `${good ? 'ok' : 'OVER BUDGET'}: ${what}: ${cost.toFixed(cost < 100 ? 2 : 0)} (budget ${budget})`;
    if (good) passed++; else failed++;
  } catch (e) {
    line = `FAILED: ${what}: ${e.stack}`;
    failed++;
  }
  console.log(line);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
