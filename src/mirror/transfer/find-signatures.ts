import { isDigest } from '../../core/digest.js';
import { throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { withReferenceTag } from '../../core/reference.js';
import { type ImageContents, readContents, withReferrers } from '../../oci/image/contents.js';
import type { ImageSession, OpenedReference } from '../../oci/image/open.js';
import { getAttachedTags } from '../../oci/signatures/attached-signatures.js';
import { OpenPlaces, getMaxImages, isImageFailure, runStep, toRepositoryKey } from './transfer-step.js';
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
  const places = new OpenPlaces(session);
  const finder = new AttachmentFinder(session);
  const signatures = new Map<string, PinnedTransfer>();
  try {
    const { results } = await runStep(
      pinned,
      async (transfer) => {
        const source = await places.openSource(transfer).catch(finder.ignoreFailure);
        return source === undefined ? { transfer, attached: [] } : finder.find(source, transfer);
      },
      {
        ...options,
        continueOnError: false,
        concurrency: getMaxImages(options),
        task: 'check signatures',
      },
    );
    for (const transfer of results.flatMap(({ attached }) => attached)) {
      getOrAdd(signatures, `${toRepositoryKey(transfer.target)}:${transfer.target.tag}`, () => transfer);
    }
    return { pinned: results.map(({ transfer }) => transfer), signatures: [...signatures.values()] };
  } finally {
    await places.close();
  }
}

class AttachmentFinder {
  readonly #session: ImageSession;
  /** Tags by source repository, each listed once. */
  readonly #tags = new Map<string, Promise<ReadonlySet<string> | undefined>>();

  constructor(session: ImageSession) {
    this.#session = session;
  }

  async find(
    opened: OpenedReference,
    transfer: PinnedTransfer,
  ): Promise<{ transfer: PinnedTransfer; attached: PinnedTransfer[] }> {
    const { repository } = opened;
    const { signal, logger } = this.#session;
    const tags = await this.#listTags(opened);
    const reading = { signal, logger, tags, concurrency: 1 };
    const attached: PinnedTransfer[] = [];
    for (const { descriptor } of transfer.contents.manifests) {
      for (const tag of getAttachedTags(descriptor.digest)) {
        if (tags?.has(tag) === false) continue;
        const contents = await readContents(repository, tag, reading).catch(this.ignoreFailure);
        if (contents !== undefined) attached.push(toAttachment(transfer, tag, contents));
      }
    }
    const contents = await withReferrers(repository, transfer.contents, reading).catch(this.ignoreFailure);
    return { transfer: contents === undefined ? transfer : { ...transfer, contents }, attached };
  }

  /** Returns undefined if the tags are unknown, or the list lacks the tag that the image was read by. */
  async #listTags({ repository, reference }: OpenedReference): Promise<ReadonlySet<string> | undefined> {
    const tags = await getOrAdd(this.#tags, repository.name, () =>
      Promise.resolve(repository.findTags?.(this.#session)).catch(this.ignoreFailure),
    );
    return tags?.size === 0 || (!isDigest(reference) && tags?.has(reference) === false) ? undefined : tags;
  }

  readonly ignoreFailure = (error: unknown): undefined => {
    const { signal, logger = silentLogger } = this.#session;
    throwIfCancelled(signal);
    if (!isImageFailure(error)) throw error;
    if (error.code !== 'NOT_FOUND') logger.log('debug', `${error.message}; treated as unsigned`);
  };
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
