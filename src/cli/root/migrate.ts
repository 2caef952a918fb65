import { writeCatalogDirectory } from '../../catalog/directory-writer.js';
import { requireEmptyDirectory } from '../../files/fill-directory.js';
import { withoutCredentials } from '../../core/reference.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderReferences } from '../../source/render.js';
import { wrapped } from '../../source/reference-error.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { useSession } from '../session.js';
import { catalogFormat } from '../formats.js';

interface MigrateCommandOptions extends GlobalOptions {
  output?: string;
  migrateLevel?: string;
}

/** `opmate migrate`: a catalog written into a new directory, one file a package. */
export async function migrate(
  context: CommandContext,
  reference: string,
  directory: string,
  options: MigrateCommandOptions,
): Promise<void> {
  const format = catalogFormat(options.output);
  const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
  await useSession(context, options, async (session) => {
    await requireEmptyDirectory(directory);
    session.logger.log('info', `rendering ${withoutCredentials(reference)} as file-based catalog`);
    const allowed = { catalogs: true, bundles: false };
    const renderOptions = { ...session, format, migrationLevel, allowed };
    const rendered = await renderReferences([reference], renderOptions).catch((error: unknown) => {
      throw wrapped(error, 'render catalog image');
    });
    try {
      await writeCatalogDirectory(rendered.assembly, directory, format, { signal: context.signal });
    } finally {
      await rendered.close();
    }
    session.logger.log('info', `wrote the catalog to ${directory}`);
  });
}
