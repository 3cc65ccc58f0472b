import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { get, post, seg } from '../../api/client';
import { client } from '../../api/queries';
import type { AnswerInput, InboxItem, Page, VerbResult } from '../../api/types';

export const MAX_ITEMS = 500;
export const keyOf = (item: InboxItem) => `${item.run}/${item.id}`;

export const useInbox = (isAsked = true) => useQuery({ enabled: isAsked, queryKey: ['inbox', 'list'], queryFn: ({ signal }) => get<Page<InboxItem>>('/inbox', { limit: MAX_ITEMS }, signal) });

export async function answer(run: string, id: string, input: AnswerInput): Promise<VerbResult> {
  const result = await post<VerbResult>(`/runs/${seg(run)}/inbox/${seg(id)}`, input);
  refresh(run);
  return result;
}

export function refresh(run: string): void {
  void client.invalidateQueries({ queryKey: ['inbox'] });
  void client.invalidateQueries({ queryKey: ['run', run, 'head'] });
}

export interface Entry {
  key: string;
  item: InboxItem;
  outcome: string; // why it is folded; empty while it waits
}

/** What waits, oldest first, and what was seen here and waits no longer: that stays, folded, so that nothing jumps. */
export function useEntries(items: InboxItem[] | undefined, said: ReadonlyMap<string, string>, gone: string): Entry[] {
  const [seen, setSeen] = useState<ReadonlyMap<string, InboxItem>>(new Map());
  useEffect(() => {
    if (items?.some((item) => !seen.has(keyOf(item)))) setSeen(new Map([...seen, ...items.map((item) => [keyOf(item), item] as const)]));
  }, [items, seen]);
  return useMemo(() => {
    const waiting = new Map((items ?? []).map((item) => [keyOf(item), item]));
    const all = new Map([...seen, ...waiting]);
    return [...all]
      .map(([key, item]) => ({ key, item, outcome: said.get(key) ?? (waiting.has(key) ? '' : gone) }))
      .sort((left, right) => left.item.asked_at - right.item.asked_at || left.key.localeCompare(right.key));
  }, [items, seen, said, gone]);
}
