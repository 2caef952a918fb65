import { stat } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { listCatalogFiles } from '../../catalog/walk.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { sortedByBytes } from '../../core/order.js';
import { schemas } from '../../model/declarative-config.js';
import { recalledNames } from './cache.js';
import type { CommandContext } from '../context.js';
import type { WantedName } from './words.js';

/** Matches printable names that need no quotes in a shell. */
const plainName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/**
 * Returns completions of a name, sorted, from directories, databases, served catalogs and cached names of images. Skips
 * unreadable catalogs and those not read before `signal` fires. Never throws.
 */
export async function namesFor(
  wanted: WantedName,
  context: CommandContext,
  { signal }: CancelOptions,
): Promise<string[]> {
  const names = new Set<string>();
  const search: Search = {
    ...wanted,
    signal,
    add: (name) => {
      if (plainName.test(name) && name.startsWith(wanted.typed)) names.add(name);
    },
    isWanted: (name) => wanted.packages.length === 0 || wanted.packages.includes(name),
  };
  for (const reference of wanted.catalogs) {
    try {
      await addNames(reference, search, context);
    } catch {
      // Errors are reported when the command runs.
    }
  }
  return sortedByBytes(names);
}

interface Search extends WantedName, CancelOptions {
  add(name: string): void;
  /** Reports whether channels of a package are wanted. */
  isWanted(packageName: string): boolean;
}

async function addNames(reference: string, search: Search, context: CommandContext): Promise<void> {
  // Some options take NAME=REFERENCE, or settings after a comma.
  const plain = reference.replace(/^[A-Za-z0-9._-]+=/, '').replace(/,.*$/s, '');
  for (const name of new Set([reference, plain])) {
    if (/^https?:\/\//.test(name)) return addServed(name, search);
    const directory = path.resolve(context.workingDirectory, name);
    const status = await stat(directory).catch(() => undefined);
    if (status?.isDirectory() === true) return addFromDirectory(directory, search);
    if (status?.isFile() === true) return addFromDatabase(directory, search);
    const recalled = await recalledNames(context, name);
    for (const [packageName, channels] of recalled ?? []) {
      if (search.kind === 'package') search.add(packageName);
      else if (search.isWanted(packageName)) channels.forEach(search.add);
    }
  }
}

async function addServed(url: string, { kind, add, isWanted, signal }: Search): Promise<void> {
  const { HttpCatalogClient } = await import('../../client/http-catalog-client.js');
  await withOpen(new HttpCatalogClient(url.replace(/\/+$/, ''), { maxAttempts: 1 }), async (client) => {
    if (kind === 'package') (await client.listPackages({ signal })).forEach(add);
    else {
      for await (const blob of client.metas({ schema: schemas.channel }, { signal })) {
        if (blob.kind === 'channel' && isWanted(blob.blob.package)) add(blob.blob.name);
      }
    }
  });
}

async function addFromDatabase(file: string, { kind, add, isWanted }: Search): Promise<void> {
  const { openDatabase } = await import('../../sqlite/schema/database.js');
  const { IndexQueries } = await import('../../sqlite/read/queries.js');
  await withOpen(openDatabase(file, { access: 'read' }), (database) => {
    for (const { name, channels } of new IndexQueries(database).packages()) {
      if (kind === 'package') add(name);
      else if (isWanted(name)) channels.forEach((channel) => add(channel.name));
    }
  });
}

/**
 * Adds names from a catalog directory. With a directory per package, it reads only the start of each package, or one
 * package.
 */
async function addFromDirectory(root: string, search: Search): Promise<void> {
  const { kind, packages, add, isWanted, signal } = search;
  const files = await listCatalogFiles(root, '');
  const tops = new Set(files.map(({ label }) => label.split('/')));
  const folders = sortedByBytes(new Set([...tops].map(([first]) => first as string)));
  const isFlat = [...tops].some((parts) => parts.length === 1);
  const ofPackages = packages.filter((name) => plainName.test(name) && folders.includes(name));
  let from = folders;
  if (isFlat) from = ['.'];
  else if (kind === 'channel' && ofPackages.length > 0) from = ofPackages;
  for (const folder of from) {
    const catalog = new DirectoryCatalog(path.join(root, folder));
    const options = { signal, withoutManifests: true, onFault: () => undefined };
    for await (const meta of catalog.metas(options)) {
      if (kind === 'package' && meta.schema === schemas.package) {
        add(meta.name);
        if (meta.name === folder) break;
      }
      if (kind === 'channel' && meta.schema === schemas.channel && isWanted(meta.package)) {
        add(meta.name);
      }
    }
  }
}
