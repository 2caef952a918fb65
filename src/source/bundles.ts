import { getReferenceNames } from './reference-error.js';
import { addContext, combineErrors } from '../core/diagnostics-error.js';
import { parseBundle } from '../bundle/parse.js';
import { type BundleFiles, readBundleDirectory } from '../bundle/read.js';
import { mapConcurrent, withOpen } from '../core/concurrency.js';
import {
  CancelledError,
  OpmateError,
  UsageError,
  invalidValue,
  redactUrls,
  throwIfCancelled,
} from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import {
  findReference,
  looksLikePath,
  parseReference,
  type Reference,
  type RegistryReference,
  withoutCredentials,
} from '../core/reference.js';
import { toBundleRecord } from '../sqlite/schema/bundle-record.js';
import { Stage } from '../sqlite/add/stage.js';
import type { FetchManifests } from '../sqlite/remove/delete-bundle.js';
import { statIfPresent } from '../files/file-status.js';
import { readImageBundle, withImage } from './drivers/image.js';
import { parseImageReference } from './parse-place.js';
import { fromDirectory } from '../oci/image/open.js';
import { type SourceSession, withChanges } from './session.js';

/** Codes of errors about the content of one bundle, after which others are read. */
const contentCodes: ReadonlySet<string> = new Set(['INVALID', 'SYNTAX', 'LIMIT', 'UNSUPPORTED']);

/** A rule to pull images below `prefix` from `other`, e.g. `quay.io/prod` from `registry.internal/stage`. */
export interface PullFrom {
  prefix: string;
  other: string;
}

export interface StageOptions {
  /** Rules for alternative sources; the longest prefix takes precedence. The index records the original reference. */
  pullFrom?: readonly PullFrom[] | undefined;
  /** Rejects references without a digest. */
  requireDigest?: boolean | undefined;
  /** Maximum number of bundles read in parallel; default 8. */
  concurrency?: number | undefined;
  /** Receives the failure of one bundle and continues with the others; without it the first failure stops the run. */
  onFailure?: ((reference: string, error: OpmateError) => void) | undefined;
}

/**
 * Reads bundles (images, directories, layouts, archives) into a stage from which they are added to an index; close it.
 * The index records registry images under their original reference, without `docker://`. All references are checked
 * before the first pull; duplicates are read once. Throws OpmateError, prefixed with the reference: one for all invalid
 * bundles, in the order of references, or for the first that cannot be read.
 */
export async function stageBundles(
  references: readonly string[],
  session: SourceSession,
  options: StageOptions = {},
): Promise<Stage> {
  return new BundleStaging(references, session, options).stage();
}

/** Stages bundles, all of which are read unless a failure is not of the content of one. */
class BundleStaging {
  readonly #references: readonly string[];
  readonly #session: SourceSession;
  readonly #options: StageOptions;
  /** A failure that is not of a bundle's content stops all other reads. */
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #invalid = new Map<string, OpmateError>();

  constructor(references: readonly string[], session: SourceSession, options: StageOptions) {
    const { signal } = session;
    const own = this.#stop.signal;
    this.#references = references;
    this.#session = session;
    this.#options = options;
    this.#signal = signal === undefined ? own : AbortSignal.any([signal, own]);
  }

