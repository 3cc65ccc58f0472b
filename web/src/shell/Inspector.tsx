import { Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { go } from '../state/url';
import { Button, Skeleton } from '../ui';
import { inspectors } from '../views';
import { Boundary } from './Boundary';

/** What is known of the selection: a panel beside the tab, a sheet on a phone. Esc closes it. */
export function Inspector({ run, sel }: { run: string; sel: string }) {
  const { t } = useTranslation();
  const [kind = '', ...rest] = sel.split(':');
  const id = rest.join(':');
  const View = inspectors.get(kind);
  if (!View || !id) return null;
  return (
    <aside className="inspector" aria-label={t('shell.inspector')}>
      <Button look="quiet" className="inspector-close" aria-label={t('ui.close')} onClick={() => go({ sel: '' })}>
        ✕
      </Button>
      <Boundary key={sel}>
        <Suspense fallback={<Skeleton />}>
          <View run={run} id={id} />
        </Suspense>
      </Boundary>
    </aside>
  );
}
