// One server misbehaves, the other must not notice. Each case: the good server works before, during and
// after; a call to the bad one gets a clear error within the deadline; no process is left running
// (stopping the program checks that).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import {
  expectGone, fake, isAlive, logged, serveAndConnect, sleep, stdio, tempDir, until, within,
} from './lib.mjs';
import { data, listen, RawServer } from './upstream_lib.mjs';

const deadline = 2000;

async function start(t, badArgs, wanted = ['good__echo'], more = {}) {
  return serveAndConnect(t, {
    servers: {
      bad: { ...fake('--name', 'bad', ...badArgs), timeout: `${deadline}ms`, ...more },
      good: fake('--name', 'good'),
    },
  }, wanted);
}

async function expectGood(client) {
  const { result } = await within(1000, 'the good server', client.call('good__whoami'));
  assert.equal(result.structuredContent.name, 'good');
}

/** The call must end in an error that names the server, at most a second after the deadline. */
async function expectRefused(client, tool, args = {}) {
  const began = Date.now();
  const { error, result } = await within(deadline + 1000, tool, client.call(tool, args));
  assert.ok(error || result.isError, JSON.stringify(result)?.slice(0, 200));
  const said = error ? error.message : result.content[0].text;
  assert.match(said, /bad/, `"${said}" names the server`);
  return { took: Date.now() - began, said };
}

test('junk on stdout is skipped', async (t) => {
  const { client } = await start(t, ['--junk'], ['good__echo', 'bad__echo']);
  for (let i = 0; i < 5; i++) {
    const { result } = await client.call('bad__echo', { i });
    assert.deepEqual(result.structuredContent, { i });
  }
  await expectGood(client);
});

test('a server that exits at once', async (t) => {
  const { client, server } = await start(t, ['--exit-at-once']);
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('bad__')));
  const { took } = await expectRefused(client, 'bad__echo');
  assert.ok(took < 1000, `at once, not after ${took} ms`);
  await expectGood(client);
  await logged(server, /bad.*\b7\b/);
});

test('a program that does not exist', async (t) => {
  const { client } = await serveAndConnect(t, {
    servers: { bad: { command: 'no-such-program-anywhere' }, good: fake('--name', 'good') },
  }, ['good__echo']);
  await expectRefused(client, 'bad__echo');
  await expectGood(client);
});

test('a server that never answers initialize', async (t) => {
  const began = Date.now();
  const { client } = await start(t, ['--silent']);
  await expectGood(client);
  assert.ok(Date.now() - began < 5000, 'nobody waits for it');
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('bad__')));
  await expectRefused(client, 'bad__echo');
  await expectGood(client);
});

test('a server that answers twice', async (t) => {
  const line = await stdio(t, {
    servers: { bad: fake('--name', 'bad', '--twice'), good: fake('--name', 'good') },
  }, ['good__echo', 'bad__echo']);
  for (let i = 0; i < 10; i++) {
    const raw = await line.rawRequest(String(i), 'tools/call',
      `{"name":"bad__echo","arguments":{"i":${i}}}`);
    assert.deepEqual(JSON.parse(raw).result.structuredContent, { i });
  }
  await sleep(200);
  for (let i = 0; i < 10; i++) {
    assert.equal(line.messages().filter((m) => m.id === i).length, 1, `id ${i} is answered once`);
  }
});

test('a line of 100 MB', async (t) => {
  const { client, server } = await start(t, ['--huge-line', 100_000_000], ['good__echo', 'bad__huge']);
  const refused = expectRefused(client, 'bad__huge');
  for (let i = 0; i < 5; i++) await expectGood(client);
  await refused;
  await expectGood(client);
  const peak = Number(fs.readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)[1]);
  assert.ok(peak < 160_000, `peak memory ${peak} kB, sanitizer included`);
  const back = await until('the bad server to be of use again', async () => {
    const { result } = await client.call('bad__echo', { back: true });
    return result;
  });
  assert.deepEqual(back.structuredContent, { back: true });
});

// Two calls at once: the id at the start of the dropped answer tells whose it was, and the other call goes on.
test('an answer that is too long ends its own call at once, beside others', async (t) => {
  const { client } = await start(t, ['--huge-line', 100_000_000], ['good__echo', 'bad__huge', 'bad__sleep'],
    { timeout: '60s' });
  const patient = client.call('bad__sleep', { ms: 3000 });
  const { error } = await within(20_000, 'the refusal', client.call('bad__huge'));
  assert.match(error.message, /answered with more than \d+ bytes/);
  assert.ok((await patient).result);
});

