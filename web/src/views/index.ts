import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

/**
 * The views of the page. A file is a view: `places/NAME.tsx` of the rail, `tabs/NAME.tsx` of a run, `inspect/KIND.tsx`
 * of a selection `KIND:ID`; its default export is the component. What has no file is not shown.
 */
export interface TabProps {
  run: string;
}
export interface InspectProps {
  run: string;
  id: string;
}
type Loader<P> = () => Promise<{ default: ComponentType<P> }>;
type Lazy<P> = LazyExoticComponent<ComponentType<P>>;

function views<P>(files: Record<string, unknown>): Map<string, Lazy<P>> {
  const named = Object.entries(files).map(([path, load]) => [path.replace(/^.*\/(\w+)\.tsx$/, '$1'), lazy(load as Loader<P>)] as const);
  return new Map(named);
}

const placeFiles = views<object>(import.meta.glob('./places/*.tsx'));
const tabFiles = views<TabProps>(import.meta.glob('./tabs/*.tsx'));
const ordered = <P>(files: Map<string, Lazy<P>>, names: readonly string[]) => names.flatMap((name) => (files.has(name) ? [{ name, View: files.get(name) as Lazy<P> }] : []));

export const places = ordered(placeFiles, ['runs', 'inbox', 'agents', 'knowledge', 'costs']);
export const tabs = ordered(tabFiles, ['plan', 'activity', 'messages', 'changes', 'conflicts', 'artifacts', 'agents', 'costs', 'log']);
export const inspectors = views<InspectProps>(import.meta.glob('./inspect/*.tsx'));
