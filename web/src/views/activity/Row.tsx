import { memo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { EventRow } from '../../api/types';
import { useFormat } from '../../state/format';
import { select } from '../../state/url';
import { AgentName, Button, Sentence } from '../../ui';
import { Data } from '../../ui/Data';
import { reveal } from '../../ui/reveal';
import { CLIENT, levelOf, tell } from './rows';

const SIGNS = { info: '·', good: '✓', bad: '✗', wait: '◐' } as const;
const TONES = { info: 'soft', good: 'good', bad: 'bad', wait: 'wait' } as const;

// What a person opened or closed stays so while rows come and go on the screen.
const toggled = new Map<string, boolean>();

// What the log needs and a reader does not; the tab Log shows it.
const MACHINE = new Set(['at', 'by', 'step_id', 'thread_id', 'queued', 'previous']);

/** One event as one line. A failure is open; what is behind the others opens on a click. */
export const Row = memo(function Row({ row }: { row: EventRow }) {
  const { t } = useTranslation();
  const format = useFormat();
  const level = levelOf(row);
  const key = `${row.run}:${row.version}`;
  const entries = Object.entries(row.data).filter(([name, value]) => !MACHINE.has(name) && !(name === 'attempt' && value === 0) && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0));
  const hasMore = entries.length > 0 || row.step !== '';
  const [isOpen, setOpen] = useState(toggled.get(key) ?? (level === 'bad' && hasMore));
  const toggle = () => {
    toggled.set(key, !isOpen);
    setOpen(!isOpen);
  };
  return (
    <div className={`feed-row level-${level}`}>
      <button type="button" className="feed-line" data-item aria-expanded={hasMore ? isOpen : undefined} onClick={hasMore ? toggle : undefined}>
        <time className="num soft" dateTime={new Date(row.at).toISOString()} title={`${format.absolute(row.at)} · ${t('run.version', { version: format.number(row.version) })}`}>
          {format.clock(row.at)}
        </time>
        <span className={`tone-${TONES[level]}`} aria-hidden="true">
          {SIGNS[level]}
        </span>
        <span className="feed-agent">{row.agent && <AgentName agent={CLIENT.test(row.agent) ? t('activity.person') : row.agent} />}</span>
        <span className={isOpen ? 'feed-text' : 'feed-text cut'}>{<Sentence text={reveal(tell(row, t))} />}</span>
      </button>
      {isOpen && (
        <div className="feed-more">
          <div className="row wrap">
            <code className="soft">{row.type}</code>
            {row.step && (
              <Button look="quiet" onClick={() => select(`step:${row.step}`)}>
                {t('activity.showStep')}
              </Button>
            )}
          </div>
          {entries.map(([name, value]) => (
            <Field key={name} name={name} value={value} />
          ))}
        </div>
      )}
    </div>
  );
});

const isDiff = (text: string) => /^(diff --git|--- |@@ )/m.test(text) && /^@@ /m.test(text);

function Field({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === 'string' ? reveal(value) : '';
  const isLong = typeof value === 'object' || text.length > 90 || text.includes('\n');
  return (
    <div className={isLong ? 'stack-tight' : 'row'}>
      <span className="soft mono">{name}</span>
      {isLong ? (
        <div className="block" tabIndex={0}>
          {isDiff(text) ? <Diff text={text} /> : <Data value={value} />}
        </div>
      ) : (
        <span className="mono">{text || String(value)}</span>
      )}
    </div>
  );
}

/** A small diff: added and removed lines in their colours. */
function Diff({ text }: { text: string }) {
  return <pre>{text.split('\n').map((line, index) => (
    <span key={index} className={/^\+(?!\+\+)/.test(line) ? 'tone-good' : /^-(?!--)/.test(line) ? 'tone-bad' : line.startsWith('@@') ? 'soft' : undefined}>
      {line}
      {'\n'}
    </span>
  ))}</pre>;
}
