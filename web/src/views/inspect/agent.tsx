import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { post, seg } from '../../api/client';
import { useRunList } from '../../api/pages';
import { client, useRunRead } from '../../api/queries';
import type { AgentDetail, Message, MessageInput, Step, VerbResult } from '../../api/types';
import { useFormat } from '../../state/format';
import { forgetDrafts } from '../../state/setting';
import { select, useAddress } from '../../state/url';
import { AgentName, Button, Duration, Empty, Loaded, Markdown, Money, Problem, Sentence, StateSign, Tabs, Time, VirtualList } from '../../ui';
import { Entry } from '../../ui/Entry';
import { plain } from '../activity/rows';
import { useIsPerson, useWhyNot } from '../agents/people';
import { withBreaks } from '../messages/lanes';
import type { InspectProps } from '..';
import '../agents/agents.css';

/** One member of a run: what it does now, what it was told, what it may do, what it did, and the conversation with it. */
export default function AgentInspector({ run, id }: InspectProps) {
  const { t } = useTranslation();
  const detail = useRunRead<AgentDetail>(run, `agents/${seg(id)}`);
  const [tab, setTab] = useState('now');
  const isPerson = useIsPerson();
  return (
    <Loaded read={detail}>
      {(agent) => {
        const human = isPerson(agent.id, agent.kind);
        const tabs = [
          { value: 'now', label: t('agents.now'), content: <Now agent={agent} /> },
          ...(human ? [] : [{ value: 'talk', label: t('agents.talk'), content: <Talk run={run} agent={agent} /> }]),
          { value: 'history', label: t('agents.history'), content: <History run={run} agent={agent.id} /> },
          { value: 'rights', label: t('agents.rights'), content: <Rights agent={agent} /> },
        ];
        return (
          <div className="stack agent-detail">
            <h2 className="row">
              <AgentName agent={agent.id} />
            </h2>
            <div className="row wrap">
              <StateSign state={agent.state} />
              <span className="soft">{[human ? t('agents.person') : agent.role !== agent.id ? agent.role : '', agent.model].filter(Boolean).join(' · ')}</span>
            </div>
            <Tabs label={t('agents.views')} tabs={tabs} value={tab} onChange={setTab} />
          </div>
        );
      }}
    </Loaded>
  );
}

function Now({ agent }: { agent: AgentDetail }) {
  const { t } = useTranslation();
  const { at } = useAddress();
  const format = useFormat();
  const others = agent.waits_on.filter((name) => name !== 'person');
  return (
    <div className="stack">
      <p>
        {agent.now || t(agent.waits_on.length ? 'agents.waitsOn' : 'agents.nothingNow', { names: format.list(agent.waits_on.map((name) => (name === 'person' ? t('plan.you') : name))) })}{' '}
        {at === null && agent.since !== null && (agent.state === 'working' || agent.state === 'waiting') && (
          <span className="soft">
            <Duration from={agent.since} to={null} />
          </span>
        )}
      </p>
      {others.length > 0 && (
        <p className="row wrap">
          <span className="tone-wait">◐ {t('agents.waitsFor')}</span>
          {others.map((name) => (
            <Button key={name} look="quiet" onClick={() => select(`agent:${name}`)}>
              <AgentName agent={name} />
            </Button>
          ))}
        </p>
      )}
      <dl className="facts">
        {agent.tokens > 0 && (
          <>
            <dt>{t('agents.cost')}</dt>
            <dd>
              <Money value={agent.cost} />
            </dd>
          </>
        )}
        <dt>{t('agents.tokenCount')}</dt>
        <dd className="num">{format.number(agent.tokens)}</dd>
        <dt>{t('agents.steps')}</dt>
        <dd className="num">{format.number(agent.steps)}</dd>
        {agent.manager && (
          <>
            <dt>{t('agents.manager')}</dt>
            <dd>{agent.manager}</dd>
          </>
        )}
      </dl>
      {agent.duties.length > 0 && (
        <section className="stack-tight">
          <h3>{t('agents.duties')}</h3>
          <ul className="bullets">
            {agent.duties.map((duty) => (
              <li key={duty}>{duty}</li>
            ))}
          </ul>
        </section>
      )}
      <section className="stack-tight">
        <h3>{t('agents.queue')}</h3>
        {agent.queued.length === 0 ? <p className="soft">{t('agents.noQueue')}</p> : agent.queued.map((step) => <StepRow key={step.id} step={step} />)}
      </section>
    </div>
  );
}

