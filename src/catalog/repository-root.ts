import path from 'node:path';
import { OpmateError } from '../core/errors.js';
import { sortedByBytes } from '../core/order.js';
import { joinNames } from '../core/suggest.js';
import { readBytes } from '../files/file-region.js';
import { openIfRegularFile } from '../files/read-file.js';
import { schemas } from '../model/declarative-config.js';

/** Maximum files, and maximum bytes at the start of each, that are searched for packages. */
const maxSearched = { files: 5_000, bytes: 64 * 1024 };

/** Schema of a package, in JSON or YAML. */
const packagePattern = new RegExp(`["']?schema["']?\\s*:\\s*["']?${schemas.package.replace('.', '\\.')}\\b`);

/**
 * Throws OpmateError INVALID if the files of a catalog directory include those of Git, which no catalog can have: names
 * the directories with packages. `label` is the name of `root` in messages.
 */
export async function rejectRepository(
  files: readonly { path: string }[],
  root: string,
  label: string,
): Promise<void> {
  const names = files.map((file) => path.relative(root, file.path).split(path.sep));
  const isGit = (name: readonly string[]): boolean => name[0] === '.git';
  // In a worktree or submodule, .git is a file.
  if (!names.some((name) => isGit(name) && (name.length === 1 || name[1] === 'HEAD'))) return;
  const directories = await findPackageDirectories(
    root,
    names.filter((name) => !isGit(name)),
  );
  throw new OpmateError('INVALID', 'root of a Git repository, not a catalog', {
    about: label,
    hint: adviseOn(directories),
  });
}

function adviseOn(directories: readonly string[]): string {
  if (directories.length === 0) return 'specify the directory of a catalog: no file has an olm.package blob';
  if (directories.includes('.')) return 'add .git/ to .indexignore, or move the catalog to a directory';
  return `specify the directory of the catalog: ${joinNames(directories)}`;
}

/** Returns the directory that holds all packages; without one below the root, each directory with a package. */
async function findPackageDirectories(root: string, names: readonly string[][]): Promise<string[]> {
  const directories: string[][] = [];
  const searched = names.filter((name) => /\.(json|ya?ml)$/i.test(name.at(-1) ?? ''));
  for (const name of searched.slice(0, maxSearched.files)) {
    const handle = await openIfRegularFile(path.join(root, ...name));
    if (handle === undefined) continue;
    try {
      const text = (await readBytes(handle, 0, maxSearched.bytes)).toString();
      if (packagePattern.test(text)) directories.push(name.slice(0, -1));
    } finally {
      await handle.close();
    }
  }
  const [first = []] = directories;
  const common = first.filter((_, depth) =>
    directories.every((directory) => isSameUpTo(directory, first, depth)),
  );
  if (common.length > 0) return [common.join('/')];
  return sortedByBytes(new Set(directories.map((directory) => directory.join('/') || '.')));
}

function isSameUpTo(a: readonly string[], b: readonly string[], depth: number): boolean {
  return b.slice(0, depth + 1).every((part, index) => a[index] === part);
}
