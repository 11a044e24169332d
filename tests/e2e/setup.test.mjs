// `rialto setup`: the servers of every host program are moved into the user's rialto.yaml, and Rialto is put in
// instead, with nothing else changed in the hosts' files; --undo restores them. Samples of each host.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { samples } from './hosts_samples.mjs';
import { load, rialto, rialtoBin, runCommand, start, sanitizerEnv, tempDir } from './lib.mjs';

const YAML = load('yaml');

/** A home folder with the files of these hosts: {dir, run(), file(host), config}. */
function home(...hosts) {
  const dir = fs.realpathSync(tempDir());
  const file = (host) => path.join(dir, samples[host].file);
  for (const host of hosts) {
    fs.mkdirSync(path.dirname(file(host)), { recursive: true });
    fs.writeFileSync(file(host), samples[host].text, { mode: 0o640 });
  }
  const env = { HOME: dir, XDG_CONFIG_HOME: path.join(dir, '.config'), XDG_STATE_HOME: path.join(dir, 'state'), PATH: '/usr/bin:/bin', CODEX_HOME: '', CLAUDE_CONFIG_DIR: '' };
  return {
    dir, env, file, config: path.join(dir, '.config/rialto/rialto.yaml'), backups: path.join(dir, 'state/rialto/backups'),
    run: (...args) => rialto(['setup', ...args], { env, cwd: dir }),
  };
}

/** Everything below a folder: path -> content. */
function everything(dir) {
  const all = {};
  for (const e of fs.readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const at = path.join(e.parentPath, e.name);
    if (e.isFile()) all[path.relative(dir, at)] = `${fs.statSync(at).mode & 0o777} ${fs.readFileSync(at)}`;
  }
  return all;
}

/** The host's entries as its own readers see them: {place: {name: entry}}. */
function entries(host, text) {
  const bare = text.replace(/^\s*\/\/.*$/gm, '').replace(/\/\/ .*$/gm, '').replace(/,(\s*[}\]])/g, '$1');
  if (host === 'codex') {
    return JSON.parse(execFileSync('python3', ['-c', 'import sys,tomllib,json; json.dump(tomllib.loads(sys.stdin.read()), sys.stdout)'], { input: text })).mcp_servers ?? {};
  }
  if (host === 'goose') return YAML.parse(text).extensions ?? {};
  if (host === 'continue') return Object.fromEntries((YAML.parse(text).mcpServers ?? []).map((e) => [e.name, e]));
  const doc = JSON.parse(bare);
  return doc[{ vscode: 'servers', zed: 'context_servers', opencode: 'mcp' }[host] ?? 'mcpServers'] ?? {};
}

// docs/recipes.md shows how a host is given the daemon's address. Setup took that for one more server and moved it into
// Rialto's own file: Rialto would have been a server of itself.
test('a host that has the address of the daemon has Rialto already', async () => {
  for (const [listen, address, moves] of [
    [null, 'http://127.0.0.1:8765/mcp', false], [null, 'http://localhost:8765/mcp/files', false], [null, 'http://127.0.0.1:8765/sse', false],
    ['127.0.0.1:9000', 'http://127.0.0.1:9000/mcp', false], ['127.0.0.1:9000', 'http://127.0.0.1:8765/mcp', true],
    [null, 'https://tools.example.com:8765/mcp', true], [null, 'http://127.0.0.1:8765/other', true],
  ]) {
    const h = home('cursor');
    if (listen) {
      fs.mkdirSync(path.dirname(h.config), { recursive: true });
      fs.writeFileSync(h.config, `listen: ${listen}\n`);
    }
    fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: { all: { url: address } } }));
    const before = everything(h.dir);
    const { code, stdout, stderr } = await h.run('--yes', 'cursor');
    assert.equal(code, 0, stderr);
    if (moves) assert.match(stdout, /1 of their servers goes into/, address);
    else assert.deepEqual(everything(h.dir), before, `${listen} ${address}\n${stdout}`);
  }
});

