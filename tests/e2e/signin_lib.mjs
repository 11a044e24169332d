// Signing in for tests: `rialto login` as a person starts it, and the states of servers.
import { exchange, rialtoBin, sanitizerEnv, start, until } from './lib.mjs';

/** The answer of /status. */
export async function statusOf(server) {
  return JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);
}

/** The entry of one server in /status. */
export async function stateOf(server, name) {
  return (await statusOf(server)).servers.find((s) => s.name === name);
}

export const untilState = (server, name, state, ms) => until(`${name} to be ${state}`, async () => {
  const s = await stateOf(server, name);
  return s.state === state && s;
}, ms);

/** `rialto login NAME`, started; `server` is what serve() gave, or {config, dir}. */
export class Login {
  constructor(server, name, env = {}, args = ['--no-browser']) {
    this.child = start(rialtoBin, ['login', name, '-c', server.config, ...args], {
      cwd: server.dir, stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...sanitizerEnv, XDG_RUNTIME_DIR: server.dir, XDG_CACHE_HOME: server.dir, ...env },
    });
    this.stdout = '';
    this.stderr = '';
    this.child.stdout.on('data', (d) => { this.stdout += d; });
    this.child.stderr.on('data', (d) => { this.stderr += d; });
    this.child.stdin.on('error', () => {});
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code, signal) => resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** The address that the command prints; an error if the command ends without one. */
  async address() {
    let over = false;
    this.ended.then(() => { over = true; });
    const line = await until('the address', () => over || /^(https?:\/\/\S+)\n/m.exec(this.stdout)?.[1], 30_000);
    if (line === true) throw new Error(`login ended: ${this.stderr}`);
    return line;
  }

  paste(text) {
    this.child.stdin.write(`${text}\n`);
  }
}
