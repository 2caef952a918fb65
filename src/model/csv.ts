import { findBase64Error } from '../core/text/base64.js';
import { OpmateError } from '../core/errors.js';
import { describeKind } from '../document/field.js';
import { formatGoFloat } from '../document/go-float.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { getList, getText } from '../document/json-fields.js';
import type { PackageIcon, RelatedImage } from './declarative-config.js';
import { apiDefinitions, installImages } from '../kube/csv-types.js';
import { objectMeta } from '../kube/meta-types.js';
import { type Of, TypeMismatchError, structList, readTyped, struct } from '../kube/struct.js';

/**
 * Readers of ClusterServiceVersions for rendering. They throw OpmateError INVALID with the path of the value:
 * `spec.version: expected a string, got the number 1.2`.
 */

/** Group, version and kind of an API. */
export interface ApiName {
  group: string;
  version: string;
  kind: string;
}

/** An API with its plural name. */
export interface ApiKey extends ApiName {
  /** Plural name, or the name of an API service. */
  plural: string;
}

/** Returns a text that is equal for equal APIs, whatever their plural names. */
export function getApiKey({ group, version, kind }: ApiName): string {
  return JSON.stringify([group, version, kind]);
}

const csvHead = struct({ apiVersion: 'string', kind: 'string', metadata: objectMeta });
const relatedImages = structList({ name: 'string', image: 'string' });
const installation = struct({ install: installImages });

/** Returns the name and annotations of a CSV; its metadata fields match in any case. */
export function readCsvMetadata(csv: JsonObject): { name: string; annotations: JsonObject } {
  const { metadata } = readTyped(csv, csvHead, { foldNames: true });
  return { name: metadata.name ?? '', annotations: metadata.annotations ?? {} };
}

/** Returns the `spec` of a CSV, empty if null; throws if missing. */
export function csvSpec(csv: JsonObject): JsonObject {
  const spec = csv['spec'];
  if (spec === undefined) throw new OpmateError('INVALID', 'spec: not found');
  if (spec === null || isJsonObject(spec)) return spec ?? {};
  throw new TypeMismatchError(['spec'], `expected an object, got ${describeKind(spec)}`);
}

/** Returns `spec.version` as written; empty if missing. */
export function csvVersion(spec: JsonObject): string {
  return readTyped(spec['version'], 'string', { path: ['spec', 'version'] });
}

/** Returns `spec.release`, a number as Go prints it; empty if missing. */
export function csvRelease(spec: JsonObject): string {
  const release = spec['release'] ?? null;
  if (release === null) return '';
  if (typeof release === 'string') return release;
  if (typeof release === 'bigint') return formatGoFloat(Number(release));
  if (typeof release !== 'number') {
    throw new TypeMismatchError(['spec', 'release'], 'release field must be a string or number');
  }
  return Number.isInteger(release) && Math.abs(release) < 2 ** 63
    ? String(BigInt(release))
    : formatGoFloat(release);
}

/** Returns the custom resource definitions that a CSV owns or requires. */
export function csvCustomResources(spec: JsonObject, list: 'owned' | 'required'): ApiKey[] {
  return definitions(spec, 'customresourcedefinitions', list).map(({ name, version, kind }) => {
    const dot = name.indexOf('.');
    if (dot < 0) {
      throw new OpmateError('INVALID', `couldn't parse plural.group from crd name: ${name}`, {
        hint: `use the full name, e.g. foos.example.com, in spec.customresourcedefinitions.${list}`,
      });
    }
    return { group: name.slice(dot + 1), version, kind, plural: name.slice(0, dot) };
  });
}

/** Returns the aggregated APIs that a CSV owns or requires. */
export function csvApiServices(spec: JsonObject, list: 'owned' | 'required'): ApiKey[] {
  return definitions(spec, 'apiservicedefinitions', list).map(({ group, version, kind, name }) => ({
    group,
    version,
    kind,
    plural: name,
  }));
}

function definitions(
  spec: JsonObject,
  field: string,
  list: 'owned' | 'required',
): NonNullable<Of<typeof apiDefinitions>['owned']> {
  const options = { path: ['spec', field], foldNames: true };
  return readTyped(spec[field], apiDefinitions, options)[list] ?? [];
}

/** Returns `spec.relatedImages` in order, with duplicates. */
export function csvRelatedImages(spec: JsonObject): RelatedImage[] {
  const options = { path: ['spec', 'relatedImages'], foldNames: true };
  return readTyped(spec['relatedImages'], relatedImages, options) ?? [];
}

/** Returns the images of all containers and init containers of the deployments, in order, without duplicates. */
export function csvDeploymentImages(spec: JsonObject): string[] {
  const { install } = readTyped(spec, installation, { path: ['spec'], foldNames: true });
  if (install.strategy !== 'deployment') return [];
  const images = new Set<string>();
  for (const deployment of install.spec.deployments ?? []) {
    const pod = deployment.spec.template.spec;
    for (const container of pod.containers ?? []) images.add(container.image);
    for (const container of pod.initContainers ?? []) images.add(container.image);
  }
  return [...images];
}

/** Reports whether a manifest is a ClusterServiceVersion. */
export function isCsv(manifest: JsonValue): boolean {
  return isJsonObject(manifest) && manifest['kind'] === 'ClusterServiceVersion';
}

/** Returns the first icon of a ClusterServiceVersion; undefined if it cannot be decoded. */
export function csvIcon(csv: JsonValue): PackageIcon | undefined {
  const [icon] = getList(csv, 'spec', 'icon');
  if (!isJsonObject(icon)) return undefined;
  const { base64data, mediatype } = icon;
  if (typeof base64data !== 'string') return undefined;
  // Some tools insert blanks.
  const data = [base64data, base64data.replaceAll(' ', '')].find(
    (text) => findBase64Error(text) === undefined,
  );
  if (data === undefined) return undefined;
  const written = Buffer.from(data, 'base64').toString('base64');
  if (written === '') return undefined;
  return { base64data: written, mediatype: getText(mediatype) };
}
