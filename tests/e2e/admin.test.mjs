// Looking after a running daemon: health, numbers, state, starting and stopping servers, the
// control socket and the commands that use it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import {
  exchange, fake, HttpClient, logged, rialto, rialtoBin, runCommand, serve, serveAndConnect, sleep, tempDir, until,
  writeConfig,
} from './lib.mjs';
import { fixtureScript, node22, startHttp } from './peers.mjs';

const get = async (server, where, headers = {}) => {
  const answer = await exchange(`${server.origin}${where}`, { method: 'GET', headers });
  return { ...answer, json: answer.headers['content-type']?.startsWith('application/json') && JSON.parse(answer.text) };
};
const post = async (server, where, body, headers = {}) => {
  const answer = await exchange(`${server.origin}${where}`, { headers, body: body && JSON.stringify(body) });
  return { ...answer, json: JSON.parse(answer.text) };
};
const overall = async (server, query = '') => {
  const { status, json } = await get(server, `/readyz${query}`);
  return `${status} ${json.status}`;
};
const stateOf = async (server, name) => (await get(server, `/api/servers/${name}`)).json;
const whoami = async (client, name) => (await client.call(`${name}__whoami`)).result.structuredContent;
const status = (server, args = []) => rialto(['status', '-c', server.config, ...args], { env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir });

/** The lines of /metrics as a map from "name{labels}" to a number. */
async function metrics(server) {
  const { text, headers } = await get(server, '/metrics');
  assert.match(headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const numbers = new Map();
  const typed = new Set();
  for (const line of text.trimEnd().split('\n')) {
    const type = line.match(/^# TYPE (\S+) (counter|gauge|histogram)$/);
    if (type) typed.add(type[1]);
    if (line.startsWith('#')) continue;
    const [, name, labels, value] = line.match(/^([a-z_]+)(\{[^}]*\})? ([-+.\deE]+)$/) ?? assert.fail(line);
    assert.ok(typed.has(name) || typed.has(name.replace(/_(bucket|sum|count)$/, '')), `${name} has no type`);
    assert.ok(!numbers.has(name + (labels ?? '')), `${line} stands twice`);
    numbers.set(name + (labels ?? ''), Number(value));
  }
  return numbers;
}

const two = { servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta') } };
const bothUp = ['alpha__echo', 'beta__echo'];

// --- health ---

test('§11.2 item 8: ok, degraded or down, in both readings', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  assert.equal((await get(server, '/healthz')).text, '{"status":"ok"}\n');
  assert.equal(await overall(server), '200 ok');
  assert.equal(await overall(server, '?strict=1'), '200 ok');

  // Crash alpha faster than it is restarted, so that the pause before a restart is long enough to be seen.
  await until('a pause', async () => {
    await client.call('alpha__crash');
    return (await stateOf(server, 'alpha')).phase === 'backoff';
  });
  const { status: code, json } = await get(server, '/readyz');
  assert.equal(code, 200);
  assert.equal(json.status, 'degraded');
  assert.equal(json.reasons.length, 1);
  assert.equal(json.reasons[0].server, 'alpha');
  assert.equal(json.reasons[0].state, 'failing');
  assert.match(json.reasons[0].reason, /exited with 42/);
  assert.equal(await overall(server, '?strict=1'), '503 down');
  assert.equal(await overall(server, '?strict=0'), '200 degraded');
  assert.equal((await get(server, '/healthz')).status, 200, 'alive is not healthy');
  await until('it is back', async () => (await overall(server, '?strict=1')) === '200 ok');
});

test('down: nothing has come up', async (t) => {
  const server = await serve(t, { servers: { bad: fake('--exit-at-once'), slow: fake('--init-delay', 60_000) } });
  await until('the failure', async () => (await stateOf(server, 'bad')).state === 'failing');
  assert.equal(await overall(server), '503 down');
  const { json } = await get(server, '/readyz');
  assert.deepEqual(json.reasons.map((r) => [r.server, r.state]), [['bad', 'failing'], ['slow', 'starting']]);
});

// `status` counted from the last change of state, which is never long ago for a failing server, and did not say
// whether the server would be started again.
test('status tells since when a server fails, and when it is tried next', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { bad: fake('--exit-at-once'), alpha: fake('--name', 'alpha') } }, ['alpha__echo']);
  assert.deepEqual((({ failing_since: since, next_try_ms: next, missing }) => [since, next, missing])(await stateOf(server, 'alpha')), [null, null, []]);
  const first = await until('the failure', async () => (await stateOf(server, 'bad')).failing_since);
  const later = await until('more tries and a pause', async () => {
    const now = await stateOf(server, 'bad');
    return now.starts > 3 && now.phase === 'backoff' && now.next_try_ms > 1000 && now;
  }, 30_000);
  assert.ok(Math.abs(Date.parse(later.failing_since) - Date.parse(first)) <= 1000, `${later.failing_since} is not ${first}`);
  assert.match((await status(server)).stdout, /^bad +failing +\d+[sm] .*next try in \d+s: .*exited with/m);

  // Up again: failing_since is reset. Stopped by hand: the server is not tried again, so it is not failing.
  await until('a pause', async () => {
    await client.call('alpha__crash');
    return (await stateOf(server, 'alpha')).phase === 'backoff';
  });
  assert.ok((await stateOf(server, 'alpha')).failing_since);
  await until('it is back', async () => (await stateOf(server, 'alpha')).state === 'up');
  assert.equal((await stateOf(server, 'alpha')).failing_since, null);
  await post(server, '/api/servers/bad/stop');
  const stopped = await until('it stopped', async () => {
    const now = await stateOf(server, 'bad');
    return now.phase === 'down' && now;
  });
  assert.deepEqual([stopped.failing_since, stopped.next_try_ms], [null, null]);
});

