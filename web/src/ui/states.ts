/** The sign and tone of every state. The word comes from the catalogue: `state.NAME`. */
export type Tone = 'good' | 'bad' | 'wait' | 'run' | 'soft';

const SIGNS: Record<string, readonly [string, Tone]> = {
  init: ['○', 'soft'],
  queued: ['○', 'soft'],
  idle: ['○', 'soft'],
  running: ['●', 'run'],
  working: ['●', 'run'],
  waiting: ['◐', 'wait'],
  limit: ['◐', 'wait'],
  provider: ['◐', 'wait'],
  paused: ['‖', 'wait'],
  stopped: ['‖', 'wait'],
  finished: ['✓', 'good'],
  verified: ['✓', 'good'],
  unverified: ['?', 'wait'],
  failed: ['✗', 'bad'],
  damaged: ['✗', 'bad'],
  skipped: ['⤼', 'soft'],
  cancelled: ['⊘', 'soft'],
  cancelling: ['⊘', 'soft'],
  retired: ['⊘', 'soft'],
};

export const STATES = Object.keys(SIGNS);
export const signOf = (state: string): readonly [string, Tone] => SIGNS[state] ?? ['·', 'soft'];

const colours = new Map<string, number>();
const COLOURS = 12;

/** The same agent has the same colour everywhere: by its name, or the next one of those that are used least. */
export function agentClass(agent: string): string {
  const known = colours.get(agent);
  if (known !== undefined) return `agent-${known}`;
  let hash = 7;
  for (const char of agent) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
  const uses = new Array<number>(COLOURS).fill(0);
  for (const used of colours.values()) uses[used] = (uses[used] ?? 0) + 1;
  const least = Math.min(...uses);
  let colour = hash % COLOURS;
  while (uses[colour] !== least) colour = (colour + 1) % COLOURS;
  colours.set(agent, colour);
  return `agent-${colour}`;
}
