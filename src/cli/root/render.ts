import { parseImageTemplate } from '../../bundle/image-template.js';
import { UsageError } from '../../core/errors.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderReferences } from '../../source/render.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { catalogFormat } from '../formats.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

interface RenderCommandOptions extends GlobalOptions {
  output?: string;
  migrate?: boolean;
  migrateLevel?: string;
  alphaImageRefTemplate?: string;
}

/** `opmate render`: catalogs and bundles from any source, as one catalog on stdout. */
export async function render(
  context: CommandContext,
  references: string[],
  options: RenderCommandOptions,
): Promise<void> {
  const format = catalogFormat(options.output);
  if (options.migrate === true && options.migrateLevel !== undefined) {
    throw new UsageError('--migrate and --migrate-level cannot be used together', {
      hint: 'keep one of them',
    });
  }
  const migrationLevel = resolveMigrationLevel(
    options.migrate === true ? 'all' : (options.migrateLevel ?? ''),
  );
  const { alphaImageRefTemplate: imageTemplate } = options;
  if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
  await useSession(context, options, async (session) => {
    const rendered = await renderReferences(references, {
      ...session,
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
}
