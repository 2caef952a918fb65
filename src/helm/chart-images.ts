import { combineErrors, inContext } from '../core/diagnostics-error.js';
import { findReference } from '../core/reference.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { parseYaml } from '../document/yaml.js';
import { getObjects, getValue } from '../document/json-fields.js';
import { type Chart } from './chart.js';
import { type EnabledChart, prepareChart } from './chart-values.js';
import type { JsonPath } from './json-path.js';
import { type FaultyTemplate, type RenderChartOptions, renderChart } from './render-chart.js';
import { printValue, toJsonValue } from './template/go-values.js';
import { checkValues } from './values-schema.js';

/** An image required by a chart. */
interface ChartImage {
  /** Reference as the chart writes it, with a tag or digest. */
  text: string;
  /** File of the reference, from the root of the chart. */
  file: string;
  /** Read from a template or values that could not be rendered, and possibly not required. */
  isGuess: boolean;
}

export interface ChartImages {
  images: ChartImage[];
  /** One sentence each, with chart and file. */
  warnings: string[];
}

interface FindImagesOptions extends RenderChartOptions {
  paths?: readonly JsonPath[] | undefined;
  /** Values that take precedence over the defaults of the chart; default none. */
  values?: JsonObject | undefined;
}

/** Maximum documents of one chart. */
const maxDocuments = 50_000;
/** Maximum warnings of one kind that are listed. */
const maxNamed = 20;

/**
 * Renders a chart with its default values and `values`, and returns the images of all pods in its manifests: of workloads,
 * CronJobs, hooks, tests and lists of them, in init and ephemeral containers and image volumes, and at `paths`. The
 * images of templates that cannot be evaluated are read from their text and the values, and marked. `label` is the
 * name of the chart in messages.
 *
 * Throws OpmateError for a chart that Helm rejects too: values that violate its schema, a template that does
 * not parse, calls `fail` or `required`, or renders invalid YAML.
 */
export async function findChartImages(
  chart: Chart,
  label: string,
  options: FindImagesOptions = {},
): Promise<ChartImages> {
  const collection = createImageCollection(label, options.paths ?? []);
  const prepared = inContext({ subject: `${label}: values` }, () => prepareChart(chart, options.values));
  for (const { chart: of, name } of prepared.absent)
    collection.warn(
      `chart ${quoteGo(of)}: dependency ${quoteGo(name)} is missing in charts/: its images are not mirrored`,
    );
  const { faults, unchecked } = await checkValues(prepared, options);
  if (faults.length > 0)
    throw combineErrors(
      faults.map((fault) => new OpmateError('INVALID', `${label}: ${fault}`, { hint: refusedHint })),
    );
  for (const sentence of unchecked) collection.warn(sentence);
  const { files, faulty } = renderChart(prepared, options);
  for (const { path, text, fault } of faulty) {
    if (fault.kind !== 'syntax' && fault.kind !== 'refused') continue;
    // The line is meaningful with its template only.
    const place = `${fault.template ?? path}:${fault.line ?? 1}`;
    const hint = text !== '' && fault.kind === 'refused' ? refusedHint : undefined;
    throw new OpmateError('INVALID', `${label}: ${place}: ${fault.message}`, { hint });
  }
  for (const { path, text } of getDefinitions(prepared.root, prepared.root.name))
    collection.addFile(path, text);
  for (const { path, text } of files) collection.addFile(path, text);
  if (faulty.length > 0) guessImages(prepared.root, toJsonValue(prepared.values), faulty, collection);
  return collection.finish();
}

const refusedHint =
  'set values of the chart that it can be rendered with, or list its images in additionalImages';

function getDefinitions({ chart, charts }: EnabledChart, prefix: string): { path: string; text: string }[] {
  return [
    ...[...chart.crds].map(([path, text]) => ({ path: `${prefix}/${path}`, text })),
    ...charts.flatMap((enabledChart) =>
      getDefinitions(enabledChart, `${prefix}/charts/${enabledChart.name}`),
    ),
  ];
}

type ImageCollection = ReturnType<typeof createImageCollection>;

