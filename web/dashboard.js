// The dashboard: asks the daemon's API once a second and shows what it says.
//
// Names, arguments, results and log lines come from elsewhere. They are put into the page as text,
// never as HTML; the page's Content-Security-Policy lets nothing else work.

const INTERVAL = 1000; // between two rounds of questions
const PATIENCE = 10_000; // for one answer, and the longest pause while the daemon is gone
const CALLS = 100;
const LINES = 500;
const ARMING = 700; // before a button that has just appeared under the pointer does anything
const LINGER = 4000; // how long a decided call stays, so that the next does not slide under a click
const SHOWN = 200_000; // characters of one text

const $ = (id) => document.getElementById(id);
const by = (name) => (item) => item[name];

// --- texts ---

/** What cannot be seen, or turns other text around, is shown by its number. */
function visible(text) {
  const shown = String(text).replace(/(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return shown.length > SHOWN ? `${shown.slice(0, SHOWN)} …` : shown;
}

function span(seconds) {
  const steps = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const [size, unit] = steps.find(([s]) => seconds >= s) ?? [1, 's'];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}
const since = (time) => span((Date.now() - Date.parse(time)) / 1000);
const took = (ms) => (ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms / 1000));
const clock = (time) => new Date(time).toLocaleTimeString([], { hourCycle: 'h23' });
const bytes = (n) => (n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);
const count = (n) => Number(n).toLocaleString('en').replaceAll(',', '\u2009');

// --- JSON as it was sent: JSON.parse would round numbers, sort names and drop doubled ones ---

const tokensOf = (json) => json.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/gs) ?? [];
const opens = (token) => token === '{' || token === '[';
const closes = (token) => token === '}' || token === ']';

/** The elements of an array, or the members of an object, as tokens. */
function parts(tokens) {
  const found = [];
  let depth = 0;
  for (const token of tokens) {
    if (closes(token)) depth--;
    if (depth === 1 && token === ',') found.push([]);
    else if (depth > 0) (found.length ? found : (found.push([]), found)).at(-1).push(token);
    if (opens(token)) depth++;
  }
  return found;
}
const member = (tokens, name) => parts(tokens).find(([key]) => key === `"${name}"`)?.slice(2) ?? [];

function pretty(tokens) {
  const line = (depth) => `\n${'  '.repeat(depth)}`;
  let depth = 0;
  return tokens.map((token, i) => {
    if (closes(token)) return opens(tokens[i - 1]) ? (depth--, token) : line(--depth) + token;
    if (opens(token)) return closes(tokens[i + 1]) ? (depth++, token) : token + line(++depth);
    return token === ',' ? token + line(depth) : token === ':' ? ': ' : token;
  }).join('');
}

// --- elements ---

/** An element; texts among the children become text. */
function make(tag, properties = {}, ...children) {
  const { data, aria, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria ?? {})) element.setAttribute(`aria-${name}`, value);
  element.append(...children.map((c) => (c instanceof Node ? c : visible(c))));
  return element;
}

/** Changes a text only when it differs: a selection in it stays. */
function put(element, text) {
  const shown = visible(text ?? '');
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * Makes the children of `parent` those of `items`. A node is made once for each key and filled anew
 * each time, so that focus, selections and what was opened stay. `create` gives {nodes, fill}.
 */
const rows = new Map();
function list(parent, items, key, create) {
  const old = rows.get(parent) ?? new Map();
  const now = new Map(items.map((item) => [key(item), old.get(key(item)) ?? create(item)]));
  rows.set(parent, now);
  for (const [k, row] of old) if (!now.has(k)) row.nodes.forEach((node) => node.remove());
  let at = parent.firstChild;
  for (const item of items) {
    const row = now.get(key(item));
    for (const node of row.nodes) {
      if (node === at) at = at.nextSibling;
      else parent.insertBefore(node, at);
    }
    row.fill?.(item);
  }
}

/** A list of names and values; values may be empty. */
function facts(parent, pairs) {
  list(parent, pairs.filter(([, value]) => value !== undefined && value !== null), ([name]) => name, ([name]) => {
    const value = make('dd');
    return { nodes: [make('div', {}, make('dt', {}, name), value)], fill: ([, text]) => put(value, text) };
  });
}

/** The choices of a select; the chosen one stays even when it is not among them any more. */
function choices(select, names) {
  const all = [...new Set([...names, ...(select.value ? [select.value] : [])])].sort();
  list(select, ['', ...all], (name) => name, (name) => ({ nodes: [make('option', { value: name }, name || 'all')] }));
}

function copyButton(text, what) {
  const button = make('button', { type: 'button', aria: { label: `Copy ${what}` } }, 'Copy');
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed'; // without https, or by the browser's settings
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  };
  return button;
}

