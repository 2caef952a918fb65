import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CertificateProvider } from '../bundle/plain/registry-v1/certificates.js';
import type { Manifest } from '../kube/manifests.js';
import type { PlainObject } from '../kube/object.js';
import {
  type Diagnostic,
  type DocumentPath,
  formatMessage,
  formatPath,
  withSubject,
} from '../core/diagnostic.js';
import { type RenderedContent, renderContent } from '../bundle/plain/render-content.js';
import { writeObjects } from '../bundle/plain/write.js';
import { type CancelOptions } from '../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../core/errors.js';
import { pushTo } from '../core/groups.js';
import { quoteGo } from '../document/go-json.js';
import { DiagnosticsError, addContext, combineErrors, renameDirectory } from '../core/diagnostics-error.js';
import type { ContentPlace } from '../source/place.js';
import {
  type ContentOptions,
  type OpenedContent,
  type PlacedSource,
  openContent,
} from '../source/content/content.js';
import { ContentFindingsError } from '../source/content/content-findings.js';
import type { SourceSession } from '../source/session.js';
import { type Secrets, getCredentials, secretsIn } from '../source/secrets.js';
import { type DeploymentDocument, type Documents, configText } from './documents.js';
import type { RenderedDeployment } from './rendered-deployment.js';
import type { DocumentSource, SecretReference } from './source-fields.js';
import { type SourceAllowances, findRefusals } from './source-rules.js';
import { digestPieces } from '../core/digest.js';

/** Options of rendering deployments. */
interface RenderDeploymentsOptions extends SourceAllowances {
  /** Session for opening sources. */
  content?: ContentOptions | undefined;
  /** Secrets of a directory; undefined without one: the user's own credentials then replace missing ones. */
  secrets?: Secrets | undefined;
  /** Additional ConfigMaps that sources may refer to. */
  configMaps?: readonly Manifest[] | undefined;
  /** Real paths of the files of ConfigMaps, by their names in manifests. */
  paths: ReadonlyMap<string, string>;
  /** Takes precedence over the documents. */
  installNamespace?: string | undefined;
  watchNamespaces?: readonly string[] | undefined;
  provider?: CertificateProvider | undefined;
  config?: { text: string; file: string } | undefined;
}

/** Maximum documents with unreadable sources before rendering stops. */
const maxErrors = 20;

/** Namespace of secrets without one on clusters. (Source: rukpak.) */
const systemNamespace = 'rukpak-system';

/**
 * Renders deployments one by one: combines their sources, and converts them to objects by format. Problems of each
 * are among its findings. Throws OpmateError for unreadable sources, with the problems of all deployments.
 */
export async function renderDeployments(
  documents: Documents,
  session: SourceSession,
  options: RenderDeploymentsOptions,
): Promise<RenderedDeployment[]> {
  const { deployments, findings } = documents;
  const known: Known = {
    configMaps: [...documents.configMaps, ...(options.configMaps ?? [])],
    secrets: new Map([...(options.secrets ?? []), ...secretsIn(documents.secrets)]),
  };
  const rendered: RenderedDeployment[] = [];
  const errors: OpmateError[] = [];
  for (const deployment of deployments) {
    throwIfCancelled(session.signal);
    try {
      rendered.push(await renderDeployment(deployment, known, session, options));
    } catch (error) {
      if (!isAboutContent(error)) throw error;
      errors.push(error);
      if (errors.length >= maxErrors) break;
    }
  }
  if (errors.length === 0) return rendered;
  const wrong = [...findings, ...rendered.flatMap((deployment) => deployment.findings)];
  if (wrong.length > 0) errors.push(new DiagnosticsError(wrong, { code: 'INVALID' }));
  throw combineErrors(errors);
}

/** Objects that sources may refer to: those of documents and directories. */
interface Known {
  configMaps: readonly Manifest[];
  secrets: Secrets;
}

