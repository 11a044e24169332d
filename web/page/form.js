// A form made from a JSON schema. Every field gives a part of a tree (`read`, json.js) and takes one (`fill`). Until a person
// changes a field it gives back exactly what it took, so that digits that were typed as JSON stay as they are.
import { button, make, put } from './dom.js';
import { Num, parse, treeOf, write, writePretty } from './json.js';
import { kindOf } from './schema.js';
import { short } from './text.js';

const FIELDS = 400; // of one form; for more fields, or more than DEPTH levels, JSON is typed
const DEPTH = 8;
const ABSENT = undefined;

let ids = 0;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;

// --- what is wrong with a value: null, or words ---

const isNumber = (n) => typeof n === 'number' && Number.isFinite(n);
const multiple = (value, step) => Math.abs(value / step - Math.round(value / step)) < 1e-9;
const formats = {
  email: [/^[^\s@]+@[^\s@]+$/, 'an e-mail address'],
  uri: [/^[a-z][-a-z0-9+.]*:\S+$/i, 'an address such as https://example.com'],
  date: [/^\d{4}-\d\d-\d\d$/, 'a date such as 2026-07-28'],
  'date-time': [/^\d{4}-\d\d-\d\dT\d\d:\d\d/i, 'a time such as 2026-07-28T09:30:00Z'],
};

function pattern(schema, text) {
  if (typeof schema.pattern !== 'string' || schema.pattern.length > 500 || text.length > 10_000) return null;
  if (/\)[*+{]/.test(schema.pattern)) return null; // a group that is repeated may take for ever: the server decides
  try {
    return new RegExp(schema.pattern, 'u').test(text) ? null : `must match ${short(schema.pattern)}`;
  } catch {
    return null; // not a pattern of this language: the server decides
  }
}

const checks = {
  string(value, schema) {
    if (typeof value !== 'string') return 'must be text';
    const n = [...value].length;
    if (isNumber(schema.minLength) && n < schema.minLength) return `needs at least ${schema.minLength} characters`;
    if (isNumber(schema.maxLength) && n > schema.maxLength) return `has more than ${schema.maxLength} characters`;
    const [rule, words] = Object.hasOwn(formats, schema.format) ? formats[schema.format] : [];
    if (rule && !rule.test(value)) return `must be ${words}`;
    return pattern(schema, value);
  },
  number(value, schema) {
    if (!(value instanceof Num)) return 'must be a number';
    const n = Number(value.text);
    if (isNumber(schema.minimum) && n < schema.minimum) return `must be at least ${schema.minimum}`;
    if (isNumber(schema.maximum) && n > schema.maximum) return `must be at most ${schema.maximum}`;
    if (isNumber(schema.exclusiveMinimum) && n <= schema.exclusiveMinimum) return `must be more than ${schema.exclusiveMinimum}`;
    if (isNumber(schema.exclusiveMaximum) && n >= schema.exclusiveMaximum) return `must be less than ${schema.exclusiveMaximum}`;
    if (isNumber(schema.multipleOf) && schema.multipleOf > 0 && !multiple(n, schema.multipleOf)) return `must be a multiple of ${schema.multipleOf}`;
    return null;
  },
  integer(value, schema) {
    if (!(value instanceof Num) || (!/^-?\d+$/.test(value.text) && !Number.isInteger(Number(value.text)))) return 'must be a whole number';
    return checks.number(value, schema);
  },
  boolean: (value) => (typeof value === 'boolean' ? null : 'must be true or false'),
  json: () => null,
};

// --- fields ---

