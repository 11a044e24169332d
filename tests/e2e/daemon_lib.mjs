// A user's home with a configuration, hosts that run `rialto stdio` in it, and the daemons that they start:
// all of them end with the test.
import fs from 'node:fs';
import path from 'node:path';
import { expectGone, descendants, isAlive, rialto, rialtoBin, start, StdioClient, tempDir, until, writeConfig } from './lib.mjs';

export function home(t, config) {
  const dir = tempDir();
  const runtime = tempDir();
  const file = writeConfig(dir, { listen: '127.0.0.1:0', ...config });
  const files = []; // other daemons of this user are ignored
  const env = { XDG_RUNTIME_DIR: runtime, XDG_STATE_HOME: path.join(dir, 'state'), XDG_CACHE_HOME: path.join(dir, 'cache'), HOME: dir };
  const status = async (where = env) => {
    const { stdout } = await rialto(['status', '--json'], { env: where, cwd: where.HOME === dir ? dir : '/' });
    const all = stdout ? JSON.parse(stdout).daemons : [];
    return all.filter((d) => files.some((f) => d.config === f) || d.config?.startsWith(fs.realpathSync(dir)));
  };
  const kill = async (signal, where, ms = 5000) => {
    for (const daemon of await status(where)) {
      const family = [{ pid: daemon.pid }, ...descendants(daemon.pid)];
      process.kill(daemon.pid, signal);
      await expectGone(family, ms);
    }
  };
  const hosts = [];
  t.after(async () => {
    await Promise.all(hosts.map((c) => c.stop(20_000)));
    await kill('SIGTERM', env, 15_000);
  });
  return {
    dir, runtime, file, env, kill,
    daemons: status,
    /** A host that runs `rialto stdio`. */
    host(args = [], { env: more = {}, config: given = true, ...options } = {}) {
      const named = args.includes('-c') || !given ? [] : ['-c', file];
      files.push(fs.realpathSync([...args, ...named][[...args, ...named].indexOf('-c') + 1] ?? file));
      const client = new StdioClient(t, rialtoBin, ['stdio', ...named, ...args], { cwd: dir, env: { ...env, ...more }, ...options });
      hosts.push(client);
      return client;
    },
    /** The logs of all daemons that were started here. */
    log: () => fs.readdirSync(path.join(dir, 'state/rialto')).filter((n) => n.endsWith('.log'))
      .map((n) => fs.readFileSync(path.join(dir, 'state/rialto', n), 'utf8')).join(''),
    /** Starts `rialto serve` directly. */
    async serve() {
      const child = start(rialtoBin, ['serve', '-c', file], { env: { ...process.env, ...env }, stdio: 'ignore', cwd: dir });
      await until('the daemon', async () => (await status()).length);
      return { pid: child.pid, stop: async () => { child.kill('SIGTERM'); await until('its end', () => !isAlive({ pid: child.pid }), 15_000); } };
    },
  };
}

/** A server whose tool writes a line into a file for each call, and that has one resource, which changes with each. */
export function counting(log) {
  const script = path.join(tempDir(), 'counting.cjs');
  fs.writeFileSync(script, `
    const fs = require('fs');
    const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    const uri = 'count://all';
    let subscribed = false, level;
    const answers = {
      initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {}, resources: { subscribe: true }, logging: {} }, serverInfo: { name: 'n', version: '1' } }),
      'tools/list': () => ({ tools: [{ name: 'count', inputSchema: { type: 'object' } }] }),
      'resources/list': () => ({ resources: [{ uri, name: 'all' }] }),
      'resources/subscribe': () => { subscribed = true; return {}; },
      'logging/setLevel': (params) => { level = params.level; return {}; },
    };
    require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      if (method === 'tools/call') {
        fs.appendFileSync(process.argv[2], JSON.stringify(params.arguments) + '\\n');
        setTimeout(() => {
          if (subscribed) send({ method: 'notifications/resources/updated', params: { uri } });
          if (level) send({ method: 'notifications/message', params: { level, data: 'counts' } });
          send({ id, result: { content: [{ type: 'text', text: 'counted' }] } });
        }, params.arguments.ms || 0);
      } else send({ id, result: answers[method] ? answers[method](params) : {} });
    }).on('close', () => process.exit());
  `);
  return { command: process.execPath, args: [script, log] };
}
