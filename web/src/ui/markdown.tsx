import { useEffect, useState } from 'react';

/** Markdown of a model or a person, sanitised: no scripts, no styles, no forms, no pictures from elsewhere. */
export function Markdown({ text }: { text: string }) {
  const [html, setHtml] = useState<string | null>(null);
  useEffect(() => {
    let isStale = false;
    void import('./sanitise').then(({ render }) => isStale || setHtml(render(text)));
    return () => {
      isStale = true;
    };
  }, [text]);
  if (html === null) return <pre className="markdown">{text}</pre>;
  return <div className="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}