function createImageCollection(label: string, paths: readonly JsonPath[]) {
  const images = new Map<string, ChartImage>();
  /** Files by text that is no image reference with a tag or digest, or that no pod uses. */
  const untagged = new Map<string, string>();
  const elsewhere = new Map<string, string>();
  const warnings: string[] = [];
  let documents = 0;
  const warn = (sentence: string): void => void warnings.push(`${label}: ${sentence}`);

  const add = (text: string, file: string, isGuess: boolean): void => {
    const known = images.get(text);
    if (known !== undefined) known.isGuess &&= isGuess;
    else if (isTagged(text)) images.set(text, { text, file, isGuess });
    else if (text.trim() !== '') untagged.set(text, file);
  };

  /** Adds the images of a file with any number of documents. Throws OpmateError for invalid YAML. */
  const addFile = (path: string, content: string): void => {
    for (const part of splitDocuments(content)) {
      if (++documents > maxDocuments)
        throw new OpmateError('LIMIT', `${label}: more than ${maxDocuments} documents`);
      const value = inContext({ subject: `${label}: ${path}` }, () => parseYaml(part));
      for (const text of podImages(value, 0)) add(text, path, false);
      for (const jsonPath of paths) {
        // Results are separated by blanks, as kubectl prints them.
        for (const text of jsonPath.find(value).join(' ').split(' '))
          if (isTagged(text)) add(text, path, false);
      }
      for (const text of imageFields(value, 0)) if (isTagged(text)) elsewhere.set(text, path);
    }
  };

  const warnAbout = (files: ReadonlyMap<string, string>, problem: string, advice = ''): void => {
    if (files.size === 0) return;
    const shown = [...files].slice(0, maxNamed).map(([text, file]) => `${quoteGo(text)} (${file})`);
    if (files.size > maxNamed) shown.push(`and ${files.size - maxNamed} more`);
    warn(`not mirrored, ${problem}: ${shown.join(', ')}${advice}`);
  };

  /** Removes guesses from the values for images that were rendered from these with their registry. */
  const dropGuesses = (): void => {
    const rendered = [...images.values()].filter(({ isGuess }) => !isGuess);
    const names = new Set(rendered.flatMap(({ text }) => listPathsBelow(text)));
    for (const { text, file, isGuess } of images.values())
      if (isGuess && file.endsWith('/values.yaml') && names.has(toPathText(text))) images.delete(text);
  };

  const finish = (): ChartImages => {
    dropGuesses();
    for (const text of images.keys()) elsewhere.delete(text);
    warnAbout(untagged, 'no tag or digest');
    warnAbout(elsewhere, 'used by no pod', '; add imagePaths for required ones');
    return { images: [...images.values()], warnings };
  };

  for (const { text, hasPaths } of paths)
    if (!hasPaths) warn(`imagePaths: ${quoteGo(text)} has no braces and selects nothing`);
  return { warn, add, addFile, finish };
}

/** Splits at lines of `---`, as Helm does. */
function splitDocuments(text: string): string[] {
  return text.split(/(?:^|\n)---[^\S\n]*(?=\n|$|[^\s-])/).filter((part) => part.trim() !== '');
}

/** Reports whether text is an image reference with a tag or digest. */
function isTagged(text: string): boolean {
  if (text === '' || text.length > 500) return false;
  const reference = findReference(text);
  return reference?.transport === 'docker' && (reference.tag ?? reference.digest) !== undefined;
}

/** Returns a reference without its registry, if it names one. */
function toPathText(text: string): string {
  const reference = findReference(text);
  const prefix = reference?.transport === 'docker' ? `${reference.registry}/` : '';
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}

/** Returns the texts that values may have for an image: its path and tag, and each end of the path. */
function listPathsBelow(text: string): string[] {
  const parts = toPathText(text).split('/');
  return parts.map((_, i) => parts.slice(i).join('/'));
}

const maxListDepth = 10;
const containerKeys = ['initContainers', 'containers', 'ephemeralContainers'];

