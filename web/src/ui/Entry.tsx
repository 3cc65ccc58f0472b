import { type FormEvent, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { useDraft } from '../state/setting';
import { Button } from '.';

interface EntryProps {
  label: string;
  submit: string;
  initial?: string;
  rows?: number;
  isBusy?: boolean;
  isOptional?: boolean; // may be sent empty
  isDanger?: boolean;
  isMono?: boolean;
  isCalm?: boolean; // does not take the focus by itself
  draft?: string; // under which name it is kept until it is sent
  why?: string; // why nothing can be sent now
  onBack?: () => void;
  onSubmit: (text: string) => void;
  children?: ReactNode;
}

/** A text to write and to send, with Ctrl Enter too. */
export function Entry({ label, submit, initial = '', rows = 3, isBusy, isOptional, isDanger, isMono, isCalm, draft = '', why, onBack, onSubmit, children }: EntryProps) {
  const { t } = useTranslation();
  const [text, setText] = useDraft(draft, initial);
  const isReady = (isOptional || text.trim() !== '') && !isBusy && !why;
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (isReady) onSubmit(isMono ? text : text.trim());
  };
  return (
    <form className="stack-tight" onSubmit={send}>
      <label className="stack-tight">
        <span>{label}</span>
        <textarea
          className={`field ${isMono ? 'mono' : ''}`}
          rows={rows}
          autoFocus={!isCalm}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) send();
            if (event.key === 'Escape') onBack?.();
          }}
        />
      </label>
      <div className="ask-actions">
        <Button type="submit" look={isDanger ? 'danger' : 'main'} isDisabled={!isReady} why={why || (isReady || isBusy ? undefined : t('ui.writeFirst'))}>
          {submit}
        </Button>
        {onBack && <Button onClick={onBack}>{t('ui.back')}</Button>}
        {children}
      </div>
    </form>
  );
}
