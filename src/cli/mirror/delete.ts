import { addNote } from '../../core/diagnostics-error.js';
import { logError } from '../../core/log.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, grouped, repeated, requiredUnless, text } from '../command/flags.js';
import { type ImageSetOptions, lockFlags, mirrorFlags, targetAccessFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { decodeFile } from '../../document/document.js';
import {
  deleteMirrored,
  listMirrorDeletions,
  listReplacedImages,
  requireFileSuffix,
  requireMirrorTarget,
  writeDeleteList,
} from '../../api/mirror/delete-images.js';
import { findWorkspaceLock, nameWorkspaceLock } from '../../api/mirror/find-lock.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../../files/read-file.js';
import { writeAll } from '../output.js';
import { formatFlags, reportEnding, summarizeItems } from '../ending.js';
import { count, shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';

const flags = {
  config: text('file', 'with --generate: DeleteImageSetConfiguration', {
    short: 'c',
    group: 'Input',
    needs: 'generate',
  }),
  previous: text('lock', 'with --generate: list the images of this lock that the current one lacks', {
    group: 'Input',
    needs: 'generate',
    excludes: ['config'],
  }),
  workspace: {
    ...lockFlags.workspace,
    summary: 'parent of working-dir with list and audit trail (default: file://.)',
  },
  deleteId: text('text', 'with --generate: suffix of file names', { group: 'Output', needs: 'generate' }),
  deleteYamlFile: text('file', 'list of images to delete', { group: 'Input' }),
  maxNestedPaths: lockFlags.maxNestedPaths,
  ...grouped('Selection', {
    keep: repeated('lock', 'keep images of this lock'),
    allowShared: flag('also delete images that other tags or indexes use'),
    deleteSignatures: flag('also delete signatures'),
    deleteV1Images: flag('with --generate: use the tags of oc-mirror v1', { needs: 'generate' }),
  }),
  ...grouped('Output', {
    dryRun: flag('with --delete-yaml-file: check every image without deleting'),
    generate: requiredUnless(
      ['deleteYamlFile'],
      flag('write working-dir/delete/delete-images.yaml without deleting', {
        needs: ['config', 'previous'],
        excludes: ['deleteYamlFile'],
      }),
    ),
  }),
  forceCacheDelete: flag('ignored; there is no cache', { hidden: true }),
};

type DeleteOptions = FlagValues<typeof flags> & ImageSetOptions;

/** `opmate mirror delete`; prints digest and name of each deleted image. Exit code 1 if all failed, 4 if some did. */
export const command = defineCommand({
  summary: 'generate or execute a list of images to delete',
  tool: 'oc-mirror',
  arguments: [argument('<destination>', 'docker://REGISTRY[/PATH]')],
  inherits: mirrorFlags,
  flags,
  commonFlags: [
    'generate',
    'config',
    'deleteYamlFile',
    'workspace',
    'dryRun',
    'allowShared',
    'deleteSignatures',
    'previous',
    'keep',
  ],
  examples: {
    'Write a list of images to delete':
      'opmate mirror delete --generate -c delete.yaml docker://registry.example.com/demo-mirror',
    'Write a list of the images that the last run no longer selected':
      'opmate mirror delete --generate --previous working-dir/opmate.lock.previous.json docker://registry.example.com/demo-mirror',
    'Check a list without deleting':
      'opmate mirror delete --delete-yaml-file delete-images.yaml docker://registry.example.com/demo-mirror --dry-run',
  },
  readOptions: ({ context, args: [destination], options }) =>
    readMirrorOptions(options, [destination], context),
  async runInSession({ context, args: [destination], options, session }) {
    requireMirrorTarget(destination, options.maxNestedPaths);
    const { deleteYamlFile } = options;
    return deleteYamlFile === undefined
      ? generateList(destination, options, session)
      : deleteListed(context, destination, deleteYamlFile, options, session);
  },
});

async function generateList(
  destination: string,
  options: DeleteOptions,
  session: CommandSession,
): Promise<number> {
  const { config: file = '', deleteId, maxNestedPaths, workspace, previous } = options;
  requireFileSuffix(deleteId);
  const { logger } = session;
  const replacing = previous === undefined ? [] : [options.lock ?? nameWorkspaceLock(workspace, session)];
  const keep = [...(options.keep ?? []), ...replacing];
  const current = await findWorkspaceLock(destination, session, options);
  const common = { maxNestedPaths, keep, signatures: options.deleteSignatures };
  const configuration =
    previous === undefined ? decodeFile(await readInputFile(file, session), file) : undefined;
  const deletions =
    configuration === undefined
      ? await listReplacedImages(previous ?? '', destination, session, common)
      : await listMirrorDeletions(configuration, file, destination, session, {
          ...common,
          current,
          v1Tags: options.deleteV1Images,
          graphData: options.graphData,
          ignoreReleaseSignature: options.ignoreReleaseSignature,
        });
  const { images, catalogs, kept, needed, warnings } = deletions;
  for (const warning of warnings) logger.log('warn', warning);
  for (const sentence of kept) logger.log('info', sentence);
  const written = await writeDeleteList(deletions, session, { workspace, id: deleteId, configuration });
  const stay = catalogs > 0 ? '; catalogs stay' : '';
  if (needed > 0) logger.log('warn', describeNeeded(needed, images, current));
  if (needed > 0 && needed < images && current !== undefined) keep.push(current);
  reportEnding(
    logger,
    [`${written}: ${count(images, 'image')} to delete${stay}`],
    images === 0 ? undefined : getDeleteCommand(written, destination, { ...options, keep }),
  );
  return exitCodes.done;
}

/** Describes listed images that the lock of the mirror selects. */
function describeNeeded(needed: number, images: number, lock = ''): string {
  const sentence = `${needed} of ${count(images, 'image')} ${needed === 1 ? 'is' : 'are'} selected by ${lock}`;
  return needed < images
    ? `${sentence}, and kept with --keep`
    : `${sentence}: the next command deletes them, and with --keep ${shellWord(lock)} nothing`;
}

/** Returns the command that deletes the images of a list, with the options of the run that proposes it. */
function getDeleteCommand(file: string, destination: string, options: DeleteOptions): string {
  const { maxNestedPaths, keep, allowShared, deleteSignatures } = flags;
  const repeated = { maxNestedPaths, keep, allowShared, deleteSignatures, ...targetAccessFlags };
  const list = `--delete-yaml-file ${shellWord(file)}`;
  return `opmate mirror delete ${list}${formatFlags(repeated, options)} ${shellWord(destination)}`;
}

async function deleteListed(
  context: CommandContext,
  destination: string,
  file: string,
  options: DeleteOptions,
  session: CommandSession,
): Promise<number> {
  const { logger } = session;
  const text = decodeFile(await readInputFile(file, context), file);
  const dryRun = options.dryRun === true;
  const report = await deleteMirrored(text, file, destination, session, {
    dryRun,
    keep: options.keep,
    allowShared: options.allowShared,
    signatures: options.deleteSignatures,
    workspace: options.workspace ?? '.',
    maxPerRegistry: options.maxPerRegistry,
    maxNestedPaths: options.maxNestedPaths,
  });
  if (report.catalogs > 0) {
    const passed = `${count(report.catalogs, 'catalog')} skipped: catalogs are never deleted`;
    logger.log('warn', `${file}: ${passed}`);
  }
  const missing = report.missing.map((name) => `${name}: not found`);
  for (const line of summarizeItems(missing, 'missing image', logger)) logger.log('info', line);
  for (const line of summarizeItems(report.kept, 'kept image', logger)) logger.log('info', line);
  for (const error of report.failed) logError(logger, error);
  const { done, stopped, failed } = report;
  const rest = [
    report.missing.length > 0 ? `${report.missing.length} not found` : '',
    report.kept.length > 0 ? `${report.kept.length} kept` : '',
  ].filter((part) => part !== '');
  const sum = `${count(done.length, 'image')} ${dryRun ? 'would be deleted' : 'deleted'}`;
  logger.log('info', [sum, ...rest].join(', '));
  if (stopped !== undefined && done.length > 0) {
    logError(logger, addNote(stopped, 'the rest was not tried'));
  }
  const isWhole = stopped === undefined && failed.length === 0 && done.length > 0;
  if (isWhole) {
    const again = getDeleteCommand(file, destination, options);
    const [registry] = destination.replace(/^docker:\/\//, '').split('/');
    logger.log('info', `next: ${dryRun ? again : `run garbage collection on ${registry} to free the space`}`);
  }
  logger.close();
  await writeAll(context.stdout, done.map(({ digest, name }) => `${digest} ${name}\n`).join(''));
  if (stopped !== undefined && done.length === 0) throw stopped;
  if (stopped === undefined && failed.length === 0) return exitCodes.done;
  return done.length > 0 ? exitCodes.partly : exitCodes.failed;
}
