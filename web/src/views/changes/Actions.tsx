import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import { useRun, useVerb } from '../../api/queries';
import type { Action, Change, Verb, VerbInput } from '../../api/types';
import { Button, Dialog, Loaded, Problem, Sentence, StateSign } from '../../ui';
import { useOff } from '../run/past';

/** What a person adds to do it all the same, by the reason of the refusal. */
const INSIST: Record<string, VerbInput> = { configures_agents: { confirm_governing: true }, not_sure: { force: true }, buried: { force: true } };
const VERBS: readonly Verb[] = ['apply', 'undo', 'branch', 'discard'];

/** What can be done with the change now, and in one line what that will do. */
export function Actions({ run, change }: { run: string; change: Change }) {
  const { t } = useTranslation();
  const past = useOff();
  const detail = useRun(run);
  const verb = useVerb(run);
  const [asked, setAsked] = useState<Action | null>(null);
  return (
    <Loaded read={detail} lines={1}>
      {({ actions, state, folder }) => {
        const isReady = change.state === 'ready' && state === 'finished' && change.verdict !== 'failed';
        const known = VERBS.flatMap((name) => actions.filter((action) => action.verb === name));
        const shown = known.some((action) => action.is_allowed) ? known.filter((action) => action.is_allowed) : known.slice(0, 1);
        if (change.state === 'discarded' && !verb.data) return null;
        if (!shown.length) return null;
        const say = (action: Action) => past || action.why || t(`ask.${action.verb}`, { folder });
        return (
          <section className="change-actions" aria-label={t('changes.actions')}>
            {change.state === 'applied' && (
              <b className="tone-good">
                ✓ {t('changes.applied')} {change.commit && <code>{change.commit.slice(0, 10)}</code>}
              </b>
            )}
            {change.state === 'discarded' && <b className="soft">{t('changes.discarded')}</b>}
            {(change.state === 'discarded' ? [] : shown).map((action) => (
              <p key={action.verb} className="change-action">
                <Button
                  look={action.verb === 'discard' ? 'danger' : action.verb === 'apply' && action.is_allowed && isReady ? 'main' : undefined}
                  isDisabled={!action.is_allowed || past !== '' || verb.isPending}
                  why={past || action.why}
                  onClick={() => {
                    verb.reset();
                    setAsked(action);
                  }}
                >
                  {t(`verb.${action.verb}`)}
                  {action.verb === 'branch' || action.verb === 'discard' ? '…' : ''}
                </Button>
                <span className="soft">
                  <Sentence text={say(action)} />
                </span>
              </p>
            ))}
            {verb.data && (
              <div className={`band ${verb.data.done ? 'done' : 'bad'}`} role="status">
                <span className="grow">
                  <Sentence text={`${verb.data.message} ${verb.data.hint}`} />
                  {verb.data.clashes.length > 0 && <code> {verb.data.clashes.join(', ')}</code>}
                </span>
                <Button look="quiet" aria-label={t('ui.close')} onClick={() => verb.reset()}>
                  ✕
                </Button>
              </div>
            )}
            {asked && (
              <Confirm
                action={asked}
                says={say(asked)}
                warning={asked.verb === 'apply' && change.verdict === 'failed' ? t('changes.says.failed') : ''}
                error={verb.error}
                isBusy={verb.isPending}
                onClose={() => {
                  verb.reset();
                  setAsked(null);
                }}
                onYes={(input) => verb.mutate({ verb: asked.verb, ...input }, { onSuccess: () => setAsked(null) })}
              />
            )}
          </section>
        );
      }}
    </Loaded>
  );
}

interface ConfirmProps {
  action: Action;
  says: string;
  warning: string;
  error: unknown;
  isBusy: boolean;
  onClose: () => void;
  onYes: (input: VerbInput) => void;
}

/** Says what will happen, takes what the verb needs, and asks once more when the change configures agents. */
function Confirm({ action, says, warning, error, isBusy, onClose, onYes }: ConfirmProps) {
  const { t } = useTranslation();
  const [text, setText] = useState('');
  const insist = error instanceof ProblemError ? INSIST[error.problem.code] : undefined;
  const governs = insist?.confirm_governing === true;
  const takes = action.verb === 'branch' ? 'branch' : action.verb === 'apply' ? 'message' : null;
  const isDanger = action.verb === 'discard' || governs || warning !== '';
  return (
    <Dialog title={t(`verb.${action.verb}`)} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) onYes({ ...(takes ? { [takes]: text.trim() } : {}), ...insist });
        }}
      >
        <p>
          <Sentence text={says} />
        </p>
        {warning && (
          <p>
            <StateSign state="failed" /> {warning}
          </p>
        )}
        {takes && (
          <label className="stack-tight">
            {t(`need.${takes}`)}
            <input className="field" value={text} onChange={(event) => setText(event.target.value)} />
          </label>
        )}
        {Boolean(error) && <Problem error={error} />}
        {governs && <p>{t('changes.governs')}</p>}
        <div className="actions">
          <Button onClick={onClose}>{t('ui.back')}</Button>
          <Button type="submit" look={isDanger ? 'danger' : 'main'} isDisabled={isBusy}>
            {t(governs ? 'changes.governsYes' : insist ? 'run.insist' : `verb.${action.verb}`)}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
