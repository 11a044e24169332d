// Any agent on the bus could register a server at any URL: the bridge then sent requests to whatever listens
// on its own machine and in its networks, the metadata service of a cloud for example, and told the agent
// what had come back. Now the operator names the hosts (bus.register_hosts, empty by default), the address
// that is connected to in the end is checked as well, and the agent is not told what a host answered.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { embeddedRig } from './bus_rig.mjs';
import { exchange, fake, fakeBin, logged, serve, serveAndConnect, sleep, tempDir, until, writeConfig } from './lib.mjs';
import { listen } from './upstream_lib.mjs';
import { freePort } from './brokers.mjs';

async function work(t, hosts, { servers = { main: fake('--name', 'main') }, ...config } = {}) {
  const place = embeddedRig(t).place();
  const bus = { ...place.bus, role: 'worker', agents: [place.agent], ...(hosts && { register_hosts: hosts }) };
  const worker = await serve(t, { servers, bus, ...config });
  const agent = await place.join(t, place.agent);
  await agent.hears('main');
  const read = () => fs.readFileSync(worker.config, 'utf8');
  const register = (serverName, url, type = 'http') => agent.manage('RegisterServer',
    { serverName, type, url, command: null, args: [], env: {} });
  return { worker, agent, read, register };
}

/** An HTTP server that is no MCP server, and whose answers must not reach the agent. */
async function secretive(t) {
  const seen = [];
  const server = await listen(t, (request, response) => {
    seen.push(request.url);
    response.writeHead(418, 'Hidden Teapot', { 'Content-Type': 'application/json', 'X-Hidden': 'in a header' });
    response.end('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"hidden in the body"}}');
  });
  return { ...server, url: server.url, port: server.port, seen };
}

test('without bus.register_hosts no agent registers anything', async (t) => {
  const target = await secretive(t);
  const { register, read } = await work(t);
  const before = read();
  const { success, error } = await register('x', target.url);
  assert.equal(success, false);
  assert.match(error, /bus\.register_hosts/);
  assert.equal(read(), before);
  assert.deepEqual(target.seen, []);
});

test('hosts that the operator has not named are refused, however they are written', async (t) => {
  const target = await secretive(t);
  const { register, read } = await work(t, ['tools.example.com', '*.example.org', '127.0.0.1:1']);
  const before = read();
  for (const host of ['127.0.0.1', 'localhost', '[::1]', '0x7f000001', '2130706433', '0', 'tools.example.com@127.0.0.1',
    'tools.example.com.127.0.0.1.nip.io', 'example.org', 'evilexample.org']) {
    for (const scheme of ['http', 'ws']) {
      const { success, error } = await register('x', `${scheme}://${host}:${target.port}/mcp`);
      assert.deepEqual([success, /bus\.register_hosts|url|URL/i.test(error)], [false, true], `${host}: ${error}`);
    }
  }
  assert.equal(read(), before);
  assert.deepEqual(target.seen, []);
});

test('a name that the operator allows but that leads to this machine is not connected to', async (t) => {
  const target = await secretive(t);
  // libcurl resolves every name below .localhost to this machine, without DNS.
  const { register, read, worker } = await work(t, ['*.localhost']);
  const { success, error } = await register('x', `http://tools.localhost:${target.port}/mcp`);
  assert.equal(success, false);
  assert.match(error, /not kept/);
  assert.deepEqual(target.seen, []);
  assert.ok(!read().includes('tools.localhost'));
  await logged(worker, /x: failed: tools\.localhost:\d+: connections to it are not allowed/);
});

test('what the operator has written as an address, or as localhost, can be registered', async (t) => {
  const { server } = await serveAndConnect(t, { servers: { far: fake('--name', 'far') } }, ['far__echo']);
  const port = new URL(server.url).port;
  const { register, agent } = await work(t, [`127.0.0.1:${port}`, 'localhost']);
  for (const [name, host] of [['number', '127.0.0.1'], ['name', 'localhost']]) {
    const answer = await register(name, `http://${host}:${port}/mcp/far`);
    assert.deepEqual([answer.success, answer.error], [true, null]);
    assert.match(await agent.text(name, 'echo', { text: 'there' }), /there/);
  }
});

test('the agent hears nothing of what a foreign server answers; the operator does', async (t) => {
  const target = await secretive(t);
  const heard = [];
  const { register, agent, worker, read } = await work(t, ['127.0.0.1']);
  for (const type of ['http', 'sse']) {
    heard.push(JSON.stringify(await register('x', target.url, type)));
    await until('it is gone', () => !read().includes(target.url));
  }
  heard.push(JSON.stringify(await register('y', `http://127.0.0.1:1/`)));
  const closed = JSON.parse(heard.pop()).error, answered = JSON.parse(heard[0]).error;
  assert.ok(target.seen.length);
  assert.doesNotMatch(heard.join(), /hidden|418|teapot/i);
  assert.match(answered, /did not answer as an MCP server/);
  assert.equal(closed, answered, 'and not whether anybody listens there');
  await logged(worker, /x: failed: .*(418|hidden)/);
  assert.match(await agent.text('main', 'echo', { text: 'fine' }), /fine/);
});

