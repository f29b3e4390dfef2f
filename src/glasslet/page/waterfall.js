// One pod's way as a waterfall: canvas and ledger, labels as a listbox, zoom, selection, hover card, and a table.

import { $, $$, arrange, foreign, h, icon, isNew, isPhone, say, setAttr, setText, shown } from './dom.js';
import { openDialog } from './keys.js';
import { placeOf } from './router.js';
import { Folding, NAMES, PARTIES, modelOf, tally } from './ways.js';
import { OVERVIEW, Painter, metrics } from './wayspaint.js';
import { clock, ms, percent } from './words.js';

const SLACK_MS = 1;

export class Waterfall {
  /** `pod()`: {namespace, name} for links. `onpick(row)`: a row was chosen. */
  constructor(context, pod, onpick) {
    this.onpick = onpick;
    this.context = context;
    this.pod = pod;
    this.trace = null;
    this.chosen = { row: 0, part: -1 };
    this.range = null;
    this.cross = null;
    this.folded = true;
    this.dimmed = '';
    this.fingers = new Map();
    this.build();
  }

  build() {
    const tool = (name, sign, key, act, kind = '') => h('button.btn.small', { class: kind, 'aria-label': name, title: `${name} (${key})`, onclick: act }, sign ? icon(sign) : name);
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.over = h('canvas', { 'aria-hidden': 'true' });
    this.frame = h('div.win', { role: 'slider', tabindex: '0', 'aria-label': 'Window of time', 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': 0 });
    this.shades = [h('div.shade'), h('div.shade')];
    this.ledger = h('div.ov', null, this.over, this.shades, this.frame);
    this.labels = h('div.labels', { role: 'listbox', 'aria-label': 'Stations of this pod, in order' });
    this.lane = h('div.lane', null, this.canvas);
    this.note = h('div.picked');
    this.shares = h('ul.shares', { 'aria-label': 'Every millisecond, by who had it' });
    this.total = h('span.dim');
    this.foldButton = h('button.btn.small', { class: 'wide', 'aria-pressed': 'true', title: 'Stretches where nothing begins or ends take little room (q)', onclick: () => this.toggleFold() }, 'Fold quiet time');
    this.nowButton = h('button.btn.small', { hidden: true, onclick: () => this.toNow() }, 'now →');
    this.none = h('div');
    this.body = h('div', null, this.shares, this.ledger, h('div.plot', null, this.labels, this.lane), this.note);
    this.el = h('section.card.wf', { id: 'way', 'aria-labelledby': 'way-h' },
      h('header', null, h('h2', { id: 'way-h' }, 'Its way'), this.total,
        h('div.tools', { role: 'toolbar', 'aria-label': 'Zoom' }, this.nowButton, this.foldButton,
          tool('As a table', '', 't', () => this.table(), 'wide'), tool('Zoom out', 'minus', 's', () => this.zoom(1.6)), tool('Zoom in', 'plus', 'w', () => this.zoom(1 / 1.6)), tool('All', '', '0', () => this.fit()))),
      this.none, this.body);
    this.painter = new Painter(this.canvas);
    this.listen();
  }

  listen() {
    this.lane.addEventListener('pointermove', (e) => e.pointerType !== 'touch' && this.hover(e));
    this.lane.addEventListener('pointerleave', () => { $('.tip').hidden = true; this.cross = null; this.paint(); });
    this.lane.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    this.lane.addEventListener('pointerdown', (e) => this.drag(e));
    this.lane.addEventListener('dblclick', (e) => { const hit = this.hit(e.offsetX, e.offsetY); if (hit) this.zoomTo(hit.from, hit.to); else this.fit(); });
    this.ledger.addEventListener('pointerdown', (e) => this.brush(e));
    this.el.addEventListener('keydown', (e) => this.keys(e) && e.preventDefault());
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.lane);
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.raf);
  }

