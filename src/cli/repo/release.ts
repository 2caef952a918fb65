import { releaseBundle } from '../../api/repo/release-bundle.js';
import { argument, defineCommand } from '../command/declaration.js';
import { required, text } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { repositoryFlag } from './flags.js';
import { reportRepositoryEdit } from './report-edit.js';

/** `opmate repo release`. */
export const command = defineCommand({
  summary: 'add a bundle to templates and catalogs as its release-config.yaml says',
  description:
    'Comments of templates are kept. Each catalog is validated with all of its operators before files change.',
  arguments: [argument('<operator>', 'operator'), argument('<version>', 'directory of the bundle')],
  flags: {
    ...repositoryFlag,
    image: required(text('reference', 'image of the bundle')),
    dryRun: editDryRun,
  },
  examples: {
    'Show what a release changes':
      'opmate repo release demo 1.3.0 --image registry.example.com/demo/bundle:v1.3.0 --dry-run',
    'Release a bundle': 'opmate repo release demo 1.3.0 --image registry.example.com/demo/bundle:v1.3.0',
  },
  async runInSession({ context, args: [operator, version], options, session }) {
    const { repository, image, dryRun } = options;
    const edit = await releaseBundle(repository, session, { operator, version, image, dryRun });
    const unchanged = `already has ${edit.bundle}`;
    await reportRepositoryEdit(context, session, edit, { dryRun, unchanged });
  },
});