// The README of our own packages shows `npx -y rialto-bridge stdio` for hosts. Setup took that for one more server, too.
test('a host that starts Rialto by npx, uvx or docker has Rialto already', async () => {
  for (const [command, ...args] of [
    ['npx', '-y', 'rialto-bridge', 'stdio'], ['npx', '-y', 'rialto-bridge@1.2.3', 'stdio'], ['uvx', 'rialto-bridge', 'stdio'],
    ['uvx', '--from', 'rialto-bridge', 'rialto', 'stdio'], ['docker', 'run', '-i', 'image', '/usr/bin/rialto', 'stdio'], ['/opt/bin/rialto', 'stdio'],
  ]) {
    const h = home('cursor');
    fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: { all: { command, args } } }));
    const before = everything(h.dir);
    const { code, stdout, stderr } = await h.run('--yes', 'cursor');
    assert.equal(code, 0, stderr);
    assert.deepEqual(everything(h.dir), before, `${command} ${args.join(' ')}\n${stdout}`);
  }
});

// `npx rialto-bridge setup` wrote the path of npx's cache into the hosts' files. The cache is emptied one day, and then no
// host has any server.
test('a program in the cache of npx or uvx is not put into hosts', async () => {
  for (const [folder, install] of [['_npx/1f/node_modules', 'npm install -g'], ['archive-v0/x/bin', 'uv tool install']]) {
    const h = home('cursor');
    const program = path.join(tempDir(), folder, 'rialto');
    fs.mkdirSync(path.dirname(program), { recursive: true });
    fs.copyFileSync(rialtoBin, program);
    const before = everything(h.dir);
    const run = (option) => runCommand(program, ['setup', option, 'cursor'], { env: h.env, cwd: h.dir });
    const { code, stdout, stderr } = await run('--yes');
    assert.equal(code, 1, stdout);
    assert.ok(stderr.includes(`\`${install} rialto-bridge\``), stderr);
    assert.deepEqual(everything(h.dir), before);
    assert.equal((await run('--dry-run')).code, 0);
  }
});

// The portable program is called rialto-linux-x86_64. A second run of setup took the entry of the first one for a server,
// and moved Rialto into its own configuration.
test('setup by a program with another name knows its own entries', async () => {
  for (const name of ['rialto-linux-x86_64', 'my-tools']) {
    const h = home('cursor');
    const program = path.join(h.dir, name);
    fs.copyFileSync(rialtoBin, program);
    const run = () => runCommand(program, ['setup', '--yes', 'cursor'], { env: h.env, cwd: h.dir });
    assert.equal((await run()).code, 0);
    const before = everything(h.dir);
    const again = await run();
    assert.match(again.stdout, /nothing to do$/m);
    assert.deepEqual(everything(h.dir), before);
    if (name !== 'my-tools') assert.match((await h.run('-y', 'cursor')).stdout, /nothing to do$/m, 'nor does another Rialto');
  }
});

const kept = { goose: ['developer'], zed: ['mcp-server-github'] };

