import type { CancelOptions } from '../../core/concurrency.js';
import type { OpmateError } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { getObject, getText } from '../../document/json-fields.js';
import { type BundleBlob, propertyTypes, schemas } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts } from '../../model/facts.js';
import { findCsvText } from '../../model/migrations.js';
import { parseGoJson } from '../../document/go-json.js';
import type { Catalog } from '../catalog.js';
import { addFacts } from '../facts.js';
import { readLocated } from '../locate.js';

/** A bundle as gates see it. */
export interface GateBundle {
  package: string;
  name: string;
  image: string;
  /** Image and related images, without duplicates. */
  images: string[];
  objects: number;
  csvMetadata: number;
  isDeprecated: boolean;
  /** Annotations of its ClusterServiceVersion that gates read. */
  annotations: Record<string, string>;
  /** Place of its blob. */
  origin: BlobOrigin;
}

/** Content of a catalog as gates see it. */
export interface GateContent {
  facts: CatalogFacts;
  bundles: GateBundle[];
  /** Errors in blobs, each without its blob. */
  faults: OpmateError[];
}

/** Property of bundles that index builds deprecate. */
const deprecatedProperty = 'olm.deprecated';

/** Annotations that select bundles for scans. */
export const scanAnnotations = {
  fips: 'features.operators.openshift.io/fips-compliant',
  subscription: 'operators.openshift.io/valid-subscription',
  createdAt: 'createdAt',
} as const;

/**
 * Reads what gates need of a catalog once; with `packages`, of these only. Memory holds names, edges and images. Errors
 * in blobs are collected.
 */
export async function readGateContent(
  catalog: Catalog,
  options: CancelOptions & {
    logger?: Logger | undefined;
    packages?: ReadonlySet<string> | undefined;
    /** Annotations are needed, for which ClusterServiceVersions are parsed. */
    withAnnotations?: boolean | undefined;
  },
): Promise<GateContent> {
  const { packages, withAnnotations = false, ...reading } = options;
  const content: GateContent = { facts: emptyFacts(), bundles: [], faults: [] };
  const onFault = (fault: OpmateError): void => void content.faults.push(fault);
  await readLocated(catalog, { ...reading, onFault }, (meta) => {
    const owner = meta.schema === schemas.package ? meta.name : meta.package;
    if (packages?.has(owner) === false) return;
    addFacts(content.facts, meta, {
      onBundle: (blob) => void content.bundles.push(toGateBundle(blob, withAnnotations, meta.origin)),
    });
  });
  return content;
}

function toGateBundle(blob: BundleBlob, withAnnotations: boolean, origin: BlobOrigin): GateBundle {
  const count = (type: string): number => blob.properties.filter((property) => property.type === type).length;
  const images = new Set([blob.image, ...blob.relatedImages.map(({ image }) => image)]);
  return {
    package: detach(blob.package),
    name: detach(blob.name),
    image: detach(blob.image),
    images: [...images].map(detach),
    objects: count(propertyTypes.bundleObject),
    csvMetadata: count(propertyTypes.csvMetadata),
    isDeprecated: count(deprecatedProperty) > 0,
    annotations: withAnnotations ? readAnnotations(blob) : {},
    origin,
  };
}

function readAnnotations(blob: BundleBlob): Record<string, string> {
  const metadata = blob.properties.find(({ type }) => type === propertyTypes.csvMetadata);
  const value = metadata === undefined ? readCsvMetadata(blob) : getObject(metadata.value, 'annotations');
  const names = Object.values(scanAnnotations);
  return Object.fromEntries(names.map((name) => [name, detach(getText(value, name))]));
}

function readCsvMetadata(blob: BundleBlob): object {
  const text = findCsvText(blob);
  return text === undefined ? {} : getObject(parseGoJson(text), 'metadata', 'annotations');
}
