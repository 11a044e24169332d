// The view Start: what this is, tools to try at once, how to add a server, and what to give to each host program.
import { configuration } from './configuration.js';
import { choices, copyButton, labelled, make, nothing, put, section, select } from './dom.js';
import { hosts } from './hosts.js';
import { addressOf } from './tools.js';
import { link } from './router.js';
import { plural, short } from './text.js';

function hostPart(host) {
  const code = make('code', {}, host.text());
  return make('li', { data: { host: host.name } }, make('div', { className: 'host-head' }, make('strong', {}, host.name), make('span', { className: 'soft' }, host.where), copyButton(() => host.text(), `for ${host.name}`)), make('pre', { tabIndex: 0, attributes: { role: 'region' }, aria: { label: `For ${host.name}` } }, code));
}

/** Where agents of other kinds connect, for all servers or for one. */
function addresses(scope) {
  const server = select([['', 'all']], '');
  const lines = make('ul', { className: 'plain-list', id: 'addresses' });
  const show = () => {
    const url = `${location.origin}/mcp${server.value && `/${encodeURIComponent(server.value)}`}`;
    lines.replaceChildren(...[['Streamable HTTP', url], ['SSE, for older clients', `${url}/sse`], ['WebSocket', url.replace(/^http/, 'ws')]].map(([label, text]) => make('li', {}, make('div', { className: 'host-head' }, make('strong', {}, label), copyButton(() => text, label)), make('code', {}, text))));
  };
  server.onchange = show;
  show();
  scope.keep('/api/servers', ['config'], (all) => choices(server, all.map((s) => s.name)));
  return section('Addresses', make('div', { className: 'padded' }, labelled('Server', server)), lines);
}

export function showStart(box, scope) {
  const tools = make('ul', { className: 'offers' });
  const hostList = make('ul', { className: 'hosts' });
  const where = make('p', {});
  const hint = make('p', { className: 'padded soft' });
  const showHosts = () => {
    hostList.replaceChildren(...hosts.map(hostPart));
    put(hint, configuration.tokens ? 'Each agent needs a token of its own: rialto token add NAME' : 'Each button copies exactly what that program needs.');
    where.replaceChildren(...(configuration.file ? ['The configuration is ', make('code', {}, configuration.file), '. '] : ['It runs without a configuration, with a small demo server. ']), 'Agents connect to ', make('code', {}, `${location.origin}/mcp`), '.');
  };
  showHosts();
  scope.keep('/api/config', ['config'], (now) => {
    Object.assign(configuration, now);
    showHosts();
  });
  const sum = make('p', { className: 'soft' });
  scope.keep('/api/tools?brief=1&kind=tool&limit=6', ['tools'], ({ items, total }) => {
    tools.replaceChildren(...items.map((item) => make('li', { className: 'offer' }, make('div', { className: 'offer-head' }, make('a', { className: 'name', href: addressOf(item) }, short(item.name, 100))), item.description && make('p', { className: 'soft' }, short(item.description, 140)))));
    sum.replaceChildren(...(total > items.length ? [link(`All ${plural(total, 'tool')}`, 'tools')] : []));
    if (!items.length) tools.replaceChildren(make('li', {}, nothing('No server offers a tool yet.')));
  });
  box.append(make('div', { className: 'two even' },
    make('div', { className: 'column' },
      make('div', { className: 'card padded' }, make('p', { className: 'lead' }, 'Rialto joins agents with the tools of many MCP servers.'),
        make('p', {}, 'One address has them all, whatever each side speaks; this page shows every call on its way and lets you try every tool.'), where),
      section('Try a tool', tools, make('div', { className: 'padded' }, sum)),
      section('Add a server', make('div', { className: 'padded' }, make('p', {}, 'In the view ', link('Servers', 'servers'), ', or in a terminal:'), make('pre', { tabIndex: 0 }, 'rialto add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents\nrialto add docs https://example.com/mcp'))),
      addresses(scope)),
    make('div', { className: 'column' },
      section('Connect a host', hint, hostList),
      section('What rialto setup would do', make('div', { className: 'padded' }, make('p', {}, make('code', {}, 'rialto setup'), ' finds the host programs of this user, moves their MCP servers into Rialto’s configuration and puts Rialto in their place, so that each has the servers of all. ', make('code', {}, 'rialto setup --dry-run'), ' shows it first, ', make('code', {}, '--undo'), ' puts everything back.')),
        make('ul', { className: 'plain-list' }, ...hosts.map((h) => make('li', {}, make('strong', {}, h.name), `: ${h.does}`)))))));
}
