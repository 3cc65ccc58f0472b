import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import { useRun, useRunRead } from '../../api/queries';
import type { Text } from '../../api/types';
import { Empty, Loaded, Markdown } from '../../ui';

/** What the agents say about the run, and for a team the integration report. */
export function Report({ run }: { run: string }) {
  const { t } = useTranslation();
  const detail = useRun(run);
  const report = useRunRead<Text>(run, 'report');
  const isNone = report.error instanceof ProblemError && report.error.status === 404;
  const words = detail.data?.answer ?? '';
  const text = report.data?.text ?? '';
  return (
    <div className="report">
      {words && (
        <section className="stack-tight">
          <h2>{t('changes.answer')}</h2>
          <Markdown text={words} />
        </section>
      )}
      {isNone || report.data ? text && <Markdown text={text} /> : <Loaded read={report}>{() => null}</Loaded>}
      {!words && !text && (isNone || report.data) && <Empty title={t('changes.noReport')} text={t('changes.noReportText')} />}
    </div>
  );
}
