/** One row of a diff. `left` and `right` are line numbers; a hunk's head and a note have none. */
export interface DiffRow {
  kind: 'hunk' | 'same' | 'added' | 'removed' | 'note';
  left: number | null;
  right: number | null;
  text: string;
  changed?: readonly [number, number]; // the characters that differ from the line opposite
}

export interface FileChange {
  path: string;
  before: string;
  rows: DiffRow[];
  added: number;
  removed: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;
const MAX_WORD_LINE = 600;

const nameOf = (text: string) => unquote(text.replace(/\t.*$/, '')).replace(/^[abciow]\//, '');
const unquote = (text: string) => (text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text);

/** Read a unified diff of any number of files, as git and `diff -u` write it. Text before the first file is left out. */
export function parseDiff(text: string): FileChange[] {
  const files: FileChange[] = [];
  let file = null as FileChange | null;
  let [left, right, leftEnd, rightEnd] = [0, 0, 0, 0];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const open = (path: string) => {
    file = { path, before: path, rows: [], added: 0, removed: 0 };
    files.push(file);
    [leftEnd, rightEnd] = [0, 0];
  };
  for (const line of lines) {
    if (file && (left < leftEnd || right < rightEnd)) {
      const current = file;
      const rest = line.slice(1);
      if (line.startsWith('+')) {
        current.rows.push({ kind: 'added', left: null, right: right++, text: rest });
        current.added += 1;
        continue;
      }
      if (line.startsWith('-')) {
        current.rows.push({ kind: 'removed', left: left++, right: null, text: rest });
        current.removed += 1;
        continue;
      }
      if (line.startsWith(' ') || line === '') {
        current.rows.push({ kind: 'same', left: left++, right: right++, text: rest });
        continue;
      }
    }
    if (line.startsWith('\\')) {
      file?.rows.push({ kind: 'note', left: null, right: null, text: line.slice(2) });
      continue;
    }
    if (line.startsWith('diff --git ')) {
      open(nameOf(line.replace(/^.* b\//, 'b/')));
      continue;
    }
    if (line.startsWith('--- ')) {
      const name = nameOf(line.slice(4));
      if (!file || file.rows.some((row) => row.kind === 'hunk')) open(name);
      if (file) file.before = name;
      continue;
    }
    if (line.startsWith('+++ ')) {
      const name = nameOf(line.slice(4));
      if (file && name !== '/dev/null') file.path = name;
      continue;
    }
    const hunk = HUNK.exec(line);
    if (hunk) {
      if (!file) open('');
      [left, right] = [Number(hunk[1]), Number(hunk[3])];
      [leftEnd, rightEnd] = [left + Number(hunk[2] ?? 1), right + Number(hunk[4] ?? 1)];
      file?.rows.push({ kind: 'hunk', left: null, right: null, text: (hunk[5] ?? '').trim() });
      continue;
    }
    if (/^(Binary files|rename |copy |old mode |new mode )/.test(line)) file?.rows.push({ kind: 'note', left: null, right: null, text: line });
  }
  for (const { rows } of files) markWords(rows);
  return files;
}

/** In each block of removed lines with as many added ones after it, say which characters differ. */
function markWords(rows: DiffRow[]): void {
  for (let at = 0; at < rows.length; ) {
    let middle = at;
    while (rows[middle]?.kind === 'removed') middle += 1;
    let end = middle;
    while (rows[end]?.kind === 'added') end += 1;
    if (middle > at && middle - at === end - middle)
      for (let index = 0; index < middle - at; index += 1) markPair(rows[at + index] as DiffRow, rows[middle + index] as DiffRow);
    at = Math.max(end, at + 1);
  }
}

function markPair(old: DiffRow, fresh: DiffRow): void {
  if (old.text.length > MAX_WORD_LINE || fresh.text.length > MAX_WORD_LINE) return;
  const limit = Math.min(old.text.length, fresh.text.length);
  let begin = 0;
  while (begin < limit && old.text[begin] === fresh.text[begin]) begin += 1;
  let end = 0;
  while (end < limit - begin && old.text[old.text.length - 1 - end] === fresh.text[fresh.text.length - 1 - end]) end += 1;
  if (begin + end < limit * 0.3) return; // two different lines: marking nearly all of both says nothing
  old.changed = [begin, old.text.length - end];
  fresh.changed = [begin, fresh.text.length - end];
}

/** A row of the split view: what was on the left, what is on the right. */
export interface SplitRow {
  left: DiffRow | null;
  right: DiffRow | null;
}

export function splitRows(rows: readonly DiffRow[]): SplitRow[] {
  const pairs: SplitRow[] = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at] as DiffRow;
    if (row.kind !== 'removed' && row.kind !== 'added') {
      pairs.push({ left: row, right: row });
      at += 1;
      continue;
    }
    const removed: DiffRow[] = [];
    const added: DiffRow[] = [];
    for (; rows[at]?.kind === 'removed'; at += 1) removed.push(rows[at] as DiffRow);
    for (; rows[at]?.kind === 'added'; at += 1) added.push(rows[at] as DiffRow);
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) pairs.push({ left: removed[index] ?? null, right: added[index] ?? null });
  }
  return pairs;
}

/** Which lines of `fresh` are not in `old`, in order; for two texts that are not too long. */
export function newLines(old: string, fresh: string): Set<number> {
  const [left, right] = [old.split('\n'), fresh.split('\n')];
  let begin = 0;
  while (begin < left.length && begin < right.length && left[begin] === right[begin]) begin += 1;
  let end = 0;
  while (end < left.length - begin && end < right.length - begin && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
  const [rows, columns] = [left.length - begin - end, right.length - begin - end];
  const found = new Set<number>();
  if (rows * columns > 4_000_000) {
    const known = new Set(left);
    for (let index = begin; index < begin + columns; index += 1) if (!known.has(right[index] as string)) found.add(index);
    return found;
  }
  const width = columns + 1;
  const lengths = new Uint32Array((rows + 1) * width); // of the longest common subsequence from here on
  for (let row = rows - 1; row >= 0; row -= 1)
    for (let column = columns - 1; column >= 0; column -= 1) {
      const place = row * width + column;
      lengths[place] = left[begin + row] === right[begin + column] ? (lengths[place + width + 1] as number) + 1 : Math.max(lengths[place + width] as number, lengths[place + 1] as number);
    }
  for (let row = 0, column = 0; column < columns; ) {
    const place = row * width + column;
    if (row < rows && left[begin + row] === right[begin + column]) {
      row += 1;
      column += 1;
    } else if (row < rows && (lengths[place + width] as number) >= (lengths[place + 1] as number)) row += 1;
    else found.add(begin + column++);
  }
  return found;
}
