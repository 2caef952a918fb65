import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, text, required } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { quoteGo } from '../../document/go-json.js';
import { removeFromCatalog } from '../../api/edit-catalog.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { endWithFindings, logWarnings } from '../bundle/findings.js';
import { reportEdit } from './edit.js';

/** `opmate catalog remove`. */
export const command = defineCommand({
  summary: 'remove bundles, channels or a package and repair the upgrade graph',
  description: 'Exits with 3 and changes nothing if installed bundles would be stranded; see --force.',
  arguments: [argument('<directory>', 'catalog directory')],
  flags: {
    package: required(
      text('name', 'package; removed completely if neither bundles nor channels are given', { short: 'p' }),
    ),
    bundle: list('name', 'bundles to remove'),
    channel: list('name', 'channels to remove'),
    defaultChannel: text('name', 'new default channel'),
    force: flag('remove even if installed bundles are stranded'),
    dryRun: editDryRun,
  },
  examples: {
    'Remove a release': 'opmate catalog remove ./catalog --package demo --bundle demo.v1.0.0',
    'Remove a package': 'opmate catalog remove ./catalog --package demo --force',
  },
  async runInSession({ context, args: [directory], options, session }) {
    const { package: name, bundle: bundles, channel: channels } = options;
    const removal = { ...options, bundles, channels };
    const { edit, orphans } = await removeFromCatalog(directory, session, removal);
    const findings = orphans.map(({ channel, bundles: stranded }): Diagnostic => {
      const subject = `package ${quoteGo(name)}, channel ${quoteGo(channel)}`;
      const names = stranded.map(quoteGo).join(', ');
      return createFault('stranded', `clusters with ${names} would have no upgrade path`, { subject });
    });
    if (edit !== undefined) {
      logWarnings(
        session,
        findings.map((finding) => ({ ...finding, severity: 'warning' })),
      );
      return reportEdit(context, session, directory, options, edit);
    }
    const problem = 'not changed: installed bundles would be stranded';
    const hint = 'use --force to remove anyway';
    return endWithFindings({ context, session }, [
      ...findings,
      createFault('stranded', problem, { subject: directory, hint }),
    ]);
  },
});
