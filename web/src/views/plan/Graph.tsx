import { BaseEdge, getSmoothStepPath, Handle, Panel, Position, ReactFlow, ReactFlowProvider, useReactFlow, type Edge, type EdgeProps, type Node, type NodeProps } from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Stage, Subtask } from '../../api/types';
import { useKey } from '../../shell/keyboard';
import { useEnd, useFormat } from '../../state/format';
import { hasReducedMotion } from '../../state/media';
import { select, useAddress } from '../../state/url';
import { AgentName, Button, Duration, Money, StateSign } from '../../ui';
import { HEIGHT, LINE_GAP, makeBoxes, place, structureOf, WIDTH, type Box, type Placed, type Room } from './layout';
import { stateOf, waitsForPerson } from './usePlan';

type SubtaskNode = Node<{ subtask: Subtask; isSelected: boolean }, 'subtask'>;
type GroupNode = Node<{ box: Box; isOpen: boolean }, 'bundle'>;
const FIT = { padding: 0.045, maxZoom: 1 };
// Its own texts are English, and speak of keys that do nothing here: a node is a button that says what it is.
const NO_ARIA = { 'node.a11yDescription.default': '', 'node.a11yDescription.keyboardDisabled': '', 'edge.a11yDescription.default': '' };
const EDGE_TYPES = { folded: FoldedEdge };
const NODE_TYPES = { subtask: memo(SubtaskBox), bundle: memo(GroupBox) };

export function Graph({ stages }: { stages: Stage[] }) {
  const [box, setBox] = useState<HTMLElement | null>(null);
  return (
    <div className="graph" ref={setBox}>
      {box && (
        <ReactFlowProvider>
          <Flow stages={stages} box={box} />
        </ReactFlowProvider>
      )}
    </div>
  );
}

function Flow({ stages, box }: { stages: Stage[]; box: HTMLElement }) {
  const { t } = useTranslation();
  const { sel } = useAddress();
  const flow = useReactFlow();
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const wasMoved = useRef(false);
  const boxes = useMemo(() => makeBoxes(stages, opened), [stages, opened]);
  const structure = structureOf(boxes);
  const [room, setRoom] = useState<Room>({ width: box.clientWidth, height: box.clientHeight });
  const places = useMemo(() => new Map(place(boxes, room).map((placed) => [placed.id, placed])), [structure, room]);
  const nodes = useMemo(() => boxes.map((box) => makeNode(box, places.get(box.id), sel, opened)), [boxes, places, sel, opened]);
  const edges = useMemo(() => makeEdges(boxes, places, sel), [boxes, places, sel]);
  const fit = useCallback(() => {
    setRoom({ width: box.clientWidth, height: box.clientHeight });
    requestAnimationFrame(() => void flow.fitView({ ...FIT, duration: hasReducedMotion() ? 0 : 150 }));
  }, [flow, box]);
  useKey('f', fit);
  const count = nodes.length;
  useEffect(() => {
    if (wasMoved.current) return;
    const frame = requestAnimationFrame(() => void flow.fitView(FIT));
    return () => cancelAnimationFrame(frame);
  }, [count, flow, room]);
  // What loads above takes room of the graph; an inspector beside it changes the width only, and nothing moves.
  useEffect(() => {
    const observer = new ResizeObserver(() => wasMoved.current || setRoom((before) => (before.height === box.clientHeight ? before : { width: box.clientWidth, height: box.clientHeight })));
    observer.observe(box);
    return () => observer.disconnect();
  }, [box]);
  const open = (id: string) => setOpened((before) => (before.has(id) ? new Set([...before].filter((other) => other !== id)) : new Set([...before, id])));
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      edgeTypes={EDGE_TYPES}
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
      ariaLabelConfig={NO_ARIA}
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
function makeEdges(boxes: Box[], places: ReadonlyMap<string, Placed>, sel: string): Edge[] {
  const isDrawn = (need: string, id: string) => boxes.length <= 100 || sel === `subtask:${need}` || sel === `subtask:${id}`;
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const isCritical = (box: Box | undefined) => box?.members.some((subtask) => subtask.is_critical) ?? false;
  return boxes.flatMap((box) =>
    box.needs
      .filter((need) => byId.has(need) && isDrawn(need, box.id))
      .map((need) => ({
        ...shapeEdge(places.get(need), places.get(box.id)),
        id: `${need}>${box.id}`,
        domAttributes: { 'aria-label': undefined, 'aria-hidden': true },
        source: need,
        target: box.id,
        focusable: false,
        className: isCritical(box) && isCritical(byId.get(need)) ? 'edge-critical' : undefined,
      })),
  );
}

/** An edge to the next line runs between the lines. */
const shapeEdge = (from: Placed | undefined, to: Placed | undefined): Partial<Edge> => (from && to && from.lineTop < to.lineTop ? { type: 'folded', data: { centerY: to.lineTop - LINE_GAP / 2 } } : {});

function FoldedEdge({ data, id, ...ends }: EdgeProps) {
  const [path] = getSmoothStepPath({ ...ends, offset: 12, centerY: Number(data?.centerY) });
  return <BaseEdge id={id} path={path} />;
}

function SubtaskBox({ data: { subtask, isSelected } }: NodeProps<SubtaskNode>) {
  const { t } = useTranslation();
  const state = stateOf(subtask);
  const waits = t('plan.waitsFor', { names: waitsForPerson(subtask) ? t('plan.you') : subtask.waits_for });
  return (
    <button
      type="button"
      className={`node ${state} ${subtask.is_critical ? 'critical' : ''}`}
      aria-pressed={isSelected}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="row node-title">
        <StateSign state={state} isShort />
        <strong className="node-name" title={subtask.title || subtask.name}>
          {subtask.title || subtask.name}
        </strong>
      </span>
      <span className="soft">
        <AgentName agent={subtask.agent} />
      </span>
      <span className="row soft">
        {subtask.started_at !== null && <Duration from={subtask.started_at} to={subtask.ended_at} />}
        {subtask.cost !== null && subtask.cost > 0 && <Money value={subtask.cost} isInLink />}
      </span>
      {state === 'waiting' ? <span className="cut tone-wait node-why" title={waits}>{waits}</span> : <TimeBars subtask={subtask} />}
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
