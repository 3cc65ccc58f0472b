import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { InspectProps } from '..';
import { seg } from '../../api/client';
import { useRunRead } from '../../api/queries';
import type { StepDetail } from '../../api/types';
import { useFormat } from '../../state/format';
import { select } from '../../state/url';
import { AgentName, Button, Duration, Loaded, Markdown, Money, StateSign } from '../../ui';
import { Data } from '../../ui/Data';
import { plain } from '../activity/rows';

/** A step: what was asked for exactly, what came back, under which terms, and what it cost. */
export default function StepInspector({ run, id }: InspectProps) {
  const step = useRunRead<StepDetail>(run, `steps/${seg(id)}`);
  return <Loaded read={step}>{(data) => <Step step={data} />}</Loaded>;
}

function Step({ step }: { step: StepDetail }) {
  const { t, i18n } = useTranslation();
  const format = useFormat();
  const named = (key: string, value: string) => (i18n.exists(key) ? t(key) : value);
  const facts: [string, ReactNode][] = [
    [t('inspect.state'), <StateSign key="state" state={step.state} />],
    [t('inspect.agent'), <Button key="agent" look="quiet" className="inspect-link" onClick={() => select(`agent:${step.agent}`)}><AgentName agent={step.agent} /></Button>],
    [t('inspect.began'), step.started_at === null ? t('inspect.notYet') : format.absolute(step.started_at)],
    [t('inspect.took'), step.started_at !== null && <Duration from={step.started_at} to={step.ended_at} />],
    [t('inspect.attempt'), step.attempt > 1 && format.number(step.attempt)],
    [t('inspect.model'), step.model],
    [t('inspect.cost'), step.tokens > 0 && <Money value={step.cost} />],
    [t('inspect.tokens'), step.tokens > 0 && format.number(step.tokens)],
    [t('inspect.effect'), named(`ui.effect.${step.effect}`, step.effect)],
    [t('inspect.policy'), named(`inspect.policies.${step.policy}`, step.policy)],
    [t('inspect.rule'), step.rule && <code>{step.rule}</code>],
  ];
  return (
    <div className="stack">
      <h2 className="inspect-title">{plain(step.text) || step.executor}</h2>
      {step.error && (
        <div className="problem">
          <strong>{t('inspect.error')}</strong>
          <pre>{step.error}</pre>
        </div>
      )}
      {step.intention && <p>{step.intention}</p>}
      <Facts facts={facts} />
      <Exact title={t('inspect.call')} value={step.instruction} isOpen />
      <Exact title={t('inspect.result')} value={step.result} isOpen />
      {step.reply && (
        <details open>
          <summary>{t('inspect.reply')}</summary>
          <Markdown text={step.reply} />
        </details>
      )}
      {step.reasoning && (
        <details>
          <summary>{t('inspect.reasoning')}</summary>
          <pre className="block" tabIndex={0}>{step.reasoning}</pre>
        </details>
      )}
      {(step.prompt.length > 0 || step.prompt_note) && (
        <details>
          <summary>
            {t('inspect.prompt')} <span className="soft">{t('inspect.messages', { count: step.prompt.length })}</span>
          </summary>
          {step.prompt_note && <p className="soft">{step.prompt_note}</p>}
          {step.prompt.map((message, index) => (
            <div key={index} className="stack-tight">
              <strong>{message.role}</strong>
              <div className="block" tabIndex={0}>
                <Data value={message.text} />
              </div>
            </div>
          ))}
        </details>
      )}
    </div>
  );
}

export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== '' && value !== false && value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** What was asked for or came back, in plain lines; the tab Log has it as it was recorded. */
function Exact({ title, value, isOpen }: { title: string; value: unknown; isOpen?: boolean }) {
  if (value === null || value === undefined || value === '') return null;
  return (
    <details open={isOpen}>
      <summary>{title}</summary>
      <div className="block" tabIndex={0}>
        <Data value={value} />
      </div>
    </details>
  );
}
