import type { ReactNode } from 'react';
import { reveal } from './reveal';

/** Data as a person reads it: a name and its value a line. A text that holds data is read as the data that it is. */
export function Data({ value }: { value: unknown }): ReactNode {
  if (value === null || value === undefined || isEmpty(value)) return <span className="soft">–</span>;
  if (typeof value === 'string') return <Words text={value} />;
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object' && String(item).length < 60)) return reveal(value.join(', '));
  return (
    <dl className={Array.isArray(value) ? 'data data-list' : 'data'}>
      {Object.entries(value).map(([name, item]) => (
        <div key={name}>
          <dt>{Array.isArray(value) ? Number(name) + 1 : reveal(name)}</dt>
          <dd>
            <Data value={item} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const isEmpty = (value: unknown) => value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);

/** The data that a line holds after at most one name, as a call of a tool does. */
function read(line: string): { name: string; value: object } | null {
  const [, name = '', data] = /^([\w.-]+ )?([{[][^]*[}\]])\s*$/.exec(line) ?? [];
  try {
    const value: unknown = data && JSON.parse(data);
    return typeof value === 'object' && value !== null ? { name, value } : null;
  } catch {
    return null;
  }
}

function Words({ text }: { text: string }) {
  const whole = read(text);
  const parts = whole ? [whole] : text.split('\n').reduce<(string | { name: string; value: object })[]>((before, line) => {
    const data = read(line);
    const last = before.at(-1);
    if (data) before.push(data);
    else if (typeof last === 'string') before[before.length - 1] = `${last}\n${line}`;
    else before.push(line);
    return before;
  }, []);
  return parts.map((part, index) =>
    typeof part === 'string' ? (
      part && <pre key={index}>{reveal(part)}</pre>
    ) : (
      <div key={index}>
        {part.name && <b className="mono">{part.name}</b>}
        <Data value={part.value} />
      </div>
    ),
  );
}
