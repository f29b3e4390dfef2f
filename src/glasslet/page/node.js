// Node: is this node well, and what hurts it?

import { get } from './agent.js';
import { card, foreign, h, isNew, empty, icon, line, podName, setAttr, setText, shown, bones } from './dom.js';
import { podLink } from './router.js';
import { age, clock, ms } from './words.js';

const BAD = ['failing', 'held', 'waiting'];
const SHOWN = 12;
const WAITS = 8;
const NEAR = 0.8;

export function nodeView(context) {
  return new NodePage(context);
}

class NodePage {
  constructor(context) {
    this.context = context;
    this.title = 'Node';
    this.all = false;
    this.seen = {};
    this.lead = h('div.lead', null, bones(2));
    this.count = h('span.chip', null, '0');
    this.worst = h('div', null, bones(4));
    this.runtimeHint = h('span.hint');
    this.apiHint = h('span.hint');
    this.runtime = h('div', null, bones(4));
    this.api = h('div', null, bones(3));
    this.pressure = h('div.pad', null, bones(4));
    this.pressureHint = h('span.hint');
    this.order = h('div');
    this.next = h('details.gauge', { ontoggle: () => this.next.open && this.fillNext() }, h('summary', null, 'Who would go next, and why'), this.order);
    this.waits = h('div.pad', null, bones(4));
    this.waitsHint = h('span.hint');
    this.el = [h('h1.sr', null, 'Node'), h('div.grid.of-node', null,
      h('section.card.c12', { 'aria-label': 'Verdict' }, this.lead),
      h('div.c7.stack', null, card('w', 'Not as it should be', [this.count, h('span.hint', null, 'worst first; Enter opens the pod')], this.worst), card('r', 'The runtime as it answers', this.runtimeHint, this.runtime), card('a', 'The API server as it answers', this.apiHint, this.api)),
      h('div.c5.stack', null, card('p', 'Pressure', this.pressureHint, this.pressure, h('div.pad', null, this.next)), card('m', 'What waits most', this.waitsHint, this.waits)))];
  }

  update() {
    const { context } = this;
    if (!context.ready()) return;
    const agent = context.value('node.agent');
    this.once('verdict', context.value('node.verdict'), agent, (verdict) => this.fillVerdict(verdict, agent));
    this.fillWorst();
    const calls = context.value('node.calls');
    this.once('calls', calls, null, () => this.fillCalls(calls, agent));
    this.once('pressure', context.value('node.pressure'), null, (pressure) => this.fillPressure(pressure));
    this.once('waits', context.value('node.waits'), null, ({ waits }) => this.fillWaits(waits));
  }

  once(name, value, also, act) {
    if (!value || (this.seen[name] === value && this.seen[`${name} also`] === also)) return;
    this.seen[name] = value;
    this.seen[`${name} also`] = also;
    act(value);
  }

  fillVerdict(verdict, agent) {
    const facts = agent ? [['pods', `${agent.desiredPods} wanted, ${agent.runtimePods} in the runtime`], ['agent', `pid ${agent.pid}`], ['version', agent.version], ['runtime', agent.runtime], ['record', agent.record]] : [];
    const up = agent?.startedAt && h('span', null, 'up ', h('b', { 'data-since': agent.startedAt }, age(this.context.now(), agent.startedAt)));
    setAttr(this.lead, 'data-s', verdict.state);
    const findings = (agent?.findings ?? []).slice(0, 5);
    this.lead.replaceChildren(h('span.state', null, icon(verdict.state, verdict.state)), h('div.grow', null, h('h2.big', null, foreign(verdict.sentence)),
      verdict.nextStep && h('p', null, 'Next: ', foreign(verdict.nextStep)),
      verdict.evidence.length > 0 && h('div.facts', null, verdict.evidence.map(({ label, text }) => h('span', null, `${label} `, h('b', null, foreign(text))))),
      h('div.facts', null, facts.filter(([, text]) => text).map(([name, text]) => h('span', null, `${name} `, h('b', null, foreign(text)))), up),
      findings.length > 0 && h('ul.findings', null, findings.map((text) => h('li', null, icon('failing', 'finding'), ' ', foreign(text))))));
  }

