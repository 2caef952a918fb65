import { UsageError } from '../../core/errors.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { booleanFlag, booleanOf, hiddenOption } from '../options.js';

/** Flags with a value that `oc-mirror` needs and opmate does not. */
const unneeded = [
  '--parallel-images <count>',
  '--parallel-layers <count>',
  '--retry-times <count>',
  '--retry-delay <time>',
  '--image-timeout <time>',
  '-p, --port <port>',
  '--cache-dir <directory>',
  '--registries.d <directory>',
  '--rootless-storage-path <directory>',
];

/** Flags whose effect opmate does not have, each with what to do instead. */
const refused: readonly (readonly [flags: string, name: string, hint: string])[] = [
  ['--v1', 'v1', 'write the configuration for mirror.openshift.io/v2alpha1'],
  ['--since <date>', 'since', 'name the earlier archive, or its mirror_archive.json, with --base'],
  [
    '--dry-run-manifest-lists',
    'dryRunManifestLists',
    'opmate mirror plan writes every manifest into the lock',
  ],
  ['--policy <file>', 'policy', 'signatures are copied and not checked: check them with cosign or skopeo'],
  ...['src', 'dest'].flatMap((side) =>
    ['authfile', 'creds', 'username', 'password', 'registry-token'].map((what) => {
      const hint = 'put credentials for each registry into one file, and name that with --authfile';
      return [`--${side}-${what} <value>`, camelCase(`${side}-${what}`), hint] as const;
    }),
  ),
];

/** Flags without a value that also take `=true` and `=false`. */
const booleans = ['removeSignatures', 'strictArchive', 'generate', 'deleteSignatures', 'deleteV1Images'];

/** Adds the flags that scripts written for `oc-mirror` have, beyond those that opmate has itself. */
export function addOcMirrorFlags(command: Parameters<typeof hiddenOption>[0]): void {
  const text = 'accepted, as by oc-mirror, and not needed';
  for (const flags of unneeded) hiddenOption(command, flags, text);
  for (const name of ['v2', 'quiet', 'ignore-release-signature'])
    booleanFlag(command, name, text, { isHidden: true });
  for (const [flags] of refused) hiddenOption(command, flags, 'not supported');
  booleanFlag(command, 'secure-policy', 'only =false', { isHidden: true });
  for (const [side, of] of [
    ['src', 'every registry but the target'],
    ['dest', 'the target'],
  ])
    booleanFlag(command, `${side}-tls-verify`, `with =false: HTTP, or any certificate, for ${of}`, {
      isHidden: true,
    });
}

/**
 * What flags of `oc-mirror` mean here; the registry of `destination` is the one that `--dest-tls-verify` is about.
 * Throws UsageError for those that are not supported.
 */
export function readOcMirrorFlags<T extends GlobalOptions>(options: T, destination: string | undefined): T {
  const given = options as Readonly<Record<string, unknown>>;
  for (const [flags, name, hint] of refused) {
    if (given[name] === undefined) continue;
    throw new UsageError(`${flags.split(' ')[0]}: not supported`, { hint });
  }
  if (booleanOf(options, 'securePolicy')) {
    const hint = 'signatures are copied and not checked: check them with cosign or skopeo';
    throw new UsageError('--secure-policy: not supported', { hint });
  }
  const read: Record<string, unknown> = { ...given };
  for (const name of booleans) {
    if (booleanOf(options, name)) read[name] = true;
    else delete read[name];
  }
  const isVerified = {
    target: booleanOf(options, 'destTlsVerify', true),
    source: booleanOf(options, 'srcTlsVerify', true),
  };
  const target = /^docker:\/\/([^/]+)/.exec(destination ?? '')?.[1];
  if (!isVerified.target || !isVerified.source)
    read.insecure = (registry: string): boolean => !isVerified[registry === target ? 'target' : 'source'];
  return read as T;
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_all, letter: string) => letter.toUpperCase());
}
