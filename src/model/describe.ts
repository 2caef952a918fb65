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

/**
 * From blobs to facts. Everything kept is copied out of the blob, so that the blob, its manifests and the
 * text it was read from can go.
 */

/** The facts of an `olm.package` blob. */
export function describePackage(blob: PackageBlob, origin?: BlobOrigin): PackageFacts {
  return { name: detach(blob.name), defaultChannel: detach(blob.defaultChannel), origin };
}

/** The facts of an `olm.channel` blob. */
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
 * The facts of an `olm.bundle` blob, with what is wrong in it alone: properties that do not decode and
 * image references that do not parse. The base64 of its objects is taken as checked.
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

/** An empty pull specification is no fault here. (Source: validateImagePullSpec of operator-registry.) */
function addImageFault(faults: Diagnostic[], image: string, path: DocumentPath): void {
  if (image === '') return;
  const problem = checkPullSpec(image);
  if (problem === undefined) return;
  const subject = `invalid image pull spec ${quoteGo(image)}`;
  faults.push(createFault('invalid-image', problem, { subject, path }));
}

/** The facts of an `olm.deprecations` blob. */
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
 * A copy of a string that keeps nothing else alive. V8 makes a substring of 13 characters or more a view
 * into its parent, which for parsed YAML may be a whole catalog file.
 */
export function detach(text: string): string {
  return text.length < 13 ? text : Buffer.from(text).toString();
}
