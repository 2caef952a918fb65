import type { Cluster } from '../../api/deployment/cluster.js';
import { findInstalledBundle } from '../../api/deployment/deployment-history.js';
import {
  type DeploymentFile,
  type RenderDeploymentsOptions,
  renderDeployments,
} from '../../api/deployment/render-deployments.js';
import { type RenderPackageRequest, renderPackage } from '../../api/deployment/render-package.js';
import { parseNamedCatalog } from '../../api/named-catalogs.js';
import type { FlagValues } from '../command/flags.js';
import type { deploymentFlags } from './flags.js';
import { UsageError } from '../../core/errors.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { CommandContext } from '../context.js';
import { readNamedInput, readTextInput } from '../input.js';
import type { CommandSession } from '../session.js';
import { collectDeploymentObjects } from '../../api/deployment/deployment-objects.js';
import type { PlainObject } from '../../kube/object.js';
import { printFindings, logWarnings } from '../bundle/findings.js';

type DeploymentOptions = FlagValues<typeof deploymentFlags>;

/** Input to render: a package of a catalog, or the files of `--file`. */
interface DeploymentInput {
  options: DeploymentOptions;
  packageName: string | undefined;
  /** Cluster whose installed bundles are upgraded. */
  cluster?: Cluster;
}

/** Renders all deployments of an input. Throws OpmateError for an unreadable file. */
export async function renderInput(
  context: CommandContext,
  session: CommandSession,
  { options, packageName, cluster }: DeploymentInput,
): Promise<RenderedDeployment[]> {
  checkOptions(options);
  const { certProvider: provider, watchNamespace: watchNamespaces, config: configFile } = options;
  const config = configFile === undefined ? undefined : await readTextInput(configFile, context);
  const settings: RenderDeploymentsOptions = {
    ...options,
    provider,
    watchNamespaces,
    config,
    secretHosts: options.secret,
    catalogs: (options.catalog ?? []).map(parseNamedCatalog),
    ...(cluster !== undefined && { findInstalled: (place) => findInstalledBundle(place, cluster) }),
  };
  if (packageName !== undefined) return renderPackage(readPackage(packageName, options), session, settings);
  const files: DeploymentFile[] = [];
  for (const name of options.file ?? []) {
    files.push(name === '-' ? await readNamedInput(name, context) : name);
  }
  return renderDeployments(files, session, settings);
}

function readPackage(
  packageName: string,
  { catalog = [], installNamespace: namespace, version, channel, name }: DeploymentOptions,
): RenderPackageRequest {
  if (catalog.length === 0)
    throw new UsageError('missing --catalog', { hint: 'add --catalog REF, or NAME=REF' });
  if (namespace === undefined)
    throw new UsageError('missing --install-namespace', { hint: 'add -n NAMESPACE' });
  return { packageName, namespace, name, versionRange: version, channels: channel };
}

function checkOptions(options: DeploymentOptions): void {
  const { file = [], config } = options;
  if (new Set(file).size < file.length || (config === '-' && file.includes('-'))) {
    throw new UsageError('-f: a file is named twice', { hint: 'specify each file once' });
  }
}

/** Returns the sorted objects of all deployments; undefined after printing findings. Logs warnings, pins and hashes. */
export async function objectsOfDeployments(
  context: CommandContext,
  session: CommandSession,
  input: DeploymentInput,
): Promise<PlainObject[] | undefined> {
  const deployments = await renderInput(context, session, input);
  const { objects, findings, approvals } = collectDeploymentObjects(deployments);
  logWarnings(
    session,
    deployments.flatMap(({ warnings }) => warnings),
  );
  for (const [index, deployment] of deployments.entries()) {
    const { name, isPaused, pins, hash, installNamespace, choice = [] } = deployment;
    for (const line of choice) session.logger.log('info', `${name}: ${line}`);
    if (isPaused) session.logger.log('info', `${name}: is paused, so that nothing would be applied`);
    if (hash === '') continue;
    for (const pin of pins) session.logger.log('info', `${pin.name}: ${pin.ref}`, { content: pin.content });
    session.logger.log('info', `${name}: rendered`, {
      namespace: installNamespace || undefined,
      hash,
      approval: approvals[index],
    });
  }
  session.logger.close();
  if (findings.length === 0) return objects;
  await printFindings(context, findings);
  return undefined;
}
