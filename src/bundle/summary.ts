import { OpmateError } from '../core/errors.js';
import { parseGoJson } from '../document/go-json.js';
import { type JsonObject, type JsonValue } from '../document/json.js';
import { getObjects, getText, getTexts } from '../document/json-fields.js';
import { sortedByBytes } from '../core/order.js';
import { parseVersion, tryParse } from '../core/semver.js';
import { type ApiKey, csvApiServices, csvCustomResources, csvSpec, readCsvMetadata } from '../model/csv.js';
import { propertyTypes } from '../model/declarative-config.js';
import { maxConfigMapData } from './config-map-extract.js';
import type { RawProperty } from './metadata.js';
import { type Bundle, parseBundle, withoutBodies } from './parse.js';
import { convertRegistryV1 } from './plain/registry-v1/convert.js';
import { createWarning } from '../core/diagnostic.js';
import { supportedModes } from './plain/registry-v1/install-modes.js';
import { permissionObjects } from './plain/rights/permissions.js';
import type { RegistryV1 } from './plain/registry-v1/registry-v1.js';
import { getRights } from './plain/rights/rights.js';
import { riskNames } from './plain/rights/risks.js';
import type { BundleFile, BundleFiles } from './read.js';

/** Output of `opmate bundle show -o json`. Missing texts and lists are empty; sizes are bytes. */
export type BundleSummary = ReturnType<typeof summarizeBundle>;

/** Summarizes a registry+v1 bundle. `subject` names it in errors. Throws the errors of `parseBundle`. */
export function summarizeBundle(files: BundleFiles, options: { subject: string }) {
  const bundle = parseBundle(withoutBodies(files), options);
  const { findings, warnings, ...installed } = installWidely(files);
  const facts = getFacts(bundle, files, installed);
  // Oddities, and faults that prevent installation.
  const notes = [
    ...findings,
    ...oddities(facts).map((problem) => createWarning('oddity', problem)),
    ...bundle.skippedFiles.map(({ file, reason, line }) =>
      createWarning('ignored-file', `skipped: ${reason}`, { file, line }),
    ),
    ...warnings,
  ];
  return { ...facts, notes };
}

/** Returns all but notes, in the order of the output. */
function getFacts(
  bundle: Bundle,
  files: BundleFiles,
  installed: Omit<ReturnType<typeof installWidely>, 'findings' | 'warnings'>,
) {
  const spec = csvSpec(bundle.csv);
  const { annotations } = readCsvMetadata(bundle.csv);
  const values = bundle.properties.map(getValue);
  return {
    name: bundle.name,
    package: bundle.packageName,
    version: bundle.version,
    release: bundle.release,
    displayName: getText(spec['displayName']),
    /** From the annotations. */
    channels: bundle.channels,
    defaultChannel: bundle.defaultChannel,
    upgrade: {
      replaces: getText(spec['replaces']),
      skips: getTexts(spec['skips']),
      skipRange: getText(annotations['olm.skipRange']),
      substitutesFor: getText(annotations['olm.substitutesFor']),
    },
    apis: getApis(bundle, spec),
    installModes: installed.installModes,
    minKubeVersion: getText(spec['minKubeVersion']),
    maturity: getText(spec['maturity']),
    provider: getText(spec, 'provider', 'name'),
    maintainers: getObjects(spec['maintainers']).map(({ name, email }) => ({
      name: getText(name),
      email: getText(email),
    })),
    images: getImages(bundle),
    deployments: installed.deployments,
    webhooks: getObjects(spec['webhookdefinitions']).map(({ type, generateName }) => ({
      type: getText(type),
      name: getText(generateName),
    })),
    /** If the operator watches as much as it supports; null for an unreadable ClusterServiceVersion. */
    permissions: installed.permissions,
    /** From `dependencies.yaml` and constraint properties. */
    dependencies: [...bundle.dependencies.map(getValue), ...values.filter(isConstraint)],
    /** Further properties, except APIs and package. */
    properties: values.filter((value) => !derivedTypes.has(value.type) && !isConstraint(value)),
    isDeprecated: values.some(({ type }) => type === deprecatedType),
    sizes: getSizes(files),
  };
}

/** Property that an index adds to a deprecated bundle; a bundle may have it too. */
const deprecatedType = 'olm.deprecated';

const derivedTypes: ReadonlySet<string> = new Set([
  propertyTypes.package,
  propertyTypes.gvk,
  propertyTypes.gvkRequired,
  propertyTypes.csvMetadata,
  propertyTypes.bundleObject,
  deprecatedType,
]);

function isConstraint({ type }: { type: string }): boolean {
  return type === 'olm.constraint' || type === 'olm.package.required';
}

