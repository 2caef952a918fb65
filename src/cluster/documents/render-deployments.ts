import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CertificateProvider } from '../../bundle/plain/registry-v1/certificates.js';
import { type Manifest, getTitle, locateIn } from '../../kube/manifests.js';
import type { PlainObject } from '../../kube/object.js';
import {
  type Diagnostic,
  type DocumentPath,
  formatMessage,
  formatPath,
  formatLocation,
  withSubject,
} from '../../core/diagnostic.js';
import { findFormatProgram } from '../../bundle/plain/external-format.js';
import { type RenderedContent, renderContent } from '../../bundle/plain/render-content.js';
import { writeObjects } from '../../bundle/plain/write.js';
import { Report } from '../../bundle/report.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import {
  DiagnosticsError,
  addContext,
  combineErrors,
  renameDirectory,
} from '../../core/diagnostics-error.js';
import type { ContentPlace } from '../../source/place.js';
import {
  type ContentOptions,
  type OpenedContent,
  type Pin,
  type PlacedSource,
  maxSourceErrors,
  openCombinedContent,
} from '../../source/content/content.js';
import { ContentFindingsError } from '../../source/content/content-findings.js';
import type { SourceSession } from '../../source/session.js';
import { type SecretHosts, type Secrets, getCredentials, secretsIn } from '../../source/secrets.js';
import { configText, detectable } from './deployment-documents.js';
import type { DeploymentDocument, Documents } from './document-types.js';
import {
  type DocumentSource,
  type SecretReference,
  type SourceAllowances,
  findRefusals,
} from './source-fields.js';
import { digestPieces } from '../../core/digest.js';

/** A rendered deployment document. */
export interface RenderedDeployment
  extends
    Pick<RenderedContent, 'packageName' | 'version' | 'bundleName' | 'clouds'>,
    Pick<DeploymentDocument, 'isCrdUpgradeChecked' | 'progressDeadlineMinutes' | 'healthChecks' | 'choice'> {
  name: string;
  /** Namespace of the document; empty if not set. */
  namespace: string;
  /** Namespace of the operator. */
  installNamespace: string;
  /** The document pauses changes on the cluster. */
  isPaused: boolean;
  /** Objects sorted by kind, namespace and name; empty if there are findings. */
  objects: readonly PlainObject[];
  /** Resolved sources. */
  pins: readonly Pin[];
  /** SHA-256 of the objects as YAML, which identifies the reviewed render; empty if there are findings. */
  hash: string;
  /** All problems, with files as the user named them. */
  findings: Diagnostic[];
  /** Warnings, which do not prevent rendering. */
  warnings: Diagnostic[];
}

/** Settings of rendering deployments. */
export interface RenderSettings extends SourceAllowances {
  /** Namespace to install operators in; takes precedence over the documents. */
  installNamespace?: string | undefined;
  /** Namespaces to watch; default those of the documents. */
  watchNamespaces?: readonly string[] | undefined;
  /** Certificate provider of webhooks. */
  provider?: CertificateProvider | undefined;
  /** Hosts of Secrets of the directory without annotations. */
  secretHosts?: SecretHosts | undefined;
  /** Allows Secrets of other namespaces than the operator's. */
  allowForeignSecrets?: boolean | undefined;
  /** Configuration or chart values for documents without any. */
  config?: { text: string; file: string } | undefined;
}

/** Settings, and what sources may refer to. */
interface RenderOptions extends RenderSettings {
  /** Session for opening sources. */
  content: ContentOptions;
  /** Secrets of a directory; undefined without one: the user's own credentials then replace missing ones. */
  secrets: Secrets | undefined;
  /** ConfigMaps of a directory. */
  configMaps: readonly Manifest[];
  /** Real paths of the files of ConfigMaps, by their names in manifests. */
  paths: ReadonlyMap<string, string>;
}

/** Namespace of secrets without one on clusters. (Source: rukpak.) */
const systemNamespace = 'rukpak-system';

