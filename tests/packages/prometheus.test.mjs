// What Prometheus' own tool says of the metrics of a running daemon and of the alert rules.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fake, root, serveAndConnect } from '../e2e/lib.mjs';
import { run } from './lib.mjs';

const rules = 'packaging/prometheus/rialto.rules.yml';

test('the text of /metrics is without faults, and has all that the rules ask for', async (t) => {
  const { server, client } = await serveAndConnect(t, { servers: { one: fake(), broken: { command: '/does/not/exist' } } }, ['one__echo']);
  await client.text('one__echo', { text: 'hello' });
  const text = await (await fetch(`${server.origin}/metrics`)).text();
  run('promtool', ['check', 'metrics'], { input: text });
  const wanted = new Set(fs.readFileSync(path.join(root, rules), 'utf8').match(/\brialto_\w+/g));
  assert.ok(wanted.size >= 6);
  for (const name of wanted) assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'), name);
});

test('promtool finds no fault in the rules, and each goes off when it should', () => {
  run('promtool', ['check', 'rules', rules]);
  assert.match(run('promtool', ['test', 'rules', 'packaging/prometheus/rialto.rules.test.yml']), /SUCCESS/);
});