  /** A new trace, or the same one at a later time. */
  show(trace, containers) {
    const fresh = trace !== this.trace;
    this.trace = trace;
    this.containers = containers;
    const atEnd = !this.view || this.view[1] >= this.folding.length - 1e-6;
    const whole = atEnd && (!this.view || this.view[0] <= 1e-6);
    const edge = this.folding && this.view && this.view.map((u) => this.folding.time(u));
    this.model = modelOf(trace, this.context.now(), containers);
    this.none.replaceChildren(...(this.model.rows.length ? [] : [h('div.empty', null, h('b', null, 'Nothing was recorded yet'), 'The way begins when the agent sees the pod.')]));
    this.body.hidden = !this.model.rows.length;
    this.folding = new Folding(this.model, this.folded);
    this.view = whole || !edge ? [0, this.folding.length] : edge.map((t) => this.folding.place(t));
    if (atEnd && !whole) this.view = [this.view[0], this.folding.length];
    this.nowButton.hidden = !this.model.live || atEnd;
    this.foldButton.hidden = !this.folding.canFold;
    const seen = `seen ${clock(trace.start, { millis: true })}`;
    setText(this.total, this.model.live ? `${seen}, under way for ${ms(this.model.end)}` : `${seen} → ${trace.milestone} ${clock(trace.end, { millis: true })}, ${ms(this.model.end)}`);
    if (fresh) this.fillLabels();
    this.fillShares();
    this.layout();
  }

  fillLabels() {
    this.chosen.row = Math.min(this.chosen.row, Math.max(0, this.model.rows.length - 1));
    const rows = this.model.rows.map((row, i) => {
      const old = this.labels.children[i];
      const signature = JSON.stringify([row.name, row.container, row.detail, row.state, row.later, this.text(row)]);
      if (old?.dataset.row === signature) return old;
      const el = h('button', { role: 'option', tabindex: i === this.chosen.row ? '0' : '-1', 'aria-selected': String(i === this.chosen.row), 'data-s': row.state, onclick: () => this.pick(i, -1) },
        row.state && icon(row.state), h('span.n', { class: row.later ? 'dim' : '' }, row.container && h('span.c', null, foreign(row.container), ' '), row.name),
        h('span.sr', null, `: ${this.text(row)}`), row.detail && h('span.d', { title: row.detail }, foreign(row.detail)));
      el.dataset.row = signature;
      return el;
    });
    arrange(this.labels, rows);
  }

  /** A row in words, which is its name for screen readers. */
  text(row) {
    if (row.later) return 'not reached';
    const busy = row.spans.reduce((sum, [a, b]) => sum + b - a, 0);
    const parts = row.parts.slice(0, 12).map((part) => `${shown(part.what)} ${ms(part.to - part.from)}${part.outcome ? ` ${part.outcome}` : ''}`);
    return [row.open ? 'still going on' : ms(busy), row.outcome, ...parts].filter(Boolean).join('; ');
  }

  fillShares() {
    const { sums, end } = this.model;
    if (!isNew(this.shares, [sums, Math.round(end / 100), this.dimmed])) return;
    this.shares.replaceChildren(...PARTIES.filter((who) => sums[who] > 0).map((who) => h('li', null,
      h('button', { 'aria-pressed': String(this.dimmed === who), title: 'Shows only this in the ledger', onclick: () => this.dim(who) }, h('span.sw', { class: who }), NAMES[who], ' ', h('b', null, ms(sums[who])), ' ', h('span.pc', null, percent(sums[who] / end))))));
  }

  dim(who) {
    this.dimmed = this.dimmed === who ? '' : who;
    this.fillShares();
    this.paintOverview();
  }

