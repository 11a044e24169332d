// The message bus, where there is one: workers, queues, and dead letters that can be sent again.
import { path, post } from './api.js';
import { by, facts, list, make, section } from './dom.js';
import { action } from './me.js';
import { attempt } from './notice.js';
import { bytes, count, date, short, since } from './text.js';

const ROWS = 100;
const table = (titles, body) => make('table', { className: 'plain' }, make('thead', {}, make('tr', {}, ...titles.map((t) => make('th', { scope: 'col' }, t || make('span', { className: 'unseen' }, 'Actions'))))), body);
const names = (value) => (Array.isArray(value) ? value.map((v) => (typeof v === 'string' ? v : v?.name ?? JSON.stringify(v))).join(', ') : value === undefined || value === null ? '' : String(value));

export function busPart(scope) {
  const [list_, workers, queues, letters] = [make('dl', { className: 'facts' }), make('tbody'), make('tbody'), make('tbody')];
  const parts = [[workers, ['Worker', 'Servers', 'Tools', 'Last seen']], [queues, ['Queue', 'Waiting']], [letters, ['Dead letter', 'Topic', 'Reason', 'Size', '']]]
    .map(([body, titles]) => [body, make('div', { className: 'scroll-x' }, table(titles, body))]);
  const element = section('Bus', list_, ...parts.map(([, t]) => t));
  element.hidden = true;
  scope.keep('/api/bus', ['bus'], (bus) => {
    element.hidden = false;
    facts(list_, [['At', bus.url], ['Role', bus.role], ['State', bus.state], ['Dead letters', count(bus.dead_letters?.length ?? 0)]]);
    list(workers, (bus.workers ?? []).slice(0, ROWS), by('name'), (w) => ({ nodes: [make('tr', {}, make('td', { className: 'name' }, w.name), make('td', {}, short(names(w.servers), 200)), make('td', {}, short(names(w.tools), 200)), make('td', {}, w.last_seen ? `${since(w.last_seen)} ago` : ''))] }));
    list(queues, (bus.queues ?? []).slice(0, ROWS), (q) => JSON.stringify(q), (q) => ({ nodes: [make('tr', {}, make('td', { className: 'name' }, q.name), make('td', {}, count(q.waiting ?? 0)))] }));
    list(letters, (bus.dead_letters ?? []).slice(0, ROWS), by('id'), (d) => ({
      nodes: [make('tr', {}, make('td', {}, make('time', { dateTime: d.at }, date(d.at))), make('td', { className: 'name' }, short(d.topic ?? '', 200)), make('td', {}, short(d.reason ?? '', 300)), make('td', {}, bytes(d.bytes ?? 0)),
        make('td', { className: 'actions' }, action('Send again', () => attempt(() => post(`${path('bus', 'dead-letters', d.id)}/resend`)))))],
    }));
    for (const [body, whole] of parts) whole.hidden = !body.children.length;
  }, (error) => { if (error.status === 404) element.hidden = true; });
  return element;
}