for (const [host, sample] of Object.entries(samples)) {
  test(`${host}: its servers move, Rialto comes, all else stays; and back byte for byte`, async () => {
    const h = home(host);
    const before = everything(h.dir);
    const done = await h.run('--yes', host);
    assert.equal(done.code, 0, done.stderr + done.stdout);
    const text = fs.readFileSync(h.file(host), 'utf8');
    for (const piece of sample.stays) assert.ok(text.includes(piece), `${piece}\n---\n${text}`);
    const theirs = entries(host, text);
    assert.deepEqual(Object.keys(theirs), [...kept[host] ?? [], 'rialto'], text);
    const own = theirs.rialto;
    const command = host === 'opencode' ? own.command : [own.command ?? own.cmd, ...own.args];
    assert.deepEqual(command, [fs.realpathSync(rialtoBin), 'stdio']);
    if (host === 'claude-code') assert.deepEqual(JSON.parse(text).projects['/home/me/shop'].mcpServers, {});
    assert.equal(fs.statSync(h.file(host)).mode & 0o777, 0o640);
    assert.equal(fs.statSync(h.config).mode & 0o777, 0o600);
    assert.deepEqual(fs.readdirSync(path.dirname(h.file(host))).filter((f) => f.includes('bak')), []);

    const { servers } = YAML.parse(fs.readFileSync(h.config, 'utf8'));
    assert.deepEqual(Object.keys(servers).toSorted(), Object.keys(sample.servers).toSorted());
    for (const [name, expected] of Object.entries(sample.servers)) {
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(servers[name][key], value, `${name}.${key}`);
    }
    const checked = await rialto(['check', h.config], { env: h.env });
    assert.equal(checked.code, 0, checked.stdout);

    const after = everything(h.dir);
    const again = await h.run('--yes', host);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /nothing to do/);
    assert.deepEqual(everything(h.dir), after, 'a second run changes nothing');

    const undone = await h.run('--undo');
    assert.equal(undone.code, 0, undone.stderr);
    assert.deepEqual(everything(h.dir), before);
  });

  test(`${host}: what was changed since stays when it is undone`, async () => {
    const h = home(host);
    assert.equal((await h.run('--yes', host)).code, 0);
    const file = h.file(host);
    const setUp = fs.readFileSync(file, 'utf8');
    const mark = { toml: '# changed since\n', yaml: '# changed since\n' }[file.split('.').at(-1)];
    fs.writeFileSync(file, mark ? mark + setUp : setUp.replace('{', '{\n  "changedSince": true,'));
    const undone = await h.run('--undo', host);
    assert.equal(undone.code, 0, undone.stderr);
    const text = fs.readFileSync(file, 'utf8');
    assert.match(text, /changed ?since/i);
    const theirs = entries(host, text);
    const before = entries(host, sample.text);
    assert.deepEqual(theirs, before);
    if (host === 'claude-code') assert.deepEqual(JSON.parse(text).projects, JSON.parse(sample.text).projects);
    assert.ok(!fs.existsSync(h.config), 'the file that setup made is gone');
    assert.deepEqual(fs.readdirSync(h.backups), []);
  });

  test(`${host}: a broken file is left alone and named`, async () => {
    const h = home(host);
    const broken = { toml: 'a = = 1\n', yaml: 'a: [\n' }[h.file(host).split('.').at(-1)] ?? '{"mcpServers": {';
    fs.writeFileSync(h.file(host), broken);
    const { code, stdout } = await h.run('--yes', host);
    assert.equal(code, 1);
    assert.match(stdout, /left alone: line \d/);
    assert.ok(stdout.includes(path.basename(h.file(host))));
    assert.equal(fs.readFileSync(h.file(host), 'utf8'), broken);
    assert.ok(!fs.existsSync(h.config));
  });

  test(`${host}: installed without a file, it gets one, which undo removes`, async () => {
    const h = home(host);
    fs.rmSync(h.file(host));
    if (host === 'claude-code') fs.mkdirSync(path.join(h.dir, '.claude'));
    const before = everything(h.dir);
    assert.equal((await h.run('-y', host)).code, 0);
    assert.deepEqual(Object.keys(entries(host, fs.readFileSync(h.file(host), 'utf8'))), ['rialto']);
    assert.equal(fs.statSync(h.file(host)).mode & 0o777, 0o600);
    assert.equal((await h.run('--undo')).code, 0);
    assert.deepEqual(everything(h.dir), before);
  });
}

test('all hosts at once: one table, equal servers once, others by their host; undone one by one', async () => {
  const all = Object.keys(samples);
  const h = home(...all);
  // The same server under another name, and another server under the same name.
  fs.writeFileSync(h.file('lmstudio'), '{"mcpServers": {"issues": {"url": "https://mcp.linear.app/sse"}, "git": {"command": "/bin/echo", "args": ["another git"]}}}');
  const before = everything(h.dir);
  const shown = await h.run('--dry-run');
  assert.equal(shown.code, 0, shown.stderr);
  for (const title of ['Claude Desktop', 'Claude Code', 'Cursor', 'VS Code', 'Zed', 'Codex', 'Goose', 'GitHub Copilot CLI', 'JetBrains Junie']) assert.ok(shown.stdout.includes(title), title);
  assert.match(shown.stdout, /LM Studio .* move git \(as git-lmstudio\), issues \(as linear\); put rialto in/);
  assert.doesNotMatch(shown.stdout + shown.stderr, /ghp_1234567890abcdef|hf_abcdefgh/);
  assert.deepEqual(everything(h.dir), before, '--dry-run does nothing');
  const asked = await h.run();
  assert.match(asked.stderr, /no terminal/);
  assert.deepEqual(everything(h.dir), before, 'nobody can be asked');

  const done = await h.run('--yes');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /JetBrains Junie: done; for AI Assistant, paste [^]*"mcpServers"/);
  const { servers } = YAML.parse(fs.readFileSync(h.config, 'utf8'));
  assert.equal(Object.values(servers).filter((s) => s.url === 'https://mcp.linear.app/sse').length, 1);
  assert.deepEqual(servers['git-lmstudio'].args, ['another git']);
  assert.equal(servers['far-continue'].url, 'https://far.example.com/mcp');
  const after = everything(h.dir);
  assert.equal((await h.run('--yes')).code, 0);
  assert.deepEqual(everything(h.dir), after);

  // The server that two hosts had stays as long as one of them needs it.
  assert.equal((await h.run('--undo', 'cursor')).code, 0);
  assert.equal(fs.readFileSync(h.file('cursor'), 'utf8'), samples.cursor.text);
  const left = YAML.parse(fs.readFileSync(h.config, 'utf8')).servers;
  assert.ok(left.linear && !left.local);
  assert.equal((await h.run('--undo', 'lmstudio')).code, 0);
  assert.ok(!YAML.parse(fs.readFileSync(h.config, 'utf8')).servers.linear);
  assert.equal((await h.run('--undo')).code, 0);
  assert.deepEqual(everything(h.dir), before);
  assert.match((await h.run('--undo')).stdout, /nothing to undo/);
});

