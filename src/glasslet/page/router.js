// The address: which view, of what, and how it is filtered. A link shows the same.

export const VIEWS = [['node', 'Node'], ['pods', 'Pods'], ['stations', 'Stations'], ['calls', 'Calls']];
const NAMES = new Set(['node', 'pods', 'pod', 'stations', 'calls']);

/** {view, path, params} of a fragment such as #pod/shop/web or #pods?state=failing. */
export function parse(fragment) {
  const [path, query] = fragment.replace(/^#/, '').split('?');
  const [view, ...rest] = path.split('/').map(decoded);
  return { view: NAMES.has(view) ? view : 'node', path: rest, params: new URLSearchParams(query ?? '') };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** namespace/name for an address. */
export const placeOf = (pod) => `${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;
export const podLink = (pod) => `#pod/${placeOf(pod)}`;

export function go(fragment) {
  location.hash = fragment;
}

/** Notes the view's own state in the address, without a new entry in the history. */
export function note(params) {
  const { view, path } = parse(location.hash);
  const kept = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '' && value != null));
  const query = kept.toString();
  const place = [view, ...path.map(encodeURIComponent)].join('/');
  history.replaceState(null, '', `#${place}${query ? `?${query}` : ''}`);
}
