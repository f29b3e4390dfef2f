// Stations: where do pods stand, and where do I stop one? A live map of the way, with a form for breaks.

import { AgentError, get, post, refusal, remove } from './agent.js';
import { empty, foreign, h, icon, isNew, line, podName, say, setAttr, setText } from './dom.js';
import { podLink } from './router.js';
import { clock, duration, ms } from './words.js';

/* name, column, row, what a pod can wait for there */
/** @type {[string, number, number, string][]} */
const STATIONS = [
  ['seen', 1, 1, 'API watch, file, http'], ['merged', 2, 1, ''], ['admitted', 3, 1, 'device plugins'], ['woken', 4, 1, 'the step before, back-off'], ['planned', 5, 1, ''],
  ['cgroup', 1, 2, 'systemd'], ['volumes', 2, 2, 'attach, CSI, objects'], ['sandbox', 3, 2, 'CRI, CNI'], ['image', 4, 2, 'queue, bytes, back-off'], ['init', 5, 2, 'exits, startup probes'], ['created', 6, 2, 'CRI'], ['started', 7, 2, 'CRI, postStart'], ['probes', 8, 2, 'schedule, threshold'], ['status', 9, 2, 'API call'],
  ['stopping', 8, 3, 'preStop, TERM, grace, KILL'], ['gone', 9, 3, 'unmount, API'],
];
const ALSO = ['plan', 'cri:RunPodSandbox', 'cri:CreateContainer', 'cri:StartContainer', 'cri:StopContainer'];
const FROM_ROW = { 'seen, merged, admitted': 'admitted', 'create, start': 'created', 'status accepted': 'status', 'runtime read': 'planned', 'runs to its end': 'init' };
const MARKS = 12;
const AGAIN_MS = 3000;

export function stationsView(context, route) {
  return new StationsPage(context, route.params);
}

class StationsPage {
  constructor(context, params) {
    this.context = context;
    this.title = 'Stations';
    const at = params.get('at') ?? '';
    this.at = FROM_ROW[at] ?? (STATIONS.some(([name]) => name === at) ? at : 'sandbox');
    this.breaks = [];
    this.problem = '';
    this.cards = new Map();
    this.summary = h('span.dim');
    this.svg = h('svg', { 'aria-hidden': 'true' });
    this.map = h('div.map', { role: 'group', 'aria-label': 'Stations of a pod’s way' }, this.svg);
    this.here = h('section.card', { 'aria-labelledby': 'at-h' });
    this.form = this.makeForm(params.get('pod') ?? '');
    this.list = h('div');
    for (const station of STATIONS) this.map.append(this.card(station));
    this.rest = h('a.stn.rest', { href: '#pods?state=fine' }, h('span.nm', null, 'at rest, as it should be'), h('span.ct', null, '0'), h('span.p', null, 'probes and timers wake a worker when something changes'));
    this.rest.style.setProperty('grid-column', '6 / 8');
    this.rest.style.setProperty('grid-row', '1');
    this.map.append(this.rest);
    this.el = [h('h1.sr', null, 'Stations'), h('div.stack', null,
      h('section.card', { 'aria-label': 'Map' }, h('header', null, h('h2', null, 'Where pods stand'), this.summary, h('span.hint', null, 'a click shows which pods stand there and sets a break')), this.map),
      h('div.stands', null, this.here, h('div.stack', null, h('section.card', { 'aria-labelledby': 'br-h' }, this.form), h('section.card', { 'aria-labelledby': 'bs-h' }, h('header', null, h('h2', { id: 'bs-h' }, 'Breaks')), this.list))))];
    this.observer = new ResizeObserver(() => this.wire());
    this.observer.observe(this.map);
    this.timer = setInterval(() => this.askBreaks(), AGAIN_MS);
    this.askBreaks();
  }

  close() {
    clearInterval(this.timer);
    this.observer.disconnect();
  }

  card(station) {
    const [name, column, row] = station;
    const parts = { mark: h('span'), count: h('span'), more: h('span.sr'), dots: h('span.dots'), p: h('span.p') };
    const el = h('button.stn', { css: { 'grid-column': column, 'grid-row': row }, onclick: () => this.choose(name) }, h('span.nm', null, name, parts.mark), h('span.ct', null, parts.count, parts.more), parts.dots, parts.p);
    this.cards.set(name, { el, ...parts });
    return el;
  }

  choose(name) {
    this.at = name;
    this.form.elements.at.value = name;
    this.update();
  }

  update() {
    if (!this.context.ready()) return;
    const pods = this.context.pods();
    const resting = pods.filter((pod) => pod.state === 'fine').length;
    const held = pods.filter((pod) => pod.hold).length;
    setText(this.summary, `${pods.length} pods, ${pods.length - resting} on their way${held ? `, ${held} held` : ''}`);
    setText(this.rest.querySelector('.ct'), String(resting));
    const times = this.context.value('stations.times')?.times ?? [];
    for (const [name, , , waits] of STATIONS) this.fillCard(name, pods.filter((pod) => pod.station === name), waits, times.find((one) => one.station === name));
    this.fillHere(pods.filter((pod) => pod.station === this.at));
    setText(this.form.querySelector('#br-h'), `Break at ${this.form.elements.at.value}`);
    requestAnimationFrame(() => this.wire());
  }

