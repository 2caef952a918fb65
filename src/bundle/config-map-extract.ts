import { diagnoseSyntax } from '../document/document.js';
import { isUtf8 } from 'node:buffer';
import { gzipBytes } from '../archive/tar-writer.js';
import type { CancelOptions } from '../core/concurrency.js';
import { throwIfCancelled } from '../core/errors.js';
import { describeKind } from '../document/field.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, setJsonKey } from '../document/json.js';
import {
  bundleAnnotations,
  gzipEncoding,
  isConfigMapKey,
  storageAnnotations,
  looksLikeMetadata,
} from './config-map.js';
import { getLastField, readMetadataFiles, scalarText } from './metadata.js';
import { labelFault, maxAnnotationBytes, subdomainFault } from '../kube/names.js';
import { type Diagnostic, createFault } from '../core/diagnostic.js';
import type { BundleFiles } from './read.js';
import { Report } from './report.js';

/** Maximum bytes of the values of a ConfigMap, without keys. (Source: Kubernetes' MaxSecretSize.) */
export const maxConfigMapData = 1024 * 1024;

export interface ExtractOptions extends CancelOptions {
  name: string;
  namespace: string;
  /** Maximum bytes of values in one ConfigMap; 1 MiB by default. */
  limit?: number | undefined;
  gzip?: boolean | undefined;
  /** Splits a bundle that exceeds the limit into ConfigMaps `NAME-1`, `NAME-2` … */
  split?: boolean | undefined;
  /** Image from which the bundle was read. */
  sourceImage?: string | undefined;
}

/** A ConfigMap that is built when it is written, as all of them together may exceed memory. */
export interface ExtractedConfigMap {
  name: string;
  load(): JsonObject;
}

/** A file of the bundle as a value. */
interface Entry {
  file: string;
  key: string;
  part: 'manifests' | 'metadata';
  field: 'data' | 'binaryData';
  /** Value; its length counts toward the limit. */
  value: Buffer;
  /** Reading it again would assign it to the other part. */
  isMistaken: boolean;
}

/**
 * Puts the files of a bundle into a ConfigMap, as `opm alpha bundle extract` does: keys are file names of
 * `manifests/` and `metadata/` with `-` in place of invalid characters, `annotations.yaml` becomes annotations, and
 * with `gzip` values are base64 of gzip in binaryData. Unlike opm, ConfigMaps are immutable, two files with the same
 * key are a finding, other than UTF-8 goes to binaryData unchanged, and a bundle over the limit can be split.
 * `readBundleConfigMaps` reads them back. The result is reproducible.
 */
export async function extractConfigMaps(
  files: BundleFiles,
  options: ExtractOptions,
): Promise<Pick<Report, 'findings' | 'warnings'> & { configMaps: ExtractedConfigMap[] }> {
  const report = new Report();
  const { findings } = report;
  const { gzip = false, limit = maxConfigMapData, split = false, sourceImage } = options;
  checkName(subdomainFault(options.name), `ConfigMap ${quoteGo(options.name)}`, report);
  checkName(labelFault(options.namespace), `namespace ${quoteGo(options.namespace)}`, report);
  for (const folder of files.folders ?? []) {
    report.fault('directory', 'is a directory', {
      file: `manifests/${folder}`,
      hint: 'move the manifests up, or remove the directory: a ConfigMap has no directories',
    });
  }
  const annotations = getBundleAnnotations(files, report);
  if (sourceImage !== undefined) annotations[storageAnnotations.sourceImage] = sourceImage;
  if (gzip) annotations[storageAnnotations.encoding] = gzipEncoding;
  const annotationSize = Buffer.byteLength(Object.entries(annotations).flat().join(''));
  if (annotationSize > maxAnnotationBytes) {
    const problem = `${annotationSize} bytes of annotations, over the limit of ${maxAnnotationBytes}`;
    report.fault('limit', problem, { file: annotationsFile });
  }
  const entries = await readEntries(files, gzip, options, report);
  const isLarge = getSize(entries) > limit;
  if (isLarge && !split) findings.push(await describeExcess(files, entries, limit, gzip, options));
  for (const { file, value } of isLarge && split ? entries : []) {
    if (value.length <= limit) continue;
    const hint = gzip ? noSplitHint : 'compress the files with options.gzip';
    const problem = `${value.length} bytes, over the limit of ${limit} bytes for a ConfigMap`;
    report.fault('limit', problem, { file, hint });
  }
  if (findings.length > 0) return { ...report, configMaps: [] };
  const parts = isLarge ? getParts(entries, limit) : [entries];
  const names = parts.length === 1 ? [options.name] : parts.map((_, index) => `${options.name}-${index + 1}`);
  const longest = names.at(-1) as string;
  checkName(subdomainFault(longest), `ConfigMap ${quoteGo(longest)}`, report);
  if (findings.length > 0) return { ...report, configMaps: [] };
  if (parts.length > 1) annotations[storageAnnotations.parts] = names.join(',');
  const configMaps = parts.map((part, index) => {
    const name = names[index] as string;
    return { name, load: () => getConfigMap(name, options.namespace, annotations, part) };
  });
  return { ...report, configMaps };
}

const noSplitHint = 'reduce the size of the file: a file cannot be split';

function checkName(fault: string | undefined, subject: string, report: Report): void {
  if (fault !== undefined) report.fault('invalid-name', fault, { subject });
}

