import { Handle, Panel, Position, ReactFlow, ReactFlowProvider, useReactFlow, type Edge, type Node, type NodeProps } from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Stage, Subtask } from '../../api/types';
import { useKey } from '../../shell/keyboard';
import { useEnd, useFormat } from '../../state/format';
import { hasReducedMotion } from '../../state/media';
import { select, useAddress } from '../../state/url';
import { AgentName, Button, Duration, Money, StateSign } from '../../ui';
import { HEIGHT, makeBoxes, place, structureOf, WIDTH, type Box, type Placed } from './layout';
import { stateOf, waitsForPerson } from './usePlan';

type SubtaskNode = Node<{ subtask: Subtask; isSelected: boolean }, 'subtask'>;
type GroupNode = Node<{ box: Box; isOpen: boolean }, 'bundle'>;
const FIT = { padding: 0.04, maxZoom: 1 };
const NODE_TYPES = { subtask: memo(SubtaskBox), bundle: memo(GroupBox) };

export function Graph(props: { stages: Stage[] }) {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
}

function Flow({ stages }: { stages: Stage[] }) {
  const { t } = useTranslation();
  const { sel } = useAddress();
  const flow = useReactFlow();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const wasMoved = useRef(false);
  const boxes = useMemo(() => makeBoxes(stages, opened), [stages, opened]);
  const structure = structureOf(boxes);
  const places = useMemo(() => new Map(place(boxes).map((box) => [box.id, box])), [structure]);
  const nodes = useMemo(() => boxes.map((box) => makeNode(box, places.get(box.id), sel, opened)), [boxes, places, sel, opened]);
  const edges = useMemo(() => makeEdges(boxes, sel), [boxes, sel]);
  const fit = useCallback(() => void flow.fitView({ ...FIT, duration: hasReducedMotion() ? 0 : 150 }), [flow]);
  useKey('f', fit);
  const count = nodes.length;
  useEffect(() => {
    if (wasMoved.current) return;
    const frame = requestAnimationFrame(() => void flow.fitView(FIT));
    return () => cancelAnimationFrame(frame);
  }, [count, flow]);
  const open = (id: string) => setOpened((before) => (before.has(id) ? new Set([...before].filter((other) => other !== id)) : new Set([...before, id])));
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      elementsSelectable
      onlyRenderVisibleElements={count > 100}
      fitView
      fitViewOptions={FIT}
      minZoom={0.1}
      maxZoom={1.6}
      attributionPosition="bottom-left"
      deleteKeyCode={null}
      disableKeyboardA11y
      onMove={(event) => {
        if (event) wasMoved.current = true;
      }}
      onNodeClick={(_, node) => (node.type === 'bundle' ? open(node.id) : select(`subtask:${node.id}`))}
      aria-label={t('plan.graph')}
    >
      <Panel position="bottom-right" className="row">
        <Button aria-label={t('plan.zoomOut')} onClick={() => void flow.zoomOut()}>
          −
        </Button>
        <Button aria-label={t('plan.zoomIn')} onClick={() => void flow.zoomIn()}>
          +
        </Button>
        <Button onClick={fit} aria-keyshortcuts="F">
          {t('plan.fit')}
        </Button>
      </Panel>
    </ReactFlow>
  );
}

function makeNode(box: Box, at: Placed | undefined, sel: string, opened: ReadonlySet<string>): SubtaskNode | GroupNode {
  const [first] = box.members;
  const base = { id: box.id, position: { x: at?.x ?? 0, y: at?.y ?? 0 }, width: WIDTH, height: HEIGHT, focusable: false };
  if (box.group || !first) return { ...base, type: 'bundle', data: { box, isOpen: opened.has(box.id) } };
  return { ...base, type: 'subtask', data: { subtask: first, isSelected: sel === `subtask:${first.id}` } };
}

