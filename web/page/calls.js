// The view Calls (the last ones as they come), and the view of one call (its story, arguments and result, replay).
import { ask, path } from './api.js';
import { by, check, choices, labelled, list, make, nothing, pane, put, section, select } from './dom.js';
import { member, pretty, tokensOf } from './json.js';
import { action } from './me.js';
import { attempt } from './notice.js';
import { replayParts } from './replay.js';
import { forgetPictures, resultNodes } from './result.js';
import { address, link, note } from './router.js';
import { storyFigure } from './story.js';
import { clock, date, short, took } from './text.js';

const ROWS = 100;

export const nameOf = (client) => (client === null || client === undefined ? '' : typeof client === 'string' ? client : [client.name, client.version].filter(Boolean).join(' '));
/** The id of a call as a number (it may be a string): later calls have greater ones. */
const order = (row) => Number(row.id);
const wrong = (row) => row.state === 'failed' || row.state === 'error';

function callRow(first) {
  const [state, length] = [make('span', { className: 'state' }), make('td', { className: 'number' })];
  const row = make('tr', { className: 'call', data: { call: first.id } },
    make('td', {}, make('time', { dateTime: first.at, title: date(first.at) }, clock(first.at))), make('td', { className: 'name' }, first.server ?? '–'),
    make('td', {}, make('a', { className: 'name', href: address('calls', first.id) }, short(first.name || first.operation)),
      first.operation !== 'tools/call' && first.name && first.name !== first.operation && make('small', {}, first.operation)),
    make('td', { className: 'who' }, short([first.token, nameOf(first.client)].filter(Boolean).join(', '), 60)), make('td', {}, state), length);
  let last = first;
  const age = () => put(length, took(last.live ?? ['running', 'waiting'].includes(last.state) ? Math.max(last.duration_ms, last.duration_ms + (Date.now() - last.heard)) : last.duration_ms));
  const fill = (now) => {
    last = now;
    state.dataset.state = row.dataset.state = now.state;
    put(state, now.state);
    state.title = now.error ?? '';
    age();
  };
  return { nodes: [row], fill };
}

/** The open tasks, when there are any. */
function tasks(scope) {
  const rows = make('tbody');
  const element = section('Tasks', make('div', { className: 'scroll-x' }, make('table', { className: 'plain' }, make('thead', {}, make('tr', {}, ...['Task', 'Server', 'Tool', 'State', 'Since', ''].map((t) => make('th', { scope: 'col' }, t || make('span', { className: 'unseen' }, 'Actions'))))), rows)));
  element.hidden = true;
  scope.keep('/api/tasks', ['tasks'], (all) => {
    element.hidden = !all.length;
    list(rows, all.slice(0, ROWS), by('id'), (first) => {
      const [state, cancel] = [make('span', { className: 'state' }), action('Cancel', () => attempt(() => ask(`${path('tasks', first.id)}/cancel`, { body: {} })), { aria: { label: `Cancel task ${first.tool}` } })];
      return {
        nodes: [make('tr', {}, make('td', { className: 'name' }, short(first.id, 24)), make('td', { className: 'name' }, first.server), make('td', { className: 'name' }, short(first.tool ?? '')), make('td', {}, state), make('td', {}, make('time', { dateTime: first.since, title: date(first.since) }, clock(first.since))), make('td', { className: 'actions' }, cancel))],
        fill(now) {
          state.dataset.state = { completed: 'ok', failed: 'failed', cancelled: 'failed', working: 'running', input_required: 'waiting' }[now.state] ?? '';
          put(state, now.state);
          cancel.hidden = !['working', 'input_required'].includes(now.state);
        },
      };
    });
  });
  return element;
}

export function showCalls(box, scope, { query }) {
  const asked = { server: query.get('server') ?? '', failed: query.has('failed'), q: query.get('q') ?? '' };
  let rows = new Map();
  let held = false, kept = true, servers = [];
  const server = select([['', 'all']], '', {});
  const search = make('input', { type: 'search', value: asked.q, placeholder: 'name or client', autocomplete: 'off' });
  const body = make('tbody', { id: 'calls-list' });
  const table = make('div', { className: 'card scroll-x' }, make('table', { id: 'calls', hidden: true }, make('thead', {}, make('tr', {}, ...['Time', 'Server', 'Name', 'Caller', 'State', 'Took'].map((t) => make('th', { scope: 'col', className: t === 'Took' ? 'number' : '' }, t)))), body));
  const none = make('p', { className: 'empty', id: 'calls-none', hidden: true });
  table.append(none);

  const isWanted = (row) => (!asked.server || row.server === asked.server) && (!asked.failed || wrong(row))
    && (!asked.q || `${row.name} ${row.operation} ${row.token ?? ''} ${nameOf(row.client)}`.toLowerCase().includes(asked.q.toLowerCase()));
  function show() {
    if (held || !kept) return;
    const shown = [...rows.values()].filter(isWanted).sort((a, b) => order(b) - order(a)).slice(0, ROWS);
    body.parentElement.hidden = !shown.length;
    list(body, shown, by('id'), callRow);
    none.hidden = shown.length > 0;
    put(none, asked.server || asked.failed || asked.q ? 'No such calls.' : 'No calls yet.');
    choices(server, [...new Set([...servers, ...[...rows.values()].map(by('server')).filter(Boolean)])]);
  }
  const take = (all) => {
    for (const row of all) rows.set(row.id, { ...row, heard: Date.now() });
    if (rows.size > 4 * ROWS) rows = new Map([...rows].sort(([, a], [, b]) => order(b) - order(a)).slice(0, 2 * ROWS));
  };
  const look = scope.keep(() => `/api/calls?${new URLSearchParams({ limit: ROWS, ...(asked.server && { server: asked.server }), ...(asked.failed && { failed: 1 }) })}`, [], (all) => {
    kept = true;
    take(all);
    show();
  }, (error) => {
    if (error.status !== 404) return;
    kept = false;
    body.parentElement.hidden = true;
    none.hidden = false;
    put(none, `Not recorded: ${error.message.replace('\n', '; ')}`);
  });
  const changed = (now) => {
    Object.assign(asked, now);
    note('calls', '', asked);
    show();
    look();
  };
  scope.on('hello', ({ now, before }) => { // another process uses the same call numbers again
    if (before?.pid === now.pid) return;
    rows.clear();
    list(body, []);
  });
  scope.on('calls', ({ rows: all, skipped }) => {
    take(all);
    show();
    if (skipped) look();
  });
  scope.keep('/api/servers', ['config'], (all) => {
    servers = all.map(by('name'));
    show();
  });
  scope.every(1000, () => { if ([...body.rows].some((r) => ['running', 'waiting'].includes(r.dataset.state))) show(); });
  server.onchange = () => changed({ server: server.value });
  search.oninput = () => changed({ q: search.value.trim() });
  choices(server, asked.server ? [asked.server] : []);
  server.value = asked.server;
  box.append(tasks(scope), make('div', { className: 'filters' }, labelled('Server', server), labelled('Search', search),
    check('failed only', asked.failed, (failed) => changed({ failed })), check('hold still', false, (still) => { held = still; show(); })), table);
}

