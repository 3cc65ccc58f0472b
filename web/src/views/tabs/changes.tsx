import { useTranslation } from 'react-i18next';
import { useRun, useRunRead } from '../../api/queries';
import type { Change, Conflict, Page } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Empty, Loaded, Tabs } from '../../ui';
import { Actions } from '../changes/Actions';
import { Conflicts } from '../changes/Conflicts';
import { Files } from '../changes/Files';
import { Report } from '../changes/Report';
import { Verdict } from '../changes/Verdict';
import type { TabProps } from '..';
import '../changes/changes.css';

/** What a run changed: the verdict with its receipts first, then the files, the conflicts and the report. */
export default function Changes({ run }: TabProps) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const isTeam = useRun(run).data?.kind === 'team';
  const view = params.view === 'conflicts' || (params.view === 'report' && isTeam) ? params.view : 'files';
  const change = useRunRead<Change>(run, 'change');
  const conflicts = useRunRead<Page<Conflict>>(run, 'conflicts');
  const count = conflicts.data?.items.length ?? 0;
  const waiting = conflicts.data?.items.filter((item) => item.approval).length ?? 0;
  return (
    <Loaded read={change}>
      {(data) => (
        <div className="changes">
          <Verdict run={run} change={data} isShort={view !== 'files'} />
          {view === 'files' && <Actions run={run} change={data} />}
          <Tabs
            label={t('tab.changes')}
            value={view}
            onChange={(view) => setParam('view', view === 'files' ? '' : view)}
            tabs={[
              { value: 'files', label: t('changes.files', { count: data.files.length }), content: data.state === 'discarded' ? <Empty title={t('changes.discarded')} text={t('changes.discardedText')} /> : <Files run={run} change={data} isFresh={!change.isPlaceholderData} /> },
              {
                value: 'conflicts',
                label: (
                  <>
                    {t('changes.conflicts', { count })} {waiting > 0 && <span className="tone-wait">{t('changes.waiting', { count: waiting })}</span>}
                  </>
                ),
                content: <Loaded read={conflicts}>{(page) => <Conflicts run={run} conflicts={page.items} />}</Loaded>,
              },
              ...(isTeam ? [{ value: 'report', label: t('changes.report'), content: <Report run={run} /> }] : []),
            ]}
          />
        </div>
      )}
    </Loaded>
  );
}
