import { invalidValue, redactUrls } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import { deleteImages } from '../../mirror/delete/delete-images.js';
import {
  encodeDeleteList,
  listDeletions,
  listReplaced,
  parseDeleteList,
  requireBelow,
} from '../../mirror/delete/delete-list.js';
import { readDeleteImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import { parseMirrorTarget } from '../../mirror/naming/mirror-target.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import { requireNoLinks, writeOutputFiles } from '../../mirror/output-files.js';
import { planImageSet } from '../../mirror/image-set/image-set-plan.js';
import { type KeptImages, createKeptImages } from '../../mirror/delete/kept-images.js';
import { readLock } from '../../mirror/lock/parse-lock.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './image-set-run.js';
import type { Session } from '../../source/session.js';
import path from 'node:path';
import { getPlanSources } from './plan-image-set.js';
import { RunTrail } from './record-run.js';

/** Options of listing images to delete. */
export interface ListMirrorDeletionsOptions extends Pick<
  MirrorOptions,
  'maxNestedPaths' | 'graphData' | 'ignoreReleaseSignature'
> {
  /** Lock files whose images stay. */
  keep?: readonly string[] | undefined;
  /** Lock of the mirror, whose images are listed, and counted as `needed`; default none. */
  current?: string | undefined;
  /** List signatures of images by digest too; default false. */
  signatures?: boolean | undefined;
  /** Use the tags of oc-mirror v1; default false. */
  v1Tags?: boolean | undefined;
}

/** Images to delete. */
export interface MirrorDeletions {
  /** The list as text, a `DeleteImageList` for `deleteMirrored`. */
  list: string;
  /** Number of images in the list. */
  images: number;
  /** Number of catalogs in the configuration; they are never deleted. */
  catalogs: number;
  /** Sentences about images that stay because a lock needs them. */
  kept: string[];
  /** Number of listed images that the lock `current` selects. */
  needed: number;
  warnings: string[];
}

/**
 * Lists the images at `docker://REGISTRY[/PATH]` that the text of a `DeleteImageSetConfiguration` selects, and deletes
 * nothing. `file` names the configuration in messages. Throws OpmateError.
 */
export async function listMirrorDeletions(
  configuration: string,
  file: string,
  destination: string,
  session: Session,
  options: ListMirrorDeletionsOptions = {},
): Promise<MirrorDeletions> {
  const { maxNestedPaths, signatures = false, v1Tags = false } = options;
  const target = parseMirrorTarget(destination, maxNestedPaths);
  const keep = await readKept(options.keep ?? [], session);
  const current = options.current === undefined ? undefined : await readKept([options.current], session);
  const config = readDeleteImageSetConfiguration(configuration, file);
  const { logger, signal } = session;
  const plan = await planImageSet(config, {
    ...options,
    target,
    logger,
    signal,
    // What no cluster can pull was never mirrored.
    onError: 'skip-image',
    ...getPlanSources(options, session),
    // Catalogs are not deleted, so their names do not matter.
    digestOfRebuilt: ({ digest }) => Promise.resolve(digest),
  });
  await plan.close();
  const { items, kept, needed } = listDeletions(plan, { target, keep, needed: current, signatures, v1Tags });
  const { catalogs, faults } = plan;
  const warnings = [...plan.warnings, ...faults.map(({ error }) => error.message)];
  const list = encodeDeleteList(items);
  return { list, images: items.length, catalogs: catalogs.length, kept, needed, warnings };
}

/**
 * Lists the images at `docker://REGISTRY[/PATH]` that the lock file `previous` has and no lock of `keep` needs, and deletes
 * nothing. Throws OpmateError.
 */
export async function listReplacedImages(
  previous: string,
  destination: string,
  session: Session,
  options: Pick<ListMirrorDeletionsOptions, 'keep' | 'signatures' | 'maxNestedPaths'> = {},
): Promise<MirrorDeletions> {
  const target = parseMirrorTarget(destination, options.maxNestedPaths);
  const keep = await readKept(options.keep ?? [], session);
  const lock = await readLock(path.resolve(session.workingDirectory, previous), previous);
  const { items, kept } = listReplaced(lock, { target, keep, signatures: options.signatures === true });
  return { list: encodeDeleteList(items), images: items.length, catalogs: 0, kept, needed: 0, warnings: [] };
}

/** Place of a written list of deletions. */
export interface DeleteListPlace {
  /** Parent directory of `working-dir`, `DIRECTORY` or `file://DIRECTORY`; default the working directory. */
  workspace?: string | undefined;
  /** Suffix of the names of files; default none. */
  id?: string | undefined;
  /** Text of the configuration, which is written beside the list; default none. */
  configuration?: string | undefined;
}

/**
 * Writes a list of images to delete to `working-dir/delete` of a workspace, and returns its path relative to the working
 * directory. Throws UsageError for an ID that is no part of a file name, and OpmateError.
 */
export async function writeDeleteList(
  { list }: Pick<MirrorDeletions, 'list'>,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
  { workspace = '.', id, configuration }: DeleteListPlace = {},
): Promise<string> {
  requireFileSuffix(id);
  const directory = path.join(new Workspace(workingDirectory, workspace).root, 'delete');
  const suffix = id === undefined ? '' : `-${id}`;
  const name = `delete-images${suffix}.yaml`;
  const files = new Map([[name, list]]);
  if (configuration !== undefined) files.set(`delete-imageset-config${suffix}.yaml`, configuration);
  await requireNoLinks([path.dirname(directory), directory]);
  await writeOutputFiles(directory, files);
  return path.relative(workingDirectory, path.join(directory, name));
}

/** Throws UsageError for a destination that names no registry, before anything is read. */
export function requireMirrorTarget(destination: string, maxNestedPaths?: number): void {
  parseMirrorTarget(destination, maxNestedPaths);
}

/** Throws UsageError for a text that cannot be a part of a file name. */
export function requireFileSuffix(id: string | undefined): void {
  if (id === undefined || /^[A-Za-z0-9][\w.-]{0,63}$/.test(id)) return;
  throw invalidValue('request.id', id, 'not a part of a file name', {
    hint: 'use letters, digits, ".", "_" and "-", up to 64 characters',
  });
}

/** Options of deleting images. */
export interface DeleteMirroredOptions
  extends Pick<MirrorOptions, 'maxNestedPaths' | 'maxPerRegistry'>, Pick<ListMirrorDeletionsOptions, 'keep'> {
  /** Delete signatures too; default false. */
  signatures?: boolean | undefined;
  /** Delete images that other tags or indexes use too, see `keep`; default false. */
  allowShared?: boolean | undefined;
  /** Check every image without deleting; default false. */
  dryRun?: boolean | undefined;
  /** Parent directory of a `working-dir` whose audit trail records the deletions, if it exists; default none. */
  workspace?: string | undefined;
}

/** Result of deleting images. */
export interface DeletedImages extends Awaited<ReturnType<typeof deleteImages>> {
  /** Number of catalogs in the list; they are never deleted. */
  catalogs: number;
}

/**
 * Deletes the images in a `DeleteImageList` from `docker://REGISTRY[/PATH]`, by digest, and continues after failed images.
 * `list` is its text; `file` names it in messages. Without locks to keep, images that other tags or indexes of their
 * repositories use fail unless `allowShared`. Throws OpmateError for images outside of the destination.
 */
export async function deleteMirrored(
  list: string,
  file: string,
  destination: string,
  session: Session,
  options: DeleteMirroredOptions = {},
): Promise<DeletedImages> {
  const { signatures = false, dryRun = false, allowShared = false, maxNestedPaths } = options;
  const maxPerRegistry = resolveMaxPerRegistry(options);
  const keep = await readKept(options.keep ?? [], session);
  const items = parseDeleteList(list, file);
  requireBelow(items, parseMirrorTarget(destination, maxNestedPaths), file);
  const wanted = items.filter(({ type }) => type !== 'operatorCatalog');
  const trail = dryRun ? undefined : await findTrail(options.workspace, destination, file, session);
  const deleting = (onDeleted?: OnDeleted) =>
    deleteImages(wanted, {
      session,
      maxPerRegistry,
      signatures,
      keep,
      dryRun,
      // Locks say what is needed.
      refusesShared: !allowShared && (options.keep ?? []).length === 0,
      onDeleted,
    });
  const report = trail === undefined ? await deleting() : await recordDeletions(trail, deleting);
  return { ...report, catalogs: items.length - wanted.length };
}

/** Returns the trail of a deletion in an existing `working-dir`. */
async function findTrail(
  directory: string | undefined,
  destination: string,
  file: string,
  session: Session,
): Promise<RunTrail | undefined> {
  if (directory === undefined) return undefined;
  const workspace = new Workspace(session.workingDirectory, directory);
  if ((await statIfPresent(workspace.root)) === undefined) return undefined;
  return new RunTrail(workspace, session, { task: 'delete', destination, configuration: file });
}

type DeletionReport = Awaited<ReturnType<typeof deleteImages>>;
type OnDeleted = (name: string, digest: string) => void;

/**
 * Deletes images, and records each as it is deleted, and which could not be. A run that is killed has no end in the trail.
 * Throws OpmateError.
 */
export async function recordDeletions(
  trail: RunTrail,
  deleting: (onDeleted: OnDeleted) => Promise<DeletionReport>,
): Promise<DeletionReport> {
  // A workspace that cannot be written is an error before anything is deleted.
  await trail.flush();
  let images = 0;
  const onDeleted: OnDeleted = (name, digest) => {
    images++;
    trail.add({ event: 'deleted', image: name, digest });
  };
  const report = await deleting(onDeleted).catch(async (error: unknown) => {
    await trail.fail(error, images);
    throw error;
  });
  const { failed, stopped } = report;
  const errors = [...failed, ...(stopped === undefined ? [] : [stopped])];
  for (const { subject = '', problem } of errors)
    trail.add({ event: 'failed', image: subject, problem: redactUrls(problem) });
  await trail.end({ images, failed: errors.length, blobs: 0, bytes: 0 });
  return report;
}

async function readKept(files: readonly string[], { workingDirectory }: Session): Promise<KeptImages> {
  const kept = createKeptImages();
  for (const file of files) kept.add(await readLock(path.resolve(workingDirectory, file), file), file);
  return kept;
}
