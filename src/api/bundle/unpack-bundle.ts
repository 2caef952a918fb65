import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { readBundleDirectory } from '../../bundle/read.js';
import { findBundleFaults } from '../../bundle/validate/validate-bundle.js';
import { withoutBodies } from '../../bundle/parse.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import type { OpenedContent } from '../../source/content/content-types.js';
import { readTree } from '../../source/drivers/file-tree.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from './bundle-sources.js';
import { findMissingParts } from './validate-bundle.js';

/** Parts of a bundle in the caller's own directory; other sources are extracted whole. */
const ownParts = ['manifests', 'metadata', 'tests'];

/** Options of `unpackBundle`. */
export interface UnpackBundleOptions extends BundleSourceOptions {
  /** Extract invalid bundles too; default false. */
  skipValidation?: boolean | undefined;
}

/** Result of unpacking a bundle. */
export interface UnpackedBundle {
  /** Errors that kept the bundle from being extracted; empty if it was. */
  findings: Diagnostic[];
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
}

/**
 * Extracts the files of a bundle to a directory, all or none. Existing files stay, and a file or directory with the name
 * of one at the top of the bundle is an error. Throws OpmateError.
 */
export async function unpackBundle(
  reference: string,
  directory: string,
  session: Session,
  options: UnpackBundleOptions = {},
): Promise<UnpackedBundle> {
  return useSources(session, options, async (sources) => {
    const content = await sources.open(reference);
    const { isInPlace } = content;
    const findings = options.skipValidation === true ? [] : await check(content, session);
    if (findings.length > 0) return { findings, isInPlace };
    const { limits, signal, followLinks } = session;
    const roots = isInPlace ? ownParts : [''];
    await fillDirectory(
      directory,
      async (staging) => {
        const copyTo = async (name: string): Promise<FileHandle> => {
          const file = path.join(staging, name);
          await makeDirectory(path.dirname(file));
          return open(file, 'wx', 0o666);
        };
        const tree = await readTree(content.directory, { roots, limits, signal, followLinks, copyTo });
        for (const name of tree.directories) await makeDirectory(path.join(staging, name));
        await content.confirm();
      },
      { isShared: true },
    );
    return { findings, isInPlace };
  });
}

/** Returns the findings for which `opm` does not unpack a bundle. */
async function check({ directory }: OpenedContent, { signal, followLinks }: Session): Promise<Diagnostic[]> {
  const hint = 'add options.skipValidation to unpack it anyway';
  const missing = await findMissingParts(directory, 'missing-file', hint);
  if (missing.length > 0) return missing;
  const files = await readBundleDirectory(directory, { signal, followLinks });
  return findBundleFaults(withoutBodies(files), { signal }).filter(
    ({ severity, isUnreported }) => severity === 'error' && isUnreported !== true,
  );
}
