import { useMutation, useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { get, post, seg } from '../../api/client';
import { useRunRead } from '../../api/queries';
import type { EventRow, Page, Timeline as Data, VerbResult } from '../../api/types';
import { useKey } from '../../shell/keyboard';
import { useFormat } from '../../state/format';
import { theme } from '../../state/setting';
import { colourOf, useSystemDark } from '../../state/media';
import { go, useAddress } from '../../state/url';
import { Button, Problem, Sentence } from '../../ui';
import { tell } from '../activity/rows';
import { inWords } from '../changes/answer';

const SETTLE_MS = 90; // a drag is read when it rests this long

const setAt = (at: number | null) => go({ at }, true);

export const useTimeline = (run: string) =>
  useQuery({
    queryKey: ['run', run, 'head', 'timeline'],
    queryFn: ({ signal }) => get<Data>(`/runs/${seg(run)}/timeline`, { buckets: 200 }, signal),
  });

/** The density of events over the run. Dragging, or the arrow keys, shows any past version. */
export function Timeline({ run, head }: { run: string; head: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { at } = useAddress();
  const track = useRef<HTMLDivElement>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const timer = useRef(0);
  const { data } = useTimeline(run);
  const last = Math.max(head, data?.head ?? 0, 1);
  const shown = dragged ?? at ?? last;

  // Each version on the way would be a read: the last one of a drag counts, and stale reads are cancelled.
  const show = useCallback(
    (version: number, isNow: boolean) => {
      window.clearTimeout(timer.current);
      const next = version >= last ? null : Math.max(1, version);
      if (isNow) {
        setDragged(null);
        setAt(next);
      } else {
        setDragged(next ?? last);
        timer.current = window.setTimeout(() => setAt(next), SETTLE_MS);
      }
    },
    [last],
  );
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const back = useCallback(() => show((at ?? last) - 1, true), [show, at, last]);
  const on = useCallback(() => at !== null && show(at + 1, true), [show, at]);
  const live = useCallback(() => show(last, true), [show, last]);
  useKey('ArrowLeft', back);
  useKey('ArrowRight', on);
  useKey('l', live);

  const point = (event: PointerEvent) => {
    const box = track.current?.getBoundingClientRect();
    if (!box || !data) return last;
    return versionAt(data, (event.clientX - box.left) / box.width, last);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -Math.ceil(last / 20), PageUp: Math.ceil(last / 20) }[event.key];
    const target = event.key === 'Home' ? 1 : event.key === 'End' ? last : step === undefined ? null : (at ?? last) + step;
    if (target === null) return;
    event.preventDefault();
    show(target, true);
  };
  return (
    <div className="timeline">
      <div
        ref={track}
        className="timeline-track"
        role="slider"
        tabIndex={0}
        aria-label={t('run.timeline')}
        aria-valuemin={1}
        aria-valuemax={last}
        aria-valuenow={shown}
        aria-valuetext={t('run.valueText', { version: format.number(shown), head: format.number(last) })}
        onKeyDown={press}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          show(point(event), false);
        }}
        onPointerMove={(event) => event.buttons === 1 && event.currentTarget.hasPointerCapture(event.pointerId) && show(point(event), false)}
        onPointerUp={(event) => show(point(event), true)}
      >
        {data && <Density data={data} upTo={share(data, shown, last)} />}
        {data && <span className="timeline-handle" style={{ left: `${100 * share(data, shown, last)}%` }} />}
      </div>
      {data && data.marks.length > 0 && (
        <div className="timeline-marks">
          {data.marks.map((mark) => (
            <button
              key={`${mark.version}${mark.kind}`}
              type="button"
              tabIndex={-1}
              className={`mark mark-${mark.kind}`}
              style={{ left: `${100 * share(data, mark.version, last)}%` }}
              aria-label={`${inWords(mark.text, t)}, ${format.clock(mark.at)}`}
              title={`${inWords(mark.text, t)} · ${format.clock(mark.at)}`}
              onClick={() => show(mark.version, true)}
            />
          ))}
        </div>
      )}
      <div className="timeline-end">
        <button type="button" className="chip" aria-pressed={at === null} aria-keyshortcuts="L" onClick={live}>
          {t('run.live')}
        </button>
        <span className="num soft">{t('run.version', { version: format.number(shown) })}</span>
      </div>
    </div>
  );
}