function StepRow({ step }: { step: Step }) {
  return (
    <button type="button" className="step-row" onClick={() => select(`step:${step.id}`)}>
      <StateSign state={step.state} isShort />
      <span className="grow cut">{plain(step.text) || step.intention || step.executor}</span>
      {step.started_at !== null && (
        <span className="soft">
          <Duration from={step.started_at} to={step.ended_at} />
        </span>
      )}
      {step.error && <span className="tone-bad step-error">{step.error}</span>}
    </button>
  );
}

function History({ run, agent }: { run: string; agent: string }) {
  const { t } = useTranslation();
  const [most, setMost] = useState(200);
  const steps = useRunList<Step>(run, `agents/${seg(agent)}/steps`, { limit: 200 }, most);
  return (
    <Loaded read={steps}>
      {(page) =>
        page.items.length === 0 ? (
          <Empty title={t('agents.noSteps')} />
        ) : (
          <VirtualList
            items={page.items}
            keyOf={(step) => step.id}
            estimate={34}
            label={t('agents.history')}
            className="agent-steps"
            footer={
              page.next && (
                <div className="ask-actions">
                  <Button onClick={() => setMost(most + 500)}>{t('agents.older')}</Button>
                </div>
              )
            }
          >
            {(step) => <StepRow step={step} />}
          </VirtualList>
        )
      }
    </Loaded>
  );
}

function Rights({ agent }: { agent: AgentDetail }) {
  const { t } = useTranslation();
  const part = (title: string, content: React.ReactNode, isEmpty: boolean) => (
    <section className="stack-tight">
      <h3>{title}</h3>
      {isEmpty ? <p className="soft">{t('agents.none')}</p> : content}
    </section>
  );
  return (
    <div className="stack">
      {part(t('agents.tools'), <p className="mono names">{agent.tools.join(' · ')}</p>, !agent.tools.length)}
      {part(t('agents.skills'), <p className="mono names">{agent.skills.join(' · ')}</p>, !agent.skills.length)}
      {part(t('agents.rules'), <pre className="block">{agent.rules.join('\n')}</pre>, !agent.rules.length)}
      {part(t('agents.memory'), <Markdown text={agent.memory} />, !agent.memory)}
      {part(t('agents.instructions'), <pre className="block">{agent.instructions}</pre>, !agent.instructions)}
    </div>
  );
}

/** The conversation of the person with one agent. */
function Talk({ run, agent }: { run: string; agent: AgentDetail }) {
  const { t } = useTranslation();
  const whyNot = useWhyNot(run, 'send');
  const isPerson = useIsPerson();
  const messages = useRunList<Message>(run, 'messages');
  const draft = `message.${run}.${agent.id}`;
  const [sent, setSent] = useState(0);
  const send = useMutation({
    mutationFn: (input: MessageInput) => post<VerbResult>(`/runs/${seg(run)}/messages`, input),
    onSuccess: () => {
      forgetDrafts(draft);
      setSent((count) => count + 1);
      void client.invalidateQueries({ queryKey: ['run', run, 'head'] });
    },
  });
  const between = (message: Message) =>
    (message.sender === agent.id && message.receivers.some((receiver) => isPerson(receiver))) || (isPerson(message.sender) && message.receivers.includes(agent.id));
  return (
    <div className="stack">
      <Loaded read={messages}>
        {({ items }) => {
          const said = items.filter(between);
          if (!said.length) return <p className="soft">{t('agents.noTalk')}</p>;
          return (
            <VirtualList items={said} keyOf={(message) => message.id} estimate={70} label={t('agents.talk')} className="talk" follows>
              {(message) => (
                <div className={`said ${isPerson(message.sender) ? 'by-me' : ''}`}>
                  <span className="row soft said-head">
                    {message.sender} <Time at={message.sent_at} />
                    {message.waits && message.answered_at === null && <span className="tone-wait">◐ {t('messages.waits')}</span>}
                  </span>
                  <Markdown text={withBreaks(message.text)} />
                </div>
              )}
            </VirtualList>
          );
        }}
      </Loaded>
      <Entry key={sent} label={t('agents.write', { agent: agent.id })} submit={t('messages.send')} isCalm draft={draft} isBusy={send.isPending} why={whyNot || (agent.state === 'retired' ? t('agents.isRetired') : '')} onSubmit={(text) => send.mutate({ text, to: agent.id })} />
      {send.error && <Problem error={send.error} />}
      {send.data && (
        <p role="status" className="soft">
          <Sentence text={`${send.data.message} ${send.data.hint}`} />
        </p>
      )}
    </div>
  );
}
