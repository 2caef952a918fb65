import { defineCommand } from '../command/declaration.js';
import { objectDirectory, outputFormat } from '../command/shared-flags.js';
import { deploymentFlags, packageArgument } from './flags.js';
import { objectsOfDeployments } from './input.js';
import { writeObjectDirectory, writeObjects } from '../../bundle/plain/write.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';

/** `opmate deployment render`; writes nothing on findings. */
export const command = defineCommand({
  summary: 'print the manifests of deployments',
  arguments: [packageArgument],
  flags: {
    ...deploymentFlags,
    output: outputFormat(['json', 'yaml'], { default: 'yaml' }),
    to: objectDirectory,
  },
  commonFlags: [
    'file',
    'catalog',
    'installNamespace',
    'config',
    'secrets',
    'lock',
    'allowLocal',
    'to',
    'output',
  ],
  examples: {
    'Print the manifests': 'opmate deployment render -f deployment.yaml',
    'Print those of a package of a catalog': 'opmate deployment render demo --catalog ./catalog -n demo',
    'Pin the sources': 'opmate deployment render -f deployment.yaml --lock deployment.lock.json',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { output } = options;
    const objects = await objectsOfDeployments(context, session, { options, packageName });
    if (objects === undefined) return exitCodes.findings;
    const { signal } = session;
    if (options.to === undefined) {
      await writeAll(context.stdout, writeObjects(objects, output, { signal }), signal);
    } else await writeObjectDirectory(objects, options.to, { signal });
    return exitCodes.done;
  },
});
