// What makes the aggregator reliable: calls that survive a crash, lists that never wait, instances for
// one session, secrets that stay secret, tools changed by the configuration.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  expectGone, fake, fakeBin, HttpClient, logged, rialto, rialtoBin, root, serve, serveAndConnect, sleep,
  StdioClient, tempDir, until, within, writeConfig,
} from './lib.mjs';

const fragile = (marker, ...more) => ({
  command: process.execPath,
  args: [path.join(root, 'tests/fixture/fragile_server.mjs'), marker, ...more],
});

test('a read-only call survives the crash of its server: same session, same id, one answer', async (t) => {
  const marker = path.join(tempDir(), 'died');
  const { client } = await serveAndConnect(t, { servers: { f: fragile(marker) } }, ['f__peek']);
  const { message } = await within(15_000, 'the repeated call',
    client.rawRequest('"once"', 'tools/call', '{"name":"f__peek","arguments":{}}'));
  assert.equal(message.id, 'once');
  assert.equal(message.result?.content[0].text, 'peek in life 2', JSON.stringify(message));
  assert.deepEqual(await client.toolNames(), ['f__peek', 'f__poke', 'f__secret']);
});

test('a call that may have done something is not repeated, and the error says so', async (t) => {
  const marker = path.join(tempDir(), 'died');
  const { client } = await serveAndConnect(t, { servers: { f: fragile(marker) } }, ['f__poke']);
  const { error } = await within(5000, 'the failed call', client.call('f__poke'));
  assert.match(error.message, /server 'f' ended while the call was open: killed by SIGKILL/);
  assert.deepEqual(error.data, { reason: 'crashed', retryable: false });
  // Calling again is the caller's decision; the call starts the server at once.
  assert.match(await client.text('f__poke'), /^poke in life \d$/);
});

test('lists answer from what is known while a server is still starting, then list_changed', async (t) => {
  const dir = tempDir();
  const go = path.join(dir, 'go');
  const { client, server } = await serveAndConnect(t, {
    servers: { slow: fragile(path.join(dir, 'died'), '--wait', go), quick: fake('--name', 'quick') },
  }, ['quick__echo']);
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('slow__')));
  const stream = await client.listen();
  await stream.settle();
  const before = stream.count('notifications/tools/list_changed');
  const second = await new HttpClient(server.url).connect(); // initialize does not wait either
  assert.ok((await second.toolNames()).includes('quick__echo'));
  fs.writeFileSync(go, '');
  await stream.waitFor('notifications/tools/list_changed', before + 1);
  assert.ok((await client.toolNames()).includes('slow__peek'));
  // In the order of the configuration, whichever server was up first.
  assert.ok((await client.toolNames())[0].startsWith('slow__'));
  stream.close();
});

test('instances: per-session gives each session a process, which ends with it', async (t) => {
  const { server, client } = await serveAndConnect(t, {
    servers: { own: { ...fake('--name', 'own'), instances: 'per-session' }, all: fake('--name', 'all') },
  }, ['own__whoami', 'all__whoami']);
  const other = await new HttpClient(server.url).connect();
  const pid = async (c, name) => (await c.call(`${name}__whoami`)).result.structuredContent.pid;
  assert.equal(await pid(client, 'all'), await pid(other, 'all'));
  const [mine, theirs] = [await pid(client, 'own'), await pid(other, 'own')];
  assert.notEqual(mine, theirs);
  assert.equal(await pid(client, 'own'), mine, 'and it stays the same within a session');
  assert.equal((await other.close()).status, 200);
  await expectGone([{ pid: theirs }], 3000);
  assert.equal(await pid(client, 'own'), mine);
});

test('a server whose questions could be for several agents is no longer shared by new sessions', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { q: fake('--name', 'q') } }, ['q__ask']);
  await new HttpClient(server.url).connect(); // with two agents, a question may be for either
  const busy = client.call('q__sleep', { ms: 500 });
  const asked = await client.call('q__ask', { method: 'sampling/createMessage' });
  assert.ok(asked.result || asked.error);
  await busy;
  await until('the note in the log', () => /q: asks its clients questions/.test(server.stderr()));
  const pid = async (c) => (await c.call('q__whoami')).result.structuredContent.pid;
  const fresh = await new HttpClient(server.url).connect();
  assert.notEqual(await pid(fresh), await pid(client));
});

