import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRunRead } from '../../api/queries';
import type { Bar, Gantt } from '../../api/types';
import { useEnd, useFormat } from '../../state/format';
import { select, useAddress } from '../../state/url';
import { AgentName, Button, Empty, Loaded, VirtualList } from '../../ui';

const KINDS = ['model', 'tool', 'wait', 'approval'] as const;

/** What each agent did, on one time axis: a lane per agent, a bar per step. */
export function GanttChart({ run }: { run: string }) {
  const gantt = useRunRead<Gantt>(run, 'gantt');
  return <Loaded read={gantt}>{(data) => <Lanes gantt={data} />}</Loaded>;
}

function Lanes({ gantt }: { gantt: Gantt }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { sel } = useAddress();
  const [zoom, setZoom] = useState(1);
  const isOpen = gantt.lanes.some((lane) => lane.bars.some((bar) => bar.ends === null));
  const end = useEnd(isOpen);
  const ends = isOpen ? Math.max(gantt.ends, end) : gantt.ends;
  const length = Math.max(1, ends - gantt.begins);
  if (!gantt.lanes.length) return <Empty title={t('plan.noBars')} text={t('plan.noBarsText')} />;
  const share = (time: number) => `${(100 * (time - gantt.begins)) / length}%`;
  return (
    <div className="gantt">
      <div className="row wrap gantt-top">
        {KINDS.map((kind) => (
          <span key={kind} className="row">
            <i className={`dot bar-${kind}`} /> {t(`plan.bar.${kind}`)}
          </span>
        ))}
        <span className="grow" />
        <Button aria-label={t('plan.zoomOut')} isDisabled={zoom <= 1} onClick={() => setZoom(zoom / 2)}>
          −
        </Button>
        <Button aria-label={t('plan.zoomIn')} isDisabled={zoom >= 64} onClick={() => setZoom(zoom * 2)}>
          +
        </Button>
      </div>
      <div className="gantt-scroll">
        <div className="gantt-wide" style={{ width: zoom === 1 ? '100%' : `calc(160px + ${zoom} * (100% - 160px))` }}>
          <div className="lane lane-axis" aria-hidden="true">
            <span className="lane-name" />
            <span className="lane-bars">
              {ticks(length, zoom).map((ms) => (
                <span key={ms} className="tick soft num" style={{ left: share(gantt.begins + ms) }}>
                  {format.duration(ms)}
                </span>
              ))}
            </span>
          </div>
          <VirtualList items={gantt.lanes} keyOf={(lane) => lane.agent} estimate={34} label={t('plan.lanes')} className="gantt-lanes">
            {(lane) => (
              <div className={`lane ${sel === `agent:${lane.agent}` ? 'selected' : ''}`}>
                <button type="button" className="lane-name" onClick={() => select(`agent:${lane.agent}`)}>
                  <AgentName agent={lane.agent} />
                </button>
                <span className="lane-bars">
                  {lane.bars.map((bar) => (
                    <BarBox key={`${bar.begins}/${bar.step}`} bar={bar} left={share(bar.begins)} width={`${(100 * ((bar.ends ?? ends) - bar.begins)) / length}%`} sel={sel} ends={ends} />
                  ))}
                </span>
              </div>
            )}
          </VirtualList>
        </div>
      </div>
    </div>
  );
}

function BarBox({ bar, left, width, sel, ends }: { bar: Bar; left: string; width: string; sel: string; ends: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const parts = [t(`plan.bar.${bar.kind}`), bar.steps > 1 ? t('plan.steps', { count: bar.steps }) : bar.text, format.duration((bar.ends ?? ends) - bar.begins), format.clock(bar.begins)];
  const label = parts.filter(Boolean).join(' · ');
  const isSelected = (bar.step !== '' && sel === `step:${bar.step}`) || (bar.subtask !== '' && sel === `subtask:${bar.subtask}`);
  const target = bar.step ? `step:${bar.step}` : bar.subtask ? `subtask:${bar.subtask}` : '';
  return (
    <button
      type="button"
      tabIndex={-1}
      className={`bar bar-${bar.kind} ${isSelected ? 'selected' : ''} ${bar.ends === null ? 'open' : ''}`}
      style={{ left, width }}
      aria-label={label}
      title={label}
      onClick={() => target && select(target)}
    />
  );
}

/** Round times for the axis: about eight in the width of the window. */
function ticks(length: number, zoom: number): number[] {
  const rough = length / (8 * zoom);
  const steps = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000];
  const step = steps.find((candidate) => candidate >= rough) ?? rough;
  return Array.from({ length: Math.min(1_000, Math.floor(length / step) + 1) }, (_, index) => index * step).filter((ms) => ms < length * 0.97);
}