async function renderDeployment(
  deployment: DeploymentDocument,
  known: Known,
  session: SourceSession,
  options: RenderDeploymentsOptions,
): Promise<RenderedDeployment> {
  const { name, namespace, isPaused } = deployment;
  const findings = [...deployment.findings];
  const warnings = [...deployment.warnings];
  const installNamespace = options.installNamespace ?? deployment.installNamespace;
  const result = {
    name,
    namespace,
    isPaused,
    installNamespace,
    objects: [],
    pins: [],
    hash: '',
    findings,
    warnings,
  };
  if (deployment.installNamespace !== '' && installNamespace !== deployment.installNamespace) {
    const problem = `installed in ${quoteGo(installNamespace)} instead of ${quoteGo(deployment.installNamespace)}`;
    warnings.push(
      warningAt(deployment, ['spec', 'installNamespace'], { code: 'install-namespace', problem }),
    );
  }
  const allowances = {
    allowLocal: options.allowLocal,
    allowInsecure: options.allowInsecure === true || session.network?.skipTlsVerify === true,
  };
  for (const source of deployment.sources) {
    for (const { message: problem, hint } of findRefusals(source, allowances))
      findings.push(errorAt(deployment, source.path, { code: 'refused-source', problem, hint }));
  }
  const used: UsedSecret[] = [];
  const placed = deployment.sources.flatMap((source) =>
    placeSource(source, deployment, { ...known, options, findings, warnings, used, installNamespace }),
  );
  if (findings.length > 0) return result;
  let content: OpenedContent;
  try {
    content = await openContent(placed, session, options.content);
  } catch (error) {
    if (error instanceof ContentFindingsError) {
      findings.push(...error.diagnostics.map((finding) => ofSource(finding, deployment, options.paths)));
      return result;
    }
    const ignored = warnings.find(({ hint }) => hint === secretHint);
    throw aboutDeployment(error, deployment, { ignored });
  }
  try {
    const made = await renderOpened(content, deployment, { ...result, used }, session, options);
    await content.confirm();
    return made;
  } catch (error) {
    throw aboutDeployment(error, deployment, { content });
  } finally {
    await content.close();
  }
}

async function renderOpened(
  { directory, destinations, pins }: OpenedContent,
  deployment: DeploymentDocument,
  { used, ...result }: Omit<RenderedDeployment, 'packageName' | 'version'> & { used: UsedSecret[] },
  session: SourceSession,
  options: RenderDeploymentsOptions,
): Promise<RenderedDeployment> {
  const { title, file } = deployment;
  const format = await detectFormat(directory, deployment.formats);
  const findings = [...result.findings];
  const own = deployment.config === undefined ? undefined : configText(deployment.config, format);
  const configLine = deployment.lineOf(['spec', 'config']);
  const refuse = (code: string, problem: string): void =>
    void findings.push(errorAt(deployment, ['spec', 'config'], { code, problem }));
  if (own !== undefined && 'fault' in own) refuse('invalid-value', own.fault);
  else if (own !== undefined && options.config !== undefined)
    refuse('exclusive-fields', 'spec.config: cannot be combined with --config');
  if (findings.length > 0) return { ...result, findings };
  const config = own !== undefined && 'text' in own ? { ...own, file: ownConfig } : options.config;
  const rendered = await renderContent(directory, format, session, {
    destinations,
    name: deployment.name,
    installNamespace: result.installNamespace,
    watchNamespaces: options.watchNamespaces ?? deployment.watchNamespaces,
    provider: options.provider,
    config,
  });
  const named = (finding: Diagnostic): Diagnostic => {
    if (finding.file === ownConfig)
      return { ...withSubject(finding, `${title}: spec.config`), file, line: configLine, column: undefined };
    if (finding.file !== undefined && finding.file === options.config?.file) return finding;
    if (finding.file === undefined) return { ...withSubject(finding, title), file, line: deployment.line };
    return { ...finding, file: `${file}: ${deployment.name}: ${finding.file}` };
  };
  const { objects, packageName, version, clouds, installNamespace } = rendered;
  const warnings = [
    ...result.warnings,
    ...foreignSecrets(used, installNamespace, deployment),
    ...rendered.warnings.map(named),
    ...unplaced(rendered, deployment),
  ];
  return {
    ...result,
    installNamespace,
    ...(packageName !== undefined && { packageName }),
    ...(version !== undefined && { version }),
    ...(clouds !== undefined && { clouds }),
    objects,
    pins,
    hash: rendered.findings.length > 0 ? '' : await hashOfObjects(objects, session),
    findings: rendered.findings.map(named),
    warnings,
  };
}

/** A problem of a deployment, without its name and place. */
type Remark = Pick<Diagnostic, 'code' | 'problem' | 'hint'>;