test('an entry of an agent that is in the file already obeys the same', async (t) => {
  const target = await secretive(t);
  const entry = (scheme) => ({ url: `${scheme}://127.0.0.1:${target.port}/mcp`, origin: 'agent' });
  const { worker, agent } = await work(t, ['tools.example.com'], {
    servers: { main: fake('--name', 'main'), old: entry('http'), older: entry('ws') },
  });
  for (const name of ['old', 'older']) {
    await logged(worker, new RegExp(`${name}: failed: .*connections to it are not allowed`));
    const { error } = await agent.manage('GetServiceDetails', { serverName: name });
    assert.match(error, /cannot be reached|not connected/);
    assert.doesNotMatch(error, /127\.0\.0\.1/);
  }
  // The same for a server that is added by a reload.
  const config = JSON.parse(fs.readFileSync(worker.config, 'utf8'));
  config.servers.late = entry('http');
  config.servers.late.url += '/late';
  fs.writeFileSync(worker.config, JSON.stringify(config));
  await logged(worker, /late: failed: .*connections to it are not allowed/);
  await sleep(500);
  assert.deepEqual(target.seen, []);
});

test('an agent cannot register the bridge itself', async (t) => {
  const port = await freePort();
  const { register, read, worker } = await work(t, ['127.0.0.1'], { listen: `127.0.0.1:${port}` });
  const before = read();
  const { success, error } = await register('self', `http://127.0.0.1:${port}/mcp`);
  assert.equal(success, false);
  assert.match(error, /not kept: leads back to this bridge/);
  await until('it is not in the file any more', () => read() === before);
  const tools = JSON.parse((await exchange(`${worker.origin}/status`, { method: 'GET' })).text).servers;
  assert.deepEqual(tools.map((s) => s.name), ['main']);
});

// A bridge that leads back to this one was accepted at first. The circle then broke somewhere, perhaps at
// the other bridge's server, and the entry stayed in the file.
for (const between of [1, 2]) {
  test(`an agent cannot register a bridge that leads here, ${between} bridges away`, async (t) => {
    const ports = await Promise.all(Array.from({ length: between + 1 }, freePort));
    const urlOf = (port) => `http://127.0.0.1:${port}/mcp`;
    const { register, read, worker } = await work(t, ['127.0.0.1'], { listen: `127.0.0.1:${ports[0]}` });
    const others = [];
    for (let i = 1; i <= between; i++) {
      const config = { listen: `127.0.0.1:${ports[i]}`, servers: { next: { url: urlOf(ports[i - 1]) } } };
      others.push((await serveAndConnect(t, config, [`${'next__'.repeat(i)}main__echo`])).server);
    }
    const before = read();
    const { success, error } = await register('friend', urlOf(ports[between]));
    assert.deepEqual([success, error], [false, "the server was not kept: leads back to this bridge: remove 'friend' here, "
      + 'or what leads to this bridge behind it']);
    await until('it is not in the file any more', () => read() === before);
    await sleep(500);
    for (const server of [worker, ...others]) {
      const { servers } = JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);
      assert.deepEqual(servers.map((s) => s.state), ['up']);
    }
  });
}

// Agents could register with a bridge whose file is JSON, and were told to have it done by hand where it is
// YAML, which most operators write. `${NAME}` in what an agent wrote is not expanded there either.
test('an agent registers with a bridge whose file is YAML; comments stay, and nothing is filled in', async (t) => {
  const { server: far } = await serveAndConnect(t, { servers: { far: fake('--name', 'far') } }, ['far__echo']);
  const seen = [];
  const spy = await listen(t, (request, response) => { seen.push(request.url); response.writeHead(404).end(); });
  const place = embeddedRig(t).place();
  const before = `# the tools of this machine
servers:
  main: # always there
    command: ${fakeBin}
    args: [--name, main]
  # spare: {command: x}

# the bus
bus:
  url: ${place.bus.url}
  agents: [${place.agent}] # ours
  register_hosts: ['127.0.0.1']
`;
  const file = writeConfig(tempDir(), before, 'rialto.yaml');
  const read = () => fs.readFileSync(file, 'utf8');
  await serve(t, null, { args: ['-c', file], env: { HIDDEN_VALUE: 'hidden' } });
  const agent = await place.join(t, place.agent);
  await agent.hears('main');
  const register = (serverName, url) => agent.manage('RegisterServer',
    { serverName, type: 'http', url, command: null, args: [], env: {} });

  const url = `${far.url}/far`;
  assert.deepEqual(await register('far', url).then((a) => [a.success, a.error]), [true, null]);
  assert.equal(read(), before.replace('command: x}\n', `command: x}\n  far:\n    url: "${url}"\n    origin: agent\n`));
  assert.match(await agent.text('far', 'echo', { text: 'there' }), /there/);
  assert.equal((await agent.manage('UnregisterServer', { serverName: 'far' })).error, null);
  assert.equal(read(), before);

  assert.equal((await register('thief', `${spy.url}/\${HIDDEN_VALUE}`)).success, false);
  await until('it is gone from the file', () => read() === before);
  assert.doesNotMatch(seen.join(), /hidden/);
});
