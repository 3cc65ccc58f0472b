import { useMutation, useQuery } from '@tanstack/react-query';
import { useState, type KeyboardEvent } from 'react';
import { useTranslation } from 'react-i18next';
import { get, post } from '../../api/client';
import { client, useSession } from '../../api/queries';
import { useConnection } from '../../api/stream';

import type { Agent, Page, PlanInput, Proposal, Run, RunInput, Text } from '../../api/types';
import { forgetDrafts, useDraft } from '../../state/setting';
import { useFormat } from '../../state/format';
import { go } from '../../state/url';
import { Button, Problem, Sentence, Switch } from '../../ui';
import { ProposalView } from './ProposalView';

type Way = 'team' | 'agent' | 'question';

/** What should be done: by a team with a plan to confirm, by one agent, or a question that changes nothing. */
export function Composer() {
  const { t } = useTranslation();
  const session = useSession().data;
  const [request, setRequest] = useDraft('request', '');
  const [way, setWay] = useDraft<Way>('way', 'team');
  const [limits, setLimits] = useDraft<Limits>('limits', NO_LIMITS);
  const [text, setText] = useDraft('plan', '');
  const [proposal, setProposal] = useDraft<Proposal | null>('proposal', null);
  const [confirmsChecks, setConfirmsChecks] = useState(true);
  const plan = useMutation({
    mutationFn: (input: PlanInput) => post<Proposal>('/plans', input),
    onSuccess: (next) => {
      const text = next.text.replace(/^#[^\n]*\n/, ''); // its first line speaks of a file
      setProposal({ ...next, text });
      setText(text);
    },
  });
  const start = useMutation({
    mutationFn: (input: RunInput) => post<Run>('/runs', input),
    onSuccess: (run) => {
      forgetDrafts('request', 'way', 'limits', 'plan', 'proposal');
      void client.invalidateQueries({ queryKey: ['runs'] });
      go({ run: run.id });
    },
  });
  const isEdited = proposal !== null && text !== proposal.text;
  const isTeam = way === 'team';
  const format = useFormat();
  const cap = Number(limits.cost) > 0 ? Number(limits.cost) : (proposal?.cost_limit ?? null);
  const isAway = useConnection().state === 'lost';
  const isReady = request.trim() !== '' && !isAway;
  const isBusy = plan.isPending || start.isPending;
  const makePlan = () => {
    start.reset();
    plan.mutate({ request: request.trim(), text: isEdited ? text : '', model: limits.model, cost_limit: Number(limits.cost) > 0 ? Number(limits.cost) : null, proposal: proposal?.id });
  };
  const begin = () => start.mutate({ ...runInput(request.trim(), way, limits, isTeam ? text : ''), ...(isTeam && proposal && { proposal: proposal.id, confirm_checks: confirmsChecks ? proposal.checks_digest : '' }) });
  const forget = () => {
    setProposal(null);
    plan.reset();
    start.reset();
  };
  const submit = () => {
    if (!isReady || isBusy) return;
    if (isTeam && (!proposal || isEdited)) makePlan();
    else begin();
  };
  const startsTeam = text !== '' && proposal?.parts.length !== 1;
  const advisesAgent = startsTeam && proposal !== null && !proposal.is_team;
  const whyNot = isAway ? t('ui.unreachable') : isReady ? '' : t('composer.writeFirst');
  return (
    <form
      className="composer card"
      aria-label={t('composer.title')}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        className="field composer-text"
        aria-label={t('composer.what')}
        placeholder={t(way === 'question' ? 'composer.askWhat' : 'composer.what')}
        value={request}
        maxLength={20_000}
        onChange={(event) => {
          setRequest(event.target.value);
          if (proposal) forget();
        }}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) submit();
        }}
      />
      {session && !session.model && (
        <div className="problem" role="status">
          <strong>{t('composer.noModel')}</strong>
          <span>
            <Sentence text={session.model_hint} />
          </span>
        </div>
      )}
      <div className="row wrap">
        <Switch
          label={t('composer.way')}
          value={way}
          onChange={(next) => {
            setWay(next);
            forget();
          }}
          options={(['team', 'agent', 'question'] as const).map((value) => ({ value, label: t(`composer.${value}`) }))}
        />
        <span className="grow soft cut mono composer-folder">{session?.folder}</span>
        {isTeam && (
          <Button type="submit" look="main" className="composer-start" isDisabled={!isReady || isBusy} why={whyNot} hidden={proposal !== null}>
            {t(plan.isPending ? 'composer.planning' : 'composer.plan')}
          </Button>
        )}
        {!isTeam && (
          <Button type="submit" look="main" className="composer-start" isDisabled={!isReady || isBusy} why={whyNot}>
            {start.isPending ? t('composer.starting') : t('composer.start')}
          </Button>
        )}
      </div>
      <LimitFields limits={limits} onChange={setLimits} isQuestion={way === 'question'} hasAgent={way === 'agent'} />
      {plan.error && !proposal && <Problem error={plan.error} />}
      {isTeam && proposal && (
        <ProposalView
          proposal={proposal}
          text={text}
          onText={setText}
          below={
            <>
              {plan.error && <Problem error={plan.error} />}
              <div className="row">
                <Button type="submit" look={isEdited ? 'main' : undefined} isDisabled={!isEdited || !isReady || isBusy} why={isEdited ? whyNot : t('composer.unchanged')}>
                  {t(plan.isPending ? 'composer.planning' : 'composer.check')}
                </Button>
              </div>
            </>
          }
          confirmsChecks={confirmsChecks} onConfirmsChecks={setConfirmsChecks}
        >
          {cap !== null && proposal.cost && cap < proposal.cost.high && (
            <p className="tone-wait" role="status">
              {t('composer.belowEstimate', { limit: format.money(cap), low: format.money(proposal.cost.low), high: format.money(proposal.cost.high) })}
            </p>
          )}
          <div className="actions">
            <Button onClick={forget}>{t('composer.discardPlan')}</Button>
            <Button look={advisesAgent ? undefined : 'main'} isDisabled={isEdited || isBusy || isAway} why={isEdited ? t('composer.checkFirst') : undefined} onClick={begin}>
              {start.isPending ? t('composer.starting') : t(startsTeam ? 'composer.startTeam' : 'composer.startAgent')}
            </Button>
            {advisesAgent && (
              <Button look="main" isDisabled={isBusy || isAway} onClick={() => start.mutate(runInput(request.trim(), 'agent', limits, ''))}>
                {t('composer.startAgent')}
              </Button>
            )}
          </div>
        </ProposalView>
      )}
      {start.error && <Problem error={start.error} />}
    </form>
  );
}

