import { useTranslation } from 'react-i18next';
import type { ReactNode } from 'react';
import type { InspectProps } from '..';
import type { Subtask } from '../../api/types';
import { useFormat } from '../../state/format';
import { go, link, select } from '../../state/url';
import { AgentName, Button, Duration, Empty, Loaded, Markdown, Money, StateSign } from '../../ui';
import { stateOf, usePlan, waitsForPerson } from '../plan/usePlan';
import { Facts } from './step';

/** A subtask: its duty, what it waits for, what came of it, and where to see more. */
export default function SubtaskInspector({ run, id }: InspectProps) {
  const { t } = useTranslation();
  const plan = usePlan(run);
  return (
    <Loaded read={plan}>
      {(data) => {
        const all = data.stages.flatMap((stage) => stage.subtasks);
        const subtask = all.find((item) => item.id === id);
        return subtask ? <Detail run={run} subtask={subtask} all={all} /> : <Empty title={t('inspect.notThere')} text={t('inspect.notThereText')} />;
      }}
    </Loaded>
  );
}

function Detail({ run, subtask, all }: { run: string; subtask: Subtask; all: Subtask[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const state = stateOf(subtask);
  const needs = subtask.needs.flatMap((need) => all.find((item) => item.id === need) ?? []);
  const agent = subtask.agent && (
    <Button look="quiet" className="inspect-link" onClick={() => select(`agent:${subtask.agent}`)}>
      <AgentName agent={subtask.agent} />
    </Button>
  );
  const others = needs.length > 0 && (
    <ul>
      {needs.map((need) => (
        <li key={need.id}>
          <Button look="quiet" className="inspect-link" onClick={() => go({ sel: `subtask:${need.id}` })}>
            <StateSign state={need.state} isShort /> {need.title || need.name}
          </Button>
        </li>
      ))}
    </ul>
  );
  const facts: [string, ReactNode][] = [
    [t('inspect.state'), <StateSign key="state" state={state} />],
    [t('inspect.waits'), waitsForPerson(subtask) ? t('plan.you') : state === 'waiting' && subtask.waits_for],
    [t('inspect.agent'), agent],
    [t('inspect.needs'), others],
    [t('inspect.took'), subtask.started_at !== null && <Duration from={subtask.started_at} to={subtask.ended_at} />],
    [t('inspect.expected'), subtask.expected_s > 0 && format.duration(subtask.expected_s * 1000)],
    [t('inspect.attempt'), subtask.attempt > 1 && t('inspect.attemptOf', { attempt: subtask.attempt, tries: subtask.tries })],
    [t('inspect.cost'), subtask.tokens > 0 && <Money value={subtask.cost} />],
    [t('inspect.tokens'), subtask.tokens > 0 && format.number(subtask.tokens)],
    [t('inspect.writes'), subtask.writes.length > 0 && <code>{subtask.writes.join(', ')}</code>],
    [t('inspect.critical'), subtask.is_critical && t('inspect.yes')],
    [t('inspect.required'), !subtask.required && t('inspect.no')],
  ];
  return (
    <div className="stack">
      <h2 className="inspect-title">{subtask.title || subtask.name}</h2>
      <Facts facts={facts} />
      {subtask.summary && (
        <details open>
          <summary>{t('run.answer')}</summary>
          <Markdown text={subtask.summary} />
        </details>
      )}
      {subtask.duty && (
        <details open={!subtask.summary}>
          <summary>{t('inspect.duty')}</summary>
          <Markdown text={subtask.duty} />
        </details>
      )}
      {subtask.agent && (
        <div>
          <a className="button" {...link({ run, tab: 'activity', params: { agent: subtask.agent }, sel: '' })}>
            {t('inspect.activity')}
          </a>
        </div>
      )}
    </div>
  );
}
