import { parseImageTemplate } from '../../bundle/image-template.js';
import { parseBundle } from '../../bundle/parse.js';
import { type NewBundle, newBundle } from '../../catalog/edit/new-bundle.js';
import { type AddMode, planAdd } from '../../catalog/edit/plan-add.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { CancelledError, OpmateError, UsageError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderBundleSource } from '../../source/render.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import { editCatalog } from './edit.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { type CommandSession, useSession } from '../session.js';

interface CatalogAddOptions extends GlobalOptions {
  dryRun?: boolean;
  overwrite?: boolean;
  channels?: string[];
  mode?: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
  defaultChannel?: string;
  migrateLevel?: string;
  alphaImageRefTemplate?: string;
}

/** `opmate catalog add`: bundles get blobs and entries in a catalog directory. */
export async function catalogAdd(
  context: CommandContext,
  directory: string,
  references: readonly string[],
  given: GlobalOptions,
): Promise<number> {
  const options = given as CatalogAddOptions;
  const {
    channels,
    replaces,
    skips,
    skipRange,
    defaultChannel,
    alphaImageRefTemplate: imageTemplate,
  } = options;
  const mode = modeOf(options.mode);
  const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
  if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
  const overwrite = options.overwrite === true;
  return useSession(context, options, (session) =>
    editCatalog(context, session, directory, options, async (catalog) => {
      const bundles = await readBundles(references, session, { imageTemplate, migrationLevel });
      return planAdd(catalog, bundles, {
        mode,
        channels,
        replaces,
        skips,
        skipRange,
        defaultChannel,
        overwrite,
      });
    }),
  );
}

function modeOf(text = 'replaces'): AddMode {
  if (text === 'replaces' || text === 'semver' || text === 'semver-skippatch') return text;
  throw new UsageError(`invalid --mode value ${quoteGo(text)}, expected (replaces|semver|semver-skippatch)`);
}

/** Reads all bundles, many at once. Throws OpmateError with every one that cannot be read. */
async function readBundles(
  references: readonly string[],
  session: CommandSession,
  options: { imageTemplate: string | undefined; migrationLevel: string },
): Promise<NewBundle[]> {
  const read = await mapConcurrent(
    references,
    8,
    async (reference): Promise<NewBundle | OpmateError> => {
      try {
        return await readBundle(reference, session, options);
      } catch (error) {
        const told = inReference(error, reference);
        if (told instanceof OpmateError && !(told instanceof CancelledError)) return told;
        throw told;
      }
    },
    session,
  );
  const failures = read.filter((one) => one instanceof OpmateError);
  if (failures.length > 0) throw combineErrors(failures);
  return read.filter((one): one is NewBundle => !(one instanceof OpmateError));
}

async function readBundle(
  reference: string,
  session: CommandSession,
  options: { imageTemplate: string | undefined; migrationLevel: string },
): Promise<NewBundle> {
  const source = await openSource(reference, session, { bundles: true, catalogs: false });
  try {
    if (source.kind !== 'bundle')
      throw new OpmateError('UNSUPPORTED', `${reference}: is a catalog, not a bundle`);
    const blob = renderBundleSource(source, reference, options);
    return newBundle(parseBundle(source.files, { subject: reference }), blob, reference);
  } finally {
    await source.close();
  }
}
