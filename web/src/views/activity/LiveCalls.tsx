import { useTranslation } from 'react-i18next';
import type { LiveCall } from '../../api/stream';
import { AgentName } from '../../ui';

const SHOWN = 6;
const TAIL = 600;

/** What models say right now. It becomes an event when the call ends. */
export function LiveCalls({ calls, agent }: { calls: LiveCall[]; agent: string }) {
  const { t } = useTranslation();
  const own = agent ? calls.filter((call) => call.agent === agent) : calls;
  if (own.length === 0) return null;
  return (
    <div className="live-calls">
      {own.slice(0, SHOWN).map((call) => (
        <div key={call.step || call.agent} className="live-call">
          <span className="row">
            <AgentName agent={call.agent} />
            <span className="soft">{t(call.content ? 'activity.writes' : call.output ? 'activity.outputs' : 'activity.thinks')}</span>
          </span>
          <p className={`live-text ${call.content ? '' : 'soft'} ${call.output && !call.content ? 'mono' : ''}`}>{(call.content || call.output || call.reasoning).slice(-TAIL)}</p>
        </div>
      ))}
      {own.length > SHOWN && <p className="soft">{t('activity.moreLive', { count: own.length - SHOWN })}</p>}
    </div>
  );
}
