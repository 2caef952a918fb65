import { isClusterKind } from '../../bundle/plain/cluster-scope.js';
import { type Impact, getImpacts } from '../../bundle/plain/rights/impact.js';
import { type Right, getRights } from '../../bundle/plain/rights/rights.js';
import { sleep } from '../../core/concurrency.js';
import { computeDigest } from '../../core/digest.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { invalidValue } from '../../core/errors.js';
import { type Adoption, beginAdoption, finishAdoption, planAdoption } from '../../cluster/apply/adopt.js';
import { type ApplyReport, applyPlan } from '../../cluster/apply/apply.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import { describeId, toKey } from '../../cluster/objects.js';
import { planApply } from '../../cluster/apply/plan-apply.js';
import type { Applicable, ApplyOptions, ApplyPlan } from '../../cluster/apply/plan-types.js';
import { type UnreadyObject, waitUntilReady } from '../../cluster/readiness.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { asJson } from '../../document/json.js';
import { labelValueFaults } from '../../kube/names.js';
import { generated } from '../../kube/object.js';
import type { Cluster } from './cluster.js';

/** Options of planning changes of a cluster. */
export interface PlanDeploymentOptions extends Pick<
  ApplyOptions,
  'heal' | 'takeOver' | 'adopt' | 'optionalKinds' | 'isCrdUpgradeChecked' | 'force' | 'set'
> {
  /** Take over fields that others manage; the same as `heal: 'all'`. */
  forceConflicts?: boolean | undefined;
}

/** Options of changing a cluster. */
export interface ApplyDeploymentOptions extends PlanDeploymentOptions {
  /**
   * Approves a plan before anything is changed: approval hashes of reviewed plans, with or without `sha256:`, or a
   * function that returns whether to apply it.
   */
  approve: readonly string[] | ((plan: ApplyPlan) => boolean | Promise<boolean>);
  /** Called with the plan before it is approved. */
  onPlanned?: ((plan: ApplyPlan, adoption: Adoption | undefined) => void | Promise<void>) | undefined;
  /** Wait until all objects are ready, at most this time in milliseconds; default: do not wait. */
  waitMs?: number | undefined;
  /** Called while waiting with the objects that are not ready. */
  onProgress?: ((unready: readonly UnreadyObject[]) => void) | undefined;
}

/** Outcome of a deployment. Nothing was changed unless it is `applied`. */
export type AppliedDeployment =
  | {
      state: 'applied';
      plan: ApplyPlan;
      report: ApplyReport;
      /** Objects that were not ready within `waitMs`; empty without it. */
      unready: readonly UnreadyObject[];
    }
  | { state: 'declined'; plan: ApplyPlan }
  /** The document asks that nothing be changed. */
  | { state: 'paused' }
  /** `plan` is undefined for a render with findings. */
  | { state: 'refused'; plan: ApplyPlan | undefined; findings: readonly Diagnostic[] };

/**
 * Plans what a rendered deployment changes on a cluster: objects compared with those that exist, removals, and problems.
 * Changes nothing. Throws OpmateError USAGE for a set that is no label value, and OpmateError for a cluster that is
 * unavailable.
 */
export async function planDeployment(
  deployment: Applicable,
  cluster: Cluster,
  options: PlanDeploymentOptions = {},
): Promise<{ plan: ApplyPlan; adoption: Adoption | undefined }> {
  checkSet(options.set);
  const { kubectl } = cluster;
  const plan = await planApply(kubectl, deployment, getApplyOptions(cluster, options));
  if (options.adopt === undefined || plan.findings.length > 0) return { plan, adoption: undefined };
  const adoption = await planAdoption(kubectl, plan);
  plan.approval = computeDigest(encodeGoJson(asJson({ plan: plan.approval, adoption })));
  return { plan, adoption };
}

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
  {
    approve,
    onPlanned,
    waitMs,
    onProgress,
    ...settings
  }: ApplyDeploymentOptions & Pick<ApplyOptions, 'rollbackTo'>,
): Promise<AppliedDeployment> {
  const { kubectl } = cluster;
  const { plan, adoption } = await planDeployment(deployment, cluster, settings);
  if (plan.findings.length > 0) return { state: 'refused', plan, findings: plan.findings };
  await onPlanned?.(plan, adoption);
  if (typeof approve === 'function') {
    if (!(await approve(plan))) return { state: 'declined', plan };
  } else {
    const mismatch = findApprovalFault(plan.place.name, plan.approval, approve);
    if (mismatch !== undefined) return { state: 'refused', plan, findings: [mismatch] };
  }
  if (adoption !== undefined) await beginAdoption(kubectl, plan, adoption);
  const report = await applyPlan(kubectl, plan, getApplyOptions(cluster, settings));
  if (adoption !== undefined) await finishAdoption(kubectl, plan, adoption);
  const unready =
    waitMs === undefined
      ? []
      : await waitUntilReady(
          kubectl,
          plan.objects,
          deployment.healthChecks ?? [],
          getWaitOptions(cluster, waitMs, onProgress),
        );
  return { state: 'applied', plan, report, unready };
}

/** Throws UsageError for the name of a set that no object can have as a label. */
export function checkSet(set: string | undefined): void {
  if (set !== undefined && labelValueFaults(set).length > 0)
    throw invalidValue('options.set', set, 'not a label value');
}

/** Returns the permissions that the objects of a plan have, and their effects on the cluster beyond these. */
export function getPlanAccess({ objects, place }: ApplyPlan): { rights: Right[]; impacts: Impact[] } {
  const plain = objects.map(({ value }) => generated(value, 'plan'));
  return { rights: getRights(plain), impacts: getImpacts(plain, place.namespace) };
}

/** Returns how the lower room waits: with time and signal of the session. */
export function getWaitOptions(
  { session: { now, signal } }: Cluster,
  timeoutMs: number,
  onProgress?: (unready: readonly UnreadyObject[]) => void,
): Parameters<typeof waitUntilReady>[3] {
  return { timeoutMs, now, sleep, signal, onProgress };
}

/** Returns how the lower room applies: with time and signal of the session. */
export function getApplyOptions(
  { session: { now, logger, signal } }: Cluster,
  { forceConflicts = false, heal, ...settings }: PlanDeploymentOptions & Pick<ApplyOptions, 'rollbackTo'>,
): ApplyOptions {
  return { ...settings, heal: forceConflicts ? 'all' : (heal ?? 'report'), now, sleep, logger, signal };
}

/** Returns why a plan is not among the approved ones; undefined if it is. */
export function findApprovalFault(
  name: string,
  approval: string,
  approved: readonly string[],
): Diagnostic | undefined {
  const bare = (text: string): string => text.replace(/^sha256:/, '');
  if (approved.some((text) => bare(text) === bare(approval))) return undefined;
  const problem = `hash ${approval} is not approved (approved: ${approved.join(', ')})`;
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
