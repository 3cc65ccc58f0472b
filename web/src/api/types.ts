// Written by `npm run types` from src/greenroom/http/schemas.py. Do not edit.

export interface Page<T> {
  items: T[];
  next: string | null;
  total: number | null;
}

export type RunState = 'working' | 'waiting' | 'paused' | 'limit' | 'provider' | 'idle' | 'stopped' | 'finished' | 'failed' | 'cancelled' | 'damaged';

export type VerdictState = 'verified' | 'failed' | 'unverified';

export type Verb = 'pause' | 'resume' | 'cancel' | 'fork' | 'rewind' | 'apply' | 'branch' | 'discard' | 'undo' | 'send';

export type InboxKind = 'permission' | 'question' | 'plan' | 'confirmation' | 'conflict' | 'message';

/** Why a request was refused: what, why, what to do. */
export interface Problem {
  code: string;
  message: string;
  hint: string;
}

/** A verb that a person can use on a run now. `why` says why it cannot be used, or what will happen. */
export interface Action {
  verb: Verb;
  is_allowed: boolean;
  why: string;
}

/** A run, as a list shows it. */
export interface Run {
  id: string;
  title: string;
  kind: string;
  folder: string;
  state: RunState;
  reason: string;
  verdict: VerdictState | null;
  waits_for_me: number;
  subtasks: number;
  subtasks_done: number;
  agents: number;
  cost: number | null;
  cost_limit: number | null;
  tokens: number;
  created_at: number;
  ended_at: number | null;
  working_ms: number;
  owner: string | null;
  is_hosted: boolean;
  version: number;
}

/** The run and version that a run was forked from. */
export interface Origin {
  run: string;
  version: number;
}

/** A run at one version. `head` is its newest version. `answer` is the agent's own words, never verified. */
export interface RunDetail extends Run {
  request: string;
  answer: string;
  models: string[];
  at: number;
  head: number;
  actions: Action[];
  forked_from: Origin | null;
}

/** A new run. With `plan`, the text of a confirmed plan, a team does it; else one agent. */
export interface RunInput {
  request: string;
  plan?: string;
  agent?: string;
  model?: string;
  question?: boolean;
  tests_may_change?: boolean;
  allow_unverified?: boolean;
  confirm_checks?: boolean;
  cost_limit?: number | null;
  time_limit_s?: number | null;
}

/** A request to plan, or the edited text of a plan to check. */
export interface PlanInput {
  request?: string;
  text?: string;
  model?: string;
}

/** A subtask of a proposed plan. */
export interface PlannedPart {
  id: string;
  name: string;
  duty: string;
  agent: string;
  needs: string[];
  writes: string[];
  seconds: number;
  phase: number;
  is_critical: boolean;
}

/** Between two values. */
export interface Span {
  low: number;
  high: number;
}

/** A plan before it starts: what kind of work it is, whether a team is worth it, what it takes, and its text. */
export interface Proposal {
  types: string[];
  classified_by: string;
  is_team: boolean;
  reason: string;
  notes: string[];
  parts: PlannedPart[];
  critical_path: string[];
  seconds: Span;
  tokens: Span;
  cost: Span | null;
  gain: number;
  model: string;
  text: string;
  checks: string[];
}

/** What some verbs need: the version of a fork, the branch, the message of the commit, or a text. */
export interface VerbInput {
  version?: number | null;
  branch?: string;
  message?: string;
  now?: boolean;
  confirm_governing?: boolean;
  force?: boolean;
  cost_limit?: number | null;
  time_limit_s?: number | null;
}

/** What a verb did, in one sentence. `run` is the new run of a fork. Conflicting files are `clashes`. */
export interface VerbResult {
  done: boolean;
  message: string;
  hint: string;
  run: string | null;
  commit: string;
  clashes: string[];
}

/** A subtask of a stage. `waits_for` says why it has not begun. */
export interface Subtask {
  id: string;
  name: string;
  title: string;
  duty: string;
  agent: string;
  needs: string[];
  state: 'init' | 'running' | 'finished' | 'failed' | 'skipped' | 'cancelled';
  waits_for: string;
  summary: string;
  attempt: number;
  tries: number;
  required: boolean;
  started_at: number | null;
  ended_at: number | null;
  expected_s: number;
  cost: number | null;
  tokens: number;
  writes: string[];
  is_critical: boolean;
  is_own: boolean;
}

