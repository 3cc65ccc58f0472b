import { useTranslation } from 'react-i18next';
import type { Stage, Subtask } from '../../api/types';
import { select, useAddress } from '../../state/url';
import { AgentName, Duration, Money, StateSign, VirtualList } from '../../ui';
import { stateOf, waitsForPerson } from './usePlan';

type Item = { stage: Stage; index: number } | { subtask: Subtask };

/** The plan as a list: what a phone shows, and what a screen reader reads best. */
export function StageList({ stages }: { stages: Stage[] }) {
  const { t } = useTranslation();
  const { sel } = useAddress();
  const items = stages.flatMap<Item>((stage, index) => [{ stage, index }, ...stage.subtasks.map((subtask) => ({ subtask }))]);
  return (
    <VirtualList items={items} keyOf={(item) => ('stage' in item ? `stage ${item.stage.id}` : item.subtask.id)} estimate={64} label={t('plan.stages')} className="stage-list">
      {(item) =>
        'stage' in item ? (
          <h2 className="stage-head">
            {t('plan.stage', { number: item.index + 1 })} <span className="soft">{item.stage.intention}</span>
          </h2>
        ) : (
          <button type="button" className="stage-item" data-item aria-pressed={sel === `subtask:${item.subtask.id}`} onClick={() => select(`subtask:${item.subtask.id}`)}>
            <span className="row">
              <strong className="grow">{item.subtask.title || item.subtask.name}</strong>
              <StateSign state={stateOf(item.subtask)} />
            </span>
            <span className="row soft">
              <span className="grow row cut">
                <AgentName agent={item.subtask.agent} />
              </span>
              {item.subtask.started_at !== null && <Duration from={item.subtask.started_at} to={item.subtask.ended_at} />}
              {item.subtask.cost !== null && item.subtask.cost > 0 && <Money value={item.subtask.cost} isInLink />}
            </span>
            {stateOf(item.subtask) === 'waiting' && <span className="tone-wait">{t('plan.waitsFor', { names: waitsForPerson(item.subtask) ? t('plan.you') : item.subtask.waits_for })}</span>}
          </button>
        )
      }
    </VirtualList>
  );
}
