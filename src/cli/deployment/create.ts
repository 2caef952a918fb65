import path from 'node:path';
import {
  createDeployment,
  createDeploymentObjectSet,
  type CreatedDeployment,
  encodeDeployment,
  writeDeploymentFiles,
} from '../../api/deployment/create-deployment.js';
import { parseNamedCatalog } from '../../api/named-catalogs.js';
import { createFault } from '../../core/diagnostic.js';
import { readDocument } from '../../document/document.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { encodeDocuments } from '../../document/yaml/present.js';
import { certificateProviders } from '../bundle/content-flags.js';
import { referenceForms } from '../bundle/resolve-input.js';
import { endWithFindings } from '../bundle/findings.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, choice, flag, grouped, list, repeated, required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readTextInput } from '../input.js';
import { writeAll } from '../output.js';
import { encodeData } from '../reports/encode-data.js';
import type { CommandSession } from '../session.js';

const createFlags = {
  ...grouped('Input', {
    catalog: required(repeated('catalog', 'catalog: REF or NAME=REF, where NAME is that of the cluster')),
    config: text('file', 'file with watchNamespace and deploymentConfig; - for stdin'),
  }),
  ...grouped('Selection', {
    version: text('range', 'version range; see "opmate help versions"'),
    channel: list('name', 'use only these channels (default: all)'),
  }),
  ...grouped('Cluster', {
    namespace: required(text('namespace', 'namespace to install in', { short: 'n' })),
    kind: choice('kind', ['ClusterExtension', 'Subscription', 'BundleDeployment'], 'kind of document', {
      default: 'ClusterExtension',
    }),
    name: text('name', 'name of the document (default: the package)'),
    catalogNamespace: text('namespace', 'namespace of the CatalogSource of a Subscription', {
      default: 'olm',
    }),
    certProvider: choice('provider', certificateProviders, 'with --as-objectset: provider of certificates', {
      default: 'none',
    }),
  }),
  ...grouped('Output', {
    toChart: text('directory', 'write a Helm chart to this directory', { excludes: ['toKustomize'] }),
    toKustomize: text('directory', 'write a kustomization to this directory'),
    asObjectset: flag('print the ClusterObjectSet that OLM v1 would write', {
      excludes: ['toChart', 'toKustomize'],
    }),
    pack: text('namespace', 'with --as-objectset: pack its objects into Secrets of this namespace', {
      needs: 'asObjectset',
    }),
  }),
  output: outputFormat(['yaml', 'json'], { default: 'yaml' }),
  bundle: text('reference', 'with --as-objectset: read this bundle in place of the image', {
    group: 'Input',
    needs: 'asObjectset',
  }),
};

const maxConfigLength = 16 * 1024 * 1024;

/** `opmate deployment create`; exit code 3 if no bundle is chosen or the document is refused. */
export const command = defineCommand({
  summary: 'write the documents that install a package of a catalog',
  description: `Resolves the package as OLM v1 does, and pins what it chose. ${referenceForms}`,
  arguments: [argument('<package>', 'name of the package')],
  flags: createFlags,
  commonFlags: ['catalog', 'namespace', 'kind', 'version', 'channel'],
  examples: {
    'Write a ClusterExtension': 'opmate deployment create demo --catalog ./catalog -n demo',
    'Write a Subscription and its OperatorGroup':
      'opmate deployment create demo --catalog community=./catalog -n demo --kind Subscription',
    'Write a Helm chart for GitOps':
      'opmate deployment create demo --catalog ./catalog -n demo --to-chart chart',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const catalogs = options.catalog.map(parseNamedCatalog);
    const created = await createDeployment(
      {
        packageName,
        kind: options.kind,
        name: options.name,
        namespace: options.namespace,
        versionRange: options.version,
        channels: options.channel,
        catalogNamespace: options.catalogNamespace,
        namesCatalog: catalogs.every(({ name }, index) => options.catalog[index]?.startsWith(`${name}=`)),
        config: await readConfig(options.config, context),
      },
      catalogs,
      session,
    );
    const { resolution, findings } = created;
    if (created.deployment === undefined) {
      session.logger.close();
      return endWithFindings({ context, session }, [createFault('resolution', resolution.reason)]);
    }
    if (findings.length > 0) return endWithFindings({ context, session }, findings);
    return options.asObjectset === true
      ? writeObjectSet(created, context, session, options)
      : writeDocuments(created, context, session, options);
  },
});

async function readConfig(
  file: string | undefined,
  context: CommandContext,
): Promise<JsonObject | undefined> {
  if (file === undefined) return undefined;
  const { text: content, file: name } = await readTextInput(file, context);
  const { root, diagnostics } = readDocument(content, name, {
    maxLength: maxConfigLength,
    noun: 'configuration',
  });
  root.object(['watchNamespace', 'deploymentConfig']);
  diagnostics.throwIfErrors();
  return isJsonObject(root.value) ? root.value : {};
}

async function writeDocuments(
  created: CreatedDeployment,
  context: CommandContext,
  session: CommandSession,
  { toChart, toKustomize, output, config }: FlagValues<typeof createFlags>,
): Promise<number> {
  session.logger.close();
  const directory = toChart ?? toKustomize;
  const form = toChart !== undefined ? 'chart' : 'kustomize';
  if (directory === undefined) await writeAll(context.stdout, encode(created, output), session.signal);
  else {
    const files = encodeDeployment(created, form);
    await writeDeploymentFiles(files, path.resolve(context.workingDirectory, directory), {
      isPrivate: config !== undefined,
    });
  }
  return exitCodes.done;
}

/** Returns documents as YAML with the reasons as comments, or as a JSON list. */
function encode(
  { documents, comments }: Pick<CreatedDeployment, 'documents' | 'comments'>,
  output: 'yaml' | 'json',
): string {
  if (output === 'yaml') return encodeDocuments(documents, comments);
  return encodeData({ apiVersion: 'v1', kind: 'List', items: documents }, 'json');
}

async function writeObjectSet(
  created: CreatedDeployment,
  context: CommandContext,
  session: CommandSession,
  { certProvider: provider, pack, bundle: reference, output }: FlagValues<typeof createFlags>,
): Promise<number> {
  const { documents, findings, warnings } = await createDeploymentObjectSet(created, session, {
    provider,
    pack,
    reference,
  });
  for (const warning of warnings) session.logger.report(warning);
  session.logger.close();
  if (findings.length > 0) return endWithFindings({ context, session }, findings);
  const text = encode({ documents, comments: created.comments }, output);
  await writeAll(context.stdout, text, session.signal);
  return exitCodes.done;
}
