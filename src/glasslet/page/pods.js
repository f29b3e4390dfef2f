// Pods: what does each do now? A plain table: cells change in place, rows move only when no reader is in it.

import { get, podPath, post, refusal } from './agent.js';
import { $, Keyed, bones, empty, finder, foreign, h, icon, isNew, podName, say, setAttr, setText, shown } from './dom.js';
import { go, note, podLink } from './router.js';
import { age, bytes, ms } from './words.js';

const STATES = ['failing', 'held', 'waiting', 'stopping', 'starting', 'fine'];
const BADNESS = ['failing', 'held', 'waiting', 'stopping', 'starting', 'fine', 'ended'];
/** @type {[string, string, string, (pod: any) => any][]} */
const COLUMNS = [
  ['state', '', 'st', (p) => BADNESS.indexOf(p.state)],
  ['name', 'Pod', 'name', (p) => `${p.namespace}/${p.name}`],
  ['ready', 'Ready', 'num c-ready', (p) => p.ready / Math.max(1, p.containers)],
  ['restarts', 'Restarts', 'num c-rst', (p) => p.restarts],
  ['now', 'Now', 'now', (p) => p.now || '\uffff'],
  ['start', 'Its start', 'num c-start', (p) => p.start?.totalMs ?? Infinity],
  ['since', 'Since', 'num c-since', (p) => -Date.parse(p.since ?? 0)],
];
const QUIET_MS = 2000;
const PARTS = { runtime: 'runtime', API: 'api', pod: 'pod', waiting: 'wait', held: 'held', 'no agent': 'unnamed', glasslet: 'glasslet' };

export function podsView(context, route) {
  const view = new PodsTable(context, route.params);
  return { el: view.el, title: 'Pods', update: (changes) => view.update(changes), keys: (e, typing) => view.keys(e, typing), focusPod: (name) => view.focusPod(name), away: () => {} };
}

class PodsTable {
  constructor(context, params) {
    this.context = context;
    this.text = params.get('q') ?? '';
    this.state = params.get('state') ?? '';
    const sort = params.get('sort') ?? 'name';
    this.sort = sort.replace('-', '');
    this.down = sort.startsWith('-');
    this.chosen = '';
    this.order = null;
    this.busyAt = 0;
    this.ended = null;
    this.showEnded = this.state === 'ended';
    this.build();
    if (params.get('find')) setTimeout(() => this.input.focus());
  }

  build() {
    this.input = h('input', { type: 'text', placeholder: 'Filter: name, state, image, station', 'aria-label': 'Filter pods', oninput: () => { this.text = this.input.value; this.changedFilter(); } });
    this.input.value = this.text;
    this.chips = h('div.seg', { role: 'group', 'aria-label': 'State' });
    this.moved = h('div.moved', { hidden: true }, h('span'), h('button.btn.small', { onclick: () => this.sortAgain() }, 'sort again', h('kbd', null, 'r')));
    this.head = h('tr');
    this.body = h('tbody');
    this.rows = new Keyed(this.body, { make: (pod) => this.makeRow(pod), update: (tr, pod) => this.fillRow(tr, pod) });
    this.group = h('tbody', { hidden: true });
    this.count = h('span');
    this.table = h('table', null, h('caption.sr', null, 'Pods of this node'), h('thead', null, this.head), this.body, this.group);
    this.none = h('div', { hidden: true });
    this.el = [h('h1.sr', null, 'Pods'), h('section.card.pods', { 'aria-label': 'Pods' },
      h('div.bar-f', null, finder(this.input, h('kbd', null, '/')), this.chips, this.moved),
      this.table, this.none,
      h('div.foot', null, this.count, h('span.keys', null, ['j k move', '↵ open', 'b break', 'c continue', 'e ended'].map((hint) => { const words = hint.split(' '); const what = words.pop(); return [words.map((key) => h('kbd', null, key)), ` ${what} `]; })), h('span.end', null, 'Rows keep their place while the pointer or the focus is in the table')))];
    for (const kind of ['pointermove', 'focusin', 'keydown']) this.table.addEventListener(kind, () => { this.busyAt = Date.now(); });
    this.table.addEventListener('pointerleave', () => { this.busyAt = 0; });
    this.body.addEventListener('click', (event) => this.clicked(event));
    this.heads();
  }

