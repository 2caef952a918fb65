import { getGroup } from '../../kube/object.js';
import { diagnoseSyntax } from '../../core/diagnostics-error.js';
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
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { readFileWithin } from '../read.js';
import { bundleKeys } from '../../model/bundle-keys.js';
import { type BundleFacts, toAnnotations } from './annotations.js';
import type { ListedFile } from '../image-files.js';
import { maxManifestSize } from './media-type.js';

interface CheckOptions extends CancelOptions {
  /** How messages name the directory that the files are in. */
  label: string;
}

/** What is wrong, and what is worth knowing. */
interface Checked {
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

/** More than `render` reads of a bundle. */
const maxManifestsSize = 256 * 1024 * 1024;

/**
 * Checks that manifests can be read back as a bundle: each parses, there is one ClusterServiceVersion, it has a name,
 * what it owns is defined, and no object is duplicate. One file at a time is in memory, and its object is let go.
 * Throws OpmateError IO and CANCELLED.
 */
export async function checkManifests(files: readonly ListedFile[], options: CheckOptions): Promise<Checked> {
  const { label, signal } = options;
  const checked: Checked = { findings: [], warnings: [] };
  const seen = new Map<string, string>();
  const csvs: { file: string; value: JsonObject; content: Buffer }[] = [];
  const provided: ApiKey[] = [];
  let size = 0;
  for (const entry of files) {
    throwIfCancelled(signal);
    const file = path.join(label, entry.path);
    if (entry.path.includes('/')) {
      checked.warnings.push(
        createWarning('directory', 'in a subdirectory, where no tool looks for manifests', { file }),
      );
      continue;
    }
    if (entry.path.startsWith('.')) continue;
    size += entry.size;
    if (entry.size > maxManifestSize) {
      checked.findings.push(
        createFault('limit', `more than the ${maxManifestSize} bytes that a manifest may have`, { file }),
      );
      continue;
    }
    const content = await readFileWithin(entry.file, () => undefined);
    if (content === undefined) throw new OpmateError('IO', 'no longer a file', { subject: file, file });
    const read = readObject(content, entry.path);
    if ('problem' in read) {
      const { isFault, ...fault } = read;
      if (isFault) checked.findings.push({ severity: 'error', code: 'invalid-object', file, ...fault });
      else checked.warnings.push({ severity: 'warning', code: 'invalid-object', file, ...fault });
      continue;
    }
    const { value, furtherLine } = read;
    if (furtherLine !== undefined) {
      checked.findings.push(
        createFault('second-document', 'a second document, which all tools ignore', {
          file,
          line: furtherLine,
          hint: 'move each object to a separate file',
        }),
      );
    }
    const key = toKey(value);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, file);
    else
      checked.findings.push(
        createFault('duplicate-object', `is in ${first} too`, {
          file,
          subject: key,
          hint: 'keep one of them',
        }),
      );
    if (isCsv(value)) csvs.push({ file, value, content });
    else if (value['kind'] === 'CustomResourceDefinition')
      provided.push(...blaming(checked, file, content, () => customResourceApis(value), []));
  }
  if (size > maxManifestsSize) {
    const message = `${size} bytes, more than the ${maxManifestsSize} that a bundle may have`;
    checked.findings.push(createFault('invalid-object', message, { file: label }));
  }
  checkCsvs(checked, csvs, provided, label);
  return checked;
}

function checkCsvs(
  checked: Checked,
  csvs: readonly { file: string; value: JsonObject; content: Buffer }[],
  provided: ApiKey[],
  label: string,
): void {
  const [csv, ...others] = csvs;
  if (csv === undefined) {
    checked.findings.push(
      createFault('missing-csv', 'no ClusterServiceVersion', {
        file: label,
        hint:
          'specify the directory that contains it; for plain manifests, create annotations of that type with ' +
          'opmate bundle generate first',
      }),
    );
    return;
  }
  for (const { file } of others)
    checked.findings.push(
      createFault('second-csv', `a second ClusterServiceVersion beside ${csv.file}`, { file }),
    );
  const { file, value, content } = csv;
  blaming(checked, file, content, () => {
    const { name } = readCsvMetadata(value);
    if (name === '') throw new OpmateError('INVALID', 'metadata.name: not found');
    const spec = csvSpec(value);
    const owned = csvCustomResources(spec, 'owned');
    checkOwnedApis(label, name, owned, [...provided, ...csvApiServices(spec, 'owned')], file);
  });
}

/** Runs `work`; what it refuses becomes a finding, with its line where that can be told. */
function blaming<T>(checked: Checked, file: string, content: Buffer, work: () => T, otherwise?: T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const line = findFaultLine(error, content);
    checked.findings.push(createFault('wrong-type', error.message, { file, line, hint: error.hint }));
    return otherwise as T;
  }
}

