import { isDigest } from '../../core/digest.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { withReferenceTag } from '../../core/reference.js';
import { type ImageContents, readContents, withReferrers } from '../../oci/image/contents.js';
import { getAttachedTags } from '../../oci/signatures/attached-signatures.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { PinnedTransfer, TransferOptions } from './transfer-types.js';
import { OpenPlaces, imagesAtOnce, placeKey, runStep } from './transfer-step.js';

/**
 * The signatures and what else is attached to images by tag (`sha256-HEX.sig`, `.att`, `.sbom`), as transfers of
 * their own into the same target repository, pinned; for the root and every manifest below it. Referrers are added
 * to the contents of their image. What is not there, or cannot be asked for, is none.
 */
export async function findSignatures(
  pinned: readonly PinnedTransfer[],
  options: TransferOptions,
): Promise<{ pinned: PinnedTransfer[]; signatures: PinnedTransfer[] }> {
  const places = new OpenPlaces(options);
  const tags = new KnownTags(options);
  const signatures = new Map<string, PinnedTransfer>();
  try {
    const { results } = await runStep(
      pinned,
      async (transfer) => {
        const from = await places.source(transfer).catch(unlessFatal(options));
        if (from === undefined) return { transfer, attached: [] };
        return lookAt(from, transfer, { ...options, tags: await tags.of(from) });
      },
      {
        ...options,
        continueOnError: false,
        atOnce: imagesAtOnce(options),
        task: 'check signatures',
      },
    );
    for (const transfer of results.flatMap(({ attached }) => attached)) {
      const key = `${placeKey(transfer.target)}:${transfer.target.tag}`;
      if (!signatures.has(key)) signatures.set(key, transfer);
    }
    return { pinned: results.map(({ transfer }) => transfer), signatures: [...signatures.values()] };
  } finally {
    await places.close();
  }
}

/** Tags of source repositories, asked for once each. */
class KnownTags {
  readonly #options: TransferOptions;
  readonly #tags = new Map<string, Promise<ReadonlySet<string> | undefined>>();

  constructor(options: TransferOptions) {
    this.#options = options;
  }

  /** Undefined where they are unknown, or where the list lacks the tag that the image was read by. */
  async of({ repository, reference }: OpenedReference): Promise<ReadonlySet<string> | undefined> {
    const tags = await getOrAdd(this.#tags, repository.name, () =>
      Promise.resolve(repository.findTags?.(this.#options)).catch(unlessFatal(this.#options)),
    );
    return tags?.size === 0 || (!isDigest(reference) && tags?.has(reference) === false) ? undefined : tags;
  }
}

async function lookAt(
  { repository }: OpenedReference,
  transfer: PinnedTransfer,
  options: TransferOptions & { tags: ReadonlySet<string> | undefined },
): Promise<{ transfer: PinnedTransfer; attached: PinnedTransfer[] }> {
  const how = { ...options, concurrency: 1 };
  const attached: PinnedTransfer[] = [];
  for (const { descriptor } of transfer.contents.manifests) {
    for (const tag of getAttachedTags(descriptor.digest)) {
      if (options.tags?.has(tag) === false) continue;
      const contents = await readContents(repository, tag, how).catch(unlessFatal(options));
      if (contents !== undefined) attached.push(attachedTo(transfer, tag, contents));
    }
  }
  const contents = await withReferrers(repository, transfer.contents, how).catch(unlessFatal(options));
  return { transfer: contents === undefined ? transfer : { ...transfer, contents }, attached };
}

function attachedTo(transfer: PinnedTransfer, tag: string, contents: ImageContents): PinnedTransfer {
  const { source, target, sourceName, targetName, isLast } = transfer;
  return {
    source:
      typeof source === 'function'
        ? async () => ({ ...(await source()), reference: tag })
        : withReferenceTag(source, tag),
    target: withReferenceTag(target, tag),
    sourceName: withTag(sourceName, tag),
    targetName: withTag(targetName, tag),
    isLast,
    contents,
  };
}

/** The name of an image with another tag. */
function withTag(name: string, tag: string): string {
  return `${name.replace(/@[^@/]+$/, '').replace(/:[^:/]+$/, '')}:${tag}`;
}

/** Takes failures for "there is none", but for those that end all work. */
function unlessFatal({ signal, logger = silentLogger }: TransferOptions): (error: unknown) => undefined {
  return (error) => {
    throwIfCancelled(signal);
    const isFatal =
      !(error instanceof OpmateError) || error instanceof CancelledError || error.code === 'INTERNAL';
    if (isFatal) throw error;
    if (error.code !== 'NOT_FOUND') logger.log('debug', `${error.message}; treated as unsigned`);
    return undefined;
  };
}
