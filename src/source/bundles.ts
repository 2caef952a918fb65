import { getReferenceNames } from './reference-error.js';
import { addContext } from '../core/diagnostics-error.js';
import { parseBundle } from '../bundle/parse.js';
import { type BundleFiles, readBundleDirectory } from '../bundle/read.js';
import { mapConcurrent } from '../core/concurrency.js';
import { CancelledError, OpmateError, UsageError, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import {
  looksLikePath,
  parseReference,
  type Reference,
  type RegistryReference,
  withoutCredentials,
} from '../core/reference.js';
import { toRecord } from '../sqlite/schema/bundle-record.js';
import { Stage } from '../sqlite/add/stage.js';
import type { FetchManifests } from '../sqlite/remove/delete-bundle.js';
import { statIfPresent } from '../files/file-status.js';
import { readImageBundle, withImage } from './drivers/image.js';
import { type SourceSession, withChanges } from './session.js';

/** Images whose name begins with `prefix` are pulled from `other` instead: `quay.io/prod`, `registry.internal/stage`. */
export interface PullFrom {
  prefix: string;
  other: string;
}

export interface StageOptions {
  /** Where to pull from instead; the longest prefix counts. The index records the reference that was given. */
  pullFrom?: readonly PullFrom[] | undefined;
  /** Refuse all that is not named by digest. */
  requireDigest?: boolean | undefined;
  /** Bundles that are read at the same time; 8 unless told. */
  concurrency?: number | undefined;
  /** Takes what cannot be read, and the others are still read; without it the first failure ends all. */
  onFailure?: ((reference: string, error: OpmateError) => void) | undefined;
}

/**
 * Reads bundles (images, directories, layouts, archives) and holds them ready to be added to an index, which
 * records images of registries under the reference that was given, without `docker://`. References are checked
 * before anything is pulled; a repeated one is taken once. Close the stage afterwards. Throws OpmateError, that
 * begins with the reference, for the first one that cannot be read.
 */
export async function stageBundles(
  references: readonly string[],
  session: SourceSession,
  options: StageOptions = {},
): Promise<Stage> {
  const { logger = silentLogger } = session;
  const { onFailure, concurrency = 8 } = options;
  // The first failure ends what else is under way.
  const stop = new AbortController();
  const signal = session.signal === undefined ? stop.signal : AbortSignal.any([session.signal, stop.signal]);
  const orReport = async <T>(reference: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      const told = inBundle(error, reference);
      if (onFailure === undefined || !(told instanceof OpmateError) || told instanceof CancelledError) {
        stop.abort();
        throw told;
      }
      onFailure(reference, told);
      return undefined;
    }
  };
  const stoppable = withChanges(session, { signal });
  const stage = new Stage(session.temporaryDirectory);
  try {
    const located = await mapConcurrent(
      references,
      16,
      (reference) => orReport(reference, () => locateBundle(reference, options)),
      { signal },
    );
    const wanted = new Map<string, Located>();
    for (const item of located) {
      if (item === undefined) continue;
      if (wanted.has(item.key)) logger.log('info', `${item.reference}: named more than once, added once`);
      else wanted.set(item.key, item);
    }
    warnOfUnused(options.pullFrom ?? [], [...wanted.values()], logger);
    await mapConcurrent(
      [...wanted.values()],
      concurrency,
      (item) => orReport(item.reference, () => stageBundle(stage, item, stoppable)),
      { signal },
    );
    return stage;
  } catch (error) {
    await stage.close();
    throwIfCancelled(session.signal);
    throw error;
  }
}

/**
 * Returns a function that pulls the manifests of a bundle again, for `deleteBundle` and `deleteLatest`: a new channel head
 * may have lost its manifests to a smaller index. It throws what `stageBundles` throws.
 */
