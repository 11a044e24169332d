// What waits for approval, shown above every view: held calls, and tools that differ from what was approved.
import { ask, path, post } from './api.js';
import { $, button, list, make, pane, put } from './dom.js';
import { on } from './events.js';
import { member, parts, pretty, tokensOf } from './json.js';
import { mayChange } from './me.js';
import { attempt } from './notice.js';
import { wait } from './router.js';
import { span } from './text.js';

const ARMING = 700; // ms before a button works: it may have just appeared under the pointer
const LINGER = 4000; // ms that a decided call stays, so that the next one does not move under the pointer

const decided = new Map(); // id -> {item, word, at}: shown a little longer
const places = new Map(); // id -> a number, higher for what came later: ids of calls and tools cannot be compared
let waiting = new Map(); // id -> {item, json, until}
let last = 0; // place that was given

function buttons(first) {
  const made = [['Approve', true], ['Refuse', false]].map(([word, approved]) => button(word, async () => {
    enable(false);
    decided.set(first.id, { item: first, word: approved ? 'approved' : 'refused', at: Date.now() });
    if (await attempt(() => post(path('approvals', first.id), { approved }))) return;
    decided.delete(first.id);
    enable(true);
    show();
  }, { disabled: true, className: approved ? 'main' : '', aria: { label: `${word} ${first.tool} on ${first.server}` } }));
  const enable = (yes) => made.forEach((b) => { b.disabled = !yes; });
  if (mayChange()) setTimeout(enable, ARMING, true);
  return made;
}

function row({ item: first, json }) {
  const made = buttons(first);
  const text = make('span', { className: 'soft' });
  const element = make('li', { data: { approval: first.id } },
    make('div', { className: 'bar' },
      make('div', { className: 'what' }, make('span', { className: 'name' }, first.tool), ' on ', make('span', { className: 'name' }, first.server)),
      text, ...made),
    first.difference ? pane('Differs from what was approved', first.difference.join('\n')) : pane('Arguments', json));
  const change = first.change === 'new' ? 'is a new tool' : 'has changed since it was approved';
  const fill = ({ item, until }) => {
    const word = decided.get(item.id)?.word;
    made.forEach((b) => { b.hidden = Boolean(word) || item.approve_by === 'client'; });
    put(text, word ?? (item.change ? change : `${item.asked === 'client' ? 'its client is being asked, ' : ''}refused in ${span((until - Date.now()) / 1000)}`));
  };
  return { nodes: [element], fill };
}

function show() {
  for (const [id, { at }] of decided) if (Date.now() - at > LINGER && !waiting.has(id)) decided.delete(id);
  for (const id of places.keys()) if (!decided.has(id) && !waiting.has(id)) places.delete(id);
  // In the order in which they came, so that a row keeps its place.
  const all = [...[...decided].filter(([id]) => !waiting.has(id)).map(([, { item }]) => ({ item, json: '' })), ...waiting.values()]
    .sort((a, b) => places.get(a.item.id) - places.get(b.item.id));
  $('approvals').hidden = !all.length;
  list($('approvals-list'), all, ({ item }) => item.id, row);
  wait(waiting.size);
}

function fill({ value, text }) {
  const raw = parts(tokensOf(text));
  const now = new Map(value.map((item, i) => [item.id, { item, json: pretty(member(raw[i], 'arguments')), until: Date.now() + (item.refused_in_ms ?? 0) }]));
  for (const [id, { item }] of waiting) if (!now.has(id) && !decided.has(id)) decided.set(id, { item, word: 'waits no more', at: Date.now() });
  for (const id of now.keys()) if (!places.has(id)) places.set(id, ++last);
  if (now.size > waiting.size) put($('spoken'), `${now.size} ${now.size === 1 ? 'call waits' : 'calls wait'} for approval`);
  waiting = now;
  show();
}

let busy = false, again = false;
async function look() {
  again = busy;
  if (busy) return;
  busy = true;
  try {
    fill(await ask('/api/approvals'));
  } catch { /* events.js reports when the daemon does not answer */ }
  busy = false;
  if (again) look();
}

export function start() {
  on('hello', ({ now, before }) => {
    if (before && before.pid !== now.pid) { // another process uses the same call numbers again
      waiting.clear();
      decided.clear();
      places.clear();
      list($('approvals-list'), []);
    }
    look();
  });
  on('approvals', look);
  setInterval(() => { if (waiting.size || decided.size) show(); }, 1000);
}
