// The page at the daemon's address: the frame around every view, and what happens when the daemon stops and comes back.
// Nothing is polled: the daemon sends events (events.js), and views then ask for what they show.
import * as approvals from './approvals.js';
import { ask, token } from './api.js';
import * as configuration from './configuration.js';
import { $, put } from './dom.js';
import { connect, on, stream } from './events.js';
import { say } from './notice.js';
import * as router from './router.js';
import { showCalls, showCall } from './calls.js';
import { showLog } from './log.js';
import { showNumbers } from './numbers.js';
import { showPages } from './pages.js';
import { showServer } from './server.js';
import { showServers } from './servers.js';
import { showSessions } from './sessions.js';
import { showStart } from './start.js';
import { span } from './text.js';
import { showTool } from './tool.js';
import { showTools } from './tools.js';

const views = [
  ['start', 'Start', showStart], ['tools', 'Tools', showTools, showTool], ['calls', 'Calls', showCalls, showCall],
  ['sessions', 'Sessions', showSessions], ['pages', 'Web pages', showPages], ['numbers', 'Numbers', showNumbers],
  ['servers', 'Servers', showServers, showServer], ['log', 'Log', showLog],
];

// --- health ---

const words = { ok: 'All is well', degraded: 'Degraded', down: 'Down' };
let states = ''; // of all servers, to know when to ask again

async function showHealth() {
  const { value: status } = await ask('/status');
  const missing = status.reasons.map((r) => `${r.server} ${r.state.replace('needs_sign_in', 'needs sign-in')}`);
  $('health').dataset.state = status.status;
  put($('health'), [words[status.status] ?? status.status, missing.slice(0, 3).join(', ') + (missing.length > 3 ? ' …' : '')].filter(Boolean).join(': '));
  put($('version'), status.version);
}

/** The health changes with the states of servers, not with their numbers. */
function serversChanged(rows) {
  const now = rows.map((row) => `${row.name} ${row.gone ?? row.state}`).join();
  if (now === states) return;
  states = now;
  showHealth().catch(() => {});
}

// --- connected or not ---

let started = false;

function greeted({ now, before }) {
  if (before && before.version !== now.version) location.reload(); // the daemon was updated, and this page with it
  for (const id of ['lost', 'token']) $(id).hidden = true;
  document.body.classList.remove('lost');
  $('main').hidden = false;
  $('forget').hidden = token.get() === null;
  put($('who'), now.role === 'viewer' ? `${now.name ?? 'viewer'} (read-only)` : now.name ?? '');
  showHealth().catch(() => {});
  if (!started) router.start(views);
  else if (before && before.role !== now.role) router.show({ focus: false });
  started = true;
}

function lost({ error, pause }) {
  const refused = error.status === 401 || error.status === 403;
  document.body.classList.add('lost');
  $('health').dataset.state = 'lost';
  put($('health'), refused ? 'Not allowed' : 'No answer');
  if (refused && (error.status === 401 || token.get() !== null)) {
    $('main').hidden = true;
    $('lost').hidden = true;
    $('token').hidden = false;
    put($('token-why'), token.get() === null ? 'This Rialto asks for a token.' : `This token does not do: ${error.message.split('\n')[0]}.`);
    if (!$('token').contains(document.activeElement)) $('token-text').focus();
    return;
  }
  $('lost').hidden = false;
  put($('lost-why'), refused ? error.message : `${error.status ? error.message : 'The daemon does not answer; what stands below is how it was'}. Next try in ${span(Math.max(1, pause / 1000))}.`);
}

// --- buttons of the frame ---

const themes = ['system', 'light', 'dark'];
function showTheme() {
  put($('theme'), `Theme: ${document.documentElement.dataset.theme}`);
}
$('theme').onclick = () => {
  const { dataset } = document.documentElement;
  dataset.theme = themes[(themes.indexOf(dataset.theme) + 1) % themes.length];
  if (dataset.theme === 'system') localStorage.removeItem('theme');
  else localStorage.setItem('theme', dataset.theme);
  showTheme();
};
$('retry').onclick = connect;
$('notice-close').onclick = () => say('');
$('token').onsubmit = (event) => {
  event.preventDefault();
  token.set($('token-text').value.trim());
  $('token-text').value = '';
  connect();
};
$('forget').onclick = () => {
  token.forget();
  location.reload();
};

showTheme();
on('hello', greeted);
on('lost', lost);
on('servers', serversChanged);
on('config', () => stream.connected && showHealth().catch(() => {}));
approvals.start();
configuration.start();
connect();
