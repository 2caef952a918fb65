import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { groupBy, pushTo } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, setJsonKey } from '../../document/json.js';
import { type FilePart, JoinedFileWriter } from '../../files/file-parts.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { encodeChannelPart } from './bundle-messages.js';
import { CatalogContent, type IndexedPackage } from './catalog-content.js';
import { bundleType } from './messages.js';
import { fnvNumber, hashOpmTrees } from './opm-tree-hash.js';

/** A file that stands in `file`, from `offset` on if told, and is called `path` where it belongs. */
export interface CacheFile extends FilePart {
  path: string;
}

interface OpmCacheOptions extends CancelOptions {
  /** Files of the catalog as they will be where it is served from, with mode 0644 in directories of mode 0755. */
  catalogFiles: readonly CacheFile[];
  /** Where the files of the cache are written, one after the other; must not exist. Its owner removes it. */
  file: string;
  logger?: Logger | undefined;
}

/** Most bytes of a file's name, on the file systems that there are. */
const maxNameBytes = 255;

/**
 * Writes the cache that `opm serve --cache-dir` starts from without reading the catalog, in its format of JSON files,
 * which every opm that knows caches accepts; opm's own preference is a database of a Go library. Returns its files;
 * all of them must get the mode 0644 and their directories 0755, for that is part of what the cache is checked by. The
 * same catalog makes the same bytes. One bundle is in memory at a time.
 *
 * Throws OpmateError INVALID, which tells all faults, for a catalog that is not valid and for names that cannot be
 * names of files; IO; and what reading the catalog throws. (Source: pkg/cache of operator-registry.)
 */
export async function writeOpmCache(catalog: Catalog, options: OpmCacheOptions): Promise<CacheFile[]> {
  const { file, catalogFiles, signal, logger } = options;
  const content = await CatalogContent.read(catalog, undefined, { signal, logger, keepsFacts: false });
  let joined: JoinedFileWriter | undefined;
  try {
    const target = (joined = await JoinedFileWriter.create(file));
    const files: CacheFile[] = [];
    const write: Write = async (name, pieces) => {
      throwIfCancelled(signal);
      const offset = target.size;
      for (const piece of pieces) await target.write(piece);
      files.push({ path: name, file, offset, size: target.size - offset });
    };
    await write('cache/packages.json', encodePackageIndex(content.index.packages));
    await writeBundles(content, write);
    await writeCustomBlobs(content, write);
    await target.flush();
    const below = files.map((cached) => ({ ...cached, path: cached.path.slice('cache/'.length) }));
    await write('digest', [Buffer.from(await hashOpmTrees([catalogFiles, below], signal))]);
    await target.flush();
    return files;
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(file, error);
  } finally {
    await joined?.close();
    await content.close();
  }
}

/** Writes a file of the cache, from pieces that are asked for one after the other. */
type Write = (name: string, pieces: Iterable<Buffer>) => Promise<void>;

/** What opm keeps of all packages in memory. Descriptions and icons are left out: no answer has them. */
function* encodePackageIndex(packages: readonly IndexedPackage[]): Generator<Buffer> {
  let separator = '{';
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
    const text = encodeGoJson({
      name,
      description: '',
      icon: null,
      defaultChannel,
      Channels: byName,
      ...getDeprecation(deprecation),
    });
    yield Buffer.from(`${separator}${encodeGoJson(name)}:${text}`);
    separator = ',';
  }
  yield Buffer.from(packages.length === 0 ? '{}' : '}');
}

function getDeprecation(message: string | undefined): JsonObject {
  return message === undefined ? {} : { deprecation: { message } };
}

