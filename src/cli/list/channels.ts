import { argument, defineCommand } from '../command/declaration.js';
import { catalogForms } from '../../api/open-catalog.js';
import { channelListFlags, printList } from './table.js';

/** `opmate list channels`. */
export const command = defineCommand({
  summary: 'list the channels of a catalog',
  arguments: [
    argument('<reference>', `catalog: ${catalogForms}`),
    argument('[package]', 'list only this package'),
  ],
  flags: channelListFlags,
  examples: {
    'List the channels of a catalog directory': 'opmate list channels ./catalog',
    'List the channels of one package in a catalog image':
      'opmate list channels registry.example.com/demo/catalog:v1 demo',
  },
  runInSession: ({ context, args: [reference, packageName], options, session }) =>
    printList(context, 'channels', reference, packageName, options, session),
});
