// A server's entry in the configuration, in a dialog: the most used members as fields, all of it as JSON.
import { make, put } from './dom.js';
import { dialog } from './notice.js';

/** Splits a command line into words; quotes keep spaces, also inside of a word: --x="a b". */
export function words(text) {
  const bare = (word) => word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, double, single) => single ?? double.replace(/\\(.)/g, '$1'));
  return (text.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\S)+/g) ?? []).map(bare);
}
const unwords = (args) => args.map((a) => (/^[^\s"']+$/.test(a) ? a : `"${a.replace(/(["\\])/g, '\\$1')}"`)).join(' ');
const lines = (text, by) => Object.fromEntries(text.split('\n').map((l) => l.trim()).filter(Boolean).map((l) => { const [, k, v] = l.match(by) ?? [null, l, '']; return [k.trim(), v.trim()]; }));

let ids = 0;
function field(label, control, about) {
  const id = control.id = `e${++ids}`;
  const wrong = make('p', { className: 'wrong', hidden: true, id: `${id}-wrong` });
  control.setAttribute('aria-describedby', wrong.id);
  const element = make('div', { className: 'field' }, make('div', { className: 'field-head' }, make('label', { htmlFor: id }, label)), about && make('p', { className: 'about' }, about), control, wrong);
  const mark = (words_) => {
    if (words_) control.setAttribute('aria-invalid', 'true');
    else control.removeAttribute('aria-invalid');
    wrong.hidden = !words_;
    put(wrong, words_ ?? '');
  };
  return { element, mark, control };
}
const input = (value = '') => make('input', { type: 'text', value, autocomplete: 'off', spellcheck: false });
const area = (value, rows) => make('textarea', { value, rows, spellcheck: false, className: 'json' });

/**
 * Asks for a name (when there is none yet) and an entry, and gives them to `send`; stays open with the daemon's words as long
 * as that refuses them.
 */
export async function entryDialog(title, name, entry, send) {
  const named = field('Name', input(name));
  const command = field('Command', input(entry.command ?? ''), 'A program to start on this machine');
  const args = field('Arguments', input(unwords(entry.args ?? [])), 'In words, as in a shell');
  const url = field('URL', input(entry.url ?? ''), 'Or the address of a server that runs already');
  const env = field('Environment', area(Object.entries(entry.env ?? {}).map(([k, v]) => `${k}=${v}`).join('\n'), 2), 'NAME=value, one on each line; ${NAME} takes it from a secret or the environment');
  const headers = field('Headers', area(Object.entries(entry.headers ?? {}).map(([k, v]) => `${k}: ${v}`).join('\n'), 2), 'Name: value, one on each line');
  const json = field('Entry as JSON', area('', 8));
  const wrong = make('p', { className: 'error', hidden: true, attributes: { role: 'alert' } });
  const fields = [command, args, url, env, headers];

  /** The entry: what the fields do not show stays as it was. */
  const read = () => {
    const now = { ...entry };
    const set = (key, value, empty) => { if (empty) delete now[key]; else now[key] = value; };
    set('command', command.control.value.trim(), !command.control.value.trim());
    set('args', words(args.control.value), !args.control.value.trim());
    set('url', url.control.value.trim(), !url.control.value.trim());
    set('env', lines(env.control.value, /^([^=]*)=([^]*)$/), !env.control.value.trim());
    set('headers', lines(headers.control.value, /^([^:]*):([^]*)$/), !headers.control.value.trim());
    return now;
  };
  const follow = () => {
    json.control.value = JSON.stringify(read(), null, 2);
    json.mark(null);
  };
  fields.forEach((f) => { f.control.oninput = follow; });
  json.control.oninput = () => {
    try {
      const now = JSON.parse(json.control.value);
      if (now === null || typeof now !== 'object' || Array.isArray(now)) throw new Error('must be an object');
      entry = now;
      command.control.value = now.command ?? '';
      args.control.value = unwords(Array.isArray(now.args) ? now.args.map(String) : []);
      url.control.value = now.url ?? '';
      env.control.value = Object.entries(now.env ?? {}).map(([k, v]) => `${k}=${v}`).join('\n');
      headers.control.value = Object.entries(now.headers ?? {}).map(([k, v]) => `${k}: ${v}`).join('\n');
      json.mark(null);
    } catch (error) {
      json.mark(`is not JSON: ${error.message}`);
    }
  };
  follow();
  const valid = () => {
    const isNew = !name;
    named.mark(isNew && !named.control.value.trim() ? 'is required' : null);
    command.mark(!command.control.value.trim() && !url.control.value.trim() ? 'give a command or a URL' : null);
    const bad = [named, command, json].find((f) => f.control.hasAttribute('aria-invalid'));
    bad?.control.focus();
    return !bad;
  };
  const more = make('details', { open: Boolean(entry.env || entry.headers) }, make('summary', {}, 'Environment, headers, and all the rest'), env.element, headers.element, json.element);
  let sending = false, box;
  const trySend = async () => {
    if (sending || !valid()) return;
    sending = true;
    try {
      await send({ name: named.control.value.trim(), entry: JSON.parse(json.control.value) });
      box.closest('dialog').close();
    } catch (error) {
      wrong.hidden = false;
      put(wrong, error.message);
    }
    sending = false;
  };
  const content = [...(name ? [] : [named.element]), command.element, args.element, url.element, more, wrong];
  box = content[0];
  await dialog(title, content, [['Cancel', 'cancel'], [name ? 'Save' : 'Add', 'send', 'main']], { className: 'wide', check: (value) => value === 'cancel' || (trySend(), false) });
}
