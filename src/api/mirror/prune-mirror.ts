import { OpmateError, UsageError } from '../../core/errors.js';
import { type DeletableImage, deleteImages } from '../../mirror/delete/delete-images.js';
import { findReplaced } from '../../mirror/delete/delete-list.js';
import { type KeptImages, createKeptImages } from '../../mirror/delete/kept-images.js';
import { type Generation, removeGenerations, splitGenerations } from '../../mirror/history/generations.js';
import { readLock } from '../../mirror/lock/parse-lock.js';
import type { Session } from '../../source/session.js';
import { type DeletedImages, recordDeletions } from './delete-images.js';
import { type ImageSetRun, type MirrorOptions, prepareRun } from './image-set-run.js';
import { RunTrail } from './record-run.js';

/** Options of pruning a mirror. */
export interface PruneOptions extends Pick<
  MirrorOptions,
  'workspace' | 'lockFile' | 'maxNestedPaths' | 'maxPerRegistry'
> {
  /** Images of the generations in effect at this time or later stay; default: of the current one. */
  since?: Date | undefined;
}

/** Images that no kept generation of a workspace selects. */
export interface PrunableImages {
  /** By name at the target; also catalogs, charts and signatures. */
  images: (DeletableImage & { name: string; digest: string })[];
  /** Messages about images of older generations that stay. */
  kept: string[];
  /** Numbers of generations, kept and older. */
  generations: { kept: number; expired: number };
}

/**
 * Lists the images at `docker://REGISTRY[/PATH]` that older generations of the workspace selected, and none in effect since
 * then does: images, catalogs, charts and signatures. Deletes nothing. Throws OpmateError.
 */
export async function listPrunable(
  destination: string,
  session: Session,
  options: PruneOptions,
): Promise<PrunableImages> {
  const run = prepareRun(undefined, destination, session, options);
  const { kept, expired } = await readGenerations(run, options);
  const keep = await keepImages(kept);
  const images = new Map<string, PrunableImages['images'][number]>();
  const sentences = new Set<string>();
  const { target } = run.destination;
  // Of a tag that moved, the newest digest is the one at the target.
  for (const { file } of expired) {
    const { replaced, kept: sentencesOfLock } = findReplaced(await readLock(file), { target, keep });
    for (const sentence of sentencesOfLock) sentences.add(sentence);
    for (const { destination: name, target: reference, contents } of replaced)
      images.set(name, { name, digest: contents.root.digest, reference });
  }
  const byName = [...images.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const generations = { kept: kept.length, expired: expired.length };
  return { images: byName, kept: [...sentences], generations };
}

/**
 * Deletes listed images with their signatures, by digest; those that a kept generation needs, whose tag has moved, or that
 * another tag or index of their repository uses stay. Older generations are removed when their images are gone, and the
 * audit trail names what was deleted. Throws OpmateError.
 */
export async function pruneMirror(
  { images }: PrunableImages,
  destination: string,
  session: Session,
  options: PruneOptions,
): Promise<DeletedImages> {
  const run = prepareRun(undefined, destination, session, options);
  const { workspace, kept, expired } = await readGenerations(run, options);
  const { maxPerRegistry } = run.transfer;
  const keep = await keepImages(kept);
  const trail = new RunTrail(workspace, session, { task: 'prune', destination: run.destination.text });
  const report = await recordDeletions(trail, (onDeleted) =>
    deleteImages(images, {
      session,
      maxPerRegistry,
      keep,
      signatures: true,
      refusesShared: true,
      dryRun: false,
      onDeleted,
    }),
  );
  if (report.failed.length === 0 && report.stopped === undefined) await removeGenerations(expired);
  return { ...report, catalogs: 0 };
}

async function readGenerations({ workspace, session }: ImageSetRun, { since }: PruneOptions) {
  if (workspace === undefined)
    throw new UsageError('no workspace', { hint: 'specify the workspace of the mirror runs' });
  const generations = await workspace.listGenerations();
  return { workspace, ...splitGenerations(generations, since ?? session.now()) };
}

async function keepImages(generations: readonly Generation[]): Promise<KeptImages> {
  if (generations.length === 0)
    throw new OpmateError('NOT_FOUND', 'no generations of the lock', {
      hint: 'mirror once with this release, which keeps them in the workspace',
    });
  const keep = createKeptImages();
  for (const { file, number } of generations) keep.add(await readLock(file), `generation ${number}`);
  return keep;
}
