import { useEffect } from 'react';
import { go, readAddress } from '../state/url';
import { tabs } from '../views';

/** Views listen to these: `J`, `K`, `F`, `A`, `D`, arrows. */
export type KeyName = 'j' | 'k' | 'f' | 'a' | 'd' | 'l' | 'ArrowLeft' | 'ArrowRight' | 'Enter';
const REPEATS = ['j', 'k', 'ArrowLeft', 'ArrowRight']; // what a key that is held does again
const listeners = new Map<string, Set<() => void>>();

const isTyping = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
/** Arrow keys and Enter belong to what has the focus. */
const isWidget = (target: EventTarget | null) => target instanceof HTMLElement && target.closest('[role=tablist],[role=slider],[role=radiogroup],a,button,dialog,.react-flow__node') !== null;

export function useKey(key: KeyName, handle: () => void, isOn = true): void {
  useEffect(() => {
    if (!isOn) return;
    const set = listeners.get(key) ?? new Set();
    listeners.set(key, set);
    set.add(handle);
    return () => void set.delete(handle);
  }, [key, handle, isOn]);
}

/** `J` and `K` go from line to line in a list whose view does not do it itself. */
function moveFocus(step: number): void {
  const items = [...document.querySelectorAll<HTMLElement>('main [data-item]')];
  const at = items.indexOf(document.activeElement as HTMLElement);
  items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + step))]?.focus();
}

export function useKeyboard(show: (overlay: 'palette' | 'help' | null) => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        show('palette');
        return;
      }
      if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector('dialog[open]')) return;
      if (isTyping(event.target)) {
        if (event.key === 'Escape') (event.target as HTMLElement).blur();
        return;
      }
      const address = readAddress();
      if (event.key === '?') show('help');
      else if (event.key === '/') {
        const search = document.querySelector<HTMLElement>('[data-search]');
        if (!search) return;
        event.preventDefault();
        search.focus();
      } else if (event.key === 'Escape' && address.sel) go({ sel: '' });
      else if (/^[1-9]$/.test(event.key) && address.run) {
        const tab = tabs[Number(event.key) - 1];
        if (tab) go({ tab: tab.name });
      } else {
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        const set = listeners.get(key);
        if (event.repeat && !REPEATS.includes(key)) return;
        if (!set?.size && (key === 'j' || key === 'k')) moveFocus(key === 'j' ? 1 : -1);
        if (!set?.size || (key.length > 1 && isWidget(event.target))) return;
        event.preventDefault();
        for (const handle of [...set]) handle();
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, [show]);
}