/**
 * Renders deployments one by one: combines their sources, and converts them to objects by format. Problems of each
 * are among its findings. Throws OpmateError for unreadable sources, with the problems of all deployments.
 */
export async function renderDocuments(
  { deployments, findings, ...known }: Pick<Documents, 'deployments' | 'findings' | 'configMaps' | 'secrets'>,
  session: SourceSession,
  options: RenderOptions,
): Promise<RenderedDeployment[]> {
  const configMaps = [...known.configMaps, ...options.configMaps];
  const secrets = new Map([...(options.secrets ?? []), ...secretsIn(known.secrets)]);
  const rendered: RenderedDeployment[] = [];
  const errors: OpmateError[] = [];
  for (const deployment of deployments) {
    throwIfCancelled(session.signal);
    try {
      rendered.push(await new Rendering(deployment, { configMaps, secrets }, session, options).run());
    } catch (error) {
      if (!isAboutContent(error)) throw error;
      errors.push(error);
      if (errors.length >= maxSourceErrors) break;
    }
  }
  if (errors.length === 0) return rendered;
  const wrong = [...findings, ...rendered.flatMap((deployment) => deployment.findings)];
  if (wrong.length > 0) errors.push(new DiagnosticsError(wrong, { code: 'INVALID' }));
  throw combineErrors(errors);
}

/** Name of a configuration within a document in messages. */
const ownConfig = 'spec.config';

/** Fields of a document without effect, by format. */
const unusedFields: Readonly<Record<string, readonly ('config' | 'watchNamespaces')[]>> = {
  plain: ['config', 'watchNamespaces'],
  helm: ['watchNamespaces'],
};

const secretHint = 'add its manifest to the documents, or specify its directory with options.secrets';

/** Rendered content, apart from what is wrong with it. */
type RenderedObjects = Omit<RenderedContent, 'findings' | 'warnings'>;

/** Rendering of a deployment. */
class Rendering extends Report {
  readonly #deployment: DeploymentDocument;
  readonly #manifest: Manifest;
  readonly #title: string;
  /** Objects that sources may refer to: those of documents and directories. */
  readonly #known: { configMaps: readonly Manifest[]; secrets: Secrets };
  readonly #session: SourceSession;
  readonly #options: RenderOptions;
  readonly #installNamespace: string;
  /** Secrets that sources use, with the namespaces in which they were found. */
  readonly #used: (SecretReference & { foundIn: string })[] = [];

  constructor(
    deployment: DeploymentDocument,
    known: { configMaps: readonly Manifest[]; secrets: Secrets },
    session: SourceSession,
    options: RenderOptions,
  ) {
    super();
    this.add(deployment);
    this.#deployment = deployment;
    this.#manifest = deployment.manifest;
    this.#title = getTitle(deployment.manifest);
    this.#known = known;
    this.#session = session;
    this.#options = options;
    this.#installNamespace = options.installNamespace ?? deployment.installNamespace;
  }

