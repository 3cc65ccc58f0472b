import { useSyncExternalStore } from 'react';

const narrow = window.matchMedia('(max-width: 640px)');
const dark = window.matchMedia('(prefers-color-scheme: dark)');

function follow(query: MediaQueryList) {
  const subscribe = (listener: () => void) => {
    query.addEventListener('change', listener);
    return () => query.removeEventListener('change', listener);
  };
  return () => useSyncExternalStore(subscribe, () => query.matches);
}

/** Whether the page is as wide as a phone. */
export const useNarrow = follow(narrow);
export const useSystemDark = follow(dark);
/** A colour of the theme as a canvas takes it. */
export function colourOf(node: HTMLElement, name: string): string {
  node.style.color = `var(${name})`;
  const { color } = getComputedStyle(node);
  node.style.color = '';
  return color;
}
export const hasReducedMotion = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;
