// Texts for people: invisible characters made visible, times and sizes in words, dates as the browser's language writes them.

export const SHOWN = 200_000; // characters of one text that are shown

/** Shows the code point of characters that are invisible or change the direction of text. */
export function visible(text, most = SHOWN) {
  const whole = String(text);
  const shown = whole.slice(0, most + 1).replace(/(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  return shown.length > most ? `${shown.slice(0, most)} …` : shown;
}

export const short = (text, most = 120) => (text.length > most ? `${text.slice(0, most)}…` : text);

export function span(seconds) {
  const steps = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const [size, unit] = steps.find(([s]) => seconds >= s) ?? [1, 's'];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}
export const since = (time) => span((Date.now() - Date.parse(time)) / 1000 || 0);
export const took = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms / 1000));
export const bytes = (n) => (n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`);
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

// navigator.languages is what the browser sends as Accept-Language.
const languages = [...(navigator.languages ?? [])];
const numbers = new Intl.NumberFormat(languages);
const times = new Intl.DateTimeFormat(languages, { timeStyle: 'medium' });
const dates = new Intl.DateTimeFormat(languages, { dateStyle: 'medium', timeStyle: 'medium' });

export const count = (n) => numbers.format(n);
/** Formats a time; what is no time comes from a server and is shown as it came. */
const written = (format, time) => (Number.isNaN(Date.parse(time)) ? short(String(time ?? ''), 40) : format.format(new Date(time)));
export const clock = (time) => written(times, time);
export const date = (time) => written(dates, time);
