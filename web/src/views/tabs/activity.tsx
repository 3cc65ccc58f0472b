import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { TabProps } from '..';
import { useRunRead } from '../../api/queries';
import { useFeed } from '../../api/stream';
import type { Agent, EventRow, Page } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Button, Chip, Empty, Problem, Skeleton, VirtualList } from '../../ui';
import { LiveCalls } from '../activity/LiveCalls';
import { Row } from '../activity/Row';
import { essential, useRows, type Filters } from '../activity/rows';
import '../activity/activity.css';

export default function Activity({ run }: TabProps) {
  const { t } = useTranslation();
  const { at, params } = useAddress();
  const search = useDeferredValue(params.q ?? '');
  const filters = useMemo<Filters>(() => ({ agent: params.agent ?? '', type: params.type ?? '', search }), [params.agent, params.type, search]);
  const { rows: all, error, isReady, hasOlder, isLoadingOlder, loadOlder, retry } = useRows(run, at, filters);
  const { live } = useFeed();
  const isAll = params.all === '1' || filters.type !== '';
  const rows = useMemo(() => (isAll ? all : essential(all)), [all, isAll]);
  // A page may hold few lines that count: read on until there is something to scroll.
  const isShort = isReady && rows.length < 40 && hasOlder && !isLoadingOlder;
  useEffect(() => {
    if (isShort) loadOlder();
  }, [isShort]);
  const scroller = useRef<HTMLDivElement>(null);
  const [left, setLeft] = useState<number | null>(null); // the newest version seen when the tail was left
  const arrived = left === null ? 0 : countAfter(rows, left);
  const toTail = () => {
    setLeft(null);
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  return (
    <div className="activity">
      <FilterRow run={run} rows={all} filters={filters} />
      {error !== null && <Problem error={error} onRetry={retry} />}
      {!isReady ? (
        error === null && <Skeleton />
      ) : rows.length === 0 ? (
        <Empty title={t(filters.agent || filters.type || search ? 'activity.noMatch' : 'activity.empty')} text={t('activity.emptyText')} />
      ) : (
        <VirtualList
          items={rows}
          keyOf={(row) => row.version}
          estimate={31}
          label={t('tab.activity')}
          className="feed"
          scroller={scroller}
          follows
          endKey={at}
          onScroll={(isAtEnd, isAtStart) => {
            if (isAtEnd) setLeft(null);
            else if (left === null) setLeft(rows.at(-1)?.version ?? 0);
            if (isAtStart && hasOlder && !isLoadingOlder) loadOlder();
          }}
          header={
            hasOlder && (
              <div className="feed-older">
                <Button look="quiet" isDisabled={isLoadingOlder} onClick={loadOlder}>
                  {t(isLoadingOlder ? 'ui.loading' : 'activity.older')}
                </Button>
              </div>
            )
          }
          footer={at === null && <LiveCalls calls={live} agent={filters.agent} />}
        >
          {(row) => <Row row={row} />}
        </VirtualList>
      )}
      {left !== null && at === null && (
        <Button className="feed-tail" look={arrived ? 'main' : undefined} onClick={toTail}>
          ↓ {arrived ? t('activity.arrived', { count: arrived }) : t('activity.tail')}
        </Button>
      )}
    </div>
  );
}

function countAfter(rows: EventRow[], version: number): number {
  let count = 0;
  for (let index = rows.length - 1; index >= 0 && (rows[index] as EventRow).version > version; index--) count++;
  return count;
}

function FilterRow({ run, rows, filters }: { run: string; rows: EventRow[]; filters: Filters }) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const agents = useRunRead<Page<Agent>>(run, 'agents', { limit: 500 }).data?.items;
  const names = useMemo(() => [...new Set([...(agents ?? []).map((agent) => agent.id), filters.agent].filter(Boolean))].sort(), [agents, filters.agent]);
  const seen = useRef(new Set<string>());
  for (const row of rows.slice(-500)) seen.current.add(row.type);
  if (filters.type) seen.current.add(filters.type);
  return (
    <div className="row wrap activity-filters">
      <select className="field" aria-label={t('activity.agent')} value={filters.agent} onChange={(event) => setParam('agent', event.target.value)}>
        <option value="">{t('activity.allAgents')}</option>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select className="field" aria-label={t('activity.type')} value={filters.type} onChange={(event) => setParam('type', event.target.value)}>
        <option value="">{t('activity.allTypes')}</option>
        {[...seen.current].sort().map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <input className="field" type="search" data-search aria-label={t('activity.search')} placeholder={t('activity.search')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
      <Chip isOn={params.all === '1'} onToggle={() => setParam('all', params.all === '1' ? '' : '1')}>
        {t('activity.all')}
      </Chip>
    </div>
  );
}
