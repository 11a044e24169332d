// The audit trail: who called what, in lines that cannot be changed unnoticed; with kills, a full disk and rotation.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { exchange, fake, HttpClient, releaseBin, rialto, rialtoBin, root, runCommand, serve, start, StdioClient, tempDir, until, within, writeConfig } from './lib.mjs';
import { ModernClient } from './peers.mjs';

const hash = (text) => createHash('blake2b512').update(text).digest('hex').slice(0, 64);
const sha = (text) => createHash('sha256').update(text).digest('hex');
const TOKEN = 'the-token-of-ann';
const auth = { tokens: [{ name: 'ann', hash: `sha256:${sha(TOKEN)}` }] };
const servers = { f: { ...fake(), approve: ['add'], approve_by: 'operator' } };
const MEMBERS = ['seq', 'time', 'token', 'client', 'session', 'endpoint', 'server', 'tool', 'arguments', 'outcome', 'rule', 'approved_by', 'before'];

async function begin(t, audit = {}, more = {}) {
  const dir = tempDir();
  const file = path.join(dir, 'audit.jsonl');
  const config = { servers, auth, audit: { file, ...audit }, ...more };
  const server = await serve(t, config, { env: { XDG_STATE_HOME: dir } });
  const client = await new HttpClient(server.url, { token: TOKEN }).connect();
  await client.waitFor('f__echo');
  const lines = (name = file) => fs.readFileSync(name, 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l));
  const command = (...args) => rialto(['audit', ...args, '-c', server.config], { env: { XDG_STATE_HOME: dir } });
  const call = (name, args) => client.request('tools/call', { name: `f__${name}`, arguments: args });
  return { dir, file, config, server, client, lines, command, call };
}

async function verified(run, code = 0) {
  const done = await run.command('verify');
  assert.equal(done.code, code, done.stdout + done.stderr);
  return done.stdout;
}

