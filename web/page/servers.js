// The view Servers: how each is and what can be done about it; adding one, reading the configuration again.
import { ask, get, path, post } from './api.js';
import { configuration } from './configuration.js';
import { beside, by, list, make, put, section } from './dom.js';
import { entryDialog } from './entry.js';
import { action } from './me.js';
import { attempt, say, sure } from './notice.js';
import { address } from './router.js';
import { count, date, plural, since, span } from './text.js';

const ORDERS = {
  up: ['restart', 'stop'], starting: ['restart', 'stop'], idle: ['start', 'stop'], failing: ['start', 'stop'], stopped: ['start'],
  needs_sign_in: ['login', 'stop'], disabled: ['enable'], 'left out': ['edit'],
};
const NAMES = { login: 'Sign in', start: 'Start', stop: 'Stop', restart: 'Restart', enable: 'Enable', disable: 'Disable', edit: 'Edit', remove: 'Remove' };
export const stateWord = (state) => String(state).replace('needs_sign_in', 'needs sign-in');

/** Opens the tab for the sign-in at once: later, browsers would block it as a pop-up. */
async function signIn(server) {
  const tab = window.open('about:blank');
  if (tab) tab.opener = null;
  try {
    const { url } = await post(`${path('servers', server.name)}/login`);
    say('');
    if (tab) tab.location = url;
    else location.assign(url);
  } catch (error) {
    tab?.close();
    say(`That did not work: ${error.message}`);
  }
}

/** What a button does; stopping, removing, and restarting during calls need a confirmation. */
export async function order(verb, server) {
  const at = path('servers', server.name);
  const open = server.in_flight ? ` ${plural(server.in_flight, 'call')} under way will be ended.` : '';
  if (verb === 'login') return signIn(server);
  if (verb === 'edit') return edit(server.name);
  if (verb === 'stop' && !await sure(`Stop ${server.name}?`, `Agents cannot use its tools until it is started again.${open}`, 'Stop')) return undefined;
  if (verb === 'restart' && server.in_flight && !await sure(`Restart ${server.name}?`, open.trim(), 'Restart')) return undefined;
  if (verb === 'remove') {
    if (!await sure(`Remove ${server.name}?`, `Its entry is taken out of ${configuration.file ?? 'the configuration'}.${open}`, 'Remove')) return undefined;
    return attempt(() => ask(at, { method: 'DELETE' }));
  }
  return attempt(() => post(`${at}/${verb}`));
}

async function edit(name) {
  let entry = {};
  try {
    entry = (await get(path('servers', name))).entry ?? {};
  } catch (error) {
    say(`Its entry cannot be had: ${error.message}`);
    return;
  }
  await entryDialog(`Edit ${name}`, name, entry, ({ entry: now }) => ask(path('servers', name), { method: 'PUT', body: { entry: now } }));
}

export const orderButton = (verb, server) => action(NAMES[verb], () => order(verb, server()), { data: { verb }, aria: { label: `${NAMES[verb]} ${server().name}` } });

/** For how long it is in this state, and when the next try is: "for 3 min, next try in 12 s". */
export function stateWords(server) {
  const left = server.next_try_ms === null || server.next_try_ms === undefined ? null : server.next_try_ms - (Date.now() - (server.heard ?? Date.now()));
  const from = server.state === 'failing' ? server.failing_since ?? server.since : server.since;
  return [from && `for ${since(from)}`, left !== null && server.state === 'failing' && (left > 0 ? `next try in ${span(Math.max(1, left / 1000))}` : 'trying now')].filter(Boolean).join(', ');
}
export const lacks = (server) => (server.missing?.length ? make('span', { className: 'lacks' }, 'needs ', ...server.missing.flatMap((name, i) => [i ? ', ' : '', make('code', {}, name)])) : null);

