import { readFile, rm, stat } from 'node:fs/promises';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest } from '../../core/digest.js';
import { OpmateError, getMessage, systemCode, throwIfCancelled } from '../../core/errors.js';
import { isJsonObject } from '../../document/json.js';
import { moveWhole } from '../../files/move-whole.js';
import { readFileClock } from '../../files/staging.js';
import { LayoutStore } from './layout-store.js';
import { isManifestType } from '../image/manifest.js';
import { maxManifestBytes } from '../image/types.js';

/** Options of `collectGarbage`. */
interface CollectGarbageOptions extends CancelOptions {
  /** Minimum age of removed blobs, in milliseconds; default one hour. */
  minAgeMs?: number | undefined;
  /** List the blobs without removing them; default false. */
  dryRun?: boolean | undefined;
}

/** Age that spares pushes under way. */
export const defaultGarbageAgeMs = 3_600_000;

/**
 * Removes unreferenced blobs of an OCI layout directory and yields each, with its size in bytes. Safe while a registry
 * serves the layout. Throws OpmateError, INVALID for a manifest that cannot be read, before anything is removed.
 */
export async function* collectGarbage(
  directory: string,
  { minAgeMs = defaultGarbageAgeMs, dryRun = false, signal }: CollectGarbageOptions = {},
): AsyncGenerator<{ digest: string; size: number }> {
  const store = await LayoutStore.open(directory);
  let referenced = await findReferenced(store, signal);
  let { generation } = store;
  const youngest = (await readFileClock(store.directory)) - minAgeMs;
  for await (const { digest, size, mtimeMs } of store.blobs()) {
    throwIfCancelled(signal);
    // Claimed blobs stay.
    if (referenced.has(digest) || mtimeMs > youngest) continue;
    if (dryRun || (await store.exclusively(() => removeUnused(digest)))) yield { digest, size };
  }

  /** Removes a blob to which no image refers that was written since. */
  async function removeUnused(digest: string): Promise<boolean> {
    await store.entries();
    if (store.generation !== generation) {
      referenced = await findReferenced(store, signal);
      ({ generation } = store);
    }
    return !referenced.has(digest) && (await removeUnlessClaimed(store, digest, youngest));
  }
}

/** Moves a blob aside, and back if it was claimed just before. */
async function removeUnlessClaimed(store: LayoutStore, digest: string, youngest: number): Promise<boolean> {
  const aside = store.stagingPath();
  try {
    await moveWhole(store.blobPath(digest), aside);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
  const { mtimeMs } = await stat(aside);
  if (mtimeMs > youngest) {
    await store.adoptBlob(aside, digest);
    return false;
  }
  await rm(aside, { force: true });
  return true;
}

async function findReferenced(
  store: LayoutStore,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const referenced = new Set<string>();
  const pending = (await store.entries()).map(({ digest }) => digest);
  const seen = new Set(pending);
  for (let digest = pending.pop(); digest !== undefined; digest = pending.pop()) {
    throwIfCancelled(signal);
    referenced.add(digest);
    const document = await readManifest(store, digest);
    for (const child of referencesIn(document)) {
      referenced.add(child.digest);
      if (!child.isManifest || seen.has(child.digest)) continue;
      seen.add(child.digest);
      pending.push(child.digest);
    }
  }
  return referenced;
}

/** Returns the JSON of a manifest; undefined if it is missing or too large. */
async function readManifest(store: LayoutStore, digest: string): Promise<unknown> {
  const size = await store.blobSize(digest);
  if (size === undefined || size > maxManifestBytes) return undefined;
  const fail = (problem: string): OpmateError =>
    new OpmateError('INVALID', `${digest}: ${problem}`, {
      subject: store.directory,
      hint: 'remove or push it again: its references are unknown',
    });
  const bytes = await readFile(store.blobPath(digest));
  if (computeDigest(bytes, parseDigest(digest).algorithm) !== digest) {
    throw fail('content does not match its digest');
  }
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch (error) {
    throw fail(`invalid manifest: ${getMessage(error)}`);
  }
}

/** Yields every digest in a document; that of a manifest by its media type or in the list of an index. */
function* referencesIn(value: unknown, isListed = false): Generator<{ digest: string; isManifest: boolean }> {
  if (typeof value === 'string') {
    if (isDigest(value)) yield { digest: value, isManifest: isListed };
  } else if (Array.isArray(value)) {
    for (const item of value) yield* referencesIn(item, isListed);
  } else if (isJsonObject(value)) {
    const { mediaType } = value;
    const isManifest = isListed || (typeof mediaType === 'string' && isManifestType({ mediaType }));
    for (const [key, member] of Object.entries(value)) {
      yield* referencesIn(member, key === 'digest' ? isManifest : key === 'manifests');
    }
  }
}
