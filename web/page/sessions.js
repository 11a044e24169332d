// The view Sessions: who is connected, and ending a session; the bus, where there is one.
import { path, post } from './api.js';
import { busPart } from './bus.js';
import { by, list, make, put } from './dom.js';
import { action } from './me.js';
import { attempt, sure } from './notice.js';
import { count, date, short, since } from './text.js';

const ROWS = 200;

function row(first) {
  const cell = (className = '') => make('td', { className });
  const [calls, last] = [cell('number'), cell()];
  const who = [first.client?.name, first.client?.version].filter(Boolean).join(' ') || 'a client that gave no name';
  const end = first.era !== 'stateless' && action('End', async () => {
    if (await sure(`End the session of ${short(who, 60)}?`, 'Its calls that are under way end with it; the client may come back with a new one.', 'End')) attempt(() => post(`${path('sessions', first.id)}/end`));
  }, { aria: { label: `End the session of ${short(who, 60)}` } });
  const element = make('tr', { data: { session: first.id } },
    make('td', { className: 'name' }, short(who, 100)), make('td', {}, [first.protocol, first.era].filter(Boolean).join(' · ')),
    make('td', {}, [first.way, first.endpoint].filter(Boolean).join(' ')), make('td', {}, [first.token && `token ${first.token}`, first.view && `view ${first.view}`].filter(Boolean).join(', ') || '–'),
    make('td', {}, make('time', { dateTime: first.since }, date(first.since))), calls, last, make('td', { className: 'actions' }, end));
  return {
    nodes: [element],
    fill(now) {
      put(calls, `${count(now.calls)}${now.open ? ` (${count(now.open)} now)` : ''}`);
      put(last, `${since(now.last)} ago`);
      last.title = date(now.last);
    },
  };
}

export function showSessions(box, scope) {
  const body = make('tbody');
  const table = make('table', { hidden: true, className: 'plain' }, make('thead', {}, make('tr', {}, ...['Client', 'Protocol', 'Way', 'Token and view', 'Since', 'Calls', 'Last seen'].map((t) => make('th', { scope: 'col', className: t === 'Calls' ? 'number' : '' }, t)),
    make('th', { scope: 'col' }, make('span', { className: 'unseen' }, 'Actions')))), body);
  const none = make('p', { className: 'empty' }, '');
  let all = [];
  const show = () => {
    table.hidden = !all.length;
    list(body, all.slice(0, ROWS), by('id'), row);
    put(none, all.length > ROWS ? `And ${count(all.length - ROWS)} more.` : all.length ? '' : 'Nobody is connected. The view Start has what to give to an agent.');
    none.hidden = !none.textContent;
  };
  scope.keep('/api/sessions', ['sessions'], (now) => {
    all = [...now].sort((a, b) => Date.parse(b.last) - Date.parse(a.last));
    show();
  }, (error) => put(none, error.message));
  scope.every(5000, show);
  box.append(make('div', { className: 'card scroll-x' }, table, none), busPart(scope));
}
