// Requests of MCP (the stateless era) to the daemon, made in the operator's name. Parameters are texts, so that what a person
// typed as JSON is sent as typed.
import { authorization, Trouble } from './api.js';
import { eventsOf } from './events.js';

const VERSION = '2026-07-28';
const META = 'io.modelcontextprotocol/';
export const TASKS = `${META}tasks`;
const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
let ids = 0;

/** A text as the value of a header, in base64 where that is necessary. */
export function headerValue(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  const raw = new TextEncoder().encode(text);
  let binary = '';
  for (const byte of raw) binary += String.fromCharCode(byte);
  return `=?base64?${btoa(binary)}?=`;
}

/** The _meta of a request: the version, and who asks. */
function meta(able, more = {}) {
  return JSON.stringify({ [`${META}protocolVersion`]: VERSION, [`${META}clientCapabilities`]: able, [`${META}clientInfo`]: { name: 'rialto-page', version: '1' }, ...more });
}

/** The body and headers of a request; `members` is the JSON of the parameters without their braces. */
export function requestOf(method, members, { name, headers = {}, able = {}, id = ++ids, more } = {}) {
  const params = `{${members ? `${members},` : ''}"_meta":${meta(able, more)}}`;
  return {
    body: `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`,
    headers: {
      'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method, ...(name !== undefined && { 'Mcp-Name': headerValue(name) }), ...headers,
    },
  };
}

/**
 * Sends a request. Gives {message, text} of the response; `heard` is called with each notification before it. Throws Trouble
 * when the daemon refuses the request, AbortError when `signal` aborts it, which also cancels the request.
 */
export async function send(method, members, { server, signal, heard = () => {}, tasks = false, progress = true, ...more } = {}) {
  const able = tasks ? { ...capabilities, extensions: { [TASKS]: {} } } : capabilities;
  const { body, headers } = requestOf(method, members, { able, more: progress ? { progressToken: ids + 1 } : {}, ...more });
  let response;
  try {
    response = await fetch(server ? `/api/mcp/${encodeURIComponent(server)}` : '/api/mcp', {
      method: 'POST', body, headers: { ...headers, ...authorization() }, cache: 'no-store', redirect: 'error', signal,
    });
    if (!/^text\/event-stream/.test(response.headers.get('content-type') ?? '')) return finish(response, await response.text());
    for await (const { data } of eventsOf(response.body)) {
      const message = JSON.parse(data);
      if (message.id !== undefined && !message.method) return { message, text: data };
      heard(message);
    }
  } catch (error) {
    if (error instanceof Trouble || error.name === 'AbortError') throw error;
    throw new Trouble(0, { error: 'the daemon does not answer' });
  }
  throw new Trouble(0, { error: 'the connection ended before the answer came' });
}

function finish(response, text) {
  let message;
  try { message = JSON.parse(text); } catch { throw new Trouble(response.status); }
  if (message?.jsonrpc === undefined) throw new Trouble(response.status, message);
  return { message, text };
}

/** The arguments that a request must repeat in headers because the tool's schema says so. */
export function parameterHeaders(schema, values) {
  const found = {};
  for (const [name, part] of Object.entries(schema?.properties ?? {})) {
    const header = part?.['x-mcp-header'];
    const value = values instanceof Map ? values.get(name) : undefined;
    if (typeof header !== 'string' || !/^[-A-Za-z0-9_]+$/.test(header) || value === undefined || value === null) continue;
    found[`Mcp-Param-${header}`] = headerValue(typeof value === 'string' ? value : value.text ?? String(value));
  }
  return found;
}
