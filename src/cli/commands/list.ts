import type { Catalog } from '../../catalog/catalog.js';
import { decodeMeta } from '../../catalog/blob.js';
import { collectFacts } from '../../catalog/facts.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import { schemas } from '../../model/declarative-config.js';
import type { CatalogFacts } from '../../model/facts.js';
import { findDefaultHeads, formatTable, listBundles, listChannels, listPackages } from '../../model/list.js';
import { findCsvText } from '../../model/migrations.js';
import { validateCatalog } from '../../model/validate.js';
import { inReference } from '../../source/render.js';
import { openSource } from '../../source/source.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

/** `opmate list packages|channels|bundles`: a table on stdout. A catalog that is not valid is not listed. */
export async function list(
  context: CommandContext,
  noun: 'packages' | 'channels' | 'bundles',
  reference: string,
  packageName: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  await useSession(context, options, async (session) => {
    const table = await tableOf();
    session.logger.close();
    await writeAll(context.stdout, table);

    async function tableOf(): Promise<string> {
      const source = await openSource(reference, session).catch((error: unknown) => {
        throw inReference(error, reference);
      });
      try {
        if (source.kind === 'bundle') {
          throw new OpmateError('UNSUPPORTED', `cannot list non-index ${quoteGo(reference)}`, {
            hint: 'give a catalog; opmate render shows what is in a bundle',
          });
        }
        const facts = await collectFacts(source.catalog, session).catch((error: unknown) => {
          throw inReference(error, reference);
        });
        const report = validateCatalog(facts);
        if (!report.passed) {
          throw new OpmateError('INVALID', report.message ?? 'invalid index', {
            hint: 'opmate validate tells every problem with its place',
          });
        }
        return await formatRows(noun, source.catalog, facts, packageName);
      } finally {
        await source.close();
      }
    }
  });
}

async function formatRows(
  noun: 'packages' | 'channels' | 'bundles',
  catalog: Catalog,
  facts: CatalogFacts,
  packageName: string | undefined,
): Promise<string> {
  switch (noun) {
    case 'packages': {
      const rows = listPackages(facts, await readDisplayNames(catalog, facts));
      return formatTable(
        ['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'],
        rows.map((row) => [row.name, row.displayName, row.defaultChannel]),
      );
    }
    case 'channels': {
      const rows = listChannels(facts, packageName);
      return formatTable(
        ['PACKAGE', 'CHANNEL', 'HEAD'],
        rows.map((row) => [row.package, row.channel, row.head]),
      );
    }
    case 'bundles': {
      const rows = listBundles(facts, packageName);
      return formatTable(
        ['PACKAGE', 'CHANNEL', 'BUNDLE', 'REPLACES', 'SKIPS', 'SKIP RANGE', 'IMAGE'],
        rows.map((row) => [
          row.package,
          row.channel,
          row.bundle,
          row.replaces,
          row.skips.join(','),
          row.skipRange,
          row.image,
        ]),
      );
    }
  }
}

/** Display names by package: each from the ClusterServiceVersion of its default channel's head. */
async function readDisplayNames(catalog: Catalog, facts: CatalogFacts): Promise<Map<string, string>> {
  const heads = findDefaultHeads(facts);
  const names = new Map<string, string>();
  for (const { package: packageName, name, origin } of facts.bundles) {
    if (heads.get(packageName) !== name || origin === undefined) continue;
    const value = await catalog.read(origin);
    const decoded = decodeMeta({ schema: schemas.bundle, package: packageName, name, value, origin });
    if (decoded.kind !== 'bundle') continue;
    const displayName = displayNameOf(findCsvText(decoded.blob));
    if (displayName !== undefined) names.set(packageName, displayName);
  }
  return names;
}

function displayNameOf(csvText: string | undefined): string | undefined {
  if (csvText === undefined) return undefined;
  const csv: unknown = JSON.parse(csvText);
  const spec = (csv as { spec?: { displayName?: unknown } } | null)?.spec;
  return typeof spec?.displayName === 'string' ? spec.displayName : undefined;
}
