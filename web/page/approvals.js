// What waits for a person's word, above every view: calls that are held, and tools that are not as they were approved.
import { ask, path, post } from './api.js';
import { $, button, list, make, pane, put } from './dom.js';
import { on } from './events.js';
import { member, parts, pretty, tokensOf } from './json.js';
import { mayChange } from './me.js';
import { attempt } from './notice.js';
import { wait } from './router.js';
import { span } from './text.js';

const ARMING = 700; // before a button that has just appeared under the pointer does anything
const LINGER = 4000; // how long a decided call stays, so that the next does not slide under a click

const decided = new Map(); // id -> {item, word, at}: shown a little longer
let waiting = new Map(); // id -> {item, json, until}

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
  // In the order in which they came: what is there keeps its place.
  const all = [...[...decided].filter(([id]) => !waiting.has(id)).map(([, { item }]) => ({ item, json: '' })), ...waiting.values()]
    .sort((a, b) => Number(a.item.id) - Number(b.item.id));
  $('approvals').hidden = !all.length;
  list($('approvals-list'), all, ({ item }) => item.id, row);
  wait(waiting.size);
}

function fill({ value, text }) {
  const raw = parts(tokensOf(text));
  const now = new Map(value.map((item, i) => [item.id, { item, json: pretty(member(raw[i], 'arguments')), until: Date.now() + (item.refused_in_ms ?? 0) }]));
  for (const [id, { item }] of waiting) if (!now.has(id) && !decided.has(id)) decided.set(id, { item, word: 'waits no more', at: Date.now() });
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
  } catch { /* the stream will say that the daemon is gone */ }
  busy = false;
  if (again) look();
}

export function start() {
  on('hello', ({ now, before }) => {
    if (before && before.pid !== now.pid) { // calls of another process have the numbers of earlier ones
      waiting.clear();
      decided.clear();
      list($('approvals-list'), []);
    }
    look();
  });
  on('approvals', look);
  setInterval(() => { if (waiting.size || decided.size) show(); }, 1000);
}
