import { useMemo, useRef, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Conflict } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Empty, Sentence, StateSign, Switch } from '../../ui';
import { newLines } from '../../ui/diff/parse';
import { reveal } from '../../ui/reveal';
import { Settle, type Choices } from './Settle';

const MAX_PANE_LINES = 3_000;
const RUNGS = ['git', 'structure', 'strategy', 'model', 'person', 'author'];
const NO_CHOICES: Choices = new Map();
const SIGN: Record<string, string> = { resolved: 'finished', mended: 'finished', proposed: 'waiting', open: 'waiting', 'sent back': 'running', 'left out': 'skipped' };

const keyOf = (conflict: Conflict) => conflict.id || `${conflict.path} ${conflict.left_subtask} ${conflict.right_subtask}`;

/** The files that two subtasks changed: who merged them and why, and what waits for a person. */
export function Conflicts({ run, conflicts }: { run: string; conflicts: Conflict[] }) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const [said, setSaid] = useState<ReadonlyMap<string, Said>>(new Map());
  const [choices, setChoices] = useState<ReadonlyMap<string, Choices>>(new Map()); // by question: another file of it is another look at the same answer
  const order = useRef(new Map<string, number>()); // what waited when it was first seen stays on top, and what was shown stays shown
  const first = useRef('');
  for (const item of [...conflicts].sort((left, right) => Number(right.approval !== '') - Number(left.approval !== ''))) if (!order.current.has(keyOf(item))) order.current.set(keyOf(item), order.current.size);
  const sorted = [...conflicts].sort((left, right) => (order.current.get(keyOf(left)) ?? 0) - (order.current.get(keyOf(right)) ?? 0));
  const find = (id: string | undefined) => sorted.find((item) => keyOf(item) === id);
  const chosen = find(params.conflict) ?? find(first.current) ?? sorted.find((item) => item.approval && item.approval === params.approval) ?? sorted[0];
  first.current ||= chosen ? keyOf(chosen) : '';
  if (!chosen) return <Empty title={t('changes.noConflict')} text={t('changes.noConflictText')} />;
  return (
    <div className="conflicts">
      {sorted.length > 1 && (
        <ul className="conflict-list" aria-label={t('changes.conflictList')}>
          {sorted.map((item) => (
            <li key={keyOf(item)}>
              <button type="button" className="file-row" aria-current={item === chosen || undefined} onClick={() => setParam('conflict', keyOf(item))}>
                <span className="cut mono file-name">{item.path}</span>
                <State conflict={item} />
              </button>
            </li>
          ))}
        </ul>
      )}
      <One key={keyOf(chosen)} run={run} conflict={chosen} isListed={sorted.length > 1} siblings={conflicts.filter((item) => chosen.approval && item.approval === chosen.approval)}
        said={said.get(keyOf(chosen))}
        choices={choices.get(chosen.approval) ?? NO_CHOICES}
        onChoices={(next) => setChoices((before) => new Map([...before, [chosen.approval, next]]))}
        onSaid={(text) => setSaid((before) => new Map([...before, ...conflicts.filter((item) => item.approval === chosen.approval).map((item) => [keyOf(item), { approval: item.approval, text }] as const)]))}
      />
    </div>
  );
}

function State({ conflict }: { conflict: Conflict }) {
  const { t } = useTranslation();
  const state = conflict.approval ? 'open' : conflict.state;
  return <StateSign state={SIGN[state] ?? 'waiting'} word={conflict.approval ? t('changes.waitsForYou') : state in SIGN ? t(`changes.conflictState.${state.replace(' ', '_')}`) : state} />;
}

/** What became of the answer to one question; the same conflict may be asked about again. */
interface Said {
  approval: string;
  text: string;
}

interface OneProps {
  run: string;
  conflict: Conflict;
  siblings: Conflict[];
  isListed: boolean;
  said: Said | undefined;
  choices: Choices;
  onChoices: (choices: Choices) => void;
  onSaid: (text: string) => void;
}

