import i18next from 'i18next';
import { useSyncExternalStore } from 'react';
import { address, get, ProblemError, seg } from './client';
import { client } from './queries';
import type { EventRow, LiveText, Page, Run, RunDetail } from './types';

const FRAME_MS = 100; // how often what arrived is shown
const REFRESH_MS = 500; // how often reads of a run are made again at most
const KEPT_ROWS = 20_000;
const KEPT_TEXT = 20_000;

export interface LiveCall {
  agent: string;
  step: string;
  content: string;
  reasoning: string;
  output: string;
  since: number;
}

/** What is known of one run's events: a gapless part of the log that ends at the newest. */
export interface Feed {
  rows: EventRow[];
  live: LiveCall[];
  isReady: boolean;
  isComplete: boolean;
}

export interface Connection {
  state: 'connecting' | 'open' | 'lost' | 'signed-out';
  lastAt: number;
}

const NOTHING: Feed = { rows: [], live: [], isReady: false, isComplete: false };

/**
 * One event stream for this tab. It is opened again, after the last event it gave, whenever it breaks.
 * A browser opens few connections to one host: a tab that nobody sees, or that is kept for "back", holds none.
 */
class Stream {
  private source: EventSource | null = null;
  private isAsleep = document.hidden;
  private run = '';
  private cursor = 0;
  private feed: Feed = NOTHING;
  private connection: Connection = { state: 'connecting', lastAt: Date.now() };
  private listeners = new Set<() => void>();
  private arrived: EventRow[] = [];
  private calls = new Map<string, LiveCall>();
  private isDirty = false;
  private frame = 0;
  private refresh = 0;
  private refreshed = 0;
  private retry = 0;
  private retryMs = 1_000;
  private loading: AbortController | null = null;

  start(): void {
    document.addEventListener('visibilitychange', () => (document.hidden ? this.sleep() : this.wake()));
    window.addEventListener('pagehide', () => this.sleep());
    window.addEventListener('pageshow', () => document.hidden || this.wake());
    this.open();
  }

  /** Follow this run's events; an empty name follows the list of runs only. */
  follow(run: string): void {
    if (run !== this.run) this.begin(run);
  }

  /** Read and follow again from the start, in the language of the page. */
  begin(run = this.run): void {
    this.run = run;
    this.cursor = 0;
    this.feed = NOTHING;
    this.arrived = [];
    this.calls.clear();
    this.loading?.abort();
    this.changed();
    if (run) void this.load(run);
    else this.open();
  }

  private async load(run: string): Promise<void> {
    const abort = (this.loading = new AbortController());
    try {
      const page = await get<Page<EventRow>>(`/runs/${seg(run)}/events`, { limit: 200 }, abort.signal);
      if (run !== this.run) return;
      this.feed = { rows: page.items, live: [], isReady: true, isComplete: page.next === null };
      this.cursor = page.items.at(-1)?.version ?? 0;
      this.changed();
      this.open();
    } catch (error) {
      if (run !== this.run || abort.signal.aborted) return;
      if (error instanceof ProblemError && error.status === 404) this.begin('');
      else window.setTimeout(() => run === this.run && void this.load(run), 2_000);
    }
  }

  /** Read the page of events before the oldest that is known. */
  async loadOlder(): Promise<void> {
    const { run, feed } = this;
    const first = feed.rows[0];
    if (!first || feed.isComplete) return;
    const page = await get<Page<EventRow>>(`/runs/${seg(run)}/events`, { before: first.version, limit: 500 });
    if (run !== this.run || this.feed.rows[0] !== first) return;
    this.feed = { ...this.feed, rows: [...page.items, ...this.feed.rows], isComplete: page.next === null };
    this.changed();
  }

  private sleep(): void {
    this.isAsleep = true;
    this.source?.close();
    this.source = null;
    window.clearTimeout(this.retry);
  }

  private wake(): void {
    if (!this.isAsleep) return;
    this.isAsleep = false;
    this.changed();
    this.readAgain();
    this.open();
  }

