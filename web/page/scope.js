// What a view uses while it is shown: listeners for events, timers, lists that are kept up to date. All of it ends when
// another view is shown.
import { ask } from './api.js';
import { on } from './events.js';

export class Scope {
  #ends = [];
  open = true;

  on(name, fn) { this.#ends.push(on(name, fn)); }

  every(ms, fn) {
    const timer = setInterval(fn, ms);
    this.#ends.push(() => clearInterval(timer));
  }

  /** Runs `fn` when the view is left. */
  after(fn) { this.#ends.push(fn); }

  close() {
    this.open = false;
    for (const end of this.#ends.splice(0)) end();
  }

  /**
   * Asks for `path` now, when one of `topics` has changed, and when the daemon came back; gives each answer to `fill`, or an
   * error to `fail`. One request at a time, and at most one that waits. Gives a function that asks again.
   */
  keep(path, topics, fill, fail = () => {}) {
    let busy = false, again = false;
    const look = async () => {
      if (busy) {
        again = true; // the request under way may be older than the change
        return;
      }
      busy = true;
      do {
        again = false;
        try {
          const { value, text } = await ask(typeof path === 'function' ? path() : path);
          if (this.open && !again) fill(value, text);
        } catch (error) {
          if (!('status' in error)) console.error(error);
          if (this.open) fail(error);
        }
      } while (again && this.open);
      busy = false;
    };
    for (const topic of ['hello', ...topics]) this.on(topic, look);
    look();
    return look;
  }
}