// --- one call ---

/** The arguments and the result of a call. */
function carried(call, raw) {
  const json = (name) => (typeof call[name] === 'string' ? call[name] : pretty(member(raw, name)));
  const panes = [pane('Arguments', json('arguments'), { cut: call.cut?.arguments, size: call.arguments_bytes })];
  const result = call.result !== null && typeof call.result === 'object' && !Array.isArray(call.result) ? resultNodes(call.result, json('result')) : [];
  if (call.result !== null && call.result !== undefined && (call.cut?.result || !result.length)) panes.push(pane('Result', json('result'), { cut: call.cut?.result, size: call.result_bytes }));
  else panes.push(...(result.length ? [make('div', { className: 'pane' }, make('div', {}, 'Result'), ...result)] : []));
  return panes;
}

export function showCall(box, scope, { name: id, retitle }) {
  const head = make('div', { className: 'call-head card padded' });
  const story = storyFigure();
  const bodies = make('div', { className: 'panes' });
  const other = select([['', 'the same server']], '', {});
  const tools = make('div', { className: 'buttons' });
  const shown = make('div');
  let last = '', call;
  scope.after(forgetPictures);

  function buttons() {
    const replay = replayParts(call, () => other.value);
    if (call.replayable !== true && call.replayable !== undefined) {
      replay.element.disabled = true;
      replay.element.title = String(call.replayable);
    }
    const edit = make('a', { className: 'button', href: address('tools', call.name, { server: call.server ?? '', call: call.id }) }, 'Edit');
    tools.replaceChildren(replay.element, labelled('against', other), call.operation === 'tools/call' && !call.cut?.arguments ? edit : '',
      call.replayable !== true && call.replayable !== undefined ? make('span', { className: 'soft' }, String(call.replayable)) : '');
    shown.replaceChildren(replay.shown);
  }
  function fill(now, text) {
    if (text === last) return;
    last = text;
    const first = !call || call.state !== now.state;
    call = now;
    retitle(`Calls: ${short(now.name || now.operation, 60)}`);
    head.replaceChildren(make('p', { className: 'call-line' }, make('span', { className: 'state', data: { state: now.state } }, now.state), ` ${now.operation} ${short(now.name, 200)} `,
      now.server && 'on ', now.server && link(now.server, 'servers', now.server), `, ${took(now.duration_ms)}, `, make('time', { dateTime: now.at }, date(now.at)), `, call ${now.id}`),
    make('p', { className: 'soft' }, [nameOf(now.client) && `by ${nameOf(now.client)}`, now.token && `token ${now.token}`, now.retried && `tried ${now.retried + 1} times`,
      now.approved_by && `approved by ${now.approved_by}`, now.refused_by && `refused by ${now.refused_by}`].filter(Boolean).join(' · ')));
    if (now.error) head.append(make('p', { className: 'error' }, now.error));
    story.fill(now, text);
    bodies.replaceChildren(...carried(now, tokensOf(text)));
    if (first && !shown.querySelector('.replayed')?.textContent) buttons();
  }
  const look = scope.keep(path('calls', id), [], fill, (error) => {
    if (!call) box.replaceChildren(nothing(error.status === 404 ? 'This call is not recorded (any more).' : error.message, ' ', link('All calls', 'calls')));
  });
  scope.on('calls', ({ rows, skipped }) => {
    if (rows.some((row) => row.id === id) || (skipped && call?.live)) look();
  });
  scope.keep('/api/servers', ['config'], (all) => {
    choices(other, all.map(by('name')));
    put(other.options[0], 'the same server');
  });
  box.append(make('p', {}, link('All calls', 'calls')), head, tools, shown, make('div', { className: 'card padded' }, story.element), make('div', { className: 'card padded' }, bodies));
}
