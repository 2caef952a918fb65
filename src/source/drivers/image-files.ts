import type { ExtractedLayers } from '../../archive/layers.js';
import { defaultArchiveLimits } from '../../archive/limits.js';
import { OpmateError } from '../../core/errors.js';
import { type Reference, formatReference } from '../../core/reference.js';
import { imageLabels } from '../../model/image-labels.js';
import { extractImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import { type SourceOptions, withImage } from '../source.js';

/** The digest that a reference means at this moment. Throws OpmateError NOT_FOUND where there is none. */
export async function digestOfImage(reference: Reference, options: SourceOptions): Promise<string> {
  if (reference.transport === 'docker' && reference.digest !== undefined) return reference.digest;
  const opened = await openReference(reference, { ...options, connection: await options.connect() });
  try {
    const found = await opened.repository.headManifest(opened.reference, options);
    if (found !== undefined) return found.digest;
    throw new OpmateError('NOT_FOUND', `${formatReference(reference)}: manifest unknown`, {
      hint: 'check repository and tag',
    });
  } finally {
    await opened.close();
  }
}

/** The same reference by its digest alone. */
export function pinnedTo(reference: Reference, digest: string): Reference {
  const pinned = { ...reference, digest };
  delete pinned.tag;
  return { ...pinned, text: formatReference(pinned) };
}

/**
 * Unpacks what is under `roots` in an image that is no catalog into `destination`, which must not be there yet.
 * Throws OpmateError.
 */
export async function fetchImage(
  reference: Reference,
  destination: string,
  roots: readonly string[],
  options: SourceOptions,
): Promise<ExtractedLayers> {
  const { limits = defaultArchiveLimits, signal, logger } = options;
  return withImage(reference, options, async (image) => {
    for (const label of [imageLabels.database, imageLabels.configs]) {
      if (image.labels[label] === undefined) continue;
      throw new OpmateError('UNSUPPORTED', `${reference.text}: is a catalog, not a bundle`, {
        hint: `it has the label ${label}; name the image of one bundle`,
      });
    }
    return extractImage(image, destination, { roots, limits, signal, logger });
  });
}
