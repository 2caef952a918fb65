import path from 'node:path';
import { Readable } from 'node:stream';
import { ArchiveMeter, type ArchiveLimits, defaultArchiveLimits, showSize } from '../archive/limits.js';
import { readTar } from '../archive/tar-reader.js';
import { type TarInput, writeLayer } from '../archive/tar-writer.js';
import type { CancelOptions } from '../core/concurrency.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { holdBuiltImages } from '../oci/image/built-images.js';
import { buildImage, createImageIndex, openBases, readWholeConfig } from '../oci/image/image-builder.js';
import type { Repository } from '../oci/registry/repository.js';

/** URL of the graph data of the public update service. */
export const graphDataUrl = 'https://api.openshift.com/api/upgrades_info/graph-data';
/** Base of the graph image, which needs a shell and `cp`. */
export const defaultGraphBase = 'registry.access.redhat.com/ubi9/ubi:latest';

/** Maximum bytes of the graph data archive, and of its content. */
export const maxGraphDataBytes = 64 * 1024 * 1024;
const maxUnpackedBytes = 256 * 1024 * 1024;

const place = 'var/lib/cincinnati-graph-data';
const command = ['/bin/bash', '-c', `exec cp -rp /${place}/* /var/lib/cincinnati/graph-data`];

interface GraphImageOptions extends CancelOptions {
  /** Directory of the layer until the image is copied. */
  directory: string;
  limits?: ArchiveLimits | undefined;
}

/**
 * Builds the image that provides graph data to an update service in a cluster: a layer on each platform of a base,
 * and an index. Equal data and bases make equal images. Throws OpmateError INVALID for an archive without channels,
 * UNSUPPORTED for links, LIMIT, and as opening the base. (Source: oc-mirror v2; the OpenShift Update Service
 * operator, which runs the image as an init container.)
 */
export async function buildGraphImage(
  data: Buffer,
  base: { repository: Repository; reference: string },
  options: GraphImageOptions,
): Promise<{ digest: string; repository: Repository }> {
  const files = await readGraphData(data, options);
  const hostPlatform = { os: 'linux', architecture: 'amd64' };
  const bases = await openBases(base.repository, base.reference, { hostPlatform, signal: options.signal });
  const layer = await writeLayer(path.join(options.directory, 'graph-data.tar.gz'), files, options);
  const images = await Promise.all(
    bases.map(async (image) =>
      buildImage({
        base: image,
        baseConfig: await readWholeConfig(image, options),
        platform: image.platform,
        layers: [layer],
        cmd: command,
      }),
    ),
  );
  const index = createImageIndex(images);
  return { digest: index.descriptor.digest, repository: holdBuiltImages('graph image', images, index) };
}

async function readGraphData(
  data: Buffer,
  { limits = defaultArchiveLimits, signal }: GraphImageOptions,
): Promise<TarInput[]> {
  const label = 'graph data';
  const meter = new ArchiveMeter({ ...limits, maxUnpackedSize: maxUnpackedBytes });
  const files = new Map<string, TarInput>();
  let hasChannels = false;
  for await (const entry of readTar(Readable.from([data], { objectMode: false }), { label, meter, signal })) {
    if (entry.type === 'directory') continue;
    if (entry.type !== 'file')
      throw new OpmateError('UNSUPPORTED', `${entry.path} is a ${entry.type}`, { subject: label });
    if (entry.size > maxUnpackedBytes)
      throw new LimitError(`${entry.path} is larger than ${showSize(maxUnpackedBytes)}`, { subject: label });
    const chunks: Buffer[] = [];
    for await (const chunk of entry.body) chunks.push(chunk);
    files.set(entry.path, { path: `${place}/${entry.path}`, content: Buffer.concat(chunks) });
    hasChannels ||= entry.path.startsWith('channels/');
  }
  if (hasChannels) return [...files.values()];
  throw new OpmateError('INVALID', 'no channels', {
    subject: label,
    hint: 'specify an archive such as https://api.openshift.com/api/upgrades_info/graph-data',
  });
}
