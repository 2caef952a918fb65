import { argument, defineCommand } from '../command/declaration.js';
import { catalogForms } from '../../api/open-catalog.js';
import { listFlags, printList } from './table.js';

/** `opmate list packages`. */
export const command = defineCommand({
  summary: 'list the packages of a catalog',
  arguments: [argument('<reference>', `catalog: ${catalogForms}`)],
  flags: listFlags,
  examples: {
    'List the packages of a catalog directory': 'opmate list packages ./catalog',
    'List the packages of a sqlite index': 'opmate list packages index.db',
    'Print them as JSON': 'opmate list packages ./catalog -o json',
  },
  runInSession: ({ context, args: [reference], options, session }) =>
    printList(context, 'packages', reference, undefined, options, session),
});