/** Of very many boxes only the edges of the selected one are drawn. */
function makeEdges(boxes: Box[], sel: string): Edge[] {
  const isDrawn = (need: string, id: string) => boxes.length <= 100 || sel === `subtask:${need}` || sel === `subtask:${id}`;
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const isCritical = (box: Box | undefined) => box?.members.some((subtask) => subtask.is_critical) ?? false;
  return boxes.flatMap((box) =>
    box.needs
      .filter((need) => byId.has(need) && isDrawn(need, box.id))
      .map((need) => ({
        id: `${need}>${box.id}`,
        source: need,
        target: box.id,
        focusable: false,
        className: isCritical(box) && isCritical(byId.get(need)) ? 'edge-critical' : undefined,
      })),
  );
}

function SubtaskBox({ data: { subtask, isSelected } }: NodeProps<SubtaskNode>) {
  const { t } = useTranslation();
  const state = stateOf(subtask);
  return (
    <button
      type="button"
      className={`node ${state} ${subtask.is_critical ? 'critical' : ''}`}
      aria-pressed={isSelected}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="row">
        <StateSign state={state} isShort />
        <strong className="cut grow">{subtask.title || subtask.name}</strong>
      </span>
      <span className="row soft">
        <span className="grow row cut">
          <AgentName agent={subtask.agent} />
        </span>
        {subtask.started_at !== null && <Duration from={subtask.started_at} to={subtask.ended_at} />}
        {subtask.cost !== null && <Money value={subtask.cost} isInLink />}
      </span>
      {state === 'waiting' ? <span className="cut tone-wait node-why">{t('plan.waitsFor', { names: waitsForPerson(subtask) ? t('plan.you') : subtask.waits_for })}</span> : <TimeBars subtask={subtask} />}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </button>
  );
}

/** Predicted above, actual below, on one scale. */
export function TimeBars({ subtask }: { subtask: Subtask }) {
  const { t } = useTranslation();
  const format = useFormat();
  const end = useEnd(subtask.started_at !== null && subtask.ended_at === null);
  if (!subtask.expected_s && subtask.started_at === null) return null;
  const expected = subtask.expected_s * 1000;
  const actual = subtask.started_at === null ? 0 : (subtask.ended_at ?? end) - subtask.started_at;
  const longest = Math.max(expected, actual, 1);
  const text = actual ? t('plan.predictedActual', { predicted: format.duration(expected), actual: format.duration(actual) }) : t('plan.predicted', { predicted: format.duration(expected) });
  return (
    <span className="time-bars" role="img" aria-label={text} title={text}>
      {expected > 0 && <i className="predicted" style={{ width: `${(100 * expected) / longest}%` }} />}
      {actual > 0 && <i className={actual > expected * 1.2 && expected > 0 ? 'actual late' : 'actual'} style={{ width: `${(100 * actual) / longest}%` }} />}
    </span>
  );
}

function GroupBox({ data: { box, isOpen } }: NodeProps<GroupNode>) {
  const { t } = useTranslation();
  const format = useFormat();
  const counts = new Map<string, number>();
  for (const subtask of box.members) counts.set(stateOf(subtask), (counts.get(stateOf(subtask)) ?? 0) + 1);
  return (
    <button type="button" className={`node group ${box.members.some((subtask) => subtask.is_critical) ? 'critical' : ''}`} aria-expanded={isOpen}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="row">
        <strong className="cut grow">{box.group}</strong>
        <span className="num">{t('plan.subtasks', { count: box.members.length })}</span>
      </span>
      <span className="row wrap node-counts">
        {[...counts].map(([state, count]) => (
          <StateSign key={state} state={state} word={`${format.number(count)} ${t(`state.${state}`)}`} />
        ))}
      </span>
      <span className="soft cut">{isOpen ? (box.hidden ? t('plan.closeHidden', { count: box.hidden }) : t('plan.close')) : t('plan.open')}</span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </button>
  );
}
