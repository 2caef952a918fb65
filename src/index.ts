/**
 * The library behind the commands. Everything here is typed, streams where there is much of it, stops when
 * its AbortSignal fires, and throws OpmateError; nothing prints, exits, or reads the environment by itself.
 *
 * Most work begins with a session, which is told what it may know of the outside world:
 *
 *     const session = await openSession({
 *       environment: process.env,
 *       homeDirectory: homedir(),
 *       temporaryDirectory: tmpdir(),
 *       architecture: process.arch,
 *     });
 */
export { type Session, type SessionOptions, openSession } from './source/session.js';
export {
  loadCatalog,
  type LoadedCatalog,
  render,
  type RenderCatalogOptions,
  validate,
} from './source/library.js';

export {
  CancelledError,
  DigestMismatchError,
  type ErrorCode,
  LimitError,
  OpmateError,
  RegistryError,
  UsageError,
} from './core/errors.js';
export type { JsonObject, JsonValue } from './core/json.js';
export type { LogFields, Logger, LogLevel, ProgressEvent } from './core/log.js';
export { formatReference, parseReference, type Reference } from './core/reference.js';

export type { Meta } from './catalog/meta.js';
export { type CatalogFormat, encodeBlob } from './catalog/write.js';
export type * from './model/declarative-config.js';
export type { CatalogFacts, Problem, ValidationReport } from './model/facts.js';
export { listBundles, listChannels, listPackages } from './model/list.js';
export { drawGraph } from './model/mermaid.js';
export { migrationLevels } from './model/migrations.js';

export { type BundleFiles, readBundleDirectory } from './bundle/read.js';
export { renderBundleFiles } from './bundle/render.js';

export { type ArchiveLimits, defaultArchiveLimits } from './archive/limits.js';
export { extractLayers, type FileTree, type LayerInput, readLayers } from './archive/layers.js';
export { layerOf } from './archive/tar-writer.js';
export { copyImage } from './oci/copy.js';
export { type Image, openImage } from './oci/image.js';
export { buildImage, pushImage } from './oci/image-builder.js';
export { openReference, openTarget } from './oci/open.js';
export type { Repository, WritableRepository } from './oci/repository.js';
export { type Registry, startRegistry } from './serve/registry.js';
