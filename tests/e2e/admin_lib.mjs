// What the tests of the daemon's API share: requests by role, and the stream of /api/events.
import http from 'node:http';
import { createHash } from 'node:crypto';
import { exchange, until } from './lib.mjs';

const bearer = (token) => (token ? { Authorization: `Bearer ${token}` } : {});

/** {status, headers, text, json}: json is undefined when the answer is not JSON. */
export async function ask(server, method, where, { body, token, headers = {} } = {}) {
  const answer = await exchange(`${server.origin}${where}`, {
    method, headers: { ...bearer(token), ...headers },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  });
  let json;
  try { json = JSON.parse(answer.text); } catch { /* no JSON */ }
  return { ...answer, json };
}
export const get = (server, where, options) => ask(server, 'GET', where, options);
export const post = (server, where, body, options) => ask(server, 'POST', where, { ...options, body });

/** An entry of auth.tokens. */
export const tokenEntry = (name, token, more = {}) =>
  ({ name, hash: `sha256:${createHash('sha256').update(token).digest('hex')}`, ...more });

/** Reads /api/events: `all` are [name, data], `of(name)` the data of one name. */
export async function events(t, server, { token } = {}) {
  const all = [];
  let text = '', raw = '', ended = false;
  const request = http.get(`${server.origin}/api/events`, { headers: bearer(token), agent: false });
  const response = await new Promise((resolve, reject) => {
    request.on('response', resolve);
    request.on('error', reject);
  });
  response.setEncoding('utf8');
  response.on('data', (d) => {
    raw += d;
    text += d;
    for (let at; (at = text.indexOf('\n\n')) >= 0; text = text.slice(at + 2)) {
      const [, name, data] = text.slice(0, at).match(/^event: (\w+)\ndata: (.*)$/) ?? [];
      if (name) all.push([name, JSON.parse(data)]);
    }
  });
  response.on('close', () => { ended = true; });
  response.on('error', () => { ended = true; });
  t.after(() => request.destroy());
  const of = (name) => all.filter(([n]) => n === name).map(([, data]) => data);
  return {
    response, all, of, raw: () => raw, ended: () => ended, close: () => request.destroy(),
    /** Waits for the next message of this name that `passes` accepts. */
    next: (name, passes = () => true, ms) => {
      const from = all.length;
      return until(`${name} in ${JSON.stringify(all.slice(-20))}`, () =>
        all.slice(from).find(([n, data]) => n === name && passes(data))?.[1], ms);
    },
  };
}
