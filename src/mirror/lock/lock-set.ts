import { groupBy } from '../../core/groups.js';
import { type RegistryReference, formatReference } from '../../core/reference.js';
import type { CatalogSourceTemplate } from '../image-set/catalog-source-template.js';
import type { ImageSetPlan, PlannedCatalog } from '../image-set/image-set-plan.js';
import type { SetImage } from '../plan/planned-image.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';
import type { LockedCatalog, LockedChart, LockedImage } from './lock.js';

/** Returns an image with its contents for a lock. */
export function lockImage(
  { kind, source, name, bundles, reference, aliases }: SetImage,
  { contents }: PinnedTransfer,
): LockedImage {
  return {
    kind,
    reference: reference.text,
    source,
    ...(aliases !== undefined && { aliases: aliases.map(({ text }) => text) }),
    ...name,
    bundles,
    contents,
  };
}

/** Returns the charts of a plan for a lock. */
export function lockCharts({ charts }: Pick<ImageSetPlan, 'charts'>): LockedChart[] {
  return charts.map(({ chart: { source, packed }, name }) => ({
    source,
    name: packed.name,
    version: packed.version,
    ...name,
  }));
}

/** Returns a signature for a lock, in the repository of its image. */
export function lockSignature(
  { source, sourceName, target, contents }: PinnedTransfer,
  /** An image of each repository of the target. */
  images: ReadonlyMap<string, SetImage>,
): LockedImage {
  const path = (target as RegistryReference).repository;
  const signed = images.get(path);
  // One that its source lost is read from the target.
  const text = typeof source === 'function' ? sourceName : formatReference(source);
  return {
    kind: 'signature',
    reference: text,
    source: `docker://${text}`,
    repository: signed?.name.repository ?? path,
    tag: target.tag,
    bundles: [],
    contents,
  };
}

/** Returns a catalog with its selected content for a lock. */
export function lockCatalog(
  { operator, digest, name, selection, isDatabase }: PlannedCatalog,
  templates: ReadonlyMap<string, CatalogSourceTemplate>,
  withoutImages: readonly string[],
): LockedCatalog {
  const file = operator.targetCatalogSourceTemplate;
  const { facts, isWhole, packages } = selection;
  const bundles = groupBy(facts.bundles, (bundle) => bundle.package);
  return {
    catalog: operator.catalog,
    sourceDigest: digest,
    ...name,
    isWhole,
    ...(isDatabase && isWhole && { isDatabase }),
    ...(file !== undefined && {
      targetCatalogSourceTemplate: { file, text: templates.get(file)?.text },
    }),
    ...(!isWhole && withoutImages.length > 0 && { withoutImages }),
    packages: packages.map(({ name: packageName, defaultChannel, channels }) => ({
      name: packageName,
      defaultChannel,
      channels: channels.map((channel) => ({ name: channel.name, head: channel.head })),
      bundles: (bundles.get(packageName) ?? []).map((bundle) => ({
        name: bundle.name,
        version: bundle.packageProperties[0]?.version ?? '',
      })),
    })),
  };
}
