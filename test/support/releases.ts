/** Releases of OpenShift for tests: update graphs and release images. */
import { createHash } from 'node:crypto';

export function digestOfText(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Digest of the payload that a graph of `graphText` names for a version. */
export function payloadOf(version: string, repository = 'quay.io/openshift-release-dev/ocp-release'): string {
  return `${repository}@${digestOfText(version)}`;
}

interface GraphOptions {
  /** Payload by version, where it is not that of `payloadOf`. */
  payloads?: Readonly<Record<string, string>>;
  conditional?: readonly { from: string; to: string; risk: string }[];
  channels?: string;
}

/** The answer of an update service; edges are pairs of versions. */
export function graphText(
  versions: readonly string[],
  edges: readonly (readonly [string, string])[] = [],
  { payloads = {}, conditional = [], channels = '' }: GraphOptions = {},
): string {
  return JSON.stringify({
    version: 1,
    nodes: versions.map((version) => ({
      version,
      payload: payloads[version] ?? payloadOf(version),
      metadata: { 'io.openshift.upgrades.graph.release.channels': channels },
    })),
    edges: edges.map((pair) => pair.map((version) => versions.indexOf(version))),
    conditionalEdges: conditional.map(({ from, to, risk }) => ({
      edges: [{ from, to }],
      risks: [
        {
          url: `https://example.com/${risk}`,
          name: risk,
          message: 'Some clusters lose something.',
          matchingRules: [{ type: 'Always' }],
        },
      ],
    })),
  });
}

/** `image-references` of a release; components by name, each an image by digest. */
export function imageReferences(version: string, components: Readonly<Record<string, string>>): string {
  return JSON.stringify({
    kind: 'ImageStream',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name: version },
    spec: {
      tags: Object.entries(components).map(([name, image]) => ({
        name,
        from: { kind: 'DockerImage', name: image },
      })),
    },
  });
}

/** The manifest of boot images with KubeVirt disks by key. */
export function bootImages(disks: Readonly<Record<string, string>>): string {
  const architectures = Object.fromEntries(
    Object.entries(disks).map(([key, image]) => [key, { images: { kubevirt: { 'digest-ref': image } } }]),
  );
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coreos-bootimages' },
    data: { stream: JSON.stringify({ architectures }) },
  });
}
