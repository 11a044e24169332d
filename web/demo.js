// The board of demo.html and the tools that it offers to agents.
'use strict';
const columns = [['todo', 'To do'], ['doing', 'In progress'], ['done', 'Done']];
const saved = JSON.parse(localStorage.getItem('board') ?? 'null');
const cards = saved ?? [
  { id: 1, title: 'Open this page', column: 'done' },
  { id: 2, title: 'Ask an agent to add a card', column: 'todo' },
];
let last = Math.max(0, ...cards.map((c) => c.id));
let fresh = 0;

const element = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);

function draw() {
  localStorage.setItem('board', JSON.stringify(cards));
  document.getElementById('board').replaceChildren(...columns.map(([key, label]) => {
    const section = element('section', '');
    section.dataset.column = key;
    const own = cards.filter((c) => c.column === key);
    const head = element('h2', label);
    head.append(element('span', String(own.length)));
    const list = element('ul', '');
    for (const card of own) {
      const item = element('li', '');
      item.dataset.card = card.id;
      if (card.id === fresh) item.className = 'fresh';
      const next = columns[(columns.findIndex(([k]) => k === key) + 1) % columns.length];
      item.append(element('small', `#${card.id}`), element('b', card.title),
        element('button', '→', { title: `Move to ${next[1]}`, onclick: () => move(card.id, next[0]) }));
      list.append(item);
    }
    section.append(head, list);
    return section;
  }));
}

function add(title, column = 'todo') {
  const card = { id: fresh = ++last, title, column };
  cards.push(card);
  draw();
  return card;
}

function move(id, column) {
  const card = cards.find((c) => c.id === id);
  if (!card) throw new Error(`there is no card #${id}`);
  card.column = column;
  fresh = id;
  draw();
  return card;
}

const column = { type: 'string', enum: columns.map(([key]) => key) };

rialto.registerTool({
  name: 'list_cards',
  description: 'Lists the cards on the board, all of them or those of one column.',
  inputSchema: { type: 'object', properties: { column } },
  annotations: { readOnlyHint: true },
  handler: ({ column: only }) => ({ cards: cards.filter((c) => !only || c.column === only) }),
});
rialto.registerTool({
  name: 'add_card',
  description: 'Adds a card to the board; it starts in the column todo unless another is given.',
  inputSchema: { type: 'object', required: ['title'],
    properties: { title: { type: 'string', description: 'What the card says' }, column } },
  handler: ({ title, column: where }) => add(String(title), where),
});
rialto.registerTool({
  name: 'move_card',
  description: 'Moves a card to another column. The user of the page is asked once whether agents may change cards.',
  inputSchema: { type: 'object', required: ['id', 'column'], properties: { id: { type: 'integer' }, column } },
  capabilities: ['dom:write'],
  handler: ({ id, column: where }) => move(Number(id), where),
});

function offerClear() {
  rialto.registerTool({
    name: 'clear_done',
    description: 'Removes the cards in the column done.',
    annotations: { destructiveHint: true },
    handler() {
      const before = cards.length;
      cards.splice(0, cards.length, ...cards.filter((c) => c.column !== 'done'));
      draw();
      return `${before - cards.length} removed`;
    },
  });
}
offerClear();
document.getElementById('clear').onchange = (event) => {
  if (event.target.checked) offerClear(); else rialto.unregisterTool('clear_done');
};
document.getElementById('add').onsubmit = (event) => {
  event.preventDefault();
  const field = document.getElementById('title');
  if (field.value.trim()) add(field.value.trim());
  field.value = '';
};

const state = document.getElementById('state');
rialto.addEventListener('connected', () => {
  state.className = 'state on';
  state.replaceChildren('connected, session ', element('code', rialto.session));
});
rialto.addEventListener('disconnected', () => {
  state.className = 'state';
  state.textContent = 'not connected; trying again';
});
rialto.addEventListener('call', ({ detail }) => {
  const log = document.getElementById('log');
  log.prepend(element('div', `${new Date().toLocaleTimeString()}  an agent called ${detail.name} ${JSON.stringify(detail.arguments)}`));
});
draw();
const query = new URLSearchParams(location.search);
rialto.connect({ url: location.origin, session: query.get('session') || 'demo',
  ...(query.has('token') ? { token: query.get('token') } : {}) });
