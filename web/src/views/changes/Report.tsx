import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import { useRunRead } from '../../api/queries';
import type { Text } from '../../api/types';
import { Empty, Loaded, Markdown } from '../../ui';

/** The integration report of a team. */
export function Report({ run }: { run: string }) {
  const { t } = useTranslation();
  const report = useRunRead<Text>(run, 'report');
  const isNone = report.error instanceof ProblemError && report.error.status === 404;
  const none = <Empty title={t('changes.noReport')} text={t('changes.noReportText')} />;
  return <div className="report">{isNone ? none : <Loaded read={report}>{({ text }) => (text ? <Markdown text={text} /> : none)}</Loaded>}</div>;
}
