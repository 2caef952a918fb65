import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, systemReason } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { Image } from '../../oci/image/image.js';
import { type BuiltImage, buildImage } from '../../oci/image/image-builder.js';
import type { Platform } from '../../oci/image/types.js';
import { Report } from '../report.js';
import { type MediaType, bundleKeys } from '../../model/bundle-keys.js';
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
} from './generate.js';
import { type ListedFile, listFiles } from '../image-files.js';
import { isWithin, shownPath } from '../../core/text/paths.js';
import { type LinkOptions, requireWithin } from '../../files/directory-root.js';
import { detectMediaType } from './media-type.js';
import type { OutputFile } from '../../files/replace-file.js';
import { readFileWithin } from '../../files/read-file.js';

/** A checked bundle; incomplete if there are findings. */
export class PreparedBundle extends Report {
  /** Descriptions of inferred facts. */
  inferred: string[] = [];
  /** Files to write: copies and annotations for an output directory, with `overwrite` also the Dockerfile. */
  readonly files: OutputFile[] = [];
  readonly labels: Record<string, string> = {};
  baseImage: string;
  /** Directories of the image, without leading and trailing slash. */
  readonly layers: { target: string; inputs: TarInput[] }[] = [];
  readonly #request: BundleRequest;
  readonly #options: PrepareOptions;
  readonly #places: BundlePlaces;

  constructor(request: BundleRequest, options: PrepareOptions) {
    super();
    this.baseImage = request.baseImage ?? 'scratch';
    this.#request = request;
    this.#options = options;
    this.#places = resolvePlaces(request);
  }

  #shown(file: string): string {
    return shownPath(this.#request.workingDirectory, file);
  }

