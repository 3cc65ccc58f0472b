import { useMemo } from 'react';
import { useRun, useRunRead } from '../../api/queries';
import type { Plan, Subtask } from '../../api/types';
import { useAddress } from '../../state/url';
import { useInbox } from '../inbox/inbox';

const PERSON = 'person';

/** The plan of a run. A subtask that runs and asks a person waits for `person`. */
export function usePlan(run: string) {
  const { at } = useAddress();
  const plan = useRunRead<Plan>(run, 'plan');
  const isAsked = (useRun(run).data?.waits_for_me ?? 0) > 0 && at === null;
  const items = useInbox(isAsked).data?.items;
  const data = useMemo(() => {
    const asking = new Set(isAsked ? items?.filter((item) => item.run === run && item.subtask).map((item) => item.subtask) : []);
    if (!plan.data || asking.size === 0) return plan.data;
    const mark = (subtask: Subtask) => (subtask.state === 'running' && asking.has(subtask.name) ? { ...subtask, waits_for: PERSON } : subtask);
    return { ...plan.data, stages: plan.data.stages.map((stage) => ({ ...stage, subtasks: stage.subtasks.map(mark) })) };
  }, [plan.data, items, isAsked, run]);
  return { data, error: plan.error, refetch: plan.refetch };
}

/** A subtask that could begin or go on but for something else waits. */
export const stateOf = (subtask: Subtask): string => (subtask.waits_for && (subtask.state === 'init' || subtask.state === 'running') ? 'waiting' : subtask.state);

export const waitsForPerson = (subtask: Subtask): boolean => subtask.state === 'running' && subtask.waits_for !== '';
