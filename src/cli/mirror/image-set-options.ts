import { parseDirectoryUrl } from '../../api/mirror/destination.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { isObjectName, isObjectPrefix } from '../../mirror/image-set/image-set-resources.js';
import type { CommandContext } from '../context.js';
import type { ImageSetOptions } from './flags.js';
import { parseInteger } from './options.js';

/** The directory of `working-dir`, absolute; `otherwise` where no flag names one. */
export function getWorkspace(
  flags: ImageSetOptions,
  context: CommandContext,
  otherwise = context.workingDirectory,
): string {
  if (flags.workspace === undefined) return otherwise;
  const { workspace } = flags;
  const directory = parseDirectoryUrl(workspace, context.workingDirectory);
  if (directory !== undefined) return directory;
  throw new UsageError(`--workspace ${quoteGo(workspace)}: not a directory`, {
    hint: 'use file://DIRECTORY',
  });
}

/** Most components of a path at the target; undefined for any number. */
export function findMaxNestedPaths({ maxNestedPaths: text }: ImageSetOptions): number | undefined {
  if (text === undefined || text === '0') return undefined;
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw new UsageError(`--max-nested-paths ${text}: not a number of path components`);
}

/** What the objects are called, and how often catalogs are looked for. */
export function getNaming({ name, prefix, pollInterval }: ImageSetOptions) {
  if (name !== undefined && !isObjectName(name)) {
    throw new UsageError(`--name ${quoteGo(name)}: not a name for an object`, { hint: nameHint });
  }
  if (prefix !== undefined && !isObjectPrefix(prefix)) {
    throw new UsageError(`--prefix ${quoteGo(prefix)}: no name can begin so`, { hint: nameHint });
  }
  const [, amount, unit] = /^(\d{1,4})([mh])$/.exec(pollInterval ?? '') ?? [];
  if (pollInterval !== undefined && (amount === undefined || Number(amount) === 0)) {
    const problem = `--poll-interval ${quoteGo(pollInterval)}: not a time`;
    throw new UsageError(problem, { hint: 'use minutes or hours, e.g. 30m or 6h' });
  }
  const pollIntervalMinutes = amount === undefined ? undefined : Number(amount) * (unit === 'h' ? 60 : 1);
  return { catalogName: name, prefix, pollIntervalMinutes };
}

const nameHint = 'use at most 63 characters of a-z, 0-9 and "-", starting with a letter';

/** Large blobs at a time: at least one of each image that is copied at the same time. */
export function getMaxPerRegistry({ maxPerRegistry = '6', parallelImages }: ImageSetOptions): number {
  const count = parseInteger(maxPerRegistry, 'max-per-registry', 1, 100);
  return maxPerRegistry === '6' ? Math.max(count, parallelImages ?? 0) : count;
}
