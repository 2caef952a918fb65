/** Options and results of the commands that build index images. */
import {
  type IndexImageOptions,
  type MadeIndexImage,
  editIndexImage,
} from '../../api/indexes/index-image.js';
import { UsageError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { parseTargetReference } from '../../core/reference.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { requireFlag } from '../command/require-flag.js';
import type { CommandContext } from '../context.js';
import { reportEnding } from '../ending.js';
import { writeAll } from '../output.js';
import { shellWord } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';
import type { IndexEdit } from './index-edit.js';
import { describeOutput, nextAfterImage, readSignBy } from './image-output.js';
import type { indexImageFlags, toolFlags } from './index-image-flags.js';

/** Options of the commands that build index images, some without an index or tools. */
type IndexImageFlags = GlobalOptions &
  FlagValues<typeof indexImageFlags> &
  Partial<FlagValues<typeof toolFlags>> & { fromIndex?: string | undefined };

/**
 * Builds an index image with `make` and prints its name; `report` logs the changes after the image is pushed. Throws
 * UsageError, and what `make` throws.
 */
export async function printIndexImage<M extends MadeIndexImage>(
  context: CommandContext,
  flags: IndexImageFlags,
  make: (
    session: CommandSession,
    options: IndexImageOptions & { fromIndex?: string | undefined },
  ) => Promise<M>,
  report?: (made: M, logger: Logger) => void,
): Promise<M> {
  const planned = planOutput(flags);
  const signingKey = await readSignBy(flags, context);
  if ('dockerfile' in planned && signingKey !== undefined) {
    throw new UsageError('--sign-by and --generate cannot be used together', {
      hint: 'remove one of them',
    });
  }
  const output = 'dockerfile' in planned ? planned : { ...planned, signingKey };
  const binaryImage = flags.binaryImage || undefined;
  const fromIndex = flags.fromIndex || undefined;
  return useSession(context, flags, async (session) => {
    const { logger } = session;
    noticeFlags(flags, output, logger);
    const made = await make(session, { output, binaryImage, fromIndex });
    report?.(made, logger);
    await printMade(context, logger, made);
    return made;
  });
}

async function printMade(
  context: CommandContext,
  logger: CommandSession['logger'],
  { image, files }: MadeIndexImage,
): Promise<void> {
  if (image === undefined) {
    const dockerfile = files.at(-1) as string;
    const next = `podman build -f ${shellWord(dockerfile)} -t REGISTRY/NAME:TAG .`;
    reportEnding(logger, [`wrote ${files.join(' and ')}`], next);
    await writeAll(context.stdout, `${dockerfile}\n`);
    return;
  }
  logger.log('debug', `made ${image.name}`);
  const next = nextAfterImage(image, (text) => `opmate serve ${text}`);
  reportEnding(logger, [describeOutput(image)], next);
  await writeAll(context.stdout, `${image.name}\n`);
}

/**
 * Edits the database of an index image and prints the new image. Throws UsageError without `--from-index`, and what
 * `plan` and `printIndexImage` throw.
 */
export async function changeIndex<R>(
  context: CommandContext,
  flags: IndexImageFlags,
  plan: () => IndexEdit<R>,
): Promise<void> {
  requireFlag(flags.fromIndex, 'from-index');
  const { change, report } = plan();
  let name = '';
  const edit = (session: CommandSession, options: IndexImageOptions & { fromIndex?: string | undefined }) =>
    editIndexImage<R>(
      session,
      { ...options, onEdited: (_result, indexName) => (name = indexName) },
      (database) => change(database, session),
    );
  await printIndexImage(context, flags, edit, ({ result }, logger) => report(logger, name, result));
}

function planOutput(flags: IndexImageFlags): IndexImageOptions['output'] {
  const { tag, save, generate, containerTool, buildTool, pullTool } = flags;
  if (containerTool && (buildTool || pullTool))
    throw new UsageError('container-tool cannot be set alongside pull-tool or build-tool');
  if (save !== undefined && (tag !== undefined || generate)) {
    throw new UsageError(`--save and ${generate ? '--generate' : '--tag'} cannot be used together`, {
      hint: `save the image, then push it with: opmate oci copy oci-archive:${save} ${tag ?? 'REFERENCE'}`,
    });
  }
  if (generate) return { dockerfile: flags.outDockerfile || 'index.Dockerfile' };
  if (save !== undefined) {
    return { to: { transport: 'oci-archive', text: `oci-archive:${save}`, path: save, tag: 'latest' } };
  }
  if (!tag) {
    throw new UsageError('no destination for the image', {
      hint: 'add --tag REFERENCE to push it, --save FILE to write an oci-archive, or --generate for a Dockerfile',
    });
  }
  const to = parseTargetReference(tag);
  if (to.digest !== undefined || to.tag === undefined) {
    throw new UsageError(`--tag ${tag}: ${to.digest === undefined ? 'missing tag' : 'names a digest'}`, {
      hint: 'specify the target, e.g. registry.example.com/ns/index:v1',
    });
  }
  if (to.transport !== 'docker' && to.transport !== 'oci') {
    throw new UsageError(`--tag ${tag}: an archive cannot be pushed to`, { hint: 'use --save FILE' });
  }
  return { to };
}

/** Logs flags without effect, which scripts for opm set. */
function noticeFlags(flags: IndexImageFlags, output: IndexImageOptions['output'], logger: Logger): void {
  const tools = [
    ['--container-tool', flags.containerTool],
    ['--build-tool', flags.buildTool],
    ['--pull-tool', flags.pullTool],
  ] as const;
  for (const [flag, value] of tools) {
    if (value && value !== 'none')
      logger.log('info', `${flag} ${value} is ignored: opmate pulls and builds images without an engine`);
  }
  const isGenerated = 'dockerfile' in output;
  if (isGenerated && flags.tag) logger.log('info', `--tag ${flags.tag}: nothing is pushed with --generate`);
  if (!isGenerated && flags.outDockerfile)
    logger.log('info', '--out-dockerfile has no effect without --generate: no Dockerfile is needed');
}