/** Returns an error of a deployment at a path of its document. */
function errorAt(
  { title, file, lineOf }: DeploymentDocument,
  documentPath: DocumentPath,
  remark: Remark,
): Diagnostic {
  return { severity: 'error', subject: title, file, line: lineOf(documentPath), ...remark };
}

function warningAt(deployment: DeploymentDocument, documentPath: DocumentPath, remark: Remark): Diagnostic {
  return { ...errorAt(deployment, documentPath, remark), severity: 'warning' };
}

/** Name of a configuration within a document in messages. */
const ownConfig = 'spec.config';

/** Returns the SHA-256 of objects as YAML. */
export async function hashOfObjects(
  objects: readonly PlainObject[],
  options: CancelOptions = {},
): Promise<string> {
  return digestPieces(writeObjects(objects, 'yaml', options));
}

/** Detects the format of files: a chart, a bundle, or plain manifests. */
async function detectFormat(directory: string, formats: readonly string[]): Promise<string> {
  const [only, ...others] = formats;
  if (only !== undefined && others.length === 0) return only;
  const has = async (name: string): Promise<boolean> =>
    (await readdir(path.join(directory, path.dirname(name))).catch((): string[] => [])).includes(
      path.basename(name),
    );
  const entries = await readdir(directory, { withFileTypes: true });
  let isChart = await has('Chart.yaml');
  for (const entry of entries) {
    if (entry.isDirectory()) isChart ||= await has(path.join(entry.name, 'Chart.yaml'));
  }
  if (isChart && formats.includes('helm')) return 'helm';
  const isBundle = await has('metadata/annotations.yaml');
  return isBundle && formats.includes('registry-v1')
    ? 'registry-v1'
    : (formats.findLast((name) => name === 'plain') ?? formats[0] ?? 'plain');
}

interface Placing extends Known {
  options: RenderDeploymentsOptions;
  findings: Diagnostic[];
  warnings: Diagnostic[];
  used: UsedSecret[];
  installNamespace: string;
}

const secretHint = 'add its manifest to the documents, or specify its directory with --secrets';

/** Returns a source with its credentials, or several if its ConfigMaps are in several files. */
function placeSource(
  { source, path: documentPath, destination, secret }: DocumentSource,
  deployment: DeploymentDocument,
  placing: Placing,
): PlacedSource[] {
  const name = `${deployment.name}: ${formatPath(documentPath)}`;
  if (source.kind !== 'configMaps') {
    const credentials = secret === undefined ? {} : readCredentials(secret, source, deployment, placing);
    return [{ name, destination, source: { ...source, ...credentials } }];
  }
  const files = new Map<string, { name: string; path?: string }[]>();
  for (const reference of source.configMaps) {
    const configMap = placing.configMaps.find(
      (map) =>
        map.name === reference.name &&
        (reference.namespace === '' || map.namespace === '' || map.namespace === reference.namespace),
    );
    if (configMap === undefined) {
      placing.findings.push(
        errorAt(deployment, reference.documentPath, {
          code: 'missing-object',
          problem: `${formatPath(reference.documentPath)}: ConfigMap ${quoteGo(reference.name)} not found`,
          hint: 'add it to the documents, or to the directory of --config-maps',
        }),
      );
      continue;
    }
    pushTo(files, configMap.file, {
      name: reference.name,
      ...(reference.path !== '' && { path: reference.path }),
    });
  }
  return [...files].map(([file, configMaps], index) => ({
    name: index === 0 ? name : `${name} (${index + 1})`,
    destination,
    source: { kind: 'configMaps', file: placing.options.paths.get(file) ?? path.resolve(file), configMaps },
  }));
}

interface UsedSecret extends SecretReference {
  /** Namespace in which it was found. */
  foundIn: string;
}

function readCredentials(
  secret: SecretReference,
  source: Extract<ContentPlace, { kind: 'image' | 'git' | 'http' }>,
  deployment: DeploymentDocument,
  { secrets, options, findings, warnings, used, installNamespace }: Placing,
): Pick<typeof source, 'credentials'> {
  const shown = secret.namespace === '' ? secret.name : `${secret.namespace}/${secret.name}`;
  const isAmong = [...secrets.values()].some(({ name }) => name === secret.name);
  if (options.secrets === undefined && !isAmong) {
    const problem = `Secret ${quoteGo(shown)} of ${formatPath(secret.path)} is not read, so your own credentials are used`;
    warnings.push(warningAt(deployment, secret.path, { code: 'unread-secret', problem, hint: secretHint }));
    return {};
  }
  const foundIn =
    secret.namespace === ''
      ? getNamespace(secret.name, [installNamespace, deployment.namespace], secrets)
      : secret.namespace;
  try {
    const credentials = getCredentials(secrets, { namespace: foundIn, name: secret.name }, source.kind);
    used.push({ ...secret, foundIn });
    return { credentials };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const { message: problem, hint } = error;
    findings.push(errorAt(deployment, secret.path, { code: 'secret', problem, hint }));
    return {};
  }
}