  /** The troubles as the agent has them, worst first, each with its cause as a sentence. */
  fillWorst() {
    const answer = this.context.value('node.troubles');
    if (!answer) return;
    const rows = answer.troubles.filter(({ wrong, verdict }) => wrong || BAD.includes(verdict.state));
    if (!isNew(this.worst, [rows, answer.leftOut, this.all])) return;
    setText(this.count, String(rows.length + answer.leftOut));
    if (!rows.length) return this.worst.replaceChildren(empty('Everything is as it should be', 'What fails, waits or is held comes here, with its cause.'));
    const some = this.all ? rows : rows.slice(0, SHOWN);
    const focused = document.activeElement?.closest?.('.worst') && document.activeElement.getAttribute('href');
    this.worst.replaceChildren(h('ul.worst', null, some.map((trouble) => this.trouble(trouble))),
      rows.length > some.length ? h('div.more', null, h('button.btn.small', { onclick: () => { this.all = true; this.fillWorst(); } }, `all ${rows.length}`)) : '');
    if (focused) [...this.worst.querySelectorAll('a')].find((a) => a.getAttribute('href') === focused)?.focus({ preventScroll: true });
  }

  trouble({ subject, verdict }) {
    const isPod = subject === 'pod';
    const full = `${verdict.namespace}/${verdict.name}`;
    const sentence = isPod && verdict.sentence.startsWith(`${full} `) ? verdict.sentence.slice(full.length + 1) : verdict.sentence;
    const since = verdict.since && h('span', { 'data-since': verdict.since }, age(this.context.now(), verdict.since));
    const name = isPod ? podName(verdict) : foreign(verdict.name.split('/').at(-1) || subject);
    return line(isPod ? podLink(verdict) : '#node', verdict.state, name, sentence, since || (isPod ? '' : subject));
  }

  fillCalls(calls, agent) {
    const hint = calls.seconds ? 'last 5 min' : 'since the agent’s start';
    setText(this.runtimeHint, shown(`${agent?.runtime ?? ''} · ${hint}`));
    setText(this.apiHint, hint);
    const problem = agent?.runtimeError;
    this.runtime.replaceChildren(problem ? empty('The runtime does not work', ...foreign(problem)) : callTable(calls.runtime, '', 'CRI calls'));
    this.api.replaceChildren(callTable(calls.api, 'api', 'Requests to the API server'));
  }

  fillPressure(pressure) {
    if (pressure.problem) return this.pressure.replaceChildren(empty('Not known', ...foreign(pressure.problem)));
    const states = pressure.rows.map((row) => pressureState(row));
    setText(this.pressureHint, states.includes('failing') ? 'evicts now' : states.includes('waiting') ? 'close to its line' : 'none now');
    this.pressure.replaceChildren(...pressure.rows.map((row, i) => gauge(row, states[i], this.context.now())));
  }

  /** Asked for when it is opened: reading all pods costs. */
  async fillNext() {
    const { problem, sentence, order } = await get('v1/node/eviction').catch(({ message }) => ({ problem: message, order: [] }));
    this.order.replaceChildren(h('p.how', null, foreign(problem || sentence)), h('ul.worst', null, order.slice(0, SHOWN).map(({ pod, words, stays }, i) => {
      const [namespace, name] = pod.split('/');
      return line(podLink({ namespace, name }), stays ? 'fine' : 'waiting', podName({ namespace, name }), words, `${i + 1}.`);
    })));
  }