export function createManifestFetcher(
  session: SourceSession,
  options: Pick<StageOptions, 'pullFrom'> = {},
): FetchManifests {
  return async (image) => {
    const stage = await stageBundles([image], session, options);
    try {
      const [bundle] = stage.bundles;
      if (bundle === undefined) throw new OpmateError('NOT_FOUND', `${image}: no bundle`);
      return { name: bundle.record.name, manifests: await bundle.manifests() };
    } finally {
      await stage.close();
    }
  };
}

/**
 * Checks a reference without asking for it anywhere: its form, and that it has a digest where that is wanted.
 * Throws OmpateError.
 */
export function checkBundleReference(
  reference: string,
  options: { requireDigest?: boolean | undefined },
): void {
  parseBundleReference(reference, options);
}

/** Where a bundle is. */
interface Located {
  /** As it was given. */
  reference: string;
  /** The same for all references that mean the same place. */
  key: string;
  /** What the index records; empty for a bundle that is in no registry. */
  image: string;
  /** Where the image is pulled from; none for a directory. */
  source?: Reference;
  /** The rule that moved it there. */
  rule?: PullFrom | undefined;
}

async function locateBundle(
  reference: string,
  options: Pick<StageOptions, 'pullFrom' | 'requireDigest'>,
): Promise<Located> {
  // As everywhere, a path that exists is never taken for an image.
  const stats = await statIfPresent(reference);
  if (stats?.isDirectory() === true) {
    if (options.requireDigest === true) throw withoutDigest(reference, 'a directory is in no registry');
    return { reference, key: `directory:${reference.replace(/\/+$/, '')}`, image: '' };
  }
  if (stats !== undefined) {
    throw new OpmateError('INVALID', 'is a file, not a bundle', {
      subject: reference,
      hint: `use oci-archive:${reference} or docker-archive:${reference} for an image in a file, --from-file ${reference} for a list of bundles`,
    });
  }
  const parsed = parseBundleReference(reference, options);
  if (parsed.transport !== 'docker') return { reference, key: reference, image: '', source: parsed };
  const image = reference.replace(/^docker:\/\//, '');
  const rule = ruleFor(parsed, options.pullFrom ?? []);
  return { reference, key: image, image, source: rule === undefined ? parsed : moved(parsed, rule), rule };
}

function parseBundleReference(
  reference: string,
  { requireDigest = false }: { requireDigest?: boolean | undefined },
): Reference {
  if (looksLikePath(reference)) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: reference });
  }
  const [, name, algorithm, hex] = /^([^@]+):(sha256|sha512)[@:]([0-9a-f]*)$/.exec(reference) ?? [];
  if (name !== undefined && !/^(?:oci|oci-archive|docker-archive):/.test(reference)) {
    throw new OpmateError('INVALID', 'not a digest', {
      subject: reference,
      hint: `use ${name}@${algorithm}:${hex === '' ? '…' : hex}`,
    });
  }
  const parsed = parseReference(reference);
  if (parsed.transport !== 'docker') {
    if (requireDigest) throw withoutDigest(reference, `${parsed.transport}: is in no registry`);
    return parsed;
  }
  if (parsed.digest === undefined && requireDigest) throw withoutDigest(reference, 'not named by digest');
  if (parsed.digest === undefined && parsed.tag === undefined) {
    throw new OpmateError('INVALID', 'missing tag or digest', {
      subject: reference,
      hint: `check the path, or use ${reference}:TAG or ${reference}@sha256:… for an image`,
    });
  }
  return parsed;
}

function withoutDigest(reference: string, problem: string): OpmateError {
  return new OpmateError('INVALID', `${problem}, and --require-digest is set`, {
    subject: reference,
    hint: 'use REGISTRY/REPOSITORY@sha256:…; print the digest of a tag with opmate oci inspect',
  });
}

/**
 * Takes `PREFIX=OTHER` apart. Both are a registry, or a registry with the beginning of a repository name, and
 * are compared by whole components. Throws UsageError.
 */