// The entries of two accounts were taken for one server: the second token was lost, and both hosts worked with the first.
test('servers that differ only in env, headers or folder stay different servers', async () => {
  const h = home('cursor');
  const gh = { command: '/usr/bin/env', args: ['gh-mcp'] }, url = 'https://x.example.com/mcp';
  const theirs = {
    work: { ...gh, env: { GITHUB_TOKEN: 'work-token-aaaa' } }, home: { ...gh, env: { GITHUB_TOKEN: 'home-token-bbbb' } },
    here: { ...gh, cwd: '/tmp' }, again: { ...gh, cwd: '/tmp', env: {} },
    one: { url, headers: { Authorization: 'Bearer AAAA1111' } }, two: { url, headers: { Authorization: 'Bearer BBBB2222' } },
    npx: { command: 'node', args: ['x'] }, same: { command: 'node', args: ['x'] },
  };
  fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: theirs }));
  const run = (PATH) => runCommand(rialtoBin, ['setup', '-y', 'cursor'], { env: { ...h.env, PATH }, cwd: h.dir });
  const done = await run(h.env.PATH);
  assert.equal(done.code, 0, done.stderr);
  const { servers } = YAML.parse(fs.readFileSync(h.config, 'utf8'));
  assert.deepEqual(Object.keys(servers).sort(), ['here', 'home', 'npx', 'one', 'two', 'work']);
  assert.equal(servers.home.env.GITHUB_TOKEN, 'home-token-bbbb');
  assert.equal(servers.two.headers.Authorization, 'Bearer BBBB2222');
  fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: theirs })); // later, from a shell with another PATH
  assert.equal((await run(`${h.env.PATH}:/opt`)).code, 0);
  assert.equal(Object.keys(YAML.parse(fs.readFileSync(h.config, 'utf8')).servers).length, 6);
});

// Filters and folders were not looked at: Gemini's server without delete_file became Cursor's with it, for both hosts,
// and one that Claude Code had for a single project ran for all of them.
test('servers that differ in what they may do, or where, stay different servers', async () => {
  const h = home('cursor', 'gemini', 'claude-code');
  const files = { command: '/usr/bin/env', args: ['fs', '/data'] };
  fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: { files } }));
  fs.writeFileSync(h.file('gemini'), JSON.stringify({ mcpServers: { files: { ...files, excludeTools: ['delete_file'] } } }));
  fs.writeFileSync(h.file('claude-code'), JSON.stringify({ mcpServers: { again: { ...files, type: 'stdio', env: {} } }, projects: { '/w': { mcpServers: { files } } } }));
  const done = await h.run('-y', 'cursor', 'gemini', 'claude-code');
  assert.equal(done.code, 0, done.stderr);
  const { servers } = YAML.parse(fs.readFileSync(h.config, 'utf8'));
  const all = Object.values(servers);
  assert.equal(all.length, 3, JSON.stringify(servers));
  assert.deepEqual(all.map((s) => [s.deny ?? [], s.scope ?? 'user']).sort(), [[[], 'project'], [[], 'user'], [['delete_file'], 'user']]);
  // What is written with its default is the same, and so is another order of the keys.
  fs.writeFileSync(h.config, JSON.stringify({ servers: { mine: { enabled: true, scope: 'user', args: files.args, command: files.command } } }));
  fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: { files } }));
  assert.equal((await h.run('-y', 'cursor')).code, 0);
  assert.deepEqual(Object.keys(YAML.parse(fs.readFileSync(h.config, 'utf8')).servers), ['mine']);
});