// Only errors and hints had colours. A pipe, NO_COLOR and a dumb terminal get none; a server's text never adds one.
test('states have colours where a terminal is', async (t) => {
  const { server } = await serveAndConnect(t, { servers: { alpha: fake('--name', 'alpha'), bad: fake('--exit-at-once') } }, ['alpha__echo']);
  await until('the failure', async () => (await stateOf(server, 'bad')).failing_since);
  const atTerminal = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';
  const env = { XDG_RUNTIME_DIR: server.dir, TERM: 'xterm', NO_COLOR: '' };
  const look = async (more, ...args) => (await runCommand('python3', ['-c', atTerminal, rialtoBin, ...args, '-c', server.config], { env: { ...env, ...more }, cwd: server.dir })).stdout;
  const seen = await look({}, 'status');
  assert.match(seen, /\x1b\[1mSERVER\x1b\[0m +\x1b\[1mSTATE/);
  assert.match(seen, /^alpha +\x1b\[32mup\x1b\[0m/m);
  assert.match(seen, /^bad +\x1b\[31mfailing\x1b\[0m/m);
  assert.match(seen, /: \x1b\[33mdegraded\x1b\[0m/);
  assert.match(await look({}, 'tools', '--daemon'), /^\x1b\[1malpha\x1b\[0m: \d+ tools/m);
  for (const more of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) assert.ok(!(await look(more, 'status')).includes('\x1b'), JSON.stringify(more));
  const { stdout } = await status(server);
  assert.ok(!/[\x1b\ufffd]/.test(stdout), 'no mark is left in a pipe');
  assert.match(stdout, /^alpha +up +\d+s/m);
});

// A daemon that hung was left out silently, and the exit status said that all was well.
test('status names a daemon that does not answer', async (t) => {
  const server = await serve(t, { servers: {} });
  process.kill(server.pid, 'SIGSTOP');
  const asked = rialto(['status'], { env: { XDG_RUNTIME_DIR: server.dir, HOME: server.dir, XDG_CONFIG_HOME: server.dir, RIALTO_CONFIG: '' }, cwd: tempDir() });
  const { code, stderr } = await asked.finally(() => process.kill(server.pid, 'SIGCONT'));
  assert.equal(code, 1);
  assert.match(stderr, /the daemon at \S+ gives no answer/);
});

test('a server whose secret is missing is missed', async (t) => {
  const { server } = await serveAndConnect(t, {
    servers: { a: fake('--name', 'a'), b: { ...fake('--name', 'b'), env: { KEY: '${RIALTO_TEST_NO_SUCH_KEY}' } } },
  }, ['a__echo']);
  assert.equal(await overall(server), '200 degraded');
  assert.equal(await overall(server, '?strict=1'), '503 down');
  const { json } = await get(server, '/readyz');
  assert.deepEqual(json.reasons.map((r) => [r.server, r.state, r.missing]), [['b', 'left out', ['RIALTO_TEST_NO_SUCH_KEY']]]);
  const { code, stdout } = await status(server);
  assert.equal(code, 1);
  assert.match(stdout, /Left out: b \(no value for /);
});

// The server does not answer and does not end: only a ping can tell.
test('§11.2 item 8: a server that hangs is found by ping and replaced', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { alpha: { ...fake('--name', 'alpha'), ping: '1s' }, beta: fake('--name', 'beta') },
  }, bothUp);
  const { pid } = await whoami(client, 'alpha');
  const other = await whoami(client, 'beta');
  process.kill(pid, 'SIGSTOP');
  const failed = await until('the verdict', async () => {
    const now = await stateOf(server, 'alpha');
    return now.last_error && now;
  }, 20_000);
  assert.match(failed.last_error, /did not answer a ping within 10 s/);
  await until('a new one', async () => {
    const now = await stateOf(server, 'alpha');
    return now.state === 'up' && now.pid !== pid;
  });
  assert.equal((await whoami(client, 'beta')).pid, other.pid);
});

test('§11.2 item 8: a remote server that has gone is found by ping, before anybody calls it', async (t) => {
  const remote = await startHttp(t, node22, [fixtureScript, '--era', 'legacy', '--transport', 'http']);
  const { server } = await serveAndConnect(t, { servers: { far: { url: remote.url, ping: '1s' } } }, ['far__echo']);
  await sleep(2500);
  const well = await stateOf(server, 'far');
  assert.equal(well.state, 'up', 'pings are answered');
  assert.equal(well.starts, 1);
  assert.equal(well.calls, 0, 'and are no calls');
  await remote.stop();
  const gone = await until('it is noticed', async () => {
    const now = await stateOf(server, 'far');
    return now.state === 'failing' && now;
  });
  assert.ok(gone.last_error);
  assert.equal(await overall(server), '503 down');
});

// --- state and numbers ---

test('what is known of a server', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { ...two.servers, resting: { ...fake(), start: 'lazy' } },
  }, bothUp);
  const before = await stateOf(server, 'alpha');
  assert.equal(before.state, 'up');
  assert.equal(before.transport, 'stdio');
  assert.equal(before.protocol, '2025-11-25');
  assert.equal(before.pid, (await whoami(client, 'alpha')).pid);
  assert.equal(before.tools, (await client.toolNames()).filter((n) => n.startsWith('alpha__')).length);
  assert.equal(before.resources, 0);
  assert.equal(before.last_error, null);
  assert.ok(Math.abs(new Date(before.since) - Date.now()) < 60_000);

  await client.call('alpha__crash');
  await until('it is back', async () => (await stateOf(server, 'alpha')).state === 'up');
  const after = await stateOf(server, 'alpha');
  assert.equal(after.calls, 2);
  assert.equal(after.failed, 1);
  assert.equal(after.starts, 2);
  assert.equal(after.crashes, 1);
  assert.match(after.last_error, /exited with 42/);

  const { json } = await get(server, '/status');
  assert.deepEqual(json.servers.map((s) => s.name), ['alpha', 'beta', 'resting']);
  assert.equal(json.sessions, 1);
  assert.equal(json.pid, server.pid);
  assert.equal(json.config, fs.realpathSync(server.config));
  assert.deepEqual((await get(server, '/api/servers')).json.map((s) => s.name), ['alpha', 'beta', 'resting']);
  assert.equal((await get(server, '/api/servers/gamma')).status, 404);
});

test('secrets are not in what is shown', async (t) => {
  const server = await serve(t, {
    servers: { bad: { command: '/bin/sh', args: ['-c', 'echo "bad key $KEY" >&2; exit 1'], env: { KEY: '${RIALTO_TEST_KEY}' } } },
  }, { env: { RIALTO_TEST_KEY: 'hunter2hunter2' } });
  const { json } = await until('the failure', async () => {
    const answer = await get(server, '/api/servers/bad');
    return answer.json.last_error && answer;
  });
  assert.match(json.last_error, /bad key \*\*\*/);
  for (const where of ['/status', '/readyz', '/metrics', '/api/servers']) {
    assert.doesNotMatch((await get(server, where)).text, /hunter2/);
  }
});

test('numbers for Prometheus', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  const none = await metrics(server);
  await client.call('alpha__echo');
  await client.call('alpha__sleep', { ms: 40 });
  await client.call('alpha__error');
  await client.call('alpha__crash');
  await client.call('alpha__nothing');
  await until('it is back', async () => (await stateOf(server, 'alpha')).state === 'up');
  const slow = client.call('beta__sleep', { ms: 60_000 }).catch(() => {});
  const now = await until('the call in flight', async () => {
    const numbers = await metrics(server);
    return numbers.get('rialto_calls_in_flight{server="beta"}') === 1 && numbers;
  });
  const grew = (name) => now.get(name) - none.get(name);
  assert.equal(grew('rialto_calls_total{server="alpha"}'), 4);
  assert.equal(grew('rialto_call_results_total{server="alpha"}'), 2);
  assert.equal(grew('rialto_call_errors_total{server="alpha"}'), 1);
  assert.equal(grew('rialto_call_failures_total{server="alpha",reason="crashed"}'), 1);
  assert.equal(grew('rialto_call_failures_total{server="",reason="unknown"}'), 1);
  assert.equal(grew('rialto_server_starts_total{server="alpha"}'), 1);
  assert.equal(grew('rialto_server_crashes_total{server="alpha"}'), 1);
  assert.equal(now.get('rialto_sessions'), 1);
  assert.ok(now.get('process_resident_memory_bytes') > 1 << 20);
  assert.ok(now.get('process_open_fds') > 5);

  const buckets = [...now].filter(([k]) => k.startsWith('rialto_call_duration_seconds_bucket{server="alpha"'));
  assert.ok(buckets.length > 10);
  for (let i = 1; i < buckets.length; i++) assert.ok(buckets[i][1] >= buckets[i - 1][1], 'they add up');
  assert.equal(buckets.at(-1)[1], 4);
  assert.equal(now.get('rialto_call_duration_seconds_count{server="alpha"}'), 4);
  assert.ok(now.get('rialto_call_duration_seconds_sum{server="alpha"}') >= 0.04);
  await client.close();
  await slow;
});

test('§11.2 item 11: events reach the log and the metrics, without arguments', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp, { args: ['-v'] });
  await client.call('alpha__echo', { message: 'very private words' });
  await client.call('alpha__fail', { message: 'very private words' });
  await client.call('alpha__crash');
  const heard = (numbers, event) => numbers.get(`rialto_happenings_total{server="alpha",event="${event}"}`);
  const now = await until('all of them', async () => {
    const numbers = await metrics(server);
    return heard(numbers, 'mcp.servers_reconnected') === 1 && numbers;
  });
  assert.equal(heard(now, 'mcp.tool_called'), 1);
  assert.equal(heard(now, 'mcp.tool_failed'), 2);
  assert.equal(heard(now, 'mcp.server_failed'), 1);
  assert.equal(now.get('rialto_tool_errors_total{server="alpha"}'), 1);
  await until('the last line', () => /alpha: is back/.test(server.stderr()));
  await logged(server, /alpha: call \d+ of echo: done in \d+ ms/);
  await logged(server, /alpha: call \d+ of fail failed after \d+ ms: failed on purpose/);
  assert.doesNotMatch(server.stderr(), /very private words/);
});

// --- control ---

test('start, stop and restart', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  const stream = await client.listen();
  const { pid } = await whoami(client, 'alpha');
  const busy = client.call('alpha__sleep', { ms: 60_000 });
  await until('the call', async () => (await stateOf(server, 'alpha')).in_flight === 1);

  const stopped = await post(server, '/api/servers/alpha/stop');
  assert.equal(stopped.status, 202);
  assert.equal(stopped.json.name, 'alpha');
  assert.match((await busy).error.message, /alpha.*stopped/);
  await until('it is down', async () => (await stateOf(server, 'alpha')).phase === 'down');
  assert.equal((await stateOf(server, 'alpha')).state, 'stopped');
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('alpha__')));
  await stream.waitFor('notifications/tools/list_changed');
  assert.equal(await overall(server, '?strict=1'), '200 ok', 'stopped on purpose is not missed');
  // A call does not start the server: an operator has stopped it.
  assert.match((await client.call('alpha__echo')).error.message, /stopped by its operator/);

  await post(server, '/api/servers/alpha/start');
  await client.waitFor('alpha__echo');
  const second = await whoami(client, 'alpha');
  assert.notEqual(second.pid, pid);
  await post(server, '/api/servers/alpha/restart');
  await until('a new process', async () => {
    const now = await stateOf(server, 'alpha');
    return now.state === 'up' && now.pid !== second.pid;
  });
  await client.waitFor('alpha__echo');
  assert.equal((await stateOf(server, 'alpha')).crashes, 0, 'none of this was a crash');
  stream.close();
});

