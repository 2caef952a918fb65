import { quoteGo } from '../../../document/go-json.js';
import { compareBytes } from '../../../core/order.js';
import { conform } from '../../../kube/struct.js';
import { crdStruct } from '../../../kube/crd-types.js';
import { type Manifest, getTitle } from '../../../kube/manifests.js';
import { type Diagnostic, createWarning, formatMessage } from '../../../core/diagnostic.js';
import { schemaChanges } from './schema-changes.js';
import { type SchemaAt, schemaPaths } from './schema-paths.js';

/** Something that may break objects or users of a definition when it is upgraded; `code` is the preflight check. */
export interface CrdDiagnostic extends Diagnostic {
  /** Name of the definition. */
  crd: string;
  /** `v1`, or `v1 -> v2` between two served versions; missing for what concerns the whole definition. */
  version?: string | undefined;
  /** Path of the property, beginning with `^`. */
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
 * Whether a custom resource definition may take the place of another, by the preflight rules of
 * operator-controller: nothing that exists may become invalid, in any version that both have, nor between served
 * versions unless a webhook converts them. What an older definition had wrong already does not count again.
 * Which versions are stored only the status of a definition on a cluster tells; see `storedVersionWarnings`.
 */
export function checkCrdUpgrade(old: Manifest, next: Manifest): CrdDiagnostic[] {
  const faults = [old, next].flatMap((crd) => formFindings(crd));
  if (faults.length > 0) return faults;
  const [before, after] = [getDefinition(old), getDefinition(next)];
  const findings: CrdDiagnostic[] = [];
  const tell = (check: string, detail: string, place: readonly (string | number)[]): number =>
    findings.push({
      severity: 'error',
      code: check,
      crd: next.name,
      subject: getTitle(next),
      problem: `${check}: ${detail}`,
      file: next.file,
      line: next.lineOf(place),
    });
  if (before.scope !== after.scope) {
    tell('scope', `changed: ${quoteGo(before.scope)} -> ${quoteGo(after.scope)}`, ['spec', 'scope']);
  }
  for (const version of before.versions) {
    const other = after.versions.find(({ name }) => name === version.name);
    if (other === undefined) continue;
    for (const path of version.schemas.keys()) {
      if (other.schemas.has(path)) continue;
      tell('existingFieldRemoval', `removed field: ${version.name}.${path}`, findPlace(other.schemas, path));
    }
  }
  for (const name of before.storedVersions) {
    if (after.versions.some((version) => version.name === name)) continue;
    tell('storedVersionRemoval', `objects may be stored in version ${name}, which is gone`, [
      'spec',
      'versions',
    ]);
  }
  for (const version of before.versions) {
    const other = after.versions.find(({ name }) => name === version.name);
    if (other !== undefined) findings.push(...versionFindings(next, version.name, version, other));
  }
  return [...findings, ...servedFindings(before, after)];
}

/**
 * Versions that a definition without a status says to store, and that the newer one has no more: on a cluster
 * that has it, there may be objects which nothing can read then. Only for pairs that `checkCrdUpgrade` can read.
 */
export function storedVersionWarnings(old: Manifest, next: Manifest): Diagnostic[] {
  const [before, after] = [getDefinition(old), getDefinition(next)];
  if (before.storedVersions.length > 0) return [];
  return before.versions
    .filter(({ name, isStored }) => isStored && !after.versions.some((version) => version.name === name))
    .map(({ name }) =>
      createWarning('stored-version', `version ${name}, which was stored, is gone`, {
        subject: getTitle(next),
        file: next.file,
        line: next.lineOf(['spec', 'versions']),
        hint: `migrate stored objects first, until status.storedVersions on the cluster no longer contains ${name}`,
      }),
    );
}

/** Comparing what is no definition of the known version would tell nothing. */
function formFindings(crd: Manifest): CrdDiagnostic[] {
  const tell = (problem: string, path: readonly (string | number)[]): CrdDiagnostic => ({
    severity: 'error',
    code: 'form',
    crd: crd.name,
    subject: getTitle(crd),
    problem,
    file: crd.file,
    line: crd.lineOf(path),
  });
  if (crd.apiVersion !== 'apiextensions.k8s.io/v1') {
    return [tell(`apiVersion ${crd.apiVersion} is not supported`, ['apiVersion'])];
  }
  return conform(crd.load(), crdStruct).faults.map(({ message, path }) => tell(message, path));
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

/** What breaks between two schemas; only what the older has can break. */
function versionFindings(manifest: Manifest, label: string, old: Version, next: Version): CrdDiagnostic[] {
  const findings: CrdDiagnostic[] = [];
  for (const [path, { schema }] of old.schemas) {
    const other = next.schemas.get(path);
    for (const { check, detail } of schemaChanges(schema, other?.schema ?? {})) {
      findings.push({
        severity: 'error',
        code: check,
        crd: manifest.name,
        version: label,
        property: path,
        subject: `${getTitle(manifest)}: ${label}: ${path}`,
        problem: `${check}: ${detail}`,
        file: manifest.file,
        line: manifest.lineOf(other?.place ?? findPlace(next.schemas, path)),
      });
    }
  }
  return findings;
}

/** The place of the innermost part on the way to a path that is not there. */
function findPlace(schemas: ReadonlyMap<string, SchemaAt>, path: string): readonly (string | number)[] {
  for (let where = path; where !== ''; where = where.slice(0, Math.max(0, where.lastIndexOf('.')))) {
    const schema = schemas.get(where);
    if (schema !== undefined) return schema.place;
  }
  return ['spec', 'versions'];
}

/** Without a webhook, an object is read in every served version, so that each must hold what older ones hold. */
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

/** Versions as Kubernetes orders them, oldest first: names of another form, alpha, beta, stable. */
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
