// Calls: what did the code do? Functions for one pod, or of the start, as a tree with the source beside it.

import { AgentError, get, podPath, post } from './agent.js';
import { arrange, empty, finder, foreign, h, icon, say, setAttr, setText } from './dom.js';
import { placeOf, podLink } from './router.js';
import { ms } from './words.js';

const AGAIN_MS = 1000;
const OPEN_DEPTH = 4;
const ROWS = 2000;
const SPLIT = 'glasslet.split';
const WORDS = /(#.*$|"""[^"]*"""|f?"[^"]*"|'[^']*'|\b(?:async|await|def|class|with|try|except|finally|for|while|in|if|elif|else|as|raise|from|import|is|not|and|or|return|yield|None|False|True|self)\b)/;

export function callsView(context, route) {
  return new CallsPage(context, route.path);
}

class CallsPage {
  constructor(context, path) {
    this.context = context;
    this.start = path.length < 2;
    this.namespace = path[0];
    this.name = path[1];
    this.title = this.start ? 'Calls of the agent’s start' : `Calls of ${this.namespace}/${this.name}`;
    this.open = new Set();
    this.chosen = -1;
    this.hot = true;
    this.least = 0;
    this.calls = [];
    this.source = new Map();
    this.build();
    this.ask();
    this.timer = setInterval(() => this.active && !document.hidden && this.ask(), AGAIN_MS);
  }

  close() {
    clearInterval(this.timer);
  }

  build() {
    this.words = h('span.dim');
    this.hotButton = h('button.btn.small', { 'aria-pressed': 'true', onclick: () => this.toggleHot() }, icon('flame'), 'Hot path', h('kbd', null, 'h'));
    this.find = h('input', { type: 'text', placeholder: 'Find a function or file', 'aria-label': 'Find in calls', oninput: () => this.fill() });
    this.hits = h('span', { 'aria-live': 'polite' });
    this.leastWords = h('span', null, '0 ms');
    const slider = h('input', { type: 'range', min: 0, max: 20, step: 0.5, value: 0, 'aria-label': 'Hide calls shorter than', oninput: (event) => { this.least = Number(event.target.value); setText(this.leastWords, `${this.least} ms`); this.fill(); } });
    const pod = this.start ? '' : `#calls/${placeOf(this)}`;
    const which = h('nav.seg', { 'aria-label': 'Which calls' }, !this.start && h('a.btn.small', { href: pod, 'aria-current': 'page' }, 'This pod'), h('a.btn.small', { href: '#calls/start', 'aria-current': this.start ? 'page' : null }, 'Start of the agent'));
    this.body = h('tbody');
    this.rows = new Map();
    this.table = h('table.tree', { role: 'treegrid', 'aria-label': 'Calls', onkeydown: (event) => this.treeKeys(event) && (event.preventDefault(), event.stopPropagation()) },
      h('thead', null, h('tr', null, h('th', { scope: 'col' }, 'call'), h('th.src', { scope: 'col' }, 'where'), h('th.c-cost', { scope: 'col' }, 'CPU, awaited'), h('th.num', { scope: 'col' }, 'took'), h('th.num.c-cpu', { scope: 'col' }, 'CPU'))), this.body);
    this.none = h('div');
    this.trace = h('div.tools', { role: 'group', 'aria-label': 'Trace' });
    if (!this.start) this.trace.append(...[['for 30 s', { seconds: 30 }], ['until Ready', { seconds: 600, until: 'Ready' }], ['next step', { seconds: 300, until: 'step' }]].map(([words, request]) => h('button.btn.small', { onclick: () => this.begin(request) }, `Trace ${words}`)));
    this.codeTitle = h('code');
    this.code = h('div.code', { tabindex: '0', role: 'region', 'aria-label': 'Lines of the source' });
    this.two = h('div.two');
    this.el = [h('h1.sr', null, foreign(this.title)), this.two];
    this.two.append(
      h('section.card', { 'aria-labelledby': 't-h' }, h('header', null, h('h2', { id: 't-h' }, this.start ? 'The agent’s start' : ['Calls for ', h('a', { href: podLink(this) }, foreign(`${this.namespace}/${this.name}`))]), this.words, this.trace, this.hotButton),
        h('div.bar-f', null, finder(this.find, h('kbd', null, '/')), this.hits, h('label.range', null, 'hide below', slider, this.leastWords), which),
        this.none, this.table, h('ul.shares.foot', null, h('li', null, h('span.sw.glasslet'), 'on the CPU'), h('li', null, h('span.sw.runtime'), 'awaited a CRI call'), h('li', null, h('span.sw.waiting'), 'awaited something else'), h('li', null, 'blue name: the hot path'))),
      splitter(this.two),
      h('section.card', { 'aria-labelledby': 's-h' }, h('header', null, h('h2', { id: 's-h' }, this.codeTitle), h('span.hint', null, 'ms per line')), this.code));
    this.table.hidden = true;
    setText(this.codeTitle, 'source');
    this.code.append(empty('No call is chosen', 'Its source as the agent runs it comes here.'));
  }

  path() {
    return this.start ? 'v1/agent/calls' : podPath(this, '/calls');
  }

  /** The next step of a held pod is made here, that of another is waited for. */
  async begin(request) {
    try {
      this.calls = [];
      this.show(await post(this.path(), request));
      say('Tracing has begun');
      if (request.until === 'step' && this.context.pod(this.namespace, this.name)?.hold) await post(podPath(this, '/step'));
    } catch (error) {
      this.fail(error);
    }
  }

  async ask() {
    try {
      this.show(await get(this.path()));
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error) {
    this.active = false;
    if (this.calls.length) return;
    const unknown = error instanceof AgentError && error.status === 404;
    this.none.replaceChildren(empty(unknown ? 'No calls to show' : 'The calls cannot be shown', ...foreign(unknown && !/pod/.test(error.message) ? 'This agent does not trace calls.' : error.message)));
  }

  show(answer) {
    this.active = answer.active;
    const fresh = answer.calls.length !== this.calls.length || answer.active;
    if (!answer.calls.length) {
      this.table.hidden = true;
      return this.none.replaceChildren(answer.active
        ? empty('Tracing; no call yet', 'They come with the pod’s next step.')
        : empty(this.start ? 'The start was not traced' : 'Nothing was traced yet', this.start ? '' : 'Trace for 30 s or until Ready: only this pod is traced, and each of its calls costs a few microseconds.'));
    }
    if (!fresh && this.calls.length) return;
    this.none.replaceChildren();
    this.table.hidden = false;
    const first = !this.calls.length;
    this.calls = answer.calls.map((call, index) => ({ ...call, index, took: (call.endMs ?? call.startMs + call.waitedMs + call.cpuMs) - call.startMs, kids: [] }));
    for (const call of this.calls) call.depth = call.parent < 0 ? 0 : this.calls[call.parent].depth + 1;
    for (const call of this.calls) if (call.parent >= 0) this.calls[call.parent].kids.push(call.index);
    this.roots = this.calls.filter((call) => call.parent < 0);
    this.total = Math.max(...this.roots.map((call) => call.took), 0.001);
    this.findHot();
    for (const call of this.calls) if (call.kids.length && (this.hotOnes.has(call.index) || (first && call.depth < OPEN_DEPTH))) this.open.add(call.index);
    const cpu = this.roots.reduce((sum, call) => sum + call.cpuMs, 0);
    setText(this.words, `${this.calls.length} calls${answer.leftOut ? `, ${answer.leftOut} left out` : ''}, ${ms(cpu)} CPU${answer.active ? '; tracing' : ''}`);
    if (first) this.chosen = [...this.hotOnes].at(-1) ?? 0;
    this.fill();
    this.showSource();
  }

  /** From the longest root always to its longest child. */
  findHot() {
    this.hotOnes = new Set();
    let at = this.roots.reduce((most, call) => (call.took > most.took ? call : most), this.roots[0]);
    while (at) {
      this.hotOnes.add(at.index);
      at = at.kids.map((kid) => this.calls[kid]).sort((a, b) => b.took - a.took)[0];
    }
  }

  toggleHot() {
    this.hot = !this.hot;
    setAttr(this.hotButton, 'aria-pressed', String(this.hot));
    this.fill();
  }

  isHit(call) {
    const text = this.find.value.toLowerCase();
    return Boolean(text) && `${call.function} ${call.file}`.toLowerCase().includes(text);
  }

  visible() {
    const found = [];
    const walk = (call) => {
      if (call.took < this.least || found.length >= ROWS) return;
      found.push(call);
      if (this.open.has(call.index)) for (const kid of call.kids) walk(this.calls[kid]);
    };
    this.roots.forEach(walk);
    return found;
  }

  fill() {
    if (!this.calls.length) return;
    const hits = this.find.value ? this.calls.filter((call) => this.isHit(call)) : [];
    for (const hit of hits.slice(0, 200)) for (let up = hit.parent; up >= 0; up = this.calls[up].parent) this.open.add(up);
    setText(this.hits, this.find.value ? `${hits.length} of ${this.calls.length}` : '');
    this.shown = this.visible();
    if (!this.shown.some((call) => call.index === this.chosen)) this.chosen = this.shown[0]?.index ?? -1;
    arrange(this.body, this.shown.map((call) => this.row(call)));
  }

  row(call) {
    let tr = this.rows.get(call.index);
    if (tr?.call !== call) {
      tr = this.makeRow(call);
      this.rows.set(call.index, tr);
    }
    const isOpen = this.open.has(call.index);
    tr.className = [this.hot && this.hotOnes.has(call.index) && 'hot', this.isHit(call) && 'hit'].filter(Boolean).join(' ');
    setAttr(tr, 'aria-selected', String(call.index === this.chosen));
    setAttr(tr, 'tabindex', call.index === this.chosen ? '0' : '-1');
    if (call.kids.length) {
      setAttr(tr, 'aria-expanded', String(isOpen));
      setAttr(tr.toggle, 'data-open', isOpen ? '' : null);
    }
    return tr;
  }

  makeRow(call) {
    const [, owner = '', name] = /^(?:(.*)\.)?([^.]+)$/.exec(call.function) ?? [null, '', call.function];
    const part = (value) => `${Math.min(100, (value / this.total) * 100)}%`;
    const cri = call.waitedOn.startsWith('CRI') || /^[A-Z]\w+$/.test(call.waitedOn);
    const bar = h('svg.cost', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': `CPU ${ms(call.cpuMs)}, awaited ${ms(call.waitedMs)} ${call.waitedOn}` },
      h('rect.bg', { width: 100, height: 10, rx: 1 }), h('rect', { class: cri ? 'run' : 'aw', width: part(call.took), height: 10 }), h('rect.cpu', { width: part(call.cpuMs), height: 10 }));
    const toggle = call.kids.length ? h('span.tw', { 'aria-hidden': 'true' }, icon('right')) : h('span.tw');
    // A part of the start that is no function has a name with spaces.
    const given = name.includes(' ') ? '' : `(${call.arguments})`;
    const end = call.outcome ? ` ✗ ${call.outcome}` : call.endMs == null ? ' …' : call.result ? ` → ${call.result}` : '';
    const tr = h('tr', { 'aria-level': call.depth + 1, onclick: (event) => this.clicked(call, event) },
      h('td.fn', { role: 'gridcell' }, h('div', { css: { '--d': Math.min(call.depth, 24) } }, toggle, h('span.q', null, owner && h('span.dim', null, `${owner}.`), h('b', null, name)), call.repeated > 1 && h('span.dim', null, `×${call.repeated}`), h('span.a', { title: given + end }, foreign(given + end)))),
      h('td.src', { role: 'gridcell' }, `${call.file}:${call.line}`), h('td.c-cost', { role: 'gridcell' }, bar), h('td.num', { role: 'gridcell' }, call.endMs == null ? 'not over' : ms(call.took)), h('td.num.dim.c-cpu', { role: 'gridcell' }, ms(call.cpuMs)));
    tr.call = call;
    tr.toggle = toggle;
    return tr;
  }

  clicked(call, event) {
    if (event.target.closest('.tw') && call.kids.length) this.toggle(call.index);
    this.choose(call.index);
  }

  toggle(index, open = !this.open.has(index)) {
    if (open) this.open.add(index);
    else this.open.delete(index);
  }

  choose(index, focus = false) {
    this.chosen = index;
    this.fill();
    if (focus) this.rows.get(index)?.focus();
    this.showSource();
  }

  treeKeys(event) {
    const { key, code } = event;
    const at = this.shown.findIndex((call) => call.index === this.chosen);
    const call = this.shown[at];
    if (!call || event.target.matches('input')) return false;
    const go = (to) => this.choose(this.shown[Math.max(0, Math.min(this.shown.length - 1, to))].index, true);
    if (key === 'ArrowDown' || code === 'KeyJ') go(at + 1);
    else if (key === 'ArrowUp' || code === 'KeyK') go(at - 1);
    else if (key === 'Home') go(0);
    else if (key === 'End') go(this.shown.length - 1);
    else if (key === 'ArrowRight') {
      if (call.kids.length && !this.open.has(call.index)) { this.toggle(call.index, true); this.choose(call.index, true); } else go(at + 1);
    } else if (key === 'ArrowLeft') {
      if (this.open.has(call.index) && call.kids.length) { this.toggle(call.index, false); this.choose(call.index, true); } else if (call.parent >= 0) this.choose(call.parent, true);
    } else if (key === '*') {
      const below = (index) => { this.toggle(index, true); this.calls[index].kids.forEach(below); };
      below(call.index);
      this.fill();
    } else return false;
    return true;
  }

  keys(event, typing) {
    const { key } = event;
    if (typing) {
      if (key === 'Escape') { this.find.value = ''; this.fill(); this.find.blur(); return true; }
      if (key === 'Enter') { this.nextHit(); return true; }
      return false;
    }
    if (key === 'h') this.toggleHot();
    else if (key === 'n') this.nextHit();
    else if (key === 'Escape' && !this.start) location.hash = podLink(this);
    else return false;
    return true;
  }

  nextHit() {
    const hits = this.shown?.filter((call) => this.isHit(call)) ?? [];
    if (!hits.length) return say('No hit');
    const next = hits.find((call) => call.index > this.chosen) ?? hits[0];
    this.choose(next.index, true);
  }

  /** The file as the agent runs it, with the time of each line that called something. */
  async showSource() {
    const call = this.calls[this.chosen];
    if (!call) return;
    setText(this.codeTitle, call.file);
    let text = this.source.get(call.file);
    if (text === undefined) {
      text = await get(`v1/source?file=${encodeURIComponent(call.file)}`).then((answer) => answer.text, () => '');
      this.source.set(call.file, text);
    }
    if (this.calls[this.chosen] !== call) return;
    if (!text) return this.code.replaceChildren(empty('No source', 'The agent does not show this file.'));
    const lines = text.split('\n');
    const begin = Math.max(0, call.line - 4);
    const block = lines.slice(begin, begin + 90);
    this.code.replaceChildren(...block.map((line, i) => {
      const number = begin + i + 1;
      const took = this.calls.filter((one) => one.file === call.file && one.line === number).reduce((sum, one) => sum + one.took, 0);
      return h('div', { class: [number === call.line && 'on', took > this.total / 3 && 'warm'].filter(Boolean).join(' ') }, h('span.h', null, took ? took.toFixed(1) : ''), h('span.n', null, String(number)), h('span', null, painted(line)));
    }));
  }
}

/** Between the tree and the source: dragged, or moved by the arrow keys; the page remembers the place. */
function splitter(two) {
  const el = h('div.split', { role: 'separator', tabindex: '0', 'aria-orientation': 'vertical', 'aria-label': 'Width of the tree', 'aria-valuemin': 30, 'aria-valuemax': 80 });
  const set = (part) => {
    const kept = Math.round(Math.max(30, Math.min(80, part)));
    two.style.setProperty('--tree', `${kept}fr`);
    two.style.setProperty('--source', `${100 - kept}fr`);
    setAttr(el, 'aria-valuenow', kept);
    localStorage.setItem(SPLIT, String(kept));
  };
  set(Number(localStorage.getItem(SPLIT) ?? 64));
  el.addEventListener('pointerdown', (event) => { el.setPointerCapture(event.pointerId); event.preventDefault(); });
  el.addEventListener('pointermove', (event) => {
    const box = two.getBoundingClientRect();
    if (el.hasPointerCapture(event.pointerId)) set(((event.clientX - box.left) / box.width) * 100);
  });
  el.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!step) return;
    event.preventDefault();
    set(Number(el.getAttribute('aria-valuenow')) + step);
  });
  return el;
}

function painted(line) {
  return line.split(WORDS).map((part, i) => (i % 2 ? h('span', { class: part[0] === '#' ? 'm' : /["']/.test(part) ? 's' : 'k' }, part) : foreign(part)));
}
