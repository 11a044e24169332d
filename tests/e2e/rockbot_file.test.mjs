// RockBot's own mcp.json, used unchanged.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { embeddedRig } from './bus_rig.mjs';
import { exchange, fake, HttpClient, logged, rialto, serve, tempDir, until, writeConfig } from './lib.mjs';
import { freePort, everything, listen, SdkServer } from './upstream_lib.mjs';

const status = async (server) => JSON.parse((await exchange(`${server.origin}/status`, { method: 'GET' })).text);

// RockBot's file restricts a server by argGuards, auth, elicitation and attachments. Those keys were "unknown,
// ignored", and the server ran without its restrictions. Such a server is left out now, and the others run.
test('a server with a bound that is not understood is left out, and the others run', async (t) => {
  const main = fake('--name', 'main');
  const guards = {
    argGuards: [{ handler: 'something-new', tools: ['read'], options: {} }],
    auth: { profile: 'work' }, // not possible for a program, which has no headers
    ELICITATION: { mode: 'ask-my-mother' },
    attachments: { somethingNew: 10 },
  };
  const guarded = Object.fromEntries(Object.entries(guards).map(([key, value]) => [`with-${key}`, { ...main, [key]: value }]));
  const mcpServers = { main, ...guarded, empty: { ...main, argGuards: [], auth: null } };
  const server = await serve(t, { mcpServers });
  await until('the others are up', async () => (await status(server)).servers.every((s) => s.state === 'up'));
  assert.deepEqual((await status(server)).servers.map((s) => s.name), ['main', 'empty']);
  for (const key of Object.keys(guards)) await logged(server, new RegExp(`mcpServers\\.with-${key}\\.${key}: server left out: '${key}'`));
  const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers }, 'mcp.json')]);
  assert.equal(stdout.match(/server left out/g).length, 4);
});

// The file that RockBot ships names its servers by host alone ("https://aggregator.example/"). Only that
// address was tried, answered 405, and the server was down. Now the usual paths are tried as well.
test('a server whose url has no path is found at /mcp or /sse, and its place is remembered', async (t) => {
  const [sse, both] = await Promise.all([freePort(t), freePort(t)]);
  await everything(t, 'sse', sse);
  const sdk = new SdkServer();
  const seen = [];
  const handler = (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === '/mcp') sdk.handler(request, response);
    else response.writeHead(request.method === 'GET' ? 200 : 405, { 'Content-Type': 'text/html' }).end('<p>hello');
  };
  const first = await listen(t, handler, { port: both });
  const server = await serve(t, {
    mcpServers: { old: { type: 'sse', url: `http://127.0.0.1:${sse}` }, now: { type: 'sse', url: `http://127.0.0.1:${both}/` } },
  });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('old__echo', 'now__echo');
  assert.match(await client.text('old__echo', { message: 'there' }), /there/);
  assert.match(await client.text('now__echo', { text: 'there' }), /there/);
  assert.ok(seen.includes('POST /') && seen.includes('GET /'), seen.join());

  seen.length = 0;
  await first.close();
  sdk.forgetSessions();
  await assert.rejects(client.text('now__echo', { text: 'nobody' }));
  await listen(t, handler, { port: both });
  await until('it is back', async () => (await status(server)).servers.every((s) => s.state === 'up'), 20_000);
  assert.match(await client.text('now__echo', { text: 'again' }), /again/);
  assert.deepEqual(seen.filter((line) => !line.endsWith(' /mcp')), []);
});

test('a server that is nowhere: the log says what to do', async (t) => {
  const seen = [];
  const { url } = await listen(t, (request, response) => { seen.push(request.url); response.writeHead(404).end(); });
  const server = await serve(t, { mcpServers: { gone: { url }, bare: { url: new URL('/', url).href } } });
  await logged(server, /gone: .*HTTP 404/);
  await logged(server, /bare: .*HTTP 404.*give the whole one/);
  assert.deepEqual([...new Set(seen)].sort(), ['/', '/mcp', '/sse']);
});