function readObject(
  content: Buffer,
  name: string,
):
  | { value: JsonObject; furtherLine: number | undefined }
  | { isFault: boolean; problem: string; line?: number | undefined } {
  const isManifest = /\.(?:ya?ml|json)$/i.test(name);
  const { value, json, error } = readFirstDocument(content);
  if (error !== undefined) return { isFault: isManifest, problem: error.message, line: error.line };
  if (value === null) return { isFault: false, problem: 'its first document is empty: no tool reads it' };
  if (!isKubernetesObject(value)) {
    return { isFault: isManifest, problem: 'not a Kubernetes object: missing kind' };
  }
  const mayGoOn = json === undefined && content.includes('\n---');
  return { value, furtherLine: mayGoOn ? furtherLine(content.toString('utf8')) : undefined };
}

/** The line at which a second document begins that is not empty. */
function furtherLine(text: string): number | undefined {
  const lines = text.split(/\r?\n/);
  // What stands before the first separator, comments too, is a document.
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

/** Annotations with the places where they stand. */
export interface ReadAnnotations {
  values: ReadonlyMap<string, { value: string; line: number | undefined }>;
  findings: Diagnostic[];
}

/** Reads `annotations.yaml`. Values that are not strings and duplicate keys are findings, which name it `file`. */
export function readAnnotations(content: Buffer, file: string): ReadAnnotations {
  const values = new Map<string, { value: string; line: number | undefined }>();
  const { root, findings, lineOf } = readPlacedMetadata(content, file);
  const annotations = root?.['annotations'] ?? null;
  if (!isJsonObject(annotations)) {
    const hint = 'create one with opmate bundle generate';
    if (root !== undefined) findings.push(createFault('missing-field', 'no annotations', { file, hint }));
    return { values, findings };
  }
  for (const [key, value] of Object.entries(annotations)) {
    const line = lineOf(['annotations', key]);
    const text = scalarText(value);
    if (text === undefined || key === '')
      findings.push(createFault('wrong-type', 'expected a string', { file, line, subject: quoteGo(key) }));
    else values.set(key, { value: text, line });
  }
  return { values, findings };
}

/**
 * What annotations must say, and do not. (Source: `opm alpha bundle build` without `--overwrite`.) Facts that nobody
 * asked for may be whatever they are; package and channels must not be empty.
 */
export function checkAnnotations(
  { values }: ReadAnnotations,
  wanted: Partial<BundleFacts> & Pick<BundleFacts, 'mediaType'>,
  file: string,
): Diagnostic[] {
  const findings: Diagnostic[] = [];
  const { mediaType, packageName = '', channels = '', defaultChannel = '' } = wanted;
  for (const [key, value] of toAnnotations({ mediaType, packageName, channels, defaultChannel })) {
    const stored = values.get(key);
    if (stored === undefined) {
      findings.push(
        createFault('missing-field', `Missing field: ${key}`, {
          file,
          hint: 'add it, or replace the file with --overwrite',
        }),
      );
    } else if (value !== '' && stored.value !== value) {
      findings.push(
        createFault(
          'annotation',
          `Expect field ${quoteGo(key)} to have value ${quoteGo(value)} instead of ${quoteGo(stored.value)}`,
          {
            file,
            line: stored.line,
            hint: 'fix either of them, or replace the file with --overwrite',
          },
        ),
      );
    }
  }
  for (const [key, what] of [
    [bundleKeys.package, 'the name of the package'],
    [bundleKeys.channels, 'a channel'],
  ] as const) {
    const stored = values.get(key);
    if (stored === undefined) continue;
    const parts = key === bundleKeys.channels ? stored.value.split(',') : [stored.value];
    const bad = parts.find((part) => part === '' || /[\s\u0000-\u001f]/.test(part));
    if (bad === undefined) continue;
    const problem = bad === '' ? 'is empty' : `${quoteGo(bad)} has a blank in it`;
    findings.push(createFault('annotation', `${what} ${problem}`, { file, line: stored.line, subject: key }));
  }
  return findings;
}

/** Checks the files beside `annotations.yaml`: each parses, and none has annotations of a bundle too. */
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
    if (entry.size > maxManifestSize) {
      findings.push(createFault('limit', `more than ${maxManifestSize} bytes`, { file }));
      continue;
    }
    const content = (await readFileWithin(entry.file, () => undefined)) ?? Buffer.alloc(0);
    const { value, error } = readFirstDocument(content);
    if (error !== undefined) {
      findings.push(diagnoseSyntax(error, file));
      continue;
    }
    const annotations = getValue(value, 'annotations');
    if (isJsonObject(annotations) && Object.hasOwn(annotations, bundleKeys.package)) {
      findings.push(
        createFault('duplicate-annotations', 'has annotations of a bundle, as annotations.yaml has', {
          file,
          hint: 'keep one of them',
        }),
      );
    }
  }
  return findings;
}
