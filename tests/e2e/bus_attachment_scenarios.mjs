// Files in calls of agents, as RockBot's `attachments` has them: agents name files of a folder that they share with
// the bridge, servers get bytes or the id of an upload, and files that servers return are saved in the folder.
// Servers with that key used to be left out.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { launch } from './bus_rig.mjs';
import { fake, load, logged, tempDir, until } from './lib.mjs';
import { startIssuer } from './oidc_lib.mjs';
import { listen, SdkServer } from './upstream_lib.mjs';

const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { z } = load('zod');

const manifest = {
  thresholdBytes: 1000, uploadFieldName: 'upload', endpointPath: 'api/files',
  outbound: { paramPaths: ['attachments[*]'] }, inbound: { tools: ['Get_Attachment'] },
  capture: { enabled: true, rules: [{ tools: ['get_contents'], contentField: 'content', nameField: 'file', encodingField: 'encoding' }] },
};

/** A mail server with an HTTP API for files beside MCP, like the servers that RockBot's manifest was made for. */
class MailServer extends SdkServer {
  files = new Map(); // id -> {name, type, bytes}
  rest = []; // "METHOD /path token"
  accepts = null; // a token, or a function of request and token
  sent = [];

  make() {
    const server = new McpServer({ name: 'mail', version: '1' });
    const tool = (name, inputSchema, run) => server.registerTool(name, { inputSchema }, async (args) => run(args));
    const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
    tool('send', { to: z.string(), attachments: z.array(z.any()).optional(), other: z.any().optional() }, (args) => { this.sent.push(args); return text({ ok: true }); });
    tool('get_attachment', { id: z.string(), mode: z.string(), sizeHint: z.any().optional() }, ({ id, mode }) => {
      const file = this.files.get(id);
      if (mode === 'stash') return text({ attachmentId: id, name: 'ignored.bin' });
      if (mode === 'inline') return text({ name: file.name, base64Content: file.bytes.toString('base64'), mime: file.type });
      return { isError: true, content: [{ type: 'text', text: `what is mode ${mode}?` }] };
    });
    tool('get_contents', { value: z.any() }, ({ value }) => text(value));
    tool('picture', {}, () => ({ content: [{ type: 'text', text: 'see' }, { type: 'image', data: Buffer.from('tiny').toString('base64'), mimeType: 'image/png' }] }));
    return server;
  }

  serve = async (request, response) => {
    const [, id] = /^\/api\/files(?:\/(.+))?$/.exec(request.url) ?? [null, null];
    const token = request.headers.authorization?.slice(7);
    const takes = typeof this.accepts === 'function' ? this.accepts(request, token) : !this.accepts || token === this.accepts;
    if (!takes) return response.writeHead(401).end('{"error":"who?"}');
    if (!request.url.startsWith('/api/')) return this.handler(request, response);
    this.rest.push(`${request.method} ${request.url} ${request.headers['x-key']}`);
    if (this.holds) await new Promise((resolve) => { this.letGo = resolve; });
    if (request.method === 'POST') {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const form = await new Response(Buffer.concat(chunks), { headers: { 'content-type': request.headers['content-type'] } }).formData();
      const file = form.get('upload');
      const key = `up ${this.files.size + 1}/ä`;
      this.files.set(key, { name: file.name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()) });
      return response.writeHead(this.refuses ?? 201, { 'Content-Type': 'application/json' }).end(JSON.stringify(this.refuses ? { error: 'no room' } : { attachmentId: key }));
    }
    const file = this.files.get(decodeURIComponent(id));
    if (!file) return response.writeHead(404).end();
    if (request.method === 'DELETE') { this.files.delete(decodeURIComponent(id)); return response.writeHead(204).end(); }
    return response.writeHead(200, { 'Content-Type': `${file.type}; x=y`, 'Content-Disposition': `attachment; filename="${file.name}"` }).end(file.bytes);
  };
}