// A server's question during a call from the bus was answered with -32601, which servers take for a broken
// client. RockBot declines questions when there is nobody to answer them.
test('a server that asks during a call from the bus is declined', async (t) => {
  const place = embeddedRig(t).place();
  await serve(t, { mcpServers: { main: fake('--name', 'main') }, bus: { ...place.bus, agents: [place.agent] } });
  const agent = await place.join(t, place.agent);
  await agent.hears('main');
  const ask = (method, params) => agent.text('main', 'ask', { method, params });
  const form = { message: 'Your name?', requestedSchema: { type: 'object', properties: {} } };
  assert.match(await ask('elicitation/create', form), /"action":"decline"/);
  assert.match(await ask('elicitation/create', { mode: 'url', url: 'https://x.example/', elicitationId: '1', message: 'm' }), /"action":"decline"/);
  assert.match(await ask('sampling/createMessage', { messages: [], maxTokens: 1 }), /-32601/);
});

// RockBot sends no header whose variable is not set, and its users leave variables unset where a server needs
// none. Here the whole server was left out. Files of ours keep to that: their author meant the secret to be set.
test('a header with an unset variable is left out, and the server is not', async (t) => {
  const sdk = new SdkServer();
  const { url } = await listen(t, sdk.handler);
  const far = { url, headers: { Authorization: 'Bearer ${NOBODY_SETS_THIS}', 'X-Set': '${IS_SET}' } };
  const env = { IS_SET: 'yes' };
  const theirs = await serve(t, { mcpServers: { far } }, { env });
  await (await new HttpClient(theirs.url).connect()).waitFor('far__echo');
  assert.ok(sdk.headers.every((h) => h['x-set'] === 'yes' && !('authorization' in h)));
  await logged(theirs, /far: is asked without the header 'Authorization': no value for NOBODY_SETS_THIS/);
  const ours = await serve(t, { servers: { far } }, { env });
  await logged(ours, /far: is left out: no value for NOBODY_SETS_THIS/);
});

// A guard restricts the paths that a server may be given. RockBot answers a call outside of them with a ToolError
// `invalid_arguments`; here the server was left out, because arguments could not be checked.
test('argGuards become rules: refused on the bus as RockBot refuses, and on every other way in', async (t) => {
  const place = embeddedRig(t).place();
  const main = fake('--name', 'main');
  const guard = (tools, options) => ({ Handler: 'Path-Prefix', tools, options });
  const mcpServers = {
    main: {
      ...main,
      argGuards: [guard(['ECHO'], { args: ['save_directory', 'a/b'], allowedPrefixes: ['/rockbot/shared'], requireArgs: false }),
        guard(['add'], { args: ['to'], allowedPrefixes: ['/x', '/y/'], requireArgs: true })],
    },
    free: main,
    all: { ...main, ARGGUARDS: [guard([], { Args: ['path'], AllowedPrefixes: ['/data'] })] },
  };
  // A rule of the file itself must not let a call past a guard.
  const rules = [{ server: 'main', then: 'allow' }, { server: 'free', tool: 'add', then: 'deny' }];
  const server = await serve(t, { mcpServers, rules, bus: { ...place.bus, agents: [place.agent] } });
  const agent = await place.join(t, place.agent);
  for (const name of Object.keys(mcpServers)) await agent.hears(name);
  const refused = async (name, tool, args, pattern) => {
    const { code, isRetryable, message } = await agent.error(name, tool, args);
    assert.deepEqual([code, isRetryable], ['invalid_arguments', false], message);
    assert.match(message, pattern);
  };
  await refused('main', 'echo', { save_directory: '/tmp' }, /'echo' on server 'main'.*\/save_directory must be the absolute path of something in \/rockbot\/shared/);
  await refused('main', 'echo', { 'a/b': '/rockbot/shared-evil' }, /\/a~1b must be/);
  for (const path of ['/rockbot/shared/../../etc', 'rockbot/shared', '', 7]) await refused('main', 'echo', { save_directory: path }, /must be the absolute path/);
  await refused('main', 'echo', { Save_Directory: '/tmp' }, /mislead/);
  await refused('main', 'add', { a: 1, b: 2 }, /\/to is missing/);
  await refused('all', 'whoami', { path: '/etc' }, /must be/);
  assert.equal(await agent.text('main', 'echo', { save_directory: '/rockbot/shared/x' }), '{"save_directory":"/rockbot/shared/x"}');
  assert.equal(await agent.text('main', 'add', { a: 1, b: 2, to: '/y/z' }), '3');
  assert.equal(await agent.text('free', 'echo', { save_directory: '/tmp' }), '{"save_directory":"/tmp"}');
  await refused('free', 'add', { a: 1, b: 2 }, /denied by rule/);

  const client = await new HttpClient(server.url).connect();
  const { result } = await client.call('main__echo', { save_directory: '/tmp' });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /denied by rule 1 /);
});

