import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, requiredUnless, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { listDefaultCatalogs, listCatalogOperators } from '../../api/listing/list-operators.js';
import { rememberNames } from '../completion/cache.js';
import type { CommandContext } from '../context.js';
import { encodeData } from '../reports/encode-data.js';
import { printable } from '../printable.js';
import { type CommandSession, writePieces } from '../session.js';
import { formatTable } from '../table.js';

const flags = {
  ...grouped('Selection', {
    catalog: requiredUnless(['catalogs'], text('reference', 'catalog image, layout or directory')),
    package: text('name', 'with --catalog: list channels and heads of this package', {
      short: 'p',
      needs: 'catalog',
    }),
    channel: text('name', 'with --package: list versions in this channel', { needs: 'package' }),
    catalogs: flag('with --version: list the well-known catalogs', {
      needs: 'version',
      excludes: ['catalog'],
    }),
    version: text('version', 'with --catalogs: cluster version, e.g. 4.18', { needs: 'catalogs' }),
  }),
  output: outputFormat(['text', 'json'], { default: 'text' }),
};

type ListOptions = FlagValues<typeof flags>;

/** `opmate mirror list operators`. */
export const command = defineCommand({
  summary: 'list the packages, channels or versions of a catalog as tables',
  tool: 'oc-mirror',
  inherits: mirrorFlags,
  flags,
  examples: {
    'List the packages of a catalog':
      'opmate mirror list operators --catalog registry.example.com/demo/catalog:v1',
    'List the versions in a channel':
      'opmate mirror list operators --catalog ./catalog --package demo --channel stable',
  },
  readOptions: ({ context, options }) => readMirrorOptions(options, [], context),
  async runInSession({ context, options, session }) {
    const { catalog, catalogs, version } = options;
    const text = catalogs
      ? await catalogsText(version as string, options.output, session)
      : await catalogText(catalog as string, options, context, session);
    await writePieces(context, session, text);
  },
});

async function catalogText(
  reference: string,
  { package: packageName, channel, output }: ListOptions,
  context: CommandContext,
  session: CommandSession,
): Promise<string> {
  const { packages, channels, versions } = await listCatalogOperators(reference, session, {
    package: packageName,
    channel,
    onFacts: (facts) => rememberNames(context, reference, facts),
  });
  if (versions !== undefined) {
    if (output === 'json') return encodeData({ versions }, 'json');
    return formatTable(
      ['VERSIONS'],
      versions.map((name) => [name]),
    );
  }
  if (output === 'json') return encodeData({ packages, channels }, 'json');
  const table = formatTable(
    ['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'],
    packages.map((row) => [row.name, row.displayName, row.defaultChannel]),
  );
  if (channels === undefined) return table;
  const rows = channels.map((row) => [row.package, row.channel, row.head]);
  return `${table}\n${formatTable(['PACKAGE', 'CHANNEL', 'HEAD'], rows)}`;
}

async function catalogsText(
  version: string,
  output: ListOptions['output'],
  session: CommandSession,
): Promise<string> {
  const catalogs = await listDefaultCatalogs(version, session);
  if (output === 'json') return encodeData({ catalogs }, 'json');
  const lines = [
    'Available OpenShift OperatorHub catalogs:',
    `OpenShift ${printable(version)}:`,
    ...catalogs.map(({ image, isPresent }) =>
      isPresent ? image : `Invalid catalog reference, please check version: ${image}`,
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
