// The view of one tool, resource, template or prompt: what it is, a form for its arguments with their JSON beside it, and its call.
import { ask, path } from './api.js';
import { badge, button, copyButton, facts, make, nothing, pane, put, section } from './dom.js';
import { formOf } from './form.js';
import { member, parse, pretty, tokensOf, write, writePretty } from './json.js';
import { callLine, curlLine } from './lines.js';
import { parameterHeaders, send } from './mcp.js';
import { action, mayChange } from './me.js';
import { say } from './notice.js';
import { request } from './call.js';
import { forgetPictures, rawOf, resultNodes } from './result.js';
import { link } from './router.js';
import { hiddenWords } from './tools.js';
import { count, short, took } from './text.js';

// --- the kinds: how each is asked for ---

const stringsOf = (names, required) => ({ type: 'object', properties: Object.fromEntries(names.map(({ name, title, description }) => [name, { type: 'string', title: title ?? name, ...(description && { description }) }])), required });
const variablesOf = (template) => [...new Set([...template.matchAll(/\{[+#./;?&]?([^}]*)\}/g)].flatMap(([, list]) => list.split(',').map((v) => v.replace(/(:\d+|\*)$/, ''))))].filter(Boolean);

/** An address from a template and values: the forms that servers use (RFC 6570, the first three levels). */
function expand(template, values) {
  const given = (name) => values.get(name);
  const reserved = (v) => encodeURI(v).replaceAll('%25', '%');
  const kinds = { '': ['', ',', false, encodeURIComponent], '+': ['', ',', false, reserved], '#': ['#', ',', false, reserved], '.': ['.', '.', false, encodeURIComponent],
    '/': ['/', '/', false, encodeURIComponent], ';': [';', ';', true, encodeURIComponent], '?': ['?', '&', true, encodeURIComponent], '&': ['&', '&', true, encodeURIComponent] };
  return template.replace(/\{([+#./;?&]?)([^}]*)\}/g, (_, op, list) => {
    const [first, between, named, encode] = kinds[op];
    const found = list.split(',').map((v) => v.replace(/(:\d+|\*)$/, '')).filter((v) => given(v) !== undefined).map((v) => `${named ? `${v}=` : ''}${encode(given(v))}`);
    return found.length ? first + found.join(between) : '';
  });
}

const kinds = {
  tool: {
    method: 'tools/call', verb: 'Call', schema: (item) => item.inputSchema ?? {},
    members: (item, json) => `"name":${JSON.stringify(item.name)},"arguments":${json}`,
    options: (item, values) => ({ name: item.name, headers: parameterHeaders(item.inputSchema, values), tasks: true }),
  },
  resource: { method: 'resources/read', verb: 'Read', schema: () => ({}), members: (item) => `"uri":${JSON.stringify(item.uri ?? item.name)}`, options: (item) => ({ name: item.uri ?? item.name }) },
  template: {
    method: 'resources/read', verb: 'Read', schema: (item) => stringsOf(variablesOf(item.uriTemplate ?? item.name).map((name) => ({ name })), []),
    members: (item, json, values) => `"uri":${JSON.stringify(expand(item.uriTemplate ?? item.name, values))}`,
    options: (item, values) => ({ name: expand(item.uriTemplate ?? item.name, values) }),
    reference: (item) => ({ type: 'ref/resource', uri: item.uriTemplate ?? item.name }),
  },
  prompt: {
    method: 'prompts/get', verb: 'Get', schema: (item) => stringsOf(item.arguments ?? [], (item.arguments ?? []).filter((a) => a.required).map((a) => a.name)),
    members: (item, json) => `"name":${JSON.stringify(item.name)},"arguments":${json}`,
    options: (item) => ({ name: item.name }),
    reference: (item) => ({ type: 'ref/prompt', name: item.name }),
  },
};

// --- arguments: the form, and the JSON beside it ---

/** {element, text, values, check}: `text` is the JSON that is sent, exactly as it was typed. */
function argumentsOf(schema, start) {
  const json = make('textarea', { id: 'arguments-json', className: 'json', rows: 10, spellcheck: false, attributes: { autocapitalize: 'off' } });
  const wrong = make('p', { className: 'wrong', id: 'json-wrong', hidden: true });
  json.setAttribute('aria-describedby', wrong.id);
  const mark = (words) => {
    if (words) json.setAttribute('aria-invalid', 'true');
    else json.removeAttribute('aria-invalid');
    wrong.hidden = !words;
    put(wrong, words);
  };
  const form = formOf(schema, () => {
    json.value = writePretty(form.read());
    mark('');
  });
  const read = () => {
    const tree = parse(json.value.trim() || '{}');
    if (!(tree instanceof Map)) throw new SyntaxError('arguments are an object: {…}');
    return tree;
  };
  json.oninput = () => {
    try {
      form.fill(read());
      mark('');
    } catch (error) {
      mark(error.message);
    }
  };
  if (start !== undefined) {
    json.value = start;
    json.oninput();
  } else {
    json.value = writePretty(form.start);
  }
  return {
    element: make('div', { className: 'arguments' }, form.element, make('div', { className: 'beside' }, make('label', { htmlFor: json.id }, 'Arguments as JSON'), json, wrong)),
    text: () => json.value.trim() || '{}',
    values: read,
    /** Marks what is wrong and moves the focus there; true when nothing is. */
    check() {
      let bad;
      try {
        read();
        bad = form.validate();
      } catch (error) {
        mark(error.message);
        bad = json;
      }
      bad?.focus();
      return !bad;
    },
  };
}

/** Offers the server's completions for an argument. */
function complete(element, item, kind, scope) {
  const reference = kinds[kind].reference?.(item);
  if (!reference || !mayChange()) return;
  for (const control of element.querySelectorAll('.fields input')) {
    const name = control.dataset.argument;
    const options = make('datalist', { id: `${control.id}-offers` });
    control.setAttribute('list', options.id);
    control.after(options);
    let timer;
    const look = () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        try {
          const { message } = await send('completion/complete', `"ref":${JSON.stringify(reference)},"argument":${JSON.stringify({ name, value: control.value })}`, { server: item.hidden ? item.server : undefined, progress: false });
          const values = message.result?.completion?.values;
          if (scope.open && Array.isArray(values)) options.replaceChildren(...values.slice(0, 100).map((v) => make('option', { value: String(v) })));
        } catch { /* the server has no completions */ }
      }, 150);
    };
    control.addEventListener('input', look);
    control.addEventListener('focus', look);
  }
}

// --- the call and its end ---

/** The part of the view in which a call runs: `run` sends what it is given. */
function stage(item, kind, scope) {
  const state = make('p', { className: 'progress', attributes: { role: 'status' } });
  const bar = make('progress', { hidden: true, max: 1, aria: { label: 'Progress' } });
  const heard = make('ol', { className: 'heard' });
  const shown = make('div', { className: 'result', tabIndex: -1, hidden: true, attributes: { role: 'region' }, aria: { label: 'Result' } });
  let control;
  scope.after(() => {
    control?.abort();
    forgetPictures();
  });
  function tell({ progress, log, task }) {
    if (task) put(state, `Task ${task.status}${task.statusMessage ? `: ${short(String(task.statusMessage), 200)}` : ''}`);
    if (log) {
      heard.append(make('li', {}, badge(short(String(log.level ?? 'log'), 20)), ' ', short(typeof log.data === 'string' ? log.data : JSON.stringify(log.data) ?? '', 1000)));
      if (heard.children.length > 50) heard.firstChild.remove();
    }
    if (!progress) return;
    const known = typeof progress.total === 'number' && progress.total > 0;
    bar.hidden = false;
    if (known) bar.value = Math.min(1, Math.max(0, Number(progress.progress) / progress.total));
    else bar.removeAttribute('value');
    put(state, ['Running', known ? `${progress.progress} of ${progress.total}` : progress.progress, progress.message && short(String(progress.message), 300)].filter((x) => x !== undefined && x !== '').join(', '));
  }
  function end(words, ...nodes) {
    bar.hidden = true;
    put(state, words);
    shown.replaceChildren(...nodes);
    shown.hidden = !nodes.length;
    if (nodes.length) shown.focus({ preventScroll: false });
  }
  function showAnswer(answer, began) {
    const time = took(Date.now() - began);
    if (answer === null) return end('Given up: its question was closed.');
    const { message, text } = answer;
    if (message.error) {
      return end(`Failed after ${time}.`, make('h2', {}, 'Error'), make('p', { className: 'error' }, short(String(message.error.message ?? 'no reason was given'), 5000)),
        pane('Error', pretty(tokensOf(JSON.stringify(message.error)))));
    }
    const failed = message.result.isError === true;
    const raw = answer.task ? JSON.stringify(message.result) : rawOf(text, 'result');
    return end(`${failed ? 'The tool reports an error' : 'Done'} after ${time}.`, make('h2', {}, failed ? 'Error of the tool' : 'Result', ' '),
      ...(failed ? [make('p', { className: 'error' }, 'The tool says that it went wrong:')] : []), ...resultNodes(message.result, raw));
  }
  return {
    element: make('div', { className: 'stage' }, state, bar, heard, shown),
    busy: () => Boolean(control),
    cancel: () => control?.abort(),
    async run(members, options) {
      const began = Date.now();
      control = new AbortController();
      forgetPictures();
      heard.replaceChildren();
      shown.hidden = true;
      put(state, 'Running');
      try {
        showAnswer(await request(kinds[kind].method, members, { ...options, signal: control.signal, tell, stays: () => scope.open }), began);
      } catch (error) {
        if (scope.open) end(error.name === 'AbortError' ? `Cancelled after ${took(Date.now() - began)}.` : `It could not be sent: ${error.message}`);
      }
      control = null;
    },
  };
}

// --- a resource that is watched ---

function subscription(item, scope, changed) {
  let control = null;
  const words = make('span', { className: 'soft', attributes: { role: 'status' } });
  const element = action('Subscribe', async () => {
    if (control) {
      control.abort();
      return;
    }
    control = new AbortController();
    put(element, 'Unsubscribe');
    put(words, 'Waiting for changes');
    let times = 0;
    try {
      await send('subscriptions/listen', `"notifications":{"resourceSubscriptions":[${JSON.stringify(item.uri ?? item.name)}]}`, {
        signal: control.signal, progress: false, server: item.hidden ? item.server : undefined,
        heard(message) {
          if (message.method !== 'notifications/resources/updated') return;
          put(words, `Changed ${++times === 1 ? 'once' : `${times} times`}`);
          changed();
        },
      });
      put(words, 'The subscription has ended');
    } catch (error) {
      put(words, error.name === 'AbortError' ? '' : error.message);
    }
    control = null;
    put(element, 'Subscribe');
  });
  scope.after(() => control?.abort());
  return [element, words];
}

// --- the view ---

function about(item, kind, text) {
  const notes = item.annotations ?? {};
  const list = facts(make('dl', { className: 'facts' }), [
    ['Server', link(item.server, 'servers', item.server)], ['Own name', item.own_name], ['Cost', item.tokens !== undefined && item.tokens !== null ? `${count(item.tokens)} tokens` : null],
    ['Changes things', notes.readOnlyHint === true ? 'no (readOnlyHint)' : kind === 'tool' ? 'perhaps' : null], ['Destructive', notes.destructiveHint === undefined ? null : String(notes.destructiveHint)],
    ['Idempotent', notes.idempotentHint === undefined ? null : String(notes.idempotentHint)], ['Open world', notes.openWorldHint === undefined ? null : String(notes.openWorldHint)],
    ['Type', typeof item.mimeType === 'string' ? short(item.mimeType, 100) : null], ['Task', item.execution?.taskSupport], ['Hidden', item.hidden ? hiddenWords(item.hidden) : null],
  ]);
  const raw = tokensOf(text);
  const schemas = [['Input schema', 'inputSchema'], ['Output schema', 'outputSchema'], ['Annotations', 'annotations']].filter(([, name]) => item[name] !== undefined);
  return section('About', list, ...schemas.map(([title, name]) => make('details', {}, make('summary', {}, title), pane(title, pretty(member(raw, name))))));
}

/** The recorded arguments of a call, as they were. */
async function recorded(id) {
  const { value, text } = await ask(path('calls', id));
  if (value.cut?.arguments) throw new Error('the recorder has cut its arguments (record.body)');
  return value.arguments === null ? '{}' : pretty(member(tokensOf(text), 'arguments'));
}

export async function showTool(box, scope, { name, query, retitle }) {
  const kind = Object.hasOwn(kinds, query.get('kind')) ? query.get('kind') : 'tool';
  let item, text, start;
  try {
    ({ value: item, text } = await ask(`${path('tools', name)}?${new URLSearchParams({ ...(kind !== 'tool' && { kind }), ...(query.get('server') && { server: query.get('server') }) })}`));
    if (query.get('call')) start = await recorded(query.get('call')).catch((error) => { say(`The recorded arguments cannot be had: ${error.message}`); });
  } catch (error) {
    if (scope.open) box.append(nothing(error.message, ' ', link('All tools', 'tools')));
    return;
  }
  if (!scope.open) return;
  fillTool(box, scope, { item, text, kind, start, retitle });
}

function fillTool(box, scope, { item, text, kind, start, retitle }) {
  const { verb, schema, members, options, method } = kinds[kind];
  retitle(`Tools: ${short(item.name ?? item.uri ?? item.uriTemplate ?? '', 100)}`);
  const given = argumentsOf(schema(item), start);
  [...given.element.querySelectorAll('.fields input')].forEach((control, i) => { control.dataset.argument = Object.keys(schema(item).properties ?? {})[i] ?? ''; });
  complete(given.element, item, kind, scope);
  const place = stage(item, kind, scope);
  const run = action(verb, async () => {
    if (place.busy() || !given.check()) return;
    run.disabled = true;
    cancel.disabled = false;
    const values = strings(given.values());
    await place.run(members(item, given.text(), values), { ...options(item, values), server: item.hidden ? item.server : undefined });
    run.disabled = !mayChange();
    cancel.disabled = true;
  }, { className: 'main' });
  const cancel = button('Cancel', () => place.cancel(), { disabled: true });
  const line = (of) => () => {
    if (!given.check()) throw new Error('something is missing');
    return of(strings(given.values()));
  };
  const bar = make('div', { className: 'buttons' }, run, cancel, copyButton(line((values) => curlLine(method, members(item, given.text(), values), { ...options(item, values), tasks: undefined })), '', 'Copy as curl'));
  if (kind === 'tool') bar.append(copyButton(line(() => callLine(item.name, given.text())), '', 'Copy as rialto call'));
  if (kind === 'resource') bar.append(...subscription(item, scope, () => { if (!place.busy()) run.click(); }));
  const title = item.title ?? item.annotations?.title;
  box.append(make('div', { className: 'two' },
    make('div', { className: 'column' },
      make('div', { className: 'card padded' }, typeof title === 'string' && make('p', { className: 'lead' }, short(title, 200)),
        item.description && make('p', { className: 'description' }, short(String(item.description), 20_000)), item.hidden && make('p', { className: 'hidden-by' }, hiddenWords(item.hidden))),
      section(kind === 'tool' ? 'Arguments' : verb, kind === 'resource' ? make('code', { className: 'padded' }, item.uri ?? item.name) : given.element, bar, place.element)),
    make('div', { className: 'column' }, about(item, kind, text))));
  scope.on('hello', ({ now, before }) => { if (before?.pid !== now.pid) put(place.element.querySelector('.progress'), ''); });
}

/** Values of templates and headers are texts, also where a number was typed. */
const strings = (tree) => new Map([...tree].map(([k, v]) => [k, typeof v === 'string' ? v : write(v)]));