test('${NAME} is filled in, a missing one leaves its server out by name, and values never show', async (t) => {
  const dir = tempDir();
  fs.writeFileSync(path.join(dir, 'IN_FILE'), 'open-sesame-7\n');
  const { client, server } = await serveAndConnect(t, {
    secrets: { directory: dir },
    servers: {
      a: { ...fragile(path.join(dir, 'a')), env: { TOKEN: '${IN_FILE}' } },
      b: { ...fragile(path.join(dir, 'b')), env: { TOKEN: '${NOT_ANYWHERE}-${NOR_THIS}' } },
      c: {
        command: '/bin/sh', args: ['-c', 'echo "my key is $API_KEY" >&2; exit 1'],
        env: { API_KEY: 'Bearer in-plain-sight' },
      },
    },
  }, ['a__secret'], { args: ['-v'] });
  assert.equal(await client.text('a__secret'), 'yes');
  assert.ok(!(await client.toolNames()).some((n) => n.startsWith('b__')));
  await logged(server, /b: is left out: no value for NOT_ANYWHERE, NOR_THIS/);
  await until('what c prints', () => /c: my key is \*\*\*/.test(server.stderr()));
  assert.doesNotMatch(server.stderr(), /open-sesame-7|in-plain-sight/);
});

test('tools are renamed, described anew, hidden and pinned, for calls as for lists', async (t) => {
  const { client, server } = await serveAndConnect(t, {
    servers: {
      s: {
        ...fake('--name', 's'),
        tools: {
          echo: { name: 'say', description: 'Says it', arguments: { tone: 'calm', n: 1.50 } },
          add: { hide: true },
        },
      },
    },
  }, ['s__say']);
  const { tools } = (await client.request('tools/list')).result;
  assert.equal(tools.find((x) => x.name === 's__say').description, 'Says it');
  assert.ok(!tools.some((x) => x.name === 's__add' || x.name === 's__echo'));
  const said = await client.call('s__say', { tone: 'angry', text: 'hi' });
  assert.deepEqual(said.result.structuredContent, { text: 'hi', tone: 'calm', n: 1.5 });
  for (const gone of ['s__add', 's__echo']) {
    assert.match((await client.call(gone)).error.message, /unknown tool: s__/);
  }
  const alone = await new HttpClient(`${server.url}/s`).connect();
  assert.ok((await alone.toolNames()).includes('say'), 'overrides hold at /mcp/<server> too');
});

test('a remembered start failure does not stop the others, and says why', async (t) => {
  const { client } = await serveAndConnect(t, {
    servers: { no: { command: 'no-such-program-anywhere' }, yes: fake('--name', 'yes') },
  }, ['yes__echo']);
  const { error } = await client.call('no__thing');
  assert.match(error.message, /unknown tool: no__thing; server 'no' is not available: .*no-such-program-anywhere/);
});

test('a server that ends at an unknown first message is asked in its own way the next time', async (t) => {
  // Some servers exit when their first message is not initialize.
  const picky = `
    const rl = require('readline').createInterface({ input: process.stdin });
    let greeted = false;
    rl.on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      if (!greeted && method !== 'initialize') process.exit(3);
      greeted = true;
      const results = {
        initialize: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'p', version: '1' } },
        'tools/list': { tools: [{ name: 'ok', inputSchema: { type: 'object' } }] },
      };
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
    });`;
  const { client } = await serveAndConnect(t,
    { servers: { p: { command: process.execPath, args: ['-e', picky] } } }, ['p__ok']);
  assert.ok((await client.call('p__ok')).result);
});

const asking = (more = {}) => ({
  command: process.execPath, args: [path.join(root, 'tests/fixture/asking_server.mjs')], ...more,
});

