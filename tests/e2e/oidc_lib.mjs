// A real authorization server (oidc-provider) and a real MCP server (the official SDK) that accepts its
// tokens, both on loopback; and a person without a browser, who keeps cookies and fills in forms.
import http from 'node:http';
import path from 'node:path';
import { load, npmFolder } from './lib.mjs';

const { Provider, errors } = await import(path.join(npmFolder, 'node_modules/oidc-provider/lib/index.js'));
const jose = await import(load.resolve('jose'));
const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = load('@modelcontextprotocol/sdk/server/streamableHttp.js');

export const scopes = ['mcp:read', 'mcp:write'];

const listen = (t, handler) => new Promise((resolve) => {
  const server = http.createServer(handler);
  server.listen(0, '127.0.0.1', () => resolve(server));
  t.after(() => { server.closeAllConnections(); server.close(); });
});
const originOf = (server) => `http://127.0.0.1:${server.address().port}`;

/**
 * The authorization server. `asked` counts the token requests by grant_type; `ttl` is the lifetime of
 * new access tokens; with `down` it answers 503 to token requests, and with `held`, a list, it keeps its answers
 * there: functions that send them. Revocations, which `revoking` counts, wait for the promise `stalled`.
 */
export async function startIssuer(t, { clients = [], resource = () => true, registration = true } = {}) {
  let handle;
  const server = await listen(t, (req, res) => {
    if (as.held && req.url === '/token') {
      const end = res.end.bind(res);
      res.end = (...body) => as.held.push(() => end(...body));
    }
    if (as.down && req.url.startsWith('/token')) res.writeHead(503).end();
    else if (req.url.startsWith('/token/revocation')) {
      as.revoking++;
      Promise.resolve(as.stalled).then(() => handle(req, res));
    } else handle(req, res);
  });
  const issuer = originOf(server);
  const as = { issuer, ttl: 3600, asked: {}, failed: {}, down: false, revoking: 0, resource };
  const provider = new Provider(issuer, {
    clients,
    scopes: ['openid', 'offline_access', ...scopes],
    pkce: { required: () => true },
    cookies: { keys: ['test'] },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    clientBasedCORS: () => true,
    rotateRefreshToken: true,
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: async (ctx, sub) => ({ accountId: sub, claims: async () => ({ sub }) }),
    features: {
      devInteractions: { enabled: true }, registration: { enabled: registration }, revocation: { enabled: true },
      clientCredentials: { enabled: true }, deviceFlow: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, indicator) => {
          if (!as.resource(indicator)) throw new errors.InvalidTarget();
          return { scope: scopes.join(' '), audience: indicator, accessTokenTTL: as.ttl, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } };
        },
      },
    },
  });
  provider.on('grant.success', (ctx) => { const g = ctx.oidc.params.grant_type; as.asked[g] = (as.asked[g] ?? 0) + 1; });
  provider.on('grant.error', (ctx, e) => { as.failed[e.error] = (as.failed[e.error] ?? 0) + 1; });
  as.revoked = 0;
  provider.on('access_token.destroyed', () => { as.revoked++; });
  provider.on('refresh_token.destroyed', () => { as.revoked++; });
  handle = provider.callback();
  return Object.assign(as, { provider });
}

const text = (value) => ({ content: [{ type: 'text', text: `${value}` }] });

function tools(who, personal) {
  const server = new McpServer({ name: 'notes', version: '1' }, personal && { instructions: `You work for ${who.sub}` });
  if (personal) {
    server.registerResource(`notes of ${who.sub}`, `notes://${who.sub}`, {}, () => ({ contents: [{ uri: `notes://${who.sub}`, text: '' }] }));
  }
  server.registerTool('whoami', { description: 'Who is calling' }, () => text(who.sub ?? who.client_id));
  server.registerTool('write_note', { description: 'Needs mcp:write' }, () => text('written'));
  return server;
}

/**
 * An MCP server that wants tokens of `as`, and whose clock is `ahead` by so many ms. `refuse`: answer 401 to every token.
 * With `personal`, each user gets instructions and a resource that name the user. Answers to requests without a token wait
 * for the promise `stalled`.
 */
