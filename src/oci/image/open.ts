import type { ArchiveLimits } from '../../archive/limits.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { UsageError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import type { BlobCache } from '../registry/blob-cache.js';
import type { Connection } from '../registry/connection.js';
import { createRegistryRepository, type RegistryRepositoryOptions } from '../registry/registry-client.js';
import type { Repository, WritableRepository } from '../registry/repository.js';
import { type SignatureReads, withRememberedSignatures } from '../signatures/remembered-signatures.js';

/** What opening images needs of a session. */
export interface ImageSession extends CancelOptions {
  /** How registries and other servers are reached; called when the first one is needed. */
  connect: () => Connection | Promise<Connection>;
  cache?: BlobCache | undefined;
  /** Layers of catalogs by digest, where there is no `cache` that has them. */
  catalogCache?: (() => Promise<BlobCache | undefined>) | undefined;
  /** Set where what is attached to images is read once in a run. */
  signatureReads?: SignatureReads | undefined;
  logger?: Logger | undefined;
  /** Where compressed archives are unpacked while they are open; without it they are refused. */
  temporaryDirectory?: string | undefined;
  /** Caps on unpacking a compressed archive, and on the entries of any. */
  limits?: ArchiveLimits | undefined;
}

/** What a reference names; `close` it when done. */
export interface OpenedReference {
  repository: Repository;
  /** Tag or digest within the repository; the digest where both were given. */
  reference: string;
  close(): Promise<void>;
}

/** Returns an image of a repository that stays open as long as whoever opened it needs it. */
export function holdOpen({
  repository,
  digest,
}: {
  repository: Repository;
  digest: string;
}): OpenedReference {
  return { repository, reference: digest, close: () => Promise.resolve() };
}

/**
 * Opens the repository that a reference lies in: a registry's, an OCI layout directory, or an archive file.
 * A layout or archive without tag means the only image in it. Throws UsageError for a registry reference
 * without tag and digest, and what opening a layout or archive throws.
 */
export async function openReference(reference: Reference, session: ImageSession): Promise<OpenedReference> {
  if (reference.transport === 'docker') {
    const own = createRegistryRepository(await registryOptions(reference, session));
    const { signatureReads } = session;
    const repository = signatureReads ? withRememberedSignatures(own, signatureReads) : own;
    const wanted = reference.digest ?? reference.tag;
    if (wanted === undefined) {
      throw new UsageError('missing tag or digest', {
        subject: repository.name,
        hint: `add one, e.g. ${repository.name}:latest`,
      });
    }
    return { repository, reference: wanted, close: async () => undefined };
  }
  const opened = await openLocal(reference.transport, reference.path, session);
  try {
    const wanted = reference.digest ?? reference.tag ?? (await opened.repository.soleReference(session));
    return { ...opened, reference: wanted };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** The same repository, of which layers of a catalog that are in the cache need not be fetched from a registry again. */
export async function withCatalogCache(
  repository: Repository,
  { catalogCache }: Pick<ImageSession, 'catalogCache'>,
): Promise<Repository> {
  const cache = 'registry' in repository ? await catalogCache?.() : undefined;
  if (cache === undefined) return repository;
  const { withCachedBlobs } = await import('../registry/blob-cache.js');
  return withCachedBlobs(repository, cache);
}

/** What a reference names, to be written to. */
export interface OpenedTarget extends OpenedReference {
  repository: WritableRepository;
}

/**
 * Opens the repository that a reference lies in for writing: a registry's, or an OCI layout directory, which
 * is made by the first write where there is none. Throws UsageError for an archive and for a reference without tag and digest.
 */
export async function openTarget(reference: Reference, session: ImageSession): Promise<OpenedTarget> {
  const wanted = reference.digest ?? reference.tag;
  if (reference.transport !== 'docker' && reference.transport !== 'oci') {
    throw new UsageError('an archive cannot be written to', {
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
  const repository = await openLayout(reference.path, { create: 'on-write' });
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
  path: string,
  { signal, temporaryDirectory, limits }: ImageSession,
) {
  if (transport === 'oci') {
    const { openLayout } = await import('../layout/layout.js');
    return { repository: await openLayout(path), close: async () => undefined };
  }
  const { openDockerArchive, openOciArchive } = await import('../archive-set/archive-source.js');
  const open = transport === 'oci-archive' ? openOciArchive : openDockerArchive;
  const archive = await open(path, { signal, temporaryDirectory, limits });
  return { repository: archive, close: () => archive.close() };
}
