import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client';
import { useList } from '../../api/pages';
import { useRuns } from '../../api/queries';
import type { Costs, Performance } from '../../api/types';
import { useFormat } from '../../state/format';
import { setParam, useAddress } from '../../state/url';
import { Empty, Loaded, Money } from '../../ui';
import { CostView } from '../costs/CostView';

const BY = ['run', 'agent', 'model'] as const;

/** What all runs spent, and how well each profile did its subtasks. */
export default function AllCosts() {
  const { t } = useTranslation();
  const { params } = useAddress();
  const by = BY.find((value) => value === params.by) ?? 'run';
  const costs = useQuery({ queryKey: ['costs', by], queryFn: ({ signal }) => get<Costs>('/costs', { by }, signal), placeholderData: (previous) => previous, staleTime: 5_000 });
  const performance = useList<Performance>('performance');
  const runs = useRuns().data?.items;
  const titles = useMemo(() => new Map(by === 'run' ? runs?.map((run) => [run.id, run.title]) : []), [runs, by]);
  const groups = BY.map((value) => ({ value, label: t(`costs.group.${value}`) }));
  return (
    <div className="place">
      <h1>{t('shell.costs')}</h1>
      <Loaded read={costs}>{(data) => <CostView costs={data} groups={groups} by={by} onBy={(next) => setParam('by', next === 'run' ? '' : next)} nameOf={(name) => titles.get(name) ?? name} />}</Loaded>
      <h2 className="costs-part">{t('costs.performance')}</h2>
      <Loaded read={performance}>{({ items }) => (items.length === 0 ? <Empty title={t('costs.noPerformance')} text={t('costs.noPerformanceText')} /> : <PerformanceTable rows={items} />)}</Loaded>
    </div>
  );
}

function PerformanceTable({ rows }: { rows: Performance[] }) {
  const { t, i18n } = useTranslation();
  const format = useFormat();
  const percent = new Intl.NumberFormat(i18n.language, { style: 'percent' });
  const heads = ['profile', 'completed', 'failed', 'successRate', 'averageTime', 'averageTokens', 'averageCost'] as const;
  return (
    <div className="scroll-x" role="region" aria-label={t('costs.performance')} tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            {heads.map((name, index) => (
              <th key={name} scope="col" className={index ? 'right' : ''}>
                {t(`costs.head.${name}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.profile}>
              <th scope="row">{row.profile}</th>
              <td data-label={t('costs.head.completed')} className="right num">{format.number(row.completed)}</td>
              <td data-label={t('costs.head.failed')} className="right num">{format.number(row.failed)}</td>
              <td data-label={t('costs.head.successRate')} className="right num">{row.success_rate === null ? '–' : percent.format(row.success_rate)}</td>
              <td data-label={t('costs.head.averageTime')} className="right num">{format.duration(row.seconds * 1000)}</td>
              <td data-label={t('costs.head.averageTokens')} className="right num">{format.compact(Math.round(row.tokens))}</td>
              <td data-label={t('costs.head.averageCost')} className="right">
                {row.tokens > 0 ? <Money value={row.cost} /> : '–'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
