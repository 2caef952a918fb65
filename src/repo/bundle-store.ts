import { decodeMeta } from '../catalog/blob.js';
import { toMeta } from '../catalog/meta.js';
import { Spool, type SpoolSlot } from '../catalog/spool.js';
import { OpmateError } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { createLimiter } from '../core/limiter.js';
import { findReference } from '../core/reference.js';
import { parseGoJson } from '../document/go-json.js';
import { isJsonObject } from '../document/json.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { encodeBlob } from '../model/encode.js';

/** Bundles by image, each read once; `close` it at the end. */
export interface BundleStore {
  /** Returns the bundle in an image without migrating it. Throws OpmateError, the same one for each request. */
  read(image: string): Promise<BundleBlob>;
  /** Number of images read. */
  readonly size: number;
  close(): Promise<void>;
}

/** Maximum number of images read at the same time. */
const maxConcurrent = 8;

/**
 * Creates a store that reads images with `readImage`. Images of a registry that became unreachable are not requested
 * again. Memory does not grow with the content of bundles.
 */
export function createBundleStore(
  readImage: (image: string) => Promise<BundleBlob>,
  temporaryDirectory: string,
): BundleStore {
  const spool = new Spool(temporaryDirectory);
  const slots = new Map<string, Promise<SpoolSlot>>();
  const unreachable = new Set<string>();
  const limit = createLimiter(maxConcurrent);

  async function fetch(image: string): Promise<SpoolSlot> {
    const parsed = findReference(image);
    const registry = parsed?.transport === 'docker' ? parsed.registry : undefined;
    if (registry !== undefined && unreachable.has(registry)) {
      throw new OpmateError('NETWORK', `skipped: ${registry} is unreachable`);
    }
    try {
      return await spool.append(encodeBlob({ kind: 'bundle', blob: await readImage(image) }, 'json'));
    } catch (error) {
      const isNetwork = error instanceof OpmateError && error.code === 'NETWORK';
      if (isNetwork && registry !== undefined) unreachable.add(registry);
      throw error;
    }
  }

  return {
    async read(image) {
      const slot = await getOrAdd(slots, image, () => {
        const fetching = limit(() => fetch(image));
        fetching.catch(() => undefined);
        return fetching;
      });
      return decodeStored((await spool.read(slot)).toString(), image);
    },
    get size() {
      return slots.size;
    },
    close: () => spool.close(),
  };
}

function decodeStored(text: string, image: string): BundleBlob {
  const value = parseGoJson(text);
  const origin = { file: image, offset: 0, length: text.length, syntax: 'json' } as const;
  const decoded = isJsonObject(value) ? decodeMeta(toMeta(value, 'json', origin)) : undefined;
  if (decoded?.kind !== 'bundle') throw new OpmateError('INTERNAL', 'stored bundle is no bundle');
  return decoded.blob;
}
