import * as RadixTabs from '@radix-ui/react-tabs';
import * as RadixTooltip from '@radix-ui/react-tooltip';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useContext, useEffect, useLayoutEffect, useRef, useState, type ComponentProps, type Key, type ReactNode, type RefObject } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../api/client';
import { link, useAddress } from '../state/url';
import { MomentContext, useEnd, useFormat, useNow } from '../state/format';
import { agentClass, signOf, STATES } from './states';

export { Markdown } from './markdown';
export { agentClass, signOf } from './states';

/** What a focusable child says on hover and focus. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }) {
  if (!text) return children;
  return (
    <RadixTooltip.Root>
      <RadixTooltip.Trigger asChild>{children}</RadixTooltip.Trigger>
      <RadixTooltip.Portal>
        <RadixTooltip.Content className="tip" sideOffset={6} collisionPadding={8}>
          {typeof text === 'string' ? <Sentence text={text} /> : text}
        </RadixTooltip.Content>
      </RadixTooltip.Portal>
    </RadixTooltip.Root>
  );
}
export const TooltipProvider = RadixTooltip.Provider;

interface ButtonProps extends Omit<ComponentProps<'button'>, 'disabled'> {
  look?: 'main' | 'danger' | 'quiet';
  why?: string; // says why it cannot be pressed, or what will happen
  isDisabled?: boolean;
}

/** A button that stays focusable when it cannot be pressed, so that everyone can read why. */
export function Button({ look, why, isDisabled, className = '', onClick, type = 'button', ...rest }: ButtonProps) {
  const button = (
    <button
      type={isDisabled ? 'button' : type}
      className={`button ${look ?? ''} ${className}`}
      aria-disabled={isDisabled || undefined}
      onClick={isDisabled ? (event) => event.preventDefault() : onClick}
      {...rest}
    />
  );
  return why ? <Tooltip text={why}>{button}</Tooltip> : button;
}

export function Chip({ isOn, onToggle, children }: { isOn: boolean; onToggle: () => void; children: ReactNode }) {
  return (
    <button type="button" className="chip" aria-pressed={isOn} onClick={onToggle}>
      {children}
    </button>
  );
}

/** The sign of a state, with its word unless the word stands beside it already. */
export function StateSign({ state, isShort, word }: { state: string; isShort?: boolean; word?: string }) {
  const { t } = useTranslation();
  const [sign, tone] = signOf(state);
  const text = word ?? (STATES.includes(state) ? t(`state.${state}`) : state);
  return (
    <span className={`sign tone-${tone}`}>
      <span aria-hidden="true">{sign}</span>
      <span className={isShort ? 'sr' : undefined}>{text}</span>
    </span>
  );
}

export function Money({ value, limit, tip, isInLink }: { value: number | null; limit?: number | null; tip?: ReactNode; isInLink?: boolean }) {
  const { t } = useTranslation();
  const format = useFormat();
  const shown = (
    <>
      {value === null ? t('ui.noPrice') : format.money(value)}
      {limit !== null && limit !== undefined && <span className="soft"> / {format.money(limit)}</span>}
    </>
  );
  const text = value === null ? t('ui.unknownCost') : tip;
  if (!text || isInLink) return <span className="num" title={isInLink && value === null ? t('ui.unknownCost') : undefined}>{shown}</span>;
  return (
    <Tooltip text={text}>
      <span className="num" tabIndex={0}>
        {shown}
      </span>
    </Tooltip>
  );
}

/** A relative time; the absolute one is on hover and focus. In a link it is not focused by itself. */
export function Time({ at, isInLink }: { at: number; isInLink?: boolean }) {
  const format = useFormat();
  const [isYoung, setYoung] = useState(() => Date.now() - at < 60_000);
  const moment = useContext(MomentContext);
  const isPast = useAddress().at !== null && moment !== null;
  const clock = useNow(isPast ? null : isYoung ? 1_000 : 15_000);
  const now = isPast ? moment : clock;
  useEffect(() => setYoung(now - at < 60_000), [now, at]);
  const time = (
    <time className="num" dateTime={new Date(at).toISOString()} tabIndex={isInLink ? undefined : 0} title={isInLink ? format.absolute(at) : undefined}>
      {format.ago(at, Math.max(now, at))}
    </time>
  );
  return isInLink ? time : <Tooltip text={format.absolute(at)}>{time}</Tooltip>;
}

