// A sample file of each host program, as after some time of use, written from the hosts' own documentation;
// and which servers `rialto import` and `rialto setup` must find in it.

/** {file (below the home folder), text, servers: {name: part of our entry}, stays: what must not be touched}. */
export const samples = {
  'claude-desktop': {
    file: '.config/Claude/claude_desktop_config.json',
    text: `{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/Desktop"]
    },
    "literal": {
      "command": "/bin/echo",
      "args": ["\${HOME}"],
      "env": {"GITHUB_TOKEN": "ghp_1234567890abcdef"}
    }
  }
}
`,
    servers: { filesystem: { args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me/Desktop'] }, literal: { args: ['$${HOME}'] } },
    stays: ['"globalShortcut": "Ctrl+Space"'],
  },
  'claude-code': {
    file: '.claude.json',
    text: `{
  "numStartups": 42,
  "tipsHistory": {"shift-enter": 12},
  "mcpServers": {
    "sentry": {"type": "http", "url": "https://mcp.sentry.dev/mcp", "headers": {"X-Org": "\${SENTRY_ORG:-me}"}, "timeout": 45000}
  },
  "projects": {
    "/home/me/shop": {
      "allowedTools": [],
      "mcpServers": {
        "db": {"type": "stdio", "command": "/bin/echo", "args": ["--shop"], "env": {}},
        "sentry": {"type": "stdio", "command": "/bin/echo", "args": ["other"]}
      },
      "hasTrustDialogAccepted": true
    },
    "/home/me/blog": {"allowedTools": [], "mcpServers": {}}
  },
  "userID": "0f0f"
}`,
    servers: {
      sentry: { url: 'https://mcp.sentry.dev/mcp', timeout: '45000ms' },
      db: { command: '/bin/echo', scope: 'project' },
      'sentry-shop': { args: ['other'], scope: 'project' },
    },
    stays: ['"numStartups": 42', '"hasTrustDialogAccepted": true', '"userID": "0f0f"', '"/home/me/blog": {"allowedTools": [], "mcpServers": {}}'],
  },
  cursor: {
    file: '.cursor/mcp.json',
    text: '{\n\t// my servers\n\t"mcpServers": {\n\t\t"linear": {"url": "https://mcp.linear.app/sse"}, // issues\n\t\t"local": {"command": "/bin/echo", "args": ["${env:USER}"], "envFile": "${workspaceFolder}/.env"},\n\t}\n}\n',
    servers: { linear: { url: 'https://mcp.linear.app/sse' }, local: { args: ['${env:USER}'], env_file: '${PROJECT}/.env', scope: 'project' } },
    stays: ['// my servers'],
  },
  vscode: {
    file: '.config/Code/User/mcp.json',
    text: `{
	"inputs": [
		{"type": "promptString", "id": "perplexity-key", "description": "Perplexity API Key", "password": true}
	],
	"servers": {
		// the one for search
		"perplexity": {
			"type": "stdio",
			"command": "/bin/echo",
			"args": ["-y", "server-perplexity-ask"],
			"env": {"PERPLEXITY_API_KEY": "\${input:perplexity-key}", "EMPTY": null, "PORT": 8080}
		},
		"github": {"type": "http", "url": "https://api.githubcopilot.com/mcp/"}
	}
}
`,
    servers: { perplexity: { env: { PERPLEXITY_API_KEY: '${PERPLEXITY_KEY}', PORT: 8080 } }, github: { url: 'https://api.githubcopilot.com/mcp/' } },
    stays: ['"id": "perplexity-key"', '// the one for search'],
  },
  windsurf: {
    file: '.codeium/windsurf/mcp_config.json',
    text: '{\n  "mcpServers": {\n    "figma": {"serverUrl": "https://mcp.figma.com/mcp", "headers": {"X-Token": "${env:FIGMA}"}, "disabledTools": ["whoami"]},\n    "off": {"command": "/bin/echo", "args": [], "disabled": true}\n  }\n}\n',
    servers: { figma: { url: 'https://mcp.figma.com/mcp', deny: ['whoami'] }, off: { enabled: false } },
    stays: [],
  },
  zed: {
    file: '.config/zed/settings.json',
    text: `// Zed settings
//
// For information on how to configure Zed, see the documentation
{
  "theme": "One Dark", // dark
  "vim_mode": true,
  "context_servers": {
    "mcp-server-github": {
      "settings": {"github_personal_access_token": "x"}
    },
    "old": {
      "source": "custom",
      "command": {"path": "/bin/echo", "args": ["a b"], "env": {"A": "$B \${C}"}}
    },
    "new": {"command": "/bin/echo", "args": ["new"], "env": {}, "timeout": 20, "enabled": false},
  },
}
`,
    servers: { old: { command: '/bin/echo', args: ['a b'], env: { A: '$B $${C}' } }, new: { args: ['new'], timeout: '20s', enabled: false } },
    stays: ['// Zed settings', '"theme": "One Dark", // dark', '"mcp-server-github": {', '"github_personal_access_token": "x"'],
  },
  codex: {
    file: '.codex/config.toml',
    text: `model = "gpt-5-codex"   # the good one
approval_policy = 'on-request'
notify = [
  "notify-send", # with [brackets]
]

[mcp_servers.docs] # documents
url = "https://developers.example.com/mcp"
bearer_token_env_var = "DOCS_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Team" = "TEAM" }

[mcp_servers.play]
command = "/bin/echo"
args = [
  "-y",
  '@playwright/mcp@latest', # newest
]
env_vars = ["DISPLAY", { name = "HOME", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 120
enabled_tools = ["browser_*"]

[mcp_servers.play.env]
NOTE = """
[mcp_servers.not]
"""

# where I work
[projects."/home/me/shop"]
trust_level = "trusted"
`,
    servers: {
      docs: { url: 'https://developers.example.com/mcp', headers: { 'X-Region': 'eu', 'X-Team': '${env:TEAM}', Authorization: 'Bearer ${env:DOCS_TOKEN}' } },
      play: { args: ['-y', '@playwright/mcp@latest'], timeout: '120s', start_timeout: '20s', allow: ['browser_*'], env: { NOTE: '[mcp_servers.not]\n', DISPLAY: '${env:DISPLAY}', HOME: '${env:HOME}' } },
    },
    stays: ['model = "gpt-5-codex"   # the good one', '  "notify-send", # with [brackets]', '# where I work\n[projects."/home/me/shop"]\ntrust_level = "trusted"\n'],
  },
  gemini: {
    file: '.gemini/settings.json',
    text: '{\n  "theme": "GitHub", // mine\n  "selectedAuthType": "oauth-personal",\n  "mcpServers": {\n    "tools": {"command": "/bin/echo", "args": ["$USER", "cost: 5$"], "env": {"API_KEY": "$MY_KEY", "URL": "${BASE:-http://x}"}, "timeout": 15000, "trust": true, "includeTools": ["read"]}\n  }\n}\n',
    servers: { tools: { args: ['${USER}', 'cost: 5$'], env: { API_KEY: '${MY_KEY}', URL: '${BASE:-http://x}' }, timeout: '15000ms', allow: ['read'] } },
    stays: ['"theme": "GitHub", // mine', '"selectedAuthType": "oauth-personal"'],
  },
  opencode: {
    file: '.config/opencode/opencode.json',
    text: '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "weather": {"type": "local", "command": ["/bin/echo", "weather", "-v"], "environment": {"KEY": "{env:WEATHER_KEY}"}, "enabled": true, "timeout": 9000},\n    "jira": {"type": "remote", "url": "https://jira.example.com/mcp", "headers": {"Authorization": "Bearer {env:JIRA}"}, "enabled": false}\n  },\n  "model": "anthropic/claude"\n}\n',
    servers: { weather: { command: '/bin/echo', args: ['weather', '-v'], env: { KEY: '${WEATHER_KEY}' }, timeout: '9000ms' }, jira: { headers: { Authorization: 'Bearer ${JIRA}' }, enabled: false } },
    stays: ['"$schema": "https://opencode.ai/config.json"', '"model": "anthropic/claude"'],
  },
  goose: {
    file: '.config/goose/config.yaml',
    text: `GOOSE_PROVIDER: anthropic  # paid
GOOSE_MODEL: claude
extensions:
  developer:
    bundled: true
    display_name: Developer
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  # for the browser
  fetch:
    name: fetch
    cmd: /bin/echo
    args:
    - mcp-server-fetch
    envs:
      LOG: debug
    env_keys:
    - FETCH_KEY
    enabled: true
    timeout: 200
    type: stdio
  far:
    name: far
    type: streamable_http
    uri: https://$FAR_HOST/mcp
    headers:
      Authorization: Bearer \${FAR}
    enabled: false
    timeout: 60
# the end
GOOSE_MODE: auto
`,
    servers: {
      fetch: { command: '/bin/echo', args: ['mcp-server-fetch'], env: { LOG: 'debug', FETCH_KEY: '${env:FETCH_KEY}' }, timeout: '200s' },
      far: { url: 'https://${FAR_HOST}/mcp', headers: { Authorization: 'Bearer ${FAR}' }, enabled: false, timeout: '60s' },
    },
    stays: ['GOOSE_PROVIDER: anthropic  # paid', '  developer:\n    bundled: true\n', '# the end\nGOOSE_MODE: auto\n'],
  },
  continue: {
    file: '.continue/config.yaml',
    text: 'name: Local Assistant\nversion: 1.0.0\nschema: v1\nmodels: # none\n  - name: x\n    provider: ollama\nmcpServers:\n  - name: SQLite MCP\n    command: /bin/echo\n    args:\n      - mcp-server-sqlite\n    env:\n      KEY: ${{ secrets.SQL_KEY }}\n    connectionTimeout: 5000\n  # far away\n  - name: far\n    type: streamable-http\n    url: https://far.example.com/mcp\n    apiKey: ${{ secrets.FAR }}\n    requestOptions:\n      headers: {X-A: b}\ncontext:\n  - provider: code\n',
    servers: {
      'SQLite-MCP': { command: '/bin/echo', env: { KEY: '${SQL_KEY}' }, start_timeout: '5000ms' },
      far: { url: 'https://far.example.com/mcp', headers: { 'X-A': 'b', Authorization: 'Bearer ${FAR}' } },
    },
    stays: ['models: # none\n  - name: x\n', 'context:\n  - provider: code\n'],
  },
  copilot: {
    file: '.copilot/mcp-config.json',
    text: '{\n  "mcpServers": {\n    "azure": {"type": "local", "command": "/bin/echo", "args": ["azure"], "tools": ["*"], "timeout": 30000},\n    "some": {"type": "http", "url": "https://some.example.com/mcp", "headers": {}, "tools": ["a", "b"]}\n  }\n}\n',
    servers: { azure: { args: ['azure'], timeout: '30000ms' }, some: { allow: ['a', 'b'] } },
    stays: [],
  },
  cline: {
    file: '.cline/data/settings/cline_mcp_settings.json',
    text: '{\n  "mcpServers": {\n    "git": {"command": "/bin/echo", "args": ["git"], "disabled": false, "autoApprove": ["log"], "timeout": 60},\n    "nested": {"transport": {"type": "streamableHttp", "url": "https://n.example.com/mcp"}, "disabled": true}\n  }\n}\n',
    servers: { git: { args: ['git'], timeout: '60s' }, nested: { url: 'https://n.example.com/mcp', enabled: false } },
    stays: [],
  },
  lmstudio: {
    file: '.lmstudio/mcp.json',
    text: '{\n  "mcpServers": {\n    "hf": {\n      "url": "https://huggingface.co/mcp",\n      "headers": {\n        "Authorization": "Bearer hf_abcdefgh"\n      }\n    }\n  }\n}',
    servers: { hf: { url: 'https://huggingface.co/mcp', headers: { Authorization: 'Bearer hf_abcdefgh' } } },
    stays: [],
  },
  jetbrains: {
    file: '.junie/mcp/mcp.json',
    text: '{\n    "mcpServers": {\n        "junie": {\n            "command": "/bin/echo",\n            "args": [\n                "junie"\n            ]\n        }\n    }\n}\n',
    servers: { junie: { args: ['junie'] } },
    stays: [],
  },
};
