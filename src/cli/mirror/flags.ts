import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import {
  type Flag,
  type FlagValues,
  type Flags,
  choice,
  flag,
  grouped,
  optionalValue,
  parsed,
  repeated,
  text,
} from '../command/flags.js';
import { duration, integer } from '../command/values.js';
import { outputFormat } from '../command/shared-flags.js';
import { type GlobalOptions, registryFlags } from '../command/global-flags.js';
import { archiveProofFlags } from '../archive/flags.js';
import { policyFlags } from '../root/policy-flags.js';

/** Declares a flag for `file://DIRECTORY`. */
export function directoryUrl(summary: string): Flag<string | undefined> {
  return parsed('file://directory', summary, (value) => {
    if (/^file:\/\/./s.test(value)) return value;
    throw new UsageError('not a directory', { hint: 'use file://DIRECTORY' });
  });
}

/** Flags of commands that copy images. */
export const copyFlags = {
  ...grouped('Input', {
    dir: text('directory', 'root of file:// (default: the working directory)'),
    fromDir: text('directory', 'root of file:// sources, if different'),
  }),
  referrers: flag('also copy referrers such as signatures', { group: 'Selection' }),
  dryRun: flag('check each image, or with --config write mapping.txt', { group: 'Output' }),
  output: outputFormat(['text', 'json'], { defaultText: 'text' }),
  ...grouped('Registry', {
    insecure: flag('allow plain HTTP and unverified certificates'),
    skipVerification: flag('ignored; digests are always verified'),
    registryConfig: text('file', 'credentials file; the same as --authfile', { short: 'a' }),
  }),
  certificateAuthority: text('file', 'the same as --ca-file', { hidden: true }),
};

/** Returns the flag for concurrent requests; its default differs per command in `oc`. */
export function maxPerRegistryFlag(defaultText: string): Flag<number | undefined> {
  return parsed('count', 'maximum number of concurrent requests per registry', integer(1, 100), {
    defaultText,
    group: 'Registry',
  });
}

/** Reads a duration in whole minutes; returns milliseconds. */
function wholeMinutes(value: string): number {
  const milliseconds = duration('1m', '9999h')(value);
  if (milliseconds % 60_000 === 0) return milliseconds;
  throw new UsageError('expected whole minutes, such as 30m or 6h');
}

/** Flags for the lock of an image set. */
export const lockFlags = grouped('Output', {
  workspace: directoryUrl('parent of working-dir (default: file://.)'),
  lock: text('file', 'lock file (default: working-dir/opmate.lock.json below the workspace)'),
  maxNestedPaths: parsed(
    'count',
    'maximum path components at the target; 0 for no limit',
    (value) => integer(0, 999)(value) || undefined,
  ),
});

/** Flags of commands with an image set. */
export const imageSetFlags = {
  ...lockFlags,
  ...grouped('Input', {
    locked: flag('mirror what the lock pins; fail if unavailable'),
    allowLocal: flag('with --locked: read local images that only the lock names', { needs: 'locked' }),
    graphBaseImage: text('image', 'base of the graph image (default: registry.access.redhat.com/ubi9/ubi)'),
    graphData: text('url|file', 'graph data of another update service'),
  }),
  ...grouped('Selection', {
    dependencies: choice('mode', ['none', 'report', 'add'], 'handling of required packages', {
      defaultText: 'report',
    }),
    avoidRisks: flag('fail instead of using release updates with known risks'),
    helmCharts: flag('also mirror Helm charts to a registry, as OCI artifacts below helm/'),
  }),
  ...grouped('Output', {
    icsp: flag('write an ImageContentSourcePolicy instead of IDMS and ITMS'),
    name: text('name', 'name of CatalogSource and ClusterCatalog'),
    prefix: text('text', 'name prefix of all objects'),
    pollInterval: parsed('duration', 'catalog polling interval of clusters, e.g. 30m', wholeMinutes),
  }),
  ignoreReleaseSignature: flag('accept the image of platform.release without signature', {
    group: 'Behavior',
  }),
};

/** Returns flags that are refused without one of others. */
function needing<const F extends Flags>(needs: readonly string[], flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([key, item]) => [key, { needs, ...item }])) as F;
}