test('who may ask for what', async (t) => {
  const server = await serve(t, two);
  const port = new URL(server.origin).port;
  for (const [where, method, code] of [
    ['/healthz', 'POST', 405], ['/readyz', 'DELETE', 405], ['/metrics', 'POST', 405], ['/status', 'POST', 405],
    ['/api/servers', 'PATCH', 405], ['/api/servers/alpha/stop', 'GET', 405], ['/api/servers/alpha/dance', 'POST', 404],
    ['/api/servers/alpha/stop/now', 'POST', 404], ['/api', 'GET', 404], ['/api/nothing', 'GET', 404],
    ['/api/servers/gamma/stop', 'POST', 404], ['/api/approvals/1', 'GET', 405],
  ]) {
    const answer = await exchange(`${server.origin}${where}`, { method });
    assert.equal(answer.status, code, `${method} ${where}`);
    assert.ok(JSON.parse(answer.text).hint);
    if (code === 405) assert.ok(answer.headers.allow);
  }
  const head = await exchange(`${server.origin}/status`, { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.text, '');

  // A web page may not control the bridge, not even one served by this machine, unless it is our own.
  const headers = (origin) => ({ Origin: origin });
  const stop = (origin) => post(server, '/api/servers/alpha/stop', undefined, headers(origin));
  assert.equal((await stop('https://evil.example')).status, 403);
  assert.equal((await stop('http://localhost:3000')).status, 403);
  assert.equal((await get(server, '/status', headers('http://127.0.0.1:1'))).status, 403);
  assert.equal((await get(server, '/status', { Host: 'evil.example' })).status, 403);
  assert.equal((await get(server, '/healthz', headers('http://localhost:3000'))).status, 200);
  assert.equal((await get(server, '/status', headers(`http://127.0.0.1:${port}`))).status, 200);
  assert.equal((await stateOf(server, 'alpha')).state === 'stopped', false);
});

// A host name that the configuration allows may be that of a proxy, which lets in anybody.
test('an address for all does not open the control', async (t) => {
  const server = await serve(t, { ...two, listen: { address: '0.0.0.0:0', hosts: ['proxied.example'] }, auth: { anonymous: true } });
  server.origin = server.origin.replace('0.0.0.0', '127.0.0.1');
  const proxied = { Host: 'proxied.example', Origin: 'http://proxied.example' };
  assert.equal((await get(server, '/healthz', proxied)).status, 200);
  assert.equal((await get(server, '/status', proxied)).status, 403);
  assert.equal((await post(server, '/api/servers/alpha/stop', undefined, proxied)).status, 403);
  assert.equal((await get(server, '/status')).status, 200);
});

// --- the control socket ---

const socketOf = (server) => {
  const folder = path.join(server.dir, 'rialto');
  return path.join(folder, fs.readdirSync(folder).find((n) => n.endsWith('.sock')));
};

function overSocket(socket, where) {
  return new Promise((resolve, reject) => {
    http.get({ socketPath: socket, path: where, headers: { Host: 'localhost' } }, (response) => {
      let text = '';
      response.on('data', (d) => { text += d; });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    }).on('error', reject);
  });
}

test('the control socket is its owner\'s alone, and goes with the daemon', async (t) => {
  const server = await serve(t, two);
  const socket = socketOf(server);
  assert.equal(fs.statSync(socket).mode & 0o7777, 0o600);
  assert.equal(fs.statSync(path.dirname(socket)).mode & 0o7777, 0o700);
  const { status: code, text } = await overSocket(socket, '/status');
  assert.equal(code, 200);
  assert.equal(JSON.parse(text).pid, server.pid);
  await server.stop();
  assert.ok(!fs.existsSync(socket));
});

test('a second daemon does without it', async (t) => {
  const first = await serve(t, two);
  const second = await serve(t, null, { args: ['-c', first.config], env: { XDG_RUNTIME_DIR: first.dir } });
  await until('a warning', () => /no control socket/.test(second.stderr()));
  assert.equal((await get(second, '/healthz')).status, 200);
  assert.equal(JSON.parse((await overSocket(socketOf(first), '/status')).text).pid, first.pid);
  await second.stop();
  assert.equal((await overSocket(socketOf(first), '/status')).status, 200);
});

test('another place for it, and none', async (t) => {
  const socket = path.join(tempDir(), 'ctl.sock');
  const server = await serve(t, { ...two, control: `unix:${socket}` });
  assert.equal((await overSocket(socket, '/healthz')).status, 200);
  const { code, stdout } = await rialto(['status', '-c', server.config, '--json']);
  assert.equal(JSON.parse(stdout).pid, server.pid, `found by the configuration (${code})`);
  const none = await serve(t, two, { env: { RIALTO_CONTROL: 'off' } });
  assert.ok(!fs.existsSync(path.join(none.dir, 'rialto')));
});

// --- commands ---

test('rialto status', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  await client.call('alpha__echo');
  const fine = await status(server);
  assert.equal(fine.code, 0, fine.stderr);
  assert.match(fine.stdout, new RegExp(`pid ${server.pid}`));
  const rows = fine.stdout.split('\n');
  const head = rows.findIndex((l) => l.startsWith('SERVER'));
  assert.match(rows[head], /^SERVER +STATE +SINCE +VERSION +TOOLS +CALLS +LAST ERROR$/);
  assert.match(rows[head + 1], /^alpha +up +\d+s +2025-11-25 +16 +1 +-$/);
  assert.match(rows[head + 2], /^beta +up +\d+s +2025-11-25 +16 +0 +-$/);
  const json = await status(server, ['--json']);
  assert.equal(JSON.parse(json.stdout).servers[0].calls, 1);

  process.kill((await stateOf(server, 'alpha')).pid, 'SIGKILL');
  await until('it is seen', async () => (await stateOf(server, 'alpha')).last_error);
  await until('a pause', async () => {
    await client.call('alpha__crash');
    return (await stateOf(server, 'alpha')).phase === 'backoff';
  });
  const bad = await status(server);
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /alpha +failing .*(exited with 42|SIGKILL)/);
  assert.match(bad.stdout, /: degraded/);
});