/** A stage with its subtasks. */
export interface Stage {
  id: string;
  task: string;
  intention: string;
  state: 'init' | 'running' | 'finished' | 'failed' | 'cancelled';
  started_at: number | null;
  ended_at: number | null;
  subtasks: Subtask[];
}

/** All stages of a run at one version. */
export interface Plan {
  at: number;
  stages: Stage[];
}

/** What an agent did from one time to another. Bars that are too short to see are one bar of several `steps`. */
export interface Bar {
  kind: 'model' | 'tool' | 'wait' | 'approval';
  begins: number;
  ends: number | null;
  step: string;
  subtask: string;
  text: string;
  steps: number;
}

/** The bars of one agent, oldest first. */
export interface Lane {
  agent: string;
  bars: Bar[];
}

/** What all agents did over time. */
export interface Gantt {
  at: number;
  begins: number;
  ends: number;
  lanes: Lane[];
}

/** A step in one line. */
export interface Step {
  id: string;
  agent: string;
  task: string;
  subtask: string;
  type: 'skill' | 'tool';
  executor: string;
  intention: string;
  text: string;
  state: string;
  attempt: number;
  queued_at: number;
  started_at: number | null;
  ended_at: number | null;
  cost: number | null;
  tokens: number;
  error: string;
}

/** A message of a request to a model. */
export interface PromptMessage {
  role: string;
  text: string;
}

/** A step with its exact call, its result, the prompt and the reply of a model call, and the terms it ran under. */
export interface StepDetail extends Step {
  instruction: unknown;
  result: unknown;
  reply: string;
  reasoning: string;
  prompt: PromptMessage[];
  prompt_note: string;
  model: string;
  effect: string;
  policy: string;
  rule: string;
  version: number;
}

/** A member of a run. */
export interface Agent {
  id: string;
  role: string;
  kind: string;
  model: string;
  state: 'idle' | 'working' | 'waiting' | 'retired';
  now: string;
  since: number | null;
  queue: number;
  waits_on: string[];
  manager: string;
  steps: number;
  cost: number | null;
  tokens: number;
}

/** A member with its queue, its rights and its memory. */
export interface AgentDetail extends Agent {
  queued: Step[];
  tools: string[];
  skills: string[];
  rules: string[];
  memory: string;
  instructions: string;
  duties: string[];
}

/** A tool that agents can have. */
export interface Tool {
  name: string;
  group: string;
  description: string;
  effect: string;
  source: string;
}

/** A message. `answered_at` ends the wait of its sender. */
export interface Message {
  id: string;
  version: number;
  sender: string;
  receivers: string[];
  text: string;
  kind: string;
  need_reply: boolean;
  waits: boolean;
  answers: string;
  group: string;
  sent_at: number;
  answered_at: number | null;
}

/** A message of the person to an agent, or to all that work on the run. `answers` names the message it replies to. */
export interface MessageInput {
  text: string;
  to?: string;
  answers?: string;
}

/** Something that waits for a person: an approval, a question, a plan, a conflict or a message. */
export interface InboxItem {
  run: string;
  run_title: string;
  id: string;
  kind: InboxKind;
  agent: string;
  subtask: string;
  question: string;
  why: string;
  call: string;
  tool: string;
  files: string[];
  hosts: string[];
  diff: string;
  rule: string;
  release: string;
  choices: string[];
  asked_at: number;
  expires_at: number | null;
  is_running: boolean;
}

/** An answer. A question, a plan and a conflict take `text`; a permission takes `decision` and its `scope`. */
export interface AnswerInput {
  decision?: 'approved' | 'denied';
  scope?: 'once' | 'run' | 'always';
  rule?: string;
  text?: string;
}

/** The result of one check, before and after the change. */
export interface Receipt {
  check: string;
  outcome: string;
  before: string;
  passed: number;
  failing: string[];
  seconds: number;
  log: string;
}

/** A file of a change, and the agents that wrote it. */
export interface ChangedFile {
  path: string;
  before: string;
  kind: string;
  added: number;
  removed: number;
  is_binary: boolean;
  is_test: boolean;
  agents: string[];
}

