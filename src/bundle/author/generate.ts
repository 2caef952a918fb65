import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, getMessage, systemCode, ifFound } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type Diagnostic, createWarning } from '../../core/diagnostic.js';
import { Report } from '../report.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import {
  type AnnotationValues,
  annotationsFile,
  toAnnotations,
  bundleDockerfile,
  isPlainLabel,
} from './annotations.js';
import { inferFacts } from './infer.js';
import { type ListedFile, listFiles } from '../image-files.js';
import { shownPath } from '../../core/text/paths.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { detectMediaType } from './media-type.js';
import type { OutputFile } from '../../files/replace-file.js';
import { digestPieces } from '../../core/digest.js';

/** Input of a bundle; all paths are absolute. */
export interface BundleRequest {
  /** Directory of the manifests. */
  directory: string;
  /** Target of manifests and metadata; by default metadata is written beside `directory`. */
  outputDirectory?: string | undefined;
  /** Inferred from files beside `directory` if empty, like the channels. */
  packageName: string;
  channels: string;
  defaultChannel: string;
  /** `scratch` by default. */
  baseImage?: string | undefined;
  /** Directory of the Dockerfile, and base of relative paths in it and in messages. */
  workingDirectory: string;
}

/** Paths of the parts of a bundle. */
export interface BundlePlaces {
  manifests: string;
  metadata: string;
  annotations: string;
  dockerfile: string;
}

export const annotationsName = 'annotations.yaml';
const dockerfileName = 'bundle.Dockerfile';

/** Returns the paths of the parts of a bundle. */
export function resolvePlaces({ directory, outputDirectory, workingDirectory }: BundleRequest): BundlePlaces {
  const parent = outputDirectory ?? path.dirname(directory);
  const metadata = path.join(parent, 'metadata');
  return {
    manifests: outputDirectory === undefined ? directory : path.join(outputDirectory, 'manifests'),
    metadata,
    annotations: path.join(metadata, annotationsName),
    dockerfile: path.join(workingDirectory, dockerfileName),
  };
}

