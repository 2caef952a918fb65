import type { JsonValue } from '../../document/json.js';
import { setFields } from '../../kube/object.js';
import { type DigestReference, readDigestReference } from '../../release/digest-reference.js';
import { listOf, objectOf, optional, read } from './locked-fields.js';
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
      version,
      image,
      tag,
      signature,
      architecture: selected?.architecture,
      channel: selected?.channel,
    })),
    graphs,
    graphImage: graphImage?.made(),
  };
}

/** Encodes releases for a lock file. */
export function encodeReleases({ releases, graphs, graphImage }: LockedReleases): JsonValue {
  return {
    releases: releases.map((release) => ({
      ...setFields(release, ['version', 'architecture', 'channel']),
      image: release.image.text,
      tag: release.tag,
      ...(release.signature !== undefined && { signature: release.signature.toString('base64') }),
    })),
    graphs: graphs.map((graph) => setFields(graph, ['architecture', 'type', 'channel', 'digest', 'graph'])),
    ...(graphImage !== undefined && { graphImage: setFields(graphImage, ['base', 'data']) }),
  };
}

const readSignature = optional((field) => Buffer.from(field.text(maxSignatureLength), 'base64'));

const readRelease = objectOf<LockedRelease>({
  version: read.text,
  architecture: (field) => field.optionalText(),
  channel: (field) => field.optionalText(),
  image: readDigestReference,
  tag: read.tag,
  signature: readSignature,
});

const readGraph = objectOf<UsedGraph>({
  architecture: read.text,
  type: (field) => field.choice(['ocp', 'okd'] as const),
  channel: read.text,
  digest: read.digest,
  graph: (field) => field.jsonObject(),
});

/** Reads the releases of a lock file; signatures are not verified. */
export const readReleases = objectOf<LockedReleases>({
  releases: listOf(readRelease, maxReleases),
  graphs: listOf(readGraph, maxGraphs),
  graphImage: optional(objectOf({ base: read.reference, data: read.digest })),
});