function One({ run, conflict, siblings, isListed, said, choices, onChoices, onSaid }: OneProps) {
  const { t } = useTranslation();
  const isAgain = said !== undefined && conflict.approval !== '' && said.approval !== conflict.approval;
  const isOpen = conflict.approval !== '' || conflict.state === 'open' || conflict.state === 'proposed';
  const rung = isOpen ? t(conflict.result ? (conflict.rung === 'model' ? 'changes.proposedByModel' : 'changes.proposedByCode') : 'changes.notMerged') : RUNGS.includes(conflict.rung) ? t(`changes.rung.${conflict.rung}`) : conflict.rung;
  return (
    <section className="conflict" aria-label={conflict.path}>
      <div className={isListed ? 'sr' : 'row wrap'}>
        <h2 className="mono files-path">{conflict.path}</h2>
        {!isListed && <State conflict={conflict} />}
      </div>
      <p>
        <strong>{rung}</strong> {conflict.rung !== 'person' && <Sentence text={conflict.why} />}
      </p>
      {conflict.dropped.length > 0 && (
        <div className="problem">
          <strong>{t('changes.dropped')}</strong>
          <pre>{conflict.dropped.join('\n')}</pre>
        </div>
      )}
      {isAgain && (
        <p role="status" className="tone-wait">
          {t('changes.asksAgain')}
        </p>
      )}
      {said && !isAgain ? <p role="status">{said.text || t('inbox.answered')}</p> : conflict.approval && <Settle key={conflict.approval} run={run} conflicts={siblings} shown={conflict} choices={choices} onChoices={onChoices} onSaid={onSaid} />}
      {(conflict.base || conflict.left || conflict.right || conflict.result) && <Panes conflict={conflict} />}
    </section>
  );
}

type PaneName = 'left' | 'base' | 'right' | 'result';

function Panes({ conflict }: { conflict: Conflict }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState<PaneName>(conflict.result ? 'result' : 'left');
  const names: Record<PaneName, string> = {
    left: t('changes.left', { name: conflict.left_subtask }),
    base: t('changes.base'),
    right: t('changes.right', { name: conflict.right_subtask }),
    result: t(conflict.approval ? 'changes.proposal' : 'changes.result'),
  };
  const panes = (['left', 'base', 'right', ...(conflict.result ? ['result'] : [])] as PaneName[]).map((name) => ({ value: name, label: names[name] }));
  const near = useMemo(() => Math.min(...newLines(conflict.base, conflict.left), ...newLines(conflict.base, conflict.right)), [conflict.base, conflict.left, conflict.right]);
  const pane = (name: PaneName, against: string) => <Pane key={name} title={names[name]} text={conflict[name]} against={against} near={near} isShown={name === shown} isWide={name === 'result'} />;
  return (
    <>
      <div className="panes-switch">
        <Switch label={t('changes.panes')} options={panes} value={shown} onChange={setShown} />
      </div>
      <div className="panes">
        {pane('left', conflict.base)}
        {pane('base', conflict.base)}
        {pane('right', conflict.base)}
        {conflict.result && pane('result', conflict.base)}
      </div>
    </>
  );
}

/** One version of the file; the lines that the base does not have are marked. It begins near the first line that changed. */
function Pane({ title, text, against, near, isShown, isWide }: { title: string; text: string; against: string; near: number; isShown: boolean; isWide: boolean }) {
  const { t } = useTranslation();
  const lines = useMemo(() => (text ? text.replace(/\n$/, '').split('\n') : []), [text]);
  const fresh = useMemo(() => (text === against ? new Set<number>() : newLines(against, text)), [against, text]);
  const first = fresh.size ? Math.min(...fresh) : near;
  const scrollTo = (node: HTMLElement | null) => {
    if (node?.parentElement) node.parentElement.scrollTop = Math.max(0, node.offsetTop - node.parentElement.offsetTop - 60);
  };
  return (
    <figure className={`pane ${isShown ? 'is-shown' : ''} ${isWide ? 'is-wide' : ''}`}>
      <figcaption>{title}</figcaption>
      <div className="pane-text" role="region" aria-label={title} tabIndex={0}>
        {lines.length === 0 && <span className="soft pane-none">{t('changes.noFile')}</span>}
        {lines.slice(0, MAX_PANE_LINES).map((line, index): ReactNode => (
          <div key={index} ref={index === first ? scrollTo : undefined} className={`pane-line ${fresh.has(index) ? 'diff-added' : ''}`}>
            <span className="diff-number">{index + 1}</span>
            <span className="diff-text">{reveal(line) || ' '}</span>
          </div>
        ))}
        {lines.length > MAX_PANE_LINES && <p className="diff-note">{t('changes.paneCut', { count: MAX_PANE_LINES, total: lines.length })}</p>}
      </div>
    </figure>
  );
}
