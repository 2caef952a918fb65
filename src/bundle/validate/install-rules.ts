import { gzipSync } from 'node:zlib';
import { checkPullSpec } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { formatVersion, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import { gvkText } from './csv.js';
import type { Csv } from '../../kube/csv-types.js';
import { type Reporter, prefixed, warning } from './report.js';
import { maxConfigMapData } from '../config-map-extract.js';

/**
 * Checks for faults that keep OLM from installing a bundle: duplicate or unowned definitions, duplicate service
 * accounts, excess size, a name that does not match the release, invalid image references. (Source:
 * operator-framework/api, bundle validator of `operator-sdk`.)
 */
export function checkInstallation(content: BundleContent, report: Reporter): void {
  const { csv, name, objects, format } = content;
  if (csv === undefined) return;
  if (!content.isIncomplete) checkOwned(content, csv, prefixed(report, 'Value '));
  const { install, version, release = '', relatedImages = [] } = csv.spec;
  const used = new Set(
    (install.spec?.deployments ?? []).map(({ spec }) => spec.template.spec?.serviceAccountName ?? ''),
  );
  for (const { apiVersion, kind, name: account, file } of objects) {
    if (apiVersion !== 'v1' || kind !== 'ServiceAccount' || !used.has(account)) continue;
    const problem =
      `Value ${account}: invalid service account found in bundle. This service account ${account} in your bundle ` +
      'is not valid, because a service account with the same name was already specified in your CSV. If this was ' +
      'unintentional, please remove the service account manifest from your bundle. If it was intentional to ' +
      'specify a separate service account, please rename the SA in either the bundle manifest or the CSV.';
    report(['metadata', 'name'], problem, { file });
  }
  const reportNamed = prefixed(report, `Value ${name}: `);
  checkSize(content.files, reportNamed);
  const shown = formatVersion(parseTolerantVersion(version ?? '0.0.0'));
  const wanted = `${format.packageName}-v${shown}-${release}`;
  if (release !== '' && name !== wanted) {
    const problem = `bundle name with release versioning ${quoteGo(name)} does not match expected name`;
    reportNamed(['metadata', 'name'], `${problem} ${quoteGo(wanted)}`);
  }
  for (const [index, { image }] of relatedImages.entries()) {
    const item = `relatedImages[${index}]`;
    const reportImage = prefixed(report, `Value spec.${item}.image: ${item} has an `);
    const path = ['spec', 'relatedImages', index];
    const fault = image === '' ? undefined : checkPullSpec(image);
    if (image === '') reportImage(path, 'empty image field');
    else if (fault !== undefined) {
      reportImage([...path, 'image'], `invalid image pullspec ${quoteGo(image)}: ${fault}`);
    }
  }
}

function checkOwned({ crds, name }: BundleContent, csv: Csv, report: Reporter): void {
  const unowned = new Map<string, { kind: string; file: string }>();
  const definitions = [...crds].sort((a, b) => Number(b.isV1) - Number(a.isV1));
  for (const { group, kind, allVersions, file } of definitions) {
    for (const version of allVersions) {
      const key = gvkText(group, version, kind);
      if (unowned.has(key)) {
        const problem = `${key}: duplicate CRD ${quoteGo(key)} in bundle ${quoteGo(name)}`;
        report(['spec', 'versions'], problem, { file });
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
      const problem = `${key}: owned CRD ${quoteGo(key)} not found in bundle ${quoteGo(name)}`;
      report(['spec', 'customresourcedefinitions', 'owned', index], problem);
    }
  }
  for (const [key, { kind, file }] of unowned) {
    if (ownedKinds.has(kind)) continue;
    const problem = `${key}: CRD ${quoteGo(key)} is present in bundle ${quoteGo(name)} but not defined in CSV`;
    report(['spec', 'versions'], problem, { file });
  }
}

function checkSize(files: readonly Buffer[], report: Reporter): void {
  let size = 0;
  let compressed = 0;
  for (const file of files) {
    size += file.length;
    compressed += 4 * Math.ceil(gzipSync(file).length / 3);
  }
  if (compressed <= maxConfigMapData * 0.85) return;
  const amounts = `size=~${formatBytes(compressed)} , max=${formatBytes(maxConfigMapData)}. Bundle uncompressed size is ${formatBytes(size)}`;
  if (compressed > maxConfigMapData) {
    report([], `maximum bundle compressed size with gzip size exceeded: ${amounts}`);
  } else report([], `nearing maximum bundle compressed size with gzip: ${amounts}`, warning);
}

/** Formats bytes in powers of 1000, as upstream does. */
function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.floor(Math.log10(bytes) / 3);
  return `${(bytes / 1000 ** power).toFixed(1)} ${'kMG'[power - 1]}B`;
}
