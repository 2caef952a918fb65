import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createFault } from '../../core/diagnostic.js';
import { renameDirectory } from '../../core/diagnostics-error.js';
import { type TemporaryPlace, withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { InstallOptions } from './registry-v1/convert.js';
import type { PlainManifests } from './plain-directory.js';
import { readPlainFiles } from './plain-directory.js';
import { type Environment, findProgram, runProgram } from '../../files/run-program.js';

/** The part of a session that rendering programs need. */
export interface ProgramSession extends TemporaryPlace, CancelOptions {
  /** Environment of the user, of which few variables are passed on. */
  environment: Environment;
}

/** Input of a rendering program. */
export interface ProgramOptions extends InstallOptions {
  /** Name of the installation, a release of helm; by default that of the chart. */
  name?: string | undefined;
  /**
   * Configuration with its name in messages: for registry-v1 as in a ClusterExtension, for helm the values, for other
   * formats in their form.
   */
  config?: { text: string; file: string } | undefined;
  timeoutMs?: number | undefined;
  maxOutput?: number | undefined;
}

const passedOn = ['PATH', 'HOME', 'LANG'];

/** Reports whether a name is valid for the format of a program, and so contains no path. */
export function isFormatName(format: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(format);
}

/** Returns the program of a format. Throws OpmateError UNSUPPORTED if it is missing. */
export async function findFormatProgram(
  format: string,
  { environment }: Pick<ProgramSession, 'environment'>,
): Promise<string> {
  const program = `opmate-format-${format}`;
  const file = isFormatName(format) ? await findProgram(program, environment) : undefined;
  if (file !== undefined) return file;
  throw new OpmateError('UNSUPPORTED', `unknown format ${quoteGo(format)}`, {
    hint: isFormatName(format)
      ? `use registry-v1, plain or helm, or add an executable ${program} to PATH`
      : 'use registry-v1, plain, helm, or a name of lower-case letters, digits and dashes',
  });
}

/**
 * Renders a directory with the program `opmate-format-NAME` on PATH. The directory is its argument and its working
 * directory; it prints manifests as YAML or JSON documents. Its environment has OPMATE_FORMAT, OPMATE_NAME,
 * OPMATE_INSTALL_NAMESPACE, OPMATE_WATCH_NAMESPACES (separated by commas), OPMATE_CERT_PROVIDER, OPMATE_CONFIG (path of
 * the configuration, if any), a temporary directory as TMPDIR, and the user's PATH, HOME and LANG. Throws OpmateError if
 * the program is missing or fails.
 */
export async function renderExternal(
  directory: string,
  format: string,
  session: ProgramSession,
  options: ProgramOptions,
): Promise<PlainManifests> {
  const file = await findFormatProgram(format, session);
  const program = path.basename(file);
  return withTemporaryDirectory(session, async (temporary) => {
    const home = path.join(temporary, 'tmp');
    await mkdir(home, { mode: 0o700 });
    const environment: Record<string, string> = {
      ...variables(session.environment, passedOn),
      TMPDIR: home,
      OPMATE_FORMAT: format,
      OPMATE_NAME: options.name ?? '',
      OPMATE_CERT_PROVIDER: options.provider ?? 'none',
      OPMATE_INSTALL_NAMESPACE: options.installNamespace,
      OPMATE_WATCH_NAMESPACES: (options.watchNamespaces ?? []).join(','),
    };
    const place = path.join(temporary, 'config.yaml');
    if (options.config !== undefined) environment['OPMATE_CONFIG'] = place;
    const content = await withConfig(options.config, place, () =>
      runProgram(file, [path.resolve(directory)], {
        name: program,
        environment,
        workingDirectory: directory,
        signal: session.signal,
        timeoutMs: options.timeoutMs,
        maxOutput: options.maxOutput,
      }),
    );
    return printedManifests(program, content);
  });
}

/** Runs a program with its configuration in a file, which errors name as the user does. */
export async function withConfig<R>(
  config: ProgramOptions['config'],
  place: string,
  run: () => Promise<R>,
): Promise<R> {
  if (config === undefined) return run();
  await writeFile(place, config.text, { mode: 0o600 });
  return run().catch((error: unknown) => {
    throw error instanceof OpmateError ? renameDirectory(error, place, config.file) : error;
  });
}

/** Returns the variables with these names that are set. */
export function variables(environment: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Reads the manifests that a program printed; findings have the lines of its output. */
export function printedManifests(program: string, content: Buffer): PlainManifests {
  const { objects, findings, isEmpty } = readPlainFiles([{ name: `output of ${program}`, content }]);
  if (isEmpty && findings.length === 0)
    findings.push(createFault('no-objects', `${program} prints no objects`));
  return { objects, findings, warnings: [] };
}
