import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, parsed, text, required } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { integer } from '../command/values.js';
import { contentFlags, sourceForms } from './content-flags.js';
import type { ExtractedConfigMap } from '../../bundle/config-map-extract.js';
import { UsageError, redactUrls } from '../../core/errors.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { replaceFile } from '../../files/replace-file.js';
import { extractBundle } from '../../api/bundle/extract-bundle.js';
import { inSource } from '../../api/bundle/bundle-sources.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { endWithFindings, logWarnings } from './findings.js';

/** `opmate bundle extract`; `alpha bundle extract` reads `/` by default, as in a bundle image. */
export const command = defineCommand({
  summary: 'write a bundle as a ConfigMap',
  arguments: [argument('[source]', sourceForms)],
  flags: {
    ...contentFlags,
    manifestsdir: text('directory', 'bundle directory, if no source is given', {
      short: 'm',
      group: 'Input',
    }),
    ...grouped('Output', {
      configmapname: required(text('name', 'name of the ConfigMap', { short: 'c' })),
      namespace: text('namespace', 'namespace of the ConfigMap', {
        short: 'n',
        default: 'openshift-operator-lifecycle-manager',
      }),
      gzip: flag('compress the files', { short: 'z' }),
      split: flag('split a bundle that is too large into several ConfigMaps'),
    }),
    kubeconfig: text('file', 'no effect: the ConfigMap is written, not applied', {
      short: 'k',
      hidden: true,
    }),
    datalimit: parsed(
      'bytes',
      'maximum size of the files in a ConfigMap, in bytes',
      integer(0, Number.MAX_SAFE_INTEGER),
      {
        short: 'l',
        default: 1024 * 1024,
        group: 'Limits',
      },
    ),
    output: outputFormat(['json', 'yaml'], { default: 'yaml' }),
    to: text('file', 'write to this file (default: stdout)', { aliases: ['output-file'], group: 'Output' }),
  },
  commonFlags: ['manifestsdir', 'configmapname', 'namespace', 'to', 'output', 'gzip', 'split', 'datalimit'],
  examples: {
    'Write a bundle as a ConfigMap': 'opmate bundle extract ./bundle -c demo',
    'Compress the files, and write to a file':
      'opmate bundle extract registry.example.com/demo/bundle:v1.0.0 -c demo --gzip --to demo.yaml',
  },
  async runInSession({ context, args: [source], options, tool, session }) {
    const { output, kubeconfig } = options;
    if (kubeconfig)
      session.logger.log('info', `--kubeconfig ${kubeconfig} has no effect: no cluster is accessed`);
    const reference = getSource(source, options.manifestsdir, tool !== undefined);
    const { signal } = session;
    const { configMaps, findings, warnings, isInPlace } = await extractBundle(reference, session, {
      ...options,
      name: options.configmapname,
      limit: options.datalimit,
      sourceImage: context.environment['CONTAINER_IMAGE'] || undefined,
    });
    const named = inSource(redactUrls(reference), isInPlace);
    logWarnings(session, warnings.map(named));
    session.logger.close();
    if (findings.length > 0) return endWithFindings({ context, session, tool }, findings.map(named));
    const text = formatText(configMaps, output);
    if (options.to === undefined) await writeAll(context.stdout, text, signal);
    else await replaceFile(options.to, text);
    return exitCodes.done;
  },
});

function getSource(source: string | undefined, directory: string | undefined, isAlpha: boolean): string {
  if (source !== undefined && directory !== undefined) {
    throw new UsageError(`${source}: --manifestsdir says ${quoteGo(directory)}`, {
      hint: 'specify the bundle once',
    });
  }
  const named = source ?? directory ?? (isAlpha ? '/' : undefined);
  if (named !== undefined) return named;
  throw new UsageError('no bundle is named', {
    hint: 'specify a bundle, or its directory with --manifestsdir',
  });
}

async function* formatText(
  configMaps: readonly ExtractedConfigMap[],
  output: 'json' | 'yaml',
): AsyncGenerator<string> {
  const isList = configMaps.length > 1;
  if (output === 'json' && isList) yield '{\n    "apiVersion": "v1",\n    "items": [\n        ';
  for (const [index, map] of configMaps.entries()) {
    // Everything else of the process gets its turn between two.
    await Promise.resolve();
    if (output === 'yaml') yield `${index === 0 ? '' : '---\n'}${encodeYamlDocument(map.load())}`;
    else {
      const text = encodeGoJson(sortKeysDeep(map.load()), { indent: 4 });
      yield isList
        ? `${index === 0 ? '' : ',\n        '}${text.replaceAll('\n', '\n        ')}`
        : `${text}\n`;
    }
  }
  if (output === 'json' && isList) yield '\n    ],\n    "kind": "List"\n}\n';
}