  layout() {
    if (!this.model) return;
    const dpr = devicePixelRatio || 1;
    const size = metrics();
    this.W = this.lane.clientWidth;
    const height = size.top + this.model.rows.length * size.row + 6;
    this.labels.style.paddingTop = isPhone() ? `${size.top}px` : '';
    for (const [canvas, width, tall] of [[this.canvas, this.W, height], [this.over, this.ledger.clientWidth, OVERVIEW]]) {
      const [w, t] = [Math.round(width * dpr), Math.round(tall * dpr)];
      if (canvas.width !== w || canvas.height !== t) {
        canvas.width = w;
        canvas.height = t;
        canvas.style.height = `${tall}px`;
      }
      canvas.getContext('2d').setTransform(dpr, 0, 0, dpr, 0, 0);
    }
    this.paint();
    this.paintOverview();
    this.describe();
  }

  recolour() {
    this.painter.recolour();
    this.layout();
  }

  paint() {
    this.raf ||= requestAnimationFrame(() => {
      this.raf = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.model || !this.W) return;
    this.painter.draw({ model: this.model, folding: this.folding, view: this.view, width: this.W, chosen: this.chosen, range: this.range, cross: this.cross });
    const width = this.ledger.clientWidth;
    const [a, b] = this.view.map((u) => (u / this.folding.length) * width);
    this.frame.style.left = `${a}px`;
    this.frame.style.width = `${Math.max(8, b - a)}px`;
    this.shades[0].style.left = '0';
    this.shades[0].style.width = `${a}px`;
    this.shades[1].style.left = `${b}px`;
    this.shades[1].style.right = '0';
    setAttr(this.frame, 'aria-valuenow', String(Math.round((this.view[0] / this.folding.length) * 100)));
    setAttr(this.frame, 'aria-valuetext', `from ${ms(this.folding.time(this.view[0]))} to ${ms(this.folding.time(this.view[1]))}`);
  }

  paintOverview() {
    const model = this.dimmed ? { ...this.model, ledger: this.model.ledger.filter(([who]) => who === this.dimmed) } : this.model;
    this.painter.overview(this.over, model, this.folding, this.ledger.clientWidth);
  }

  at(x) {
    return this.folding.time(this.view[0] + ((x - 1) / (this.W - 16)) * (this.view[1] - this.view[0]));
  }

  look(a, b) {
    const { length } = this.folding;
    const least = length / 5000;
    if (b - a < least) b = a + least;
    if (b - a > length) [a, b] = [0, length];
    if (a < 0) [a, b] = [0, b - a];
    if (b > length) [a, b] = [a - (b - length), length];
    this.view = [Math.max(0, a), b];
    this.nowButton.hidden = !this.model.live || b >= length - 1e-6;
    this.paint();
  }

  zoom(factor, at = 0.5) {
    const [a, b] = this.view;
    const middle = a + (b - a) * at;
    this.look(middle - (middle - a) * factor, middle + (b - middle) * factor);
  }

  pan(part) {
    const [a, b] = this.view;
    this.look(a + (b - a) * part, b + (b - a) * part);
  }

  fit() {
    this.range = null;
    this.look(0, this.folding.length);
    this.describe();
  }

  toNow() {
    const [a, b] = this.view;
    this.look(this.folding.length - (b - a), this.folding.length);
  }

  zoomTo(from, to) {
    const [a, b] = [this.folding.place(from), this.folding.place(to)];
    const room = (b - a) * 0.12 || this.folding.length / 1000;
    this.look(a - room, b + room);
  }

  toggleFold() {
    this.folded = !this.folded;
    setAttr(this.foldButton, 'aria-pressed', String(this.folded));
    this.folding = new Folding(this.model, this.folded);
    this.view = [0, this.folding.length];
    this.layout();
    say(this.folded ? 'Quiet time is folded' : 'Time is linear');
  }

  /** What is at a place of the picture: {row, part, from, to}. */
  hit(x, y) {
    const size = metrics();
    const index = Math.floor((y - size.top) / size.row);
    const row = this.model.rows[index];
    if (!row) return null;
    this.painter.scene ??= {};
    const within = (a, b) => x >= this.painter.x(a) - 3 && x <= Math.max(this.painter.x(b), this.painter.x(a) + 2) + 3;
    const part = row.parts.findIndex((one) => within(one.from, one.to));
    if (part >= 0) return { row: index, part, from: row.parts[part].from, to: row.parts[part].to };
    const span = row.spans.find(([a, b]) => within(a, b));
    return span ? { row: index, part: -1, from: span[0], to: span[1] } : null;
  }

  hover(event) {
    const box = this.lane.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.cross = x;
    this.paint();
    const tip = $('.tip');
    const hit = this.hit(x, y);
    tip.hidden = !hit;
    if (!hit) return;
    this.card(tip, hit);
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 10)}px`;
    tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 10)}px`;
  }

  card(tip, { row: index, part: at, from, to }) {
    const row = this.model.rows[index];
    const part = row.parts[at];
    const who = part ? part.party : (row.owners.flat().find(([, a, b]) => a <= from && b > from)?.[0] ?? 'glasslet');
    const inside = part ? [] : row.parts.filter((one) => one.to > from && one.from < to);
    const line = (name, ...value) => [h('dt', null, name), h('dd', null, ...value)];
    tip.replaceChildren(h('b', null, foreign(part ? part.what : row.name)), h('dl', null,
      line('station', foreign(row.container ? `${row.container}, ${row.name}` : row.name)),
      line('who', h('span.sw', { class: `${who} in` }), NAMES[who]),
      line('from', `+${ms(from)} (${clock(this.model.start + from, { millis: true })})`),
      line('took', ms(to - from), row.open && to >= this.model.end ? ', still going on' : ''),
      (part?.outcome || row.outcome) && line('outcome', part?.outcome || row.outcome)),
    inside.length ? h('ul', null, inside.slice(0, 5).map((one) => h('li', null, h('span.sw', { class: one.party }), h('span', null, foreign(one.what)), h('span', null, ms(one.to - one.from))))) : '');
  }

  /** The row of what was decided: the first to begin then or later, of that container if it has one. */
  rowAfter(at, container) {
    const t = Date.parse(at) - this.model.start - SLACK_MS;
    const begins = (row) => Math.min(...row.spans.map(([a]) => a).filter((a) => a >= t));
    const fits = this.model.rows.filter((row) => !row.away && (!container || row.container === container) && begins(row) < Infinity);
    return this.model.rows.indexOf(fits.sort((one, other) => begins(one) - begins(other))[0]);
  }

  pick(row, part, focus = true) {
    this.chosen = { row, part };
    this.onpick(row);
    $$('button', this.labels).forEach((button, i) => {
      setAttr(button, 'aria-selected', String(i === row));
      setAttr(button, 'tabindex', i === row ? '0' : '-1');
    });
    if (focus) this.labels.children[row]?.focus({ preventScroll: true });
    this.describe();
    this.paint();
  }

  /** The line below the picture: the selection, or the shares of the chosen range. */
  describe() {
    const row = this.model?.rows[this.chosen.row];
    if (!row) return;
    if (this.range) {
      const [a, b] = this.range;
      const sums = tally(this.model.ledger, a, b);
      this.note.replaceChildren(h('b', null, `${ms(b - a)} chosen`), h('span', null, `+${ms(a)} to +${ms(b)}`),
        ...PARTIES.filter((who) => sums[who] > 0.01).map((who) => h('span', null, h('span.sw', { class: `${who} in` }), `${NAMES[who]} ${ms(sums[who])}`)),
        h('span.end', null, h('button.btn.small', { onclick: () => this.zoomTo(a, b) }, 'Zoom to it', h('kbd', null, '↵'))));
      return;
    }
    const part = row.parts[this.chosen.part];
    const place = placeOf(this.pod());
    const busy = row.spans.reduce((sum, [a, b]) => sum + b - a, 0);
    const words = part
      ? `${ms(part.to - part.from)}, from +${ms(part.from)}${part.outcome ? `, ${part.outcome}` : ''}`
      : row.later ? 'not reached yet' : `${ms(busy)}${row.spans.length > 1 ? ` in ${row.spans.length} stretches` : ''}${row.parts.length ? `, ${row.parts.length} calls and waits in it` : ''}`;
    if (!isNew(this.note, [words, this.chosen, row.name])) return;
    this.note.replaceChildren(h('b', null, foreign(part ? part.what : row.container ? `${row.container}, ${row.name}` : row.name)), h('span', null, words),
      h('span.end', null, h('a.btn.small', { href: `#stations?at=${encodeURIComponent(row.name)}&pod=${place}` }, icon('held'), 'Break here'), h('a.btn.small', { href: `#calls/${place}` }, icon('calls'), 'Calls in it')));
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), event.offsetX / this.W);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.W);
    }
  }

  drag(event) {
    const box = this.lane.getBoundingClientRect();
    const [x0, y0] = [event.clientX - box.left, event.clientY - box.top];
    if (event.pointerType === 'touch') return this.touch(event, x0, y0);
    let moved = false;
    const move = (e) => {
      const x = Math.max(0, Math.min(this.W, e.clientX - box.left));
      if (Math.abs(x - x0) <= 3) return;
      moved = true;
      this.range = [this.at(Math.min(x, x0)), this.at(Math.max(x, x0))].map((t) => Math.max(0, Math.min(this.model.end, t)));
      isNew(this.note, this.range);
      $('.tip').hidden = true;
      this.paint();
      this.describe();
    };
    const up = () => {
      removeEventListener('pointermove', move);
      if (!moved) this.tap(x0, y0);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', up, { once: true });
  }

  tap(x, y) {
    this.range = null;
    const size = metrics();
    const index = Math.floor((y - size.top) / size.row);
    if (this.model.rows[index]) this.pick(index, this.hit(x, y)?.part ?? -1, false);
  }

  /** One finger scrolls the page and taps; two zoom. */
  touch(event, x0, y0) {
    this.fingers.set(event.pointerId, x0);
    const box = this.lane.getBoundingClientRect();
    const spread = () => { const xs = [...this.fingers.values()]; return Math.max(20, Math.abs(xs[0] - xs[1])); };
    let before = this.fingers.size === 2 ? spread() : 0;
    const move = (e) => {
      if (!this.fingers.has(e.pointerId)) return;
      this.fingers.set(e.pointerId, e.clientX - box.left);
      if (this.fingers.size !== 2) return;
      const xs = [...this.fingers.values()];
      const now = spread();
      if (before) this.zoom(before / now, (xs[0] + xs[1]) / 2 / this.W);
      before = now;
    };
    const end = (e) => {
      if (e.pointerId !== event.pointerId) return;
      removeEventListener('pointermove', move);
      removeEventListener('pointerup', end);
      removeEventListener('pointercancel', end);
      if (e.type === 'pointerup' && this.fingers.size === 1 && Math.abs(e.clientX - box.left - x0) < 8) this.tap(x0, y0);
      this.fingers.delete(event.pointerId);
    };
    addEventListener('pointermove', move);
    addEventListener('pointerup', end);
    addEventListener('pointercancel', end);
  }

  /** The ledger: drag the frame, its edges, or a new window. */
  brush(event) {
    const box = this.ledger.getBoundingClientRect();
    const place = (e) => Math.max(0, Math.min(1, (e.clientX - box.left) / box.width)) * this.folding.length;
    const p0 = place(event);
    const [a, b] = this.view;
    const near = (8 / box.width) * this.folding.length;
    const whole = b - a > this.folding.length * 0.995;
    const mode = whole ? 'new' : Math.abs(p0 - a) < near ? 'from' : Math.abs(p0 - b) < near ? 'to' : p0 > a && p0 < b ? 'move' : 'new';
    const move = (e) => {
      const p = place(e);
      if (mode === 'from') this.look(Math.min(p, b - 1e-3), b);
      else if (mode === 'to') this.look(a, Math.max(p, a + 1e-3));
      else if (mode === 'move') this.look(a + p - p0, b + p - p0);
      else if (Math.abs(p - p0) > near / 2) this.look(Math.min(p, p0), Math.max(p, p0));
    };
    event.preventDefault();
    this.frame.focus();
    addEventListener('pointermove', move);
    addEventListener('pointerup', () => removeEventListener('pointermove', move), { once: true });
  }

  keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.model?.rows.length) return false;
    const { code, key, shiftKey } = event;
    const { rows } = this.model;
    const row = rows[this.chosen.row];
    const inLabels = event.target.closest('.labels');
    if (code === 'KeyW' || key === '+') this.zoom(1 / 1.5);
    else if (code === 'KeyS' || key === '-') this.zoom(1.5);
    else if (code === 'KeyA' || (shiftKey && code === 'ArrowLeft')) this.pan(-0.2);
    else if (code === 'KeyD' || (shiftKey && code === 'ArrowRight')) this.pan(0.2);
    else if (code === 'ArrowDown') this.pick(Math.min(rows.length - 1, this.chosen.row + 1), -1);
    else if (code === 'ArrowUp') this.pick(Math.max(0, this.chosen.row - 1), -1);
    else if (code === 'ArrowRight') this.step(1);
    else if (code === 'ArrowLeft') this.step(-1);
    else if (key === 'Enter' && (inLabels || this.range)) this.zoomToChosen(row);
    else if (key === '0') this.fit();
    else if (code === 'KeyQ') this.toggleFold();
    else if (code === 'KeyT') this.table();
    else if (key === 'Escape' && (this.range || this.view[0] > 0 || this.view[1] < this.folding.length)) this.fit();
    else return false;
    event.stopPropagation();
    return true;
  }

  zoomToChosen(row) {
    const part = row.parts[this.chosen.part];
    if (this.range) this.zoomTo(...this.range);
    else if (part) this.zoomTo(part.from, part.to);
    else if (row.spans.length) this.zoomTo(row.spans[0][0], row.spans.at(-1)[1]);
  }

  step(by) {
    const row = this.model.rows[this.chosen.row];
    const at = Math.max(-1, Math.min(row.parts.length - 1, this.chosen.part + by));
    this.pick(this.chosen.row, at);
    const part = row.parts[at];
    if (part) say(`${shown(part.what)}, ${ms(part.to - part.from)}, from ${ms(part.from)}, ${NAMES[part.party]}${part.outcome ? `, ${part.outcome}` : ''}`);
  }

  table() {
    const line = (station, what, who, from, took) => h('tr', null, h('th', { scope: 'row' }, station), h('td', null, what), h('td', null, who), h('td.num', null, from), h('td.num', null, took));
    const rows = this.model.rows.flatMap((row) => {
      const name = foreign(row.container ? `${row.container}, ${row.name}` : row.name);
      if (!row.spans.length) return [line(name, row.later ? 'not reached' : '', '', '', '')];
      const busy = row.spans.reduce((sum, [a, b]) => sum + b - a, 0);
      return [line(name, foreign(row.detail), '', `+${ms(row.spans[0][0])}`, ms(busy)), ...row.parts.slice(0, 40).map((part) => line('', foreign(part.what), NAMES[part.party], `+${ms(part.from)}`, ms(part.to - part.from)))];
    });
    openDialog('Its way, as a table', h('table', null, h('thead', null, h('tr', null, ['station', 'what', 'who', 'from', 'took'].map((name, i) => h('th', { scope: 'col', class: i > 2 ? 'num' : '' }, name)))), h('tbody', null, rows)));
  }
}
