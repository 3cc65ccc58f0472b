import { useTranslation } from 'react-i18next';
import { useList } from '../../api/pages';
import type { Agent, Tool } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { AgentName, Empty, Loaded, Sentence, Tabs } from '../../ui';
import '../agents/agents.css';

const EXAMPLE = /[^.!?\n]*: \{"[^\n]*/g; // how a model writes a call

/** The agents that a run can be started with, and the tools that agents can have. */
export default function AgentsPlace() {
  const { t } = useTranslation();
  const { params } = useAddress();
  return (
    <div className="place">
      <h1>{t('shell.agents')}</h1>
      <Tabs
        label={t('shell.agents')}
        value={params.view || 'agents'}
        onChange={(view) => setParam('view', view === 'agents' ? '' : view)}
        tabs={[
          { value: 'agents', label: t('agents.own'), content: <Own /> },
          { value: 'tools', label: t('agents.tools'), content: <Tools /> },
        ]}
      />
    </div>
  );
}

function Own() {
  const { t } = useTranslation();
  const agents = useList<Agent>('agents');
  const hasModel = agents.data?.items.some((agent) => agent.model);
  const hasWords = agents.data?.items.some((agent) => agent.now);
  return (
    <Loaded read={agents}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={t('agents.ownEmpty')} text={t('agents.ownEmptyText')} />
        ) : (
          <div className="scroll-x" role="region" aria-label={t('agents.own')} tabIndex={0}>
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">{t('agents.agent')}</th>
                  <th scope="col">{t('agents.role')}</th>
                  {hasModel && <th scope="col">{t('agents.model')}</th>}
                  {hasWords && <th scope="col">{t('agents.does')}</th>}
                </tr>
              </thead>
              <tbody>
                {items.map((agent) => (
                  <tr key={agent.id}>
                    <th scope="row">
                      <AgentName agent={agent.id} />
                    </th>
                    <td data-label={t('agents.role')}>
                      <Sentence text={agent.role} />
                    </td>
                    {hasModel && <td className="mono" data-label={t('agents.model')}>{agent.model || '–'}</td>}
                    {hasWords && <td data-label={t('agents.does')}>{agent.now}</td>}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      }
    </Loaded>
  );
}

function Tools() {
  const { t, i18n } = useTranslation();
  const { params } = useAddress();
  const tools = useList<Tool>('tools');
  const words = (params.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return (
    <Loaded read={tools}>
      {({ items }) => {
        const found = items.filter((tool) => words.every((word) => `${tool.name} ${tool.group} ${tool.description}`.toLowerCase().includes(word)));
        return (
          <div className="stack place-part">
            <input className="field search" type="search" data-search aria-label={t('agents.searchTools')} placeholder={t('agents.searchTools')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
            {found.length === 0 ? (
              <Empty title={t('agents.noMatch')} />
            ) : (
              <ul className="cards">
                {found.map((tool) => (
                  <li key={`${tool.source}/${tool.name}`} className="item">
                    <div className="row wrap">
                      <code className="grow">{tool.name}</code>
                      <span className="soft">{[tool.group, i18n.exists(`ui.effect.${tool.effect}`) ? t(`ui.effect.${tool.effect}`) : tool.effect, tool.source === 'built-in' ? t('agents.builtIn') : tool.source].filter(Boolean).join(' · ')}</span>
                    </div>
                    <p className="item-text"><Sentence text={tool.description.replace(EXAMPLE, '').trim()} /></p>
                  </li>
                ))}
              </ul>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
