import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { catalogOutput, imageTemplate, migrateLevel } from '../command/shared-flags.js';
import { parseImageTemplate } from '../../bundle/image-template.js';
import { UsageError } from '../../core/errors.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderReferences } from '../../source/render.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

/** `opmate render`: catalogs and bundles from any source, as one catalog on stdout. */
export const command = defineCommand({
  summary: 'render catalogs and bundles from any source as one catalog',
  tool: 'opm',
  arguments: [
    argument(
      '<reference...>',
      'bundle or catalog: directory, image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, sqlite index, ' +
        'https://HOST/catalogs/NAME, https://HOST/ARCHIVE.tgz or git+https://HOST/REPOSITORY[#REF[:DIRECTORY]]',
    ),
  ],
  flags: {
    output: catalogOutput,
    migrateLevel,
    migrate: flag('run all migrations'),
    alphaImageRefTemplate: imageTemplate('bundles from directories', { hidden: 'alpha' }),
  },
  examples: [
    ['Render the bundle in a directory', 'opmate render ./bundle'],
    ['Render a bundle image as YAML', 'opmate render registry.example.com/demo/bundle:v1.0.0 -o yaml'],
    ['Convert a sqlite index to a file-based catalog', 'opmate render index.db --migrate > catalog.json'],
  ],
  async run({ context, args: [references], options }) {
    const { output: format } = options;
    if (options.migrate && options.migrateLevel !== undefined) {
      throw new UsageError('--migrate and --migrate-level cannot be used together', {
        hint: 'keep one of them',
      });
    }
    const migrationLevel = resolveMigrationLevel(options.migrate ? 'all' : (options.migrateLevel ?? ''));
    const { alphaImageRefTemplate: imageTemplate } = options;
    if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
    await useSession(context, options, async (session) => {
      const rendered = await renderReferences(references, session, {
        format,
        migrationLevel,
        imageTemplate,
      });
      try {
        session.logger.close();
        await writeAll(context.stdout, rendered.assembly.write(context), context.signal);
      } finally {
        await rendered.close();
      }
    });
  },
});
