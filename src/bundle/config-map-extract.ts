import { diagnoseSyntax } from '../core/diagnostics-error.js';
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
  keptAnnotations,
  looksLikeMetadata,
} from './config-map.js';
import { getField, readMetadataFiles, scalarText } from './metadata.js';
import { labelFault, subdomainFault } from '../kube/names.js';
import { type Diagnostic, createFault, createWarning } from '../core/diagnostic.js';
import type { BundleFiles } from './read.js';

/** Bytes of values that a ConfigMap may have, keys not counted. (Source: Kubernetes' MaxSecretSize.) */
export const maxConfigMapData = 1024 * 1024;
/** Bytes of keys and values that annotations may have. (Source: Kubernetes' TotalAnnotationSizeLimitB.) */
const maxAnnotations = 256 * 1024;

/** How a bundle is put into ConfigMaps. */
export interface ExtractOptions extends CancelOptions {
  name: string;
  namespace: string;
  /** Bytes of values in one ConfigMap; 1 MiB unless told. */
  limit?: number | undefined;
  gzip?: boolean | undefined;
  /** Make several ConfigMaps, `NAME-1`, `NAME-2` …, where one does not hold everything. */
  split?: boolean | undefined;
  /** The image that the bundle was read from. */
  sourceImage?: string | undefined;
}

/** A ConfigMap that is made when it is written: together they may be larger than memory has room for. */
export interface ExtractedConfigMap {
  name: string;
  load(): JsonObject;
}

