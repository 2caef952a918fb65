/** Flags, options and messages of the commands that add bundles. */
import type { AddToIndexOptions, AddedBundles } from '../../api/indexes/add-to-index.js';
import { inContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { type Logger, logError } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { parseRegistryImage } from '../../core/reference.js';
import { parseBundleReference, parsePullFrom } from '../../api/indexes/add-to-index.js';
import type { AddMode } from '../../catalog/edit/plan-add.js';
import { type FlagValues, flag, grouped, list, text } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readTextInput } from '../input.js';
import { count } from '../printable.js';
import { permissiveFlag } from '../registry/database.js';
import { formatNames } from './edit-commands.js';

/** `--pull-from` of the commands that add bundles or replace them. */
export const pullFrom = list('prefix=other', 'pull images of one prefix from another; names do not change', {
  group: 'Registry',
});

/** Flags of the commands that add bundles to a database or index image. */
export const addBundleFlags = {
  fromFile: text('file', 'file with one bundle per line, # begins a comment; - for stdin', {
    group: 'Input',
  }),
  pullFrom,
  ...grouped('Behavior', {
    requireDigest: flag('refuse images without a digest'),
    // The value is checked by `readAddPlan`, in the words of opm.
    mode: text('mode', 'update mode of channels', {
      choices: ['replaces', 'semver', 'semver-skippatch'],
      default: 'replaces',
    }),
    overwriteLatest: flag('replace channel heads with bundles of the same name'),
    enableAlpha: flag('allow bundles that substitute for others'),
  }),
  permissive: permissiveFlag,
  ...grouped('Output', {
    minimal: flag('store the manifests of channel heads only', { excludes: ['allInOne'] }),
    allInOne: flag('store the manifests of all bundles in every mode'),
  }),
};

/** Options of the commands that add bundles, some without all flags. */
type AddFlags = GlobalOptions &
  Partial<FlagValues<typeof addBundleFlags>> & { containerTool?: string | undefined };

/** Bundles to add, with checked options. */
interface AddPlan {
  references: string[];
  options: AddToIndexOptions;
}

/** Checks options and reads `--from-file`; pulls nothing. Throws UsageError, and OpmateError with file and line. */
export async function readAddPlan(
  context: CommandContext,
  flags: AddFlags,
  references: readonly string[],
): Promise<AddPlan> {
  const mode = parseMode(flags.mode ?? 'replaces');
  if (flags.caFile !== undefined && flags.skipTlsVerify === true) {
    throw new UsageError('--skip-tls-verify must be false when --ca-file is set', {
      hint: 'remove --skip-tls-verify: certificates of that authority are trusted',
    });
  }
  const pullFrom = parsePullFrom(flags.pullFrom ?? []);
  const listed = flags.fromFile === undefined ? [] : await readReferenceList(context, flags.fromFile, flags);
  const { requireDigest, overwriteLatest, enableAlpha, permissive, minimal, allInOne } = flags;
  const add = { overwriteLatest, enableAlpha, permissive, minimal, allInOne };
  return { references: [...references, ...listed], options: { mode, pullFrom, requireDigest, ...add } };
}

const modes: readonly AddMode[] = ['replaces', 'semver', 'semver-skippatch'];

function parseMode(text: string): AddMode {
  const mode = modes.find((addMode) => addMode === text.toLowerCase());
  if (mode !== undefined) return mode;
  throw new UsageError(`Invalid channel update mode ${text} specified`, {
    hint: `use one of ${modes.join(', ')}`,
  });
}

/** Reads one reference per line from a file; `#` begins a comment. */
async function readReferenceList(context: CommandContext, name: string, flags: AddFlags): Promise<string[]> {
  const { text, file } = await readTextInput(name, context);
  const references: string[] = [];
  for (const [index, content] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const reference = content.replace(/(^|\s)#.*$/, '').trim();
    if (reference === '') continue;
    const place = { file, line: index + 1 };
    inContext({ subject: `${file}:${place.line}`, ...place }, () => {
      if (/[\s\0,]/.test(reference)) {
        const shown = JSON.stringify(reference.slice(0, 100));
        throw new OpmateError('INVALID', `${shown}: not one reference`, {
          hint: 'use one reference per line',
        });
      }
      // The list may come from an index of others, whose paths must not be read.
      parseRegistryImage(reference);
      parseBundleReference(reference, flags);
    });
    references.push(reference);
  }
  return references;
}

/** Warns of insecure flags and of flags without effect. */
export function warnOfFlags(flags: AddFlags, { mode }: AddToIndexOptions, logger: Logger): void {
  const { skipTlsVerify, useHttp, containerTool = 'none', overwriteLatest } = flags;
  for (const [flag, isSet] of [
    ['--skip-tls-verify', skipTlsVerify],
    ['--use-http', useHttp],
  ] as const) {
    if (isSet === true)
      logger.log(
        'warn',
        `${flag} flag is set: this mode is insecure and meant for development purposes only.`,
      );
  }
  if (containerTool !== 'none' && containerTool !== '')
    logger.log('info', `--container-tool ${containerTool} is ignored: opmate pulls images without an engine`);
  if (overwriteLatest === true && mode !== 'replaces')
    logger.log('warn', `--overwrite-latest has no effect in mode ${mode}`);
}

/** Logs added and failed bundles; returns the exit code. */
export function reportAdded(logger: Logger, { added, failures }: AddedBundles, name: string): number {
  const names = [...added.values()].flat();
  const packages = sortedByBytes(added.keys()).map((text) => `${text} (${added.get(text)?.length})`);
  const done =
    names.length === 0
      ? 'no bundle added'
      : `added ${count(names.length, 'bundle')}: ${formatNames(packages)}`;
  logger.log('info', `${name}: ${done}`);
  if (failures.length === 0) return exitCodes.done;
  const left = failures.length === 1 ? '1 bundle was' : `${failures.length} bundles were`;
  logger.log('error', `${name}: ${left} left out:`);
  for (const failure of failures) logError(logger, failure);
  return exitCodes.partly;
}
