import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, fileError, systemReason } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Image } from '../../oci/image/image.js';
import { type BuiltImage, buildImage } from '../../oci/image/image-builder.js';
import type { Platform } from '../../oci/image/types.js';
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { readFileWithin } from '../read.js';
import { bundleKeys } from '../../model/bundle-keys.js';
import { annotationsFile, toAnnotations, testConfigKey } from './annotations.js';
import {
  type ReadAnnotations,
  checkAnnotations,
  checkManifests,
  checkMetadata,
  readAnnotations,
} from './check.js';
import { type BundleDockerfile, type Copy, readDockerfile } from './dockerfile.js';
import {
  type BundlePlaces,
  type BundleRequest,
  annotationsName,
  completeFacts,
  planCopies,
  dockerfileText,
  outputWithin,
  resolvePlaces,
  requireDirectory,
  shownPath,
} from './generate.js';
import { type ListedFile, listFiles } from '../image-files.js';
import { type LinkOptions, isWithin, requireWithin } from '../../files/directory-root.js';
import { detectMediaType } from './media-type.js';
import type { OutputFile } from '../../files/replace-file.js';

/** A directory of an image. */
interface BundleLayer {
  /** Without leading and trailing slash. */
  target: string;
  inputs: TarInput[];
}

/** A checked bundle; incomplete if there are findings. */
export interface PreparedBundle {
  findings: Diagnostic[];
  warnings: Diagnostic[];
  /** Descriptions of inferred facts. */
  inferred: string[];
  /** Files to write: copies and annotations for an output directory, with `overwrite` also the Dockerfile. */
  files: OutputFile[];
  labels: Record<string, string>;
  baseImage: string;
  layers: BundleLayer[];
}

export interface PrepareOptions extends CancelOptions, LinkOptions {
  /** Replaces annotations, Dockerfile and copies; keeps annotations that the request leaves empty. */
  overwrite?: boolean | undefined;
  /** Writes nothing, requires annotations, and ignores a Dockerfile of another bundle in the working directory. */
  readsOnly?: boolean | undefined;
}

const maxTextSize = 1024 * 1024;

/**
 * Reads and checks the input of a bundle image. Existing annotations must match the request, missing ones are generated;
 * an existing Dockerfile adds base image, labels and directories. Reads one manifest at a time. Throws OpmateError
 * NOT_FOUND, IO, LIMIT, and INVALID if package and channels are unknown. (Source: `opm alpha bundle build`.)
 */
