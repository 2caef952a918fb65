import { list, required } from '../command/flags.js';
import { permissiveFlag } from '../registry/database.js';
import { type IndexEdit, editCommands, logRemoved } from './edit-commands.js';
import { toolFlags } from './edit.js';

/** `opmate registry prune` and `opmate index prune`. */
export const { registryCommand, command } = editCommands(
  {
    name: 'prune',
    tool: 'opm',
    flags: {
      package: required(
        list('name', 'packages to keep', { short: 'p', aliases: ['packages'], group: 'Selection' }),
      ),
      permissive: permissiveFlag,
    },
    examples: {
      'Keep one package': '-p demo',
    },
    plan({ package: packages }): IndexEdit<'prune'> {
      return {
        change: { kind: 'prune', packages },
        report(logger, name, report) {
          for (const text of report.unknown)
            logger.log('warn', `${name}: no package found for packagename ${text}, which was to be kept`);
          logRemoved(logger, name, report);
        },
      };
    },
  },
  { summary: 'remove all packages except the specified ones' },
  {
    summary: 'remove all packages except the specified ones from an index image',
    tools: { containerTool: toolFlags.containerTool },
  },
);
