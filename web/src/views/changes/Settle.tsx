import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemError } from '../../api/client';
import type { Conflict } from '../../api/types';
import { Button, Problem } from '../../ui';
import { Entry } from '../../ui/Entry';
import { answer, refresh } from '../inbox/inbox';
import { inWords } from './answer';
import { useOff } from '../run/past';

type Choice = { word: 'accept' | 'left' | 'right' } | { text: string };
export type Choices = ReadonlyMap<string, Choice>; // by path

/** Decide what becomes of the files of one request. The answer goes out once each of them has a choice. */
export function Settle({ run, conflicts, shown, choices, onChoices, onSaid }: { run: string; conflicts: Conflict[]; shown: Conflict; choices: Choices; onChoices: (choices: Choices) => void; onSaid: (text: string) => void }) {
  const { t } = useTranslation();
  const past = useOff();
  const [mode, setMode] = useState<'' | 'text' | 'back' | 'drop'>('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const open = conflicts.filter((item) => item.state !== 'resolved');
  const send = (text: string) => {
    setBusy(true);
    setError(null);
    answer(run, shown.approval, { text })
      .then((result) => onSaid([result.message, result.hint].filter(Boolean).join(' ')))
      .catch((problem: unknown) => {
        if (problem instanceof ProblemError && problem.problem.code === 'answered_elsewhere') {
          onSaid(inWords(problem.problem.message, t));
          refresh(run);
        } else setError(problem);
      })
      .finally(() => setBusy(false));
  };
  const choose = (choice: Choice) => {
    const next = new Map([...choices, [shown.path, choice]]);
    const isWhole = open.every((item) => next.has(item.path));
    onChoices(next);
    if (!isWhole || 'word' in choice) setMode(''); // a text that is refused stays to be mended
    if (isWhole) send(settlement(next));
  };
  const missing = open.filter((item) => !choices.has(item.path)).map((item) => item.path);
  const isOff = past !== '' || isBusy;
  const button = (word: 'accept' | 'left' | 'right', label: string, look?: 'main') => (
    <Button look={look} isDisabled={isOff} why={past} aria-pressed={isWord(choices.get(shown.path), word)} onClick={() => choose({ word })}>
      {label}
    </Button>
  );
  return (
    <div className="stack settle" role="group" aria-label={t('changes.settle')}>
      {mode === 'text' && (
        <Entry label={t('changes.ownLabel')} initial={shown.result || shown.left} rows={14} submit={t('changes.ownSend')} isBusy={isOff} isMono isOptional onBack={() => setMode('')} onSubmit={(text) => choose({ text })} />
      )}
      {mode === 'back' && <Entry label={t('changes.backLabel')} submit={t('changes.backSend')} isBusy={isOff} isOptional onBack={() => setMode('')} onSubmit={(text) => send(`back ${text}`.trim())} />}
      {mode === 'drop' && (
        <div className="ask-actions">
          <span>{t('changes.dropWhat', { name: shown.right_subtask })}</span>
          <Button look="danger" isDisabled={isOff} onClick={() => send('drop')}>
            {t('changes.drop')}
          </Button>
          <Button onClick={() => setMode('')}>{t('ui.back')}</Button>
        </div>
      )}
      {mode === '' && (
        <div className="ask-actions">
          {shown.result && button('accept', t('changes.accept'), 'main')}
          {button('left', t('changes.takeLeft', { name: shown.left_subtask }))}
          {button('right', t('changes.takeRight', { name: shown.right_subtask }))}
          <Button isDisabled={isOff} why={past} onClick={() => setMode('text')}>
            {t('changes.own')}
          </Button>
          <Button isDisabled={isOff} why={past || t('changes.backWhy', { name: shown.right_subtask })} onClick={() => setMode('back')}>
            {t('changes.back')}
          </Button>
          <Button look="danger" isDisabled={isOff} why={past} onClick={() => setMode('drop')}>
            {t('changes.drop')}…
          </Button>
        </div>
      )}
      {choices.size > 0 && missing.length > 0 && (
        <p role="status">
          {t('changes.decideToo')} <code>{missing.join(', ')}</code>
        </p>
      )}
      {error !== null && <Problem error={error} />}
    </div>
  );
}

const isWord = (choice: Choice | undefined, word: string) => choice !== undefined && 'word' in choice && choice.word === word;

/** The answer for all files: a word or a whole text for each. */
function settlement(chosen: Choices): string {
  const choices: Record<string, string> = {};
  const texts: Record<string, string> = {};
  for (const [path, choice] of chosen) {
    if ('word' in choice) choices[path] = choice.word;
    else texts[path] = choice.text;
  }
  return JSON.stringify({ choices, texts });
}
