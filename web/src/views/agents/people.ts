import { useRun, useSession } from '../../api/queries';
import type { Verb } from '../../api/types';
import { useOff } from '../run/past';

const KINDS = ['human', 'person'];

/** Says whether a member of a run is a person. */
export function useIsPerson(): (id: string, kind?: string) => boolean {
  const person = useSession().data?.person;
  return (id, kind) => (kind !== undefined && KINDS.includes(kind)) || id === person || KINDS.includes(id);
}

/** Why a verb cannot be used on a run now; empty when it can. */
export function useWhyNot(run: string, verb: Verb): string {
  const past = useOff();
  const action = useRun(run).data?.actions.find((item) => item.verb === verb);
  return past || (action && !action.is_allowed ? action.why : '');
}
