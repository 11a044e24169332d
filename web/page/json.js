// JSON as it was sent. JSON.parse may round numbers, reorder names and drop duplicate ones, so texts are split into tokens;
// a tree of them has Map for objects and Num for numbers, whose digits stay as they were written.

export const tokensOf = (json) => json.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s[\]{},:"]+/gs) ?? [];
const opens = (token) => token === '{' || token === '[';
const closes = (token) => token === '}' || token === ']';

/** The elements of an array, or the members of an object, as tokens. */
export function parts(tokens) {
  const found = [];
  let depth = 0;
  for (const token of tokens) {
    if (closes(token)) depth--;
    if (depth === 1 && token === ',') found.push([]);
    else if (depth > 0) (found.length ? found : (found.push([]), found)).at(-1).push(token);
    if (opens(token)) depth++;
  }
  return found;
}
export const member = (tokens, name) => parts(tokens).find(([key]) => key === `"${name}"`)?.slice(2) ?? [];

export function pretty(tokens) {
  const line = (depth) => `\n${'  '.repeat(depth)}`;
  let depth = 0;
  return tokens.map((token, i) => {
    if (closes(token)) return opens(tokens[i - 1]) ? (depth--, token) : line(--depth) + token;
    if (opens(token)) return closes(tokens[i + 1]) ? (depth++, token) : token + line(++depth);
    return token === ',' ? token + line(depth) : token === ':' ? ': ' : token;
  }).join('');
}

/** A number, as the text of its digits. */
export class Num {
  constructor(text) { this.text = text; }
}

/** The tree of a text; throws SyntaxError when that is no JSON. */
export function parse(text) {
  JSON.parse(text);
  const tokens = tokensOf(text);
  let at = 0;
  const value = () => {
    const token = tokens[at++];
    if (token === '{') {
      const object = new Map();
      while (tokens[at] !== '}') {
        if (tokens[at] === ',') at++;
        const name = JSON.parse(tokens[at]);
        at += 2;
        object.set(name, value());
      }
      at++;
      return object;
    }
    if (token === '[') {
      const array = [];
      while (tokens[at] !== ']') {
        if (tokens[at] === ',') at++;
        array.push(value());
      }
      at++;
      return array;
    }
    return /^[-0-9]/.test(token) ? new Num(token) : JSON.parse(token);
  };
  return value();
}

/** The tree of a value that JSON.parse gave. */
export const treeOf = (value) => parse(JSON.stringify(value));

/** The text of a tree. */
export function write(value) {
  if (value instanceof Num) return value.text;
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (value instanceof Map) return `{${[...value].map(([k, v]) => `${JSON.stringify(k)}:${write(v)}`).join(',')}}`;
  return JSON.stringify(value);
}
export const writePretty = (value) => pretty(tokensOf(write(value)));

/** A text, indented if it is JSON. Very long texts are left as they are: nobody reads them whole. */
export function readable(text) {
  if (text.length > 1 << 20) return text;
  try {
    JSON.parse(text);
    return pretty(tokensOf(text));
  } catch {
    return text;
  }
}
