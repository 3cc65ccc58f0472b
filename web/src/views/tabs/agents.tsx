import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRunList } from '../../api/pages';
import type { Agent } from '../../api/types';
import { useFormat } from '../../state/format';
import { select, setParam, useAddress } from '../../state/url';
import { AgentName, Duration, Empty, Loaded, Money, StateSign, VirtualList } from '../../ui';
import { useIsPerson } from '../agents/people';
import { listTree, type Branch } from '../agents/tree';
import type { TabProps } from '..';
import '../agents/agents.css';

/** The organisation of a run: who reports to whom, what each does now, and for whom it waits. */
export default function Agents({ run }: TabProps) {
  const { t } = useTranslation();
  const { params, sel } = useAddress();
  const agents = useRunList<Agent>(run, 'agents');
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const words = (params.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const items = agents.data?.items;
  const rows = useMemo(() => {
    const found = (items ?? []).filter((agent) => words.every((word) => `${agent.id} ${agent.role} ${agent.state} ${agent.now}`.toLowerCase().includes(word)));
    return words.length ? found.map((agent) => ({ agent, depth: 0, reports: 0 })) : listTree(found, closed);
  }, [items, closed, words.join(' ')]);
  const toggle = (id: string) => setClosed((before) => (before.has(id) ? new Set([...before].filter((other) => other !== id)) : new Set([...before, id])));
  return (
    <Loaded read={agents}>
      {(page) =>
        page.items.length === 0 ? (
          <Empty title={t('agents.empty')} text={t('agents.emptyText')} />
        ) : (
          <div className="members">
            {(page.items.length > 8 || words.length > 0) && (
              <div className="row wrap">
                <input className="field search" type="search" data-search aria-label={t('agents.search')} placeholder={t('agents.search')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
                <span className="soft">{t('agents.count', { count: rows.length })}</span>
                {page.next && <span className="soft">{t('agents.cut', { count: page.items.length })}</span>}
              </div>
            )}
            {rows.length === 0 ? (
              <Empty title={t('agents.noMatch')} />
            ) : (
              <>
                <div className="member-row member-head" aria-hidden="true">
                  <span>{t('agents.agent')}</span>
                  <span>{t('agents.state')}</span>
                  <span>{t('agents.now')}</span>
                  <span className="right">{t('agents.queue')}</span>
                  <span className="right">{t('agents.cost')}</span>
                </div>
                <VirtualList items={rows} keyOf={(row) => row.agent.id} estimate={46} label={t('tab.agents')}>
                  {(row) => <Member row={row} isOn={sel === `agent:${row.agent.id}`} isClosed={closed.has(row.agent.id)} onToggle={() => toggle(row.agent.id)} />}
                </VirtualList>
              </>
            )}
          </div>
        )
      }
    </Loaded>
  );
}

function Member({ row, isOn, isClosed, onToggle }: { row: Branch; isOn: boolean; isClosed: boolean; onToggle: () => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const isPerson = useIsPerson();
  const { at } = useAddress();
  const { agent } = row;
  return (
    <div className={`member-row ${isOn ? 'is-on' : ''}`}>
      <span className="member-name" style={{ paddingLeft: Math.min(row.depth, 6) * 22 }}>
        {row.reports > 0 ? (
          <button type="button" className="fold" aria-expanded={!isClosed} aria-label={t('agents.reportsOf', { agent: agent.id })} onClick={onToggle}>
            {isClosed ? '▸' : '▾'}
          </button>
        ) : (
          <span className="fold" />
        )}
        <button type="button" className="member-open" onClick={() => select(`agent:${agent.id}`)}>
          <AgentName agent={agent.id} />
          <span className="soft cut" title={agent.role}>{isPerson(agent.id, agent.kind) ? t('agents.person') : [agent.role !== agent.id ? agent.role : '', isClosed ? t('agents.reports', { count: row.reports }) : ''].filter(Boolean).join(' · ')}</span>
        </button>
      </span>
      <span>
        <StateSign state={agent.state} />
      </span>
      <span className="member-now">
        <span className="cut">{agent.now || (agent.waits_on.length > 0 ? t('agents.waitsOn', { names: format.list(agent.waits_on.map((name) => (name === 'person' ? t('plan.you') : name))) }) : '')}</span>
        {at === null && agent.since !== null && agent.state !== 'idle' && agent.state !== 'retired' && (
          <span className="soft">
            <Duration from={agent.since} to={null} />
          </span>
        )}
      </span>
      <span className="right num">{agent.queue > 0 ? t('agents.queued', { count: agent.queue }) : ''}</span>
      <span className="right">
        {agent.tokens > 0 && <Money value={agent.cost} tip={t('agents.tokens', { tokens: format.number(agent.tokens) })} />}
      </span>
    </div>
  );
}