interface Limits {
  model: string;
  agent: string;
  cost: string;
  minutes: string;
  testsMayChange: boolean;
  allowUnverified: boolean;
}
const NO_LIMITS: Limits = { model: '', agent: '', cost: '', minutes: '', testsMayChange: false, allowUnverified: false };

function runInput(request: string, way: Way, limits: Limits, plan: string): RunInput {
  const number = (value: string) => (Number(value) > 0 ? Number(value) : null);
  const minutes = number(limits.minutes);
  return {
    request,
    plan,
    question: way === 'question',
    agent: way === 'agent' ? limits.agent : '',
    model: limits.model,
    tests_may_change: limits.testsMayChange,
    allow_unverified: limits.allowUnverified,
    cost_limit: number(limits.cost),
    time_limit_s: minutes && minutes * 60,
  };
}

function LimitFields({ limits, onChange, isQuestion, hasAgent }: { limits: Limits; onChange: (limits: Limits) => void; isQuestion: boolean; hasAgent: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const models = useQuery({ queryKey: ['models'], queryFn: () => get<Page<Text>>('/models'), enabled: isOpen, staleTime: 300_000 }).data?.items ?? [];
  const agents = useQuery({ queryKey: ['agents'], queryFn: () => get<Page<Agent>>('/agents'), enabled: isOpen, staleTime: 300_000 }).data?.items ?? [];
  const set = (change: Partial<Limits>) => onChange({ ...limits, ...change });
  const used = [limits.cost && t('composer.usedCost', { cost: limits.cost }), limits.minutes && t('composer.usedMinutes', { minutes: limits.minutes }), limits.model].filter(Boolean).join(' · ');
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {t('composer.limits')} {used && <span>· {used}</span>}
      </summary>
      <div className="composer-limits">
        <label>
          {t('composer.costLimit')}
          <input className="field" type="number" min="0" step="any" inputMode="decimal" value={limits.cost} onChange={(event) => set({ cost: event.target.value })} />
        </label>
        <label>
          {t('composer.timeLimit')}
          <input className="field" type="number" min="0" step="any" inputMode="decimal" value={limits.minutes} onChange={(event) => set({ minutes: event.target.value })} />
        </label>
        <label>
          {t('composer.model')}
          <select className="field" value={limits.model} onChange={(event) => set({ model: event.target.value })}>
            <option value="">{t('composer.default')}</option>
            {models.map((model) => (
              <option key={model.text}>{model.text}</option>
            ))}
          </select>
        </label>
        {hasAgent && (
          <label>
            {t('composer.agentName')}
            <select className="field" value={limits.agent} onChange={(event) => set({ agent: event.target.value })}>
              <option value="">{t('composer.default')}</option>
              {agents.map((agent) => (
                <option key={agent.id} value={agent.id}>
                  {agent.id}
                </option>
              ))}
            </select>
          </label>
        )}
        {!isQuestion && (
          <>
            <label className="check">
              <input type="checkbox" checked={limits.testsMayChange} onChange={(event) => set({ testsMayChange: event.target.checked })} />
              {t('composer.testsMayChange')}
            </label>
            <label className="check">
              <input type="checkbox" checked={limits.allowUnverified} onChange={(event) => set({ allowUnverified: event.target.checked })} />
              {t('composer.allowUnverified')}
            </label>
          </>
        )}
      </div>
    </details>
  );
}
