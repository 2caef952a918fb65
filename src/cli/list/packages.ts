import { argument, defineCommand } from '../command/declaration.js';
import { catalogForms } from '../../api/open-catalog.js';
import { printList } from './table.js';

/** `opmate list packages`. */
export const command = defineCommand({
  summary: 'list the packages of a catalog',
  arguments: [argument('<reference>', `catalog: ${catalogForms}`)],
  examples: [
    ['List the packages of a catalog directory', 'opmate list packages ./catalog'],
    ['List the packages of a sqlite index', 'opmate list packages index.db'],
  ],
  run: ({ context, args: [reference], options }) =>
    printList(context, 'packages', reference, undefined, options),
});