async function writeBundles(content: CatalogContent, write: Write): Promise<void> {
  const { packages, bundles } = content.index;
  const owners = new Map<string, string>();
  const owned = groupBy(bundles, (bundle) => bundle.package);
  for (const owner of packages) {
    const placesByName = new Map<string, { channelName: string; entry: ChannelEntry; name: string }[]>();
    for (const { name: channelName, entries } of owner.channels) {
      for (const entry of entries) {
        const place = `package ${quoteGo(owner.name)}, channel ${quoteGo(channelName)}, bundle ${quoteGo(entry.name)}`;
        const name = `${owner.name}_${channelName}_${entry.name}.json`;
        checkName(name, place);
        // Underscores in the names may make two of them one.
        const other = owners.get(name);
        if (other !== undefined)
          throw new OpmateError('INVALID', `${place}: ${other} has the same name in a cache`);
        owners.set(name, place);
        pushTo(placesByName, entry.name, { channelName, entry, name });
      }
    }
    for (const bundle of owned.get(owner.name) ?? []) {
      const places = placesByName.get(bundle.name) ?? [];
      placesByName.delete(bundle.name);
      if (places.length === 0) continue;
      const common = encodeFields(await content.encodeMessage(bundle));
      const { deprecation } = bundle;
      for (const { channelName, entry, name } of places) {
        const part = encodeChannelPart({
          channelName,
          entry,
          withUpgrades: true,
          deprecation: deprecation === undefined ? undefined : { message: deprecation },
        });
        await write(`cache/${name}`, joinFields(common, encodeFields(part)));
      }
    }
    for (const lost of placesByName.keys())
      throw new OpmateError('INTERNAL', `package ${quoteGo(owner.name)}, bundle ${quoteGo(lost)} is lost`);
  }
}

/** The fields of a part of a bundle's message that it has, each as `"name":VALUE`: of most channels only few differ. */
function encodeFields(part: Buffer): Map<string, Buffer> {
  const fields = Object.entries(bundleType.decodePresent(part) as JsonObject);
  return new Map(fields.map(([name, value]) => [name, Buffer.from(`"${name}":${encodeGoJson(value)}`)]));
}

const [opening, comma, closing] = ['{', ',', '}'].map((text) => Buffer.from(text)) as [
  Buffer,
  Buffer,
  Buffer,
];

/** An object with the fields of both, which have none in common, in the order of the message. */
function* joinFields(
  common: ReadonlyMap<string, Buffer>,
  own: ReadonlyMap<string, Buffer>,
): Generator<Buffer> {
  let separator = opening;
  for (const name of bundleType.fieldNames) {
    const field = common.get(name) ?? own.get(name);
    if (field === undefined) continue;
    yield separator;
    yield field;
    separator = comma;
  }
  yield closing;
}

function checkName(name: string, place: string): void {
  if (!/[/\0]/.test(name) && Buffer.byteLength(name) <= maxNameBytes) return;
  throw new OpmateError('INVALID', `${place}: cannot be in a cache, for its name is that of no file`, {
    hint: 'build the image without --cache',
  });
}

/** What a directory of blobs may be called. (Source: meta_key.go of operator-registry.) */
const keyPattern = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

async function writeCustomBlobs(content: CatalogContent, write: Write): Promise<void> {
  const written = new Set<string>();
  for (const blob of content.index.custom) {
    const { schema, package: owner } = blob;
    if (!keyPattern.test(schema) || (owner !== '' && !keyPattern.test(owner))) {
      const place = `${quoteGo(schema)}${owner === '' ? '' : ` of package ${quoteGo(owner)}`}`;
      throw new OpmateError('INVALID', `a blob of the schema ${place} cannot be served by opm`, {
        hint: 'use letters, digits, dots, underscores and hyphens in schema and package',
      });
    }
    const text = Buffer.from(encodeGoJson((await content.customBlob(blob)) as JsonObject));
    const name = `${path.posix.join('cache/metas', schema, owner)}/${fnvNumber(text)}.json`;
    // The same blob twice is one file, as for opm.
    if (written.has(name)) continue;
    written.add(name);
    await write(name, [text]);
  }
}
