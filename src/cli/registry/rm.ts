import { defineCommand } from '../command/declaration.js';
import { removeArguments, removeFlags, removeFromDatabase } from './remove-packages.js';

/** `opmate registry rm`: removes packages from a database file. */
export const command = defineCommand({
  summary: 'remove packages',
  tool: 'opm',
  arguments: removeArguments,
  flags: removeFlags,
  examples: [
    ['Remove a package', 'opmate registry rm demo index.db'],
    ['Keep the index, and write a new one', 'opmate registry rm demo index.db --output-db new.db'],
  ],
  run: ({ context, args, options }) => removeFromDatabase(context, args, options),
});
