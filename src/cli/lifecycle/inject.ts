import { injectLifecycles } from '../../api/edit-catalog.js';
import {
  compareOpenShift,
  formatOpenShift,
  openShiftMilestones,
  parseOpenShiftVersion,
} from '../../core/openshift-version.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, parsed } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { reportEdit } from '../catalog/edit.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';

/** `opmate catalog lifecycle inject`. */
export const command = defineCommand({
  summary: 'add lifecycle blobs to a catalog directory',
  description: 'Writes lifecycle.json beside each package; an equal blob stays. All files change or none.',
  arguments: [
    argument('<directory>', 'catalog directory'),
    argument('<data...>', 'files, directories or catalogs with lifecycle blobs'),
  ],
  flags: {
    openshift: parsed(
      'version',
      'OpenShift version of the catalog; nothing is added below 5.0',
      parseOpenShiftVersion,
    ),
    overwrite: flag('replace lifecycle blobs of the catalog that differ'),
    dryRun: editDryRun,
  },
  examples: {
    'Add lifecycles to a catalog': 'opmate catalog lifecycle inject ./catalog lifecycle.json --openshift 5.0',
    'Show the changes without writing them':
      'opmate catalog lifecycle inject ./catalog lifecycle.json --dry-run',
  },
  async runInSession({ context, args: [directory, data], options, session }) {
    const { openshift } = options;
    if (openshift !== undefined && compareOpenShift(openshift, openShiftMilestones.lifecycles) < 0) {
      const first = formatOpenShift(openShiftMilestones.lifecycles);
      const text = `nothing to change: OpenShift has lifecycles from ${first} on`;
      reportEnding(session.logger, [`${directory}: ${text}`]);
      return exitCodes.done;
    }
    const edit = await injectLifecycles(directory, data, session, options);
    return reportEdit(context, session, directory, options, edit);
  },
});
