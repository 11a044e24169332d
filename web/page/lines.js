// A call as a line for the shell: with curl, as one request without a session, or with `rialto call`.
import { token } from './api.js';
import { configuration } from './configuration.js';
import { requestOf } from './mcp.js';
import { tokensOf } from './json.js';

/** A text as one word of sh. */
export const quote = (text) => (/^[-A-Za-z0-9_@%+=:,./]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** JSON in one line, without white space between its tokens. */
export const oneLine = (json) => tokensOf(json).join('');

export function curlLine(method, members, options) {
  const { body, headers } = requestOf(method, members, { ...options, id: 1 });
  const given = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
  if (token.get() !== null || configuration.tokens) given.push('-H "Authorization: Bearer $RIALTO_TOKEN"');
  return ['curl -sS', quote(`${location.origin}/mcp`), ...given, '--data-binary', quote(body)].join(' ');
}

export const callLine = (name, json) => `rialto call ${quote(name)} ${quote(oneLine(json))}`;
