// Addresses of views: #/tools/NAME?q=words. Reload, Back and bookmarks find the same view again.
import { $, make, put } from './dom.js';
import { Scope } from './scope.js';
import { short } from './text.js';

let views; // [name, title, show of the list, show of one]
let scope;
let badge = 0; // how many things wait for a person

/** {view, name, query} of an address. */
function parse(hash) {
  const [way, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [view, ...rest] = way.split('/');
  let name = rest.join('/');
  try { name = decodeURIComponent(name); } catch { /* as it stands */ }
  return { view, name, query: new URLSearchParams(query) };
}

/** The address of a view; empty members of the query are left out. */
export function address(view, name, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  const words = new URLSearchParams(given.map(([k, v]) => [k, v === true ? '1' : v]));
  return `#/${view}${name === undefined || name === '' ? '' : `/${encodeURIComponent(name)}`}${given.length ? `?${words}` : ''}`;
}
export const link = (text, ...where) => make('a', { href: address(...where) }, text);

/** Puts what was chosen in this view into the address, without a new entry in the history. */
export const note = (...where) => history.replaceState(history.state, '', address(...where));

export const go = (...where) => { location.hash = address(...where); };

function name(title) {
  document.title = `${badge ? `(${badge}) ` : ''}${title} · Rialto`;
}

/** How many things wait for a person, in the title of the tab. */
export function wait(n) {
  badge = n;
  name($('title')?.textContent ?? 'Rialto');
}

/** Shows what the address says. */
export function show({ focus = true } = {}) {
  const { view, name: one, query } = parse(location.hash);
  const row = views.find(([id]) => id === view);
  if (!row) {
    location.replace(address('start'));
    return;
  }
  const [id, title, showAll, showOne] = row;
  scope?.close();
  scope = new Scope();
  for (const a of document.querySelectorAll('#nav a')) {
    if (a.hash !== `#/${id}`) {
      a.removeAttribute('aria-current');
      continue;
    }
    a.setAttribute('aria-current', 'page');
    $('nav').scrollLeft = a.offsetLeft - 40; // on a narrow screen the links are a row that can be scrolled
  }
  const heading = make('h1', { id: 'title', tabIndex: -1 }, one && showOne ? `${title}: ${short(one, 80)}` : title);
  const box = make('div', { className: 'view', data: { view: id } });
  $('view').replaceChildren(heading, box);
  name(heading.textContent);
  scrollTo(0, 0);
  if (focus) heading.focus({ preventScroll: true });
  (one && showOne ? showOne : showAll)(box, scope, { name: one, query, retitle: (text) => { put(heading, text); name(heading.textContent); } });
}

export function start(table) {
  views = table;
  addEventListener('hashchange', () => show());
  show({ focus: false });
}
