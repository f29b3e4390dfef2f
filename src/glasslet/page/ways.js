// The model of the waterfall: rows, parts and owners as the agent answers them, and time in which quiet stretches fold.

export const PARTIES = ['runtime', 'api', 'pod', 'waiting', 'held', 'away', 'glasslet', 'unnamed'];
export const NAMES = { runtime: 'runtime', api: 'API server', pod: 'pod itself', waiting: 'waiting', held: 'held', away: 'no agent ran', glasslet: 'glasslet', unnamed: 'without a name' };
const OF_AGENT = { runtime: 'runtime', API: 'api', pod: 'pod', waiting: 'waiting', held: 'held', 'no agent': 'away', glasslet: 'glasslet', '': 'unnamed' };
const LONG_MS = 2500;

export const partyOf = (who) => OF_AGENT[who] ?? 'waiting';

/** The trace at `now` (ms since the epoch): open spans reach to the end. `containers`: for what is not reached. */
export function modelOf(trace, now, containers = []) {
  const start = Date.parse(trace.start);
  const live = trace.milestone === 'now';
  const end = live ? Math.max(trace.totalMs, now - start) : trace.totalMs;
  const open = (until) => live && until >= trace.totalMs - 0.5;
  const rows = trace.rows.map((row) => {
    const parts = row.waits.map((wait) => ({
      party: partyOf(wait.who),
      what: wait.on || wait.kind,
      kind: wait.kind,
      from: Math.max(0, wait.startMs),
      to: open(wait.endMs) && !wait.outcome ? end : wait.endMs,
      outcome: wait.outcome === 'ok' ? '' : wait.outcome,
    }));
    const spans = row.spans.map((span) => [Math.max(0, span.startMs), row.open && open(span.endMs) ? end : span.endMs]);
    const state = row.open && parts.some((part) => part.party === 'held' && part.to === end) ? 'held' : row.outcome === 'failed' ? 'failing' : '';
    return { name: row.name, container: row.container, detail: row.detail, outcome: row.outcome === 'ok' ? '' : row.outcome, open: row.open && live, state, spans, parts, owners: spans.map(([a, b]) => owners(parts, a, b)) };
  });
  for (const gap of trace.gaps) {
    const span = [Math.max(0, Date.parse(gap.start) - start), Date.parse(gap.end) - start];
    if (span[0] < end) rows.push({ name: 'no agent ran', container: '', detail: '', outcome: '', open: false, state: '', spans: [span], parts: [], owners: [[['away', ...span]]], away: true });
  }
  const ledger = trace.ledger.map((span) => [partyOf(span.who), span.startMs, span.endMs]);
  if (live && ledger.length && end > trace.totalMs) ledger[ledger.length - 1][2] = end;
  if (live) rows.push(...unreached(rows, containers));
  return { start, end, live, milestone: trace.milestone, rows, ledger, sums: tally(ledger) };
}

/** Rows for what a start under way has not come to. */
function unreached(rows, containers) {
  const there = new Set(rows.map((row) => `${row.container} ${row.name}`));
  const later = (name, container = '') => ({ name, container, detail: '', outcome: '', open: false, state: '', spans: [], parts: [], owners: [], later: true });
  const missing = there.has(' sandbox') ? [] : [later('sandbox')];
  for (const { name } of containers.slice(0, 8)) if (!there.has(`${name} create, start`)) missing.push(later('create, start', name));
  return missing;
}

/** Who had each instant between two times: of the parts, the first party in the list that was at it, else glasslet. */
export function owners(parts, from, to) {
  const inside = parts.filter((part) => part.to > from && part.from < to);
  if (!inside.length) return [['glasslet', from, to]];
  const cuts = [...new Set([from, to, ...inside.flatMap((part) => [part.from, part.to])])].filter((t) => t >= from && t <= to).sort((a, b) => a - b);
  const found = [];
  for (let i = 0; i + 1 < cuts.length; i++) {
    const [a, b] = [cuts[i], cuts[i + 1]];
    let best = PARTIES.indexOf('glasslet');
    for (const part of inside) if (part.from <= a && part.to >= b) best = Math.min(best, PARTIES.indexOf(part.party));
    const last = found.at(-1);
    if (last?.[0] === PARTIES[best]) last[2] = b;
    else found.push([PARTIES[best], a, b]);
  }
  return found;
}

export function tally(ledger, from = -Infinity, to = Infinity) {
  const sums = {};
  for (const [who, a, b] of ledger) {
    const took = Math.min(b, to) - Math.max(a, from);
    if (took > 0) sums[who] = (sums[who] ?? 0) + took;
  }
  return sums;
}

/** Piecewise linear time: a stretch in which nothing begins or ends gets a fixed width. */
export class Folding {
  constructor(model, on) {
    const { end } = model;
    const cuts = new Set([0, end]);
    for (const row of model.rows) {
      for (const [a, b] of row.spans) { cuts.add(a); cuts.add(b); }
      for (const part of row.parts) { cuts.add(part.from); cuts.add(part.to); }
    }
    const sorted = [...cuts].filter((t) => t >= 0 && t <= end).sort((a, b) => a - b);
    const quiet = [];
    for (let i = 0; i + 1 < sorted.length; i++)
      if (sorted[i + 1] - sorted[i] > Math.max(LONG_MS, end * 0.004)) quiet.push([sorted[i], sorted[i + 1]]);
    this.canFold = quiet.length > 0;
    this.segments = [];
    const folds = on ? quiet : [];
    const busy = end - folds.reduce((sum, [a, b]) => sum + b - a, 0);
    const width = Math.max(busy, 200) * (folds.length > 3 ? 0.1 : 0.34);
    let t = 0;
    let u = 0;
    const add = (until, length, fold) => { this.segments.push({ t0: t, t1: until, u0: u, u1: u + length, fold }); t = until; u += length; };
    for (const [a, b] of folds) {
      if (a > t) add(a, a - t, false);
      add(b, width, true);
    }
    if (end > t) add(end, end - t, false);
    this.end = end;
    this.length = u || 1;
  }

  place(time) {
    const seg = this.segments.find((one) => time <= one.t1) ?? this.segments.at(-1);
    if (!seg) return 0;
    return seg.u0 + ((Math.min(time, this.end) - seg.t0) / (seg.t1 - seg.t0 || 1)) * (seg.u1 - seg.u0);
  }

  time(place) {
    const seg = this.segments.find((one) => place <= one.u1) ?? this.segments.at(-1);
    if (!seg) return 0;
    return seg.t0 + ((place - seg.u0) / (seg.u1 - seg.u0 || 1)) * (seg.t1 - seg.t0);
  }
}
