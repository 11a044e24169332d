// A server's entry in the configuration, in a dialog: the most used members as fields, all of it as JSON.
import { make, put } from './dom.js';
import { dialog } from './notice.js';

/** Splits a command line into words; quotes keep spaces, also inside of a word: --x="a b". */
export function words(text) {
  const bare = (word) => word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_, double, single) => single ?? double.replace(/\\(.)/g, '$1'));
  return (text.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\S)+/g) ?? []).map(bare);
}
const unwords = (args) => args.map((a) => (/^[^\s"']+$/.test(a) ? a : `"${a.replace(/(["\\])/g, '\\$1')}"`)).join(' ');
// A value of several lines, or with blanks around it, has no line of its own: it is only in the JSON.
const isLine = (value) => `${value}` === `${value}`.trim() && !/[\r\n]/.test(value);
const unlines = (values, between) => Object.entries(values ?? {}).filter(([, v]) => isLine(v)).map(([k, v]) => `${k}${between}${v}`).join('\n');
const others = (values) => Object.fromEntries(Object.entries(values ?? {}).filter(([, v]) => !isLine(v)));
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
  const command = field('Command', input(), 'A program to start on this machine');
  const args = field('Arguments', input(), 'In words, as in a shell');
  const url = field('URL', input(), 'Or the address of a server that runs already');
  const env = field('Environment', area('', 2), 'NAME=value, one on each line; ${NAME} takes it from a secret or the environment');
  const headers = field('Headers', area('', 2), 'Name: value, one on each line');
  const json = field('Entry as JSON', area('', 8));
  const wrong = make('p', { className: 'error', hidden: true, attributes: { role: 'alert' } });
  const fields = [command, args, url, env, headers];

  /** Shows the entry in the fields. */
  const show = () => {
    command.control.value = entry.command ?? '';
    args.control.value = unwords(Array.isArray(entry.args) ? entry.args.map(String) : []);
    url.control.value = entry.url ?? '';
    env.control.value = unlines(entry.env, '=');
    headers.control.value = unlines(entry.headers, ': ');
    fields.forEach((f) => { f.shown = f.control.value; });
  };
  /** The entry: what the fields do not show, and those that nobody has changed, stay as they were. */
  const read = () => {
    const now = { ...entry };
    const set = (key, { control, shown }, value, empty = !control.value.trim()) => {
      if (control.value === shown) return;
      if (empty) delete now[key];
      else now[key] = value;
    };
    const setLines = (key, of, by) => {
      const all = { ...others(entry[key]), ...lines(of.control.value, by) };
      set(key, of, all, !Object.keys(all).length);
    };
    set('command', command, command.control.value.trim());
    set('args', args, words(args.control.value));
    set('url', url, url.control.value.trim());
    setLines('env', env, /^([^=]*)=([^]*)$/);
    setLines('headers', headers, /^([^:]*):([^]*)$/);
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
      show();
      json.mark(null);
    } catch (error) {
      json.mark(`is not JSON: ${error.message}`);
    }
  };
  show();
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