/** Returns the images of an object that is or creates pods, and of the items of a list. */
function podImages(value: JsonValue | undefined, depth: number): string[] {
  if (!isJsonObject(value) || depth > maxListDepth) return [];
  const items = Array.isArray(value['items'])
    ? value['items'].flatMap((item) => podImages(item, depth + 1))
    : [];
  const specs = [
    getValue(value, 'spec'),
    getValue(value, 'spec', 'template', 'spec'),
    getValue(value, 'spec', 'jobTemplate', 'spec', 'template', 'spec'),
    getValue(value, 'template', 'spec'),
  ];
  return [...specs.filter(isJsonObject).flatMap(containerImages), ...items];
}

function containerImages(spec: JsonObject): string[] {
  const containers = containerKeys.flatMap((key) => getObjects(spec, key).map((value) => value['image']));
  const volumes = getObjects(spec, 'volumes').map(({ image }) => getValue(image, 'reference'));
  return [...containers, ...volumes].filter((image) => typeof image === 'string');
}

const maxDepth = 200;

/** Returns the values of keys that end in `image`, at any depth. */
function imageFields(value: JsonValue, depth: number): string[] {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return [];
  if (Array.isArray(value)) return value.flatMap((item) => imageFields(item, depth + 1));
  return Object.entries(value).flatMap(([key, item]) =>
    typeof item === 'string' ? (/image$/i.test(key) ? [item] : []) : imageFields(item, depth + 1),
  );
}

/** A template line with an image. */
const imageLine = /^[ \t]*(?:-[ \t]+)?["']?[\w.-]*image["']?[ \t]*:[ \t]*(.+?)[ \t]*$/gim;

/** Reads images from the text of templates that were not rendered, and from the values. */
function guessImages(
  root: EnabledChart,
  values: JsonValue,
  faulty: readonly FaultyTemplate[],
  collection: ImageCollection,
): void {
  for (const { path, text, fault, evaluate } of faulty) {
    const place = `${fault.template ?? path}:${fault.line ?? 1}`;
    const of = fault.template === undefined || fault.template === path ? '' : `${path}: `;
    collection.warn(
      `${of}${place}: not evaluated: ${fault.message}; check its images, which are read from its text and the values`,
    );
    for (const [, written = ''] of text.matchAll(imageLine)) {
      const made = written.includes('{{') ? evaluate(written) : written;
      if (made !== undefined) collection.add(withoutQuotes(made), path, true);
    }
  }
  for (const { text, file } of valueImages(values, root))
    if (isTagged(text)) collection.add(text, file, true);
}

function withoutQuotes(text: string): string {
  const plain = text.replace(/[ \t]+#.*$/, '').trim();
  return /^(["']).*\1$/.test(plain) ? plain.slice(1, -1) : plain;
}

/** Returns the images in values: `image` keys, and repository, tag and digest in one object. */
function valueImages(values: JsonValue, root: EnabledChart): ChartImage[] {
  const file = `${root.name}/values.yaml`;
  const appVersion = root.chart.metadata['appVersion'];
  const fallback = typeof appVersion === 'string' ? appVersion : root.chart.version;
  const images: ChartImage[] = imageFields(values, 0).map((text) => ({ text, file, isGuess: true }));
  const walk = (value: JsonValue, depth: number): void => {
    if (typeof value !== 'object' || value === null || depth > maxDepth) return;
    if (Array.isArray(value)) {
      for (const item of value) walk(item, depth + 1);
      return;
    }
    const part = (...keys: string[]): string => {
      const entry = keys
        .map((key) => value[key])
        .find((item) => item !== undefined && item !== null && item !== '');
      return typeof entry === 'string' || typeof entry === 'number' ? printValue(entry) : '';
    };
    const [registry, repository] = [part('registry'), part('repository', 'name', 'image')];
    const isImage = repository !== '' && (Object.hasOwn(value, 'repository') || registry !== '');
    if (isImage) {
      const [tag, digest] = [part('tag', 'version') || fallback, part('digest', 'sha')];
      const name = registry === '' ? repository : `${registry}/${repository}`;
      const pin = digest === '' ? '' : `@${digest.includes(':') ? digest : `sha256:${digest}`}`;
      images.push({ text: `${name}:${tag}${pin}`, file, isGuess: true });
    }
    for (const item of Object.values(value)) walk(item, depth + 1);
  };
  walk(values, 0);
  return images;
}