  async stage(): Promise<Stage> {
    const { concurrency = 8 } = this.#options;
    const signal = this.#signal;
    const stoppable = withChanges(this.#session, { signal });
    const stage = new Stage(this.#session.temporaryDirectory);
    try {
      const located = await this.#locate();
      const read = (item: Located): Promise<unknown> =>
        this.#orReport(item.reference, () => stageBundle(stage, item, stoppable));
      await mapConcurrent(located, concurrency, read, { signal });
      this.#throwInvalid();
      return stage;
    } catch (error) {
      await stage.close();
      throwIfCancelled(this.#session.signal);
      throw error;
    }
  }

  /** Returns the places of the bundles, each once. */
  async #locate(): Promise<Located[]> {
    const { logger = silentLogger } = this.#session;
    const locate = (reference: string): Promise<Located | undefined> =>
      this.#orReport(reference, () => locateBundle(reference, this.#session, this.#options));
    const located = await mapConcurrent(this.#references, 16, locate, { signal: this.#signal });
    this.#throwInvalid();
    const unique = new Map<string, Located>();
    for (const item of located) {
      if (item === undefined) continue;
      if (unique.has(item.key)) logger.log('info', `${item.reference}: duplicate reference, added once`);
      else unique.set(item.key, item);
    }
    warnUnusedRules(this.#options.pullFrom ?? [], [...unique.values()], logger);
    return [...unique.values()];
  }

  async #orReport<T>(reference: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const failure = withReference(error, reference);
      const isReported = failure instanceof OpmateError && !(failure instanceof CancelledError);
      const { onFailure } = this.#options;
      if (isReported && onFailure !== undefined) onFailure(reference, failure);
      else if (isReported && contentCodes.has(failure.code)) this.#invalid.set(reference, failure);
      else {
        this.#stop.abort();
        throw failure;
      }
      return undefined;
    }
  }

  #throwInvalid(): void {
    const failures = this.#references.flatMap((reference) => this.#invalid.get(reference) ?? []);
    if (failures.length > 0) throw combineErrors([...new Set(failures)]);
  }
}

/**
 * Returns a function that pulls the manifests of a bundle again, for `deleteBundle` and `deleteLatest`: an index may
 * have dropped the manifests of a new channel head. The function throws the errors of `stageBundles`.
 */
export function createManifestFetcher(
  session: SourceSession,
  options: Pick<StageOptions, 'pullFrom'> = {},
): FetchManifests {
  return (image) =>
    withOpen(stageBundles([image], session, options), async (stage) => {
      const [bundle] = stage.bundles;
      if (bundle === undefined) throw new OpmateError('NOT_FOUND', `${image}: no bundle`);
      return { name: bundle.record.name, manifests: await bundle.manifests() };
    });
}

/** A bundle reference with its location. */
interface Located {
  /** The original reference. */
  reference: string;
  /** Equal for all references to the same location. */
  key: string;
  /** Pull specification recorded in the index; empty for a bundle without registry. */
  image: string;
  /** Reference that the image is pulled from; undefined for a directory. */
  source?: Reference;
  /** The rule that applied to the reference. */
  rule?: PullFrom | undefined;
}

async function locateBundle(
  reference: string,
  session: SourceSession,
  options: Pick<StageOptions, 'pullFrom' | 'requireDigest'>,
): Promise<Located> {
  if (/^(?:git\+|https?:\/\/|configmap:)/i.test(reference)) {
    throw new OpmateError('UNSUPPORTED', 'cannot be added to an index', {
      subject: redactUrls(reference),
      hint: 'use an image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE or directory; api.unpackBundle extracts other sources',
    });
  }
  // An existing path takes precedence over an image of that name, as in every command.
  const stats = await statIfPresent(fromDirectory(session, reference));
  if (stats?.isDirectory() === true) {
    if (options.requireDigest === true) throw withoutDigest(reference, 'a directory has no registry digest');
    return { reference, key: `directory:${reference.replace(/\/+$/, '')}`, image: '' };
  }
  if (stats !== undefined) {
    throw new OpmateError('INVALID', 'is a file, not a bundle', {
      subject: reference,
      hint: `use oci-archive:${reference} or docker-archive:${reference} for an image in a file, options.bundles ${reference} for a list of bundles`,
    });
  }
  const parsed = parseBundleReference(reference, options);
  if (parsed.transport !== 'docker') return { reference, key: reference, image: '', source: parsed };
  const image = reference.replace(/^docker:\/\//, '');
  const rule = findRule(parsed, options.pullFrom ?? []);
  return {
    reference,
    key: image,
    image,
    source: rule === undefined ? parsed : applyRule(parsed, rule),
    rule,
  };
}

/** Parses a reference that must have a digest if `requireDigest` is set; sends no request. Throws OpmateError. */
export function parseBundleReference(
  reference: string,
  { requireDigest = false }: { requireDigest?: boolean | undefined },
): Reference {
  if (looksLikePath(reference)) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: reference });
  }
  const [, name, algorithm, hex] = /^([^@]+):(sha256|sha512)[@:]([0-9a-f]*)$/.exec(reference) ?? [];
  if (name !== undefined && !/^(?:oci|oci-archive|docker-archive):/.test(reference)) {
    throw new OpmateError('INVALID', 'invalid digest', {
      subject: reference,
      hint: `use ${name}@${algorithm}:${hex === '' ? '…' : hex}`,
    });
  }
  if (!requireDigest) return parseImageReference(reference);
  const parsed = parseReference(reference);
  if (parsed.transport !== 'docker')
    throw withoutDigest(reference, `${parsed.transport}: has no registry digest`);
  if (parsed.digest === undefined) throw withoutDigest(reference, 'missing digest');
  return parsed;
}

