import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';
import { getObject } from '../../../document/json-fields.js';
import { quoteGo } from '../../../document/go-json.js';
import { compareBytes } from '../../../core/order.js';
import { conform } from '../../../kube/struct.js';
import { crdStruct } from '../../../kube/crd-types.js';
import { type Manifest, getTitle, locateIn } from '../../../kube/manifests.js';
import {
  type Diagnostic,
  type DocumentPath,
  createFault,
  createWarning,
  formatMessage,
} from '../../../core/diagnostic.js';
import { schemaChanges } from './schema-changes.js';

/** A change that may break objects or users of a definition; `code` is the preflight check. */
export interface CrdDiagnostic extends Diagnostic {
  /** Name of the definition. */
  crd: string;
  /** `v1`, or `v1 -> v2` between served versions; undefined for the whole definition. */
  version?: string | undefined;
  /** Path of the property, starting with `^`. */
  property?: string | undefined;
}

interface Version {
  name: string;
  isServed: boolean;
  isStored: boolean;
  schemas: ReadonlyMap<string, SchemaAt>;
}

interface Definition {
  manifest: Manifest;
  scope: string;
  isConverted: boolean;
  storedVersions: string[];
  versions: Version[];
}

/**
 * Checks whether a custom resource definition can replace another, by the preflight rules of operator-controller:
 * existing objects must stay valid, in every common version and between served versions unless a webhook converts them.
 * Ignores faults between served versions that the old definition had too. Only the status of a definition on a cluster
 * has its stored versions; see `storedVersionWarnings`.
 */
export function compareCrds(old: Manifest, next: Manifest): CrdDiagnostic[] {
  const faults = [old, next].flatMap(getTypeFaults);
  if (faults.length > 0) return faults;
  const [before, after] = [getDefinition(old), getDefinition(next)];
  const findings: CrdDiagnostic[] = [];
  const report = (check: string, detail: string, place: DocumentPath): void =>
    void findings.push(createCrdFault(next, check, `${check}: ${detail}`, place));
  if (before.scope !== after.scope) {
    report('scope', `changed: ${quoteGo(before.scope)} -> ${quoteGo(after.scope)}`, ['spec', 'scope']);
  }
  for (const version of before.versions) {
    const other = after.versions.find(({ name }) => name === version.name);
    if (other === undefined) continue;
    for (const path of version.schemas.keys()) {
      if (other.schemas.has(path)) continue;
      report(
        'existingFieldRemoval',
        `removed field: ${version.name}.${path}`,
        findPlace(other.schemas, path),
      );
    }
  }
  for (const name of before.storedVersions) {
    if (after.versions.some((version) => version.name === name)) continue;
    report('storedVersionRemoval', `objects may be stored in version ${name}, which is gone`, versionsPath);
  }
  for (const version of before.versions) {
    const other = after.versions.find(({ name }) => name === version.name);
    if (other !== undefined) findings.push(...versionFindings(next, version.name, version, other));
  }
  return [...findings, ...servedFindings(before, after)];
}

/**
 * Warns of storage versions of a definition without status that the new definition lacks: clusters may have objects of
 * that version. Requires definitions without type faults.
 */
export function storedVersionWarnings(old: Manifest, next: Manifest): Diagnostic[] {
  const [before, after] = [getDefinition(old), getDefinition(next)];
  if (before.storedVersions.length > 0) return [];
  return before.versions
    .filter(({ name, isStored }) => isStored && !after.versions.some((version) => version.name === name))
    .map(({ name }) =>
      createWarning('stored-version', `version ${name}, which was stored, is gone`, {
        ...locateIn(next, versionsPath),
        hint: `migrate stored objects first, until status.storedVersions on the cluster no longer contains ${name}`,
      }),
    );
}

const versionsPath = ['spec', 'versions'] as const;

function createCrdFault(
  crd: Manifest,
  code: string,
  problem: string,
  path: DocumentPath,
  hint?: string,
): CrdDiagnostic {
  return { ...createFault(code, problem, { ...locateIn(crd, path), hint }), crd: crd.name };
}

function getTypeFaults(crd: Manifest): CrdDiagnostic[] {
  if (crd.apiVersion !== 'apiextensions.k8s.io/v1') {
    return [createCrdFault(crd, 'form', `apiVersion ${crd.apiVersion} is not supported`, ['apiVersion'])];
  }
  return conform(crd.load(), crdStruct).faults.map(({ message, path, hint }) =>
    createCrdFault(crd, 'form', message, path, hint),
  );
}