/** A text to read, with a title, and how much of it is there. */
function pane(title, text, isCut, size) {
  const head = make('div', {}, make('span', {}, title));
  if (size !== undefined) head.append(make('span', {}, bytes(size)));
  const lack = isCut ? 'cut: only its beginning was kept' : text.length > SHOWN && 'very long: only its beginning is shown, Copy takes all';
  if (lack) head.append(make('span', { className: 'cut' }, lack));
  head.append(copyButton(() => text, title.toLowerCase()));
  return make('div', { className: 'pane', data: { pane: title } }, head, make('pre', { tabIndex: 0 }, text));
}

function say(text) {
  $('notice').hidden = !text;
  put($('notice-text'), text);
}

// --- asking ---

/** A refusal, or with the status 0 no answer at all. */
class Trouble extends Error {
  constructor(status, { error, hint } = {}) {
    super([error ?? `status ${status}`, hint].filter(Boolean).join('\n'));
    this.status = status;
  }
}

/** {value, text} of an answer, or Trouble. */
async function ask(path, body) {
  const token = sessionStorage.getItem('token');
  let response, text, value;
  try {
    response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST', body: body && JSON.stringify(body), cache: 'no-store', redirect: 'error',
      headers: token ? { Authorization: `Bearer ${token}` } : {}, signal: AbortSignal.timeout(PATIENCE),
    });
    text = await response.text();
  } catch {
    throw new Trouble(0, { error: 'the daemon does not answer' });
  }
  try { value = JSON.parse(text); } catch { /* not our daemon, then */ }
  if (!response.ok) throw new Trouble(response.status, value);
  if (value === undefined) throw new Trouble(response.status, { error: 'the answer is not JSON' });
  return { value, text };
}

/** Does something, says so when it could not, and looks at once what came of it. Was it done? */
async function act(path, body) {
  let wrong = '';
  try {
    await ask(path, body);
  } catch (error) {
    wrong = `That did not work: ${error.message}`;
  }
  say(wrong);
  look();
  return !wrong;
}

/** Of what may be turned off: the answer, or null and the reason where it would stand. */
async function askIfKept(path, none) {
  try {
    return (await ask(path)).value;
  } catch (error) {
    if (error.status !== 404) throw error;
    none.hidden = false;
    put(none, `Not recorded: ${error.message.replace('\n', '; ')}`);
    return null;
  }
}

// --- servers ---

const orders = {
  up: ['restart', 'stop'], starting: ['restart', 'stop'], idle: ['start', 'stop'], failing: ['start', 'stop'], stopped: ['start'],
  needs_sign_in: ['login', 'stop'],
};
const shown = (state) => state.replace('needs_sign_in', 'needs sign-in');
const names = { login: 'Sign in' }; // of buttons, where they are not their verb
const short = (text) => (text.length > 120 ? `${text.slice(0, 120)}…` : text);
const capital = (word) => names[word] ?? word[0].toUpperCase() + word.slice(1);

/** A tab for the sign-in, opened at once: later, browsers would take it for a pop-up. */
async function signIn(server) {
  const tab = window.open('about:blank');
  if (tab) tab.opener = null;
  try {
    const { value: { url } } = await ask(`/api/servers/${encodeURIComponent(server.name)}/login`, {});
    say('');
    if (tab) tab.location = url;
    else location.assign(url);
  } catch (error) {
    tab?.close();
    say(`That did not work: ${error.message}`);
  }
}

