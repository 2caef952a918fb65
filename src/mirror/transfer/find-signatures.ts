import { isDigest } from '../../core/digest.js';
import { throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { withReferenceTag } from '../../core/reference.js';
import { type ImageContents, readContents, withReferrers } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { getAttachedTags } from '../../oci/signatures/attached-signatures.js';
import { createPlaces, getMaxImages, isImageFailure, runStep, toRepositoryKey } from './transfer-step.js';
import type { PinnedTransfer, TransferOptions } from './transfer-types.js';

/**
 * Finds signatures and other attachments by tag (`sha256-HEX.sig`, `.att`, `.sbom`) of every manifest of images, as
 * pinned transfers to the same target repository. Adds referrers to the contents of their images. Missing or
 * unreadable attachments are ignored.
 */
export async function findSignatures(
  pinned: readonly PinnedTransfer[],
  options: TransferOptions,
): Promise<{ pinned: PinnedTransfer[]; signatures: PinnedTransfer[] }> {
  const { session } = options;
  const { signal, logger = silentLogger } = session;
  const places = createPlaces(session);
  /** Tags by source repository, each listed once. */
  const tagLists = new Map<string, Promise<ReadonlySet<string> | undefined>>();

  const ignoreFailure = (error: unknown): undefined => {
    throwIfCancelled(signal);
    if (!isImageFailure(error)) throw error;
    if (error.code !== 'NOT_FOUND') logger.log('debug', `${error.message}; treated as unsigned`);
  };

  /** Returns undefined if the tags are unknown, or the list lacks the tag that the image was read by. */
  const listTags = async ({ repository, reference }: OpenedReference) => {
    const tags = await getOrAdd(tagLists, repository.name, () =>
      Promise.resolve(repository.findTags?.(session)).catch(ignoreFailure),
    );
    return tags?.size === 0 || (!isDigest(reference) && tags?.has(reference) === false) ? undefined : tags;
  };

  const findAttached = async (transfer: PinnedTransfer) => {
    const attached: PinnedTransfer[] = [];
    const source = await places.openSource(transfer).catch(ignoreFailure);
    if (source === undefined) return { transfer, attached };
    const { repository } = source;
    const tags = await listTags(source);
    const reading = { signal, logger: session.logger, tags, concurrency: 1 };
    for (const { descriptor } of transfer.contents.manifests) {
      for (const tag of getAttachedTags(descriptor.digest)) {
        if (tags?.has(tag) === false) continue;
        const contents = await readContents(repository, tag, reading).catch(ignoreFailure);
        if (contents !== undefined) attached.push(toAttachment(transfer, tag, contents));
      }
    }
    const contents = await withReferrers(repository, transfer.contents, reading).catch(ignoreFailure);
    return { transfer: contents === undefined ? transfer : { ...transfer, contents }, attached };
  };

  try {
    const concurrency = getMaxImages(options);
    const step = { ...options, continueOnError: false, concurrency, task: 'check signatures' };
    const { results } = await runStep(pinned, findAttached, step);
    const signatures = new Map<string, PinnedTransfer>();
    for (const transfer of results.flatMap(({ attached }) => attached)) {
      getOrAdd(signatures, `${toRepositoryKey(transfer.target)}:${transfer.target.tag}`, () => transfer);
    }
    return { pinned: results.map(({ transfer }) => transfer), signatures: [...signatures.values()] };
  } finally {
    await places.close();
  }
}

function toAttachment(transfer: PinnedTransfer, tag: string, contents: ImageContents): PinnedTransfer {
  const { source, target, sourceName, targetName, isLast } = transfer;
  return {
    source:
      typeof source === 'function'
        ? async () => ({ ...(await source()), reference: tag })
        : withReferenceTag(source, tag),
    target: withReferenceTag(target, tag),
    sourceName: replaceTag(sourceName, tag),
    targetName: replaceTag(targetName, tag),
    isLast,
    contents,
  };
}

function replaceTag(name: string, tag: string): string {
  return `${name.replace(/@[^@/]+$/, '').replace(/:[^:/]+$/, '')}:${tag}`;
}
