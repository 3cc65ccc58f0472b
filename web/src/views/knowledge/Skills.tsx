import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get, seg } from '../../api/client';
import { useList } from '../../api/pages';
import type { Skill } from '../../api/types';
import { setParam, useAddress } from '../../state/url';
import { Button, Empty, Loaded, Markdown } from '../../ui';

/** What agents know how to do, and the text that they read for it. */
export function Skills() {
  const { t } = useTranslation();
  const { params } = useAddress();
  const skills = useList<Skill>('skills');
  const words = (params.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return (
    <Loaded read={skills}>
      {({ items }) => {
        if (!items.length) return <Empty title={t('knowledge.noSkill')} text={t('knowledge.noSkillText')} />;
        const found = items.filter((skill) => words.every((word) => `${skill.name} ${skill.description}`.toLowerCase().includes(word)));
        const chosen = found.find((skill) => skill.name === params.skill);
        const shown = chosen ?? found[0];
        return (
          <div className="stack place-part">
            <input className="field search" type="search" data-search aria-label={t('knowledge.searchSkills')} placeholder={t('knowledge.searchSkills')} value={params.q ?? ''} onChange={(event) => setParam('q', event.target.value)} />
            {!shown ? (
              <Empty title={t('knowledge.noMatch')} />
            ) : (
              <div className={`sides sides-flush ${chosen ? 'has-choice' : ''}`}>
                <ul className="sides-list" aria-label={t('knowledge.skills')}>
                  {found.map((skill) => (
                    <li key={skill.name}>
                      <button type="button" className="side-row" aria-current={skill === shown || undefined} onClick={() => setParam('skill', skill.name)}>
                        <span className="cut">{skill.name}</span>
                        <span className="soft cut">{skill.description}</span>
                      </button>
                    </li>
                  ))}
                </ul>
                <One key={shown.name} skill={shown} />
              </div>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

function One({ skill }: { skill: Skill }) {
  const { t } = useTranslation();
  const read = useQuery({ queryKey: ['skills', skill.name], queryFn: ({ signal }) => get<Skill>(`/skills/${seg(skill.name)}`, {}, signal) });
  return (
    <section className="side-main" aria-label={skill.name}>
      <Button look="quiet" className="only-phone" onClick={() => setParam('skill', '')}>
        ‹ {t('knowledge.skills')}
      </Button>
      <h2>{skill.name}</h2>
      <p>{skill.description}</p>
      <p className="soft mono item-text">{skill.source}</p>
      {!skill.is_trusted && <p className="tone-wait">◐ {t('knowledge.untrustedSkill')}</p>}
      <Loaded read={read}>{(full) => <Markdown text={full.body} />}</Loaded>
    </section>
  );
}
