import type { Costs } from '../../api/types';

export type Measure = 'cost' | 'tokens';
const MOST = 11;

export interface Series {
  name: string; // empty: all others
  values: number[];
}

/** What was spent until each time, by name, the largest first; the smaller ones together. */
export function listSeries(costs: Costs, measure: Measure): { times: number[]; series: Series[] } {
  const points = costs.points;
  const last = points.at(-1);
  const names = [...new Set(points.flatMap((point) => Object.keys(point[measure])))].sort((left, right) => (last?.[measure][right] ?? 0) - (last?.[measure][left] ?? 0));
  const shown = names.length > MOST + 1 ? names.slice(0, MOST) : names;
  const rest = names.slice(shown.length);
  const series = shown.map((name) => ({ name, values: points.map((point) => point[measure][name] ?? 0) }));
  if (rest.length) series.push({ name: '', values: points.map((point) => rest.reduce((sum, name) => sum + (point[measure][name] ?? 0), 0)) });
  return { times: points.map((point) => point.at / 1000), series };
}

/** Each series on top of those before it. */
export function stack(series: readonly Series[]): number[][] {
  const below: number[] = [];
  return series.map(({ values }) => values.map((value, index) => (below[index] = (below[index] ?? 0) + value)));
}
