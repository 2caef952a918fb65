import type { FlagValues } from '../command/flags.js';
import type { deploymentFlags } from './flags.js';
import { readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { formatMessage } from '../../core/diagnostic.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CertificateProvider } from '../../bundle/plain/registry-v1/certificates.js';
import { type Manifest, readManifests } from '../../kube/manifests.js';
import { labelFault } from '../../kube/names.js';
import type { BundleFile } from '../../bundle/read.js';
import { LimitError, UsageError, fileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { requireWithin } from '../../files/directory-root.js';
import { type Documents, readDocuments } from '../../deployment/documents.js';
import { renderDeployments } from '../../deployment/render-deployments.js';
import type { RenderedDeployment } from '../../deployment/rendered-deployment.js';
import { readContentLock, writeContentLock } from '../../source/content/content-lock.js';
import { readSecrets } from '../../source/secrets.js';
import { openStore } from '../../api/bundle/bundle-sources.js';
import type { CommandContext } from '../context.js';
import { readInput, readInputFile } from '../input.js';
import type { CommandSession } from '../session.js';

/** What commands about deployments are given. */
export type DeploymentOptions = FlagValues<typeof deploymentFlags>;

/** Files that a directory of ConfigMaps may have. */
const maxFiles = 1000;
const stdinName = 'stdin';

/**
 * Renders all deployments in the files that the user named: sorted by namespace and name, with what is wrong with
 * each. What is about no deployment alone is told with the first. A lock that is there is honoured; one that is not
 * is written once nothing is wrong. Throws OpmateError where a file cannot be read.
 */
export async function renderDeploymentFile(
  context: CommandContext,
  session: CommandSession,
  options: DeploymentOptions,
): Promise<RenderedDeployment[]> {
  const { certProvider: provider } = options;
  checkOptions(options);
  const inputs = await readInputs(context, options);
  const config =
    options.config === undefined
      ? undefined
      : { text: (await readInput(options.config, context)).toString('utf8'), file: options.config };
  const documents = readDocuments(inputs);
  const stdin = inputs.find(({ name }) => name === stdinName);
  if (stdin === undefined || documents.configMaps.length === 0) {
    return render(documents, new Map(), { config, provider }, session, options);
  }
  // Sources of ConfigMaps are read from files.
  return withTemporaryDirectory(session, async (directory) => {
    const place = path.join(directory, 'documents.yaml');
    await writeFile(place, stdin.content, { mode: 0o600 });
    return render(documents, new Map([[stdinName, place]]), { config, provider }, session, options);
  });
}

async function render(
  documents: Documents,
  paths: ReadonlyMap<string, string>,
  given: { config: { text: string; file: string } | undefined; provider: CertificateProvider },
  session: CommandSession,
  options: DeploymentOptions,
): Promise<RenderedDeployment[]> {
  const { secrets, lock, installNamespace } = options;
  const locked = lock === undefined || options.updateLock === true ? undefined : await readContentLock(lock);
  const maps = await readConfigMaps(options.configMaps, session);
  const files = new Map(paths);
  for (const { file } of [...documents.configMaps, ...maps]) {
    if (!files.has(file)) files.set(file, path.resolve(file));
  }
  const rendered = await renderDeployments(documents, session, {
    content: {
      contentStore: await openStore(session),
      requireDigest: options.requireDigest,
      pins: locked,
    },
    secrets: secrets === undefined ? undefined : await readSecrets(secrets, session),
    configMaps: maps,
    allowLocal: options.allowLocal,
    allowInsecure: options.allowInsecure,
    paths: files,
    installNamespace,
    watchNamespaces: options.watchNamespace,
    ...given,
  });
  const [first] = rendered;
  const { findings, warnings } = documents;
  if (first === undefined) {
    if (findings.length === 0)
      findings.push({
        severity: 'error',
        code: 'no-deployment',
        subject: (options.file ?? []).join(', '),
        problem: 'no deployment',
      });
    return [{ ...nobody, findings, warnings }];
  }
  first.findings.unshift(...findings);
  first.warnings.unshift(...warnings);
  const isGood = rendered.every((deployment) => deployment.findings.length === 0);
  if (lock !== undefined && locked === undefined && isGood) {
    await writeContentLock(
      lock,
      rendered.flatMap(({ pins }) => [...pins]),
    );
  }
  return rendered;
}

/** Stands for documents that hold no deployment. */
const nobody = {
  name: '',
  namespace: '',
  installNamespace: '',
  isPaused: false,
  objects: [],
  pins: [],
  hash: '',
};

async function readInputs(context: CommandContext, options: DeploymentOptions): Promise<BundleFile[]> {
  const inputs: BundleFile[] = [];
  for (const name of options.file ?? []) {
    const content = await readInput(name, context);
    inputs.push({ name: name === '-' ? stdinName : name, content });
  }
  return inputs;
}

async function readConfigMaps(
  directory: string | undefined,
  { followLinks }: CommandSession,
): Promise<Manifest[]> {
  if (directory === undefined) return [];
  const files: BundleFile[] = [];
  const names = await readdir(directory).catch((error: unknown) => {
    throw fileError(`open ${directory}`, error);
  });
  if (names.length > maxFiles) throw new LimitError(`${directory}: more than ${maxFiles} files`);
  for (const name of names.sort(compareBytes)) {
    const file = path.join(directory, name);
    if (!/\.(?:ya?ml|json)$/i.test(name) || !(await stat(file)).isFile()) continue;
    await requireWithin(directory, file, { followLinks });
    files.push({ name: file, content: await readInputFile(file) });
  }
  const { manifests, findings } = readManifests(files, { prefix: '' });
  const [fault] = findings;
  if (fault !== undefined) {
    throw fileError(`${fault.file}:${fault.line}`, new Error(formatMessage(fault)));
  }
  return manifests.filter(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'ConfigMap');
}

function checkOptions(options: DeploymentOptions): void {
  const { file = [], config, installNamespace } = options;
  const fault = installNamespace === undefined ? undefined : labelFault(installNamespace);
  if (fault !== undefined) {
    throw new UsageError(`--install-namespace ${quoteGo(installNamespace ?? '')}: ${fault}`);
  }
  if (file.length === 0) {
    throw new UsageError('-f is missing', { hint: 'name a file with deployments, or - for stdin' });
  }
  if (new Set(file).size < file.length || (config === '-' && file.includes('-'))) {
    throw new UsageError('-f: a file is named twice', { hint: 'name each file once' });
  }
  if (options.updateLock === true && options.lock === undefined) {
    throw new UsageError('--update-lock: needs --lock', { hint: 'name the file with --lock FILE' });
  }
}