/** Buckets have the same width: the version at a share of the width, and back. */
function versionAt(data: Data, position: number, last: number): number {
  const { buckets } = data;
  if (position >= 0.996 || !buckets.length) return last;
  const exact = Math.max(0, position) * buckets.length;
  const index = Math.min(buckets.length - 1, Math.floor(exact));
  const before = buckets[index - 1]?.version ?? 0;
  const after = buckets[index]?.version ?? last;
  return Math.max(1, Math.round(before + (exact - index) * (after - before)));
}

function share(data: Data, version: number, last: number): number {
  const { buckets } = data;
  if (version >= last || !buckets.length) return 1;
  const index = buckets.findIndex((bucket) => bucket.version >= version);
  if (index < 0) return 1;
  const before = buckets[index - 1]?.version ?? 0;
  const after = buckets[index]?.version ?? last;
  return (index + (version - before) / Math.max(1, after - before)) / buckets.length;
}

function Density({ data, upTo }: { data: Data; upTo: number }) {
  const ref = useRef<HTMLCanvasElement>(null);
  const chosen = theme.use();
  const isDark = useSystemDark();
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const observer = new ResizeObserver(() => setWidth(canvas.clientWidth));
    observer.observe(canvas);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext('2d');
    if (!canvas || !context || !width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const [seen, ahead] = [colourOf(canvas, '--accent'), colourOf(canvas, '--line-strong')];
    const most = Math.max(1, ...data.buckets.map((bucket) => bucket.events));
    const step = canvas.width / Math.max(1, data.buckets.length);
    data.buckets.forEach((bucket, index) => {
      if (!bucket.events) return;
      const height = Math.max(2 * ratio, (bucket.events / most) * canvas.height);
      context.fillStyle = index / data.buckets.length < upTo ? seen : ahead;
      context.globalAlpha = index / data.buckets.length < upTo ? 0.75 : 0.4;
      context.fillRect(index * step, canvas.height - height, Math.max(1, step - ratio), height);
    });
  }, [data, upTo, width, chosen, isDark]);
  return <canvas ref={ref} className="timeline-canvas" aria-hidden="true" />;
}

/** Says which version is shown, what happened there, and how to get back. */
export function PastBand({ run }: { run: string }) {
  const { at } = useAddress();
  return at === null ? null : <Past run={run} at={at} />;
}

function Past({ run, at }: { run: string; at: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const row = useRunRead<Page<EventRow>>(run, 'events', { before: at + 1, limit: 1 }).data?.items.at(-1);
  const fork = useMutation({
    mutationFn: () => post<VerbResult>(`/runs/${seg(run)}/fork`, { version: at }),
    onSuccess: (result) => {
      if (result.run) go({ run: result.run });
    },
  });
  return (
    <div className="band" role="status">
      <strong>{t('run.youSee', { version: format.number(at), time: row ? format.clock(row.at) : '…' })}</strong>
      <span className="cut grow soft">{row && <Sentence text={tell(row, t)} />}</span>
      <Button look="main" onClick={() => setAt(null)} aria-keyshortcuts="L">
        {t('run.backToLive')}
      </Button>
      <Button why={t('run.forkWhy')} isDisabled={fork.isPending} onClick={() => fork.mutate()}>
        {t('run.forkHere', { version: format.number(at) })}
      </Button>
      {fork.error && <Problem error={fork.error} />}
      {fork.data && !fork.data.run && <span>
          <Sentence text={fork.data.message} />
        </span>}
    </div>
  );
}
