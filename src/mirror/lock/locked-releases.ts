import { parseReference } from '../../core/reference.js';
import type { Field } from '../../document/field.js';
import type { JsonValue } from '../../document/json.js';
import { isTag } from '../../oci/registry/registry-names.js';
import { type DigestReference, readDigestReference } from '../../release/digest-reference.js';
import type { OpenedReleases, UsedGraph } from '../release/open-releases.js';

/** The releases of a lock. */
export interface LockedReleases {
  releases: LockedRelease[];
  graphs: UsedGraph[];
  /** Undefined where the set has no graph image, and where it was not built. */
  graphImage?: { base: string; data: string } | undefined;
}

/** A release of the set. */
export interface LockedRelease {
  version: string;
  /** Undefined, as `channel` is, where the configuration names the image. */
  architecture: string | undefined;
  channel: string | undefined;
  image: DigestReference;
  /** Below the target. */
  tag: string;
  /** Bytes of its signature; undefined where none was asked for. */
  signature: Buffer | undefined;
}

const maxReleases = 10_000;
const maxGraphs = 1000;
const maxSignatureLength = 128 * 1024;
const types = ['ocp', 'okd'] as const;

/** What a lock says of the releases of a plan; undefined where there are none. */
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

/** Releases as a lock file has them. */
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

/** Reads them; nothing that a signature protects is believed yet. */
export function readReleases(field: Field<never>): LockedReleases {
  const fields = field.object(['releases', 'graphs', 'graphImage']);
  const { graphImage } = fields;
  return {
    releases: fields.releases.list(maxReleases).map(readRelease),
    graphs: fields.graphs.list(maxGraphs).map((item) => {
      const { architecture, type, channel, digest, graph } = item.object([
        ...(['architecture', 'type', 'channel', 'digest', 'graph'] as const),
      ]);
      return {
        ...{ architecture: architecture.text(), type: type.choice(types), channel: channel.text() },
        ...{ digest: digest.digest(), graph: graph.jsonObject() },
      };
    }),
    ...(graphImage.isPresent && { graphImage: readGraphImage(graphImage) }),
  };
}

function readRelease(item: Field<never>): LockedRelease {
  const fields = item.object(['version', 'architecture', 'channel', 'image', 'tag', 'signature']);
  const signature = fields.signature.isPresent ? fields.signature.text(maxSignatureLength) : undefined;
  return {
    version: fields.version.text(),
    architecture: fields.architecture.optionalText(),
    channel: fields.channel.optionalText(),
    image: readDigestReference(fields.image),
    tag: fields.tag.matching(isTag, 'a tag'),
    signature: signature === undefined ? undefined : Buffer.from(signature, 'base64'),
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
