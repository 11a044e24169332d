// Tasks: tools that answer with a task, whatever the eras of agent and server
// (tests/fixture/task_server.mjs), with the official clients and servers, and what can go wrong.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, test } from 'node:test';
import {
  bothTypes, descendants, exchange, HttpClient, npmFolder, npmServer, rawMessages, rialtoBin, root, serve, StdioClient, tempDir, until, writeConfig,
} from './lib.mjs';
import { get, post } from './admin_lib.mjs';
import { allCapabilities, META, MODERN, ModernClient, node22, startHttp, v1, v2 } from './peers.mjs';

const script = path.join(root, 'tests/fixture/task_server.mjs');
const entry = (era, ...flags) => ({ command: node22, args: [script, era, ...flags] });
const EXTENSION = `${META}tasks`;
const RELATED = `${META}related-task`;
const withTasks = { ...allCapabilities, extensions: { [EXTENSION]: {} } };
const name = { action: 'accept', content: { name: 'Ada' } };
const eras = ['legacy', 'modern'];

// --- agents: the same steps in the words of each era ---

/** An agent of the initialize era that answers every elicitation with `answer`. */
class LegacyAgent {
  constructor(url, options) {
    this.http = new HttpClient(url, options);
    this.asked = [];
  }

  async connect(t, options = {}) {
    await this.http.connect({ capabilities: allCapabilities, ...options });
    this.stream = await this.http.listen();
    t.after(() => this.stream.close());
    return this;
  }

  create(tool, args = {}, task = {}) {
    return this.request('tools/call', { name: tool, arguments: args, task });
  }

