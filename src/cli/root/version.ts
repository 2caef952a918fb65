import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { ownVersion, platformOfMachine } from '../../api/own-process.js';
import { readOwnFile } from '../../files/own-files.js';
import { writeAll } from '../output.js';

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
    const own = ownVersion();
    const { commit, date } = readBuild();
    const { os, architecture } = platformOfMachine(context.architecture);
    if (options.output !== 'text') {
      const build = commit === '' ? {} : { commit, buildDate: date };
      const value = { version: own, ...build, os, architecture, node: process.versions.node };
      const { encodeData } = await import('../reports/encode-data.js');
      await writeAll(context.stdout, encodeData(value, options.output));
      return;
    }
    const line =
      `Version: version.Version{OpmVersion:"v${own}", GitCommit:"${commit}", BuildDate:"${date}", ` +
      `GoOs:"${os}", GoArch:"${architecture}"}\n`;
    await writeAll(context.stdout, line);
  },
});

/** Returns the commit that was compiled and its date in UTC; both are empty for a build without git. */
function readBuild(): { commit: string; date: string } {
  try {
    return JSON.parse(readOwnFile('dist/build.json').toString()) as { commit: string; date: string };
  } catch {
    return { commit: '', date: '' };
  }
}
