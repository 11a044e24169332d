// The view Tools: what all servers offer (tools, resources, templates, prompts), searched, grouped, a page at a time.
import { badge, button, check, choices, labelled, make, nothing, put, select } from './dom.js';
import { address, note } from './router.js';
import { count, plural, short } from './text.js';

const PAGE = 100; // so that 10,000 tools are not 100,000 elements
const KINDS = [['', 'all kinds'], ['tool', 'tools'], ['resource', 'resources'], ['template', 'templates'], ['prompt', 'prompts']];

/** The address of an item's own view. */
export const addressOf = (item) => address('tools', item.name, {
  ...(item.kind !== 'tool' && { kind: item.kind }), ...((item.kind !== 'tool' || item.hidden) && { server: item.server }),
});

/** Which rule hides an item, in words. */
export function hiddenWords({ by, rule, where }) {
  if (by === 'view') return `hidden by ${where}`;
  const named = [by, rule].filter(Boolean).join(': ');
  return `hidden by ${named}${where ? ` of ${where}` : ''}`;
}

function row(item) {
  const marks = [
    item.kind !== 'tool' && badge(item.kind), item.read_only && badge('read-only', 'good', 'It says that it changes nothing'),
    item.idempotent && !item.read_only && badge('idempotent', 'good', 'It says that a second call changes nothing more'), item.task && badge('task'),
  ];
  return make('li', { className: 'offer', data: { item: item.name, ...(item.hidden && { hidden: '' }) } },
    make('div', { className: 'offer-head' }, make('a', { className: 'name', href: addressOf(item) }, short(item.name, 200)),
      item.title && item.title !== item.name && make('span', { className: 'soft' }, short(item.title, 100)), ...marks,
      item.tokens !== undefined && item.tokens !== null && make('span', { className: 'cost', title: 'What it costs a model to know it, estimated' }, `${count(item.tokens)} tokens`)),
    item.description && make('p', { className: 'soft' }, short(item.description, 300)),
    item.hidden && make('p', { className: 'hidden-by' }, hiddenWords(item.hidden)));
}

function groups(items, how) {
  if (how === 'none') return [['', items]];
  const found = new Map();
  for (const item of items) {
    const name = item[how] ?? '';
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(item);
  }
  return [...found];
}

export function showTools(box, scope, { query }) {
  const asked = { q: query.get('q') ?? '', kind: query.get('kind') ?? '', server: query.get('server') ?? '', view: query.get('view') ?? '', hidden: query.has('hidden'), by: query.get('by') ?? '', from: Number(query.get('from')) || 0 };
  const search = make('input', { type: 'search', value: asked.q, placeholder: 'words, as find_tools takes them', autocomplete: 'off', spellcheck: false });
  const kind = select(KINDS, asked.kind);
  const [server, view] = [select([['', 'all']], ''), select([['', 'all']], '')];
  const grouping = select([['', 'by server'], ['kind', 'by kind'], ['none', 'not at all']], asked.by);
  const sum = make('p', { className: 'soft', attributes: { role: 'status' } });
  const found = make('div', { className: 'groups' });
  const [earlier, later] = [button('Earlier', () => turn(-PAGE)), button('Later', () => turn(PAGE))];
  const where = make('span', { className: 'soft' });
  const pager = make('div', { className: 'pager', hidden: true }, earlier, where, later);
  const noted = () => note('tools', '', { q: asked.q, kind: asked.kind, server: asked.server, view: asked.view, hidden: asked.hidden, by: asked.by, from: asked.from || '' });
  const turn = (by) => {
    asked.from = Math.max(0, asked.from + by);
    noted();
    look();
    scrollTo(0, 0);
  };
  const changed = (now) => {
    Object.assign(asked, { from: 0 }, now);
    noted();
    look();
  };
  const path = () => `/api/tools?${new URLSearchParams({
    brief: 1, limit: PAGE, offset: asked.from, ...(asked.q && { q: asked.q }), ...(asked.kind && { kind: asked.kind }), ...(asked.server && { server: asked.server }), ...(asked.view && { view: asked.view }), ...(asked.hidden && { hidden: 1 }),
  })}`;
  function fill({ total, tokens, items }) {
    if (!items.length && asked.from) { // there are fewer items than before
      changed({});
      return;
    }
    put(sum, `${plural(total, 'item')}${tokens ? `, ${plural(tokens, 'token')}` : ''}${asked.q ? ', best first' : ''}`);
    const how = asked.by || (asked.q ? 'none' : 'server');
    found.replaceChildren(...groups(items, how).map(([name, of]) => {
      const heading = name && make('h2', {}, short(name, 100), make('small', {}, ` ${of.length}`));
      return make('section', { className: 'card', ...(name && { aria: { label: short(name, 100) } }) }, heading && make('div', { className: 'bar' }, heading), make('ul', { className: 'offers' }, ...of.map(row)));
    }));
    if (!items.length) found.append(nothing(asked.q || asked.kind || asked.server ? 'Nothing is found.' : 'No server offers anything yet. ', !asked.q && make('a', { href: address('servers') }, 'Look at the servers')));
    pager.hidden = total <= PAGE;
    earlier.disabled = asked.from === 0;
    later.disabled = asked.from + PAGE >= total;
    put(where, `${count(asked.from + 1)}–${count(Math.min(asked.from + PAGE, total))} of ${count(total)}`);
  }
  let timer;
  search.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(() => changed({ q: search.value.trim() }), 150);
  };
  kind.onchange = () => changed({ kind: kind.value });
  for (const [name, one] of Object.entries({ server, view })) {
    one.onchange = () => changed({ [name]: one.value });
    choices(one, asked[name] ? [asked[name]] : []);
    one.value = asked[name];
  }
  grouping.onchange = () => changed({ by: grouping.value });
  scope.after(() => clearTimeout(timer));
  const seenBy = labelled('View', view); // what the agents of a view see
  seenBy.hidden = !asked.view;
  box.append(make('div', { className: 'filters', attributes: { role: 'search' } }, labelled('Search', search), labelled('Kind', kind), labelled('Server', server), seenBy, labelled('Group', grouping),
    check('Show hidden', asked.hidden, (hidden) => changed({ hidden })), sum), found, pager);
  scope.keep('/api/servers', ['config'], (all) => choices(server, all.map((s) => s.name)));
  scope.keep('/api/config', ['config'], ({ views }) => {
    choices(view, views);
    seenBy.hidden = view.options.length < 2;
  });
  const look = scope.keep(path, ['tools'], fill, (error) => { found.replaceChildren(nothing(error.message)); });
}
