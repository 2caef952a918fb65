import path from 'node:path';
import { type BundleFiles, readBundleDirectory } from '../../bundle/read.js';
import { type Diagnostic, withSubject } from '../../core/diagnostic.js';
import { renameDirectory } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError, redactUrls } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { openCombinedContent } from '../../source/content/content.js';
import { bundleRoots, readUnpackedBundle } from '../../source/drivers/local.js';
import { type PinOptions, openContentLock } from '../../source/content/content-lock.js';
import { type ContentStore, openContentStore } from '../../source/content/content-store.js';
import { parsePlace, parsePlacedSource } from '../../source/parse-place.js';
import { findUnpinned } from '../../source/content/content-pins.js';
import type { ContentOptions, OpenedContent, Pin, PlacedSource } from '../../source/content/content-types.js';
import { type Session, withChanges } from '../../source/session.js';
import { getCredentials, readSecrets } from '../../source/secrets.js';

/** Options of resolving, pinning and combining sources of bundles. */
export interface BundleSourceOptions extends PinOptions {
  /** Directory with manifests of Secrets. */
  secrets?: string | undefined;
  /** With `secrets`: `[NAMESPACE/]NAME` of the Secret for remote sources. */
  secret?: string | undefined;
  /** Further sources, each `DESTINATION=SOURCE`. */
  add?: readonly string[] | undefined;
}

/** Files of a bundle, with their source. */
interface ReadBundle {
  files: BundleFiles;
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
  pins: readonly Pin[];
}

/** Opens sources for one command; all of them are closed, and the lock is written, when it ends. */
export interface SourceOpener {
  /**
   * The files of a source as the user wrote it, with what `--add` puts beside them. `roots` are the paths that are
   * wanted of it; all where left out. Throws OpmateError.
   */
  open(reference: string, roots?: readonly string[]): Promise<OpenedContent>;
  /** The files of a bundle of the format registry+v1. Throws OpmateError. */
  readBundle(reference: string): Promise<ReadBundle>;
  /** Everything that was opened until now, pinned. */
  readonly pins: readonly Pin[];
}

/** Above the limits of `manifests` and `metadata` together, so that excess fails before all is unpacked. */
const maxBundleFiles = 25_000;

/**
 * Runs `work` with what opens sources by the flags of a command. A lock that is there is honored; one that is not is
 * written once `work` is done, unless its result is refused. Throws OpmateError, and what `work` throws.
 */
export async function useSources<T>(
  session: Session,
  options: BundleSourceOptions,
  work: (sources: SourceOpener) => Promise<T>,
  isRefused: (result: T) => boolean = () => false,
): Promise<T> {
  if (options.secret !== undefined && options.secrets === undefined) {
    throw new UsageError('options.secret: needs options.secrets', {
      hint: 'specify the directory of Secrets with options.secrets',
    });
  }
  const { requireDigest } = options;
  const lock = await openContentLock(options);
  const contentStore = await openStore(session);
  const sources = new OpenSources(session, options, { contentStore, requireDigest, pins: lock.pins });
  try {
    const result = await work(sources);
    await sources.confirm();
    if (!isRefused(result)) await lock.write(sources.pins);
    return result;
  } catch (error) {
    throw sources.nameAsWritten(error);
  } finally {
    await sources.close();
  }
}

/** Sources of one command. */
class OpenSources implements SourceOpener {
  readonly pins: Pin[] = [];
  readonly #session: Session;
  readonly #options: BundleSourceOptions;
  readonly #contentOptions: ContentOptions;
  readonly #opened: OpenedContent[] = [];
  /** Directories and archives of this machine, as the user wrote them. */
  readonly #local: { path: string; name: string }[] = [];

  constructor(session: Session, options: BundleSourceOptions, contentOptions: ContentOptions) {
    this.#session = session;
    this.#options = options;
    this.#contentOptions = contentOptions;
  }

