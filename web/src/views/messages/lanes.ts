import type { Message } from '../../api/types';

export const MAX_LANES = 24;

/** A message as a row of the diagram, and the waits that go on beside it. */
export interface Row {
  message: Message;
  from: number;
  to: number[];
  waits: { lane: number; begins: boolean; ends: boolean }[];
  more: number; // receivers without a lane
}

export interface Diagram {
  lanes: string[];
  hidden: number; // members without a lane
  rows: Row[];
}

/** Lay messages out: a lane for each member, people last named first, and a bar while a sender waits for its answer. */
export function layOut(messages: readonly Message[], person: string): Diagram {
  const counts = new Map<string, number>();
  for (const message of messages) for (const member of [message.sender, ...message.receivers]) counts.set(member, (counts.get(member) ?? 0) + 1);
  const members = [...counts.keys()];
  if (members.length > MAX_LANES) members.sort((left, right) => Number(right === person) - Number(left === person) || (counts.get(right) ?? 0) - (counts.get(left) ?? 0));
  else members.sort((left, right) => Number(right === person) - Number(left === person));
  const lanes = members.slice(0, MAX_LANES);
  const laneOf = new Map(lanes.map((member, index) => [member, index]));
  const shown = messages.filter((message) => laneOf.has(message.sender) || message.receivers.some((receiver) => laneOf.has(receiver)));
  const endOf = new Map<string, number>();
  shown.forEach((message, index) => message.answers && !endOf.has(message.answers) && endOf.set(message.answers, index));
  const open: { lane: number; until: number; from: number }[] = [];
  const rows = shown.map((message, index): Row => {
    const from = laneOf.get(message.sender) ?? -1;
    if (message.waits && from >= 0) open.push({ lane: from, from: index, until: endOf.get(message.id) ?? (message.answered_at === null ? Infinity : index) });
    const going = open.filter((wait) => wait.until >= index && wait.until > wait.from);
    for (let at = open.length - 1; at >= 0; at -= 1) if ((open[at]?.until ?? 0) <= index) open.splice(at, 1);
    const to = message.receivers.flatMap((receiver) => laneOf.get(receiver) ?? []).filter((lane) => lane !== from);
    return { message, from, to, waits: going.map((wait) => ({ lane: wait.lane, begins: wait.from === index, ends: wait.until === index })), more: message.receivers.length - to.length };
  });
  return { lanes, hidden: members.length - lanes.length, rows };
}

/** Keeps the line ends of a message, which Markdown would join. */
export const withBreaks = (text: string) => text.replaceAll('\n', '  \n');
