import { fromDirectory } from '../oci/image/open.js';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../catalog/catalog.js';
import { checkBreaking } from '../catalog/gate/breaking.js';
import { selectForScan, type ScanSelection } from '../catalog/gate/fips.js';
import { type GateContent, readGateContent } from '../catalog/gate/gate-content.js';
import {
  type GateName,
  GateReport,
  type GateVerdict,
  findUncomparable,
  gateNames,
  placeVerdicts,
} from '../catalog/gate/gate.js';
import { type GateProfile, defaultGateProfile } from '../catalog/gate/gate-profile.js';
import { parseGateProfile } from '../catalog/gate/profile-file.js';
import { checkPruning } from '../catalog/gate/pruning.js';
import { findUnreleasedImages } from '../catalog/gate/related-images.js';
import { validateFragment } from '../catalog/gate/validate-fbc.js';
import { combineErrors } from '../core/diagnostics-error.js';
import { UsageError, throwFileError } from '../core/errors.js';
import { type OpenShiftVersion } from '../core/openshift-version.js';
import { statIfPresent } from '../files/file-status.js';
import { withImage } from '../source/drivers/image.js';
import type { CatalogFacts } from '../model/facts.js';
import type { Session } from '../source/session.js';
import { withCatalog, withReleasedCatalog } from './open-catalog.js';

/** Options of `gateCatalog`. */
export interface GateCatalogOptions {
  /** Released index; `pruning` and `fips` need it. */
  against?: string | undefined;
  /** Compare with an empty index if `against` is an image that its registry does not have. */
  allowMissing?: boolean | undefined;
  /** Released index of the previous OpenShift version, for packages that the index lacks. */
  previous?: string | undefined;
  /** Default: all, of which those that need an index are omitted without one. */
  gates?: readonly GateName[] | undefined;
  /**
   * Document with `baseImages`, `registries`, `prunableChannels`, `scannedSubscriptions`, `scannedFrom` and `allowed`, and its
   * name in messages; missing fields have their defaults.
   */
  profile?: { text: string; file: string } | undefined;
  /** Default: the label of the image, else the tag of its base image. */
  openshift?: OpenShiftVersion | undefined;
  /** Base image, for a fragment that is a directory. */
  baseImage?: string | undefined;
  /** False for a fragment directory whose image will lack the program grpc_health_probe. */
  hasProbe?: boolean | undefined;
}

/** Verdicts of gates on a fragment. */
export interface GatedCatalog {
  verdicts: GateVerdict[];
  /** Images of the fragment that the released index lacks. */
  unreleasedImages: string[];
  /** Bundles and images to scan; undefined unless the gate `fips` ran. */
  scan: ScanSelection | undefined;
}

/** Facts about the image of a fragment. */
interface ImageFacts {
  baseImage: string | undefined;
  labelVersions: readonly string[] | undefined;
}

/** Label of a fragment with its OpenShift versions. */
const versionLabel = 'com.redhat.fbc.openshift.version';
const baseNameAnnotation = 'org.opencontainers.image.base.name';

/**
 * Checks a fragment of a catalog as release pipelines do, of an index only its packages. Throws OpmateError for what
 * cannot be read, with all problems of the profile, and UsageError for a gate without an index.
 */
export async function gateCatalog(
  fragment: string,
  session: Session,
  options: GateCatalogOptions = {},
): Promise<GatedCatalog> {
  const { against, profile: document } = options;
  const profile =
    document === undefined ? defaultGateProfile : parseGateProfile(document.text, document.file);
  const gates = options.gates ?? (against === undefined ? (['validate-fbc'] as const) : gateNames);
  const needing = gates.find((gate) => gate !== 'validate-fbc');
  if (needing !== undefined && against === undefined) {
    const hint = 'set options.against to the released index';
    throw new UsageError(`gate ${needing}: the released index is missing`, { hint });
  }
  return withCatalog(fragment, session, async ({ catalog }) => {
    const { facts, ...result } = await runGates(fragment, catalog, gates, session, { ...options, profile });
    // Only files of the user have places that help.
    if ((await statIfPresent(fromDirectory(session, fragment)))?.isDirectory() !== true) return result;
    return { ...result, verdicts: await placeVerdicts(catalog, facts, result.verdicts, session) };
  });
}

