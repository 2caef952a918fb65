import { argument, defineCommand } from '../command/declaration.js';
import { catalogForms } from '../../api/open-catalog.js';
import { text } from '../command/flags.js';
import { channelListFlags, printList } from './table.js';

/** `opmate list bundles`. */
export const command = defineCommand({
  summary: 'list the bundles of a catalog',
  arguments: [
    argument('<reference>', `catalog: ${catalogForms}`),
    argument('[package]', 'list only this package'),
  ],
  flags: {
    ...channelListFlags,
    version: text('range', 'list only versions in a range; see "opmate help versions"', {
      group: 'Selection',
    }),
  },
  examples: {
    'List the bundles of a catalog directory': 'opmate list bundles ./catalog',
    'List the bundles of one package in a catalog image':
      'opmate list bundles registry.example.com/demo/catalog:v1 demo',
    'List the bundles of one channel': 'opmate list bundles ./catalog -p demo --channel stable',
    'List the bundles in a version range': 'opmate list bundles ./catalog -p demo --version ">=1.1"',
  },
  runInSession: ({ context, args: [reference, packageName], options, session }) =>
    printList(context, 'bundles', reference, packageName, options, session),
});
