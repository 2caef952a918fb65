import { isFormatName } from '../../bundle/plain/external-format.js';
import { type Manifest, locateIn, readManifests } from '../../kube/manifests.js';
import { labelFault } from '../../kube/names.js';
import type { BundleFile } from '../../bundle/read.js';
import { quoteGo } from '../../document/go-json.js';
import { type Diagnostic, createFault, formatLocation } from '../../core/diagnostic.js';
import { Report } from '../../bundle/report.js';
import { type Field, quoteShort, suggestQuotes, warnOfUnknown } from '../../document/field.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';
import { getValue } from '../../document/json-fields.js';
import type { DeploymentDocument, Documents } from './document-types.js';
import { readHealthChecks } from './health-checks.js';
import { isOlmDocument, readOlmDocuments } from './olm-documents.js';
import {
  type DocumentSource,
  type LineAt,
  type ManifestDocument,
  openDeploymentManifest,
  readSource,
} from './source-fields.js';

const group = 'core.rukpak.io';
const knownVersions = ['v1alpha1', 'v1alpha2'];
const kinds = ['BundleDeployment', 'BundleInstance', 'Bundle', 'ProvisionerClass'];
/** Maximum name length: names of other objects were derived from it. (Source: rukpak.) */
const maxNameLength = 52;

/** Formats by their names in the API versions. */
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
/** Formats that can be detected from the files of a bundle. */
/** Formats that are detected from files. */
export const detectable = ['registry-v1', 'helm', 'plain'];

/**
 * Reads deployments in all of their forms: BundleDeployment of v1alpha1, v1alpha2 and the proposal, and the older
 * BundleInstance with its Bundle and ProvisionerClass. A lone Bundle is a deployment. Documents of OLM are read as well,
 * their bundles yet to be resolved. Other objects are skipped with a warning. All problems are reported together, with file and line. Throws LimitError.
 */
export function readDeploymentDocuments(files: readonly BundleFile[]): Documents {
  const { manifests, findings: unread } = readManifests(files, { prefix: '', isWritten: true });
  const report = new Report();
  report.findings.push(...unread);
  const ofKind = (kind: string): Manifest[] =>
    manifests.filter((manifest) => manifest.kind === kind && isOurs(manifest));
  const core = (kind: string): Manifest[] =>
    manifests.filter((manifest) => manifest.kind === kind && manifest.apiVersion === 'v1');
  const [configMaps, secrets] = [core('ConfigMap'), core('Secret')];
  checkKinds(manifests, report);
  const byName = (kind: string): Map<string, Manifest> => {
    const unique = new Map<string, Manifest>();
    for (const manifest of ofKind(kind)) {
      const first = getOrAdd(unique, manifest.name, () => manifest);
      if (first !== manifest) report.findings.push(nameSake(manifest, first));
    }
    return unique;
  };
  const lineAt = formatLines(files);
  const context: Context = {
    bundles: byName('Bundle'),
    classes: byName('ProvisionerClass'),
    used: new Set(),
    lineAt,
  };
  const deployments = [...ofKind('BundleDeployment'), ...ofKind('BundleInstance')].map((manifest) =>
    readDeployment(manifest, context),
  );
  const lone = [...context.bundles.values()].filter((bundle) => !context.used.has(bundle));
  if (deployments.length === 0) deployments.push(...lone.map((bundle) => readDeployment(bundle, context)));
  else {
    for (const bundle of lone) report.warn('unused', 'nothing installs it', locateIn(bundle, ['kind']));
  }
  const seen = new Map<string, Manifest>();
  for (const { manifest, findings } of deployments) {
    const first = getOrAdd(seen, `${manifest.namespace}/${manifest.name}`, () => manifest);
    if (first !== manifest) findings.push(nameSake(manifest, first));
  }
  deployments.sort(
    ({ manifest: a }, { manifest: b }) =>
      compareBytes(a.namespace, b.namespace) || compareBytes(a.name, b.name),
  );
  const { findings, warnings, ...olm } = readOlmDocuments(manifests.filter(isOlmDocument), lineAt);
  report.add({ findings, warnings });
  return { ...report, deployments, ...olm, configMaps, secrets };
}

