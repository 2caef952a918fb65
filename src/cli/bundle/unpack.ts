import type { Command } from 'commander';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { unpackBundle } from '../../api/bundle/unpack-bundle.js';
import { inSource } from '../../api/bundle/bundle-sources.js';
import { redactUrls } from '../../core/errors.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { contentFlags, sourceForms } from './content-flags.js';
import { endWithFindings } from './findings.js';

/** `opmate bundle unpack`; extracts all files or none, and never replaces an existing one. */
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
  examples: {
    'Extract a bundle image': 'opmate bundle unpack registry.example.com/demo/bundle:v1.0.0 --to ./unpacked',
    'Extract a bundle without validation': 'opmate bundle unpack ./bundle --to ./copy --skip-validation',
  },
  readOptions: ({ commands, options }) => ({
    ...options,
    caFile: options.rootCa ?? options.caFile,
    ...(isShortVerbose(commands.program) && { skipValidation: true, verbose: false }),
  }),
  async runInSession({ context, args: [reference], options, tool, session }) {
    const { findings, isInPlace } = await unpackBundle(reference, options.to, session, options);
    if (findings.length === 0) {
      // opm says nothing.
      reportEnding(
        session.logger,
        tool === undefined ? [`unpacked ${redactUrls(reference)} to ${options.to}`] : [],
      );
      return exitCodes.done;
    }
    const named = findings.map(inSource(redactUrls(reference), isInPlace));
    return endWithFindings({ context, session, tool }, named);
  },
});

/** Reports whether `-v` is set. It skips validation in `opm`, but the global flag takes it first. */
function isShortVerbose(program: Command): boolean {
  return (program as unknown as { rawArgs: readonly string[] }).rawArgs.includes('-v');
}
