import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import type { RegistryReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import { getAttachedTags } from '../../oci/signatures/attached-signatures.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { WritableRepository } from '../../oci/registry/repository.js';
import type { ReadDeleteItem } from './delete-list.js';
import type { KeptImages } from './kept-images.js';
import { findOtherUsers } from './other-users.js';
import { createPlaces, getMaxSmallRequests, isImageFailure } from '../transfer/transfer-step.js';

interface DeleteOptions {
  session: ImageSession;
  maxPerRegistry: number;
  /** Deletes signatures and other attachments too, by tag or as referrers. */
  signatures: boolean;
  keep: KeptImages;
  /** Refuses images that other tags and indexes of their repositories use. */
  refusesShared: boolean;
  /** Looks up all images, and deletes none. */
  dryRun: boolean;
  /** Called with each name of an image once it is deleted. */
  onDeleted?: ((name: string, digest: string) => void) | undefined;
}

/** An image to delete. */
export interface DeletableImage extends Pick<ReadDeleteItem, 'reference'> {
  /** Digest that its tag must have; another image under the tag is kept. */
  digest?: string | undefined;
}

/** Result of deleting a list; each part in its order. */
interface DeleteReport {
  done: { digest: string; name: string }[];
  missing: string[];
  /** Messages about images kept for other sets. */
  kept: string[];
  failed: OpmateError[];
  /** Error that stopped the run, so the rest of the list was not tried. */
  stopped: OpmateError | undefined;
}

/** A manifest to delete, with its names in the list. */
interface Target {
  repository: WritableRepository;
  digest: string;
  names: string[];
}

/**
 * Deletes the images of a list by digest, after looking up all of them: one request each. A manifest with several names
 * is deleted once, with all its tags in the repository; images of an index stay until the registry collects garbage.
 * Continues after the failure of an image; `stopped` is UNSUPPORTED if the registry does not allow deletion. Throws
 * CancelledError, and errors of the lookup.
 */
export async function deleteImages(
  items: readonly DeletableImage[],
  options: DeleteOptions,
): Promise<DeleteReport> {
  const report: DeleteReport = { done: [], missing: [], kept: [], failed: [], stopped: undefined };
  const matches = await findTargets(items, report, options);
  const targets = options.refusesShared ? await refuseShared(matches, report, options) : matches;
  if (options.dryRun) {
    report.done.push(...targets.flatMap(formatLines));
    return report;
  }
  const outcomes = await mapShown('delete', targets, options, async (target) => {
    if (report.stopped !== undefined) return undefined;
    const outcome = await deleteManifest(target, options.session);
    if (outcome instanceof OpmateError && isFatal(outcome)) report.stopped ??= outcome;
    if (outcome === 'deleted') for (const name of target.names) options.onDeleted?.(name, target.digest);
    return outcome;
  });
  for (const [i, outcome] of outcomes.entries()) {
    const target = targets[i] as Target;
    if (outcome === 'deleted') report.done.push(...formatLines(target));
    else if (outcome === 'missing') report.missing.push(...target.names);
    else if (outcome !== undefined && !isFatal(outcome)) report.failed.push(outcome);
  }
  return report;
}

/** Returns the results of `work` for all items, several in parallel, and shows the progress of those with a result. */
async function mapShown<T, R>(
  task: string,
  items: readonly T[],
  { session, maxPerRegistry }: DeleteOptions,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const { logger = silentLogger } = session;
  let current = 0;
  const workShown = async (item: T): Promise<R> => {
    const result = await work(item);
    if (result === undefined) return result;
    logger.progress({ task, state: 'update', current: ++current, total: items.length, unit: 'items' });
    return result;
  };
  return mapConcurrent(items, getMaxSmallRequests(maxPerRegistry), workShown, session).finally(() =>
    logger.progress({ task, state: 'done' }),
  );
}

function formatLines({ digest, names }: Target): { digest: string; name: string }[] {
  return names.map((name) => ({ digest, name }));
}

/** Reports whether an error of one image would occur for all others. */
function isFatal({ code }: OpmateError): boolean {
  return ['AUTH', 'NETWORK', 'IO', 'UNSUPPORTED'].includes(code);
}

async function findTargets(
  items: readonly DeletableImage[],
  report: DeleteReport,
  options: DeleteOptions,
): Promise<Target[]> {
  const { keep, session } = options;
  const places = createPlaces(session);
  const matches = await mapShown('look up images', items, options, async ({ reference, digest }) => {
    const repository = await places.openTarget(reference);
    const name = getName(reference);
    const image = await repository.headManifest(reference.digest ?? (reference.tag as string), session);
    if (image !== undefined && digest !== undefined && image.digest !== digest) {
      const reason = `the tag has another image now, ${image.digest}`;
      return { repository, name, manifests: [], reason };
    }
    const manifests = image === undefined ? [] : [{ digest: image.digest, name }];
    // Signatures of kept images are kept too.
    if (options.signatures && image !== undefined && keep.reasonFor(image.digest) === undefined)
      manifests.push(...(await findAttachments(repository, reference, image.digest, session)));
    return { repository, name, manifests, reason: undefined };
  });
  const targets = new Map<string, Target>();
  const kept = new Set<string>();
  for (const { repository, name, manifests, reason: other } of matches) {
    if (other !== undefined) kept.add(`${name}: kept, ${other}`);
    else if (manifests.length === 0) report.missing.push(name);
    for (const { digest, name: text } of manifests) {
      const reason = keep.reasonFor(digest);
      if (reason !== undefined) {
        kept.add(`${text}: kept, ${reason}`);
        continue;
      }
      const key = `${repository.name}@${digest}`;
      const { names } = getOrAdd(targets, key, () => ({ repository, digest, names: [] }));
      if (!names.includes(text)) names.push(text);
    }
  }
  report.kept.push(...kept);
  return [...targets.values()];
}

/** Returns the targets that nothing else in their repositories uses, and reports the others as failed. */
async function refuseShared(
  targets: readonly Target[],
  report: DeleteReport,
  { session, maxPerRegistry }: DeleteOptions,
): Promise<Target[]> {
  const { logger, signal } = session;
  const own: Target[] = [];
  for (const group of groupBy(targets, ({ repository }) => repository.name).values()) {
    const { repository } = group[0] as Target;
    const users = await findOtherUsers(repository, new Set(group.map(({ digest }) => digest)), {
      listedTags: new Set(group.flatMap(({ names }) => names.map(getTag))),
      concurrency: getMaxSmallRequests(maxPerRegistry),
      logger,
      signal,
    });
    for (const target of group) {
      const user = users.get(target.digest);
      if (user === undefined) own.push(target);
      else for (const name of target.names) report.failed.push(createSharedError(name, user));
    }
  }
  return own;
}

function createSharedError(subject: string, user: string): OpmateError {
  return new OpmateError('INVALID', `not deleted, ${user} has it too`, {
    subject,
    hint: 'keep what is needed with options.keep LOCK, or delete it nevertheless with options.allowShared',
  });
}

/** Returns the tag of a name; empty for one by digest. */
function getTag(name: string): string {
  return name.includes('@') ? '' : name.slice(name.lastIndexOf(':') + 1);
}

/** Returns the attachments of an image, of its listed manifests, and of their referrers. */
async function findAttachments(
  repository: WritableRepository,
  reference: RegistryReference,
  digest: string,
  session: CancelOptions,
): Promise<{ digest: string; name: string }[]> {
  const base = `${reference.registry}/${reference.repository}`;
  const attached: { digest: string; name: string }[] = [];
  const manifests = new Set(await readManifests(repository, digest, session));
  // Iterating a set includes items added meanwhile.
  for (const text of manifests) {
    for (const tag of getAttachedTags(text)) {
      const descriptor = await repository.headManifest(tag, session);
      if (descriptor !== undefined) attached.push({ digest: descriptor.digest, name: `${base}:${tag}` });
    }
    for (const referrer of await repository.listReferrers(text, { signal: session.signal })) {
      if (manifests.has(referrer.digest)) continue;
      manifests.add(referrer.digest);
      attached.push({ digest: referrer.digest, name: `${base}@${referrer.digest}` });
    }
  }
  return attached;
}

/** Returns the manifests of an image; only its own if it is incomplete. */
async function readManifests(
  repository: WritableRepository,
  digest: string,
  { signal }: CancelOptions,
): Promise<string[]> {
  try {
    const { manifests } = await readContents(repository, digest, { signal });
    return manifests.map(({ descriptor }) => descriptor.digest);
  } catch (error) {
    throwIfCancelled(signal);
    if (!(error instanceof OpmateError) || isFatal(error) || error.code === 'INTERNAL') throw error;
    return [digest];
  }
}

async function deleteManifest(
  { repository, digest }: Target,
  { signal }: CancelOptions,
): Promise<'deleted' | 'missing' | OpmateError> {
  throwIfCancelled(signal);
  try {
    await repository.deleteManifest(digest, { signal });
    return 'deleted';
  } catch (error) {
    throwIfCancelled(signal);
    if (!isImageFailure(error)) throw error;
    if (error.code === 'NOT_FOUND' || (error instanceof RegistryError && error.status === 404))
      return 'missing';
    if (error instanceof RegistryError && error.status === 405)
      return createUnsupportedError(repository, error);
    return error;
  }
}

function createUnsupportedError(repository: WritableRepository, cause: OpmateError): OpmateError {
  const registry = repository.name.split('/', 1)[0] as string;
  return new OpmateError('UNSUPPORTED', 'the registry does not allow deletion', {
    subject: registry,
    hint: 'enable deletion in the registry; the distribution registry has storage.delete.enabled and REGISTRY_STORAGE_DELETE_ENABLED=true',
    cause,
  });
}

function getName({ registry, repository, tag, digest }: RegistryReference): string {
  return `${registry}/${repository}${digest === undefined ? `:${tag}` : `@${digest}`}`;
}
