import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { ownVersion, platformOfMachine } from '../../api/own-process.js';
import { writeAll } from '../output.js';
import { readBuild, versionText } from '../version-text.js';

/** `opmate version`; prints the line of `opm version`, which scripts parse, or data with `-o`. */
export const command = defineCommand({
  summary: 'print the version',
  tool: 'opm',
  arguments: [argument('[ignored...]')],
  flags: { output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: {
    "Print the version in opm's format": 'opmate version',
    'Print the version as data': 'opmate version -o json',
  },
  async run({ context, options }) {
    if (options.output === 'text') {
      await writeAll(context.stdout, versionText(context.architecture));
      return;
    }
    const { commit, date } = readBuild();
    const build = commit === '' ? {} : { commit, buildDate: date };
    const machine = platformOfMachine(context.architecture);
    const value = { version: ownVersion(), ...build, ...machine, node: process.versions.node };
    const { encodeData } = await import('../reports/encode-data.js');
    await writeAll(context.stdout, encodeData(value, options.output));
  },
});
