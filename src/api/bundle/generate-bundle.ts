import path from 'node:path';
import { type BundleRequest, generateBundleFiles } from '../../bundle/author/generate.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { replaceFiles } from '../../files/replace-file.js';
import type { Session } from '../../source/session.js';

/** Request for the metadata of a bundle. */
export interface GenerateBundleRequest {
  /** Directory of the manifests. */
  directory: string;
  /** Directory to copy the manifests to and write the metadata in; default next to `directory`. */
  outputDirectory?: string | undefined;
  /** Default: inferred from a package manifest next to the directory; so are the channels. */
  packageName?: string | undefined;
  channels?: readonly string[] | undefined;
  defaultChannel?: string | undefined;
  /** Base image in the Dockerfile; default `scratch`. */
  baseImage?: string | undefined;
  /** Directory of the Dockerfile; default the working directory. */
  workingDirectory?: string | undefined;
}

/** Result of generating the metadata of a bundle. */
export interface GeneratedBundleFiles {
  /** Paths of the written files. */
  files: string[];
  /** Sentences about inferred facts. */
  inferred: string[];
  warnings: Diagnostic[];
}

/**
 * Writes `metadata/annotations.yaml` and `bundle.Dockerfile` for a directory of manifests, both or neither, with the bytes
 * of `opm alpha bundle generate`. Throws OpmateError NOT_FOUND, IO, INVALID.
 */
export async function generateBundle(
  request: GenerateBundleRequest,
  session: Session,
): Promise<GeneratedBundleFiles> {
  const { files, inferred, warnings } = await generateBundleFiles(resolveRequest(request, session), session);
  await replaceFiles(files, session);
  return { files: files.map(({ target }) => target), inferred, warnings };
}

/** Returns a request with absolute paths, and its defaults. */
export function resolveRequest(request: GenerateBundleRequest, session: Session): BundleRequest {
  const { outputDirectory, packageName = '', channels = [], defaultChannel = '', baseImage } = request;
  const workingDirectory = path.resolve(request.workingDirectory ?? session.workingDirectory);
  return {
    packageName,
    channels: channels.join(','),
    defaultChannel,
    baseImage,
    workingDirectory,
    directory: path.resolve(workingDirectory, request.directory),
    outputDirectory: outputDirectory && path.resolve(workingDirectory, outputDirectory),
  };
}
