import { isFormatName } from '../bundle/plain/external-format.js';
import type { Finding } from '../kube/finding.js';
import { type Manifest, readManifests, titleOf } from '../kube/manifests.js';
import { labelFault } from '../kube/names.js';
import type { BundleFile } from '../bundle/read.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { encodeYaml } from '../document/yaml.js';
import { type DocumentPath, DocumentReader, type LineAt, showPath } from './document-reader.js';
import { type DocumentSource, readSource } from './source-fields.js';

/** A deployment as its document describes it. */
export interface DeploymentDocument {
  /** `BundleDeployment "name"`, and where that stands. */
  title: string;
  file: string;
  line: number | undefined;
  name: string;
  namespace: string;
  isPaused: boolean;
  /** Formats that it may be of: one, or those between which its files decide. */
  formats: readonly string[];
  /** Empty where it says none. */
  installNamespace: string;
  watchNamespaces?: readonly string[];
  /** Values of a chart, as text; for other formats a configuration as an object. */
  config?: JsonObject;
  sources: readonly DocumentSource[];
  findings: Finding[];
  warnings: Finding[];
  lineOf(path: DocumentPath): number | undefined;
}

/** What some documents hold. */
export interface Documents {
  /** Sorted by namespace and name. */
  deployments: DeploymentDocument[];
  /** What is about no deployment alone. */
  findings: Finding[];
  warnings: Finding[];
  /** ConfigMaps and Secrets among them. */
  configMaps: Manifest[];
  secrets: Manifest[];
}

const group = 'core.rukpak.io';
const knownVersions = ['v1alpha1', 'v1alpha2'];
const kinds = ['BundleDeployment', 'BundleInstance', 'Bundle', 'ProvisionerClass'];
/** Longer names were refused, as names of other objects were made from them. (Source: rukpak.) */
const maxNameLength = 52;

/** Formats by their names in the versions of the API. */
const formatNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'registry-v1': 'registry-v1',
    'registry+v1': 'registry-v1',
    registry: 'registry-v1',
    plain: 'plain',
    'plain-v0': 'plain',
    'plain+v0': 'plain',
    helm: 'helm',
    'helm-v3': 'helm',
    'helm+v3': 'helm',
  }),
);
/** Those between which the files of a bundle can decide. */
const detectable = ['registry-v1', 'helm', 'plain'];

/**
 * Reads deployments in all forms that they have had: BundleDeployment of v1alpha1, v1alpha2 and of the proposal, and
 * the older BundleInstance with the Bundle and ProvisionerClass that it names. A Bundle is a deployment of its own
 * where there is nothing else. Other objects are passed over with a warning. All that is wrong is told together, with
 * file and line. Throws LimitError.
 */
export function readDocuments(files: readonly BundleFile[]): Documents {
  const { manifests, findings: unread } = readManifests(files, { prefix: '' });
  const findings = unread.map((finding): Finding => ({
    ...finding,
    hint: 'every document must be an object of Kubernetes, as a BundleDeployment is',
  }));
  const warnings: Finding[] = [];
  const ofKind = (kind: string): Manifest[] =>
    manifests.filter((manifest) => manifest.kind === kind && isOurs(manifest));
  const core = (kind: string): Manifest[] =>
    manifests.filter((manifest) => manifest.kind === kind && manifest.apiVersion === 'v1');
  const [configMaps, secrets] = [core('ConfigMap'), core('Secret')];
  for (const manifest of manifests) {
    const { apiVersion, file } = manifest;
    const line = manifest.lineOf(['kind']);
    const tell = (list: Finding[], message: string, hint?: string): unknown =>
      list.push({
        message: `${titleOf(manifest)}: ${message}`,
        file,
        line,
        ...(hint !== undefined && { hint }),
      });
    if (!isOurs(manifest)) {
      if (configMaps.includes(manifest) || secrets.includes(manifest)) continue;
      if (apiVersion === '' && kinds.includes(manifest.kind)) {
        tell(findings, 'apiVersion is missing', `write apiVersion: ${group}/v1alpha2`);
      } else tell(warnings, `${apiVersion} ${manifest.kind} is no deployment, and passed over`);
    } else if (!kinds.includes(manifest.kind)) {
      tell(findings, `${group} has no such kind`, `known are ${kinds.join(', ')}`);
    } else if (!knownVersions.includes(apiVersion.slice(group.length + 1))) {
      tell(warnings, `${apiVersion} is no known version, and read as v1alpha2`);
    }
  }
  const context: Context = {
    bundles: byName(ofKind('Bundle'), findings),
    classes: byName(ofKind('ProvisionerClass'), findings),
    used: new Set(),
    lineAt: linesOf(files),
  };
  const deployments = [...ofKind('BundleDeployment'), ...ofKind('BundleInstance')].map((manifest) =>
    readDeployment(manifest, context),
  );
  const lone = [...context.bundles.values()].filter((bundle) => !context.used.has(bundle));
  if (deployments.length === 0) deployments.push(...lone.map((bundle) => readDeployment(bundle, context)));
  else {
    for (const bundle of lone) {
      const line = bundle.lineOf(['kind']);
      warnings.push({ message: `${titleOf(bundle)}: nothing installs it`, file: bundle.file, line });
    }
  }
  findNameSakes(deployments);
  deployments.sort((a, b) => compareBytes(a.namespace, b.namespace) || compareBytes(a.name, b.name));
  return { deployments, findings, warnings, configMaps, secrets };
}

