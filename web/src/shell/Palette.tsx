import { useId, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRuns } from '../api/queries';
import { go, useAddress } from '../state/url';
import { Dialog, StateSign } from '../ui';
import { places, tabs } from '../views';

interface Target {
  key: string;
  label: string;
  state?: string;
  hint: string;
  act: () => void;
}

/** Go anywhere: places, tabs of this run, all runs. */
export function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const id = useId();
  const address = useAddress();
  const runs = useRuns().data?.items;
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const targets = useMemo<Target[]>(() => {
    const ofRun = address.run ? tabs.map(({ name }) => ({ key: `tab/${name}`, label: t(`tab.${name}`), hint: t('shell.thisRun'), act: () => go({ tab: name }) })) : [];
    const ofRail = places.map(({ name }) => ({ key: `place/${name}`, label: t(`shell.${name}`), hint: '', act: () => go({ place: name }) }));
    const all = (runs ?? []).map((run) => ({ key: run.id, label: run.title, state: run.state, hint: run.id, act: () => go({ run: run.id }) }));
    return [...ofRun, ...ofRail, ...all];
  }, [address.run, runs, t]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = targets.filter((target) => words.every((word) => `${target.label} ${target.hint}`.toLowerCase().includes(word))).slice(0, 50);
  const at = Math.min(chosen, found.length - 1);
  const take = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    target.act();
  };
  return (
    <Dialog title={t('shell.goAnywhere')} onClose={onClose} className="palette">
      <input
        className="field"
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
        aria-label={t('shell.goAnywhere')}
        placeholder={t('shell.goPlaceholder')}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setChosen(Math.min(at + 1, found.length - 1));
          else if (event.key === 'ArrowUp') setChosen(Math.max(at - 1, 0));
          else if (event.key === 'Enter') take(found[at]);
          else return;
          event.preventDefault();
        }}
      />
      {found.length === 0 && <p className="soft">{t('shell.nothingFound')}</p>}
      <ul role="listbox" id={id} className="palette-list" aria-label={t('shell.goAnywhere')}>
        {found.map((target, index) => (
          <li key={target.key} id={`${id}-${index}`} role="option" aria-selected={index === at} className="palette-item" onMouseMove={() => setChosen(index)} onClick={() => take(target)}>
            {target.state && <StateSign state={target.state} isShort />}
            <span className="cut grow">{target.label}</span>
            <span className="soft cut">{target.hint}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
