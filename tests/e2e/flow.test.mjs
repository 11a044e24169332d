// ARCHITECTURE.md says through which files a call goes. Descriptions of code become outdated
// unnoticed, and functions that only pass a call on are added one at a time: here a debugger takes the
// stack when a call's bytes are put on the server's pipe, and it is compared with the page.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  fake, HttpClient, rialtoBin, root, start, tempDir, until, within, writeConfig,
} from './lib.mjs';

const MOST_FRAMES = 16; // from the callback of the read to the bytes in the pipe's buffer

function documentedFiles() {
  const text = fs.readFileSync(path.join(root, 'ARCHITECTURE.md'), 'utf8');
  const [, picture] = text.match(/## How a call flows\n[^`]*(?:`[^`\n]+`[^`]*)*```\n([^`]+)```/);
  return picture.trim().split(/\s*->\s*/);
}

/** The stack frames of the call, from the read on: [function, file] each. */
function framesOf(text) {
  const frames = [...text.matchAll(/^#\d+ +(?:0x[0-9a-f]+ in )?(\w+) .* at (?:\S*\/)?src\/(\S+)\.c:\d+$/gm)]
    .map(([, name, file]) => [name, file]).reverse();
  return frames.slice(frames.findIndex(([name]) => name === 'on_read'));
}

/** What the debugger says of a call, and its frames from the read to the pipe. */
async function stackOfCall() {
  const dir = tempDir();
  const config = writeConfig(dir, { listen: '127.0.0.1:0', servers: { one: fake() } });
  // params_put writes the call's params; at the next stream_wrote the message is complete.
  const orders = ['set pagination off', 'set print frame-arguments none', 'set width 0',
    'handle SIGCHLD SIGPIPE nostop noprint pass', 'break params_put', 'run', 'break stream_wrote',
    'continue', 'backtrace', 'kill'];
  const child = start('gdb', ['-q', '-nx', '-batch', ...orders.flatMap((o) => ['-ex', o]),
    '--args', rialtoBin, 'serve', '-c', config], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0', DEBUGINFOD_URLS: '' }, // LeakSanitizer does not work under a debugger
  });
  // Each stream by itself: a log line that is read between two pieces of the backtrace would cut a frame's line in two,
  // and the frame was then missing.
  const said = { stdout: '', stderr: '' };
  for (const name of Object.keys(said)) child[name].on('data', (d) => { said[name] += d; });
  const all = () => Object.values(said).join('\n');
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  const [, origin] = await until('the listening line', () => all().match(/listening on (http:\/\/[^\s/]+)/), 60_000);
  const client = await new HttpClient(`${origin}/mcp`).connect();
  await client.waitFor('one__echo');
  client.call('one__echo', { text: 'x' }).catch(() => {}); // the program is killed after the backtrace
  await within(60_000, 'the end of the debugger', ended);
  const frames = framesOf(said.stdout);
  const files = frames.map(([, file]) => file).filter((file, n, list) => file !== list[n - 1]);
  return { frames, files, said: all() };
}

test('a call goes through the files that ARCHITECTURE.md names, and not through many functions', async () => {
  // The program does the same each time. What the debugger shows once lacked a frame, on a busy machine.
  let seen = await stackOfCall();
  for (let n = 0; n < 2 && seen.files.join() !== documentedFiles().join(); n++) seen = await stackOfCall();
  const { frames, files, said } = seen;
  assert.ok(frames.length > 0, said);
  assert.ok(frames.length <= MOST_FRAMES, `${frames.length} frames, not ${MOST_FRAMES}:\n${said}`);
  assert.deepEqual(files, documentedFiles(), said);
});
