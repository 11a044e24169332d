// Watching a running daemon: its log (/api/logs, `rialto logs`) and its servers (`rialto top`).
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import {
  exchange, expectClean, fake, fakeBin, logged, rialto, rialtoBin, sanitizerEnv, serve,
  serveAndConnect, sleep, start, tempDir, until, within, writeConfig,
} from './lib.mjs';

const get = async (server, where, options = { method: 'GET' }) => {
  const answer = await exchange(`${server.origin}${where}`, options);
  return { status: answer.status, json: JSON.parse(answer.text) };
};
const logs = async (server, query = '') => (await get(server, `/api/logs?${query}`)).json;
const texts = (answer) => answer.lines.map((l) => `${l.level} ${l.who}: ${l.text}`);
const envOf = (server) => ({ XDG_RUNTIME_DIR: server.dir });
const command = (server, ...args) => rialto(args, { env: envOf(server), cwd: server.dir });

const two = { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } };
const bothUp = ['alpha__echo', 'beta__echo'];
// A server that prints what the script prints, and then works as usual.
const loud = (script) => ({ command: '/bin/sh', args: ['-c', `${script}; exec '${fakeBin}'`] });

/** A command that runs until it is stopped: {child, stdout(), stderr(), end(signal)}. */
function goOn(t, server, args, program = [rialtoBin], env = {}) {
  const child = start(program[0], [...program.slice(1), ...args], {
    cwd: server.dir, stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...sanitizerEnv, ...envOf(server), ...env },
  });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (d) => { said[name] += d; });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  t.after(() => child.kill('SIGKILL'));
  const over = async () => {
    const end = await within(20_000, 'the end', ended);
    expectClean(said.stderr + said.stdout);
    return end;
  };
  return {
    child, over, stdout: () => said.stdout, stderr: () => said.stderr,
    end(signal) {
      child.kill(signal);
      return over();
    },
  };
}

// --- the log ---

test('lines of the daemon and of its servers, by whom and how bad, and from where on', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { ...two.servers, mute: { command: '/bin/false' } },
  }, bothUp);
  await logged(server, /warn  mute: /);
  await client.call('alpha__fail');
  await logged(server, /alpha: call \d+ of fail failed/);
  const all = await logs(server);
  for (const line of ['info rialto: listening on ', 'info alpha: fake server alpha is up', 'warn mute: could not be started']) {
    assert.ok(texts(all).some((l) => l.startsWith(line)), `${line} in ${texts(all).join('\n')}`);
  }
  const first = all.lines[0];
  assert.equal(first.seq, 1);
  assert.match(first.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(Math.abs(new Date(first.at) - Date.now()) < 60_000);
  assert.deepEqual(all.lines.map((l) => l.seq), all.lines.map((_, i) => i + 1));
  assert.equal(all.lost, 0);

  const alpha = await logs(server, 'server=alpha');
  assert.ok(alpha.lines.length >= 2 && alpha.lines.every((l) => l.who === 'alpha'));
  assert.match(alpha.lines.at(-1).text, /^call \d+ of fail failed/);
  const bad = await logs(server, 'level=warn');
  assert.ok(bad.lines.length >= 1 && bad.lines.every((l) => ['warn', 'error'].includes(l.level)));
  assert.deepEqual(texts(await logs(server, 'server=alpha&limit=1')), texts(alpha).slice(-1));
  assert.deepEqual(texts(await logs(server, 'server=alpha&after=0&limit=1')), texts(alpha).slice(0, 1));

  // A reader that comes back gets what is new, once.
  let { next } = await logs(server);
  await client.call('beta__fail');
  const news = await until('the new line', async () => {
    const answer = await logs(server, `server=beta&after=${next}`);
    next = answer.next;
    return answer.lines.length && answer;
  });
  assert.match(texts(news).join('|'), /^info beta: call \d+ of fail failed[^|]*$/);
  assert.deepEqual((await logs(server, `server=beta&after=${next}`)).lines, []);

  for (const query of ['limit=x', 'limit=10001', 'after=-1', 'level=loud']) {
    assert.equal((await get(server, `/api/logs?${query}`)).status, 400, query);
  }
  assert.equal((await get(server, '/api/logs/1')).status, 404);
  assert.equal((await get(server, '/api/logs', { method: 'POST' })).status, 405);
});