/** What all fields share: label, description, error message. */
function frame(label, control, schema, required) {
  const id = `f${++ids}`;
  control.id = id;
  const about = make('p', { id: `${id}-about`, className: 'about' }, short(String(schema.description ?? ''), 2000));
  const wrong = make('p', { id: `${id}-wrong`, className: 'wrong', hidden: true });
  const name = make('label', { htmlFor: id }, label);
  if (control.type !== 'checkbox') control.setAttribute('aria-required', String(required));
  control.setAttribute('aria-describedby', [schema.description && about.id, wrong.id].filter(Boolean).join(' '));
  const head = make('div', { className: 'field-head' }, name, required && make('span', { className: 'required', aria: { hidden: 'true' } }, 'required'));
  const element = make('div', { className: `field ${control.type === 'checkbox' ? 'tick' : ''}` });
  if (control.type === 'checkbox') element.append(make('div', { className: 'field-head' }, control, name), about, wrong);
  else element.append(head, schema.description ? about : '', control, wrong);
  const mark = (words) => {
    if (words) control.setAttribute('aria-invalid', 'true');
    else control.removeAttribute('aria-invalid');
    wrong.hidden = !words;
    put(wrong, words ?? '');
  };
  return { element, mark, control };
}

/**
 * A field with one control. `read` gives the value of the control, undefined when it is left empty, or throws what is wrong;
 * `show` puts a value into it, and gives false when it cannot.
 */
function simple(label, control, { schema, required, check, read, show, changed }) {
  const { element, mark } = frame(label, control, schema, required);
  let kept = ABSENT; // what the field was filled with
  let isKept = true;
  const value = () => (isKept ? kept : read());
  const problem = () => {
    let now;
    try { now = value(); } catch (error) { return error.message; }
    if (now === ABSENT) return required ? 'is required' : null;
    return check(now);
  };
  control.oninput = control.onchange = () => {
    isKept = false;
    if (control.hasAttribute('aria-invalid')) mark(problem());
    changed();
  };
  return {
    element,
    read: () => { try { return value(); } catch { return ABSENT; } },
    fill(now) {
      [kept, isKept] = [now, true];
      show(now);
      mark(null);
    },
    validate() {
      const words = problem();
      mark(words);
      return words ? control : null;
    },
  };
}

function textField(label, { kind, schema, required, changed }) {
  const long = kind === 'string' && ((schema.maxLength ?? 0) > 200 || /^(text|markdown|multiline)$/.test(schema.format ?? '') || schema.contentMediaType);
  const control = kind === 'string' && long ? make('textarea', { rows: 4, spellcheck: false })
    : make('input', { type: 'text', autocomplete: 'off', spellcheck: false, ...(kind !== 'string' && { inputMode: kind === 'integer' ? 'numeric' : 'decimal' }) });
  const read = () => {
    const text = kind === 'string' ? control.value : control.value.trim();
    if (text === '') return ABSENT;
    if (kind === 'string') return text;
    if (!NUMBER.test(text)) throw new Error(kind === 'integer' ? 'must be a whole number' : 'must be a number');
    return new Num(text);
  };
  const show = (now) => { control.value = now === ABSENT ? '' : now instanceof Num ? now.text : typeof now === 'string' ? now : write(now); };
  return simple(label, control, { schema, required, changed, read, show, check: (v) => checks[kind](v, schema) });
}

function booleanField(label, { schema, required, changed }) {
  const control = make('input', { type: 'checkbox' });
  const field = simple(label, control, {
    schema, required, changed, check: (v) => checks.boolean(v),
    read: () => (control.indeterminate ? ABSENT : control.checked),
    show(now) {
      control.indeterminate = now === ABSENT && !required; // an untouched checkbox is not sent
      control.checked = now === true;
    },
  });
  const fill = (now) => field.fill(now === ABSENT && required ? false : now);
  return { ...field, fill };
}

function choiceField(label, { schema, required, choices, changed }) {
  const values = choices.map(([value]) => treeOf(value));
  const texts = values.map(write);
  const odd = make('option', { value: 'odd', hidden: true });
  const control = make('select', {}, make('option', { value: '' }, required ? 'choose' : 'not set'), ...choices.map(([, text], i) => make('option', { value: String(i) }, short(text))), odd);
  return simple(label, control, {
    schema, required, changed,
    check: (v) => (texts.includes(write(v)) ? null : 'is not one of the choices'),
    read: () => (control.value === '' ? ABSENT : values[Number(control.value)]),
    show(now) {
      const at = now === ABSENT ? -1 : texts.indexOf(write(now));
      odd.hidden = now === ABSENT || at >= 0;
      put(odd, odd.hidden ? '' : write(now));
      control.value = now === ABSENT ? '' : at >= 0 ? String(at) : 'odd';
    },
  });
}

