import { LimitError, OpmateError } from '../core/errors.js';
import { sortedByBytes } from '../core/order.js';
import { maxPathLength, normalizeEntryPath, showName } from './entry-path.js';
import type { ArchiveMeter } from './limits.js';
import type { TarEntry } from './tar-reader.js';
import { opaqueMarker, whiteoutPrefix } from './whiteout.js';

/** Content of a file, shared by its hard links. */
export interface FileBody {
  /** Layer and entry that hold the content, both zero-based. */
  layer: number;
  entry: number;
  path: string;
  size: number;
  type: 'file' | 'unsupported';
}

/** An entry of a layer with its number in the layer. */
export type LayerEntry = Pick<TarEntry, 'path' | 'type' | 'size' | 'linkName'> & { entry: number };

interface DirectoryNode {
  kind: 'directory';
  /** Layer that last named it; whiteouts spare entries of their own layer. */
  layer: number;
  parent: DirectoryNode | undefined;
  /** Number of parent directories. */
  depth: number;
  children: Map<string, Node>;
}
type Node =
  | DirectoryNode
  | { kind: 'file'; layer: number; body: FileBody }
  /** Devices, pipes and sockets. */
  | { kind: 'special'; layer: number }
  | { kind: 'symlink'; layer: number; target: string };

/** A file of the final image; a broken one is a dangling link, or a device or pipe outside of `dev`. */
export type FinalFile = { body: FileBody; broken?: undefined } | { body?: undefined; broken: OpmateError };

/** Files and directories of a walk through the tree. */
interface Collection {
  files: Map<string, FinalFile>;
  directories: Set<string>;
  /** Directories on the path, with all of their parents. */
  around: Set<DirectoryNode>;
}

/** Subject of limits of the whole tree. */
const treeLabel = 'image';
const maxLinks = 40;
/** Maximum nesting of directories, as a name allows; links would multiply it. */
const maxDepth = maxPathLength / 2;
/** Maximum path components resolved per image; only links through other links reach it. */
const maxSteps = 20_000_000;
/** Maximum characters of all names, so that 200,000 entries cannot each have a long one. */
const maxNames = 64 * 1024 * 1024;

/**
 * File system of an image without its content: applies layers lowest first, as the OCI image specification defines
 * ("Applying Changesets"), and follows links inside this tree only. No path leaves the tree.
 */
