import { getGroup } from '../../kube/object.js';
import { diagnoseSyntax } from '../../document/document.js';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { getObject, getText, getValue } from '../../document/json-fields.js';
import {
  type ApiKey,
  csvApiServices,
  csvCustomResources,
  csvSpec,
  isCsv,
  readCsvMetadata,
} from '../../model/csv.js';
import { findFaultLine, readFirstDocument } from '../manifest.js';
import { readPlacedMetadata, scalarText } from '../metadata.js';
import { checkOwnedApis, customResourceApis, isKubernetesObject } from '../parse.js';
import { type Diagnostic, type TextPosition, createFault } from '../../core/diagnostic.js';
import { Report } from '../report.js';
import { bundleKeys } from '../../model/bundle-keys.js';
import { type AnnotationValues, toAnnotations } from './annotations.js';
import type { ListedFile } from '../image-files.js';
import { maxBundleSize, maxFileSize } from '../limits.js';
import { readFileWithin } from '../../files/read-file.js';

interface CheckOptions extends CancelOptions {
  /** Name of the directory in messages. */
  label: string;
}

/** A file with its object. */
interface ObjectFile {
  file: string;
  value: JsonObject;
  content: Buffer;
}

/**
 * Checks that manifests can be read as a bundle: all parse, there is exactly one ClusterServiceVersion with a name,
 * owned APIs are defined, and no object is duplicate. Keeps one file in memory. Throws OpmateError IO and CANCELLED.
 */
export async function checkManifests(
  files: readonly ListedFile[],
  { label, signal }: CheckOptions,
): Promise<Report> {
  const report = new Report();
  const seen = new Map<string, string>();
  const csvs: ObjectFile[] = [];
  const provided: ApiKey[] = [];
  let size = 0;
  for (const entry of files) {
    throwIfCancelled(signal);
    const file = path.join(label, entry.path);
    if (entry.path.includes('/')) {
      report.warn('directory', 'in a subdirectory, where no tool looks for manifests', { file });
      continue;
    }
    if (entry.path.startsWith('.')) continue;
    size += entry.size;
    if (entry.size > maxFileSize) {
      report.fault('limit', `more than the ${maxFileSize} bytes that a manifest may have`, { file });
      continue;
    }
    const content = readFileWithin(entry.file, () => undefined);
    if (content === undefined) throw new OpmateError('IO', 'no longer a file', { about: file });
    const value = readObject(content, file, report);
    if (value === undefined) continue;
    const subject = toKey(value);
    const first = seen.get(subject);
    if (first === undefined) seen.set(subject, file);
    else report.fault('duplicate-object', `is in ${first} too`, { file, subject, hint: 'keep one of them' });
    const object = { file, value, content };
    if (isCsv(value)) csvs.push(object);
    else if (value['kind'] === 'CustomResourceDefinition')
      collectFault(report, object, () => provided.push(...customResourceApis(value)));
  }
  if (size > maxBundleSize) {
    const message = `${size} bytes, more than the ${maxBundleSize} that a bundle may have`;
    report.fault('invalid-object', message, { file: label });
  }
  checkCsvs(csvs, provided, label, report);
  return report;
}

/** Requires exactly one ClusterServiceVersion, whose owned APIs are `provided`. */
function checkCsvs(
  [csv, ...others]: readonly ObjectFile[],
  provided: readonly ApiKey[],
  label: string,
  report: Report,
): void {
  if (csv === undefined) {
    report.fault('missing-csv', 'no ClusterServiceVersion', {
      file: label,
      hint:
        'specify the directory that contains it; for plain manifests, create annotations of that type with ' +
        'api.generateBundle first',
    });
    return;
  }
  for (const { file } of others) {
    report.fault('second-csv', `a second ClusterServiceVersion beside ${csv.file}`, { file });
  }
  collectFault(report, csv, () => {
    const { name } = readCsvMetadata(csv.value);
    if (name === '') throw new OpmateError('INVALID', 'metadata.name: not found');
    const spec = csvSpec(csv.value);
    const owned = csvCustomResources(spec, 'owned');
    checkOwnedApis(label, name, owned, [...provided, ...csvApiServices(spec, 'owned')], csv.file);
  });
}

/** Runs `work` and reports its error as a finding, with its line if known. */
function collectFault(report: Report, { file, content }: ObjectFile, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const line = findFaultLine(error, content);
    report.fault('wrong-type', error.message, { file, line, hint: error.hint });
  }
}

/** Reads the first document; files without an object are findings only if named as manifests. */
function readObject(content: Buffer, file: string, report: Report): JsonObject | undefined {
  const level = /\.(?:ya?ml|json)$/i.test(file) ? 'fault' : 'warn';
  const { value, json, error } = readFirstDocument(content);
  if (error !== undefined) {
    report[level]('invalid-object', error.message, { file, line: error.line });
  } else if (value === null) {
    report.warn('invalid-object', 'its first document is empty: no tool reads it', { file });
  } else if (!isKubernetesObject(value)) {
    report[level]('invalid-object', 'not a Kubernetes object: missing kind', { file });
  } else {
    const hasSeparator = json === undefined && content.includes('\n---');
    const line = hasSeparator ? findSecondDocument(content.toString('utf8')) : undefined;
    const hint = 'move each object to a separate file';
    const problem = 'a second document, which all tools ignore';
    if (line !== undefined) report.fault('second-document', problem, { file, line, hint });
    return value;
  }
  return undefined;
}

