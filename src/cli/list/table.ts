import { type CatalogRows, listCatalog } from '../../api/listing/list-catalog.js';
import { rememberNames } from '../completion/cache.js';
import type { CommandContext } from '../context.js';
import { type FlagValues, list } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { encodeData } from '../reports/encode-data.js';
import { type CommandSession, writePieces } from '../session.js';
import { formatTable } from '../table.js';

/** Flags of all list commands. */
export const listFlags = {
  output: outputFormat(['table', 'json'], { default: 'table' }),
  package: list('name', 'list only these packages', { short: 'p', group: 'Selection' }),
};

/** Flags of list commands with a channel per row. */
export const channelListFlags = {
  ...listFlags,
  channel: list('name', 'list only these channels', { group: 'Selection' }),
};

type ListOptions = FlagValues<typeof listFlags> &
  Partial<FlagValues<typeof channelListFlags>> & { version?: string | undefined };

/** Prints the packages, channels or bundles of a catalog. Throws INVALID for an invalid catalog. */
export async function printList<K extends keyof CatalogRows>(
  context: CommandContext,
  kind: K,
  reference: string,
  packageName: string | undefined,
  options: ListOptions,
  session: CommandSession,
): Promise<void> {
  const rows = await listCatalog(reference, kind, session, {
    packages: [...(packageName ? [packageName] : []), ...(options.package ?? [])],
    channels: options.channel,
    versionRange: options.version,
    onFacts: (facts) => rememberNames(context, reference, facts),
  });
  const { header, cells } = tables[kind];
  const shortens = context.stdout.isTTY === true;
  const text =
    options.output === 'json'
      ? encodeData(rows, 'json')
      : formatTable(
          header,
          rows.map((row) => cells(row, shortens)),
        );
  await writePieces(context, session, text);
}

type Tables = {
  [K in keyof CatalogRows]: { header: string[]; cells: (row: CatalogRows[K], shortens: boolean) => string[] };
};

/** Maximum number of skipped bundles named in a row on a terminal, where longer rows wrap. */
const maxShownSkips = 3;

function joinSkips(names: readonly string[], shortens: boolean): string {
  if (!shortens || names.length <= maxShownSkips) return names.join(',');
  const shown = names.slice(0, maxShownSkips - 1);
  return `${shown.join(',')},… (${names.length})`;
}

const tables: Tables = {
  packages: {
    header: ['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'],
    cells: (row) => [row.name, row.displayName, row.defaultChannel],
  },
  channels: {
    header: ['PACKAGE', 'CHANNEL', 'HEAD'],
    cells: (row) => [row.package, row.channel, row.head],
  },
  bundles: {
    header: ['PACKAGE', 'CHANNEL', 'BUNDLE', 'REPLACES', 'SKIPS', 'SKIP RANGE', 'IMAGE'],
    cells: (row, shortens) => [
      row.package,
      row.channel,
      row.bundle,
      row.replaces,
      joinSkips(row.skips, shortens),
      row.skipRange,
      row.image,
    ],
  },
};
