// The keyboard: single letters outside of inputs; first the focused part, then the view, then all.

import { $, h } from './dom.js';

const SWITCH = 'glasslet.letters';
let letters = localStorage.getItem(SWITCH) !== 'off';

/** `view()`: the view shown, whose `keys(event)` returns true if it took the event. `everywhere`: the same for all. */
export function listen({ view, everywhere }) {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if ($('#dialog').open) return;
    const typing = $('input:focus, select:focus, textarea:focus') !== null;
    const single = event.key.length === 1;
    if (typing && single) return;
    if (single && !letters) return;
    if (view()?.keys?.(event, typing) || everywhere(event, typing)) event.preventDefault();
  });
}

/** @type {[string, [string, string][]][]} */
const HELP = [
  ['Everywhere', [['1 2 3 4', 'Node, Pods, Stations, Calls'], ['/', 'filter or find'], ['!', 'next pod that is not as it should be'], ['?', 'this help'], ['Esc', 'clear, close, back'], ['y', 'copy what the command line says']]],
  ['Pods', [['j k', 'down, up'], ['↵', 'open'], ['f', 'only failing'], ['b c .', 'break…, continue, step'], ['r', 'sort again'], ['e', 'show ended pods']]],
  ['One pod', [['[ ]', 'pod before, pod after'], ['.', 'step'], ['c', 'continue'], ['i', 'inspect'], ['b', 'break…']]],
  ['Its way', [['w s', 'zoom in, out'], ['a d', 'left, right'], ['↑ ↓', 'station'], ['← →', 'call or wait in it'], ['↵', 'zoom to it'], ['0', 'all'], ['q', 'fold quiet time'], ['t', 'as a table']]],
  ['Calls', [['← →', 'fold, open'], ['*', 'open all below'], ['h', 'hot path'], ['n', 'next hit']]],
];
const LEGEND = [['runtime', 'runtime'], ['api', 'API server'], ['pod', 'pod itself'], ['waiting', 'waiting'], ['held', 'held'], ['away', 'no agent ran'], ['glasslet', 'glasslet'], ['unnamed', 'without a name']];

/** The dialog of keys and colours. */
export function showHelp() {
  const box = h('input', { type: 'checkbox', id: 'letters', onchange: (e) => { letters = e.target.checked; localStorage.setItem(SWITCH, letters ? 'on' : 'off'); } });
  box.checked = letters;
  openDialog('Keyboard', h('div.cols', null,
    HELP.map(([title, rows]) => h('section', null, h('h3', null, title), h('dl', null,
      rows.map(([keys, what]) => [h('dt', null, keys.split(' ').map((key) => [h('kbd', null, key), ' '])), h('dd', null, what)])))),
    h('section', null, h('h3', null, 'Who had the time'), h('ul.legend', null,
      LEGEND.map(([party, name]) => h('li', null, h('span.sw', { class: party }), ' ', name)))),
    h('section', null, h('label', null, box, ' single letters as keys'), h('p.dim', null, 'Times are UTC.'))));
}

/** Opens the one dialog with this title and content. Esc and a click beside it close it. */
export function openDialog(title, ...content) {
  const dialog = $('#dialog');
  dialog.replaceChildren(h('div.in', null,
    h('div.head', null, h('h2', { id: 'dialog-h' }, title),
      h('button.btn.small', { onclick: () => dialog.close() }, 'Close', h('kbd', null, 'Esc'))),
    ...content));
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  dialog.showModal();
}
