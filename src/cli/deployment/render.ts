import { findDuplicates } from '../../bundle/plain/duplicates.js';
import { sortObjects } from '../../kube/object.js';
import { writeObjectDirectory } from '../../bundle/plain/object-directory.js';
import { writeObjects } from '../../bundle/plain/write.js';
import type { PlainObject } from '../../kube/object.js';
import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { type DeploymentOptions, renderDeploymentFile } from './input.js';
import { exitCodes } from '../exit-codes.js';
import { catalogFormat } from '../formats.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';
import { tellFindings, tellWarnings } from '../bundle/findings.js';

interface DeploymentRenderOptions extends DeploymentOptions {
  output?: string;
  outputDir?: string;
}

/**
 * `opmate bundle deployment render`: the manifests that deployments stand for. All that speaks against them goes to
 * stderr, with exit code 3, and nothing is written.
 */
export async function bundleDeploymentRender(context: CommandContext, given: GlobalOptions): Promise<number> {
  const options = given as DeploymentRenderOptions;
  const output = catalogFormat(options.output);
  if (options.outputDir !== undefined && options.output === 'json') {
    throw new UsageError('--output-dir: writes YAML', { hint: 'leave -o json away' });
  }
  return useSession(context, options, async (session) => {
    const objects = await objectsOfDeployments(context, session, options);
    if (objects === undefined) return exitCodes.findings;
    const { signal } = session;
    if (options.outputDir === undefined) {
      await writeAll(context.stdout, writeObjects(objects, output, { signal }), signal);
    } else await writeObjectDirectory(objects, options.outputDir, { signal });
    return exitCodes.done;
  });
}

/**
 * The objects of all deployments that the user named, sorted; undefined where something is wrong, which is told.
 * Warnings, pins and hashes are logged.
 */
export async function objectsOfDeployments(
  context: CommandContext,
  session: CommandSession,
  options: DeploymentOptions,
): Promise<PlainObject[] | undefined> {
  const deployments = await renderDeploymentFile(context, session, options);
  const objects = sortObjects(deployments.flatMap((deployment) => [...deployment.objects]));
  const findings = deployments.flatMap((deployment) => deployment.findings);
  if (findings.length === 0) {
    findings.push(...findDuplicates(objects.filter(({ name }) => name !== '')).findings);
  }
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
