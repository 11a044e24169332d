// Requests to the daemon: JSON, with the token of this tab.

const PATIENCE = 10_000; // ms to wait for one response

/** An error response, or no response at all (status 0). */
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

/** Gives {value, text} of the response; throws Trouble. */
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
  try { value = JSON.parse(text); } catch { /* not our daemon; refused below */ }
  if (!response.ok) throw new Trouble(response.status, value);
  if (value === undefined) throw new Trouble(response.status, { error: 'the answer is not JSON' });
  return { value, text };
}

export const get = async (path) => (await ask(path)).value;
export const post = async (path, body = {}) => (await ask(path, { body })).value;

/** The path of a list, or of an entry whose name may have any characters. */
export const path = (list, ...names) => [`/api/${list}`, ...names.map(encodeURIComponent)].join('/');