  /** The response to a request; questions that come on its stream are answered with `answer`. */
  async request(method, params = {}, answer = name) {
    const id = `r${LegacyAgent.last++}`;
    const { request } = await import('node:http');
    return new Promise((resolve, reject) => {
      const post = request(this.http.url, { method: 'POST', headers: this.http.headers, agent: false }, (response) => {
        let text = '';
        const seen = new Set();
        const read = () => {
          for (const m of rawMessages({ headers: response.headers, text }).filter(complete).map((r) => JSON.parse(r))) {
            if (m.method === 'elicitation/create' && !seen.has(m.id)) {
              seen.add(m.id);
              this.asked.push(m);
              this.http.post({ jsonrpc: '2.0', id: m.id, result: { ...answer, ...(m.params._meta && { _meta: m.params._meta }) } }).catch(reject);
            }
            if (m.id === id && !m.method) resolve(m);
          }
        };
        response.on('data', (d) => { text += d; read(); });
        response.on('end', () => { read(); reject(new Error(`no answer to ${method}: ${response.statusCode} ${text}`)); });
      });
      post.on('error', reject);
      post.end(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  static last = 0;

  idOf(created) {
    return created.result?.task?.taskId;
  }

  get(taskId) {
    return this.request('tasks/get', { taskId });
  }

  cancel(taskId) {
    return this.request('tasks/cancel', { taskId });
  }

  /** Polls as a client does; returns {result} or {error}. */
  async end(taskId) {
    const done = await until('the end of the task', async () => {
      const { result, error } = await this.get(taskId);
      if (error) return { error };
      return (result.status !== 'working') && result;
    }, 20_000);
    return done.error ? done : this.request('tasks/result', { taskId });
  }
}

const complete = (raw) => { try { JSON.parse(raw); return true; } catch { return false; } };

class ModernAgent extends ModernClient {
  asked = [];

  constructor(url, { capabilities = withTasks, ...options } = {}) {
    super(url, { capabilities, ...options });
  }

  async connect() {
    return this;
  }

  create(tool, args = {}) {
    return this.call(tool, args);
  }

  idOf(created) {
    return created.result?.resultType === 'task' ? created.result.taskId : undefined;
  }

  get(taskId) {
    return this.request('tasks/get', { taskId });
  }

  cancel(taskId) {
    return this.request('tasks/cancel', { taskId });
  }

  async end(taskId, answer = name) {
    const answered = new Set();
    const done = await until('the end of the task', async () => {
      const { result, error } = await this.get(taskId);
      if (error) return { error };
      for (const [key, question] of Object.entries(result.inputRequests ?? {})) {
        if (answered.has(key)) continue;
        answered.add(key);
        this.asked.push(question);
        assert.ok((await this.request('tasks/update', { taskId, inputResponses: { [key]: answer } })).result);
      }
      return !['working', 'input_required'].includes(result.status) && result;
    }, 20_000);
    if (done.error && !done.status) return done;
    return done.status === 'completed' ? { result: done.result } : { error: done.error ?? { message: done.status } };
  }
}

const agents = { legacy: LegacyAgent, modern: ModernAgent };

async function start(t, servers, options) {
  const server = await serve(t, { servers, ...options });
  const first = await new HttpClient(server.url, { token: options?.auth && token.ann }).connect();
  await first.waitFor(...Object.keys(servers).map((s) => `${s}__plain`));
  return server;
}

// --- the matrix ---

describe('a task of each era for an agent of each era', { concurrency: 2 }, () => {
  for (const era of eras) {
    for (const over of ['stdio', 'http']) {
      for (const kind of eras) {
        test(`${kind} agent, ${era} server over ${over}`, async (t) => {
          const up = over === 'stdio' ? entry(era) : { url: (await startHttp(t, node22, [script, era, '--http'])).url };
          const server = await start(t, { up });
          const agent = await new agents[kind](server.url).connect(t);

          const made = await agent.create('up__slow', { tag: 'a' });
          const id = agent.idOf(made);
          assert.ok(id, JSON.stringify(made));
          const first = (await agent.get(id)).result;
          assert.equal(first.taskId, id);
          assert.equal(first.status, 'working');
          assert.equal(typeof (kind === 'legacy' ? first.ttl : first.ttlMs), 'number', JSON.stringify(first));
          assert.equal(first.pollInterval ?? first.pollIntervalMs, 50);
          assert.equal((kind === 'legacy' ? first.ttlMs : first.ttl), undefined);

          await agent.request('tools/call', { name: 'up__go', arguments: {} });
          const { result } = await agent.end(id);
          assert.equal(result.content[0].text, 'slow a');
          assert.deepEqual(result.structuredContent, { tag: 'a' });
          if (kind === 'legacy') assert.equal(result._meta[RELATED].taskId, id);
          else assert.equal(result._meta?.[RELATED], undefined);
          assert.ok(!JSON.stringify([made, first, result]).includes('task-of-this-server'), 'the id of the server at /mcp');

          // Questions reach the owner, and the answers reach the server.
          const asking = agent.idOf(await agent.create('up__ask'));
          assert.equal((await agent.end(asking)).result.content[0].text, 'hello Ada');
          assert.equal(agent.asked.length, 1);
          if (kind === 'legacy' && era === 'legacy') assert.equal(agent.asked[0].params._meta[RELATED].taskId, asking);

          // Both ways to fail: an error, and a result with isError.
          const failed = await agent.end(agent.idOf(await agent.create('up__fail')));
          assert.equal(failed.error.code, -32099, JSON.stringify(failed));
          const broken = await agent.end(agent.idOf(await agent.create('up__broken')));
          assert.equal(broken.result.isError, true, JSON.stringify(broken));

          // Cancelling: the legacy era returns the status, then an error; the other accepts both.
          const cancelled = agent.idOf(await agent.create('up__slow'));
          const said = await agent.cancel(cancelled);
          if (kind === 'legacy') assert.equal(said.result.status, 'cancelled', JSON.stringify(said));
          else assert.ok(said.result, JSON.stringify(said));
          assert.equal((await agent.get(cancelled)).result.status, 'cancelled');
          const again = await agent.cancel(cancelled);
          if (kind === 'legacy') assert.equal(again.error.code, -32602);
          else assert.ok(again.result);

          // A server that answers nonsense, and a plain call beside it.
          const odd = await agent.create('up__odd');
          assert.ok(odd.error && !agent.idOf(odd), JSON.stringify(odd));
          assert.equal((await agent.request('tools/call', { name: 'up__plain', arguments: {} })).result.content[0].text, 'plain');
          assert.equal((await agent.get('no-such-task')).error.code, -32602);
        });
      }
    }
  }
});

for (const era of eras) {
  for (const kind of eras) {
    test(`a ${kind} agent without tasks and a task-only tool of a ${era} server: the call's result, with progress`, async (t) => {
      const server = await start(t, { up: entry(era) });
      const agent = await new agents[kind](server.url, { capabilities: allCapabilities }).connect(t);
      const text = async (tool, args) => {
        const answer = await agent.request('tools/call', { name: tool, arguments: args });
        assert.ok(answer.result?.content, JSON.stringify(answer));
        assert.equal(JSON.stringify(answer).includes('taskId'), false, JSON.stringify(answer));
        return answer.result.content[0].text;
      };
      assert.equal(await text('up__slow', { tag: 'b', ms: 30 }), 'slow b');
      const failed = await agent.request('tools/call', { name: 'up__fail', arguments: {} });
      assert.equal(failed.error.code, -32099);

      const params = { name: 'up__slow', arguments: { ms: 80 }, _meta: { progressToken: 'mine' } };
      const told = kind === 'modern' ? (await agent.send('tools/call', params)).events
        : rawMessages(await agent.http.post({ jsonrpc: '2.0', id: 'p', method: 'tools/call', params })).map((m) => JSON.parse(m));
      const progress = told.find((m) => m.method === 'notifications/progress' && m.params.message === 'half');
      assert.equal(progress?.params.progressToken, 'mine', JSON.stringify(told));

      // A question during the call is asked like any other.
      if (kind === 'legacy') {
        assert.equal(await text('up__ask', {}), 'hello Ada');
        assert.equal(agent.asked[0].params._meta?.[RELATED], undefined);
      } else {
        const parked = (await agent.call('up__ask')).result;
        assert.equal(parked.resultType, 'input_required', JSON.stringify(parked));
        const [key] = Object.keys(parked.inputRequests);
        const resumed = await agent.call('up__ask', {}, { requestState: parked.requestState, inputResponses: { [key]: name } });
        assert.equal(resumed.result.content[0].text, 'hello Ada');
      }
    });
  }
}

test('a caller that gives up a task-only call has its task cancelled', async (t) => {
  const server = await start(t, { up: entry('legacy') });
  const agent = await new LegacyAgent(server.url).connect(t);
  const open = agent.http.post({ jsonrpc: '2.0', id: 'open', method: 'tools/call', params: { name: 'up__slow', arguments: {} } }).catch(() => {});
  const heard = async () => (await agent.http.text('up__heard'));
  await until('the task to be waited for', async () => (await heard()).includes('tasks/result'));
  await agent.http.notify('notifications/cancelled', { requestId: 'open' });
  await until('tasks/cancel', async () => (await heard()).includes('tasks/cancel'));
  await open;
});

// --- capabilities and lists ---

test('what is declared: tasks only where a server has them, in the words of the era', async (t) => {
  const server = await start(t, { old: entry('legacy'), new: entry('modern'), none: { command: node22, args: [path.join(root, 'tests/fixture/eras_server.mjs'), 'legacy'] } });
  const legacy = async (url) => (await new HttpClient(url).connect()).initialized.capabilities;
  const modern = async (url) => (await new ModernClient(url).request('server/discover')).result.capabilities;
  const v1 = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  assert.deepEqual((await legacy(server.url)).tasks, v1);
  assert.deepEqual((await legacy(`${server.url}/new`)).tasks, v1);
  assert.equal((await legacy(`${server.url}/none`)).tasks, undefined);
  assert.deepEqual((await modern(server.url)).extensions?.[EXTENSION], {});
  assert.equal((await modern(`${server.url}/none`)).extensions?.[EXTENSION], undefined);
  assert.equal((await modern(server.url)).tasks, undefined);

  // Without the capability, the methods are unknown.
  const none = await new HttpClient(`${server.url}/none`).connect();
  assert.equal((await none.request('tasks/get', { taskId: 'x' })).error.code, -32601);
  assert.equal((await none.request('tasks/list')).error.code, -32601);
  const other = await new ModernAgent(`${server.url}/none`).send('tasks/get', { taskId: 'x' });
  assert.deepEqual([other.status, other.message.error.code], [404, -32601]);

  // The methods of the other era are unknown as well, and a client must declare the extension.
  const old = await new LegacyAgent(server.url).connect(t);
  assert.equal((await old.request('tasks/update', { taskId: 'x', inputResponses: {} })).error.code, -32601);
  const agent = new ModernAgent(server.url);
  for (const method of ['tasks/list', 'tasks/result']) {
    assert.equal((await agent.request(method, { taskId: 'x' })).error.code, -32601, method);
  }
  const bare = new ModernClient(server.url);
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const { status, message } = await bare.send(method, { taskId: 'x', inputResponses: {} });
    assert.deepEqual([status, message.error.code], [400, -32021], method);
    assert.deepEqual(message.error.data, { requiredCapabilities: { extensions: { [EXTENSION]: {} } } });
  }
  const refused = await bare.send('subscriptions/listen', { notifications: { taskIds: ['x'] } });
  assert.deepEqual([refused.status, refused.message.error.code], [400, -32021]);

  // Tools say whether they can be tasks, also those of a server that decides by itself.
  const tools = Object.fromEntries((await old.request('tools/list')).result.tools.map((x) => [x.name, x.execution?.taskSupport]));
  assert.equal(tools.old__slow, 'required');
  assert.equal(tools.new__slow, 'optional');
  assert.equal(tools.none__plain, undefined);
  const untouched = (await agent.request('tools/list')).result.tools.find((x) => x.name === 'new__slow');
  assert.equal(untouched.execution, undefined);
});

test('a server that has the result at once although a task was wanted: a task that has ended', async (t) => {
  const server = await start(t, { up: entry('modern') });
  const agent = await new LegacyAgent(server.url).connect(t);
  const made = await agent.create('up__maybe');
  assert.equal(made.result.task.status, 'completed', JSON.stringify(made));
  const id = agent.idOf(made);
  assert.equal((await agent.end(id)).result.content[0].text, 'maybe, at once');
  assert.equal((await agent.cancel(id)).error.code, -32602);
  const list = (await agent.request('tasks/list')).result.tasks;
  assert.deepEqual(list.map((x) => [x.taskId, x.status]), [[id, 'completed']]);
});

// Structured content that need not be an object is wrapped for agents of the initialize era, and so is the schema that they
// list. Results of tasks were not wrapped, and did not match their schema.
test('the result of a task is wrapped as its listed schema says', async (t) => {
  const server = await serve(t, { servers: { up: entry('modern', '--any') } });
  const agent = await new LegacyAgent(`${server.url}/up`).connect(t);
  await agent.http.waitFor('slow');
  const listed = (await agent.request('tools/list')).result.tools.find((tool) => tool.name === 'slow');
  assert.deepEqual(Object.keys(listed.outputSchema.properties), ['result']);
  const made = await agent.create('slow', { tag: 'x', ms: 20 });
  assert.deepEqual((await agent.end(agent.idOf(made))).result.structuredContent, { result: { tag: 'x' } });
  const run = await agent.request('tools/call', { name: 'slow', arguments: { tag: 'y', ms: 20 } });
  assert.deepEqual(run.result.structuredContent, { result: { tag: 'y' } });
  const kept = await agent.create('maybe');
  assert.deepEqual((await agent.end(agent.idOf(kept))).result.structuredContent, { result: { tag: 'now' } });
  const modern = new ModernAgent(`${server.url}/up`);
  assert.deepEqual((await modern.end(modern.idOf(await modern.create('slow', { tag: 'z', ms: 20 })))).result.structuredContent, { tag: 'z' });
});

test('a tool that may be a task is one for an agent of the stateless era that takes them', async (t) => {
  const server = await start(t, { up: entry('legacy') });
  const made = await new ModernAgent(server.url).create('up__maybe');
  assert.equal(made.result.resultType, 'task');
  assert.equal(await new ModernClient(server.url).text('up__maybe'), 'maybe, at once');
});

// --- ids ---

test('ids: of two servers never the same at /mcp, untouched at /mcp/<server> where nobody can guess them', async (t) => {
  const server = await start(t, { a: entry('legacy', '--ids=short'), b: entry('legacy', '--ids=short'), long: entry('modern') });
  const agent = await new LegacyAgent(server.url).connect(t);
  const [a, b] = [agent.idOf(await agent.create('a__slow', { tag: 'A' })), agent.idOf(await agent.create('b__slow', { tag: 'B' }))];
  assert.notEqual(a, b);
  for (const [id, tool] of [[a, 'a__go'], [b, 'b__go']]) {
    await agent.http.text(tool, { task: '1' });
    assert.equal((await agent.end(id)).result.content[0].text, tool === 'a__go' ? 'slow A' : 'slow B');
  }
  assert.equal((await agent.get('1')).error.code, -32602);

  const one = await new LegacyAgent(`${server.url}/long`).connect(t);
  const own = one.idOf(await one.create('slow', { ms: 10 }));
  assert.match(own, /^task-of-this-server/);
  assert.ok((await one.end(own)).result);
  const guessable = await new LegacyAgent(`${server.url}/a`).connect(t);
  assert.match(guessable.idOf(await guessable.create('slow')), /^[0-9a-f]{32}$/);
});

const token = { ann: 'secret-of-ann-0123456789', bob: 'secret-of-bob-0123456789' };
const auth = {
  tokens: Object.entries(token).map(([who, secret]) => ({ name: who, hash: `sha256:${createHash('sha256').update(secret).digest('hex')}` })),
};
for (const era of eras) {
  test(`one caller's tasks of a ${era} server are nobody else's`, async (t) => {
    const server = await start(t, { up: entry(era) }, { auth });
    const legacy = async (who) => new LegacyAgent(server.url, { token: token[who] }).connect(t);
    const modern = (who) => new ModernAgent(server.url, { headers: { Authorization: `Bearer ${token[who]}` } });
    const ann = await legacy('ann');
    const bob = await legacy('bob');
    const id = ann.idOf(await ann.create('up__slow'));

    for (const stranger of [bob, modern('bob')]) {
      assert.equal((await stranger.get(id)).error.code, -32602);
      assert.equal((await stranger.cancel(id)).error.code, -32602);
    }
    assert.equal((await bob.request('tasks/result', { taskId: id })).error.code, -32602);
    assert.equal((await modern('bob').request('tasks/update', { taskId: id, inputResponses: {} })).error.code, -32602);
    assert.deepEqual((await bob.request('tasks/list')).result.tasks, []);
    const deaf = await modern('bob').listen({ taskIds: [id] });
    t.after(() => deaf.close());
    const [ack] = await deaf.waitFor('notifications/subscriptions/acknowledged');
    assert.equal(ack.params.notifications.taskIds, undefined);

    // The owner has the task in every session and in both eras, and is notified of its end.
    const later = await legacy('ann');
    assert.deepEqual((await later.request('tasks/list')).result.tasks.map((x) => x.taskId), [id]);
    assert.equal((await modern('ann').get(id)).result.status, 'working');
    await ann.cancel(id);
    await ann.stream.waitFor('notifications/tasks/status');
    const told = ann.stream.messages().find((m) => m.method === 'notifications/tasks/status').params;
    assert.deepEqual([told.taskId, told.status], [id, 'cancelled']);
    assert.equal(bob.stream.count('notifications/tasks/status'), 0);
    assert.equal((await bob.request('tasks/list', { cursor: id })).error.code, -32602);
  });
}

for (const era of eras) {
  test(`an operator sees everybody's tasks of a ${era} server, and cancels one in its owner's place`, async (t) => {
    const server = await start(t, { up: entry(era) }, { auth });
    const by = { token: token.bob };
    const ann = await new LegacyAgent(server.url, { token: token.ann }).connect(t);
    const id = ann.idOf(await ann.create('up__slow'));
    const task = async () => (await get(server, '/api/tasks', by)).json.find((row) => row.id === id);
    const { tool, state, token: owner, server: at } = await task();
    assert.deepEqual([at, tool, state, owner], ['up', 'slow', 'working', 'ann']);
    const cancelled = await post(server, `/api/tasks/${id}/cancel`, undefined, by);
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.equal((await task()).state, 'cancelled');
    assert.equal((await ann.get(id)).result.status, 'cancelled');
    const again = await post(server, `/api/tasks/${id}/cancel`, undefined, by);
    assert.equal(again.status, 409, again.text);
    assert.match(again.json.error, /[Cc]ancel/);
    assert.equal((await post(server, '/api/tasks/none/cancel', undefined, by)).status, 404);
    assert.equal((await get(server, `/api/tasks/${id}/cancel`, by)).status, 405);
  });
}

for (const era of eras) {
  test(`an agent of the stateless era that listens is told of tasks of a ${era} server, with questions and result`, async (t) => {
    const server = await start(t, { up: entry(era) });
    const agent = new ModernAgent(server.url);
    const id = agent.idOf(await agent.create('up__slow', { tag: 'x' }));
    const stream = await agent.listen({ taskIds: [id, 'no-such'] });
    t.after(() => stream.close());
    const [ack] = await stream.waitFor('notifications/subscriptions/acknowledged');
    assert.deepEqual(ack.params.notifications.taskIds, [id]);
    await agent.call('up__go');
    const told = await until('the end', () => stream.of('notifications/tasks').find((m) => m.params.status === 'completed'), 20_000);
    assert.equal(told.params.taskId, id);
    assert.equal(told.params.result.content[0].text, 'slow x');
    assert.equal(told.params._meta[`${META}subscriptionId`], stream.id);
  });
}

// --- what lasts ---

test('a task outlives its agent, the connection and this bridge, in tasks.json for its owner alone', async (t) => {
  const state = tempDir();
  const { url } = await startHttp(t, node22, [script, 'legacy', '--http']);
  const run = () => serve(t, { servers: { up: { url } } }, { env: { XDG_STATE_HOME: state } });
  const first = await run();
  const agent = await new LegacyAgent(first.url).connect(t);
  await agent.http.waitFor('up__slow');
  const id = agent.idOf(await agent.create('up__slow', { tag: 'kept' }));
  await agent.http.close();

  const back = await new LegacyAgent(first.url).connect(t);
  assert.equal((await back.get(id)).result.status, 'working');
  assert.deepEqual((await back.request('tasks/list')).result.tasks.map((x) => x.taskId), [id]);
  await first.stop();

  const file = path.join(state, 'rialto/tasks.json');
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  const [kept] = JSON.parse(fs.readFileSync(file, 'utf8')).tasks;
  assert.equal(kept.id, id);
  const second = await run();
  const again = await new LegacyAgent(second.url).connect(t);
  await again.http.waitFor('up__go');
  assert.equal((await again.get(id)).result.status, 'working');
  await again.http.text('up__go', { task: kept.own });
  assert.equal((await again.end(id)).result.content[0].text, 'slow kept');
  await second.stop();

  // An invalid file is reported, and nothing is lost except its contents.
  fs.writeFileSync(file, '{"tasks":[{"id":7},"x",{"id":"a","server":"up","own":"b","state":"{","expires":99999999999999}]');
  const third = await run();
  assert.match(third.stderr(), /tasks\.json is not a list of tasks/);
});

test('a task is forgotten when its time is over, and when the process that ran it has ended', async (t) => {
  const server = await start(t, { up: entry('legacy') });
  const agent = await new LegacyAgent(server.url).connect(t);
  const brief = agent.idOf(await agent.create('up__slow', {}, { ttl: 300 }));
  assert.ok(brief);
  await until('the task to be over', async () => (await agent.get(brief)).error?.code === -32602);
  assert.deepEqual((await agent.request('tasks/list')).result.tasks, []);

  // The server's next process gives the same ids again, for other tasks of other callers.
  const lost = agent.idOf(await agent.create('up__slow'));
  const [{ pid }] = descendants(server.pid);
  process.kill(pid, 'SIGKILL');
  await until('the task to be gone', async () => (await agent.get(lost)).error?.code === -32602, 20_000);
});

// For an agent of the stateless era, the result of each task of a server of the initialize era is waited for, to hear its
// questions. That request was never given up: each task that was forgotten left one open, here and at its server.
test('the result of a task that is forgotten is not waited for any more', async (t) => {
  const server = await start(t, { up: entry('legacy', '--ttl=300') });
  const agent = new ModernAgent(server.url);
  const forgotten = agent.idOf(await agent.create('up__slow'));
  await until('the task to be over', async () => (await agent.get(forgotten)).error?.code === -32602);
  assert.ok(agent.idOf(await agent.create('up__slow')));
  const heard = JSON.parse(await agent.text('up__heard')).map((line) => JSON.parse(line));
  const waits = heard.filter((m) => m.method === 'tasks/result');
  assert.equal(waits.length, 2, 'one for each task');
  assert.deepEqual(heard.filter((m) => m.method === 'notifications/cancelled').map((m) => m.params.requestId), [waits[0].id]);
});

// --- policy ---

test('what a view hides cannot be called as a task, and approval is asked before a task is made', async (t) => {
  const server = await start(t, { up: { ...entry('legacy'), deny: ['ask'], approve: ['slow'] } });
  const agent = await new LegacyAgent(server.url).connect(t);
  assert.equal((await agent.create('up__ask')).error.code, -32602);
  const made = await agent.create('up__slow', { ms: 10 }); // the agent accepts the elicitation for the approval
  assert.equal(agent.asked.length, 1, JSON.stringify(made));
});

test('members that a lenient server takes for the id are refused', async (t) => {
  const server = await start(t, { up: entry('legacy') });
  const agent = await new LegacyAgent(server.url).connect(t);
  const id = agent.idOf(await agent.create('up__slow'));
  for (const params of [`{"taskId":"${id}","TaskId":"x"}`, `{"taskid":"${id}"}`, '{"taskId":7}', '{}']) {
    const { message } = await agent.http.rawRequest(1, 'tasks/get', params);
    assert.equal(message.error?.code, -32602, params);
  }
});

// --- real peers ---

const extTasks = (file) => import(pathToFileURL(path.join(npmFolder, 'node_modules/@modelcontextprotocol/ext-tasks/dist', file)));

test('server-everything and the official client of 2025-11-25', async (t) => {
  const server = await serve(t, { servers: { everything: npmServer('server-everything', ['stdio']) } });
  const client = new v1.Client({ name: 'c', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(v1.ElicitRequestSchema, () => ({ action: 'accept', content: { interpretation: 'snake' } }));
  await client.connect(new v1.StreamableHTTPClientTransport(new URL(server.url)));
  t.after(() => client.close());
  const tool = 'everything__simulate-research-query';
  await until('the tool', async () => (await client.listTools()).tools.some((x) => x.name === tool), 30_000);
  const seen = [];
  const stream = client.experimental.tasks.callToolStream({ name: tool, arguments: { topic: 'python', ambiguous: true } }, v1.CallToolResultSchema, { task: { ttl: 60_000 } });
  for await (const m of stream) seen.push(m);
  assert.equal(seen[0].type, 'taskCreated', JSON.stringify(seen));
  assert.equal(seen.at(-1).type, 'result', JSON.stringify(seen));
  assert.match(seen.at(-1).result.content[0].text, /Research Report: python/);
  assert.equal((await client.experimental.tasks.listTasks()).tasks[0].taskId, seen[0].task.taskId);
});

test('the official task client on both generations', async (t) => {
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await extTasks('client/index.js');
  const server = await start(t, { old: entry('legacy'), new: entry('modern') });
  const raw = new ModernAgent(server.url);
  const v2Request = {
    rawDispatch: async (request) => {
      const { result, error } = await raw.request(request.method, request.params);
      return error ? { kind: 'error', error } : { kind: 'result', result };
    },
    v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo: { name: 'c', version: '1' }, clientCapabilities: {} },
  };
  for (const mode of [{ mode: 'legacy' }, { mode: { pin: '2026-07-28' } }]) {
    const client = new v2.Client({ name: 'c', version: '1' }, { capabilities: {}, versionNegotiation: mode });
    await client.connect(new v2.StreamableHTTPClientTransport(new URL(server.url)));
    t.after(() => client.close());
    const session = createTaskSessionFromClient(client, { endpointId: 'here', ...(mode.mode !== 'legacy' && v2Request) });
    for (const up of ['old', 'new']) {
      const execution = await session.callTool(`${up}__slow`, { tag: up, ms: 30 });
      const { outcome } = await execution.settle();
      assert.equal(resultFromTaskOutcome(outcome).content[0].text, `slow ${up}`);
    }
    await session.close();
  }
});

test('tasks as the official schemas want them', async (t) => {
  const { DetailedTaskV2Schema, CreateTaskResultV2Schema } = await extTasks('core/v2/index.js');
  const { TaskV1Schema } = await extTasks('core/v1/index.js');
  const server = await start(t, { old: entry('legacy'), new: entry('modern') });
  const modern = new ModernAgent(server.url);
  const legacy = await new LegacyAgent(server.url).connect(t);
  for (const up of ['old', 'new']) {
    for (const tool of ['slow', 'ask', 'fail', 'broken']) {
      const made = (await modern.create(`${up}__${tool}`, { ms: 20 })).result;
      CreateTaskResultV2Schema.parse(made);
      await modern.end(made.taskId);
      DetailedTaskV2Schema.parse((await modern.get(made.taskId)).result);
      const { task } = (await legacy.create(`${up}__${tool}`, { ms: 20 })).result;
      TaskV1Schema.strict().parse(task);
      await legacy.end(task.taskId);
      TaskV1Schema.strict().parse((await legacy.get(task.taskId)).result);
    }
  }
});

test('on a pipe, in both eras', async (t) => {
  const file = writeConfig(tempDir(), { servers: { up: entry('legacy') } });
  const agent = new StdioClient(t, rialtoBin, ['stdio', '--alone', '-c', file]);
  await agent.connect({ capabilities: allCapabilities });
  await agent.waitFor('up__slow');
  const { result } = await agent.request('tools/call', { name: 'up__slow', arguments: { ms: 30 }, task: {} });
  const end = await agent.request('tasks/result', { taskId: result.task.taskId });
  assert.equal(end.result.content[0].text, 'slow ');
  assert.equal((await agent.request('tasks/get', { taskId: result.task.taskId })).result.status, 'completed');
});

// What an agent answered to a task's question was put on the server's pipe as it came. Its line ends began lines of their
// own: an agent could send a server whatever it liked, tools that are denied too, and one that writes its JSON on
// several lines ended the server.
test('an answer to a question is one line for the server, however the agent wrote it', async (t) => {
  const server = await start(t, { up: entry('legacy') });
  const agent = new ModernAgent(server.url);
  const taskId = agent.idOf(await agent.create('up__ask'));
  const asked = await until('the question', async () => (await agent.get(taskId)).result.inputRequests);
  const own = { jsonrpc: '2.0', id: 4711, method: 'tools/call', params: { name: 'go', arguments: {} } };
  const message = {
    jsonrpc: '2.0', id: 7, method: 'tasks/update',
    params: {
      taskId, inputResponses: { [Object.keys(asked)[0]]: { action: 'accept', content: 'HERE' } },
      _meta: { [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: withTasks },
    },
  };
  const answer = await exchange(server.url, {
    headers: { 'Content-Type': 'application/json', Accept: bothTypes, 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tasks/update', 'Mcp-Name': taskId },
    body: JSON.stringify(message).replace('"HERE"', `\n${JSON.stringify(own)}\r\n`),
  });
  assert.equal(answer.status, 200, answer.text);
  await agent.end(taskId);
  const { result } = await agent.call('up__heard');
  const lines = JSON.parse(result.content[0].text).map((line) => JSON.parse(line));
  assert.deepEqual(lines.filter((m) => m.id === own.id), []);
  assert.deepEqual(lines.find((m) => m.result?.action)?.result.content, own);
});

// The request id of a call that became a task stays in use as a progress token. When the POST of the call ended, that was
// taken for a request without an answer, and the daemon went on with freed memory.
test('progress of a tool that runs only as a task, over HTTP', async (t) => {
  const { url } = await startHttp(t, node22, [script, 'legacy', '--http']);
  const server = await start(t, { up: { url } });
  const agent = await new HttpClient(server.url).connect();
  const answer = await agent.request('tools/call', { name: 'up__slow', arguments: { ms: 300 }, _meta: { progressToken: 'p1' } });
  assert.equal(answer.result?.content[0].text, 'slow ', JSON.stringify(answer));
});
