import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { get, seg } from '../../api/client';
import { useFeed } from '../../api/stream';
import type { EventRow, Page } from '../../api/types';
import { useAddress } from '../../state/url';

export interface Filter {
  type: string;
  agent: string;
  search: string;
}

const PAGE = 300;
const MOST_EXPORTED = 200_000;

const read = (run: string, filter: Filter, before: number | null, limit: number, signal?: AbortSignal) =>
  get<Page<EventRow>>(`/runs/${seg(run)}/events`, { ...filter, before, limit }, signal);

/** The events of a run that pass the filter, oldest first, the newest ones read first; live ones are added at the end. */
export function useEvents(run: string, filter: Filter) {
  const { at } = useAddress();
  const feed = useFeed();
  const query = useInfiniteQuery({
    queryKey: ['run', run, at ?? 'log', 'events', filter],
    initialPageParam: at === null ? null : at + 1,
    queryFn: ({ pageParam, signal }) => read(run, filter, pageParam, PAGE, signal),
    getNextPageParam: (page: Page<EventRow>) => (page.next === null ? undefined : (page.items[0]?.version ?? undefined)),
    staleTime: Infinity,
  });
  const known = useMemo(() => query.data?.pages.toReversed().flatMap((page) => page.items), [query.data]);
  const last = known?.at(-1)?.version ?? 0;
  const rows = useMemo(() => {
    if (!known) return undefined;
    if (at !== null) return known;
    const words = filter.search.toLowerCase();
    const passes = (row: EventRow) => row.version > last && (!filter.type || row.type === filter.type) && (!filter.agent || row.agent === filter.agent) && (!words || row.text.toLowerCase().includes(words));
    const fresh = feed.rows.filter((row) => row.run === run && passes(row));
    return fresh.length ? [...known, ...fresh] : known;
  }, [known, feed.rows, at, last, run, filter]);
  return { query, rows };
}

/** All events that pass the filter, up to a version, as one JSON object a line. */
export async function exportEvents(run: string, filter: Filter, at: number | null): Promise<Blob> {
  const pages: EventRow[][] = [];
  let before = at === null ? null : at + 1;
  for (let count = 0; count < MOST_EXPORTED; ) {
    const page = await read(run, filter, before, 500);
    pages.push(page.items);
    count += page.items.length;
    before = page.items[0]?.version ?? null;
    if (page.next === null || before === null) break;
  }
  const lines = pages.toReversed().flatMap((items) => items.map((row) => `${JSON.stringify(row)}\n`));
  return new Blob(lines, { type: 'application/x-ndjson' });
}
