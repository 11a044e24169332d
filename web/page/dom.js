// Elements. Names, arguments, results and log lines come from others: they are put into the page as text, never as HTML;
// the page's Content-Security-Policy allows nothing else.
import { bytes, SHOWN, visible } from './text.js';

export const $ = (id) => document.getElementById(id);
export const by = (name) => (item) => item[name];

function dress(element, { data, aria, attributes, ...rest }, children) {
  Object.assign(element, rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria ?? {})) element.setAttribute(`aria-${name}`, value);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children.filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : visible(c))));
  return element;
}

/** An element; texts among the children become text. */
export const make = (tag, properties = {}, ...children) => dress(document.createElement(tag), properties, children);
/** An element of a drawing. */
export const draw = (tag, attributes = {}, ...children) => dress(document.createElementNS('http://www.w3.org/2000/svg', tag), { attributes }, children);

/** Changes a text only when it differs, so that a selection in it stays. */
export function put(element, text) {
  const shown = visible(text ?? '');
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * Makes the children of `parent` those of `items`. A node is made once for each key and filled again
 * each time, so that focus, selections and what was opened stay. `create` gives {nodes, fill}.
 */
const rows = new WeakMap();
export function list(parent, items, key, create) {
  const old = rows.get(parent) ?? new Map();
  const now = new Map(items.map((item) => [key(item), old.get(key(item)) ?? create(item)]));
  rows.set(parent, now);
  for (const [k, row] of old) if (!now.has(k)) row.nodes.forEach((node) => node.remove());
  let at = parent.firstChild;
  for (const item of items) {
    const row = now.get(key(item));
    for (const node of row.nodes) {
      if (node === at) at = at.nextSibling;
      else parent.insertBefore(node, at);
    }
    row.fill?.(item);
  }
}

/** A list of names and values; a value is a text or a node, and what has none is left out. */
export function facts(parent, pairs) {
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== '');
  list(parent, given, ([name]) => name, ([name]) => {
    const value = make('dd');
    return { nodes: [make('div', {}, make('dt', {}, name), value)], fill: ([, what]) => (what instanceof Node ? value.replaceChildren(what) : put(value, what)) };
  });
  return parent;
}

/** The choices of a select besides "all"; the chosen one stays even when it is not among them any more. */
export function choices(select, names) {
  const all = [...new Set([...names, ...(select.value ? [select.value] : [])])].sort();
  const key = all.join('\n');
  if (select.dataset.choices === key) return;
  const chosen = select.value;
  select.dataset.choices = key;
  select.replaceChildren(...['', ...all].map((name) => make('option', { value: name }, name || 'all')));
  select.value = chosen;
}

export const select = (options, value, properties = {}) => {
  const element = make('select', properties, ...options.map(([v, text]) => make('option', { value: v }, text)));
  element.value = value;
  return element;
};

export const button = (text, onclick, properties = {}) => make('button', { type: 'button', onclick, ...properties }, text);
let ids = 0;
/** A control with its label before it. */
export function labelled(text, control) {
  control.id ||= `c${++ids}`;
  return make('span', { className: 'labelled' }, make('label', { htmlFor: control.id }, text), control);
}
export const check = (text, checked, onchange) => {
  const box = make('input', { type: 'checkbox', checked, onchange: () => onchange?.(box.checked) });
  return make('label', { className: 'check' }, box, ` ${text}`);
};
export const badge = (text, kind, title) => make('span', { className: 'badge', data: { kind }, ...(title && { title }) }, text);
export const state = (word, text = word) => make('span', { className: 'state', data: { state: word } }, text);

/** A section with a heading, and controls beside the heading (`beside`). */
export function section(title, ...children) {
  const aside = children[0]?.className === 'tools-of-section' ? [children.shift()] : [];
  const heading = make('h2', { id: `h${++ids}` }, title);
  return make('section', { className: 'card', attributes: { 'aria-labelledby': heading.id } }, make('div', { className: 'bar' }, heading, ...aside), ...children);
}
export const beside = (...children) => make('div', { className: 'tools-of-section' }, ...children);

/** Copies what `text` gives, and says so on the button itself. */
export function copyButton(text, what, word = 'Copy') {
  const element = button(word, async () => {
    try {
      await navigator.clipboard.writeText(await text());
      put(element, 'Copied');
    } catch {
      put(element, 'Not allowed'); // without https, or by the browser's settings
    }
    setTimeout(put, 1500, element, word);
  }, { className: 'copy', ...(what && { aria: { label: `${word} ${what}` } }) });
  return element;
}

/** Lets the browser save a text as a file. */
export function save(name, text, type = 'application/json') {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A text with a title, its size, and a note when a part is missing. */
export function pane(title, text, { cut, size, name = title } = {}) {
  const head = make('div', {}, make('span', {}, title));
  if (size !== undefined) head.append(make('span', {}, bytes(size)));
  const lack = cut ? 'cut: only its beginning was kept' : text.length > SHOWN && 'very long: only its beginning is shown, Copy takes all';
  if (lack) head.append(make('span', { className: 'cut' }, lack));
  head.append(copyButton(() => text, title.toLowerCase()));
  return make('div', { className: 'pane', data: { pane: name } }, head,
    make('pre', { tabIndex: 0, attributes: { role: 'region' }, aria: { label: title } }, text));
}

/** A note instead of an empty list, with what to do about it. */
export const nothing = (...children) => make('p', { className: 'empty' }, ...children);