function jsonField(label, { schema, required, changed }) {
  const control = make('textarea', { rows: 3, spellcheck: false, className: 'json', placeholder: 'JSON' });
  return simple(label, control, {
    schema, required, changed, check: checks.json,
    read() {
      if (!control.value.trim()) return ABSENT;
      try { return parse(control.value); } catch { throw new Error('is not JSON'); }
    },
    show: (now) => { control.value = now === ABSENT ? '' : writePretty(now); },
  });
}

// --- groups ---

function group(label, schema, required, ...children) {
  const wrong = make('p', { className: 'wrong', id: `f${++ids}-wrong`, hidden: true });
  const element = make('fieldset', { aria: { describedby: wrong.id } }, make('legend', {}, label, required && make('span', { className: 'required', aria: { hidden: 'true' } }, 'required')),
    schema.description && make('p', { className: 'about' }, short(String(schema.description), 2000)), ...children, wrong);
  const mark = (words) => {
    if (words) element.setAttribute('aria-invalid', 'true');
    else element.removeAttribute('aria-invalid');
    wrong.hidden = !words;
    put(wrong, words ?? '');
  };
  return { element, mark };
}

function objectField(label, context) {
  const { root, schema, seen, required, depth, room, changed } = context;
  const wanted = Array.isArray(schema.required) ? schema.required : [];
  const fields = new Map(Object.entries(schema.properties).map(([name, part]) => [name, field(String(part?.title ?? name), {
    root, part, seen, required: wanted.includes(name), depth: depth + 1, room, changed,
  })]));
  let extra = new Map(); // what the form does not know is kept, too
  let strange = ABSENT; // a value that is no object at all
  const children = [...fields.values()].map((f) => f.element);
  const { element, mark } = label === null ? { element: make('div', { className: 'fields' }, ...children), mark() {} } : group(label, schema, required, ...children);
  const read = () => {
    const now = new Map();
    for (const [name, f] of fields) {
      const value = f.read();
      if (value !== ABSENT) now.set(name, value);
    }
    for (const [name, value] of extra) now.set(name, value);
    if (strange !== ABSENT && !now.size) return strange;
    return now.size || required || label === null ? now : ABSENT;
  };
  return {
    element, read,
    fill(now) {
      const given = now instanceof Map ? now : new Map();
      strange = now === ABSENT || now instanceof Map ? ABSENT : now;
      extra = new Map([...given].filter(([name]) => !fields.has(name)));
      for (const [name, f] of fields) f.fill(given.get(name));
      mark(null);
    },
    validate() {
      const empty = label !== null && !required && read() === ABSENT;
      if (strange !== ABSENT && read() === strange) {
        mark('must be an object');
        return element;
      }
      mark(null);
      let first = null;
      for (const f of fields.values()) {
        const bad = empty ? null : f.validate();
        first ??= bad;
      }
      return first;
    },
  };
}

