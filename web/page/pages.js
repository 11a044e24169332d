// The view Web pages: pages that offer tools, and the bus, where there is one.
import { busPart } from './bus.js';
import { list, make, put } from './dom.js';
import { count, short } from './text.js';

const ROWS = 200, TOOLS = 30;

/** A page's tools; beyond the first ones only their number. */
const toolsOf = (names) => make('ul', { className: 'chips' }, ...names.slice(0, TOOLS).map((n) => make('li', {}, short(n, 80))), names.length > TOOLS && make('li', {}, `and ${count(names.length - TOOLS)} more`));

function row(p) {
  return {
    nodes: [make('tr', {}, make('td', {}, make('strong', {}, short(p.title || 'without a title', 200)), make('small', {}, short(p.url ?? '', 300))), make('td', { className: 'name' }, short(p.origin ?? '', 200)),
      make('td', {}, [p.session && `session ${short(p.session, 40)}`, p.dialect].filter(Boolean).join(' · ')), make('td', {}, toolsOf(p.tools ?? [])))],
  };
}

export function showPages(box, scope) {
  const body = make('tbody');
  const table = make('table', { hidden: true, className: 'plain' }, make('thead', {}, make('tr', {}, ...['Page', 'Origin', 'Session', 'Tools'].map((t) => make('th', { scope: 'col' }, t)))), body);
  const none = make('p', { className: 'empty', hidden: true }, 'None is connected. ', make('a', { href: '/demo', target: '_blank', rel: 'noopener' }, 'Open the demo page'), ' to see one.');
  const trouble = make('p', { className: 'error' });
  scope.keep('/api/pages', ['pages'], (all) => {
    put(trouble, '');
    table.hidden = !all.length;
    none.hidden = all.length > 0;
    list(body, all.slice(0, ROWS), (p) => JSON.stringify(p), row);
  }, (error) => put(trouble, error.message));
  box.append(make('div', { className: 'card scroll-x' }, table, none, trouble), busPart(scope));
}
