// The Inspector's command line as a client of the matrix: one run of it for each step.
//   inspector.mjs legacy|modern JSON
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

const [era, job] = process.argv.slice(2);
const { way, url, command, steps } = JSON.parse(job);
const launcher = fileURLToPath(new URL('../../../build/npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url));
const target = way === 'stdio' ? command : [url, '--transport', way];
const lists = { tools: 'tools/list', resources: 'resources/list', templates: 'resources/templates/list', prompts: 'prompts/list' };

const options = {
  list: ({ what }) => ['--method', lists[what]],
  call: ({ name, args = {} }) => ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)],
  read: ({ uri }) => ['--method', 'resources/read', '--uri', uri],
  get: ({ name, args }) => ['--method', 'prompts/get', '--prompt-name', name, ...(Object.keys(args).length ? ['--prompt-args', ...Object.entries(args).map(([k, v]) => `${k}=${v}`)] : [])],
};

for (const step of steps) {
  const more = [...(way === 'stdio' ? ['--transport', 'stdio'] : []), '--format', 'json', '--protocol-era', era, ...options[step.op](step)];
  const line = way === 'stdio' ? [launcher, '--cli', ...target, ...more] : [launcher, '--cli', ...target, ...more];
  const said = await new Promise((resolve) => {
    execFile(process.execPath, line, { timeout: 40_000, maxBuffer: 8 << 20 }, (error, stdout, stderr) => {
      try {
        resolve({ step: step.step, got: { code: error?.code ?? 0, said: JSON.parse(stdout || stderr.trim().split('\n').at(-1)) } });
      } catch {
        resolve({ step: step.step, error: { message: `${error?.message ?? ''} ${stderr}`.slice(-300) } });
      }
    }).stdin.end();
  });
  fs.writeSync(1, `${JSON.stringify(said)}\n`);
}
