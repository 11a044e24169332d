// What to give to each host program so that it uses this Rialto: the exact line, or the part of its file.
import { token } from './api.js';
import { configuration } from './configuration.js';

const json = (value) => JSON.stringify(value, null, 2);
const program = () => configuration.program ?? 'rialto';
const guarded = () => token.get() !== null || configuration.tokens;
const stdio = () => ['stdio', ...(configuration.path ? ['-c', configuration.path] : [])];
const quoted = (text) => (/^[-A-Za-z0-9_./:]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
/** An entry with our address and, if needed, the header for a token; `bearer` is the host's reference to it. */
const remote = (more, bearer) => ({ ...more, url: `${location.origin}/mcp`, ...(guarded() && { headers: { Authorization: `Bearer ${bearer}` } }) });

export const hosts = [
  { name: 'Claude Code', where: 'in a terminal', text: () => `claude mcp add --transport http --scope user rialto ${location.origin}/mcp${guarded() ? ' --header "Authorization: Bearer $RIALTO_TOKEN"' : ''}`,
    does: 'puts Rialto into ~/.claude.json in place of the servers there, which move here' },
  { name: 'Claude Desktop', where: '~/.config/Claude/claude_desktop_config.json', text: () => json({ mcpServers: { rialto: { command: program(), args: stdio() } } }),
    does: 'writes this entry into claude_desktop_config.json' },
  { name: 'Cursor', where: '~/.cursor/mcp.json', text: () => json({ mcpServers: { rialto: remote({}, '${env:RIALTO_TOKEN}') } }), does: 'writes an entry into ~/.cursor/mcp.json' },
  { name: 'VS Code', where: '~/.config/Code/User/mcp.json', text: () => json({ servers: { rialto: remote({ type: 'http' }, '${env:RIALTO_TOKEN}') } }), does: 'writes an entry into mcp.json, under servers' },
  { name: 'Codex', where: '~/.codex/config.toml', text: () => `[mcp_servers.rialto]\nurl = ${JSON.stringify(`${location.origin}/mcp`)}\n${guarded() ? 'bearer_token_env_var = "RIALTO_TOKEN"\n' : ''}`, does: 'writes a table into config.toml' },
  { name: 'Zed', where: '~/.config/zed/settings.json', text: () => json({ context_servers: { rialto: guarded() ? remote({}, '$RIALTO_TOKEN') : remote({}) } }), does: 'writes an entry into settings.json, under context_servers' },
  { name: 'stdio', where: 'any host that starts its servers itself', text: () => [program(), ...stdio()].map(quoted).join(' '), does: 'is what it writes for every host' },
];
