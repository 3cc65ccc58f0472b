// What turns the direction of a text or takes no room: it could make a call or a line look like another one.
const UNSEEN = /[\u061C\u200B-\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/g;

/** The text with what nobody can see as an escape. */
export const reveal = (text: string): string => text.replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
