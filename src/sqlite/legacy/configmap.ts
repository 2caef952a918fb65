import { addContext } from '../../core/diagnostics-error.js';
import {
  type EncodedManifest,
  toBundle,
  toManifest,
  readPackageManifest,
} from '../../bundle/package-manifests.js';
import { locateFault, readFirstDocument } from '../../bundle/manifest.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { findField } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { parseYaml } from '../../document/yaml.js';
import { type ApiKey, csvCustomResources, csvSpec } from '../../model/csv.js';
import { oldCrdStruct } from '../../kube/crd-types.js';
import { objectMeta } from '../../kube/meta-types.js';
import { type Of, structList, readTyped, struct } from '../../kube/struct.js';
import { describeKind } from '../../document/field.js';
import { getValue } from '../../document/json-fields.js';
import type { Database } from '../schema/database.js';
import { type LoadOptions, type LoadReport, type LoadSession, ManifestLoader } from './manifest-loader.js';
import { readFileWithin } from '../../files/read-file.js';

/** Keys of a ConfigMap of manifests, each with a YAML list. */
const keys = {
  crds: 'customResourceDefinitions',
  csvs: 'clusterServiceVersions',
  packages: 'packages',
} as const;

/** The API server accepts a megabyte; files that were never sent to it may be larger. */
const maxConfigMapSize = 64 * 1024 * 1024;

/**
 * Loads the manifests in a ConfigMap, from a file as `kubectl get configmap -o yaml` (or json) prints it. Each
 * ClusterServiceVersion becomes a bundle together with the definitions that it owns. Definitions are kept as the API
 * server would return them (v1beta1 without unknown fields), ClusterServiceVersions without status. Runs in the
 * caller's transaction. (Source: `configmap-server` of operator-registry.)
 *
 * Throws ManifestsError with all problems unless permissive; NOT_FOUND, IO, SYNTAX or INVALID if the file is no
 * ConfigMap.
 */
export async function loadConfigMap(
  database: Database,
  file: string,
  session: LoadSession = {},
  options: LoadOptions = {},
): Promise<LoadReport> {
  const { label = file } = options;
  return loadConfigMapObject(database, await readObject(file, label), session, { ...options, label });
}

/** Loads the manifests in a ConfigMap, named `label` in messages, as `loadConfigMap` does. Throws ManifestsError, INVALID. */
export async function loadConfigMapObject(
  database: Database,
  value: JsonObject,
  session: LoadSession,
  options: LoadOptions & { label: string },
): Promise<LoadReport> {
  const { label } = options;
  if (value['kind'] !== 'ConfigMap') {
    const { kind = null } = value;
    throw new OpmateError(
      'INVALID',
      `is ${typeof kind === 'string' ? `of kind ${JSON.stringify(kind)}` : 'of no kind'}, not a ConfigMap`,
      { about: label, hint: 'use the output of kubectl get configmap NAME -o yaml' },
    );
  }
  const loader = new ManifestLoader(database, label, session, options);
  await loadManifestData(loader, value['data'] ?? null, label, session);
  return loader.finish();
}

/** Reads the object in a file. Throws OpmateError NOT_FOUND, IO, LIMIT, SYNTAX or INVALID. */
async function readObject(file: string, label: string): Promise<JsonObject> {
  const content = readFileWithin(file, (size) => {
    if (size > maxConfigMapSize) {
      throw new LimitError(`${size} bytes, more than the ${maxConfigMapSize} that a ConfigMap may have`, {
        subject: label,
      });
    }
  });
  if (content === undefined) {
    throw new OpmateError('NOT_FOUND', 'no such file', { about: label });
  }
  const { value, error } = readFirstDocument(content);
  if (error !== undefined) throw locateFault(error, label);
  if (isJsonObject(value)) return value;
  throw new OpmateError('INVALID', `expected an object, got ${describeKind(value)}`, {
    about: label,
  });
}

/** Reports whether an object has manifests under any of the keys. */
export function holdsManifestData(data: JsonValue | undefined): data is JsonObject {
  return isJsonObject(data ?? null) && Object.values(keys).some((key) => key in (data as JsonObject));
}

/**
 * Passes the manifests in the data of a ConfigMap, or of an app registry file of the same form, to a loader, which
 * records problems.
 */
export async function loadManifestData(
  loader: ManifestLoader,
  data: JsonValue,
  label: string,
  { signal }: CancelOptions,
): Promise<void> {
  const definitions = new Map<string, EncodedManifest>();
  for (const { value, subject } of listUnder(loader, data, keys.crds, label)) {
    throwIfCancelled(signal);
    attempt(loader, subject, () => {
      const { crd, apis } = readTypedCrd(value);
      const manifest = toManifest(crd, subject);
      for (const api of apis) {
        const key = toKey(api);
        if (!definitions.has(key)) definitions.set(key, manifest);
        else {
          loader.problems.push(
            new OpmateError('INVALID', `can't add the same CRD twice in one configmap: ${show(api)}`, {
              subject,
              file: label,
              hint: 'keep one of the two definitions',
            }),
          );
        }
      }
    });
  }
  for (const { value, subject } of listUnder(loader, data, keys.csvs, label)) {
    throwIfCancelled(signal);
    const made = attempt(loader, subject, () => {
      const typed = readTypedCsv(value);
      const csv = toManifest(typed, subject);
      const own: EncodedManifest[] = [];
      for (const [index, definition] of ownedDefinitions(typed).entries()) {
        const where = `${subject}: spec.customresourcedefinitions.owned[${index}]`;
        attempt(loader, where, () => own.push(...getDefinition(definition, definitions, label)));
      }
      return toBundle(csv, [csv, ...own]).bundle;
    });
    if (made !== undefined) await loader.addBundle(made, subject);
  }
  for (const { value, subject } of listUnder(loader, data, keys.packages, label)) {
    attempt(loader, subject, () => {
      const manifest = readPackageManifest(value, subject);
      if (manifest === undefined) throw new OpmateError('INVALID', 'packageName: not found');
      loader.packages.push(manifest);
    });
  }
}