/** Reports objects that are no deployments, and unknown versions. */
function checkKinds(manifests: readonly Manifest[], report: Report): void {
  for (const manifest of manifests) {
    const { apiVersion, kind } = manifest;
    const place = locateIn(manifest, ['kind']);
    if (isOlmDocument(manifest)) continue;
    if (!isOurs(manifest)) {
      if (apiVersion === 'v1' && (kind === 'ConfigMap' || kind === 'Secret')) continue;
      if (apiVersion === '' && kinds.includes(kind)) {
        const hint = `use apiVersion: ${group}/v1alpha2`;
        report.fault('missing-field', 'apiVersion: missing', { ...place, hint });
      } else {
        const type = [apiVersion, kind].filter(Boolean).join(' ');
        report.warn('unknown-kind', `${type} is not a deployment, ignored`, place);
      }
    } else if (!kinds.includes(kind)) {
      const hint = `use one of ${kinds.join(', ')}`;
      report.fault('unknown-kind', `kind: unsupported value ${quoteShort(kind)}`, { ...place, hint });
    } else if (!knownVersions.includes(apiVersion.slice(group.length + 1))) {
      const problem = `apiVersion: unknown version ${apiVersion}, read as v1alpha2`;
      report.warn('unknown-version', problem, place);
    }
  }
}

interface Context {
  bundles: ReadonlyMap<string, Manifest>;
  classes: ReadonlyMap<string, Manifest>;
  /** Bundles that a deployment installs. */
  used: Set<Manifest>;
  lineAt: LineAt;
}

