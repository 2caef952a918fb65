import { labelsAt, listing, listingOfDirectory, readUrl } from '../../api/served/catalog-statuses.js';
import path from 'node:path';
import {
  catalogIndexName,
  catalogPath,
  maxPublishedIndexBytes,
  parsePublishedCatalog,
} from '../../catalog/published/published-index.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { labelSelector } from '../command/values.js';
import { readRegularFile } from '../../files/read-file.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { CatalogRecords, getContents } from '../../serve/catalogs/catalog-records.js';
import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { Session } from '../../source/session.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import { printableLine } from '../printable.js';
import { useSession } from '../session.js';
import { type ServerChoice, checkChoice, findStorage, serverFlags } from './server-state.js';

/** `opmate catalogs packages`: the packages of the catalogs, each as CATALOG/PACKAGE. */
export const command = defineCommand({
  summary: 'print packages as CATALOG/PACKAGE; for one package, the catalog with the highest priority',
  arguments: [argument('[package]', 'PACKAGE or CATALOG/PACKAGE (default: all)')],
  flags: {
    catalog: text('name', 'select this catalog', { group: 'Selection' }),
    selector: text('labels', 'select catalogs with these labels: KEY=VALUE,…', { group: 'Selection' }),
    ...serverFlags,
  },
  examples: [
    ['List the packages of all catalogs', 'opmate catalogs packages'],
    ['Find the catalog that provides a package', 'opmate catalogs packages demo --url http://127.0.0.1:8080'],
  ],
  async run({ context, args: [name], options }) {
    const { catalog, selector } = options;
    checkChoice(options);
    const listed = await findPackages(context, options);
    const isSelected = labelSelector(selector ?? '');
    const [qualifier, plain] = name?.includes('/') === true ? name.split('/', 2) : [undefined, name];
    const chosen = listed
      .filter(
        (foundPackage) =>
          (catalog ?? foundPackage.catalog) === foundPackage.catalog &&
          (qualifier ?? foundPackage.catalog) === foundPackage.catalog,
      )
      .filter((foundPackage) => (plain ?? foundPackage.name) === foundPackage.name)
      .filter((foundPackage) => isSelected(foundPackage.labels));
    if (plain !== undefined) {
      if (chosen.length === 0) throw new OpmateError('NOT_FOUND', `${name}: no catalog has such a package`);
      const most = Math.max(...chosen.map(({ priority }) => priority));
      const best = chosen.filter(({ priority }) => priority === most);
      if (best.length > 1) {
        const where = best.map((foundPackage) => `${foundPackage.catalog}/${foundPackage.name}`).join(', ');
        throw new OpmateError(
          'INVALID',
          `${plain}: several catalogs of the same priority have it: ${where}`,
          {
            hint: 'use CATALOG/PACKAGE, or select the catalog with --catalog or --selector',
          },
        );
      }
      await writeAll(context.stdout, `${best.map(formatPackage).join('\n')}\n`);
      return 0;
    }
    const lines = chosen.map(formatPackage);
    await writeAll(context.stdout, lines.length === 0 ? '' : `${lines.join('\n')}\n`, context.signal);
    return 0;
  },
});

function formatPackage({ catalog, name }: { catalog: string; name: string }): string {
  return printableLine(`${catalog}/${name}`);
}

interface FoundPackage {
  catalog: string;
  name: string;
  labels: Readonly<Record<string, string>>;
  priority: number;
}

async function findPackages(
  context: CommandContext,
  options: GlobalOptions & ServerChoice,
): Promise<FoundPackage[]> {
  const { url } = options;
  if (url !== undefined) return useSession(context, options, (session) => packagesServed(url, session));
  if (options.published !== undefined) return packagesOfDirectory(options.published);
  return packagesStored(context, options);
}

async function packagesStored(context: CommandContext, options: ServerChoice): Promise<FoundPackage[]> {
  const storage = await findStorage(context, options);
  const { openContent } = await import('../../serve/catalogs/content-store.js');
  const listed: FoundPackage[] = [];
  for (const { name, labels, priority, contentHash } of await new CatalogRecords(storage).list()) {
    throwIfCancelled(context.signal);
    if (contentHash === undefined) continue;
    const content = await openContent(contentHash, { directory: getContents(storage) });
    if (content === undefined) continue;
    for (const item of content.packages) listed.push({ catalog: name, name: item, labels, priority });
    await content.close();
  }
  return listed;
}

async function packagesServed(url: string, session: Session): Promise<FoundPackage[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const listed: FoundPackage[] = [];
  for (const value of await listing(root, session)) {
    const name = getText(value, 'name');
    const names = isJsonObject(value['urls'] ?? null)
      ? await namesServed(`${root}/catalogs/${name}/api/v1/metas?schema=olm.package`, session)
      : await namesPublished(`${root}/${catalogPath(name, catalogIndexName)}`, session);
    listed.push(...toPackages(value, names));
  }
  return sorted(listed);
}

async function namesServed(url: string, session: Session): Promise<string[]> {
  const lines = (await readUrl(url, session)).split('\n').filter((line) => line !== '');
  return lines.flatMap((line) => {
    const value = parseGoJson(line);
    return isJsonObject(value) ? [getText(value, 'name')] : [];
  });
}

async function namesPublished(url: string, session: Session): Promise<string[]> {
  const { packages } = parsePublishedCatalog(Buffer.from(await readUrl(url, session)), url);
  return packages.map(({ name }) => name);
}

async function packagesOfDirectory(directory: string): Promise<FoundPackage[]> {
  const listed: FoundPackage[] = [];
  for (const value of await listingOfDirectory(directory)) {
    const file = path.join(directory, catalogPath(getText(value, 'name'), catalogIndexName));
    const bytes = await readRegularFile(file, maxPublishedIndexBytes).catch((error: unknown) => {
      throw fileError(file, error, { file });
    });
    const { packages } = parsePublishedCatalog(bytes, file);
    listed.push(
      ...toPackages(
        value,
        packages.map(({ name }) => name),
      ),
    );
  }
  return sorted(listed);
}

function toPackages(listed: JsonObject, names: readonly string[]): FoundPackage[] {
  const priority = typeof listed['priority'] === 'number' ? listed['priority'] : 0;
  return names.map((name) => ({
    catalog: getText(listed, 'name'),
    name,
    labels: labelsAt(listed),
    priority,
  }));
}

function sorted(listed: readonly FoundPackage[]): FoundPackage[] {
  return [...listed].sort((a, b) => compareBytes(a.catalog, b.catalog) || compareBytes(a.name, b.name));
}
