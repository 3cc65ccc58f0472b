import { useSyncExternalStore } from 'react';

/** Where the page is. Everything that a person can see again by a link is here, and in the URL. */
export interface Address {
  place: string; // 'runs', 'inbox', …; a run is place 'runs' with its id
  run: string;
  tab: string;
  at: number | null; // version; null is the newest
  sel: string; // 'step:…', 'agent:…', 'subtask:…'
  params: Record<string, string>; // what a view keeps: filters, switches, a file
}

export const PLACES = ['runs', 'inbox', 'agents', 'knowledge', 'costs'] as const;
const OWN = new Set(['at', 'sel']);
const NOWHERE = '?'; // the place of an address that nobody wrote on purpose

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return NOWHERE;
  }
}

export function parse(location: { pathname: string; search: string }): Address {
  const search = new URLSearchParams(location.search);
  const version = search.get('at');
  const at = Number(version);
  const isWrong = version !== null && !(Number.isInteger(at) && at > 0);
  const [place = '', run = '', tab = ''] = isWrong ? [NOWHERE] : location.pathname.split('/').filter(Boolean).map(decode);
  return {
    place: place || 'runs',
    run: place === 'runs' ? run : '',
    tab,
    at: isWrong || version === null ? null : at,
    sel: search.get('sel') ?? '',
    params: Object.fromEntries([...search].filter(([name]) => !OWN.has(name))),
  };
}

export function format(address: Address): string {
  const parts = address.run ? ['runs', address.run, ...(address.tab ? [address.tab] : [])] : address.place === 'runs' ? [] : [address.place];
  const search = new URLSearchParams();
  if (address.at !== null) search.set('at', String(address.at));
  if (address.sel) search.set('sel', address.sel);
  for (const [name, value] of Object.entries(address.params)) if (value) search.set(name, value);
  const text = search.toString().replaceAll('%3A', ':').replaceAll('%2F', '/');
  return `/${parts.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

let current = parse(window.location);
const listeners = new Set<() => void>();

function tell(): void {
  current = parse(window.location);
  for (const listener of listeners) listener();
}
window.addEventListener('popstate', tell);

/** Go to an address. A change of place, run or tab forgets the selection and what a view kept. */
export function go(change: Partial<Address>, replace = false): void {
  const moves = (['place', 'run', 'tab'] as const).some((name) => change[name] !== undefined && change[name] !== current[name]);
  const leaves = change.run !== undefined ? change.run !== current.run : change.place !== undefined && change.place !== current.place;
  const next: Address = {
    ...current,
    ...(moves ? { params: {} } : {}),
    ...(leaves ? { sel: '', at: null, tab: '' } : {}),
    ...(change.place !== undefined && change.run === undefined ? { run: '' } : {}),
    ...(change.run ? { place: 'runs' } : {}),
    ...change,
  };
  const url = format(next);
  if (url === format(current)) return;
  window.history[replace ? 'replaceState' : 'pushState'](null, '', url);
  tell();
}

/** Change one of the parameters that the view keeps. */
export const setParam = (name: string, value: string) => go({ params: { ...current.params, [name]: value } }, true);
export const select = (sel: string) => go({ sel: sel === current.sel ? '' : sel });

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const readAddress = () => current;
export const useAddress = () => useSyncExternalStore(subscribe, readAddress);

/** The `href` and `onClick` of a link that stays in the page, and that a new tab can open. */
export function link(change: Partial<Address>) {
  const base = change.place !== undefined || change.run !== undefined ? { params: {}, sel: '', at: null, tab: '' } : {};
  const target = { ...current, ...base, ...(change.place ? { run: '' } : {}), ...change };
  return {
    href: format(target),
    onClick: (event: React.MouseEvent) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      go(target);
    },
  };
}
