// What turns the direction of a text or takes no room: it could make a call or a line look like another one.
const UNSEEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034F\u115F\u1160\u17B4\u17B5\u180B-\u180D\u3164\uFFA0]/gu;

/** The text with what nobody can see as an escape. */
export const reveal = (text: string): string =>
  text.replace(UNSEEN, (char) => {
    const code = char.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0') ?? '';
    return code.length > 4 ? `\\u{${code}}` : `\\u${code}`;
  });
