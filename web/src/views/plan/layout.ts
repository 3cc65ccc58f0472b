import type { Stage, Subtask } from '../../api/types';

/** A box of the graph: a subtask, or a group of them. */
export interface Box {
  id: string;
  needs: string[];
  column: number;
  members: Subtask[];
  stage: Stage;
  group: string; // empty: a subtask
  hidden: number; // members of an opened group that are not shown
}
export interface Placed extends Box {
  x: number;
  y: number;
  lineTop: number; // where its line begins
}

export interface Room {
  width: number;
  height: number;
}

export const WIDTH = 168;
export const HEIGHT = 130;
const GAP_X = 24;
const GAP_Y = 18;
export const LINE_GAP = 44;
const GROUPED_ABOVE = 60;
const SHOWN_OF_GROUP = 200;
const URGENT = ['failed', 'running', 'init', 'finished', 'skipped', 'cancelled'];

/** `coder-12` and `coder-13` are of one type. */
export const typeOf = (subtask: Subtask): string => subtask.agent.replace(/[-_ ]?\d+$/, '') || subtask.name;

/** The boxes of a plan: its subtasks, or beyond 60 groups by stage and type; the opened groups as their subtasks. */
export function makeBoxes(stages: Stage[], opened: ReadonlySet<string>): Box[] {
  const count = stages.reduce((sum, stage) => sum + stage.subtasks.length, 0);
  const single = (subtask: Subtask, stage: Stage): Box => ({ id: subtask.id, needs: subtask.needs, column: 0, members: [subtask], stage, group: '', hidden: 0 });
  if (count <= GROUPED_ABOVE) return reduce(stages.flatMap((stage) => stage.subtasks.map((subtask) => single(subtask, stage))));
  const boxes: Box[] = [];
  const boxOf = new Map<string, string>();
  for (const stage of stages) {
    const groups = new Map<string, Subtask[]>();
    for (const subtask of stage.subtasks) groups.set(typeOf(subtask), [...(groups.get(typeOf(subtask)) ?? []), subtask]);
    for (const [type, members] of groups) {
      const id = `${stage.id}/*${type}`;
      const isOpen = opened.has(id) || members.length === 1;
      const shown = isOpen ? [...members].sort((a, b) => URGENT.indexOf(a.state) - URGENT.indexOf(b.state)).slice(0, SHOWN_OF_GROUP) : [];
      for (const subtask of shown) boxes.push(single(subtask, stage));
      for (const subtask of shown) boxOf.set(subtask.id, subtask.id);
      if (isOpen && members.length === 1) continue;
      for (const subtask of members) if (!boxOf.has(subtask.id)) boxOf.set(subtask.id, id);
      boxes.push({ id, needs: [], column: 0, members, stage, group: type, hidden: isOpen ? members.length - shown.length : members.length });
    }
  }
  for (const box of boxes) {
    if (box.group && opened.has(box.id)) continue;
    const needs = box.members.flatMap((subtask) => subtask.needs.map((need) => boxOf.get(need) ?? need));
    box.needs = [...new Set(needs)].filter((need) => need !== box.id);
  }
  return boxes;
}

/** What a box needs through another that it needs goes without saying, and without a line. */
function reduce(boxes: Box[]): Box[] {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const reached = new Map<string, Set<string>>();
  const reach = (id: string): Set<string> => {
    const known = reached.get(id);
    if (known) return known;
    const found = new Set<string>();
    reached.set(id, found);
    for (const need of byId.get(id)?.needs ?? []) for (const further of [need, ...reach(need)]) found.add(further);
    return found;
  };
  return boxes.map((box) => ({ ...box, needs: box.needs.filter((need) => !box.needs.some((other) => other !== need && reach(other).has(need))) }));
}

/** Left to right by stage, in it by what is needed; in a column, near what a box needs. */
export function place(boxes: Box[], room: Room): Placed[] {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  let offset = 0;
  for (const stage of new Set(boxes.map((box) => box.stage))) {
    const own = boxes.filter((box) => box.stage === stage);
    setDepths(own, byId, stage, offset);
    offset = Math.max(...own.map((box) => box.column)) + 1;
  }
  const columns: Box[][] = [];
  for (const box of boxes) (columns[box.column] ??= []).push({ ...box, needs: [...box.needs] });
  const bends = boxes.length <= GROUPED_ABOVE ? addBends(columns.flat(), byId, columns) : new Set<string>();
  const tallest = Math.max(...columns.map((column) => Math.min(column.length, wrapAt(column.length))));
  sortColumns(columns, tallest);
  const placed: Placed[] = [];
  let x = 0;
  for (const column of columns) {
    const height = Math.min(column.length, wrapAt(column.length));
    column.forEach((box, index) => {
      const row = (index % height) + (tallest - height) / 2;
      if (!bends.has(box.id)) placed.push({ ...box, x: x + Math.floor(index / height) * (WIDTH + GAP_Y), y: row * (HEIGHT + GAP_Y), lineTop: 0 });
    });
    x += Math.ceil(column.length / height) * (WIDTH + GAP_Y) - GAP_Y + GAP_X;
  }
  return foldLines(placed, room);
}