/** Ends calls, so with some under way it asks once more. */
function orderButton(verb, server) {
  const button = make('button', { type: 'button', data: { verb }, aria: { label: `${capital(verb)} ${server().name}` } }, capital(verb));
  let timer;
  const disarm = () => { clearTimeout(timer); button.className = ''; button.textContent = capital(verb); };
  button.onclick = () => {
    if (verb === 'login') {
      signIn(server());
      return;
    }
    const open = verb === 'start' ? 0 : server().in_flight;
    if (open && !button.className) {
      button.className = 'armed';
      button.textContent = `End ${open} call${open > 1 ? 's' : ''}?`;
      timer = setTimeout(disarm, LINGER);
      return;
    }
    disarm();
    act(`/api/servers/${encodeURIComponent(server().name)}/${verb}`, {});
  };
  return button;
}

function serverRow(first) {
  let now = first;
  const number = (label) => make('td', { className: 'number', data: { label } });
  const [state, age, kind, error, when] = [make('span', { className: 'state' }), make('small'), make('small'), make('span', { tabIndex: 0 }), make('small')];
  const [tools, calls, errors, actions] = [number('Tools'), number('Calls'), number('Errors'), make('td', { className: 'actions' })];
  const row = make('tr', { data: { server: first.name } },
    make('td', {}, make('span', { className: 'name' }, first.name), kind), make('td', {}, state, age),
    tools, calls, errors, make('td', { className: 'why' }, error, when), actions);
  const [total, open] = [make('span'), make('small')];
  calls.append(total, open);
  const fill = (server) => {
    now = server;
    row.dataset.state = server.state;
    put(state, shown(server.state));
    put(age, server.since && `for ${since(server.since)}`);
    if (server.since) age.title = server.since;
    put(kind, [server.transport, server.protocol].filter(Boolean).join(' · '));
    put(tools, server.tools);
    put(total, server.calls === undefined ? '' : count(server.calls));
    put(open, [server.in_flight && `${server.in_flight} now`, server.queued && `${server.queued} queued`].filter(Boolean).join(', '));
    put(errors, server.calls === undefined ? '' : count(server.errors + server.failed + server.tool_errors));
    errors.title = server.calls === undefined ? '' : `${server.tool_errors} by tools, ${server.errors} by the server, ${server.failed} ended by Rialto; ${server.crashes} crashes`;
    put(error, server.last_error);
    error.hidden = !server.last_error;
    put(when, server.last_error_at && `${since(server.last_error_at)} ago`);
    list(actions, orders[server.state] ?? [], (verb) => verb, (verb) => ({ nodes: [orderButton(verb, () => now)] }));
  };
  return { nodes: [row], fill };
}

function showServers(status) {
  const leftOut = status.reasons.filter((r) => r.state === 'left out')
    .map((r) => ({ name: r.server, state: r.state, last_error: r.reason }));
  list($('servers-list'), [...status.servers, ...leftOut], by('name'), serverRow);
  $('servers').hidden = !status.servers.length && !leftOut.length;
  $('servers-none').hidden = !$('servers').hidden;
}

// --- approvals ---

const decided = new Map(); // id -> {item, word, at}: shown a little longer
const waiting = new Map();

function approvalRow(first, argumentsOf) {
  const buttons = [['Approve', true], ['Refuse', false]].map(([word, approved]) => {
    const button = make('button', { type: 'button', disabled: true, className: approved ? 'main' : '', aria: { label: `${word} ${first.tool} on ${first.server}` } }, word);
    button.onclick = async () => {
      enable(false);
      decided.set(first.id, { item: first, word: approved ? 'approved' : 'refused', at: Date.now() });
      if (await act(`/api/approvals/${first.id}`, { approved })) return;
      decided.delete(first.id);
      enable(true);
    };
    return button;
  });
  const enable = (yes) => buttons.forEach((b) => { b.disabled = !yes; });
  setTimeout(enable, ARMING, true);
  const text = make('span', { className: 'soft' });
  const item = make('li', { data: { approval: first.id } },
    make('div', { className: 'bar' },
      make('div', { className: 'what' }, make('span', { className: 'name' }, first.tool), ' on ', make('span', { className: 'name' }, first.server)),
      text, ...buttons),
    first.difference ? pane('Differs from what was approved', first.difference.join('\n')) : pane('Arguments', argumentsOf(first)));
  const since = (now) => (now.change === 'new' ? 'is a new tool' : 'has changed since it was approved');
  const fill = (now) => {
    const word = decided.get(now.id)?.word;
    buttons.forEach((b) => { b.hidden = Boolean(word) || now.approve_by === 'client'; });
    put(text, word ?? (now.change ? since(now) : `${now.asked === 'client' ? 'its client is being asked, ' : ''}refused in ${span(now.refused_in_ms / 1000)}`));
  };
  return { nodes: [item], fill };
}

