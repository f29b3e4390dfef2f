// Requests to the agent. All addresses are relative to the document: the page also works below a proxy.

import { placeOf } from './router.js';

export class AgentError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** GET as JSON. Throws AgentError: 0 without an answer, 404 where this agent has no such route. */
export const get = (path, options = {}) => ask('GET', path, undefined, options);
export const post = (path, body = {}) => ask('POST', path, body, { seconds: path.endsWith('/step') ? 35 : 10 });
export const remove = (path) => ask('DELETE', path, undefined, { seconds: 10 });

export const podPath = (pod, rest = '') => `v1/pods/${placeOf(pod)}${rest}`;

async function ask(method, path, body, { seconds = 30 } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? { 'X-Glasslet': '1' } : { 'X-Glasslet': '1', 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(seconds * 1000),
    });
  } catch (error) {
    throw new AgentError(0, error.name === 'TimeoutError' ? `no answer within ${seconds} s` : 'the agent does not answer');
  }
  const text = await response.text();
  if (response.ok) return text ? JSON.parse(text) : {};
  throw new AgentError(response.status, reason(response.status, text));
}

/** Why a request was refused, as one sentence. */
export function reason(status, text) {
  if (status === 401) return 'This page’s token has ended. Run glasslet web again.';
  if (status === 403 && text.startsWith('Forbidden')) return `Not allowed: ${text.trim()}`;
  try {
    const answer = JSON.parse(text);
    const place = answer.field && answer.field !== 'pod' ? `${answer.field}: ` : '';
    const value = answer.value && !answer.error.includes(answer.value) ? ` (${answer.value})` : '';
    const allowed = answer.allowed ? `; allowed: ${answer.allowed}` : '';
    const near = answer.nearest?.length ? `; did you mean ${answer.nearest.join(' or ')}?` : '';
    return `${place}${answer.error}${value}${allowed}${near}`;
  } catch {
    return `the agent refused (${status}): ${text.slice(0, 200)}`;
  }
}

/** Swaps the token of the address for a cookie, once, and takes it off the address. */
export async function beginSession() {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, '', '#node');
  await post('session', { token }).catch(() => {});
}

let known = null;

/** The verbs on nodes/glass that the reader has; null where the agent does not say. */
export async function rights() {
  known ??= get('v1/rights').then((answer) => answer.verbs, () => null);
  return known;
}

/** Why an action is not offered, '' if it is. */
export async function refusal() {
  const verbs = await rights();
  if (verbs === null) return 'this agent has no stops';
  return verbs.includes('create') ? '' : 'needs create on nodes/glass';
}