function getSize(entries: readonly Entry[]): number {
  return entries.reduce((sum, { value }) => sum + value.length, 0);
}

function getConfigMap(
  name: string,
  namespace: string,
  annotations: Readonly<Record<string, string>>,
  entries: readonly Entry[],
): JsonObject {
  const values: Record<Entry['field'], JsonObject> = { data: {}, binaryData: {} };
  for (const { field, key, value } of entries) {
    setJsonKey(values[field], key, value.toString(field === 'data' ? 'utf8' : 'base64'));
  }
  const own: JsonObject = { ...annotations };
  if (entries.some(({ isMistaken }) => isMistaken)) {
    const keys = entries.filter(({ part }) => part === 'metadata').map(({ key }) => key);
    own[storageAnnotations.metadataKeys] = keys.join(',');
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, ...(Object.keys(own).length > 0 && { annotations: own }) },
    immutable: true,
    ...(Object.keys(values.data).length > 0 && { data: values.data }),
    ...(Object.keys(values.binaryData).length > 0 && { binaryData: values.binaryData }),
  };
}

const annotationsName = 'annotations.yaml';
const annotationsFile = `metadata/${annotationsName}`;

/** Returns every annotation of a bundle, empty if `annotations.yaml` lacks it; none without that file. */
function getBundleAnnotations(files: BundleFiles, report: Report): Record<string, string> {
  const [read] = readMetadataFiles(files.metadata.filter(({ name }) => name === annotationsName));
  if (read?.error !== undefined) report.findings.push(diagnoseSyntax(read.error, annotationsFile));
  if (read === undefined || read.error !== undefined) return {};
  const annotations: Record<string, string> = {};
  for (const key of bundleAnnotations) {
    const value = getLastField(read.annotations ?? {}, key);
    const text = scalarText(value);
    if (text !== undefined) annotations[key] = text;
    else {
      const problem = `expected a string, got ${describeKind(value)}`;
      report.fault('wrong-type', problem, { subject: key, file: annotationsFile });
    }
  }
  return annotations;
}

async function readEntries(
  files: BundleFiles,
  gzip: boolean,
  { signal }: CancelOptions,
  report: Report,
): Promise<Entry[]> {
  const entries = new Map<string, Entry>();
  for (const part of ['manifests', 'metadata'] as const) {
    for (const { name, content } of files[part]) {
      throwIfCancelled(signal);
      const file = `${part}/${name}`;
      if (file === annotationsFile) continue;
      const key = name.replace(/[^-A-Za-z0-9_.]/gu, '-');
      const other = entries.get(key);
      if (!isConfigMapKey(key)) {
        report.fault('invalid-name', `${quoteGo(key)} is not a valid ConfigMap key`, { file });
        continue;
      }
      if (other !== undefined) {
        const problem = `becomes the key ${quoteGo(key)} of the ConfigMap, as ${other.file} does`;
        report.fault('duplicate-key', problem, { file, hint: 'rename one of the two files' });
        continue;
      }
      const isBinary = !isUtf8(content);
      if (!gzip && isBinary) {
        const problem = 'not UTF-8, and so in binaryData, where OLM does not look for it';
        report.warn('binary-file', problem, { file });
      }
      const field = gzip || isBinary ? 'binaryData' : 'data';
      // Compressed values are base64 already, and are encoded again in a document.
      const value = gzip ? Buffer.from((await gzipBytes(content)).toString('base64')) : content;
      const isMistaken = looksLikeMetadata(content) !== (part === 'metadata');
      entries.set(key, { file, key, part, field, value, isMistaken });
    }
  }
  return [...entries.values()];
}

/** Fills one ConfigMap after the other, in order; a file that is too large gets a separate one. */
function getParts(entries: readonly Entry[], limit: number): Entry[][] {
  const parts: Entry[][] = [[]];
  let room = limit;
  for (const entry of entries) {
    const part = parts.at(-1) as Entry[];
    if (entry.value.length > room && part.length > 0) {
      parts.push([entry]);
      room = limit;
    } else part.push(entry);
    room -= entry.value.length;
  }
  return parts;
}

async function describeExcess(
  files: BundleFiles,
  entries: readonly Entry[],
  limit: number,
  gzip: boolean,
  options: CancelOptions,
): Promise<Diagnostic> {
  const largest = entries.reduce((best, entry) => (entry.value.length > best.value.length ? entry : best));
  const message =
    `bundle files exceeded ${limit} bytes limit: they have ${getSize(entries)}, ` +
    `${largest.file} alone ${largest.value.length}${gzip ? ', compressed' : ''}`;
  const ways: string[] = [];
  if (!gzip) {
    const compressed = await readEntries(files, true, options, new Report());
    const size = getSize(compressed);
    if (size <= limit) ways.push(`options.gzip (${size} bytes in one ConfigMap)`);
    else if (canSplit(compressed, limit)) {
      ways.push(
        `options.gzip options.split (${size} bytes in ${getParts(compressed, limit).length} ConfigMaps)`,
      );
    }
  }
  if (canSplit(entries, limit)) ways.push(`options.split (${getParts(entries, limit).length} ConfigMaps)`);
  return createFault('limit', message, {
    hint: ways.length === 0 ? noSplitHint : `add ${ways.join(' or ')}`,
  });
}

function canSplit(entries: readonly Entry[], limit: number): boolean {
  return entries.every(({ value }) => value.length <= limit);
}
