// The two eras of MCP in all four pairs: official clients of either era with a server of either era
// behind rialto.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { test } from 'node:test';
import { checks, connect, kinds } from './era_checks.mjs';
import { HttpClient, rialtoBin, serve, tempDir, writeConfig } from './lib.mjs';
import { fixtureEntry, fixtureOverHttp, ModernClient, serveDual } from './peers.mjs';

const eras = ['legacy', 'modern'];

/** Serves the fixture and waits until it is ready: the first response to an agent is complete then. */
async function serveFixture(t, entry, more = {}) {
  const server = await serve(t, { servers: { fixture: entry }, ...more });
  await new ModernClient(`${server.url}/fixture`).waitFor('echo');
  return Object.assign(server, { fixture: `${server.url}/fixture` });
}

const overHttp = (url, headers = {}) => (sdk) => new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const overStdio = (file) => (sdk) => new sdk.StdioClientTransport({
  command: rialtoBin, args: ['stdio', '--alone', '-c', file], env: process.env, stderr: 'ignore',
});

for (const era of eras) {
  test(`a ${era} server`, async (t) => {
    const server = await serveFixture(t, fixtureEntry(era));
    for (const kind of Object.keys(kinds)) {
      await t.test(`and ${kind} over HTTP`, async (tt) => {
        const agent = await connect(tt, kind, overHttp(server.fixture));
        agent.name = kind;
        for (const [name, check] of Object.entries(checks)) {
          await tt.test(name, { timeout: 30_000 }, () => check(agent, { era, known: true }));
        }
      });
    }
  });

  test(`a ${era} server and agents over stdio`, async (t) => {
    const file = writeConfig(tempDir(), { names: 'bare', servers: { fixture: fixtureEntry(era) } });
    for (const kind of Object.keys(kinds)) {
      await t.test(kind, async (tt) => {
        const agent = await connect(tt, kind, overStdio(file));
        agent.name = kind;
        for (const name of ['lists, calls, reads, prompts and completions', 'progress',
          'a form and a page', 'sampling', 'two questions, one after the other', 'cancel',
          'list changes', 'resource updates']) {
          await tt.test(name, { timeout: 30_000 }, () => checks[name](agent, { era }));
        }
      });
    }
  });

  test(`a ${era} server behind HTTP`, async (t) => {
    const server = await serveFixture(t, await fixtureOverHttp(t, era));
    for (const kind of ['SDK v1', 'SDK v2, modern']) {
      await t.test(`and ${kind}`, async (tt) => {
        const agent = await connect(tt, kind, overHttp(server.fixture));
        agent.name = kind;
        for (const [name, check] of Object.entries(checks)) {
          await tt.test(name, { timeout: 30_000 }, () => check(agent, { era, known: true }));
        }
      });
    }
  });
}

// A server of both eras was always spoken to in the new one. Agents of the initialize era need its
// questions, logs and session state in the old one: each agent gets a connection of its own era.
for (const transport of ['stdio', 'HTTP']) {
  test(`a server of both eras over ${transport}`, async (t) => {
    const entry = transport === 'stdio' ? fixtureEntry('dual') : await fixtureOverHttp(t, 'dual');
    const { url } = await serveDual(t, { servers: { fixture: entry } });
    for (const kind of Object.keys(kinds)) {
      await t.test(`and ${kind}`, async (tt) => {
        const agent = await connect(tt, kind, overHttp(`${url}/fixture`));
        agent.name = kind;
        for (const [name, check] of Object.entries(checks)) {
          await tt.test(name, { timeout: 30_000 }, () => check(agent, { era: agent.era, known: true }));
        }
      });
    }
  });
}

// With one server to which each caller signs in for itself, a stateless agent with a token got the instances
// for the initialize era of all other servers.
test('beside a server with auth.per_user, a server of both eras meets a stateless agent in its own', async (t) => {
  const script = "let era; require('readline').createInterface({ input: process.stdin }).on('line', (line) => {"
    + " const { id, method, params } = JSON.parse(line); if (id === undefined) return;"
    + " if (method === 'server/discover') era = 'stateless'; if (method === 'initialize') era = 'initialize';"
    + " const serverInfo = { name: 'x', version: '1' }, capabilities = { tools: {} };"
    + " const result = { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities, serverInfo },"
    + " initialize: { protocolVersion: params?.protocolVersion, capabilities, serverInfo },"
    + " 'tools/list': { tools: [{ name: 'era', inputSchema: { type: 'object' } }] },"
    + " 'tools/call': { content: [{ type: 'text', text: era }] } }[method];"
    + " if (era === 'stateless' && result) Object.assign(result, { resultType: 'complete', ttlMs: 0, cacheScope: 'private' });"
    + " console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) })); });";
  const locked = http.createServer((req, res) => res.writeHead(401).end());
  await new Promise((resolve) => { locked.listen(0, '127.0.0.1', resolve); });
  t.after(() => { locked.closeAllConnections(); locked.close(); });
  const server = await serve(t, {
    servers: {
      dual: { command: process.execPath, args: ['-e', script] },
      mail: { url: `http://127.0.0.1:${locked.address().port}/mcp`, auth: { per_user: true } },
    },
    auth: { tokens: [{ name: 'anna', hash: `sha256:${createHash('sha256').update('a').digest('hex')}` }] },
  }, { env: { XDG_STATE_HOME: tempDir() } });
  const agent = new ModernClient(server.url, { headers: { Authorization: 'Bearer a' } });
  await agent.waitFor('dual__era', 'mail__sign_in');
  assert.equal(await agent.text('dual__era'), 'stateless');
  const session = await new HttpClient(server.url, { token: 'a' }).connect();
  assert.equal(await session.text('dual__era'), 'initialize');
});
