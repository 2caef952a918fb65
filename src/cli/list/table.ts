import type { Catalog } from '../../catalog/catalog.js';
import type { Criteria } from '../../catalog/selection/catalog-filter.js';
import { collectFacts, readDisplayNames } from '../../catalog/facts.js';
import { OpmateError } from '../../core/errors.js';
import { requireKnown } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import type { CatalogFacts } from '../../model/facts.js';
import {
  type BundleRow,
  type ChannelRow,
  type PackageRow,
  listBundles,
  listChannels,
  listPackages,
} from '../../graph/list.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { validateCatalog } from '../../graph/validate.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import { rememberNames } from '../completion/cache.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { type FlagValues, list } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';

/** The flags of all list commands. */
export const listFlags = {
  output: outputFormat(['table', 'json'], { default: 'table' }),
  package: list('name', 'list only these packages', { short: 'p', group: 'Selection' }),
};

/** The flags of list commands whose rows are of channels. */
export const channelListFlags = {
  ...listFlags,
  channel: list('name', 'list only these channels', { group: 'Selection' }),
};

type ListOptions = FlagValues<typeof listFlags> &
  Partial<FlagValues<typeof channelListFlags>> & { version?: Criteria['versions'] };

/** Prints a table of the packages, channels or bundles of a catalog. Throws INVALID for a catalog that is not valid. */
export async function printList(
  context: CommandContext,
  noun: 'packages' | 'channels' | 'bundles',
  reference: string,
  packageName: string | undefined,
  options: GlobalOptions & ListOptions,
): Promise<void> {
  await useSession(context, options, async (session) => {
    const table = await readTable();
    session.logger.close();
    await writeAll(context.stdout, table);

    async function readTable(): Promise<string> {
      const source = await openSource(reference, session).catch((error: unknown) => {
        throw inReference(error, reference);
      });
      try {
        if (source.kind === 'bundle') {
          throw new OpmateError('UNSUPPORTED', `cannot list non-index ${quoteGo(reference)}`, {
            hint: 'specify a catalog, or inspect the bundle with opmate render',
          });
        }
        const facts = await collectFacts(source.catalog, session).catch((error: unknown) => {
          throw inReference(error, reference);
        });
        const report = validateCatalog(facts);
        if (!report.passed) {
          throw new OpmateError('INVALID', report.message ?? 'invalid index', {
            hint: 'run opmate validate to list every problem',
          });
        }
        await rememberNames(context, reference, facts);
        const packages = [...(packageName ? [packageName] : []), ...(options.package ?? [])];
        requireKnown('package', packages, facts.packages);
        requireKnown('channel', options.channel ?? [], facts.channels);
        const isInRange = createVersionTest(facts, options.version);
        const isSelected = ({ row }: ListRow): boolean => {
          const name = 'package' in row ? row.package : row.name;
          const isChannel = !('channel' in row) || (options.channel?.includes(row.channel) ?? true);
          return isChannel && (packages.length === 0 || packages.includes(name)) && isInRange(row);
        };
        const rows = (await readRows(noun, source.catalog, facts)).filter(isSelected);
        if (options.output === 'json')
          return `${JSON.stringify(
            rows.map(({ row }) => row),
            null,
            2,
          )}\n`;
        return formatTable(
          headers[noun],
          rows.map(({ cells }) => cells),
        );
      } finally {
        await source.close();
      }
    }
  });
}

/** Returns whether the bundle of a row has a version in a range; without a range all rows do. */
function createVersionTest(
  { bundles }: CatalogFacts,
  versions: Criteria['versions'],
): (row: ListRow['row']) => boolean {
  if (versions === undefined) return () => true;
  const matching = new Set<string>();
  for (const bundle of bundles) {
    const version = readBundleVersion(bundle);
    if (version !== undefined && versions.range.contains(version))
      matching.add(`${bundle.package}\0${bundle.name}`);
  }
  return (row) => 'bundle' in row && matching.has(`${row.package}\0${row.bundle}`);
}

const headers = {
  packages: ['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'],
  channels: ['PACKAGE', 'CHANNEL', 'HEAD'],
  bundles: ['PACKAGE', 'CHANNEL', 'BUNDLE', 'REPLACES', 'SKIPS', 'SKIP RANGE', 'IMAGE'],
};

/** A row as data, and as cells of the table. */
interface ListRow {
  row: PackageRow | ChannelRow | BundleRow;
  cells: string[];
}

async function readRows(
  noun: 'packages' | 'channels' | 'bundles',
  catalog: Catalog,
  facts: CatalogFacts,
): Promise<ListRow[]> {
  switch (noun) {
    case 'packages': {
      const rows = listPackages(facts, await readDisplayNames(catalog, facts));
      return rows.map((row) => ({ row, cells: [row.name, row.displayName, row.defaultChannel] }));
    }
    case 'channels':
      return listChannels(facts).map((row) => ({
        row,
        cells: [row.package, row.channel, row.head],
      }));
    case 'bundles':
      return listBundles(facts).map((row) => ({
        row,
        cells: [
          row.package,
          row.channel,
          row.bundle,
          row.replaces,
          row.skips.join(','),
          row.skipRange,
          row.image,
        ],
      }));
  }
}