async function work(t, rig, { entry = {}, more = {}, bus = {}, env, config = {} } = {}) {
  const place = await rig.place(t);
  const [mail, folder] = [new MailServer(), path.join(tempDir(), 'attachments')];
  fs.mkdirSync(folder);
  const { url } = await listen(t, mail.serve);
  const mcpServers = { mail: { type: 'http', url, headers: { 'X-Key': 'k1' }, attachments: manifest, ...entry }, ...(typeof more === 'function' ? more(url) : more) };
  const worker = await launch(t, { mcpServers, bus: { ...place.bus, agents: [place.agent], attachments: folder, ...bus }, ...config }, { env });
  const agent = await place.join(t, place.agent);
  await agent.hears(...Object.keys(mcpServers));
  const put = (name, bytes) => { fs.writeFileSync(path.join(folder, name), bytes); return path.join(folder, name); };
  const send = (attachments, args = {}) => agent.text('mail', 'send', { to: 'x', attachments, ...args });
  const refused = async (attachments, pattern, code = 'invalid_arguments') => {
    const before = mail.sent.length;
    const error = await agent.error('mail', 'send', { to: 'x', attachments });
    assert.deepEqual([error.code, error.isRetryable], [code, false], error.message);
    assert.match(error.message, pattern);
    assert.equal(mail.sent.length, before, 'the tool was called');
  };
  return { mail, folder, worker, agent, put, send, refused };
}