async function showApprovals(status) {
  const { value, text } = status.approvals || waiting.size ? await ask('/api/approvals') : { value: [], text: '[]' };
  for (const [id, item] of waiting)
    if (!value.some((v) => v.id === id) && !decided.has(id)) decided.set(id, { item, word: 'waits no more', at: Date.now() });
  for (const [id, { at }] of decided) if (Date.now() - at > LINGER && !value.some((v) => v.id === id)) decided.delete(id);
  waiting.clear();
  for (const item of value) waiting.set(item.id, item);
  // In the order in which they came: what is there keeps its place.
  const all = [...value, ...[...decided.values()].map(by('item')).filter((item) => !waiting.has(item.id))].sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
  const raw = (item) => {
    const own = parts(tokensOf(text)).find((p) => member(p, 'id')[0] === `"${item.id}"`);
    return typeof item.arguments === 'string' ? item.arguments : pretty(member(own, 'arguments'));
  };
  $('approvals').hidden = !all.length;
  list($('approvals-list'), all, by('id'), (item) => approvalRow(item, raw));
}

// --- calls ---

/** What a person would read of a tool's result, apart from its JSON. */
const textsOf = (result) => (Array.isArray(result?.content) ? result.content : [])
  .filter((c) => c?.type === 'text' && typeof c.text === 'string').map(by('text')).join('\n');

function bodyPane(title, call, raw, name) {
  const json = typeof call[name] === 'string' ? call[name] : pretty(member(raw, name));
  return pane(title, json, call.cut?.[name], call[`${name}_bytes`]);
}

function showDetails(cell, { value: call, text }) {
  const raw = tokensOf(text);
  const said = textsOf(call.result);
  const panes = make('div', { className: 'panes' }, bodyPane('Arguments', call, raw, 'arguments'));
  if (said) panes.append(pane('Text', said));
  else if (call.result !== null) panes.append(bodyPane('Result', call, raw, 'result'));
  cell.replaceChildren(make('small', {}, `${call.operation} ${call.name}, call ${call.id}, ${new Date(call.at).toLocaleString()}`));
  if (call.error) cell.append(make('p', { className: 'error' }, call.error));
  for (const word of ['approved', 'refused'])
    if (call[`${word}_by`]) cell.append(make('p', {}, `${word} by ${call[`${word}_by`]}`));
  cell.append(panes);
  if (said) cell.append(make('details', {}, make('summary', {}, 'The whole result'), bodyPane('Result', call, raw, 'result')));
}

function callRow(first) {
  const [state, length] = [make('span', { className: 'state' }), make('td', { className: 'number' })];
  const button = make('button', { type: 'button', className: 'open name', aria: { expanded: 'false' } }, short(first.name || first.operation));
  const cell = make('td', { colSpan: 5 });
  const more = make('tr', { className: 'more', hidden: true, data: { details: first.id } }, cell);
  const row = make('tr', { className: 'call', data: { call: first.id } },
    make('td', {}, make('time', { dateTime: first.at, title: first.at }, clock(first.at))),
    make('td', { className: 'name' }, first.server ?? '–'), make('td', {}, button), make('td', {}, state), length);
  if (first.operation !== 'tools/call' && first.name && first.name !== first.operation)
    row.cells[2].append(make('small', {}, first.operation));
  let last = first;
  let seen; // the state whose details are shown, or on their way
  const load = async () => {
    const wanted = seen = last.state;
    try {
      const answer = await ask(`/api/calls/${first.id}`);
      if (wanted === seen) showDetails(cell, answer);
    } catch (error) {
      if (!cell.hasChildNodes()) put(cell, error.message); // else what is known of it stays
    }
  };
  row.onclick = (event) => {
    if (event.target !== button && getSelection().toString()) return; // a text was marked
    more.hidden = !more.hidden;
    button.setAttribute('aria-expanded', String(!more.hidden));
    if (!more.hidden) load();
  };
  const fill = (now) => {
    last = now;
    state.dataset.state = row.dataset.state = now.state;
    put(state, now.state);
    state.title = now.error ?? '';
    put(length, took(now.duration_ms));
    if (!more.hidden && seen !== now.state) load();
  };
  return { nodes: [row, more], fill };
}

