// The state of the configuration file in the daemon: an alert in every view while the file is rejected.
import { get, Trouble } from './api.js';
import { $, list, make, put } from './dom.js';
import { on } from './events.js';

/** `path` is the file's whole path, for programs that are started in another folder. */
export const configuration = { file: null, path: null, writable: false, state: 'ok', errors: [], listen: [], tokens: false };

async function look() {
  try {
    Object.assign(configuration, await get('/api/config'));
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    return;
  }
  const bad = configuration.state === 'rejected';
  $('rejected').hidden = !bad;
  put($('rejected-title'), `The configuration was rejected; the daemon goes on with the last good one.`);
  list($('rejected-list'), bad ? configuration.errors : [], (e) => JSON.stringify(e), (e) => ({
    nodes: [make('li', {}, make('code', {}, [e.file ?? configuration.file, e.line, e.column].filter((x) => x !== undefined && x !== null).join(':')), ` ${e.reason}`)],
  }));
}

export function start() {
  on('hello', look);
  on('config', look);
}
