import { stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BundleFile } from '../../bundle/read.js';
import { createFault } from '../../core/diagnostic.js';
import { readDeploymentDocuments } from '../../cluster/documents/deployment-documents.js';
import type { Documents } from '../../cluster/documents/document-types.js';
import {
  type RenderSettings,
  type RenderedDeployment,
  renderDocuments,
} from '../../cluster/documents/render-deployments.js';
import { invalidValue } from '../../core/errors.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { listManifestFiles } from '../../files/file-status.js';
import { requireWithin } from '../../files/directory-root.js';
import { readInputFile } from '../../files/read-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { type Manifest, readManifests } from '../../kube/manifests.js';
import { labelFault } from '../../kube/names.js';
import { type ContentLock, type PinOptions, openContentLock } from '../../source/content/content-lock.js';
import { parseSecretHosts, readSecrets, type SecretHosts } from '../../source/secrets.js';
import type { Session } from '../../source/session.js';
import { openStore } from '../bundle/bundle-sources.js';
import { type ResolveDocumentsOptions, resolveDocuments } from './resolve-documents.js';

/** Options of `renderDeployments`. */
export interface RenderDeploymentsOptions
  extends Omit<RenderSettings, 'secretHosts'>, PinOptions, ResolveDocumentsOptions {
  /** Directory with manifests of referenced Secrets. */
  secrets?: string | undefined;
  /** Hosts of Secrets without annotations: `[NAMESPACE/]NAME=HOST`. */
  secretHosts?: readonly string[] | undefined;
  /** Directory with manifests of referenced ConfigMaps. */
  configMaps?: string | undefined;
}

/** File of documents: its path, or its content under a name for messages. */
export type DeploymentFile = string | { name: string; content: Buffer };

/** Files that a directory of ConfigMaps may have. */
const maxFiles = 1000;

/**
 * Renders the deployments of files to the objects that they install: BundleDeployments, Bundles and BundleInstances,
 * ClusterExtensions, and Subscriptions with their OperatorGroup, whose bundles are resolved in catalogs. They are sorted by
 * namespace and name, each with its findings; findings about no single deployment are with the first. Throws OpmateError
 * for sources that cannot be read, and USAGE for an invalid namespace.
 */
export async function renderDeployments(
  files: readonly DeploymentFile[],
  session: Session,
  options: RenderDeploymentsOptions = {},
): Promise<RenderedDeployment[]> {
  const { installNamespace } = options;
  const fault = installNamespace === undefined ? undefined : labelFault(installNamespace);
  if (fault !== undefined) throw invalidValue('options.installNamespace', installNamespace ?? '', fault);
  const settings = { ...options, secretHosts: parseSecretHosts(options.secretHosts ?? []) };
  const lock = await openContentLock(options);
  const inputs: BundleFile[] = [];
  for (const file of files) {
    inputs.push(
      typeof file === 'string' ? { name: file, content: await readInputFile(file, session) } : file,
    );
  }
  const documents = readDeploymentDocuments(inputs);
  documents.deployments = await resolveDocuments(documents, session, options);
  const input = files.find((file) => typeof file !== 'string');
  const hasInput = input !== undefined && documents.configMaps.length > 0;
  const rendered = hasInput
    ? // Sources of ConfigMaps are read from files.
      await withTemporaryDirectory(session, async (directory) => {
        const place = path.join(directory, 'documents.yaml');
        await writeFile(place, input.content, { mode: 0o600 });
        return render(documents, new Map([[input.name, place]]), lock, session, settings);
      })
    : await render(documents, new Map(), lock, session, settings);
  const { findings, warnings } = documents;
  const [first] = rendered;
  if (first === undefined) {
    if (findings.length === 0) {
      const subject = inputs.map(({ name }) => name).join(', ');
      const hint = 'add a ClusterExtension, Subscription or BundleDeployment';
      findings.push(createFault('no-deployment', 'no deployment', { subject, hint }));
    }
    return [{ ...emptyDeployment, findings, warnings }];
  }
  first.findings.unshift(...findings);
  first.warnings.unshift(...warnings);
  if (rendered.every((deployment) => deployment.findings.length === 0)) {
    await lock.write(rendered.flatMap(({ pins }) => [...pins]));
  }
  return rendered;
}

async function render(
  documents: Documents,
  paths: ReadonlyMap<string, string>,
  { pins }: ContentLock,
  session: Session,
  {
    secrets,
    configMaps,
    requireDigest,
    ...settings
  }: Omit<RenderDeploymentsOptions, 'secretHosts'> & { secretHosts: SecretHosts },
): Promise<RenderedDeployment[]> {
  const maps = await readConfigMaps(configMaps, session);
  const files = new Map(paths);
  for (const { file } of [...documents.configMaps, ...maps]) {
    if (!files.has(file)) files.set(file, path.resolve(file));
  }
  return renderDocuments(documents, session, {
    ...settings,
    content: { contentStore: await openStore(session), requireDigest, pins },
    secrets: secrets === undefined ? undefined : await readSecrets(secrets, session),
    configMaps: maps,
    paths: files,
  });
}

/** Placeholder for documents without a deployment. */
export const emptyDeployment = {
  name: '',
  namespace: '',
  installNamespace: '',
  isPaused: false,
  objects: [],
  pins: [],
  hash: '',
};

async function readConfigMaps(
  directory: string | undefined,
  { followLinks, signal }: Session,
): Promise<Manifest[]> {
  if (directory === undefined) return [];
  const files: BundleFile[] = [];
  for (const file of await listManifestFiles(directory, maxFiles)) {
    if (!(await stat(file)).isFile()) continue;
    await requireWithin(directory, file, { followLinks });
    files.push({ name: file, content: await readInputFile(file, { signal }) });
  }
  const { manifests, findings } = readManifests(files, { prefix: '', isWritten: true });
  if (findings.length > 0) throw new DiagnosticsError(findings);
  return manifests.filter(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'ConfigMap');
}