/** A plan that is too long for its room goes on in a second or third line, where its boxes are then larger. */
function foldLines(placed: Placed[], room: Room): Placed[] {
  const columns: Placed[][] = [];
  for (const box of placed) (columns[box.column] ??= []).push(box);
  let best = { boxes: placed, zoom: 0 };
  for (let lines = 1; lines <= Math.min(3, columns.length); lines++) {
    const most = Math.ceil(columns.length / lines);
    const boxes: Placed[] = [];
    let [width, height] = [0, 0];
    for (let start = 0; start < columns.length; start += most) {
      const line = columns.slice(start, start + most).flat();
      const [left, top] = [Math.min(...line.map((box) => box.x)), Math.min(...line.map((box) => box.y))];
      const y = height && height + LINE_GAP;
      for (const box of line) boxes.push({ ...box, x: box.x - left, y: y + box.y - top, lineTop: y });
      width = Math.max(width, ...line.map((box) => box.x - left + WIDTH));
      height = Math.max(...line.map((box) => y + box.y - top + HEIGHT));
    }
    const zoom = Math.min(1, room.width / width, room.height / height);
    if (zoom > best.zoom * 1.2) best = { boxes, zoom };
  }
  return best.boxes;
}

/** Sort each column by the rows of what its boxes need and of what needs them, there and back again. */
function sortColumns(columns: Box[][], tallest: number): void {
  const users = new Map<string, string[]>();
  for (const box of columns.flat()) for (const need of box.needs) users.set(need, [...(users.get(need) ?? []), box.id]);
  const rows = new Map<string, number>();
  const number = (column: Box[]) => column.forEach((box, index) => rows.set(box.id, index + (tallest - column.length) / 2));
  const pull = (ids: string[]) => {
    const known = ids.flatMap((id) => rows.get(id) ?? []);
    return known.length ? known.reduce((sum, row) => sum + row, 0) / known.length : null;
  };
  columns.forEach(number);
  for (const isForward of [true, false, true, false]) {
    for (const column of isForward ? columns : [...columns].reverse()) {
      const pulls = new Map(column.map((box) => [box, pull(isForward ? box.needs : (users.get(box.id) ?? [])) ?? rows.get(box.id) ?? 0]));
      column.sort((left, right) => (pulls.get(left) ?? 0) - (pulls.get(right) ?? 0));
      number(column);
    }
  }
}

/** An edge over several columns gets a free row in each that it crosses, so that it does not run through a box. */
function addBends(boxes: Box[], byId: Map<string, Box>, columns: Box[][]): Set<string> {
  const bends = new Set<string>();
  for (const box of boxes)
    for (const [index, need] of box.needs.entries()) {
      let source = need;
      for (let column = (byId.get(need)?.column ?? box.column) + 1; column < box.column; column++) {
        const id = `${need}>${column}`;
        if (!bends.has(id)) (columns[column] ??= []).push({ ...box, id, needs: [source], column });
        bends.add(id);
        source = id;
      }
      box.needs[index] = source;
    }
  return bends;
}

/** A column of very many boxes is folded into several. */
const wrapAt = (count: number): number => (count <= 14 ? count : Math.ceil(Math.sqrt(count * 2)));

function setDepths(own: Box[], byId: Map<string, Box>, stage: Stage, offset: number): void {
  const depths = new Map<Box, number>();
  const visiting = new Set<Box>();
  const depth = (box: Box): number => {
    const known = depths.get(box);
    if (known !== undefined) return known;
    if (visiting.has(box)) return 0;
    visiting.add(box);
    let found = 0;
    for (const id of box.needs) {
      const need = byId.get(id);
      if (need && need.stage === stage) found = Math.max(found, depth(need) + 1);
    }
    visiting.delete(box);
    depths.set(box, found);
    return found;
  };
  for (const box of own) box.column = offset + depth(box);
}

/** The layout changes only when this does. */
export const structureOf = (boxes: Box[]): string => boxes.map((box) => `${box.id}<${box.needs.join(',')}`).join(';');
