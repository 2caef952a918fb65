import { captureImageSet } from '../../api/mirror-capture.js';
import { invalidValue } from '../../core/errors.js';
import { argument, defineCommand } from '../command/declaration.js';
import { repeated, text } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { readNamedInput } from '../input.js';
import { shellWord } from '../printable.js';
import { formatFlags } from '../ending.js';
import { accessFlags, mirrorFlags } from './flags.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { writeTo } from './options.js';

/** `opmate mirror capture`. */
export const command = defineCommand({
  summary: 'generate an image set configuration from the operators installed in a cluster',
  arguments: [
    argument('[file...]', 'objects of the cluster: files, must-gather directories, - for stdin (default: -)'),
  ],
  inherits: mirrorFlags,
  flags: {
    catalog: repeated('[image=]reference', 'check against this catalog; an image is the source of IMAGE', {
      group: 'Input',
    }),
    lock: text('lock', 'map mirrored catalogs to their sources by this lock', { group: 'Input' }),
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
    const catalogs = (options.catalog ?? []).map(parseCatalog);
    const inputs = await Promise.all(
      (places.length === 0 ? ['-'] : places).map(async (place) =>
        place === '-' ? readNamedInput(place, context) : place,
      ),
    );
    const { configuration, warnings } = await captureImageSet(inputs, session, {
      catalogs,
      locks: options.lock === undefined ? [] : [options.lock],
    });
    session.logger.close();
    for (const warning of warnings) session.logger.report(warning);
    await writeTo(options.to, configuration, context, session.logger, (file) => [
      `wrote the image set to ${file}`,
      `opmate mirror plan -c ${shellWord(file)}${formatFlags(accessFlags, options)} docker://REGISTRY`,
    ]);
    return exitCodes.done;
  },
});

function parseCatalog(value: string): { image: string; reference: string } {
  const [, image = '', reference = image] = /^([^=]*)(?:=(.*))?$/s.exec(value) ?? [];
  if (image !== '' && reference !== '') return { image, reference };
  throw invalidValue('--catalog', value, 'not a catalog', {
    hint: 'use IMAGE, or IMAGE=REFERENCE',
  });
}
