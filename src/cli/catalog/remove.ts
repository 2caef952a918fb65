import { planRemove } from '../../catalog/edit/plan-remove.js';
import { quoteGo } from '../../document/go-json.js';
import { editCatalog } from './edit.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { requireFlag } from '../options.js';
import { useSession } from '../session.js';

interface CatalogRemoveOptions extends GlobalOptions {
  dryRun?: boolean;
  force?: boolean;
  package?: string;
  bundle?: string[];
  channel?: string[];
  defaultChannel?: string;
}

/**
 * `opmate catalog remove`: bundles, channels or a package leave a catalog directory. Where clusters would lose their way
 * to the head, it lists them and ends with exit code 3, unless it is forced.
 */
export async function catalogRemove(
  context: CommandContext,
  directory: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as CatalogRemoveOptions;
  const name = requireFlag(options.package, 'package');
  const { bundle: bundles, channel: channels, defaultChannel } = options;
  const isForced = options.force === true;
  return useSession(context, options, (session) =>
    editCatalog(context, session, directory, options, (catalog) => {
      const plan = planRemove(catalog, { package: name, bundles, channels, defaultChannel });
      const level = isForced ? 'warn' : 'error';
      for (const orphans of plan.orphans) {
        const subject = `package ${quoteGo(name)}, channel ${quoteGo(orphans.channel)}`;
        const names = orphans.bundles.map(quoteGo).join(', ');
        session.logger.log(level, `${subject}: no way to a head any more from ${names}`);
      }
      if (plan.orphans.length === 0 || isForced) return plan;
      session.logger.log(
        'error',
        `${directory}: nothing is removed, since clusters may be left behind; use --force to remove it anyway`,
      );
      return undefined;
    }),
  );
}