test('a line for each call and each decision, with who, what and how it ended, and no secret', async (t) => {
  const run = await begin(t);
  await run.call('echo', { message: 'x' });
  await run.call('fail', {});
  await run.call('nothing', {});
  const modern = new ModernClient(`${run.server.url}/f`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  await modern.send('tools/call', { name: 'echo', arguments: { message: 'y' } });
  const held = run.call('add', { a: 1, b: 2 });
  const [waiting] = await until('the held call', async () => {
    const list = JSON.parse((await exchange(`${run.server.origin}/api/approvals`, { method: 'GET', headers: { Authorization: `Bearer ${TOKEN}` } })).text);
    return list.length && list;
  });
  await exchange(`${run.server.origin}/api/approvals/${waiting.id}`, { headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${TOKEN}` }, body: '{"approved":true}' });
  assert.equal((await held).result.content[0].text, '3');
  const lines = run.lines();
  assert.equal(lines.length, 6);
  for (const [i, line] of lines.entries()) {
    assert.deepEqual(Object.keys(line), MEMBERS);
    assert.equal(line.seq, i + 1);
    assert.equal(line.token, 'ann');
    assert.deepEqual(line.client, { name: 'raw', version: '1' });
    assert.equal(line.rule, null);
  }
  assert.deepEqual(lines.map((l) => [l.server, l.tool, l.outcome]), [['f', 'echo', 'ok'], ['f', 'fail', 'error'], [null, 'f__nothing', 'unknown'],
    ['f', 'echo', 'ok'], ['f', 'add', 'approved'], ['f', 'add', 'ok']]);
  assert.equal(lines[0].arguments, `blake2b:${hash('{"message":"x"}')}`);
  assert.deepEqual(lines.map((l) => l.endpoint), ['/mcp', '/mcp', '/mcp', '/mcp/f', '/mcp', '/mcp']);
  assert.match(lines[0].session, /^[0-9a-f]{8}$/);
  assert.equal(lines[3].session, null);
  assert.deepEqual(lines.map((l) => l.approved_by), [null, null, null, null, 'the operator (token ann)', 'the operator (token ann)']);
  const raw = fs.readFileSync(run.file, 'utf8').split('\n');
  for (let i = 1; i < 6; i++) assert.equal(lines[i].before, hash(raw[i - 1]));
  assert.equal(fs.statSync(run.file).mode & 0o777, 0o600);
  assert.match(await verified(run), /^6 lines in 1 files/);
  // The same with filters, and in the recorder.
  const shown = async (...args) => (await run.command('--json', ...args)).stdout.split('\n').slice(0, -1).map((l) => JSON.parse(l).seq);
  assert.deepEqual(await shown('--tool', 'echo'), [1, 4]);
  assert.deepEqual(await shown('--token', 'nobody'), []);
  assert.deepEqual(await shown('--server', 'f', '--since', '1h'), [1, 2, 4, 5, 6]);
  assert.deepEqual(await shown('--until', lines[0].time), []);
  assert.match((await run.command()).stdout, /ann \(raw 1\) {2}f add {2}ok {2}by the operator/);
  const calls = JSON.parse((await exchange(`${run.server.origin}/api/calls`, { method: 'GET', headers: { Authorization: `Bearer ${TOKEN}` } })).text);
  for (const call of calls) {
    assert.equal(call.token, 'ann');
    assert.deepEqual(call.client, { name: 'raw', version: '1' });
  }
});

test('arguments as text have no secrets, and a call on standard input is in the trail', async (t) => {
  const dir = tempDir();
  const file = path.join(dir, 'trail.log');
  const config = writeConfig(dir, { servers: { f: fake() }, audit: { file, arguments: 'redacted' } });
  const client = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', config], { env: { XDG_STATE_HOME: dir } });
  await client.connect();
  await client.waitFor('f__echo');
  await client.request('tools/call', { name: 'f__echo', arguments: { message: 'Authorization: Bearer sk-abcdefghijklmnopqrstuvwxyz0123456789' } });
  const [line] = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l));
  assert.equal(line.endpoint, 'stdio');
  assert.equal(line.token, null);
  assert.match(line.arguments, /message/);
  assert.doesNotMatch(line.arguments, /abcdefghijklmnop/);
  assert.ok(fs.existsSync(path.join(dir, 'trail.head')));
});

test('whatever is changed, taken out, put in or cut off is named by file and line', async (t) => {
  const run = await begin(t);
  for (let i = 0; i < 8; i++) await run.call('echo', { message: `${i}` });
  await run.server.stop();
  const whole = fs.readFileSync(run.file, 'utf8'), head = fs.readFileSync(path.join(run.dir, 'audit.head'));
  const lines = whole.split('\n').slice(0, -1);
  const broken = async (text, line, reason) => {
    fs.writeFileSync(run.file, text);
    const out = await verified(run, 1);
    assert.ok(out.startsWith(`${run.file}:${line}: `), out);
    assert.match(out, reason);
  };
  const text = (list) => `${list.join('\n')}\n`;
  await verified(run);
  await broken(text(lines.with(2, lines[2].replace('"ann"', '"bob"'))), 4, /line before/);
  await broken(text(lines.toSpliced(3, 1)), 4, /line before/);
  await broken(text(lines.toSpliced(3, 0, lines[3])), 5, /line before/);
  await broken(text(lines.slice(0, 7)), 8, /was cut/);
  await broken(text(lines.with(7, lines[7].replace('"ok"', '"no"'))), 8, /head/);
  await broken(`${text(lines)}{"seq":9,"time":"2026`, 9, /not written whole/);
  await broken('', 1, /was cut/);
  await broken(text(lines.with(4, 'nonsense')), 5, /not a line/);
  fs.writeFileSync(run.file, whole);
  fs.rmSync(path.join(run.dir, 'audit.head'));
  assert.match(await verified(run, 1), /audit\.head:1: the head of the trail is missing/);
  fs.writeFileSync(path.join(run.dir, 'audit.head'), head);
  await verified(run);
  // A trail that was cut continues from its head, so that the cut can still be detected.
  fs.writeFileSync(run.file, text(lines.slice(0, 6)));
  const again = await serve(t, run.config, { env: { XDG_STATE_HOME: run.dir } });
  const client = await new HttpClient(again.url, { token: TOKEN }).connect();
  await client.waitFor('f__echo');
  await client.request('tools/call', { name: 'f__echo', arguments: {} });
  await again.stop();
  assert.match(await verified(run, 1), /audit\.jsonl:7: /);
});

test('killed again and again under load, over rotations, it verifies', { timeout: 240_000 }, async (t) => {
  const dir = tempDir();
  const file = path.join(dir, 'audit.jsonl');
  const config = writeConfig(dir, { listen: '127.0.0.1:0', servers: { f: fake() }, audit: { file, size: '64KiB', keep: 50 } });
  const env = { ...process.env, XDG_STATE_HOME: dir, XDG_RUNTIME_DIR: dir, XDG_CACHE_HOME: dir };
  let answered = 0;
  for (let round = 0; round < 4; round++) {
    const child = start(rialtoBin, ['serve', '-c', config], { stdio: ['ignore', 'ignore', 'pipe'], env });
    let text = '';
    child.stderr.on('data', (d) => { text += d; });
    const ended = new Promise((resolve) => { child.on('close', resolve); });
    const [, origin] = await until('the listening line', () => text.match(/listening on (http:\/\/[^\s/]+)/), 30_000);
    const client = await new HttpClient(`${origin}/mcp`).connect();
    await client.waitFor('f__echo');
    let going = true;
    const many = Array.from({ length: 8 }, async () => {
      while (going) {
        const answer = await client.request('tools/call', { name: 'f__echo', arguments: { message: 'x' } }).catch(() => null);
        if (answer) answered++;
        else break;
      }
    });
    const wanted = answered + 150 + 37 * round;
    await until('enough calls', () => answered >= wanted, 60_000);
    child.kill('SIGKILL');
    going = false;
    await within(20_000, 'the end', ended);
    await Promise.all(many);
    const done = await rialto(['audit', 'verify', '-c', config], { env: { XDG_STATE_HOME: dir } });
    assert.ok(done.code === 0 || /not written whole/.test(done.stdout), done.stdout);
  }
  assert.ok(fs.existsSync(`${file}.2`), 'it was rotated');
  // Every call whose answer came is in the trail.
  const all = (await rialto(['audit', '--json', '-c', config], { env: { XDG_STATE_HOME: dir } })).stdout.split('\n').length - 1;
  assert.ok(all >= answered, `${all} lines for ${answered} answers`);
});

// As many lines as in a busy month, in seven files, written by the benchmark of the trail (tests/budget).
test('a million lines verify, and the one that was changed is named', { timeout: 240_000 }, async () => {
  const dir = tempDir();
  const file = path.join(dir, 'audit.jsonl');
  const config = writeConfig(dir, { audit: { file } });
  const verify = () => runCommand(releaseBin, ['audit', 'verify', '-c', config], { timeout: 120_000 });
  execFileSync('ninja', ['-C', path.join(root, 'build/release'), 'tests/budget/budget_audit']);
  execFileSync(path.join(root, 'build/release/tests/budget/budget_audit'), ['1000000', file]);
  const fine = await verify();
  assert.match(fine.stdout, /^1000000 lines in \d+ files, all as they were written$/m, fine.stdout + fine.stderr);
  // One letter in the middle of an older file.
  const older = fs.openSync(`${file}.3`, 'r+');
  const text = Buffer.alloc(4096);
  fs.readSync(older, text, 0, text.length, 30_000_000);
  const at = 30_000_000 + text.indexOf('"laptop"') + 1;
  fs.writeSync(older, 'L', at);
  fs.closeSync(older);
  const line = fs.readFileSync(`${file}.3`).subarray(0, at).toString().split('\n').length;
  const changed = await verify();
  assert.equal(changed.code, 1);
  assert.ok(changed.stdout.startsWith(`${file}.3:${line + 1}: the line before is not the one that was written`), changed.stdout);
});

// A limit on the size of files simulates a full disk: write() fails, after a part or at once.
function limit(pid, bytes) {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

test('on a full disk calls are refused, and made again when there is room; no half line stays', async (t) => {
  const run = await begin(t);
  assert.ok((await run.call('echo', { message: 'x' })).result);
  const size = fs.statSync(run.file).size;
  limit(run.server.pid, size + 50);
  const lost = await run.call('echo', { message: 'x' });
  assert.match(lost.error.message, /audit trail cannot be written/);
  assert.equal(fs.statSync(run.file).size, size);
  const before = JSON.parse((await exchange(`${run.server.origin}/api/calls`, { method: 'GET', headers: { Authorization: `Bearer ${TOKEN}` } })).text);
  assert.equal(before[0].state, 'failed');
  const refused = await run.call('sleep', { ms: 60_000 }); // refused before it is sent to its server
  assert.match(refused.error.message, /no call goes unrecorded/);
  assert.equal(fs.statSync(run.file).size, size);
  limit(run.server.pid, 'unlimited');
  assert.ok((await run.call('echo', { message: 'x' })).result);
  const lines = run.lines();
  assert.deepEqual(lines.map((l) => [l.seq, l.missing]), [[1, undefined], [4, 2]]);
  assert.match(await verified(run), /^2 lines/);
});

// logrotate, or a person, moved the file away: at the next rotation there was nothing to move, and from then on every
// call was executed and its result withheld, until the daemon was started again.
test('a trail whose file was moved away goes on in a new one', async (t) => {
  const run = await begin(t, { size: '64KiB' });
  await run.call('echo', {});
  fs.renameSync(run.file, `${run.file}.elsewhere`);
  for (let i = 0; !fs.existsSync(run.file); i++) {
    assert.ok((await run.call('echo', {})).result, `call ${i}`);
    assert.ok(i < 500, 'a new file is begun');
  }
  const last = JSON.parse(fs.readFileSync(`${run.file}.elsewhere`, 'utf8').split('\n').at(-2));
  assert.equal(run.lines()[0].seq, last.seq + 1);
  assert.ok(!fs.existsSync(`${run.file}.1`));
});

// Whether there is room was tried on the full file alone: a call whose line needs the next one was executed, each time.
test('when the next file cannot be begun calls are refused before their servers hear of them', async (t) => {
  const run = await begin(t, { size: '64KiB', keep: 1 });
  fs.mkdirSync(`${run.file}.1`);
  let answer;
  for (let i = 0; (answer = await run.call('echo', {})).result; i++) assert.ok(i < 500, 'the file is full');
  assert.match(answer.error.message, /audit trail cannot be written/);
  const refused = await run.call('sleep', { ms: 60_000 });
  assert.match(refused.error.message, /no call goes unrecorded/);
  fs.rmdirSync(`${run.file}.1`);
  assert.ok((await run.call('echo', {})).result);
  assert.equal(run.lines()[0].missing, 2);
  assert.equal((await run.command('verify')).code, 0);
});

test('with on_failure: warn calls go on, and the next line says how many are missing, also after a kill', async (t) => {
  const run = await begin(t, { on_failure: 'warn' });
  await run.call('echo', { message: 'x' });
  limit(run.server.pid, fs.statSync(run.file).size + 50);
  for (let i = 0; i < 3; i++) assert.ok((await run.call('echo', { message: 'x' })).result);
  assert.equal(run.lines().length, 1);
  assert.match(await verified(run), /3 after them could not be written/);
  assert.match(run.server.stderr(), /audit trail cannot be written/);
  limit(run.server.pid, 'unlimited');
  await run.call('echo', { message: 'x' });
  assert.deepEqual(run.lines().map((l) => [l.seq, l.missing]), [[1, undefined], [5, 3]]);
  limit(run.server.pid, fs.statSync(run.file).size + 50);
  await run.call('echo', { message: 'x' });
  await run.server.stop();
  const again = await serve(t, run.config, { env: { XDG_STATE_HOME: run.dir } });
  const client = await new HttpClient(again.url, { token: TOKEN }).connect();
  await client.waitFor('f__echo');
  await client.request('tools/call', { name: 'f__echo', arguments: {} });
  assert.deepEqual(run.lines().at(-1).missing, 1);
  assert.equal((await run.command('verify')).code, 0);
});

test('two daemons do not write to one trail, and without the section there is none', async (t) => {
  const run = await begin(t);
  const dir = tempDir();
  const other = writeConfig(dir, { listen: '127.0.0.1:0', servers: {}, audit: { file: run.file } });
  const done = await rialto(['serve', '-c', other], { env: { XDG_RUNTIME_DIR: dir, XDG_STATE_HOME: dir } });
  assert.equal(done.code, 1);
  assert.match(done.stderr, /another Rialto writes/);
  const none = writeConfig(dir, { servers: {} }, 'none.json');
  assert.equal((await rialto(['audit', '-c', none], { env: { XDG_STATE_HOME: dir } })).code, 1);
});
