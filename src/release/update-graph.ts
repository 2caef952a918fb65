import { LimitError, OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { firstBy, getOrAdd } from '../core/groups.js';
import { formatReference } from '../core/reference.js';
import { compareVersions, parseVersion } from '../core/semver.js';
import { openValue } from '../document/document.js';
import { type Field, quoteShort } from '../document/field.js';
import { GoJsonError, parseGoJson } from '../document/go-json.js';
import type { JsonObject, JsonValue } from '../document/json.js';
import { readDigestReference } from './digest-reference.js';

/** A release in a channel. */
export type ReleaseNode = ReturnType<typeof readNode>;
/** A known risk of an update. */
export type UpdateRisk = ReturnType<typeof readRisk>;

/** Releases of a channel for an architecture, with their updates. */
export interface UpdateGraph {
  /** Name in messages: channel and architecture. */
  label: string;
  /** Releases, oldest first. */
  nodes: readonly ReleaseNode[];
  byVersion: ReadonlyMap<string, ReleaseNode>;
  /** Updates by version. */
  edges: ReadonlyMap<string, readonly Update[]>;
}

/** An update to a version; recommended to all clusters if it has no risks. */
export interface Update {
  to: ReleaseNode;
  risks: readonly UpdateRisk[];
}

/** Maximum bytes of a graph; public ones have up to 10 MiB. */
export const maxGraphBytes = 64 * 1024 * 1024;
const maxNodes = 100_000;
const maxEdges = 2_000_000;
const maxRisks = 1000;

const channelsKey = 'io.openshift.upgrades.graph.release.channels';
const manifestKey = 'io.openshift.upgrades.graph.release.manifestref';

/**
 * Reads the response of an update service. Uses the first of duplicate versions, and omits edges to unknown versions.
 * Throws OpmateError SYNTAX, INVALID or LIMIT that starts with `label`. (Source: Cincinnati,
 * docs/design/cincinnati.md; conditional edges: openshift/enhancements.)
 */
export function parseUpdateGraph(text: string, label: string): UpdateGraph {
  let value: JsonValue;
  try {
    value = parseGoJson(text);
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    throw new OpmateError('SYNTAX', `update graph is not JSON: ${error.message}`, { subject: label });
  }
  const top = openValue(value, { name: label, kind: 'reference' });
  const lists = top.object(['nodes', 'edges', 'conditionalEdges'], { unknown: 'ignore' });
  const listed = lists.nodes.optionalList(maxNodes).map(readNode);
  const byVersion = firstBy(listed, ({ version }) => version);
  const edges = createEdgeTable(byVersion, label);
  for (const item of lists.edges.optionalList(maxEdges)) {
    const [from, to, ...more] = item.list(3).map((field) => listed[field.integer(0, listed.length - 1)]);
    if (from === undefined || to === undefined || more.length > 0)
      return item.mismatch('two indexes of nodes');
    edges.add(from.version, to.version, []);
  }
  for (const item of lists.conditionalEdges.optionalList(maxEdges)) {
    const fields = item.object(['edges', 'risks'], { unknown: 'ignore' });
    const risks = fields.risks.list(maxRisks).map(readRisk);
    for (const edge of fields.edges.list(maxEdges)) {
      const { from, to } = edge.object(['from', 'to'], { unknown: 'ignore' });
      edges.add(from.text(), to.text(), risks);
    }
  }
  const nodes = [...byVersion.values()].sort((a, b) => compareVersions(a.parsed, b.parsed));
  return { label, nodes, byVersion, edges: edges.byVersion };
}

function readNode(item: Field<never>) {
  const fields = item.object(['version', 'payload', 'metadata'], { unknown: 'ignore' });
  const version = fields.version.text();
  const parsed = fields.version.parsed((text) => {
    try {
      return parseVersion(text);
    } catch {
      throw new OpmateError('INVALID', `invalid version ${quoteGo(text)}`);
    }
  });
  const payload = readDigestReference(fields.payload);
  const { digest } = payload;
  const named = fields.metadata.field(manifestKey).optionalText();
  if (named !== undefined && named !== digest)
    return fields.metadata.fail(`names manifest ${quoteShort(named)}, payload has ${digest}`);
  const channels = fields.metadata.field(channelsKey).optionalText(65_536) ?? '';
  return {
    /** Version as written in the graph. */
    version,
    parsed,
    /** Payload by digest. */
    payload,
    /** Channels of the release, sorted; empty if the graph has none. */
    channels: channels
      .split(',')
      .filter((name) => name !== '')
      .sort(),
  };
}

function readRisk(item: Field<never>) {
  const fields = item.object(['name', 'url', 'message'], { unknown: 'ignore' });
  return {
    name: fields.name.optionalText() ?? 'unnamed',
    url: fields.url.optionalText() ?? '',
    message: fields.message.optionalText(65_536) ?? '',
  };
}

/** Returns edges by version; of duplicates the one without risks is kept. */
function createEdgeTable(nodes: ReadonlyMap<string, ReleaseNode>, label: string) {
  const edges = new Map<string, Map<string, Update>>();
  let count = 0;
  return {
    add(from: string, version: string, risks: readonly UpdateRisk[]): void {
      if (++count > maxEdges) throw new LimitError(`more than ${maxEdges} edges`, { subject: label });
      const to = nodes.get(version);
      if (to === undefined || !nodes.has(from)) return;
      const known = getOrAdd(edges, from, () => new Map<string, Update>());
      const other = known.get(version);
      if (other === undefined || risks.length === 0) known.set(version, { to, risks });
    },
    get byVersion(): Map<string, Update[]> {
      return new Map(
        [...edges].map(([from, known]) => [
          from,
          [...known.values()].sort((a, b) => compareVersions(b.to.parsed, a.to.parsed)),
        ]),
      );
    },
  };
}

/** Returns the releases and updates of several graphs together; of duplicates the first. */
export function mergeGraphs(graphs: readonly UpdateGraph[]): UpdateGraph {
  const label = graphs.map((graph) => graph.label).join(', ');
  const all = firstBy(
    graphs.flatMap(({ nodes }) => nodes),
    ({ version }) => version,
  );
  const table = createEdgeTable(all, label);
  for (const { edges } of graphs)
    for (const [from, updates] of edges)
      for (const { to, risks } of updates) table.add(from, to.version, risks);
  const nodes = [...all.values()].sort((a, b) => compareVersions(a.parsed, b.parsed));
  return { label, nodes, byVersion: all, edges: table.byVersion };
}

/**
 * Returns a graph reduced to some releases and their updates, in the form of a response of an update service: it
 * selects the same releases as the whole graph, provided the oldest and newest are included.
 */
export function reduceGraph({ nodes, edges }: UpdateGraph, versions: ReadonlySet<string>): JsonObject {
  const kept = nodes.filter(({ version }) => versions.has(version));
  const indexes = new Map(kept.map(({ version }, i) => [version, i]));
  const plain: JsonValue[] = [];
  const conditional: JsonValue[] = [];
  for (const { version: from } of kept) {
    for (const { to, risks } of edges.get(from) ?? []) {
      const [start, end] = [indexes.get(from), indexes.get(to.version)];
      if (start === undefined || end === undefined) continue;
      if (risks.length === 0) plain.push([start, end]);
      else
        conditional.push({
          edges: [{ from, to: to.version }],
          risks: risks.map(({ name, url, message }) => ({ name, url, message })),
        });
    }
  }
  return {
    nodes: kept.map(({ version, payload }) => ({ version, payload: formatReference(payload) })),
    edges: plain,
    conditionalEdges: conditional,
  };
}
