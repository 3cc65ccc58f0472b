import * as Popover from '@radix-ui/react-popover';
import { useTranslation } from 'react-i18next';
import { post } from '../api/client';
import { useInboxCount, useSession } from '../api/queries';
import { setLanguage, type Language } from '../i18n';
import { applyTheme, theme } from '../state/setting';
import { link, useAddress } from '../state/url';
import { Button, Switch } from '../ui';
import { places } from '../views';

const SHAPES: Record<string, string> = {
  runs: 'M3 5h14M3 10h14M3 15h9',
  inbox: 'M3 11h4l1.5 3h3L13 11h4M3 11l2.5-7h9L17 11v5H3z',
  agents: 'M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c.6-3.4 2.8-5 6-5s5.4 1.600 6 5',
  knowledge: 'M4 4h5a2 2 0 0 1 1 1 2 2 0 0 1 1-1h5v12h-5a1 1 0 0 0-1 1 1 1 0 0 0-1-1H4zM10 5v12',
  costs: 'M3 16h14M5 16v-5M9 16V5M13 16V8M17 16v-3',
  settings: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4',
};

export function Icon({ name }: { name: string }) {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}

export function Rail({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }) {
  const { t } = useTranslation();
  const address = useAddress();
  const count = useInboxCount().data ?? 0;
  return (
    <nav className="rail" aria-label={t('shell.places')}>
      <img className="rail-mark" src="/greenroom.svg" alt="" width="26" height="26" />
      {places.map(({ name }) => (
        <a key={name} className="rail-item" {...link({ place: name })} aria-current={address.place === name ? 'page' : undefined}>
          <Icon name={name} />
          <span>{t(`shell.${name}`)}</span>
          {name === 'inbox' && count > 0 && (
            <span className="count">
              <span className="sr">{t('shell.waiting')}</span>
              {count > 99 ? '99+' : count}
            </span>
          )}
        </a>
      ))}
      <Settings onPalette={onPalette} onHelp={onHelp} />
    </nav>
  );
}

function Settings({ onPalette, onHelp }: { onPalette: () => void; onHelp: () => void }) {
  const { t, i18n } = useTranslation();
  const session = useSession().data;
  const chosen = theme.use();
  return (
    <Popover.Root>
      <Popover.Trigger className="rail-item rail-end">
        <Icon name="settings" />
        <span>{t('shell.settings')}</span>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover" aria-label={t('shell.settings')} side="right" align="end" sideOffset={8} collisionPadding={8}>
          <div className="stack">
            <div className="stack-tight">
              <h2>{t('shell.language')}</h2>
              <Switch
                label={t('shell.language')}
                value={i18n.language as Language}
                onChange={(language) => void setLanguage(language)}
                options={[
                  { value: 'en', label: 'English' },
                  { value: 'zh', label: '中文' },
                ]}
              />
            </div>
            <div className="stack-tight">
              <h2>{t('shell.theme')}</h2>
              <Switch
                label={t('shell.theme')}
                value={chosen}
                onChange={(next) => {
                  theme.set(next);
                  applyTheme();
                }}
                options={[
                  { value: 'auto', label: t('shell.themeAuto') },
                  { value: 'light', label: t('shell.themeLight') },
                  { value: 'dark', label: t('shell.themeDark') },
                ]}
              />
            </div>
            <div className="row wrap">
              <Popover.Close asChild>
                <Button onClick={onPalette}>{t('shell.goAnywhere')}</Button>
              </Popover.Close>
              <Popover.Close asChild>
                <Button onClick={onHelp}>{t('shell.keys')}</Button>
              </Popover.Close>
              <Button why={t('shell.logOutWhy')} onClick={() => void post('/logout').then(() => window.location.assign('/'))}>
                {t('shell.logOut')}
              </Button>
            </div>
            {session && (
              <dl className="facts">
                <dt>{t('shell.folder')}</dt>
                <dd className="mono">{session.folder}</dd>
                <dt>{t('shell.model')}</dt>
                <dd>{session.model || session.model_hint}</dd>
                <dt>{t('shell.sandbox')}</dt>
                <dd>{session.sandbox}</dd>
                <dt>{t('shell.you')}</dt>
                <dd>{session.person}</dd>
                <dt>{'Greenroom'}</dt>
                <dd>{session.version}</dd>
              </dl>
            )}
          </div>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
