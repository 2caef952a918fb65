import { isExecutable, readOwnFile } from '../../files/own-files.js';
import { defineCommand } from '../command/declaration.js';
import { writeAll } from '../output.js';

/** `opmate licenses`; in a single executable also the license of Node.js. */
export const command = defineCommand({
  summary: 'print the licenses of opmate and of the software it contains',
  examples: {
    'Print all licenses': 'opmate licenses',
    'List the packages that opmate contains': "opmate licenses | grep -E '^\\S+ [0-9]\\S* \\('",
  },
  async run({ context }) {
    const files = ['LICENSE', 'lib/THIRD-PARTY-NOTICES', ...(isExecutable() ? ['licenses/node'] : [])];
    const rule = `\n${'='.repeat(80)}\n\n`;
    await writeAll(context.stdout, files.map((name) => readOwnFile(name).toString()).join(rule));
  },
});
