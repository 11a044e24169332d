// The view of one server: how it is, what it said of itself, its standard error, the messages of its connection, its entry.
import { path } from './api.js';
import { badge, beside, button, facts, labelled, list, make, nothing, pane, put, save, section, select } from './dom.js';
import { lacks, order, orderButton, stateWord, stateWords } from './servers.js';
import { action } from './me.js';
import { readable } from './json.js';
import { address, link } from './router.js';
import { clock, date, plural, short } from './text.js';

const MESSAGES = 200;

/** The messages of its connection: filtered, opened, pinned, saved. */
function messages(name, scope) {
  const kind = select([['', 'all'], ['request', 'requests'], ['response', 'responses'], ['notification', 'notifications']], '');
  const search = make('input', { type: 'search', autocomplete: 'off', spellcheck: false });
  const rows = make('ol', { className: 'messages' });
  const none = make('p', { className: 'empty', hidden: true }, 'No such messages.');
  const pinned = new Set();
  let all = [];
  const textOf = (m) => (m.body === null || m.body === undefined ? '' : typeof m.body === 'string' ? m.body : JSON.stringify(m.body));
  const isWanted = (m) => pinned.has(m.n) || ((!kind.value || m.kind === kind.value) && (!search.value || `${m.method ?? ''} ${textOf(m)}`.toLowerCase().includes(search.value.toLowerCase())));
  function row(m) {
    const more = make('details', {}, make('summary', {}, make('time', { dateTime: m.at, title: date(m.at) }, clock(m.at)), ' ', badge(m.way === 'in' ? 'from the server' : 'to the server', m.way), ' ', make('span', { className: 'name' }, short(m.method ?? m.kind, 100)), ' ',
      make('span', { className: 'soft' }, [m.kind, m.id !== null && m.id !== undefined && `id ${short(String(m.id), 40)}`, m.cut && 'cut'].filter(Boolean).join(', '))));
    more.ontoggle = () => { if (more.open && more.children.length === 1) more.append(pane('Message', readable(textOf(m)), { cut: m.cut })); };
    const pin = button('Pin', () => {
      if (!pinned.delete(m.n)) pinned.add(m.n);
      show();
    }, { aria: { pressed: 'false', label: `Pin message ${m.n}` } });
    const element = make('li', {}, more, pin);
    return { nodes: [element], fill() { pin.setAttribute('aria-pressed', String(pinned.has(m.n))); element.classList.toggle('pinned', pinned.has(m.n)); } };
  }
  function show() {
    const wanted = all.filter(isWanted);
    const shown = [...wanted.filter((m) => pinned.has(m.n)), ...wanted.filter((m) => !pinned.has(m.n))].slice(0, MESSAGES);
    list(rows, shown, (m) => m.n, row);
    none.hidden = shown.length > 0;
  }
  kind.onchange = search.oninput = show;
  scope.keep(`${path('servers', name)}/messages?limit=${MESSAGES}`, ['servers'], (now) => {
    all = [...now].sort((a, b) => b.n - a.n);
    show();
  }, (error) => { none.hidden = false; put(none, error.message); });
  return section('Messages', beside(labelled('Kind', kind), labelled('Filter', search), button('Export', () => save(`${name}-messages.json`, JSON.stringify(all.filter(isWanted), null, 2)))), rows, none);
}

/** What differs from the approved tools, and what the sandbox has refused. */
function guards(server) {
  const held = server.lock?.held ?? [];
  const parts = [];
  if (held.length) {
    parts.push(section('Differs from mcp.lock', make('ul', { className: 'plain-list' }, ...held.slice(0, 100).map((h) => (typeof h === 'string' ? make('li', {}, make('code', {}, h)) : make('li', {}, make('code', {}, h.tool ?? h.name ?? ''), ` ${h.change ?? ''}`,
      Array.isArray(h.difference) && pane('Difference', h.difference.join('\n')))))), make('p', { className: 'empty' }, 'Approve or refuse them above, where they wait.')));
  }
  if (server.sandbox) {
    parts.push(section('Sandbox', typeof server.sandbox === 'object' ? facts(make('dl', { className: 'facts' }), Object.entries(server.sandbox).map(([k, v]) => [k, v !== null && typeof v === 'object' ? JSON.stringify(v) : v === null ? null : String(v)])) : make('p', { className: 'padded' }, String(server.sandbox))));
  }
  return parts;
}