export const attachmentScenarios = {
  'Attachments: files that arguments name go along, small ones inside, large ones by an upload': async (t, rig) => {
    const { mail, folder, put, send } = await work(t, rig);
    const large = Buffer.alloc(100_000, 'lä\0\r\n--');
    put('small.txt', 'hello');
    fs.mkdirSync(path.join(folder, 'sub'));
    put('sub/édge "1".png', large);
    await send([{ path: path.join(folder, 'small.txt'), keep: 1.50 }, { path: 'attachments/small.txt' }, { path: 'sub/édge "1".png', name: 'x' },
      { name: 'own', base64Content: 'AAAA' }, 'text', { path: '' }], { other: { path: 'small.txt' } });
    const [{ attachments, other }] = mail.sent;
    assert.deepEqual(attachments, [
      { keep: 1.5, name: 'small.txt', base64Content: 'aGVsbG8=' }, { name: 'small.txt', base64Content: 'aGVsbG8=' }, { attachmentId: 'up 1/ä' },
      { name: 'own', base64Content: 'AAAA' }, 'text', { path: '' },
    ]);
    assert.deepEqual(other, { path: 'small.txt' });
    assert.deepEqual(mail.rest, ['POST /api/files k1']);
    const { name, type, bytes } = mail.files.get('up 1/ä');
    assert.deepEqual([name.replaceAll('%22', '"'), type], ['édge "1".png', 'image/png']);
    assert.ok(bytes.equals(large), 'every byte is there');
    assert.deepEqual([await send(undefined), mail.sent[1]], ['{"ok":true}', { to: 'x' }]);
  },

  'Attachments: what is not in the folder, or cannot be sent, is refused as invalid_arguments': async (t, rig) => {
    const { mail, folder, put, refused } = await work(t, rig);
    const outside = path.join(path.dirname(folder), 'outside.txt');
    fs.writeFileSync(outside, 'secret');
    fs.symlinkSync(outside, path.join(folder, 'link.txt'));
    fs.symlinkSync(path.dirname(folder), path.join(folder, 'up'));
    fs.mkdirSync(`${folder}-evil`);
    fs.writeFileSync(path.join(`${folder}-evil`, 'x'), 'secret');
    for (const file of [outside, '../outside.txt', 'attachments/../../outside.txt', 'link.txt', 'up/outside.txt', `${folder}-evil/x`, 'nothing.txt', 'sub/', '/', '.', 'a\0b'])
      await refused([{ path: file }], /in the attachments folder|from the attachments folder|not a file/);
    fs.mkdirSync(path.join(folder, 'sub'));
    await refused([{ path: 'sub' }], /not a file/);
    put('large.bin', Buffer.alloc(5000));
    fs.truncateSync(put('huge.bin', ''), 40 << 20);
    await refused([{ path: 'huge.bin' }], /larger than 32 MiB/);
    await refused(Array(17).fill({ path: 'large.bin' }), /more than 16/);
    mail.refuses = 507;
    await refused([{ path: 'large.bin' }], /HTTP 507.*no room/);
    mail.refuses = undefined;
    mail.accepts = 'nobody has this';
    await refused([{ path: 'large.bin' }], /HTTP 401/, 'auth_required');
  },

  'Attachments: a program gets small files, and large ones are refused': async (t, rig) => {
    const { agent, put } = await work(t, rig, { more: { pipe: { ...fake(), attachments: { outbound: { paramPaths: ['files[*]'] }, thresholdBytes: 10 } } } });
    put('a.txt', 'small');
    put('b.txt', 'not so small');
    assert.equal(await agent.text('pipe', 'echo', { x: 1.0, files: [{ path: 'a.txt' }], y: 2 }), '{"x":1,"files":[{"name":"a.txt","base64Content":"c21hbGw="}],"y":2}');
    assert.match((await agent.error('pipe', 'echo', { files: [{ path: 'b.txt' }] })).message, /not reached by HTTP/);
  },

  'Attachments: a call that is denied or must be approved uploads nothing': async (t, rig) => {
    const rule = (matches, then) => ({ server: 'mail', argument: '/attachments/0/path', matches, then });
    const { mail, agent, put, refused } = await work(t, rig, {
      entry: { approve: ['get_contents'] }, config: { rules: [rule('*secret*', 'deny'), rule('*private*', 'ask')] }, bus: { approvals: true },
      more: (url) => ({ held: { url, approve: ['send'], attachments: manifest } }),
    });
    for (const name of ['secret.bin', 'private.bin', 'large.bin']) put(name, Buffer.alloc(5000));
    put('private.txt', 'small');
    await refused([{ path: 'secret.bin' }], /denied by rule/);
    await refused([{ path: 'private.bin' }], /a person must allow the call first/);
    // The rule is about a path, which the server is not sent: the call must not slip past the rule.
    await refused([{ path: 'private.txt' }], /a rule has a person asked about the paths/);
    const held = await agent.error('held', 'send', { to: 'x', attachments: [{ path: 'large.bin' }] });
    assert.match(held.message, /a person must allow the call first/);
    assert.deepEqual([mail.rest, mail.sent], [[], []]);
  },

  'Attachments: mode save becomes a file, and the result its path': async (t, rig) => {
    const { mail, folder, agent } = await work(t, rig);
    const bytes = Buffer.alloc(200_000, 'x\0');
    mail.files.set('a/1', { name: '../../r\u00e9port.pdf'.replace('\u00e9', 'e'), type: 'application/pdf', bytes });
    mail.files.set('b', { name: 'note.txt', type: 'text/plain', bytes: Buffer.from('short') });
    const get = async (args) => JSON.parse(await agent.text('mail', 'get_attachment', args));
    const saved = await get({ id: 'a/1', mode: 'save' });
    assert.deepEqual(saved, { path: path.join(folder, 'report.pdf'), name: 'report.pdf', size: bytes.length, mime: 'application/pdf' });
    assert.ok(fs.readFileSync(saved.path).equals(bytes));
    await until('the server forgets the file', () => mail.rest.at(-1) === 'DELETE /api/files/a%2F1 k1');
    assert.deepEqual(mail.rest, ['GET /api/files/a%2F1 k1', 'DELETE /api/files/a%2F1 k1']);
    fs.writeFileSync(path.join(folder, 'note.txt'), 'mine');
    const small = await get({ id: 'b', mode: 'SAVE', sizeHint: '5' });
    assert.deepEqual(small, { path: path.join(folder, 'note-2.txt'), name: 'note-2.txt', size: 5, mime: 'text/plain' });
    assert.deepEqual([fs.readFileSync(path.join(folder, 'note.txt'), 'utf8'), fs.readFileSync(small.path, 'utf8')], ['mine', 'short']);
    // An agent that asks for the handle itself (mode stash) gets it.
    assert.deepEqual(await get({ id: 'b', mode: 'stash' }), { attachmentId: 'b', name: 'ignored.bin' });
    // A file that is gone, and one whose download hangs.
    const gone = await agent.invoke('mail', 'get_attachment', { id: 'gone', mode: 'save' });
    assert.deepEqual([gone.body.isError, gone.body.content], [true, 'The file was not saved: HTTP 404']);
    mail.holds = true;
    const late = await agent.error('mail', 'get_attachment', { id: 'b', mode: 'save' }, { timeout: 4000 });
    assert.deepEqual([late.code, late.isRetryable], ['timeout', true]);
    assert.match(late.message, /timed out: the files of the call/);
    mail.letGo();
  },

  'Attachments: binary results are captured, texts stay': async (t, rig) => {
    const { folder, agent, worker } = await work(t, rig, {
      more: (url) => ({ off: { url, attachments: { capture: { enabled: false } } }, unsaid: { url } }),
    });
    const picture = await agent.invoke('mail', 'picture');
    const shown = JSON.parse(picture.body.content.split('\n')[1]);
    assert.deepEqual([shown.size, shown.mime, path.dirname(shown.path), picture.body.contentBlocks[1].data], [4, 'image/png', folder, null]);
    assert.match(shown.note, /shared folder/);
    assert.equal(fs.readFileSync(shown.path, 'utf8'), 'tiny');
    for (const name of ['off', 'unsaid']) assert.equal((await agent.invoke(name, 'picture')).body.contentBlocks[1].data, Buffer.from('tiny').toString('base64'));
    const contents = async (value) => JSON.parse(await agent.text('mail', 'get_contents', { value }));
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255]);
    const got = await contents({ sha: 'abc', Content: `${png.toString('base64').slice(0, 4)}\n${png.toString('base64').slice(4)}`, encoding: 'base64', file: 'a/b/logo.png', size: 3 });
    const { note, ...rest } = got;
    assert.deepEqual(rest, { sha: 'abc', encoding: 'base64', file: 'a/b/logo.png', path: path.join(folder, 'logo.png'), name: 'logo.png', size: 8, mime: 'image/png' });
    assert.ok(fs.readFileSync(got.path).equals(png) && note);
    const same = async (value) => assert.deepEqual(await contents(value), value);
    await same({ content: Buffer.from('# Read me').toString('base64'), name: 'README.md' });
    await same({ content: Buffer.from('int x;').toString('base64'), name: 'x.unknown' });
    await same({ content: png.toString('base64'), encoding: 'utf-8', name: 'logo.png' });
    await same({ content: 'no base64!', name: 'logo.png' });
    assert.equal((await contents({ content: png.toString('base64') })).mime, null);
    const lost = await contents({ content: '\ufffd'.repeat(9).padEnd(2000, 'x'), name: 'logo.png', sha: 'abc' });
    assert.deepEqual([Object.keys(lost), lost.sha], [['name', 'sha', 'note'], 'abc']);
    assert.match(lost.note, /2018 bytes of that were dropped/);
    // If the folder cannot be written, the result is passed on as it came.
    fs.renameSync(folder, `${folder}-away`);
    await same({ content: png.toString('base64'), name: 'logo.png' });
    await logged(worker, /cannot write to the attachments folder/);
  },

  'Attachments: without a folder calls with files are refused, and RockBot\'s shared volume is one': async (t, rig) => {
    const shared = tempDir();
    const bare = await work(t, rig, { bus: { attachments: undefined } });
    await bare.refused([{ path: 'a.txt' }], /no attachments folder.*bus\.attachments/);
    const { mail, send } = await work(t, rig, { bus: { attachments: undefined }, env: { ROCKBOT_SHARED_PATH: shared } });
    fs.writeFileSync(path.join(shared, 'attachments', 'a.txt'), 'hello');
    await send([{ path: path.join(shared, 'attachments', 'a.txt') }]);
    assert.deepEqual(mail.sent[0].attachments, [{ name: 'a.txt', base64Content: 'aGVsbG8=' }]);
  },

  'Attachments: uploads carry the token of the profile': async (t, rig) => {
    const { mail, put, send } = await work(t, rig, { entry: { auth: { profile: 'mail' } }, env: { MAIL_TOKEN: 'the-token-of-mail' } });
    mail.accepts = 'the-token-of-mail';
    put('large.bin', Buffer.alloc(5000, 1));
    await send([{ path: 'large.bin' }]);
    assert.deepEqual(mail.sent[0].attachments, [{ attachmentId: 'up 1/ä' }]);
  },

  // Uploads to a server that takes OAuth tokens were sent without one, so each was refused.
  'Attachments: uploads carry the token that was got by OAuth, and a new one when that has ended': async (t, rig) => {
    const as = await startIssuer(t, { clients: [{ client_id: 'rialto', client_secret: 'the-secret-of-rialto', grant_types: ['client_credentials'], response_types: [], redirect_uris: [] }] });
    as.ttl = 5; // seconds; renewed one second earlier
    const place = await rig.place(t);
    const [mail, folder, used] = [new MailServer(), path.join(tempDir(), 'attachments'), []];
    fs.mkdirSync(folder);
    const good = (token) => token && JSON.parse(Buffer.from(token.split('.')[1], 'base64url')).exp * 1000 > Date.now();
    mail.accepts = (request, token) => {
      if (request.url.startsWith('/api/')) used.push(token);
      return good(token);
    };
    const { url } = await listen(t, mail.serve);
    const auth = { grant: 'client_credentials', client_id: 'rialto', client_secret: 'the-secret-of-rialto', issuer: as.issuer, scopes: ['mcp:read'] };
    await launch(t, { servers: { mail: { url, auth, attachments: { threshold: '1KiB', endpoint: '/api/files', upload_field: 'upload', outbound: ['attachments'] } } },
      bus: { ...place.bus, agents: [place.agent], attachments: folder } });
    const agent = await place.join(t, place.agent);
    await agent.hears('mail');
    fs.writeFileSync(path.join(folder, 'large.bin'), Buffer.alloc(5000, 1));
    const send = () => agent.text('mail', 'send', { to: 'x', attachments: [{ path: 'large.bin' }] });
    await send();
    assert.deepEqual(mail.sent[0].attachments, [{ attachmentId: 'up 1/ä' }]);
    assert.ok(good(used[0]));
    await until('the end of the token', () => !good(used[0]));
    await send();
    assert.deepEqual(mail.sent[1].attachments, [{ attachmentId: 'up 2/ä' }]);
    assert.notEqual(used.at(-1), used[0]);
    // A files API that refuses the token does not end the sign-in: calls go on.
    as.ttl = 3600;
    mail.accepts = (request, token) => !request.url.startsWith('/api/') && good(token);
    await until('a token that lives', () => !good(used.at(-1)));
    const error = await agent.error('mail', 'send', { to: 'x', attachments: [{ path: 'large.bin' }] });
    assert.equal(error.code, 'auth_required', error.message);
    assert.match(error.message, /refuses its token for this address/);
    const asked = as.asked.client_credentials;
    await agent.text('mail', 'send', { to: 'x' });
    assert.equal(as.asked.client_credentials, asked, 'the token is still the same');
  },
};