/** Returns the line of the first content after a separator. */
function findSecondDocument(text: string): number | undefined {
  const lines = text.split(/\r?\n/);
  // Text before the first separator is a document, even if it is only comments.
  const start = lines[0]?.startsWith('---') === true ? 1 : 0;
  const separator = lines.findIndex((line, index) => index >= start && /^---(?:\s|$)/.test(line));
  if (separator < 0) return undefined;
  const content = lines.findIndex(
    (line, index) => index > separator && !/^(?:\s*(?:#.*)?|---\s*|\.\.\.\s*)$/.test(line),
  );
  return content < 0 ? undefined : content + 1;
}

function toKey(value: JsonObject): string {
  const group = getGroup(getText(value, 'apiVersion'));
  const metadata = getObject(value, 'metadata');
  const kind = String(value['kind']);
  const name = [getText(metadata, 'namespace'), getText(metadata, 'name')]
    .filter((part) => part !== '')
    .join('/');
  return `${group === '' ? kind : `${kind}.${group}`} ${quoteGo(name)}`;
}

/** Annotations with their places. */
export interface ReadAnnotations {
  values: ReadonlyMap<string, { value: string; place: Partial<TextPosition> }>;
  findings: Diagnostic[];
}

/** Reads `annotations.yaml`. Values that are not strings and duplicate keys are findings about `file`. */
export function readAnnotations(content: Buffer, file: string): ReadAnnotations {
  const values = new Map<string, { value: string; place: Partial<TextPosition> }>();
  const { root, findings, placeOf } = readPlacedMetadata(content, file);
  const annotations = root?.['annotations'] ?? null;
  if (!isJsonObject(annotations)) {
    const hint = 'create one with api.generateBundle';
    if (root !== undefined) findings.push(createFault('missing-field', 'no annotations', { file, hint }));
    return { values, findings };
  }
  for (const [key, value] of Object.entries(annotations)) {
    const place = placeOf(['annotations', key]);
    const text = scalarText(value);
    if (text === undefined || key === '')
      findings.push(
        createFault('wrong-type', 'expected a string', { file, ...place, subject: quoteGo(key) }),
      );
    else values.set(key, { value: text, place });
  }
  return { values, findings };
}

/**
 * Compares annotations with the requested facts, of which empty ones match anything; package and channels must not be
 * empty. (Source: `opm alpha bundle build` without `--overwrite`.)
 */
export function checkAnnotations(
  { values }: ReadAnnotations,
  wanted: Partial<AnnotationValues> & Pick<AnnotationValues, 'mediaType'>,
  file: string,
): Diagnostic[] {
  const { mediaType, packageName = '', channels = '', defaultChannel = '' } = wanted;
  const findings: Diagnostic[] = [];
  for (const [key, value] of toAnnotations({ mediaType, packageName, channels, defaultChannel })) {
    const stored = values.get(key);
    if (stored === undefined) {
      const hint = 'add it, or replace the file with options.overwrite';
      findings.push(createFault('missing-field', `Missing field: ${key}`, { file, hint }));
    } else if (value !== '' && stored.value !== value) {
      const problem = `Expect field ${quoteGo(key)} to have value ${quoteGo(value)} instead of ${quoteGo(stored.value)}`;
      const hint = 'fix either of them, or replace the file with options.overwrite';
      findings.push(createFault('annotation', problem, { file, ...stored.place, hint }));
    }
  }
  for (const [key, noun] of [
    [bundleKeys.package, 'the name of the package'],
    [bundleKeys.channels, 'a channel'],
  ] as const) {
    const stored = values.get(key);
    const parts = key === bundleKeys.channels ? stored?.value.split(',') : stored && [stored.value];
    const bad = parts?.find((part) => part === '' || /[\s\u0000-\u001f]/.test(part));
    if (bad === undefined) continue;
    const problem = bad === '' ? 'is empty' : `${quoteGo(bad)} has a blank in it`;
    const place = { file, ...stored?.place, subject: key };
    findings.push(createFault('annotation', `${noun} ${problem}`, place));
  }
  return findings;
}

/** Checks the files beside `annotations.yaml`: all must parse, and none may have annotations of a bundle. */
export async function checkMetadata(
  files: readonly ListedFile[],
  { label, signal }: CheckOptions,
): Promise<Diagnostic[]> {
  const findings: Diagnostic[] = [];
  const sorted = [...files].sort((a, b) => compareBytes(a.path, b.path));
  for (const entry of sorted) {
    throwIfCancelled(signal);
    if (entry.path === 'annotations.yaml' || !/^[^/]+\.(?:ya?ml|json)$/i.test(entry.path)) continue;
    const file = path.join(label, entry.path);
    if (entry.size > maxFileSize) {
      findings.push(createFault('limit', `more than ${maxFileSize} bytes`, { file }));
      continue;
    }
    const content = readFileWithin(entry.file, () => undefined) ?? Buffer.alloc(0);
    const { value, error } = readFirstDocument(content);
    if (error !== undefined) {
      findings.push(diagnoseSyntax(error, file));
      continue;
    }
    const annotations = getValue(value, 'annotations');
    if (isJsonObject(annotations) && Object.hasOwn(annotations, bundleKeys.package)) {
      const problem = 'has annotations of a bundle, as annotations.yaml has';
      findings.push(createFault('duplicate-annotations', problem, { file, hint: 'keep one of them' }));
    }
  }
  return findings;
}