function withoutDigest(reference: string, problem: string): OpmateError {
  return new OpmateError('INVALID', `${problem}, required by options.requireDigest`, {
    subject: reference,
    hint: 'use REGISTRY/REPOSITORY@sha256:…; print the digest of a tag with api.inspectImage',
  });
}

/**
 * Parses `PREFIX=OTHER` rules. Both sides are a registry, optionally with leading components of a repository name;
 * whole components are compared. Throws UsageError.
 */
export function parsePullFrom(texts: readonly string[]): PullFrom[] {
  const rules: PullFrom[] = [];
  for (const text of texts) {
    const [prefix, other, ...more] = text.split('=').map((part) => part.trim().replace(/\/+$/, ''));
    if (prefix === undefined || other === undefined || more.length > 0 || prefix === '' || other === '') {
      throw invalidValue('options.pullFrom', text, 'expected PREFIX=OTHER', {
        hint: 'use a pair such as options.pullFrom quay.io/prod=registry.internal/staging',
      });
    }
    for (const place of [prefix, other]) checkPrefix(text, place);
    const same = rules.find((rule) => rule.prefix === prefix);
    if (same !== undefined && same.other !== other) {
      throw invalidValue(
        'options.pullFrom',
        text,
        `duplicate prefix ${prefix}, already pulled from ${same.other}`,
      );
    }
    rules.push({ prefix, other });
  }
  return rules;
}

function checkPrefix(text: string, place: string): void {
  const host = place.split('/', 1)[0] as string;
  const fail = (problem: string, hint: string): UsageError =>
    invalidValue('options.pullFrom', text, `${place} ${problem}`, { hint });
  if (host !== 'localhost' && !/[.:]/.test(host)) {
    throw fail('missing registry', `use docker.io/${place} for Docker Hub`);
  }
  if (findReference(`docker://${place}/name`) === undefined) {
    throw fail('is not a registry or repository prefix', 'remove schemes, tags and digests');
  }
}

function getName({ registry, repository }: RegistryReference): string {
  return `${registry}/${repository}`;
}

function findRule(reference: RegistryReference, rules: readonly PullFrom[]): PullFrom | undefined {
  const name = `${getName(reference)}/`;
  const matching = rules.filter(({ prefix }) => name.startsWith(`${prefix}/`));
  return matching.sort((a, b) => b.prefix.length - a.prefix.length)[0];
}

function applyRule(reference: RegistryReference, { prefix, other }: PullFrom): Reference {
  const { tag, digest } = reference;
  const version = (tag === undefined ? '' : `:${tag}`) + (digest === undefined ? '' : `@${digest}`);
  return parseReference(`docker://${other}${getName(reference).slice(prefix.length)}${version}`);
}

/** Warns of rules without a match: a typo in a rule would pull from the public registry instead. */
function warnUnusedRules(rules: readonly PullFrom[], located: readonly Located[], logger: Logger): void {
  for (const rule of rules) {
    if (!located.some((item) => item.rule === rule))
      logger.log('warn', `options.pullFrom ${rule.prefix}=${rule.other}: no bundle matches ${rule.prefix}/…`);
  }
}

async function stageBundle(stage: Stage, located: Located, session: SourceSession): Promise<void> {
  const { reference, image } = located;
  const { files, digest } = await readBundle(located, session);
  const bundle = parseBundle(files, { subject: reference });
  for (const { file, reason } of bundle.skippedFiles) {
    session.logger?.log('warn', `${reference}: ${file} skipped: ${reason}`);
  }
  const { record, manifests } = toBundleRecord(bundle, image, reference);
  throwIfCancelled(session.signal);
  await stage.add(record, manifests, reference, digest);
}

async function readBundle(
  { reference, source }: Located,
  session: SourceSession,
): Promise<{ files: BundleFiles; digest?: string }> {
  const { signal, followLinks } = session;
  if (source === undefined) {
    const directory = fromDirectory(session, reference);
    return { files: await readBundleDirectory(directory, { signal, followLinks }) };
  }
  return withImage(source, session, async (image) => ({
    files: await readImageBundle(image, reference, session),
    digest: image.root.digest,
  }));
}

/** Returns the error with the reference, without its credentials, as subject. */
function withReference(error: unknown, reference: string): unknown {
  if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
  const subject = withoutCredentials(reference);
  return addContext(error, { subject, replaces: getReferenceNames(subject) });
}
