import { type IndexEdit, editCommands, logRemoved } from './edit-commands.js';
import { toolFlags } from './edit.js';

/** `opmate registry prune-stranded` and `opmate index prune-stranded`. */
export const { registryCommand, command } = editCommands(
  {
    name: 'prune-stranded',
    tool: 'opm',
    flags: {},
    examples: {
      'Prune an index': '',
    },
    plan: (): IndexEdit<'prune-stranded'> => ({
      change: { kind: 'prune-stranded' },
      report(logger, name, { bundles, nameless }) {
        if (bundles.length > 0 || nameless === 0) logRemoved(logger, name, { bundles });
        if (nameless === 0) return;
        const rows = nameless === 1 ? '1 row of a bundle' : `${nameless} rows of bundles`;
        logger.log('info', `${name}: removed ${rows} without a name`);
      },
    }),
  },
  { summary: 'remove bundles that are in no channel' },
  {
    summary: 'remove bundles that are in no channel from an index image',
    tools: { containerTool: toolFlags.containerTool },
  },
);
