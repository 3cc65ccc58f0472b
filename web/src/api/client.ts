import i18next from 'i18next';
import { hasChosenLanguage } from '../i18n';
import type { Problem } from './types';

/** A refused or failed request: what, why, what to do. Status 0 means that the server did not answer. */
export class ProblemError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

export type Params = Record<string, string | number | boolean | string[] | null | undefined>;

export function address(path: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === '') continue;
    for (const item of Array.isArray(value) ? value : [value]) search.append(name, String(item));
  }
  const text = search.toString();
  return `/api${path}${text ? `?${text}` : ''}`;
}

/** The language in which the server answers: the page's. Before a person chose one, the session says which it is. */
const speak = (url: string): Record<string, string> => (url === address('/session') && !hasChosenLanguage() ? {} : { 'accept-language': i18next.language });

async function send<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      signal,
      credentials: 'same-origin',
      headers: { accept: 'application/json', ...speak(url), ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
      body: method === 'GET' ? undefined : JSON.stringify(body ?? {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ProblemError(0, { code: 'unreachable', message: '', hint: '' });
  }
  const text = await response.text();
  const value: unknown = text ? safeParse(text) : null;
  if (response.ok) return value as T;
  const problem = value as Partial<Problem> | null;
  throw new ProblemError(response.status, {
    code: problem?.code ?? String(response.status),
    message: problem?.message ?? '',
    hint: problem?.hint ?? '',
  });
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const get = <T>(path: string, params?: Params, signal?: AbortSignal) => send<T>('GET', address(path, params), undefined, signal);
export const post = <T>(path: string, body?: unknown) => send<T>('POST', address(path), body);
export const put = <T>(path: string, body?: unknown) => send<T>('PUT', address(path), body);
export const remove = <T>(path: string) => send<T>('DELETE', address(path));

/** One segment of a path: ids hold `#` and `/`. */
export const seg = encodeURIComponent;
