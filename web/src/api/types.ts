// Written by `npm run types` from the OpenAPI of the server. Do not edit.

export interface Page<T> {
  items: T[];
  next: string | null;
  total: number | null;
}

export type ChangeState = 'none' | 'open' | 'ready' | 'applied' | 'discarded';

export type EventLevel = 'info' | 'good' | 'bad' | 'wait';

export type InboxKind = 'permission' | 'question' | 'plan' | 'confirmation' | 'conflict' | 'message';

export type LimitField = 'cost_limit' | 'time_limit_s' | 'token_limit';

export type RunState = 'working' | 'waiting' | 'paused' | 'limit' | 'provider' | 'idle' | 'stopped' | 'finished' | 'failed' | 'cancelled' | 'damaged';

export type Verb = 'pause' | 'resume' | 'cancel' | 'fork' | 'rewind' | 'apply' | 'branch' | 'discard' | 'undo' | 'send';

export type VerdictState = 'verified' | 'failed' | 'unverified';

/** A verb that a person can use on a run now. `why` says why it cannot be used, or what will happen. */
export interface Action {
  is_allowed: boolean;
  verb: Verb;
  why: string;
}

/** A member of a run. */
export interface Agent {
  cost: number | null;
  id: string;
  kind: string;
  manager: string;
  model: string;
  now: string;
  queue: number;
  role: string;
  since: number | null;
  state: 'idle' | 'working' | 'waiting' | 'retired';
  steps: number;
  tokens: number;
  waits_on: string[];
}

/** A member with its queue, its rights and its memory. */
export interface AgentDetail {
  cost: number | null;
  duties: string[];
  id: string;
  instructions: string;
  kind: string;
  manager: string;
  memory: string;
  model: string;
  now: string;
  queue: number;
  queued: Step[];
  role: string;
  rules: string[];
  since: number | null;
  skills: string[];
  state: 'idle' | 'working' | 'waiting' | 'retired';
  steps: number;
  tokens: number;
  tools: string[];
  waits_on: string[];
}

/** An answer. A question, a plan and a conflict take `text`; a permission takes `decision` and its `scope`. */
export interface AnswerInput {
  decision?: 'approved' | 'denied';
  rule?: string;
  scope?: 'once' | 'run' | 'always';
  text?: string;
}

/** A version of an artifact. */
export interface Artifact {
  at: number;
  by: string;
  id: string;
  is_untrusted: boolean;
  media_type: string;
  reason: string;
  size: number;
  task: string;
  title: string;
  version: number;
}

/** An artifact with its text, and all its versions, newest first. */
export interface ArtifactDetail {
  at: number;
  by: string;
  id: string;
  is_untrusted: boolean;
  media_type: string;
  reason: string;
  size: number;
  task: string;
  text: string;
  title: string;
  version: number;
  versions: Artifact[];
}

/** What an agent did from one time to another. Bars that are too short to see are one bar of several `steps`. */
export interface Bar {
  begins: number;
  ends: number | null;
  kind: 'model' | 'tool' | 'wait' | 'approval';
  step: string;
  steps: number;
  subtask: string;
  text: string;
}

/** Who wrote a line: the step, its agent and the message of its commit. */
export interface BlameLine {
  agent: string;
  commit: string;
  line: number;
  message: string;
  step: string;
  subtask: string;
}

export interface Body_edit_memory_api_memories__name__put {
  text: string;
}

export interface Body_restore_artifact_api_runs__run__artifacts__task___artifact__restore_post {
  version: number;
}

/** A part of the timeline: its last version, its time, and how many events happened since the one before. */
export interface Bucket {
  at: number;
  events: number;
  version: number;
}

/** The change of a run: the verdict with its receipts first, then the files. */
export interface Change {
  at: number;
  base: string;
  commit: string;
  conflicts: number;
  files: ChangedFile[];
  notes: string[];
  reasons: string[];
  receipts: Receipt[];
  sentence: string;
  state: ChangeState;
  tip: string;
  verdict: VerdictState | null;
}

/** A file of a change, and the agents that wrote it. */
export interface ChangedFile {
  added: number;
  agents: string[];
  before: string;
  is_binary: boolean;
  is_test: boolean;
  kind: string;
  path: string;
  removed: number;
}

/** A file that two subtasks changed: its three panes, and which rung of the ladder merged it and why. */
export interface Conflict {
  approval: string;
  base: string;
  dropped: string[];
  id: string;
  left: string;
  left_subtask: string;
  path: string;
  result: string;
  right: string;
  right_subtask: string;
  rung: string;
  state: string;
  why: string;
}

/** What was spent until a time, by agent or model. */
export interface CostPoint {
  at: number;
  cost: Record<string, number>;
  tokens: Record<string, number>;
}

/** The model calls of one agent, model or run. `unpriced` calls have an unknown price. */
export interface CostRow {
  calls: number;
  cost: number | null;
  name: string;
  reserved: number;
  tokens: number;
  unpriced: number;
}

/** What a run spent, with its cap. */
export interface Costs {
  cost: number | null;
  cost_limit: number | null;
  points: CostPoint[];
  rows: CostRow[];
  tokens: number;
}

