// Paints the waterfall: the axis, folds, bars in their owners' colours, calls and waits, labels.

import { h, isPhone } from './dom.js';
import { duration, ms } from './words.js';

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 12e5, 36e5];
const TICK_PX = 76;
const BAR = 11;
const PART = 4;
const RADIUS = 2.5;
export const OVERVIEW = 26;

/** Sizes of rows: [height, axis, bar's offset]. */
export const metrics = () => (isPhone() ? { row: 46, top: 20, offset: 20 } : { row: 32, top: 26, offset: 7 });

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.g = canvas.getContext('2d');
    this.recolour();
  }

  recolour() {
    // A token has both themes' colours: only as the colour of an element is it one of them.
    const probe = document.body.appendChild(h('i', { hidden: true, css: { 'forced-color-adjust': 'none' } }));
    const value = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
    this.sans = getComputedStyle(document.body).fontFamily;
    this.c = Object.fromEntries(['line', 'line-2', 'edge', 'ink', 'ink-2', 'ink-3', 'surface', 'chosen', 'fail', 'fine', 'accent', 'sunk'].map((name) => [name, value(name)]));
    this.party = { runtime: value('p-runtime'), api: value('p-api'), pod: value('p-pod'), waiting: value('p-wait'), glasslet: value('p-glasslet'), held: value('p-held'), unnamed: value('p-unnamed'), away: value('edge') };
    const tints = { waiting: value('p-wait-t'), held: value('p-held-t') };
    probe.remove();
    this.patterns = {
      waiting: this.pattern(6, (g, n) => lines(g, n, tints.waiting, this.party.waiting, 1.2, -1)),
      held: this.pattern(12, (g, n) => lines(g, n, tints.held, this.party.held, 4.2, 1)),
      away: this.pattern(5, (g) => { g.fillStyle = this.c.edge; g.fillRect(1, 1, 1.6, 1.6); }),
    };
  }

  pattern(size, draw) {
    const dpr = devicePixelRatio || 1;
    const tile = document.createElement('canvas');
    tile.width = tile.height = size * dpr;
    const g = tile.getContext('2d');
    g.scale(dpr, dpr);
    draw(g, size);
    const pattern = this.g.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / dpr));
    return pattern;
  }

  fill(party) {
    return this.patterns[party] ?? this.party[party] ?? this.c.edge;
  }

  font(weight) {
    this.g.font = `${weight} 11px ${this.sans}`;
  }

  /** `scene`: model, folding, view [u0, u1], width, chosen, range, cross. Culled to the window; bars below a pixel merge. */
  draw(scene) {
    const { g } = this;
    this.scene = scene;
    this.size = metrics();
    this.W = scene.width;
    this.H = this.size.top + scene.model.rows.length * this.size.row + 6;
    if (!this.W) return;
    g.clearRect(0, 0, this.W, this.H);
    this.font(400);
    g.textBaseline = 'middle';
    this.axis();
    this.chosen();
    scene.model.rows.forEach((row, i) => this.row(row, this.size.top + i * this.size.row));
    this.selection();
    this.milestone();
    if (scene.cross != null) this.line(scene.cross + 0.5, 0, this.H, this.c.edge, 1);
  }

  x(time) {
    const { folding, view } = this.scene;
    return ((folding.place(time) - view[0]) / (view[1] - view[0])) * (this.W - 16) + 1;
  }

  line(x, from, to, colour, width, dash = []) {
    const { g } = this;
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    g.moveTo(x, from);
    g.lineTo(x, to);
    g.stroke();
    g.setLineDash([]);
  }

  axis() {
    let last = -99;
    for (const seg of this.scene.folding.segments) {
      const [x0, x1] = [this.x(seg.t0), this.x(seg.t1)];
      if (x1 < -2 || x0 > this.W + 2) continue;
      last = seg.fold ? this.fold(seg, x0, x1) : this.ticks(seg, x0, x1, last);
    }
  }

  fold(seg, x0, x1) {
    const { g } = this;
    g.fillStyle = this.c.sunk;
    g.fillRect(x0, 0, x1 - x0, this.H);
    g.strokeStyle = this.c['line-2'];
    g.lineWidth = 1;
    g.beginPath();
    for (const x of [x0, x1]) for (let y = 0; y < this.H; y += 8) { g.moveTo(x, y); g.lineTo(x + 2, y + 2); g.lineTo(x - 2, y + 6); g.lineTo(x, y + 8); }
    g.stroke();
    const label = duration((seg.t1 - seg.t0) / 1000);
    this.font(600);
    g.fillStyle = this.c['ink-2'];
    g.textAlign = 'center';
    if (x1 - x0 > g.measureText(label).width + 4) g.fillText(label, (Math.max(0, x0) + Math.min(this.W, x1)) / 2, this.size.top / 2);
    this.font(400);
    return x1;
  }

  ticks(seg, x0, x1, last) {
    const { g } = this;
    const per = (seg.t1 - seg.t0) / (x1 - x0);
    const step = STEPS.find((one) => one / per > TICK_PX) ?? 72e5;
    const first = Math.max(seg.t0, seg.t0 + (0 - x0) * per);
    const until = Math.min(seg.t1, seg.t0 + (this.W - x0) * per);
    const room = Math.min(x1, this.x(this.scene.model.end) - 46);
    g.textAlign = 'left';
    for (let t = Math.ceil(first / step) * step; t <= until; t += step) {
      const x = this.x(t);
      this.line(Math.round(x) + 0.5, this.size.top - 6, this.H, this.c.line, 1);
      const label = t === 0 ? 'seen' : `+${step < 1 ? `${t.toFixed(1)} ms` : t < 1000 ? `${Math.round(t)} ms` : step < 1000 ? `${(t / 1000).toFixed(1)} s` : duration(t / 1000)}`;
      const width = g.measureText(label).width;
      if (x - last <= 8 || x + 8 + width >= room) continue;
      g.fillStyle = this.c['ink-3'];
      g.fillText(label, x + 4, this.size.top / 2);
      last = x + width + 6;
    }
    return last;
  }

  chosen() {
    const { g, scene } = this;
    g.fillStyle = this.c.chosen;
    g.globalAlpha = 0.55;
    if (!isPhone()) g.fillRect(0, this.size.top + scene.chosen.row * this.size.row, this.W, this.size.row);
    g.globalAlpha = 1;
    if (!scene.range) return;
    const [a, b] = scene.range.map((t) => this.x(t));
    g.fillStyle = g.strokeStyle = this.c.accent;
    g.globalAlpha = 0.1;
    g.fillRect(a, this.size.top, b - a, this.H);
    g.globalAlpha = 1;
    g.lineWidth = 1;
    g.strokeRect(a + 0.5, this.size.top - 4.5, b - a, this.H);
  }

  row(row, y) {
    const { g } = this;
    g.strokeStyle = this.c.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(0, y + 0.5);
    g.lineTo(this.W, y + 0.5);
    g.stroke();
    const at = y + this.size.offset;
    if (row.later) {
      g.fillStyle = this.c['ink-3'];
      g.textAlign = 'right';
      g.fillText('not reached', this.x(this.scene.model.end) - 10, at + 6);
      return;
    }
    if (row.away) this.away(row);
    const shapes = {};
    let pixel = -1;
    row.spans.forEach(([a, b], i) => {
      const [xa, xb] = [this.x(a), Math.max(this.x(b), this.x(a) + 1.5)];
      if (xb < -4 || xa > this.W + 4 || (xb - xa < 2 && Math.floor(xa) === pixel)) return;
      pixel = Math.floor(xa);
      if (!row.away) this.bar(row.owners[i], xa, xb, at, shapes);
    });
    pixel = -1;
    for (const part of row.parts) {
      const [xa, xb] = [this.x(part.from), Math.max(this.x(part.to), this.x(part.from) + 1.5)];
      if (xb < -4 || xa > this.W + 4 || (xb - xa < 2 && Math.floor(xa) === pixel)) continue;
      pixel = Math.floor(xa);
      this.part(part, xa, xb, at, shapes);
    }
    this.fillAll(shapes);
    if (row.outcome === 'failed' && row.spans.length) this.failed(this.x(row.spans.at(-1)[1]), at);
    if (row.open) this.torn(at);
    if (row.spans.length && row.spans.length < 3) this.label(row, at);
  }

  away(row) {
    const { g } = this;
    g.globalAlpha = 0.5;
    g.fillStyle = this.fill('away');
    for (const [a, b] of row.spans) g.fillRect(this.x(a), this.size.top, this.x(b) - this.x(a), this.H - this.size.top);
    g.globalAlpha = 1;
  }

  /** Adds a bar's segments to the shapes of their owners: all of a row's are filled at once. */
  bar(owners, xa, xb, y, shapes) {
    const last = owners.length - 1;
    owners.forEach(([who, a, b], i) => {
      const x = i ? this.x(a) : xa;
      const width = Math.max((i === last ? xb : this.x(b)) - x, 1.5);
      const shape = (shapes[who] ??= new Path2D());
      const round = width > 6 && (i === 0 || i === last);
      if (round) shape.roundRect(x, y, width, BAR, [i ? 0 : RADIUS, i === last ? RADIUS : 0, i === last ? RADIUS : 0, i ? 0 : RADIUS]);
      else shape.rect(x, y, width, BAR);
    });
    const alone = owners.length <= 2 && owners.find(([who]) => who === 'waiting' || who === 'held')?.[0];
    if (alone && xb - xa > 3) (shapes[`edge ${alone}`] ??= new Path2D()).roundRect(xa + 0.5, y + 0.5, xb - xa - 1, BAR - 1, RADIUS);
  }

  fillAll(shapes) {
    const { g } = this;
    for (const [name, shape] of Object.entries(shapes)) {
      const edge = name.startsWith('edge ') && name.slice(5);
      if (edge) {
        g.strokeStyle = this.party[edge];
        g.lineWidth = 1;
        g.stroke(shape);
      } else {
        g.fillStyle = this.fill(name);
        g.fill(shape);
      }
    }
  }

  part(part, xa, xb, at, shapes) {
    const y = at + BAR + 3;
    if (part.outcome !== 'cancelled') {
      (shapes[part.party] ??= new Path2D()).rect(xa, y, xb - xa, PART);
      if (part.party === 'waiting' || part.party === 'held') (shapes[`edge ${part.party}`] ??= new Path2D()).rect(xa, y, xb - xa, PART);
      if (part.outcome === 'failed' || part.outcome === 'cut') this.failed(xb, at);
      return;
    }
    const { g } = this;
    g.strokeStyle = this.party[part.party];
    g.lineWidth = 1;
    g.strokeRect(xa, y, xb - xa, PART);
    this.line((xa + xb) / 2, y - 1, y + PART + 1, this.party[part.party], 1);
  }

  failed(x, at) {
    const { g } = this;
    g.fillStyle = g.strokeStyle = this.c.fail;
    g.fillRect(x - 3, at - 2, 3, BAR + 4);
    g.lineWidth = 1.6;
    g.beginPath();
    g.moveTo(x + 3, at + 3); g.lineTo(x + 8, at + 8);
    g.moveTo(x + 8, at + 3); g.lineTo(x + 3, at + 8);
    g.stroke();
  }

  torn(at) {
    const { g } = this;
    const x = this.x(this.scene.model.end);
    g.fillStyle = this.c.surface;
    g.beginPath();
    for (let k = 0; k < 3; k++) { g.moveTo(x + 1, at + k * 4); g.lineTo(x - 4, at + 2 + k * 4); g.lineTo(x + 1, at + 4 + k * 4); }
    g.fill();
  }

  label(row, at) {
    const { g } = this;
    const busy = row.spans.reduce((sum, [a, b]) => sum + b - a, 0);
    const main = row.parts.reduce((most, part) => (most && most.to - most.from >= part.to - part.from ? most : part), null);
    const text = ms(busy) + (main ? `  ${main.what.slice(0, 60)}` : '');
    const width = g.measureText(text).width;
    const first = this.x(row.spans[0][0]);
    const last = this.x(row.spans.at(-1)[1]);
    const y = at + BAR / 2 + 0.5;
    if (last < -20) return;
    g.textAlign = 'left';
    g.fillStyle = this.c['ink-2'];
    const after = last + (row.open || row.outcome ? 12 : 8);
    if (after + width < this.W) g.fillText(text, after, y);
    else if (first - 8 - width > 0) g.fillText(text, first - 8 - width, y);
    else if (last - first > width + 14) {
      const x = Math.max(first, 0) + 8;
      g.fillStyle = this.c.surface;
      g.beginPath();
      g.roundRect(x - 4, at, width + 8, BAR, 3);
      g.fill();
      g.fillStyle = this.c.ink;
      g.fillText(text, x, y);
    }
  }

  selection() {
    const { scene, g } = this;
    const part = scene.model.rows[scene.chosen.row]?.parts[scene.chosen.part];
    if (!part) return;
    const [xa, xb] = [this.x(part.from), this.x(part.to)];
    const y = this.size.top + scene.chosen.row * this.size.row + this.size.offset;
    g.strokeStyle = this.c.accent;
    g.lineWidth = 2;
    g.beginPath();
    g.roundRect(xa - 2, y - 2, Math.max(xb - xa, 2) + 4, BAR + PART + 7, 4);
    g.stroke();
  }

  milestone() {
    const { g, scene } = this;
    const { live, milestone, end } = scene.model;
    const x = this.x(end);
    const colour = live ? this.c['ink-2'] : this.c.fine;
    this.line(x - 0.5, 4, this.H, colour, 1.5, [4, 3]);
    if (scene.folding.segments.at(-1)?.fold || x > this.W) return;
    this.font(600);
    g.textAlign = 'right';
    g.fillStyle = colour;
    g.fillText(live ? 'now' : milestone.split(' ')[0], x - 4, this.size.top / 2);
    this.font(400);
  }

  /** The whole window, each instant in its owner's colour. */
  overview(canvas, model, folding, width) {
    const g = canvas.getContext('2d');
    g.clearRect(0, 0, width, OVERVIEW);
    for (const [who, a, b] of model.ledger) {
      const x = (folding.place(a) / folding.length) * width;
      const w = (folding.place(b) / folding.length) * width - x;
      if (who === 'unnamed') {
        g.strokeStyle = this.c.edge;
        g.setLineDash([2, 2]);
        g.strokeRect(x + 0.5, 5.5, Math.max(w - 1, 0.5), 15);
        g.setLineDash([]);
      } else {
        g.fillStyle = this.fill(who);
        g.fillRect(x, 5, Math.max(w, 0.8), 16);
      }
    }
  }
}

function lines(g, n, tint, colour, width, slope) {
  g.fillStyle = tint;
  g.fillRect(0, 0, n, n);
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.beginPath();
  for (const d of [-n, 0, n]) {
    if (slope < 0) { g.moveTo(d, n); g.lineTo(d + n, 0); } else { g.moveTo(d - 2, -2); g.lineTo(d + n + 2, n + 2); }
  }
  g.stroke();
}
