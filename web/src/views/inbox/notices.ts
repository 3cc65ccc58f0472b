import i18next from 'i18next';
import { get } from '../../api/client';
import { client } from '../../api/queries';
import type { InboxItem, Page } from '../../api/types';
import { setting } from '../../state/setting';
import { go } from '../../state/url';
import { keyOf } from './inbox';

/** Whether a person wants a notice of the browser when something new waits. The browser asks once. */
export const notices = setting<'on' | 'off'>('notices', 'off');

export const canNotify = () => 'Notification' in window;
export const isRefused = () => canNotify() && Notification.permission === 'denied';

export async function turnOn(): Promise<void> {
  const permission = Notification.permission === 'default' ? await Notification.requestPermission() : Notification.permission;
  notices.set(permission === 'granted' ? 'on' : 'off');
}

let seen: Set<string> | null = null;

async function look(): Promise<void> {
  const { items } = await get<Page<InboxItem>>('/inbox', { limit: 100 });
  const fresh = seen === null ? [] : items.filter((item) => !seen?.has(keyOf(item)));
  seen = new Set(items.map(keyOf));
  if (notices.read() !== 'on' || !document.hidden || !canNotify() || Notification.permission !== 'granted') return;
  for (const item of fresh.slice(0, 3)) {
    const notice = new Notification(i18next.t('shell.noticeTitle', { run: item.run_title }), { body: item.question.slice(0, 200), tag: keyOf(item) });
    notice.onclick = () => {
      window.focus();
      go({ place: 'inbox', params: { item: keyOf(item) } });
      notice.close();
    };
  }
}

const POLL_MS = 30_000;

/** Say it when something new waits while the page is not looked at. */
export function startNotices(): void {
  let count = -1;
  client.getQueryCache().subscribe((event) => {
    if (event.query.queryKey[0] !== 'inbox' || event.query.queryKey[1] !== 'count' || event.type !== 'updated') return;
    const next: unknown = event.query.state.data;
    if (typeof next !== 'number' || next === count) return;
    count = next;
    look().catch(() => undefined); // the next change looks again
  });
  // A hidden page follows no events: it asks now and then.
  window.setInterval(() => {
    if (!document.hidden || notices.read() !== 'on') return;
    get<Page<InboxItem>>('/inbox', { limit: 1 }).then(
      (page) => client.setQueryData(['inbox', 'count'], page.total ?? page.items.length),
      () => undefined,
    );
  }, POLL_MS);
}