test('a guard that is not understood keeps its server out, and says why', async () => {
  const options = { args: ['a'], allowedPrefixes: ['/x'] };
  const wrong = [
    [{ handler: 'regex', options }, /path-prefix/], [{ options }, /path-prefix/], [{ handler: 'path-prefix' }, /'options'/],
    [{ handler: 'path-prefix', options: { ...options, args: [] } }, /'args'/],
    [{ handler: 'path-prefix', options: { ...options, allowedPrefixes: [] } }, /none does not mean all/],
    [{ handler: 'path-prefix', options: { ...options, allowedPrefixes: ['shared'] } }, /absolute/],
    [{ handler: 'path-prefix', options: { ...options, requireArgs: 'yes' } }, /true or false/],
    [{ handler: 'path-prefix', options: { ...options, deny: true } }, /'options' has/],
    [{ handler: 'path-prefix', tools: 'read', options }, /'tools'/], [{ handler: 'path-prefix', options, mode: 'warn' }, /a guard has/],
    ['path-prefix', /a guard has/],
  ];
  for (const [guard, pattern] of wrong) {
    const mcpServers = { main: fake(), bad: { ...fake(), argGuards: [{ handler: 'path-prefix', options }, guard] } };
    const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers }, 'mcp.json')]);
    assert.match(stdout, /mcpServers\.bad\.argGuards: server left out: 'argGuards' is not understood/, JSON.stringify(guard));
    assert.match(stdout, pattern, JSON.stringify(guard));
  }
});

// `elicitation` is a restriction, too: it says who answers a server's questions. Servers with it were left out.
test('elicitation is taken: the question of a call from the bus is handed back, bounded as the file says', async (t) => {
  const place = embeddedRig(t).place();
  const main = fake('--name', 'main');
  const mcpServers = {
    main: { ...main, elicitation: { Mode: 'HandBack', maxPerCall: 1, deniedFields: ['box'], handbackTtlMinutes: 7, responder: 'llm', defaults: {} } },
    half: { ...main, elicitation: { mode: 'handback' } },
    auto: { ...main, elicitation: { mode: 'auto', responderTimeoutMs: 5 } },
    off: { ...main, elicitation: { mode: 'off', maxPerCall: null } },
  };
  await serve(t, { mcpServers, bus: { ...place.bus, agents: [place.agent] } });
  const agent = await place.join(t, place.agent);
  await agent.hears(...Object.keys(mcpServers));
  const ask = (server, name) => agent.text(server, 'ask', {
    method: 'elicitation/create', params: { message: 'm', requestedSchema: { type: 'object', properties: { [name]: { type: 'string' } } } },
  }, { headers: { 'rb-mcp-handback': '1' } });
  assert.match(await ask('main', 'box'), /"decline"/);
  const text = await ask('main', 'name');
  assert.match(text, /stays open for 7 minutes/);
  const { result } = await agent.manage('AnswerQuestion', {
    questionId: /question_id: "(.*?)"/.exec(text)[1], sessionId: null, toolCallId: null, answers: '{"name":"Ann"}', decline: false,
  });
  assert.match(result.content, /"name":"Ann"/);
  assert.match(await ask('half', 'name'), /stays open for 30 minutes/);
  assert.match(await ask('auto', 'name'), /"decline"/);
  assert.match(await ask('off', 'name'), /-32601/);
});

