// What the tests of authorization share: keys and tokens made by hand, a small site whose answers a
// test decides, a person without a browser, and oidc-provider, a real issuer.
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

/** A JWT. `header` and `claims` may be texts, which are used unchanged. */
export function sign(key, claims, header = {}) {
  const head = typeof header === 'string' ? header : { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header };
  const text = `${b64(head)}.${b64(claims)}`;
  const alg = typeof header === 'string' ? key.alg : head.alg;
  return `${text}.${signature(key, alg, text)}`;
}

/** An HTTP server that answers with what `answer(request, body)` returns: {status, headers, body}. */
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

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = http.createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => { const { port } = server.address(); server.close(() => resolve(port)); });
  });
}

/** A person with a cookie jar instead of a browser: follows redirects of one site, fills in forms. */
export class Person {
  #jar = new Map();

  async #ask(url, options = {}) {
    const answer = await fetch(url, { redirect: 'manual', ...options,
      headers: { ...options.headers, Cookie: [...this.#jar].map(([k, v]) => `${k}=${v}`).join('; ') } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      this.#jar.set(name, value);
    }
    return { status: answer.status, location: answer.headers.get('location') && new URL(answer.headers.get('location'), url).href, text: await answer.text(), url };
  }

  /** Follows redirects until one leads to another site, or a page comes. */
  async #go(url, options) {
    let answer = await this.#ask(url, options);
    while (answer.location && new URL(answer.location).origin === new URL(url).origin && !answer.location.includes('code=')) answer = await this.#ask(answer.location);
    return answer;
  }

  /** Signs in at oidc-provider's own pages; returns the address that it redirects to. */
  async atProvider(url) {
    let answer = await this.#go(url);
    for (let i = 0; i < 4 && !answer.location; i++) {
      const action = new URL(answer.text.match(/<form[^>]*action="([^"]+)"/)[1], answer.url).href;
      const prompt = answer.text.match(/name="prompt" value="(\w+)"/)[1];
      answer = await this.#go(action, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: `prompt=${prompt}&login=alice&password=x` });
    }
    return answer.location;
  }

  /** Answers our own consent page; returns the address that it redirects to. */
  async atRialto(url, word) {
    const page = await this.#go(url);
    const field = (name) => page.text.match(new RegExp(`name="${name}" value="([^"]*)"`))?.[1];
    const answer = await this.#ask(url.split('?')[0], { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Origin: new URL(url).origin },
      body: `${new URLSearchParams({ request: field('request'), csrf: field('csrf'), scope: 'mcp', word, answer: 'allow' })}` });
    return answer.location;
  }
}

/** oidc-provider for one resource, with tokens of `format` (jwt or opaque). */
export async function oidcProvider(t, resource, format) {
  const { Provider, errors } = await import(load.resolve('oidc-provider'));
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const service = { client_id: 'service', client_secret: 'service-secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
  const provider = new Provider(issuer, {
    clients: [service, { ...service, client_id: 'rialto', client_secret: 'rialto-secret' }],
    scopes: ['openid', 'offline_access', 'mcp', 'tools:echo'], cookies: { keys: ['k'] }, pkce: { required: () => true },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'], rotateRefreshToken: true,
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: true }, registration: { enabled: true }, revocation: { enabled: true }, clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true, useGrantedResource: () => true, defaultResource: () => undefined,
        getResourceServerInfo: (ctx, wanted) => {
          if (wanted !== resource) throw new errors.InvalidTarget();
          return { scope: 'mcp tools:echo', audience: resource, accessTokenTTL: 300, accessTokenFormat: format, jwt: { sign: { alg: 'RS256' } } };
        },
      },
    },
  });
  provider.use(async (ctx, next) => { // a request without scopes would be denied
    if (ctx.path === '/auth' && !ctx.query.scope && ctx.query.client_id) ctx.query.scope = 'openid mcp';
    await next();
  });
  const quiet = console.warn;
  console.warn = () => {};
  const server = http.createServer(provider.callback());
  await new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  console.warn = quiet;
  t.after(() => { server.closeAllConnections(); server.close(); });
  /** An access token for the client `service`. */
  const token = async (fields = {}) => {
    const answer = await fetch(`${issuer}/token`, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Authorization: `Basic ${Buffer.from('service:service-secret').toString('base64')}` },
      body: `${new URLSearchParams({ grant_type: 'client_credentials', resource, scope: 'mcp', ...fields })}` });
    return (await answer.json()).access_token;
  };
  const revoke = (value) => fetch(`${issuer}/token/revocation`, { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Authorization: `Basic ${Buffer.from('service:service-secret').toString('base64')}` }, body: `token=${value}` });
  return { issuer, token, revoke };
}
