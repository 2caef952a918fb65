import { defaultSupported, listOpenShiftVersions } from '../../api/bundle/openshift-versions.js';
import { asJson } from '../../document/json.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';

/** `opmate bundle openshift-versions`. */
export const command = defineCommand({
  summary: 'list the OpenShift versions whose indexes a bundle is published in',
  description: 'Reads the label com.redhat.openshift.versions as index builds do.',
  arguments: [argument('<bundle>', 'bundle directory or image, or the value of a label, e.g. v4.12-v4.15')],
  flags: {
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
    supported: text('versions', 'OpenShift versions with an index: a range or a list', {
      default: defaultSupported,
    }),
    allowMissing: flag('include bundles without the label'),
  },
  examples: {
    'List the versions of a label': "opmate bundle openshift-versions '=v4.14|>=v4.17'",
    'List the versions of a bundle': 'opmate bundle openshift-versions ./bundle --allow-missing',
  },
  async runInSession({ context, args: [bundle], options, session }) {
    const { output, supported, allowMissing } = options;
    const listed = await listOpenShiftVersions(bundle, session, { supported, allowMissing });
    session.logger.close();
    const lines = listed.versions.map(
      ({ version, isIncluded, reason }) => `${version.padEnd(6)} ${isIncluded ? 'yes' : 'no '}  ${reason}\n`,
    );
    const data = output === 'text' ? printable(lines.join('')) : encodeData(asJson(listed), output);
    await writeAll(context.stdout, data, session.signal);
  },
});
