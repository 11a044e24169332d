// The one event stream from the daemon, read by fetch so that it can carry a token; the listeners of each event, and
// reconnecting.
import { authorization, Trouble } from './api.js';

const SILENCE = 60_000; // ms until the stream counts as dead; the daemon sends something every 25 s
const UNSEEN = 60_000; // ms that a hidden tab keeps its stream
const PAUSES = [100, 250, 500, 1000]; // ms between attempts; the last one is repeated

const listeners = new Map(); // name -> Set
export const stream = { hello: null, connected: false };

/** Calls `fn` for each event of this name; gives a function that ends it. The event `lost` is made here. */
export function on(name, fn) {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name).add(fn);
  return () => listeners.get(name).delete(fn);
}

function emit(name, data) {
  for (const fn of [...(listeners.get(name) ?? [])]) fn(data);
}

/** The events of a stream of text, as {event, data}. */
export async function* eventsOf(body, heard = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { event: 'message', data: [] };
      for (const line of block.split(/\r?\n/)) {
        const [, name, text] = line.match(/^([^:]*):? ?([^]*)$/);
        if (name === 'data') event.data.push(text);
        else if (name === 'event') event.event = text;
      }
      if (event.data.length) yield { ...event, data: event.data.join('\n') };
    }
  }
}

let current; // the AbortController of the stream that is open, or being opened
let failures = 0, timer;

async function read(control) {
  let silence;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => control.abort(), SILENCE);
  };
  try {
    heard();
    const response = await fetch('/api/events', { headers: { ...authorization(), Accept: 'text/event-stream' }, cache: 'no-store', redirect: 'error', signal: control.signal });
    if (!response.ok) throw new Trouble(response.status, await response.json().catch(() => ({})));
    for await (const { event, data } of eventsOf(response.body, heard)) {
      const value = JSON.parse(data);
      if (event === 'hello') {
        const before = stream.hello;
        failures = 0;
        Object.assign(stream, { hello: value, connected: true });
        emit('hello', { now: value, before });
      } else {
        emit(event, value);
      }
    }
  } finally {
    clearTimeout(silence);
  }
}

/** Opens the stream, and again whenever it breaks, except after 401 and 403: then a person has to give a token. */
export async function connect() {
  clearTimeout(timer);
  current?.abort();
  const control = current = new AbortController();
  let error = new Trouble(0, { error: 'the daemon does not answer' });
  try {
    await read(control);
  } catch (e) {
    if (e instanceof Trouble) error = e;
  }
  if (control !== current) return; // a newer stream has taken over, or the tab is hidden
  stream.connected = false;
  const pause = PAUSES[Math.min(failures++, PAUSES.length - 1)];
  emit('lost', { error, pause });
  if (error.status !== 401 && error.status !== 403) timer = setTimeout(connect, pause);
}

function close() {
  clearTimeout(timer);
  stream.connected = false;
  current?.abort();
  current = undefined;
}

// A hidden tab closes its connection after a while: browsers allow six for each address.
let hiding;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(close, UNSEEN);
  else if (!current) connect();
});
