// Serves pages written for WebMCP: the tools of document.modelContext go to a Rialto bridge.
//
//   <script src="http://127.0.0.1:8765/webmcp.js" data-session="shop"></script>
//
// If the browser has WebMCP, the tools are listed and run through it; if it has the older
// navigator.modelContext, registrations are intercepted; if it has neither, this file provides it.
(function () {
  'use strict';

  const FIRST_DELAY = 500;
  const LAST_DELAY = 30000;
  const POLL = 2000; // ms; preview versions of browsers send no event when a tool is removed
  const own = document.currentScript;
  const base = (own?.dataset.url ?? (own?.src ? new URL(own.src).origin : 'http://127.0.0.1:8765'))
    .replace(/^http/, 'ws').replace(/\/+$/, '');
  const session = own?.dataset.session || remembered('rialto.session');
  const page = pageName('rialto.webmcp');
  const running = new Map();

  function remembered(key) {
    const fresh = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    try {
      const value = sessionStorage.getItem(key) ?? fresh;
      sessionStorage.setItem(key, value);
      return value;
    } catch {
      return fresh;
    }
  }

  // The tab's page keeps its name when it is reloaded; a copy of the tab is another page.
  function pageName(key) {
    const entry = performance.getEntriesByType('navigation')[0];
    try { if (entry?.type === 'navigate') sessionStorage.removeItem(key); } catch { /* storage is off */ }
    return remembered(key);
  }

  // The browser gives results as strings: an object as its JSON, null when the page navigated away.
  function unpacked(result) {
    if (result === null) throw new Error('The page navigated away');
    try {
      const value = JSON.parse(result);
      return value && typeof value === 'object' ? value : result;
    } catch {
      return result;
    }
  }

  // --- where tools come from: list() gives definitions, run(name, input, signal) calls one ---

  function consumer(context) {
    let known = [];
    return {
      async list() {
        known = await context.getTools();
        return known.map((t) => definition(t));
      },
      async run(name, input, signal) {
        const tool = known.find((t) => t.name === name);
        if (!tool) throw new Error(`Tool not found: ${name}`);
        try {
          return unpacked(await context.executeTool(tool, input, { signal }));
        } catch (error) {
          if (!/parse input/i.test(String(error))) throw error;
          return unpacked(await context.executeTool(tool, JSON.stringify(input), { signal }));
        }
      },
      watch(changed) {
        context.addEventListener?.('toolchange', changed);
        setInterval(changed, POLL);
      },
    };
  }

  function collector() {
    const tools = new Map();
    let changed = () => {};
    return {
      tools,
      add(tool, signal) {
        tools.set(tool.name, tool);
        signal?.addEventListener('abort', () => {
          if (tools.get(tool.name) === tool) tools.delete(tool.name);
          changed();
        });
        changed();
      },
      remove(name) { tools.delete(name); changed(); },
      replace(list) { tools.clear(); for (const t of list) tools.set(t.name, t); changed(); },
      list: async () => [...tools.values()].map((t) => definition(t)),
      async run(name, input, signal) {
        const tool = tools.get(name);
        if (!tool) throw new Error(`Tool not found: ${name}`);
        // The second argument has what both generations of the API pass: a signal, and the old client object.
        return tool.execute(input, { signal, requestUserInteraction: (ask) => ask() });
      },
      watch(fn) { changed = fn; },
    };
  }

  // The old API: registrations of the page are copied here, and still reach the browser.
  function listenTo(context) {
    const found = collector();
    const wrap = (name, hear) => {
      const before = context[name]?.bind(context);
      if (!before) return;
      context[name] = (...args) => { const r = before(...args); hear(...args); return r; };
    };
    wrap('registerTool', (tool, options) => found.add(tool, options?.signal));
    wrap('unregisterTool', (name) => found.remove(name));
    wrap('provideContext', (given) => found.replace(given?.tools ?? []));
    wrap('clearContext', () => found.replace([]));
    return found;
  }

  function polyfill() {
    const found = collector();
    const fail = (name, text) => Promise.reject(new DOMException(text, name));
    class ModelContext extends EventTarget {
      ontoolchange = null;

      registerTool(tool, { signal } = {}) {
        if (signal?.aborted) return Promise.reject(signal.reason);
        if (!tool || typeof tool.execute !== 'function') {
          return Promise.reject(new TypeError('a tool needs execute'));
        }
        if (!/^[A-Za-z0-9_.-]{1,128}$/.test(tool.name ?? '')) return fail('InvalidStateError', 'illegal name');
        if (!tool.description) return fail('InvalidStateError', 'a tool needs a description');
        if (found.tools.has(tool.name)) return fail('InvalidStateError', `there is a tool ${tool.name} already`);
        found.add(tool, signal);
        return Promise.resolve();
      }

      async getTools() {
        return [...found.tools.values()].map((t) => ({ name: t.name, title: t.title,
          description: t.description, inputSchema: t.inputSchema, annotations: t.annotations,
          window, origin: location.origin }));
      }

      async executeTool(tool, input = {}, { signal } = {}) {
        const value = await found.run(tool.name, input, signal);
        return typeof value === 'string' ? value : JSON.stringify(value);
      }

      unregisterTool(name) { found.remove(name); }

      provideContext({ tools = [] } = {}) { found.replace(tools); }

      clearContext() { found.replace([]); }
    }
    const context = new ModelContext();
    Object.defineProperty(document, 'modelContext', { value: context, configurable: true });
    Object.defineProperty(navigator, 'modelContext', { value: context, configurable: true });
    const watch = found.watch;
    found.watch = (fn) => watch(() => {
      fn();
      setTimeout(() => {
        const event = new Event('toolchange');
        context.dispatchEvent(event);
        context.ontoolchange?.(event);
      });
    });
    return found;
  }

  function definition({ name, title, description, inputSchema, annotations }) {
    const schema = typeof inputSchema === 'string' && inputSchema ? JSON.parse(inputSchema) : inputSchema;
    return { name, ...(title ? { title } : {}), description,
      inputSchema: schema ?? { type: 'object', properties: {} },
      ...(annotations ? { annotations: { ...annotations } } : {}) };
  }

  function source() {
    const now = document.modelContext;
    if (now?.getTools && now?.executeTool) return consumer(now);
    if (navigator.modelContext) return listenTo(navigator.modelContext);
    return polyfill();
  }

  // --- the bridge ---

  const tools = source();
  let socket = null;
  let delay = FIRST_DELAY;
  let sent = '';
  let next = 1;
  let due = false;
  let waiting;
  let left = false;

  const send = (message) => { if (socket?.readyState === 1) socket.send(JSON.stringify({ jsonrpc: '2.0', ...message })); };

  const failure = (error) => ({ content: [{ type: 'text', text: error?.message ?? String(error) }], isError: true });

  async function announce() {
    const list = await tools.list();
    const params = { tools: list, page: { title: document.title, url: location.href } };
    const text = JSON.stringify(params);
    if (text === sent || socket?.readyState !== 1) return;
    sent = text;
    send({ id: `register-${next++}`, method: 'tools/register', params });
  }

  function soon() {
    if (due) return;
    due = true;
    setTimeout(() => { due = false; announce(); }, 20);
  }

  function toResult(given) {
    if (Array.isArray(given?.content)) return given;
    if (typeof given === 'string') return { content: [{ type: 'text', text: given }], isError: false };
    const result = { content: [{ type: 'text', text: JSON.stringify(given ?? null) ?? String(given) }], isError: false };
    if (given && typeof given === 'object' && !Array.isArray(given)) result.structuredContent = given;
    return result;
  }

  async function call(id, { name, arguments: input = {} }) {
    const abort = new AbortController();
    running.set(id, abort);
    try {
      return { result: toResult(await tools.run(name, input, abort.signal)) };
    } catch (error) {
      return { result: failure(error) };
    } finally {
      running.delete(id);
    }
  }

  // A result may hold what JSON cannot express; then the caller gets an error.
  async function answer(id, params) {
    const given = await call(id, params);
    try {
      send({ id, ...given });
    } catch (error) {
      send({ id, result: failure(error) });
    }
  }

  async function receive({ id, method, params = {}, error }) {
    if (method === 'tools/call') await answer(id, params);
    else if (method === 'tools/list') send({ id, result: { tools: await tools.list() } });
    else if (method === 'ping') send({ id, result: { pong: true } });
    else if (method === 'notifications/cancelled') running.get(params.requestId)?.abort();
    else if (!method && error) console.error('rialto: the bridge refused:', error.message);
    else if (method && id !== undefined) send({ id, error: { code: -32601, message: `Method not found: ${method}` } });
  }

  function open() {
    const query = new URLSearchParams({ sessionId: session, clientType: 'browser', version: '1.0.0', clientId: page, client: 'webmcp.js' });
    if (own?.dataset.token) query.set('token', own.dataset.token);
    socket = new WebSocket(`${base}/ws?${query}`);
    socket.onopen = () => { delay = FIRST_DELAY; sent = ''; announce(); };
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    socket.onclose = () => {
      socket = null;
      for (const abort of running.values()) abort.abort();
      if (left) return;
      waiting = setTimeout(open, delay);
      delay = Math.min(delay * 2, LAST_DELAY);
    };
  }

  // The page is visible again: connect now.
  function hurry() {
    if (document.hidden || left || socket) return;
    clearTimeout(waiting);
    open();
  }
  document.addEventListener('visibilitychange', hurry);
  // Browsers may keep a page that was left, and its socket, but the tools of such a page do not run.
  addEventListener('pagehide', () => { left = true; clearTimeout(waiting); socket?.close(1000); });
  addEventListener('pageshow', () => { left = false; hurry(); });

  tools.watch(soon);
  open();
}());
