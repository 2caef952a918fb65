import { createFault, createWarning } from '../../core/diagnostic.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { joinNames } from '../../core/suggest.js';
import {
  type OpenShiftVersion,
  compareOpenShiftNames,
  formatOpenShift,
  openShiftMilestones,
} from '../../core/openshift-version.js';
import { validateCatalog } from '../../graph/validate.js';
import { GateReport, type GateVerdict, missingPackage } from './gate.js';
import type { GateProfile } from './gate-profile.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { GateBundle, GateContent } from './gate-content.js';

/** A fragment with what its image says. */
interface GatedFragment {
  content: GateContent;
  /** Pull specification of the base image; undefined for a fragment that is not an image. */
  baseImage: string | undefined;
  /** OpenShift versions of the label of the image; several are possible. */
  labelVersions: readonly string[] | undefined;
  /** OpenShift version that the user named. */
  openshift: OpenShiftVersion | undefined;
  /** Directories below the root of the catalog, with the number of their entries; undefined if unknown. */
  directories: readonly { name: string; entries: number }[] | undefined;
  /** False if the image lacks the program that probes its server; undefined if unknown. */
  hasProbe: boolean | undefined;
}

/** Checks that the gate counts. */
const checkCount = 12;

/** Checks a fragment as the task `validate-fbc` does. */
export function validateFragment(fragment: GatedFragment, profile: GateProfile): GateVerdict {
  const report = new GateReport('validate-fbc');
  const fail: Fail = (code, problem, hint, place) =>
    report.add({ ...createFault(code, problem, { hint }), ...place });
  const { baseImage, content } = fragment;
  if (baseImage !== undefined && !profile.baseImages.includes(stripTag(baseImage))) {
    const hint = `use one of ${profile.baseImages.join(', ')}`;
    fail('base-image', `base image ${quoteGo(baseImage)} is not allowed`, hint);
    return report.verdict(checkCount);
  }
  const version = getVersion(fragment);
  if (version === undefined) {
    const hint = 'set options.openshift, label the image, or use a base image with a tag';
    fail('openshift-version', 'the OpenShift version is unknown', hint);
    return report.verdict(checkCount);
  }
  if (fragment.hasProbe === false) {
    fail('probe', 'the image has no grpc_health_probe', 'add it to the image');
  }
  checkDirectories(fragment, fail);
  const { problems, message } = validateCatalog(content.facts);
  if (message !== undefined || content.faults.length > 0) {
    const [fault] = content.faults;
    const [problem] = problems;
    const place =
      fault === undefined
        ? { origin: problem?.origin, path: problem?.path }
        : { file: fault.file, line: fault.line };
    const first = fault?.message ?? problem?.problem ?? message;
    fail('validate', `the catalog is invalid: ${first}`, 'run api.validate', place);
  }
  if (content.facts.packages.length === 0) report.add(missingPackage());
  if (version === 'unreadable' || version === 'none') {
    const reason = version === 'none' ? 'no OpenShift version' : 'the OpenShift version is not a number';
    const problem = `metadata of bundles is not checked: ${reason}`;
    report.add(createWarning('openshift-version', problem, { hint: 'set options.openshift' }));
  } else checkMetadata(content, version, fail);
  checkImages(content, profile, fail);
  return report.verdict(checkCount);
}

/** Reports a failure, at the place of the first blob that it is about. */
type Fail = (
  code: string,
  problem: string,
  hint: string,
  place?: Pick<CatalogDiagnostic, 'origin' | 'path' | 'file' | 'line'>,
) => void;

/** Returns an image without tag and digest. */
function stripTag(image: string): string {
  return image.replace(/@.*$/, '').replace(/:[^:/]+$/, '');
}

function getVersion({
  openshift,
  labelVersions,
  baseImage,
}: GatedFragment): OpenShiftVersion | 'none' | 'unreadable' | undefined {
  if (openshift !== undefined) return openshift;
  // The task compares the list of the label as one text, which is no version.
  if (labelVersions !== undefined && labelVersions.length > 0) return 'unreadable';
  if (baseImage === undefined) return 'none';
  const [, tag] = /:([^:/]+)$/.exec(baseImage.replace(/@.*$/, '')) ?? [];
  if (tag === undefined) return undefined;
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})$/.exec(tag) ?? [];
  return major === undefined ? 'unreadable' : { major: Number(major), minor: Number(minor) };
}

function checkDirectories({ directories }: GatedFragment, fail: Fail): void {
  if (directories === undefined) return;
  if (directories.length === 0) {
    fail(
      'directories',
      'the catalog has no directory of a package',
      'move each package to its own directory',
    );
    return;
  }
  const empty = directories.filter(({ entries }) => entries === 0);
  if (empty.length === 0) return;
  const names = joinNames(empty.map(({ name }) => name));
  fail('directories', `empty directories: ${names}`, 'remove them');
}

function checkMetadata({ bundles }: GateContent, version: OpenShiftVersion, fail: Fail): void {
  const isNew = compareOpenShiftNames(version, openShiftMilestones.csvMetadata) >= 0;
  const [wanted, unwanted] = isNew
    ? ['olm.csv.metadata', 'olm.bundle.object']
    : ['olm.bundle.object', 'olm.csv.metadata'];
  const countUnwanted = bundles.filter((bundle) => (isNew ? bundle.objects : bundle.csvMetadata) > 0);
  if (countUnwanted.length > 0) {
    const names = joinNames(countUnwanted.map(({ name }) => name));
    const problem = `${unwanted} is not permitted for OpenShift ${formatOpenShift(version)}: ${names}`;
    fail('metadata-form', problem, `render the catalog with ${wanted}`, placeOf(countUnwanted));
  }
  const lacking = bundles.filter((bundle) => (isNew ? bundle.csvMetadata !== 1 : bundle.objects === 0));
  if (lacking.length > 0) {
    const names = joinNames(lacking.map(({ name }) => name));
    fail(
      'metadata-missing',
      `bundles without ${wanted}, or with several: ${names}`,
      `render the catalog with ${wanted}`,
      placeOf(lacking),
    );
  }
}

const placeOf = ([first]: readonly GateBundle[]): Pick<CatalogDiagnostic, 'origin'> => ({
  origin: first?.origin,
});

function checkImages({ bundles }: GateContent, profile: GateProfile, fail: Fail): void {
  const join = (own: readonly GateBundle[]): string => joinNames(own.map(({ image }) => image));
  const unpinned = bundles.filter(({ image }) => !/@sha256:[a-f0-9]{64}$/.test(image));
  if (unpinned.length > 0) {
    const problem = `bundle images without digest: ${join(unpinned)}`;
    fail('image-digest', problem, 'name images by digest', placeOf(unpinned));
  }
  const foreign = bundles.filter(
    ({ image }) => !profile.registries.some((registry) => image.startsWith(`${registry}/`)),
  );
  if (foreign.length === 0) return;
  const hint = `use images of ${profile.registries.join(' or ')}`;
  fail('image-registry', `bundle images of other registries: ${join(foreign)}`, hint, placeOf(foreign));
}