test('secrets are not in the lines that are kept', async (t) => {
  const { server } = await serveAndConnect(t, {
    servers: { a: { ...loud('echo "my key is $KEY" >&2'), env: { KEY: '${RIALTO_TEST_KEY}' } } },
  }, ['a__echo'], { env: { RIALTO_TEST_KEY: 'hunter2hunter2' } });
  await logged(server, /my key is \*\*\*/);
  const answer = await logs(server);
  assert.ok(texts(answer).includes('info a: my key is ***'));
  assert.doesNotMatch(JSON.stringify(answer), /hunter2/);
});

test('no more is kept than log.keep says, and readers hear what they missed', async (t) => {
  const { server } = await serveAndConnect(t, {
    log: { keep: '16KiB' },
    servers: { a: loud('i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo "line $i of a flood" >&2; done') },
  }, ['a__echo']);
  await logged(server, /line 600 of a flood/);
  const answer = await logs(server, 'after=1&limit=10000&server=a');
  assert.ok(answer.lost > 0);
  assert.ok(answer.lines.length > 20 && answer.lines.length < 300, `${answer.lines.length}`);
  assert.ok(texts(answer).includes('info a: line 600 of a flood'));
  assert.ok(!texts(answer).includes('info a: line 1 of a flood'));
});

test('rialto logs: the last lines, by name and level, as text and JSON', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { ...two.servers, odd: loud(String.raw`printf 'red \033[31m\n' >&2`) },
  }, [...bothUp, 'odd__echo']);
  await client.call('alpha__crash');
  await logged(server, /alpha: is back/);

  const all = await command(server, 'logs');
  assert.equal(all.code, 0);
  assert.match(all.stdout, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info  rialto: listening on http/m);
  assert.match(all.stdout, /Z info  odd: red \\u001b\[31m$/m, 'nothing of a server gets to the terminal but text');
  const one = await command(server, 'logs', 'beta', '-n', '1');
  assert.match(one.stdout, /^\S+Z info  beta: [^\n]+\n$/);
  const bad = await command(server, 'logs', '--level', 'warn', 'alpha', '--json');
  const lines = bad.stdout.trim().split('\n').map((l) => JSON.parse(l));
  assert.ok(lines.length >= 1 && lines.every((l) => l.who === 'alpha' && l.level === 'warn'), bad.stdout);
  const none = await command(server, 'logs', 'no such/server&limit=1');
  assert.deepEqual([none.code, none.stdout], [0, '']);
  assert.match(none.stderr, /^hint: no such line is kept/);
  for (const wrong of [['--level', 'loud'], ['-n', 'many'], ['a', 'b']]) {
    assert.equal((await command(server, 'logs', ...wrong)).code, 2, `${wrong}`);
  }
});

test('log.keep: 0 keeps nothing, and says so', async (t) => {
  const server = await serve(t, { ...two, log: { keep: '0' } });
  const answer = await get(server, '/api/logs');
  assert.equal(answer.status, 404);
  assert.match(answer.json.hint, /log\.keep/);
  for (const args of [[], ['-f']]) {
    const { code, stderr } = await command(server, 'logs', ...args);
    assert.equal(code, 1);
    assert.match(stderr, /the log is not kept\nhint: .*log\.keep/);
  }
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`rialto logs -f: lines as they come, until ${signal}`, async (t) => {
    const { server, client } = await serveAndConnect(t, two, bothUp);
    await client.call('alpha__fail');
    await logged(server, /alpha: call \d+ of fail failed/);
    const watch = goOn(t, server, ['logs', 'alpha', '-f', '-n', '1']);
    await until('the line before', () => /of fail failed/.test(watch.stdout()));
    await client.call('beta__fail');
    await client.call('alpha__error');
    await until('the new line', () => /of error failed/.test(watch.stdout()), 20_000);
    assert.deepEqual(await watch.end(signal), { code: 0, signal: null });
    assert.match(watch.stdout(), /^\S+ info  alpha: call \d+ of fail failed[^\n]*\n\S+ info  alpha: call \d+ of error failed[^\n]*\n$/);
    assert.equal(watch.stderr(), '');
  });
}

