import { useSession } from '../../api/queries';

const KINDS = ['human', 'person'];

/** Says whether a member of a run is a person. */
export function useIsPerson(): (id: string, kind?: string) => boolean {
  const person = useSession().data?.person;
  return (id, kind) => (kind !== undefined && KINDS.includes(kind)) || id === person || KINDS.includes(id);
}
