import { useMutation } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { post, seg } from '../../api/client';
import { useRunList } from '../../api/pages';
import { client, useRunRead, useSession } from '../../api/queries';
import type { Agent, Message, MessageInput, Page, VerbResult } from '../../api/types';
import { forgetDrafts, useDraft } from '../../state/setting';
import { setParam, useAddress } from '../../state/url';
import { Empty, Loaded, Problem, Sentence } from '../../ui';
import { Entry } from '../../ui/Entry';
import { Sequence } from '../messages/Sequence';
import { useWhyNot } from '../agents/people';
import type { TabProps } from '..';
import '../messages/messages.css';

/** Who said what to whom, in time, and who still waits for an answer. */
export default function Messages({ run }: TabProps) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const person = useSession().data?.person ?? '';
  const messages = useRunList<Message>(run, 'messages');
  const member = params.member ?? '';
  const members = useMemo(() => [...new Set((messages.data?.items ?? []).flatMap((message) => [message.sender, ...message.receivers]))].sort(), [messages.data]);
  return (
    <div className="messages">
      <Loaded read={messages}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty title={t('messages.empty')} text={t('messages.emptyText')} />
          ) : (
            <>
              {(members.length > 3 || member) && (
                <div className="row wrap messages-head">
                  <label className="row">
                    <span className="soft">{t('messages.only')}</span>
                    <select className="field" value={member} onChange={(event) => setParam('member', event.target.value)}>
                      <option value="">{t('messages.everyone')}</option>
                      {members.map((name) => (
                        <option key={name}>{name}</option>
                      ))}
                    </select>
                  </label>
                  {page.next && <span className="soft">{t('messages.cut', { count: page.items.length })}</span>}
                </div>
              )}
              <Sequence messages={member ? page.items.filter((item) => item.sender === member || item.receivers.includes(member)) : page.items} person={person} />
            </>
          )
        }
      </Loaded>
      <Write run={run} />
    </div>
  );
}

/** A message of the person to one agent, or to all that work on the run. */
function Write({ run }: { run: string }) {
  const { t } = useTranslation();
  const whyNot = useWhyNot(run, 'send');
  const draft = `message.${run}`;
  const [to, setTo] = useDraft(`${draft}.to`, '');
  const [sent, setSent] = useState(0);
  const agents = useRunRead<Page<Agent>>(run, 'agents', { limit: 500 }).data?.items ?? [];
  const send = useMutation({
    mutationFn: (input: MessageInput) => post<VerbResult>(`/runs/${seg(run)}/messages`, input),
    onSuccess: () => {
      forgetDrafts(draft);
      setSent((count) => count + 1);
      void client.invalidateQueries({ queryKey: ['run', run, 'head'] });
    },
  });
  return (
    <section className="messages-write" aria-label={t('messages.write')}>
      <Entry key={sent} label={t('messages.write')} rows={2} isCalm draft={draft} isBusy={send.isPending} why={whyNot} submit={t('messages.send')} onSubmit={(text) => send.mutate({ text, to })}>
        <label className="row">
          <span className="soft">{t('messages.to')}</span>
          <select className="field" value={to} onChange={(event) => setTo(event.target.value)}>
            <option value="">{t('messages.all')}</option>
            {agents
              .filter((agent) => agent.kind !== 'human' && agent.state !== 'retired')
              .map((agent) => (
                <option key={agent.id}>{agent.id}</option>
              ))}
          </select>
        </label>
      </Entry>
      {send.error && <Problem error={send.error} />}
      {send.data && (
        <p role="status" className="soft">
          <Sentence text={`${send.data.message} ${send.data.hint}`} />
        </p>
      )}
    </section>
  );
}