/**
 * Manifests through Kubernetes' types, as a ConfigMap of manifests is read: unknown fields are dropped, and fields
 * that are always written are added. (Source: apiextensions.k8s.io/v1beta1 and metav1.ObjectMeta.)
 */
const csvType = struct({ 'apiVersion?': 'string', 'kind?': 'string', metadata: objectMeta, spec: 'any' });

/** Reads a ClusterServiceVersion without its status. Throws OpmateError INVALID. */
function readTypedCsv(value: JsonObject): JsonObject {
  const csv = readTyped(value, csvType, { foldNames: true });
  if (csv.kind !== 'ClusterServiceVersion') {
    const problem = `csv name not found: kind is ${JSON.stringify(csv.kind ?? '')}, not ClusterServiceVersion`;
    throw new OpmateError('INVALID', problem);
  }
  if (csv.spec === null && fieldIn(value, 'spec') === undefined) {
    throw new OpmateError('INVALID', 'spec: not found');
  }
  return csv;
}

/**
 * Reads a custom resource definition and its APIs: those of `spec.versions` or, without this list, of `spec.version`,
 * which then becomes the list. Throws TypeMismatchError.
 */
function readTypedCrd(value: JsonObject): { crd: JsonObject; apis: ApiKey[] } {
  const crd = readTyped(value, oldCrdStruct, { foldNames: true });
  const { spec } = crd;
  // An empty list exists too, so omitted empty fields must be looked up.
  const hasList = Array.isArray(fieldIn(fieldIn(value, 'spec'), 'versions'));
  if (!hasList && spec.version !== undefined) {
    spec.versions = [{ name: spec.version, served: true, storage: true }];
  }
  const { group, names } = spec;
  const { kind, plural } = names;
  return {
    crd,
    apis: (spec.versions ?? []).map(({ name }) => ({ group, version: name, kind, plural })),
  };
}

function fieldIn(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? findField(value, name) : undefined;
}

/** Returns the unchecked list of definitions that a ClusterServiceVersion owns. */
function ownedDefinitions(csv: JsonObject): Of<typeof definitions> {
  const spec = csvSpec(csv);
  // Reads everything, so that a value of the wrong kind anywhere rejects the whole bundle.
  const field = 'customresourcedefinitions';
  return readTyped(spec[field], definitionLists, { path: ['spec', field], foldNames: true }).owned ?? [];
}

const definitions = structList({ name: 'string', version: 'string', kind: 'string' });
const definitionLists = struct({ owned: definitions, required: definitions });

/** Returns the manifest of an owned definition. Throws OpmateError INVALID if missing. */
function getDefinition(
  owned: JsonValue,
  definitions: ReadonlyMap<string, EncodedManifest>,
  file: string,
): EncodedManifest[] {
  return csvCustomResources({ customresourcedefinitions: { owned: [owned] } }, 'owned').map((api) => {
    const definition = definitions.get(toKey(api));
    if (definition !== undefined) return definition;
    throw new OpmateError('INVALID', `couldn't find owned CRD in crd list ${show(api)}`, {
      file,
      hint: `add it to ${keys.crds}`,
    });
  });
}

/** Returns the objects of the list under a key with their names for messages. */
function listUnder(
  loader: ManifestLoader,
  data: JsonValue,
  key: string,
  label: string,
): { value: JsonObject; subject: string }[] {
  const text = getValue(data, key);
  const fail = (problem: string, hint?: string): [] => {
    loader.problems.push(new OpmateError('INVALID', problem, { about: label, hint }));
    return [];
  };
  if (text === undefined || text === null) {
    return fail(`couldn't find expected key ${key} in configmap`, `add data.${key}, a list, empty or not`);
  }
  let list: JsonValue = text;
  if (typeof text === 'string') {
    try {
      list = parseYaml(text);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      return fail(`data.${key}: ${error.message}`);
    }
  }
  if (list === null) return [];
  if (!Array.isArray(list)) return fail(`data.${key}: expected a list, got ${describeKind(list)}`);
  const objects: { value: JsonObject; subject: string }[] = [];
  list.forEach((value, index) => {
    const subject = `${label}: data.${key}[${index}]`;
    if (isJsonObject(value)) objects.push({ value, subject });
    else
      loader.problems.push(
        new OpmateError('INVALID', `expected an object, got ${describeKind(value)}`, { subject }),
      );
  });
  return objects;
}

/** Runs `work`; its errors become problems of the loader. */
function attempt<T>(loader: ManifestLoader, subject: string, work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    loader.problems.push(addContext(error, { subject }));
    return undefined;
  }
}

function toKey({ group, version, kind, plural }: ApiKey): string {
  return JSON.stringify([group, version, kind, plural]);
}

function show({ group, version, kind, plural }: ApiKey): string {
  return `${group}/${version}/${kind} (${plural})`;
}