  private readAgain(): void {
    void client.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'session' && query.queryKey[2] !== 'past' });
  }

  private open(): void {
    this.source?.close();
    window.clearTimeout(this.retry);
    if (this.isAsleep) return;
    const source = new EventSource(address('/events', { run: this.run, after: this.run ? `${this.run}:${this.cursor}` : '', language: i18next.language }));
    this.source = source;
    source.onopen = () => {
      const wasLost = this.connection.state === 'lost';
      this.retryMs = 1_000;
      this.say('open');
      if (wasLost) this.readAgain();
      else this.refreshSoon(); // what changed while no stream was open
    };
    source.onerror = () => {
      if (this.source !== source) return;
      this.say('lost');
      source.close(); // the browser would try again every few seconds for ever
      this.retryLater();
    };
    source.addEventListener('events', (message) => this.take(JSON.parse(message.data) as EventRow[]));
    source.addEventListener('live', (message) => this.hear(JSON.parse(message.data) as LiveText[]));
    source.addEventListener('runs', (message) => this.list(JSON.parse(message.data) as Run[]));
    source.addEventListener('inbox', (message) => {
      this.say('open');
      client.setQueryData(['inbox', 'count'], (JSON.parse(message.data) as { count: number }).count);
      void client.invalidateQueries({ queryKey: ['inbox', 'list'] });
    });
  }

  /** Try again, less and less often: a server that refuses says whether the person is signed out. */
  private retryLater(): void {
    window.clearTimeout(this.retry);
    if (this.isAsleep) return;
    this.retry = window.setTimeout(() => {
      get('/session').then(
        () => this.open(),
        (error: { status?: number }) => {
          if (error.status === 401 || error.status === 403) this.say('signed-out');
          this.retryLater();
        },
      );
    }, this.retryMs);
    this.retryMs = Math.min(this.retryMs * 1.6, 10_000);
  }

  private say(state: Connection['state']): void {
    const lastAt = state === 'open' ? Date.now() : this.connection.lastAt;
    if (state === this.connection.state && lastAt - this.connection.lastAt < 1_000) return;
    this.connection = { state, lastAt };
    this.changed();
  }

  private take(rows: EventRow[]): void {
    this.say('open');
    for (const row of rows) {
      if (row.run !== this.run || row.version <= this.cursor) continue;
      this.cursor = row.version;
      this.arrived.push(row);
      if (row.step && /Ended|Cancelled/.test(row.type)) this.calls.delete(row.step);
    }
    if (this.arrived.length > KEPT_ROWS) this.arrived = this.arrived.slice(-KEPT_ROWS);
    this.changed();
    this.refreshSoon();
  }

  private hear(texts: LiveText[]): void {
    this.say('open');
    for (const text of texts) {
      if (text.run !== this.run) continue;
      const key = text.step || text.agent;
      if (text.type === 'llm_complete' || text.type === 'agent_complete') {
        this.calls.delete(key);
        continue;
      }
      const call = this.calls.get(key) ?? { agent: text.agent, step: text.step, content: '', reasoning: '', output: '', since: Date.now() };
      const part = text.type === 'tool_output' ? 'output' : text.chunk === 'reasoning' ? 'reasoning' : 'content';
      this.calls.set(key, { ...call, [part]: (call[part] + text.text).slice(-KEPT_TEXT) });
    }
    this.changed();
  }

  private list(runs: Run[]): void {
    this.say('open');
    client.setQueryData<Page<Run>>(['runs'], (page) => {
      if (!page) return page;
      const changed = new Map(runs.map((run) => [run.id, run]));
      const kept = page.items.map((run) => {
        const next = changed.get(run.id);
        changed.delete(run.id);
        return next ?? run;
      });
      const items = [...changed.values(), ...kept].sort((left, right) => right.created_at - left.created_at);
      return { ...page, items };
    });
    if (runs.some((run) => run.reason)) void client.invalidateQueries({ queryKey: ['runs'] }, { cancelRefetch: false }); // its words are the server's, not the page's
    for (const run of runs) client.setQueryData<RunDetail>(['run', run.id, 'head', '', {}], (detail) => detail && { ...detail, ...run, head: run.version, at: run.version });
    if (runs.some((run) => run.id === this.run)) this.refreshSoon();
  }

  /** Read again what the page shows of the newest version, or the list of runs: not more often than the server answers. */
  private refreshSoon(): void {
    if (this.refresh || document.hidden) return;
    this.refresh = window.setTimeout(
      () => {
        this.refresh = 0;
        if (document.hidden) return;
        const queryKey = this.run ? ['run', this.run, 'head'] : ['runs'];
        if (client.isFetching({ queryKey })) return this.refreshSoon(); // it may be older than what happened
        const begun = performance.now();
        void client.invalidateQueries({ queryKey }).then(() => {
          this.refreshed = performance.now() - begun;
        });
      },
      Math.max(REFRESH_MS, 3 * this.refreshed),
    );
  }

  /** What arrives within a frame is shown at once; a hidden tab shows nothing. */
  private changed(): void {
    this.isDirty = true;
    if (this.frame || document.hidden) return;
    this.frame = window.setTimeout(() => {
      this.frame = 0;
      if (!this.isDirty) return;
      this.isDirty = false;
      const rows = this.arrived.length ? [...this.feed.rows, ...this.arrived] : this.feed.rows;
      const cut = rows.length > KEPT_ROWS;
      this.feed = {
        ...this.feed,
        rows: cut ? rows.slice(-KEPT_ROWS) : rows,
        live: [...this.calls.values()],
        isComplete: this.feed.isComplete && !cut,
      };
      this.arrived = [];
      for (const listener of this.listeners) listener();
    }, FRAME_MS);
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readFeed = () => this.feed;
  readConnection = () => this.connection;
}

export const stream = new Stream();
export const useFeed = () => useSyncExternalStore(stream.subscribe, stream.readFeed);
export const useConnection = () => useSyncExternalStore(stream.subscribe, stream.readConnection);
