import { computeDigest } from '../../core/digest.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { holdBuiltImages } from '../../oci/image/built-images.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import { mediaTypes } from '../../oci/image/types.js';

const configType = 'application/vnd.cncf.helm.config.v1+json';
/** Media type of a packed chart in a registry. */
export const chartContentType = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

/** A packed chart in a file. */
export interface PackedChart {
  name: string;
  version: string;
  /** Content of Chart.yaml. */
  metadata: JsonObject;
  file: string;
  digest: string;
  size: number;
}

/**
 * Opens a packed chart as the artifact of `helm push`, without its time, so equal charts are equal artifacts. The file
 * must exist while it is open. (Source: Helm 3, pkg/registry.)
 */
export function openChartArtifact(chart: PackedChart): OpenedReference {
  const { name, version, metadata, file, digest, size } = chart;
  const config = Buffer.from(encodeGoJson(metadata));
  const describe = (mediaType: string, bytes: Buffer) => ({
    mediaType,
    digest: computeDigest(bytes),
    size: bytes.length,
  });
  const configDescriptor = describe(configType, config);
  const layer = { mediaType: chartContentType, digest, size };
  const manifest = Buffer.from(
    encodeGoJson({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config: configDescriptor,
      layers: [layer],
      annotations: {
        'org.opencontainers.image.title': name,
        'org.opencontainers.image.version': version,
      },
    }),
  );
  const descriptor = describe(mediaTypes.ociManifest, manifest);
  const repository = holdBuiltImages(`chart ${name} ${version}`, [
    {
      descriptor,
      manifest,
      config,
      configDescriptor,
      platform: { os: 'linux', architecture: 'amd64' },
      layers: [],
      layerFiles: [{ descriptor: layer, file }],
      base: undefined,
    },
  ]);
  return holdOpen({ repository, digest: descriptor.digest });
}
