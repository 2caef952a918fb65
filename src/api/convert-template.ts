import { type MetasOptions, readMetas } from '../catalog/catalog.js';
import { LineCounter, type OpenFile } from '../catalog/documents.js';
import { openFile } from '../catalog/file-access.js';
import { readLocated } from '../catalog/locate.js';
import type { Meta } from '../catalog/meta.js';
import { type ConvertedType, TemplateConversion } from '../catalog/template/convert.js';
import { addContext, combineErrors } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { statIfPresent } from '../files/file-status.js';
import type { CatalogFormat } from '../model/encode.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';
import { isDatabaseFile } from '../sqlite/schema/database.js';

/** Options of `convertToTemplate`. */
export interface ConvertToTemplateOptions {
  /** `basic` names bundles by image; `substitutes` holds the whole catalog. Default `basic`. */
  type?: ConvertedType | undefined;
  /** Default `json`. */
  format?: CatalogFormat | undefined;
}

/** Template that stands for a catalog. `close` it at the end. */
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
 * Creates a template that renders to a catalog: a file of blobs, or any reference of a catalog. Throws OpmateError with
 * every blob that cannot be converted, with file and line.
 */
export async function convertToTemplate(
  reference: string,
  session: Session,
  options: ConvertToTemplateOptions = {},
): Promise<ConvertedTemplate> {
  if (!(await isStream(reference)))
    return convertBlobs(await openBlobs(reference, session), session, options);
  const handle = await openFile(reference, reference);
  const close = (): Promise<void> => handle.close();
  try {
    const { size } = await handle.stat();
    return await convertBlobs(
      { ...blobsOfFile({ handle, label: reference, size }), close },
      session,
      options,
    );
  } catch (error) {
    await close();
    throw error;
  }
}

/** Creates a template from a file of blobs that is open; it stays open. */
export function convertOpenToTemplate(
  input: OpenFile,
  session: Session,
  options: ConvertToTemplateOptions,
): Promise<ConvertedTemplate> {
  return convertBlobs({ ...blobsOfFile(input), close: () => Promise.resolve() }, session, options);
}

async function convertBlobs(
  opened: OpenedBlobs,
  session: Session,
  { type = 'basic', format = 'json' }: ConvertToTemplateOptions,
): Promise<ConvertedTemplate> {
  const { temporaryDirectory } = session;
  const conversion = new TemplateConversion({ type, format, temporaryDirectory });
  const close = async (): Promise<void> => {
    await conversion.close();
    await opened.close();
  };
  try {
    await addAll(conversion, opened, session);
    return { write: (options) => conversion.write(options), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function addAll(conversion: TemplateConversion, opened: OpenedBlobs, session: Session): Promise<void> {
  const { logger, signal } = session;
  const faults: OpmateError[] = [];
  const onFault = (fault: OpmateError): void =>
    void faults.push(addContext(fault, { subject: 'converting' }));
  await readLocated(opened, { logger, signal, onFault }, (meta) => conversion.add(meta));
  if (faults.length > 0) throw combineErrors(faults);
}

function blobsOfFile(file: OpenFile): Pick<OpenedBlobs, 'metas' | 'lineOf'> {
  const counter = new LineCounter(file.label);
  return {
    metas: (options) => readMetas(file, options),
    lineOf: ({ offset }) => counter.lineOf(file.handle, offset),
  };
}

async function openBlobs(reference: string, session: Session): Promise<OpenedBlobs> {
  const source = await openSource(reference, session, { bundles: false, catalogs: true });
  if (source.kind === 'bundle') {
    await source.close();
    throw new OpmateError('UNSUPPORTED', `${reference}: is a bundle, not a catalog`);
  }
  return {
    metas: (options) => source.catalog.metas(options),
    lineOf: (origin) => source.catalog.lineOf(origin),
    close: () => source.close(),
  };
}

/** Whether a reference is a file of documents. What does not exist and is not named like an image is refused. */
async function isStream(reference: string): Promise<boolean> {
  const stats = await statIfPresent(reference);
  if (stats === undefined && !/[:@]/.test(reference)) {
    throw new OpmateError('NOT_FOUND', `unable to open input: ${quoteGo(reference)}`, {
      hint: `check the path ${reference}`,
    });
  }
  if (stats === undefined || stats.isDirectory()) return false;
  return !(stats.isFile() && (await isDatabaseFile(reference)));
}