/** How long something took, or takes until now (or until the version that is shown). */
export function Duration({ from, to }: { from: number; to: number | null }) {
  const format = useFormat();
  const end = useEnd(to === null);
  return <span className="num">{format.duration((to ?? end) - from)}</span>;
}

export function AgentName({ agent }: { agent: string }) {
  return (
    <span className={`row cut ${agentClass(agent)}`} title={agent}>
      <span className="dot" aria-hidden="true" />
      <span className="cut">{agent}</span>
    </span>
  );
}

export function Empty({ title, text, children }: { title: string; text?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {text && <p>{text}</p>}
      {children}
    </div>
  );
}

/** A sentence of the server or of an agent: what stands between backticks is code. */
export function Sentence({ text }: { text: string }) {
  return text.split(/(`[^`\n]+`)/).map((part, index) => (index % 2 ? <code key={index}>{part.slice(1, -1)}</code> : part));
}

/** There is nothing at this address: where to go from here. */
export function Nowhere() {
  const { t } = useTranslation();
  return (
    <Empty title={t('shell.nothingHere')}>
      <a {...link({ place: 'runs' })}>{t('shell.allRuns')}</a>
    </Empty>
  );
}

/** Grey lines, but only once loading takes long enough to be noticed. */
export function Skeleton({ lines = 6 }: { lines?: number }) {
  const { t } = useTranslation();
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setShown(true), 300);
    return () => window.clearTimeout(timer);
  }, []);
  if (!isShown) return null;
  return (
    <div className="skeleton" role="status">
      <i className="sr">{t('ui.loading')}</i>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

/** Why something was refused, and what to do. */
export function Problem({ error, onRetry, children }: { error: unknown; onRetry?: () => void; children?: ReactNode }) {
  const { t } = useTranslation();
  const problem = error instanceof ProblemError ? error.problem : null;
  const isOffline = error instanceof ProblemError && error.status === 0;
  return (
    <div className="problem" role="alert">
      <strong>{isOffline ? t('ui.unreachable') : <Sentence text={problem?.message || t('ui.failed')} />}</strong>
      {(isOffline || problem?.hint) && (
        <span>
          <Sentence text={isOffline ? t('ui.unreachableHint') : (problem?.hint ?? '')} />
        </span>
      )}
      {!problem && <span>{String(error)}</span>}
      {(onRetry || children) && (
        <div className="row wrap">
          {onRetry && <Button onClick={onRetry}>{t('ui.retry')}</Button>}
          {children}
        </div>
      )}
    </div>
  );
}

interface Read<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** What a view shows of a read: a skeleton, why it failed, or what came. What came stays when a later read fails. */
export function Loaded<T>({ read, children, lines }: { read: Read<T>; children: (data: T) => ReactNode; lines?: number }) {
  if (read.data !== undefined) return children(read.data);
  if (read.error) return <Problem error={read.error} onRetry={() => void read.refetch()} />;
  return <Skeleton lines={lines} />;
}

/** A modal dialog. Esc and a click beside it close it. */
export function Dialog({ title, onClose, children, className = '' }: { title: string; onClose: () => void; children: ReactNode; className?: string }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === ref.current && onClose()}
    >
      <div className="dialog-body">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Tabs inside a view (the tabs of a run are links of the shell). */
export function Tabs({ label, tabs, value, onChange }: { label: string; tabs: { value: string; label: ReactNode; content: ReactNode }[]; value: string; onChange: (value: string) => void }) {
  return (
    <RadixTabs.Root value={value} onValueChange={onChange}>
      <RadixTabs.List className="tabs" aria-label={label}>
        {tabs.map((tab) => (
          <RadixTabs.Trigger key={tab.value} value={tab.value} className="tab">
            {tab.label}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      {tabs.map((tab) => (
        <RadixTabs.Content key={tab.value} value={tab.value}>
          {tab.content}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}

/** One of a few choices as buttons in a row. */
export function Switch<T extends string>({ label, options, value, onChange }: { label: string; options: { value: T; label: string }[]; value: T; onChange: (value: T) => void }) {
  return (
    <div className="row" role="group" aria-label={label}>
      {options.map((option) => (
        <Chip key={option.value} isOn={option.value === value} onToggle={() => onChange(option.value)}>
          {option.label}
        </Chip>
      ))}
    </div>
  );
}

interface VirtualListProps<T> {
  items: readonly T[];
  keyOf: (item: T, index: number) => Key;
  estimate: number;
  label: string;
  className?: string;
  scroller?: RefObject<HTMLDivElement | null>;
  follows?: boolean; // stays at the end while the end is seen
  endKey?: Key | null; // goes to the end when it changes
  onScroll?: (isAtEnd: boolean, isAtStart: boolean) => void;
  header?: ReactNode;
  footer?: ReactNode;
  children: (item: T, index: number) => ReactNode;
}

/** A list that renders only the rows that are seen, of any height, once there are 200. */
export function VirtualList<T>({ items, keyOf, estimate, label, className = '', scroller, follows, endKey, onScroll, header, footer, children }: VirtualListProps<T>) {
  const own = useRef<HTMLDivElement>(null);
  const ref = scroller ?? own;
  const atEnd = useRef(true);
  const seen = useRef({ top: 0, height: 0 });
  const isVirtual = items.length > 200;
  const virtualizer = useVirtualizer({
    count: isVirtual ? items.length : 0,
    getScrollElement: () => ref.current,
    estimateSize: () => estimate,
    getItemKey: (index) => keyOf(items[index] as T, index) as string | number,
    overscan: 12,
  });
  const first = items.length ? keyOf(items[0] as T, 0) : '';
  const last = items.length ? keyOf(items[items.length - 1] as T, items.length - 1) : '';
  const size = virtualizer.getTotalSize();
  useEffect(() => {
    atEnd.current = true;
  }, [endKey]);
  useEffect(() => {
    if (follows && atEnd.current && ref.current) ref.current.scrollTop = ref.current.scrollHeight;
  }, [follows, last, size, footer, ref]);
  // Rows that come in front do not move what is seen.
  const before = useRef({ first, height: 0 });
  useLayoutEffect(() => {
    const box = ref.current;
    if (!box) return;
    const grown = box.scrollHeight - before.current.height;
    if (follows && first !== before.current.first && !atEnd.current && grown > 0) box.scrollTop += grown;
    before.current = { first, height: box.scrollHeight };
  });
  return (
    <div
      ref={ref}
      className={`virtual ${className}`}
      role="region"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        // Only a person leaves the end: a change of the height does not.
        if (scrollHeight - scrollTop - clientHeight < 40) atEnd.current = true;
        else if (scrollTop < seen.current.top && scrollHeight === seen.current.height) atEnd.current = false;
        seen.current = { top: scrollTop, height: scrollHeight };
        onScroll?.(atEnd.current, scrollTop < 80);
      }}
    >
      {header}
      {isVirtual ? (
        <div style={{ height: size, position: 'relative' }}>
          {virtualizer.getVirtualItems().map((row) => (
            <div key={row.key} data-index={row.index} ref={virtualizer.measureElement} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${row.start}px)` }}>
              {children(items[row.index] as T, row.index)}
            </div>
          ))}
        </div>
      ) : (
        items.map((item, index) => <div key={keyOf(item, index)}>{children(item, index)}</div>)
      )}
      {footer}
    </div>
  );
}
