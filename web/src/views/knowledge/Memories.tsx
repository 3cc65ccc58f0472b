import { useMutation } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { put, remove, seg } from '../../api/client';
import { useList } from '../../api/pages';
import { client } from '../../api/queries';
import type { Memory, VerbResult } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Button, Chip, Dialog, Empty, Loaded, Problem, Time, VirtualList } from '../../ui';
import { Entry } from '../../ui/Entry';

/** What agents remember over runs: to search, to correct and to forget. */
export function Memories() {
  const { t, i18n } = useTranslation();
  const { params } = useAddress();
  const scopeName = (scope: string) => (i18n.exists(`knowledge.scope.${scope}`) ? t(`knowledge.scope.${scope}`) : scope);
  const search = useDeferredValue(params.q ?? '');
  const scope = params.scope ?? '';
  const all = useList<Memory>('memories');
  const found = useList<Memory>('memories', { search, scope });
  const scopes = [...new Set((all.data?.items ?? []).map((memory) => memory.scope))].sort();
  const [edited, setEdited] = useState<Memory | null>(null);
  const [forgotten, setForgotten] = useState<Memory | null>(null);
  return (
    <div className="stack place-part">
      <div className="row wrap">
        <input className="field search" type="search" data-search aria-label={t('knowledge.search')} placeholder={t('knowledge.search')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
        {scopes.length > 1 &&
          scopes.map((name) => (
            <Chip key={name} isOn={scope === name} onToggle={() => setParam('scope', scope === name ? '' : name)}>
              {scopeName(name)}
            </Chip>
          ))}
      </div>
      <Loaded read={found}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title={t(search || scope ? 'knowledge.noMatch' : 'knowledge.noMemory')} text={search || scope ? undefined : t('knowledge.noMemoryText')} />
          ) : (
            <VirtualList items={items} keyOf={(memory) => memory.id} estimate={92} label={t('knowledge.memories')} footer={next && <p className="soft">{t('knowledge.cut', { count: items.length })}</p>}>
              {(memory) => (
                <article className="item">
                  <p className="item-text">{memory.text}</p>
                  <div className="row wrap soft">
                    <span>{scopeName(memory.scope)}</span>
                    {memory.tags.map((tag) => (
                      <span key={tag}>#{tag}</span>
                    ))}
                    {memory.by && <span>{t('knowledge.by', { name: memory.by })}</span>}
                    <Time at={memory.updated_at ?? memory.created_at} />
                    <span className="grow" />
                    {!memory.is_trusted && <span className="tone-wait">◐ {t('knowledge.untrusted')}</span>}
                    <Button onClick={() => setEdited(memory)}>{t('knowledge.edit')}</Button>
                    <Button look="danger" onClick={() => setForgotten(memory)}>
                      {t('knowledge.forget')}
                    </Button>
                  </div>
                </article>
              )}
            </VirtualList>
          )
        }
      </Loaded>
      {edited && <Edit memory={edited} onClose={() => setEdited(null)} />}
      {forgotten && <Forget memory={forgotten} onClose={() => setForgotten(null)} />}
    </div>
  );
}

const reload = () => void client.invalidateQueries({ queryKey: ['memories'] });

function Edit({ memory, onClose }: { memory: Memory; onClose: () => void }) {
  const { t } = useTranslation();
  const save = useMutation({
    mutationFn: (text: string) => put<VerbResult>(`/memories/${seg(memory.id)}`, { text }),
    onSuccess: () => {
      reload();
      onClose();
    },
  });
  return (
    <Dialog title={t('knowledge.edit')} onClose={onClose}>
      <Entry label={t('knowledge.editLabel')} initial={memory.text} rows={6} submit={t('knowledge.save')} isBusy={save.isPending} onBack={onClose} onSubmit={(text) => save.mutate(text)} />
      {save.error && <Problem error={save.error} />}
    </Dialog>
  );
}

function Forget({ memory, onClose }: { memory: Memory; onClose: () => void }) {
  const { t } = useTranslation();
  const forget = useMutation({
    mutationFn: () => remove<VerbResult>(`/memories/${seg(memory.id)}`),
    onSuccess: () => {
      reload();
      onClose();
    },
  });
  return (
    <Dialog title={t('knowledge.forget')} onClose={onClose}>
      <p>{t('knowledge.forgetWhat')}</p>
      <blockquote className="ask-quote">{memory.text}</blockquote>
      {forget.error && <Problem error={forget.error} />}
      <div className="actions">
        <Button onClick={onClose}>{t('ui.back')}</Button>
        <Button look="danger" isDisabled={forget.isPending} onClick={() => forget.mutate()}>
          {t('knowledge.forget')}
        </Button>
      </div>
    </Dialog>
  );
}