  fillWaits(waits) {
    const some = waits.filter((wait) => wait.pod).slice(0, WAITS);
    setText(this.waitsHint, `${some.length} of ${waits.length} waits`);
    if (!some.length) return this.waits.replaceChildren(empty('No pod waits', 'Waits come here with what ends them.'));
    const now = this.context.now();
    const longest = Math.max(...some.map((wait) => now - Date.parse(wait.since)), 1);
    this.waits.replaceChildren(...some.map((wait) => {
      const took = now - Date.parse(wait.since);
      const [namespace, name] = wait.pod.split('/');
      return h('a.waitrow', { href: podLink({ namespace, name }) }, h('span', null, h('b.k', null, wait.kind.replaceAll('_', ' ')), h('small', null, '  ', foreign(`${wait.on}, ${wait.pod}`))),
        h('span', null, h('span', { 'data-since': wait.since }, age(now, wait.since)), h('small', null, wait.until ? ` · until ${clock(wait.until)}` : '')),
        h('span.bar', { 'aria-hidden': 'true' }, h('i', { class: wait.kind === 'pause' ? 'stripe' : 'hatch', css: { width: `${(took / longest) * 100}%` } })));
    }));
  }
}

function pressureState({ capacity, available, line }) {
  if (line == null) return 'fine';
  if (available <= line) return 'failing';
  return (capacity - available) / (capacity - line) > NEAR ? 'waiting' : 'fine';
}

function gauge({ resource, capacity, available, line, free, how, at }, state, now) {
  const used = (capacity - available) / capacity;
  const mark = line == null ? null : (capacity - line) / capacity;
  const label = `${Math.round(used * 100)} % used${mark === null ? '' : `, acts at ${Math.round(mark * 100)} %`}`;
  return h('div.gauge', { 'data-s': state }, h('div.l', null, state !== 'fine' && h('span.state', null, icon(state, 'close to its limit')), h('b', null, resource), h('span', null, `${free} free`)),
    h('div.meter', { role: 'img', 'aria-label': label }, h('i', { css: { width: `${used * 100}%` } }), mark !== null && h('u', { css: { left: `${mark * 100}%` } })),
    h('p.how', null, foreign(how), at && [', ', h('span', { 'data-since': at }, age(now, at)), ' old']));
}

const scale = (value) => 4 + Math.max(0, Math.min(1, (Math.log10(Math.max(value, 0.5)) - Math.log10(0.5)) / (Math.log10(60000) - Math.log10(0.5)))) * 92;

function callTable(rows, kind, caption) {
  if (!rows.length) return empty('No call yet', 'Their times come here, from 0.5 ms to 1 min.');
  const head = [['call', ''], ['0.5 ms to 1 min, log', 'dist'], ['p50', 'num'], ['p90', 'num p90'], ['p99', 'num'], ['calls', 'num n5']];
  return h('table.calls-t', null, h('caption.sr', null, caption), h('thead', null, h('tr', null, head.map(([text, of]) => h('th', { scope: 'col', class: of }, text)))),
    h('tbody', null, rows.slice(0, 14).map((row) => {
      const x = (value) => `${scale(value)}%`;
      const words = `p50 ${ms(row.p50Ms)}, p90 ${ms(row.p90Ms)}, p99 ${ms(row.p99Ms)}`;
      return h('tr', null, h('th.rowh', { scope: 'row' }, foreign(row.call), row.slow && h('span.state', { 'data-s': 'waiting' }, ' ', icon('waiting', 'three times slower than usual'))),
        h('td.dist', { class: `${kind} ${row.slow ? 'slow' : ''}` }, h('svg', { role: 'img', 'aria-label': words }, h('line.axis', { x1: '0', x2: '100%', y1: 8, y2: 8 }), h('line.tail', { x1: x(row.p50Ms), x2: x(row.p99Ms), y1: 8, y2: 8 }), h('rect.box', { x: x(row.p50Ms), width: `${Math.max(0.8, scale(row.p90Ms) - scale(row.p50Ms))}%`, y: 4, height: 8, rx: 2 }), h('rect.mid', { x: x(row.p50Ms), y: 3, width: 3, height: 10, rx: 1 }), h('line.tail', { x1: x(row.p99Ms), x2: x(row.p99Ms), y1: 5, y2: 11 }))),
        h('td.num', null, ms(row.p50Ms)), h('td.num.p90.dim', null, ms(row.p90Ms)), h('td.num.dim', null, ms(row.p99Ms)), h('td.num.dim.n5', null, String(row.count)));
    })));
}
