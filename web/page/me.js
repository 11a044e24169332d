// Who looks at the page: an operator, who may change things, or a viewer, who may not.
import { stream } from './events.js';
import { button } from './dom.js';

export const mayChange = () => stream.hello?.role !== 'viewer';

/** A button that changes something: disabled for a viewer. */
export function action(text, onclick, properties = {}) {
  const allowed = mayChange();
  return button(text, onclick, { ...properties, ...(!allowed && { disabled: true, title: 'This token may look, but change nothing' }) });
}