test('a server that ignores EOF and SIGTERM', async (t) => {
  const { client, server } = await start(t, ['--ignore-eof'], ['good__echo', 'bad__whoami']);
  const { pid } = (await client.call('bad__whoami')).result.structuredContent;
  assert.ok(isAlive({ pid }));
  await server.stop('SIGTERM', 4000);
  assert.ok(!isAlive({ pid }));
});

test('a grandchild that holds the pipe', async (t) => {
  const { client } = await start(t, ['--grandchild'], ['good__echo', 'bad__whoami']);
  const first = (await client.call('bad__whoami')).result.structuredContent;
  assert.ok(isAlive({ pid: first.grandchild }));
  const { took } = await expectRefused(client, 'bad__die');
  assert.ok(took < 1000, `at once, not after ${took} ms`);
  await expectGood(client);
  await expectGone([{ pid: first.pid }, { pid: first.grandchild }]);
  await client.waitFor('bad__whoami');
  const second = (await client.call('bad__whoami')).result.structuredContent;
  assert.notEqual(second.pid, first.pid);
});

test('a server that does not answer a call', async (t) => {
  const { client } = await start(t, [], ['good__echo', 'bad__sleep']);
  const { took, said } = await expectRefused(client, 'bad__sleep', { ms: 60_000 });
  assert.ok(took >= deadline - 100, `after its deadline, not after ${took} ms`);
  assert.match(said, /time|deadline/i);
  const { cancelled } = (await client.call('bad__whoami')).result.structuredContent;
  assert.equal(cancelled, 1, 'the server was told');
  await expectGood(client);
});

test('a server that crashes in the middle of a line', async (t) => {
  const { client } = await start(t, [], ['good__echo', 'bad__crash']);
  const { took } = await expectRefused(client, 'bad__crash');
  assert.ok(took < 1000, `at once, not after ${took} ms`);
  await expectGood(client);
  await client.waitFor('bad__echo');
});

test('a server that speaks an unheard-of version', async (t) => {
  const { client, server } = await start(t, ['--version', '1999-01-01']);
  await expectGood(client);
  await expectRefused(client, 'bad__echo');
  await until('the version in the log', () => /1999-01-01/.test(server.stderr()));
});

test('results that are not what they should be', async (t) => {
  const file = `${tempDir()}/result`;
  fs.writeFileSync(file, '{"content":[],"broken');
  const { client } = await start(t, ['--raw-result', file], ['good__echo', 'bad__echo']);
  await expectRefused(client, 'bad__echo');
  fs.writeFileSync(file, '["an", "array"]');
  const { result } = await client.call('bad__echo');
  assert.deepEqual(result, ['an', 'array'], 'odd, but JSON-RPC: not ours to judge');
  fs.writeFileSync(file, '{"content":[],"deep":' + '['.repeat(200) + ']'.repeat(200) + '}');
  await expectRefused(client, 'bad__echo');
  await expectGood(client);
});

// One bad answer to a list that is asked for again: after an error the agent's list was empty, and after
// silence no list of this server was ever fetched again. Tools made of resources went to the server as its own.
for (const [what, second] of [
  ['a server that does not answer when a list is asked for again', () => {}],
  ['a server that breaks off when a list is asked for again', (id, response) => response.writeHead(503).end()],
  ['a server that refuses when a list is asked for again', (id, response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'busy' } }))],
]) {
  test(what, async (t) => {
    let notify;
    let lists = 0;
    const tool = (name) => ({ name, inputSchema: { type: 'object' } });
    const raw = new RawServer({
      initialize: ({ reply }) => reply({
        protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true }, resources: {} }, serverInfo: { name: 'raw', version: '1' },
      }),
      GET: ({ sse }) => { notify = () => sse(data({ method: 'notifications/tools/list_changed' })); sse(': hello'); },
      'tools/list': ({ message, response, reply }) => {
        lists += 1;
        if (lists === 2) second(message.id, response);
        else reply({ tools: [tool('echo'), ...(lists > 2 ? [tool('late')] : [])] });
      },
      'resources/list': ({ reply }) => reply({ resources: [{ uri: 'x://1', name: 'one' }] }),
      'resources/read': ({ reply }) => reply({ contents: [{ uri: 'x://1', text: 'the text' }] }),
    });
    const { url } = await listen(t, raw.handler);
    const { client } = await serveAndConnect(t, {
      servers: { bad: { url, era: 'legacy', start_timeout: '1s', resources_as_tools: true } },
    }, ['bad__echo', 'bad__read_resource']);
    await until('the standing stream', () => notify);
    notify();
    await until('the second list', () => lists === 2);
    await sleep(200);
    assert.ok((await client.toolNames()).includes('bad__echo'), 'the list before stays');
    assert.equal(await client.text('bad__read_resource', { uri: 'x://1' }), 'the text');
    notify();
    await client.waitFor('bad__echo', 'bad__late');
  });
}
