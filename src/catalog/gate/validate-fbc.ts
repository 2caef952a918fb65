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
import { GateReport, type GateVerdict } from './gate.js';
import type { GateProfile } from './gate-profile.js';
import type { GateContent } from './gate-content.js';

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
  const fail = (code: string, problem: string, hint: string): void =>
    report.add(createFault(code, problem, { hint }));
  const { baseImage, content } = fragment;
  if (baseImage !== undefined && !profile.baseImages.includes(stripTag(baseImage))) {
    const hint = `use one of ${profile.baseImages.join(', ')}`;
    fail('base-image', `base image ${quoteGo(baseImage)} is not allowed`, hint);
    return report.verdict(checkCount);
  }
  const version = getVersion(fragment);
  if (version === undefined) {
    const hint = 'set the version, label the image, or use a base image with a tag';
    fail('openshift-version', 'the OpenShift version is unknown', hint);
    return report.verdict(checkCount);
  }
  if (fragment.hasProbe === false) {
    fail('probe', 'the image has no grpc_health_probe', 'add it to the image');
  }
  checkDirectories(fragment, fail);
  const { problems, message } = validateCatalog(content.facts);
  if (message !== undefined || content.faults.length > 0) {
    const [first] = [
      ...content.faults.map((fault) => fault.message),
      ...problems.map(({ problem }) => problem),
    ];
    fail('validate', `the catalog is invalid: ${first ?? message}`, 'run opmate validate');
  }
  if (content.facts.packages.length === 0) fail('package', 'no olm.package', 'add an olm.package blob');
  if (version === 'unreadable') {
    const problem = 'metadata of bundles is not checked: the OpenShift version is not a number';
    report.add(createWarning('openshift-version', problem, { hint: 'set it' }));
  } else checkMetadata(content, version, fail);
  checkImages(content, profile, fail);
  return report.verdict(checkCount);
}

type Fail = (code: string, problem: string, hint: string) => void;

/** Returns an image without tag and digest. */
function stripTag(image: string): string {
  return image.replace(/@.*$/, '').replace(/:[^:/]+$/, '');
}

function getVersion({
  openshift,
  labelVersions,
  baseImage,
}: GatedFragment): OpenShiftVersion | 'unreadable' | undefined {
  if (openshift !== undefined) return openshift;
  // The task compares the list of the label as one text, which is no version.
  if (labelVersions !== undefined && labelVersions.length > 0) return 'unreadable';
  if (baseImage === undefined) return 'unreadable';
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
    fail('metadata-form', problem, `render the catalog with ${wanted}`);
  }
  const lacking = bundles.filter((bundle) => (isNew ? bundle.csvMetadata !== 1 : bundle.objects === 0));
  if (lacking.length > 0) {
    const names = joinNames(lacking.map(({ name }) => name));
    fail(
      'metadata-missing',
      `bundles without ${wanted}, or with several: ${names}`,
      `render the catalog with ${wanted}`,
    );
  }
}

function checkImages({ bundles }: GateContent, profile: GateProfile, fail: Fail): void {
  const images = bundles.map(({ image }) => image);
  const unpinned = images.filter((image) => !/@sha256:[a-f0-9]{64}$/.test(image));
  if (unpinned.length > 0) {
    fail('image-digest', `bundle images without digest: ${joinNames(unpinned)}`, 'name images by digest');
  }
  const foreign = images.filter(
    (image) => !profile.registries.some((registry) => image.startsWith(`${registry}/`)),
  );
  if (foreign.length === 0) return;
  const hint = `use images of ${profile.registries.join(' or ')}`;
  fail('image-registry', `bundle images of other registries: ${joinNames(foreign)}`, hint);
}
