import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { normalizeEntryPath } from '../../archive/entry-path.js';
import { defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Reference, formatReference, parseReference } from '../../core/reference.js';
import { parseManifest } from '../../oci/image/manifest.js';
import { makeDirectory } from '../../files/make-directory.js';
import { extractBlobs } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import { retryDamaged } from '../../oci/registry/retry-policy.js';
import type { Descriptor } from '../../oci/image/types.js';
import { digestOfImage } from './image-files.js';
import { catalogWithin } from './directory-below.js';
import type { CatalogOrigin, FoundOrigin, OriginOptions } from '../place.js';
import type { CatalogSource } from '../source.js';

type ArtifactOrigin = Extract<CatalogOrigin, { type: 'Artifact' }>;

/** What tools that push files name them by. (Source: OCI image specification, annotations.) */
const titleKey = 'org.opencontainers.image.title';

/** An artifact of a registry or layout: each layer is an archive, or the file that its title names. */
export async function lookAtArtifact(origin: ArtifactOrigin, options: OriginOptions): Promise<FoundOrigin> {
  const reference = parseReference(origin.ref);
  const digest = await digestOfImage(reference, options);
  const pinned: Reference = { ...reference, digest };
  delete pinned.tag;
  const ref = formatReference(pinned);
  const { directory } = origin;
  return {
    state: { id: `artifact ${ref}${directory === undefined ? '' : ` ${directory}`}`, ref },
    isImmutable: true,
    open: () => openArtifact(pinned, ref, digest, directory, options),
  };
}

function openArtifact(
  reference: Reference,
  ref: string,
  digest: string,
  directory: string | undefined,
  options: OriginOptions,
): Promise<CatalogSource> {
  const { limits = defaultArchiveLimits, signal, logger } = options;
  return openInTemporaryDirectory(options, async (temporary) => {
    const root = path.join(temporary, 'tree');
    const opened = await openReference(reference, { ...options, connection: await options.connect() });
    try {
      const { repository } = opened;
      const layers = await layersOf(repository, ref, digest, options);
      const archives = layers.filter((layer) => !isFile(layer));
      await extractBlobs(repository, archives, root, { roots: [''], limits, signal, logger });
      let total = 0;
      for (const layer of layers.filter(isFile)) {
        throwIfCancelled(signal);
        total += layer.size;
        if (total > limits.maxUnpackedSize) {
          throw new LimitError(`${ref}: more than ${showSize(limits.maxUnpackedSize)} of files`, {
            hint: 'raise the limit with --max-unpacked-size if you trust where this comes from',
          });
        }
        const name = normalizeEntryPath(layer.annotations?.[titleKey] as string, ref);
        const file = path.join(root, name);
        await makeDirectory(path.dirname(file), 0o700);
        await retryDamaged(() => writeBlob(repository, layer, file, options), options);
      }
    } finally {
      await opened.close();
    }
    const catalog = await catalogWithin(root, directory, ref);
    return { kind: 'catalog', catalog, close: () => catalog.close() };
  });
}

/** Writes a blob to a new file, and leaves nothing there after a failure. */
async function writeBlob(
  repository: Repository,
  blob: Descriptor,
  file: string,
  { signal }: OriginOptions,
): Promise<void> {
  const body = await repository.openBlob(blob, { signal });
  const output = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  let isOpen = false;
  output.once('open', () => (isOpen = true));
  try {
    await pipeline(body, output, { signal });
  } catch (error) {
    if (isOpen) await rm(file, { force: true });
    throw error;
  }
}

async function layersOf(
  repository: Repository,
  ref: string,
  digest: string,
  { signal }: OriginOptions,
): Promise<Descriptor[]> {
  const { bytes, descriptor } = await repository.getManifest(digest, { signal });
  const parsed = parseManifest(bytes, { subject: ref, mediaType: descriptor.mediaType });
  if (parsed.kind === 'image') return parsed.manifest.layers;
  throw new OpmateError('UNSUPPORTED', `${ref}: is an index of several manifests, not an artifact`, {
    hint: 'for the image of a catalog, write type: Image',
  });
}

/** A layer with a title is a file, unless it is an archive by its type. */
function isFile({ mediaType, annotations }: Descriptor): boolean {
  return annotations?.[titleKey] !== undefined && !/[.+](?:tar|gzip|zstd)\b/.test(mediaType);
}
