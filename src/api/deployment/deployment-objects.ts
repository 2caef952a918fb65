import { stat } from 'node:fs/promises';
import { checkDuplicates } from '../../bundle/plain/duplicates.js';
import { readPlainDirectory, readPlainFiles } from '../../bundle/plain/plain-directory.js';
import { Report } from '../../bundle/report.js';
import { computeApproval } from '../../cluster/apply/plan-apply.js';
import { type ChangedObject, diffObjects } from '../../cluster/documents/diff.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { throwFileError } from '../../core/errors.js';
import { readInputFile } from '../../files/read-file.js';
import { type PlainObject, sortObjects } from '../../kube/object.js';
import type { Session } from '../../source/session.js';
import { inSource } from '../bundle/bundle-sources.js';

/** Objects of several deployments. */
export interface DeploymentObjects {
  /** Sorted by kind, namespace and name. */
  objects: PlainObject[];
  /** Findings of the deployments; without any, objects that two of them define differently. */
  findings: Diagnostic[];
  /** Per deployment, the hash that approves its first apply; undefined without an install namespace. */
  approvals: (string | undefined)[];
}

/** Collects the objects of rendered deployments, as one list of manifests. */
export function collectDeploymentObjects(deployments: readonly RenderedDeployment[]): DeploymentObjects {
  const objects = sortObjects(deployments.flatMap((deployment) => [...deployment.objects]));
  const report = new Report();
  for (const { findings } of deployments) report.add({ findings });
  if (report.findings.length === 0) checkDuplicates(objects, report);
  return {
    objects,
    findings: report.findings,
    approvals: deployments.map(({ name, installNamespace: namespace, hash }) =>
      namespace === '' ? undefined : computeApproval({ name, namespace }, hash),
    ),
  };
}

/**
 * Compares objects with an earlier render: a file, or a directory of manifests. Returns no changes if that has findings.
 * Throws OpmateError for a render that cannot be read.
 */
export async function diffRender(
  place: string,
  newer: readonly PlainObject[],
  session: Session,
): Promise<{ changes: ChangedObject[]; findings: Diagnostic[] }> {
  const { objects, findings } = await readRender(place, session);
  const { signal } = session;
  return { changes: findings.length > 0 ? [] : diffObjects(objects, newer, { signal }), findings };
}

async function readRender(
  place: string,
  { signal, followLinks }: Session,
): Promise<{ objects: PlainObject[]; findings: Diagnostic[] }> {
  const stats = await stat(place).catch(throwFileError(place));
  if (stats.isDirectory()) {
    const { objects, findings } = await readPlainDirectory(place, { signal, followLinks });
    return { objects, findings: findings.map(inSource(place, true)) };
  }
  return readPlainFiles([{ name: place, content: await readInputFile(place, { signal }) }]);
}
