import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createFault } from '../../core/diagnostic.js';
import { type TemporaryPlace, withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { CertificateProvider } from './registry-v1/certificates.js';
import type { PlainManifests } from './plain-directory.js';
import { readPlainFiles } from './plain-directory.js';
import { type Environment, findProgram, runProgram } from '../../files/run-program.js';

/** What programs that render content need of a session. */
export interface ProgramSession extends TemporaryPlace, CancelOptions {
  /** That of the user, from which only what is needed is passed on. */
  environment: Environment;
}

/** What a program that renders content is told. */
export interface ProgramOptions {
  /** Of the installation, as helm calls it a release; that of the chart where it is left out. */
  name?: string | undefined;
  installNamespace: string;
  watchNamespaces?: readonly string[] | undefined;
  provider?: CertificateProvider | undefined;
  /** A configuration, in the form that the format has for it. */
  config?: { text: string } | undefined;
  timeoutMs?: number | undefined;
  maxOutput?: number | undefined;
}

const passedOn = ['PATH', 'HOME', 'LANG'];

/** Whether a format may be one of a program: what its name is made of, so that it names no path. */
export function isFormatName(format: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(format);
}

/**
 * Renders a directory through the program `opmate-format-NAME` of PATH, for formats that opmate does not know. The
 * directory is its argument and its working directory; it prints manifests, as YAML or JSON documents. It finds
 * OPMATE_FORMAT, OPMATE_NAME, OPMATE_INSTALL_NAMESPACE, OPMATE_WATCH_NAMESPACES (separated by commas),
 * OPMATE_CERT_PROVIDER and, where there
 * is a configuration, its file in OPMATE_CONFIG; TMPDIR is a directory that is gone afterwards; of the user's
 * environment, PATH, HOME and LANG are there. Throws OpmateError where there is no such program, or where it fails.
 */
export async function renderExternal(
  directory: string,
  format: string,
  session: ProgramSession,
  options: ProgramOptions,
): Promise<PlainManifests> {
  const program = `opmate-format-${format}`;
  const file = isFormatName(format) ? await findProgram(program, session.environment) : undefined;
  if (file === undefined) {
    throw new OpmateError('UNSUPPORTED', `format ${quoteGo(format)}: neither known nor a program`, {
      hint: isFormatName(format)
        ? `use registry-v1, plain or helm, or add an executable ${program} to PATH`
        : 'use registry-v1, plain, helm, or a name of lower-case letters, digits and dashes',
    });
  }
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
    if (options.config !== undefined) {
      environment['OPMATE_CONFIG'] = path.join(temporary, 'config.yaml');
      await writeFile(environment['OPMATE_CONFIG'], options.config.text, { mode: 0o600 });
    }
    const content = await runProgram(file, [path.resolve(directory)], {
      name: program,
      environment,
      workingDirectory: directory,
      signal: session.signal,
      timeoutMs: options.timeoutMs,
      maxOutput: options.maxOutput,
    });
    return printedManifests(program, content);
  });
}

/** Those of some variables that are set. */
export function variables(environment: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** The objects that a program has printed; findings are about its output by line. */
export function printedManifests(program: string, content: Buffer): PlainManifests {
  const { objects, findings, isEmpty } = readPlainFiles([{ name: `output of ${program}`, content }], {
    prefix: '',
  });
  if (isEmpty && findings.length === 0)
    findings.push(createFault('no-objects', `${program} prints no objects`));
  return { objects, findings, warnings: [] };
}