/** Returns an age; refuses a destination, which an optional value before it swallows. Throws UsageError. */
function refuseDestination(word: string, _previous: unknown, name: string): string {
  if (!/^(?:docker|file|oci):/.test(word)) return word;
  throw new UsageError(`${name}: took ${quoteGo(word)} as its age`, {
    hint: 'use --prune=30d, or --prune after the destination',
  });
}

const pruneFlag: Flag<string | true | undefined> = {
  ...optionalValue('age', 'with --config: delete what no lock of this time, such as 30d, selects'),
  parse: refuseDestination,
  needs: 'config',
  excludes: ['shard', 'dryRun'],
};

/** Flags of `mirror --config` and `mirror --from`. */
const imageSetRunFlags = {
  ...grouped('Input', {
    config: text('file', 'ImageSetConfiguration file', {
      short: 'c',
    }),
    from: repeated('archive', 'archive to mirror from, or a base'),
  }),
  id: { ...archiveProofFlags.id, needs: 'from' },
  verifyKey: { ...archiveProofFlags.verifyKey, needs: 'from' },
  ...needing(['config', 'from'], imageSetFlags),
  // Of a mapping, its audit trail.
  workspace: lockFlags.workspace,
  ...grouped('Behavior', {
    onError: choice(
      'action',
      ['stop', 'skip-image', 'skip-bundle'],
      'with --config: action for images that cannot be copied',
      { default: 'stop', needs: 'config', excludes: ['from'] },
    ),
    prune: pruneFlag,
    yes: flag('with --prune: delete without confirmation', { needs: 'prune' }),
    retryFailed: flag('with --config: mirror only images that the last run failed for', { needs: 'config' }),
    shardWait: parsed(
      'duration',
      'with --shard: wait this long for blobs of other shards (default: 10s)',
      duration(),
      { needs: 'locked' },
    ),
    strictArchive: flag('with --config and file://: refuse a blob larger than archiveSize', {
      needs: 'config',
    }),
    verify: choice(
      'mode',
      ['strict', 'report', 'off'],
      'with --config or --from: verify signatures by the policy',
      { defaultText: 'strict with a policy, else off', needs: ['config', 'from'] },
    ),
  }),
  shard: text('i/n', 'with --config and --locked: copy shard I of N (zero-based)', {
    group: 'Selection',
    needs: 'locked',
  }),
  ...grouped('Input', {
    plan: text('digest', 'with --locked: refuse a lock of another plan (default: $OPMATE_PLAN)', {
      needs: 'locked',
    }),
    base: text('file', 'with --config and file://: omit content of this archive or inventory', {
      needs: 'config',
    }),
  }),
  signBy: text('file', 'with --config and file://: private key to sign the archive with (PEM)', {
    group: 'Output',
    needs: 'config',
  }),
  ...needing(['config', 'from'], policyFlags),
  removeSignatures: flag('with --config: do not copy signatures and other referrers', {
    group: 'Selection',
    needs: ['config', 'from'],
  }),
};

const compatible = 'no effect; accepted for compatibility';
const unneeded = (value: string, traits: { short?: string } = {}) =>
  text(value, compatible, { ...traits, hidden: true });
const unneededSwitch = () => flag(compatible, { hidden: true });
const refused = (value: string) => text(value, 'not supported', { hidden: true });

/** Declares the flags for registries of one side. */
const sideFlags = <const S extends 'src' | 'dest'>(side: S, registries: string) => {
  const traits = { group: 'Registry', hidden: true } as const;
  const flags = {
    ...grouped('Registry', {
      TlsVerify: flag(`with =false: plain HTTP and any certificate for ${registries}`, {
        default: true,
      }),
      Authfile: text('file', `credentials file for ${registries}`),
      Creds: text('username[:password]', `credentials for ${registries}`, {
        excludes: ['Username', 'RegistryToken', 'NoCreds'].map((name) => side + name),
      }),
      CertDir: text('directory', `like --cert-dir, for ${registries}`),
      NoCreds: flag(`access ${registries} anonymously`),
    }),
    Username: text('name', `user name for ${registries}`, {
      ...traits,
      needs: `${side}Password`,
      excludes: ['RegistryToken', 'NoCreds'].map((name) => side + name),
    }),
    Password: text('password', `password for ${registries}`, { ...traits, needs: `${side}Username` }),
    RegistryToken: text('token', `Bearer token for ${registries}`, {
      ...traits,
      excludes: [`${side}NoCreds`],
    }),
  };
  type Flags = typeof flags;
  return Object.fromEntries(Object.entries(flags).map(([name, item]) => [`${side}${name}`, item])) as {
    [K in keyof Flags & string as `${S}${K}`]: Flags[K];
  };
};

