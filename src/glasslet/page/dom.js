// Elements, icons and foreign text. Text enters the document as text nodes only; no string ever becomes HTML.

const SVG_TAGS = new Set(['svg', 'use', 'path', 'rect', 'circle', 'line', 'g', 'text']);
const SVG = 'http://www.w3.org/2000/svg';

export const $ = (selector, at = document) => at.querySelector(selector);
export const $$ = (selector, at = document) => [...at.querySelectorAll(selector)];

/** h('td.num', {title: 'x', onclick: f, css: {width: '3px'}}, 'text', child, [more]); null and false are left out. */
export function h(tag, props, ...kids) {
  const [name, ...classes] = tag.split('.');
  const el = SVG_TAGS.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  if (classes.length) el.setAttribute('class', classes.join(' '));
  if (name === 'button') el.type = 'button';
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === false || value == null) continue;
    if (key === 'class') el.setAttribute('class', [...classes, value].join(' '));
    else if (key === 'css') for (const [p, v] of Object.entries(value)) el.style.setProperty(p, String(v));
    else if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else el.setAttribute(key, value === true ? '' : shown(String(value)));
  }
  el.append(...kids.flat(9).filter((kid) => kid != null && kid !== false));
  return el;
}

/** A symbol of the document. With a label it is an image for assistive technology, otherwise hidden from it. */
export const icon = (id, label) =>
  h('svg.icon', label ? { role: 'img', 'aria-label': label } : { 'aria-hidden': 'true' }, h('use', { href: `#i-${id}` }));

/* Control and bidirectional characters of foreign text are shown as codes, not obeyed. Tab and line break stay. */
const CODES = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff])/;
const code = (char) => (char === '\u001b' ? 'ESC' : `U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`);

/** Foreign text as children: its control characters become marked codes. */
export const foreign = (text) =>
  String(text ?? '').split(CODES).map((part, i) => (i % 2 ? h('span.esc', null, code(part)) : part));

/** Foreign text as one string, for attributes and for copying. */
export const shown = (text) => String(text ?? '').split(CODES).map((part, i) => (i % 2 ? code(part) : part)).join('');

/** namespace/name, the namespace dim. */
export const podName = (pod) => [h('span.ns', null, foreign(pod.namespace), '/'), foreign(pod.name)];

/** Changes an element's text only if it differs: what did not change keeps its node, its selection and its focus. */
export function setText(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

export function setAttr(el, name, value) {
  if (value == null || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
  } else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, shown(String(value)));
}

/** Brings `parent`'s children to `wanted`, in order, and moves only what is out of place: focus and scroll stay. */
export function arrange(parent, wanted) {
  let at = parent.firstChild;
  for (const el of wanted) {
    if (el === at) at = at.nextSibling;
    else parent.insertBefore(el, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Elements by key: made once, updated in place, dropped when their key is gone. */
export class Keyed {
  constructor(parent, { make, update }) {
    this.parent = parent;
    this.make = make;
    this.update = update;
    this.items = new Map();
  }

  /** `entries`: [key, value] in the wanted order. */
  show(entries) {
    const kept = new Map();
    for (const [key, value] of entries) {
      const el = this.items.get(key) ?? this.make(value, key);
      this.update?.(el, value, key);
      kept.set(key, el);
    }
    this.items = kept;
    arrange(this.parent, kept.values());
  }
}

/** One sentence for screen readers, at most one in three seconds: the last one wins. */
let sayTimer = 0;
let saidAt = 0;
export function say(text) {
  clearTimeout(sayTimer);
  const wait = Math.max(0, saidAt + 3000 - Date.now());
  sayTimer = setTimeout(() => {
    saidAt = Date.now();
    setText($('#say'), text);
  }, wait);
}

export const isPhone = () => matchMedia('(max-width: 720px)').matches;

const shownBefore = new WeakMap();

/** Whether a part of the page has to be filled again: false if `value` is what it was filled with last. */
export function isNew(part, value) {
  const text = JSON.stringify(value);
  if (shownBefore.get(part) === text) return false;
  shownBefore.set(part, text);
  return true;
}

/** A card with a heading; `hint`: beside it. */
export const card = (id, title, hint, ...body) => h('section.card', { id, 'aria-labelledby': `${id}-h` }, h('header', null, h('h2', { id: `${id}-h` }, title), hint), ...body);

/** A line that leads to a pod: its state, its name, why it is so, since when. */
export const line = (href, state, name, why, since) => h('li', null, h('a', { href, 'data-s': state },
  h('span.state', null, icon(state, state)), h('span.name', null, name), h('span.why', null, foreign(why)), h('span.since', null, since)));

/** A field that looks for words; `more` beside it. */
export const finder = (input, ...more) => h('label.find', null, icon('find'), input, ...more);

/** A card that says why there is nothing, and what would fill it. */
export const empty = (title, ...text) => h('div.empty', null, h('b', null, title), ...text);

/** Grey bones for what is on its way; shown only after 150 ms, so that quick answers do not flash. */
export const bones = (count) =>
  h('div.bones', { 'aria-hidden': 'true' }, Array.from({ length: count }, () => h('div.bone')));

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(shown(text));
    say('Copied');
  } catch {
    say('The browser does not allow copying here');
  }
}
