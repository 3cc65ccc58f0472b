import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, seg } from '../../api/client';
import type { Change, Receipt, Text } from '../../api/types';
import { useFormat } from '../../state/format';
import { useAddress } from '../../state/url';
import { Button, Dialog, Loaded, Sentence, StateSign } from '../../ui';

/** Whether the result is good, as one sentence, and what that sentence rests on. */
export function Verdict({ run, change, isShort }: { run: string; change: Change; isShort: boolean }) {
  const { t } = useTranslation();
  const [log, setLog] = useState<Receipt | null>(null);
  const isWord = !/[\s，。]/.test(change.sentence.trim()); // the verdict alone says nothing beside its sign
  const sentence = isWord ? t(change.verdict ? `changes.says.${change.verdict}` : 'changes.noVerdict') : change.sentence;
  return (
    <section className={`verdict verdict-${change.verdict ?? 'none'}`} aria-label={t('changes.verdict')}>
      <p className="verdict-line">
        {change.verdict && <StateSign state={change.verdict} />} <span>
          <Sentence text={sentence} />
        </span>
      </p>
      {isShort ? null : <Grounds change={change} onLog={setLog} />}
      {log && <Log run={run} receipt={log} onClose={() => setLog(null)} />}
    </section>
  );
}

function Grounds({ change, onLog }: { change: Change; onLog: (receipt: Receipt) => void }) {
  const { t } = useTranslation();
  return (
    <>
      {change.verdict !== null && change.reasons.length > 0 && (
        <ul className="verdict-list">
          {change.reasons.map((reason) => (
            <li key={reason}>
              <Sentence text={reason} />
            </li>
          ))}
        </ul>
      )}
      {change.verdict === 'unverified' && <p className="soft">{t('changes.unverifiedHint')}</p>}
      {change.notes.length > 0 && (
        <ul className="verdict-list soft">
          {change.notes.map((note) => (
            <li key={note}>
              <Sentence text={note} />
            </li>
          ))}
        </ul>
      )}
      {change.receipts.length > 0 && <Receipts receipts={change.receipts} onLog={onLog} />}
    </>
  );
}

const SIGN: Record<string, string> = { passed: 'verified', failed: 'failed', skipped: 'skipped' };

function Receipts({ receipts, onLog }: { receipts: Receipt[]; onLog: (receipt: Receipt) => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const name = (outcome: string) => (outcome in SIGN ? t(`changes.outcome.${outcome}`) : outcome);
  return (
    <div className="scroll-x" role="region" aria-label={t('changes.receipts')} tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{t('changes.check')}</th>
            <th scope="col">{t('changes.before')}</th>
            <th scope="col">{t('changes.after')}</th>
            <th scope="col" className="right">
              {t('changes.duration')}
            </th>
            <th scope="col">{t('changes.log')}</th>
          </tr>
        </thead>
        <tbody>
          {receipts.map((receipt) => (
            <tr key={receipt.check}>
              <th scope="row" className="mono">
                {receipt.check}
              </th>
              <td data-label={t('changes.before')}>{receipt.before ? name(receipt.before) : '–'}</td>
              <td data-label={t('changes.after')}>
                <StateSign state={SIGN[receipt.outcome] ?? 'unverified'} word={name(receipt.outcome)} />
                {receipt.passed > 0 && <span className="soft"> {t('changes.passed', { count: receipt.passed })}</span>}
                {receipt.failing.length > 0 && (
                  <span className={receipt.outcome === 'passed' ? 'failing soft' : 'failing tone-bad'}>
                    {receipt.outcome === 'passed' && t('changes.failsAsBefore', { count: receipt.failing.length })} <code>{receipt.failing.join(', ')}</code>
                  </span>
                )}
              </td>
              <td className="right num" data-label={t('changes.duration')}>{format.duration(receipt.seconds * 1000)}</td>
              <td data-label={t('changes.log')}>
                {receipt.log ? (
                  <Button aria-label={t('changes.openLog', { check: receipt.check })} onClick={() => onLog(receipt)}>
                    {t('changes.open')}
                  </Button>
                ) : (
                  '–'
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Log({ run, receipt, onClose }: { run: string; receipt: Receipt; onClose: () => void }) {
  const { t } = useTranslation();
  const { at } = useAddress();
  const log = useQuery({
    queryKey: ['run', run, at ?? 'head', 'change/log', receipt.check],
    queryFn: ({ signal }) => get<Text>(`/runs/${seg(run)}/change/log`, { check: receipt.check, at }, signal),
  });
  return (
    <Dialog title={t('changes.logOf', { check: receipt.check })} onClose={onClose} className="wide">
      <Loaded read={log}>
        {(text) => (
          <pre className="block tall" tabIndex={0} role="region" aria-label={t('changes.log')}>
            {text.text || t('changes.emptyLog')}
          </pre>
        )}
      </Loaded>
      <div className="actions">
        <Button onClick={onClose}>{t('ui.close')}</Button>
      </div>
    </Dialog>
  );
}
