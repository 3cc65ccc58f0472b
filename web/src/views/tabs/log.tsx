import { useDeferredValue, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRunRead } from '../../api/queries';
import type { Agent, EventRow, Page } from '../../api/types';
import { useFormat } from '../../state/format';
import { go, setParam, useAddress } from '../../state/url';
import { Button, Empty, Loaded, Problem, VirtualList } from '../../ui';
import { plain } from '../activity/rows';
import { exportEvents, useEvents, type Filter } from '../log/events';
import type { TabProps } from '..';
import '../log/log.css';

/** Every event of a run, as it is in the log. */
export default function Log({ run }: TabProps) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const search = useDeferredValue(params.q ?? '');
  const filter = useMemo<Filter>(() => ({ type: params.type ?? '', agent: params.agent ?? '', search }), [params.type, params.agent, search]);
  const { query, rows } = useEvents(run, filter);
  const types = useRef(new Set<string>());
  for (const row of rows ?? []) types.current.add(row.type);
  const agents = useRunRead<Page<Agent>>(run, 'agents', { limit: 500 }).data?.items ?? [];
  const older = query.hasNextPage && (
    <Button isDisabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
      {t('log.older')}
    </Button>
  );
  const isFiltered = Boolean(filter.type || filter.agent || filter.search);
  return (
    <div className="log">
      <div className="row wrap log-head">
        <input className="field search" type="search" data-search aria-label={t('log.search')} placeholder={t('log.search')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
        <Choice label={t('log.type')} all={t('log.allTypes')} value={filter.type} values={[...types.current].sort()} onChange={(value) => setParam('type', value)} />
        <Choice label={t('log.agent')} all={t('log.allAgents')} value={filter.agent} values={agents.map((agent) => agent.id)} onChange={(value) => setParam('agent', value)} />
        <span className="log-gap" />
        {older}
        <Export run={run} filter={filter} />
      </div>
      <Loaded read={{ data: rows, error: query.error, refetch: query.refetch }}>
        {(items) =>
          items.length === 0 ? (
            <Empty title={t(isFiltered ? 'log.noMatch' : 'log.empty')} text={isFiltered ? t('log.noMatchText') : t('log.emptyText')} />
          ) : (
            <VirtualList items={items} keyOf={(row) => row.version} estimate={30} label={t('tab.log')} follows>
              {(row) => <Row row={row} isOpen={params.event === String(row.version)} />}
            </VirtualList>
          )
        }
      </Loaded>
    </div>
  );
}

function Choice({ label, all, value, values, onChange }: { label: string; all: string; value: string; values: string[]; onChange: (value: string) => void }) {
  return (
    <select className="field log-choice" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{all}</option>
      {(value && !values.includes(value) ? [value, ...values] : values).map((item) => (
        <option key={item}>{item}</option>
      ))}
    </select>
  );
}

const TONES: Record<string, string> = { good: 'tone-good', bad: 'tone-bad', wait: 'tone-wait' };

function Row({ row, isOpen }: { row: EventRow; isOpen: boolean }) {
  const { t } = useTranslation();
  const format = useFormat();
  return (
    <>
      <button type="button" className="log-row" aria-expanded={isOpen} onClick={() => setParam('event', isOpen ? '' : String(row.version))}>
        <span className="num soft">{row.version}</span>
        <span className="num soft" title={format.absolute(row.at)}>
          {format.clock(row.at)}
        </span>
        <span className="mono cut">{row.type}</span>
        <span className="cut soft log-agent">{row.agent}</span>
        <span className={`cut log-text ${TONES[row.level] ?? ''}`}>{plain(row.text)}</span>
      </button>
      {isOpen && (
        <div className="log-open">
          <pre className="block" tabIndex={0} role="region" aria-label={t('log.data')}>
            {JSON.stringify(row.data, null, 2)}
          </pre>
          <div className="row wrap">
            <Button onClick={() => go({ at: row.version })}>{t('log.goTo', { version: format.number(row.version) })}</Button>
            {row.step && <Button onClick={() => go({ sel: `step:${row.step}` })}>{t('log.openStep')}</Button>}
          </div>
        </div>
      )}
    </>
  );
}

function Export({ run, filter }: { run: string; filter: Filter }) {
  const { t } = useTranslation();
  const { at } = useAddress();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const address = URL.createObjectURL(await exportEvents(run, filter, at));
      const anchor = document.createElement('a');
      anchor.href = address;
      anchor.download = `${run}.jsonl`;
      anchor.click();
      URL.revokeObjectURL(address);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button isDisabled={isBusy} why={t('log.exportWhat')} onClick={() => void save()}>
        {t(isBusy ? 'log.exporting' : 'log.export')}
      </Button>
      {error !== null && <Problem error={error} />}
    </>
  );
}
