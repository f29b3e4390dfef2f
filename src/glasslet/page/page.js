// The page itself: its frame, the connection, and which view is shown.

import { beginSession } from './agent.js';
import { callsView } from './calls.js';
import { $, $$, h, icon, isNew, isPhone, say, setText } from './dom.js';
import { listen, showHelp } from './keys.js';
import { Live } from './live.js';
import { nodeView } from './node.js';
import { podView } from './pod.js';
import { podsView } from './pods.js';
import { VIEWS, go, parse, podLink } from './router.js';
import { stationsView } from './stations.js';
import { age, clock, duration } from './words.js';

const BAD = ['failing', 'held', 'waiting'];
const MAKERS = { node: nodeView, pods: podsView, pod: podView, stations: stationsView, calls: callsView };
const STREAMS = { node: () => 'view=node', stations: () => 'view=stations', pod: (path) => `view=pod&pod=${encodeURIComponent(path.join('/'))}` };

/** What the views share: the values of the stream, the clock, and whether the agent answers. */
const context = {
  live: null,
  away: false,
  now: () => context.live.now(),
  value: (key) => context.live.values.get(key),
  pods: () => [...context.live.values].filter(([key]) => !key.includes('.') && key !== 'page').map(([, row]) => row),
  pod: (namespace, name) => context.pods().find((row) => row.namespace === namespace && row.name === name),
  ready: () => context.live.values.size > 0,
  order: [],
};
let shown = null;
let route = parse(location.hash);
let lastPid = 0;
let returnTo = '';
let bannerTimer = 0;

function frame() {
  const facts = context.value('page');
  const rows = context.pods();
  setText($('#node-name'), facts?.node ?? '');
  const alive = rows.filter((row) => row.state !== 'ended').length;
  const current = route.view === 'pod' ? 'pods' : route.view;
  const tabs = $('.tabs');
  if (!tabs.children.length) tabs.append(...VIEWS.map(([id, name]) => h('a', { href: `#${id}`, 'data-view': id }, icon(id), name, id === 'pods' && h('span.n'))));
  for (const tab of tabs.children) {
    if (tab.dataset.view === current) tab.setAttribute('aria-current', 'page');
    else tab.removeAttribute('aria-current');
  }
  setText($('.tabs .n'), context.ready() ? String(alive) : '');
  const counts = BAD.map((state) => [state, rows.filter((row) => row.state === state).length]).filter(([, count]) => count);
  if (isNew(frame, counts)) {
    $('.trouble').replaceChildren(...counts.map(([state, count]) =>
      h('a.chip', { 'data-s': state, href: `#pods?state=${state}`, title: `${count} ${state}` }, icon(state), `${count} `, h('span.w', null, state))));
  }
}

function show() {
  shown?.close?.();
  $('.tip').hidden = true;
  route = parse(location.hash);
  const stream = STREAMS[route.view]?.(route.path) ?? 'view=pods';
  const before = context.live.query;
  context.live.open(stream);
  if (before !== stream) for (const key of [...context.live.values.keys()]) if (/^(pod|node|stations)\./.test(key)) context.live.values.delete(key);
  shown = MAKERS[route.view](context, route);
  $('#main').replaceChildren(...[shown.el].flat());
  shown.update?.(null);
  title();
  frame();
  scrollTo(0, 0);
}

function title() {
  const thing = shown.title ?? VIEWS.find(([id]) => id === route.view)?.[1] ?? route.path.join('/');
  document.title = `${thing} · ${context.value('page')?.node ?? 'node'} · glasslet`;
}

function changed(changes) {
  const facts = context.value('page');
  if (facts && lastPid && facts.pid !== lastPid) banner(`The agent is back (new process, pid ${facts.pid}); no container was restarted.`, 'fine');
  lastPid = facts?.pid ?? lastPid;
  frame();
  shown?.update?.(changes);
  title();
}

function banner(text, kind, detail = '') {
  const el = $('.away');
  el.hidden = false;
  el.dataset.s = kind;
  if (isNew(el, [text, detail])) el.replaceChildren(icon(kind), h('b', null, text), h('span', null, detail));
  clearTimeout(bannerTimer);
  if (kind === 'fine') bannerTimer = setTimeout(() => { el.hidden = true; }, 8000);
}

function stood({ ok, since, pause, status, text, wasAway }) {
  const mark = $('#live');
  context.away = !ok;
  document.body.toggleAttribute('data-away', !ok);
  mark.toggleAttribute('data-off', !ok);
  if (ok) {
    setText($('span', mark), 'live');
    if (wasAway) banner('The agent is back; no container was restarted.', 'fine');
    else $('.away').hidden = true;
    if (wasAway) say('The agent is back');
  } else if (status === 401) {
    setText($('span', mark), 'ended');
    banner('This page’s token has ended.', 'failing', 'Run glasslet web again.');
  } else if (status === 403) {
    setText($('span', mark), 'refused');
    banner('Not allowed to read this node.', 'failing', 'It needs the verb get on nodes/glass.');
  } else if (status === 404) {
    shown?.missing?.(text);
    context.live.open('view=pods');
  } else if (status) {
    setText($('span', mark), 'refused');
    banner('The agent refused.', 'failing', text.slice(0, 200));
  } else {
    setText($('span', mark), `as of ${clock(since)}`);
    if (context.now() - since > 1500 || !context.ready())
      banner(`The agent does not answer since ${clock(since)}.`, 'failing', `What you see is from then. Containers go on without it. Asking again in ${duration(pause / 1000)}.`);
  }
  shown?.away?.(context.away);
}

/** Counters: every element with data-since is counted here, once a second, by the server's clock. */
function tick() {
  if (document.hidden || context.away) return;
  const now = context.now();
  for (const el of $$('[data-since]')) setText(el, age(now, el.dataset.since));
  shown?.tick?.(now);
}

function everywhere(event) {
  const { key } = event;
  if (key >= '1' && key <= '4') go(VIEWS[Number(key) - 1][0]);
  else if (key === '?') showHelp();
  else if (key === '!') nextBad();
  else if (key === '/') {
    const input = $('.find input');
    if (input) { input.focus(); input.select(); } else go('pods?find=1');
  } else if (key === 'Escape' && route.view !== 'node') history.back();
  else return false;
  return true;
}

function nextBad() {
  const bad = BAD.flatMap((state) => context.pods().filter((row) => row.state === state));
  if (!bad.length) return say('Every pod is as it should be');
  const at = bad.findIndex((row) => podLink(row) === location.hash);
  go(podLink(bad[(at + 1) % bad.length]));
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  shown?.recolour?.();
}

async function begin() {
  setTheme(localStorage.getItem('glasslet.theme'));
  await beginSession();
  context.live = new Live({ changed, stood });
  $('#help').addEventListener('click', showHelp);
  $('#theme').addEventListener('click', () => {
    const theme = isDark() ? 'light' : 'dark';
    localStorage.setItem('glasslet.theme', theme);
    setTheme(theme);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => shown?.recolour?.());
  addEventListener('hashchange', () => {
    const from = route;
    show();
    if (from.view === 'pod' && route.view === 'pods') shown.focusPod?.(returnTo);
    else $('#main').focus({ preventScroll: true });
    if (route.view === 'pod') returnTo = route.path.join('/');
  });
  listen({ view: () => shown, everywhere });
  if (route.view === 'pod') returnTo = route.path.join('/');
  show();
  setInterval(tick, 1000);
  document.documentElement.dataset.phone = String(isPhone());
}

begin();
