import { type JsonObject, asJson } from '../../document/json.js';
import type { Adoption } from '../../cluster/apply/adopt.js';
import type { ApplyReport } from '../../cluster/apply/apply.js';
import type { DeletionPlan } from '../../cluster/delete/plan-delete.js';
import type { ApplyPlan } from '../../cluster/apply/plan-types.js';
import type { DeploymentStatus } from '../../cluster/status.js';
import type { UnreadyObject } from '../../cluster/readiness.js';

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

/** Returns a status as an object in the form of Kubernetes, for controllers and scripts. */
export function toStatusObject(status: DeploymentStatus): JsonObject {
  const { name, namespace, current, last, conditions, unready, drift, objects } = status;
  return {
    apiVersion,
    kind: 'DeploymentStatus',
    metadata: { name, namespace },
    status: {
      conditions: conditions.map((condition) => ({ ...condition })),
      ...(current !== undefined && {
        install: {
          bundle: { name: current.bundleName ?? current.packageName ?? name, version: current.version ?? '' },
          revision: current.revision,
          time: current.time,
          sources: current.pins.map(({ type, ref, content }) => ({ type, ref, content })),
        },
      }),
      ...(last !== undefined &&
        last.result === 'failed' && {
          lastFailure: { revision: last.revision, time: last.time, reason: last.reason ?? '' },
        }),
      objects,
      unready: unready.map((object) => ({ ...object })),
      drift: drift.map(({ id, change, fields }) => ({
        ...id,
        change,
        fields: fields.map(({ path, old, new: now, managers }) => ({
          path,
          ...(now !== undefined && { applied: now }),
          ...(old !== undefined && { live: old }),
          managers: managers.map((manager) => ({ ...manager })),
        })),
      })),
    },
  };
}
