import type { CancelOptions } from '../../core/concurrency.js';
import type { OpmateError } from '../../core/errors.js';
import { silentLogger } from '../../core/log.js';
import { count } from '../../core/printable.js';
import { withReferenceTag } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import { openTarget } from '../../oci/image/open.js';
import { getLockedName, type ImageSetLock } from '../lock/lock.js';
import { isImageFailure } from '../transfer/transfer-step.js';
import type { PinnedTransfer, Transfer, TransferOptions } from '../transfer/transfer-types.js';
import type { SetImage } from '../plan/planned-image.js';

/** Maximum names of images in the warning. */
const maxShownNames = 5;

/**
 * Returns the finder of images that a target holds from earlier runs, to use where their sources no longer have them. An image by digest is the same wherever it is; one by tag is taken only if its
 * source lost it, with the digest that `previous`, the lock of the last run, has for it.
 */
export function createTargetCopies(
  previous: ImageSetLock | undefined,
  { session }: Pick<TransferOptions, 'session'>,
) {
  const { logger = silentLogger } = session;
  const locked = new Map(
    (previous?.images ?? []).map((image) => [getLockedName(image), image.contents.root.digest]),
  );
  const used: string[] = [];

  const findDigest = ({ reference, name }: SetImage, isLost: boolean): string | undefined => {
    if (reference.digest !== undefined || !isLost) return reference.digest;
    return locked.get(`${name.repository}:${name.tag}`);
  };

  return {
    /** Returns a planned image as it is at the target, where it must be complete; `error` is that of its source, if any. */
    async find(
      image: SetImage,
      transfer: Transfer,
      error: OpmateError | undefined,
      limits: CancelOptions,
    ): Promise<PinnedTransfer | undefined> {
      const digest = findDigest(image, error === undefined || error.code === 'NOT_FOUND');
      if (digest === undefined) return undefined;
      const open = () => openTarget({ ...withReferenceTag(transfer.target), digest }, session);
      try {
        const { repository } = await open();
        const contents = await readContents(repository, digest, { ...limits, platforms: transfer.platforms });
        used.push(transfer.sourceName);
        return { ...transfer, source: open, contents };
      } catch (failure) {
        if (!isImageFailure(failure)) throw failure;
        logger.log('debug', `${transfer.targetName}: no copy of ${digest}: ${failure.message}`);
        return undefined;
      }
    },
    /** Warns of the images found since the last call. */
    report(): void {
      const names = used.splice(0).sort();
      if (names.length === 0) return;
      const shown = `${names.slice(0, maxShownNames).join(', ')}${names.length > maxShownNames ? ', …' : ''}`;
      logger.log(
        'warn',
        `${count(names.length, 'image')} unavailable at the source, kept as mirrored before: ${shown}`,
      );
    },
  };
}
