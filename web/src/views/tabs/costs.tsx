import { useTranslation } from 'react-i18next';
import { useRunRead } from '../../api/queries';
import type { Costs } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Loaded } from '../../ui';
import { CostView } from '../costs/CostView';
import type { TabProps } from '..';

/** What this run spent, by agent or by model. */
export default function RunCosts({ run }: TabProps) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const by = params.by === 'model' ? 'model' : 'agent';
  const costs = useRunRead<Costs>(run, 'costs', { by });
  const groups = (['agent', 'model'] as const).map((value) => ({ value, label: t(`costs.group.${value}`) }));
  return (
    <div className="cost-tab">
      <Loaded read={costs}>{(data) => <CostView costs={data} groups={groups} by={by} onBy={(next) => setParam('by', next)} />}</Loaded>
    </div>
  );
}
