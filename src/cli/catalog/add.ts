import { argument, defineCommand } from '../command/declaration.js';
import { choice, flag, list, text } from '../command/flags.js';
import { editDryRun, imageTemplate, migrateLevel } from '../command/shared-flags.js';
import { parseImageTemplate } from '../../bundle/image-template.js';
import { parseBundle } from '../../bundle/parse.js';
import { type NewBundle, newBundle } from '../../catalog/edit/new-bundle.js';
import { planAdd } from '../../catalog/edit/plan-add.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { CancelledError, OpmateError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderBundleSource } from '../../source/render.js';
import { inReference } from '../../source/reference-error.js';
import { openSource } from '../../source/source.js';
import { editCatalog } from './edit.js';
import { type CommandSession, useSession } from '../session.js';

/** `opmate catalog add`: bundles get blobs and entries in a catalog directory. */
export const command = defineCommand({
  summary: 'add bundles to channels of a catalog; unrelated blobs keep their bytes',
  arguments: [
    argument('<directory>', 'file-based catalog'),
    argument('<bundles...>', 'bundle: image, layout, archive or directory'),
  ],
  flags: {
    channels: list('name', 'channels to add to (default: those of the bundles)'),
    mode: choice(
      'mode',
      ['replaces', 'semver', 'semver-skippatch'],
      'update mode: replaces (as declared) or semver (by version)',
      { default: 'replaces' },
    ),
    replaces: text('bundle', 'bundle to replace (default: as declared); "" for none'),
    skips: list('bundle', 'bundles to skip (default: as declared, in replaces mode); "" for none', {
      mayBeNone: true,
    }),
    skipRange: text('range', 'versions to skip (default: as declared); "" for none'),
    defaultChannel: text('name', 'new default channel'),
    migrateLevel,
    alphaImageRefTemplate: imageTemplate('bundles that are not from a registry'),
    overwrite: flag('replace bundles that already exist'),
    dryRun: editDryRun,
  },
  examples: [
    [
      'Add a release to a channel',
      'opmate catalog add ./catalog registry.example.com/demo/bundle:v1.3.0 --channels stable',
    ],
    [
      'Show the changes first',
      'opmate catalog add ./catalog registry.example.com/demo/bundle:v1.3.0 --channels stable --dry-run',
    ],
  ],
  async run({ context, args: [directory, references], options }) {
    const {
      channels,
      replaces,
      skips,
      skipRange,
      defaultChannel,
      alphaImageRefTemplate: imageTemplate,
    } = options;
    const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
    if (imageTemplate !== undefined) parseImageTemplate(imageTemplate);
    const overwrite = options.overwrite;
    return useSession(context, options, (session) =>
      editCatalog(context, session, directory, options, async (catalog) => {
        const bundles = await readBundles(references, session, { imageTemplate, migrationLevel });
        return planAdd(catalog, bundles, {
          mode: options.mode,
          channels,
          replaces,
          skips,
          skipRange,
          defaultChannel,
          overwrite,
        });
      }),
    );
  },
});

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
