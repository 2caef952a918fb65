import { createWarning } from '../../core/diagnostic.js';
import { logDiagnostic } from '../../core/log.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { decodeFile } from '../../document/document.js';
import { readInputFile } from '../../files/read-file.js';
import {
  type ImageSetConfiguration,
  readImageSetConfiguration,
} from '../../mirror/image-set/image-set-config.js';
import {
  type CatalogSourceTemplate,
  readCatalogSourceTemplates,
} from '../../mirror/image-set/catalog-source-template.js';
import { requireObjectNames } from '../../mirror/image-set/image-set-resources.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import type { TransferReport } from '../../mirror/transfer/transfer-types.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { ImageSetRun } from './image-set-run.js';

/** Templates of catalog sources by the catalog that names them. */
export type Templates = ReadonlyMap<string, CatalogSourceTemplate>;

/** Reads the configuration of a run, and the digest of its bytes. Throws UsageError for a run without one. */
export async function readConfiguration(
  run: ImageSetRun,
): Promise<{ config: ImageSetConfiguration; digest: string }> {
  const { configFile: file } = run;
  if (file === undefined)
    throw new UsageError('missing', {
      subject: 'mirror.configFile',
      hint: 'add mirror.configFile FILE with an ImageSetConfiguration',
    });
  const bytes = await readInputFile(file, run.session).catch(throwMissing(file));
  const config = readImageSetConfiguration(decodeFile(bytes, file), file);
  requireObjectNames(config, { target: run.destination.target, ...run.options.naming });
  return { config, digest: computeDigest(bytes) };
}

/** Returns a handler of a failed read, which adds ways to write the configuration if it is missing. */
function throwMissing(file: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
    const hint = 'create one with api.captureImageSet or api.viewCatalog';
    throw new OpmateError('NOT_FOUND', error.problem, { about: file, hint, cause: error });
  };
}

/** Reads the templates of catalog sources that the configuration names. */
export function readTemplates(
  run: ImageSetRun,
  { operators }: ImageSetConfiguration,
): Promise<Map<string, CatalogSourceTemplate>> {
  const { workingDirectory: directory, followLinks } = run.session;
  return readCatalogSourceTemplates(operators, { directory, followLinks });
}

/** Option of a lock: number of selected images that it does not pin, as they could not be read. */
const omittedOption = 'omitted';

/** Warns of the images that a lock does not pin; `name` is the lock's. */
export function warnOfOmitted({ options }: ImageSetLock, name: string, { session }: ImageSetRun): void {
  const { [omittedOption]: omitted } = options;
  if (omitted === undefined) return;
  const hint = 'mirror without mirror.locked, or plan again, to include them';
  const problem = `images omitted, as they could not be read: ${omitted}`;
  logDiagnostic(session.logger, createWarning('images-omitted', problem, { subject: name, hint }));
}

/** Returns the options that shape the selection and the number of omitted images, as a lock records them. */
export function getLockOptions(
  { options, session }: ImageSetRun,
  { failed }: Pick<TransferReport, 'failed'>,
): Record<string, string> {
  const { dependencies, signatures } = options;
  const { platform } = session;
  return {
    dependencies,
    ...(platform !== undefined && { platform: formatPlatform(platform) }),
    signatures: signatures ? 'yes' : 'none',
    ...(failed.length > 0 && { [omittedOption]: String(failed.length) }),
  };
}