function serverRow(first) {
  let now = first;
  const number = (label) => make('td', { className: 'number', data: { label } });
  const [state, age, kind, error, when, needs] = [make('span', { className: 'state' }), make('small'), make('small'), make('span', { tabIndex: 0 }), make('small'), make('small')];
  const [tools, calls, errors, actions] = [number('Tools'), number('Calls'), number('Errors'), make('td', { className: 'actions' })];
  const [total, open] = [make('span'), make('small')];
  calls.append(total, open);
  const row = make('tr', { data: { server: first.name } },
    make('td', {}, make('a', { className: 'name', href: address('servers', first.name) }, first.name), kind), make('td', {}, state, age, needs),
    tools, calls, errors, make('td', { className: 'why' }, error, when), actions);
  const fill = (server) => {
    now = server;
    row.dataset.state = state.dataset.state = server.state;
    put(state, stateWord(server.state));
    put(age, stateWords(server));
    if (server.since) age.title = date(server.since);
    needs.replaceChildren(...[lacks(server)].filter(Boolean));
    put(kind, [server.transport, server.protocol, server.sandbox?.level && `sandbox ${server.sandbox.level}`].filter(Boolean).join(' · '));
    put(tools, server.tools);
    put(total, server.calls === undefined ? '' : count(server.calls));
    put(open, [server.in_flight && `${server.in_flight} now`, server.queued && `${server.queued} queued`].filter(Boolean).join(', '));
    put(errors, server.calls === undefined ? '' : count(server.errors + server.failed + server.tool_errors));
    errors.title = server.calls === undefined ? '' : `${server.tool_errors} by tools, ${server.errors} by the server, ${server.failed} ended by Rialto; ${server.crashes} crashes`;
    put(error, server.last_error);
    error.hidden = !server.last_error;
    put(when, server.last_error_at && `${since(server.last_error_at)} ago`);
    const verbs = [...(ORDERS[server.state] ?? []), ...(server.missing?.length && server.state !== 'left out' ? ['edit'] : [])];
    list(actions, verbs, (verb) => verb, (verb) => ({ nodes: [orderButton(verb, () => now)] }));
  };
  return { nodes: [row], fill };
}

/** Keeps the rows of all servers up to date, including disabled and left out ones, and calls `show` with them, in the daemon's order. */
function keepServers(scope, show) {
  const rows = new Map();
  const told = () => show([...rows.values()]);
  const take = (all) => {
    for (const row of all) {
      if (row.gone) rows.delete(row.name);
      else rows.set(row.name, { ...row, heard: Date.now() });
    }
    told();
  };
  scope.keep('/api/servers', ['config'], (all) => {
    rows.clear();
    take(all);
  });
  scope.on('servers', take);
  scope.every(1000, told);
}

async function reload() {
  try {
    const report = await post('/api/reload');
    const words = Object.entries(report).filter(([, v]) => (Array.isArray(v) ? v.length : v)).map(([k, v]) => `${k}: ${Array.isArray(v) ? v.join(', ') : v}`);
    say(`The configuration was read again. ${words.join('; ')}`);
  } catch (error) {
    say(`That did not work: ${error.message}`);
  }
}

export function showServers(box, scope) {
  const body = make('tbody', { id: 'servers-list' });
  const table = make('table', { id: 'servers', hidden: true }, make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'Server'), make('th', { scope: 'col' }, 'State'),
    ...['Tools', 'Calls', 'Errors'].map((t) => make('th', { scope: 'col', className: 'number' }, t)), make('th', { scope: 'col' }, 'Last error'), make('th', { scope: 'col' }, make('span', { className: 'unseen' }, 'Actions')))), body);
  const none = make('p', { className: 'empty', hidden: true }, 'The configuration names no servers.');
  const add = action('Add server', () => entryDialog('Add a server', '', {}, ({ name, entry }) => post('/api/servers', { name, entry })), { className: 'main' });
  keepServers(scope, (rows) => {
    list(body, rows, by('name'), serverRow);
    table.hidden = !rows.length;
    none.hidden = rows.length > 0;
  });
  const file = make('span', { className: 'soft' });
  scope.keep('/api/config', ['config'], (now) => put(file, now.file ?? 'no configuration file yet: adding a server makes one'));
  box.append(section('All servers', beside(file, action('Reload', reload, { title: 'Read the configuration again' }), add), make('div', { className: 'scroll-x' }, table), none));
}