/** Returns the namespace of a secret without one: that of the documents or, if unique, any other. */
function getNamespace(name: string, own: readonly string[], secrets: Secrets): string {
  const namespaces = [...secrets.values()]
    .filter((secret) => secret.name === name)
    .map(({ namespace }) => namespace);
  const near = [...own, systemNamespace, ''].find((namespace) => namespaces.includes(namespace));
  return near ?? (namespaces.length === 1 ? (namespaces[0] as string) : '');
}

/** Reports secrets of other namespaces than the operator's, which a document should not use unnoticed. */
function foreignSecrets(
  used: readonly UsedSecret[],
  installNamespace: string,
  deployment: DeploymentDocument,
): Diagnostic[] {
  return used.flatMap(({ foundIn, namespace, name, path: documentPath }) => {
    if (foundIn === '' || foundIn === installNamespace) return [];
    if (namespace === '' && foundIn === systemNamespace) return [];
    const problem = `Secret ${quoteGo(name)} of ${formatPath(documentPath)} is in another namespace: ${quoteGo(foundIn)}`;
    return [warningAt(deployment, documentPath, { code: 'foreign-secret', problem })];
  });
}

/** Reports objects without a namespace, which would be created in the namespace of the current context. */
function unplaced(
  { objects, installNamespace }: RenderedContent,
  deployment: DeploymentDocument,
): Diagnostic[] {
  const namespaced =
    /^(?:Deployment|DaemonSet|StatefulSet|Pod|Service|ServiceAccount|ConfigMap|Secret|Role|RoleBinding)$/;
  if (installNamespace !== '') return [];
  const first = objects.find(({ kind, namespace }) => namespace === '' && namespaced.test(kind));
  if (first === undefined) return [];
  const problem = `${first.kind} ${quoteGo(first.name)} names no namespace, and spec.installNamespace is missing`;
  return [
    errorAt(deployment, ['kind'], { code: 'missing-namespace', problem, hint: 'set --install-namespace' }),
  ];
}

/** Returns a finding about sources, with local files as the user named them. */
function ofSource(
  finding: Diagnostic,
  deployment: DeploymentDocument,
  paths: ReadonlyMap<string, string>,
): Diagnostic {
  const named = [...paths].find(([, place]) => place === finding.file)?.[0];
  if (named !== undefined) return { ...finding, file: named };
  if (finding.file !== undefined) return { ...finding, file: `${deployment.file}: ${finding.file}` };
  return { ...withSubject(finding, deployment.title), file: deployment.file, line: deployment.line };
}

function isAboutContent(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code !== 'CANCELLED' && error.code !== 'INTERNAL';
}

/** Adds the document to an error, and removes the paths of unpacked files. */
function aboutDeployment(
  error: unknown,
  deployment: DeploymentDocument,
  about: { content?: OpenedContent; ignored?: Diagnostic | undefined },
): unknown {
  if (!isAboutContent(error)) return error;
  if (error.diagnostics !== undefined && error.diagnostics.length > 1) {
    const errors = error.diagnostics.map(
      (diagnostic) => new DiagnosticsError([diagnostic], { code: error.code }),
    );
    return combineErrors(
      errors.map((diagnosticsError) => aboutDeployment(diagnosticsError, deployment, about) as OpmateError),
    );
  }
  const { file, line, title } = deployment;
  const { content, ignored } = about;
  const where = line === undefined ? file : `${file}:${line}`;
  const inUserTerms =
    content === undefined || content.isInPlace
      ? error
      : renameDirectory(error, content.directory, content.pins[0]?.ref ?? 'the content');
  return addContext(inUserTerms, {
    subject: `${where}: ${title}`,
    // A reference to a Secret excludes the user's own credentials.
    newHint:
      error.code === 'AUTH' && ignored !== undefined ? `${formatMessage(ignored)}: ${secretHint}` : undefined,
  });
}
