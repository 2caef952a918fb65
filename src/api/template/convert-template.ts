import { type MetasOptions, readMetas } from '../../catalog/catalog.js';
import { readLocated } from '../../catalog/locate.js';
import type { Meta } from '../../catalog/meta.js';
import { type ConvertedType, TemplateConversion } from '../../catalog/template/convert.js';
import { addContext, combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import type { Session } from '../../source/session.js';
import { catalogsOnly } from '../../source/source-types.js';
import { openSource } from '../../source/source.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import { isArchive } from '../../source/content/file-kind.js';
import type { CatalogOutput } from '../catalog-output.js';
import { requireCatalog } from '../open-catalog.js';
import { type TemplateInput, isStream, openInput } from './template-input.js';

/** Options of `convertToTemplate`. */
export interface ConvertToTemplateOptions extends Pick<CatalogOutput, 'format'> {
  /** `basic` names bundles by image; `substitutes` contains the whole catalog. Default `basic`. */
  type?: ConvertedType | undefined;
}

/** Template of a catalog. `close` it at the end. */
export interface ConvertedTemplate {
  /** Returns the template piece by piece, in the bytes of `opm alpha convert-template`. */
  write: TemplateConversion['write'];
  close(): Promise<void>;
}

/** Blobs of a catalog, and the line on which each begins. */
interface OpenedBlobs {
  metas(options: MetasOptions): AsyncGenerator<Meta, void, undefined>;
  lineOf(origin: Meta['origin']): Promise<number | undefined>;
  close(): Promise<void>;
}

/**
 * Creates a template that renders to a catalog: a file or stream of blobs, or any reference of a catalog. Throws OpmateError
 * with every blob that cannot be converted, with file and line.
 */
export async function convertToTemplate(
  input: TemplateInput,
  session: Session,
  options: ConvertToTemplateOptions = {},
): Promise<ConvertedTemplate> {
  const { type = 'basic', format = 'json' } = options;
  const { logger, signal, temporaryDirectory } = session;
  const opened = await openBlobs(input, session);
  const conversion = new TemplateConversion({ type, format, temporaryDirectory });
  const close = async (): Promise<void> => {
    await conversion.close();
    await opened.close();
  };
  try {
    const faults: OpmateError[] = [];
    const onFault = (fault: OpmateError): void =>
      void faults.push(addContext(fault, { subject: 'converting' }));
    await readLocated(opened, { logger, signal, onFault }, (meta) => conversion.add(meta));
    if (faults.length > 0) throw combineErrors(faults);
    return { write: (written) => conversion.write(written), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openBlobs(input: TemplateInput, session: Session): Promise<OpenedBlobs> {
  if (typeof input !== 'string' || (await isStream(input)) || (await isFileOfBlobs(input))) {
    const opened = await openInput(input, session);
    return {
      metas: (options) => readMetas(opened, options),
      lineOf: ({ offset }) => opened.lineOf(offset),
      close: () => opened.close(),
    };
  }
  const { catalog, close } = await requireCatalog(await openSource(input, session, catalogsOnly), input);
  return {
    metas: (options) => catalog.metas(options),
    lineOf: (origin) => catalog.lineOf(origin),
    close,
  };
}

/** Reports whether a reference is a file of documents. Throws OpmateError for a missing path. */
async function isFileOfBlobs(reference: string): Promise<boolean> {
  const stats = await statIfPresent(reference);
  if (stats === undefined && !/[:@]/.test(reference)) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: reference });
  }
  if (stats === undefined || stats.isDirectory()) return false;
  return !(stats.isFile() && ((await isDatabaseFile(reference)) || (await isArchive(reference))));
}
