import { buildIndexImage } from '../../api/indexes/index-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { databaseSummary } from '../registry/database.js';
import { baseImageNote, indexImageFlags, printIndexImage } from './edit.js';

/** `opmate index build`. */
export const command = defineCommand({
  summary: 'build an index image from a database file',
  description: baseImageNote,
  arguments: [argument('<database>', databaseSummary)],
  flags: indexImageFlags,
  examples: {
    'Build and push an index image':
      'opmate index build index.db -t registry.example.com/demo/index:v2 -i scratch',
    'Save the image to a file': 'opmate index build index.db --save index.tar -i scratch',
  },
  runInSession: ({ context, args: [file], options, session }) =>
    printIndexImage(context, options, session, (image) => buildIndexImage(file, session, image)),
});
