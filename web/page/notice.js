// Messages to the person: what did not work, and questions that must be answered before something is done.
import { $, button, make, put } from './dom.js';

export function say(text) {
  $('notice').hidden = !text;
  put($('notice-text'), text);
}

/** Calls `what` and shows an error message when it fails; gives whether it worked. */
export async function attempt(what) {
  try {
    await what();
    say('');
    return true;
  } catch (error) {
    say(`That did not work: ${error.message}`);
    return false;
  }
}

/**
 * A dialog. `buttons` are [text, value, class]; `check` may keep it open by giving false. Gives the value of the button that
 * was pressed, or null when it was closed by Escape, or by `signal`.
 */
export function dialog(title, content, buttons, { check = () => true, signal, className = '' } = {}) {
  return new Promise((resolve) => {
    const heading = make('h2', { id: 'dialog-title', tabIndex: -1 }, title);
    const box = make('dialog', { className, aria: { labelledby: 'dialog-title' } });
    let value = null;
    const form = make('form', { method: 'dialog', noValidate: true }, heading, ...content, make('div', { className: 'buttons' },
      ...buttons.map(([text, of, look = '']) => {
        const element = button(text, () => {
          if (!check(of)) return;
          value = of;
          box.close();
        }, { className: look });
        return element;
      })));
    form.onsubmit = (event) => {
      event.preventDefault();
      form.querySelector('.buttons .main')?.click();
    };
    box.append(form);
    box.onclose = () => {
      box.remove();
      resolve(value);
    };
    signal?.addEventListener('abort', () => box.close());
    document.body.append(box);
    box.showModal();
    (box.querySelector('input, textarea, select') ?? box.querySelector('.buttons button:last-child'))?.focus();
  });
}

/** Asks for confirmation before something is done. */
export const sure = async (title, text, verb) => await dialog(title, [make('p', {}, text)], [['Cancel', false], [verb, true, 'danger']]) === true;
