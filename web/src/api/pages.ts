import { useQuery } from '@tanstack/react-query';
import { useAddress } from '../state/url';
import { get, seg, type Params } from './client';
import type { Page } from './types';

const PAGE = 500;

async function walk<T>(path: string, params: Params, most: number, signal: AbortSignal): Promise<Page<T>> {
  const items: T[] = [];
  let page = await get<Page<T>>(path, { ...params, limit: Math.min(PAGE, most) }, signal);
  const { total } = page;
  items.push(...page.items);
  while (page.next && items.length < most) {
    page = await get<Page<T>>(path, { ...params, limit: PAGE, cursor: page.next }, signal);
    items.push(...page.items);
  }
  return { items, next: page.next, total };
}

/** All items of a list of a run, up to `most`; `next` says that there are more. */
export function useRunList<T>(run: string, what: string, params: Params = {}, most = 5_000) {
  const { at } = useAddress();
  return useQuery({
    queryKey: ['run', run, at ?? 'head', what, { ...params, most }],
    queryFn: ({ signal }) => walk<T>(`/runs/${seg(run)}/${what}`, { ...params, at }, most, signal),
    staleTime: at === null ? 30_000 : Infinity,
    placeholderData: (previous, query) => (query?.queryKey[1] === run && query.queryKey[3] === what ? previous : undefined),
    enabled: run !== '',
  });
}

/** All items of a list that is of no run. */
export const useList = <T>(key: string, params: Params = {}, most = 1_000) =>
  useQuery({ queryKey: [key, params], queryFn: ({ signal }) => walk<T>(`/${key}`, params, most, signal), placeholderData: (previous) => previous });
