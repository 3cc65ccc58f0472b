import { useMemo } from 'react';
import { useRun, useRunRead } from '../../api/queries';
import type { Plan, Subtask } from '../../api/types';
import { useAddress } from '../../state/url';
import { useInbox } from '../inbox/inbox';

const PERSON = 'person';

const RESTS = ['stopped', 'paused'];

/** The plan of a run. A subtask that runs waits for `person` if it asks one, or if the run rests until one resumes it. */
export function usePlan(run: string) {
  const { at } = useAddress();
  const plan = useRunRead<Plan>(run, 'plan');
  const now = useRun(run).data;
  const isAsked = (now?.waits_for_me ?? 0) > 0 && at === null;
  const rests = at === null && now !== undefined && RESTS.includes(now.state);
  const items = useInbox(isAsked).data?.items;
  const data = useMemo(() => {
    const asking = new Set(isAsked ? items?.filter((item) => item.run === run && item.subtask).map((item) => item.subtask) : []);
    if (!plan.data || (asking.size === 0 && !rests)) return plan.data;
    const mark = (subtask: Subtask): Subtask => {
      if (subtask.state !== 'running' || !(rests || asking.has(subtask.name))) return subtask;
      return { ...subtask, waits_for: PERSON, started_at: rests ? null : subtask.started_at };
    };
    return { ...plan.data, stages: plan.data.stages.map((stage) => ({ ...stage, subtasks: stage.subtasks.map(mark) })) };
  }, [plan.data, items, isAsked, rests, run]);
  return { data, error: plan.error, refetch: plan.refetch };
}

/** A subtask that could begin or go on but for something else waits. */
export const stateOf = (subtask: Subtask): string => (subtask.waits_for && (subtask.state === 'init' || subtask.state === 'running') ? 'waiting' : subtask.state);

export const waitsForPerson = (subtask: Subtask): boolean => subtask.state === 'running' && subtask.waits_for !== '';
