import { gzipSync } from 'node:zlib';
import { checkPullSpec } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { formatVersion, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Csv } from '../../kube/csv-types.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

/** Maximum size of a ConfigMap, into which OLM unpacks a bundle. */
const maxBundleSize = 2 ** 20;

/**
 * Returns the faults that keep OLM from installing a bundle: duplicate or unowned definitions, duplicate service
 * accounts, excess size, a name that does not match the release, invalid image references. (Source:
 * operator-framework/api, bundle validator of `operator-sdk`.)
 */
export function installFaults(content: BundleContent): CheckDiagnostic[] {
  const { csv } = content;
  if (csv === undefined) return [];
  return [
    ...(content.isIncomplete ? [] : ownedFaults(content, csv)),
    ...serviceAccountFaults(content, csv),
    ...sizeFaults(content),
    ...nameFaults(content, csv),
    ...relatedImageFaults(csv),
  ];
}

function ownedFaults({ crds, name }: BundleContent, csv: Csv): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  const unowned = new Map<string, { kind: string; file: string }>();
  for (const { group, kind, allVersions, file } of [...crds].sort(
    (a, b) => Number(b.isV1) - Number(a.isV1),
  )) {
    for (const version of allVersions) {
      const key = gvkText(group, version, kind);
      if (unowned.has(key)) {
        const message = `Value ${key}: duplicate CRD ${quoteGo(key)} in bundle ${quoteGo(name)}`;
        faults.push({ ...errorAt(['spec', 'versions'], message), file });
      }
      unowned.set(key, { kind: `${group}/${kind}`, file });
    }
  }
  const ownedKinds = new Set<string>();
  for (const [index, owned] of (csv.spec.customresourcedefinitions?.owned ?? []).entries()) {
    const dot = owned.name.indexOf('.');
    const group = dot < 0 ? owned.name : owned.name.slice(dot + 1);
    const key = gvkText(group, owned.version, owned.kind);
    if (unowned.delete(key)) ownedKinds.add(`${group}/${owned.kind}`);
    else {
      const path = ['spec', 'customresourcedefinitions', 'owned', index];
      faults.push(
        errorAt(path, `Value ${key}: owned CRD ${quoteGo(key)} not found in bundle ${quoteGo(name)}`),
      );
    }
  }
  for (const [key, { kind, file }] of unowned) {
    if (ownedKinds.has(kind)) continue;
    const message = `Value ${key}: CRD ${quoteGo(key)} is present in bundle ${quoteGo(name)} but not defined in CSV`;
    faults.push({ ...errorAt(['spec', 'versions'], message), file });
  }
  return faults;
}

function gvkText(group: string, version: string, kind: string): string {
  return `${group}/${version}, Kind=${kind}`;
}

function serviceAccountFaults({ objects }: BundleContent, csv: Csv): CheckDiagnostic[] {
  const used = new Set(
    (csv.spec.install.spec?.deployments ?? []).map(
      ({ spec }) => spec.template.spec?.serviceAccountName ?? '',
    ),
  );
  return objects
    .filter(
      ({ apiVersion, kind, name }) => apiVersion === 'v1' && kind === 'ServiceAccount' && used.has(name),
    )
    .map(({ name, file }) => ({
      severity: 'error',
      problem:
        `Value ${name}: invalid service account found in bundle. This service account ${name} in your bundle is not ` +
        'valid, because a service account with the same name was already specified in your CSV. If this was ' +
        'unintentional, please remove the service account manifest from your bundle. If it was intentional to ' +
        'specify a separate service account, please rename the SA in either the bundle manifest or the CSV.',
      file,
      path: ['metadata', 'name'],
    }));
}

function sizeFaults({ files, name }: BundleContent): CheckDiagnostic[] {
  let size = 0;
  let compressed = 0;
  for (const file of files) {
    size += file.length;
    compressed += 4 * Math.ceil(gzipSync(file).length / 3);
  }
  if (compressed <= maxBundleSize * 0.85) return [];
  const amounts = `size=~${formatBytes(compressed)} , max=${formatBytes(maxBundleSize)}. Bundle uncompressed size is ${formatBytes(size)}`;
  if (compressed > maxBundleSize) {
    const message = `Value ${name}: maximum bundle compressed size with gzip size exceeded: ${amounts}`;
    return [{ severity: 'error', problem: message }];
  }
  const message = `Value ${name}: nearing maximum bundle compressed size with gzip: ${amounts}`;
  return [{ severity: 'warning', problem: message }];
}

/** Formats bytes in powers of 1000, as upstream does. */
function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.floor(Math.log10(bytes) / 3);
  return `${(bytes / 1000 ** power).toFixed(1)} ${'kMG'[power - 1]}B`;
}

function nameFaults(
  { name, format }: BundleContent,
  { spec: { version, release = '' } }: Csv,
): CheckDiagnostic[] {
  if (release === '') return [];
  const shown = formatVersion(parseTolerantVersion(version ?? '0.0.0'));
  const wanted = `${format.packageName}-v${shown}-${release}`;
  if (name === wanted) return [];
  const message =
    `Value ${name}: bundle name with release versioning ${quoteGo(name)} does not match expected name ` +
    quoteGo(wanted);
  return [errorAt(['metadata', 'name'], message)];
}

function relatedImageFaults({ spec: { relatedImages = [] } }: Csv): CheckDiagnostic[] {
  return relatedImages.flatMap(({ image }, index) => {
    const field = `Value spec.relatedImages[${index}].image`;
    const path = ['spec', 'relatedImages', index];
    if (image === '') return [errorAt(path, `${field}: relatedImages[${index}] has an empty image field`)];
    const fault = checkPullSpec(image);
    if (fault === undefined) return [];
    const problem = `relatedImages[${index}] has an invalid image pullspec ${quoteGo(image)}: ${fault}`;
    return [errorAt([...path, 'image'], `${field}: ${problem}`)];
  });
}