  fillCard(name, here, waits, time) {
    const card = this.cards.get(name);
    const breaks = this.breaks.filter((one) => one.at === name);
    setAttr(card.el, 'aria-pressed', String(name === this.at));
    if (!isNew(card, [here.map((pod) => [pod.uid, pod.state]), breaks.map((one) => one.number), time])) return;
    card.el.classList.toggle('brk', breaks.length > 0);
    card.mark.replaceChildren(breaks.length ? icon('held') : '');
    setText(card.count, String(here.length));
    card.count.parentElement.classList.toggle('zero', !here.length);
    setText(card.more, `${here.length === 1 ? ' pod' : ' pods'}${breaks.length ? `; break ${breaks.map((one) => one.number).join(', ')} stands here` : ''}`);
    card.dots.replaceChildren(...here.slice(0, MARKS).map(dot), here.length > MARKS ? `+${here.length - MARKS}` : '');
    setText(card.p, time ? `p50 ${ms(time.p50Ms)}` : waits);
    setAttr(card.p, 'title', time && `${time.count} passed`);
  }

  fillHere(here) {
    const waits = STATIONS.find(([name]) => name === this.at)?.[3] ?? '';
    if (!isNew(this.here, [this.at, here.map((pod) => [pod.uid, pod.state, pod.now])])) return;
    this.here.replaceChildren(h('header', null, h('h2', { id: 'at-h' }, `Stands at ${this.at}`), h('span.chip', null, String(here.length))), h('p.fine-print', null, waits ? `What it can wait for: ${waits}.` : 'It waits for nothing.'),
      here.length ? h('ul.worst', null, here.map((pod) => line(podLink(pod), pod.state, podName(pod), pod.now, pod.since && h('span', { 'data-since': pod.since })))) : empty('No pod stands here', 'Most stations take milliseconds. A break holds the next pod that comes.'));
  }

  makeForm(pod) {
    const text = (name, label, value, props = {}) => h('label', null, label, h('input', { type: 'text', name, value, ...props }));
    const choice = (name, label, rows) => h('label', null, label, h('select', { name }, rows.map(([value, words]) => h('option', { value }, words))));
    const form = h('form.form', { onsubmit: (event) => { event.preventDefault(); this.set(); }, oninput: () => this.willMatch() },
      h('h2', { id: 'br-h' }, 'Break at sandbox'),
      h('div.r', null, choice('at', 'Where', [...STATIONS.map(([name]) => [name, name]), ...ALSO.map((name) => [name, name])]), choice('after', 'When', [['', 'before its work'], ['1', 'after its work']])),
      h('div.r', null, text('pod', 'Pods (NAMESPACE/NAME, * and ?)', pod, { placeholder: 'shop/web-*' }), text('selector', 'Label selector', '', { placeholder: 'app=web' })),
      text('when', 'Condition (CEL), optional', '', { class: 'mono', placeholder: 'container == "main" && attempt >= 2' }),
      h('div.r', null, choice('hold', 'Hold at most', [['600', '10 min'], ['120', '2 min'], ['1800', '30 min']]), choice('count', 'How often', [['0', 'every time'], ['1', 'once'], ['3', '3 times']])),
      h('p.will'), h('p.error', { role: 'status' }), h('div', { 'data-s': 'held' }, h('button.btn.main', { type: 'submit' }, icon('held'), 'Set the break')));
    form.elements.at.value = this.at;
    form.elements.at.addEventListener('change', () => this.choose(form.elements.at.value));
    refusal().then((why) => {
      const button = form.querySelector('button');
      button.disabled = Boolean(why);
      setAttr(button, 'title', why || null);
      if (why) form.querySelector('.error').textContent = why;
    });
    queueMicrotask(() => this.willMatch());
    return form;
  }

  /** A live line: how many pods the pattern fits now. Selectors and conditions are the agent's to judge. */
  willMatch() {
    const pattern = this.form.elements.pod.value;
    const test = new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*').replaceAll('?', '[^/]')}$`);
    const pods = this.context.ready() ? this.context.pods() : [];
    const fits = pattern ? pods.filter((pod) => test.test(`${pod.namespace}/${pod.name}`)) : pods;
    this.form.querySelector('.will').textContent = `${fits.length} ${fits.length === 1 ? 'pod matches' : 'pods match'} now. Other pods and the node stay as they are.`;
  }

  async set() {
    const { elements } = this.form;
    const error = this.form.querySelector('.error');
    const request = { at: elements.at.value, after: elements.after.value === '1', pod: elements.pod.value.trim(), selector: elements.selector.value.trim(), when: elements.when.value.trim(), holdSeconds: Number(elements.hold.value), count: Number(elements.count.value) };
    try {
      const row = await post('v1/breaks', request);
      error.textContent = '';
      say(`Break ${row.number} is set at ${row.at}`);
    } catch (problem) {
      error.replaceChildren(...foreign(problem.message));
      say(problem.message);
    }
    this.askBreaks();
  }

