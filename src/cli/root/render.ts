import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { catalogOutput, imageTemplate, migrateLevel } from '../command/shared-flags.js';
import { catalogForms } from '../../api/open-catalog.js';
import { render } from '../../api/render-catalog.js';
import { writePieces } from '../session.js';

/** `opmate render`. */
export const command = defineCommand({
  summary: 'render catalogs and bundles from any source as one catalog',
  tool: 'opm',
  arguments: [argument('<reference...>', `bundle or catalog: ${catalogForms}`)],
  flags: {
    output: catalogOutput,
    migrateLevel,
    migrate: flag('run all migrations', { excludes: ['migrateLevel'] }),
    alphaImageRefTemplate: imageTemplate('bundles from directories', { hidden: 'alpha' }),
  },
  examples: {
    'Render the bundle in a directory': 'opmate render ./bundle',
    'Render a bundle image as YAML': 'opmate render registry.example.com/demo/bundle:v1.0.0 -o yaml',
    'Convert a sqlite index to a file-based catalog': 'opmate render index.db --migrate > catalog.json',
  },
  async runInSession({ context, args: [references], options, session }) {
    const { output: format } = options;
    const migrateLevel = options.migrate ? 'all' : options.migrateLevel;
    const output = { format, migrateLevel, imageTemplate: options.alphaImageRefTemplate };
    await writePieces(context, session, render(references, session, output));
  },
});
