import { useTranslation } from 'react-i18next';
import { setParam, useAddress } from '../../state/url';
import { Tabs } from '../../ui';
import { Board } from '../knowledge/Board';
import { Memories } from '../knowledge/Memories';
import { Skills } from '../knowledge/Skills';

/** What lasts over runs: memories and skills; and the notes of one run. */
export default function Knowledge() {
  const { t } = useTranslation();
  const { params } = useAddress();
  return (
    <div className="place">
      <h1>{t('shell.knowledge')}</h1>
      <Tabs
        label={t('shell.knowledge')}
        value={params.view || 'memories'}
        onChange={(view) => setParam('view', view === 'memories' ? '' : view)}
        tabs={[
          { value: 'memories', label: t('knowledge.memories'), content: <Memories /> },
          { value: 'skills', label: t('knowledge.skills'), content: <Skills /> },
          { value: 'notes', label: t('knowledge.notes'), content: <Board /> },
        ]}
      />
    </div>
  );
}
