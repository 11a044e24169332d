// tests/e2e/sandbox.test.mjs tells the story; here are servers of other languages, which must work at
// light and with the few rules that docs/operation.md names for their kind.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { rialto, tempDir, writeConfig } from '../e2e/lib.mjs';

const built = process.env.RIALTO_PEERS;
const venv = path.join(built, 'venv');

/** Calls a tool of a caged server, with a home folder that holds a secret. */
async function call(entry, tool, ...args) {
  const dir = tempDir();
  const home = path.join(dir, 'home');
  fs.mkdirSync(home);
  const config = writeConfig(dir, { servers: { peer: { start_timeout: '5m', ...entry } } });
  const { code, stdout, stderr } = await rialto(['call', '-c', config, 'peer', tool, ...args],
    { env: { HOME: home, XDG_STATE_HOME: path.join(dir, 'state') }, timeout: 300_000 });
  assert.equal(code, 0, stdout + stderr);
  return stdout;
}

for (const sandbox of ['light', 'strict', ...(process.getuid() ? [{ processes: 64 }] : [])]) {
  // The file of the command can always be read and run: a static program needs nothing else.
  test(`mcp_go: a server in Go works at ${JSON.stringify(sandbox)}`, async () => {
    assert.match(await call({ command: path.join(built, 'mcp_go'), sandbox }, 'echo', 'path=/mine'), /mine/);
  });
}

const time = ['get_current_time', 'timezone=Europe/Berlin'];

for (const sandbox of [{ read: [venv] }, { read: [venv], memory: '512MiB', files: 128 }]) {
  test(`mcp_server_time: works with ${Object.keys(sandbox)} of its virtual environment`, async () => {
    assert.match(await call({ command: path.join(venv, 'bin/mcp-server-time'), sandbox }, ...time), /Europe\/Berlin/);
  });
}

test('mcp_server_time: works at light where its virtual environment is its own folder', async () => {
  const entry = { command: '/usr/bin/python3', args: [path.join(venv, 'bin/mcp-server-time')], cwd: venv, sandbox: 'light' };
  const paths = fs.globSync?.(path.join(venv, 'lib/python3*/site-packages')) ??
    fs.readdirSync(path.join(venv, 'lib')).map((v) => path.join(venv, 'lib', v, 'site-packages'));
  assert.match(await call({ ...entry, env: { PYTHONPATH: paths[0] } }, ...time), /Europe\/Berlin/);
});

test('mcp_server_time: uvx installs it once with the network, and it runs without', async () => {
  const through = ['SSL_CERT_FILE', 'UV_INDEX_URL', 'UV_DEFAULT_INDEX', 'HTTPS_PROXY', 'NO_PROXY'];
  const env = Object.fromEntries(through.filter((k) => process.env[k]).map((k) => [k, process.env[k]]));
  const entry = { command: path.join(venv, 'bin/uvx'), args: ['mcp-server-time'], env: { ...env, UV_PYTHON: '/usr/bin/python3' } };
  assert.match(await call({ ...entry, sandbox: { read: [venv] } }, ...time), /Europe\/Berlin/);
});