export function parsePullFrom(texts: readonly string[]): PullFrom[] {
  const rules: PullFrom[] = [];
  for (const text of texts) {
    const [prefix, other, ...more] = text.split('=').map((part) => part.trim().replace(/\/+$/, ''));
    if (prefix === undefined || other === undefined || more.length > 0 || prefix === '' || other === '') {
      throw new UsageError(`--pull-from ${text}: not of the form PREFIX=OTHER`, {
        hint: 'use a pair such as --pull-from quay.io/prod=registry.internal/staging',
      });
    }
    for (const place of [prefix, other]) checkPlace(text, place);
    const same = rules.find((rule) => rule.prefix === prefix);
    if (same !== undefined && same.other !== other) {
      throw new UsageError(`--pull-from ${text}: ${prefix} is pulled from ${same.other} already`);
    }
    rules.push({ prefix, other });
  }
  return rules;
}

function checkPlace(text: string, place: string): void {
  const host = place.split('/', 1)[0] as string;
  const fail = (problem: string, hint: string): UsageError =>
    new UsageError(`--pull-from ${text}: ${place} ${problem}`, { hint });
  if (host !== 'localhost' && !/[.:]/.test(host)) {
    throw fail('missing registry', `use docker.io/${place} for Docker Hub`);
  }
  let parsed: Reference | undefined;
  try {
    parsed = parseReference(`docker://${place}/name`);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
  }
  if (parsed === undefined) {
    throw fail('is not a registry or repository prefix', 'remove schemes, tags and digests');
  }
}

function getName({ registry, repository }: RegistryReference): string {
  return `${registry}/${repository}`;
}

function ruleFor(reference: RegistryReference, rules: readonly PullFrom[]): PullFrom | undefined {
  const name = `${getName(reference)}/`;
  const fitting = rules.filter(({ prefix }) => name.startsWith(`${prefix}/`));
  return fitting.sort((a, b) => b.prefix.length - a.prefix.length)[0];
}

function moved(reference: RegistryReference, { prefix, other }: PullFrom): Reference {
  const { tag, digest } = reference;
  const version = (tag === undefined ? '' : `:${tag}`) + (digest === undefined ? '' : `@${digest}`);
  return parseReference(`docker://${other}${getName(reference).slice(prefix.length)}${version}`);
}

/** A rule that fits nothing is a slip, and what it should have kept inside would be pulled from outside. */
function warnOfUnused(rules: readonly PullFrom[], located: readonly Located[], logger: Logger): void {
  for (const rule of rules) {
    if (!located.some((item) => item.rule === rule))
      logger.log('warn', `--pull-from ${rule.prefix}=${rule.other}: no bundle is named ${rule.prefix}/…`);
  }
}

async function stageBundle(stage: Stage, located: Located, session: SourceSession): Promise<void> {
  const { reference, image } = located;
  const { files, digest } = await readBundle(located, session);
  const bundle = parseBundle(files, { subject: reference });
  for (const { file, reason } of bundle.skippedFiles) {
    session.logger?.log('warn', `${reference}: ${file} was skipped: ${reason}`);
  }
  const { record, manifests } = toRecord(bundle, image, reference);
  throwIfCancelled(session.signal);
  await stage.add(record, manifests, reference, digest);
}

async function readBundle(
  { reference, source }: Located,
  session: SourceSession,
): Promise<{ files: BundleFiles; digest?: string }> {
  const { signal, followLinks } = session;
  if (source === undefined) return { files: await readBundleDirectory(reference, { signal, followLinks }) };
  return withImage(source, session, async (image) => ({
    files: await readImageBundle(image, reference, session),
    digest: image.root.digest,
  }));
}

/** Returns the same error about the reference, without its credentials. */
function inBundle(error: unknown, reference: string): unknown {
  if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
  const subject = withoutCredentials(reference);
  return addContext(error, { subject, replaces: getReferenceNames(subject) });
}
