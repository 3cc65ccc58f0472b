import { useTranslation } from 'react-i18next';
import type { TabProps } from '..';
import { useNarrow } from '../../state/media';
import { planView } from '../../state/setting';
import { setParam, useAddress } from '../../state/url';
import { Empty, Loaded, Switch } from '../../ui';
import { GanttChart } from '../plan/GanttChart';
import { Graph } from '../plan/Graph';
import { StageList } from '../plan/StageList';
import { usePlan } from '../plan/usePlan';
import '../plan/plan.css';

export default function PlanTab({ run }: TabProps) {
  const { t } = useTranslation();
  const plan = usePlan(run);
  const kept = planView.use();
  const { params } = useAddress();
  const isNarrow = useNarrow();
  const view = params.view === 'graph' || params.view === 'gantt' ? params.view : kept;
  return (
    <div className="plan">
      <div className="plan-switch">
        <Switch
          label={t('plan.view')}
          value={view}
          onChange={(next) => {
            planView.set(next);
            setParam('view', next);
          }}
          options={[
            { value: 'graph', label: t(isNarrow ? 'plan.list' : 'plan.graph') },
            { value: 'gantt', label: t('plan.gantt') },
          ]}
        />
      </div>
      <Loaded read={plan}>
        {(data) =>
          view === 'gantt' ? (
            <GanttChart run={run} />
          ) : data.stages.every((stage) => stage.subtasks.length === 0) ? (
            <Empty title={t('plan.empty')} text={t('plan.emptyText')} />
          ) : isNarrow ? (
            <StageList stages={data.stages} />
          ) : (
            <Graph stages={data.stages} />
          )
        }
      </Loaded>
    </div>
  );
}
