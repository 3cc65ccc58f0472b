import { keepPreviousData, QueryClient, useMutation, useQuery } from '@tanstack/react-query';
import { useAddress } from '../state/url';
import { get, post, ProblemError, seg, type Params } from './client';
import type { Page, Run, RunDetail, Session, Verb, VerbInput, VerbResult } from './types';

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 120_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && error instanceof ProblemError && (error.status === 0 || error.status >= 500),
      retryDelay: (count) => 500 * 2 ** count,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

export const useSession = () => useQuery({ queryKey: ['session'], queryFn: ({ signal }) => get<Session>('/session', {}, signal), staleTime: Infinity });

export const useRuns = () =>
  useQuery({ queryKey: ['runs'], queryFn: ({ signal }) => get<Page<Run>>('/runs', { limit: 500 }, signal), placeholderData: keepPreviousData });

export const useInboxCount = () =>
  useQuery({
    queryKey: ['inbox', 'count'],
    queryFn: async ({ signal }) => {
      const page = await get<Page<unknown>>('/inbox', { limit: 100 }, signal);
      return page.total ?? page.items.length;
    },
  });

/**
 * A read of a run at the version in the address, or its newest. A past version never changes, so it is kept;
 * the newest is read again when the stream says that something happened. While a new one comes, the last stays.
 */
export function useRunRead<T>(run: string, what: string, params: Params = {}, enabled = true) {
  const { at } = useAddress();
  return useQuery({
    queryKey: ['run', run, at ?? 'head', what, params],
    queryFn: ({ signal }) => get<T>(`/runs/${seg(run)}${what ? `/${what}` : ''}`, { ...params, at }, signal),
    staleTime: at === null ? 30_000 : Infinity,
    gcTime: at === null ? 120_000 : 60_000,
    placeholderData: (previous, query) => (query?.queryKey[1] === run && query.queryKey[3] === what ? previous : undefined),
    enabled: enabled && run !== '',
  });
}

export const useRun = (run: string) => useRunRead<RunDetail>(run, '');

export function useVerb(run: string) {
  return useMutation({
    mutationFn: ({ verb, ...input }: VerbInput & { verb: Verb }) => post<VerbResult>(`/runs/${seg(run)}/${verb}`, input),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['run', run, 'head'] });
      void client.invalidateQueries({ queryKey: ['runs'] });
    },
  });
}