/** The change of a run: the verdict with its receipts first, then the files. */
export interface Change {
  at: number;
  state: 'none' | 'open' | 'ready' | 'applied' | 'discarded';
  sentence: string;
  verdict: VerdictState | null;
  reasons: string[];
  notes: string[];
  receipts: Receipt[];
  files: ChangedFile[];
  base: string;
  tip: string;
  commit: string;
  conflicts: number;
}

/** The unified diff of one file. A large one is cut. */
export interface FileDiff {
  path: string;
  text: string;
  is_cut: boolean;
}

/** Who wrote a line: the step, its agent and the message of its commit. */
export interface BlameLine {
  line: number;
  commit: string;
  agent: string;
  step: string;
  subtask: string;
  message: string;
}

/** A file that two subtasks changed: its three panes, and which rung of the ladder merged it and why. */
export interface Conflict {
  id: string;
  path: string;
  state: string;
  rung: string;
  why: string;
  left_subtask: string;
  right_subtask: string;
  base: string;
  left: string;
  right: string;
  result: string;
  dropped: string[];
  approval: string;
}

/** A text, with its media type. */
export interface Text {
  text: string;
  media_type: string;
}

/** A version of an artifact. */
export interface Artifact {
  id: string;
  task: string;
  title: string;
  media_type: string;
  version: number;
  by: string;
  at: number;
  size: number;
  reason: string;
  is_untrusted: boolean;
}

/** An artifact with its text, and all its versions, newest first. */
export interface ArtifactDetail extends Artifact {
  text: string;
  versions: Artifact[];
}

/** A memory that lasts over tasks. */
export interface Memory {
  id: string;
  scope: string;
  text: string;
  tags: string[];
  by: string;
  created_at: number;
  updated_at: number | null;
  is_trusted: boolean;
}

/** A skill folder. */
export interface Skill {
  name: string;
  description: string;
  source: string;
  is_trusted: boolean;
  body: string;
}

/** A note or a value on the task board. */
export interface SharedNote {
  key: string;
  agent: string;
  text: string;
  at: number | null;
}

/** The model calls of one agent, model or run. `unpriced` calls have an unknown price. */
export interface CostRow {
  name: string;
  calls: number;
  tokens: number;
  cost: number | null;
  unpriced: number;
  reserved: number;
}

/** What was spent until a time, by agent or model. */
export interface CostPoint {
  at: number;
  cost: Record<string, number>;
  tokens: Record<string, number>;
}

/** What a run spent, with its cap. */
export interface Costs {
  rows: CostRow[];
  points: CostPoint[];
  cost: number | null;
  tokens: number;
  cost_limit: number | null;
}

/** What the subtasks of one profile took in past runs. */
export interface Performance {
  profile: string;
  completed: number;
  failed: number;
  success_rate: number | null;
  seconds: number;
  tokens: number;
  cost: number | null;
}

/** A part of the timeline: its last version, its time, and how many events happened since the one before. */
export interface Bucket {
  version: number;
  at: number;
  events: number;
}

/** A moment worth a look. */
export interface Mark {
  version: number;
  at: number;
  kind: 'approval' | 'failure' | 'conflict' | 'verdict' | 'person';
  text: string;
}

/** The density of events over a run. */
export interface Timeline {
  head: number;
  begins: number;
  ends: number;
  buckets: Bucket[];
  marks: Mark[];
}

/** An event: what happened, as one line in the person's language, and its data. */
export interface EventRow {
  run: string;
  version: number;
  at: number;
  type: string;
  agent: string;
  subtask: string;
  step: string;
  text: string;
  level: 'info' | 'good' | 'bad' | 'wait';
  data: Record<string, unknown>;
}

/** A piece of a reply that is not in the log yet: AF's stream events of one agent's turn, with text for chunks. */
export interface LiveText {
  run: string;
  agent: string;
  step: string;
  type: 'agent_start' | 'llm_chunk' | 'llm_complete' | 'agent_complete' | 'tool_output';
  chunk: 'content' | 'reasoning' | '';
  text: string;
}

/** Who looks, and what this server works on. */
export interface Session {
  folder: string;
  home: string;
  language: 'en' | 'zh';
  person: string;
  version: string;
  model: string;
  model_hint: string;
  sandbox: string;
}
