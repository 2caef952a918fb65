import { addContext } from '../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../core/errors.js';
import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { compareBytes } from '../core/order.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import type { BlobOrigin } from '../model/facts.js';
import { type Catalog, type MetasOptions, isFault } from './catalog.js';
import type { Meta } from './meta.js';

/** Finds the line of a blob. */
interface LineFinder {
  lineOf(origin: BlobOrigin): Promise<number | undefined>;
}

/** Returns the error with the file and line of its blob; other values unchanged. */
export async function locate(catalog: LineFinder, origin: BlobOrigin, error: unknown): Promise<unknown> {
  if (!(error instanceof OpmateError) || error.file !== undefined) return error;
  return addContext(error, { file: origin.file, line: await catalog.lineOf(origin) });
}

/**
 * Calls `use` with each blob of a catalog. Throws its OpmateErrors with file and line of the blob, unless `onFault`
 * handles them.
 */
export async function readLocated(
  catalog: LineFinder & Pick<Catalog, 'metas'>,
  options: MetasOptions,
  use: (meta: Meta) => void | Promise<void>,
): Promise<void> {
  for await (const meta of catalog.metas(options)) {
    try {
      await use(meta);
    } catch (error) {
      const located = await locate(catalog, meta.origin, error);
      if (options.onFault === undefined || !isFault(located)) throw located;
      options.onFault(located);
    }
  }
}

/** A place in a catalog, if known: a blob and a path in it. */
interface Place {
  origin?: BlobOrigin | undefined;
  path?: readonly (string | number)[] | undefined;
}

/** Returns diagnostics with the file and line of their blobs. Reads each file once. */
export async function placeDiagnostics<D extends CatalogDiagnostic>(
  catalog: Pick<Catalog, 'lineOf'>,
  diagnostics: readonly D[],
  options: CancelOptions = {},
): Promise<D[]> {
  const places = diagnostics.map(({ origin, path, line }) => ({
    origin,
    path: line === undefined ? path : [],
  }));
  const lines = await findLines(catalog, places, options);
  return diagnostics.map((diagnostic, index) => {
    const { origin, line = 1, ...rest } = diagnostic;
    const start = lines[index];
    if (origin === undefined) return diagnostic;
    return { ...rest, file: origin.file, line: start === undefined ? undefined : start + line - 1 } as D;
  });
}

/** Returns the one-based line of each place. Reads each file once, whatever the order of places. */
async function findLines(
  catalog: Pick<Catalog, 'lineOf'>,
  places: readonly Place[],
  { signal }: CancelOptions = {},
): Promise<(number | undefined)[]> {
  const lines = new Array<number | undefined>(places.length);
  const byPlace = [...places.keys()].sort((a, b) => compareOrigins(places[a]?.origin, places[b]?.origin));
  for (const index of byPlace) {
    throwIfCancelled(signal);
    await takeTurn();
    const { origin, path } = places[index] as Place;
    if (origin !== undefined) lines[index] = await catalog.lineOf(origin, path);
  }
  return lines;
}

function compareOrigins(a: BlobOrigin | undefined, b: BlobOrigin | undefined): number {
  return compareBytes(a?.file ?? '', b?.file ?? '') || (a?.offset ?? 0) - (b?.offset ?? 0);
}