function getValue({ type, text }: RawProperty): { type: string; value: JsonValue } {
  try {
    return { type, value: text === undefined ? null : parseGoJson(text) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { type, value: text ?? null };
  }
}

const installNamespace = 'install-namespace';

/** Converts the bundle for as many watched namespaces as it supports. */
function installWidely(files: BundleFiles) {
  const first = convertRegistryV1(files, { installNamespace });
  /** Supported ones, sorted. */
  const installModes = first.bundle === undefined ? [] : supportedModes(first.bundle.csv);
  const watchNamespaces = widestTargets(installModes);
  const { objects, findings, warnings, bundle } =
    watchNamespaces === undefined ? first : convertRegistryV1(files, { installNamespace, watchNamespaces });
  const deployments = (bundle?.csv.spec.install.spec?.deployments ?? []).map(({ name }) => name);
  if (bundle === undefined) return { installModes, deployments, permissions: null, findings, warnings };
  const permitting =
    objects.length > 0 ? objects : permissionObjects(bundle, installNamespace, watchNamespaces ?? ['']);
  const permissions = getPermissions(getRights(permitting), bundle);
  return { installModes, deployments, permissions, findings, warnings };
}

/** Returns the namespaces to watch for an operator that cannot watch all. */
function widestTargets(modes: readonly string[]): string[] | undefined {
  if (modes.includes('AllNamespaces')) return undefined;
  if (modes.includes('MultiNamespace')) return ['watched-1', 'watched-2'];
  if (modes.includes('SingleNamespace')) return ['watched-1'];
  return modes.includes('OwnNamespace') ? [installNamespace] : undefined;
}

/** Returns permissions as in `opmate bundle permissions`, with the number of its rows. */
function getPermissions(rights: ReturnType<typeof getRights>, { csv }: RegistryV1) {
  const { permissions = [], clusterPermissions = [] } = csv.spec.install.spec ?? {};
  const names = new Set(rights.map(({ account }) => account));
  for (const { serviceAccountName } of [...permissions, ...clusterPermissions])
    names.add(serviceAccountName || 'default');
  const accounts = sortedByBytes(names).map((account) => {
    const own = rights.filter((right) => right.account === account);
    const cluster = own.filter(({ namespace }) => namespace === '').length;
    const risks = riskNames.filter((risk) => own.some((right) => right.risks.includes(risk)));
    return { account, clusterRights: cluster, namespaceRights: own.length - cluster, risks };
  });
  return { accounts, risks: riskNames.filter((risk) => accounts.some(({ risks }) => risks.includes(risk))) };
}

function getApis(bundle: Bundle, spec: JsonObject) {
  const toKey = ({ group, version, kind, plural }: ApiKey): string =>
    [group, version, kind, plural].join('\0');
  /** A resource is from a custom resource definition, a service an aggregated API server. */
  const typed = (apis: readonly ApiKey[], services: readonly ApiKey[]) => {
    const keys = new Set(services.map(toKey));
    return apis.map((api) => ({ ...api, type: keys.has(toKey(api)) ? 'service' : 'resource' }));
  };
  const resources = new Set(csvCustomResources(spec, 'owned').map(toKey));
  const services = csvApiServices(spec, 'owned').filter((api) => !resources.has(toKey(api)));
  return {
    owned: typed(bundle.providedApis, services),
    required: typed(bundle.requiredApis, csvApiServices(spec, 'required')),
  };
}

/** Returns images sorted by reference, with their names in `spec.relatedImages`. */
function getImages({ relatedImages, deploymentImages }: Bundle) {
  const operator = new Set(deploymentImages);
  const images = new Set([...relatedImages.map(({ image }) => image), ...deploymentImages]);
  return sortedByBytes(images).map((image) => ({
    image,
    names: relatedImages.flatMap((related) => (related.image === image ? [related.name] : [])),
    /** A container of a deployment runs it. */
    isOperator: operator.has(image),
    /** Referenced by digest. */
    isPinned: /@sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})$/.test(image),
  }));
}

function getSizes(files: BundleFiles) {
  const sum = (part: readonly BundleFile[]) => ({
    files: part.length,
    bytes: part.reduce((total, { content }) => total + content.length, 0),
  });
  let largest = { file: '', bytes: 0 };
  for (const part of ['manifests', 'metadata'] as const) {
    for (const { name, content } of files[part])
      if (content.length > largest.bytes) largest = { file: `${part}/${name}`, bytes: content.length };
  }
  return { manifests: sum(files.manifests), metadata: sum(files.metadata), largest };
}

function oddities(facts: ReturnType<typeof getFacts>): string[] {
  const { name, version, channels, defaultChannel, upgrade, images, sizes } = facts;
  const messages: string[] = [];
  if (version === '') messages.push('has no version');
  else if (tryParse(parseVersion, version) === undefined)
    messages.push(`version ${version} is not a semantic version`);
  if (channels.length === 0) messages.push('is in no channel');
  if (defaultChannel !== '' && channels.length > 0 && !channels.includes(defaultChannel))
    messages.push(`default channel ${defaultChannel} is not among its channels`);
  if (upgrade.replaces === name) messages.push('replaces itself');
  if (upgrade.skips.includes(name)) messages.push('skips itself');
  const loose = images.filter(({ isOperator, isPinned }) => isOperator && !isPinned).length;
  if (loose > 0) {
    const amount = loose === 1 ? 'an image' : `${loose} images`;
    messages.push(`runs ${amount} that is not pinned by digest`);
  }
  const bytes = sizes.manifests.bytes + sizes.metadata.bytes;
  if (bytes > maxConfigMapData)
    messages.push(`${bytes} bytes, more than a ConfigMap holds (${maxConfigMapData})`);
  return messages;
}