export async function prepareBundle(
  request: BundleRequest,
  options: PrepareOptions = {},
): Promise<PreparedBundle> {
  const { directory, workingDirectory } = request;
  const { overwrite = false, readsOnly = false, signal, followLinks } = options;
  const shown = (file: string): string => shownPath(workingDirectory, file);
  await requireDirectory(directory);
  const places = resolvePlaces(request);
  const label = shown(directory);
  const listed = await listFiles(directory, {
    label,
    signal,
    followLinks,
    except: outputWithin(request),
  });
  const prepared: PreparedBundle = {
    findings: [...listed.findings],
    warnings: [],
    inferred: [],
    files: [],
    labels: {},
    baseImage: request.baseImage ?? 'scratch',
    layers: [],
  };
  // The media type is unknown.
  if (prepared.findings.length > 0) return prepared;
  const mediaType = await detectMediaType(directory, options);

  const metadata = await listMetadata(places, shown(places.metadata), options);
  prepared.findings.push(...metadata.findings);
  if (metadata.findings.length > 0) return prepared;

  const present = await readText(places.annotations);
  const existing = overwrite ? undefined : present;
  if (existing === undefined && readsOnly) {
    throw new OpmateError('NOT_FOUND', 'no such file', {
      subject: shown(places.annotations),
      hint: 'create it with opmate bundle generate',
    });
  }
  let annotations: ReadAnnotations;
  let content: Buffer;
  let declared: string | undefined;
  if (existing === undefined) {
    const known =
      present === undefined
        ? request
        : withFacts(request, readAnnotations(present, shown(places.annotations)));
    const { facts, inferred } = await completeFacts(known, mediaType, options);
    prepared.inferred = inferred;
    content = Buffer.from(annotationsFile(facts));
    if (overwrite || request.outputDirectory !== undefined)
      prepared.files.push({ target: places.annotations, text: content.toString() });
    const values = new Map(toAnnotations(facts).map(([key, value]) => [key, { value, line: undefined }]));
    annotations = { values, findings: [] };
  } else {
    content = existing;
    annotations = readAnnotations(content, shown(places.annotations));
    declared = annotations.values.get(bundleKeys.mediaType)?.value;
  }
  prepared.findings.push(...annotations.findings);
  // Manifests without ClusterServiceVersion are plain only if declared so.
  const isRegistryV1 = mediaType === 'registry+v1' || (mediaType === 'plain' && declared !== 'plain');
  if (isRegistryV1) {
    const checked = await checkManifests(listed.files, { label, signal });
    prepared.findings.push(...checked.findings);
    prepared.warnings.push(...checked.warnings);
  }
  if (annotations.findings.length === 0) {
    const expected = isRegistryV1 ? 'registry+v1' : mediaType;
    const file = shown(places.annotations);
    prepared.findings.push(...checkAnnotations(annotations, { ...request, mediaType: expected }, file));
  }
  for (const [key, { value }] of annotations.values) prepared.labels[key] = value;

  const others = metadata.files.filter((file) => file.path !== annotationsName);
  prepared.findings.push(...(await checkMetadata(others, { label: shown(places.metadata), signal })));
  prepared.layers.push(
    { target: 'manifests', inputs: getInputs('manifests', listed.files) },
    {
      target: 'metadata',
      inputs: [...getInputs('metadata', others), { path: `metadata/${annotationsName}`, content }],
    },
  );
  const copies = await planCopies(request, { replaces: overwrite, signal, followLinks });
  prepared.files.unshift(...copies.files);
  prepared.findings.push(
    ...copies.findings.filter((diagnostic) => !prepared.findings.some((two) => two.file === diagnostic.file)),
  );
  prepared.warnings.push(...copies.warnings);
  await applyDockerfile(prepared, request, annotations, { overwrite, readsOnly, signal, followLinks });
  await addTests(prepared, request, { signal, followLinks });
  for (const name of ['.dockerignore', '.containerignore']) {
    if ((await statIfPresent(path.join(workingDirectory, name))) === undefined) continue;
    const message = 'is not read: all files of the directories go into the image';
    prepared.warnings.push(createWarning('ignored-file', message, { file: name }));
  }
  return prepared;
}

/** Completes a request with the annotations that it replaces. */
function withFacts(request: BundleRequest, { values }: ReadAnnotations): BundleRequest {
  const text = (key: string): string => values.get(key)?.value ?? '';
  return {
    ...request,
    packageName: request.packageName || text(bundleKeys.package),
    channels: request.channels || text(bundleKeys.channels),
    // A default channel belongs to the channels of the same file.
    defaultChannel:
      request.defaultChannel || (request.channels === '' ? text(bundleKeys.defaultChannel) : ''),
  };
}

async function listMetadata(
  places: BundlePlaces,
  label: string,
  { signal, followLinks }: CancelOptions & LinkOptions,
) {
  if ((await statIfPresent(places.metadata)) === undefined) return { files: [], findings: [] };
  return listFiles(places.metadata, { label, signal, followLinks });
}

/** Reads a file of at most 1 MiB; undefined if missing. */
async function readText(file: string): Promise<Buffer | undefined> {
  const content = await readFileWithin(file, (size) => {
    if (size > maxTextSize) throw new LimitError(`more than ${maxTextSize} bytes`, { subject: file, file });
  }).catch((error: unknown) => {
    throw fileError(file, error, { file });
  });
  if (content === undefined && (await statIfPresent(file)) !== undefined)
    throw new OpmateError('IO', 'is not a file', { subject: file, file });
  return content;
}

function getInputs(target: string, files: readonly ListedFile[]): TarInput[] {
  return files.map(({ path: name, file, size }) => ({
    path: `${target}/${name}`,
    content: { file, size },
  }));
}

