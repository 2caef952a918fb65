import { mkdir, open, realpath } from 'node:fs/promises';
import path from 'node:path';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { OpmateError, throwFileError, throwIfCancelled, writeError } from '../../core/errors.js';
import { changeDirectory } from '../../files/change-directory.js';
import { isWithin } from '../../core/text/paths.js';
import { lstatIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { type CatalogFacts, emptyFacts, joinFacts } from '../../model/facts.js';
import { isOnlyBegun, readPackages } from '../../graph/package-model.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { DirectoryCatalog } from '../catalog.js';
import { addFacts } from '../facts.js';
import { openFile, readFully } from '../file-access.js';
import { IgnoreRules, ignoreFileName } from '../ignore.js';
import { requireValid } from '../selection/selection.js';
import { type BlobEdit, type FileEdit, type Splice, planFiles } from './blob-edits.js';
import { type EditableCatalog, changedMeanwhile, listFileVersions } from './editable-catalog.js';
import { diffFiles } from './file-diff.js';

interface ApplyOptions extends CancelOptions {
  /** Write nothing to the catalog; return a unified diff. */
  dryRun?: boolean | undefined;
  /** Directory for the files of a dry run. */
  temporaryDirectory: string;
}

/** Result of an edit or dry run. */
export interface AppliedEdits {
  /** Paths relative to the catalog directory. */
  files: { name: string; kind: FileEdit['kind'] }[];
  /** Diff of a dry run, for `patch -p1` in the catalog directory. */
  diff: string;
}

/**
 * Throws OpmateError INVALID with all problems for an invalid catalog, which cannot be edited. A catalog without
 * blobs can, and with `mayBegin` one with incomplete packages that the edit completes.
 */
export function requireValidInput(
  { facts, files, name }: EditableCatalog,
  { mayBegin = false }: { mayBegin?: boolean } = {},
): void {
  if (!files.some(({ blobs }) => blobs.length > 0)) return;
  const begun = new Set<string>();
  if (mayBegin) for (const [key, model] of readPackages(facts)) if (isOnlyBegun(model)) begun.add(key);
  const packages = facts.packages.filter((packageFacts) => !begun.has(packageFacts.name));
  const rest = { ...facts, packages };
  if (begun.size > 0 && isWithoutContent(rest)) return;
  requireValid(rest, name);
}

function isWithoutContent({ packages, channels, bundles }: CatalogFacts): boolean {
  return packages.length === 0 && channels.length === 0 && bundles.length === 0;
}

/**
 * Changes blobs of a catalog in place, all files in one step. New files are staged, read again and validated as a
 * catalog, then all are moved or none: see `changeDirectory`. Targets of links are written in place.
 *
 * Throws OpmateError: INVALID with all problems if the result is invalid, UNSAFE for a file outside of the catalog
 * directory, IO for a catalog that changed since it was read. The catalog is then unchanged.
 */
export async function applyEdits(
  catalog: EditableCatalog,
  edits: readonly BlobEdit[],
  options: ApplyOptions,
): Promise<AppliedEdits> {
  const plans = await planFiles(catalog, edits);
  const files = plans.map((plan) => ({ name: getName(plan), kind: plan.kind }));
  if (plans.length === 0) return { files, diff: '' };
  const places = await Promise.all(plans.map((plan) => findTarget(catalog, plan))).catch(
    throwFileError(`write ${catalog.name}`),
  );
  const stageIn = async (staging: string): Promise<StagedFile[]> => {
    const staged = plans.map((plan, index) => ({
      plan,
      target: places[index] as string,
      staged: path.join(staging, String(index), path.posix.basename(getName(plan))),
    }));
    for (const item of staged) await stage(item, options);
    await validateResult(catalog, staged, options);
    return staged;
  };
  if (options.dryRun === true) {
    await withTemporaryDirectory({ ...options, now: () => new Date() }, stageIn);
    return { files, diff: await diffFiles(plans) };
  }
  const { root, name } = catalog;
  // Readers ignore it if a killed edit leaves it behind.
  const hiddenBy = { name: ignoreFileName, text: '*\n' };
  await changeDirectory(root, { beside: true, hiddenBy, subject: `write ${name}` }, async (change) => {
    const staged = await stageIn(change.staging);
    throwIfCancelled(options.signal);
    await requireUnchanged(catalog, change.staging);
    for (const { plan, target, staged: file } of staged) {
      const place = path.relative(root, target);
      if (plan.kind === 'create') change.add(file, place);
      else if (plan.kind === 'remove') change.remove(place);
      else change.put(file, place);
    }
  });
  return { files, diff: '' };
}

interface StagedFile {
  plan: FileEdit;
  /** Real path of the file. */
  target: string;
  /** Path of its staged content. */
  staged: string;
}

function getName(plan: FileEdit): string {
  return plan.kind === 'create' ? plan.name : plan.file.name;
}

async function findTarget(catalog: EditableCatalog, plan: FileEdit): Promise<string> {
  const { root, name } = catalog;
  const label = path.posix.join(name, getName(plan));
  if (plan.kind === 'create') {
    const target = path.join(root, plan.name);
    if ((await lstatIfPresent(target)) !== undefined) {
      throw new OpmateError('INVALID', 'already exists without blobs of the package', {
        about: label,
        hint: 'remove it, or remove its line from .indexignore',
      });
    }
    await requireNotIgnored(catalog, plan.name);
    const parent = path.dirname(target);
    const stats = await lstatIfPresent(parent);
    if (stats !== undefined && !stats.isDirectory()) {
      throw new OpmateError('UNSAFE', 'is not a directory', {
        subject: path.posix.dirname(label),
        file: label,
      });
    }
    return target;
  }
  const target = await realpath(plan.file.path).catch(throwFileError(label, { file: label }));
  if (isWithin(root, target)) return target;
  throw new OpmateError('UNSAFE', 'is a link that leads out of the catalog', {
    about: label,
    hint: `edit the catalog that contains ${target}, or replace the link with a copy of the file`,
  });
}

/** Rejects a new file that the rules of the catalog would hide. */
async function requireNotIgnored({ root, name }: EditableCatalog, file: string): Promise<void> {
  const rules = new IgnoreRules();
  const components = file.split('/');
  for (let depth = 0; depth < components.length; depth++) {
    const within = components.slice(0, depth);
    const rulesFile = path.join(root, ...within, ignoreFileName);
    if ((await lstatIfPresent(rulesFile)) === undefined) continue;
    await rules.addFile(rulesFile, path.posix.join(name, ...within, ignoreFileName), within);
  }
  if (!rules.ignores(components)) return;
  const label = path.posix.join(name, file);
  throw new OpmateError('INVALID', `an ${ignoreFileName} excludes this file from the catalog`, {
    about: label,
    hint: 'fix it, or start the package in a file of another name',
  });
}

async function stage({ plan, staged }: StagedFile, options: ApplyOptions): Promise<void> {
  try {
    await mkdir(path.dirname(staged));
    if (plan.kind === 'create') await writeNewFile(staged, plan.text);
    else if (plan.kind === 'change') await writeSpliced(plan.file.path, plan.splices, staged, options);
  } catch (error) {
    throw writeError(`write ${getName(plan)}`, error, { file: getName(plan) });
  }
}

const copySize = 1024 * 1024;

async function writeSpliced(
  source: string,
  splices: readonly Splice[],
  target: string,
  { signal }: ApplyOptions,
): Promise<void> {
  await withOpen(openFile(source, source), async (from) => {
    const { size, mode } = await from.stat();
    await withOpen(open(target, 'wx', mode & 0o777), async (to) => {
      await to.chmod(mode & 0o777);
      const buffer = Buffer.allocUnsafe(Math.min(copySize, size));
      let position = 0;
      for (const { offset, length, text } of [...splices, { offset: size, length: 0, text: '' }]) {
        while (position < offset) {
          throwIfCancelled(signal);
          const part = buffer.subarray(0, Math.min(buffer.length, offset - position));
          if ((await readFully(from, part, position, source)) < part.length) throw changedMeanwhile(source);
          await to.writeFile(part);
          position += part.length;
        }
        if (text !== '') await to.writeFile(text);
        position = offset + length;
      }
      await to.sync();
    });
  });
}

/** Reads the staged files and validates the resulting catalog. */
async function validateResult(
  { files, name }: EditableCatalog,
  staged: readonly StagedFile[],
  { signal }: ApplyOptions,
): Promise<void> {
  const edited = new Map<string, { facts: CatalogFacts }>();
  for (const { plan, staged: file } of staged) {
    if (plan.kind === 'remove') continue;
    await withOpen(new DirectoryCatalog(path.dirname(file), name), async (catalog) => {
      const facts = emptyFacts();
      let blobs = 0;
      for await (const meta of catalog.metas({ signal })) {
        addFacts(facts, meta);
        blobs++;
      }
      if (blobs !== plan.blobs) {
        throw new OpmateError('INTERNAL', `expected ${plan.blobs} blobs, got ${blobs}`, {
          subject: getName(plan),
        });
      }
      edited.set(getName(plan), { facts });
    });
  }
  const touched = new Set(staged.map(({ plan }) => getName(plan)));
  const kept = files.filter((file) => !touched.has(file.name));
  const facts = joinFacts([...kept, ...edited.values()].map((file) => file.facts));
  if (!isWithoutContent(facts)) requireValid(facts, `${name} after the edit`);
}

async function requireUnchanged({ catalog, files, name }: EditableCatalog, staging: string): Promise<void> {
  const now = (await listFileVersions(catalog)).filter((file) => !file.path.startsWith(`${staging}/`));
  const versions = new Map(now.map((file) => [file.name, file.version]));
  const other =
    files.find((file) => versions.get(file.name) !== file.version)?.name ??
    now.find((file) => !files.some((editableFile) => editableFile.name === file.name))?.name;
  if (other !== undefined) throw changedMeanwhile(path.posix.join(name, other));
}