export async function startProtected(t, as, { challenge = true, ahead = 0, personal = false } = {}) {
  const seen = { tokens: [], calls: 0, refuse: false };
  const keys = jose.createRemoteJWKSet(new URL(`${as.issuer}/jwks`));
  const server = await listen(t, async (req, res) => {
    const origin = originOf(server);
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    if (req.url === '/.well-known/oauth-protected-resource/mcp') {
      res.writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [as.issuer], scopes_supported: ['mcp:read'] }));
      return;
    }
    const deny = (status, more) => res.writeHead(status, challenge ? { 'WWW-Authenticate': `Bearer resource_metadata="${metadata}"${more}` } : {}).end();
    const token = /^Bearer (\S+)$/.exec(req.headers.authorization ?? '')?.[1];
    if (token) seen.tokens.push(token);
    const who = token && !seen.refuse && await jose.jwtVerify(token, keys, { issuer: as.issuer, audience: `${origin}/mcp`, currentDate: new Date(Date.now() + ahead) })
      .then(({ payload }) => payload, () => null);
    if (!token) await seen.stalled;
    if (!who) { deny(401, token ? ', error="invalid_token"' : ', scope="mcp:read"'); return; }
    const body = await new Promise((resolve) => {
      let all = '';
      req.on('data', (d) => { all += d; });
      req.on('end', () => resolve(all));
    });
    const message = body ? JSON.parse(body) : {};
    if (message.method === 'tools/call') seen.calls++;
    if (message.params?.name === 'write_note' && !who.scope.split(' ').includes('mcp:write')) {
      deny(403, ', error="insufficient_scope", scope="mcp:write"');
      return;
    }
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on('close', () => transport.close());
    await tools(who, personal).connect(transport);
    await transport.handleRequest(req, res, body ? message : undefined);
  });
  return Object.assign(seen, { origin: originOf(server), url: `${originOf(server)}/mcp` });
}

/** A person with cookies, who does what pages ask for. */
export class Person {
  #jar = new Map();

  constructor(name = 'alice') { this.name = name; }

  /** The cookies as a browser sends them. */
  get cookies() { return [...this.#jar].map(([k, v]) => `${k}=${v}`).join('; '); }

  async go(url, form) {
    const answer = await fetch(url, {
      redirect: 'manual', method: form ? 'POST' : 'GET',
      headers: {
        cookie: this.cookies,
        ...(form && { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(url).origin }),
      },
      body: form && new URLSearchParams(form),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      this.#jar.set(name, value);
    }
    return answer;
  }

  /** Presses the button of our own page, if it is one; returns the authorization server's address. */
  async setOut(address) {
    if (!new URL(address).pathname.endsWith('/oauth/begin')) return address;
    return this.submit(await (await this.go(address)).text(), address);
  }

  /** Follows redirects, fills in login and consent; returns the first address on another site. */
  async signIn(address, { abort = false } = {}) {
    let url = await this.setOut(address);
    const home = new URL(url).origin;
    for (let i = 0; i < 20; i++) {
      if (new URL(url).origin !== home) return url;
      const answer = await this.go(url);
      const next = answer.headers.get('location');
      if (next) { url = new URL(next, url).href; continue; }
      const page = await answer.text();
      if (abort) { url = new URL(/href="([^"]+\/abort)"/.exec(page)[1], url).href; continue; }
      url = await this.submit(page, url);
      if (!url) return null;
    }
    throw new Error(`no end at ${url}`);
  }

  /** Confirms the device code that is in the address, and signs in. */
  async enter(address) {
    const page = await (await this.go(address)).text();
    const next = await this.submit(page, address).catch(() => null);
    if (next) await this.signIn(next).catch(() => null);
  }

  /** Submits the form of the page, and those of the pages after it; returns the first redirect. */
  async submit(page, url) {
    const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
    if (!action) throw new Error(`no form at ${url}: ${page.replace(/<style[^]*?<\/style>/, '')}`);
    const form = Object.fromEntries([...page.matchAll(/<input[^>]*>/g)]
      .map(([tag]) => [/name="([^"]+)"/.exec(tag)?.[1], /value="([^"]*)"/.exec(tag)?.[1] ?? ''])
      .filter(([name]) => name));
    if ('password' in form) Object.assign(form, { login: this.name, password: 'x' });
    const answer = await this.go(new URL(action, url).href, form);
    const next = answer.headers.get('location');
    if (next) return new URL(next, url).href;
    return this.submit(await answer.text(), url);
  }
}
