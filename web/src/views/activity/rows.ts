import type { TFunction } from 'i18next';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { get, seg } from '../../api/client';
import { stream, useFeed } from '../../api/stream';
import type { EventRow, Page } from '../../api/types';
import { inWords } from '../changes/answer';

export interface Filters {
  agent: string;
  type: string;
  search: string;
}

interface Rows {
  rows: EventRow[];
  error: unknown;
  isReady: boolean;
  hasOlder: boolean;
  isLoadingOlder: boolean;
  loadOlder: () => void;
  retry: () => void;
}

/** The events of a run up to a version, oldest first: what the stream keeps, or what the server finds. */
export function useRows(run: string, at: number | null, filters: Filters): Rows {
  const isFiltered = Object.values(filters).some(Boolean);
  const isAsked = isFiltered || at !== null;
  const feed = useFeed();
  const [isLoading, setLoading] = useState(false);
  const found = useInfiniteQuery({
    queryKey: ['run', run, at ?? 'found', 'events', filters],
    queryFn: ({ pageParam, signal }) => get<Page<EventRow>>(`/runs/${seg(run)}/events`, { ...filters, at, before: pageParam ?? (at === null ? null : at + 1), limit: 200 }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: (previous, query) => (query?.queryKey[1] === run ? previous : undefined),
    enabled: isAsked,
    staleTime: at === null ? 0 : Infinity,
  });
  const pages = found.data?.pages;
  const asked = useMemo(() => [...(pages ?? [])].reverse().flatMap((page) => page.items), [pages]);
  const rows = useMemo(() => {
    if (!isAsked) return feed.rows;
    if (at !== null || !pages) return asked;
    const newest = asked.at(-1)?.version ?? 0;
    return [...asked, ...feed.rows.filter((row) => row.version > newest && fits(row, filters))];
  }, [isAsked, at, asked, pages, feed.rows, filters]);
  if (isAsked)
    return {
      rows,
      error: found.error,
      isReady: found.data !== undefined,
      hasOlder: found.hasNextPage,
      isLoadingOlder: found.isFetchingNextPage,
      loadOlder: () => void found.fetchNextPage(),
      retry: () => void found.refetch(),
    };
  return {
    rows,
    error: null,
    isReady: feed.isReady,
    hasOlder: !feed.isComplete,
    isLoadingOlder: isLoading,
    loadOlder: () => {
      if (isLoading) return;
      setLoading(true);
      void stream.loadOlder().finally(() => setLoading(false));
    },
    retry: () => undefined,
  };
}

const fits = (row: EventRow, { agent, type, search }: Filters) =>
  (!agent || row.agent === agent) && (!type || row.type === type) && (!search || row.text.toLowerCase().includes(search.toLowerCase()));

// What the machinery notes for itself; the tab Log and `Every event` show it.
const QUIET = new Set(['Declared', 'EffectPrepared', 'LimitsSet', 'MemberChanged', 'MemberCompleted', 'OriginsShared', 'OwnerChanged', 'ParticipantsAdded', 'StageAdded', 'StepBlocked', 'StepQueued', 'StepUnblocked', 'TaskEnding', 'TaskStarted', 'ThreadClosed', 'ThreadOpened']);

/** The first line of a model's reply; empty when it only called tools, null when the event is no model call. */
export function replyOf(row: EventRow): string | null {
  const result = row.type === 'StepEnded' ? row.data.result : null;
  if (typeof result !== 'object' || result === null || !('text' in result) || !('usage' in result)) return null;
  return typeof result.text === 'string' ? (result.text.split('\n').find((line) => line.trim()) ?? '').trim() : null;
}

/** Arguments in JSON and the diff behind an edit are in what a row opens. */
export const plain = (text: string) => text.replace(/ \{".*?[}…](?= →|$)/, '').replace(/ → [{[]".*$/, '').replace(/(?<=\.) @@ .*$/, '');

const isSkipped = (row: EventRow) => row.type === 'StepEnded' && row.data.state === 'skipped';

/** A pause is what a person or a limit wanted, and a step that is no longer needed is skipped: no failures. */
export const levelOf = (row: EventRow): EventRow['level'] => (row.type === 'TeamPaused' ? 'wait' : isSkipped(row) ? 'info' : row.level);

/** An event as one line. A question about a conflict ends with what to type in a terminal: that is left out. */
export function lineOf(row: EventRow): string {
  const { question, choices } = row.data;
  if (row.type === 'ApprovalRequested' && typeof question === 'string' && Array.isArray(choices) && choices.length > 0) {
    const begin = row.text.indexOf(question.slice(0, 20));
    const lines = question.split('\n');
    if (begin >= 0 && lines.length > 1) return `${row.text.slice(0, begin)}${lines.slice(0, -1).join(' ')}`;
  }
  return replyOf(row) || plain(row.text) || row.type;
}

export const CLIENT = /^door\b/; // who an answer of the page or of a terminal is by

/** The line of an event in the page's words. */
export const tell = (row: EventRow, t: TFunction): string => inWords(lineOf(row), t);

/** One line a step: its end, or its start while it runs. */
export function essential(rows: EventRow[]): EventRow[] {
  const ended = new Set<string>();
  for (const row of rows) if (row.type === 'StepEnded') ended.add(row.step);
  return rows.filter((row) => levelOf(row) === 'bad' || (row.text !== '' && !isSkipped(row) && !/^\S+@\S+$/.test(row.text) && !QUIET.has(row.type) && !(row.type === 'StepStarted' && ended.has(row.step)) && replyOf(row) !== ''));
}