/** Applies an existing Dockerfile, or adds one to the files to write. */
async function applyDockerfile(
  prepared: PreparedBundle,
  request: BundleRequest,
  annotations: ReadAnnotations,
  { overwrite, readsOnly, signal, followLinks }: PrepareOptions,
): Promise<void> {
  const places = resolvePlaces(request);
  await requireWithin(request.workingDirectory, places.dockerfile, {
    label: shownPath(request.workingDirectory, places.dockerfile),
    followLinks,
  });
  const existing = overwrite === true ? undefined : await readText(places.dockerfile);
  if (existing === undefined) {
    if (overwrite !== true || prepared.findings.length > 0) return;
    const text = (key: string): string => annotations.values.get(key)?.value ?? '';
    const facts = {
      mediaType: text(bundleKeys.mediaType) as 'plain',
      packageName: text(bundleKeys.package),
      channels: text(bundleKeys.channels),
      defaultChannel: text(bundleKeys.defaultChannel),
    };
    const content = dockerfileText(facts, request, prepared.baseImage);
    prepared.files.push({ target: places.dockerfile, text: content });
    return;
  }
  const file = shownPath(request.workingDirectory, places.dockerfile);
  const dockerfile = readDockerfile(existing.toString('utf8'), file);
  const manifests = dockerfile.copies.find(({ target }) => target === '/manifests');
  if (readsOnly === true && !(manifests && (await isSource(request, manifests, places.manifests)))) {
    prepared.warnings.push(createWarning('other-bundle', 'describes another bundle, ignored', { file }));
    return;
  }
  prepared.findings.push(...dockerfile.findings);
  const { baseImage } = dockerfile;
  if (baseImage !== undefined && request.baseImage !== undefined && baseImage !== request.baseImage) {
    prepared.findings.push(
      createFault('base-image', `FROM ${baseImage}, but --base-image is ${request.baseImage}`, {
        file,
        hint: 'replace the file with --overwrite',
      }),
    );
  }
  prepared.baseImage = baseImage ?? prepared.baseImage;
  applyLabels(prepared, dockerfile, file);
  for (const part of ['manifests', 'metadata'] as const) {
    const copy = dockerfile.copies.find(({ target }) => target === `/${part}`);
    const expected = shownPath(request.workingDirectory, places[part]);
    if (copy !== undefined && (await isSource(request, copy, places[part]))) continue;
    if (copy === undefined && dockerfile.findings.length > 0) continue;
    prepared.findings.push(
      createFault(
        'dockerfile-copy',
        copy === undefined
          ? `copies nothing to /${part}/`
          : `copies ${copy.source} to /${part}/, not ${expected}`,
        { file, line: copy?.line, hint: 'replace the file with --overwrite' },
      ),
    );
  }
  for (const copy of dockerfile.copies) {
    if (copy.target !== '/manifests' && copy.target !== '/metadata')
      await addCopy(prepared, request, copy, file, { signal, followLinks });
  }
}

function applyLabels(prepared: PreparedBundle, { labels }: BundleDockerfile, file: string): void {
  const own = new Map<string, string>();
  for (const { key, value, line } of labels) {
    const annotated = Object.hasOwn(prepared.labels, key) ? prepared.labels[key] : undefined;
    if (annotated === undefined) own.set(key, value);
    else if (annotated !== value) {
      const message = `LABEL ${key}=${value}: annotations.yaml has ${quoteGo(annotated)}, which takes precedence`;
      prepared.warnings.push(createWarning('label', message, { file, line }));
    }
  }
  for (const [key, value] of own) prepared.labels[key] = value;
}

/** Returns the path of a source in the build context, which is the working directory. */
function getSource({ workingDirectory }: BundleRequest, { source }: Copy): string {
  return path.join(workingDirectory, source);
}

async function isSource(request: BundleRequest, copy: Copy, directory: string): Promise<boolean> {
  const source = getSource(request, copy);
  if (path.resolve(source) === path.resolve(directory)) return true;
  const [name, other] = await Promise.all(
    [source, directory].map((file) => realpath(file).catch(() => undefined)),
  );
  return name !== undefined && name === other;
}

