import { parseDirectoryUrl } from '../../api/mirror/destination.js';
import type { VerificationOptions } from '../../api/mirror/image-set-run.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { isObjectName, isObjectPrefix } from '../../mirror/image-set/image-set-resources.js';
import type { CommandContext } from '../context.js';
import { findPolicyRequest } from '../root/policy-flags.js';
import { type ImageSetOptions, mirrorFlags } from './flags.js';
import { parseInteger } from './options.js';

/** Returns the absolute parent directory of `working-dir`; default `otherwise`. Throws UsageError. */
export function getWorkspace(
  flags: ImageSetOptions,
  context: CommandContext,
  otherwise = context.workingDirectory,
): string {
  if (flags.workspace === undefined) return otherwise;
  const { workspace } = flags;
  const directory = parseDirectoryUrl(workspace, context.workingDirectory);
  if (directory !== undefined) return directory;
  throw invalidValue('--workspace', workspace, 'not a directory', {
    hint: 'use file://DIRECTORY',
  });
}

/** Returns the maximum number of path components at the target; undefined for no limit. Throws UsageError. */
export function findMaxNestedPaths({ maxNestedPaths: text }: ImageSetOptions): number | undefined {
  if (text === undefined || text === '0') return undefined;
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw invalidValue('--max-nested-paths', text, 'expected a number from 0 to 999');
}

/** Returns names and poll interval of cluster resources. Throws UsageError. */
export function getNaming({ name, prefix, pollInterval }: ImageSetOptions) {
  if (name !== undefined && !isObjectName(name)) {
    throw invalidValue('--name', name, 'invalid object name', { hint: nameHint });
  }
  if (prefix !== undefined && !isObjectPrefix(prefix)) {
    throw invalidValue('--prefix', prefix, 'invalid name prefix', { hint: nameHint });
  }
  const [, amount, unit] = /^(\d{1,4})([mh])$/.exec(pollInterval ?? '') ?? [];
  if (pollInterval !== undefined && (amount === undefined || Number(amount) === 0)) {
    throw invalidValue('--poll-interval', pollInterval, 'invalid duration', {
      hint: 'use minutes or hours, e.g. 30m or 6h',
    });
  }
  const pollIntervalMinutes = amount === undefined ? undefined : Number(amount) * (unit === 'h' ? 60 : 1);
  return { catalogName: name, prefix, pollIntervalMinutes };
}

const nameHint = 'use at most 63 characters of a-z, 0-9 and "-", starting with a letter';

/** Returns the value of `--max-per-registry`; undefined for the default, which depends on the verb. */
export function getMaxPerRegistry({ maxPerRegistry }: ImageSetOptions): number | undefined {
  if (maxPerRegistry === undefined || maxPerRegistry === mirrorFlags.maxPerRegistry.default) return undefined;
  return parseInteger(maxPerRegistry, 'max-per-registry', 1, 100);
}

/** Reads `--verify` and the policy flags; default with a policy: strict. Throws UsageError. */
export function readVerification(options: ImageSetOptions): VerificationOptions | undefined {
  const request = findPolicyRequest(options);
  const { verify = request === undefined ? 'off' : 'strict' } = options;
  if (verify === 'off') return undefined;
  if (request === undefined) {
    const hint = 'add --policy, --key, or --certificate-identity with --trusted-root';
    throw invalidValue('--verify', verify, 'no signature policy', { hint });
  }
  if (options.removeSignatures === true && options.from === undefined) {
    const hint = 'remove one of them: the far side could not verify again';
    throw new UsageError('--verify and --remove-signatures cannot be used together', { hint });
  }
  return { ...request, isStrict: verify === 'strict', registriesDirectory: options['registries.d'] };
}
