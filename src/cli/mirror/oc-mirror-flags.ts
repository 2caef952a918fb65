import path from 'node:path';
import { UsageError } from '../../core/errors.js';
import type { TransferOptions } from '../../mirror/transfer/transfer-types.js';
import type { Credentials } from '../../oci/registry/credentials.js';
import type { RegistryOverrides } from '../../oci/registry/connection.js';
import { longName } from '../command/command-line.js';
import type { CommandContext } from '../context.js';
import { findPolicyRequest } from '../root/policy-flags.js';
import { type ImageSetOptions, flagsWithoutEffect } from './flags.js';
import { parseGlobalOptions } from './options.js';

/** Unsupported flags, each with a hint. */
const refused: Readonly<Partial<Record<keyof ImageSetOptions, string>>> = {
  v1: 'write the configuration for mirror.openshift.io/v2alpha1',
  since: 'name the earlier archive, or its mirror_archive.json, with --base',
  dryRunManifestLists: 'opmate mirror plan writes every manifest into the lock',
  securePolicy: 'verify signatures with --verify strict and --policy FILE',
};

/** Total retry time if retries are limited, as in `oc-mirror`. */
const defaultImageTimeout = 600_000;

/**
 * Reads the flags of `oc-mirror` and `oc` into options of the session. `destinations` are `docker://REGISTRY[/PATH]`, which the
 * flags `--dest-…` apply to; `--src-…` apply to all other registries. Throws UsageError for flags that are unsupported
 * or exclude each other.
 */
export function readMirrorOptions<T extends ImageSetOptions>(
  options: T,
  destinations: readonly (string | undefined)[],
  context: CommandContext,
): T {
  for (const [name, hint] of Object.entries(refused) as [keyof ImageSetOptions, string][]) {
    if (isGiven(options[name])) throw new UsageError(`${longName(name)}: not supported`, { hint });
  }
  const targets = new Set(
    destinations
      .filter((text) => text !== undefined && !text.startsWith('file://'))
      .map((text) => text?.replace(/^docker:\/\//, '').split('/')[0]),
  );
  const { destTlsVerify = true, srcTlsVerify = true, retryTimes, retryDelay, imageTimeout } = options;
  const insecure = (registry: string): boolean => !(targets.has(registry) ? destTlsVerify : srcTlsVerify);
  const sides = { src: getOverrides('src', options, context), dest: getOverrides('dest', options, context) };
  const isLimited = retryTimes !== undefined || retryDelay !== undefined;
  return parseGlobalOptions({
    ...options,
    insecure: options.insecure === true || (destTlsVerify && srcTlsVerify ? options.insecure : insecure),
    overridesFor: (registry: string) => (targets.has(registry) ? sides.dest : sides.src),
    cacheDirectory: findCacheDirectory(options, context),
    ...(retryTimes !== undefined && { maxAttempts: retryTimes + 1 }),
    ...(retryDelay !== undefined && retryDelay > 0 && { retryDelayMs: retryDelay }),
    ...(isLimited && { retryTimeout: options.retryTimeout ?? imageTimeout ?? defaultImageTimeout }),
    withoutEffect: [
      ...flagsWithoutEffect.filter((name) => isGiven(options[name])).map(longName),
      // Signatures are only looked up when a policy requires them.
      ...(isGiven(options['registries.d']) && findPolicyRequest(options) === undefined
        ? ['--registries.d']
        : []),
    ],
  });
}

/** Returns the limits of concurrent copies and their time. */
export function getCopyLimits({
  parallelImages,
  parallelLayers,
  imageTimeout,
}: ImageSetOptions): Pick<TransferOptions, 'imagesAtOnce' | 'layersAtOnce' | 'imageTimeoutMs'> {
  return { imagesAtOnce: parallelImages, layersAtOnce: parallelLayers, imageTimeoutMs: imageTimeout };
}

/** Throws UsageError with `problem` for the first flag of `names` that is set. */
export function refuseFlags<O extends object>(
  options: O,
  names: readonly (keyof O & string)[],
  problem: string,
  hint: string,
): void {
  const name = names.find((key) => isGiven(options[key]));
  if (name !== undefined) throw new UsageError(`${longName(name)}${problem}`, { hint });
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== false;
}

function getOverrides(
  side: 'src' | 'dest',
  options: ImageSetOptions,
  context: CommandContext,
): RegistryOverrides {
  const authFile = options[`${side}Authfile`];
  const certDir = options[`${side}CertDir`];
  const resolve = (file: string): string => path.resolve(context.workingDirectory, file);
  return {
    ...(authFile !== undefined && { authFile: resolve(authFile) }),
    ...(certDir !== undefined && { certDir: resolve(certDir) }),
    credentials: findCredentials(side, options),
    insecureFlag: `--${side}-tls-verify=false`,
  };
}

function findCredentials(
  side: 'src' | 'dest',
  options: ImageSetOptions,
): Credentials | 'anonymous' | undefined {
  const [creds, username, password] = [
    options[`${side}Creds`],
    options[`${side}Username`],
    options[`${side}Password`],
  ];
  const registryToken = options[`${side}RegistryToken`];
  if (options[`${side}NoCreds`] === true) return 'anonymous';
  if (registryToken !== undefined)
    return { username: '', password: '', registryToken, source: `--${side}-registry-token` };
  if (username !== undefined && password !== undefined)
    return { username, password, source: `--${side}-username` };
  if (creds === undefined) return undefined;
  const colon = creds.indexOf(':');
  const name = colon < 0 ? creds : creds.slice(0, colon);
  if (name === '') throw new UsageError(`--${side}-creds: expected USERNAME[:PASSWORD]`);
  return { username: name, password: colon < 0 ? '' : creds.slice(colon + 1), source: `--${side}-creds` };
}

/** Returns the cache directory, below a name that no other tool uses. Throws UsageError. */
function findCacheDirectory(
  { cacheDir }: ImageSetOptions,
  { environment, workingDirectory }: CommandContext,
): string | undefined {
  const fromEnvironment = environment['OC_MIRROR_CACHE'] || undefined;
  if (cacheDir !== undefined && fromEnvironment !== undefined) {
    throw new UsageError('--cache-dir and OC_MIRROR_CACHE cannot be used together', {
      hint: 'keep one of them',
    });
  }
  const directory = cacheDir ?? fromEnvironment;
  return directory === undefined ? undefined : path.resolve(workingDirectory, directory, '.opmate');
}
