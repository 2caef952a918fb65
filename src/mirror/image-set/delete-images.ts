import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { CancelledError, OpmateError, RegistryError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { RegistryReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import { getAttachedTags } from '../../oci/signatures/attached-signatures.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { WritableRepository } from '../../oci/registry/repository.js';
import type { ReadDeleteItem } from './delete-list.js';
import type { KeptImages } from './kept-images.js';
import { OpenPlaces, smallRequestsAtOnce } from '../transfer/transfer-step.js';

interface DeleteOptions extends CancelOptions {
  session: ImageSession;
  maxPerRegistry: number;
  /** Signatures and what else is attached to the images too, by tag or by referring to them. */
  signatures: boolean;
  keep: KeptImages;
  /** Looks for everything, and deletes nothing. */
  dryRun: boolean;
  logger?: Logger | undefined;
}

/** What became of a list; each part in its order. */
interface DeleteReport {
  done: { digest: string; name: string }[];
  /** Names that are not there. */
  missing: string[];
  /** One sentence for each image that stays for the sake of another set. */
  kept: string[];
  failed: OpmateError[];
  /** Why what is left of the list was not even tried. */
  stopped: OpmateError | undefined;
}

/** A manifest that is to be deleted, and what of the list names it. */
interface Target {
  repository: WritableRepository;
  digest: string;
  names: string[];
}

/**
 * Deletes the images of a list by their digests: all are looked up first, one request each. A manifest that several
 * names have is deleted once, and all its tags in that repository with it; what an index lists stays until the registry
 * collects what nothing names. Goes on after a failure of one image. Throws CancelledError, and what looking them up
 * throws; UNSUPPORTED, as `stopped`, is a registry that does not allow it.
 */
export async function deleteImages(
  items: readonly ReadDeleteItem[],
  options: DeleteOptions,
): Promise<DeleteReport> {
  const report: DeleteReport = { done: [], missing: [], kept: [], failed: [], stopped: undefined };
  const targets = await findTargets(items, report, options);
  if (options.dryRun) {
    report.done.push(...targets.flatMap(formatLines));
    return report;
  }
  const { logger = silentLogger } = options;
  const task = 'delete';
  let current = 0;
  const outcomes = await mapConcurrent(
    targets,
    smallRequestsAtOnce(options.maxPerRegistry),
    async (target) => {
      if (report.stopped !== undefined) return 'untried';
      const outcome = await deleteOne(target, options);
      if (outcome instanceof OpmateError && isForAll(outcome)) report.stopped ??= outcome;
      logger.progress({ task, state: 'update', current: ++current, total: targets.length, unit: 'items' });
      return outcome;
    },
    options,
  ).finally(() => logger.progress({ task, state: 'done' }));
  for (const [i, outcome] of outcomes.entries()) {
    const target = targets[i] as Target;
    if (outcome === 'deleted') report.done.push(...formatLines(target));
    else if (outcome === 'missing') report.missing.push(...target.names);
    else if (outcome !== 'untried' && !isForAll(outcome)) report.failed.push(outcome);
  }
  return report;
}

function formatLines({ digest, names }: Target): { digest: string; name: string }[] {
  return names.map((name) => ({ digest, name }));
}

/** Whether what one image failed by would fail all others. */
function isForAll({ code }: OpmateError): boolean {
  return ['AUTH', 'NETWORK', 'IO', 'UNSUPPORTED'].includes(code);
}

async function findTargets(
  items: readonly ReadDeleteItem[],
  report: DeleteReport,
  options: DeleteOptions,
): Promise<Target[]> {
  const { keep, logger = silentLogger } = options;
  const places = new OpenPlaces(options);
  const isKept = (digest: string): boolean => keep.reasonFor(digest) !== undefined;
  const task = 'look up images';
  let current = 0;
  const matches = await mapConcurrent(
    items,
    smallRequestsAtOnce(options.maxPerRegistry),
    async ({ reference }) => {
      const repository = await places.target(reference);
      const name = getName(reference);
      const named = await repository.headManifest(reference.digest ?? (reference.tag as string), options);
      const own = named === undefined ? [] : [{ digest: named.digest, name }];
      // Of an image that stays the signatures stay, too.
      const withAttached = options.signatures && named !== undefined && !isKept(named.digest);
      const attached = withAttached ? await findAttached(repository, reference, named.digest, options) : [];
      logger.progress({ task, state: 'update', current: ++current, total: items.length, unit: 'items' });
      return { repository, name, manifests: [...own, ...attached] };
    },
    options,
  ).finally(() => logger.progress({ task, state: 'done' }));
  const targets = new Map<string, Target>();
  const kept = new Set<string>();
  for (const { repository, name, manifests } of matches) {
    if (manifests.length === 0) report.missing.push(name);
    for (const { digest, name: text } of manifests) {
      const reason = keep.reasonFor(digest);
      if (reason !== undefined) {
        kept.add(`${text}: kept, ${reason}`);
        continue;
      }
      const key = `${repository.name}@${digest}`;
      const known = targets.get(key);
      if (known === undefined) targets.set(key, { repository, digest, names: [text] });
      else if (!known.names.includes(text)) known.names.push(text);
    }
  }
  report.kept.push(...kept);
  return [...targets.values()];
}

/** What is attached to an image, to the manifests that it lists, and to what refers to those. */
async function findAttached(
  repository: WritableRepository,
  reference: RegistryReference,
  digest: string,
  options: DeleteOptions,
): Promise<{ digest: string; name: string }[]> {
  const base = `${reference.registry}/${reference.repository}`;
  const attached: { digest: string; name: string }[] = [];
  const manifests = new Set(await readManifests(repository, digest, options));
  // A set hands out what is added while it is gone through.
  for (const text of manifests) {
    for (const tag of getAttachedTags(text)) {
      const descriptor = await repository.headManifest(tag, options);
      if (descriptor !== undefined) attached.push({ digest: descriptor.digest, name: `${base}:${tag}` });
    }
    for (const referrer of await repository.listReferrers(text, options)) {
      if (manifests.has(referrer.digest)) continue;
      manifests.add(referrer.digest);
      attached.push({ digest: referrer.digest, name: `${base}@${referrer.digest}` });
    }
  }
  return attached;
}

/** An image and what it lists; only itself where something of that is not there. */
async function readManifests(
  repository: WritableRepository,
  digest: string,
  options: CancelOptions,
): Promise<string[]> {
  try {
    const { manifests } = await readContents(repository, digest, { signal: options.signal });
    return manifests.map(({ descriptor }) => descriptor.digest);
  } catch (error) {
    throwIfCancelled(options.signal);
    if (!(error instanceof OpmateError) || isForAll(error) || error.code === 'INTERNAL') throw error;
    return [digest];
  }
}

async function deleteOne(
  { repository, digest }: Target,
  options: DeleteOptions,
): Promise<'deleted' | 'missing' | OpmateError> {
  throwIfCancelled(options.signal);
  try {
    await repository.deleteManifest(digest, options);
    return 'deleted';
  } catch (error) {
    throwIfCancelled(options.signal);
    if (!(error instanceof OpmateError) || error instanceof CancelledError || error.code === 'INTERNAL')
      throw error;
    if (error.code === 'NOT_FOUND' || (error instanceof RegistryError && error.status === 404))
      return 'missing';
    if (error instanceof RegistryError && error.status === 405) return notAllowed(repository, error);
    return error;
  }
}

function notAllowed(repository: WritableRepository, cause: OpmateError): OpmateError {
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