async function addCopy(
  prepared: PreparedBundle,
  request: BundleRequest,
  copy: Copy,
  file: string,
  { signal, followLinks }: CancelOptions & LinkOptions,
): Promise<void> {
  const { line, source, target, isDirectory } = copy;
  const refuse = (message: string, hint?: string): void =>
    void prepared.findings.push(
      createFault('dockerfile-copy', message, { file, line, subject: `COPY ${source}`, hint }),
    );
  if (/^\/(?:manifests|metadata)(?:\/|$)/.test(target)) {
    return refuse(`adds to ${target}`, 'move the files into the directory itself');
  }
  const from = getSource(request, copy);
  let real: string;
  let stats;
  try {
    real = await realpath(from);
    stats = await stat(real);
  } catch (error) {
    return refuse(systemReason(error));
  }
  if (!isWithin(await realpath(request.workingDirectory), real))
    return refuse('leads out of the working directory');
  if (stats.isDirectory()) {
    const name = target.slice(1);
    if (name === '') return refuse('copies to the root of the image', 'move it to a separate directory');
    const label = shownPath(request.workingDirectory, from);
    const { files, findings } = await listFiles(from, { label, signal, followLinks });
    prepared.findings.push(...findings);
    prepared.layers.push({ target: name, inputs: getInputs(name, files) });
    return;
  }
  if (!stats.isFile()) return refuse('is not a file');
  const name = (isDirectory ? path.posix.join(target, path.basename(from)) : target).replace(/^\//, '');
  if (name === '') return refuse('copies a file to /');
  prepared.layers.push({
    target: name,
    inputs: [{ path: name, content: { file: real, size: stats.size } }],
  });
}

/** Adds the tests that an annotation names, unless COPY added them. */
async function addTests(
  prepared: PreparedBundle,
  request: BundleRequest,
  { signal, followLinks }: CancelOptions & LinkOptions,
): Promise<void> {
  const value = prepared.labels[testConfigKey];
  if (value === undefined) return;
  const name = path.posix.join('/', value).replace(/\/$/, '').slice(1);
  if (name === '' || /^(?:manifests|metadata)(?:\/|$)/.test(name)) return;
  if (prepared.layers.some(({ target }) => target === name || name.startsWith(`${target}/`))) return;
  const directory = path.join(path.dirname(request.directory), name);
  const stats = await statIfPresent(directory);
  if (stats?.isDirectory() !== true) {
    const message = `${testConfigKey} names ${quoteGo(value)}, which does not exist`;
    prepared.warnings.push(
      createWarning('missing-file', message, {
        file: shownPath(request.workingDirectory, resolvePlaces(request).annotations),
      }),
    );
    return;
  }
  const label = shownPath(request.workingDirectory, directory);
  const { files, findings } = await listFiles(directory, { label, signal, followLinks });
  prepared.findings.push(...findings);
  prepared.layers.push({ target: name, inputs: getInputs(name, files) });
}

interface BuildBundleOptions extends CancelOptions {
  /** Base images, one per platform; may be empty. */
  bases: readonly Image[];
  /** Platform of an image without base; linux/amd64 by default. */
  platform?: Platform | undefined;
  /** Directory for layers until the images are stored; the caller removes it. */
  directory: string;
}

/**
 * Builds the images of a bundle, one per base, with a layer per directory and the labels. Images are reproducible,
 * independent of times and modes of files. Streams contents. Throws OpmateError INVALID for a file that changes while
 * it is read, and errors of building an image.
 */
export async function buildBundleImages(
  { layers: planned, labels }: PreparedBundle,
  options: BuildBundleOptions,
): Promise<BuiltImage[]> {
  const { bases, platform, directory, signal } = options;
  const layers: LayerFile[] = [];
  for (const [index, { inputs }] of planned.entries())
    layers.push(await writeLayer(path.join(directory, `layer-${index}.tar.gz`), inputs, { signal }));
  if (bases.length === 0) return [await buildImage({ layers, labels, platform })];
  return Promise.all(bases.map((base) => buildImage({ layers, labels, base })));
}
