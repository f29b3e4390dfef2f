// The log of one container: follows, stops when scrolled up, finds; at most 5,000 lines in the page.

import { reason } from './agent.js';
import { empty, foreign, h, icon, isNew, setText } from './dom.js';

const MOST = 5000;
const TAIL = 300;
const ERRORS = /\b(error|fatal|panic|critical)\b/i;
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) (.*)$/s;

export class Logs {
  constructor(page) {
    this.page = page;
    this.abort = null;
    this.lines = [];
    this.below = 0;
    this.which = h('select', { 'aria-label': 'Container', onchange: () => this.read() });
    this.run = h('select', { 'aria-label': 'Run', onchange: () => this.read() }, h('option', { value: '' }, 'this run'), h('option', { value: '1' }, 'run before'));
    this.find = h('input', { type: 'text', placeholder: 'Find', 'aria-label': 'Find in the log', oninput: () => this.filter() });
    this.follow = h('button.btn.small', { 'aria-pressed': 'true', onclick: () => this.toBottom() }, 'follow');
    this.list = h('ol.log', { tabindex: '0', 'aria-label': 'Log', onscroll: () => this.scrolled() });
    this.state = h('div');
    this.el = h('section.card', { id: 'logs', 'aria-labelledby': 'logs-h' }, h('header', null, h('h2', { id: 'logs-h' }, 'Logs'), h('span.hint', null, this.which, ' ', this.run), h('label.find.small', null, icon('find'), this.find), this.follow), this.list, this.state);
    this.list.hidden = true;
    this.state.append(empty('No log yet', 'No container of this pod has started.'));
  }

  /** The containers to choose from; reads the first that has run. */
  offer(containers) {
    const started = containers.filter((one) => one.id);
    if (!isNew(this.which, started.map((one) => [one.name, one.id]))) return;
    const chosen = this.which.value;
    this.which.replaceChildren(...started.map((one) => h('option', { value: one.name }, one.name)));
    const best = started.find((one) => one.name === chosen) ?? started.find((one) => one.kind === 'main') ?? started[0];
    if (!best) return;
    this.which.value = best.name;
    this.read();
  }

  address() {
    const place = [this.page.namespace, this.page.name, this.which.value].map(encodeURIComponent);
    const before = this.run.value;
    if (this.page.context.value('page')?.logs === 'kubelet')
      return `../containerLogs/${place.join('/')}?timestamps=true&tailLines=${TAIL}${before ? '&previous=true' : '&follow=true'}`;
    return `v1/pods/${place[0]}/${place[1]}/logs?container=${place[2]}&timestamps=true&tail=${TAIL}${before ? '&previous=true' : '&follow=true'}`;
  }

  async read() {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    this.lines = [];
    this.list.replaceChildren();
    try {
      const response = await fetch(this.address(), { signal: abort.signal, cache: 'no-store' });
      if (!response.ok) throw new Error(reason(response.status, await response.text()));
      this.state.replaceChildren();
      this.list.hidden = false;
      await this.take(response.body.getReader());
      if (!this.lines.length) this.fail('The log is empty', 'The container wrote nothing.');
    } catch (error) {
      if (!abort.signal.aborted) this.fail('No log', error.message, true);
    }
  }

  fail(title, text, again = false) {
    this.list.hidden = true;
    this.state.replaceChildren(empty(title, ...foreign(text), again ? h('p', null, h('button.btn.small', { onclick: () => this.read() }, 'try again')) : ''));
  }

  async take(reader) {
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop();
      this.add(lines);
    }
    if (rest) this.add([rest]);
  }

  add(lines) {
    if (!lines.length) return;
    const bottom = this.atBottom();
    const rows = lines.map((line) => {
      const [, stamp, text] = STAMP.exec(line) ?? [null, '', line];
      return h('li', { class: ERRORS.test(text) ? 'err' : '' }, h('time', null, stamp.slice(11, 23)), h('span.t', null, foreign(text)));
    });
    this.lines.push(...rows);
    for (const old of this.lines.splice(0, Math.max(0, this.lines.length - MOST))) old.remove();
    for (const row of rows) row.hidden = !this.fits(row);
    this.list.append(...rows);
    if (bottom) this.toBottom();
    else this.below += rows.length;
    this.scrolled();
  }

  fits(row) {
    return row.textContent.toLowerCase().includes(this.find.value.toLowerCase());
  }

  filter() {
    for (const row of this.lines) row.hidden = !this.fits(row);
  }

  atBottom() {
    return this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 8;
  }

  toBottom() {
    this.list.scrollTop = this.list.scrollHeight;
  }

  scrolled() {
    if (this.atBottom()) this.below = 0;
    this.follow.setAttribute('aria-pressed', String(this.atBottom()));
    setText(this.follow, this.below ? `${this.below} new lines ↓` : 'follow');
  }

  close() {
    this.abort?.abort();
  }
}
