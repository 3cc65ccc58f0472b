import type { Agent } from '../../api/types';

export interface Branch {
  agent: Agent;
  depth: number;
  reports: number; // how many it manages, directly or not
}

/** The organisation as rows: a manager, then those that report to it. What is closed hides its reports. */
export function listTree(agents: readonly Agent[], closed: ReadonlySet<string>): Branch[] {
  const known = new Set(agents.map((agent) => agent.id));
  const reports = new Map<string, Agent[]>();
  for (const agent of agents) {
    const manager = known.has(agent.manager) && agent.manager !== agent.id ? agent.manager : '';
    reports.set(manager, [...(reports.get(manager) ?? []), agent]);
  }
  const seen = new Set<string>();
  const count = (id: string, above: ReadonlySet<string> = new Set()): number =>
    (reports.get(id) ?? []).reduce((sum, agent) => (above.has(agent.id) ? sum : sum + 1 + count(agent.id, new Set([...above, agent.id]))), 0);
  const rows: Branch[] = [];
  const walk = (id: string, depth: number) => {
    for (const agent of reports.get(id) ?? []) {
      if (seen.has(agent.id)) continue;
      seen.add(agent.id);
      rows.push({ agent, depth, reports: count(agent.id) });
      if (!closed.has(agent.id)) walk(agent.id, depth + 1);
    }
  };
  walk('', 0);
  if (!closed.size) for (const agent of agents) if (!seen.has(agent.id)) rows.push({ agent, depth: 0, reports: 0 }); // two that manage each other
  return rows;
}