  heads() {
    this.head.replaceChildren(...COLUMNS.map(([id, name, kind]) => {
      const on = this.sort === id;
      return h('th', { scope: 'col', class: kind, 'aria-sort': on && (this.down ? 'descending' : 'ascending') },
        h('button', { 'aria-label': name ? null : 'State', onclick: () => this.sortBy(id) }, name, on && h('span', { 'aria-hidden': 'true' }, this.down ? '↓' : '↑')));
    }));
  }

  sortBy(id) {
    this.down = this.sort === id && !this.down;
    this.sort = id;
    this.heads();
    this.sortAgain();
    this.noteState();
  }

  noteState() {
    const sort = this.sort === 'name' && !this.down ? '' : `${this.down ? '-' : ''}${this.sort}`;
    note({ q: this.text, state: this.state, sort });
  }

  changedFilter() {
    this.noteState();
    this.sortAgain();
  }

  /** The pods that the filter lets through, in the order in which they should stand. */
  wanted() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (pod) => {
      if (this.state && pod.state !== this.state) return false;
      const text = `${pod.namespace}/${pod.name} ${pod.state} ${pod.now} ${pod.station} ${pod.images?.join(' ')}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const key = (COLUMNS.find(([id]) => id === this.sort) ?? COLUMNS[1])[3];
    const rows = this.context.pods().filter(fits).map((pod) => [key(pod), `${pod.namespace}/${pod.name} ${pod.uid}`, pod]);
    const turn = this.down ? -1 : 1;
    rows.sort(([a, x], [b, y]) => (a < b ? -turn : a > b ? turn : x < y ? -1 : x > y ? 1 : 0));
    return rows.map(([, , pod]) => pod);
  }

  sortAgain() {
    this.order = null;
    this.update(null);
  }

  update(changes) {
    if (!this.context.ready()) {
      this.none.hidden = false;
      if (!this.none.firstChild) this.none.append(bones(8));
      return;
    }
    const wanted = this.wanted();
    const order = wanted.map((pod) => pod.uid);
    const free = Date.now() - this.busyAt > QUIET_MS;
    if (this.order === null || free) this.order = order;
    const now = new Map(wanted.map((pod) => [pod.uid, pod]));
    const kept = this.order.filter((uid) => now.has(uid) || this.gone(uid));
    const entries = kept.map((uid) => [uid, now.get(uid) ?? this.rows.items.get(uid).pod]);
    this.rows.show(entries);
    for (const uid of kept) this.rows.items.get(uid).classList.toggle('lost', !now.has(uid));
    this.context.order = entries.map(([, pod]) => pod);
    this.tellMoved(order, kept);
    this.rove();
    if (changes) for (const [uid, fields] of changes) if (fields?.state) this.tint(uid);
    this.showFrame(entries.length);
    clearTimeout(this.later);
    if (!free) this.later = setTimeout(() => this.update(null), QUIET_MS);
  }

  /** A pod that ended stays in its place, dimmed, until the table is sorted again. */
  gone(uid) {
    return this.rows.items.has(uid) && !this.context.value(uid) && Date.now() - this.busyAt <= QUIET_MS;
  }

  tellMoved(order, kept) {
    const standing = kept.filter((uid) => order.includes(uid));
    const places = new Map(order.map((uid, at) => [uid, at]));
    const moving = standing.filter((uid, at) => order.filter((one) => standing.includes(one))[at] !== uid).length;
    const fresh = places.size - standing.length;
    const words = [moving && `${moving} rows would move`, fresh && `${fresh} new`].filter(Boolean).join(', ');
    this.moved.hidden = !words;
    setText($('span', this.moved), words);
  }

  showFrame(count) {
    const rows = this.context.pods();
    const counts = STATES.map((state) => [state, rows.filter((pod) => pod.state === state).length]);
    if (isNew(this.chips, [counts, this.state])) {
      this.chips.replaceChildren(...counts.map(([state, many]) => h('button', { 'data-s': state, 'aria-pressed': String(this.state === state), onclick: () => this.choose(state) }, icon(state), `${many} ${state}`)));
    }
    setText(this.count, `${count} of ${rows.length} pods`);
    this.table.hidden = count === 0 && rows.length > 0 ? true : rows.length === 0;
    this.none.hidden = count > 0;
    if (count > 0) this.none.replaceChildren();
    if (count === 0) {
      const filter = [this.text && `Filter “${shown(this.text)}”`, this.state && `state ${this.state}`].filter(Boolean).join(', ');
      this.none.replaceChildren(rows.length
        ? empty('No pod matches', `${filter}. Esc clears it.`)
        : empty('No pods on this node', 'They come from the manifest folder, a URL or the API server. ', h('code', null, 'glasslet up FILE.yaml'), ' starts one.'));
    }
    if (this.group.hidden) this.showEndedGroup();
  }

  choose(state) {
    this.state = this.state === state ? '' : state;
    this.changedFilter();
  }

  makeRow(pod) {
    const cell = (kind) => h('td', { class: kind });
    const tr = h('tr', { 'data-uid': pod.uid });
    tr.cells_ = { st: cell('st'), name: cell('name'), ready: cell('num c-ready'), rst: cell('num c-rst'), now: cell('now'), start: cell('num c-start'), since: cell('num nowrap c-since') };
    tr.link = h('a', { href: podLink(pod), tabindex: '-1' }, podName(pod));
    tr.cells_.name.append(tr.link);
    tr.text = h('span.tx');
    tr.cells_.now.append(tr.text);
    tr.since = h('span');
    tr.cells_.since.append(tr.since);
    tr.append(...Object.values(tr.cells_));
    return tr;
  }

  fillRow(tr, pod) {
    if (tr.pod === pod) return;
    const old = tr.pod ?? {};
    tr.pod = pod;
    setAttr(tr, 'data-s', pod.state);
    if (old.state !== pod.state) tr.cells_.st.replaceChildren(icon(BADNESS.includes(pod.state) ? pod.state : 'ended', pod.state));
    setText(tr.cells_.ready, `${pod.ready}/${pod.containers}`);
    setText(tr.cells_.rst, String(pod.restarts));
    tr.cells_.rst.classList.toggle('zero', !pod.restarts);
    tr.cells_.rst.classList.toggle('dim', !pod.restarts);
    if (old.now !== pod.now || old.pull !== pod.pull) this.fillNow(tr, pod);
    if (old.start !== pod.start || old.state !== pod.state) tr.cells_.start.replaceChildren(startBar(pod));
    if (pod.since) tr.since.dataset.since = pod.since;
    else delete tr.since.dataset.since;
    setText(tr.since, pod.since ? age(this.context.now(), pod.since) : '');
  }

  fillNow(tr, pod) {
    const pull = pod.pull?.total ? h('span.pull', { role: 'img', 'aria-label': `${bytes(pod.pull.done)} of ${bytes(pod.pull.total)}` }, h('i', { css: { width: `${(pod.pull.done / pod.pull.total) * 100}%` } })) : null;
    tr.text.replaceChildren(...[pull, ...(pod.now ? foreign(pod.now) : [h('span.dim', null, '–')])].filter(Boolean));
    setAttr(tr.text, 'title', pod.now || null);
  }

  tint(uid) {
    const tr = this.rows.items.get(uid);
    if (!tr) return;
    tr.classList.remove('fresh');
    void tr.offsetWidth;
    tr.classList.add('fresh');
  }

  clicked(event) {
    const tr = event.target.closest('tr[data-uid]');
    if (!tr || event.target.closest('a') || String(getSelection())) return;
    go(podLink(tr.pod));
  }

  /** One tab stop for the table: the chosen row's link. */
  rove() {
    const rows = [...this.rows.items.values()];
    if (!this.rows.items.has(this.chosen)) this.chosen = rows[0]?.pod.uid ?? '';
    for (const [uid, tr] of this.rows.items) {
      setAttr(tr, 'aria-selected', String(uid === this.chosen));
      setAttr(tr.link, 'tabindex', uid === this.chosen ? '0' : '-1');
    }
  }

  move(step) {
    const uids = [...this.rows.items.keys()];
    const at = uids.indexOf(this.chosen);
    this.chosen = uids[Math.max(0, Math.min(uids.length - 1, at + step))];
    this.rove();
    this.rows.items.get(this.chosen)?.link.focus();
  }

  focusPod(name) {
    const found = [...this.rows.items.values()].find((tr) => `${tr.pod.namespace}/${tr.pod.name}` === name);
    if (!found) return;
    this.chosen = found.pod.uid;
    this.rove();
    found.link.focus();
  }

  keys(event, typing) {
    const { key } = event;
    if (typing) {
      if (event.target !== this.input) return false;
      if (key === 'Escape') { this.text = this.input.value = ''; this.changedFilter(); this.input.blur(); return true; }
      if (key === 'Enter' || key === 'ArrowDown') { this.move(0); return true; }
      return false;
    }
    if (key === 'j' || key === 'ArrowDown') this.move(1);
    else if (key === 'k' || key === 'ArrowUp') this.move(-1);
    else if (key === 'Enter' && !event.target.closest('button, a')) { const pod = this.pod(); if (pod) go(podLink(pod)); }
    else if (key === 'f') this.choose('failing');
    else if (key === 'r') this.sortAgain();
    else if (key === 'e') this.toggleEnded();
    else if (key === 'b') { const pod = this.pod(); go(`stations?pod=${pod ? encodeURIComponent(`${pod.namespace}/${pod.name}`) : ''}`); }
    else if (key === 'c') this.act('continue');
    else if (key === '.') this.act('step');
    else if (key === 'Escape' && (this.text || this.state)) { this.text = this.input.value = this.state = ''; this.changedFilter(); }
    else return false;
    return true;
  }

  pod() {
    return this.rows.items.get(this.chosen)?.pod;
  }

  async act(verb) {
    const pod = this.pod();
    if (!pod?.hold) return say('This pod is not held');
    const why = await refusal();
    if (why) return say(why);
    await post(podPath(pod, `/${verb}`)).then(() => say(`${verb}: ${pod.name}`), (error) => say(error.message));
  }

  async toggleEnded() {
    this.showEnded = !this.showEnded;
    this.group.hidden = true;
    await this.showEndedGroup();
  }

  /** Pods that left the node in the last week: names at once, how they ended when the group is open. */
  async showEndedGroup() {
    if (this.ended === null) {
      this.ended = [];
      const { records } = await get('v1/records').catch(() => ({ records: [] }));
      this.ended = records.filter((row) => !row.alive).reverse();
    }
    if (!this.ended.length) return;
    this.group.hidden = false;
    const rows = this.showEnded ? this.ended.slice(0, 50).map((pod) => this.endedRow(pod)) : [];
    this.group.replaceChildren(h('tr.group', null, h('td', { colspan: 7 }, h('button', { 'aria-expanded': String(this.showEnded), onclick: () => this.toggleEnded() }, `${this.showEnded ? '▾' : '▸'} Ended in the last 7 days · ${this.ended.length}`))), ...rows);
  }

  endedRow(pod) {
    const now = h('span.tx', null, '…');
    get(podPath(pod, '/why')).then((why) => now.replaceChildren(...foreign(why.sentence)), () => now.replaceChildren('–'));
    return h('tr', { 'data-s': 'ended' }, h('td.st', null, icon('ended', 'ended')), h('td.name', null, h('a', { href: podLink(pod) }, podName(pod))), h('td.num.c-ready'), h('td.num.c-rst'), h('td.now', null, now), h('td.num.c-start'), h('td.num.c-since'));
  }
}

/** Who had the time of a pod's start, 72 px wide, and how long it took. */
function startBar(pod) {
  if (!pod.start) return h('span.dim', null, pod.state === 'fine' ? '' : 'under way');
  const shares = [...pod.start.shares, { who: '', ms: pod.start.unnamedMs }].filter((share) => share.ms > 0);
  const all = shares.reduce((sum, share) => sum + share.ms, 0) || 1;
  let x = 0;
  const bars = shares.map(({ who, ms: took }) => {
    const width = (took / all) * 72;
    const fill = who === 'waiting' ? 'url(#hatchp)' : who === 'held' ? 'url(#stripep)' : `var(--p-${PARTS[who] ?? 'unnamed'})`;
    const bar = h('rect', { x, y: 0, width: Math.max(0, width - 0.6), height: 8, css: { fill } });
    x += width;
    return bar;
  });
  const words = shares.map(({ who, ms: took }) => `${who || 'without a name'} ${ms(took)}`).join(', ');
  return h('div.mini', { title: words }, h('svg', { viewBox: '0 0 72 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': words }, bars), h('span', null, ms(pod.start.totalMs)));
}
