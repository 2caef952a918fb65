import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, setJsonKey } from '../../document/json.js';
import { makeDirectory } from '../../files/make-directory.js';
import type { Logger } from '../../core/log.js';
import { encodeChannelPart } from './bundle-messages.js';
import { bundleType } from './messages.js';
import { CatalogContent, type IndexedPackage, bundleKey } from './catalog-content.js';
import { hashOpmTrees, fnvNumber } from './opm-tree-hash.js';
import { RecordFile } from './record-file.js';

/** A file that is kept on disk under `file`, and is called `path` where it belongs. */
export interface CacheFile {
  path: string;
  file: string;
  size: number;
}

interface OpmCacheOptions extends CancelOptions {
  /**
   * The files of the catalog as they will be where it is served from, with mode 0644 in directories of mode 0755; each
   * stands in its file from `offset` on, default 0.
   */
  catalogFiles: readonly (CacheFile & { offset?: number })[];
  /** Where the cache is written; must not exist. Whoever names it removes it, also after a failure. */
  directory: string;
  /** Where encoded bundles wait meanwhile. */
  temporaryDirectory: string;
  logger?: Logger | undefined;
}

/** Most bytes of a file's name, on the file systems that there are. */
const maxNameBytes = 255;

/**
 * Writes the cache that `opm serve --cache-dir` starts from without reading the catalog, in its format of JSON files,
 * which every opm that knows caches accepts; opm's own preference is a database of a Go library. Returns its files, in
 * the order of their names; all of them must get the mode 0644 and their directories 0755, for that is part of what
 * the cache is checked by. The same catalog makes the same bytes. One bundle is in memory at a time.
 *
 * Throws OpmateError INVALID, which tells all faults, for a catalog that is not valid and for names that cannot be
 * names of files; IO; and what reading the catalog throws. (Source: pkg/cache of operator-registry.)
 */
export async function writeOpmCache(catalog: Catalog, options: OpmCacheOptions): Promise<CacheFile[]> {
  const { directory, catalogFiles, signal } = options;
  const files: CacheFile[] = [];
  const write = async (name: string, text: string): Promise<void> => {
    throwIfCancelled(signal);
    const file = path.join(directory, name);
    const bytes = Buffer.from(text);
    await writeFile(file, bytes, { mode: 0o600, flag: 'wx' });
    files.push({ path: name, file, size: bytes.length });
  };
  try {
    await makeDirectory(path.join(directory, 'cache'), 0o700);
    const content = await readContent(catalog, options);
    try {
      await write('cache/packages.json', encodeGoJson(getPackageIndex(content.index.packages)));
      await writeBundles(content, write);
      await writeCustomBlobs(content, directory, write);
    } finally {
      await content.close();
    }
    const below = files.map((file) => ({ ...file, path: file.path.slice('cache/'.length) }));
    const trees = [catalogFiles, below].map((tree) =>
      tree.map((file: OpmCacheOptions['catalogFiles'][number]) => ({ ...file, open: () => openFile(file) })),
    );
    await write('digest', await hashOpmTrees(trees, signal));
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(directory, error);
  }
  return files;
}

async function readContent(catalog: Catalog, options: OpmCacheOptions): Promise<CatalogContent> {
  const { temporaryDirectory, signal, logger } = options;
  const records = await RecordFile.unnamed(temporaryDirectory);
  try {
    return await CatalogContent.read(catalog, records, { signal, logger });
  } catch (error) {
    await records.close();
    throw error;
  }
}

function openFile({ file, offset, size }: CacheFile & { offset?: number }): AsyncIterable<Buffer> {
  const range = offset !== undefined && { start: offset, end: offset + size - 1 };
  return createReadStream(file, { highWaterMark: 256 * 1024, ...range });
}

type Write = (name: string, text: string) => Promise<void>;