test('rialto logs -f goes on with the next daemon, and says so once', async (t) => {
  const dir = tempDir();
  const control = `unix:${dir}/control.sock`;
  const first = await serve(t, { ...two, control });
  const watch = goOn(t, { dir }, ['logs', '-f', '--json', '-c', writeConfig(dir, { control })]);
  const lines = () => watch.stdout().split('\n').slice(0, -1).map((l) => JSON.parse(l));
  const starts = () => lines().filter((l) => l.text.startsWith('listening on')).length;
  await until('the first', () => starts() === 1);
  await first.stop();
  await until('it is noticed', () => /the daemon is gone/.test(watch.stderr()), 20_000);
  const second = await serve(t, { ...two, control });
  await until('the second', () => starts() === 2, 20_000);
  assert.equal(watch.stderr(), 'rialto logs: the daemon is gone; waiting for the next\n');

  // A third daemon starts, and writes more than the second did, while `rialto logs` is stopped.
  process.kill(watch.child.pid, 'SIGSTOP');
  await second.stop();
  const third = await serve(t, { control, servers: { a: loud('i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo $i >&2; done') } });
  await logged(third, / a: 50$/m);
  process.kill(watch.child.pid, 'SIGCONT');
  await until('all of the third', () => starts() === 3 && lines().some((l) => l.text === '50'), 20_000);
  assert.ok(lines().some((l) => l.text === '1'));
  assert.deepEqual(await watch.end('SIGINT'), { code: 0, signal: null });
  const said = watch.stderr().split('\n');
  // Whether the command found its connection broken or a new daemon is a matter of timing.
  assert.equal(said.length, 3, said.join('|'));
  assert.match(said[1], /the daemon (was started again|is gone)/);
});

test('rialto logs -f ends while the daemon is gone, too, and while it hangs', async (t) => {
  const server = await serve(t, two);
  const watch = goOn(t, server, ['logs', '-f']);
  await until('the first line', () => /listening on/.test(watch.stdout()));
  process.kill(server.pid, 'SIGSTOP');
  t.after(() => { try { process.kill(server.pid, 'SIGCONT'); } catch { /* it has ended */ } });
  await sleep(1000); // by now the command waits for an answer
  assert.deepEqual(await watch.end('SIGTERM'), { code: 0, signal: null });
  process.kill(server.pid, 'SIGCONT');

  const other = goOn(t, server, ['logs', '-f']);
  await until('the first line', () => /listening on/.test(other.stdout()));
  await server.stop();
  await until('it is noticed', () => /the daemon is gone/.test(other.stderr()), 20_000);
  assert.deepEqual(await other.end('SIGTERM'), { code: 0, signal: null });
});

// --- top ---

/** The tables of a text: arrays of rows by server, each {STATE, 'CALLS/S', ...}. */
function tables(text) {
  const found = [];
  for (const line of text.split('\n')) {
    const cells = line.split(/ {2,}/);
    if (cells[0] === 'SERVER') found.push({ titles: cells, rows: {} });
    else if (found.length && cells.length === found.at(-1).titles.length) {
      const { titles, rows } = found.at(-1);
      rows[cells[0]] = Object.fromEntries(cells.map((c, i) => [titles[i], c]));
    }
  }
  return found.map((f) => f.rows);
}

