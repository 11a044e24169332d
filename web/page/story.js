// A call's story: a sequence diagram over all parties, a line for each message with its time. The lines are a list that can be
// read aloud; lanes and arrows are drawn around it.
import { list, make, pane, put } from './dom.js';
import { member, parts, pretty, readable, tokensOf } from './json.js';
import { short, took } from './text.js';

/** An arrow between two lanes, or a mark on one. */
function arrow(from, to, n) {
  const [left, right] = [Math.min(from, to), Math.max(from, to)];
  const element = make('span', { className: `arrow ${from === to ? 'inside' : from < to ? 'right' : 'left'}`, aria: { hidden: 'true' } });
  element.style.left = `${((left + 0.5) / n) * 100}%`;
  element.style.width = from === to ? '0' : `${((right - left) / n) * 100}%`;
  return element;
}

function leg(item, tokens, { order, names }) {
  const n = order.length;
  const [from, to] = [order.indexOf(item.from), order.indexOf(item.to)].map((i) => Math.max(0, i));
  const words = make('span', { className: 'leg-what' }, short(String(item.what ?? item.kind), 300));
  words.style.setProperty('--at', `${(((from + to) / 2 + 0.5) / n) * 100}%`);
  const way = item.from === item.to ? names.get(item.from) : `${names.get(item.from) ?? item.from} → ${names.get(item.to) ?? item.to}`;
  const element = make('li', { data: { kind: item.kind } },
    make('span', { className: 'leg-time' }, `${took(item.ms)}`), make('span', { className: 'leg-way' }, way),
    make('div', { className: 'leg-lane' }, words, arrow(from, to, n)));
  if (item.body !== null && item.body !== undefined && item.body !== '') {
    const body = () => (typeof item.body === 'string' ? readable(item.body) : pretty(member(tokens, 'body'))); // as it was sent
    const more = make('details', {}, make('summary', {}, item.cut ? 'Message (cut at record.body)' : 'Message'));
    more.ontoggle = () => { if (more.open && more.children.length === 1) more.append(pane('Message', body(), { cut: item.cut })); };
    element.append(more);
  } else if (item.cut) {
    element.append(make('p', { className: 'cut' }, 'cut at record.body'));
  }
  return element;
}

/** The figure; `fill` shows the story of a call as it is now. */
export function storyFigure() {
  const caption = make('figcaption', { id: 'story-caption' }, 'Story');
  const heads = make('div', { className: 'lanes-head', aria: { hidden: 'true' } });
  const lanes = make('div', { className: 'lanes', aria: { hidden: 'true' } });
  const legs = make('ol', { className: 'legs' });
  const live = make('p', { className: 'soft', hidden: true }, 'It is still running; what comes is added.');
  const element = make('figure', { className: 'story', aria: { labelledby: caption.id } }, caption, heads, make('div', { className: 'lanes-box' }, lanes, legs), live);
  let parties = '';
  return {
    element,
    fill(call, text) {
      const order = (call.parties ?? []).map((p) => p.id);
      const names = new Map((call.parties ?? []).map((p) => [p.id, short(p.label ?? p.id, 60)]));
      if (parties !== JSON.stringify(call.parties)) {
        parties = JSON.stringify(call.parties);
        element.style.setProperty('--n', Math.max(1, order.length));
        heads.replaceChildren(...order.map((id) => make('span', {}, names.get(id))));
        lanes.replaceChildren(...order.map(() => make('i')));
        list(legs, []);
      }
      const raw = parts(member(tokensOf(text), 'story'));
      list(legs, (call.story ?? []).map((item, i) => ({ item, i, key: `${i} ${item.ms} ${item.what}` })), ({ key }) => key, ({ item, i }) => ({ nodes: [leg(item, raw[i], { order, names })] }));
      live.hidden = !call.live;
      put(caption, 'Story');
    },
  };
}