  /** Adds a diagnostic at a path of the document. */
  #diagnose(
    severity: 'error' | 'warning',
    documentPath: DocumentPath,
    code: string,
    problem: string,
    hint?: string,
  ): void {
    const place = locateIn(this.#manifest, documentPath);
    const list = severity === 'error' ? this.findings : this.warnings;
    list.push({ severity, ...place, code, problem, hint });
  }

  async run(): Promise<RenderedDeployment> {
    this.#checkInstallNamespace();
    this.#checkSources();
    await this.#checkFormat();
    const placed = this.#deployment.sources.flatMap((source) => this.#place(source));
    const content = this.findings.length > 0 ? undefined : await this.#open(placed);
    if (content === undefined) return this.#withoutObjects();
    try {
      const rendered = await this.#render(content);
      const made =
        rendered === undefined ? this.#withoutObjects() : await this.#withObjects(rendered, content);
      await content.confirm();
      return made;
    } catch (error) {
      throw this.#withDocument(error, { content });
    } finally {
      await content.close();
    }
  }

  #describe() {
    const { name, namespace } = this.#manifest;
    const { isPaused, isCrdUpgradeChecked, progressDeadlineMinutes, healthChecks, choice } = this.#deployment;
    return {
      name,
      namespace,
      isPaused,
      ...(isCrdUpgradeChecked !== undefined && { isCrdUpgradeChecked }),
      ...(progressDeadlineMinutes !== undefined && { progressDeadlineMinutes }),
      ...(healthChecks !== undefined && { healthChecks }),
      ...(choice !== undefined && { choice }),
    };
  }

  #withoutObjects(): RenderedDeployment {
    const { findings, warnings } = this;
    const installNamespace = this.#installNamespace;
    return { ...this.#describe(), installNamespace, objects: [], pins: [], hash: '', findings, warnings };
  }

  async #withObjects(rendered: RenderedObjects, { pins }: OpenedContent): Promise<RenderedDeployment> {
    const { findings, warnings } = this;
    const hash = findings.length > 0 ? '' : await hashOfObjects(rendered.objects, this.#session);
    return { ...this.#describe(), ...rendered, findings, warnings, pins, hash };
  }

  #checkInstallNamespace(): void {
    const { installNamespace: own } = this.#deployment;
    if (own === '' || own === this.#installNamespace) return;
    const problem = `installed in ${quoteGo(this.#installNamespace)} instead of ${quoteGo(own)}`;
    this.#diagnose('warning', ['spec', 'installNamespace'], 'install-namespace', problem);
  }

  #checkSources(): void {
    const { allowLocal, allowInsecure } = this.#options;
    const skipsTls = allowInsecure === true || this.#session.network?.skipTlsVerify === true;
    for (const source of this.#deployment.sources) {
      for (const { message, hint } of findRefusals(source, { allowLocal, allowInsecure: skipsTls }))
        this.#diagnose('error', source.path, 'refused-source', message, hint);
    }
  }

  /** Opens the content of sources. Undefined, with findings, for invalid content. */
  async #open(placed: PlacedSource[]): Promise<OpenedContent | undefined> {
    try {
      return await openCombinedContent(placed, this.#session, this.#options.content);
    } catch (error) {
      if (!(error instanceof ContentFindingsError)) {
        const ignored = this.warnings.find(({ hint }) => hint === secretHint);
        throw this.#withDocument(error, { ignored });
      }
      this.add({ findings: error.diagnostics.map((finding) => this.#aboutSource(finding)) });
      return undefined;
    }
  }

  /** Renders files, and adds what is wrong with them. Undefined for a configuration that does not fit. */
  async #render({ directory, destinations }: OpenedContent): Promise<RenderedObjects | undefined> {
    const { formats, config: inDocument, watchNamespaces } = this.#deployment;
    const options = this.#options;
    const format = await detectFormat(directory, formats);
    const own = inDocument === undefined ? undefined : configText(inDocument, format);
    const inConfig = ['spec', 'config'];
    if (own !== undefined && 'fault' in own) this.#diagnose('error', inConfig, 'invalid-value', own.fault);
    else if (own !== undefined && options.config !== undefined) {
      const problem = 'spec.config: cannot be combined with options.config';
      this.#diagnose('error', inConfig, 'exclusive-fields', problem);
    }
    if (this.findings.length > 0) return undefined;
    for (const field of unusedFields[format] ?? []) {
      const problem = `spec.${field}: no effect in the format ${format}`;
      if (this.#deployment[field] !== undefined)
        this.#diagnose('warning', ['spec', field], 'unused-field', problem);
    }
    const { findings, warnings, ...rendered } = await renderContent(directory, format, this.#session, {
      destinations,
      name: this.#manifest.name,
      installNamespace: this.#installNamespace,
      watchNamespaces: options.watchNamespaces ?? watchNamespaces,
      provider: options.provider,
      config: own !== undefined && 'text' in own ? { ...own, file: ownConfig } : options.config,
    });
    this.#checkUsedSecrets(rendered.installNamespace);
    const named = (diagnostic: Diagnostic): Diagnostic => this.#aboutContent(diagnostic);
    this.add({ findings: findings.map(named), warnings: warnings.map(named) });
    this.#checkNamespace(rendered);
    return rendered;
  }

  /** Returns a diagnostic about content, with files as the user knows them. */
  #aboutContent(diagnostic: Diagnostic): Diagnostic {
    const { file } = diagnostic;
    const { file: document, name, placeOf } = this.#manifest;
    if (file === ownConfig) {
      const place = { file: document, line: undefined, column: undefined, ...placeOf(['spec', 'config']) };
      return { ...withSubject(diagnostic, `${this.#title}: spec.config`), ...place };
    }
    if (file !== undefined && file === this.#options.config?.file) return diagnostic;
    return file === undefined
      ? this.#aboutDocument(diagnostic)
      : { ...diagnostic, file: `${document}: ${name}: ${file}` };
  }

  /** Returns a finding about sources, with local files as the user named them. */
  #aboutSource(finding: Diagnostic): Diagnostic {
    const named = [...this.#options.paths].find(([, place]) => place === finding.file)?.[0];
    if (finding.file === undefined) return this.#aboutDocument(finding);
    return { ...finding, file: named ?? `${this.#manifest.file}: ${finding.file}` };
  }

  #aboutDocument(diagnostic: Diagnostic): Diagnostic {
    const { file, placeOf } = this.#manifest;
    return { ...withSubject(diagnostic, this.#title), file, ...placeOf(['kind']) };
  }

  /** Reports a format without a program, before anything is fetched. */
  async #checkFormat(): Promise<void> {
    const [format = '', ...others] = this.#deployment.formats;
    if (others.length > 0 || detectable.includes(format)) return;
    try {
      await findFormatProgram(format, this.#session);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const problem = `spec.format: ${error.message}`;
      this.#diagnose('error', ['spec', 'format'], 'unsupported', problem, error.hint);
    }
  }

  /** Returns a source with its credentials, or several if its ConfigMaps are in several files. */
  #place({ source, path: documentPath, destination, secret }: DocumentSource): PlacedSource[] {
    const name = `${this.#manifest.name}: ${formatPath(documentPath)}`;
    if (source.kind !== 'configMaps') {
      const credentials = secret === undefined ? {} : this.#readCredentials(secret, source);
      return [{ name, destination, source: { ...source, ...credentials } }];
    }
    const files = new Map<string, { name: string; path?: string }[]>();
    for (const reference of source.configMaps) {
      const configMap = this.#known.configMaps.find(
        (map) =>
          map.name === reference.name &&
          (reference.namespace === '' || map.namespace === '' || map.namespace === reference.namespace),
      );
      if (configMap === undefined) {
        const problem = `${formatPath(reference.documentPath)}: ConfigMap ${quoteGo(reference.name)} not found`;
        const hint = 'add it to the documents, or to the directory of options.configMaps';
        this.#diagnose('error', reference.documentPath, 'missing-object', problem, hint);
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
      source: { kind: 'configMaps', file: this.#options.paths.get(file) ?? path.resolve(file), configMaps },
    }));
  }

  #readCredentials(
    secret: SecretReference,
    source: Extract<ContentPlace, { kind: 'image' | 'git' | 'http' }>,
  ): Pick<typeof source, 'credentials'> {
    const { secrets } = this.#known;
    const shown = secret.namespace === '' ? secret.name : `${secret.namespace}/${secret.name}`;
    const namespaces = [...secrets.values()]
      .filter(({ name }) => name === secret.name)
      .map(({ namespace }) => namespace);
    if (this.#options.secrets === undefined && namespaces.length === 0) {
      const problem = `Secret ${quoteGo(shown)} of ${formatPath(secret.path)} is not read, so your own credentials are used`;
      this.#diagnose('warning', secret.path, 'unread-secret', problem, secretHint);
      return {};
    }
    // A secret without namespace is in that of the documents or, if unique, any other.
    const own = [this.#installNamespace, this.#manifest.namespace, systemNamespace, ''];
    const near = own.find((namespace) => namespaces.includes(namespace));
    const sole = namespaces.length === 1 ? (namespaces[0] as string) : '';
    const foundIn = secret.namespace === '' ? (near ?? sole) : secret.namespace;
    if (
      !own.includes(foundIn) &&
      namespaces.includes(foundIn) &&
      this.#options.allowForeignSecrets !== true
    ) {
      const problem = `Secret ${quoteGo(secret.name)} is in another namespace: ${quoteGo(foundIn)}`;
      const hint = 'move it to the namespace of the operator, or allow it with options.allowForeignSecrets';
      this.#diagnose('error', secret.path, 'foreign-secret', problem, hint);
      return {};
    }
    try {
      const { kind } = source;
      const address = kind === 'git' ? source.repository : kind === 'http' ? source.url : undefined;
      const hosts = this.#options.secretHosts;
      const name = { namespace: foundIn, name: secret.name };
      const credentials = getCredentials(secrets, { ...name, kind, address, hosts });
      this.#used.push({ ...secret, foundIn });
      return { credentials };
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      this.#diagnose('error', secret.path, 'secret', error.message, error.hint);
      return {};
    }
  }

  /** Warns of secrets of other namespaces than the operator's, which a document should not use unnoticed. */
  #checkUsedSecrets(installNamespace: string): void {
    for (const { foundIn, namespace, name, path: documentPath } of this.#used) {
      if (foundIn === '' || foundIn === installNamespace) continue;
      if (namespace === '' && foundIn === systemNamespace) continue;
      const problem = `Secret ${quoteGo(name)} of ${formatPath(documentPath)} is in another namespace: ${quoteGo(foundIn)}`;
      this.#diagnose('warning', documentPath, 'foreign-secret', problem);
    }
  }

  /** Warns of objects without a namespace, which would be created in the namespace of the current context. */
  #checkNamespace({
    objects,
    installNamespace,
  }: Pick<RenderedContent, 'objects' | 'installNamespace'>): void {
    const namespaced =
      /^(?:Deployment|DaemonSet|StatefulSet|Pod|Service|ServiceAccount|ConfigMap|Secret|Role|RoleBinding)$/;
    if (installNamespace !== '') return;
    const first = objects.find(({ kind, namespace }) => namespace === '' && namespaced.test(kind));
    if (first === undefined) return;
    const problem = `${first.kind} ${quoteGo(first.name)} names no namespace, and spec.installNamespace is missing`;
    this.#diagnose('warning', ['kind'], 'missing-namespace', problem, 'set options.installNamespace');
  }

  /** Adds the document to an error, and removes the paths of unpacked files. */
  #withDocument(
    error: unknown,
    about: { content?: OpenedContent; ignored?: Diagnostic | undefined },
  ): unknown {
    if (!isAboutContent(error)) return error;
    const { code, diagnostics = [] } = error;
    if (diagnostics.length > 1) {
      const errors = diagnostics.map((diagnostic) => new DiagnosticsError([diagnostic], { code }));
      return combineErrors(errors.map((single) => this.#withDocument(single, about) as OpmateError));
    }
    const { content, ignored } = about;
    const inUserTerms =
      content === undefined || content.isInPlace
        ? error
        : renameDirectory(error, content.directory, content.pins[0]?.ref ?? 'the content');
    return addContext(inUserTerms, {
      subject: `${formatLocation(locateIn(this.#manifest, ['kind']))}: ${this.#title}`,
      // A reference to a Secret excludes the user's own credentials.
      newHint: code === 'AUTH' && ignored ? `${formatMessage(ignored)}: ${secretHint}` : undefined,
    });
  }
}

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

function isAboutContent(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code !== 'CANCELLED' && error.code !== 'INTERNAL';
}
