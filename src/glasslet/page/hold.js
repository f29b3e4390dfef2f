// A held pod: where, by which break, until when; step, continue, inspect. Held looks the same everywhere.

import { get, podPath, post, refusal } from './agent.js';
import { copy, empty, finder, foreign, h, icon, isNew, say, setAttr } from './dom.js';
import { openDialog } from './keys.js';
import { age, clock } from './words.js';

const DEPTH = 12;

export class HoldBar {
  /** `pod`: {context, namespace, name}. */
  constructor(pod) {
    this.pod = pod;
    this.hold = null;
    this.why = '';
    const button = (name, sign, key, act, main) => h('button.btn', { class: main ? 'main' : '', onclick: act }, icon(sign), name, h('kbd', null, key));
    this.words = h('span.t');
    this.passed = h('p.passed', { hidden: true });
    this.step = button('Step', 'step', '.', () => this.act('step'), true);
    this.continue = button('Continue', 'go', 'c', () => this.act('continue'));
    this.inspect = button('Inspect', 'inspect', 'i', () => inspect(pod));
    this.el = h('div.held', { hidden: true }, h('div.holdbar', { role: 'group', 'aria-label': 'Held pod' }, this.words, this.step, this.continue, this.inspect), this.passed);
  }

  show(hold) {
    if (!isNew(this, hold)) return;
    const first = hold && !this.hold;
    this.hold = hold;
    this.el.hidden = !hold && this.passed.hidden;
    this.el.firstChild.hidden = !hold;
    if (!hold) return;
    this.since = h('span');
    this.words.replaceChildren(`Held at ${hold.at}${hold.after ? ', after its work,' : ''} for `, this.since, h('small', null, hold.next ? ['  ·  next: ', foreign(hold.next)] : '', `  ·  lets go at ${clock(hold.until)}`));
    this.tick();
    if (first) refusal().then((why) => { this.why = why; this.enable(); });
  }

  tick() {
    if (this.hold) this.since.textContent = age(this.pod.context.now(), this.hold.since);
  }

  away(isAway) {
    this.isAway = isAway;
    this.enable();
  }

  enable(busy = false) {
    const why = this.isAway ? 'the agent does not answer' : this.why;
    for (const button of [this.step, this.continue]) {
      button.disabled = Boolean(why) || busy;
      setAttr(button, 'title', why || null);
    }
  }

  async act(verb) {
    if (!this.hold || this.step.disabled) return;
    this.enable(true);
    try {
      const answer = await post(podPath(this.pod, `/${verb}`));
      this.tellPassed(verb, answer);
    } catch (error) {
      this.passed.hidden = false;
      this.passed.replaceChildren(icon('failing'), ' ', foreign(error.message));
      say(error.message);
    }
    this.enable();
  }

  tellPassed(verb, answer) {
    const passed = (answer.passed ?? []).map((row) => row.text);
    const place = answer.hold ? `held at ${answer.hold.at}` : 'goes on by itself';
    this.passed.hidden = false;
    this.el.hidden = false;
    this.passed.replaceChildren(...foreign(verb === 'step' ? `${passed.length ? `${passed.join('; ')}: ` : ''}now ${place}` : 'It goes on.'));
    say(verb === 'step' ? `Step: now ${place}` : 'It goes on');
  }

  key(key) {
    if (key === 'i') inspect(this.pod);
    else if (!this.hold) say('This pod is not held');
    else this.act(key === '.' ? 'step' : 'continue');
    return true;
  }
}

/** All that the agent knows of the pod now: a tree that filters by path. Secrets are lengths. */
export async function inspect(pod) {
  const place = h('div.tree-of', null, h('div.bone'));
  const find = h('input', { type: 'text', placeholder: 'Filter by path: .plan.actions', 'aria-label': 'Filter by path' });
  openDialog('What the agent knows now', finder(find), place);
  try {
    const { tree } = await get(podPath(pod, '/inspect'));
    const show = () => place.replaceChildren(...leaves(tree, find.value.toLowerCase()));
    find.addEventListener('input', show);
    show();
  } catch (error) {
    place.replaceChildren(empty('Nothing to inspect', error.status === 404 ? 'This agent does not answer it for this pod.' : error.message));
  }
}

function leaves(tree, wanted) {
  const rows = [];
  const walk = (value, path) => {
    if (rows.length > 2000 || path.split('.').length > DEPTH) return;
    if (value !== null && typeof value === 'object' && Object.keys(value).length) {
      for (const [key, inner] of Object.entries(value)) walk(inner, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
    } else if (path.toLowerCase().includes(wanted)) rows.push([path, JSON.stringify(value)]);
  };
  walk(tree, '');
  if (!rows.length) return [empty('No path matches', 'An empty filter shows all.')];
  return [h('dl.paths', null, rows.map(([path, text]) => [h('dt', null, h('button', { title: 'Copy the path', onclick: () => copy(path) }, foreign(path))), h('dd.mono', null, foreign(text))]))];
}
