import { splitApiVersion } from '../../kube/object.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { conform, struct } from '../../kube/struct.js';
import { objectMeta } from '../../kube/meta-types.js';
import { supportedKinds } from '../plain/registry-v1/registry-v1.js';
import { describeKind } from '../../document/field.js';
import { csvRelease } from '../../model/csv.js';
import { quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import { readFirstDocument } from '../manifest.js';
import { isKubernetesObject } from '../parse.js';
import type { BundleFile } from '../read.js';
import { type DefinedResources, checkCrd } from './crd.js';
import { type Csv, apiDefinitions } from '../../kube/csv-types.js';
import { checkCsv } from './csv.js';
import type { BundleAnnotations, MediaType } from '../../model/bundle-keys.js';
import { checkObjectMeta } from './object-meta.js';
import { type Reporter, prefixed, soundValue, warning } from './report.js';

/** The first document of a manifest. */
interface BundleObject {
  file: string;
  value: JsonObject;
  apiVersion: string;
  /** Group of `apiVersion`; empty for the core group. */
  group: string;
  version: string;
  kind: string;
  name: string;
}

/** Input of validators. */
export interface BundleContent {
  /** Name of the ClusterServiceVersion; empty if unreadable. */
  name: string;
  csv: Csv | undefined;
  /** Manifest of `csv`. */
  csvObject: BundleObject | undefined;
  objects: BundleObject[];
  crds: (DefinedResources & { file: string })[];
  /** `crds` lacks definitions that cannot be read. */
  isIncomplete: boolean;
  format: BundleAnnotations;
  /** Content of each file. */
  files: readonly Buffer[];
}

/** Reads the objects in `manifests/`; reports other files, which leave the content incomplete. */
export function readBundleObjects(
  files: readonly BundleFile[],
  report: Reporter,
): { objects: BundleObject[]; isIncomplete: boolean } {
  const objects: BundleObject[] = [];
  let isIncomplete = false;
  for (const { name, content } of files) {
    const file = `manifests/${name}`;
    const object = readObject(file, content, report);
    if (object === undefined) isIncomplete = true;
    else objects.push(object);
  }
  return { objects, isIncomplete };
}

function readObject(file: string, content: Buffer, report: Reporter): BundleObject | undefined {
  const { value, error } = readFirstDocument(content);
  if (error !== undefined) {
    if (error.code !== 'SYNTAX') throw error;
    return void report([], error.message, { file, line: error.line });
  }
  if (value !== null && !isJsonObject(value)) {
    return void report([], `expected an object of Kubernetes, got ${describeKind(value)}`, { file });
  }
  const apiVersion = getText(value, 'apiVersion');
  if (!isKubernetesObject(value)) {
    const reason = apiVersion.split('/').length > 2 ? ': apiVersion has more than one slash' : '';
    return void report(['kind'], `Object 'Kind' is missing${reason}`, { file });
  }
  const name = getText(value, 'metadata', 'name');
  const kind = value['kind'] as string;
  // Data, which no validator needs, is dropped to save memory.
  const isData = kind === 'ConfigMap' || kind === 'Secret';
  const heads = Object.entries(value).filter(([key]) => ['apiVersion', 'kind', 'metadata'].includes(key));
  const kept = isData ? Object.fromEntries(heads) : value;
  return { file, value: kept, apiVersion, ...splitApiVersion(apiVersion), kind, name };
}

export const csvKind = 'ClusterServiceVersion';
const crdKind = 'CustomResourceDefinition';

/** Upstream's warning about definitions of v1beta1. */
const oldCrdWarning =
  'GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition was deprecated in Kubernetes ' +
  '1.16+, removed in 1.22. Supportfor apiextensions.k8s.io/v1beta1 CustomResourceDefinitions will be removed in ' +
  'the future in favor of apiextensions.k8s.io/v1 CustomResourceDefinitions.';

const metaStruct = struct({ 'kind?': 'string', 'apiVersion?': 'string', 'metadata?': objectMeta });

/**
 * Checks every object of a bundle, and that the ClusterServiceVersion owns the definitions; adds what it reads to
 * `content`. (Source: operator-registry, pkg/lib/bundle and pkg/lib/validation.)
 */
export function checkContent(
  content: BundleContent,
  mediaType: MediaType,
  reportAs: (code: string, file: string) => Reporter,
): void {
  for (const object of content.objects) {
    const { kind, value, file, apiVersion, version } = object;
    const isKnown = kind === csvKind || kind === crdKind || supportedKinds.has(kind);
    if (mediaType === 'registry+v1' && !isKnown) {
      const problem = `${kind} is not supported type for registryV1 bundle: ${file}`;
      reportAs('manifests', file)(['kind'], problem);
    } else if (kind === csvKind) {
      const report = reportAs('csv', file);
      const csv = checkCsv(value, report);
      if (content.csvObject !== undefined) {
        const problem = `another ClusterServiceVersion; ${content.csvObject.file} has one already`;
        report(['kind'], problem, warning);
      } else Object.assign(content, { csvObject: object, csv, name: csv?.metadata.name ?? '' });
    } else if (kind === crdKind) {
      const report = reportAs('crd', file);
      const isOld = version === 'v1beta1';
      if (apiVersion !== 'apiextensions.k8s.io/v1' && apiVersion !== 'apiextensions.k8s.io/v1beta1') {
        report(['apiVersion'], `Unsupported api version of CRD: ${apiVersion}`);
        content.isIncomplete ||= version === 'v1' || isOld;
        continue;
      }
      const defined = checkCrd(value, report);
      if (isOld) report(['apiVersion'], oldCrdWarning, warning);
      if (defined === undefined) content.isIncomplete = true;
      else content.crds.push({ ...defined, file });
    } else {
      const report = reportAs('manifests', file);
      const metadata = soundValue(conform(value, metaStruct), report)?.metadata;
      if (metadata) checkObjectMeta(metadata, prefixed(report, 'error validating object metadata: '));
    }
  }
  const { csv, csvObject, isIncomplete } = content;
  // Unreadable objects are reported above, and ownership is then unknown.
  if (csv === undefined || csvObject === undefined || isIncomplete) return;
  checkOwnership(content, csv, csvObject.value, reportAs('bundle', csvObject.file));
}

function checkOwnership(
  { name: bundle, crds }: BundleContent,
  csv: Csv,
  value: JsonObject,
  report: Reporter,
): void {
  const spec = value['spec'] ?? null;
  if (!isJsonObject(spec)) {
    if (spec !== null || !Object.hasOwn(value, 'spec')) {
      report(['spec'], 'error getting CSV CRDs: spec is missing');
    }
    return;
  }
  const path = ['spec', 'customresourcedefinitions'];
  const options = { path, foldNames: true };
  const { value: read, faults } = conform(spec['customresourcedefinitions'], apiDefinitions, options);
  const [fault] = faults;
  if (fault !== undefined) {
    report(fault.path, `error getting CSV CRDs: ${fault.message}`);
    return;
  }
  const toKey = (name: string, version: string, kind: string): string => [name, version, kind].join('\0');
  const unowned = new Map<string, { name: string; version: string; file: string }>();
  for (const { name, versions, kind, file } of crds) {
    for (const version of versions) unowned.set(toKey(name, version, kind), { name, version, file });
  }
  for (const [index, { group, kind, name, version }] of (read.owned ?? []).entries()) {
    const key = toKey(name, version, kind);
    // Upstream's keys of definitions lack the group, so that an owned one with a group is never found.
    if (group === '' && unowned.delete(key)) continue;
    const shown = name === '' ? `${group}/${version} ${kind}` : `${name}/${version}`;
    report([...path, 'owned', index], `owned CRD ${shown} not found in bundle ${quoteGo(bundle)}`);
  }
  for (const { name, version, file } of unowned.values()) {
    const problem = `CRD ${name}/${version} is present in bundle ${quoteGo(bundle)} but not defined in CSV`;
    report(['spec', 'versions'], problem, { ...warning, file });
  }
  try {
    const release = csvRelease(spec);
    const substitutes = csv.metadata.annotations?.['olm.substitutesFor'] ?? '';
    if (release === '' || substitutes === '') return;
    const problem =
      `bundle ${quoteGo(bundle)} cannot have both a release version (${quoteGo(release)}) and ` +
      `olm.substitutesFor annotation (${quoteGo(substitutes)})`;
    report(['spec', 'release'], problem);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
  }
}