test('an elicitation that is not understood keeps its server out, and says why', async () => {
  const wrong = [
    [{ mode: 'always' }, /'mode' is auto, decline, off or handback/], [{ mode: 7 }, /'mode'/], [{ modus: 'off' }, /a key that is not known/],
    [{ maxPerCall: -1 }, /whole numbers/], [{ handbackTtlMinutes: '5' }, /whole numbers/], [{ deniedFields: 'x' }, /'deniedFields'/],
    [{ defaults: { mailbox: 'work' } }, /'defaults' are not answered with here/], ['off', /key that is not known/],
  ];
  for (const [elicitation, pattern] of wrong) {
    const mcpServers = { main: fake(), bad: { ...fake(), elicitation } };
    const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers }, 'mcp.json')]);
    assert.match(stdout, /mcpServers\.bad\.elicitation: server left out: 'elicitation' is not understood/, JSON.stringify(elicitation));
    assert.match(stdout, pattern, JSON.stringify(elicitation));
  }
});

// --- auth ---

/** A server that answers 401 to every token except `accepts`; {url, sdk, seen: the tokens that came, accepts}. */
async function guarded(t) {
  const sdk = new SdkServer();
  const door = { sdk, seen: [], accepts: 'none' };
  const { url } = await listen(t, (request, response) => {
    const token = request.headers.authorization;
    door.seen.push(token);
    if (token === `Bearer ${door.accepts}`) sdk.handler(request, response);
    else response.writeHead(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' }).end('{"error":"invalid_token"}');
  });
  return Object.assign(door, { url });
}

// RockBot's files name the profile of a token, never the token itself; such a server was left out. The token is a
// secret that something else renews: when a server refuses it, the new one is sent, unnoticed by the caller.
test('auth names a profile, whose token is a secret; it is read again when the server answers 401', async (t) => {
  const place = embeddedRig(t).place();
  const [far, directory] = [await guarded(t), tempDir()];
  const file = path.join(directory, 'WORK_IQ_TOKEN');
  const renew = (token) => { fs.writeFileSync(`${file}.new`, `${token}\n`); fs.renameSync(`${file}.new`, file); };
  const entry = { type: 'http', url: far.url, headers: { Authorization: 'Bearer static', 'X-Other': 'yes' }, auth: { Profile: 'work-iq' } };
  const server = await serve(t, { mcpServers: { far: entry }, secrets: { directory }, bus: { ...place.bus, agents: [place.agent] } });
  const agent = await place.join(t, place.agent);
  const locked = async (pattern) => {
    const { code, isRetryable, message } = await agent.error('far', 'echo', { text: 'x' });
    assert.deepEqual([code, isRetryable], ['auth_required', false], message);
    assert.match(message, pattern);
  };
  await logged(server, /far.*has no token: auth profile 'work-iq' is the secret WORK_IQ_TOKEN, and there is none/);
  await locked(/auth profile 'work-iq' is the secret WORK_IQ_TOKEN/);

  far.accepts = 'first-token';
  renew('first-token');
  await agent.hears('far');
  assert.equal(await agent.text('far', 'echo', { text: 'one' }), 'one');
  assert.ok(far.sdk.headers.every((h) => h['x-other'] === 'yes'));

  far.accepts = 'second-token';
  renew('second-token');
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((text) => agent.text('far', 'echo', { text }))), ['a', 'b', 'c']);
  assert.equal(far.sdk.calls, 4, 'each call was done once');

  far.accepts = 'third-token';
  await locked(/refuses the token of auth profile 'work-iq', which is the secret WORK_IQ_TOKEN.*HTTP 401.*A person must renew/);
  renew('third-token');
  assert.equal(await agent.text('far', 'echo', { text: 'four' }), 'four');
  assert.ok(!far.seen.includes('Bearer static'), far.seen.join());
  for (const token of ['first-token', 'second-token', 'third-token']) assert.doesNotMatch(server.stderr(), new RegExp(token));
});

