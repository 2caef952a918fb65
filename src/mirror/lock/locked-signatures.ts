import { type Reference, type RegistryReference, formatReference } from '../../core/reference.js';
import { findSignatures } from '../transfer/find-signatures.js';
import type { ImageSetLock, LockedImage } from './lock.js';
import { transfersOfLock } from './locked-transfers.js';
import type { PinnedTransfer, TransferOptions } from '../transfer/transfer-types.js';

/**
 * A lock of `mirror plan` says nothing about signatures, which planning does not look for: this is the lock with
 * those that are at the sources now, and with what refers to the images. Rebuilt catalogs have none. Equal locks and
 * sources give equal locks, so that machines that share one still divide it alike.
 */
export async function withSignatures(lock: ImageSetLock, options: TransferOptions): Promise<ImageSetLock> {
  const rebuilt = new Set(
    lock.catalogs
      .filter(({ isWhole }) => !isWhole)
      .map(({ repository, tag }) => nameOf({ repository, tag, kind: 'catalog' })),
  );
  const signable = lock.images.filter((image) => !rebuilt.has(nameOf(image)));
  const transfers = transfersOfLock({ ...lock, images: signable }, { target: { registry: '', path: '' } });
  const { pinned, signatures } = await findSignatures(transfers, options);
  const contents = new Map(signable.map((image, i) => [image, pinned[i]?.contents ?? image.contents]));
  return {
    ...lock,
    options: { ...lock.options, signatures: 'yes' },
    images: [
      ...lock.images.map((image) => ({ ...image, contents: contents.get(image) ?? image.contents })),
      ...signatures.map(signatureOf),
    ],
  };
}

function nameOf({ kind, repository, tag }: Pick<LockedImage, 'kind' | 'repository' | 'tag'>): string {
  return `${kind} ${repository}:${tag}`;
}

function signatureOf({ source, target, contents }: PinnedTransfer): LockedImage {
  const text = formatReference(source as Reference);
  const { repository, tag } = target as RegistryReference;
  return {
    kind: 'signature',
    reference: text,
    source: `docker://${text}`,
    repository,
    tag,
    bundles: [],
    contents,
  };
}
