/** What `registry add` and `index add` have in common. */
import { BundleImageAlreadyAddedError } from '../../sqlite/add/already-added.js';
import { addContext } from '../../core/diagnostics-error.js';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { type PullFrom, checkBundleReference, parsePullFrom, stageBundles } from '../../source/bundles.js';
import { type AddMode, type AddReport, addBundles } from '../../sqlite/add/add.js';
import { openDatabase } from '../../sqlite/schema/database.js';
import { type EditOptions, editDatabase } from '../../sqlite/schema/edit.js';
import type { StagedBundle } from '../../sqlite/add/stage.js';
import type { CommandContext } from '../context.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { addFlags } from './add-flags.js';
import { exitCodes } from '../exit-codes.js';
import { readInput } from '../input.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';

/** Options of the commands that add bundles; those of the flags that a command lacks are as if not given. */
type AddOptions = GlobalOptions &
  Partial<FlagValues<typeof addFlags>> & { containerTool?: string | undefined };

/** What is to be added, and how; checked. */
export interface AddPlan {
  references: string[];
  mode: AddMode;
  pullFrom: PullFrom[];
  flags: AddOptions;
}

/**
 * Checks the options and references of a command that adds bundles, and reads `--from-file`. Nothing is pulled.
 * Throws UsageError, and OpmateError with file and line for what is wrong in the file.
 */
export async function planAdd(
  context: CommandContext,
  flags: AddOptions,
  references: readonly string[],
): Promise<AddPlan> {
  const mode = parseMode(flags.mode ?? 'replaces');
  if (flags.minimal === true && flags.allInOne === true) {
    throw new UsageError('--minimal and --all-in-one cannot be used together', { hint: 'keep one of them' });
  }
  if (flags.caFile !== undefined && flags.skipTlsVerify === true) {
    throw new UsageError('--skip-tls-verify must be false when --ca-file is set', {
      hint: 'leave out --skip-tls-verify: certificates of that authority are trusted',
    });
  }
  const pullFrom = parsePullFrom(flags.pullFrom ?? []);
  const listed = flags.fromFile === undefined ? [] : await readReferenceList(context, flags.fromFile, flags);
  return { references: [...references, ...listed], mode, pullFrom, flags };
}

const modes: readonly AddMode[] = ['replaces', 'semver', 'semver-skippatch'];

function parseMode(text: string): AddMode {
  const mode = modes.find((addMode) => addMode === text.toLowerCase());
  if (mode !== undefined) return mode;
  throw new UsageError(`Invalid channel update mode ${text} specified`, {
    hint: `use one of ${modes.join(', ')}`,
  });
}