function arrayField(label, context) {
  const { root, schema, seen, required, depth, room, changed } = context;
  const items = make('div', { className: 'items' });
  const add = button('Add', () => {
    const row = append(initial(root, schema.items ?? {}, seen));
    changed();
    row.field.element.querySelector('input, select, textarea')?.focus();
  });
  const { element, mark } = group(label, schema, required, items, add);
  let rows = [];
  let strange = ABSENT;
  function append(value) {
    const row = {};
    const title = schema.items?.title ?? label;
    const { kind } = kindOf(root, schema.items ?? {}, seen);
    const whole = ['object', 'array', 'boolean'].includes(kind); // the others are not sent when they are left empty
    row.field = field(`${title} ${rows.length + 1}`, { root, part: schema.items ?? {}, seen, required: whole, depth: depth + 1, room, changed });
    row.element = make('div', { className: 'item' }, row.field.element, button('Remove', () => {
      rows = rows.filter((r) => r !== row);
      row.element.remove();
      changed();
      add.focus();
    }, { aria: { label: `Remove ${title} ${rows.length + 1}` } }));
    row.field.fill(value);
    rows.push(row);
    items.append(row.element);
    strange = ABSENT;
    return row;
  }
  const read = () => {
    if (strange !== ABSENT) return strange;
    const now = rows.map((r) => r.field.read()).filter((v) => v !== ABSENT);
    return now.length || required ? now : ABSENT;
  };
  return {
    element, read,
    fill(now) {
      items.replaceChildren();
      rows = [];
      if (Array.isArray(now)) now.slice(0, 500).forEach(append);
      strange = now === ABSENT || (Array.isArray(now) && now.length <= 500) ? ABSENT : now;
      mark(null);
    },
    validate() {
      let first = null;
      for (const { field: f } of rows) first = f.validate() ?? first;
      const now = read();
      const words = now === ABSENT ? null : !Array.isArray(now) ? 'must be a list'
        : isNumber(schema.minItems) && now.length < schema.minItems ? `needs at least ${schema.minItems}`
          : isNumber(schema.maxItems) && now.length > schema.maxItems ? `has more than ${schema.maxItems}`
            : schema.uniqueItems === true && new Set(now.map(write)).size < now.length ? 'has the same twice' : null;
      mark(words);
      return first ?? (words ? add : null);
    },
  };
}

const makers = {
  object: objectField, array: arrayField, choice: choiceField, json: jsonField, boolean: booleanField, string: textField, number: textField, integer: textField,
};

/** Has an object more members than a form has room for? */
const isWide = ({ kind, schema }, room) => kind === 'object' && Object.keys(schema.properties).length > room.left;

/** The field of a schema. */
function field(label, { root, part, seen, required, depth, room, changed }) {
  let found = kindOf(root, part, seen);
  if (room.left-- <= 0 || depth > DEPTH || isWide(found, room)) found = { ...found, kind: 'json' };
  return makers[found.kind](short(label, 200), { root, required, depth, room, changed, ...found });
}

/** The initial value of a field: its default, or those of its members. */
function initial(root, part, seen, depth = 0, room = { left: FIELDS }) {
  const { kind, schema, seen: way } = kindOf(root, part, seen);
  if (schema.default !== undefined) return treeOf(schema.default);
  if (kind !== 'object' || depth > DEPTH) return ABSENT;
  const now = new Map();
  for (const [name, p] of Object.entries(schema.properties)) {
    if (room.left-- <= 0) break;
    const value = initial(root, p, way, depth + 1, room);
    if (value !== ABSENT) now.set(name, value);
  }
  return now.size ? now : ABSENT;
}

/**
 * A form for the arguments of a tool: {element, read, fill, validate, start}. `start` is the tree of the defaults; `validate`
 * marks what is wrong and gives the first such control, or null.
 */
export function formOf(schema, changed = () => {}) {
  const root = schema !== null && typeof schema === 'object' ? schema : {};
  const found = kindOf(root, root, []);
  const context = { root, required: true, depth: 0, room: { left: FIELDS }, changed };
  const known = found.kind === 'object' && !isWide(found, context.room);
  const form = known ? objectField(null, { ...context, ...found }) : null;
  const start = initial(root, root, []) ?? new Map();
  if (form) {
    form.fill(start);
    return { ...form, start };
  }
  // No form can be shown: the arguments are edited as JSON only.
  const empty = make('p', { className: 'about' }, found.kind === 'object' ? 'This takes more arguments than a form can show: type them as JSON.' : 'The schema of this names no arguments.');
  let kept = start;
  return { element: make('div', { className: 'fields' }, empty), read: () => kept, fill: (now) => { kept = now; }, validate: () => null, start };
}
