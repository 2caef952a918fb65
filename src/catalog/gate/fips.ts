import { sortedByBytes } from '../../core/order.js';
import { getTexts } from '../../document/json-fields.js';
import { GoJsonError, parseGoJson } from '../../document/go-json.js';
import { type GateBundle, type GateContent, scanAnnotations } from './gate-content.js';
import type { GateProfile } from './gate-profile.js';

/** Bundles of a fragment that no index has released, and the images that a scan must look at. */
export interface ScanSelection {
  bundles: { image: string; isScanned: boolean }[];
  /** Related images of scanned bundles, without the bundles themselves. */
  images: string[];
  /** Packages that the index lacks; they are compared with the index of the previous version. */
  newPackages: string[];
}

/** Selects what the task `fbc-fips-check` scans. The scan needs the images and is no part of it. */
export function selectForScan(
  fragment: GateContent,
  index: GateContent,
  previous: GateContent | undefined,
  profile: GateProfile,
): ScanSelection {
  const known = new Set(index.facts.packages.map(({ name }) => name));
  const released = new Set([...index.bundles, ...(previous?.bundles ?? [])].map(({ image }) => image));
  const seen = new Set<string>();
  const unreleased = fragment.bundles.filter(({ image }) => {
    if (released.has(image) || seen.has(image)) return false;
    seen.add(image);
    return true;
  });
  const bundles = unreleased.map((bundle) => ({ bundle, isScanned: isScanned(bundle, profile) }));
  const images = new Set<string>();
  for (const { bundle, isScanned } of bundles) {
    for (const image of isScanned ? bundle.images : []) if (image !== bundle.image) images.add(image);
  }
  return {
    bundles: bundles.map(({ bundle: { image }, isScanned }) => ({ image, isScanned })),
    images: sortedByBytes(images),
    newPackages: fragment.facts.packages.map(({ name }) => name).filter((name) => !known.has(name)),
  };
}

function isScanned({ annotations }: GateBundle, profile: GateProfile): boolean {
  if (annotations[scanAnnotations.fips] === 'true') return true;
  const subscriptions = readList(annotations[scanAnnotations.subscription] ?? '');
  if (!subscriptions.some((name) => profile.scannedSubscriptions.includes(name))) return false;
  const created = Date.parse(annotations[scanAnnotations.createdAt] ?? '');
  // An unreadable date is a new one.
  return !(created < Date.parse(profile.scannedFrom));
}

function readList(text: string): string[] {
  try {
    return getTexts(parseGoJson(text));
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    return [];
  }
}
