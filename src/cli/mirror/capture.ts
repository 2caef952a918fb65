import { createImageSet, imageSetInputFlags } from '../cluster/image-set-output.js';
import { readSnapshotPlaces } from '../cluster/snapshot-input.js';
import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { shellWord } from '../printable.js';
import { formatFlags } from '../ending.js';
import { accessFlags, mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { writeTo } from './options.js';

/** `opmate mirror capture`: the image set that `opmate cluster capture --image-set` writes, of files or stdin. */
export const command = defineCommand({
  summary: 'generate an image set from a cluster',
  arguments: [
    argument('[file...]', 'objects of the cluster: files, must-gather directories, - for stdin (default: -)'),
  ],
  inherits: mirrorFlags,
  flags: {
    ...imageSetInputFlags,
    to: text('file', 'write to this file (default: stdout)', { group: 'Output' }),
  },
  examples: {
    'Write the image set of a cluster':
      "kubectl get subscriptions,clusterextensions,csv,catalogsources,clustercatalogs -A -l '!olm.copiedFrom' -o yaml | opmate mirror capture --to imageset.yaml",
    'Write the image set from a must-gather': 'opmate mirror capture must-gather',
    'Check it against a catalog on disk':
      'opmate mirror capture objects.yaml --catalog registry.example.com/demo/catalog:v1=./catalog',
  },
  readOptions: ({ context, options }) => readMirrorOptions(options, [], context),
  async runInSession({ context, args: [places], options, session }) {
    const inputs = await readSnapshotPlaces(places, context);
    const configuration = await createImageSet(inputs, options, session);
    await writeTo(options.to, configuration, context, session.logger, (file) => [
      `wrote the image set to ${file}`,
      `opmate mirror plan -c ${shellWord(file)}${formatFlags(accessFlags, options)} docker://REGISTRY`,
    ]);
    return exitCodes.done;
  },
});
