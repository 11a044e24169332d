// What a server asks during a call: each question is a dialog with Accept and Decline.
import { make, pane } from './dom.js';
import { formOf } from './form.js';
import { write } from './json.js';
import { dialog } from './notice.js';
import { short } from './text.js';

const BUTTONS = [['Decline', 'decline'], ['Accept', 'accept', 'main']];
const field = (label, control) => make('div', { className: 'field' }, make('label', { htmlFor: control.id }, label), control);

/** Each gives the answer as JSON, or null when the person closed the question: the call is then cancelled. */
const kinds = {
  async 'elicitation/create'(params, signal) {
    const message = make('p', { className: 'message' }, short(String(params.message ?? ''), 5000));
    if (params.mode === 'url') {
      const url = String(params.url ?? '');
      const safe = /^https?:\/\//i.test(url);
      const said = await dialog('The server asks you to visit an address', [message, make('p', {}, make('code', {}, short(url, 1000))),
        safe ? make('p', {}, make('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, 'Open it in a new tab'), ', if you trust it; then accept.') : make('p', { className: 'error' }, 'This is no web address, and is not opened.')], BUTTONS, { signal });
      return said && JSON.stringify({ action: said });
    }
    const form = formOf(params.requestedSchema ?? {});
    const said = await dialog('The server asks', [message, form.element], BUTTONS, {
      signal, check(action) {
        const bad = action === 'accept' ? form.validate() : null;
        bad?.focus();
        return !bad;
      },
    });
    return said && `{"action":"${said}"${said === 'accept' ? `,"content":${write(form.read())}` : ''}}`;
  },

  async 'sampling/createMessage'(params, signal) {
    const answer = make('textarea', { id: 'answer', rows: 6 });
    const messages = (Array.isArray(params.messages) ? params.messages : []).slice(0, 100).map((m) => {
      const texts = [m?.content].flat().map((c) => (typeof c?.text === 'string' ? c.text : JSON.stringify(c)));
      return pane(short(String(m?.role ?? ''), 20), texts.join('\n'));
    });
    const said = await dialog('The server asks for a model’s answer', [params.systemPrompt && pane('System prompt', String(params.systemPrompt)), ...messages, field('Answer', answer)].filter(Boolean), BUTTONS, { signal });
    const text = said === 'accept' ? answer.value : 'The operator declined to answer.';
    return said && JSON.stringify({ role: 'assistant', content: { type: 'text', text }, model: 'operator', stopReason: said === 'accept' ? 'endTurn' : 'declined' });
  },

  async 'roots/list'(params, signal) {
    const roots = make('textarea', { id: 'roots', rows: 3, placeholder: 'file:///home/me/project' });
    const said = await dialog('The server asks for folders it may work in', [field('Roots, one on each line', roots)], BUTTONS, { signal });
    const lines = said === 'accept' ? roots.value.split('\n').map((l) => l.trim()).filter(Boolean) : [];
    return said && JSON.stringify({ roots: lines.map((uri) => ({ uri })) });
  },
};

async function unknown(request, signal) {
  const said = await dialog('The server asks something that this page does not know', [pane('Question', JSON.stringify(request, null, 2))], BUTTONS, { signal });
  return said && JSON.stringify({ action: said });
}

/** The JSON of the answers to all requests, or null when one was closed. */
export async function answers(requests, signal) {
  const found = [];
  for (const [key, request] of Object.entries(requests ?? {})) {
    const kind = Object.hasOwn(kinds, request?.method) ? kinds[request.method] : null;
    const answer = kind ? await kind(request.params ?? {}, signal) : await unknown(request, signal);
    if (!answer) return null;
    found.push(`${JSON.stringify(key)}:${answer}`);
  }
  return `{${found.join(',')}}`;
}
