import { defaultArchiveLimits } from '../archive/limits.js';
import { renderBundleFiles } from '../bundle/render.js';
import { parseImageTemplate } from '../bundle/image-template.js';
import { isBundleDirectory } from '../bundle/read.js';
import { renderDirectories } from '../bundle/render-directories.js';
import { Assembly, type AssemblyOptions } from '../catalog/assemble.js';
import type { Catalog } from '../catalog/catalog.js';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { type OpmateError, systemCode } from '../core/errors.js';
import type { AllowedSources, BundleSource, Source } from './source-types.js';
import type { SourceSession } from './session.js';
import { inReference } from './reference-error.js';
import { openSource } from './source.js';

interface RenderOptions extends Omit<AssemblyOptions, 'temporaryDirectory'> {
  /** Template for the image references of bundles without registry. */
  imageTemplate?: string | undefined;
  /** Maximum number of references opened in parallel; default 8. */
  concurrency?: number | undefined;
  allowed?: AllowedSources | undefined;
}

/** The rendered references; `close` releases the sources, which are read again while writing. */
interface Rendered {
  assembly: Assembly;
  close(): Promise<void>;
}

/**
 * Reads and validates every reference, so that writing the result cannot fail on its content. Throws OpmateError
 * `render reference "…": …` for the first failure.
 */
export async function renderReferences(
  references: readonly string[],
  session: SourceSession,
  options: RenderOptions,
): Promise<Rendered> {
  const { format, migrationLevel, keepUnknownFields } = options;
  const { temporaryDirectory } = session;
  const assembly = new Assembly({ format, migrationLevel, keepUnknownFields, temporaryDirectory });
  const opened: Source[] = [];
  const close = async (): Promise<void> => {
    const closed = await Promise.allSettled([...opened, assembly].map((item) => item.close()));
    const failure = closed.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
  };
  const renderOne = async ({ reference, position }: Positioned): Promise<void> => {
    try {
      const source = await openSource(reference, session, options.allowed);
      opened.push(source);
      if (source.kind === 'catalog') await addCatalog(assembly, source.catalog, position, session);
      else await assembly.addBundle(renderBundleSource(source, reference, options), position);
    } catch (error) {
      throw inReference(error, reference);
    }
  };
  try {
    const { directories, others } = await findBundleDirectories(references, session, options);
    await addBundleDirectories(assembly, directories, session, options);
    await mapConcurrent(others, options.concurrency ?? 8, renderOne, session);
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
  return { assembly, close };
}

/** A reference with its index on the command line. */
interface Positioned {
  reference: string;
  position: number;
}

/** Separates bundle directories, which are rendered on all processors, from other references. */
async function findBundleDirectories(
  references: readonly string[],
  session: CancelOptions,
  options: RenderOptions,
): Promise<{ directories: Positioned[]; others: Positioned[] }> {
  const positioned = references.map((reference, position) => ({ reference, position }));
  if (options.allowed?.bundles === false) return { directories: [], others: positioned };
  const isBundle = await mapConcurrent(references, 16, isLocalBundle, session);
  return {
    directories: positioned.filter(({ position }) => isBundle[position]),
    others: positioned.filter(({ position }) => !isBundle[position]),
  };
}

async function isLocalBundle(reference: string): Promise<boolean> {
  try {
    return await isBundleDirectory(reference);
  } catch (error) {
    // Most references name images; too long a name cannot be a directory.
    const { code, cause } = error as OpmateError;
    if (code === 'NOT_FOUND' || systemCode(cause) === 'ENAMETOOLONG') return false;
    throw error;
  }
}

async function addBundleDirectories(
  assembly: Assembly,
  directories: readonly Positioned[],
  session: SourceSession,
  options: RenderOptions,
): Promise<void> {
  await renderDirectories(
    directories.map(({ reference }) => reference),
    {
      format: options.format,
      imageTemplate: options.imageTemplate,
      migrateLevel: options.migrationLevel,
      limits: { maxFileSize: (session.limits ?? defaultArchiveLimits).maxMetadataFileSize },
      followLinks: session.followLinks,
      signal: session.signal,
      describeFailure: (directory, error) => inReference(error, directory),
    },
    (bundle, index) =>
      assembly.addText(bundle, Buffer.from(bundle.text.buffer), (directories[index] as Positioned).position),
  );
}

async function addCatalog(
  assembly: Assembly,
  catalog: Catalog,
  position: number,
  session: SourceSession,
): Promise<void> {
  for await (const meta of catalog.metas(session)) await assembly.add(catalog, meta, position);
}

/** Renders a bundle source as a blob, migrated to the requested level. */
export function renderBundleSource(
  source: BundleSource,
  reference: string,
  options: { imageTemplate?: string | undefined; migrationLevel: string },
): BundleBlob {
  const { imageTemplate, migrationLevel } = options;
  const hasImage = source.image !== '' || imageTemplate === undefined;
  return renderBundleFiles(source.files, {
    subject: reference,
    migrateLevel: migrationLevel,
    ...(hasImage ? { image: source.image } : { imageTemplate: parseImageTemplate(imageTemplate) }),
  });
}
