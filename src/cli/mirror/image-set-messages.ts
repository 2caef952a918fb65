import { quoteGo } from '../../document/go-json.js';
import type { LogLevel, Logger } from '../../core/log.js';
import type { BytePlan } from '../../mirror/lock/byte-plan.js';
import type { ImageSetPlan, PlannedCatalog } from '../../mirror/image-set/image-set-plan.js';
import { amountOfBytes, count } from '../printable.js';
import { formatTable } from '../table.js';

/** Logs the selection, one line per catalog, chart and release; contents and reasons at `itemLevel`. */
export function describePlan(
  plan: ImageSetPlan,
  logger: Logger,
  { icsp, itemLevel = 'debug' }: { icsp: boolean; itemLevel?: LogLevel },
): void {
  for (const catalog of plan.catalogs) describeCatalog(catalog, logger, itemLevel);
  for (const { chart } of plan.charts) {
    const guesses = chart.needed.images.filter(({ isGuess }) => isGuess).length;
    const guessed = guesses === 0 ? '' : `, ${guesses} of them not from rendered manifests`;
    logger.log('info', `${chart.label}: ${count(chart.needed.images.length, 'image')}${guessed}`);
    for (const { text, file, isGuess } of chart.needed.images)
      logger.log(itemLevel, `  ${text} (${file}${isGuess ? ', not rendered' : ''})`);
  }
  for (const { label, selected, components, image } of plan.releases) {
    const why = selected === undefined ? '' : `, ${selected.reason}`;
    logger.log('info', `${label}: ${image.digest}, ${count(components.length, 'image')}${why}`);
  }
  const additional = plan.images.filter(({ kind }) => kind === 'additional').length;
  if (additional > 0) logger.log('info', `additional images: ${additional}`);
  const blocked = new Map<string, number>();
  for (const { source, pattern } of plan.blocked) {
    logger.log('debug', `${source}: blocked by ${quoteGo(pattern)}`);
    blocked.set(pattern, (blocked.get(pattern) ?? 0) + 1);
  }
  for (const [pattern, number] of blocked)
    logger.log('info', `${count(number, 'image')} blocked by ${quoteGo(pattern)}`);
  for (const sentence of plan.added) logger.log('info', sentence);
  for (const warning of plan.warnings) logger.log('warn', warning);
  const byTag = plan.images.filter(
    ({ kind, reference }) => kind !== 'catalog' && kind !== 'graph' && reference.digest === undefined,
  );
  if (icsp && byTag.length > 0) {
    const problem = 'not covered by ImageContentSourcePolicy';
    logger.log('warn', `${count(byTag.length, 'image')} referenced by tag: ${problem}`);
  }
}

function describeCatalog(
  { operator, digest, selection, imageCounts }: PlannedCatalog,
  logger: Logger,
  itemLevel: LogLevel,
): void {
  const how = selection.isWhole ? 'unchanged' : 'rebuilt';
  const bundles = selection.packages.reduce((sum, selected) => sum + selected.bundles, 0);
  const amount = `${count(selection.packages.length, 'package')}, ${count(bundles, 'bundle')}`;
  logger.log('info', `${operator.catalog}: ${digest}, ${amount}, ${how}`);
  for (const { name, channels, bundles } of selection.packages) {
    const heads = channels.map((channel) => `${channel.name} to ${channel.head}`).join(', ');
    const amount = `${count(bundles, 'bundle')}, ${count(imageCounts.get(name) ?? 0, 'image')}`;
    logger.log(itemLevel, `  ${name}: ${amount} (${heads})`);
    for (const { package: of, channel, bundle, reason } of selection.kept) {
      if (of === name) logger.log('info', `  ${name}: also ${bundle} in ${channel}: it ${reason}`);
    }
  }
}

/** Logs the blobs to copy. */
export function describeBytes(plan: BytePlan, logger: Logger): void {
  const { images, blobs, bytes, presentBlobs, presentBytes } = plan;
  const all = `${count(images, 'image')}, ${count(blobs, 'blob')}, ${amountOfBytes(bytes)}`;
  const left = `to copy: ${count(blobs - presentBlobs, 'blob')}, ${amountOfBytes(bytes - presentBytes)}`;
  const isPartial = presentBlobs > 0 && presentBlobs < blobs;
  const present = isPartial ? `present: ${count(presentBlobs, 'blob')}; ` : '';
  logger.log('info', `${all}; ${present}${left}`);
}

/** Returns a table of the sums of packages, with their catalogs if several have one of them. */
export function formatPackages<T extends { name: string; catalog?: string | undefined }>(
  packages: readonly T[],
  header: readonly string[],
  toCells: (item: T) => readonly string[],
): string {
  const withCatalogs = packages.some(({ catalog }) => catalog !== undefined);
  return formatTable(
    ['PACKAGE', ...(withCatalogs ? ['CATALOG'] : []), ...header],
    packages.map((item) => [item.name, ...(withCatalogs ? [item.catalog ?? '-'] : []), ...toCells(item)]),
  );
}
