/** What the commands that make index images have in common. */
import type { KeyObject } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { type Reference, parseReference, parseTargetReference } from '../../core/reference.js';
import { openImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import { replaceFiles } from '../../files/replace-file.js';
import { type Database, openDatabase } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import {
  buildIndexImages,
  defaultBinaryImage,
  extractDatabase,
  indexDockerfile,
  settleDatabase,
} from '../../sqlite/read/index-image.js';
import type { CommandContext } from '../context.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import type { indexImageFlags, toolFlags } from './index-image-flags.js';
import { openBase, putImages } from '../../api/images/image-output.js';
import { describeOutput, nextAfterImage, readSignBy } from './image-output.js';
import { writeAll } from '../output.js';
import { shellWord } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';

/** Options of the commands that make index images, of which some lack the index or the tools. */
type IndexImageOptions = GlobalOptions &
  FlagValues<typeof indexImageFlags> &
  Partial<FlagValues<typeof toolFlags>> & { fromIndex?: string | undefined };

/** Where the result goes. */
type Output =
  { kind: 'push'; target: Reference } | { kind: 'save'; file: string } | { kind: 'generate'; file: string };

/** A database to be changed, before it becomes an image. */
export interface EditedIndex {
  /** A private copy. */
  file: string;
  /** How messages name it. */
  name: string;
}

/**
 * Takes the database out of `--from-index`, or begins with none; has `work` change it, or make it; and pushes,
 * saves or writes the result as the options say. Nothing is pushed or written when `work` fails. Prints what
 * was made. Returns the exit code of `work`. Messages name an index that is begun with none as `newName`.
 */
export async function editIndex(
  context: CommandContext,
  flags: IndexImageOptions,
  work: (session: CommandSession, index: EditedIndex) => Promise<number | void>,
  newName = 'new index',
): Promise<number> {
  const output = planOutput(flags);
  const signingKey = await readSignBy(flags, context);
  if (output.kind === 'generate' && signingKey !== undefined) {
    throw new UsageError('--sign-by and --generate cannot be used together', {
      hint: 'leave one of them out',
    });
  }
  return useSession(context, flags, async (session) => {
    noticeFlags(flags, output, session.logger);
    await checkOutput(output);
    return withTemporaryDirectory(session, async (directory) => {
      const index = await takeDatabase(session, flags.fromIndex, directory, newName);
      const code = (await work(session, index)) ?? exitCodes.done;
      await settleDatabase(index.file, index.name);
      const made = await writeOutput(session, flags, { ...output, signingKey }, index.file, directory);
      reportEnding(session.logger, made.summary, made.next);
      await writeAll(context.stdout, `${made.name}\n`);
      return code;
    });
  });
}

/** `editIndex` for a change of the database in one transaction, which is then reported. */
export async function changeIndex<R>(
  context: CommandContext,
  flags: IndexImageOptions,
  change: (database: Database, session: CommandSession) => R | Promise<R>,
  report: (logger: Logger, name: string, report: R) => void,
): Promise<void> {
  await editIndex(context, flags, async (session, { file, name }) => {
    const { signal, logger } = session;
    const result = await editDatabase(file, { create: !flags.fromIndex, name, signal }, (database) =>
      change(database, session),
    );
    report(logger, name, result);
  });
}

function planOutput(flags: IndexImageOptions): Output {
  const { tag, save, generate, containerTool, buildTool, pullTool } = flags;
  if (containerTool && (buildTool || pullTool))
    throw new UsageError('container-tool cannot be set alongside pull-tool or build-tool');
  if (save !== undefined && (tag !== undefined || generate)) {
    throw new UsageError(`--save and ${generate ? '--generate' : '--tag'} cannot be used together`, {
      hint: `save the image, then push it with: opmate oci copy oci-archive:${save} ${tag ?? 'REFERENCE'}`,
    });
  }
  if (generate) return { kind: 'generate', file: flags.outDockerfile || 'index.Dockerfile' };
  if (save !== undefined) return { kind: 'save', file: save };
  if (!tag) {
    throw new UsageError('no destination for the image', {
      hint: 'add --tag REFERENCE to push it, --save FILE to write an oci-archive, or --generate for a Dockerfile',
    });
  }
  const target = parseTargetReference(tag);
  if (target.digest !== undefined || target.tag === undefined) {
    throw new UsageError(`--tag ${tag}: ${target.digest === undefined ? 'missing tag' : 'names a digest'}`, {
      hint: 'name the target, e.g. registry.example.com/ns/index:v1',
    });
  }
  if (target.transport !== 'docker' && target.transport !== 'oci') {
    throw new UsageError(`--tag ${tag}: an archive cannot be pushed to`, { hint: 'use --save FILE' });
  }
  return { kind: 'push', target };
}

/** Finds out before anything is done whether the files that are to be written have a place. */
async function checkOutput(output: Output): Promise<void> {
  if (output.kind === 'push') return;
  const directory = path.dirname(path.resolve(output.file));
  await stat(directory + path.sep).catch((error: unknown) => {
    throw fileError(`${output.file}: its directory ${path.dirname(output.file)}`, error, {
      file: output.file,
    });
  });
}

/** Says which options do nothing here; people have them in their scripts. */
function noticeFlags(flags: IndexImageOptions, output: Output, logger: Logger): void {
  const tools = [
    ['--container-tool', flags.containerTool],
    ['--build-tool', flags.buildTool],
    ['--pull-tool', flags.pullTool],
  ] as const;
  for (const [flag, value] of tools) {
    if (value && value !== 'none')
      logger.log('info', `${flag} ${value} is ignored: opmate pulls and builds images without an engine`);
  }
  if (output.kind === 'generate' && flags.tag)
    logger.log('info', `--tag ${flags.tag}: nothing is pushed with --generate`);
  if (output.kind !== 'generate' && flags.outDockerfile)
    logger.log('info', '--out-dockerfile has no effect without --generate: no Dockerfile is needed');
}

async function takeDatabase(
  session: CommandSession,
  fromIndex: string | undefined,
  directory: string,
  newName: string,
): Promise<EditedIndex> {
  if (!fromIndex) return { file: path.join(directory, 'index.db'), name: newName };
  if ((await statIfPresent(fromIndex))?.isFile() === true) {
    throw new OpmateError(
      'INVALID',
      `${fromIndex}: is a file, and --from-index takes the image of an index`,
      {
        file: fromIndex,
        hint:
          'change a database file with opmate registry add, rm, prune and so on, then make an image of it ' +
          'with opmate index build; an image in an archive is oci-archive:FILE',
      },
    );
  }
  const file = await pullDatabase(session, fromIndex, path.join(directory, 'from-index'));
  // Ends what a writer has left unfinished, and fails for what is no database before any bundle is pulled.
  (await openDatabase(file, { access: 'write', name: fromIndex })).close();
  return { file, name: fromIndex };
}

/** Unpacks the database of an index image into a new directory; returns its file. */
export async function pullDatabase(
  session: CommandSession,
  reference: string,
  directory: string,
): Promise<string> {
  const task = `pull ${reference}`;
  session.logger.progress({ task, state: 'start' });
  const opened = await openReference(parseReference(reference), session);
  try {
    const image = await openImage(opened.repository, opened.reference, session);
    return await extractDatabase(image, directory, session);
  } finally {
    await opened.close();
    session.logger.progress({ task, state: 'done' });
  }
}

/** What was made of a database: its name for stdout, and how the command ends. */
interface WrittenIndex {
  name: string;
  summary: string[];
  next: string;
}

/** Makes of a database what the options ask for. */
async function writeOutput(
  session: CommandSession,
  flags: IndexImageOptions,
  output: Output & { signingKey: KeyObject | undefined },
  file: string,
  directory: string,
): Promise<WrittenIndex> {
  const binaryImage = flags.binaryImage || defaultBinaryImage;
  if (output.kind === 'generate') {
    await writeGenerated(file, output.file, indexDockerfile(binaryImage, generatedDatabase), session);
    const name = output.file;
    const summary = [`wrote ${generatedDatabase} and ${name}`];
    return { name, summary, next: `podman build -f ${shellWord(name)} -t REGISTRY/NAME:TAG .` };
  }
  const { signal, logger, platform } = session;
  const base = await openBase(session, flags.binaryImage, '--binary-image');
  try {
    const images = await buildIndexImages(file, { bases: base.images, platform, directory, signal });
    const to: Reference =
      output.kind === 'push'
        ? output.target
        : { transport: 'oci-archive', text: `oci-archive:${output.file}`, path: output.file, tag: 'latest' };
    const name = await putImages(session, { to, signingKey: output.signingKey }, images, directory);
    logger.log('debug', `made ${name}`);
    const next = nextAfterImage({ to }, (image) => `opmate serve ${image}`);
    return { name, summary: [describeOutput({ to }, images)], next };
  } finally {
    await base.close();
  }
}

/** Where `--generate` puts the database, relative to the build context. */
const generatedDatabase = 'database/index.db';

/** Writes database and Dockerfile, both whole or neither; what was there under their names is replaced. */
async function writeGenerated(
  file: string,
  dockerfile: string,
  text: string,
  { signal }: CommandSession,
): Promise<void> {
  // Whoever runs the container must be able to read the database.
  const database = { target: generatedDatabase, copyOf: file, mode: 0o644 };
  await replaceFiles([database, { target: dockerfile, text }], { signal });
}
