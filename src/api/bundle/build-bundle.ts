import { withOpen } from '../../core/concurrency.js';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import {
  type PreparedBundle,
  type PrepareOptions,
  buildBundleImages,
  prepareBundle,
} from '../../bundle/author/build.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { replaceFiles } from '../../files/replace-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { Session } from '../../source/session.js';
import {
  type ImageOutput,
  type StoredImage,
  checkImageOutput,
  openBase,
  putImages,
} from '../images/image-output.js';
import { type GenerateBundleRequest, resolveRequest } from './generate-bundle.js';

/** Options of building the image of a bundle. */
export interface BuildBundleOptions {
  /** Overwrite existing annotations, Dockerfile and copies; default false. */
  overwrite?: boolean | undefined;
  /** Called with inferred facts and warnings before anything is built. */
  onPrepared?: ((bundle: Pick<PreparedBundle, 'inferred' | 'warnings'>) => void) | undefined;
}

/** Result of building the image of a bundle. */
export interface BuiltBundle {
  /** Problems of the bundle. With any, nothing was written. */
  findings: Diagnostic[];
  /** Paths of the files that were written. */
  files: string[];
  /** Images by output. */
  images: StoredImage[];
}

/**
 * Builds the image of the bundle in a directory of manifests, or in one with `manifests/`, and pushes or saves it to each
 * output; files and images are all written, or none. The same files produce the same digest. Throws OpmateError.
 */
export async function buildBundle(
  request: GenerateBundleRequest,
  outputs: readonly ImageOutput[],
  session: Session,
  options: BuildBundleOptions = {},
): Promise<BuiltBundle> {
  for (const output of outputs) await checkImageOutput(output);
  const { directory } = resolveRequest(request, session);
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  // A directory in which a bundle stands as a whole is as good as that of its manifests.
  const isWhole = entries.some((entry) => entry.name === 'manifests' && entry.isDirectory());
  const manifests = isWhole ? path.join(directory, 'manifests') : directory;
  return storeBundle({ ...request, directory: manifests }, outputs, session, options);
}

/** Builds and stores the image of a bundle in a directory of manifests. */
export async function storeBundle(
  request: GenerateBundleRequest,
  outputs: readonly ImageOutput[],
  session: Session,
  { onPrepared, ...options }: BuildBundleOptions & Pick<PrepareOptions, 'readsOnly'>,
): Promise<BuiltBundle> {
  const { platform, signal, followLinks } = session;
  const prepared = await prepareBundle(resolveRequest(request, session), { ...options, signal, followLinks });
  onPrepared?.(prepared);
  const { findings } = prepared;
  if (findings.length > 0) return { findings, files: [], images: [] };
  return withTemporaryDirectory(session, async (directory) => {
    return withOpen(openBase(session, prepared.baseImage, 'options.baseImage'), async (base) => {
      const built = await buildBundleImages(prepared, { bases: base.images, platform, directory, signal });
      const images: StoredImage[] = [];
      const putAll = async (): Promise<void> => {
        for (const output of outputs) images.push(await putImages(session, output, built, directory));
      };
      await replaceFiles(prepared.files, { signal, then: putAll });
      return { findings, files: prepared.files.map(({ target }) => target), images };
    });
  });
}