test('roots of a session reach its own server, and their changes too', async (t) => {
  const server = await serve(t, { servers: { a: asking({ instances: 'per-session' }) } });
  const client = await new HttpClient(server.url).connect({ capabilities: { roots: { listChanged: true } } });
  const stream = await client.listen();
  let roots = ['file:///one'];
  const answered = new Set();
  const answering = setInterval(async () => {
    for (const m of stream.messages().filter((x) => x.method === 'roots/list' && !answered.has(x.id))) {
      answered.add(m.id);
      await client.post({ jsonrpc: '2.0', id: m.id, result: { roots: roots.map((uri) => ({ uri })) } });
    }
  }, 20);
  t.after(() => clearInterval(answering));
  await client.waitFor('a__roots');
  await client.text('a__roots'); // the first call starts the session's own instance, which asks at once
  // After that call: a question that comes while a call is open goes to the stream of that call.
  const seen = async (asked, expected) => {
    await until(`question ${asked}`, () => answered.size === asked);
    await until(`roots ${expected}`, async () => await client.text('a__roots') === JSON.stringify(expected));
  };
  await seen(1, ['file:///one']);
  roots = ['file:///one', 'file:///two'];
  assert.equal((await client.notify('notifications/roots/list_changed')).status, 202);
  await seen(2, ['file:///one', 'file:///two']);
  stream.close();
});

test('the end of a visit is told to the agent that was sent there, and to no other', async (t) => {
  const server = await serve(t, { servers: { a: asking() } });
  const connect = async () => {
    const client = await new HttpClient(server.url).connect({ capabilities: { elicitation: { url: {} } } });
    await client.waitFor('a__visit');
    return { client, stream: await client.listen() };
  };
  const [sent, other] = [await connect(), await connect()];
  const call = sent.client.post({
    jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'a__visit', arguments: {} },
  });
  // The question comes on the stream of the call; its id is the first of this session.
  await until('the answer to be taken', async () => {
    const answer = await sent.client.post({ jsonrpc: '2.0', id: 1, result: { action: 'accept' } });
    return answer.status === 202 && Promise.race([call.then(() => true), new Promise((r) => { setTimeout(r, 50, false); })]);
  });
  await sent.stream.waitFor('notifications/elicitation/complete');
  await other.stream.settle();
  assert.equal(other.stream.count('notifications/elicitation/complete'), 0);
  sent.stream.close();
  other.stream.close();
});

// The agent kept showing a question that the server had withdrawn, until the call was over.
for (const expose of ['full', 'search']) {
  test(`a question that its server takes back is taken back at the agent (expose: ${expose})`, async (t) => {
    const file = writeConfig(tempDir(), { expose, servers: { a: asking() } });
    const client = await new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]).connect({ capabilities: { elicitation: {} } });
    await client.waitFor(expose === 'search' ? 'call_tool' : 'a__go_on');
    const call = (name) => client.request('tools/call', expose === 'search'
      ? { name: 'call_tool', arguments: { name, arguments: {} } } : { name, arguments: {} });
    const mind = call('a__change_mind');
    const heard = (method) => until(method, () => client.messages().find((m) => m.method === method));
    const { id } = await heard('elicitation/create');
    assert.equal((await heard('notifications/cancelled')).params.requestId, id);
    client.send({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } }); // too late, and harmless
    assert.ok((await call('a__go_on')).result);
    assert.ok((await mind).result);
    assert.equal(client.messages().filter((m) => m.method === 'notifications/cancelled').length, 1);
  });
}

test('rialto stdio: the greeting waits for servers never seen before, lists never do; --wait 0 waits for nobody', async (t) => {
  const dir = tempDir();
  const go = path.join(dir, 'go');
  const file = writeConfig(dir, {
    servers: { slow: fragile(path.join(dir, 'died'), '--wait', go), quick: fake('--name', 'quick') },
  });
  const hasty = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file, '--wait', '0']);
  await hasty.connect();
  const known = (await hasty.request('tools/list')).result.tools.map((x) => x.name);
  assert.ok(!known.some((n) => n.startsWith('slow__')), 'it cannot be up: it waits for the file');
  const patient = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file, '--wait', '1m']);
  const greeted = patient.connect();
  assert.equal(await Promise.race([greeted.then(() => 'greeted'), sleep(300).then(() => 'waits')]), 'waits');
  fs.writeFileSync(go, '');
  await greeted;
  const names = (await patient.request('tools/list')).result.tools.map((x) => x.name);
  assert.ok(names.includes('slow__peek') && names.includes('quick__echo'), names.join());
  const wrong = await rialto(['stdio', '--alone', '-c', file, '--wait', 'soon']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /--wait/);
});

