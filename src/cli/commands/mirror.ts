import path from 'node:path';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import type { Logger } from '../../core/log.js';
import { readImageSetConfiguration } from '../../mirror/image-set-config.js';
import { parseMirrorTarget } from '../../mirror/image-set-names.js';
import {
  type ImageSetPlan,
  type PlannedCatalog,
  mappingLines,
  openPinnedCatalog,
  planImageSet,
} from '../../mirror/image-set-plan.js';
import {
  clusterResources,
  isObjectName,
  isObjectPrefix,
  readCatalogSourceTemplates,
} from '../../mirror/image-set-resources.js';
import { replaceDirectories } from '../../mirror/output-files.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { readInputFile } from '../input.js';
import { booleanOf } from '../options.js';
import { count } from '../printable.js';
import { useSession } from '../session.js';

/** Options of `opmate mirror --config`. */
export interface MirrorCommandOptions extends GlobalOptions {
  config?: string;
  workspace?: string;
  maxNestedPaths?: string;
  icsp?: boolean;
  name?: string;
  prefix?: string;
  pollInterval?: string;
  filename?: string;
}

/**
 * `opmate mirror --config FILE docker://REGISTRY[/PATH] --dry-run`: what `oc-mirror` v2 would mirror, as
 * `working-dir/dry-run/mapping.txt`, with the cluster resources, below the workspace. Says on stderr what is taken
 * of each package and why.
 */
export async function mirrorImageSet(
  context: CommandContext,
  destinations: readonly string[],
  options: MirrorCommandOptions,
): Promise<void> {
  const [destination, ...more] = destinations;
  if (destination === undefined || more.length > 0) {
    const hint = 'write mirror --config FILE docker://REGISTRY[/PATH] --dry-run';
    throw new UsageError('one destination is needed', { hint });
  }
  if (options.filename !== undefined) {
    throw new UsageError('--config and --filename cannot be used together', { hint: 'keep one of them' });
  }
  if (/^(file|oci):/.test(destination)) {
    const hint = 'plan for a registry: docker://REGISTRY[/PATH] --dry-run';
    throw new UsageError('mirroring an image set to disk is not supported yet', { hint });
  }
  const target = parseMirrorTarget(destination);
  const maxNestedPaths = maxNestedPathsOf(options.maxNestedPaths);
  const workspace = workspaceOf(options.workspace);
  const naming = namingOf(options);
  if (!booleanOf(options, 'dryRun')) {
    const hint = 'add --dry-run for the mapping and the cluster resources';
    throw new UsageError('copying an image set is not supported yet', { hint });
  }
  const inWorkingDirectory = (file: string): string => path.resolve(context.workingDirectory, file);
  const file = options.config as string;
  const config = readImageSetConfiguration((await readInputFile(inWorkingDirectory(file))).toString(), file);
  const templates = await readCatalogSourceTemplates(config.operators, inWorkingDirectory);
  await useSession(context, options, async (session) => {
    const { logger, signal } = session;
    const plan = await planImageSet(config, {
      target,
      maxNestedPaths,
      logger,
      signal,
      openCatalog: (reference) => openPinnedCatalog(reference, session),
    });
    const lines = mappingLines(plan.images, target);
    const resources = clusterResources(plan, {
      registry: target.registry,
      byRepository: maxNestedPaths !== undefined,
      icsp: options.icsp,
      ...naming,
      templates,
    });
    const root = path.join(workspace, 'working-dir');
    await replaceDirectories(
      inWorkingDirectory(root),
      new Map([
        ['dry-run', new Map([['mapping.txt', lines.map((line) => `${line}\n`).join('')]])],
        ['cluster-resources', resources],
      ]),
    );
    logger.close();
    describePlan(plan, logger, options.icsp === true);
    logger.log('info', `${path.join(root, 'dry-run', 'mapping.txt')}: ${count(lines.length, 'image')}`);
    const names = [...resources.keys()].sort().join(', ');
    logger.log('info', `${path.join(root, 'cluster-resources')}: ${names}`);
  });
}

function maxNestedPathsOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '0') return undefined;
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw new UsageError(`--max-nested-paths ${text}: not a number of path components`);
}

/** What the objects are called, and how often catalogs are looked for. */
function namingOf({ name, prefix, pollInterval }: MirrorCommandOptions) {
  if (name !== undefined && !isObjectName(name)) {
    throw new UsageError(`--name ${quoteGo(name)}: not a name for an object`, { hint: nameHint });
  }
  if (prefix !== undefined && !isObjectPrefix(prefix)) {
    throw new UsageError(`--prefix ${quoteGo(prefix)}: no name can begin so`, { hint: nameHint });
  }
  const [, count, unit] = /^(\d{1,4})([mh])$/.exec(pollInterval ?? '') ?? [];
  if (pollInterval !== undefined && (count === undefined || Number(count) === 0)) {
    const problem = `--poll-interval ${quoteGo(pollInterval)}: not a time`;
    throw new UsageError(problem, { hint: 'write it in minutes or hours, as 30m or 6h' });
  }
  const pollIntervalMinutes = count === undefined ? undefined : Number(count) * (unit === 'h' ? 60 : 1);
  return { catalogName: name, prefix, pollIntervalMinutes };
}

const nameHint = 'use a-z, 0-9 and "-", beginning with a letter, up to 63 characters in all';

function workspaceOf(text = 'file://.'): string {
  if (text.startsWith('file://') && text !== 'file://') return text.slice('file://'.length);
  throw new UsageError(`--workspace ${quoteGo(text)}: not a directory`, { hint: 'write file://DIRECTORY' });
}

function describePlan(plan: ImageSetPlan, logger: Logger, icsp: boolean): void {
  for (const catalog of plan.catalogs) describeCatalog(catalog, plan, logger);
  const additional = plan.images.filter(({ kind }) => kind === 'additional').length;
  if (additional > 0) logger.log('info', `additional images: ${additional}`);
  for (const { source, pattern } of plan.blocked)
    logger.log('info', `${source}: blocked by ${quoteGo(pattern)}`);
  for (const warning of plan.warnings) logger.log('warn', warning);
  const byTag = plan.images.filter(
    ({ kind, reference }) => kind !== 'catalog' && reference.digest === undefined,
  );
  if (icsp && byTag.length > 0) {
    const hint = 'no ImageContentSourcePolicy redirects these';
    logger.log('warn', `${count(byTag.length, 'image')} named by tag: ${hint}`);
  }
}

function describeCatalog(
  { operator, digest, selection }: PlannedCatalog,
  plan: ImageSetPlan,
  logger: Logger,
): void {
  const how = selection.isWhole ? 'as it is' : 'rebuilt';
  logger.log(
    'info',
    `${operator.catalog}: ${digest}, ${count(selection.packages.length, 'package')}, ${how}`,
  );
  const images = new Map<string, number>();
  for (const image of plan.images) {
    for (const name of new Set(image.bundles.map((bundle) => bundle.package))) {
      images.set(name, (images.get(name) ?? 0) + 1);
    }
  }
  for (const { name, channels, bundles } of selection.packages) {
    const heads = channels.map((channel) => `${channel.name} to ${channel.head}`).join(', ');
    const amount = `${count(bundles, 'bundle')}, ${count(images.get(name) ?? 0, 'image')}`;
    logger.log('info', `  ${name}: ${amount} (${heads})`);
    for (const { package: of, channel, bundle, reason } of selection.kept) {
      if (of === name) logger.log('info', `    ${bundle} in ${channel} is kept too: it ${reason}`);
    }
  }
}
