import { type JsonObject, asJson } from '../../document/json.js';
import type { Adoption } from './adopt.js';
import type { ApplyReport } from './apply.js';
import type { DeletionPlan } from '../delete/plan-delete.js';
import type { ApplyPlan } from './plan-types.js';
import type { UnreadyObject } from '../readiness.js';

const apiVersion = 'opmate.dev/v1alpha1';

/** Returns a plan as data, in the form of a Kubernetes object. */
export function toPlanDocument(plan: ApplyPlan, adoption?: Adoption): JsonObject {
  const { deployment, place, current, isCurrent, changes, omitted, findings, objects, approval } = plan;
  const { version, packageName, bundleName, hash, pins, choice } = deployment;
  return asJson({
    apiVersion,
    kind: 'DeploymentPlan',
    metadata: { name: place.name, namespace: place.namespace },
    spec: {
      ...(packageName !== undefined && { package: packageName }),
      ...(bundleName !== undefined && { bundle: bundleName }),
      ...(version !== undefined && { version }),
      ...(choice !== undefined && { choice }),
      render: hash,
      approval,
      sources: pins.map(({ type, ref, content }) => ({ type, ref, content })),
      current: current === undefined ? null : { revision: current.revision, version: current.version ?? '' },
      isCurrent,
      objects: objects.length,
      changes: changes.map(({ id, change, fields, owner }) => ({
        ...id,
        change,
        ...(owner !== undefined && { owner }),
        ...(fields.length > 0 && { fields }),
      })),
      omitted,
      ...(adoption !== undefined && { adoption }),
    },
    ...(findings.length > 0 && { findings }),
  }) as JsonObject;
}

/** Returns the result of an apply as data. */
export function toReportDocument(
  { place, deployment: { version } }: ApplyPlan,
  report: ApplyReport,
  unready: readonly UnreadyObject[],
): JsonObject {
  const { revision, ...objects } = report;
  return asJson({
    apiVersion,
    kind: 'DeploymentReport',
    metadata: { name: place.name, namespace: place.namespace },
    status: {
      revision: revision ?? null,
      ...(version !== undefined && { version }),
      ...objects,
      unready,
    },
  }) as JsonObject;
}

/** Returns the plan of a deletion as data. */
export function toDeletionDocument({
  place,
  steps,
  instances,
  approval,
  findings,
}: DeletionPlan): JsonObject {
  return asJson({
    apiVersion,
    kind: 'DeletionPlan',
    metadata: { name: place.name, namespace: place.namespace },
    spec: { approval, steps: steps.map(({ id, ...step }) => ({ ...id, ...step })), instances },
    ...(findings.length > 0 && { findings }),
  }) as JsonObject;
}
