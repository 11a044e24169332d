// Rialto's client for web pages: offers functions of this page as tools to MCP agents.
//
//   <script src="http://127.0.0.1:8765/rialto.js" data-session="shop"></script>
//   rialto.registerTool({name, description, inputSchema, capabilities, handler});
//
// The tag connects by itself; without a data-session the tab gets a session of its own, which it
// keeps across reloads. data-manual leaves connecting to the page: rialto.connect({url, session}).
(function (global) {
  'use strict';

  const FIRST_DELAY = 500;
  const LAST_DELAY = 30000;
  const own = typeof document === 'object' ? document.currentScript : null;

  const uuid = () => (global.crypto && crypto.randomUUID ? crypto.randomUUID()
    : 'xxxxxxxxxxxx4xxx8xxxxxxxxxxxxxxx'.replace(/x/g, () => (Math.random() * 16 | 0).toString(16)));

  // A name that this tab keeps when it is reloaded.
  function remembered(key) {
    try {
      let value = sessionStorage.getItem(key);
      if (!value) sessionStorage.setItem(key, value = uuid());
      return value;
    } catch {
      return uuid(); // storage is off here
    }
  }

  // The tab's page keeps its name when it is reloaded; a copy of the tab is another page.
  function pageName(key) {
    const entry = global.performance?.getEntriesByType?.('navigation')[0];
    const again = entry && entry.type !== 'navigate';
    try { if (!again) sessionStorage.removeItem(key); } catch { /* storage is off here */ }
    return remembered(key);
  }

  // Converts what a handler returned to a result of MCP.
  function toResult(value) {
    if (value && typeof value === 'object' && Array.isArray(value.content)) return value;
    if (typeof value === 'string') return { content: [{ type: 'text', text: value }], isError: false };
    if (value === undefined) return { content: [], isError: false };
    const text = JSON.stringify(value) ?? String(value);
    const result = { content: [{ type: 'text', text }], isError: false };
    if (value && typeof value === 'object' && !Array.isArray(value)) result.structuredContent = value;
    return result;
  }

  const failure = (error) => ({
    content: [{ type: 'text', text: error && error.message ? error.message : String(error) }], isError: true,
  });

  class Rialto extends EventTarget {
    #tools = new Map();
    #running = new Map();
    #socket = null;
    #delay = FIRST_DELAY;
    #timer = null;
    #announced = null;
    #wanted = false;
    #paused = false;
    #next = 1;
    #waiting = new Map();
    #options = {};

    /** True while the connection to the bridge is open. */
    get connected() { return Boolean(this.#socket && this.#socket.readyState === 1); }

    get session() { return this.#options.session; }

    /** Connects, and again whenever the connection is lost. Options: url, session, token, consent. */
    connect(options = {}) {
      // The bridge would refuse another name, and browsers do not tell pages why a WebSocket was refused.
      if (options.session !== undefined && !/^[\w.:-]{1,128}$/.test(options.session)) {
        throw new TypeError('a session is named by 1 to 128 of letters, digits and . _ : -');
      }
      this.#options = { consent: showConsent, ...this.#options, ...options };
      this.#options.session ??= remembered('rialto.session');
      this.#options.page ??= pageName('rialto.page');
      this.#options.url ??= 'ws://127.0.0.1:8765';
      this.#wanted = true;
      this.#open();
      return this;
    }

    disconnect() {
      this.#wanted = false;
      clearTimeout(this.#timer);
      if (this.#socket) this.#socket.close(1000);
    }

    /** Offers a tool; returns a function that unregisters it. */
    registerTool(tool) {
      if (!tool || typeof tool.name !== 'string' || typeof tool.handler !== 'function') {
        throw new TypeError('a tool needs a name and a handler');
      }
      if (this.#tools.has(tool.name)) throw new Error(`there is a tool ${tool.name} already`);
      this.#tools.set(tool.name, tool);
      this.#announce();
      return () => this.unregisterTool(tool.name);
    }

    unregisterTool(name) {
      if (this.#tools.delete(name)) this.#announce();
    }

    tools() { return [...this.#tools.keys()]; }

    /** Revokes capabilities that the user has granted. */
    revoke(capabilities) { return this.#request('capabilities/revoke', { capabilities }); }

    /** Grants capabilities without being asked for them. type: once, session or persistent. */
    grant(capabilities, type = 'session') {
      return this.#request('capabilities/grant', { capabilities, type });
    }

    // --- the connection ---

    #open() {
      if (this.#socket || !this.#wanted || this.#paused) return;
      const o = this.#options;
      const base = o.url.replace(/^http/, 'ws').replace(/\/+$/, '');
      const query = new URLSearchParams({
        sessionId: o.session, clientType: 'browser', version: '1.0.0', clientId: o.page,
        client: 'rialto.js',
      });
      if (o.token) query.set('token', o.token);
      const socket = new WebSocket(`${base}/ws?${query}`);
      this.#socket = socket;
      socket.onopen = () => {
        this.#delay = FIRST_DELAY;
        this.#send({ jsonrpc: '2.0', id: `register-${this.#next++}`, method: 'tools/register',
          params: this.#offer() });
        this.dispatchEvent(new Event('connected'));
      };
      socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
      // Browsers send `error` and then `close`; Node sends only one of them for a socket that never opened.
      socket.onclose = socket.onerror = () => { if (this.#socket === socket) this.#closed(); };
    }

    #closed() {
      this.#socket = null;
      for (const abort of this.#running.values()) abort.abort();
      this.#running.clear();
      for (const { reject } of this.#waiting.values()) reject(new Error('the bridge left'));
      this.#waiting.clear();
      this.dispatchEvent(new Event('disconnected'));
      if (!this.#wanted || this.#paused) return;
      this.#timer = setTimeout(() => this.#open(), this.#delay);
      this.#delay = Math.min(this.#delay * 2, LAST_DELAY);
    }

    /** Closes the connection until resume(): the page was left, and may come back. */
    pause() {
      this.#paused = true;
      clearTimeout(this.#timer);
      if (this.#socket) this.#socket.close(1000);
    }

    resume() {
      this.#paused = false;
      this.hurry();
    }

    /** Connects now instead of at the end of the delay. */
    hurry() {
      if (!this.#wanted || this.#paused || this.#socket) return;
      clearTimeout(this.#timer);
      this.#open();
    }

    #send(message) {
      if (this.connected) this.#socket.send(JSON.stringify(message));
    }

    // A result may hold what JSON cannot express; then the caller gets an error.
    #reply(id, answer) {
      try {
        this.#send({ jsonrpc: '2.0', id, ...answer });
      } catch (error) {
        this.#send({ jsonrpc: '2.0', id, result: failure(error) });
      }
    }

    #request(method, params) {
      const id = `rialto-${this.#next++}`;
      return new Promise((resolve, reject) => {
        if (!this.connected) { reject(new Error('not connected')); return; }
        this.#waiting.set(id, { resolve, reject });
        this.#send({ jsonrpc: '2.0', id, method, params });
      });
    }

    #definitions() {
      return [...this.#tools.values()].map(({ handler, ...definition }) => ({
        inputSchema: { type: 'object', properties: {} }, ...definition,
      }));
    }

    // The tools, and the title and address of this page.
    #offer() {
      const page = typeof document === 'object' ? { title: document.title, url: location.href } : undefined;
      return { tools: this.#definitions(), ...(page ? { page } : {}) };
    }

    // Changes that are made together are sent once.
    #announce() {
      if (this.#announced) return;
      this.#announced = Promise.resolve().then(() => {
        this.#announced = null;
        this.#send({ jsonrpc: '2.0', id: `register-${this.#next++}`, method: 'tools/register',
          params: this.#offer() });
      });
    }

    // --- what the bridge says ---

    async #receive(message) {
      const { id, method, params } = message;
      if (!method) {
        const waiting = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (waiting && message.error) waiting.reject(new Error(message.error.message));
        else if (waiting) waiting.resolve(message.result);
        else if (message.error) console.error('rialto: the bridge refused:', message.error.message);
        return;
      }
      if (method === 'notifications/cancelled') {
        this.#running.get(params.requestId)?.abort();
      } else if (id !== undefined) {
        this.#reply(id, await this.#answer(id, method, params ?? {}));
      }
    }

    async #answer(id, method, params) {
      switch (method) {
        case 'tools/call': return this.#call(id, params);
        case 'tools/list': return { result: { tools: this.#definitions() } };
        case 'ping': return { result: { pong: true } };
        case 'capabilities/request': return this.#consent(id, params.capabilities ?? []);
        default: return { error: { code: -32601, message: `Method not found: ${method}` } };
      }
    }

    async #call(id, { name, arguments: args }) {
      const tool = this.#tools.get(name);
      if (!tool) return { error: { code: 'TOOL_NOT_FOUND', message: `Tool not found: ${name}` } };
      const abort = new AbortController();
      this.#running.set(id, abort);
      this.dispatchEvent(new CustomEvent('call', { detail: { name, arguments: args } }));
      try {
        return { result: toResult(await tool.handler(args ?? {}, { signal: abort.signal })) };
      } catch (error) {
        return { result: failure(error) };
      } finally {
        this.#running.delete(id);
      }
    }

    // The signal closes the dialog when the bridge cancels the question or the connection is lost.
    // What is no clear yes is a no, also when asking fails.
    async #consent(id, capabilities) {
      const abort = new AbortController();
      this.#running.set(id, abort);
      let decision;
      try {
        decision = await this.#options.consent(capabilities, { signal: abort.signal });
      } catch (error) {
        console.error('rialto: the user could not be asked:', error);
      }
      this.#running.delete(id);
      if (['once', 'session', 'persistent'].includes(decision)) {
        return { result: { granted: capabilities, denied: [], type: decision } };
      }
      return { result: { granted: [], denied: capabilities, type: 'session' } };
    }
  }

  // --- the dialog ---

  // Capabilities in words for people; the risky ones are highlighted.
  const MEANINGS = {
    'dom:read': 'read what this page shows',
    'dom:write': 'change this page',
    'dom:observe': 'watch this page change',
    'dom:shadow': 'look inside its components',
    'dom:interact': 'click and type in this page',
    'storage:local:read': 'read what this site has stored',
    'storage:local:write': 'change what this site has stored',
    'storage:session:read': 'read what this tab has stored',
    'storage:session:write': 'change what this tab has stored',
    'storage:indexed:read': 'read the databases of this site',
    'storage:indexed:write': 'change the databases of this site',
    'storage:cookie:read': 'read the cookies of this site',
    'storage:cookie:write': 'change the cookies of this site',
    'network:fetch:same-origin': 'fetch from this site',
    'network:fetch:cross-origin': 'fetch from any site',
    'network:websocket:same-origin': 'connect to this site',
    'network:websocket:cross-origin': 'connect to any site',
    'clipboard:read': 'read the clipboard',
    'clipboard:write': 'write to the clipboard',
    'media:camera': 'use the camera',
    'media:microphone': 'use the microphone',
    'media:screen': 'see the screen',
    'geolocation': 'learn where you are',
    'notifications': 'show notifications',
    'code:execute': 'run code in this page',
  };
  const RISKY = /\*$|^(storage:(indexed:write|cookie:.*)|network:.*:cross-origin|clipboard:read|geolocation|media:.*|code:execute)$/;

  // A constructed style sheet and elements, no inline styles and no HTML from strings: the dialog also
  // works in pages whose Content-Security-Policy forbids those.
  const STYLE = `
    dialog{--ink:#1c2430;--soft:#4a5566;--paper:#fff;--row:#f1f4f9;--line:#c5ccd8;--blue:#1d5fd1;
      box-sizing:border-box;width:min(29rem,calc(100vw - 32px));max-width:none;padding:24px;
      border:1px solid #8884;border-radius:14px;font:16px/1.45 system-ui,sans-serif;
      color:var(--ink);background:var(--paper);box-shadow:0 18px 60px #0005}
    @media (prefers-color-scheme:dark){dialog{--ink:#e8edf5;--soft:#9aa6b8;--paper:#1a2230;
      --row:#253045;--line:#3d4a60}}
    dialog::backdrop{background:#0b122066}
    h2{margin:0 0 6px;font-size:1.15rem}
    p{margin:0 0 12px;color:var(--soft);overflow-wrap:anywhere}
    ul{margin:0 0 18px;padding:0;list-style:none}
    li{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:0 12px;
      padding:8px 12px;margin:0 0 6px;background:var(--row);border-radius:8px}
    .risky{box-shadow:inset 4px 0 #d9822b}
    code{color:var(--soft);font-size:.85em;overflow-wrap:anywhere}
    .row{display:flex;flex-wrap:wrap;gap:8px}
    button{font:inherit;padding:8px 14px;border-radius:8px;border:1px solid var(--line);
      background:none;color:inherit;cursor:pointer}
    button:focus-visible{outline:3px solid #6ea8fe}
    .yes{background:var(--blue);border-color:var(--blue);color:#fff}
    .no{margin-left:auto}`;
  const QUESTION = 'Allow an agent to do more here?';
  const ANSWERS = [['session', 'Allow for now', 'yes'], ['once', 'Once', ''], ['persistent', 'Always', ''], ['deny', 'Deny', 'no']];

  const make = (tag, members, ...children) => {
    const element = Object.assign(document.createElement(tag), members);
    element.append(...children);
    return element;
  };

  // Asks the user; gives once, session, persistent or deny. Escape denies.
  function showConsent(capabilities, { signal }) {
    return new Promise((resolve) => {
      const host = document.createElement('div');
      const root = host.attachShadow({ mode: 'open' });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];
      const list = make('ul', {}, ...capabilities.map((name) => make('li', { className: RISKY.test(name) ? 'risky' : '' },
        MEANINGS[name] ?? (name.endsWith('*') ? 'use all of' : 'use'), make('code', { textContent: name }))));
      const row = make('div', { className: 'row' }, ...ANSWERS.map(([answer, label, className]) => {
        const button = make('button', { className, textContent: label, autofocus: answer === 'deny' });
        button.dataset.answer = answer;
        return button;
      }));
      const dialog = make('dialog', { ariaLabel: QUESTION }, make('h2', { textContent: QUESTION }),
        make('p', { textContent: `On ${location.host || 'this page'}, an agent asks to:` }), list, row);
      root.append(dialog);
      const end = (answer) => { host.remove(); resolve(answer); };
      row.addEventListener('click', (event) => {
        // A click that a script made is not the user's consent.
        if (event.isTrusted && event.target.dataset.answer) end(event.target.dataset.answer);
      });
      dialog.addEventListener('cancel', () => end('deny'));
      signal.addEventListener('abort', () => end('deny'));
      document.documentElement.append(host);
      dialog.showModal();
    });
  }

  const rialto = new Rialto();
  global.rialto = rialto;
  global.Rialto = Rialto;
  if (typeof document === 'object') {
    document.addEventListener('visibilitychange', () => { if (!document.hidden) rialto.hurry(); });
    // Browsers may keep a page that was left, and its socket, but the tools of such a page do not run.
    global.addEventListener('pagehide', () => rialto.pause());
    global.addEventListener('pageshow', () => rialto.resume());
  }
  if (own && own.src && own.dataset.manual === undefined) {
    rialto.connect({
      url: own.dataset.url ?? new URL(own.src).origin,
      ...(own.dataset.session ? { session: own.dataset.session } : {}),
      ...(own.dataset.token ? { token: own.dataset.token } : {}),
    });
  }
}(globalThis));
