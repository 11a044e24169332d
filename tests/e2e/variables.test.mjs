// ${NAME} and ${NAME:-default} work in every string of the configuration; $${ is a literal ${. A variable that
// is not set is an error of its entry, by name, and of no other entry. Entries of agents are taken literally.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { HttpClient, fake, fakeBin, logged, npmServer, rialto, serve, tempDir, until, writeConfig } from './lib.mjs';

test('variables in every key of a server, also where no text is expected', async (t) => {
  const dir = tempDir();
  const everything = npmServer('server-everything', ['stdio']);
  const daemon = await serve(t, {
    listen: '127.0.0.1:${PORT_OF_TEST:-0}',
    names: '${PREFIX:-p}_{server}_{tool}',
    servers: {
      all: {
        command: '${NODE_OF_TEST}', args: everything.args, cwd: '${DIR_OF_TEST}',
        env: { MADE: '${A_OF_TEST}-${B_OF_TEST:-b c}-$${LITERAL}-${EMPTY_OF_TEST:-}', PLAIN: '$X 5$' },
        timeout: '${TIMEOUT_OF_TEST:-7s}', enabled: '${ON_OF_TEST:-true}', start: '${START_OF_TEST:-eager}', concurrency: '${MANY:-3}',
        deny: ['${HIDDEN_OF_TEST}'], tools: { echo: { description: 'by ${A_OF_TEST}' } },
      },
    },
  }, { env: { NODE_OF_TEST: everything.command, DIR_OF_TEST: dir, A_OF_TEST: 'alpha', HIDDEN_OF_TEST: 'get-sum' } });
  const client = await new HttpClient(daemon.url).connect();
  const tools = await until('its tools', async () => {
    const all = (await client.request('tools/list')).result.tools;
    return all.length && all;
  });
  assert.ok(tools.every((x) => x.name.startsWith('p_all_')));
  assert.equal(tools.find((x) => x.name === 'p_all_echo').description, 'by alpha');
  assert.ok(!tools.some((x) => x.name === 'p_all_get-sum'));
  const env = await client.text(tools.find((x) => /env/i.test(x.name)).name);
  assert.match(env, /"MADE": "alpha-b c-\$\{LITERAL\}-"/);
  assert.match(env, /"PLAIN": "\$X 5\$"/);
});

test('an unset one leaves its server out by name; the others run', async (t) => {
  const daemon = await serve(t, {
    servers: {
      fine: fake(),
      'no-command': { command: '${NOT_SET_1}' },
      'no-time': { ...fake(), timeout: '${NOT_SET_2}' },
      'no-env': { ...fake(), env: { A: '${NOT_SET_3}' } },
      'no-url': { url: '${NOT_SET_4}/mcp' },
    },
  });
  for (const [name, variable] of [['no-command', 'NOT_SET_1'], ['no-time', 'NOT_SET_2'], ['no-env', 'NOT_SET_3'], ['no-url', 'NOT_SET_4']]) {
    await logged(daemon, new RegExp(`${name}.*is left out: no value for ${variable}`));
  }
  const client = await new HttpClient(daemon.url).connect();
  await until('the fine one', async () => (await client.request('tools/list')).result.tools.some((x) => x.name.startsWith('fine__')));
});

test('outside of servers it is an error of that key', async () => {
  const file = writeConfig(tempDir(), 'names: "${NOT_SET}_{tool}"\nlog: {level: "${LEVEL_OF_TEST:-debug}"}\nservers: {a: {command: x}}\n', 'rialto.yaml');
  const { code, stdout } = await rialto(['check', file]);
  assert.equal(code, 2);
  assert.match(stdout, /rialto\.yaml:1:8: names: no value for NOT_SET/);
  const fine = writeConfig(tempDir(), 'setup_instructions: "set ${x}"\nlog: {level: "${LEVEL_OF_TEST:-debug}"}\nservers: {a: {command: x}}\n', 'rialto.yaml');
  const shown = JSON.parse((await rialto(['config', '--json', '-c', fine])).stdout);
  assert.deepEqual([shown.setup_instructions, shown.log.level], ['set ${x}', 'debug'], 'what is shown reads back to the same');
});

test('nothing is filled in in an entry of an agent', async (t) => {
  const daemon = await serve(t, {
    servers: { theirs: { url: 'http://127.0.0.1:1/${SECRET_OF_TEST}', origin: 'agent', timeout: '9s' } },
    bus: { url: 'off', register_hosts: ['127.0.0.1'] },
  }, { env: { SECRET_OF_TEST: 'hush-hush-hush' } });
  await logged(daemon, /theirs/); // nothing listens there
  assert.doesNotMatch(daemon.stderr(), /no value|hush-hush/);
  const typed = writeConfig(tempDir(), { servers: { x: { url: 'http://h/', origin: 'agent', timeout: '${T:-9s}' } } });
  assert.equal((await rialto(['check', typed])).code, 2, 'taken as it is: no time');
});

test('env_file: more variables, those of env win; a missing or broken file leaves the server out', async (t) => {
  const dir = tempDir();
  fs.writeFileSync(path.join(dir, '.env'), '# mine\nexport ONE=1\r\nTWO="two words\\n" \nTHREE=\'${HOME}\'\nFOUR=4 # not this\n\nBOTH=file\n');
  fs.writeFileSync(path.join(dir, 'broken'), 'A=1\nthis is not\n');
  const everything = npmServer('server-everything', ['stdio']);
  const daemon = await serve(t, {
    servers: {
      all: { ...everything, cwd: dir, env_file: '.env', env: { BOTH: 'entry' } },
      none: { command: fakeBin, env_file: path.join(dir, 'none') },
      odd: { command: fakeBin, env_file: path.join(dir, 'broken') },
    },
  });
  await logged(daemon, /none.*is left out: cannot read its env_file .*\/none: /);
  await logged(daemon, /odd.*is left out: .*\/broken, line 2: expected NAME=VALUE/);
  const client = await new HttpClient(daemon.url).connect();
  const tool = await until('its tools', async () => (await client.request('tools/list')).result.tools.find((x) => /env/i.test(x.name)));
  const env = await client.text(tool.name);
  for (const line of ['"ONE": "1"', '"TWO": "two words\\n"', '"THREE": "${HOME}"', '"FOUR": "4"', '"BOTH": "entry"']) assert.ok(env.includes(line), `${line}\n${env}`);
});
