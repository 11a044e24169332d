// The two eras of MCP in all four pairs: official clients of either era with a server of either era
// behind rialto.
import { test } from 'node:test';
import { checks, connect, kinds } from './era_checks.mjs';
import { rialtoBin, serve, tempDir, writeConfig } from './lib.mjs';
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
