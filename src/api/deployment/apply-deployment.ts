import { isClusterKind } from '../../bundle/plain/cluster-scope.js';
import { sleep } from '../../core/concurrency.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { type ApplyReport, applyPlan } from '../../cluster/apply.js';
import { type Applicable, type ApplyOptions, type ApplyPlan, planApply } from '../../cluster/plan-apply.js';
import { describeId, toKey } from '../../cluster/objects.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import { quoteGo } from '../../document/go-json.js';
import type { Cluster } from './cluster.js';

/** Options of changing a cluster. */
export interface ApplyDeploymentOptions {
  /**
   * Approves a plan before anything is changed: hashes of reviewed renders, with or without `sha256:`, or a function
   * that returns whether to apply it.
   */
  approve: readonly string[] | ((plan: ApplyPlan) => boolean | Promise<boolean>);
  /** Called with the plan before it is approved. */
  onPlanned?: ((plan: ApplyPlan) => void | Promise<void>) | undefined;
  /** Take over fields that others manage; default false. */
  forceConflicts?: boolean | undefined;
  /** Also delete orphaned CRDs and namespaces, with all that is in them; default false. */
  force?: boolean | undefined;
}

/** Outcome of a deployment. Nothing was changed unless it is `applied`. */
export type AppliedDeployment =
  | { state: 'applied'; plan: ApplyPlan; report: ApplyReport }
  | { state: 'declined'; plan: ApplyPlan }
  /** The document asks that nothing be changed. */
  | { state: 'paused' }
  /** `plan` is undefined for a render with findings. */
  | { state: 'refused'; plan: ApplyPlan | undefined; findings: readonly Diagnostic[] };

/**
 * Plans what a rendered deployment changes on a cluster, and applies it once approved, by server-side apply; orphaned
 * objects of the revision before are pruned. The next run repairs an interrupted one. Throws OpmateError for
 * a cluster that is unavailable, and for objects that it refuses.
 */
export async function applyDeployment(
  deployment: RenderedDeployment,
  cluster: Cluster,
  options: ApplyDeploymentOptions,
): Promise<AppliedDeployment> {
  const { findings, isPaused } = deployment;
  if (findings.length > 0) return { state: 'refused', plan: undefined, findings };
  if (isPaused) return { state: 'paused' };
  return applyRender(deployment, cluster, options);
}

/** Applies a render as a new revision, `rollbackTo` where it is that of an earlier one. */
export async function applyRender(
  deployment: Applicable,
  cluster: Cluster,
  { approve, onPlanned, ...settings }: ApplyDeploymentOptions & Pick<ApplyOptions, 'rollbackTo'>,
): Promise<AppliedDeployment> {
  const { kubectl } = cluster;
  const how = getApplyOptions(cluster, settings);
  const plan = await planApply(kubectl, deployment, how);
  if (plan.findings.length > 0) return { state: 'refused', plan, findings: plan.findings };
  await onPlanned?.(plan);
  if (typeof approve === 'function') {
    if (!(await approve(plan))) return { state: 'declined', plan };
  } else {
    const mismatch = findApprovalFault(deployment, approve);
    if (mismatch !== undefined) return { state: 'refused', plan, findings: [mismatch] };
  }
  return { state: 'applied', plan, report: await applyPlan(kubectl, plan, how) };
}

/** Returns how the lower room applies: with time and signal of the session. */
export function getApplyOptions(
  { session: { now, logger, signal } }: Cluster,
  {
    forceConflicts = false,
    force = false,
    rollbackTo,
  }: Omit<ApplyDeploymentOptions, 'approve'> & Pick<ApplyOptions, 'rollbackTo'>,
): ApplyOptions {
  return {
    ...{ forceConflicts, force, now, sleep, logger, signal },
    ...(rollbackTo !== undefined && { rollbackTo }),
  };
}

/** Returns why a render is not among the approved ones; undefined if it is. */
export function findApprovalFault(
  { name, hash }: Pick<Applicable, 'name' | 'hash'>,
  approved: readonly string[],
): Diagnostic | undefined {
  const bare = (text: string): string => text.replace(/^sha256:/, '');
  if (approved.some((text) => bare(text) === bare(hash))) return undefined;
  const problem = `hash ${hash} is not approved (approved: ${approved.join(', ')})`;
  const hint = 'review the changes, then approve their hash';
  return createFault('not-approved', problem, { subject: name, hint });
}

/**
 * Returns the problems of applying these deployments together: their findings, duplicate names in a namespace and, if
 * there are none of these, objects that several deployments contain.
 */
export function checkDeployments(deployments: readonly RenderedDeployment[]): Diagnostic[] {
  const findings = deployments.flatMap((deployment) => deployment.findings);
  const places = deployments.map(({ name, installNamespace }) => `${installNamespace}/${name}`);
  const twice = new Set(places.filter((place, index) => places.indexOf(place) !== index));
  for (const place of twice) {
    const hint = 'rename one of them: each would undo the other';
    const problem = 'two deployments of this name are installed in one namespace';
    findings.push(createFault('duplicate-deployment', problem, { subject: place, hint }));
  }
  return findings.length > 0 ? findings : findSharedObjects(deployments);
}

/** Finds objects that several deployments have and would each overwrite. */
function findSharedObjects(deployments: readonly RenderedDeployment[]): Diagnostic[] {
  const owners = new Map<string, string>();
  const findings: Diagnostic[] = [];
  for (const { name: owner, installNamespace, objects } of deployments) {
    for (const object of objects) {
      const { apiVersion, kind, name } = object;
      const namespace = object.namespace || (isClusterKind(kind) ? '' : installNamespace);
      const id = { apiVersion, kind, name, namespace };
      const other = owners.get(toKey(id));
      if (name === '') continue;
      if (other === undefined) owners.set(toKey(id), owner);
      else if (other !== owner) {
        const problem = `is in the deployments ${quoteGo(other)} and ${quoteGo(owner)}`;
        const hint = 'remove it from one of them';
        findings.push(createFault('duplicate-object', problem, { subject: describeId(id), hint }));
      }
    }
  }
  return findings;
}