  async askBreaks() {
    if (this.context.away || document.hidden) return;
    try {
      this.breaks = (await get('v1/breaks')).breaks;
      this.problem = '';
    } catch (error) {
      this.breaks = [];
      this.problem = error instanceof AgentError && error.status === 404 ? 'This agent has no stops.' : error.message;
    }
    this.fillBreaks();
    this.update();
  }

  fillBreaks() {
    if (!isNew(this.list, [this.breaks, this.problem])) return;
    if (!this.breaks.length) return this.list.replaceChildren(empty(this.problem || 'No break is set', this.problem ? '' : 'The form above sets one; glasslet break does the same.'));
    this.list.replaceChildren(h('ul.breaks', null, this.breaks.map((row) => {
      const fits = [row.pod || 'all pods', row.namespace && `in ${row.namespace}`, row.selector, row.container && `container ${row.container}`, row.when && `when ${row.when}`].filter(Boolean).join(', ');
      return h('li', { 'data-s': 'held' }, h('span.state', null, icon('held', 'break')), h('span', null, h('b', null, `${row.number}: ${row.at}, ${row.after ? 'after' : 'before'}`), h('small', null, ' ', foreign(fits)),
        h('small.of', null, `${row.matching} match now, held ${row.hits} times${row.holding.length ? `, holds ${row.holding.join(', ')}` : ''}; each at most ${duration(row.holdSeconds)}; set at ${clock(row.setAt)}${row.setBy ? ` by ${row.setBy}` : ''}`), row.problem && h('small.error', null, foreign(row.problem))),
        h('button.btn.small', { 'aria-label': `Remove break ${row.number}`, onclick: () => this.unset(row.number) }, icon('x')));
    })));
  }

  async unset(number) {
    await remove(`v1/breaks/${number}`).then(() => say(`Break ${number} is removed`), (error) => say(error.message));
    this.askBreaks();
  }

  /** Lines between the stations, drawn where the cards stand; none where the map is a list. */
  wire() {
    const wide = getComputedStyle(this.map).gridTemplateColumns.split(' ').length >= 9;
    if (!wide) return this.svg.replaceChildren();
    const box = this.map.getBoundingClientRect();
    const place = (el) => { const r = el.getBoundingClientRect(); return { left: r.left - box.left, right: r.right - box.left, top: r.top - box.top, bottom: r.bottom - box.top, x: r.left - box.left + r.width / 2, y: r.top - box.top + r.height / 2 }; };
    const at = (name) => place(name === 'rest' ? this.rest : this.cards.get(name).el);
    const out = [];
    const path = (d, kind = '') => out.push(h('path', { d, class: kind }));
    const right = (x, y) => path(`M${x} ${y}l-6 -3.5v7z`, 'arrow');
    const down = (x, y) => path(`M${x} ${y}l-3.5 -6h7z`, 'arrow');
    for (const line of [['seen', 'merged', 'admitted', 'woken', 'planned'], ['cgroup', 'volumes', 'sandbox', 'image', 'init', 'created', 'started', 'probes', 'status'], ['stopping', 'gone']])
      for (let i = 0; i + 1 < line.length; i++) { const [p, q] = [at(line[i]), at(line[i + 1])]; path(`M${p.right} ${p.y}H${q.left - 5}`); right(q.left - 1, q.y); }
    const [planned, cgroup, status, rest, woken, stopping] = ['planned', 'cgroup', 'status', 'rest', 'woken', 'stopping'].map(at);
    const middle = (planned.bottom + cgroup.top) / 2;
    path(`M${planned.x} ${planned.bottom}V${middle}H${cgroup.x}V${cgroup.top - 5}`);
    down(cgroup.x, cgroup.top - 1);
    path(`M${status.x} ${status.top}V${rest.y}H${rest.right + 5}`);
    path(`M${rest.right + 1} ${rest.y}l6 -3.5v7z`, 'arrow');
    path(`M${rest.x} ${rest.top}V${woken.top - 10}H${woken.x}V${woken.top - 4}`, 'back');
    down(woken.x, woken.top - 1);
    path(`M${stopping.left - 74} ${stopping.y}H${stopping.left - 5}`);
    right(stopping.left - 1, stopping.y);
    out.push(h('text', { x: stopping.left - 80, y: stopping.y + 4, 'text-anchor': 'end' }, 'deleted, evicted, deadline'));
    this.svg.replaceChildren(...out);
  }
}

function dot(pod) {
  const shape = pod.state === 'held' ? h('rect', { width: 9, height: 9, rx: 2, css: { fill: 'url(#stripep)' } }) : pod.state === 'failing' ? h('path', { d: 'M4.5 0l4.5 4.5-4.5 4.5L0 4.5z', css: { fill: 'currentColor', stroke: 'none' } }) : h('circle', { cx: 4.5, cy: 4.5, r: 4, css: { fill: 'currentColor' } });
  return h('span.dot', { 'data-s': pod.state }, h('svg', { viewBox: '0 0 9 9' }, shape));
}
