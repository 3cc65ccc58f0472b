import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, seg } from '../../api/client';
import { useRuns } from '../../api/queries';
import type { Page, SharedNote } from '../../api/types';
import { link, setParam, useAddress } from '../../state/url';
import { AgentName, Empty, Loaded, Markdown, Time } from '../../ui';

/** The notes that the agents of one run share. */
export function Board() {
  const { t } = useTranslation();
  const { params } = useAddress();
  const runs = useRuns();
  const items = runs.data?.items ?? [];
  const run = items.some((item) => item.id === params.run) ? (params.run ?? '') : (items[0]?.id ?? '');
  const notes = useQuery({ queryKey: ['run', run, 'head', 'board', {}], queryFn: ({ signal }) => get<Page<SharedNote>>(`/runs/${seg(run)}/board`, { limit: 500 }, signal), enabled: run !== '' });
  if (runs.data && !run) return <Empty title={t('knowledge.noRun')} text={t('knowledge.noRunText')} />;
  return (
    <div className="stack place-part">
      <div className="row wrap">
        <label className="row">
          <span className="soft">{t('knowledge.ofRun')}</span>
          <select className="field" value={run} onChange={(event) => setParam('run', event.target.value)}>
            {items.map((item) => (
              <option key={item.id} value={item.id}>
                {item.title.slice(0, 80)}
              </option>
            ))}
          </select>
        </label>
        <a {...link({ run })}>{t('knowledge.openRun')}</a>
      </div>
      <Loaded read={notes}>
        {(page) =>
          page.items.length === 0 ? (
            <Empty title={t('knowledge.noNote')} text={t('knowledge.noNoteText')} />
          ) : (
            <ul className="cards">
              {page.items.map((note) => (
                <li key={note.key} className="item">
                  <div className="row wrap">
                    <code>{note.key}</code>
                    <AgentName agent={note.agent} />
                    {note.at !== null && (
                      <span className="soft">
                        <Time at={note.at} />
                      </span>
                    )}
                  </div>
                  <Markdown text={note.text} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </div>
  );
}