interface Context {
  bundles: ReadonlyMap<string, Manifest>;
  classes: ReadonlyMap<string, Manifest>;
  /** Bundles that something installs. */
  used: Set<Manifest>;
  lineAt: LineAt;
}

function linesOf(files: readonly BundleFile[]): LineAt {
  const lines = new Map<string, string[]>();
  return (name, line) => {
    const known =
      lines.get(name) ??
      files
        .find((file) => file.name === name)
        ?.content.toString()
        .split('\n') ??
      [];
    lines.set(name, known);
    return known[line - 1] ?? '';
  };
}

function isOurs({ apiVersion }: Manifest): boolean {
  return apiVersion.toLowerCase().startsWith(`${group}/`);
}

function byName(manifests: readonly Manifest[], findings: Finding[]): Map<string, Manifest> {
  const found = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const first = found.get(manifest.name);
    if (first === undefined) found.set(manifest.name, manifest);
    else findings.push(nameSake(titleOf(manifest), manifest, first));
  }
  return found;
}

function nameSake(
  title: string,
  { file, lineOf }: Pick<Manifest, 'file' | 'lineOf'>,
  first: Pick<Manifest, 'file' | 'lineOf'>,
): Finding {
  const at = `${first.file}:${first.lineOf(['kind'])}`;
  return { message: `${title}: is there twice, first at ${at}`, file, line: lineOf(['kind']) };
}

