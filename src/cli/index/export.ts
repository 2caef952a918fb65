import { exportIndex } from '../../api/indexes/export-index.js';
import { defineCommand } from '../command/declaration.js';
import { list, text, required } from '../command/flags.js';
import { UsageError } from '../../core/errors.js';
import { reportEnding } from '../ending.js';
import { count, shellWord } from '../printable.js';
import { toolFlags } from './edit.js';

/** `opmate index export`. */
export const command = defineCommand({
  summary: 'export the bundles of an index as package manifest directories',
  tool: 'opm',
  flags: {
    index: required(text('image', 'index image, or a database file', { short: 'i', group: 'Input' })),
    package: list('name', 'packages to export (default: all)', {
      short: 'p',
      aliases: ['packages'],
      group: 'Selection',
    }),
    xpackage: list('name', 'the old name of --package', {
      aliases: ['o'],
      hidden: true,
      replacement: 'package',
    }),
    to: text('directory', 'output directory', {
      aliases: ['download-folder', 'f'],
      default: 'downloaded',
      group: 'Output',
    }),
    containerTool: toolFlags.containerTool,
  },
  examples: {
    'Export one package of an index image':
      'opmate index export -i registry.example.com/demo/index:v1 -p demo',
    'Export all packages of a database': 'opmate index export -i index.db --to exported',
  },
  async runInSession({ options, session }) {
    if (options.package !== undefined && options.xpackage !== undefined)
      throw new UsageError("cannot simultaneously set '-p' and '-o' flags, remove '-o'");
    const { index, to: folder } = options;
    const names = options.package ?? options.xpackage;
    const { packages, bundles } = await exportIndex(index, folder, session, { packages: names });
    const amount = `${count(bundles, 'bundle')} of ${count(packages.length, 'package')}`;
    reportEnding(
      session.logger,
      [`exported ${amount} to ${folder}`],
      `opmate registry init -m ${shellWord(folder)} --to DATABASE`,
    );
  },
});
