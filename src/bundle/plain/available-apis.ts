import { OpmateError } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { parseYamlFile } from '../../document/document.js';
import { getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import type { PlainObject } from '../../kube/object.js';
import { type Diagnostic, createFault, formatLocation } from '../../core/diagnostic.js';

/** Kinds of a cluster as `group/version/Kind`; the core group is empty. */
type AvailableApis = ReadonlySet<string>;

/**
 * Parses the kinds of a cluster: output of `kubectl api-resources` as table, JSON or YAML, or lines `APIVERSION KIND`.
 * Throws OpmateError INVALID or SYNTAX with file and line.
 */
export function parseAvailableApis(text: string, file: string): AvailableApis {
  const apis = /^\s*\{|^(?:apiVersion|kind|resources):/m.test(text)
    ? fromList(text, file)
    : fromTable(text, file);
  if (apis.size > 0) return apis;
  throw new OpmateError('INVALID', 'no kinds found', { about: file, hint });
}

const hint = 'create it with kubectl api-resources';

function toKey(apiVersion: string, kind: string): string {
  return `${apiVersion.includes('/') ? '' : '/'}${apiVersion}/${kind}`;
}

function fromTable(text: string, file: string): Set<string> {
  const apis = new Set<string>();
  let columns: { apiVersion: number; kind: number; kindEnd: number } | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const heads = ['APIVERSION', 'NAMESPACED', 'KIND'].map((head) => line.indexOf(head));
    if (heads.every((position) => position >= 0)) {
      const [apiVersion = 0, , kind = 0] = heads;
      const verbs = line.indexOf('VERBS');
      columns = { apiVersion, kind, kindEnd: verbs < 0 ? Infinity : verbs };
      continue;
    }
    const words =
      columns === undefined
        ? line.trim().split(/\s+/)
        : [
            line.slice(columns.apiVersion).split(/\s/, 1)[0] ?? '',
            line.slice(columns.kind, columns.kindEnd).trim(),
          ];
    const [apiVersion = '', kind = ''] = words;
    if (words.length !== 2 || !/^[\w.-]+(?:\/[\w.-]+)?$/.test(apiVersion) || !/^\w+$/.test(kind)) {
      const problem = 'expected a line of kubectl api-resources';
      const place = { file, line: index + 1 };
      throw new OpmateError('INVALID', problem, { subject: formatLocation(place), ...place, hint });
    }
    apis.add(toKey(apiVersion, kind));
  }
  return apis;
}

function fromList(text: string, file: string): Set<string> {
  const list = parseYamlFile(text, file, hint);
  if (!Array.isArray(getValue(list, 'resources'))) {
    throw new OpmateError('INVALID', 'resources: expected a list', { about: file, hint });
  }
  const apis = new Set<string>();
  for (const resource of getObjects(list, 'resources')) {
    const version = getText(resource, 'version');
    const kind = getText(resource, 'kind');
    if (version !== '' && kind !== '') apis.add(`${getText(resource, 'group')}/${version}/${kind}`);
  }
  return apis;
}

/**
 * Selects the objects whose kinds are available in a cluster or defined by other objects. Skips other objects of
 * `optional` kinds; the rest are findings.
 */
export function withAvailableApis(
  objects: readonly PlainObject[],
  apis: AvailableApis,
  optional: ReadonlySet<string> | 'all',
): { objects: PlainObject[]; skipped: PlainObject[]; findings: Diagnostic[] } {
  const known = new Set(apis);
  for (const object of objects) {
    if (object.kind !== 'CustomResourceDefinition') continue;
    const { group, names, versions } = getObject(object.load(), 'spec');
    for (const version of getObjects(versions)) {
      known.add(`${getText(group)}/${getText(version, 'name')}/${getText(names, 'kind')}`);
    }
  }
  const available: PlainObject[] = [];
  const skipped: PlainObject[] = [];
  const missing = new Map<string, string[]>();
  for (const object of objects) {
    const { apiVersion, kind, name } = object;
    if (known.has(toKey(apiVersion, kind))) available.push(object);
    else if (optional === 'all' || optional.has(kind)) skipped.push(object);
    else pushTo(missing, `${apiVersion} ${kind}`, `"${name}"`);
  }
  const findings = sortedByBytes(missing.keys()).map((api) => {
    const problem = `kind missing in the cluster, required by ${missing.get(api)?.join(', ')}`;
    const kind = api.split(' ')[1];
    return createFault('missing-kind', problem, {
      subject: api,
      hint: `install its definition first, or omit it with options.optionalKinds=${kind}`,
    });
  });
  return { objects: available, skipped, findings };
}
