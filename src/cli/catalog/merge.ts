import { mergeIndexImages } from '../../api/images/merge-indexes.js';
import { parseOpenShiftVersion } from '../../core/openshift-version.js';
import { openJsonFile } from '../../document/document.js';
import { decodeUtf8 } from '../../document/go-json.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, parsed, required, text } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { imageOutputFlags, planSignedOutputs } from '../index/image-output.js';
import { readInput } from '../input.js';
import { reportEditedImage } from './edited-image.js';

/** `opmate catalog merge`; prints the image by digest. */
export const command = defineCommand({
  summary: 'create the index of a new OpenShift version from the previous one',
  description:
    'Adds the bundles that TARGET has beyond SOURCE to SOURCE, by the databases in the images, and deprecates bundles whose label com.redhat.openshift.versions excludes the version.',
  arguments: [
    argument('<source>', 'index image of the previous OpenShift version'),
    argument('<target>', 'released index image of the new version'),
  ],
  flags: {
    openshift: required(parsed('version', 'OpenShift version of the new index', parseOpenShiftVersion)),
    ...imageOutputFlags,
    deprecate: list('image', 'deprecate these bundles and remove what they replace'),
    labels: text('file', 'JSON object of labels by bundle image; others are read from the images'),
    allowMissing: flag('include bundles without the label'),
    databaseOnly: flag('drop packages that are not built from the database'),
  },
  examples: {
    'Create the index of OpenShift 4.22':
      'opmate catalog merge registry.example.com/demo/built-index:v4.21 registry.example.com/demo/built-index:v4.22 --openshift 4.22 --allow-missing -t registry.example.com/demo/merged-index:v4.22',
    'Create it with the packages of the database only':
      'opmate catalog merge registry.example.com/demo/built-index:v4.21 registry.example.com/demo/built-index:v4.22 --openshift 4.22 --allow-missing --database-only --save oci-archive:index.tar',
  },
  async runInSession({ context, args: [source, target], options, session }) {
    const { openshift, deprecate: deprecated, allowMissing, databaseOnly } = options;
    const labels = await readLabels(options.labels, context);
    const outputs = await planSignedOutputs(options, context);
    const merge = { outputs, openshift, deprecated, labels, allowMissing, databaseOnly };
    await reportEditedImage(context, session, await mergeIndexImages(source, target, session, merge));
  },
});

/** Maximum number of labels in a file. */
const maxLabels = 1_000_000;

async function readLabels(
  file: string | undefined,
  context: CommandContext,
): Promise<Map<string, string> | undefined> {
  if (file === undefined) return undefined;
  const root = openJsonFile(decodeUtf8(await readInput(file, context)), file);
  return new Map(root.entries(maxLabels).map(([image, label]) => [image, label.text() ?? '']));
}
