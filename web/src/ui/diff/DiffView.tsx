import { Fragment, useMemo, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { setting } from '../../state/setting';
import { agentClass, Empty, Switch, VirtualList } from '..';
import { reveal } from '../reveal';
import { parseDiff, splitRows, type DiffRow, type FileChange } from './parse';
import './diff.css';

export const diffLayout = setting<'unified' | 'split'>('diff', 'unified');

export function DiffSwitch() {
  const { t } = useTranslation();
  return (
    <Switch
      label={t('diff.layout')}
      value={diffLayout.use()}
      onChange={diffLayout.set}
      options={[
        { value: 'unified', label: t('diff.unified') },
        { value: 'split', label: t('diff.split') },
      ]}
    />
  );
}

interface LineProps {
  agentOf?: (line: number) => string; // who wrote a line of the new side
  onLine?: (line: number) => void;
  openLine?: number | null;
  detail?: ReactNode; // shown under the line that is open
}

interface DiffViewProps extends LineProps {
  text: string;
  label: string;
  isCut?: boolean;
  layout?: 'unified' | 'split';
  hasNames?: boolean; // names each file, for a diff of several
  className?: string;
}

/** A unified diff, as one column or as two. A long one shows only the rows that are seen. */
export function DiffView({ text: raw, label, isCut, layout, hasNames, className = '', ...line }: DiffViewProps) {
  const { t } = useTranslation();
  const chosen = diffLayout.use();
  const isSplit = (layout ?? chosen) === 'split';
  const text = useMemo(() => reveal(raw), [raw]);
  const files = useMemo(() => parseDiff(text), [text]);
  const rows = useMemo(() => files.flatMap((file) => shownRows(file, isSplit, hasNames ?? files.length > 1)), [files, isSplit, hasNames]);
  if (!rows.length) return text.trim() ? <pre className="block">{text}</pre> : <Empty title={t('diff.nothing')} />;
  return (
    <VirtualList
      items={rows}
      keyOf={(_, index) => index}
      estimate={21}
      label={label}
      className={`diff ${isSplit ? 'diff-split' : ''} ${className}`}
      footer={isCut && <p className="diff-note">{t('diff.cut')}</p>}
    >
      {(row) => <Row row={row} isSplit={isSplit} {...line} />}
    </VirtualList>
  );
}

type Shown = { name: FileChange } | { left: DiffRow | null; right: DiffRow | null };

function shownRows(file: FileChange, isSplit: boolean, hasName: boolean): Shown[] {
  const [first] = file.rows;
  const own = first?.kind === 'hunk' && !first.text && file.rows[1]?.right === 1 ? file.rows.slice(1) : file.rows; // nothing is left out before line 1
  const rows: Shown[] = isSplit ? splitRows(own) : own.map((row) => (row.kind === 'removed' ? { left: row, right: null } : { left: null, right: row }));
  return hasName ? [{ name: file }, ...rows] : rows;
}

function Row({ row, isSplit, detail, openLine, ...line }: LineProps & { row: Shown; isSplit: boolean }) {
  const { t } = useTranslation();
  if ('name' in row)
    return (
      <div className="diff-name mono">
        {row.name.path} <span className="tone-good">+{row.name.added}</span> <span className="tone-bad">−{row.name.removed}</span>
      </div>
    );
  const only = row.right ?? row.left;
  if (only?.kind === 'hunk') return <div className="diff-hunk mono">⋯ {only.text}</div>;
  if (only?.kind === 'note') return <div className="diff-note">{/^No newline/i.test(only.text) ? t('diff.noNewline') : only.text}</div>;
  const at = row.right?.right ?? null;
  return (
    <>
      {isSplit ? (
        <div className="diff-pair">
          <Side row={row.left} side="left" />
          <Side row={row.right} side="right" {...line} />
        </div>
      ) : (
        <Side row={only} side="both" {...line} />
      )}
      {at !== null && at === openLine && detail}
    </>
  );
}

const MARKS: Record<string, string> = { added: '+', removed: '−' };

function Side({ row, side, agentOf, onLine }: LineProps & { row: DiffRow | null; side: 'left' | 'right' | 'both' }) {
  const { t } = useTranslation();
  if (!row) return <div className="diff-line diff-blank" />;
  const at = row.right;
  const agent = at !== null && row.kind === 'added' ? (agentOf?.(at) ?? '') : '';
  const number = side === 'left' ? row.left : (row.right ?? row.left);
  const canAsk = onLine !== undefined && at !== null && side !== 'left';
  return (
    <div className={`diff-line diff-${row.kind} ${agent ? agentClass(agent) : ''}`}>
      <span className={`diff-who ${agent ? 'agent-fill' : ''}`} title={agent || undefined} />
      {canAsk ? (
        <button type="button" className="diff-number" aria-label={t('diff.whoWrote', { line: at })} onClick={() => onLine(at)}>
          {number}
        </button>
      ) : (
        <span className="diff-number" aria-hidden="true">
          {number}
        </span>
      )}
      <span className="diff-mark">{MARKS[row.kind] ?? ' '}</span>
      <span className="diff-text">
        <Words row={row} />
      </span>
    </div>
  );
}

function Words({ row }: { row: DiffRow }) {
  if (!row.changed || row.changed[0] >= row.changed[1]) return <Fragment>{row.text || ' '}</Fragment>;
  const [begin, end] = row.changed;
  return (
    <>
      {row.text.slice(0, begin)}
      <mark>{row.text.slice(begin, end)}</mark>
      {row.text.slice(end)}
    </>
  );
}