test('the token of a profile comes from a command, and nobody waits for that', async (t) => {
  const [far, directory] = [await guarded(t), tempDir()];
  const [token, held] = [path.join(directory, 'token'), path.join(directory, 'held')];
  fs.writeFileSync(token, 'first-token');
  far.accepts = 'first-token';
  const script = `while [ -e ${held} ]; do sleep 0.05; done; test "$1" = WORK_TOKEN && cat ${token}`;
  const mcpServers = { far: { url: far.url, auth: { profile: 'work' } }, near: fake('--name', 'near') };
  const server = await serve(t, { mcpServers, secrets: { command: ['sh', '-c', script, 'sh'] } });
  const client = await new HttpClient(server.url).connect();
  await client.waitFor('far__echo', 'near__echo');
  fs.writeFileSync(held, '');
  fs.writeFileSync(token, 'second-token');
  far.accepts = 'second-token';
  const waiting = client.text('far__echo', { text: 'later' });
  await until('the command is asked', () => far.seen.at(-1) === 'Bearer first-token');
  assert.equal(await client.text('near__add', { a: 1, b: 2 }), '3');
  fs.rmSync(held);
  assert.equal(await waiting, 'later');
});

test('an auth that is not understood keeps its server out, and says why', async () => {
  const url = 'https://x.example/mcp';
  for (const [auth, more] of [[{ profil: 'x' }, { url }], [{ profile: 7 }, { url }], [{ profile: 'x', scopes: [] }, { url }], [{ profile: 'x' }, { url: 'ws://x.example' }], ['x', { url }]]) {
    const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers: { main: fake(), bad: { ...more, auth } } }, 'mcp.json')]);
    assert.match(stdout, /mcpServers\.bad\.auth: server left out: 'auth' is not understood/, JSON.stringify(auth));
  }
  const ours = await rialto(['check', writeConfig(tempDir(), { servers: { a: { ...fake(), auth: { profile: 'x' } }, b: { url: 'ws://x.example', auth: { profile: 'x' } } } })]).catch((e) => e);
  assert.match(`${ours.stdout}${ours.stderr}`, /'auth' makes no sense for a server with 'command'[^]*'auth' is for http and https URLs/);
});

test('attachments that are not understood keep their server out, and say why', async () => {
  const wrong = [
    [{ threshold: 5 }, /a key that is not known/], [{ thresholdBytes: '5' }, /whole number/], [{ thresholdBytes: 1e9 }, /16 MiB/],
    [{ endpointPath: 'https://x.example/' }, /'endpointPath' a path/], [{ uploadFieldName: 'a"b\r\n' }, /'uploadFieldName' is a name/],
    [{ outbound: { paramPaths: ['a.b'] } }, /like attachments\[\*\]/], [{ outbound: { paramPaths: 'x[*]' } }, /'outbound' has/], [{ outbound: { paths: [] } }, /'outbound' has/],
    [{ inbound: ['x'] }, /'inbound' has/], [{ capture: { rules: [{ tool: 'x' }] } }, /'capture' has/], [{ capture: { enabled: 'yes' } }, /'capture' has/], ['all', /a key that is not known/],
  ];
  for (const [attachments, pattern] of wrong) {
    const mcpServers = { main: fake(), bad: { ...fake(), attachments } };
    const { stdout } = await rialto(['check', writeConfig(tempDir(), { mcpServers }, 'mcp.json')]);
    assert.match(stdout, /mcpServers\.bad\.attachments: server left out: 'attachments' is not understood/, JSON.stringify(attachments));
    assert.match(stdout, pattern, JSON.stringify(attachments));
  }
  // The example of RockBot's documents is read completely, and is converted to a file of ours.
  const shown = {
    thresholdBytes: 262144, uploadFieldName: 'file', endpointPath: '/attachments', outbound: { paramPaths: ['attachments[*]'] }, inbound: { tools: ['get_email_attachment'] },
    capture: { rules: [{ tools: ['get_file_contents'], contentField: 'content', nameField: 'name', encodingField: 'encoding' }] },
  };
  const { code, stdout } = await rialto(['import', writeConfig(tempDir(), { mcpServers: { mail: { url: 'https://mail.example/', auth: { profile: 'workiq' }, attachments: shown } } }, 'mcp.json')]);
  assert.equal(code, 0);
  for (const line of [/profile: workiq/, /outbound:\s*(- |\[)attachments\b/, /get_email_attachment/, /capture_fields:/, /encoding: encoding/]) assert.match(stdout, line);
});
