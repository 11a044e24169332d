// Real clients in front, real servers behind: the official TypeScript SDK (v1 and v2, over HTTP and
// over stdio), the Inspector's command line and curl, with three npm servers.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  bothTypes, HttpClient, load, npmFolder, npmServer, rawMessages, rialtoBin, runCommand,
  sanitizerEnv, serve, tempDir, until, writeConfig,
} from './lib.mjs';

const inspector = path.join(npmFolder,
  'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

// Two SDK lines, with one way to make clients of them.
const sdks = {
  v1: {
    Client: load('@modelcontextprotocol/sdk/client/index.js').Client,
    Http: load('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport,
    Stdio: load('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
  },
  v2: {
    Client: load('@modelcontextprotocol/client').Client,
    Http: load('@modelcontextprotocol/client').StreamableHTTPClientTransport,
    Stdio: load('@modelcontextprotocol/client/stdio').StdioClientTransport,
  },
};

function threeServers() {
  const dir = tempDir();
  const files = path.join(dir, 'files');
  fs.mkdirSync(files);
  fs.writeFileSync(path.join(files, 'hello.txt'), 'hello from a file\n');
  return {
    files,
    config: {
      servers: {
        everything: npmServer('server-everything', ['stdio']),
        files: npmServer('server-filesystem', [files]),
        memory: npmServer('server-memory', [],
          { env: { MEMORY_FILE_PATH: path.join(dir, 'memory.jsonl') } }),
      },
    },
  };
}

const wanted = ['everything__echo', 'files__read_text_file', 'memory__read_graph'];

/** What every client must be able to do; `call` resolves to the result of a tool call. */
async function useAllThree(call, files, mark) {
  const echoed = await call('everything__echo', { message: `hi ${mark}` });
  assert.match(echoed.content[0].text, new RegExp(`hi ${mark}`));
  const read = await call('files__read_text_file', { path: path.join(files, 'hello.txt') });
  assert.match(read.content[0].text, /hello from a file/);
  await call('files__write_file', { path: path.join(files, `${mark}.txt`), content: mark });
  assert.equal(fs.readFileSync(path.join(files, `${mark}.txt`), 'utf8'), mark);
  await call('memory__create_entities',
    { entities: [{ name: mark, entityType: 'test', observations: ['seen'] }] });
  const graph = await call('memory__read_graph', {});
  assert.match(JSON.stringify(graph), new RegExp(mark));
}

async function useWithSdk(sdk, transport, files, mark) {
  const client = new sdk.Client({ name: `test-${mark}`, version: '1.0.0' });
  await client.connect(transport);
  try {
    assert.equal(client.getServerVersion().name, 'rialto');
    const names = await until('the tools of all three', async () => {
      const listed = (await client.listTools()).tools.map((tool) => tool.name);
      return wanted.every((w) => listed.includes(w)) && listed;
    }, 30_000);
    assert.ok(names.indexOf('everything__echo') < names.indexOf('files__read_text_file'));
    assert.ok(names.indexOf('files__read_text_file') < names.indexOf('memory__read_graph'));
    await useAllThree((name, args) => client.callTool({ name, arguments: args }), files, mark);

    const seen = [];
    const options = { onprogress: (p) => seen.push(p.progress), timeout: 20_000 };
    const params = {
      name: 'everything__trigger-long-running-operation', arguments: { duration: 1, steps: 4 },
    };
    const long = sdk === sdks.v1
      ? await client.callTool(params, undefined, options) : await client.callTool(params, options);
    assert.match(long.content[0].text, /completed/i);
    // Over stdio the SDK itself loses a progress message that arrives together with the answer, also
    // without anything in between; aggregate.test.mjs counts them all on the wire.
    assert.deepEqual(seen.slice(0, 3), [1, 2, 3]);
    await client.ping?.();
  } finally {
    await client.close();
  }
}

describe('over HTTP', { concurrency: false }, () => {
  let server;
  let files;
  const endings = [];
  before(async () => {
    const three = threeServers();
    files = three.files;
    server = await serve({ after: (f) => endings.push(f) }, three.config);
    await (await new HttpClient(server.url).connect()).waitFor(...wanted);
  });
  after(async () => {
    for (const end of endings) await end();
  });

  for (const line of ['v1', 'v2']) {
    test(`the TypeScript SDK ${line}`, async () => {
      const transport = new sdks[line].Http(new URL(server.url));
      await useWithSdk(sdks[line], transport, files, `http-${line}`);
    });
  }

  test('the Inspector', async () => {
    const inspect = async (...args) => {
      const run = await runCommand(process.execPath,
        [inspector, '--cli', server.url, '--format', 'json', ...args],
        { env: { HOME: tempDir() }, timeout: 60_000 });
      assert.equal(run.code, 0, run.stderr + run.stdout);
      const printed = JSON.parse(run.stdout);
      return printed.result ?? printed;
    };
    const { tools } = await inspect('--method', 'tools/list');
    assert.ok(wanted.every((w) => tools.some((tool) => tool.name === w)));
    await useAllThree((name, args) => inspect('--method', 'tools/call', '--tool-name', name,
      '--tool-args-json', JSON.stringify(args)), files, 'inspector');
  });

  test('curl', async () => {
    const curl = async (message, ...more) => {
      const run = await runCommand('curl', ['-sS', '-i', '--max-time', '20', '-X', 'POST', server.url,
        '-H', 'Content-Type: application/json', '-H', `Accept: ${bothTypes}`, ...more,
        '--data-binary', JSON.stringify(message)]);
      assert.equal(run.code, 0, run.stderr);
      const [head, ...rest] = run.stdout.split('\r\n\r\n');
      const headers = Object.fromEntries(head.split('\r\n').slice(1).map((l) => {
        const at = l.indexOf(':');
        return [l.slice(0, at).toLowerCase(), l.slice(at + 1).trim()];
      }));
      return { status: Number(head.split(' ')[1]), headers, text: rest.join('\r\n\r\n') };
    };
    const hello = await curl({
      jsonrpc: '2.0', id: 1, method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'curl', version: '7' } },
    });
    assert.equal(hello.status, 200);
    const session = ['-H', `Mcp-Session-Id: ${hello.headers['mcp-session-id']}`];
    assert.equal((await curl({ jsonrpc: '2.0', method: 'notifications/initialized' }, ...session)).status, 202);
    let id = 1;
    await useAllThree(async (name, args) => {
      const answer = await curl({
        jsonrpc: '2.0', id: ++id, method: 'tools/call', params: { name, arguments: args },
      }, ...session);
      return JSON.parse(rawMessages(answer).at(-1)).result;
    }, files, 'curl');
  });
});

describe('over stdio', { concurrency: false }, () => {
  for (const line of ['v1', 'v2']) {
    test(`the TypeScript SDK ${line}`, async () => {
      const { files, config } = threeServers();
      const transport = new sdks[line].Stdio({
        command: rialtoBin, args: ['stdio', '--alone', '-c', writeConfig(tempDir(), config)],
        env: { ...process.env, ...sanitizerEnv }, stderr: 'ignore',
      });
      await useWithSdk(sdks[line], transport, files, `stdio-${line}`);
    });
  }

  test('the Inspector', async () => {
    const { config } = threeServers();
    const dir = tempDir();
    const host = writeConfig(dir, {
      mcpServers: { rialto: { command: rialtoBin, args: ['stdio', '--alone', '-c', writeConfig(dir, config)] } },
    }, 'host.json');
    const run = await runCommand(process.execPath, [inspector, '--cli', '--config', host, '--server',
      'rialto', '--format', 'json', '--method', 'tools/call', '--tool-name', 'everything__echo',
      '--tool-args-json', '{"message":"hi"}'], { env: { HOME: dir }, timeout: 60_000 });
    assert.equal(run.code, 0, run.stderr + run.stdout);
    assert.match(run.stdout, /Echo: hi/);
  });
});
