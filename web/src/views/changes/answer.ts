import type { TFunction } from 'i18next';

const WORDS = ['accept', 'left', 'right'];

/** A text that quotes the answer to a conflict as it was sent: with the person's choices in words. */
export function inWords(text: string, t: TFunction): string {
  return text.replace(/\{\s*"(?:choices|texts)".*(?:\}|…)/s, (answer) => {
    const choices = [...answer.matchAll(/:\s*"(accept|left|right)"/g)].map((match) => match[1] as string);
    const words = WORDS.filter((word) => choices.includes(word)).map((word) => t(`changes.answer.${word}`));
    if (/"texts"\s*:\s*\{\s*"/.test(answer)) words.push(t('changes.answer.text'));
    return words.join(', ') || t('changes.answer.other');
  });
}