/** The ConfigMaps of a bundle; none where there are findings. */
interface ExtractedConfigMaps {
  configMaps: ExtractedConfigMap[];
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

/** A file of the bundle as a value. */
interface Entry {
  file: string;
  key: string;
  part: 'manifests' | 'metadata';
  field: 'data' | 'binaryData';
  /** The value; what counts against the limit are its bytes. */
  value: Buffer;
  size: number;
  /** Whether reading it again would take it for a file of the other part. */
  isMistaken: boolean;
}

/**
 * Puts the files of a bundle into a ConfigMap, as `opm alpha bundle extract` does: keys are the names of the
 * files of `manifests/` and `metadata/` with `-` for what a key cannot have, `annotations.yaml` becomes the six
 * annotations of a bundle, and with `gzip` values are base64 of gzip, in binaryData. Differs from it in that
 * ConfigMaps are immutable; two files under one key are a finding; text that is not UTF-8 goes to binaryData
 * unchanged; and a bundle over the limit may be split. `readBundleConfigMaps` makes files of them again. The same
 * files give the same bytes.
 */
export async function extractConfigMaps(
  files: BundleFiles,
  options: ExtractOptions,
): Promise<ExtractedConfigMaps> {
  const findings: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const { gzip = false, limit = maxConfigMapData, split = false } = options;
  const nameFault = subdomainFault(options.name);
  if (nameFault !== undefined)
    findings.push(createFault('invalid-name', nameFault, { subject: `ConfigMap ${quoteGo(options.name)}` }));
  const namespaceFault = labelFault(options.namespace);
  if (namespaceFault !== undefined)
    findings.push(
      createFault('invalid-name', namespaceFault, { subject: `namespace ${quoteGo(options.namespace)}` }),
    );
  for (const folder of files.folders ?? []) {
    findings.push(
      createFault('directory', 'is a directory', {
        file: `manifests/${folder}`,
        hint: 'move the manifests up, or remove the directory: a ConfigMap has no directories',
      }),
    );
  }
  const annotations = getBundleAnnotations(files, findings);
  if (options.sourceImage !== undefined) annotations[keptAnnotations.sourceImage] = options.sourceImage;
  if (gzip) annotations[keptAnnotations.encoding] = gzipEncoding;
  const annotationSize = Object.entries(annotations).reduce(
    (sum, [key, text]) => sum + Buffer.byteLength(key) + Buffer.byteLength(text),
    0,
  );
  if (annotationSize > maxAnnotations) {
    findings.push(
      createFault('limit', `${annotationSize} bytes of annotations, over the limit of ${maxAnnotations}`, {
        file: annotationsFile,
      }),
    );
  }
  const entries = await readEntries(files, gzip, options, findings, warnings);
  const total = entries.reduce((sum, { size }) => sum + size, 0);
  let parts = [entries];
  if (total > limit) {
    parts = getParts(entries, limit);
    for (const { file, size } of entries) {
      if (size <= limit || !split) continue;
      findings.push(
        createFault('limit', `${size} bytes, over the limit of ${limit} bytes for a ConfigMap`, {
          file,
          hint: gzip
            ? 'reduce the size of the file: a file cannot be split'
            : 'compress the files with --gzip',
        }),
      );
    }
    if (!split) findings.push(await tooLarge(files, entries, total, limit, gzip, options));
  }
  if (findings.length > 0) return { configMaps: [], findings, warnings };
  const names = parts.length === 1 ? [options.name] : parts.map((_, index) => `${options.name}-${index + 1}`);
  const longest = names.at(-1) as string;
  const longFault = subdomainFault(longest);
  if (longFault !== undefined) {
    return {
      configMaps: [],
      findings: [createFault('invalid-name', longFault, { subject: `ConfigMap ${quoteGo(longest)}` })],
      warnings,
    };
  }
  if (parts.length > 1) annotations[keptAnnotations.parts] = names.join(',');
  const configMaps = parts.map((part, index) => {
    const name = names[index] as string;
    return { name, load: () => getConfigMap(name, options.namespace, annotations, part) };
  });
  return { configMaps, findings, warnings };
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
    own[keptAnnotations.metadataKeys] = keys.join(',');
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

/** Every annotation of a bundle, empty where `annotations.yaml` lacks it; none without that file. */
function getBundleAnnotations(files: BundleFiles, findings: Diagnostic[]): Record<string, string> {
  const [read] = readMetadataFiles(files.metadata.filter(({ name }) => name === annotationsName));
  if (read === undefined) return {};
  if (read.error !== undefined) {
    findings.push(diagnoseSyntax(read.error, annotationsFile));
    return {};
  }
  const source = read.annotations ?? {};
  const annotations: Record<string, string> = {};
  for (const key of bundleAnnotations) {
    const value = getField(source, key);
    const text = scalarText(value);
    if (text === undefined) {
      const problem = `expected a string, got ${describeKind(value)}`;
      findings.push(createFault('wrong-type', problem, { subject: key, file: annotationsFile }));
    } else annotations[key] = text;
  }
  return annotations;
}

/** The values of a bundle, in order of the files. */
async function readEntries(
  files: BundleFiles,
  gzip: boolean,
  options: CancelOptions,
  findings: Diagnostic[],
  warnings: Diagnostic[],
): Promise<Entry[]> {
  const entries = new Map<string, Entry>();
  for (const part of ['manifests', 'metadata'] as const) {
    for (const { name, content } of files[part]) {
      throwIfCancelled(options.signal);
      const file = `${part}/${name}`;
      if (file === annotationsFile) continue;
      // Go sees each byte that is no UTF-8 as a character of its own; such names come from no archive.
      const key = name.replace(/[^-A-Za-z0-9_.]/gu, '-');
      const other = entries.get(key);
      if (!isConfigMapKey(key))
        findings.push(createFault('invalid-name', `${quoteGo(key)} is not a valid ConfigMap key`, { file }));
      else if (other !== undefined) {
        findings.push(
          createFault(
            'duplicate-key',
            `becomes the key ${quoteGo(key)} of the ConfigMap, as ${other.file} does`,
            { file, hint: 'rename one of the two files' },
          ),
        );
      } else {
        if (!gzip && !isUtf8(content)) {
          warnings.push(
            createWarning('binary-file', 'not UTF-8, and so in binaryData, where OLM does not look for it', {
              file,
            }),
          );
        }
        entries.set(key, {
          file,
          key,
          part,
          ...(await readValue(content, gzip)),
          isMistaken: isMistaken(part, content),
        });
      }
    }
  }
  return [...entries.values()];
}

function isMistaken(part: Entry['part'], content: Buffer): boolean {
  return looksLikeMetadata(content) !== (part === 'metadata');
}

async function readValue(content: Buffer, gzip: boolean): Promise<Pick<Entry, 'field' | 'value' | 'size'>> {
  // Compressed values are base64 already, and become it once more in a document.
  const value = gzip ? Buffer.from((await gzipBytes(content)).toString('base64')) : content;
  return { field: gzip || !isUtf8(content) ? 'binaryData' : 'data', value, size: value.length };
}

/** Fills one ConfigMap after the other, in order; a file that is too large stands alone. */
function getParts(entries: readonly Entry[], limit: number): Entry[][] {
  const parts: Entry[][] = [[]];
  let room = limit;
  for (const entry of entries) {
    const part = parts.at(-1) as Entry[];
    if (entry.size > room && part.length > 0) {
      parts.push([entry]);
      room = limit - entry.size;
    } else {
      part.push(entry);
      room -= entry.size;
    }
  }
  return parts;
}

async function tooLarge(
  files: BundleFiles,
  entries: readonly Entry[],
  total: number,
  limit: number,
  gzip: boolean,
  options: CancelOptions,
): Promise<Diagnostic> {
  const largest = entries.reduce((most, entry) => (entry.size > most.size ? entry : most));
  const message =
    `bundle files exceeded ${limit} bytes limit: they have ${total}, ` +
    `${largest.file} alone ${largest.size}${gzip ? ', compressed' : ''}`;
  const ways: string[] = [];
  if (!gzip) {
    const compressed = await readEntries(files, true, options, [], []);
    const size = compressed.reduce((sum, entry) => sum + entry.size, 0);
    if (size <= limit) ways.push(`--gzip (${size} bytes in one ConfigMap)`);
    else if (canSplit(compressed, limit)) {
      ways.push(`--gzip --split (${size} bytes in ${getParts(compressed, limit).length} ConfigMaps)`);
    }
  }
  if (canSplit(entries, limit)) ways.push(`--split (${getParts(entries, limit).length} ConfigMaps)`);
  return createFault('limit', message, {
    hint:
      ways.length === 0 ? 'reduce the size of the file: a file cannot be split' : `add ${ways.join(' or ')}`,
  });
}

function canSplit(entries: readonly Entry[], limit: number): boolean {
  return entries.every(({ size }) => size <= limit);
}
