import type { Command } from 'commander';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { contentFlags, sourceForms } from './content-flags.js';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { readBundleDirectory } from '../../bundle/read.js';
import { withoutBodies } from '../../bundle/without-bodies.js';
import { validateBundle } from '../../bundle/validate/validate-bundle.js';
import { redact } from '../../core/errors.js';
import { fillDirectory } from '../../files/fill-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readTree } from '../../source/drivers/file-tree.js';
import type { OpenedContent } from '../../source/content/content-types.js';
import { useSources } from '../../api/bundle/bundle-sources.js';
import { exitCodes } from '../exit-codes.js';
import { type CommandSession, useSession } from '../session.js';
import { inSource, tellFindings } from './findings.js';

/** What of the user's own directory belongs to a bundle; everything of all other sources does. */
const ownParts = ['manifests', 'metadata', 'tests'];

/**
 * `opmate bundle unpack`: the files of a bundle in a directory, all of them or none. What is there already stays, and
 * is in the way where it has a name at the top that the bundle has too. A bundle that is not valid is refused, unless
 * that is not to be checked.
 */
export const command = defineCommand({
  summary: 'validate a bundle and extract its files to a directory',
  arguments: [argument('<source>', sourceForms)],
  flags: {
    ...contentFlags,
    to: text('directory', 'output directory; existing files are never replaced', {
      aliases: ['out', 'o'],
      default: './',
      group: 'Output',
    }),
    skipValidation: flag('skip validation', { short: 'v', group: 'Behavior' }),
    rootCa: text('file', 'the same as --ca-file', { short: 'c', group: 'Registry' }),
    debug: flag('show debug messages, causes and stack traces', { short: 'd', hidden: true }),
    skipTls: flag('the old name of --use-http', { short: 's', hidden: true }),
  },
  examples: [
    [
      'Extract a bundle image',
      'opmate bundle unpack registry.example.com/demo/bundle:v1.0.0 --to ./unpacked',
    ],
    ['Extract a bundle as it is', 'opmate bundle unpack ./bundle --to ./copy --skip-validation'],
  ],
  async run({ context, commands, args: [reference], options: given, tool }) {
    const options = isShortVerbose(commands.program)
      ? { ...given, skipValidation: true, verbose: false }
      : given;
    const global = options.rootCa === undefined ? options : { ...options, caFile: options.rootCa };
    return useSession(context, global, (session) =>
      useSources(session, options, async (sources) => {
        const content = await sources.open(reference);
        const findings = options.skipValidation ? [] : await check(content, session);
        if (findings.length > 0) {
          session.logger.close();
          await tellFindings(context, findings.map(inSource(redact(reference), content.isInPlace)));
          return tool !== undefined ? exitCodes.failed : exitCodes.findings;
        }
        const { limits, signal, followLinks } = session;
        const roots = content.isInPlace ? ownParts : [''];
        await fillDirectory(
          options.to,
          async (staging) => {
            const copyTo = async (name: string): Promise<FileHandle> => {
              const file = path.join(staging, name);
              await makeDirectory(path.dirname(file));
              return open(file, 'wx', 0o666);
            };
            const tree = await readTree(content.directory, {
              roots,
              limits,
              signal,
              followLinks,
              copyTo,
            });
            for (const name of tree.directories) await makeDirectory(path.join(staging, name));
            await content.confirm();
          },
          { isShared: true },
        );
        session.logger.close();
        return exitCodes.done;
      }),
    );
  },
});

/** What `opm` refuses to unpack a bundle for. */
async function check(
  { directory }: OpenedContent,
  { signal, followLinks }: CommandSession,
): Promise<Diagnostic[]> {
  const missing: Diagnostic[] = [];
  for (const part of ['manifests', 'metadata']) {
    const found = await statIfPresent(path.join(directory, part));
    if (found?.isDirectory() !== true) {
      missing.push({
        severity: 'error',
        code: 'missing-file',
        problem: `Unable to locate ${part} directory`,
        hint: 'to unpack it nevertheless, --skip-validation',
      });
    }
  }
  if (missing.length > 0) return missing;
  const findings = validateBundle(
    withoutBodies(await readBundleDirectory(directory, { signal, followLinks })),
    {
      signal,
    },
  );
  return findings.filter(({ severity, isUntold }) => severity === 'error' && isUntold !== true);
}

/**
 * Whether `-v` was given: to `opm` it skips the validation here, but the flag of all commands with that letter
 * takes it first.
 */
function isShortVerbose(program: Command): boolean {
  return (program as unknown as { rawArgs: readonly string[] }).rawArgs.includes('-v');
}
