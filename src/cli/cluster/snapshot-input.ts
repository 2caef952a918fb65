import type { CatalogSourceContent } from '../../api/cluster/read-resolver-catalogs.js';
import type { ResolverRequest } from '../../api/cluster/resolver-input.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { invalidValue, redactUrls } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { argument } from '../command/declaration.js';
import { type FlagValues, grouped, list, repeated, text } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { readNamedInput } from '../input.js';

/** Argument of commands that read a snapshot. */
export const snapshotArgument = argument(
  '[snapshot...]',
  'objects of the cluster: files, must-gather directories, - for stdin (default: -)',
);

/** Flags of commands that resolve a snapshot. */
export const snapshotFlags = {
  ...grouped('Input', {
    catalog: repeated('name=reference', 'content of a CatalogSource: [NAMESPACE/]NAME=REF or IMAGE=REF'),
    filename: repeated('file', 'objects to apply first, such as a new Subscription', { short: 'f' }),
    globalNamespace: text('namespace', 'namespace of the catalogs that all namespaces see', {
      defaultText: 'detected automatically',
    }),
  }),
  namespace: list('name', 'only these namespaces', { short: 'n', group: 'Selection' }),
};

/** Flags of commands that plan updates of a cluster. */
export const upgradeFlags = grouped('Input', {
  catalog: repeated('version=reference', 'catalog of a version of OpenShift: v4.19=REF'),
  graph: text('place', 'update service, or file or directory of its saved responses'),
});

/** Reads the options of commands that resolve a snapshot. Throws UsageError. */
export async function readResolverOptions(
  places: readonly string[],
  { catalog, filename, namespace, globalNamespace }: FlagValues<typeof snapshotFlags>,
  context: CommandContext,
): Promise<ResolverRequest> {
  return {
    snapshot: await readSnapshotPlaces(places, context),
    catalogs: parseSnapshotCatalogs(catalog),
    proposed: filename === undefined ? [] : await readSnapshotPlaces(filename, context),
    ...(namespace !== undefined && { namespaces: namespace }),
    ...(globalNamespace !== undefined && { globalNamespace }),
  };
}

/** Reads the files of a snapshot; directories are read by the library. */
export async function readSnapshotPlaces(
  places: readonly string[],
  context: CommandContext,
): Promise<(string | ClusterText)[]> {
  const read: (string | ClusterText)[] = [];
  for (const place of places.length === 0 ? ['-'] : places)
    read.push(place === '-' ? await readNamedInput(place, context) : place);
  return read;
}

/** Reads the values of `--catalog`; those of one name are one catalog. Throws UsageError. */
export function parseSnapshotCatalogs(
  values: readonly string[] | undefined,
): Map<string, CatalogSourceContent> {
  const references = new Map<string, string[]>();
  for (const value of values ?? []) {
    const [, name = '', reference = ''] = /^([^=]+)=(.+)$/s.exec(value) ?? [];
    if (name === '')
      throw invalidValue('--catalog', redactUrls(value), 'not a catalog', {
        hint: 'use NAME=REF, where NAME is that of a CatalogSource or its image',
      });
    pushTo(references, name, reference);
  }
  return new Map([...references].map(([name, list]) => [name, { references: list }]));
}

/** Reads the values of `--catalog`; several of one version are read together. Throws UsageError. */
export function parseVersionedCatalogs(values: readonly string[] | undefined): Map<string, string[]> {
  const catalogs = new Map<string, string[]>();
  for (const value of values ?? []) {
    const [, version = '', reference = ''] = /^v?(\d+\.\d+)=(.+)$/s.exec(value) ?? [];
    if (version === '')
      throw invalidValue('--catalog', redactUrls(value), 'not a catalog of a version', {
        hint: 'use VERSION=REF, as in v4.19=REF',
      });
    pushTo(catalogs, version, reference);
  }
  return catalogs;
}
