// Requests to the daemon: JSON, with the token of this tab.

const PATIENCE = 10_000; // for one answer

/** A refusal, or with the status 0 no answer at all. */
export class Trouble extends Error {
  constructor(status, body = {}) {
    super([body?.error ?? `status ${status}`, body?.hint].filter(Boolean).join('\n'));
    this.status = status;
    this.body = body ?? {};
  }
}

export const token = {
  get: () => sessionStorage.getItem('token'),
  set: (text) => sessionStorage.setItem('token', text),
  forget: () => sessionStorage.removeItem('token'),
};
export const authorization = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

/** {value, text} of an answer, or Trouble. */
export async function ask(path, { method, body, patience = PATIENCE } = {}) {
  let response, text, value;
  try {
    response = await fetch(path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'), body: body && JSON.stringify(body), cache: 'no-store', redirect: 'error',
      headers: { ...authorization(), ...(body && { 'Content-Type': 'application/json' }) }, ...(patience && { signal: AbortSignal.timeout(patience) }),
    });
    text = await response.text();
  } catch {
    throw new Trouble(0, { error: 'the daemon does not answer' });
  }
  try { value = JSON.parse(text); } catch { /* not our daemon, then */ }
  if (!response.ok) throw new Trouble(response.status, value);
  if (value === undefined) throw new Trouble(response.status, { error: 'the answer is not JSON' });
  return { value, text };
}

export const get = async (path) => (await ask(path)).value;
export const post = async (path, body = {}) => (await ask(path, { body })).value;

/** A path from a list's address and names that may have any character in them. */
export const path = (list, ...names) => [`/api/${list}`, ...names.map(encodeURIComponent)].join('/');
