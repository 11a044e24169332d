// The view Numbers: the last hour of each server and tool as small charts, and what each process uses.
import { chart } from './charts.js';
import { choices, labelled, make, nothing, put, section, select } from './dom.js';
import { address, note } from './router.js';
import { bytes, count, plural, short, took } from './text.js';

const TOOLS = 40; // charts of tools at a time

const total = (values) => values.reduce((a, b) => a + (b ?? 0), 0);
const known = (values) => values.filter((v) => v !== null && v !== undefined);
const range = (values) => (known(values).length ? [...new Set([took(Math.min(...known(values))), took(Math.max(...known(values)))])].join('–') : 'none');

/** The charts of one server or tool. */
function charts(series, marks) {
  const errors = total(series.errors);
  return [
    chart('Calls', `${count(total(series.calls))} in an hour`, 'bars', [['calls', series.calls]], marks),
    chart('Errors', count(errors), 'bars', [['errors', series.errors]], marks),
    chart('Latency', `p50 ${range(series.p50)}, p99 ${range(series.p99)}`, 'lines', [['p50', series.p50], ['p99', series.p99]], marks),
  ];
}

const card = (title, kind, series, marks) => make('section', { className: 'card padded numbers', aria: { label: title } }, make(kind, {}, short(title, 100)), make('div', { className: 'charts' }, ...charts(series, marks)));

function processes(rows) {
  return section('Processes', rows.length ? make('div', { className: 'scroll-x' }, make('table', { className: 'plain' },
    make('thead', {}, make('tr', {}, ...['Server', 'Process', 'Memory', 'CPU time'].map((t, i) => make('th', { scope: 'col', className: i > 1 ? 'number' : '' }, t)))),
    make('tbody', {}, ...rows.slice(0, 200).map((p) => make('tr', {}, make('td', { className: 'name' }, p.server), make('td', {}, String(p.pid)), make('td', { className: 'number' }, bytes(p.memory ?? 0)), make('td', { className: 'number' }, took(p.cpu_ms ?? 0))))))) : nothing('No server runs as a process of this machine.'));
}

export function showNumbers(box, scope, { query }) {
  let chosen = query.get('server') ?? '';
  let last;
  const server = select([['', 'all']], '', {});
  const shown = make('div', { className: 'column' });
  const words = make('p', { className: 'soft' });
  choices(server, chosen ? [chosen] : []);
  server.value = chosen;
  function show() {
    const begin = Date.parse(last.until) - last.minutes * 60_000;
    const marksOf = (name) => last.restarts.filter((r) => r.server === name).map((r) => (Date.parse(r.at) - begin) / (last.minutes * 60_000)).filter((m) => m >= 0 && m <= 1);
    const wholes = last.series.filter((s) => s.tool === null || s.tool === undefined);
    const tools = last.series.filter((s) => typeof s.tool === 'string' && total(s.calls) > 0 && (!chosen || s.server === chosen)).sort((a, b) => total(b.calls) - total(a.calls));
    choices(server, wholes.map((s) => s.server));
    put(words, tools.length > TOOLS ? `The ${TOOLS} tools with the most calls of ${plural(tools.length, 'tool')}.` : '');
    shown.replaceChildren(
      ...wholes.filter((s) => !chosen || s.server === chosen).map((s) => card(s.server, 'h2', s, marksOf(s.server))),
      ...tools.slice(0, TOOLS).map((s) => card(`${s.server}: ${s.tool}`, 'h2', s, marksOf(s.server))),
      ...(wholes.length ? [] : [make('div', { className: 'card' }, nothing('There are no numbers yet: nothing was called. ', make('a', { href: address('tools') }, 'Try a tool')))]), words, processes(last.processes ?? []));
  }
  server.onchange = () => {
    chosen = server.value;
    note('numbers', '', { server: chosen });
    if (last) show();
  };
  scope.keep('/api/numbers', ['numbers'], (now) => {
    last = now;
    show();
  }, (error) => shown.replaceChildren(nothing(error.message)));
  box.append(make('div', { className: 'filters' }, labelled('Server', server), make('p', { className: 'legend soft' }, make('i', { className: 'restart-key' }), ' started again', make('i', { className: 'p50-key' }), ' p50', make('i', { className: 'p99-key' }), ' p99')), shown);
}
