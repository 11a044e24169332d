// What the page at the daemon's address costs in a real browser (Chromium): how soon it can be used, what 10,000 tools and
// 1,000 calls a second do to it and to the daemon.
//   bench/page.mjs [PROGRAM]
import fs from 'node:fs';
import path from 'node:path';
import { launch } from '../tests/e2e/browser_chromium_lib.mjs';
import { HttpClient, root, serve, sleep, until } from '../tests/e2e/lib.mjs';

const endings = [];
const t = { after: (fn) => endings.push(fn), diagnostic: () => {} };
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const program = path.resolve(process.argv[2] ?? path.join(root, 'build/rialto'));
const ROUNDS = 9, RATE = 1000, SECONDS = 5;
const cpu = (pid) => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).reduce((a, b) => a + Number(b), 0) * 10;

const manyTools = `
let buffer = '';
const tools = Array.from({ length: 10_000 }, (_, i) => ({ name: 'tool_' + i, description: 'Does the ' + i + '. thing', inputSchema: { type: 'object', properties: { n: { type: 'integer' } } } }));
const answers = { initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'many', version: '1' } }), 'tools/list': () => ({ tools }), 'tools/call': () => ({ content: [] }) };
process.stdin.on('data', (d) => { buffer += d; const lines = buffer.split('\\n'); buffer = lines.pop();
  for (const { id, method, params } of lines.map((l) => JSON.parse(l))) if (id !== undefined) console.log(JSON.stringify(answers[method] ? { jsonrpc: '2.0', id, result: answers[method](params) } : { jsonrpc: '2.0', id, error: { code: -32601, message: method } })); });
`;

/** Opens a page, and measures how many ms after the start of the navigation `selector` appeared. */
async function opened(browser, url, selector) {
  const page = await browser.newPage();
  await page.addInitScript((wanted) => new MutationObserver((_, observer) => {
    if (!document.querySelector(wanted)) return;
    globalThis.usable = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true }), selector);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.usable);
  return { page, ms: await page.evaluate(() => globalThis.usable) };
}

async function measure() {
  const browser = await launch(t);
  const small = await serve(t, null, { bin: [program] });
  const times = [];
  for (let i = 0; i < ROUNDS; i++) {
    const { page, ms } = await opened(browser, `${small.origin}/#/start`, '.offers li');
    times.push(ms);
    await page.close();
  }
  console.log(`page to its first tools, median of ${ROUNDS}:            ${median(times).toFixed(0)} ms  (at most 200)`);

  const many = await serve(t, { servers: { many: { command: process.execPath, args: ['-e', manyTools] } } }, { bin: [program] });
  const client = await new HttpClient(many.url).connect();
  await client.waitFor('many__tool_9999');
  const { page, ms } = await opened(browser, `${many.origin}/#/tools`, '.offers li');
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  console.log(`10,000 tools: shown after ${ms.toFixed(0)} ms, ${elements} elements  (under 5,000)`);

  await page.goto(`${many.origin}/#/calls`);
  await page.waitForSelector('h1');
  await page.evaluate(() => {
    globalThis.busy = 0;
    new PerformanceObserver((list) => { for (const e of list.getEntries()) globalThis.busy += e.duration; }).observe({ entryTypes: ['longtask'] });
  });
  const before = cpu(many.pid), began = performance.now();
  let made = 0;
  while (performance.now() - began < SECONDS * 1000) {
    const due = Math.floor(((performance.now() - began) / 1000) * RATE) - made;
    await Promise.all(Array.from({ length: Math.min(due, 64) }, () => client.call('many__tool_1', {})));
    made += Math.min(due, 64);
    if (due <= 0) await sleep(1);
  }
  const seconds = (performance.now() - began) / 1000;
  const shown = await until('the last call', () => page.evaluate(() => document.querySelectorAll('#calls-list tr').length));
  const busy = await page.evaluate(() => globalThis.busy);
  console.log(`${(made / seconds).toFixed(0)} calls/s with the page open: ${shown} rows, long tasks ${(busy / seconds / 10).toFixed(1)} % of the time, daemon ${((cpu(many.pid) - before) / seconds / 10).toFixed(0)} % of a core`);
}

try {
  await measure();
} finally {
  for (const end of endings.reverse()) await end();
}
process.exit();
