import { useTranslation } from 'react-i18next';
import { createContext, useContext, useEffect, useState } from 'react';

/** Numbers, money, times and durations in the person's language. */
export interface Format {
  number(value: number): string;
  compact(value: number): string;
  money(value: number | null): string;
  exactly(value: number): string; // money on a scale, where each step counts
  clock(at: number): string;
  absolute(at: number): string;
  ago(at: number, now: number): string;
  duration(ms: number): string;
  list(values: string[]): string;
}

const made = new Map<string, Format>();

function make(language: string): Format {
  const number = new Intl.NumberFormat(language);
  const compact = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 });
  const money = (digits: number) => new Intl.NumberFormat(language, { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: digits, maximumFractionDigits: digits });
  const [cents, fine] = [money(2), money(4)];
  const clock = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
  const absolute = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });
  const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  const list = new Intl.ListFormat(language, { type: 'conjunction' });
  return {
    number: (value) => number.format(value),
    compact: (value) => compact.format(value),
    money: (value) => (value === null ? '—' : value > 0 && value < 0.01 ? `< ${cents.format(0.01)}` : cents.format(value)),
    exactly: (value) => (value > 0 && value < 0.1 ? fine : cents).format(value),
    clock: (at) => clock.format(at),
    absolute: (at) => absolute.format(at),
    ago: (at, now) => {
      const seconds = Math.round((at - now) / 1000);
      const size = Math.abs(seconds);
      if (size < 60) return relative.format(seconds, 'second');
      if (size < 3_600) return relative.format(Math.round(seconds / 60), 'minute');
      if (size < 86_400) return relative.format(Math.round(seconds / 3_600), 'hour');
      return relative.format(Math.round(seconds / 86_400), 'day');
    },
    duration: (ms) => {
      const seconds = Math.max(0, ms / 1000);
      if (seconds < 10) return `${number.format(Math.round(seconds * 10) / 10)} s`;
      const whole = Math.round(seconds);
      const two = (value: number) => String(value).padStart(2, '0');
      if (whole < 60) return `${whole} s`;
      return whole < 3_600 ? `${Math.floor(whole / 60)}:${two(whole % 60)}` : `${Math.floor(whole / 3_600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
    },
    list: (values) => list.format(values),
  };
}

export function useFormat(): Format {
  const { i18n } = useTranslation();
  let format = made.get(i18n.language);
  if (!format) made.set(i18n.language, (format = make(i18n.language)));
  return format;
}

/** The time now, renewed every so many milliseconds while the tab is seen. Null renews never. */
export function useNow(everyMs: number | null = 1_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (everyMs === null) return;
    const timer = window.setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** The time at which the shown state was true: null while it is now. */
export const MomentContext = createContext<number | null>(null);

/** The end of what still goes on: now, or the time of the version that is shown. */
export function useEnd(isOpen: boolean): number {
  const moment = useContext(MomentContext);
  const now = useNow(isOpen && moment === null ? 1_000 : null);
  return moment ?? now;
}