/** An event: what happened, as one line in the person's language, and its data. */
export interface EventRow {
  agent: string;
  at: number;
  data: Record<string, unknown>;
  level: EventLevel;
  run: string;
  step: string;
  subtask: string;
  text: string;
  type: string;
  version: number;
}

/** The unified diff of one file. A large one is cut. */
export interface FileDiff {
  is_cut: boolean;
  path: string;
  text: string;
}

/** What all agents did over time. */
export interface Gantt {
  at: number;
  begins: number;
  ends: number;
  lanes: Lane[];
}

/** Something that waits for a person: an approval, a question, a plan, a conflict or a message. */
export interface InboxItem {
  agent: string;
  asked_at: number;
  call: string;
  choices: string[];
  diff: string;
  expires_at: number | null;
  files: string[];
  folder: string;
  hosts: string[];
  id: string;
  is_running: boolean;
  kind: InboxKind;
  question: string;
  release: string;
  rule: string;
  run: string;
  run_title: string;
  subtask: string;
  tool: string;
  why: string;
}

/** The bars of one agent, oldest first. */
export interface Lane {
  agent: string;
  bars: Bar[];
}

/** A piece of a reply that is not in the log yet: AF's stream events of one agent's turn, with text for chunks. */
export interface LiveText {
  agent: string;
  chunk: 'content' | 'reasoning' | '';
  run: string;
  step: string;
  text: string;
  type: 'agent_start' | 'llm_chunk' | 'llm_complete' | 'agent_complete' | 'tool_output';
}

/** A moment worth a look. */
export interface Mark {
  at: number;
  kind: 'approval' | 'failure' | 'conflict' | 'verdict' | 'person';
  text: string;
  version: number;
}

/** A memory that lasts over tasks. */
export interface Memory {
  by: string;
  created_at: number;
  id: string;
  is_trusted: boolean;
  scope: string;
  tags: string[];
  text: string;
  updated_at: number | null;
}

/** A message. `answered_at` ends the wait of its sender. */
export interface Message {
  answered_at: number | null;
  answers: string;
  group: string;
  id: string;
  kind: string;
  need_reply: boolean;
  receivers: string[];
  sender: string;
  sent_at: number;
  text: string;
  version: number;
  waits: boolean;
}

/** A message of the person to an agent, or to all that work on the run. `answers` names the message it replies to. */
export interface MessageInput {
  answers?: string;
  sender?: string;
  text: string;
  to?: string;
}

/** The run and version that a run was forked from. */
export interface Origin {
  run: string;
  version: number;
}

/** What the subtasks of one profile took in past runs. */
export interface Performance {
  completed: number;
  cost: number | null;
  failed: number;
  profile: string;
  seconds: number;
  success_rate: number | null;
  tokens: number;
}

/** All stages of a run at one version. */
export interface Plan {
  at: number;
  stages: Stage[];
}

/** A request to plan, or the edited text of a plan to check. `proposal` is the id of the one that it replaces. */
export interface PlanInput {
  cost_limit?: number | null;
  model?: string;
  proposal?: string;
  request?: string;
  text?: string;
}

/** A subtask of a proposed plan. */
export interface PlannedPart {
  agent: string;
  duty: string;
  id: string;
  is_critical: boolean;
  name: string;
  needs: string[];
  phase: number;
  seconds: number;
  writes: string[];
}

/** Why a request was refused: what, why, what to do. */
export interface Problem {
  code: string;
  hint: string;
  message: string;
}

/** A message of a request to a model. */
export interface PromptMessage {
  role: string;
  text: string;
}

/** A plan before it starts: what kind of work it is, whether a team is worth it, what it takes, and its text. */
export interface Proposal {
  checks: string[];
  checks_digest: string;
  classified_by: string;
  cost: Span | null;
  cost_limit: number | null;
  critical_path: string[];
  gain: number;
  id: string;
  is_team: boolean;
  model: string;
  notes: string[];
  parts: PlannedPart[];
  reason: string;
  seconds: Span;
  text: string;
  tokens: Span;
  types: string[];
}

/** The limit that a run reached: the field with which `resume` takes a higher one, and its value. */
export interface ReachedLimit {
  field: LimitField;
  value: number;
}

/** The result of one check, before and after the change. */
export interface Receipt {
  before: string;
  check: string;
  failing: string[];
  log: string;
  outcome: string;
  passed: number;
  seconds: number;
}

/** A run, as a list shows it. */
export interface Run {
  agents: number;
  cost: number | null;
  cost_limit: number | null;
  created_at: number;
  ended_at: number | null;
  folder: string;
  id: string;
  is_hosted: boolean;
  kind: string;
  owner: string | null;
  reached: ReachedLimit | null;
  reason: string;
  state: RunState;
  subtasks: number;
  subtasks_done: number;
  title: string;
  tokens: number;
  verdict: VerdictState | null;
  version: number;
  waits_for_me: number;
  working_ms: number;
}