  /** Lists the files of a directory; its findings are added. */
  async #list(directory: string, except?: string): Promise<ListedFile[]> {
    const { signal, followLinks } = this.#options;
    const label = this.#shown(directory);
    const { files, findings } = await listFiles(directory, { label, signal, followLinks, except });
    this.add({ findings });
    return files;
  }

  #addLayer(target: string, files: readonly ListedFile[]): TarInput[] {
    const inputs = files.map(({ path: name, file, size }): TarInput => ({
      path: `${target}/${name}`,
      content: { file, size },
    }));
    this.layers.push({ target, inputs });
    return inputs;
  }

  async prepare(): Promise<void> {
    const { directory, workingDirectory } = this.#request;
    const { overwrite = false, signal, followLinks } = this.#options;
    const places = this.#places;
    const manifests = await this.#list(directory, outputWithin(this.#request));
    // The media type is unknown.
    if (this.findings.length > 0) return;
    const mediaType = await detectMediaType(directory, this.#options);
    const hasMetadata = (await statIfPresent(places.metadata)) !== undefined;
    const metadata = hasMetadata ? await this.#list(places.metadata) : [];
    if (this.findings.length > 0) return;
    const { content, annotations, isDeclaredPlain } = await this.#getAnnotations(mediaType);
    this.add(annotations);
    // Manifests without ClusterServiceVersion are plain only if declared so.
    const isRegistryV1 = mediaType === 'registry+v1' || (mediaType === 'plain' && !isDeclaredPlain);
    if (isRegistryV1) this.add(await checkManifests(manifests, { label: this.#shown(directory), signal }));
    if (annotations.findings.length === 0) {
      const wanted = { ...this.#request, mediaType: isRegistryV1 ? 'registry+v1' : mediaType } as const;
      this.add({ findings: checkAnnotations(annotations, wanted, this.#shown(places.annotations)) });
    }
    for (const [key, { value }] of annotations.values) this.labels[key] = value;
    const others = metadata.filter((file) => file.path !== annotationsName);
    this.add({ findings: await checkMetadata(others, { label: this.#shown(places.metadata), signal }) });
    this.#addLayer('manifests', manifests);
    this.#addLayer('metadata', others).push({ path: `metadata/${annotationsName}`, content });
    const copies = await planCopies(this.#request, { replaces: overwrite, signal, followLinks });
    this.files.unshift(...copies.files);
    const known = new Set(this.findings.map(({ file }) => file));
    this.add({ ...copies, findings: copies.findings.filter(({ file }) => !known.has(file)) });
    await this.#applyDockerfile(annotations);
    await this.#addTests();
    for (const name of ['.dockerignore', '.containerignore']) {
      if ((await statIfPresent(path.join(workingDirectory, name))) === undefined) continue;
      const message = 'is not read: all files of the directories go into the image';
      this.warn('ignored-file', message, { file: name });
    }
  }

  /** Reads the annotations, or infers those that are missing or replaced. */
  async #getAnnotations(
    mediaType: MediaType,
  ): Promise<{ content: Buffer; annotations: ReadAnnotations; isDeclaredPlain: boolean }> {
    const { overwrite = false, readsOnly = false } = this.#options;
    const target = this.#places.annotations;
    const file = this.#shown(target);
    const present = await readText(target);
    if (present !== undefined && !overwrite) {
      const annotations = readAnnotations(present, file);
      const isDeclaredPlain = annotations.values.get(bundleKeys.mediaType)?.value === 'plain';
      return { content: present, annotations, isDeclaredPlain };
    }
    if (readsOnly) {
      throw new OpmateError('NOT_FOUND', 'no such file', {
        subject: file,
        hint: 'create it with api.generateBundle',
      });
    }
    const request = present ? withFacts(this.#request, readAnnotations(present, file)) : this.#request;
    const { facts, inferred } = await completeFacts(request, mediaType, this.#options);
    this.inferred = inferred;
    const text = annotationsFile(facts);
    if (overwrite || request.outputDirectory !== undefined) this.files.push({ target, text });
    const values = new Map(toAnnotations(facts).map(([key, value]) => [key, { value, place: {} }]));
    return { content: Buffer.from(text), annotations: { values, findings: [] }, isDeclaredPlain: false };
  }

  /** Applies an existing Dockerfile, or adds one to the files to write. */
  async #applyDockerfile({ values }: ReadAnnotations): Promise<void> {
    const { overwrite = false, readsOnly = false, followLinks } = this.#options;
    const { workingDirectory, baseImage: wanted } = this.#request;
    const target = this.#places.dockerfile;
    const file = this.#shown(target);
    await requireWithin(workingDirectory, target, { label: file, followLinks });
    const existing = overwrite ? undefined : await readText(target);
    if (existing === undefined) {
      if (!overwrite || this.findings.length > 0) return;
      const text = (key: string): string => values.get(key)?.value ?? '';
      const facts = {
        mediaType: text(bundleKeys.mediaType) as 'plain',
        packageName: text(bundleKeys.package),
        channels: text(bundleKeys.channels),
        defaultChannel: text(bundleKeys.defaultChannel),
      };
      this.files.push({ target, text: dockerfileText(facts, this.#request, this.baseImage) });
      return;
    }
    const { baseImage, labels, copies, findings } = readDockerfile(existing.toString('utf8'), file);
    const manifests = copies.find((copy) => copy.target === '/manifests');
    if (readsOnly && !(manifests && (await this.#isSource(manifests, this.#places.manifests)))) {
      this.warn('other-bundle', 'describes another bundle, ignored', { file });
      return;
    }
    this.add({ findings });
    const hint = 'replace the file with options.overwrite';
    if (baseImage !== undefined && wanted !== undefined && baseImage !== wanted) {
      this.fault('base-image', `FROM ${baseImage}, but options.baseImage is ${wanted}`, { file, hint });
    }
    this.baseImage = baseImage ?? this.baseImage;
    this.#applyLabels(labels, file);
    for (const part of ['manifests', 'metadata'] as const) {
      const copy = copies.find((item) => item.target === `/${part}`);
      if (copy !== undefined && (await this.#isSource(copy, this.#places[part]))) continue;
      if (copy === undefined && findings.length > 0) continue;
      const problem =
        copy === undefined
          ? `copies nothing to /${part}/`
          : `copies ${copy.source} to /${part}/, not ${this.#shown(this.#places[part])}`;
      this.fault('dockerfile-copy', problem, { file, line: copy?.line, hint });
    }
    for (const copy of copies) {
      if (copy.target !== '/manifests' && copy.target !== '/metadata') await this.#addCopy(copy, file);
    }
  }

  #applyLabels(labels: BundleDockerfile['labels'], file: string): void {
    const own = new Map<string, string>();
    for (const { key, value, line } of labels) {
      const annotated = Object.hasOwn(this.labels, key) ? this.labels[key] : undefined;
      if (annotated === undefined) own.set(key, value);
      else if (annotated !== value) {
        const message = `LABEL ${key}=${value}: annotations.yaml has ${quoteGo(annotated)}, which takes precedence`;
        this.warn('label', message, { file, line });
      }
    }
    for (const [key, value] of own) this.labels[key] = value;
  }

  /** Reports whether a source in the build context, which is the working directory, is a directory. */
  async #isSource({ source }: Copy, directory: string): Promise<boolean> {
    const from = path.join(this.#request.workingDirectory, source);
    if (path.resolve(from) === path.resolve(directory)) return true;
    const [name, other] = await Promise.all(
      [from, directory].map((file) => realpath(file).catch(() => undefined)),
    );
    return name !== undefined && name === other;
  }

  async #addCopy({ line, source, target, isDirectory }: Copy, file: string): Promise<void> {
    const refuse = (message: string, hint?: string): void =>
      this.fault('dockerfile-copy', message, { file, line, subject: `COPY ${source}`, hint });
    if (/^\/(?:manifests|metadata)(?:\/|$)/.test(target)) {
      return refuse(`adds to ${target}`, 'move the files into the directory itself');
    }
    const { workingDirectory } = this.#request;
    const from = path.join(workingDirectory, source);
    let real: string;
    let stats;
    try {
      real = await realpath(from);
      stats = await stat(real);
    } catch (error) {
      return refuse(systemReason(error));
    }
    if (!isWithin(await realpath(workingDirectory), real))
      return refuse('leads out of the working directory');
    if (stats.isDirectory()) {
      const name = target.slice(1);
      if (name === '') return refuse('copies to the root of the image', 'move it to a separate directory');
      this.#addLayer(name, await this.#list(from));
      return;
    }
    if (!stats.isFile()) return refuse('is not a file');
    const name = (isDirectory ? path.posix.join(target, path.basename(from)) : target).replace(/^\//, '');
    const inputs = [{ path: name, content: { file: real, size: stats.size } }];
    this.layers.push({ target: name, inputs });
  }

  /** Adds the tests that an annotation names, unless COPY added them. */
  async #addTests(): Promise<void> {
    const value = this.labels[testConfigKey];
    if (value === undefined) return;
    const name = path.posix.join('/', value).replace(/\/$/, '').slice(1);
    if (name === '' || /^(?:manifests|metadata)(?:\/|$)/.test(name)) return;
    if (this.layers.some(({ target }) => target === name || name.startsWith(`${target}/`))) return;
    const directory = path.join(path.dirname(this.#request.directory), name);
    if ((await statIfPresent(directory))?.isDirectory() === true) {
      this.#addLayer(name, await this.#list(directory));
      return;
    }
    const message = `${testConfigKey} names ${quoteGo(value)}, which does not exist`;
    this.warn('missing-file', message, { file: this.#shown(this.#places.annotations) });
  }
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
  await requireDirectory(request.directory);
  const prepared = new PreparedBundle(request, options);
  await prepared.prepare();
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

/** Reads a file of at most 1 MiB; undefined if missing. */
async function readText(file: string): Promise<Buffer | undefined> {
  const content = readFileWithin(file, (size) => {
    if (size > maxTextSize) throw new LimitError(`more than ${maxTextSize} bytes`, { about: file });
  });
  if (content === undefined && (await statIfPresent(file)) !== undefined)
    throw new OpmateError('IO', 'is not a file', { about: file });
  return content;
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
