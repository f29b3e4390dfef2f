// Probes as strips of results: one row a probe, its last results as bars whose height is the log of their time.

import { empty, foreign, h, icon, shown } from './dom.js';
import { clock, duration, ms } from './words.js';

const SHOWN = 40;
const LATE_MS = 1000;
const H = 30;

/** One strip for each probe that is declared. `rows`: results of all of them, oldest first. */
export function fillProbes(el, declared, rows) {
  const results = new Map();
  for (const row of rows) {
    const key = `${row.container} ${row.kind}`;
    results.set(key, [...(results.get(key) ?? []), row].slice(-SHOWN));
  }
  if (!declared.length) {
    el.replaceChildren(empty('No probe is declared', 'A container that runs counts as ready.'));
    return;
  }
  el.replaceChildren(...declared.map((probe) => strip(probe, results.get(`${probe.container} ${probe.kind}`) ?? [])));
}

const height = (value) => Math.min(26, 4 + Math.log10(Math.max(1, value)) * 7);

function strip(probe, rows) {
  const last = rows.at(-1);
  const failing = last?.verdict === 'failure';
  const width = 560;
  const step = width / SHOWN;
  const svg = h('svg', { viewBox: `0 0 ${width} 36`, preserveAspectRatio: 'none', role: 'img', tabindex: '0', 'aria-label': words(rows) });
  const limit = H - height(probe.timeout * 1000);
  svg.append(h('line.pb-lim', { x1: 0, x2: width, y1: limit, y2: limit }));
  const note = h('span');
  for (let i = 0; i < SHOWN; i++) {
    const row = rows[i - (SHOWN - rows.length)];
    const bar = h('g', null, ...mark(row, i * step + step * 0.16, step * 0.68));
    if (row) bar.addEventListener('pointerenter', () => note.replaceChildren(...told(row)));
    svg.append(bar);
  }
  let at = rows.length - 1;
  svg.addEventListener('keydown', (event) => {
    if (!rows.length || !event.key.startsWith('Arrow')) return;
    at = Math.max(0, Math.min(rows.length - 1, at + (event.key === 'ArrowLeft' ? -1 : 1)));
    note.replaceChildren(...told(rows[at]));
    event.preventDefault();
    event.stopPropagation();
  });
  const about = `${probe.target}, every ${duration(probe.period)}, timeout ${duration(probe.timeout)}, fails after ${probe.failures}`;
  return h('div.probe', { 'data-s': failing ? 'failing' : 'fine' },
    h('div.l', null, failing && h('span.state', null, icon('failing', 'failing')), h('b', null, foreign(`${probe.container} ${probe.kind}`)), h('span.dim', null, foreign(about)), h('span.end', null, last ? told(last) : 'not asked yet')),
    svg, h('div.ax', null, h('span', null, rows.length ? `${rows.length} results` : 'no result'), note, h('span', null, 'now')));
}

function mark(row, x, width) {
  if (!row || row.verdict === 'unknown') return [h('rect.pb-un', { x: x + 0.5, width: width - 1, y: 22, height: 8, rx: 1 })];
  const late = row.lateMs > LATE_MS || row.stalledMs > LATE_MS ? [h('rect.pb-late', { x, width, y: 33, height: 3 })] : [];
  if (row.verdict === 'failure') return [h('rect.pb-bad', { x, width, y: 2, height: 28, rx: 1 }), h('path.pb-x', { d: `M${x + width * 0.22} 12l${width * 0.56} 8M${x + width * 0.78} 12l${-width * 0.56} 8` }), ...late];
  const tall = height(row.totalMs);
  return [h('rect.pb-ok', { x, width, y: H - tall, height: tall, rx: 1 }), ...late];
}

function told(row) {
  const parts = [['dns', row.dnsMs], ['connect', row.connectMs], ['tls', row.tlsMs], ['first byte', row.firstByteMs]].filter(([, took]) => took != null).map(([name, took]) => `${name} ${ms(took)}`);
  return foreign([`${clock(row.at)} ${row.verdict}`, row.note, ms(row.totalMs), ...parts].filter(Boolean).join(', '));
}

function words(rows) {
  if (!rows.length) return 'No result yet';
  const count = (verdict) => rows.filter((row) => row.verdict === verdict).length;
  return `${rows.length} results, oldest first: ${count('success') + count('warning')} passed, ${count('failure')} failed; last: ${shown(rows.at(-1).note || rows.at(-1).verdict)}`;
}
