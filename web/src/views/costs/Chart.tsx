import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useFormat } from '../../state/format';
import { colourOf, useSystemDark } from '../../state/media';
import { theme } from '../../state/setting';
import { agentClass } from '../../ui';
import { stack, type Measure, type Series } from './series';

interface ChartProps {
  times: number[];
  series: Series[];
  limit: number | null;
  measure: Measure;
  label: string;
}

const HEIGHT = 240;
const FAR = 4; // a cap that is farther away would leave nothing to see

/** What was spent over time, stacked, with the cap as a dashed line. */
export function Chart({ times, series, limit, measure, label }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const format = useFormat();
  const look = `${theme.use()}${String(useSystemDark())}`;
  useEffect(() => {
    const node = host.current;
    if (!node || times.length === 0) return;
    const colour = (name: string) => colourOf(node, name);
    const filled = (index: number) => colour(`--${agentClass(series[index]?.name ?? '')}`);
    const show = (value: number) => (measure === 'cost' ? format.exactly(value) : format.compact(value));
    const sums = stack(series);
    const tallest = Math.max(...(sums.at(-1) ?? []));
    const cap = limit === null || limit > tallest * FAR ? [] : [times.map(() => limit)];
    // The tallest is drawn first, so that each one covers those above it down to its own top.
    const order = series.map((_, index) => index).reverse();
    const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
    const plot = new uPlot(
      {
        width: node.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_, __, high) => [0, Math.max(high, 0.0001) * 1.06] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map((value) => format.clock(value * 1000)), space: 90 },
          { ...axis, values: (_, splits) => splits.map(show), size: 70 },
        ],
        series: [
          {},
          ...order.map((index) => ({ stroke: filled(index), fill: filled(index), width: 1, points: { show: false }, paths: uPlot.paths.stepped?.({ align: 1 }) })),
          ...cap.map(() => ({ stroke: colour('--bad'), width: 2, dash: [6, 4], points: { show: false } })),
        ],
      },
      [times, ...order.map((index) => sums[index] as number[]), ...cap],
      node,
    );
    const resize = new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height: HEIGHT }));
    resize.observe(node);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [times, series, limit, measure, format, look]);
  return <div ref={host} className="chart" role="img" aria-label={label} />;
}