async function showCalls(status) {
  const server = $('calls-server').value;
  choices($('calls-server'), [...status.servers.map(by('name')), ...(status.browser.calls ? ['@browser'] : [])]);
  if ($('calls-hold').checked) return;
  const query = new URLSearchParams({ limit: CALLS, ...(server && { server }), ...($('calls-failed').checked && { failed: 1 }) });
  const calls = await askIfKept(`/api/calls?${query}`, $('calls-none'));
  $('calls').hidden = !calls?.length;
  list($('calls-list'), calls ?? [], by('id'), callRow);
  if (!calls) return;
  $('calls-none').hidden = calls.length > 0;
  put($('calls-none'), server || $('calls-failed').checked ? 'No such calls.' : 'No calls yet.');
}

// --- the log ---

const log = { lines: [], next: null, run: null, level: null };

function logRow(line) {
  if (line.gap) return { nodes: [make('li', { className: 'gap' }, `${line.gap} lines are not kept any more`)] };
  return { nodes: [make('li', { data: { level: line.level } },
    make('time', { dateTime: line.at, title: line.at }, clock(line.at)), make('span', { className: 'level' }, line.level),
    make('span', { className: 'who', title: visible(line.who) }, line.who), make('span', { className: 'text' }, line.text))] };
}

async function showLog() {
  const level = $('log-level').value;
  if (level !== log.level) Object.assign(log, { lines: [], next: null, level });
  const query = new URLSearchParams({ level, limit: LINES, ...(log.next !== null && { after: log.next }) });
  const got = await askIfKept(`/api/logs?${query}`, $('log-none'));
  $('log').hidden = !got;
  if (!got) return;
  if (got.run !== log.run) { // another process, whose numbers begin anew
    const missed = log.next !== null;
    Object.assign(log, { lines: [], next: null, run: got.run });
    list($('log'), []);
    if (missed) return showLog();
  }
  if (got.lost && log.next !== null) log.lines.push({ seq: `gap ${got.next}`, gap: got.lost });
  log.lines = [...log.lines, ...got.lines].slice(-LINES);
  log.next = got.next;
  const box = $('log');
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  list(box, log.lines, by('seq'), logRow);
  if (atEnd) box.scrollTop = box.scrollHeight;
  $('log-none').hidden = log.lines.length > 0;
  box.hidden = !log.lines.length;
  put($('log-none'), 'Nothing of this level.');
}

// --- what else there is ---

function showAddresses(status) {
  const server = $('addresses-server').value;
  choices($('addresses-server'), status.servers.map(by('name')));
  const path = `/mcp${server && `/${encodeURIComponent(server)}`}`;
  const url = location.origin + path;
  const guarded = sessionStorage.getItem('token') !== null;
  const entry = { type: 'http', url, ...(guarded && { headers: { Authorization: 'Bearer TOKEN' } }) };
  const addresses = [
    ['Streamable HTTP', url], ['SSE, for older clients', `${url}/sse`], ['WebSocket', url.replace(/^http/, 'ws')],
    ['In a configuration', JSON.stringify({ mcpServers: { [server || 'rialto']: entry } }, null, 2)],
  ];
  list($('addresses'), addresses, ([label]) => label, ([label]) => {
    const code = make('code');
    return { nodes: [make('li', {}, make('div', { className: 'line' }, make('b', {}, label), copyButton(() => code.textContent, label)), code)],
      fill: ([, text]) => put(code, text) };
  });
  $('addresses-token').hidden = !guarded;
}

const healthWords = { ok: 'All is well', degraded: 'Degraded', down: 'Down' };

