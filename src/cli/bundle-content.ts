import { type BundleFiles, readBundleDirectory } from '../bundle/read.js';
import { OpmateError } from '../core/errors.js';
import { openSource } from '../source/source.js';
import type { CommandSession } from './session.js';

/** The files of a bundle, from wherever it is. Throws OpmateError. */
export async function readBundle(
  reference: string,
  isDirectory: boolean,
  session: CommandSession,
): Promise<BundleFiles> {
  if (isDirectory) return readBundleDirectory(reference, { signal: session.signal });
  const source = await openSource(reference, session, { bundles: true, catalogs: false });
  try {
    // Catalogs are refused when they are opened.
    if (source.kind === 'bundle') return source.files;
    throw new OpmateError('UNSUPPORTED', `${reference}: is a catalog, not a bundle`);
  } finally {
    await source.close();
  }
}
