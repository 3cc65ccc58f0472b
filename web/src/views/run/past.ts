import { useTranslation } from 'react-i18next';
import { useConnection } from '../../api/stream';
import { useAddress } from '../../state/url';

/** Why nothing can be done here now: the page shows a past version. Empty when it shows the newest. */
export function usePast(): string {
  const { t } = useTranslation();
  return useAddress().at === null ? '' : t('run.pastWhy');
}

/** Why nothing can be done here now: a past version, or a server that is away. */
export function useOff(): string {
  const { t } = useTranslation();
  const past = usePast();
  const { state } = useConnection();
  return past || (state === 'lost' ? t('ui.unreachable') : '');
}
