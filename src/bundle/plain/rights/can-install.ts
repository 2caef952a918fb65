import type { Diagnostic } from '../../../core/diagnostic.js';
import { DiagnosticList } from '../../../document/document.js';
import { type Field, warnOfUnknown } from '../../../document/field.js';
import { getObjects, getTexts } from '../../../document/json-fields.js';
import { LimitError } from '../../../core/errors.js';
import type { JsonObject } from '../../../document/json.js';
import type { NeededRule } from './installer.js';
import { type Manifest, openManifest } from '../../../kube/manifests.js';
import { type Right, isRole, iterateTargets, withVerbs } from './rights.js';
import { isResource } from './risks.js';

/** Rules of an account in a namespace; in the whole cluster if it is empty. */
interface HeldRules {
  namespace: string;
  rules: JsonObject[];
}

/** Missing permissions for one resource or URL. */
export type MissingRule = Pick<Right, 'namespace' | 'group' | 'resource' | 'names' | 'verbs'>;

/** A single permission. */
interface Atom {
  verb: string;
  group: string;
  /** Resource, or URL. */
  resource: string;
  isUrl: boolean;
  /** Empty for objects of any name. */
  name: string;
}

const maxAtoms = 1_000_000;

/** Returns the rules of ClusterRoles for the whole cluster, and of Roles for their namespace. */
export function heldRules(manifests: readonly Manifest[]): HeldRules[] {
  return manifests.filter(isRole).map((manifest) => ({
    namespace: manifest.kind === 'Role' ? manifest.namespace : '',
    rules: getObjects(manifest.load(), 'rules'),
  }));
}

/** Returns the wrong types and misspelled fields of roles, which would be read as missing permissions. */
export function checkRoles(manifests: readonly Manifest[]): readonly Diagnostic[] {
  const diagnostics = new DiagnosticList();
  for (const manifest of manifests.filter(isRole)) checkRole(openManifest(manifest, diagnostics));
  return diagnostics.errors;
}

const ruleFields = ['apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;

function checkRole(role: Field): void {
  const fields = role.object(['apiVersion', 'kind', 'metadata', 'rules', 'aggregationRule'], warnOfUnknown);
  for (const rule of fields?.rules.optionalList() ?? []) {
    const read = rule.object(['verbs', ...ruleFields], warnOfUnknown);
    for (const verb of read?.verbs.list() ?? []) verb.text();
    for (const name of ruleFields) read?.[name].optionalTextList();
  }
}

/**
 * Returns the needed permissions that are missing, sorted. As in Kubernetes, every verb on every resource and name must
 * be allowed by one held rule for the namespace or the whole cluster. Throws LimitError.
 */
export function missingRules(needed: readonly NeededRule[], held: readonly HeldRules[]): MissingRule[] {
  return withVerbs(iterateLacking(needed, held), JSON.stringify, maxAtoms);
}

function* iterateLacking(needed: readonly NeededRule[], held: readonly HeldRules[]) {
  let count = 0;
  for (const { namespace, rule, instead } of needed) {
    const rules = held
      .filter((item) => item.namespace === '' || item.namespace === namespace)
      .flatMap((item) => item.rules);
    const isHeld = (atom: Atom): boolean => {
      if (++count > maxAtoms) {
        throw new LimitError(`more than ${maxAtoms} permissions to compare`, {
          hint: 'check that these are the roles of one operator',
        });
      }
      return rules.some((value) => allows(value, atom));
    };
    const lacking = [...iterateAtoms(rule)].filter((atom) => !isHeld(atom));
    if (lacking.length === 0 || (instead !== undefined && [...iterateAtoms(instead)].every(isHeld))) continue;
    for (const { verb, group, resource, name } of lacking) {
      yield [{ namespace, group, resource, names: name === '' ? [] : [name] }, [verb]] as const;
    }
  }
}

function* iterateAtoms(rule: JsonObject): Generator<Atom> {
  const names = getTexts(rule['resourceNames']);
  for (const verb of getTexts(rule['verbs'])) {
    for (const target of iterateTargets(rule)) {
      for (const name of target.isUrl || names.length === 0 ? [''] : names) yield { verb, ...target, name };
    }
  }
}

function allows(rule: JsonObject, { verb, group, resource, isUrl, name }: Atom): boolean {
  const has = (field: string, wanted: string): boolean => {
    const texts = getTexts(rule[field]);
    return texts.includes('*') || texts.includes(wanted);
  };
  if (!has('verbs', verb)) return false;
  if (isUrl) {
    return getTexts(rule['nonResourceURLs']).some(
      (held) => held === resource || (held.endsWith('*') && resource.startsWith(held.slice(0, -1))),
    );
  }
  const names = getTexts(rule['resourceNames']);
  return (
    has('apiGroups', group) &&
    getTexts(rule['resources']).some((held) => isResource(held, resource)) &&
    (names.length === 0 || names.includes(name))
  );
}
