import { lazy, Suspense, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Costs, CostRow } from '../../api/types';
import { useFormat } from '../../state/format';
import { agentClass, Button, Empty, Money, Skeleton, Switch } from '../../ui';
import { listSeries, type Measure } from './series';
import './costs.css';

const Chart = lazy(() => import('./Chart').then((module) => ({ default: module.Chart })));

export interface Group {
  value: string;
  label: string;
}

interface CostProps {
  costs: Costs;
  groups: Group[];
  by: string;
  onBy: (by: string) => void;
  nameOf?: (name: string) => string;
}

/** What was spent: over time as a chart, and by name as a table that can be copied. */
export function CostView({ costs, groups, by, onBy, nameOf = (name) => name }: CostProps) {
  const { t } = useTranslation();
  const format = useFormat();
  const [measure, setMeasure] = useState<Measure>('cost');
  const { times, series } = useMemo(() => listSeries(costs, measure), [costs, measure]);
  const named = useMemo(() => new Set(series.map((item) => item.name)), [series]);
  if (!costs.rows.length) return <Empty title={t('costs.empty')} text={t('costs.emptyText')} />;
  const limit = measure === 'cost' ? costs.cost_limit : null;
  return (
    <div className="stack costs">
      <div className="row wrap">
        <span className="row cost-sum">
          <Money value={costs.cost} limit={costs.cost_limit} />
          <span className="soft num">{t('costs.tokensOf', { tokens: format.number(costs.tokens) })}</span>
        </span>
        <Switch label={t('costs.by')} value={by} onChange={onBy} options={groups} />
        <Switch
          label={t('costs.measure')}
          value={measure}
          onChange={setMeasure}
          options={[
            { value: 'cost', label: t('costs.dollars') },
            { value: 'tokens', label: t('costs.tokens') },
          ]}
        />
        {limit !== null && <span className="cap-mark">{t('costs.cap', { limit: format.money(limit) })}</span>}
      </div>
      {times.length > 0 && (
        <Suspense fallback={<Skeleton />}>
          <Chart times={times} series={series} limit={limit} measure={measure} label={t('costs.chart')} />
        </Suspense>
      )}
      <CostTable costs={costs} nameOf={nameOf} named={named} head={groups.find((group) => group.value === by)?.label ?? ''} />
    </div>
  );
}

const toTsv = (rows: readonly (readonly (string | number)[])[]) => rows.map((row) => row.map((cell) => String(cell).replace(/[\t\n\r]+/g, ' ')).join('\t')).join('\n');

function CostTable({ costs, nameOf, named, head }: { costs: Costs; nameOf: (name: string) => string; named: ReadonlySet<string>; head: string }) {
  const { t } = useTranslation();
  const format = useFormat();
  const [copied, setCopied] = useState<'' | 'done' | 'failed'>('');
  const rows = useMemo(() => [...costs.rows].sort((left, right) => (right.cost ?? 0) - (left.cost ?? 0) || right.tokens - left.tokens), [costs.rows]);
  const columns = [head, t('costs.calls'), t('costs.tokens'), t('costs.cost'), t('costs.reserved'), t('costs.unpriced')];
  const copy = () => {
    const text = toTsv([columns, ...rows.map((row) => [nameOf(row.name), row.calls, row.tokens, row.cost ?? '', row.reserved, row.unpriced])]);
    navigator.clipboard.writeText(text).then(
      () => setCopied('done'),
      () => setCopied('failed'),
    );
  };
  const hasReserved = rows.some((row) => row.reserved > 0);
  const cells = (row: CostRow) => (
    <tr key={row.name}>
      <th scope="row">
        <span className="row">
          <i className={`dot ${agentClass(named.has(row.name) ? row.name : '')}`} /> <span className="item-text">{nameOf(row.name)}</span>
        </span>
      </th>
      <td className="right num" data-label={columns[1]}>{format.number(row.calls)}</td>
      <td className="right num" data-label={columns[2]}>{format.number(row.tokens)}</td>
      <td className="right" data-label={columns[3]}>
        <Money value={row.cost} />
        {row.unpriced > 0 && <span className="soft"> {t('costs.withUnpriced', { count: row.unpriced })}</span>}
      </td>
      {hasReserved && <td className="right num" data-label={columns[4]}>{row.reserved ? format.number(row.reserved) : ''}</td>}
    </tr>
  );
  return (
    <div className="stack-tight">
      <div className="scroll-x" role="region" aria-label={t('costs.table')} tabIndex={0}>
        <table className="table">
          <thead>
            <tr>
              {columns.slice(0, hasReserved ? 5 : 4).map((column, index) => (
                <th key={column} scope="col" className={index ? 'right' : ''}>
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{rows.slice(0, 500).map(cells)}</tbody>
        </table>
      </div>
      {rows.length > 500 && <p className="soft">{t('costs.cut', { count: 500, total: rows.length })}</p>}
      <div className="row">
        <Button onClick={copy}>{t('costs.copy')}</Button>
        <span role="status" className="soft">
          {copied && t(`costs.copied.${copied}`)}
        </span>
      </div>
    </div>
  );
}