function getDefinition(manifest: Manifest): Definition {
  const { spec, status } = conform(manifest.load(), crdStruct).value;
  const versions = (spec.versions ?? []).map((version, index): Version => {
    const schema = version.schema?.openAPIV3Schema;
    const place = ['spec', 'versions', index, 'schema', 'openAPIV3Schema'];
    return {
      name: version.name,
      isServed: version.served,
      isStored: version.storage,
      schemas: schema === undefined ? new Map<string, SchemaAt>() : schemaPaths(schema, place),
    };
  });
  return {
    manifest,
    scope: spec.scope,
    isConverted: spec.conversion?.strategy === 'Webhook',
    storedVersions: status.storedVersions ?? [],
    versions,
  };
}

/** Compares the properties of the old schema. */
function versionFindings(manifest: Manifest, label: string, old: Version, next: Version): CrdDiagnostic[] {
  return [...old.schemas].flatMap(([property, { schema }]) => {
    const other = next.schemas.get(property);
    const place = other?.place ?? findPlace(next.schemas, property);
    return schemaChanges(schema, other?.schema ?? {}).map(({ check, detail }): CrdDiagnostic => ({
      ...createCrdFault(manifest, check, `${check}: ${detail}`, place),
      subject: `${getTitle(manifest)}: ${label}: ${property}`,
      version: label,
      property,
    }));
  });
}

/** Returns the place of the nearest existing parent of a path. */
function findPlace(schemas: ReadonlyMap<string, SchemaAt>, path: string): DocumentPath {
  for (let parent = path; parent !== ''; parent = parent.slice(0, Math.max(0, parent.lastIndexOf('.')))) {
    const schema = schemas.get(parent);
    if (schema !== undefined) return schema.place;
  }
  return versionsPath;
}

/** Compares served versions: without a webhook, an object is read in all of them. */
function servedFindings(before: Definition, after: Definition): CrdDiagnostic[] {
  if (after.isConverted) return [];
  const known = new Set(betweenServed(before).map(formatMessage));
  return betweenServed(after).filter((diagnostic) => !known.has(formatMessage(diagnostic)));
}

function betweenServed({ manifest, versions }: Definition): CrdDiagnostic[] {
  const served = versions
    .filter(({ isServed }) => isServed)
    .sort((a, b) => compareVersionNames(a.name, b.name));
  return served.flatMap((old, index) =>
    served
      .slice(index + 1)
      .flatMap((next) => versionFindings(manifest, `${old.name} -> ${next.name}`, old, next)),
  );
}

/** Compares versions as Kubernetes does, oldest first: other names, alpha, beta, stable. */
function compareVersionNames(a: string, b: string): number {
  const [left, right] = [getRank(a), getRank(b)];
  for (const [index, value] of left.entries()) {
    const other = right[index] as number;
    if (value !== other) return value - other;
  }
  return left[0] === 0 ? compareBytes(b, a) : 0;
}

function getRank(name: string): [number, number, number] {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(name);
  if (match === null) return [0, 0, 0];
  const stability = match[2] === undefined ? 3 : match[2] === 'beta' ? 2 : 1;
  return [stability, Number(match[1]), Number(match[3] ?? 0)];
}

/** A nested schema. */
interface SchemaAt {
  schema: JsonObject;
  /** Path in its document. */
  place: (string | number)[];
}

/** Keywords with one schema. */
const single = ['items', 'additionalProperties', 'additionalItems', 'not'] as const;
const lists = ['allOf', 'anyOf', 'oneOf', 'items'] as const;
const maps = ['patternProperties', 'definitions', 'dependencies'] as const;

/**
 * Returns all schemas in a schema by their paths, as the preflight of operator-controller writes them: `^` is the root,
 * `^.spec.items` the items of its property `spec`.
 */
function schemaPaths(root: JsonObject, place: readonly (string | number)[]): Map<string, SchemaAt> {
  const schemas = new Map<string, SchemaAt>();
  const visit = (value: JsonValue | undefined, path: string, where: (string | number)[]): void => {
    if (!isJsonObject(value)) return;
    schemas.set(path, { schema: value, place: where });
    for (const keyword of single) visit(value[keyword], `${path}.${keyword}`, [...where, keyword]);
    for (const keyword of lists) {
      const list = value[keyword];
      if (!Array.isArray(list)) continue;
      list.forEach((item, index) => visit(item, `${path}.${keyword}[${index}]`, [...where, keyword, index]));
    }
    for (const keyword of maps) {
      for (const [name, item] of Object.entries(getObject(value, keyword))) {
        visit(item, `${path}.${keyword}[${name}]`, [...where, keyword, name]);
      }
    }
    for (const [name, item] of Object.entries(getObject(value, 'properties'))) {
      visit(item, `${path}.${name}`, [...where, 'properties', name]);
    }
  };
  visit(root, '^', [...place]);
  return schemas;
}