function showStatus(status) {
  const missing = status.reasons.map((r) => `${r.server} ${shown(r.state)}`);
  $('health').dataset.state = status.status;
  put($('health'), [healthWords[status.status] ?? status.status, missing.slice(0, 3).join(', ') + (missing.length > 3 ? ' …' : '')].filter(Boolean).join(': '));
  document.title = `${status.approvals ? `(${status.approvals}) ` : ''}Rialto: ${status.status}`;
  put($('version'), status.version);
  facts($('numbers'), [['up', span(status.uptime_s)], ['sessions', count(status.sessions)], ['calls', count(status.calls)],
    ['in flight', count(status.in_flight)], ['queued', status.queued ? count(status.queued) : null]]);
  const { browser, bus } = status;
  const anyPage = Object.values(browser).some((n) => n > 0);
  facts($('pages'), anyPage ? Object.entries(browser).map(([name, n]) => [name.replace('_', ' '), count(n)]) : []);
  $('pages-none').hidden = anyPage;
  $('bus-part').hidden = !bus;
  if (bus) facts($('bus'), [['at', bus.where], ['state', bus.up ? 'connected' : 'not connected'],
    ...Object.entries(bus.worker ?? {}).filter(([, n]) => n).map(([name, n]) => [name, count(n)]),
    ['servers elsewhere', bus.proxy?.servers]]);
  facts($('daemon'), [['process', status.pid], ['since', new Date(status.started).toLocaleString()], ['configuration', status.config ?? 'none: the demo']]);
}

// --- round after round ---

let last; // status
let timer, failures = 0, looking = false, again = false;

/** Calls of another process have the numbers of earlier ones. */
function startOver() {
  list($('calls-list'), []);
  list($('approvals-list'), []);
  waiting.clear();
  decided.clear();
}

async function round() {
  const { value: status } = await ask('/status');
  if (last && last.version !== status.version) location.reload(); // it was updated, and this page with it
  if (last && (last.pid !== status.pid || last.uptime_s > status.uptime_s)) startOver();
  last = status;
  showStatus(status);
  showServers(status);
  showAddresses(status);
  $('main').hidden = false;
  await Promise.all([showApprovals(status), showCalls(status), showLog()]);
}

/** What to do about an error of a round: the time until the next, or null to wait for a person. */
function troubled(error) {
  const refused = error.status === 401 || error.status === 403;
  const guarded = error.status === 401 || sessionStorage.getItem('token') !== null;
  failures++;
  document.title = 'Rialto: no answer';
  $('health').dataset.state = 'lost';
  put($('health'), refused ? 'Not allowed' : 'No answer');
  if (refused && guarded) {
    $('main').hidden = true;
    $('lost').hidden = true;
    $('token').hidden = false;
    put($('token-why'), sessionStorage.getItem('token') === null ? 'This Rialto asks for a token.' : `This token does not do: ${error.message.split('\n')[0]}.`);
    if (!$('token').contains(document.activeElement)) $('token-text').focus();
    return null;
  }
  const pause = Math.min(INTERVAL * 2 ** (failures - 1), PATIENCE);
  const why = error.status === 0 ? 'The daemon does not answer; what stands below is how it was' : error.message;
  $('lost').hidden = false;
  put($('lost-why'), `${why}. Next try in ${span(pause / 1000)}.`);
  return pause;
}

async function look() {
  if (looking) {
    again = true; // what is under way may have been asked before it happened
    return;
  }
  clearTimeout(timer);
  looking = true;
  let pause = INTERVAL;
  do {
    again = false;
    try {
      await round();
      failures = 0;
      for (const id of ['lost', 'token']) $(id).hidden = true;
      pause = INTERVAL;
    } catch (error) {
      pause = troubled(error);
    }
  } while (again);
  looking = false;
  document.body.classList.toggle('lost', failures > 0);
  $('forget').hidden = sessionStorage.getItem('token') === null || !$('token').hidden;
  if (pause !== null && !document.hidden) timer = setTimeout(look, pause);
}

document.addEventListener('visibilitychange', () => { if (document.hidden) clearTimeout(timer); else look(); });
for (const id of ['calls-server', 'calls-failed', 'calls-hold', 'log-level', 'addresses-server']) $(id).onchange = look;
$('retry').onclick = look;
$('notice-close').onclick = () => say('');
$('token').onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', $('token-text').value.trim());
  $('token-text').value = '';
  look();
};
$('forget').onclick = () => {
  sessionStorage.removeItem('token');
  location.reload();
};
look();
