import { argument, defineCommand } from '../command/declaration.js';
import { catalogForms } from '../../api/open-catalog.js';
import { listFlags, printList } from './table.js';

/** `opmate list bundles`. */
export const command = defineCommand({
  summary: 'list the bundles of a catalog',
  arguments: [
    argument('<reference>', `catalog: ${catalogForms}`),
    argument('[package]', 'show only this package'),
  ],
  flags: listFlags,
  examples: [
    ['List the bundles of a catalog directory', 'opmate list bundles ./catalog'],
    [
      'List those of one package in an image',
      'opmate list bundles registry.example.com/demo/catalog:v1 demo',
    ],
  ],
  run: ({ context, args: [reference, packageName], options }) =>
    printList(context, 'bundles', reference, packageName, options),
});
