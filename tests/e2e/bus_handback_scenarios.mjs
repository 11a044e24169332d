// A server asks during a call of an agent on the bus. Such questions were always declined, and `mcp_answer` was
// told that nothing is ever handed back. Now the agent gets the question as the reply to its call, answers when
// it can, and the reply to the answer is the end of the call.
import assert from 'node:assert/strict';
import { launch } from './bus_rig.mjs';
import { fake, until } from './lib.mjs';

const form = (properties, more = {}) => ({ message: 'Which Mercury\ndo you mean?', requestedSchema: { type: 'object', properties, ...more } });
const mercury = form({ meaning: { type: 'string', enum: ['planet', 'element'] }, size: { type: 'integer', minimum: 1 } }, { required: ['meaning'] });
const sure = form({ overwrite: { type: 'boolean' } });

const handback = (more = {}) => ({ ...fake(), elicitation: { mode: 'handback', ...more.elicitation }, ...more.server });

async function work(t, rig, { servers = { main: handback() }, bus = {} } = {}) {
  const place = await rig.place(t);
  const config = { servers, bus: { ...place.bus, role: 'worker', agents: [place.agent, `${place.agent}b`], ...bus } };
  const worker = await launch(t, config);
  const agent = await place.join(t, place.agent);
  await agent.hears(...Object.keys(servers));
  return { place, config, worker, agent };
}

const able = { headers: { 'rb-mcp-handback': '1' }, session: 's1' };
const ask = (agent, params = mercury, options = able, server = 'main') => agent.text(server, 'ask', { method: 'elicitation/create', params }, options);

/** Makes a call whose question must be handed back; resolves to the question's id. */
async function open(agent, params, options, server) {
  const text = await ask(agent, params, options, server);
  assert.match(text, /needs input before it can finish 'ask'/);
  return /question_id: "(q_[0-9a-z_]+)"/i.exec(text)[1];
}

const answer = (agent, questionId, answers, more = {}) => agent.manage('AnswerQuestion', {
  questionId, sessionId: 's1', toolCallId: 'a1', answers: answers && JSON.stringify(answers), decline: false, ...more,
});
const refused = async (agent, questionId, answers, pattern, more) => {
  const { result, error } = await answer(agent, questionId, answers, more);
  assert.equal(result, null);
  assert.match(error, pattern);
};

