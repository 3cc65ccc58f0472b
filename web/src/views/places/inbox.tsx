import { useCallback, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import type { AnswerInput, InboxItem } from '../../api/types';
import { useKey } from '../../shell/keyboard';
import { setParam, useAddress } from '../../state/url';
import { Button, Chip, Empty, Loaded } from '../../ui';
import { answer, keyOf, MAX_ITEMS, refresh, useEntries, useInbox, type Entry } from '../inbox/inbox';
import { inWords } from '../changes/answer';
import { Card, type Send } from '../inbox/Card';
import { canNotify, isRefused, notices, turnOn } from '../inbox/notices';
import '../inbox/inbox.css';

/** What waits for a person, in all runs. */
export default function Inbox() {
  const { t } = useTranslation();
  const inbox = useInbox();
  const total = inbox.data?.total ?? inbox.data?.items.length ?? 0;
  return (
    <div className="inbox">
      <header className="row wrap inbox-head">
        <h1 className="grow">{t('shell.inbox')}</h1>
        {total > 0 && <span className="soft keys-hint">{t('inbox.keys')}</span>}
        <Notices />
      </header>
      <Loaded read={inbox}>{(page) => <Cards items={page.items} total={total} />}</Loaded>
    </div>
  );
}

function Cards({ items, total }: { items: InboxItem[]; total: number }) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const [said, setSaid] = useState<ReadonlyMap<string, string>>(new Map());
  const entries = useEntries(items, said, t('inbox.gone'));
  const [isByKey, setByKey] = useState(false); // after an answer by key, only the person opens the next
  const first = entries.find((entry) => !entry.outcome);
  const open = entries.find((entry) => entry.key === params.item) ?? (isByKey ? undefined : first);
  const chosen = open?.key ?? '';
  const list = useRef<HTMLDivElement>(null);
  const move = useCallback(
    (by: number) => {
      const index = entries.findIndex((entry) => entry.key === chosen);
      const next = index < 0 ? first : entries[Math.max(0, Math.min(entries.length - 1, index + by))];
      if (next) setParam('item', next.key);
    },
    [entries, chosen, first],
  );
  useKey('j', useCallback(() => move(1), [move]));
  useKey('k', useCallback(() => move(-1), [move]));
  useEffect(() => {
    if (params.item) list.current?.querySelector('[data-open]')?.scrollIntoView({ block: 'nearest' });
  }, [params.item]);

  const settle = (item: InboxItem, outcome: string, isKey: boolean) => {
    setByKey(isKey);
    setSaid((before) => new Map([...before, [keyOf(item), outcome]]));
    if (params.item === keyOf(item)) setParam('item', '');
  };
  const send = (entry: Entry): Send =>
    async (input: AnswerInput, isKey: boolean) => {
      try {
        const result = await answer(entry.item.run, entry.item.id, input);
        const own = [t(input.decision === 'denied' ? 'inbox.youDenied' : input.decision === 'approved' ? 'inbox.youAllowed' : 'inbox.answered'), input.text ? `“${input.text}”` : ''].filter(Boolean).join(' ');
        settle(entry.item, [result.message, result.hint].filter(Boolean).join(' ') || own, isKey);
      } catch (error) {
        if (!(error instanceof ProblemError) || error.problem.code !== 'answered_elsewhere') throw error;
        settle(entry.item, inWords(error.problem.message, t), isKey);
        refresh(entry.item.run);
      }
    };

  const waiting = entries.filter((entry) => !entry.outcome).length;
  const shown = total > MAX_ITEMS ? t('inbox.shown', { count: MAX_ITEMS, total }) : '';
  if (!entries.length) return <Empty title={t('inbox.empty')} text={t('inbox.emptyText')} />;
  return (
    <div className="inbox-list" ref={list}>
      {waiting === 0 && (
        <p className="inbox-none" role="status">
          {t('inbox.allDone')}
        </p>
      )}
      {shown && <p className="soft">{shown}</p>}
      {entries.map((entry) => (
        <Card key={entry.key} item={entry.item} outcome={entry.outcome} isOpen={entry.key === chosen} isChosen={entry.key === params.item} onOpen={() => setParam('item', entry.key)} send={send(entry)} />
      ))}
    </div>
  );
}

function Notices() {
  const { t } = useTranslation();
  const value = notices.use();
  const [isAsked, setAsked] = useState(false);
  if (!canNotify()) return null;
  if (isRefused()) return isAsked || value === 'on' ? <span className="soft">{t('inbox.noticesRefused')}</span> : null;
  if (value === 'on')
    return (
      <Chip isOn onToggle={() => notices.set('off')}>
        {t('inbox.noticesOn')}
      </Chip>
    );
  return (
    <Button
      why={t('inbox.noticesWhy')}
      onClick={() => {
        setAsked(true);
        void turnOn();
      }}
    >
      {t('inbox.noticesAsk')}
    </Button>
  );
}
