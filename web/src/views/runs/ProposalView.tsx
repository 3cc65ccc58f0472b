import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { PlannedPart, Proposal, Span } from '../../api/types';
import { useFormat } from '../../state/format';
import { AgentName, Sentence } from '../../ui';
import { reveal } from '../../ui/reveal';

interface Props {
  proposal: Proposal;
  text: string;
  onText: (text: string) => void;
  below: ReactNode; // what stands under the editor
  confirmsChecks: boolean;
  onConfirmsChecks: (confirms: boolean) => void;
  children: ReactNode;
}

/** A plan before it starts: what kind of work, whether a team is worth it, what it takes, who does what, its text. */
export function ProposalView({ proposal, text, onText, below, confirmsChecks, onConfirmsChecks, children }: Props) {
  const { t, i18n } = useTranslation();
  const format = useFormat();
  const span = (value: Span, show: (value: number) => string) => (show(value.low) === show(value.high) ? show(value.low) : `${show(value.low)} – ${show(value.high)}`);
  const facts = [
    [t('proposal.kind'), `${format.list(proposal.types.map((type) => (i18n.exists(`proposal.types.${type}`) ? t(`proposal.types.${type}`) : type)))} (${proposal.classified_by})`],
    [t('proposal.time'), span(proposal.seconds, (value) => format.duration(Math.round(value) * 1000))],
    [t('proposal.tokens'), span(proposal.tokens, format.compact)],
    [t('proposal.cost'), proposal.cost ? span(proposal.cost, format.money) : t('ui.unknownCost')],
    [t('proposal.model'), proposal.model],
  ] as const;
  return (
    <section className="proposal" aria-label={t('proposal.title')}>
      <p>
        <strong>
          <Sentence text={proposal.reason} />
        </strong>
      </p>
      {proposal.notes.map((note) => (
        <p key={note} className="soft">
          <Sentence text={note} />
        </p>
      ))}
      <dl className="proposal-facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt className="soft">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {proposal.parts.length > 0 && <PartGraph parts={proposal.parts} />}
      {proposal.text !== '' && (
      <details open={text !== proposal.text || undefined}>
        <summary>{t('proposal.edit')}</summary>
        <p className="soft">{t('proposal.editHelp')}</p>
        <textarea className="field plan-text" aria-label={t('proposal.text')} spellCheck={false} value={text} onChange={(event) => onText(event.target.value)} />
        {below}
      </details>
      )}
      {proposal.checks.length > 0 && (
        <fieldset className="checks">
          <legend>
            <label className="row">
              <input type="checkbox" checked={confirmsChecks} onChange={(event) => onConfirmsChecks(event.target.checked)} />
              {t('proposal.allowChecks')}
            </label>
          </legend>
          <ul>
            {proposal.checks.map((check) => (
              <li key={check} className="mono">
                {reveal(check)}
              </li>
            ))}
          </ul>
          {!confirmsChecks && <p className="tone-wait">{t('proposal.withoutChecks')}</p>}
        </fieldset>
      )}
      {children}
    </section>
  );
}

/** The parts in columns by what they need: work in one column can go on at the same time. */
function PartGraph({ parts }: { parts: PlannedPart[] }) {
  const { t } = useTranslation();
  const format = useFormat();
  const byId = new Map(parts.map((part) => [part.id, part]));
  const depths = new Map<string, number>();
  const depth = (part: PlannedPart, seen: string[] = []): number => {
    const known = depths.get(part.id);
    if (known !== undefined || seen.includes(part.id)) return known ?? 0;
    const needs = part.needs.flatMap((id) => byId.get(id) ?? []);
    const found = needs.length ? 1 + Math.max(...needs.map((need) => depth(need, [...seen, part.id]))) : 0;
    depths.set(part.id, found);
    return found;
  };
  const columns: PlannedPart[][] = [];
  for (const part of parts) (columns[depth(part)] ??= []).push(part);
  return (
    <div className="mini" role="region" aria-label={t('proposal.graph')} tabIndex={0}>
      {columns.map((column, index) => (
        <div key={index} className="mini-column">
          {column.map((part) => (
            <div key={part.id} className={`mini-node ${part.is_critical ? 'critical' : ''}`}>
              <span>{part.name}</span>
              <AgentName agent={part.agent} />
              <span className="soft">
                {t('proposal.about', { time: format.duration(Math.round(part.seconds) * 1000) })}
                {part.needs.length > 0 && ` · ${t('proposal.after', { names: format.list(part.needs.map((id) => byId.get(id)?.name ?? id)) })}`}
              </span>
            </div>
          ))}
        </div>
      ))}
    </div>
  );
}
