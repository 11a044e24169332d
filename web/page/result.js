// Shows results by their type. Pictures and sounds come from memory (blob:), never from an address that a server names;
// drawings (SVG) and unknown types are not drawn.
import { badge, make, pane, save, button } from './dom.js';
import { member, pretty, readable, tokensOf } from './json.js';
import { link } from './router.js';
import { bytes, short } from './text.js';

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'];
const SOUNDS = ['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/mpeg', 'audio/mp3', 'audio/ogg', 'audio/webm', 'audio/flac', 'audio/mp4', 'audio/aac'];
const ROWS = 200, COLUMNS = 30; // of a table

const urls = new Set();
/** Frees the memory of pictures and sounds that are not shown any more. */
export function forgetPictures() {
  for (const url of urls) URL.revokeObjectURL(url);
  urls.clear();
}

function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

/** A picture, a sound, or a file to save: by its type, and only the types that are known to be harmless. */
function media(base64, type, label) {
  const raw = typeof base64 === 'string' ? bytesOf(base64) : null;
  if (!raw) return make('p', { className: 'error' }, `${label}: what was sent is not base64`);
  const kind = PICTURES.includes(type) ? 'img' : SOUNDS.includes(type) ? 'audio' : null;
  const words = `${label}, ${short(String(type ?? 'of no type'), 60)}, ${bytes(raw.length)}`;
  if (!kind) {
    return make('p', { className: 'attached' }, `${words} (not drawn) `, button('Save', () => save('result.bin', raw, 'application/octet-stream')));
  }
  const url = URL.createObjectURL(new Blob([raw], { type }));
  urls.add(url);
  const element = kind === 'img' ? make('img', { src: url, alt: `Picture of the result, ${bytes(raw.length)}` }) : make('audio', { src: url, controls: true, aria: { label: words } });
  return make('figure', { className: 'media' }, element, make('figcaption', {}, words));
}

const cell = (value) => (value === null || typeof value !== 'object' ? String(value) : JSON.stringify(value));

/** Structured content: a list of objects is a table of them, an object a table of names and values. */
function table(value) {
  const listed = Array.isArray(value) ? value : Object.values(value).find((v, _, all) => all.length === 1 && Array.isArray(v));
  if (Array.isArray(listed) && listed.length && listed.every((v) => v !== null && typeof v === 'object' && !Array.isArray(v))) {
    const names = [...new Set(listed.slice(0, ROWS).flatMap(Object.keys))].slice(0, COLUMNS);
    return make('table', { className: 'grid' }, make('thead', {}, make('tr', {}, ...names.map((n) => make('th', { scope: 'col' }, short(n))))),
      make('tbody', {}, ...listed.slice(0, ROWS).map((row) => make('tr', {}, ...names.map((n) => make('td', {}, Object.hasOwn(row, n) ? short(cell(row[n]), 500) : ''))))));
  }
  const pairs = Array.isArray(value) ? value.map((v, i) => [i + 1, v]) : Object.entries(value);
  return make('table', { className: 'grid' }, make('tbody', {}, ...pairs.slice(0, ROWS).map(([name, v]) => make('tr', {}, make('th', { scope: 'row' }, short(String(name))), make('td', {}, short(cell(v), 500))))));
}

function resource(found) {
  const what = found ?? {};
  const title = make('p', {}, badge('resource'), ' ', make('code', {}, short(String(what.uri ?? ''), 300)));
  const body = typeof what.text === 'string' ? pane(short(String(what.mimeType ?? 'text'), 60), what.text, { name: 'Resource' })
    : what.blob !== undefined ? media(what.blob, what.mimeType, 'Resource') : '';
  return make('div', { className: 'part' }, title, body);
}

const kinds = {
  text: (c) => pane('Text', String(c.text ?? '')),
  image: (c) => media(c.data, c.mimeType, 'Picture'),
  audio: (c) => media(c.data, c.mimeType, 'Sound'),
  resource: (c) => resource(c.resource),
  resource_link: (c) => make('div', { className: 'part' }, make('p', {}, badge('resource link'), ' ', make('strong', {}, short(String(c.title ?? c.name ?? ''))), ' ',
    link(short(String(c.uri ?? ''), 300), 'tools', String(c.uri ?? ''), { kind: 'resource' })), make('p', { className: 'soft' }, short(String(c.description ?? ''), 500))),
};
const part = (c) => (Object.hasOwn(kinds, c?.type) ? kinds[c.type](c) : pane(`Content of the type ${short(String(c?.type))}`, JSON.stringify(c, null, 2)));

/** The contents of a tool's result, of a resource that was read, or of a prompt's messages. */
function contents(result) {
  if (Array.isArray(result.content)) return result.content.slice(0, 200).map(part);
  if (Array.isArray(result.contents)) return result.contents.slice(0, 200).map(resource);
  if (Array.isArray(result.messages)) return result.messages.slice(0, 200).map((m) => make('div', { className: 'part' }, make('p', {}, badge(short(String(m?.role)))), part(m?.content)));
  return [];
}

/** The nodes of a result; `json` is its text. */
export function resultNodes(result, json) {
  const nodes = contents(result);
  const structured = result.structuredContent;
  if (structured !== null && typeof structured === 'object') nodes.push(make('div', { className: 'part scroll-x', tabIndex: 0, aria: { label: 'Structured content' }, attributes: { role: 'region' } }, table(structured)));
  const raw = make('details', {}, make('summary', {}, 'The whole result'));
  raw.ontoggle = () => { if (raw.open && raw.children.length === 1) raw.append(pane('Result', readable(json))); };
  return [...nodes, raw];
}

/** The JSON of `result` or `error` in the text of an answer. */
export const rawOf = (text, name) => (text.length > 1 << 20 ? JSON.stringify(JSON.parse(text)[name]) : pretty(member(tokensOf(text), name)));
