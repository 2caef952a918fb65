/** Flags and results of the commands that build index images. */
import type { EditIndexImageOptions, MadeIndexImage } from '../../api/indexes/index-image.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { parseTargetReference } from '../../core/reference.js';
import { type FlagValues, flag, grouped, requiredUnless, text } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { reportEnding } from '../ending.js';
import { writeAll } from '../output.js';
import { shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';
import { describeOutput, nextAfterImage, readSignBy, signByFlag } from './image-output.js';

/** Flags of every command that builds an index image. */
export const indexImageFlags = {
  binaryImage: text(
    'image',
    'base image, from a registry or layout, or scratch (default: quay.io/operator-framework/opm:v1.73.0)',
    { short: 'i', group: 'Input' },
  ),
  ...grouped('Output', {
    tag: requiredUnless(
      ['save', 'generate'],
      text('reference', 'image reference to push to', { short: 't' }),
    ),
    save: text('file', 'save the image to an oci-archive file', { excludes: ['tag', 'generate'] }),
    generate: flag('write ./database/index.db and a Dockerfile instead of an image', {
      excludes: ['signBy'],
    }),
  }),
  signBy: signByFlag,
  outDockerfile: text('file', 'Dockerfile name (default: index.Dockerfile)', { short: 'd', group: 'Output' }),
};

/** Description of the base image, for help. */
export const baseImageNote =
  'The default base is the last release of opm that serves databases. For reproducible images, pin the base by digest ' +
  '(--binary-image …@sha256:…). On a multi-platform base, one image per platform is built; --platform selects one.';

const toolTraits = { choices: ['none', 'docker', 'podman'] };
const toolSummary = 'ignored; accepted for compatibility';

/** Flags of `opm` for container engines, which have no effect. */
export const toolFlags = {
  containerTool: text('tool', toolSummary, { ...toolTraits, short: 'c' }),
  buildTool: text('tool', toolSummary, { ...toolTraits, short: 'u' }),
  pullTool: text('tool', toolSummary, { ...toolTraits, short: 'p' }),
};

/** Options of the commands that build index images, some without an index or tools. */
type IndexImageFlags = GlobalOptions &
  FlagValues<typeof indexImageFlags> &
  Partial<FlagValues<typeof toolFlags>> & { fromIndex?: string | undefined };

/**
 * Builds an index image with `make` and prints its name; `report` logs the changes of the named index after the image
 * is pushed. Throws UsageError, and what `make` throws.
 */
export async function printIndexImage<R>(
  context: CommandContext,
  flags: IndexImageFlags,
  session: CommandSession,
  make: (
    options: Omit<EditIndexImageOptions<R>, 'onEdited'>,
    onEdited: (result: R, name: string) => void,
  ) => Promise<MadeIndexImage & { result?: R }>,
  report?: (logger: Logger, name: string, result: R) => void,
): Promise<void> {
  const planned = planOutput(flags);
  const signingKey = await readSignBy(flags, context);
  const output = 'dockerfile' in planned ? planned : { ...planned, signingKey };
  const binaryImage = flags.binaryImage || undefined;
  const fromIndex = flags.fromIndex || undefined;
  const { logger } = session;
  noticeFlags(flags, output, logger);
  let index = '';
  const made = await make({ output, binaryImage, fromIndex }, (_, name) => (index = name));
  report?.(logger, index, made.result as R);
  const { image, files } = made;
  const name = image?.name ?? (files.at(-1) as string);
  if (image === undefined) {
    const next = `podman build -f ${shellWord(name)} -t REGISTRY/NAME:TAG .`;
    reportEnding(logger, [`wrote ${files.join(' and ')}`], next);
  } else {
    logger.log('debug', `made ${name}`);
    const next = nextAfterImage({ to: image.to }, (reference) => `opmate serve ${reference}`, flags);
    reportEnding(logger, [describeOutput(image)], next);
  }
  await writeAll(context.stdout, `${name}\n`);
}

function planOutput(flags: IndexImageFlags): EditIndexImageOptions<never>['output'] {
  const { tag = '', save, generate, containerTool, buildTool, pullTool } = flags;
  if (containerTool && (buildTool || pullTool))
    throw new UsageError('container-tool cannot be set alongside pull-tool or build-tool');
  if (generate) return { dockerfile: flags.outDockerfile || 'index.Dockerfile' };
  if (save !== undefined) {
    return { to: { transport: 'oci-archive', text: `oci-archive:${save}`, path: save, tag: 'latest' } };
  }
  const to = parseTargetReference(tag);
  if (to.digest !== undefined || to.tag === undefined) {
    throw invalidValue('--tag', tag, to.digest === undefined ? 'missing tag' : 'names a digest', {
      hint: 'specify the target, e.g. registry.example.com/ns/index:v1',
    });
  }
  if (to.transport !== 'docker' && to.transport !== 'oci') {
    throw invalidValue('--tag', tag, 'an archive cannot be pushed to', { hint: 'use --save FILE' });
  }
  return { to };
}

/** Logs flags without effect, which scripts for opm set. */
function noticeFlags(
  flags: IndexImageFlags,
  output: EditIndexImageOptions<never>['output'],
  logger: Logger,
): void {
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