/** Throws OpmateError NOT_FOUND unless the path exists. */
export async function requireDirectory(directory: string): Promise<void> {
  try {
    await stat(directory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw fileError(directory, error, { file: directory });
  }
}

/**
 * Returns the facts of a request, and infers missing ones from the files beside the bundle. `inferred` describes these.
 * Throws OpmateError INVALID if they cannot be inferred.
 */
export async function completeFacts(
  request: BundleRequest,
  mediaType: AnnotationValues['mediaType'],
  options: CancelOptions & LinkOptions = {},
): Promise<{ facts: AnnotationValues; inferred: string[] }> {
  const { directory } = request;
  let { packageName, channels, defaultChannel } = request;
  const inferred: string[] = [];
  if (channels === '' || packageName === '') {
    const missing = [
      ...(packageName === '' ? [{ noun: 'package', option: 'options.packageName' }] : []),
      ...(channels === '' ? [{ noun: 'channel', option: 'options.channels' }] : []),
    ];
    const needed = missing.map(({ noun }) => noun);
    const hint = `add ${missing.map(({ option }) => option).join(' and ')}`;
    const facts = await inferFacts(directory, options).catch((error: unknown) => {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      throw new OpmateError(
        'INVALID',
        `missing ${needed.join(' and ')}, which cannot be inferred: ${getMessage(error)}`,
        { subject: directory, hint, cause: error },
      );
    });
    if (channels === '') {
      channels = facts.channels.join(',');
      if (channels === '') {
        throw new OpmateError(
          'INVALID',
          'error interpreting channels, please manually input channels instead',
          { hint: 'set options.channels: no channel of the package contains this bundle' },
        );
      }
      inferred.push(`channels: ${channels}`);
    }
    if (packageName === '') {
      ({ packageName } = facts);
      inferred.push(`package: ${packageName}`);
    }
    if (defaultChannel === '') {
      ({ defaultChannel } = facts);
      if (defaultChannel !== '') inferred.push(`default channel: ${defaultChannel}`);
    }
  }
  return { facts: { mediaType, packageName, channels, defaultChannel }, inferred };
}

/** Returns the part of the output that is not input if it is below the directory of the manifests. */
export function outputWithin(request: BundleRequest): string | undefined {
  const { directory, outputDirectory } = request;
  return outputDirectory === directory ? resolvePlaces(request).manifests : outputDirectory;
}

/**
 * Generates `annotations.yaml` and `bundle.Dockerfile` for a directory of manifests, with the bytes of `opm alpha bundle
 * generate`, and with an output directory copies of the manifests. Writes nothing yet. Throws OpmateError NOT_FOUND, IO,
 * INVALID.
 */
export async function generateBundleFiles(
  request: BundleRequest,
  options: CancelOptions & LinkOptions = {},
): Promise<{ files: OutputFile[]; facts: AnnotationValues; inferred: string[]; warnings: Diagnostic[] }> {
  const { directory, baseImage = 'scratch' } = request;
  await requireDirectory(directory);
  const mediaType = await detectMediaType(directory, options);
  const { facts, inferred } = await completeFacts(request, mediaType, options);
  const places = resolvePlaces(request);
  const copied = await planCopies(request, { ...options, replaces: true });
  if (copied.findings.length > 0) throw new DiagnosticsError(copied.findings, { code: 'INVALID' });
  return {
    facts,
    inferred,
    warnings: [...copied.warnings, ...labelWarnings(facts)],
    files: [
      ...copied.files,
      { target: places.annotations, text: annotationsFile(facts) },
      { target: places.dockerfile, text: dockerfileText(facts, request, baseImage) },
    ],
  };
}

/** Returns the text of the Dockerfile of a request. Throws OpmateError INVALID. */
export function dockerfileText(facts: AnnotationValues, request: BundleRequest, baseImage: string): string {
  const { manifests, metadata } = resolvePlaces(request);
  const relative = (directory: string): string =>
    (path.relative(request.workingDirectory, directory) || '.').split(path.sep).join('/');
  return bundleDockerfile(facts, { baseImage, manifests: relative(manifests), metadata: relative(metadata) });
}

function labelWarnings(facts: AnnotationValues): Diagnostic[] {
  return toAnnotations(facts)
    .filter(([, value]) => !isPlainLabel(value))
    .map(([key, value]) =>
      createWarning('label', 'interpreted differently by container engines', {
        file: dockerfileName,
        subject: `LABEL ${key}=${value}`,
        hint: 'use a name without spaces, quotes, backslashes and dollar signs',
      }),
    );
}

/**
 * Returns the copies of manifests for an output directory. Unless `replaces`, an existing file with different content is
 * a finding.
 */
export async function planCopies(
  request: BundleRequest,
  { replaces, ...options }: CancelOptions & LinkOptions & { replaces: boolean },
): Promise<Pick<Report, 'findings' | 'warnings'> & { files: OutputFile[] }> {
  const { directory, outputDirectory, workingDirectory } = request;
  const { manifests } = resolvePlaces(request);
  const report = new Report();
  if (outputDirectory === undefined || manifests === directory) return { ...report, files: [] };
  const shown = (file: string): string => shownPath(workingDirectory, file);
  const except = outputWithin(request);
  const { files, findings } = await listFiles(directory, { ...options, label: shown(directory), except });
  report.add({ findings });
  const existing = await ifFound(listFiles(manifests, { ...options, label: shown(manifests) }));
  const sources = new Map(files.map((file) => [file.path, file]));
  for (const target of existing?.files ?? []) {
    const place = { file: shown(path.join(manifests, target.path)) };
    const source = sources.get(target.path);
    if (source === undefined) {
      report.warn('unknown-file', `is not in ${quoteGo(shown(directory))}, and stays`, {
        ...place,
        hint: 'remove it if it is not part of the bundle',
      });
    } else if (!replaces && !(await haveSameContent(target, source))) {
      const problem = `differs from ${shown(path.join(directory, target.path))}`;
      report.fault('file-exists', problem, { ...place, hint: 'replace it with options.overwrite' });
    }
  }
  const copies = files.map(({ path: name, file, mode }) => ({
    target: path.join(manifests, name),
    copyOf: file,
    mode,
  }));
  return { ...report, files: copies };
}

async function haveSameContent(a: ListedFile, b: ListedFile): Promise<boolean> {
  if (a.size !== b.size) return false;
  const [digest, other] = [
    await digestPieces(createReadStream(a.file)),
    await digestPieces(createReadStream(b.file)),
  ];
  return digest === other;
}
