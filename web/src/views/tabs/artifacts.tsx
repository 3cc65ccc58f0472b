import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { post, seg } from '../../api/client';
import { useRunList } from '../../api/pages';
import { client, useRun, useRunRead } from '../../api/queries';
import type { Artifact, ArtifactDetail, FileDiff, VerbResult } from '../../api/types';
import { useFormat } from '../../state/format';
import { setParam, useAddress } from '../../state/url';
import { AgentName, Button, Dialog, Empty, Loaded, Markdown, Problem, Switch, Time, VirtualList } from '../../ui';
import { DiffSwitch, DiffView } from '../../ui/diff/DiffView';
import { useOff } from '../run/past';
import type { TabProps } from '..';
import '../artifacts/artifacts.css';

const OVER = ['finished', 'failed', 'cancelled'];
const keyOf = (artifact: Artifact) => `${artifact.task}/${artifact.id}`;

/** What agents wrote down for others: each artifact with its versions. */
export default function Artifacts({ run }: TabProps) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const artifacts = useRunList<Artifact>(run, 'artifacts');
  return (
    <Loaded read={artifacts}>
      {({ items }) => {
        const chosen = items.find((item) => keyOf(item) === params.artifact);
        const shown = chosen ?? items[0];
        if (!shown) return <Empty title={t('artifacts.empty')} text={t('artifacts.emptyText')} />;
        return (
          <div className={`sides ${chosen ? 'has-choice' : ''}`}>
            <VirtualList items={items} keyOf={keyOf} estimate={52} label={t('tab.artifacts')} className="sides-list">
              {(item) => (
                <button type="button" className="side-row" aria-current={item === shown || undefined} onClick={() => setParam('artifact', keyOf(item))}>
                  <span className="cut">{item.title || item.id}</span>
                  <span className="soft cut">
                    {t('artifacts.version', { version: item.version })} · {item.by}
                  </span>
                </button>
              )}
            </VirtualList>
            <One key={keyOf(shown)} run={run} newest={shown} />
          </div>
        );
      }}
    </Loaded>
  );
}

function One({ run, newest }: { run: string; newest: Artifact }) {
  const { t } = useTranslation();
  const format = useFormat();
  const off = useOff();
  const isOver = OVER.includes(useRun(run).data?.state ?? '');
  const whyNot = off || (isOver ? t('artifacts.over') : '');
  const [version, setVersion] = useState<number | null>(null);
  const [view, setView] = useState<'text' | 'source' | 'diff'>('text');
  const [asked, setAsked] = useState<number | null>(null);
  const path = `artifacts/${seg(newest.task)}/${seg(newest.id)}`;
  const detail = useRunRead<ArtifactDetail>(run, path, version === null ? {} : { version });
  const restore = useMutation({
    mutationFn: (wanted: number) => post<VerbResult>(`/runs/${seg(run)}/${path}/restore`, { version: wanted }),
    onSuccess: () => {
      setVersion(null);
      void client.invalidateQueries({ queryKey: ['run', run, 'head'] });
    },
  });
  return (
    <section className="side-main" aria-label={newest.title || newest.id}>
      <Button look="quiet" className="only-phone" onClick={() => setParam('artifact', '')}>
        ‹ {t('artifacts.all')}
      </Button>
      <Loaded read={detail}>
        {(artifact) => (
          <>
            <div className="row wrap">
              <h2 className="grow">{artifact.title || artifact.id}</h2>
              <Switch
                label={t('artifacts.view')}
                value={view}
                onChange={setView}
                options={[
                  ...(isMarkdown(artifact) ? [{ value: 'text' as const, label: t('artifacts.text') }] : []),
                  { value: isMarkdown(artifact) ? ('source' as const) : ('text' as const), label: t('artifacts.source') },
                  { value: 'diff' as const, label: t('artifacts.diff') },
                ]}
              />
            </div>
            <p className="soft row wrap">
              <AgentName agent={artifact.by} /> <Time at={artifact.at} /> · {artifact.media_type} · {t('artifacts.size', { size: format.compact(artifact.size) })}
            </p>
            {artifact.is_untrusted && <p className="tone-wait">◐ {t('artifacts.untrusted')}</p>}
            {view === 'diff' ? <Diff run={run} path={path} versions={artifact.versions} /> : view === 'text' && isMarkdown(artifact) ? <Markdown text={artifact.text} /> : <pre className="block tall">{artifact.text}</pre>}
            <h2>{t('artifacts.versions')}</h2>
            <ol className="versions">
              {artifact.versions.map((item) => {
                const isShown = item.version === artifact.version;
                return (
                  <li key={item.version} className="row wrap version">
                    <button type="button" className="chip" aria-pressed={isShown} onClick={() => setVersion(item.version)}>
                      {t('artifacts.version', { version: item.version })}
                    </button>
                    <AgentName agent={item.by} />
                    <span className="grow">{item.reason}</span>
                    <span className="soft">
                      <Time at={item.at} />
                    </span>
                    {item.version !== newest.version && (
                      <Button isDisabled={whyNot !== ''} why={whyNot} onClick={() => setAsked(item.version)}>
                        {t('artifacts.restore')}
                      </Button>
                    )}
                  </li>
                );
              })}
            </ol>
            {restore.error && <Problem error={restore.error} />}
            {restore.data && <p role="status">{restore.data.message}</p>}
          </>
        )}
      </Loaded>
      {asked !== null && (
        <Dialog title={t('artifacts.restore')} onClose={() => setAsked(null)}>
          <p>{t('artifacts.restoreWhat', { version: asked })}</p>
          <div className="actions">
            <Button onClick={() => setAsked(null)}>{t('ui.back')}</Button>
            <Button
              look="main"
              onClick={() => {
                restore.mutate(asked);
                setAsked(null);
              }}
            >
              {t('artifacts.restore')}
            </Button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

const isMarkdown = (artifact: Artifact) => /markdown/.test(artifact.media_type);

function Diff({ run, path, versions }: { run: string; path: string; versions: Artifact[] }) {
  const { t } = useTranslation();
  const [to, setTo] = useState(versions[0]?.version ?? 1);
  const [from, setFrom] = useState(versions[1]?.version ?? to);
  const diff = useRunRead<FileDiff>(run, `${path}/diff`, { from, to }, from !== to);
  const choice = (label: string, value: number, set: (version: number) => void) => (
    <label className="row">
      <span className="soft">{label}</span>
      <select className="field" value={value} onChange={(event) => set(Number(event.target.value))}>
        {versions.map((item) => (
          <option key={item.version} value={item.version}>
            {t('artifacts.version', { version: item.version })}
          </option>
        ))}
      </select>
    </label>
  );
  if (versions.length < 2) return <Empty title={t('artifacts.oneVersion')} />;
  return (
    <div className="stack">
      <div className="row wrap">
        {choice(t('artifacts.from'), from, setFrom)}
        {choice(t('artifacts.to'), to, setTo)}
        <DiffSwitch />
      </div>
      {from === to ? <Empty title={t('diff.nothing')} /> : <Loaded read={diff}>{(file) => <DiffView text={file.text} isCut={file.is_cut} label={t('artifacts.diff')} />}</Loaded>}
    </div>
  );
}