// The command was refused like all other connections, just when it was needed.
test('rialto status of a daemon whose connections are all taken', async (t) => {
  const server = await serve(t, { ...two, limits: { connections: 2 } });
  const { hostname, port } = new URL(server.origin);
  const sockets = [1, 2, 3].map(() => net.connect(Number(port), hostname));
  t.after(() => sockets.forEach((s) => s.destroy()));
  sockets.forEach((s) => s.on('error', () => {}));
  await logged(server, /all 2 connections are taken/);
  const { stdout } = await status(server, ['--json']);
  assert.equal(JSON.parse(stdout).pid, server.pid);
});

test('rialto status without a daemon', async (t) => {
  const dir = tempDir();
  const env = { XDG_RUNTIME_DIR: dir, RIALTO_CONTROL: `unix:${dir}/control.sock` };
  const none = await rialto(['status'], { env, cwd: dir });
  assert.equal(none.code, 1);
  assert.equal(none.stdout, '');
  assert.match(none.stderr, /no daemon is running/);
  assert.match(none.stderr, /hint: .*rialto serve/);

  // A daemon that was killed leaves its socket behind.
  const server = net.createServer();
  await new Promise((resolve) => { server.listen(`${dir}/live.sock`, resolve); });
  fs.linkSync(`${dir}/live.sock`, `${dir}/control.sock`);
  await new Promise((resolve) => { server.close(resolve); });
  const stale = await rialto(['status'], { env, cwd: dir });
  assert.equal(stale.code, 1);
  assert.match(stale.stderr, /no daemon is running/);
  assert.equal((await rialto(['status', 'x'], { env, cwd: dir })).code, 2);
});

