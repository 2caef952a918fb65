import { withOpen } from '../../core/concurrency.js';
import { defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, requiredUnless, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { loadCatalog } from '../../api/load-catalog.js';
import { parseReference } from '../../core/reference.js';
import {
  listVersions,
  readOperatorNames,
  requirePackageName,
  getDefaultCatalogs,
} from '../../mirror/selection/operator-list.js';
import { listChannels, listPackages } from '../../graph/list.js';
import { openReference } from '../../oci/image/open.js';
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
  return withOpen(loadCatalog(reference.replace(/^oci:\/\//, 'oci:'), session), async (loaded) => {
    const facts = await loaded.facts();
    await rememberNames(context, reference, facts);
    if (packageName !== undefined && channel !== undefined) {
      const versions = listVersions(facts, packageName, channel, reference);
      if (output === 'json') return encodeData({ versions }, 'json');
      return formatTable(
        ['VERSIONS'],
        versions.map((name) => [name]),
      );
    }
    if (packageName !== undefined) requirePackageName(facts, packageName, reference);
    const names = await readOperatorNames(loaded, facts, { packageName, signal: session.signal });
    const rows = listPackages(facts, names).filter(
      ({ name }) => packageName === undefined || name === packageName,
    );
    const channels = packageName === undefined ? undefined : listChannels(facts, packageName);
    if (output === 'json') return encodeData({ packages: rows, channels }, 'json');
    const table = formatTable(
      ['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'],
      rows.map((row) => [row.name, row.displayName, row.defaultChannel]),
    );
    if (channels === undefined) return table;
    const header = ['PACKAGE', 'CHANNEL', 'HEAD'];
    return `${table}\n${formatTable(
      header,
      channels.map((row) => [row.package, row.channel, row.head]),
    )}`;
  });
}

async function catalogsText(
  version: string,
  output: ListOptions['output'],
  session: CommandSession,
): Promise<string> {
  const catalogs: { image: string; isPresent: boolean }[] = [];
  const lines = ['Available OpenShift OperatorHub catalogs:', `OpenShift ${printable(version)}:`];
  for (const text of getDefaultCatalogs(version)) {
    await withOpen(openReference(parseReference(text), session), async (opened) => {
      const head = await opened.repository.headManifest(opened.reference, session);
      const isThere = head !== undefined;
      catalogs.push({ image: text, isPresent: isThere });
      lines.push(isThere ? text : `Invalid catalog reference, please check version: ${text}`);
    });
  }
  if (output === 'json') return encodeData({ catalogs }, 'json');
  return lines.map((line) => `${line}\n`).join('');
}
