import path from 'node:path';
import type { ArchiveLimits } from '../../archive/limits.js';
import { type CancelOptions, keepOpen } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { type Reference, missingTag } from '../../core/reference.js';
import type { BlobCache } from '../registry/blob-cache.js';
import type { Connection } from '../registry/connection.js';
import { createRegistryRepository, type RegistryRepositoryOptions } from '../registry/registry-client.js';
import type { Repository, WritableRepository } from '../registry/repository.js';
import { type SignatureReads, withSignatureCache } from '../signatures/remembered-signatures.js';

/** Part of a session that opening images needs. */
export interface ImageSession extends CancelOptions {
  /** Returns the connection to registries and other servers; called when it is first needed. */
  connect: () => Connection | Promise<Connection>;
  cache?: BlobCache | undefined;
  /** Returns the cache of catalog layers, without a `cache`. */
  catalogCache?: (() => Promise<BlobCache | undefined>) | undefined;
  /** Signatures and referrers read in this run, if they are to be read once. */
  signatureReads?: SignatureReads | undefined;
  logger?: Logger | undefined;
  /** Directory for unpacked archives while they are open; compressed archives are refused without it. */
  temporaryDirectory?: string | undefined;
  /** Base of relative paths of layouts and archives; default: that of the process. */
  workingDirectory?: string | undefined;
  /** Limits of unpacking a compressed archive, and of the entries of any. */
  limits?: ArchiveLimits | undefined;
}

/**
 * Resolves a path against the working directory of a session. A path stays as the user wrote it, for messages, if that
 * is the one of the process.
 */
export function fromDirectory(
  { workingDirectory }: { workingDirectory?: string | undefined },
  file: string,
): string {
  if (workingDirectory === undefined) return file;
  const resolved = path.resolve(workingDirectory, file);
  return resolved === path.resolve(file) ? file : resolved;
}

/** The repository of a reference; `close` it when done. */
export interface OpenedReference {
  repository: Repository;
  /** Tag or digest within the repository; the digest takes precedence. */
  reference: string;
  close(): Promise<void>;
}

/** Returns an image of a repository that the caller keeps open. */
export function holdOpen(image: { repository: Repository; digest: string }): OpenedReference {
  return { repository: image.repository, reference: image.digest, close: () => Promise.resolve() };
}

/**
 * Opens the repository of a reference: in a registry, an OCI layout directory, or an archive file. A layout or archive
 * without tag must have a single image. Throws UsageError for a registry reference without tag and digest, and the errors
 * of opening a layout or archive.
 */
export async function openReference(reference: Reference, session: ImageSession): Promise<OpenedReference> {
  if (reference.transport === 'docker') {
    const own = createRegistryRepository(await registryOptions(reference, session));
    const { signatureReads } = session;
    const repository = signatureReads ? withSignatureCache(own, signatureReads) : own;
    const wanted = reference.digest ?? reference.tag;
    if (wanted === undefined) {
      const { problem, subject, hint } = missingTag(reference.text);
      throw new UsageError(problem, { subject, hint });
    }
    return { repository, reference: wanted, close: async () => undefined };
  }
  return keepOpen(
    openLocal(reference.transport, fromDirectory(session, reference.path), session),
    async (opened) => {
      const wanted = reference.digest ?? reference.tag ?? (await opened.repository.soleReference(session));
      return { ...opened, reference: wanted };
    },
  );
}

/** Returns the repository with the cache of catalog layers, if it is in a registry. */
export async function withCatalogCache(
  repository: Repository,
  { catalogCache }: Pick<ImageSession, 'catalogCache'>,
): Promise<Repository> {
  const cache = 'registry' in repository ? await catalogCache?.() : undefined;
  if (cache === undefined) return repository;
  const { withCachedBlobs } = await import('../registry/blob-cache.js');
  return withCachedBlobs(repository, cache);
}

/** The writable repository of a reference. */
export interface OpenedTarget extends OpenedReference {
  repository: WritableRepository;
}

/**
 * Opens the repository of a reference for writing: in a registry, or an OCI layout directory, created with the first
 * write. Throws UsageError for an archive, and for a reference without tag and digest.
 */
export async function openTarget(reference: Reference, session: ImageSession): Promise<OpenedTarget> {
  const wanted = reference.digest ?? reference.tag;
  if (reference.transport !== 'docker' && reference.transport !== 'oci') {
    throw new UsageError('archives are read-only', {
      subject: `${reference.transport}:${reference.path}`,
      hint: `use a layout directory: oci:DIR:TAG`,
    });
  }
  const name =
    reference.transport === 'docker'
      ? `${reference.registry}/${reference.repository}`
      : `oci:${reference.path}`;
  if (wanted === undefined) {
    throw new UsageError('missing tag or digest', {
      subject: name,
      hint: `add a tag, e.g. ${name}:v1`,
    });
  }
  const close = async () => undefined;
  if (reference.transport === 'docker') {
    const own = { ...(await registryOptions(reference, session)), cache: undefined, withoutMirrors: true };
    const repository = createRegistryRepository(own);
    return { repository, reference: wanted, close };
  }
  const { openLayout } = await import('../layout/layout.js');
  const repository = await openLayout(fromDirectory(session, reference.path), { create: 'on-write' });
  return { repository, reference: wanted, close };
}

async function registryOptions(
  { registry, repository }: { registry: string; repository: string },
  { connect, cache, logger }: ImageSession,
): Promise<RegistryRepositoryOptions> {
  return { connection: await connect(), registry, repository, cache, logger };
}

async function openLocal(
  transport: 'oci' | 'oci-archive' | 'docker-archive',
  file: string,
  { signal, temporaryDirectory, limits }: ImageSession,
) {
  if (transport === 'oci') {
    const { openLayout } = await import('../layout/layout.js');
    return { repository: await openLayout(file), close: async () => undefined };
  }
  const { openDockerArchive, openOciArchive } = await import('../archive-set/archive-source.js');
  const open = transport === 'oci-archive' ? openOciArchive : openDockerArchive;
  const archive = await open(file, { signal, temporaryDirectory, limits });
  return { repository: archive, close: () => archive.close() };
}