test('a user who has a rialto.yaml keeps every byte of it', async () => {
  const h = home('cursor');
  fs.mkdirSync(path.dirname(h.config), { recursive: true });
  const mine = '# mine\nlisten: 127.0.0.1:0\nservers:\n  linear: {command: x} # another\n  # the end\n';
  fs.writeFileSync(h.config, mine, { mode: 0o644 });
  assert.equal((await h.run('-y')).code, 0);
  const text = fs.readFileSync(h.config, 'utf8');
  assert.ok(text.startsWith('# mine\nlisten: 127.0.0.1:0\nservers:\n  linear: {command: x} # another\n'));
  assert.deepEqual(Object.keys(YAML.parse(text).servers), ['linear', 'linear-cursor', 'local']);
  // The file was changed meanwhile: undo removes only what came from the hosts.
  fs.writeFileSync(h.config, `${text}names: bare\n`);
  assert.equal((await h.run('--undo')).code, 0);
  assert.equal(fs.readFileSync(h.config, 'utf8'), `${mine}names: bare\n`);
  // A file whose form cannot be edited: nothing is changed at all.
  fs.writeFileSync(h.config, 'servers: {a: {command: x}}\n');
  const before = everything(h.dir);
  const refused = await h.run('-y');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /rialto\.yaml: the file is of a form[^]*nothing was changed/);
  assert.deepEqual(everything(h.dir), before);
});

// The text of a path was read after the buffer that holds it had moved to make room for its NUL.
test('undo with a configuration whose path fills a buffer exactly', async () => {
  const h = home('cursor');
  const inside = path.join(h.dir, 'x'.repeat(128 - path.join(h.dir, '/.config/rialto/rialto.yaml').length - 1));
  const env = { ...h.env, XDG_CONFIG_HOME: path.join(inside, '.config') };
  const run = (...args) => rialto(['setup', ...args], { env, cwd: h.dir });
  assert.equal(path.join(inside, '.config/rialto/rialto.yaml').length, 128);
  assert.equal((await run('--yes')).code, 0);
  const undone = await run('--undo');
  assert.equal(undone.code, 0, undone.stderr);
  assert.match(undone.stdout, /\/rialto\.yaml: removed/);
});