function findNameSakes(deployments: readonly DeploymentDocument[]): void {
  const seen = new Map<string, DeploymentDocument>();
  for (const deployment of deployments) {
    const key = `${deployment.namespace}/${deployment.name}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, deployment);
    else deployment.findings.push(nameSake(deployment.title, deployment, first));
  }
}

const specFields = {
  BundleDeployment: [
    'config',
    'defaultNamespace',
    'defaultnamespace',
    'format',
    'installNamespace',
    'paused',
    'provisionerClassName',
    'source',
    'sources',
    'template',
    'watchNamespaces',
  ],
  BundleInstance: ['bundleName', 'config', 'provisionerClassName', 'template'],
  Bundle: ['class', 'image', 'provisionerClassName', 'source'],
};

function readDeployment(manifest: Manifest, context: Context): DeploymentDocument {
  const reader = new DocumentReader(manifest, context.lineAt);
  const document = manifest.load();
  reader.known(document, [], ['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  checkName(manifest, reader);
  const spec = reader.object(document['spec'], ['spec']);
  if (spec === undefined && reader.findings.length === 0) reader.find(['spec'], 'spec is missing');
  const given = spec ?? {};
  reader.known(given, ['spec'], specFields[manifest.kind as keyof typeof specFields]);
  const content = contentOf(given, reader, context);
  const watchNamespaces = readWatchNamespaces(given, reader);
  const config = reader.object(given['config'], ['spec', 'config']);
  const installNamespace = readInstallNamespace(given, reader);
  const isPaused = readPaused(given['paused'], reader);
  return {
    title: reader.title,
    file: manifest.file,
    line: manifest.lineOf(['kind']),
    name: manifest.name,
    namespace: manifest.namespace,
    isPaused,
    formats: content.formats,
    installNamespace,
    ...(watchNamespaces !== undefined && { watchNamespaces }),
    ...(config !== undefined && { config }),
    sources: content.sources,
    findings: byLine([...reader.findings, ...(content.bundle?.findings ?? [])]),
    warnings: byLine([...reader.warnings, ...(content.bundle?.warnings ?? [])]),
    lineOf: (path) => manifest.lineOf(path),
  };
}

/** In the order of the documents that they are about. */
function byLine(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) => compareBytes(a.file ?? '', b.file ?? '') || (a.line ?? 0) - (b.line ?? 0),
  );
}

function checkName(manifest: Manifest, reader: DocumentReader): void {
  const { name } = manifest;
  const at = ['metadata', 'name'];
  if (name === '') reader.find(at, 'metadata.name is missing');
  else if (!/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(name)) {
    reader.find(
      at,
      `metadata.name: ${quoteGo(name)} is no name: lower-case letters, digits, dashes and dots`,
    );
  } else if (name.length > maxNameLength) {
    reader.find(at, `metadata.name: ${name.length} characters, more than ${maxNameLength}`);
  }
}

interface Content extends Pick<DeploymentDocument, 'formats' | 'sources'> {
  /** The document of the Bundle that is named, where it is another one. */
  bundle?: DocumentReader;
}

/** Where the files of a deployment come from, and which format they have. */
function contentOf(spec: JsonObject, reader: DocumentReader, context: Context): Content {
  const { manifest } = reader;
  const template = reader.object(spec['template'], ['spec', 'template']);
  if (template !== undefined) {
    reader.known(template, ['spec', 'template'], ['metadata', 'spec']);
    const path = ['spec', 'template', 'spec'];
    const bundle = reader.object(template['spec'], path);
    if (bundle === undefined) reader.find(path, `${showPath(path)} is missing`);
    else reader.known(bundle, path, specFields.Bundle);
    return bundleContent(bundle ?? {}, path, spec, reader, context);
  }
  if (manifest.kind === 'BundleInstance') {
    const path = ['spec', 'bundleName'];
    const name = reader.required(spec['bundleName'], path, 'name a Bundle, or write spec.template');
    const bundle = context.bundles.get(name);
    if (bundle !== undefined) {
      context.used.add(bundle);
      const other = new DocumentReader(bundle, context.lineAt);
      const bundleSpec = other.object(bundle.load()['spec'], ['spec']) ?? {};
      other.known(bundleSpec, ['spec'], specFields.Bundle);
      return { ...bundleContent(bundleSpec, ['spec'], spec, other, context), bundle: other };
    }
    if (name !== '') {
      reader.find(path, `${showPath(path)}: there is no Bundle ${quoteGo(name)} among the documents`);
    }
    return { formats: detectable, sources: [] };
  }
  if (manifest.kind === 'Bundle') return bundleContent(spec, ['spec'], {}, reader, context);
  return {
    formats: formatsOf(spec, ['spec'], reader, context),
    sources: readSources(spec, reader),
    ...reader,
  };
}

function bundleContent(
  bundle: JsonObject,
  path: DocumentPath,
  outer: JsonObject,
  reader: DocumentReader,
  context: Context,
): Content {
  const hasOwn = ['provisionerClassName', 'class'].some((name) => bundle[name] !== undefined);
  const formats = hasOwn
    ? formatsOf(bundle, path, reader, context)
    : formatsOf(outer, ['spec'], reader, context);
  const key = bundle['source'] === undefined && bundle['image'] !== undefined ? 'image' : 'source';
  const source = readSource(bundle[key], [...path, key], reader);
  return { formats, sources: source === undefined ? [] : [source] };
}

function readSources(spec: JsonObject, reader: DocumentReader): DocumentSource[] {
  const path = ['spec', 'sources'];
  if (spec['source'] !== undefined && spec['sources'] !== undefined) {
    reader.find(['spec', 'source'], 'spec.source: spec.sources is there too');
  }
  if (spec['sources'] === undefined && spec['source'] !== undefined) {
    const source = readSource(spec['source'], ['spec', 'source'], reader);
    return source === undefined ? [] : [source];
  }
  const list = reader.list(spec['sources'], path);
  if (list === undefined || list.length === 0) {
    if (list !== undefined || spec['sources'] === undefined || spec['sources'] === null) {
      reader.find(path, 'spec.sources is missing', 'name an image, git repository or archive');
    }
    return [];
  }
  return list.flatMap((item, index) => readSource(item, [...path, index], reader) ?? []);
}

/** The format, from a field of its own or from the class of a provisioner. */
function formatsOf(
  spec: JsonObject,
  path: DocumentPath,
  reader: DocumentReader,
  context: Context,
): readonly string[] {
  const at = [...path, 'format'];
  const format = reader.text(spec['format'], at);
  if (format !== undefined) {
    const choices = format.split('|').map((choice) => choice.trim());
    const known = choices.flatMap(
      (choice) => formatNames.get(choice) ?? (isFormatName(choice) ? choice : []),
    );
    if (choices.length === 1 && known.length === 1) return known;
    if (choices.length > 1) {
      const open = known.filter((name) => detectable.includes(name));
      if (open.length > 0) {
        reader.warn(at, `spec.format: ${quoteGo(format)} leaves it open, so the files decide`);
        return open;
      }
    }
    reader.find(at, `spec.format: ${quoteGo(format)} is no format`, 'known are registry-v1, plain and helm');
    return detectable;
  }
  const field =
    spec['provisionerClassName'] === undefined && spec['class'] !== undefined
      ? 'class'
      : 'provisionerClassName';
  const classPath = [...path, field];
  const name = reader.text(spec[field], classPath);
  if (name === undefined) {
    reader.warn(path, `${showPath(path)}: names no format, so the files decide`);
    return detectable;
  }
  const known = formatOfClass(name, context);
  if (known !== undefined) return [known];
  reader.find(
    classPath,
    `${showPath(classPath)}: ${quoteGo(name)} is no class of a format`,
    'known are core-rukpak-io-plain, core-rukpak-io-registry and core-rukpak-io-helm, or add its ProvisionerClass',
  );
  return detectable;
}

function formatOfClass(name: string, { classes }: Context): string | undefined {
  const document = classes.get(name)?.load();
  const spec = document?.['spec'];
  const provisioner = (isJsonObject(spec) ? spec['provisioner'] : undefined) ?? document?.['provisioner'];
  const id = typeof provisioner === 'string' ? provisioner : name;
  const last = /(?:^|[/.]|^core-rukpak-io-|^core\.rukpak\.io[-/.])([a-z0-9+-]+)$/.exec(id)?.[1];
  const short = last?.replace(/^core-rukpak-io-/, '');
  const known = short === undefined ? undefined : formatNames.get(short);
  if (known !== undefined) return known;
  // A class of its own stands for a program of that name, if it is one that was described.
  return document !== undefined && short !== undefined && isFormatName(short) ? short : undefined;
}

function readPaused(value: JsonValue | undefined, reader: DocumentReader): boolean {
  const path = ['spec', 'paused'];
  // The proposal is printed so.
  if (typeof value === 'string' && /^true\s*\|\s*false$/.test(value)) {
    reader.warn(path, `spec.paused: ${quoteGo(value)} leaves it open, and is read as false`);
    return false;
  }
  return reader.boolean(value, path);
}

function readInstallNamespace(spec: JsonObject, reader: DocumentReader): string {
  for (const field of ['installNamespace', 'defaultNamespace', 'defaultnamespace']) {
    const path = ['spec', field];
    const namespace = reader.text(spec[field], path);
    if (namespace === undefined) continue;
    const fault = labelFault(namespace);
    if (fault !== undefined) reader.find(path, `${showPath(path)}: ${quoteGo(namespace)}: ${fault}`);
    return namespace;
  }
  return '';
}

function readWatchNamespaces(spec: JsonObject, reader: DocumentReader): string[] | undefined {
  const path = ['spec', 'watchNamespaces'];
  const list = reader.list(spec['watchNamespaces'], path);
  if (list === undefined) return undefined;
  const namespaces = list.filter((item, index): item is string => {
    if (typeof item === 'string') return true;
    reader.text(item, [...path, index]);
    if (item === null) reader.find([...path, index], `${showPath([...path, index])}: is empty`);
    return false;
  });
  if (namespaces.length > 1 && namespaces.includes('')) {
    reader.find(path, 'spec.watchNamespaces: an empty name stands for all namespaces, and must be alone');
  }
  return namespaces;
}

/** The text of a configuration for a format: the values of a chart, else the object itself. */
export function configText(
  config: JsonObject,
  format: string,
): { text: string } | { fault: string } | undefined {
  if (Object.keys(config).length === 0) return undefined;
  if (format !== 'helm') {
    const inline = config['inline'];
    return { text: encodeYaml(isJsonObject(inline) ? inline : config) };
  }
  const { values } = config;
  const further = Object.keys(config).find((key) => key !== 'values');
  if (further !== undefined) return { fault: `spec.config.${further}: unknown field; known is values` };
  if (typeof values === 'string') return { text: values };
  return isJsonObject(values)
    ? { text: encodeYaml(values) }
    : { fault: 'spec.config.values: expected a text' };
}
