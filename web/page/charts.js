// Small charts: one number for each minute, as bars or as lines, with marks where a server was started again.
import { draw, make } from './dom.js';

const [WIDTH, HEIGHT] = [240, 56];

const scale = (values) => Math.max(1, ...values.filter((v) => v !== null));
const x = (i, n) => (i / n) * WIDTH;
const y = (v, most) => HEIGHT - 1 - (v / most) * (HEIGHT - 6);
const round = (n) => Math.round(n * 10) / 10;

const bars = (values, most) => values.map((v, i) => (v ? `M${round(x(i, values.length) + 0.5)} ${HEIGHT - 1}V${round(y(v, most))}h${round(WIDTH / values.length - 1)}V${HEIGHT - 1}z` : '')).join('');
/** A line with gaps where there is no value; a single value becomes a dash as wide as its minute. */
function line(values, most) {
  const known = (i) => values[i] !== null && values[i] !== undefined;
  return values.map((v, i) => {
    if (!known(i)) return '';
    const [at, level] = [round(x(i + 0.5, values.length)), round(y(v, most))];
    if (known(i - 1)) return `L${at} ${level}`;
    return known(i + 1) ? `M${at} ${level}` : `M${round(x(i, values.length))} ${level}H${round(x(i + 1, values.length))}`;
  }).join('');
}

/**
 * A chart with a title and a text that says the same. `series` are [class, values]; `marks` are the places of restarts, from 0
 * to 1.
 */
export function chart(title, words, kind, series, marks = []) {
  const most = scale(series.flatMap(([, values]) => values));
  const svg = draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}: ${words}${marks.length ? `; started again ${marks.length} times` : ''}`, preserveAspectRatio: 'none', class: 'chart' },
    draw('path', { class: 'axis', d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }),
    ...series.map(([name, values]) => draw('path', { class: `${kind} ${name}`, d: (kind === 'bars' ? bars : line)(values, most) })),
    marks.length ? draw('path', { class: 'restart', d: marks.map((m) => `M${round(m * WIDTH)} 0V${HEIGHT}`).join('') }) : null);
  return make('div', { className: 'chart-box' }, make('div', { className: 'chart-head' }, make('span', {}, title), make('span', { className: 'soft' }, words)), svg);
}
