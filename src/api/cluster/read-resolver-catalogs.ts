import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { decodeMeta } from '../../catalog/blob.js';
import { toMeta } from '../../catalog/meta.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText, getTexts, getValue } from '../../document/json-fields.js';
import { CatalogEntries } from '../../solve/v0/catalog-entries.js';
import type { CatalogKey, ResolverCatalog } from '../../solve/v0/resolver-types.js';
import type { Session } from '../../source/session.js';
import { withCatalog } from '../open-catalog.js';

/** Content of a CatalogSource: references, read as one catalog, or its blobs. */
export type CatalogSourceContent = { references: readonly string[] } | { blobs: readonly JsonObject[] };

/** A CatalogSource of a snapshot, and its content: null without a connection, undefined if it is not known. */
interface ResolverCatalogSource {
  key: CatalogKey;
  priority: number;
  content: CatalogSourceContent | null | undefined;
}

/** Maximum catalogs of a cluster that are read at the same time. */
export const catalogsAtOnce = 4;

/**
 * Reads catalogs as OLM's resolver gets them. A catalog without a connection has an error, which fails all namespaces
 * that see it; one of unknown content is left out.
 */
export async function readResolverCatalogs(
  sources: readonly ResolverCatalogSource[],
  session: Session,
): Promise<ResolverCatalog[]> {
  const known = sources.filter(({ content }) => content !== undefined);
  return mapConcurrent(known, catalogsAtOnce, async ({ key, priority, content }) => {
    if (content === null || content === undefined) {
      const error = `no registry client established for catalogsource ${key.namespace}/${key.name}`;
      return { key, priority, entries: [], error };
    }
    const entries = new CatalogEntries();
    if ('blobs' in content) for (const blob of content.blobs) addBlob(entries, blob);
    else for (const reference of content.references) await addReference(entries, reference, session);
    return { key, priority, entries: entries.list(key) };
  });
}

async function addReference(entries: CatalogEntries, reference: string, session: Session): Promise<void> {
  await withCatalog(reference, session, async ({ catalog }) => {
    for await (const meta of catalog.metas({ signal: session.signal })) entries.add(decodeMeta(meta));
  });
}

function addBlob(entries: CatalogEntries, blob: JsonObject): void {
  entries.add(decodeMeta(toMeta(blob, 'json', { file: '', offset: 0, length: 0, syntax: 'json' })));
}

/**
 * Returns the CatalogSources of a snapshot; `contents` by `namespace/name`, name or image, which mirror sets map back to
 * its source.
 */
export function findCatalogSources(
  objects: readonly JsonObject[],
  contents: ReadonlyMap<string, CatalogSourceContent | null>,
): ResolverCatalogSource[] {
  const mirrors = readMirrors(objects);
  return objects
    .filter((object) => object['kind'] === 'CatalogSource')
    .map((object) => {
      const key = {
        namespace: getText(object, 'metadata', 'namespace'),
        name: getText(object, 'metadata', 'name'),
      };
      const image = getText(object, 'spec', 'image');
      const names = [`${key.namespace}/${key.name}`, key.name, image, ...mapBack(image, mirrors)];
      const content = names.map((name) => contents.get(name)).find((found) => found !== undefined);
      const priority = getValue(object, 'spec', 'priority');
      return { key, priority: typeof priority === 'number' ? priority : 0, content };
    });
}

/** Returns mirrors with their sources. */
function readMirrors(objects: readonly JsonObject[]): { mirror: string; source: string }[] {
  const lists = ['imageDigestMirrors', 'imageTagMirrors', 'repositoryDigestMirrors'];
  return objects.flatMap((object) =>
    lists.flatMap((list) =>
      getObjects(object, 'spec', list).flatMap((entry) =>
        getTexts(entry, 'mirrors').map((mirror) => ({ mirror, source: getText(entry, 'source') })),
      ),
    ),
  );
}

/** Returns the images that an image may be a mirror of. */
function mapBack(image: string, mirrors: readonly { mirror: string; source: string }[]): string[] {
  return mirrors
    .filter(({ mirror }) => image.startsWith(mirror) && /^(?:[/:@]|$)/.test(image.slice(mirror.length)))
    .map(({ mirror, source }) => source + image.slice(mirror.length));
}

/** Throws OpmateError NOT_FOUND for a catalog that no CatalogSource of the snapshot has. */
export function requireCatalogSources(
  sources: readonly ResolverCatalogSource[],
  objects: readonly JsonObject[],
  names: Iterable<string>,
): void {
  const mirrors = readMirrors(objects);
  const own = objects.map((object) => getText(object, 'spec', 'image'));
  const images = [...own, ...own.flatMap((image) => mapBack(image, mirrors))];
  for (const name of names) {
    const isKnown = sources.some(({ key }) => key.name === name || `${key.namespace}/${key.name}` === name);
    if (isKnown || images.includes(name)) continue;
    const known = sources.map(({ key }) => `${key.namespace}/${key.name}`).join(', ');
    throw new OpmateError('NOT_FOUND', 'no CatalogSource of the snapshot has this name or image', {
      subject: name,
      hint: known === '' ? 'include the CatalogSources of the cluster' : `use one of ${known}`,
    });
  }
}
