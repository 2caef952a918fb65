import { UsageError } from '../../core/errors.js';
import type { LogLevel } from '../../core/log.js';
import type { ConnectionOptions } from '../../oci/registry/connection.js';
import { type Flag, type FlagValues, choice, flag, parsed, repeated, text } from './flags.js';
import { byteSize, duration, integer } from './values.js';

const logLevels = choice('level', ['error', 'warn', 'info', 'debug'], 'minimum log level', {
  defaultText: 'info',
});

/** Also accepts `trace` of oc-mirror. */
const logLevel: Flag<LogLevel | undefined> = {
  ...logLevels,
  parse: (value, previous, name) => logLevels.parse?.(value === 'trace' ? 'debug' : value, previous, name),
};

/** Flags for access to registries. */
export const registryFlags = {
  authfile: text('file', 'credentials file; takes precedence over all others'),
  platform: text('os/arch', 'platform to select from multi-platform images (default: the host)'),
  useHttp: flag('use plain HTTP for registries'),
  skipTlsVerify: flag('do not verify registry certificates'),
  skipTls: flag('the old name of --use-http', { hidden: true }),
  caFile: text('file', 'additional certificate authorities, as a PEM file'),
  certDir: text('directory', 'additional directory of <host:port>/*.crt, *.cert and *.key'),
  allowPrivateHost: repeated('host', 'allow redirects and token servers at this private host'),
};

/** Flags of every command, before or after its name. */
export const globalFlags = {
  debug: flag('show debug messages, causes and stack traces'),
  verbose: flag('show debug messages', { short: 'v' }),
  quiet: flag('show errors only', { short: 'q' }),
  logLevel,
  logFormat: choice('format', ['text', 'json'], 'log format', { defaultText: 'text' }),
  ...registryFlags,
  retryTimeout: parsed(
    'duration',
    'total retry time of a request, or of all to a failing server (default: 60s)',
    duration(),
  ),
  catalogCache: text('directory', 'cache of catalog layers, or "none" (default: ~/.cache/opmate/layers)'),
  followLinks: flag('follow symbolic links that leave a bundle, catalog or manifest directory'),
  maxEntries: parsed('count', 'maximum number of entries in an image (default: 200000)', integer(1)),
  maxUnpackedSize: parsed('size', 'maximum unpacked size of an image (default: 4G)', byteSize),
  maxRatio: parsed('ratio', 'maximum decompression ratio above 64 MiB (default: 200)', integer(1)),
} satisfies Record<string, Flag<unknown>>;

/** Values of the global flags, and of flags of some commands that extend them. */
export interface GlobalOptions
  extends
    Partial<FlagValues<typeof globalFlags>>,
    Pick<ConnectionOptions, 'insecure' | 'overridesFor' | 'maxAttempts' | 'retryDelayMs'> {
  cacheDirectory?: string | undefined;
  /** Set flags without effect, as typed. */
  withoutEffect?: readonly string[] | undefined;
}

/** Refuses combinations of global flags, in the words of `opm`. Throws UsageError. */
export function checkGlobalOptions({ skipTls, skipTlsVerify, useHttp }: GlobalOptions): void {
  if (skipTls && useHttp) {
    throw new UsageError('invalid flag combination: cannot use --use-http with --skip-tls');
  }
  if (skipTls && skipTlsVerify) {
    throw new UsageError('invalid flag combination: cannot use --skip-tls-verify with --skip-tls');
  }
  if (skipTlsVerify && useHttp) {
    throw new UsageError('invalid flag combination: --use-http and --skip-tls-verify cannot both be true');
  }
}
