import type { KeyObject } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { digestOf, isDigest } from '../../core/digest.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { quoteShort } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import { withLock } from '../../files/lock.js';
import { type BytePlan, planBytes } from '../../mirror/lock/byte-plan.js';
import { BaseContent } from '../../mirror/lock/base-content.js';
import { LockMirror, mirroredOfLock } from '../../mirror/lock/lock-mirror.js';
import {
  type ImageSetConfiguration,
  readImageSetConfiguration,
} from '../../mirror/image-set/image-set-config.js';
import { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import {
  planArchivedSet,
  limitLock,
  requireAllowedImages,
  requireListedImages,
  withPlannedReleases,
} from '../../mirror/image-set/archived-set.js';
import { type MirrorTarget, pathBelow } from '../../mirror/image-set/image-set-names.js';
import { type ImageSetPlan, type NamedImage, mappingLines } from '../../mirror/image-set/image-set-plan.js';
import {
  type MirroredSet,
  clusterResources,
  readCatalogSourceTemplates,
  requireSameTemplates,
  templatesOfLock,
} from '../../mirror/image-set/image-set-resources.js';
import {
  type ImageSetLock,
  type LockedImage,
  encodeLock,
  lockName,
  parseLock,
  planOf,
  readLock,
  withoutCharts,
} from '../../mirror/lock/lock.js';
import {
  replaceDirectories,
  requireNoLinks,
  requireWritableDirectory,
  writeOutputFiles,
} from '../../mirror/output-files.js';
import { baseOfInventory, readInventoryFile } from '../../mirror/inventory/inventory.js';
import {
  type ReleaseSignatures,
  parseSignatures,
  signatureFile,
} from '../../mirror/release/release-resources.js';
import { requireSignedReleases } from '../../mirror/release/locked-access.js';
import { requireTargetAccess } from '../../mirror/image-set/target-access.js';
import { rebuiltOnDemand } from '../../mirror/lock/locked-catalogs.js';
import { withSignatures } from '../../mirror/lock/locked-signatures.js';
import { transfersOfLock } from '../../mirror/lock/locked-transfers.js';
import { type ArchivableSet, archiveImageSet, carriedOf } from '../../mirror/image-set/set-archive.js';
import { type Shard, parseShard } from '../../mirror/lock/shard.js';
import { type OpenedArchive, openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import {
  type ArchiveBase,
  archiveIndexName,
  baseOfArchive,
  readArchiveIndex,
  signArchive,
} from '../../oci/archive-set/archive-index.js';
import { parseSigningKey } from '../../trust/signing-key.js';
import { makeDirectory } from '../../files/make-directory.js';
import { formatPlatform } from '../../oci/image/platform.js';
import { writeCatalogCache } from '../../api/catalog-cache.js';
import { planImageSet } from '../../api/mirror.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { describeBytes, describePlan } from './image-set-messages.js';
import {
  type Destination,
  dependenciesOf,
  maxNestedPathsOf,
  maxPerRegistryOf,
  namingOf,
  onErrorOf,
  releaseOptionsOf,
  workspaceOf,
} from './image-set-options.js';
import { archiveDirectoryOf, proofOf } from '../archive/options.js';
import { readInputFile } from '../input.js';
import { copyLimitsOf } from './oc-mirror-flags.js';
import { type Verification, readVerification } from './verification.js';
import { finishTransfer } from './options.js';
import type { ImageSetOptions } from './flags.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import { type CommandSession } from '../session.js';

type Templates = Awaited<ReturnType<typeof readCatalogSourceTemplates>>;

/** How long a run waits for another one to write its results into the same workspace. */
const workspaceWait = 30_000;
/** How long a shard waits for blobs of others, after the last one has come, before it copies them. */
const defaultShardWait = 10_000;

/** What the ways of mirroring an image set have in common: the flags, read once, and the files that are written. */
export class ImageSetWork {
  readonly #context: CommandContext;
  readonly #options: ImageSetOptions;
  readonly #destination: Destination;
  readonly #maxNestedPaths: number | undefined;
  readonly #naming: ReturnType<typeof namingOf>;
  readonly #shard: Shard | undefined;
  /** The plan that the lock must be of. */
  readonly #plan: string | undefined;
  #signingKey: KeyObject | undefined;
  readonly #verification: Verification | undefined;

  /** Throws UsageError for flags that mean nothing, or exclude each other. */
  constructor(context: CommandContext, options: ImageSetOptions, destination: Destination) {
    this.#context = context;
    this.#options = options;
    this.#destination = destination;
    this.#maxNestedPaths = maxNestedPathsOf(options);
    this.#naming = namingOf(options);
    this.#verification = readVerification(options, context, maxPerRegistryOf(options));
    this.#shard = parseShard(options.shard, options.locked === true ? context.environment : {});
    dependenciesOf(options);
    this.#workingDirectory();
    const onError = onErrorOf(options);
    const isLocked = options.locked === true || options.from !== undefined;
    if (isLocked && onError !== 'stop') {
      const hint = 'an image set by its lock is mirrored whole or not; leave --on-error out';
      throw new UsageError(`--on-error ${onError}: not with --locked or --from`, { hint });
    }
    if (this.#shard !== undefined && (options.locked !== true || destination.kind === 'disk')) {
      const hint = 'every machine must have the same plan: add --locked, and a registry to mirror to';
      throw new UsageError('--shard: only with --locked', { hint });
    }
    const { plan } = options;
    this.#plan = plan ?? (options.locked === true ? context.environment['OPMATE_PLAN'] : undefined);
    if (plan !== undefined && (options.locked !== true || !isDigest(plan))) {
      const hint = 'opmate mirror plan prints it, for runs with --locked: sha256:…';
      throw new UsageError(`--plan ${quoteGo(plan)}: not the plan of a lock`, { hint });
    }
    if (options.signBy !== undefined && destination.kind === 'registry') {
      throw new UsageError('--sign-by: signs an archive', { hint: 'mirror to file://DIRECTORY' });
    }
    if (options.from === undefined && (options.id !== undefined || options.verifyKey !== undefined)) {
      throw new UsageError('--id and --verify-key are for archives', {
        hint: 'name the archive with --from',
      });
    }
    if (destination.kind === 'registry' && (options.base !== undefined || options.strictArchive === true)) {
      const hint = 'mirror to file://DIRECTORY';
      throw new UsageError('--base and --strict-archive are for archives', { hint });
    }
  }

  /** Names only: nothing is read but catalogs. */
  async dryRun(session: CommandSession): Promise<number> {
    const { config } = await this.readConfig();
    return this.withPlan(config, session, async (plan) => {
      describePlan(plan, session.logger, this.#options.icsp === true);
      return this.#writeNames(plan, await this.#readTemplates(config.operators), session);
    });
  }

  /** What a dry run writes. */
  async #writeNames(
    set: MirroredSet<NamedImage>,
    templates: Templates,
    session: CommandSession,
  ): Promise<number> {
    const resources = this.#resources(set, templates, await this.#readSignatures());
    const lines = mappingLines(set.images, this.#destination.target);
    const text = (all: readonly string[]): string => all.map((line) => `${line}\n`).join('');
    const files = new Map([['mapping.txt', text(lines)]]);
    const missing = await this.#missingLines(set);
    if (missing.length > 0) files.set('missing.txt', text(missing));
    const directories = new Map<string, ReadonlyMap<string, string>>([['dry-run', files]]);
    const isRegistry = this.#destination.kind === 'registry';
    if (isRegistry) directories.set('cluster-resources', resources);
    await this.#replace(directories);
    session.logger.close();
    session.logger.log('info', `${this.#shown('dry-run', 'mapping.txt')}: ${count(lines.length, 'image')}`);
    if (missing.length > 0)
      session.logger.log(
        'info',
        `${this.#shown('dry-run', 'missing.txt')}: ${count(missing.length, 'image')}`,
      );
    if (isRegistry) this.#tellResources(resources, session);
    return exitCodes.done;
  }

  async toRegistry(session: CommandSession): Promise<number> {
    const { config, digest } = await this.readConfig();
    const templates = await this.#readTemplates(config.operators);
    const { target } = this.#destination;
    await requireTargetAccess(config, target, { maxNestedPaths: this.#maxNestedPaths, session });
    return this.withMirror(config, session, async (mirror, plan) => {
      // What would be wrong with their names is known by now, before anything is copied.
      this.#resources(plan, templates);
      await mirror.prepare();
      await this.#verification?.verify(mirror, session);
      describeBytes(await mirror.surveyWithSignatures(), session.logger);
      const report = await mirror.copy();
      for (const change of report.changes) session.logger.log('warn', change);
      const lock = mirror.lock(digest, this.lockOptions('yes'), templates);
      const next = await this.#writeResult(mirror.mirrored(), templates, session, lock);
      return finishTransfer(this.#context, session.logger, report, {
        output: this.#options.output,
        dryRun: false,
        next,
      });
    });
  }

  async toDisk(session: CommandSession, directory: string): Promise<number> {
    const { config, digest } = await this.readConfig();
    await this.#base();
    return this.withMirror(config, session, async (mirror, plan) => {
      const templates = await this.requireResources(plan, config);
      await mirror.prepare();
      await this.#verification?.verify(mirror, session);
      await mirror.addSignatures();
      const set = {
        transfers: () => mirror.transfers(),
        lock: () => mirror.lock(digest, this.lockOptions('yes'), templates),
        skip: (targetName: string, error: OpmateError) => mirror.skip(targetName, error),
      };
      const archive = await this.#archive(set, directory, config, session);
      await this.saveLock(archive.lock, session);
      const report = mirror.report();
      for (const change of report.changes) session.logger.log('warn', change);
      return finishTransfer(this.#context, session.logger, report, {
        output: this.#options.output,
        dryRun: false,
        isTold: true,
        next: this.#nextFrom(directory, archive),
      });
    });
  }

  /** Returns the command that copies an archive to a registry, and only this one. */
  #nextFrom(directory: string, { id }: { id: string }): string {
    const shown = path.relative(this.#context.workingDirectory, directory) || '.';
    return `opmate mirror --from ${shellWord(shown)} --id ${id} docker://REGISTRY`;
  }

  /** Writes an archive, says what it is, and returns its id with the lock of what it holds. */
  async #archive(
    set: ArchivableSet,
    directory: string,
    config: ImageSetConfiguration,
    session: CommandSession,
  ): Promise<{ id: string; lock: ImageSetLock }> {
    const { logger, signal } = session;
    const { written, lock } = await archiveImageSet(set, directory, {
      session,
      partBytes: config.archiveBytes,
      strict: this.#options.strictArchive === true,
      base: await this.#base(),
      concurrency: maxPerRegistryOf(this.#options),
      logger,
      signal,
    });
    if (this.#signingKey !== undefined) await signArchive(directory, this.#signingKey);
    const { id, base, parts, blobs, inBase } = written.index;
    const size = amountOfBytes(parts.reduce((sum, part) => sum + part.size, 0));
    const kept = written.keptBytes > 0 ? `, ${amountOfBytes(written.keptBytes)} from an earlier run` : '';
    const images = count(lock.images.length, 'image');
    const what = `${images}, ${count(parts.length, 'part')}, ${count(blobs.size, 'blob')}, ${size}${kept}`;
    logger.log('info', `archive ${id}: ${what}`);
    if (base !== undefined) {
      const omitted = [...inBase.values()].reduce((sum, bytes) => sum + bytes, 0);
      const omittedBlobs = `${count(inBase.size, 'blob')}, ${amountOfBytes(omitted)}`;
      logger.log(
        'info',
        `based on ${written.index.holders === undefined ? 'archive' : 'inventory'} ${base}: ${omittedBlobs} omitted`,
      );
    }
    return { id, lock };
  }

  async fromDisk(session: CommandSession, from: readonly string[]): Promise<number> {
    if (this.#destination.kind === 'disk') {
      throw new UsageError('--from: an archive is copied to a registry', {
        hint: 'write docker://REGISTRY[/PATH]',
      });
    }
    const directories = from.map((text) => archiveDirectoryOf(text, this.#context));
    const archive = await openArchiveSets(directories, await proofOf(this.#options, this.#context));
    try {
      await this.requireWritable();
      const lock = parseLock(archive.index.lock, 'the lock of the archive');
      requireListedImages(archive, lock);
      const wanted = this.#options.helmCharts === true ? lock : withoutCharts(lock);
      const base = new BaseContent(archive, this.#destination.target.registry, session);
      const { set, templates, locked } = await this.#setOf({ archive, base }, lock, wanted, session);
      if (this.#options.dryRun === true) return await this.#writeNames(set, templates, session);
      await this.#verification?.verifyArchived(locked, (name) => base.repository(name), session);
      const mirror = new LockMirror(locked, {
        target: this.#destination.target,
        maxNestedPaths: this.#maxNestedPaths,
        transfer: this.#transferOptions(session),
        ...{ archive, base },
        open:
          ({ repository, contents }) =>
          () =>
            Promise.resolve({
              repository: base.repository(repository),
              reference: contents.root.digest,
              close: () => Promise.resolve(),
            }),
        logger: session.logger,
      });
      return await this.#mirrorLock(mirror, set, templates, session);
    } finally {
      await archive.close();
    }
  }

  /**
   * What of an archive is to be mirrored, for the objects of a cluster: all that its lock names, or with a configuration
   * what that allows, which is computed here. Throws OpmateError for an archive that holds more.
   */
  async #setOf(
    { archive, base }: { archive: OpenedArchive; base: BaseContent },
    lock: ImageSetLock,
    wanted: ImageSetLock,
    session: CommandSession,
  ): Promise<{ set: MirroredSet<NamedImage>; templates: Templates; locked: ImageSetLock }> {
    const { target } = this.#destination;
    if (this.#options.config === undefined) {
      const templates = templatesOfLock(lock, 'the lock of the archive');
      await requireSignedReleases(wanted, this.#releaseSettings(session));
      return { set: mirroredOfLock(wanted, target, this.#maxNestedPaths), templates, locked: wanted };
    }
    const { config, digest } = await this.readConfig();
    const isOther = digest !== lock.configuration;
    const templates = await this.#readTemplates(config.operators);
    const { logger, signal, platform } = session;
    const plan = await planArchivedSet(config, {
      target,
      maxNestedPaths: this.#maxNestedPaths,
      dependencies: dependenciesOf(this.#options),
      platforms: platform === undefined ? undefined : [platform],
      logger,
      signal,
      archive,
      lock,
      ...this.#releaseSettings(session),
      contentOf: ({ repository }) =>
        base.repository(repository, pathBelow(target, repository, this.#maxNestedPaths)),
    });
    try {
      const released = withPlannedReleases(wanted, plan);
      const locked = isOther ? limitLock(released, plan) : released;
      const left = (wanted.releases?.releases.length ?? 0) - (locked.releases?.releases.length ?? 0);
      if (left > 0)
        logger.log('info', `${count(left, 'release')} of the archive not in the configuration, left out`);
      return { set: requireAllowedImages(locked, plan), templates, locked };
    } catch (error) {
      const had = lock.options['dependencies'];
      if (!(error instanceof OpmateError) || had !== 'add' || dependenciesOf(this.#options) === had)
        throw error;
      throw addContext(error, {
        hint: 'the archive was made with --dependencies add: give it here too, if that is what you want',
      });
    } finally {
      await plan.close();
    }
  }

  async locked(session: CommandSession): Promise<number> {
    const planned = await this.#readLock();
    this.#requirePlan(planned);
    const { config } = await this.#requireSame(planned);
    const templates = await this.#readTemplates(config.operators);
    requireSameTemplates(planned, templates);
    const mirrored = mirroredOfLock(planned, this.#destination.target, this.#maxNestedPaths);
    if (this.#options.dryRun === true) return this.#writeNames(mirrored, templates, session);
    const isUnsigned = planned.options.signatures === 'unknown' && this.#options.removeSignatures !== true;
    const signed = isUnsigned ? await withSignatures(planned, this.#transferOptions(session)) : planned;
    const lock = (await this.#verification?.verifyLocked(signed, session)) ?? signed;
    const rebuilt = rebuiltOnDemand(lock, {
      plan: () => this.plan(config, session, lock),
      session,
      temporaryDirectory: session.temporaryDirectory,
      writeCache: writeCatalogCache,
      logger: session.logger,
    });
    const { target } = this.#destination;
    const open = (image: LockedImage) => rebuilt.openerOf(image);
    try {
      if (this.#destination.kind === 'disk') {
        const transfers = transfersOfLock(lock, { target, open });
        const skip = (_name: string, error: OpmateError): Promise<void> => Promise.reject(error);
        const set = { transfers: () => transfers, lock: () => lock, skip };
        const { directory } = this.#destination;
        const archive = await this.#archive(set, directory, config, session);
        session.logger.log('info', `next: ${this.#nextFrom(directory, archive)}`);
        return exitCodes.done;
      }
      const mirror = new LockMirror(lock, {
        ...{ target, open, maxNestedPaths: this.#maxNestedPaths },
        transfer: this.#transferOptions(session),
        shard: this.#shard,
        shardWaitMs: this.#options.shardWait ?? defaultShardWait,
        logger: session.logger,
      });
      return await this.#mirrorLock(mirror, mirrored, templates, session);
    } finally {
      await rebuilt.close();
    }
  }

  async #mirrorLock(
    mirror: LockMirror,
    set: MirroredSet<NamedImage>,
    templates: Templates,
    session: CommandSession,
  ): Promise<number> {
    this.#resources(set, templates);
    describeBytes(await mirror.survey(), session.logger);
    const report = await mirror.copy();
    const next = await this.#writeResult(set, templates, session, undefined);
    if (report.waiting > 0) {
      const what = `${count(report.waiting, 'image')} of other machines not there yet`;
      session.logger.log('info', `${what}: the catalogs are copied by the one that ends last`);
    }
    return finishTransfer(this.#context, session.logger, report, {
      output: this.#options.output,
      dryRun: false,
      next,
    });
  }

  async readConfig(): Promise<{ config: ImageSetConfiguration; digest: string }> {
    const file = this.#options.config;
    if (file === undefined) {
      throw new UsageError('no configuration is given', {
        hint: 'name an ImageSetConfiguration with --config',
      });
    }
    const bytes = await readInputFile(this.#resolve(file));
    return { config: readImageSetConfiguration(bytes.toString(), file), digest: digestOf(bytes) };
  }

  /** Plans with what the flags say, from the catalogs of a lock if there is one; the caller closes the plan. */
  async plan(
    config: ImageSetConfiguration,
    session: CommandSession,
    lock?: ImageSetLock,
  ): Promise<ImageSetPlan> {
    const { logger, platform } = session;
    const charts = [...config.helm.local, ...config.helm.repositories.flatMap((one) => one.charts ?? [])];
    const isNamed = [...config.operators, ...config.additionalImages, ...charts].some(
      (one) => one.platforms.length > 0,
    );
    if (platform !== undefined || isNamed) {
      const which =
        platform === undefined
          ? 'those that the configuration names are'
          : `that for ${formatPlatform(platform)} is`;
      const what = `of images for several platforms only ${which} copied`;
      logger.log(
        'warn',
        `${what}: their index keeps its digest, and the registry must take it without the others`,
      );
    }
    return planImageSet(config, session, {
      target: this.#destination.target,
      maxNestedPaths: this.#maxNestedPaths,
      dependencies: dependenciesOf(this.#options),
      withCharts: this.#options.helmCharts === true || this.#destination.kind === 'disk',
      ...releaseOptionsOf(this.#options),
      lock,
    });
  }

  async withPlan<T>(
    config: ImageSetConfiguration,
    session: CommandSession,
    work: (plan: ImageSetPlan) => Promise<T>,
  ): Promise<T> {
    const plan = await this.plan(config, session);
    try {
      return await work(plan);
    } finally {
      await plan.close();
    }
  }

  /** Plans, says what, and hands out what mirrors it. */
  async withMirror<T>(
    config: ImageSetConfiguration,
    session: CommandSession,
    work: (mirror: ImageSetMirror, plan: ImageSetPlan) => Promise<T>,
  ): Promise<T> {
    return this.withPlan(config, session, async (plan) => {
      describePlan(plan, session.logger, this.#options.icsp === true);
      const mirror = new ImageSetMirror(plan, {
        config,
        target: this.#destination.target,
        transfer: this.#transferOptions(session),
        onError: onErrorOf(this.#options),
        signatures: this.#options.removeSignatures !== true,
        temporaryDirectory: session.temporaryDirectory,
        writeCache: writeCatalogCache,
        logger: session.logger,
      });
      try {
        return await work(mirror, plan);
      } finally {
        await mirror.close();
      }
    });
  }

  /** What of the flags shapes what is selected; a lock made with others is not for this run. */
  lockOptions(signatures: 'yes' | 'unknown'): Record<string, string> {
    const { platform, removeSignatures } = this.#options;
    return {
      dependencies: dependenciesOf(this.#options),
      ...(platform !== undefined && { platform }),
      signatures: removeSignatures === true ? 'none' : signatures,
    };
  }

  /** Throws where the cluster resources of a plan cannot be written, before the images are copied for nothing. */
  async requireResources(plan: ImageSetPlan, config: ImageSetConfiguration): Promise<Templates> {
    const templates = await this.#readTemplates(config.operators);
    this.#resources(plan, templates);
    return templates;
  }

  /** Throws where a run could not write its results, or sign them, before it has worked for them. */
  async requireWritable(): Promise<void> {
    const { signBy } = this.#options;
    if (signBy !== undefined)
      this.#signingKey = await parseSigningKey(
        await readInputFile(this.#resolve(signBy)),
        signBy,
        this.#context.environment['COSIGN_PASSWORD'],
      );
    await requireNoLinks([this.#workingDirectory()]);
    const file = this.lockFile();
    const found = await statIfPresent(file);
    if (found?.isDirectory() === true) {
      throw new OpmateError('IO', `--lock ${quoteGo(this.#options.lock ?? file)}: is a directory`, {
        hint: 'name a file',
      });
    }
    for (const directory of new Set([path.dirname(file), this.#workingDirectory()])) {
      await requireWritableDirectory(directory);
    }
  }

  lockFile(): string {
    const { lock } = this.#options;
    return lock === undefined ? path.join(this.#workingDirectory(), lockName) : this.#resolve(lock);
  }

  async #readLock(): Promise<ImageSetLock> {
    try {
      return await readLock(this.lockFile(), this.shownLock());
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      throw new OpmateError('NOT_FOUND', `${this.shownLock()}: lock not found`, {
        file: this.shownLock(),
        hint: 'opmate mirror plan writes it; name another one with --lock, or where it is with --workspace',
        cause: error,
      });
    }
  }

  /** The lock file as messages name it. */
  shownLock(): string {
    return path.relative(this.#context.workingDirectory, this.lockFile());
  }

  /** What is to be copied: of an archive all but what the base holds. */
  async survey(mirror: ImageSetMirror): Promise<BytePlan> {
    if (this.#destination.kind === 'registry') return mirror.survey();
    const base = await this.#base();
    const images = mirror.lockedImages();
    const carried = carriedOf(images);
    return planBytes(images, (digest) => base?.sizeOf(digest) !== undefined && !carried.has(digest));
  }

  async writeLock(lock: ImageSetLock): Promise<void> {
    const file = this.lockFile();
    await writeOutputFiles(path.dirname(file), new Map([[path.basename(file), encodeLock(lock)]]));
  }

  #transferOptions(session: CommandSession) {
    return {
      session,
      maxPerRegistry: maxPerRegistryOf(this.#options),
      ...copyLimitsOf(this.#options),
      continueOnError: onErrorOf(this.#options) !== 'stop',
      skipMissing: false,
      logger: session.logger,
      signal: session.signal,
    };
  }

  /** Throws unless a lock was made of the configuration and the flags of this run. */
  async #requireSame(lock: ImageSetLock) {
    const read = await this.readConfig();
    if (read.digest !== lock.configuration) {
      throw new OpmateError(
        'INVALID',
        `${read.config.file}: is not the configuration that the lock was made of`,
        { hint: 'mirror without --locked to make a new lock' },
      );
    }
    const wanted = this.lockOptions('yes');
    for (const key of ['dependencies', 'platform']) {
      if (wanted[key] === lock.options[key]) continue;
      const had = lock.options[key] ?? 'not given';
      throw new OpmateError(
        'INVALID',
        `--${key} ${wanted[key] ?? 'not given'}: the lock was made with ${had}`,
        {
          hint: 'give the same, or mirror without --locked to make a new lock',
        },
      );
    }
    return read;
  }

  /** Throws where a lock is not of the plan that the machines share. */
  #requirePlan(lock: ImageSetLock): void {
    const plan = this.#plan;
    const own = planOf(lock);
    if (plan === undefined || plan === '' || plan === own) return;
    throw new OpmateError('INVALID', `${this.shownLock()}: is of plan ${own}, expected ${quoteShort(plan)}`, {
      file: this.shownLock(),
      hint: 'give all machines the lock of one opmate mirror plan',
    });
  }

  /** What `--base` names: an archive, by its directory or index, or an inventory. */
  async #base(): Promise<ArchiveBase | undefined> {
    const { base } = this.#options;
    if (base === undefined) return undefined;
    const named = archiveDirectoryOf(base, this.#context);
    const isFile = (await statIfPresent(named))?.isFile() === true;
    const inventory = isFile ? await readInventoryFile(named, base) : undefined;
    if (inventory !== undefined) return baseOfInventory(inventory);
    const index = await readArchiveIndex(named);
    if (this.#destination.kind === 'disk') {
      const { directory } = this.#destination;
      const [place, target] = await Promise.all([named, directory].map(realPath));
      if (place === target || place === path.join(target as string, archiveIndexName)) {
        const problem = `--base ${quoteGo(base)}: the new archive would replace it, and could not be used without it`;
        const hint = 'write to another directory, or keep its mirror_archive.json elsewhere and name that';
        throw new OpmateError('INVALID', problem, { hint });
      }
    }
    return baseOfArchive(index);
  }

  #resolve(file: string): string {
    return path.resolve(this.#context.workingDirectory, file);
  }

  /** An archive has its `working-dir` beside it where it is written. */
  #workingDirectory(): string {
    // That of an archive that came from elsewhere is nothing to write to.
    const otherwise = this.#destination.kind === 'disk' ? this.#destination.directory : undefined;
    return path.join(workspaceOf(this.#options, this.#context, otherwise), 'working-dir');
  }

  #shown(...names: string[]): string {
    return path.join(path.relative(this.#context.workingDirectory, this.#workingDirectory()), ...names);
  }

  #readTemplates(catalogs: Parameters<typeof readCatalogSourceTemplates>[0]) {
    const { workingDirectory: directory } = this.#context;
    return readCatalogSourceTemplates(catalogs, { directory, followLinks: this.#options.followLinks });
  }

  #releaseSettings(session: CommandSession) {
    const { workingDirectory: directory } = this.#context;
    return { session, directory, ignoreReleaseSignature: this.#options.ignoreReleaseSignature === true };
  }

  /** Signatures that the workspace has from earlier runs. */
  async #readSignatures(): Promise<ReleaseSignatures> {
    const file = path.join(this.#workingDirectory(), 'cluster-resources', signatureFile);
    if ((await statIfPresent(file)) === undefined) return new Map();
    return parseSignatures(
      (await readInputFile(file)).toString(),
      this.#shown('cluster-resources', signatureFile),
    );
  }

  #resources(set: MirroredSet, templates: Templates, signatures?: ReleaseSignatures): Map<string, string> {
    const target: MirrorTarget = this.#destination.target;
    return clusterResources(set, {
      ...target,
      signatures,
      maxNestedPaths: this.#maxNestedPaths,
      byRepository: this.#maxNestedPaths !== undefined,
      icsp: this.#options.icsp,
      ...this.#naming,
      templates,
    });
  }

  async #writeResult(
    set: MirroredSet,
    templates: Templates,
    session: CommandSession,
    lock: ImageSetLock | undefined,
  ): Promise<string | undefined> {
    const resources = this.#resources(set, templates, await this.#readSignatures());
    await this.#replace(new Map([['cluster-resources', resources]]));
    if (lock !== undefined) await this.saveLock(lock, session);
    this.#tellResources(resources, session);
    return resources.size === 0
      ? undefined
      : `kubectl apply -f ${shellWord(this.#shown('cluster-resources'))}`;
  }

  /** Writes the lock and names its file. */
  async saveLock(lock: ImageSetLock, { logger }: CommandSession): Promise<void> {
    await this.writeLock(lock);
    logger.log('info', `wrote the lock to ${this.shownLock()}`);
  }

  /** Replaces directories of the workspace, while no other run does. */
  async #replace(directories: ReadonlyMap<string, ReadonlyMap<string, string>>): Promise<void> {
    const root = this.#workingDirectory();
    try {
      await makeDirectory(root);
    } catch (error) {
      throw fileError(`output dir ${quoteGo(root)}`, error);
    }
    await requireNoLinks([root]);
    const { signal } = this.#context;
    await withLock(root, { task: 'opmate mirror', waitMilliseconds: workspaceWait, signal }, () =>
      replaceDirectories(root, directories),
    );
  }

  #tellResources(resources: ReadonlyMap<string, string> | undefined, { logger }: CommandSession): void {
    const names = [...(resources?.keys() ?? [])].sort().join(', ');
    logger.log('info', `wrote ${names || 'no manifests'} to ${this.#shown('cluster-resources')}`);
  }

  /** Lines of the mapping whose images are in no archive yet. */
  async #missingLines(set: MirroredSet<NamedImage>): Promise<string[]> {
    if (this.#destination.kind === 'registry') return [];
    const known = new Set<string>();
    const { base } = this.#options;
    const places = [
      this.#destination.directory,
      ...(base === undefined ? [] : [archiveDirectoryOf(base, this.#context)]),
    ];
    for (const place of places) {
      const index = await readArchiveIndex(place).catch((error: unknown) => {
        if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
        throw error;
      });
      for (const { repository, tag } of index?.images ?? []) known.add(`${repository}:${tag ?? ''}`);
    }
    const missing = set.images.filter(({ destination }) => !known.has(destination));
    return mappingLines(missing, this.#destination.target);
  }
}

/** What a path names in the end; the path itself where nothing is there yet. */
function realPath(place: string): Promise<string> {
  return realpath(place).catch(() => place);
}