// Undo read the configuration, and wrote it some time later: what another program had added in between was lost.
test('undo waits for a program that edits the configuration', async () => {
  const h = home('cursor');
  assert.equal((await h.run('--yes')).code, 0);
  const text = fs.readFileSync(h.config, 'utf8');
  const editor = spawn('flock', [path.dirname(h.config), 'sh', '-c', `echo locked; sleep 1.5; echo '# mine' >> '${h.config}'`], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(editor.stdout, 'data');
  const undone = await h.run('--undo');
  assert.equal(undone.code, 0, undone.stderr);
  assert.ok(text.includes('servers:'));
  assert.match(fs.readFileSync(h.config, 'utf8'), /# mine/);
});

// The name was in the journal twice, and undo put both entries back: it refused the whole file, for good.
test('a server that came back between two runs of setup is put back once', async () => {
  const h = home('cursor');
  const entry = (word) => ({ command: '/bin/cat', args: [word] });
  fs.writeFileSync(h.file('cursor'), JSON.stringify({ mcpServers: { files: entry('one'), other: entry('x') } }));
  assert.equal((await h.run('-y', 'cursor')).code, 0);
  const theirs = JSON.parse(fs.readFileSync(h.file('cursor'), 'utf8'));
  theirs.mcpServers.files = entry('two');
  fs.writeFileSync(h.file('cursor'), JSON.stringify(theirs));
  assert.equal((await h.run('-y', 'cursor')).code, 0);
  const undone = await h.run('--undo');
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual(JSON.parse(fs.readFileSync(h.file('cursor'), 'utf8')).mcpServers, { other: entry('x'), files: entry('two') });
  assert.ok(!fs.existsSync(h.config));
});

test('a name that was taken since: undo refuses and names the file', async () => {
  const h = home('gemini');
  assert.equal((await h.run('-y')).code, 0);
  const changed = fs.readFileSync(h.file('gemini'), 'utf8').replace('"rialto":', '"tools": {"command": "new"}, "rialto":');
  fs.writeFileSync(h.file('gemini'), changed);
  const undone = await h.run('--undo');
  assert.equal(undone.code, 1);
  assert.match(undone.stderr, /\.gemini\/settings\.json was changed since and is left as it is: there is a 'tools' already/);
  assert.equal(fs.readFileSync(h.file('gemini'), 'utf8'), changed);
  assert.ok(YAML.parse(fs.readFileSync(h.config, 'utf8')).servers.tools, 'its servers stay here');
});

test('symbolic links stay links, and other names of files are found', async () => {
  const h = home('codex');
  const kept = path.join(h.dir, 'dotfiles/codex.toml');
  fs.mkdirSync(path.dirname(kept));
  fs.renameSync(h.file('codex'), kept);
  fs.symlinkSync(kept, h.file('codex'));
  const jsonc = path.join(h.dir, '.config/opencode/opencode.jsonc');
  fs.mkdirSync(path.dirname(jsonc), { recursive: true });
  fs.writeFileSync(jsonc, samples.opencode.text);
  assert.equal((await h.run('-y')).code, 0);
  assert.ok(fs.lstatSync(h.file('codex')).isSymbolicLink());
  assert.ok(entries('codex', fs.readFileSync(kept, 'utf8')).rialto);
  assert.ok(entries('opencode', fs.readFileSync(jsonc, 'utf8')).rialto);
  assert.ok(!fs.existsSync(jsonc.slice(0, -1)), 'no second file');
  assert.equal((await h.run('--undo')).code, 0);
  assert.ok(fs.lstatSync(h.file('codex')).isSymbolicLink());
  assert.equal(fs.readFileSync(kept, 'utf8'), samples.codex.text);
  assert.equal(fs.readFileSync(jsonc, 'utf8'), samples.opencode.text);
});

test('at a terminal it asks once: only y and yes are a yes', async () => {
  for (const [said, does] of [['no', false], ['', false], ['YES', true]]) {
    const h = home('windsurf');
    const before = everything(h.dir);
    const child = start('script', ['-qec', `${rialtoBin} setup`, '/dev/null'], {
      cwd: h.dir, env: { ...process.env, ...sanitizerEnv, ...h.env }, stdio: ['pipe', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (d) => {
      text += d;
      if (/\[y\/N\]/.test(text) && !child.said) { child.said = true; child.stdin.write(`${said}\n`); }
    });
    await new Promise((resolve) => { child.on('close', resolve); });
    assert.equal(text.match(/\[y\/N\]/g).length, 1, text);
    if (does) assert.ok(fs.existsSync(h.config), text);
    else assert.deepEqual(everything(h.dir), before);
  }
});

// The journal had the record of a file that was then not written: undo took out what was never in it, and refused.
test('a host that writes its file while the person is asked keeps it, now and after undo', async () => {
  for (const again of [false, true]) {
    const h = home('cursor');
    const theirs = '{"mcpServers": {"files": {"command": "/bin/cat"}}, "n": 2}\n';
    const child = start('script', ['-qec', `${rialtoBin} setup`, '/dev/null'], {
      cwd: h.dir, env: { ...process.env, ...sanitizerEnv, ...h.env }, stdio: ['pipe', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (d) => {
      text += d;
      if (child.said || !/\[y\/N\]/.test(text)) return;
      child.said = true;
      fs.writeFileSync(h.file('cursor'), theirs);
      child.stdin.write('y\n');
    });
    await new Promise((resolve) => { child.on('close', resolve); });
    assert.match(text, /is left as it is: it has just been changed/);
    if (again) assert.equal((await h.run('-y')).code, 0);
    const undone = await h.run('--undo');
    assert.equal(undone.code, 0, undone.stderr);
    assert.equal(fs.readFileSync(h.file('cursor'), 'utf8'), theirs);
    assert.ok(!fs.existsSync(h.config));
    assert.deepEqual(fs.readdirSync(h.backups), []);
  }
});

// The lines for people came behind the array.
test('--json prints nothing but JSON, also when it is done', async () => {
  const h = home('cursor');
  const { code, stdout } = await h.run('-y', '--json', 'cursor');
  assert.equal(code, 0);
  assert.equal(JSON.parse(stdout)[0].host, 'cursor');
  assert.ok(fs.existsSync(h.config));
});

test('words that are no hosts, and options that exclude each other', async () => {
  const h = home();
  const typo = await h.run('curser');
  assert.equal(typo.code, 2);
  assert.match(typo.stderr, /there is no host 'curser'[^]*did you mean 'cursor'/);
  assert.equal((await h.run('--undo', '--dry-run')).code, 2);
  assert.match((await h.run('codex')).stdout, /none of these hosts is here/);
});