test('rialto status does not mind a configuration that is broken meanwhile', async (t) => {
  const server = await serve(t, two);
  fs.writeFileSync(server.config, '{"servers": 7');
  const { code, stdout } = await rialto(['status', '-c', server.config, '--json'], {
    env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir,
  });
  assert.equal(JSON.parse(stdout).pid, server.pid, String(code));
});

test('rialto tools and call, by the daemon', async (t) => {
  const { server, client } = await serveAndConnect(t, two, bothUp);
  const env = { XDG_RUNTIME_DIR: server.dir };
  const run = (...args) => rialto([...args, '-c', server.config, '--daemon'], { env, cwd: server.dir });

  const list = await run('tools');
  assert.equal(list.code, 0, list.stderr);
  assert.match(list.stdout, /^ {2}alpha__echo +\d+ {2}echo of alpha$/m);
  const json = await run('tools', '--json');
  assert.deepEqual(JSON.parse(json.stdout).map((x) => x.name), await client.toolNames());

  const { pid } = await whoami(client, 'alpha');
  const called = await run('call', 'alpha', 'whoami', '--json');
  assert.equal(called.code, 0, called.stderr);
  assert.equal(JSON.parse(called.stdout).structuredContent.pid, pid, 'no other process was started');
  const added = await run('call', 'alpha', 'add', 'a=2', 'b=3');
  assert.equal(added.stdout, '5\n');
  const failed = await run('call', 'alpha', 'fail');
  assert.equal(failed.code, 1);
  const refused = await run('call', 'alpha', 'error');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /refused on purpose/);
  assert.equal((await run('call', 'gamma', 'echo')).code, 2);

  const other = writeConfig(tempDir(), two);
  const wrong = await rialto(['tools', '-c', other, '--daemon'], { env });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /no daemon is running/, 'the one that runs is of another file');
  const shared = writeConfig(tempDir(), { ...two, control: `unix:${socketOf(server)}` });
  const told = await rialto(['tools', '-c', shared, '--daemon'], { env });
  assert.equal(told.code, 1);
  assert.match(told.stderr, /another configuration/);
});