/** What opm keeps of all packages in memory. Descriptions and icons are left out: no answer has them. */
function getPackageIndex(packages: readonly IndexedPackage[]): JsonObject {
  const index: JsonObject = {};
  for (const { name, defaultChannel, channels, deprecation } of packages) {
    const byName: JsonObject = {};
    for (const channel of channels) {
      const bundles: JsonObject = {};
      for (const { name: bundle, replaces, skips } of channel.entries) {
        const part = { package: name, channel: channel.name, name: bundle, replaces, skips: [...skips] };
        setJsonKey(bundles, bundle, part);
      }
      setJsonKey(byName, channel.name, {
        Name: channel.name,
        Head: channel.head,
        Bundles: bundles,
        ...getDeprecation(channel.deprecation),
      });
    }
    setJsonKey(index, name, {
      name,
      description: '',
      icon: null,
      defaultChannel,
      Channels: byName,
      ...getDeprecation(deprecation),
    });
  }
  return index;
}

function getDeprecation(message: string | undefined): JsonObject {
  return message === undefined ? {} : { deprecation: { message } };
}

async function writeBundles(content: CatalogContent, write: Write): Promise<void> {
  const { packages, bundles } = content.index;
  const byKey = new Map(bundles.map((bundle) => [bundleKey(bundle.package, bundle.name), bundle]));
  const owners = new Map<string, string>();
  for (const owner of packages) {
    for (const { name: channelName, entries } of owner.channels) {
      for (const entry of entries) {
        const place = `package ${quoteGo(owner.name)}, channel ${quoteGo(channelName)}, bundle ${quoteGo(entry.name)}`;
        const bundle = byKey.get(bundleKey(owner.name, entry.name));
        if (bundle === undefined) throw new OpmateError('INTERNAL', `${place} is lost`);
        const name = `${owner.name}_${channelName}_${entry.name}.json`;
        checkName(name, place);
        // Underscores in the names may make two of them one.
        const other = owners.get(name);
        if (other !== undefined)
          throw new OpmateError('INVALID', `${place}: ${other} has the same name in a cache`);
        owners.set(name, place);
        const { deprecation } = bundle;
        const part = encodeChannelPart({
          channelName,
          entry,
          withUpgrades: true,
          deprecation: deprecation === undefined ? undefined : { message: deprecation },
        });
        const message = await content.getMessage(bundle, part, true);
        await write(`cache/${name}`, encodeGoJson(bundleType.decodePresent(message) as JsonObject));
      }
    }
  }
}

function checkName(name: string, place: string): void {
  if (!/[/\0]/.test(name) && Buffer.byteLength(name) <= maxNameBytes) return;
  throw new OpmateError('INVALID', `${place}: cannot be in a cache, for its name is that of no file`, {
    hint: 'build the image without --cache',
  });
}

/** What a directory of blobs may be called. (Source: meta_key.go of operator-registry.) */
const keyPattern = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

async function writeCustomBlobs(content: CatalogContent, directory: string, write: Write): Promise<void> {
  const written = new Set<string>();
  for (const blob of content.index.custom) {
    const { schema, package: owner } = blob;
    if (!keyPattern.test(schema) || (owner !== '' && !keyPattern.test(owner))) {
      const place = `${quoteGo(schema)}${owner === '' ? '' : ` of package ${quoteGo(owner)}`}`;
      throw new OpmateError('INVALID', `a blob of the schema ${place} cannot be served by opm`, {
        hint: 'schema and package must consist of letters, digits, dots, underscores and hyphens',
      });
    }
    const text = encodeGoJson((await content.customBlob(blob)) as JsonObject);
    const place = path.posix.join('cache/metas', schema, owner);
    const name = `${place}/${fnvNumber(Buffer.from(text))}.json`;
    // The same blob twice is one file, as for opm.
    if (written.has(name)) continue;
    written.add(name);
    await makeDirectory(path.join(directory, place), 0o700);
    await write(name, text);
  }
}
