import { argument, defineCommand } from '../command/declaration.js';
import { grouped, optionalList, requiredUnless, text } from '../command/flags.js';
import { objectDirectory, outputFormat } from '../command/shared-flags.js';
import { certificateFlags, composeFlags, contentFlags, scopeFlags, sourceForms } from './content-flags.js';
import { writeObjectDirectory, writeObjects } from '../../bundle/plain/write.js';
import { redactUrls } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { renderBundle } from '../../api/bundle/render-bundle.js';
import { inSource } from '../../api/bundle/bundle-sources.js';
import { exitCodes } from '../exit-codes.js';
import { readTextInput } from '../input.js';
import { writeAll } from '../output.js';
import { reportEnding } from '../ending.js';
import { count, shellWord } from '../printable.js';
import { endWithFindings, logWarnings } from './findings.js';

const renderFlags = {
  ...contentFlags,
  ...composeFlags,
  ...scopeFlags,
  installNamespace: requiredUnless(['format=plain'], {
    ...scopeFlags.installNamespace,
    excludes: ['format=plain'],
  }),
  watchNamespace: { ...scopeFlags.watchNamespace, excludes: ['format=plain', 'format=helm'] },
  certProvider: { ...certificateFlags.certProvider, excludes: ['format=plain', 'format=helm'] },
  ...grouped('Input', {
    config: text('file', 'configuration as in a ClusterExtension, or chart values; - for stdin', {
      excludes: ['format=plain'],
    }),
    format: text('format', 'source format, or NAME of a program opmate-format-NAME', {
      choices: ['registry-v1', 'plain', 'helm'],
      default: 'registry-v1',
    }),
  }),
  ...grouped('Cluster', {
    releaseName: text('name', 'Helm release name (default: the chart name)', {
      excludes: ['format=plain', 'format=registry-v1'],
    }),
    availableApis: text('file', 'kinds available in the cluster, as printed by kubectl api-resources'),
    optionalKinds: optionalList(
      'kind',
      'with --available-apis: omit unavailable objects of these kinds (default: any)',
      { needs: 'availableApis' },
    ),
  }),
  output: outputFormat(['json', 'yaml'], { default: 'yaml' }),
  to: objectDirectory,
};

/** `opmate bundle render`; writes nothing on findings. */
export const command = defineCommand({
  summary: 'print the manifests that installing a bundle applies',
  arguments: [argument('<source>', sourceForms)],
  flags: renderFlags,
  commonFlags: [
    'config',
    'to',
    'format',
    'output',
    'installNamespace',
    'watchNamespace',
    'certProvider',
    'optionalKinds',
    'availableApis',
    'lock',
  ],
  examples: {
    'Print the manifests of a bundle': 'opmate bundle render ./bundle --install-namespace demo',
    'Write one file per object':
      'opmate bundle render registry.example.com/demo/bundle:v1.0.0 --install-namespace demo --to ./rendered',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { output, certProvider: provider } = options;
    const config = options.config === undefined ? undefined : await readTextInput(options.config, context);
    const { installNamespace = '', watchNamespace: watchNamespaces, releaseName } = options;
    const install = { installNamespace, watchNamespaces, releaseName, provider, config };
    const made = await renderBundle(reference, session, { ...options, ...install });
    const { objects, findings, warnings, omitted, isInPlace } = made;
    const named = inSource(redactUrls(reference), isInPlace, [config?.file]);
    logWarnings(session, warnings.map(named));
    for (const { kind, name, apiVersion } of omitted) {
      session.logger.log(
        'warn',
        `${kind} ${quoteGo(name)}: omitted, as the cluster has no ${apiVersion} ${kind}`,
      );
    }
    session.logger.close();
    if (findings.length > 0) return endWithFindings({ context, session }, findings.map(named));
    const { signal } = session;
    if (options.to === undefined) {
      await writeAll(context.stdout, writeObjects(objects, output, { signal }), signal);
    } else {
      await writeObjectDirectory(objects, options.to, { signal });
      reportEnding(
        session.logger,
        [`wrote ${count(objects.length, 'object')} to ${options.to}`],
        `kubectl apply -f ${shellWord(options.to)}`,
      );
    }
    return exitCodes.done;
  },
});