const srcFlags = sideFlags('src', 'source registries');
const destFlags = sideFlags('dest', 'the target registry');

/** Flags for access to the target, and to all registries; a proposed command repeats them. */
export const targetAccessFlags = { ...registryFlags, insecure: copyFlags.insecure, ...destFlags };
export const accessFlags = { ...targetAccessFlags, ...srcFlags };

/** Flags that the run of a plan or dry run repeats. */
export const repeatedFlags = { ...imageSetRunFlags, ...accessFlags };

/** Further flags of `oc-mirror`. */
const ocMirrorFlags = {
  ...grouped('Registry', {
    parallelImages: parsed('count', 'images to copy at a time (1 to 10)', integer(1, 10)),
    parallelLayers: parsed(
      'count',
      'layers of an image to copy at a time (1 to 10; default: 6)',
      integer(1, 10),
    ),
    retryTimes: parsed(
      'count',
      'maximum retries of a request (default: as --retry-timeout allows)',
      integer(0, 999_999),
    ),
    retryDelay: parsed('duration', 'wait before each retry (default: doubling from 500ms)', duration()),
    imageTimeout: parsed('duration', 'maximum time to copy one image', duration('1ms')),
  }),
  cacheDir: text('directory', 'cache registry downloads in DIRECTORY/.opmate', { group: 'Input' }),
  ...srcFlags,
  ...destFlags,
  srcSharedBlobDir: unneeded('directory'),
  srcDaemonHost: unneeded('host'),
  destSharedBlobDir: unneeded('directory'),
  destDaemonHost: unneeded('host'),
  port: unneeded('port', { short: 'p' }),
  rootlessStoragePath: unneeded('directory'),
  v2: unneededSwitch(),
  cpuProf: unneededSwitch(),
  memProf: unneededSwitch(),
  destCompress: unneededSwitch(),
  destDecompress: unneededSwitch(),
  destOciAcceptUncompressedLayers: unneededSwitch(),
  destPrecomputeDigests: unneededSwitch(),
  destCompressFormat: unneeded('format'),
  destCompressLevel: unneeded('level'),
  v1: flag('not supported', { hidden: true }),
  since: refused('date'),
  dryRunManifestLists: flag('not supported', { hidden: true }),
  securePolicy: flag('only =false', { hidden: true }),
};

/** Flags of `oc image mirror` that have no effect. */
const ocImageMirrorFlags = {
  maxRegistry: unneeded('count'),
  keepManifestList: unneededSwitch(),
  skipMultipleScopes: unneededSwitch(),
  skipMount: unneededSwitch(),
  force: unneededSwitch(),
};

/** Flags that cause a warning. `--v2` is always in effect. */
export const flagsWithoutEffect = (
  Object.entries({ ...ocMirrorFlags, ...ocImageMirrorFlags }) as [keyof ImageSetOptions, Flag<unknown>][]
).flatMap(([name, { summary }]) => (summary === compatible && name !== 'v2' ? [name] : []));

/** All flags of `opmate mirror`, also accepted by its subcommands. */
export const mirrorFlags = {
  filename: text('file', 'mapping file; - for stdin', {
    short: 'f',
    excludes: ['config', 'from'],
    group: 'Input',
  }),
  ...imageSetRunFlags,
  maxPerRegistry: maxPerRegistryFlag('6'),
  ...grouped('Behavior', {
    continueOnError: flag('continue on errors and report them'),
    skipMissing: flag('skip images that are missing at the source'),
  }),
  ...copyFlags,
  ...ocMirrorFlags,
  filterByOs: text('pattern', 'only .* is supported: images keep all platforms', { hidden: true }),
  ...ocImageMirrorFlags,
};

/** Values of the flags for copying images. */
export type CopyFlagValues = Partial<Omit<FlagValues<typeof copyFlags>, 'insecure'>> & GlobalOptions;
/** Values of the flags of `opmate mirror`. */
export type ImageSetOptions = Partial<Omit<FlagValues<typeof mirrorFlags>, 'insecure'>> & GlobalOptions;
