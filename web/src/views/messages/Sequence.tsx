import { useMemo, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import type { Message } from '../../api/types';
import { useFormat } from '../../state/format';
import { select, useAddress } from '../../state/url';
import { AgentName, agentClass, VirtualList } from '../../ui';
import { layOut, type Row } from './lanes';

const LANE = 150; // the least width of a lane

/** A lane for each member, arrows in time, and a dashed bar from a question to its answer. */
export function Sequence({ messages, person }: { messages: Message[]; person: string }) {
  const { t } = useTranslation();
  const { sel } = useAddress();
  const diagram = useMemo(() => layOut(messages, person), [messages, person]);
  const scroller = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const width = `max(100%, ${diagram.lanes.length * LANE + 66}px)`;
  return (
    <div className="sequence">
      <div className="sequence-lanes" ref={head}>
        <div className="sequence-head" style={{ width }}>
          <span />
          <div className="lanes">
            {diagram.lanes.map((lane) => (
              <div key={lane} className="lane-name" title={lane}>
                <AgentName agent={lane} />
              </div>
            ))}
          </div>
        </div>
      </div>
      {diagram.hidden > 0 && <p className="soft messages-head">{t('messages.hidden', { count: diagram.hidden })}</p>}
      <div className="sequence-body" onScrollCapture={() => head.current && scroller.current && (head.current.scrollLeft = scroller.current.scrollLeft)}>
        <VirtualList items={diagram.rows} keyOf={(row) => row.message.id} estimate={46} label={t('tab.messages')} scroller={scroller} follows>
          {(row) => <Line row={row} lanes={diagram.lanes.length} width={width} isOn={sel === `message:${row.message.id}`} />}
        </VirtualList>
      </div>
    </div>
  );
}

function Line({ row, lanes, width, isOn }: { row: Row; lanes: number; width: string; isOn: boolean }) {
  const { t } = useTranslation();
  const format = useFormat();
  const { message, from, to } = row;
  const centre = (lane: number) => ((lane + 0.5) / lanes) * 100;
  const ends = [from, ...to].filter((lane) => lane >= 0);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const isRight = centre(low) > 60;
  const who = t('messages.fromTo', { from: message.sender, to: message.receivers.length > 3 ? t('messages.members', { count: message.receivers.length }) : format.list(message.receivers) });
  const isWaiting = message.waits && message.answered_at === null;
  return (
    <button
      type="button"
      className={`message-row ${isOn ? 'is-on' : ''} ${agentClass(message.sender)}`}
      style={{ width }}
      onClick={() => select(`message:${message.id}`)}
    >
      <span className="num soft message-time">{format.clock(message.sent_at)}</span>
      <span className="message-flat">
        <i className="dot" /> <b>{who}</b> {isWaiting && <span className="tone-wait">◐ {t('messages.waits')}</span>}
      </span>
      <span className="only-phone message-whole">{message.text.slice(0, 300)}</span>
      <span className="lanes" aria-hidden="true">
        {Array.from({ length: lanes }, (_, lane) => (
          <span key={lane} className="lane" />
        ))}
        {row.waits.map((wait) => (
          <span key={wait.lane} className={`wait-bar ${wait.begins ? 'begins' : ''} ${wait.ends ? 'ends' : ''}`} style={{ left: `${centre(wait.lane)}%` }} />
        ))}
        {ends.length > 0 && low !== high && <span className="arrow" style={{ left: `${centre(low)}%`, right: `${100 - centre(high)}%` }} />}
        {from >= 0 && <span className="arrow-start" style={{ left: `${centre(from)}%` }} />}
        {to.map((lane) => (
          <span key={lane} className={`arrow-head ${lane > from ? 'to-right' : 'to-left'}`} style={{ left: `${centre(lane)}%` }} />
        ))}
        <span className={`message-text ${isRight ? 'at-right' : ''}`} style={isRight ? { right: `calc(${100 - centre(high)}% + 10px)` } : { left: `calc(${centre(low)}% + 10px)` }}>
          {isWaiting && <b className="tone-wait">◐ {t('messages.waits')} </b>}
          {message.need_reply && !message.waits && <b className="soft">? </b>}
          {message.text.split('\n')[0]}
        </span>
      </span>
    </button>
  );
}
