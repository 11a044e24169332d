// What the tests of signing in share: keys and tokens made by hand, a small issuer whose answers a test
// decides, and oidc-provider, a real one.
import crypto from 'node:crypto';
import http from 'node:http';
import { load } from './lib.mjs';

const b64 = (value) => Buffer.from(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value))
  .toString('base64url');

/** A key pair of an algorithm, with its JWK. */
export function newKey(alg, kid = `key-${alg}`) {
  const pair = {
    RS: () => crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }),
    PS: () => crypto.generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES: () => crypto.generateKeyPairSync('ec', { namedCurve: { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[alg] }),
    Ed: () => crypto.generateKeyPairSync('ed25519'),
  }[alg.slice(0, 2)]();
  return { alg, kid, ...pair, jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg } };
}

function signature(key, alg, text) {
  if (alg === 'none') return '';
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith('HS')) return crypto.createHmac(hash, key.secret).update(text).digest('base64url');
  if (alg.startsWith('Ed')) return crypto.sign(null, Buffer.from(text), key.privateKey).toString('base64url');
  const options = alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' }
    : alg.startsWith('PS') ? { padding: crypto.constants.RSA_PKCS1_PSS_PADDING, saltLength: crypto.constants.RSA_PSS_SALTLEN_DIGEST } : {};
  return crypto.sign(hash, Buffer.from(text), { key: key.privateKey, ...options }).toString('base64url');
}

/** A JWT. `header` and `claims` may be texts, which go in as they are. */
export function sign(key, claims, header = {}) {
  const head = typeof header === 'string' ? header : { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header };
  const text = `${b64(head)}.${b64(claims)}`;
  const alg = typeof header === 'string' ? key.alg : head.alg;
  return `${text}.${signature(key, alg, text)}`;
}

/** A site whose answers are those of `answer(request, body)`: {status, headers, body}. */
export async function site(t, answer) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    const { status = 200, headers = {}, body: text, hold } = await answer(request, body) ?? {};
    if (hold) return; // no answer ever
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(typeof text === 'string' || Buffer.isBuffer(text) ? text : JSON.stringify(text ?? {}));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { origin: `http://127.0.0.1:${server.address().port}`, asked };
}

export const seconds = () => Math.floor(Date.now() / 1000);

// --- our own issuer, as a browser and an agent see it ---

/** The hidden fields, the cookie and the choices of a consent page. */
export function readPage(answer) {
  const field = (name) => answer.text.match(new RegExp(`name="${name}" value="([^"]*)"`))?.[1];
  return {
    request: field('request'), csrf: field('csrf'),
    scope: answer.text.match(/name="scope" value="([^"]*)" checked/)?.[1],
    cookie: answer.headers['set-cookie']?.[0].split(';')[0],
  };
}

export const pkce = () => {
  const verifier = crypto.randomBytes(32).toString('base64url');
  return { verifier, challenge: crypto.createHash('sha256').update(verifier).digest('base64url') };
};
