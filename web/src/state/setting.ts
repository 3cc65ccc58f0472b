import { useEffect, useState, useSyncExternalStore } from 'react';

/** A setting of this browser, kept in its local storage. */
export function setting<T extends string>(name: string, initial: T) {
  const key = `greenroom.${name}`;
  let value = read();
  const listeners = new Set<() => void>();
  function read(): T {
    try {
      return (window.localStorage.getItem(key) as T | null) ?? initial;
    } catch {
      return initial;
    }
  }
  const set = (next: T) => {
    value = next;
    try {
      window.localStorage.setItem(key, next);
    } catch {
      // A browser that keeps nothing still shows the choice until it is closed.
    }
    for (const listener of listeners) listener();
  };
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return { read: () => value, set, use: () => useSyncExternalStore(subscribe, () => value) };
}

export const theme = setting<'auto' | 'light' | 'dark'>('theme', 'auto');
export const planView = setting<'graph' | 'gantt'>('plan', 'graph');

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.read();
}

const draftKey = (name: string) => `greenroom.draft.${name}`;

/** What was typed and not sent: it stays until this tab of the browser is closed. Without a name it is not kept. */
export function useDraft<T>(name: string, initial: T) {
  const [value, setValue] = useState<T>(() => {
    if (!name) return initial;
    try {
      return JSON.parse(window.sessionStorage.getItem(draftKey(name)) ?? 'null') ?? initial;
    } catch {
      return initial;
    }
  });
  useEffect(() => {
    if (!name) return;
    try {
      if (value === initial) window.sessionStorage.removeItem(draftKey(name));
      else window.sessionStorage.setItem(draftKey(name), JSON.stringify(value));
    } catch {
      // A browser that keeps nothing forgets the draft with the view.
    }
  }, [name, value]);
  return [value, setValue] as const;
}

export function forgetDrafts(...names: string[]): void {
  for (const name of names)
    try {
      window.sessionStorage.removeItem(draftKey(name));
    } catch {
      // Nothing was kept.
    }
}