async function runGates(
  fragment: string,
  catalog: Catalog,
  gates: readonly GateName[],
  session: Session,
  options: Omit<GateCatalogOptions, 'profile'> & { profile: GateProfile },
): Promise<GatedCatalog & { facts: CatalogFacts }> {
  const { against, profile } = options;
  const withAnnotations = gates.includes('fips');
  const { logger, signal } = session;
  const content = await readGateContent(catalog, { logger, signal, withAnnotations });
  const directories = await listDirectories(fromDirectory(session, fragment), catalog);
  const packages = new Set(content.facts.packages.map(({ name }) => name));
  const read = (
    reference: string | undefined,
    { allowMissing }: Pick<GateCatalogOptions, 'allowMissing'> = {},
  ): Promise<GateContent | undefined> =>
    reference === undefined
      ? Promise.resolve(undefined)
      : withReleasedCatalog(reference, session, { allowMissing }, ({ catalog }) =>
          readIndex(catalog, { logger, signal, packages }),
        );
  const index = await read(against, options);
  const image = await readImageFacts(fragment, session);
  const verdicts: GateVerdict[] = [];
  if (gates.includes('validate-fbc')) {
    const baseImage = options.baseImage ?? image?.baseImage;
    const { openshift, hasProbe } = options;
    const labelVersions = image?.labelVersions;
    verdicts.push(
      validateFragment({ content, baseImage, labelVersions, openshift, directories, hasProbe }, profile),
    );
  }
  if (index !== undefined && gates.includes('pruning')) verdicts.push(checkPruning(content, index, profile));
  if (index !== undefined && gates.includes('breaking')) {
    verdicts.push(checkBreaking(content, index, profile, session.now()));
  }
  let scan: ScanSelection | undefined;
  if (index !== undefined && gates.includes('fips')) {
    scan = selectForScan(content, index, await read(options.previous), profile);
    const findings = findUncomparable(content);
    if (findings.length > 0) verdicts.push(new GateReport('fips').addAll(findings).verdict(1));
  }
  const unreleasedImages = index === undefined ? [] : findUnreleasedImages(content, index);
  return { verdicts, unreleasedImages, scan, facts: content.facts };
}

/** Reads the content of an index. Throws OpmateError with all errors in its blobs: a part would pass too much. */
async function readIndex(
  catalog: Catalog,
  options: Parameters<typeof readGateContent>[1],
): Promise<GateContent> {
  const content = await readGateContent(catalog, options);
  if (content.faults.length > 0) throw combineErrors(content.faults);
  return content;
}

/** Returns the directories below the root of a catalog; those of an image have files. */
async function listDirectories(
  reference: string,
  catalog: Catalog,
): Promise<{ name: string; entries: number }[] | undefined> {
  if ((await statIfPresent(reference))?.isDirectory() === true) {
    const entries = await readdir(reference, { withFileTypes: true }).catch(throwFileError(reference));
    const directories = entries.filter((entry) => entry.isDirectory());
    return Promise.all(
      directories.map(async ({ name }) => ({
        name,
        entries: (await readdir(path.join(reference, name))).length,
      })),
    );
  }
  const files = await catalog.listFiles?.();
  if (files === undefined) return undefined;
  const names = files.flatMap(({ name }) => (name.includes('/') ? [name.split('/')[0] as string] : []));
  return [...new Set(names)].map((name) => ({ name, entries: 1 }));
}

async function readImageFacts(reference: string, session: Session): Promise<ImageFacts | undefined> {
  if (
    (await statIfPresent(reference)) !== undefined ||
    /^[a-z-]+:/.test(reference.replace(/^docker:\/\//, ''))
  ) {
    return undefined;
  }
  return withImage(reference, session, ({ manifest, labels }) => {
    const label = labels[versionLabel];
    return Promise.resolve({
      baseImage: manifest.annotations?.[baseNameAnnotation],
      labelVersions: label === undefined ? undefined : [label],
    });
  });
}
