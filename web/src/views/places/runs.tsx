import { useMemo, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useRuns, useSession } from '../../api/queries';
import type { Run } from '../../api/types';
import { useFormat } from '../../state/format';
import { link, setParam, useAddress } from '../../state/url';
import { Chip, Empty, Loaded, Money, Sentence, StateSign, Time, VirtualList } from '../../ui';
import { Composer } from '../runs/Composer';
import '../runs/runs.css';

const FILTERS: Record<string, (run: Run) => boolean> = {
  mine: (run) => run.waits_for_me > 0,
  active: (run) => ['working', 'waiting', 'paused', 'limit', 'provider', 'stopped'].includes(run.state),
  ready: (run) => run.verdict !== null,
  failed: (run) => ['failed', 'damaged'].includes(run.state) || run.verdict === 'failed',
};

export default function Runs() {
  const { t } = useTranslation();
  const { params } = useAddress();
  const runs = useRuns();
  const scroller = useRef<HTMLDivElement>(null);
  const filter = params.show ?? '';
  const words = (params.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const all = runs.data?.items;
  const shown = useMemo(() => {
    const keep = FILTERS[filter];
    return (all ?? []).filter((run) => (!keep || keep(run)) && words.every((word) => `${run.title} ${run.id} ${run.folder}`.toLowerCase().includes(word)));
  }, [all, filter, words.join(' ')]);
  return (
    <div className="runs">
      <h1 className="sr">{t('shell.runs')}</h1>
      <Composer />
      <Loaded read={runs}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty title={t('runs.empty')} text={t('runs.emptyText')} />
          ) : (
            <section className="runs-list">
              <div className="row wrap runs-filters">
                {Object.entries(FILTERS).map(([name, keep]) => (
                  <Chip key={name} isOn={filter === name} onToggle={() => setParam('show', filter === name ? '' : name)}>
                    {t(`runs.filter.${name}`)} <span className="soft num">{page.items.filter(keep).length}</span>
                  </Chip>
                ))}
                <input className="field runs-search" type="search" data-search aria-label={t('runs.search')} placeholder={t('runs.search')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
              </div>
              {shown.length === 0 ? (
                <Empty title={t('runs.noMatch')} text={t('runs.noMatchText')} />
              ) : (
                <>
                  <RunHead />
                  <VirtualList items={shown} keyOf={(run) => run.id} estimate={46} label={t('shell.runs')} scroller={scroller}>
                    {(run) => <RunRow run={run} />}
                  </VirtualList>
                </>
              )}
            </section>
          )
        }
      </Loaded>
    </div>
  );
}

function RunHead() {
  const { t } = useTranslation();
  return (
    <div className="run-row run-head" aria-hidden="true">
      <span>{t('runs.state')}</span>
      <span>{t('runs.title')}</span>
      <span>{t('runs.progress')}</span>
      <span className="right">{t('runs.agents')}</span>
      <span className="right">{t('runs.cost')}</span>
      <span className="right">{t('runs.started')}</span>
    </div>
  );
}

function RunRow({ run }: { run: Run }) {
  const { t } = useTranslation();
  const format = useFormat();
  const folder = useSession().data?.folder;
  return (
    <a className="run-row" data-item {...link({ run: run.id })}>
      <span className="run-state">
        <StateSign state={run.state === 'finished' && run.verdict ? run.verdict : run.state} />
      </span>
      <span className="run-title">
        <span className="cut">{run.title}</span>
        {folder && run.folder && run.folder !== folder && <span className="soft cut mono">{run.folder}</span>}
        {run.waits_for_me > 0 ? <span className="tone-wait waits">{t('runs.waitsForYou', { count: run.waits_for_me })}</span> : run.reason && <span className="soft cut" title={run.reason}>
            <Sentence text={run.reason} />
          </span>}
      </span>
      <span className="run-progress">
        {run.subtasks > 0 && (
          <>
            <progress value={run.subtasks_done} max={run.subtasks} aria-label={t('runs.progress')} />
            <span className="num">{t('runs.doneOf', { done: run.subtasks_done, all: run.subtasks })}</span>
          </>
        )}
      </span>
      <span className="right num run-agents" title={t('runs.agentCount', { count: run.agents })}>
        {format.number(run.agents)}
      </span>
      <span className="right">
        <Money value={run.cost} limit={run.cost_limit} isInLink />
      </span>
      <span className="right soft">
        <Time at={run.created_at} isInLink />
      </span>
    </a>
  );
}
