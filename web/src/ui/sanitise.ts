import DOMPurify from 'dompurify';
import { marked } from 'marked';

const ALLOWED = ['a', 'b', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'li', 'ol', 'p', 'pre', 's', 'strong', 'sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'];

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName !== 'A') return;
  node.setAttribute('rel', 'noopener noreferrer nofollow');
  node.setAttribute('target', '_blank');
});

export const render = (text: string): string =>
  DOMPurify.sanitize(marked.parse(text, { async: false, gfm: true }), { ALLOWED_TAGS: ALLOWED, ALLOWED_ATTR: ['href', 'start'], ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i });