/** A run at one version. `head` is its newest version. `answer` is the agent's own words, never verified. */
export interface RunDetail {
  actions: Action[];
  agents: number;
  answer: string;
  at: number;
  cost: number | null;
  cost_limit: number | null;
  created_at: number;
  ended_at: number | null;
  folder: string;
  forked_from: Origin | null;
  head: number;
  id: string;
  is_hosted: boolean;
  kind: string;
  models: string[];
  owner: string | null;
  reached: ReachedLimit | null;
  reason: string;
  request: string;
  state: RunState;
  subtasks: number;
  subtasks_done: number;
  title: string;
  tokens: number;
  verdict: VerdictState | null;
  version: number;
  waits_for_me: number;
  working_ms: number;
}

/** A new run. With `plan`, the text of a confirmed plan, a team does it; else one agent. */
export interface RunInput {
  agent?: string;
  allow_unverified?: boolean;
  confirm_checks?: string;
  cost_limit?: number | null;
  model?: string;
  plan?: string;
  proposal?: string;
  question?: boolean;
  request: string;
  tests_may_change?: boolean;
  time_limit_s?: number | null;
}

/** Who looks, and what this server works on. */
export interface Session {
  folder: string;
  home: string;
  language: 'en' | 'zh';
  model: string;
  model_hint: string;
  person: string;
  sandbox: string;
  version: string;
}

/** A note or a value on the task board. */
export interface SharedNote {
  agent: string;
  at: number | null;
  key: string;
  text: string;
}

/** A skill folder. */
export interface Skill {
  body: string;
  description: string;
  is_trusted: boolean;
  name: string;
  source: string;
}

/** Between two values. */
export interface Span {
  high: number;
  low: number;
}

/** A stage with its subtasks. */
export interface Stage {
  ended_at: number | null;
  id: string;
  intention: string;
  started_at: number | null;
  state: 'init' | 'running' | 'finished' | 'failed' | 'cancelled';
  subtasks: Subtask[];
  task: string;
}

/** A run that began. `notes` say what it begins with, and what is left out and why. */
export interface StartedRun {
  agents: number;
  cost: number | null;
  cost_limit: number | null;
  created_at: number;
  ended_at: number | null;
  folder: string;
  id: string;
  is_hosted: boolean;
  kind: string;
  notes: string[];
  owner: string | null;
  reached: ReachedLimit | null;
  reason: string;
  state: RunState;
  subtasks: number;
  subtasks_done: number;
  title: string;
  tokens: number;
  verdict: VerdictState | null;
  version: number;
  waits_for_me: number;
  working_ms: number;
}

/** A step in one line. */
export interface Step {
  agent: string;
  attempt: number;
  cost: number | null;
  ended_at: number | null;
  error: string;
  executor: string;
  id: string;
  intention: string;
  queued_at: number;
  started_at: number | null;
  state: string;
  subtask: string;
  task: string;
  text: string;
  tokens: number;
  type: 'skill' | 'tool';
}

/** A step with its exact call, its result, the prompt and the reply of a model call, and the terms it ran under. */
export interface StepDetail {
  agent: string;
  attempt: number;
  cost: number | null;
  effect: string;
  ended_at: number | null;
  error: string;
  executor: string;
  id: string;
  instruction: unknown;
  intention: string;
  model: string;
  policy: string;
  prompt: PromptMessage[];
  prompt_note: string;
  queued_at: number;
  reasoning: string;
  reply: string;
  result: unknown;
  rule: string;
  started_at: number | null;
  state: string;
  subtask: string;
  task: string;
  text: string;
  tokens: number;
  type: 'skill' | 'tool';
  version: number;
}

/** A subtask of a stage. `waits_for` says why it has not begun. */
export interface Subtask {
  agent: string;
  attempt: number;
  cost: number | null;
  duty: string;
  ended_at: number | null;
  expected_s: number;
  id: string;
  is_critical: boolean;
  is_own: boolean;
  name: string;
  needs: string[];
  required: boolean;
  started_at: number | null;
  state: 'init' | 'running' | 'finished' | 'failed' | 'skipped' | 'cancelled';
  summary: string;
  title: string;
  tokens: number;
  tries: number;
  waits_for: string;
  writes: string[];
}

/** A text, with its media type. */
export interface Text {
  media_type: string;
  text: string;
}

/** The density of events over a run. */
export interface Timeline {
  begins: number;
  buckets: Bucket[];
  ends: number;
  head: number;
  marks: Mark[];
}

/** A tool that agents can have. */
export interface Tool {
  description: string;
  effect: string;
  group: string;
  name: string;
  source: string;
}

/** What some verbs need: the version of a fork, the branch, the message of the commit, or a text. */
export interface VerbInput {
  branch?: string;
  confirm_governing?: boolean;
  cost_limit?: number | null;
  force?: boolean;
  message?: string;
  now?: boolean;
  time_limit_s?: number | null;
  token_limit?: number | null;
  version?: number | null;
}

/** What a verb did, in one sentence. `run` is the new run of a fork, `version` what it keeps of the old one: up to */
export interface VerbResult {
  clashes: string[];
  commit: string;
  done: boolean;
  hint: string;
  message: string;
  run: string | null;
  version: number | null;
}