export function showServer(box, scope, { name }) {
  const [state, why, buttons] = [make('p', { className: 'call-line' }), make('p', { className: 'error', hidden: true }), make('div', { className: 'buttons' })];
  const [list_, left, right] = [make('dl', { className: 'facts' }), make('div', { className: 'column' }), make('div', { className: 'column' })];
  const said = make('div');
  const details = make('div', { className: 'column' });
  let now, shown = '';
  function top() {
    if (!now) return;
    state.replaceChildren(make('span', { className: 'state', data: { state: now.state } }, stateWord(now.state)), ` ${stateWords(now)} `, ...[lacks(now)].filter(Boolean));
    put(why, now.last_error);
    why.hidden = !now.last_error || now.state === 'up';
  }
  function fill(server) {
    now = { ...server, heard: Date.now() };
    top();
    const verbs = { up: ['restart', 'stop'], starting: ['restart', 'stop'], idle: ['start', 'stop'], failing: ['start', 'stop'], stopped: ['start'], needs_sign_in: ['login', 'stop'] }[server.state] ?? [];
    const all = [...verbs, ...(server.entry_file || server.entry ? ['edit', server.enabled === false || server.state === 'disabled' ? 'enable' : 'disable', 'remove'] : [])];
    list(buttons, all, (verb) => verb, (verb) => ({ nodes: [verb === 'remove' ? action('Remove', async () => { if (await order('remove', now)) location.hash = address('servers'); }, { aria: { label: `Remove ${name}` } }) : orderButton(verb, () => now)] }));
    facts(list_, [['Protocol', server.protocol], ['Transport', server.transport], ['Server', server.server_info && short([server.server_info.title ?? server.server_info.name, server.server_info.version].filter(Boolean).join(' '), 200)],
      ['Process', server.pid && String(server.pid)], ['Tools', link(plural(server.tools ?? 0, 'tool'), 'tools', '', { server: name })], ['Resources', plural((server.resources ?? 0) + (server.resource_templates ?? 0), 'resource')], ['Prompts', plural(server.prompts ?? 0, 'prompt')],
      ['Calls', link(plural(server.calls ?? 0, 'call'), 'calls', '', { server: name })], ['Numbers', link('the last hour', 'numbers', '', { server: name })], ['Log', link('its lines', 'log', '', { server: name, level: 'debug' })], ['Starts', server.starts && `${server.starts}, ${plural(server.crashes ?? 0, 'crash')}`.replace('crashs', 'crashes')], ['Entry in', server.entry_file]]);
    const key = JSON.stringify([server.capabilities, server.instructions, server.stderr, server.processes, server.entry, server.lock, server.sandbox]);
    if (key === shown) return;
    shown = key;
    const instances = server.processes ?? [];
    details.replaceChildren(
      ...(instances.length > 1 ? [section('Instances', make('ul', { className: 'plain-list' }, ...instances.slice(0, 50).map((i) => make('li', {}, [i.pid && `process ${i.pid}`, i.state, i.for && `for ${i.for}`].filter(Boolean).join(', ')))))] : []),
      ...(server.instructions ? [section('Instructions', make('p', { className: 'description padded' }, short(String(server.instructions), 20_000)))] : []),
      ...(server.capabilities ? [section('Capabilities', make('div', { className: 'padded' }, pane('Capabilities', JSON.stringify(server.capabilities, null, 2))))] : []),
      ...guards(server),
      ...(server.entry ? [section('Entry', make('div', { className: 'padded' }, pane('Entry', JSON.stringify(server.entry, null, 2))))] : []));
    const lines = Array.isArray(server.stderr) ? server.stderr.join('\n') : server.stderr ?? '';
    said.replaceChildren(section('Standard error', lines ? make('div', { className: 'padded' }, pane('Standard error', lines, { size: lines.length })) : nothing('It has said nothing there.')));
  }
  const again = scope.keep(path('servers', name), ['config'], fill, (error) => {
    if (!now) left.replaceChildren(nothing(error.status === 404 ? 'There is no such server.' : error.message, ' ', link('All servers', 'servers')));
  });
  let timer;
  scope.on('servers', (rows) => { if (rows.some((r) => r.name === name)) { clearTimeout(timer); timer = setTimeout(again, 200); } });
  scope.every(1000, top);
  scope.after(() => clearTimeout(timer));
  left.append(section('State', make('div', { className: 'padded' }, state, why, buttons), list_), said, messages(name, scope));
  right.append(details);
  box.append(make('p', {}, link('All servers', 'servers')), make('div', { className: 'two' }, left, right));
}
