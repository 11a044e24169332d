// One whole run of the release build under valgrind: no error, nothing lost.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, HttpClient, releaseBin, serveAndConnect, tempDir } from './lib.mjs';

test('sessions, calls, progress, a crash and the end: valgrind finds nothing', async (t) => {
  const log = path.join(tempDir(), 'valgrind.log');
  const { client, server } = await serveAndConnect(t, {
    servers: { alpha: fake('--name', 'alpha'), beta: fake('--name', 'beta', '--junk') },
  }, ['alpha__echo', 'beta__echo'], {
    bin: ['valgrind', '--quiet', '--leak-check=full', '--errors-for-leak-kinds=definite,indirect,possible',
      '--show-leak-kinds=definite,indirect,possible', '--error-exitcode=99', '--track-fds=no',
      `--log-file=${log}`, releaseBin],
    slack: 10,
  });
  const changed = 'notifications/tools/list_changed';
  const stream = await client.listen();
  await stream.settle();
  const before = stream.count(changed);
  const other = await new HttpClient(server.url).connect();
  await Promise.all(Array.from({ length: 20 }, (_, i) =>
    (i % 2 ? client : other).call(`${i % 3 ? 'alpha' : 'beta'}__echo`, { i, text: 'x'.repeat(i * 500) })));
  const { events } = await client.rawRequest('"p"', 'tools/call',
    '{"name":"alpha__slow","arguments":{"steps":3,"ms":20},"_meta":{"progressToken":"t"}}');
  assert.equal(events.length, 3);
  await client.post('{"broken');
  await client.call('no_such_tool');
  const crash = await client.call('alpha__crash');
  assert.ok(crash.error);
  await stream.waitFor(changed, before + 2); // once for the crash, once for the new start
  await client.waitFor('alpha__echo');
  client.call('beta__sleep', { ms: 60_000 }).catch(() => {});
  assert.ok((await other.close()).status < 300);
  await server.stop('SIGTERM').catch((e) => assert.fail(`${e.message}\n${fs.readFileSync(log, 'utf8')}`));
  // Findings begin with ==PID==; --PID-- is about valgrind itself (it may not know pidfd_open).
  const findings = fs.readFileSync(log, 'utf8').split('\n').filter((l) => /^==\d+==/.test(l));
  assert.deepEqual(findings, []);
});