test('rialto top: a table for each round, with rates, errors and durations', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  await client.call('alpha__fail'); // a result with isError
  await client.call('alpha__error');
  const asleep = client.call('beta__sleep', { ms: 600_000 }).catch(() => {});
  await until('the call in flight', async () => (await get(server, '/api/servers/beta')).json.in_flight === 1);
  const watch = goOn(t, server, ['top', '--interval', '1s', '-n', '3']);
  let over;
  const end = watch.over().then((e) => { over = e; });
  while (!over) await client.call('alpha__echo');
  await end;
  assert.deepEqual(over, { code: 0, signal: null });
  assert.doesNotMatch(watch.stdout(), /\x1b/, 'this is no terminal');
  const rounds = tables(watch.stdout());
  assert.equal(rounds.length, 3, watch.stdout());
  for (const rows of rounds) {
    assert.deepEqual(Object.keys(rows), ['alpha', 'beta'], watch.stdout());
    assert.equal(rows.alpha.STATE, 'up');
    assert.ok(Number(rows.alpha['CALLS/S']) > 0, watch.stdout());
    assert.equal(rows.alpha.ERRORS, '2', watch.stdout());
    assert.equal(rows.beta['CALLS/S'], '0.0');
    assert.equal(rows.beta['IN FLIGHT'], '1');
    assert.match(rows.alpha.P50, /^<[\d.]+m?s$/);
    assert.match(rows.alpha.P95, /^<[\d.]+m?s$/);
    assert.equal(rows.beta.P50, '-');
  }
  assert.match(watch.stdout(), /^\d\d:\d\d:\d\d {2}Rialto \S+: ok, \d+\.\d calls\/s, [12] in flight, 0 queued, 0 waiting for approval, 1 sessions\n\nSERVER /);
  void asleep;
});

test('how long calls took, in the status and in rialto top', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  for (let i = 0; i < 2; i++) await client.call('alpha__sleep', { ms: 1200 });
  const { json } = await get(server, '/api/servers/alpha');
  assert.equal(json.durations.reduce((a, b) => a + b), json.calls, 'each is counted once');
  assert.ok(json.durations.slice(11).reduce((a, b) => a + b) === 2, `${json.durations}`);
  const { stdout } = await command(server, 'top', '-n', '1', '--interval', '100ms');
  const { alpha } = tables(stdout)[0];
  assert.match(alpha.P50, /^<[248]\.\ds$/, stdout);
  assert.match(alpha.P95, /^<\d+\.\ds$/, stdout);
});

test('rialto top without a daemon, and with one that goes', async (t) => {
  const none = await rialto(['top'], { env: { XDG_RUNTIME_DIR: tempDir() } });
  assert.equal(none.code, 1);
  assert.match(none.stderr, /no daemon is running/);
  const server = await serve(t, two);
  for (const wrong of [['-n', '0'], ['-n', 'x'], ['--interval', '5'], ['--interval', '1ms'], ['x']]) {
    assert.equal((await command(server, 'top', ...wrong)).code, 2, `${wrong}`);
  }
  const watch = goOn(t, server, ['top', '--interval', '200ms']);
  await until('a table', () => tables(watch.stdout()).length > 0);
  await server.stop();
  assert.deepEqual(await watch.over(), { code: 1, signal: null });
  assert.match(watch.stderr(), /rialto top: the daemon is gone/);
});

