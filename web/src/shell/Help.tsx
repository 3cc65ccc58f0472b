import { useTranslation } from 'react-i18next';
import { Button, Dialog } from '../ui';

const KEYS = [
  ['⌘K', 'palette'],
  ['1 … 9', 'tabs'],
  ['/', 'search'],
  ['Esc', 'close'],
  ['J K', 'move'],
  ['← →', 'event'],
  ['L', 'live'],
  ['F', 'fit'],
  ['A D', 'answer'],
  ['?', 'help'],
] as const;

export function Help({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog title={t('shell.keys')} onClose={onClose}>
      <dl className="facts">
        {KEYS.map(([key, name]) => (
          <div key={name} className="contents">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{t(`key.${name}`)}</dd>
          </div>
        ))}
      </dl>
      <div className="actions">
        <Button onClick={onClose}>{t('ui.close')}</Button>
      </div>
    </Dialog>
  );
}
