import { type ExtractedConfigMap, extractConfigMaps } from '../../bundle/config-map-extract.js';
import { UsageError, redact } from '../../core/errors.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import { encodeYaml } from '../../document/yaml.js';
import { replaceFile } from '../../files/replace-file.js';
import type { Pin } from '../../source/content/content-types.js';
import { useSources } from './content.js';
import type { ContentFlags } from '../deployment/content-options.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { exitCodes } from '../exit-codes.js';
import { catalogFormat } from '../formats.js';
import { requireFlag } from '../options.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';
import { inSource, tellFindings, tellWarnings } from './findings.js';

interface ExtractOptions extends ContentFlags {
  manifestsdir?: string;
  configmapname?: string;
  namespace: string;
  datalimit: number;
  gzip?: boolean;
  split?: boolean;
  output?: string;
  outputFile?: string;
}

/**
 * `opmate bundle extract`: a bundle as a ConfigMap, or with `--split` as several, each a YAML document of its own
 * or together a JSON List. What keeps it from being one goes to stderr, and nothing is written. `isAlpha` is for
 * the exit code of `opm`, and for its default of reading the bundle from `/`, as in a bundle image.
 */
export async function bundleExtract(
  context: CommandContext,
  source: string | undefined,
  given: GlobalOptions,
  isAlpha: boolean,
): Promise<number> {
  const options = given as ExtractOptions;
  const output = catalogFormat(options.output);
  const name = requireFlag(options.configmapname, 'configmapname');
  const reference = sourceOf(source, options.manifestsdir, isAlpha);
  return useSession(context, options, async (session) => {
    const { signal } = session;
    const { files, isInPlace, pins } = await useSources(session, options, (sources) =>
      sources.readBundle(reference),
    );
    const { configMaps, findings, warnings } = await extractConfigMaps(files, {
      name,
      namespace: options.namespace,
      limit: options.datalimit,
      gzip: options.gzip,
      split: options.split,
      sourceImage: context.environment['CONTAINER_IMAGE'] || imageOf(reference, pins),
      signal,
    });
    const named = inSource(redact(reference), isInPlace);
    tellWarnings(session, warnings.map(named));
    session.logger.close();
    if (findings.length > 0) {
      await tellFindings(context, findings.map(named));
      return isAlpha ? exitCodes.failed : exitCodes.findings;
    }
    const text = textOf(configMaps, output);
    if (options.outputFile === undefined) await writeAll(context.stdout, text, signal);
    else await replaceFile(options.outputFile, text);
    return exitCodes.done;
  });
}

function sourceOf(source: string | undefined, directory: string | undefined, isAlpha: boolean): string {
  if (source !== undefined && directory !== undefined) {
    throw new UsageError(`${source}: --manifestsdir says ${quoteGo(directory)}`, {
      hint: 'name the bundle once',
    });
  }
  const named = source ?? directory ?? (isAlpha ? '/' : undefined);
  if (named !== undefined) return named;
  throw new UsageError('no bundle is named', { hint: 'name a bundle, or its directory with --manifestsdir' });
}

/** The image in a registry that a bundle was read from, as the user named it. */
function imageOf(reference: string, [pin]: readonly Pin[]): string | undefined {
  if (pin?.type !== 'image' || parseReference(reference).transport !== 'docker') return undefined;
  return withoutCredentials(reference.replace(/^docker:\/\//, ''));
}

async function* textOf(
  configMaps: readonly ExtractedConfigMap[],
  output: 'json' | 'yaml',
): AsyncGenerator<string> {
  const isList = configMaps.length > 1;
  if (output === 'json' && isList) yield '{\n    "apiVersion": "v1",\n    "items": [\n        ';
  for (const [index, map] of configMaps.entries()) {
    // Everything else of the process gets its turn between two.
    await Promise.resolve();
    if (output === 'yaml') yield `${index === 0 ? '' : '---\n'}${encodeYaml(map.load())}`;
    else {
      const text = encodeGoJson(sortKeysDeep(map.load()), { indent: 4 });
      yield isList
        ? `${index === 0 ? '' : ',\n        '}${text.replaceAll('\n', '\n        ')}`
        : `${text}\n`;
    }
  }
  if (output === 'json' && isList) yield '\n    ],\n    "kind": "List"\n}\n';
}