  readonly open = async (reference: string, roots?: readonly string[]): Promise<OpenedContent> => {
    const session = this.#session;
    const placed = await placedSources(reference, this.#options, session);
    for (const { name, source } of placed) {
      if (source.kind === 'directory' || source.kind === 'archive')
        this.#local.push({ path: source.path, name });
    }
    const limits = { ...session.limits, ...(roots === bundleRoots && { maxFiles: maxBundleFiles }) };
    const content = await openCombinedContent(placed, withChanges(session, { limits }), {
      ...this.#contentOptions,
      roots,
    });
    this.#opened.push(content);
    this.#addPins(content.pins, placed);
    return content;
  };

  readonly readBundle = (reference: string): Promise<ReadBundle> =>
    readBundleFrom(reference, this.open, this.#session);

  #addPins(pins: readonly Pin[], placed: readonly PlacedSource[]): void {
    const unpinned = new Set(
      placed.filter((source) => findUnpinned([source]).length > 0).map(({ name }) => name),
    );
    for (const pin of pins) {
      // A reference that may change is logged, except images, whose tags are known to move.
      const isLogged = this.#options.lock === undefined && unpinned.has(pin.name) && pin.type !== 'image';
      this.#session.logger.log(isLogged ? 'info' : 'debug', `${pin.name}: is ${pin.ref}`);
      if (!this.pins.some(({ name }) => name === pin.name)) this.pins.push(pin);
    }
  }

  /** Throws OpmateError for content that changed while it was read. */
  async confirm(): Promise<void> {
    for (const content of this.#opened) await content.confirm();
  }

  /** Returns an error with the paths of sources, which are absolute below, as the user wrote them. */
  nameAsWritten(error: unknown): unknown {
    return this.#local.reduce(
      (named, { path: absolute, name }) =>
        named instanceof OpmateError && absolute !== '/' ? renameDirectory(named, absolute, name) : named,
      error,
    );
  }

  async close(): Promise<void> {
    for (const content of this.#opened) await content.close();
  }
}

/** Opens the content cache; undefined without a cache directory. */
export async function openStore({ cacheDirectory, logger, now }: Session): Promise<ContentStore | undefined> {
  if (cacheDirectory === undefined) return undefined;
  return openContentStore({ directory: path.join(cacheDirectory, 'content'), now: now(), logger });
}

async function placedSources(
  reference: string,
  options: BundleSourceOptions,
  session: Session,
): Promise<PlacedSource[]> {
  const source = await parsePlace(reference, {
    purpose: 'content',
    workingDirectory: session.workingDirectory,
  });
  const { secret, secrets, add = [] } = options;
  const isRemote = source.kind === 'image' || source.kind === 'git' || source.kind === 'http';
  if (secret !== undefined && secrets !== undefined && isRemote) {
    const position = secret.indexOf('/');
    const name = {
      namespace: position < 0 ? '' : secret.slice(0, position),
      name: secret.slice(position + 1),
    };
    source.credentials = getCredentials(await readSecrets(secrets, session), { ...name, kind: source.kind });
  }
  const placed: PlacedSource[] = [{ name: redactUrls(reference), source, destination: '' }];
  for (const text of add) placed.push(await parsePlacedSource(text, session.workingDirectory));
  return placed;
}

async function readBundleFrom(
  reference: string,
  open: SourceOpener['open'],
  session: Session,
): Promise<ReadBundle> {
  const { signal, followLinks } = session;
  const content = await open(reference, bundleRoots);
  const { isInPlace, pins } = content;
  const files = isInPlace
    ? await readBundleDirectory(reference, { signal, followLinks })
    : await readUnpackedBundle(content.directory, redactUrls(reference), session);
  await content.confirm();
  return { files, isInPlace, pins };
}

/** Returns the sources of a command's files, for its JSON output. */
export function pinValues(pins: readonly Pin[]): JsonObject[] {
  return pins.map(({ name, ref, content }) => ({ name, ref, content }));
}

/**
 * Returns a function that names the files of a bundle in findings, by path if the bundle is a directory. `inputs` keep
 * their names.
 */
export function inSource(
  reference: string,
  isDirectory: boolean,
  inputs: readonly (string | undefined)[] = [],
): (finding: Diagnostic) => Diagnostic {
  return (finding) => {
    const { file } = finding;
    if (file === undefined) return withSubject(finding, reference);
    if (inputs.includes(file)) return finding;
    return { ...finding, file: fileInSource(reference, file, isDirectory) };
  };
}

/** Returns the name of a file of a bundle in messages: its path if the bundle is a directory. */
export function fileInSource(reference: string, file: string, isDirectory: boolean): string {
  return isDirectory ? path.join(reference, file) : `${reference}: ${file}`;
}
