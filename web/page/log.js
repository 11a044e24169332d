// The view Log: the last lines as they are written, searched, filtered and saved.
import { ask } from './api.js';
import { button, by, choices, labelled, list, make, put, save, select } from './dom.js';
import { note } from './router.js';
import { clock, date, visible } from './text.js';

const LINES = 500;
const LEVELS = ['debug', 'info', 'warn', 'error'];

function row(line) {
  if (line.gap) return { nodes: [make('li', { className: 'gap' }, `${line.gap} lines are not shown`)] };
  return { nodes: [make('li', { data: { level: line.level } },
    make('time', { dateTime: line.at, title: date(line.at) }, clock(line.at)), make('span', { className: 'level' }, line.level),
    make('span', { className: 'who', title: visible(line.who) }, line.who), make('span', { className: 'text' }, line.text))] };
}

export function showLog(box, scope, { query }) {
  const asked = { level: LEVELS.includes(query.get('level')) ? query.get('level') : 'info', server: query.get('server') ?? '', q: query.get('q') ?? '' };
  let lines = [], run = null;
  const level = select([['debug', 'all'], ['info', 'info and worse'], ['warn', 'warnings and errors'], ['error', 'errors']], asked.level, { id: 'log-level' });
  const server = select([['', 'all']], '', {});
  const search = make('input', { type: 'search', value: asked.q, autocomplete: 'off', spellcheck: false });
  const all = make('ol', { id: 'log', tabIndex: 0, hidden: true, aria: { label: 'Lines of the log' } });
  const none = make('p', { className: 'empty', id: 'log-none', hidden: true });
  choices(server, asked.server ? [asked.server] : []);
  server.value = asked.server;
  const isWanted = (l) => l.gap || (LEVELS.indexOf(l.level) >= LEVELS.indexOf(asked.level) && (!asked.server || l.who === asked.server) && (!asked.q || l.text.toLowerCase().includes(asked.q.toLowerCase())));
  function show() {
    const shown = lines.filter(isWanted);
    const atEnd = all.hidden || all.scrollHeight - all.scrollTop - all.clientHeight < 24;
    all.hidden = !shown.some((l) => !l.gap);
    list(all, all.hidden ? [] : shown, by('seq'), row);
    none.hidden = !all.hidden;
    put(none, asked.q || asked.server ? 'No such lines.' : 'Nothing of this level.');
    if (atEnd) all.scrollTop = all.scrollHeight;
    choices(server, lines.map(by('who')).filter(Boolean));
  }
  const look = async () => {
    try {
      const { value } = await ask(`/api/logs?limit=${LINES}`);
      if (!scope.open) return;
      if (run !== null && run !== value.run) list(all, []);
      run = value.run;
      lines = value.lines;
      show();
    } catch (error) {
      if (!scope.open || error.status === 0) return;
      all.hidden = true;
      none.hidden = false;
      put(none, error.status === 404 ? `Not recorded: ${error.message.replace('\n', '; ')}` : error.message);
    }
  };
  scope.on('hello', look);
  scope.on('log', ({ lines: more, skipped }) => {
    const last = lines.at(-1)?.seq ?? -1;
    const fresh = more.filter((l) => l.seq > last);
    if (skipped && fresh.length) lines.push({ seq: `gap ${fresh[0].seq}`, gap: skipped });
    lines = [...lines, ...fresh].slice(-LINES);
    show();
  });
  const changed = (now) => {
    Object.assign(asked, now);
    note('log', '', { ...asked, level: asked.level === 'info' ? '' : asked.level });
    show();
  };
  level.onchange = () => changed({ level: level.value });
  server.onchange = () => changed({ server: server.value });
  search.oninput = () => changed({ q: search.value });
  const written = () => lines.filter(isWanted).filter((l) => !l.gap).map((l) => `${l.at} ${l.level} ${l.who}: ${l.text}\n`).join('');
  box.append(make('div', { className: 'filters' }, labelled('Search', search), labelled('Level', level), labelled('Server', server), button('Export', () => save('rialto.log', written(), 'text/plain'))), make('div', { className: 'card' }, all, none));
  look();
}
