import { argument, defineCommand } from '../command/declaration.js';
import { list } from '../command/flags.js';
import { catalogForms, outputFormat } from '../command/shared-flags.js';
import { describeMissing } from '../../core/suggest.js';
import { diffCatalogs, isSameCatalog } from '../../catalog/diff/diff.js';
import { type CatalogSnapshot, takeSnapshot } from '../../catalog/diff/snapshot.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { inReference } from '../../source/reference-error.js';
import { diffMarkdown, diffText } from './diff-text.js';
import { withCatalog } from './input.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';

/** `opmate catalog diff`: what differs between two catalogs; exit code 3 where something does. */
export const command = defineCommand({
  summary: 'show the differences between two catalogs; exit with 3 if there are any',
  arguments: [argument('<from>', `catalog: ${catalogForms}`), argument('<to>', 'the same')],
  flags: {
    package: list('name', 'compare only these packages', { group: 'Selection' }),
    output: outputFormat(['text', 'json', 'markdown'], { default: 'text' }),
  },
  examples: [
    ['Show what a new catalog changes', 'opmate catalog diff ./older-catalog ./catalog'],
    ['Write release notes', 'opmate catalog diff ./older-catalog ./catalog -o markdown'],
  ],
  async run({ context, args: [from, to], options }) {
    const { output, package: names } = options;
    if (!['text', 'json', 'markdown'].includes(output)) {
      throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|markdown)`);
    }
    const packages = names === undefined ? undefined : new Set(names);
    const diff = await useSession(context, options, (session) =>
      withCatalog(from, session, (first) =>
        withCatalog(to, session, async (second) => {
          const read = (reference: string, { catalog }: typeof first): Promise<CatalogSnapshot> =>
            snapshotOf(reference, () => takeSnapshot(catalog, { ...optionsOf(session), packages }));
          const [before, after] = [await read(from, first), await read(to, second)];
          requirePackages(names ?? [], before, after);
          return diffCatalogs(before, after, session);
        }),
      ),
    );
    const text =
      output === 'json'
        ? `${JSON.stringify(diff, null, 2)}\n`
        : output === 'markdown'
          ? diffMarkdown(diff)
          : diffText(diff);
    await writeAll(context.stdout, text, context.signal);
    return isSameCatalog(diff) ? exitCodes.done : exitCodes.findings;
  },
});

function optionsOf({ signal, logger }: CommandSession): Pick<CommandSession, 'signal' | 'logger'> {
  return { signal, logger };
}

async function snapshotOf(reference: string, read: () => Promise<CatalogSnapshot>): Promise<CatalogSnapshot> {
  try {
    return await read();
  } catch (error) {
    throw inReference(error, reference);
  }
}

/** A package that is in neither catalog is a slip of the pen, not an equal package. */
function requirePackages(names: readonly string[], before: CatalogSnapshot, after: CatalogSnapshot): void {
  const missing = names.filter((name) =>
    [before, after].every(({ facts }) => facts.packages.every((one) => one.name !== name)),
  );
  if (missing.length === 0) return;
  throw new OpmateError('NOT_FOUND', describeMissing('package', missing, 'either catalog'), {
    hint: 'see opmate list packages for the names',
  });
}
