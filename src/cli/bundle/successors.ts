import { argument, defineCommand } from '../command/declaration.js';
import { required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import {
  type ChannelSuccessors,
  type UpgradeStep,
  findSuccessors,
} from '../../api/bundle/find-successors.js';
import { createFault } from '../../core/diagnostic.js';
import { parseNamedCatalog } from '../../api/named-catalogs.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import { formatTable } from '../table.js';
import { endWithFindings } from './findings.js';
import { channelFlags, getData, referenceForms, splitInstalled } from './resolve-input.js';

/** `opmate bundle successors`; exit code 3 if no upgrade path leads to `--path-to`. */
export const command = defineCommand({
  summary: 'show the bundles that can replace a bundle, and the upgrade path to the newest',
  description: referenceForms,
  arguments: [
    argument('<package>', 'name of the package'),
    argument('<bundle>', 'NAME, or NAME@VERSION if the catalog does not have it'),
  ],
  flags: {
    catalog: required(text('catalog', 'catalog: REF or NAME=REF', { group: 'Input' })),
    ...channelFlags,
    pathTo: text('version', 'show the shortest upgrade path to this version', { group: 'Selection' }),
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
  },
  examples: {
    'Show the bundles that can replace a bundle':
      'opmate bundle successors demo demo.v1.0.0 --catalog ./catalog',
    'Show the shortest path to a version':
      'opmate bundle successors demo demo.v1.0.0 --catalog ./catalog --path-to 1.2.0',
  },
  async runInSession({ context, args: [packageName, name], options, session }) {
    const { output, channel, pathTo } = options;
    const bundle = splitInstalled(name);
    const catalog = parseNamedCatalog(options.catalog);
    const request = { packageName, bundle, channels: channel, pathTo };
    const { path, ...report } = await findSuccessors(request, catalog, session);
    session.logger.close();
    const data = { ...report, ...(pathTo !== undefined && { pathTo, path: path ?? null }) };
    await writeAll(
      context.stdout,
      output === 'text' ? formatText(report.channels, pathTo, path) : getData(data, output),
      session.signal,
    );
    if (pathTo === undefined || path !== undefined) return exitCodes.done;
    const problem = `no upgrade path from ${report.bundle.name} to ${pathTo}`;
    return endWithFindings({ context, session }, [createFault('no-upgrade', problem)]);
  },
});

function formatText(
  channels: readonly ChannelSuccessors[],
  pathTo: string | undefined,
  path: readonly UpgradeStep[] | undefined,
): string {
  const rows = channels.flatMap(({ channel, successors }) =>
    successors.map(({ name, version, stream, how, deprecation }) => [
      channel,
      name,
      version === '' ? '-' : version,
      stream === '' ? '-' : stream,
      how,
      deprecation === undefined ? '-' : 'yes',
    ]),
  );
  let text =
    rows.length === 0
      ? 'no successors\n'
      : formatTable(['CHANNEL', 'SUCCESSOR', 'VERSION', 'STREAM', 'HOW', 'DEPRECATED'], rows);
  text += `\n${formatTable(['CHANNEL', 'HEAD', 'LONGEST PATH', 'SHORTEST PATH'], channels.map(wayRow))}`;
  if (pathTo === undefined || path === undefined) return text;
  const steps = path.length === 0 ? 'already at this version' : getNames(path);
  return `${text}\nto ${pathTo}: ${steps}\n`;
}

function wayRow({
  channel,
  head,
  longestPath: longest,
  shortestPath: shortest,
}: ChannelSuccessors): string[] {
  const way = (steps: readonly UpgradeStep[] | undefined): string =>
    steps === undefined ? '-' : steps.length === 0 ? '(head)' : getNames(steps);
  const longestText =
    longest !== undefined && longest.length > 1
      ? `${count(longest.length, 'upgrade')}: ${way(longest)}`
      : way(longest);
  return [channel, head === '' ? '-' : head, longestText, way(shortest)];
}

function getNames(steps: readonly UpgradeStep[]): string {
  return steps.map(({ name }) => name).join(' -> ');
}
