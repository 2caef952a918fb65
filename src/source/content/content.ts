import { copyFile, constants } from 'node:fs/promises';
import path from 'node:path';
import { normalizeEntryPath } from '../../archive/entry-path.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { type ContentTree, confirmTree, hashOfTree, readTree } from '../drivers/file-tree.js';
import { copyDirectory } from '../drivers/local.js';
import { isLocal } from '../place.js';
import { resolvePlace } from '../resolve-place.js';
import type { SourceSession } from '../session.js';
import { ContentFindingsError } from './content-findings.js';
import { describeSource, drift, findUnpinned, getPinnedState, pinnedSource } from './content-pins.js';
import type { ContentOptions, OpenedContent, Pin, PlacedSource } from './content-types.js';

export type * from './content-types.js';

/**
 * Opens the files of sources at their destinations in one directory; a single directory is read in place. Returns a pin
 * for each source, and rejects sources that differ from `pins`.
 *
 * Throws ContentFindingsError with all unpinned sources if pins are required, all duplicate files, or all broken
 * links. Throws OpmateError for other failures.
 */
export async function openCombinedContent(
  sources: readonly PlacedSource[],
  session: SourceSession,
  options: ContentOptions = {},
): Promise<OpenedContent> {
  const placed = sources.map((placedSource) => ({
    ...placedSource,
    destination: getDestination(placedSource),
  }));
  const [first] = placed;
  if (first === undefined) throw new OpmateError('INVALID', 'missing source');
  if (options.requireDigest === true) {
    const findings = findUnpinned(placed, options.pins);
    if (findings.length > 0) throw new ContentFindingsError(findings);
  }
  const isSole = placed.length === 1 && first.destination === '';
  const { source } = first;
  if (isSole && source.kind === 'directory') return openInPlace(first, source.path, session, options);
  const parent = options.contentStore?.stagingDirectory ?? session.temporaryDirectory;
  const temporary = await makeTemporaryDirectory(parent, session.now());
  try {
    const opened: Fetched[] = [];
    const errors: OpmateError[] = [];
    for (const [index, item] of placed.entries()) {
      throwIfCancelled(session.signal);
      const staging = path.join(temporary.path, String(index));
      const roots = isSole ? (options.roots ?? ['']) : [''];
      try {
        opened.push(await fetchPinned(item, { staging, roots }, session, options));
      } catch (error) {
        if (!(error instanceof OpmateError) || fatalCodes.includes(error.code)) throw error;
        errors.push(error);
        if (errors.length >= maxSourceErrors) break;
      }
    }
    if (errors.length > 0) throw combineErrors(errors);
    const pins = opened.map(({ pin }) => pin);
    const common = {
      isInPlace: false,
      destinations: sortedByBytes(new Set(placed.map(({ destination }) => destination))),
      pins,
      confirm: () => Promise.resolve(),
      close: () => temporary.remove(),
    };
    if (isSole) {
      const { directory, pin } = opened[0] as Fetched;
      return { ...common, directory, content: pin.content };
    }
    const directory = path.join(temporary.path, 'content');
    const content = await compose(opened, directory, session);
    return { ...common, directory, content };
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}

/** Codes of errors that stop the run. */
const fatalCodes: readonly string[] = ['CANCELLED', 'INTERNAL', 'LIMIT'];
/** Maximum number of unreadable sources before the run stops. */
export const maxSourceErrors = 20;

function getDestination({ name, destination }: PlacedSource): string {
  if (!destination.startsWith('/')) return normalizeEntryPath(destination, `${name}: destination`);
  throw new OpmateError('UNSAFE', `destination ${destination}: is absolute`, {
    subject: name,
    hint: 'use a path relative to the root of the content',
  });
}

async function openInPlace(
  placed: PlacedSource,
  directory: string,
  session: SourceSession,
  options: ContentOptions,
): Promise<OpenedContent> {
  const { limits, signal, followLinks } = session;
  const { roots = [''] } = options;
  const readOptions = { limits, signal, followLinks, roots };
  const tree = await readTree(directory, readOptions);
  const pin = getPin(placed, `directory@${hashOfTree(tree)}`, tree, roots);
  checkContent(pin, placed, options);
  return {
    directory,
    destinations: [''],
    isInPlace: true,
    pins: [pin],
    content: pin.content,
    confirm: () => confirmTree(directory, tree, readOptions),
    close: () => Promise.resolve(),
  };
}

/** A source with its fetched files. */
interface Fetched {
  placed: PlacedSource;
  pin: Pin;
  directory: string;
  tree: ContentTree;
  /** True if the files belong to this run and can be moved. */
  isOwn: boolean;
}

function getPin(
  { name, source }: PlacedSource,
  ref: string,
  tree: ContentTree,
  roots: readonly string[],
): Pin {
  const pin = { name, type: source.kind, ref, content: hashOfTree(tree), source: describeSource(source) };
  return roots.includes('') ? pin : { ...pin, roots: sortedByBytes(roots) };
}

/** Reports whether two pins cover the same roots of their source. */
function hasSameRoots(a: Pin, b: Pick<Pin, 'roots'>): boolean {
  return (a.roots ?? ['']).join('\0') === sortedByBytes(b.roots ?? ['']).join('\0');
}

function findPin(name: string, { pins }: ContentOptions): Pin | undefined {
  if (pins === undefined) return undefined;
  const pin = pins.find((item) => item.name === name);
  if (pin !== undefined) return pin;
  throw new OpmateError('INVALID', 'is not in the lock', {
    subject: name,
    hint: 'update the lock with options.updateLock',
  });
}

/**
 * Checks fetched content against its lock entry. An entry with other roots is compared by digest, commit or checksum;
 * local sources have none, so that it cannot be compared. Throws OpmateError.
 */
function checkContent(pin: Pin, { source }: PlacedSource, options: ContentOptions): void {
  const known = findPin(pin.name, options);
  if (known === undefined) return;
  if (hasSameRoots(known, pin)) {
    if (known.content !== pin.content) throw drift(pin.name, known.content, pin.content);
  } else if (isLocal(source)) {
    const covered = known.roots === undefined ? 'all files' : `only ${known.roots.join(', ')}`;
    const problem = `lock entry covers ${covered}, expected the paths that this command reads`;
    const hint = 'use a separate lock, or update this one with options.updateLock';
    throw new OpmateError('INVALID', problem, { subject: pin.name, hint });
  } else if (getPinnedState(known) !== getPinnedState(pin)) throw drift(pin.name, known.ref, pin.ref);
}

async function fetchPinned(
  placed: PlacedSource,
  { staging, roots }: { staging: string; roots: readonly string[] },
  session: SourceSession,
  options: ContentOptions,
): Promise<Fetched> {
  const { limits, signal } = session;
  const { contentStore } = options;
  const known = findPin(placed.name, options);
  const source = known === undefined ? placed.source : pinnedSource(placed, known);
  const isStored = known !== undefined && hasSameRoots(known, { roots }) && !isLocal(source);
  if (isStored && contentStore !== undefined) {
    const stored = await contentStore.find(known.content, { limits, signal });
    if (stored !== undefined) return { placed, pin: known, ...stored, isOwn: false };
  }
  const tree = path.join(staging, 'tree');
  await makeDirectory(staging, 0o700);
  const { ref, directory } = await fetchSource({ ...placed, source }, tree, roots, session);
  const read = await readTree(directory, { limits, signal });
  const pin = getPin(placed, ref ?? `${source.kind}@${hashOfTree(read)}`, read, roots);
  checkContent(pin, placed, options);
  if (contentStore === undefined || isLocal(source)) {
    return { placed, pin, directory, tree: read, isOwn: true };
  }
  const stored = await contentStore.put(pin.content, directory);
  return { placed, pin, directory: stored, tree: read, isOwn: stored === directory };
}

/** Fetches a source to `tree`, which must not exist; `ref` is undefined if its only state is its content. */
async function fetchSource(
  { name, source }: PlacedSource,
  tree: string,
  roots: readonly string[],
  session: SourceSession,
): Promise<{ ref?: string; directory: string }> {
  if (source.kind === 'directory') {
    await copyDirectory(source.path, tree, session);
    return { directory: tree };
  }
  return withOpen(resolvePlace(source, session, { label: name }), async ({ unpack, state }) => {
    if (unpack === undefined)
      throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle', { subject: name });
    const { directory, problems } = await unpack(tree, roots);
    const faults = [...problems.values()].map(({ message }) =>
      createFault('unpack', message, { subject: name }),
    );
    if (faults.length > 0) throw new ContentFindingsError(faults);
    return isLocal(source) ? { directory } : { ref: state.ref, directory };
  });
}

/** Merges the files of all sources into one directory and returns their hash. */
async function compose(
  opened: readonly Fetched[],
  directory: string,
  { signal }: CancelOptions,
): Promise<string> {
  const files = new Map<string, { owner: string; sha256: string }>();
  const directories = new Map<string, string>();
  const findings: Diagnostic[] = [];
  const getTarget = (destination: string, name: string): string =>
    destination === '' ? name : `${destination}/${name}`;
  for (const { placed, tree } of opened) {
    const { name: owner, destination } = placed;
    const parents = [...tree.directories.map((name) => getTarget(destination, name)), destination].filter(
      (name) => name !== '',
    );
    for (const parent of parents) {
      for (let end = parent.length; end > 0; end = parent.lastIndexOf('/', end - 1)) {
        const name = parent.slice(0, end);
        if (!directories.has(name)) directories.set(name, owner);
      }
    }
    for (const { path: name, sha256 } of tree.files) {
      const target = getTarget(destination, name);
      const other = files.get(target)?.owner;
      if (other === undefined) files.set(target, { owner, sha256 });
      else {
        const hint = 'use different destinations, or remove the file from one of them';
        const problem = `duplicate file in ${other} and ${owner}`;
        findings.push(createFault('duplicate-file', problem, { subject: target, hint }));
      }
    }
  }
  for (const [name, { owner }] of files) {
    const other = directories.get(name);
    if (other === undefined) continue;
    const problem = `is a file in ${owner} and a directory in ${other}`;
    findings.push(createFault('duplicate-file', problem, { subject: name }));
  }
  if (findings.length > 0) throw new ContentFindingsError(findings);
  await makeDirectory(directory, 0o700);
  for (const name of directories.keys()) await makeDirectory(path.join(directory, name), 0o700);
  for (const { placed, tree, directory: from, isOwn } of opened) {
    for (const { path: name } of tree.files) {
      throwIfCancelled(signal);
      const source = path.join(from, name);
      const target = path.join(directory, getTarget(placed.destination, name));
      if (isOwn) await moveWhole(source, target);
      else await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    }
  }
  return hashOfTree({
    files: [...files].map(([name, { sha256 }]) => ({ path: name, sha256 })),
    directories: [...directories.keys()],
  });
}
