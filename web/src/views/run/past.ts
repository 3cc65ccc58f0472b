import { useTranslation } from 'react-i18next';
import { useAddress } from '../../state/url';

/** Why nothing can be done here now: the page shows a past version. Empty when it shows the newest. */
export function usePast(): string {
  const { t } = useTranslation();
  return useAddress().at === null ? '' : t('run.pastWhy');
}
