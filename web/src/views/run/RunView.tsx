import { Suspense, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import { useRun, useRunRead, useSession, useVerb } from '../../api/queries';
import type { Action, EventRow, InboxItem, Page, RunDetail, RunState, Verb, VerbInput, VerbResult } from '../../api/types';
import { Boundary } from '../../shell/Boundary';
import { MomentContext, useFormat } from '../../state/format';
import { go, link, useAddress, type Address } from '../../state/url';
import { Button, Dialog, Loaded, Markdown, Money, Nowhere, Problem, Sentence, Skeleton, StateSign, Time, Tooltip } from '../../ui';
import { tabs } from '..';
import { inWords } from '../changes/answer';
import { keyOf, useInbox } from '../inbox/inbox';
import { useOff, usePast } from './past';
import { PastBand, Timeline, useTimeline } from './Timeline';
import './run.css';

/** One run: its header, the tabs, and the tab that is open. */
export function RunView({ run }: { run: string }) {
  const { t } = useTranslation();
  const address = useAddress();
  const detail = useRun(run);
  // A tab that the address names is read at the same time as the header; else the run decides which is first.
  const wanted = address.tab || (detail.data && (detail.data.subtasks === 0 ? 'activity' : 'plan'));
  const tab = wanted === undefined ? undefined : (tabs.find((item) => item.name === wanted) ?? tabs[0]);
  const isUnknown = address.tab !== '' && tab?.name !== address.tab;
  const tabList = useRef<HTMLElement>(null);
  const name = tab?.name;
  useEffect(() => {
    tabList.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [name, detail.data === undefined]);
  const isActive = detail.data && ACTIVE.includes(detail.data.state);
  const last = useRunRead<Page<EventRow>>(run, 'events', { before: (address.at ?? detail.data?.head ?? 0) + 1, limit: 1 }, detail.data !== undefined && !(isActive && address.at === null)).data?.items.at(-1);
  return (
    <MomentContext value={isActive && address.at === null ? null : (last?.at ?? null)}>
    <div className="run">
      {!detail.data && <h1 className="sr">{run}</h1>}
      {detail.error && !detail.data ? (
        <Problem error={detail.error} onRetry={detail.error instanceof ProblemError && REFUSALS.includes(detail.error.status) ? undefined : () => void detail.refetch()}>
          <a {...link({ place: 'runs' })}>{t('shell.allRuns')}</a>
        </Problem>
      ) : (
      <Loaded read={detail} lines={3}>
        {(data) => (
          <>
            <Header run={data} />
            <PastBand run={run} />
          </>
        )}
      </Loaded>
      )}
      {(detail.data || !detail.error) && tab && (
        <>
          <nav ref={tabList} className="tabs run-tabs" aria-label={t('run.tabs')}>
            {tabs.map(({ name }, index) => (
              <a key={name} className="tab" {...link({ tab: name, params: {} })} aria-current={name === tab.name && !isUnknown ? 'page' : undefined} aria-keyshortcuts={String(index + 1)}>
                {t(`tab.${name}`)}
              </a>
            ))}
          </nav>
          <div className="run-tab">
            <Boundary key={address.tab || tab.name}>
              <Suspense fallback={<Skeleton />}>
                {isUnknown ? <Nowhere /> : <tab.View run={run} />}
              </Suspense>
            </Boundary>
          </div>
        </>
      )}
      {detail.data && <Timeline run={run} head={detail.data.head} />}
    </div>
    </MomentContext>
  );
}

/** What becomes of the change is decided where it is read: in the tab Changes. */
const SHOWN: readonly Verb[] = ['pause', 'resume', 'cancel', 'rewind'];
const REFUSALS = [400, 404, 422]; // asking again gives the same
const ACTIVE: readonly RunState[] = ['working', 'waiting', 'provider', 'limit'];
const ALWAYS: readonly Verb[] = ['pause', 'resume'];

/** What a person adds to do it all the same, by the reason of the refusal. */
const INSIST: Record<string, Partial<VerbInput>> = { governing: { confirm_governing: true }, not_sure: { force: true } };

function Header({ run }: { run: RunDetail }) {
  const { t } = useTranslation();
  const format = useFormat();
  const verb = useVerb(run.id);
  const past = usePast();
  const off = useOff();
  const address = useAddress();
  const folder = useSession().data?.folder;
  const isElsewhere = folder !== undefined && run.folder !== '' && run.folder !== folder;
  const waiting = useWaiting(run.id, past === '' && run.waits_for_me > 0);
  const [asked, setAsked] = useState<Action | null>(null);
  const isAnswer = run.subtasks === 0 && !run.verdict;
  const isOver = ['finished', 'failed', 'cancelled', 'damaged'].includes(run.state);
  const canSwitch = run.actions.some((action) => ALWAYS.includes(action.verb) && action.is_allowed);
  const actions = run.actions.filter((action) => SHOWN.includes(action.verb) && (action.is_allowed || (!isOver && !canSwitch && action.verb === (run.state === 'stopped' ? 'resume' : 'pause'))));
  const hasChange = tabs.some((tab) => tab.name === 'changes') && run.actions.some((action) => ['apply', 'undo'].includes(action.verb) && action.is_allowed);
  const answerTo = past === '' ? whereToAnswer(run, waiting, address) : null;
  const asksFor = (action: Action) => ['cancel', 'rewind'].includes(action.verb) || (action.verb === 'resume' && run.reached !== null);
  const insist = verb.error instanceof ProblemError ? INSIST[verb.error.problem.code] : undefined;
  const press = (action: Action) => (asksFor(action) ? setAsked(action) : verb.mutate({ verb: action.verb }));
  return (
    <header className="run-header">
      <div className="row wrap run-first">
        <h1 className="run-name" title={run.request}>{run.title}</h1>
        <StateSign state={run.state} />
        {run.subtasks > 0 && <span className="num">{t('run.done', { done: run.subtasks_done, all: run.subtasks })}</span>}
        <Tooltip text={t('run.workingTime')}>
          <span className="num" tabIndex={0}>
            {t('run.worked', { time: format.duration(run.working_ms) })}
          </span>
        </Tooltip>
        <Money value={run.cost} limit={run.cost_limit} tip={t('run.costTip', { tokens: format.number(run.tokens), models: format.list(run.models) })} />
        <span className="soft">
          {t('run.started')} <Time at={run.created_at} />
        </span>
      </div>
      <div className="row wrap run-second">
        <p className="run-sentence">
          {run.waits_for_me > 0 ? (
            <WaitsForMe run={run} items={waiting} />
          ) : (
            <>
              {run.verdict && run.verdict !== run.state && <StateSign state={run.verdict} />}{' '}
              <span className="soft run-reason" title={run.reason}>{run.reason ? <Sentence text={run.reason} /> : !run.verdict && !isOver && t('run.noVerdict')}</span>
            </>
          )}
          {run.forked_from && (
            <a {...link({ run: run.forked_from.run, at: run.forked_from.version })} className="soft">
              {t('run.forkedFrom', { run: run.forked_from.run, version: format.number(run.forked_from.version) })}
            </a>
          )}
        </p>
        <div className="row wrap">
          {actions.map((action) => (
            <Button
              key={action.verb}
              look={action.verb === 'resume' && action.is_allowed && !answerTo ? 'main' : action.verb === 'cancel' ? 'danger' : undefined}
              isDisabled={!action.is_allowed || off !== '' || verb.isPending}
              why={off || action.why}
              onClick={() => press(action)}
            >
              {t(`verb.${action.verb}`)}
            </Button>
          ))}
          {answerTo && (
            <a className="button main" {...link(answerTo)}>
              {t('run.answerIt')}
            </a>
          )}
          {hasChange && isOver && address.tab !== 'changes' && (
            <a className={`button ${answerTo ? '' : 'main'}`} {...link({ tab: 'changes', params: {} })}>
              {t('run.readChange')}
            </a>
          )}
        </div>
      </div>
      {isElsewhere && (
        <p className="tone-wait" role="note">
          {t(isOver || run.owner !== null ? 'run.elsewhere' : 'run.startElsewhere', { folder: run.folder })}
        </p>
      )}
      {run.answer && (
        <details className="answer" open={isAnswer}>
          <summary>{t(isAnswer ? 'run.answer' : 'run.summary')}</summary>
          <Markdown text={run.answer} />
        </details>
      )}
      {verb.error && (
        <Problem error={verb.error}>
          {insist && (
            <Button look="danger" onClick={() => verb.variables && verb.mutate({ ...verb.variables, ...insist })}>
              {t('run.insist')}
            </Button>
          )}
          <Button look="quiet" onClick={() => verb.reset()}>
            {t('ui.close')}
          </Button>
        </Problem>
      )}
      {verb.data && <VerbSays result={verb.data} onClose={() => verb.reset()} />}
      {asked && (
        <Confirm
          action={asked}
          run={run}
          onClose={() => setAsked(null)}
          onYes={(input) => {
            setAsked(null);
            verb.mutate({ verb: asked.verb, ...input });
          }}
        />
      )}
    </header>
  );
}

/** What waits for a person in this run, oldest first. */
function useWaiting(run: string, isAsked: boolean): InboxItem[] {
  const inbox = useInbox(isAsked);
  return isAsked ? (inbox.data?.items.filter((item) => item.run === run) ?? []) : [];
}

/** Where the oldest of what waits is answered; null where it is on the screen. */
function whereToAnswer(run: RunDetail, items: InboxItem[], address: Address): Partial<Address> | null {
  const [first] = items;
  if (run.waits_for_me === 0) return null;
  if (!first) return { place: 'inbox' };
  if (first.kind !== 'conflict') return { place: 'inbox', params: { item: keyOf(first) } };
  const isThere = address.tab === 'changes' && address.params.view === 'conflicts';
  return isThere ? null : { run: run.id, tab: 'changes', params: { view: 'conflicts', approval: first.id } };
}

/** Who waits for what, in the page's own words. */
function WaitsForMe({ run, items }: { run: RunDetail; items: InboxItem[] }) {
  const { t } = useTranslation();
  const [first] = items;
  const rest = run.waits_for_me - 1;
  if (!first) return <span className="waits tone-wait">{t('runs.waitsForYou', { count: run.waits_for_me })}</span>;
  return (
    <span className="waits run-reason">
      {t(first.agent ? `run.asks.${first.kind}` : `run.waitsFor.${first.kind}`, { agent: first.agent })} {first.kind === 'conflict' && first.files.length > 0 && <code>{first.files.join(', ')}</code>}{' '}
      <span className="soft">
        <Time at={first.asked_at} />
      </span>{' '}
      {rest > 0 && <a {...link({ place: 'inbox' })}>{t('run.andMore', { count: rest })}</a>}
    </span>
  );
}

function VerbSays({ result, onClose }: { result: VerbResult; onClose: () => void }) {
  const { t } = useTranslation();
  const { run } = result;
  return (
    <div className={`band ${result.done ? 'done' : 'bad'}`} role="status">
      <span className="grow">
        <Sentence text={`${result.message} ${result.hint}`} />
        {result.clashes.length > 0 && <code> {result.clashes.join(', ')}</code>}
      </span>
      {run && <Button onClick={() => go({ run })}>{t('run.openFork')}</Button>}
      <Button look="quiet" aria-label={t('ui.close')} onClick={onClose}>
        ✕
      </Button>
    </div>
  );
}

const MOST_MOMENTS = 30;

/** The moments worth going back to, newest first: a press fills in the version. */
function Moments({ run, chosen, onChoose }: { run: RunDetail; chosen: string; onChoose: (version: string) => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { data } = useTimeline(run.id);
  const ends = useRunRead<Page<EventRow>>(run.id, 'events', { type: 'SubtaskEnded', limit: MOST_MOMENTS });
  const all = [...(data?.marks ?? []).map((mark) => ({ ...mark, text: inWords(mark.text, t) })), ...(ends.data?.items ?? []).map((row) => ({ version: row.version, at: row.at, kind: 'end', text: `${row.agent} ${row.text}` }))];
  const marks = all.filter((mark) => mark.version < run.head).sort((left, right) => left.version - right.version).slice(-MOST_MOMENTS);
  if (!marks.length) return null;
  return (
    <ul className="moments" aria-label={t('run.moments')}>
      {marks.reverse().map((mark) => (
        <li key={`${mark.version}${mark.kind}`}>
          <button type="button" className="moment" aria-pressed={chosen === String(mark.version)} onClick={() => onChoose(String(mark.version))}>
            <span className="num soft">{format.clock(mark.at)}</span>
            <span className="cut grow">{mark.text}</span>
            <span className="num soft">{t('run.version', { version: format.number(mark.version) })}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Says what a verb will do before it does it, and takes what it needs. */
function Confirm({ action, run, onClose, onYes }: { action: Action; run: RunDetail; onClose: () => void; onYes: (input: Partial<VerbInput>) => void }) {
  const { t } = useTranslation();
  const takes = action.verb === 'rewind' ? 'version' : action.verb === 'resume' ? run.reached?.field : undefined;
  const unit = takes === 'time_limit_s' ? 60 : 1; // a person counts minutes
  const [text, setText] = useState(action.verb === 'resume' && run.reached ? String((run.reached.value * 2) / unit) : '');
  const value = text.trim();
  const input = takes ? { [takes]: Number(value) * unit } : {};
  const isReady = takes === 'version' ? /^[1-9]\d*$/.test(value) : !takes || Number(value) > 0;
  return (
    <Dialog title={t(`verb.${action.verb}`)} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) onYes(input);
        }}
      >
        <p>
          <Sentence text={action.why || t(`ask.${action.verb}`)} />
        </p>
        {takes === 'version' && <Moments run={run} chosen={value} onChoose={setText} />}
        {takes && (
          <label className="stack-tight">
            {t(`need.${takes}`)}
            <input className="field" value={text} inputMode={takes === 'version' ? 'numeric' : 'decimal'} onChange={(event) => setText(event.target.value)} />
          </label>
        )}
        <div className="actions">
          <Button onClick={onClose}>{t('ui.back')}</Button>
          <Button type="submit" why={isReady ? undefined : t('run.fillIn')} look={action.verb === 'cancel' ? 'danger' : 'main'} isDisabled={!isReady}>
            {t(`verb.${action.verb}`)}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
