import { findUnsupportedVersions, readVersionsLabel } from '../../core/openshift-limits.js';
import { formatOpenShift, openShiftVersionsLabel } from '../../core/openshift-version.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { quoteGo } from '../../document/go-json.js';
import type { Csv } from '../../kube/csv-types.js';
import { readMetadataFiles, scalarText } from '../metadata.js';
import type { BundleFile } from '../read.js';
import { type Reporter, warning } from './report.js';

/**
 * Checks the annotation with the OpenShift versions whose catalogs the bundle is published in: that it is valid, and that
 * none of them has a Kubernetes below the minimum of the ClusterServiceVersion, where installation fails.
 */
export function checkOpenShiftVersions(
  metadata: readonly BundleFile[],
  csv: Csv | undefined,
  report: Reporter,
): void {
  for (const { file, annotations } of readMetadataFiles(metadata)) {
    const value = annotations?.[openShiftVersionsLabel];
    if (value === undefined || value === null) continue;
    const text = scalarText(value) ?? '';
    const label = readVersionsLabel(text);
    const reportHere = (problem: string, hint: string): void =>
      report(['annotations', openShiftVersionsLabel], `${openShiftVersionsLabel}: ${problem}`, {
        ...warning,
        file,
        hint,
      });
    if (label.kind === 'none') {
      reportHere(
        text.trim() === '' ? 'empty' : label.problem,
        'use v4.12, =v4.12, v4.12-v4.15 or =v4.12|>=v4.15',
      );
      return;
    }
    const minKube = tryParse(parseVersion, csv?.spec.minKubeVersion ?? '');
    const unsupported = minKube === undefined ? [] : findUnsupportedVersions(label, minKube);
    if (unsupported.length === 0) return;
    const names = unsupported.map(formatOpenShift).join(', ');
    const minimum = `spec.minKubeVersion ${csv?.spec.minKubeVersion}`;
    reportHere(
      `${quoteGo(text)} selects OpenShift ${names}, whose Kubernetes is below ${minimum}`,
      'select later versions of OpenShift, or lower spec.minKubeVersion',
    );
    return;
  }
}
