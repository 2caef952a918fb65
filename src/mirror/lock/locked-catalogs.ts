import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { type OpenedReference, holdOpen } from '../../oci/image/open.js';
import type { ImageSetPlan } from '../image-set/image-set-plan.js';
import type { ImageSetLock, LockedImage } from './lock.js';
import type { SourceSession } from '../../source/session.js';
import type { RebuiltCatalog } from '../selection/rebuilt-catalog.js';
import { rebuildFrom } from '../selection/rebuilt-source.js';

/** Catalogs, charts and the graph image of a lock, made again when the first byte of one is needed. */
interface LockedCatalogs {
  /** How to open the source of an image of the lock; undefined where a reference names it. */
  findOpener(image: LockedImage): (() => Promise<OpenedReference>) | undefined;
  close(): Promise<void>;
}

/**
 * The catalogs of which a lock holds a part exist nowhere but at targets: where one lacks them, they are made again,
 * and must come out as the lock says. Throws OpmateError INVALID, when one is opened, where they do not: a catalog
 * behind a tag, or opmate, has changed since. `makePlan` plans what the lock was made of, once and when that is needed.
 */
export function rebuiltOnDemand(
  lock: ImageSetLock,
  session: SourceSession,
  makePlan: () => Promise<ImageSetPlan>,
): LockedCatalogs {
  let planning: Promise<ImageSetPlan> | undefined;
  const rebuilt = new Map<string, Promise<RebuiltCatalog>>();
  const rebuild = async (image: LockedImage): Promise<RebuiltCatalog> => {
    const plan = await (planning ??= makePlan());
    const catalog = plan.catalogs.find(
      ({ name }) => name.repository === image.repository && name.tag === image.tag,
    );
    const locked = lock.catalogs.find(
      ({ repository, tag }) => repository === image.repository && tag === image.tag,
    );
    const drift = (what: string): OpmateError =>
      new OpmateError('INVALID', what, {
        subject: locked?.catalog ?? image.source,
        hint: 'mirror without --locked to create a new lock',
      });
    if (catalog === undefined || locked === undefined)
      throw drift('the lock does not say what it is made of');
    if (catalog.digest !== locked.sourceDigest)
      throw drift(`is now ${catalog.digest}, expected ${locked.sourceDigest} by the lock`);
    const source = { ...catalog, facts: catalog.selection.facts };
    const { platforms } = plan.images.find(({ destination }) => destination === catalog.destination) ?? {};
    const made = await rebuildFrom(source, session, { platforms });
    const wanted = image.contents.root.digest;
    if (made.digest === wanted) return made;
    await made.close();
    throw drift(`rebuilt as ${made.digest}, expected ${wanted} by the lock`);
  };
  const openMade = async (image: LockedImage): Promise<OpenedReference> => {
    const { images } = await (planning ??= makePlan());
    const planned = images.find(
      ({ kind, name }) =>
        kind === image.kind && name.repository === image.repository && name.tag === image.tag,
    );
    const opened = await planned?.open?.();
    if (opened?.reference === image.contents.root.digest) return opened;
    const what = image.kind === 'chart' ? 'is another chart' : 'is another image';
    throw new OpmateError('INVALID', `${image.source}: ${what} now than in the lock`, {
      hint: 'mirror without --locked to create a new lock',
    });
  };
  const partial = new Set(
    lock.catalogs.filter(({ isWhole }) => !isWhole).map(({ repository, tag }) => `${repository}:${tag}`),
  );
  return {
    findOpener(image) {
      if (image.kind === 'chart' || image.kind === 'graph') return () => openMade(image);
      const name = `${image.repository}:${image.tag ?? ''}`;
      if (image.kind !== 'catalog' || !partial.has(name)) return undefined;
      return async () => holdOpen(await getOrAdd(rebuilt, name, () => rebuild(image)));
    },
    async close() {
      for (const made of rebuilt.values())
        await made.then((catalog) => catalog.close()).catch(() => undefined);
      await planning?.then((plan) => plan.close()).catch(() => undefined);
    },
  };
}
