import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRunRead } from '../../api/queries';
import type { BlameLine, Change, ChangedFile, FileDiff, Page, Plan } from '../../api/types';
import { select, setParam, useAddress } from '../../state/url';
import { AgentName, agentClass, Button, Empty, Loaded, VirtualList } from '../../ui';
import { DiffSwitch, DiffView } from '../../ui/diff/DiffView';

/** The files of a change, tests and checks first, and the diff of the chosen one. */
export function Files({ run, change, isFresh }: { run: string; change: Change; isFresh: boolean }) {
  const { t } = useTranslation();
  const { params } = useAddress();
  const rows = useMemo(() => listRows(change.files), [change.files]);
  const first = rows.find((row) => row.file)?.file;
  const chosen = change.files.find((file) => file.path === params.file);
  const shown = chosen ?? first;
  const agents = useMemo(() => [...new Set(change.files.flatMap((file) => file.agents))], [change.files]);
  if (!shown) return <Empty title={t(`changes.none.${change.state === 'none' || change.state === 'open' ? 'yet' : 'atAll'}`)} text={t('changes.noneText')} />;
  return (
    <div className={`files ${chosen ? 'has-file' : ''}`}>
      <div className="files-list">
        <VirtualList items={rows} keyOf={(row) => row.key} estimate={28} label={t('changes.fileList')}>
          {(row) => (row.file ? <FileRow file={row.file} name={row.name} isOn={row.file === shown} /> : <h2 className="files-group">{row.name || t(`changes.group.${row.group}`)}</h2>)}
        </VirtualList>
      </div>
      <section className="files-diff" aria-label={shown.path}>
        <div className="row wrap files-head">
          <Button look="quiet" className="only-phone" onClick={() => setParam('file', '')}>
            ‹ {t('changes.allFiles')}
          </Button>
          <h2 className="mono grow files-path">{shown.before && shown.before !== shown.path ? `${shown.before} → ${shown.path}` : shown.path}</h2>
          <div className="row wrap">
            {agents.length > 1 && shown.agents.map((agent) => <AgentName key={agent} agent={agent} />)}
            <DiffSwitch />
          </div>
        </div>
        {shown.is_binary ? <Empty title={t('changes.binary')} /> : <OneFile key={shown.path} run={run} path={shown.path} isFresh={isFresh} />}
      </section>
    </div>
  );
}

interface Row {
  key: string;
  group: 'tests' | 'rest' | '';
  name: string;
  file?: ChangedFile;
}

/** Tests and check files first, then the others by folder. */
function listRows(files: ChangedFile[]): Row[] {
  const folderOf = (file: ChangedFile) => file.path.slice(0, file.path.lastIndexOf('/') + 1);
  const sorted = [...files].sort((left, right) => folderOf(left).localeCompare(folderOf(right)) || left.path.localeCompare(right.path));
  const tests = sorted.filter((file) => file.is_test);
  const rest = sorted.filter((file) => !file.is_test);
  const rows: Row[] = [];
  if (tests.length) rows.push({ key: 'tests', group: 'tests', name: '' }, ...tests.map((file) => ({ key: file.path, group: '' as const, name: file.path, file })));
  if (rest.length && tests.length) rows.push({ key: 'rest', group: 'rest', name: '' });
  let folder = '';
  for (const file of rest) {
    const here = folderOf(file);
    if (here !== folder && here) rows.push({ key: `folder:${here}`, group: '', name: here });
    folder = here;
    rows.push({ key: file.path, group: '', name: file.path.slice(here.length), file });
  }
  return rows;
}

const KINDS: Record<string, string> = { added: 'A', deleted: 'D', renamed: 'R', copied: 'C' };

function FileRow({ file, name, isOn }: { file: ChangedFile; name: string; isOn: boolean }) {
  const { t } = useTranslation();
  const letter = KINDS[file.kind] ?? 'M';
  return (
    <button type="button" className="file-row" aria-current={isOn || undefined} title={file.path} onClick={() => setParam('file', file.path)}>
      <abbr className={`mono file-kind-${letter}`} title={letter === 'M' ? t('changes.kind.modified') : t(`changes.kind.${file.kind}`)}>
        {letter}
      </abbr>
      <span className="cut mono file-name">{name}</span>
      <span className="file-agents">
        {file.agents.slice(0, 4).map((agent) => (
          <i key={agent} className={`dot ${agentClass(agent)}`} title={agent} />
        ))}
      </span>
      <span className="num file-count">
        <span className="tone-good">+{file.added}</span> <span className="tone-bad">−{file.removed}</span>
      </span>
    </button>
  );
}

/** A file of another version may not be there in this one: it is read once the list is fresh. */
function OneFile({ run, path, isFresh }: { run: string; path: string; isFresh: boolean }) {
  const { t } = useTranslation();
  const diff = useRunRead<FileDiff>(run, 'change/file', { path }, isFresh);
  const blame = useRunRead<Page<BlameLine>>(run, 'change/blame', { path, limit: 500 }, isFresh);
  const [line, setLine] = useState<number | null>(null);
  const written = useMemo(() => new Map((blame.data?.items ?? []).map((item) => [item.line, item])), [blame.data]);
  return (
    <Loaded read={diff}>
      {(file) => (
        <DiffView
          text={file.text}
          isCut={file.is_cut}
          label={t('changes.diffOf', { path })}
          className="diff-tall"
          agentOf={(at) => written.get(at)?.agent ?? ''}
          onLine={(at) => setLine(at === line ? null : at)}
          openLine={line}
          detail={line !== null && <Blame run={run} line={line} known={written.get(line)} isKnown={blame.data !== undefined} />}
        />
      )}
    </Loaded>
  );
}

function Blame({ run, line, known, isKnown }: { run: string; line: number; known: BlameLine | undefined; isKnown: boolean }) {
  const { t } = useTranslation();
  const plan = useRunRead<Plan>(run, 'plan', {}, Boolean(known?.subtask)).data;
  const name = plan?.stages.flatMap((stage) => stage.subtasks).find((subtask) => subtask.id === known?.subtask)?.title;
  if (!known?.agent) return <p className="blame soft">{t(isKnown ? 'changes.notByRun' : 'ui.loading', { line })}</p>;
  return (
    <div className="blame">
      <AgentName agent={known.agent} />
      {known.subtask && <span className="soft">{name}</span>}
      <span className="grow">{known.message}</span>
      <code className="soft">{known.commit.slice(0, 10)}</code>
      {known.step && <Button onClick={() => select(`step:${known.step}`)}>{t('changes.openStep')}</Button>}
    </div>
  );
}