export const handbackScenarios = {
  'Handback: the question goes out, the answer comes in, the call is resumed': async (t, rig) => {
    const { agent } = await work(t, rig);
    assert.equal(agent.index.get('main').handback, true);
    const text = await ask(agent);
    assert.match(text, /\[rialto\] The MCP server 'main' needs input.*\n {2}"Which Mercury do you mean\?"\n {2}Fields: meaning \(one of: planet, element; required\), size \(integer\)\n/);
    assert.match(text, /stays open for 10 minutes/);
    const id = /question_id: "(.*?)"/.exec(text)[1];
    // An answer that does not fit is refused to the agent, not sent to the server, and the question stays open.
    await refused(agent, id, { meaning: 'band' }, /value of 'meaning' does not fit.*open still/);
    await refused(agent, id, { meaning: 'planet', size: '3' }, /value of 'size'/);
    await refused(agent, id, { meaning: 'planet', size: 0 }, /value of 'size'/);
    await refused(agent, id, { size: 3 }, /'meaning' is required/);
    await refused(agent, id, { meaning: 'planet', more: 1 }, /no field 'more'/);
    await refused(agent, id, null, /must be a JSON object/);
    await refused(agent, id, { meaning: 'planet' }, /another session/, { sessionId: 's2' });
    const { questionId, serverName, toolName, result, error } = await answer(agent, id, { meaning: 'planet', size: 3 });
    assert.deepEqual([questionId, serverName, toolName, error], [id, 'main', 'ask', null]);
    assert.deepEqual([result.toolCallId, result.toolName, result.isError], ['a1', 'ask', false]);
    assert.match(result.content, /"action":"accept","content":\{"meaning":"planet","size":3\}/);
    await refused(agent, id, { meaning: 'element' }, /was answered already/);
    await refused(agent, id.slice(0, -4) + 'ffff', { meaning: 'planet' }, /no open question/);
    const declined = await answer(agent, await open(agent), null, { decline: true });
    assert.match(declined.result.content, /"action":"decline"/);
  },

  'Handback: a yes or no counts once somebody else has approved it': async (t, rig) => {
    const { agent, place } = await work(t, rig, { bus: { approvals: true } });
    const engine = await place.engine(t);
    const asked = [];
    await engine.subscribe('system.mcp.tool_approval_request', `desk-${place.agent}`, (env) => {
      if (env.source === `mcp-bridge.${place.agent}`) asked.push(JSON.parse(env.text));
    });
    const decide = (request, approved, source = 'desk') => engine.publish('system.mcp.tool_approval_response', {
      ...agent.envelope('x', { request_id: request.request_id, approved, reason: null }), source,
    });
    const id = await open(agent, sure);
    const first = answer(agent, id, { overwrite: true });
    const request = await until('the request', () => asked[0], 20_000);
    assert.deepEqual({ ...request, request_id: null },
      { request_id: null, tool_name: 'ask', arguments: { overwrite: true }, server_alias: 'main', channel_id: null });
    await refused(agent, id, { overwrite: true }, /has an answer already, which waits to be approved/);
    await decide(request, true, agent.name); // the agent's own approval: does not count
    await decide(request, false);
    assert.match((await first).error, /was not approved by 'desk'.*open still/);
    const second = answer(agent, id, { overwrite: true });
    await decide(request, true); // answers the request before: does not count
    await decide(await until('the second request', () => asked[1], 20_000), true);
    assert.match((await second).result.content, /"overwrite":true/);
    // Declining the question needs no approval.
    assert.match((await answer(agent, await open(agent, sure), null, { decline: true })).result.content, /"decline"/);
  },

  'Handback: what an agent is never asked is declined at once': async (t, rig) => {
    const servers = {
      main: handback({ elicitation: { max_per_call: 1, denied_fields: ['Mailbox'] } }), never: handback({ elicitation: { max_per_call: 0 } }),
      plain: fake(), off: { ...fake(), elicitation: { mode: 'off' } },
    };
    const { agent } = await work(t, rig, { servers });
    assert.equal(agent.index.get('plain').handback, false);
    const declined = async (...args) => assert.match(await ask(agent, ...args), /"action":"decline"/);
    for (const name of ['API-Key', 'user_password', 'pin', 'mailbox']) await declined(form({ [name]: { type: 'string' } }));
    await declined(form({ x: { type: 'string', format: 'password' } }));
    await declined(form({ x: { type: 'object' } }));
    await declined(form({ x: 'string' }));
    await declined(form({}));
    await declined({ mode: 'url', url: 'https://x.example/', elicitationId: '1', message: 'm' });
    // Decisions that nobody could approve.
    await declined(sure);
    await declined(form({ go: { type: 'string', oneOf: [{ const: 'Yes', title: 'y' }, { const: 'later', title: 'l' }] } }));
    // Agents that did not say that they can answer; servers whose questions are not handed back.
    await declined(mercury, { session: 's1' });
    await declined(mercury, able, 'plain');
    await declined(mercury, able, 'never');
    assert.match(await ask(agent, mercury, able, 'off'), /-32601/);
    // A session has at most five open questions.
    for (let i = 0; i < 5; i++) await open(agent);
    await declined();
    await open(agent, mercury, { ...able, session: 's2' });
  },

  'Handback: late answers, those of others and those after a restart are told what became of the call': async (t, rig) => {
    const servers = { main: handback(), brief: handback({ server: { ask_timeout: '300ms' } }), dying: handback() };
    const { agent, place, config, worker } = await work(t, rig, { servers });
    const other = await place.join(t, `${place.agent}b`);
    const id = await open(agent);
    await refused(other, id, { meaning: 'planet' }, /no open question/);

    const brief = await open(agent, mercury, able, 'brief');
    await until('it has expired', async () => /has expired, and its call was ended/.test((await answer(agent, brief, {})).error), 20_000);
    const lost = await open(agent, mercury, able, 'dying');
    agent.invoke('dying', 'die', {}).catch(() => {});
    await until('its server is gone', async () => /is closed: its call has ended/.test((await answer(agent, lost, {})).error), 20_000);

    const released = await open(agent, mercury, { ...able, session: 's9' });
    await agent.publish('mcp.manage', 'RockBot.Tools.Mcp.McpReleaseSessionQuestionsRequest', { sessionId: 's9' });
    await until('it was dropped', async () => /dropped with its session/.test((await answer(agent, released, {}, { sessionId: 's9' })).error), 20_000);

    await place.host?.(t);
    await agent.engine.close();
    await worker.stop();
    await launch(t, config);
    const again = await place.join(t, place.agent);
    await again.hears('main');
    await refused(again, id, { meaning: 'planet' }, /the bridge was restarted since, and the call that waited for it is gone.*call the tool again/);
  },
};
