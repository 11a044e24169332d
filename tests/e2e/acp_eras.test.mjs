// Every generation of MCP over ACP with official MCP clients of both eras, by both bridges: the same
// checks as for any other server. M4 carries the stateless era, all others the initialize era; where
// client and server differ, and always over HTTP, the core translates; else messages pass through it as
// they are (decision 009).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, open, proxy } from './acp_lib.mjs';
import { checks, connect } from './era_checks.mjs';
import { fixtureScript } from './peers.mjs';

const dialects = ['M0', 'M0b', 'M1', 'M2a', 'M3a', 'M3c', 'M4'];

// A bridged server has one client only, so it may send requests that only one client can answer.
async function roots(client) {
  assert.equal(await client.text('test_input_required_result_list_roots'), 'Roots: file:///home/me');
}

/** The transport of a declaration, as an agent makes it. */
const transportOf = ({ command, args, env, url, headers }) => (sdk) => (command
  ? new sdk.StdioClientTransport({ command, args, env: { ...process.env, ...Object.fromEntries(env.map((e) => [e.name, e.value])) }, stderr: 'inherit' })
  : new sdk.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: Object.fromEntries(headers.map((h) => [h.name, h.value])) } }));

for (const bridge of ['stdio', 'http']) {
  for (const [kind, clientEra] of [['SDK v1', 'legacy'], ['SDK v2, modern', 'modern']]) {
    test(`${kind} by the ${bridge} bridge`, { timeout: 120_000, concurrency: 3 }, async (t) => {
      const c = await open(t, ['agent', '--mcp-bridge', bridge, proxy('P2', '--mcp', dialects.join(), '--real', fixtureScript),
        agent('--http', '--no-connect', 'yes')]);
      const declared = await c.ask(c.session, { command: 'declared' });
      assert.deepEqual(declared.map((d) => d.name), dialects);
      // In parallel: these tests mostly wait.
      await Promise.all(declared.map((d) => t.test(d.name, async (tt) => {
        const client = await connect(tt, kind, transportOf(d));
        client.name = `${kind} ${d.name}`;
        const era = d.name === 'M4' ? 'modern' : 'legacy';
        const plain = bridge === 'stdio' && era === clientEra;
        for (const [name, check] of Object.entries({ ...checks, roots })) {
          if (plain && name.startsWith('knows nothing')) continue; // here the server sees all that its client says
          await tt.test(name, { timeout: 60_000 }, () => check(client, { era, plain, name: plain ? 'fixture' : 'rialto' }));
        }
      })));
    });
  }
}
