import { defineCommand } from '../command/declaration.js';
import { objectDirectory, outputFormat } from '../command/shared-flags.js';
import { deploymentFlags } from './flags.js';
import { objectsOfDeployments } from './input.js';
import { writeObjectDirectory, writeObjects } from '../../bundle/plain/write.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';

/** `opmate deployment render`; writes nothing on findings. */
export const command = defineCommand({
  summary: 'print the manifests of deployments',
  flags: {
    ...deploymentFlags,
    output: outputFormat(['json', 'yaml'], { default: 'yaml' }),
    to: objectDirectory,
  },
  commonFlags: ['file', 'installNamespace', 'config', 'secrets', 'lock', 'allowLocal', 'to', 'output'],
  examples: {
    'Print the manifests': 'opmate deployment render -f deployment.yaml',
    'Pin the sources': 'opmate deployment render -f deployment.yaml --lock deployment.lock.json',
  },
  async runInSession({ context, options, session }) {
    const { output } = options;
    const objects = await objectsOfDeployments(context, session, options);
    if (objects === undefined) return exitCodes.findings;
    const { signal } = session;
    if (options.to === undefined) {
      await writeAll(context.stdout, writeObjects(objects, output, { signal }), signal);
    } else await writeObjectDirectory(objects, options.to, { signal });
    return exitCodes.done;
  },
});
