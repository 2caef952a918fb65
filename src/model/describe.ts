import { quoteGo } from '../document/go-json.js';
import { type Diagnostic, type DocumentPath, createFault } from '../core/diagnostic.js';
import { checkPullSpec } from '../core/reference.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type DeprecationsBlob,
  type PackageBlob,
  propertyTypes,
} from './declarative-config.js';
import type { BlobOrigin, BundleFacts, ChannelFacts, DeprecationsFacts, PackageFacts } from './facts.js';
import { findPropertyFault, parsePackageProperty } from './properties.js';

/** Extracts facts from blobs. Texts are copied so that blobs and their source text can be freed. */

/** Returns the facts of an `olm.package` blob. */
export function describePackage(blob: PackageBlob, origin?: BlobOrigin): PackageFacts {
  return { name: detach(blob.name), defaultChannel: detach(blob.defaultChannel), origin };
}

/** Returns the facts of an `olm.channel` blob. */
export function describeChannel(blob: ChannelBlob, origin?: BlobOrigin): ChannelFacts {
  return {
    package: detach(blob.package),
    name: detach(blob.name),
    entries: (blob.entries ?? []).map((entry) => ({
      name: detach(entry.name),
      replaces: detach(entry.replaces),
      skips: entry.skips.map(detach),
      skipRange: detach(entry.skipRange),
    })),
    origin,
  };
}

/**
 * Returns the facts of an `olm.bundle` blob, with faults of its properties and image references. Requires valid base64
 * of its objects.
 */
export function describeBundle(blob: BundleBlob, origin?: BlobOrigin): BundleFacts {
  const facts: BundleFacts = {
    package: detach(blob.package),
    name: detach(blob.name),
    image: detach(blob.image),
    objectCount: 0,
    packageProperties: [],
    propertyFaults: [],
    imageFaults: [],
    origin,
  };
  for (const [index, property] of blob.properties.entries()) {
    if (property.type === propertyTypes.bundleObject) facts.objectCount++;
    const fault = findPropertyFault(property, index);
    if (fault !== undefined) {
      facts.propertyFaults.push(fault);
    } else if (property.type === propertyTypes.package) {
      const { packageName, version, release } = parsePackageProperty(property.value);
      facts.packageProperties.push({
        packageName: packageName === facts.package ? facts.package : detach(packageName),
        version: detach(version),
        release: detach(release),
        index,
      });
    }
  }
  addImageFault(facts.imageFaults, blob.image, ['image']);
  for (const [index, { image }] of blob.relatedImages.entries()) {
    addImageFault(facts.imageFaults, image, ['relatedImages', index, 'image']);
  }
  return facts;
}

/** Accepts an empty pull specification. (Source: validateImagePullSpec of operator-registry.) */
function addImageFault(faults: Diagnostic[], image: string, path: DocumentPath): void {
  if (image === '') return;
  const problem = checkPullSpec(image);
  if (problem === undefined) return;
  const subject = `invalid image pull spec ${quoteGo(image)}`;
  faults.push(createFault('invalid-image', problem, { subject, path }));
}

/** Returns the facts of an `olm.deprecations` blob. */
export function describeDeprecations(blob: DeprecationsBlob, origin?: BlobOrigin): DeprecationsFacts {
  return {
    package: detach(blob.package),
    entries: (blob.entries ?? []).map(({ reference, message }) => ({
      reference: { schema: detach(reference.schema), name: detach(reference.name) },
      message: detach(message),
    })),
    origin,
  };
}

/**
 * Returns a copy of a string that keeps nothing else in memory: V8 makes a substring of 13 characters or more a view of
 * its parent, which may be a whole catalog file.
 */
export function detach(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}
