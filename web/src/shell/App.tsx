import { Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../api/client';
import { useInboxCount, useRuns, useSession } from '../api/queries';
import { stream, useConnection } from '../api/stream';
import { hasChosenLanguage, setLanguage } from '../i18n';
import { useFormat, useNow } from '../state/format';
import { useAddress } from '../state/url';
import { Empty, Nowhere, Skeleton } from '../ui';
import { places } from '../views';
import { RunView } from '../views/run/RunView';
import { Boundary } from './Boundary';
import { Help } from './Help';
import { Inspector } from './Inspector';
import { useKeyboard } from './keyboard';
import { Palette } from './Palette';
import { Rail } from './Rail';

export function App() {
  const { t } = useTranslation();
  const address = useAddress();
  const session = useSession();
  const connection = useConnection();
  const [overlay, setOverlay] = useState<'palette' | 'help' | null>(null);
  useKeyboard(setOverlay);
  useTitle();
  useEffect(() => stream.follow(address.run), [address.run]);
  const language = session.data?.language;
  useEffect(() => {
    if (language && !hasChosenLanguage()) void setLanguage(language, false);
  }, [language]);

  const status = session.error instanceof ProblemError ? session.error.status : 0;
  if (connection.state === 'signed-out' || status === 401 || status === 403)
    return (
      <main className="signed-out">
        <Empty title={t('shell.signedOut')} text={t('shell.signedOutText')}>
          <code>{'greenroom serve'}</code>
        </Empty>
      </main>
    );

  const View = places.find((place) => place.name === address.place)?.View;
  return (
    <div className="shell">
      <a className="skip" href="#main">
        {t('shell.skip')}
      </a>
      <Rail onPalette={() => setOverlay('palette')} onHelp={() => setOverlay('help')} />
      <div className="stage">
        <ConnectionBand />
        <div className="stage-body">
          <main id="main" className="content" tabIndex={-1}>
            <Boundary key={`${address.place}/${address.run}`}>
              <Suspense fallback={<Skeleton />}>
                {address.run ? <RunView key={address.run} run={address.run} /> : View ? <View /> : <Nowhere />}
              </Suspense>
            </Boundary>
          </main>
          {address.sel && address.run && <Inspector run={address.run} sel={address.sel} />}
        </div>
      </div>
      {overlay === 'palette' && <Palette onClose={() => setOverlay(null)} />}
      {overlay === 'help' && <Help onClose={() => setOverlay(null)} />}
    </div>
  );
}

/** The title of the tab says what one wants to know of a page in the background. */
function useTitle(): void {
  const { t } = useTranslation();
  const address = useAddress();
  const count = useInboxCount().data ?? 0;
  const run = useRuns().data?.items.find((item) => item.id === address.run);
  const place = address.run ? (run?.title ?? address.run) : places.some((item) => item.name === address.place) ? t(`shell.${address.place}`) : '';
  useEffect(() => {
    document.title = `${count ? `(${count}) ` : ''}${place ? `${place} · ` : ''}Greenroom`;
  }, [count, place]);
}

/** Says that the stream is broken, once it has been for two seconds. What was read stays. */
function ConnectionBand() {
  const { t } = useTranslation();
  const { state, lastAt } = useConnection();
  const format = useFormat();
  const isLost = state === 'lost';
  const [lostAt, setLostAt] = useState(0);
  useEffect(() => setLostAt(isLost ? Date.now() : 0), [isLost]);
  const now = useNow(isLost ? 1_000 : null);
  if (!isLost || !lostAt || now - lostAt < 2_000) return null;
  return (
    <div className="band bad" role="status">
      {t('shell.lost', { ago: format.ago(lastAt, now) })}
    </div>
  );
}
