import { parseReference } from '../../core/reference.js';
import type { Field } from '../../document/field.js';
import type { JsonValue } from '../../document/json.js';
import { isTag } from '../../oci/registry/registry-names.js';
import { type DigestReference, readDigestReference } from '../../release/digest-reference.js';
import type { GraphImage, OpenedReleases, UsedGraph } from '../release/open-releases.js';

/** The releases of a lock. */
export interface LockedReleases {
  releases: LockedRelease[];
  graphs: UsedGraph[];
  /** Undefined if the set has no graph image, or it was not built. */
  graphImage?: ReturnType<GraphImage['made']>;
}

/** A release of the set. */
export interface LockedRelease {
  version: string;
  /** Undefined, as `channel`, if the configuration names the image. */
  architecture: string | undefined;
  channel: string | undefined;
  image: DigestReference;
  /** Tag below the target. */
  tag: string;
  /** Undefined if the run accepted the release without a signature. */
  signature: Buffer | undefined;
}

const maxReleases = 10_000;
const maxGraphs = 1000;
const maxSignatureLength = 128 * 1024;

/** Returns the releases of a plan as a lock pins them; undefined if there are none. */
export function lockReleases({
  releases,
  graphs,
  graphImage,
}: Pick<OpenedReleases, 'releases' | 'graphs' | 'graphImage'>): LockedReleases | undefined {
  if (releases.length === 0 && graphImage === undefined) return undefined;
  return {
    releases: releases.map(({ version, selected, image, tag, signature }) => ({
      ...{ version, image, tag, signature },
      ...{ architecture: selected?.architecture, channel: selected?.channel },
    })),
    graphs,
    graphImage: graphImage?.made(),
  };
}

/** Encodes releases for a lock file. */
export function encodeReleases({ releases, graphs, graphImage }: LockedReleases): JsonValue {
  return {
    releases: releases.map(({ version, architecture, channel, image, tag, signature }) => ({
      version,
      ...(architecture !== undefined && { architecture }),
      ...(channel !== undefined && { channel }),
      image: image.text,
      tag,
      ...(signature !== undefined && { signature: signature.toString('base64') }),
    })),
    graphs: graphs.map(({ architecture, type, channel, digest, graph }) => ({
      ...{ architecture, type, channel, digest, graph },
    })),
    ...(graphImage !== undefined && { graphImage: { base: graphImage.base, data: graphImage.data } }),
  };
}

/** Reads the releases of a lock file; signatures are not verified. */
export function readReleases(field: Field<never>): LockedReleases {
  const fields = field.object(['releases', 'graphs', 'graphImage']);
  return {
    releases: fields.releases.list(maxReleases).map(readRelease),
    graphs: fields.graphs.list(maxGraphs).map(readGraph),
    ...(fields.graphImage.isPresent && { graphImage: readGraphImage(fields.graphImage) }),
  };
}

function readRelease(item: Field<never>): LockedRelease {
  const fields = item.object(['version', 'architecture', 'channel', 'image', 'tag', 'signature']);
  const { signature } = fields;
  return {
    version: fields.version.text(),
    architecture: fields.architecture.optionalText(),
    channel: fields.channel.optionalText(),
    image: readDigestReference(fields.image),
    tag: fields.tag.matching(isTag, 'a tag'),
    signature: signature.isPresent ? Buffer.from(signature.text(maxSignatureLength), 'base64') : undefined,
  };
}

function readGraph(item: Field<never>): UsedGraph {
  const fields = item.object(['architecture', 'type', 'channel', 'digest', 'graph']);
  return {
    architecture: fields.architecture.text(),
    type: fields.type.choice(['ocp', 'okd'] as const),
    channel: fields.channel.text(),
    digest: fields.digest.digest(),
    graph: fields.graph.jsonObject(),
  };
}

function readGraphImage(field: Field<never>): { base: string; data: string } {
  const { base, data } = field.object(['base', 'data']);
  return {
    base: base.parsed((text) => {
      parseReference(text);
      return text;
    }),
    data: data.digest(),
  };
}
