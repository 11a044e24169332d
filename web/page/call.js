// A request that a person makes from the page, up to its result: progress, the server's questions, tasks.
import { on } from './events.js';
import { send } from './mcp.js';
import { answers } from './questions.js';

const ROUNDS = 30; // of questions

/**
 * Waits for the end of a task: asks when the daemon says that tasks have changed, and at the server's poll interval. A person
 * who cancels ends the task; one who has left the view (`stays`) does not.
 */
async function taskEnd(task, { server, signal, tell, stays }) {
  let wake = () => {};
  signal.addEventListener('abort', () => wake());
  const off = on('tasks', () => wake());
  const asked = new Set();
  const id = `"taskId":${JSON.stringify(task.taskId)}`;
  try {
    for (let state = task; ;) {
      tell({ task: state });
      if (!['working', 'input_required'].includes(state.status)) return state;
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, Math.min(Math.max(state.pollIntervalMs ?? 1000, 500), 5000)); });
      const { message, text } = await send('tasks/get', id, { server, signal, name: task.taskId, tasks: true, progress: false });
      if (message.error) return { ...state, status: 'failed', error: message.error, text };
      state = { ...message.result, text };
      const open = Object.fromEntries(Object.entries(state.inputRequests ?? {}).filter(([key]) => !asked.has(key)));
      if (!Object.keys(open).length) continue;
      Object.keys(open).forEach((key) => asked.add(key));
      const said = await answers(open, signal);
      if (said === null) await send('tasks/cancel', id, { server, name: task.taskId, tasks: true, progress: false });
      else await send('tasks/update', `${id},"inputResponses":${said}`, { server, signal, name: task.taskId, tasks: true, progress: false });
    }
  } catch (error) {
    if (error.name === 'AbortError' && stays()) {
      const { message } = await send('tasks/cancel', id, { server, name: task.taskId, tasks: true, progress: false });
      if (message.error) throw new Error(message.error.message);
    }
    throw error;
  } finally {
    off();
  }
}

/**
 * Sends `method` with `members` and answers the server's questions until there is a result. `tell` is called with {progress},
 * {log} and {task}; `stays` says whether its view is still open. Gives {message, text}, with `task` when the result is that of a task; null when the person cancelled.
 */
export async function request(method, members, { signal, tell, ...options }) {
  let retry = '';
  for (let round = 0; round < ROUNDS; round++) {
    const heard = (message) => {
      if (message.method === 'notifications/progress') tell({ progress: message.params });
      else if (message.method === 'notifications/message') tell({ log: message.params });
    };
    const { message, text } = await send(method, `${members}${retry}`, { ...options, signal, heard });
    const { result } = message;
    if (result?.resultType === 'task') {
      const state = await taskEnd(result, { ...options, signal, tell });
      return { message: state.result ? { result: state.result } : { error: state.error ?? { message: `the task was ${state.status}` } }, text: JSON.stringify(state), task: state };
    }
    if (result?.resultType !== 'input_required') return { message, text };
    const said = await answers(result.inputRequests, signal);
    if (said === null) return null;
    retry = `${result.requestState === undefined ? '' : `,"requestState":${JSON.stringify(result.requestState)}`},"inputResponses":${said}`;
  }
  throw new Error(`the server asked more than ${ROUNDS} times`);
}
