import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useSession } from '../../api/queries';
import { useConnection } from '../../api/stream';
import type { AnswerInput, InboxItem } from '../../api/types';
import { useKey } from '../../shell/keyboard';
import { forgetDrafts } from '../../state/setting';
import { link } from '../../state/url';
import { AgentName, Button, Problem, Sentence, Time } from '../../ui';
import { DiffView } from '../../ui/diff/DiffView';
import { Data } from '../../ui/Data';
import { Entry } from '../../ui/Entry';
import { reveal } from '../../ui/reveal';
import { keyOf } from './inbox';

export type Send = (input: AnswerInput, isByKey: boolean) => Promise<void>;

const READ_MS = 700; // how long a card that opened by itself is shown before a key answers it

interface CardProps {
  item: InboxItem;
  outcome: string;
  isOpen: boolean;
  isChosen: boolean; // the person opened it
  onOpen: () => void;
  send: Send;
}

/** One thing that waits: who wants what and why, and what can be answered. */
export function Card({ item, outcome, isOpen, isChosen, onOpen, send }: CardProps) {
  const { t } = useTranslation();
  return (
    <article className={`card ask ${outcome ? 'ask-over' : ''}`} data-open={isOpen || undefined} aria-label={t(`inbox.kind.${item.kind}`)}>
      <header className="row wrap ask-head">
        <span className={`ask-kind ${outcome ? 'soft' : 'tone-wait'}`}>
          <span aria-hidden="true">{outcome ? '✓' : '◐'}</span> {t(`inbox.kind.${item.kind}`)}
        </span>
        {item.agent && <AgentName agent={item.agent} />}
        <a className="cut ask-run" {...link({ run: item.run })}>
          {item.run_title}
          {item.subtask && ` · ${item.subtask}`}
        </a>
        <span className="soft">
          <Time at={item.asked_at} />
        </span>
      </header>
      {outcome ? (
        <div role="status" className="row wrap">
          <span className="soft cut">
            <Sentence text={firstLine(item)} />
          </span>
          <span className="ask-why">
            <Sentence text={outcome} />
          </span>
        </div>
      ) : isOpen ? (
        <Open item={item} isChosen={isChosen} send={send} />
      ) : (
        <button type="button" className="ask-fold" onClick={onOpen}>
          <Sentence text={firstLine(item)} />
        </button>
      )}
    </article>
  );
}

const draftOf = (item: InboxItem) => `answer.${keyOf(item)}`;
const firstLine = (item: InboxItem) => reveal((item.question.trim() || item.call.trim()).replace(/:\n/, ': ').split('\n')[0] ?? '');

function Open({ item, isChosen, send }: { item: InboxItem; isChosen: boolean; send: Send }) {
  const { t } = useTranslation();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const folder = useSession().data?.folder;
  const isAway = useConnection().state === 'lost';
  const openedAt = useRef(Infinity);
  useEffect(() => {
    openedAt.current = performance.now();
  }, []);
  const isRead = () => isChosen || performance.now() - openedAt.current >= READ_MS;
  const say = (input: AnswerInput, isByKey = false) => {
    setBusy(true);
    setError(null);
    send(input, isByKey)
      .then(() => forgetDrafts(draftOf(item)))
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <div className="stack">
      <Question item={item} />
      {item.why && (
        <p className="ask-why">
          <span className="soft">{t('inbox.why')}</span> {reveal(item.why)}
        </p>
      )}
      {item.call && (
        <div className="block" tabIndex={0} role="region" aria-label={t('inbox.call')}>
          <Data value={item.call} />
        </div>
      )}
      <Touches item={item} />
      {item.diff && <DiffView text={item.diff} label={t('inbox.diff')} hasNames />}
      {item.expires_at !== null && (
        <p className="tone-wait">
          {t('inbox.expires')} <Time at={item.expires_at} />
        </p>
      )}
      {!item.is_running && (
        <p className="soft">{folder && item.folder && item.folder !== folder ? t('run.startElsewhere', { folder: item.folder }) : t('inbox.notRunning')}</p>
      )}
      {error !== null && <Problem error={error} />}
      <Answers item={item} say={say} isBusy={isBusy || isAway} isRead={isRead} />
    </div>
  );
}

/** Greenroom's own questions as they are; an agent's words as a quotation, so that they cannot pass for Greenroom's. */
function Question({ item }: { item: InboxItem }) {
  if (!item.question) return null;
  const isAgents = item.kind === 'question' || item.kind === 'message';
  return isAgents ? <blockquote className="ask-quote">{reveal(item.question)}</blockquote> : <p className="ask-text"><Sentence text={reveal(item.question)} /></p>;
}

function Touches({ item }: { item: InboxItem }) {
  const { t } = useTranslation();
  if (!item.files.length && !item.hosts.length) return null;
  return (
    <dl className="facts">
      {item.files.length > 0 && (
        <>
          <dt>{t('inbox.files')}</dt>
          <dd className="mono">{reveal(item.files.join(', '))}</dd>
        </>
      )}
      {item.hosts.length > 0 && (
        <>
          <dt>{t('inbox.hosts')}</dt>
          <dd className="mono">{reveal(item.hosts.join(', '))}</dd>
        </>
      )}
    </dl>
  );
}

interface AnswerProps {
  item: InboxItem;
  say: (input: AnswerInput, isByKey?: boolean) => void;
  isBusy: boolean;
  isRead: () => boolean; // whether a key may answer it
}