const terminal = path.join(path.dirname(fakeBin), 'terminal');
const frames = (text) => text.split('\x1b[H').slice(1).map((f) => f.replaceAll(/\x1b\[[?\d]*[A-Za-z]/g, ''));

// The table could only be looked at, not operated.
test('keys of rialto top: sort, filter, choose, restart and log', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { zeta: fake('--name', 'zeta'), alpha: { ...loud('echo hello from alpha >&2'), start: 'eager' }, beta: fake('--name', 'beta') },
  }, ['zeta__echo', 'alpha__echo', 'beta__echo']);
  for (let i = 0; i < 3; i++) await client.call('beta__fail');
  const watch = goOn(t, server, ['top', '--interval', '1h', '-c', server.config], [terminal, '120', '20', rialtoBin], { TERM: 'xterm', NO_COLOR: '1' });
  const last = () => frames(watch.stdout()).at(-1) ?? '';
  const rows = () => [...last().matchAll(/^(zeta|alpha|beta) /gm)].map((m) => m[1]).join();
  const press = async (keys, what, seen) => {
    watch.child.stdin.write(keys);
    await until(what, seen, 20_000);
  };
  await until('the first frame', () => rows() === 'zeta,alpha,beta', 20_000);
  assert.match(last(), /q quit {2}s sort: as configured {2}\/ filter/);
  await press('s', 'by name', () => rows() === 'alpha,beta,zeta');
  await press('ss', 'by what is in flight', () => /sort: in flight/.test(last()));
  await press('s', 'by errors', () => /sort: errors/.test(last()) && rows().startsWith('beta'));
  await press('ss', 'by name again', () => rows() === 'alpha,beta,zeta');
  await press('r', 'a word', () => /choose a server first/.test(last()));
  await press('/ta', 'the filter', () => rows() === 'beta,zeta' && /show only: ta_/.test(last()));
  await press('\x7f\x7fq\r', 'a filter that nothing passes', () => rows() === '' && /filter: q /.test(last()));
  await press('/', 'typing', () => /show only: q_/.test(last()));
  await press('\x1b', 'none any more', () => rows() === 'alpha,beta,zeta');
  await press('\x1b[B', 'the first is chosen', () => /choose: alpha/.test(last()));
  await press('jj', 'the last', () => /choose: zeta/.test(last()));
  await press('\x1b[Ak', 'and back', () => /choose: alpha/.test(last()));

  const pid = async () => (await get(server, '/api/servers/alpha')).json.pid;
  const before = await pid();
  await press('r', 'the question', () => /restart alpha\? y\/n/.test(last()));
  await press('n', 'no', () => /r restart/.test(last()));
  assert.equal(await pid(), before);
  await press('r', 'the question', () => /restart alpha\? y\/n/.test(last()));
  await press('y', 'the restart', () => /restarted/.test(last()));
  await until('another process', async () => { const now = await pid(); return now && now !== before; }, 20_000);
  await press('l', 'its log', () => /The log of alpha[^]*hello from alpha/.test(last()));
  await press('l', 'the table', () => rows() === 'alpha,beta,zeta');
  watch.child.stdin.write('q');
  assert.deepEqual(await watch.over(), { code: 0, signal: null });
});

test('rialto top on a terminal: redrawn in place, given back by q and by signals', async (t) => {
  const dir = tempDir();
  const control = `unix:${dir}/control.sock`;
  const first = await serve(t, { ...two, control });
  const file = writeConfig(dir, { control });
  const begin = () => goOn(t, { dir }, ['top', '--interval', '200ms', '-c', file],
    [terminal, '50', '12', rialtoBin], { TERM: 'xterm' });

  const watch = begin();
  await until('three frames', () => frames(watch.stdout()).length >= 3, 20_000);
  assert.ok(watch.stdout().startsWith('\x1b[?1049h\x1b[?25l'), JSON.stringify(watch.stdout()));
  for (const frame of frames(watch.stdout()).slice(0, -1)) {
    assert.match(frame, /^alpha +\w+ /m);
    for (const line of frame.split(/\r*\n/)) assert.ok(line.length <= 50, line);
  }
  watch.child.stdin.write('resize 20 3\n');
  await until('it is narrow', () => {
    const last = frames(watch.stdout()).at(-2).split(/\r*\n/);
    return last.length === 3 && last.every((l) => l.length <= 20);
  }, 20_000);
  watch.child.stdin.write('resize 100 30\n');
  await first.stop();
  await until('it is noticed', () => /The daemon is gone/.test(frames(watch.stdout()).at(-1)), 20_000);
  await serve(t, { ...two, control });
  await until('the next daemon', () => /^alpha +up /m.test(frames(watch.stdout()).at(-1)), 20_000);
  watch.child.stdin.write('q');
  assert.deepEqual(await watch.over(), { code: 0, signal: null });
  assert.ok(watch.stdout().endsWith('\x1b[?25h\x1b[?1049l'), JSON.stringify(watch.stdout().slice(-200)));

  const interrupted = begin();
  await until('a frame', () => frames(interrupted.stdout()).length >= 2, 20_000);
  interrupted.child.stdin.write('\x03');
  assert.deepEqual(await interrupted.over(), { code: 0, signal: null });
  assert.ok(interrupted.stdout().endsWith('\x1b[?25h\x1b[?1049l'));
});