/** References from a file, one a line; empty lines and what follows a `#` do not count. */
async function readReferenceList(
  context: CommandContext,
  name: string,
  flags: AddOptions,
): Promise<string[]> {
  const text = (await readInput(name, context)).toString('utf8').replace(/^\uFEFF/, '');
  const file = name === '-' ? 'standard input' : name;
  const references: string[] = [];
  for (const [index, content] of text.split(/\r\n|\n|\r/).entries()) {
    const reference = content.replace(/(^|\s)#.*$/, '').trim();
    if (reference === '') continue;
    const place = { file, line: index + 1 };
    try {
      if (/[\s\0,]/.test(reference)) {
        const shown = JSON.stringify(reference.slice(0, 100));
        throw new OpmateError('INVALID', `${shown}: not one reference`, {
          hint: 'write one reference a line',
        });
      }
      const isPath = /^\.{0,2}\//.test(reference) || (await isThere(reference));
      if (!isPath) checkBundleReference(reference, flags);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      throw addContext(error, { subject: `${file}:${place.line}`, ...place });
    }
    references.push(reference);
  }
  return references;
}

async function isThere(file: string): Promise<boolean> {
  return (await statIfPresent(file)) !== undefined;
}

/** What was added, and with `--permissive` what was not. */
interface AddOutcome {
  /** Names of bundles by package. */
  added: Map<string, string[]>;
  failures: OpmateError[];
}

/**
 * Pulls and reads the bundles of a plan, and then adds them to a database in one transaction. Throws what
 * `stageBundles`, `editDatabase` and `addBundles` throw; the database is then as it was.
 */
export async function addToDatabase(
  session: CommandSession,
  plan: AddPlan,
  file: string,
  edit: Omit<EditOptions, 'signal'>,
): Promise<AddOutcome> {
  const { mode, pullFrom, flags } = plan;
  const { logger, signal } = session;
  warnOfFlags(flags, mode, logger);
  await checkDatabase(file, edit);
  const failures: AddOutcome['failures'] = [];
  const { permissive = false, requireDigest, overwriteLatest, enableAlpha, minimal, allInOne } = flags;
  const stage = await stageBundles(plan.references, session, {
    pullFrom,
    requireDigest,
    onFailure: permissive ? (_, error) => void failures.push(error) : undefined,
  });
  try {
    const report = await editDatabase(file, { ...edit, signal }, (database) =>
      addBundles(database, stage.bundles, {
        mode,
        overwriteLatest,
        permissive,
        enableAlpha,
        minimal,
        allInOne,
        logger,
        signal,
      }),
    );
    for (const { bundle, error } of report.failures) failures.push(inBundle(bundle.reference, error));
    return { added: byPackage(report, stage.bundles), failures };
  } finally {
    await stage.close();
  }
}

/** Returns the same error about the reference, unless it names the image. */
function inBundle(reference: string, error: OpmateError): OpmateError {
  if (error instanceof BundleImageAlreadyAddedError) return error;
  return addContext(error, { subject: reference });
}

/** Finds out before much is pulled whether the database can be written. */
async function checkDatabase(file: string, edit: Omit<EditOptions, 'signal'>): Promise<void> {
  const { outputFile, create = false, timeoutMs, name } = edit;
  const stats = await statIfPresent(file);
  if (stats !== undefined) {
    const inPlace = outputFile === undefined;
    const access = inPlace ? (create ? 'create' : 'write') : 'read';
    const database = await openDatabase(file, { access, timeoutMs, name });
    try {
      // Takes the lock for writing, and changes nothing.
      if (inPlace) await database.transaction(() => undefined);
    } finally {
      database.close();
    }
  }
  const target = outputFile ?? file;
  if (stats !== undefined && outputFile === undefined) return;
  await access(path.dirname(path.resolve(target)), constants.W_OK).catch((error: unknown) => {
    throw fileError(`open ${target}`, error, { file: target });
  });
}

function byPackage(report: AddReport, bundles: readonly StagedBundle[]): Map<string, string[]> {
  const packages = new Map(bundles.map(({ record }) => [record.name, record.packageName]));
  const added = new Map<string, string[]>();
  for (const name of report.added) {
    const packageName = packages.get(name) ?? '';
    added.set(packageName, [...(added.get(packageName) ?? []), name]);
  }
  return added;
}

function warnOfFlags(flags: AddOptions, mode: AddMode, logger: Logger): void {
  const { skipTlsVerify, useHttp, containerTool = 'none', overwriteLatest } = flags;
  for (const [flag, isSet] of [
    ['--skip-tls-verify', skipTlsVerify],
    ['--use-http', useHttp],
  ] as const) {
    if (isSet === true)
      logger.log(
        'warn',
        `${flag} flag is set: this mode is insecure and meant for development purposes only.`,
      );
  }
  if (containerTool !== 'none' && containerTool !== '')
    logger.log('info', `--container-tool ${containerTool} is ignored: opmate pulls images without an engine`);
  if (overwriteLatest === true && mode !== 'replaces')
    logger.log('warn', `--overwrite-latest has no effect in mode ${mode}`);
}

/** Tells on stderr what was added, and what was not; returns the exit code. */
export function reportAdded(logger: Logger, { added, failures }: AddOutcome, name: string): number {
  const names = [...added.values()].flat();
  const list = sortedByBytes(added.keys()).map((text) => `${text} (${added.get(text)?.length})`);
  const shown = list.slice(0, 10).join(', ') + (list.length > 10 ? ` and ${list.length - 10} more` : '');
  logger.log(
    'info',
    `${name}: ${names.length === 0 ? 'no bundle added' : `added ${count(names.length, 'bundle')}: ${shown}`}`,
  );
  if (failures.length === 0) return exitCodes.done;
  const left = failures.length === 1 ? '1 bundle was' : `${failures.length} bundles were`;
  logger.log('error', `${name}: ${left} left out:`);
  for (const { message, hint } of failures)
    logger.log('error', hint === undefined ? message : `${message} (${hint})`);
  return exitCodes.partly;
}
