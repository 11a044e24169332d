// What a view has under way while it is shown: events it listens for, timers, lists that it keeps up to date. All of it ends
// when another view takes its place.
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

  /** Runs `fn` at the end. */
  after(fn) { this.#ends.push(fn); }

  close() {
    this.open = false;
    for (const end of this.#ends.splice(0)) end();
  }

  /**
   * Asks for `path` now, when one of `topics` has changed, and when the daemon came back; gives each answer to `fill`, or an
   * error to `fail`. One question at a time, and at most one that waits. Gives a function that asks again.
   */
  keep(path, topics, fill, fail = () => {}) {
    let busy = false, again = false;
    const look = async () => {
      if (busy) {
        again = true; // what is under way may have been asked before it happened
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
