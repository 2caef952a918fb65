import { stat } from 'node:fs/promises';
import path from 'node:path';
import { catalogDockerfile, defaultCatalogBase } from '../../catalog/dockerfile.js';
import { OpmateError, systemCode, throwFileError, writeError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { writeNewFile } from '../../files/write-new-file.js';

/** Options of `generateDockerfile`. */
export interface GenerateDockerfileOptions {
  /** Image to build on, or `scratch`; default `quay.io/operator-framework/opm:latest`. */
  baseImage?: string | undefined;
  /** Image to build the serve cache with; default `quay.io/operator-framework/opm:latest`. */
  builderImage?: string | undefined;
  /** Additional labels; default none. */
  labels?: ReadonlyMap<string, string> | undefined;
}

/**
 * Writes `NAME.Dockerfile` next to a catalog directory NAME, and returns its path. Throws OpmateError, IO for a file that
 * exists: it is never replaced.
 */
export async function generateDockerfile(
  directory: string,
  options: GenerateDockerfileOptions = {},
): Promise<string> {
  const { baseImage: base = defaultCatalogBase, builderImage: builder = defaultCatalogBase } = options;
  if (base === '') throw new OpmateError('INVALID', 'base image is unset');
  if (builder === '') throw new OpmateError('INVALID', 'builder image is unset');
  if (builder === 'scratch') {
    throw new OpmateError('INVALID', 'invalid builder image: "scratch"', {
      hint: 'use scratch only as options.baseImage: the builder image runs a command',
    });
  }
  const stats = await stat(directory).catch(throwFileError(directory));
  if (!stats.isDirectory()) {
    throw new OpmateError('INVALID', `provided root path ${quoteGo(directory)} is not a directory`);
  }
  const clean = path.normalize(directory).replace(/(?<=.)\/$/, '');
  const name = path.basename(clean) === '' ? clean : path.basename(clean);
  const target = path.join(path.dirname(clean), `${name}.Dockerfile`);
  const content = catalogDockerfile({ name, base, builder, labels: options.labels ?? new Map() });
  await writeNewFile(target, content).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw writeError(target, error);
    const problem = `path ${quoteGo(target)}: file already exists`;
    throw new OpmateError('IO', problem, { hint: 'remove it first' });
  });
  return target;
}
