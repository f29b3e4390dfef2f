// One pod: why is it so, where did the time go, what was decided? One long page, no tabs.

import { $, $$, Keyed, bones, card, copy, empty, foreign, h, icon, isNew, podName, say, setAttr, shown } from './dom.js';
import { HoldBar } from './hold.js';
import { Logs } from './logs.js';
import { fillProbes } from './probes.js';
import { go, podLink } from './router.js';
import { Waterfall } from './waterfall.js';
import { age, clock, dateTime, ms } from './words.js';

const SECTIONS = [['why', 'Why'], ['way', 'Its way'], ['containers', 'Containers'], ['probes', 'Probes'], ['decisions', 'Decisions'], ['events', 'Events'], ['logs', 'Logs']];
const EVENT_ICONS = { station: 'fine', wait: 'waiting', decision: 'next', observed: 'starting', finding: 'failing', gap: 'ended' };
const NEWEST = 5;
const FEW = 2;
const KEPT = 400;
const COMMAND = /^(.*?)[:;,]?\s*[`(]?((?:kubectl|glasslet|crictl|systemctl|ctr|journalctl) [^`);,]+)[`)]?(.*)$/s;

export function podView(context, route) {
  const [namespace = '', name = ''] = route.path;
  return new PodPage(context, namespace, name);
}

class PodPage {
  constructor(context, namespace, name) {
    this.context = context;
    this.namespace = namespace;
    this.name = name;
    this.title = shown(`${namespace}/${name}`);
    this.seen = {};
    this.allDecisions = false;
    this.kind = '';
    this.kept = new Map();
    this.rowOf = new WeakMap();
    this.build();
  }

  build() {
    this.chip = h('span');
    this.crumb = h('div.crumb', null, h('a', { href: '#pods' }, 'Pods'), h('span', null, '/'), h('h1', null, podName(this)), this.chip,
      h('div.move', null, h('a.btn.small', { id: 'before', href: '#pods', 'aria-label': 'Previous pod' }, h('kbd', null, '[')), h('a.btn.small', { id: 'after', href: '#pods', 'aria-label': 'Next pod' }, h('kbd', null, ']')), h('a.btn.small', { href: this.breakLink() }, icon('held'), 'Break…', h('kbd', null, 'b'))));
    this.say = h('div.in', null, bones(4));
    this.hold = new HoldBar(this);
    this.verdict = h('section.card.verdict.c8', { id: 'why', 'aria-label': 'Verdict' }, this.say, this.hold.el);
    this.facts = h('section.card.c4', { 'aria-label': 'Facts' }, bones(6));
    this.jump = h('nav.jump', { 'aria-label': 'On this page' }, SECTIONS.map(([id, text]) => h('a', { href: location.hash, onclick: (event) => { event.preventDefault(); this.jumpTo(id); } }, text)));
    this.waterfall = new Waterfall(this.context, () => this, (row) => this.markDecisions(row));
    this.containers = h('tbody');
    this.containerRows = new Keyed(this.containers, { make: () => h('tr'), update: (tr, row) => this.fillContainer(tr, row) });
    this.probes = h('div');
    this.decisions = h('div');
    this.events = h('div');
    this.kinds = h('select', { 'aria-label': 'Kind of events', onchange: () => { this.kind = this.kinds.value; this.fillEvents(); } }, h('option', { value: '' }, 'all kinds'), Object.keys(EVENT_ICONS).map((kind) => h('option', { value: kind }, kind)));
    this.logs = new Logs(this);
    this.el = [this.crumb, h('div.grid.pair', null, this.verdict, this.facts), this.jump, h('div.grid', null,
      h('div.c12', null, this.waterfall.el),
      h('div.c6.stack', null, card('containers', 'Containers', null, h('table.cont', null, h('caption.sr', null, 'Containers'), this.containers)), card('probes', 'Probes', null, this.probes)),
      h('div.c6.stack', null, card('decisions', 'Decisions and their inputs', h('span.hint', null, 'newest first'), this.decisions)),
      h('div.c6', null, card('events', 'Events', h('span.hint', null, this.kinds), this.events)),
      h('div.c6', null, this.logs.el))];
  }

  breakLink() {
    return `#stations?pod=${encodeURIComponent(`${this.namespace}/${this.name}`)}`;
  }

  jumpTo(id) {
    const smooth = !matchMedia('(prefers-reduced-motion: reduce)').matches;
    $(`#${id}`).scrollIntoView({ block: 'start', behavior: smooth ? 'smooth' : 'auto' });
  }

  update() {
    const { context } = this;
    const verdict = context.value('pod.verdict');
    const description = context.value('pod.description');
    const trace = context.value('pod.trace');
    if (!verdict || verdict.name !== this.name || verdict.namespace !== this.namespace) return;
    const row = context.pod(this.namespace, this.name) ?? description?.pod;
    this.row = row;
    this.once('verdict', verdict, () => this.fillVerdict(verdict));
    this.once('chip', verdict.state, () => this.chip.replaceChildren(h('span.chip', { 'data-s': verdict.state }, icon(verdict.state), verdict.state)));
    this.once('trace', trace, () => trace && this.waterfall.show(trace, this.containersOf(description)));
    this.hold.show(row?.hold ?? null);
    this.neighbours();
    if (!description) return this.fillGone(verdict);
    this.once('description', description, () => {
      this.fillFacts(description);
      this.containerRows.show(description.containers.map((one) => [one.name, one]));
      fillProbes(this.probes, description.probeDescriptions ?? [], this.results(description.probes));
      this.fillDecisions();
      this.fillEvents();
      this.logs.offer(description.containers);
    });
  }

  once(name, value, act) {
    if (this.seen[name] === value) return;
    const before = this.seen[name];
    this.seen[name] = value;
    act();
    if (name === 'chip' && before) say(`${this.name} is ${value}`);
  }

  /** The probes' results that this page has seen: the agent keeps fewer than a strip shows. */
  results(rows) {
    for (const row of rows) this.kept.set(`${row.container} ${row.kind} ${row.at}`, row);
    const all = [...this.kept].sort(([, a], [, b]) => (a.at < b.at ? -1 : 1));
    this.kept = new Map(all.slice(-KEPT));
    return [...this.kept.values()];
  }

  containersOf(description) {
    return description?.containers.filter((one) => one.kind !== 'ephemeral') ?? [];
  }

  missing(text) {
    let reason = 'no such pod';
    try { reason = JSON.parse(text).error; } catch { /* the words above */ }
    this.el = [this.crumb, h('section.card', null, empty('No such pod here', `${shown(reason)}. It may be on another node, or it left more than 7 days ago.`))];
    $('#main').replaceChildren(...this.el);
  }

  fillGone(verdict) {
    this.facts.replaceChildren(h('dl.kv', null, h('dt', null, 'state'), h('dd', null, verdict.state), h('dt', null, 'on this node'), h('dd', null, 'no more; this is its record')));
  }

  fillVerdict(verdict) {
    setAttr(this.verdict, 'data-s', verdict.state);
    const next = verdict.nextStep && this.nextStep(verdict.nextStep);
    this.say.replaceChildren(
      h('div.say', null, icon(verdict.state, verdict.state), h('p', null, foreign(verdict.sentence))),
      h('p.since', null, verdict.since ? [`since ${clock(verdict.since)} (`, h('span', { 'data-since': verdict.since }, age(this.context.now(), verdict.since)), ')'] : '', ' ', h('span.rule', { title: `rule ${verdict.rule}: glasslet why --explain ${verdict.rule}` }, verdict.rule)),
      h('dl.evid', null, verdict.evidence.map(({ label, text }, i) => [h('dt', null, label), h('dd', { class: i === 0 ? 'strong' : '' }, foreign(text))]), verdict.rest && [h('dt', null, 'the rest'), h('dd', null, foreign(verdict.rest))]),
      next ?? '');
  }

  /** The next step as a box; a command in it can be copied. */
  nextStep(text) {
    const [, before, command, after] = COMMAND.exec(text) ?? [];
    return h('div.next', null, icon('next'), h('b', null, foreign(command ? before || 'run' : text)), command && h('code', null, foreign(command.trim())),
      command && h('button.ib', { 'aria-label': 'Copy the command', onclick: () => copy(command.trim()) }, icon('copy')), after?.trim() && h('span.dim', null, foreign(after.replace(/^[;,]\s*/, ''))));
  }

  fillFacts(description) {
    const { pod } = description;
    const line = (name, value, kind = '') => value && [h('dt', null, name), h('dd', { class: kind }, foreign(value))];
    const conditions = description.conditions.map((one) => `${one.type} ${one.status}${one.reason ? ` (${one.reason})` : ''}`);
    const labels = Object.entries(description.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    const fold = (name, rows) => rows.length > 0 && (rows.length <= FEW ? line(name, rows.join(', ')) : [h('dt', null, name), h('dd', null, h('details', { open: this.open?.has(name) }, h('summary', null, String(rows.length)), h('ul', null, rows.map((row) => h('li', null, foreign(row))))))]);
    this.open = new Set($$('details[open]', this.facts).map((el) => el.parentElement.previousElementSibling.textContent));
    this.facts.replaceChildren(h('dl.kv', null, line('phase', pod.phase), line('ready', `${pod.ready} of ${pod.containers}`), line('restarts', String(pod.restarts)), line('address', description.ips.join(', ') || 'none yet'),
      line('created', dateTime(pod.created)), line('source', description.source), line('quality of service', description.qosClass), line('restart policy', description.restartPolicy),
      line('grace period', description.gracePeriod == null ? '' : `${description.gracePeriod} s`), fold('volumes', description.volumes), fold('labels', labels), fold('conditions', conditions), fold('findings', description.findings), line('uid', pod.uid, 'mono')));
  }

  fillContainer(tr, row) {
    if (!isNew(tr, row)) return;
    const state = row.state === 'running' ? (row.ready ? 'fine' : 'starting') : row.state === 'terminated' ? (row.exitCode ? 'failing' : 'ended') : /BackOff|Err/.test(row.reason) ? 'failing' : 'waiting';
    const words = [row.state, row.reason && `: ${row.reason}`, row.exitCode != null && `, exit ${row.exitCode}`, row.lastExitCode != null && `; last run: exit ${row.lastExitCode} ${row.lastReason}`].filter(Boolean).join('');
    setAttr(tr, 'data-s', state);
    tr.replaceChildren(h('td.ic', null, h('span.state', null, icon(state, row.state))), h('th.rowh', { scope: 'row' }, foreign(row.name), ' ', h('span.dim', null, row.kind)), h('td.dim.im', null, h('code', null, foreign(row.image))), h('td', { title: row.message }, foreign(words)), h('td.num.dim', null, row.restarts ? `${row.restarts} restarts` : ''));
  }

  /** All events that are known: the timeline of the description, and the trace's later ones. */
  timeline() {
    const newest = this.context.value('pod.description')?.timeline ?? [];
    const begin = newest.length ? Date.parse(newest[0].at) - 5 : Infinity;
    const older = (this.context.value('pod.trace')?.later ?? []).filter((row) => Date.parse(row.at) < begin);
    return [...older, ...newest].sort((a, b) => (a.at < b.at ? 1 : -1));
  }

  fillDecisions() {
    const rows = this.timeline().filter((row) => row.kind === 'decision');
    const some = this.allDecisions ? rows : rows.slice(0, NEWEST);
    const more = rows.length - some.length;
    this.decisions.replaceChildren(...(rows.length ? some.map((row) => this.decision(row)) : [empty('No decision was recorded', 'They come with the first plan.')]),
      ...(more > 0 ? [h('div.more', null, h('button.btn.small', { onclick: () => { this.allDecisions = true; this.fillDecisions(); } }, `${more} earlier`))] : []));
  }

  decision(row) {
    const inputs = row.inputs ?? [];
    const tail = ` (${inputs.map(({ name, value }) => `${name}=${value}`).join(', ')})`;
    const what = row.text.endsWith(tail) ? row.text.slice(0, -tail.length) : row.text;
    const at = () => this.waterfall.model?.rows.length ? this.waterfall.rowAfter(row.at, row.container) : -1;
    const point = () => { if (at() >= 0) this.waterfall.pick(at(), -1, false); };
    const el = h('div.dec', { tabindex: '0', onpointerenter: point, onfocus: point }, h('time', { datetime: row.at, title: dateTime(row.at) }, clock(row.at)), h('div.what', null, foreign(row.container ? `${row.container}: ${what}` : what)),
      h('div.in', null, inputs.map(({ name, value, tipped }) => h('span.arg', { class: tipped ? 'key' : '' }, h('span', null, foreign(name.replaceAll('_', ' '))), h('code', null, foreign(value))))));
    this.rowOf.set(el, at);
    return el;
  }

  /** The decisions that led to a row of the waterfall. */
  markDecisions(row) {
    for (const el of this.decisions.children) el.classList.toggle('on', this.rowOf.get(el)?.() === row);
  }

  fillEvents() {
    const rows = this.timeline().filter((row) => (this.kind ? row.kind === this.kind : row.kind !== 'decision')).slice(0, 60);
    this.events.replaceChildren(...(rows.length ? rows.map((row) => {
      const failed = row.outcome === 'failed' || row.outcome === 'cut';
      return h('div.ev', { 'data-s': failed ? 'failing' : '' }, h('time', { datetime: row.at, title: dateTime(row.at) }, clock(row.at)), icon(failed ? 'failing' : (EVENT_ICONS[row.kind] ?? 'next'), row.kind), h('span', null, foreign(row.container ? `${row.container}: ${row.text}` : row.text), failed ? ` (${row.outcome})` : ''), h('span.took', null, row.tookMs ? ms(row.tookMs) : ''));
    }) : [empty('No event of this kind', this.kind ? 'Choose all kinds to see the others.' : 'Nothing was recorded yet.')]));
  }

  neighbours() {
    const order = this.context.order.length ? this.context.order : this.context.pods().sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
    const at = order.findIndex((row) => row.namespace === this.namespace && row.name === this.name);
    if (at < 0 || !$('#before')) return;
    setAttr($('#before'), 'href', podLink(order[(at + order.length - 1) % order.length]));
    setAttr($('#after'), 'href', podLink(order[(at + 1) % order.length]));
  }

  tick() {
    this.hold.tick();
    const trace = this.context.value('pod.trace');
    if (trace?.milestone === 'now' && this.waterfall.trace === trace) this.waterfall.show(trace, this.waterfall.containers);
  }

  away(isAway) {
    this.hold.away(isAway);
  }

  recolour() {
    this.waterfall.recolour();
  }

  close() {
    this.waterfall.close();
    this.logs.close();
  }

  async copyAll() {
    const verdict = this.context.value('pod.verdict');
    if (verdict) await copy([verdict.sentence, ...verdict.evidence.map(({ label, text }) => `  ${label}: ${text}`), verdict.rest && `  the rest: ${verdict.rest}`, verdict.nextStep && `  next: ${verdict.nextStep}`].filter(Boolean).join('\n'));
  }

  keys(event, typing) {
    const { key } = event;
    if (typing) return false;
    if (key === '[') $('#before').click();
    else if (key === ']') $('#after').click();
    else if (key === 'b') go(this.breakLink());
    else if (key === 'y') this.copyAll();
    else if (key === '.' || key === 'c' || key === 'i') return this.hold.key(key);
    else if (key === 'Escape') go('pods');
    else if (!event.target.closest('.log, .jump')) return this.waterfall.keys(event);
    else return false;
    return true;
  }
}