function Answers(props: AnswerProps) {
  const { t } = useTranslation();
  switch (props.item.kind) {
    case 'permission':
      return <Permission {...props} />;
    case 'plan':
    case 'confirmation':
      return <Confirmation {...props} />;
    case 'question':
    case 'message':
      return <Words {...props} />;
    case 'conflict':
      return (
        <div className="ask-actions">
          <a className="button main" {...link({ run: props.item.run, tab: 'changes', params: { view: 'conflicts', approval: props.item.id } })}>
            {t('inbox.openConflict')}
          </a>
        </div>
      );
  }
}

const Hint = ({ name }: { name: string }) => (
  <kbd className="ask-key" aria-hidden="true">
    {name}
  </kbd>
);

function Permission({ item, say, isBusy, isRead }: AnswerProps) {
  const { t } = useTranslation();
  const [mode, setMode] = useState<'' | 'always' | 'deny'>('');
  const allow = (isByKey = false) => isBusy || say({ decision: 'approved', scope: 'once' }, isByKey);
  useKey('a', () => isRead() && allow(true), mode === '');
  useKey('d', () => isRead() && setMode('deny'), mode === '');
  const forRun = item.release || item.rule;
  const back = () => setMode('');
  if (mode === 'always')
    return <Entry label={t('inbox.ruleLabel')} initial={item.rule} submit={t('inbox.ruleSave')} isBusy={isBusy} isMono onBack={back} onSubmit={(rule) => say({ decision: 'approved', scope: 'always', rule })} />;
  if (mode === 'deny') return <Entry label={t('inbox.denyLabel')} submit={t('inbox.deny')} isBusy={isBusy} isOptional isDanger onBack={back} onSubmit={(text) => say({ decision: 'denied', text })} />;
  return (
    <div className="ask-actions">
      <Button look="main" isDisabled={isBusy} onClick={() => allow()}>
        {t('inbox.allowOnce')} <Hint name="A" />
      </Button>
      {forRun && (
        <Button isDisabled={isBusy} onClick={() => say({ decision: 'approved', scope: 'run' })}>
          {t('inbox.allowRun')}
        </Button>
      )}
      {item.rule && (
        <Button isDisabled={isBusy} onClick={() => setMode('always')}>
          {t('inbox.allowAlways')}
        </Button>
      )}
      <Button look="danger" isDisabled={isBusy} onClick={() => setMode('deny')}>
        {t('inbox.denyWith')} <Hint name="D" />
      </Button>
      {forRun && (
        <p className="soft ask-grants">
          {t('inbox.allowRunGrants')} <code>{reveal(forRun)}</code>
        </p>
      )}
    </div>
  );
}

function Confirmation({ item, say, isBusy, isRead }: AnswerProps) {
  const { t } = useTranslation();
  const [isChanging, setChanging] = useState(false);
  const isPlan = item.kind === 'plan';
  const yes = (isByKey = false) => isBusy || say({ decision: 'approved', text: 'yes' }, isByKey);
  const [isRefusing, setRefusing] = useState(false);
  const no = (isByKey = false) => (isPlan ? setRefusing(true) : isBusy || say({ decision: 'denied', text: 'no' }, isByKey));
  useKey('a', () => isRead() && yes(true), !isChanging && !isRefusing);
  useKey('d', () => isRead() && no(true), !isChanging && !isRefusing);
  if (isRefusing) return <Entry label={t('inbox.whyNot')} submit={t('inbox.planNo')} isBusy={isBusy} isOptional isDanger onBack={() => setRefusing(false)} onSubmit={(text) => say({ decision: 'denied', text })} />;
  if (isChanging) return <Entry label={t('inbox.changeLabel')} submit={t('inbox.send')} isBusy={isBusy} onBack={() => setChanging(false)} onSubmit={(text) => say({ text })} />;
  return (
    <div className="ask-actions">
      <Button look="main" isDisabled={isBusy} onClick={() => yes()}>
        {t(isPlan ? 'inbox.planYes' : 'inbox.unverifiedYes')} <Hint name="A" />
      </Button>
      {isPlan && (
        <Button isDisabled={isBusy} onClick={() => setChanging(true)}>
          {t('inbox.planChange')}
        </Button>
      )}
      <Button look="danger" isDisabled={isBusy} onClick={() => no()}>
        {isPlan ? `${t('inbox.planNo')}…` : t('inbox.unverifiedNo')} <Hint name="D" />
      </Button>
    </div>
  );
}

function Words({ item, say, isBusy }: AnswerProps) {
  const { t } = useTranslation();
  const isQuestion = item.kind === 'question';
  return (
    <div className="stack">
      {item.choices.length > 0 && (
        <div className="ask-actions">
          {item.choices.map((choice) => (
            <Button key={choice} isDisabled={isBusy} onClick={() => say({ text: choice })}>
              {t(`inbox.choice.${choice}`)}
            </Button>
          ))}
        </div>
      )}
      <Entry label={t(isQuestion ? 'inbox.answerLabel' : 'inbox.replyLabel')} submit={t(isQuestion ? 'inbox.answer' : 'inbox.reply')} isBusy={isBusy} isCalm draft={draftOf(item)} onSubmit={(text) => say({ text })}>
        {isQuestion && (
          <Button look="quiet" isDisabled={isBusy} why={t('inbox.noAnswerWhy')} onClick={() => say({ decision: 'denied' })}>
            {t('inbox.noAnswer')}
          </Button>
        )}
      </Entry>
    </div>
  );
}
