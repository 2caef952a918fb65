import { computeDigest } from '../../core/digest.js';
import { UsageError, invalidValue } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { decodeFile } from '../../document/document.js';
import { readInputFile } from '../../files/read-file.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import { canonicalQuantity } from '../../kube/quantity.js';
import { isObjectName } from '../../mirror/image-set/image-set-resources.js';
import { readImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import { encodeLock, planOf } from '../../mirror/lock/encode-lock.js';
import { type ScheduleOptions, encodeSchedule } from '../../mirror/schedule/schedule-manifests.js';
import type { Session } from '../../source/session.js';
import { refuseLocalPaths } from '../../mirror/schedule/local-paths.js';
import { requireShardCount } from '../../mirror/lock/shard.js';
import { requireRegistry } from '../mirror/destination.js';
import { findMirrorLock } from '../mirror/find-lock.js';

/** Options of running a mirror on a cluster. */
export interface ScheduleMirrorOptions {
  /** Image with `opmate`, by digest or tag. */
  image: string;
  /** Name of the objects, and start of the names of their parts; default `mirror`. */
  name?: string | undefined;
  /** Default: that of the client that applies the manifests. */
  namespace?: string | undefined;
  /** Times of the runs in the form of cron; default `0 3 * * *`. */
  schedule?: string | undefined;
  /** Secret with the credentials of the registries; default `mirror-credentials`. */
  secret?: string | undefined;
  /** Size of the volume of the workspace; default `10Gi`. */
  storage?: string | undefined;
  /** Returns the arguments of the program in a pod, whose files are at these paths; `lock` for a shard. */
  toArguments: ScheduleOptions['toArguments'];
  /** Number of pods that copy a lock together, as an indexed Job; default none. */
  shards?: number | undefined;
  /** Lock for `shards`; default that of the workspace. */
  lock?: string | undefined;
  workspace?: string | undefined;
}

/** Five fields, or a name. (Source: robfig/cron, as in Kubernetes.) */
const cronPattern =
  /^(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|[\d*,/?A-Za-z-]+(?: [\d*,/?A-Za-z-]+){4})$/;
/** Maximum characters of the name of a CronJob. */
const maxNameLength = 52 - '-workspace'.length;

/**
 * Returns the manifests that run `opmate mirror` for the image set in `configFile` on a cluster, as YAML: a CronJob with
 * its workspace, and with `shards` an indexed Job. Throws OpmateError for an invalid configuration, for one with local
 * paths, and for a lock of another one; UsageError for values that a cluster refuses.
 */
export async function scheduleMirror(
  configFile: string,
  destination: string,
  session: Session,
  options: ScheduleMirrorOptions,
): Promise<string> {
  const {
    name = 'mirror',
    schedule = '0 3 * * *',
    secret = 'mirror-credentials',
    storage = '10Gi',
  } = options;
  const { shards, toArguments, namespace, image } = options;
  if (!isObjectName(name) || name.length > maxNameLength)
    throw new UsageError(
      `name ${quoteGo(name)}: expected a DNS label of at most ${maxNameLength} characters`,
    );
  if (!cronPattern.test(schedule))
    throw new UsageError(`schedule ${quoteGo(schedule)}: not a schedule`, {
      hint: "use cron fields, such as '0 3 * * *'",
    });
  requireValues({ namespace, secret, storage });
  const bytes = await readInputFile(configFile, session);
  const configuration = decodeFile(bytes, configFile);
  refuseLocalPaths(readImageSetConfiguration(configuration, configFile));
  const named = { name, namespace, image, schedule, secret, storage, configuration, toArguments };
  requireRegistry(destination);
  if (shards !== undefined) requireShardCount(shards);
  if (shards === undefined) return encodeSchedule(named);
  const found = await findMirrorLock(destination, session, {
    lock: options.lock,
    workspace: options.workspace,
  });
  if (found.lock.configuration !== computeDigest(bytes))
    throw new UsageError(`${found.name}: made with another configuration than ${configFile}`, {
      hint: 'create a lock of this configuration',
    });
  const lock = { count: shards, lock: encodeLock(found.lock), plan: planOf(found.lock) };
  return encodeSchedule({ ...named, shards: lock });
}

/** Throws UsageError for names and a size that a cluster refuses. */
function requireValues({
  namespace,
  secret,
  storage,
}: Pick<ScheduleOptions, 'namespace' | 'secret' | 'storage'>): void {
  const namespaceFault = namespace === undefined ? undefined : labelFault(namespace);
  if (namespaceFault !== undefined) throw invalidValue('namespace', namespace ?? '', namespaceFault);
  const secretFault = subdomainFault(secret);
  // Not `invalidValue`, which hides the values of secrets: this is a name.
  if (secretFault !== undefined) throw new UsageError(secretFault, { subject: `secret ${quoteGo(secret)}` });
  const size = canonicalQuantity(storage);
  if (size === undefined || size === '0' || size.startsWith('-'))
    throw invalidValue('storage', storage, 'not a positive quantity', { hint: 'use a size such as 10Gi' });
}