// Header lines of exactly 256 bytes: their buffer was moved while it was being split, and the old one was read.
test('rialto call --daemon with a name of any length', async (t) => {
  const { server } = await serveAndConnect(t, two, bothUp);
  const lines = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n'
    + 'MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: \r\n\0';
  const name = 'n'.repeat(256 - lines.length);
  const { code, stderr } = await rialto(['call', '-c', server.config, '--daemon', 'alpha', name], {
    env: { XDG_RUNTIME_DIR: server.dir }, cwd: server.dir,
  });
  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`${name}`));
});

test('the numbers of sessions\' own instances are not lost with them', async (t) => {
  const server = await serve(t, { servers: { own: { ...fake('--name', 'own'), instances: 'per-session' } } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('own__echo');
  await client.call('own__echo');
  await until('the call is counted', async () => (await stateOf(server, 'own')).calls === 1);
  await client.close();
  await sleep(500);
  assert.equal((await stateOf(server, 'own')).calls, 1);
});

// The command waited for ever.
test('a daemon that stands still is not waited for without end', { timeout: 60_000 }, async (t) => {
  const server = await serve(t, two);
  process.kill(server.pid, 'SIGSTOP');
  try {
    const { code, stderr } = await status(server);
    assert.equal(code, 1);
    assert.match(stderr, /gave no answer within 10 s/);
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
});