function formatLines(files: readonly BundleFile[]): LineAt {
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

function nameSake(manifest: Manifest, first: Manifest): Diagnostic {
  const problem = `duplicate, first defined in ${formatLocation(locateIn(first, ['kind']))}`;
  const hint = 'keep one of them';
  return createFault('duplicate-document', problem, { ...locateIn(manifest, ['kind']), hint });
}

const specFields = {
  BundleDeployment: [
    'config',
    'defaultNamespace',
    'defaultnamespace',
    'format',
    'healthChecks',
    'installNamespace',
    'paused',
    'provisionerClassName',
    'source',
    'sources',
    'template',
    'watchNamespaces',
  ],
  BundleInstance: ['bundleName', 'config', 'healthChecks', 'provisionerClassName', 'template'],
  Bundle: ['class', 'image', 'provisionerClassName', 'source'],
} as const;

function readDeployment(manifest: Manifest, context: Context): DeploymentDocument {
  const document = openDeploymentManifest(manifest, context.lineAt);
  const { root, diagnostics } = document;
  root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status'], warnOfUnknown);
  const metadata = root.field('metadata');
  if (!metadata.isPresent || metadata.jsonObject() !== undefined) {
    checkName(manifest, metadata.field('name'));
  }
  const spec = root.field('spec');
  const known = spec.optionalObject(specFields[manifest.kind as keyof typeof specFields], warnOfUnknown);
  const isReadable = !spec.isPresent || known !== undefined;
  const { bundle, ...content }: Content = isReadable
    ? getContent(spec, document, context)
    : { formats: detectable, sources: [] };
  const watchNamespaces = readWatchNamespaces(spec.field('watchNamespaces'));
  const healthChecks = readHealthChecks(spec.field('healthChecks'));
  const configField = spec.field('config');
  const config = configField.isPresent ? configField.jsonObject() : undefined;
  return {
    ...content,
    manifest,
    installNamespace: readInstallNamespace(spec),
    isPaused: readPaused(spec.field('paused')),
    ...(watchNamespaces !== undefined && { watchNamespaces }),
    ...(config !== undefined && { config }),
    ...(healthChecks !== undefined && { healthChecks }),
    findings: byLine([...diagnostics.errors, ...(bundle?.diagnostics.errors ?? [])]),
    warnings: byLine([...diagnostics.warnings, ...(bundle?.diagnostics.warnings ?? [])]),
  };
}

/** Sorts findings in order of their documents. */
function byLine(findings: readonly Diagnostic[]): Diagnostic[] {
  return [...findings].sort(
    (a, b) => compareBytes(a.file ?? '', b.file ?? '') || (a.line ?? 0) - (b.line ?? 0),
  );
}

function checkName({ name }: Manifest, field: Field): void {
  if (name === '') {
    if (field.isSet) field.mismatch('a string', suggestQuotes(field.value));
    else field.missing();
  } else if (!/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(name)) {
    const hint = 'use lower-case letters, digits, dashes and dots';
    field.fail(`invalid name ${quoteShort(name)}`, { hint });
  } else if (name.length > maxNameLength) {
    field.fail(`${name.length} characters, more than the maximum of ${maxNameLength}`, { code: 'limit' });
  }
}

interface Content extends Pick<DeploymentDocument, 'formats' | 'sources'> {
  /** Document of the referenced Bundle, if separate. */
  bundle?: ManifestDocument;
}

function getContent(spec: Field, document: ManifestDocument, context: Context): Content {
  const { kind } = document.manifest;
  const template = spec.field('template');
  if (template.isPresent && template.jsonObject() !== undefined) {
    template.object(['metadata', 'spec'], warnOfUnknown);
    const bundle = template.field('spec');
    bundle.object(specFields.Bundle, warnOfUnknown);
    return bundleContent(bundle, spec, document, context);
  }
  if (kind === 'Bundle') return bundleContent(spec, spec, document, context);
  if (kind !== 'BundleInstance') {
    return { formats: getFormats(spec, context), sources: readSources(spec, document) };
  }
  const field = spec.field('bundleName');
  const name = field.isSet ? field.text() : field.missing('set the name of a Bundle, or spec.template');
  const manifest = name === undefined ? undefined : context.bundles.get(name);
  if (manifest === undefined) {
    if (name !== undefined) {
      field.fail(`Bundle ${quoteGo(name)} not found among the documents`, { code: 'not-found' });
    }
    return { formats: detectable, sources: [] };
  }
  context.used.add(manifest);
  const bundle = openDeploymentManifest(manifest, context.lineAt);
  const bundleSpec = bundle.root.field('spec');
  bundleSpec.optionalObject(specFields.Bundle, warnOfUnknown);
  return { ...bundleContent(bundleSpec, spec, bundle, context), bundle };
}

function bundleContent(bundle: Field, outer: Field, document: ManifestDocument, context: Context): Content {
  const hasOwn = ['provisionerClassName', 'class'].some((name) => bundle.field(name).isPresent);
  const isImage = !bundle.field('source').isPresent && bundle.field('image').isPresent;
  const formats = getFormats(hasOwn ? bundle : outer, context);
  const source = readSource(bundle.field(isImage ? 'image' : 'source'), document);
  return { formats, sources: source === undefined ? [] : [source] };
}

function readSources(spec: Field, document: ManifestDocument): DocumentSource[] {
  const [entry, several] = [spec.field('source'), spec.field('sources')];
  spec.exclusive(['sources', 'source']);
  const list = entry.isPresent && !several.isPresent ? [entry] : several.optionalList();
  const isEmpty = Array.isArray(several.value) && list.length === 0;
  if (isEmpty || !(entry.isPresent || several.isPresent)) {
    several.missing('specify an image, git repository or archive');
  }
  return list.flatMap((item) => readSource(item, document) ?? []);
}

/** Returns the format, from its own field or the class of a provisioner. */
function getFormats(spec: Field, context: Context): readonly string[] {
  const field = spec.field('format');
  const format = field.optionalText();
  if (format !== undefined) {
    const choices = format.split('|').map((choice) => choice.trim());
    const known = choices.flatMap(
      (choice) => formatNames.get(choice) ?? (isFormatName(choice) ? choice : []),
    );
    if (choices.length === 1 && known.length === 1) return known;
    if (choices.length > 1) {
      const open = known.filter((name) => detectable.includes(name));
      if (open.length > 0) {
        field.warn(`${quoteShort(format)} names several formats; the files decide`);
        return open;
      }
    }
    field.fail(`unsupported value ${quoteShort(format)}`, { hint: 'use one of registry-v1, plain, helm' });
    return detectable;
  }
  if (field.isSet) return detectable;
  const className =
    !spec.field('provisionerClassName').isPresent && spec.field('class').isPresent
      ? spec.field('class')
      : spec.field('provisionerClassName');
  const name = className.optionalText();
  if (name === undefined) {
    spec.warn('no format; the files decide');
    return detectable;
  }
  const known = formatOfClass(name, context);
  if (known !== undefined) return [known];
  className.fail(`unsupported value ${quoteShort(name)}`, {
    hint: 'use one of core-rukpak-io-plain, core-rukpak-io-registry, core-rukpak-io-helm, or add its ProvisionerClass',
  });
  return detectable;
}

function formatOfClass(name: string, { classes }: Context): string | undefined {
  const document = classes.get(name)?.load();
  const provisioner = getValue(document, 'spec', 'provisioner') ?? document?.['provisioner'];
  const id = typeof provisioner === 'string' ? provisioner : name;
  const last = /(?:^|[/.]|^core-rukpak-io-|^core\.rukpak\.io[-/.])([a-z0-9+-]+)$/.exec(id)?.[1];
  const short = last?.replace(/^core-rukpak-io-/, '');
  const known = short === undefined ? undefined : formatNames.get(short);
  if (known !== undefined) return known;
  // A custom class refers to a described provisioner.
  return document !== undefined && short !== undefined && isFormatName(short) ? short : undefined;
}

function readPaused(field: Field): boolean {
  const { value } = field;
  // The proposal is printed so.
  if (typeof value === 'string' && /^true\s*\|\s*false$/.test(value)) {
    field.warn(`${quoteShort(value)} names both values, read as false`);
    return false;
  }
  return field.optionalBoolean();
}

function readInstallNamespace(spec: Field): string {
  for (const name of ['installNamespace', 'defaultNamespace', 'defaultnamespace']) {
    const field = spec.field(name);
    const namespace = field.optionalText();
    if (namespace === undefined) continue;
    const fault = labelFault(namespace);
    if (fault !== undefined) field.fail(`${quoteShort(namespace)}: ${fault}`);
    return namespace;
  }
  return '';
}

function readWatchNamespaces(field: Field): string[] | undefined {
  if (!field.isPresent) return undefined;
  const namespaces = field.list()?.flatMap((item) => item.anyText() ?? []);
  if (namespaces !== undefined && namespaces.length > 1 && namespaces.includes('')) {
    field.fail('an empty name selects all namespaces, and must be the only one');
  }
  return namespaces;
}

/** Returns the configuration as text for a format: the values of a chart, otherwise the object itself. */
export function configText(
  config: JsonObject,
  format: string,
): { text: string } | { fault: string } | undefined {
  if (Object.keys(config).length === 0) return undefined;
  if (format !== 'helm') {
    const inline = config['inline'];
    return { text: encodeYamlDocument(isJsonObject(inline) ? inline : config) };
  }
  const { values } = config;
  const further = Object.keys(config).find((key) => key !== 'values');
  if (further !== undefined) return { fault: `spec.config.${further}: unknown field; use "values"` };
  if (typeof values === 'string') return { text: values };
  return isJsonObject(values)
    ? { text: encodeYamlDocument(values) }
    : { fault: 'spec.config.values: expected a string' };
}
