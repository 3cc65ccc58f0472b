import DOMPurify from 'dompurify';
import { Marked } from 'marked';

const ALLOWED = ['a', 'b', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'li', 'ol', 'p', 'pre', 's', 'strong', 'sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'];
const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string) => text.replace(/[&<>"']/g, (char) => ESCAPES[char] as string);

// HTML in Markdown is shown as the text that it is; a picture is shown as its description.
const markdown = new Marked({ gfm: true, renderer: { html: ({ text }) => escape(text), image: ({ text }) => escape(text) } });

// A link opens elsewhere, learns nothing of this page, and says which host it leads to.
DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (!(node instanceof HTMLAnchorElement)) return;
  node.setAttribute('rel', 'noopener noreferrer nofollow');
  node.setAttribute('target', '_blank');
  const { host } = node;
  if (host && !node.textContent.includes(host)) node.append(` (${host})`);
});

export const render = (text: string): string =>
  DOMPurify.sanitize(markdown.parse(text, { async: false }), { ALLOWED_TAGS: ALLOWED, ALLOWED_ATTR: ['href', 'start'], ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i });
