import { readMetadataFiles, scalarText } from '../../bundle/metadata.js';
import { openShiftVersionsLabel } from '../../core/openshift-version.js';
import { statIfPresent } from '../../files/file-status.js';
import {
  type VersionsVerdict,
  evaluateVersionsLabel,
  readVersionsLabel,
} from '../../core/openshift-limits.js';
import { defaultSupported, parseSupportedVersions } from '../../repo/supported-versions.js';
import type { Session } from '../../source/session.js';
import { useSources } from './bundle-sources.js';

export { defaultSupported } from '../../repo/supported-versions.js';

/** Options of `listOpenShiftVersions`. */
export interface OpenShiftVersionsOptions {
  /** OpenShift versions with an index: `4.12..5.0` or a list. */
  supported?: string | undefined;
  /** Include a bundle without the label in every index, as requests that ignore it do. */
  allowMissing?: boolean | undefined;
}

/** Indexes of OpenShift versions that a bundle is published in. */
export interface ListedOpenShiftVersions {
  /** Value of the label; empty if missing. */
  label: string;
  versions: (VersionsVerdict & { version: string })[];
}

/**
 * Evaluates the label `com.redhat.openshift.versions`, given as its value or in the annotations of a bundle, for each
 * supported OpenShift version. Throws OpmateError, UsageError.
 */
export async function listOpenShiftVersions(
  bundleOrLabel: string,
  session: Session,
  { supported = defaultSupported, allowMissing = false }: OpenShiftVersionsOptions = {},
): Promise<ListedOpenShiftVersions> {
  const names = parseSupportedVersions(supported);
  const text = await readLabel(bundleOrLabel, session);
  const label = readVersionsLabel(text);
  const versions = names.map((version) => {
    if (text === '' && allowMissing) return { version, isIncluded: true, reason: 'the label is missing' };
    return { version, ...evaluateVersionsLabel(label, version) };
  });
  return { label: text, versions };
}

/** Returns the label of a bundle; a text that names neither a path nor an image is a label. */
async function readLabel(bundleOrLabel: string, session: Session): Promise<string> {
  const isReference = bundleOrLabel !== '' && (/[/:]/.test(bundleOrLabel) || (await exists(bundleOrLabel)));
  if (!isReference) return bundleOrLabel;
  const { files } = await useSources(session, {}, (sources) => sources.readBundle(bundleOrLabel));
  for (const { annotations } of readMetadataFiles(files.metadata)) {
    const value = annotations?.[openShiftVersionsLabel];
    if (value !== undefined && value !== null) return scalarText(value) ?? '';
  }
  return '';
}

async function exists(path: string): Promise<boolean> {
  return (await statIfPresent(path)) !== undefined;
}
