import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { normalizeEntryPath } from '../../archive/entry-path.js';
import { defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { withOpen } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { parseManifest } from '../../oci/image/manifest.js';
import { makeDirectory } from '../../files/make-directory.js';
import { extractBlobs } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import { retryDamaged } from '../../oci/transport/retry-policy.js';
import type { Descriptor } from '../../oci/image/types.js';
import { type ArtifactPlace, pinReference } from '../place.js';
import type { SourceSession } from '../session.js';
import type { ResolvedPlace, UnpackedPlace } from './driver.js';
import { digestOfImage } from './image.js';
import { toUnpackedPlace } from './local.js';

/** Annotation with the file name of a layer. (Source: OCI image specification, annotations.) */
const titleKey = 'org.opencontainers.image.title';

/** Resolves the digest of an artifact. Each layer is an archive, or the file named by its title. Throws OpmateError. */
export async function resolveArtifact(place: ArtifactPlace, session: SourceSession): Promise<ResolvedPlace> {
  const { directory } = place;
  const reference = parseReference(place.ref);
  const pinned = pinReference(reference, await digestOfImage(reference, session));
  const ref = pinned.text;
  return toUnpackedPlace({ id: `artifact ${ref}`, ref }, session, { directory }, (destination) =>
    unpackArtifact(pinned, destination, session),
  );
}

function unpackArtifact(
  reference: Reference,
  destination: string,
  session: SourceSession,
): Promise<UnpackedPlace['problems']> {
  const { limits = defaultArchiveLimits, signal } = session;
  return withOpen(openReference(reference, session), async ({ repository }) => {
    const layers = await readLayers(repository, reference, session);
    const archives = layers.filter((layer) => !isFile(layer));
    const { problems } = await extractBlobs(repository, archives, destination, { ...session, roots: [''] });
    let total = 0;
    for (const layer of layers.filter(isFile)) {
      throwIfCancelled(signal);
      total += layer.size;
      if (total > limits.maxUnpackedSize) {
        throw new LimitError(`more than ${showSize(limits.maxUnpackedSize)} of files`, {
          subject: reference.text,
          hint: 'raise the limit with limits.maxUnpackedSize if you trust the source',
        });
      }
      const name = normalizeEntryPath(layer.annotations?.[titleKey] as string, reference.text);
      const file = path.join(destination, name);
      await makeDirectory(path.dirname(file), 0o700);
      await retryDamaged(() => writeBlob(repository, layer, file, session), session);
    }
    return problems;
  });
}

/** Writes a blob to a new file; removes the file after a failure. */
async function writeBlob(
  repository: Repository,
  blob: Descriptor,
  file: string,
  { signal }: SourceSession,
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

async function readLayers(
  repository: Repository,
  { text: ref, digest = '' }: Reference,
  { signal }: SourceSession,
): Promise<Descriptor[]> {
  const { bytes, descriptor } = await repository.getManifest(digest, { signal });
  const parsed = parseManifest(bytes, { subject: ref, mediaType: descriptor.mediaType });
  if (parsed.kind === 'image') return parsed.manifest.layers;
  throw new OpmateError('UNSUPPORTED', 'expected an artifact, got an image index', {
    subject: ref,
    hint: 'use type: Image for a catalog image',
  });
}

/** Reports whether a layer is a file: it has a title, and its media type is not that of an archive. */
function isFile({ mediaType, annotations }: Descriptor): boolean {
  return annotations?.[titleKey] !== undefined && !/[.+](?:tar|gzip|zstd)\b/.test(mediaType);
}
