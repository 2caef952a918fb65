import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { useSession } from '../session.js';
import { type ApplyCommandOptions, applyOne, areSound, openKubectl, pausedText } from './approval.js';
import { renderDeploymentFile } from './input.js';

/**
 * `opmate bundle deployment apply`: deployments rendered, shown, and applied once they are approved. Exit code 3 where
 * something speaks against it, and nothing is changed then.
 */
export async function bundleDeploymentApply(context: CommandContext, given: GlobalOptions): Promise<number> {
  const options = given as ApplyCommandOptions;
  if (options.interval !== undefined && options.watch !== true) {
    throw new UsageError('--interval: needs --watch');
  }
  return useSession(context, options, async (session) => {
    const kubectl = openKubectl(context, options, session);
    if (options.watch === true) {
      const { watchDeployments } = await import('./watch.js');
      await watchDeployments(context, kubectl, options, session);
      return exitCodes.done;
    }
    const deployments = await renderDeploymentFile(context, session, options);
    if (!(await areSound(context, session, deployments))) return exitCodes.findings;
    let code: number = exitCodes.done;
    for (const deployment of deployments) {
      if (deployment.isPaused) {
        await writeAll(context.stdout, printable(`${pausedText(deployment)}\n`), session.signal);
      } else {
        const made = await applyOne(context, kubectl, deployment, options, session);
        code = code === exitCodes.done ? made : code;
      }
    }
    return code;
  });
}