export class ImageTree {
  readonly #root: DirectoryNode = {
    kind: 'directory',
    layer: -1,
    parent: undefined,
    depth: 0,
    children: new Map(),
  };
  readonly #meter: ArchiveMeter;
  #steps = 0;
  #names = 0;

  constructor(meter: ArchiveMeter) {
    this.#meter = meter;
  }

  /** Applies one layer on top. Throws OpmateError UNSAFE, INVALID or LIMIT with the layer and entry. */
  apply(layer: number, label: string, entries: Iterable<LayerEntry>): void {
    for (const entry of entries) {
      this.#countNames(label, entry.path.length + entry.linkName.length);
      const slash = entry.path.lastIndexOf('/');
      const parentPath = slash < 0 ? '' : entry.path.slice(0, slash);
      const name = entry.path.slice(slash + 1);
      if (name.startsWith(whiteoutPrefix)) {
        this.#whiteOut(layer, label, parentPath, name);
        continue;
      }
      const fail = (problem: string): OpmateError =>
        new OpmateError('INVALID', `entry ${showName(entry.path)}: ${problem}`, { subject: label });
      const parent = this.#resolve(label, this.#root, parentPath, layer);
      if (typeof parent === 'string') throw fail(`its parent ${describe(parent)}`);
      if (parent.kind !== 'directory') throw fail('its parent is a file');
      const existing = parent.children.get(name);
      switch (entry.type) {
        case 'directory':
          if (existing?.kind === 'directory') existing.layer = layer;
          else this.#addDirectory(label, parent, name, layer);
          break;
        case 'symlink':
          parent.children.set(name, { kind: 'symlink', layer, target: entry.linkName });
          break;
        case 'link': {
          const target = this.#hardLinkTarget(label, entry);
          if (target === undefined)
            throw fail(`hard link to ${showName(entry.linkName)}, which does not exist`);
          if (target.kind === 'directory')
            throw fail(`hard link to ${showName(entry.linkName)}, a directory`);
          parent.children.set(name, { ...target, layer });
          break;
        }
        case 'other':
          parent.children.set(name, { kind: 'special', layer });
          break;
        default: {
          const { path, size, type } = entry;
          parent.children.set(name, {
            kind: 'file',
            layer,
            body: { layer, entry: entry.entry, path, size, type },
          });
        }
      }
    }
  }

  /**
   * Returns the files under `roots` by path, in byte order, following symbolic links, so that a file may have several
   * paths. A dangling or circular link, or one to a parent directory, is a broken file. Throws LimitError.
   */
  collect(roots: readonly string[]): { files: Map<string, FinalFile>; directories: Set<string> } {
    const collection: Collection = { files: new Map(), directories: new Set(), around: new Set() };
    for (const root of new Set(roots)) {
      const slash = root.lastIndexOf('/');
      if (root === '') {
        this.#collectAt('', this.#root, this.#root, collection);
        continue;
      }
      const parent = this.#resolve(treeLabel, this.#root, slash < 0 ? '' : root.slice(0, slash));
      if (typeof parent === 'string' || parent.kind !== 'directory') continue;
      const node = parent.children.get(root.slice(slash + 1));
      if (node !== undefined) this.#collectAt(root, node, parent, collection);
    }
    const { files, directories } = collection;
    return {
      files: new Map(sortedByBytes(files.keys()).map((path) => [path, files.get(path) as FinalFile])),
      directories: new Set(sortedByBytes(directories)),
    };
  }

  /** Collects an entry, and what is below it. */
  #collectAt(path: string, node: Node, parent: DirectoryNode, collection: Collection): void {
    const { files, directories, around } = collection;
    this.#countNames(treeLabel, path.length);
    if (path.length > maxPathLength) {
      throw new LimitError(`links make a path longer than ${maxPathLength}: ${showName(path)}`, {
        subject: treeLabel,
      });
    }
    const target = node.kind === 'symlink' ? this.#followLink(path, node.target, parent, around) : node;
    if (target instanceof OpmateError) {
      files.set(path, { broken: target });
      return;
    }
    // Repeated content counts each time, so that a few links cannot stand for millions of files.
    if (files.size + directories.size >= this.#meter.limits.maxEntries) this.#meter.countEntry(treeLabel);
    if (target.kind === 'file') files.set(path, { body: target.body });
    if (target.kind === 'special' && !path.startsWith('dev/'))
      files.set(path, { broken: new OpmateError('UNSUPPORTED', `${path}: a device, pipe or socket`) });
    if (target.kind !== 'directory') return;
    if (path !== '') directories.add(path);
    const entered = this.#enter(target, around);
    for (const [name, child] of target.children)
      this.#collectAt(path === '' ? name : `${path}/${name}`, child, target, collection);
    for (const directory of entered) around.delete(directory);
  }

  /** Returns the target of a collected link, or the error of a dangling or circular one. */
  #followLink(
    path: string,
    link: string,
    parent: DirectoryNode,
    around: ReadonlySet<DirectoryNode>,
  ): Resolved | OpmateError {
    const target = this.#resolve(treeLabel, parent, link);
    const isUnresolved = typeof target === 'string';
    if (!isUnresolved && !(target.kind === 'directory' && around.has(target))) return target;
    const problem = isUnresolved ? describe(target) : 'contains the link';
    this.#meter.countEntry(treeLabel);
    return new OpmateError('NOT_FOUND', `${path}: symbolic link to ${showName(link)}, which ${problem}`);
  }

  /** Adds a directory with its parents to those on the path; returns the added ones. */
  #enter(directory: DirectoryNode, around: Set<DirectoryNode>): DirectoryNode[] {
    const added: DirectoryNode[] = [];
    for (
      let entered: DirectoryNode | undefined = directory;
      entered !== undefined && !around.has(entered);
      entered = entered.parent
    ) {
      around.add(entered);
      added.push(entered);
      this.#countStep(treeLabel);
    }
    return added;
  }

  /** Returns the first symbolic link on a path, including its end; undefined if there is none. */
  findLink(path: string): string | undefined {
    let directory = this.#root;
    for (let slash = path.indexOf('/'), start = 0; ; slash = path.indexOf('/', start)) {
      const end = slash < 0 ? path.length : slash;
      const child = directory.children.get(path.slice(start, end));
      if (child?.kind === 'symlink') return path.slice(0, end);
      if (child?.kind !== 'directory' || slash < 0) return undefined;
      directory = child;
      start = end + 1;
    }
  }

  /**
   * Follows `path` from `from`; `..` of the root and a leading slash are the root. With `create`, missing directories
   * are created as part of that layer. Returns the reason if it does not resolve.
   */
  #resolve(label: string, from: DirectoryNode, path: string, create?: number): Unresolved | Resolved {
    let directory = path.startsWith('/') ? this.#root : from;
    let links = 0;
    const left = path.split('/').reverse();
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      this.#countStep(label);
      if (name === '' || name === '.') continue;
      if (name === '..') {
        directory = directory.parent ?? directory;
        continue;
      }
      let child = directory.children.get(name);
      if (child === undefined) {
        if (create === undefined) return 'missing';
        this.#meter.countEntry(label);
        child = this.#addDirectory(label, directory, name, create);
      }
      if (child.kind === 'symlink') {
        if (++links > maxLinks) return 'loop';
        if (child.target.startsWith('/')) directory = this.#root;
        left.push(...child.target.split('/').reverse());
      } else if (child.kind !== 'directory') {
        return left.length === 0 ? child : 'missing';
      } else {
        directory = child;
      }
    }
    return directory;
  }

  #hardLinkTarget(label: string, entry: LayerEntry): Node | undefined {
    const path = normalizeEntryPath(entry.linkName, `${label}: entry ${showName(entry.path)}: hard link`);
    const slash = path.lastIndexOf('/');
    const parent = this.#resolve(label, this.#root, slash < 0 ? '' : path.slice(0, slash));
    if (typeof parent === 'string' || parent.kind !== 'directory') return undefined;
    return path === '' ? this.#root : parent.children.get(path.slice(slash + 1));
  }

  #whiteOut(layer: number, label: string, parentPath: string, name: string): void {
    const hidden = name.slice(whiteoutPrefix.length);
    // Invalid names and aufs metadata (`.wh..wh.plnk`) are ignored.
    if (hidden === '' || hidden === '.' || hidden === '..') return;
    if (hidden.startsWith(whiteoutPrefix) && name !== opaqueMarker) return;
    const parent = this.#resolve(label, this.#root, parentPath);
    if (typeof parent === 'string' || parent.kind !== 'directory') return;
    if (name === opaqueMarker) this.#removeLower(parent, layer, label);
    else this.#removeLowerChild(parent, hidden, layer, label);
  }

  #removeLower(directory: DirectoryNode, layer: number, label: string): void {
    for (const name of [...directory.children.keys()]) this.#removeLowerChild(directory, name, layer, label);
  }

  /** Removes a child except for what `layer` itself added at or below it. */
  #removeLowerChild(parent: DirectoryNode, name: string, layer: number, label: string): void {
    this.#countStep(label);
    const child = parent.children.get(name);
    if (child === undefined) return;
    if (child.kind === 'directory') {
      this.#removeLower(child, layer, label);
      if (child.children.size > 0) return;
    }
    if (child.layer !== layer) parent.children.delete(name);
  }

  #addDirectory(label: string, parent: DirectoryNode, name: string, layer: number): DirectoryNode {
    const depth = parent.depth + 1;
    if (depth > maxDepth)
      throw new LimitError(`more than ${maxDepth} nested directories`, { subject: label });
    const directory: DirectoryNode = { kind: 'directory', layer, parent, depth, children: new Map() };
    parent.children.set(name, directory);
    return directory;
  }

  #countStep(label: string): void {
    if (++this.#steps > maxSteps)
      throw new LimitError('too many steps to resolve links and whiteouts', { subject: label });
  }

  #countNames(label: string, length: number): void {
    this.#names += length;
    if (this.#names > maxNames) throw new LimitError('more than 64 MiB of names', { subject: label });
  }
}

type Unresolved = 'missing' | 'loop';
type Resolved = Exclude<Node, { kind: 'symlink' }>;

function describe(unresolved: Unresolved): string {
  return unresolved === 'loop' ? `leads through more than ${maxLinks} links` : 'the image does not have';
}
