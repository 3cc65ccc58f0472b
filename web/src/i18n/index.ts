import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import { setting } from '../state/setting';

export type Language = 'en' | 'zh';
const kept = setting<Language | ''>('language', '');

// One folder a language, one file a section: the first part of a key is its file.
const catalogues = { en: () => import('./en'), zh: () => import('./zh') };

async function load(language: Language): Promise<void> {
  if (!i18next.hasResourceBundle(language, 'translation')) i18next.addResourceBundle(language, 'translation', (await catalogues[language]()).default);
}

export async function setLanguage(language: Language, keep = true): Promise<void> {
  await load(language);
  if (keep) kept.set(language);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : 'en';
}

/** Begin with the language that was chosen here, else the browser's. */
export async function startLanguage(): Promise<void> {
  const first: Language = kept.read() || (navigator.language.startsWith('zh') ? 'zh' : 'en');
  await i18next.use(initReactI18next).init({ lng: first, fallbackLng: false, resources: {}, interpolation: { escapeValue: false } });
  await setLanguage(first, false);
}

/** The server's language holds where the person chose none here. */
export const hasChosenLanguage = () => kept.read() !== '';