// printf '...' | rialto stdio: all input has come, and the pipe is closed, before any server is up.
test('rialto stdio: what was sent before the end of input is answered, the greeting that waits too', async () => {
  const file = writeConfig(tempDir(), { servers: { a: fake('--name', 'a', '--init-delay', 1700) } });
  const messages = [
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } } },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list' },
  ];
  const input = messages.map((m) => `${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`).join('');
  const { code, stdout } = await rialto(['stdio', '--alone', '-c', file, '--wait', '4s'], { input });
  assert.equal(code, 0);
  const [greeting, list] = stdout.trim().split('\n').map((l) => JSON.parse(l));
  assert.equal(greeting.result.serverInfo.name, 'rialto');
  assert.ok(list.result.tools.some((x) => x.name === 'a__echo'), stdout);
});

test('what a server offered before is listed at once while it starts, and a call waits for it', async (t) => {
  const dir = tempDir();
  const go = path.join(dir, 'go');
  const env = { XDG_CACHE_HOME: path.join(dir, 'cache') };
  const config = { servers: { slow: fragile(path.join(dir, 'died'), '--wait', go), quick: fake('--name', 'quick') } };
  const file = writeConfig(dir, config);
  fs.writeFileSync(go, '');
  const first = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file], { env });
  await first.connect();
  await until('the slow tool', async () =>
    (await first.request('tools/list')).result.tools.some((x) => x.name === 'slow__peek'));
  await first.stop();
  const kept = path.join(env.XDG_CACHE_HOME, 'rialto/catalogs');
  assert.equal(fs.statSync(kept).mode & 0o777, 0o700);
  for (const name of fs.readdirSync(kept)) assert.equal(fs.statSync(path.join(kept, name)).mode & 0o777, 0o600);

  fs.unlinkSync(go);
  const second = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file, '--wait', '1h'], { env });
  await second.connect();
  const names = (await second.request('tools/list')).result.tools.map((x) => x.name);
  assert.ok(names.includes('slow__peek') && names.includes('quick__echo'), names.join());
  const call = second.request('tools/call', { name: 'slow__secret', arguments: {} });
  assert.equal(await Promise.race([call.then(() => 'answered'), sleep(200).then(() => 'waits')]), 'waits');
  fs.writeFileSync(go, '');
  assert.ok((await call).result);
  await second.stop();
  assert.doesNotMatch(second.lines.join('\n'), /list_changed/, 'nothing was new');

  // A changed entry is another server: nothing is remembered of it, and it does not come up here.
  const broken = writeConfig(dir, { servers: { ...config.servers, quick: fake('--name', 'quick', '--exit-at-once') } });
  const third = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', broken], { env });
  await third.connect();
  const now = (await third.request('tools/list')).result.tools.map((x) => x.name);
  assert.ok(now.includes('slow__peek') && !now.includes('quick__echo'), now.join());
});

test('a remembered server that does not come up is taken off the list', async (t) => {
  const dir = tempDir();
  const env = { XDG_CACHE_HOME: path.join(dir, 'cache') };
  const program = path.join(dir, 'program');
  fs.symlinkSync(fakeBin, program);
  const file = writeConfig(dir, { listen: '127.0.0.1:0', servers: { a: { command: program, args: ['--name', 'a'] } } });
  const first = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file], { env });
  await first.connect();
  assert.ok((await first.request('tools/list')).result.tools.length > 0);
  await first.stop();
  fs.unlinkSync(program);
  const second = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file], { env });
  await second.connect();
  await until('an empty list', async () => (await second.request('tools/list')).result.tools.length === 0);
  assert.match((await second.request('tools/call', { name: 'a__echo', arguments: {} })).error.message, /not available/);

  fs.symlinkSync(fakeBin, program);
  const forgetful = writeConfig(dir, { remember: false, servers: { a: { command: program, args: ['--name', 'b'] } } });
  const third = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', forgetful], { env });
  await third.connect();
  await third.stop();
  assert.equal(fs.readdirSync(path.join(env.XDG_CACHE_HOME, 'rialto/catalogs')).length, 1);
});
