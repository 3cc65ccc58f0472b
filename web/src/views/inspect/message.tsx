import { useTranslation } from 'react-i18next';
import { useRunList } from '../../api/pages';
import type { Message } from '../../api/types';
import { select } from '../../state/url';
import { AgentName, Button, Empty, Loaded, Markdown, Time } from '../../ui';
import { withBreaks } from '../messages/lanes';
import type { InspectProps } from '..';

/** A message with its whole text, what it answers and what answered it. */
export default function MessageInspector({ run, id }: InspectProps) {
  const { t } = useTranslation();
  const messages = useRunList<Message>(run, 'messages');
  return (
    <Loaded read={messages}>
      {({ items }) => {
        const message = items.find((item) => item.id === id);
        if (!message) return <Empty title={t('messages.unknown')} />;
        const answer = items.find((item) => item.answers === id);
        const question = items.find((item) => item.id === message.answers);
        return (
          <div className="stack">
            <h2>{t('messages.title')}</h2>
            <dl className="facts">
              <dt>{t('messages.from')}</dt>
              <dd>
                <AgentName agent={message.sender} />
              </dd>
              <dt>{t('messages.to')}</dt>
              <dd className="row wrap">
                {message.receivers.slice(0, 20).map((receiver) => (
                  <AgentName key={receiver} agent={receiver} />
                ))}
                {message.receivers.length > 20 && t('messages.members', { count: message.receivers.length })}
              </dd>
              <dt>{t('messages.sent')}</dt>
              <dd>
                <Time at={message.sent_at} />
              </dd>
              {message.waits && (
                <>
                  <dt>{t('messages.answer')}</dt>
                  <dd>{message.answered_at === null ? <span className="tone-wait">◐ {t('messages.waits')}</span> : <Time at={message.answered_at} />}</dd>
                </>
              )}
            </dl>
            <Markdown text={withBreaks(message.text)} />
            <div className="row wrap">
              {question && <Button onClick={() => select(`message:${question.id}`)}>{t('messages.openQuestion')}</Button>}
              {answer && <Button onClick={() => select(`message:${answer.id}`)}>{t('messages.openAnswer')}</Button>}
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}
