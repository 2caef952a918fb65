import { checkDuplicates } from '../../bundle/plain/duplicates.js';
import { Report } from '../../bundle/report.js';
import { type PlainObject, sortObjects } from '../../kube/object.js';
import type { CommandContext } from '../context.js';
import { tellFindings, tellWarnings } from '../bundle/findings.js';
import type { CommandSession } from '../session.js';
import { type DeploymentOptions, renderDeploymentFile } from './input.js';

/** Returns the sorted objects of all deployments; undefined after printing findings. Logs warnings, pins and hashes. */
export async function objectsOfDeployments(
  context: CommandContext,
  session: CommandSession,
  options: DeploymentOptions,
): Promise<PlainObject[] | undefined> {
  const deployments = await renderDeploymentFile(context, session, options);
  const objects = sortObjects(deployments.flatMap((deployment) => [...deployment.objects]));
  const report = new Report();
  const { findings } = report;
  for (const deployment of deployments) report.add(deployment);
  if (findings.length === 0) checkDuplicates(objects, report);
  tellWarnings(
    session,
    deployments.flatMap(({ warnings }) => warnings),
  );
  for (const { name, isPaused, pins, hash, installNamespace } of deployments) {
    if (isPaused) session.logger.log('info', `${name}: is paused, so that nothing would be applied`);
    if (hash === '') continue;
    for (const pin of pins) session.logger.log('info', `${pin.name}: ${pin.ref}`, { content: pin.content });
    session.logger.log('info', `${name}: rendered`, { namespace: installNamespace || undefined, hash });
  }
  session.logger.close();
  if (findings.length === 0) return objects;
  await tellFindings(context, findings);
  return undefined;
}
