// A recorded call run again, and the difference of the two answers.
import { ask, path } from './api.js';
import { make, put } from './dom.js';
import { action } from './me.js';
import { sure } from './notice.js';
import { link } from './router.js';

const WHY = { cut: 'The recorder has cut this call, so it cannot be run again.', gone: 'Its server or tool is not there any more.', busy: 'It is still running.', failed: 'The new call did not reach an answer.' };

function difference(lines) {
  return make('pre', { className: 'diff', tabIndex: 0, attributes: { role: 'region' }, aria: { label: 'Difference' } },
    ...lines.slice(0, 2000).map((line) => make('span', { data: { sign: line[0] ?? ' ' } }, `${line}\n`)));
}

function outcome({ same, diff, id, note }) {
  return [make('p', {}, make('strong', {}, same ? 'The answer is the same.' : 'The answer differs:'), ' ', id !== undefined && link(`Call ${id}`, 'calls', id), note && ` ${note}`), ...(same ? [] : [difference(diff ?? [])])];
}

/** The button, and the element that shows the outcome; `server` gives the chosen server, or nothing for the same one. */
export function replayParts(call, server) {
  const shown = make('div', { className: 'replayed', tabIndex: -1, attributes: { role: 'status' } });
  const run = async (confirm) => (await ask(`${path('calls', call.id)}/replay`, { body: { ...(server() && { server: server() }), ...(confirm && { confirm }) }, patience: 0 })).value;
  const element = action('Replay', async () => {
    element.disabled = true;
    shown.replaceChildren('Running it again …');
    try {
      let answer;
      try {
        answer = await run(false);
      } catch (error) {
        if (error.body?.reason !== 'confirm') throw error;
        if (!await sure(`Run ${call.name} again?`, `This tool does not say that it only reads, or that a second call changes nothing more. ${error.body.hint ?? ''}`, 'Run again')) {
          put(shown, '');
          element.disabled = false;
          return;
        }
        answer = await run(true);
      }
      shown.replaceChildren(...outcome(answer));
    } catch (error) {
      shown.replaceChildren(make('p', { className: 'error' }, WHY[error.body?.reason] ?? '', ' ', error.message));
    }
    element.disabled = false;
    shown.focus();
  });
  return { element, shown };
}
